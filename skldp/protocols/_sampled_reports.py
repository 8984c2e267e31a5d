"""Reports of moments in which each client fills the entries of some features: sums, and counts for each entry."""

import numpy as np

from skldp.mechanisms._sampled_moments import SampledMoments
from skldp.protocols._moment_reports import MomentReports
from skldp.protocols._possible_sums import as_python_ints, is_gram_matrix, product_sums, within_axes
from skldp.protocols._tallies import Tally


class SampledReports(MomentReports):
    """Axes of some features: sums of the products of the entries that clients fill, and how many fill each.

    ``sums`` of a tally has the shape (2, width, width), sums first. The mechanism is a :class:`SampledMoments`.
    """

    @classmethod
    def of(cls, delta, **options):
        """Return the reports of :class:`SampledMoments`, which is pure: delta is not used."""
        return cls(SampledMoments(**options))

    def tally(self, reports):
        """Tally of valid reports, which can be added to others."""
        filled = self.mechanism.filled(reports)
        return Tally(len(reports), np.stack([product_sums(np.where(filled, reports, 0)), product_sums(filled)]))

    def counts(self, tally):
        """Number of clients who fill each entry, shape (order, order)."""
        return tally.sums[1, :-1, :-1]

    def mean_moments(self, tally):
        """Mean of the decoded moments of a tally, in svec coordinates."""
        return self.mechanism.svec(self.mean_matrix(tally))

    def mean_matrix(self, tally):
        """Mean of the decoded products v v' over those who fill them, zero where nobody does; with noisy constants."""
        products = tally.sums[0] / np.maximum(tally.sums[1], 1)
        return self.mechanism.decode_means(products, self.counts(tally))

    def directions(self):
        """Refuse: how far one report can move the sums depends on its subset."""
        raise _no_bound()

    def extreme_effects(self, slopes):
        """Refuse, as ``directions`` does."""
        raise _no_bound()

    def possible(self, tally):
        """Whether valid reports can have these sums."""
        width = self.mechanism.width
        if tally.sums.shape != (2, width, width) or tally.sums.dtype != np.int64:
            return False
        sums, counts = tally.sums
        if not self._possible_counts(as_python_ints(counts), tally.n_reports) or not self._within(sums, counts):
            return False
        if tally.n_reports == 1:
            own = np.flatnonzero(np.diagonal(counts))
            return within_axes(sums[np.ix_(own, own)], 1, self.mechanism.part.axis)
        return within_axes(sums, tally.n_reports, self.mechanism.part.axis)

    def _possible_counts(self, counts, n_reports):
        """Whether these can be numbers of clients who fill each entry: s features each, and all others."""
        mechanism, single = self.mechanism, np.diagonal(counts)
        first, d, s = mechanism.subsets.first, mechanism.n_features, mechanism.n_sampled
        others = np.r_[0:first, first + d:mechanism.width]
        features = counts[first:first + d]
        return bool(is_gram_matrix(counts) and (counts[others] == single).all() and (single[others] == n_reports).all()
                    and (features[:, first:first + d].sum(axis=1) == s * single[first:first + d]).all()
                    and single[first:first + d].sum() == s * n_reports and (counts >= 0).all()
                    and (counts <= np.minimum.outer(single, single)).all())

    def _within(self, sums, counts):
        """Whether no sum is larger than its number of clients allows."""
        largest = self.mechanism.part.axis.longest ** 2
        return bool((abs(as_python_ints(sums)) <= largest * as_python_ints(counts)).all())


def _no_bound():
    return NotImplementedError("There is no influence bound with features_per_client: how far one forged report moves "
                               "a posterior mean depends on the features that it claims. Use reports of all features.")
