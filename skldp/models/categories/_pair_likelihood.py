"""What pairs of bits tell about category frequencies beyond the counts of single bits."""

import numpy as np


class PairLikelihood:
    r"""Normal approximation of a weighted sum of pair counts, given the counts: a quadratic in the frequencies.

    Parameters
    ----------
    mechanism : SubsetSelection or UnaryEncoding
        What drew the reports.
    pairs : ndarray of int, shape (n_categories, n_categories)
        Number of reports that contain both categories; on the diagonal, one.
    n_reports : int
        Number of reports.
    reference : ndarray of shape (n_categories,)
        Frequencies :math:`\theta^*` near those sought.

    Notes
    -----
    The score of a report z is in proportion to :math:`z/(1+\kappa z\cdot\theta^*)`, and counts know its sum where all
    reports have the same :math:`z\cdot\theta^*`. The next term of its expansion needs the sum of
    :math:`t = z\,(z\cdot\theta^*)`, which pair counts know: :math:`\bar t = \frac1N\sum_i z_iz_i^T\theta^*`.

    A report contains the a categories of a set A with probability :math:`\alpha_a + \beta_a\sum_{j\in A}\theta_j`, so
    the means of z and t are linear in :math:`\theta` and their covariance is a sum over sets of at most four. With
    :math:`\Gamma` the regression of t on z at :math:`\theta^*`, V the covariance of what it leaves and B the slope of
    its mean, the value is :math:`-\frac N2\|\bar t - \Gamma\bar z - E_\theta[t - \Gamma z]\|^2_{V^{-1}}`. Added to the
    likelihood of the counts it is the normal approximation of both, but for the covariance of this part, which is
    taken at :math:`\theta^*`.

    What counts and pairs leave out, for 8 to 32 categories and on average over them: less than 0.2 % of the variance at
    epsilon 1, 2 % at 2 and 6 % at 4, where counts alone leave out up to 8, 22 and 31 %.
    """

    def __init__(self, mechanism, pairs, n_reports, reference):
        alpha, beta = containment(mechanism)
        means = _pair_slopes(reference, alpha, beta)
        singles = _cooccurrence(reference, alpha, beta)
        centre_z, centre_t = np.diag(singles), singles @ reference
        cov_zz = singles - np.outer(centre_z, centre_z)
        triples, quadruples = _weighted_moments(reference, alpha, beta)
        cov_tz, cov_tt = triples - np.outer(centre_t, centre_z), quadruples - np.outer(centre_t, centre_t)
        regression = cov_tz @ np.linalg.pinv(cov_zz, rcond=1e-10, hermitian=True)
        left = cov_tt - regression @ cov_tz.T
        slope = means - beta[1] * regression
        # Subsets have a fixed size: there are directions in which t is a function of z, and nothing is left.
        weight = _inverse(left, 1e-9 * np.trace(cov_tt))
        found = (pairs / max(n_reports, 1)).astype(float)
        offset = found @ reference - regression @ np.diag(found)
        level = centre_t - regression @ centre_z - slope @ reference
        self.n_reports = n_reports
        self.hessian = -n_reports * slope.T @ weight @ slope
        self.slope = n_reports * slope.T @ weight @ (offset - level)

    def value_and_gradient(self, frequencies):
        """The quadratic, up to a constant, and its gradient."""
        bend = frequencies @ self.hessian
        return frequencies @ self.slope + np.vecdot(frequencies, bend) / 2, self.slope + bend


def containment(mechanism, largest=4):
    r"""Probability of a report that contains all of a categories: level, and slope in their frequencies.

    Parameters
    ----------
    mechanism : SubsetSelection or UnaryEncoding
        What draws the reports.
    largest : int, default=4
        The largest a.

    Returns
    -------
    alpha, beta : ndarray of shape (largest + 1,)

    Notes
    -----
    Given whether the record's own bit is set, the others are exchangeable; :math:`\pi_a` and :math:`\pi'_a` are the
    probabilities that a given others are all set, with and without it. Then
    :math:`\alpha_a = p\pi_a + (1-p)\pi'_a` is the probability of a set that the record is not in, and
    :math:`\alpha_a + \beta_a = p\pi_{a-1}` of one that it is in.
    """
    p = mechanism.p
    with_own, without = mechanism.others_contained(largest)
    alpha = p * with_own + (1 - p) * without
    return alpha, np.append(0.0, p * with_own[:-1]) - np.append(0.0, alpha[1:])


def _pair_slopes(weights, alpha, beta):
    """Mean of t for each category of the record: slopes of its mean in the frequencies, which sum to one."""
    d = len(weights)
    level = alpha[2] * (weights.sum() - weights) + alpha[1] * weights
    own = beta[2] * (weights.sum() - weights) + beta[1] * weights
    partner = beta[2] * (1 - np.eye(d)) * weights
    return level[:, None] + np.diag(own) + partner


def _cooccurrence(theta, alpha, beta):
    """Probability of each pair of categories in a report, one on the diagonal."""
    both = alpha[2] + beta[2] * (theta[:, None] + theta)
    np.fill_diagonal(both, alpha[1] + beta[1] * theta)
    return both


def _weighted_moments(theta, alpha, beta):
    """Means of z_k z_l u and z_k z_l u^2, with u = z.theta: sums over sets of three and four categories."""
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
    """Inverse on the directions whose variance is not rounding, zero on the others."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    kept = values > smallest
    return (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
