"""Coordinates of the mean and covariance of a vector, with their prior and their gradient."""

from functools import cached_property
from typing import Any

import numpy as np

from skldp.models.regression._covariance import CovarianceCoordinates, HalfNormalScales, LearnedScales

# The density is set to zero beyond these: they keep diverging trajectories from overflow.
MAX_RESIDUAL, MAX_LOG = 1e4, 30.0
# Learned scale of the means: its median, and the standard deviation of its logarithm.
_MEAN_SCALE = 0.05, np.log(10.0) / 2


class VectorCoordinates:
    r"""Coordinates of the mean and covariance of x, in which the means are standardised residuals.

    Parameters
    ----------
    priors : Priors
        Priors of all parameters.
    has_mean : bool
        Whether there is a mean. Without one the covariance stands for the second moments.
    n_features : int
        Length d of x.
    reported : ReportedMoments
        Estimated moments of x, and perhaps of responses, on which nothing but the choice of coordinates depends.

    Notes
    -----
    The covariance has the coordinates of :class:`CovarianceCoordinates`. Reports determine the mean with an inverse
    variance :math:`c_m^2`, so with the precision :math:`p = 1/s_m^2 + c_m^2` the residual in

    .. math:: m = \frac{c_m^2\hat m}p + \frac{z_m}{\sqrt p}

    is nearly standard normal. If the scale :math:`s_m` is learned, :math:`\log s_m` is a coordinate in prior standard
    deviations.
    """

    def __init__(self, priors, has_mean, n_features, reported):
        self.has_mean, self.n_features = bool(has_mean), n_features
        self.mean_scale, self.mean_information = priors.mean_scale, reported.mean_information
        self.x_mean = clip_moments(reported.mean[:n_features], reported.mean_information)
        covariance = reported.covariance[:n_features, :n_features]
        self.matrix = CovarianceCoordinates(n_features, _scales(priors, reported, np.diag(covariance)), priors.lkj_eta,
                                            pivot_order(covariance))
        self.sizes = [self.matrix.n_params, n_features * self.has_mean, int(self.has_mean and self.mean_scale is None)]
        self.limits = np.repeat([MAX_LOG, MAX_RESIDUAL, MAX_LOG], self.sizes)
        ends = np.cumsum(self.sizes).tolist()
        self.pieces, self.n_params = [slice(end - size, end) for end, size in zip(ends, self.sizes)], ends[-1]

    def expand(self, theta):
        """Return the parameters at coordinates of shape (n_walkers, n_params)."""
        return VectorPoint(self, *(theta[:, piece] for piece in self.pieces))

    def convert(self, theta, other):
        """Return these coordinates of points in other coordinates of the same parameters."""
        point = other.expand(theta)
        return self.of_parameters(point.covariance, point.x_mean)

    def start(self, covariance):
        """Return the coordinates of conditional means given a covariance of x, shape (n_params,)."""
        theta = np.zeros(self.n_params)
        theta[self.pieces[0]] = self.matrix.coordinates(covariance[None])[0]
        return theta

    def of_parameters(self, covariance, x_mean=None):
        """Return the coordinates of given parameters, with the most likely values of learned scales."""
        theta, (matrix, mean, scale) = np.zeros((len(covariance), self.n_params)), self.pieces
        theta[:, matrix] = self.matrix.coordinates(covariance)
        if scale.stop > scale.start:
            size = np.sqrt(np.mean(x_mean**2, axis=1, keepdims=True) + _MEAN_SCALE[0] ** 2 / 100)
            theta[:, scale] = np.log(size / _MEAN_SCALE[0]) / _MEAN_SCALE[1]
        if self.has_mean:
            # Residuals of zero give the conditional means, from which the residuals follow.
            point = self.expand(theta)
            theta[:, mean] = (x_mean - point.x_mean) * np.sqrt(point.mean_precision)
        return theta


def _scales(priors, reported, variances):
    """Return the coordinates of the scales of x, whose variances are estimated."""
    if priors.covariance_scale is not None:
        return HalfNormalScales(len(variances), priors.covariance_scale)
    # The variance of a reported variance is twice that of a product; d tau^2 = 2 tau^2 d log tau.
    information = 2 * np.mean(variances) ** 2 * reported.cross_information
    return LearnedScales(len(variances), 0.5 * np.log(variances), information, priors.learned_scales)


class VectorPoint:
    """Mean and covariance of x at given coordinates, with their prior and their gradient.

    Attributes
    ----------
    covariance : ndarray of shape (n_walkers, d, d)
    x_mean : ndarray of shape (n_walkers, d) or None
    values, vectors : ndarray of shape (n_walkers, d) and (n_walkers, d, d)
        Eigenvalues and eigenvectors of the covariance.
    """

    def __init__(self, coordinates, matrix, mean, mean_scale):
        self.coordinates = coordinates
        self.matrix = coordinates.matrix.expand(matrix)
        self.covariance = self.matrix.covariance
        self.x_mean: Any = None
        if coordinates.has_mean:
            self.mean_scale = mean_scale
            scale = _MEAN_SCALE[0] * np.exp(_MEAN_SCALE[1] * mean_scale) if mean_scale.size else coordinates.mean_scale
            self.mean_prior_precision = np.broadcast_to(scale, (len(matrix), 1)) ** -2.0
            self.mean_precision = self.mean_prior_precision + coordinates.mean_information  # p
            self.x_mean = coordinates.mean_information * coordinates.x_mean / self.mean_precision
            self.x_mean = self.x_mean + mean / np.sqrt(self.mean_precision)

    @cached_property
    def _spectrum(self):
        return np.linalg.eigh(self.covariance)

    @property
    def values(self):
        """Eigenvalues of the covariance."""
        return self._spectrum[0]

    @property
    def vectors(self):
        """Eigenvectors of the covariance."""
        return self._spectrum[1]

    def log_prior(self):
        """Return the log-density of the prior with respect to the coordinates."""
        value = self.matrix.log_prior()
        if self.x_mean is None:
            return value
        prior_precision, precision = self.mean_prior_precision[:, 0], self.mean_precision[:, 0]
        value += 0.5 * self.x_mean.shape[1] * np.log(prior_precision / precision)
        value -= 0.5 * prior_precision * np.vecdot(self.x_mean, self.x_mean)
        return value - 0.5 * np.vecdot(self.mean_scale, self.mean_scale)

    def pull_back(self, by_covariance, by_mean):
        """Return derivatives with respect to the coordinates of the covariance, the mean and its scale."""
        by_matrix = self.matrix.pull_back(by_covariance)
        if self.x_mean is None:
            return by_matrix, None, None
        by_mean = by_mean - self.mean_prior_precision * self.x_mean
        by_scale = self._by_mean_scale(by_mean) if self.mean_scale.size else None
        return by_matrix, by_mean / np.sqrt(self.mean_precision), by_scale

    def _by_mean_scale(self, by_mean):
        """Return the derivative with respect to the learned scale of the means."""
        # d p = -2 / s^2 d log s, m = c^2 m / p + z / sqrt(p)
        share = self.mean_prior_precision / self.mean_precision
        coordinates = self.coordinates
        slope = share * (self.x_mean + coordinates.mean_information * coordinates.x_mean / self.mean_precision)
        by_log = np.vecdot(by_mean, slope) + share[:, 0] * self.x_mean.shape[1] - self.x_mean.shape[1]
        by_log += self.mean_prior_precision[:, 0] * np.vecdot(self.x_mean, self.x_mean)
        return _MEAN_SCALE[1] * by_log[:, None] - self.mean_scale

    def gradient(self, by_covariance, by_mean=None):
        """Return the gradient with respect to all coordinates, prior included."""
        pieces = self.pull_back(by_covariance, by_mean)
        return np.concatenate([piece for piece in pieces if piece is not None], axis=1)


def clip_moments(moments, information):
    """Return moments that are at most five standard errors outside [-1, 1], as those of forged reports may be."""
    bound = 1 + 5 / np.sqrt(information) if information else 1.0
    return np.clip(moments, -bound, bound)


def pivot_order(covariance):
    """Return the order of columns in which each has the largest remainder, given those before it."""
    remainder = covariance.copy()
    order: list[int] = []
    for _ in range(len(covariance)):
        free = np.diag(remainder).copy()
        free[order] = -np.inf
        pivot = int(np.argmax(free))
        column = remainder[:, pivot].copy()
        remainder -= np.outer(column, column) / column[pivot]
        order.append(pivot)
    return np.array(order)
