"""Common contract of all protocols."""

import copy
import io
import json
import math
import pickle
import warnings
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pandas as pd
import pytest

import skldp.protocols
from skldp.exceptions import InvalidParameterError, InvalidReportError, SeededNoiseWarning
from skldp.protocols import Aggregate, Protocol, load_reports, save_reports
from tests.protocols.registry import (
    BUDGET,
    CASES,
    N_RECORDS,
    NOISY,
    PLAIN,
    WITHOUT_COIN,
    choices,
    simulate,
    strange_rows,
)

every = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
noisy = pytest.mark.parametrize("case", [CASES[name] for name in NOISY], ids=NOISY)
without_coin = pytest.mark.parametrize("case", [CASES[name] for name in WITHOUT_COIN], ids=WITHOUT_COIN)

LARGEST = 1.7976931348623157e308
STRANGE = [math.nan, math.inf, -math.inf, 1e300, -1e300, LARGEST, -LARGEST, 5e-324, -0.0, 2**53, 10**400, -(10**400),
           17, 1j, None, "text", b"x", "1e999", "nan", object(), {}, (), frozenset(), pd.NA, pd.NaT]


def through_json(aggregate):
    return Aggregate.from_json(aggregate.to_json())


def through_npz(aggregate):
    file = io.BytesIO()
    aggregate.save(file)
    file.seek(0)
    return Aggregate.load(file)


def through_pickle(aggregate):
    return pickle.loads(pickle.dumps(aggregate))


def statistic(aggregate):
    """Numbers in the tallies of an aggregate, by protocol; kept reports are sorted."""
    found = {}
    for protocol, tally in aggregate.parts.items():
        found[protocol] = {field.name: np.asarray(getattr(tally, field.name)).tolist() for field in fields(tally)}
        if tally.kind == "reports":
            found[protocol]["reports"] = sorted(found[protocol]["reports"])
    return found


def distance(one, other):
    """Mean absolute difference of two arrays of reports."""
    return np.abs(one.astype(float) - other).mean()


def test_every_public_protocol_is_registered():
    public = (getattr(skldp.protocols, name) for name in skldp.protocols.__all__)
    kinds = {kind for kind in public if isinstance(kind, type) and issubclass(kind, Protocol)} - {Protocol}
    assert kinds == {case.kind for case in CASES.values()}
    for names in (NOISY, PLAIN):
        for kind in kinds:
            found = [CASES[name].protocol for name in names if CASES[name].kind is kind]
            for field in {"mechanism", "loss"} & {field.name for field in fields(kind)}:
                assert {getattr(protocol, field) for protocol in found} == choices(kind, field)


@noisy
def test_a_description_survives_json(case):
    protocol = case.protocol
    text = protocol.to_json()
    assert json.loads(text)["format"] == "skldp-protocol" and json.loads(text)["version"] == 1
    for sent in (text, text.encode()):
        back = Protocol.from_json(sent)
        assert type(back) is type(protocol) and back == protocol and hash(back) == hash(protocol)
        assert back.id == protocol.id and back.to_json() == text and repr(back) == repr(protocol)
    np.testing.assert_array_equal(simulate(back, case.X, case.y), case.reports)


@every
def test_clients_refuse_a_protocol_without_noise_and_aggregates_keep_it(case):
    protocol = case.protocol.with_epsilon(math.inf)
    with pytest.raises(InvalidParameterError, match="no privacy"):
        Protocol.from_json(protocol.to_json())
    back = through_json(protocol.aggregate([])).protocol
    assert back == protocol and back.id == protocol.id and back.to_json() == protocol.to_json()


@every
def test_protocols_compare_by_value_and_are_immutable(case):
    protocol = case.protocol
    for equal in (pickle.loads(pickle.dumps(protocol)), copy.copy(protocol), copy.deepcopy(protocol),
                  replace(protocol), case.kind(**case.options)):
        assert equal == protocol and hash(equal) == hash(protocol) and equal.id == protocol.id
        np.testing.assert_array_equal(simulate(equal, case.X, case.y), case.reports)
    for field in fields(protocol):
        with pytest.raises(FrozenInstanceError):
            setattr(protocol, field.name, getattr(protocol, field.name))
        assert f"{field.name}={getattr(protocol, field.name)!r}" in repr(protocol)


@every
def test_every_field_is_part_of_the_id(case):
    protocol = case.protocol
    others = [*case.others.values(), *case.cohorts.values(), protocol.with_epsilon(1.7)]
    if protocol.delta:
        others.append(replace(protocol, delta=protocol.delta / 2))
    if math.isfinite(protocol.epsilon):
        tables = getattr(protocol, "tables", ())
        other_values = {"window": 0.3, "intercept_weight": 0.45, "subset_size": 2, "design": (2003, 1001),
                        "designs": tuple((2003, 1001) for _ in tables), "shares": tuple(2 for _ in tables)}
        others += [replace(protocol, **{name: other_values[name]}) for name in protocol._automatic
                   if getattr(protocol, name) is not None]
    assert len({protocol, *others}) == len({other.id for other in [protocol, *others]}) == 1 + len(others)


def test_different_protocols_have_different_ids():
    protocols = {case.protocol for case in CASES.values()} | {case.kind() for case in CASES.values()}
    assert len({protocol.id for protocol in protocols}) == len(protocols)


@every
def test_another_budget_keeps_everything_else(case):
    protocol = case.protocol
    other = protocol.with_epsilon(1.7)
    assert type(other) is type(protocol) and other.epsilon == 1.7
    for field in fields(protocol):
        if field.name not in {"epsilon", *protocol._automatic} or field.name in case.options.keys() - BUDGET:
            assert getattr(other, field.name) == getattr(protocol, field.name), field.name
    assert other == case.kind(**{**case.options, "epsilon": 1.7})
    assert other.with_epsilon(protocol.epsilon) == protocol
    with pytest.raises(InvalidParameterError, match="epsilon"):
        protocol.with_epsilon(0)


@every
def test_reports_are_rows_of_integers_that_pass_the_check(case):
    protocol = case.protocol
    reports = protocol.privatize(case.X, case.y)
    assert reports.shape == (N_RECORDS, protocol.width)
    assert reports.dtype == case.report_dtype and reports.dtype.kind in "iu"
    assert protocol.check(reports).tolist() == [True] * N_RECORDS
    total = case.aggregate(reports)
    assert (total.n_reports, total.n_rejected) == (N_RECORDS, 0) and total.protocol == protocol
    assert (total.epsilon, total.delta) == (protocol.epsilon, protocol.delta)


@every
def test_shapes_of_records(case):
    protocol = case.protocol
    assert protocol.privatize(case.X[0], None if case.y is None else case.y[0]).shape == (
        1, protocol.width), "a single record"
    assert protocol.privatize(case.X[0].tolist(), case.responses([1])).shape == (1, protocol.width)
    assert protocol.privatize(case.X[:0], case.responses([])).shape == (0, protocol.width)
    if protocol.n_features == 1:
        assert protocol.privatize(case.X[:, 0], case.y).shape == (N_RECORDS, protocol.width), "many values"
        assert protocol.privatize(case.X[0, 0], case.responses(1)).shape == (1, protocol.width), "a single value"
    frame = pd.DataFrame(case.X)
    responses = case.y if case.y is None else pd.DataFrame(case.y) if case.y.ndim == 2 else pd.Series(case.y)
    np.testing.assert_array_equal(simulate(protocol, frame, responses), case.reports)
    with pytest.raises(ValueError, match=rf"shape \(n, {protocol.n_features}\)"):
        protocol.privatize(np.zeros((2, protocol.n_features + 1)), case.responses([0, 0]))
    if case.y is not None:
        for y in ([0] * 3, [[0], [1]]):
            with pytest.raises(ValueError, match="responses? for each of the 2 records"):
                protocol.privatize(np.zeros((2, protocol.n_features)), y)
        with pytest.raises(ValueError, match=r"\by\b"):
            protocol.privatize(np.zeros((2, protocol.n_features)))


@every
def test_private_values_never_raise_or_warn(case):
    protocol, rng = case.protocol, np.random.default_rng(0)
    hostile = np.empty(len(STRANGE), dtype=object)
    hostile[:] = STRANGE
    numbers = rng.choice([value for value in STRANGE if isinstance(value, float)], size=(200, protocol.n_features))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reports = [protocol.privatize(numbers, case.responses(numbers[:, 0])),
                   protocol.privatize(np.tile(hostile[:, None], protocol.n_features), case.responses(hostile)),
                   protocol.privatize(case.X[:len(hostile)], case.responses(hostile))]
        for value in STRANGE:
            record = case.X[:2].astype(object)
            record[0, -1] = value
            response = np.empty(2, dtype=object)
            response[:] = [value, value]
            reports += [protocol.privatize(records, case.responses(response)) for records in (record, record.tolist())]
    assert [len(rows) for rows in reports] == [200, len(hostile), len(hostile), *[2] * (2 * len(hostile))]
    assert all(protocol.check(rows).all() for rows in reports)


@noisy
def test_seeded_noise_depends_on_records_and_budget(case):
    protocol, X = case.protocol, np.tile(case.X, (4, 1))
    y = None if case.y is None else np.concatenate([case.y] * 4)
    with pytest.warns(SeededNoiseWarning, match="random_state=None"):
        reports = protocol.privatize(X, y, random_state=0)
    np.testing.assert_array_equal(simulate(protocol, X, y), reports)
    moved = X.copy()
    moved[-1] = case.X[np.flatnonzero((case.X != X[-1]).any(axis=1))[0]]
    others = [simulate(protocol, moved, y), simulate(protocol.with_epsilon(protocol.epsilon * 1.0001), X, y),
              protocol.privatize(X, y)]
    if y is not None:
        relabelled = y.copy()
        relabelled[-1] = case.y[case.y != y[-1]][0]
        others.append(simulate(protocol, X, relabelled))
    # If the noise were shared, the reports of all clients but the last would be nearly equal.
    independent = distance(simulate(protocol, X, y, seed=1)[:-1], reports[:-1])
    assert all(distance(other[:-1], reports[:-1]) > 0.5 * independent for other in others) and independent > 0


@without_coin
def test_without_noise_the_report_is_a_function_of_the_record(case):
    for seed in (0, 1):
        np.testing.assert_array_equal(simulate(case.protocol, case.X, case.y, seed), case.reports)
    np.testing.assert_array_equal(case.protocol.privatize(case.X, case.y), case.reports)


@every
def test_aggregates_of_pieces_add_up_in_any_order(case):
    reports = case.reports.copy()
    whole = case.aggregate(reports)
    expected = statistic(whole)
    pieces = [case.aggregate(piece) for piece in np.array_split(reports, [1, 20, 41])]
    for total in (sum(pieces), sum(pieces[::-1]), pieces[2] + (pieces[0] + pieces[3]) + pieces[1]):
        assert statistic(total) == expected and total.n_reports == N_RECORDS
    empty = case.aggregate(reports[:0])
    assert empty.n_reports == 0
    for total in (whole + empty, empty + whole, empty + whole + case.aggregate([])):
        assert statistic(total) == expected and total.n_reports == N_RECORDS
    for travel in (through_json, through_npz, through_pickle):
        assert statistic(travel(whole)) == expected
        assert statistic(sum(map(travel, pieces[::-1]))) == expected
        assert statistic(whole + travel(empty)) == expected
    reports[:] = reports[0]
    assert statistic(whole) == expected, "an aggregate does not share memory with the reports"


@every
def test_reports_survive_a_file(case, tmp_path):
    save_reports(tmp_path / "reports", case.reports, case.protocol)
    reports, protocol = load_reports(tmp_path / "reports", case.protocol)
    assert protocol == case.protocol and protocol.id == case.protocol.id and reports.dtype == case.reports.dtype
    np.testing.assert_array_equal(reports, case.reports)


@every
def test_aggregates_of_other_collections_cannot_be_added(case):
    mine = case.aggregate(case.reports)
    assert case.others
    for name, other in case.others.items():
        with pytest.raises(InvalidReportError, match=f"cannot be added: {name} is "):
            mine + other.aggregate([])
    foreign = next(one for one in CASES.values() if one.kind is not case.kind)
    with pytest.raises(InvalidReportError, match=f"{case.kind.__name__} and {foreign.kind.__name__} cannot be added"):
        mine + foreign.aggregate(foreign.reports)
    with pytest.raises(TypeError):
        mine + 3


@every
def test_aggregates_of_cohorts_with_different_budgets_can_be_added(case):
    protocol, cohort = case.protocol, case.protocol.with_epsilon(1.7)
    both = case.aggregate(case.reports) + cohort.aggregate(simulate(cohort, case.X, case.y))
    assert list(both.parts) == [protocol, cohort] and both.n_reports == 2 * N_RECORDS
    assert both.epsilon == max(protocol.epsilon, 1.7)
    assert statistic(through_json(both)) == statistic(both)
    if protocol.delta:
        looser = replace(protocol, delta=2 * protocol.delta)
        both += looser.aggregate(simulate(looser, case.X, case.y))
        assert len(both.parts) == 3 and both.delta == 2 * protocol.delta


@every
def test_only_the_malformed_row_of_a_list_is_dropped(case):
    protocol, good = case.protocol, case.reports[:20].tolist()
    expected = statistic(case.aggregate(good))
    for name, row in strange_rows(protocol.width).items():
        rows = good[:7] + [row] + good[7:]
        found = case.aggregate(rows, on_invalid="drop")
        assert (found.n_reports, found.n_rejected) == (20, 1) and statistic(found) == expected, name
        assert np.flatnonzero(~protocol.check(rows)).tolist() == [7], name
        with pytest.raises(InvalidReportError, match='on_invalid="drop"') as caught:
            case.aggregate(rows)
        assert "secret" not in str(caught.value)


@every
def test_a_malformed_entry_of_an_array_drops_only_its_row(case):
    protocol, reports = case.protocol, case.reports
    expected = statistic(case.aggregate(np.delete(reports, 4, axis=0)))
    for value, dtype in [(3.5, float), (math.nan, float), (1e300, float), (10**30, object), ("text", object),
                         (None, object)]:
        changed = reports.astype(dtype)
        changed[4, 0] = value
        for container in (changed, pd.DataFrame(changed)):
            found = case.aggregate(container, on_invalid="drop")
            assert found.n_rejected == 1 and statistic(found) == expected
            with pytest.raises(InvalidReportError, match="Reports are integers"):
                case.aggregate(container)
    hidden = np.ma.array(reports, mask=np.arange(N_RECORDS)[:, None] == [4] * protocol.width)
    assert statistic(case.aggregate(hidden, on_invalid="drop")) == expected


@every
def test_reports_out_of_range_are_listed_in_the_error_or_dropped(case):
    protocol, reports = case.protocol, case.reports.astype(np.int64)
    clean = case.aggregate(np.delete(reports, [3, 37, 38], axis=0))
    reports[3], reports[37, 0], reports[38, -1] = 2**62, -(2**63), 2**63 - 1
    assert np.flatnonzero(~protocol.check(reports)).tolist() == [3, 37, 38]
    with pytest.raises(InvalidReportError, match=rf"3 of {N_RECORDS} reports .* \(rows 3, 37, 38\)"):
        case.aggregate(reports)
    found = case.aggregate(reports, on_invalid="drop")
    assert (found.n_reports, found.n_rejected) == (N_RECORDS - 3, 3) and statistic(found) == statistic(clean)
    empty = case.aggregate(reports[[3, 37]], on_invalid="drop")
    assert (empty.n_reports, empty.n_rejected) == (0, 2)
    assert not protocol.check(np.full((2, protocol.width), 2**64 - 1, dtype=np.uint64)).any()
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32):  # of any range, wider or narrower
        same = np.full((3, protocol.width), np.iinfo(dtype).max, dtype=dtype)
        np.testing.assert_array_equal(protocol.check(same), protocol.check(same.astype(np.int64)))
    with pytest.raises(InvalidParameterError, match='"raise" or "drop"'):
        case.aggregate(case.reports, on_invalid="ignore")


@every
def test_reports_of_a_wrong_shape_or_type_are_refused(case):
    width = case.protocol.width
    shapes = [(4, width + 1), (4, width - 1), (2, width, 1), (1, 1, width), (), *[(width,)] * (width > 1)]
    for shape in shapes:
        with pytest.raises(InvalidReportError, match=f"have {width} columns"):
            case.aggregate(np.zeros(shape, dtype=int))
    for shape in shapes[:2]:
        found = case.aggregate(np.zeros(shape, dtype=int), on_invalid="drop")
        assert (found.n_reports, found.n_rejected) == (0, 4)
    for value in (0.0, 1e300, math.nan, "a", True, 1j, 10**400, None):
        reports = np.full((2, width), value, dtype=object if value == 10**400 else None)
        with pytest.raises(InvalidReportError, match="Reports are integers"):
            case.aggregate(reports)
    with pytest.raises(InvalidReportError, match="rows that differ|have .* columns"):
        case.aggregate([case.reports[0].tolist(), [0] * (width + 1)])
