"""Unconstrained coordinates and priors that the regressions share."""

import numpy as np

from skldp.models._covariance import CovarianceCoordinates

T_FREEDOM = 3.0
MEAN_SCALE = 0.5  # of the means of x, in units of data_norm
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
    covariance_scale : "auto" or float
        Standard deviation of the signed scales of x; 1/2 for "auto".
    lkj_eta : float
        Parameter of the LKJ prior of the correlations of x.
    """

    def __init__(self, n_features, has_intercept, prior, intercept_scale, covariance_scale, lkj_eta):
        self.n_features, self.has_intercept, self.prior = n_features, bool(has_intercept), prior
        self.intercept_scale = intercept_scale
        self.matrices = CovarianceCoordinates(n_features, covariance_scale, lkj_eta)
        ends = np.cumsum([n_features, self.matrices.n_params, n_features * self.has_intercept, self.has_intercept])
        self._ends, self.n_params = ends[:-1], int(ends[-1])

    @property
    def largest(self):
        """Size of the largest scale among the priors."""
        return max(1.0, self.prior.scale)

    def expand(self, theta):
        """Parameters of coordinates, shape (n_walkers, n_params)."""
        return RegressionPoint(self, *np.split(theta, self._ends, axis=1))

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

    def log_prior(self):
        """Log-density of the prior."""
        value = self.coordinates.prior(self.coef)[0] + self.matrix.log_prior()
        if self.x_mean is None:
            return value
        scaled = self.intercept / self.coordinates.intercept_scale
        return value - 0.5 * np.vecdot(self.x_mean, self.x_mean) / MEAN_SCALE**2 - 0.5 * scaled**2

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None):
        """Gradient in the coordinates, prior included, of slopes in the parameters."""
        pieces = [by_coef + self.coordinates.prior(self.coef)[1], self.matrix.pull_back(by_covariance)]
        if self.x_mean is not None:
            by_intercept = by_intercept - self.intercept / self.coordinates.intercept_scale**2
            pieces += [by_mean - self.x_mean / MEAN_SCALE**2, by_intercept[:, None]]
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


class StudentPrior:
    r""":math:`-\frac{\nu + d}2\log(1 + \|\theta\|^2/(\nu s^2))`: a Gaussian whose scale is learned, integrated out."""

    def __init__(self, scale, n_features):
        self.scale, self.power = scale, T_FREEDOM + n_features

    def __call__(self, coef):
        """Log-density of coefficients and its gradient."""
        width = T_FREEDOM * self.scale**2
        excess = np.vecdot(coef, coef) / width
        return -0.5 * self.power * np.log1p(excess), -self.power / width * coef / (1 + excess)[:, None]


class NormalCoefficients:
    """Independent normal coefficients."""

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, coef):
        """Log-density of coefficients and its gradient."""
        return -0.5 * np.vecdot(coef, coef) / self.scale**2, -coef / self.scale**2


def coefficient_prior(prior_scale, unit, auto_scale, n_features):
    """The prior of coefficients in public units, for a scale in the units of the data."""
    if isinstance(prior_scale, str):
        return StudentPrior(auto_scale, n_features)
    return NormalCoefficients(prior_scale * unit)
