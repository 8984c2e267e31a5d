"""The estimators of private stochastic gradients, as a user sees them."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skldp import BoundedScaler, LDPSGDClassifier, LDPSGDRegressor
from skldp.exceptions import InvalidParameterError, PrivacyLeakWarning
from skldp.gradients._base import automatic_group_size
from skldp.protocols import GradientClient, GradientServer
from skldp.protocols._gradient_losses import contrasts

RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, size=(8000, 3))
LOGIT = 6 * X[:, 0] - 3 * X[:, 1] + 1
LABELS = np.where(RNG.uniform(size=8000) < 1 / (1 + np.exp(-LOGIT)), "yes", "no")
SCORES = X @ [[6, -4, 0], [-3, 3, 2], [0, 2, -3]] + [0.5, 0.0, 0.2]
THREE = np.array(["a", "b", "c"])[(SCORES + RNG.gumbel(size=(8000, 3))).argmax(axis=1)]
Y = 10 + 4 * X[:, 0] - 2 * X[:, 2] + 0.3 * RNG.normal(size=8000)


def classifier(**parameters):
    return LDPSGDClassifier(**{"classes": ["no", "yes"], "random_state": 0, **parameters})


def three_classes(**parameters):
    return classifier(classes=["c", "a", "b"], **parameters)


def regressor(**parameters):
    return LDPSGDRegressor(**{"bounds_y": (5, 15), "random_state": 0, **parameters})


both = pytest.mark.parametrize("make, y", [(classifier, LABELS), (regressor, Y)], ids=["classifier", "regressor"])


@pytest.mark.parametrize("mechanism", ["gaussian", "sphere"])
def test_they_learn(mechanism):
    model = classifier(epsilon=8.0, mechanism=mechanism).fit(X, LABELS)
    assert roc_auc_score(LABELS == "yes", model.decision_function(X)) > 0.78
    assert model.coef_.shape == (1, 3) and model.intercept_.shape == (1,)
    assert model.classes_.tolist() == ["no", "yes"] and model.score(X, LABELS) > 0.65
    probability = model.predict_proba(X)
    assert np.allclose(probability.sum(axis=1), 1) and ((probability[:, 1] > 0.5) == (model.predict(X) == "yes")).all()
    model = regressor(epsilon=8.0, mechanism=mechanism).fit(X, Y)
    assert model.score(X, Y) > 0.4 and model.coef_.shape == (3,) and isinstance(model.intercept_, float)


def test_without_noise_many_steps_reach_the_minimum():
    options = {"epsilon": np.inf, "learning_rate": "constant", "average": 2000, "group_size": 4}
    model = classifier(eta0=1.0, **options).fit(X, LABELS)
    exact = LogisticRegression(C=1e6).fit(X, LABELS)
    assert model.coef_[0] == pytest.approx(exact.coef_[0], abs=0.6)
    assert np.abs(model.predict_proba(X) - exact.predict_proba(X)).mean() < 0.02
    model = regressor(eta0=0.5, **options).fit(X, Y)
    exact = LinearRegression().fit(X, Y)
    assert np.abs(model.predict(X) - exact.predict(X)).mean() < 0.1
    assert "no privacy" in repr(model) and "no privacy" not in repr(regressor())


@both
@pytest.mark.parametrize("mechanism, delta", [("gaussian", 1e-5), ("sphere", 0.0)])
def test_what_is_recorded(make, y, mechanism, delta):
    model = make(mechanism=mechanism, group_size=1500).fit(X, y)
    assert (model.n_rounds_, model.n_messages_, model.n_rejected_) == (5, 8000, 0)
    assert (model.epsilon_, model.delta_) == (1.0, delta)
    assert model.loss_curve_.shape == (5,) and model.loss_curve_[0] == 0
    assert model.protocol_ == model.server_.protocol == make(mechanism=mechanism).protocol(3)


@pytest.mark.parametrize("make, y", [(classifier, LABELS), (three_classes, THREE), (regressor, Y)],
                         ids=["classifier", "three classes", "regressor"])
def test_fit_is_the_deployment(make, y):
    """The same rounds by hand, with the objects of a deployment, give the same model."""
    model = make(group_size=2000, epsilon=np.inf).fit(X, y)
    order = np.random.default_rng(0).permutation(8000)
    server, client = model.server(3, n_rounds=4), GradientClient(model.protocol(3))
    for rows in np.array_split(order, 4):
        server.step(client.gradient(server.round().to_json(), X[rows], y[rows]))
    twin = make(group_size=2000, epsilon=np.inf).adopt(server)
    assert (twin.coef_ == model.coef_).all() and (twin.predict(X) == model.predict(X)).all()
    assert twin.n_messages_ == 8000 and (twin.loss_curve_ == model.loss_curve_).all()
    with pytest.raises(InvalidParameterError, match="another protocol"):
        make(epsilon=2.0).adopt(server)


@both
def test_each_user_takes_part_once(make, y, monkeypatch):
    asked = []
    protocol = type(make().protocol(3))
    original = protocol._randomize
    monkeypatch.setattr(protocol, "_randomize", lambda self, X, *rest: asked.append(X) or original(self, X, *rest))
    make(group_size=700).fit(X, y)
    assert len(asked) == 11 and {len(group) for group in asked} == {727, 728}
    everybody = np.concatenate(asked)
    assert (everybody != X).any() and (np.sort(everybody, axis=0) == np.sort(X, axis=0)).all()


@both
def test_partial_fit_is_one_more_group(make, y):
    model = make(mechanism="sphere").partial_fit(X[:3000], y[:3000])
    first = model.coef_.copy()
    model.partial_fit(X[3000:6000], y[3000:6000])
    assert (model.n_rounds_, model.n_messages_) == (2, 6000) and (model.coef_ != first).any()
    server = make(mechanism="sphere").server(3)
    for rows in (slice(0, 3000), slice(3000, 6000)):
        server.step(server.protocol._randomize(X[rows], y[rows], 0, server.round()))
    assert (make(mechanism="sphere").adopt(server).coef_ == model.coef_).all()
    model.fit(X, y)
    assert model.n_messages_ == 8000
    rounds = model.n_rounds_
    assert model.partial_fit(X, y).n_rounds_ == rounds + 1
    with pytest.raises(InvalidParameterError, match="have changed"):
        model.set_params(epsilon=2.0).partial_fit(X, y)


@both
def test_equal_groups_in_turn_do_not_share_noise(make, y):
    """A step size so small that the gradients stay the same: what two rounds report differs by the noise alone."""
    model = make(learning_rate="constant", eta0=1e-9)
    steps = [model.partial_fit(X[:500], y[:500]).server_.theta.copy() for _ in range(2)]
    assert not np.allclose(steps[0], steps[1] - steps[0], rtol=1e-2, atol=0)


@both
def test_seeds(make, y):
    fits = [make(random_state=seed).fit(X, y).coef_ for seed in (0, 0, 1, np.random.default_rng(0))]
    assert (fits[0] == fits[1]).all() and (fits[0] != fits[2]).all() and (fits[0] != fits[3]).all()
    fresh = [make(random_state=None).fit(X, y).coef_ for _ in range(2)]
    assert (fresh[0] != fresh[1]).all()
    moved = X.copy()
    moved[0] += 0.01
    assert (make().fit(moved, y).coef_ != fits[0]).all()


@both
def test_fewer_users_than_a_group(make, y):
    for n in (2, 50):
        model = make(group_size=10**6).fit(X[:n], y[:n])
        assert (model.n_rounds_, model.n_messages_) == (1, n) and np.isfinite(model.coef_).all()


@both
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_one_feature(make, y, fit_intercept):
    model = make(epsilon=8.0, fit_intercept=fit_intercept, mechanism="sphere").fit(X[:, :1], y)
    assert model.coef_.size == 1 and model.coef_.ravel()[0] > 0
    assert fit_intercept or float(np.ravel(model.intercept_)[0]) == 0.0


def test_constant_labels_and_responses():
    model = classifier(epsilon=8.0, mechanism="sphere").fit(X, np.full(8000, "no"))
    assert (model.predict(X) == "no").all() and model.classes_.tolist() == ["no", "yes"]
    with pytest.raises(ValueError, match="one class only. Pass classes= with all"):
        LDPSGDClassifier().fit(X, np.full(8000, "no"))
    model = regressor(epsilon=8.0, mechanism="sphere").fit(X, np.full(8000, 12.0))
    assert model.predict(X).mean() == pytest.approx(12.0, abs=0.5)


def test_labels():
    with pytest.warns(PrivacyLeakWarning, match="Pass classes="):
        read_off = LDPSGDClassifier(random_state=0).fit(X, LABELS)
    assert (read_off.coef_ == classifier().fit(X, LABELS).coef_).all()
    with pytest.warns(PrivacyLeakWarning):
        LDPSGDClassifier().partial_fit(X, LABELS)
    assert LDPSGDClassifier().partial_fit(X[:5], LABELS[:5], classes=["yes", "no"]).classes_.tolist() == ["no", "yes"]
    halves = np.where(LABELS == "yes", 1.5, 0.5)
    assert set(classifier(classes=[1.5, 0.5]).fit(X, halves).predict(X)) <= {0.5, 1.5}
    with pytest.raises(ValueError, match="none of classes"):
        classifier(classes=["no", "maybe"]).fit(X, LABELS)
    with pytest.raises(ValueError, match="continuous"):
        LDPSGDClassifier().fit(X[:3], [0.5, 1.5, 2.25])
    with pytest.raises(InvalidParameterError, match="two distinct labels"):
        classifier(classes=["no"]).fit(X, LABELS)
    with pytest.raises(InvalidParameterError, match="classes must be given"):
        LDPSGDClassifier().protocol(3)
    with pytest.raises(InvalidParameterError, match="have changed"):
        classifier().fit(X, LABELS).partial_fit(X, np.full(8000, "no"), classes=["no", "perhaps"])


def test_three_classes_learn():
    model = three_classes(epsilon=8.0, mechanism="sphere").fit(X, THREE)
    assert model.coef_.shape == (3, 3) and model.intercept_.shape == (3,)
    assert model.classes_.tolist() == ["a", "b", "c"] and model.protocol_.loss == "softmax"
    probability = model.predict_proba(X)
    assert probability.shape == model.decision_function(X).shape == (8000, 3)
    assert np.allclose(probability.sum(axis=1), 1)
    assert (model.classes_[probability.argmax(axis=1)] == model.predict(X)).all()
    assert model.score(X, THREE) > 0.6 > np.mean(THREE == "c") + 0.15
    with pytest.warns(PrivacyLeakWarning, match="Pass classes="):
        read_off = LDPSGDClassifier(epsilon=8.0, mechanism="sphere", random_state=0).fit(X, THREE)
    assert (read_off.coef_ == model.coef_).all()
    assert (pickle.loads(pickle.dumps(model)).predict(X) == model.predict(X)).all()


def test_three_classes_without_noise_reach_the_minimum():
    options = {"epsilon": np.inf, "learning_rate": "constant", "average": 2000, "group_size": 4, "clip_norm": 2.0}
    model = three_classes(eta0=1.0, **options).fit(X, THREE)
    exact = LogisticRegression(C=1e6, tol=1e-8).fit(X, THREE)
    assert model.coef_ == pytest.approx(exact.coef_, abs=0.6)
    assert np.abs(model.predict_proba(X) - exact.predict_proba(X)).mean() < 0.02
    # Where the exact model is, the mean gradient vanishes.
    rows = np.column_stack([exact.coef_, exact.intercept_])
    theta = contrasts(3).T @ rows
    assert np.abs(model.protocol_.gradient(X, THREE, theta.ravel()).mean(axis=0)).max() < 1e-4


def test_labels_that_are_none_of_three():
    with pytest.raises(ValueError, match="none of classes"):
        three_classes().fit(X, np.where(THREE == "a", "d", THREE))
    model = three_classes(mechanism="sphere").partial_fit(X, THREE)
    with pytest.raises(InvalidParameterError, match="have changed"):
        model.partial_fit(X, THREE, classes=["a", "b", "c", "d"])


@both
@pytest.mark.parametrize("changes, message", [
    ({"group_size": 0}, "group_size must be"), ({"group_size": "all"}, 'group_size must be "auto"'),
    ({"learning_rate": "adaptive"}, "learning_rate"), ({"epsilon": -1.0}, "epsilon"),
    ({"mechanism": "none"}, "mechanism"),
    ({"data_norm": 0.0}, "data_norm"), ({"random_state": "a"}, "random_state"), ({"clip_norm": -1}, "clip_norm"),
])
def test_parameters_are_checked_in_fit(make, y, changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        make(**changes).fit(X, y)


def test_raw_data_that_no_user_expects_raise_in_fit():
    bad = X.copy()
    bad[3, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        regressor().fit(bad, Y)
    with pytest.warns(UserWarning, match="at least one over the number of clients"):
        regressor(delta=0.01).fit(X, Y)
    regressor(delta=0.01, mechanism="sphere").fit(X, Y)


def test_the_automatic_group():
    assert automatic_group_size(8, 0.4) == int(np.ceil(20 * 8 * np.log(8) / 0.16)) == 2080
    assert automatic_group_size(1, 1.0) == automatic_group_size(100, np.inf) == 100
    assert classifier(epsilon=0.4, fit_intercept=False).fit(X, LABELS).n_rounds_ == 8000 // automatic_group_size(3, 0.4)
    assert classifier(epsilon=0.1, fit_intercept=False).fit(X, LABELS).n_rounds_ == 8, "at least eight rounds"


def test_the_loss_curve_follows_the_loss():
    """The estimate from reports against the loss itself, which only a simulation knows."""
    model = classifier(epsilon=np.inf, group_size=400).fit(X, LABELS)
    theta = model.server_.theta
    sign = np.where(LABELS == "yes", 1, -1)
    drop = np.logaddexp(0, -sign * (X @ theta[:3] + theta[3])).mean() - np.log(2)
    assert drop < -0.1 and model.loss_curve_[-1] == pytest.approx(drop, abs=0.03)


def test_in_pandas_pipelines_and_searches(capsys):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = regressor(progress=True, group_size=4000).fit(frame, Y)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"] and "rounds" in capsys.readouterr().err
    assert (pickle.loads(pickle.dumps(model)).predict(frame) == model.predict(frame)).all()
    pipeline = make_pipeline(BoundedScaler(bounds=(-0.5, 0.5)), classifier(mechanism="sphere"))
    search = GridSearchCV(pipeline, {"ldpsgdclassifier__epsilon": [0.5, 8.0]}, cv=2).fit(X, LABELS)
    assert search.best_params_ == {"ldpsgdclassifier__epsilon": 8.0}
    assert not hasattr(clone(model), "coef_")


def test_an_interrupt_leaves_the_estimator_as_it_was(monkeypatch):
    model = regressor().fit(X, Y)
    before = model.coef_.copy(), model.n_rounds_

    def interrupt(self, reports, on_invalid="raise"):
        self.theta += 1
        raise KeyboardInterrupt

    monkeypatch.setattr(GradientServer, "step", interrupt)
    for again in (model.fit, model.partial_fit):
        with pytest.raises(KeyboardInterrupt):
            again(X, Y)
        assert (model.coef_ == before[0]).all() and model.n_rounds_ == before[1]
        assert model.server_.n_rounds_done == before[1] and np.abs(model.server_.theta).max() < 1
