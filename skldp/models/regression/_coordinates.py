"""Unconstrained coordinates and priors that the regressions share."""

from functools import cached_property

import numpy as np

from skldp.models.regression._covariance import CovarianceCoordinates
from skldp.models.regression._vector_priors import mean_prior

_ASTRAY = 1e4  # scales of the prior; none reaches there


class RegressionCoordinates:
    r"""Coefficients, covariance of x and, with an intercept, mean of x and intercept, in public units.

    Parameters
    ----------
    n_features : int
        Number d of coefficients.
    has_intercept : bool
        Whether there is an intercept, and a mean of x.
    prior : callable
        Log-density of the coefficients with its gradient.
    intercept_scale : float
        Standard deviation of the intercept.
    covariance_scale : "auto", "learned" or float
        Standard deviation of the signed scales of x; 1/2 for "auto"; "learned" from the reports.
    lkj_eta : "learned" or float
        Parameter of the LKJ prior of the correlations of x.
    mean_scale : "auto", "learned" or float
        Standard deviation of the means of x; 1/2 for "auto"; "learned" from the reports.
    """

    def __init__(self, n_features, has_intercept, prior, intercept_scale, covariance_scale, lkj_eta, mean_scale):
        self.n_features, self.has_intercept, self.prior = n_features, bool(has_intercept), prior
        self.intercept_scale = intercept_scale
        self.mean_prior = mean_prior(mean_scale, n_features)
        self.matrices = CovarianceCoordinates(n_features, covariance_scale, lkj_eta)
        sizes = [n_features, self.matrices.n_params, n_features * self.has_intercept, int(self.has_intercept)]
        ends = np.cumsum(sizes).tolist()
        self._pieces, self.n_params = [slice(end - size, end) for end, size in zip(ends, sizes)], ends[-1]

    @property
    def largest(self):
        """Size of the largest scale among the priors."""
        return max(1.0, self.prior.scale)

    def expand(self, theta):
        """Parameters of coordinates, shape (n_walkers, n_params)."""
        return RegressionPoint(self, *(theta[:, piece] for piece in self._pieces))

    def likely_mean(self, estimate):
        """An estimate of the mean of x, pulled to where the prior has it."""
        most = min(0.5, 3 * self.mean_prior.scale)
        return np.clip(estimate, -most, most)

    def prior_start(self):
        """A point that is possible before any report."""
        return self.start(np.full(self.n_features, 0.01), np.eye(self.n_features) / (4 * self.n_features))

    def start(self, coef, covariance, x_mean=None, intercept=0.0):
        """Coordinates of given parameters."""
        pieces = [coef, self.matrices.coordinates(covariance)]
        x_mean = np.zeros(self.n_features) if x_mean is None else x_mean
        return np.concatenate([*pieces, x_mean, [intercept]] if self.has_intercept else pieces)


class RegressionPoint:
    """Parameters at some coordinates, and how slopes travel back.

    Attributes
    ----------
    coef : ndarray of shape (n_walkers, d)
    covariance : ndarray of shape (n_walkers, d, d)
    x_mean : ndarray of shape (n_walkers, d) or None
    intercept : ndarray of shape (n_walkers,) or None
    """

    def __init__(self, coordinates, coef, matrix, x_mean, intercept):
        self.coordinates, self.coef = coordinates, coef
        self.matrix = coordinates.matrices.expand(matrix)
        self.covariance = self.matrix.covariance
        self.x_mean = x_mean if coordinates.has_intercept else None
        self.intercept = intercept[:, 0] if coordinates.has_intercept else None

    @cached_property
    def coef_prior(self):
        """Log-density of the coefficients with its gradient."""
        return self.coordinates.prior(self.coef)

    @cached_property
    def mean_prior(self):
        """Log-density of the means of x with its gradient."""
        return self.coordinates.mean_prior(self.x_mean)

    def log_prior(self):
        """Log-density of the prior."""
        value = self.coef_prior[0] + self.matrix.log_prior()
        if self.x_mean is None:
            return value
        return value + self.mean_prior[0] - 0.5 * (self.intercept / self.coordinates.intercept_scale) ** 2

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None):
        """Gradient in the coordinates, prior included, of slopes in the parameters."""
        pieces = [by_coef + self.coef_prior[1], self.matrix.pull_back(by_covariance)]
        if self.x_mean is not None:
            by_intercept = by_intercept - self.intercept / self.coordinates.intercept_scale**2
            pieces += [by_mean + self.mean_prior[1], by_intercept[:, None]]
        return np.concatenate(pieces, axis=1)


def guarded(evaluate, theta, slopes, scale=1.0):
    """Evaluate where the parameters are of a possible size; elsewhere the density is zero.

    A trajectory that has gone astray would otherwise end in an eigenvalue problem of infinities.
    """
    astray = ~(np.abs(theta).max(axis=1) < _ASTRAY * scale)
    if astray.any():
        theta = np.where(astray[:, None], 0.1, theta)
    with np.errstate(all="ignore"):
        value, slope = evaluate(theta, slopes)
    return np.where(astray | np.isnan(value), -np.inf, value), slope
