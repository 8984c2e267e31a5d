"""Every move leaves its target invariant, and a broken move is detected."""

import emcee
import numpy as np
import pytest

from skldp import MCMC
from skldp.sampling import HamiltonianMove, sample
from skldp.sampling._moves import DifferenceMove, SnookerMove, StudentProposal
from tests.sampling.sampling_targets import SmoothGaussian, SurrogateGaussian, worst_moment_z

TARGET = SmoothGaussian(3)
MOVES = {
    "snooker": SnookerMove,
    "differences": DifferenceMove,
    "independent": lambda: emcee.moves.MHMove(StudentProposal(np.zeros(3), 2 * np.eye(3))),
    "hamiltonian": lambda: HamiltonianMove(lambda theta: TARGET.gradient(theta)[1], np.zeros(3), np.eye(3)),
    "surrogate": lambda: HamiltonianMove(lambda theta: SurrogateGaussian.surrogate(TARGET, theta),
                                         TARGET.mean, TARGET.covariance),
    "zero gradient": lambda: HamiltonianMove(np.zeros_like, TARGET.mean, 0.1 * TARGET.covariance),
}
every_move = pytest.mark.parametrize("make", MOVES.values(), ids=list(MOVES))


def advance(move, n_steps=1000, n_walkers=40, model=TARGET, shift=0.0):
    """Run a move on a target with its log-density shifted by a constant, and return the sampler."""
    sampler = emcee.EnsembleSampler(n_walkers, model.n_params, lambda theta: model.log_density(theta) + shift,
                                    moves=move, vectorize=True)
    rng = np.random.default_rng(0)
    start = rng.multivariate_normal(model.mean, model.covariance, n_walkers)
    sampler.random_state = np.random.RandomState(1).get_state()
    sampler.run_mcmc(start, n_steps, skip_initial_state_check=True)
    return sampler


def run(move, n_steps=1000, model=TARGET):
    """Largest error of the moments, in standard errors."""
    chain = advance(move, n_steps, model=model).get_chain(discard=n_steps // 10).swapaxes(0, 1)
    return worst_moment_z(chain, model.mean, model.sd)


@every_move
def test_move_leaves_the_target_invariant(make):
    assert run(make()) < 4.5


@every_move
def test_a_shifted_log_density_changes_no_draw(make):
    """A log-density is known only up to a constant, so the move must not depend on the constant."""
    plain = advance(make(), n_steps=60)
    assert 0.05 < plain.acceptance_fraction.mean() < 0.999
    for shift in (1000.0, -1000.0):
        shifted = advance(make(), n_steps=60, shift=shift)
        np.testing.assert_array_equal(shifted.get_chain(), plain.get_chain())
        np.testing.assert_allclose(shifted.get_log_prob(), plain.get_log_prob() + shift, atol=1e-9)


def test_snooker_of_emcee_does_not_leave_the_target_invariant():
    """This is why the package has its own snooker move; if this test fails, emcee's can be used instead."""
    assert run(emcee.moves.DESnookerMove()) > 4.5


class AlwaysAccepts(HamiltonianMove):
    def propose(self, model, state):
        start = state.coords.copy()
        momentum = model.random.standard_normal(start.shape)
        end = self._trajectory(start, momentum, self._scaled_gradient(start), model.random)[0]
        accepted = np.ones(len(end), dtype=bool)
        state = self.update(state, emcee.State(end, log_prob=model.compute_log_prob_fn(end)[0]), accepted)
        return state, accepted


class WithoutKineticEnergy(HamiltonianMove):
    def _trajectory(self, start, momentum, gradient, random):
        end, _, gradient, finite = super()._trajectory(start, momentum, gradient, random)
        return end, momentum, gradient, finite


@pytest.mark.parametrize("mutant", [AlwaysAccepts, WithoutKineticEnergy])
def test_broken_accept_step_is_detected(mutant):
    move = mutant(lambda theta: TARGET.gradient(theta)[1], TARGET.mean + 1, 1.5 * TARGET.covariance, step_size=1.2)
    assert run(move) > 4.5


def test_wrong_sign_of_the_gradient_lowers_the_effective_sample_size():
    exact = sample(SmoothGaussian(10), seed=0)

    class Backwards(SmoothGaussian):
        def surrogate(self, theta):
            return -self.gradient(theta)[1]

    with pytest.warns(Warning, match="converged"):
        backwards = sample(Backwards(10), seed=0, inference=MCMC(n_draws=200))
    assert backwards.ess["x"].min() < 0.2 * exact.ess["x"].min()


def test_step_size_reaches_the_target_acceptance():
    model = SmoothGaussian(30)
    move = HamiltonianMove(lambda theta: model.gradient(theta)[1], model.mean, 4 * model.covariance)
    sampler = emcee.EnsembleSampler(40, 30, model.log_density, moves=move, vectorize=True)
    sampler.random_state = np.random.RandomState(0).get_state()
    state = sampler.run_mcmc(model.mean + np.zeros((40, 30)), 60, tune=True, skip_initial_state_check=True)
    move.freeze()
    sampler.reset()
    sampler.run_mcmc(state, 60, skip_initial_state_check=True)
    assert 0.85 < sampler.acceptance_fraction.mean() < 0.95


def test_a_step_solves_the_normal_part_exactly():
    """With the right centre and covariance every proposal is accepted, for one step of any length."""
    move = HamiltonianMove(lambda theta: TARGET.gradient(theta)[1], TARGET.mean, TARGET.covariance, step_size=1.6)
    assert advance(move, n_steps=100).acceptance_fraction.mean() == 1.0


@pytest.mark.parametrize("step_size, fewest, most", [(0.01, 20, 20), (0.5, 3, 4), (1.6, 1, 1)])
def test_number_and_length_of_steps(step_size, fewest, most):
    """The mean length is that of the trajectory unless most_steps bounds it; jitter is between 0.7 and 1.3."""
    move = HamiltonianMove(np.zeros_like, np.zeros(2), np.eye(2), step_size=step_size)
    random = np.random.RandomState(0)
    drawn = [move._draw_steps(50, random) for _ in range(200)]
    assert {n for n, _ in drawn} == set(range(fewest, most + 1))
    lengths = np.array([n * step for n, step in drawn]) / min(1.6, 20 * step_size)
    assert 0.7 <= lengths.min() < 0.72 and 1.28 < lengths.max() <= 1.3
    assert lengths.mean() == pytest.approx(1.0, abs=0.01)


def test_step_size_changes_only_in_tuning():
    move = HamiltonianMove(lambda theta: TARGET.gradient(theta)[1], TARGET.mean, TARGET.covariance, step_size=0.01)
    run(move, n_steps=20)
    assert move.step_size == 0.01
    move.tune(None, None)
    assert move.step_size != 0.01


def test_stored_gradient_is_that_at_the_walkers_positions():
    move = HamiltonianMove(lambda theta: TARGET.gradient(theta)[1], TARGET.mean, 3 * TARGET.covariance)
    sampler = emcee.EnsembleSampler(20, 3, TARGET.log_density, moves=move, vectorize=True)
    sampler.random_state = np.random.RandomState(0).get_state()
    state = sampler.run_mcmc(TARGET.mean + np.zeros((20, 3)), 10, skip_initial_state_check=True)
    assert 0 < sampler.acceptance_fraction.mean() < 0.9
    coords, stored = move._last
    np.testing.assert_array_equal(coords, state.coords)
    np.testing.assert_allclose(stored, move.gradient(coords) @ move._root, atol=1e-12)


def test_trajectory_with_nan_is_rejected():
    def gradient(theta):
        return np.where(theta[:, :1] > 0, np.nan, -theta)

    move = HamiltonianMove(gradient, np.zeros(2), np.eye(2))
    sampler = emcee.EnsembleSampler(6, 2, lambda theta: -0.5 * np.sum(theta**2, axis=1), moves=move, vectorize=True)
    sampler.random_state = np.random.RandomState(0).get_state()
    sampler.run_mcmc(-np.ones((6, 2)), 100, skip_initial_state_check=True)
    chain = sampler.get_chain()
    assert np.isfinite(chain).all() and (chain[..., 0] <= 0).all()
    assert 0 < sampler.acceptance_fraction.mean() < 1


def test_ensembles_do_not_interact():
    """Shifting one ensemble changes no proposal of the other."""
    start = np.random.default_rng(0).standard_normal((16, 2))
    chains = []
    for shift in (0.0, 1000.0):
        moved = start + np.repeat([0.0, shift], 8)[:, None]
        sampler = emcee.EnsembleSampler(16, 2, lambda theta: np.zeros(len(theta)), vectorize=True,
                                        moves=[(DifferenceMove(), 0.5), (SnookerMove(), 0.5)])
        sampler.random_state = np.random.RandomState(0).get_state()
        sampler.run_mcmc(moved, 20, skip_initial_state_check=True)
        chains.append(sampler.get_chain()[:, :8])
    np.testing.assert_array_equal(*chains)


def test_snooker_handles_walkers_at_the_same_position():
    sampler = emcee.EnsembleSampler(
        16, 2, lambda theta: -0.5 * np.sum(theta**2, axis=1), moves=SnookerMove(), vectorize=True)
    with np.errstate(all="ignore"):
        sampler.run_mcmc(np.ones((16, 2)), 5, skip_initial_state_check=True)
    assert (sampler.get_chain() == 1).all()


def test_a_trajectory_can_be_reversed():
    """Negate the momentum at its end, and it returns to its start: what makes the accept step exact."""
    move = HamiltonianMove(lambda theta: TARGET.gradient(theta)[1], np.ones(3), 0.5 * TARGET.covariance,
                           step_size=0.3)
    rng = np.random.default_rng(0)
    start, momentum = rng.normal(size=(2, 5, 3))
    there, back = np.random.RandomState(1), np.random.RandomState(1)
    end, after, gradient, finite = move._trajectory(start, momentum, move.gradient(start) @ move._root, there)
    assert finite.all() and np.abs(end - start).min(axis=1).max() > 0.01
    again, reversed_momentum, _, _ = move._trajectory(end, -after, gradient, back)
    np.testing.assert_allclose(again, start, atol=1e-12)
    np.testing.assert_allclose(reversed_momentum, -momentum, atol=1e-12)
