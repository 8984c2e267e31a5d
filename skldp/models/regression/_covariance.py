"""Unconstrained coordinates of a covariance matrix, with its prior."""

from functools import cached_property

import numpy as np


class CovarianceCoordinates:
    r"""Signed scales and free rows of a Cholesky factor, under LKJ correlations.

    Parameters
    ----------
    n_features : int
        Order d of the matrix.
    scale_prior : NormalPrior or LearnedScales
        Prior of the signed scales.
    correlation_prior : FixedCorrelations or LearnedCorrelations
        Prior of the correlations.

    Notes
    -----
    :math:`\Sigma = LL^T`, and row j of L is :math:`\tau_j(a_j, 1)/\|(a_j, 1)\|` with free
    :math:`a_j \in R^{j-1}`. The signed :math:`\tau_j \sim N(0, s)` is smooth through zero, where its logarithm would
    make a funnel; only :math:`|\tau_j|` and :math:`\Sigma` are identified. In these coordinates the density of
    LKJ(:math:`\eta`), Jacobian included, is :math:`-\frac{d + 2\eta - 1}2\sum_j\log(1 + \|a_j\|^2)`.

    References
    ----------
    D. Lewandowski, D. Kurowicka, H. Joe (2009). Generating random correlation matrices based on vines and extended
    onion method. Journal of Multivariate Analysis 100.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models.regression._covariance import CovarianceCoordinates
    >>> from skldp.models.regression._covariance_priors import FixedCorrelations
    >>> from skldp.models.regression._vector_priors import NormalPrior
    >>> coordinates = CovarianceCoordinates(2, NormalPrior(0.5), FixedCorrelations(2, 2.0))
    >>> point = coordinates.expand(np.array([[2.0, 1.0, 0.0]]))
    >>> point.covariance[0]
    array([[4., 0.],
           [0., 1.]])
    """

    def __init__(self, n_features, scale_prior, correlation_prior):
        self.n_features, self.scale_prior, self.correlation_prior = n_features, scale_prior, correlation_prior
        self.rows, self.columns = np.tril_indices(n_features, -1)
        self.places = self.rows * n_features + self.columns
        self.n_params = n_features * (n_features + 1) // 2

    def expand(self, theta):
        """Covariance matrices of coordinates, shape (n_walkers, n_params): the scales, then the rows."""
        return _Point(self, theta)

    def coordinates(self, covariance):
        """Coordinates of one covariance matrix, with positive scales."""
        factor = np.linalg.cholesky(covariance)
        free = (factor / np.diag(factor)[:, None])[self.rows, self.columns]
        return np.concatenate([np.sqrt(np.diag(covariance)), free])


class _Point:
    """Covariance matrices at some coordinates, and how slopes travel back."""

    def __init__(self, coordinates, theta):
        self.coordinates = coordinates
        d = coordinates.n_features
        self.scales = theta[:, :d]
        flat = np.zeros((len(theta), d * d))
        flat[:, coordinates.places] = theta[:, d:]
        flat[:, ::d + 1] = 1.0
        rows = flat.reshape(-1, d, d)
        self.square = np.vecdot(rows, rows)
        self.length = np.sqrt(self.square)
        self.unit = np.divide(rows, self.length[:, :, None], out=rows)
        self.factor = self.scales[:, :, None] * self.unit
        self.covariance = self.factor @ self.factor.swapaxes(1, 2)

    @cached_property
    def _priors(self):
        """What the priors of scales and of correlations return."""
        spread = np.log(self.square).sum(axis=1)
        return self.coordinates.scale_prior(self.scales), self.coordinates.correlation_prior(spread)

    def log_prior(self):
        """Log-density of the coordinates."""
        return sum(value for value, _ in self._priors)

    def pull_back(self, slope):
        """Slope in the coordinates, prior included, of a slope in the covariance: of it, or of its symmetric part."""
        scales, ((_, by_prior), (_, exponent)) = self.scales, self._priors
        by_factor = (slope + slope.swapaxes(1, 2)) @ self.factor
        by_scale = np.vecdot(by_factor, self.unit)
        # Across the direction of a row; the prior pulls along it, in the coordinates as they are before scaling.
        across = scales[:, :, None] * by_factor
        across -= (scales * by_scale + 2 * exponent)[:, :, None] * self.unit
        across /= self.length[:, :, None]
        by_free = across.reshape(len(scales), -1)[:, self.coordinates.places]
        return np.concatenate([by_scale + by_prior, by_free], axis=1)


def matvec(matrices, vectors):
    """Matrices times vectors, one of each for every walker."""
    return (matrices @ vectors[:, :, None])[:, :, 0]
