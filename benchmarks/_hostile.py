"""Honest and mutated files and messages of every kind, and functions that read them as their receivers do."""

import copy
import functools
import io
import json
import math
import struct
import zipfile

import numpy as np

from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols import (
    Aggregate,
    CategoryProtocol,
    GradientModel,
    GradientProtocol,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    Protocol,
    RecordProtocol,
    ValueProtocol,
    load_reports,
    save_reports,
)
from skldp.protocols._description import KINDS, digest

LONGEST = 2**20 - 2**12
EXTREMES = [0, -1, 1, 2**24, 2**24 + 1, 2**31, 2**53 + 1, 2**63, -2**63, 10**9, 10**18, 10**400, 0.5, 1e-6, 1e-320,
            20.0, -1.0, 1e308, math.inf, -math.inf, math.nan, True, None, "", "inf", "auto", "gaussian", "rr",
            "A" * 1000, [], {}, [[]], [0] * 1000, [1e308, -1e308], {"member": "array0"},
            {"dtype": "int64", "shape": [2**40], "data": ""}]
X, Y, LABELS = np.full((20, 2), 0.3), np.linspace(-1, 1, 20), np.arange(20) % 2
PROTOCOLS = {
    "square wave": (ValueProtocol(), X[:, :1], None),
    "laplace": (ValueProtocol(mechanism="laplace", n_features=2), X, None),
    "gaussian": (ValueProtocol(mechanism="gaussian", delta=1e-6), X[:, :1], None),
    "subsets": (CategoryProtocol(categories=tuple("abcdefghijk")), [["c"]] * 20, None),
    "unary": (CategoryProtocol(categories=tuple(range(40)), mechanism="oue"), [[3]] * 20, None),
    "response": (CategoryProtocol(categories=(0, 1, 2.5), mechanism="rr"), [[1]] * 20, None),
    "rows": (CategoryProtocol(categories=((0, "a"), (1, "b"), (1, "c")), n_features=2), [[1, "b"]] * 20, None),
    "sphere": (MomentProtocol(n_features=2), X, Y),
    "moments": (MomentProtocol(n_features=2, mechanism="gaussian"), X, Y),
    "records": (RecordProtocol(n_features=2), X, Y),
    "labels": (LabelMomentProtocol(n_features=2), X, LABELS),
    "labelled records": (LabelRecordProtocol(n_features=2), X, LABELS),
    "gradients": (GradientProtocol(n_features=2, classes=(0, 1)), X, LABELS),
    "squared loss": (GradientProtocol(n_features=2, loss="squared", mechanism="sphere"), X, Y),
}
FEW = CategoryProtocol(categories=tuple(range(6)), mechanism="oue")
LINES = {f"lines of {name}": PROTOCOLS[name][0] for name in ("square wave", "subsets")}  # kinds of text files


def receive(kind, data):
    """Read a file or message and use it once; return "accepted" or "refused"."""
    try:
        _use(kind, data)
    except (InvalidParameterError, InvalidReportError):
        return "refused"
    return "accepted"


def _use(kind, data):
    if kind == "protocol":
        protocol = Protocol.from_json(data)
        records = np.zeros((1, protocol.n_features), dtype=object)
        protocol.privatize(records, [0] if hasattr(protocol, "data_norm") else None)
    elif kind == "model":
        PROTOCOLS["gradients"][0].privatize(X[:1], LABELS[:1], model=GradientModel.from_json(data))
    elif kind == "aggregate text":
        Aggregate.from_json(data).n_reports
    elif kind == "aggregate file":
        Aggregate.load(io.BytesIO(data)).n_reports
    elif kind in LINES:
        LINES[kind].aggregate(load_reports(io.BytesIO(data), LINES[kind])[0], "drop")
    else:
        load_reports(io.BytesIO(data))


def honest():
    """Return honest files of every kind for every protocol, by name."""
    files = {"model": ("model", PROTOCOLS["gradients"][0].start().to_json().encode())}
    for name, (protocol, records, y) in PROTOCOLS.items():
        reports = protocol._randomize(records, y, 0)
        total = protocol.aggregate(reports)
        files[f"{name}, protocol"] = "protocol", protocol.to_json().encode()
        files[f"{name}, aggregate text"] = "aggregate text", total.to_json().encode()
        files[f"{name}, aggregate file"] = "aggregate file", stored(total.save)
        files[f"{name}, reports"] = "reports", stored(lambda file: save_reports(file, reports, protocol))
        if f"lines of {name}" in LINES:
            for form, data in lines_of(protocol, reports).items():
                files[f"{name}, {form}"] = f"lines of {name}", data
    kept = PROTOCOLS["subsets"][0]
    rows = kept.aggregate(kept._randomize([["c"]] * 20, None, 0), keep_rows=True)
    pairs = FEW.aggregate(FEW._randomize([[1]] * 20, None, 0))
    for name, total in (("kept rows", rows), ("pairs", pairs)):
        files[f"{name}, aggregate text"] = "aggregate text", total.to_json().encode()
        files[f"{name}, aggregate file"] = "aggregate file", stored(total.save)
    return files


def lines_of(protocol, reports):
    """Return reports as JSON lines and as CSV."""
    rows = [(protocol.id, f"{number:032x}", report.tolist()) for number, report in enumerate(reports)]
    return {"JSON lines": "\n".join(json.dumps(dict(zip(("protocol", "submission", "report"), row)))
                                    for row in rows).encode(),
            "CSV": "\n".join(["protocol,submission,report", *(f'{name},{number},"{report}"'
                                                              for name, number, report in rows)]).encode()}


def stored(save):
    """Return the bytes that a function writes to a file."""
    file = io.BytesIO()
    save(file)
    return file.getvalue()


def mutations(number, seed):
    """Return mutated files: the mutation, kind and bytes of each."""
    rng, files = np.random.default_rng(seed), list(honest().values())
    by_kind, found = {}, []
    for kind, data in files:
        by_kind.setdefault(kind, []).append(data)
    while len(found) < number:
        kind = list(by_kind)[rng.integers(len(by_kind))]
        data = by_kind[kind][rng.integers(len(by_kind[kind]))]
        ways = MEMBER_WAYS if kind in ("aggregate file", "reports") else LINE_WAYS if kind in LINES else TEXT_WAYS
        name = list(ways)[rng.integers(len(ways))]
        other = files[rng.integers(len(files))][1]
        found.append((name, kind, ways[name](data, other, rng)[:2**20]))
    return found


def flip(data, other, rng):
    """Change one to eight bytes."""
    changed = bytearray(data)
    for place in rng.integers(len(data), size=rng.integers(1, 9)):
        changed[place] = rng.integers(256)
    return bytes(changed)


def cut(data, other, rng):
    """Remove the end, or a piece in the middle."""
    start, end = np.sort(rng.integers(len(data), size=2))
    return data[:start] + (data[end:] if rng.integers(2) else b"")


def splice(data, other, rng):
    """Insert a piece of another file in the middle."""
    place, (start, end) = rng.integers(len(data)), np.sort(rng.integers(len(other), size=2))
    return data[:place] + other[start:end] + data[place + rng.integers(2) * (end - start):]


def replace(data, other, rng):
    """Replace one to three fields of a JSON text by extreme values, and recompute the ids of the protocols."""
    tree = json.loads(data)
    for _ in range(rng.integers(1, 4)):
        holder, key = pick(tree, rng)
        holder[key] = copy.deepcopy(EXTREMES[rng.integers(len(EXTREMES))])
    renew_ids(tree)
    return json.dumps(tree).encode()


def rearrange(data, other, rng):
    """Repeat or drop an entry of a JSON text, or exchange it with another."""
    tree = json.loads(data)
    (one, first), (two, second) = pick(tree, rng), pick(tree, rng)
    way = rng.integers(3)
    if way == 0 and isinstance(one, list):
        one *= int(rng.integers(2, 2000))
    elif way == 1:
        del one[first]
    else:
        one[first], two[second] = json.loads(json.dumps([two[second], one[first]]))
    renew_ids(tree)
    return json.dumps(tree).encode()[:LONGEST]


def pick(tree, rng):
    """Return a random place in a JSON tree: its container and its key."""
    places, holders = [], [tree]
    while holders:
        holder = holders.pop()
        for key in (holder if isinstance(holder, dict) else range(len(holder))):
            places.append((holder, key))
            if isinstance(holder[key], (dict, list)):
                holders.append(holder[key])
    return places[rng.integers(len(places))]


def renew_ids(tree):
    """Recompute the ids of all valid protocols in a tree, as an attacker could."""
    parts = tree.get("parts", [tree]) if isinstance(tree, dict) else []
    distinct = {id(part): part for part in parts} if isinstance(parts, list) else {}
    for part in distinct.values():
        if isinstance(part, dict) and "protocol" in part:
            part["id"] = _id(json.dumps(part["protocol"]))


@functools.lru_cache(maxsize=1)
def _id(text):
    """Return the id of a protocol, or "" for an invalid one, which is refused before its id is compared."""
    try:
        fields = {name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(text).items()}
        kind = KINDS[fields.pop("kind")]
        del fields["format"], fields["version"]
        return digest(kind(**fields))
    except Exception:  # the description is invalid
        return ""


def members(data):
    """Return the members of an npz file, in order."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def archived(pairs, compression=zipfile.ZIP_STORED):
    """Return an npz file with these members; names may be repeated."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, data in pairs:
            info = zipfile.ZipInfo(name)
            info.compress_type = compression
            archive.NameToInfo.pop(name, None)  # otherwise a repeated name warns
            archive.writestr(info, data)
    return file.getvalue()


def in_header(way):
    """A mutation of a JSON text, made to the description in an npz file."""
    def mutate(data, other, rng):
        """The file with another description."""
        pairs = members(data)
        text = bytes(np.load(io.BytesIO(dict(pairs)["header.npy"])))
        header = npy(np.frombuffer(way(text, b"{}", rng), dtype=np.uint8))
        return archived([(name, header if name == "header.npy" else held) for name, held in pairs])
    return mutate


def in_line(way):
    """Return a mutation of one line of a text; lines that are no JSON get flipped bytes."""
    def mutate(data, other, rng):
        """Change one line."""
        lines = data.split(b"\n")
        number = rng.integers(len(lines))
        try:
            lines[number] = way(lines[number], other, rng)
        except ValueError:
            lines[number] = flip(lines[number], other, rng)
        return b"\n".join(lines)
    return mutate


def shuffle(data, other, rng):
    """Members repeated, renamed, dropped, compressed or put in another order."""
    pairs = members(data)
    way = rng.integers(5)
    if way == 0:
        pairs += pairs[:rng.integers(1, 3)] * int(rng.integers(1, 200))
    elif way == 1:
        pairs = [(name.replace("array0", "array7"), held) for name, held in pairs]
    elif way == 2:
        pairs = pairs[:-1]
    elif way == 3:
        pairs = pairs[::-1]
    return archived(pairs, zipfile.ZIP_DEFLATED if way == 4 else zipfile.ZIP_STORED)


def reshape(data, other, rng):
    """The shape or type of a member replaced by an extreme one."""
    pairs = members(data)
    shapes = ["(2**40,)", "(10000000000, 1)", "(4294967296, 4294967296)", "(0, 1000000000000)", "()", "(1, " * 20 + ")"]
    types = ["'<i8'", "'|O'", "[('a', '<i8')]", "'<U1000000'", "'|V8'", "'<f8'", "'>u8'"]
    header = (f"{{'descr': {types[rng.integers(len(types))]}, 'fortran_order': {bool(rng.integers(2))}, "
              f"'shape': {shapes[rng.integers(len(shapes))]}, }}")
    number = rng.integers(len(pairs))
    pairs[number] = pairs[number][0], npy_bytes(header, b"\0" * 64)
    return archived(pairs)


def npy(array):
    """Return the bytes of a member that contains an array."""
    return stored(lambda file: np.save(file, array))


def npy_bytes(header, data):
    """Return the bytes of a member with an arbitrary header."""
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


TEXT_WAYS = {"flipped bytes": flip, "cut": cut, "spliced": splice, "extreme fields": replace,
             "rearranged entries": rearrange}
LINE_WAYS = {"flipped bytes": flip, "cut": cut, "spliced": splice, "extreme fields": in_line(replace),
             "rearranged entries": in_line(rearrange)}
MEMBER_WAYS = {"flipped bytes": flip, "cut": cut, "spliced": splice, "extreme fields": in_header(replace),
               "rearranged entries": in_header(rearrange), "rearranged members": shuffle,
               "extreme shapes": reshape, "flipped description": in_header(flip)}
