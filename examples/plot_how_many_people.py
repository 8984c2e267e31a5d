"""
How many people does a study need?
==================================

A town wants to know how long its people travel to work. Nobody reveals their time: each person sends one noisy report.
With noise a study needs more people, so before the collection we have to know how many. ``required_reports`` computes
the number from the information in one report under the chosen mechanism, and a simulation checks it.
"""

import numpy as np

from skldp import MCMC, LDPBayesLinearRegression, LDPGaussian, LDPHistogram, required_reports

# %%
# The plan
# --------
# Times lie between 0 and 120 minutes, which is public. A 90 % interval of the mean should be two minutes wide. The
# number of people depends on how much their times differ, which nobody knows yet. We assume a standard deviation of 15
# minutes, and also try others.

BOUNDS, WIDTH, STD, MEAN = (0, 120), 2.0, 15.0, 35.0
epsilons = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]


def people(epsilon, mechanism="square_wave", std=STD):
    """Reports for the interval that we want."""
    model = LDPGaussian(epsilon=epsilon, bounds=BOUNDS, mechanism=mechanism)
    return required_reports(model, WIDTH, mean=MEAN, std=std)


plans = {mechanism: [people(epsilon, mechanism) for epsilon in epsilons] for mechanism in ("square_wave", "laplace")}
without = people(np.inf)
print(f"Without privacy {without:,} people are enough. With privacy:\n")
print("epsilon  square wave      Laplace")
for epsilon, ours, laplace in zip(epsilons, *plans.values()):
    print(f"{epsilon:7g} {ours:12,} {laplace:12,}")
print("\nAt epsilon 1, by the assumed standard deviation:",
      ", ".join(f"{std:g} minutes {people(1.0, std=std):,}" for std in (10.0, 15.0, 20.0)))

# %%
# The check
# ---------
# A simulation checks the formula. We run the study twenty times, with people who are as assumed. The intervals should
# be two minutes wide on average, and nine in ten of them should contain the truth.

n = people(1.0)
rng = np.random.default_rng(0)
intervals = []
for study in range(20):
    times = rng.normal(MEAN, STD, size=(n, 1))
    model = LDPGaussian(epsilon=1.0, bounds=BOUNDS, inference=MCMC(n_draws=500), random_state=study).fit(times)
    intervals.append(model.posterior_.interval(0.9)["mean"])
intervals = np.array(intervals)
widths = np.ptp(intervals, axis=1)
held = (intervals[:, 0] <= MEAN) & (MEAN <= intervals[:, 1])
print(f"\n{n:,} people at epsilon 1: intervals {widths.mean():.2f} minutes wide on average ({widths.min():.2f} to "
      f"{widths.max():.2f}), {held.sum()} of {len(held)} contain the truth.")

# %%
# Other questions
# ---------------
# The same function plans for a frequency and for a coefficient. A share of about 30 % of people who cycle, among six
# ways to travel, in an interval of four percentage points; and the minutes that one more kilometre takes, about two, in
# an interval of one minute, by a regression with two features. A report of a regression has many moments, which share
# one budget, so it needs the most people.

ways = ["car", "bus", "train", "bicycle", "foot", "other"]
cyclists = required_reports(LDPHistogram(epsilon=1.0, categories=ways), 0.04, frequency=0.3)
model = LDPBayesLinearRegression(epsilon=1.0, data_norm=30.0, bounds_y=(0, 120))
minutes = required_reports(model, 1.0, n_features=2, feature_std=9.0, sigma=10.0, coef=[2.0, 0.0])
print(f"\nThe share of cyclists needs {cyclists:,} people, the minutes for a kilometre {minutes:,}.")

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``): people over epsilon on the left, and the
# twenty studies on the right.

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.plot(epsilons, plans["laplace"], "s--", color="tab:red", label="Laplace noise")
    left.plot(epsilons, plans["square_wave"], "o-", color="tab:blue", label="square wave")
    left.axhline(without, color="0.5", linestyle=":", label="no privacy")
    left.set(xscale="log", yscale="log", xlabel=r"$\epsilon$", ylabel="people for an interval of two minutes")
    left.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    left.minorticks_off()
    left.legend(frameon=False)
    colours = np.where(held, "tab:blue", "tab:red")
    right.hlines(np.arange(len(held)) + 1, *intervals.T, colors=colours, linewidth=3)
    right.axvline(MEAN, color="black", linewidth=0.8)
    right.axvspan(MEAN - WIDTH / 2, MEAN + WIDTH / 2, color="0.93", zorder=0, label="the planned width, at the truth")
    right.set(xlabel="90 % interval of the mean, minutes", ylabel="study", yticks=[1, 5, 10, 15, 20], ylim=(0, 24))
    right.legend(frameon=False, loc="upper left")
    plt.show()
