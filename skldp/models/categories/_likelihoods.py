"""Likelihoods of category frequencies under each mechanism, with gradients.

Each maps frequencies of shape (n_walkers, n_categories) to a log-likelihood, up to a constant, and its gradient. The
gradient ignores that the frequencies sum to one.
"""

import numpy as np

from skldp.models.categories._pair_likelihood import PairLikelihood
from skldp.models.categories._simplex import project_on_simplex


class MultinomialLikelihood:
    r"""Exact log-likelihood of reports that are single categories: randomised response, and subsets of size one.

    Notes
    -----
    :math:`\sum_k c_k\log(q + (p-q)\theta_k)`.
    """

    def __init__(self, mechanism, counts, n_reports):
        self.p, self.q = mechanism.p, mechanism.q
        self.sums = np.asarray(counts, dtype=float)
        self.n_categories, self.n_reports = mechanism.n_categories, n_reports

    def log_likelihood(self, frequencies):
        """Log-likelihood, shape (n_walkers,)."""
        # Without noise a category can have probability zero: keep the logarithm finite.
        return np.log(np.maximum(self.q + (self.p - self.q) * frequencies, 1e-300)) @ self.sums

    def value_and_gradient(self, frequencies):
        """Log-likelihood and gradient."""
        gradient = self.sums * (self.p - self.q) / np.maximum(self.q + (self.p - self.q) * frequencies, 1e-300)
        return self.log_likelihood(frequencies), gradient

    def marginal(self, frequencies, categories):
        """Log-likelihood of frequencies of some categories, one by one, shape (n_categories, n)."""
        # As if counts were Poisson variables. The second term is constant in the sum over all categories.
        mean = np.maximum(self.q + (self.p - self.q) * frequencies, 1e-300)
        return self.sums[categories, None] * np.log(mean) - self.n_reports * mean

    def estimate(self):
        """Return an unbiased estimate of the frequencies; equal frequencies if there are no reports."""
        return unbiased(self.sums, self.n_reports, self.p, self.q)


class RowLikelihood:
    r"""Exact log-likelihood of rows of bits, from subset selection or unary encoding, by their distinct values.

    Notes
    -----
    For both mechanisms :math:`P(z|\theta) \propto 1 + \kappa\,z\cdot\theta`, with :math:`\kappa + 1` the ratio of the
    probabilities of a report that contains the record and of one that does not (:math:`e^\epsilon`, as implemented).
    Above a million entries the matrix product is in single precision: an error of 1e-7 in each term.
    """

    def __init__(self, mechanism, tally):
        dtype = np.float32 if tally.rows.shape[0] * tally.width > 10**6 else np.float64
        self.rows = np.ascontiguousarray(tally.unpacked(), dtype=dtype)
        self.weights = tally.multiplicity.astype(float)
        self.n_reports, self.sums = tally.n_reports, tally.sums
        self.mechanism, self.n_categories, self.p, self.q = mechanism, mechanism.n_categories, mechanism.p, mechanism.q
        self.contrast = mechanism.ratio - 1

    def _terms(self, frequencies):
        return 1 + self.contrast * (frequencies.astype(self.rows.dtype) @ self.rows.T)

    def log_likelihood(self, frequencies):
        """Log-likelihood, shape (n_walkers,)."""
        return np.log(self._terms(frequencies)) @ self.weights

    def value_and_gradient(self, frequencies):
        """Log-likelihood and gradient."""
        terms = self._terms(frequencies)
        gradient = (self.contrast * self.weights / terms).astype(self.rows.dtype) @ self.rows
        return np.log(terms) @ self.weights, gradient.astype(float)

    def marginal(self, frequencies, categories):
        """Approximate log-likelihood of frequencies of some categories, one by one, shape (n_categories, n)."""
        return _normal_marginal(self, frequencies, categories)

    def estimate(self):
        """Return an unbiased estimate of the frequencies; equal frequencies if there are no reports."""
        return unbiased(self.sums, self.n_reports, self.p, self.q)


class QuadraticLikelihood:
    r"""Second-order expansion of an expensive log-likelihood in the frequencies, whose gradient trajectories use.

    Under noise the log-likelihood of rows is nearly quadratic in :math:`\theta`: the more noise, the smaller its third
    derivative. The Hessian at :math:`\theta^*` is :math:`-\kappa^2\sum_i n_iz_iz_i^T/(1+\kappa z_i\cdot\theta^*)^2`.

    Parameters
    ----------
    likelihood : RowLikelihood
        Log-likelihood to expand.
    reference : ndarray of shape (n_categories,)
        Point :math:`\theta^*` of the expansion.
    """

    def __init__(self, likelihood, reference):
        value, gradient = likelihood.value_and_gradient(reference[None])
        scaled = likelihood.rows * (likelihood.contrast * np.sqrt(likelihood.weights)
                                    / likelihood._terms(reference[None])[0]).astype(likelihood.rows.dtype)[:, None]
        self.value, self.gradient, self.hessian = value[0], gradient[0], -(scaled.T @ scaled).astype(float)
        self.reference, self.n_categories = reference, likelihood.n_categories

    def value_and_gradient(self, frequencies):
        """Expansion and its gradient."""
        step = frequencies - self.reference
        change = step @ self.hessian
        return self.value + step @ self.gradient + np.vecdot(step, change) / 2, self.gradient + change


class CountLikelihood:
    r"""Normal approximation of the log-likelihood of column sums of bits, from subset selection or unary encoding.

    Notes
    -----
    The mean report has mean :math:`\mu_k = q + (p-q)\theta_k` and covariance S/N,
    :math:`S = \mathrm{diag}(D) + UMU^T` with :math:`U = [1\ \theta]`, where :math:`M_{11} = r - q^2`,
    :math:`M_{12} = a - r - q(p-q)` and :math:`M_{22} = -(p-q)^2`. Here a and r are the probabilities that a report
    contains two given categories if the record is one of them and if it is neither (:math:`pq` and :math:`q^2` under
    unary encoding). If all reports contain the same number of categories, the last category is dropped, because the
    others determine it. D is linear in :math:`\theta` and such that the diagonal of S is :math:`\mu_k(1-\mu_k)`. With
    :math:`e = \bar z - \mu` the value is :math:`-\frac N2e^TS^{-1}e - \frac12\log\det S`, in O(d) by the Woodbury
    identity.

    The approximation ignores the information in the co-occurrence of bits. This costs up to 8 % of the variance at
    epsilon up to 1, most where one category dominates, and up to 31 % at epsilon 4. :class:`PairedCountLikelihood`
    recovers most of it.
    """

    def __init__(self, mechanism, sums, n_reports):
        self.mechanism, self.n_categories = mechanism, mechanism.n_categories
        self.n_reports, self.sums = n_reports, np.asarray(sums)
        self.p, self.q = mechanism.p, mechanism.q
        self.n_used = self.n_categories if mechanism.n_ones is None else self.n_categories - 1
        self.mean = self.sums[: self.n_used] / max(n_reports, 1)
        self.core = _covariance_core(mechanism)
        self.d0, self.d1 = _diagonal(mechanism)

    def log_likelihood(self, frequencies):
        """Log-likelihood, shape (n_walkers,)."""
        return self._evaluate(frequencies)[0]

    def value_and_gradient(self, frequencies):
        """Log-likelihood and gradient."""
        value, theta, inverse, weighted_error, kernel = self._evaluate(frequencies)
        gradient = np.zeros_like(frequencies)
        if not self.n_reports:
            return value, gradient
        contrast, n = self.p - self.q, self.n_reports
        (_, m12), (_, m22) = self.core
        k11, k12, k22 = kernel
        # dS = diag(dD) + [0 dtheta] M U' + U M [0 dtheta]', and dD = d1 dtheta
        inner = m12 * weighted_error.sum(axis=1) + m22 * np.vecdot(theta, weighted_error)  # (M U' S^-1 e)_2
        inverse_diagonal = inverse - inverse**2 * (k11 + theta * (2 * k12 + theta * k22))  # diag(S^-1)
        # N S^-1 e (p - q + (M U' S^-1 e)_2 + d1/2 S^-1 e) - d1/2 diag(S^-1) - (S^-1 U M)_2
        gradient[:, : self.n_used] = (
            n * weighted_error * (contrast + inner[:, None] + self.d1 / 2 * weighted_error)
            - self.d1 / 2 * inverse_diagonal - inverse * (k12 + k22 * theta)
        )
        return value, gradient

    def marginal(self, frequencies, categories):
        """Approximate log-likelihood of frequencies of some categories, one by one, shape (n_categories, n)."""
        return _normal_marginal(self, frequencies, categories)

    def estimate(self):
        """Return an unbiased estimate of the frequencies; equal frequencies if there are no reports."""
        return unbiased(self.sums, self.n_reports, self.p, self.q)

    def _evaluate(self, frequencies):
        """Return the value, theta, D^-1, S^-1 e and the kernel K of S^-1 = D^-1 - D^-1 U K U' D^-1.

        K is (I + MA)^-1 M with A = U' D^-1 U, for two rows and columns (M + det(M) adj(A)) / det(I + MA).
        """
        theta = frequencies[:, : self.n_used]
        (m11, m12), (_, m22) = self.core
        mean = self.q + (self.p - self.q) * theta
        diagonal = np.maximum(self.d0 + self.d1 * theta, 1e-12)
        inverse, error = 1 / diagonal, self.mean - mean
        scaled_theta, scaled_error = theta * inverse, error * inverse
        a11, a12, a22 = inverse.sum(axis=1), scaled_theta.sum(axis=1), np.vecdot(theta, scaled_theta)
        det_core = m11 * m22 - m12**2
        det = 1 + m11 * a11 + 2 * m12 * a12 + m22 * a22 + det_core * (a11 * a22 - a12**2)
        kernel = np.stack([m11 + det_core * a22, m12 - det_core * a12, m22 + det_core * a11]) / det
        kernel = kernel[:, :, None]
        u1, u2 = scaled_error.sum(axis=1, keepdims=True), np.vecdot(theta, scaled_error)[:, None]  # U' D^-1 e
        weighted_error = (scaled_error - inverse * (kernel[0] * u1 + kernel[1] * u2)
                          - scaled_theta * (kernel[1] * u1 + kernel[2] * u2))
        log_determinant = np.log(diagonal).sum(axis=1) + np.log(np.maximum(det, 1e-300))
        value = -(self.n_reports * np.vecdot(error, weighted_error) + log_determinant) / 2
        return value if self.n_reports else np.zeros(len(theta)), theta, inverse, weighted_error, kernel


class PairedCountLikelihood(CountLikelihood):
    r"""Log-likelihood of column sums of bits and of pair counts, which an aggregator keeps if categories are few.

    Notes
    -----
    :class:`CountLikelihood` plus :class:`PairLikelihood`, whose weights of the pairs are optimal at a reference. The
    reference is the unbiased estimate of the frequencies, shrunk towards equal frequencies by the fraction of its
    variance that is noise, and projected on the simplex. If it is wrong, the weights are not optimal, but the weighted
    sum still has the correct mean.
    """

    def __init__(self, mechanism, pairs, n_reports):
        super().__init__(mechanism, np.diag(pairs), n_reports)
        equal, estimate = np.full(self.n_categories, 1 / self.n_categories), self.estimate()
        mean = self.q + (self.p - self.q) * equal
        noise = (mean * (1 - mean)).sum() / (max(n_reports, 1) * (self.p - self.q) ** 2)
        variation = np.square(estimate - equal).sum()
        signal = 1 - noise / variation if variation > noise else 0.0
        reference = project_on_simplex(equal + signal * (estimate - equal))
        self.pair_likelihood = PairLikelihood(mechanism, pairs, n_reports, reference)

    def log_likelihood(self, frequencies):
        """Log-likelihood, shape (n_walkers,)."""
        return super().log_likelihood(frequencies) + self.pair_likelihood.value_and_gradient(frequencies)[0]

    def value_and_gradient(self, frequencies):
        """Log-likelihood and gradient."""
        value, gradient = super().value_and_gradient(frequencies)
        pair_value, pair_gradient = self.pair_likelihood.value_and_gradient(frequencies)
        return value + pair_value, gradient + pair_gradient


def _covariance_core(mechanism):
    """Matrix M of the covariance of a report."""
    p, q = mechanism.p, mechanism.q
    one, neither = mechanism.pair_probabilities
    cross = one - neither - q * (p - q)
    return np.array([[neither - q**2, cross], [cross, -((p - q) ** 2)]])


def _diagonal(mechanism):
    """Return d0 and d1 of D = d0 + d1 theta: the diagonal of S minus that of U M U', where squares of theta cancel."""
    p, q, core = mechanism.p, mechanism.q, _covariance_core(mechanism)
    return q * (1 - q) - core[0, 0], (p - q) * (1 - 2 * q) - 2 * core[0, 1]


def _normal_marginal(part, frequencies, categories):
    """Normal log-likelihood of counts as if they were independent, with the variance D at the estimate.

    Along changes of the frequencies that keep their sum, the covariance of the counts is nearly D.
    """
    d0, d1 = _diagonal(part.mechanism)
    variance = np.maximum(d0 + d1 * np.clip(part.estimate()[categories], 0, 1), 1e-12)
    error = part.sums[categories, None] - part.n_reports * (part.q + (part.p - part.q) * frequencies)
    return -error**2 / (2 * max(part.n_reports, 1) * variance[:, None])


def pooled_estimate(likelihoods):
    """Return the unbiased estimates of all cohorts, weighted by their precision, and standard errors.

    Standard errors are infinite if there are no reports.
    """
    estimates = np.array([part.estimate() for part in likelihoods])
    means = [part.q + (part.p - part.q) * np.clip(estimate, 0, 1) for part, estimate in zip(likelihoods, estimates)]
    # Without noise a category that nobody has would have no variance: one client is then the least count.
    variances = [np.maximum(mean, 1 / max(part.n_reports, 1)) for part, mean in zip(likelihoods, means)]  # Poisson
    precisions = [part.n_reports * (part.p - part.q) ** 2 / variance for part, variance in zip(likelihoods, variances)]
    total = np.sum(precisions, axis=0)
    if not (total > 0).all():
        return estimates.mean(axis=0), np.full(estimates.shape[1], np.inf)
    return np.average(estimates, axis=0, weights=precisions), 1 / np.sqrt(total)


def unbiased(sums, n_reports, p, q):
    """Return an unbiased estimate of the frequencies; equal frequencies if there are no reports."""
    if n_reports == 0:
        return np.full(len(sums), 1 / len(sums))
    return (np.asarray(sums) / n_reports - q) / (p - q)
