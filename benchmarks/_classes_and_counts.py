"""Blocks of ``table_responses.py`` for regressions of several classes and of counts, in rounds."""

import time
import warnings
from functools import lru_cache

import numpy as np
from _data import results_folder, write_table
from _prepare import RADIUS_QUANTILE, clip_rows
from _real_tables import COMPARABLE, DIAMONDS, SEED, frame_of, resampled
from _timing import print_table
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.metrics import d2_tweedie_score, log_loss

from skldp import LDPBayesLogisticRegression, LDPBayesPoissonRegression, LDPSGDClassifier

LEVEL = 0.9
DIAMOND_NUMBERS = ["carat", "depth", "table", "price", "x", "y", "z"]
VOTE = ["age", "economic.cond.national", "economic.cond.household", "Blair", "Hague", "Kennedy", "Europe",
        "political.knowledge"]
DOCTOR = ["lc", "idp", "lpi", "fmde", "physlim", "ndisease", "linc", "educdec", "age", "child"]
GERMAN = ["age", "outwork", "female", "married", "kids", "hhninc", "educ", "self"]
LARGEST_COUNT = 20


def diamonds(columns):
    """Return columns of the diamonds with ordered colour and clarity, and the cut."""
    frame = DIAMONDS()
    colour = frame["color"].astype(str).map({value: place for place, value in enumerate("DEFGHIJ")})
    clarity = frame["clarity"].astype(str).map(
        {value: place for place, value in enumerate(["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"])})
    X = frame.assign(color=colour, clarity=clarity)[columns].to_numpy(dtype=float)
    return X, frame["cut"].astype(str).to_numpy()


def digits():
    """Return ten components of the images of digits, and the digits."""
    X, y = load_digits(return_X_y=True)
    return PCA(10, random_state=0).fit_transform(X), y.astype(str)


def votes():
    """Return opinions, and the party that was voted for."""
    frame = frame_of("carData", "BEPS").dropna()
    return frame[VOTE].to_numpy(dtype=float), frame["vote"].astype(str).to_numpy()


def visits():
    """Return columns of the health insurance experiment, and counts of visits to a doctor."""
    frame = frame_of("Ecdat", "DoctorContacts")[[*DOCTOR, "mdu"]].astype(float).dropna()
    return frame[DOCTOR].to_numpy(), frame["mdu"].to_numpy()


def german_visits():
    """Return columns of the German health survey, and counts of visits to a doctor in three months."""
    frame = frame_of("COUNT", "rwm5yr")[[*GERMAN, "docvis"]].astype(float).dropna()
    return frame[GERMAN].to_numpy(), frame["docvis"].to_numpy()


# The number of rows is about that of the table, 50,000 for the cut by four columns, or COMPARABLE.
CLASSES = {"cut": (lambda: diamonds([*DIAMOND_NUMBERS, "color", "clarity"]), 43_000),
           "cut_4": (lambda: diamonds(["carat", "depth", "table", "price"]), 50_000),
           "digits": (digits, COMPARABLE), "votes": (votes, COMPARABLE)}
COUNTS = {"visits": (visits, COMPARABLE), "german_visits": (german_visits, COMPARABLE)}


@lru_cache(maxsize=2)
def split(name):
    """Return prepared rows: training and test records, training and test responses."""
    load, n_rows = {**CLASSES, **COUNTS}[name]
    X, y = load()
    rng = np.random.default_rng([SEED, len(X)])
    order = rng.permutation(len(X))
    train, test = np.split(order, [min(len(X) - 1000, 4 * len(X) // 5) if n_rows < len(X) else 4 * len(X) // 5])
    mean, std = X[train].mean(axis=0), X[train].std(axis=0)
    X = (X - mean) / std
    X = X / np.quantile(np.linalg.norm(X[train], axis=1), RADIUS_QUANTILE)
    rows = train[resampled(len(train), n_rows, rng)]
    return clip_rows(X[rows]), X[test], y[rows], y[test]


def joint(classes, epsilon, seed):
    """Return the model of all classes."""
    return LDPBayesLogisticRegression(epsilon=epsilon, classes=classes, random_state=seed)


def gradients(classes, epsilon, seed):
    """Return the private gradient descent of all classes."""
    return LDPSGDClassifier(epsilon=epsilon, classes=classes, mechanism="sphere", clip_norm=0.5, random_state=seed)


def probabilities(way, classes, epsilon, seed, X, y, X_test):
    """Return the probabilities of test rows by a way of asking for the class."""
    if way == "one-vs-rest":
        found = [joint([False, True], epsilon / len(classes), seed + i).fit(X, y == label).predict_proba(X_test)[:, 1]
                 for i, label in enumerate(classes)]
        return np.transpose(found) / np.sum(found, axis=0)[:, None]
    return WAYS[way](classes, epsilon, seed).fit(X, y).predict_proba(X_test)


WAYS = {"joint": joint, "one-vs-rest": None, "gradients": gradients}


def classes(arguments):
    """Run the block of classes; return its rows."""
    rows = []
    for name in ["votes"] if arguments.quick else CLASSES:
        X, X_test, y, y_test = split(name)
        labels, shares = np.unique(y, return_counts=True)
        exact = LogisticRegression(C=np.inf, max_iter=2000).fit(X, y).predict_proba(X_test)
        best = log_loss(y_test, exact, labels=labels)
        base = log_loss(y_test, np.tile(shares / len(y), (len(y_test), 1)), labels=labels)
        for epsilon in arguments.epsilon:
            for way in WAYS:
                scores = []
                for seed in range(arguments.seeds):
                    start = time.process_time()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        p = probabilities(way, labels.tolist(), epsilon, SEED + seed, X, y, X_test)
                    scores.append([np.mean(labels[p.argmax(axis=1)] == y_test), log_loss(y_test, p, labels=labels),
                                   time.process_time() - start])
                accuracy, loss, seconds = np.mean(scores, axis=0)
                rows.append({"set": name, "classes": len(labels), "columns": X.shape[1], "rows": len(X), "way": way,
                             "epsilon": epsilon, "seeds": arguments.seeds, "accuracy": accuracy, "log_loss": loss,
                             "gain": (base - loss) / (base - best), "seconds": seconds,
                             "accuracy_no_privacy": np.mean(labels[exact.argmax(axis=1)] == y_test),
                             "log_loss_no_privacy": best, "log_loss_shares": base})
                write_table(rows, results_folder(arguments.quick) / "table_responses_classes.csv")
    print(f"Classes, {arguments.seeds} fits each; gain: share of the log-loss that columns save without privacy")
    show(rows, ["set", "columns", "epsilon", "way", "accuracy", "log_loss", "gain", "accuracy_no_privacy",
                "log_loss_no_privacy", "seconds"])
    return rows


def counts(arguments):
    """Run the block of counts; return its rows."""
    rows = []
    for name in COUNTS:
        X, X_test, y, y_test = split(name)
        clipped = np.minimum(y, LARGEST_COUNT)
        exact = PoissonRegressor(alpha=0, tol=1e-8, max_iter=1000).fit(X, clipped)
        target = np.append(exact.intercept_, exact.coef_)
        best = d2_tweedie_score(y_test, exact.predict(X_test), power=1)
        for epsilon in arguments.epsilon:
            scores, inside = [], []
            for seed in range(arguments.seeds):
                start = time.process_time()
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    model = LDPBayesPoissonRegression(epsilon=epsilon, bounds_y=(0, LARGEST_COUNT),
                                                      random_state=SEED + seed).fit(X, y)
                    scores.append([model.score(X_test, y_test), time.process_time() - start])
                interval = model.posterior_.interval(LEVEL)
                ends = np.vstack([interval["intercept"], interval["coef"]])
                inside.append((ends[:, 0] <= target) & (target <= ends[:, 1]))
            share = np.mean(inside, axis=0)
            rows.append({"set": name, "columns": X.shape[1], "rows": len(X), "epsilon": epsilon,
                         "seeds": arguments.seeds, "d2": np.mean(scores, axis=0)[0], "d2_no_privacy": best,
                         "coverage": share.mean(), "worst": share.min(), "intercept": share[0],
                         "seconds": np.mean(scores, axis=0)[1]})
            write_table(rows, results_folder(arguments.quick) / "table_responses_counts.csv")
    print(f"Counts, {arguments.seeds} fits each: 90 % intervals against PoissonRegressor(alpha=0)")
    show(rows, ["set", "columns", "epsilon", "d2", "d2_no_privacy", "coverage", "worst", "intercept", "seconds"])
    return rows


def show(rows, names):
    """Print columns of a table."""
    print_table(names, [[f"{row[name]:.3f}" if isinstance(row[name], float) else str(row[name]) for name in names]
                        for row in rows])
