"""Reports of moments in which each client fills the entries of some features: sums, and counts for each entry."""

import numpy as np

from skldp.mechanisms._axis import AXIS_RESOLUTION
from skldp.mechanisms._sampled_moments import SampledMoments
from skldp.protocols._moment_reports import MomentReports, symmetric_directions, symmetric_slopes
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
        """Directions in which one report can change the sums and counts, as arrays of the shape of the sums."""
        ones = symmetric_directions(self.mechanism.width)
        return [np.stack(pair) for pair in ([(AXIS_RESOLUTION**2 * one, 0 * one) for one in ones]
                                            + [(0 * one, one) for one in ones])]

    def extreme_effects(self, slopes):
        r"""Bounds on the change that one report can make to functions with these slopes along ``directions``.

        Notes
        -----
        A report z, zero where it is not filled, has the effect :math:`z^TAz + f^TBf` with the mask f of its entries.
        The first term is between the extreme eigenvalues of A. In the second one, the sum over the s features is at
        most that of the s largest rows, of each of which the s - 1 largest entries count.
        """
        products, counts = (symmetric_slopes(part, self.mechanism.width) for part in np.split(slopes, 2, axis=1))
        values = np.linalg.eigvalsh(products)
        return values[:, 0] - self._largest_count(-counts), values[:, -1] + self._largest_count(counts)

    def _largest_count(self, matrices):
        """Upper bound on f'Bf over the masks of all subsets, for matrices B."""
        first, d, s = self.mechanism.subsets.first, self.mechanism.n_features, self.mechanism.n_sampled
        features = slice(first, first + d)
        others = np.delete(np.arange(self.mechanism.width), features)
        inside = matrices[:, features, features]
        pairs = np.sort(inside - np.where(np.eye(d) > 0, np.inf, 0.0), axis=2)[:, :, d - s + 1:].sum(axis=2)
        own = np.diagonal(inside, axis1=1, axis2=2) + 2 * matrices[:, features][:, :, others].sum(axis=2) + pairs
        return matrices[:, others][:, :, others].sum(axis=(1, 2)) + np.sort(own, axis=1)[:, d - s:].sum(axis=1)

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
