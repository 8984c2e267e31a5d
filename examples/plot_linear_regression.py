"""
A private regression with calibrated error bars
===============================================

Two hundred thousand people know what they eat and how they feel. Each sends one noisy report of the second moments of
their record, and we estimate a regression line. Its error bars include the noise. It is an ordinary scikit-learn
estimator: it works in a Pipeline, and a search can go over its budget like any parameter. """

import numpy as np
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from skldp import BoundedScaler, LDPBayesLinearRegression

# What the clients hold: two features with public ranges, and a response between 0 and 10.
rng = np.random.default_rng(0)
X = rng.uniform([0, 20], [100, 60], size=(200_000, 2))
y = np.clip(5 + 0.03 * (X[:, 0] - 50) - 0.05 * (X[:, 1] - 40) + rng.normal(scale=1.0, size=200_000), 0, 10)

# The scaler learns nothing from the data: it maps public bounds into the unit ball.
scaler = BoundedScaler(bounds=([0, 20], [100, 60]))
line = LDPBayesLinearRegression(epsilon=1.0, bounds_y=(0, 10), random_state=0)
model = make_pipeline(scaler, line).fit(X, y)

print(f"Each of {line.n_reports_:,} clients sent {line.protocol_.width} small integers at epsilon = {line.epsilon_:g}, "
      f"delta = {line.delta_:g}.\n")
print(line.posterior_.summary(names=["coef", "intercept", "sigma"]))

# The predictive standard deviation includes the uncertainty of the line and the noise around it.
new = np.array([[10.0, 25.0], [50.0, 40.0], [90.0, 55.0]])
mean, std = line.predict(scaler.transform(new), return_std=True)
print("\nPredictions (the truth has a standard deviation of 1 around the line):")
for record, value, spread in zip(new, mean, std):
    truth = 5 + 0.03 * (record[0] - 50) - 0.05 * (record[1] - 40)
    print(f"  {record}: {value:.2f} +- {spread:.2f}, truth {truth:.2f}")

# How does the score depend on the budget? Here with the quick Gaussian approximation of the posterior.
print("\nCross-validated R^2 by budget (0.52 without privacy):")
for epsilon in (0.25, 1.0, 4.0):
    quick = LDPBayesLinearRegression(epsilon=epsilon, bounds_y=(0, 10), inference="laplace", random_state=0)
    scores = cross_val_score(make_pipeline(scaler, quick), X, y, cv=3)
    print(f"  epsilon {epsilon:g}: {scores.mean():.3f}")
