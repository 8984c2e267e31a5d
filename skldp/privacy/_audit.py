r"""Audits: compute or measure the epsilon of a randomiser.

:func:`noise_pmf` finds the exact probability of every output of an inverse-CDF sampler by bisection of its uniform
input. :func:`hockey_stick` and :func:`epsilon_between` turn these probabilities into delta and epsilon.
:func:`audit_epsilon` treats any randomiser as a black box and returns a lower bound on its epsilon that holds with a
stated confidence. If the bound exceeds the promised epsilon, the promise is broken.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from skldp._validation._parameters import check_fraction, check_integer, check_real
from skldp.exceptions import InvalidParameterError

__all__ = ["AuditResult", "audit_epsilon", "epsilon_between", "hockey_stick", "noise_pmf"]


def noise_pmf(law: Callable[[np.ndarray, np.ndarray], np.ndarray], outputs: ArrayLike) -> np.ndarray:
    r"""Exact probabilities of integer noise, by bisection of the function that draws it.

    Parameters
    ----------
    law : callable
        ``law(high, low)`` maps two uint64 arrays to integers. The top bit of ``high`` is the sign, and ``law`` must be
        odd in it. For a positive sign (0) it must not increase with the 127-bit number formed by the low 63 bits of
        ``high`` followed by ``low``.
    outputs : array-like of int
        Outputs, of either sign.

    Returns
    -------
    ndarray of float
        Probabilities of the outputs under uniform words: counts of 127-bit numbers, exact before the final division.

    Notes
    -----
    For each k the largest uniform number u with :math:`\mathrm{law}(u) > k` is built bit by bit from the top: 127
    evaluations find every switch point of the production code, float rounding included. If rounding makes ``law``
    slightly non-monotone, there are several switch points between two outputs; one of them is found, and the others
    lie within a few units in the last place of it.

    Examples
    --------
    >>> import numpy as np
    >>> from functools import partial
    >>> from skldp.privacy import laplace_noise, noise_pmf
    >>> pmf = noise_pmf(partial(laplace_noise, scale=2.0), [0, 1, 2])
    >>> np.round(np.log(pmf[1] / pmf[2]), 12)
    np.float64(0.5)
    """
    size = np.abs(np.atleast_1d(np.asarray(outputs, dtype=np.int64)))
    above, at_least = _count_above(law, size), _count_above(law, size - 1)
    counts = at_least - above
    # Magnitude 0 is the same output for both signs; any other magnitude is two outputs.
    scale = np.where(size == 0, 2.0**-127, 2.0**-128)
    return counts.astype(np.float64) * scale


def hockey_stick(p: ArrayLike, q: ArrayLike, epsilon: float) -> float:
    r"""Smallest delta with :math:`P(S) \le e^\epsilon Q(S) + \delta` for all events S.

    Parameters
    ----------
    p, q : array-like of float
        Probabilities of the same outputs under two records.
    epsilon : float
        Budget.

    Returns
    -------
    float
        :math:`\sum_z \max(0, p(z) - e^\epsilon q(z))`.

    Examples
    --------
    >>> from skldp.privacy import hockey_stick
    >>> hockey_stick([0.75, 0.25], [0.25, 0.75], 0.0)
    0.5
    """
    return float(np.maximum(np.asarray(p) - np.exp(epsilon) * np.asarray(q), 0.0).sum())


def epsilon_between(p: ArrayLike, q: ArrayLike, delta: float = 0.0) -> float:
    r"""Smallest epsilon for which two output distributions are (epsilon, delta)-indistinguishable.

    Parameters
    ----------
    p, q : array-like of float
        Probabilities of the same outputs under two records.
    delta : float, default=0.0
        Failure probability.

    Returns
    -------
    float
        The larger of both directions; infinite if outputs that are possible under one record only have a total
        probability above delta.

    Notes
    -----
    For delta = 0 this is the largest :math:`|\log p/q|`. Otherwise :func:`hockey_stick` is convex and decreasing in
    epsilon, and piecewise linear in :math:`e^\epsilon` with kinks at the ratios p/q. The root is found from the sorted
    ratios without iteration.

    Examples
    --------
    >>> from skldp.privacy import epsilon_between
    >>> round(epsilon_between([0.75, 0.25], [0.25, 0.75]), 6)
    1.098612
    """
    p, q = np.asarray(p, dtype=np.float64), np.asarray(q, dtype=np.float64)
    return max(_one_sided_epsilon(p, q, delta), _one_sided_epsilon(q, p, delta))


def _one_sided_epsilon(p, q, delta):
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(p > 0, p / q, 0.0)
    order = np.argsort(-ratio, kind="stable")
    mass_p, mass_q = np.cumsum(p[order]), np.cumsum(q[order])
    # On the k outputs with the largest ratios delta = P - e^epsilon Q. Each k needs an epsilon: return the largest.
    with np.errstate(divide="ignore", invalid="ignore"):
        needed = np.where(mass_p > delta, (mass_p - delta) / mass_q, 0.0)
    return float(max(0.0, np.log(max(1.0, needed.max()))))


def _count_above(law, thresholds):
    """Number of 127-bit uniforms whose noise exceeds each threshold, as Python ints in an object array."""
    high = np.zeros(thresholds.size, dtype=np.uint64)
    low = np.zeros(thresholds.size, dtype=np.uint64)
    zero_exceeds = law(high, low) > thresholds
    for word, top in ((high, 62), (low, 63)):
        for bit in range(top, -1, -1):
            word |= np.uint64(1 << bit)
            keep = law(high, low) > thresholds
            word[~keep] &= np.uint64(2**64 - 1 - (1 << bit))
    return ((high.astype(object) << 64) | low.astype(object)) + zero_exceeds.astype(object) * 1


@dataclass(frozen=True)
class AuditResult:
    """Result of :func:`audit_epsilon`.

    Attributes
    ----------
    epsilon_lower : float
        Lower bound on epsilon, at the stated confidence.
    threshold, above : float, bool
        The event behind the bound: the statistic is above (or not above) the threshold.
    counts : tuple of int
        Numbers of reports in the event, under each of the two records.
    n_reports : int
        Number of reports behind each count.
    confidence : float
        Probability that the bound holds.

    Examples
    --------
    >>> from skldp.mechanisms import RandomizedResponse
    >>> from skldp.privacy import audit_epsilon
    >>> result = audit_epsilon(RandomizedResponse(epsilon=1.0, n_categories=2), 0, 1, n_reports=20_000)
    >>> 0.5 < result.epsilon_lower <= 1.0
    True
    """

    epsilon_lower: float
    threshold: float
    above: bool
    counts: tuple
    n_reports: int
    confidence: float


def audit_epsilon(mechanism: Any, x: ArrayLike, x_prime: ArrayLike, *, n_reports: int = 100_000, delta: float = 0.0,
                  confidence: float = 1 - 1e-6,
                  statistic: Callable[[np.ndarray], ArrayLike] | None = None) -> AuditResult:
    r"""Lower bound on the epsilon of a randomiser, from its reports alone.

    Parameters
    ----------
    mechanism : callable or object with a ``randomize`` method
        Maps an array of records to an array of reports, one row each, with fresh noise at every call.
    x, x_prime : array-like
        Two records; the worst case is two opposite corners of the public domain.
    n_reports : int, default=100_000
        Reports drawn for each record. Half of them select the event, the other half test it.
    delta : float, default=0.0
        The delta that the mechanism promises.
    confidence : float, default=1 - 1e-6
        Probability that the bound holds.
    statistic : callable or None, default=None
        Maps reports to numbers; events are half-lines of these. By default the log-likelihood ratio of the two records
        if the mechanism has a ``log_prob``, else the reports themselves, which must then be numbers.

    Returns
    -------
    AuditResult

    Notes
    -----
    For an event S, :math:`\epsilon \ge \log\frac{P(M(x)\in S) - \delta}{P(M(x')\in S)}`. The numerator is replaced by
    its Clopper-Pearson lower limit and the denominator by its upper limit, each at half the error probability. The
    event is selected with other reports than those that are counted, so that the limits are valid.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.privacy import audit_epsilon
    >>> rng = np.random.default_rng(0)
    >>> broken = lambda x: x + rng.laplace(scale=0.5, size=len(x))  # epsilon 2, said to be 1
    >>> audit_epsilon(broken, 0.0, 1.0).epsilon_lower > 1.0
    True
    """
    check_integer(n_reports, "n_reports", 100)
    check_fraction(confidence, "confidence")
    if not 0 <= check_real(delta, "delta") < 1:
        raise InvalidParameterError(f"delta must lie in [0, 1), got {delta!r}. Give the delta that was promised, or 0.")
    randomize = getattr(mechanism, "randomize", mechanism)
    statistic = statistic or _default_statistic(mechanism, x, x_prime)
    sample = [np.asarray(statistic(randomize(_repeat(record, n_reports))), dtype=float) for record in (x, x_prime)]
    if any(values.shape != (n_reports,) for values in sample):
        raise InvalidParameterError("statistic must return one number for each report; pass a function that does.")
    half = n_reports // 2
    best = AuditResult(0.0, np.nan, True, (0, 0), n_reports - half, confidence)
    # Two orders of the records, and two Clopper-Pearson limits for each.
    alpha = (1 - confidence) / 4
    for here, there in (sample, sample[::-1]):
        threshold, above = _best_event(here[:half], there[:half], delta, alpha)
        counts = [int(_in_event(values[half:], threshold, above).sum()) for values in (here, there)]
        bound = _epsilon_bound(counts, n_reports - half, delta, alpha)
        if bound > best.epsilon_lower:
            best = AuditResult(float(bound), threshold, above, tuple(counts), n_reports - half, confidence)
    return best


def _repeat(record, n_reports):
    record = np.asarray(record)
    return np.broadcast_to(record, (n_reports, *record.shape)).copy()


def _default_statistic(mechanism, x, x_prime):
    if not hasattr(mechanism, "log_prob"):
        return lambda reports: np.asarray(reports).reshape(len(reports), -1).T[0] if _one_column(reports) else reports

    def log_likelihood_ratio(reports):
        """Log-likelihood ratio of the first record to the second, for every report."""
        records = [_repeat(record, len(reports)) for record in (x, x_prime)]
        return mechanism.log_prob(reports, records[0]) - mechanism.log_prob(reports, records[1])

    return log_likelihood_ratio


def _one_column(reports):
    return np.size(reports) == len(reports)


def _in_event(values, threshold, above):
    return values > threshold if above else values <= threshold


def _best_event(here, there, delta, alpha):
    """Return the half-line with the largest bound on these reports, as a threshold and a side."""
    pooled = np.concatenate([here, there])
    distinct = np.unique(pooled)
    # Quantiles cover the bulk; the 64 outermost values on each side are all tried, because leaks are often in tails.
    bulk = np.quantile(pooled, np.linspace(0, 1, 512), method="lower")
    grid = np.unique(np.concatenate([[-np.inf], distinct[:64], bulk, distinct[-64:]]))
    scores = []
    for above in (True, False):
        counts = [_counts_above(values, grid, above) for values in (here, there)]
        scores.append(_epsilon_bound(counts, here.size, delta, alpha))
    side = int(np.max(scores[1]) > np.max(scores[0]))
    return float(grid[int(np.argmax(scores[side]))]), side == 0


def _counts_above(values, grid, above):
    not_above = np.searchsorted(np.sort(values), grid, side="right")
    return values.size - not_above if above else not_above


def _epsilon_bound(counts, n, delta, alpha):
    """Clopper-Pearson lower bound on log((P - delta) / Q), or 0 if that is negative."""
    here, there = np.asarray(counts, dtype=float)
    lower = np.where(here > 0, betaincinv(np.maximum(here, 1), n - here + 1, alpha), 0.0)
    upper = np.where(there < n, betaincinv(there + 1, np.maximum(n - there, 1), 1 - alpha), 1.0)
    with np.errstate(divide="ignore"):
        return np.maximum(0.0, np.log(np.maximum(lower - delta, 0.0) / upper))
