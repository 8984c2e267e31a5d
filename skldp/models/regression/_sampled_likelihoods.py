r"""Log-likelihoods of moments of which each client fills some, with their covariance fixed at a pilot estimate.

With D the mean reports minus their expectations, :math:`\log p = -\frac12D^TV^{-1}D`, where V is the covariance of
``SampledNoise``. It has no structure by which it could be inverted in :math:`O(d^3)` operations for every parameter:
entries of the same people are correlated, and those of different people are not. So it is evaluated once, at a pilot
estimate, which takes :math:`O(d^6)` operations, and :math:`O(d^4)` for each parameter.

*Approximations.* The covariance at the pilot estimate stands for that at the parameters. The numbers of clients who
fill two entries, relative to those who fill each, are replaced by their expectations.
"""

import numpy as np

from skldp.models.regression._label_moments import LabelMomentLikelihood
from skldp.models.regression._moment_likelihoods import MomentLikelihood


class SampledMomentLikelihood(MomentLikelihood):
    """Log-likelihood of mean moments of Gaussian records, of which each client fills some entries."""

    def __init__(self, protocol, tally):
        super().__init__(protocol, tally)
        mechanism = protocol.randomizer
        self.share = mechanism.n_sampled / protocol.n_features
        self.place, self.scales = mechanism.places, mechanism.subsets.scales
        self.counts = protocol.counts(tally)[self.place]
        self.precision = np.zeros((len(self.counts),) * 2)

    def fix(self, mean, covariance):
        """Fix the covariance of the reports at that of records v with this mean, or None, and covariance."""
        theta, extended = covariance, None
        if mean is not None:
            extended = np.append(self.intercept_weight, mean)
            theta = np.outer(extended, extended)
            theta[1:, 1:] += covariance
            extended = extended * self.scales
        found = self.law.correlated(theta * np.outer(self.scales, self.scales), extended, *self.place)
        self.precision = precision_of_means(found, self.counts, entry_scales(self.scales, self.place))

    def _evaluate(self, mean, moments, with_gradients):
        rows, columns = self.place
        deviation = (self.mean - moments)[:, rows, columns]
        weighted = deviation @ self.precision
        value = -0.5 * np.vecdot(deviation, weighted)
        if not with_gradients:
            return value, None, None
        by_moments = np.zeros_like(moments)
        by_moments[:, rows, columns] += 0.5 * weighted
        by_moments[:, columns, rows] += 0.5 * weighted
        return value, by_moments, None if mean is None else np.zeros_like(mean)


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
