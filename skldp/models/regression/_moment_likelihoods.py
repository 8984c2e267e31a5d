"""Log-likelihoods of aggregated regression reports, as functions of the mean and covariance of the records."""

import dataclasses

import numpy as np

from skldp.models.regression._covariance import matvec
from skldp.models.regression._low_rank import LowRank
from skldp.models.regression._reported import ReportedMoments

# Variance floor for the noiseless case, as a share of the squared radius.
LEAST_NOISE = 1e-9


class MomentLikelihood:
    r"""Log-likelihood of the mean of noisy second moments of Gaussian records, in O(d^3).

    Notes
    -----
    Records :math:`v = (x, w\eta) \sim N(\mu, \Psi)` are extended by the constant, :math:`\tilde v = (\kappa, v)`,
    with :math:`\tilde m = (\kappa, \mu)`, :math:`\Theta = E\tilde v\tilde v^T = U\Lambda U^T` and
    :math:`D = \bar Z - \Theta`. The covariance of a report is that of ``MomentNoise``; in the eigenbasis and in svec
    coordinates it is

    .. math:: V = \mathrm{diag}(M) + GKG^T, \quad M_{ij} = c_0 + c_1(\lambda_i + \lambda_j) + 2c_2\lambda_i\lambda_j,

    where the columns of G are the matrices :math:`\tilde m\tilde m^T`, I and :math:`\Lambda`, and K has the entry
    :math:`-2c_2` and the block :math:`(g_0, g_1; g_1, c_2 - 1)`. Isotropic noise has the first column alone, and
    without an intercept there is no first column. With P = G / M (elementwise division), the Frobenius product
    :math:`\langle,\rangle`, :math:`S = \langle G, P\rangle`, :math:`J = (I + KS)^{-1}K` and
    :math:`h = \langle P, D\rangle`, the mean of N reports is approximately Gaussian with

    .. math:: \log p = -\tfrac N2\left(\langle D, D/M\rangle - h^TJh\right)
              - \tfrac12\left(\textstyle\sum_{i\le j}\log M_{ij} + \log|I + KS|\right),

    equal to the density with the full covariance up to a constant. Let :math:`Q = V^{-1}D = D/M - P(Jh)` and
    :math:`\omega = \frac12c_1 + c_2\lambda`, :math:`\Omega` its diagonal matrix. Since :math:`V^{-1}GK = PJ` and
    :math:`KG^TQ = Jh`, the derivatives are, in the eigenbasis and with a subscript for a column,

    .. math:: \partial_\Theta = N\left((1 + (Jh)_\Lambda)Q + 2Q\Omega Q\right)
              + 2\textstyle\sum_aP_a\Omega(PJ)_a - (PJ)_\Lambda
              - \mathrm{diag}_i\left(\textstyle\sum_j\omega_j/M_{ij} + \omega_i/M_{ii}\right), \quad
              \partial_{\tilde m} = 2\left(N(Jh)_mQ - (PJ)_m\right)\tilde m .

    Where the model says that records are longer than they may be, the noise is that of scaled records
    (``MomentNoise.within``), and the derivatives take the scale as constant.
    """

    def __init__(self, protocol, tally):
        mechanism = protocol.randomizer
        self.n_reports = tally.n_reports
        self.mean = protocol.mean_matrix(tally)
        self.intercept_weight = mechanism.intercept_weight
        self.law = above_floor(mechanism.noise)
        self.noise = max(mechanism.noise_variance, LEAST_NOISE)
        self.n_responses, self.weights = protocol.n_responses, record_weights(protocol)

    share = 1.0  # of the clients who fill an entry of x

    def reported(self):
        """Return the estimated moments of (x, y)."""
        d, shift = max(len(self.mean) - 1, 1), int(self.intercept_weight > 0)
        # Noise, and the spread of the records; svec multiplies what is off the diagonal by the root of two.
        information = 2 * self.n_reports / (self.noise + 2 / (4 * d) ** 2 / self.share)
        mean = self.mean[0, 1:] / self.intercept_weight if shift else None
        return weighted_moments(mean, self.mean[shift:, shift:], self.weights[-1], information,
                                self.intercept_weight**2 * information, self.n_responses)

    def value_and_gradients(self, mean, covariance, with_gradients=True):
        """Return the log-likelihood and its derivatives with respect to mean and covariance of v, for every walker.

        The mean and its derivative are None without an intercept.
        """
        if mean is None:
            value, by_moments, _ = self._evaluate(None, covariance, with_gradients)
            return value, None, by_moments
        extended = np.empty((len(mean), mean.shape[1] + 1))
        extended[:, 0], extended[:, 1:] = self.intercept_weight, mean
        moments = extended[:, :, None] * extended[:, None, :]
        moments[:, 1:, 1:] += covariance
        value, by_moments, by_mean = self._evaluate(extended, moments, with_gradients)
        if not with_gradients:
            return value, None, None
        by_mean += 2 * matvec(by_moments, extended)  # Theta = Psi + m m', hence 2 G m with G the derivative of Theta
        return value, by_mean[:, 1:], by_moments[:, 1:, 1:]

    def _evaluate(self, mean, moments, with_gradients):
        """Return the log-likelihood and its derivatives by the moments, and by the mean if there is one."""
        values, vectors = np.linalg.eigh(moments)
        back = vectors.swapaxes(1, 2)
        deviation = back @ self.mean @ vectors
        deviation.reshape(len(values), -1)[:, ::values.shape[1] + 1] -= values
        rotated_mean = None if mean is None else matvec(back, mean)  # U'm
        law = self.law.within(values.sum(axis=1))
        linear = np.reshape(law.linear, (-1, 1))
        slopes = linear / 2 + np.reshape(law.square, (-1, 1)) * values  # omega
        variances = 2 * values[:, :, None] * slopes[:, None, :]
        variances += (linear * values)[:, None, :] + law.constant
        low_rank = LowRank(law, values, rotated_mean, variances)
        inner, along = low_rank.along(deviation)
        q_matrix = deviation / variances  # D / M, the first term of Q
        value = -0.5 * self.n_reports * (_inner(deviation, q_matrix) - np.vecdot(inner, along))
        value -= 0.5 * (_log_determinant(variances) + low_rank.log_determinant)
        if not with_gradients:
            return value, None, None
        q_matrix -= low_rank.combined(along[:, None])[:, 0]  # Q
        by_moments, by_mean = self._gradients(q_matrix, along, slopes, variances, low_rank, rotated_mean)
        return value, vectors @ by_moments @ back, None if mean is None else matvec(vectors, by_mean)

    def _gradients(self, q_matrix, along, slopes, variances, low_rank, mean):
        """Return the derivatives by the moments and by the mean, in the eigenbasis."""
        by_moments = q_matrix @ (slopes[:, :, None] * q_matrix)
        by_moments *= 2
        by_moments += (1 + along[:, -1])[:, None, None] * q_matrix if low_rank.has_moments else q_matrix
        by_moments *= self.n_reports
        joined = low_rank.combined(low_rank.joint)  # P J
        by_moments += 2 * (low_rank.scaled @ (slopes[:, None, :, None] * joined)).sum(axis=1)
        if low_rank.has_moments:
            by_moments -= joined[:, -1]
        _subtract_determinant(by_moments, slopes, variances)
        if mean is None:
            return by_moments, None
        return by_moments, 2 * matvec(self.n_reports * along[:, :1, None] * q_matrix - joined[:, 0], mean)


class RecordLikelihood:
    r"""Log-likelihood of noisy Gaussian records, from their sums and products.

    Notes
    -----
    Reports are :math:`z \sim N(\mu, C)`, :math:`C = \Psi + s^2I`, so with
    :math:`S = \overline{(z - \mu)(z - \mu)^T}` over the N reports
    :math:`\log p = -\frac N2(\log|C| + \mathrm{tr}\,C^{-1}S)`, which is exact for Gaussian records and every N.
    """

    def __init__(self, protocol, tally):
        products = protocol.mean_products(tally)
        self.n_reports = tally.n_reports
        self.first, self.second = products[0, 1:], products[1:, 1:]
        self.noise = max(protocol.randomizer.noise_variance, LEAST_NOISE)
        self.centred, self.weights = not protocol.has_intercept, record_weights(protocol)

    def reported(self):
        """Return the estimated moments of (x, y)."""
        size = len(self.second)
        variance = self.noise + 1 / (4 * size)  # of an entry of a noisy record; that of a product is its square
        return weighted_moments(None if self.centred else self.first, self.second - self.noise * np.eye(size),
                                self.weights[-1], self.n_reports / variance**2, self.n_reports / variance)

    def value_and_gradients(self, mean, covariance, with_gradients=True):
        """Return the log-likelihood and its derivatives with respect to mean and covariance of v, for every walker.

        The mean and its derivative are None without an intercept.
        """
        return gaussian_value_and_gradients(self.n_reports, self.first, self.second, self.noise, mean=mean,
                                            covariance=covariance, with_gradients=with_gradients)


def record_weights(protocol):
    """Return the weights of the entries of (x, y) in a report."""
    return np.append(np.ones(protocol.n_features), np.full(protocol.n_responses, protocol.y_weight))


def above_floor(law):
    """Return the covariance of a report with a variance of its noise that is not zero."""
    return dataclasses.replace(law, constant=max(law.constant, LEAST_NOISE))


def weighted_moments(mean, second, y_weight, information, mean_information, n_responses=1):
    """Return moments of (x, y), given those of (x, wy) and the inverse variances of an entry of each."""
    weights = np.append(np.ones(len(second) - n_responses), np.full(n_responses, y_weight))
    return ReportedMoments(np.zeros(len(second)) if mean is None else mean / weights,
                           second / np.outer(weights, weights), y_weight**2 * information,
                           y_weight**2 * mean_information, mean_information,
                           0.5 * y_weight**4 * information, n_responses)  # svec: half of that off the diagonal


def gaussian_value_and_gradients(n_reports, first, second, noise, mean, covariance, with_gradients=True):
    """Return the log-likelihood of noisy Gaussian vectors, and its derivatives with respect to mean and covariance.

    The vectors enter through the averages ``first`` of z and ``second`` of z z'.
    """
    order = np.arange(covariance.shape[1])
    noisy = covariance.copy()  # C
    noisy[:, order, order] += noise
    scatter = second  # S
    if mean is not None:
        cross = mean[:, :, None] * first
        scatter = second - cross - cross.swapaxes(1, 2) + mean[:, :, None] * mean[:, None, :]
    precision = np.linalg.inv(noisy)
    relative = precision @ scatter  # C^-1 S
    value = -0.5 * n_reports * (np.linalg.slogdet(noisy)[1] + np.trace(relative, axis1=1, axis2=2))
    if not with_gradients:
        return value, None, None
    by_covariance = 0.5 * n_reports * (relative @ precision - precision)  # N/2 (C^-1 S C^-1 - C^-1)
    if mean is None:
        return value, None, by_covariance
    return value, n_reports * matvec(precision, first - mean), by_covariance


def _inner(one, other):
    """Return the Frobenius product of contiguous matrices, for every walker."""
    return np.vecdot(one.reshape(len(one), -1), other.reshape(len(other), -1))


def _log_determinant(variances):
    r"""Return :math:`\sum_{i\le j}\log M_{ij}` of symmetric matrices M."""
    logs = np.log(variances).reshape(len(variances), -1)
    return 0.5 * (logs.sum(axis=1) + logs[:, ::variances.shape[1] + 1].sum(axis=1))


def _subtract_determinant(by_moments, values, variances):
    """Subtract, in place, the derivative of half the log-determinant, which is diagonal in the eigenbasis."""
    step = values.shape[1] + 1
    ratio = (values[:, None, :] / variances).reshape(len(values), -1)
    total = ratio.reshape(variances.shape).sum(axis=2)
    by_moments.reshape(len(values), -1)[:, ::step] -= total + ratio[:, ::step]
