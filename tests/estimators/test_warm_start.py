"""Warm starts on growing data give the same posterior as cold starts."""

import numpy as np
import pytest
from sklearn.base import clone

from skldp import (
    LDPBayesLinearRegression,
    LDPBayesLogisticRegression,
    LDPGaussian,
    LDPHistogram,
    RegressionPrior,
)
from skldp.sampling import _inference
from skldp.sampling._map import find_mode

RNG = np.random.default_rng(0)
X = 0.4 * RNG.normal(size=(20_000, 2))
Y = X @ [0.5, -0.3] + 0.2 * RNG.normal(size=20_000)
LABELS = (Y > 0).astype(int)
CASES = {
    "gaussian, two columns": (LDPGaussian(random_state=0), (X,), ("mean", "std")),
    "histogram": (LDPHistogram(categories=range(6), random_state=0), (RNG.integers(6, size=(20_000, 1)),),
                  ("frequencies",)),
    "linear": (LDPBayesLinearRegression(epsilon=2.0, random_state=0), (X, Y), ("coef", "intercept", "sigma")),
    "logistic": (LDPBayesLogisticRegression(epsilon=4.0, classes=[0, 1], random_state=0, n_rounds=1), (X, LABELS),
                 ("coef", "intercept")),
    "logistic, inputs": (LDPBayesLogisticRegression(epsilon=20.0, classes=[0, 1], mechanism="records", random_state=0),
                         (X, LABELS), ("coef", "intercept")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_warm_start_gives_the_posterior_of_a_cold_one(name, monkeypatch):
    searches = []
    monkeypatch.setattr(_inference, "find_mode", lambda *args: searches.append(1) or find_mode(*args))
    estimator, data, parameters = CASES[name]
    reports = estimator.privatize(*data)
    few = len(reports) // 4
    streamed = clone(estimator).set_params(warm_start=True).fit_reports(reports[:few])
    total = streamed.aggregate_ + streamed.aggregate(reports[few:])
    first = len(searches)
    warm = streamed.fit_reports(total).posterior_
    assert len(searches) == first > 0, "a warm start needs no search for the mode"
    cold = clone(estimator).fit_reports(total).posterior_
    assert len(searches) == 2 * first
    for parameter in parameters:
        error = cold.std()[parameter] * np.sqrt(1 / cold.ess[parameter] + 1 / warm.ess[parameter])
        assert (np.abs(warm.mean()[parameter] - cold.mean()[parameter]) < 4.5 * error).all()
        assert (warm.rhat[parameter] < 1.02).all()
        np.testing.assert_allclose(warm.std()[parameter], cold.std()[parameter], rtol=0.15)


def test_a_fit_with_another_number_of_columns_starts_cold():
    model = LDPGaussian(random_state=0, warm_start=True).fit(X)
    one = model.fit(X[:, :1])
    alone = LDPGaussian(random_state=0).fit(X[:, :1])
    np.testing.assert_array_equal(one.posterior_.draws["mean"], alone.posterior_.draws["mean"])


def test_after_a_laplace_fit_chains_start_at_its_mode():
    estimator, data, _ = CASES["linear"]
    model = clone(estimator).set_params(warm_start=True, inference="laplace").fit(*data)
    model.set_params(inference="mcmc").fit_reports(model.aggregate_)
    assert model.posterior_.rhat["coef"].max() < 1.02


def test_a_fit_with_other_bounds_starts_cold():
    values = np.abs(X[:2000, :1])
    model = LDPGaussian(bounds=(0, 10), random_state=0, warm_start=True).fit(values)
    moved = model.set_params(bounds=(1000, 1010)).fit(values + 1000)
    cold = LDPGaussian(bounds=(1000, 1010), random_state=0).fit(values + 1000)
    np.testing.assert_array_equal(moved.posterior_.draws["mean"], cold.posterior_.draws["mean"])


@pytest.mark.slow
def test_a_warm_start_with_another_prior_is_correct():
    model = LDPBayesLogisticRegression(epsilon=8.0, classes=[0, 1], random_state=0, warm_start=True, n_rounds=1)
    reports = model.aggregate(model.privatize(X[:1000], LABELS[:1000]))
    model.fit_reports(reports)
    tight = model.set_params(prior=RegressionPrior(coef="normal", coef_scale=0.5)).fit_reports(reports).posterior_
    cold = clone(model).set_params(warm_start=False).fit_reports(reports).posterior_
    error = cold.std()["coef"] * np.sqrt(1 / cold.ess["coef"] + 1 / tight.ess["coef"])
    assert (np.abs(tight.mean()["coef"] - cold.mean()["coef"]) < 4.5 * error).all()
    assert tight.rhat["coef"].max() < 1.02
