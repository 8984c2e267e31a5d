"""Log-density of a logistic regression, given noisy records with randomised labels."""

import math
from functools import cached_property

import numpy as np
from scipy.special import expit

from skldp.exceptions import InvalidParameterError
from skldp.models.regression._coordinates import guarded
from skldp.models.regression._covariance import matvec
from skldp.models.regression._logistic_base import (
    Approximation,
    Coupled,
    coupled_coordinates,
    logistic_coordinates,
    natural,
)
from skldp.models.regression._moment_likelihoods import LEAST_NOISE, gaussian_value_and_slopes
from skldp.models.regression._sigmoid import tanh_means

__all__ = ["LogisticRecordModel"]

_REACH = 8.5
_WIDE = 25.0  # standard deviation from which a rule over the narrower curve needs fewer nodes
_KNOTS = 201
_BLOCK = 1 << 13
LINKS = ("quadrature", "probit", "chebyshev")
_CHEBYSHEV_RANGE = 3.0


class LogisticRecordModel:
    r"""Coefficients and intercept of a logistic regression from noisy records and labels.

    Parameters
    ----------
    aggregate : Aggregate
        Reports under one or more :class:`skldp.protocols.LabelRecordProtocol`.
    fit_intercept : bool, default=True
        Whether there is an intercept, and a mean of x.
    prior_scale, covariance_scale, lkj_eta, mean_scale
        As in :class:`LogisticMomentModel`.
    link : {"quadrature", "probit", "chebyshev"}, default="quadrature"
        How the probability of a label is averaged over what is not known of its record.

    Notes
    -----
    A report is :math:`z = x + N(0, s^2I)` and a label that is true with probability :math:`(1 + q)/2`. With
    :math:`x \sim N(m, \Sigma)`, :math:`C = \Sigma + s^2I`, :math:`b = C^{-1}\Sigma\theta`,

    .. math:: \theta^Tx\,|\,z \sim N(\theta^Tm + b^T(z - m), v), \quad v = \theta^T\Sigma\theta - b^T\Sigma\theta,

    so :math:`P(y|z) = \frac12(1 + qy\bar f)`, :math:`\bar f = E\tanh(u/2)`, :math:`u \sim N(a + b^Tz, v)`: a function
    of one variable for each walker, tabulated by quadrature at 201 points and interpolated by cubics (error below 1e-6;
    ``link="quadrature"``). "probit" puts :math:`\bar f = \tanh(\mu/2\sqrt{1 + \pi v/8})`, off by at most 0.04;
    "chebyshev" is the paper's second-order polynomial on [-3, 3], a straight line that is clipped where it leaves the
    possible.

    An evaluation costs O(Nd). Trajectories follow the gradient of an expansion: the marginal of z is exact, and the
    log-likelihood of the labels is a parabola in :math:`\varphi = c(v)(a, b)` at a pilot estimate, c(v) the slope of
    :math:`\bar f` at zero over that of f. The accept step sees the exact density.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import LogisticRecordModel
    >>> from skldp.protocols import LabelRecordProtocol
    >>> protocol = LabelRecordProtocol(epsilon=1.0, n_features=2)
    >>> model = LogisticRecordModel(protocol.aggregate(protocol.privatize(np.zeros((100, 2)), np.zeros(100))))
    >>> model.log_density(np.full((5, model.n_params), 0.1)).shape
    (5,)
    """

    def __init__(self, aggregate, *, fit_intercept=True, prior_scale="auto", covariance_scale="auto", lkj_eta=2.0,
                 mean_scale="auto", link="quadrature"):
        check_link(link)
        self.likelihoods = [_Reports(protocol, tally, link) for protocol, tally in aggregate.parts.items()
                            if tally.n_reports]
        self.coordinates = logistic_coordinates(aggregate.protocol, fit_intercept, prior_scale, covariance_scale,
                                                lkj_eta, mean_scale)
        self.n_params, self.x_unit = self.coordinates.n_params, aggregate.protocol.data_norm

    @property
    def sampled(self):
        """The same posterior in coordinates that suit trajectories."""
        return CoupledRecordModel(self)

    def coupled_coordinates(self):
        """Coordinates that suit trajectories."""
        d = self.coordinates.n_features
        counts, spreads, contrasts = np.array([(part.n_reports, part.noise + 1 / (4 * d), part.contrast)
                                               for part in self.likelihoods]).reshape(-1, 3).T
        # A noisy entry has a variance, the spread: so has its mean over N, a product of two its square.
        information, of_means = float(np.sum(counts / spreads**2)), float(np.sum(counts / spreads))
        by_label = float(np.sum(contrasts**2 * counts / spreads))
        constant = math.sqrt(of_means / information) if information else 1.0
        return coupled_coordinates(self.coordinates, by_label, information, constant)

    @cached_property
    def approximation(self):
        """The model that trajectories follow; found when it is first asked for."""
        return _ParabolaModel(self, self._first_guess(), n_rounds=4)

    def constrain(self, theta):
        """Natural parameters by name, in the units of the data."""
        return natural(self.coordinates.expand(theta), self.x_unit)

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params)."""
        return guarded(self._evaluate, theta, False, self.coordinates.largest)[0]

    def surrogate_gradient(self, theta):
        """Gradient with the log-likelihood of the labels expanded at the pilot estimate."""
        return self.approximation.log_density_and_gradient(theta)[1]

    def initial(self):
        """The pilot estimate."""
        return self.approximation.pilot

    def report_log_likelihoods(self, protocol, theta):
        """Log-likelihood of each extreme report of a protocol, shape (n_reports, n_walkers)."""
        mechanism, point = protocol.randomizer, self.coordinates.expand(theta)
        predictor = Predictor(max(mechanism.noise_variance, LEAST_NOISE), point)
        log_determinant = np.linalg.slogdet(predictor.precision)[1]
        values = []
        for *record, label in mechanism.decode(protocol.extreme_reports()):
            away = record - predictor.x_mean
            mean = tanh_means(predictor.offset + predictor.weights @ record, predictor.variance)[0]
            values.append(0.5 * (log_determinant - np.vecdot(away, matvec(predictor.precision, away)))
                          + np.log1p(np.maximum(mechanism.contrast * label * mean, -1 + 1e-12)))
        return np.array(values)

    def _first_guess(self):
        """Coefficients zero, and the covariance of x from the second moments, as far as they are certain."""
        if not self.likelihoods:
            return self.coordinates.prior_start()
        d = self.coordinates.n_features
        best = min(self.likelihoods, key=lambda part: part.uncertainty)
        mean = self.coordinates.likely_mean(best.first) * self.coordinates.has_intercept
        values, vectors = np.linalg.eigh(best.second - np.outer(mean, mean) - best.noise * np.eye(d))
        covariance = (vectors * np.clip(values, 0.05 / d, 1.0)) @ vectors.T
        return self.coordinates.start(np.full(d, 0.01), covariance, mean, 0.0)

    def _evaluate(self, theta, slopes):
        point = self.coordinates.expand(theta)
        value = point.log_prior()
        for part in self.likelihoods:
            value = value + part.marginal(point, False)[0] + part.labels(Predictor(part.noise, point))
        return value, None


class CoupledRecordModel(Coupled, LogisticRecordModel):
    """As LogisticRecordModel, in coupled coordinates."""


def check_link(link):
    """Refuse anything but the known ways to average the probability of a label."""
    if not isinstance(link, str) or link not in LINKS:
        raise InvalidParameterError(f'link must be "quadrature", "probit" or "chebyshev", got {link!r}.')


class Predictor:
    """The linear predictor given a noisy record: mean a + b'z and variance v, and how slopes travel back.

    Parameters
    ----------
    noise : float
        Variance of the noise on a record.
    point : RegressionPoint
        Parameters of every walker.
    """

    def __init__(self, noise, point):
        self.covariance, self.coef = point.covariance, point.coef
        self.x_mean = np.zeros_like(point.coef) if point.x_mean is None else point.x_mean
        self.precision = np.linalg.inv(point.covariance + noise * np.eye(point.coef.shape[1]))
        self.slope = matvec(point.covariance, point.coef)
        self.weights = matvec(self.precision, self.slope)
        unexplained = point.coef - self.weights
        self.offset = np.vecdot(unexplained, self.x_mean) + (0.0 if point.intercept is None else point.intercept)
        self.variance = np.maximum(np.vecdot(unexplained, self.slope), 0.0)

    @cached_property
    def _curve(self):
        return tanh_means(np.zeros_like(self.variance), self.variance)

    @property
    def shrinkage(self):
        """Slope of the averaged curve at zero over that of the curve itself."""
        return 2 * self._curve[1]

    def shrunk(self):
        """The vectors (a, b), shrunk."""
        return self.shrinkage[:, None] * np.column_stack([self.offset, self.weights])

    def pull_back(self, by_shrunk):
        """Slopes in coefficients, covariance, mean and intercept, of slopes in the shrunk vectors."""
        c = self.shrinkage
        raw = np.column_stack([self.offset, self.weights])
        by_variance = self._curve[3] * np.vecdot(by_shrunk, raw)
        by_offset, by_weights = c * by_shrunk[:, 0], c[:, None] * by_shrunk[:, 1:]
        v = by_variance[:, None]
        by_weights = by_weights - by_offset[:, None] * self.x_mean - v * self.slope
        back = matvec(self.precision, by_weights)
        by_slope = back + v * (self.coef - self.weights)
        by_coef = by_offset[:, None] * self.x_mean + v * self.slope + matvec(self.covariance, by_slope)
        outer = 0.5 * (by_slope[:, :, None] * self.coef[:, None, :] - back[:, :, None] * self.weights[:, None, :])
        return by_coef, outer + outer.swapaxes(1, 2), by_offset[:, None] * (self.coef - self.weights), by_offset


class _Reports:
    """Reports under one protocol."""

    def __init__(self, protocol, tally, link):
        mechanism = protocol.randomizer
        reports = tally.reports[np.lexsort(tally.reports.T)]  # sums of floats depend on order, and order is chance
        decoded = mechanism.decode(reports)
        vectors, labels = decoded[:, :-1], decoded[:, -1:]
        self.n_reports, self.link, self.contrast = tally.n_reports, link, mechanism.contrast
        self.noise = max(mechanism.noise_variance, LEAST_NOISE)
        # The curve is odd, so that a label goes into the sign of its row.
        self.signed = np.ascontiguousarray((labels * np.column_stack([np.ones(len(vectors)), vectors])).T)
        n = max(self.n_reports, 1)
        self.first, self.second = vectors.sum(axis=0) / n, vectors.T @ vectors / n

    @property
    def uncertainty(self):
        """Standard error of an entry of the estimated second moments."""
        return np.sqrt(2 / max(self.n_reports, 1)) * (1 + self.noise)

    def marginal(self, point, slopes):
        """Log-likelihood of the noisy records, and its slopes in mean and covariance."""
        return gaussian_value_and_slopes(self.n_reports, self.first, self.second, self.noise, point.x_mean,
                                         point.covariance, slopes)

    def labels(self, predictor):
        """Log-likelihood of the labels for every walker."""
        lines = np.column_stack([predictor.offset, predictor.weights])
        return np.array([self._labels_of_one(line @ self.signed, variance)
                         for line, variance in zip(lines, predictor.variance)])

    def _labels_of_one(self, positions, variance):
        if self.link == "quadrature":
            return _tabulated(positions, variance, self.contrast)
        if self.link == "probit":
            f = np.tanh(0.5 * positions / math.sqrt(1 + math.pi / 8 * variance))
        else:
            f = np.clip(chebyshev_slope() * positions, -1.0, 1.0)
        return np.log1p(np.maximum(self.contrast * f, -1 + 1e-12)).sum()

    def expansion(self, shrunk):
        """Slope and expected curvature of the labels' log-likelihood at one shrunk vector, for tanh of half of it."""
        f = np.tanh(0.5 * shrunk @ self.signed)
        slope = 0.5 * (1 - f * f)
        gain = self.contrast * slope / np.maximum(1 + self.contrast * f, 1e-12)
        information = (self.contrast * slope) ** 2 / np.maximum(1 - (self.contrast * f) ** 2, 1e-12)
        return self.signed @ gain, (self.signed * information) @ self.signed.T


class _ParabolaModel(Approximation):
    """As LogisticRecordModel, with the labels' log-likelihood a parabola at a pilot estimate."""

    def _hold(self, theta):
        point = self.coordinates.expand(theta[None])
        self.centres = [Predictor(part.noise, point).shrunk()[0] for part in self.model.likelihoods]
        self.expansions = [part.expansion(centre) for part, centre in zip(self.model.likelihoods, self.centres)]

    def _evaluate(self, theta, slopes):
        point = self.coordinates.expand(theta)
        value, none = point.log_prior(), np.zeros_like(point.coef)
        sums = [none, np.zeros_like(point.covariance), none, none[:, 0]]
        for part, centre, (gain, curvature) in zip(self.model.likelihoods, self.centres, self.expansions):
            one, by_mean, by_covariance = part.marginal(point, True)
            predictor = Predictor(part.noise, point)
            away = predictor.shrunk() - centre
            bent = away @ curvature
            value = value + one + away @ gain - 0.5 * np.vecdot(away, bent)
            direct = (0.0, by_covariance, 0.0 if by_mean is None else by_mean, 0.0)
            sums = [total + one + two for total, one, two in zip(sums, predictor.pull_back(gain - bent), direct)]
        return value, point.gradient(*sums)


def mean_tanh(positions, variance):
    """Mean of tanh(u / 2), u Gaussian around each position, and its derivative in the position."""
    spread = math.sqrt(variance)
    if spread > _WIDE:
        return tanh_means(positions, np.full(len(positions), variance))[:2]
    # The trapezoidal rule errs by at most 3e-9 as long as two nodes are no farther apart than 0.85 in u.
    n_nodes = 1 + 4 * math.ceil(5 * max(spread, 1.6))
    nodes = np.linspace(-_REACH, _REACH, n_nodes)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    f = np.tanh(0.5 * (positions[:, None] + spread * nodes))
    return f @ weights, 0.5 * (1 - f * f) @ weights


def chebyshev_slope():
    """Slope of the second-order Chebyshev polynomial of tanh(u / 2) on [-3, 3]: by symmetry it is a line."""
    nodes = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    return 2 * np.mean((2 * expit(_CHEBYSHEV_RANGE * nodes) - 1) * nodes) / _CHEBYSHEV_RANGE


def _tabulated(positions, variance, contrast):
    """Sum of log(1 + contrast * mean tanh) over the positions, by cubics between the knots of a table."""
    if positions.size == 0:
        return 0.0
    low, high = positions.min(), positions.max()
    step = max((high - low) / (_KNOTS - 1), 1e-9)
    mean, slope = mean_tanh(low + step * np.arange(_KNOTS), variance)
    inside = np.maximum(1 + contrast * mean, 1e-12)
    value, tangent = np.log(inside), step * contrast * slope / inside
    rise = np.diff(value)
    cubic = np.stack([value[:-1], tangent[:-1], 3 * rise - 2 * tangent[:-1] - tangent[1:],
                      tangent[:-1] + tangent[1:] - 2 * rise])
    return np.vdot(cubic, _powers_by_cell(positions, low, step))


def _powers_by_cell(positions, low, step):
    """Sums of the powers 0 to 3 of the members of each cell, as places in it: all that a sum of cubics needs."""
    sums = np.zeros((4, _KNOTS - 1))
    # Blocks that stay in the cache are several times faster than one pass over everything.
    for start in range(0, len(positions), _BLOCK):
        share = (positions[start:start + _BLOCK] - low) / step
        cell = np.minimum(share.astype(np.intp), _KNOTS - 2)
        share -= cell
        power = share.copy()
        sums[0] += np.bincount(cell, minlength=_KNOTS - 1)
        for total in sums[1:]:
            total += np.bincount(cell, weights=power, minlength=_KNOTS - 1)
            power *= share
    return sums
