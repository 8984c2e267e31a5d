"""The mode of a density and the curvature at the mode."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from skldp.sampling import sample
from skldp.sampling._density import GuardedModel
from skldp.sampling._map import _covariance_at, _loss_and_gradient, _newton_step, find_mode, repaired_inverse
from tests.sampling.sampling_targets import Gamma, Gaussian, SmoothBanana, SmoothGaussian


@pytest.mark.parametrize("model", [Gaussian(1), Gaussian(3), Gaussian(2, scale=1e-3), Gaussian(2, scale=1e2),
                                   SmoothGaussian(3), SmoothGaussian(60), SmoothGaussian(5, scale=1e-4)])
def test_gaussian_is_found_exactly(model):
    mode = find_mode(GuardedModel(model))
    np.testing.assert_allclose((mode.theta - model.mean) / model.sd, 0, atol=2e-3)
    scale = np.outer(model.sd, model.sd)
    np.testing.assert_allclose(mode.covariance / scale, model.covariance / scale, atol=2e-4)


def test_loss_of_the_search_is_the_negative_log_density_with_its_gradient():
    """Newton steps reach the mode of a Gaussian also after a search in the wrong direction."""
    model = GuardedModel(SmoothGaussian(3))
    theta = model.initial() + [0.3, -0.2, 0.5]
    loss, gradient = _loss_and_gradient(theta, model)
    assert loss == -model.log_density(theta[None])[0]
    np.testing.assert_allclose(gradient, approx_fprime(theta, lambda at: -model.log_density(at[None])[0]), rtol=1e-4)


def test_steps_stay_as_they_are_where_the_curvature_is_negative():
    class Saddle(SmoothGaussian):
        def gradient(self, theta):
            return 0.5 * (theta[:, 1] ** 2 - theta[:, 0] ** 2), theta * [-1.0, 1.0]

    np.testing.assert_allclose(_covariance_at(GuardedModel(Saddle(2)), np.zeros(2)), np.eye(2), atol=1e-6)


def test_curvature_is_accurate_despite_rounding_of_a_large_sum():
    class ManyReports(Gaussian):
        def log_density(self, theta):
            return super().log_density(theta) - 1e8

    model = ManyReports(2, scale=1e-3)
    covariance = find_mode(GuardedModel(model)).covariance
    np.testing.assert_allclose(covariance / np.outer(model.sd, model.sd),
                               model.covariance / np.outer(model.sd, model.sd), atol=0.02)


def test_mode_near_regions_of_zero_density():
    mode = find_mode(GuardedModel(Gamma()))
    np.testing.assert_allclose(mode.theta, np.log(4), atol=1e-3)
    np.testing.assert_allclose(mode.covariance, 0.25, rtol=1e-2)


def test_gradient_of_a_curved_density_leads_to_the_mode():
    np.testing.assert_allclose(find_mode(GuardedModel(SmoothBanana())).theta, 0, atol=1e-3)


def test_nan_in_a_gradient_does_not_stop_the_search():
    class Broken(Gaussian):
        def gradient(self, theta):
            return self.log_density(theta), np.full(theta.shape, np.nan)

    mode = find_mode(GuardedModel(Broken(2)))
    assert np.isfinite(mode.theta).all() and np.isfinite(np.linalg.cholesky(mode.covariance)).all()


def test_mode_of_a_step_function_is_found_by_simplex_search():
    """A density of rounded numbers is locally constant, so its numerical gradient is zero."""
    class Staircase(Gaussian):
        def initial(self):
            return np.full(self.n_params, 2.0)

        def log_density(self, theta):
            return super().log_density(np.round(theta, 3))

    model = Staircase(2)
    guarded = GuardedModel(model)
    assert (guarded.gradient(model.initial()[None])[1] == 0).all()
    assert np.abs((model.initial() - model.mean) / model.sd).max() > 2
    np.testing.assert_allclose((find_mode(guarded).theta - model.mean) / model.sd, 0, atol=0.05)


@pytest.mark.parametrize("precision", [np.diag([1.0, -2.0]), np.zeros((2, 2)), np.full((2, 2), np.nan),
                                       np.array([[1.0, 1.0], [1.0, 1.0]]), np.diag([1e12, 1e-12])])
def test_repaired_inverse_is_positive_definite(precision):
    assert np.isfinite(np.linalg.cholesky(repaired_inverse(precision))).all()


@pytest.mark.parametrize("make", [Gaussian, SmoothGaussian])
def test_laplace_of_a_gaussian_is_the_gaussian(make):
    model = make(3)
    posterior = sample(model, inference="laplace", seed=0)
    draws = posterior.draws["x"].reshape(-1, 3)
    error = model.sd / np.sqrt(len(draws))
    assert np.abs((draws.mean(axis=0) - model.mean) / error).max() < 4.5
    assert np.abs(draws.std(axis=0) / model.sd - 1).max() < 4.5 / np.sqrt(2 * len(draws))
    for diagnostic in (posterior.rhat, posterior.ess, posterior.ess_tail):
        assert np.isnan(diagnostic["x"]).all() and diagnostic["x"].shape == (3,)


def test_laplace_depends_only_on_the_seed():
    first, again, other = (sample(Gaussian(2), inference="laplace", seed=seed).draws["x"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.any(first == other)


@pytest.mark.parametrize("too_wide, expected", [(1.0, 1.0), (2.0, 1.0), (10.0, 1.0), (60.0, 0.6)])
def test_a_newton_step_has_the_best_of_its_lengths(too_wide, expected):
    """With a covariance that is too wide by a factor, the whole step overshoots by it."""
    model = SmoothGaussian(2)
    start = model.mean - [1.0, 2.0]
    theta, gain = _newton_step(GuardedModel(model), start, too_wide * model.covariance)
    np.testing.assert_allclose(theta, start + expected * (model.mean - start), atol=1e-9)
    assert gain == pytest.approx(float(model.log_density(theta[None])[0] - model.log_density(start[None])[0]))
