"""Statistics of the reports under one protocol: sums that add, or the reports themselves where nothing less will do."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np


@dataclass(frozen=True, eq=False)
class Tally:
    """Number of reports and their sums, under one protocol."""

    n_reports: int
    sums: np.ndarray

    kind: ClassVar[str] = "sums"

    def __add__(self, other):
        return Tally(self.n_reports + other.n_reports, self.sums + other.sums)

    def fits(self, protocol):
        """Whether these can be sums of reports under a protocol: shape and type are those of no reports at all."""
        empty = protocol._tally(np.empty((0, protocol.width), dtype=np.int8))
        if empty.kind != self.kind:
            return False
        return self.sums.shape == empty.sums.shape and self.sums.dtype == empty.sums.dtype


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

    @property
    def sums(self):
        """Column sums: what remains when the rows are given up."""
        return self.multiplicity @ self.unpacked().astype(np.int64)

    def without_rows(self):
        """The column sums alone."""
        return Tally(self.n_reports, self.sums)

    def __add__(self, other):
        if not isinstance(other, RowTally):
            return self.without_rows() + other
        rows, place = np.unique(np.concatenate([self.rows, other.rows]), axis=0, return_inverse=True)
        weights = np.concatenate([self.multiplicity, other.multiplicity])
        multiplicity = np.zeros(len(rows), dtype=np.int64)
        np.add.at(multiplicity, place.ravel(), weights)
        return RowTally(self.n_reports + other.n_reports, rows, multiplicity, self.width)

    def fits(self, protocol):
        """Whether these can be reports under a protocol."""
        shape = (len(self.multiplicity), -(-protocol.width // 8))
        if not protocol.sends_bits or self.width != protocol.width or self.rows.shape != shape:
            return False
        if self.rows.dtype != np.uint8 or self.multiplicity.dtype != np.int64 or (self.multiplicity < 1).any():
            return False
        return self.multiplicity.sum() == self.n_reports and bool(protocol.check(self.unpacked()).all())


@dataclass(frozen=True, eq=False)
class RecordTally:
    """The reports themselves: their likelihood has no smaller summary."""

    n_reports: int
    reports: np.ndarray

    kind: ClassVar[str] = "reports"

    def __add__(self, other):
        return RecordTally(self.n_reports + other.n_reports, np.concatenate([self.reports, other.reports]))

    def fits(self, protocol):
        """Whether these can be reports under a protocol."""
        empty = protocol._tally(np.empty((0, protocol.width), dtype=np.int8))
        if empty.kind != self.kind or self.reports.dtype != empty.reports.dtype or self.reports.ndim != 2:
            return False
        whole = self.reports.shape == (self.n_reports, protocol.width)
        return whole and bool(protocol.check(self.reports).all())


KINDS: dict = {kind.kind: kind for kind in (Tally, RowTally, RecordTally)}
