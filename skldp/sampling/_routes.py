"""Two ways to sample: trajectories where there is a gradient, ensembles where there is none."""

import numpy as np

from skldp.sampling._density import quiet
from skldp.sampling._hamiltonian import HamiltonianMove
from skldp.sampling._metric import learned_metric
from skldp.sampling._moves import ensemble_moves

# Early in warm-up the metric is poor and steps are small; trajectories need not be long for walkers to spread.
_EARLY_LEAPFROGS = 8
# More slopes than these, all in one call, would teach little and take memory.
_MOST_SLOPES = 2000


class HamiltonianRoute:
    """Independent walkers on Hamiltonian trajectories, all in one batch.

    They start close to the mode: where the likelihood is flat far away, a
    walker thrown there stays there.
    """

    n_ensembles = 1
    initial_scale = 0.2  # of walkers around the mode, in standard deviations
    first_block = 120

    @staticmethod
    def default_walkers(model, warm):
        """As many as a call hardly notices, fewer where walkers cost; each costs the stop rule 100 effective draws.

        A warm start knows what many walkers are there to learn.
        """
        if warm or (model.has_surrogate and model.n_params <= 100):
            return 16
        return 24 if model.n_params > 100 else 40

    @staticmethod
    def fewest_walkers(n_params):
        """R-hat compares chains, so there must be two."""
        return 2

    @staticmethod
    def moves(model, mode):
        """The move before warm-up, with the metric of the Hessian."""
        return HamiltonianMove(model.force, mode.covariance)

    @staticmethod
    def warm_up(chains, n_warmup, constrain, warm=False):
        """Tune the step size on the Hessian's metric, then on metrics learned from draws and the slopes there.

        A warm start keeps the metric that it brings: a few steps could only make it worse.
        """
        move, most = chains.moves, chains.moves.most_leapfrogs
        if warm and n_warmup > 1:
            path = chains.run(n_warmup, tune=True)
            with quiet():
                move.length *= _stretch(constrain(path[:, n_warmup // 2:]))
            move.freeze()
            return move.covariance
        learning, rest = _windows(n_warmup, (0.1, 0.2, 0.3))
        for window, n_steps in enumerate(learning):
            move.most_leapfrogs = most if window == len(learning) - 1 else min(most, _EARLY_LEAPFROGS)
            later = chains.run(n_steps, tune=True)[:, n_steps // 2:]
            with quiet():
                draws = _some(later)
                move.set_covariance(learned_metric(draws, move.gradient(draws), move.covariance))
                natural = constrain(later)
        if learning:
            move.length *= _stretch(natural)
        if rest:
            chains.run(rest, tune=True)
        move.freeze()
        return move.covariance


class EnsembleRoute:
    """Two ensembles of walkers that propose by each other's differences.

    The ensembles know nothing of each other after warm-up, so that R-hat over
    their walkers is honest.
    """

    n_ensembles = 2
    initial_scale = 1.0
    first_block = 200

    @staticmethod
    def default_walkers(model, warm):
        """Small ensembles reach the stop rule first; each walker costs it 100 effective draws."""
        return 2 * max(8, 2 * model.n_params + 2)

    @staticmethod
    def fewest_walkers(n_params):
        """Half an ensemble must span the space, and hold the three walkers of a snooker move."""
        return 2 * max(6, 2 * n_params)

    @staticmethod
    def moves(model, mode):
        """The moves before warm-up, proposing from the Laplace approximation."""
        return ensemble_moves(mode.theta, mode.covariance)

    @staticmethod
    def warm_up(chains, n_warmup, constrain=None, warm=False):
        """Refit the independent proposal to the pooled draws, twice."""
        covariance = chains.moves[-1][0].get_proposal.covariance
        learning, rest = _windows(n_warmup, (0.5, 0.5))
        for n_steps in learning:
            center, covariance = _pooled(chains.run(n_steps), covariance)
            chains.moves = ensemble_moves(center, covariance)
        if rest:
            chains.run(rest)
        return covariance


def _windows(n_warmup, fractions):
    """Steps of each window to learn from, and the rest; too short a warm-up teaches nothing."""
    learning = [int(fraction * n_warmup) for fraction in fractions] if n_warmup >= 20 else []
    return learning, n_warmup - sum(learning)


def _pooled(path, covariance):
    """Mean and covariance of the later half of a window, leaning on the last covariance when draws are few."""
    draws = path[:, path.shape[1] // 2:].reshape(-1, path.shape[2])
    n_draws, n_params = draws.shape
    weight = n_draws / (n_draws + 5.0 * n_params)
    deviations = draws - draws.mean(axis=0)
    return draws.mean(axis=0), weight * deviations.T @ deviations / n_draws + (1 - weight) * covariance


def _some(path):
    """Draws of all walkers, evenly thinned to a number that one call of the gradient can take."""
    draws = path.reshape(-1, path.shape[2])
    return draws[::-(-len(draws) // _MOST_SLOPES)]


def _stretch(natural):
    r"""How much longer trajectories should be, by the slowest quantity that is reported.

    A Gaussian quantity that turns by an angle a in one step has a correlation :math:`\cos a` between successive draws;
    curved posteriors have quantities that turn less than a quarter. Trajectories are made longer by 1.3/a, at most
    three times, and never shorter.
    """
    slowest = max(_successive(values.reshape(values.shape[:2] + (-1,))) for values in natural.values())
    return float(np.clip(1.3 / np.arccos(np.clip(slowest, 0.0, 0.99)), 1.0, 3.0))


def _successive(columns):
    """Largest correlation between successive draws, over columns that are not constant."""
    centered = columns - columns.mean(axis=(0, 1))
    power = np.mean(centered**2, axis=(0, 1))
    products = np.mean(centered[:, 1:] * centered[:, :-1], axis=(0, 1))
    return np.max(products[power > 0] / power[power > 0], initial=0.0)
