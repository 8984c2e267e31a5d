"""Files of reports with their protocol."""

import os
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols._archive import read_archive, write_archive
from skldp.protocols._base import Protocol
from skldp.protocols._description import VERSION, check_format, describe, digest, is_id_of, protocol_from
from skldp.protocols._report_lines import common_rows, read_lines

__all__ = ["load_reports", "save_reports"]

FORMAT = "skldp-reports"
WHAT = "a file of reports"


def save_reports(file: str | os.PathLike | IO[bytes], reports: ArrayLike, protocol: Protocol) -> None:
    """Write reports with their protocol to an npz file, without pickle. Bits are packed, eight to a byte.

    Parameters
    ----------
    file : path or binary file object
        A file at this path is replaced atomically.
    reports : array-like of int, shape (n, width)
        What :meth:`Protocol.privatize` returned.
    protocol : Protocol
        Protocol of the reports.

    Raises
    ------
    InvalidReportError
        When a report could not have come from the protocol.

    See Also
    --------
    load_reports : Read such a file.

    Examples
    --------
    >>> import io
    >>> from skldp.protocols import ValueProtocol, load_reports, save_reports
    >>> protocol = ValueProtocol(epsilon=1.0, bounds=(0, 10))
    >>> file = io.BytesIO()
    >>> save_reports(file, protocol.privatize([3.0, 4.0]), protocol)
    >>> _ = file.seek(0)
    >>> reports, protocol = load_reports(file)
    >>> protocol.aggregate(reports).n_reports
    2
    """
    rows, _ = protocol._read(reports, remedy="Leave such reports out: reports[protocol.check(reports)].")
    header = {"format": FORMAT, "version": VERSION, "protocol": describe(protocol), "id": digest(protocol),
              "n_reports": len(rows)}
    stored = np.packbits(rows.astype(bool), axis=1) if protocol.sends_bits else rows
    write_archive(file, header, {"reports": stored})


def load_reports(file: str | os.PathLike | IO[bytes], protocol: Protocol | None = None) -> tuple[np.ndarray, Protocol]:
    """Read reports and their protocol from a file: npz as :func:`save_reports` wrote it, JSON lines or CSV.

    Whether an honest client could have sent each row is checked later, by ``aggregate`` and ``fit_reports``, as for
    all reports.

    Parameters
    ----------
    file : path or binary file object
        The file.
    protocol : Protocol or None, default=None
        Expected protocol of the reports; ``None`` accepts that of an npz file. JSON lines and CSV need it, because they
        have only its id.

    Returns
    -------
    reports : ndarray of int, shape (n, width)
        From JSON lines and CSV, one row for each line, blank ones left out.
    protocol : Protocol
        Protocol of the reports.

    Raises
    ------
    InvalidReportError
        When an npz file is damaged, foreign, of a later version, or of another protocol; when the file is empty; or
        when ``protocol`` is ``None`` for a text file.

    See Also
    --------
    save_reports : Write an npz file.
    Protocol.to_html : Write a page that sends such lines.

    Notes
    -----
    *JSON lines.* A line is an object with the id of the protocol, an id of the submission, which is 32 hexadecimal
    digits that the client draws at random, and the report:
    ``{"protocol": "...", "submission": "...", "report": [547]}``. Other members are ignored. *CSV* has a header with
    these three names, in any order and among others; the report is a list in brackets.

    *Hostile lines.* A line that is too long, is not of this form, has the id of another protocol, has a report that no
    honest client could have sent, or has the submission id of an earlier line, becomes a row that no honest client
    could have sent. So ``fit_reports`` and ``aggregate`` raise an error with the numbers of these rows, or drop and
    count them with ``on_invalid="drop"``. Apart from repeats, no line affects another one. Repeats are found within one
    file, so join the files of one survey first. Lines are read one by one; besides the rows, the memory is 16 bytes for
    each.

    Examples
    --------
    >>> import io, os, tempfile
    >>> from skldp.protocols import CategoryProtocol, load_reports, save_reports
    >>> protocol = CategoryProtocol(categories=("cat", "dog", "fish"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "monday.npz")
    ...     save_reports(path, protocol.privatize(["dog", "cat"]), protocol)
    ...     reports, _ = load_reports(path, protocol)
    >>> reports.shape
    (2, 3)

    A line of a survey, and a copy of it:

    >>> line = f'{{"protocol": "{protocol.id}", "submission": "{"0123456789abcdef" * 2}", "report": [0, 1, 0]}}'
    >>> reports, _ = load_reports(io.BytesIO(f"{line}\\n{line}".encode()), protocol)
    >>> protocol.aggregate(reports, on_invalid="drop")
    Aggregate(1 reports; epsilon 1; 1 rejected)
    """
    if not hasattr(file, "read"):
        with open(file, "rb") as stream:  # a missing file raises FileNotFoundError
            return load_reports(stream, protocol)
    if not _is_text(file):
        return _load_archive(file, protocol)
    if protocol is None:
        raise InvalidReportError("This is not a file of reports of skldp, or it has been cut short. If it has JSON "
                                 "lines or CSV, pass the protocol, too: load_reports(file, protocol). They have only "
                                 "its id.")
    return read_lines(file, protocol), protocol


def some_reports(path):
    """Return rows of reports of a file, as many integers each as most of its reports have."""
    with open(path, "rb") as stream:
        return common_rows(stream) if _is_text(stream) else load_reports(stream)[0]


def _is_text(file):
    """Whether a file may have lines of text: it is not empty, and its beginning is no archive and has no zero byte."""
    place = file.tell()
    start = file.read(4096)
    file.seek(place)
    if isinstance(start, str):
        raise InvalidParameterError('load_reports reads bytes, and this file is open as text. Open it with mode "rb".')
    return len(start) > 0 and not start.startswith(b"PK") and b"\x00" not in start


def _load_archive(file, protocol):
    header, arrays = read_archive(file, WHAT)
    check_format(header, FORMAT, WHAT, InvalidReportError)
    damaged = InvalidReportError("This file of reports is damaged: its description and its reports do not agree. "
                                 "Copy it again from where it was written.")
    if not isinstance(header.get("protocol"), dict) or set(arrays) != {"reports"}:
        raise damaged
    found = protocol_from(header["protocol"], simulated=True)
    if not is_id_of(header.get("id"), header["protocol"], found):
        raise damaged
    if protocol is not None and found != protocol:
        raise InvalidReportError(
            f"These reports belong to the protocol {found.id}, not to {protocol.id}. "
            "Fit them separately, or add the aggregates if the protocols differ only in their budget."
        )
    reports = arrays["reports"]
    width = -(-found.width // 8) if found.sends_bits else found.width
    complete = reports.shape == (header.get("n_reports"), width)
    if not complete or reports.dtype.kind not in "iu" or (found.sends_bits and reports.dtype != np.uint8):
        raise damaged
    return (np.unpackbits(reports, axis=1, count=found.width) if found.sends_bits else reports), found
