"""How other processes tell a ledger what they spent: one file for each message, in a folder that the ledger made."""

import os
import shutil
import sys
import tempfile
from pathlib import Path

_KEY, _PART = "key", ".part"
_IDLE = 5e-5  # seconds that a worker needs to wake up and sleep again; a task that reports one value takes 2e-4


class Spool:
    """Folder of a ledger, which any process of the same user that knows its path can write to.

    Parameters
    ----------
    folder : str or Path
        Where the messages go.
    key : bytes
        Key of the digests, so that every process gives a row the same digest.
    """

    def __init__(self, folder, key):
        self.folder, self.key = Path(folder), key

    def opened_at(self):
        """When the folder got its key, in seconds of the system's clock."""
        return (self.folder / _KEY).stat().st_mtime

    @classmethod
    def create(cls):
        """Make a folder that nobody else can read, with a fresh key in it."""
        spool = cls(tempfile.mkdtemp(prefix="skldp-ledger-"), os.urandom(32))
        (spool.folder / _KEY).write_bytes(spool.key)
        return spool

    @classmethod
    def find(cls, folder):
        """The spool at a path; None where there is none, as on another machine or after the ledger was closed."""
        try:
            return cls(folder, (Path(folder) / _KEY).read_bytes())
        except OSError:
            return None

    def send(self, kind, content=b""):
        """Leave a message.

        Returns
        -------
        bool
            False where the folder is gone, because the ledger was closed.
        """
        path = self.folder / f"{kind}-{os.getpid()}-{os.urandom(8).hex()}"
        part = path.with_name(path.name + _PART)
        try:
            part.write_bytes(content)
            part.replace(path)  # a message is there as a whole or not at all
        except FileNotFoundError:
            return False
        return True

    def receive(self):
        """Yield the kind, the process and the content of every message, and remove it."""
        for path in sorted(self.folder.iterdir()):
            kind, *sender = path.name.split("-")
            if len(sender) == 2 and path.suffix != _PART:
                content = path.read_bytes()
                path.unlink()
                yield kind, int(sender[0]), content

    def has_unfinished(self):
        """Whether there is a message whose sender ended, or still is, in the middle of writing."""
        return any(path.suffix == _PART for path in self.folder.iterdir())

    def remove(self):
        """Remove the folder."""
        shutil.rmtree(self.folder, ignore_errors=True)


def remove_in(pid, spool):
    """Remove a folder if this is still the process that made it: a forked child must leave it alone."""
    if os.getpid() == pid:
        spool.remove()


def child_processes():
    """Living processes that multiprocessing or joblib started here, with the seconds of work of each so far."""
    processes = sys.modules.get("multiprocessing.process")  # not loaded: there are none
    children = processes.active_children() if processes else []
    return {child.pid: _seconds_of_work(child.pid) for child in children}


def has_worked(pid, before):
    """Whether a process may have done something since it had worked for that many seconds."""
    now = _seconds_of_work(pid)
    return now is None or before is None or abs(now - before) > _IDLE


def _seconds_of_work(pid):
    """Processor time of the threads of a process, where the system tells it; else None."""
    try:
        return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9
    except (OSError, ValueError, IndexError):
        return None
