"""Size limits: client and aggregator refuse too large input with a clear error, before anything is allocated."""

import io
import json
import pathlib
import re
import sys
import time
import tracemalloc
import zipfile
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from skldp._validation import _categories, _limits
from skldp._validation._categories import category_codes, check_list
from skldp._validation._limits import LIMITS
from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.mechanisms import (
    Gaussian,
    GaussianMoments,
    LabelledRecord,
    Laplace,
    RandomizedResponse,
    Sphere,
    SphereMoments,
    SquareWave,
    SubsetSelection,
    UnaryEncoding,
)
from skldp.protocols import (
    Aggregate,
    CategoryProtocol,
    CountRoundProtocol,
    GradientModel,
    GradientProtocol,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    Protocol,
    RecordProtocol,
    RoundProtocol,
    ValueProtocol,
    _aggregate_files,
    _members,
    _texts,
    load_reports,
    save_reports,
)
from skldp.protocols._tallies import Tally
from tests.protocols.test_files import changed, made, stored

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "security.rst"
VALUES = ValueProtocol(epsilon=1.0, bounds=(0, 10))


class Cheap:
    """Context that fails unless its block takes less than a second and 32 MB."""

    def __enter__(self):
        tracemalloc.start()
        self.start = time.process_time()

    def __exit__(self, *error):
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert time.process_time() - self.start < 1 and peak < 2**25


def test_the_guide_shows_the_limits():
    rows = re.findall(r"^``(MAX_\w+)`` +(\S+) +(.*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    shown = {name: (eval(size.strip("`").replace(",", "")), what) for name, size, what in rows}
    assert shown == LIMITS


def test_the_table_lists_every_limit():
    named = {name: value for name, value in vars(_limits).items() if name.startswith("MAX_")}
    assert named == {name: value for name, (value, _) in LIMITS.items()}


def test_the_limits_are_large_enough():
    assert _limits.MAX_CATEGORIES >= 2**24 and _limits.MAX_CELLS >= 2**24 and _limits.MAX_LEVELS >= 2**24
    assert _limits.MAX_FEATURES >= 4096 and _limits.MAX_COHORTS >= 1024 and _limits.MAX_CLASSES >= 1000


@pytest.mark.parametrize("make, limit", [
    (lambda n: ValueProtocol(n_features=n), 4096),
    (lambda n: CategoryProtocol(n_features=n, categories=[[0] * min(n, 10), [1] * min(n, 10)]), None),
    (lambda n: GradientProtocol(n_features=n), 4096),
    (lambda n: RecordProtocol(n_features=n), 4096),
    (lambda n: LabelRecordProtocol(n_features=n), 4096),
    (lambda n: MomentProtocol(n_features=n), None),
    (lambda n: LabelMomentProtocol(n_features=n), None),
    (lambda n: LabelledRecord(n_features=n), 4096),
    (lambda n: Gaussian(n_features=n), 2**20),
    (lambda n: Sphere(n_features=n), 2**20),
    (lambda n: Laplace(n_levels=n), 2**24),
    (lambda n: SquareWave(n_levels=n), 2**24),
    (lambda n: ValueProtocol(n_levels=n), 2**24),
    (lambda n: RandomizedResponse(n_categories=n), 2**24),
    (lambda n: SubsetSelection(n_categories=n), 2**24),
    (lambda n: UnaryEncoding(n_categories=n), 2**24),
], ids=range(16))
def test_limits_of_parameters(make, limit):
    with Cheap():
        if limit is not None:
            make(limit)
        for size in ((limit or 4096) + 1, 10**9, 10**400):
            with pytest.raises(InvalidParameterError, match=f"between 1 and {limit or 4096}"):
                make(size)


@pytest.mark.parametrize("cls", [SphereMoments, GaussianMoments])
def test_the_number_of_moments_is_limited(cls):
    assert cls(epsilon=20.0, n_features=1445).n_moments == 1_047_627
    for n_features in (1446, 4096):
        with pytest.raises(InvalidParameterError, match="moments, and a report may have 1048576"):
            cls(epsilon=20.0, n_features=n_features)


def test_the_size_of_a_report_of_score_and_curvature_is_limited():
    with Cheap():
        for n_features in (1446, 4096):
            for make in (RoundProtocol, CountRoundProtocol):
                with pytest.raises(InvalidParameterError, match="entries, and it may have 1048576"):
                    make(n_features=n_features)
        with pytest.raises(InvalidParameterError, match="entries, and it may have 1048576"):
            RoundProtocol(classes=tuple(range(1000)), n_features=1000)
        for name in ("theta", "centre", "transform"):
            with pytest.raises(InvalidParameterError, match=f"{name} must have at most 1048576 entries"):
                RoundProtocol(**{name: range(10**9)})


@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("intercept_weight", [0.0, 0.5])
def test_the_number_of_moments_matches_the_list_of_entries(labelled, intercept_weight):
    for n_features in (1, 2, 7):
        mechanism = SphereMoments(n_features=n_features, labelled=labelled, intercept_weight=intercept_weight)
        assert mechanism.n_moments == len(mechanism.places[0])


def test_limit_of_cells_over_all_columns():
    assert ValueProtocol(n_features=4096, n_levels=4096).cells.n_cells > 4096
    assert ValueProtocol(n_levels=2**24, window=1.0).cells.n_cells == 3 * 2**24 + 1
    ValueProtocol(mechanism="laplace", n_features=4096)  # several levels share a cell
    with pytest.raises(InvalidParameterError, match="335544320 cells to count, and there may be 16777216"):
        ValueProtocol(n_features=20, n_levels=2**24)


def test_limits_of_categories_and_classes(monkeypatch):
    monkeypatch.setattr("skldp._validation._categories.MAX_CATEGORIES", 10)
    CategoryProtocol(categories=tuple(range(10)))
    with pytest.raises(InvalidParameterError, match="categories must have at most 10 entries, got 11"):
        CategoryProtocol(categories=tuple(range(11)))
    for protocol in (GradientProtocol, LabelMomentProtocol, LabelRecordProtocol, RoundProtocol):
        with pytest.raises(InvalidParameterError, match="classes must have at most 1000 entries, got 1001"):
            protocol(classes=tuple(range(1001)))


def test_a_short_aggregate_of_a_large_protocol_is_refused_cheaply():
    tally = {"kind": "reports", "n_reports": 1, "reports": {"dtype": "int8", "shape": [1, 1], "data": "AA=="}}
    for levels, features in ((2**24, 1), (2**10, 4096)):
        protocol = ValueProtocol(n_levels=levels, n_features=features)
        text = json.loads(Aggregate({VALUES: Tally(0, np.zeros((1, 1)))}).to_json())
        text["parts"] = [{"protocol": json.loads(protocol.to_json()), "id": protocol.id, "tally": tally}]
        with Cheap(), pytest.raises(InvalidReportError, match="does not hold sums"):
            Aggregate.from_json(json.dumps(text))


def test_a_billion_columns_are_refused_cheaply():
    text = GradientProtocol().to_json()
    with Cheap(), pytest.raises(InvalidParameterError, match="n_features must be between 1 and 4096"):
        Protocol.from_json(changed(text, n_features=10**9))


@pytest.mark.parametrize("text, message", [
    ("[" * 33 + "]" * 33, "more than 32 nested brackets"),
    ('{"a": ' * 10**5, "more than 32 nested brackets"),
    ('{"a": ' + "9" * 1001 + "}", "more than 1000 digits"),
    ('{"a": ' + "9" * 10**6 + "}", "more than 1000 digits"),
    ("[" * 32 + "]" * 32, "JSON of another kind"),
    ('{"a": "' + "[" * 100 + '"}', "format"),  # brackets inside a string do not count
    ('{"a": "\\"' + "[" * 100 + '"}', "format"),
    ('{"a": "' + '\\"' * 10**5, "not JSON"),
])
def test_limits_of_json_texts(text, message):
    for reader in (Protocol.from_json, Aggregate.from_json):
        for form in (text, text.encode(), text.encode("utf-16")):
            with Cheap(), pytest.raises((InvalidParameterError, InvalidReportError), match=message):
                reader(form)


def test_limit_of_the_length_of_texts(monkeypatch):
    text = VALUES.to_json()
    monkeypatch.setattr(_texts, "MAX_JSON_LENGTH", len(text))
    assert Protocol.from_json(text) == VALUES
    with pytest.raises(InvalidParameterError, match=f"at most {len(text)} are read"):
        Protocol.from_json(text + " ")
    with pytest.raises(InvalidParameterError, match=f"at most {len(text)} are read"):
        GradientModel.from_json("[" + "0," * len(text))


def test_long_numbers_in_a_long_text_without_pythons_own_limit(monkeypatch):
    monkeypatch.setattr(_texts, "_SHORT_TEXT", 10)
    monkeypatch.setattr(sys, "get_int_max_str_digits", lambda: 0)
    with pytest.raises(InvalidParameterError, match="more than 1000 digits"):
        Protocol.from_json('{"a": ' + "9" * 1001 + "}")


def test_bytes_that_are_not_text_are_refused():
    with pytest.raises(InvalidParameterError, match="not JSON"):
        Protocol.from_json(VALUES.to_json().encode() + b"\xff")


def test_limits_of_models():
    start = json.loads(GradientProtocol(n_features=4096).start().to_json())
    assert len(GradientModel.from_json(json.dumps(start)).theta) == 4097
    with pytest.raises(InvalidParameterError, match=f"{2**20 + 1} parameters"):
        GradientModel.from_json(json.dumps({**start, "theta": [0] * (2**20 + 1)}))
    with Cheap(), pytest.raises(InvalidParameterError, match="brackets"):
        GradientModel.from_json("[" * 10**6)


def test_limits_of_counts_and_cohorts(monkeypatch):
    text = VALUES.aggregate([]).to_json()
    for field in ("n_rejected", "parts__0__tally__n_reports"):
        with pytest.raises(InvalidReportError, match=f"above {2**53}"):
            Aggregate.from_json(changed(text, **{field: 2**53 + 1}))
    assert Aggregate.from_json(changed(text, n_rejected=2**53)).n_rejected == 2**53
    with Cheap(), pytest.raises(InvalidReportError, match="1025 parts, and at most 1024"):
        Aggregate.from_json(changed(text, parts=[{}] * 1025))
    monkeypatch.setattr(_aggregate_files, "MAX_COHORTS", 2)
    two = VALUES.aggregate([]) + ValueProtocol(epsilon=2.0, bounds=(0, 10)).aggregate([])
    assert len(Aggregate.from_json(two.to_json()).parts) == 2


def rewritten(data, change, compression=zipfile.ZIP_STORED):
    """Return an npz file after a change to the dict of its members."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return io.BytesIO(file.getvalue())


def saved_reports():
    protocol, reports = made("value")
    return stored(lambda file: save_reports(file, reports, protocol))


def header_of(text):
    text = text.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text


@pytest.mark.parametrize("header, data", [
    ("{'descr': '<i8', 'fortran_order': False, 'shape': (1000000000, 1), }", b"\0" * 8),
    ("{'descr': '<i2', 'fortran_order': False, 'shape': (0, 1000000000000000000000), }", b""),
    ("{'descr': '|O', 'fortran_order': False, 'shape': (1, 1), }", b"\0" * 8),
    ("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1, 1), }", b"\0" * 8),
    ("{'descr': '<f8', 'fortran_order': False, 'shape': (1, 1), }", b"\0" * 8),
    ("{'descr': '<U1000000', 'fortran_order': False, 'shape': (1, 1), }", b"\0" * 8),
    ("{'descr': '<i8', 'fortran_order': False, 'shape': (10**9, 1), }", b"\0" * 8),
    ("(" * 100, b""),
])
def test_wrong_shapes_and_types_of_members_are_refused(header, data):
    with Cheap(), pytest.raises(InvalidReportError, match="cut short or changed"):
        member = {"reports.npy": header_of(header) + data}
        load_reports(rewritten(saved_reports(), lambda members: members.update(member)))


@pytest.mark.parametrize("extra", ["array10000.npy", "x.npy", "../reports.npy", "array00.npy", "array1", "Header.npy"])
def test_members_with_unexpected_names_are_refused(extra):
    with pytest.raises(InvalidReportError, match="cut short or changed"):
        load_reports(rewritten(saved_reports(), lambda members: members.update({extra: members["reports.npy"]})))


def test_limits_of_members_and_bytes(monkeypatch):
    data = saved_reports()
    total = rewritten(data, lambda members: None)
    monkeypatch.setattr(_members, "MAX_MEMBERS", 1)
    with pytest.raises(InvalidReportError, match="cut short or changed"):
        load_reports(total)
    monkeypatch.setattr(_members, "MAX_MEMBERS", 2)
    load_reports(total)
    monkeypatch.setattr(_members, "MAX_FILE_BYTES", 500)
    with pytest.raises(InvalidReportError, match="cut short or changed"):
        load_reports(total)


def test_overlapping_members_are_refused():
    data = rewritten(saved_reports(), lambda members: members.update({"array0.npy": members["reports.npy"]})).getvalue()
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        places = {member.filename: member.header_offset for member in archive.infolist()}
    wrong, right = (places[name].to_bytes(4, "little") for name in ("array0.npy", "reports.npy"))
    entry = data.rindex(b"array0.npy") - 4  # the offset of a member comes before its name
    assert data[entry:entry + 4] == wrong
    shared = data[:entry] + right + data[entry + 4:]
    with pytest.raises(ValueError, match="overlap"):
        _members.read_members(io.BytesIO(shared))
    with pytest.raises(InvalidReportError, match="cut short or changed"):
        load_reports(io.BytesIO(shared))


def test_a_member_can_be_used_by_one_part_only():
    one = ValueProtocol(epsilon=2.0, bounds=(0, 10))
    data = stored((VALUES.aggregate([]) + one.aggregate([])).save)
    Aggregate.load(io.BytesIO(data))
    text = np.frombuffer(np.load(io.BytesIO(data))["header"].tobytes().replace(b"array1", b"array0"), dtype=np.uint8)
    file = stored(lambda file: np.save(file, text))
    with pytest.raises(InvalidReportError, match="damaged"):
        Aggregate.load(rewritten(data, lambda members: members.update({"header.npy": file})))


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_either_order_are_read(order):
    protocol, reports = made("laplace")
    data = stored(lambda file: save_reports(file, np.asarray(reports, order=order), protocol))
    found, _ = load_reports(io.BytesIO(data))
    np.testing.assert_array_equal(found, reports)
    assert found.flags.writeable and found.dtype == reports.dtype


def test_lookup_of_numbers_with_equal_hashes_is_fast():
    collide = [k * (2**61 - 1) for k in range(1, 20_000)]
    assert len({hash(number) for number in collide}) == 1
    rows = tuple((number, 0) for number in collide)
    start = time.process_time()
    protocol = CategoryProtocol(categories=collide, mechanism="rr")
    assert protocol.codes([collide[7], 1]).tolist() == [7, -1]
    protocol = CategoryProtocol(categories=rows, mechanism="rr", n_features=2)
    assert protocol.codes([rows[7], (1, 1)]).tolist() == [7, -1]
    assert time.process_time() - start < 2


def test_rows_of_categories_are_read_twice_at_most(monkeypatch):
    # Once to check that they are distinct, once to find a record. A third time takes more than a second for 1 MB.
    keyed, key = [], _categories._key
    monkeypatch.setattr(_categories, "_key", lambda value: keyed.append(None) or key(value))
    rows = tuple((number, 0) for number in range(1000))
    published = CategoryProtocol(categories=rows, mechanism="rr", n_features=2).to_json()
    keyed.clear()
    assert Protocol.from_json(published).privatize([rows[7]]).shape == (1, 1)
    assert len(keyed) <= 2 * 3 * len(rows) + 3


def test_equal_numbers_are_one_category():
    known = check_list(["a", 1, 0.5, 2**70, 3])
    column = np.array([1.0, np.float64(0.5), Fraction(1, 2), Decimal(3), np.int64(3), float(2**70), 2**70 + 1, "1",
                       b"number 1.0", np.nan, None, Decimal("0.1"), 10**400, True, -0.0], dtype=object)
    assert category_codes(column, known).tolist() == [1, 2, 2, 4, 4, 3, -1, -1, -1, -1, -1, -1, -1, 1, -1]
    for values in (["a", 1, 1.0], [True, 1], [0.0, -0.0], [(1, "a"), (1.0, "a")], [2**70, float(2**70)]):
        with pytest.raises(InvalidParameterError, match="distinct"):
            check_list(values, 2 if isinstance(values[0], tuple) else 1)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 4.0, np.inf])
@pytest.mark.parametrize("d", [1, 2, 3, 9, 50])
def test_few_and_many_rows_give_the_same_subsets(monkeypatch, d, epsilon):
    mechanism, x = SubsetSelection(epsilon=epsilon, n_categories=d), np.arange(40) % (d + 1)
    few = mechanism.randomize(x, rng=3)
    monkeypatch.setattr("skldp.mechanisms._subset_selection._PLACES", 3)
    np.testing.assert_array_equal(mechanism.randomize(x, rng=3), few)
    monkeypatch.setattr("skldp.mechanisms._subset_selection._FEW_ROWS", 0)
    np.testing.assert_array_equal(mechanism.randomize(x, rng=3), few)


def test_range_of_ones_for_many_categories_is_cheap():
    with Cheap():
        fewest, most = UnaryEncoding(epsilon=1.0, n_categories=2**24).ones_range
    mean, deviation = 2**24 / (1 + np.e), np.sqrt(2**24 * np.e) / (1 + np.e)
    np.testing.assert_allclose([fewest, most], mean + deviation * np.array([-5.998, 5.998]), rtol=1e-6)
