"""Conversion of private values to plain arrays. No other code of the package converts records.

:func:`as_values`, :func:`as_floats` and :func:`as_table` turn any container into a plain array before anything else
reads its values. A missing value, or one of an unsupported type, becomes ``None`` or NaN here and a fixed public value
later. No error, output or warning depends on a value.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Complex, Real

import numpy as np

_MAX_DEPTH = 8  # levels of nested lists that are searched; a list that contains itself would be endless
_SCALARS = frozenset((type(None), bool, int, float, complex, str, bytes))  # the common types, checked first for speed


def as_values(x):
    """Return private values of any type as a plain array.

    Masked entries become missing, because ``np.where`` and other functions of NumPy would pass on the values under the
    mask without noise. Subclasses of ``ndarray`` become plain arrays.

    Parameters
    ----------
    x : array-like
        A list, an array of any kind, a table of pandas, polars or pyarrow, or a single value. Rows may differ in
        length.

    Returns
    -------
    ndarray
        A plain ``ndarray`` that owns its memory, in C order and of at least one dimension. Missing values are ``None``
        (NaN among floats). If rows differ in length, the result is a 1-D array of objects, one for each row.

    Examples
    --------
    >>> import numpy as np
    >>> as_values(np.ma.array([171, 180], mask=[True, False]))
    array([None, 180], dtype=object)
    """
    return _owned(_plain(x))


def as_floats(x):
    """Return private numbers as a plain array of floats.

    Parameters
    ----------
    x : array-like
        As in :func:`as_values`.

    Returns
    -------
    ndarray of float64
        A plain ``ndarray`` that owns its memory, in C order and of at least one dimension. Values that are not real
        numbers become NaN, and numbers too large for a float become infinite.

    Examples
    --------
    >>> as_floats([1, 10**400, None, "no number", 2j])
    array([ 1., inf, nan, nan, nan])
    """
    return _floats(_plain(x))


def as_table(x, n_columns=None):
    """Return private values as a plain array with a row for each client.

    Parameters
    ----------
    x : array-like
        As in :func:`as_values`. A 1-D array is n rows if there is one column, else a single row.
    n_columns : int or None, default=None
        Required number of columns; ``None`` is the most frequent length of a row.

    Returns
    -------
    ndarray of shape (n, n_columns)
        As in :func:`as_values`. If rows differ in length, all values of a row of the wrong length are missing.

    Examples
    --------
    >>> as_table([["a", "b"], ["c"]], 2)
    array([['a', 'b'],
           [None, None]], dtype=object)
    """
    return _owned(_table(_plain(x), n_columns))


def as_float_table(x, n_columns=None):
    """Return private numbers as :func:`as_floats` in a table as :func:`as_table`."""
    return _floats(_table(_plain(x), n_columns))


def as_column(y, n_rows, n_columns=1):
    """Return private responses as :func:`as_values`, one for each of ``n_rows`` rows, or ``n_columns`` of them."""
    shape: tuple = (n_rows,)
    values, number = _plain(y), "one response"
    if n_columns > 1:
        shape, number = (n_rows, n_columns), f"{n_columns} responses"
        if is_ragged(values):
            values = _padded([values] if (n_rows, len(values)) == (1, n_columns) else values, n_columns)
        elif values.ndim == 1:
            values = values[None]
    if values.shape != shape:
        raise ValueError(f"y must hold {number} for each of the {n_rows} records, got shape {values.shape}.")
    return _owned(values)


def without_mask(x, depth=_MAX_DEPTH):
    """Replace masked arrays by plain ones, with ``None``, or NaN among floats, for masked entries; keep all else."""
    if _is_a(x, (list, tuple)):
        if not depth:
            return None
        return [without_mask(item, depth - 1) for item in x] if _holds_mask(x, depth) else x
    if not _is_a(x, np.ma.MaskedArray):
        return x
    if x.dtype.names:
        return x.tolist()
    values, mask = np.array(np.ma.getdata(x), subok=False), np.ma.getmaskarray(x)
    if not mask.any():
        return values
    if values.dtype.kind != "f":
        values = values.astype(object)
    values[mask] = np.nan if values.dtype.kind == "f" else None
    return values


def refuse_sparse(x):
    """Refuse sparse records, which reveal the positions of their zeros."""
    if hasattr(type(x), "toarray"):
        raise TypeError("Sparse records are refused: they would reveal which entries are zero. Pass X.toarray().")


def _plain(x):
    """Return a plain unmasked array of at least one dimension, which may share its memory with x."""
    if type(x) is np.ndarray and x.dtype.kind in "biuf":
        return x if x.ndim else x[None]
    refuse_sparse(x)
    x = without_mask(x)
    if _is_a(x, (list, tuple)):
        return _objects(x)
    if (values := _converted(x)) is None:
        raise _not_records(x)
    if values.dtype.names:
        return _objects(values.tolist())  # a record of named fields is a row
    if values.ndim == 0 and _is_container(values[()]):
        raise _not_records(x)
    return np.atleast_1d(values)


def _converted(x):
    """Return an array, or None if x cannot be converted; the error is dropped because it could show a value."""
    try:
        return np.asarray(without_mask(np.asanyarray(x)))
    except Exception:
        return None


def _is_a(item, kinds):
    """Like ``isinstance``, but ignores the ``__class__`` that a private value may define."""
    return issubclass(type(item), kinds)


def _not_records(x):
    return TypeError(f"Records must be an array, a table or a list of rows; got {type(x).__name__}. Convert it to one.")


def _is_container(item):
    """Whether NumPy takes a container for a single value: a set, a generator, a lazy table."""
    return (_is_a(item, Iterable) and not _is_a(item, (str, bytes))) or hasattr(type(item), "collect")


def _owned(values):
    return np.array(values, order="C")


def _floats(values):
    if values.dtype == np.float64:
        return np.array(values, dtype=np.float64, order="C")
    floats = np.full(values.shape, np.nan)  # complex numbers and dates stay NaN
    with np.errstate(all="ignore"):
        if values.dtype.kind in "biuf":
            floats[...] = values
        elif values.dtype.kind in "OSUT":
            floats.reshape(-1)[:] = np.fromiter(map(_as_float, values.ravel().tolist()), np.float64, values.size)
    return floats


def is_ragged(values):
    """Whether a plain array contains rows that differ in length."""
    return values.ndim == 1 and values.dtype == object and any(map(is_row, values))


def _table(values, n_columns):
    if is_ragged(values):
        one_record = len(values) == n_columns and not is_row(values[0])
        values = _padded([values] if one_record else values, n_columns)
    elif values.ndim == 1:
        values = values.reshape((-1, 1) if n_columns in (1, None) else (1, -1))
    if values.ndim != 2 or n_columns not in (None, values.shape[1]):
        width = "n_features" if n_columns is None else n_columns
        raise ValueError(f"Records must be an array of shape (n, {width}), got shape {values.shape}.")
    return values


def _holds_mask(rows, depth):
    if not depth:
        return True  # too deep to search, so assume that there is one
    return any(_is_a(row, np.ma.MaskedArray) or (_is_a(row, (list, tuple)) and _holds_mask(row, depth - 1))
               for row in rows)


def _objects(rows):
    """Return an array of objects from a list; otherwise NumPy turns all numbers into text if one entry is text."""
    try:
        return np.array(rows, dtype=object, order="C")
    except Exception:  # rows that NumPy cannot stack, or a value that raises when its entries are read
        return np.fromiter((_entries(row) if is_row(row) else row for row in rows), dtype=object, count=len(rows))


def is_row(item):
    """Whether an item contains several values; a text does not."""
    kind = type(item)
    if kind in _SCALARS or issubclass(kind, (str, bytes, np.generic)):
        return False
    if issubclass(kind, np.ndarray):
        return item.ndim > 0
    return issubclass(kind, Sequence) or (hasattr(kind, "__array__") and hasattr(kind, "__len__"))


def _entries(row):
    """Return a row as a list, or an empty list if it cannot be read."""
    try:
        return list(row)
    except Exception:
        return []


def _padded(rows, n_columns):
    rows = [_entries(row) if is_row(row) else [row] for row in rows]
    if n_columns is None:
        n_columns = Counter(map(len, rows)).most_common(1)[0][0]
    table = np.full((len(rows), n_columns), None, dtype=object)
    for place, row in enumerate(rows):
        if len(row) == n_columns:
            table[place] = np.fromiter(flat(row), dtype=object, count=n_columns)
    return table


def flat(row):
    """Return the entries of a row; an entry that is itself a list becomes missing."""
    return [None if is_row(item) else item for item in row]


def _as_float(value):
    try:
        return _real(value)
    except Exception:  # private values may be of any type, and none of them may raise
        return np.nan


def _real(value):
    if isinstance(value, np.ndarray) or (isinstance(value, Complex) and not isinstance(value, Real)):
        return np.nan
    try:
        return float(value)
    except OverflowError:
        return np.inf if value > 0 else -np.inf
