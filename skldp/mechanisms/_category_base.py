"""Base classes of the randomisers of categories: probabilities that a report contains one or more categories."""

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from skldp.mechanisms._base import Mechanism, has_width
from skldp.mechanisms._encoding import encode_category


class CategoryMechanism(Mechanism):
    """A randomiser of one of ``n_categories`` categories; a report is a set of categories."""

    n_categories: int
    # Parameters of some mechanisms: the number of categories in a report, and the numbers of a block design.
    subset_size: int | None = None
    design: tuple[int, int] | None = None

    sends_bits: bool  # whether a report is a row of zeros and ones, one for each category

    @property
    @abstractmethod
    def p(self) -> float:
        """Probability that a report contains the true category."""

    @property
    @abstractmethod
    def q(self) -> float:
        """Probability that a report contains a given category other than the true one."""

    @property
    @abstractmethod
    def ratio(self) -> float:
        """Probability of a report if it contains the record, divided by that if it does not, as implemented."""

    @property
    @abstractmethod
    def n_ones(self) -> int | None:
        """Number of categories in every report; ``None`` where it varies."""

    @property
    def counts_suffice(self) -> bool:
        """Whether the counts contain all information of the reports."""
        return self.names_one

    @property
    @abstractmethod
    def ones_range(self) -> tuple[int, int]:
        """Smallest and largest number of counts to which an honest report adds one."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of integers in a report."""

    @property
    def n_counts(self) -> int:
        """Number of counts that the aggregator keeps: one for each category, unless a mechanism knows otherwise."""
        return self.n_categories

    @abstractmethod
    def counts(self, reports: ArrayLike) -> np.ndarray:
        """Number of reports that contain each category, which is what the aggregator keeps.

        Parameters
        ----------
        reports : array-like of int
            Valid reports.

        Returns
        -------
        ndarray of int64, shape (n_counts,)
        """

    def category_counts(self, counts: ArrayLike) -> np.ndarray:
        """Number of reports that contain each category, shape (n_categories,), given what the aggregator keeps."""
        return np.asarray(counts)

    @property
    def certain(self) -> bool:
        """Whether the report always equals the record: without noise, or with a single category."""
        return not self.private or self.n_categories == 1

    @property
    def names_one(self) -> bool:
        """Whether a report is a single category, so that the counts are sufficient."""
        return self.certain or self.n_ones == 1

    def frequencies(self, counts: ArrayLike, n_reports: int) -> np.ndarray:
        r"""Unbiased estimate :math:`(\bar z_k - q)/(p - q)` of the frequencies; it may lie outside the simplex."""
        return (self.category_counts(counts) / n_reports - self.q) / (self.p - self.q)

    def encode(self, x: ArrayLike) -> np.ndarray:
        """Turn category numbers into integers, -1 for an unknown one."""
        return encode_category(x, self.n_categories)

    def decode(self, reports: ArrayLike) -> np.ndarray:
        """Return the reports unchanged."""
        return np.asarray(reports)


class ExchangeableMechanism(CategoryMechanism):
    """A randomiser of one category that treats all categories except the true one alike, also jointly."""

    @abstractmethod
    def others_contained(self, largest: int) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities that a report contains all of j given categories besides the true one, j = 0 .. ``largest``.

        The first array is given that the report contains the true category, the second given that it does not.
        """

    @property
    def pair_probabilities(self) -> tuple[float, float]:
        """Probability that a report contains two given categories, if the record is one of them and if it is neither.

        With two categories the second is meaningless, and with one category both are.
        """
        with_own, without = self.others_contained(2)
        return float(self.p * with_own[1]), float(self.p * with_own[2] + (1 - self.p) * without[2])


class SubsetMechanism(ExchangeableMechanism):
    """A randomiser of one category whose reports all contain the same number of categories.

    With probability p a report is uniform among those that contain the record, else uniform among the others.
    """

    n_ones: int

    @property
    def q(self) -> float:
        """Probability that a report contains a given category other than the true one."""
        return (self.p * (self.n_ones - 1) + (1 - self.p) * self.n_ones) / max(self.n_categories - 1, 1)

    @property
    def ratio(self) -> float:
        """Probability of a report if it contains the record, divided by that if it does not, as implemented."""
        if self.certain:
            return math.inf
        return self.p * (self.n_categories - self.n_ones) / ((1 - self.p) * self.n_ones)

    @property
    def ones_range(self) -> tuple[int, int]:
        """Smallest and largest number of counts to which an honest report adds one."""
        return self.n_ones, self.n_ones

    def others_contained(self, largest: int) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities that a report contains all of j given categories besides the true one, j = 0 .. ``largest``."""
        n_others = self.n_categories - 1
        return _all_drawn(self.n_ones - 1, n_others, largest), _all_drawn(self.n_ones, n_others, largest)


class BitMechanism(ExchangeableMechanism):
    """A randomiser of one category whose report is a row of ``n_categories`` bits."""

    sends_bits = True
    report_dtype = np.dtype(np.uint8)

    @property
    def width(self) -> int:
        """Number of integers in a report."""
        return self.n_categories

    def counts(self, reports: ArrayLike) -> np.ndarray:
        """Number of reports that contain each category, which is what the aggregator keeps."""
        return column_sums(np.asarray(reports).astype(np.uint8, copy=False))

    def number_of_ones(self, reports: ArrayLike) -> np.ndarray:
        """Number of ones in each row; meaningless for a row that is not binary."""
        bits = np.asarray(reports).astype(np.uint8, copy=False)
        # Adding in bytes is several times faster, and cannot overflow with fewer than 256 columns.
        return np.einsum("ij->i", bits, dtype=np.uint8 if bits.shape[1] < 256 else np.int64)

    def _binary(self, reports):
        """Mask of the rows of ``n_categories`` zeros and ones."""
        reports = np.asarray(reports)
        if not has_width(reports, self.n_categories):
            return np.zeros(len(reports), dtype=bool)
        # Checking the smallest and the largest entry is many times cheaper than a mask, and nearly always enough.
        if reports.size and reports.min() >= 0 and reports.max() <= 1:
            return np.ones(len(reports), dtype=bool)
        return ((reports == 0) | (reports == 1)).all(axis=1)


def column_sums(bits):
    """Column sums of a 0/1 matrix of bytes; blocks of 255 rows are added in bytes, which is many times faster."""
    n_blocks, d = len(bits) // 255, bits.shape[1]
    blocks = bits[:255 * n_blocks].reshape(n_blocks, 255, d)
    total = np.zeros(d, dtype=np.int64)
    for block in blocks:
        total += np.add.reduce(block, axis=0, dtype=np.uint8)
    return total + bits[255 * n_blocks:].sum(axis=0, dtype=np.int64)


def _all_drawn(n_drawn, n_all, largest):
    """Probabilities that ``n_drawn`` of ``n_all``, without replacement, contain j given ones, j = 0 .. ``largest``."""
    steps = np.arange(largest)
    ratios = np.maximum(n_drawn - steps, 0) / np.maximum(n_all - steps, 1)
    return np.append(1.0, np.cumprod(ratios))
