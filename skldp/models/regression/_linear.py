"""Log-density of a linear regression, given aggregated reports."""

import math

import numpy as np

from skldp.models.regression._coordinates import RegressionCoordinates, guarded
from skldp.models.regression._coupled_coordinates import CoupledCoordinates
from skldp.models.regression._covariance import matvec
from skldp.models.regression._moment_likelihoods import MomentLikelihood, RecordLikelihood
from skldp.models.regression._vector_priors import coefficient_prior, in_units
from skldp.protocols._moment_protocol import MomentProtocol

__all__ = ["LinearModel"]


class LinearModel:
    r"""Coefficients, intercept and noise of a linear regression, with the mean and covariance of x.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.MomentProtocol` or :class:`skldp.protocols.RecordProtocol`.
    prior_scale : "auto" or float, default="auto"
        Prior of the coefficients. "auto" is a multivariate t with three degrees of freedom and scale
        :math:`R_y/(2R)`; a number is the standard deviation of a Gaussian.
    covariance_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the signed scales of x; R/2 by default.
    sigma_scale : "auto" or float, default="auto"
        Scale of the half-normal prior of the noise; :math:`R_y/2` by default.
    lkj_eta : "learned" or float, default=2.0
        Parameter of the LKJ prior of the correlations of x.
    mean_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the means of x, where there is an intercept; R/2 for "auto".

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

    def __init__(self, aggregate, *, prior_scale="auto", covariance_scale="auto", sigma_scale="auto", lkj_eta=2.0,
                 mean_scale="auto"):
        protocol = aggregate.protocol
        kind = MomentLikelihood if isinstance(protocol, MomentProtocol) else RecordLikelihood
        self.likelihoods = [kind(part, tally) for part, tally in aggregate.parts.items() if tally.n_reports]
        self.n_features, self.y_weight = protocol.n_features, protocol.y_weight
        self.constant = getattr(protocol, "intercept_weight", 1.0)  # records come with their means as they are
        self.x_unit, self.y_unit, self.y_offset = protocol.data_norm, protocol.y_scale, protocol.y_offset
        self.sigma_scale = 0.5 if isinstance(sigma_scale, str) else sigma_scale / self.y_unit
        self.coordinates = RegressionCoordinates(
            self.n_features, protocol.has_intercept,
            coefficient_prior(prior_scale, self.x_unit / self.y_unit, 0.5, self.n_features), 1.0,
            in_units(covariance_scale, self.x_unit), lkj_eta, in_units(mean_scale, self.x_unit))
        self.n_params = self.coordinates.n_params + 1

    @property
    def sampled(self):
        """The same posterior in coordinates that suit trajectories."""
        return CoupledLinearModel(self)

    def constrain(self, theta):
        """Natural parameters by name, in the units of the data."""
        point = self.coordinates.expand(theta[:, :-1])
        params = {"coef": point.coef * (self.y_unit / self.x_unit)}
        if point.intercept is not None:
            params["intercept"] = self.y_offset + self.y_unit * point.intercept
        params["sigma"] = self.y_unit * np.abs(theta[:, -1])
        params["covariance"] = self.x_unit**2 * point.covariance
        return params

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params)."""
        return guarded(self._evaluate, theta, False, self.coordinates.largest)[0]

    def log_density_and_gradient(self, theta):
        """Log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return guarded(self._evaluate, theta, True, self.coordinates.largest)

    def initial(self):
        """Moment estimates, pulled inside the possible by as much as they are uncertain."""
        if not self.likelihoods:
            return np.append(self.coordinates.prior_start(), 0.1)
        best = min(self.likelihoods, key=lambda part: part.uncertainty)
        mean, second = best.estimate()
        weights = np.append(np.ones(self.n_features), self.y_weight)
        second = second / np.outer(weights, weights)
        mean = np.zeros(self.n_features + 1) if mean is None else np.clip(mean / weights, -0.5, 0.5)
        mean[:-1] = self.coordinates.likely_mean(mean[:-1])
        second = second - np.outer(mean, mean)
        floor = 0.05 / self.n_features
        values, vectors = np.linalg.eigh(second[:-1, :-1])
        ridge = best.uncertainty * math.sqrt(self.n_features)
        covariance = (vectors * np.clip(values, floor, 1.0)) @ vectors.T
        coef = np.linalg.solve(covariance + ridge * np.eye(self.n_features), second[:-1, -1])
        coef *= min(1.0, 2 / np.linalg.norm(coef)) if coef.any() else 1.0
        sigma = math.sqrt(np.clip(second[-1, -1] - coef @ covariance @ coef, 0.01, 1.0))
        start = self.coordinates.start(coef, covariance, mean[:-1], mean[-1] - coef @ mean[:-1])
        return np.append(start, sigma)

    def _evaluate(self, theta, slopes):
        point, sigma, w = self.coordinates.expand(theta[:, :-1]), theta[:, -1], self.y_weight
        coef, x_mean = point.coef, point.x_mean
        cross = matvec(point.covariance, coef)
        joint = self._joint(point.covariance, cross, coef, sigma)
        mean = None
        if x_mean is not None:
            mean = np.column_stack([x_mean, w * (point.intercept + np.vecdot(coef, x_mean))])
        value = point.log_prior() - 0.5 * (sigma / self.sigma_scale) ** 2
        by_mean, by_joint = np.zeros((len(theta), self.n_features + 1)), np.zeros_like(joint)
        for part in self.likelihoods:
            one, one_mean, one_joint = part.value_and_slopes(mean, joint, slopes)
            value = value + one
            if slopes:
                by_mean = by_mean if one_mean is None else by_mean + one_mean
                by_joint = by_joint + one_joint
        if not slopes:
            return value, None
        return value, self._gradient(point, sigma, by_mean, by_joint)

    def _gradient(self, point, sigma, by_mean, by_joint):
        """Chain rule from the joint mean and covariance of (x, w y) back to the coordinates."""
        coef, w = point.coef, self.y_weight
        by_square = w * w * by_joint[:, -1, -1]
        curved = by_square[:, None] * coef
        by_cross = 2 * w * by_joint[:, :-1, -1] + curved
        by_coef = matvec(point.covariance, by_cross + curved)
        by_covariance = by_joint[:, :-1, :-1] + by_cross[:, :, None] * coef[:, None, :]
        by_sigma = (2 * by_square - 1 / self.sigma_scale**2) * sigma
        if point.x_mean is None:
            return np.column_stack([point.gradient(by_coef, by_covariance), by_sigma])
        by_response = w * by_mean[:, -1]
        by_coef += by_response[:, None] * point.x_mean
        by_x_mean = by_mean[:, :-1] + by_response[:, None] * coef
        return np.column_stack([point.gradient(by_coef, by_covariance, by_x_mean, by_response), by_sigma])

    def _joint(self, covariance, cross, coef, sigma):
        joint = np.empty((len(coef), self.n_features + 1, self.n_features + 1))
        joint[:, :-1, :-1] = covariance
        joint[:, :-1, -1] = joint[:, -1, :-1] = self.y_weight * cross
        joint[:, -1, -1] = self.y_weight**2 * (np.vecdot(coef, cross) + sigma**2)
        return joint


class CoupledLinearModel(LinearModel):
    """A linear model in the coordinates of :class:`CoupledCoordinates`, which depend on the number of reports.

    Parameters
    ----------
    model : LinearModel
        The same in coordinates of its own, called theta.
    """

    def __init__(self, model):
        vars(self).update(vars(model))
        information = sum(part.cross_information(self.n_features) for part in self.likelihoods)
        coupling = model.coordinates.prior.scale * self.y_weight * math.sqrt(information)
        self.coordinates: CoupledCoordinates = CoupledCoordinates(model.coordinates, coupling, information,
                                                                  constant=self.constant)

    @property
    def sampled(self):
        """Itself."""
        return self

    def to_theta(self, coupled):
        """Coordinates theta of those here, shape (n_points, n_params)."""
        return np.column_stack([self.coordinates.uncoupled(coupled[:, :-1]), coupled[:, -1]])

    def from_theta(self, theta):
        """Coordinates here of theta, shape (n_points, n_params)."""
        return np.column_stack([self.coordinates.coupled(theta[:, :-1]), theta[:, -1]])
