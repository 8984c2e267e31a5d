"""Unconstrained coordinates of the regressions, and their priors."""

from dataclasses import dataclass

import numpy as np

from skldp.models._normal_tails import inverse_softplus, unbend_negative
from skldp.models.regression._covariance import LEARNED_SCALES, T_FREEDOM, CovarianceCoordinates, UnitScales, matvec
from skldp.models.regression._line import TINY
from skldp.models.regression._point import RegressionPoint
from skldp.models.regression._vector import MAX_LOG, MAX_RESIDUAL, VectorCoordinates, clip_moments

_MAX_LOG_SCALE = 8.0  # beyond it the density is set to zero, as beyond the limits of other coordinates
RESIDUAL_ETA = 1.0  # of the LKJ prior of the correlations of residuals: all correlation matrices are equally likely


@dataclass(frozen=True)
class Priors:
    r"""Priors of the parameters of a regression, in public units: x of norm 1, responses between -1 and 1.

    Coefficients have the prior :math:`\theta | \Sigma, s \sim N(0, g^2s^2K^{-1})`, :math:`K = k\Sigma + rI`. If s is
    learned, :math:`1/s^2` is a chi square variable with three degrees of freedom, divided by three, and coefficients
    have a multivariate t distribution. Otherwise s is 1.

    Parameters
    ----------
    coef_scale : float
        The scale g.
    explained_weight, ridge : float
        The weights k and r in K.
    learns_coef_scale : bool
        Whether s is learned.
    intercept_scale : float
        Prior standard deviation of the intercept.
    covariance_scale : float or None
        Scale of the half-normal prior of the standard deviations of x. If None, their size and spread are learned.
    lkj_eta : float
        Parameter of the LKJ prior of the correlations of x.
    mean_scale : float or None
        Prior standard deviation of the means of x. If None, it is learned: its logarithm is normal, with 95 % of the
        probability between R/200 and R/2.
    sigma_scale : float or None
        Scale of the half-normal prior of the residual standard deviation; None if the model has no such parameter.
    learned_scales : tuple of float
        Typical deviation of the logarithms of the scales of x from a common one, and standard deviation of that one, if
        these are learned.
    """

    coef_scale: float
    explained_weight: float
    ridge: float
    learns_coef_scale: bool
    intercept_scale: float
    covariance_scale: float | None
    lkj_eta: float
    mean_scale: float | None
    sigma_scale: float | None = None
    learned_scales: tuple[float, float] = LEARNED_SCALES


class RegressionCoordinates:
    r"""Coordinates in which coefficients, intercept and means of x are standardised residuals.

    Parameters
    ----------
    priors : Priors, or list of Priors
        Priors of all parameters; one for each of several responses.
    has_intercept : bool
        Whether there is an intercept, and a mean of x.
    reported : ReportedMoments
        Estimated moments of (x, y), on which nothing but the choice of coordinates depends.
    slope : float, default=1.0
        Approximate ratio of the covariance of x and y to :math:`\Sigma\theta`, if y is not linear.
    centre : float, array-like of float or None, default=None
        Estimate :math:`\mu` of :math:`\alpha + \theta^Tm` of each response; by default the reported mean of y.
    stretch : Stretch or None, default=None
        Map of the coefficients below, if y is not linear.
    offsets : list of ndarray of shape (d,), or None, default=None
        Coefficients h of each response that y leaves out: b and :math:`\bar y` are then those of the difference from a
        line with coefficients h, so that :math:`b + \Sigma h` takes the place of b, and :math:`(\theta - h)^Tm` that of
        :math:`\theta^Tm` in the intercept.

    Notes
    -----
    Given :math:`\Sigma`, the mean m and the scale s, coefficients are nearly normal: the prior has the precision
    :math:`K/(gs)^2`, and the reports determine :math:`\Sigma\theta` with an inverse variance :math:`c^2`. So

    .. math:: P = \frac{K}{g^2s^2} + u\Sigma + c^2\Sigma^2, \qquad \theta = P^{-1}c^2\Sigma(b - \bar ym) + P^{-1/2}z,

    and z is nearly standard normal for few and many reports, also if :math:`\Sigma` is nearly singular. There the
    reports tell little of :math:`\Sigma\theta`, but a line explains no more than the variance V of y:
    :math:`\theta^T\Sigma\theta \le V`, hence :math:`u = w_\sigma/(V + 2e)` with :math:`w_\sigma = c_\sigma^2e^2`
    (see below), which limits coefficients that the prior does not. K, P and
    :math:`\Sigma` have the same eigenvectors, so that all of this takes one eigendecomposition of :math:`\Sigma`. The
    same is done for the mean, with the precision :math:`p = 1/s_m^2 + c_m^2`, and for the intercept given
    :math:`\theta` and m, with a constant precision :math:`q = 1/s_\alpha^2 + c_\alpha^2`:

    .. math:: m = \frac{c_m^2\hat m}p + \frac{z_m}{\sqrt p}, \qquad
              \alpha = \frac{c_\alpha^2(\mu - \theta^Tm)}q + \frac{z_\alpha}{\sqrt q}.

    The residual variance has the residual :math:`z_\sigma`, through a map to positive numbers. With
    :math:`1/e^2 = 1/s_\sigma^4 + c_\sigma^2` and V the reported variance of y,

    .. math:: \sigma^2 = e\log(1 + e^{w(a)}), \qquad a = e c_\sigma^2(V - \theta^T\Sigma\theta) + z_\sigma,

    which is nearly ea where the line leaves much of the variance unexplained; w(a) is a for positive a, and for
    negative a it gives small variances the tail of a normal distribution (``skldp.models._normal_tails``). Learned
    scales are coordinates as well: :math:`\log s`, and :math:`\log s_m` in prior standard deviations. The remaining
    ones are those of :class:`CovarianceCoordinates`.

    *Several responses.* Each has its own line, with its own z, :math:`z_\alpha`, :math:`z_\sigma` and s, given the
    same :math:`\Sigma` and m, and independent of the others in the prior. The residuals have the covariance
    :math:`\sigma_i\sigma_jC_{ij}` with a correlation matrix C, whose coordinates are those of
    :class:`CovarianceCoordinates` and whose prior is LKJ(1), the uniform distribution.
    """

    def __init__(self, priors, has_intercept, reported, slope=1.0, centre=None, stretch=None, offsets=None):
        every = [priors] if isinstance(priors, Priors) else list(priors)
        self.priors, k = every[0], len(every)
        self.n_features = d = len(reported.mean) - k
        self.vector = VectorCoordinates(self.priors, has_intercept, d, reported)
        offsets = [None] * k if offsets is None else offsets
        centres = [None] * k if centre is None else np.broadcast_to(centre, k).tolist()
        self.lines = [LineCoordinates(one, reported, d + place, slope, own, stretch, offset)
                      for place, (one, own, offset) in enumerate(zip(every, centres, offsets))]
        has_residuals = k if self.priors.sigma_scale is not None else 1
        self.correlations = CovarianceCoordinates(has_residuals, UnitScales(has_residuals), RESIDUAL_ETA)
        matrix, mean, mean_scale = self.vector.sizes
        sizes = [k * d, matrix, mean, k * self.vector.has_mean, k * (self.priors.sigma_scale is not None),
                 k * self.priors.learns_coef_scale, mean_scale, self.correlations.n_params]
        self.limits = np.repeat([MAX_RESIDUAL, MAX_LOG, MAX_RESIDUAL, MAX_RESIDUAL, MAX_RESIDUAL, _MAX_LOG_SCALE,
                                 MAX_LOG, MAX_LOG], sizes)
        ends = np.cumsum(sizes).tolist()
        self.pieces, self.n_params = [slice(end - size, end) for end, size in zip(ends, sizes)], ends[-1]

    def expand(self, theta):
        """Return the parameters at coordinates of shape (n_walkers, n_params)."""
        return RegressionPoint(self, *(theta[:, piece] for piece in self.pieces))

    def convert(self, theta, other):
        """Return these coordinates of points in other coordinates of the same parameters."""
        point = other.expand(theta)
        return self.of_parameters(point.coef, point.covariance, point.x_mean, point.intercept, point.sigma,
                                  point.correlation)

    def start(self, covariance):
        """Return the coordinates of conditional means given a covariance of x, shape (n_params,)."""
        theta = np.zeros(self.n_params)
        theta[self.pieces[1]] = self.vector.matrix.coordinates(covariance[None])[0]
        return theta

    def of_parameters(self, coef, covariance, x_mean=None, intercept=None, sigma=None, correlation=None):
        """Return the coordinates of given parameters, with the most likely values of learned scales."""
        theta, k = np.zeros((len(coef), self.n_params)), len(self.lines)
        z, matrix, mean, constant, residual, log_scale, mean_scale, correlations = self.pieces
        coef = coef.reshape(len(coef), k, self.n_features)
        theta[:, np.r_[matrix, mean, mean_scale]] = self.vector.of_parameters(covariance, x_mean)
        if self.priors.learns_coef_scale:
            theta[:, log_scale] = np.column_stack([line.log_scale(coef[:, place], covariance)
                                                   for place, line in enumerate(self.lines)])
        # Residuals of zero give the conditional means, from which the residuals follow.
        lines = self.expand(theta).lines
        theta[:, z] = np.column_stack([line.residuals(coef[:, place]) for place, line in enumerate(lines)])
        lines = self.expand(theta).lines
        if self.vector.has_mean:
            found = np.column_stack([line.intercept for line in lines])
            theta[:, constant] = (intercept.reshape(found.shape) - found) * np.sqrt(lines[0].intercept_precision)
        if self.priors.sigma_scale is not None:
            errors = np.array([line.variance_error for line in self.lines])
            argument = inverse_softplus(np.maximum(sigma.reshape(len(coef), k) ** 2, TINY) / errors)
            theta[:, residual] = unbend_negative(argument) - np.column_stack([line.argument for line in lines])
        if correlation is not None:
            theta[:, correlations] = self.correlations.coordinates(correlation)
        return theta


class LineCoordinates:
    """Numbers on which the coordinates of one line depend, from the moments of its response; see the class above."""

    def __init__(self, priors, reported, place, slope=1.0, centre=None, stretch=None, offset=None):
        self.priors, self.stretch, self.offset = priors, stretch, offset
        d = self.n_features = len(reported.mean) - reported.n_responses
        response = clip_moments(reported.mean[place], reported.response_information)
        self.response = response / slope  # y
        self.cross = clip_moments(reported.second[:d, place], reported.cross_information) / slope  # b
        self.centre = response if centre is None else centre  # mu
        self.cross_information = slope**2 * reported.cross_information  # c^2
        self.centre_information = slope**2 * reported.response_information
        self.variance = clip_moments(reported.covariance[place, place], reported.cross_information)  # V
        self.line_information = 0.0
        if priors.sigma_scale is not None:
            self.variance_error = (priors.sigma_scale**-4.0 + reported.square_information) ** -0.5  # e
            self.variance_share = self.variance_error**2 * reported.square_information
            self.line_information = self.variance_share / (max(self.variance, 0.0) + 2 * self.variance_error)  # u

    def log_scale(self, coef, covariance):
        """Return the most likely log s given coefficients and covariances of x."""
        explained = np.vecdot(coef, self.priors.explained_weight * matvec(covariance, coef) + self.priors.ridge * coef)
        return 0.5 * np.log((T_FREEDOM + explained / self.priors.coef_scale**2) / (T_FREEDOM + self.n_features))
