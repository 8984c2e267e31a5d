"""Covariance of mean moments of which each client fills some entries."""

from dataclasses import dataclass, field, replace

import numpy as np

from skldp.mechanisms._feature_subsets import FeatureSubsets
from skldp.mechanisms._moment_noise import MomentNoise


@dataclass(frozen=True)
class SampledNoise(MomentNoise):
    r"""Covariance of mean moments, where each client fills the entries of a random subset of features.

    Parameters
    ----------
    constant, linear, square, identity, mixed, square_radius : float
        The covariance of a report on the features of its subset, in the units of a report.
    subsets : FeatureSubsets
        Distribution of the subset.

    Notes
    -----
    Given the subset, a decoded report is unbiased for the moments of its entries, with the covariance V of
    ``MomentNoise``: an entry of V depends on moments of its own four indices only, so it is the same for every subset
    that has them. The mean :math:`Z_a` of entry a is over the :math:`n_a` clients who fill it. Different clients are
    independent, so :math:`\mathrm{Cov}(Z_a, Z_b) = n_{ab}V_{ab}/(n_an_b)`, where :math:`n_{ab}` clients fill both. With
    :math:`n_{ab}/\sqrt{n_an_b}` replaced by its expectation this is

    .. math:: \mathrm{Cov}(Z_a, Z_b) = \frac{C_{ab}V_{ab}}{\sqrt{n_an_b}}, \qquad
              C_{ab} = \frac{\pi_{ab}}{\sqrt{\pi_a\pi_b}},

    with the variances exact. It contains the spread of the records: entries of different people vary independently.
    C is a correlation matrix, so the product of elements is positive definite.
    """

    subsets: FeatureSubsets = field(kw_only=True)

    def correlated(self, theta, mean, rows, columns):
        r"""Products :math:`C_{ab}V_{ab}` of the entries at (rows, columns), for Gaussian records, without :math:`n_a`.

        Parameters
        ----------
        theta : ndarray of shape (order, order)
            Second moments of the records, in the units of a report.
        mean : ndarray of shape (order,) or None
            Their mean.
        rows, columns : ndarray of shape (q,)
            Places of the entries.

        Returns
        -------
        ndarray of shape (q, q)
        """
        records = _product_covariance(theta, mean, rows, columns)
        return self.subsets.overlap(rows, columns) * self.of_report(records, theta, rows, columns)

    def of_records(self, squares):
        """Noise of records with these mean squares, shape (..., order), as ``within``: a report has s/d of features."""
        return self.within(squares @ self.subsets.probabilities[np.diag(self.subsets.number_of_features)])

    def of_report(self, records, theta, rows, columns):
        r"""Covariance V of the decoded entries of a report, given :math:`\mathrm{Cov}(v_iv_j, v_kv_l)`."""
        law = self.of_records(theta.diagonal())
        identity, moments, equal = 1.0 * (rows == columns), theta[rows, columns], np.eye(len(theta))
        out = law.square * records + law.constant / 2 * _symmetric(equal, equal, rows, columns)
        out += law.linear / 2 * (_symmetric(theta, equal, rows, columns) + _symmetric(equal, theta, rows, columns))
        mixed = np.outer(moments, identity)
        out += law.identity * np.outer(identity, identity) + law.mixed * (mixed + mixed.T)
        return out + (law.square - 1) * np.outer(moments, moments)

    def variance(self, left, right, theta):
        r"""Variance of :math:`l^TZr` for one client, without that of the records if everybody filled every entry.

        The rows l of a matrix, the vector r and the moments are in the units of the records, which are Gaussian with
        a constant first entry, if it is not a feature, and mean zero otherwise.
        """
        # Moments without the constant are those of the same clients.
        subsets, order = self.subsets.of_order(len(theta)), np.arange(len(theta))
        place = np.triu_indices(len(theta))
        mean = np.where(order < subsets.first, np.sqrt(np.diag(theta)), 0.0)
        products = left[:, :, None] * right
        weights = (products + products.swapaxes(1, 2))[:, *place] / np.where(place[0] == place[1], 2.0, 1.0)
        scales, shares = subsets.scales, subsets.pair_probabilities[place]
        reported = weights / (scales[place[0]] * scales[place[1]] * np.sqrt(shares))
        law = replace(self, subsets=subsets)
        found = law.correlated(theta * np.outer(scales, scales), mean * scales, *place)
        return (np.vecdot(reported @ found, reported)
                - np.vecdot(weights @ _product_covariance(theta, mean, *place), weights))


def _product_covariance(theta, mean, rows, columns):
    """Covariance of the products of entries of Gaussian vectors."""
    out = _symmetric(theta, theta, rows, columns)
    if mean is not None:
        products = mean[rows] * mean[columns]
        out -= 2 * np.outer(products, products)
    return out


def _symmetric(one, other, rows, columns):
    """Products A_ik B_jl + A_il B_jk of entries of symmetric matrices."""
    return (one[np.ix_(rows, rows)] * other[np.ix_(columns, columns)]
            + one[np.ix_(rows, columns)] * other[np.ix_(columns, rows)])
