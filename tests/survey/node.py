"""The JavaScript client in Node: with given words, or with those of the system."""

import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy as np
import pytest

import skldp
from skldp.protocols import CategoryProtocol, SampledValueProtocol, ValueProtocol
from skldp.protocols._survey_page import survey_of

CLIENT = (pathlib.Path(skldp.__file__).parent / "survey" / "client.js").read_text(encoding="utf-8")
NODE = shutil.which("node") or shutil.which("nodejs")
needs_node = pytest.mark.skipif(NODE is None, reason="Node runs the JavaScript client; it is not installed here")

PRELUDE = """
globalThis.crypto ??= require("crypto").webcrypto;
const input = JSON.parse(require("fs").readFileSync(0, "utf8")), print = (value) => console.log(JSON.stringify(value));
// The client, or a changed copy of it.
const load = (text, module = {}) => (text ? (new Function("module", text)(module), module.exports) : skldp);
"""
# A source of given words, which counts the words that it was asked for.
SCRIPTED = """
function scripted(words, octets) {
  words = words.map(BigInt);
  const source = {
    n_words: 0, n_bytes: 0,
    words: (n) => { source.n_words += n; return words.splice(0, n); },
    bytes: (n) => { source.n_bytes += n; return octets.splice(0, n); },
  };
  return source;
}
"""
VECTORS = SCRIPTED + """
print(input.map(({ client, survey, cases }) => {
  const { read, privatize } = load(client), found = read(JSON.stringify(survey));
  return cases.map(({ answers, words, octets }) => {
    const source = scripted(words, octets), report = privatize(found, answers, source);
    return [report, source.n_words, source.n_bytes];
  });
}));
"""
LEVELS = """
print(input.map(({ client, survey, texts }) => {
  const { read, level } = load(client), { integers, protocol } = read(JSON.stringify(survey));
  return texts.map((text) => Number(level(text, integers, BigInt(protocol.n_levels))));
}));
"""
# The client's own source, asked for many words at once: one call for each report takes 30 times as long in Node.
COUNTS = """
function pooled(draw, size) {
  let pool = [], place = size;
  return (n) => {
    if (place + n > size) [pool, place] = [draw(size), 0];
    place += n;
    return pool.slice(place - n, place);
  };
}
const source = { words: pooled(skldp.system.words, 8192), bytes: pooled(skldp.system.bytes, 65536) };
const { survey, answers, n_reports } = input, read = skldp.read(JSON.stringify(survey)), counts = {};
for (let i = 0; i < n_reports; i++) {
  const report = skldp.privatize(read, answers, source).join(" ");
  counts[report] = (counts[report] ?? 0) + 1;
}
print(counts);
"""

PETS = ("cat", "dog", "fish", "newt", "owl")
PROTOCOLS = {
    "square wave": ValueProtocol(epsilon=1.0, bounds=(120, 220)),
    "square wave, small budget": ValueProtocol(epsilon=1e-3, bounds=(-1, 1)),
    "square wave, large budget": ValueProtocol(epsilon=20.0, bounds=(0, 1)),
    "square wave of counts": ValueProtocol(epsilon=2.0, bounds=(0, 20), n_levels=20),
    "square wave without a window": ValueProtocol(epsilon=1.0, bounds=(0.1, 0.7), n_levels=7, window=0.0),
    "square wave, fine grid": ValueProtocol(epsilon=1.0, bounds=(0, 1e6), n_levels=2**24),
    "split": ValueProtocol(epsilon=2.0, bounds=(0, 24), n_features=3),
    "sampled": SampledValueProtocol(epsilon=2.0, bounds=(0, 24), n_features=3),
    "randomised response": CategoryProtocol(epsilon=1.0, categories=PETS, mechanism="rr"),
    "randomised response of two": CategoryProtocol(epsilon=1e-3, categories=("no", "yes"), mechanism="rr"),
    "subset": CategoryProtocol(epsilon=1.0, categories=PETS),
    "subset of two": CategoryProtocol(epsilon=20.0, categories=(False, True)),
    "subset of many": CategoryProtocol(epsilon=0.5, categories=tuple(range(200))),
    "subset of all but one": CategoryProtocol(epsilon=1.0, categories=PETS, subset_size=4),
    "unary encoding": CategoryProtocol(epsilon=1.0, categories=PETS, mechanism="oue"),
    "unary encoding, large budget": CategoryProtocol(epsilon=20.0, categories=tuple(range(30)), mechanism="oue"),
    "subset of rows": CategoryProtocol(epsilon=1.0, n_features=2,
                                       categories=(("a", 1), ("a", 2), ("b", 1), ("c", 2))),
}


def run_node(program, given, client=CLIENT, timeout=300):
    """Return what a program prints, which has the client as ``skldp`` and given values as ``input``."""
    # From a file: programs given by "node -e" have another `crypto`, the module.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "program.js"
        path.write_text(client + PRELUDE + program, encoding="utf-8")
        done = subprocess.run([NODE, path], input=json.dumps(given), capture_output=True, text=True, timeout=timeout)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def draw_many(protocol, answers, n_reports, client=CLIENT):
    """Return distinct reports that Node draws from the system's words for one person, and how often each occurs."""
    counts = run_node(COUNTS, {"survey": survey_of(protocol), "answers": answers, "n_reports": n_reports}, client)
    rows = np.array([[int(entry) for entry in text.split()] for text in counts])
    return rows, np.array(list(counts.values()))
