"""Convergence diagnostics: R-hat and effective sample sizes, the stop rule, and what a warning says."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from skldp.sampling._chain_statistics import convergence_statistics, smaller_tail_ess
from skldp.sampling._density import quiet
from skldp.sampling._elements import numbered_names

STOP_RHAT, STOP_ESS = 1.01, 1000
WARN_RHAT, WARN_ESS = 1.05, 400
MOST_SUPERCHAINS = 4


@dataclass(frozen=True)
class Diagnostics:
    """Nested R-hat, split R-hat and bulk effective sample size of every parameter.

    Parameters
    ----------
    rhat, split_rhat, ess : dict of str to ndarray
        By name, in the shape of the parameter; NaN for elements that are
        constant (such as the diagonal of a correlation matrix).
    """

    rhat: dict
    split_rhat: dict
    ess: dict

    @property
    def worst_rhat(self):
        """Name and value of the largest R-hat."""
        return _extreme(self.rhat, np.nanargmax)

    @property
    def worst_ess(self):
        """Name and value of the smallest bulk effective sample size."""
        return _extreme(self.ess, np.nanargmin)

    @property
    def converged(self):
        """Whether every R-hat and effective sample size meets the stop rule."""
        return not (self.worst_rhat[1] > STOP_RHAT or self.worst_ess[1] < STOP_ESS)

    @property
    def shortfall(self):
        r"""Factor by which the chains are too short for the stop rule.

        With n draws the effective sample size grows as n, and
        :math:`\hat R^2 - 1` falls as 1/n.
        """
        rhat, ess = self.worst_rhat[1], self.worst_ess[1]
        return max((rhat**2 - 1) / (STOP_RHAT**2 - 1), STOP_ESS / max(ess, 1.0))

    @property
    def problem(self):
        """What is wrong with the worst R-hat or effective sample size, or None if no warning is due."""
        name, rhat = self.worst_rhat
        if rhat > WARN_RHAT:
            return f"R-hat of {name} is {rhat:.3f}, above {WARN_RHAT}"
        name, ess = self.worst_ess
        return f"the effective sample size of {name} is {ess:.0f}, below {WARN_ESS}" if ess < WARN_ESS else None


def superchains(n_walkers):
    """Return the number of groups of walkers that nested R-hat compares, the largest divisor up to four.

    Four, each in two halves, reach an R-hat of 1.01 at about 1,000 effective draws in all, the number that is wanted.
    """
    return max(count for count in range(1, MOST_SUPERCHAINS + 1) if n_walkers % count == 0)


def diagnose(draws, n_superchains):
    """Return R-hat and bulk effective sample size of every parameter, for groups of chains that started together.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._diagnostics import diagnose
    >>> draws = np.random.default_rng(0).standard_normal((8, 500, 2))
    >>> found = diagnose({"mean": draws}, n_superchains=4)
    >>> found.rhat["mean"].round(2), found.converged
    (array([1., 1.]), True)
    """
    statistics = partial(convergence_statistics, n_superchains=n_superchains)
    found = {name: _by_column(statistics, values, (np.inf, np.inf, 0.0)) for name, values in draws.items()}
    return Diagnostics(*({name: values[which] for name, values in found.items()} for which in range(3)))


def tail_ess(draws):
    """Return the smaller of the effective sample sizes of the 5 % and 95 % quantiles, by parameter."""
    return {name: _by_column(smaller_tail_ess, values, (0.0,))[0] for name, values in draws.items()}


def unknown(draws):
    """Return NaN in the shape of each parameter, for draws that are not from a Markov chain."""
    return {name: np.full(values.shape[2:], np.nan) for name, values in draws.items()}


def _by_column(statistics, values, failed):
    """Return one array for each statistic of the columns, with `failed` if it cannot be computed."""
    columns = values.reshape(values.shape[:2] + (-1,))
    # A symmetric matrix has every element twice. Three draws of each chain are enough to detect duplicate columns.
    three = columns[:, [0, columns.shape[1] // 2, -1]].reshape(-1, columns.shape[2])
    _, first, inverse = np.unique(three, axis=1, return_index=True, return_inverse=True)
    distinct = columns[:, :, first]
    with quiet():
        results = np.atleast_2d(statistics(distinct))
    constant, has_nan = np.ptp(distinct, axis=(0, 1)) == 0, np.isnan(distinct).any(axis=(0, 1))
    results = np.where(np.isfinite(results) & ~has_nan, results, np.reshape(failed, (-1, 1)))
    results[:, constant] = np.nan
    return [result[inverse.ravel()].reshape(values.shape[2:]) for result in results]


def _extreme(by_name, pick):
    names = [element for name, values in by_name.items() for element in numbered_names(name, values.shape)]
    values = np.concatenate([np.ravel(values) for values in by_name.values()])
    if np.isnan(values).all():
        return names[0], np.nan
    where = pick(values)
    return names[where], float(values[where])
