"""Unconstrained coordinates of a covariance matrix, with its prior."""

from functools import cached_property

import numpy as np


class CovarianceCoordinates:
    r"""Coordinates of a covariance matrix: signed scales, and free rows of a Cholesky factor with an LKJ prior.

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
    :math:`a_j \in R^{j-1}`. The density of a signed :math:`\tau_j \sim N(0, s)` is smooth at zero, where its logarithm
    as a coordinate would make a funnel; only :math:`|\tau_j|` and :math:`\Sigma` are identified. In these coordinates
    the log-density of LKJ(:math:`\eta`), Jacobian included, is
    :math:`-\frac{d + 2\eta - 1}2\sum_j\log(1 + \|a_j\|^2)`.

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
        self.flat_indices = self.rows * n_features + self.columns
        self.n_params = n_features * (n_features + 1) // 2

    def expand(self, theta):
        """Return the covariance matrices at coordinates of shape (n_walkers, n_params): the scales, then the rows."""
        return _CovariancePoint(self, theta)

    def coordinates(self, covariance):
        """Return the coordinates of one covariance matrix, with positive scales."""
        factor = np.linalg.cholesky(covariance)
        free = (factor / np.diag(factor)[:, None])[self.rows, self.columns]
        return np.concatenate([np.sqrt(np.diag(covariance)), free])


class _CovariancePoint:
    """Covariance matrices at given coordinates, and the gradient with respect to the coordinates."""

    def __init__(self, coordinates, theta):
        self.coordinates = coordinates
        d = coordinates.n_features
        self.scales = theta[:, :d]
        flat = np.zeros((len(theta), d * d))
        flat[:, coordinates.flat_indices] = theta[:, d:]
        flat[:, ::d + 1] = 1.0
        rows = flat.reshape(-1, d, d)  # (a_j, 1)
        self.squared_norms = np.vecdot(rows, rows)
        self.norms = np.sqrt(self.squared_norms)
        self.unit_rows = np.divide(rows, self.norms[:, :, None], out=rows)
        self.factor = self.scales[:, :, None] * self.unit_rows
        self.covariance = self.factor @ self.factor.swapaxes(1, 2)

    @cached_property
    def _priors(self):
        """Log-densities and derivatives of the priors of scales and of correlations."""
        log_norms = np.log(self.squared_norms).sum(axis=1)
        return self.coordinates.scale_prior(self.scales), self.coordinates.correlation_prior(log_norms)

    def log_prior(self):
        """Log-density of the prior with respect to the coordinates."""
        return sum(value for value, _ in self._priors)

    def pull_back(self, by_covariance):
        """Return the gradient with respect to the coordinates, prior included.

        The argument is the derivative with respect to the covariance; only its symmetric part matters.
        """
        scales, ((_, scale_gradient), (_, exponent)) = self.scales, self._priors
        by_factor = (by_covariance + by_covariance.swapaxes(1, 2)) @ self.factor  # d L = (G + G') L
        by_scale = np.vecdot(by_factor, self.unit_rows)  # d tau_j = d L_j . u_j, u_j = (a_j, 1) / |(a_j, 1)|
        # d a_j = (tau_j (d L_j - (d L_j . u_j) u_j) - 2 e u_j) / |(a_j, 1)|, e the exponent of the LKJ prior
        by_rows = scales[:, :, None] * by_factor
        by_rows -= (scales * by_scale + 2 * exponent)[:, :, None] * self.unit_rows
        by_rows /= self.norms[:, :, None]
        by_free = by_rows.reshape(len(scales), -1)[:, self.coordinates.flat_indices]
        return np.concatenate([by_scale + scale_gradient, by_free], axis=1)


def matvec(matrices, vectors):
    """Return matrices times vectors, one of each for every walker."""
    return (matrices @ vectors[:, :, None])[:, :, 0]
