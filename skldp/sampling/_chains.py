"""Markov chains that emcee advances."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from emcee import EnsembleSampler
from emcee.state import State

from skldp.sampling._density import quiet

# Steps between two updates of the progress bar.
_STEPS_PER_UPDATE = 20


def first_state(log_density, positions, seed):
    """Return the emcee state of walkers at given positions, with a new random generator."""
    random = np.random.RandomState(np.random.MT19937(seed))
    with quiet():
        return State(positions, log_prob=log_density(positions), random_state=random.get_state())


def advance(log_density, moves, state, n_steps, tune):
    """Advance all walkers; return the state, the paths, the log-densities along them and the acceptance.

    With ``tune`` emcee calls the ``tune`` method of the moves.
    """
    sampler = EnsembleSampler(*state.coords.shape, log_density, moves=moves, vectorize=True)
    # The wrapper that emcee puts around it prints parameters and a traceback on every exception, even on Ctrl-C.
    sampler.log_prob_fn = log_density
    with quiet():
        state = sampler.run_mcmc(state, n_steps, tune=tune, skip_initial_state_check=True)
    path, values = sampler.get_chain().swapaxes(0, 1), sampler.get_log_prob().T
    return state, path, values, sampler.acceptance_fraction.mean()


@dataclass
class Chains:
    """Current state of all walkers, with their density and moves, which are fixed after the warm-up."""

    log_density: Callable
    moves: Any
    state: State
    bar: Any
    acceptance: float = np.nan
    notes: dict = field(default_factory=dict)

    @property
    def positions(self):
        """Positions of all walkers, shape (n_walkers, n_params)."""
        return self.state.coords

    def change_density(self, log_density):
        """Continue with another density from the current positions."""
        self.log_density = log_density
        with quiet():
            self.state.log_prob = log_density(self.state.coords)

    def run(self, n_steps, tune=False):
        """Advance all walkers; return their paths, shape (n_walkers, n_steps, n_params), and log-densities."""
        # Splitting a run changes no draw: each piece continues with the state of the random generator.
        size = n_steps if self.bar.disable else _STEPS_PER_UPDATE
        pieces = [min(size, n_steps - done) for done in range(0, n_steps, size)]
        paths, values = zip(*(self._run_piece(piece, tune) for piece in pieces))
        return np.concatenate(paths, axis=1), np.concatenate(values, axis=1)

    def _run_piece(self, n_steps, tune):
        self.state, path, values, acceptance = advance(self.log_density, self.moves, self.state, n_steps, tune)
        self.acceptance = float(acceptance)
        self.note(acceptance=f"{self.acceptance:.2f}")
        self.bar.update(n_steps)
        return path, values

    def show(self, diagnostics, n_left):
        """Show the worst R-hat and effective sample size, and the predicted number of steps that are left."""
        (rhat_of, rhat), (ess_of, ess) = diagnostics.worst_rhat, diagnostics.worst_ess
        self.note(rhat=f"{rhat:.3f} ({rhat_of})", ess=f"{ess:.0f} ({ess_of})")
        _set_total(self.bar, self.bar.n + n_left)
        self.bar.refresh()

    def note(self, **notes):
        """Show notes behind the progress bar, in place of earlier ones of the same name."""
        self.notes.update(notes)
        self.bar.set_postfix(self.notes, refresh=False)


def _set_total(bar, total):
    """Change the total of a progress bar, also of the widget that tqdm shows in a notebook."""
    bar.total = total
    widget = getattr(bar, "container", None)
    if widget is not None:
        widget.children[1].max = total  # tqdm itself sets it only at the start
