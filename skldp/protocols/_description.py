"""Protocols as JSON: writing, reading and checks."""

import dataclasses
import hashlib
import inspect
import json
import math

from skldp.exceptions import InvalidParameterError
from skldp.protocols._texts import check_text

FORMAT = "skldp-protocol"
VERSION = 1

KINDS: dict = {}  # class of protocol by its name

# Fields that older files lack, which then have their default
ADDED_LATER = {"subset_size", "schema", "design", "link", "curvature_weight"}
# Fields that a description lacks if they are these
_OPTIONAL = {"schema": None, "design": None, "link": "logit", "curvature_weight": 1.0}
_LABELS = {"categories", "classes"}  # fields that keep the type of their numbers; others are floats or integers
_ID_BYTES = {32: 16, 16: 8}  # bytes of a digest by the length of the id; older files have ids of 64 bits


def describe(protocol):
    """Return the description of a protocol: plain values that JSON can hold."""
    fields = {field.name: _json_value(getattr(protocol, field.name)) for field in dataclasses.fields(protocol)}
    fields = {name: value for name, value in fields.items() if name not in _OPTIONAL or value != _OPTIONAL[name]}
    if math.isinf(protocol.epsilon):
        fields["epsilon"] = "inf"
    return {"format": FORMAT, "version": VERSION, "kind": type(protocol).__name__, **fields}


def canonical(description):
    """Return the text of a description, the same on every machine."""
    return json.dumps(description, sort_keys=True)


def digest(protocol):
    """Digest of the description of a protocol, 128 bits."""
    description = describe(protocol)
    labels = {name: _canonical_labels(description[name]) for name in _LABELS & set(description)}
    return _digest({**description, **labels}, 16)


def is_id_of(text, description, protocol=None):
    """Whether a text is the id of a description.

    The id has 128 bits, or 64 bits in an older file, where it covers no missing fields and no resolved defaults. The
    id of the protocol that was read is accepted too, because other programs may write 1.0 as 1.
    """
    n_bytes = _ID_BYTES.get(len(text)) if isinstance(text, str) else None
    if n_bytes is None:
        return False
    return text == _digest(description, n_bytes) or (protocol is not None and text == digest(protocol))


def _digest(description, n_bytes):
    return hashlib.blake2b(canonical(description).encode(), digest_size=n_bytes).hexdigest()


def parse(text, what="a protocol file", error=InvalidParameterError):
    """Return a JSON object as a dict, or raise an error with a message."""
    text = check_text(text, what, error)
    try:
        fields = json.loads(text, object_pairs_hook=_without_repeats)
    except _RepeatedNameError:
        raise error(f"This is not {what} of skldp: a name occurs twice in it, so its meaning is ambiguous. "
                    "Pass what skldp wrote, unchanged.") from None
    except (TypeError, ValueError, RecursionError):
        raise error(f"This is not {what}: it is not JSON. It may have been cut short. "
                    "Pass the whole text of the file, not its path.") from None
    if not isinstance(fields, dict):
        raise error(f"This is not {what}: it is JSON of another kind. Pass what to_json returned, unchanged.")
    return fields


def check_format(fields, name, what, error=InvalidParameterError):
    """Remove format and version from a description, or raise an error if they cannot be read."""
    if fields.pop("format", None) != name:
        raise error(f'This is not {what} of skldp: its "format" is missing or foreign. '
                    "Pass what skldp wrote, unchanged.")
    version = fields.pop("version", None)
    if type(version) is not int:  # isinstance would accept true
        raise error(f"This is {what} without a version, or its version is not a number; this skldp reads version "
                    f"{VERSION}. Pass what skldp wrote, unchanged.")
    if version != VERSION:
        raise error(f"This is {what} of version {version!r}; this skldp reads version {VERSION}. "
                    "Upgrade the older side.")


class _RepeatedNameError(ValueError):
    """An object in JSON has two members of the same name."""


def _without_repeats(pairs):
    members = dict(pairs)
    if len(members) < len(pairs):
        raise _RepeatedNameError
    return members


def protocol_from(description, simulated=False):
    """Return the protocol of a description read from JSON; one without noise is refused unless ``simulated``."""
    fields = dict(description)
    check_format(fields, FORMAT, "a protocol file")
    kind = fields.pop("kind", None)
    kind = KINDS.get(kind) if isinstance(kind, str) else None
    if kind is None or inspect.isabstract(kind):
        raise InvalidParameterError("This protocol file is of a kind that this version of skldp does not know. "
                                    "Upgrade skldp, or ask whoever published it for another.")
    known = {field.name for field in dataclasses.fields(kind)}
    unexpected = ", ".join(sorted((set(fields) ^ known) - (ADDED_LATER & known)))
    if unexpected:
        raise InvalidParameterError(f"This protocol file has missing or unknown fields: {unexpected}. "
                                    "Use the file as it was published, with the version of skldp that wrote it.")
    if fields.get("epsilon") == "inf":
        if not simulated:
            raise _no_privacy()
        fields["epsilon"] = math.inf
    try:
        protocol = kind(**{name: _freeze(value) for name, value in fields.items()})
    except InvalidParameterError:
        raise
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        raise InvalidParameterError("This protocol file has a field of an impossible kind or size. "
                                    "Publish the protocol again.") from None
    # Python's JSON reader accepts other spellings of infinity, too.
    if math.isinf(protocol.epsilon) and not simulated:
        raise _no_privacy()
    return protocol


def _no_privacy():
    return InvalidParameterError(
        "This protocol has epsilon=inf, which is no privacy at all: it is a simulation and not for clients. "
        "Ask for a protocol with a finite epsilon before you report."
    )


def _freeze(value):
    """Return lists as tuples: JSON has only lists, a protocol has tuples."""
    return tuple(map(_freeze, value)) if isinstance(value, list) else value


def _canonical_labels(value):
    """Return labels with one form for equal ones, such as 1, 1.0 and true."""
    if isinstance(value, tuple):
        return tuple(map(_canonical_labels, value))
    return int(value) if isinstance(value, int) or isinstance(value, float) and value.is_integer() else value


def _json_value(value):
    """Return a value that JSON can hold, which NumPy's numbers are not."""
    if isinstance(value, tuple):
        return tuple(map(_json_value, value))
    return value.item() if hasattr(value, "item") else value
