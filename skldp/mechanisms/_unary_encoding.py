"""Optimal unary encoding of a category."""

import bisect
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import bdtr

from skldp._validation._limits import MAX_CATEGORIES
from skldp._validation._parameters import check_epsilon, check_integer
from skldp.mechanisms._base import in_blocks
from skldp.mechanisms._category_base import BitMechanism
from skldp.mechanisms._randomized_response import replace_unknown
from skldp.privacy._thresholds import WORD, flip_threshold


@dataclass(frozen=True, kw_only=True)
class UnaryEncoding(BitMechanism):
    r"""One noisy bit for each category (optimal unary encoding, OUE).

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    n_categories : int, default=2
        Number d of categories, and of bits in a report.

    Attributes
    ----------
    p, q : float
        Probability of a one at the true category (1/2) and at any other (:math:`1/(1+e^\epsilon)`).

    Notes
    -----
    *Privacy.* Two records differ in two bits of their one-hot code; the likelihood ratio of those two bits is at most
    :math:`\frac{p(1-q)}{q(1-p)} = \frac{1-q}{q} \le e^\epsilon`. A zero bit is set to one when a 64-bit word is below
    :math:`\lceil 2^{64}/(1+e^\epsilon)\rceil`, rounded up, so the inequality holds exactly. Only the leading byte of
    the word is drawn for every bit; the other 56 bits are drawn for the one bit in 256 that depends on them.

    *Probability.* :math:`\prod_j P(z_j|x)`.

    References
    ----------
    T. Wang, J. Blocki, N. Li, S. Jha (2017). Locally differentially private protocols for frequency estimation. USENIX
    Security.

    Examples
    --------
    >>> from skldp.mechanisms import UnaryEncoding
    >>> mechanism = UnaryEncoding(epsilon=1.0, n_categories=5)
    >>> reports = mechanism.randomize([0, 3], rng=0)
    >>> reports.shape, reports.dtype
    ((2, 5), dtype('uint8'))
    """

    epsilon: float = 1.0
    n_categories: int = 2

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "n_categories", check_integer(self.n_categories, "n_categories", 1, MAX_CATEGORIES))

    @cached_property
    def _threshold(self):
        return flip_threshold(self.epsilon) if self.private else 0

    @property
    def p(self) -> float:
        """Probability of a one at the true category."""
        return 0.5 if self.private else 1.0

    @property
    def q(self) -> float:
        """Probability of a one at any other category."""
        return self._threshold / WORD

    @property
    def ratio(self) -> float:
        """Probability of a report if it contains the record, divided by that if it does not, as implemented."""
        return self.p * (1 - self.q) / (self.q * (1 - self.p)) if self.private else math.inf

    @property
    def n_ones(self) -> int | None:
        """Number of ones in every report: ``None``, because it varies, or 1 without noise."""
        return None if self.private else 1

    def others_contained(self, largest: int) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities that a report contains all of j given categories besides the true one, j = 0 .. ``largest``."""
        powers = self.q ** np.arange(largest + 1.0)
        return powers, powers

    def _draw(self, codes, source):
        codes = replace_unknown(codes, self.n_categories, source)
        n_rows = max(1, 2**19 // self.n_categories)
        return in_blocks(lambda rows: self._draw_block(rows, source), codes, n_rows, (self.n_categories,), np.uint8)

    def _draw_block(self, codes, source):
        rows = np.arange(len(codes))
        if not self.private:
            bits = np.zeros((len(codes), self.n_categories), dtype=np.uint8)
            bits[rows, codes] = 1
            return bits
        bits = below_threshold(self._threshold, (len(codes), self.n_categories), source)
        bits[rows, codes] = source.bytes(len(codes)) & 1
        return bits

    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-probability of rows of bits given categories; an unknown record is a mixture of all of them."""
        binary, codes = self._binary(reports), self.encode(x)
        reports = np.asarray(reports).astype(np.int64)
        # Log-probability if no bit were that of the true category, then a correction for the bit that is.
        n_ones = reports.sum(axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            others = _xlogy(n_ones, self.q) + _xlogy(self.n_categories - n_ones, 1 - self.q)
            at_true = np.where(reports == 1, np.log(self.p) - np.log(self.q), np.log1p(-self.p) - np.log1p(-self.q))
            ideal = others[:, None] + at_true
            if not self.private:
                ideal = np.where((n_ones == 1)[:, None] & (reports == 1), 0.0, -np.inf)
            known = np.take_along_axis(ideal, np.maximum(codes, 0)[:, None], axis=1)[:, 0]
            value = np.where(codes < 0, np.logaddexp.reduce(ideal, axis=1) - np.log(self.n_categories), known)
        return np.where(binary, value, -np.inf)

    @cached_property
    def ones_range(self) -> tuple[int, int]:
        """Smallest and largest number of ones in an honest report, up to a probability of 1e-9 on either side."""
        if not self.private:
            return 1, 1
        # By bisection, because a table of the distribution takes seconds and half a gigabyte for 2**24 categories.
        counts = range(self.n_categories + 1)
        fewest = bisect.bisect_right(counts, 1e-9, key=self._ones_cdf)
        return fewest, bisect.bisect_left(counts, 1 - 1e-9, key=self._ones_cdf)

    def _ones_cdf(self, k):
        """Probability of at most k ones: a binomial count, plus the record's own bit, one with probability p."""
        n_others = self.n_categories - 1
        at_most, below = (float(bdtr(j, n_others, self.q)) if 0 <= j < n_others else float(j >= 0) for j in (k, k - 1))
        return (1 - self.p) * at_most + self.p * below

    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the rows of zeros and ones with a plausible number of ones."""
        binary, n_ones = self._binary(reports), self.number_of_ones(reports)
        return binary & (n_ones >= self.ones_range[0]) & (n_ones <= self.ones_range[1])


def below_threshold(threshold, shape, source):
    """Draw bits that are one with probability exactly threshold / 2**64, from about one byte each.

    The leading byte decides the bit unless it equals that of the threshold; then a further word does.
    """
    leading, rest = divmod(threshold, 2**56)
    words = source.bytes(int(np.prod(shape))).reshape(shape)
    if leading > 255:
        return np.ones(shape, dtype=np.uint8)
    bits = (words < np.uint8(leading)).view(np.uint8)
    ties = np.flatnonzero(words == np.uint8(leading))
    bits.ravel()[ties] = source.words(ties.size) >> np.uint64(8) < np.uint64(rest)
    return bits


def _xlogy(x, y):
    return np.where(x == 0, 0.0, x * np.log(y))
