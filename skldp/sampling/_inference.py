"""Inference of the posterior of a model, by Markov chains or by the Gaussian approximation at the mode."""

from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from skldp.exceptions import InvalidParameterError
from skldp.sampling._chains import Chains, first_state
from skldp.sampling._density import GuardedModel, quiet
from skldp.sampling._diagnostics import diagnose, tail_ess, unknown
from skldp.sampling._importance import LARGEST_PARETO_K, pareto_k
from skldp.sampling._map import Mode, find_mode
from skldp.sampling._posterior import Posterior
from skldp.sampling._routes import EnsembleRoute, HamiltonianRoute
from skldp.sampling._warm_start import WarmStart

_KEPT_DRAWS = 4000
_KEPT_PATH = 2000
_PROPOSALS = 2000
_WARM_DIVISOR = 4  # a warm start divides the warm-up by this
_SETTLING_DIVISOR = 5  # if warm-up uses an approximation, its last fifth uses the exact density


class MCMC(BaseEstimator):
    r"""Inference by Markov chains that emcee advances in parallel.

    Parameters
    ----------
    n_walkers : "auto" or int, default="auto"
        Number of chains. "auto" is 40 for models with a gradient, 24 if they have more than 100 parameters, and 16 if
        the density costs more than its surrogate gradient; without a gradient, 4 p + 4 for p parameters, at least 16.
        More walkers make better use of each batched call, but an R-hat of 1.01 needs about 100 effective draws per
        walker.
    n_warmup : "auto" or int, default="auto"
        Steps per walker that adapt the sampler to the posterior and are then discarded. "auto" is 100, 120 for the
        linear and 200 for the logistic regression.
    n_draws : int, default=3000
        Largest number of steps per walker after warm-up. Sampling stops earlier, as soon as every split R-hat is at
        most 1.01 and every bulk effective sample size at least 1,000.

    See Also
    --------
    LaplaceApproximation : Milliseconds instead of seconds, for exploratory use.

    Notes
    -----
    It has ``get_params`` and ``set_params``, so a grid search can vary ``inference__n_draws``.

    The walkers start around the mode. Split R-hat of C walkers with m effective draws in each half is about
    :math:`\sqrt{1 + 1/m}`, so a value of 1.01 needs m = 50, or 100 C effective draws in total.

    References
    ----------
    A. Vehtari, A. Gelman, D. Simpson, B. Carpenter, P.-C. Bürkner (2021). Rank-normalization, folding, and
    localization: an improved R-hat for assessing convergence of MCMC. Bayesian Analysis 16.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import MCMC, LDPGaussian
    >>> model = LDPGaussian(bounds=(0, 10), inference=MCMC(n_walkers=12), random_state=0).fit(np.full((1000, 1), 3.0))
    >>> model.posterior_.draws["mean"].shape[0]
    12
    """

    def __init__(self, *, n_walkers: int | str = "auto", n_warmup: int | str = "auto", n_draws: int = 3000) -> None:
        self.n_walkers = n_walkers
        self.n_warmup = n_warmup
        self.n_draws = n_draws

    def _infer(self, model, seed, progress, start):
        """Sample a model: mode, warm-up, then blocks of steps until the stop rule holds."""
        n_warmup = self._warm_up_steps(model)
        target = GuardedModel(model)
        approximation = target.approximation()
        seeds = np.random.SeedSequence(seed).spawn(2)
        rng = np.random.default_rng(seeds[0])
        start = None if start is None else start.in_coordinates_of(model)
        warm = start is not None and start.covariance is not None
        if warm:
            mode, n_warmup = _mode_of_warm_start(start, approximation), n_warmup // _WARM_DIVISOR
        else:
            mode = find_mode(approximation, None if start is None else start.mode)
        route = HamiltonianRoute() if target.has_trajectory_gradient else EnsembleRoute()
        n_walkers = self._number_of_walkers(route, target, warm)
        state = _first_state(approximation, mode, start if warm else None, route, n_walkers, rng, seeds[1])
        with _progress_bar(progress, n_warmup + self.n_draws) as bar:
            chains = Chains(approximation.log_density, route.moves(target, mode), state, bar)
            settling = 0 if approximation is target else n_warmup // _SETTLING_DIVISOR
            covariance = route.warm_up(chains, n_warmup - settling, target.constrain, warm=warm)
            if settling:
                # The step size was tuned on the approximation, whose gradient the trajectories use. Tuning on the
                # exact density would shrink it without end, because smaller steps do not reduce the difference.
                chains.change_density(target.log_density)
                chains.run(settling)
            draws, diagnostics, path = _collect(chains, target, route.first_block, self.n_draws)
        diagnostics.warn(self.n_draws)
        n_steps = next(iter(draws.values())).shape[1]
        end = WarmStart(mode.theta, covariance, chains.positions, _thinned_path(path), model.coordinates)
        return Posterior(_thinned(draws), diagnostics.rhat, diagnostics.ess, tail_ess(draws),
                         acceptance=chains.acceptance, n_steps=n_steps, warm_starts=(end,))

    def _warm_up_steps(self, model):
        """Check the parameters, and return the number of warm-up steps."""
        if not isinstance(self.n_draws, Integral) or self.n_draws < 4:
            raise InvalidParameterError(f"n_draws must be an integer of at least 4, got {self.n_draws!r}.")
        if isinstance(self.n_warmup, str) and self.n_warmup == "auto":
            return model.n_warmup
        if not isinstance(self.n_warmup, Integral) or self.n_warmup < 0:
            raise InvalidParameterError(f'n_warmup must be "auto" or an integer of at least 0, got {self.n_warmup!r}.')
        return self.n_warmup

    def _number_of_walkers(self, route, model, warm):
        if isinstance(self.n_walkers, str) and self.n_walkers == "auto":
            return route.default_walkers(model, warm)
        fewest = route.fewest_walkers(model.n_params)
        if not isinstance(self.n_walkers, Integral) or self.n_walkers < fewest or self.n_walkers % route.n_ensembles:
            kind = "an even integer" if route.n_ensembles == 2 else "an integer"
            raise InvalidParameterError(
                f'n_walkers must be "auto" or {kind} of at least {fewest} for this model of {model.n_params} '
                f"parameter(s), got {self.n_walkers!r}.")
        return self.n_walkers


class LaplaceApproximation(BaseEstimator):
    r"""Inference by the Gaussian approximation at the mode, in milliseconds, for grid search and exploratory use.

    See Also
    --------
    MCMC : Markov chains, whose error converges to zero as they get longer.

    Notes
    -----
    Draws come from the normal distribution with the mode of the unconstrained parameters as its mean and the inverse
    of the negative Hessian there as its covariance. Their importance weights, ratios of the posterior density to that
    of the normal distribution, tell how good it is: ``posterior_.pareto_k`` is the shape of the tail of the weights. Up
    to 0.7 the draws are resampled by their weights, which makes means and standard deviations right. Above 0.7 they are
    left as they are, and the approximation is rough: the standard deviations of regression coefficients were between a
    third and all of those of the chains. ``rhat`` and ``ess`` are NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LaplaceApproximation, LDPGaussian
    >>> model = LDPGaussian(bounds=(0, 10), inference=LaplaceApproximation(), random_state=0)
    >>> bool(abs(model.fit(np.full((1000, 1), 3.0)).mean_ - 3.0) < 1.0)
    True
    """

    def _infer(self, model, seed, progress, start):
        """Find the mode and draw from the Gaussian approximation there; ``progress`` is ignored."""
        guarded = GuardedModel(model)
        rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[0])
        start = None if start is None else start.in_coordinates_of(model)
        target = guarded.approximation()
        mode = find_mode(target, None if start is None else start.mode)
        residuals = rng.standard_normal((_PROPOSALS, len(mode.theta)))
        theta = mode.theta + residuals @ np.linalg.cholesky(mode.covariance).T
        with quiet():
            log_weights = target.log_density(theta) + 0.5 * np.vecdot(residuals, residuals)
            k = pareto_k(log_weights)
            if k <= LARGEST_PARETO_K:
                weights = np.exp(log_weights - log_weights.max())
                theta = theta[rng.choice(len(theta), len(theta), p=weights / weights.sum())]
            draws = guarded.constrain(theta.reshape(4, -1, guarded.n_params))
        end = WarmStart(mode.theta, None, theta[:64], theta[:_KEPT_PATH], model.coordinates)
        return Posterior(draws, unknown(draws), unknown(draws), unknown(draws), pareto_k=k, warm_starts=(end,))


_INFERENCE: dict[str, Any] = {"mcmc": MCMC, "laplace": LaplaceApproximation}


def check_inference(inference):
    """Return the inference object for a name, or the object itself."""
    if isinstance(inference, (MCMC, LaplaceApproximation)):
        return inference
    if not isinstance(inference, str) or inference not in _INFERENCE:
        raise InvalidParameterError('inference must be "mcmc", "laplace", or an object MCMC(...) or '
                                    f"LaplaceApproximation(), got {inference!r}.")
    return _INFERENCE[inference]()


def sample(model, *, inference="mcmc", seed=None, progress=False, start=None):
    r"""Draw from the posterior of a model.

    Parameters
    ----------
    model : Model
        Bound to its data. Hamiltonian trajectories are used if it has a gradient or a surrogate, else ensemble moves.
    inference : "mcmc", "laplace", MCMC or LaplaceApproximation, default="mcmc"
        Markov chains, or the Gaussian approximation at the mode.
    seed : int or None, default=None
        Fixes every draw; fresh entropy from the system by default.
    progress : bool, default=False
        Show one bar with steps, acceptance and the worst R-hat so far.
    start : Posterior, WarmStart or None, default=None
        Posterior of a similar model, or one of its ``warm_starts``. Chains start at the last positions of that run,
        with its metric, and with a quarter of the warm-up; "auto" chooses fewer of them.

    Returns
    -------
    Posterior

    Warns
    -----
    sklearn.exceptions.ConvergenceWarning
        If after ``n_draws`` steps an R-hat is above 1.05 or an effective sample size below 400.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import Model
    >>> from skldp.sampling import sample
    >>> class LogNormal(Model):
    ...     n_params = 1
    ...     def initial(self):
    ...         return np.zeros(1)
    ...     def log_density(self, theta):
    ...         return -0.5 * theta[:, 0] ** 2
    ...     def constrain(self, theta):
    ...         return {"scale": np.exp(theta[:, 0])}
    >>> posterior = sample(LogNormal(), seed=0)
    >>> bool(abs(np.median(posterior.draws["scale"]) - 1) < 0.1)
    True
    """
    if isinstance(start, Posterior):
        start, = start.warm_starts
    return check_inference(inference)._infer(model, seed, progress, start)


def _progress_bar(shown, total):
    """Return one bar on standard error for a whole fit, which draws nothing unless it is shown."""
    from tqdm import tqdm  # late, so that importing an estimator stays fast

    return tqdm(total=total, desc="sampling", unit="step", dynamic_ncols=True, disable=not shown)


def _mode_of_warm_start(start, model):
    """Return the mode and covariance of an earlier run, which replace a search for the mode."""
    with quiet():
        return Mode(start.mode, float(model.log_density(start.mode[None])[0]), start.covariance)


def _first_state(model, mode, start, route, n_walkers, rng, seed):
    """Return walkers around the mode, or near the last positions of an earlier run."""
    if start is None:
        offsets = route.initial_scale * _gaussian(mode.covariance, n_walkers, rng)
    else:
        rows = rng.choice(len(start.positions), n_walkers, replace=n_walkers > len(start.positions))
        offsets = start.positions[rows] - start.mode + 0.05 * _gaussian(mode.covariance, n_walkers, rng)
    positions, values = _with_finite_density(model, mode.theta, offsets)
    return first_state(positions, values, seed)


def _with_finite_density(model, center, offsets):
    """Return starting positions and log-densities, with walkers of zero density moved towards the mode."""
    with quiet():
        for _ in range(60):
            values = model.log_density(center + offsets)
            impossible = np.isneginf(values)
            if not impossible.any():
                break
            offsets = np.where(impossible[:, None], 0.5 * offsets, offsets)
    return center + offsets, values


def _collect(chains, model, first_block, n_draws):
    """Sample in blocks until the stop rule holds or ``n_draws`` is reached.

    Returns the draws, their diagnostics and the path of the last block.
    """
    blocks: list[dict] = []
    n_done, size = 0, min(first_block, n_draws)
    while True:
        path = chains.run(size)
        with quiet():
            blocks.append(model.constrain(path))
        n_done += size
        draws = {name: np.concatenate([block[name] for block in blocks], axis=1) for name in blocks[0]}
        diagnostics = diagnose(draws)
        chains.note(rhat=f"{diagnostics.worst_rhat[1]:.3f}")
        if diagnostics.converged or n_done == n_draws:
            chains.bar.total = chains.bar.n  # full: there is nothing left to do
            chains.bar.refresh()
            return draws, diagnostics, path
        size = min(_next_block(n_done, diagnostics.shortfall), n_draws - n_done)


def _next_block(n_done, shortfall):
    """Return the number of steps to the predicted end, between a quarter and all of the steps taken so far."""
    return int(np.ceil(n_done * np.clip(1.1 * shortfall - 1, 0.25, 1.0)))


def _thinned(draws):
    n_chains, n_draws = next(iter(draws.values())).shape[:2]
    stride = -(-n_chains * n_draws // _KEPT_DRAWS)
    return {name: values[:, stride - 1::stride].copy() for name, values in draws.items()}


def _thinned_path(path):
    """Return about two thousand points of the last block, because the whole path would be large."""
    stride = -(-path.shape[0] * path.shape[1] // _KEPT_PATH)
    return path[:, stride - 1::stride].reshape(-1, path.shape[2])


def _gaussian(covariance, n_draws, rng):
    return rng.standard_normal((n_draws, len(covariance))) @ np.linalg.cholesky(covariance).T
