"""Unconstrained coordinates and priors that the regressions share."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skldp.models.regression._covariance import CovarianceCoordinates

_MAX_COORDINATE = 1e4  # in scales of the prior; farther out the density is taken to be zero


@dataclass(frozen=True)
class Priors:
    """Priors of the parameters of a regression, in public units: x of norm 1, responses between -1 and 1.

    Parameters
    ----------
    coef : NormalPrior or StudentPrior
        Of the coefficients.
    intercept_scale : float
        Standard deviation of the intercept.
    covariance : CovarianceCoordinates
        Scales and correlations of x.
    mean : NormalPrior or LearnedMeans
        Of the means of x.
    sigma_scale : float or None
        Scale of the half-normal prior of the residual standard deviation; None where the response has none.
    """

    coef: Any
    intercept_scale: float
    covariance: CovarianceCoordinates
    mean: Any
    sigma_scale: float | None = None


class RegressionCoordinates:
    """Coefficients, covariance of x, with an intercept the mean of x and the intercept, and the residual sigma.

    Parameters
    ----------
    priors : Priors
        Priors of all of them.
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
        """Return the plain coordinates of these: themselves."""
        return theta

    def from_plain(self, theta):
        """Return these coordinates of plain ones: themselves."""
        return theta

    def likely_mean(self, estimate):
        """Clip an estimate of the mean of x to three prior standard deviations, and to half the norm."""
        most = min(0.5, 3 * self.priors.mean.scale)
        return np.clip(estimate, -most, most)

    def prior_start(self):
        """Return a point that is possible before any report."""
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
    """Parameters at given coordinates, and the chain rule back to the coordinates.

    Attributes
    ----------
    coef : ndarray of shape (n_walkers, d)
    covariance : ndarray of shape (n_walkers, d, d)
    x_mean : ndarray of shape (n_walkers, d) or None
    intercept, sigma : ndarray of shape (n_walkers,) or None
        Sigma is signed: what the data identify is its absolute value.
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
        """Log-density of the coefficients with its gradient."""
        return self.priors.coef(self.coef)

    @cached_property
    def mean_prior(self):
        """Log-density of the means of x with its gradient."""
        return self.priors.mean(self.x_mean)

    def log_prior(self):
        """Return the log-density of the prior, in the coordinates."""
        value = self._log_prior_of_line()
        return value if self.sigma is None else value - 0.5 * (self.sigma / self.priors.sigma_scale) ** 2

    def _log_prior_of_line(self):
        """Return the same without sigma."""
        value = self.coef_prior[0] + self.matrix.log_prior()
        if self.x_mean is None:
            return value
        return value + self.mean_prior[0] - 0.5 * (self.intercept / self.priors.intercept_scale) ** 2

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None, by_sigma_square=None):
        """Return the gradient in the coordinates, prior included, given slopes in the parameters."""
        pieces = [by_coef + self.coef_prior[1], self.matrix.pull_back(by_covariance)]
        if self.x_mean is not None:
            by_intercept = by_intercept - self.intercept / self.priors.intercept_scale**2
            pieces += [by_mean + self.mean_prior[1], by_intercept[:, None]]
        return np.concatenate(pieces + self.sigma_slope(by_sigma_square), axis=1)

    def sigma_slope(self, by_square):
        """Return the slope in sigma, prior included, given that in its square: a list of one column or none."""
        if self.sigma is None:
            return []
        return [((2 * by_square - 1 / self.priors.sigma_scale**2) * self.sigma)[:, None]]


def evaluate_within_bounds(evaluate, theta, slopes, scale=1.0):
    """Evaluate a density where the coordinates are of a possible size; elsewhere it is zero.

    A diverging trajectory would otherwise reach an eigenvalue problem of infinities.
    """
    beyond = ~(np.abs(theta).max(axis=1) < _MAX_COORDINATE * scale)
    if beyond.any():
        theta = np.where(beyond[:, None], 0.1, theta)
    with np.errstate(all="ignore"):
        value, slope = evaluate(theta, slopes)
    return np.where(beyond | np.isnan(value), -np.inf, value), slope
