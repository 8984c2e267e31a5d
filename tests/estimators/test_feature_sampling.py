"""``features_per_client`` of the linear and the logistic regression."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone

from skldp import LDPBayesLinearRegression, LDPBayesLogisticRegression, Moments, PublicColumns, required_reports
from skldp.exceptions import ImplausibleReportsWarning, InvalidParameterError, InvalidReportError
from skldp.protocols import Protocol, SampledLabelMomentProtocol, SampledMomentProtocol

pytestmark = pytest.mark.filterwarnings("ignore::skldp.exceptions.StatisticalWarning")
N, D = 40_000, 5
LINE = np.array([1.0, -0.5, 0.0, 0.4, 0.2])
BOX = 1 / np.sqrt(D)


def records(n=N, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-BOX, BOX, size=(n, D))
    return X, 0.5 * X @ LINE + 0.1 + rng.normal(scale=0.1, size=n)


def linear(**options):
    return LDPBayesLinearRegression(**{"epsilon": 8.0, "features_per_client": 2, "inference": "laplace",
                                       "random_state": 0, **options})


def logistic(**options):
    return LDPBayesLogisticRegression(**{"epsilon": 8.0, "features_per_client": 2, "inference": "laplace",
                                         "classes": ["no", "yes"], "random_state": 0, **options})


def labels_of(X, seed=1):
    return np.where(np.random.default_rng(seed).random(len(X)) < expit(6 * X @ LINE + 0.5), "yes", "no")


@pytest.mark.parametrize("inference", ["laplace", "mcmc"])
@pytest.mark.parametrize("epsilon", [8.0, np.inf])
def test_linear_fit(inference, epsilon):
    X, y = records()
    model = linear(inference=inference, epsilon=epsilon).fit(X, y)
    assert (np.abs(model.coef_ - 0.5 * LINE) < 4 * model.coef_std_).all()
    assert model.coef_std_.max() < 0.05
    assert abs(model.intercept_ - 0.1) < 0.02 and abs(model.sigma_ - 0.1) < 0.05
    assert model.score(X, y) > 0.5
    assert (model.epsilon_, model.delta_, model.fit_check_) == (epsilon, 0.0, None)


@pytest.mark.parametrize("inference", ["laplace", "mcmc"])
@pytest.mark.parametrize("epsilon", [8.0, np.inf])
def test_logistic_fit(inference, epsilon):
    X, _ = records()
    y = labels_of(X)
    model = logistic(inference=inference, epsilon=epsilon).fit(X, y)
    # Uniform columns are not normal, which one round assumes.
    assert np.abs(model.coef_[0] - 6 * LINE).max() < 1.5
    assert model.score(X, y) > 0.7
    assert len(model.rounds_) == 1 and type(model.protocol_) is SampledLabelMomentProtocol


@pytest.mark.parametrize("of, response", [(linear, None), (logistic, labels_of)])
def test_fit_equals_fit_reports_and_chunks(of, response):
    X, y = records(3000)
    y = y if response is None else response(X)
    model = of()
    reports = model.privatize(X, y)
    assert reports.shape == (3000, D + 3) and reports.dtype == np.int16
    assert ((reports == -(2**15)).sum(axis=1) == D - 2).all()
    whole = of().fit(X, y)
    for found in (clone(model).fit_reports(reports),
                  clone(model).fit_reports(model.aggregate(reports[:1000]) + model.aggregate(reports[1000:]))):
        np.testing.assert_array_equal(found.coef_, whole.coef_)
        assert found.n_features_in_ == D


def test_clients_report_by_the_published_protocol():
    X, y = records(2000)
    protocol = Protocol.from_json(linear().protocol(D).to_json())
    model = linear().fit_reports(protocol.privatize(X, y))
    assert type(model.protocol_) is SampledMomentProtocol and model.n_reports_ == 2000


def test_personal_budgets():
    X, y = records(20_000)
    model = linear().fit(X, y, sample_epsilon=np.repeat([2.0, 8.0], 10_000))
    assert len(model.aggregate_.parts) == 2
    assert (np.abs(model.coef_ - 0.5 * LINE) < 4 * model.coef_std_).all()


def test_several_responses_and_no_intercept():
    X, y = records()
    both = np.column_stack([y, 0.3 * X[:, 1]])
    model = linear().fit(X, both)
    assert model.coef_.shape == (2, D)
    assert (np.abs(model.coef_ - [0.5 * LINE, [0, 0.3, 0, 0, 0]]) < 5 * model.coef_std_).all()
    assert linear(fit_intercept=False).fit(X, y - 0.1).intercept_ == 0.0


def test_more_features_per_client_than_features_are_all_of_them():
    X, y = records(20_000)
    options = {"epsilon": np.inf, "mechanism": "axis", "fit_intercept": False}
    one, other = (linear(features_per_client=s, **options).fit(X, y - 0.1) for s in (None, 9))
    np.testing.assert_allclose(other.coef_, one.coef_, atol=0.02 * np.abs(one.coef_).max())
    np.testing.assert_allclose(other.coef_std_, one.coef_std_, rtol=0.15)


def test_raw_columns():
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.uniform(0, 10, N), rng.uniform(-5, 5, N), rng.uniform(0, 1, N)])
    columns = PublicColumns(schema={"a": (0, 10), "b": (-5, 5), "c": (0, 1)}).fit(table)
    y = 0.05 * table[:, 0] - 0.03 * table[:, 1]
    protocol = columns.protocol(linear())
    model = linear().fit_reports(protocol.aggregate(protocol.privatize(table, y)))
    np.testing.assert_allclose(model.coef_, np.array([0.05 * 5, -0.03 * 5, 0.0]) * np.sqrt(3), atol=0.1)


@pytest.mark.parametrize("mechanism", ["sphere", "gaussian", "records", Moments(kind="gaussian")])
@pytest.mark.parametrize("of", [linear, logistic])
def test_other_mechanisms_are_refused(of, mechanism):
    with pytest.raises(InvalidParameterError, match="features_per_client=2 needs reports of axes"):
        of(mechanism=mechanism).protocol(D)


@pytest.mark.parametrize("mechanism", ["auto", "axis", Moments(y_weight=0.8, intercept_weight=0.4)])
def test_axes_are_automatic(mechanism):
    protocol = linear(mechanism=mechanism).protocol(D)
    assert (protocol.mechanism, protocol.features_per_client) == ("axis", 2)
    assert protocol.y_weight == (0.8 if isinstance(mechanism, Moments) else 1.0)


@pytest.mark.parametrize("n_rounds", [2, 3])
def test_several_rounds_are_refused(n_rounds):
    X, _ = records(2000)
    with pytest.raises(InvalidParameterError, match=f"Some features .* one round, got n_rounds={n_rounds}"):
        logistic(n_rounds=n_rounds).fit(X, labels_of(X))


def test_several_labels_are_refused():
    X, _ = records(300)
    y = np.random.default_rng(0).choice(["a", "b", "c"], size=300)
    with pytest.warns(UserWarning, match="classes"), pytest.raises(ValueError, match="Only binary classification"):
        logistic(classes=None).fit(X, y)
    with pytest.raises(InvalidParameterError, match="classes must be two"):
        logistic(classes=["a", "b", "c"]).fit(X, y)


@pytest.mark.parametrize("value", [1, 0, -1, 2.0, "all", True])
def test_the_number_is_an_integer_of_at_least_two(value):
    X, y = records(50)
    with pytest.raises(InvalidParameterError, match="features_per_client"):
        linear(features_per_client=value).fit(X, y)


def test_reports_of_another_collection_are_refused():
    X, y = records(500)
    reports = linear(features_per_client=3).privatize(X, y)
    with pytest.raises(InvalidReportError, match="could not have come from SampledMomentProtocol"):
        linear().fit_reports(reports)
    with pytest.raises(InvalidReportError, match="features_per_client is 3 there"):
        linear().fit_reports(linear(features_per_client=3).aggregate(reports))
    with pytest.raises(TypeError, match="SampledMomentProtocol"):
        linear(features_per_client=None).fit_reports(linear(features_per_client=3).aggregate(reports))


def test_an_unfair_coin_is_detected():
    X, y = records(4000)
    model = linear()
    reports = model.privatize(X, y)
    assert model.check_reports(reports).p_value > 1e-3
    kept = reports[(reports[:, 1] != -(2**15)) | (np.arange(4000) < 3000)]
    with pytest.warns(ImplausibleReportsWarning, match="are about feature 0, and the coin chooses it"):
        assert model.check_reports(kept).p_value < 1e-4


@pytest.mark.parametrize("of, response", [(linear, None), (logistic, labels_of)])
def test_forged_reports_do_not_exceed_the_influence_bound(of, response):
    X, y = records(20_000)
    y = y if response is None else response(X)
    model = of(epsilon=4.0)
    reports = model.privatize(X, y)
    before = clone(model).fit_reports(reports)
    bound = before.influence_bound(100)
    assert set(bound) == set(before.posterior_.mean())
    largest = np.zeros(D)
    close = of(epsilon=20.0).protocol(D)
    for record, answer in (([BOX, BOX, 0, 0, 0], 1), ([-BOX, BOX, 0, 0, 0], -1), ([BOX, 0, 0, 0, 0], 1)):
        honest = close._randomize([record] * 3000, [answer if response is None else "yes"] * 3000, 1)
        forged = honest[(honest[:, 1:3] != -(2**15)).all(axis=1)][:100]  # all about the first two features
        after = clone(model).fit_reports(np.concatenate([reports, forged]))
        largest = np.maximum(largest, np.abs(after.coef_ - before.coef_).ravel())
    assert (largest < bound["coef"].ravel()).all()
    assert largest[0] > 0.1 * bound["coef"].ravel()[0], "the bound is of the size of what forged reports do"


def test_people_can_be_planned():
    """A subset needs more people than all features at a large epsilon, and the plan includes the records' spread."""
    plan = {"width": 0.1, "feature_std": 0.25, "sigma": 0.2, "n_features": 5}
    some, every = (required_reports(linear(epsilon=20.0, features_per_client=s, mechanism="axis"), **plan)
                   for s in (2, None))
    assert 1.5 * every < some < 20 * every


@pytest.mark.slow
def test_planned_widths_are_those_of_fits():
    plan, rng = {"feature_std": 0.2, "sigma": 0.1, "n_features": 4}, np.random.default_rng(0)
    for epsilon, width in ((4.0, 0.1), (20.0, 0.03)):
        n = required_reports(linear(epsilon=epsilon), width, **plan)
        X = rng.normal(scale=0.2, size=(n, 4))
        model = linear(epsilon=epsilon, inference="mcmc").fit(X, rng.normal(scale=0.1, size=n))
        print(n, 2 * 1.645 * model.coef_std_.mean() / width)
        assert 0.85 < 2 * 1.645 * model.coef_std_.mean() / width < 1.15
