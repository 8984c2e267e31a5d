"""Files of reports with their protocol."""

import os
from typing import IO

import numpy as np
from numpy.typing import ArrayLike

from skldp.exceptions import InvalidReportError
from skldp.protocols._archive import read_archive, write_archive
from skldp.protocols._base import Protocol
from skldp.protocols._description import VERSION, check_format, describe, digest, is_id_of, protocol_from

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
    """Read reports and their protocol from a file that :func:`save_reports` wrote.

    Whether an honest client could have sent each row is checked later, by ``aggregate`` and ``fit_reports``, as for
    all reports.

    Parameters
    ----------
    file : path or binary file object
        The file.
    protocol : Protocol or None, default=None
        Expected protocol of the reports; ``None`` accepts that of the file.

    Returns
    -------
    reports : ndarray of int, shape (n, width)
    protocol : Protocol
        Protocol in the file.

    Raises
    ------
    InvalidReportError
        When the file is damaged, foreign, of a later version, or of another protocol.

    See Also
    --------
    save_reports : Write such a file.

    Examples
    --------
    >>> import os, tempfile
    >>> from skldp.protocols import CategoryProtocol, load_reports, save_reports
    >>> protocol = CategoryProtocol(categories=("cat", "dog", "fish"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "monday.npz")
    ...     save_reports(path, protocol.privatize(["dog", "cat"]), protocol)
    ...     reports, _ = load_reports(path, protocol)
    >>> reports.shape
    (2, 3)
    """
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
