import math

import numpy as np
import pytest
from scipy import stats

from skldp.privacy import audit_epsilon, epsilon_between, hockey_stick
from skldp.privacy._audit import _best_event, _epsilon_bound


def coin(epsilon, seed=0):
    rng = np.random.default_rng(seed)
    keep = np.exp(epsilon) / (1 + np.exp(epsilon))
    return lambda x: np.where(rng.random(len(x)) < keep, x, 1 - x)


def test_hockey_stick_by_brute_force_over_events():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(6))
    for epsilon in (0.0, 0.3, 1.0):
        events = [[bool(mask >> i & 1) for i in range(6)] for mask in range(64)]
        expected = max(p[event].sum() - np.exp(epsilon) * q[event].sum() for event in events)
        assert hockey_stick(p, q, epsilon) == pytest.approx(max(expected, 0.0))


@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.05, 0.2])
def test_epsilon_between_inverts_the_hockey_stick(delta):
    rng = np.random.default_rng(1)
    for _ in range(20):
        p, q = rng.dirichlet(np.ones(8)), rng.dirichlet(np.ones(8))
        epsilon = epsilon_between(p, q, delta)
        worst = [max(hockey_stick(p, q, e), hockey_stick(q, p, e)) for e in (epsilon, max(epsilon - 1e-6, 0.0))]
        assert worst[0] <= delta + 1e-12
        assert epsilon == 0 or worst[1] > delta


def test_an_output_of_only_one_record_has_infinite_epsilon():
    assert epsilon_between([0.5, 0.5, 0.0], [0.5, 0.0, 0.5]) == np.inf
    assert np.isfinite(epsilon_between([0.9, 0.1], [1.0, 0.0], delta=0.2))


def test_a_true_promise_is_not_contradicted_and_a_false_one_is():
    result = audit_epsilon(coin(1.0), 0, 1, n_reports=50_000)
    assert 0.85 < result.epsilon_lower <= 1.0
    assert audit_epsilon(coin(1.3), 0, 1, n_reports=50_000).epsilon_lower > 1.0


def test_the_bound_holds_at_its_confidence():
    bounds = [audit_epsilon(coin(1.0, seed), 0, 1, n_reports=2000, confidence=0.9).epsilon_lower for seed in range(60)]
    assert np.mean(np.array(bounds) > 1.0) <= 0.1


def test_delta_is_subtracted():
    result = audit_epsilon(coin(1.0), 0, 1, n_reports=50_000, delta=0.2)
    assert result.epsilon_lower < np.log((0.731 - 0.2) / 0.269) + 0.02


def test_the_bound_finds_a_rare_certain_leak():
    rng = np.random.default_rng(0)

    def leaky(x):
        return np.where(rng.random(len(x)) < 0.01, 10 + x, rng.random(len(x)))

    assert audit_epsilon(leaky, 0.0, 1.0, n_reports=50_000).epsilon_lower > 2.0


def test_reports_need_a_statistic():
    with pytest.raises(ValueError):
        audit_epsilon(lambda x: np.zeros((len(x), 2)), 0, 1, n_reports=100)


@pytest.mark.parametrize("options", [{"n_reports": 0}, {"delta": 1.0}, {"confidence": 1.0}])
def test_bad_parameters_raise(options):
    with pytest.raises(ValueError, match="must"):
        audit_epsilon(coin(1.0), 0, 1, **options)


@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_the_best_event_may_lie_on_either_side(sign):
    here, there = sign * np.repeat([1.0, 0.0], 500), np.zeros(1000)
    threshold, above = _best_event(here, there, 0.0, 1e-6)
    assert above == (sign > 0)
    assert (0 <= threshold < 1) if above else (-1 <= threshold < 0)


def test_the_bound_uses_clopper_pearson_limits():
    for here, there in [(1, 0), (2, 0), (40, 3), (1000, 0)]:
        lower = stats.binomtest(here, 1000).proportion_ci(1 - 2e-3, "exact").low
        upper = stats.binomtest(there, 1000).proportion_ci(1 - 2e-3, "exact").high
        expected = max(0.0, math.log(lower / upper))
        assert _epsilon_bound([[here], [there]], 1000, 0.0, 1e-3)[0] == pytest.approx(expected, rel=1e-9)
    # One report against none gives a positive bound only at a high alpha.
    lower, upper = stats.beta.ppf(0.7, 1, 10), stats.beta.ppf(0.3, 1, 10)
    assert _epsilon_bound([[1], [0]], 10, 0.0, 0.7)[0] == pytest.approx(math.log(lower / upper), rel=1e-9)
