r"""Priors of correlations and of scales: fixed, or learned from the reports and integrated out.

A covariance matrix has many entries and noise is large, so the prior decides how far its estimate wanders. What suits
columns that are nearly uncorrelated and alike does not suit others. A learned prior is a mixture over its parameter;
its density depends on the coordinates through one or two sums, so that the mixture costs a sum over a short grid and
needs no coordinate of its own.
"""

import numpy as np
from scipy.special import gammaln

from skldp.models.regression._radial import Identity, radial_between

LEARNED_ETAS = np.geomspace(1.0, 300.0, 64)  # fine enough that the mixture is unimodal
LEARNED_SHAPES = np.geomspace(0.5, 32.0, 7)
LEARNED_VARIANCES = np.geomspace(0.05, 1.0, 8)  # of a column, in units of R^2 / d


class FixedCorrelations:
    r"""LKJ(:math:`\eta`) in the free rows of a Cholesky factor: :math:`-\frac{d+2\eta-1}2\sum_j\log(1+\|a_j\|^2)`."""

    def __init__(self, n_features, eta):
        self.exponent = (n_features + 2 * eta - 1) / 2

    def __call__(self, spread):
        """Log-density for the sum of the logarithms, and minus its derivative."""
        return -self.exponent * spread, self.exponent

    def radial(self, n, standard_error):
        """Coordinates for n entries of the rows: their own."""
        return Identity()


class LearnedCorrelations:
    r"""LKJ with a log-uniform :math:`\eta` between 1 and 300, on 64 points.

    Notes
    -----
    With :math:`e = (d+2\eta-1)/2` and :math:`q = \sum_j\log(1+\|a_j\|^2)` the density given :math:`\eta` is
    :math:`e^{-eq}/Z_e`, where row j, a t distribution up to its scale, has
    :math:`\pi^{(j-1)/2}\Gamma(e-\frac{j-1}2)/\Gamma(e)` in :math:`Z_e`.
    """

    def __init__(self, n_features):
        self.exponents = (n_features + 2 * LEARNED_ETAS - 1) / 2
        halves, e = np.arange(n_features) / 2, self.exponents[:, None]
        self.constants = -(halves * np.log(np.pi) + gammaln(e - halves) - gammaln(e)).sum(axis=1)

    def __call__(self, spread):
        """Log-density for the sum of the logarithms, and minus its derivative."""
        value, share = mixed(self.constants - self.exponents * spread[:, None])
        return value, (share @ self.exponents)[:, None]

    def radial(self, n, standard_error):
        r"""Coordinates for n entries of the rows, whose common size is uncertain, given their standard error.

        Given :math:`\eta` an entry is about :math:`1/\sqrt{d+2\eta-1}` in size; where columns are uncorrelated, it is
        at most of the size of the standard error. The map covers the logarithms of the sizes in between.
        """
        least, most = (2 * self.exponents[[-1, 0]]) ** -0.5
        return radial_between(n, least, min(most, standard_error))


class LearnedScales:
    r"""Variances that are Gamma with a common mean v and shape a, both log-uniform on a grid.

    Notes
    -----
    v is between 0.05 and 1 times :math:`R^2/d`, the largest mean variance that records of norm R can have, on 8 points;
    a between 1/2, where signed scales are normal, and 32, where they are nearly equal, on 7. Given both, the density of
    a signed scale is :math:`\frac{(a/v)^a}{\Gamma(a)}|\tau|^{2a-1}e^{-a\tau^2/v}`.
    """

    def __init__(self, n_features):
        shapes, variances = (grid.ravel() for grid in np.meshgrid(LEARNED_SHAPES, LEARNED_VARIANCES / n_features))
        self.powers, self.rates = 2 * shapes - 1, shapes / variances
        self.constants = n_features * (shapes * np.log(self.rates) - gammaln(shapes))

    def __call__(self, scales):
        """Log-density of signed scales and its gradient."""
        logs, squares = np.log(np.abs(scales)).sum(axis=1), np.vecdot(scales, scales)
        value, share = mixed(self.constants + self.powers * logs[:, None] - self.rates * squares[:, None])
        return value, (share @ self.powers)[:, None] / scales - 2 * (share @ self.rates)[:, None] * scales


def mixed(parts):
    """Logarithm of the sum of exponentials along the last axis, and the share of each."""
    largest = parts.max(axis=1, keepdims=True)
    weights = np.exp(parts - largest)
    total = weights.sum(axis=1, keepdims=True)
    return (largest + np.log(total))[:, 0], weights / total
