"""Information of pairs of bits about category frequencies, beyond the counts of single bits."""

import numpy as np


class PairLikelihood:
    r"""Normal approximation of a weighted sum of pair counts, given the single counts: a quadratic in the frequencies.

    Parameters
    ----------
    mechanism : SubsetSelection or UnaryEncoding
        Mechanism of the reports.
    pairs : ndarray of int, shape (n_categories, n_categories)
        Number of reports that contain both categories; on the diagonal, that contain the category.
    n_reports : int
        Number of reports.
    reference : ndarray of shape (n_categories,)
        Frequencies :math:`\theta^*` near the true ones.

    Notes
    -----
    The score of a report z is proportional to :math:`z/(1+\kappa z\cdot\theta^*)`. If all reports have the same
    :math:`z\cdot\theta^*`, the counts determine the sum of the scores. The next term of its expansion needs the sum of
    :math:`t = z\,(z\cdot\theta^*)`, which pair counts determine: :math:`\bar t = \frac1N\sum_i z_iz_i^T\theta^*`.

    A report contains the a categories of a set A with probability :math:`\alpha_a + \beta_a\sum_{j\in A}\theta_j`, so
    the means of z and t are linear in :math:`\theta` and their covariance is a sum over sets of at most four. Let
    :math:`\Gamma` be the regression of t on z at :math:`\theta^*`, V the covariance of its residuals and B the
    derivative of their mean. The value is
    :math:`-\frac N2\|\bar t - \Gamma\bar z - E_\theta[t - \Gamma z]\|^2_{V^{-1}}`. Added to the likelihood of the
    counts it is the normal approximation of both, except that V is evaluated at :math:`\theta^*`.

    With 8 to 32 categories, and on average over these, counts and pairs together lose less than 0.2 % of the variance
    at epsilon 1, 2 % at 2 and 6 % at 4. Counts alone lose up to 8, 22 and 31 %.
    """

    def __init__(self, mechanism, pairs, n_reports, reference):
        alpha, beta = containment(mechanism)
        t_slopes = _pair_mean_slopes(reference, alpha, beta)
        pair_probabilities = _pair_probabilities(reference, alpha, beta)
        mean_z, mean_t = np.diag(pair_probabilities), pair_probabilities @ reference
        cov_zz = pair_probabilities - np.outer(mean_z, mean_z)
        triples, quadruples = _weighted_moments(reference, alpha, beta)
        cov_tz, cov_tt = triples - np.outer(mean_t, mean_z), quadruples - np.outer(mean_t, mean_t)
        regression = cov_tz @ np.linalg.pinv(cov_zz, rcond=1e-10, hermitian=True)
        residual_cov = cov_tt - regression @ cov_tz.T  # V
        residual_slopes = t_slopes - beta[1] * regression  # B
        # Subsets have a fixed size, so in some directions t is a function of z and the residual variance is zero.
        precision = _inverse(residual_cov, 1e-9 * np.trace(cov_tt))
        observed = (pairs / max(n_reports, 1)).astype(float)
        residual = observed @ reference - regression @ np.diag(observed)
        intercept = mean_t - regression @ mean_z - residual_slopes @ reference
        self.n_reports = n_reports
        self.hessian = -n_reports * residual_slopes.T @ precision @ residual_slopes
        self.gradient_at_zero = n_reports * residual_slopes.T @ precision @ (residual - intercept)

    def value_and_gradient(self, frequencies):
        """Quadratic log-likelihood, up to a constant, and its gradient."""
        change = frequencies @ self.hessian
        return frequencies @ self.gradient_at_zero + np.vecdot(frequencies, change) / 2, self.gradient_at_zero + change


def containment(mechanism, largest=4):
    r"""Return alpha and beta such that a report contains a given set with probability alpha + beta * its frequency.

    Parameters
    ----------
    mechanism : SubsetSelection or UnaryEncoding
        Mechanism of the reports.
    largest : int, default=4
        Largest number a of categories in the set.

    Returns
    -------
    alpha, beta : ndarray of shape (largest + 1,)

    Notes
    -----
    Given the bit of the record itself, the other bits are exchangeable. Let :math:`\pi_a` and :math:`\pi'_a` be the
    probabilities that a given other bits are all set, if the bit of the record is set and if it is not. Then
    :math:`\alpha_a = p\pi_a + (1-p)\pi'_a` is the probability that a report contains a set without the record, and
    :math:`\alpha_a + \beta_a = p\pi_{a-1}` that it contains a set with the record.
    """
    p = mechanism.p
    with_own, without = mechanism.others_contained(largest)
    alpha = p * with_own + (1 - p) * without
    return alpha, np.append(0.0, p * with_own[:-1]) - np.append(0.0, alpha[1:])


def _pair_mean_slopes(weights, alpha, beta):
    """Derivative of E t with respect to the frequencies, which sum to one: E t for each category of the record."""
    d = len(weights)
    level = alpha[2] * (weights.sum() - weights) + alpha[1] * weights
    own = beta[2] * (weights.sum() - weights) + beta[1] * weights
    partner = beta[2] * (1 - np.eye(d)) * weights
    return level[:, None] + np.diag(own) + partner


def _pair_probabilities(theta, alpha, beta):
    """Probability that a report contains two categories; on the diagonal, that it contains the category."""
    both = alpha[2] + beta[2] * (theta[:, None] + theta)
    np.fill_diagonal(both, alpha[1] + beta[1] * theta)
    return both


def _weighted_moments(theta, alpha, beta):
    """Means of z_k z_l u and z_k z_l u^2 with u = z.theta, as sums over sets of three and four categories."""
    d = len(theta)
    k, l, m, n = np.ogrid[:d, :d, :d, :d]
    new_l, new_m = l != k, (m != k) & (m != l)
    new_n = (n != k) & (n != l) & (n != m)
    size = 1 + new_l + new_m
    inside = theta[k] + new_l * theta[l] + new_m * theta[m]
    triples = (alpha[size] + beta[size] * inside)[..., 0] @ theta
    size = size + new_n
    inside = inside + new_n * theta[n]
    quadruples = (alpha[size] + beta[size] * inside) @ theta @ theta
    return triples, quadruples


def _inverse(matrix, smallest):
    """Inverse in the directions with a variance above ``smallest``; zero in the others, which are rounding errors."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > smallest
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
