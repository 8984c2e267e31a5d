"""
Several classes, and counts
===========================

How people travel to work, and how often they see a doctor: a choice among three, and a count, each from one noisy
report of each person. The features are skewed, as distances and ages are, so people are asked in three rounds, each
person once: one round is right for normal features only. """

import numpy as np
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from skldp import LDPBayesLogisticRegression, LDPBayesPoissonRegression

# %%
# What the people hold: the distance to work in kilometres, most of which are short, and the age. A public map brings
# both into the unit ball: 40 km and more are the longest distance.

rng = np.random.default_rng(0)
n = 80_000
distance = np.minimum(rng.gamma(1.5, 7.0, size=n), 40.0)
age = rng.triangular(18, 25, 75, size=n)
X = np.column_stack([distance / 40, (age - 45) / 30]) / np.sqrt(2)

# %%
# What they answer. Few walk or cycle far, and older people drive; visits grow with age.

scores = np.column_stack([1.0 - 0.12 * distance, -0.5 + 0.02 * (age - 45), -1.0 + 0.02 * distance])
choices = np.array(["bike", "car", "train"])
travel = choices[(scores + rng.gumbel(size=scores.shape)).argmax(axis=1)]
visits = rng.poisson(np.exp(0.9 + 0.03 * (age - 45) - 0.01 * distance))

# %%
# Two surveys of different people, or one of people who answer both at twice the budget. The labels are public, and so
# is the largest number of visits that a report tells apart; larger ones count as 12, which is part of the model.

classifier = LDPBayesLogisticRegression(epsilon=4.0, classes=choices, random_state=0).fit(X, travel)
counts = LDPBayesPoissonRegression(epsilon=4.0, bounds_y=(0, 12), random_state=0).fit(X, visits)
plain, plain_counts = LogisticRegression(C=1e6).fit(X, travel), PoissonRegressor(alpha=0).fit(X, visits)

print("coefficients of a score     distance            age   (without privacy)")
for name, mean, std, other in zip(classifier.classes_, classifier.coef_, classifier.coef_std_, plain.coef_):
    private = "".join(f"{m:10.2f} +- {s:.2f}" for m, s in zip(mean, std))
    print(f"  {name:10s}{private}   ({other[0]:.2f}, {other[1]:.2f})")
print("of the log-rate of visits")
private = "".join(f"{m:10.2f} +- {s:.2f}" for m, s in zip(counts.coef_, counts.coef_std_))
print(" " * 12 + private + "   ({:.2f}, {:.2f})\n".format(*plain_counts.coef_))
print(f"Accuracy: {classifier.score(X, travel):.3f} (without privacy: {plain.score(X, travel):.3f})")
print(f"Deviance of visits that is explained: {counts.score(X, visits):.3f} "
      f"(without privacy: {plain_counts.score(X, visits):.3f})")

# %%
# The rounds are kept. The first one has half of the people; the model of the last one is close to the result.

for number, (protocol, aggregate) in enumerate(classifier.rounds_, 1):
    print(f"Round {number}: {aggregate.n_reports:,} reports of {protocol.width} integers.")

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``): probabilities by distance and visits by age,
# from the reports and, dashed, without privacy. The band has 90 % of the posterior.

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    by_distance = np.column_stack([np.linspace(0, 40, 100) / 40, np.zeros(100)]) / np.sqrt(2)
    ages = np.linspace(18, 75, 100)
    by_age = np.column_stack([np.full(100, 10 / 40), (ages - 45) / 30]) / np.sqrt(2)
    draws = counts.sample_posterior(1000, random_state=0)
    rates = np.exp(by_age @ draws["coef"].T + draws["intercept"])

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    lines = left.plot(np.linspace(0, 40, 100), classifier.predict_proba(by_distance))
    for line, values, name in zip(lines, plain.predict_proba(by_distance).T, choices):
        left.plot(np.linspace(0, 40, 100), values, "--", color=line.get_color(), linewidth=1)
        line.set_label(name)
    left.set(xlabel="distance to work in km, at the age of 45", ylabel="probability", ylim=(0, 1))
    left.legend()
    right.fill_between(ages, *np.quantile(rates, [0.05, 0.95], axis=1), alpha=0.3, label="90 % of the posterior")
    right.plot(ages, counts.predict(by_age), label="from the reports")
    right.plot(ages, plain_counts.predict(by_age), "k--", linewidth=1, label="without privacy")
    right.set(xlabel="age, at 10 km", ylabel="visits in a year", ylim=(0, None))
    right.legend()
    plt.show()
