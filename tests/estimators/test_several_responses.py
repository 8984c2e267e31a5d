"""Public behaviour of LDPBayesLinearRegression with several responses."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import cross_val_score

from skldp import LDPBayesLinearRegression, Moments, required_reports
from skldp.exceptions import FewReportsWarning, InvalidParameterError, InvalidReportError, ScaleWarning
from skldp.protocols import Client, MomentProtocol, Protocol, RecordProtocol
from tests.flat import build

RNG = np.random.default_rng(0)
COEF, INTERCEPT = np.array([[0.6, -0.4], [0.0, 3.0], [0.2, 0.2]]), np.array([0.2, 10.0, 0.0])
SIGMA, CORRELATION = np.array([0.2, 1.0, 0.2]), np.array([[1, 0.6, 0], [0.6, 1, -0.4], [0, -0.4, 1]])
X = RNG.normal(scale=0.22, size=(6000, 2))
# Not multivariate_normal: the signs of its decomposition, hence its draws, differ between processors.
RESIDUALS = RNG.normal(size=(len(X), 3)) @ np.linalg.cholesky(CORRELATION).T * SIGMA
Y = X @ COEF.T + INTERCEPT + RESIDUALS
BOUNDS = [(-1, 1), (5, 15), (-1, 1)]


def regression(**parameters):
    return build(LDPBayesLinearRegression, **{"inference": "laplace", "random_state": 0, "bounds_y": BOUNDS,
                                              **parameters})


@pytest.fixture(scope="module")
def fitted():
    return regression(epsilon=20.0).fit(X, Y)


@pytest.mark.parametrize("options", [{}, {"mechanism": "gaussian", "fit_intercept": False}])
def test_without_noise_the_posterior_agrees_with_least_squares(options):
    intercept = options.get("fit_intercept", True)
    y = Y if intercept else Y - INTERCEPT
    bounds = BOUNDS if intercept else [(-1, 1), (-5, 5), (-1, 1)]
    model = regression(epsilon=np.inf, bounds_y=bounds, **options).fit(X, y)
    plain = LinearRegression(fit_intercept=intercept).fit(X, y)
    residuals = y - plain.predict(X)
    std = np.outer(residuals.std(axis=0), np.sqrt(np.diag(np.linalg.inv(X.T @ X))))
    assert model.coef_.shape == model.coef_std_.shape == plain.coef_.shape
    assert (np.abs(model.coef_ - plain.coef_) < std).all()
    np.testing.assert_allclose(model.coef_std_, std, rtol=0.1)
    np.testing.assert_allclose(model.sigma_, residuals.std(axis=0), rtol=0.02)
    np.testing.assert_allclose(model.posterior_.mean()["residual_correlation"], np.corrcoef(residuals.T), atol=0.02)
    np.testing.assert_allclose(model.intercept_, plain.intercept_ if intercept else np.zeros(3), atol=0.02)
    np.testing.assert_allclose(model.predict(X[:9]), plain.predict(X[:9]), atol=0.05)


def test_chains_cover_the_truth():
    model = regression(epsilon=20.0, inference="mcmc", n_draws=300).fit(X, Y)
    truth = {"coef": COEF, "intercept": INTERCEPT, "sigma": SIGMA, "residual_correlation": CORRELATION,
             "covariance": 0.22**2 * np.eye(2), "x_mean": np.zeros(2)}
    interval = model.posterior_.interval(0.9995)
    assert list(interval) == list(truth)
    for name, ends in interval.items():
        assert ((ends[..., 0] <= truth[name] + 1e-12) & (truth[name] <= ends[..., 1] + 1e-12)).all(), name
    assert (interval["coef"][..., 1] - interval["coef"][..., 0] < 0.6 * np.diff(BOUNDS)).all(), "and says something"
    assert np.nanmax(model.posterior_.rhat["coef"]) <= 1.03


def test_shapes_of_attributes_and_predictions(fitted):
    assert fitted.intercept_.shape == fitted.sigma_.shape == fitted.predictive_intercept_.shape == (3,)
    assert fitted.predictive_coef_.shape == fitted.information_["coef"].shape == (3, 2)
    mean, std = fitted.predict(X[:5], return_std=True)
    assert mean.shape == std.shape == (5, 3)
    np.testing.assert_allclose(std, np.broadcast_to(SIGMA, (5, 3)), rtol=0.2)
    assert fitted.score(X, Y) == pytest.approx(r2_score(Y, fitted.predict(X)))
    assert (pickle.loads(pickle.dumps(fitted)).predict(X[:5]) == mean).all()
    summary = fitted.posterior_.summary(names=["coef", "residual_correlation"])
    assert {"coef[0, 0]", "coef[2, 1]", "residual_correlation[0, 2]"} <= set(summary.index)


def test_a_column_is_one_response_with_its_shape():
    one, column = regression(bounds_y=(-1, 1)).fit(X, Y[:, 0]), regression(bounds_y=[(-1, 1)]).fit(X, Y[:, :1])
    assert column.protocol_ == one.protocol_
    for name in ("coef_", "coef_std_", "intercept_", "sigma_", "predictive_coef_", "predictive_intercept_"):
        assert np.shape(getattr(column, name)) == (1, *np.shape(getattr(one, name)))
        assert (getattr(column, name)[0] == getattr(one, name)).all()
    for found, expected in zip(column.predict(X[:4], return_std=True), one.predict(X[:4], return_std=True)):
        assert found.shape == (4, 1) and (found[:, 0] == expected).all()
    column.fit(X, Y[:, 0])
    assert column.coef_.shape == (2,) and isinstance(column.intercept_, float)


def test_fit_is_privatize_then_fit_reports_in_every_form(fitted):
    model = regression(epsilon=20.0)
    reports = model.privatize(X, Y)
    assert reports.shape == (len(X), model.protocol(2).width)
    assert model.protocol(2).with_width(reports.shape[1]).n_features == 2
    forms = [pd.DataFrame(reports), [reports[:100], model.aggregate(reports[100:])]]
    for form in forms:
        draws = clone(model).fit_reports(form).posterior_.draws
        assert all((draws[name] == fitted.posterior_.draws[name]).all() for name in draws)


def test_one_pair_serves_all_responses():
    y = Y[:, [0, 2]]
    model = regression(bounds_y=(-1, 1), epsilon=20.0).fit(X, y)
    assert model.protocol_.bounds_y == ((-1.0, 1.0),) * 2
    again = clone(model).fit_reports(model.aggregate_)
    assert (again.coef_ == model.coef_).all()
    assert (again.fit_reports(model.privatize(X, y)).coef_ == model.coef_).all(), "the number of responses is known"


def test_a_deployed_collection():
    """Across JSON, with single clients."""
    protocol = Protocol.from_json(regression(epsilon=20.0).protocol(2).to_json())
    assert protocol.bounds_y == tuple((float(low), float(high)) for low, high in BOUNDS)
    x, y = X[0].tolist(), Y[0].tolist()
    reports = [Client(protocol).report(x, y), Client(protocol).report([*x, *y]),
               Client(protocol).report({"a": x[0], "b": x[1], "y": y}), protocol.privatize(x, y)]
    assert all(report.shape == (1, protocol.width) and protocol.check(report).all() for report in reports)
    assert json.loads(MomentProtocol().to_json())["bounds_y"] == [-1.0, 1.0], "one response is as before"
    assert MomentProtocol(bounds_y=[(0, 1)]) == MomentProtocol(bounds_y=(0, 1))


def test_missing_and_extreme_responses_never_raise():
    protocol = regression().protocol(2)
    for y in ([np.nan, None, "text"], [1e300, -1e300, np.inf], [[1], 2, 3]):
        assert protocol.check(protocol.privatize([0.1, 0.2], y)).all()
    plain = regression(epsilon=np.inf).protocol(2)
    reports = plain._randomize(np.zeros((2, 2)), [[np.nan, -1e300, 7.0], [0.0, 5.0, 1.0]], None)
    assert (reports[0] == reports[1]).all(), "a missing response is the midpoint, others are clipped to their bounds"


def test_each_response_has_its_own_bounds():
    """The same integers under other bounds: responses in other units, which are shifted."""
    plain = regression(bounds_y=[(-1, 1)] * 3, epsilon=20.0)
    one = plain.fit(X, Y - [0, 10, 0])
    other = regression(bounds_y=[(-1, 1), (30, 50), (-1, 1)], epsilon=20.0)
    moved = type(one.aggregate_)({other.protocol(2): one.aggregate_.parts[plain.protocol(2)]})
    two = other.fit_reports(moved)
    np.testing.assert_allclose(two.coef_, one.coef_ * [[1], [10], [1]], rtol=1e-9)
    np.testing.assert_allclose(two.intercept_, one.intercept_ * [1, 10, 1] + [0, 40, 0], rtol=1e-9)
    np.testing.assert_allclose(two.sigma_, one.sigma_ * [1, 10, 1], rtol=1e-9)
    np.testing.assert_allclose(two.posterior_.mean()["residual_correlation"],
                               one.posterior_.mean()["residual_correlation"], rtol=1e-9)
    np.testing.assert_allclose(two.information_["coef"], one.information_["coef"], rtol=1e-9)


def test_the_weight_of_each_response():
    assert regression().protocol(2).y_weight == pytest.approx(3**-0.5)
    assert regression(bounds_y=(-1, 1)).protocol(2).y_weight == 1.0
    assert regression(mechanism=Moments(y_weight=0.3)).protocol(2).y_weight == 0.3
    several, one = (regression(bounds_y=bounds, mechanism="sphere").protocol(8).randomizer
                    for bounds in (BOUNDS, (-1, 1)))
    assert several.sphere.norm == pytest.approx(one.sphere.norm, rel=0.1), "nearly the radius of one response"


def test_personal_budgets_and_pandas():
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    model = regression().fit(pd.DataFrame(X, columns=["u", "v"]), frame,
                             sample_epsilon=np.where(np.arange(len(X)) % 2, 4.0, 20.0))
    assert model.epsilon_ == 20.0 and model.coef_.shape == (3, 2) and len(model.aggregate_.parts) == 2
    assert np.isfinite(cross_val_score(model, X, Y, cv=2)).all()


def test_what_does_not_fit_is_said_in_a_sentence():
    with pytest.raises(InvalidParameterError, match="3 pairs, and y has 2 columns"):
        regression().fit(X, Y[:, :2])
    with pytest.raises(InvalidParameterError, match="3 pairs, and y has 1 columns"):
        regression().fit(X, Y[:, 0])
    with pytest.raises(InvalidParameterError, match="Noisy records have one response"):
        regression(mechanism="records").fit(X, Y)
    with pytest.raises(InvalidParameterError, match="one pair"):
        RecordProtocol(bounds_y=BOUNDS)
    with pytest.raises(InvalidParameterError, match="bounds_y"):
        regression(bounds_y=[(-1, 1), (2, 1)]).fit(X, Y[:, :2])
    with pytest.raises(InvalidParameterError, match="bounds_y"):
        regression(bounds_y=[(-1, 1), 3]).fit(X, Y[:, :2])
    with pytest.raises(InvalidParameterError, match="at most 4096 entries"):
        MomentProtocol(bounds_y=[(0, 1)] * 4097)
    with pytest.raises(InvalidParameterError, match="n_responses=4000 mean 8010002 moments"):
        MomentProtocol(bounds_y=[(0, 1)] * 4000)
    with pytest.raises(InvalidParameterError, match="plans for one response"):
        required_reports(regression(), width=0.2, feature_std=0.2, sigma=0.1)
    with pytest.raises(InvalidReportError, match="another collection: bounds_y"):
        regression(bounds_y=[(-1, 1)] * 3).fit_reports(regression().aggregate(regression().privatize(X, Y)))


def test_warnings_name_the_response():
    with pytest.warns(ScaleWarning, match=r"y\[:, 1\] - 10\)\^2 .* bounds_y=\(-490.0, 510.0\)"):
        regression(epsilon=np.inf, bounds_y=[(-1, 1), (-490, 510), (-1, 1)]).fit(X, Y)
    with pytest.warns(FewReportsWarning, match="reports would halve the widths"):
        regression(epsilon=0.5).fit(X[:300], Y[:300])


def test_checks_influence_and_labels_of_plots(fitted):
    assert fitted.check_reports(regression(epsilon=20.0).privatize(X[:500], Y[:500])).p_value > 1e-6
    small = regression(epsilon=20.0, bounds_y=BOUNDS[:2]).fit(pd.DataFrame(X[:, :1], columns=["u"]), Y[:, :2])
    effect = small.influence_bound(5)
    assert effect["coef"].shape == (2, 1) and (effect["coef"] > 0).all()
    rows = list(small.posterior_.summary(names=["coef", "sigma"]).index)
    assert rows == ["coef[0, u]", "coef[1, u]", "sigma[0]", "sigma[1]"]
    assert "residual_correlation[1, 2]" in fitted.posterior_.summary(names="residual_correlation").index
