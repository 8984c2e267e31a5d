"""Log-likelihood of noisy records with randomised labels."""

import math
from functools import cached_property

import numpy as np
from scipy.special import expit

from skldp.models.regression._covariance import matvec
from skldp.models.regression._moment_likelihoods import LEAST_NOISE, gaussian_value_and_slopes
from skldp.models.regression._sigmoid import tanh_means

_REACH = 8.5  # standard deviations that the rule covers
_WIDE = 25.0  # standard deviation from which a rule over the narrower curve needs fewer nodes
_KNOTS = 201
_BLOCK = 1 << 13
_CHEBYSHEV_RANGE = 3.0


class Predictor:
    """Linear predictor given a noisy record: its mean a + b'z and variance v, and the chain rule back.

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


class LabelRecordLikelihood:
    """Noisy records with randomised labels, under one protocol.

    Parameters
    ----------
    protocol : LabelRecordProtocol
        What the reports came under.
    tally : RecordTally
        The reports.
    link : callable
        One of ``LINKS``.
    """

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
        return np.array([self.link(line @ self.signed, variance, self.contrast)
                         for line, variance in zip(lines, predictor.variance)])

    def expansion(self, shrunk):
        """Slope and expected curvature of the labels' log-likelihood at one shrunk vector, for tanh of half of it."""
        f = np.tanh(0.5 * shrunk @ self.signed)
        slope = 0.5 * (1 - f * f)
        gain = self.contrast * slope / np.maximum(1 + self.contrast * f, 1e-12)
        information = (self.contrast * slope) ** 2 / np.maximum(1 - (self.contrast * f) ** 2, 1e-12)
        return self.signed @ gain, (self.signed * information) @ self.signed.T


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


def chebyshev_link(positions, variance, contrast):
    """Return the sum of log(1 + contrast * mean tanh) over the positions, by the paper's polynomial.

    It is clipped where it leaves [-1, 1], and neglects the variance.
    """
    f = np.clip(chebyshev_slope() * positions, -1.0, 1.0)
    return np.log1p(np.maximum(contrast * f, -1 + 1e-12)).sum()


def quadrature_link(positions, variance, contrast):
    """Return the sum of log(1 + contrast * mean tanh) over the positions, by cubics between the knots of a table."""
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


# How the probability of a label is averaged over what is not known of its record.
LINKS = {"quadrature": quadrature_link, "chebyshev": chebyshev_link}
