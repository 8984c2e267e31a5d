"""Protocol for one category of each client."""

import math
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from skldp._validation._categories import category_codes, row_codes
from skldp._validation._door import as_table
from skldp._validation._limits import MAX_FEATURES
from skldp._validation._parameters import check_choice, check_epsilon, check_integer
from skldp.mechanisms._block_design import BlockDesign, best_design, variance_of_rare
from skldp.mechanisms._randomized_response import RandomizedResponse
from skldp.mechanisms._subset_selection import SubsetSelection, automatic_size
from skldp.mechanisms._unary_encoding import UnaryEncoding
from skldp.privacy._spending import counting, spend
from skldp.protocols._aggregate import Aggregate
from skldp.protocols._coded_protocol import CodedProtocol, checked_categories
from skldp.protocols._tallies import MAX_PAIRED, PairTally, RowTally, Tally


_SHORT_REPORT, _LONG_REPORT = 1024, 2**14  # bits of a subset; shorter ones are always sent, and longer ones never
_WORTH_BITS = 1.1  # ratio of variances above which a subset of a length between them is sent


def _without_size(mechanism):
    """Return a constructor that ignores the size of subsets and the numbers of a block design."""

    def construct(subset_size, design, **options):
        """Construct the mechanism; the size is checked, but not used."""
        if subset_size is not None:
            check_integer(subset_size, "subset_size", 1)
        return mechanism(**options)

    return construct


def _subset(design, **options):
    return SubsetSelection(**options)


def _block(design, **options):
    return _without_size(partial(BlockDesign, design=design))(design=None, **options)


MECHANISMS: dict = {
    "subset": _subset,
    "block": _block,
    "oue": _without_size(UnaryEncoding),
    "rr": _without_size(RandomizedResponse),
}


@dataclass(frozen=True, kw_only=True)
class CategoryProtocol(CodedProtocol):
    """Each client sends a noisy version of its category.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client.
    delta : float, default=0.0
        Always 0: these mechanisms are pure.
    categories : tuple, default=(0, 1)
        The public categories: numbers or strings, or tuples of them when a record has several columns.
    mechanism : {"subset", "block", "oue", "rr"}, default="subset"
        Subset selection, a block design, optimal unary encoding, or randomised response.
    subset_size : int or None, default=None
        Number of categories in a subset. ``None`` is replaced by the best size for the budget and the number of
        categories (see :class:`skldp.mechanisms.SubsetSelection`), so that the description holds the number; it stays
        ``None`` for the other mechanisms.
    n_features : int, default=1
        Number of columns of a record; the whole row is the category.
    design : tuple of two int, or None, default=None
        Numbers of cells and of near cells of a block design. ``None`` is replaced by the best ones for the budget and
        the number of categories (see :class:`skldp.mechanisms.BlockDesign`); it stays ``None`` for the other
        mechanisms, and descriptions leave it out.

    Examples
    --------
    >>> from skldp.protocols import CategoryProtocol, Protocol
    >>> protocol = CategoryProtocol(categories=("cat", "dog", "fish"))
    >>> Protocol.from_json(protocol.to_json()).privatize(["dog", "cat"]).shape
    (2, 3)
    """

    mechanism: str = "subset"
    subset_size: int | None = None
    n_features: int = 1
    design: tuple[int, int] | None = None

    _automatic: ClassVar[dict[str, Any]] = {"subset_size": None, "design": None}

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", 0.0)
        object.__setattr__(self, "n_features", check_integer(self.n_features, "n_features", 1, MAX_FEATURES))
        object.__setattr__(self, "known_categories", checked_categories(self.categories, self.n_features))
        object.__setattr__(self, "categories", tuple(self.known_categories.tolist()))
        # Builds the mechanism, so that an impossible size raises here and not on the first client.
        object.__setattr__(self, "subset_size", self.randomizer.subset_size)
        object.__setattr__(self, "design", self.randomizer.design)

    def __hash__(self) -> int:
        # Equal protocols have equal hashes. Hashing a million categories would take as long as counting reports.
        ends = self.categories[0], self.categories[-1], self.n_categories
        return hash((self.epsilon, self.mechanism, self.subset_size, self.design, self.n_features, *ends))

    @cached_property
    def known_categories(self) -> np.ndarray:
        """The categories as a read-only array of numbers or objects; a category of several columns is a tuple."""
        return checked_categories(self.categories, self.n_features)

    def _features_of(self, width):
        return self.n_features  # on which the width of a report does not depend

    @property
    def n_categories(self) -> int:
        """Number of categories."""
        return len(self.categories)

    @property
    def width(self) -> int:
        """Number of integers in a report."""
        return self.randomizer.width

    @property
    def sends_bits(self) -> bool:
        """Whether a report is a row of zeros and ones."""
        return self.randomizer.sends_bits

    @property
    def counts_pairs(self) -> bool:
        """Whether an aggregate counts pairs of categories in reports, which it does for few categories."""
        return self.sends_bits and self.n_categories <= MAX_PAIRED

    @cached_property
    def randomizer(self):
        """Mechanism that randomises a category."""
        construct = check_choice(self.mechanism, "mechanism", MECHANISMS)
        return construct(epsilon=self.epsilon, n_categories=self.n_categories, subset_size=self.subset_size,
                         design=self.design)

    def codes(self, X: ArrayLike) -> np.ndarray:
        """Category numbers of records, -1 for a record that is none of the categories; no value raises."""
        rows = as_table(X, self.n_features)
        if self.n_features > 1:
            return row_codes(rows, self.categories)
        return category_codes(rows[:, 0], self.known_categories)

    def _draw(self, X, y, random_state):
        if counting():
            spend(self.epsilon, self.delta, self.known_categories[X])
        yield self.randomizer.randomize(X, random_state).reshape(len(X), self.width)

    def aggregate(self, reports: ArrayLike, on_invalid: str = "raise", keep_rows: float = False) -> Aggregate:
        """Add up reports into the statistic that inference needs.

        Parameters
        ----------
        reports : array-like of int, shape (n, width)
            Reports of unknown origin: every row is checked.
        on_invalid : {"raise", "drop"}, default="raise"
            Whether a report that no honest client could have sent is an error, or is left out and counted.
        keep_rows : bool or float, default=False
            Whether to keep the distinct reports and not only their column sums. The exact likelihood of subsets and of
            unary encoding needs them. With a number, they are kept up to that many bits in total. Randomised response
            and block designs need only the counts.

        Returns
        -------
        Aggregate
        """
        most_bits = 0 if not self.sends_bits else math.inf if keep_rows is True else keep_rows

        def tally(rows):
            """Tally of distinct rows up to ``most_bits`` bits, else of sums."""
            return self._row_tally(rows) if rows.size <= most_bits and most_bits else self._tally(rows)

        return self._aggregate(reports, on_invalid, tally)

    def _row_tally(self, reports):
        rows, multiplicity = np.unique(np.packbits(reports, axis=1), axis=0, return_counts=True)
        return RowTally(len(reports), rows, multiplicity, self.width)

    def _valid_rows(self, reports):
        return self.randomizer.valid(self._as_drawn(reports))

    def _as_drawn(self, reports):
        """Reports in the shape that the mechanism draws: bits are rows, a category is a number."""
        return reports if self.sends_bits else reports[:, 0]

    def directions(self):
        """Directions in which one report can change the sums, as arrays of the shape of the sums."""
        return np.eye(self.randomizer.n_counts, dtype=np.int64)

    def extreme_effects(self, slopes):
        """Smallest and largest change that one report can make to functions with these slopes along ``directions``."""
        # For a given number of ones, the change is largest with the ones where the slopes are largest.
        fewest, most = self.randomizer.ones_range
        descending = np.sort(slopes, axis=1)[:, ::-1]
        high = np.cumsum(np.pad(descending, ((0, 0), (1, 0))), axis=1)[:, fewest:most + 1].max(axis=1)
        low = np.cumsum(np.pad(descending[:, ::-1], ((0, 0), (1, 0))), axis=1)[:, fewest:most + 1].min(axis=1)
        return low, high

    def _possible(self, tally):
        counts, n_reports = tally.sums, tally.n_reports
        if counts.shape != (self.randomizer.n_counts,) or counts.dtype != np.int64:
            return False
        if (counts < 0).any() or (counts > n_reports).any():
            return False
        fewest, most = self.randomizer.ones_range
        return fewest * n_reports <= sum(counts.tolist()) <= most * n_reports

    def _possible_pairs(self, tally):
        """Whether reports with a possible number of ones can have these sums over pairs."""
        fewest, most = self.randomizer.ones_range
        row_sums, sums = tally.pairs.sum(axis=1, dtype=object), tally.sums.astype(object)
        return bool((fewest * sums <= row_sums).all() and (row_sums <= most * sums).all())

    def _tally(self, reports):
        if self.counts_pairs:
            return PairTally.of(reports)
        return Tally(len(reports), self.randomizer.counts(self._as_drawn(reports)))


AUTOMATIC = {"subset", "block"}  # what automatic_mechanism may return


def automatic_mechanism(epsilon, n_categories):
    """Return "subset" up to 1,024 categories, and above it if that has less variance with a report of up to 2 kB.

    Less means by more than a tenth; else the name is "block". Unlike the variances, the sizes of reports differ much.

    Examples
    --------
    >>> automatic_mechanism(2.0, 1024), automatic_mechanism(2.0, 1025), automatic_mechanism(6.0, 2000)
    ('subset', 'block', 'subset')
    """
    if n_categories <= _SHORT_REPORT or math.isinf(epsilon):
        return "subset" if n_categories <= _SHORT_REPORT else "block"
    if n_categories > _LONG_REPORT:
        return "block"
    subset = variance_of_rare(epsilon, n_categories, automatic_size(epsilon, n_categories))
    block = variance_of_rare(epsilon, *best_design(epsilon, n_categories))
    return "block" if block <= _WORTH_BITS * subset else "subset"
