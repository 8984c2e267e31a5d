"""What the package tells the open ledgers: which rows were randomised, and for how much."""

import contextlib
import hashlib
import os
import struct
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from skldp.privacy._spool import Spool

_VARIABLE = "SKLDP_LEDGERS"  # tells processes that are started inside where the ledgers are
_ADDRESS = "_skldp_ledgers"  # the same inside of pickles, for processes that were running before
_HEADER = struct.Struct("<16sdd")  # call, epsilon, delta
_CLIENT = 20  # bytes: digest of the row, and which of the equal rows of a call it is
_FIRST = bytes(4)

open_ledgers: list[Any] = []  # ledgers of this process or, in a forked child, of its parent
_remote: dict[str, Spool] = {}  # ledgers of other processes, by folder
_last_spent = 0.0  # time of the last call, which a ledger that this process hears of later may have missed
_thread = threading.local()


class _Call:
    """One call of the user's, within which every row is a client of its own."""

    def __init__(self):
        self.id = os.urandom(16)
        self.n_equal: dict[bytes, dict[bytes, int]] = defaultdict(dict)  # rows so far, by ledger and digest

    def clients(self, rows, key):
        """Digest of every row, and which of the equal rows of this call it is."""
        n_equal = self.n_equal[key]
        for digest in _digests(rows, key):
            n_equal[digest] = number = n_equal.get(digest, -1) + 1
            yield digest + (number.to_bytes(4, "little") if number else _FIRST)


def counting() -> bool:
    """Whether a ledger is open here, so that :func:`spend` would do something."""
    return bool(open_ledgers or _remote)


def spend(epsilon: float, delta: float, rows: np.ndarray) -> None:
    """Tell every open ledger that each row has been randomised once.

    Parameters
    ----------
    epsilon, delta : float
        Budget of a row.
    rows : ndarray of shape (n,) or (n, n_features)
        The records, without the response: plain arrays of numbers, or of public categories.
    """
    global _last_spent
    _last_spent = time.time()
    if not counting() or not len(rows):
        return
    call = getattr(_thread, "call", None) or _Call()

    def message(key):
        """What a ledger with this key is told."""
        return b"".join([_HEADER.pack(call.id, epsilon, delta), *call.clients(rows, key)])

    for ledger in tuple(open_ledgers):
        if (spool := ledger._spool) is not None:
            ledger._receive("spent", message(spool.key))
    for spool in tuple(_remote.values()):
        _send(spool, "spent", message(spool.key))


def read_message(content):
    """Call, epsilon, delta and the clients of a message about something spent."""
    starts = range(_HEADER.size, len(content), _CLIENT)
    return *_HEADER.unpack_from(content), [content[start:start + _CLIENT] for start in starts]


@contextlib.contextmanager
def one_call() -> Iterator[None]:
    """Take everything that is spent inside for one call: its rows are different clients, even where they are equal."""
    outer = getattr(_thread, "call", None)
    _thread.call = _Call()
    try:
        yield
    finally:
        _thread.call = outer


class Counted:
    """Mixin: pickles that are made while a ledger is open tell the process that opens them where it is."""

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        folders = _note_pickled()
        return {**(state or {}), _ADDRESS: folders} if folders else state

    def __setstate__(self, state: Any) -> None:
        if _ADDRESS in state:
            _note_opened(state[_ADDRESS])
            state = {name: value for name, value in state.items() if name != _ADDRESS}
        update = getattr(super(), "__setstate__", self.__dict__.update)
        update(state)


def _note_pickled():
    """Folders of the open ledgers, which are told that a pickle was made."""
    for ledger in tuple(open_ledgers):
        ledger._receive("pickled")
    for spool in tuple(_remote.values()):
        _send(spool, "pickled")
    return tuple(_folders())


def _note_opened(folders):
    """Tell the ledgers of a pickle that it was opened, and count for them from now on."""
    own = {str(ledger._spool.folder): ledger for ledger in tuple(open_ledgers) if ledger._spool}
    for folder in folders:
        if folder in own:
            own[folder]._receive("opened")
        elif folder in _remote or _listen(folder):
            _send(_remote[folder], "opened")


def _send(spool, kind, content=b""):
    """Send a message to another process, or forget its ledger if it was closed."""
    if not spool.send(kind, content):
        _remote.pop(str(spool.folder), None)


def _folders():
    return [str(ledger._spool.folder) for ledger in tuple(open_ledgers) if ledger._spool] + list(_remote)


def tell_children():
    """Let processes that are started from now on know of the open ledgers."""
    os.environ[_VARIABLE] = "\n".join(_folders())
    if not os.environ[_VARIABLE]:
        del os.environ[_VARIABLE]


def _digests(rows, key):
    """Digests of the contents of rows; numbers of any type that are equal have equal digests."""
    rows = np.asarray(rows)
    if rows.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            numbers = np.add(rows, 0.0, dtype=np.float64, order="C").reshape(len(rows), -1)  # -0.0 becomes 0.0
        numbers[np.isnan(numbers)] = np.nan
        contents = iter(numbers.view(f"V{8 * numbers.shape[1]}").ravel().tolist())
    else:
        texts = ("\x1f".join(map(str, np.ravel(row))) for row in rows)
        contents = (text.encode("utf-8", "backslashreplace") for text in texts)
    return (hashlib.blake2b(content, digest_size=16, key=key).digest() for content in contents)


def _listen(folder):
    """Count for the ledger at a path from now on; False if there is none."""
    if (spool := Spool.find(folder)) is None:
        return False
    _remote[folder] = spool
    if _last_spent >= spool.opened_at():
        _send(spool, "silent")
    return True


for _path in filter(None, os.environ.get(_VARIABLE, "").split("\n")):
    _listen(_path)
