"""The learned metric, and what trajectories remember."""

import numpy as np
import pytest

from skldp.sampling._density import GuardedModel
from skldp.sampling._metric import learned_metric
from tests.sampling.sampling_targets import SmoothGaussian, SurrogateGaussian


def test_metric_solves_its_equation():
    """With so many draws that the last metric weighs nothing, M G M = C."""
    rng = np.random.default_rng(0)
    draws, slopes = rng.standard_normal((200_000, 3)) * [1, 2, 3], rng.standard_normal((200_000, 3)) * [3, 1, 2]
    metric = learned_metric(draws, slopes, np.eye(3))
    np.testing.assert_allclose(metric @ (slopes.T @ slopes / len(slopes)) @ metric, np.cov(draws.T), atol=1e-2)


def test_metric_of_a_gaussian_is_better_than_the_covariance_of_the_draws():
    model, rng = SmoothGaussian(20), np.random.default_rng(0)
    draws = rng.multivariate_normal(model.mean, model.covariance, size=400)
    slopes = model.gradient(draws)[1]

    def error(found):
        """Largest deviation from one of the posterior's variances in the metric."""
        return np.abs(np.linalg.eigvals(np.linalg.solve(found, model.covariance)).real - 1).max()

    assert error(learned_metric(draws, slopes, model.covariance)) < 0.1
    assert error(np.cov(draws.T)) > 0.3


def test_slopes_that_are_not_finite_are_left_out():
    draws = np.random.default_rng(0).standard_normal((50, 2))
    slopes = -draws
    slopes[3, 0] = np.nan
    assert np.isfinite(np.linalg.cholesky(learned_metric(draws, slopes, np.eye(2)))).all()
    assert np.isfinite(np.linalg.cholesky(learned_metric(draws, np.full((50, 2), np.nan), np.eye(2)))).all()


@pytest.mark.parametrize("make, expected", [(SmoothGaussian, 0), (SurrogateGaussian, 1)])
def test_the_density_of_the_last_gradient_is_remembered(make, expected):
    """Only where the force is the gradient of the density."""
    model = make(2)
    guarded, theta = GuardedModel(model), np.random.default_rng(0).standard_normal((4, 2))
    guarded.trajectory_gradient(theta)
    np.testing.assert_allclose(guarded.log_density(theta.copy()), model._density_and_gradient(theta)[0])
    assert model.n_calls == expected
    other = theta + 1.0
    np.testing.assert_allclose(guarded.log_density(other), model._density_and_gradient(other)[0])
    assert model.n_calls == expected + 1


def test_what_is_remembered_survives_a_change_of_the_array():
    model = SmoothGaussian(2)
    guarded, theta = GuardedModel(model), np.zeros((3, 2))
    guarded.trajectory_gradient(theta)
    theta += 1.0
    np.testing.assert_allclose(guarded.log_density(theta), model._density_and_gradient(theta)[0])
