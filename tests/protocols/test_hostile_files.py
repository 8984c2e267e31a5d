"""Files changed by an adversary or a bad disk: a clear error, and never wrong sums or raw values."""

import base64
import io
import json
import zipfile

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols import (
    Aggregate,
    CategoryProtocol,
    GradientProtocol,
    MomentProtocol,
    Protocol,
    ValueProtocol,
    load_reports,
    save_reports,
)
from skldp.protocols._tallies import PairTally, Tally
from tests.protocols.test_files import CASES, cases, changed, made, stored

VALUES = ValueProtocol(epsilon=1.0, bounds=(0, 10))
REFUSED = (InvalidReportError, InvalidParameterError)


@pytest.mark.parametrize("infinity", ["Infinity", "1e999", '"inf"'])
def test_clients_refuse_every_spelling_of_infinity(infinity):
    with pytest.raises(InvalidParameterError, match="no privacy at all"):
        Protocol.from_json(VALUES.to_json().replace('"epsilon": 1.0', f'"epsilon": {infinity}'))


@pytest.mark.parametrize("changes", [
    {"epsilon": 10**400}, {"bounds": [0, 10**400]}, {"mechanism": {}}, {"n_levels": {}}, {"n_levels": 0},
    {"kind": "RegressionProtocol"}, {"kind": "Protocol"}, {"window": []}, {"n_features": 1.5}])
def test_fields_of_an_impossible_type_or_size_are_refused(changes):
    with pytest.raises(InvalidParameterError):
        Protocol.from_json(changed(VALUES.to_json(), **changes))


def test_deeply_nested_fields_are_refused():
    nested = "[" * 2000 + "]" * 2000
    with pytest.raises(InvalidParameterError):
        Protocol.from_json(VALUES.to_json().replace("[0.0, 10.0]", nested))


@cases
def test_one_flipped_byte_never_changes_the_reports(name):
    protocol, reports = made(name)
    whole = bytearray(stored(lambda file: save_reports(file, reports, protocol)))
    rng = np.random.default_rng(0)
    for place in rng.choice(len(whole), size=60, replace=False):
        damaged = whole.copy()
        damaged[place] ^= 1 << int(rng.integers(8))
        try:
            found, of = load_reports(io.BytesIO(bytes(damaged)))
        except REFUSED:
            continue
        # Zip archives have bytes that are never read: times, and copies of names.
        assert of == protocol
        np.testing.assert_array_equal(found, reports)


def test_a_zip_bomb_is_not_unpacked():
    file = io.BytesIO()
    np.savez_compressed(file, header=np.zeros(10**6, dtype=np.uint8), reports=np.zeros(10**6, dtype=np.int16))
    file.seek(0)
    with pytest.raises(InvalidReportError, match="cut short or changed"):
        load_reports(file)


def test_members_that_are_not_arrays_are_refused():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("header", b"{}")
    file.seek(0)
    with pytest.raises(InvalidReportError):
        Aggregate.load(file)


def test_parts_of_the_same_protocol_do_not_overwrite_each_other():
    text = json.loads(VALUES.aggregate(VALUES._randomize([3.0], None, 0)).to_json())
    text["parts"] *= 2
    with pytest.raises(InvalidReportError, match="damaged"):
        Aggregate.from_json(json.dumps(text))


def integers(values, shape=None):
    return {"dtype": "integer", "shape": shape or [len(values)], "data": values}


@pytest.mark.parametrize("name", CASES)
def test_honest_sums_are_possible(name):
    protocol, reports = made(name)
    tally = protocol.aggregate(reports).parts[protocol]
    assert tally.fits(protocol)
    assert protocol.aggregate([]).parts[protocol].fits(protocol)


@pytest.mark.parametrize("mechanism, sums", [
    ("subset", [-5, 900, 3]), ("subset", [10, 10, 10]), ("oue", [11, 0, 0]), ("rr", [5, 5, 5]), ("rr", [-1, 1, 10])])
def test_impossible_counts_are_refused(mechanism, sums):
    protocol = CategoryProtocol(categories=("a", "b", "c"), mechanism=mechanism)
    tally = protocol.aggregate(protocol._randomize([["a"]] * 10, None, 0)).parts[protocol]
    raw = json.loads(Aggregate({protocol: Tally(tally.n_reports, tally.sums)}).to_json())
    data = base64.b64encode(np.array(sums, dtype="<i8").tobytes()).decode()
    raw["parts"][0]["tally"]["sums"] = {"dtype": "int64", "shape": [3], "data": data}
    with pytest.raises(InvalidReportError, match="does not hold sums"):
        Aggregate.from_json(json.dumps(raw))


@pytest.mark.parametrize("changes", [
    {(0, 1): +1}, {(0, 1): -10**6, (1, 0): -10**6}, {(0, 1): +300, (1, 0): +300}, {(0, 0): 2**62},
    {(0, 1): -150, (1, 0): -150}, {(0, 0): -400}], ids=str)
@pytest.mark.parametrize("mechanism", ["subset", "oue"])
def test_impossible_pairs_are_refused(mechanism, changes):
    protocol = CategoryProtocol(categories=tuple(range(6)), mechanism=mechanism, epsilon=0.5)
    tally = protocol.aggregate(protocol._randomize([[0]] * 400, None, 0)).parts[protocol]
    pairs = tally.pairs.copy()
    assert PairTally(400, pairs).fits(protocol)
    for place, change in changes.items():
        pairs[place] += change
    total = Aggregate({protocol: PairTally(400, pairs)})
    with pytest.raises(InvalidReportError, match="does not hold sums"):
        Aggregate.from_json(total.to_json())


@pytest.mark.parametrize("damage", [
    lambda pairs: pairs[:2, :2], lambda pairs: pairs.astype(np.int32), lambda pairs: pairs.ravel()], ids=range(3))
def test_pairs_of_a_wrong_shape_or_type_are_refused(damage):
    protocol = CategoryProtocol(categories=tuple(range(6)), mechanism="oue", epsilon=0.5)
    tally = protocol.aggregate(protocol._randomize([[0]] * 400, None, 0)).parts[protocol]
    assert not PairTally(400, damage(tally.pairs)).fits(protocol)
    wide = CategoryProtocol(categories=tuple(range(40)), mechanism="oue", epsilon=0.5)
    assert not PairTally(400, np.zeros((40, 40), dtype=np.int64)).fits(wide)


def test_sums_of_tallies_of_different_kinds():
    protocol = CategoryProtocol(categories=tuple(range(6)), mechanism="oue", epsilon=0.5)
    reports = protocol._randomize(np.arange(600)[:, None] % 6, None, 0)
    pieces = {"pairs": protocol.aggregate(reports[:200]).parts[protocol],
              "rows": protocol.aggregate(reports[200:], keep_rows=True).parts[protocol]}
    pieces["sums"] = pieces["rows"].only_sums()
    assert [piece.kind for piece in pieces.values()] == list(pieces)
    whole = reports.astype(np.int64).T @ reports
    for one, other in (("pairs", "rows"), ("rows", "pairs")):
        total = pieces[one] + pieces[other]
        assert total.kind == "pairs" and total.n_reports == 600 and (total.pairs == whole).all()
    for one, other in (("pairs", "sums"), ("sums", "pairs")):
        total = pieces[one] + pieces[other]
        assert total.kind == "sums" and total.n_reports == 600 and (total.sums == np.diag(whole)).all()
    many = CategoryProtocol(categories=tuple(range(6)), mechanism="oue").aggregate(np.tile(reports, (80, 1)))
    assert (next(iter(many.parts.values())).pairs == 80 * whole).all()  # in blocks


def test_impossible_moments_are_refused():
    protocol = MomentProtocol(n_features=2)
    raw = json.loads(protocol.aggregate(protocol._randomize([[0.1, 0.1]], [0.1], 0)).to_json())
    for size in (10**30, 10**400):
        raw["parts"][0]["tally"]["sums"] = integers([size] * protocol.width)
        with pytest.raises(InvalidReportError, match="does not hold sums"):
            Aggregate.from_json(json.dumps(raw))


def test_an_array_in_place_of_a_number_is_refused():
    raw = json.loads(VALUES.aggregate(VALUES._randomize([3.0], None, 0)).to_json())
    raw["parts"][0]["tally"]["n_reports"] = {"dtype": "int64", "shape": [1], "data": "BQAAAAAAAAA="}
    with pytest.raises(InvalidReportError):
        Aggregate.from_json(json.dumps(raw))


def test_numpy_numbers_can_be_published():
    protocol = CategoryProtocol(categories=(np.int64(1), np.int64(2)))
    assert Protocol.from_json(protocol.to_json()) == protocol
    assert Protocol.from_json(ValueProtocol(window=np.float32(0.25), n_levels=np.int64(64)).to_json()).n_levels == 64


def test_sparse_records_are_refused_by_gradients_too():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="Sparse"):
        GradientProtocol(n_features=1).privatize(sparse.csr_matrix([[0.1]]), [1])


def test_adding_an_empty_aggregate_keeps_the_rows():
    protocol, reports = made("subset")
    rows, empty = protocol.aggregate(reports, keep_rows=True), protocol.aggregate([])
    for total in (rows + empty, empty + rows):
        assert total.parts[protocol].kind == "rows"
