"""Public behaviour of LDPBayesLinearRegression."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skldp import MCMC, BoundedScaler, LaplaceApproximation, LDPBayesLinearRegression, Moments, RegressionPrior
from skldp.exceptions import InvalidReportError
from skldp.protocols import Aggregate, MomentProtocol, Protocol, RecordProtocol
from tests.flat import build

RNG = np.random.default_rng(0)
COEF, INTERCEPT, SIGMA = np.array([0.6, -0.4]), 0.2, 0.1
X = RNG.normal(scale=0.22, size=(17_000, 2))
Y = X @ COEF + INTERCEPT + RNG.normal(scale=SIGMA, size=len(X))
CENTRED = Y - INTERCEPT
FEW, FEW_Y = X[:1500], Y[:1500]  # for what does not depend on the number of clients
CASES = {
    "auto": {},
    "sphere": {"mechanism": "sphere"},
    "axis": {"mechanism": "axis"},
    "gaussian": {"mechanism": "gaussian"},
    "inputs": {"mechanism": "records"},
    "sphere without intercept": {"mechanism": "sphere", "fit_intercept": False},
    "axis without intercept": {"mechanism": "axis", "fit_intercept": False},
    "gaussian without intercept": {"mechanism": "gaussian", "fit_intercept": False},
    "inputs without intercept": {"mechanism": "records", "fit_intercept": False},
}
everyone = pytest.mark.parametrize("case", CASES)


def regression(case="sphere", **parameters):
    return build(LDPBayesLinearRegression, **{"inference": "laplace", "random_state": 0, **CASES[case], **parameters})


def response(case):
    return CENTRED if "without" in case else Y


@everyone
def test_fit_is_privatize_then_fit_reports(case):
    """With more clients than fit in one chunk."""
    whole = regression(case, random_state=3).fit(X, response(case))
    apart = regression(case, random_state=3)
    reports = apart.privatize(X, response(case))
    assert not [name for name in vars(apart) if name.endswith("_")], "privatize fits nothing"
    assert reports.dtype.kind in "iu" and reports.shape == (len(X), whole.protocol_.width)
    apart.fit_reports(reports)
    assert whole.n_reports_ == apart.n_reports_ == len(X)
    for name, draws in whole.posterior_.draws.items():
        assert (draws == apart.posterior_.draws[name]).all()


@everyone
def test_reports_in_every_form(case):
    model = regression(case)
    reports = model.privatize(X[:900], Y[:900])
    expected = clone(model).fit_reports(reports).posterior_.draws
    forms = [
        pd.DataFrame(reports),
        [reports[:100], reports[100:]],
        (reports[start:start + 50] for start in range(0, 900, 50)),
        model.aggregate(reports),
        [model.aggregate(reports[300:]), model.aggregate(reports[:300])],
        reports.tolist(),
        reports.astype(np.int64)[::-1],
    ]
    for form in forms:
        draws = clone(model).fit_reports(form).posterior_.draws
        assert all((draws[name] == expected[name]).all() for name in expected)


@pytest.mark.parametrize("case", [case for case in CASES if case != "gaussian without intercept"])
def test_posterior_covers_the_truth_and_has_diagnostics(case):
    model = regression(case, epsilon=20.0, inference="mcmc", n_draws=300).fit(X, response(case))
    interval = model.posterior_.interval(0.9995)
    truth = {"coef": COEF, "intercept": INTERCEPT, "sigma": SIGMA, "covariance": 0.22**2 * np.eye(2),
             "x_mean": np.zeros(2)}
    assert list(interval) == [name for name in truth if name not in ("intercept", "x_mean") or "without" not in case]
    for name, ends in interval.items():
        assert ((ends[..., 0] < truth[name]) & (truth[name] < ends[..., 1])).all(), name
        assert model.posterior_.rhat[name].max() <= 1.03
        assert model.posterior_.ess[name].min() >= 1000
    widest = 5 if case == "gaussian" else 3
    assert (interval["coef"][:, 1] - interval["coef"][:, 0] < widest).all(), "and says something"
    mean, std = model.posterior_.mean(), model.posterior_.std()
    assert (model.coef_ == mean["coef"]).all() and (model.coef_std_ == std["coef"]).all()
    assert model.coef_.shape == model.coef_std_.shape == (2,) and model.covariance_.shape == (2, 2)
    assert isinstance(model.intercept_, float) and isinstance(model.sigma_, float)
    assert model.intercept_ == (mean["intercept"] if "intercept" in mean else 0.0)
    assert (model.sigma_, model.n_features_in_) == (mean["sigma"], 2)


@everyone
def test_budget_and_counts_of_a_fit(case):
    model = regression(case, epsilon=2.0, delta=1e-7).fit(FEW, FEW_Y)
    assert (model.epsilon_, model.n_reports_, model.n_rejected_) == (2.0, 1500, 0)
    assert model.delta_ == (0.0 if case.startswith(("auto", "sphere", "axis")) else 1e-7)
    assert isinstance(model.protocol_, RecordProtocol if case.startswith("inputs") else MomentProtocol)
    assert model.protocol_ == model.protocol(2)
    assert model.protocol_.has_intercept == ("without" not in case)


@pytest.mark.parametrize("case, inference", [*((case, "laplace") for case in CASES),
                                             ("sphere", MCMC(n_draws=300, n_walkers=16)),
                                             ("inputs", MCMC(n_draws=300, n_walkers=16))])
def test_without_noise_the_posterior_agrees_with_least_squares(case, inference):
    """Only asymptotically, because the model treats the moments as normal; 17,000 clients are enough."""
    intercept = "without" not in case
    y = response(case)
    model = regression(case, epsilon=np.inf, inference=inference).fit(X, y)
    plain = LinearRegression(fit_intercept=intercept).fit(X, y)
    design = np.column_stack([X, np.ones(len(X))]) if intercept else X
    sigma = np.sqrt(np.mean((y - plain.predict(X)) ** 2))
    std = sigma * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    assert (np.abs(model.coef_ - plain.coef_) < std[:2]).all()
    np.testing.assert_allclose(model.coef_std_, std[:2], rtol=0.1)
    assert model.sigma_ == pytest.approx(sigma, rel=0.02)
    np.testing.assert_allclose(model.covariance_, np.cov(X.T), atol=2e-3)
    ridge = BayesianRidge(fit_intercept=intercept).fit(X, y)
    assert (np.abs(model.coef_ - ridge.coef_) < std[:2]).all()
    np.testing.assert_allclose(model.coef_std_, np.sqrt(np.diag(ridge.sigma_)), rtol=0.1)
    if intercept:
        assert abs(model.intercept_ - plain.intercept_) < std[2]
        assert model.posterior_.std()["intercept"] == pytest.approx(std[2], rel=0.15)


@everyone
def test_results_scale_with_the_units_of_the_data(case):
    """The same integers under another protocol: clients in other units, or with a shifted response."""
    plain = regression(case)
    aggregate = plain.aggregate(plain.privatize(FEW, response(case)[:1500]))
    shift = 0.0 if "without" in case else 40.0
    other = regression(case, data_norm=5.0, bounds_y=(shift - 10, shift + 10))
    moved = Aggregate({other.protocol(2): aggregate.parts[plain.protocol(2)]})
    one, two = plain.fit_reports(aggregate), other.fit_reports(moved)
    np.testing.assert_allclose(two.coef_, one.coef_ * 10 / 5, rtol=1e-9)
    np.testing.assert_allclose(two.coef_std_, one.coef_std_ * 10 / 5, rtol=1e-9)
    np.testing.assert_allclose(two.sigma_, one.sigma_ * 10, rtol=1e-9)
    np.testing.assert_allclose(two.covariance_, one.covariance_ * 25, rtol=1e-9)
    np.testing.assert_allclose(two.intercept_, shift + 10 * one.intercept_, rtol=1e-9)
    mean, std = one.predict(X[:50], return_std=True)
    far_mean, far_std = two.predict(5 * X[:50], return_std=True)
    np.testing.assert_allclose(far_mean, shift + 10 * mean, rtol=1e-9)
    np.testing.assert_allclose(far_std, 10 * std, rtol=1e-9)


@everyone
def test_reports_do_not_depend_on_the_units_of_the_data(case):
    shift = 0.0 if "without" in case else 40.0
    one = regression(case, epsilon=np.inf).privatize(X[:500], Y[:500]).astype(int)
    other = regression(case, epsilon=np.inf, data_norm=5.0, bounds_y=(shift - 10, shift + 10))
    two = other.privatize(5 * X[:500], shift + 10 * Y[:500]).astype(int)
    assert np.abs(one - two).max() <= 256, "a step of an entry, times another entry"
    assert (one == two).mean() > 0.98


@pytest.mark.filterwarnings("ignore::skldp.exceptions.ScaleWarning")
def test_bounds_that_are_not_symmetric_without_an_intercept():
    """The response is divided by the larger absolute bound, so that zero stays zero."""
    model = regression("sphere without intercept", epsilon=np.inf, bounds_y=(-1, 3)).fit(X, CENTRED)
    assert (model.protocol_.y_offset, model.protocol_.y_scale) == (0.0, 3.0)
    np.testing.assert_allclose(model.coef_, COEF, atol=0.02)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.ScaleWarning")
@everyone
def test_predict_with_its_standard_deviation(case):
    model = regression(case, epsilon=8.0).fit(X, response(case))
    new = np.array([[0.1, 0.2], [3.0, -4.0], [0.0, 0.0]])  # not clipped to the ball
    mean, std = model.predict(new, return_std=True)
    assert (mean == model.predict(new)).all()
    draws = {name: values.reshape(-1, *values.shape[2:]) for name, values in model.posterior_.draws.items()}
    lines = draws["coef"] @ new.T + draws.get("intercept", np.zeros(1))[:, None]
    np.testing.assert_allclose(mean, new @ model.predictive_coef_ + model.predictive_intercept_, atol=1e-12)
    noisy = np.random.default_rng(0).normal(lines, draws["sigma"][:, None])
    np.testing.assert_allclose(std, np.sqrt(np.mean((noisy - mean) ** 2, axis=0)), rtol=0.1)
    assert std[1] > std[0] > 0


@everyone
def test_the_predictive_line_is_the_regression_in_simulated_records(case):
    """Records are simulated from every draw of the posterior; their least-squares line is the best prediction."""
    model, rng = regression(case, epsilon=8.0).fit(X[:3000], response(case)[:3000]), np.random.default_rng(0)
    draws = {name: values.reshape(-1, *values.shape[2:]) for name, values in model.posterior_.draws.items()}
    n = len(draws["sigma"])
    centre = draws.get("x_mean", np.zeros((n, 2)))
    factors = np.linalg.cholesky(draws["covariance"])
    rows = np.concatenate([centre + (factors @ rng.normal(size=(n, 2, 1)))[:, :, 0] for _ in range(100)])
    lines = np.tile(draws["coef"], (100, 1)), np.tile(draws.get("intercept", np.zeros(n)), 100)
    found = LinearRegression(fit_intercept="without" not in case).fit(rows, np.vecdot(lines[0], rows) + lines[1])
    scale = np.abs(found.coef_).max()
    np.testing.assert_allclose(model.predictive_coef_, found.coef_, atol=0.05 * scale)
    assert model.predictive_intercept_ == pytest.approx(found.intercept_, abs=0.03 * scale)


def test_predict_with_one_feature():
    for fit_intercept in (True, False):
        model = regression(epsilon=8.0, fit_intercept=fit_intercept).fit(X[:, :1], Y)
        mean, std = model.predict([[0.5], [0.1]], return_std=True)
        assert mean.shape == std.shape == (2,) and (std > model.sigma_ * 0.9).all()


def test_score_of_a_good_fit():
    model = regression(epsilon=20.0).fit(X, Y)
    truth = 1 - SIGMA**2 / Y.var()
    assert model.score(X, Y) == pytest.approx(truth, abs=0.03)


def test_laplace_inference_agrees_and_has_no_diagnostics():
    reports = regression(epsilon=20.0).privatize(X, Y)
    quick = regression(epsilon=20.0).fit_reports(reports)
    long = regression(epsilon=20.0, inference="mcmc", n_draws=400).fit_reports(reports)
    assert (np.abs(quick.coef_ - long.coef_) < 0.5 * long.coef_std_).all()
    np.testing.assert_allclose(quick.coef_std_, long.coef_std_, rtol=0.3)
    assert np.isnan(quick.posterior_.rhat["coef"]).all() and np.isnan(quick.posterior_.ess["coef"]).all()


def test_more_budget_or_clients_narrow_the_posterior():
    few, many = (regression(epsilon=4.0).fit(X[:n], Y[:n]) for n in (1000, 17_000))
    large = regression(epsilon=16.0).fit(X, Y)
    assert (few.coef_std_ > many.coef_std_).all() and (many.coef_std_ > large.coef_std_).all()
    assert (large.coef_std_ < regression("gaussian", epsilon=4.0).fit(X, Y).coef_std_).all()


@pytest.mark.parametrize("case", ["sphere", "inputs"])
def test_priors_affect_the_posterior(case):
    reports = regression(case, epsilon=0.3).privatize(X[:200], Y[:200])
    narrow = regression(case, epsilon=0.3, coef="normal", coef_scale=1e-3).fit_reports(reports)
    assert np.abs(narrow.coef_).max() < 5e-3 and narrow.coef_std_.max() < 2e-3
    small = regression(case, epsilon=0.3, sigma_scale=1e-3, covariance_scale=1e-3).fit_reports(reports)
    assert small.sigma_ < 5e-3 and np.diag(small.covariance_).max() < 1e-4


@pytest.mark.parametrize("case", ["sphere", "gaussian", "inputs"])
def test_a_small_mean_scale_narrows_the_intercept(case):
    """For centred columns the mean of x need not be learned: the intercept is as precise as the mean of y."""
    centred = X - X.mean(axis=0)
    reports = regression(case, epsilon=4.0).privatize(centred, Y)
    plain = regression(case, epsilon=4.0).fit_reports(reports)
    known = regression(case, epsilon=4.0, mean_scale=1e-3).fit_reports(reports)
    assert known.posterior_.std()["intercept"] < 0.9 * plain.posterior_.std()["intercept"]
    assert abs(known.intercept_ - plain.intercept_) < 3 * plain.posterior_.std()["intercept"]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("case", ["sphere", "inputs"])
def test_a_learned_mean_scale_is_nearly_as_good_as_a_known_one(case):
    sampling = {"inference": "mcmc", "n_warmup": 100, "n_draws": 100, "epsilon": 4.0}
    reports = regression(case, epsilon=4.0).privatize(X - X.mean(axis=0), Y)
    width = {scale: regression(case, mean_scale=scale, **sampling).fit_reports(reports).posterior_.std()["intercept"]
             for scale in (1e-3, "auto", 0.5)}
    assert width[1e-3] < 1.1 * width["auto"] and width["auto"] < width[0.5]


def test_weights_are_passed_to_the_protocol():
    model = regression(y_weight=0.5, intercept_weight=0.9)
    assert (model.protocol(3).y_weight, model.protocol(3).intercept_weight) == (0.5, 0.9)
    assert regression("sphere without intercept", intercept_weight=0.9).protocol(3).intercept_weight == 0.0
    assert (regression().protocol(3).y_weight, regression().protocol(3).intercept_weight) == (1.0, np.sqrt(0.5))


@everyone
@pytest.mark.parametrize("d", [1, 2, 3, 7])
def test_the_number_of_features_is_found_from_the_reports(case, d):
    model = regression(case)
    reports = model.privatize(np.zeros((5, d)), np.zeros(5))
    assert model.aggregate(reports).protocol.n_features == d
    assert model.fit(FEW, FEW_Y).aggregate(reports).protocol.n_features == d, "also after a fit with another number"


def test_pandas_input():
    frame = pd.DataFrame(FEW, columns=["age", "income"])
    model = regression().fit(frame, pd.Series(FEW_Y))
    assert model.feature_names_in_.tolist() == ["age", "income"] and model.n_features_in_ == 2
    assert (model.coef_ == regression().fit(FEW, FEW_Y).coef_).all()
    assert model.predict(frame).shape == (len(FEW),)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"age": "years"}))


def test_pipeline_cross_validation_and_grid_search():
    scaler = BoundedScaler(bounds=(-1, 1), data_norm=1.0)
    pipeline = make_pipeline(scaler, regression(epsilon=10.0))
    scores = cross_val_score(pipeline, FEW, FEW_Y, cv=3)
    assert np.isfinite(scores).all() and scores.shape == (3,)
    search = GridSearchCV(regression(), {"epsilon": [0.05, 20.0]}, cv=3).fit(X[:6000], Y[:6000])
    assert search.best_params_ == {"epsilon": 20.0}
    assert search.best_estimator_.epsilon_ == 20.0


def test_clone_pickle_and_seeds():
    model = regression(random_state=5).fit(FEW, FEW_Y)
    again, other = clone(model).fit(FEW, FEW_Y), clone(model).set_params(random_state=6).fit(FEW, FEW_Y)
    copy = pickle.loads(pickle.dumps(model))
    assert (again.coef_ == model.coef_).all() and (copy.coef_ == model.coef_).all()
    assert (copy.predict(X, return_std=True)[1] == model.predict(X, return_std=True)[1]).all()
    assert (other.coef_ != model.coef_).all()
    unseeded = [clone(model).set_params(random_state=None).privatize(X[:9], Y[:9]) for _ in range(2)]
    assert (unseeded[0] != unseeded[1]).any()


def test_a_generator_as_seed():
    one, two = (regression(random_state=np.random.default_rng(1)) for _ in range(2))
    reports = two.privatize(FEW, FEW_Y)
    assert (one.fit(FEW, FEW_Y).coef_ == two.fit_reports(reports).coef_).all()


def test_sample_posterior():
    model = regression().fit(FEW, FEW_Y)
    samples = model.sample_posterior(7, random_state=1)
    shapes = {"coef": (7, 2), "intercept": (7,), "sigma": (7,), "covariance": (7, 2, 2), "x_mean": (7, 2)}
    assert {name: values.shape for name, values in samples.items()} == shapes
    assert (samples["sigma"] > 0).all() and (np.linalg.eigvalsh(samples["covariance"]) >= -1e-15).all()


@everyone
def test_the_protocol_survives_json(case):
    model = regression(case)
    client = Protocol.from_json(model.protocol(n_features=2).to_json())
    reports = np.vstack([client.privatize(x, y) for x, y in zip(X[:30], Y[:30])])
    assert model.fit_reports(reports).n_reports_ == 30
    assert model.protocol_ == client


@everyone
def test_cohorts_with_other_budgets(case):
    y = response(case)
    low, high = regression(case, epsilon=10.0), regression(case, epsilon=20.0)
    both = low.aggregate(low.privatize(X[:9000], y[:9000])) + high.aggregate(high.privatize(X[9000:], y[9000:]))
    model = regression(case).fit_reports(both)
    assert (model.epsilon_, model.n_reports_) == (20.0, 17_000)
    alone = low.fit_reports(low.privatize(X[:9000], y[:9000]))
    assert model.coef_std_.max() < alone.coef_std_.max()


@everyone
def test_hostile_reports_are_refused_or_dropped(case):
    model = regression(case)
    reports = model.privatize(X[:1000], Y[:1000])
    hostile = np.vstack([reports.astype(np.int64), np.full((1, reports.shape[1]), 2**60)])
    with pytest.raises(InvalidReportError, match=r"1 of 1001 .* \(rows 1000\)"):
        model.fit_reports(hostile)
    with pytest.raises(InvalidReportError, match="integers"):
        model.fit_reports(np.vstack([reports.astype(float), np.full((1, reports.shape[1]), 1e300)]))
    assert not hasattr(model, "posterior_")
    dropped = clone(model).fit_reports(hostile, on_invalid="drop")
    assert (dropped.n_reports_, dropped.n_rejected_) == (1000, 1)
    assert (dropped.coef_ == clone(model).fit_reports(reports).coef_).all()
    with pytest.raises(InvalidReportError, match="columns"):
        model.fit_reports(np.zeros((4, 1), dtype=int))


def test_cohorts_with_other_mechanisms_and_weights_are_one_posterior():
    """Epsilon 0.5 on the sphere and 4 by axes: narrower than either, and around the truth."""
    low, high = regression(epsilon=0.5), regression("axis", epsilon=4.0)
    parts = low.aggregate(low.privatize(X[:9000], Y[:9000])), high.aggregate(high.privatize(X[9000:], Y[9000:]))
    assert {part.protocol.mechanism for part in parts} == {"sphere", "axis"}
    assert parts[0].protocol.intercept_weight != parts[1].protocol.intercept_weight
    model = regression("auto").fit_reports(parts[0] + parts[1])
    alone = [regression("auto").fit_reports(part) for part in parts]
    assert all(model.coef_std_.max() < one.coef_std_.max() for one in alone)
    assert (np.abs(model.coef_ - COEF) < 4 * model.coef_std_).all()
    read = Aggregate.from_json((parts[0] + parts[1]).to_json())
    assert (regression("auto").fit_reports(read).coef_ == model.coef_).all()
    with pytest.raises(InvalidReportError, match="mechanism is 'sphere' there"):
        regression("axis").fit_reports(parts[0] + parts[1])
    without = regression("axis without intercept")
    with pytest.raises(InvalidReportError, match="has_intercept is True in one"):
        parts[0] + without.aggregate(without.privatize(FEW, FEW_Y))


@pytest.mark.parametrize("case", ["sphere", "axis"])
def test_personal_budgets_of_one_fit(case):
    """Half of the clients at epsilon 0.5 and half at 4; those at 4 alone know nearly as much."""
    budgets = np.where(np.arange(len(X)) % 2, 4.0, 0.5)
    model = regression(case).fit(X, Y, sample_epsilon=budgets)
    assert {part.epsilon for part in model.aggregate_.parts} == {0.5, 4.0}
    assert (np.abs(model.coef_ - COEF) < 4 * model.coef_std_).all()
    high = regression(case, epsilon=4.0).fit(X[budgets > 1], Y[budgets > 1])
    assert (model.coef_std_ < 1.1 * high.coef_std_).all()


def test_reports_of_another_collection_are_refused():
    other = regression("inputs").aggregate(regression("inputs").privatize(X[:10], Y[:10]))
    with pytest.raises(TypeError, match="MomentProtocol"):
        regression().fit_reports(other)


@pytest.mark.parametrize("case", ["sphere", "gaussian without intercept", "inputs"])
def test_without_reports_the_posterior_is_the_prior(case):
    model = regression(case, inference="mcmc", epsilon=0.5, n_draws=300)
    width = model.protocol(1).width
    with pytest.warns(UserWarning, match="the posterior is the prior"):
        model.fit_reports(np.empty((0, width), dtype=int))
    assert model.n_reports_ == 0
    # At this budget, the error that test_zero_reports_leave_the_prior checks for is far below Monte Carlo error.
    draws = {name: values.ravel() for name, values in model.posterior_.draws.items()}
    assert np.median(draws["sigma"]) == pytest.approx(0.5 * 0.6745, rel=0.1)
    explained = draws["coef"] / 0.25 * np.sqrt(draws["covariance"] + 0.01)
    assert np.median(np.abs(explained)) == pytest.approx(0.7649, rel=0.1)  # of t with 3 degrees of freedom
    assert np.median(draws["covariance"]) == pytest.approx(0.25, rel=0.1)
    if "intercept" in draws:
        assert np.std(draws["intercept"]) == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("parameters, message", [
    ({"epsilon": 0}, "epsilon must be positive"), ({"epsilon": "1"}, "epsilon"), ({"epsilon": 21.0}, "above 20"),
    ({"mechanism": "gaussian", "delta": 0}, "delta"), ({"mechanism": "records", "delta": 1.5}, "delta"),
    ({"data_norm": None}, "data_norm must be given"), ({"data_norm": 0.0}, "data_norm"),
    ({"data_norm": -1}, "data_norm"),
    ({"bounds_y": None}, "bounds_y must be given"), ({"bounds_y": (1, -1)}, "bounds_y"),
    ({"bounds_y": (0, np.inf)}, "bounds_y"), ({"bounds_y": 3.0}, "pair"), ({"bounds_y": (1, 1)}, "bounds_y"),
    ({"mechanism": "everything"}, '"records", or an object'), ({"coef": "t"}, "coef must be one of"),
    ({"mechanism": "laplace"}, '"sphere", "axis", "gaussian"'), ({"mechanism": None}, "mechanism"),
    ({"prior": "wide"}, "prior must be"),
    ({"coef_scale": 0}, "coef_scale"), ({"coef_scale": -1.0}, "coef_scale"),
    ({"coef_scale": "wide"}, "coef_scale"),
    ({"covariance_scale": 0.0}, "covariance_scale"), ({"sigma_scale": np.nan}, "sigma_scale"),
    ({"mean_scale": 0.0}, "mean_scale"), ({"mean_scale": "wide"}, "mean_scale"),
    ({"sigma_scale": None}, "sigma_scale"), ({"lkj_eta": 0.0}, "lkj_eta"), ({"lkj_eta": "wide"}, "lkj_eta"),
    ({"y_weight": 0.0}, "y_weight"), ({"intercept_weight": 0.0}, "intercept_weight"),
    ({"y_weight": -1.0}, "y_weight"), ({"mechanism": "gaussian", "y_weight": 1e-4}, "y_weight"),
    ({"inference": "exact"}, "inference"), ({"random_state": "x"}, "random_state"),
    ({"inference": "mcmc", "n_draws": 0}, "n_draws"), ({"inference": "mcmc", "n_walkers": 0}, "n_walkers"),
])
def test_bad_parameters_raise_in_fit(parameters, message):
    model = regression(**parameters)
    with pytest.raises(ValueError, match=message) as raised:
        model.fit(X[:50], Y[:50])
    assert str(raised.value).strip().endswith("."), "a sentence"
    assert not hasattr(model, "posterior_")


def test_invalid_raw_data_raise_as_in_scikit_learn():
    bad = X[:5].copy()
    bad[2, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        regression().fit(bad, Y[:5])
    with pytest.raises(ValueError, match="NaN|infinity"):
        regression().privatize(X[:5], [0.0, 1.0, np.inf, 0.0, 0.0])
    with pytest.raises(ValueError, match="inconsistent"):
        regression().fit(X[:5], Y[:4])
    with pytest.raises(ValueError, match="requires y"):
        regression().fit(X[:5], None)


def test_methods_before_fit_raise():
    with pytest.raises(NotFittedError):
        regression().predict(X)
    with pytest.raises(NotFittedError):
        regression().sample_posterior()


def test_records_out_of_bounds_are_clipped_and_not_refused():
    far = regression(epsilon=np.inf).privatize([[30.0, 40.0]], [1e9])
    edge = regression(epsilon=np.inf).privatize([[0.6, 0.8]], [1.0])
    assert (far == edge).all()


def test_repr_of_a_simulation_without_noise():
    assert "no privacy" in repr(regression(epsilon=np.inf)) and "no privacy" not in repr(regression())


def test_parts_of_an_estimator_can_be_searched_over():
    model = LDPBayesLinearRegression(epsilon=20.0, prior=RegressionPrior(coef="normal"), mechanism=Moments(),
                                     inference=MCMC(n_draws=4000), random_state=0)
    copy = clone(model).set_params(prior__coef_scale=0.3, mechanism__y_weight=0.5, inference__n_draws=5)
    assert (copy.prior.coef_scale, copy.mechanism.y_weight, copy.inference.n_draws) == (0.3, 0.5, 5)
    assert (model.prior.coef_scale, model.mechanism.y_weight, model.inference.n_draws) == ("auto", "auto", 4000)
    search = GridSearchCV(model.set_params(inference=LaplaceApproximation()), {"prior__coef_scale": [1e-4, 1.0]}, cv=2)
    assert search.fit(X[:4000], Y[:4000]).best_params_ == {"prior__coef_scale": 1.0}
    assert "coef_scale=1.0" in repr(search.best_estimator_)


def test_the_prior_of_the_paper():
    model = LDPBayesLinearRegression(prior=RegressionPrior.paper(), data_norm=2.0, bounds_y=(-4, 4))
    protocol = model.protocol(2)
    priors = model._models(protocol.aggregate(np.empty((0, protocol.width), dtype=int)))[0].coordinates.priors
    assert priors.coef_scale == pytest.approx(5**0.5 * 2.0 / 4.0) and not priors.learns_coef_scale
    assert (priors.explained_weight, priors.ridge, priors.lkj_eta) == (0.0, 1.0, 2.0)
    assert priors.covariance_scale == pytest.approx(2.5 / 2.0)
