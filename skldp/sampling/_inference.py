"""Inference of the posterior of a model, by Markov chains or by the Gaussian approximation at the mode."""

import warnings
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from skldp.exceptions import InvalidParameterError
from skldp.sampling._chains import Chains, first_state
from skldp.sampling._density import GuardedModel, quiet
from skldp.sampling._diagnostics import diagnose, tail_ess, unknown
from skldp.sampling._independent import independent_posterior
from skldp.sampling._importance import LARGEST_PARETO_K, pareto_k
from skldp.sampling._map import Mode, find_mode, is_large
from skldp.sampling._metric import root_of, scaled
from skldp.sampling._posterior import Posterior
from skldp.sampling._routes import EnsembleRoute, HamiltonianRoute, warm_up
from skldp.sampling._warm_start import WarmStart

_KEPT_DRAWS = 4000
_KEPT_PATH = 2000
_PROPOSALS = 2000
_LONGEST_WARMUP = 300
_LOG_DENSITY = "log_density"  # its name among the draws, while sampling
_SETTLING = 20  # steps under the exact density, if warm-up uses an approximation


class MCMC(BaseEstimator):
    r"""Inference by Markov chains that emcee advances in parallel.

    Parameters
    ----------
    n_walkers : "auto" or int, default="auto"
        Number of chains. "auto" is 32, or 8 p + 8 for p > 3 parameters if the model has no gradient. Without a gradient
        the number must be a multiple of four.
    n_warmup : "auto" or int, default="auto"
        Largest number of steps per walker that are discarded; "auto" is 300. Warm-up ends earlier, as soon as its last
        window of steps shows that the starting positions are forgotten; 30 steps are usual.
    n_draws : int, default=3000
        Largest number of steps per walker after warm-up. Sampling stops earlier, as soon as every R-hat is at most 1.01
        and every bulk effective sample size at least 1,000. The R-hat of the log-density is included.

    See Also
    --------
    LaplaceApproximation : Milliseconds instead of seconds, for exploratory use.

    Notes
    -----
    It has ``get_params`` and ``set_params``, so a grid search can vary ``inference__n_draws``.

    Many short chains need fewer steps than few long ones. They form four superchains of walkers that start at the same
    position, and R-hat is nested: it compares the superchains. Starting positions are draws of the normal distribution
    that is nearest to the posterior.

    References
    ----------
    C. C. Margossian et al. (2025). Nested R-hat: assessing the convergence of Markov chain Monte Carlo when running
    many short chains. Bayesian Analysis 20.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import MCMC, LDPGaussian
    >>> model = LDPGaussian(bounds=(0, 10), inference=MCMC(n_walkers=24), random_state=0).fit(np.full((1000, 1), 3.0))
    >>> model.posterior_.draws["mean"].shape[0]
    24
    """

    def __init__(self, *, n_walkers: int | str = "auto", n_warmup: int | str = "auto", n_draws: int = 3000) -> None:
        self.n_walkers = n_walkers
        self.n_warmup = n_warmup
        self.n_draws = n_draws

    def _infer(self, model, seed, progress, start):
        """Sample a model: mode, warm-up, then blocks of steps until the stop rule holds."""
        n_warmup = self._warm_up_steps()
        target = GuardedModel(model)
        approximation = target.approximation()
        seeds = np.random.SeedSequence(seed).spawn(2)
        rng = np.random.default_rng(seeds[0])
        start = None if start is None else start.in_coordinates_of(model)
        route = HamiltonianRoute(target) if target.has_trajectory_gradient else EnsembleRoute(target)
        n_walkers = self._number_of_walkers(route)
        if start is None or start.covariance is None:
            mode = find_mode(approximation, None if start is None else start.mode)
        else:
            mode = Mode(start.mode, np.nan, start.covariance)
        normal = route.normal(mode, rng)
        positions = _starting_positions(approximation, normal, route.starts(n_walkers), rng)
        state = first_state(approximation.log_density, np.repeat(positions, n_walkers // len(positions), axis=0),
                            seeds[1])
        with _progress_bar(progress, n_warmup + self.n_draws) as bar:
            chains = Chains(approximation.log_density, route.moves(normal), state, bar)
            path = warm_up(chains, route, n_warmup)
            centre, covariance = route.finish(chains)
            if approximation is not target:
                # The step size was tuned on the approximation, whose gradient the trajectories use. Tuning on the
                # exact density would shrink it without end, because smaller steps do not reduce the difference.
                chains.change_density(target.log_density)
                path = chains.run(min(n_warmup, _SETTLING))[0] if n_warmup else None
            if path is not None:
                route.lengthen(chains, path)
            draws, diagnostics, path = _collect(chains, route, self.n_draws)
        n_steps = next(iter(draws.values())).shape[1]
        end = WarmStart(centre, covariance, _thinned_path(path), model.coordinates)
        rhat, split_rhat, ess = _reported(draws, diagnostics, route.superchains(n_walkers))
        return Posterior(_thinned(draws), rhat, ess, tail_ess(draws), split_rhat,
                         acceptance=chains.acceptance, n_steps=n_steps, problem=diagnostics.problem, warm_starts=(end,))

    def _warm_up_steps(self):
        """Check the parameters, and return the largest number of warm-up steps."""
        if not isinstance(self.n_draws, Integral) or self.n_draws < 4:
            raise InvalidParameterError(f"n_draws must be an integer of at least 4, got {self.n_draws!r}.")
        if isinstance(self.n_warmup, str) and self.n_warmup == "auto":
            return _LONGEST_WARMUP
        if not isinstance(self.n_warmup, Integral) or self.n_warmup < 0:
            raise InvalidParameterError(f'n_warmup must be "auto" or an integer of at least 0, got {self.n_warmup!r}.')
        return self.n_warmup

    def _number_of_walkers(self, route):
        if isinstance(self.n_walkers, str) and self.n_walkers == "auto":
            return route.default_walkers()
        fewest = route.fewest_walkers()
        if not isinstance(self.n_walkers, Integral) or self.n_walkers < fewest or self.n_walkers % route.divisor:
            kind = "an integer" if route.divisor == 1 else f"a multiple of {route.divisor}"
            raise InvalidParameterError(
                f'n_walkers must be "auto" or {kind} of at least {fewest} for this model of {route.model.n_params} '
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

    *Many parameters.* With more than 1,000, those of about 43 features, the Hessian would take minutes and describe the
    posterior badly. The draws are then those of six short chains, 144 in all after 16 steps of warm-up, from the normal
    distribution with the mode and the curvature of each parameter. They are not checked for convergence. With 20
    features, forced to this route, the median standard deviation of a coefficient was 0.72 to 1.11 of that of long
    chains in 60 fits, and 0.31 to 0.90 by the Hessian (``benchmarks/bench_scale.py``).

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
        if is_large(target):
            return _unchecked(_SHORT._infer(model, seed, progress, start))
        mode = find_mode(target, None if start is None else start.mode)
        residuals = rng.standard_normal((_PROPOSALS, len(mode.theta)))
        theta = mode.theta + scaled(residuals, root_of(mode.covariance))
        with quiet():
            log_weights = target.log_density(theta) + 0.5 * np.vecdot(residuals, residuals)
            k = pareto_k(log_weights)
            if k <= LARGEST_PARETO_K:
                weights = np.exp(log_weights - log_weights.max())
                theta = theta[rng.choice(len(theta), len(theta), p=weights / weights.sum())]
            draws = guarded.constrain(theta.reshape(4, -1, guarded.n_params))
        end = WarmStart(mode.theta, None, theta[:_KEPT_PATH], model.coordinates)
        return Posterior(draws, unknown(draws), unknown(draws), unknown(draws), pareto_k=k, warm_starts=(end,))


_SHORT = MCMC(n_walkers=6, n_warmup=16, n_draws=24)


def _unchecked(posterior):
    """Return the draws of chains that are too short for diagnostics, as a rough approximation."""
    nothing = unknown(posterior.draws)
    return replace(posterior, rhat=nothing, split_rhat=nothing, ess=nothing, ess_tail=nothing, acceptance=np.nan,
                   n_steps=0, problem=None)


_INFERENCE: dict[str, Any] = {"mcmc": MCMC, "laplace": LaplaceApproximation}


def check_inference(inference):
    """Return the inference object for a name, or the object itself."""
    if isinstance(inference, (MCMC, LaplaceApproximation)):
        return inference
    if not isinstance(inference, str) or inference not in _INFERENCE:
        raise InvalidParameterError('inference must be "mcmc", "laplace", or an object MCMC(...) or '
                                    f"LaplaceApproximation(), got {inference!r}.")
    return _INFERENCE[inference]()


def infer(inference, model, seed, progress, start):
    """Return the posterior of a model; one whose parameters are approximated independently needs no chains."""
    if model.independent is not None:
        return independent_posterior(model, seed)
    return inference._infer(model, seed, progress, start)


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
        Posterior of a similar model, or one of its ``warm_starts``. The normal approximation of that run replaces the
        search for the mode.

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
    posterior = infer(check_inference(inference), model, seed, progress, start)
    warn_if_not_converged(posterior)
    return posterior


def warn_if_not_converged(posterior):
    """Warn the caller of the public function that calls this one."""
    if posterior.problem is not None:
        warnings.warn(f"Sampling has not converged: {posterior.problem}. Raise n_draws (now {posterior.n_steps}) or "
                      "n_warmup; if that does not help, give the model more reports or a tighter prior.",
                      ConvergenceWarning, stacklevel=3)


def _progress_bar(shown, total):
    """Return one bar for a whole fit, a widget in notebooks and text elsewhere; it draws nothing unless it is shown."""
    # Imported late, so that importing an estimator stays fast. tqdm.auto warns in a notebook without ipywidgets, which
    # only those who asked for a bar should see.
    if shown:
        from tqdm.auto import tqdm
    else:
        from tqdm import tqdm
    return tqdm(total=total, desc="sampling", unit="step", dynamic_ncols=True, disable=not shown)


def _starting_positions(model, normal, n_starts, rng):
    """Return draws of the normal approximation, moved towards its centre where the density is too low."""
    offsets = scaled(rng.standard_normal((n_starts, len(normal.theta))), root_of(normal.covariance))
    # Under a normal distribution of p parameters the log-density falls by p/2 on average, with a standard deviation of
    # sqrt(p/2). Where it falls by far more, the approximation is too wide.
    half = len(normal.theta) / 2
    with quiet():
        least = model.log_density(normal.theta[None])[0] - half - 3 * np.sqrt(half)
        for _ in range(60):
            too_low = model.log_density(normal.theta + offsets) < least
            if not too_low.any():
                break
            offsets = np.where(too_low[:, None], 0.5 * offsets, offsets)
    return normal.theta + offsets


def _collect(chains, route, n_draws):
    """Sample in blocks until the stop rule holds or ``n_draws`` is reached.

    The rule includes the R-hat of the log-density: if it mixes slowly, walkers may not have been in the tails yet,
    although every parameter looks stationary. Returns the draws, the diagnostics of the rule and the path of the last
    block.
    """
    blocks: list[dict] = []
    n_done, size = 0, min(route.first_block, n_draws)
    n_superchains = route.superchains(len(chains.positions))
    while True:
        path, values = chains.run(size)
        with quiet():
            blocks.append({**route.model.constrain(path), _LOG_DENSITY: values})
        n_done += size
        draws = {name: np.concatenate([block[name] for block in blocks], axis=1) for name in blocks[0]}
        diagnostics = diagnose(route.model.monitored(draws), n_superchains)
        del diagnostics.ess[_LOG_DENSITY]  # its R-hat is a check, but nobody asks for its mean
        size = 0 if diagnostics.converged else min(_next_block(n_done, diagnostics.shortfall), n_draws - n_done)
        chains.show(diagnostics, size)
        if not size:
            return _without_log_density(draws), diagnostics, path


def _reported(draws, diagnostics, n_superchains):
    """Return R-hat, split R-hat and effective sample size of all draws, also of those that the rule does not need."""
    if not draws.keys() <= diagnostics.rhat.keys():
        diagnostics = diagnose(draws, n_superchains)
    return map(_without_log_density, (diagnostics.rhat, diagnostics.split_rhat, diagnostics.ess))


def _without_log_density(by_name):
    return {name: values for name, values in by_name.items() if name != _LOG_DENSITY}


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
