"""
A value of any shape
====================

Few columns of real data are normal. Here a quarter of the people spend nothing, and the others' expenses are skewed.
A normal distribution is confidently wrong about them, and says so; a density without a family is not.
"""

import warnings

import numpy as np

from skldp import DensityDisplay, LDPDensity, LDPGaussian

# %%
# The clients' records, and the public bounds. Amounts above 1,000 are clipped.

rng = np.random.default_rng(0)
expenses = np.where(rng.random(30_000) < 0.25, 0.0, rng.lognormal(5.0, 0.8, 30_000))[:, None]
truth = np.clip(expenses, 0, 1000)

# %%
# A normal distribution: the warning has a p-value and a remedy.

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    normal = LDPGaussian(epsilon=2.0, bounds=(0, 1000), random_state=0).fit(expenses)
print(f"normal: mean {normal.mean_:.0f} +- {normal.posterior_.std()['mean']:.0f}, truth {truth.mean():.0f}")
print(caught[0].message, "\n")

# %%
# No family: mean, median and the share of people who spend nothing, each with its interval.

model = LDPDensity(epsilon=2.0, bounds=(0, 1000), random_state=0).fit(expenses)
low, high = model.posterior_.interval(0.9)["mean"]
print(f"mean: {low:.0f} to {high:.0f}, truth {truth.mean():.0f}")
_, low, high = model.quantile([0.5, 0.9], level=0.9)
print(f"median: {low[0]:.0f} to {high[0]:.0f}, truth {np.median(truth):.0f}")
print(f"90 % spend at most {low[1]:.0f} to {high[1]:.0f}, truth {np.quantile(truth, 0.9):.0f}")
_, low, high = model.cdf(0.0, level=0.9)
print(f"share of zeros: {low:.2f} to {high:.2f}, truth {np.mean(truth == 0):.2f}")

# %%
# Pictures, if matplotlib is installed (``pip install "skldp[plot]"``).

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="constrained")
    DensityDisplay.from_estimator(model, ax=left)
    spent = truth[(truth > 0) & (truth < 1000)]
    left.hist(spent, bins=60, histtype="step", color="k", weights=np.full(spent.size, 60 / 1000 / len(truth)))
    DensityDisplay.from_estimator(model, cumulative=True, ax=right)
    right.plot(np.sort(truth[:, 0]), np.linspace(0, 1, len(truth)), "k", linewidth=0.8)
    plt.show()
