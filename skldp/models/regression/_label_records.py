"""Log-likelihood of noisy records with randomised labels."""

import math
from functools import cached_property

import numpy as np
from scipy.special import expit

from skldp.models.regression._covariance import matvec
from skldp.models.regression._moment_likelihoods import LEAST_NOISE, gaussian_value_and_gradients
from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._sigmoid import tanh_means

_QUADRATURE_RANGE = 8.5  # in standard deviations
_WIDE = 25.0  # standard deviation above which tanh_means needs fewer nodes
_KNOTS = 201
_BLOCK = 1 << 13
_CHEBYSHEV_RANGE = 3.0


class Predictor:
    """Linear predictor u given a record z with noise: its mean a + b'z and variance v, and their gradient."""

    def __init__(self, noise, point):
        self.covariance, self.coef = point.covariance, point.coef
        self.x_mean = np.zeros_like(point.coef) if point.x_mean is None else point.x_mean
        self.precision = np.linalg.inv(point.covariance + noise * np.eye(point.coef.shape[1]))
        self.cov_xu = matvec(point.covariance, point.coef)  # r = Sigma theta
        self.weights = matvec(self.precision, self.cov_xu)  # b = C^-1 r
        remainder = point.coef - self.weights
        self.offset = np.vecdot(remainder, self.x_mean) + (0.0 if point.intercept is None else point.intercept)  # a
        self.variance = np.maximum(np.vecdot(remainder, self.cov_xu), 0.0)  # v = (theta - b)'r

    @cached_property
    def _tanh_means(self):
        return tanh_means(np.zeros_like(self.variance), self.variance)

    @property
    def shrinkage(self):
        """Derivative at zero of E tanh(u / 2) with respect to the mean of u, relative to that of tanh(u / 2)."""
        return 2 * self._tanh_means[1]

    def shrunk(self):
        """Return the vectors (a, b) times the shrinkage c."""
        return self.shrinkage[:, None] * np.column_stack([self.offset, self.weights])

    def pull_back(self, by_shrunk):
        r"""Return the gradient with respect to coefficients, covariance, mean and intercept.

        The argument g is the gradient with respect to the shrunk vectors c(v) (a, b).

        Notes
        -----
        With :math:`r = \Sigma\theta`, :math:`b = C^{-1}r`, :math:`a = \alpha + (\theta - b)^Tm` and
        :math:`v = (\theta - b)^Tr`; below, p is :math:`C^{-1}` times the total derivative with respect to b.
        """
        c = self.shrinkage
        raw = np.column_stack([self.offset, self.weights])
        by_variance = self._tanh_means[3] * np.vecdot(by_shrunk, raw)  # d v = c'(v) g.(a, b), c' = E f'''
        by_offset, by_weights = c * by_shrunk[:, 0], c[:, None] * by_shrunk[:, 1:]  # d a = c g_a, d b = c g_b
        v = by_variance[:, None]
        by_weights = by_weights - by_offset[:, None] * self.x_mean - v * self.cov_xu  # d b -= da m + dv r
        by_solved = matvec(self.precision, by_weights)  # p = C^-1 db
        by_cov_xu = by_solved + v * (self.coef - self.weights)  # d r = p + dv (theta - b)
        # d theta = da m + dv r + Sigma dr
        by_coef = by_offset[:, None] * self.x_mean + v * self.cov_xu + matvec(self.covariance, by_cov_xu)
        # d Sigma = symmetric part of dr theta' - p b'
        outer = 0.5 * (by_cov_xu[:, :, None] * self.coef[:, None, :]
                       - by_solved[:, :, None] * self.weights[:, None, :])
        # d m = da (theta - b), d alpha = da
        return by_coef, outer + outer.swapaxes(1, 2), by_offset[:, None] * (self.coef - self.weights), by_offset


class LabelRecordLikelihood:
    """Log-likelihood of noisy records with randomised labels, under one protocol, with a link from ``LINKS``."""

    def __init__(self, protocol, tally, link):
        mechanism = protocol.randomizer
        # Rounding depends on the order of a sum; sorting makes the result independent of the order of reports.
        reports = tally.reports[np.lexsort(tally.reports.T)]
        decoded = mechanism.decode(reports)
        vectors, labels = decoded[:, :-1], decoded[:, -1:]
        self.n_reports, self.link, self.contrast = tally.n_reports, link, mechanism.contrast
        self.noise = max(mechanism.noise_variance, LEAST_NOISE)
        # E tanh(u / 2) is odd in the mean of u, so each row is multiplied by its label.
        self.signed = np.ascontiguousarray((labels * np.column_stack([np.ones(len(vectors)), vectors])).T)
        n = max(self.n_reports, 1)
        self.first, self.second = vectors.sum(axis=0) / n, vectors.T @ vectors / n

    def reported(self, has_intercept):
        """Return the estimated moments of (x, y)."""
        d = len(self.first)
        labels = self.signed.mean(axis=1) / self.contrast  # E y, E yx
        second = np.empty((d + 1, d + 1))
        second[:d, :d] = self.second - self.noise * np.eye(d)
        second[d, :d] = second[:d, d] = labels[1:]
        second[d, d] = 1.0
        variance = self.noise + 1 / (4 * d)  # of an entry of a noisy record
        label_information = self.contrast**2 * self.n_reports
        return ReportedMoments(np.append(self.first, labels[0]) * has_intercept, second,
                               label_information / variance, label_information, self.n_reports / variance)

    def marginal(self, point, with_gradients):
        """Return the log-likelihood of the noisy records, and its derivatives with respect to mean and covariance."""
        return gaussian_value_and_gradients(self.n_reports, self.first, self.second, self.noise, mean=point.x_mean,
                                            covariance=point.covariance, with_gradients=with_gradients)

    def labels(self, predictor):
        """Return the log-likelihood of the labels for every walker."""
        lines = np.column_stack([predictor.offset, predictor.weights])
        return np.array([self.link(line @ self.signed, variance, self.contrast)
                         for line, variance in zip(lines, predictor.variance)])

    def expansion(self, shrunk):
        """Return gradient and expected information of the labels at one shrunk vector, E tanh(u / 2) taken as tanh."""
        f = np.tanh(0.5 * shrunk @ self.signed)
        derivative = 0.5 * (1 - f * f)
        score = self.contrast * derivative / np.maximum(1 + self.contrast * f, 1e-12)
        information = (self.contrast * derivative) ** 2 / np.maximum(1 - (self.contrast * f) ** 2, 1e-12)
        return self.signed @ score, (self.signed * information) @ self.signed.T


def mean_tanh(positions, variance):
    """Return the mean of tanh(u / 2) for normal u with given means, and its derivative with respect to the mean."""
    std = math.sqrt(variance)
    if std > _WIDE:
        return tanh_means(positions, np.full(len(positions), variance))[:2]
    # The error of the trapezoidal rule is at most 3e-9 if the distance of the nodes is at most 0.85 in u.
    n_nodes = 1 + 4 * math.ceil(5 * max(std, 1.6))
    nodes = np.linspace(-_QUADRATURE_RANGE, _QUADRATURE_RANGE, n_nodes)
    weights = np.exp(-0.5 * nodes**2)
    weights /= weights.sum()
    f = np.tanh(0.5 * (positions[:, None] + std * nodes))
    return f @ weights, 0.5 * (1 - f * f) @ weights


def chebyshev_slope():
    """Return the slope of the second-order Chebyshev polynomial of tanh(u / 2) on [-3, 3], a line by symmetry."""
    nodes = np.cos(np.pi * (np.arange(64) + 0.5) / 64)
    return 2 * np.mean((2 * expit(_CHEBYSHEV_RANGE * nodes) - 1) * nodes) / _CHEBYSHEV_RANGE


def chebyshev_link(positions, variance, contrast):
    """Return the sum of log(1 + contrast * mean tanh) over the positions, by the paper's polynomial.

    The polynomial is clipped to [-1, 1], and the variance is ignored.
    """
    f = np.clip(chebyshev_slope() * positions, -1.0, 1.0)
    return np.log1p(np.maximum(contrast * f, -1 + 1e-12)).sum()


def quadrature_link(positions, variance, contrast):
    """Return the sum of log(1 + contrast * mean tanh) over the positions, by cubic interpolation in a table."""
    if positions.size == 0:
        return 0.0
    low, high = positions.min(), positions.max()
    step = max((high - low) / (_KNOTS - 1), 1e-9)
    mean, derivative = mean_tanh(low + step * np.arange(_KNOTS), variance)
    inside = np.maximum(1 + contrast * mean, 1e-12)
    value, tangent = np.log(inside), step * contrast * derivative / inside
    difference = np.diff(value)
    cubic = np.stack([value[:-1], tangent[:-1], 3 * difference - 2 * tangent[:-1] - tangent[1:],
                      tangent[:-1] + tangent[1:] - 2 * difference])
    return np.vdot(cubic, _powers_by_cell(positions, low, step))


def _powers_by_cell(positions, low, step):
    """Return, for each cell of the table, the sums of powers 0 to 3 of the relative positions within the cell."""
    sums = np.zeros((4, _KNOTS - 1))
    # Blocks that fit in the cache are several times faster than one pass over all positions.
    for start in range(0, len(positions), _BLOCK):
        relative = (positions[start:start + _BLOCK] - low) / step
        cell = np.minimum(relative.astype(np.intp), _KNOTS - 2)
        relative -= cell
        power = relative.copy()
        sums[0] += np.bincount(cell, minlength=_KNOTS - 1)
        for total in sums[1:]:
            total += np.bincount(cell, weights=power, minlength=_KNOTS - 1)
            power *= relative
    return sums


# Ways to average the probability of a label over the record given its noisy report.
LINKS = {"quadrature": quadrature_link, "chebyshev": chebyshev_link}
