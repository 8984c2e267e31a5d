"""When ``features_per_client`` pays: error of predictions with reports of some features, over that with all of them.

The expected square of the error of predictions is exact to first order, with the noise of the reports and the spread
of the records (``SampledNoise``). Columns are uncorrelated and have mean zero, the line explains a quarter of the
variance of a response with a mean square of 1/4 of its bound, and its weight is 1. For each kind of column (1 or -1;
uniform between its bounds; normal), ``data_norm`` lets 5 % of the records, or of the subsets of their features, be
shortened, and the constant has the best weight. "same norm" has the ``data_norm`` at which no record in the box of
the bounds is shortened, of all and of some features alike (columns that are 1 or -1 and uniform).

A second table has root mean squared errors of coefficients in fits to simulated clients.

Run with ``python benchmarks/table_feature_sampling.py`` (about ten minutes); ``--quick`` computes a part. All numbers
are written to ``benchmarks/results``.
"""

import argparse
import math
import warnings

import numpy as np
from _data import results_folder, write_table
from _timing import print_header, print_table
from scipy.optimize import minimize_scalar

from skldp import LDPBayesLinearRegression, Moments
from skldp.exceptions import ScaleWarning
from skldp.mechanisms import AxisMoments, SampledMoments, SphereMoments

SEED = 20220505
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
FEATURES = (10, 20, 50)
SIZES = (2, 4, 8)
KINDS = {
    "1 or -1": lambda rng, n, d: rng.choice([-1.0, 1.0], size=(n, d)),
    "uniform": lambda rng, n, d: rng.uniform(-1, 1, size=(n, d)),
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
}
N_SIMULATED = 20_000
N_CLIENTS, N_FITS = 200_000, 6


def mean_square(kind, n_features, rng):
    """Return the mean squared length of some columns, over the square that 5 % of the records exceed."""
    square = (KINDS[kind](rng, N_SIMULATED, n_features) ** 2).sum(axis=1)
    return float(square.mean() / np.quantile(square, 0.95))


def risk(mechanism, share):
    """Return the expected square of the error of predictions for one client, given the mean squared length of x."""
    d, kappa, spread = mechanism.n_features, mechanism.intercept_weight, share / mechanism.n_features
    line = np.full(d, 0.25 / math.sqrt(spread * d))
    theta = np.diag([kappa**2, *np.full(d, spread), 0.25])
    theta[1:-1, -1] = theta[-1, 1:-1] = spread * line
    left = np.zeros((2, d + 2))
    left[0, 1:3] = np.array([1, -1]) / (math.sqrt(2) * spread)  # a direction that is orthogonal to the line
    left[1, 0] = 1 / kappa
    right = np.array([0.0, *-line, 1.0])
    noise = mechanism.noise.variance(left, right, theta)
    residual = right @ theta @ right
    records = np.array([residual / spread, residual])  # of all clients: the spread of residual times x, and residual
    return float((noise + records) @ [share, 1.0])


def best_risk(kind, share, **options):
    """Return the risk with the best weight of the constant."""
    return minimize_scalar(lambda log: risk(kind(intercept_weight=math.exp(log), y_weight=1.0, **options), share),
                           bounds=(math.log(0.05), math.log(2.0)), method="bounded", options={"xatol": 0.02}).fun


def compare(column, d, epsilon, rng):
    """Return the row of one kind of column, dimension and budget."""
    every = best_risk(AxisMoments, mean_square(column, d, rng), epsilon=epsilon, n_features=d)
    sphere = best_risk(SphereMoments, mean_square(column, d, rng), epsilon=epsilon, n_features=d)
    row = {"column": column, "d": d, "epsilon": epsilon, "sphere": sphere / every}
    some = {s: {"epsilon": epsilon, "n_features": d, "features_per_client": s} for s in SIZES}
    row |= {f"s = {s}": best_risk(SampledMoments, mean_square(column, s, rng), **some[s]) / every for s in SIZES}
    box = {"1 or -1": 1.0, "uniform": 1 / 3}.get(column)
    if box is not None:
        boxed = best_risk(AxisMoments, box, epsilon=epsilon, n_features=d)
        row |= {f"same norm, s = {s}": best_risk(SampledMoments, box, **some[s]) / boxed for s in SIZES}
    return row


def fitted(column, d, epsilon):
    """Return root mean squared errors of coefficients in fits, by the number of features of a client."""
    row = {"column": column, "d": d, "epsilon": epsilon}
    scale = {s: 1 / math.sqrt(mean_square(column, s or d, np.random.default_rng(SEED))) for s in (None, *SIZES)}
    for s in (None, *SIZES):
        errors = []
        for seed in range(N_FITS):
            rng = np.random.default_rng([SEED, seed])
            X = KINDS[column](rng, N_CLIENTS, d)
            size = float(np.sqrt((X**2).mean() * d))
            line = rng.normal(size=d) * 0.25 / size
            y = X @ line + rng.normal(scale=0.43, size=N_CLIENTS)
            model = LDPBayesLinearRegression(
                epsilon=epsilon, data_norm=size * scale[s], bounds_y=(-1.5, 1.5), features_per_client=s,
                mechanism=Moments(kind="axis", intercept_weight=0.3), inference="laplace", random_state=seed).fit(X, y)
            errors.append(np.mean((model.coef_ - line) ** 2))
        row["all" if s is None else f"s = {s}"] = float(np.sqrt(np.mean(errors)) * size)
    return row


def main():
    """Compute, write and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two dimensions and budgets, for a smoke run")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ScaleWarning)  # every record of columns that are 1 or -1 has the largest norm
    print_header("Reports of some features", seed=SEED)
    rng, part = np.random.default_rng(SEED), slice(2 if arguments.quick else None)
    rows = [compare(column, d, epsilon, rng) for column in KINDS for d in FEATURES[:1 if arguments.quick else None]
            for epsilon in EPSILONS[part]]
    names = list(rows[0])
    write_table([{name: row.get(name, math.nan) for name in names} for row in rows],
                results_folder(arguments.quick) / "table_feature_sampling.csv")
    print("People needed for predictions, over those with axes of all features.")
    print_table(names, [[row["column"], f"{row['d']}", *(row.get(name, math.nan) for name in names[2:])]
                        for row in rows])
    fits = [fitted(column, FEATURES[0], epsilon) for column in list(KINDS)[part]
            for epsilon in (2.0, 8.0)[:1 if arguments.quick else None]]
    write_table(fits, results_folder(arguments.quick) / "table_feature_sampling_fits.csv")
    print(f"Error of coefficients of {N_CLIENTS:,} clients, times the length of x.")
    print_table(list(fits[0]), [[row["column"], f"{row['d']}", *list(row.values())[2:]] for row in fits])


if __name__ == "__main__":
    main()
