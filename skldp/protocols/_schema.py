"""Public schemas: raw columns of a record, and their map to a vector of bounded norm."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from skldp._validation._categories import category_codes, check_list
from skldp._validation._door import as_floats
from skldp._validation._limits import MAX_FEATURES
from skldp._validation._parameters import check_bounds, check_choice, check_positive, check_real
from skldp.exceptions import InvalidParameterError


def _identity(x):
    return x


CATEGORY_LENGTH = 0.35  # length of the code of a category; see CategoryColumn
TRANSFORMS: dict[str, Any] = {"identity": _identity, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt}


@dataclass(frozen=True)
class NumberColumn:
    r"""A number in public bounds, encoded as :math:`(f(x) - c)/s` after clipping.

    Parameters
    ----------
    name : str
        Name of the column.
    bounds : tuple of float
        Public interval.
    transform : {"identity", "log", "log1p", "sqrt"}, default="identity"
        The function f, which must be finite on the bounds.
    centre, scale : float or None, default=None
        Public c and s, on the scale of f(x). By default the midpoint and half the width of the transformed bounds, so
        that codes lie in [-1, 1].
    missing : float or None, default=None
        Public value that replaces a missing one; by default the code is 0.
    """

    name: str
    bounds: tuple
    transform: str = "identity"
    centre: Any = None
    scale: Any = None
    missing: float | None = None

    width = 1
    levels = None

    def __post_init__(self):
        what = f"bounds of the column {self.name!r}"
        lower, upper = check_bounds(self.bounds, what)
        function = check_choice(self.transform, f"transform of the column {self.name!r}", TRANSFORMS)
        with np.errstate(all="ignore"):
            low, high = float(function(lower)), float(function(upper))
        if not (math.isfinite(low) and math.isfinite(high)):
            raise InvalidParameterError(f"The transform {self.transform!r} is not finite on the {what}, "
                                        f"{self.bounds!r}. Choose bounds on which it is.")
        for name, value in (("centre", (low + high) / 2), ("scale", (high - low) / 2)):
            given = getattr(self, name)
            check = check_positive if name == "scale" else _check_finite
            object.__setattr__(self, name, value if given is None else check(given, f"{name} of {self.name!r}"))
        if self.missing is not None:
            object.__setattr__(self, "missing", _check_finite(self.missing, f"missing value of {self.name!r}"))
        object.__setattr__(self, "bounds", (lower, upper))

    @property
    def terms(self):
        """Names of the entries of a code."""
        return [self.name]

    @property
    def radius(self):
        """Largest length of a code."""
        return float(np.abs(self.encode(np.array(self.bounds))).max())

    @property
    def unit(self):
        """Name of the quantity that coefficients refer to."""
        return self.name if self.transform == "identity" else f"{self.transform}({self.name})"

    def encode(self, values):
        """Return the codes of private values, shape (n, 1); no value raises."""
        x = as_floats(values)
        if self.missing is not None:
            x = np.where(np.isnan(x), self.missing, x)
        code = (TRANSFORMS[self.transform](np.clip(x, *self.bounds)) - self.centre) / self.scale
        return np.where(np.isnan(code), 0.0, code)[:, None]

    def effects(self):
        """Return names of effects and the changes of the code: one more unit of the transformed value."""
        return [self.unit], np.array([[1 / self.scale]])

    def reference(self):
        """Return the code of a transformed value of zero."""
        return np.array([-self.centre / self.scale])

    def description(self):
        """Return the fields as a tuple that JSON can hold."""
        return (self.name, "number", self.bounds, self.transform, self.centre, self.scale, self.missing)


@dataclass(frozen=True)
class CategoryColumn:
    r"""A category of a public list, encoded as a vertex of a regular simplex around the origin.

    Parameters
    ----------
    name : str
        Name of the column.
    levels : tuple
        The public categories, the reference first. ``None`` among them is the category of missing values. Other values
        have the code 0, the centre of the simplex.
    length : float, default=0.35
        Length r of the codes. Longer codes make comparisons of categories sharper and everything else noisier.

    Notes
    -----
    K vertices in K - 1 dimensions at the distance r from the origin, and :math:`r\sqrt{2K/(K - 1)}` from each other.
    Indicators of that length are at the distance :math:`r\sqrt2`, or r from a reference that is left out: the simplex
    has the largest distances between categories in a ball, hence the least noise in comparisons of them.

    Every category has the full length r, while few numbers are at their bounds. With r = 0.35, about the root mean
    square of numbers in generous bounds, both take a similar part of the ball. On prices of diamonds by weight and
    three qualities, epsilon 4, the coefficient of determination is .77 with r = .35, .73 with .5 and .64 with 1.
    """

    name: str
    levels: tuple
    length: float = CATEGORY_LENGTH

    def __post_init__(self):
        if isinstance(self.levels, (str, bytes)) or not hasattr(self.levels, "__len__"):
            raise InvalidParameterError(f"The column {self.name!r} must have a list of its public categories, got "
                                        f"{self.levels!r}.")
        levels = tuple(self.levels)
        known = check_list([level for level in levels if level is not None]).tolist()
        if len(levels) < 2 or len(known) < len(levels) - 1:
            raise InvalidParameterError(f"The column {self.name!r} must have at least two different categories, got "
                                        f"{list(levels)!r}.")
        object.__setattr__(self, "levels", levels)
        object.__setattr__(self, "length", check_positive(self.length, f"length of {self.name!r}"))

    @property
    def radius(self):
        """Largest length of a code."""
        return self.length

    @property
    def width(self):
        """Number of entries of a code."""
        return len(self.levels) - 1

    @property
    def terms(self):
        """Names of the entries of a code."""
        return [self.name] if self.width == 1 else [f"{self.name}_{j}" for j in range(self.width)]

    @property
    def vertices(self):
        """Codes of the categories, shape (K, K - 1)."""
        return self.length * simplex(len(self.levels))

    def encode(self, values):
        """Return the codes of private values, shape (n, K - 1); no value raises."""
        places = [place for place, level in enumerate(self.levels) if level is not None]
        codes = category_codes(values, check_list([self.levels[place] for place in places]))
        vertices = np.vstack([self.vertices[places], np.zeros(self.width)])
        encoded = vertices[codes]  # -1, an unknown category, is the last row
        if None in self.levels:
            encoded[_missing(values)] = self.vertices[self.levels.index(None)]
        return encoded

    def effects(self):
        """Return names of effects and the changes of the code: every other category against the first."""
        names = [f"{self.name}[{'missing' if level is None else level}]" for level in self.levels[1:]]
        return names, self.vertices[1:] - self.vertices[0]

    def reference(self):
        """Return the code of the first category."""
        return self.vertices[0]

    def description(self):
        """Return the fields as a tuple that JSON can hold."""
        return (self.name, "category", self.levels, self.length)


class Schema:
    """Public description of the raw columns of a record, which maps records to vectors of norm 1 at most.

    Parameters
    ----------
    columns : sequence of NumberColumn and CategoryColumn
        The columns.
    radius : float or None, default=None
        Length of codes that become vectors of norm 1; longer ones are shortened to norm 1. By default the largest
        length that the columns can have, and no vector is shortened.
    """

    def __init__(self, columns, radius=None):
        self.columns = tuple(columns)
        names = self.names
        if not names or len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
            raise InvalidParameterError(f"A schema must have columns with different names, got {names!r}.")
        if self.width > MAX_FEATURES:
            raise InvalidParameterError(f"The columns of this schema become {self.width} numbers, and at most "
                                        f"{MAX_FEATURES} can be reported. Leave columns or categories out.")
        self.radius = self.largest if radius is None else check_positive(radius, "radius")

    @property
    def names(self):
        """Names of the raw columns."""
        return [column.name for column in self.columns]

    @property
    def terms(self):
        """Names of the entries of a vector."""
        return [term for column in self.columns for term in column.terms]

    @property
    def width(self):
        """Number of entries of a vector."""
        return sum(column.width for column in self.columns)

    @property
    def largest(self):
        """Largest length of a code, before it is divided by the radius."""
        return math.sqrt(sum(column.radius**2 for column in self.columns))

    @cached_property
    def slices(self):
        """Places of each column in a vector."""
        ends = np.cumsum([column.width for column in self.columns]).tolist()
        return [slice(end - column.width, end) for column, end in zip(self.columns, ends)]

    def codes(self, table):
        """Return the codes of plain records, shape (n, n_columns), before they are divided by the radius."""
        encoded = [column.encode(table[:, place]) for place, column in enumerate(self.columns)]
        return np.concatenate(encoded, axis=1)

    def encode(self, table):
        """Return vectors of norm 1 at most from plain records, shape (n, n_columns); no value raises."""
        vectors = self.codes(table) / self.radius
        return vectors / np.maximum(1.0, np.linalg.norm(vectors, axis=1, keepdims=True))

    def description(self):
        """Return the schema as nested tuples that JSON can hold."""
        return (self.radius, tuple(column.description() for column in self.columns))

    @classmethod
    def from_description(cls, description):
        """Return the schema of a description that was read from JSON."""
        try:
            radius, columns = description
            return cls([_KINDS[kind](name, *fields) for name, kind, *fields in columns], radius)
        except (TypeError, ValueError, KeyError) as error:
            if isinstance(error, InvalidParameterError):
                raise
            raise InvalidParameterError("This protocol file has a schema of an impossible kind. "
                                        "Publish the protocol again.") from None


_NUMBER_OPTIONS = {"bounds", "transform", "centre", "scale", "missing"}
_KINDS: dict[str, Any] = {"number": NumberColumn, "category": CategoryColumn}


def column_from(name, given):
    """Return the column for an entry of a schema: bounds, bounds with a transform, categories, "bool", or a dict."""
    if isinstance(given, str) and given == "bool":
        return CategoryColumn(name, (False, True))
    if not isinstance(given, Mapping):
        given = _options(given)
    if "categories" in given and set(given) <= {"categories", "length"}:
        return CategoryColumn(name, given["categories"], given.get("length", CATEGORY_LENGTH))
    if "bounds" in given and set(given) <= _NUMBER_OPTIONS:
        return NumberColumn(name, **given)
    raise InvalidParameterError(
        f"The column {name!r} of a schema must have categories and perhaps length, or bounds and perhaps "
        f"{', '.join(sorted(_NUMBER_OPTIONS - {'bounds'}))}; got {sorted(map(str, given))}.")


def simplex(n_vertices):
    """Return the vertices of a regular simplex of radius 1 around the origin, shape (K, K - 1).

    Examples
    --------
    >>> from skldp.protocols._schema import simplex
    >>> simplex(2)
    array([[-1.],
           [ 1.]])
    """
    vertices = np.zeros((n_vertices, n_vertices - 1))
    for j in range(1, n_vertices):
        vertices[:j, j - 1], vertices[j, j - 1] = -1, j
        vertices[:, j - 1] /= math.sqrt(j * (j + 1))
    return vertices * math.sqrt(n_vertices / (n_vertices - 1))


def _options(given):
    """Return the options of a column that is given by a pair of bounds, perhaps with a transform, or by categories."""
    if isinstance(given, (tuple, list)) and len(given) in (2, 3) and all(map(_is_number, given[:2])):
        if len(given) == 2:
            return {"bounds": given}
        if isinstance(given[2], str):
            return {"bounds": given[:2], "transform": given[2]}
    return {"categories": given}


def _is_number(value):
    return isinstance(value, Real) and not isinstance(value, bool)


def _check_finite(value, name):
    value = check_real(value, name)
    if math.isinf(value):
        raise InvalidParameterError(f"{name} must be finite, got {value!r}.")
    return value


def _missing(values):
    """Return a mask of the values that are None or NaN."""
    if values.dtype.kind in "biu":
        return np.zeros(len(values), dtype=bool)
    if values.dtype.kind == "f":
        return np.isnan(values)
    return np.fromiter((value is None or (isinstance(value, float) and math.isnan(value)) for value in values.tolist()),
                       dtype=bool, count=len(values))
