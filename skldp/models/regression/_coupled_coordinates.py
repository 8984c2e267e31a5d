"""Coordinates of the regressions that suit Hamiltonian trajectories."""

from functools import cached_property

import numpy as np

from skldp.models.regression._coordinates import RegressionCoordinates, RegressionPoint
from skldp.models.regression._covariance import matvec
from skldp.models.regression._radial import Identity

_MAX_LOG_SCALE = 20.0  # bound of |log t|; the prior probability beyond it is 1e-26, and the density is set to zero


class CoupledCoordinates(RegressionCoordinates):
    r"""Coordinates in which the posterior width of the coefficients barely depends on Cov(x).

    Parameters
    ----------
    plain : RegressionCoordinates
        The parameters and their priors.
    coupling : float
        Ratio c of the prior standard deviation of :math:`\theta` to the standard error of :math:`\Sigma\theta`.
    information : float
        Inverse variance of an entry of the reported second moments of x.
    intercept_information : float, default=inf
        Precision i of the intercept from the reports of E y, as a multiple of its prior precision.
    constant : float, default=1.0
        Weight of the constant in a report: the standard error of the means of x is inversely proportional to it.
    flattening : float, default=0.0
        The number f such that E y depends on coefficients and intercept divided by :math:`\sqrt{1 + fv}`, where v is
        the variance of :math:`\theta^Tx`. Zero if y is linear.
    scaled : bool, default=False
        Whether the scale t of a t prior of the coefficients is the last coordinate instead of integrated out.

    Notes
    -----
    Reports determine :math:`\Sigma\theta` with a standard error e, and the prior determines :math:`\theta` with a
    standard deviation s. If :math:`\Sigma` is small, the posterior of the coefficients is as wide as the prior;
    otherwise it is narrow. This is a funnel, and its narrow end limits the step size. The coordinates are therefore

    .. math:: u = (I + c\Sigma)\theta/(1 + c/4d), \quad c = s/e,

    whose posterior width barely depends on :math:`\Sigma`. The divisor makes u of the same size as the coefficients. A
    t prior allows large coefficients, at which the posterior of :math:`\Sigma` is narrow. It is therefore written as
    :math:`\theta \sim N(0, s^2t^2I)` with t inverse chi, and log t is a coordinate:

    .. math:: u = (I/t + c_t\Sigma)\theta/(1 + c/4d), \quad c_t = c/\sqrt{1 + fv_t}, \quad
              v_t = \tfrac14 s^2t^2/(1 + (ct/4d)^2),

    where :math:`v_t` is a typical value of :math:`\theta^T\Sigma\theta` at the scale t. The Jacobian is
    :math:`(1 + c/4d)^dt^d/|I + tc_t\Sigma|`.

    The coordinate of the intercept, if there is one, is :math:`(\alpha + b\theta^Tm)/w`, which is nearly the reported
    mean of y. Here :math:`b = i/(10 + i)` and :math:`w^2 = (1 + i)q/(q + i)` with
    :math:`q = 1 + f\theta^T\Sigma\theta`, so that b is 0 and w is 1 if i = 0. If the prior learns the scale of the
    correlations or of the means of x, these are images of a :class:`skldp.models.regression._radial.RadialMap`.
    """

    def __init__(self, plain, coupling, information, *, intercept_information=np.inf, constant=1.0, flattening=0.0,
                 scaled=False):
        super().__init__(plain.priors, plain.has_intercept)
        self.plain, self.scaled, self.n_params = plain, scaled, plain.n_params + int(scaled)
        self.coupling, self.divisor = coupling, 1 + coupling / (4 * self.n_features)
        self.intercept_information, self.flattening = intercept_information, flattening
        self.mean_share = 1 / (1 + 10 / intercept_information) if intercept_information else 0.0  # b
        error = 1 / np.sqrt(information) if information else np.inf
        rows, matrices = self.pieces[1], self.priors.covariance
        self._rows = slice(rows.start + self.n_features, rows.stop)
        self.row_map = matrices.correlation_prior.radial_map(
            matrices.n_params - self.n_features, 4 * self.n_features * error)  # for variances of 1/4d
        self.mean_map = Identity()
        if self.has_intercept:
            self.mean_map = self.priors.mean.radial_map(self.n_features, error / constant)

    def expand(self, theta):
        """Return the parameters at coordinates of shape (n_walkers, n_params)."""
        log_scale = theta[:, -1] if self.scaled else np.zeros(len(theta))
        return CoupledPoint(self, log_scale, *(theta[:, piece] for piece in self.pieces))

    def from_plain(self, theta, log_scale=None):
        """Return these coordinates of points in plain coordinates; by default with the most likely log t."""
        point, coupled = self.plain.expand(theta), theta.copy()
        if log_scale is None:
            log_scale = self.priors.coef.mode_of_log_scale(point.coef) if self.scaled else np.zeros(len(theta))
        scale, cov_xu = np.exp(log_scale), matvec(point.covariance, point.coef)
        strength = self.strength(log_scale)[0]
        coupled[:, self.pieces[0]] = (point.coef + strength[:, None] * cov_xu) / (self.divisor * scale)[:, None]
        coupled[:, self._rows] = self.row_map.inverse(coupled[:, self._rows])
        if self.has_intercept:
            coupled[:, self.pieces[2]] = self.mean_map.inverse(point.x_mean)
            shifted = point.intercept + self.mean_share * np.vecdot(point.coef, point.x_mean)
            coupled[:, self.pieces[3]] = (shifted / self.width(np.vecdot(point.coef, cov_xu))[0])[:, None]
        return np.column_stack([coupled, log_scale]) if self.scaled else coupled

    def to_plain(self, coupled):
        """Return the plain coordinates of points in these coordinates."""
        point, theta = self.expand(coupled), coupled[:, :self.plain.n_params].copy()
        theta[:, self.pieces[0]], theta[:, self._rows] = point.coef, point.rows.image
        if self.has_intercept:
            theta[:, self.pieces[2]], theta[:, self.pieces[3]] = point.x_mean, point.intercept[:, None]
        return theta

    def strength(self, log_scale):
        r"""Return the strength :math:`k = tc_t` at log t, and d log(strength) / d log(t)."""
        scale = np.exp(log_scale)
        narrowing = 1 + (self.coupling * scale / (4 * self.n_features)) ** 2  # 1 + (ct/4d)^2
        excess = self.flattening * 0.25 * (self.priors.coef.scale * scale) ** 2 / narrowing  # f v_t
        return self.coupling * scale / np.sqrt(1 + excess), 1 - excess / (narrowing * (1 + excess))

    def width(self, variance):
        r"""Return the divisor w of the intercept at variances v of :math:`\theta^Tx`, and d log(w) / dv."""
        q = 1 + self.flattening * variance
        if not self.flattening:
            return q, np.zeros_like(q)
        i = self.intercept_information
        return np.sqrt((1 + i) * q / (q + i)), 0.5 * self.flattening * i / (q * (q + i))


class CoupledPoint(RegressionPoint):
    """Parameters at coupled coordinates, and the gradient with respect to the coordinates."""

    def __init__(self, coordinates, log_scale, coupled, matrix, x_mean, intercept, sigma):
        d = coordinates.n_features
        self.rows, self.means = coordinates.row_map(matrix[:, d:]), coordinates.mean_map(x_mean)
        super().__init__(coordinates, coupled, np.concatenate([matrix[:, :d], self.rows.image], axis=1),
                         self.means.image, intercept, sigma)
        # Without the clip a diverging trajectory would make the matrix singular.
        self.log_scale = np.clip(log_scale, -_MAX_LOG_SCALE, _MAX_LOG_SCALE)
        self.possible = self.log_scale == log_scale
        self.coef_factor = coordinates.divisor * np.exp(self.log_scale)[:, None]
        self.strength, self.log_strength_slope = coordinates.strength(self.log_scale)
        self.coupling = self.strength[:, None, None] * self.covariance  # M = I + k Sigma
        self.coupling.reshape(len(coupled), -1)[:, ::d + 1] += 1
        self.inverse_coupling = np.linalg.inv(self.coupling)
        self.coef = self.coef_factor * matvec(self.inverse_coupling, coupled)
        if self.x_mean is not None:
            self.cov_xu = matvec(self.covariance, self.coef)  # Sigma theta
            self.width, self.log_width_slope = coordinates.width(np.vecdot(self.coef, self.cov_xu))
            self.shifted_intercept = self.width * self.intercept  # alpha + b theta'm
            self.intercept = self.shifted_intercept - coordinates.mean_share * np.vecdot(self.coef, self.x_mean)

    @cached_property
    def coef_prior(self):
        """Log-density of the coefficients and its derivatives, given log t if that is a coordinate."""
        prior = self.priors.coef
        return prior.given_scale(self.coef, self.log_scale) if self.coordinates.scaled else prior(self.coef)

    def _log_prior_without_sigma(self):
        value = super()._log_prior_without_sigma() + self.rows.log_jacobian + self.means.log_jacobian
        value += self.coef.shape[1] * np.log(self.coef_factor[:, 0]) - np.linalg.slogdet(self.coupling)[1]
        if self.x_mean is not None:
            value += np.log(self.width)
        if not self.coordinates.scaled:
            return value
        return np.where(self.possible, value + self.priors.coef.log_prior_of_scale(self.log_scale)[0], -np.inf)

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None, by_sigma_square=None):
        r"""Return the gradient with respect to the coordinates, prior included.

        The arguments are the derivatives of the log-likelihood with respect to the parameters.

        Notes
        -----
        With :math:`M = I + k\Sigma`, k the strength, F the ``coef_factor`` and
        :math:`g = d\log k/d\log t`: :math:`d\theta = M^{-1}(F\,du - k\,d\Sigma\,\theta) + (\theta - g(I - M^{-1})
        \theta)\,d\log t`, and :math:`d\log|M| = \mathrm{tr}\,M^{-1}dM`. The comments write a, p, A for the derivatives
        with respect to :math:`\alpha`, :math:`\theta` and :math:`\Sigma`.
        """
        coordinates, coef_prior = self.coordinates, self.coef_prior
        d, by_coef, pieces = coordinates.n_features, by_coef + coef_prior[1], []
        if self.x_mean is not None:
            # alpha = w u - b theta'm, w a function of v = theta' Sigma theta, with log w in the log-Jacobian
            by_intercept = by_intercept - self.intercept / self.priors.intercept_scale**2
            by_product = coordinates.mean_share * by_intercept[:, None]  # b a
            by_mean = by_mean - by_product * self.coef + self.mean_prior[1]  # d m -= b a theta
            by_variance = (self.log_width_slope * (1 + by_intercept * self.shifted_intercept))[:, None]  # d v
            by_coef += 2 * by_variance * self.cov_xu - by_product * self.x_mean  # p += 2 dv Sigma theta - b a m
            # A += dv theta theta'
            by_covariance = by_covariance + (by_variance * self.coef)[:, :, None] * self.coef[:, None, :]
            pieces = [self.means.pull_back(by_mean), (self.width * by_intercept)[:, None]]
        uncoupled = matvec(self.inverse_coupling, by_coef)  # M^-1 p
        change = uncoupled[:, :, None] * self.coef[:, None, :] + self.inverse_coupling  # M^-1 p theta' + M^-1
        by_matrix = self.matrix.pull_back(by_covariance - self.strength[:, None, None] * change)  # A - k change
        pieces = [self.coef_factor * uncoupled, by_matrix[:, :d], self.rows.pull_back(by_matrix[:, d:]), *pieces,
                  *self.sigma_gradient(by_sigma_square)]  # d u = F M^-1 p
        if coordinates.scaled:
            # d log t = theta'(p - g (I - M^-1) p) + d - g tr(I - M^-1) + both priors
            along_coef = by_coef - self.log_strength_slope[:, None] * (by_coef - uncoupled)
            by_determinant = self.log_strength_slope * (d - np.trace(self.inverse_coupling, axis1=1, axis2=2))
            scale_prior = self.priors.coef.log_prior_of_scale(self.log_scale)
            pieces.append((np.vecdot(along_coef, self.coef) + d - by_determinant + coef_prior[2]
                           + scale_prior[1])[:, None])
        return np.concatenate(pieces, axis=1)
