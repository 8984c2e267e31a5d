"""Messages to the open ledgers: which rows were randomised, and with which budget."""

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

_VARIABLE = "SKLDP_LEDGERS"  # folders of the open ledgers, inherited by processes started later
_ADDRESS = "_skldp_ledgers"  # the same folders inside pickles, for processes that were already running
_HEADER = struct.Struct("<16sdd")  # call, epsilon, delta
_CLIENT = 20  # bytes: digest of the row, and its number among the equal rows of a call
_FIRST = bytes(4)

open_ledgers: list[Any] = []  # ledgers of this process or, in a forked child, of its parent
_remote: dict[str, Spool] = {}  # ledgers of other processes, by folder
_last_spent = 0.0  # time of the last call; a ledger that was open then but is registered later has missed it
_thread = threading.local()


class _Call:
    """One call by the user, in which every row is a separate client."""

    def __init__(self):
        self.id = os.urandom(16)
        self.last: dict[bytes, dict[bytes, int]] = defaultdict(dict)  # number of the last equal row, by key and digest

    def clients(self, rows, key):
        """Yield the digest of every row, followed by its number among the equal rows of this call."""
        last = self.last[key]
        for digest in _digests(rows, key):
            last[digest] = number = last.get(digest, -1) + 1
            yield digest + (number.to_bytes(4, "little") if number else _FIRST)


def counting() -> bool:
    """Whether a ledger is open, so that :func:`spend` has an effect."""
    return bool(open_ledgers or _remote)


def spend(epsilon: float, delta: float, rows: np.ndarray) -> None:
    """Report to every open ledger that each row has been randomised once.

    The rows are records without the response: plain arrays of numbers, or of public categories.
    """
    global _last_spent
    _last_spent = time.time()
    if not counting() or not len(rows):
        return
    call = getattr(_thread, "call", None) or _Call()

    def message(key):
        """Return the message to a ledger with this key."""
        return b"".join([_HEADER.pack(call.id, epsilon, delta), *call.clients(rows, key)])

    for ledger in tuple(open_ledgers):
        if (spool := ledger._spool) is not None:
            ledger._receive("spent", message(spool.key))
    for spool in tuple(_remote.values()):
        _send(spool, "spent", message(spool.key))


def read_message(content):
    """Return the call, epsilon, delta and clients of a "spent" message."""
    starts = range(_HEADER.size, len(content), _CLIENT)
    return *_HEADER.unpack_from(content), [content[start:start + _CLIENT] for start in starts]


@contextlib.contextmanager
def one_call() -> Iterator[None]:
    """Count everything that is spent inside as one call, the outermost: equal rows are then different clients."""
    outer = getattr(_thread, "call", None)
    _thread.call = _Call() if outer is None else outer
    try:
        yield
    finally:
        _thread.call = outer


class Counted:
    """Mixin that stores the folders of the open ledgers in pickles, so that the process that loads one can report."""

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
    """Report a pickle to the open ledgers, and return their folders."""
    for ledger in tuple(open_ledgers):
        ledger._receive("pickled")
    for spool in tuple(_remote.values()):
        _send(spool, "pickled")
    return tuple(_folders())


def _note_opened(folders):
    """Report to the ledgers named in a pickle that it was opened, and register them."""
    own = {str(ledger._spool.folder): ledger for ledger in tuple(open_ledgers) if ledger._spool}
    for folder in folders:
        if folder in own:
            own[folder]._receive("opened")
        elif folder in _remote or _register(folder):
            _send(_remote[folder], "opened")


def _send(spool, kind, content=b""):
    """Send a message to another process, or unregister its ledger if that was closed."""
    if not spool.send(kind, content):
        _remote.pop(str(spool.folder), None)


def _folders():
    return [str(ledger._spool.folder) for ledger in tuple(open_ledgers) if ledger._spool] + list(_remote)


def announce_to_children():
    """Store the folders of the open ledgers in the environment of processes that are started from now on."""
    os.environ[_VARIABLE] = "\n".join(_folders())
    if not os.environ[_VARIABLE]:
        del os.environ[_VARIABLE]


def _digests(rows, key):
    """Return the digests of rows; equal numbers have equal digests, also if their types differ."""
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


def _register(folder):
    """Report to the ledger at a path from now on; return False if there is none."""
    if (spool := Spool.find(folder)) is None:
        return False
    _remote[folder] = spool
    if _last_spent >= spool.created_at():
        _send(spool, "silent")
    return True


for _path in filter(None, os.environ.get(_VARIABLE, "").split("\n")):
    _register(_path)
