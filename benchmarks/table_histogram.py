"""Learned against fixed concentrations of the histogram's prior: total variation and coverage over shapes.

Run with ``python benchmarks/table_histogram.py``; ``--quick`` runs one repeat of two shapes.
"""

import argparse

import numpy as np
from _timing import print_header, print_table
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from skldp import LDPHistogram, project_on_simplex

SEED = 20220506
CONCENTRATIONS = ("auto", 1.0, 0.5, 0.1)


def shapes():
    """Return true frequencies by name."""
    zipf = 1 / np.arange(1, 49)
    return {"equal, 16": np.full(16, 1 / 16), "1/k, 16": zipf[:16] / zipf[:16].sum(), "1/k, 48": zipf / zipf.sum(),
            "peaked, 16": np.repeat([0.2, 1 / 60], [4, 12])}


def one_repeat(truth, epsilon, n_reports, seed):
    """Return total variations and coverages by concentration, and the total variation of the projected estimate."""
    d = len(truth)
    records = np.random.default_rng([SEED, seed]).choice(d, p=truth, size=(n_reports, 1))
    model = LDPHistogram(epsilon=epsilon, categories=list(range(d)), likelihood="counts", random_state=seed)
    aggregate = model.aggregate(model.privatize(records))
    distances, covered = [], []
    for concentration in CONCENTRATIONS:
        fitted = clone(model).set_params(concentration=concentration).fit_reports(aggregate)
        ends = fitted.posterior_.interval(0.9)["frequencies"]
        distances.append(np.abs(fitted.frequencies_ - truth).sum() / 2)
        covered.append(np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1])))
    distances.append(np.abs(project_on_simplex(fitted.point_estimate_) - truth).sum() / 2)
    return distances, covered


def main():
    """Print one row for each shape and epsilon."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one repeat of two shapes, for a smoke run")
    parser.add_argument("--repeats", type=int, default=10, help="repeats of a cell (default 10)")
    arguments = parser.parse_args()
    print_header("Concentration of the prior of frequencies", seed=SEED)
    names = ["equal, 16", "1/k, 16"] if arguments.quick else list(shapes())
    epsilons, repeats = ([1.0], 1) if arguments.quick else ([0.5, 1.0, 4.0], arguments.repeats)
    rows = []
    with threadpool_limits(1):
        for name in names:
            for epsilon in epsilons:
                results = [one_repeat(shapes()[name], epsilon, 20_000, seed) for seed in range(repeats)]
                distances, covered = (np.mean(part, axis=0) for part in zip(*results))
                rows.append([f"{name}, epsilon {epsilon:g}", *distances, distances[0] / distances[1:4].min(),
                             *(f"{share:.0%}" for share in covered)])
    print("N = 20,000, subsets, counts; total variation of the posterior mean, and coverage of 90 % intervals; "
          f"mean of {repeats} repeats")
    print_table(["shape", *(f"TV {value}" for value in CONCENTRATIONS), "TV projected", "auto / best fixed",
                 *(f"in {value}" for value in CONCENTRATIONS)], rows)


if __name__ == "__main__":
    main()
