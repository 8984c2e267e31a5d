"""Checks of public categories, and the category codes of records."""

import struct
from decimal import Decimal
from numbers import Integral, Real

import numpy as np

from skldp._validation._limits import MAX_CATEGORIES
from skldp._validation._parameters import check_length
from skldp.exceptions import InvalidParameterError

_NUMBERS = (int, float, Real, np.bool_)  # isinstance is faster for int and float than for Real
_KEYED = (*_NUMBERS, Decimal)
_bytes_of_float = struct.Struct("<d").pack


def check_categories(categories, X):
    """Return one array of distinct categories for each column of X; None takes the values of X, one list serves all."""
    n_columns = X.shape[1]
    if categories is None:
        return [_distinct(X[:, j]) for j in range(n_columns)]
    if isinstance(categories, (str, bytes)) or not hasattr(categories, "__len__"):
        raise InvalidParameterError(f"categories must be a list of the public categories, got {categories!r}.")
    nested = len(categories) > 0 and all(_is_list(item) for item in categories)
    if nested and len(categories) != n_columns:
        raise InvalidParameterError(
            f"categories has {len(categories)} lists for {n_columns} columns. Give one list, or one for each column."
        )
    return [_check_list(item) for item in (categories if nested else [categories] * n_columns)]


def category_codes(column, categories):
    """Return the category code of each value of a column of any type, -1 for an unknown value; no value raises.

    Examples
    --------
    >>> import numpy as np
    >>> category_codes(np.array(["b", "z", "a"]), np.array(["a", "b"]))
    array([ 1, -1,  0])
    """
    if column.dtype.kind in "biuf" and categories.dtype.kind in "biuf":
        order = np.argsort(categories, kind="stable")
        place = np.minimum(np.searchsorted(categories, column, sorter=order), len(categories) - 1)
        found = order[place]
        with np.errstate(all="ignore"):
            return np.where(categories[found] == column, found, -1)
    numbers = {_key(value): number for number, value in enumerate(categories.tolist())}
    return np.fromiter((_lookup(numbers, value) for value in column.tolist()), dtype=np.int64, count=len(column))


def row_codes(X, categories):
    """Return the category code of each row of values of any type, -1 for an unknown row; no value raises."""
    numbers = {_key(value): number for number, value in enumerate(categories)}
    rows = (tuple(row) for row in X.tolist())
    return np.fromiter((_lookup(numbers, row) for row in rows), dtype=np.int64, count=len(X))


def distinct_rows(X):
    """Return the sorted distinct records: values of a single column, tuples of several; missing values are left out."""
    if X.shape[1] == 1:
        return _distinct(X[:, 0])
    return _distinct(np.fromiter((tuple(row) for row in X.tolist()), dtype=object, count=len(X)))


def columns_of(categories):
    """Number of columns of the records that these categories describe."""
    first = next(iter(categories), None)
    return len(first) if isinstance(first, (tuple, list, np.ndarray)) else 1


def _key(value):
    """Return the dictionary key of a category; equal categories have equal keys.

    The hashes of numbers are predictable, so an attacker could choose numbers that collide and make the dictionary
    slow. The hashes of strings and bytes are salted. So a number becomes bytes, the same for 1, 1.0 and True.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    if isinstance(value, bytes):
        return b"bytes " + value
    if not isinstance(value, _KEYED) or value != value:
        return value
    try:
        number = float(value)
    except OverflowError:
        return value  # more than 308 digits: only a long text has enough of these for many collisions
    if number == value:
        return b"number " + _bytes_of_float(number + 0.0)  # -0.0 becomes 0.0
    return b"whole number " + str(int(value)).encode() if isinstance(value, (int, Integral)) else value


def _lookup(numbers, value):
    try:
        return numbers.get(_key(value), -1)
    except Exception:  # a value that cannot be hashed or compared is not a known category
        return -1


def _is_list(item):
    return isinstance(item, (list, tuple)) or (hasattr(item, "tolist") and hasattr(item, "__len__"))


def check_list(values, n_columns=1):
    """Return distinct categories as an array: numbers or strings, or tuples of ``n_columns`` of them."""
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise InvalidParameterError(f"categories must be a list of the public categories, got {values!r}.")
    if n_columns == 1:
        return _check_list(values)
    rows = [tuple(np.asarray(row, dtype=object).tolist()) if _is_list(row) else row for row in values]
    if any(not isinstance(row, tuple) or len(row) != n_columns for row in rows):
        invalid = next(row for row in rows if not isinstance(row, tuple) or len(row) != n_columns)
        raise InvalidParameterError(
            f"categories must be rows of {n_columns} values, as the records are, got {invalid!r}. "
            f"List every row of {n_columns} values that a client may report."
        )
    return _check_list(rows)


def _check_list(values):
    check_length(values, "categories", MAX_CATEGORIES)
    known = np.empty(len(values), dtype=object)
    known[:] = list(values)
    if len(known) == 0:
        raise InvalidParameterError("categories must not be empty. List every category that a client may report.")
    narrow = _narrow(known)
    if narrow is not known:
        return narrow
    try:
        n_distinct = len(set(map(_key, known.tolist())))
    except TypeError:
        raise InvalidParameterError(f"categories must be numbers or strings, got {list(values)!r}. "
                                    "Give each a number or a name.") from None
    if n_distinct < len(known):
        raise InvalidParameterError(f"categories must be distinct, got {list(values)!r}. List each of them once.")
    return known


def _distinct(column):
    """Return the sorted distinct values of a column; missing values are left out."""
    values = {value for value in column.tolist() if _can_be_category(value)}
    try:
        ordered = sorted(values)
    except TypeError:  # values of different types cannot be compared
        ordered = sorted(values, key=lambda value: (type(value).__name__, str(value)))
    return _check_list(ordered)


def _can_be_category(value):
    try:
        return value is not None and hash(value) is not None and bool(value == value)
    except Exception:  # missing values of pandas, dicts and lists
        return False


def _narrow(known):
    """Return a numeric array if all categories are numbers and remain distinct in it; else ``known``."""
    if all(isinstance(value, _NUMBERS) for value in known):
        numbers = np.asarray(known.tolist())
        # Sorted, because np.unique uses a hash table, which numbers chosen by an attacker can make slow.
        ordered = np.sort(numbers) if numbers.dtype.kind in "biuf" else numbers[:0]
        if len(ordered) == len(known) and (ordered[1:] > ordered[:-1]).all():
            return numbers
    return known
