"""Hamiltonian Monte Carlo as an emcee move."""

import numpy as np
from emcee.moves import Move
from emcee.state import State

from skldp.sampling._metric import inverse_of, pulled_back, root_of, scaled


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
    centre : ndarray of shape (n_params,)
        Estimate of the posterior mean.
    covariance : ndarray of shape (n_params, n_params) or (n_params,)
        Estimate of the posterior covariance, the inverse of the mass matrix;
        variances if parameters are nearly independent.
    step_size : float, default=1.0
        Largest step in units of posterior standard deviations.
    length : float, default=1.6
        Mean length of a trajectory in posterior standard deviations. For a
        Gaussian, successive draws are independent after a quarter turn, a
        length of pi / 2.
    most_steps : int, default=20
        Largest number of steps of a trajectory.
    jitter : (float, float), default=(0.7, 1.3)
        Each walker's trajectory has `length` times a uniform draw between the
        two, so that it cannot repeat a periodic orbit.
    target_acceptance : float, default=0.9
        Acceptance probability to which `tune` adapts the step size.

    Notes
    -----
    With :math:`\theta = c + L z`, c the centre and :math:`L L' = \Sigma` the
    covariance, the trajectory solves :math:`\dot z = p`,
    :math:`\dot p = -z + r(z)` from fresh :math:`p \sim N(0, I)`, where
    :math:`r(z) = z + L' g(\theta)` is what the gradient adds to that of the
    normal distribution N(c, :math:`\Sigma`). Each step of length h is

    .. math:: p \leftarrow p + \tfrac h2 r(z), \quad
              (z, p) \leftarrow (z \cos h + p \sin h,\; p \cos h - z \sin h), \quad
              p \leftarrow p + \tfrac h2 r(z).

    The rotation in the middle solves the normal part exactly [3]_, so that the
    error depends on r alone: for a nearly normal posterior one step is a whole
    trajectory, in any dimension, where leapfrog steps must be shorter the more
    parameters there are. The end is accepted with probability

    .. math:: \min\{1, \exp[\log p(\theta^*) - \log p(\theta)
              + (p'p - p^{*\prime} p^*) / 2]\}.

    The steps are reversible and preserve volume for *any* vector field g, so
    the chain is exact if g is a surrogate: the accept step evaluates the
    density. Trajectories with a non-finite number are rejected. emcee calls
    `tune` only in runs with `tune=True`; call `freeze` after the last of them,
    so that the transition kernel of the stored chain is constant.

    References
    ----------
    .. [1] R. M. Neal, "MCMC using Hamiltonian dynamics", in Handbook of
       Markov Chain Monte Carlo, 2011.
    .. [2] D. Foreman-Mackey et al., "emcee: the MCMC hammer", PASP 125, 2013.
    .. [3] B. Shahbaba, S. Lan, W. O. Johnson, R. M. Neal, "Split Hamiltonian
       Monte Carlo", Statistics and Computing 24, 2014.

    Examples
    --------
    >>> import emcee
    >>> import numpy as np
    >>> from skldp.sampling import HamiltonianMove
    >>> move = HamiltonianMove(lambda theta: -theta, np.zeros(3), np.eye(3))
    >>> sampler = emcee.EnsembleSampler(
    ...     8, 3, lambda theta: -0.5 * np.sum(theta**2, axis=1), moves=move, vectorize=True)
    >>> sampler.random_state = np.random.RandomState(0).get_state()
    >>> start = np.random.default_rng(0).standard_normal((8, 3))
    >>> state = sampler.run_mcmc(start, 200, skip_initial_state_check=True)
    >>> bool(0.8 < sampler.get_chain(flat=True).std() < 1.2)
    True
    """

    def __init__(self, gradient, centre, covariance, *, step_size=1.0, length=1.6, most_steps=20, jitter=(0.7, 1.3),
                 target_acceptance=0.9):
        self.gradient = gradient
        self.step_size = step_size
        self.length = length
        self.most_steps = most_steps
        self.jitter = jitter
        self.target_acceptance = target_acceptance
        self.set_normal(centre, covariance)

    def set_normal(self, centre, covariance):
        """Replace the normal approximation by a new estimate, and restart the tuning of the step size."""
        self.centre, self.covariance = np.array(centre, dtype=float), np.array(covariance, dtype=float)
        self._root = root_of(self.covariance)
        self._inverse_root = inverse_of(self._root)
        self._log_steps = []
        self._acceptance = self.target_acceptance
        self._last = np.empty((0, 0)), np.empty((0, 0))

    def tune(self, state, accepted):
        """Adapt the step size to the target acceptance (Robbins-Monro)."""
        error = self._acceptance - self.target_acceptance
        # Large early changes find the right magnitude; `freeze` averages over the later ones.
        gain = max(1.5 / (1 + len(self._log_steps)) ** 0.6, 0.1)
        # A step longer than the trajectory has no effect.
        self.step_size = min(self.step_size * float(np.exp(gain * error)), self.length)
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
        return gradient if np.array_equal(coords, start) else pulled_back(self.gradient(start), self._root)

    def _trajectory(self, start, momentum, gradient, random):
        """Take all steps of all walkers; a walker that becomes non-finite returns to its start."""
        n_steps, step = self._draw_steps(len(start), random)
        cos, sin = np.cos(step), np.sin(step)
        finite = np.ones(len(start), dtype=bool)
        theta, z = start, scaled(start - self.centre, self._inverse_root)
        gradient = _freeze_diverged(gradient, finite, 0.0)
        momentum = momentum + 0.5 * step * (z + gradient)
        for remaining in reversed(range(n_steps)):
            z, momentum = cos * z + sin * momentum, cos * momentum - sin * z
            theta = _freeze_diverged(self.centre + scaled(z, self._root), finite, start)
            gradient = _freeze_diverged(pulled_back(self.gradient(theta), self._root), finite, 0.0)
            momentum = momentum + (1.0 if remaining else 0.5) * step * (z + gradient)
        return _freeze_diverged(theta, finite, start), momentum, gradient, finite

    def _draw_steps(self, n_walkers, random):
        """Return the number of steps, the same for all walkers, and the length of each walker's steps."""
        length = min(self.length, self.most_steps * self.step_size)
        # Rounded up or down at random, so that the mean step is smooth in the step size that is tuned.
        n_steps = int(np.clip(length / self.step_size + random.random_sample(), 1, self.most_steps))
        return n_steps, length * random.uniform(*self.jitter, (n_walkers, 1)) / n_steps


def _freeze_diverged(values, finite, fallback):
    """Return values, with ``fallback`` for walkers that are or were non-finite; ``finite`` is updated in place."""
    entries = np.isfinite(values)
    if entries.all() and finite.all():
        return values
    finite &= entries.all(axis=1)
    return np.where(finite[:, None], values, fallback)
