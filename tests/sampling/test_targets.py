"""Draws from known posteriors are correct within Monte Carlo error."""

import numpy as np
import pytest
from scipy import integrate

from skldp.sampling import sample
from tests.sampling.sampling_targets import (
    Banana,
    Gamma,
    Gaussian,
    SmoothBanana,
    SmoothGaussian,
    SmoothStudent,
    Student,
    SurrogateGaussian,
    worst_moment_z,
    worst_rhat,
    worst_z,
)

GAUSSIANS = [Gaussian(1), Gaussian(2), Gaussian(3), Gaussian(5), Gaussian(2, scale=1e-4), Gaussian(2, scale=1e3),
             SmoothGaussian(1), SmoothGaussian(2), SmoothGaussian(10), SmoothGaussian(50), SmoothGaussian(100),
             SurrogateGaussian(2), SurrogateGaussian(10)]


@pytest.mark.parametrize("model", GAUSSIANS, ids=lambda model: f"{type(model).__name__}{model.n_params}")
def test_gaussian_moments(model):
    posterior = sample(model, seed=1)
    assert worst_rhat(posterior) <= 1.01
    assert posterior.ess["x"].min() >= 1000
    assert worst_moment_z(posterior.draws["x"], model.mean, model.sd) < 4.5


@pytest.mark.parametrize("model", [SmoothGaussian(2), SmoothGaussian(10)], ids=["2", "10"])
def test_gaussian_correlations(model):
    draws = sample(model, seed=2).draws["x"] - model.mean
    products = draws[..., :, None] * draws[..., None, :]
    assert worst_z(products, model.covariance) < 4.5


@pytest.mark.parametrize("model", [Banana(), SmoothBanana()], ids=["ensemble", "hamiltonian"])
def test_banana(model):
    posterior = sample(model, seed=3)
    assert worst_rhat(posterior) <= 1.01
    assert worst_moment_z(posterior.draws["x"], 0, 1) < 4.5
    assert worst_moment_z(posterior.draws["residual"], 0, 0.5) < 4.5
    assert worst_z(posterior.draws["height"], 0.5) < 4.5


@pytest.mark.parametrize("model", [Student(1), Student(2), SmoothStudent(2), SmoothStudent(10)],
                         ids=lambda model: f"{type(model).__name__}{model.n_params}")
def test_heavy_tails(model):
    posterior = sample(model, seed=4)
    assert worst_rhat(posterior) <= 1.01
    probability = posterior.draws["probability"]
    assert worst_moment_z(probability, 0.5, np.sqrt(1 / 12)) < 4.5
    assert worst_z(probability < 0.025, 0.025) < 4.5
    assert worst_z(probability > 0.975, 0.025) < 4.5


def test_no_draw_has_zero_density():
    posterior = sample(Gamma(), seed=5)
    rate = posterior.draws["rate"]
    assert np.exp(-3) <= rate.min() and rate.max() <= np.exp(3.5)
    mass, moment = (integrate.quad(lambda x: x ** power * np.exp(-x), np.exp(-3), np.exp(3.5))[0] for power in (3, 4))
    assert worst_z(rate, moment / mass) < 4.5


@pytest.mark.slow
@pytest.mark.parametrize("make", [Gaussian, SmoothGaussian, SurrogateGaussian])
@pytest.mark.parametrize("n_params", [1, 3])
def test_no_bias_over_many_seeds(make, n_params):
    model = make(n_params)
    scaled = [(sample(model, seed=seed).draws["x"] - model.mean) / model.sd for seed in range(80)]
    for moment, expected in [(1, 0), (2, 1), (4, 3)]:
        errors = np.array([np.mean(draws**moment, axis=(0, 1)) - expected for draws in scaled])
        assert np.abs(errors.mean(axis=0) / errors.std(axis=0) * np.sqrt(len(errors))).max() < 4
