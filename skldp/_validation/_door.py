"""The one door through which private values enter.

:func:`as_values`, :func:`as_floats` and :func:`as_table` turn any container into plain arrays, before anything else
happens to the values in it. A value that is missing or of a strange type becomes ``None`` or NaN here and a fixed
public value later; nothing is raised, printed or warned about a value. No other code of the package converts records.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from numbers import Complex, Real

import numpy as np

_DEEPEST = 8  # lists within lists that are looked into: one that holds itself has no end
_SCALARS = frozenset((type(None), bool, int, float, complex, str, bytes))  # what values mostly are, to be told at once


def as_values(x):
    """Plain array of private values: the door, for values of any type.

    The mask of a masked array is honoured (``np.where`` and other functions of NumPy would let what is under it through
    without noise), and no subclass of ``ndarray`` gets past.

    Parameters
    ----------
    x : array-like
        A list, an array of any kind, a table of pandas, polars or pyarrow, or a single value. Rows may differ in
        length.

    Returns
    -------
    ndarray
        Exactly of this type, owned, in C order and of at least one dimension. Missing values are ``None`` (NaN among
        floats). Rows that differ in length are the entries of a 1-D array of objects.

    Examples
    --------
    >>> import numpy as np
    >>> as_values(np.ma.array([171, 180], mask=[True, False]))
    array([None, 180], dtype=object)
    """
    return _owned(_plain(x))


def as_floats(x):
    """Plain array of private numbers: the door, for values that are numbers.

    Parameters
    ----------
    x : array-like
        As in :func:`as_values`.

    Returns
    -------
    ndarray of float64
        Exactly of this type, owned, in C order and of at least one dimension. What is no real number is NaN, what is
        too large for a float infinite.

    Examples
    --------
    >>> as_floats([1, 10**400, None, "no number", 2j])
    array([ 1., inf, nan, nan, nan])
    """
    return _floats(_plain(x))


def as_table(x, n_columns=None):
    """Plain array of private values with a row for each client.

    Parameters
    ----------
    x : array-like
        As in :func:`as_values`. One dimension is n rows where there is one column, else a single row.
    n_columns : int or None, default=None
        Columns that there must be; ``None`` is the most frequent length of a row.

    Returns
    -------
    ndarray of shape (n, n_columns)
        As that of :func:`as_values`. Where rows differ in length, one of the wrong length is missing as a whole.

    Examples
    --------
    >>> as_table([["a", "b"], ["c"]], 2)
    array([['a', 'b'],
           [None, None]], dtype=object)
    """
    return _owned(_table(_plain(x), n_columns))


def as_float_table(x, n_columns=None):
    """Plain array of private numbers with a row for each client: :func:`as_table` in floats.

    Parameters
    ----------
    x : array-like
        As in :func:`as_values`.
    n_columns : int or None, default=None
        As in :func:`as_table`.

    Returns
    -------
    ndarray of float64, shape (n, n_columns)
    """
    return _floats(_table(_plain(x), n_columns))


def as_column(y, n_rows):
    """Plain array of private responses, one for each row.

    Parameters
    ----------
    y : array-like of shape (n_rows,), or a single value
        As in :func:`as_values`.
    n_rows : int
        How many there must be.

    Returns
    -------
    ndarray of shape (n_rows,)
        As that of :func:`as_values`.
    """
    values = _plain(y)
    if values.shape != (n_rows,):
        raise ValueError(f"y must hold one response for each of the {n_rows} records, got shape {values.shape}.")
    return _owned(values)


def without_mask(x, depth=_DEEPEST):
    """The same without masked arrays: what they hide is ``None``, or NaN among floats; all else is left as it is."""
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
    """Refuse records whose zeros can be told from the rest."""
    if hasattr(type(x), "toarray"):
        raise TypeError("Sparse records are refused: which entries are zero would show. Pass X.toarray().")


def _plain(x):
    """An array without mask and subclass, of at least one dimension, which may share its memory with x."""
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
    """An array of what is no list; None for what will be none, without its error, which could show a value."""
    try:
        return np.asarray(without_mask(np.asanyarray(x)))
    except Exception:
        return None


def _is_a(item, kinds):
    """Like ``isinstance``, without asking the value what it is."""
    return issubclass(type(item), kinds)


def _not_records(x):
    return TypeError(f"Records must be an array, a table or a list of rows; got {type(x).__name__}. Make a list of it.")


def _is_container(item):
    """Whether something that NumPy takes for a single value holds several: a set, a generator, a lazy table."""
    return (_is_a(item, Iterable) and not _is_a(item, (str, bytes))) or hasattr(type(item), "collect")


def _owned(values):
    return np.array(values, order="C")


def _floats(values):
    if values.dtype == np.float64:
        return np.array(values, dtype=np.float64, order="C")
    floats = np.full(values.shape, np.nan)  # complex numbers and dates are no numbers here
    with np.errstate(all="ignore"):
        if values.dtype.kind in "biuf":
            floats[...] = values
        elif values.dtype.kind in "OSUT":
            floats.reshape(-1)[:] = np.fromiter(map(_as_float, values.ravel().tolist()), np.float64, values.size)
    return floats


def is_ragged(values):
    """Whether a plain array holds rows that differ in length."""
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
        return True  # too deep to look
    return any(_is_a(row, np.ma.MaskedArray) or (_is_a(row, (list, tuple)) and _holds_mask(row, depth - 1))
               for row in rows)


def _objects(rows):
    """An array of objects from a list, since NumPy would turn all numbers into text because of one text."""
    try:
        return np.array(rows, dtype=object, order="C")
    except Exception:  # rows that NumPy cannot stack, or a value that raises when it is asked for its entries
        return np.fromiter((_entries(row) if is_row(row) else row for row in rows), dtype=object, count=len(rows))


def is_row(item):
    """Whether something holds several values; a text does not."""
    kind = type(item)
    if kind in _SCALARS or issubclass(kind, (str, bytes, np.generic)):
        return False
    if issubclass(kind, np.ndarray):
        return item.ndim > 0
    return issubclass(kind, Sequence) or (hasattr(kind, "__array__") and hasattr(kind, "__len__"))


def _entries(row):
    """A row as a list; one without entries where it does not give them."""
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
    """Entries of a row; what is a list itself is no value, but missing."""
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
