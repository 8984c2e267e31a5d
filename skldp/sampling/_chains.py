"""Walkers that emcee advances."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from emcee import EnsembleSampler
from emcee.state import State

from skldp.sampling._density import quiet

# Steps between two updates of the progress bar.
_STEPS_PER_UPDATE = 50


def first_state(positions, log_density, seed):
    """State of walkers with a generator of their own.

    Parameters
    ----------
    positions : ndarray of shape (n_walkers, n_params)
    log_density : ndarray of shape (n_walkers,)
    seed : numpy.random.SeedSequence

    Returns
    -------
    state : emcee.State
    """
    random = np.random.RandomState(np.random.MT19937(seed))
    return State(positions, log_prob=log_density, random_state=random.get_state())


def advance(log_density, moves, state, n_steps, tune):
    """Advance all walkers.

    Parameters
    ----------
    log_density : callable
    moves : emcee.moves.Move or list of (Move, float)
    state : emcee.State
        With the state of its random generator.
    n_steps : int
    tune : bool
        Whether the moves may tune themselves.

    Returns
    -------
    state : emcee.State
    chain : ndarray of shape (n_walkers, n_steps, n_params)
    acceptance : float
    """
    sampler = EnsembleSampler(*state.coords.shape, log_density, moves=moves, vectorize=True)
    # emcee's own wrapper prints the parameters and a traceback on any exception, Ctrl-C among them.
    sampler.log_prob_fn = log_density
    with quiet():
        state = sampler.run_mcmc(state, n_steps, tune=tune, skip_initial_state_check=True)
    return state, sampler.get_chain().swapaxes(0, 1), sampler.acceptance_fraction.mean()


@dataclass
class Chains:
    """Walkers under way, and what advances them.

    Parameters
    ----------
    log_density : callable
    moves : emcee.moves.Move or list of (Move, float)
        Replaced between windows of the warm-up, fixed afterwards.
    state : emcee.State
        Where they stand, with the state of their random generator.
    bar : tqdm.tqdm
        Progress of all steps, with notes behind it.
    """

    log_density: Callable
    moves: Any
    state: State
    bar: Any
    acceptance: float = np.nan
    notes: dict = field(default_factory=dict)

    @property
    def positions(self):
        """Where all walkers stand, (n_walkers, n_params)."""
        return self.state.coords

    def move_to(self, log_density):
        """Go on with another density, from where the walkers stand."""
        self.log_density = log_density
        with quiet():
            self.state.log_prob = log_density(self.state.coords)

    def run(self, n_steps, tune=False):
        """Advance all walkers and return their paths, (n_walkers, n_steps, n_params)."""
        # Cutting a run in pieces changes no draw: each piece resumes the generator's state.
        size = n_steps if self.bar.disable else _STEPS_PER_UPDATE
        pieces = [min(size, n_steps - done) for done in range(0, n_steps, size)]
        return np.concatenate([self._run_piece(piece, tune) for piece in pieces], axis=1)

    def _run_piece(self, n_steps, tune):
        self.state, path, acceptance = advance(self.log_density, self.moves, self.state, n_steps, tune)
        self.acceptance = float(acceptance)
        self.note(acceptance=f"{self.acceptance:.2f}")
        self.bar.update(n_steps)
        return path

    def note(self, **notes):
        """Show notes behind the progress bar, in place of earlier ones of the same name."""
        self.notes.update(notes)
        self.bar.set_postfix(self.notes, refresh=False)
