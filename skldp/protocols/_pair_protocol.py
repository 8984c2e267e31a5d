"""Protocol for several categorical attributes of each client, of which it reports one pair."""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
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
from skldp.protocols._base import Protocol
from skldp.protocols._category_protocol import checked_categories
from skldp.protocols._column_sampling import draw_columns
from skldp.protocols._tallies import Tally


@dataclass(frozen=True, kw_only=True)
class PairProtocol(Protocol):
    r"""Each client sends a noisy version of one pair of its attributes, chosen by its own coin, with its whole budget.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client.
    delta : float, default=0.0
        Always 0: the mechanism is pure.
    categories : tuple of tuples, default=((0, 1), (0, 1))
        The public categories of each of at least two attributes: numbers or strings.
    designs : tuple of pairs of int, or None, default=None
        Numbers of cells and of near cells of the block design of each pair, in the order (0, 1), (0, 2), ..., (1, 2) of
        pairs of attributes. ``None`` is replaced by the best ones for the budget.

    See Also
    --------
    CategoryProtocol : One category, or a whole row as one category.

    Notes
    -----
    A report has two integers: the number of a pair, and the report of a :class:`skldp.mechanisms.BlockDesign` on the
    combinations of its categories. With two attributes there is one pair, which everybody reports.

    *Privacy.* The client draws the pair j before it reads its record, with probabilities :math:`\pi_j` that do not
    depend on the record. So for all records x and x', which may differ in every attribute, and every report (j, z),
    :math:`\pi_jP(z|x_j) \le e^\epsilon\pi_jP(z|x'_j)`: the number of the pair costs no budget.

    Examples
    --------
    >>> from skldp.protocols import PairProtocol, Protocol
    >>> protocol = PairProtocol(categories=(("cat", "dog"), ("no", "yes"), (1, 2, 3)), epsilon=2.0)
    >>> Protocol.from_json(protocol.to_json()).privatize([["dog", "no", 3]]).shape
    (1, 2)
    """

    categories: tuple = ((0, 1), (0, 1))
    designs: tuple | None = None

    _automatic: ClassVar[dict[str, Any]] = {"designs": None}

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", 0.0)
        if not isinstance(self.categories, (tuple, list)) or len(self.categories) < 2:
            raise InvalidParameterError("categories must be one list for each of at least two attributes.")
        check_integer(len(self.categories), "the number of attributes", 2, MAX_FEATURES)
        object.__setattr__(self, "known_categories", tuple(checked_categories(part, 1) for part in self.categories))
        object.__setattr__(self, "categories", tuple(tuple(part.tolist()) for part in self.known_categories))
        n_cells = sum(self.shape[a] * self.shape[b] for a, b in self.pairs)
        if n_cells > MAX_COUNTS:
            raise InvalidParameterError(f"The pairs of these attributes have {n_cells} combinations, more than the "
                                        f"{MAX_COUNTS} that can be counted. Use fewer attributes or categories.")
        designs = tuple(one.design for one in self.randomizer)
        object.__setattr__(self, "designs", designs)

    def __getstate__(self) -> Any:
        return {name: value for name, value in super().__getstate__().items() if name != "known_categories"}

    @cached_property
    def known_categories(self) -> tuple:
        """The categories of each attribute as read-only arrays."""
        return tuple(checked_categories(part, 1) for part in self.categories)

    @property
    def labels(self) -> tuple:
        """The public categories of all attributes."""
        return self.categories

    @property
    def n_features(self) -> int:
        """Number k of attributes."""
        return len(self.categories)

    @property
    def shape(self) -> tuple[int, ...]:
        """Number of categories of each attribute."""
        return tuple(map(len, self.categories))

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of attributes that a client may report."""
        return list(combinations(range(self.n_features), 2))

    @cached_property
    def randomizer(self) -> list[BlockDesign]:
        """Mechanisms of all pairs, in their order."""
        given = (None,) * len(self.pairs) if self.designs is None else self.designs
        if not isinstance(given, (tuple, list)) or len(given) != len(self.pairs):
            raise InvalidParameterError(f"designs must be a design for each of {len(self.pairs)} pairs, or None.")
        return [BlockDesign(epsilon=self.epsilon, n_categories=self.shape[a] * self.shape[b], design=design)
                for (a, b), design in zip(self.pairs, given)]

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
        return smallest_integer_dtype(0, max(len(self.pairs), *(one.n_counts for one in self.randomizer)) - 1)

    @cached_property
    def starts(self) -> np.ndarray:
        """Place of the first count of each pair among all counts, and the number of all counts at the end."""
        return np.concatenate([[0], np.cumsum([one.n_counts for one in self.randomizer])])

    def codes(self, X: Any) -> np.ndarray:
        """Category numbers of each attribute, -1 for an unknown category; no value raises."""
        rows = as_table(X, self.n_features)
        return np.stack([category_codes(rows[:, a], known) for a, known in enumerate(self.known_categories)], axis=1)

    def pair_codes(self, codes, pair):
        """Number of the combination of a pair of categories, -1 if one of them is unknown."""
        (a, b), one = self.pairs[pair], codes
        return np.where((one[:, a] < 0) | (one[:, b] < 0), -1, one[:, a] * self.shape[b] + one[:, b])

    def _plain(self, X, y):
        return self.codes(X), None

    def _refuse_unknown(self, X, y):
        if (X < 0).any():
            raise ValueError("X has values that are none of categories. "
                             "Add them to categories, or leave their rows out.")

    def _draw(self, X, y, random_state):
        spend(self.epsilon, self.delta, X)
        source = SystemWords() if random_state is None else word_source(random_state, repr(self), X)
        pairs = draw_columns(len(X), len(self.pairs), source)
        reports = np.zeros((len(X), 2), dtype=self.report_dtype)
        reports[:, 0] = pairs
        for pair, mechanism in enumerate(self.randomizer):
            rows = np.flatnonzero(pairs == pair)
            reports[rows, 1] = mechanism.randomize(self.pair_codes(X[rows], pair), source)
        yield reports

    def _valid_rows(self, reports):
        known = (reports[:, 0] >= 0) & (reports[:, 0] < len(self.pairs))
        n_counts = np.diff(self.starts)[np.where(known, reports[:, 0], 0).astype(np.intp)]
        return known & (reports[:, 1] >= 0) & (reports[:, 1] < n_counts)

    def _tally(self, reports):
        cells = self.starts[reports[:, 0].astype(np.intp)] + reports[:, 1].astype(np.intp)
        return Tally(len(reports), np.bincount(cells, minlength=int(self.starts[-1])))

    def _possible(self, tally):
        counts = tally.sums
        if counts.shape != (int(self.starts[-1]),) or counts.dtype != np.int64 or (counts < 0).any():
            return False
        return sum(counts.tolist()) == tally.n_reports
