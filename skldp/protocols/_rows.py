"""Reports of unknown origin as rows of integers."""

from numbers import Integral

import numpy as np

from skldp._validation._door import as_values, is_ragged, without_mask
from skldp.exceptions import InvalidReportError

_LARGEST = 2**63 - 1
_DROP = 'or on_invalid="drop" to leave out what is no report'


def read_rows(reports, width, kind, lenient):
    """Reports as rows of integers, and which of them are such.

    Parameters
    ----------
    reports : array-like
        Of unknown origin: a row of ``width`` integers for each client, or anything else.
    width : int
        Integers in a report.
    kind : str
        Name of the protocol, for the error.
    lenient : bool
        Whether what is not a row of ``width`` integers costs that row only, and is no error.

    Returns
    -------
    rows : ndarray of int, shape (n, width)
        A row that is not made of ``width`` integers is zero.
    whole : ndarray of bool, shape (n,), or None
        Which rows are; ``None`` where all are.
    """
    values = _as_array(reports)
    if values.shape == (0,):
        values = values.reshape(0, width)  # an empty list, of an empty partition
    if values.ndim == 1 and width == 1 and not is_ragged(values):
        values = values[:, None]
    if not lenient and is_ragged(values):
        raise InvalidReportError("Reports are rows of the same number of integers; got rows that differ. "
                                 f"Pass what privatize returned, {_DROP}.")
    listed = isinstance(reports, (list, tuple))  # then an item is a row, whatever it is
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
    return _whole_rows(values, width)


def _as_array(reports):
    """A plain array; a list that NumPy would refuse, or change the integers of, is one of objects."""
    reports = without_mask(reports)
    try:
        values = np.asarray(reports)
    except Exception:  # rows of several lengths, or objects that will be no array
        return as_values(reports)
    return as_values(reports) if isinstance(reports, (list, tuple)) and values.dtype.kind not in "iu" else values


def _whole_rows(values, width):
    rows, whole = np.zeros((len(values), width), dtype=np.int64), np.zeros(len(values), dtype=bool)
    for place, row in enumerate(values):
        entries = np.ravel(row).tolist() if isinstance(row, np.ndarray) else row
        entries = entries if isinstance(entries, (list, tuple)) else [entries]
        if len(entries) == width and all(map(_is_whole, entries)):
            rows[place], whole[place] = [int(entry) for entry in entries], True
    return rows, whole


def _is_whole(entry):
    # One entry such as 3.5 makes all others of an array floats, too.
    whole = isinstance(entry, Integral) or (isinstance(entry, float) and entry.is_integer())
    return whole and not isinstance(entry, bool) and -_LARGEST <= entry <= _LARGEST
