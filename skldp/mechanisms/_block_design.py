"""Block design: report one number, a block of categories that is nearby or far from the true one."""

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import cast

import numpy as np
from numpy.typing import ArrayLike
from scipy.fft import irfft, rfft

from skldp._validation._limits import MAX_CATEGORIES, MAX_COUNTS
from skldp._validation._parameters import check_epsilon, check_integer, smallest_integer_dtype
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._base import in_blocks, is_integer
from skldp.mechanisms._category_base import CategoryMechanism
from skldp.mechanisms._difference_sets import designs, difference_set, has_residues, singer_order
from skldp.mechanisms._randomized_response import replace_unknown
from skldp.privacy._noise import uniform_below
from skldp.privacy._thresholds import WORD, near_threshold

_BLOCK_ROWS = 2**16  # reports that are drawn at once, so that temporary arrays stay small
_MOST_CELLS = 8, 10**4  # cells for each category, or in all
_EQUAL = 1.002  # ratio of variances below which the set with fewer cells is taken


@dataclass(frozen=True, kw_only=True)
class BlockDesign(CategoryMechanism):
    r"""Report one integer, which stands for a block of categories; more likely a block that contains the true one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    n_categories : int, default=2
        Number d of categories.
    design : tuple of two int, or None, default=None
        Number K of cells, at least d, and number w of elements of a cyclic difference set. ``None`` is replaced by the
        pair with the least variance (see Notes). Without noise, and for one category, it is (d, 1).

    Attributes
    ----------
    p, q : float
        Probability that the block contains the true category, and that it contains a given other one.

    Notes
    -----
    D is a cyclic difference set of w elements of :math:`Z_K`: every non-zero element is the difference of
    :math:`\lambda = w(w-1)/(K-1)` pairs of D. The report j of category x is near if :math:`(x-j)\bmod K` is in D, and

    .. math:: P(j|x) = \frac{e^\epsilon}{we^\epsilon+K-w}\ \text{if near},\quad \frac1{we^\epsilon+K-w}\ \text{else.}

    Two categories share :math:`\lambda` near reports, so :math:`p = we^\epsilon/(we^\epsilon+K-w)` and
    :math:`q = (p(w-1) + (1-p)w)/(K-1)` are those of subset selection with subsets of w among K categories. A report is
    one integer instead of d bits, and the K counts of reports are sufficient. Cells d .. K - 1 have no category.

    The best share w/K is :math:`1/(e^\epsilon+1)`. Singer's sets over the field of q elements have
    :math:`K = (q^m-1)/(q-1)` and w/K near 1/q, quadratic residues of a prime K near 1/2, and the set {0} with K = d is
    randomised response. ``None`` takes the least variance :math:`q(1-q)/(p-q)^2` of an estimated frequency of a rare
    category among all of these with K up to the larger of 8d and 10,000 (and up to 2^25), or the fewest cells among
    those within 0.2 % of it. From 2,000 categories on, this variance is 1.001 to 1.01 times that of subset selection
    for epsilon up to 4. Above, w is small for such K, and it can be 1.5 times (epsilon 6 and 2,000 categories).
    Quadratic residues alone would have :math:`(e^\epsilon+1)^2/(4e^\epsilon)` times: 1.06 at epsilon 0.5, 1.27 at 1.

    *Privacy.* Pure epsilon, exactly, in integers: a word is compared with a threshold to choose near or far, and
    another word chooses one of the w or K - w reports, uniform within a factor :math:`1 \pm K2^{-64}`, which the
    threshold allows for (:func:`skldp.privacy.near_threshold`).

    References
    ----------
    J. Acharya, Z. Sun, H. Zhang (2019). Hadamard response: estimating distributions privately, efficiently, and with
    little communication. AISTATS.

    H.-Y. Park, S.-H. Nam, S.-H. Lee (2023). Block design-based local differential privacy mechanisms. ISIT.

    Examples
    --------
    >>> from skldp.mechanisms import BlockDesign
    >>> mechanism = BlockDesign(epsilon=2.0, n_categories=5000)
    >>> mechanism.design
    (7381, 820)
    >>> mechanism.randomize([0, 4999], rng=0).dtype
    dtype('uint16')
    """

    epsilon: float = 1.0
    n_categories: int = 2
    design: tuple[int, int] | None = None

    sends_bits = False

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "n_categories", check_integer(self.n_categories, "n_categories", 1, MAX_CATEGORIES))
        given = None if self.design is None else _check_design(self.design, self.n_categories)
        automatic = given is None or self.certain
        design = best_design(self.epsilon, self.n_categories) if automatic else given
        object.__setattr__(self, "design", design)

    @property
    def _sizes(self) -> tuple[int, int]:
        """Number K of cells, and number w of elements of the difference set."""
        return cast(tuple[int, int], self.design)

    @property
    def n_counts(self) -> int:
        """Number K of cells, and of counts that the aggregator keeps."""
        return self._sizes[0]

    @property
    def n_ones(self) -> int:
        """Number w of cells in the block of every report."""
        return self._sizes[1]

    @property
    def names_one(self) -> bool:
        """Whether a report is a single category, so that its counts are those of categories."""
        return self.design == (self.n_categories, 1)

    @property
    def counts_suffice(self) -> bool:
        """Whether the counts contain all information of the reports: always."""
        return True

    @property
    def ones_range(self) -> tuple[int, int]:
        """Smallest and largest number of counts to which an honest report adds one: one."""
        return 1, 1

    @property
    def width(self) -> int:
        """Number of integers in a report: one."""
        return 1

    @cached_property
    def report_dtype(self):
        """Smallest integer dtype that holds every report."""
        return smallest_integer_dtype(0, self.n_counts - 1)

    @cached_property
    def _threshold(self):
        if self.certain:
            return WORD
        n_cells, n_near = self._sizes
        return near_threshold(self.epsilon, n_near, n_cells - n_near, Fraction(n_cells, WORD))

    @property
    def p(self) -> float:
        """Probability that the block of a report contains the true category."""
        return self._threshold / WORD

    @property
    def q(self) -> float:
        """Probability that the block of a report contains a given category other than the true one."""
        n_cells, n_near = self._sizes
        return (self.p * (n_near - 1) + (1 - self.p) * n_near) / max(n_cells - 1, 1)

    @property
    def far_probability(self) -> float:
        """Probability of each report that is far from the record."""
        n_cells, n_near = self._sizes
        return (WORD - self._threshold) / WORD / max(n_cells - n_near, 1)

    @property
    def ratio(self) -> float:
        """Probability of a near report divided by that of a far one, as implemented."""
        return math.inf if self.certain else self.p / self.n_ones / self.far_probability

    def _draw(self, codes, source):
        codes = replace_unknown(codes, self.n_categories, source)
        if self.certain:
            return codes.astype(self.report_dtype)
        return in_blocks(lambda rows: self._draw_block(rows, source), codes, _BLOCK_ROWS, (), self.report_dtype)

    def _draw_block(self, codes, source):
        n_cells, n_near = self._sizes
        level, place = source.words(2 * codes.size).reshape(2, *codes.shape)
        near = level < np.uint64(self._threshold)
        members = difference_set(n_cells, n_near)
        step = uniform_below(place, np.where(near, np.uint64(n_near), np.uint64(n_cells - n_near)))
        # Member k has value - k others below it, so the others below number i come after i + (members passed) cells.
        passed = np.searchsorted(_others_below(n_cells, n_near), step, side="right")
        step = np.where(near, members[np.minimum(step, n_near - 1)], step + passed)
        return (codes - step) % n_cells

    def counts(self, reports: ArrayLike) -> np.ndarray:
        """Number of reports of each cell, shape (n_counts,), which is what the aggregator keeps."""
        return np.bincount(np.asarray(reports), minlength=self.n_counts)

    def category_counts(self, counts: ArrayLike) -> np.ndarray:
        """Number of reports whose block contains each category, shape (n_categories,), given those of each cell."""
        return np.rint(self.sum_near(np.asarray(counts, dtype=float))).astype(np.int64)

    def sum_near(self, values: np.ndarray) -> np.ndarray:
        """Return, for each category, the sum of ``values`` over its near reports: (..., n_counts) to (..., d)."""
        if self.names_one:
            return values
        n_cells = self.n_counts
        return irfft(rfft(values) * _spectrum(*self._sizes), n_cells)[..., :self.n_categories]

    def sum_blocks(self, values: np.ndarray) -> np.ndarray:
        """Return, for each report, the sum of ``values`` over the categories of its block: (..., d) to (..., K)."""
        if self.names_one:
            return values
        n_cells = self.n_counts
        return irfft(rfft(values, n_cells) * _spectrum(*self._sizes).conj(), n_cells)

    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-probability of reports given categories; an unknown record is a mixture of all of them."""
        valid, codes = self.valid(reports), self.encode(x)
        reports = np.where(valid, np.asarray(reports), 0).astype(np.int64)
        n_cells, n_near = self._sizes
        members, step = difference_set(n_cells, n_near), (codes - reports) % n_cells
        near = members[np.minimum(np.searchsorted(members, step), n_near - 1)] == step
        share = np.where(codes < 0, self._share_of_categories(reports), near.astype(float))
        with np.errstate(divide="ignore"):
            value = np.log(self.far_probability * (1 - share) + self.p / n_near * share)
        return np.where(valid, value, -np.inf)

    def _share_of_categories(self, reports):
        """Return the share of all categories that the block of each report contains."""
        n_cells, n_near = self._sizes
        twice = np.concatenate([difference_set(n_cells, n_near) + shift for shift in (0, n_cells)])
        first = (-reports) % n_cells
        ends = np.searchsorted(twice, [first, first + self.n_categories])
        return (ends[1] - ends[0]) / self.n_categories

    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the reports in 0 .. K - 1."""
        reports = np.asarray(reports)
        if not is_integer(reports):
            return np.zeros(reports.shape, dtype=bool)
        not_negative = reports.dtype.kind == "u" or not reports.size or reports.min() >= 0
        if reports.size and not_negative and reports.max() < self.n_counts:
            return np.ones(reports.shape, dtype=bool)  # the usual case, several times faster than a mask
        return (reports >= 0) & (reports < self.n_counts)


def best_design(epsilon, n_categories):
    """Return the numbers of cells and of near cells with the least variance for a rare category.

    Examples
    --------
    >>> best_design(1.0, 2000), best_design(8.0, 3)
    ((5461, 1365), (3, 1))
    """
    d = n_categories
    if math.isinf(epsilon) or d <= 2:
        return d, 1
    found = [(d, 1), *designs(d, min(max(_MOST_CELLS[0] * d, _MOST_CELLS[1]), MAX_COUNTS))]
    variances = [variance_of_rare(epsilon, *design) for design in found]
    limit = _EQUAL * min(variances)
    return min(design for design, variance in zip(found, variances) if variance <= limit)


def variance_of_rare(epsilon, n_cells, n_near):
    """Variance of the unbiased estimate of a frequency of zero from one report, by subsets of w among K categories."""
    odds = math.exp(epsilon)
    p = n_near * odds / (n_near * odds + n_cells - n_near)
    q = (n_near - p) / (n_cells - 1)
    return q * (1 - q) / (p - q) ** 2


def _check_design(design, n_categories):
    """Return a design as a pair of integers; raise an error if there is no such difference set, before it is built."""
    if not isinstance(design, (tuple, list)) or len(design) != 2:
        raise InvalidParameterError(f"design must be a pair (number of cells, number of near cells), got {design!r}.")
    n_cells = check_integer(design[0], "the number of cells of design", n_categories, MAX_COUNTS)
    n_near = check_integer(design[1], "the number of near cells of design", 1, max(n_cells - 1, 1))
    trivial = n_near == 1 and n_cells == n_categories
    if not trivial and singer_order(n_cells, n_near) is None and not has_residues(n_cells, n_near):
        raise InvalidParameterError(f"There is no difference set for design={tuple(design)!r}. Leave it None.")
    return n_cells, n_near


@lru_cache(maxsize=4)
def _others_below(n_cells, n_near):
    """Return, for each member of a difference set, the number of smaller cells that are not members."""
    return difference_set(n_cells, n_near) - np.arange(n_near)


@lru_cache(maxsize=4)
def _spectrum(n_cells, n_near):
    """Return the discrete Fourier transform of the indicator of a difference set."""
    indicator = np.zeros(n_cells)
    indicator[difference_set(n_cells, n_near)] = 1.0
    return rfft(indicator)
