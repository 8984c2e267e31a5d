"""Log-loss, AUC, calibration and coverage of private logistic regressions in one and in three rounds, on real columns.

Every method has the same rows and the same budget, and asks each client once: moments in one round, three rounds, and
private gradient descent (sphere, gradients clipped to 0.5, the stronger setting of the baseline). "No privacy" is
maximum likelihood. Coverage is that of the 90 % intervals for the maximum likelihood estimate on the same rows: of all
coefficients and the intercept, of the worst of them, and of the intercept.

Groups of clients, the errors of rounds, the reach of their models and the rule of prediction were chosen on the first
four sets, with looks at the next two. ``more_children`` and ``card_default``, with 3 % of defaults, were not used.

Run with ``python benchmarks/fig9_rounds.py``; ``--sets``, ``--methods``, ``--epsilon`` and ``--repeats`` choose
cells, ``--quick`` is a smoke run on simulated rows. The table is written to ``benchmarks/results``; other rows of it
are kept.
"""

import argparse
import time
import warnings

import numpy as np
from _data import read_table, results_folder, write_table
from _real_tables import Problem, fit_without_privacy, problem
from _timing import print_header, print_table
from scipy.special import expit
from sklearn.metrics import log_loss, roc_auc_score

from skldp import LDPBayesLogisticRegression, LDPSGDClassifier

SEED = 20261118
SETS = ("flights_late", "adult_components", "adult", "crashes", "vote_2016", "mothers_work", "more_children",
        "card_default")
METHODS = ("three rounds", "one round", "gradients", "no privacy")
SCORES = ("log_loss", "auc", "calibration_error", "coverage", "worst", "intercept", "seconds")


def simulated():
    """Return skewed rows for a smoke run."""
    rng = np.random.default_rng(SEED)
    X = np.minimum(rng.exponential(scale=0.15, size=(6000, 2)), 0.7)
    y = rng.random(len(X)) < expit(X @ [5.0, -3.0] - 1)
    return Problem(X, y, X, y, ("a", "b"), *fit_without_privacy(X, y, True))


def fitted(method, epsilon, seed, rows):
    """Return the probabilities of the test rows by a method, and its model; None without privacy."""
    public = {"epsilon": epsilon, "classes": [False, True], "random_state": seed}
    if method == "no privacy":
        return expit(rows.X_test @ rows.target + rows.intercept), None
    if method == "gradients":
        model = LDPSGDClassifier(mechanism="sphere", clip_norm=0.5, **public)
    else:
        model = LDPBayesLogisticRegression(n_rounds=1 if method == "one round" else "auto", **public)
    return model.fit(rows.X, rows.y).predict_proba(rows.X_test)[:, 1], model


def scores(method, epsilon, seed, rows):
    """Return the scores of one fit, and whether its intervals cover each parameter of the fit without privacy."""
    start = time.process_time()
    probability, model = fitted(method, epsilon, seed, rows)
    seconds = time.process_time() - start
    found = [log_loss(rows.y_test, probability), roc_auc_score(rows.y_test, probability),
             calibration_error(probability, rows.y_test), seconds]
    covered = np.full(len(rows.target) + 1, np.nan)
    if isinstance(model, LDPBayesLogisticRegression):
        interval = model.posterior_.interval(0.9)
        ends = np.vstack([interval["intercept"], interval["coef"]])
        truth = np.append(rows.intercept, rows.target)
        covered = ((ends[:, 0] <= truth) & (truth <= ends[:, 1])).astype(float)
    return found, covered


def calibration_error(probability, y):
    """Return the mean distance of probability and share over ten bins of equal width, weighted by their counts."""
    bins = np.minimum((10 * probability).astype(int), 9)
    return sum(abs(np.sum(probability[bins == b] - y[bins == b])) for b in range(10)) / len(y)


def cell(name, method, epsilon, repeats, rows):
    """Return the row of the table for one set, method and epsilon."""
    results = [scores(method, epsilon, SEED + repeat, rows) for repeat in range(repeats)]
    found, covered = (np.array(values) for values in zip(*results))
    mean, share = found.mean(axis=0), covered.mean(axis=0)
    error = found[:, 0].std(ddof=1) / np.sqrt(repeats) if repeats > 1 else np.nan
    values = [*mean[:3], share.mean(), share.min(), share[0], mean[3]]
    return {"set": name, "method": method, "epsilon": epsilon, "repeats": repeats, **dict(zip(SCORES, values)),
            "log_loss_error": error}


def main():
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one simulated set, one epsilon, two repeats")
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--epsilon", nargs="+", type=float, default=(0.3, 1.0, 3.0, 10.0))
    parser.add_argument("--methods", nargs="+", default=METHODS, choices=METHODS)
    parser.add_argument("--repeats", type=int, default=20)
    arguments = parser.parse_args()
    print_header("Logistic regression in rounds", "emcee", "scikit-learn", seed=SEED)
    path = results_folder(arguments.quick) / "fig9_rounds.csv"
    sets, epsilons, repeats = arguments.sets, arguments.epsilon, arguments.repeats
    if arguments.quick:
        sets, epsilons, repeats = ("simulated",), (4.0,), 2
    known = read_table(path) if path.exists() else []
    table = {(row["set"], row["method"], float(row["epsilon"])): row for row in known}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few reports and long test rows, which the table shows
        for name in sets:
            rows, lines = simulated() if arguments.quick else problem(name), []
            for epsilon in epsilons:
                for method in arguments.methods:
                    row = cell(name, method, epsilon, 1 if method == "no privacy" else repeats, rows)
                    table[name, method, float(epsilon)] = row
                    lines.append([f"{epsilon:g}", method, *(f"{row[score]:.4f}" for score in SCORES)])
                write_table(list(table.values()), path)  # so that an interrupt keeps the finished rows
            print(f"{name}: {len(rows.X)} clients, {rows.X.shape[1]} columns, {repeats} repeats")
            print_table(["epsilon", "method", *SCORES], lines)


if __name__ == "__main__":
    main()
