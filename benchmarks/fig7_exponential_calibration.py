"""Empirical coverage of the intervals of an exponential rate, with both mechanisms.

The setting is that of the supplement of Kulkarni et al. (2022): 1,000 exponential records clipped to 5, 80 repeats, the
rate of each repeat drawn from the prior, Laplace noise; and also the square wave on the same records. The paper does
not state its prior: ours is the default, Gamma with shape 2 and mean 1.

Run with ``python benchmarks/fig7_exponential_calibration.py``; ``--quick`` is a smoke run, ``--figure-only`` redraws
the figure from the table. Both are written to ``benchmarks/results``. Fits are those of
``fig1_gaussian_calibration.py``: 200 steps for each chain, and the default length after a warning.
"""

import argparse
import time

import numpy as np
from _data import pyplot, read_table, results_folder, save_figure, write_table
from _timing import print_header, print_table
from fig1_gaussian_calibration import (
    EPSILONS,
    EXPONENTIAL,
    LEVELS,
    MECHANISM_TITLES,
    SEED,
    SHORT_LENGTH,
    cells,
    draw_panel,
    fit_once,
    print_coverage,
    print_scores,
)
from joblib import Parallel, delayed, parallel_config
from tqdm import tqdm

KEY = 7  # makes the noise independent of other figures


def rows_of(pool, bar, mechanism, epsilon, repeats):
    """Return the rows of the table for one mechanism and epsilon, and the number of convergence warnings."""
    bar.set_description(f"{mechanism}, epsilon {epsilon:g}")
    results = []
    # The mechanism is not part of the key, so that both use the same rates and records.
    for result in pool(delayed(fit_once)(EXPONENTIAL, mechanism, epsilon, None, SHORT_LENGTH,
                                         (KEY, int(1000 * epsilon), i)) for i in range(repeats)):
        results.append(result)
        bar.update()
    rows = cells(EXPONENTIAL, mechanism, epsilon, results)
    for row in rows:
        widths = [np.ptp(result.intervals[row["level"]]["rate"]) / result.truth["rate"] for result in results]
        row["relative_width"] = np.median(widths)
    return rows, sum(result.warned_last for result in results)


def print_widths(rows):
    """Print the widths of the 90 % intervals relative to the rate, and their ratio."""
    lines = []
    for epsilon in sorted({row["epsilon"] for row in rows}):
        widths = [next(row["relative_width"] for row in rows if row["mechanism"] == mechanism
                       and row["epsilon"] == epsilon and row["level"] == 0.9) for mechanism in MECHANISM_TITLES]
        lines.append([f"{epsilon:g}", *widths, widths[0] / widths[1]])
    print("Median width of the 90 % interval over the true rate, the same records")
    print_table(["epsilon", *MECHANISM_TITLES.values(), "ratio"], lines)


def draw(table, path):
    """Draw the figure from the table: a panel for each mechanism."""
    plt = pyplot()
    if plt is None:
        return
    rows = read_table(table)
    figure, axes = plt.subplots(1, len(MECHANISM_TITLES), figsize=(8.4, 3.8), sharey=True, layout="constrained")
    for axis, (mechanism, title) in zip(axes, MECHANISM_TITLES.items()):
        draw_panel(axis, [row for row in rows if row["mechanism"] == mechanism])
        axis.set_title(f"Exponential rate, {title}", fontsize=10)
        axis.set_xlabel("nominal coverage")
    axes[0].set_ylabel("empirical minus nominal\n(percentage points)")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    save_figure(plt, figure, path)


def main():
    """Run the repeats, print and write the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="10 repeats of one epsilon, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no number")
    parser.add_argument("--repeats", type=int, default=EXPONENTIAL.repeats, help="repeats (default 80, the paper's)")
    parser.add_argument("--figure-only", action="store_true", help="draw the figure from the table that is there")
    arguments = parser.parse_args()
    folder = results_folder(arguments.quick)
    table, figure = folder / "fig7_exponential_calibration.csv", folder / "fig7_exponential_calibration.png"
    if not arguments.figure_only:
        epsilons, repeats = ((1.0,), 10) if arguments.quick else (EPSILONS, arguments.repeats)
        print_header("Calibration of the exponential model", "joblib", "emcee", seed=SEED)
        print(f"{arguments.jobs} processes; {repeats} repeats of {EXPONENTIAL.n_reports:,} records\n")
        run(epsilons, repeats, arguments.jobs, table)
    draw(table, figure)


def run(epsilons, repeats, jobs, table):
    """Run the repeats, print and write the table."""
    rows, n_warned = [], 0
    start = time.perf_counter()
    total = len(MECHANISM_TITLES) * len(epsilons) * repeats
    with parallel_config("loky", inner_max_num_threads=1), tqdm(total=total, unit="fit", mininterval=1) as bar, \
            Parallel(n_jobs=jobs, return_as="generator") as pool:
        for mechanism in MECHANISM_TITLES:
            for epsilon in epsilons:
                found, warned = rows_of(pool, bar, mechanism, epsilon, repeats)
                rows, n_warned = rows + found, n_warned + warned
                write_table(rows, table)  # after each setting, so that an interrupt keeps the finished rows
    print_coverage(rows)
    print_scores(rows)
    print_widths(read_table(table))
    print(f"{len(rows)} cells at levels {', '.join(f'{level:.0%}' for level in LEVELS)}; ConvergenceWarning: "
          f"{n_warned} of {total} fits; {(time.perf_counter() - start) / 60:.1f} minutes\n")


if __name__ == "__main__":
    main()
