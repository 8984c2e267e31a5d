"""Gaussian noise on a record, randomised response on its label."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skldp._validation._limits import MAX_FEATURES
from skldp._validation._parameters import check_delta, check_epsilon, check_fraction, check_integer
from skldp.mechanisms._base import Mechanism, check_width, has_width, in_blocks
from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._randomized_response import RandomizedResponse

_BLOCK_ROWS = 4096


@dataclass(frozen=True, kw_only=True)
class LabelledRecord(Mechanism):
    r"""Gaussian noise on a vector and randomised response on its label, with the budget split between them.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability in (0, 1).
    n_features : int, default=1
        Length d of the vector, which is clipped to norm 1. A record has d + 1 entries, the label -1 or 1 last.
    budget_split : float, default=0.5
        Share c of epsilon that the label gets.

    Notes
    -----
    The two reports are independent given the record, so the budgets :math:`((1-c)\epsilon, \delta)` and
    :math:`(c\epsilon, 0)` add up.

    Examples
    --------
    >>> from skldp.mechanisms import LabelledRecord
    >>> mechanism = LabelledRecord(epsilon=1.0, n_features=2)
    >>> mechanism.randomize([[0.6, 0.8, -1.0]], rng=0).shape
    (1, 3)
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    n_features: int = 1
    budget_split: float = 0.5

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        object.__setattr__(self, "n_features", check_integer(self.n_features, "n_features", 1, MAX_FEATURES))
        object.__setattr__(self, "budget_split", check_fraction(self.budget_split, "budget_split"))
        self.vector, self.label  # built here so that an impossible budget raises at once

    @cached_property
    def vector(self):
        """Mechanism that randomises the vector."""
        return Gaussian(epsilon=self.epsilon * (1 - self.budget_split), delta=self.delta, n_features=self.n_features)

    @cached_property
    def label(self):
        """Mechanism that randomises the label."""
        return RandomizedResponse(epsilon=self.epsilon * self.budget_split, n_categories=2)

    @property
    def width(self):
        """Number of integers in a report."""
        return self.n_features + 1

    @property
    def report_dtype(self):
        """Integer dtype of a report."""
        return self.vector.report_dtype

    @property
    def noise_variance(self):
        """Variance of an entry of a decoded vector around that of its record."""
        return self.vector.noise_variance

    @property
    def contrast(self):
        """Twice the probability that the label is reported unchanged, minus one."""
        return 2 * self.label.near_probability - 1

    def encode(self, x: Any) -> np.ndarray:
        """Encode records, shape (n, n_features + 1), as integers: the vector, then 0 or 1 for the label."""
        x = check_width(x, self.n_features + 1)
        codes = np.empty(x.shape, dtype=np.int64)
        codes[:, :-1] = self.vector.encode(x[:, :-1])
        with np.errstate(all="ignore"):
            codes[:, -1] = x[:, -1] >= 0
        return codes

    def _draw(self, codes, source):
        def draw(block):
            """Draw the reports of a block of encoded records."""
            vector, label = self.vector._draw(block[:, :-1], source), self.label._draw(block[:, -1], source)
            return np.column_stack([vector, label])

        return in_blocks(draw, codes, _BLOCK_ROWS, (self.width,), self.report_dtype)

    def decode(self, reports: Any) -> np.ndarray:
        """Unbiased vectors, with the reported labels -1 or 1 last."""
        reports = np.asarray(reports)
        return np.column_stack([self.vector.decode(reports[:, :-1]), 2.0 * reports[:, -1] - 1])

    def log_prob(self, reports: Any, x: Any) -> np.ndarray:
        """Log-probability of reports given records: the sum over the two parts."""
        reports, x = np.asarray(reports), check_width(x, self.width)
        codes = self.encode(x)
        vector = self.vector.log_prob(reports[:, :-1], x[:, :-1])
        return vector + self.label.log_prob(reports[:, -1], codes[:, -1])

    def valid(self, reports: Any) -> np.ndarray:
        """Mask of the rows whose vector is inside the clamps and whose label is 0 or 1."""
        reports = np.asarray(reports)
        if not has_width(reports, self.width):
            return np.zeros(len(reports), dtype=bool)
        # Contiguous: NumPy 2.0.0 crashes where it compares a slice with an integer beyond the range of its dtype.
        vectors, labels = np.ascontiguousarray(reports[:, :-1]), np.ascontiguousarray(reports[:, -1])
        return self.vector.valid(vectors) & self.label.valid(labels)
