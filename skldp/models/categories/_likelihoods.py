"""Likelihoods of category frequencies under each mechanism, with gradients.

Each maps frequencies of shape (n_walkers, n_categories) to a log-likelihood, up to a constant, and its gradient as if
the frequencies were free.
"""

import numpy as np

from skldp.models.categories._pair_likelihood import PairLikelihood
from skldp.models.categories._simplex import project_on_simplex


class MultinomialLikelihood:
    r"""Counts of reports that are single categories: randomised response, and subsets of one. Exact.

    Notes
    -----
    :math:`\sum_k c_k\log(q + (p-q)\theta_k)`.
    """

    def __init__(self, mechanism, counts, n_reports):
        self.p, self.q = mechanism.p, mechanism.q
        self.counts = np.asarray(counts, dtype=float)
        self.n_categories, self.n_reports = mechanism.n_categories, n_reports

    def log_likelihood(self, frequencies):
        """Log-likelihood, shape (n_walkers,)."""
        # Without noise a category can have no probability at all: keep the logarithm finite.
        return np.log(np.maximum(self.q + (self.p - self.q) * frequencies, 1e-300)) @ self.counts

    def value_and_gradient(self, frequencies):
        """Log-likelihood and gradient."""
        slope = self.counts * (self.p - self.q) / np.maximum(self.q + (self.p - self.q) * frequencies, 1e-300)
        return self.log_likelihood(frequencies), slope

    def estimate(self):
        """Unbiased estimate of the frequencies; uniform without reports."""
        return unbiased(self.counts, self.n_reports, self.p, self.q)


class RowLikelihood:
    r"""Distinct rows of bits, of subsets or of unary encoding. Exact.

    Notes
    -----
    For both mechanisms :math:`P(z|\theta) \propto 1 + \kappa\,z\cdot\theta`, with :math:`\kappa + 1` the ratio of the
    probabilities of a report that contains the record and of one that does not (:math:`e^\epsilon`, as implemented).
    The matrix product is in single precision beyond a million entries: an error of 1e-7 in each term.
    """

    def __init__(self, mechanism, tally):
        dtype = np.float32 if tally.rows.shape[0] * tally.width > 10**6 else np.float64
        self.rows = np.ascontiguousarray(tally.unpacked(), dtype=dtype)
        self.weights = tally.multiplicity.astype(float)
        self.n_reports, self.sums = tally.n_reports, tally.sums
        self.mechanism, self.n_categories = mechanism, mechanism.n_categories
        self.contrast = mechanism.ratio - 1

    def _terms(self, frequencies):
        return 1 + self.contrast * (frequencies.astype(self.rows.dtype) @ self.rows.T)

    def log_likelihood(self, frequencies):
        """Log-likelihood, shape (n_walkers,)."""
        return np.log(self._terms(frequencies)) @ self.weights

    def value_and_gradient(self, frequencies):
        """Log-likelihood and gradient."""
        terms = self._terms(frequencies)
        slope = (self.contrast * self.weights / terms).astype(self.rows.dtype) @ self.rows
        return np.log(terms) @ self.weights, slope.astype(float)

    def estimate(self):
        """Unbiased estimate of the frequencies; uniform without reports."""
        return unbiased(self.sums, self.n_reports, self.mechanism.p, self.mechanism.q)


class QuadraticLikelihood:
    r"""Second-order expansion in the frequencies of an expensive likelihood, to steer trajectories with.

    Under noise the log-likelihood of rows is nearly quadratic in :math:`\theta`: its third derivative is small in the
    noise. The Hessian at :math:`\theta^*` is :math:`-\kappa^2\sum_i n_iz_iz_i^T/(1+\kappa z_i\cdot\theta^*)^2`.

    Parameters
    ----------
    likelihood : RowLikelihood
        What is expanded.
    reference : ndarray of shape (n_categories,)
        Where.
    """

    def __init__(self, likelihood, reference):
        value, slope = likelihood.value_and_gradient(reference[None])
        scaled = likelihood.rows * (likelihood.contrast * np.sqrt(likelihood.weights)
                                    / likelihood._terms(reference[None])[0]).astype(likelihood.rows.dtype)[:, None]
        self.value, self.slope, self.hessian = value[0], slope[0], -(scaled.T @ scaled).astype(float)
        self.reference, self.n_categories = reference, likelihood.n_categories

    def value_and_gradient(self, frequencies):
        """Expansion and its gradient."""
        step = frequencies - self.reference
        bend = step @ self.hessian
        return self.value + step @ self.slope + np.vecdot(step, bend) / 2, self.slope + bend


class CountLikelihood:
    r"""Column sums of bits, of subsets or of unary encoding: their normal approximation.

    Notes
    -----
    The mean report has mean :math:`\mu_k = q + (p-q)\theta_k` and covariance S/N,
    :math:`S = \mathrm{diag}(D) + [1\ \theta]\,M\,[1\ \theta]^T`, where :math:`M_{11} = r - q^2`,
    :math:`M_{12} = a - r - q(p-q)` and :math:`M_{22} = -(p-q)^2`, with a and r the probabilities that a report contains
    two given categories if the record is one of them and if it is neither (:math:`pq` and :math:`q^2` under unary
    encoding). Where all reports contain the same number of categories, the last category is dropped, because it
    is known from the others. D, linear in :math:`\theta`, makes the diagonal :math:`\mu_k(1-\mu_k)`. With
    :math:`e = \bar z - \mu` the value is :math:`-\frac N2e^TS^{-1}e - \frac12\log\det S`, in O(d) by the Woodbury
    identity.

    The approximation gives up the information in the co-occurrence of bits: up to 8 % of the variance at epsilon up to
    1, the more the more one category holds, and up to 31 % at epsilon 4. :class:`PairedCountLikelihood` wins most of it
    back.
    """

    def __init__(self, mechanism, sums, n_reports):
        self.mechanism, self.n_categories = mechanism, mechanism.n_categories
        self.n_reports, self.sums = n_reports, np.asarray(sums)
        self.p, self.q = mechanism.p, mechanism.q
        self.n_used = self.n_categories if mechanism.n_ones is None else self.n_categories - 1
        self.mean = self.sums[: self.n_used] / max(n_reports, 1)
        self.core = _covariance_core(mechanism)
        # The diagonal of S less that of U M U' is D; the squares of the frequencies cancel.
        self.level = self.q * (1 - self.q) - self.core[0, 0]
        self.tilt = (self.p - self.q) * (1 - 2 * self.q) - 2 * self.core[0, 1]

    def log_likelihood(self, frequencies):
        """Log-likelihood, shape (n_walkers,)."""
        return self._evaluate(frequencies)[0]

    def value_and_gradient(self, frequencies):
        """Log-likelihood and gradient."""
        value, theta, inverse, solved, kernel = self._evaluate(frequencies)
        slope = np.zeros_like(frequencies)
        if not self.n_reports:
            return value, slope
        contrast, n = self.p - self.q, self.n_reports
        (_, cross), (_, square) = self.core
        corner, mixed, bend = kernel
        # dS = diag(dD) + [0 dtheta] M U' + U M [0 dtheta]': the quadratic form and the trace need one column each.
        inner = cross * solved.sum(axis=1) + square * np.vecdot(theta, solved)
        inverse_diagonal = inverse - inverse**2 * (corner + theta * (2 * mixed + theta * bend))
        slope[:, : self.n_used] = (
            n * solved * (contrast + inner[:, None] + self.tilt / 2 * solved)
            - self.tilt / 2 * inverse_diagonal - inverse * (mixed + bend * theta)
        )
        return value, slope

    def estimate(self):
        """Unbiased estimate of the frequencies; uniform without reports."""
        return unbiased(self.sums, self.n_reports, self.p, self.q)

    def _evaluate(self, frequencies):
        """The value, and what the gradient needs: D^-1, S^-1 e and the kernel K of S^-1 = D^-1 - D^-1 U K U' D^-1.

        K is (I + MA)^-1 M with A = U' D^-1 U, for two rows and columns (M + det(M) adj(A)) / det(I + MA).
        """
        theta = frequencies[:, : self.n_used]
        (corner, cross), (_, square) = self.core
        mean = self.q + (self.p - self.q) * theta
        diagonal = np.maximum(self.level + self.tilt * theta, 1e-12)
        inverse, error = 1 / diagonal, self.mean - mean
        weighted, scaled = theta * inverse, error * inverse
        a, b, c = inverse.sum(axis=1), weighted.sum(axis=1), np.vecdot(theta, weighted)
        det_core = corner * square - cross**2
        det = 1 + corner * a + 2 * cross * b + square * c + det_core * (a * c - b**2)
        kernel = np.stack([corner + det_core * c, cross - det_core * b, square + det_core * a]) / det
        kernel = kernel[:, :, None]
        flat, steep = scaled.sum(axis=1, keepdims=True), np.vecdot(theta, scaled)[:, None]
        solved = (scaled - inverse * (kernel[0] * flat + kernel[1] * steep)
                  - weighted * (kernel[1] * flat + kernel[2] * steep))
        log_determinant = np.log(diagonal).sum(axis=1) + np.log(np.maximum(det, 1e-300))
        value = -(self.n_reports * np.vecdot(error, solved) + log_determinant) / 2
        return value if self.n_reports else np.zeros(len(theta)), theta, inverse, solved, kernel


class PairedCountLikelihood(CountLikelihood):
    r"""Column sums of bits and counts of their pairs: what an aggregator keeps where categories are few.

    Notes
    -----
    :class:`CountLikelihood` plus :class:`PairLikelihood`, which weighs pairs as they matter at an estimate of the
    frequencies: the unbiased one, drawn towards equal frequencies by the share of its spread that is noise, and
    projected on the simplex. Where that is off, the weights are less than the best, and the
    mean of what is weighted is still the right one.
    """

    def __init__(self, mechanism, pairs, n_reports):
        super().__init__(mechanism, np.diag(pairs), n_reports)
        equal, estimate = np.full(self.n_categories, 1 / self.n_categories), self.estimate()
        mean = self.q + (self.p - self.q) * equal
        noise = (mean * (1 - mean)).sum() / (max(n_reports, 1) * (self.p - self.q) ** 2)
        spread = np.square(estimate - equal).sum()
        signal = 1 - noise / spread if spread > noise else 0.0
        reference = project_on_simplex(equal + signal * (estimate - equal))
        self.beyond = PairLikelihood(mechanism, pairs, n_reports, reference)

    def log_likelihood(self, frequencies):
        """Log-likelihood, shape (n_walkers,)."""
        return super().log_likelihood(frequencies) + self.beyond.value_and_gradient(frequencies)[0]

    def value_and_gradient(self, frequencies):
        """Log-likelihood and gradient."""
        value, slope = super().value_and_gradient(frequencies)
        more, steeper = self.beyond.value_and_gradient(frequencies)
        return value + more, slope + steeper


def _covariance_core(mechanism):
    """The matrix M of the covariance of a report."""
    p, q = mechanism.p, mechanism.q
    one, neither = mechanism.pair_probabilities
    cross = one - neither - q * (p - q)
    return np.array([[neither - q**2, cross], [cross, -((p - q) ** 2)]])


def unbiased(sums, n_reports, p, q):
    """Unbiased estimate of the frequencies; uniform without reports."""
    if n_reports == 0:
        return np.full(len(sums), 1 / len(sums))
    return (np.asarray(sums) / n_reports - q) / (p - q)
