"""From a model to its posterior."""

from dataclasses import dataclass
from numbers import Integral

import numpy as np

from skldp.sampling._chains import Chains, first_state
from skldp.sampling._density import GuardedModel, quiet
from skldp.sampling._diagnostics import diagnose, tail_ess, unknown
from skldp.sampling._map import Mode, find_mode
from skldp.sampling._posterior import Posterior
from skldp.sampling._progress import Progress
from skldp.sampling._routes import EnsembleRoute, HamiltonianRoute

_KEPT_DRAWS = 4000
_KEPT_THETA = 2000
_WARM_SHARE = 4


@dataclass(frozen=True)
class _Memory:
    """What a later run may start from: mode, last positions and some draws, in theta.

    The covariance is one where chains walked; None where none did.
    """

    mode: np.ndarray
    covariance: np.ndarray | None
    positions: np.ndarray
    draws: np.ndarray


def sample(model, *, inference="mcmc", n_walkers="auto", n_warmup=100, n_draws=3000, seed=None, progress=False,
           start=None):
    r"""Draw from the posterior of a model.

    Parameters
    ----------
    model : Model
        Bound to its data: `n_params`, `initial()`, `log_density(theta)` and
        `constrain(theta)`; with `log_density_and_gradient(theta)` or
        `surrogate_gradient(theta)` it is sampled by Hamiltonian trajectories,
        else by ensemble moves. Where it has an `approximation`, a model with
        the same parameters, the mode is that one's. Where it has a `sampled`
        model, the same posterior in other coordinates, of which there may be
        more, with `to_theta` and `from_theta`, chains walk in those.
    inference : {"mcmc", "laplace"}, default="mcmc"
        Markov chains, or the Gaussian approximation at the mode: milliseconds,
        for first looks.
    n_walkers : int or "auto", default="auto"
        Chains that advance together. "auto" takes 40 where there is a
        gradient, 24 where it is one of many parameters, 16 where the density
        is dearer than its surrogate gradient: more walkers make each step
        more useful, but R-hat 1.01 costs about 100 effective draws per walker.
    n_warmup : int, default=100
        Steps per walker that learn the shape of the posterior and are thrown
        away.
    n_draws : int, default=3000
        Most steps per walker that are kept; sampling stops earlier, as soon as
        every split R-hat is at most 1.01 and every bulk effective sample size
        at least 1,000.
    seed : int or None, default=None
        Fixes every draw; fresh entropy from the system by default.
    progress : bool, default=False
        Show one bar with steps, acceptance and the worst R-hat so far.
    start : Posterior, default=None
        Posterior of a similar model, or one of its `memories`. Chains start
        where those stopped, with the metric that they had learned, and take a
        quarter of the warm-up; "auto" takes fewer of them.

    Returns
    -------
    posterior : Posterior

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        When the budget is spent and an R-hat is above 1.05 or an effective
        sample size below 400.

    Notes
    -----
    The walkers start around the mode and all randomness derives from `seed`,
    never from NumPy's global state. Split R-hat of C walkers whose halves
    hold m effective draws each is about :math:`\sqrt{1 + 1/m}`, so that 1.01
    takes m = 50, or 100 C effective draws in all.

    References
    ----------
    .. [1] A. Vehtari et al., "Rank-normalization, folding, and localization:
       an improved R-hat", Bayesian Analysis 16, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling import sample
    >>> class Bell:
    ...     n_params = 1
    ...     def initial(self):
    ...         return np.zeros(1)
    ...     def log_density(self, theta):
    ...         return -0.5 * theta[:, 0] ** 2
    ...     def constrain(self, theta):
    ...         return {"scale": np.exp(theta[:, 0])}
    >>> posterior = sample(Bell(), seed=0)
    >>> bool(abs(np.median(posterior.draws["scale"]) - 1) < 0.1)
    True
    """
    _check(inference, n_warmup, n_draws)
    # Where a model offers its posterior in coordinates that suit trajectories, chains walk there.
    walked = getattr(model, "sampled", model) if inference == "mcmc" else model
    guarded = GuardedModel(walked)
    seeds = np.random.SeedSequence(seed).spawn(2)
    rng = np.random.default_rng(seeds[0])
    memory = _memory_of(start, guarded, int(model.n_params))
    searched = GuardedModel(walked.approximation) if hasattr(walked, "approximation") else guarded
    if memory is None or memory.covariance is None or inference == "laplace":
        mode, memory = find_mode(searched, None if memory is None else memory.mode), None
    else:
        mode, n_warmup = _remembered_mode(memory, searched), n_warmup // _WARM_SHARE
    if inference == "laplace":
        return _laplace(guarded, mode, rng)
    route = HamiltonianRoute() if guarded.has_force else EnsembleRoute()
    n_walkers = _number_of_walkers(route, n_walkers, guarded, warm=memory is not None)
    state = _first_state(searched, mode, memory, route, n_walkers, rng, seeds[1])
    with Progress(progress, n_warmup + n_draws) as bar:
        chains = Chains(searched.log_density, route.moves(guarded, mode), state, bar)
        settling = _settling_steps(n_warmup) if searched is not guarded else 0
        covariance = route.warm_up(chains, n_warmup - settling, guarded.constrain, warm=memory is not None)
        if settling:
            # The step size was tuned on the approximation, whose gradient drives the trajectories. Tuned on the
            # density it would shrink without end, because smaller steps do not bring the two together.
            chains.move_to(guarded.log_density)
            chains.run(settling)
        draws, diagnostics, path = _collect(chains, guarded, route.first_block, n_draws)
    diagnostics.warn(n_draws)
    n_steps = next(iter(draws.values())).shape[1]
    return Posterior(_thinned(draws), diagnostics.rhat, diagnostics.ess, tail_ess(draws), chains.acceptance, n_steps,
                     (_Memory(guarded.to_theta(mode.theta[None])[0], covariance, guarded.to_theta(chains.positions),
                              guarded.to_theta(_some(path))),))


def _check(inference, n_warmup, n_draws):
    if inference not in ("mcmc", "laplace"):
        raise ValueError(f'inference is "mcmc" or "laplace"; got {inference!r}.')
    for name, value, least in [("n_warmup", n_warmup, 0), ("n_draws", n_draws, 4)]:
        if not isinstance(value, Integral) or value < least:
            raise ValueError(f"{name} is an integer of at least {least}; got {value!r}.")


def _number_of_walkers(route, n_walkers, model, warm):
    if isinstance(n_walkers, str) and n_walkers == "auto":
        return route.default_walkers(model, warm)
    fewest = route.fewest_walkers(model.n_params)
    if not isinstance(n_walkers, Integral) or n_walkers < fewest or n_walkers % route.n_ensembles:
        kind = "an even integer" if route.n_ensembles == 2 else "an integer"
        raise ValueError(
            f'n_walkers is "auto" or {kind} of at least {fewest} for this model of {model.n_params} parameter(s); '
            f"got {n_walkers!r}.")
    return n_walkers


def _settling_steps(n_warmup):
    """Steps of the warm-up in which walkers of an approximation go over to the density itself."""
    return n_warmup // 5


def _memory_of(start, model, n_theta):
    """What is remembered of an earlier run, in the coordinates that chains walk in; None if it was of another model."""
    if start is None:
        return None
    memory, = getattr(start, "memories", (start,))
    if len(memory.mode) != n_theta:
        return None
    mode, positions = model.from_theta(memory.mode[None])[0], model.from_theta(memory.positions)
    covariance = memory.covariance
    if covariance is not None and len(covariance) != model.n_params:
        covariance = None  # chains walked in other coordinates, as those of another prior
    return _Memory(mode, covariance, positions, memory.draws)


def _remembered_mode(memory, model):
    """The place and shape of an earlier posterior stand in for the mode and the curvature there."""
    with quiet():
        return Mode(memory.mode, float(model.log_density(memory.mode[None])[0]), memory.covariance)


def _first_state(model, mode, memory, route, n_walkers, rng, seed):
    """Walkers around the mode, or where those of an earlier run stood."""
    if memory is None:
        offsets = route.spread * _gaussian(mode.covariance, n_walkers, rng)
    else:
        rows = rng.choice(len(memory.positions), n_walkers, replace=n_walkers > len(memory.positions))
        offsets = memory.positions[rows] - memory.mode + 0.05 * _gaussian(mode.covariance, n_walkers, rng)
    positions, values = _possible(model, mode.theta, offsets)
    return first_state(positions, values, seed)


def _possible(model, center, offsets):
    """Pull walkers with an impossible start toward the mode, which is possible."""
    with quiet():
        for _ in range(60):
            values = model.log_density(center + offsets)
            lost = np.isneginf(values)
            if not lost.any():
                break
            offsets = np.where(lost[:, None], 0.5 * offsets, offsets)
    return center + offsets, values


def _collect(chains, model, first_block, n_draws):
    """Sample in blocks until the stop rule holds or the budget is spent; the path is that of the last block."""
    blocks: list[dict] = []
    spent, size = 0, min(first_block, n_draws)
    while True:
        path = chains.run(size)
        with quiet():
            blocks.append(model.constrain(path))
        spent += size
        draws = {name: np.concatenate([block[name] for block in blocks], axis=1) for name in blocks[0]}
        diagnostics = diagnose(draws)
        chains.progress.check(diagnostics.worst_rhat[1])
        if diagnostics.converged or spent == n_draws:
            chains.progress.finish()
            return draws, diagnostics, path
        size = min(_next_block(spent, diagnostics.shortfall), n_draws - spent)


def _next_block(spent, shortfall):
    """Steps to the predicted end, within a quarter and once of what is there."""
    return int(np.ceil(spent * np.clip(1.1 * shortfall - 1, 0.25, 1.0)))


def _thinned(draws):
    n_chains, n_draws = next(iter(draws.values())).shape[:2]
    stride = -(-n_chains * n_draws // _KEPT_DRAWS)
    return {name: values[:, stride - 1::stride].copy() for name, values in draws.items()}


def _some(path):
    """Two thousand draws or so of theta, of the last block alone: the whole path would be large."""
    stride = -(-path.shape[0] * path.shape[1] // _KEPT_THETA)
    return path[:, stride - 1::stride].reshape(-1, path.shape[2])


def _laplace(model, mode, rng):
    theta = mode.theta + _gaussian(mode.covariance, _KEPT_DRAWS, rng)
    with quiet():
        draws = model.constrain(theta.reshape(4, -1, model.n_params))
    return Posterior(draws, unknown(draws), unknown(draws), unknown(draws),
                     memories=(_Memory(mode.theta, None, theta[:64], theta[:_KEPT_THETA]),))


def _gaussian(covariance, n_draws, rng):
    return rng.standard_normal((n_draws, len(covariance))) @ np.linalg.cholesky(covariance).T
