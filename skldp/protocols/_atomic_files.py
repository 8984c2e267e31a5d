"""Atomic replacement of files, and locks between the programs that write them."""

import contextlib
import errno
import os
import stat
import sys
import time

from skldp.exceptions import InvalidParameterError

PREFIX, SUFFIX = ".skldp-", ".part"
_KINDS = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
_WINDOWS = sys.platform == "win32"
# On Windows a part file is closed before it is moved, so it counts as abandoned only after this many seconds.
_ABANDONED_AFTER = 3600.0


def write_atomically(path, write, mode=0o666):
    """Replace a regular file, which need not exist, atomically by what a function writes to a binary stream.

    The bytes go to a temporary file in the same folder, the part file, which is synced and then renamed: a failure, a
    killed process or a crash of the machine leaves either the old file or the new one. Links are followed, so that a
    link stays a link. Part files of dead writers are removed; a live writer holds a lock on its part file.
    """
    target = regular_file(path)
    folder = os.path.dirname(target)
    remove_dead_parts(folder)
    handle, part = _create_part(folder, mode)
    try:
        with os.fdopen(handle, "wb") as stream:
            write(stream)
            stream.flush()
            os.fsync(handle)
            if not _WINDOWS:  # Windows cannot move open files
                os.replace(part, target)  # before the lock on the part is released
        if _WINDOWS:
            os.replace(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
    _sync_folder(folder)


def regular_file(path):
    """Return the path of a regular file, which need not exist, with links resolved; refuse anything else."""
    name = os.fsdecode(path)
    target = os.path.realpath(name)
    try:
        kind = stat.S_IFMT(os.stat(target).st_mode)
    except FileNotFoundError:
        kind = stat.S_IFDIR if name.endswith(os.sep) else stat.S_IFREG
    if kind != stat.S_IFREG:
        raise InvalidParameterError(f"{name!r} is {_KINDS.get(kind, 'a device')}, not a regular file. "
                                    "Nothing was written; give the path of a file.")
    return target


def remove_dead_parts(folder):
    """Remove the part files in a folder whose writers have died.

    Parameters
    ----------
    folder : str
        Folder to search; only files with names of part files are removed.
    """
    with contextlib.suppress(PermissionError):  # a folder may be writable but not readable
        with os.scandir(folder) as entries:
            parts = [entry.path for entry in entries if entry.name.startswith(PREFIX) and entry.name.endswith(SUFFIX)]
        for part in parts:
            _remove_if_dead(part)


def try_lock(handle):
    """Lock an open file against all other open handles of it; return False if another handle has the lock.

    The lock ends when the file is closed, also if the process dies. A file system without locks raises an OSError.
    """
    # Imported here, because each module exists on one system only.
    try:
        if sys.platform == "win32":
            import msvcrt
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except PermissionError if _WINDOWS else BlockingIOError:
        return False
    return True


def _create_part(folder, mode):
    """Return an open, locked part file and its path."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        part = os.path.join(folder, f"{PREFIX}{os.urandom(8).hex()}{SUFFIX}")
        handle = os.open(part, flags, mode)
        if _lock_new_part(handle, part):
            return handle, part
        os.close(handle)


def _lock_new_part(handle, part):
    """Lock a new part file; False if another process locked or removed it first, taking it for abandoned."""
    try:
        return try_lock(handle) and os.path.samestat(os.fstat(handle), os.stat(part))
    except FileNotFoundError:
        return False
    except OSError:  # without locks, no other process can lock it and remove it either
        return True


def _remove_if_dead(part):
    with contextlib.suppress(OSError):  # it was removed already, or belongs to another user
        if _WINDOWS:
            if time.time() - os.stat(part).st_mtime > _ABANDONED_AFTER:
                os.unlink(part)  # fails while a process has it open
            return
        handle = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            # Removed under the lock: a writer that has just created it detects this and takes another name.
            if stat.S_ISREG(os.fstat(handle).st_mode) and try_lock(handle):
                os.unlink(part)
        finally:
            os.close(handle)


def _sync_folder(folder):
    """Make the new name of a file durable."""
    if _WINDOWS:
        return  # folders cannot be opened
    with contextlib.suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not every file system can sync folders
                raise
        finally:
            os.close(handle)
