r"""Prior of frequencies: symmetric Dirichlet, with a given or a learned concentration."""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from skldp._validation._parameters import check_positive
from skldp.exceptions import InvalidParameterError
from skldp.models.categories._marginals import Marginals

# The logarithm of a learned concentration is normal, truncated to these ends; the lower one is less for many
# categories, so that it allows frequencies of a tenth in any number of them.
_LOG_MEAN, _LOG_SCALE = np.log(0.5), 1.5
_ENDS = 0.005, 20.0
_LEAST_TOTAL = 2.0  # of the concentrations of all categories
_COARSEST, _POINTS_PER_WIDTH = 0.25, 2.0  # of the grid of logarithms
_PRECISION = 0.05  # of the logarithm of an estimated concentration


class DirichletPrior:
    r"""Mixture of symmetric Dirichlet distributions over a grid of concentrations; a fixed one is a grid of one.

    Parameters
    ----------
    n_categories : int
    concentration : "auto" or float
        "auto" for :math:`\log\alpha \sim N(\log\frac12, 1.5^2)` between 0.005, or 2/d if that is less, and 20.

    Notes
    -----
    With weights :math:`w_j` the log-density of frequencies depends on :math:`T = \sum_k\log\theta_k` alone,

    .. math:: h(T) = \log\sum_jw_j\frac{\Gamma(d\alpha_j)}{\Gamma(\alpha_j)^d}e^{\alpha_jT} - T,

    and :math:`h'(T) + 1` is the mean of :math:`\alpha` given :math:`\theta`. Given :math:`\theta`, :math:`\log\alpha`
    has a standard deviation of at least about :math:`1/\sqrt d`. The grid has two points in that width, so that the
    mixture has a single mode and equals the integral over :math:`\alpha`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models.categories._prior import DirichletPrior
    >>> value, concentration = DirichletPrior(3, 2.0).evaluate(np.array([-3.5, -4.0]))
    >>> concentration
    array([2., 2.])
    """

    def __init__(self, n_categories, concentration):
        self.concentrations, log_weights = _grid(n_categories, concentration)
        self._constants = (log_weights + gammaln(n_categories * self.concentrations)
                           - n_categories * gammaln(self.concentrations))

    def evaluate(self, log_sums):
        r"""Return :math:`h(T) + T`, and the mean of :math:`\alpha`, at each T."""
        terms = self._constants + log_sums[:, None] * self.concentrations
        largest = terms.max(axis=1)
        weights = np.exp(terms - largest[:, None])
        total = weights.sum(axis=1)
        return largest + np.log(total), weights @ self.concentrations / total


def estimated_concentration(likelihoods):
    r"""Return the most probable concentration, with the evidence of :class:`Marginals`.

    Parameters
    ----------
    likelihoods : list
        One for each protocol.

    Returns
    -------
    float
    """
    def loss(log):
        """Return minus the log of the posterior density of a log-concentration."""
        prior = -0.5 * ((log - _LOG_MEAN) / _LOG_SCALE) ** 2
        return -prior - Marginals(likelihoods, np.exp(log), fineness=1).log_evidence

    ends = _log_ends(likelihoods[0].n_categories)
    found = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": _PRECISION})
    return float(np.exp(found.x))


def check_concentration(concentration):
    """Return a concentration: "auto" or a positive number."""
    if isinstance(concentration, str):
        if concentration != "auto":
            raise InvalidParameterError(f'concentration must be "auto" or a positive number, got {concentration!r}.')
        return concentration
    return check_positive(concentration, "concentration")


def _log_ends(n_categories):
    return np.log([min(_ENDS[0], _LEAST_TOTAL / n_categories), _ENDS[1]])


def _grid(n_categories, concentration):
    """Return concentrations, and the logarithms of their weights."""
    if not isinstance(concentration, str):
        return np.array([float(concentration)]), np.zeros(1)
    low, high = _log_ends(n_categories)
    step = min(_COARSEST, 1 / (_POINTS_PER_WIDTH * np.sqrt(n_categories)))
    logs = np.linspace(low, high, int(np.ceil((high - low) / step)) + 1)
    log_weights = -0.5 * ((logs - _LOG_MEAN) / _LOG_SCALE) ** 2
    log_weights[[0, -1]] -= np.log(2)  # trapezoidal rule
    return np.exp(logs), log_weights
