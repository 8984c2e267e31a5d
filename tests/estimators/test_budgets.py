"""Personal budgets: cohorts in one fit, also through scikit-learn's metadata routing."""

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline

from skldp import BoundedScaler, LDPBayesLinearRegression, LDPGaussian, LDPHistogram
from skldp.exceptions import InvalidParameterError
from tests.estimators.test_streams import CASES, cases

HALF = np.where(np.arange(3000) % 2, 4.0, 0.5)


@cases
def test_fit_is_the_sum_of_the_cohorts(name):
    estimator, data = clone(CASES[name][0]), CASES[name][1]
    mixed = estimator.fit(*data, sample_epsilon=HALF).posterior_.mean()
    parts = []
    for epsilon in (0.5, 4.0):
        cohort = clone(estimator).set_params(epsilon=epsilon)
        parts.append(cohort.aggregate(cohort.privatize(*(values[HALF == epsilon] for values in data))))
    by_hand = clone(estimator).fit_reports(sum(parts))
    assert (by_hand.epsilon_, by_hand.n_reports_) == (estimator.epsilon_, estimator.n_reports_) == (4.0, 3000)
    for parameter, value in by_hand.posterior_.mean().items():
        np.testing.assert_array_equal(mixed[parameter], value)


@pytest.mark.parametrize("name, attribute", [("gaussian", "mean"), ("histogram, rows", "frequencies"),
                                             ("histogram, counts", "frequencies"), ("histogram, rr", "frequencies"),
                                             ("linear", "coef"), ("logistic", "coef")])
def test_two_cohorts_have_a_narrower_posterior_than_either(name, attribute):
    estimator = clone(CASES[name][0])
    data = tuple(np.concatenate([values] * 15) for values in CASES[name][1])
    budgets = np.where(np.arange(45_000) % 2, 6.0, 3.0)
    widths = {}
    for kind, rows in (("both", budgets > 0), ("low", budgets == 3.0), ("high", budgets == 6.0)):
        part = tuple(values[rows] for values in data)
        widths[kind] = estimator.fit(*part, sample_epsilon=budgets[rows]).posterior_.std()[attribute].mean()
    assert widths["both"] < widths["high"] < widths["low"]


@pytest.mark.parametrize("estimator, draw", [
    (LDPGaussian(random_state=0, inference="laplace"), lambda rng, n: rng.normal(size=(n, 1))),
    (LDPHistogram(categories=range(8), likelihood="counts", random_state=0, inference="laplace"),
     lambda rng, n: rng.choice(8, size=(n, 1)))])
def test_clients_with_a_small_budget_still_narrow_the_posterior(estimator, draw):
    X = draw(np.random.default_rng(0), 20_000)
    budgets = np.where(np.arange(20_000) % 2, 4.0, 0.5)
    widths = []
    for rows in (budgets > 0, budgets == 4.0, budgets == 0.5):
        std = estimator.fit(X[rows], sample_epsilon=budgets[rows]).posterior_.std()
        widths.append(np.mean(next(iter(std.values()))))
    # The half with the small budget has a few per cent of the information of the other half.
    assert 0.97 * widths[1] < widths[0] < widths[1] < 0.2 * widths[2]


def test_equal_personal_budgets_are_the_same_as_the_parameter():
    estimator, data = CASES["gaussian"]
    plain = clone(estimator).set_params(epsilon=2.0).fit(*data)
    personal = clone(estimator).fit(*data, sample_epsilon=np.full(3000, 2.0))
    np.testing.assert_array_equal(plain.mean_, personal.mean_)


@pytest.mark.parametrize("budgets, message", [
    (np.ones(7), "one number for each of the 10 clients"),
    (np.ones((10, 1)), "one number for each"),
    (["a"] * 10, "one number for each"),
    ([True] * 10, "one number for each"),
    ([np.nan] + [1.0] * 9, "NaN"),
    ([-1.0] + [1.0] * 9, "sample_epsilon must be positive"),
    ([50.0] + [1.0] * 9, "above 20"),
])
def test_bad_budgets_are_refused(budgets, message):
    with pytest.raises(InvalidParameterError, match=message):
        LDPGaussian().fit(np.zeros((10, 1)), sample_epsilon=budgets)


def test_too_many_distinct_budgets_are_refused():
    X = np.zeros((40, 1))
    with pytest.raises(InvalidParameterError, match="33 distinct values.*Round"):
        LDPGaussian().fit(X, sample_epsilon=1 + np.minimum(np.arange(40), 32) / 100)
    LDPGaussian(inference="laplace").fit(X, sample_epsilon=1 + np.minimum(np.arange(40), 31) / 100)


def test_budgets_follow_their_clients_through_cross_validation():
    X, y = CASES["linear"][1]
    with sklearn.config_context(enable_metadata_routing=True):
        model = LDPBayesLinearRegression(inference="laplace", random_state=0).set_fit_request(sample_epsilon=True)
        found = cross_validate(make_pipeline(BoundedScaler(), model), X, y, cv=3, params={"sample_epsilon": HALF},
                               return_estimator=True)
    for pipeline in found["estimator"]:
        assert pipeline[-1].epsilon_ == 4.0 and pipeline[-1].n_reports_ == 2000
