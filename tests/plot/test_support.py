"""Behaviour common to all displays: matplotlib is optional, and invalid arguments raise."""

import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression

from skldp import (
    CoverageDisplay,
    LDPGaussian,
    LDPSGDRegressor,
    PosteriorDisplay,
    PrivacyUtilityDisplay,
    TraceDisplay,
)


def draw_coverage(**options):
    return CoverageDisplay.from_results({"level": [0.5, 0.9], "coverage": [0.4, 0.9], "repeats": 100}, **options)


def draw_utility(**options):
    return PrivacyUtilityDisplay.from_results({"epsilon": [1.0, 2.0], "score": [0.5, 0.6]}, **options)


@pytest.mark.parametrize("draw", [draw_coverage, draw_utility])
def test_results_displays_use_the_axes_they_are_given(draw):
    figure, ax = plt.subplots()
    display = draw(ax=ax)
    assert display.ax_ is ax and display.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert draw().figure_ is not figure
    assert display.plot() is display


def test_posterior_displays_use_the_axes_they_are_given(gaussian):
    figure, axes = plt.subplots(3, 1)
    display = PosteriorDisplay.from_estimator(gaussian, "mean", ax=axes[0])
    traces = TraceDisplay.from_estimator(gaussian, ax=axes[1:])
    assert display.ax_ is axes[0] and display.figure_ is figure
    assert list(traces.ax_) == list(axes[1:]) and traces.figure_ is figure
    assert display.plot() is display and traces.plot() is traces


def test_without_matplotlib_the_error_explains_how_to_install_it(gaussian, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    drawings = [draw_coverage, draw_utility, lambda: PosteriorDisplay.from_estimator(gaussian, "mean"),
                lambda: TraceDisplay.from_estimator(gaussian)]
    for draw in drawings:
        with pytest.raises(ImportError, match=r'pip install "skldp\[plot\]"'):
            draw()


def posterior_of(estimator):
    return PosteriorDisplay.from_estimator(estimator, "mean")


@pytest.mark.parametrize("draw", [posterior_of, TraceDisplay.from_estimator])
def test_estimators_without_posterior_raise(draw):
    with pytest.raises(NotFittedError, match="LDPGaussian instance is not fitted yet"):
        draw(LDPGaussian())
    for estimator in (LDPSGDRegressor(), LinearRegression()):
        with pytest.raises(TypeError, match="has no posterior. Pass a Bayesian estimator"):
            draw(estimator)


def test_unknown_names_raise_with_the_known_ones(gaussian):
    with pytest.raises(ValueError, match="no parameter or element 'coef'. Choose from 'mean', 'std'[.]$"):
        PosteriorDisplay.from_estimator(gaussian, "coef")
    with pytest.raises(ValueError, match=r"no parameter or element 'mean\[3\]'. Choose from 'mean', 'std'"):
        TraceDisplay.from_estimator(gaussian, ["mean[3]"])


def test_a_legend_names_everything_once(gaussian):
    ax = plt.subplots()[1]
    for color, label in (("C0", "Monday"), ("C1", "Tuesday")):
        display = PosteriorDisplay.from_estimator(gaussian, "mean", truth=1.0, ax=ax, color=color, label=label)
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["Monday", "Tuesday", "90 % interval", "truth"]


def test_a_second_posterior_on_the_same_axes_is_not_cut_off(gaussian):
    ax = plt.subplots()[1]
    wide = PosteriorDisplay.from_estimator(gaussian, "mean", prior=gaussian.posterior_.draws["std"].ravel(), ax=ax)
    narrow = PosteriorDisplay(wide.draws / 10, name="mean", labels=["mean"]).plot(ax=ax)
    bottom, top = ax.get_ylim()
    assert bottom == 0 and top > narrow.lines_[0].get_ydata().max() > 5 * wide.lines_[0].get_ydata().max()
    assert ax.get_xlim()[0] < narrow.draws.min() and ax.get_xlim()[1] > wide.draws.max()


@pytest.mark.parametrize("draw", [CoverageDisplay.from_results, PrivacyUtilityDisplay.from_results])
def test_tables_are_checked(draw):
    with pytest.raises(ValueError, match="no column .*The columns are none"):
        draw([])
    with pytest.raises(ValueError, match="no column .*The columns are 'size'"):
        draw({"size": np.ones(3)})
