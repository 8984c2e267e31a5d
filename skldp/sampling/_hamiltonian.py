"""Hamiltonian Monte Carlo as an emcee move."""

import numpy as np
from emcee.moves import Move
from emcee.state import State


class HamiltonianMove(Move):
    r"""Advance every walker along its own Hamiltonian trajectory.

    Walkers do not interact: each is an independent chain, and they share only
    the batched calls of the gradient. Pass `skip_initial_state_check=True` to
    emcee, since fewer walkers than parameters is fine here.

    Parameters
    ----------
    gradient : callable
        Gradient of the log-density, (n_walkers, n_params) -> (n_walkers,
        n_params). An approximation is allowed: it costs acceptance, never
        correctness.
    covariance : ndarray of shape (n_params, n_params)
        Estimate of the posterior covariance, the inverse of the mass matrix.
    step_size : float, default=None
        Leapfrog step in units of posterior standard deviations;
        :math:`n_{params}^{-1/4}` by default.
    length : float, default=2.0
        Mean length of a trajectory in posterior standard deviations. A quarter
        turn, of which jitter leaves nine tenths of this, forgets a Gaussian
        best; a little more pays where tails are heavy.
    most_leapfrogs : int, default=20
        No trajectory takes more, however small the steps.
    step_jitter : (float, float), default=(0.7, 1.2)
        Each walker's step is `step_size` times a uniform draw between the two.
        The short ones free walkers from corners that the long ones cannot turn.
    target_acceptance : float, default=0.8
        Acceptance probability that `tune` steers the step size toward.

    Notes
    -----
    With :math:`\theta = L z`, :math:`L L' = \Sigma` the covariance, the
    trajectory solves :math:`\dot z = p`, :math:`\dot p = L' g(L z)` by
    leapfrog, from fresh :math:`p \sim N(0, I)`. The end is accepted with
    probability

    .. math:: \min\{1, \exp[\log p(\theta^*) - \log p(\theta)
              + (p'p - p^{*\prime} p^*) / 2]\}.

    The leapfrog map is reversible and keeps volume for *any* vector field g,
    so the chain is exact when g is a surrogate: only the accept step sees the
    density. Trajectories that meet a non-finite number are rejected. emcee
    calls `tune` only in runs with `tune=True`; call `freeze` after the last
    one, so that the chain that is kept has a constant kernel.

    The number of leapfrogs is drawn anew at every step, uniformly between 0.7
    and 1.3 times `length / step_size`, lest a trajectory fall in step with an
    orbit.

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
        """Replace the metric by a new estimate of the posterior covariance, and tune the step size anew."""
        self.covariance = np.array(covariance, dtype=float)
        self._root = np.linalg.cholesky(self.covariance)
        self._log_steps = []
        self._acceptance = self.target_acceptance
        self._known = np.empty((0, 0)), np.empty((0, 0))

    def tune(self, state, accepted):
        """Move the step size toward the target acceptance (Robbins-Monro)."""
        error = self._acceptance - self.target_acceptance
        # Early swings find the right magnitude; later ones are averaged away by `freeze`.
        gain = max(1.5 / (1 + len(self._log_steps)) ** 0.6, 0.1)
        self.step_size *= float(np.exp(gain * error))
        self._log_steps.append(np.log(self.step_size))

    def freeze(self):
        """Fix the step size at the geometric mean of the second half of its tuning."""
        if self._log_steps:
            self.step_size = float(np.exp(np.mean(self._log_steps[len(self._log_steps) // 2:])))

    def propose(self, model, state):
        """Propose one trajectory per walker and accept by the exact density."""
        random, start = model.random, state.coords.copy()
        momentum = random.standard_normal(start.shape)
        force = self._force_at(start)
        end, end_momentum, end_force, alive = self._trajectory(start, momentum, force, random)
        log_prob, _ = model.compute_log_prob_fn(end)
        kinetic_change = 0.5 * np.sum(end_momentum**2 - momentum**2, axis=1)
        log_ratio = np.where(alive, log_prob - state.log_prob - kinetic_change, -np.inf)
        accepted = np.log(random.random_sample(len(end))) < log_ratio
        self._acceptance = np.mean(np.exp(np.minimum(log_ratio, 0.0)))
        state = self.update(state, State(end, log_prob=log_prob), accepted)
        self._known = state.coords.copy(), np.where(accepted[:, None], end_force, force)
        return state, accepted

    def _force_at(self, start):
        """Force at the start of a step: as a rule, the one at the end of the step before."""
        coords, force = self._known
        return force if np.array_equal(coords, start) else self.gradient(start) @ self._root

    def _trajectory(self, start, momentum, force, random):
        """Leapfrog all walkers; one that meets a non-finite number stays at its start, dead."""
        step = self.step_size * random.uniform(*self.step_jitter, (len(start), 1))
        n_steps = self._draw_leapfrogs(random)
        alive = np.ones(len(start), dtype=bool)
        theta, force = start, _buried(force, alive, 0.0)
        momentum = momentum + 0.5 * step * force
        for left in reversed(range(n_steps)):
            theta = _buried(theta + step * (momentum @ self._root.T), alive, start)
            force = _buried(self.gradient(theta) @ self._root, alive, 0.0)
            momentum = momentum + (1.0 if left else 0.5) * step * force
        return _buried(theta, alive, start), momentum, force, alive

    def _draw_leapfrogs(self, random):
        middle = self.length / self.step_size
        fewest, most = np.clip(np.round([0.7 * middle, 1.3 * middle]), 1, self.most_leapfrogs).astype(int)
        return random.randint(fewest, most + 1)


def _buried(values, alive, fallback):
    """Values of the walkers that are alive, after marking (in place) those that turned non-finite."""
    finite = np.isfinite(values)
    if finite.all() and alive.all():
        return values
    alive &= finite.all(axis=1)
    return np.where(alive[:, None], values, fallback)
