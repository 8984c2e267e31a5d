"""Convergence and speed of logistic regression with the defaults, and accuracy of averages of the sigmoid.

Run with ``python benchmarks/bench_logistic.py``; ``--quick`` shrinks every block. Times are CPU times of one
process with one thread. The last block repeats the paper's test of its Chebyshev polynomial: the mean absolute
difference between the mean of sigmoid(theta'x) over 1,000 records of norm at most one and its approximations, over 50
draws of theta. It also shows the quadrature that the library uses.
"""

import argparse
import time
import warnings

import numpy as np
from _moment_sums import simulated_sums
from _timing import print_header, print_table
from scipy.special import expit
from threadpoolctl import threadpool_limits

from skldp import MCMC, LDPBayesLogisticRegression
from skldp.exceptions import FewReportsWarning
from skldp.models.regression._label_records import chebyshev_slope
from skldp.models.regression._sigmoid import tanh_means

SEED = 20220508
BLOCKS = ("moments", "records", "sigmoid")


def records(d, n, rng):
    """Return records, mostly of norm below one, and labels from a logistic model."""
    X = rng.normal(size=(n, d)) * 0.5 / np.sqrt(d)
    coef = rng.normal(size=d)
    coef *= 4 / np.linalg.norm(coef)
    return X, (rng.random(n) < expit(X @ coef - 0.5)).astype(int)


def convergence(name, dims, epsilons, sizes, **options):
    """Print the diagnostics of default fits over the grid; ``options`` shorten a smoke run."""
    rows = []
    for d in dims:
        X, y = records(d, 50_000, np.random.default_rng([SEED, d]))
        for epsilon in epsilons:
            for size in sizes:
                rng = np.random.default_rng([SEED, d, int(1000 * epsilon), size])
                model = LDPBayesLogisticRegression(epsilon=epsilon, classes=[0, 1], random_state=0, **options)
                if name == "moments":
                    aggregate = simulated_sums(model.protocol(d), X, y, size, rng)
                else:
                    aggregate = model.aggregate(model.privatize(X[:size], y[:size]))
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    warnings.simplefilter("ignore", FewReportsWarning)  # the grid has settings with little information
                    start = time.process_time()
                    model.fit_reports(aggregate)
                    seconds = time.process_time() - start
                rhat, ess = model.posterior_.rhat["coef"].max(), model.posterior_.ess["coef"].min()
                rows.append([d, epsilon, size, rhat, ess, model.posterior_.acceptance, len(caught), seconds])
                print(f"{name}, d={d}, epsilon={epsilon:g}, N={size:,}: R-hat {rhat:.4f}, {seconds:.1f} s",
                      flush=True)
    print()
    print_table(["d", "epsilon", "N", "R-hat, coef", "ESS, coef", "acceptance", "warnings", "seconds"],
                [[f"{d}", f"{epsilon:g}", f"{size:,}", f"{rhat:.4f}", f"{ess:.0f}", f"{share:.2f}", f"{n}", f"{t:.1f}"]
                 for d, epsilon, size, rhat, ess, share, n, t in rows])
    bad, poor = max(rows, key=lambda row: row[3]), min(rows, key=lambda row: row[4])
    print(f"{name}: worst R-hat of a coefficient {bad[3]:.4f} (d={bad[0]}, epsilon={bad[1]:g}, N={bad[2]:,}; "
          f"target 1.03);\nleast effective size {poor[4]:.0f} (d={poor[0]}, epsilon={poor[1]:g}, N={poor[2]:,}; "
          "target 1,000); "
          f"{sum(row[6] for row in rows)} warnings in {len(rows)} fits; longest fit at d=8 "
          f"{max((row[7] for row in rows if row[0] == 8), default=float('nan')):.1f} s "
          f"(target {10 if name == 'moments' else 60})\n")


def sigmoid(dims, repeats):
    """Print the error of the mean of the sigmoid, by the paper's polynomial and by the quadrature."""
    rows = []
    for d in dims:
        rng = np.random.default_rng([SEED, d])
        root = rng.normal(size=(d, d)) / d
        errors = []
        for _ in range(repeats):
            theta = rng.normal(size=d)
            x = rng.normal(size=(1000, d)) @ root
            x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
            u = x @ theta
            truth = expit(u).mean()
            line = 0.5 + 0.5 * chebyshev_slope() * u.mean()
            curve = 0.5 + 0.5 * tanh_means(np.array([u.mean()]), np.array([u.var()]))[0, 0]
            shifted = expit(u + 1.0).mean()
            line_off = 0.5 + 0.5 * chebyshev_slope() * (u.mean() + 1)
            curve_off = 0.5 + 0.5 * tanh_means(np.array([u.mean() + 1]), np.array([u.var()]))[0, 0]
            errors.append(np.abs([line - truth, curve - truth, line_off - shifted, curve_off - shifted]))
        rows.append([f"d={d}", *(f"{value:.5f}" for value in np.mean(errors, axis=0))])
    print(f"Mean absolute error of the mean of the sigmoid, {repeats} draws of theta; the last two columns with an "
          "intercept of one.")
    print_table(["", "Chebyshev", "quadrature", "Chebyshev ", "quadrature "], rows)


def main():
    """Run the blocks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small blocks, for a smoke run")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=BLOCKS, help="what to measure (default all)")
    arguments = parser.parse_args()
    print_header("Logistic regression", "emcee", "arviz-stats", seed=SEED)
    quick = arguments.quick
    options = {"inference": MCMC(n_warmup=50, n_draws=50)} if quick else {}
    with threadpool_limits(1):
        if "sigmoid" in arguments.blocks:
            sigmoid((2, 5, 10) if quick else (2, 5, 10, 15, 20, 30), 10 if quick else 50)
        if "moments" in arguments.blocks:
            dims, epsilons, sizes = (2, 8, 20), (0.3, 1.0, 3.0, 10.0), (2000, 50_000, 10**6)
            convergence("moments", *(((2,), (1.0,), (2000,)) if quick else (dims, epsilons, sizes)), **options)
        if "records" in arguments.blocks:
            dims, epsilons = (2, 8, 20), (0.3, 1.0, 3.0, 10.0)
            convergence("records", *(((2,), (3.0,), (2000,)) if quick else (dims, epsilons, (50_000,))),
                        mechanism="records", **options)


if __name__ == "__main__":
    main()
