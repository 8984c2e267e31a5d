"""Subset selection: report a random subset of the categories."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from skldp._validation._limits import MAX_CATEGORIES
from skldp._validation._parameters import check_epsilon, check_integer
from skldp.mechanisms._base import in_blocks
from skldp.mechanisms._category_base import BitMechanism, SubsetMechanism
from skldp.mechanisms._randomized_response import replace_unknown
from skldp.privacy._noise import uniform_below
from skldp.privacy._thresholds import WORD, near_threshold

_FEW_ROWS = 64  # with fewer rows, a loop over rows is faster than one over places
_PLACES = 2**14  # number of places whose words are drawn at once


@dataclass(frozen=True, kw_only=True)
class SubsetSelection(SubsetMechanism, BitMechanism):
    r"""Report a subset of fixed size that contains the true category with high probability.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    n_categories : int, default=2
        Number d of categories, and of bits in a report.
    subset_size : int or None, default=None
        Size :math:`\omega` of the subset, from 1 (randomised response) to d - 1. ``None`` is replaced by the size that
        maximises :math:`\omega(d-\omega)/(d-\omega+\omega e^\epsilon)^2`, the information in a report at uniform
        frequencies. Without noise, and for one category, it is 1.

    Attributes
    ----------
    p, q : float
        Probability that the subset contains the true category, and that it contains a given other one.

    Notes
    -----
    With :math:`p = \omega e^\epsilon/(\omega e^\epsilon + d - \omega)` the report is uniform among the subsets of size
    :math:`\omega` that contain x, else uniform among those that do not. So every report has one of two
    probabilities, in the ratio :math:`e^\epsilon`, and
    :math:`q = (p(\omega-1) + (1-p)\omega)/(d-1)`.

    *Privacy.* Pure epsilon, exactly, in integers. The other members are drawn by Floyd's algorithm, one word for
    each. An integer drawn from a word is uniform within a factor :math:`1 \pm d2^{-64}`, and a subset within
    :math:`(1 \pm d2^{-64})^\omega`; the threshold allows for this (:func:`skldp.privacy.near_threshold`).

    References
    ----------
    M. Ye, A. Barg (2018). Optimal schemes for discrete distribution estimation under locally differential privacy.
    IEEE Transactions on Information Theory.

    Examples
    --------
    >>> from skldp.mechanisms import SubsetSelection
    >>> mechanism = SubsetSelection(epsilon=1.0, n_categories=16)
    >>> mechanism.subset_size
    4
    >>> mechanism.randomize([0, 3], rng=0).sum(axis=1)
    array([4, 4]...)
    """

    epsilon: float = 1.0
    n_categories: int = 2
    subset_size: int | None = None

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "n_categories", check_integer(self.n_categories, "n_categories", 1, MAX_CATEGORIES))
        if self.subset_size is not None:
            check_integer(self.subset_size, "subset_size", 1, max(self.n_categories - 1, 1))
        automatic = self.subset_size is None or not self.private
        size = automatic_size(self.epsilon, self.n_categories) if automatic else int(cast(int, self.subset_size))
        object.__setattr__(self, "subset_size", size)

    @property
    def n_ones(self) -> int:  # type: ignore[override]
        """Number of categories in every report."""
        return cast(int, self.subset_size)

    @property
    def _sizes(self) -> tuple[int, int]:
        """Number of all categories, and number of those in a subset."""
        return self.n_categories, self.n_ones

    @cached_property
    def _threshold(self):
        if self.certain:
            return WORD
        d, size = self._sizes
        return near_threshold(self.epsilon, size, d - size, Fraction(2 * size * d, WORD))

    @property
    def p(self) -> float:
        """Probability that the subset contains the true category."""
        return self._threshold / WORD

    def _draw(self, codes, source):
        codes = replace_unknown(codes, self.n_categories, source)
        n_rows = max(1, 2**19 // self.n_categories)
        return in_blocks(lambda rows: self._draw_block(rows, source), codes, n_rows, (self.n_categories,), np.uint8)

    def _draw_block(self, codes, source):
        (d, size), n = self._sizes, len(codes)
        near = np.ones(n, dtype=bool) if self.certain else source.words(n) < np.uint64(self._threshold)
        if n < _FEW_ROWS:
            return self._draw_few(codes, near, source)
        bits = np.zeros(n * d, dtype=np.uint8)
        start = np.arange(n) * d
        # Floyd's algorithm on places 0 .. d - 2. A subset that contains the record has one member fewer to draw, and
        # skips the first round.
        for place in range(max(d - 1 - size, 0), d - 1):
            member = start + uniform_below(source.words(n), place + 1)
            member = np.where(bits[member] == 1, start + place, member)
            bits[member] = ~near if place == d - 1 - size else 1
        # Place d - 1 was not part of the draw: it takes the bit drawn at the record's own place.
        own = start + codes
        bits[start + d - 1] = bits[own]
        bits[own] = near
        return bits.reshape(n, d)

    def _draw_few(self, codes, near, source):
        """Same result as for many rows, by a loop over rows and not over places, of which there may be millions."""
        (d, size), n = self._sizes, len(codes)
        first, last = max(d - 1 - size, 0), d - 1
        bits = [bytearray(d) for _ in range(n)]
        for start in range(first, last, _PLACES):
            places = np.arange(start, min(start + _PLACES, last))
            words = source.words(n * len(places)).reshape(len(places), n)
            members = uniform_below(words, (places + 1).astype(np.uint64)[:, None])
            for row, drawn, skips in zip(bits, members.T.tolist(), near.tolist()):
                # A subset that contains the record has one member fewer to draw, and skips the first round.
                skip = int(skips and start == d - 1 - size)
                for place, member in enumerate(drawn[skip:], start + skip):
                    row[place if row[member] else member] = 1
        out = np.frombuffer(b"".join(bits), dtype=np.uint8).reshape(n, d).copy()
        rows = np.arange(n)
        out[:, d - 1] = out[rows, codes]
        out[rows, codes] = near
        return out

    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-probability of subsets given categories; an unknown record is a mixture of all of them."""
        valid, reports, codes = self.valid(reports), np.asarray(reports), self.encode(x)
        d, size = self._sizes
        with np.errstate(all="ignore"):
            near = np.log(self.p) - _log_binomial(d - 1, size - 1)
            far = np.log((WORD - self._threshold) / WORD) - _log_binomial(d - 1, size)
        contains = np.take_along_axis(reports, np.maximum(codes, 0)[:, None], axis=1)[:, 0] == 1
        value = np.where(contains, near, far)
        value = np.where(codes < 0, -_log_binomial(d, size), value)
        return np.where(valid, value, -np.inf)

    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the rows of zeros and ones with exactly ``subset_size`` ones."""
        return self._binary(reports) & (self.number_of_ones(reports) == self.subset_size)


def automatic_size(epsilon, n_categories):
    """Subset size with the most information at uniform frequencies; 1 without noise.

    Examples
    --------
    >>> automatic_size(1.0, 16), automatic_size(4.0, 16)
    (4, 1)
    """
    d = n_categories
    if np.isinf(epsilon) or d <= 2:
        return 1

    def information(size):
        """Fisher information of a report, up to a factor."""
        return size * (d - size) / (d - size + size * np.exp(epsilon)) ** 2

    # The objective has one maximum, at d / (1 + e^epsilon), so the best integer is one of its two neighbours.
    below = max(1, min(d - 1, int(d / (1 + np.exp(epsilon)))))
    return max((below, min(below + 1, d - 1)), key=information)


def _log_binomial(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)
