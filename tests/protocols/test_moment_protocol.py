"""Protocols of linear regression: moments of clients, and their aggregates."""

import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.protocols import MomentProtocol, Protocol, RecordProtocol
from skldp.protocols._regression_protocol import CHUNK_BYTES, CHUNK_ROWS

# Most tests cover noisy records as well, because both have a response in an interval.
PROTOCOLS = {
    "sphere": MomentProtocol(n_features=2, bounds_y=(0, 10), data_norm=2.0),
    "gaussian": MomentProtocol(n_features=2, bounds_y=(0, 10), mechanism="gaussian", epsilon=3.0),
    "sphere without intercept": MomentProtocol(n_features=3, intercept_weight=0.0, y_weight=0.9),
    "gaussian without intercept": MomentProtocol(n_features=1, intercept_weight=0.0, mechanism="gaussian"),
    "records": RecordProtocol(n_features=2, bounds_y=(0, 10), epsilon=0.5),
    "records without intercept": RecordProtocol(n_features=3, bounds_y=(-1, 4), centred=False, delta=1e-9),
}
everyone = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))


def records(protocol, n=500, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, protocol.n_features)), rng.normal(3.0, 4.0, size=n)


def test_weights_are_those_that_the_mechanism_uses():
    protocol = MomentProtocol(mechanism="gaussian", y_weight=0.7, intercept_weight=0.3)
    assert (protocol.y_weight, protocol.intercept_weight) == (179 / 256, 77 / 256)
    assert (protocol.randomizer.y_weight, protocol.randomizer.intercept_weight) == (179 / 256, 77 / 256)
    assert MomentProtocol(y_weight=0.7).y_weight == 0.7
    assert MomentProtocol(delta=0.1).delta == 0.0, "the sphere mechanism is pure"


def noiseless(protocol):
    return replace(protocol, epsilon=np.inf)


@everyone
def test_records_outside_the_domain_are_clipped(protocol):
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


def test_offset_and_scale_of_the_response():
    for cls, off in ((MomentProtocol, {"intercept_weight": 0.0}), (RecordProtocol, {"centred": False})):
        centred, plain = cls(bounds_y=(10, 30)), cls(bounds_y=(10, 30), **off)
        assert (centred.y_offset, centred.y_scale) == (20.0, 10.0) and centred.has_intercept
        assert (plain.y_offset, plain.y_scale) == (0.0, 30.0) and not plain.has_intercept
        assert cls(bounds_y=(-5, 2), **off).y_scale == 5.0
        wide = cls(bounds_y=(-8e307, 8e307))
        assert np.isfinite(wide.y_scale) and wide.y_offset == 0.0


@pytest.mark.parametrize("case", [case for case in PROTOCOLS if not case.startswith("records")])
def test_the_aggregate_is_the_sum_of_the_reports(case):
    protocol = PROTOCOLS[case]
    reports = protocol.privatize(*records(protocol))
    exact = [sum(int(value) for value in column) for column in reports.T]
    assert protocol.aggregate(reports).parts[protocol].sums.tolist() == exact
    found = protocol.mean_moments(protocol.aggregate(reports).parts[protocol])
    np.testing.assert_allclose(found, protocol.randomizer.decode(reports).mean(axis=0), rtol=1e-9, atol=1e-12)


def largest_reports(protocol, n):
    """The largest reports that pass the check."""
    if protocol.to_json().find('"sphere"') > 0:
        rows = np.zeros((n, protocol.width), dtype=np.int64)
        rows[:, 0] = 2**14
        return rows
    clamp = protocol.randomizer.clamp
    top = clamp[1] if isinstance(clamp, tuple) else clamp
    return np.broadcast_to(np.asarray(top, dtype=np.int64), (n, protocol.width)).copy()


@everyone
def test_sums_of_very_many_reports_do_not_overflow(protocol):
    """2**40 reports at the clamps: the sums double 30 times and stay exact."""
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
def test_reports_at_the_limits(protocol):
    """Entries above the clamps are invalid, and so are unsigned words that would be negative as signed ones."""
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


def test_a_zero_vector_is_impossible_on_the_sphere():
    protocol = PROTOCOLS["sphere"]
    assert not protocol.check(np.zeros((1, protocol.width), dtype=int)).any()


@everyone
def test_pieces_are_the_same_reports_and_share_no_noise(protocol):
    X, y = records(protocol, 2 * CHUNK_ROWS + 5)
    X, y = X * 0 + 0.1, y * 0 + 0.1  # equal records, so that all differences are noise
    pieces = list(protocol._draw(*protocol._plain(X, y), 7))
    assert [len(piece) for piece in pieces] == [CHUNK_ROWS, CHUNK_ROWS, 5]
    whole = protocol._randomize(X, y, 7)
    assert (np.concatenate(pieces) == whole).all()
    assert len(np.unique(whole, axis=0)) > 0.99 * len(whole)


def test_pieces_are_bounded_in_bytes():
    """One array of a piece has at most 64 MB: a piece of 200 features, with 20,500 integers each, has 409 clients."""
    protocol = MomentProtocol(n_features=200)
    X = np.full((500, 200), 0.01)
    pieces = [len(piece) for piece in protocol._draw(*protocol._plain(X, X[:, 0]), 0)]
    assert pieces == [409, 91] and 8 * protocol.width * pieces[0] <= CHUNK_BYTES < 8 * protocol.width * 410


@pytest.mark.parametrize("mechanism", ["sphere", "gaussian"])
def test_many_features_take_little_memory(mechanism):
    protocol = MomentProtocol(n_features=60, mechanism=mechanism)
    X = np.full((6000, 60), 0.01)
    tracemalloc.start()
    total = sum(protocol.aggregate(piece) for piece in protocol._draw(*protocol._plain(X, X[:, 0]), 0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert total.n_reports == 6000 and peak < 6 * CHUNK_BYTES, "a table of all products of floats has 90 MB"


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
