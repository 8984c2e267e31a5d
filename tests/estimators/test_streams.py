"""Reports in every form give exactly the same aggregate, and errors keep the reports that were read before."""

import os
import signal
import threading
import time
import tracemalloc

import joblib
import numpy as np
import pandas as pd
import pytest

from skldp import (
    LDPBayesLinearRegression,
    LDPBayesLogisticRegression,
    LDPCovariance,
    LDPExponential,
    LDPGaussian,
    LDPHistogram,
)
from skldp.estimators._histogram import CategoryCounter
from skldp.exceptions import InterruptedStreamError, InvalidParameterError, InvalidReportError
from skldp.models.categories._choice import LikelihoodChoice
from skldp.protocols import Aggregate, CategoryProtocol

RNG = np.random.default_rng(0)
X, Y = 0.3 * RNG.normal(size=(3000, 3)), 0.3 * RNG.normal(size=3000)
CASES = {
    "gaussian": (LDPGaussian(inference="laplace", random_state=0), (X,)),
    "gaussian, laplace noise": (LDPGaussian(mechanism="laplace", inference="laplace", random_state=0), (X,)),
    "exponential": (LDPExponential(inference="laplace", random_state=0), (np.abs(X[:, :1]),)),
    "histogram, rows": (LDPHistogram(categories=range(5), inference="laplace", random_state=0),
                        (RNG.integers(5, size=(3000, 1)),)),
    "histogram, counts": (LDPHistogram(categories=range(5), likelihood="counts", mechanism="oue",
                                       inference="laplace", random_state=0), (RNG.integers(5, size=(3000, 1)),)),
    "histogram, rr": (LDPHistogram(categories=range(5), mechanism="rr", inference="laplace", random_state=0),
                      (RNG.integers(5, size=(3000, 1)),)),
    "linear": (LDPBayesLinearRegression(inference="laplace", random_state=0), (X, Y)),
    "linear, gaussian": (LDPBayesLinearRegression(mechanism="gaussian", inference="laplace", random_state=0), (X, Y)),
    "linear, inputs": (LDPBayesLinearRegression(mechanism="records", inference="laplace", random_state=0), (X, Y)),
    "linear, two features": (LDPBayesLinearRegression(features_per_client=2, inference="laplace", random_state=0),
                             (np.column_stack([X, X[:, :1]]), Y)),
    "covariance": (LDPCovariance(inference="laplace", random_state=0), (X,)),
    "covariance, gaussian": (LDPCovariance(mechanism="gaussian", inference="laplace", random_state=0), (X,)),
    "logistic": (LDPBayesLogisticRegression(classes=(0, 1), inference="laplace", random_state=0, n_rounds=1),
                 (X, (Y > 0).astype(int))),
    "logistic, two features": (LDPBayesLogisticRegression(classes=(0, 1), features_per_client=2, inference="laplace",
                                                          random_state=0), (X, (Y > 0).astype(int))),
    "logistic, inputs": (LDPBayesLogisticRegression(classes=(0, 1), mechanism="records", inference="laplace",
                                                    random_state=0), (X, (Y > 0).astype(int))),
}
cases = pytest.mark.parametrize("name", CASES)


def made(name):
    estimator, data = CASES[name]
    return estimator, estimator.privatize(*data)


def chunked(reports, size=700):
    return (reports[start:start + size] for start in range(0, len(reports), size))


def same(one, other):
    assert one.n_rejected == other.n_rejected and set(one.parts) == set(other.parts)
    for protocol, tally in one.parts.items():
        found = other.parts[protocol]
        assert type(found) is type(tally) and found.n_reports == tally.n_reports
        for field in ("sums", "rows", "multiplicity", "reports"):
            if hasattr(tally, field):
                np.testing.assert_array_equal(getattr(found, field), getattr(tally, field))


@cases
def test_every_form_of_reports_gives_the_same_sums(name):
    estimator, reports = made(name)
    whole = estimator.aggregate(reports)
    same(estimator.aggregate(pd.DataFrame(reports)), whole)
    same(estimator.aggregate(reports.tolist()), whole)
    same(estimator.aggregate(chunked(reports)), whole)
    same(estimator.aggregate(list(chunked(reports, 1000))), whole)
    halves = estimator.aggregate(reports[:1000]), estimator.aggregate(reports[1000:])
    same(sum(halves), whole)
    same(estimator.aggregate(halves), whole)
    same(estimator.aggregate([halves[0], reports[1000:]]), whole)


@cases
def test_an_aggregate_survives_json_npz_and_pickle(name, tmp_path):
    estimator, reports = made(name)
    whole = estimator.aggregate(reports)
    same(Aggregate.from_json(whole.to_json()), whole)
    whole.save(tmp_path / "sums.npz")
    same(Aggregate.load(tmp_path / "sums.npz"), whole)
    same(joblib.load(joblib.dump(whole, tmp_path / "sums.pkl")[0]), whole)


@cases
def test_two_processes_give_the_same_posterior_as_one(name):
    estimator, reports = made(name)
    alone = estimator.fit_reports(reports).posterior_.draws
    with joblib.parallel_config("loky", n_jobs=2):
        together = estimator.fit_reports(chunked(reports)).posterior_.draws
    for parameter in alone:
        np.testing.assert_array_equal(together[parameter], alone[parameter])


def test_dropped_reports_are_counted_over_all_chunks():
    estimator, reports = made("gaussian")
    hostile = reports.astype(np.int64)
    hostile[[5, 1500]] = 10**9
    total = estimator.aggregate(chunked(hostile), on_invalid="drop")
    assert (total.n_reports, total.n_rejected) == (2998, 2)


def test_the_error_names_a_bad_chunk_and_keeps_the_earlier_ones():
    estimator, reports = made("gaussian")
    chunks = list(chunked(reports.astype(np.int64)))
    chunks[3][7] = 10**9
    message = r"Chunk 3 .* .rows 7.* up to number 3 have been read.*2100 reports .* not lost"
    with pytest.raises(InvalidReportError, match=message) as caught:
        estimator.aggregate(iter(chunks))
    rest = [caught.value.aggregate, reports[2100:]]
    same(estimator.aggregate(rest), estimator.aggregate(reports))


def test_the_error_names_a_chunk_of_another_width():
    estimator, reports = made("linear")
    with pytest.raises(InvalidReportError, match="Chunk 1 .* columns"):
        estimator.aggregate([reports[:10], reports[:, :5]])


def test_the_error_names_the_field_of_another_collection():
    one = LDPGaussian(bounds=(0, 1)).protocol().aggregate(np.array([[500]]))
    other = LDPGaussian(bounds=(0, 2)).protocol().aggregate(np.array([[500]]))
    with pytest.raises(InvalidReportError, match="bounds") as caught:
        LDPGaussian(bounds=(0, 1)).aggregate([one, other])
    assert caught.value.aggregate.n_reports == 1
    with pytest.raises(InvalidReportError, match=r"bounds is \(0.0, 2.0\)"):
        LDPGaussian(bounds=(0, 1)).fit_reports(other)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_error_of_a_failing_source_keeps_the_earlier_chunks(n_jobs):
    estimator, reports = made("exponential")

    def source():
        yield from list(chunked(reports))[:2]
        raise OSError("the disk is gone")

    with pytest.raises(InterruptedStreamError, match="the disk is gone.*1400 reports") as caught:
        estimator.set_params(n_jobs=n_jobs).aggregate(source())
    estimator.set_params(n_jobs=None)
    assert caught.value.aggregate.n_reports == 1400
    assert isinstance(caught.value.__cause__, OSError)


def test_a_stream_without_chunks_raises_and_one_without_reports_gives_the_prior():
    with pytest.raises(InvalidParameterError, match="empty"):
        LDPGaussian().fit_reports(iter([]))
    with pytest.warns(UserWarning, match="posterior is the prior"):
        LDPGaussian(inference="laplace").fit_reports([np.empty((0, 1), dtype=int)])


def test_rows_are_dropped_when_there_are_too_many_in_all_chunks():
    protocol = CategoryProtocol(categories=(0, 1, 2), mechanism="oue", epsilon=0.5)
    reports = protocol._randomize(RNG.integers(3, size=(400, 1)), None, 0)
    counter = CategoryCounter(protocol, "raise", LikelihoodChoice(600, 600))
    pieces = [counter(reports[start:start + 100]) for start in range(0, 400, 100)]
    assert pieces[0].parts[protocol].kind == "rows"
    total = counter.trim(pieces[0] + pieces[1])
    assert total.parts[protocol].kind == "rows"
    total = counter.trim(total + pieces[2])
    assert total.parts[protocol].kind == "pairs"
    same(counter.trim(total + pieces[3]), counter(reports))


class TestDask:
    dask_array = pytest.importorskip("dask.array")

    @cases
    def test_a_dask_array_gives_the_same_sums(self, name):
        estimator, reports = made(name)
        lazy = self.dask_array.from_array(reports, chunks=(257, 2))
        same(estimator.aggregate(lazy), estimator.aggregate(reports))

    def test_one_column_without_a_second_axis(self):
        estimator, reports = made("exponential")
        lazy = self.dask_array.from_array(reports[:, 0], chunks=500)
        same(estimator.aggregate(lazy), estimator.aggregate(reports))

    def test_the_error_names_a_bad_block(self):
        estimator, reports = made("gaussian")
        hostile = reports.astype(np.int64)
        hostile[2000] = 10**9
        lazy = self.dask_array.from_array(hostile, chunks=(500, -1))
        with pytest.raises(InvalidReportError, match="Chunk 4 .* 2500 reports") as caught:
            estimator.aggregate(lazy)
        assert caught.value.aggregate.n_reports == 2500
        assert estimator.aggregate(lazy, on_invalid="drop").n_rejected == 1

    def test_a_block_that_cannot_be_computed_raises(self):
        estimator, reports = made("gaussian")
        lazy = self.dask_array.from_array(reports, chunks=(500, -1)).map_blocks(fail, dtype=reports.dtype)
        with pytest.raises(InterruptedStreamError, match="the file is gone"):
            estimator.aggregate(lazy)

    def test_more_than_two_dimensions_are_refused(self):
        with pytest.raises(InvalidReportError, match="3 dimensions"):
            LDPGaussian().aggregate(self.dask_array.zeros((2, 2, 2), dtype=int))

    def test_a_cluster_that_loses_a_worker_gives_the_same_result(self):
        distributed = pytest.importorskip("distributed")
        estimator, reports = made("linear")
        alone = estimator.fit_reports(reports).posterior_.draws["coef"]
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0",
                                      silence_logs=50) as cluster, distributed.Client(cluster) as client:
            lazy = self.dask_array.from_array(reports, chunks=(100, -1)).map_blocks(slowly, dtype=reports.dtype)
            first, second = client.run(os.getpid).values()
            assert first != second
            killer = threading.Timer(0.5, os.kill, (first, signal.SIGKILL))
            killer.start()
            together = estimator.fit_reports(lazy).posterior_.draws["coef"]
            killer.join()
            assert first not in client.run(os.getpid).values()
        np.testing.assert_array_equal(together, alone)


def fail(block):
    raise OSError("the file is gone")


def slowly(block):
    time.sleep(0.1)
    return block


def test_fit_never_keeps_all_reports_in_memory():
    model = LDPBayesLinearRegression(random_state=0)
    peaks = []
    for n_clients in (20_000, 80_000):
        X, y = np.zeros((n_clients, 5)), np.zeros(n_clients)
        tracemalloc.start()
        try:
            model._simulate(model.protocol(5), X, y, None)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    # Records are copied once; 60,000 reports of 28 entries would take 3.4 MB more.
    assert peaks[1] - peaks[0] < 1.5 * 60_000 * 6 * 8


def test_rows_after_an_aggregate_of_another_cohort_keep_their_own_budget():
    low, high = (LDPGaussian(epsilon=epsilon, bounds=(0, 10), random_state=0) for epsilon in (0.25, 1.0))
    X = np.full((200, 1), 3.0)
    first, rows = low.aggregate(low.privatize(X)), high.privatize(X)
    for chunks in ([first, rows], [rows, first]):
        total = high.aggregate(chunks)
        assert {part.epsilon: tally.n_reports for part, tally in total.parts.items()} == {0.25: 200, 1.0: 200}
    with pytest.raises(InvalidReportError, match="bounds"):
        LDPGaussian(bounds=(0, 1000)).aggregate([first, rows])


def test_chunks_of_one_dimension_are_refused_and_lists_of_numbers_are_rows():
    estimator, reports = made("exponential")
    flat = reports[:6].ravel()
    for chunks in ([flat[:3], flat[3:]], iter([flat[:3], flat[3:]]), [pd.Series(flat)]):
        with pytest.raises(InvalidReportError, match="two dimensions"):
            estimator.aggregate(chunks)
    assert estimator.aggregate(flat.tolist()).n_reports == 6
    assert estimator.aggregate(list(flat)).n_reports == 6


def test_empty_chunks_of_any_type_add_nothing():
    for name in ("histogram, rows", "histogram, rr", "linear", "gaussian"):
        estimator, reports = made(name)
        empty = np.empty((0, reports.shape[1]))
        for chunks in ([reports, empty], [empty, reports], [reports, []], [[], reports],
                       [reports, pd.DataFrame(columns=range(reports.shape[1]))]):
            same(estimator.aggregate(chunks), estimator.aggregate(reports))


def test_ragged_rows_raise_and_the_error_keeps_the_earlier_chunks():
    estimator, reports = made("gaussian")
    with pytest.raises(InvalidReportError, match="rows that differ") as caught:
        estimator.aggregate([reports, [[1], [2, 3]]])
    assert caught.value.aggregate.n_reports == 3000


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_no_chunk_read_from_the_source_is_lost_after_a_bad_one(n_jobs):
    estimator, reports = made("exponential")
    chunks = [reports[start:start + 100].astype(np.int64) for start in range(0, 3000, 100)]
    chunks[5][0] = 10**9
    source = iter(chunks)
    with joblib.parallel_config("threading", n_jobs=n_jobs or 1), pytest.raises(InvalidReportError) as caught:
        estimator.aggregate(source)
    left = sum(len(chunk) for chunk in source)
    assert caught.value.aggregate.n_reports + left == 2900


class Unreadable:
    """A chunk whose file no longer exists when a worker reads it."""

    def __len__(self):
        return 1

    def __array__(self, *_, **__):
        raise OSError("the file is gone")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_error_of_a_worker_keeps_the_other_chunks(n_jobs):
    estimator, reports = made("exponential")
    chunks = [*chunked(reports), Unreadable()]
    with joblib.parallel_config("loky", n_jobs=n_jobs), pytest.raises(InvalidReportError, match="OSError") as caught:
        estimator.aggregate(iter(chunks))
    same(caught.value.aggregate, estimator.aggregate(reports))


def test_a_source_that_fails_at_once_raises():
    def source():
        raise OSError("the disk is gone")
        yield

    with pytest.raises(InterruptedStreamError, match="the disk is gone"):
        LDPGaussian().aggregate(source())


def test_feature_names_of_an_earlier_fit_are_removed():
    model = LDPBayesLinearRegression(inference="laplace", random_state=0)
    model.fit(pd.DataFrame(X[:, :2], columns=["a", "b"]), Y)
    model.fit_reports(model.privatize(X, Y))
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(X).shape == (3000,)


def test_a_fitted_classifier_reads_reports_of_another_width():
    model = LDPBayesLogisticRegression(inference="laplace", random_state=0)
    with pytest.warns(UserWarning):
        model.fit(X[:, :2], (Y > 0).astype(int))
    reports = LDPBayesLogisticRegression(classes=(0, 1), random_state=0).privatize(X, (Y > 0).astype(int))
    assert model.fit_reports(reports).coef_.shape == (1, 3)


def test_on_invalid_is_checked_for_aggregates_too():
    estimator, reports = made("exponential")
    with pytest.raises(InvalidParameterError, match="on_invalid"):
        estimator.aggregate(estimator.aggregate(reports), on_invalid="keep")
