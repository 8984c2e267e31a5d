"""Arrays of an npz file of unknown origin. Sizes are checked against the file before anything is allocated."""

import math
import os
import re
import zipfile

import numpy as np

from skldp._validation._limits import MAX_FILE_BYTES, MAX_JSON_LENGTH, MAX_MEMBERS

# Header that NumPy writes before integers. Nothing else is read: no objects, no records, no evaluated text.
_HEADER = re.compile(rb"\x93NUMPY\x01\x00(..)\{'descr': '([<>|][iu][1248])', 'fortran_order': (True|False), "
                     rb"'shape': \(([0-9]*(?:, ?[0-9]+)*),?\), \} *\n", re.DOTALL)
_LONGEST_HEADER = 256
_LOCAL_HEADER = 30  # bytes before a member, without its name
_CHUNK = 2**20


def read_members(file):
    """Read the arrays of integers in an npz file; what skldp did not write raises an error of any type."""
    length = _length(file)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        _check_members(members, length)
        return {member.filename.removesuffix(".npy"): _read(archive, member) for member in members}


def _length(file):
    place = file.tell()
    length = file.seek(0, os.SEEK_END)
    file.seek(place)
    return length


def _check_members(members, length):
    """Raise an error for members that skldp does not write, that share bytes, or that are longer than the file."""
    names = [member.filename for member in members]
    if len(names) > MAX_MEMBERS or len(set(names)) < len(names) or not all(map(_is_expected, names)):
        raise ValueError("unexpected members")
    if any(member.compress_type != zipfile.ZIP_STORED or member.compress_size != member.file_size
           for member in members):
        raise ValueError("compressed members, which may be zip bombs")
    end = 0
    for member in sorted(members, key=lambda member: member.header_offset):
        if member.header_offset < end:
            raise ValueError("members that overlap")
        end = member.header_offset + _LOCAL_HEADER + len(member.filename) + member.file_size
    if end > length or sum(member.file_size for member in members) > MAX_FILE_BYTES:
        raise ValueError("members beyond the end of the file, or above the size limit")


def _is_expected(name):
    return re.fullmatch(r"(header|reports|array(0|[1-9][0-9]{0,3}))\.npy", name) is not None


def _read(archive, member):
    """Return the array of a member, allocated after its header was compared with the size of the member."""
    if member.filename == "header.npy" and member.file_size > MAX_JSON_LENGTH + _LONGEST_HEADER:
        raise ValueError("a description that is too long")
    with archive.open(member) as stream:
        start = stream.read(_LONGEST_HEADER)
        shape, dtype, order, n_header = _layout(start)
        if n_header + math.prod(shape) * dtype.itemsize != member.file_size:
            raise ValueError("a shape that does not match the data")
        array = np.empty(shape, dtype=dtype, order=order)
        _fill(array, start[n_header:], stream)
    return array


def _layout(start):
    """Return shape, dtype and order of an array, and the length of its header."""
    found = _HEADER.match(start)
    if found is None or int.from_bytes(found[1], "little") != found.end() - 10:
        raise ValueError("not an array of integers")
    shape = tuple(int(size) for size in found[4].split(b",") if size.strip())
    return shape, np.dtype(found[2].decode()), "F" if found[3] == b"True" else "C", found.end()


def _fill(array, start, stream):
    """Copy the bytes of a member into its array: those in ``start``, then the rest of the stream."""
    target = memoryview(array.reshape(-1, order="A").view(np.uint8))
    target[:len(start)] = start
    for place in range(len(start), len(target), _CHUNK):
        target[place:place + _CHUNK] = stream.read(min(_CHUNK, len(target) - place))
