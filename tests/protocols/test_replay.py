"""A batch of reports cannot be added twice; equal reports of different batches can."""

import io
import json
import pickle
import threading

import numpy as np
import pytest

from skldp import LDPBayesLinearRegression, LDPGaussian, LDPHistogram
from skldp.estimators._histogram import CategoryCounter
from skldp.exceptions import InvalidReportError
from skldp.models.categories._choice import LikelihoodChoice
from skldp.protocols import Aggregate, CategoryProtocol, ValueProtocol
from skldp.protocols import _batches as batches_module
from skldp.protocols._batches import Batches

PROTOCOL = ValueProtocol(epsilon=1.0, bounds=(0, 10))
REPORTS = PROTOCOL._randomize(np.full(20, 3.0), None, 0)


def refused():
    return pytest.raises(InvalidReportError, match="a batch of reports in common")


def batch():
    return PROTOCOL.aggregate(REPORTS)


def test_a_batch_is_not_added_twice():
    a, b, c = batch(), batch(), batch()
    total = a + b
    for one, other in ((a, a), (total, a), (b, total), (total, total), (total, b + c), (sum([a, c]), total)):
        with refused():
            one + other
    assert (total + c).n_reports == 60 and (total + c).checks_replay


def test_equal_reports_of_different_batches_can_be_added():
    assert sum(batch() for _ in range(5)).n_reports == 100


def test_repeats_can_be_allowed():
    a = batch()
    twice = a.merge(a, allow_repeats=True)
    assert twice.n_reports == 40 and twice.checks_replay
    with refused():
        twice.merge(a)
    assert twice.merge(a, allow_repeats=True).n_reports == 60
    assert a.merge(batch()).n_reports == 40


def through_json(aggregate):
    return Aggregate.from_json(aggregate.to_json())


def through_npz(aggregate):
    file = io.BytesIO()
    aggregate.save(file)
    file.seek(0)
    return Aggregate.load(file)


def through_pickle(aggregate):
    return pickle.loads(pickle.dumps(aggregate))


@pytest.mark.parametrize("travel", [through_json, through_npz, through_pickle])
def test_ids_survive_files_and_pickles(travel):
    a, b = batch(), batch()
    back = travel(a + b)
    assert back.checks_replay and sorted(back.batches.ids) == sorted((a + b).batches.ids)
    for known in (a, b, travel(a), back):
        with refused():
            back + known
    assert (back + travel(batch())).n_reports == 60


def old_file(aggregate):
    raw = json.loads(aggregate.to_json())
    del raw["batches"], raw["checks_replay"]
    return Aggregate.from_json(json.dumps(raw))


def test_files_without_ids_load_and_are_not_checked():
    a, b = batch(), batch()
    old = old_file(a)
    assert not old.checks_replay and "replay is not checked" in repr(old)
    assert (old + old).n_reports == 40
    mixed = old + b
    assert not mixed.checks_replay and not through_json(mixed).checks_replay and not through_pickle(mixed).checks_replay
    with refused():
        through_json(mixed) + b  # known ids are still checked
    assert not old_file(PROTOCOL.aggregate([])).batches.ids and old_file(PROTOCOL.aggregate([])).checks_replay


def test_repr_and_checks_replay():
    assert repr(batch()) == "Aggregate(20 reports; epsilon 1; 0 rejected)"
    assert not Aggregate(batch().parts).checks_replay


def test_no_reports_need_no_id():
    empty = PROTOCOL.aggregate([])
    assert empty.checks_replay and empty.batches.ids == []
    assert (empty + empty + empty).n_reports == 0
    assert through_json(empty).checks_replay
    assert (empty + batch()).checks_replay


def test_above_the_limit_no_ids_are_kept(monkeypatch):
    monkeypatch.setattr(batches_module, "MAX_BATCHES", 8)
    pieces = [batch() for _ in range(9)]
    eight = sum(pieces[:8])
    assert eight.checks_replay and len(eight.batches.ids) == 8
    nine = eight + pieces[8]
    assert not nine.checks_replay and nine.batches.ids == [] and "replay is not checked" in repr(nine)
    assert (nine + pieces[0]).n_reports == 200
    assert not through_json(nine).checks_replay
    with refused():
        eight + pieces[0]


def test_number_and_length_of_ids():
    assert batches_module.MAX_BATCHES == 65_536
    assert len(batch().batches.ids[0]) == 16


@pytest.mark.parametrize("batches", [
    None, {}, "ab", [1], ["ab"],
    ["g" * 32], ["a " * 16], ["00" * 16] * 2, [None], ["00" * 17], ["é" * 32]], ids=range(11))
def test_invalid_ids_are_refused(batches):
    raw = json.loads(batch().to_json())
    raw["batches"] = batches
    with pytest.raises(InvalidReportError, match="damaged"):
        Aggregate.from_json(json.dumps(raw))


@pytest.mark.parametrize("complete", [None, 1, "true", []])
def test_checks_replay_must_be_a_bool(complete):
    raw = json.loads(batch().to_json())
    raw["checks_replay"] = complete
    with pytest.raises(InvalidReportError, match="damaged"):
        Aggregate.from_json(json.dumps(raw))


def test_too_many_ids_in_a_file_are_refused():
    raw = json.loads(batch().to_json())
    raw["batches"] = [f"{place:032x}" for place in range(65_537)]
    with pytest.raises(InvalidReportError, match="damaged"):
        Aggregate.from_json(json.dumps(raw))


def test_a_file_without_ids_is_not_checked():
    raw = json.loads(batch().to_json())
    raw["batches"] = []
    assert not Aggregate.from_json(json.dumps(raw)).checks_replay


class TestEstimators:
    model = LDPGaussian(bounds=(0, 10), inference="laplace", random_state=0)

    def test_a_repeated_aggregate_in_a_list_is_refused(self):
        a, b = self.model.aggregate(REPORTS), self.model.aggregate(REPORTS)
        for chunks in ([a, a], [a, b, a], iter([a + b, b]), [REPORTS, a, a]):
            with refused() as caught:
                self.model.fit_reports(chunks)
            assert caught.value.aggregate.n_reports >= 20
        assert self.model.fit_reports([a, b, REPORTS]).n_reports_ == 60

    def test_the_same_aggregate_can_be_fitted_again(self):
        a = self.model.aggregate(REPORTS)
        assert self.model.fit_reports(a).n_reports_ == self.model.fit_reports([a]).n_reports_ == 20

    @pytest.mark.parametrize("chunks", [[REPORTS] * 50, REPORTS], ids=["chunks", "array"])
    def test_one_call_makes_one_batch(self, chunks):
        total = self.model.aggregate(chunks)
        assert len(total.batches.ids) == 1 and total.checks_replay
        with refused():
            self.model.fit_reports([REPORTS, total, total])

    def test_aggregates_among_chunks_keep_their_ids(self):
        a = self.model.aggregate(REPORTS)
        total = self.model.aggregate([REPORTS, a, REPORTS])
        assert len(total.batches.ids) == 2
        with refused():
            total + a

    def test_the_aggregate_of_an_error_is_a_batch(self):
        with pytest.raises(InvalidReportError) as caught:
            self.model.aggregate([REPORTS, np.full((3, 1), 10**9)])
        kept = caught.value.aggregate
        assert len(kept.batches.ids) == 1
        with refused():
            kept + kept

    def test_a_dask_array_is_one_batch(self):
        dask_array = pytest.importorskip("dask.array")
        total = self.model.aggregate(dask_array.from_array(REPORTS, chunks=(5, 1)))
        assert len(total.batches.ids) == 1 and total.n_reports == 20

    def test_a_simulation_is_one_batch(self):
        budgets = np.repeat([0.5, 1.0], 10)
        fitted = self.model.fit(np.full((20, 1), 3.0), sample_epsilon=budgets)
        assert len(fitted.aggregate_.batches.ids) == 1
        linear = LDPBayesLinearRegression(inference="laplace", random_state=0)
        total, = linear._simulate(linear.protocol(1), np.zeros((40_000, 1)), np.zeros(40_000), None)
        assert len(total.batches.ids) == 1

    def test_seeded_simulations_differ_only_in_their_ids(self):
        X = np.full((20, 1), 3.0)
        one, other = (LDPGaussian(bounds=(0, 10), inference="laplace", random_state=0).fit(X) for _ in range(2))
        assert one.aggregate_.batches.ids != other.aggregate_.batches.ids
        np.testing.assert_array_equal(one.posterior_.draws["mean"], other.posterior_.draws["mean"])

    def test_ids_are_kept_when_rows_are_dropped(self):
        protocol = CategoryProtocol(categories=(0, 1, 2), mechanism="oue", epsilon=0.5)
        reports = protocol._randomize(np.zeros((400, 1), dtype=int), None, 0)
        total = protocol.aggregate(reports, keep_rows=True)
        trimmed = CategoryCounter(protocol, "raise", LikelihoodChoice(600, 600)).trim(total)
        assert trimmed.parts[protocol].kind == "pairs"
        with refused():
            trimmed + total

    def test_a_repeated_aggregate_of_a_histogram_is_refused(self):
        model = LDPHistogram(categories=range(3), inference="laplace", random_state=0)
        a = model.aggregate(model.privatize(np.zeros((100, 1), dtype=int)))
        with refused():
            model.fit_reports([a, a])


class TestBatches:
    def test_terms_do_not_change_when_sums_share_their_ids(self):
        a, b, c, d = (Batches.new() for _ in range(4))
        ids = [one.ids[0] for one in (a, b, c, d)]
        left = a.merge(b)
        first, second = left.merge(c), left.merge(d)  # the first extends the ids of left, the second copies them
        assert a.ids == ids[:1] and left.ids == ids[:2]
        assert first.ids == ids[:3] and second.ids == [*ids[:2], ids[3]]
        assert left.merge(c).ids == ids[:3]  # c is in the shared ids, but not in those of left
        assert first.merge(d).ids == ids
        with pytest.raises(InvalidReportError):
            second.merge(d)
        with pytest.raises(InvalidReportError):
            first.merge(second)

    def test_adding_one_by_one_does_not_copy(self):
        total = Batches.new()
        shared = total._places
        for _ in range(1000):
            total = total.merge(Batches.new())
        assert total._places is shared and len(total.ids) == 1000 + 1

    def test_threads_can_extend_the_same_sum(self):
        base = Batches.of([bytes([place]) * 16 for place in range(10)])
        more = [[Batches.new() for _ in range(200)] for _ in range(8)]
        found: list = [None] * 8

        def extend(place):
            total = base
            for one in more[place]:
                total = total.merge(one)
            found[place] = total.ids

        threads = [threading.Thread(target=extend, args=(place,)) for place in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for place, ids in enumerate(found):
            assert ids == base.ids + [one.ids[0] for one in more[place]]
