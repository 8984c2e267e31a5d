"""Models with too many parameters for a Hessian: variances at the mode, chains, and the approximation."""

import numpy as np
import pytest

from skldp.models import LinearModel
from skldp.protocols import MomentProtocol
from skldp.sampling import _map, sample
from skldp.sampling._density import GuardedModel
from skldp.sampling._map import find_mode, is_large
from tests.sampling.sampling_targets import SmoothGaussian


def regression(d, n, epsilon, seed=0):
    """Return the model of reports of correlated features."""
    rng = np.random.default_rng(seed)
    X = (0.2 * rng.normal(size=(n, 2)) @ rng.normal(size=(2, d)) + 0.4 * rng.normal(size=(n, d))) / np.sqrt(d)
    y = X @ rng.normal(size=d) * 0.3 + 0.2 * rng.normal(size=n)
    protocol = MomentProtocol(epsilon=epsilon, n_features=d)
    return LinearModel(sum(protocol.aggregate(piece) for piece in protocol._draw(*protocol._plain(X, y), seed)))


class Diagonal(SmoothGaussian):
    """Independent normal parameters whose standard deviations differ by three orders of magnitude."""

    def __init__(self, n_params):
        super().__init__(n_params)
        self.sd = np.geomspace(0.01, 10.0, n_params)

    def log_density(self, theta):
        return -0.5 * np.sum((theta / self.sd) ** 2, axis=1)

    def gradient(self, theta):
        return self.log_density(theta), -theta / self.sd**2


def test_variances_of_independent_parameters_are_exact():
    model = GuardedModel(Diagonal(_map.MOST_IN_A_MATRIX + 1))
    mode = find_mode(model)
    assert is_large(model) and mode.covariance.shape == mode.theta.shape
    # Those above 100 medians of the variances are limited.
    kept = mode.covariance < 90 * np.median(model.model.sd**2)
    assert kept.mean() > 0.7
    np.testing.assert_allclose(mode.covariance[kept], model.model.sd[kept] ** 2, rtol=1e-6)


def test_variances_of_correlated_parameters_are_conditional_and_positive(monkeypatch):
    monkeypatch.setattr(_map, "MOST_IN_A_MATRIX", 5)
    model = SmoothGaussian(60)
    mode = find_mode(GuardedModel(model))
    conditional = 1 / np.diag(np.linalg.inv(model.covariance))
    assert (mode.covariance > 0).all()
    assert 0.5 < np.median(mode.covariance / conditional) < 2


def test_fifty_features_take_hundreds_of_gradients_and_no_matrix(monkeypatch):
    """The Hessian would take 2,760 gradients, six or more times."""
    model, count = regression(50, 3000, 8.0), [0]
    plain = LinearModel.gradient

    def counted(self, theta):
        count[0] += len(theta)
        return plain(self, theta)

    monkeypatch.setattr(LinearModel, "gradient", counted)
    mode = find_mode(GuardedModel(model))
    assert model.n_params == 1380 and count[0] < 600
    assert mode.covariance.shape == (1380,) and (mode.covariance > 0).all()
    assert mode.log_density > model.log_density(model.initial()[None])[0]


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [2.0, 20.0])
def test_the_approximation_has_the_widths_of_long_chains(monkeypatch, epsilon):
    """A median over coefficients; at epsilon 2 the Hessian gives less than half of the width."""
    model = regression(20, 200_000, epsilon)
    chains = sample(model, seed=0)
    monkeypatch.setattr(_map, "MOST_IN_A_MATRIX", 100)
    ratios, offsets = [], []
    for seed in range(4):
        rough = sample(model, seed=seed, inference="laplace")
        assert np.isnan(rough.rhat["coef"]).all() and rough.problem is None and rough.draws["coef"].shape[:2] == (6, 24)
        ratios.append(np.median(rough.std()["coef"] / chains.std()["coef"]))
        offsets.append((rough.mean()["coef"] - chains.mean()["coef"]) / chains.std()["coef"])
    assert 0.75 < np.median(ratios) < 1.25 and 0.65 < min(ratios) and max(ratios) < 1.35
    assert np.sqrt(np.mean(np.square(offsets))) < 0.3


@pytest.mark.slow
def test_chains_with_variances_have_the_posterior_of_chains_with_a_matrix(monkeypatch):
    model = regression(12, 100_000, 4.0)
    dense = sample(model, seed=0)
    monkeypatch.setattr(_map, "MOST_IN_A_MATRIX", 50)
    diagonal = sample(model, seed=1)
    for name in ("coef", "intercept", "sigma"):
        error = dense.std()[name] * np.sqrt(1 / dense.ess[name] + 1 / diagonal.ess[name])
        assert (np.abs(dense.mean()[name] - diagonal.mean()[name]) < 4.5 * error).all()
        np.testing.assert_allclose(diagonal.std()[name], dense.std()[name], rtol=0.2)
