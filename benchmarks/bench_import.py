"""Import times, compared with scikit-learn's linear models, and the heavy modules that imports load.

Run with ``python benchmarks/bench_import.py``; ``--quick`` takes one repeat instead of eleven. Every import runs in
a fresh interpreter; the statements take turns, so that other load affects all of them equally.
"""

import argparse
import statistics
import subprocess
import sys
import time

from _timing import print_header, print_table

REFERENCE = "import sklearn.linear_model"
STATEMENTS = [
    "pass",
    REFERENCE,
    "import skldp",
    "from skldp import LDPGaussian",
    "from skldp import LDPBayesLinearRegression",
    "from skldp import PosteriorDisplay",
    "import skldp.protocols",
]
HEAVY = ("sklearn", "emcee", "arviz", "matplotlib", "dask", "pandas")
LIMIT = 1.5  # times the reference


def seconds(statement):
    """Return the wall-clock time of an interpreter that runs one statement."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def heavy_modules(statement):
    """Return the names of the heavy modules that are loaded after a statement."""
    code = f"{statement}\nimport sys\nprint(*[name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return ", ".join(done.stdout.split()) or "none"


def main():
    """Time the statements, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one repeat")
    repeats = 1 if parser.parse_args().quick else 11
    print_header("Imports", "scikit-learn", "emcee")
    times = {statement: [] for statement in STATEMENTS}
    heavy = {statement: heavy_modules(statement) for statement in STATEMENTS}  # warms up the file cache, too
    for _ in range(repeats):
        for statement in STATEMENTS:
            times[statement].append(seconds(statement))
    medians = {statement: statistics.median(found) for statement, found in times.items()}
    print(f"Median of {repeats} interpreters; times the reference is against '{REFERENCE}' (limit {LIMIT})")
    print_table(["statement", "ms", "times the reference", "heavy modules"],
                [[statement, 1e3 * median, median / medians[REFERENCE], heavy[statement]]
                 for statement, median in medians.items()])
    late = [statement for statement, median in medians.items() if median > LIMIT * medians[REFERENCE]]
    print(f"Above the limit: {', '.join(late) or 'none'}")


if __name__ == "__main__":
    main()
