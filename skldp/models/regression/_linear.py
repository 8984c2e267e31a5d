"""Log-density of a linear regression, given aggregated reports."""

from typing import Any

import numpy as np

from skldp.models.regression._base import RegressionModel, Units
from skldp.models.regression._coordinates import RegressionCoordinates
from skldp.models.regression._covariance import matvec
from skldp.models.regression._moment_likelihoods import MomentLikelihood, RecordLikelihood
from skldp.models.regression._prior import DefaultScales, check_regression_prior, priors_in_public_units
from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._sampled_likelihoods import SampledMomentLikelihood
from skldp.protocols._moment_protocol import MomentProtocol
from skldp.protocols._record_protocol import RecordProtocol
from skldp.protocols._sampled_moment_protocol import SampledMomentProtocol

__all__ = ["LinearModel"]

_LIKELIHOODS: dict[type, Any] = {MomentProtocol: MomentLikelihood, RecordProtocol: RecordLikelihood,
                                 SampledMomentProtocol: SampledMomentLikelihood}
_LEAST_SIGMA = 1e-150  # keeps ratios of residual standard deviations finite
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
    in [-1, 1]. So (x, y) is Gaussian, and the likelihood is a function of its mean and its covariance

    .. math:: \Psi = \begin{pmatrix}\Sigma & \Sigma\theta\\ \theta^T\Sigma & \theta^T\Sigma\theta + \sigma^2
              \end{pmatrix},

    in which a report multiplies y by its weight w.

    Without an intercept :math:`\alpha = 0` and :math:`m = 0`, and the matrix contains second moments. With k responses
    :math:`y = \alpha + Bx + N(0, S)`, and the blocks are :math:`\Sigma B^T` and :math:`B\Sigma B^T + S`, where
    :math:`S_{ij} = \sigma_i\sigma_jC_{ij}` with the correlations C of the residuals.

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
        prior = check_regression_prior(prior)
        priors = [priors_in_public_units(prior, _DEFAULTS, protocol.n_features, units.x, y_unit)
                  for y_unit in np.atleast_1d(units.y).tolist()]
        self.n_features = protocol.n_features
        self.reported = ReportedMoments.pooled([part.reported() for part in likelihoods], self.n_features,
                                               protocol.n_responses)
        # E xy - E x E y is Sigma theta, and E y is the line at the mean of x.
        coordinates = RegressionCoordinates(priors, protocol.has_intercept, self.reported)
        super().__init__(likelihoods, coordinates, units)

    def gradient(self, theta):
        """Return the log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._within_bounds(self._evaluate, theta, True)

    def initial(self):
        """Return the conditional means given the reported covariance of x."""
        return self.coordinates.start(self.reported.covariance[:self.n_features, :self.n_features])

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        lines = Lines(point)
        mean, joint = self._moments(lines)
        value, by_mean, by_joint = self._likelihood(mean, joint, with_gradient)
        return point.log_prior() + value, self._chain_rule(lines, by_mean, by_joint) if with_gradient else None

    def _moments(self, lines):
        """Return the mean of (x, y), or None without an intercept, and its covariance."""
        d = self.n_features
        n, k = lines.coef.shape[:2]
        joint = np.empty((n, d + k, d + k))
        joint[:, :d, :d] = lines.covariance
        joint[:, :d, d:] = lines.cov_xu
        joint[:, d:, :d] = joint[:, :d, d:].swapaxes(1, 2)
        joint[:, d:, d:] = lines.coef @ lines.cov_xu + lines.residual
        return None if lines.x_mean is None else np.concatenate([lines.x_mean, lines.response], axis=1), joint

    def _chain_rule(self, lines, by_mean, by_joint):
        r"""Return the gradient with respect to the coordinates.

        The arguments are the derivatives q and G with respect to the mean and the covariance of (x, y).
        """
        coef, d = lines.coef, self.n_features
        by_residual = by_joint[:, d:, d:]  # d S = G_yy
        square_coef = coef.swapaxes(1, 2) @ by_residual  # B' G_yy
        by_cov_xu = 2 * by_joint[:, :d, d:] + square_coef  # 2 G_xy + B' G_yy
        by_coef = (by_cov_xu + square_coef).swapaxes(1, 2) @ lines.covariance  # d B = 2 (G_xy + B' G_yy)' Sigma
        # d Sigma = G_xx + G_xy B + B' G_yx + B' G_yy B, up to its antisymmetric part
        by_covariance = by_joint[:, :d, :d] + by_cov_xu @ coef
        by_x_mean = by_response = None
        if lines.x_mean is not None:
            by_response = by_mean[:, d:]  # d alpha = q_y
            by_coef += by_response[:, :, None] * lines.x_mean[:, None, :]  # d B += q_y m'
            by_x_mean = by_mean[:, :d] + (by_response[:, None, :] @ coef)[:, 0]  # d m = q_x + B' q_y
        return lines.gradient(by_coef, by_covariance, by_x_mean, by_response, by_residual)


class Lines:
    r"""Parameters of one or more lines with an axis for responses, also if there is only one.

    Attributes
    ----------
    coef : ndarray of shape (n_walkers, k, d)
    cov_xu : ndarray of shape (n_walkers, d, k)
        Covariance :math:`\Sigma B^T` of x and the lines.
    response : ndarray of shape (n_walkers, k)
        Mean response, with an intercept.
    residual : ndarray of shape (n_walkers, k, k)
        Covariance S of the residuals.
    """

    def __init__(self, point):
        n, d = point.covariance.shape[:2]
        self.point = point
        self.covariance, self.x_mean = point.covariance, point.x_mean
        self.coef = point.coef.reshape(n, -1, d)
        self.cov_xu = point.covariance @ self.coef.swapaxes(1, 2)
        self.sigma = point.sigma.reshape(n, -1)
        self.correlation = np.ones((n, 1, 1)) if point.correlation is None else point.correlation
        self.residual = self.sigma[:, :, None] * self.sigma[:, None, :] * self.correlation
        if point.x_mean is not None:
            self.response = point.intercept.reshape(n, -1) + matvec(self.coef, point.x_mean)

    def gradient(self, by_coef, by_covariance, by_x_mean, by_intercept, by_residual):
        r"""Return the gradient of the point, for derivatives with an axis for responses.

        With :math:`S_{ij} = \sigma_i\sigma_jC_{ij}` the derivatives are
        :math:`\sum_jG_{ij}C_{ij}\sigma_j/\sigma_i` with respect to :math:`\sigma_i^2`, and
        :math:`\sigma_i\sigma_jG_{ij}` with respect to C.
        """
        ratio = self.sigma[:, None, :] / np.maximum(self.sigma, _LEAST_SIGMA)[:, :, None]
        by_square = (by_residual * self.correlation * ratio).sum(axis=2)
        by_correlation = self.sigma[:, :, None] * self.sigma[:, None, :] * by_residual
        by_intercept = None if by_intercept is None else by_intercept.reshape(self._shape)
        return self.point.gradient(by_coef.reshape(self.point.coef.shape), by_covariance, by_x_mean, by_intercept,
                                   by_square.reshape(self._shape), by_correlation)

    @property
    def _shape(self):
        return self.point.sigma.shape
