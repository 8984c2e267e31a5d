"""Public behaviour of LDPBayesLogisticRegression, mostly of collections in one round; see also test_rounds.py."""

import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from skldp import BoundedScaler, LDPBayesLogisticRegression
from skldp.exceptions import InvalidReportError, PrivacyLeakWarning
from skldp.protocols import Aggregate, LabelMomentProtocol, LabelRecordProtocol, Protocol
from tests.flat import build

RNG = np.random.default_rng(0)
COEF, INTERCEPT = np.array([4.0, -3.0]), 0.6
X = RNG.normal(scale=0.22, size=(17_000, 2))
UNIFORM = RNG.random(len(X))
Y = (UNIFORM < expit(X @ COEF + INTERCEPT)).astype(int)
CENTRED = (UNIFORM < expit(X @ COEF)).astype(int)
CASES = {
    "auto": {},
    "sphere": {"mechanism": "sphere"},
    "gaussian": {"mechanism": "gaussian"},
    "inputs": {"mechanism": "records"},
    "sphere without intercept": {"mechanism": "sphere", "fit_intercept": False},
    "inputs without intercept": {"mechanism": "records", "fit_intercept": False},
}
everyone = pytest.mark.parametrize("case", CASES)
both = pytest.mark.parametrize("case", ["sphere", "inputs"])


def classifier(case="sphere", **parameters):
    defaults = {"inference": "laplace", "random_state": 0, "classes": [0, 1], "n_rounds": 1}
    return build(LDPBayesLogisticRegression, **{**defaults, **CASES[case], **parameters})


def labels(case):
    return CENTRED if "without" in case else Y


@everyone
def test_fit_is_privatize_then_fit_reports(case):
    """With more clients than fit in one chunk."""
    whole = classifier(case, random_state=3).fit(X, labels(case))
    apart = classifier(case, random_state=3)
    reports = apart.privatize(X, labels(case))
    assert not [name for name in vars(apart) if name.endswith("_")], "privatize fits nothing"
    assert reports.dtype.kind in "iu" and reports.shape == (len(X), whole.protocol_.width)
    apart.fit_reports(reports)
    assert whole.n_reports_ == apart.n_reports_ == len(X)
    for name, draws in whole.posterior_.draws.items():
        assert (draws == apart.posterior_.draws[name]).all()


@both
def test_reports_in_every_form(case):
    """The result does not depend on order or pieces, even for "records", where every report is kept."""
    model = classifier(case)
    reports = model.privatize(X[:600], Y[:600])
    expected = clone(model).fit_reports(reports).posterior_.draws
    forms = [
        pd.DataFrame(reports),
        [reports[:100], reports[100:]],
        (reports[start:start + 50] for start in range(0, 600, 50)),
        [model.aggregate(reports[300:]), model.aggregate(reports[:300])],
        reports.tolist(),
        reports.astype(np.int64)[::-1],
    ]
    for form in forms:
        draws = clone(model).fit_reports(form).posterior_.draws
        assert all((draws[name] == expected[name]).all() for name in expected)


@pytest.mark.parametrize("case", ["sphere", "inputs", "sphere without intercept"])
def test_posterior_covers_the_truth_and_has_diagnostics(case):
    n, epsilon = (2500, np.inf) if case == "inputs" else (len(X), 20.0)
    model = classifier(case, epsilon=epsilon, inference="mcmc", n_draws=200, n_warmup=60)
    model.fit(X[:n], labels(case)[:n])
    interval = model.posterior_.interval(0.9995)
    truth = {"coef": COEF, "intercept": INTERCEPT, "covariance": 0.22**2 * np.eye(2), "x_mean": np.zeros(2)}
    assert list(interval) == [name for name in truth if name not in ("intercept", "x_mean") or "without" not in case]
    for name, ends in interval.items():
        assert ((ends[..., 0] < truth[name]) & (truth[name] < ends[..., 1])).all(), name
        assert model.posterior_.rhat[name].max() <= 1.05
        assert model.posterior_.ess[name].min() >= 400
    assert (interval["coef"][:, 1] - interval["coef"][:, 0] < 9).all(), "and says something"
    mean, std = model.posterior_.mean(), model.posterior_.std()
    assert (model.coef_ == mean["coef"]).all() and (model.coef_std_ == std["coef"]).all()
    assert model.coef_.shape == model.coef_std_.shape == (1, 2) and model.covariance_.shape == (2, 2)
    assert model.intercept_.shape == (1,) and model.intercept_[0] == mean.get("intercept", 0.0)
    assert model.n_features_in_ == 2


@pytest.mark.slow
@both
def test_laplace_intervals_cover_the_truth_in_most_of_twenty_fits(case):
    """Each fit has its own clients; some 95 % intervals miss their coefficient."""
    hits = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        new = rng.normal(scale=0.22, size=(3000, 2))
        y = rng.random(3000) < expit(new @ COEF + INTERCEPT)
        model = classifier(case, epsilon=20.0, classes=[False, True], random_state=seed).fit(new, y)
        ends = model.posterior_.interval(0.95)["coef"]
        hits.append((ends[:, 0] < COEF) & (COEF < ends[:, 1]))
    assert 31 <= np.sum(hits), "at 95 % coverage, fewer hits have a probability of 1e-4"


@everyone
def test_budget_and_counts_of_a_fit(case):
    model = classifier(case, epsilon=2.0, delta=1e-7).fit(X[:2000], Y[:2000])
    assert (model.epsilon_, model.n_reports_, model.n_rejected_) == (2.0, 2000, 0)
    assert model.delta_ == (0.0 if case.startswith(("auto", "sphere")) else 1e-7)
    assert isinstance(model.protocol_, LabelRecordProtocol if case.startswith("inputs") else LabelMomentProtocol)
    assert model.protocol_ == model.protocol(2)
    assert model.protocol_.has_intercept == (case != "sphere without intercept")


@pytest.mark.parametrize("case", [*CASES, "inputs"])
def test_without_noise_the_posterior_is_close_to_maximum_likelihood(case):
    """Records are normal here, as the model assumes."""
    intercept, y = "without" not in case, labels(case)
    model = classifier(case, epsilon=np.inf).fit(X, y)
    plain = LogisticRegression(C=1e6, fit_intercept=intercept).fit(X, y)
    design = np.column_stack([X, np.ones(len(X))]) if intercept else X
    p = plain.predict_proba(X)[:, 1]
    std = np.sqrt(np.diag(np.linalg.inv((design * (p * (1 - p))[:, None]).T @ design)))
    # Records and labels keep all information about the coefficients; moments lose a little.
    within = 1.0 if case.startswith("inputs") else 2.0
    assert (np.abs(model.coef_ - plain.coef_) < within * std[:2]).all()
    np.testing.assert_allclose(model.coef_std_[0], std[:2], rtol=0.1 if case.startswith("inputs") else 0.35)
    assert (model.coef_std_[0] > 0.9 * std[:2]).all()
    if intercept:
        assert abs(model.intercept_ - plain.intercept_) < within * std[2]
    np.testing.assert_allclose(model.covariance_, np.cov(X.T), atol=2e-3)
    np.testing.assert_allclose(model.predict_proba(X[:200]), plain.predict_proba(X[:200]), atol=0.03)


@pytest.mark.slow
def test_the_polynomial_link_is_close_to_the_exact_one():
    """Chains use the link; the Gaussian approximation does not."""
    reports = classifier("inputs", epsilon=10.0).privatize(X[:500], Y[:500])
    options = {"epsilon": 10.0, "inference": "mcmc", "n_draws": 40, "n_warmup": 40}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exact, polynomial = (classifier("inputs", link=link, **options).fit_reports(reports)
                             for link in ("quadrature", "chebyshev"))
    assert 0 < np.abs((exact.coef_ - polynomial.coef_) / exact.coef_std_).max() < 0.5


@everyone
def test_results_scale_with_the_units_of_the_data(case):
    """The same integers under another protocol: clients in other units."""
    plain = classifier(case)
    aggregate = plain.aggregate(plain.privatize(X[:3000], labels(case)[:3000]))
    other = classifier(case, data_norm=5.0)
    moved = Aggregate({other.protocol(2): aggregate.parts[plain.protocol(2)]})
    one, two = plain.fit_reports(aggregate), other.fit_reports(moved)
    np.testing.assert_allclose(two.coef_, one.coef_ / 5, rtol=1e-9)
    np.testing.assert_allclose(two.coef_std_, one.coef_std_ / 5, rtol=1e-9)
    np.testing.assert_allclose(two.covariance_, one.covariance_ * 25, rtol=1e-9)
    np.testing.assert_allclose(two.intercept_, one.intercept_, rtol=1e-9)
    np.testing.assert_allclose(two.predict_proba(5 * X[:50]), one.predict_proba(X[:50]), rtol=1e-9)
    sent = [model.set_params(epsilon=np.inf).privatize(factor * X[:500], Y[:500]).astype(int)
            for model, factor in ((plain, 1), (other, 5))]
    assert np.abs(sent[0] - sent[1]).max() <= 256 and (sent[0] == sent[1]).mean() > 0.98


@everyone
def test_probabilities_are_averaged_over_records_and_draws(case):
    """Of records that are simulated from every draw of the posterior, the prediction has the best line."""
    model, rng = classifier(case, epsilon=3.0).fit(X[:4000], labels(case)[:4000]), np.random.default_rng(0)
    draws = {name: values.reshape(-1, *values.shape[2:]) for name, values in model.posterior_.draws.items()}
    n = len(draws["coef"])
    noise = (np.linalg.cholesky(draws["covariance"]) @ rng.normal(size=(100, n, 2, 1)))[..., 0]
    rows = (draws.get("x_mean", np.zeros((n, 2))) + noise).reshape(-1, 2)
    odds = (np.tile(draws["coef"], (100, 1)) * rows).sum(axis=1) + np.tile(draws.get("intercept", np.zeros(n)), 100)
    line = LinearRegression(fit_intercept="without" not in case).fit(rows, odds)
    left = np.mean((odds - line.predict(rows)) ** 2)
    expected = line.predict(X[:50]) / np.sqrt(1 + np.pi * left / 8)
    np.testing.assert_allclose(model.decision_function(X[:50]), expected, atol=0.05 * np.abs(expected).max())
    # Within this error of 0.02 the average over normal log-odds is a logistic function.
    average = expit(line.predict(X[:50])[:, None] + np.sqrt(left) * rng.normal(size=100_000)).mean(axis=1)
    found = model.predict_proba(X[:50])
    np.testing.assert_allclose(found[:, 1], average, atol=0.03)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-14)
    assert (model.predict(X[:50]) == (found[:, 1] > 0.5)).all()
    np.testing.assert_allclose(model.decision_function(X[:50]),
                               X[:50] @ model.predictive_coef_[0] + model.predictive_intercept_[0], rtol=1e-12)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.ScaleWarning")
def test_extreme_rows_have_extreme_and_finite_odds():
    model = classifier(epsilon=20.0).fit(X, Y)
    far = model.decision_function([[1e4, 0.0], [-1e4, 0.0]])
    assert np.isfinite(far).all() and far[0] > 1000 > -1000 > far[1]
    assert (model.predict_proba([[1e4, 0.0], [-1e4, 0.0]]) == [[0, 1], [1, 0]]).all()


@functools.cache
def without_noise(case):
    """Return a fit of a thousand records; tests share it and must not change it."""
    return classifier(case, epsilon=np.inf).fit(X[:1000], Y[:1000])


@pytest.mark.parametrize("classes, dtype", [
    (["no", "yes"], "U"), (["yes", "no"], "U"), ([1.0, 2.0], "f"), ([-1, 1], "i"), ([7, 3], "i"),
    ([False, True], "b"), ([True, False], "b"), (np.array(["b", "a"]), "U"), (("a longer label", "b"), "U"),
])
@both
def test_labels_are_sorted_and_the_second_is_positive(case, classes, dtype):
    y, plain = np.sort(classes)[Y[:1000]], without_noise(case)
    model = classifier(case, epsilon=np.inf, classes=classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X[:1000], y)
    assert model.classes_.tolist() == sorted(classes) and model.classes_.dtype.kind == dtype
    assert (model.coef_ == plain.coef_).all(), "without noise nothing else differs"
    assert model.coef_[0, 0] > 0 > model.coef_[0, 1], "the second label is the more likely one along COEF"
    predicted = model.predict(X[:200])
    assert predicted.dtype == model.classes_.dtype and set(predicted.tolist()) == set(list(classes))
    assert (predicted == np.sort(classes)[(model.predict_proba(X[:200])[:, 1] > 0.5).astype(int)]).all()
    assert model.score(X[:200], y[:200]) > 0.55


def test_the_order_of_the_classes_does_not_matter():
    one, two = classifier(classes=[0, 1]).fit(X, Y), classifier(classes=[1, 0]).fit(X, Y)
    assert (one.coef_ == two.coef_).all() and one.protocol_ == two.protocol_


def test_public_labels_may_be_fractions():
    half = np.array([0.5, 1.5])[Y]
    model = classifier(classes=[0.5, 1.5], epsilon=np.inf).fit(X, half)
    assert model.classes_.tolist() == [0.5, 1.5] and np.mean(model.predict(X) == half) > 0.55


@both
def test_labels_as_a_column_of_objects_or_categories(case):
    names = np.array(["no", "yes"], dtype=object)
    expected = classifier(case, classes=["no", "yes"]).fit(X[:900], names[Y[:900]].astype(str)).coef_
    for y in (names[Y[:900]], names[Y[:900]].tolist(), pd.Series(names[Y[:900]]),
              pd.Series(names[Y[:900]], dtype="category")):
        assert (classifier(case, classes=["no", "yes"]).fit(X[:900], y).coef_ == expected).all()


def test_labels_taken_from_the_data_warn():
    with pytest.warns(PrivacyLeakWarning, match="Pass classes=") as caught:
        model = classifier(classes=None, epsilon=8.0).fit(X, np.array(["no", "yes"])[Y])
    assert len([w for w in caught if w.category is PrivacyLeakWarning]) == 1
    assert caught[0].filename == __file__, "the warning points at the call"
    assert model.classes_.tolist() == ["no", "yes"]
    reports = classifier(classes=["no", "yes"], epsilon=8.0).privatize(X[:100], np.array(["no", "yes"])[Y[:100]])
    assert model.fit_reports(reports).classes_.tolist() == ["no", "yes"], "a fitted classifier keeps its labels"
    with pytest.warns(PrivacyLeakWarning):
        classifier(classes=None).privatize(X[:9], Y[:9])
    with pytest.raises(ValueError, match="classes must be given"):
        classifier(classes=None).protocol(2)
    with pytest.raises(ValueError, match="classes must be given"):
        classifier(classes=None).fit_reports(reports)


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyLeakWarning")
def test_invalid_labels_are_refused():
    with pytest.raises(ValueError, match="none of classes"):
        classifier(classes=["no", "yes"]).fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match="none of classes"):
        classifier(classes=[0, 2]).privatize(X[:50], Y[:50])
    three = np.arange(50) % 3
    for case in ("sphere", "inputs"):
        with pytest.raises(ValueError, match="none of classes"):
            classifier(case).fit(X[:50], three)
    with pytest.raises(ValueError, match="Only binary classification is supported. The type of the target is mult"):
        classifier("inputs", classes=None).fit(X[:50], three)
    with pytest.raises(ValueError, match="Unknown label type"):
        classifier(classes=None).fit(X[:50], X[:50, 0])
    with pytest.raises(ValueError, match="none of classes"):
        classifier().fit(X[:50], X[:50, 0])
    with pytest.raises(ValueError, match="only one class"):
        classifier(classes=None).fit(X[:50], np.ones(50))
    with pytest.raises(ValueError, match="NaN"):
        classifier().fit(X[:3], [0.0, 1.0, np.nan])
    with pytest.raises(ValueError):
        classifier().fit(X[:3], [0, None, 1])


@everyone
def test_data_of_a_single_class_can_be_fitted(case):
    model = classifier(case, epsilon=8.0).fit(X[:3000], np.ones(3000, dtype=int))
    assert model.classes_.tolist() == [0, 1] and np.isfinite(model.coef_).all()
    if "without" not in case:
        assert model.predict_proba([[0.0, 0.0]])[0, 1] > 0.85


@pytest.mark.parametrize("classes, message", [
    ([0], "two"), ([1, 1], "distinct"), ("ab", "classes must be"), (3, "classes must be"),
    ([], "classes"), ([[1], [2]], "classes"),
])
def test_bad_classes_raise_an_error_about_classes(classes, message):
    with pytest.raises(ValueError, match=message) as raised:
        classifier(classes=classes).fit(X[:50], Y[:50])
    with pytest.raises(ValueError, match=message):
        classifier("inputs", classes=classes).fit(X[:50], Y[:50])
    assert str(raised.value).startswith("classes must") and str(raised.value).endswith(".")


def test_more_budget_or_clients_narrow_the_posterior():
    few, many = (classifier(epsilon=10.0).fit(X[:n], Y[:n]) for n in (3000, 17_000))
    rich = classifier(epsilon=20.0).fit(X, Y)
    assert (few.coef_std_ > many.coef_std_).all() and (many.coef_std_ > rich.coef_std_).all()
    assert (rich.coef_std_ < classifier("gaussian", epsilon=20.0).fit(X, Y).coef_std_).all()


@both
def test_laplace_inference_agrees_and_has_no_diagnostics(case):
    n, epsilon = (3000, np.inf) if case == "inputs" else (len(X), 20.0)  # where the posterior is nearly normal
    reports = classifier(case, epsilon=epsilon).privatize(X[:n], Y[:n])
    quick = classifier(case, epsilon=epsilon).fit_reports(reports)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        long = classifier(case, epsilon=epsilon, inference="mcmc", n_draws=60, n_warmup=60).fit_reports(reports)
    assert (np.abs(quick.coef_ - long.coef_) < 0.5 * long.coef_std_).all()
    np.testing.assert_allclose(quick.coef_std_, long.coef_std_, rtol=0.3)
    assert np.isnan(quick.posterior_.rhat["coef"]).all() and np.isnan(quick.posterior_.ess["coef"]).all()


@both
def test_priors_affect_the_posterior(case):
    reports = classifier(case, epsilon=0.3).privatize(X[:200], Y[:200])
    narrow = classifier(case, epsilon=0.3, coef="normal", coef_scale=1e-3).fit_reports(reports)
    assert np.abs(narrow.coef_).max() < 5e-3 and narrow.coef_std_.max() < 2e-3
    small = classifier(case, epsilon=0.3, covariance_scale=1e-3).fit_reports(reports)
    assert np.diag(small.covariance_).max() < 1e-4


def test_a_small_mean_scale_narrows_the_intercept():
    """For centred columns the mean of x need not be learned."""
    reports = classifier("sphere", epsilon=2.0).privatize(X - X.mean(axis=0), Y)
    plain = classifier("sphere", epsilon=2.0).fit_reports(reports)
    known = classifier("sphere", epsilon=2.0, mean_scale=1e-3).fit_reports(reports)
    assert known.posterior_.std()["intercept"] < 0.97 * plain.posterior_.std()["intercept"]
    assert (np.abs(known.coef_ - plain.coef_) < 3 * plain.coef_std_).all()


@pytest.mark.slow
def test_a_learned_mean_scale_detects_centred_columns():
    """A learned scale of the means is nearly as good as a known one, and does not shrink means that are not zero."""
    reports = classifier(epsilon=2.0).privatize(X - X.mean(axis=0), Y)
    width = {scale: classifier(mean_scale=scale, epsilon=2.0).fit_reports(reports).posterior_.std()["intercept"]
             for scale in (1e-3, "auto", 0.5)}
    assert width[1e-3] < 1.05 * width["auto"] and width["auto"] < 0.97 * width[0.5]
    shifted = classifier(epsilon=20.0).privatize(0.5 * X + 0.4, Y)
    apart = [classifier(mean_scale=scale, epsilon=20.0, inference="mcmc").fit_reports(shifted)
             for scale in ("auto", 0.5)]
    assert np.abs(apart[0].coef_ - apart[1].coef_).max() < 0.3 * apart[1].coef_std_.min()


@pytest.mark.parametrize("case", ["sphere", "inputs", "sphere without intercept"])
def test_without_reports_the_posterior_is_the_prior(case):
    model = classifier(case, inference="mcmc", n_draws=200)
    with pytest.warns(UserWarning, match="the posterior is the prior"):
        model.fit_reports(np.empty((0, model.protocol(1).width), dtype=int))
    assert model.n_reports_ == 0
    draws = {name: values.ravel() for name, values in model.posterior_.draws.items()}
    explained = draws["coef"] / 1.25 * np.sqrt(draws["covariance"] + 0.01)
    assert np.median(np.abs(explained)) == pytest.approx(0.7649, rel=0.1)  # of t with 3 degrees of freedom
    assert np.median(draws["covariance"]) == pytest.approx(0.25, rel=0.1)
    if "intercept" in draws:
        assert np.std(draws["intercept"]) == pytest.approx(2.5, rel=0.1)


def test_parameters_are_passed_to_the_protocol():
    model = classifier(y_weight=0.5, intercept_weight=0.9)
    assert (model.protocol(3).y_weight, model.protocol(3).intercept_weight) == (0.5, 0.9)
    assert classifier("inputs", budget_split=0.3).protocol(3).budget_split == 0.3
    assert classifier("inputs").protocol(3).budget_split == 0.5
    assert classifier("sphere without intercept", intercept_weight=0.9).protocol(3).intercept_weight == 0.0
    assert (classifier().protocol(3).y_weight, classifier().protocol(3).intercept_weight) == (1.0, 0.3)
    assert classifier().protocol(3).mechanism == "sphere" and classifier("gaussian").protocol().mechanism == "gaussian"
    assert classifier(classes=["no", "yes"], data_norm=3).protocol(4).classes == ("no", "yes")


@everyone
@pytest.mark.parametrize("d", [1, 5])
def test_the_number_of_features_is_found_from_the_reports(case, d):
    model = classifier(case)
    reports = model.privatize(np.zeros((5, d)), [0, 1, 0, 1, 1])
    assert model.aggregate(reports).protocol.n_features == d
    assert model.fit(X[:9], Y[:9]).aggregate(reports).protocol.n_features == d, "also after another fit"


def test_one_feature():
    for case in CASES:
        model = classifier(case, epsilon=8.0).fit(X[:500, :1], labels(case)[:500])
        assert model.coef_.shape == (1, 1) and model.predict_proba([[0.5], [0.1]]).shape == (2, 2)


def test_pandas_input():
    frame = pd.DataFrame(X[:2000], columns=["age", "income"])
    model = classifier().fit(frame, pd.Series(Y[:2000]))
    assert model.feature_names_in_.tolist() == ["age", "income"] and model.n_features_in_ == 2
    assert (model.coef_ == classifier().fit(X[:2000], Y[:2000]).coef_).all()
    assert model.predict(frame[:50]).shape == (50,)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[:50].rename(columns={"age": "years"}))


@both
def test_pipeline_cross_validation_and_grid_search(case):
    pipeline = make_pipeline(BoundedScaler(bounds=(-1, 1), data_norm=1.0), classifier(case, epsilon=15.0))
    scores = cross_val_score(pipeline, X[:600], Y[:600], cv=3, scoring="roc_auc")
    assert np.isfinite(scores).all() and scores.shape == (3,)
    search = GridSearchCV(classifier(case), {"epsilon": [0.05, np.inf]}, cv=2, scoring="neg_log_loss")
    search.fit(X[:600], Y[:600])
    assert search.best_params_ == {"epsilon": np.inf}
    assert search.best_estimator_.epsilon_ == np.inf


@both
def test_clone_pickle_and_seeds(case):
    few, y = X[:2000], Y[:2000]
    model = classifier(case, random_state=5).fit(few, y)
    again, other = clone(model).fit(few, y), clone(model).set_params(random_state=6).fit(few, y)
    copy = pickle.loads(pickle.dumps(model))
    assert (again.coef_ == model.coef_).all() and (copy.coef_ == model.coef_).all()
    assert (copy.predict_proba(few[:9]) == model.predict_proba(few[:9])).all()
    assert (other.coef_ != model.coef_).all()
    unseeded = [clone(model).set_params(random_state=None).privatize(X[:9], Y[:9]) for _ in range(2)]
    assert (unseeded[0] != unseeded[1]).any()
    one, two = (classifier(case, random_state=np.random.default_rng(1)) for _ in range(2))
    reports = two.privatize(few, y)
    assert (one.fit(few, y).coef_ == two.fit_reports(reports).coef_).all(), "a generator as seed"


def test_sample_posterior():
    samples = classifier().fit(X[:2000], Y[:2000]).sample_posterior(7, random_state=1)
    shapes = {"coef": (7, 2), "intercept": (7,), "covariance": (7, 2, 2), "x_mean": (7, 2)}
    assert {name: values.shape for name, values in samples.items()} == shapes


@everyone
def test_the_protocol_survives_json(case):
    model = classifier(case, classes=["no", "yes"])
    client = Protocol.from_json(model.protocol(n_features=2).to_json())
    names = np.array(["no", "yes"])[Y]
    reports = np.vstack([client.privatize(x, y) for x, y in zip(X[:30], names[:30])])
    assert model.fit_reports(reports).n_reports_ == 30
    assert model.protocol_ == client and model.classes_.tolist() == ["no", "yes"]


@everyone
def test_cohorts_with_other_budgets(case):
    y = labels(case)
    low, high = classifier(case, epsilon=10.0), classifier(case, epsilon=20.0)
    pieces = [(low, slice(0, 3000)), (high, slice(3000, 6000))]
    total = sum(model.aggregate(model.privatize(X[part], y[part])) for model, part in pieces)
    model = classifier(case).fit_reports(total)
    assert (model.epsilon_, model.n_reports_) == (20.0, 6000)
    alone = classifier(case).fit_reports(low.aggregate(low.privatize(X[:3000], y[:3000])))
    assert case.startswith("inputs") or model.coef_std_.max() < alone.coef_std_.max()
    assert (model.coef_ != alone.coef_).all()


@everyone
def test_hostile_reports_are_refused_or_dropped(case):
    model = classifier(case)
    reports = model.privatize(X[:500], Y[:500])
    hostile = np.vstack([reports.astype(np.int64), np.full((1, reports.shape[1]), 2**60)])
    with pytest.raises(InvalidReportError, match=r"1 of 501 .* \(rows 500\)"):
        model.fit_reports(hostile)
    with pytest.raises(InvalidReportError, match="integers"):
        model.fit_reports(np.vstack([reports.astype(float), np.full((1, reports.shape[1]), 1e300)]))
    assert not hasattr(model, "posterior_")
    dropped = clone(model).fit_reports(hostile, on_invalid="drop")
    assert (dropped.n_reports_, dropped.n_rejected_) == (500, 1)
    assert (dropped.coef_ == clone(model).fit_reports(reports).coef_).all()


def test_reports_of_another_collection_are_refused():
    other = classifier("inputs").aggregate(classifier("inputs").privatize(X[:10], Y[:10]))
    with pytest.raises(TypeError, match="LabelMomentProtocol"):
        classifier().fit_reports(other)
    moments = classifier().aggregate(classifier().privatize(X[:10], Y[:10]))
    with pytest.raises(TypeError, match="LabelRecordProtocol"):
        classifier("inputs").fit_reports(moments)


@pytest.mark.parametrize("parameters, message", [
    ({"epsilon": 0}, "epsilon must be positive"), ({"epsilon": "1"}, "epsilon"), ({"epsilon": 21.0}, "above 20"),
    ({"mechanism": "gaussian", "delta": 0}, "delta"), ({"mechanism": "records", "delta": 1.5}, "delta"),
    ({"data_norm": None}, "data_norm must be given"), ({"data_norm": 0.0}, "data_norm"), ({"data_norm": -1}, "data_no"),
    ({"mechanism": "everything"}, '"records", or an object'), ({"coef": "t"}, "coef must be one of"),
    ({"mechanism": "laplace"}, '"sphere", "axis", "gaussian"'), ({"mechanism": None}, "mechanism"),
    ({"prior": "wide"}, "prior must be"),
    ({"mechanism": "records", "budget_split": 0}, "budget_split"),
    ({"mechanism": "records", "budget_split": 1}, "budget_split"),
    ({"mechanism": "records", "budget_split": None}, "budget_split"),
    ({"mechanism": "records", "budget_split": np.nan}, "budget_split"),
    ({"mechanism": "records", "budget_split": "auto"}, "budget_split"),
    ({"mechanism": "records", "link": "logit"}, "link"), ({"mechanism": "records", "link": None}, "link"),
    ({"coef_scale": 0}, "coef_scale"), ({"coef_scale": -1.0}, "coef_scale"),
    ({"coef_scale": "wide"}, "coef_scale"), ({"covariance_scale": 0.0}, "covariance_scale"),
    ({"mean_scale": -1.0}, "mean_scale"), ({"mean_scale": "wide"}, "mean_scale"), ({"mean_scale": None}, "mean_scale"),
    ({"lkj_eta": 0.0}, "lkj_eta"), ({"lkj_eta": "wide"}, "lkj_eta"), ({"lkj_eta": None}, "lkj_eta"),
    ({"y_weight": 0.0}, "y_weight"), ({"intercept_weight": 0.0}, "intercept_weight"),
    ({"y_weight": None}, "y_weight"), ({"mechanism": "gaussian", "y_weight": 1e-4}, "y_weight"),
    ({"inference": "exact"}, "inference"), ({"random_state": "x"}, "random_state"),
    ({"inference": "mcmc", "n_draws": 0}, "n_draws"), ({"inference": "mcmc", "n_walkers": 0}, "n_walkers"),
])
def test_bad_parameters_raise_in_fit(parameters, message):
    model = classifier(**parameters)
    with pytest.raises(ValueError, match=message) as raised:
        model.fit(X[:50], Y[:50])
    assert str(raised.value).strip().endswith("."), "a sentence"
    assert not hasattr(model, "posterior_")


def test_invalid_raw_data_raise_as_in_scikit_learn():
    bad = X[:5].copy()
    bad[2, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        classifier().fit(bad, Y[:5])
    with pytest.raises(ValueError, match="inconsistent"):
        classifier().fit(X[:5], Y[:4])
    with pytest.raises(ValueError, match="requires y"):
        classifier().fit(X[:5], None)


def test_methods_before_fit_raise():
    for method in ("predict", "predict_proba", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(classifier(), method)(X)
    with pytest.raises(NotFittedError):
        classifier().sample_posterior()


@both
def test_records_out_of_the_ball_are_clipped_and_not_refused(case):
    far = classifier(case, epsilon=np.inf).privatize([[30.0, 40.0]], [1])
    edge = classifier(case, epsilon=np.inf).privatize([[0.6, 0.8]], [1])
    assert (far == edge).all()


def test_repr_of_a_simulation_without_noise():
    assert "no privacy" in repr(classifier(epsilon=np.inf)) and "no privacy" not in repr(classifier())
