"""Reports in JSON lines and CSV: honest lines are read, hostile or repeated ones become rows that are dropped."""

import csv
import io
import json
import time

import numpy as np
import pytest

from skldp import LDPGaussian
from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols import CategoryProtocol, ValueProtocol, _report_lines, load_reports, save_reports
from tests.protocols.registry import CASES, NOISY

VALUES = ValueProtocol(epsilon=1.0, bounds=(0, 10))
PETS = CategoryProtocol(categories=("cat", "dog", "fish"))


def submission(number):
    return f"{number:032x}"


def objects(protocol, reports):
    """What pages send, as dicts."""
    return [{"protocol": protocol.id, "submission": submission(place), "report": np.ravel(report).tolist()}
            for place, report in enumerate(reports)]


def json_lines(sent):
    return "\n".join(line if isinstance(line, str) else json.dumps(line) for line in sent).encode()


def csv_lines(sent, names=("protocol", "submission", "report")):
    file = io.StringIO()
    writer = csv.DictWriter(file, names)
    writer.writeheader()
    writer.writerows({name: json.dumps(row[name]) if name == "report" else row.get(name, "x") for name in names}
                     for row in sent)
    return file.getvalue().encode()


def load(text, protocol):
    return load_reports(io.BytesIO(text), protocol)[0]


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("form", [json_lines, csv_lines])
def test_reports_of_every_protocol_are_read(form, name):
    case = CASES[name]
    found, protocol = load_reports(io.BytesIO(form(objects(case.protocol, case.reports))), case.protocol)
    assert protocol is case.protocol and found.tolist() == case.reports.tolist()
    impossible = load(json_lines(["{}"]), case.protocol)
    assert impossible.shape == (1, case.protocol.width) and not case.protocol.check(impossible).any()


def hostile(protocol):
    """Lines that are no reports, each for a reason of its own."""
    good = {"protocol": protocol.id, "submission": submission(10**6), "report": [3]}
    yield "not JSON", "hello"
    yield "half a line", json.dumps(good)[:40]
    yield "a number", "3"
    yield "a list", json.dumps([good])
    yield "deep", "[" * 900
    yield "a name twice", json.dumps(good)[:-1] + ', "report": [4]}'
    yield "not UTF-8", "\udcff"
    yield "infinity", json.dumps({**good, "report": [float("inf")]})
    for name in good:
        yield f"no {name}", json.dumps({key: value for key, value in good.items() if key != name})
    for value in ("", "0" * 32, None, 7, [good["protocol"]], good["protocol"].upper() + "x"):
        yield f"protocol {value}", json.dumps({**good, "protocol": value})
    for value in ("", "g" * 32, submission(7)[1:], submission(7).upper() + " ", None, 7, ["a"], "A" * 32):
        yield f"submission {value}", json.dumps({**good, "submission": value})
    for value in ([], [3, 4], 3, "3", None, {}, [3.0], [True], ["3"], [None], [[3]], [-129], [1153], [2**63], [-2**70],
                  [10**400], [1e308]):
        yield f"report {str(value)[:20]}", json.dumps({**good, "report": value})
    yield "long", json.dumps({**good, "padding": "x" * 10_000})
    yield "many digits", json.dumps({**good, "report": ["@"]}).replace('"@"', "1" * 5000)


HOSTILE = dict(hostile(VALUES))


@pytest.mark.parametrize("reason", HOSTILE)
def test_a_hostile_line_is_dropped_alone_and_counted(reason):
    line = HOSTILE[reason]
    honest = objects(VALUES, VALUES.privatize(np.full(5, 3.0)))
    text = json_lines(honest[:3]) + b"\n" + line.encode("utf-8", "surrogateescape") + b"\n" + json_lines(honest[3:])
    reports = load(text, VALUES)
    assert VALUES.check(reports).tolist() == [True] * 3 + [False] + [True] * 2
    total = VALUES.aggregate(reports, on_invalid="drop")
    assert (total.n_reports, total.n_rejected) == (5, 1)
    with pytest.raises(InvalidReportError, match=r"1 of 6 reports could not have come from ValueProtocol \(rows 3\)"):
        VALUES.aggregate(reports)


def test_a_hostile_first_line_does_not_change_how_the_others_are_read():
    honest = json_lines(objects(VALUES, [[3], [4]]))
    header = b"protocol,submission"
    for line in (b"hello", b"a,b,c", header, header + b",report,report", b"x" * 5000, b"\xff"):
        assert VALUES.check(load(line + b"\n" + honest, VALUES)).tolist() == [False, True, True]
    assert VALUES.check(load(b"protocol,submission,report\n" + honest, VALUES)).tolist() == [True, True]


def test_a_repeated_submission_counts_once():
    first, second, third = objects(VALUES, [[3], [4], [5]])
    impossible = {**third, "report": [5000]}
    repeated = {**first, "report": [9]}
    reports = load(json_lines([impossible, first, second, first, repeated, third, third]), VALUES)
    assert VALUES.check(reports).tolist() == [False, True, True, False, False, True, False]
    assert reports[VALUES.check(reports), 0].tolist() == [3, 4, 5], "the first valid report of a submission is kept"


def test_bits_are_read():
    reports = load(json_lines(objects(PETS, [[0, 1, 0], [0, 2, 0], [1, 1, 0], [0, 1, -1], [0, 256, 0]])), PETS)
    assert reports.dtype == np.uint8 and PETS.check(reports).tolist() == [True] + [False] * 4


def test_other_columns_byte_order_mark_and_line_ends_of_a_csv_file():
    sent = objects(VALUES, [[3], [4]])
    names = ("received", "report", "submission", "protocol")
    text = b"\xef\xbb\xbf" + csv_lines(sent, names) + b"\r\n\r\n"
    assert load(text, VALUES)[:, 0].tolist() == [3, 4]


def test_an_open_quotation_mark_in_a_csv_file_does_not_swallow_the_lines_after_it():
    lines = csv_lines(objects(VALUES, [[3], [4], [5]])).splitlines()
    for bad in (b'"', b'x,"y', b"a,b", b"a,b,c,d", b',,"[3]"', b'%s,%s,"[3]} {"' % (VALUES.id.encode(), b"0" * 32)):
        reports = load(b"\n".join([*lines[:2], bad, *lines[2:]]), VALUES)
        assert VALUES.check(reports).tolist() == [True, False, True, True]


def test_blocks_of_lines_are_joined(monkeypatch):
    monkeypatch.setattr(_report_lines, "_BLOCK", 4)
    for n in (1, 4, 9):
        sent = objects(VALUES, np.arange(n)[:, None])
        assert load(json_lines(sent), VALUES)[:, 0].tolist() == list(range(n))


def test_a_text_file_needs_its_protocol():
    with pytest.raises(InvalidReportError, match="pass the protocol, too"):
        load_reports(io.BytesIO(json_lines(objects(VALUES, [[3]]))))
    with pytest.raises(InvalidParameterError, match='mode "rb"'):
        load_reports(io.StringIO("{}"), VALUES)


def test_a_path_is_read_and_fitted(tmp_path):
    model = LDPGaussian(epsilon=1.0, bounds=(0, 10), inference="laplace", random_state=0)
    protocol = model.protocol()
    sent = objects(protocol, model.privatize(np.random.default_rng(0).normal(4, 1, size=(3000, 1))))
    (tmp_path / "reports.jsonl").write_bytes(json_lines([*sent, *sent[:7], "hello"]))
    model.fit_reports(load_reports(tmp_path / "reports.jsonl", protocol)[0], on_invalid="drop")
    assert (model.n_reports_, model.n_rejected_) == (3000, 8)
    mean = model.mean_
    for path in (tmp_path / "reports.jsonl", str(tmp_path / "reports.jsonl")):
        model.fit_reports(path, on_invalid="drop")
        assert (model.n_reports_, model.n_rejected_, model.mean_) == (3000, 8, mean)
    with pytest.raises(InvalidReportError, match="8 of 3008 reports"):
        model.fit_reports(tmp_path / "reports.jsonl")


@pytest.mark.parametrize("form", [json_lines, csv_lines])
def test_an_estimator_reads_the_number_of_columns_off_the_lines(form, tmp_path):
    model = LDPGaussian(epsilon=2.0, bounds=(0, 10), inference="laplace", random_state=0)
    protocol = model.protocol(n_features=3)
    sent = objects(protocol, model.privatize(np.random.default_rng(0).normal(4, 1, size=(500, 3))))
    hostile = {"protocol": model.protocol(n_features=1).id, "submission": submission(10**6), "report": [3]}
    (tmp_path / "reports").write_bytes(form([hostile, *sent]))
    total = model.aggregate(tmp_path / "reports", on_invalid="drop")
    assert (total.n_reports, total.n_rejected, total.protocol) == (500, 1, protocol)
    save_reports(tmp_path / "reports.npz", model.privatize(np.full((7, 3), 4.0)), protocol)
    assert model.aggregate(tmp_path / "reports.npz").n_reports == 7
    with pytest.raises(InvalidReportError, match="belong to the protocol"):
        LDPGaussian(epsilon=1.0, bounds=(0, 10)).aggregate(tmp_path / "reports.npz")
    (tmp_path / "reports").write_text("hello\n")
    with pytest.raises(InvalidReportError, match="first thousand lines"):
        model.aggregate(tmp_path / "reports")


def test_many_short_lines_take_little_time():
    start = time.process_time()
    reports = load(b"{}\n" * 200_000 + json_lines(objects(VALUES, [[3]])), VALUES)
    assert time.process_time() - start < 1  # 3 s if each line were parsed
    assert len(reports) == 200_001 and VALUES.check(reports).sum() == 1


def test_long_lines_take_neither_memory_nor_time():
    # 30 MB without an end of line, then an honest report.
    text = b"[" * 30_000_000 + b"\n" + json_lines(objects(VALUES, [[3]]))
    start = time.process_time()
    assert VALUES.check(load(text, VALUES)).tolist() == [False, True]
    assert time.process_time() - start < 1
