"""Moves for models of few parameters, which need no gradient."""

import numpy as np
from emcee.moves import DEMove, MHMove, RedBlueMove

# Heavier tails than any posterior worth the name, so that no walker waits long in them.
_DEGREES_OF_FREEDOM = 5


class SnookerMove(RedBlueMove):
    r"""Move each walker along the line to another one.

    emcee 3.1.6 has a `DESnookerMove` too, but its step grows with the distance
    to the other walker and its accept step takes the root of the Jacobian, so
    it does not leave the target alone: on a standard Gaussian in three
    dimensions its variance settles near 0.78.

    Notes
    -----
    For a walker s and distinct z, z1, z2 of the other half of the ensemble,
    with the unit vector :math:`e = (s - z) / |s - z|` and
    :math:`\gamma \sim U(1.2, 2.2)`,

    .. math:: s^* = s + \gamma\, e\, e'(z_1 - z_2),

    accepted with the factor :math:`(|s^* - z| / |s - z|)^{k - 1}` for k
    parameters.

    References
    ----------
    .. [1] C. J. F. ter Braak and J. A. Vrugt, "Differential evolution Markov
       chain with snooker updater and fewer chains", Statistics and Computing
       18, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._moves import SnookerMove
    >>> random = np.random.RandomState(0)
    >>> walkers, others = random.standard_normal((2, 4, 3))
    >>> proposed, factors = SnookerMove().get_proposal(walkers, [others], random)
    >>> proposed.shape, factors.shape
    ((4, 3), (4,))
    """

    def get_proposal(self, sample, complement, random):
        """Proposals for one half of the ensemble, given the other."""
        others = np.concatenate(complement)
        chosen = np.argsort(random.random_sample((len(sample), len(others))), axis=1)[:, :3]
        anchor, first, second = others[chosen.T]
        before = sample - anchor
        # Walkers that coincide have no line between them; the zero factor then rejects.
        distance = np.maximum(np.linalg.norm(before, axis=1, keepdims=True), np.finfo(float).tiny)
        direction = before / distance
        gamma = random.uniform(1.2, 2.2, (len(sample), 1))
        proposed = sample + gamma * direction * np.sum(direction * (first - second), axis=1, keepdims=True)
        after = np.linalg.norm(proposed - anchor, axis=1)
        return proposed, (sample.shape[1] - 1) * np.log(after / distance[:, 0])


class StudentProposal:
    r"""Independent proposals from a multivariate t, for `emcee.moves.MHMove`.

    Parameters
    ----------
    center : ndarray of shape (n_params,)
        Location.
    covariance : ndarray of shape (n_params, n_params)
        Scale matrix, from the curvature at the mode or from warm-up draws.

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
        spread = np.sqrt(_DEGREES_OF_FREEDOM / random.chisquare(_DEGREES_OF_FREEDOM, (len(theta), 1)))
        proposed = self.center + (random.standard_normal(theta.shape) * spread) @ self.root.T
        return proposed, self._log_density(theta) - self._log_density(proposed)

    def _log_density(self, theta):
        distance = np.sum(((theta - self.center) @ self.inverse_root.T) ** 2, axis=1)
        power = 0.5 * (_DEGREES_OF_FREEDOM + theta.shape[1])
        return -power * np.log1p(distance / _DEGREES_OF_FREEDOM)


def ensemble_moves(center, covariance):
    """Differential evolution, snooker and independent t proposals, with their weights.

    The first two follow any shape of posterior; the third forgets the past in
    one step where the posterior is nearly Gaussian, as it is with many reports.

    Parameters
    ----------
    center : ndarray of shape (n_params,)
    covariance : ndarray of shape (n_params, n_params)

    Returns
    -------
    moves : list of (emcee.moves.Move, float)

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._moves import ensemble_moves
    >>> [type(move).__name__ for move, _ in ensemble_moves(np.zeros(1), np.eye(1))]
    ['DEMove', 'SnookerMove', 'MHMove']
    """
    return [
        (DEMove(sigma=0.1), 0.3),
        (SnookerMove(), 0.1),
        (MHMove(StudentProposal(center, covariance)), 0.6),
    ]
