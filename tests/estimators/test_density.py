"""LDPDensity: mean, quantiles and distribution function of values of any shape."""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone

from skldp import LDPDensity, LDPGaussian, MCMC, required_reports
from skldp.exceptions import InvalidParameterError, ModelMisfitWarning
from skldp.protocols import Protocol, ValueProtocol

SHORT = MCMC(n_draws=60)
Q = np.array([0.1, 0.5, 0.9])


@pytest.fixture(scope="module")
def skewed():
    """Values with a tail, a third of them at the lower bound, and a fit of them."""
    rng = np.random.default_rng(0)
    values = np.where(rng.random(30_000) < 0.3, 0.0, rng.gamma(2.0, 150.0, 30_000))[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws
        return values, LDPDensity(epsilon=2.0, bounds=(0, 1000), inference=SHORT, random_state=0).fit(values)


def test_intervals_contain_the_truth_where_a_normal_distribution_is_far_off(skewed):
    values, model = skewed
    clipped = np.clip(values, 0, 1000)
    low, high = model.posterior_.interval(0.999)["mean"]
    assert low < clipped.mean() < high
    low, high = model.posterior_.interval(0.999)["std"]
    assert low < clipped.std() < high
    mean, low, high = model.quantile(Q, level=0.999)
    assert (low <= np.quantile(clipped, Q)).all() and (np.quantile(clipped, Q) <= high).all()
    assert low[0] == high[0] == 0.0, "the first decile is the point mass at the lower bound"
    with pytest.warns(ModelMisfitWarning, match="LDPDensity"):
        normal = LDPGaussian(epsilon=2.0, bounds=(0, 1000), inference="laplace", random_state=0).fit(values)
    assert abs(normal.mean_ - clipped.mean()) > 10 * normal.posterior_.std()["mean"]


def test_shapes_of_quantiles_and_probabilities(skewed):
    _, model = skewed
    assert isinstance(model.quantile(0.5), float) and isinstance(model.cdf(100), float)
    assert model.quantile(Q).shape == model.cdf([1, 2, 3]).shape == (3,)
    mean, low, high = model.quantile(0.5, level=0.9)
    assert low < mean < high and isinstance(low, float)
    for part in model.cdf([10.0, 500.0], level=0.5):
        assert part.shape == (2,)
    assert model.cdf(-1e9) == 0.0 and model.cdf(1e9) == pytest.approx(1.0)
    assert (np.diff(model.quantile(np.linspace(0, 1, 20))) >= 0).all()


def test_density_integrates_to_one(skewed):
    _, model = skewed
    assert model.density_ @ np.diff(model.cell_edges_) == pytest.approx(1.0)
    assert len(model.cell_edges_) == 257 and model.cell_edges_[0] == 0 and model.cell_edges_[-1] == 1000


def test_scores_follow_the_density(skewed):
    values, model = skewed
    np.testing.assert_allclose(model.score_samples([[300.0]]),
                               np.log(model.density_[np.searchsorted(model.cell_edges_, 300.0) - 1]))
    assert model.score_samples([[-5.0]]) == model.score_samples([[0.0]]), "values are clipped as by a client"
    assert model.score(values) > model.score(np.random.default_rng(0).uniform(0, 1000, (1000, 1)))


def test_synthetic_values_have_the_distribution(skewed):
    _, model = skewed
    drawn = model.sample(20_000, random_state=0)
    assert drawn.shape == (20_000, 1)
    for x in (0.0, 200.0, 600.0):
        assert abs(np.mean(drawn <= x) - model.cdf(x)) < 0.02
    np.testing.assert_array_equal(drawn, model.sample(20_000, random_state=0))


def test_whole_numbers_are_exact():
    counts = np.random.default_rng(0).poisson(4.0, size=(20_000, 2)).astype(float)
    model = LDPDensity(epsilon=4.0, bounds=(0, 20), step=1, inference="laplace", random_state=0).fit(counts)
    assert model.protocol_.n_levels == 20 and model.density_.shape == (21, 2)
    assert model.mean_.shape == (2,) and model.quantile(Q).shape == (3, 2) and model.cdf(4).shape == (2,)
    mean, low, high = model.quantile(Q, level=0.9)
    assert mean.shape == low.shape == high.shape == (3, 2)
    np.testing.assert_array_equal(low, np.round(low))
    assert set(model.sample(50, 0).ravel()) <= set(range(21))


def test_window_is_that_of_a_density_and_reports_of_another_one_can_be_fitted():
    model = LDPDensity(epsilon=1.0, bounds=(0, 1), inference="laplace", random_state=0)
    assert model.protocol().window == 0.25 and LDPDensity(epsilon=4.0).protocol().window == 0.125
    assert LDPDensity(window=0.1).protocol().window == 0.1
    narrow = ValueProtocol(epsilon=1.0, bounds=(0, 1), window=0.1)
    x = np.random.default_rng(0).beta(2, 5, (2000, 1))
    model.fit_reports(narrow.aggregate(narrow._randomize(x, None, 0)))
    assert model.protocol_.window == 0.1
    assert Protocol.from_json(model.protocol().to_json()) == model.protocol()


def test_fit_equals_fit_of_its_reports_and_chunks_and_cohorts_add_up():
    x = np.random.default_rng(0).beta(2, 5, (3000, 1))
    model = LDPDensity(epsilon=1.0, bounds=(0, 1), inference="laplace", random_state=0)
    reports = model.privatize(x)
    direct = clone(model).fit(x)
    chunked = clone(model).fit_reports(iter([reports[:1000], reports[1000:]]))
    np.testing.assert_array_equal(direct.density_, chunked.density_)
    mixed = clone(model).fit(x, sample_epsilon=np.repeat([1.0, 2.0], 1500))
    assert mixed.epsilon_ == 2.0 and mixed.n_reports_ == 3000
    assert pickle.loads(pickle.dumps(direct)).quantile(0.5) == direct.quantile(0.5)
    bound = direct.influence_bound(10)
    assert bound["mean"] > 0 and bound["density"].shape == direct.density_.shape


def test_without_reports_the_posterior_is_the_prior_and_without_noise_the_data():
    model = LDPDensity(bounds=(0, 1), inference="laplace", random_state=0)
    with pytest.warns(UserWarning, match="no reports"):
        model.fit_reports(np.empty((0, 1), dtype=int))
    assert model.fit_check_ is None
    x = np.random.default_rng(0).beta(2, 5, (20_000, 1))
    exact = LDPDensity(epsilon=np.inf, bounds=(0, 1), n_cells=32, inference="laplace", random_state=0).fit(x)
    assert exact.mean_ == pytest.approx(x.mean(), abs=0.004)
    assert exact.quantile(0.5) == pytest.approx(np.median(x), abs=0.01)


def test_warm_start_reuses_the_last_fit():
    x = np.random.default_rng(0).beta(2, 5, (4000, 1))
    model = LDPDensity(epsilon=2.0, bounds=(0, 1), n_cells=32, inference=SHORT, random_state=0, warm_start=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        first = model.fit(x[:2000]).mean_
        assert model.fit(x).mean_ == pytest.approx(first, abs=0.1)


def test_bad_parameters_are_refused_in_a_sentence():
    x = np.zeros((5, 1))
    for parameters, message in [({"step": 0.3}, "whole number of steps"), ({"step": -1}, "step"),
                                ({"step": 100}, "whole number of steps"), ({"n_cells": 2}, "n_cells"),
                                ({"n_cells": "many"}, "n_cells"), ({"bounds": (1, 0)}, "bounds"),
                                ({"window": 2}, "window"), ({"columns": "both"}, "columns"),
                                ({"step": 1e-9, "bounds": (0, 1)}, "at most")]:
        with pytest.raises(InvalidParameterError, match=message):
            LDPDensity(**parameters).fit(x)


def test_bad_points_are_refused_in_a_sentence(skewed):
    _, model = skewed
    for q in (-0.1, 1.1, np.nan, [0.5, 2.0]):
        with pytest.raises(InvalidParameterError, match="between 0 and 1"):
            model.quantile(q)
    with pytest.raises(InvalidParameterError, match="NaN"):
        model.cdf(np.nan)
    with pytest.raises(InvalidParameterError, match="one-dimensional"):
        model.cdf([[1.0]])
    with pytest.raises(InvalidParameterError, match="level"):
        model.quantile(0.5, level=2)


@pytest.mark.parametrize("parameter, options", [("mean", {}), ("std", {}), ("quantile", {"q": 0.25})])
def test_planned_number_of_reports_gives_the_width(parameter, options):
    """The planned number grows as the width falls, and agrees with the posterior of that many reports."""
    model = LDPDensity(epsilon=4.0, bounds=(0, 1), n_cells=64, inference=SHORT, random_state=0)
    n = required_reports(model, 0.01, parameter=parameter, std=0.15, **options)
    assert n < required_reports(model, 0.005, parameter=parameter, std=0.15, **options)
    x = np.random.default_rng(0).normal(0.5, 0.15, (n, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(x)
    if parameter == "quantile":
        _, low, high = model.quantile(0.25, level=0.9)
    else:
        low, high = model.posterior_.interval(0.9)[parameter]
    assert 0.6 < (high - low) / 0.01 < 1.6
