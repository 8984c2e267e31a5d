"""Forest plot of coefficients in raw units."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from skldp import CoefficientDisplay, LDPBayesLinearRegression, LDPBayesLogisticRegression, PublicColumns
from skldp.exceptions import InvalidParameterError


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(20, 60, 2000).astype(object), rng.choice(["a", "b", "c"], 2000)])
    columns = PublicColumns(schema={"age": (20, 60), "kind": ["a", "b", "c"]})
    regression = LDPBayesLinearRegression(bounds_y=(0, 100), inference="laplace", random_state=0)
    return make_pipeline(columns, regression).fit(X, X[:, 0].astype(float))


def test_draws_the_table(model):
    display = CoefficientDisplay.from_estimator(model, level=0.5, reference={"age": 1.0, "other": 3.0})
    table = model[0].raw_coefficients(model, level=0.5).drop(index="intercept")
    assert display.terms == list(table.index) == ["age", "kind[b]", "kind[c]"]
    np.testing.assert_allclose(display.low, table["lower"])
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == display.terms
    line = display.intervals_.lines[0]
    np.testing.assert_allclose(line.get_xdata(), table["estimate"])
    assert line.get_ydata()[0] == max(line.get_ydata())  # the first term on top
    np.testing.assert_allclose(display.reference_.get_offsets(), [[1.0, 2.0]])


def test_intercept_and_own_axes(model):
    ax = CoefficientDisplay.from_estimator(model).ax_
    display = CoefficientDisplay.from_estimator(model, intercept=True, ax=ax)
    assert display.ax_ is ax and display.terms[0] == "intercept" and display.reference_ is None


def test_other_estimators_raise(model):
    with pytest.raises(InvalidParameterError, match="PublicColumns"):
        CoefficientDisplay.from_estimator(model[-1])


def test_classes_are_in_the_names():
    rng = np.random.default_rng(0)
    X = rng.uniform(20, 60, size=(2000, 1))
    regression = LDPBayesLogisticRegression(classes=["x", "y", "z"], n_rounds=1, inference="laplace", random_state=0)
    model = make_pipeline(PublicColumns(schema={"age": (20, 60)}), regression).fit(X, rng.choice(["x", "y", "z"], 2000))
    assert CoefficientDisplay.from_estimator(model).terms == ["x: age", "y: age", "z: age"]
