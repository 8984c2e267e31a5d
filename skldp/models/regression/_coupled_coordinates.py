"""Coordinates of the regressions that suit trajectories."""

from functools import cached_property

import numpy as np

from skldp.models.regression._coordinates import RegressionCoordinates, RegressionPoint
from skldp.models.regression._covariance import matvec
from skldp.models.regression._radial import Identity

_MOST_LOG_SCALE = 20.0  # of coefficients; the prior has 1e-26 beyond it, and the density none


class CoupledCoordinates(RegressionCoordinates):
    r"""Coordinates in which reports of cross-moments shape the coefficients alike whatever the covariance of x is.

    Parameters
    ----------
    plain : RegressionCoordinates
        The parameters and their priors.
    coupling : float
        How much narrower reports make :math:`\Sigma\theta` than the prior makes :math:`\theta`.
    information : float
        Inverse variance of an entry of the reported second moments of x.
    told : float, default=inf
        Precision of the intercept by reports of E y over that by its prior.
    constant : float, default=1.0
        Weight of the constant in a report: reports tell the means of x with an error that is the smaller for it.
    bend : float, default=0.0
        How fast the mean of y flattens as the predictor varies: with a variance v of :math:`\theta^Tx`, reports tell
        coefficients and intercept as if divided by :math:`\sqrt{1 + \mathrm{bend}\,v}`. Zero if y is linear.
    scaled : bool, default=False
        Whether the scale of a t prior of the coefficients is a coordinate, the last one, instead of integrated out.

    Notes
    -----
    Reports tell :math:`\Sigma\theta` with a standard error e, the prior :math:`\theta` with a standard deviation s.
    Where :math:`\Sigma` is small the coefficients are as wide as the prior, elsewhere they are narrow: a funnel, and
    trajectories must step as its neck asks. The coordinates are therefore

    .. math:: u = (I + c\Sigma)\theta/(1 + c/4d), \quad c = s/e,

    whose width hardly depends on :math:`\Sigma`; the divisor only keeps their size that of the coefficients. A t prior
    is wide where coefficients are large, and :math:`\Sigma` must then be exact to keep :math:`\Sigma\theta` where
    reports tell it. As :math:`\theta \sim N(0, s^2t^2I)`, with t inverse chi, and with log t a coordinate of its own,

    .. math:: u = (I/t + c_t\Sigma)\theta/(1 + c/4d), \quad c_t = c/\sqrt{1 + \mathrm{bend}\,v_t}, \quad
              v_t = \tfrac14 s^2t^2/(1 + (ct/4d)^2),

    where :math:`v_t` is what :math:`\theta^T\Sigma\theta` may be at that scale. The density has the Jacobian
    :math:`(1 + c/4d)^dt^d/|I + tc_t\Sigma|`.

    With an intercept, :math:`(\alpha + \theta^Tm)/w` takes its place: with :math:`w^2 = 1 + \mathrm{bend}\,
    \theta^T\Sigma\theta` the mean of y, nearly, which reports tell. Where they tell it no better than the prior tells
    the intercept, there is less of either: a share :math:`\mathrm{told}/(10 + \mathrm{told})` of :math:`\theta^Tm`,
    and a :math:`w^2` that ends at 1 + told. Where the size of the correlations or of the means of x is itself
    uncertain, they are images of a :class:`skldp.models.regression._radial.RadialMap`.
    """

    def __init__(self, plain, coupling, information, *, told=np.inf, constant=1.0, bend=0.0, scaled=False):
        vars(self).update(vars(plain))
        self.plain, self.scaled = plain, scaled
        self.coupling, self.size = coupling, 1 + coupling / (4 * self.n_features)
        self.told, self.bend, self.blend = told, bend, 1 / (1 + 10 / told) if told else 0.0
        error = 1 / np.sqrt(information) if information else np.inf
        rows = self._pieces[1]
        self._rows = slice(rows.start + self.n_features, rows.stop)
        self.row_map = self.matrices.correlation_prior.radial(
            self.matrices.n_params - self.n_features, 4 * self.n_features * error)  # of variances of 1/4d
        self.mean_map = self.mean_prior.radial(self.n_features, error / constant) if self.has_intercept else Identity()
        self.n_params = plain.n_params + int(scaled)

    def expand(self, theta):
        """Parameters of coordinates, shape (n_walkers, n_params)."""
        log_scale = theta[:, -1] if self.scaled else np.zeros(len(theta))
        return CoupledPoint(self, log_scale, *(theta[:, piece] for piece in self._pieces))

    def start(self, coef, covariance, x_mean=None, intercept=0.0):
        """Coordinates of given parameters."""
        return self.coupled(self.plain.start(coef, covariance, x_mean, intercept)[None])[0]

    def coupled(self, theta, log_scale=None):
        """Coordinates here of plain ones; if it is not given, the scale of the coefficients is the likely one."""
        point, walked = self.plain.expand(theta), theta.copy()
        if log_scale is None:
            log_scale = self.prior.likely_log_scale(point.coef) if self.scaled else np.zeros(len(theta))
        scale, cross = np.exp(log_scale), matvec(point.covariance, point.coef)
        strength = self.strength(log_scale)[0]
        walked[:, self._pieces[0]] = (point.coef + strength[:, None] * cross) / (self.size * scale)[:, None]
        walked[:, self._rows] = self.row_map.inverse(walked[:, self._rows])
        if self.has_intercept:
            walked[:, self._pieces[2]] = self.mean_map.inverse(point.x_mean)
            response = point.intercept + self.blend * np.vecdot(point.coef, point.x_mean)
            walked[:, -1] = response / self.width(np.vecdot(point.coef, cross))[0]
        return np.column_stack([walked, log_scale]) if self.scaled else walked

    def uncoupled(self, walked):
        """Plain coordinates of those here."""
        point, theta = self.expand(walked), walked[:, :self.plain.n_params].copy()
        theta[:, self._pieces[0]], theta[:, self._rows] = point.coef, point.rows.image
        if self.has_intercept:
            theta[:, self._pieces[2]], theta[:, -1] = point.x_mean, point.intercept
        return theta

    def strength(self, log_scale):
        r""":math:`tc_t` at scales of the coefficients, and the derivative of its logarithm in theirs."""
        scale = np.exp(log_scale)
        narrowed = 1 + (self.coupling * scale / (4 * self.n_features)) ** 2
        bent = self.bend * 0.25 * (self.prior.scale * scale) ** 2 / narrowed
        return self.coupling * scale / np.sqrt(1 + bent), 1 - bent / (narrowed * (1 + bent))

    def width(self, variance):
        r"""The divisor w of the mean of y at variances of the predictor, and the derivative of its logarithm."""
        flat = 1 + self.bend * variance
        if not self.bend:
            return flat, np.zeros_like(flat)
        return (np.sqrt((1 + self.told) * flat / (flat + self.told)),
                0.5 * self.bend * self.told / (flat * (flat + self.told)))


class CoupledPoint(RegressionPoint):
    """As RegressionPoint, from coordinates that are coupled with the covariance."""

    def __init__(self, coordinates, log_scale, coupled, matrix, x_mean, response):
        d = coordinates.n_features
        self.rows, self.means = coordinates.row_map(matrix[:, d:]), coordinates.mean_map(x_mean)
        super().__init__(coordinates, coupled, np.concatenate([matrix[:, :d], self.rows.image], axis=1),
                         self.means.image, response)
        # Trajectories that go astray need not end in a singular matrix.
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
        prior = self.coordinates.prior
        return prior.given_scale(self.coef, self.log_scale) if self.coordinates.scaled else prior(self.coef)

    def log_prior(self):
        """Log-density of the prior, in the coordinates."""
        value = super().log_prior() + self.rows.log_jacobian + self.means.log_jacobian
        value += self.coef.shape[1] * np.log(self.stretch[:, 0]) - np.linalg.slogdet(self.coupling)[1]
        if self.x_mean is not None:
            value += np.log(self.width)
        if not self.coordinates.scaled:
            return value
        return np.where(self.possible, value + self.coordinates.prior.of_scale(self.log_scale)[0], -np.inf)

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None):
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
            by_intercept = by_intercept - self.intercept / coordinates.intercept_scale**2
            blended = coordinates.blend * by_intercept[:, None]
            by_mean = by_mean - blended * self.coef + self.mean_prior[1]
            by_variance = (self.widening * (1 + by_intercept * self.response))[:, None]
            by_coef += 2 * by_variance * self.cross - blended * self.x_mean
            by_covariance = by_covariance + (by_variance * self.coef)[:, :, None] * self.coef[:, None, :]
            pieces = [self.means.pull_back(by_mean), (self.width * by_intercept)[:, None]]
        back = matvec(self.uncoupling, by_coef)
        change = back[:, :, None] * self.coef[:, None, :] + self.uncoupling
        by_matrix = self.matrix.pull_back(by_covariance - self.strength[:, None, None] * change)
        pieces = [self.stretch * back, by_matrix[:, :d], self.rows.pull_back(by_matrix[:, d:]), *pieces]
        if coordinates.scaled:
            along = by_coef - self.growth[:, None] * (by_coef - back)
            lost = self.growth * (d - np.trace(self.uncoupling, axis1=1, axis2=2))
            of_scale = coordinates.prior.of_scale(self.log_scale)
            pieces.append((np.vecdot(along, self.coef) + d - lost + of_coef[2] + of_scale[1])[:, None])
        return np.concatenate(pieces, axis=1)
