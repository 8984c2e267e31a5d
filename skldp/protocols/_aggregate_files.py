"""Aggregates as JSON and as npz files: the same description, with large arrays inside it or beside it."""

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
    """An aggregate as JSON text; the bytes of its arrays are written in base 64."""
    return canonical(_describe_parts(aggregate, _inside))


def parts_from_json(text):
    """The parts of an aggregate, its number of rejected reports and its batches, from JSON text."""
    return _read_parts(parse(text, WHAT, InvalidReportError), {})


def save_aggregate(file, aggregate):
    """Write an aggregate to an npz file."""
    beside: dict = {}

    def put(array):
        """The description of an array: its place in the archive, or itself where integers may be of any size."""
        if array.dtype == object:
            return _inside(array)
        name = f"array{len(beside)}"
        beside[name] = array
        return {"member": name}

    header = _describe_parts(aggregate, put)
    write_archive(file, header, beside)


def load_parts(file):
    """The parts of an aggregate, its number of rejected reports and its batches, from an npz file."""
    return _read_parts(*read_archive(file, WHAT))


def _describe_parts(aggregate, put):
    parts = [{"protocol": describe(protocol), "id": digest(protocol), "tally": _describe_tally(tally, put)}
             for protocol, tally in aggregate.parts.items()]
    return {"format": FORMAT, "version": VERSION, "n_rejected": aggregate.n_rejected, "parts": parts,
            "batches": ids_to_text(aggregate.batches), "checks_replay": aggregate.checks_replay}


def _describe_tally(tally, put):
    fields = {field.name: getattr(tally, field.name) for field in dataclasses.fields(tally)}
    return {"kind": tally.kind,
            **{name: put(value) if isinstance(value, np.ndarray) else int(value) for name, value in fields.items()}}


def _inside(array):
    if array.dtype == object:  # whole numbers without a limit
        return {"dtype": "integer", "shape": list(array.shape), "data": [int(value) for value in array.ravel()]}
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    return {"dtype": array.dtype.name, "shape": list(array.shape),
            "data": base64.b64encode(little.tobytes()).decode("ascii")}


def _read_parts(header, beside):
    check_format(header, FORMAT, WHAT, InvalidReportError)
    try:
        _check_cohorts(header["parts"])
        pairs = [_read_part(part, beside) for part in header["parts"]]
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


def _read_part(part, beside):
    protocol = protocol_from(part["protocol"], simulated=True)
    if not is_id_of(part["id"], part["protocol"], protocol):
        raise InvalidReportError("This aggregate file has been changed: the id of a protocol is not that of its text. "
                                 "Make it anew from the reports.")
    fields = dict(part["tally"])
    kind = KINDS[fields.pop("kind")]
    names = {field.name for field in dataclasses.fields(kind)}
    if set(fields) != names:
        raise _damaged()
    tally = kind(**{name: _array(value, beside) if isinstance(value, dict) else _count(value)
                    for name, value in fields.items()})
    if not tally.fits(protocol):
        raise InvalidReportError(
            f"This aggregate file does not hold sums of reports under its {type(protocol).__name__}. "
            f"Make it anew from the reports."
        )
    return protocol, tally


def _array(description, beside):
    if "member" in description:
        return beside.pop(description["member"])  # taken once: many parts on one member would be checked many times
    shape = tuple(_count(size) for size in description["shape"])
    if description["dtype"] == "integer":
        values = np.array([_whole(value) for value in description["data"]], dtype=object)
        return values.reshape(shape)
    dtype = _BYTES[description["dtype"]]
    raw = base64.b64decode(description["data"], validate=True)
    return np.frombuffer(raw, dtype=dtype.newbyteorder("<")).astype(dtype).reshape(shape)


def _whole(value):
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _damaged()
    return int(value)


def _count(value):
    if _whole(value) < 0:
        raise _damaged()
    _check_size(value)
    return int(value)


def _check_size(value):
    """Refuse counts of reports, and sizes of arrays, beyond any that there can be."""
    if value > MAX_REPORTS:
        raise InvalidReportError(f"This aggregate file has a count above {MAX_REPORTS}, the most reports that there "
                                 "may be. Make it anew from the reports.")


def _check_cohorts(parts):
    """Refuse more protocols than are ever added up, before any of them is read."""
    if len(parts) > MAX_COHORTS:
        raise InvalidReportError(f"This aggregate file has {len(parts)} parts, and at most {MAX_COHORTS} are read. "
                                 "Round the budgets, so that fewer protocols differ.")


def _damaged():
    return InvalidReportError("This aggregate file is damaged: a part of its description is missing or impossible. "
                              "Copy it again, or make it anew from the reports.")
