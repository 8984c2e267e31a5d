"""R-hat and effective sample sizes of all columns at once, against ArviZ."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from skldp.sampling._chain_statistics import rhat_and_ess, smaller_tail_ess
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
        rhat, ess = rhat_and_ess(draws)
        tail = smaller_tail_ess(draws)
        expected_tail = array_stats.ess(draws, method="tail", prob=(0.05, 0.95), **AXES)
    np.testing.assert_allclose(rhat, array_stats.rhat(draws, **AXES), rtol=1e-10)
    np.testing.assert_allclose(ess, array_stats.ess(draws, **AXES), rtol=1e-8)
    np.testing.assert_allclose(tail, expected_tail, rtol=1e-8)


def test_diagnostics_of_a_matrix_match_those_of_its_elements():
    draws = chains(4, 200, 0.5)[:, :, :3]
    matrix = draws[:, :, [0, 1, 1, 2]].reshape(4, 200, 2, 2)
    found = diagnose({"matrix": matrix})
    np.testing.assert_allclose(found.ess["matrix"].ravel(), array_stats.ess(draws, **AXES)[[0, 1, 1, 2]], rtol=1e-8)
    assert found.rhat["matrix"][0, 1] == found.rhat["matrix"][1, 0]


def test_constants_give_nan_and_nan_draws_fail():
    draws = chains(4, 100, 0.0)[:, :, :3]
    draws[:, :, 0] = 1.0
    draws[2, 50, 1] = np.nan
    found = diagnose({"x": draws})
    assert np.isnan(found.rhat["x"][0]) and np.isnan(found.ess["x"][0])
    assert found.rhat["x"][1] == np.inf and found.ess["x"][1] == 0 and not found.converged
    assert np.isfinite([found.rhat["x"][2], found.ess["x"][2], tail_ess({"x": draws})["x"][2]]).all()
    assert tail_ess({"x": draws})["x"][1] == 0
