"""Reports in text files, one on each line, as the pages of a survey send them: JSON lines and CSV."""

import csv
import io
import re
from collections import Counter
from itertools import chain, islice

import numpy as np

from skldp._validation._limits import MAX_LINE_LENGTH
from skldp.exceptions import InvalidReportError
from skldp.protocols._description import parse

_COLUMNS = ("protocol", "submission", "report")
_SUBMISSION = re.compile(r"[0-9a-f]{32}")
_NO_SUBMISSION = bytes(16)  # of a line that is no report
_SHORTEST = 64  # bytes of a report: two ids of 32 digits. Shorter lines, of which a file may have many, are not parsed
_BLOCK = 4096  # lines that become an array together
# Entry of a row that stands for a line without a valid report. No honest report has it: bits are 0 or 1, and other
# reports are far smaller in size.
_IMPOSSIBLE_BIT, _IMPOSSIBLE = 255, -(2**62)
_LARGEST = 2**62


def read_lines(stream, protocol):
    """Return the reports of a binary stream of lines, shape (n_lines, width).

    A line that is no report under the protocol, or that repeats the submission of an earlier report, becomes a row
    that no honest client could have sent. Lines are read one by one; blank lines are left out.
    """
    return _table(_fields(stream, _longest_line(protocol)), protocol)


def common_rows(stream):
    """Return the reports in the first thousand lines that have the most frequent number of integers."""
    start = stream.tell()
    widths = Counter(map(len, _first_reports(stream)))  # lists are not kept: hostile lines are long
    if not widths:
        raise InvalidReportError("None of the first thousand lines of this file is a report. Pass JSON lines or CSV as "
                                 "pages of surveys send them, or what save_reports wrote.")
    width = widths.most_common(1)[0][0]
    stream.seek(start)
    rows = [np.array(report, dtype=np.int64) for report in _first_reports(stream)
            if len(report) == width and _are_integers(report, -_LARGEST, _LARGEST)]
    return np.array(rows, dtype=np.int64).reshape(len(rows), width)


def _first_reports(stream):
    """Iterate over the lists in the first thousand lines."""
    found = islice(_fields(stream, MAX_LINE_LENGTH), 1000)
    return (fields[2] for fields in found if fields is not None and isinstance(fields[2], list))


def _fields(stream, longest):
    """Iterate over protocol id, submission and report of each line; None for a line of another form."""
    lines = _lines(stream, longest)
    first = next(lines, b"")
    fields_of = _csv_reader(first)
    if fields_of is None:
        fields_of, lines = _json_fields, lines if first == b"" else chain([first], lines)
    return (fields_of(line) if line is not None and len(line) >= _SHORTEST else None for line in lines)


def _longest_line(protocol):
    """Return the largest number of bytes of a line that is read: twice what an honest report needs, at least 1 KB."""
    per_entry = 8 if protocol.sends_bits else 48
    return min(MAX_LINE_LENGTH, 1024 + per_entry * protocol.width)


def _lines(stream, longest):
    """Yield lines without blank ones; a line that is too long is skipped unread, and yielded as None."""
    while line := stream.readline(longest + 1):
        if len(line) > longest and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = stream.readline(longest + 1)
            yield None
        elif line.strip():
            yield line


def _json_fields(line):
    """Return protocol id, submission and report of a line of JSON, or None."""
    try:
        found = parse(line, "a report", ValueError)
        return [found[name] for name in _COLUMNS]
    except (KeyError, ValueError):
        return None


def _csv_reader(header):
    """Return a function that reads lines of a CSV file with this header; None if it is none."""
    names = _csv_cells(header or b"")  # a line of None is too long
    if names is None or any(names.count(name) != 1 for name in _COLUMNS):
        return None
    places, n_cells = [names.index(name) for name in _COLUMNS], len(names)

    def fields(line):
        """Return protocol id, submission and report of a line, or None."""
        if line.startswith(b"{"):
            return _json_fields(line)  # a hostile first line may look like a header of CSV
        cells = _csv_cells(line)
        if cells is None or len(cells) != n_cells:
            return None
        name, submission, report = (cells[place] for place in places)
        found = _json_fields(f'{{"protocol": "", "submission": "", "report": {report}}}')
        return None if found is None else [name, submission, found[2]]

    return fields


def _csv_cells(line):
    # Each line is read on its own, so that a quotation mark in a hostile line cannot swallow the lines after it.
    try:
        rows = list(csv.reader(io.StringIO(line.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    return rows[0] if len(rows) == 1 else None


def _table(fields, protocol):
    """Return rows of reports, with impossible rows for lines that are no valid report or repeat a submission."""
    name, blocks, submissions, block = protocol.id, [], bytearray(), []
    impossible = _impossible_row(protocol)
    for found in fields:
        is_report = found is not None and _is_report(found, name, protocol)
        block.append(found[2] if is_report else impossible)
        submissions += bytes.fromhex(found[1]) if is_report else _NO_SUBMISSION
        if len(block) == _BLOCK:
            blocks.append(_rows(block, protocol))
            block = []
    table = np.concatenate([*blocks, _rows(block, protocol)])
    table[~_first_submissions(protocol.check(table), submissions)] = impossible
    return table


def _impossible_row(protocol):
    return [_IMPOSSIBLE_BIT if protocol.sends_bits else _IMPOSSIBLE] * protocol.width


def _rows(block, protocol):
    dtype = np.uint8 if protocol.sends_bits else np.int64
    return np.array(block, dtype=dtype).reshape(len(block), protocol.width)


def _is_report(fields, name, protocol):
    """Whether fields have the right id, a submission, and as many integers of moderate size as a report has."""
    found, submission, report = fields
    if found != name or not isinstance(submission, str) or _SUBMISSION.fullmatch(submission) is None:
        return False
    if not isinstance(report, list) or len(report) != protocol.width:
        return False
    return _are_integers(report, *((0, 1) if protocol.sends_bits else (-_LARGEST, _LARGEST)))


def _are_integers(report, low, high):
    """Whether all entries of a list are integers in a range."""
    return all(type(entry) is int and low <= entry <= high for entry in report)


def _first_submissions(valid, submissions):
    """Mask of the valid rows that are the first with their submission."""
    if np.count_nonzero(valid) < 2:
        return valid
    ids = np.frombuffer(submissions, dtype="V16").view([("high", ">u8"), ("low", ">u8")])
    places = np.flatnonzero(valid)
    order = places[np.lexsort((places, ids["low"][places], ids["high"][places]))]
    is_repeat = np.zeros(len(order), dtype=bool)
    is_repeat[1:] = ids[order[1:]] == ids[order[:-1]]
    first = valid.copy()
    first[order[is_repeat]] = False
    return first
