r"""Priors of correlations and of scales, with parameters that are fixed, or learned from the reports.

A covariance matrix has many entries and the noise is large, so the prior has much influence on its posterior. No fixed
prior suits both columns that are nearly uncorrelated, with similar variances, and other columns. A learned prior is a
mixture over its parameter. Its density depends on the coordinates through one or two sums, so that the mixture is a sum
over a short grid and needs no additional coordinate.
"""

import numpy as np
from scipy.special import gammaln

from skldp.models.regression._radial import Identity, radial_between

LEARNED_ETAS = np.geomspace(1.0, 300.0, 64)  # fine enough that the mixture is unimodal
LEARNED_SHAPES = np.geomspace(0.5, 32.0, 7)
LEARNED_VARIANCES = np.geomspace(0.05, 1.0, 8)  # of a column, in units of R^2 / d


class FixedCorrelations:
    r"""LKJ prior in the free rows of a Cholesky factor: :math:`-\frac{d+2\eta-1}2\sum_j\log(1+\|a_j\|^2)`."""

    def __init__(self, n_features, eta):
        self.exponent = (n_features + 2 * eta - 1) / 2

    def __call__(self, log_norms):
        r"""Return the log-density given :math:`\sum_j\log(1+\|a_j\|^2)`, and its derivative times -1."""
        return -self.exponent * log_norms, self.exponent

    def radial_map(self, n, standard_error):
        """Return the identity: with a fixed eta the common scale of the n entries is known."""
        return Identity()


class LearnedCorrelations:
    r"""LKJ prior with a log-uniform :math:`\eta` between 1 and 300, on a grid of 64 points.

    Notes
    -----
    With :math:`e = (d+2\eta-1)/2` and :math:`q = \sum_j\log(1+\|a_j\|^2)` the density given :math:`\eta` is
    :math:`e^{-eq}/Z_e`. Row j has a t distribution up to its scale and contributes the factor
    :math:`\pi^{(j-1)/2}\Gamma(e-\frac{j-1}2)/\Gamma(e)` to :math:`Z_e`.
    """

    def __init__(self, n_features):
        self.exponents = (n_features + 2 * LEARNED_ETAS - 1) / 2
        halves, e = np.arange(n_features) / 2, self.exponents[:, None]
        self.constants = -(halves * np.log(np.pi) + gammaln(e - halves) - gammaln(e)).sum(axis=1)

    def __call__(self, log_norms):
        r"""Return the log-density given :math:`\sum_j\log(1+\|a_j\|^2)`, and its derivative times -1."""
        value, weights = log_mixture(self.constants - self.exponents * log_norms[:, None])
        return value, (weights @ self.exponents)[:, None]

    def radial_map(self, n, standard_error):
        r"""Return coordinates for n entries of the rows, given the standard error of an entry.

        Given :math:`\eta` the scale of an entry is about :math:`1/\sqrt{d+2\eta-1}`. If columns are uncorrelated, it is
        at most the standard error. The map covers the scales in between.
        """
        least, most = (2 * self.exponents[[-1, 0]]) ** -0.5
        return radial_between(n, least, min(most, standard_error))


class LearnedScales:
    r"""Gamma prior of variances, with a common mean v and shape a, both log-uniform on a grid.

    Notes
    -----
    The mean v has 8 points between 0.05 and 1 times :math:`R^2/d`, the largest mean variance of records of norm R. The
    shape a has 7 points between 1/2, at which signed scales are normal, and 32, at which they are nearly equal. Given
    both, the density of a signed scale is :math:`\frac{(a/v)^a}{\Gamma(a)}|\tau|^{2a-1}e^{-a\tau^2/v}`.
    """

    def __init__(self, n_features):
        shapes, variances = (grid.ravel() for grid in np.meshgrid(LEARNED_SHAPES, LEARNED_VARIANCES / n_features))
        self.powers, self.rates = 2 * shapes - 1, shapes / variances
        self.constants = n_features * (shapes * np.log(self.rates) - gammaln(shapes))

    def __call__(self, scales):
        """Return the log-density of signed scales and its gradient."""
        logs, squares = np.log(np.abs(scales)).sum(axis=1), np.vecdot(scales, scales)
        value, weights = log_mixture(self.constants + self.powers * logs[:, None] - self.rates * squares[:, None])
        return value, (weights @ self.powers)[:, None] / scales - 2 * (weights @ self.rates)[:, None] * scales


def log_mixture(log_terms):
    """Return the logarithm of the sum of exponentials along the last axis, and the share of each term in the sum."""
    largest = log_terms.max(axis=1, keepdims=True)
    weights = np.exp(log_terms - largest)
    total = weights.sum(axis=1, keepdims=True)
    return (largest + np.log(total))[:, 0], weights / total
