"""What the randomisers of categories share: the probabilities that a report contains a category, or several."""

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from skldp.mechanisms._base import Mechanism, has_width
from skldp.mechanisms._encoding import encode_category


class CategoryMechanism(Mechanism):
    """A randomiser of one category of ``n_categories``, whose report names some of the categories."""

    n_categories: int
    subset_size: int | None = None  # number of categories in a report, for the mechanism that lets one choose it

    sends_bits: bool  # whether a report is a row of zeros and ones, one for each category

    @property
    @abstractmethod
    def p(self) -> float:
        """Probability that a report contains the true category."""

    @property
    @abstractmethod
    def q(self) -> float:
        """Probability that a report contains another given category."""

    @property
    @abstractmethod
    def ratio(self) -> float:
        """Probability of a report if it contains the record, over its probability if it does not; as implemented."""

    @property
    @abstractmethod
    def n_ones(self) -> int | None:
        """Number of categories in every report; ``None`` where it varies."""

    @property
    @abstractmethod
    def ones_range(self) -> tuple[int, int]:
        """Fewest and most categories that an honest report contains."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of integers in a report."""

    @abstractmethod
    def others_contained(self, largest: int) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities that 0 .. ``largest`` given categories besides the true one are all in a report.

        Given that the report contains the true category, and given that it does not.
        """

    @abstractmethod
    def counts(self, reports: ArrayLike) -> np.ndarray:
        """Number of reports that contain each category: the sums that an aggregator keeps.

        Parameters
        ----------
        reports : array-like of int
            Valid reports.

        Returns
        -------
        ndarray of int64, shape (n_categories,)
        """

    @property
    def certain(self) -> bool:
        """Whether the report is the record: without noise, or where there is only one category to tell."""
        return not self.private or self.n_categories == 1

    @property
    def names_one(self) -> bool:
        """Whether a report is a single category, so that counts of reports say everything."""
        return self.certain or self.n_ones == 1

    @property
    def pair_probabilities(self) -> tuple[float, float]:
        """Probability that a report contains two given categories, if the record is one of them and if it is neither.

        The second one means nothing where there are two categories only, and neither does where there is one.
        """
        with_own, without = self.others_contained(2)
        return float(self.p * with_own[1]), float(self.p * with_own[2] + (1 - self.p) * without[2])

    def frequencies(self, counts: ArrayLike, n_reports: int) -> np.ndarray:
        r"""Unbiased estimate :math:`(\bar z_k - q)/(p - q)` of the frequencies; it may leave the simplex."""
        return (np.asarray(counts) / n_reports - self.q) / (self.p - self.q)

    def encode(self, x: ArrayLike) -> np.ndarray:
        """Turn category numbers into integers, -1 for an unknown one."""
        return encode_category(x, self.n_categories)

    def decode(self, reports: ArrayLike) -> np.ndarray:
        """The reports as they are."""
        return np.asarray(reports)


class SubsetMechanism(CategoryMechanism):
    """A randomiser of one category whose reports all name the same number of categories.

    They are uniform among those that contain the record, with probability p, and among those that do not.
    """

    n_ones: int

    @property
    def q(self) -> float:
        """Probability that a report contains another given category."""
        return (self.p * (self.n_ones - 1) + (1 - self.p) * self.n_ones) / max(self.n_categories - 1, 1)

    @property
    def ratio(self) -> float:
        """Probability of a report if it contains the record, over its probability if it does not; as implemented."""
        if self.certain:
            return math.inf
        return self.p * (self.n_categories - self.n_ones) / ((1 - self.p) * self.n_ones)

    @property
    def ones_range(self) -> tuple[int, int]:
        """Fewest and most categories that an honest report contains."""
        return self.n_ones, self.n_ones

    def others_contained(self, largest: int) -> tuple[np.ndarray, np.ndarray]:
        """Probabilities that 0 .. ``largest`` given categories besides the true one are all in a report."""
        n_others = self.n_categories - 1
        return _all_drawn(self.n_ones - 1, n_others, largest), _all_drawn(self.n_ones, n_others, largest)


class BitMechanism(CategoryMechanism):
    """A randomiser of one category whose report is a row of ``n_categories`` bits."""

    sends_bits = True
    report_dtype = np.dtype(np.uint8)

    @property
    def width(self) -> int:
        """Number of integers in a report."""
        return self.n_categories

    def counts(self, reports: ArrayLike) -> np.ndarray:
        """Number of reports that contain each category: the sums that an aggregator keeps."""
        return column_sums(np.asarray(reports).astype(np.uint8, copy=False))

    def number_of_ones(self, reports: ArrayLike) -> np.ndarray:
        """Number of ones of each row; of no meaning for a row that is not binary."""
        bits = np.asarray(reports).astype(np.uint8, copy=False)
        # Sums of bytes are several times faster where they cannot overflow.
        return np.einsum("ij->i", bits, dtype=np.uint8 if bits.shape[1] < 256 else np.int64)

    def _binary(self, reports):
        """Mask of the rows of ``n_categories`` zeros and ones."""
        reports = np.asarray(reports)
        if not has_width(reports, self.n_categories):
            return np.zeros(len(reports), dtype=bool)
        # The smallest and the largest entry are many times cheaper than a mask, and nearly always enough.
        if reports.size and reports.min() >= 0 and reports.max() <= 1:
            return np.ones(len(reports), dtype=bool)
        return ((reports == 0) | (reports == 1)).all(axis=1)


def column_sums(bits):
    """Column sums of a 0/1 matrix of bytes: blocks of 255 rows are added in bytes, which is many times faster."""
    n_blocks, d = len(bits) // 255, bits.shape[1]
    blocks = bits[:255 * n_blocks].reshape(n_blocks, 255, d)
    total = np.zeros(d, dtype=np.int64)
    for block in blocks:
        total += np.add.reduce(block, axis=0, dtype=np.uint8)
    return total + bits[255 * n_blocks:].sum(axis=0, dtype=np.int64)


def _all_drawn(n_drawn, n_all, largest):
    """Probabilities that 0 .. ``largest`` given ones of ``n_all`` are among ``n_drawn`` without replacement."""
    steps = np.arange(largest)
    ratios = np.maximum(n_drawn - steps, 0) / np.maximum(n_all - steps, 1)
    return np.append(1.0, np.cumprod(ratios))
