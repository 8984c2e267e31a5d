"""Warnings of the regressions: when they must be raised, and how often they are raised without reason."""

import re
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skldp import LDPBayesLinearRegression, LDPBayesLogisticRegression, RegressionPrior
from skldp.analysis._planning import coefficient_variances
from skldp.analysis._regression_checks import (
    mean_squares,
    reports_for_half_width,
    scale_doubts,
    share_inside,
    variance_inflation,
)
from skldp.exceptions import FewReportsWarning, ScaleWarning, StatisticalWarning

LABELS = [False, True]
QUICK = {"inference": "laplace", "random_state": 0}
MODELS = {
    "linear, sphere": LDPBayesLinearRegression(epsilon=4.0, mechanism="sphere", **QUICK),
    "linear, axis": LDPBayesLinearRegression(epsilon=4.0, mechanism="axis", **QUICK),
    "linear, gaussian": LDPBayesLinearRegression(epsilon=12.0, mechanism="gaussian", **QUICK),
    "linear, records": LDPBayesLinearRegression(epsilon=20.0, mechanism="records", **QUICK),
    "linear, no intercept": LDPBayesLinearRegression(epsilon=4.0, fit_intercept=False, **QUICK),
    "logistic, sphere": LDPBayesLogisticRegression(epsilon=4.0, classes=LABELS, mechanism="sphere", **QUICK),
    "logistic, axis": LDPBayesLogisticRegression(epsilon=4.0, classes=LABELS, mechanism="axis", **QUICK),
    "logistic, gaussian": LDPBayesLogisticRegression(epsilon=12.0, classes=LABELS, mechanism="gaussian", **QUICK),
    "logistic, records": LDPBayesLogisticRegression(epsilon=20.0, classes=LABELS, mechanism="records", **QUICK),
}
COLUMNS = {
    "normal": lambda rng, n, d: rng.normal(size=(n, d)),
    "uniform": lambda rng, n, d: rng.uniform(-1, 1, size=(n, d)),
    "skewed": lambda rng, n, d: rng.exponential(size=(n, d)),
    "heavy": lambda rng, n, d: rng.standard_t(2.5, size=(n, d)),
}


def records(n, d=3, kind="normal", seed=0, noise=1.0):
    """Columns divided by the 95 % quantile of their norms, and a response scaled in the same way."""
    rng = np.random.default_rng(seed)
    X = COLUMNS[kind](rng, n, d)
    X /= np.quantile(np.linalg.norm(X, axis=1), 0.95)
    y = X @ np.linspace(1, -1, d)
    y += noise * rng.normal(scale=y.std(), size=n)
    return X, y / np.quantile(np.abs(y), 0.95)


def response(model, y):
    return y > np.median(y) if hasattr(model, "classes") else y


def caught(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [one for one in found if issubclass(one.category, StatisticalWarning)]


def messages(found, category):
    return [str(one.message) for one in found if one.category is category]


@pytest.mark.parametrize("name", MODELS)
def test_raw_columns_warn_of_the_scale(name):
    model = MODELS[name]
    X = np.random.default_rng(0).uniform(0, 100, size=(5_000, 3))
    y = X @ [1.0, 2.0, 3.0]
    found = messages(caught(lambda: model.fit(X, response(model, y))), ScaleWarning)
    assert "data_norm=1 " in found[0] and "one-hot" in found[0]
    assert len(found) == 1 or "bounds_y=(-1.0, 1.0)" in found[1]
    assert len(found) == 1 + name.startswith("linear")


def test_the_defaults_warn_for_raw_columns():
    X = np.random.default_rng(0).uniform(0, 100, size=(10_000, 3))
    found = messages(caught(lambda: LDPBayesLinearRegression(**QUICK).fit(X, X.sum(axis=1))), ScaleWarning)
    assert "had been shortened" in found[0] and "had been clipped" in found[1]


@pytest.mark.parametrize("name", MODELS)
def test_bounds_that_are_far_too_large_warn(name):
    X, y = records(200_000)
    model = MODELS[name]
    protocol = model.protocol(3)
    found = scale_doubts(model.aggregate(protocol.privatize(X / 20, response(model, y) if protocol.labels else y / 20)))
    if "records" not in name:  # noisy records need more reports to show it
        assert "Lower data_norm" in found[0]
        assert protocol.labels or "narrower bounds_y" in found[1]


@pytest.mark.parametrize("name", MODELS)
def test_well_scaled_columns_do_not_warn_of_the_scale(name):
    X, y = records(20_000)
    model = MODELS[name]
    assert not messages(caught(lambda: model.fit(X, response(model, y))), ScaleWarning)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_mean_squares_are_unbiased_with_these_standard_errors(name):
    X, y = records(500)
    model = MODELS[name]
    protocol = model.protocol(3)
    y = response(model, y)
    found = []
    for _ in range(200):
        x_pair, y_pairs = mean_squares(model.aggregate(protocol.privatize(X, y)))
        found.append([x_pair, *(y_pairs or [x_pair])])
    values, errors = np.array(found)[..., 0], np.array(found)[..., 1]
    shrink = np.minimum(1, 1 / np.linalg.norm(X, axis=1))
    truth = [np.mean((np.linalg.norm(X, axis=1) * shrink) ** 2)] * 2
    if not protocol.labels:
        truth[1] = np.mean(np.clip(y, -1, 1) ** 2)
    assert (np.abs(values.mean(axis=0) - truth) < 4 * errors[0] / np.sqrt(200) + 0.01).all()
    assert (values.std(axis=0) < 1.2 * errors[0]).all()
    assert (values.std(axis=0) > 0.8 * errors[0]).all() or "records" in name  # an upper bound for records


def test_the_cost_of_clipping_is_named():
    """Responses five times as wide as their bounds: the warning's factor is that of the coefficients."""
    rng = np.random.default_rng(0)
    X = rng.normal(scale=0.3, size=(20_000, 2))
    y = X @ [10.0, -10.0] + rng.normal(scale=6.0, size=20_000)
    model = LDPBayesLinearRegression(epsilon=np.inf, inference="laplace", random_state=0)
    text, = messages(caught(lambda: model.fit(X, y)), ScaleWarning)
    factor = float(re.search(r"about ([\d.]+) times too small", text)[1])
    assert np.mean(10.0 / np.abs(model.coef_)) == pytest.approx(factor, rel=0.1)
    assert share_inside(np.mean(np.clip(y, -1, 1) ** 2)) == pytest.approx(np.mean(np.abs(y) < 1), abs=0.01)
    assert share_inside(1.0) == share_inside(5.0) > 0 and share_inside(0.05) == pytest.approx(1.0, abs=1e-4)


def test_mean_squares_of_cohorts_are_pooled():
    X, y = records(4000)
    one, other = (LDPBayesLinearRegression(epsilon=epsilon) for epsilon in (2.0, 8.0))
    parts = [model.aggregate(model.protocol(3).privatize(X, y)) for model in (one, other)]
    (value, error), _ = mean_squares(parts[0] + parts[1])
    (low, low_error), (high, high_error) = (mean_squares(part)[0] for part in parts)
    assert min(low, high) < value < max(low, high)
    assert error == pytest.approx((low_error**-2 + high_error**-2) ** -0.5)


def test_without_noise_the_mean_square_is_that_of_the_records():
    X, y = records(1000)
    model = LDPBayesLinearRegression(epsilon=np.inf, data_norm=2.0)
    (value, error), _ = mean_squares(model.aggregate(model.protocol(3).privatize(X, y)))
    assert value == pytest.approx(np.mean(np.sum(X**2, axis=1)) / 4, rel=1e-3) and error < 1e-6


@pytest.mark.parametrize("name", MODELS)
def test_few_reports_warn_once_with_a_number(name):
    X, y = records(100)
    model = clone(MODELS[name]).set_params(epsilon=2.0 if "records" in name else 1.0)
    found = caught(lambda: model.fit(X, response(model, y)))
    assert [one.category for one in found] == [FewReportsWarning]
    assert "100 reports say little about most coefficients" in str(found[0].message)
    assert found[0].filename == __file__  # at the call of fit
    assert reports_for_half_width(model.aggregate_, model.posterior_, model.n_reports_) >= 400


@pytest.mark.slow
def test_sampled_posteriors_of_few_reports_warn_too():
    X, y = records(300)
    with pytest.warns(FewReportsWarning):
        model = LDPBayesLinearRegression(random_state=0).fit(X, y)
    assert model.information_["coef"].shape == (3,)
    with pytest.warns(FewReportsWarning) as found:
        model = LDPBayesLogisticRegression(classes=LABELS, random_state=0).fit(X, y > 0)
    assert model.information_["coef"].shape == (1, 3)
    assert len(found) == 1


@pytest.mark.parametrize("inference", ["mcmc", "laplace"])
@pytest.mark.parametrize("prior", ["auto", RegressionPrior(coef="normal", coef_scale=0.3)], ids=["auto", "normal"])
@pytest.mark.filterwarnings("ignore:There are no reports")
def test_without_reports_nothing_is_gained(inference, prior):
    model = LDPBayesLinearRegression(inference=inference, prior=prior, random_state=0)
    protocol = model.protocol(3)
    model.fit_reports(np.zeros((0, protocol.width), dtype=protocol.randomizer.report_dtype))
    # A t distribution with three degrees of freedom has no fourth moment: its sampled deviation varies much.
    assert np.abs(model.information_["coef"]).max() < (0.35 if inference == "mcmc" else 0.75)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.FewReportsWarning")
def test_the_summary_shows_the_information():
    X, y = records(2000)
    model = LDPBayesLogisticRegression(classes=LABELS, **QUICK).fit(X, y > 0)
    bits = model.posterior_.summary()["bits"]
    np.testing.assert_allclose(bits[:3], model.information_["coef"][0], atol=0.006)
    assert np.isnan(bits[3:]).all()


def test_more_reports_mean_more_information():
    X, y = records(100_000)
    few, many = (LDPBayesLinearRegression(epsilon=4.0, **QUICK).fit(X[:n], y[:n]) for n in (6000, 100_000))
    assert (many.information_["coef"] > few.information_["coef"] + 1).all()
    # Four times as many, if the prior is negligible.
    found = reports_for_half_width(many.aggregate_, many.posterior_, many.n_reports_)
    assert found == pytest.approx(400_000, rel=0.25)


def collinear(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[:, 2] = X[:, 1] + 0.05 * X[:, 2]
    X /= np.quantile(np.linalg.norm(X, axis=1), 0.95)
    return X, X @ [0.5, 0.4, 0.0] + 0.2 * rng.normal(size=n)


@pytest.mark.parametrize("inference", ["mcmc", "laplace"])
def test_collinear_columns_are_named(inference):
    pandas = pytest.importorskip("pandas")
    X, y = collinear(200_000)
    model = LDPBayesLinearRegression(epsilon=2.0, inference=inference, random_state=0)
    with pytest.warns(FewReportsWarning, match="the coefficients of 'width' and 'height': each") as found:
        model.fit(pandas.DataFrame(X, columns=["age", "width", "height"]), y)
    assert len(found) == 1
    with pytest.warns(FewReportsWarning, match="of column 1 and column 2: each"):
        model.fit_reports(model.aggregate_)


def test_collinear_labels_warn():
    X, y = collinear(200_000)
    model = LDPBayesLogisticRegression(epsilon=3.0, classes=LABELS, random_state=0, n_rounds=1)
    with pytest.warns(FewReportsWarning, match="column 1 and column 2"):
        model.fit(X, np.random.default_rng(1).random(len(y)) < 1 / (1 + np.exp(-4 * y)))


def test_collinear_columns_do_not_warn_if_the_reports_separate_them():
    X, y = collinear(50_000)
    assert not caught(lambda: LDPBayesLinearRegression(epsilon=np.inf, **QUICK).fit(X, y))


def test_uncorrelated_columns_are_not_named_with_few_reports():
    X, y = records(300)
    found = messages(caught(lambda: LDPBayesLinearRegression(random_state=0).fit(X, y)), FewReportsWarning)
    assert "hardly separate" not in found[0]


def test_variance_inflation_of_two_columns():
    assert variance_inflation(np.array([[4.0, 1.8], [1.8, 1.0]])) == pytest.approx(1 / (1 - 0.81))
    assert variance_inflation(np.array([[0.3]])) == pytest.approx(1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear, no intercept", "linear, records"])
def test_planned_variances_of_correlated_columns_are_those_of_simulated_reports(name):
    rng = np.random.default_rng(0)
    covariance, coef, sigma = np.array([[0.1, 0.05], [0.05, 0.08]]), np.array([0.5, -0.3]), 0.2
    model = MODELS[name]
    protocol = model.protocol(2)
    n, found = 40_000, []  # errors of the moments must be small, for the formula is of first order
    for seed in range(50):
        X = rng.multivariate_normal(np.zeros(2), covariance, size=n)
        y = X @ coef + rng.normal(scale=sigma, size=n)
        tally, = model.aggregate(protocol._randomize(X, y, seed)).parts.values()
        if "records" in name:
            moments = protocol.mean_products(tally)[1:, 1:] - protocol.randomizer.noise_variance * np.eye(3)
        else:
            moments = protocol.randomizer.matrix(protocol.mean_moments(tally))
        found.append(np.linalg.solve(moments[:2, :2], moments[:2, 2] / protocol.y_weight))
    expected = coefficient_variances(protocol, covariance, sigma**2, coef) / n
    assert np.var(found, axis=0) == pytest.approx(expected, rel=0.5)


@pytest.mark.parametrize("name", ["linear, sphere", "logistic, sphere"])
def test_predictions_warn_of_rows_that_are_too_long(name):
    X, y = records(5000)
    model = clone(MODELS[name])
    model.fit(X, response(model, y))
    rows = np.array([[0.1, 0.2, 0.3], [30.0, 40.0, 0.0], [0.0, 0.0, 3.5]])
    methods = ["predict"] if name.startswith("linear") else ["predict", "predict_proba", "decision_function"]
    for method in methods:
        with pytest.warns(ScaleWarning, match=r"2 of 3 rows .* 3 times data_norm=1, the largest 50:") as found:
            getattr(model, method)(rows)
        assert found[0].filename == __file__
        assert not caught(lambda: getattr(model, method)(rows[:1] * 7))


@pytest.mark.slow
@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("name", ["linear, sphere", "logistic, gaussian"])
def test_false_alarms_are_rare(name, kind):
    model = clone(MODELS[name])
    scale, separate, few = 0, 0, 0
    for seed in range(60):
        X, y = records(20_000, kind=kind, seed=seed)
        model.set_params(random_state=seed)
        found = caught(lambda: model.fit(X, response(model, y)))
        scale += bool(messages(found, ScaleWarning))
        scale += bool(scale_doubts(model.aggregate(model.protocol(3).privatize(X[:1000], response(model, y)[:1000]))))
        separate += any("hardly separate" in text for text in messages(found, FewReportsWarning))
        few += any("say little" in text for text in messages(found, FewReportsWarning))
    assert scale <= 2  # of 120
    assert separate <= 1
    # Columns with long tails, divided by a quantile of their norms, have small variances: then the reports do say less.
    assert few <= 1 or kind in ("skewed", "heavy")
