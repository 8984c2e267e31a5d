"""The ledger counts all randomisation of records in every process, also inside scikit-learn's wrappers."""

import copy
import inspect
import multiprocessing
import pathlib
import pickle
import re
import time

import joblib
import numpy as np
import pytest
from sklearn import (
    calibration,
    compose,
    decomposition,
    ensemble,
    feature_selection,
    linear_model,
    model_selection,
    multiclass,
    multioutput,
    pipeline,
)
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline

import skldp
from skldp import protocols
from skldp.privacy import Ledger
from skldp.protocols._description import KINDS
from tests.test_common import ESTIMATORS, TRANSFORMERS

pytestmark = pytest.mark.usefixtures("no_older_workers")
rng = np.random.default_rng(0)
X = rng.uniform(-0.5, 0.5, size=(120, 3))
y = np.clip(X @ [0.5, -0.2, 0.1] + 0.1 * rng.normal(size=120), -1, 1)
Y = np.column_stack([y, -y, y / 2])
binary, labels = (y > 0).astype(int), np.digitize(y, [-0.1, 0.1])
regressor = skldp.LDPSGDRegressor(epsilon=1.0)
classifier = skldp.LDPSGDClassifier(epsilon=1.0, classes=(0, 1))
perturber = skldp.LaplacePerturber(epsilon=1.0)
linear = skldp.LDPBayesLinearRegression(inference="laplace")
grid = {"eta0": [0.5, 1.0, 2.0]}
needs_fork = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
quiet_fork = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


class Names(dict):
    """Names for the expressions of the guide: those above and those of scikit-learn's modules."""

    modules = (calibration, compose, decomposition, ensemble, feature_selection, linear_model, model_selection,
               multiclass, multioutput, pipeline)

    def __missing__(self, name):
        return next(vars(module)[name] for module in self.modules if name in vars(module))


def guide_lines():
    """Expressions in the table of the guide, with the budgets that it states."""
    page = pathlib.Path(__file__).parents[2] / "docs" / "guide" / "accounts.rst"
    return re.findall(r"^``(.+)`` +([\d.]+) +([\d.]+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)


@pytest.mark.parametrize("expression, largest, upper", guide_lines(), ids=lambda value: value.partition("(")[0])
def test_wrappers_spend_what_the_guide_says(expression, largest, upper):
    with Ledger() as spent:
        eval(expression, {}, Names(globals()))
    assert (spent.largest, spent.upper) == (float(largest), float(upper))


def test_the_guide_has_a_table():
    assert len(guide_lines()) >= 20


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda estimator: type(estimator).__name__)
def test_every_estimator_is_counted(estimator):
    records, response = (np.arange(40.0)[:, None] % 4) / 4, np.arange(40) % 2
    estimator, calls = clone(estimator), 1
    with Ledger() as spent:
        estimator.fit(records, response)
        for name in ("privatize", "partial_fit"):
            if hasattr(estimator, name):
                getattr(estimator, name)(records, response)
                calls += 1
        for name in ("predict", "score_samples"):
            if hasattr(estimator, name):
                getattr(estimator, name)(records)
    total = f"epsilon {calls * estimator.epsilon_:.6g}, delta {calls * estimator.delta_:.3g}"
    assert spent.largest == spent.upper == calls * estimator.epsilon_ and spent.summary().count(total) == 2


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize("transformer", [one for one in TRANSFORMERS if hasattr(one, "epsilon")],
                         ids=lambda one: type(one).__name__)
def test_every_perturber_is_counted(transformer):
    records = np.arange(40.0)[:, None] % 4
    with Ledger() as spent:
        fitted = clone(transformer).fit(records)
        assert spent.upper == 0.0
        fitted.transform(records)
        fitted.transform(records[::-1])
    assert spent.largest == spent.upper == 2 * fitted.epsilon_
    assert f"delta {2 * fitted.delta_:.3g}" in spent.summary()


def test_every_protocol_is_counted():
    kinds = {kind for kind in KINDS.values() if kind.__module__.startswith("skldp.") and not inspect.isabstract(kind)}
    assert kinds
    for kind in kinds:
        options = {"classes": (0, 1)} if "classes" in inspect.signature(kind).parameters else {}
        protocol = kind(epsilon=0.5, **options)
        with Ledger() as spent:
            protocol.privatize([[0.0] * protocol.n_features] * 3, [0, 1, 1])
            protocol.privatize([[0.0] * protocol.n_features] * 2, [0, 0])
        assert (spent.largest, spent.upper) == (1.0, 1.0), kind


def test_a_client_that_repeats_its_report_spends_once():
    client = protocols.Client(protocols.ValueProtocol(epsilon=0.5))
    with Ledger() as spent:
        client.report(0.25)
        client.report(0.25)
    assert spent.upper == client.spent() == 0.5


def test_rows_are_matched_across_families():
    with Ledger() as spent:
        regressor.fit(X, y)
        linear.fit(X[::-1], y[::-1])
        perturber.fit_transform(X)
        skldp.LDPGaussian(inference="laplace").privatize(X)
        protocols.ValueProtocol(n_features=3).privatize(X.tolist())
    assert spent.largest == spent.upper == 5.0


def test_categories_are_matched_by_value():
    with Ledger() as spent:
        protocols.CategoryProtocol(categories=("a", "b")).privatize(["b"])
        protocols.CategoryProtocol(categories=("b", "a")).privatize(["b"])
        skldp.UnaryEncodingPerturber(categories=["c", "b"]).fit_transform(np.array([["b"]], dtype=object))
    assert spent.largest == 3.0


def test_a_fit_with_personal_budgets_or_in_groups_is_one_call():
    equal = np.zeros((600, 2))
    with Ledger() as spent:
        skldp.LDPGaussian(inference="laplace").fit(equal, sample_epsilon=np.repeat([0.5, 1.0, 2.0], 200))
    assert (spent.largest, spent.upper) == (2.0, 2.0)
    with Ledger() as spent:
        assert skldp.LDPSGDRegressor(group_size=100).fit(equal, np.zeros(600)).n_rounds_ == 6
    assert (spent.largest, spent.upper) == (1.0, 1.0) and "600 rows" in spent.summary()


def test_fitting_reports_and_predicting_cost_nothing():
    model = skldp.LDPGaussian(inference="laplace")
    reports = model.privatize(X)
    with Ledger() as spent:
        model.fit_reports(reports).score_samples(X)
        model.protocol(3).aggregate(reports)
        perturber.fit(X)
    assert spent.upper == 0.0


def test_a_fit_without_noise_spends_an_infinite_budget():
    with Ledger() as spent:
        skldp.LDPSGDRegressor(epsilon=np.inf).fit(X, y)
    assert spent.largest == np.inf


def search(estimator, prefix="", **options):
    return GridSearchCV(estimator, {f"{prefix}epsilon": [0.5, 1, 2, 4]}, cv=5, **options)


@pytest.mark.parametrize("estimator", [linear, skldp.LDPGaussian(inference="laplace")], ids=["y", "no y"])
def test_a_grid_search_spends_more_than_its_best_estimator(estimator):
    with Ledger() as spent:
        found = search(estimator).fit(X[:, :1], y)
    assert spent.largest == 30 + found.best_estimator_.epsilon_
    assert spent.upper == 37.5 + found.best_estimator_.epsilon_


def fit_in_worker(seed):
    """Task that builds its own estimator, so that nothing of the package is sent to its process."""
    time.sleep(0.01)
    return skldp.LDPSGDRegressor(random_state=seed).fit(X, y).epsilon_


def test_workers_started_before_the_ledger_are_counted():
    joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(time.sleep)(0.1) for _ in range(4))
    with Ledger() as spent:
        found = search(regressor, n_jobs=2).fit(X, y)
    assert spent.largest == 30 + found.best_estimator_.epsilon_ and "could not see" not in spent.summary()
    with Ledger() as spent:
        cross_val_predict(make_pipeline(PCA(2), linear), X, y, cv=5, n_jobs=2)
        search(make_pipeline(PCA(2), regressor), "ldpsgdregressor__", n_jobs=2).fit(X, y)
    assert spent.upper >= 5 + 34 and spent.largest < 34 and "could not see" not in spent.summary()


def test_threads_are_counted():
    with joblib.parallel_config("threading", n_jobs=2), Ledger() as spent:
        found = search(regressor, n_jobs=2).fit(X, y)
    assert spent.largest == 30 + found.best_estimator_.epsilon_


def test_a_pipeline_with_pca_is_bounded_by_the_sum_over_calls():
    with Ledger() as spent:
        search(make_pipeline(PCA(2), regressor), "ldpsgdregressor__").fit(X, y)
    assert spent.upper >= 34 > spent.largest


@needs_fork
@quiet_fork
def test_forked_workers_are_counted():
    with Ledger() as spent, multiprocessing.get_context("fork").Pool(2) as pool:
        pool.map(fit_in_worker, range(6), chunksize=1)
    assert spent.largest == spent.upper == 6.0


@needs_fork
@quiet_fork
def test_older_workers_are_counted_after_they_receive_an_estimator():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        with Ledger() as spent:
            pool.apply(regressor.fit, (X, y))
            pool.apply(fit_in_worker, (0,))
        assert spent.largest == 2.0
        with pytest.warns(UserWarning, match="could not see 1 child"), Ledger() as spent:
            pool.apply(fit_in_worker, (0,))
            pool.apply(protocols.ValueProtocol(n_features=3).privatize, (X,))
        assert spent.largest == 1.0 and "could not see 1 child" in spent.summary()


PICKLED = [skldp.LDPSGDRegressor(), skldp.LDPGaussian(), skldp.SpherePerturber(), protocols.ValueProtocol()]


@pytest.mark.parametrize("one", PICKLED + [skldp.LDPSGDRegressor().fit(X, y)], ids=lambda one: type(one).__name__)
def test_pickles_are_unchanged_outside_a_ledger(one):
    before = pickle.dumps(one)
    with Ledger() as spent:
        inside = pickle.dumps(one)
        for other in (pickle.loads(inside), copy.deepcopy(one), copy.copy(one)):
            assert vars(other).keys() == vars(one).keys()
    assert inside != before and b"skldp_ledgers" not in before and "could not see" not in spent.summary()
    assert pickle.dumps(one) == before
    later = pickle.loads(inside)
    assert vars(later).keys() == vars(one).keys() and pickle.dumps(later) == pickle.dumps(pickle.loads(before))


def test_an_unopened_pickle_warns():
    with pytest.warns(UserWarning, match="could not see what became of 1 pickled"), Ledger() as spent:
        pickle.dumps(clone(regressor))
    assert "could not see what became of 1 pickled" in spent.summary()


def test_a_pickle_opened_on_another_machine_warns(monkeypatch):
    with pytest.warns(UserWarning, match="could not see what became of"), Ledger() as spent:
        sent = pickle.dumps(regressor)
        monkeypatch.setattr("skldp.privacy._spending.open_ledgers", [])  # as if this were another process
        monkeypatch.setattr("skldp.privacy._spool.Spool.find", lambda folder: None)  # without the ledger's folder
        pickle.loads(sent).fit(X, y)
        monkeypatch.undo()
    assert spent.upper == 0.0
