"""Files and messages written by hand to use much memory or time of their receivers."""

import base64
import json
import struct
import zipfile
import zlib

import numpy as np
from _hostile import LINES, PROTOCOLS, archived, honest, members, npy, npy_bytes, renew_ids

from skldp.protocols._description import canonical, describe

EQUAL_HASHES = [k * (2**61 - 1) for k in range(1, 38_000)]  # these integers all have the hash 0 in Python


def crafted():
    """Return the kind and the bytes of every hand-written file, by name."""
    found = {}
    for name, changes in LARGE_PROTOCOLS.items():
        protocol = changed(PROTOCOLS[name.split(",")[0]][0], **changes)
        found[f"{name}, protocol"] = "protocol", json.dumps(protocol, separators=(",", ":")).encode()
        found[f"{name}, sums"] = "aggregate text", aggregate_of(protocol, "sums", sums=array([0]))
        found[f"{name}, kept reports"] = "aggregate text", aggregate_of(protocol, "reports", reports=array([[0]]))
        found[f"{name}, kept rows"] = "aggregate text", aggregate_of(
            protocol, "rows", rows=array([[0]], "uint8"), multiplicity=array([1]), width=1)
    return {**found, **_crafted_texts(), **_crafted_lines(), **_crafted_members()}


LARGE_PROTOCOLS = {
    "square wave, many levels": {"n_levels": 2**24, "window": 1.0},
    "square wave, many cells": {"n_levels": 2**24, "n_features": 20},
    "laplace, many levels": {"n_levels": 2**24, "n_features": 1, "epsilon": 20.0},
    "laplace, most features": {"n_features": 4096},
    "gaussian, most features": {"n_features": 4096, "epsilon": 20.0},
    "laplace, many features": {"n_features": 10**9},
    "gradients, many features": {"n_features": 10**9},
    "gradients, most features": {"n_features": 4096},
    "squared loss, many features": {"n_features": 10**9},
    "squared loss, most features": {"n_features": 4096},
    "moments, many features": {"n_features": 10**9},
    "moments, 4096 features": {"n_features": 4096, "epsilon": 20.0},
    "moments, most features": {"n_features": 1445, "epsilon": 20.0},
    "sphere, 4096 features": {"n_features": 4096, "epsilon": 20.0},
    "sphere, most features": {"n_features": 1445, "epsilon": 20.0},
    "records, most features": {"n_features": 4096, "epsilon": 20.0},
    "records, many features": {"n_features": 10**9},
    "labels, most features": {"n_features": 1445, "epsilon": 20.0},
    "labelled records, most features": {"n_features": 4096, "epsilon": 20.0},
    "rows, many features": {"n_features": 10**9},
    "subsets, many categories": {"categories": list(range(140_000)), "epsilon": 1e-6},
    "unary, many categories": {"categories": list(range(140_000)), "epsilon": 1e-6},
    "response, many categories": {"categories": list(range(140_000))},
    "response, equal hashes": {"categories": EQUAL_HASHES},
    "response, equal hashes of strings and numbers": {"categories": ["a", *EQUAL_HASHES]},
    "rows, equal hashes": {"categories": [[number, 0] for number in EQUAL_HASHES[:30_000]]},
    "response, equal categories": {"categories": [0] * 400_000},
    "gradients, many classes": {"classes": list(range(140_000))},
    "labels, many classes": {"classes": list(range(140_000))},
}


def changed(protocol, **changes):
    """Return the description of a protocol with some fields changed."""
    return {**describe(protocol), **changes}


def array(values, dtype="int64"):
    """Return an array in its JSON form."""
    values = np.array(values, dtype=dtype)
    return {"dtype": dtype, "shape": list(values.shape), "data": base64.b64encode(values.tobytes()).decode()}


def aggregate_of(protocol, kind, n_reports=1, copies=1, **fields):
    """Return the text of an aggregate with one tally, and with the protocol's id if it can be computed."""
    part = {"protocol": protocol, "id": "", "tally": {"kind": kind, "n_reports": n_reports, **fields}}
    tree = {"format": "skldp-aggregate", "version": 1, "n_rejected": 0, "parts": [part] * copies}
    renew_ids(tree)
    return json.dumps(tree, separators=(",", ":")).encode()


def _crafted_texts():
    value = canonical(describe(PROTOCOLS["square wave"][0]))
    plain = describe(PROTOCOLS["square wave"][0])
    texts = {
        "nested lists": "[" * 1_000_000,
        "nested objects": '{"a":' * 200_000,
        "nested lists in a field": value.replace("[-5.0, 5.0]", "[" * 400_000 + "]" * 400_000),
        "lists side by side": value.replace("[-5.0, 5.0]", "[" + "[]," * 300_000 + "[]]"),
        "objects side by side": value.replace("[-5.0, 5.0]", "[" + "{}," * 300_000 + "{}]"),
        "a string without an end": '{"a": "' + '\\"' * 500_000,
        "a number of a million digits": value.replace("1.0", "9" * 1_000_000),
        "numbers of a thousand digits": value.replace("[-5.0, 5.0]", "[" + ("9" * 1000 + ",") * 990 + "1]"),
        "a float of a million digits": value.replace("1.0", "0." + "1" * 1_000_000),
        "a large exponent": value.replace("1.0", "1e" + "9" * 900),
        "many unknown fields": "{" + ",".join(f'"{k:06}": 0' for k in range(80_000)) + "}",
    }
    found = {name: ("protocol", text.encode()) for name, text in texts.items()}
    model = json.loads(PROTOCOLS["gradients"][0].start().to_json())
    models = {"many parameters": [0.0] * 200_000, "a long text": "1" * 900_000, "too large": [1e308] * 3}
    for name, theta in models.items():
        found[f"model, {name}"] = "model", json.dumps({**model, "theta": theta}).encode()
    found["model, nested lists"] = "model", b"[" * 1_000_000
    cell = {"sums": array(np.zeros((1, 1281)))}
    found["many cohorts"] = "aggregate text", json.dumps({
        **json.loads(aggregate_of(plain, "sums", 0, 1, **cell)), "parts": [{}] * 200_000}).encode()
    found["equal cohorts"] = "aggregate text", aggregate_of(plain, "sums", 0, 70, **cell)
    found["10**400 reports"] = "aggregate text", aggregate_of(plain, "sums", 10**400, **cell)
    found["an array without data"] = "aggregate text", aggregate_of(
        plain, "sums", sums={"dtype": "int64", "shape": [2**40, 2**20], "data": ""})
    found["an array of many dimensions"] = "aggregate text", aggregate_of(
        plain, "sums", sums={"dtype": "int64", "shape": [1] * 300_000, "data": "AAAAAAAAAAA="})
    return found


def _crafted_lines():
    header = "protocol,submission,report\n"
    texts = {
        "empty lines": "\n" * 1_000_000, "short lines": "x\n" * 500_000, "short objects": "{}\n" * 300_000,
        "one long line": "[" * 1_000_000, "nested lists": ("[" * 900 + "\n") * 1_000,
        "quotation marks": header + '"' * 1_000_000, "lines of quotation marks": header + '"\n' * 500_000,
        "many cells": header + "," * 1_000_000, "lines of cells": header + (",," * 400 + "\n") * 1_200,
        "many digits": f'{{"protocol": "", "submission": "", "report": [{"9" * 990_000}]}}',
        "backslashes": ('{"a": "' + "\\" * 900 + "\n") * 1_000, "carriage returns": "{}\r" * 300_000,
    }
    return {f"{name} as {kind}": (kind, text.encode()) for name, text in texts.items() for kind in LINES}


def _crafted_members():
    whole = honest()["square wave, reports"][1]
    pairs, header = members(whole), dict(members(whole))["header.npy"]
    million, bomb = (npy(np.zeros(size, dtype=np.uint8)) for size in (900_000, 10**7))
    found = {
        "compressed": archived([*pairs[:1], ("reports.npy", bomb)], zipfile.ZIP_DEFLATED),
        "overlapping": overlapping(header, million, 2000),
        "strange names": archived([*pairs, *((f"x{k}.npy", b"") for k in range(4000))]),
        "many members": archived([*pairs, *((f"array{k}.npy", b"") for k in range(4000))]),
        "a shape beyond the data": archived([*pairs[:1], ("reports.npy", npy_bytes(
            "{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000, 1), }", b"\0" * 100))]),
        "a shape of zeros": archived([*pairs[:1], ("reports.npy", npy_bytes(
            "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 1000000000000), }", b""))]),
        "an evaluated header": archived([*pairs[:1], ("reports.npy", b"\x93NUMPY\x02\x00" + struct.pack("<I", 900_000)
                                                      + b"(" * 900_000)]),
        "a nested description": archived([("header.npy", npy(np.frombuffer(b"[" * 10**6, dtype=np.uint8)))]),
    }
    found = {f"reports, {name}": ("reports", data) for name, data in found.items()}
    protocol = changed(PROTOCOLS["unary"][0])
    tree = json.loads(aggregate_of(protocol, "rows", 80_000, 300, width=40, rows={"member": "array0"},
                                   multiplicity={"member": "array1"}))
    rows = np.full((80_000, 1), 128, dtype=np.uint8)  # packed subsets of one of two categories
    beside = [("array0.npy", npy(rows)), ("array1.npy", npy(np.ones(len(rows), dtype=np.int64)))]
    for number, part in enumerate(tree["parts"]):
        tree["parts"][number] = part = json.loads(json.dumps(part))
        part["protocol"]["epsilon"] = 1.0 + number / 1000
        part["protocol"]["categories"] = [0, 1]
        part["protocol"]["mechanism"] = "subset"
        part["tally"]["width"] = 2
    renew_ids(tree)
    text = np.frombuffer(json.dumps(tree).encode(), dtype=np.uint8)
    found["one member for many cohorts"] = "aggregate file", archived([("header.npy", npy(text)), *beside])
    return found


def overlapping(header, data, copies):
    """Return a zip archive in which many directory entries refer to the same bytes."""
    names = ["header.npy", *(f"array{number}.npy" for number in range(copies))]
    body, directory, places = b"", b"", {}
    for name, held in (("header.npy", header), ("array0.npy", data)):
        places[name] = len(body)
        body += _local(name, held) + held
    for name in names:
        held = header if name == "header.npy" else data
        place = places["header.npy" if name == "header.npy" else "array0.npy"]
        directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 20, 20, 0, 0, 0, 33, zlib.crc32(held), len(held),
                                 len(held), len(name), 0, 0, 0, 0, 0, place) + name.encode()
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(names), len(names), len(directory), len(body), 0)
    return body + directory + end


def _local(name, held):
    return struct.pack("<IHHHHHIIIHH", 0x04034B50, 20, 0, 0, 0, 33, zlib.crc32(held), len(held), len(held), len(name),
                       0) + name.encode()
