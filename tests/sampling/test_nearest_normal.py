"""The normal distribution nearest to a posterior, and the reuse of densities between gradient calls."""

import numpy as np
import pytest
from scipy import optimize

from skldp.models import Model
from skldp.sampling._density import GuardedModel
from skldp.sampling._map import Mode, find_mode
from skldp.sampling._nearest_normal import _corrected, _corrected_variances, learned_normal, nearest_normal
from tests.sampling.sampling_targets import SmoothGaussian, SmoothStudent, SurrogateGaussian


def test_nearest_normal_of_a_normal_distribution_is_itself():
    """Also from a poor start."""
    model = SmoothGaussian(20)
    start = Mode(model.mean + model.sd, 0.0, 0.5 * model.covariance)
    found = nearest_normal(GuardedModel(model), start, np.random.default_rng(0))
    ratios = np.linalg.eigvals(np.linalg.solve(model.covariance, found.covariance)).real
    assert 0.9 < ratios.min() and ratios.max() < 1.1
    assert np.abs((found.theta - model.mean) / model.sd).max() < 0.05
    assert found.log_density == pytest.approx(model.log_density(found.theta[None])[0])


class LogGamma(Model):
    """The logarithm of a Gamma(2) variable, whose mode, mean and curvature there differ."""

    n_params = 1

    def initial(self):
        return np.zeros(1)

    def log_density(self, theta):
        return 2 * theta[:, 0] - np.exp(theta[:, 0])

    def gradient(self, theta):
        return self.log_density(theta), 2 - np.exp(theta)

    def constrain(self, theta):
        return {"x": theta[:, 0]}


def test_nearest_normal_minimises_the_divergence():
    """Against a minimum over mean and logarithm of the standard deviation; the mean of exp(x) is log-normal."""
    def divergence(params):
        mean, log_std = params
        return -log_std - 2 * mean + np.exp(mean + np.exp(2 * log_std) / 2)

    best = optimize.minimize(divergence, [0.5, -0.5], method="Nelder-Mead").x
    guarded = GuardedModel(LogGamma())
    mode = find_mode(guarded)
    found = [nearest_normal(guarded, mode, np.random.default_rng(seed)) for seed in range(20)]
    # Very long residuals are shortened, so it is not quite the minimum.
    start, end = divergence([mode.theta[0], 0.5 * np.log(mode.covariance[0, 0])]), divergence(best)
    reached = np.mean([divergence([one.theta[0], 0.5 * np.log(one.covariance[0, 0])]) for one in found])
    assert reached - end < 0.25 * (start - end)


def test_heavy_tails_and_missing_gradients_do_no_harm():
    class Holes(SmoothStudent):
        def gradient(self, theta):
            value, gradient = super().gradient(theta)
            return value, np.where(theta[:, :1] > 2, np.nan, gradient)

    guarded = GuardedModel(Holes(4))
    found = nearest_normal(guarded, find_mode(guarded), np.random.default_rng(0))
    assert np.isfinite(found.theta).all() and np.isfinite(np.linalg.cholesky(found.covariance)).all()


def test_variances_grow_by_at_most_four_in_one_round():
    """Residuals equal to the draws say that the density has no curvature at all."""
    z = np.random.default_rng(0).standard_normal((20_000, 2))
    z = np.concatenate([z, -z])
    _, root = _corrected(np.zeros(2), np.diag([1.0, 3.0]), z, z, 1.0)
    np.testing.assert_allclose(root, np.diag([2.0, 6.0]), atol=1e-9)
    _, root = _corrected_variances(np.zeros(2), np.array([1.0, 3.0]), z, z, 1.0)
    np.testing.assert_allclose(root, [2.0, 6.0], rtol=1e-9)


def test_one_round_finds_the_centre_of_a_normal_distribution():
    """With the right variances: from zero, half a standard deviation away."""
    std, z = np.array([0.2, 3.0]), np.random.default_rng(0).standard_normal((500, 2))
    z, mean = np.concatenate([z, -z]), np.array([0.5, -0.5]) * std
    residual = z - (std * z - mean) / std  # z plus the gradient of the log-density with respect to it
    for corrected, root in ((_corrected, np.diag(std)), (_corrected_variances, std)):
        centre, found = corrected(np.zeros(2), root, z, residual, 1.0)
        np.testing.assert_allclose(centre, mean)
        np.testing.assert_allclose(found, root, atol=1e-12)


def test_learned_covariance_solves_its_equation():
    """M G M = C, with so many draws that the last metric has a negligible weight."""
    rng = np.random.default_rng(0)
    draws, gradients = rng.standard_normal((200_000, 3)) * [1, 2, 3], rng.standard_normal((200_000, 3)) * [3, 1, 2]
    _, found = learned_normal(draws, gradients, np.eye(3))
    np.testing.assert_allclose(found @ (gradients.T @ gradients / len(gradients)) @ found, np.cov(draws.T), atol=1e-2)


def test_learned_normal_of_a_gaussian_is_better_than_the_moments_of_the_draws():
    model, rng = SmoothGaussian(20), np.random.default_rng(0)
    draws = rng.multivariate_normal(model.mean, model.covariance, size=400)
    centre, covariance = learned_normal(draws, model.gradient(draws)[1], model.covariance)

    def error(found):
        """Largest deviation from one of the posterior variances in units of the metric."""
        return np.abs(np.linalg.eigvals(np.linalg.solve(found, model.covariance)).real - 1).max()

    assert error(covariance) < 0.1 and error(np.cov(draws.T)) > 0.3
    assert np.abs(centre - model.mean).max() < 0.2 * np.abs(draws.mean(axis=0) - model.mean).max()


def test_draws_with_non_finite_gradients_count_as_draws_only():
    draws = np.random.default_rng(0).standard_normal((50, 2))
    gradients = -draws
    gradients[3, 0] = np.nan
    for missing in (gradients, np.full((50, 2), np.nan)):
        centre, covariance = learned_normal(draws, missing, np.eye(2))
        assert np.isfinite(centre).all() and np.isfinite(np.linalg.cholesky(covariance)).all()


@pytest.mark.parametrize("make, expected", [(SmoothGaussian, 0), (SurrogateGaussian, 1)])
def test_density_of_the_last_gradient_call_is_reused(make, expected):
    """Only without a surrogate, because a surrogate call does not compute the density."""
    model = make(2)
    guarded, theta = GuardedModel(model), np.random.default_rng(0).standard_normal((4, 2))
    guarded.trajectory_gradient(theta)
    np.testing.assert_allclose(guarded.log_density(theta.copy()), model._density_and_gradient(theta)[0])
    assert model.n_calls == expected
    other = theta + 1.0
    np.testing.assert_allclose(guarded.log_density(other), model._density_and_gradient(other)[0])
    assert model.n_calls == expected + 1


def test_stored_density_is_unaffected_by_a_change_of_the_array():
    model = SmoothGaussian(2)
    guarded, theta = GuardedModel(model), np.zeros((3, 2))
    guarded.trajectory_gradient(theta)
    theta += 1.0
    np.testing.assert_allclose(guarded.log_density(theta), model._density_and_gradient(theta)[0])
