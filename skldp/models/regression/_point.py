"""Parameters of a regression at given coordinates, with their prior and their gradient with respect to coordinates."""

from typing import Any

import numpy as np

from skldp.models.regression._line import LinePoint

# Learned scale of the means: its median, and the standard deviation of its logarithm.
MEAN_SCALE = 0.05, np.log(10.0) / 2


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
        if coordinates.has_intercept:
            self.mean_scale = mean_scale
            scale = MEAN_SCALE[0] * np.exp(MEAN_SCALE[1] * mean_scale) if mean_scale.size else coordinates.mean_scale
            self.mean_prior_precision = np.broadcast_to(scale, (len(matrix), 1)) ** -2.0
            self.mean_precision = self.mean_prior_precision + coordinates.mean_information  # p
            self.x_mean = coordinates.mean_information * coordinates.x_mean / self.mean_precision
            self.x_mean = self.x_mean + mean / np.sqrt(self.mean_precision)
        self.values, self.vectors = np.linalg.eigh(self.covariance)

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
        return MEAN_SCALE[1] * by_log[:, None] - self.mean_scale


class RegressionPoint:
    """Parameters at given coordinates, and the gradient with respect to the coordinates.

    With k > 1 responses, coefficients, intercepts and residual standard deviations have an axis for them.

    Attributes
    ----------
    coef : ndarray of shape (n_walkers, d) or (n_walkers, k, d)
    covariance : ndarray of shape (n_walkers, d, d)
    x_mean : ndarray of shape (n_walkers, d) or None
    intercept, sigma : ndarray of shape (n_walkers,) or (n_walkers, k), or None
    correlation : ndarray of shape (n_walkers, k, k) or None
        Correlations of the residuals of several responses.
    """

    def __init__(self, coordinates, z, matrix, mean, constant, sigma, log_scale, mean_scale, correlation):
        k = len(coordinates.lines)
        self.vector = VectorPoint(coordinates, matrix, mean, mean_scale)
        parts = zip(coordinates.lines, *(np.split(piece, k, axis=1) for piece in (z, constant, sigma, log_scale)))
        self.lines = [LinePoint(line, self.vector, *pieces) for line, *pieces in parts]
        self.covariance, self.x_mean = self.vector.covariance, self.vector.x_mean
        self.coef, self.intercept, self.sigma = (self._joined([getattr(line, name) for line in self.lines])
                                                 for name in ("coef", "intercept", "sigma"))
        self.correlations = coordinates.correlations.expand(correlation) if correlation.size else None
        self.correlation = None if self.correlations is None else self.correlations.covariance

    def _joined(self, values):
        """Return the values of all responses as one array; those of a single one have no axis for responses."""
        if len(values) == 1 or values[0] is None:
            return values[0]
        return np.stack(values, axis=1)

    def _of_response(self, values, place):
        """Return the part of an array that belongs to a response."""
        return values if values is None or len(self.lines) == 1 else values[:, place]

    def log_prior(self):
        """Return the log-density of the prior with respect to the coordinates."""
        value = sum(line.log_prior() for line in self.lines) + self.vector.log_prior()
        return value if self.correlations is None else value + self.correlations.log_prior()

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None, by_sigma_square=None,
                 by_correlation=None):
        """Return the gradient with respect to the coordinates, prior included.

        The arguments are the derivatives of the log-likelihood with respect to the parameters.
        """
        lines = [line.pull_back(*(self._of_response(by, place) for by in (by_coef, by_intercept, by_sigma_square)))
                 for place, line in enumerate(self.lines)]
        for line in lines:
            by_covariance = by_covariance + line.covariance
            by_mean = None if line.x_mean is None else by_mean + line.x_mean
        by_matrix, by_mean, by_mean_scale = self.vector.pull_back(by_covariance, by_mean)
        pieces = [np.concatenate([line.z for line in lines], axis=1), by_matrix, by_mean]
        pieces += [None if getattr(lines[0], name) is None else np.column_stack([getattr(line, name) for line in lines])
                   for name in ("constant", "sigma", "log_scale")]
        pieces += [by_mean_scale, None if self.correlations is None else self.correlations.pull_back(by_correlation)]
        return np.concatenate([piece for piece in pieces if piece is not None], axis=1)
