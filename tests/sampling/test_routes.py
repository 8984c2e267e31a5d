"""Warm-up: its windows, and the length of trajectories that it learns."""

import numpy as np
import pytest

from skldp.sampling._routes import _lag_one_correlation, _lengthening_factor, _windows


@pytest.mark.parametrize("n_warmup, windows, remaining", [(0, [], 0), (19, [], 19), (20, [2, 4, 6], 8),
                                                          (100, [10, 20, 30], 40)])
def test_windows_of_the_warm_up(n_warmup, windows, remaining):
    assert _windows(n_warmup, (0.1, 0.2, 0.3)) == (windows, remaining)


def autoregressive(correlation, n_steps=4000, n_chains=5):
    """Stationary chains with a given correlation between successive draws, and one column that is constant."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(n_chains, n_steps, 2))
    for t in range(1, n_steps):
        draws[:, t] = correlation * draws[:, t - 1] + np.sqrt(1 - correlation**2) * draws[:, t]
    return np.concatenate([draws, np.ones((n_chains, n_steps, 1))], axis=2)


@pytest.mark.parametrize("correlation", [0.0, 0.5, 0.9])
def test_correlation_between_successive_draws(correlation):
    assert _lag_one_correlation(autoregressive(correlation)) == pytest.approx(correlation, abs=0.03)


@pytest.mark.parametrize("correlation, factor", [(0.0, 1.0), (0.5, 1.3 / np.arccos(0.5)), (0.8, 1.3 / np.arccos(0.8)),
                                                 (0.99, 3.0)])
def test_the_slowest_parameter_sets_the_length(correlation, factor):
    natural = {"slow": autoregressive(correlation), "fast": autoregressive(0.0)[:, :, 0]}
    assert _lengthening_factor(natural) == pytest.approx(factor, rel=0.05)
