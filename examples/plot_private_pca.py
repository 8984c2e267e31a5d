"""
Principal components, and a regression on them, from disjoint people
=====================================================================

Twelve readings of a device are nearly combinations of two quantities. ``LDPPCA`` finds their directions from one noisy
report of each person, with intervals, and says how far the directions may be from the true ones. In a pipeline with a
regression, a share of the people reports for the components and the others report for the regression, so that everybody
is asked once.
"""

import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline

from skldp import LDPPCA, LDPBayesLinearRegression, LDPCovariance
from skldp.exceptions import FewReportsWarning

rng = np.random.default_rng(1)
n_people, n_readings = 100_000, 12
directions = rng.normal(size=(2, n_readings))
directions /= np.linalg.norm(directions, axis=1, keepdims=True)
causes = rng.normal(size=(n_people, 2)) * [0.35, 0.25]
X = causes @ directions + 0.05 * rng.normal(size=(n_people, n_readings))
y = causes @ [1.0, -0.8] + 0.2 * rng.normal(size=n_people)
print(f"{np.mean(np.linalg.norm(X, axis=1) < 1):.1%} of the records are within data_norm=1; others are shortened.\n")

# %%
# All people report at epsilon = 2, and the posterior has the mean, the covariance, and the variance along every
# component. The last column is that of the records themselves. All directions after the second one explain equally
# little. The third component is the one among them that the noise happens to favour, so it seems to explain more.

model = LDPPCA(epsilon=2.0, n_components=3, random_state=0).fit(X)
along = model.transform(X).var(axis=0)
low, high = model.posterior_.interval(0.9)["explained_variance"].T
print("component   explained variance   90 % interval   of the records themselves")
for j in range(3):
    print(f"{j + 1:9}   {model.explained_variance_[j]:18.3f}   {low[j]:.3f} to {high[j]:.3f}   "
          f"{along[j]:25.3f}")

# %%
# Directions are more uncertain than variances. With a probability of 95 % the true axis of a component is within the
# first angle of it. The second angle is about the span of all components up to this one. PCA of the records themselves
# is the reference. Of the third direction nothing is known.

reference = PCA(n_components=3).fit(X)
component, span = model.direction_angles(0.95)
actual = np.degrees(np.arccos(np.minimum(np.abs(np.vecdot(model.components_, reference.components_)), 1)))
print("\ncomponent   angle of 95 %   of the span   actual angle")
for j in range(3):
    print(f"{j + 1:9}   {component[j]:13.0f}   {span[j]:11.0f}   {actual[j]:12.0f}")

# %%
# ``LDPCovariance`` has the same reports and the same posterior, with the words of ``sklearn.covariance``.

covariance = LDPCovariance(epsilon=2.0, random_state=0).fit(X)
print(f"\nlog-likelihood of a record: {covariance.score(X):.2f}, and "
      f"{LDPCovariance(epsilon=np.inf, random_state=0).fit(X).score(X):.2f} without noise")
print(f"largest Mahalanobis distance of the first five records: {covariance.mahalanobis(X[:5]).max():.1f}")

# %%
# In a pipeline the regression asks people as well. ``sample_epsilon`` has a budget for every person and step, and a
# budget of 0 means that the person is not asked: 40 % report for the components, the others for the regression.

for_components = rng.random(n_people) < 0.4
pipeline = make_pipeline(LDPPCA(n_components=2, random_state=0), LDPBayesLinearRegression(random_state=0))
pipeline.fit(X, y, ldppca__sample_epsilon=2.0 * for_components,
             ldpbayeslinearregression__sample_epsilon=2.0 * ~for_components)
print("\npeople asked by the two steps:", [step.n_reports_ for step in pipeline])
print(f"R^2 of a regression on two private components: {pipeline.score(X, y):.3f}")

# %%
# The same people, all of them for a regression on the twelve readings, predict about as well here. Two components are
# easier to interpret, and a third question about them would need a short report. With fewer people, or a smaller
# epsilon, the components would be too uncertain to be worth their share: compare both on invented data before a
# collection. The reports say little about single coefficients of twelve readings; the fit would warn of that.

warnings.simplefilter("ignore", FewReportsWarning)
alone = LDPBayesLinearRegression(epsilon=2.0, random_state=0).fit(X, y)
best = 1 - 0.04 / y.var()
print(f"R^2 of a regression on all readings: {alone.score(X, y):.3f} ({best:.3f} would be the best possible)")

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``): the loadings of the first component.

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    _, axes = plt.subplots(figsize=(6, 3), layout="constrained")
    axes.plot(model.components_[0], "o", label="private, epsilon = 2")
    axes.plot(reference.components_[0], "x", color="black", label="of the records themselves")
    axes.axhline(0, color="grey", linewidth=0.5)
    axes.set(xlabel="reading", ylabel="loading of the first component")
    axes.legend()
    plt.show()
