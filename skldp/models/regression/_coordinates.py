"""Unconstrained coordinates and priors of the regressions."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skldp.models.regression._covariance import CovarianceCoordinates

_MAX_COORDINATE = 1e4  # in scales of the prior; the density is set to zero beyond it


@dataclass(frozen=True)
class Priors:
    """Priors of the parameters of a regression, in public units: x of norm 1, responses between -1 and 1.

    Parameters
    ----------
    coef : NormalPrior or StudentPrior
        Prior of the coefficients.
    intercept_scale : float
        Prior standard deviation of the intercept.
    covariance : CovarianceCoordinates
        Coordinates of the scales and correlations of x, with their priors.
    mean : NormalPrior or LearnedMeans
        Prior of the means of x.
    sigma_scale : float or None
        Scale of the half-normal prior of the residual standard deviation; None if the model has no such parameter.
    """

    coef: Any
    intercept_scale: float
    covariance: CovarianceCoordinates
    mean: Any
    sigma_scale: float | None = None


class RegressionCoordinates:
    """Plain coordinates: coefficients, covariance of x, mean of x and intercept (if there is one), residual sigma.

    Parameters
    ----------
    priors : Priors
        Priors of all parameters.
    has_intercept : bool
        Whether there is an intercept, and a mean of x.
    """

    def __init__(self, priors, has_intercept):
        self.priors, self.has_intercept = priors, bool(has_intercept)
        self.n_features = d = priors.covariance.n_features
        sizes = [d, priors.covariance.n_params, d * self.has_intercept, int(self.has_intercept),
                 int(priors.sigma_scale is not None)]
        ends = np.cumsum(sizes).tolist()
        self.pieces, self.n_params = [slice(end - size, end) for end, size in zip(ends, sizes)], ends[-1]

    @property
    def largest_scale(self):
        """Largest scale among the priors."""
        return max(1.0, self.priors.coef.scale)

    def expand(self, theta):
        """Return the parameters at coordinates of shape (n_walkers, n_params)."""
        return RegressionPoint(self, *(theta[:, piece] for piece in self.pieces))

    def to_plain(self, theta):
        """Return the plain coordinates of points; here the points themselves."""
        return theta

    def from_plain(self, theta):
        """Return these coordinates of points in plain coordinates; here the points themselves."""
        return theta

    def clip_mean(self, estimate):
        """Return an estimate of the mean of x, clipped to three prior standard deviations and to half the norm."""
        most = min(0.5, 3 * self.priors.mean.scale)
        return np.clip(estimate, -most, most)

    def prior_start(self):
        """Return a starting point for the case without reports."""
        return self.start(np.full(self.n_features, 0.01), np.eye(self.n_features) / (4 * self.n_features), sigma=0.1)

    def start(self, coef, covariance, x_mean=None, intercept=0.0, sigma=None):
        """Return the coordinates of given parameters."""
        x_mean = np.zeros(self.n_features) if x_mean is None else x_mean
        values = [coef, self.priors.covariance.coordinates(covariance), x_mean, [intercept], [sigma]]
        theta = np.empty(self.pieces[-1].stop)
        for piece, value in zip(self.pieces, values):
            if piece.stop > piece.start:
                theta[piece] = value
        return self.from_plain(theta[None])[0]


class RegressionPoint:
    """Parameters at given coordinates, and the gradient with respect to the coordinates.

    Attributes
    ----------
    coef : ndarray of shape (n_walkers, d)
    covariance : ndarray of shape (n_walkers, d, d)
    x_mean : ndarray of shape (n_walkers, d) or None
    intercept, sigma : ndarray of shape (n_walkers,) or None
        Sigma is signed; the data identify only its absolute value.
    """

    def __init__(self, coordinates, coef, matrix, x_mean, intercept, sigma):
        self.coordinates, self.priors, self.coef = coordinates, coordinates.priors, coef
        self.matrix = self.priors.covariance.expand(matrix)
        self.covariance = self.matrix.covariance
        self.x_mean = x_mean if coordinates.has_intercept else None
        self.intercept = intercept[:, 0] if coordinates.has_intercept else None
        self.sigma = None if self.priors.sigma_scale is None else sigma[:, 0]

    @cached_property
    def coef_prior(self):
        """Log-density of the coefficients and its gradient."""
        return self.priors.coef(self.coef)

    @cached_property
    def mean_prior(self):
        """Log-density of the means of x and its gradient."""
        return self.priors.mean(self.x_mean)

    def log_prior(self):
        """Return the log-density of the prior with respect to the coordinates."""
        value = self._log_prior_without_sigma()
        return value if self.sigma is None else value - 0.5 * (self.sigma / self.priors.sigma_scale) ** 2

    def _log_prior_without_sigma(self):
        """Return the log-density of the prior of all parameters except sigma."""
        value = self.coef_prior[0] + self.matrix.log_prior()
        if self.x_mean is None:
            return value
        return value + self.mean_prior[0] - 0.5 * (self.intercept / self.priors.intercept_scale) ** 2

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None, by_sigma_square=None):
        """Return the gradient with respect to the coordinates, prior included.

        The arguments are the derivatives of the log-likelihood with respect to the parameters.
        """
        pieces = [by_coef + self.coef_prior[1], self.matrix.pull_back(by_covariance)]
        if self.x_mean is not None:
            by_intercept = by_intercept - self.intercept / self.priors.intercept_scale**2
            pieces += [by_mean + self.mean_prior[1], by_intercept[:, None]]
        return np.concatenate(pieces + self.sigma_gradient(by_sigma_square), axis=1)

    def sigma_gradient(self, by_square):
        """Return the derivative with respect to sigma, prior included, as a list of one column or of none.

        The argument is the derivative of the log-likelihood with respect to the square of sigma.
        """
        if self.sigma is None:
            return []
        return [((2 * by_square - 1 / self.priors.sigma_scale**2) * self.sigma)[:, None]]


def evaluate_within_bounds(evaluate, theta, with_gradient, scale=1.0):
    """Return a log-density and its gradient; the log-density is -inf beyond ``_MAX_COORDINATE`` or where it is NaN.

    Without the bound a diverging trajectory would pass infinities to an eigenvalue solver.
    """
    beyond = ~(np.abs(theta).max(axis=1) < _MAX_COORDINATE * scale)
    if beyond.any():
        theta = np.where(beyond[:, None], 0.1, theta)
    with np.errstate(all="ignore"):
        value, gradient = evaluate(theta, with_gradient)
    return np.where(beyond | np.isnan(value), -np.inf, value), gradient
