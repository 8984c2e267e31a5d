"""Two ways to sample: trajectories where there is a gradient, ensembles where there is none."""

import numpy as np

from skldp.sampling._hamiltonian import HamiltonianMove
from skldp.sampling._moves import ensemble_moves


class HamiltonianRoute:
    """Independent walkers on Hamiltonian trajectories, all in one batch.

    They start close to the mode: where the likelihood is flat far away, a
    walker thrown there stays there.
    """

    n_ensembles = 1
    spread = 0.2
    first_block = 120

    @staticmethod
    def default_walkers(n_params):
        """Enough walkers to learn a metric from; each one costs the stop rule 100 effective draws."""
        return 16 if n_params <= 100 else 24

    @staticmethod
    def fewest_walkers(n_params):
        """R-hat compares chains, so there must be two."""
        return 2

    @staticmethod
    def moves(model, mode):
        """The move before warm-up, with the metric of the Hessian."""
        return HamiltonianMove(model.force, mode.covariance)

    @staticmethod
    def warm_up(chains, n_warmup):
        """Tune the step size on the Hessian's metric, then twice on that of the pooled draws."""
        move = chains.moves
        learning, rest = _windows(n_warmup, (0.3, 0.3))
        for n_steps in learning:
            path = chains.run(n_steps, tune=True)
            move.set_covariance(_pooled(path, move.covariance)[1])
            # A curved posterior has directions that a quarter turn hardly moves.
            if _slowest(path, move.covariance) > 0.4:
                move.length *= 2
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
    spread = 1.0
    first_block = 200

    @staticmethod
    def default_walkers(n_params):
        """Small ensembles reach the stop rule first; each walker costs it 100 effective draws."""
        return 2 * max(8, 2 * n_params + 2)

    @staticmethod
    def fewest_walkers(n_params):
        """Half an ensemble must span the space, and hold the three walkers of a snooker move."""
        return 2 * max(6, 2 * n_params)

    @staticmethod
    def moves(model, mode):
        """The moves before warm-up, proposing from the Laplace approximation."""
        return ensemble_moves(mode.theta, mode.covariance)

    @staticmethod
    def warm_up(chains, n_warmup):
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


def _slowest(path, covariance):
    """Largest correlation between successive draws in the later half of a window, over whitened directions."""
    later = path[:, path.shape[1] // 2:]
    centered = later - later.mean(axis=(0, 1))
    white = centered @ np.linalg.inv(np.linalg.cholesky(covariance)).T
    successive = np.mean(white[:, 1:] * white[:, :-1], axis=(0, 1))
    return np.max(successive / np.mean(white**2, axis=(0, 1)))
