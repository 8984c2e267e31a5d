"""Parameters of a regression at given coordinates, with their prior and their gradient with respect to coordinates."""

import numpy as np

from skldp.models.regression._line import LinePoint
from skldp.models.regression._vector import VectorPoint


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
        self.vector = VectorPoint(coordinates.vector, matrix, mean, mean_scale)
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
