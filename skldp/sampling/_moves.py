"""Moves without a gradient, for models with few parameters."""

import numpy as np
from emcee.moves import MHMove, Move

# For the t proposal. Its tails must be heavier than those of the posterior, so that no walker stays long in them.
_DEGREES_OF_FREEDOM = 5


class SeparateEnsembles(Move):
    """Base class of moves by differences of other walkers, in ensembles that do not interact.

    All ensembles advance in one batched call of the density. In each, a random half moves by differences within the
    other half, then the halves swap roles. Consecutive walkers form an ensemble.
    """

    def __init__(self, n_ensembles=2):
        self.n_ensembles = n_ensembles

    def get_proposal(self, walkers, others, random):
        """Return proposals, shape (n_ensembles, n_moving, n_params), and the logarithms of their accept factors."""
        raise NotImplementedError

    def propose(self, model, state):
        """Move every walker once."""
        n_walkers, n_params = state.coords.shape
        shape = self.n_ensembles, n_walkers // self.n_ensembles
        order = np.argsort(model.random.random_sample(shape), axis=1) + shape[1] * np.arange(shape[0])[:, None]
        halves = np.split(order, [shape[1] // 2], axis=1)
        accepted = np.zeros(n_walkers, dtype=bool)
        for moving, resting in (halves, halves[::-1]):
            proposed, factors = self.get_proposal(state.coords[moving], state.coords[resting], model.random)
            rows, proposed = moving.ravel(), proposed.reshape(-1, n_params)
            log_prob, _ = model.compute_log_prob_fn(proposed)
            log_ratio = factors.ravel() + log_prob - state.log_prob[rows]
            taken = np.log(model.random.random_sample(len(rows))) < log_ratio
            state.coords[rows[taken]] = proposed[taken]
            state.log_prob[rows[taken]] = log_prob[taken]
            accepted[rows] = taken
        return state, accepted


class DifferenceMove(SeparateEnsembles):
    r"""Move each walker by the difference of two others (differential evolution).

    Notes
    -----
    :math:`s^* = s + (\gamma_0 + 0.1\,n)(z_1 - z_2)` with :math:`\gamma_0 = 2.38/\sqrt{2k}` for k parameters and n
    standard normal. The proposal is symmetric, because z1 and z2 are exchangeable.

    References
    ----------
    .. [1] C. J. F. ter Braak, "A Markov chain Monte Carlo version of the genetic algorithm differential evolution",
       Statistics and Computing 16, 2006.
    """

    def get_proposal(self, walkers, others, random):
        """Return proposals for one half of each ensemble, given the other half."""
        first, second = _pick(others, walkers.shape[1], 2, random)
        gamma = 2.38 / np.sqrt(2 * walkers.shape[2]) + 0.1 * random.standard_normal((*walkers.shape[:2], 1))
        return walkers + gamma * (first - second), np.zeros(walkers.shape[:2])


class SnookerMove(SeparateEnsembles):
    r"""Move each walker along the line to another one.

    emcee 3.1.6 also has a `DESnookerMove`. Its step grows with the distance to the other walker and its accept step
    uses the square root of the Jacobian, so it does not leave the target invariant: on a standard Gaussian in three
    dimensions the variance converges to about 0.78.

    Notes
    -----
    For a walker s and distinct z, z1, z2 of the other half of the ensemble, with the unit vector
    :math:`e = (s - z) / |s - z|` and :math:`\gamma \sim U(1.2, 2.2)`,

    .. math:: s^* = s + \gamma\, e\, e'(z_1 - z_2),

    accepted with the factor :math:`(|s^* - z| / |s - z|)^{k - 1}` for k parameters.

    References
    ----------
    .. [1] C. J. F. ter Braak and J. A. Vrugt, "Differential evolution Markov chain with snooker updater and fewer
       chains", Statistics and Computing 18, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._moves import SnookerMove
    >>> random = np.random.RandomState(0)
    >>> walkers, others = random.standard_normal((2, 2, 4, 3))
    >>> proposed, factors = SnookerMove().get_proposal(walkers, others, random)
    >>> proposed.shape, factors.shape
    ((2, 4, 3), (2, 4))
    """

    def get_proposal(self, walkers, others, random):
        """Return proposals for one half of each ensemble, given the other half."""
        anchor, first, second = _pick(others, walkers.shape[1], 3, random)
        before = walkers - anchor
        # Two walkers at the same position define no line; the accept factor is then zero.
        distance = np.maximum(np.linalg.norm(before, axis=2, keepdims=True), np.finfo(float).tiny)
        direction = before / distance
        gamma = random.uniform(1.2, 2.2, (*walkers.shape[:2], 1))
        proposed = walkers + gamma * direction * np.sum(direction * (first - second), axis=2, keepdims=True)
        after = np.linalg.norm(proposed - anchor, axis=2)
        return proposed, (walkers.shape[2] - 1) * np.log(after / distance[:, :, 0])


def _pick(others, n_moving, n_picked, random):
    """Return distinct others for each moving walker: n_picked arrays of shape (n_ensembles, n_moving, n_params)."""
    n_ensembles, n_others = others.shape[:2]
    chosen = np.argsort(random.random_sample((n_ensembles, n_moving, n_others)), axis=2)[:, :, :n_picked]
    return others[np.arange(n_ensembles), np.moveaxis(chosen, 0, 2)].transpose(1, 2, 0, 3)


class StudentProposal:
    r"""Independent proposals from a multivariate t, for `emcee.moves.MHMove`.

    Notes
    -----
    With :math:`\nu = 5` and :math:`m(\theta) = (\theta - c)' \Sigma^{-1}
    (\theta - c)`, the proposal density is proportional to
    :math:`(1 + m(\theta)/\nu)^{-(\nu + k)/2}` for k parameters, and the
    returned factor is :math:`\log q(\theta) - \log q(\theta^*)`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._moves import StudentProposal
    >>> propose = StudentProposal(np.zeros(2), np.eye(2))
    >>> proposed, factors = propose(np.zeros((4, 2)), np.random.RandomState(0))
    >>> proposed.shape, bool((factors >= 0).all())
    ((4, 2), True)
    """

    def __init__(self, center, covariance):
        self.center = center
        self.covariance = covariance
        self.root = np.linalg.cholesky(covariance)
        self.inverse_root = np.linalg.inv(self.root)

    def __call__(self, theta, random):
        scale = np.sqrt(_DEGREES_OF_FREEDOM / random.chisquare(_DEGREES_OF_FREEDOM, (len(theta), 1)))
        proposed = self.center + (random.standard_normal(theta.shape) * scale) @ self.root.T
        return proposed, self._log_density(theta) - self._log_density(proposed)

    def _log_density(self, theta):
        distance = np.sum(((theta - self.center) @ self.inverse_root.T) ** 2, axis=1)
        power = 0.5 * (_DEGREES_OF_FREEDOM + theta.shape[1])
        return -power * np.log1p(distance / _DEGREES_OF_FREEDOM)


def ensemble_moves(center, covariance, n_ensembles=2):
    """Return differential evolution, snooker and independent t moves, with their weights.

    The first two adapt to any shape of the posterior. The third proposes independent draws and is accepted often if
    the posterior is nearly Gaussian, as it is with many reports.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._moves import ensemble_moves
    >>> [type(move).__name__ for move, _ in ensemble_moves(np.zeros(1), np.eye(1))]
    ['DifferenceMove', 'SnookerMove', 'MHMove']
    """
    return [
        (DifferenceMove(n_ensembles), 0.2),
        (SnookerMove(n_ensembles), 0.05),
        (MHMove(StudentProposal(center, covariance)), 0.75),
    ]
