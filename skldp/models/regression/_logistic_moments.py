"""Log-density of a logistic regression, given aggregated moments."""

from functools import cached_property

import numpy as np

from skldp.models.regression._base import Approximation, RegressionModel, Units
from skldp.models.regression._covariance import matvec
from skldp.models.regression._label_moments import LabelMomentLikelihood, LabelMoments
from skldp.models.regression._logistic_coordinates import coupled_logistic_coordinates, logistic_coordinates

__all__ = ["LogisticMomentModel"]


class LogisticMomentModel(RegressionModel):
    r"""Coefficients and intercept of a logistic regression from moment reports, with the covariance of x.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.LabelMomentProtocol`.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the parameters.
    learn_scales : bool, default=False
        Whether "auto" in the prior means that the scale of the correlations and of the means of x is learned. The mode
        alone cannot average over these scales, so that a Laplace approximation fixes them.

    Notes
    -----
    :math:`x \sim N(m, \Sigma)`, :math:`P(y = 1|x) = 1/(1 + e^{-\alpha - \theta^Tx})`. The density is that of
    ``LabelMomentLikelihood``, with the covariance of a report that belongs to the parameters. Trajectories follow the
    gradient with the covariance held at a pilot estimate, which under noise is close; the accept step sees the exact
    one. ``approximation`` is the model with the covariance held: what the search for the mode and
    ``inference="laplace"`` use.

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

    n_warmup = 200

    def __init__(self, aggregate, prior="auto", *, learn_scales=False):
        protocol = aggregate.protocol
        likelihoods = [LabelMomentLikelihood(part, tally) for part, tally in aggregate.parts.items() if tally.n_reports]
        super().__init__(likelihoods, logistic_coordinates(protocol, protocol.has_intercept, prior, learn_scales),
                         Units(protocol.data_norm))
        self.weights = protocol.y_weight, protocol.intercept_weight

    @cached_property
    def approximation(self):
        """The model with the covariance of a report held at a pilot estimate."""
        return _PlugInModel(self, self.initial(), n_rounds=2)

    def reparametrised(self):
        """Return the same model in the coordinates that suit trajectories."""
        information = sum(part.information for part in self.likelihoods)
        weight, constant = self.weights
        return self.in_coordinates(
            coupled_logistic_coordinates(self.coordinates, weight**2 * information, information, constant))

    def surrogate(self, theta):
        """Return the gradient with the covariance of a report held at the pilot estimate."""
        return self.approximation.slopes(theta)

    def initial(self):
        """Return estimates from the moments, shrunk to the possible by as much as they are uncertain."""
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
        """Return the moments of a report at given parameters."""
        return LabelMoments(point.covariance, point.coef, point.x_mean, point.intercept, *self.weights)

    def _evaluate(self, theta, slopes):
        point = self.coordinates.expand(theta)
        moments = self.moments(point)
        return point.log_prior() + sum(part.log_likelihood(moments) for part in self.likelihoods), None


class _PlugInModel(Approximation):
    """As LogisticMomentModel, with the covariance of a report held at a pilot estimate."""

    def slopes(self, theta):
        """Return the gradient alone: trajectories need no more, and it saves a determinant."""
        return self._within_bounds(self._likelihood_and_gradient, theta, True)[1]

    def _hold(self, theta):
        moments = self.model.moments(self.coordinates.expand(theta[None]))
        self.precisions = [part.precision(moments) for part in self.likelihoods]

    def _evaluate(self, theta, slopes):
        point = self.coordinates.expand(theta)
        moments = self.model.moments(point)
        if not slopes:
            return point.log_prior() + sum(part.plug_in_value(moments, precision)[0]
                                           for part, precision in zip(self.likelihoods, self.precisions)), None
        value, gradient = self._add_up(point, moments)
        return point.log_prior() + value, gradient

    def _likelihood_and_gradient(self, theta, slopes):
        point = self.coordinates.expand(theta)
        return self._add_up(point, self.model.moments(point))

    def _add_up(self, point, moments):
        """Return the log-likelihood, and the gradient of the log-density."""
        value, none = np.zeros(len(point.coef)), np.zeros_like(point.coef)
        sums = [np.zeros_like(point.covariance), none, none[:, 0], none]
        for part, precision in zip(self.likelihoods, self.precisions):
            one, *by = part.plug_in(moments, precision)
            value = value + one
            sums = [total if slope is None else total + slope for total, slope in zip(sums, by)]
        return value, self._chain_rule(point, moments, *sums)

    def _chain_rule(self, point, moments, by_square, by_mean, by_label, by_cross):
        r"""Return the gradient in the coordinates, from slopes in E xx', E x, E y and E yx.

        With :math:`r = \Sigma\theta`, :math:`c = \alpha + \theta^Tm`, :math:`v = \theta^Tr` and
        :math:`f_k = E\,f^{(k)}(u)`, :math:`u \sim N(c, v)`: :math:`E y = f_0`, :math:`E yx = f_0m + f_1r`,
        :math:`\partial_cf_k = f_{k+1}`, :math:`\partial_vf_k = f_{k+2}/2`.
        """
        coef = point.coef
        f0, f1, f2, f3 = moments.means
        by_f0 = by_label + np.vecdot(by_cross, moments.x_mean)
        by_f1 = np.vecdot(by_cross, moments.slope)
        by_centre = by_f0 * f1 + by_f1 * f2  # d c
        by_variance = 0.5 * (by_f0 * f2 + by_f1 * f3)  # d v
        by_slope = by_cross * f1[:, None]  # d r
        by_coef = matvec(point.covariance, by_slope + 2 * by_variance[:, None] * coef)
        outer = 0.5 * (by_slope + by_variance[:, None] * coef)[:, :, None] * coef[:, None, :]
        by_covariance = by_square + outer + outer.swapaxes(1, 2)
        if point.x_mean is None:
            return point.gradient(by_coef, by_covariance)
        by_coef += by_centre[:, None] * moments.x_mean
        by_mean = (by_mean + 2 * matvec(by_square, moments.x_mean) + f0[:, None] * by_cross
                   + by_centre[:, None] * coef)
        return point.gradient(by_coef, by_covariance, by_mean, by_centre)
