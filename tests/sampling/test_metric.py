"""The learned metric, and the reuse of densities between gradient calls."""

import numpy as np
import pytest

from skldp.sampling._density import GuardedModel
from skldp.sampling._metric import learned_metric
from tests.sampling.sampling_targets import SmoothGaussian, SurrogateGaussian


def test_metric_solves_its_equation():
    """M G M = C, with so many draws that the last metric has a negligible weight."""
    rng = np.random.default_rng(0)
    draws, gradients = rng.standard_normal((200_000, 3)) * [1, 2, 3], rng.standard_normal((200_000, 3)) * [3, 1, 2]
    metric = learned_metric(draws, gradients, np.eye(3))
    np.testing.assert_allclose(metric @ (gradients.T @ gradients / len(gradients)) @ metric, np.cov(draws.T), atol=1e-2)


def test_metric_of_a_gaussian_is_better_than_the_covariance_of_the_draws():
    model, rng = SmoothGaussian(20), np.random.default_rng(0)
    draws = rng.multivariate_normal(model.mean, model.covariance, size=400)
    gradients = model.gradient(draws)[1]

    def error(found):
        """Largest deviation from one of the posterior variances in units of the metric."""
        return np.abs(np.linalg.eigvals(np.linalg.solve(found, model.covariance)).real - 1).max()

    assert error(learned_metric(draws, gradients, model.covariance)) < 0.1
    assert error(np.cov(draws.T)) > 0.3


def test_non_finite_gradients_are_ignored():
    draws = np.random.default_rng(0).standard_normal((50, 2))
    gradients = -draws
    gradients[3, 0] = np.nan
    assert np.isfinite(np.linalg.cholesky(learned_metric(draws, gradients, np.eye(2)))).all()
    assert np.isfinite(np.linalg.cholesky(learned_metric(draws, np.full((50, 2), np.nan), np.eye(2)))).all()


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
