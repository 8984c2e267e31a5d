"""Base classes of protocols for vectors, most of them with a response: public scales, and reports in pieces."""

import dataclasses
import math
from bisect import bisect_left
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np

from skldp._validation._categories import category_codes, check_list
from skldp._validation._door import as_column, as_float_table, as_floats, as_table, is_row
from skldp._validation._limits import MAX_CLASSES, MAX_FEATURES
from skldp._validation._parameters import check_bounds, check_integer, check_length, check_positive, plain_number
from skldp.exceptions import InvalidParameterError
from skldp.privacy._spending import spend
from skldp.privacy._words import word_source
from skldp.protocols._base import Protocol
from skldp.protocols._schema import Schema

# Clients whose reports are drawn at once, and bytes of one array of them: memory does not grow with the number of
# clients, nor with that of features beyond a few hundred megabytes.
CHUNK_ROWS, CHUNK_BYTES = 1 << 14, 1 << 26


@dataclass(frozen=True, kw_only=True)
class RegressionProtocol(Protocol):
    """Protocol for a vector x of bounded norm, most often with a response. The mechanism gets x / ``data_norm``.

    With a public ``schema`` of raw columns, records are rows of these columns, and the client maps them to x.
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    data_norm: float = 1.0
    n_features: int = 1
    schema: tuple | None = None

    def _check_vector(self):
        object.__setattr__(self, "data_norm", check_positive(self.data_norm, "data_norm"))
        object.__setattr__(self, "n_features", check_integer(self.n_features, "n_features", 1, MAX_FEATURES))
        if self.columns is not None:
            object.__setattr__(self, "schema", self.columns.description())
            if self.columns.width != self.n_features:
                raise InvalidParameterError(f"The columns of the schema become {self.columns.width} numbers, and the "
                                            f"protocol has n_features={self.n_features}. They must be equal.")

    @cached_property
    def columns(self) -> Schema | None:
        """The raw columns of a record; None if records are vectors."""
        return None if self.schema is None else Schema.from_description(self.schema)

    def with_schema(self, schema: Schema | None) -> Self:
        """Return the same collection from records of raw columns, which the client maps to x.

        Parameters
        ----------
        schema : Schema or None
            The public columns; None if records are vectors.

        Returns
        -------
        Protocol
        """
        return dataclasses.replace(self, schema=None if schema is None else schema.description())

    def _like(self, other):
        return dataclasses.replace(self, schema=other.schema) if isinstance(other, RegressionProtocol) else self

    @property
    @abstractmethod
    def randomizer(self):
        """Mechanism that randomises a record with its response, in public units."""

    @property
    def n_responses(self) -> int:
        """Number of responses of a record."""
        return 1

    @property
    @abstractmethod
    def has_intercept(self) -> bool:
        """Whether the reports can be used to estimate an intercept."""

    @abstractmethod
    def _numbers(self, y):
        """Plain responses as floats; NaN for an invalid one."""

    @abstractmethod
    def _response(self, y, source):
        """Responses in public units, from -1 to 1."""

    @property
    def width(self) -> int:
        """Number of integers in a report."""
        return self.randomizer.width

    def _features_of(self, width):
        # No report of k responses is wider than (d + k + 1)(d + k + 2) / 2 + 1. Steps grow for reports that are far
        # shorter; large steps at once would meet numbers of features that have too many moments.
        least = max(1, math.isqrt(2 * max(width - 1, 0)) - 2 - self.n_responses)
        most, step = min(max(width, 1), MAX_FEATURES), 1
        while least + step < most and self._width_of(least + step) < width:
            least, step = least + step, 2 * step
        return bisect_left(range(min(least + step, most)), width, lo=min(least, most), key=self._width_of)

    def _width_of(self, n_features):
        return self._replace(n_features=n_features).width

    def _plain(self, X, y):
        if self.columns is None:
            X = as_float_table(X, self.n_features)
        else:
            X = self.data_norm * self.columns.encode(as_table(X, len(self.columns.names)))
        return X, self._responses(y, len(X))

    def _responses(self, y, n_records):
        """Responses of records as floats, with a column for each if there are several or none."""
        if y is None:
            raise ValueError(f"{type(self).__name__} needs y: pass one response for each record.")
        return self._numbers(as_column(y, n_records, self.n_responses))

    def _draw(self, X, y, random_state):
        """Draw reports in pieces, from one stream of noise that continues over all pieces."""
        spend(self.epsilon, self.delta, X)
        source = word_source(random_state, self._canonical(), X, y)
        n_rows = max(1, min(CHUNK_ROWS, CHUNK_BYTES // (8 * self.width)))
        for start in range(0, max(len(X), 1), n_rows):
            rows = slice(start, start + n_rows)
            yield self.randomizer.randomize(self._scaled(X[rows], y[rows], source), source)

    def _scaled(self, X, y, source):
        """Rows (x, responses) in public units, which the mechanism clips."""
        rows = np.empty((len(X), self.n_features + self.n_responses))
        with np.errstate(all="ignore"):
            rows[:, :self.n_features] = X / self.data_norm
            rows[:, self.n_features:] = self._response(y, source).reshape(len(X), self.n_responses)
        return rows

    def _valid_rows(self, reports):
        return self.randomizer.valid(reports)


@dataclass(frozen=True, kw_only=True)
class BoundedProtocol(RegressionProtocol):
    """Protocol for a response in an interval, or for several responses, each in its own interval.

    The midpoint of ``bounds_y`` is subtracted from it, and it is divided by half their width. Without an intercept,
    nothing is subtracted and it is divided by the larger absolute bound.
    """

    bounds_y: tuple = (-1.0, 1.0)

    def _check_domain(self):
        self._check_vector()
        object.__setattr__(self, "bounds_y", check_response_bounds(self.bounds_y))

    @property
    def n_responses(self) -> int:
        """Number of responses of a record: one for each pair of bounds."""
        return n_pairs(self.bounds_y)

    @property
    def y_offset(self) -> float | np.ndarray:
        """Number subtracted from each response: the midpoint of its bounds, 0 without an intercept."""
        lower, upper = np.transpose(self.bounds_y)
        return plain_number(lower + (upper - lower) / 2 if self.has_intercept else np.zeros_like(lower))

    @property
    def y_scale(self) -> float | np.ndarray:
        """Number by which each response is divided, so that it lies in [-1, 1]."""
        lower, upper = np.transpose(self.bounds_y)
        return plain_number((upper - lower) / 2 if self.has_intercept else np.maximum(abs(lower), abs(upper)))

    def _numbers(self, y):
        return as_floats(y)

    def _response(self, y, source):
        return (np.clip(y, *np.transpose(self.bounds_y)) - self.y_offset) / self.y_scale


@dataclass(frozen=True, kw_only=True)
class LabelledProtocol(RegressionProtocol):
    """Protocol for a response that is one of some public labels, encoded as -1 and 1 if there are two.

    More labels are encoded as equally spaced numbers from -1 to 1.
    """

    classes: tuple = (0, 1)
    most_classes: ClassVar[int] = 2

    def _check_domain(self):
        self._check_vector()
        check_length(self.classes, "classes", MAX_CLASSES)
        try:
            known = check_list(self.classes)
        except InvalidParameterError as error:
            raise InvalidParameterError(str(error).replace("categories", "classes")) from None
        if not 2 <= len(known) <= self.most_classes:
            number = "two" if self.most_classes == 2 else "at least two"
            raise InvalidParameterError(f"classes must be {number} public labels, got {list(self.classes)!r}.")
        object.__setattr__(self, "classes", _sorted_labels(known.tolist()))

    @property
    def labels(self) -> tuple:
        """The public labels."""
        return self.classes

    def _numbers(self, y):
        return np.append(np.linspace(-1.0, 1.0, len(self.classes)), np.nan)[category_codes(y, check_list(self.classes))]

    def _refuse_unknown(self, X, y):
        if np.isnan(y).any():
            raise ValueError("y has labels that are none of classes. "
                             "Add them to classes, or leave their rows out of X and y.")

    def _response(self, y, source):
        # An unknown label becomes -1 or 1 at random. One word is drawn for every record, known or not.
        coin = np.where(source.words(len(y)) >> np.uint64(63), 1.0, -1.0)
        return np.where(np.isnan(y), coin, y)


def check_response_bounds(bounds):
    """Return one pair of bounds, or a tuple of pairs for several responses."""
    if not isinstance(bounds, (list, tuple, np.ndarray)) or len(bounds) == 0 or not all(map(is_row, bounds)):
        return check_bounds(bounds, "bounds_y")
    check_length(bounds, "bounds_y", MAX_FEATURES)
    pairs = tuple(check_bounds(pair, "bounds_y") for pair in bounds)
    return pairs if len(pairs) > 1 else pairs[0]


def n_pairs(bounds):
    """Return the number of pairs in checked bounds of responses."""
    return len(bounds) if isinstance(bounds[0], tuple) else 1


def _sorted_labels(labels):
    """Return strings, or finite numbers, sorted, as plain values that JSON can hold."""
    labels = [label.item() if isinstance(label, np.generic) else label for label in labels]
    strings = all(isinstance(label, str) for label in labels)
    numbers = all(isinstance(label, (bool, int, float)) and math.isfinite(label) for label in labels)
    if not strings and not numbers:
        raise InvalidParameterError(f"classes must all be strings or all be finite numbers, got {labels!r}.")
    return tuple(sorted(labels))
