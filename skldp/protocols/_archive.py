"""Files with a description and arrays: npz, without pickle, written atomically."""

import numpy as np

from skldp.exceptions import InvalidReportError
from skldp.protocols._atomic_files import write_atomically
from skldp.protocols._description import canonical, parse
from skldp.protocols._members import read_members


def write_archive(file, header, arrays):
    """Write a JSON object and arrays to an npz file, given by a path or as a binary file object.

    A file at a path is replaced once everything is on the disk, so that a failure leaves the old file unchanged. An
    existing file must be a regular one; links are followed.
    """
    members = {"header": np.frombuffer(canonical(header).encode(), dtype=np.uint8), **arrays}
    # NumPy 2.0 has no allow_pickle here, and would pickle objects without a word.
    if any(array.dtype.hasobject for array in members.values()):
        raise TypeError("An archive holds arrays of numbers; got an array of objects, which would need pickle.")
    if hasattr(file, "write"):
        np.savez(file, **members)
        return
    write_atomically(file, lambda stream: np.savez(stream, **members))


def read_archive(file, what):
    """Read the header and the arrays that :func:`write_archive` wrote; ``what`` names the kind of file in errors."""
    broken = InvalidReportError(f"This is not {what} of skldp, or it has been cut short or changed. "
                                "Copy the file again from where it was written.")
    if not hasattr(file, "read"):
        with open(file, "rb") as stream:  # a missing file raises FileNotFoundError
            return read_archive(stream, what)
    try:
        arrays = read_members(file)
        text = arrays.pop("header")
        if text.dtype != np.uint8:
            raise broken
    except Exception:  # a damaged archive can raise errors of many types
        raise broken from None
    return parse(text.tobytes(), what, InvalidReportError), arrays
