"""Scores of private stochastic gradient descent over group sizes and learning rates, used to choose the defaults.

Adult (8 components, no intercept; AUC, higher is better) and Wine Quality (6 components, with intercept, response
bounds of +-2; RMSE, lower is better), both mechanisms, over group size, schedule, ``eta0`` and iterate averaging. Each
repeat draws its own noise and order of users; four splits take turns.

The best score of hundreds of noisy settings is biased upwards. So the best setting and the defaults are compared again
on new repeats, which were not used for the choice.

Run with ``python benchmarks/table_sgd.py``; ``--quick`` is a smoke run. Tables are written to ``benchmarks/results``.
"""

import argparse
import itertools
import time

import numpy as np
from _data import make_ready, results_folder, write_table
from _prepare import WINE_BOUND, cached_split
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import LDPSGDClassifier, LDPSGDRegressor

SEED = 20220503
N_SPLITS = 4
EPSILONS = (0.4, 1.0, 3.0)
MECHANISMS = ("sphere", "gaussian")
GROUPS = ("auto", 100, 1000, 3000)
RATES = [("optimal", 0.2), ("optimal", 0.4), ("optimal", 1.0), ("optimal", 3.0), ("constant", 0.1), ("constant", 0.5),
         ("constant", 2.0), ("invscaling", 0.5), ("invscaling", 2.0)]
WINE_RATES = [*RATES, ("optimal", 0.3)]  # regression needs smaller steps than classification
CONFIRM_REPEATS = {"adult": 25, "wine": 100}
DEFAULT_ETA0 = {"adult": LDPSGDClassifier().eta0, "wine": LDPSGDRegressor().eta0}


def fit_once(data, mechanism, epsilon, group, rate, repeat, stage):
    """Return the scores of the last model and of the mean over the rounds, from one run."""
    X_train, X_test, y_train, y_test = cached_split(data, repeat % N_SPLITS)
    place = MECHANISMS.index(mechanism), GROUPS.index(group), WINE_RATES.index(rate)
    key = [SEED, stage, repeat, int(1000 * epsilon), *place]
    options = {"epsilon": epsilon, "mechanism": mechanism, "group_size": group, "learning_rate": rate[0],
               "eta0": rate[1], "average": True, "random_state": np.random.default_rng(key)}
    if data == "adult":
        model = LDPSGDClassifier(classes=[-1, 1], fit_intercept=False, **options)
    else:
        model = LDPSGDRegressor(bounds_y=(-WINE_BOUND, WINE_BOUND), **options)
    model.fit(X_train, y_train)
    last = model.protocol_.natural(model.server_.theta)
    return [score(data, X_test, y_test, *result) for result in (last, model.server_.result())]


def score(data, X, y, coef, intercept):
    """Return the AUC for Adult, the RMSE for Wine."""
    prediction = X @ coef + intercept
    return roc_auc_score(y, prediction) if data == "adult" else np.sqrt(np.mean((prediction - y) ** 2))


def rows_of(data, mechanism, epsilon, group, rate, scores):
    """Return two rows of the table: the last model, and the mean over the rounds."""
    for average, values in zip((False, True), np.transpose(scores)):
        yield {"data": data, "mechanism": mechanism, "epsilon": epsilon, "group_size": group, "learning_rate": rate[0],
               "eta0": rate[1], "average": average, "repeats": len(values), "score": values.mean(),
               "error": values.std(ddof=1) / np.sqrt(len(values))}


def is_default(row):
    """Whether a row has the default settings."""
    return (row["group_size"] == "auto" and row["learning_rate"] == "optimal" and not row["average"]
            and row["eta0"] == DEFAULT_ETA0[row["data"]])


def run(pool, cells, repeats, stage, bar):
    """Return all rows of several settings."""
    tasks = (delayed(fit_once)(*cell, repeat, stage) for cell in cells for repeat in range(repeats))
    results = pool(tasks)
    for cell in cells:
        scores = []
        for _ in range(repeats):
            scores.append(next(results))
            bar.update()
        yield from rows_of(*cell, scores)


def best_of(rows, data):
    """Return the row with the best score."""
    return (max if data == "adult" else min)(rows, key=lambda row: row["score"])


def describe(row):
    """Return the settings of a row as text."""
    average = ", averaged" if row["average"] else ""
    return f"{row['group_size']}, {row['learning_rate']} {row['eta0']:g}{average}"


def print_cells(rows, data):
    """Print scores over group sizes and rates."""
    for mechanism, epsilon in itertools.product(MECHANISMS, EPSILONS):
        block = [row for row in rows if (row["mechanism"], row["epsilon"]) == (mechanism, epsilon)]
        if block:
            groups = [group for group in GROUPS if any(row["group_size"] == group for row in block)]
            lines = {}
            for row in block:
                name = f"{row['learning_rate']} {row['eta0']:g}" + (", averaged" if row["average"] else "")
                lines.setdefault(name, {})[row["group_size"]] = f"{row['score']:.3f}"
            print(f"{data}, {mechanism}, epsilon {epsilon:g}: mean {'AUC' if data == 'adult' else 'RMSE'} of "
                  f"{block[0]['repeats']} repeats (largest standard error "
                  f"{max(row['error'] for row in block):.3f}), columns are group sizes")
            print_table(["rate", *map(str, groups)], [[name, *line.values()] for name, line in lines.items()])


def confirm(pool, rows, data, repeats, bar):
    """Compare the defaults with the best setting, on new repeats."""
    table = []
    for mechanism, epsilon in dict.fromkeys((row["mechanism"], row["epsilon"]) for row in rows):
        block = [row for row in rows if (row["mechanism"], row["epsilon"]) == (mechanism, epsilon)]
        best, default = best_of(block, data), next(row for row in block if is_default(row))
        fresh = []
        for row in (best, default):
            cell = (data, mechanism, epsilon, row["group_size"], (row["learning_rate"], row["eta0"]))
            fresh.append(next(again for again in run(pool, [cell], repeats, 1, bar)
                              if again["average"] == row["average"]))
        sign = 1 if data == "adult" else -1
        table.append({"data": data, "mechanism": mechanism, "epsilon": epsilon, "best_cell": describe(best),
                      "best_when_chosen": best["score"], "best": fresh[0]["score"], "default": fresh[1]["score"],
                      "loss": sign * (fresh[0]["score"] - fresh[1]["score"]),
                      "loss_error": np.hypot(fresh[0]["error"], fresh[1]["error"]), "repeats": repeats})
    return table


def table_of(data, pool, quick, repeats):
    """Run the grid and the confirmation of one data set, print and write both tables."""
    grid, again = (EPSILONS, GROUPS, WINE_RATES if data == "wine" else RATES), CONFIRM_REPEATS[data]
    if quick:
        default = ("optimal", DEFAULT_ETA0[data])
        grid, again = ((3.0,), ("auto", 1000), [default, ("constant", 0.1)]), 4
    cells = list(itertools.product([data], MECHANISMS, *grid))
    with tqdm(total=len(cells) * repeats, desc=data, unit="fit", mininterval=5) as bar:
        rows = list(run(pool, cells, repeats, 0, bar))
    write_table(rows, results_folder(quick) / f"table_sgd_{data}.csv")
    print_cells(rows, data)
    with tqdm(total=len(MECHANISMS) * len(grid[0]) * 2 * again, desc="again", unit="fit", mininterval=5) as bar:
        table = confirm(pool, rows, data, again, bar)
    write_table(table, results_folder(quick) / f"table_sgd_{data}_defaults.csv")
    print(f"\n{data}: the defaults (auto, optimal, eta0 {DEFAULT_ETA0[data]:g}, last model) against the best cell, "
          f"{again} fresh repeats; loss is positive where the best cell is better")
    print_table(["mechanism", "epsilon", "best cell", "when chosen", "fresh", "defaults", "loss", "+-"],
                [[row["mechanism"], f"{row['epsilon']:g}", row["best_cell"],
                  *(f"{row[name]:.3f}" for name in ("best_when_chosen", "best", "default", "loss", "loss_error"))]
                 for row in table])


def main():
    """Run the data sets in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 repeats of a small grid")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no number")
    parser.add_argument("--repeats", type=int, default=8, help="repeats of each cell (default 8)")
    parser.add_argument("--data", choices=list(DEFAULT_ETA0), help="one data set only")
    arguments = parser.parse_args()
    repeats = 2 if arguments.quick else arguments.repeats
    print_header("Group sizes and learning rates of private stochastic gradients", "scikit-learn", "joblib",
                 seed=SEED)
    names = [arguments.data] if arguments.data else list(DEFAULT_ETA0)
    make_ready(*names, quick=arguments.quick)
    print(f"{arguments.jobs} processes; {repeats} repeats of each cell\n")
    start = time.perf_counter()
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1), \
            Parallel(n_jobs=arguments.jobs, return_as="generator") as pool:
        for data in names:
            table_of(data, pool, arguments.quick, repeats)
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
