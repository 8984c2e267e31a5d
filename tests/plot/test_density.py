"""Plots of densities and distribution functions."""

import numpy as np
import pytest

from skldp import DensityDisplay, LDPDensity, LDPGaussian
from skldp.exceptions import InvalidParameterError


@pytest.fixture(scope="module")
def model():
    X = np.random.default_rng(0).beta(2, 5, size=(4000, 2))
    return LDPDensity(epsilon=4.0, bounds=(0, 1), n_cells=20, inference="laplace", random_state=0).fit(X)


def test_density_is_drawn_with_its_band(model):
    display = DensityDisplay.from_estimator(model, column=1, level=0.8)
    x, y = display.line_.get_data()
    np.testing.assert_allclose(y[::2], model.density_[1:-1, 1])
    np.testing.assert_allclose(x[::2], model.cell_edges_[1:-2])
    np.testing.assert_allclose(x[1::2], model.cell_edges_[2:-1])
    assert (display.low <= display.mean).all() and (display.mean <= display.high).all()
    assert "80% interval" in [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_distribution_function_is_drawn_with_its_band(model):
    display = DensityDisplay.from_estimator(model, cumulative=True)
    x, y = display.line_.get_data()
    np.testing.assert_allclose(y, model.cdf(x)[:, 0])
    assert y[0] < 0.1 and y[-1] == pytest.approx(1.0)


def test_whole_numbers_show_every_value():
    X = np.random.default_rng(0).poisson(3, size=(3000, 1))
    counts = LDPDensity(epsilon=4.0, bounds=(0, 10), step=1, inference="laplace", random_state=0).fit(X)
    assert len(DensityDisplay.from_estimator(counts).line_.get_data()[0]) == 22


def test_other_estimators_and_columns_are_refused(model):
    with pytest.raises(InvalidParameterError, match="column"):
        DensityDisplay.from_estimator(model, column=2)
    normal = LDPGaussian(inference="laplace", random_state=0).fit(np.zeros((50, 1)) + np.arange(50)[:, None] / 50)
    with pytest.raises(InvalidParameterError, match="LDPDensity"):
        DensityDisplay.from_estimator(normal)
