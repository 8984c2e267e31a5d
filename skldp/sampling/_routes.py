"""Two ways to sample: Hamiltonian trajectories for models with a gradient, ensemble moves for the others."""

import numpy as np

from skldp.sampling._chain_statistics import convergence_statistics
from skldp.sampling._density import quiet
from skldp.sampling._diagnostics import MOST_SUPERCHAINS, superchains
from skldp.sampling._hamiltonian import HamiltonianMove
from skldp.sampling._nearest_normal import learned_normal, nearest_normal
from skldp.sampling._moves import ensemble_moves

_FIRST_WINDOW = 10
# R-hat of the positions in the last window of warm-up. A common drift by 0.8 standard deviations gives this value.
_SETTLED_RHAT = 1.1
# Cap on gradients per update of the metric: more would use memory and barely improve it.
_MAX_GRADIENTS = 2000


class HamiltonianRoute:
    """Independent walkers on Hamiltonian trajectories, with one batched gradient call for all walkers.

    The walkers of a superchain start at the same position.
    """

    divisor = 1  # of the number of walkers
    first_block = 40

    def __init__(self, model):
        self.model = model

    def default_walkers(self):
        """Return the default number of walkers.

        Many walkers need few steps each. With more of them, the effective sample size would not show that one of them
        is stuck.
        """
        return 32

    def fewest_walkers(self):
        """Return the smallest number of walkers: R-hat compares chains, so it needs two."""
        return 2

    superchains = starts = staticmethod(superchains)

    def normal(self, mode, rng):
        """Return the normal distribution that is nearest to the posterior."""
        return nearest_normal(self.model, mode, rng)

    def moves(self, normal):
        """Return the move, with the normal distribution as its metric."""
        return HamiltonianMove(self.model.trajectory_gradient, normal.theta, normal.covariance)

    def adapt(self, chains, path):
        """Learn the metric from the second half of a window: it matters where the posterior is far from normal."""
        move = chains.moves
        draws = path[:, path.shape[1] // 2:].reshape(-1, path.shape[2])
        draws = draws[::-(-len(draws) // _MAX_GRADIENTS)]
        with quiet():
            move.set_normal(*learned_normal(draws, move.gradient(draws), move.covariance))

    def finish(self, chains):
        """Fix the step size, and return the normal distribution of the metric."""
        chains.moves.freeze()
        return chains.moves.centre, chains.moves.covariance

    def lengthen(self, chains, path):
        """Lengthen the trajectories if parameters move slowly in a path of the final density."""
        with quiet():
            chains.moves.length *= _lengthening_factor(self.model.constrain(path))


class EnsembleRoute:
    """Ensembles of walkers, each of which proposes by differences of its own walkers.

    The ensembles do not interact, so that R-hat over them detects a lack of convergence: each is a superchain.
    """

    divisor = MOST_SUPERCHAINS
    first_block = 60

    def __init__(self, model):
        self.model = model

    def default_walkers(self):
        """Return the default number of walkers."""
        return MOST_SUPERCHAINS * max(8, 2 * self.model.n_params + 2)

    def fewest_walkers(self):
        """Return the smallest number of walkers.

        Half an ensemble must span the parameter space and contain the three walkers of a snooker move.
        """
        return MOST_SUPERCHAINS * max(6, 2 * self.model.n_params)

    @staticmethod
    def superchains(n_walkers):
        """Return the number of ensembles."""
        return MOST_SUPERCHAINS

    @staticmethod
    def starts(n_walkers):
        """Return the number of starting positions: an ensemble moves by differences, so all are distinct."""
        return n_walkers

    def normal(self, mode, rng):
        """Return the Laplace approximation itself."""
        return mode

    def moves(self, normal):
        """Return the moves, with independent proposals around a normal distribution."""
        self.centre, self.covariance = normal.theta, normal.covariance
        return ensemble_moves(self.centre, self.covariance, MOST_SUPERCHAINS)

    def adapt(self, chains, path):
        """Fit the independent proposal to the pooled draws of a window."""
        self.centre, self.covariance = _pooled(path, self.covariance)
        chains.moves = ensemble_moves(self.centre, self.covariance, MOST_SUPERCHAINS)

    def finish(self, chains):
        """Return the normal distribution of the independent proposal."""
        return self.centre, self.covariance

    def lengthen(self, chains, path):
        """Do nothing: these moves have no length."""


def warm_up(chains, route, n_warmup):
    """Run windows of 10, 20, 40, ... steps, until the last one shows that walkers have settled; return its path."""
    n_done, size, path = 0, _FIRST_WINDOW, None
    n_superchains = route.superchains(len(chains.positions))
    while n_done < n_warmup:
        if path is not None:
            route.adapt(chains, path)
        size = min(size, n_warmup - n_done)
        path, values = chains.run(size, tune=True)
        n_done += size
        if n_done > _FIRST_WINDOW and has_settled(path, values, n_superchains):
            break
        size *= 2
    return path


def has_settled(path, values, n_superchains):
    """Return whether nested R-hat of the coordinates and of the log-density is small in a window of the warm-up."""
    if path.shape[1] < 4:
        return False
    with quiet():
        rhat, _, _ = convergence_statistics(np.concatenate([path, values[:, :, None]], axis=2), n_superchains)
    return bool(np.nanmax(rhat, initial=1.0) <= _SETTLED_RHAT)


def _pooled(path, covariance):
    """Return mean and covariance of the second half of a window, shrunk to the last covariance if draws are few."""
    draws = path[:, path.shape[1] // 2:].reshape(-1, path.shape[2])
    n_draws, n_params = draws.shape
    weight = n_draws / (n_draws + 5.0 * n_params)
    deviations = draws - draws.mean(axis=0)
    return draws.mean(axis=0), weight * deviations.T @ deviations / n_draws + (1 - weight) * covariance


def _lengthening_factor(natural):
    r"""Return the factor by which trajectories are lengthened, from the slowest natural parameter.

    A Gaussian parameter that rotates by an angle a in one step has a correlation :math:`\cos a` between successive
    draws. In curved posteriors some parameters rotate by less than a quarter turn. The factor is 1.3/a, at least one
    and at most three.
    """
    slowest = max(_lag_one_correlation(values.reshape(values.shape[:2] + (-1,))) for values in natural.values())
    return float(np.clip(1.3 / np.arccos(min(slowest, 0.99)), 1.0, 3.0))


def _lag_one_correlation(columns):
    """Return the largest correlation between successive draws, over columns that are not constant."""
    centered = columns - columns.mean(axis=(0, 1))
    power = np.mean(centered**2, axis=(0, 1))
    products = np.mean(centered[:, 1:] * centered[:, :-1], axis=(0, 1))
    return np.max(products[power > 0] / power[power > 0], initial=0.0)
