"""The shape of the tail of importance weights, and the draws of a Laplace approximation."""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

from skldp.models import Model
from skldp.sampling import sample
from skldp.sampling._importance import pareto_k


@pytest.mark.parametrize("shape", [0.2, 0.5, 0.9, 1.5])
def test_the_shape_of_a_pareto_tail_is_found(shape):
    weights = stats.genpareto(shape).rvs(20_000, random_state=0)
    assert pareto_k(np.log(weights)) == pytest.approx(shape, abs=0.12)


@pytest.mark.parametrize("seed", range(4))
def test_the_shape_agrees_with_arviz(seed):
    log_weights = (1 + seed) * np.random.default_rng(seed).standard_t(5, size=2000)
    assert pareto_k(log_weights) == pytest.approx(float(array_stats.psislw(-log_weights)[1]), rel=1e-9)


def test_equal_and_impossible_weights():
    assert pareto_k(np.zeros(100)) == -np.inf
    assert pareto_k(np.append(np.full(99, -np.inf), 0.0)) == np.inf


class Student(Model):
    """A t distribution, whose normal approximation at the mode is too narrow."""

    n_params = 1

    def __init__(self, freedom):
        self.freedom = freedom

    def initial(self):
        return np.zeros(1)

    def log_density(self, theta):
        return stats.t(self.freedom).logpdf(theta[:, 0])

    def constrain(self, theta):
        return {"x": theta[:, 0]}


def test_weights_correct_a_laplace_approximation():
    posterior = sample(Student(30), inference="laplace", seed=0)
    assert posterior.pareto_k < 0.7
    approximate = np.sqrt(30 / 31)  # from the curvature at the mode
    assert abs(posterior.std()["x"] - stats.t(30).std()) < 0.5 * abs(approximate - stats.t(30).std())


def test_a_rough_laplace_approximation_says_so():
    posterior = sample(Student(2), inference="laplace", seed=0)
    assert posterior.pareto_k > 0.7
    assert posterior.std()["x"] == pytest.approx(np.sqrt(2 / 3), rel=0.1), "the draws are left as they are"


def test_chains_have_no_pareto_k():
    assert np.isnan(sample(Student(30), seed=0).pareto_k)
