r"""Random subsets of features, of which a client reports the entries of a record, and what the subsets have in common.

*Privacy.* The client draws the subset S before it reads its record, with a distribution that does not depend on the
record. For all records v and v' and every report (S, z) of a mechanism with budget epsilon,

.. math:: \frac{P(S, z \mid v)}{P(S, z \mid v')} = \frac{P(S)\,P(z \mid v_S)}{P(S)\,P(z \mid v'_S)}
          \le e^\epsilon,

so the subset costs nothing, whether or not its distribution is exactly uniform.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class FeatureSubsets:
    r"""Uniformly random subsets of s of d features, which are neighbouring entries of a longer record.

    Parameters
    ----------
    n_features, n_sampled : int
        Numbers d and s.
    first : int
        Place of the first feature in a record.
    order : int
        Length of a record. Its other entries are in every report.

    Notes
    -----
    m given features are all in a subset with probability

    .. math:: \pi_m = \frac{s(s - 1)\cdots(s - m + 1)}{d(d - 1)\cdots(d - m + 1)} .
    """

    n_features: int
    n_sampled: int
    first: int
    order: int

    @cached_property
    def probabilities(self):
        r""":math:`\pi_m` for up to four features, the most that two entries of a matrix of moments have."""
        d, s = self.n_features, self.n_sampled
        steps = [max(s - m, 0) / (d - m) if d > m else 0.0 for m in range(4)]
        return np.cumprod([1.0, *steps])

    @cached_property
    def number_of_features(self):
        """Number of different features in an entry of the matrix of moments, shape (order, order)."""
        features = self._features
        return (features[:, None] + features - np.diag(features)).astype(np.intp)

    @cached_property
    def pair_probabilities(self):
        """Probability that a client fills an entry of the matrix of moments, shape (order, order)."""
        return self.probabilities[self.number_of_features]

    @cached_property
    def smallest(self):
        """Mask of the entries of a client with the first s features."""
        place = np.arange(self.order)
        return (place < self.first + self.n_sampled) | (place >= self.first + self.n_features)

    def of_order(self, order):
        """Return the same subsets for records without some of the entries before the features."""
        return replace(self, first=self.first - (self.order - order), order=order)

    @property
    def _features(self):
        """Which entries of a record are features, as zeros and ones."""
        place = np.arange(self.order)
        return 1.0 * ((place >= self.first) & (place < self.first + self.n_features))

    @cached_property
    def scales(self):
        r"""Factors of the entries of a record in a report: :math:`\sqrt{d/s}` for features, so that s have length 1."""
        return np.where(self._features > 0, math.sqrt(self.n_features / self.n_sampled), 1.0)

    def overlap(self, rows, columns, part=slice(None)):
        r"""Correlations of the sums over those who fill each entry, :math:`\pi_{ab}/\sqrt{\pi_a\pi_b}`.

        Those are the correlations if a client's own entries are equal; rows and columns are the places of the entries
        b, and those a are a part of them.
        """
        filled = np.zeros((len(rows), self.order))
        place = np.arange(len(rows))
        filled[place, rows] = filled[place, columns] = 1.0
        filled *= self._features
        number = filled.sum(axis=1)
        together = number[part, None] + number - filled[part] @ filled.T
        share = np.sqrt(self.probabilities[number.astype(np.intp)])
        return self.probabilities[together.astype(np.intp)] / np.outer(share[part], share)

    def draw(self, n_clients, source):
        """Draw a subset for each client, from d words; return a mask of its entries, shape (n_clients, order)."""
        words = source.words(n_clients * self.n_features).reshape(n_clients, self.n_features)
        filled = np.ones((n_clients, self.order), dtype=bool)
        features = np.zeros((n_clients, self.n_features), dtype=bool)
        smallest = np.argpartition(words, self.n_sampled - 1, axis=1)[:, :self.n_sampled]
        np.put_along_axis(features, smallest, True, axis=1)
        filled[:, self.first:self.first + self.n_features] = features
        return filled

    def possible(self, filled):
        """Whether rows of a mask are those of a subset: s features, and all other entries."""
        features = filled[:, self.first:self.first + self.n_features]
        n_others = np.count_nonzero(filled, axis=1) - np.count_nonzero(features, axis=1)
        return (np.count_nonzero(features, axis=1) == self.n_sampled) & (n_others == self.order - self.n_features)
