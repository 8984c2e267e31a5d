"""Log-likelihoods of aggregated regression reports, as functions of the mean and covariance of the records."""

import numpy as np

from skldp.models.regression._covariance import matvec
from skldp.models.regression._reported import ReportedMoments

# Variance floor for the noiseless case, as a share of the squared radius.
LEAST_NOISE = 1e-9


class MomentLikelihood:
    r"""Log-likelihood of the mean of noisy second moments of Gaussian records, in O(d^3).

    Notes
    -----
    Records :math:`v = (x, w\eta) \sim N(\mu, \Psi)` are extended by the constant, :math:`\tilde v = (\kappa, v)`. With
    :math:`\tilde m = (\kappa, \mu)`, :math:`\Theta = E\tilde v\tilde v^T = U\Lambda U^T`, :math:`D = \bar Z - \Theta`,
    :math:`M_{ij} = \tau^2 + 2\lambda_i\lambda_j`, :math:`A^{-1}[X] = U((U^TXU)/M)U^T` (elementwise division),
    :math:`P = A^{-1}[\tilde m\tilde m^T]`, :math:`k = 1 - 2\tilde m^TP\tilde m` and
    :math:`h = \langle P, D\rangle`, the mean of N reports is approximately Gaussian with

    .. math:: \log p = -\tfrac N2\left(\langle D, A^{-1}[D]\rangle + 2h^2/k\right)
              - \tfrac12\left(\textstyle\sum_{i\le j}\log M_{ij} + \log k\right),

    equal to the density with the full covariance :math:`\tau^2I + \mathrm{Cov}(\mathrm{svec}\,\tilde v\tilde v^T)`
    up to a constant. Without a constant entry, :math:`\mu = 0` and the terms with P, h and k vanish.

    With :math:`Q = A^{-1}[D] + (2h/k)P`, for which :math:`\tilde m^TQ\tilde m = h/k`, the derivatives are, in the
    eigenbasis,

    .. math:: \partial_\Theta = N(Q + 2Q\Lambda Q) - \tfrac4kP\Lambda P
              - \mathrm{diag}_i\left(\textstyle\sum_j\lambda_j/M_{ij} + \lambda_i/M_{ii}\right), \quad
              \partial_{\tilde m} = -4N(\tilde m^TQ\tilde m)Q\tilde m + \tfrac4kP\tilde m.
    """

    def __init__(self, protocol, tally):
        mechanism = protocol.randomizer
        self.n_reports = tally.n_reports
        self.mean = mechanism.matrix(protocol.mean_moments(tally))
        self.intercept_weight = mechanism.intercept_weight
        self.noise = max(mechanism.noise_variance, LEAST_NOISE)
        self.n_responses = protocol.n_responses

    def reported(self, y_weight):
        """Return the estimated moments of (x, y)."""
        d, shift = max(len(self.mean) - 1, 1), int(self.intercept_weight > 0)
        # Noise, and the spread of the records; svec multiplies what is off the diagonal by the root of two.
        information = 2 * self.n_reports / (self.noise + 2 / (4 * d) ** 2)
        mean = self.mean[0, 1:] / self.intercept_weight if shift else None
        return weighted_moments(mean, self.mean[shift:, shift:], y_weight, information,
                                self.intercept_weight**2 * information, self.n_responses)

    def value_and_gradients(self, mean, covariance, with_gradients=True):
        """Return the log-likelihood and its derivatives with respect to mean and covariance of v, for every walker.

        The mean and its derivative are None without an intercept.
        """
        if mean is None:
            return self._centred(covariance, with_gradients)
        extended = np.empty((len(mean), mean.shape[1] + 1))
        extended[:, 0], extended[:, 1:] = self.intercept_weight, mean
        moments = extended[:, :, None] * extended[:, None, :]
        moments[:, 1:, 1:] += covariance
        value, by_moments, by_mean = self._extended(extended, moments, with_gradients)
        if not with_gradients:
            return value, None, None
        by_mean += 2 * matvec(by_moments, extended)  # Theta = Psi + m m', hence 2 G m with G the derivative of Theta
        return value, by_mean[:, 1:], by_moments[:, 1:, 1:]

    def _spectrum(self, moments):
        """Return eigenvalues and eigenvectors of the moments, and D and M in the eigenbasis."""
        values, vectors = np.linalg.eigh(moments)
        deviation = vectors.swapaxes(1, 2) @ self.mean @ vectors
        deviation.reshape(len(values), -1)[:, ::values.shape[1] + 1] -= values
        variances = values[:, :, None] * (2 * values)[:, None, :]
        variances += self.noise
        return values, vectors, deviation, variances

    def _centred(self, moments, with_gradients):
        values, vectors, deviation, variances = self._spectrum(moments)
        q_matrix = deviation / variances  # Q = A^-1[D]
        value = -0.5 * self.n_reports * _inner(deviation, q_matrix) - 0.5 * _log_determinant(variances)
        if not with_gradients:
            return value, None, None
        by_moments = q_matrix @ (values[:, :, None] * q_matrix)  # N (Q + 2 Q Lambda Q)
        by_moments *= 2
        by_moments += q_matrix
        by_moments *= self.n_reports
        _subtract_determinant(by_moments, values, variances)
        return value, None, vectors @ by_moments @ vectors.swapaxes(1, 2)

    def _extended(self, mean, moments, with_gradients):
        values, vectors, deviation, variances = self._spectrum(moments)
        q_matrix = deviation / variances  # A^-1[D], the first term of Q
        rotated_mean = matvec(vectors.swapaxes(1, 2), mean)  # U'm
        outer = rotated_mean[:, :, None] * rotated_mean[:, None, :]
        p_matrix = outer / variances  # P = A^-1[m m']
        k = 1 - 2 * _inner(outer, p_matrix)
        h = _inner(p_matrix, deviation)
        value = -0.5 * self.n_reports * (_inner(deviation, q_matrix) + 2 * h**2 / k)
        value -= 0.5 * (_log_determinant(variances) + np.log(k))
        if not with_gradients:
            return value, None, None
        q_matrix += (2 * h / k)[:, None, None] * p_matrix  # Q = A^-1[D] + (2h/k) P
        q_mean = matvec(q_matrix, rotated_mean)  # Q m
        by_mean = -4 * self.n_reports * np.vecdot(rotated_mean, q_mean)[:, None] * q_mean  # -4N (m'Qm) Q m
        by_mean += (4 / k)[:, None] * matvec(p_matrix, rotated_mean)  # 4/k P m
        by_moments = q_matrix @ (values[:, :, None] * q_matrix)  # N (Q + 2 Q Lambda Q)
        by_moments *= 2
        by_moments += q_matrix
        by_moments *= self.n_reports
        by_moments -= (4 / k)[:, None, None] * (p_matrix @ (values[:, :, None] * p_matrix))  # 4/k P Lambda P
        _subtract_determinant(by_moments, values, variances)
        return value, vectors @ by_moments @ vectors.swapaxes(1, 2), matvec(vectors, by_mean)


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
        self.centred = not protocol.has_intercept

    def reported(self, y_weight):
        """Return the estimated moments of (x, y)."""
        size = len(self.second)
        variance = self.noise + 1 / (4 * size)  # of an entry of a noisy record; that of a product is its square
        return weighted_moments(None if self.centred else self.first, self.second - self.noise * np.eye(size), y_weight,
                                self.n_reports / variance**2, self.n_reports / variance)

    def value_and_gradients(self, mean, covariance, with_gradients=True):
        """Return the log-likelihood and its derivatives with respect to mean and covariance of v, for every walker.

        The mean and its derivative are None without an intercept.
        """
        return gaussian_value_and_gradients(self.n_reports, self.first, self.second, self.noise, mean=mean,
                                            covariance=covariance, with_gradients=with_gradients)


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
