r"""p-values of statistics of a collection of reports, valid for any records.

The null hypothesis is that the mechanism drew every report from some record, independently given the records. The
records are arbitrary and may differ between clients. The p-values are valid for every set of records: for every level
a, the probability of a p-value of a or below is at most a. No limit theorem is used.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainc, chdtr, chdtrc, gammaln


@dataclass(frozen=True)
class Finding:
    """p-value of one test, corrected for all comparisons within the test, and a sentence about it."""

    p_value: float
    reason: str


def at_least(count, n, probability):
    r"""Largest probability of ``count`` or more successes among n, each of at most ``probability``.

    A sum of independent Bernoulli variables is stochastically increasing in each of their probabilities, so it is
    dominated by the binomial distribution with the largest one.
    """
    count = np.asarray(count, dtype=float)
    inside = betainc(np.maximum(count, 1.0), np.maximum(n - count + 1, 0.5), np.clip(probability, 0.0, 1.0))
    return np.where(count <= 0, 1.0, np.where(count > n, 0.0, inside))


def at_most(count, n, probability):
    """Largest probability of ``count`` or fewer successes among n, each of at least ``probability``."""
    return at_least(n - np.asarray(count, dtype=float), n, 1 - np.asarray(probability, dtype=float))


def log_choose(n, k):
    """Logarithm of the binomial coefficient of n and k."""
    return gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)


def log_most_equal(multiplicity, n, log_largest, log_possible):
    r"""Logarithm of a bound on the probability that some report occurs ``multiplicity`` = k or more times among n.

    With P the largest probability of a report and V the number of possible reports, the bound is the smaller of two:
    :math:`V\,P(\mathrm{Bin}(n, P) \ge k)`, a union over the reports, and
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

    Given the first i reports, the next one equals one of them with probability at most iP. So the number of repeats is
    dominated by a sum of independent Bernoulli variables with probabilities :math:`\min(1, iP)` and mean :math:`\mu`.
    By Hoeffding (1956) its upper tail from :math:`\mu + 1` is at most that of :math:`\mathrm{Bin}(n, \mu/n)`.
    """
    mean = expected_repeats(n, log_largest)
    return float(at_least(n_repeats, n, mean / n)) if n_repeats >= mean + 1 else 1.0


def expected_repeats(n, log_largest):
    """Largest expected number of reports that equal an earlier one."""
    largest = math.exp(min(log_largest, 0.0))
    n_partial = min(n, int(min(1 / largest, float(n))) if largest > 0 else n)
    return largest * n_partial * (n_partial - 1) / 2 + (n - n_partial)


def ones_p_value(n_ones, n, own, other, n_others):
    r"""Two-sided bound on the tail probability of the total number of ones in n rows of independent bits.

    Each row has one bit of probability ``own`` and ``n_others`` of probability ``other``. Chernoff's bound is
    :math:`\min_\lambda Ee^{\lambda(T-t)}` on either side; the exponent is convex in :math:`\lambda`.
    """
    mean = n * (own + n_others * other)
    sign = 1.0 if n_ones >= mean else -1.0
    rates = sign * np.geomspace(1e-7, 50.0, 2000)  # any rate gives a bound

    def log_moment(probability):
        """Logarithm of the moment-generating function of a bit, at every rate."""
        return np.log1p(probability * np.expm1(rates))

    exponent = n * (log_moment(own) + n_others * log_moment(other)) - rates * n_ones
    return min(1.0, 2 * math.exp(min(float(exponent.min()), 0.0)))


def gaussian_length_p_value(length, n_entries):
    """Probability that the norm of a standard normal vector is ``length`` or more."""
    return float(chdtrc(n_entries, max(length, 0.0) ** 2))


def small_scatter_p_value(length, n_degrees):
    r"""Bound on the probability that n noisy vectors have a scatter of ``length`` or less around their mean.

    ``length`` is the root of the sum of their squared distances to the mean, in standard deviations of the noise. It
    has a non-central :math:`\chi` distribution, and differences between records can only make it larger.
    """
    return float(chdtr(n_degrees, length**2)) if n_degrees > 0 else 1.0


def large_scatter_p_value(square, n_degrees, noncentrality):
    r"""Bound on the upper tail of a non-central :math:`\chi^2` variable, by Birgé (2001), Lemma 8.1.

    :math:`P(X \ge D + B + 2\sqrt{(D+2B)x} + 2x) \le e^{-x}` with D degrees of freedom and non-centrality B. The tail
    increases with B, so the largest B gives a bound.
    """
    excess = square - n_degrees - noncentrality
    if excess <= 0 or n_degrees <= 0:
        return 1.0
    half_variance = n_degrees + 2 * noncentrality
    return math.exp(-((math.sqrt(half_variance + 2 * excess) - math.sqrt(half_variance)) / 2) ** 2)


def bounded_sum_p_value(length, n, total_variance, variance, largest):
    r"""Bound on the probability that the norm of a sum of n independent centred vectors is ``length`` = t or more.

    Each vector has a norm of at most ``largest`` = c, a mean squared norm of at most ``total_variance`` = v_1, and a
    variance of at most ``variance`` = v in any direction. The result is the smaller of two bounds: Pinelis (1994),
    Theorem 3.4, :math:`2\exp(-t^2/(2nv_1 + \frac23ct))`; and Klein and Rio (2005), Theorem 1.1, around the mean norm,
    which is at most :math:`m = \sqrt{nv_1}`: :math:`\exp(-s^2/(2(nv + 2cm) + 3cs))` with :math:`s = t - m`.
    """
    if length <= 0:
        return 1.0
    mean_square = n * total_variance
    exponent = length**2 / (2 * mean_square + 2 * largest * length / 3) - math.log(2)
    excess = length - math.sqrt(mean_square)
    if excess > 0:
        denominator = 2 * (n * variance + 2 * largest * math.sqrt(mean_square)) + 3 * largest * excess
        exponent = max(exponent, excess**2 / denominator)
    return math.exp(-max(exponent, 0.0))
