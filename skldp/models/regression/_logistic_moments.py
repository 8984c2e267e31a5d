"""Log-density of a logistic regression, given aggregated moments."""

from functools import cached_property

import numpy as np

from skldp.models.regression._base import Approximation, RegressionModel, Units
from skldp.models.regression._covariance import matvec
from skldp.models.regression._label_moments import LabelMomentLikelihood, LabelMoments
from skldp.models.regression._logistic_coordinates import logistic_coordinates
from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._sampled_likelihoods import SampledLabelLikelihood
from skldp.protocols._moment_protocol import LabelMomentProtocol
from skldp.protocols._sampled_moment_protocol import SampledLabelMomentProtocol

__all__ = ["LogisticMomentModel"]

_LIKELIHOODS = {LabelMomentProtocol: LabelMomentLikelihood, SampledLabelMomentProtocol: SampledLabelLikelihood}


class LogisticMomentModel(RegressionModel):
    r"""Logistic regression from moment reports: coefficients and intercept, with the mean and covariance of x.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.LabelMomentProtocol`.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the parameters.

    Notes
    -----
    :math:`x \sim N(m, \Sigma)`, :math:`P(y = 1|x) = 1/(1 + e^{-\alpha - \theta^Tx})`. The likelihood is a
    ``LabelMomentLikelihood``, in which the covariance of a report depends on the parameters. The model
    ``approximation`` fixes this covariance at a pilot estimate, which under noise is a close approximation.
    Trajectories, the search for the mode and ``inference="laplace"`` use it; the accept step evaluates the exact
    density.

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

    def __init__(self, aggregate, prior="auto"):
        protocol = aggregate.protocol
        kind = _LIKELIHOODS[type(protocol)]
        likelihoods = [kind(part, tally) for part, tally in aggregate.parts.items() if tally.n_reports]
        self.reported = ReportedMoments.pooled([part.reported() for part in likelihoods], protocol.n_features)
        coordinates = logistic_coordinates(protocol, protocol.has_intercept, prior, self.reported, moments_alone=True)
        super().__init__(likelihoods, coordinates, Units(protocol.data_norm))
        self.weights = protocol.y_weight, protocol.intercept_weight

    @cached_property
    def approximation(self):
        """The same model with the covariance of a report fixed at a pilot estimate."""
        return PlugInModel(self, self.initial(), n_rounds=2)

    def surrogate(self, theta):
        """Return the gradient with the covariance of a report fixed at the pilot estimate."""
        return self.approximation.gradient_alone(theta)

    def initial(self):
        """Return the conditional means given the reported covariance of x."""
        return self.coordinates.start(self.reported.covariance[:-1, :-1])

    def moments(self, point):
        """Return the moments of a report at given parameters."""
        return LabelMoments(point.covariance, point.coef, point.x_mean, point.intercept, *self.weights)

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        moments = self.moments(point)
        return point.log_prior() + sum(part.log_likelihood(moments) for part in self.likelihoods), None


class PlugInModel(Approximation):
    """A LogisticMomentModel with the covariance of a report fixed at a pilot estimate."""

    def gradient_alone(self, theta):
        """Return the gradient without the log-density, which saves the determinant in the prior."""
        return self._within_bounds(self._likelihood_and_gradient, theta, True)[1]

    def _approximate_at(self, theta):
        moments = self.model.moments(self.coordinates.expand(theta[None]))
        self.precisions = [part.precision(moments) for part in self.likelihoods]

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        moments = self.model.moments(point)
        if not with_gradient:
            return point.log_prior() + sum(part.plug_in_value(moments, precision)[0]
                                           for part, precision in zip(self.likelihoods, self.precisions)), None
        value, gradient = self._add_up(point, moments)
        return point.log_prior() + value, gradient

    def _likelihood_and_gradient(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        return self._add_up(point, self.model.moments(point))

    def _add_up(self, point, moments):
        """Return the log-likelihood, and the gradient of the log-density."""
        value, zeros = np.zeros(len(point.coef)), np.zeros_like(point.coef)
        sums = [np.zeros_like(point.covariance), zeros, zeros[:, 0], zeros]
        for part, precision in zip(self.likelihoods, self.precisions):
            part_value, *derivatives = part.plug_in(moments, precision)
            value = value + part_value
            sums = [total if term is None else total + term for total, term in zip(sums, derivatives)]
        return value, self._chain_rule(point, moments, *sums)

    def _chain_rule(self, point, moments, by_square, by_mean, by_y, by_xy):
        r"""Return the gradient with respect to the coordinates.

        The arguments are the derivatives S, q, g, h with respect to E xx', E x, E y and E yx. With
        :math:`r = \Sigma\theta`, :math:`c = \alpha + \theta^Tm`, :math:`v = \theta^Tr` and
        :math:`f_k = E\,f^{(k)}(u)`, :math:`u \sim N(c, v)`: :math:`E y = f_0`, :math:`E yx = f_0m + f_1r`,
        :math:`\partial_cf_k = f_{k+1}`, :math:`\partial_vf_k = f_{k+2}/2`.
        """
        coef = point.coef
        f0, f1, f2, f3 = moments.means
        by_f0 = by_y + np.vecdot(by_xy, moments.x_mean)  # d f0 = g + h'm
        by_f1 = np.vecdot(by_xy, moments.cov_xu)  # d f1 = h'r
        by_centre = by_f0 * f1 + by_f1 * f2  # d c = f1 df0 + f2 df1
        by_variance = 0.5 * (by_f0 * f2 + by_f1 * f3)  # d v = (f2 df0 + f3 df1) / 2
        by_cov_xu = by_xy * f1[:, None]  # d r = f1 h
        # d theta = Sigma (dr + 2 dv theta)
        by_coef = matvec(point.covariance, by_cov_xu + 2 * by_variance[:, None] * coef)
        # d Sigma = S + symmetric part of (dr + dv theta) theta'
        outer = 0.5 * (by_cov_xu + by_variance[:, None] * coef)[:, :, None] * coef[:, None, :]
        by_covariance = by_square + outer + outer.swapaxes(1, 2)
        if point.x_mean is None:
            return point.gradient(by_coef, by_covariance)
        by_coef += by_centre[:, None] * moments.x_mean  # d theta += dc m
        by_mean = (by_mean + 2 * matvec(by_square, moments.x_mean) + f0[:, None] * by_xy
                   + by_centre[:, None] * coef)  # d m = q + 2 S m + f0 h + dc theta
        return point.gradient(by_coef, by_covariance, by_mean, by_centre)
