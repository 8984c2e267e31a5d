"""Conversion of reports of unknown origin to rows of integers."""

from numbers import Integral

import numpy as np

from skldp._validation._door import as_values, is_ragged, without_mask
from skldp.exceptions import InvalidReportError

_LARGEST = 2**63 - 1
_DROP = 'or on_invalid="drop" to leave out what is not a report'


def read_rows(reports, width, kind, lenient):
    """Return reports as rows of integers, with a mask of the rows that are made of integers.

    Parameters
    ----------
    reports : array-like
        Reports of unknown origin: a row of ``width`` integers for each client, or anything else.
    width : int
        Number of integers in a report.
    kind : str
        Name of the protocol, for the error message.
    lenient : bool
        Whether a row that is not ``width`` integers is only masked, and is not an error.

    Returns
    -------
    rows : ndarray of int, shape (n, width)
        A row that is not made of ``width`` integers is zero.
    is_row : ndarray of bool, shape (n,), or None
        Mask of the rows that are; ``None`` if all are.
    """
    values = _as_array(reports)
    if values.shape == (0,):
        values = values.reshape(0, width)  # an empty list, as from an empty partition
    if values.ndim == 1 and width == 1 and not is_ragged(values):
        values = values[:, None]
    if not lenient and is_ragged(values):
        raise InvalidReportError("Reports are rows of the same number of integers; got rows that differ. "
                                 f"Pass what privatize returned, {_DROP}.")
    listed = isinstance(reports, (list, tuple))  # then every item is a row, of any type
    if values.ndim != 2 and not (lenient and listed) or not lenient and values.shape[1:] != (width,):
        raise InvalidReportError(f"Reports under this {kind} have {width} columns; got an array of shape "
                                 f"{values.shape}. Pass what privatize returned, a row for each client, {_DROP}.")
    if not len(values):
        return np.zeros((0, width), dtype=np.int8), None
    if values.dtype.kind in "iu" and values.shape[1:] == (width,):
        return values, None
    if not lenient:
        raise InvalidReportError(f"Reports are integers; got dtype {values.dtype}. Pass what privatize returned, "
                                 f"unchanged, {_DROP}.")
    return _integer_rows(values, width)


def _as_array(reports):
    """Return a plain array; of objects for a list that NumPy cannot convert, or whose integers it would change."""
    reports = without_mask(reports)
    try:
        values = np.asarray(reports)
    except Exception:  # rows of several lengths, or objects that cannot be converted
        return as_values(reports)
    return as_values(reports) if isinstance(reports, (list, tuple)) and values.dtype.kind not in "iu" else values


def _integer_rows(values, width):
    rows, is_row = np.zeros((len(values), width), dtype=np.int64), np.zeros(len(values), dtype=bool)
    for place, row in enumerate(values):
        entries = np.ravel(row).tolist() if isinstance(row, np.ndarray) else row
        entries = entries if isinstance(entries, (list, tuple)) else [entries]
        if len(entries) == width and all(map(_is_integer, entries)):
            rows[place], is_row[place] = [int(entry) for entry in entries], True
    return rows, is_row


def _is_integer(entry):
    # Floats with integer values count, because one entry such as 3.5 turns all entries of an array into floats.
    integer = isinstance(entry, Integral) or (isinstance(entry, float) and entry.is_integer())
    return integer and not isinstance(entry, bool) and -_LARGEST <= entry <= _LARGEST
