"""
Private probabilities that mean what they say
=============================================

A classifier from one noisy report of each client. Its probabilities are averaged over the posterior, so that they know
how uncertain the coefficients are; the intercept makes them calibrated.
"""

import numpy as np
from sklearn.metrics import roc_auc_score

from skldp import LDPBayesLogisticRegression

# What the clients hold: five features and a yes or no.
rng = np.random.default_rng(0)
X = rng.normal(scale=0.25, size=(60_000, 5))
odds = X @ [6.0, -4.0, 2.0, 0.0, 0.0] - 1.0
y = np.where(rng.random(60_000) < 1 / (1 + np.exp(-odds)), "yes", "no")
train, test = slice(0, 50_000), slice(50_000, None)

# The labels are public, as is the bound on the norm of a record; the second label is the positive one.
model = LDPBayesLogisticRegression(epsilon=2.0, classes=["no", "yes"], data_norm=1.0, random_state=0)
model.fit(X[train], y[train])
print(f"{model.n_reports_:,} reports at epsilon = {model.epsilon_:g}, delta = {model.delta_:g}.")
for name, mean, std in zip("abcde", model.coef_[0], model.coef_std_[0]):
    print(f"  coefficient {name}: {mean:6.2f} +- {std:.2f}")
print(f"  intercept:     {model.intercept_[0]:6.2f}\n")

probability = model.predict_proba(X[test])[:, 1]
print(f"Area under the ROC curve on new records: {roc_auc_score(y[test], probability):.3f} "
      f"(of the true odds: {roc_auc_score(y[test], odds[test]):.3f})\n")
print("predicted   observed   records")
for low in np.arange(0, 1, 0.2):
    inside = (probability >= low) & (probability < low + 0.2)
    if inside.any():
        print(f"{probability[inside].mean():9.2f}  {np.mean(y[test][inside] == 'yes'):9.2f}  {inside.sum():8}")
