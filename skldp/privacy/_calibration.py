"""Calibration of the analytic Gaussian mechanism: sigma from (epsilon, delta)."""

import math

from scipy.special import log_ndtr

from skldp._validation._parameters import check_delta, check_positive, check_real
from skldp.exceptions import InvalidParameterError

__all__ = ["gaussian_delta", "gaussian_sigma"]

_SMALLEST_DELTA = 1e-300


def gaussian_delta(epsilon: float, sigma: float, sensitivity: float = 1.0) -> float:
    r"""Smallest delta for which Gaussian noise is (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        Privacy budget, at least 0.
    sigma : float
        Standard deviation of the noise in every coordinate.
    sensitivity : float, default=1.0
        Largest L2 distance between the encodings of two records.

    Returns
    -------
    float

    Notes
    -----
    With :math:`r = \Delta/\sigma`,

    .. math:: \delta(\epsilon) = \Phi(r/2 - \epsilon/r) - e^\epsilon\,\Phi(-r/2 - \epsilon/r),

    exact for every epsilon (Balle & Wang 2018, Theorem 8). Both terms are computed as logarithms, so that the
    difference is accurate down to the smallest doubles.

    References
    ----------
    B. Balle, Y.-X. Wang (2018). Improving the Gaussian mechanism for differential privacy. ICML.

    Examples
    --------
    >>> from skldp.privacy import gaussian_delta
    >>> round(gaussian_delta(1.0, 3.730632, 1.0) * 1e5, 4)
    1.0
    """
    ratio = sensitivity / sigma
    log_first = log_ndtr(ratio / 2 - epsilon / ratio)
    log_second = epsilon + log_ndtr(-ratio / 2 - epsilon / ratio)
    return float(-math.exp(log_first) * math.expm1(min(log_second - log_first, 0.0)))


def gaussian_sigma(epsilon: float, delta: float, sensitivity: float = 1.0) -> float:
    r"""Smallest standard deviation that makes Gaussian noise (epsilon, delta)-private.

    Parameters
    ----------
    epsilon : float
        Privacy budget, positive; ``inf`` gives no noise.
    delta : float
        Failure probability in (0, 1).
    sensitivity : float, default=1.0
        Largest L2 distance between the encodings of two records.

    Returns
    -------
    float
        Calibrated to a delta that is smaller by a relative 1e-8 or more, as a margin for rounding errors.

    Notes
    -----
    Brent's method finds the root of :func:`gaussian_delta` in :math:`\log\sigma`. The bracket starts at the crude
    bound :math:`\sigma \le \Delta(\sqrt{2\log(1/\delta)} + \sqrt{2\epsilon} + 1)/\epsilon`. Its upper end is
    doubled until delta is small enough, and its lower end halved until delta is too large.

    Examples
    --------
    >>> from skldp.privacy import gaussian_sigma
    >>> [round(gaussian_sigma(epsilon, 1e-5), 6) for epsilon in (0.1, 1.0, 5.0)]
    [30.749566, 3.730632, 0.891868]
    """
    # Imported here because clients that send categories or values do not need a root finder.
    from scipy.optimize import brentq

    epsilon = check_positive_budget(epsilon)
    delta = check_delta(delta)
    if delta < _SMALLEST_DELTA:
        raise InvalidParameterError(f"delta={delta!r} is below {_SMALLEST_DELTA:g}. Raise it, or use a mechanism that "
                                    "needs no delta, such as the sphere.")
    sensitivity = check_positive(sensitivity, "sensitivity")
    if math.isinf(epsilon):
        return 0.0

    # The margin exceeds the rounding error of gaussian_delta, which grows as epsilon and delta shrink (measured: 1.4e-9
    # at epsilon 1e-3 and delta 1e-30, 5e-5 at 1e-8 and 1e-30).
    log_target = math.log(delta) - 1e-8 - 1e-15 * math.log(delta) ** 2 / epsilon

    def excess(log_sigma):
        """Excess of log(delta) over its target."""
        # The logarithm keeps the problem well scaled for delta = 1e-30.
        return math.log(max(gaussian_delta(epsilon, math.exp(log_sigma)), 1e-320)) - log_target

    upper = (math.sqrt(-2 * math.log(delta)) + math.sqrt(2 * epsilon) + 1) / epsilon
    while excess(math.log(upper)) > 0:
        upper *= 2
    lower = upper
    while excess(math.log(lower)) < 0:
        lower /= 2
    return sensitivity * math.exp(brentq(excess, math.log(lower), math.log(upper), xtol=1e-14, rtol=1e-14))


def check_positive_budget(epsilon):
    """Return a positive budget; unlike for mechanisms, it may exceed 20."""
    epsilon = check_real(epsilon, "epsilon", "Give a positive budget.")
    if epsilon <= 0:
        raise InvalidParameterError(f"epsilon must be positive, got {epsilon!r}. Give a positive budget.")
    return epsilon
