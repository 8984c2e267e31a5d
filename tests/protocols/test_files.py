"""Files of reports and of aggregates: complete, checked, and a clear error for anything else."""

import io
import json
import math

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols import (
    Aggregate,
    CategoryProtocol,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    RecordProtocol,
    ValueProtocol,
    load_reports,
    save_reports,
)

X, Y = np.full((20, 2), 0.3), np.linspace(-1, 1, 20)
CASES = {
    "value": (ValueProtocol(), X[:, :1], None),
    "laplace": (ValueProtocol(mechanism="laplace", n_features=2), X, None),
    "subset": (CategoryProtocol(categories=tuple("abcdefghijk")), [["c"]] * 20, None),
    "unary": (CategoryProtocol(categories=tuple(range(9)), mechanism="oue"), [[3]] * 20, None),
    "response": (CategoryProtocol(categories=(0, 1, 2), mechanism="rr"), [[1]] * 20, None),
    "moments": (MomentProtocol(n_features=2), X, Y),
    "noisy moments": (MomentProtocol(n_features=2, mechanism="gaussian"), X, Y),
    "records": (RecordProtocol(n_features=2), X, Y),
    "labels": (LabelMomentProtocol(n_features=2), X, (Y > 0).astype(int)),
    "labelled records": (LabelRecordProtocol(n_features=2), X, (Y > 0).astype(int)),
    "no noise": (ValueProtocol(epsilon=math.inf), X[:, :1], None),
}
cases = pytest.mark.parametrize("name", CASES)


def made(name):
    protocol, X, y = CASES[name]
    return protocol, protocol._randomize(X, y, 0)


def test_bits_are_packed(tmp_path):
    protocol = CategoryProtocol(categories=tuple(range(160)), mechanism="oue")
    reports = protocol._randomize(np.zeros((5000, 1), dtype=int), None, 0)
    save_reports(tmp_path / "reports.npz", reports, protocol)
    assert (tmp_path / "reports.npz").stat().st_size < 1.02 * reports.size / 8 + 4096


def test_an_impossible_report_is_not_written(tmp_path):
    protocol, reports = made("value")
    (tmp_path / "old.npz").write_bytes(b"kept")
    with pytest.raises(InvalidReportError, match="rows 0"):
        save_reports(tmp_path / "old.npz", reports.astype(int) + 10**6, protocol)
    assert (tmp_path / "old.npz").read_bytes() == b"kept"


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    protocol, reports = made("value")
    save_reports(tmp_path / "reports.npz", reports, protocol)
    before = (tmp_path / "reports.npz").read_bytes()

    def full(*_, **__):
        raise OSError("no space left")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(OSError, match="no space"):
        save_reports(tmp_path / "reports.npz", reports, protocol)
    assert (tmp_path / "reports.npz").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["reports.npz"]


def test_reports_of_another_protocol(tmp_path):
    protocol, reports = made("value")
    save_reports(tmp_path / "reports.npz", reports, protocol)
    with pytest.raises(InvalidReportError, match="belong to the protocol"):
        load_reports(tmp_path / "reports.npz", ValueProtocol(epsilon=2.0))


def stored(save):
    file = io.BytesIO()
    save(file)
    return file.getvalue()


READERS = {"reports": load_reports, "aggregate": Aggregate.load}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("name", ["value", "subset", "moments", "labelled records"])
def test_truncated_files_are_refused(kind, name):
    protocol, reports = made(name)
    if kind == "reports":
        whole = stored(lambda file: save_reports(file, reports, protocol))
    else:
        whole = stored(protocol.aggregate(reports).save)
    READERS[kind](io.BytesIO(whole))
    for end in [0, 1, 10, len(whole) // 3, len(whole) // 2, len(whole) - 30, len(whole) - 1]:
        with pytest.raises(InvalidReportError, match="cut short"):
            READERS[kind](io.BytesIO(whole[:end]))


@pytest.mark.parametrize("kind", READERS)
def test_files_of_other_programs_are_refused(kind, tmp_path):
    np.savez(tmp_path / "foreign.npz", numbers=np.arange(3))
    np.save(tmp_path / "array.npy", np.arange(3))
    np.savez(tmp_path / "objects.npz", header=np.array([{"a": 1}], dtype=object))
    (tmp_path / "text.txt").write_text("hello")
    for name in ("foreign.npz", "array.npy", "objects.npz", "text.txt"):
        with pytest.raises(InvalidReportError, match="not an? .*file"):
            READERS[kind](tmp_path / name)
    with pytest.raises(FileNotFoundError):
        READERS[kind](tmp_path / "absent.npz")


def test_a_file_of_the_other_kind_is_refused(tmp_path):
    protocol, reports = made("value")
    save_reports(tmp_path / "reports.npz", reports, protocol)
    protocol.aggregate(reports).save(tmp_path / "sums.npz")
    with pytest.raises(InvalidReportError, match="foreign"):
        Aggregate.load(tmp_path / "reports.npz")
    with pytest.raises(InvalidReportError, match="foreign"):
        load_reports(tmp_path / "sums.npz")


def changed(text, **changes):
    description = json.loads(text)
    for path, value in changes.items():
        place = description
        *way, last = path.split("__")
        for step in way:
            place = place[int(step) if step.isdigit() else step]
        place[last] = value
    return json.dumps(description)


@pytest.mark.parametrize("changes, message", [
    ({"version": 2}, "version 2"),
    ({"format": "skldp-protocol"}, "foreign"),
    ({"n_rejected": -1}, "damaged"),
    ({"n_rejected": 1.5}, "damaged"),
    ({"parts": []}, "damaged"),
    ({"parts": 7}, "damaged"),
    ({"parts__0__id": "0123456789abcdef"}, "changed"),
    ({"parts__0__protocol__epsilon": 2.0}, "changed"),
    ({"parts__0__protocol__epsilon": -1.0}, "epsilon must be positive"),
    ({"parts__0__protocol__kind": "Nonsense"}, "kind"),
    ({"parts__0__tally": {}}, "damaged"),
    ({"parts__0__tally__kind": "nonsense"}, "damaged"),
    ({"parts__0__tally__n_reports": "many"}, "damaged"),
    ({"parts__0__tally__sums": {"dtype": "int64", "shape": [3], "data": "AAAA"}}, "damaged"),
    ({"parts__0__tally__sums": {"dtype": "float64", "shape": [1], "data": "AAAAAAAAAAA="}}, "damaged"),
    ({"parts__0__tally__sums": {"dtype": "int64", "shape": [1], "data": "AAAAAAAAAAA="}}, "does not hold sums"),
    ({"parts__0__tally__sums": {"dtype": "integer", "shape": [1], "data": [1.5]}}, "damaged"),
    ({"parts__0__tally__sums": {"member": "elsewhere"}}, "damaged"),
])
def test_changed_aggregates_are_refused(changes, message):
    protocol, reports = made("value")
    text = protocol.aggregate(reports).to_json()
    with pytest.raises((InvalidReportError, InvalidParameterError), match=message):
        Aggregate.from_json(changed(text, **changes))


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", '{"format": "skldp-aggregate", "version": 1}'])
def test_texts_that_are_not_aggregates_are_refused(text):
    with pytest.raises(InvalidReportError):
        Aggregate.from_json(text)


def test_impossible_rows_in_a_file_are_refused():
    protocol, reports = made("subset")
    text = protocol.aggregate(reports, keep_rows=True).to_json()
    rows = {"dtype": "uint8", "shape": [1, 2], "data": "//8="}  # all ones
    one = {"dtype": "int64", "shape": [1], "data": "FAAAAAAAAAA="}  # twenty times
    with pytest.raises(InvalidReportError, match="does not hold sums"):
        Aggregate.from_json(changed(text, parts__0__tally__rows=rows, parts__0__tally__multiplicity=one))


def test_sums_above_64_bits_survive_json():
    protocol, reports = made("records")
    total = protocol.aggregate(reports)
    for _ in range(48):
        total = total.merge(total, allow_repeats=True)
    back = Aggregate.from_json(total.to_json())
    assert back.n_reports == 20 * 2**48
    assert max(total.parts[protocol].sums.ravel()) > 2**64
    np.testing.assert_array_equal(back.parts[protocol].sums, total.parts[protocol].sums)
