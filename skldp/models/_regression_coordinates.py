"""Unconstrained coordinates and priors that the regressions share."""

from functools import cached_property

import numpy as np

from skldp.models._covariance import CovarianceCoordinates, matvec
from skldp.models._radial import Identity, RadialMap
from skldp.models._vector_priors import mean_prior

_ASTRAY = 1e4  # scales of the prior; none reaches there


class RegressionCoordinates:
    r"""Coefficients, covariance of x and, with an intercept, mean of x and intercept, in public units.

    Parameters
    ----------
    n_features : int
        Number d of coefficients.
    has_intercept : bool
        Whether there is an intercept, and a mean of x.
    prior : callable
        Log-density of the coefficients with its gradient.
    intercept_scale : float
        Standard deviation of the intercept.
    covariance_scale : "auto", "learned" or float
        Standard deviation of the signed scales of x; 1/2 for "auto"; "learned" from the reports.
    lkj_eta : "learned" or float
        Parameter of the LKJ prior of the correlations of x.
    mean_scale : "auto", "learned" or float
        Standard deviation of the means of x; 1/2 for "auto"; "learned" from the reports.
    """

    def __init__(self, n_features, has_intercept, prior, intercept_scale, covariance_scale, lkj_eta, mean_scale):
        self.n_features, self.has_intercept, self.prior = n_features, bool(has_intercept), prior
        self.intercept_scale = intercept_scale
        self.mean_prior = mean_prior(mean_scale, n_features)
        self.matrices = CovarianceCoordinates(n_features, covariance_scale, lkj_eta)
        sizes = [n_features, self.matrices.n_params, n_features * self.has_intercept, int(self.has_intercept)]
        ends = np.cumsum(sizes).tolist()
        self._pieces, self.n_params = [slice(end - size, end) for end, size in zip(ends, sizes)], ends[-1]

    @property
    def largest(self):
        """Size of the largest scale among the priors."""
        return max(1.0, self.prior.scale)

    def expand(self, theta):
        """Parameters of coordinates, shape (n_walkers, n_params)."""
        return RegressionPoint(self, *(theta[:, piece] for piece in self._pieces))

    def likely_mean(self, estimate):
        """An estimate of the mean of x, pulled to where the prior has it."""
        most = min(0.5, 3 * self.mean_prior.scale)
        return np.clip(estimate, -most, most)

    def prior_start(self):
        """A point that is possible before any report."""
        return self.start(np.full(self.n_features, 0.01), np.eye(self.n_features) / (4 * self.n_features))

    def start(self, coef, covariance, x_mean=None, intercept=0.0):
        """Coordinates of given parameters."""
        pieces = [coef, self.matrices.coordinates(covariance)]
        x_mean = np.zeros(self.n_features) if x_mean is None else x_mean
        return np.concatenate([*pieces, x_mean, [intercept]] if self.has_intercept else pieces)


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
    blend : float, default=1.0
        Share of :math:`\theta^Tm` that is added to the intercept: as much of it as reports tell.
    coef_spread : float, default=0.0
        Spread of the common size of the coefficients, on a logarithmic scale.
    constant : float, default=1.0
        Weight of the constant in a report: reports tell the means of x with an error that is the smaller for it.

    Notes
    -----
    Reports tell :math:`\Sigma\theta` with a standard error e, the prior :math:`\theta` with a standard deviation s.
    Where :math:`\Sigma` is small the coefficients are as wide as the prior, elsewhere they are narrow: a funnel, and
    trajectories must step as its neck asks. The coordinates are therefore

    .. math:: u = K\theta, \quad K = (I + c\Sigma)/(1 + c/4d), \quad c = s/e,

    whose width hardly depends on :math:`\Sigma`; the divisor only keeps their size that of the coefficients. With an
    intercept, :math:`\alpha + \theta^Tm` takes its place: the mean of y, which reports tell. The density of the
    coordinates has the Jacobian :math:`1/|K|`. Where the size of the coefficients, of the correlations or of the means
    of x is itself uncertain, they are images of a :class:`skldp.models._radial.RadialMap`.
    """

    def __init__(self, plain, coupling, information, blend=1.0, coef_spread=0.0, constant=1.0):
        vars(self).update(vars(plain))
        self.plain = plain
        self.coupling, self.size, self.blend = coupling, 1 + coupling / (4 * self.n_features), blend
        self.coef_map = RadialMap(self.n_features, self.prior.scale, coef_spread) if coef_spread else Identity()
        error = 1 / np.sqrt(information) if information else np.inf
        rows = self._pieces[1]
        self._rows = slice(rows.start + self.n_features, rows.stop)
        told = 4 * self.n_features * error  # of variances of 1/4d
        self.row_map = self.matrices.correlation_prior.radial(self.matrices.n_params - self.n_features, told)
        self.mean_map = self.mean_prior.radial(self.n_features, error / constant) if self.has_intercept else Identity()

    def expand(self, theta):
        """Parameters of coordinates, shape (n_walkers, n_params)."""
        return CoupledPoint(self, *(theta[:, piece] for piece in self._pieces))

    def start(self, coef, covariance, x_mean=None, intercept=0.0):
        """Coordinates of given parameters."""
        return self.coupled(self.plain.start(coef, covariance, x_mean, intercept)[None])[0]

    def coupled(self, theta):
        """Coordinates here of plain ones."""
        point, theta = self.plain.expand(theta), theta.copy()
        theta[:, self._pieces[0]] += self.coupling * matvec(point.covariance, point.coef)
        theta[:, self._pieces[0]] = self.coef_map.inverse(theta[:, self._pieces[0]] / self.size)
        theta[:, self._rows] = self.row_map.inverse(theta[:, self._rows])
        if self.has_intercept:
            theta[:, self._pieces[2]] = self.mean_map.inverse(point.x_mean)
            theta[:, -1] += self.blend * np.vecdot(point.coef, point.x_mean)
        return theta

    def uncoupled(self, theta):
        """Plain coordinates of those here."""
        point, theta = self.expand(theta), theta.copy()
        theta[:, self._pieces[0]], theta[:, self._rows] = point.coef, point.rows.image
        if self.has_intercept:
            theta[:, self._pieces[2]], theta[:, -1] = point.x_mean, point.intercept
        return theta


class RegressionPoint:
    """Parameters at some coordinates, and how slopes travel back.

    Attributes
    ----------
    coef : ndarray of shape (n_walkers, d)
    covariance : ndarray of shape (n_walkers, d, d)
    x_mean : ndarray of shape (n_walkers, d) or None
    intercept : ndarray of shape (n_walkers,) or None
    """

    def __init__(self, coordinates, coef, matrix, x_mean, intercept):
        self.coordinates, self.coef = coordinates, coef
        self.matrix = coordinates.matrices.expand(matrix)
        self.covariance = self.matrix.covariance
        self.x_mean = x_mean if coordinates.has_intercept else None
        self.intercept = intercept[:, 0] if coordinates.has_intercept else None

    @cached_property
    def coef_prior(self):
        """Log-density of the coefficients with its gradient."""
        return self.coordinates.prior(self.coef)

    @cached_property
    def mean_prior(self):
        """Log-density of the means of x with its gradient."""
        return self.coordinates.mean_prior(self.x_mean)

    def log_prior(self):
        """Log-density of the prior."""
        value = self.coef_prior[0] + self.matrix.log_prior()
        if self.x_mean is None:
            return value
        return value + self.mean_prior[0] - 0.5 * (self.intercept / self.coordinates.intercept_scale) ** 2

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None):
        """Gradient in the coordinates, prior included, of slopes in the parameters."""
        pieces = [by_coef + self.coef_prior[1], self.matrix.pull_back(by_covariance)]
        if self.x_mean is not None:
            by_intercept = by_intercept - self.intercept / self.coordinates.intercept_scale**2
            pieces += [by_mean + self.mean_prior[1], by_intercept[:, None]]
        return np.concatenate(pieces, axis=1)


class CoupledPoint(RegressionPoint):
    """As RegressionPoint, from coordinates that are coupled with the covariance."""

    def __init__(self, coordinates, coupled, matrix, x_mean, response):
        d = coordinates.n_features
        self.coupled, self.rows = coordinates.coef_map(coupled), coordinates.row_map(matrix[:, d:])
        self.means = coordinates.mean_map(x_mean)
        super().__init__(coordinates, self.coupled.image, np.concatenate([matrix[:, :d], self.rows.image], axis=1),
                         self.means.image, response)
        self.coupling = coordinates.coupling / coordinates.size * self.covariance
        self.coupling.reshape(len(coupled), -1)[:, ::d + 1] += 1 / coordinates.size
        self.uncoupling = np.linalg.inv(self.coupling)
        self.coef = matvec(self.uncoupling, self.coupled.image)
        if self.x_mean is not None:
            self.intercept = self.intercept - coordinates.blend * np.vecdot(self.coef, self.x_mean)

    def log_prior(self):
        """Log-density of the prior, in the coordinates."""
        maps = self.coupled.log_jacobian + self.rows.log_jacobian + self.means.log_jacobian
        return super().log_prior() + maps - np.linalg.slogdet(self.coupling)[1]

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None):
        r"""Gradient in the coordinates, prior included, of slopes in the parameters.

        Notes
        -----
        From :math:`d\theta = K^{-1}(du - dK\,\theta)` and :math:`d\log|K| = \mathrm{tr}\,K^{-1}dK`.
        """
        by_coef = by_coef + self.coef_prior[1]
        pieces = []
        if self.x_mean is not None:
            by_intercept = by_intercept - self.intercept / self.coordinates.intercept_scale**2
            blended = self.coordinates.blend * by_intercept[:, None]
            by_coef -= blended * self.x_mean
            by_mean = by_mean - blended * self.coef + self.mean_prior[1]
            pieces = [self.means.pull_back(by_mean), by_intercept[:, None]]
        by_coupled = matvec(self.uncoupling, by_coef)
        change = by_coupled[:, :, None] * self.coef[:, None, :] + self.uncoupling
        change *= self.coordinates.coupling / self.coordinates.size
        by_matrix = self.matrix.pull_back(by_covariance - change)
        d = self.coordinates.n_features
        return np.concatenate([self.coupled.pull_back(by_coupled), by_matrix[:, :d],
                               self.rows.pull_back(by_matrix[:, d:]), *pieces], axis=1)


def guarded(evaluate, theta, slopes, scale=1.0):
    """Evaluate where the parameters are of a possible size; elsewhere the density is zero.

    A trajectory that has gone astray would otherwise end in an eigenvalue problem of infinities.
    """
    astray = ~(np.abs(theta).max(axis=1) < _ASTRAY * scale)
    if astray.any():
        theta = np.where(astray[:, None], 0.1, theta)
    with np.errstate(all="ignore"):
        value, slope = evaluate(theta, slopes)
    return np.where(astray | np.isnan(value), -np.inf, value), slope
