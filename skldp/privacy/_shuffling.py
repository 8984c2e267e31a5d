"""Privacy amplification by shuffling: the central guarantee of anonymous local reports."""

import math

from skldp._validation._parameters import check_delta, check_epsilon, check_integer
from skldp.exceptions import InvalidParameterError

__all__ = ["shuffled_epsilon"]


def shuffled_epsilon(epsilon: float, n_reports: int, delta: float) -> float:
    r"""Central epsilon of local reports that a trusted shuffler has put in random order.

    If no report can be linked to its sender, the set of all reports is
    (:func:`shuffled_epsilon`, delta)-differentially private in the central sense, for the replacement of one record.

    Parameters
    ----------
    epsilon : float
        Local budget :math:`\epsilon_0` of each report. All clients run the same protocol, or protocols of at most this
        budget; the local delta must be zero, so Gaussian noise does not qualify.
    n_reports : int
        Number n of reports that are shuffled together.
    delta : float
        Failure probability of the central guarantee, in (0, 1).

    Returns
    -------
    float
        At most ``epsilon``, because the local guarantee implies the central one.

    Raises
    ------
    InvalidParameterError
        Outside the theorem's domain :math:`\epsilon_0 \le \log(n/(16\log(2/\delta)))`.

    Notes
    -----
    Theorem 3.1 of [1]_:

    .. math:: \epsilon = \log\left(1 + \frac{e^{\epsilon_0} - 1}{e^{\epsilon_0} + 1}
              \left(\frac{8\sqrt{e^{\epsilon_0}\log(4/\delta)}}{\sqrt n} + \frac{8e^{\epsilon_0}}{n}\right)\right).

    It is an upper bound, within a small factor of the optimum. It assumes that the shuffler is honest and that nothing
    else links a report to a person, such as its time of arrival, an address, or an unusual personal budget.

    References
    ----------
    .. [1] V. Feldman, A. McMillan, K. Talwar (2021). Hiding among the clones: a simple and nearly optimal analysis of
       privacy amplification by shuffling. FOCS.

    Examples
    --------
    >>> from skldp.privacy import shuffled_epsilon
    >>> round(shuffled_epsilon(1.0, n_reports=100_000, delta=1e-8), 3)
    0.082
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    n_reports = check_integer(n_reports, "n_reports", 1)
    if not math.exp(min(epsilon, 700.0)) * 16 * math.log(2 / delta) <= n_reports:
        raise InvalidParameterError(
            f"Shuffling {n_reports} reports of epsilon={epsilon:g} is outside the domain of the theorem, which needs "
            f"n_reports of at least 16 exp(epsilon) log(2/delta). Shuffle more reports together, or lower epsilon."
        )
    odds = math.exp(epsilon)
    factor = 8 * math.sqrt(odds * math.log(4 / delta) / n_reports) + 8 * odds / n_reports
    return min(epsilon, math.log1p(math.tanh(epsilon / 2) * factor))
