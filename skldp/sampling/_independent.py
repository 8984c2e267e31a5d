"""Draws of a posterior whose parameters are taken as independent and standard normal."""

import numpy as np
from scipy.special import ndtri

from skldp.sampling._density import quiet
from skldp.sampling._diagnostics import unknown
from skldp.sampling._posterior import Posterior
from skldp.sampling._warm_start import WarmStart

_NUMBERS = 997, 499, 251, 127  # of draws: primes
_MOST_ENTRIES = 2**25  # of all draws together, except with the smallest number
_FINER = 16  # parts of the intervals of a Latin hypercube
_BLOCK = 2**17  # entries that are computed at once, so that temporary arrays stay in the cache


def independent_posterior(model, seed):
    r"""Draw from the approximate posterior of a model with independent parameters.

    Parameters
    ----------
    model : Model
        With ``independent``, which maps standard normal parameters to natural ones.
    seed : int or None
        Seed of the draws.

    Returns
    -------
    Posterior
        One chain of 997 draws, fewer for more than 33,000 parameters, and 127 for more than 133,000 or for expensive
        ones. ``rhat`` and ``ess`` are NaN.

    Notes
    -----
    The n draws are a Latin hypercube: every parameter has one draw in each of n intervals of equal probability. So
    quantiles of single parameters have an error of order 1/n instead of :math:`1/\sqrt n`, and few draws are enough for
    many parameters. Draw i of parameter k is in the interval :math:`(a_ki + b_k) \bmod n` with random
    :math:`a_k \ne 0` and :math:`b_k`, and n is prime: the intervals of two parameters are independent.
    """
    d = model.n_params
    n_draws = next((n for n in _NUMBERS if n * d <= _MOST_ENTRIES and not model.few_draws), _NUMBERS[-1])
    rng = np.random.default_rng(np.random.SeedSequence(seed).spawn(2)[0])
    step, first = rng.integers(1, n_draws, size=d, dtype=np.int32), rng.integers(n_draws, size=d, dtype=np.int32)
    scores = ndtri((np.arange(_FINER * n_draws) + 0.5) / (_FINER * n_draws))
    draws: dict[str, np.ndarray] = {}
    n_rows = max(1, _BLOCK // d)
    for start in range(0, n_draws, n_rows):
        number = np.arange(start, min(start + n_rows, n_draws), dtype=np.int32)
        place = (number[:, None] * step + first) % n_draws
        with quiet():
            block = model.independent(scores[place * _FINER + rng.integers(_FINER, size=place.shape, dtype=np.uint8)])
        for name, values in block.items():
            draws.setdefault(name, np.empty((1, n_draws, *values.shape[1:])))[0, number] = values
    end = WarmStart(np.zeros(d), None, np.empty((0, d)), model.coordinates)
    return Posterior(draws, unknown(draws), unknown(draws), unknown(draws), warm_starts=(end,))
