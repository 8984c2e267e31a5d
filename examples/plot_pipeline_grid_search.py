"""
Choosing a budget with scikit-learn's tools
===========================================

Private estimators are ordinary scikit-learn estimators. Here a linear regression is part of a Pipeline, it is
cross-validated, and a search goes over its budget epsilon like any other parameter, to see what privacy costs.

Such a search needs records, so run it *before* a collection: on simulated data, on public data that resemble the
clients' records, or on the records of volunteers. Every client of the real collection sends one report, under one
budget. Here every fit asks everybody again, and a ledger adds up what that would have cost.
"""

import warnings

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skldp import BoundedScaler, LDPBayesLinearRegression, PrivacyUtilityDisplay
from skldp.exceptions import FewReportsWarning
from skldp.privacy import Ledger

# %%
# A simulated pilot study: age, working hours and sleep of fifty thousand people, and a score between 0 and 10 of how
# well they feel.

rng = np.random.default_rng(0)
lowest, highest = [18, 0, 3], [90, 60, 11]
X = rng.uniform(lowest, highest, size=(50_000, 3))
y = np.clip(6 - 0.03 * (X[:, 0] - 54) - 0.04 * (X[:, 1] - 30) + 0.5 * (X[:, 2] - 7) + rng.normal(size=50_000), 0, 10)

# %%
# A scaler that learns from the data, such as ``StandardScaler``, would publish its means and variances without any
# noise. ``BoundedScaler`` uses public bounds instead, and maps every record into the ball that the regression needs.
# The Gaussian approximation of the posterior takes milliseconds, which suits a search.

model = make_pipeline(
    BoundedScaler(bounds=(lowest, highest)),
    LDPBayesLinearRegression(epsilon=1.0, bounds_y=(0, 10), inference="laplace", random_state=0),
)
with Ledger() as spent:
    scores = cross_val_score(model, X, y, cv=5)
reference = cross_val_score(LinearRegression(), X, y, cv=5).mean()
print(f"R^2 at epsilon = 1: {scores.mean():.3f} over five folds, {scores.min():.3f} to {scores.max():.3f}; "
      f"{reference:.3f} without privacy.")
print(f"A row is in the training part of four folds: the score has cost it epsilon = {spent.largest:g}.\n")

# %%
# Now over budgets, and over ways to randomise a report: the default, a sphere or an axis with delta = 0, the sphere at
# every budget, and Gaussian noise with delta = 1e-5. At the smallest budgets the reports say little about the
# coefficients. A fit warns of that, and here the table shows it.

warnings.simplefilter("ignore", FewReportsWarning)
grid = {
    "ldpbayeslinearregression__epsilon": [0.5, 1.0, 2.0, 4.0, 8.0],
    "ldpbayeslinearregression__mechanism": ["auto", "sphere", "gaussian"],
}
with Ledger() as spent:
    search = GridSearchCV(model, grid, cv=5).fit(X, y)
found = search.cv_results_
print("epsilon   mechanism   R^2")
for params, score in sorted(zip(found["params"], found["mean_test_score"]), key=lambda row: list(row[0].values())):
    epsilon, mechanism = params.values()
    print(f"{epsilon:7g}   {mechanism:9}   {score:.3f}")

# %%
# ``epsilon_`` of the best estimator is the cost of its own fit, without the other fifty. The ledger counts all of them:
# if these were the clients' own records, the search would leave them with hardly any privacy.

print(f"\nepsilon of the best estimator: {search.best_estimator_[-1].epsilon_:g}")
print(spent.summary())

# %%
# A larger budget always gives a better score, so the "best" epsilon of a search is the largest. The useful question is:
# which is the smallest budget that is good enough?

enough = 0.95 * reference
good = [params["ldpbayeslinearregression__epsilon"]
        for params, score in zip(found["params"], found["mean_test_score"]) if score >= enough]
print(f"\nWith {len(X):,} people, epsilon = {min(good):g} is the smallest of these that keeps 95 % of the score."
      if good else f"\nWith {len(X):,} people, none of these budgets keeps 95 % of the score without privacy.")

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``). The noise of a fold is drawn once for each
# budget, so the curves are not smooth; the bars are standard errors over the folds.

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    PrivacyUtilityDisplay.from_estimator(search, reference=reference, score_name=r"cross-validated $R^2$")
    plt.show()
