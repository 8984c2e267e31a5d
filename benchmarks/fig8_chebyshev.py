"""Errors of approximations of the mean of the sigmoid: the paper's polynomial, a probit form and quadrature.

The setting is that of the supplement of Kulkarni et al. (2022): the mean of sigmoid(theta'x) over 1,000 records of norm
at most one, drawn from a centred Gaussian whose random covariance is fixed for each dimension; theta standard normal,
50 draws. The error is the mean absolute difference between that mean and an approximation of it:

- the second-order Chebyshev polynomial on [-3, 3] of the paper, averaged over the records. By symmetry its quadratic
  term is zero: it is a straight line;
- the probit form, sigmoid(mean / sqrt(1 + pi v / 8)) with the mean and the variance v of theta'x;
- quadrature over a Gaussian with that mean and variance, which the library uses.

For records around zero any curve through (0, 1/2) has a small error, because errors in both tails cancel. So the figure
also has predictors with an intercept of 1 and of 3; the paper's figure has none.

Run with ``python benchmarks/fig8_chebyshev.py`` (seconds); ``--quick`` has fewer dimensions, ``--figure-only``
redraws the figure from the table. Both are written to ``benchmarks/results``.
"""

import argparse
import time

import numpy as np
from _data import pyplot, read_table, results_folder, save_figure, write_table
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from scipy import special  # the module, because its functions cannot be pickled for worker processes
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp.models.regression._label_records import chebyshev_slope
from skldp.models.regression._sigmoid import tanh_means

SEED = 20220508
N_RECORDS = 1000
DIMENSIONS = (2, 5, 10, 15, 20, 25, 30, 40, 50)
INTERCEPTS = (0.0, 1.0, 3.0)
METHODS = {"chebyshev": "Chebyshev, order 2 (paper)", "probit": "probit form", "quadrature": "quadrature (ours)"}


def means(u):
    """Return the mean of sigmoid(u) as approximated by every method."""
    mean, variance = u.mean(), u.var()
    return {
        "chebyshev": 0.5 + 0.5 * chebyshev_slope() * mean,
        "probit": special.expit(mean / np.sqrt(1 + np.pi / 8 * variance)),
        "quadrature": 0.5 + 0.5 * tanh_means(np.array([mean]), np.array([variance]))[0, 0],
    }


def dimension_rows(d, repeats):
    """Return the rows of the table for one dimension."""
    rng = np.random.default_rng([SEED, d])
    root = rng.normal(size=(d, d)) / d
    errors = {(intercept, method): [] for intercept in INTERCEPTS for method in METHODS}
    for _ in range(repeats):
        theta = rng.normal(size=d)
        x = rng.normal(size=(N_RECORDS, d)) @ root
        x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
        for intercept in INTERCEPTS:
            u = x @ theta + intercept
            truth = special.expit(u).mean()
            for method, value in means(u).items():
                errors[intercept, method].append(abs(value - truth))
    return [{"d": d, "intercept": intercept, "method": method, "repeats": repeats, "mean_error": np.mean(values),
             "standard_error": np.std(values, ddof=1) / np.sqrt(repeats), "largest": np.max(values)}
            for (intercept, method), values in errors.items()]


def print_errors(rows):
    """Print a line for each dimension."""
    columns = [(intercept, method) for intercept in INTERCEPTS for method in METHODS]
    lines = []
    for d in sorted({row["d"] for row in rows}):
        found = {(row["intercept"], row["method"]): row["mean_error"] for row in rows if row["d"] == d}
        lines.append([f"d={d:g}", *(f"{found[column]:.1e}" for column in columns)])
    print("Mean absolute error of the mean of the sigmoid, by intercept and method")
    print_table(["", *(f"{intercept:g}, {method}" for intercept, method in columns)], lines)


def draw(table, path):
    """Draw the errors over the dimension from the table, with a panel for each intercept."""
    plt = pyplot()
    if plt is None:
        return
    rows = read_table(table)
    intercepts = sorted({row["intercept"] for row in rows})
    figure, axes = plt.subplots(1, len(intercepts), figsize=(3.6 * len(intercepts), 3.8), sharey=True, squeeze=False,
                                layout="constrained")
    for axis, intercept in zip(axes[0], intercepts):
        for style, (method, title) in zip(("o-", "s--", "v:"), METHODS.items()):
            line = sorted((row for row in rows if row["method"] == method and row["intercept"] == intercept),
                          key=lambda row: row["d"])
            axis.errorbar([row["d"] for row in line], [row["mean_error"] for row in line],
                          [row["standard_error"] for row in line], fmt=style, markersize=4, linewidth=1.2, capsize=2,
                          label=title)
        axis.set(yscale="log", xlabel="dimension d")
        axis.set_title("no intercept (the paper's setting)" if intercept == 0 else f"intercept {intercept:g}",
                       fontsize=10)
        axis.grid(color="0.92", linewidth=0.7)
    axes[0, 0].set_ylabel("mean absolute error of the mean")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    save_figure(plt, figure, path)


def main():
    """Compute the errors, print and write the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="3 dimensions and 10 draws, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no number")
    parser.add_argument("--figure-only", action="store_true", help="draw the figure from the table that is there")
    arguments = parser.parse_args()
    folder = results_folder(arguments.quick)
    table, figure = folder / "fig8_chebyshev.csv", folder / "fig8_chebyshev.png"
    if not arguments.figure_only:
        dimensions, repeats = ((2, 5, 10), 10) if arguments.quick else (DIMENSIONS, 50)
        print_header("Means of the sigmoid", "joblib", seed=SEED)
        print(f"{repeats} draws of theta, {N_RECORDS:,} records each\n")
        start = time.perf_counter()
        with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1), \
                Parallel(n_jobs=arguments.jobs, return_as="generator") as pool:
            found = pool(delayed(dimension_rows)(d, repeats) for d in dimensions)
            rows = [row for part in tqdm(found, total=len(dimensions), unit="dimension") for row in part]
        write_table(rows, table)
        print_errors(rows)
        print(f"{time.perf_counter() - start:.0f} seconds\n")
    draw(table, figure)


if __name__ == "__main__":
    main()
