"""Walkers that emcee advances, in one ensemble or in several side by side."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from emcee import EnsembleSampler
from emcee.state import State
from joblib import delayed

from skldp.sampling._density import quiet
from skldp.sampling._progress import Progress

# Steps between two updates of the progress bar.
_STEPS_PER_UPDATE = 50


def first_state(positions, log_density, seed):
    """State of an ensemble that has its own generator.

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
    """Advance one ensemble; a function of its arguments alone, wherever it runs.

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
    """Ensembles under way, and what advances them.

    Parameters
    ----------
    log_density : callable
    moves : emcee.moves.Move or list of (Move, float)
        Replaced between windows of the warm-up, fixed afterwards.
    states : list of emcee.State
        One per independent ensemble.
    pool : joblib.Parallel
    progress : Progress
    """

    log_density: Callable
    moves: Any
    states: list
    pool: Callable
    progress: Progress
    acceptance: float = np.nan

    @property
    def positions(self):
        """Where all walkers stand, (n_walkers, n_params)."""
        return np.concatenate([state.coords for state in self.states])

    def run(self, n_steps, tune=False):
        """Advance all walkers and return their paths, (n_walkers, n_steps, n_params)."""
        # Cutting a run in pieces changes no draw: each piece resumes the generator's state.
        size = _STEPS_PER_UPDATE if self.progress.shown else n_steps
        pieces = [min(size, n_steps - done) for done in range(0, n_steps, size)]
        return np.concatenate([self._run_piece(piece, tune) for piece in pieces], axis=1)

    def _run_piece(self, n_steps, tune):
        if len(self.states) == 1:
            # In this process, so that a tuned move keeps what it learns.
            results = [advance(self.log_density, self.moves, self.states[0], n_steps, tune)]
        else:
            results = self.pool(
                delayed(advance)(self.log_density, self.moves, state, n_steps, tune) for state in self.states)
        states, paths, acceptances = zip(*results)
        self.states = list(states)
        self.acceptance = float(np.mean(acceptances))
        self.progress.advance(n_steps, self.acceptance)
        return np.concatenate(paths)
