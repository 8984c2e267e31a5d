"""Log-density of a linear regression, given aggregated reports."""

from typing import Any

import numpy as np

from skldp.models.regression._base import RegressionModel, Units
from skldp.models.regression._coordinates import RegressionCoordinates
from skldp.models.regression._covariance import matvec
from skldp.models.regression._moment_likelihoods import MomentLikelihood, RecordLikelihood
from skldp.models.regression._prior import DefaultScales, check_regression_prior, priors_in_public_units
from skldp.models.regression._reported import ReportedMoments
from skldp.protocols._moment_protocol import MomentProtocol
from skldp.protocols._record_protocol import RecordProtocol

__all__ = ["LinearModel"]

_LIKELIHOODS: dict[type, Any] = {MomentProtocol: MomentLikelihood, RecordProtocol: RecordLikelihood}
_DEFAULTS = DefaultScales(explained=0.25, coef=0.5, intercept=1.0, sigma=0.5)


class LinearModel(RegressionModel):
    r"""Linear regression: coefficients, intercept and residual sigma, with the mean and covariance of x.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.MomentProtocol` or :class:`skldp.protocols.RecordProtocol`.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the parameters.

    Notes
    -----
    :math:`x \sim N(m, \Sigma)`, :math:`y = \alpha + \theta^Tx + N(0, \sigma^2)`, in units where x has norm 1 and y lies
    in [-1, 1]. So :math:`v = (x, wy)` is Gaussian, and the likelihood is a function of its mean and its covariance

    .. math:: \Psi = \begin{pmatrix}\Sigma & w\Sigma\theta\\ w\theta^T\Sigma & w^2(\theta^T\Sigma\theta + \sigma^2)
              \end{pmatrix}.

    Without an intercept :math:`\alpha = 0` and :math:`m = 0`, and the matrix contains second moments.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import LinearModel
    >>> from skldp.protocols import MomentProtocol
    >>> protocol = MomentProtocol(epsilon=1.0, n_features=2)
    >>> model = LinearModel(protocol.aggregate(protocol.privatize(np.zeros((100, 2)), np.zeros(100))))
    >>> value, gradient = model.gradient(np.full((5, model.n_params), 0.1))
    >>> value.shape, gradient.shape
    ((5,), (5, 12))
    """

    def __init__(self, aggregate, prior="auto"):
        protocol = aggregate.protocol
        kind = _LIKELIHOODS[type(protocol)]
        likelihoods = [kind(part, tally) for part, tally in aggregate.parts.items() if tally.n_reports]
        units = Units(protocol.data_norm, protocol.y_scale, protocol.y_offset)
        priors = priors_in_public_units(check_regression_prior(prior), _DEFAULTS, protocol.n_features, units.x, units.y)
        self.n_features, self.y_weight = protocol.n_features, protocol.y_weight
        self.reported = ReportedMoments.pooled([part.reported(self.y_weight) for part in likelihoods], self.n_features)
        # E xy - E x E y is Sigma theta, and E y is the line at the mean of x.
        coordinates = RegressionCoordinates(priors, protocol.has_intercept, self.reported)
        super().__init__(likelihoods, coordinates, units)

    def gradient(self, theta):
        """Return the log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._within_bounds(self._evaluate, theta, True)

    def initial(self):
        """Return the conditional means given the reported covariance of x."""
        return self.coordinates.start(self.reported.covariance[:-1, :-1])

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        joint, mean = self._joint(point), None
        if point.x_mean is not None:
            response = point.intercept + np.vecdot(point.coef, point.x_mean)
            mean = np.column_stack([point.x_mean, self.y_weight * response])
        value = point.log_prior()
        by_mean, by_joint = np.zeros((len(theta), self.n_features + 1)), np.zeros_like(joint)
        for part in self.likelihoods:
            part_value, part_by_mean, part_by_joint = part.value_and_gradients(mean, joint, with_gradient)
            value = value + part_value
            if with_gradient:
                by_mean = by_mean if part_by_mean is None else by_mean + part_by_mean
                by_joint = by_joint + part_by_joint
        return value, self._chain_rule(point, by_mean, by_joint) if with_gradient else None

    def _joint(self, point):
        """Return the covariance of (x, w y)."""
        cov_xu = matvec(point.covariance, point.coef)
        joint = np.empty((len(cov_xu), self.n_features + 1, self.n_features + 1))
        joint[:, :-1, :-1] = point.covariance
        joint[:, :-1, -1] = joint[:, -1, :-1] = self.y_weight * cov_xu
        joint[:, -1, -1] = self.y_weight**2 * (np.vecdot(point.coef, cov_xu) + point.sigma**2)
        return joint

    def _chain_rule(self, point, by_mean, by_joint):
        r"""Return the gradient with respect to the coordinates.

        The arguments are the derivatives q and G with respect to the mean and the covariance of (x, w y); let
        :math:`g = wG_{xy}` and :math:`g_{yy} = w^2G_{yy}`.
        """
        coef, w = point.coef, self.y_weight
        by_square = w * w * by_joint[:, -1, -1]  # d sigma^2 = g_yy
        square_coef = by_square[:, None] * coef  # g_yy theta
        by_cov_xu = 2 * w * by_joint[:, :-1, -1] + square_coef  # 2 g + g_yy theta
        by_coef = matvec(point.covariance, by_cov_xu + square_coef)  # d theta = 2 Sigma (g + g_yy theta)
        # d Sigma = G_xx + g theta' + theta g' + g_yy theta theta', up to its antisymmetric part
        by_covariance = by_joint[:, :-1, :-1] + by_cov_xu[:, :, None] * coef[:, None, :]
        if point.x_mean is None:
            return point.gradient(by_coef, by_covariance, by_sigma_square=by_square)
        by_response = w * by_mean[:, -1]  # d alpha = w q_y
        by_coef += by_response[:, None] * point.x_mean  # d theta += w q_y m
        by_x_mean = by_mean[:, :-1] + by_response[:, None] * coef  # d m = q_x + w q_y theta
        return point.gradient(by_coef, by_covariance, by_x_mean, by_response, by_square)
