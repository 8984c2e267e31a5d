"""Log-likelihoods of aggregated regression reports, as functions of the records' mean and covariance."""

import numpy as np

from skldp.models.regression._covariance import matvec

# Variance floor for the noiseless case, as a share of the squared radius.
LEAST_NOISE = 1e-9


class MomentLikelihood:
    r"""Mean of noisy second moments of Gaussian records, in the time of an eigendecomposition.

    Parameters
    ----------
    protocol : MomentProtocol
        What the reports came under.
    tally : Tally
        Their sums.

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
    """

    def __init__(self, protocol, tally):
        mechanism = protocol.randomizer
        self.n_reports = tally.n_reports
        self.mean = mechanism.matrix(protocol.mean_moments(tally))
        self.intercept_weight = mechanism.intercept_weight
        self.noise = max(mechanism.noise_variance, LEAST_NOISE)

    def estimate(self):
        """Unbiased estimate of E v and E v v', the former None without an intercept."""
        if not self.intercept_weight:
            return None, self.mean
        return self.mean[0, 1:] / self.intercept_weight, self.mean[1:, 1:]

    @property
    def mean_weight(self):
        """Weight of the constant, hence of the means of x, in a report."""
        return self.intercept_weight

    @property
    def uncertainty(self):
        """Standard error of an entry of the estimate."""
        return np.sqrt(self.noise / max(self.n_reports, 1))

    def cross_information(self, n_features):
        """Inverse variance, roughly, of an entry of E x wy: an off-diagonal one is sent times the root of two."""
        return 2 * self.n_reports / (self.noise + 2 / (4 * n_features) ** 2)

    def value_and_slopes(self, mean, covariance, slopes=True):
        """Log-likelihood and its slopes in the mean (None without) and in the covariance of v, for every walker."""
        if mean is None:
            return self._centred(covariance, slopes)
        extended = np.empty((len(mean), mean.shape[1] + 1))
        extended[:, 0], extended[:, 1:] = self.intercept_weight, mean
        moments = extended[:, :, None] * extended[:, None, :]
        moments[:, 1:, 1:] += covariance
        value, by_moments, by_mean = self._extended(extended, moments, slopes)
        if not slopes:
            return value, None, None
        by_mean += 2 * matvec(by_moments, extended)
        return value, by_mean[:, 1:], by_moments[:, 1:, 1:]

    def _spectrum(self, moments):
        """Eigenvalues, vectors, D and M of the moments, the latter two in the eigenbasis."""
        values, vectors = np.linalg.eigh(moments)
        deviation = vectors.swapaxes(1, 2) @ self.mean @ vectors
        deviation.reshape(len(values), -1)[:, ::values.shape[1] + 1] -= values
        spread = values[:, :, None] * (2 * values)[:, None, :]
        spread += self.noise
        return values, vectors, deviation, spread

    def _centred(self, moments, slopes):
        values, vectors, deviation, spread = self._spectrum(moments)
        solved = deviation / spread
        value = -0.5 * self.n_reports * _inner(deviation, solved) - 0.5 * _log_determinant(spread)
        if not slopes:
            return value, None, None
        inner = solved @ (values[:, :, None] * solved)
        inner *= 2
        inner += solved
        inner *= self.n_reports
        _subtract_diagonal(inner, values, spread)
        return value, None, vectors @ inner @ vectors.swapaxes(1, 2)

    def _extended(self, mean, moments, slopes):
        values, vectors, deviation, spread = self._spectrum(moments)
        solved = deviation / spread
        turned = matvec(vectors.swapaxes(1, 2), mean)
        outer = turned[:, :, None] * turned[:, None, :]
        projected = outer / spread
        k = 1 - 2 * _inner(outer, projected)
        h = _inner(projected, deviation)
        value = -0.5 * self.n_reports * (_inner(deviation, solved) + 2 * h**2 / k)
        value -= 0.5 * (_log_determinant(spread) + np.log(k))
        if not slopes:
            return value, None, None
        solved += (2 * h / k)[:, None, None] * projected
        along = matvec(solved, turned)
        by_mean = -4 * self.n_reports * np.vecdot(turned, along)[:, None] * along
        by_mean += (4 / k)[:, None] * matvec(projected, turned)
        inner = solved @ (values[:, :, None] * solved)
        inner *= 2
        inner += solved
        inner *= self.n_reports
        inner -= (4 / k)[:, None, None] * (projected @ (values[:, :, None] * projected))
        _subtract_diagonal(inner, values, spread)
        return value, vectors @ inner @ vectors.swapaxes(1, 2), matvec(vectors, by_mean)


class RecordLikelihood:
    r"""Noisy Gaussian records, by their sums and products.

    Parameters
    ----------
    protocol : RecordProtocol
        What the reports came under.
    tally : Tally
        Sums of the reports and of their products.

    Notes
    -----
    Reports are :math:`z \sim N(\mu, C)`, :math:`C = \Psi + s^2I`, so with
    :math:`S = \overline{(z - \mu)(z - \mu)^T}` over the N reports
    :math:`\log p = -\frac N2(\log|C| + \mathrm{tr}\,C^{-1}S)`: exact, whatever N is, for records that are Gaussian.
    """

    mean_weight = 1.0  # reports contain x itself

    def __init__(self, protocol, tally):
        products = protocol.mean_products(tally)
        self.n_reports = tally.n_reports
        self.first, self.second = products[0, 1:], products[1:, 1:]
        self.noise = max(protocol.randomizer.noise_variance, LEAST_NOISE)
        self.centred = not protocol.has_intercept

    def estimate(self):
        """Unbiased estimate of E v and E v v', the former None without an intercept."""
        second = self.second - self.noise * np.eye(len(self.second))
        return (None if self.centred else self.first), second

    @property
    def uncertainty(self):
        """Standard error of an entry of the estimated second moments."""
        return np.sqrt(2 / max(self.n_reports, 1)) * (1 + self.noise)

    def cross_information(self, n_features):
        """Inverse variance, roughly, of an entry of E x wy."""
        return self.n_reports / (self.noise + 1 / (4 * n_features)) ** 2

    def value_and_slopes(self, mean, covariance, slopes=True):
        """Log-likelihood and its slopes in the mean (None without) and in the covariance of v, for every walker."""
        return gaussian_value_and_slopes(self.n_reports, self.first, self.second, self.noise, mean, covariance, slopes)


def gaussian_value_and_slopes(n_reports, first, second, noise, mean, covariance, slopes=True):
    """Log-likelihood of noisy Gaussian vectors with given mean moments, and its slopes in mean and covariance."""
    order = np.arange(covariance.shape[1])
    noisy = covariance.copy()
    noisy[:, order, order] += noise
    scatter = second
    if mean is not None:
        cross = mean[:, :, None] * first
        scatter = second - cross - cross.swapaxes(1, 2) + mean[:, :, None] * mean[:, None, :]
    precision = np.linalg.inv(noisy)
    solved = precision @ scatter
    value = -0.5 * n_reports * (np.linalg.slogdet(noisy)[1] + np.trace(solved, axis1=1, axis2=2))
    if not slopes:
        return value, None, None
    by_covariance = 0.5 * n_reports * (solved @ precision - precision)
    if mean is None:
        return value, None, by_covariance
    return value, n_reports * matvec(precision, first - mean), by_covariance


def _inner(one, other):
    """Frobenius product of contiguous matrices, for every walker."""
    return np.vecdot(one.reshape(len(one), -1), other.reshape(len(other), -1))


def _log_determinant(spread):
    r""":math:`\sum_{i\le j}\log M_{ij}` of symmetric matrices M."""
    logs = np.log(spread).reshape(len(spread), -1)
    return 0.5 * (logs.sum(axis=1) + logs[:, ::spread.shape[1] + 1].sum(axis=1))


def _subtract_diagonal(inner, values, spread):
    """Take off the slope of half the log-determinant, diagonal in the eigenbasis."""
    step = values.shape[1] + 1
    ratio = (values[:, None, :] / spread).reshape(len(values), -1)
    total = ratio.reshape(spread.shape).sum(axis=2)
    inner.reshape(len(values), -1)[:, ::step] -= total + ratio[:, ::step]
