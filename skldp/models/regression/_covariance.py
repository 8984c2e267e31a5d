"""Unconstrained coordinates of a covariance matrix, with its prior."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from skldp.models._normal_tails import bend, bend_negative, unbend, unbend_negative

T_FREEDOM = 3.0  # of every t distribution: a normal one whose scale s is learned
# Prior of the logarithms of scales: typical deviation from a common one, and standard deviation of that one.
LEARNED_SCALES = 0.2, 0.3
_SINGULAR = 2e-15  # added to variances of 1, so that matrices that are singular up to rounding have a factor
_TINY = 1e-30  # added to squared norms, so that ratios such as tanh(r) / r are defined at zero


class CovarianceCoordinates:
    r"""Coordinates of a covariance matrix: those of its scales, and free rows of a Cholesky factor.

    Parameters
    ----------
    n_features : int
        Order d of the matrix.
    scales : HalfNormalScales or LearnedScales
        Coordinates and prior of the logarithms of the scales.
    eta : float
        Parameter of the LKJ prior of the correlations.
    order : ndarray of shape (d,) or None, default=None
        Order of the columns in the Cholesky factor. A column that is nearly a combination of others should come last,
        because the rows after it are barely determined in the direction of its remainder.

    Notes
    -----
    :math:`\Sigma = LL^T`, and row j of L is :math:`\tau_j(t_j\tanh(r_j)/\rho_j, 1/\cosh r_j)`, a point of a half sphere
    given by a free :math:`t_j \in R^{j-1}` of norm :math:`\rho_j`, with :math:`r = \rho\sqrt{1 + \rho^2/4}`. Columns
    that are nearly collinear have small last entries, whose logarithm is nearly -r. The density of r has an exponential
    tail in the last row; r is nearly :math:`\rho^2/2` there, so that the tail in :math:`\rho` is that of a normal
    distribution, and walkers get there and back. The log-density of LKJ(:math:`\eta`), Jacobian included, is

    .. math:: \sum_j\left((j - 2)\log\frac{\sinh r_j}{\rho_j} - (d + 2\eta - 2)\log\cosh r_j
              + \log\frac{dr_j}{d\rho_j}\right).

    References
    ----------
    D. Lewandowski, D. Kurowicka, H. Joe (2009). Generating random correlation matrices based on vines and extended
    onion method. Journal of Multivariate Analysis 100.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models.regression._covariance import CovarianceCoordinates, HalfNormalScales
    >>> coordinates = CovarianceCoordinates(2, HalfNormalScales(2, 1.0), eta=2.0)
    >>> point = coordinates.expand(np.array([[np.log(2.0), 0.0, 0.0]]))
    >>> point.covariance[0]
    array([[4., 0.],
           [0., 1.]])
    """

    def __init__(self, n_features, scales, eta, order=None):
        self.n_features, self.scales = n_features, scales
        self.order = np.arange(n_features) if order is None else order
        self.places = np.argsort(self.order)
        rows, columns = np.tril_indices(n_features, -1)
        self.flat_indices = rows * n_features + columns
        self.n_params = scales.n_params + len(rows)
        self.sinh_power = np.arange(n_features) - 1.0  # j - 2 for j from 1
        self.cosh_power = n_features + 2 * eta - 2

    def prior_deviations(self):
        """Return the prior standard deviations of the logarithm of a variance, and of a correlation."""
        # A correlation under LKJ is 2 b - 1 with b ~ Beta(a, a), a = eta - 1 + d / 2, of variance 1 / (2 a + 1).
        return 2 * self.scales.prior_std, (self.cosh_power + 1) ** -0.5

    def expand(self, theta):
        """Return the covariance matrices at coordinates of shape (n_walkers, n_params): scales, then rows."""
        return _CovariancePoint(self, theta)

    def coordinates(self, covariance):
        """Return the coordinates of covariance matrices, shape (n_walkers, d, d)."""
        covariance = covariance[:, self.order][:, :, self.order]
        scales = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
        correlation = covariance / (scales[:, :, None] * scales[:, None, :]) + _SINGULAR * np.eye(self.n_features)
        rows = np.linalg.cholesky(correlation)
        last = np.diagonal(rows, axis1=1, axis2=2)
        beside = np.sqrt(np.maximum(1 - last**2, _TINY))  # tanh r
        angle = np.arccosh(np.maximum(1 / last, 1.0))  # r
        free = rows * (unbend(angle) / beside)[:, :, None]
        scales = self.scales.coordinates(np.log(scales)[:, self.places])
        return np.concatenate([scales, free.reshape(len(free), -1)[:, self.flat_indices]], axis=1)


class _CovariancePoint:
    """Covariance matrices at given coordinates, and the gradient with respect to the coordinates."""

    def __init__(self, coordinates, theta):
        self.coordinates = coordinates
        d, n_scales = coordinates.n_features, coordinates.scales.n_params
        self.scales = coordinates.scales.expand(theta[:, :n_scales])
        self.ordered_scales = np.exp(self.scales.log_scales)[:, coordinates.order, None]
        flat = np.zeros((len(theta), d * d))
        flat[:, coordinates.flat_indices] = theta[:, n_scales:]
        self.free = flat.reshape(-1, d, d)  # t_j
        squares = np.vecdot(self.free, self.free) + _TINY
        self.norms = np.sqrt(squares)  # rho_j
        angles, self.slopes, self.bends = bend(self.norms)  # r_j, its derivative r' and r'' / r'
        self.tanh = np.tanh(angles)
        self.log_cosh = angles + np.log1p(np.exp(-2 * angles)) - np.log(2)
        self.unit_rows = self.free * (self.tanh / self.norms)[:, :, None]
        self.unit_rows.reshape(len(theta), -1)[:, ::d + 1] = np.exp(-self.log_cosh)
        self.factor = (self.ordered_scales * self.unit_rows)[:, coordinates.places]
        self.covariance = self.factor @ self.factor.swapaxes(1, 2)

    def log_prior(self):
        """Log-density of the prior with respect to the coordinates."""
        log_ratio = self.log_cosh + np.log(self.tanh / self.norms)  # log(sinh r / rho)
        rows = log_ratio @ self.coordinates.sinh_power - self.coordinates.cosh_power * self.log_cosh.sum(axis=1)
        return self.scales.log_prior + rows + np.log(self.slopes).sum(axis=1)

    def pull_back(self, by_covariance):
        """Return the gradient with respect to the coordinates, prior included.

        The argument is the derivative with respect to the covariance; only its symmetric part matters.
        """
        d, rho, tanh, slopes = self.coordinates.n_features, self.norms, self.tanh, self.slopes
        by_factor = (by_covariance + by_covariance.swapaxes(1, 2)) @ self.factor  # d L = (G + G') L
        by_rows = self.ordered_scales * by_factor[:, self.coordinates.order]  # d u_j
        by_log_scales = np.vecdot(by_rows, self.unit_rows)[:, self.coordinates.places]
        ratio, inverse_cosh = tanh / rho, np.exp(-self.log_cosh)
        # u = (t tanh(r) / rho, 1 / cosh r): d t = (tanh r / rho) du + t (d rho) / rho, with d rho along t
        by_last = by_rows.reshape(len(rho), -1)[:, ::d + 1]
        along = (inverse_cosh**2 * slopes - ratio) * np.vecdot(by_rows, self.free) / rho
        along -= by_last * tanh * inverse_cosh * slopes
        along += self.coordinates.sinh_power * (slopes / tanh - 1 / rho) - self.coordinates.cosh_power * tanh * slopes
        along += self.bends
        by_free = ratio[:, :, None] * by_rows + (along / rho)[:, :, None] * self.free
        by_free = by_free.reshape(len(rho), -1)[:, self.coordinates.flat_indices]
        return np.concatenate([self.scales.pull_back(by_log_scales), by_free], axis=1)


class HalfNormalScales:
    r"""Logarithms of independent half-normal scales of size s.

    Notes
    -----
    :math:`\tau = se^{w(x)}` with w of ``bend_negative``, so that small scales have the tail of a normal distribution.
    The log-density is :math:`\sum(w - e^{2w}/2 + \log w')`.
    """

    def __init__(self, n_features, std):
        self.n_params, self.log_std = n_features, np.log(std)
        self.prior_std = np.pi / np.sqrt(8)  # of the logarithm of a half-normal variable

    def expand(self, theta):
        """Return the log scales at coordinates of shape (n_walkers, n_params), with their log-prior and pull-back."""
        bent, slope, relative = bend_negative(theta)
        squares = np.exp(2 * bent)
        return ScalePoint(self.log_std + bent, (bent - 0.5 * squares + np.log(slope)).sum(axis=1),
                          lambda by_log_scales: slope * (by_log_scales + 1 - squares) + relative)

    def coordinates(self, log_scales):
        """Return the coordinates of log scales."""
        return unbend_negative(log_scales - self.log_std)


class UnitScales:
    """Logarithms of scales that are all 1: those of a correlation matrix."""

    n_params = 0

    def __init__(self, n_features):
        self.n_features = n_features

    def expand(self, theta):
        """Return log scales of zero for every walker."""
        return ScalePoint(np.zeros((len(theta), self.n_features)), np.zeros(len(theta)), lambda by_log_scales: theta)

    def coordinates(self, log_scales):
        """Return no coordinates."""
        return log_scales[:, :0]


class LearnedScales:
    r"""Logarithms of scales with a common size and a spread that are learned from the reports.

    Only the choice of coordinates depends on the estimates of the logarithms and on their inverse variance :math:`c^2`.
    ``prior`` has the typical size a of deviations, and the standard deviation b of the common part.

    Notes
    -----
    The mean of :math:`\log\tau_j` is normal around :math:`\log(R/2\sqrt d)` with standard deviation b: records of
    norm R have a mean variance of at most :math:`R^2/d`. The deviations :math:`\delta` from it are normal with standard
    deviation as, where :math:`1/s^2` is a chi square variable with three degrees of freedom, divided by three. So
    columns with similar scales inform each other, and others do not have to. The coordinates are :math:`\log s` and
    residuals z of both parts, as for the coefficients in :class:`RegressionCoordinates`:

    .. math:: \delta = \frac{c^2\hat\delta}p + \frac{z - \bar z}{\sqrt p}, \qquad p = \frac1{(as)^2} + c^2.
    """

    def __init__(self, n_features, estimate, information, prior=LEARNED_SCALES):
        d, (self.spread, self.common) = n_features, prior
        self.n_params = d + (d > 1)
        self.information = information  # c^2
        self.centre = np.log(0.5) - 0.5 * np.log(d)
        # Along the unit vector (1, ..., 1) / sqrt(d), in which a mean of variance v has the variance d v.
        self.common_precision = 1 / (d * self.common**2) + information
        # The mean of 1 / chi^2 with three degrees of freedom is 1, so that of s^2 is 3.
        self.prior_std = np.sqrt(self.common**2 + T_FREEDOM * self.spread**2 * (1 - 1 / d))
        common = np.mean(estimate) - self.centre
        self.common_mean = information * common / self.common_precision
        self.deviation = estimate - np.mean(estimate)

    def expand(self, theta):
        """Return the log scales at coordinates of shape (n_walkers, n_params), with their log-prior and pull-back."""
        d, information = len(self.deviation), self.information
        z, log_spread = theta[:, :d], theta[:, d:] if d > 1 else np.zeros((len(theta), 1))
        common = self.common_mean + z.mean(axis=1, keepdims=True) / np.sqrt(self.common_precision)
        prior_precision = np.exp(-2 * log_spread) / self.spread**2
        precision = prior_precision + information  # p
        mean = information * self.deviation / precision
        deviation = mean + (z - z.mean(axis=1, keepdims=True)) / np.sqrt(precision)
        distance = prior_precision[:, 0] * np.vecdot(deviation, deviation)
        value = -0.5 * (common[:, 0] / self.common) ** 2 - 0.5 * distance
        value += 0.5 * (d - 1) * np.log(prior_precision / precision)[:, 0]
        value -= (T_FREEDOM * (log_spread + 0.5 * np.exp(-2 * log_spread)))[:, 0]

        def pull_back(by_log_scales):
            """Return the gradient with respect to the coordinates, prior included."""
            by_common = by_log_scales.sum(axis=1, keepdims=True) - common / self.common**2
            by_deviation = by_log_scales - by_log_scales.mean(axis=1, keepdims=True) - prior_precision * deviation
            by_z = by_common / (d * np.sqrt(self.common_precision)) + by_deviation / np.sqrt(precision)
            share = prior_precision / precision
            by_spread = share * np.vecdot(by_deviation, deviation + mean)[:, None] + distance[:, None]
            by_spread += (d - 1) * (share - 1) + T_FREEDOM * (np.exp(-2 * log_spread) - 1)
            return np.concatenate([by_z, by_spread], axis=1)[:, :self.n_params]

        return ScalePoint(self.centre + common + deviation, value, pull_back)

    def coordinates(self, log_scales):
        """Return the coordinates of log scales, with the most likely spread."""
        d = len(self.deviation)
        common = log_scales.mean(axis=1, keepdims=True)
        deviation = log_scales - common
        square = (T_FREEDOM + np.vecdot(deviation, deviation)[:, None] / self.spread**2) / (T_FREEDOM + d - 1)
        precision = 1 / (square * self.spread**2) + self.information
        z = (deviation - self.information * self.deviation / precision) * np.sqrt(precision)
        z = z + (common - self.centre - self.common_mean) * np.sqrt(self.common_precision)
        return np.concatenate([z, 0.5 * np.log(square)], axis=1)[:, :self.n_params]


class ScalePoint(NamedTuple):
    """Logarithms of scales at given coordinates, their log-prior, and the map of gradients to the coordinates."""

    log_scales: np.ndarray
    log_prior: np.ndarray
    pull_back: Callable


def matvec(matrices, vectors):
    """Return matrices times vectors, one of each for every walker."""
    return (matrices @ vectors[:, :, None])[:, :, 0]
