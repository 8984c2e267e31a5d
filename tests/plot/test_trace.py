import numpy as np
import pytest
from matplotlib import pyplot as plt

from skldp import LDPBayesLinearRegression, TraceDisplay
from skldp.sampling import Posterior


def test_every_chain_is_a_line_and_titles_have_the_diagnostics(gaussian):
    display = TraceDisplay.from_estimator(gaussian)
    posterior = gaussian.posterior_
    assert list(display.lines_) == ["mean", "std"]
    for ax, name in zip(display.ax_, ["mean", "std"]):
        drawn = np.array([line.get_ydata() for line in display.lines_[name]])
        assert np.array_equal(drawn, posterior.draws[name])
        assert ax.get_title() == f"{name}: R-hat {posterior.rhat[name]:.3f}, ESS {posterior.ess[name]:.0f}"
    assert display.ax_[-1].get_xlabel() == "stored draw of each chain" and display.ax_[0].get_xlabel() == ""


def test_by_default_each_parameter_is_shown_by_its_worst_element():
    draws = {"coef": np.random.default_rng(0).normal(size=(2, 10, 3)), "sigma": np.ones((2, 10))}
    rhat = {"coef": np.array([1.0, 1.2, np.nan]), "sigma": np.array(np.nan)}
    ess = {"coef": np.array([900.0, 50.0, np.nan]), "sigma": np.array(np.nan)}
    model = LDPBayesLinearRegression()
    model.posterior_ = Posterior(draws, rhat=rhat, ess=ess, ess_tail=ess)
    display = TraceDisplay.from_estimator(model)
    assert [ax.get_title() for ax in display.ax_] == ["coef[1]: R-hat 1.200, ESS 50", "sigma"]


def test_names_are_parameters_or_elements(regression):
    display = TraceDisplay.from_estimator(regression, ["sigma", "coef[1]", "covariance[age, sleep]"])
    assert list(display.draws) == ["sigma", "coef[height]", "covariance[age, sleep]"]
    assert np.array_equal(display.draws["coef[height]"], regression.posterior_.draws["coef"][..., 1])
    # The Laplace approximation has no chains, so its titles have no diagnostics.
    assert [ax.get_title() for ax in display.ax_] == list(display.draws)


def test_many_panels_have_two_columns(regression, histogram):
    display = TraceDisplay.from_estimator(histogram, "frequencies")
    assert len(display.ax_) == 5 == len(display.figure_.axes)
    assert [bool(ax.get_xlabel()) for ax in display.ax_] == [False, False, False, True, True]
    assert len(TraceDisplay.from_estimator(regression, "covariance").ax_) == 10


def test_the_number_of_axes_must_fit(gaussian):
    with pytest.raises(ValueError, match="ax must hold 2 axes, one for each element; got 1"):
        TraceDisplay.from_estimator(gaussian, ax=plt.subplots()[1])
    assert len(TraceDisplay.from_estimator(gaussian, "mean", ax=plt.subplots()[1]).ax_) == 1
