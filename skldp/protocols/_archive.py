"""Files that hold a description and arrays: npz, without pickle, written whole or not at all."""

import os
import tempfile
import zipfile

import numpy as np

from skldp.exceptions import InvalidReportError
from skldp.protocols._description import canonical, parse


def write_archive(file, header, arrays):
    """Write a JSON object and arrays to an npz file.

    Parameters
    ----------
    file : path or binary file object
        A path is replaced when everything is written, so that a failure leaves the old file as it was.
    header : dict
        Plain values.
    arrays : dict of str to ndarray
        Of numbers.
    """
    members = {"header": np.frombuffer(canonical(header).encode(), dtype=np.uint8), **arrays}
    if hasattr(file, "write"):
        np.savez(file, allow_pickle=False, **members)
        return
    path = os.fspath(file)
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path) or ".", prefix=".skldp-", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as stream:
            np.savez(stream, allow_pickle=False, **members)
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


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
    try:
        opened = np.load(file, allow_pickle=False)
        if not isinstance(opened, np.lib.npyio.NpzFile):
            raise broken
        with opened as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, EOFError, zipfile.BadZipFile, NotImplementedError, MemoryError):
        raise broken from None
    text = arrays.pop("header", None)
    if text is None or text.dtype != np.uint8:
        raise broken
    return parse(text.tobytes(), what, InvalidReportError), arrays
