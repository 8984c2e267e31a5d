"""Several columns of values: a client splits its budget over all of them, or reports one with the whole budget."""

import inspect
import math
import warnings

import numpy as np
import pytest

from skldp import (
    LDPDistribution,
    LDPExponential,
    LDPGaussian,
    LDPGeometric,
    LDPPoisson,
    required_reports,
)
from skldp.exceptions import ImplausibleReportsWarning, InvalidParameterError, InvalidReportError
from skldp.protocols import Aggregate, Client, SampledValueProtocol, ValueProtocol

RNG = np.random.default_rng(0)
DATA = {
    LDPGaussian: RNG.normal([0.5, -1.0, 2.0], [1.0, 0.5, 0.7], size=(2000, 3)),
    LDPExponential: RNG.exponential([0.5, 1.0, 0.3], size=(2000, 3)),
    LDPPoisson: RNG.poisson([4.0, 2.0, 9.0], size=(2000, 3)),
    LDPGeometric: RNG.geometric([0.3, 0.5, 0.2], size=(2000, 3)) - 1,
    LDPDistribution: RNG.normal([0.5, -1.0, 2.0], [1.0, 0.5, 0.7], size=(2000, 3)),
}
everyone = pytest.mark.parametrize("cls", DATA)
X = DATA[LDPGaussian]


def quick(cls=LDPGaussian, **options):
    return cls(inference="laplace", random_state=0, **options)


@everyone
def test_fit_is_privatize_then_fit_reports(cls):
    for columns in ("auto", "split") if cls is LDPGaussian else ("sample",):
        whole, apart = quick(cls, columns=columns).fit(DATA[cls]), quick(cls, columns=columns)
        reports = apart.privatize(DATA[cls])
        assert reports.shape == (2000, 3 if columns == "split" else 4)
        apart.fit_reports(reports)
        for name, draws in whole.posterior_.draws.items():
            np.testing.assert_array_equal(draws, apart.posterior_.draws[name])
        assert (apart.n_reports_, apart.n_features_in_, apart.epsilon_) == (2000, 3, 1.0)
        assert isinstance(apart.protocol_, SampledValueProtocol) == (columns != "split")


@everyone
def test_at_most_fourteen_parameters(cls):
    parameters = inspect.signature(cls).parameters
    assert parameters["columns"].default == "auto" and len(parameters) <= 14


def test_one_column_needs_no_choice():
    reports = [quick(columns=columns).privatize(X[:, :1]) for columns in ("auto", "split", "sample")]
    assert (reports[0] == reports[1]).all() and (reports[0] == reports[2]).all()
    assert type(quick(columns="sample").protocol()) is ValueProtocol


def test_sampling_covers_the_truth_with_narrower_intervals():
    split, sampled = (LDPGaussian(columns=columns, random_state=0).fit(X) for columns in ("split", "sample"))
    low, high = sampled.posterior_.interval(0.999)["mean"].T
    assert ((low < [0.5, -1.0, 2.0]) & ([0.5, -1.0, 2.0] < high)).all()
    # Three columns: about a third of the variance.
    ratio = sampled.posterior_.std()["mean"] / split.posterior_.std()["mean"]
    assert (ratio < 0.8).all() and sampled.posterior_.rhat["mean"].max() <= 1.01


def people(columns, epsilon, n_features, cls=LDPGaussian, **assumptions):
    model = cls(epsilon=epsilon, columns=columns)
    return required_reports(model, 1e-3, n_features=n_features, **assumptions)


@pytest.mark.parametrize("mechanism, n_features, epsilons", [
    ("square_wave", 2, (0.5, 1.0, 4.0, 6.5, 8.5, 12.0)), ("square_wave", 5, (0.5, 4.0, 10.0, 14.0, 20.0)),
    ("square_wave", 10, (1.0, 4.0, 15.0, 20.0)), ("laplace", 2, (0.5, 4.0, 12.0)), ("gaussian", 2, (0.5, 20.0)),
])
def test_auto_needs_fewer_people(mechanism, n_features, epsilons):
    """By the Fisher information about mean and std, averaged over spreads of 5 % to 25 % of the range."""
    for epsilon in epsilons:
        ratios = []
        for std in (0.05, 0.1, 0.25):
            for parameter in ("mean", "std"):
                needed = {columns: required_reports(
                    LDPGaussian(epsilon=epsilon, bounds=(0, 1), mechanism=mechanism, columns=columns), 1e-3,
                    parameter=parameter, std=std, n_features=n_features) for columns in ("auto", "split", "sample")}
                ratios.append(math.log(needed["sample"] / needed["split"]))
                chosen = "sample" if needed["auto"] == needed["sample"] else "split"
                assert needed["auto"] == needed[chosen]
        assert (chosen == "sample") == (np.mean(ratios) < 0), (mechanism, n_features, epsilon)


@pytest.mark.parametrize("cls, assumption", [(LDPExponential, {"rate": 2.0}), (LDPPoisson, {"rate": 4.0}),
                                             (LDPGeometric, {"probability": 0.3})])
def test_auto_needs_fewer_people_for_rates(cls, assumption):
    for epsilon in (0.5, 1.0, 4.0):
        for k in (2, 10):
            auto, split = (people(columns, epsilon, k, cls, **assumption) for columns in ("auto", "split"))
            assert auto < (1.4 / k if epsilon < 4 else 1.0) * split


def test_a_large_budget_is_split_and_none_at_all_too():
    assert type(LDPGaussian(epsilon=7.7).protocol(2)) is SampledValueProtocol
    assert type(LDPGaussian(epsilon=7.9).protocol(2)) is ValueProtocol
    assert type(LDPGaussian(epsilon=7.9).protocol(3)) is SampledValueProtocol
    assert type(LDPGaussian(epsilon=math.inf).protocol(3)) is ValueProtocol
    assert type(LDPGaussian(epsilon=math.inf, mechanism="laplace").protocol(3)) is ValueProtocol


@pytest.mark.parametrize("epsilon", [0.5, 8.0, 12.0, 20.0])
def test_every_number_of_columns_is_found_from_the_width(epsilon):
    model = quick(epsilon=epsilon)
    for k in range(1, 21):
        expected = model.protocol(k)
        assert model._protocol_of(np.empty((0, expected.width), dtype=int)) == expected


def test_a_width_of_no_number_of_columns_is_refused():
    with pytest.raises(InvalidReportError, match="have 3 columns; got an array of shape"):
        quick(columns="sample").fit_reports(np.zeros((5, 2), dtype=int))


def test_auto_reads_aggregates_of_either_kind():
    for columns, other in (("split", "sample"), ("sample", "split")):
        collected = quick(columns=columns)
        aggregate = Aggregate.from_json(collected.aggregate(collected.privatize(X)).to_json())
        model = quick(epsilon=9.0).fit_reports(aggregate)
        np.testing.assert_array_equal(model.mean_, collected.fit_reports(aggregate).mean_)
        with pytest.raises(TypeError, match="reads reports of"):
            quick(columns=other).fit_reports(aggregate)
        with pytest.raises(InvalidReportError, match="bounds"):
            quick(bounds=(0, 1)).fit_reports(aggregate)


def test_streams_and_cohorts():
    model = quick()
    reports = model.privatize(X)
    whole = model.fit_reports(reports).mean_
    np.testing.assert_array_equal(quick().fit_reports(np.array_split(reports, 7)).mean_, whole)
    dask = pytest.importorskip("dask.array")
    np.testing.assert_array_equal(quick().fit_reports(dask.from_array(reports, chunks=(1000, 2))).mean_, whole)
    budgets = np.where(np.arange(2000) % 2, 0.5, 4.0)
    cohorts = quick().fit(X, sample_epsilon=budgets)
    assert (cohorts.epsilon_, cohorts.n_reports_, len(cohorts.aggregate_.parts)) == (4.0, 2000, 2)
    assert {type(protocol) for protocol in cohorts.aggregate_.parts} == {SampledValueProtocol}


def test_hostile_rows_are_dropped():
    model = quick()
    reports = model.privatize(X).astype(np.int64)
    hostile = np.vstack([reports, [[3, 0, 0, 5], [0, 2**60, 0, 0], [1, 0, 5, 5]]])
    with pytest.raises(InvalidReportError, match="rows 2000, 2001, 2002"):
        model.fit_reports(hostile)
    found = model.fit_reports(hostile, on_invalid="drop")
    assert (found.n_rejected_, found.n_reports_) == (3, 2000)


def test_a_client_spends_its_budget_once():
    client = Client(LDPGaussian(epsilon=0.5, bounds=(0, 10)).protocol(3).to_json(), max_epsilon=0.5)
    first = client.report([1.0, 2.0, 3.0])
    assert first.shape == (1, 4) and (client.report([1.0, 2.0, 3.0]) == first).all() and client.spent() == 0.5


def test_a_biased_coin_is_detected():
    model = quick()
    reports = model.privatize(X)
    assert model.check_reports(reports).p_value > 0.01
    assert model.check_reports(model.aggregate(reports)).p_value > 0.01
    first = reports[:, 0] == 0
    biased = np.concatenate([reports[~first], reports[first][:500]])
    with pytest.warns(ImplausibleReportsWarning, match="500 of .* reports are of column 0, and .* are expected"):
        model.check_reports(biased)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick(columns="split").check_reports(quick(columns="split").privatize(X))


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_checks_of_other_mechanisms(mechanism):
    model = quick(mechanism=mechanism, epsilon=8.0)
    reports = model.privatize(np.tile(X, (1, 20)))
    assert model.check_reports(reports).p_value > 0.01


@pytest.mark.filterwarnings("ignore::skldp.exceptions.ModelMisfitWarning")
def test_forged_reports_of_one_column_move_its_mean_within_the_bound():
    model = quick()
    reports = model.privatize(X)
    before, bound = model.fit_reports(reports).mean_.copy(), model.influence_bound(20)["mean"]
    fake = np.zeros((20, 4), dtype=reports.dtype)
    fake[:, 0], fake[:, 2] = 1, 410 + model.protocol(3).randomizer.half_window  # the window of a record at the mean
    moved = quick().fit_reports(np.vstack([reports, fake])).mean_ - before
    assert bound.shape == (3,) and (moved[[0, 2]] == 0).all()
    assert 0.5 * bound[1] < moved[1] < 1.5 * bound[1]


@pytest.mark.parametrize("columns", ["all", None, 1, ("split",)])
def test_bad_columns(columns):
    with pytest.raises(InvalidParameterError, match='columns must be one of "auto", "split", "sample"'):
        LDPGaussian(columns=columns).fit(X)
