"""Aggregation of reports from an array, a stream of chunks, a dask array, or a file."""

import os
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
from joblib import Parallel, delayed

from skldp._validation._door import as_table
from skldp.exceptions import InterruptedStreamError, InvalidParameterError, InvalidReportError
from skldp.protocols._aggregate import Aggregate
from skldp.protocols._base import Protocol
from skldp.protocols._batches import Batches
from skldp.protocols._report_files import load_reports, some_reports

_FAN_IN = 8  # aggregates that one task of a dask graph adds up


@dataclass(frozen=True)
class Counter:
    """Callable that adds up one chunk of reports. It is small, because it is sent to the workers.

    Parameters
    ----------
    protocol : Protocol
        Protocol of the reports.
    on_invalid : {"raise", "drop"}
        Whether a report that no honest client could have sent is an error or is dropped.
    """

    protocol: Protocol
    on_invalid: str

    def __call__(self, reports):
        """Return the aggregate of a chunk; a chunk may already be an aggregate."""
        if isinstance(reports, Aggregate):
            return reports
        return self.protocol.aggregate(reports, self.on_invalid)

    def trim(self, aggregate):
        """Return the part of a growing aggregate that is kept; here all of it."""
        return aggregate


@dataclass(frozen=True)
class _Count:
    """Aggregate of the chunks that could be added up, and error messages of the others."""

    aggregate: Aggregate | None
    problems: tuple = ()
    has_rows: bool = False  # whether some chunks were rows, which have no batch id yet


def as_rows(reports):
    """Return reports as an array with a row for each client; rows of a different length become missing values."""
    try:
        rows = np.asarray(reports)
    except ValueError:
        return as_table(reports)
    if isinstance(reports, (list, tuple)) and rows.size and rows.dtype.kind not in "iu":
        return as_table(reports)  # one text or float among integers makes NumPy convert all of them
    return rows[:, None] if rows.ndim == 1 and rows.size else rows


def add_up(reports, counter_for, n_jobs=None):
    """Return the aggregate of reports of any supported type, with ``n_jobs`` chunks in parallel.

    ``counter_for`` maps rows of reports, or an aggregate, to the Counter for reports of the same kind.
    """
    if isinstance(reports, Aggregate):
        return reports
    if isinstance(reports, (str, os.PathLike)):
        return _from_file(reports, counter_for)
    if _of_dask(reports):
        return _from_dask(reports, counter_for)
    if hasattr(reports, "__array__") or _is_rows(reports):
        return counter_for(as_rows(reports))(reports)
    return _from_chunks(iter(reports), counter_for, n_jobs)


def _from_file(path, counter_for):
    """Return the aggregate of a file, read under the protocol for reports like some of its own."""
    counter = counter_for(some_reports(path))
    return counter(load_reports(path, counter.protocol)[0])


def _from_chunks(chunks, counter_for, n_jobs):
    chunks = (chunk for chunk in chunks if isinstance(chunk, Aggregate) or len(chunk) or np.ndim(chunk) > 1)
    source = _Source(chunks)
    stream = iter(source)
    first = _first_with_rows(stream)
    if source.failure is not None:
        raise _interrupted(None, source.failure) from source.failure
    if first is None:
        raise InvalidParameterError("The stream of reports is empty. Pass at least one chunk, even without rows.")
    counter = counter_for(first if isinstance(first, Aggregate) else as_rows(first))
    numbered = enumerate(chain([first], stream), source.n_taken - 1)
    jobs = (delayed(_count)(counter, chunk, place) for place, chunk in numbered)
    # Pairs (level, sum of 2**level chunks). Only sums of equal level are merged, so a chunk enters O(log n) sums.
    done: list = []
    for one in Parallel(n_jobs=n_jobs, return_as="generator")(jobs):
        # After an invalid chunk no more are read; chunks that joblib has already read are still added up.
        source.open = source.open and not one.problems
        level = 0
        while done and done[-1][0] == level:
            one, level = _merge(counter, [done.pop()[1], one]), level + 1
        done.append((level, one))
    total = _as_batch(_merge(counter, [one for _, one in done]))
    _raise_problems(total, f" Chunks up to number {source.n_taken - 1} have been read.")
    if source.failure is not None:
        raise _interrupted(total.aggregate, source.failure) from source.failure
    return total.aggregate


def _first_with_rows(stream):
    """Return the first chunk with rows, or the last one if none has rows; None of a stream without chunks."""
    chunk = None
    for chunk in stream:
        if isinstance(chunk, Aggregate) or len(chunk):
            break
    return chunk


class _Source:
    """Iterable of chunks that ends when the source fails or is closed.

    It stores the exception, because joblib discards all results if its source raises.
    """

    def __init__(self, chunks):
        self.chunks, self.open, self.failure, self.n_taken = chunks, True, None, 0

    def __iter__(self):
        try:
            while self.open:
                chunk = next(self.chunks)
                self.n_taken += 1
                yield chunk
        except StopIteration:
            return
        except Exception as error:
            self.failure = error


def _from_dask(reports, counter_for):
    """Return the aggregate of a dask collection: one task for each block of rows, and a tree of sums."""
    import dask

    if not hasattr(reports, "to_dask_array") and not hasattr(reports, "rechunk"):
        raise InvalidReportError(f"Only dask arrays and dask DataFrames can be read; got {type(reports).__name__}. "
                                 "Convert it to a dask array, or pass chunks.")
    if hasattr(reports, "to_dask_array"):
        reports = reports.to_dask_array()
    if reports.ndim == 1:
        reports = reports[:, None]
    if reports.ndim != 2:
        raise InvalidReportError(
            f"Reports are rows of integers; got a dask array of {reports.ndim} dimensions. Pass an array of two "
            "dimensions, with a row for each client."
        )
    reports = reports.rechunk({1: -1})
    counter = counter_for(_FirstRows(reports))
    blocks = reports.to_delayed().ravel()
    count, merge = dask.delayed(_count, pure=False), dask.delayed(_merge, pure=False)
    parts = [count(counter, block, place) for place, block in enumerate(blocks)]
    while len(parts) > 1:
        parts = [merge(counter, parts[start:start + _FAN_IN]) for start in range(0, len(parts), _FAN_IN)]
    try:
        total = _as_batch(parts[0].compute())
    except Exception as error:
        raise _interrupted(None, error) from error
    _raise_problems(total)
    return total.aggregate


class _FirstRows:
    """Rows of the first blocks of a dask array up to the first one with rows, read only if their entries are used."""

    def __init__(self, reports):
        self.reports, self.shape = reports, reports.shape

    def __array__(self, dtype=None, copy=None):
        try:
            return np.asarray(_first_with_rows(block.compute() for block in self.reports.blocks), dtype=dtype)
        except Exception as error:
            raise _interrupted(None, error) from error


def _count(counter, chunk, place):
    try:
        _refuse_one_dimension(chunk)
        aggregate = counter(chunk)
        if isinstance(chunk, Aggregate):
            return _Count(aggregate)
        # All rows of a call get one batch id at the end, so that a stream of many chunks does not store many ids.
        return _Count(aggregate.with_batches(Batches.of()), has_rows=True)
    except InvalidReportError as error:
        return _Count(None, ((place, str(error)),))
    except Exception as error:  # a chunk that cannot be read must not discard the others
        return _Count(None, ((place, f"Reading it failed with {type(error).__name__}: {error}."),))


def _refuse_one_dimension(chunk):
    """Raise an error for a flat chunk, which is ambiguous: the report of one client, or reports of many clients."""
    if isinstance(chunk, Aggregate) or len(chunk) == 0:
        return
    flat = all(np.isscalar(row) for row in chunk) if isinstance(chunk, (list, tuple)) else np.ndim(chunk) == 1
    if flat:
        raise InvalidReportError(f"A chunk must have two dimensions, a row for each client; got a flat list of "
                                 f"{len(chunk)} numbers. Pass chunk.reshape(-1, width).")


def _merge(counter, counts):
    """Return the sum of aggregates; an aggregate that does not fit is recorded as a problem and skipped."""
    total, problems, has_rows = None, (), False
    for one in counts:
        problems += one.problems
        has_rows = has_rows or one.has_rows
        try:
            if one.aggregate is not None:
                total = one.aggregate if total is None else counter.trim(total + one.aggregate)
        except InvalidReportError as error:
            problems += ((None, str(error)),)
    return _Count(total, problems, has_rows)


def _as_batch(count):
    """Return a count whose rows have one new batch id; aggregates among the chunks keep their ids."""
    if not count.has_rows or count.aggregate is None:
        return count
    batches = count.aggregate.batches.merge(Batches.new())
    return replace(count, aggregate=count.aggregate.with_batches(batches))


def _raise_problems(count, read=""):
    if count.problems:
        place, message = count.problems[0]
        others = f" {len(count.problems) - 1} other chunks are invalid too." if len(count.problems) > 1 else ""
        where = "" if place is None else f"Chunk {place} of the reports is invalid. "
        raise InvalidReportError(where + message + others + read + _kept(count.aggregate), aggregate=count.aggregate)


def _interrupted(aggregate, failure):
    return InterruptedStreamError(
        f"The stream of reports was interrupted: {type(failure).__name__}: {failure}." + _kept(aggregate), aggregate)


def _kept(aggregate):
    if aggregate is None:
        return ""
    return (f" The {aggregate.n_reports} reports that were added up are not lost: they are in the attribute "
            "`aggregate` of this error. Pass it to fit_reports, alone or in a list with further reports.")


def _is_rows(reports):
    """Whether a list contains rows of integers rather than chunks, which are arrays or lists of rows."""
    if not isinstance(reports, (list, tuple)) or len(reports) == 0 or isinstance(reports[0], Aggregate):
        return False
    return np.size(reports[0]) > 0 and np.ndim(reports[0]) <= (0 if hasattr(reports[0], "__array__") else 1)


def listed(reports):
    """Return reports unchanged, except that a stream of chunks becomes a list, so that it can be read twice."""
    once = not isinstance(reports, Aggregate) and not hasattr(reports, "__array__") and not _of_dask(reports)
    return list(reports) if once else reports


def rows_of(reports):
    """Return listed reports as one array with a row for each client; None for aggregates and dask collections."""
    if isinstance(reports, Aggregate) or _of_dask(reports):
        return None
    if hasattr(reports, "__array__") or _is_rows(reports):
        return as_rows(reports)
    if any(isinstance(chunk, Aggregate) or _of_dask(chunk) for chunk in reports):
        return None
    return np.concatenate([as_rows(chunk) for chunk in reports if len(chunk)] or [np.empty((0, 1), dtype=np.int8)])


def _of_dask(reports):
    return type(reports).__module__.partition(".")[0].startswith("dask")
