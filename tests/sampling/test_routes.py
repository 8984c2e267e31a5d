"""Warm-up: its windows, and the length of trajectories that it learns."""

import numpy as np
import pytest

from skldp.sampling._routes import HamiltonianRoute, _lag_one_correlation, _lengthening_factor, warm_up


class Recorder:
    """Stands in for chains and a route: walkers settle after a number of steps."""

    first_block = 10

    def __init__(self, n_params, settles_after):
        self.positions, self.settles_after = np.zeros((16, n_params)), settles_after
        self.windows, self.adapted = [], 0
        self.rng = np.random.default_rng(0)

    @staticmethod
    def superchains(n_walkers):
        return 4

    def run(self, n_steps, tune=False):
        assert tune
        self.windows.append(n_steps)
        start = np.repeat(np.arange(4.0), 4)[:, None, None] * (sum(self.windows) <= self.settles_after)
        return start + self.rng.normal(size=(16, n_steps, self.positions.shape[1])), self.rng.normal(size=(16, n_steps))

    def adapt(self, chains, path):
        self.adapted += 1


@pytest.mark.parametrize("settles_after, n_warmup, windows", [
    (0, 300, [10, 20]), (30, 300, [10, 20, 40]), (1000, 300, [10, 20, 40, 80, 150]), (0, 10, [10]), (0, 3, [3]),
    (0, 0, []), (0, 12, [10, 2])])
def test_warm_up_ends_when_walkers_have_settled(settles_after, n_warmup, windows):
    recorder = Recorder(3, settles_after)
    path = warm_up(recorder, recorder, n_warmup)
    assert recorder.windows == windows
    assert recorder.adapted == max(len(windows) - 1, 0)
    assert path is None if not windows else path.shape[1] == windows[-1]


@pytest.mark.parametrize("n_walkers, expected", [(64, 4), (2, 2), (6, 3), (7, 1), (9, 3), (10, 2)])
def test_number_of_superchains_divides_the_walkers(n_walkers, expected):
    assert HamiltonianRoute.superchains(n_walkers) == expected


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
