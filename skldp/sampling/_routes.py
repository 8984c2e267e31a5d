"""Two ways to sample: Hamiltonian trajectories for models with a gradient, ensemble moves for the others."""

import numpy as np

from skldp.sampling._density import quiet
from skldp.sampling._hamiltonian import HamiltonianMove
from skldp.sampling._metric import learned_metric
from skldp.sampling._moves import ensemble_moves

# Early in warm-up the metric is poor and steps are small; short trajectories are enough for walkers to disperse.
_EARLY_LEAPFROGS = 8
# Cap on gradients per metric update: more would use memory and barely improve the metric.
_MAX_GRADIENTS = 2000


class HamiltonianRoute:
    """Independent walkers on Hamiltonian trajectories, with one batched gradient call for all walkers.

    They start close to the mode, because a walker that starts far away, where the likelihood is flat, stays there.
    """

    n_ensembles = 1
    initial_scale = 0.2  # standard deviation of starting positions, relative to that of the posterior
    first_block = 120

    @staticmethod
    def default_walkers(model, warm):
        """Return the default number of walkers.

        A few dozen walkers barely raise the cost of a gradient call, but each needs about 100 effective draws until
        R-hat is 1.01. Fewer are used if the density or the number of parameters makes each walker expensive, and after
        a warm start, because many walkers help only to learn the metric.
        """
        if warm or (model.has_surrogate and model.n_params <= 100):
            return 16
        return 24 if model.n_params > 100 else 40

    @staticmethod
    def fewest_walkers(n_params):
        """Return the smallest number of walkers: R-hat compares chains, so it needs two."""
        return 2

    @staticmethod
    def moves(model, mode):
        """Return the move before warm-up, with the inverse Hessian as its metric."""
        return HamiltonianMove(model.trajectory_gradient, mode.covariance)

    @staticmethod
    def warm_up(chains, n_warmup, constrain, warm=False):
        """Tune the step size with the metric from the Hessian, then with metrics learned from draws and gradients.

        A warm start keeps its metric, because a short warm-up cannot improve it.
        """
        move, most = chains.moves, chains.moves.most_leapfrogs
        if warm and n_warmup > 1:
            path = chains.run(n_warmup, tune=True)
            with quiet():
                move.length *= _lengthening_factor(constrain(path[:, n_warmup // 2:]))
            move.freeze()
            return move.covariance
        windows, rest = _windows(n_warmup, (0.1, 0.2, 0.3))
        for window, n_steps in enumerate(windows):
            move.most_leapfrogs = most if window == len(windows) - 1 else min(most, _EARLY_LEAPFROGS)
            second_half = chains.run(n_steps, tune=True)[:, n_steps // 2:]
            with quiet():
                draws = _thinned_draws(second_half)
                move.set_covariance(learned_metric(draws, move.gradient(draws), move.covariance))
                natural = constrain(second_half)
        if windows:
            move.length *= _lengthening_factor(natural)
        if rest:
            chains.run(rest, tune=True)
        move.freeze()
        return move.covariance


class EnsembleRoute:
    """Two ensembles of walkers, each of which proposes by differences of its own walkers.

    The ensembles do not interact after warm-up, so that R-hat over their walkers detects a lack of convergence.
    """

    n_ensembles = 2
    initial_scale = 1.0
    first_block = 200

    @staticmethod
    def default_walkers(model, warm):
        """Return the default number of walkers: few, because the stop rule needs 100 effective draws per walker."""
        return 2 * max(8, 2 * model.n_params + 2)

    @staticmethod
    def fewest_walkers(n_params):
        """Return the smallest number of walkers.

        Half an ensemble must span the parameter space and contain the three walkers of a snooker move.
        """
        return 2 * max(6, 2 * n_params)

    @staticmethod
    def moves(model, mode):
        """Return the moves before warm-up, with independent proposals around the Laplace approximation."""
        return ensemble_moves(mode.theta, mode.covariance)

    @staticmethod
    def warm_up(chains, n_warmup, constrain=None, warm=False):
        """Refit the independent proposal to the pooled draws, twice."""
        covariance = chains.moves[-1][0].get_proposal.covariance
        windows, rest = _windows(n_warmup, (0.5, 0.5))
        for n_steps in windows:
            center, covariance = _pooled(chains.run(n_steps), covariance)
            chains.moves = ensemble_moves(center, covariance)
        if rest:
            chains.run(rest)
        return covariance


def _windows(n_warmup, fractions):
    """Return the steps of each learning window and the remaining steps; fewer than 20 steps are not split."""
    windows = [int(fraction * n_warmup) for fraction in fractions] if n_warmup >= 20 else []
    return windows, n_warmup - sum(windows)


def _pooled(path, covariance):
    """Return mean and covariance of the second half of a window, shrunk to the last covariance if draws are few."""
    draws = path[:, path.shape[1] // 2:].reshape(-1, path.shape[2])
    n_draws, n_params = draws.shape
    weight = n_draws / (n_draws + 5.0 * n_params)
    deviations = draws - draws.mean(axis=0)
    return draws.mean(axis=0), weight * deviations.T @ deviations / n_draws + (1 - weight) * covariance


def _thinned_draws(path):
    """Return draws of all walkers, evenly thinned to at most ``_MAX_GRADIENTS``."""
    draws = path.reshape(-1, path.shape[2])
    return draws[::-(-len(draws) // _MAX_GRADIENTS)]


def _lengthening_factor(natural):
    r"""Return the factor by which trajectories are lengthened, from the slowest natural parameter.

    A Gaussian parameter that rotates by an angle a in one step has a correlation :math:`\cos a` between successive
    draws. In curved posteriors some parameters rotate by less than a quarter turn. The factor is 1.3/a, at least one
    and at most three.
    """
    slowest = max(_lag_one_correlation(values.reshape(values.shape[:2] + (-1,))) for values in natural.values())
    return float(np.clip(1.3 / np.arccos(np.clip(slowest, 0.0, 0.99)), 1.0, 3.0))


def _lag_one_correlation(columns):
    """Return the largest correlation between successive draws, over columns that are not constant."""
    centered = columns - columns.mean(axis=(0, 1))
    power = np.mean(centered**2, axis=(0, 1))
    products = np.mean(centered[:, 1:] * centered[:, :-1], axis=(0, 1))
    return np.max(products[power > 0] / power[power > 0], initial=0.0)
