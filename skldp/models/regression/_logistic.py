"""Log-density of a logistic regression, given aggregated reports."""

import numpy as np

from skldp.models.regression._coordinates import guarded
from skldp.models.regression._covariance import matvec
from skldp.models.regression._label_moments import LabelMomentLikelihood, LabelMoments
from skldp.models.regression._logistic_base import (
    Approximation,
    Coupled,
    coupled_coordinates,
    logistic_coordinates,
    natural,
)

__all__ = ["LogisticMomentModel"]


class LogisticMomentModel:
    r"""Coefficients and intercept of a logistic regression from moment reports, with the covariance of x.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.LabelMomentProtocol`.
    prior_scale : "auto" or float, default="auto"
        Prior of the coefficients. "auto" is a multivariate t with three degrees of freedom and scale 2.5/R; a number
        is the standard deviation of a Gaussian.
    covariance_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the signed scales of x, R/2 for "auto"; or variances whose mean and shape are learned.
    lkj_eta : "learned" or float, default=2.0
        Parameter of the LKJ prior of the correlations of x.
    mean_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the means of x, where there is an intercept; R/2 for "auto".

    Notes
    -----
    :math:`x \sim N(m, \Sigma)`, :math:`P(y = 1|x) = 1/(1 + e^{-\alpha - \theta^Tx})`. The density is that of
    ``LabelMomentLikelihood``, with the covariance of a report that belongs to the
    parameters. Trajectories follow the gradient with the covariance held at a pilot estimate, which under noise is
    close; the accept step sees the exact one. ``approximation`` is the model with the covariance held: what the search
    for the mode and ``inference="laplace"`` use.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import LogisticMomentModel
    >>> from skldp.protocols import LabelMomentProtocol
    >>> protocol = LabelMomentProtocol(epsilon=1.0, n_features=2)
    >>> model = LogisticMomentModel(protocol.aggregate(protocol.privatize(np.zeros((100, 2)), np.zeros(100))))
    >>> model.log_density(np.full((5, model.n_params), 0.1)).shape
    (5,)
    """

    def __init__(self, aggregate, *, prior_scale="auto", covariance_scale="auto", lkj_eta=2.0, mean_scale="auto"):
        protocol = aggregate.protocol
        self.likelihoods = [LabelMomentLikelihood(part, tally) for part, tally in aggregate.parts.items()
                            if tally.n_reports]
        self.coordinates = logistic_coordinates(protocol, protocol.has_intercept, prior_scale, covariance_scale,
                                                lkj_eta, mean_scale)
        self.n_params, self.x_unit = self.coordinates.n_params, protocol.data_norm
        self.weights = protocol.y_weight, protocol.intercept_weight
        self.approximation = _PlugInModel(self, self.initial(), n_rounds=2)

    @property
    def sampled(self):
        """The same posterior in coordinates that suit trajectories."""
        return CoupledMomentModel(self)

    def coupled_coordinates(self):
        """Coordinates that suit trajectories."""
        information = sum(part.information for part in self.likelihoods)
        weight, constant = self.weights
        return coupled_coordinates(self.coordinates, weight**2 * information, information, constant)

    def constrain(self, theta):
        """Natural parameters by name, in the units of the data."""
        return natural(self.coordinates.expand(theta), self.x_unit)

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params)."""
        return guarded(self._evaluate, theta, False, self.coordinates.largest)[0]

    def surrogate_gradient(self, theta):
        """Gradient with the covariance of a report held at the pilot estimate."""
        return self.approximation.gradient(theta)

    def initial(self):
        """Estimates from the moments, pulled inside the possible by as much as they are uncertain."""
        if not self.likelihoods:
            return self.coordinates.prior_start()
        best = min(self.likelihoods, key=lambda part: part.uncertainty)
        d, w = self.coordinates.n_features, best.y_weight
        x_mean, response = np.zeros(d), 0.0
        if self.coordinates.has_intercept:
            x_mean = self.coordinates.likely_mean(best.mean[0, 1:-1] / best.intercept_weight)
            response = np.clip(best.mean[0, -1] / (best.intercept_weight * w), -0.9, 0.9)
        values, vectors = np.linalg.eigh(best.mean[best.x, best.x] - np.outer(x_mean, x_mean))
        covariance = (vectors * np.clip(values, 0.05 / d, 1.0)) @ vectors.T
        cross = best.mean[best.x, -1] / w - response * x_mean
        coef = 2 * np.linalg.solve(covariance + best.uncertainty * np.sqrt(d) * np.eye(d), cross)
        coef *= min(1.0, 5 / max(float(np.linalg.norm(coef)), 1e-12))
        return self.coordinates.start(coef, covariance, x_mean, 2 * np.arctanh(response) - coef @ x_mean)

    def moments(self, point):
        """Moments of a report at some parameters."""
        return LabelMoments(point.covariance, point.coef, point.x_mean, point.intercept, *self.weights)

    def _evaluate(self, theta, slopes):
        point = self.coordinates.expand(theta)
        moments = self.moments(point)
        return point.log_prior() + sum(part.log_likelihood(moments) for part in self.likelihoods), None


class CoupledMomentModel(Coupled, LogisticMomentModel):
    """As LogisticMomentModel, in coupled coordinates."""


class _PlugInModel(Approximation):
    """As LogisticMomentModel, with the covariance of a report held at a pilot estimate."""

    def gradient(self, theta):
        """Gradient alone: trajectories need no more, and a determinant less."""
        return guarded(self._slopes, theta, True, self.coordinates.largest)[1]

    def _hold(self, theta):
        moments = self.model.moments(self.coordinates.expand(theta[None]))
        self.precisions = [part.precision(moments) for part in self.model.likelihoods]

    def _evaluate(self, theta, slopes):
        point = self.coordinates.expand(theta)
        moments = self.model.moments(point)
        if not slopes:
            return point.log_prior() + sum(part.plug_in_value(moments, precision)[0]
                                           for part, precision in zip(self.model.likelihoods, self.precisions)), None
        value, gradient = self._likelihood(point, moments)
        return point.log_prior() + value, gradient

    def _slopes(self, theta, slopes):
        point = self.coordinates.expand(theta)
        return self._likelihood(point, self.model.moments(point))

    def _likelihood(self, point, moments):
        """Log-likelihood, and the gradient of the log-density."""
        value, none = np.zeros(len(point.coef)), np.zeros_like(point.coef)
        sums = [np.zeros_like(point.covariance), none, none[:, 0], none]
        for part, precision in zip(self.model.likelihoods, self.precisions):
            one, *by = part.plug_in(moments, precision)
            value = value + one
            sums = [total if slope is None else total + slope for total, slope in zip(sums, by)]
        return value, self._gradient(point, moments, *sums)

    def _gradient(self, point, moments, by_square, by_mean, by_label, by_cross):
        """Gradient from slopes in E x x', E x, E y and E y x."""
        coef = point.coef
        f0, f1, f2, f3 = moments.means
        by_f0 = by_label + np.vecdot(by_cross, moments.x_mean)
        by_f1 = np.vecdot(by_cross, moments.slope)
        by_centre = by_f0 * f1 + by_f1 * f2
        by_variance = 0.5 * (by_f0 * f2 + by_f1 * f3)
        by_slope = by_cross * f1[:, None]
        by_coef = matvec(point.covariance, by_slope + 2 * by_variance[:, None] * coef)
        outer = 0.5 * (by_slope + by_variance[:, None] * coef)[:, :, None] * coef[:, None, :]
        by_covariance = by_square + outer + outer.swapaxes(1, 2)
        if point.x_mean is None:
            return point.gradient(by_coef, by_covariance)
        by_coef += by_centre[:, None] * moments.x_mean
        by_mean = (by_mean + 2 * matvec(by_square, moments.x_mean) + f0[:, None] * by_cross
                   + by_centre[:, None] * coef)
        return point.gradient(by_coef, by_covariance, by_mean, by_centre)
