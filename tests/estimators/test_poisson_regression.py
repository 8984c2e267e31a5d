"""Public behaviour of LDPBayesPoissonRegression."""

import functools
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import PoissonRegressor
from sklearn.metrics import d2_tweedie_score
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from skldp import BoundedScaler, LDPBayesPoissonRegression, Moments, RegressionPrior
from skldp.exceptions import InvalidReportError
from skldp.protocols import CountRoundProtocol, Protocol
from tests.estimators.round_cases import CASES, RATE, X

CASE = CASES["counts"]
Y = CASE.y


@functools.cache
def fitted(**parameters):
    """Return a fit of all records; tests share it and must not change it."""
    return CASE.make(**parameters).fit(X, Y)


def test_constructor():
    parameters = inspect.signature(LDPBayesPoissonRegression).parameters
    assert len(parameters) <= 14 and all(one.kind is one.KEYWORD_ONLY for one in parameters.values())
    model = LDPBayesPoissonRegression()
    assert (model.epsilon, model.delta, model.data_norm, model.bounds_y, model.mechanism, model.fit_intercept,
            model.prior, model.inference, model.n_rounds) == (1.0, 1e-5, 1.0, (0, 20), "auto", True, "auto", "mcmc",
                                                              "auto")
    tags = model.__sklearn_tags__()
    assert tags.estimator_type == "regressor" and tags.target_tags.required and tags.target_tags.positive_only
    assert tags.regressor_tags.poor_score and not tags.target_tags.multi_output


@pytest.mark.parametrize("parameters", [{}, {"n_rounds": 1}, {"fit_intercept": False}, {"mechanism": "gaussian"}],
                         ids=str)
def test_shapes(parameters):
    model = fitted(**parameters)
    for name in ("coef_", "coef_std_", "predictive_coef_"):
        assert getattr(model, name).shape == (2,)
    assert model.information_["coef"].shape == (2,) and model.covariance_.shape == (2, 2)
    assert np.ndim(model.intercept_) == np.ndim(model.predictive_intercept_) == 0
    assert (model.intercept_ == 0) == ("fit_intercept" in parameters) and (model.coef_std_ > 0).all()
    assert model.n_reports_ == len(X) and model.epsilon_ == 4.0 and model.fit_check_ is None
    assert model.delta_ == (1e-5 if "mechanism" in parameters else 0.0)
    mean, std = model.predict(X[:50], return_std=True)
    assert mean.shape == std.shape == (50,) and (mean == model.predict(X[:50])).all()
    np.testing.assert_allclose(mean, np.exp(X[:50] @ model.predictive_coef_ + model.predictive_intercept_), rtol=1e-12)
    assert (std > np.sqrt(mean)).all(), "a Poisson variable, and the uncertainty of the parameters"
    assert model.posterior_.draws["coef"].shape[2:] == (2,)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_skewed_columns_agree_with_maximum_likelihood(fit_intercept):
    """Every record five times, so that the groups of the rounds are nearly alike."""
    y = Y if fit_intercept else np.random.default_rng(1).poisson(np.exp(X @ RATE[1:]))
    plain = PoissonRegressor(alpha=0.0, fit_intercept=fit_intercept).fit(X, y)
    model = CASE.make(epsilon=np.inf, fit_intercept=fit_intercept, bounds_y=(0, 40))
    model.fit(np.tile(X, (5, 1)), np.tile(y, 5))
    assert (np.abs(model.coef_ - plain.coef_) < 4 * model.coef_std_).all()
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.2)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), rtol=0.1)
    assert model.score(X, y) == pytest.approx(plain.score(X, y), abs=2e-3)


def test_chains_cover_the_truth_and_have_diagnostics():
    model = fitted(inference="mcmc")
    interval = model.posterior_.interval(0.9995)
    assert ((interval["coef"][:, 0] < RATE[1:]) & (RATE[1:] < interval["coef"][:, 1])).all()
    assert interval["intercept"][0] < RATE[0] < interval["intercept"][1]
    for name in ("coef", "intercept", "covariance"):
        assert model.posterior_.rhat[name].max() <= 1.05 and model.posterior_.ess[name].min() >= 400
    assert (model.coef_ == model.posterior_.mean()["coef"]).all()


def test_score_is_the_share_of_the_deviance_that_is_explained():
    model, weights = fitted(epsilon=np.inf), np.random.default_rng(0).random(len(X))
    assert model.score(X, Y) == d2_tweedie_score(Y, model.predict(X), power=1)
    assert model.score(X, Y, weights) == d2_tweedie_score(Y, model.predict(X), sample_weight=weights, power=1)
    assert 0.3 < model.score(X, Y) < 1


def test_predictive_standard_deviations_of_counts():
    """Of counts that are drawn from every draw of the posterior."""
    model, rng = fitted(epsilon=20.0), np.random.default_rng(0)
    draws = model.sample_posterior(4000, random_state=0)
    rates = np.exp(X[:30] @ draws["coef"].T + draws["intercept"])
    mean, std = model.predict(X[:30], return_std=True)
    simulated = np.sqrt(np.mean((rng.poisson(rates) - mean[:, None]) ** 2, axis=1))
    np.testing.assert_allclose(std, simulated, rtol=0.12)


def test_counts_above_the_bound_are_clipped_and_part_of_the_model():
    many = CASE.make(bounds_y=(0, 3), epsilon=np.inf)
    assert (many.privatize(X, Y) == many.privatize(X, np.minimum(Y, 3))).all()
    assert np.mean(Y > 3) > 0.15
    model = CASE.make(bounds_y=(0, 3), epsilon=np.inf).fit(X, Y)
    np.testing.assert_allclose(model.coef_, RATE[1:], atol=0.35)
    assert model.predict(X).max() > 3, "rates are those of counts that are not clipped"
    naive = PoissonRegressor(alpha=0.0).fit(X, np.minimum(Y, 3))
    assert np.abs(naive.coef_ - RATE[1:]).max() > 0.5


def test_counts_that_vary_more_do_not_bias_the_coefficients():
    rng = np.random.default_rng(0)
    rate = np.exp(RATE[0] + X @ RATE[1:])
    y = rng.poisson(rate * rng.gamma(2.0, 0.5, size=len(X)))
    assert y.var() > 1.5 * Y.var() or np.mean((y - rate) ** 2) > 1.5 * np.mean(rate)
    model = CASE.make(epsilon=np.inf, bounds_y=(0, 60)).fit(np.tile(X, (5, 1)), np.tile(y, 5))
    np.testing.assert_allclose(model.coef_, PoissonRegressor(alpha=0.0).fit(X, y).coef_, atol=0.3)


@pytest.mark.parametrize("y, message", [
    (np.where(np.arange(50) == 7, -1, 1), "1 negative values, and counts cannot be negative"),
    (np.full(50, np.nan), "NaN"), (np.full(50, np.inf), "infinity"), (None, "requires y"),
    (np.ones(49), "inconsistent"), (np.ones((50, 2)), "1d array|should be a 1d"),
    (np.full(50, "many"), "could not convert|string"),
])
def test_invalid_counts_raise_as_in_scikit_learn(y, message):
    model = CASE.make()
    with pytest.raises(ValueError, match=message):
        model.fit(X[:50], y)
    assert not hasattr(model, "posterior_")


def test_fractional_responses_are_taken_as_they_are():
    """As in PoissonRegressor: a rate per unit of time, for example."""
    plain = CASE.make(epsilon=np.inf, n_rounds=1)
    assert (plain.privatize(X[:50], Y[:50] + 0.5) != plain.privatize(X[:50], Y[:50])).any()
    with pytest.raises(ValueError, match="NaN"):
        CASE.make().fit(np.full((50, 2), np.nan), Y[:50])


@pytest.mark.parametrize("y", [np.zeros(3000), np.full(3000, 12), np.full(3000, 10**9)])
def test_counts_that_are_all_alike_have_finite_results(y):
    model = CASE.make().fit(X[:3000], y)
    assert np.isfinite(model.coef_).all() and np.isfinite(model.predict(X[:9])).all()


@pytest.mark.parametrize("parameters, message", [
    ({"epsilon": 0}, "epsilon must be positive"), ({"epsilon": 21.0}, "above 20"), ({"data_norm": None}, "data_norm"),
    ({"bounds_y": (1, 20)}, r"bounds_y must be a pair \(0, b\)"), ({"bounds_y": None}, "bounds_y must be a pair"),
    ({"bounds_y": (0, 2.5)}, "bounds_y must end with a whole number"), ({"bounds_y": (0, 0)}, "bounds_y must be"),
    ({"mechanism": "records"}, "Counts are collected as score"), ({"mechanism": "laplace"}, "mechanism must"),
    ({"mechanism": "gaussian", "delta": 0}, "delta"), ({"n_rounds": 0}, "n_rounds"), ({"n_rounds": 17}, "n_rounds"),
    ({"prior": "wide"}, "prior must be"), ({"inference": "exact"}, "inference"),
    ({"random_state": "x"}, "random_state"),
])
def test_bad_parameters_raise_in_fit(parameters, message):
    model = CASE.make(**parameters)
    with pytest.raises(ValueError, match=message) as raised:
        model.fit(X[:50], Y[:50])
    assert str(raised.value).strip().endswith(".") and not hasattr(model, "posterior_")


def test_methods_before_fit_raise():
    with pytest.raises(NotFittedError):
        CASE.make().predict(X)
    with pytest.raises(TypeError, match="takes no sample_weight"):
        CASE.make().fit(X[:50], Y[:50], sample_weight=np.ones(50))


def test_one_round_is_privatize_then_fit_reports():
    whole, apart = fitted(n_rounds=1), CASE.make(n_rounds=1)
    reports = apart.privatize(X, Y)
    assert isinstance(whole.protocol_, CountRoundProtocol) and whole.protocol_ == apart.protocol(2)
    apart.fit_reports([reports[:5000], reports[5000:]])
    assert all((apart.posterior_.draws[name] == draws).all() for name, draws in whole.posterior_.draws.items())
    published = Protocol.from_json(CASE.make().protocol(2).to_json())
    assert CASE.make().fit_reports(published.privatize(X[:100], Y[:100])).n_reports_ == 100
    other = CASE.make(bounds_y=(0, 5)).aggregate(CASE.make(bounds_y=(0, 5)).privatize(X[:9], Y[:9]))
    with pytest.raises(InvalidReportError, match="bounds_y"):
        CASE.make().fit_reports(other)


def test_few_clients_have_one_round_and_more_have_three():
    assert len(CASE.make().fit(X[:999], Y[:999]).rounds_) == 1 and len(fitted().rounds_) == 3


def test_personal_budgets():
    budgets = np.where(np.arange(len(X)) % 2, 16.0, 1.0)
    model = CASE.make().fit(X, Y, sample_epsilon=budgets)
    assert model.epsilon_ == 16.0 and [len(part.parts) for _, part in model.rounds_] == [2, 2, 2]
    assert fitted(epsilon=16.0).coef_std_.mean() < model.coef_std_.mean() < fitted(epsilon=1.0).coef_std_.mean()


def test_results_scale_with_the_units_of_the_data():
    one, two = fitted(n_rounds=1), CASE.make(n_rounds=1, data_norm=5.0)
    aggregate = one.rounds_[0][1]
    tally = aggregate.parts[one.protocol_]
    moved = type(aggregate)({two.protocol(2): tally})
    two.fit_reports(moved)
    np.testing.assert_allclose(two.coef_, one.coef_ / 5, rtol=1e-9)
    np.testing.assert_allclose(two.covariance_, one.covariance_ * 25, rtol=1e-9)
    np.testing.assert_allclose(two.predict(5 * X[:50]), one.predict(X[:50]), rtol=1e-9)


def test_names_influence_and_representations():
    model = CASE.make().fit(pd.DataFrame(X[:3000], columns=["carat", "depth"]), Y[:3000])
    assert list(model.posterior_.summary().index)[:3] == ["coef[carat]", "coef[depth]", "intercept"]
    assert "no privacy" in repr(CASE.make(epsilon=np.inf)) and "PoissonRegression" in model._repr_html_()
    bound = fitted().influence_bound(10)
    assert bound["coef"].shape == (2,) and (bound["coef"] > 0).all()
    np.testing.assert_allclose(fitted().influence_bound(20)["coef"], 2 * bound["coef"])


def test_prior_and_mechanism_objects():
    narrow = CASE.make(prior=RegressionPrior(coef="normal", coef_scale=0.01)).fit(X, Y)
    assert np.abs(narrow.coef_).max() < 0.1
    assert CASE.make(mechanism=Moments(intercept_weight=0.8)).protocol(2).intercept_weight == 0.8


def test_pickle_clone_and_pipeline():
    model = fitted()
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict(X[:99]) == model.predict(X[:99])).all()
    assert (clone(model).fit(X, Y).coef_ == model.coef_).all(), "a seed gives the same reports"
    pipeline = make_pipeline(BoundedScaler(bounds=(0, 0.7)), CASE.make(epsilon=20.0))
    assert cross_val_score(pipeline, X, Y, cv=2).min() > 0.2
