"""Randomised response on a category."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from skldp._validation._limits import MAX_CATEGORIES
from skldp._validation._parameters import check_epsilon, check_integer, smallest_integer_dtype
from skldp.mechanisms._base import is_integer
from skldp.mechanisms._category_base import SubsetMechanism
from skldp.privacy._noise import uniform_below
from skldp.privacy._thresholds import WORD, near_threshold


@dataclass(frozen=True, kw_only=True)
class RandomizedResponse(SubsetMechanism):
    r"""Report the true category with high probability, else a uniformly random other one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    n_categories : int, default=2
        Number k of categories; 2 is Warner's original scheme.

    Attributes
    ----------
    p, q : float
        Probability that the report is the true category, and that it is another given one.
    near_probability : float
        The same as p.

    Notes
    -----
    :math:`P(z=x) = e^\epsilon/(e^\epsilon+k-1)`, and every other value has probability :math:`1/(e^\epsilon+k-1)`.

    *Privacy.* Pure epsilon, exactly, in integers: see :func:`skldp.privacy.near_threshold`. A record that is none of
    the categories is first replaced by a uniformly random one: a mixture of inputs, which is at least as private.

    References
    ----------
    S. L. Warner (1965). Randomized response: a survey technique for eliminating evasive answer bias. JASA.

    Examples
    --------
    >>> from skldp.mechanisms import RandomizedResponse
    >>> mechanism = RandomizedResponse(epsilon=1.0, n_categories=4)
    >>> round(mechanism.near_probability, 4)
    0.4754
    >>> mechanism.randomize([0, 1, 2, 3], rng=0).dtype
    dtype('uint8')
    """

    epsilon: float = 1.0
    n_categories: int = 2

    sends_bits = False

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "n_categories", check_integer(self.n_categories, "n_categories", 1, MAX_CATEGORIES))

    @cached_property
    def _threshold(self):
        if self.certain:
            return WORD
        n_other = self.n_categories - 1
        return near_threshold(self.epsilon, 1, n_other, Fraction(n_other, WORD))

    @property
    def p(self) -> float:
        """Probability that the report is the true category."""
        return self._threshold / WORD

    @property
    def n_ones(self) -> int:  # type: ignore[override]
        """Number of categories in every report: one."""
        return 1

    @property
    def width(self) -> int:
        """Number of integers in a report: one, the category."""
        return 1

    @property
    def near_probability(self) -> float:
        """Probability that the report is the true category."""
        return self.p

    @property
    def far_probability(self) -> float:
        """Probability of each report that is another category."""
        return self.q

    @cached_property
    def report_dtype(self):
        """Smallest integer dtype that holds every report."""
        return smallest_integer_dtype(0, self.n_categories - 1)

    def _draw(self, codes, source):
        codes = replace_unknown(codes, self.n_categories, source)
        if self.certain:
            return codes.astype(self.report_dtype)
        level, other = source.words(2 * codes.size).reshape(2, *codes.shape)
        away = level >= np.uint64(self._threshold)
        # Adding 1 .. k-1 modulo k to the true category gives every other category once.
        step = 1 + uniform_below(other, self.n_categories - 1)
        return ((codes + away * step) % self.n_categories).astype(self.report_dtype)

    def counts(self, reports: ArrayLike) -> np.ndarray:
        """Number of reports that contain each category, which is what the aggregator keeps."""
        return np.bincount(np.asarray(reports), minlength=self.n_categories).astype(np.int64)

    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-probability of reported categories given categories; an unknown record is a mixture of all of them."""
        valid, codes = self.valid(reports), self.encode(x)
        reports = np.asarray(reports).astype(np.int64)
        probability = np.where(reports == codes, self.p, self.q)
        probability = np.where(codes < 0, 1 / self.n_categories, probability)
        with np.errstate(divide="ignore"):
            return np.where(valid, np.log(probability), -np.inf)

    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the reports in 0 .. k - 1."""
        reports = np.asarray(reports)
        if not is_integer(reports):
            return np.zeros(reports.shape, dtype=bool)
        return (reports >= 0) & (reports < self.n_categories)


def replace_unknown(codes, n_categories, source):
    """Replace -1 by a uniformly random category. One word is drawn for every record, known or not."""
    return np.where(codes < 0, uniform_below(source.words(codes.size).reshape(codes.shape), n_categories), codes)
