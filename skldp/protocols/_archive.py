"""Files that hold a description and arrays: npz, without pickle, written whole or not at all."""

import numpy as np

from skldp.exceptions import InvalidReportError
from skldp.protocols._description import canonical, parse
from skldp.protocols._members import read_members
from skldp.protocols._whole_files import write_whole


def write_archive(file, header, arrays):
    """Write a JSON object and arrays to an npz file.

    Parameters
    ----------
    file : path or binary file object
        A path is replaced when everything is written and on the disk, so that a failure leaves the old file as it was.
        It must be a regular file, or none yet; links are followed.
    header : dict
        Plain values.
    arrays : dict of str to ndarray
        Of numbers.
    """
    members = {"header": np.frombuffer(canonical(header).encode(), dtype=np.uint8), **arrays}
    if hasattr(file, "write"):
        np.savez(file, allow_pickle=False, **members)
        return
    write_whole(file, lambda stream: np.savez(stream, allow_pickle=False, **members))


def read_archive(file, what):
    """Read what :func:`write_archive` wrote.

    Parameters
    ----------
    file : path or binary file object
        The file.
    what : str
        What it should be, for the error.

    Returns
    -------
    header : dict
    arrays : dict of str to ndarray
    """
    broken = InvalidReportError(f"This is not {what} of skldp, or it has been cut short or changed. "
                                "Copy the file again from where it was written.")
    if not hasattr(file, "read"):
        with open(file, "rb") as stream:  # an absent file is the system's error, and says so
            return read_archive(stream, what)
    try:
        arrays = read_members(file)
        text = arrays.pop("header")
        if text.dtype != np.uint8:
            raise broken
    except Exception:  # whatever a damaged archive makes of its readers
        raise broken from None
    return parse(text.tobytes(), what, InvalidReportError), arrays
