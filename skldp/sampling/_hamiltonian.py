"""Hamiltonian Monte Carlo as an emcee move."""

import numpy as np
from emcee.moves import Move
from emcee.state import State


class HamiltonianMove(Move):
    r"""Advance every walker along its own Hamiltonian trajectory.

    Walkers do not interact: each is an independent chain, and they share only
    the batched calls of the gradient. Pass `skip_initial_state_check=True` to
    emcee, because this move allows fewer walkers than parameters.

    Parameters
    ----------
    gradient : callable
        Gradient of the log-density, (n_walkers, n_params) -> (n_walkers,
        n_params). An approximation lowers the acceptance, but the chain stays
        exact.
    covariance : ndarray of shape (n_params, n_params)
        Estimate of the posterior covariance, the inverse of the mass matrix.
    step_size : float, default=None
        Leapfrog step in units of posterior standard deviations;
        :math:`n_{params}^{-1/4}` by default.
    length : float, default=2.0
        Mean length of a trajectory in posterior standard deviations, before
        jitter multiplies it by 0.95 on average. For a Gaussian, successive
        draws are least correlated after a quarter turn, a length of pi / 2;
        with heavy tails a slightly longer trajectory is better.
    most_leapfrogs : int, default=20
        Largest number of leapfrog steps of a trajectory.
    step_jitter : (float, float), default=(0.7, 1.2)
        Each walker's step is `step_size` times a uniform draw between the two.
        With short steps, walkers can leave regions of high curvature.
    target_acceptance : float, default=0.8
        Acceptance probability to which `tune` adapts the step size.

    Notes
    -----
    With :math:`\theta = L z`, :math:`L L' = \Sigma` the covariance, the
    trajectory solves :math:`\dot z = p`, :math:`\dot p = L' g(L z)` by
    leapfrog, from fresh :math:`p \sim N(0, I)`. The end is accepted with
    probability

    .. math:: \min\{1, \exp[\log p(\theta^*) - \log p(\theta)
              + (p'p - p^{*\prime} p^*) / 2]\}.

    The leapfrog map is reversible and preserves volume for *any* vector field
    g, so the chain is exact if g is a surrogate: the accept step evaluates the
    density. Trajectories with a non-finite number are rejected. emcee calls
    `tune` only in runs with `tune=True`; call `freeze` after the last of them,
    so that the transition kernel of the stored chain is constant.

    The number of leapfrogs is drawn anew at every step, uniformly between 0.7
    and 1.3 times `length / step_size`, so that trajectories cannot repeat a
    periodic orbit.

    References
    ----------
    .. [1] R. M. Neal, "MCMC using Hamiltonian dynamics", in Handbook of
       Markov Chain Monte Carlo, 2011.
    .. [2] D. Foreman-Mackey et al., "emcee: the MCMC hammer", PASP 125, 2013.

    Examples
    --------
    >>> import emcee
    >>> import numpy as np
    >>> from skldp.sampling import HamiltonianMove
    >>> move = HamiltonianMove(lambda theta: -theta, np.eye(3))
    >>> sampler = emcee.EnsembleSampler(
    ...     8, 3, lambda theta: -0.5 * np.sum(theta**2, axis=1), moves=move, vectorize=True)
    >>> sampler.random_state = np.random.RandomState(0).get_state()
    >>> start = np.random.default_rng(0).standard_normal((8, 3))
    >>> state = sampler.run_mcmc(start, 200, skip_initial_state_check=True)
    >>> bool(0.8 < sampler.get_chain(flat=True).std() < 1.2)
    True
    """

    def __init__(self, gradient, covariance, *, step_size=None, length=2.0, most_leapfrogs=20,
                 step_jitter=(0.7, 1.2), target_acceptance=0.8):
        self.gradient = gradient
        self.length = length
        self.most_leapfrogs = most_leapfrogs
        self.step_jitter = step_jitter
        self.target_acceptance = target_acceptance
        self.step_size = len(covariance) ** -0.25 if step_size is None else step_size
        self.set_covariance(covariance)

    def set_covariance(self, covariance):
        """Replace the metric by a new estimate of the posterior covariance, and restart the step size tuning."""
        self.covariance = np.array(covariance, dtype=float)
        self._root = np.linalg.cholesky(self.covariance)
        self._log_steps = []
        self._acceptance = self.target_acceptance
        self._last = np.empty((0, 0)), np.empty((0, 0))

    def tune(self, state, accepted):
        """Adapt the step size to the target acceptance (Robbins-Monro)."""
        error = self._acceptance - self.target_acceptance
        # Large early changes find the right magnitude; `freeze` averages over the later ones.
        gain = max(1.5 / (1 + len(self._log_steps)) ** 0.6, 0.1)
        self.step_size *= float(np.exp(gain * error))
        self._log_steps.append(np.log(self.step_size))

    def freeze(self):
        """Fix the step size at the geometric mean over the second half of the tuning."""
        if self._log_steps:
            self.step_size = float(np.exp(np.mean(self._log_steps[len(self._log_steps) // 2:])))

    def propose(self, model, state):
        """Propose one trajectory per walker and accept by the exact density."""
        random, start = model.random, state.coords.copy()
        momentum = random.standard_normal(start.shape)
        gradient = self._scaled_gradient(start)
        end, end_momentum, end_gradient, finite = self._trajectory(start, momentum, gradient, random)
        log_prob, _ = model.compute_log_prob_fn(end)
        kinetic_change = 0.5 * np.sum(end_momentum**2 - momentum**2, axis=1)
        log_ratio = np.where(finite, log_prob - state.log_prob - kinetic_change, -np.inf)
        accepted = np.log(random.random_sample(len(end))) < log_ratio
        self._acceptance = np.mean(np.exp(np.minimum(log_ratio, 0.0)))
        state = self.update(state, State(end, log_prob=log_prob), accepted)
        self._last = state.coords.copy(), np.where(accepted[:, None], end_gradient, gradient)
        return state, accepted

    def _scaled_gradient(self, start):
        """Return the gradient with respect to z at the start of a step, usually known from the end of the last one."""
        coords, gradient = self._last
        return gradient if np.array_equal(coords, start) else self.gradient(start) @ self._root

    def _trajectory(self, start, momentum, gradient, random):
        """Take all leapfrog steps of all walkers; a walker that becomes non-finite returns to its start."""
        step = self.step_size * random.uniform(*self.step_jitter, (len(start), 1))
        n_steps = self._draw_leapfrogs(random)
        finite = np.ones(len(start), dtype=bool)
        theta, gradient = start, _freeze_diverged(gradient, finite, 0.0)
        momentum = momentum + 0.5 * step * gradient
        for remaining in reversed(range(n_steps)):
            theta = _freeze_diverged(theta + step * (momentum @ self._root.T), finite, start)
            gradient = _freeze_diverged(self.gradient(theta) @ self._root, finite, 0.0)
            momentum = momentum + (1.0 if remaining else 0.5) * step * gradient
        return _freeze_diverged(theta, finite, start), momentum, gradient, finite

    def _draw_leapfrogs(self, random):
        middle = self.length / self.step_size
        fewest, most = np.clip(np.round([0.7 * middle, 1.3 * middle]), 1, self.most_leapfrogs).astype(int)
        return random.randint(fewest, most + 1)


def _freeze_diverged(values, finite, fallback):
    """Return values, with ``fallback`` for walkers that are or were non-finite; ``finite`` is updated in place."""
    entries = np.isfinite(values)
    if entries.all() and finite.all():
        return values
    finite &= entries.all(axis=1)
    return np.where(finite[:, None], values, fallback)
