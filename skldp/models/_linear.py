"""Log-density of a linear regression, given aggregated reports."""

import math

import numpy as np

from skldp.models._covariance import CovarianceCoordinates, matvec
from skldp.models._moment_likelihoods import MomentLikelihood, RecordLikelihood
from skldp.protocols._moment_protocol import MomentProtocol

__all__ = ["LinearModel"]

T_FREEDOM = 3.0
_ASTRAY = 1e4  # in public units; no prior reaches there
_MEAN_SCALE = 0.5  # of the means of x, in units of data_norm


class LinearModel:
    r"""Coefficients, intercept and noise of a linear regression, with the mean and covariance of x.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.MomentProtocol` or :class:`skldp.protocols.RecordProtocol`.
    prior_scale : "auto" or float, default="auto"
        Prior of the coefficients. "auto" is a multivariate t with three degrees of freedom and scale
        :math:`R_y/(2R)`; a number is the standard deviation of a Gaussian.
    covariance_scale : "auto" or float, default="auto"
        Standard deviation of the signed scales of x; R/2 by default.
    sigma_scale : "auto" or float, default="auto"
        Scale of the half-normal prior of the noise; :math:`R_y/2` by default.
    lkj_eta : float, default=2.0
        Parameter of the LKJ prior of the correlations of x.

    Notes
    -----
    :math:`x \sim N(m, \Sigma)`, :math:`y = \alpha + \theta^Tx + N(0, \sigma^2)`, in units where x has norm 1 and y lies
    in [-1, 1]. So :math:`v = (x, wy)` is Gaussian, and the likelihood is one of its mean and covariance

    .. math:: \Psi = \begin{pmatrix}\Sigma & w\Sigma\theta\\ w\theta^T\Sigma & w^2(\theta^T\Sigma\theta + \sigma^2)
              \end{pmatrix}.

    Without an intercept :math:`\alpha = 0` and :math:`m = 0`: the matrix is then one of second moments. The noise
    :math:`\sigma` and the scales of x are signed coordinates; what is identified is their absolute value.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import LinearModel
    >>> from skldp.protocols import MomentProtocol
    >>> protocol = MomentProtocol(epsilon=1.0, n_features=2)
    >>> model = LinearModel(protocol.aggregate(protocol.privatize(np.zeros((100, 2)), np.zeros(100))))
    >>> value, gradient = model.log_density_and_gradient(np.full((5, model.n_params), 0.1))
    >>> value.shape, gradient.shape
    ((5,), (5, 9))
    """

    def __init__(self, aggregate, *, prior_scale="auto", covariance_scale="auto", sigma_scale="auto", lkj_eta=2.0):
        protocol = aggregate.protocol
        kind = MomentLikelihood if isinstance(protocol, MomentProtocol) else RecordLikelihood
        self.likelihoods = [kind(part, tally) for part, tally in aggregate.parts.items()]
        self.n_features, self.y_weight = protocol.n_features, protocol.y_weight
        self.has_intercept = protocol.has_intercept
        self.x_unit, self.y_unit, self.y_offset = protocol.data_norm, protocol.y_scale, protocol.y_offset
        self.prior = coefficient_prior(prior_scale, self.x_unit / self.y_unit, self.n_features)
        self.sigma_scale = 0.5 if sigma_scale == "auto" else sigma_scale / self.y_unit
        covariance_scale = 0.5 if covariance_scale == "auto" else covariance_scale / self.x_unit
        self.coordinates = CovarianceCoordinates(self.n_features, covariance_scale, lkj_eta)
        ends = np.cumsum([self.n_features, 1, self.coordinates.n_params, self.n_features * self.has_intercept,
                          self.has_intercept])
        self._ends, self.n_params = ends[:-1], int(ends[-1])

    def constrain(self, theta):
        """Natural parameters by name, in the units of the data."""
        coef, sigma, matrix, _, intercept = self._split(theta)
        params = {"coef": coef * (self.y_unit / self.x_unit)}
        if self.has_intercept:
            params["intercept"] = self.y_offset + self.y_unit * intercept[:, 0]
        params["sigma"] = self.y_unit * np.abs(sigma[:, 0])
        params["covariance"] = self.x_unit**2 * self.coordinates.expand(matrix).covariance
        return params

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params)."""
        return guarded(self._evaluate, theta, False)[0]

    def log_density_and_gradient(self, theta):
        """Log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return guarded(self._evaluate, theta, True)

    def initial(self):
        """Moment estimates, pulled inside the possible by as much as they are uncertain."""
        best = min(self.likelihoods, key=lambda part: part.uncertainty)
        mean, second = best.estimate()
        weights = np.append(np.ones(self.n_features), self.y_weight)
        second = second / np.outer(weights, weights)
        mean = np.zeros(self.n_features + 1) if mean is None else np.clip(mean / weights, -0.5, 0.5)
        second = second - np.outer(mean, mean)
        floor = 0.05 / self.n_features
        values, vectors = np.linalg.eigh(second[:-1, :-1])
        ridge = best.uncertainty * math.sqrt(self.n_features)
        covariance = (vectors * np.clip(values, floor, 1.0)) @ vectors.T
        coef = np.linalg.solve(covariance + ridge * np.eye(self.n_features), second[:-1, -1])
        coef *= min(1.0, 2 / np.linalg.norm(coef)) if coef.any() else 1.0
        sigma = math.sqrt(np.clip(second[-1, -1] - coef @ covariance @ coef, 0.01, 1.0))
        start = [coef, [sigma], self.coordinates.coordinates(covariance)]
        if self.has_intercept:
            start += [mean[:-1], [mean[-1] - coef @ mean[:-1]]]
        return np.concatenate(start)

    def _split(self, theta):
        return np.split(theta, self._ends, axis=1)

    def _evaluate(self, theta, slopes):
        coef, sigma, matrix, x_mean, intercept = self._split(theta)
        point, w = self.coordinates.expand(matrix), self.y_weight
        cross = matvec(point.covariance, coef)
        joint = self._joint(point.covariance, cross, coef, sigma[:, 0])
        mean = None
        if self.has_intercept:
            mean = np.concatenate([x_mean, w * (intercept + np.vecdot(coef, x_mean)[:, None])], axis=1)
        value, by_coef = self.prior(coef)
        value = value + point.log_prior() - 0.5 * (sigma[:, 0] / self.sigma_scale) ** 2
        if self.has_intercept:
            value -= 0.5 * np.vecdot(x_mean, x_mean) / _MEAN_SCALE**2 + 0.5 * intercept[:, 0] ** 2
        by_mean, by_joint = 0.0, 0.0
        for part in self.likelihoods:
            one, one_mean, one_joint = part.value_and_slopes(mean, joint, slopes)
            value = value + one
            if slopes:
                by_mean = by_mean if one_mean is None else by_mean + one_mean
                by_joint = by_joint + one_joint
        if not slopes:
            return value, None
        # Chain rule from the joint covariance and mean of (x, w y) back to the parameters.
        by_cross, by_square = w * by_joint[:, :-1, -1], w * w * by_joint[:, -1, -1]
        inner = by_cross + by_square[:, None] * coef
        by_coef = by_coef + 2 * matvec(point.covariance, inner)
        outer = (by_cross + 0.5 * by_square[:, None] * coef)[:, :, None] * coef[:, None, :]
        by_covariance = by_joint[:, :-1, :-1] + outer + outer.swapaxes(1, 2)
        by_sigma = 2 * by_square[:, None] * sigma - sigma / self.sigma_scale**2
        if not self.has_intercept:
            return value, np.concatenate([by_coef, by_sigma, point.pull_back(by_covariance)], axis=1)
        by_response = w * by_mean[:, -1:]
        by_coef += by_response * x_mean
        by_x_mean = by_mean[:, :-1] + by_response * coef - x_mean / _MEAN_SCALE**2
        return value, np.concatenate([by_coef, by_sigma, point.pull_back(by_covariance), by_x_mean,
                                      by_response - intercept], axis=1)

    def _joint(self, covariance, cross, coef, sigma):
        joint = np.empty((len(coef), self.n_features + 1, self.n_features + 1))
        joint[:, :-1, :-1] = covariance
        joint[:, :-1, -1] = joint[:, -1, :-1] = self.y_weight * cross
        joint[:, -1, -1] = self.y_weight**2 * (np.vecdot(coef, cross) + sigma**2)
        return joint


def guarded(evaluate, theta, slopes):
    """Evaluate where the parameters are of a possible size; elsewhere the density is zero.

    A trajectory that has gone astray would otherwise end in an eigenvalue problem of infinities.
    """
    astray = ~(np.abs(theta).max(axis=1) < _ASTRAY)
    if astray.any():
        theta = np.where(astray[:, None], 0.1, theta)
    with np.errstate(all="ignore"):
        value, slope = evaluate(theta, slopes)
    return np.where(astray | np.isnan(value), -np.inf, value), slope


def coefficient_prior(prior_scale, unit, n_features):
    """The log-density of coefficients with its gradient, for a scale in the units of the data."""
    if isinstance(prior_scale, str):
        return lambda coef: _student(coef, 0.5, n_features)
    return lambda coef: _normal(coef, prior_scale * unit)


def _student(coef, scale, n_features):
    r""":math:`-\frac{\nu + d}2\log(1 + \|\theta\|^2/(\nu s^2))`: a Gaussian whose scale is learned, integrated out."""
    excess = np.vecdot(coef, coef) / (T_FREEDOM * scale**2)
    power = T_FREEDOM + n_features
    return -0.5 * power * np.log1p(excess), -power / (T_FREEDOM * scale**2) * coef / (1 + excess)[:, None]


def _normal(coef, scale):
    return -0.5 * np.vecdot(coef, coef) / scale**2, -coef / scale**2
