"""Test of whether a fitted model explains its own reports."""

import dataclasses
import pickle
import warnings

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from skldp import (
    FitCheck,
    LDPBayesLinearRegression,
    LDPDistribution,
    LDPExponential,
    LDPGaussian,
    LDPHistogram,
    LDPPoisson,
)
from skldp.analysis._fit_checks import WARNING_LEVEL, largest_p_value
from skldp.exceptions import ModelMisfitWarning, StatisticalWarning
from skldp.models._residuals import Residuals

QUICK = {"inference": "laplace", "random_state": 0}


def skewed(n=20_000, seed=0):
    return np.random.default_rng(seed).exponential(1.0, size=(n, 1))


def normal(n=20_000, n_columns=1):
    return np.random.default_rng(0).normal(1.0, 1.0, size=(n, n_columns))


def counts(n=20_000, n_columns=1):
    return np.random.default_rng(0).poisson(6, size=(n, n_columns))


def quiet_fit(model, *arguments, **options):
    """Return a fitted estimator, without its warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StatisticalWarning)
        return model.fit(*arguments, **options)


@pytest.mark.parametrize("make", [
    lambda: (LDPGaussian(**QUICK), normal()),
    lambda: (LDPGaussian(mechanism="laplace", random_state=0), normal()),  # Laplace's approximation is rough there
    lambda: (LDPGaussian(mechanism="gaussian", **QUICK), normal()),
    lambda: (LDPGaussian(epsilon=np.inf, **QUICK), normal()),
    lambda: (LDPExponential(**QUICK), skewed()),
    lambda: (LDPPoisson(epsilon=np.inf, mechanism="laplace", **QUICK),
             counts()),
    lambda: (LDPDistribution(distribution="binom", bounds=(0, 30), priors={"n": 30}, **QUICK),
             np.random.default_rng(0).binomial(30, 0.2, size=(20_000, 1))),
])
def test_records_of_the_model_do_not_warn(make):
    model, X = make()
    check = model.fit(X).fit_check_
    assert isinstance(check, FitCheck) and check.p_value > 0.01


@pytest.mark.parametrize("inference", ["laplace", "mcmc"])
def test_a_misfit_warns_at_the_call_of_fit(inference):
    model = LDPGaussian(bounds=(0, 5), inference=inference, random_state=0)
    with pytest.warns(ModelMisfitWarning, match="do not fit LDPGaussian .* Use LDPDensity") as found:
        model.fit(skewed())
    assert len(found) == 1 and found[0].filename == __file__
    check = model.fit_check_
    assert check.p_value < 1e-6 and abs(check.worst) > 5 and check.where in str(found[0].message)
    with pytest.warns(ModelMisfitWarning) as found:
        again = clone(model).fit_reports(model.aggregate_)
    assert found[0].filename == __file__
    if inference == "laplace":
        assert again.fit_check_ == check  # the seed of the draws is the same
    assert pickle.loads(pickle.dumps(model)).fit_check_ == check


def test_other_misfits_are_found():
    shifted = LDPExponential(upper=8.0, **QUICK)
    assert quiet_fit(shifted, 2 + skewed()).fit_check_.p_value < 1e-6
    zero_inflated = np.where(np.arange(20_000) % 2, 0, counts()[:, 0])[:, None]
    assert quiet_fit(LDPPoisson(**QUICK), zero_inflated).fit_check_.p_value < 1e-6
    spike = np.where(np.arange(20_000) % 4 == 0, 1.0, np.random.default_rng(0).normal(-1, 1.5, 20_000))[:, None]
    assert quiet_fit(LDPGaussian(epsilon=4.0, **QUICK), spike).fit_check_.p_value < 1e-6


def test_the_place_is_in_the_units_of_the_data():
    spike = np.where(np.arange(20_000) % 5 == 0, 2.0, np.random.default_rng(0).normal(0, 1.5, 20_000))[:, None]
    for unit in (1.0, 1000.0):
        check = quiet_fit(LDPGaussian(epsilon=8.0, bounds=(-5 * unit, 5 * unit), **QUICK), unit * spike).fit_check_
        low, high = (float(word) / unit for word in check.where.split()[1::2])
        assert check.worst > 10 and 1.6 < low < 2.0 < high < 2.4


def test_columns_are_combined_and_named():
    X = counts(n_columns=3)
    right = LDPPoisson(epsilon=6.0, columns="split", **QUICK).fit(X)
    assert right.fit_check_.p_value > 0.01
    alone = min(LDPPoisson(epsilon=2.0, **QUICK).fit_reports(part).fit_check_.p_value
                for part in columns(right.aggregate_))
    assert right.fit_check_.p_value == pytest.approx(min(1.0, 3 * alone), rel=0.3)  # other draws of the posterior
    X[:, 1] = 2 * (X[:, 1] // 2 + skewed()[:, 0].astype(int))
    with pytest.warns(ModelMisfitWarning, match="in column 1 "):
        right.fit(X)


def columns(aggregate):
    """Return the sums of each column as a collection of its own."""
    (protocol, tally), = aggregate.parts.items()
    single = dataclasses.replace(protocol, n_features=1, epsilon=protocol.epsilon / protocol.n_features)
    return [type(aggregate)({single: dataclasses.replace(tally, sums=tally.sums[[column]])})
            for column in range(protocol.n_features)]


def test_a_rough_approximation_is_not_checked():
    model = quiet_fit(LDPGaussian(mechanism="laplace", **QUICK), normal())
    assert model.posterior_.pareto_k > 0.7 and model.fit_check_ is None


def test_cohorts_are_added_up():
    X, budgets = counts(), np.resize([0.5, 1.0, 4.0], 20_000)
    right = LDPPoisson(**QUICK).fit(X, sample_epsilon=budgets)
    assert right.fit_check_.p_value > 0.01 and len(right.aggregate_.parts) == 3
    with pytest.warns(ModelMisfitWarning):
        right.fit(np.where(np.arange(20_000) % 2, 0, X[:, 0])[:, None], sample_epsilon=budgets)


def test_reports_that_cannot_tell_have_no_check():
    empty = np.empty((0, 1), dtype=int)
    for model in (LDPGaussian(**QUICK), LDPHistogram(categories=["a", "b"], mechanism="rr", **QUICK)):
        with pytest.warns(UserWarning, match="no reports"):
            assert model.fit_reports(empty).fit_check_ is None
    assert LDPGaussian(**QUICK).fit(normal(5)).fit_check_ is None
    X = np.random.default_rng(0).uniform(-0.5, 0.5, size=(2000, 2))
    assert LDPBayesLinearRegression(epsilon=4.0, **QUICK).fit(X, X[:, 0]).fit_check_ is None


@pytest.mark.parametrize("mechanism", ["subset", "oue", "rr"])
def test_any_frequencies_fit(mechanism):
    for n, share in ((50, 1.0), (20_000, 1.0), (20_000, 0.3)):
        X = np.where(np.random.default_rng(n).random((n, 1)) < share, 0, np.arange(n)[:, None] % 50)
        model = LDPHistogram(categories=range(50), mechanism=mechanism, likelihood="counts", epsilon=1.0, **QUICK)
        assert model.fit(X).fit_check_.p_value > 0.01


def test_counts_that_no_frequencies_explain_warn():
    model = LDPHistogram(categories=["a", "b", "c", "d"], mechanism="rr", epsilon=1.0, **QUICK)
    reports = np.repeat([0, 1, 3], 5000)[:, None]  # noise alone would name "c" more often
    with pytest.warns(ModelMisfitWarning, match="fewer reports with category 'c' .* forged") as found:
        model.fit_reports(reports)
    assert found[0].filename == __file__ and model.fit_check_.worst < -10
    unary = LDPHistogram(categories=range(40), mechanism="oue", epsilon=1.0, likelihood="counts", **QUICK)
    ones = np.random.default_rng(0).random((5000, 40)) < 0.4  # far more ones than the protocol sends
    with pytest.warns(ModelMisfitWarning, match="more reports with category"):
        unary.fit_reports(ones.astype(np.uint8))


def test_an_interrupt_leaves_the_check_as_it_was(monkeypatch):
    model = LDPGaussian(**QUICK).fit(normal(500))
    before = model.fit_check_
    monkeypatch.setattr(LDPGaussian, "_describe", lambda *arguments: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        model.fit(normal(600))
    assert model.fit_check_ is before


def test_residuals_of_fitted_parameters_have_the_stated_variance():
    """Without the correction for fitted parameters, or with its sign reversed, the mean square is not 1."""
    squares = []
    for seed in range(40):
        X = np.random.default_rng(seed).poisson(8, size=(3000, 1))
        model = LDPPoisson(epsilon=4.0, inference="laplace", random_state=seed).fit(X)
        residuals = model._models(model.aggregate_)[0].fit_residuals(model.posterior_.warm_starts[0].draws)
        share = residuals.expected / residuals.n_reports
        fitted = residuals.std**2 < 0.6 * residuals.n_reports * share * (1 - share)  # about half explained by the fit
        squares.append(np.mean(residuals.standardised()[fitted] ** 2))
    assert np.mean(squares) == pytest.approx(1.0, abs=0.2)


def test_standardised_counts_are_deviances():
    residuals = Residuals(np.array([25, 10, 0]), np.full(3, 10.0), np.sqrt(np.full(3, 10 * (1 - 1e-5))), 1_000_000)
    found = residuals.standardised()
    np.testing.assert_allclose(found, [np.sqrt(2 * (25 * np.log(2.5) - 15)), 0, -np.sqrt(20)], rtol=1e-4, atol=1e-9)
    assert stats.norm.sf(found[0]) == pytest.approx(stats.poisson.sf(24, 10), rel=0.5)


def test_the_p_value_of_the_largest_is_exact_for_known_correlations():
    independent, same = np.eye(5), np.tile(np.eye(5)[0], (5, 1))
    for largest in (1.0, 3.0, 6.0):
        tail = 2 * stats.norm.sf(largest)
        assert largest_p_value(largest, 5, independent) == pytest.approx(1 - (1 - tail) ** 5, rel=0.07)
        assert largest_p_value(largest, 5, same) == pytest.approx(tail, rel=1e-12)
    # A sequence of correlated variables, by simulation.
    directions = np.tril(np.ones((10, 10))) / np.sqrt(np.arange(1, 11))[:, None]
    sums = np.random.default_rng(1).standard_normal((200_000, 10)) @ directions.T
    for largest in (1.5, 3.0):
        expected = np.mean(np.abs(sums).max(axis=1) >= largest)
        assert largest_p_value(largest, 10, directions) == pytest.approx(expected, rel=0.1)
    assert largest_p_value(500.0, 10, directions) < 1e-290
    assert 0 < WARNING_LEVEL < 0.01
