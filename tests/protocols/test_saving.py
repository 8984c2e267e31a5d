"""Writing of files: links are followed, only regular files are replaced, and a crash leaves the old or the new file."""

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.protocols import Aggregate, ValueProtocol, load_reports, save_reports
from skldp.protocols import _atomic_files as atomic_files
from skldp.protocols._archive import write_archive
from skldp.protocols._atomic_files import PREFIX, SUFFIX, remove_dead_parts, write_atomically

PROTOCOL = ValueProtocol(bounds=(0, 10))
REPORTS = PROTOCOL._randomize(np.linspace(0, 10, 50), None, 0)
posix = pytest.mark.skipif(os.name != "posix", reason="links, pipes and signals are as on POSIX systems")


def save(path):
    save_reports(path, REPORTS, PROTOCOL)


def parts(folder):
    return sorted(path for path in folder.iterdir() if path.name.startswith(PREFIX) and path.name.endswith(SUFFIX))


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@posix
@pytest.mark.parametrize("n_links", [1, 2])
@pytest.mark.parametrize("present", [True, False])
def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path, n_links, present):
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    target, link = tmp_path / "there" / "reports.npz", tmp_path / "here" / "link0"
    if present:
        target.write_bytes(b"old")
    link.symlink_to("../there/reports.npz")
    for number in range(1, n_links):
        (tmp_path / "here" / f"link{number}").symlink_to(link)
        link = tmp_path / "here" / f"link{number}"
    save(link)
    assert link.is_symlink() and not target.is_symlink() and names(tmp_path / "there") == ["reports.npz"]
    np.testing.assert_array_equal(load_reports(target)[0], REPORTS)


def make_socket(path):
    folder = os.getcwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
    finally:
        os.chdir(folder)


@posix
@pytest.mark.parametrize("make, kind", [
    (os.mkfifo, "a pipe"), (os.mkdir, "a folder"), (make_socket, "a socket"),
    (lambda path: path.symlink_to("/dev/null"), "a device"), (lambda path: path.symlink_to("."), "a folder")],
    ids=["pipe", "folder", "socket", "device", "link to a folder"])
def test_anything_but_a_regular_file_is_refused_before_writing(tmp_path, make, kind, monkeypatch):
    place = tmp_path / "place"
    make(place)
    before = place.lstat().st_ino, place.lstat().st_mtime_ns
    monkeypatch.setattr(np, "savez", None)  # would raise something else
    for write in (save, PROTOCOL.aggregate(REPORTS).save):
        with pytest.raises(InvalidParameterError, match=f"is {kind}, not a regular file. Nothing was written"):
            write(place)
    assert names(tmp_path) == ["place"] and (place.lstat().st_ino, place.lstat().st_mtime_ns) == before
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_names_of_folders_are_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match="a folder"):
        save(str(tmp_path / "new") + os.sep)
    with pytest.raises(FileNotFoundError, match="absent'"):
        save(tmp_path / "absent" / "reports.npz")
    assert names(tmp_path) == []


@posix
def test_circular_links_raise_oserror(tmp_path):
    (tmp_path / "one").symlink_to("other")
    (tmp_path / "other").symlink_to("one")
    with pytest.raises(OSError) as error:
        save(tmp_path / "one")
    assert error.value.errno == errno.ELOOP and names(tmp_path) == ["one", "other"]


def test_paths_of_every_type(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ("text", b"bytes", tmp_path / "path"):
        save(path)
        np.testing.assert_array_equal(load_reports(path)[0], REPORTS)
    assert names(tmp_path) == ["bytes", "path", "text"]


@posix
@pytest.mark.parametrize("mask, bits", [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_permission_bits_are_those_of_any_new_file(tmp_path, mask, bits):
    old = os.umask(mask)
    try:
        save(tmp_path / "reports.npz")
        write_atomically(tmp_path / "private", lambda stream: None, mode=0o600)
    finally:
        os.umask(old)
    assert stat.S_IMODE((tmp_path / "reports.npz").stat().st_mode) == bits
    assert stat.S_IMODE((tmp_path / "private").stat().st_mode) == 0o600


@posix
def test_data_are_synced_before_the_file_is_renamed_and_the_folder_after(tmp_path, monkeypatch):
    events, fsync, replace = [], os.fsync, os.replace

    def recording_fsync(handle):
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else f"{os.fstat(handle).st_size > 500}"
        events.append(kind)
        fsync(handle)

    def recording_replace(source, target):
        events.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "replace", recording_replace)
    save(tmp_path / "reports.npz")
    assert events == ["True", "replace", "folder"]  # the data had left the program's buffers


@posix
@pytest.mark.parametrize("number, raises", [(errno.EINVAL, False), (errno.EIO, True)])
def test_folders_that_cannot_be_synced(tmp_path, monkeypatch, number, raises):
    fsync = os.fsync

    def failing(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, "no")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", failing)
    if raises:
        with pytest.raises(OSError, match="no"):
            save(tmp_path / "reports.npz")
    else:
        save(tmp_path / "reports.npz")
    np.testing.assert_array_equal(load_reports(tmp_path / "reports.npz")[0], REPORTS)


WRITER = textwrap.dedent("""
    import sys
    from skldp.protocols._atomic_files import write_atomically

    def write(stream):
        stream.write(b"half of")
        stream.flush()
        print("writing", flush=True)
        sys.stdin.readline()
        stream.write(b" it")

    write_atomically(sys.argv[1], write)
    print("done", flush=True)
""")


@pytest.fixture
def writer(tmp_path):
    """A process that has written half of a file and waits."""
    (tmp_path / "file").write_bytes(b"old")
    child = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path / "file")], text=True,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout.readline() == "writing\n"
    yield child
    child.kill()
    child.communicate()


@posix
def test_a_killed_writer_leaves_the_old_file_and_the_next_save_removes_its_part(tmp_path, writer):
    assert len(parts(tmp_path)) == 1
    os.kill(writer.pid, signal.SIGKILL)
    writer.wait()
    assert (tmp_path / "file").read_bytes() == b"old" and len(parts(tmp_path)) == 1
    save(tmp_path / "other.npz")
    assert names(tmp_path) == ["file", "other.npz"]


@posix
def test_the_part_of_a_live_writer_is_kept(tmp_path, writer):
    before = parts(tmp_path)
    save(tmp_path / "other.npz")
    write_atomically(tmp_path / "file", lambda stream: stream.write(b"meanwhile"))
    assert parts(tmp_path) == before and len(before) == 1
    writer.stdin.write("go on\n")
    writer.stdin.flush()
    assert writer.stdout.readline() == "done\n"
    assert (tmp_path / "file").read_bytes() == b"half of it" and not parts(tmp_path)


@posix
def test_only_abandoned_parts_are_removed(tmp_path):
    kept = ["reports.part", ".skldp-notes", ".skldp", ".other-1.part"]
    for name in [*kept, ".skldp-0123.part"]:
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / ".skldp-link.part").symlink_to(tmp_path / "reports.part")
    os.mkfifo(tmp_path / ".skldp-pipe.part")
    (tmp_path / ".skldp-folder.part").mkdir()
    save(tmp_path / "new.npz")
    assert names(tmp_path) == sorted([*kept, "new.npz", ".skldp-link.part", ".skldp-pipe.part", ".skldp-folder.part"])


@posix
def test_a_part_removed_before_it_is_locked_is_created_again(tmp_path, monkeypatch):
    taken, lock = [], atomic_files.try_lock

    def late_lock(handle):
        if not taken:  # the file is there, and not locked yet
            taken.append(True)
            remove_dead_parts(tmp_path)
            assert not parts(tmp_path)
        return lock(handle)

    monkeypatch.setattr(atomic_files, "try_lock", late_lock)
    write_atomically(tmp_path / "file", lambda stream: stream.write(b"new"))
    assert taken and (tmp_path / "file").read_bytes() == b"new" and names(tmp_path) == ["file"]


@posix
def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    def no_locks(handle):
        raise OSError(errno.ENOLCK, "no locks available")

    (tmp_path / ".skldp-0123.part").write_bytes(b"x")
    monkeypatch.setattr(atomic_files, "try_lock", no_locks)
    write_atomically(tmp_path / "file", lambda stream: stream.write(b"new"))
    assert names(tmp_path) == [".skldp-0123.part", "file"]


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()], ids=repr)
def test_a_failed_write_leaves_nothing_behind(tmp_path, error):
    def write(stream):
        stream.write(b"half")
        raise error

    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(type(error)):
        write_atomically(tmp_path / "file", write)
    assert (tmp_path / "file").read_bytes() == b"old" and names(tmp_path) == ["file"]


def test_many_threads_save_in_one_folder(tmp_path):
    failures = []

    def work(number):
        try:
            for _ in range(10):
                PROTOCOL.aggregate(REPORTS).save(tmp_path / f"{number % 2}.npz")
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and names(tmp_path) == ["0.npz", "1.npz"]
    assert Aggregate.load(tmp_path / "0.npz").n_reports == 50


@posix
def test_a_folder_that_can_be_written_but_not_read(tmp_path, monkeypatch):
    def denied(*_, **__):
        raise PermissionError("denied")

    monkeypatch.setattr(os, "scandir", denied)
    save(tmp_path / "reports.npz")
    monkeypatch.undo()
    assert names(tmp_path) == ["reports.npz"]


def test_objects_are_not_saved(tmp_path):
    with pytest.raises(TypeError, match="would need pickle"):
        write_archive(tmp_path / "sums.npz", {}, {"sums": np.array([2**70], dtype=object)})
    assert not list(tmp_path.iterdir())
