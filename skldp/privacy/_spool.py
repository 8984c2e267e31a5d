"""Messages from other processes to a ledger: one file for each message, in a folder created by the ledger."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

_KEY, _PART = "key", ".part"
_IDLE = 5e-5  # processor seconds of a worker that wakes up and has no task; a task that reports one value takes 2e-4


class Spool:
    """Message folder of a ledger. Any process of the same user that knows its path can write to it.

    The key of the digests is shared, so that a row has the same digest in every process.
    """

    def __init__(self, folder, key):
        self.folder, self.key = Path(folder), key

    def created_at(self):
        """Time at which the key was written, in seconds of the system's clock."""
        return (self.folder / _KEY).stat().st_mtime

    @classmethod
    def create(cls):
        """Create a folder that only this user can read, with a fresh key in it."""
        spool = cls(tempfile.mkdtemp(prefix="skldp-ledger-"), os.urandom(32))
        (spool.folder / _KEY).write_bytes(spool.key)
        return spool

    @classmethod
    def find(cls, folder):
        """Return the spool at a path, or None if there is none (on another machine, or after the ledger was closed)."""
        try:
            return cls(folder, (Path(folder) / _KEY).read_bytes())
        except OSError:
            return None

    def send(self, kind, content=b""):
        """Write a message; return False if the folder no longer exists because the ledger was closed."""
        path = self.folder / f"{kind}-{os.getpid()}-{os.urandom(8).hex()}"
        part = path.with_name(path.name + _PART)
        try:
            part.write_bytes(content)
            part.replace(path)  # atomic: no reader sees half a message
        except FileNotFoundError:
            return False
        return True

    def receive(self):
        """Yield the kind, the sender's process id and the content of every message, and remove it."""
        for path in sorted(self.folder.iterdir()):
            kind, *sender = path.name.split("-")
            if len(sender) == 2 and path.suffix != _PART:
                content = path.read_bytes()
                path.unlink()
                yield kind, int(sender[0]), content

    def has_unfinished(self):
        """Whether a message is incomplete: its sender is still writing, or ended while writing."""
        return any(path.suffix == _PART for path in self.folder.iterdir())

    def remove(self):
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def remove_if_owner(pid, spool):
    """Remove the folder, but only in the process that created it: a forked child must keep it."""
    if os.getpid() == pid:
        spool.remove()


def child_processes():
    """Return, by process id, the processor seconds of the running processes that multiprocessing or joblib started."""
    processes = sys.modules.get("multiprocessing.process")  # if not loaded, there are no children
    children = processes.active_children() if processes else []
    return {child.pid: _processor_seconds(child.pid) for child in children}


def has_worked(pid, before):
    """Whether a process may have worked since its processor time was ``before``."""
    now = _processor_seconds(pid)
    return now is None or before is None or abs(now - before) > _IDLE


def _processor_seconds(pid):
    """Processor time of the threads of a process, or None if the system does not provide it."""
    try:
        return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    except (OSError, ValueError, IndexError):
        return None
