"""Coordinates of the regressions that suit trajectories."""

from functools import cached_property

import numpy as np

from skldp.models.regression._coordinates import RegressionCoordinates, RegressionPoint
from skldp.models.regression._covariance import matvec
from skldp.models.regression._radial import Identity

_MOST_LOG_SCALE = 20.0  # of coefficients; the prior has 1e-26 beyond it, and the density none


class CoupledCoordinates(RegressionCoordinates):
    r"""Coordinates in which the posterior width of the coefficients barely depends on Cov(x).

    Parameters
    ----------
    plain : RegressionCoordinates
        The parameters and their priors.
    coupling : float
        How many times narrower the reports make :math:`\Sigma\theta` than the prior makes :math:`\theta`.
    information : float
        Inverse variance of an entry of the reported second moments of x.
    intercept_information : float, default=inf
        Precision t of the intercept from the reports of E y, as a multiple of its prior precision.
    constant : float, default=1.0
        Weight of the constant in a report: the standard error of the means of x is inversely proportional to it.
    flattening : float, default=0.0
        The number f such that E y depends on coefficients and intercept divided by :math:`\sqrt{1 + fv}`, where v is
        the variance of :math:`\theta^Tx`. Zero if y is linear.
    scaled : bool, default=False
        Whether the scale of a t prior of the coefficients is a coordinate, the last one, instead of integrated out.

    Notes
    -----
    Reports determine :math:`\Sigma\theta` with a standard error e, the prior :math:`\theta` with a standard deviation
    s. Where :math:`\Sigma` is small the coefficients are as wide as the prior, elsewhere they are narrow: a funnel,
    whose neck limits the step size. The coordinates are therefore

    .. math:: u = (I + c\Sigma)\theta/(1 + c/4d), \quad c = s/e,

    whose width barely depends on :math:`\Sigma`; the divisor keeps their size that of the coefficients. A t prior is
    wide where coefficients are large, which makes the posterior of :math:`\Sigma` narrow there. As
    :math:`\theta \sim N(0, s^2t^2I)`, with t inverse chi, and with log t a coordinate of its own,

    .. math:: u = (I/t + c_t\Sigma)\theta/(1 + c/4d), \quad c_t = c/\sqrt{1 + fv_t}, \quad
              v_t = \tfrac14 s^2t^2/(1 + (ct/4d)^2),

    where :math:`v_t` is a typical value of :math:`\theta^T\Sigma\theta` at that scale. The density has the Jacobian
    :math:`(1 + c/4d)^dt^d/|I + tc_t\Sigma|`.

    With an intercept, its coordinate is :math:`(\alpha + b\theta^Tm)/w`, which is nearly the reported mean of y: with
    i the ``intercept_information``, :math:`b = i/(10 + i)`, and :math:`w^2 = (1 + i)q/(q + i)` with
    :math:`q = 1 + f\theta^T\Sigma\theta`, so that both are 0 and 1 where the prior determines the intercept. Where a
    learned prior leaves the size of the correlations or of the means of x uncertain, they are images of a
    :class:`skldp.models.regression._radial.RadialMap`.
    """

    def __init__(self, plain, coupling, information, *, intercept_information=np.inf, constant=1.0, flattening=0.0,
                 scaled=False):
        super().__init__(plain.priors, plain.has_intercept)
        self.plain, self.scaled, self.n_params = plain, scaled, plain.n_params + int(scaled)
        self.coupling, self.size = coupling, 1 + coupling / (4 * self.n_features)
        self.intercept_information, self.flattening = intercept_information, flattening
        self.blend = 1 / (1 + 10 / intercept_information) if intercept_information else 0.0
        error = 1 / np.sqrt(information) if information else np.inf
        rows, matrices = self.pieces[1], self.priors.covariance
        self._rows = slice(rows.start + self.n_features, rows.stop)
        self.row_map = matrices.correlation_prior.radial(
            matrices.n_params - self.n_features, 4 * self.n_features * error)  # of variances of 1/4d
        self.mean_map = Identity()
        if self.has_intercept:
            self.mean_map = self.priors.mean.radial(self.n_features, error / constant)

    def expand(self, theta):
        """Parameters of coordinates, shape (n_walkers, n_params)."""
        log_scale = theta[:, -1] if self.scaled else np.zeros(len(theta))
        return CoupledPoint(self, log_scale, *(theta[:, piece] for piece in self.pieces))

    def from_plain(self, theta, log_scale=None):
        """Return these coordinates of plain ones; by default with the most likely scale of the coefficients."""
        point, walked = self.plain.expand(theta), theta.copy()
        if log_scale is None:
            log_scale = self.priors.coef.likely_log_scale(point.coef) if self.scaled else np.zeros(len(theta))
        scale, cross = np.exp(log_scale), matvec(point.covariance, point.coef)
        strength = self.strength(log_scale)[0]
        walked[:, self.pieces[0]] = (point.coef + strength[:, None] * cross) / (self.size * scale)[:, None]
        walked[:, self._rows] = self.row_map.inverse(walked[:, self._rows])
        if self.has_intercept:
            walked[:, self.pieces[2]] = self.mean_map.inverse(point.x_mean)
            response = point.intercept + self.blend * np.vecdot(point.coef, point.x_mean)
            walked[:, self.pieces[3]] = (response / self.width(np.vecdot(point.coef, cross))[0])[:, None]
        return np.column_stack([walked, log_scale]) if self.scaled else walked

    def to_plain(self, walked):
        """Return the plain coordinates of these."""
        point, theta = self.expand(walked), walked[:, :self.plain.n_params].copy()
        theta[:, self.pieces[0]], theta[:, self._rows] = point.coef, point.rows.image
        if self.has_intercept:
            theta[:, self.pieces[2]], theta[:, self.pieces[3]] = point.x_mean, point.intercept[:, None]
        return theta

    def strength(self, log_scale):
        r""":math:`tc_t` at scales of the coefficients, and the derivative of its logarithm in theirs."""
        scale = np.exp(log_scale)
        narrowed = 1 + (self.coupling * scale / (4 * self.n_features)) ** 2
        bent = self.flattening * 0.25 * (self.priors.coef.scale * scale) ** 2 / narrowed
        return self.coupling * scale / np.sqrt(1 + bent), 1 - bent / (narrowed * (1 + bent))

    def width(self, variance):
        r"""The divisor w of the mean of y at variances of the predictor, and the derivative of its logarithm."""
        flat = 1 + self.flattening * variance
        if not self.flattening:
            return flat, np.zeros_like(flat)
        i = self.intercept_information
        return np.sqrt((1 + i) * flat / (flat + i)), 0.5 * self.flattening * i / (flat * (flat + i))


class CoupledPoint(RegressionPoint):
    """As RegressionPoint, from coordinates that are coupled with the covariance."""

    def __init__(self, coordinates, log_scale, coupled, matrix, x_mean, response, sigma):
        d = coordinates.n_features
        self.rows, self.means = coordinates.row_map(matrix[:, d:]), coordinates.mean_map(x_mean)
        super().__init__(coordinates, coupled, np.concatenate([matrix[:, :d], self.rows.image], axis=1),
                         self.means.image, response, sigma)
        # A diverging trajectory would otherwise reach a singular matrix.
        self.log_scale = np.clip(log_scale, -_MOST_LOG_SCALE, _MOST_LOG_SCALE)
        self.possible = self.log_scale == log_scale
        self.stretch = coordinates.size * np.exp(self.log_scale)[:, None]
        self.strength, self.growth = coordinates.strength(self.log_scale)
        self.coupling = self.strength[:, None, None] * self.covariance
        self.coupling.reshape(len(coupled), -1)[:, ::d + 1] += 1
        self.uncoupling = np.linalg.inv(self.coupling)
        self.coef = self.stretch * matvec(self.uncoupling, coupled)
        if self.x_mean is not None:
            self.cross = matvec(self.covariance, self.coef)
            self.width, self.widening = coordinates.width(np.vecdot(self.coef, self.cross))
            self.response = self.width * self.intercept
            self.intercept = self.response - coordinates.blend * np.vecdot(self.coef, self.x_mean)

    @cached_property
    def coef_prior(self):
        """Log-density of the coefficients with its slopes, given their scale if that is a coordinate."""
        prior = self.priors.coef
        return prior.given_scale(self.coef, self.log_scale) if self.coordinates.scaled else prior(self.coef)

    def _log_prior_of_line(self):
        value = super()._log_prior_of_line() + self.rows.log_jacobian + self.means.log_jacobian
        value += self.coef.shape[1] * np.log(self.stretch[:, 0]) - np.linalg.slogdet(self.coupling)[1]
        if self.x_mean is not None:
            value += np.log(self.width)
        if not self.coordinates.scaled:
            return value
        return np.where(self.possible, value + self.priors.coef.log_prior_of_scale(self.log_scale)[0], -np.inf)

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None, by_sigma_square=None):
        r"""Gradient in the coordinates, prior included, of slopes in the parameters.

        Notes
        -----
        With :math:`M = I + k\Sigma`, k the strength: :math:`d\theta = M^{-1}(\mathrm{stretch}\,du - k\,d\Sigma\,
        \theta) + (\theta - g(I - M^{-1})\theta)\,d\log t`, g the growth, and :math:`d\log|M| = \mathrm{tr}\,
        M^{-1}dM`.
        """
        coordinates, of_coef = self.coordinates, self.coef_prior
        d, by_coef, pieces = coordinates.n_features, by_coef + of_coef[1], []
        if self.x_mean is not None:
            by_intercept = by_intercept - self.intercept / self.priors.intercept_scale**2
            blended = coordinates.blend * by_intercept[:, None]
            by_mean = by_mean - blended * self.coef + self.mean_prior[1]
            by_variance = (self.widening * (1 + by_intercept * self.response))[:, None]
            by_coef += 2 * by_variance * self.cross - blended * self.x_mean
            by_covariance = by_covariance + (by_variance * self.coef)[:, :, None] * self.coef[:, None, :]
            pieces = [self.means.pull_back(by_mean), (self.width * by_intercept)[:, None]]
        back = matvec(self.uncoupling, by_coef)
        change = back[:, :, None] * self.coef[:, None, :] + self.uncoupling
        by_matrix = self.matrix.pull_back(by_covariance - self.strength[:, None, None] * change)
        pieces = [self.stretch * back, by_matrix[:, :d], self.rows.pull_back(by_matrix[:, d:]), *pieces,
                  *self.sigma_slope(by_sigma_square)]
        if coordinates.scaled:
            along = by_coef - self.growth[:, None] * (by_coef - back)
            lost = self.growth * (d - np.trace(self.uncoupling, axis1=1, axis2=2))
            of_scale = self.priors.coef.log_prior_of_scale(self.log_scale)
            pieces.append((np.vecdot(along, self.coef) + d - lost + of_coef[2] + of_scale[1])[:, None])
        return np.concatenate(pieces, axis=1)
