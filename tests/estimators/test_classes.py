"""LDPBayesLogisticRegression with more than two classes: shapes, labels, probabilities, and the usual contract."""

import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier

from skldp import LDPBayesLogisticRegression, Moments
from skldp.exceptions import InvalidReportError, PrivacyLeakWarning, StatisticalWarning
from skldp.privacy import Ledger
from skldp.protocols import Protocol, RoundProtocol
from tests.estimators.round_cases import CASES, LETTERS, ROWS, X, choose

CASE = CASES["three labels"]
Y = CASE.y


@functools.cache
def fitted(**parameters):
    """Return a fit of all records; tests share it and must not change it."""
    return CASE.make(**parameters).fit(X, Y)


@pytest.mark.parametrize("parameters", [{}, {"n_rounds": 1}, {"fit_intercept": False}, {"mechanism": "gaussian"},
                                        {"n_rounds": 2, "epsilon": np.inf}], ids=str)
def test_shapes(parameters):
    model = fitted(**parameters)
    assert model.classes_.tolist() == ["a", "b", "c"] and model.n_reports_ == len(X) and model.n_features_in_ == 2
    for rows in (model.coef_, model.coef_std_, model.predictive_coef_, model.information_["coef"]):
        assert rows.shape == (3, 2)
    assert model.intercept_.shape == model.predictive_intercept_.shape == (3,)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(model.predictive_coef_.sum(axis=0), 0.0, atol=0.05)
    assert abs(model.intercept_.sum()) < 1e-10 and (model.coef_std_ > 0).all()
    assert (model.intercept_ == 0).all() == ("fit_intercept" in parameters)
    draws = model.posterior_.draws["coef"]
    assert draws.shape[2:] == (3, 2) and np.abs(draws.sum(axis=2)).max() < 1e-10, "every draw adds up to zero"
    scores, probabilities = model.decision_function(X[:50]), model.predict_proba(X[:50])
    assert scores.shape == probabilities.shape == (50, 3)
    np.testing.assert_allclose(probabilities, softmax(scores, axis=1), rtol=1e-12)
    np.testing.assert_allclose(scores, X[:50] @ model.predictive_coef_.T + model.predictive_intercept_, rtol=1e-12)
    assert (model.predict(X[:50]) == LETTERS[probabilities.argmax(axis=1)]).all()
    assert model.score(X, Y) == np.mean(model.predict(X) == Y) > 0.5
    assert model.covariance_.shape == (2, 2)


def test_without_noise_skewed_columns_agree_with_maximum_likelihood():
    """Every record five times, so that the groups of the rounds are nearly alike."""
    plain = LogisticRegression(C=1e6).fit(X, Y)
    model = CASE.make(epsilon=np.inf).fit(np.tile(X, (5, 1)), np.tile(Y, 5))
    assert (np.abs(model.coef_ - plain.coef_) < 4 * model.coef_std_).all()
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.3)
    np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=0.1)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.03)


def test_without_an_intercept_skewed_columns_are_near_maximum_likelihood():
    """The curvature of three scores is that of normal columns, which costs up to 15 % of a coefficient here."""
    y = LETTERS[choose(softmax(X @ ROWS[:, 1:].T, axis=1), np.random.default_rng(1))]
    plain = LogisticRegression(C=1e6, fit_intercept=False).fit(X, y)
    model = CASE.make(epsilon=np.inf, fit_intercept=False).fit(np.tile(X, (5, 1)), np.tile(y, 5))
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=0.5)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.06)


def test_chains_cover_the_truth_and_have_diagnostics():
    model = fitted(inference="mcmc")
    interval = model.posterior_.interval(0.9995)
    for name, truth in (("coef", ROWS[:, 1:]), ("intercept", ROWS[:, 0])):
        ends = interval[name]
        assert ((ends[..., 0] < truth) & (truth < ends[..., 1])).all(), name
        assert model.posterior_.rhat[name].max() <= 1.05 and model.posterior_.ess[name].min() >= 400
    assert (model.coef_ == model.posterior_.mean()["coef"]).all()
    assert (model.coef_std_ == model.posterior_.std()["coef"]).all()


def test_more_budget_predicts_better():
    losses = [log_loss(Y, fitted(epsilon=epsilon).predict_proba(X)) for epsilon in (0.3, 4.0, np.inf)]
    assert losses[0] > losses[1] > losses[2]
    shares = np.mean(Y[:, None] == LETTERS, axis=0)
    assert losses[1] < -np.sum(shares * np.log(shares)) - 0.05, "better than the frequencies of the classes"
    plain = log_loss(Y, LogisticRegression(C=1e6).fit(X, Y).predict_proba(X))
    assert losses[2] == pytest.approx(plain, abs=2e-3)


@pytest.mark.parametrize("classes", [
    ["no", "yes", "maybe"], [0.5, 2.5, 1.5], [3, 1, 2], np.array(["x", "z", "y"]), (10.0, 20.0, 40.0), [-1, 0, 1],
    [True, False]])
def test_any_labels(classes):
    """Labels are sorted as in scikit-learn; without noise nothing else depends on what they are."""
    known = np.sort(classes)
    y = known[np.searchsorted(LETTERS, Y[:1500]) % len(known)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = CASE.make(classes=classes, epsilon=np.inf).fit(X[:1500], y)
    assert model.classes_.tolist() == known.tolist() and model.classes_.dtype.kind == known.dtype.kind
    predicted = model.predict(X[:300])
    assert predicted.dtype == model.classes_.dtype and set(predicted.tolist()) <= set(known.tolist())
    if len(known) == 3:
        plain = CASE.make(epsilon=np.inf).fit(X[:1500], Y[:1500])
        assert (model.coef_ == plain.coef_).all()
        assert (predicted == known[np.searchsorted(LETTERS, plain.predict(X[:300]))]).all()


def test_a_public_class_that_nobody_has():
    model = CASE.make(classes=["a", "b", "c", "d"]).fit(X, Y)
    probabilities = model.predict_proba(X)
    assert model.coef_.shape == (4, 2) and np.isfinite(model.coef_).all()
    assert probabilities[:, 3].mean() < 0.1 and probabilities.shape == (len(X), 4)


def test_two_classes_of_a_list_are_as_before():
    two = CASES["two labels"]
    model = two.make().fit(X, two.y)
    assert model.coef_.shape == (1, 2) and model.intercept_.shape == (1,)
    assert model.decision_function(X[:9]).shape == (9,) and model.predict_proba(X[:9]).shape == (9, 2)


def test_labels_read_off_the_data_warn_once():
    with pytest.warns(PrivacyLeakWarning, match="Pass classes=") as caught:
        model = CASE.make(classes=None).fit(X[:3000], Y[:3000])
    assert len([one for one in caught if one.category is PrivacyLeakWarning]) == 1 and caught[0].filename == __file__
    assert model.classes_.tolist() == ["a", "b", "c"] and model.coef_.shape == (3, 2)


def test_one_round_is_privatize_then_fit_reports():
    whole = fitted(n_rounds=1)
    apart = CASE.make(n_rounds=1)
    reports = apart.privatize(X, Y)
    assert isinstance(whole.protocol_, RoundProtocol) and whole.protocol_ == apart.protocol(2)
    assert reports.dtype.kind in "iu" and reports.shape == (len(X), whole.protocol_.width)
    apart.fit_reports([reports[:5000], reports[5000:]])
    assert all((apart.posterior_.draws[name] == draws).all() for name, draws in whole.posterior_.draws.items())
    hostile = np.vstack([reports[:500].astype(np.int64), np.full((1, reports.shape[1]), 2**60)])
    with pytest.raises(InvalidReportError, match="1 of 501"):
        CASE.make().fit_reports(hostile)
    assert CASE.make().fit_reports(hostile, on_invalid="drop").n_rejected_ == 1
    published = Protocol.from_json(CASE.make().protocol(2).to_json())
    assert CASE.make().fit_reports(published.privatize(X[:100], Y[:100])).n_reports_ == 100


def test_the_weight_of_the_constant_and_the_kind_of_noise_are_those_of_moments():
    protocol = CASE.make(mechanism=Moments(kind="gaussian", intercept_weight=0.7), delta=1e-6).protocol(2)
    assert (protocol.mechanism, protocol.intercept_weight, protocol.delta) == ("gaussian", 0.7, 1e-6)
    assert not CASE.make(fit_intercept=False).protocol(2).has_intercept


def test_personal_budgets():
    rows, labels = np.tile(X, (3, 1)), np.tile(Y, 3)
    budgets = np.where(np.arange(len(rows)) % 2, 16.0, 1.0)
    model = CASE.make().fit(rows, labels, sample_epsilon=budgets)
    assert model.epsilon_ == 16.0 and [len(part.parts) for _, part in model.rounds_] == [2, 2, 2]
    low, high = (CASE.make(epsilon=epsilon).fit(rows, labels).coef_std_.mean() for epsilon in (1.0, 16.0))
    assert high < model.coef_std_.mean() < low


def test_names_and_summary():
    frame = pd.DataFrame(X[:3000], columns=["carat", "depth"])
    model = CASE.make().fit(frame, Y[:3000])
    rows = list(model.posterior_.summary().index)
    assert rows[:6] == [f"coef[{label}, {name}]" for label in "abc" for name in frame.columns]
    assert rows[6:9] == ["intercept[a]", "intercept[b]", "intercept[c]"]
    assert (model.posterior_.interval(0.9, "coef[b, depth]") == model.posterior_.interval(0.9)["coef"][1, 1]).all()
    numbers = CASE.make(classes=[1, 2, 5]).fit(X[:3000], np.array([1, 2, 5])[np.searchsorted(LETTERS, Y[:3000])])
    assert list(numbers.posterior_.summary().index)[5] == "coef[5, 1]"


def test_representations_of_the_estimator():
    assert "no privacy" in repr(CASE.make(epsilon=np.inf)) and "no privacy" not in repr(CASE.make())
    assert "LDPBayesLogisticRegression" in fitted()._repr_html_()


def test_influence_of_forged_reports():
    bound = fitted().influence_bound(10)
    assert bound["coef"].shape == (3, 2) and (bound["coef"] > 0).all() and bound["intercept"].shape == (3,)
    np.testing.assert_allclose(fitted().influence_bound(20)["coef"], 2 * bound["coef"])
    assert (bound["coef"] < fitted().coef_std_).all()


def test_pickle_clone_and_search():
    model = fitted()
    again = pickle.loads(pickle.dumps(model))
    assert (again.predict_proba(X[:99]) == model.predict_proba(X[:99])).all()
    twin = clone(model).fit(X, Y)
    assert (twin.coef_ == model.coef_).all(), "a seed gives the same reports"
    search = GridSearchCV(CASE.make(), {"epsilon": [0.5, 8.0]}, cv=2).fit(X[:4000], Y[:4000])
    assert search.best_params_ == {"epsilon": 8.0}


def test_one_model_of_all_classes_asks_everybody_once():
    """One model for each class asks everybody as often as there are classes."""
    with Ledger() as shared:
        CASE.make(epsilon=3.0).fit(X[:1500], Y[:1500])
    with Ledger() as each, warnings.catch_warnings():
        warnings.simplefilter("ignore", StatisticalWarning)
        estimator = LDPBayesLogisticRegression(epsilon=3.0, classes=[0, 1], inference="laplace", random_state=0)
        OneVsRestClassifier(estimator).fit(X[:1500], Y[:1500])
    assert (shared.largest, each.largest) == (3.0, 9.0)


def test_tags():
    assert CASE.make().__sklearn_tags__().classifier_tags.multi_class
    assert not CASE.make(mechanism="records").__sklearn_tags__().classifier_tags.multi_class
    assert CASE.make(mechanism="unknown").__sklearn_tags__().classifier_tags.multi_class, "fit refuses the word"
    with pytest.raises(ValueError, match="classes must be two public labels"):
        CASE.make(mechanism="records").fit(X, Y)
