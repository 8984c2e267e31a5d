"""Account of the reports and the spending of one person's client, in memory or in a file that programs share."""

import base64
import contextlib
import hashlib
import json
import os
import threading
import time
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from skldp._validation._limits import MAX_REPORTS
from skldp.exceptions import InvalidParameterError
from skldp.protocols._atomic_files import regular_file, try_lock, write_atomically
from skldp.protocols._description import canonical, parse

FORMAT = "skldp-client-ledger"
VERSION = 1
MAX_LEDGER_BYTES = 1 << 20
LOCK_SECONDS = 10.0  # a write takes about 20 ms, but waiting programs are not served in order
_DTYPES = {name: np.dtype(name).newbyteorder("<")
           for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32", "int64")}


class _Damaged(ValueError):
    """A file is not a valid ledger; the caller, which knows its path, raises the error with a message."""


def decimal_fraction(value):
    """Return the decimal number that a float is written as, exactly, so that ten times 0.1 is 1."""
    return Fraction(repr(float(value)))


@dataclass
class Account:
    """Budget that one client has spent, and its answers by the digest of record and protocol."""

    key: bytes = field(default_factory=lambda: os.urandom(32), repr=False)
    spent: dict = field(default_factory=dict)  # (protocol id, epsilon, delta) -> number of reports
    answers: dict = field(default_factory=dict, repr=False)  # digest -> protocol id, type and bytes of a report

    def digest(self, protocol, arrays):
        """Keyed digest of a protocol and the plain arrays of a record."""
        state = hashlib.blake2b(protocol.id.encode(), key=self.key, digest_size=16)
        for array in arrays:
            if array.dtype.kind == "f":
                array = np.where(np.isnan(array), np.nan, array + 0.0)  # one form of NaN and of zero
            state.update(f"|{array.dtype.str}{array.size}|".encode() + array.tobytes())
        return state.hexdigest()

    def total(self):
        """Exact sums of epsilon and of delta over all reports: basic composition."""
        rows = self.spent.items()
        return (sum((count * decimal_fraction(epsilon) for (_, epsilon, _), count in rows), Fraction(0)),
                sum((count * decimal_fraction(delta) for (_, _, delta), count in rows), Fraction(0)))

    def add(self, name, protocol, report):
        """Count a new report, and keep it."""
        cost = protocol.id, protocol.epsilon, protocol.delta
        self.spent[cost] = self.spent.get(cost, 0) + 1
        stored = np.packbits(report) if protocol.sends_bits else report
        data = stored.astype(_DTYPES[stored.dtype.name]).tobytes()
        self.answers[name] = protocol.id, report.dtype.name, base64.b64encode(data).decode("ascii")

    def answer(self, name, protocol):
        """Return the earlier report, or None."""
        if name not in self.answers:
            return None
        try:
            report = _unpack(self.answers[name], protocol)
        except (KeyError, TypeError, ValueError):
            raise _Damaged from None
        if not protocol.check(report).all():
            raise _Damaged
        return report

    def to_json(self):
        """Return the account as readable text, with a checksum that detects damage."""
        fields = {
            "format": FORMAT, "version": VERSION, "key": self.key.hex(),
            "spent": [{"protocol": name, "epsilon": epsilon, "delta": delta, "n_reports": count}
                      for (name, epsilon, delta), count in self.spent.items()],
            "answers": [{"record": record, "protocol": name, "dtype": dtype, "report": data}
                        for record, (name, dtype, data) in self.answers.items()],
        }
        return json.dumps({**fields, "checksum": _checksum(self.key, fields)}, indent=1)

    @classmethod
    def from_json(cls, text):
        """Read what :meth:`to_json` returned."""
        fields = parse(text, error=_Damaged)
        if fields.get("format") != FORMAT:
            raise _Damaged
        version = fields.get("version")
        if type(version) is not int or version < VERSION:
            raise _Damaged
        if version > VERSION:
            raise InvalidParameterError(f"This ledger is of version {version}; this skldp reads version {VERSION}. "
                                        "Nothing was reported. Upgrade skldp.")
        key = bytes.fromhex(fields["key"])
        if len(key) != 32 or fields.pop("checksum") != _checksum(key, fields):
            raise _Damaged
        spent = {(row["protocol"], row["epsilon"], row["delta"]): row["n_reports"] for row in fields["spent"]}
        if len(spent) < len(fields["spent"]) or not all(
                0 < epsilon <= 20 and 0 <= delta < 1 and type(count) is int and 0 < count <= MAX_REPORTS
                for (_, epsilon, delta), count in spent.items()):
            raise _Damaged
        return cls(key, spent, {row["record"]: (row["protocol"], row["dtype"], row["report"])
                                for row in fields["answers"]})


class MemoryLedger:
    """An account in memory, which is lost when the program ends."""

    def __init__(self):
        self._account = Account()
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def open(self):
        """Yield the account with exclusive access."""
        with self._lock:
            yield self._account

    def save(self, account):
        """Do nothing: the account is in memory already."""


class FileLedger:
    """An account in a file, which is read again under a lock at every use.

    Parameters
    ----------
    path : path-like
        The file, created if it does not exist. Programs lock a file next to it, with the suffix ``.lock``.
    """

    def __init__(self, path):
        self._path = regular_file(path)
        with self._locked():
            if os.path.exists(self._path):
                self._read()
            else:
                self.save(Account())

    @contextlib.contextmanager
    def open(self):
        """Yield the account with exclusive access among programs."""
        with self._locked():
            account = self._read()
            try:
                yield account
            except _Damaged:
                raise self._damaged() from None

    def save(self, account):
        """Write the account, and return when it is on the disk. If it is too long, the oldest answers are dropped."""
        text = account.to_json().encode()
        while len(text) > MAX_LEDGER_BYTES and len(account.answers) > 1:
            # Their cost stays counted: a record whose answer was dropped costs its epsilon again.
            del account.answers[next(iter(account.answers))]
            text = account.to_json().encode()
        if len(text) > MAX_LEDGER_BYTES:
            raise InvalidParameterError(f"With this report the ledger would be longer than {MAX_LEDGER_BYTES} bytes. "
                                        "Nothing was reported. Ask for a protocol with shorter reports.")
        write_atomically(self._path, lambda stream: stream.write(text), mode=0o600)

    def _read(self):
        try:
            with open(regular_file(self._path), "rb") as stream:
                text = stream.read(MAX_LEDGER_BYTES + 1)
        except FileNotFoundError:
            raise self._damaged("has disappeared") from None
        if len(text) > MAX_LEDGER_BYTES:
            raise self._damaged(f"is longer than {MAX_LEDGER_BYTES} bytes")
        try:
            return Account.from_json(text)
        except InvalidParameterError:
            raise
        except Exception:  # a damaged file can raise errors of many types
            raise self._damaged() from None

    def _damaged(self, what="is damaged, or another kind of file"):
        return InvalidParameterError(f"The ledger {self._path!r} {what}, so what has been spent is not known. "
                                     "Nothing was reported. Restore the file from a copy.")

    @contextlib.contextmanager
    def _locked(self):
        handle = os.open(self._path + ".lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            self._wait_for(handle)
            yield
        finally:
            os.close(handle)

    def _wait_for(self, handle):
        deadline = time.monotonic() + LOCK_SECONDS
        try:
            while not try_lock(handle):
                if time.monotonic() > deadline:
                    raise TimeoutError(f"Another program has been using the ledger {self._path!r} for "
                                       f"{LOCK_SECONDS:g} seconds. Nothing was reported. Try again later.")
                time.sleep(0.01)
        except TimeoutError:
            raise
        except OSError as error:
            raise OSError(error.errno, f"The ledger {self._path!r} cannot be locked, so two programs could spend "
                                       "the same budget. Nothing was reported. Keep it on a local disk.") from None


def _unpack(answer, protocol):
    """Return the report of an answer with its original dtype."""
    _, dtype, data = answer
    data = base64.b64decode(data, validate=True)
    if protocol.sends_bits:
        report = np.unpackbits(np.frombuffer(data, dtype=np.uint8), count=protocol.width)
    else:
        report = np.frombuffer(data, dtype=_DTYPES[dtype])
    return report.astype(_DTYPES[dtype].newbyteorder("=")).reshape(1, protocol.width)


def _checksum(key, fields):
    return hashlib.blake2b(canonical(fields).encode(), key=key, digest_size=16).hexdigest()
