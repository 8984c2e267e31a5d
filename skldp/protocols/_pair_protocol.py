"""Protocol for several categorical attributes of each client, of which it reports a pair or a single one."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skldp._validation._categories import category_codes
from skldp._validation._door import as_table
from skldp._validation._limits import MAX_COUNTS, MAX_FEATURES
from skldp._validation._parameters import check_epsilon, check_integer, smallest_integer_dtype
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._block_design import BlockDesign
from skldp.privacy._spending import spend
from skldp.privacy._words import SystemWords, word_source
from skldp.protocols._coded_protocol import CodedProtocol, checked_categories
from skldp.protocols._table_coin import attribute_tables, best_shares, check_shares, draw_tables
from skldp.protocols._tallies import Tally


@dataclass(frozen=True, kw_only=True)
class PairProtocol(CodedProtocol):
    r"""Each client sends a noisy version of one pair of its attributes, or of one attribute, with its whole budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client.
    delta : float, default=0.0
        Always 0: the mechanism is pure.
    categories : tuple of tuples, default=((0, 1), (0, 1))
        The public categories of each of at least two attributes: numbers or strings.
    designs : tuple of pairs of int, or None, default=None
        Numbers of cells and of near cells of the block design of each table, in the order of ``tables``. ``None`` is
        replaced by the best ones for the budget.
    shares : tuple of int, or None, default=None
        Number of sides of the client's coin for each table, in the same order. ``None`` is replaced by the best ones
        for the budget and the numbers of categories (see Notes).

    Attributes
    ----------
    tables : list of tuples of int
        Attributes of each table of which a client may report its cell: (0, 1), (0, 2), ..., (1, 2), ..., all pairs, and
        then (0,), (1,), ..., if there are more than two attributes.

    See Also
    --------
    CategoryProtocol : One category, or a whole row as one category.

    Notes
    -----
    A report has two integers: the number of a table, and the report of a :class:`skldp.mechanisms.BlockDesign` on its
    cells, the combinations of categories. With two attributes there is one table, their pair, which everybody reports.
    With more, a pair says little about each of its attributes if there is much noise: the frequency of a category is
    then a sum of many noisy cells. The default shares minimise 16 times the variance of a frequency of an attribute
    plus that of a cell of a pair, if all cells are equally frequent. At a small epsilon 40 to 75 % of the clients
    report a single attribute, and at a large one nobody does, because a pair then tells as much.

    *Privacy.* The client draws the table j before it reads its record, with probabilities :math:`\pi_j` that do not
    depend on the record. So for all records x and x', which may differ in every attribute, and every report (j, z),
    :math:`\pi_jP(z|x_j) \le e^\epsilon\pi_jP(z|x'_j)`: the number of the table costs no budget.

    Examples
    --------
    >>> from skldp.protocols import PairProtocol, Protocol
    >>> protocol = PairProtocol(categories=(("cat", "dog"), ("no", "yes"), (1, 2, 3)), epsilon=2.0)
    >>> Protocol.from_json(protocol.to_json()).privatize([["dog", "no", 3]]).shape
    (1, 2)
    """

    categories: tuple = ((0, 1), (0, 1))
    designs: tuple | None = None
    shares: tuple | None = None

    _automatic: ClassVar[dict[str, Any]] = {"designs": None, "shares": None}

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", 0.0)
        if not isinstance(self.categories, (tuple, list)) or len(self.categories) < 2:
            raise InvalidParameterError("categories must be one list for each of at least two attributes.")
        check_integer(len(self.categories), "the number of attributes", 2, MAX_FEATURES)
        object.__setattr__(self, "known_categories", tuple(checked_categories(part, 1) for part in self.categories))
        object.__setattr__(self, "categories", tuple(tuple(part.tolist()) for part in self.known_categories))
        n_cells = sum(math.prod(self.shape[a] for a in table) for table in self.tables)
        if n_cells > MAX_COUNTS:
            raise InvalidParameterError(f"The tables of these attributes have {n_cells} combinations, more than the "
                                        f"{MAX_COUNTS} that can be counted. Use fewer attributes or categories.")
        object.__setattr__(self, "designs", tuple(one.design for one in self.randomizer))
        shares = best_shares(self.shape, self.randomizer) if self.shares is None else self.shares
        object.__setattr__(self, "shares", check_shares(shares, len(self.tables)))

    @cached_property
    def known_categories(self) -> tuple:
        """The categories of each attribute as read-only arrays."""
        return tuple(checked_categories(part, 1) for part in self.categories)

    @property
    def n_features(self) -> int:
        """Number k of attributes."""
        return len(self.categories)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of categories of each attribute."""
        return tuple(map(len, self.categories))

    @cached_property
    def tables(self) -> list[tuple[int, ...]]:
        """Attributes of each table of which a client may report its cell."""
        return attribute_tables(self.n_features)

    @cached_property
    def randomizer(self) -> list[BlockDesign]:
        """Mechanisms of all tables, in their order."""
        given = (None,) * len(self.tables) if self.designs is None else self.designs
        if not isinstance(given, (tuple, list)) or len(given) != len(self.tables):
            raise InvalidParameterError(f"designs must be a design for each of {len(self.tables)} tables, or None.")
        return [BlockDesign(epsilon=self.epsilon, n_categories=math.prod(self.shape[a] for a in table), design=design)
                for table, design in zip(self.tables, given)]

    @property
    def width(self) -> int:
        """Number of integers in a report."""
        return 2

    def _features_of(self, width):
        return self.n_features

    def _replace(self, **changes):
        changes.pop("n_features", None)  # which the categories tell
        return super()._replace(**changes)

    @property
    def report_dtype(self):
        """Integer dtype of reports."""
        return smallest_integer_dtype(0, max(len(self.tables), *(one.n_counts for one in self.randomizer)) - 1)

    @cached_property
    def starts(self) -> np.ndarray:
        """Place of the first count of each table among all counts, and the number of all counts at the end."""
        return np.concatenate([[0], np.cumsum([one.n_counts for one in self.randomizer])])

    def codes(self, X: Any) -> np.ndarray:
        """Category numbers of each attribute, -1 for an unknown category; no value raises."""
        rows = as_table(X, self.n_features)
        return np.stack([category_codes(rows[:, a], known) for a, known in enumerate(self.known_categories)], axis=1)

    def cells(self, codes, table):
        """Cell of each row in a table, -1 if one of its categories is unknown."""
        attributes = list(self.tables[table])
        own = codes[:, attributes]
        cells = np.ravel_multi_index(np.maximum(own, 0).T, [self.shape[a] for a in attributes])
        return np.where((own < 0).any(axis=1), -1, cells)

    def _draw(self, X, y, random_state):
        spend(self.epsilon, self.delta, X)
        source = SystemWords() if random_state is None else word_source(random_state, repr(self), X)
        tables = draw_tables(len(X), self.shares, source)
        reports = np.zeros((len(X), 2), dtype=self.report_dtype)
        reports[:, 0] = tables
        for table, mechanism in enumerate(self.randomizer):
            rows = np.flatnonzero(tables == table)
            reports[rows, 1] = mechanism.randomize(self.cells(X[rows], table), source)
        yield reports

    def _valid_rows(self, reports):
        known = (reports[:, 0] >= 0) & (reports[:, 0] < len(self.tables))
        n_reports = self._n_possible[np.where(known, reports[:, 0], 0).astype(np.intp)]
        return known & (reports[:, 1] >= 0) & (reports[:, 1] < n_reports)

    @cached_property
    def _n_possible(self):
        """Number of reports that clients may send about each table: none if its share is zero."""
        return np.where(np.array(self.shares) > 0, np.diff(self.starts), 0)

    def _tally(self, reports):
        cells = self.starts[reports[:, 0].astype(np.intp)] + reports[:, 1].astype(np.intp)
        return Tally(len(reports), np.bincount(cells, minlength=int(self.starts[-1])))

    def _possible(self, tally):
        counts = tally.sums
        if counts.shape != (int(self.starts[-1]),) or counts.dtype != np.int64 or (counts < 0).any():
            return False
        if counts[np.repeat(self._n_possible == 0, np.diff(self.starts))].any():
            return False
        return sum(counts.tolist()) == tally.n_reports
