"""Protocol for noisy records with their responses."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skldp._validation._parameters import check_delta, check_epsilon, check_positive
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._encoding import clip_to_unit_ball
from skldp.mechanisms._gaussian import Gaussian
from skldp.protocols._possible_sums import as_python_ints, is_gram_matrix, within_box
from skldp.protocols._regression_protocol import BoundedProtocol
from skldp.protocols._tallies import Tally

_WORD_BITS = 20
_BLOCK_ROWS = 4096  # 4096 products of two 20-bit words add up to less than 2**53: exact in floats


@dataclass(frozen=True, kw_only=True)
class RecordProtocol(BoundedProtocol):
    r"""Each client sends its record and response with Gaussian noise.

    Parameters
    ----------
    y_weight : float, default=sqrt(1/2)
        Weight w of the response relative to x, which has length 1 at most. The vector :math:`(x, w\eta)` lies in a ball
        of radius :math:`\sqrt{1 + w^2}`.
    centred : bool, default=True
        Whether the midpoint of ``bounds_y`` is subtracted from the response; must be False without an intercept.
    epsilon, delta, data_norm, bounds_y, n_features, schema
        As in :class:`MomentProtocol`.

    Notes
    -----
    The aggregate keeps the sums of the reports and of their products, which are sufficient when records are Gaussian.

    Examples
    --------
    >>> from skldp.protocols import RecordProtocol
    >>> protocol = RecordProtocol(epsilon=1.0, delta=1e-6, n_features=2, bounds_y=(0, 10))
    >>> protocol.privatize([[0.3, 0.4], [0.1, 0.0]], [7.5, 2.5]).shape
    (2, 3)
    """

    y_weight: float = math.sqrt(0.5)
    centred: bool = True

    def __post_init__(self):
        self._check_domain()
        if self.n_responses > 1:
            raise InvalidParameterError("Noisy records have one response. Send moments of several responses, or one of "
                                        "them: give bounds_y one pair (lower, upper).")
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        object.__setattr__(self, "y_weight", check_positive(self.y_weight, "y_weight"))
        object.__setattr__(self, "centred", bool(self.centred))
        self.randomizer  # an impossible budget raises here, not on the first client

    @property
    def has_intercept(self) -> bool:
        """Whether the response is centred at its public midpoint."""
        return self.centred

    @cached_property
    def randomizer(self):
        """Mechanism that randomises a record with its response."""
        norm = math.sqrt(1 + self.y_weight**2)
        return Gaussian(epsilon=self.epsilon, delta=self.delta, norm=norm, n_features=self.n_features + 1)

    def _scaled(self, X, y, source):
        rows = super()._scaled(X, y, source)
        with np.errstate(all="ignore"):
            rows[:, :-1] = clip_to_unit_ball(rows[:, :-1].copy(), 1.0)
            rows[:, -1] = self.y_weight * np.nan_to_num(rows[:, -1], nan=0.0)
        return rows

    def mean_products(self, tally: Tally) -> np.ndarray:
        """Mean of (1, z)(1, z)' over the decoded reports z of a tally, shape (n_features + 2, n_features + 2)."""
        step = np.append(1.0, np.full(self.width, self.randomizer.decode(1.0)))
        return (tally.sums / max(tally.n_reports, 1)).astype(float) * np.outer(step, step)

    def directions(self):
        """Directions in which one report can change the sums, as arrays of the shape of the sums."""
        # Entries of (1, z)(1, z)' on and above the diagonal, without the first, which is the number of reports.
        top = self.randomizer.clamp[1]
        size = np.append(1, np.full(self.width, top))
        directions = []
        for row, column in zip(*(place[1:] for place in np.triu_indices(self.width + 1))):
            direction = as_python_ints(np.zeros((self.width + 1, self.width + 1), dtype=np.int64))
            direction[row, column] = direction[column, row] = int(size[row]) * int(size[column])
            directions.append(direction)
        return directions

    def extreme_effects(self, slopes):
        """Smallest and largest change that one report can make to functions with these slopes along ``directions``."""
        # Bounds of each entry separately: 0 and the largest value for squares, plus and minus it for products.
        rows, columns = (place[1:] for place in np.triu_indices(self.width + 1))
        high = np.where(rows == columns, np.maximum(slopes, 0), np.abs(slopes)).sum(axis=1)
        low = np.where(rows == columns, np.minimum(slopes, 0), -np.abs(slopes)).sum(axis=1)
        return low, high

    def _possible(self, tally):
        shape = self.width + 1, self.width + 1
        if tally.sums.shape != shape or tally.sums.dtype != object or tally.sums[0, 0] != tally.n_reports:
            return False
        size = as_python_ints(np.append(1, np.full(self.width, self.randomizer.clamp[1])))
        return within_box(tally.sums, np.outer(size, size) * tally.n_reports) and is_gram_matrix(tally.sums)

    def _tally(self, reports):
        total = as_python_ints(np.zeros((self.width + 1, self.width + 1), dtype=np.int64))
        for start in range(0, len(reports), _BLOCK_ROWS):
            total = total + _products(reports[start:start + _BLOCK_ROWS])
        return Tally(len(reports), total)


def _products(reports):
    """Exact sum of (1, z)(1, z)' over integer rows z; sums of products of 20-bit words fit in a float's 53 bits."""
    rows = np.empty((len(reports), reports.shape[1] + 1), dtype=np.int64)
    rows[:, 0], rows[:, 1:] = 1, reports
    high = (rows >> _WORD_BITS).astype(float)
    low = (rows & ((1 << _WORD_BITS) - 1)).astype(float)
    parts = [as_python_ints(product.astype(np.int64)) for product in (high.T @ high, high.T @ low, low.T @ low)]
    return (parts[0] << (2 * _WORD_BITS)) + ((parts[1] + parts[1].T) << _WORD_BITS) + parts[2]
