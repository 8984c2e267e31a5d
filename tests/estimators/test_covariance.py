"""LDPCovariance and LDPPCA, end to end."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.covariance import EmpiricalCovariance
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from skldp import (
    LDPPCA,
    LDPBayesLinearRegression,
    LDPCovariance,
    Moments,
    PublicColumns,
    RegressionPrior,
    required_reports,
)
from skldp.exceptions import FewReportsWarning, InvalidParameterError, ScaleWarning, StatisticalWarning
from skldp.privacy import Ledger
from skldp.protocols import Client, CovarianceProtocol, Protocol
from tests.estimators.test_streams import CASES

RNG = np.random.default_rng(0)
FACTOR = np.array([[0.25, 0.0, 0.0, 0.0], [0.1, 0.15, 0.0, 0.0], [-0.05, 0.05, 0.1, 0.0], [0.0, 0.02, 0.0, 0.05]])
TRUTH, MEAN = FACTOR @ FACTOR.T, np.array([0.1, -0.05, 0.0, 0.15])
X = MEAN + RNG.normal(size=(40_000, 4)) @ FACTOR.T
X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
QUICK = {"inference": "laplace", "random_state": 0}
both = pytest.mark.parametrize("kind", [LDPCovariance, LDPPCA])


def fitted(kind=LDPCovariance, epsilon=4.0, rows=X, **options):
    return kind(epsilon=epsilon, **{**QUICK, **options}).fit(rows)


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("mechanism", ["auto", "gaussian"])
def test_without_noise_it_is_the_sample_covariance(mechanism, centred):
    model = LDPCovariance(epsilon=np.inf, mechanism=mechanism, assume_centered=centred, random_state=0).fit(X)
    sample = EmpiricalCovariance(assume_centered=centred).fit(X)
    error = np.abs(model.covariance_ - sample.covariance_) / model.covariance_std_
    assert error.max() < 0.35  # the grid of Gaussian reports is coarse, and chains have an error
    np.testing.assert_allclose(model.location_, sample.location_, atol=3e-4)
    np.testing.assert_allclose(model.covariance_std_, np.sqrt(
        (sample.covariance_**2 + np.outer(*2 * [np.diag(sample.covariance_)])) / len(X)), rtol=0.25)
    axes = LDPPCA(epsilon=np.inf, mechanism=mechanism, assume_centered=centred, **QUICK).fit(X)
    if not centred:
        reference = PCA().fit(X)
        np.testing.assert_allclose(axes.components_, reference.components_, atol=0.02)  # with the same signs
        np.testing.assert_allclose(axes.explained_variance_, reference.explained_variance_, rtol=0.02)
        np.testing.assert_allclose(axes.explained_variance_ratio_, reference.explained_variance_ratio_, rtol=0.02)
        np.testing.assert_allclose(axes.transform(X[:9]), reference.transform(X[:9]), atol=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("centred", [False, True])
def test_intervals_contain_the_truth_of_most_entries(centred):
    """Twenty collections of the same records, which have other noise each."""
    truth = np.cov(X.T, bias=True) + centred * np.outer(X.mean(axis=0), X.mean(axis=0))
    inside = []
    for seed in range(20):
        model = fitted(LDPPCA, random_state=seed, assume_centered=centred, inference="mcmc")
        along, ends = np.diag(model.components_ @ truth @ model.components_.T), model.posterior_.interval(0.9)
        inside.append([(low <= true) & (true <= high) for true, low, high in (
            (truth[np.tril_indices(4)], *ends["covariance"][np.tril_indices(4)].T),
            (along, *ends["explained_variance"].T))])
    entries, explained = (np.mean([one[place] for one in inside], axis=0) for place in (0, 1))
    assert entries.mean() > 0.82 and entries.min() >= 0.6 and explained.mean() > 0.82 and explained.min() >= 0.6


def test_attributes_and_methods_of_scikit_learn():
    model = fitted()
    assert model.covariance_.shape == model.covariance_std_.shape == model.precision_.shape == (4, 4)
    np.testing.assert_allclose(model.covariance_ @ model.precision_, np.eye(4), atol=1e-9)
    assert set(model.posterior_.draws) == {"location", "covariance"}
    np.testing.assert_allclose(model.posterior_.mean()["covariance"], model.covariance_)
    reference = EmpiricalCovariance()
    reference.covariance_, reference.location_, reference.precision_ = (
        model.covariance_, model.location_, model.precision_)
    np.testing.assert_allclose(model.mahalanobis(X[:50]), reference.mahalanobis(X[:50]))
    assert model.score(X[:500]) == pytest.approx(reference.score(X[:500]))
    assert model.score(X) > LDPCovariance(prior=RegressionPrior(covariance_scale=3.0), **QUICK).fit(X[:5]).score(X)
    assert model.error_norm(TRUTH) < 0.3 * np.linalg.norm(TRUTH)
    np.testing.assert_array_equal(model.get_precision(), model.precision_)
    assert model.fit_check_ is None
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.mahalanobis(X[:5]), model.mahalanobis(X[:5]))


@both
def test_a_known_mean_is_zero_and_saves_noise(kind):
    model = fitted(kind, assume_centered=True)
    assert "location" not in model.posterior_.draws and "mean" not in model.posterior_.draws
    location = model.location_ if kind is LDPCovariance else model.mean_
    np.testing.assert_array_equal(location, np.zeros(4))
    assert model.protocol_.intercept_weight == 0.0 and not model.protocol_.has_intercept
    assert model.protocol_.randomizer.noise_variance < fitted(kind).protocol_.randomizer.noise_variance


@both
def test_fit_is_privatize_and_fit_reports(kind):
    model = kind(**QUICK)
    reports = model.privatize(X)
    assert reports.shape == (len(X), model.protocol(4).width) and reports.dtype == np.int16
    once = clone(model).fit_reports(reports).posterior_.draws
    for name, draws in model.fit(X).posterior_.draws.items():
        np.testing.assert_array_equal(once[name], draws)
    assert (model.n_reports_, model.n_features_in_, model.epsilon_, model.delta_) == (len(X), 4, 1.0, 0.0)
    np.testing.assert_array_equal(clone(model).fit(X, np.arange(len(X))).posterior_.draws["covariance"],
                                  model.posterior_.draws["covariance"])  # y is ignored


def test_other_units_scale_the_posterior():
    one, five = fitted(), fitted(rows=5 * X, data_norm=5.0)
    assert five.protocol_.data_norm == 5.0
    # Noise is drawn for the records in their own units, so that only widths can be compared.
    np.testing.assert_allclose(five.covariance_std_, 25 * one.covariance_std_, rtol=0.3)
    reports = one.privatize(X)
    scaled = LDPCovariance(epsilon=4.0, data_norm=5.0, **QUICK).fit_reports(reports)
    plain = LDPCovariance(epsilon=4.0, **QUICK).fit_reports(reports)
    np.testing.assert_allclose(scaled.covariance_, 25 * plain.covariance_)
    np.testing.assert_allclose(scaled.location_, 5 * plain.location_)


@both
@pytest.mark.parametrize("options, message", [
    ({"mechanism": "records"}, "moments of records"), ({"mechanism": "laplace"}, "mechanism must be one of"),
    ({"prior": "normal"}, "RegressionPrior"), ({"epsilon": 0.0}, "epsilon"), ({"data_norm": -1.0}, "data_norm"),
    ({"inference": "vb"}, "inference"), ({"mechanism": Moments(intercept_weight=-1.0)}, "intercept_weight")])
def test_bad_parameters_raise(kind, options, message):
    with pytest.raises(InvalidParameterError, match=message):
        kind(**options).fit(X[:50])


@both
@pytest.mark.parametrize("rows, message", [
    ([[np.nan, 1.0]], "NaN"), ([[np.inf, 1.0]], "infinity"), ([1.0, 2.0], "2D"), (np.empty((0, 3)), "0 sample"),
    ([["a", "b"]], "could not convert")])
def test_bad_records_of_a_simulation_raise(kind, rows, message):
    with pytest.raises(ValueError, match=message):
        kind(**QUICK).fit(rows)


def test_reports_of_another_collection_are_refused():
    reports = LDPCovariance(**QUICK).privatize(X[:100])
    hostile = reports.astype(np.int64)
    hostile[3] = 2**20
    with pytest.raises(ValueError, match=r"1 of 100 reports .* \(rows 3\)"):
        LDPCovariance(**QUICK).fit_reports(hostile)
    assert LDPCovariance(**QUICK).fit_reports(hostile, on_invalid="drop").n_rejected_ == 1
    aggregate = LDPBayesLinearRegression().aggregate(LDPBayesLinearRegression().privatize(X[:9], X[:9, 0]))
    with pytest.raises(TypeError, match="reads reports of CovarianceProtocol; got MomentProtocol"):
        LDPCovariance().fit_reports(aggregate)


def test_warnings_about_scale_and_few_reports():
    with pytest.warns(ScaleWarning, match="data_norm=0.1"):
        LDPCovariance(data_norm=0.1, epsilon=8.0, **QUICK).fit(X)
    with pytest.warns(ScaleWarning, match="Lower data_norm"):
        LDPCovariance(data_norm=30.0, epsilon=8.0, **QUICK).fit(X)
    with pytest.warns(FewReportsWarning, match="200 reports say little about the covariance.*About"):
        few = LDPCovariance(random_state=0).fit(X[:200])
    assert np.median(few.information_["covariance"]) < 0.3
    with warnings.catch_warnings():
        warnings.simplefilter("error", StatisticalWarning)
        many = LDPCovariance(epsilon=8.0, **QUICK).fit(X)
    assert many.information_["covariance"].min() > 1
    assert "bits" in many.posterior_.summary(full=True).columns


def test_the_information_of_no_reports_is_zero():
    model, protocol = LDPCovariance(random_state=0), CovarianceProtocol(n_features=3)
    with pytest.warns(UserWarning, match="no reports"):
        model.fit_reports(protocol.aggregate(np.empty((0, protocol.width), dtype=np.int16)))
    assert np.abs(model.information_["covariance"]).max() < 0.25


@pytest.mark.parametrize("epsilon, d, std", [(4.0, 3, 0.3), (2.0, 2, 0.4)])
def test_required_reports_give_the_width(epsilon, d, std):
    model, width = LDPCovariance(epsilon=epsilon, inference="laplace"), 0.04
    n = required_reports(model, width=width, feature_std=std, n_features=d, level=0.9)
    rng, widths = np.random.default_rng(0), []
    for seed in range(6):
        ends = clone(model).set_params(random_state=seed).fit(
            rng.normal(scale=std, size=(n, d))).posterior_.interval(0.9)["covariance"]
        widths.append(np.ptp(np.diagonal(ends), axis=0))
    assert np.mean(widths) == pytest.approx(width, rel=0.12)
    with pytest.raises(InvalidParameterError, match="feature_std must be assumed"):
        required_reports(model, width=0.1)
    with pytest.raises(InvalidParameterError, match="beyond data_norm"):
        required_reports(model, width=0.1, feature_std=0.8, n_features=3)
    with pytest.raises(InvalidParameterError, match="plans with one of"):
        required_reports(LDPPCA(), width=0.1)


def test_elements_have_the_names_of_columns_and_components_have_numbers():
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = fitted(rows=frame)
    assert "covariance[a, b]" in model.posterior_.summary(full=True).index
    assert list(model.posterior_.summary().index) == [f"location[{name}]" for name in "abcd"]
    axes = fitted(LDPPCA, rows=frame, n_components=2)
    assert {"explained_variance[1]", "explained_variance_ratio[0]", "mean[d]"} <= set(axes.posterior_.summary().index)
    assert list(axes.get_feature_names_out()) == ["ldppca0", "ldppca1"]
    assert list(axes.set_output(transform="pandas").transform(frame).columns) == ["ldppca0", "ldppca1"]


def test_clients_with_raw_columns():
    columns = PublicColumns(schema={"age": (18, 90), "owner": "bool"})
    client = Client(columns.protocol(LDPCovariance()).to_json())
    assert isinstance(client.protocol, CovarianceProtocol)
    assert client.report({"age": 40, "owner": True}).shape == (1, client.protocol.width)
    assert Client(LDPPCA(mechanism="sphere").protocol(3)).report([0.1, 0.2, 0.3]).shape == (1, 10)
    with pytest.raises(ValueError, match="has no response"):
        Client(LDPPCA().protocol(3)).report([0.1, 0.2, 0.3], 1.0)


def test_protocols_are_files():
    protocol = LDPPCA(epsilon=2.0, mechanism=Moments(intercept_weight=0.25)).protocol(3)
    assert Protocol.from_json(protocol.to_json()) == protocol
    assert "y_weight" not in protocol.to_json() and protocol.intercept_weight == 0.25


# Components.


def test_components_are_orthonormal_and_invert():
    model = fitted(LDPPCA)
    np.testing.assert_allclose(model.components_ @ model.components_.T, np.eye(4), atol=1e-10)
    assert (np.diff(model.explained_variance_) <= 0).all() and model.n_components_ == 4
    largest = np.argmax(np.abs(model.components_), axis=1)
    assert (model.components_[np.arange(4), largest] > 0).all()
    np.testing.assert_allclose(model.inverse_transform(model.transform(X[:20])), X[:20], atol=1e-12)
    few = fitted(LDPPCA, n_components=2)
    np.testing.assert_array_equal(few.components_, model.components_[:2])
    np.testing.assert_array_equal(few.explained_variance_, model.explained_variance_[:2])
    np.testing.assert_allclose(model.explained_variance_, np.linalg.eigvalsh(model.covariance_)[::-1])
    np.testing.assert_allclose(model.explained_variance_.sum(), np.trace(model.covariance_))
    projected = few.inverse_transform(few.transform(X[:20])) - few.mean_
    np.testing.assert_allclose(projected, (X[:20] - few.mean_) @ few.components_.T @ few.components_, atol=1e-12)
    with pytest.raises(ValueError, match="2 features"):
        few.transform(X[:3, :2])


@pytest.mark.parametrize("n_components, expected", [(None, 4), (1, 1), (4, 4), (0.5, 1), (0.999, 4), (np.int64(2), 2)])
def test_number_of_components(n_components, expected):
    model = fitted(LDPPCA, n_components=n_components)
    assert model.n_components_ == len(model.components_) == len(model.explained_variance_ratio_) == expected
    assert model.transform(X[:3]).shape == (3, expected)
    if isinstance(n_components, float):
        shares = np.cumsum(fitted(LDPPCA).explained_variance_ratio_)
        assert shares[expected - 1] >= n_components > (shares[expected - 2] if expected > 1 else 0.0)


def test_explained_variances_have_the_diagnostics_of_their_draws():
    model = LDPPCA(epsilon=4.0, random_state=0, n_components=3).fit(X)
    draws = model.posterior_.draws
    along = np.einsum("ki,cnij,kj->cnk", model.components_, draws["covariance"], model.components_)
    np.testing.assert_allclose(draws["explained_variance"], along)
    np.testing.assert_allclose(draws["explained_variance_ratio"].sum(axis=2) * np.trace(
        draws["covariance"], axis1=2, axis2=3), along.sum(axis=2))
    for name in ("explained_variance", "explained_variance_ratio"):
        assert (model.posterior_.rhat[name] < 1.03).all() and (model.posterior_.ess[name] > 400).all()
        assert np.isfinite(model.posterior_.ess_tail[name]).all()
    assert np.isnan(fitted(LDPPCA).posterior_.rhat["explained_variance"]).all()


@pytest.mark.parametrize("n_components", [0, 5, -1, 1.0, 0.0, "mle", True])
def test_wrong_numbers_of_components_raise(n_components):
    with pytest.raises(InvalidParameterError, match="n_components"):
        fitted(LDPPCA, n_components=n_components, rows=X[:100])


def test_angles_are_wide_for_few_reports_and_narrow_for_many():
    few = LDPPCA(random_state=0).fit(X[:500])
    many = fitted(LDPPCA, epsilon=np.inf)
    component, subspace = few.direction_angles()
    assert component.min() > 60 and subspace[:3].min() > 60 and subspace[3] < 1e-3
    component, subspace = many.direction_angles()
    assert component.max() < 5 and subspace.max() < 5
    assert (many.direction_angles(0.5)[0] < component).all()
    assert component[0] == pytest.approx(subspace[0])
    for level in (0.0, 1.0, "a"):
        with pytest.raises(InvalidParameterError, match="level"):
            many.direction_angles(level)


def test_equal_variances_leave_the_axes_unknown_but_not_their_plane():
    rows = RNG.normal(size=(40_000, 4)) * [0.3, 0.3, 0.05, 0.05]
    component, subspace = fitted(LDPPCA, rows=rows, epsilon=8.0).direction_angles()
    assert component[:2].min() > 20 and subspace[1] < 15


@pytest.mark.slow
def test_angles_cover_the_truth():
    truth = PCA().fit(X).components_
    inside = []
    for seed in range(20):
        model = fitted(LDPPCA, random_state=seed, epsilon=2.0)
        cosines = np.abs(np.vecdot(model.components_, truth))
        inside.append(np.degrees(np.arccos(np.minimum(cosines, 1.0)))[:2] <= model.direction_angles(0.9)[0][:2])
    assert np.mean(inside) > 0.8


# Disjoint people in one pipeline.


def test_a_pipeline_spends_a_share_of_its_people():
    y = X @ [1.0, -0.5, 0.3, 0.0]
    pipeline = make_pipeline(LDPPCA(n_components=2, **QUICK), LDPBayesLinearRegression(**QUICK))
    first = np.arange(len(X)) % 4 == 0
    budgets = {"ldppca__sample_epsilon": 2.0 * first, "ldpbayeslinearregression__sample_epsilon": 2.0 * ~first}
    with Ledger() as spent:
        pipeline.fit(X, y, **budgets)
    assert spent.largest == 2.0
    axes, line = pipeline
    assert (axes.n_reports_, line.n_reports_) == (10_000, 30_000) and axes.epsilon_ == line.epsilon_ == 2.0
    by_hand = LDPPCA(epsilon=2.0, n_components=2, **QUICK).fit(X[first])
    np.testing.assert_array_equal(axes.components_, by_hand.components_)
    reference = LDPBayesLinearRegression(epsilon=2.0, **QUICK).fit(by_hand.transform(X[~first]), y[~first])
    np.testing.assert_array_equal(line.coef_, reference.coef_)
    # The records of the others change nothing.
    changed = X.copy()
    changed[~first] = changed[~first][::-1]
    np.testing.assert_array_equal(clone(pipeline).fit(changed, y, **budgets)[0].components_, axes.components_)


def test_shares_of_people_work_in_cross_validation():
    y = X @ [1.0, -0.5, 0.3, 0.0]
    pipeline = make_pipeline(LDPPCA(n_components=2, **QUICK), LDPBayesLinearRegression(**QUICK))
    first = RNG.random(len(X)) < 0.3
    params = {"ldppca__sample_epsilon": 4.0 * first, "ldpbayeslinearregression__sample_epsilon": 4.0 * ~first}
    assert cross_val_score(pipeline, X, y, cv=2, params=params).shape == (2,)


@pytest.mark.parametrize("name", ["gaussian", "histogram, counts", "linear", "covariance", "logistic, inputs"])
def test_a_budget_of_zero_asks_nobody(name):
    estimator, data = clone(CASES[name][0]), CASES[name][1]
    budgets = np.where(np.arange(3000) % 3 == 0, 0.0, 2.0)
    some = estimator.fit(*data, sample_epsilon=budgets)
    assert some.n_reports_ == 2000
    alone = clone(estimator).fit(*(values[budgets > 0] for values in data), sample_epsilon=budgets[budgets > 0])
    for parameter, draws in alone.posterior_.draws.items():
        np.testing.assert_array_equal(some.posterior_.draws[parameter], draws)


def test_if_nobody_is_asked_the_posterior_is_the_prior():
    with pytest.warns(UserWarning, match="no reports"):
        model = LDPCovariance(**QUICK).fit(X[:50], sample_epsilon=np.zeros(50))
    assert model.n_reports_ == 0
