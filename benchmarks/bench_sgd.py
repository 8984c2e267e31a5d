"""Private stochastic gradient descent: speed, agreement with scikit-learn without noise, and AUC on Adult.

Without noise (``epsilon=inf``) and with each user once, LDPSGDClassifier and LDPSGDRegressor are compared with one
epoch of SGDClassifier and SGDRegressor without a penalty: at a constant rate with the same sum of steps, and at their
default schedules.

Run with ``python benchmarks/bench_sgd.py``; ``--quick`` is a smoke run.
"""

import argparse
import time
import warnings

import numpy as np
from _data import make_ready
from _prepare import WINE_BOUND, adult_split, wine_split
from _timing import print_header, print_table
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier, SGDRegressor
from sklearn.metrics import roc_auc_score
from tqdm import tqdm

from skldp import LDPSGDClassifier, LDPSGDRegressor

SEED = 20220503
N_SPLITS = 5
WANTED = {0.4: 0.75, 0.8: 0.82, 1.6: 0.86}  # AUC of the sphere on Adult


def times(n_users, n_features):
    """Print the seconds of a whole fit, with the operating system's entropy."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(size=(n_users, n_features)) / (1.3 * np.sqrt(n_features))
    label, response = np.where(X[:, 0] > 0, 1, -1), X[:, 0]
    rows = []
    for mechanism in ("gaussian", "sphere"):
        for epsilon in (1.0, 3.0):
            models = (LDPSGDClassifier(epsilon=epsilon, mechanism=mechanism, delta=1e-8, classes=[-1, 1]),
                      LDPSGDRegressor(epsilon=epsilon, mechanism=mechanism, delta=1e-8))
            seconds = []
            for model, y in zip(models, (label, response)):
                start = time.perf_counter()
                model.fit(X, y)
                seconds.append(time.perf_counter() - start)
            rows.append([mechanism, f"{epsilon:g}", f"{models[0].n_rounds_:,}", *(f"{value:.1f}" for value in seconds)])
    print(f"Time of a fit, {n_users:,} users, {n_features} features (limit 20 s for a million and 20)")
    print_table(["mechanism", "epsilon", "rounds", "classifier s", "regressor s"], rows)


def auc(model, X, y):
    """Area under the curve."""
    return roc_auc_score(y, model.decision_function(X))


def rmse(model, X, y):
    """Root mean squared error."""
    return np.sqrt(np.mean((model.predict(X) - y) ** 2))


def without_noise(n_splits):
    """Compare one pass without noise with one epoch of scikit-learn."""
    adult, wine = [], []
    once = {"max_iter": 1, "tol": None, "penalty": None}
    for seed in tqdm(range(n_splits), desc="without noise", unit="split"):
        X, X_test, y, y_test = adult_split(seed)
        ours = LDPSGDClassifier(epsilon=np.inf, classes=[-1, 1], fit_intercept=False, random_state=seed).fit(X, y)
        theirs = {"loss": "log_loss", "fit_intercept": False, "random_state": seed, **once}
        rate = {"learning_rate": "constant", "eta0": sum_of_steps(ours) / len(X)}
        adult.append([auc(model.fit(X, y), X_test, y_test)
                      for model in (ours, SGDClassifier(**theirs, **rate), SGDClassifier(**theirs))])
        X, X_test, y, y_test = wine_split(seed)
        ours = LDPSGDRegressor(epsilon=np.inf, bounds_y=(-WINE_BOUND, WINE_BOUND), random_state=seed).fit(X, y)
        rate = {"learning_rate": "constant", "eta0": sum_of_steps(ours) / len(X)}
        wine.append([rmse(model.fit(X, y), X_test, y_test)
                     for model in (ours, SGDRegressor(random_state=seed, **once, **rate),
                                   SGDRegressor(random_state=seed, **once))])
    print(f"\nWithout noise, one pass, mean of {n_splits} splits (Adult: within 0.01; Wine: within 0.02)")
    print_table(["data", "ours", "scikit-learn, same steps", "scikit-learn, its defaults"],
                [["Adult, AUC", *(f"{value:.4f}" for value in np.mean(adult, axis=0))],
                 ["Wine, RMSE", *(f"{value:.4f}" for value in np.mean(wine, axis=0))]])


def sum_of_steps(model):
    """Return the sum of the step sizes of a fit."""
    server = model.server_
    size = model.n_messages_ // model.n_rounds_
    return sum(server.step_size(number, size) for number in range(1, model.n_rounds_ + 1))


def with_noise(repeats):
    """Print the AUC on Adult at each epsilon, with the defaults and with a smaller clipping norm."""
    splits = [adult_split(seed) for seed in range(min(N_SPLITS, repeats))]
    settings = {"sphere": {"mechanism": "sphere"}, "gaussian": {"mechanism": "gaussian"},
                "sphere, clip_norm=0.5": {"mechanism": "sphere", "clip_norm": 0.5},
                "gaussian, clip_norm=0.5": {"mechanism": "gaussian", "clip_norm": 0.5}}
    rows = []
    for name, options in settings.items():
        row = [name]
        for epsilon in tqdm(WANTED, desc=name, unit="epsilon"):
            scores = []
            for repeat in range(repeats):
                X, X_test, y, y_test = splits[repeat % len(splits)]
                model = LDPSGDClassifier(epsilon=epsilon, classes=[-1, 1], fit_intercept=False,
                                         random_state=SEED + repeat, **options).fit(X, y)
                scores.append(auc(model, X_test, y_test))
            row.append(f"{np.mean(scores):.3f} +- {np.std(scores, ddof=1) / np.sqrt(repeats):.3f}")
        rows.append(row)
    print(f"\nAdult, 8 components, no intercept, fixed defaults: mean AUC of {repeats} repeats, and its standard error")
    print_table(["mechanism", *(f"epsilon {epsilon:g} (sphere at least {least})" for epsilon, least in WANTED.items())],
                rows)


def main():
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a hundredth of the users, one split, two repeats")
    parser.add_argument("--repeats", type=int, default=200, help="repeats on Adult (default 200)")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)  # one epoch on purpose
    print_header("Private stochastic gradients", "scikit-learn", seed=SEED)
    make_ready("adult", "wine", quick=arguments.quick)
    times(10**4 if arguments.quick else 10**6, 20)
    without_noise(1 if arguments.quick else N_SPLITS)
    with_noise(2 if arguments.quick else arguments.repeats)


if __name__ == "__main__":
    main()
