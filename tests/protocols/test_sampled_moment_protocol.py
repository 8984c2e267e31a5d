"""Protocols of moments of some features: sums with counts, hostile files, and what must not change."""

import json
from dataclasses import replace

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols import (
    Aggregate,
    MomentProtocol,
    Protocol,
    SampledLabelMomentProtocol,
    SampledMomentProtocol,
    axis_constant,
)
from skldp.protocols._tallies import Tally
from tests.protocols.registry import simulate


def collected(n=300, **options):
    protocol = SampledMomentProtocol(**{"n_features": 5, "epsilon": 3.0, "features_per_client": 3, **options})
    rng = np.random.default_rng(0)
    reports = simulate(protocol, rng.uniform(-0.4, 0.4, size=(n, 5)), rng.uniform(-1, 1, size=n))
    return protocol, reports


def test_tallies_have_sums_and_counts_of_every_entry():
    protocol, reports = collected()
    tally = protocol.aggregate(reports).parts[protocol]
    filled = reports != -(2**15)
    entries = np.where(filled, reports, 0).astype(object)
    assert (tally.sums[0] == entries.T @ entries).all()
    assert (tally.sums[1] == filled.astype(object).T @ filled.astype(object)).all()
    assert (protocol.counts(tally) == tally.sums[1, :-1, :-1]).all()
    assert protocol.counts(tally)[0, 0] == len(reports)
    assert protocol.counts(tally)[1, 2] == np.count_nonzero(filled[:, 1] & filled[:, 2])


def test_means_are_over_the_clients_who_fill_an_entry():
    protocol, reports = collected()
    mean, axis = protocol.mean_matrix(protocol._tally(reports)), protocol.randomizer.part.axis
    both = (reports[:, 1] != -(2**15)) & (reports[:, 3] != -(2**15))
    expected = np.mean(reports[both, 1] * reports[both, 3].astype(float)) / 2**22 * axis.norm**2 / axis._alpha_beta[1]
    assert mean[1, 3] == pytest.approx(expected * 3 / 5), "the root of d/s is in a report twice"


def test_an_entry_that_nobody_fills_is_zero():
    protocol, reports = collected(n=1)
    tally = protocol._tally(reports)
    assert (protocol.mean_matrix(tally)[protocol.counts(tally) == 0] == 0).all()


def test_sums_add_and_survive_files(tmp_path):
    protocol, reports = collected()
    parts = [protocol.aggregate(part) for part in (reports[:100], reports[100:])]
    whole = protocol.aggregate(reports).parts[protocol]
    assert (sum(parts).parts[protocol].sums == whole.sums).all()
    parts[0].save(tmp_path / "first.npz")
    for read in (Aggregate.from_json(parts[0].to_json()), Aggregate.load(tmp_path / "first.npz")):
        assert (read.parts[protocol].sums == parts[0].parts[protocol].sums).all()


def change(*places, by=1, layer=1):
    def changed(tally):
        sums = tally.sums.copy()
        for row, column in places:
            sums[layer, row, column] += by
        return Tally(tally.n_reports, sums)
    return changed


IMPOSSIBLE = {
    "another number of clients": lambda tally: Tally(tally.n_reports + 1, tally.sums),
    "asymmetric counts": change((1, 2)),
    "a feature more often": change((1, 1)),
    "a pair more often": change((1, 2), (2, 1)),
    "a pair instead of another": lambda tally: change((1, 3), (3, 1), by=-1)(change((1, 2), (2, 1))(tally)),
    "a response that is missing": change((0, 6), (6, 0), by=-1),
    "a sum too large for its count": change((1, 2), (2, 1), by=2**40, layer=0),
    "a trace too large": change((1, 1), by=2**40, layer=0),
    "a negative count": change((1, 2), (2, 1), by=-10**6),
    "sums alone": lambda tally: Tally(tally.n_reports, tally.sums[0]),
    "floats": lambda tally: Tally(tally.n_reports, tally.sums.astype(float)),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_sums_are_refused(name):
    protocol, reports = collected()
    tally = protocol.aggregate(reports).parts[protocol]
    assert tally.fits(protocol)
    assert not IMPOSSIBLE[name](tally).fits(protocol)


def test_sums_of_one_report_must_be_a_report():
    protocol, reports = collected(n=1)
    tally = protocol._tally(reports)
    assert tally.fits(protocol)
    assert not change((0, 0), by=3, layer=0)(tally).fits(protocol)


def test_files_with_impossible_counts_are_refused():
    protocol, reports = collected()
    aggregate = protocol.aggregate(reports)
    forged = Aggregate({protocol: IMPOSSIBLE["a pair more often"](aggregate.parts[protocol])})
    with pytest.raises(InvalidReportError, match="does not hold sums"):
        Aggregate.from_json(forged.to_json())


@pytest.mark.parametrize("kind", [SampledMomentProtocol, SampledLabelMomentProtocol])
def test_description_can_be_read_and_lacks_nothing(kind):
    protocol = kind(n_features=4, features_per_client=3)
    assert Protocol.from_json(protocol.to_json()) == protocol
    fields = json.loads(protocol.to_json())
    assert fields["features_per_client"] == 3 and fields["mechanism"] == "axis"
    del fields["features_per_client"]
    with pytest.raises(InvalidParameterError, match="features_per_client"):
        Protocol.from_json(json.dumps(fields))


def test_other_protocols_do_not_mention_features_per_client():
    assert "features_per_client" not in MomentProtocol(mechanism="axis").to_json()


def test_subset_sizes_are_of_one_collection():
    protocol, reports = collected()
    other = replace(protocol, features_per_client=2)
    with pytest.raises(InvalidReportError, match="features_per_client is 3 in one and 2 in the other"):
        protocol.aggregate(reports) + other.aggregate(reports[:0])
    assert protocol.check(reports).all() and not other.check(reports).any()
    cohort = replace(protocol, epsilon=1.0, y_weight=1.0)
    assert (protocol.aggregate(reports) + cohort.aggregate(reports)).epsilon == 3.0


def test_width_tells_the_number_of_features():
    protocol = SampledMomentProtocol(features_per_client=3)
    assert protocol.n_reported == 1
    found = protocol.with_width(23)
    assert (found.n_features, found.n_reported, found.features_per_client) == (20, 3, 3)


def test_the_automatic_constant_suits_the_subset():
    protocol = SampledMomentProtocol(n_features=40, features_per_client=4, intercept_weight="auto")
    assert protocol.intercept_weight == axis_constant(4) != axis_constant(40)


@pytest.mark.parametrize("options, match", [
    ({"features_per_client": 1}, "features_per_client must be"), ({"features_per_client": 2.5}, "features_per_client"),
    ({"mechanism": "sphere"}, "mechanism must be"), ({"mechanism": "gaussian"}, "mechanism must be")])
def test_impossible_options_are_refused(options, match):
    with pytest.raises(InvalidParameterError, match=match):
        SampledMomentProtocol(n_features=4, **options)


@pytest.mark.parametrize("weight", [0.6, 0.0])
@pytest.mark.parametrize("s", [2, 3, 5])
def test_extreme_effects_bound_those_of_reports(s, weight):
    protocol, reports = collected(features_per_client=s, intercept_weight=weight)
    slopes = np.random.default_rng(1).normal(size=(6, len(protocol.directions())))
    for part in (slopes, slopes * (np.arange(slopes.shape[1]) >= slopes.shape[1] // 2)):
        low, high = protocol.extreme_effects(part)
        places = np.triu_indices(protocol.width)
        sums = np.array([protocol._tally(report[None]).sums for report in reports[:200]])
        sums = np.concatenate([sums[:, 0, *places] / 2**22, sums[:, 1, *places]], axis=1)
        effects = sums @ part.T
        assert (effects.max(axis=0) <= high + 0.02 * np.abs(high)).all()
        assert (effects.min(axis=0) >= low - 0.02 * np.abs(low)).all()
        assert (high < 8 * np.abs(effects).max(axis=0)).all() and (low > -8 * np.abs(effects).max(axis=0)).all()


def test_directions_span_what_a_report_changes():
    protocol, reports = collected(n=3)
    directions = protocol.directions()
    assert len(directions) == 2 * 8 * 9 // 2 and directions[0].shape == (2, 8, 8)
    total = sum(np.abs(direction) for direction in directions)
    assert (total[0] == 2**22).all() and (total[1] == 1).all()
