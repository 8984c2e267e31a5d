"""Unconstrained coordinates of a covariance matrix, with its prior."""

from functools import cached_property

import numpy as np

# Prior of the scales: deviations from the common scale, and standard deviation of the logarithm of that scale.
_SPREAD, _SPREAD_FREEDOM, _COMMON = 0.2, 3.0, 0.3
_TINY = 1e-30  # added to squared norms, so that ratios such as tanh(r) / r are defined at zero


class CovarianceCoordinates:
    r"""Coordinates of a covariance matrix: logarithms of scales, and free rows of a Cholesky factor.

    Parameters
    ----------
    n_features : int
        Order d of the matrix.
    scale_prior : HalfNormalScales or LearnedScales
        Prior of the scales.
    eta : float
        Parameter of the LKJ prior of the correlations.
    order : ndarray of shape (d,) or None, default=None
        Order of the columns in the Cholesky factor. A column that is nearly a combination of others should come last,
        because the rows after it are barely determined in the direction of its remainder.

    Notes
    -----
    :math:`\Sigma = LL^T`, and row j of L is :math:`\tau_j(t_j\tanh(r_j)/r_j, 1/\cosh r_j)`, a point of a half sphere
    given by a free :math:`t_j \in R^{j-1}` of norm :math:`r_j`. Columns that are nearly collinear have small last
    entries; their logarithm is nearly linear in :math:`r_j`, so that walkers get there and back. The coordinates are
    :math:`\log\tau_j` and :math:`t_j`. The log-density of LKJ(:math:`\eta`), Jacobian included, is

    .. math:: \sum_j\left((j - 2)\log\frac{\sinh r_j}{r_j} - (d + 2\eta - 2)\log\cosh r_j\right).

    References
    ----------
    D. Lewandowski, D. Kurowicka, H. Joe (2009). Generating random correlation matrices based on vines and extended
    onion method. Journal of Multivariate Analysis 100.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models.regression._covariance import CovarianceCoordinates, HalfNormalScales
    >>> coordinates = CovarianceCoordinates(2, HalfNormalScales(0.5), eta=2.0)
    >>> point = coordinates.expand(np.array([[np.log(2.0), 0.0, 0.0]]))
    >>> point.covariance[0]
    array([[4., 0.],
           [0., 1.]])
    """

    def __init__(self, n_features, scale_prior, eta, order=None):
        self.n_features, self.scale_prior = n_features, scale_prior
        self.order = np.arange(n_features) if order is None else order
        self.places = np.argsort(self.order)
        rows, columns = np.tril_indices(n_features, -1)
        self.flat_indices = rows * n_features + columns
        self.n_params = n_features * (n_features + 1) // 2
        self.sinh_power = np.arange(n_features) - 1.0  # j - 2 for j from 1
        self.cosh_power = n_features + 2 * eta - 2

    def expand(self, theta):
        """Return the covariance matrices at coordinates of shape (n_walkers, n_params): log scales, then rows."""
        return _CovariancePoint(self, theta)

    def coordinates(self, covariance):
        """Return the coordinates of covariance matrices, shape (n_walkers, d, d)."""
        covariance = covariance[:, self.order][:, :, self.order]
        scales = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        rows = np.linalg.cholesky(covariance) / scales[:, :, None]
        last = np.diagonal(rows, axis1=1, axis2=2)
        beside = np.sqrt(np.maximum(1 - last**2, _TINY))  # tanh r
        free = rows * (np.arccosh(np.maximum(1 / last, 1.0)) / beside)[:, :, None]
        return np.concatenate([np.log(scales), free.reshape(len(free), -1)[:, self.flat_indices]], axis=1)


class _CovariancePoint:
    """Covariance matrices at given coordinates, and the gradient with respect to the coordinates."""

    def __init__(self, coordinates, theta):
        self.coordinates = coordinates
        d = coordinates.n_features
        self.log_scales = theta[:, :d]
        flat = np.zeros((len(theta), d * d))
        flat[:, coordinates.flat_indices] = theta[:, d:]
        self.free = flat.reshape(-1, d, d)  # t_j
        self.norms = np.sqrt(np.vecdot(self.free, self.free) + _TINY)  # r_j
        self.tanh = np.tanh(self.norms)
        self.log_cosh = self.norms + np.log1p(np.exp(-2 * self.norms)) - np.log(2)
        self.unit_rows = self.free * (self.tanh / self.norms)[:, :, None]
        self.unit_rows.reshape(len(theta), -1)[:, ::d + 1] = np.exp(-self.log_cosh)
        self.factor = (np.exp(self.log_scales)[:, :, None] * self.unit_rows)[:, coordinates.places]
        self.covariance = self.factor @ self.factor.swapaxes(1, 2)

    @cached_property
    def _scale_prior(self):
        return self.coordinates.scale_prior(self.log_scales)

    def log_prior(self):
        """Log-density of the prior with respect to the coordinates."""
        log_ratio = self.log_cosh + np.log(self.tanh / self.norms)  # log(sinh r / r)
        rows = log_ratio @ self.coordinates.sinh_power - self.coordinates.cosh_power * self.log_cosh.sum(axis=1)
        return self._scale_prior[0] + rows

    def pull_back(self, by_covariance):
        """Return the gradient with respect to the coordinates, prior included.

        The argument is the derivative with respect to the covariance; only its symmetric part matters.
        """
        d, r, tanh = self.coordinates.n_features, self.norms, self.tanh
        by_factor = (by_covariance + by_covariance.swapaxes(1, 2)) @ self.factor  # d L = (G + G') L
        by_rows = np.exp(self.log_scales)[:, :, None] * by_factor[:, self.coordinates.order]  # d u_j
        by_log_scale = np.vecdot(by_rows, self.unit_rows) + self._scale_prior[1]
        ratio, inverse_cosh = tanh / r, np.exp(-self.log_cosh)
        # u = (t tanh(r) / r, 1 / cosh r): d t = (tanh r / r) du + t (d r) / r, with d r along t
        by_last = by_rows.reshape(len(r), -1)[:, ::d + 1]
        along = (inverse_cosh**2 - ratio) * np.vecdot(by_rows, self.free) / r - by_last * tanh * inverse_cosh
        along += self.coordinates.sinh_power * (1 / tanh - 1 / r) - self.coordinates.cosh_power * tanh
        by_free = ratio[:, :, None] * by_rows + (along / r)[:, :, None] * self.free
        by_free = by_free.reshape(len(r), -1)[:, self.coordinates.flat_indices]
        return np.concatenate([by_log_scale, by_free], axis=1)


class HalfNormalScales:
    """Prior of independent half-normal scales."""

    def __init__(self, std):
        self.std = std

    def __call__(self, log_scales):
        """Return the log-density of logarithms of scales, and its gradient."""
        squares = (np.exp(log_scales) / self.std) ** 2
        return (log_scales - 0.5 * squares).sum(axis=1), 1 - squares


class LearnedScales:
    r"""Prior of scales with a common size and a spread that are learned from the reports.

    Notes
    -----
    The mean of :math:`\log\tau_j` is normal around :math:`\log(R/2\sqrt d)` with standard deviation 0.3: records of
    norm R have a mean variance of at most :math:`R^2/d`. The deviations from it have a multivariate t distribution with
    three degrees of freedom and scale 0.2, that is, a normal distribution with an unknown spread that is integrated
    out. So columns with similar scales inform each other, and others do not have to.
    """

    def __init__(self, n_features):
        self.centre = np.log(0.5) - 0.5 * np.log(n_features)
        self.power = _SPREAD_FREEDOM + n_features - 1

    def __call__(self, log_scales):
        """Return the log-density of logarithms of scales, and its gradient."""
        shift = log_scales.mean(axis=1, keepdims=True) - self.centre
        deviation = log_scales - self.centre - shift
        width = _SPREAD_FREEDOM * _SPREAD**2
        ratio = 1 + np.vecdot(deviation, deviation) / width
        value = -0.5 * (shift[:, 0] / _COMMON) ** 2 - 0.5 * self.power * np.log(ratio)
        by_shift = -shift / (_COMMON**2 * log_scales.shape[1])
        return value, by_shift - self.power / width * deviation / ratio[:, None]


def matvec(matrices, vectors):
    """Return matrices times vectors, one of each for every walker."""
    return (matrices @ vectors[:, :, None])[:, :, 0]
