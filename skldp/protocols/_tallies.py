"""Statistics of the reports under one protocol: sums, or the reports themselves if no sums are sufficient."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from skldp._validation._limits import MAX_REPORTS
from skldp.protocols._possible_sums import add_sums, is_gram_matrix, too_many_reports

MAX_PAIRED = 32  # largest number of columns for counts of pairs, whose number and time grow with its square


@dataclass(frozen=True, eq=False)
class Tally:
    """Number of reports and their sums, under one protocol."""

    n_reports: int
    sums: np.ndarray

    kind: ClassVar[str] = "sums"

    def __add__(self, other):
        if not (self.n_reports and other.n_reports):
            return self if self.n_reports else other  # adding an empty tally must not discard the rows of the other
        n_reports = _total_reports(self, other)
        return Tally(n_reports, add_sums(self.sums, other.sums, n_reports))

    def fits(self, protocol):
        """Whether reports under a protocol can have these sums."""
        return isinstance(self.n_reports, int) and isinstance(self.sums, np.ndarray) and protocol._possible(self)


@dataclass(frozen=True, eq=False)
class PairTally:
    """Number of rows with each pair of bits set and, on the diagonal, with each single bit set."""

    n_reports: int
    pairs: np.ndarray

    kind: ClassVar[str] = "pairs"

    @staticmethod
    def of(rows, multiplicity=None):
        """Return the tally of a 0/1 matrix, whose rows may count several times."""
        n_reports = len(rows) if multiplicity is None else int(multiplicity.sum())
        pairs = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.int64)
        # Single precision is fast, and exact up to 2**24. Rows that count several times need double precision.
        dtype = np.float32 if multiplicity is None else np.float64
        for start in range(0, len(rows), 2**14):
            block = rows[start:start + 2**14].astype(dtype)
            weighted = block if multiplicity is None else block * multiplicity[start:start + 2**14, None]
            pairs += (block.T @ weighted).astype(np.int64)
        return PairTally(n_reports, pairs)

    @property
    def sums(self):
        """Column sums."""
        return np.diag(self.pairs).copy()

    def only_sums(self):
        """Return a tally of the column sums only."""
        return Tally(self.n_reports, self.sums)

    def __add__(self, other):
        if not (self.n_reports and other.n_reports):
            return self if self.n_reports else other
        if isinstance(other, RowTally):
            other = other.without_rows()
        if not isinstance(other, PairTally):
            return self.only_sums() + other
        n_reports = _total_reports(self, other)
        return PairTally(n_reports, add_sums(self.pairs, other.pairs, n_reports))

    def fits(self, protocol):
        """Whether reports under a protocol can have these counts."""
        if not (isinstance(self.n_reports, int) and isinstance(self.pairs, np.ndarray) and protocol.counts_pairs):
            return False
        pairs = self.pairs
        if pairs.dtype != np.int64 or pairs.shape != (protocol.width, protocol.width) or (pairs != pairs.T).any():
            return False
        sums = self.sums.astype(object)
        # Two sets of a and b among n reports have between a + b - n and min(a, b) reports in common.
        least = np.maximum(sums[:, None] + sums - self.n_reports, 0)
        if not ((least <= pairs) & (pairs <= sums)).all() or not is_gram_matrix(self._products(sums)):
            return False
        return protocol._possible(self) and protocol._possible_pairs(self)

    def _products(self, sums):
        """Sum of (1, r)(1, r)' over the rows r, as Python integers."""
        return np.block([[np.array([[self.n_reports]], dtype=object), sums[None, :]], [sums[:, None], self.pairs]])


@dataclass(frozen=True, eq=False)
class RowTally:
    """Distinct rows of bits, packed, and how often each was reported."""

    n_reports: int
    rows: np.ndarray
    multiplicity: np.ndarray
    width: int

    kind: ClassVar[str] = "rows"

    def unpacked(self):
        """The distinct rows as a 0/1 matrix."""
        return np.unpackbits(self.rows, axis=1, count=self.width)

    @cached_property
    def sums(self):
        """Column sums."""
        return self.multiplicity @ self.unpacked().astype(np.int64)

    def without_rows(self):
        """Return a tally of the counts of pairs for few columns, else of the column sums only."""
        return PairTally.of(self.unpacked(), self.multiplicity) if self.width <= MAX_PAIRED else self.only_sums()

    def only_sums(self):
        """Return a tally of the column sums only."""
        return Tally(self.n_reports, self.sums)

    def __add__(self, other):
        if not other.n_reports:
            return self
        if not isinstance(other, RowTally):
            return self.without_rows() + other
        rows, place = np.unique(np.concatenate([self.rows, other.rows]), axis=0, return_inverse=True)
        weights = np.concatenate([self.multiplicity, other.multiplicity])
        multiplicity = np.zeros(len(rows), dtype=np.int64)
        np.add.at(multiplicity, place.ravel(), weights)
        return RowTally(_total_reports(self, other), rows, multiplicity, self.width)

    def fits(self, protocol):
        """Whether these can be reports under a protocol."""
        if not (isinstance(self.n_reports, int) and isinstance(self.width, int) and protocol.sends_bits):
            return False
        arrays = ((self.rows, np.uint8, 2), (self.multiplicity, np.int64, 1))
        if not all(isinstance(one, np.ndarray) and one.dtype == dtype and one.ndim == n for one, dtype, n in arrays):
            return False
        shape = (len(self.multiplicity), -(-protocol.width // 8))
        if self.width != protocol.width or self.rows.shape != shape or (self.multiplicity < 1).any():
            return False
        if sum(self.multiplicity.tolist()) != self.n_reports:
            return False
        rows = self.unpacked()
        return self._distinct(rows) and bool(protocol.check(rows).all())

    def _distinct(self, rows):
        """Whether all rows differ. The padding bits must be zero, so that copies of a row cannot differ in them."""
        return np.array_equal(np.packbits(rows, axis=1), self.rows) and len(np.unique(self.rows, axis=0)) == len(rows)


@dataclass(frozen=True, eq=False)
class RecordTally:
    """The reports themselves, because their likelihood has no smaller summary."""

    n_reports: int
    reports: np.ndarray

    kind: ClassVar[str] = "reports"

    def __add__(self, other):
        return RecordTally(_total_reports(self, other), np.concatenate([self.reports, other.reports]))

    def fits(self, protocol):
        """Whether these can be reports under a protocol."""
        if not protocol.keeps_reports or not isinstance(self.reports, np.ndarray):
            return False
        shape, dtype = (self.n_reports, protocol.width), protocol.randomizer.report_dtype
        well_formed = self.reports.shape == shape and self.reports.dtype == dtype
        return well_formed and bool(protocol.check(self.reports).all())


def _total_reports(one, other):
    """Return the number of reports of two tallies together; raise an error if there are too many."""
    n_reports = one.n_reports + other.n_reports
    if n_reports > MAX_REPORTS:
        raise too_many_reports()
    return n_reports


KINDS: dict = {kind.kind: kind for kind in (Tally, PairTally, RowTally, RecordTally)}
