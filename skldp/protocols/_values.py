"""Protocol for one or more values of each client."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from skldp._validation._door import as_float_table
from skldp._validation._limits import MAX_CELLS, MAX_FEATURES, MAX_LEVELS
from skldp._validation._parameters import check_bounds, check_choice, check_epsilon, check_integer, split_budget
from skldp.exceptions import InvalidParameterError
from skldp.privacy._spending import spend
from skldp.protocols._base import Protocol
from skldp.protocols._tallies import Tally
from skldp.protocols._value_schemes import SCHEMES


@dataclass(frozen=True, kw_only=True)
class ValueProtocol(Protocol):
    """Each client sends noisy values, one for each column, and splits its budget equally over them.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client.
    delta : float, default=0.0
        Failure probability of a client; used by Gaussian noise, 0 for the others.
    bounds : tuple of float, default=(-5, 5)
        Public interval of every value.
    mechanism : {"square_wave", "laplace", "gaussian"}, default="square_wave"
        How a value is randomised.
    n_levels : int or None, default=None
        The interval is mapped to the integers 0 .. n_levels. ``None`` is 1024 for the square wave and 65536 for
        Laplace; Gaussian noise has its own grid.
    window : "auto", float or None, default="auto"
        Half-window of the square wave as a share of the range. "auto" is replaced by the number for the budget of one
        value (see :class:`skldp.mechanisms.SquareWave`), so that the description contains it. ``None`` for the other
        mechanisms, which have no window.
    n_features : int, default=1
        Number of values of a client.

    See Also
    --------
    SampledValueProtocol : Each client sends one of its values, with its whole budget.

    Examples
    --------
    >>> from skldp.protocols import Protocol, ValueProtocol
    >>> protocol = ValueProtocol(epsilon=1.0, bounds=(0, 100))
    >>> report = Protocol.from_json(protocol.to_json()).privatize(37.5)
    >>> report.shape, protocol.check(report)
    ((1, 1), array([ True]))
    """

    epsilon: float = 1.0
    delta: float = 0.0
    bounds: tuple = (-5.0, 5.0)
    mechanism: str = "square_wave"
    n_levels: int | None = None
    window: float | str | None = "auto"
    n_features: int = 1

    _automatic: ClassVar[dict[str, Any]] = {"window": "auto"}

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        object.__setattr__(self, "n_features", check_integer(self.n_features, "n_features", 1, MAX_FEATURES))
        scheme = check_choice(self.mechanism, "mechanism", SCHEMES)
        n_levels = scheme.default_levels if self.n_levels is None else self.n_levels
        object.__setattr__(self, "n_levels", check_integer(n_levels, "n_levels", 1, MAX_LEVELS))
        object.__setattr__(self, "delta", scheme.check_delta(self.delta))
        # Builds the mechanism, so that an impossible budget or window raises here and not on the first client.
        object.__setattr__(self, "window", scheme.check_window(self.window, self.randomizer))
        self._check_cells()

    def _check_cells(self):
        # Tails and windows outside the bounds are not counted, so that 2**24 levels of one column are allowed with any
        # window.
        n_cells = self.n_features * min(self.cells.n_cells, cast(int, self.n_levels))
        if n_cells > MAX_CELLS:
            raise InvalidParameterError(
                f"n_features={self.n_features} and n_levels={self.n_levels} mean {n_cells} cells to count, and there "
                f"may be {MAX_CELLS}. Lower n_levels, or send fewer features."
            )

    @property
    def width(self) -> int:
        """Number of integers in a report."""
        return self.n_features

    @property
    def n_reported(self) -> int:
        """Number of values in a report, which share the budget."""
        return self.n_features

    @property
    def report_dtype(self):
        """Integer dtype of reports."""
        return self.randomizer.report_dtype

    @cached_property
    def randomizer(self):
        """Mechanism that randomises one value."""
        return self._scheme.mechanism(self, split_budget(self.epsilon, self.n_reported))

    @property
    def midpoint(self) -> float:
        """Middle of the public interval."""
        return self.bounds[0] + (self.bounds[1] - self.bounds[0]) / 2

    @cached_property
    def cells(self):
        """Public cells in which reports are counted."""
        return self._scheme.cells(self)

    @property
    def _scheme(self):
        return SCHEMES[self.mechanism]

    def _plain(self, X, y):
        return as_float_table(X, self.n_features), None

    def _compared(self, X, y):
        return (self._scheme.encode(self, X),)

    def _draw(self, X, y, random_state):
        spend(self.epsilon, self.delta, X)
        yield self._scheme.randomize(self, X, random_state)

    def _valid_rows(self, reports):
        low, high = self.randomizer.clamp
        # Checking the smallest and the largest entry is many times cheaper than a mask, and nearly always enough.
        if reports.size == 0 or (reports.min() >= low and reports.max() <= high):
            return np.ones(len(reports), dtype=bool)
        return ((reports >= low) & (reports <= high)).all(axis=1)

    def _possible(self, tally):
        shape = self.n_features, self.cells.n_cells
        if tally.sums.shape != shape or tally.sums.dtype != np.int64 or (tally.sums < 0).any():
            return False
        return bool(self._possible_totals(tally.sums.sum(axis=1, dtype=object), tally.n_reports))

    def _possible_totals(self, totals, n_reports):
        """Whether the columns can have these numbers of values, as Python integers."""
        return (totals == n_reports).all()

    def reported(self, reports):
        """Return the noisy values in valid reports, shape (n, n_reported)."""
        return reports

    def _by_column(self, reports):
        """Iterate over the noisy values of each column."""
        return reports.T

    def _tally(self, reports):
        counts = np.empty((self.n_features, self.cells.n_cells), dtype=np.int64)
        for column, values in enumerate(self._by_column(reports)):
            counts[column] = _count(self.cells, values)
        return Tally(len(reports), counts)


def _count(cells, reports, block=1 << 18):
    """Counts of reports in cells, block by block so that the cell numbers stay in the cache."""
    counts = np.zeros(cells.n_cells, dtype=np.int64)
    for start in range(0, len(reports), block):
        counts += np.bincount(cells.index(reports[start:start + block]), minlength=cells.n_cells)
    return counts
