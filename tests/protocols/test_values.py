import json
import pickle
import warnings

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError, InvalidReportError, SeededNoiseWarning
from skldp.protocols import Aggregate, Protocol, ValueProtocol

PROTOCOLS = [
    ValueProtocol(epsilon=1.0, bounds=(-2, 3)),
    ValueProtocol(epsilon=0.2, bounds=(0, 20), n_levels=20),
    ValueProtocol(epsilon=1.0, bounds=(-2, 3), mechanism="laplace"),
    ValueProtocol(epsilon=0.01, bounds=(0, 20), mechanism="laplace", n_levels=20),
    ValueProtocol(epsilon=1.0, delta=1e-5, bounds=(-2, 3), mechanism="gaussian"),
    ValueProtocol(epsilon=3.0, bounds=(-2, 3), n_features=3, window=0.1),
]
everyone = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda value: f"{value.mechanism}-{value.epsilon}")


def records(protocol, n=500):
    return np.random.default_rng(0).normal(size=(n, protocol.n_features))


@everyone
def test_json_there_and_back(protocol):
    copy = Protocol.from_json(protocol.to_json())
    assert copy == protocol and hash(copy) == hash(protocol) and copy.id == protocol.id
    assert json.loads(protocol.to_json())["version"] == 1
    assert pickle.loads(pickle.dumps(protocol)) == protocol
    X = records(protocol)
    assert (copy._randomize(X, None, 3) == protocol._randomize(X, None, 3)).all()


def test_ids_differ_with_every_field():
    base = ValueProtocol()
    others = [ValueProtocol(epsilon=2.0), ValueProtocol(bounds=(-5, 6)), ValueProtocol(mechanism="laplace"),
              ValueProtocol(window=0.2), ValueProtocol(n_features=2), ValueProtocol(n_levels=100)]
    assert len({protocol.id for protocol in [base, *others]}) == 7


@everyone
def test_honest_reports_pass_and_are_counted(protocol):
    reports = protocol.privatize(records(protocol))
    assert reports.shape == (500, protocol.n_features)
    assert protocol.check(reports).all()
    aggregate = protocol.aggregate(reports)
    assert aggregate.n_reports == 500
    assert (aggregate.parts[protocol].sums.sum(axis=1) == 500).all()


@everyone
def test_aggregates_add_and_order_does_not_matter(protocol):
    reports = protocol.privatize(records(protocol))
    whole = protocol.aggregate(reports)
    pieces = [protocol.aggregate(reports[start:start + 70]) for start in range(0, 500, 70)]
    for total in (sum(pieces), sum(pieces[::-1]), pieces[0] + sum(pieces[1:])):
        assert (total.parts[protocol].sums == whole.parts[protocol].sums).all()
        assert total.n_reports == 500
    assert (pickle.loads(pickle.dumps(whole)).parts[protocol].sums == whole.parts[protocol].sums).all()


@everyone
def test_every_report_has_its_own_cell(protocol):
    """Cells partition the reports, in order, and their centres lie inside."""
    low, high = protocol.randomizer.clamp
    reports = np.unique(np.linspace(low, high, 20_000).astype(np.int64))
    index = protocol.cells.index(reports)
    assert (np.diff(index) >= 0).all()
    assert index.min() == 0 and index.max() == protocol.cells.n_cells - 1


def test_laplace_cells():
    cells = PROTOCOLS[2].cells
    n = cells.mechanism.n_levels
    assert cells.index(np.array([-1, -10**6])).tolist() == [0, 0]
    assert cells.index(np.array([n + 1, 10**7])).tolist() == [cells.n_cells - 1] * 2
    inner = np.arange(n + 1)
    centres = cells.centres[cells.index(inner)]
    width = cells.mechanism.bounds[1] - cells.mechanism.bounds[0]
    assert np.abs(centres - cells.mechanism.decode(inner)).max() <= min(width / 256, cells.noise_scale / 128) * 1.01
    assert len(cells.centres) == cells.n_cells


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_laplace_cell_probabilities_are_the_mechanisms_own(epsilon):
    cells = ValueProtocol(epsilon=epsilon, bounds=(0, 20), mechanism="laplace", n_levels=20).cells
    mechanism = cells.mechanism
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    for level in (0, 7, 20):
        probability = np.exp(mechanism.log_prob(reports, float(level)))
        expected = np.bincount(cells.index(reports), weights=probability, minlength=cells.n_cells)
        np.testing.assert_allclose(cells.probabilities[:, level], expected, atol=1e-12)


@everyone
def test_hostile_reports_are_named_or_dropped(protocol):
    reports = protocol.privatize(records(protocol)).astype(np.int64)
    reports[[3, 77], 0] = 2**40, -(2**40)
    assert np.flatnonzero(~protocol.check(reports)).tolist() == [3, 77]
    with pytest.raises(InvalidReportError, match=r"2 of 500 reports .* \(rows 3, 77\)"):
        protocol.aggregate(reports)
    aggregate = protocol.aggregate(reports, on_invalid="drop")
    assert (aggregate.n_reports, aggregate.n_rejected) == (498, 2)


@pytest.mark.parametrize("reports, message", [
    (np.zeros((4, 2), dtype=int), "have 1 columns"),
    (np.zeros((4, 1)), "Reports are integers"),
    (np.array([[np.nan]]), "Reports are integers"),
    (np.array([["a"]]), "Reports are integers"),
    (np.array([[True]]), "Reports are integers"),
    (np.zeros((2, 1, 1), dtype=int), "have 1 columns"),
])
def test_reports_of_another_shape_or_type(reports, message):
    with pytest.raises(InvalidReportError, match=message):
        PROTOCOLS[0].aggregate(reports)


def test_bad_on_invalid():
    with pytest.raises(InvalidParameterError, match='"raise" or "drop"'):
        PROTOCOLS[0].aggregate(np.zeros((1, 1), dtype=int), on_invalid="ignore")


def test_cohorts_add_and_other_domains_do_not():
    one, other = (ValueProtocol(epsilon=epsilon) for epsilon in (0.5, 4.0))
    both = sum(protocol.aggregate(protocol.privatize(np.zeros(10))) for protocol in (one, other))
    assert both.n_reports == 20 and both.epsilon == 4.0 and len(both.parts) == 2
    foreign = ValueProtocol(bounds=(0, 1))
    with pytest.raises(InvalidReportError, match="bounds is"):
        both + foreign.aggregate(foreign.privatize(np.zeros(3)))
    with pytest.raises(TypeError):
        both + 3
    assert "20 reports" in repr(both)


def test_shapes_of_records():
    assert PROTOCOLS[0].privatize(0.3).shape == (1, 1)
    assert PROTOCOLS[0].privatize([0.3, 0.4]).shape == (2, 1)
    assert PROTOCOLS[5].privatize([0.3, 0.4, 0.5]).shape == (1, 3)
    with pytest.raises(ValueError, match=r"shape \(n, 3\)"):
        PROTOCOLS[5].privatize(np.zeros((2, 2)))


@everyone
def test_private_values_never_raise_or_warn(protocol):
    hostile = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reports = protocol.privatize(np.repeat(hostile[:, None], protocol.n_features, axis=1))
        protocol.privatize(np.full((2, protocol.n_features), None))
    assert protocol.check(reports).all()


def test_a_seed_on_the_clients_door_warns():
    with pytest.warns(SeededNoiseWarning, match="random_state=None"):
        PROTOCOLS[0].privatize([0.0], random_state=0)


@pytest.mark.parametrize("text, message", [
    ("not json", "no JSON"),
    ('{"format": "skldp-prot', "cut short"),
    (None, "no JSON"),
    ("[1, 2]", "not a protocol file"),
    ('{"format": "other", "version": 1}', "not a protocol file"),
    ('{"format": "skldp-protocol", "version": 2}', "version 2"),
    ('{"format": "skldp-protocol", "version": 1, "kind": "Nonsense"}', "kind"),
    ('{"format": "skldp-protocol", "version": 1, "kind": "ValueProtocol", "epsilon": 1}', "missing or unknown fields"),
])
def test_foreign_files(text, message):
    with pytest.raises(InvalidParameterError, match=message):
        Protocol.from_json(text)


@pytest.mark.parametrize("change", [{"epsilon": 0}, {"bounds": [1, 0]}, {"mechanism": "none"}, {"window": 7},
                                    {"n_levels": 0.5}, {"n_features": 0}])
def test_files_with_bad_values(change):
    fields = {**json.loads(PROTOCOLS[0].to_json()), **change}
    with pytest.raises(InvalidParameterError):
        Protocol.from_json(json.dumps(fields))


def test_a_client_refuses_a_simulation():
    simulation = ValueProtocol(epsilon=np.inf)
    assert simulation.privatize([1.0]).tolist() == simulation.privatize([1.0]).tolist()
    with pytest.raises(InvalidParameterError, match="no privacy"):
        Protocol.from_json(simulation.to_json())


def test_an_empty_aggregate_adds_nothing():
    protocol = PROTOCOLS[0]
    empty = protocol.aggregate(np.empty((0, 1), dtype=int))
    assert isinstance(empty, Aggregate) and empty.n_reports == 0
    assert (empty + protocol.aggregate(protocol.privatize([1.0]))).n_reports == 1
