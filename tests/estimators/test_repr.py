"""Text and HTML representation of every estimator and transformer."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import skldp
from tests.test_common import ESTIMATORS, TRANSFORMERS

EVERYTHING = ESTIMATORS + TRANSFORMERS
WITH_BUDGET = [estimator for estimator in EVERYTHING if "epsilon" in estimator.get_params()]
X = np.random.default_rng(0).poisson(1.0, size=(60, 2)).astype(float)
Y = np.arange(60) % 2


def name(estimator):
    return type(estimator).__name__


def first_line(estimator):
    """Return the text of the first line of the HTML."""
    return estimator._repr_html_().partition("</div>")[0].partition(">")[2]


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyLeakWarning")
@pytest.mark.parametrize("estimator", EVERYTHING, ids=name)
def test_the_html_repr_works_before_and_after_fit(estimator):
    estimator = clone(estimator)
    before = estimator._repr_html_()
    after = estimator.fit(X, Y)._repr_html_()
    for text in (before, after):
        assert name(estimator) in text and "no privacy" not in text
    assert "<span>Not fitted</span>" in before and "<span>Fitted</span>" in after


@pytest.mark.parametrize("estimator", WITH_BUDGET, ids=name)
def test_both_reprs_show_an_infinite_budget(estimator):
    estimator = clone(estimator)
    assert "no privacy" not in repr(estimator)
    estimator.set_params(epsilon=np.inf)
    assert repr(estimator).endswith("# no privacy")
    assert "no privacy" in estimator._repr_html_()


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyLeakWarning",
                            "ignore::skldp.exceptions.StatisticalWarning")
@pytest.mark.parametrize("estimator", WITH_BUDGET, ids=name)
def test_the_html_repr_begins_with_the_budget(estimator):
    estimator = clone(estimator).set_params(epsilon=2.0)
    assert first_line(estimator) == "epsilon 2"
    estimator.fit(X, Y)
    reports = "" if name(estimator) in map(name, TRANSFORMERS) else ", 60 reports"
    assert first_line(estimator) == f"epsilon 2, delta {estimator.delta_:g}{reports}"
    assert estimator._repr_mimebundle_()["text/html"].startswith("<div")
    estimator.set_params(epsilon=np.inf)
    assert first_line(estimator).startswith("no privacy: epsilon is infinite")


def test_a_fit_without_privacy_says_so_when_the_budget_is_set_back():
    model = skldp.LDPPoisson(epsilon=np.inf, inference="laplace", random_state=0).fit(X[:, :1])
    model.set_params(epsilon=1.0)
    assert first_line(model).startswith("no privacy") and repr(model).endswith("# no privacy")


def test_a_wrong_budget_is_shown_as_it_is():
    assert first_line(skldp.LDPGaussian(epsilon="<b>")) == "epsilon &#x27;&lt;b&gt;&#x27;"


def test_the_html_repr_works_inside_a_pipeline():
    pipeline = make_pipeline(skldp.BoundedScaler(), skldp.LDPBayesLinearRegression(epsilon=2.0))
    text = pipeline._repr_html_()
    assert "BoundedScaler" in text and "LDPBayesLinearRegression" in text
