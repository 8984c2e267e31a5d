"""Files that are written whole or not at all, and locks between the programs that write them."""

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
_SETTLED = 3600.0  # seconds after which a part is nobody's on Windows, where a part is let go before it is moved


def write_whole(path, write, mode=0o666):
    """Replace a file by what a function writes, all of it or nothing.

    The bytes go to a part file in the same folder, which is synced and takes the file's name at once: a failure, a
    killed process or a crash of the machine leaves the old file or the new one. Links are followed, so that a link
    stays a link. Part files of writers that have died are removed; a live writer holds a lock on its own.

    Parameters
    ----------
    path : path-like
        A regular file, or none yet.
    write : callable
        Gets a binary stream.
    mode : int, default=0o666
        Permission bits of the file, before the umask.
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
            if not _WINDOWS:  # where open files cannot be moved
                os.replace(part, target)  # before the lock on the part is released
        if _WINDOWS:
            os.replace(part, target)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)
        raise
    _sync_folder(folder)


def regular_file(path):
    """Return the path of a regular file, present or not, with links resolved; refuse anything else.

    Parameters
    ----------
    path : path-like
        Where to write, or to read.

    Returns
    -------
    str
    """
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
        Where to look; nothing but names of part files is touched.
    """
    with contextlib.suppress(PermissionError):  # a folder may be open for writing alone
        with os.scandir(folder) as entries:
            parts = [entry.path for entry in entries if entry.name.startswith(PREFIX) and entry.name.endswith(SUFFIX)]
        for part in parts:
            _remove_if_dead(part)


def try_lock(handle):
    """Lock an open file against every other opening of it, or say that somebody else has the lock.

    The lock ends when the file is closed, also by the death of the process.

    Parameters
    ----------
    handle : int
        File descriptor, open for writing.

    Returns
    -------
    bool
        False where another opening holds the lock.

    Raises
    ------
    OSError
        Where the file system has no locks.
    """
    # Modules of one system only, needed when something is saved: not at import.
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
    """An open, locked part file, and its path."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        part = os.path.join(folder, f"{PREFIX}{os.urandom(8).hex()}{SUFFIX}")
        handle = os.open(part, flags, mode)
        if _hold(handle, part):
            return handle, part
        os.close(handle)


def _hold(handle, part):
    """Whether a new part file is ours: a cleaner may have met it before it was locked."""
    try:
        return try_lock(handle) and os.path.samestat(os.fstat(handle), os.stat(part))
    except FileNotFoundError:
        return False
    except OSError:  # no locks here, so no cleaner gets one either
        return True


def _remove_if_dead(part):
    with contextlib.suppress(OSError):  # it is gone already, or belongs to somebody else
        if _WINDOWS:
            if time.time() - os.stat(part).st_mtime > _SETTLED:
                os.unlink(part)  # fails while somebody has it open
            return
        handle = os.open(part, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            # Removed while it is locked: a writer that has just created it will notice, and take another name.
            if stat.S_ISREG(os.fstat(handle).st_mode) and try_lock(handle):
                os.unlink(part)
        finally:
            os.close(handle)


def _sync_folder(folder):
    """Make the new name of a file durable."""
    if _WINDOWS:
        return  # there are no handles of folders
    with contextlib.suppress(PermissionError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # not every file system can sync folders
                raise
        finally:
            os.close(handle)
