"""
Auditing mechanisms, and an attack on naive noise
=================================================

A mechanism with budget epsilon guarantees that no report is more than e^epsilon times as likely from one record as from
another. This guarantee can be tested. This page audits some mechanisms as black boxes, finds two classical mistakes,
and then a third one in the last bits of floating-point numbers. """

from functools import partial

import numpy as np

from skldp.mechanisms import Laplace, RandomizedResponse, Sphere, SquareWave
from skldp.privacy import audit_epsilon, epsilon_between, laplace_noise, noise_pmf

rng = np.random.default_rng(0)
bounds = {}  # what each audit found: epsilon is at least this

# %%
# ``audit_epsilon`` draws reports from two records, chooses on half of the reports the event that distinguishes the two
# records best, and counts it on the other half. It returns a lower bound on epsilon that is wrong once in a million
# times. A bound above the promised epsilon shows that the guarantee is broken. A bound below it proves nothing, but a
# bound close to it shows that the audit is powerful.

honest = {
    "Laplace": (Laplace(epsilon=1.0, bounds=(0, 1)), 0.0, 1.0),
    "square wave": (SquareWave(epsilon=1.0, bounds=(0, 1)), 0.0, 1.0),
    "randomised response": (RandomizedResponse(epsilon=1.0, n_categories=4), 0, 3),
    "sphere": (Sphere(epsilon=1.0, n_features=3), [1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]),
}
print("Promised: epsilon = 1. Found: epsilon is at least")
for name, (mechanism, x, x_prime) in honest.items():
    bounds[name] = audit_epsilon(mechanism, x, x_prime).epsilon_lower
    print(f"  {bounds[name]:5.2f}  {name}")

# %%
# Two classical mistakes. Noise for values within 0.5 of the middle has the scale 0.5, but two values of [0, 1] can
# differ by 1, not by 0.5. And noise for values in [0, 1] does not protect a value of 3 that nobody clipped.


def half_the_noise(x):
    return x + rng.laplace(scale=0.5, size=len(x))


def without_clipping(x):
    return x + rng.laplace(scale=1.0, size=len(x))


bounds["half the noise"] = audit_epsilon(half_the_noise, 0.0, 1.0).epsilon_lower
bounds["without clipping"] = audit_epsilon(without_clipping, 0.0, 3.0).epsilon_lower
for name in ("half the noise", "without clipping"):
    print(f"  {bounds[name]:5.2f}  {name}")

# %%
# Now noise of the right scale on clipped values, in ordinary floating-point numbers: the inverse of the Laplace
# distribution function at a uniform number u, as in NumPy's generator. The audit finds no mistake.


def laplace_from_uniform(u, x):
    with np.errstate(all="ignore"):
        return np.where(u >= 0.5, x - np.log(2.0 - u - u), x + np.log(u + u))


def naive(x):
    return laplace_from_uniform(rng.random(len(x)), x)


bounds["naive floats"] = audit_epsilon(naive, 0.0, 1.0).epsilon_lower
print(f"  {bounds['naive floats']:5.2f}  naive floats, seen as real numbers")

# %%
# But u is one of only 2^53 numbers, and because of rounding the sums from different records are different floats. Given
# a report, anybody can try the few u that might have led to it, and find the records that could have sent it.


def can_come_from(reports, x):
    distance = reports - x
    guess = np.where(distance > 0, 1 - np.exp(-distance) / 2, np.exp(distance) / 2)
    found = np.zeros(len(reports), dtype=bool)
    for step in range(-40, 41):
        u = np.rint(guess * 2.0**53 + step) * 2.0**-53
        found |= laplace_from_uniform(u, x) == reports
    return found


reports = naive(np.zeros(20_000))
print(f"\nThe record 0 explains {np.mean(can_come_from(reports, 0.0)):.0%} of its own naive reports, the record 1 only "
      f"{np.mean(can_come_from(reports, 1.0)):.0%} of them: the others reveal their record.")

# %%
# The audit can use this as its statistic. No finite number of reports can show that epsilon is infinite, but twenty
# thousand show that it is far above 1.


def which_record(reports):
    return can_come_from(reports, 0.0).astype(float) - can_come_from(reports, 1.0)


bounds["naive floats, last bits"] = audit_epsilon(naive, 0.0, 1.0, n_reports=20_000,
                                                  statistic=which_record).epsilon_lower
print(f"  {bounds['naive floats, last bits']:5.2f}  naive floats, with all their bits")

# %%
# The mechanisms of skldp send integers on a public grid instead. Their noise is a monotone function of 127 random bits,
# so bisecting that function gives the exact probability of every report, including rounding errors, without statistics
# or a confidence level. Every report can come from both records, and the largest ratio is within the guarantee.

mechanism = Laplace(epsilon=1.0, bounds=(0, 1))
law = partial(laplace_noise, scale=mechanism.scale)
grid = np.linspace(-4 * mechanism.n_levels, 5 * mechanism.n_levels, 2001).astype(np.int64)
from_zero, from_one = noise_pmf(law, grid), noise_pmf(law, grid - mechanism.n_levels)
print(f"\nExact probabilities of {len(grid):,} reports: all possible from both records: "
      f"{bool((from_zero > 0).all() and (from_one > 0).all())}; epsilon = {epsilon_between(from_zero, from_one):.9f}.")

# %%
# A picture, if matplotlib is installed (``pip install "skldp[plot]"``): what the audits found, and the exact
# log-ratios of the integer reports, which never leave the band.

try:
    import matplotlib.pyplot as plt
except ImportError:
    pass
else:
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    colors = ["tab:red" if bound > 1 else "tab:blue" for bound in bounds.values()]
    left.barh(list(bounds), list(bounds.values()), color=colors)
    left.axvline(1.0, color="black", linestyle="--", linewidth=1)
    left.annotate("promised", (1.1, 0), va="center")
    left.set(xlabel=r"audited: $\epsilon$ is at least")
    left.invert_yaxis()
    right.plot(grid / mechanism.n_levels, np.log(from_zero / from_one), label="exact, of integer reports")
    right.axhspan(-1, 1, color="0.9", zorder=0, label="promised")
    right.set(xlabel="report, in units of the interval", ylabel="log-ratio of probabilities", ylim=(-1.6, 1.6))
    right.legend(frameon=False, fontsize="small")
    plt.show()
