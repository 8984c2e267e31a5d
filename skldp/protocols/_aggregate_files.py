"""Aggregates as JSON and as npz files: the same description, with arrays inline or as members of the archive."""

import base64
import binascii
import dataclasses
from numbers import Integral

import numpy as np

from skldp._validation._limits import MAX_COHORTS, MAX_REPORTS
from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols._archive import read_archive, write_archive
from skldp.protocols._batches import batches_from_text, ids_to_text
from skldp.protocols._description import (
    VERSION,
    canonical,
    check_format,
    describe,
    digest,
    is_id_of,
    parse,
    protocol_from,
)
from skldp.protocols._tallies import KINDS

FORMAT = "skldp-aggregate"
WHAT = "an aggregate file"
_BYTES = {name: np.dtype(name) for name in ("uint8", "int8", "int16", "int32", "int64")}


def aggregate_to_json(aggregate):
    """Return an aggregate as JSON text, with the bytes of its arrays in base 64."""
    return canonical(_describe_parts(aggregate, _inline))


def parts_from_json(text):
    """Read the parts of an aggregate, its number of rejected reports and its batches from JSON text."""
    return _read_parts(parse(text, WHAT, InvalidReportError), {})


def save_aggregate(file, aggregate):
    """Write an aggregate to an npz file."""
    members: dict = {}

    def as_member(array):
        """Add an array to the archive and return its description; Python integers are described inline."""
        if array.dtype == object:
            return _inline(array)
        name = f"array{len(members)}"
        members[name] = array
        return {"member": name}

    header = _describe_parts(aggregate, as_member)
    write_archive(file, header, members)


def load_parts(file):
    """Read the parts of an aggregate, its number of rejected reports and its batches from an npz file."""
    return _read_parts(*read_archive(file, WHAT))


def _describe_parts(aggregate, describe_array):
    parts = [{"protocol": describe(protocol), "id": digest(protocol), "tally": _describe_tally(tally, describe_array)}
             for protocol, tally in aggregate.parts.items()]
    return {"format": FORMAT, "version": VERSION, "n_rejected": aggregate.n_rejected, "parts": parts,
            "batches": ids_to_text(aggregate.batches), "checks_replay": aggregate.checks_replay}


def _describe_tally(tally, describe_array):
    fields = {field.name: getattr(tally, field.name) for field in dataclasses.fields(tally)}
    return {"kind": tally.kind,
            **{name: describe_array(value) if isinstance(value, np.ndarray) else int(value)
               for name, value in fields.items()}}


def _inline(array):
    if array.dtype == object:  # Python integers
        return {"dtype": "integer", "shape": list(array.shape), "data": [int(value) for value in array.ravel()]}
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {"dtype": array.dtype.name, "shape": list(array.shape),
            "data": base64.b64encode(little.tobytes()).decode("ascii")}


def _read_parts(header, members):
    check_format(header, FORMAT, WHAT, InvalidReportError)
    try:
        _check_cohorts(header["parts"])
        pairs = [_read_part(part, members) for part in header["parts"]]
        parts = dict(pairs)
        n_rejected = _count(header["n_rejected"])
        batches = _batches(header)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, MemoryError, RecursionError,
            binascii.Error) as error:
        if isinstance(error, (InvalidReportError, InvalidParameterError)):
            raise
        raise _damaged() from None
    if not parts or len(parts) < len(pairs):
        raise _damaged()
    return parts, n_rejected, batches


def _batches(header):
    if "batches" not in header:
        return None  # older versions wrote none
    batches = batches_from_text(header["batches"], header["checks_replay"])
    if batches is None:
        raise _damaged()
    return batches if batches.ids else None


def _read_part(part, members):
    protocol = protocol_from(part["protocol"], simulated=True)
    if not is_id_of(part["id"], part["protocol"], protocol):
        raise InvalidReportError("This aggregate file has been changed: the id of a protocol does not match its text. "
                                 "Create it again from the reports.")
    fields = dict(part["tally"])
    kind = KINDS[fields.pop("kind")]
    names = {field.name for field in dataclasses.fields(kind)}
    if set(fields) != names:
        raise _damaged()
    tally = kind(**{name: _array(value, members) if isinstance(value, dict) else _count(value)
                    for name, value in fields.items()})
    if not tally.fits(protocol):
        raise InvalidReportError(
            f"This aggregate file does not hold sums of reports under its {type(protocol).__name__}. "
            f"Create it again from the reports."
        )
    return protocol, tally


def _array(description, members):
    if "member" in description:
        return members.pop(description["member"])  # used once: a hostile file could have one array checked many times
    shape = tuple(_count(size) for size in description["shape"])
    if description["dtype"] == "integer":
        values = np.array([_integer(value) for value in description["data"]], dtype=object)
        return values.reshape(shape)
    dtype = _BYTES[description["dtype"]]
    raw = base64.b64decode(description["data"], validate=True)
    return np.frombuffer(raw, dtype=dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def _integer(value):
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _damaged()
    return int(value)


def _count(value):
    if _integer(value) < 0:
        raise _damaged()
    _check_size(value)
    return int(value)


def _check_size(value):
    """Raise an error for a count of reports, or a size of an array, that is larger than any possible one."""
    if value > MAX_REPORTS:
        raise InvalidReportError(f"This aggregate file has a count above {MAX_REPORTS}, the largest allowed number of "
                                 "reports. Create it again from the reports.")


def _check_cohorts(parts):
    """Raise an error for too many protocols, before any of them is read."""
    if len(parts) > MAX_COHORTS:
        raise InvalidReportError(f"This aggregate file has {len(parts)} parts, and at most {MAX_COHORTS} are read. "
                                 "Round the budgets, so that fewer protocols differ.")


def _damaged():
    return InvalidReportError("This aggregate file is damaged: a part of its description is missing or impossible. "
                              "Copy it again, or create it again from the reports.")
