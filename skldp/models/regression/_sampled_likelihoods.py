r"""Log-likelihoods of moments of which each client fills some.

With D the mean reports minus their expectations, :math:`\log p = -\frac12D^TV^{-1}D - \frac12\log|V|`, where V is the
covariance of ``SampledNoise``. It has no structure by which it could be inverted in :math:`O(d^3)` operations: entries
of the same people are correlated, and those of different people are not. So its correlations are fixed at a pilot
estimate, which takes :math:`O(d^6)` operations once, and :math:`O(d^4)` for each parameter. The variances are exact.

*Approximations.* The correlations at the pilot estimate stand for those at the parameters. The numbers of clients who
fill two entries, relative to those who fill each, are replaced by their expectations. With more than 2,000 entries,
those of 61 features, correlations are neglected.
"""

import copy

import numpy as np

from skldp.models.regression._label_moments import LabelMomentLikelihood
from skldp.models.regression._moment_likelihoods import LEAST_NOISE, MomentLikelihood

_MOST_CORRELATED = 2000  # entries whose correlations are used: their matrix has 32 MB, and that of 100 features 220 MB


class EntryLikelihood:
    r"""Log-likelihood of means of entries of the matrix of moments, in the units of a report.

    Parameters
    ----------
    protocol : SampledMomentProtocol or SampledLabelMomentProtocol
    tally : Tally
        Sums of its reports.
    law : SampledNoise
        Covariance of mean reports.
    place : tuple of two arrays
        Rows and columns of the entries. Those that nobody fills are left out.
    normal : ndarray of bool
        Whether both numbers of a product are normal; otherwise one of them is constant or a label.

    Notes
    -----
    With the standard deviations :math:`s_a = \sqrt{v_a(\Theta, \tilde m)/n_a}` of the entries, exact at the parameters,
    and K the inverse of their correlations at the pilot estimate,

    .. math:: \log p = -\tfrac12t^TKt - \tfrac12\textstyle\sum_a\log v_a, \quad t_a = D_a/s_a, \qquad
              \partial_{\Theta_a} = (Kt)_a/s_a, \quad \partial_{v_a} = (t_a(Kt)_a - 1)/(2v_a),

    up to a constant, in which the first derivative is by the expectation alone.
    """

    def __init__(self, protocol, tally, law, place, normal):
        kept = protocol.counts(tally)[place] > 0
        self.law, self.scales, self.kept = law, protocol.randomizer.subsets.scales, np.flatnonzero(kept)
        self.place, self.normal = tuple(part[kept] for part in place), normal[kept]
        self.correlated = len(self.kept) <= _MOST_CORRELATED
        self._read(protocol, tally)

    def _read(self, protocol, tally):
        """Read the means of the entries, and how many clients fill them."""
        self.counts = protocol.counts(tally)[self.place]
        self.products = (protocol.mean_matrix(tally) * np.outer(self.scales, self.scales))[self.place]

    def with_tally(self, protocol, tally):
        """Return the same entries of other reports."""
        entries = copy.copy(self)
        entries._read(protocol, tally)
        return entries

    @staticmethod
    def inverse(covariance):
        r"""Return K for :math:`C_{ab}V_{ab}` of ``SampledNoise`` at the pilot estimate, of the entries with reports."""
        deviations = np.sqrt(np.diag(covariance))
        return np.linalg.inv(covariance / np.outer(deviations, deviations))

    def evaluate(self, inverse, moments, mean, with_gradients=True):
        """Return the log-likelihood, and its derivatives by the moments, symmetric, and by the mean if there is one.

        Entries are independent if ``inverse`` is None.
        """
        rows, columns = self.place
        law = self.law.of_records(np.diagonal(moments, axis1=1, axis2=2))
        variances = EntryVariances(law, moments, mean, self.place, self.normal)
        sizes = np.sqrt(variances.values / self.counts)
        scores = (self.products - moments[:, rows, columns]) / sizes
        weighted = scores if inverse is None else scores @ inverse
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
        For entry (i, j), with :math:`\delta = 1\{i = j\}`, :math:`v = \frac{1 + \delta}2(c_0 +
        c_1(\Theta_{ii} + \Theta_{jj})) + c_2\mathrm{Var}(v_iv_j) + \delta(g_0 + 2g_1\Theta_{ij}) +
        (c_2 - 1)\Theta_{ij}^2`, where :math:`\mathrm{Var}(v_iv_j)` is :math:`\Theta_{ii}\Theta_{jj} + \Theta_{ij}^2 -
        2m_i^2m_j^2` for normal numbers, and :math:`\Theta_{ii}\Theta_{jj} - \Theta_{ij}^2` if one square is constant.
    """

    def __init__(self, law, moments, mean, place, normal):
        self.rows, self.columns = rows, columns = place
        self.shape = moments.shape
        self.linear, self.square, mixed = (np.reshape(part, (-1, 1)) for part in (law.linear, law.square, law.mixed))
        equal = 1.0 * (rows == columns)
        self.share, self.mixed, self.normal = (1 + equal) / 2, mixed * equal, 1.0 * normal
        diagonal = np.diagonal(moments, axis1=1, axis2=2)
        self.one, self.other, self.entry = diagonal[:, rows], diagonal[:, columns], moments[:, rows, columns]
        self.has_mean = mean is not None
        mean = mean if self.has_mean else np.zeros(moments.shape[:2])
        self.left, self.right = mean[:, rows], mean[:, columns]
        products = 2 * self.normal * (self.left * self.right) ** 2
        values = (self.share * (law.constant + self.linear * (self.one + self.other)) + law.identity * equal
                  + self.square * (self.one * self.other - products) + 2 * self.mixed * self.entry
                  + (2 * self.square * self.normal - 1) * self.entry**2)
        self.values = np.maximum(values, 0.5 * LEAST_NOISE)

    def pull_back(self, by_values):
        """Return the derivatives by the moments, symmetric, and by the mean, for those by the variances."""
        by_moments = np.zeros(self.shape)
        by_entry = by_values * ((2 * self.square * self.normal - 1) * self.entry + self.mixed)
        by_moments[:, self.rows, self.columns] += by_entry
        by_moments[:, self.columns, self.rows] += by_entry
        common, order = self.share * self.linear, np.arange(self.shape[1])
        by_moments[:, order, order] += self._summed(by_values * (common + self.square * self.other),
                                                    by_values * (common + self.square * self.one))
        if not self.has_mean:
            return by_moments, None
        slope = -4 * self.square * self.normal * by_values * self.left * self.right
        return by_moments, self._summed(slope * self.right, slope * self.left)

    def _summed(self, by_rows, by_columns):
        """Add derivatives by the row's and the column's number of each entry up by place."""
        places = np.eye(self.shape[1])
        return by_rows @ places[self.rows] + by_columns @ places[self.columns]


class SampledLikelihood:
    """Likelihood of the means of entries."""

    entries: EntryLikelihood

    def with_tally(self, protocol, tally):
        """Return the likelihood of other reports, with the same correlations."""
        likelihood = copy.copy(self)
        likelihood.entries = self.entries.with_tally(protocol, tally)
        return likelihood


class SampledMomentLikelihood(SampledLikelihood, MomentLikelihood):
    """Log-likelihood of mean moments of Gaussian records, of which each client fills some entries."""

    def __init__(self, protocol, tally):
        super().__init__(protocol, tally)
        mechanism = protocol.randomizer
        self.share = mechanism.n_sampled / protocol.n_features
        self.weights = self.weights * mechanism.subsets.scales[-len(self.weights):]
        normal = np.ones(mechanism.n_moments, dtype=bool)
        self.entries = EntryLikelihood(protocol, tally, self.law, mechanism.places, normal)
        self.inverse = None

    def fix(self, mean, covariance):
        """Fix the correlations of the reports at those of records v with this mean, or None, and covariance."""
        if not self.entries.correlated:
            return
        theta, extended = covariance, None
        if mean is not None:
            extended = np.append(self.intercept_weight, mean)
            theta = np.outer(extended, extended)
            theta[1:, 1:] += covariance
        self.inverse = self.entries.inverse(self.law.correlated(theta, extended, *self.entries.place))

    def _evaluate(self, mean, moments, with_gradients):
        return self.entries.evaluate(self.inverse, moments, mean, with_gradients)


class SampledLabelLikelihood(SampledLikelihood, LabelMomentLikelihood):
    """Log-likelihood of mean moments of labelled records, of which each client fills some entries.

    What it calls the precision is the inverse of the correlations alone.
    """

    def __init__(self, protocol, tally):
        super().__init__(protocol, tally)
        mechanism = protocol.randomizer
        self.share = mechanism.n_sampled / protocol.n_features
        self.scale = float(mechanism.subsets.scales[self.x.start])
        start, order = self.x.start, mechanism.order
        x = np.arange(start, order - 1)
        with_constant = np.arange(1, order) if start else np.empty(0, dtype=np.intp)
        rows = np.concatenate([self.rows + start, np.zeros_like(with_constant), x])
        columns = np.concatenate([self.columns + start, with_constant, np.full_like(x, order - 1)])
        normal = np.arange(len(rows)) < len(self.rows)
        self.entries = EntryLikelihood(protocol, tally, self.law, (rows, columns), normal)

    def precision(self, moments):
        """Return the inverse of the correlations of the mean reports, for one walker; None if they are not used."""
        if not self.entries.correlated:
            return None
        moments = self._in_units_of_report(moments)
        rows, columns = self.entries.place
        kept = np.ix_(self.entries.kept, self.entries.kept)
        found = self.law.of_report(self._product_covariance(moments)[kept], moments.matrix()[0], rows, columns)
        return self.entries.inverse(found * self.law.subsets.overlap(rows, columns))

    def plug_in_value(self, moments, precision):
        """Return the log-likelihood with fixed correlations."""
        return self._evaluate(moments, precision, False)

    def plug_in(self, moments, precision):
        """Return the log-likelihood with fixed correlations, and its derivatives by E xx', E x, E y and E yx."""
        value, by_moments, by_mean = self._evaluate(moments, precision, True)
        f, w, x, kappa = self.scale, self.y_weight, self.x, self.intercept_weight
        by_square, by_xy = f**2 * by_moments[:, x, x], 2 * f * w * by_moments[:, x, -1]
        if not moments.has_constant:
            return value, by_square, None, None, by_xy
        by_x = f * (2 * kappa * by_moments[:, 0, x] + by_mean[:, x])
        return value, by_square, by_x, 2 * kappa * w * by_moments[:, 0, -1], by_xy

    def _evaluate(self, moments, precision, with_gradients):
        moments = self._in_units_of_report(moments)
        mean = np.pad(moments.x_mean, ((0, 0), (self.x.start, 1))) if moments.has_constant else None
        return self.entries.evaluate(precision, moments.matrix(), mean, with_gradients)

    def _in_units_of_report(self, moments):
        return moments.weighted(self.y_weight, self.intercept_weight).scaled(self.scale)

    def _product_covariance(self, moments):
        """Return the covariance of the products of the entries of a record."""
        second, mean, root2 = moments.second()[0], moments.x_mean[0], np.sqrt(2)
        j, k = self.rows, self.columns
        square = second[np.ix_(j, j)] * second[np.ix_(k, k)] + second[np.ix_(j, k)] * second[np.ix_(k, j)]
        square -= 2 * np.outer(mean[j] * mean[k], mean[j] * mean[k])
        cross = moments.cross_covariance(j, k)[0] / root2
        return np.block([[square, cross], [cross.T, moments.linear_covariance()[0] / 2]])
