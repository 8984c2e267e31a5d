"""Covariance of mean moments of which each client fills some entries."""

from dataclasses import dataclass, field, replace

import numpy as np

from skldp.mechanisms._feature_subsets import FeatureSubsets
from skldp.mechanisms._moment_noise import MomentNoise

_BLOCK_ENTRIES = 512  # entries whose covariance with all others is computed at once, so that it fits into memory


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

    def correlated(self, theta, mean, rows, columns, part=slice(None)):
        r"""Products :math:`C_{ab}V_{ab}` of the entries at (rows, columns), for Gaussian records, without :math:`n_a`.

        Parameters
        ----------
        theta : ndarray of shape (order, order)
            Second moments of the records, in the units of a report.
        mean : ndarray of shape (order,) or None
            Their mean.
        rows, columns : ndarray of shape (q,)
            Places of the entries.
        part : slice, default=slice(None)
            Entries a; those b are all.

        Returns
        -------
        ndarray of shape (q, q), or with fewer rows
        """
        records = _product_covariance(theta, mean, rows, columns, part)
        return self.subsets.overlap(rows, columns, part) * self.of_report(records, theta, rows, columns, part)

    def of_records(self, squares):
        """Noise of records with these mean squares, shape (..., order), as ``within``, for the longest subset.

        Otherwise the noise of a subset that is longer than the radius might be no covariance.
        """
        first, d, s = self.subsets.first, self.subsets.n_features, self.subsets.n_sampled
        features = squares[..., first:first + d]
        longest = np.partition(features, d - s, axis=-1)[..., d - s:].sum(axis=-1)
        return self.within(squares.sum(axis=-1) - features.sum(axis=-1) + longest)

    def of_report(self, records, theta, rows, columns, part=slice(None)):
        r"""Covariance V of the decoded entries of a report, given :math:`\mathrm{Cov}(v_iv_j, v_kv_l)`."""
        law = self.of_records(theta.diagonal())
        identity, moments, equal = 1.0 * (rows == columns), theta[rows, columns], np.eye(len(theta))
        out = law.square * records + law.constant / 2 * _symmetric(equal, equal, rows, columns, part)
        out += law.linear / 2 * _symmetric(theta, equal, rows, columns, part)
        out += law.linear / 2 * _symmetric(equal, theta, rows, columns, part)
        out += np.outer(identity[part], law.identity * identity + law.mixed * moments)
        return out + np.outer(moments[part], law.mixed * identity + (law.square - 1) * moments)

    def variance(self, left, right, theta):
        r"""Variance of :math:`l^TZr` for one client, without that of the records if everybody filled every entry.

        The rows l of a matrix, the vector r and the moments are in the units of the records, which are Gaussian with
        a constant first entry, if it is not a feature, and mean zero otherwise.
        """
        # Moments without the constant are those of the same clients.
        subsets, order = self.subsets.of_order(len(theta)), np.arange(len(theta))
        place, law = np.triu_indices(len(theta)), replace(self, subsets=subsets)
        mean = np.where(order < subsets.first, np.sqrt(np.diag(theta)), 0.0)
        products = left[:, :, None] * right
        weights = (products + products.swapaxes(1, 2))[:, *place] / np.where(place[0] == place[1], 2.0, 1.0)
        scales, shares = subsets.scales, subsets.pair_probabilities[place]
        reported = weights / (scales[place[0]] * scales[place[1]] * np.sqrt(shares))
        scaled, total = theta * np.outer(scales, scales), np.zeros(len(left))
        for start in range(0, len(shares), _BLOCK_ENTRIES):
            part = slice(start, start + _BLOCK_ENTRIES)
            total += np.vecdot(reported[:, part] @ law.correlated(scaled, mean * scales, *place, part), reported)
            total -= np.vecdot(weights[:, part] @ _product_covariance(theta, mean, *place, part), weights)
        return total

    def trace_variance(self, size, square):
        r"""Variance, due to the noise, of the sum of ``size`` diagonal entries: of one response, or of all features.

        The s features of a report, which are multiplied by the root of d/s, estimate the sum over all of them.
        """
        return super().trace_variance(min(size, self.subsets.n_sampled), square)


def _product_covariance(theta, mean, rows, columns, part):
    """Covariance of the products of entries of Gaussian vectors."""
    out = _symmetric(theta, theta, rows, columns, part)
    if mean is not None:
        products = mean[rows] * mean[columns]
        out -= 2 * np.outer(products[part], products)
    return out


def _symmetric(one, other, rows, columns, part):
    """Products A_ik B_jl + A_il B_jk of entries of symmetric matrices, for (i, j) in a part of the places (k, l)."""
    own_rows, own_columns = rows[part], columns[part]
    return (one[np.ix_(own_rows, rows)] * other[np.ix_(own_columns, columns)]
            + one[np.ix_(own_rows, columns)] * other[np.ix_(own_columns, rows)])
