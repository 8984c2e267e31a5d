"""What clients of a linear regression send as moments, and what the aggregator keeps of it."""

import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skldp.exceptions import InvalidParameterError, InvalidReportError, SeededNoiseWarning
from skldp.protocols import Aggregate, MomentProtocol, Protocol, RecordProtocol
from skldp.protocols._regression_protocol import CHUNK_ROWS
from skldp.protocols._tallies import Tally

# Most of what is promised here holds for noisy records as well: both have a response in an interval.
PROTOCOLS = {
    "sphere": MomentProtocol(n_features=2, bounds_y=(0, 10), data_norm=2.0),
    "gaussian": MomentProtocol(n_features=2, bounds_y=(0, 10), mechanism="gaussian", epsilon=3.0),
    "sphere without intercept": MomentProtocol(n_features=3, intercept_weight=0.0, y_weight=0.9),
    "gaussian without intercept": MomentProtocol(n_features=1, intercept_weight=0.0, mechanism="gaussian"),
    "records": RecordProtocol(n_features=2, bounds_y=(0, 10), epsilon=0.5),
    "records without intercept": RecordProtocol(n_features=3, bounds_y=(-1, 4), centred=False, delta=1e-9),
}
everyone = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
HOSTILE = [np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0, 2**53, 0.3]


def records(protocol, n=500, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, protocol.n_features)), rng.normal(3.0, 4.0, size=n)


@everyone
def test_json_there_and_back(protocol):
    copy = Protocol.from_json(protocol.to_json())
    assert copy == protocol and hash(copy) == hash(protocol) and copy.id == protocol.id
    assert json.loads(protocol.to_json())["version"] == 1
    assert pickle.loads(pickle.dumps(protocol)) == protocol
    assert (copy._randomize(*records(protocol), 3) == protocol._randomize(*records(protocol), 3)).all()


def test_ids_differ_with_every_field():
    base = {"mechanism": "gaussian"}
    changes = [{}, {"mechanism": "sphere"}, {"epsilon": 2.0}, {"delta": 1e-6}, {"data_norm": 2.0}, {"n_features": 2},
               {"bounds_y": (0, 1)}, {"y_weight": 0.5}, {"intercept_weight": 0.5}]
    assert len({MomentProtocol(**{**base, **change}).id for change in changes}) == len(changes)
    changes = [{}, {"epsilon": 2.0}, {"delta": 1e-6}, {"data_norm": 2.0}, {"n_features": 2}, {"bounds_y": (0, 1)},
               {"y_weight": 0.5}, {"centred": False}]
    assert len({RecordProtocol(**change).id for change in changes} | {MomentProtocol().id}) == len(changes) + 1


def test_weights_are_those_that_the_mechanism_uses():
    protocol = MomentProtocol(mechanism="gaussian", y_weight=0.7, intercept_weight=0.3)
    assert (protocol.y_weight, protocol.intercept_weight) == (179 / 256, 77 / 256)
    assert (protocol.randomizer.y_weight, protocol.randomizer.intercept_weight) == (179 / 256, 77 / 256)
    assert MomentProtocol(y_weight=0.7).y_weight == 0.7
    assert MomentProtocol(delta=0.1).delta == 0.0, "the sphere has none"


@everyone
def test_honest_reports_pass_and_are_counted(protocol):
    reports = protocol.privatize(*records(protocol))
    assert reports.shape == (500, protocol.width) and reports.dtype.kind in "iu"
    assert protocol.check(reports).all()
    assert protocol.aggregate(reports).n_reports == 500


@everyone
def test_private_values_never_raise_or_warn(protocol):
    rng, d = np.random.default_rng(0), protocol.n_features
    X, y = rng.choice(HOSTILE, size=(400, d)), rng.choice(HOSTILE, size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reports = [protocol.privatize(X, y), protocol.privatize(np.zeros((400, d)), y),
                   protocol.privatize(X, np.zeros(400))]
        for strange in (None, "text", b"x", 10**400, -(10**400), 1j, object(), pd.NA, "1e999"):
            records_of_objects = np.full((2, d), 0.1, dtype=object)
            records_of_objects[0, 0] = strange
            reports += [protocol.privatize(records_of_objects, [0.1, 0.2]),
                        protocol.privatize(np.zeros((2, d)), np.array([strange, 0.1], dtype=object)),
                        protocol.privatize(records_of_objects.tolist(), [strange, strange])]
    assert all(protocol.check(rows).all() for rows in reports)
    assert {len(rows) for rows in reports} == {400, 2}, "and nobody is left out"


def noiseless(protocol):
    return replace(protocol, epsilon=np.inf)


@everyone
def test_what_is_out_of_the_domain_is_put_on_its_edge(protocol):
    plain, d = noiseless(protocol), protocol.n_features
    lower, upper = protocol.bounds_y
    middle = (lower + upper) / 2 if protocol.has_intercept else 0.0

    def sent(x, y):
        return plain.privatize(np.full((1, d), x), [y]).astype(int)

    inside = plain.data_norm / np.sqrt(d)
    assert (sent(0.1, 1e300) == sent(0.1, upper)).all() and (sent(0.1, np.inf) == sent(0.1, upper)).all()
    assert (sent(0.1, -np.inf) == sent(0.1, lower)).all()
    assert (sent(0.1, np.nan) == sent(0.1, middle)).all()
    assert (sent(np.nan, 0.1) == sent(0.0, 0.1)).all()
    assert np.abs(sent(np.inf, 0.1) - sent(inside, 0.1)).max() <= 1
    assert np.abs(sent(-1e300, 0.1) - sent(-inside, 0.1)).max() <= 1


def test_what_is_taken_off_the_response():
    for cls, off in ((MomentProtocol, {"intercept_weight": 0.0}), (RecordProtocol, {"centred": False})):
        centred, plain = cls(bounds_y=(10, 30)), cls(bounds_y=(10, 30), **off)
        assert (centred.y_offset, centred.y_scale) == (20.0, 10.0) and centred.has_intercept
        assert (plain.y_offset, plain.y_scale) == (0.0, 30.0) and not plain.has_intercept
        assert cls(bounds_y=(-5, 2), **off).y_scale == 5.0
        wide = cls(bounds_y=(-8e307, 8e307))
        assert np.isfinite(wide.y_scale) and wide.y_offset == 0.0


@everyone
def test_aggregates_add_exactly_and_order_does_not_matter(protocol):
    reports = protocol.privatize(*records(protocol))
    whole = protocol.aggregate(reports)
    pieces = [protocol.aggregate(reports[start:start + 70]) for start in range(0, 500, 70)]
    for total in (sum(pieces), sum(pieces[::-1]), pieces[0] + sum(pieces[1:])):
        assert (total.parts[protocol].sums == whole.parts[protocol].sums).all()
        assert total.n_reports == 500
    assert (pickle.loads(pickle.dumps(whole)).parts[protocol].sums == whole.parts[protocol].sums).all()
    assert all(type(value) is int for value in whole.parts[protocol].sums.ravel())


@pytest.mark.parametrize("case", [case for case in PROTOCOLS if not case.startswith("records")])
def test_the_aggregate_is_the_sum_of_the_reports(case):
    protocol = PROTOCOLS[case]
    reports = protocol.privatize(*records(protocol))
    exact = [sum(int(value) for value in column) for column in reports.T]
    assert protocol.aggregate(reports).parts[protocol].sums.tolist() == exact
    found = protocol.mean_moments(protocol.aggregate(reports).parts[protocol])
    np.testing.assert_allclose(found, protocol.randomizer.decode(reports).mean(axis=0), rtol=1e-9, atol=1e-12)


def largest_reports(protocol, n):
    """Reports that pass the check and are as large as such reports can be."""
    if protocol.to_json().find('"sphere"') > 0:
        rows = np.zeros((n, protocol.width), dtype=np.int64)
        rows[:, 0] = 2**14
        return rows
    clamp = protocol.randomizer.clamp
    top = clamp[1] if isinstance(clamp, tuple) else clamp
    return np.broadcast_to(np.asarray(top, dtype=np.int64), (n, protocol.width)).copy()


@everyone
def test_sums_of_very_many_reports_do_not_overflow(protocol):
    """A million million reports at the clamps: the sums double 30 times and stay whole numbers."""
    reports = largest_reports(protocol, 1024)
    assert protocol.check(reports).all()
    one = protocol.aggregate(reports)
    total = one
    for _ in range(30):
        total = total.merge(total, allow_repeats=True)
    tally = total.parts[protocol]
    assert total.n_reports == 2**40
    assert (tally.sums == one.parts[protocol].sums * 2**30).all()
    mean = protocol.mean_products if isinstance(protocol, RecordProtocol) else protocol.mean_moments
    np.testing.assert_allclose(mean(tally), mean(one.parts[protocol]), rtol=1e-12)


@everyone
def test_hostile_reports_are_named_or_dropped(protocol):
    reports = protocol.privatize(*records(protocol)).astype(np.int64)
    clean = protocol.aggregate(np.delete(reports, [3, 77, 78], axis=0))
    reports[3], reports[77, 0], reports[78, -1] = 2**62, -(2**63), 2**63 - 1
    assert np.flatnonzero(~protocol.check(reports)).tolist() == [3, 77, 78]
    with pytest.raises(InvalidReportError, match=r"3 of 500 reports .* \(rows 3, 77, 78\)"):
        protocol.aggregate(reports)
    aggregate = protocol.aggregate(reports, on_invalid="drop")
    assert (aggregate.n_reports, aggregate.n_rejected) == (497, 3)
    assert (aggregate.parts[protocol].sums == clean.parts[protocol].sums).all()
    nobody = protocol.aggregate(reports[[3, 77]], on_invalid="drop")
    assert (nobody.n_reports, nobody.n_rejected) == (0, 2)


@everyone
def test_reports_at_the_limits(protocol):
    """One beyond the clamps is out; unsigned words that look negative when read as signed are out too."""
    limit = largest_reports(protocol, 1)
    assert protocol.check(limit).all()
    if "sphere" not in protocol.to_json():
        assert protocol.check(-limit).all()
        for entry in range(protocol.width):
            beyond = limit.copy()
            beyond[0, entry] += 1
            assert not protocol.check(beyond).any() and not protocol.check(-beyond).any()
    huge = np.full((1, protocol.width), 2**64 - 1, dtype=np.uint64)
    assert not protocol.check(huge).any()
    assert protocol.aggregate(limit.astype(np.uint64)).n_reports == 1


@everyone
def test_reports_of_another_shape_or_type(protocol):
    width = protocol.width
    for reports, message in [
        (np.zeros((4, width + 1), dtype=int), f"have {width} columns"),
        (np.zeros((4, width - 1), dtype=int), f"have {width} columns"),
        (np.zeros(width, dtype=int), f"have {width} columns"),
        (np.zeros((2, width, 1), dtype=int), f"have {width} columns"),
        (np.full((2, width), 1e300), "Reports are integers"),
        (np.full((2, width), np.nan), "Reports are integers"),
        (np.full((2, width), "a"), "Reports are integers"),
        (np.full((2, width), True), "Reports are integers"),
        (np.full((2, width), 10**400, dtype=object), "Reports are integers"),
    ]:
        with pytest.raises(InvalidReportError, match=message):
            protocol.aggregate(reports)
    with pytest.raises(InvalidParameterError, match='"raise" or "drop"'):
        protocol.aggregate(np.zeros((1, width), dtype=int), on_invalid="ignore")


def test_moments_of_no_length_are_impossible_on_the_sphere():
    protocol = PROTOCOLS["sphere"]
    assert not protocol.check(np.zeros((1, protocol.width), dtype=int)).any()


@pytest.mark.parametrize("cls, change, field", [
    (MomentProtocol, {"bounds_y": (0, 2)}, "bounds_y"),
    (MomentProtocol, {"data_norm": 3.0}, "data_norm"),
    (MomentProtocol, {"y_weight": 0.3}, "y_weight"),
    (MomentProtocol, {"intercept_weight": 0.3}, "intercept_weight"),
    (MomentProtocol, {"mechanism": "gaussian"}, "mechanism"),
    (MomentProtocol, {"n_features": 2}, "n_features"),
    (RecordProtocol, {"bounds_y": (0, 2)}, "bounds_y"),
    (RecordProtocol, {"centred": False}, "centred"),
    (RecordProtocol, {"y_weight": 0.3}, "y_weight"),
])
def test_cohorts_add_and_other_domains_do_not(cls, change, field):
    def collected(**fields):
        protocol = cls(**fields)
        return protocol.aggregate(protocol.privatize(np.zeros((10, protocol.n_features)), np.zeros(10)))

    both = sum(collected(epsilon=epsilon) for epsilon in (0.5, 4.0, 0.5))
    assert both.n_reports == 30 and both.epsilon == 4.0 and len(both.parts) == 2
    with pytest.raises(InvalidReportError, match=f"{field} is"):
        both + collected(**change)


def test_moments_and_records_do_not_add():
    protocols = MomentProtocol(), RecordProtocol()
    aggregates = [protocol.aggregate(protocol.privatize([0.1], 0.2)) for protocol in protocols]
    with pytest.raises(InvalidReportError, match="different collections"):
        sum(aggregates)


@everyone
def test_cohorts_of_gaussian_noise_may_differ_in_delta(protocol):
    if protocol.delta:
        other = replace(protocol, delta=protocol.delta / 10)
        both = sum(one.aggregate(one.privatize(*records(one, 5))) for one in (protocol, other))
        assert both.delta == protocol.delta and len(both.parts) == 2


@everyone
def test_pieces_are_the_whole_and_share_no_noise(protocol):
    X, y = records(protocol, 2 * CHUNK_ROWS + 5)
    X, y = X * 0 + 0.1, y * 0 + 0.1  # equal records: whatever differs is noise
    pieces = list(protocol._draw(*protocol._plain(X, y), 7))
    assert [len(piece) for piece in pieces] == [CHUNK_ROWS, CHUNK_ROWS, 5]
    whole = protocol._randomize(X, y, 7)
    assert (np.concatenate(pieces) == whole).all()
    assert len(np.unique(whole, axis=0)) > 0.99 * len(whole)


@everyone
def test_noise_of_a_seed_depends_on_data_and_budget(protocol):
    X, y = records(protocol, 200)
    reports = protocol._randomize(X, y, 0)
    assert (protocol._randomize(X, y, 0) == reports).all()
    budget = replace(protocol, epsilon=protocol.epsilon * 1.0001)
    moved_x, moved_y = X.copy(), y.copy()
    moved_x[-1, 0] += 0.25
    moved_y[-1] += 0.25
    others = [protocol._randomize(X, y, 1), protocol._randomize(moved_x, y, 0), protocol._randomize(X, moved_y, 0),
              budget._randomize(X, y, 0)]
    for other in others:
        # Were the noise shared, all clients but the last would send the same, or nearly so.
        size = np.abs(reports.astype(float)).mean()
        assert np.abs(other[:-1].astype(float) - reports[:-1]).mean() > 0.3 * size


@everyone
def test_shapes_of_records(protocol):
    d = protocol.n_features
    assert protocol.privatize(np.zeros(d), 0.3).shape == (1, protocol.width)
    assert protocol.privatize([0.0] * d, [0.3]).shape == (1, protocol.width)
    assert protocol.privatize(np.zeros((0, d)), []).shape == (0, protocol.width)
    assert protocol.privatize(pd.DataFrame(np.zeros((2, d))), pd.Series([0.1, 0.2])).shape == (2, protocol.width)
    with pytest.raises(ValueError, match=rf"shape \(n, {d}\)"):
        protocol.privatize(np.zeros((2, d + 1)), np.zeros(2))
    with pytest.raises(ValueError, match="one response for each of the 2 records"):
        protocol.privatize(np.zeros((2, d)), np.zeros(3))
    with pytest.raises(ValueError, match="one response for each of the 2 records"):
        protocol.privatize(np.zeros((2, d)), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="needs y"):
        protocol.privatize(np.zeros((2, d)))


@everyone
def test_a_seed_on_the_clients_door_warns(protocol):
    with pytest.warns(SeededNoiseWarning, match="random_state=None"):
        protocol.privatize(*records(protocol, 3), random_state=0)


@everyone
def test_a_client_refuses_a_simulation(protocol):
    simulation = noiseless(protocol)
    X, y = records(protocol, 5)
    assert (simulation.privatize(X, y) == simulation.privatize(X, y)).all()
    with pytest.raises(InvalidParameterError, match="no privacy"):
        Protocol.from_json(simulation.to_json())


@everyone
@pytest.mark.parametrize("change", [
    {"epsilon": 0}, {"epsilon": None}, {"bounds_y": [1, 0]}, {"bounds_y": [0]}, {"bounds_y": "ab"}, {"data_norm": 0},
    {"data_norm": None}, {"n_features": 0}, {"n_features": 10**6}, {"y_weight": -1}, {"y_weight": "auto"},
])
def test_files_with_bad_values(protocol, change):
    fields = {**json.loads(protocol.to_json()), **change}
    with pytest.raises(InvalidParameterError):
        Protocol.from_json(json.dumps(fields))


def test_files_with_bad_mechanisms_and_fields():
    fields = json.loads(PROTOCOLS["gaussian"].to_json())
    for change in ({"mechanism": "none"}, {"mechanism": None}, {"intercept_weight": -1}, {"delta": 0}, {"delta": 2}):
        with pytest.raises(InvalidParameterError):
            Protocol.from_json(json.dumps({**fields, **change}))
    with pytest.raises(InvalidParameterError, match="missing or unknown fields: centred"):
        Protocol.from_json(json.dumps({**fields, "centred": True}))


@everyone
def test_an_empty_aggregate_adds_nothing(protocol):
    empty = protocol.aggregate(np.empty((0, protocol.width), dtype=int))
    assert isinstance(empty, Aggregate) and empty.n_reports == 0
    reports = protocol.privatize(*records(protocol, 4))
    both = empty + protocol.aggregate(reports)
    assert both.n_reports == 4
    assert (both.parts[protocol].sums == protocol.aggregate(reports).parts[protocol].sums).all()
    assert isinstance(empty.parts[protocol], Tally)
