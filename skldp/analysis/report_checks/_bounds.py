r"""Bounds on the probability of what was seen in a collection of reports, for any records.

The hypothesis is that every report was drawn by the mechanism from some record, independently given the records, which
are arbitrary and may differ for every client. Each function returns a p-value for it: for every set of records and
every level a, the probability of a value of a or below is at most a. None of them uses a limit theorem.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, chdtr, chdtrc, gammaln


@dataclass(frozen=True)
class Finding:
    """The p-value of one test, corrected for everything that the test looked at, and a sentence about it."""

    p_value: float
    reason: str


def at_least(count, n, probability):
    r"""Largest probability of ``count`` or more successes among n, none more probable than ``probability``.

    A sum of independent Bernoulli variables grows stochastically with each of their probabilities, so the binomial
    distribution with the largest one dominates it.
    """
    count = np.asarray(count, dtype=float)
    inside = betainc(np.maximum(count, 1.0), np.maximum(n - count + 1, 0.5), np.clip(probability, 0.0, 1.0))
    return np.where(count <= 0, 1.0, np.where(count > n, 0.0, inside))


def at_most(count, n, probability):
    """Largest probability of ``count`` or fewer successes among n, none less probable than ``probability``."""
    return at_least(n - np.asarray(count, dtype=float), n, 1 - np.asarray(probability, dtype=float))


def log_choose(n, k):
    """Logarithm of the number of subsets of size k of n things."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def log_most_equal(multiplicity, n, log_largest, log_possible):
    r"""Logarithm of a bound on the probability that some report comes ``multiplicity`` = k times or more among n.

    With P the largest probability of a report and V the number of reports that are possible, the bound is the smaller
    of two: :math:`V\,P(\mathrm{Bin}(n, P) \ge k)`, a union over the reports, and
    :math:`\binom nk P^{k-1}`, a union over k clients: :math:`\sum_v\prod_{i\le k}P_i(v) \le P^{k-1}\sum_vP_1(v)`.
    """
    if multiplicity < 2:
        return 0.0
    by_clients = log_choose(n, multiplicity) + (multiplicity - 1) * log_largest
    tail = float(at_least(multiplicity, n, math.exp(min(log_largest, 0.0))))
    by_reports = log_possible + math.log(tail) if tail > 0 and math.isfinite(log_possible) else math.inf
    return float(min(by_clients, by_reports, 0.0))


def repeats_p_value(n_repeats, n, log_largest):
    r"""Bound on the probability that ``n_repeats`` = k or more of n reports equal an earlier one.

    Given the first i reports, the next one is among them with a probability of iP at most. So the number of repeats is
    dominated by a sum of independent Bernoulli variables of probabilities :math:`\min(1, iP)`, of mean
    :math:`\mu`. By Hoeffding (1956) its tail from :math:`\mu + 1` on is at most that of :math:`\mathrm{Bin}(n, \mu/n)`.
    """
    mean = expected_repeats(n, log_largest)
    return float(at_least(n_repeats, n, mean / n)) if n_repeats >= mean + 1 else 1.0


def expected_repeats(n, log_largest):
    """Largest mean of the number of reports that equal an earlier one."""
    largest = math.exp(min(log_largest, 0.0))
    n_partial = min(n, int(min(1 / largest, float(n))) if largest > 0 else n)
    return largest * n_partial * (n_partial - 1) / 2 + (n - n_partial)


def ones_p_value(n_ones, n, own, other, n_others):
    r"""Bound on the probability that n rows of independent bits have so many ones in all, or so few.

    Each row has one bit of probability ``own`` and ``n_others`` of probability ``other``. Chernoff's bound
    :math:`\min_\lambda Ee^{\lambda(T-t)}` on either side; the exponent is convex in :math:`\lambda`.
    """
    mean = n * (own + n_others * other)
    sign = 1.0 if n_ones >= mean else -1.0
    rates = sign * np.geomspace(1e-7, 50.0, 2000)  # any rate gives a bound

    def log_moment(probability):
        """Logarithm of the mean of exp(rate * bit)."""
        return np.log1p(probability * np.expm1(rates))

    exponent = n * (log_moment(own) + n_others * log_moment(other)) - rates * n_ones
    return min(1.0, 2 * math.exp(min(float(exponent.min()), 0.0)))


def gaussian_length_p_value(length, n_entries):
    """Probability that a standard normal vector is ``length`` long or longer."""
    return float(chdtrc(n_entries, max(length, 0.0) ** 2))


def small_scatter_p_value(length, n_degrees):
    r"""Bound on the probability that n noisy vectors scatter so little around their mean.

    ``length`` is the root of the sum of their squared distances to the mean, in standard deviations of the noise. It
    has a non-central :math:`\chi` distribution, and records that differ only make it larger.
    """
    return float(chdtr(n_degrees, length**2)) if n_degrees > 0 else 1.0


def large_scatter_p_value(square, n_degrees, noncentrality):
    r"""Bound on the upper tail of a non-central :math:`\chi^2` variable, by Birgé (2001), Lemma 8.1.

    :math:`P(X \ge D + B + 2\sqrt{(D+2B)x} + 2x) \le e^{-x}` with D degrees of freedom and non-centrality B. The tail
    grows with B, so the largest one is enough.
    """
    excess = square - n_degrees - noncentrality
    if excess <= 0 or n_degrees <= 0:
        return 1.0
    wide = n_degrees + 2 * noncentrality
    return math.exp(-((math.sqrt(wide + 2 * excess) - math.sqrt(wide)) / 2) ** 2)


def bounded_sum_p_value(length, n, total_variance, variance, largest):
    r"""Bound on the probability that a sum of n independent centred vectors is ``length`` long or longer.

    Each is at most ``largest`` = c long, has a mean squared length of ``total_variance`` and a variance of ``variance``
    along any direction at most. The smaller of two bounds: Pinelis (1994), Theorem 3.4,
    :math:`2\exp(-t^2/(2nv_1 + \frac23ct))`; and Klein and Rio (2005), Theorem 1.1, around the mean length, which is at
    most :math:`m = \sqrt{nv_1}`: :math:`\exp(-s^2/(2(nv + 2cm) + 3cs))` with :math:`s = t - m`.
    """
    if length <= 0:
        return 1.0
    spread = n * total_variance
    exponent = length**2 / (2 * spread + 2 * largest * length / 3) - math.log(2)
    beyond = length - math.sqrt(spread)
    if beyond > 0:
        around = 2 * (n * variance + 2 * largest * math.sqrt(spread)) + 3 * largest * beyond
        exponent = max(exponent, beyond**2 / around)
    return math.exp(-max(exponent, 0.0))
