"""Families from ``scipy.stats``, with default priors."""

import math
from numbers import Real

from skldp.exceptions import InvalidParameterError
from skldp.models.values._families import ScipyFamily, is_discrete
from skldp.models.values._priors import BetaPrior, GammaPrior, NormalPrior, Prior, ScipyPrior


def scipy_family(distribution, priors, bounds):
    """Return a family made from a distribution of ``scipy.stats``.

    Parameters
    ----------
    distribution : str or scipy.stats distribution
        Name or object, continuous or discrete.
    priors : dict or None
        For each parameter a frozen continuous distribution (its prior) or a number (a fixed value). Parameters that
        are missing get the default prior.
    bounds : tuple of float
        Public bounds, to which the default priors are scaled. They fix loc and scale of a distribution with shapes on
        an interval, such as beta: the bounds are its ends. They fix loc at 0 if the distribution begins at 0 and they
        do.

    Returns
    -------
    ScipyFamily

    Examples
    --------
    >>> scipy_family("gamma", {"scale": 1.0}, (0, 10)).priors
    {'a': GammaPrior(shape=2.0, rate=1.0)}
    """
    distribution = _find(distribution)
    chosen = {**_defaults(distribution, bounds), **_check_given(distribution, priors)}
    free = {name: value for name, value in chosen.items() if isinstance(value, Prior)}
    fixed = {name: value for name, value in chosen.items() if not isinstance(value, Prior)}
    if not free:
        raise InvalidParameterError("priors fixes every parameter: leave at least one to be learned.")
    return ScipyFamily(distribution, free, fixed)


def _find(distribution):
    from scipy import stats  # late: it takes as long to import as the rest

    known = stats.rv_continuous, stats.rv_discrete
    if isinstance(distribution, str):
        found = getattr(stats, distribution, None)
        if not isinstance(found, known):
            raise InvalidParameterError(f"distribution must be the name of a distribution of scipy.stats, such as "
                                        f"\"gamma\", got {distribution!r}.")
        return found
    if not isinstance(distribution, known):
        raise InvalidParameterError(f"distribution must be an unfrozen distribution of scipy.stats, got "
                                    f"{distribution!r}. Pass scipy.stats.gamma, for instance, and fix parameters with "
                                    "priors=.")
    return distribution


def parameter_names(distribution):
    """Return the names of the parameters: shapes, then loc, then scale if the distribution is continuous."""
    shapes = [name.strip() for name in distribution.shapes.split(",")] if distribution.shapes else []
    return shapes + (["loc"] if is_discrete(distribution) else ["loc", "scale"])


def _defaults(distribution, bounds):
    width = bounds[1] - bounds[0]
    shapes = {name: BetaPrior(1.0, 1.0) if name == "p" else GammaPrior(2.0, 1.0)
              for name in parameter_names(distribution) if name not in ("loc", "scale")}
    defaults = {**shapes, "loc": 0.0 if shapes else NormalPrior(bounds[0] + width / 2, width / 2)}
    if not is_discrete(distribution):
        defaults = {**defaults, "scale": GammaPrior(2.0, 20 / width), **_fixed_by(bounds, distribution, len(shapes))}
    return defaults


def _fixed_by(bounds, distribution, n_shapes):
    """Return loc and scale, or loc alone, if the bounds are the ends of the support of a continuous distribution.

    A support that depends on the shapes is not known. Without shapes, a scale would leave nothing to learn.
    """
    supports = {distribution.support(*[shape] * n_shapes) for shape in (0.25, 0.5)}
    low, high = supports.pop()
    if supports or math.isinf(low) or math.isnan(low):
        return {}
    if math.isinf(high):
        return {"loc": 0.0} if low == bounds[0] else {}
    scale = (bounds[1] - bounds[0]) / (high - low)
    return {"loc": float(bounds[0] - scale * low), "scale": float(scale)} if n_shapes else {}


def _check_given(distribution, priors):
    names = parameter_names(distribution)
    given = {} if priors is None else dict(priors)
    for name, value in given.items():
        if name not in names:
            raise InvalidParameterError(f"priors has {name!r}, but the parameters are {', '.join(names)}. "
                                        "Use these names.")
        if isinstance(value, Real) and not isinstance(value, bool):
            given[name] = float(value)
        elif not isinstance(value, Prior):
            given[name] = _frozen_prior(name, value)
    return given


def _frozen_prior(name, value):
    try:
        return ScipyPrior(value)
    except (AttributeError, TypeError):
        raise InvalidParameterError(
            f"priors[{name!r}] must be a frozen continuous distribution of scipy.stats or a number, got {value!r}."
        ) from None
