"""Sampling is reproducible and interruptible, and warns if it has not converged."""

import types
import warnings

import numpy as np
import pytest
import tqdm.auto
from sklearn.exceptions import ConvergenceWarning

from skldp import MCMC
from skldp.sampling import sample
from skldp.sampling._chains import Chains, _set_total
from skldp.sampling._diagnostics import Diagnostics
from skldp.sampling._inference import _next_block, _progress_bar, _thinned_path
from tests.sampling.sampling_targets import Gaussian, SmoothGaussian, worst_moment_z

MODELS = [Gaussian, SmoothGaussian]
SHORT = {"inference": MCMC(n_draws=200, n_warmup=40)}


def draws_of(model, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return sample(model, **options).draws["x"]


@pytest.mark.parametrize("make", MODELS)
def test_a_seed_fixes_every_draw(make):
    first, second, other = (draws_of(make(2), seed=seed, **SHORT) for seed in (7, 7, 8))
    np.testing.assert_array_equal(first, second)
    assert first.shape != other.shape or not np.any(first == other)


@pytest.mark.parametrize("make", MODELS)
def test_progress_changes_no_draw_and_is_one_bar(make, capfd):
    silent = draws_of(make(2), seed=7, **SHORT)
    assert capfd.readouterr() == ("", "")
    shown = draws_of(make(2), seed=7, progress=True, **SHORT)
    np.testing.assert_array_equal(silent, shown)
    out, err = capfd.readouterr()
    assert out == ""
    # A carriage return redraws the bar; a second bar would need a new line.
    assert err.count("\n") == 1 and err.endswith("\n")
    last = err.strip().split("\r")[-1]
    assert "100%" in last and "acceptance=" in last and "rhat=1.0" in last and "ess=" in last and "(x[" in last


def test_a_run_in_pieces_takes_the_steps_it_was_asked_for():
    class Counted(Chains):
        def _run_piece(self, n_steps, tune):
            taken.append(n_steps)
            return np.empty((4, n_steps, 2)), np.empty((4, n_steps))

    taken = []
    chains = Counted(None, None, None, types.SimpleNamespace(disable=False))
    assert chains.run(50)[0].shape == (4, 50, 2)
    assert taken == [20, 20, 10]


def test_the_widget_of_a_notebook_gets_the_new_total():
    """tqdm sets the end of the widget only at the start, so that a run that stops early would end at a few percent."""
    widget = types.SimpleNamespace(max=3300)
    bar = types.SimpleNamespace(total=3300, container=types.SimpleNamespace(children=[None, widget, None]))
    _set_total(bar, 105)
    assert bar.total == widget.max == 105


def test_a_bar_is_made_for_notebooks_only_if_it_is_shown():
    with _progress_bar(True, 3) as shown, _progress_bar(False, 3) as hidden:
        assert type(shown) is tqdm.auto.tqdm and type(hidden) is tqdm.tqdm and hidden.disable


@pytest.mark.parametrize("make", MODELS)
def test_global_random_state_is_not_touched(make):
    np.random.seed(3)
    before = np.random.get_state()
    first = draws_of(make(2), seed=7, **SHORT)
    after = np.random.get_state()
    np.testing.assert_array_equal(before[1], after[1])
    assert before[2:] == after[2:]
    np.random.seed(4)
    np.testing.assert_array_equal(first, draws_of(make(2), seed=7, **SHORT))


def test_without_a_seed_runs_differ():
    first, second = (draws_of(Gaussian(2), **SHORT) for _ in range(2))
    assert first.shape != second.shape or not np.any(first == second)


@pytest.mark.parametrize("make", MODELS)
def test_too_few_draws_give_a_warning(make):
    with pytest.warns(ConvergenceWarning, match=r"x\[\d\] is .*Raise n_draws \(now 4\)") as caught:
        sample(make(3), seed=0, inference=MCMC(n_warmup=0, n_draws=4))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_chains_that_disagree_give_a_warning():
    class TwoIslands(Gaussian):
        def constrain(self, theta):
            second_half = np.arange(len(theta)) >= len(theta) // 2
            return {"x": theta[:, 0] + 5 * self.sd[0] * second_half}

    with pytest.warns(ConvergenceWarning, match="R-hat of x is .*above 1.05"):
        sample(TwoIslands(1), seed=0, **SHORT)


@pytest.mark.parametrize("rhat, ess, problem", [
    (1.02, 250, "the effective sample size of x is 250, below 400"), (1.06, 1e4, "R-hat of x is 1.060, above 1.05"),
    (1.05, 400, None), (1.0, 1e4, None), (np.nan, np.nan, None)])
def test_limits_of_a_warning(rhat, ess, problem):
    assert Diagnostics(*({"x": np.array(value)} for value in (rhat, rhat, ess))).problem == problem


@pytest.mark.parametrize("rhat, ess, expected", [
    (1.01, 250, 4.0), (1.01, 1e4, 1.0), (1.02, 1e4, 0.0404 / 0.0201), (1.02, 100, 10.0), (1.0, 0.0, 1000.0)])
def test_shortfall_is_the_larger_of_those_of_rhat_and_effective_sample_size(rhat, ess, expected):
    found = Diagnostics(*({"x": np.array([1.0, rhat]), "y": np.array(1.0)} for _ in range(2)),
                        {"x": np.array([1e6, ess])})
    assert found.shortfall == pytest.approx(expected)


@pytest.mark.parametrize("shortfall, expected", [(0.5, 25), (1.1, 25), (1.5, 65), (1.6, 76), (1.9, 100), (50.0, 100)])
def test_next_block_ends_where_the_rule_is_predicted_to_hold(shortfall, expected):
    """A tenth beyond the prediction, and between a quarter and all of the 100 steps taken so far."""
    assert abs(_next_block(100, shortfall) - expected) <= 1  # rounded up


@pytest.mark.parametrize("n_chains, n_steps, expected", [(12, 50, 600), (32, 62, 1984), (32, 500, 1984),
                                                         (4, 3000, 2000)])
def test_a_warm_start_keeps_about_two_thousand_points(n_chains, n_steps, expected):
    assert _thinned_path(np.zeros((n_chains, n_steps, 3))).shape == (expected, 3)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("n_calls", [0, 20, 45])
def test_interrupt_propagates_without_output(make, n_calls, capfd):
    class Interrupted(make):
        n_evaluations = 0

        def _density_and_gradient(self, theta):
            if self.n_evaluations >= n_calls:
                raise KeyboardInterrupt
            self.n_evaluations += 1
            return super()._density_and_gradient(theta)

    with pytest.raises(KeyboardInterrupt):
        sample(Interrupted(2), seed=0)
    assert capfd.readouterr() == ("", "")


def test_sampling_stops_early_and_at_most_after_n_draws():
    posterior = sample(Gaussian(2), seed=0)
    assert posterior.n_steps < 3000
    with pytest.warns(ConvergenceWarning):
        assert sample(Gaussian(2), seed=0, inference=MCMC(n_draws=4)).n_steps == 4


@pytest.mark.parametrize("make, n_walkers", [(Gaussian, 24), (Gaussian, 36), (SmoothGaussian, 2), (SmoothGaussian, 33)])
def test_number_of_walkers_is_respected(make, n_walkers):
    inference = MCMC(n_walkers=n_walkers, n_draws=200, n_warmup=40)
    assert draws_of(make(3), seed=0, inference=inference).shape[0] == n_walkers


def test_fewer_walkers_than_parameters_are_allowed_with_a_gradient():
    model = SmoothGaussian(20)
    posterior = sample(model, seed=0, inference=MCMC(n_walkers=8))
    assert worst_moment_z(posterior.draws["x"], model.mean, model.sd) < 4.5


@pytest.mark.parametrize("inference, sentence", [
    ("vi", 'inference must be "mcmc", "laplace", or an object'),
    (MCMC(n_walkers=4), "n_walkers must be .* multiple of 4 of at least 24"),
    (MCMC(n_walkers=30), "n_walkers must be .* multiple of 4"),
    (MCMC(n_walkers="many"), "n_walkers must be"),
    (MCMC(n_draws=3), "n_draws must be an integer of at least 4, got 3"),
    (MCMC(n_warmup=-1), "n_warmup must be .* at least 0, got -1"),
    (MCMC(n_draws=100.0), "n_draws must be an integer"),
])
def test_invalid_options_raise_an_error(inference, sentence):
    with pytest.raises(ValueError, match=sentence):
        sample(Gaussian(2), seed=0, inference=inference)


@pytest.mark.parametrize("make", MODELS)
def test_warm_start_reaches_the_new_posterior(make):
    before = sample(make(2, seed=0), seed=0)
    model = make(2, seed=1)
    after = sample(model, seed=0, start=before, inference=MCMC(n_warmup=60))
    assert worst_moment_z(after.draws["x"], model.mean, model.sd) < 4.5


def test_floating_point_warnings_of_a_model_are_suppressed():
    class Noisy(Gaussian):
        def log_density(self, theta):
            warnings.warn("overflow", RuntimeWarning)
            np.log(np.zeros(3))
            return super().log_density(theta)

    assert np.isfinite(draws_of(Noisy(1), seed=0, **SHORT)).all()


def test_constants_have_no_diagnostics_and_are_ignored_by_the_stop_rule():
    class WithConstant(Gaussian):
        def constrain(self, theta):
            square = theta[:, :, None] * theta[:, None, :]
            return {"x": theta, "matrix": square, "one": np.ones((len(theta), 2))}

    posterior = sample(WithConstant(2), seed=0)
    assert np.isnan(posterior.rhat["one"]).all()
    assert np.isfinite(posterior.rhat["matrix"]).all()
    assert posterior.rhat["matrix"][0, 1] == posterior.rhat["matrix"][1, 0]


def test_initial_point_of_zero_density_raises_an_error():
    class Lost(Gaussian):
        def log_density(self, theta):
            return np.full(len(theta), np.nan)

    with pytest.raises(ValueError, match="initial point has no finite log-density"):
        sample(Lost(2), seed=0)


def test_the_stop_rule_depends_on_what_a_model_monitors():
    """A monitored drift never settles, although the parameters do; only the parameters are reported."""
    class Drifting(SmoothGaussian):
        def monitored(self, draws):
            values = next(iter(draws.values()))
            return {"drift": values * 0 + np.arange(values.shape[1]).reshape(1, -1, *[1] * (values.ndim - 2)),
                    "log_density": draws["log_density"]}

    chains = MCMC(n_draws=200)
    plain = sample(SmoothGaussian(2), seed=0, inference=chains)
    with pytest.warns(ConvergenceWarning, match="drift"):
        drifting = sample(Drifting(2), seed=0, inference=chains)
    assert plain.n_steps < 200 == drifting.n_steps
    assert drifting.rhat.keys() == drifting.ess.keys() == plain.rhat.keys()
    assert all(np.max(value) < 1.05 for value in drifting.rhat.values())
