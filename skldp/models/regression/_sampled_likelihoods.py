r"""Log-likelihoods of moments of which each client fills some.

With D the mean reports minus their expectations, :math:`\log p = -\frac12D^TV^{-1}D - \frac12\log|V|`, where V is the
covariance of ``SampledNoise``. It has no structure by which it could be inverted in :math:`O(d^3)` operations: entries
of the same people are correlated, and those of different people are not. So its correlations, or all of it for labels,
are fixed at a pilot estimate, which takes :math:`O(d^6)` operations once, and :math:`O(d^4)` for each parameter.

*Approximations.* That, and the numbers of clients who fill two entries, relative to those who fill each, which are
replaced by their expectations.
"""

import numpy as np

from skldp.models.regression._label_moments import LabelMomentLikelihood
from skldp.models.regression._moment_likelihoods import MomentLikelihood


class SampledMomentLikelihood(MomentLikelihood):
    r"""Log-likelihood of mean moments of Gaussian records, of which each client fills some entries.

    Notes
    -----
    With the standard deviations :math:`s_a = \sqrt{v_a(\Theta, \tilde m)/n_a}` of the entries, exact at the parameters,
    and K the inverse of their correlations at the pilot estimate,

    .. math:: \log p = -\tfrac12t^TKt - \tfrac12\textstyle\sum_a\log v_a, \quad t_a = D_a/s_a, \qquad
              \partial_{\Theta_a} = (Kt)_a/s_a, \quad \partial_{v_a} = (t_a(Kt)_a - 1)/(2v_a),

    up to a constant, in which the second derivative is by the variance alone.
    """

    def __init__(self, protocol, tally):
        super().__init__(protocol, tally)
        mechanism = protocol.randomizer
        self.share = mechanism.n_sampled / protocol.n_features
        counts = protocol.counts(tally)[mechanism.places]
        self.place = tuple(part[counts > 0] for part in mechanism.places)
        self.counts, self.scales = counts[counts > 0], mechanism.subsets.scales
        self.products = (self.mean * np.outer(self.scales, self.scales))[self.place]  # in the units of a report
        self.weights = self.weights * self.scales[-len(self.weights):]
        self.inverse = np.eye(len(self.counts))

    def fix(self, mean, covariance):
        """Fix the correlations of the reports at those of records v with this mean, or None, and covariance."""
        theta, extended = covariance, None
        if mean is not None:
            extended = np.append(self.intercept_weight, mean)
            theta = np.outer(extended, extended)
            theta[1:, 1:] += covariance
        found = self.law.correlated(theta, extended, *self.place)
        deviations = np.sqrt(np.diag(found))
        self.inverse = np.linalg.inv(found / np.outer(deviations, deviations))

    def _evaluate(self, mean, moments, with_gradients):
        rows, columns = self.place
        law = self.law.of_records(np.diagonal(moments, axis1=1, axis2=2))
        variances = EntryVariances(law, moments, mean, rows, columns)
        sizes = np.sqrt(variances.values / self.counts)
        scores = (self.products - moments[:, rows, columns]) / sizes
        weighted = scores @ self.inverse
        value = -0.5 * (np.vecdot(scores, weighted) + np.log(variances.values).sum(axis=1))
        if not with_gradients:
            return value, None, None
        by_moments, by_mean = variances.pull_back((scores * weighted - 1) / (2 * variances.values))
        by_moments[:, rows, columns] += 0.5 * weighted / sizes
        by_moments[:, columns, rows] += 0.5 * weighted / sizes
        return value, by_moments, by_mean


class EntryVariances:
    r"""Variances of single entries of a report, for every walker, and their derivatives.

    Attributes
    ----------
    values : ndarray of shape (n, q)
        For entry (i, j) of Gaussian records, with :math:`\delta = 1\{i = j\}`, :math:`v = \frac{1 + \delta}2(c_0 +
        c_1(\Theta_{ii} + \Theta_{jj})) + c_2(\Theta_{ii}\Theta_{jj} + \Theta_{ij}^2 - 2m_i^2m_j^2) + \delta(g_0 +
        2g_1\Theta_{ij}) + (c_2 - 1)\Theta_{ij}^2`.
    """

    def __init__(self, law, moments, mean, rows, columns):
        self.rows, self.columns, self.shape = rows, columns, moments.shape
        self.linear, self.square, mixed = (np.reshape(part, (-1, 1)) for part in (law.linear, law.square, law.mixed))
        equal = 1.0 * (rows == columns)
        self.share, self.mixed = (1 + equal) / 2, mixed * equal
        diagonal = np.diagonal(moments, axis1=1, axis2=2)
        self.one, self.other, self.entry = diagonal[:, rows], diagonal[:, columns], moments[:, rows, columns]
        self.mean = None if mean is None else (mean[:, rows], mean[:, columns])
        products = 0.0 if mean is None else 2 * (self.mean[0] * self.mean[1]) ** 2
        self.values = (self.share * (law.constant + self.linear * (self.one + self.other)) + law.identity * equal
                       + self.square * (self.one * self.other - products) + 2 * self.mixed * self.entry
                       + (2 * self.square - 1) * self.entry**2)

    def pull_back(self, by_values):
        """Return the derivatives by the moments, symmetric, and by the mean, for those by the variances."""
        by_moments = np.zeros(self.shape)
        by_entry = by_values * ((2 * self.square - 1) * self.entry + self.mixed)
        by_moments[:, self.rows, self.columns] += by_entry
        by_moments[:, self.columns, self.rows] += by_entry
        common = self.share * self.linear
        diagonal = self._summed(by_values * (common + self.square * self.other),
                                by_values * (common + self.square * self.one))
        order = np.arange(self.shape[1])
        by_moments[:, order, order] += diagonal
        if self.mean is None:
            return by_moments, None
        left, right = self.mean
        slope = -4 * self.square * by_values * left * right
        return by_moments, self._summed(slope * right, slope * left)

    def _summed(self, by_rows, by_columns):
        """Add derivatives by the row's and the column's number of each entry up by place."""
        places = np.eye(self.shape[1])
        return by_rows @ places[self.rows] + by_columns @ places[self.columns]


class SampledLabelLikelihood(LabelMomentLikelihood):
    """Log-likelihood of mean moments of labelled records, of which each client fills some entries."""

    def __init__(self, protocol, tally):
        super().__init__(protocol, tally)
        mechanism = protocol.randomizer
        self.share = mechanism.n_sampled / protocol.n_features
        start, order = self.x.start, mechanism.order
        x = np.arange(start, order - 1)
        first = np.zeros(order - 1 if start else 0, dtype=np.intp)  # the entries with the constant, if there is one
        rest = np.concatenate([first, x]), np.concatenate([np.arange(1, order)[:len(first)], np.full(len(x), order - 1)])
        self.place = tuple(np.concatenate(pair) for pair in zip((self.rows + start, self.columns + start), rest))
        self.scales = mechanism.subsets.scales
        self.counts = protocol.counts(tally)[self.place]

    def precision(self, moments):
        """Return the inverse of the covariance of the mean reports, divided by their number, for one walker."""
        moments = moments.weighted(self.y_weight, self.intercept_weight).scaled(self.scales[self.x.start])
        rows, columns = self.place
        found = self.law.of_report(self._product_covariance(moments), moments.matrix()[0], rows, columns)
        found *= self.law.subsets.overlap(rows, columns)
        isometry = np.where(rows == columns, 1.0, np.sqrt(2))
        return precision_of_means(found, self.counts, entry_scales(self.scales, self.place) / isometry) / self.n_reports

    def _product_covariance(self, moments):
        """Return the covariance of the products of the entries of a record."""
        second, mean, root2 = moments.second()[0], moments.x_mean[0], np.sqrt(2)
        j, k = self.rows, self.columns
        square = second[np.ix_(j, j)] * second[np.ix_(k, k)] + second[np.ix_(j, k)] * second[np.ix_(k, j)]
        square -= 2 * np.outer(mean[j] * mean[k], mean[j] * mean[k])
        cross = moments.cross_covariance(j, k)[0] / root2
        return np.block([[square, cross], [cross.T, moments.linear_covariance()[0] / 2]])


def entry_scales(scales, place):
    """Return the factors of the entries of a matrix of moments in a report, at places (rows, columns)."""
    return scales[place[0]] * scales[place[1]]


def precision_of_means(covariance, counts, scales):
    r"""Return the inverse covariance of means of entries, of which ``counts`` clients each fill one.

    ``covariance`` has :math:`C_{ab}V_{ab}` of ``SampledNoise`` for entries times ``scales``. An entry that nobody fills
    has the precision zero.
    """
    kept = np.flatnonzero(counts)
    weights = np.sqrt(counts[kept]) * scales[kept]
    out = np.zeros_like(covariance)
    out[np.ix_(kept, kept)] = np.linalg.inv(covariance[np.ix_(kept, kept)]) * np.outer(weights, weights)
    return out
