"""Checks of public parameters, and the door through which private values enter.

Budgets, bounds, norms and categories are *public*: a wrong one is an error in a sentence. Private values are never
checked. :func:`as_values`, :func:`as_floats` and :func:`as_table` turn whatever container they come in into plain
arrays, before anything else happens to them; a value that is missing or of a strange type becomes ``None`` or NaN there
and a fixed public value later, and nothing is raised, printed or warned about a value. No other code of the package
converts records.
"""

import math
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction
from numbers import Complex, Integral, Real

import numpy as np

from skldp.exceptions import InvalidParameterError

MIN_EPSILON = 1e-6
MAX_EPSILON = 20.0
_NARROWEST = 1e-290  # below this the arithmetic of a width overflows
_DEEPEST = 8  # lists within lists that are looked into: one that holds itself has no end
_SCALARS = frozenset((type(None), bool, int, float, complex, str, bytes))  # what values mostly are, to be told at once


def check_real(value, name, hint="Give a number."):
    """Return ``value`` as a float, or say that it is not a real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InvalidParameterError(f"{name} must be a real number, got {value!r}. {hint}")
    if math.isnan(value):
        raise InvalidParameterError(f"{name} must not be NaN. {hint}")
    return float(value)


def check_epsilon(epsilon, name="epsilon"):
    """Return a privacy budget in (0, 20], or infinity for a simulation without noise."""
    epsilon = check_real(epsilon, name, "Give a budget in (0, 20], or np.inf for no privacy.")
    if epsilon <= 0:
        raise InvalidParameterError(f"{name} must be positive, got {epsilon!r}. Give a budget in (0, 20].")
    if epsilon < MIN_EPSILON:
        raise InvalidParameterError(
            f"{name}={epsilon!r} is below {MIN_EPSILON:g}, where no number of clients tells anything. "
            f"Give a larger budget."
        )
    if MAX_EPSILON < epsilon < math.inf:
        raise InvalidParameterError(
            f"{name}={epsilon!r} is above {MAX_EPSILON:g}, where a report protects nobody. "
            f"Give a budget in (0, 20], or np.inf to simulate without noise."
        )
    return epsilon


def split_budget(epsilon, n_parts):
    """Return the largest float that can be spent ``n_parts`` times within ``epsilon``.

    Examples
    --------
    >>> split_budget(1.0, 3) * 3 <= 1.0
    True
    """
    epsilon = check_epsilon(epsilon)
    part = epsilon / n_parts
    if math.isfinite(epsilon) and Fraction(part) * n_parts > Fraction(epsilon):
        part = math.nextafter(part, 0.0)
    return part


def check_delta(delta):
    """Return a failure probability in (0, 1)."""
    delta = check_real(delta, "delta", "Give a number in (0, 1), well below one over the number of clients.")
    if not 0 < delta < 1:
        raise InvalidParameterError(
            f"delta must lie in (0, 1), got {delta!r}. Choose it well below one over the number of clients."
        )
    return delta


def warn_large_delta(delta, n_clients):
    """Warn when delta is so large that publishing somebody's record outright would be allowed."""
    if delta * n_clients >= 1:
        warnings.warn(
            f"delta={delta!r} is at least one over the number of clients ({n_clients}): the guarantee would allow a "
            f"client's record to be published. Choose delta well below {1 / n_clients:.1g}.",
            UserWarning,
            stacklevel=4,
        )


def check_bounds(bounds, name="bounds"):
    """Return public bounds as a pair of floats ``(lower, upper)``, ``lower < upper``."""
    if bounds is None:
        raise InvalidParameterError(
            f"{name} must be given: it is public and cannot be read off the private data. Give a pair (lower, upper)."
        )
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise InvalidParameterError(f"{name} must be a pair (lower, upper), got {bounds!r}.") from None
    lower = check_real(lower, f"the lower end of {name}")
    upper = check_real(upper, f"the upper end of {name}")
    if not _NARROWEST < upper - lower < math.inf:
        raise InvalidParameterError(
            f"{name} must be finite with lower < upper and a finite width, got ({lower!r}, {upper!r})."
        )
    return lower, upper


def check_positive(value, name):
    """Return a finite positive float: a norm, an upper end, a scale."""
    if value is None:
        raise InvalidParameterError(
            f"{name} must be given: it is public and cannot be read off the private data. Give a positive number."
        )
    value = check_real(value, name, "Give a positive number.")
    if not 0 < value < math.inf:
        raise InvalidParameterError(f"{name} must be positive and finite, got {value!r}.")
    return value


def check_integer(value, name, minimum, maximum=None):
    """Return an int in ``[minimum, maximum]``."""
    span = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise InvalidParameterError(f"{name} must be an integer {span}, got {value!r}.")
    if value < minimum or (maximum is not None and value > maximum):
        raise InvalidParameterError(f"{name} must be {span}, got {value!r}.")
    return int(value)


def check_length(values, name, maximum):
    """Refuse a list that is too long, before anything is made of it; what is no list is for others to refuse."""
    if hasattr(values, "__len__") and len(values) > maximum:
        raise InvalidParameterError(f"{name} must have at most {maximum} entries, got {len(values)}. Give fewer.")


def check_fraction(value, name):
    """Return a float strictly between 0 and 1."""
    value = check_real(value, name, "Give a number strictly between 0 and 1.")
    if not 0 < value < 1:
        raise InvalidParameterError(f"{name} must lie strictly between 0 and 1, got {value!r}.")
    return value


def smallest_integer_dtype(lower, upper):
    """Return the narrowest NumPy integer dtype that holds ``[lower, upper]``.

    Examples
    --------
    >>> smallest_integer_dtype(-90, 1114)
    dtype('int16')
    >>> smallest_integer_dtype(0, 200)
    dtype('uint8')
    """
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32"):
        if np.iinfo(name).min <= lower and upper <= np.iinfo(name).max:
            return np.dtype(name)
    return np.dtype("int64")


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
