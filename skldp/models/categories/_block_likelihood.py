"""Likelihood of category frequencies under a block design, by fast Fourier transforms."""

import numpy as np


class BlockLikelihood:
    r"""Exact log-likelihood of reports of a block design, from the number of reports of each cell.

    Parameters
    ----------
    mechanism : BlockDesign
    counts : ndarray of shape (n_counts,)
        Number :math:`c_j` of reports of each cell.
    n_reports : int

    Notes
    -----
    With the difference set D and :math:`\kappa + 1` the ratio of the probabilities of a near and of a far report
    (:math:`e^\epsilon`, as implemented), the log-likelihood is :math:`\sum_jc_j\log(1 + \kappa u_j)`, where
    :math:`u_j = \sum_x\theta_x1_D(x - j)` is the frequency of the block j, a cyclic correlation. The gradient
    :math:`\kappa\sum_jc_j1_D(x - j)/(1 + \kappa u_j)` is a cyclic convolution. Each takes two transforms of length K
    for each walker.
    """

    def __init__(self, mechanism, counts, n_reports):
        self.mechanism, self.n_categories, self.n_reports = mechanism, mechanism.n_categories, n_reports
        self.p, self.q, self.contrast = mechanism.p, mechanism.q, mechanism.ratio - 1
        self.counts = np.asarray(counts, dtype=float)
        self.sums = mechanism.category_counts(counts)

    def _terms(self, frequencies):
        # Rounding errors of the transforms must not make a probability negative.
        return 1 + self.contrast * np.maximum(self.mechanism.sum_blocks(frequencies), 0.0)

    def log_likelihood(self, frequencies):
        """Log-likelihood, shape (n_walkers,)."""
        return np.log(self._terms(frequencies)) @ self.counts

    def value_and_gradient(self, frequencies):
        """Log-likelihood and gradient."""
        terms = self._terms(frequencies)
        return np.log(terms) @ self.counts, self.contrast * self.mechanism.sum_near(self.counts / terms)

    def report_log_likelihoods(self, frequencies):
        """Log-likelihood of one report of each cell, shape (n_counts, n_walkers)."""
        return np.log(self._terms(frequencies)).T

    def marginal(self, frequencies, categories):
        """Log-likelihood of frequencies of some categories, one by one, shape (n_categories, n)."""
        # The number of reports that are near a category is a binomial variable.
        mean = np.clip(self.q + (self.p - self.q) * frequencies, 1e-300, 1 - 1e-16)
        near = self.sums[categories, None]
        return near * np.log(mean) + (self.n_reports - near) * np.log1p(-mean)

    def estimate(self):
        """Return an unbiased estimate of the frequencies; equal frequencies if there are no reports."""
        if self.n_reports == 0:
            return np.full(self.n_categories, 1 / self.n_categories)
        return (self.sums / self.n_reports - self.q) / (self.p - self.q)
