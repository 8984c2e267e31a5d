"""R-hat and effective sample sizes of all columns at once, against ArviZ."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from skldp.sampling._chain_statistics import convergence_statistics, smaller_tail_ess
from skldp.sampling._density import quiet
from skldp.sampling._diagnostics import diagnose, tail_ess

AXES = {"chain_axis": 0, "draw_axis": 1}


def chains(n_chains, n_draws, correlation, seed=0):
    """Autoregressive chains of five quantities, with repeated values as after rejections."""
    rng = np.random.default_rng(seed)
    draws = rng.standard_normal((n_chains, n_draws, 5))
    stays = rng.random((n_chains, n_draws)) < 0.2
    for t in range(1, n_draws):
        draws[:, t] = correlation * draws[:, t - 1] + np.sqrt(1 - correlation**2) * draws[:, t]
        draws[stays[:, t], t] = draws[stays[:, t], t - 1]
    return draws


@pytest.mark.parametrize("n_chains, n_draws", [(2, 4), (2, 5), (3, 7), (2, 11), (4, 50), (16, 301), (3, 1000)])
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.95, -0.6])
def test_statistics_match_arviz(n_chains, n_draws, correlation):
    draws = chains(n_chains, n_draws, correlation)
    with quiet():
        nested, rhat, ess = convergence_statistics(draws, n_chains)
        tail = smaller_tail_ess(draws)
        expected_tail = array_stats.ess(draws, method="tail", prob=(0.05, 0.95), **AXES)
    np.testing.assert_allclose(rhat, array_stats.rhat(draws, **AXES), rtol=1e-10)
    np.testing.assert_array_equal(nested, rhat)  # a superchain of one chain
    np.testing.assert_allclose(ess, array_stats.ess(draws, **AXES), rtol=1e-8)
    np.testing.assert_allclose(tail, expected_tail, rtol=1e-8)


def test_diagnostics_of_a_matrix_match_those_of_its_elements():
    draws = chains(4, 200, 0.5)[:, :, :3]
    matrix = draws[:, :, [0, 1, 1, 2]].reshape(4, 200, 2, 2)
    found = diagnose({"matrix": matrix}, 2)
    np.testing.assert_allclose(found.ess["matrix"].ravel(), array_stats.ess(draws, **AXES)[[0, 1, 1, 2]], rtol=1e-8)
    assert found.rhat["matrix"][0, 1] == found.rhat["matrix"][1, 0]


def test_constants_give_nan_and_nan_draws_fail():
    draws = chains(4, 100, 0.0)[:, :, :3]
    draws[:, :, 0] = 1.0
    draws[2, 50, 1] = np.nan
    found = diagnose({"x": draws}, 2)
    assert np.isnan(found.rhat["x"][0]) and np.isnan(found.ess["x"][0])
    assert found.rhat["x"][1] == np.inf and found.ess["x"][1] == 0 and not found.converged
    assert np.isfinite([found.rhat["x"][2], found.ess["x"][2], tail_ess({"x": draws})["x"][2]]).all()
    assert tail_ess({"x": draws})["x"][1] == 0


def by_definition(draws, n_superchains):
    """Nested R-hat of one quantity (Margossian et al.), of halves of superchains; draws are nearly normal here."""
    n_chains, n_draws = draws.shape
    halves = np.concatenate([draws[:, :n_draws // 2], draws[:, n_draws // 2:]])
    groups = halves.reshape(2 * n_superchains, n_chains // n_superchains, n_draws // 2)
    between = groups.mean(axis=(1, 2)).var(ddof=1)
    within = groups.mean(axis=2).var(axis=1, ddof=1) + groups.var(axis=2, ddof=1).mean(axis=1)
    return np.sqrt(1 + between / within.mean())


def test_nested_rhat_is_that_of_the_definition():
    draws = chains(40, 50, 0.9) + np.repeat(np.linspace(0, 1, 4), 10)[:, None, None]
    nested, _, _ = convergence_statistics(draws, 4)
    np.testing.assert_allclose(nested, [by_definition(draws[:, :, k], 4) for k in range(5)], rtol=0.03)


def test_many_short_chains_that_agree_have_converged():
    """Split R-hat would need many times as many draws."""
    found = [diagnose({"x": chains(32, 140, 0.4, seed)}, 4) for seed in range(20)]
    assert all(one.converged for one in found)
    assert min(one.split_rhat["x"].max() for one in found) > 1.01


def stuck(draws):
    """One walker never moves, at two standard deviations."""
    draws[5] = 2.0
    return draws


def funnel(draws):
    """The walkers of one superchain explore a tenth of the range."""
    draws[:8] *= 0.1
    return draws


def two_modes(draws):
    """Each superchain stays in one of two modes."""
    return draws + 2.0 * np.repeat([0, 1, 1, 0], 8)[:, None, None]


def slow_drift(draws):
    """All walkers move together, by one standard deviation in all."""
    return draws + np.linspace(0, 1, draws.shape[1])[None, :, None]


def slow_walkers(draws):
    """Successive draws have a correlation of 0.99."""
    for t in range(1, draws.shape[1]):
        draws[:, t] = 0.99 * draws[:, t - 1] + np.sqrt(1 - 0.99**2) * draws[:, t]
    return draws


@pytest.mark.parametrize("fault", [stuck, funnel, two_modes, slow_drift, slow_walkers])
def test_chains_with_a_fault_have_not_converged(fault):
    """Whatever split R-hat detects, R-hat and the effective sample size of short chains detect together."""
    for seed in range(10):
        draws = np.random.default_rng(seed).standard_normal((32, 60, 3))
        assert diagnose({"x": draws.copy()}, 4).converged
        assert not diagnose({"x": fault(draws)}, 4).converged
