"""
Private and calibrated probabilities
====================================

A classifier from one noisy report of each client, in three rounds of different people. With an intercept its
probabilities are calibrated, for any distribution of the features: of the records with a probability of 0.7, about
seven in ten are positive. """

import numpy as np
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

from skldp import LDPBayesLogisticRegression, PosteriorDisplay

# %%
# What the clients hold: five features and a yes or no. The last ten thousand records are kept for testing.

rng = np.random.default_rng(0)
truth = np.array([6.0, -4.0, 2.0, 0.0, 0.0])
X = rng.normal(scale=0.25, size=(210_000, 5))
odds = X @ truth - 1.0
y = np.where(rng.random(210_000) < 1 / (1 + np.exp(-odds)), "yes", "no")
train, test = slice(0, 200_000), slice(200_000, None)

# %%
# The labels are public, as is the bound on the norm of a record; the second label is the positive one.

model = LDPBayesLogisticRegression(epsilon=2.0, classes=["no", "yes"], data_norm=1.0, random_state=0)
model.fit(X[train], y[train])
print(f"{model.n_reports_:,} reports at epsilon = {model.epsilon_:g}, delta = {model.delta_:g}.")
for name, mean, std in zip("abcde", model.coef_[0], model.coef_std_[0]):
    print(f"  coefficient {name}: {mean:6.2f} +- {std:.2f}")
print(f"  intercept:     {model.intercept_[0]:6.2f}\n")

# %%
# Are the probabilities right? The area under the ROC curve depends only on the order of the records. The Brier score is
# the mean squared distance between a probability and the outcome, and penalises overconfidence. The table is the most
# direct test: sort the new records by their probability, and count how many of each group said yes.

probability = model.predict_proba(X[test])[:, 1]
best = 1 / (1 + np.exp(-odds[test]))
answers = y[test] == "yes"
print(f"Area under the ROC curve: {roc_auc_score(answers, probability):.3f} "
      f"(of the true probabilities: {roc_auc_score(answers, best):.3f})")
print(f"Brier score: {brier_score_loss(answers, probability):.3f} "
      f"(of the true probabilities: {brier_score_loss(answers, best):.3f})\n")
observed, predicted = calibration_curve(answers, probability, n_bins=10, strategy="quantile")
print("predicted   observed")
for pair in zip(predicted, observed):
    print("{:9.2f}  {:9.2f}".format(*pair))

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``): the coefficients with their intervals, and
# the counts from above. Calibrated probabilities lie on the diagonal.

try:
    import matplotlib.pyplot as plt
    from sklearn.calibration import CalibrationDisplay
except ImportError:
    pass
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained")
    PosteriorDisplay.from_estimator(model, "coef", truth=truth, ax=left)
    left.set_yticks(range(5), "abcde")
    CalibrationDisplay.from_predictions(answers, probability, n_bins=10, strategy="quantile", ax=right,
                                        name="posterior average")
    right.set(xlabel="predicted probability", ylabel="share that said yes")
    plt.show()
