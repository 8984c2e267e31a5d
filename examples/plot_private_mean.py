"""
A first private posterior
=========================

Twenty thousand people know their height. Each sends one small integer, a noisy report, and we estimate the mean and the
standard deviation from these integers alone.
"""

import time

import numpy as np

from skldp import LDPGaussian, PosteriorDisplay

# %%
# The clients' records. Only their owners ever see these numbers.

heights = np.random.default_rng(0).normal(172.0, 9.0, size=(20_000, 1))

# %%
# The bounds are public. They are chosen from general knowledge, never from the data.

model = LDPGaussian(epsilon=1.0, bounds=(120, 220))

# %%
# One report of each client, randomised on its own device with the operating system's entropy.

reports = model.privatize(heights)
print(f"A height of {heights[0, 0]:.1f} cm became the report {reports[0, 0]}, "
      f"one of the integers {model.protocol().randomizer.clamp[0]} .. {model.protocol().randomizer.clamp[1]}.")
print(f"Every report is at most e^{model.epsilon:g} = {np.exp(model.epsilon):.2f} times as likely from one height "
      f"as from any other.\n")

# %%
# The aggregator's side: the mechanism is part of the likelihood.

start = time.perf_counter()
model.fit_reports(reports)
print(f"Posterior from {model.n_reports_:,} reports, in {time.perf_counter() - start:.1f} s "
      f"(the clients' true mean is {heights.mean():.2f}, their standard deviation {heights.std():.2f}):\n")
print(model.posterior_.summary())

low, high = model.posterior_.interval(0.9)["mean"]
print(f"\nWith 90 % probability the mean height lies between {low:.1f} and {high:.1f} cm.")

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``).

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="constrained")
    PosteriorDisplay.from_estimator(model, "mean", truth=heights.mean(), ax=left)
    PosteriorDisplay.from_estimator(model, "std", truth=heights.std(), ax=right)
    plt.show()
