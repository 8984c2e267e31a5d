"""Draws from a posterior, with their diagnostics."""

from dataclasses import dataclass, field

import numpy as np

from skldp.sampling._diagnostics import element_names
from skldp.sampling._warm_start import WarmStart

_MOST_SHOWN = 64  # elements of a parameter in a summary


@dataclass(frozen=True, repr=False, eq=False)
class Posterior:
    """Draws from a posterior distribution, with their diagnostics.

    Returned by :func:`sample`, and immutable.

    Parameters
    ----------
    draws : dict of str to ndarray of shape (chain, draw, ...)
        Natural parameters by name, thinned to a few thousand draws in all.
    rhat : dict of str to ndarray
        Nested rank-normalised R-hat in the shape of the parameter, computed
        before thinning. NaN for constants and for Laplace approximations.
    ess : dict of str to ndarray
        Bulk effective sample size, likewise.
    ess_tail : dict of str to ndarray
        Effective sample size of the 5 % and 95 % quantiles, likewise.
    split_rhat : dict of str to ndarray, default={}
        Split rank-normalised R-hat, likewise. It is larger the shorter the
        chains are.
    acceptance : float, default=nan
        Fraction of proposals that were accepted.
    n_steps : int, default=0
        Steps per chain before thinning, without warm-up.
    problem : str or None, default=None
        What shows that the chains have not converged.
    pareto_k : float, default=nan
        Of a Laplace approximation: the shape of the tail of its importance weights. Above 0.7 it is rough.
    information : dict of str to ndarray, default={}
        For some parameters, log2 of the ratio of their prior to their posterior standard deviations, in bits.
    warm_starts : tuple of WarmStart, default=()
        Starts for a later run, one for each model that was sampled.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling import Posterior
    >>> draws = {"mean": np.random.default_rng(0).standard_normal((4, 250))}
    >>> nan = {"mean": np.array(np.nan)}
    >>> posterior = Posterior(draws, rhat=nan, ess=nan, ess_tail=nan)
    >>> posterior
    Posterior(mean; 4 chains of 250 draws)
    >>> posterior.interval(0.9)["mean"].shape
    (2,)
    >>> posterior.sample(10, np.random.default_rng(1))["mean"].shape
    (10,)
    """

    draws: dict
    rhat: dict
    ess: dict
    ess_tail: dict
    split_rhat: dict = field(default_factory=dict)
    acceptance: float = np.nan
    n_steps: int = 0
    problem: str | None = None
    pareto_k: float = np.nan
    information: dict = field(default_factory=dict)
    warm_starts: tuple[WarmStart, ...] = field(default=())

    def __post_init__(self):
        for by_name in (self.draws, self.rhat, self.ess, self.ess_tail, self.split_rhat):
            for values in by_name.values():
                values.setflags(write=False)

    def __repr__(self):
        n_chains, n_draws = next(iter(self.draws.values())).shape[:2]
        names = ", ".join(self.draws)
        return f"Posterior({names}; {n_chains} chains of {n_draws} draws)"

    def mean(self):
        """Return posterior means: dict of name to array in the parameter's shape."""
        return {name: values.mean(axis=(0, 1)) for name, values in self.draws.items()}

    def std(self):
        """Return posterior standard deviations: dict of name to array in the parameter's shape."""
        return {name: values.std(axis=(0, 1)) for name, values in self.draws.items()}

    def interval(self, level=0.95):
        """Return central credible intervals.

        Parameters
        ----------
        level : float, default=0.95
            Posterior probability inside, strictly between 0 and 1.

        Returns
        -------
        interval : dict of str to ndarray of shape (..., 2)
            Lower and upper ends along the last axis.
        """
        if not 0 < level < 1:
            raise ValueError(f"level is a probability strictly between 0 and 1; got {level!r}.")
        ends = [(1 - level) / 2, (1 + level) / 2]
        return {name: np.moveaxis(np.quantile(values, ends, axis=(0, 1)), 0, -1)
                for name, values in self.draws.items()}

    def sample(self, n_samples, rng):
        """Return randomly chosen draws of all parameters jointly.

        Parameters
        ----------
        n_samples : int
            Number of draws. They are chosen without replacement up to the
            number of stored draws, and with replacement above it.
        rng : numpy.random.Generator

        Returns
        -------
        samples : dict of str to ndarray of shape (n_samples, ...)
        """
        flat = {name: values.reshape((-1,) + values.shape[2:]) for name, values in self.draws.items()}
        n_stored = len(next(iter(flat.values())))
        rows = rng.choice(n_stored, size=n_samples, replace=n_samples > n_stored)
        return {name: values[rows] for name, values in flat.items()}

    def summary(self, level=0.95, names=None):
        """Return a table with one row per element of each parameter.

        Parameters
        ----------
        level : float, default=0.95
            Posterior probability inside the interval.
        names : list of str or None, default=None
            Parameters to show. By default all of up to 64 elements, or all if every one has more.

        Returns
        -------
        table : pandas.DataFrame or SummaryTable
            Columns mean, sd, lower and upper end of the interval, ess_bulk,
            ess_tail, rhat, and bits if the information gained is known. A
            SummaryTable if pandas is not installed.
        """
        names = self._shown() if names is None else list(names)
        unknown = [name for name in names if name not in self.draws]
        if unknown:
            raise ValueError(f"names contains {unknown[0]!r}, but the parameters are {', '.join(self.draws)}.")
        columns = self._columns(level, names)
        rows = [element for name in names for element in element_names(name, self.draws[name].shape[2:])]
        try:
            from pandas import DataFrame
        except ImportError:
            return SummaryTable(rows, columns)
        return DataFrame(columns, index=rows)

    def _shown(self):
        """Return the names of parameters that a table has room for; all names if it has room for none."""
        few = [name for name, values in self.draws.items() if values[0, 0].size <= _MOST_SHOWN]
        return few or list(self.draws)

    def _columns(self, level, names):
        interval = self.interval(level)
        low, high = (f"{50 * (1 + side * level):.4g}%" for side in (-1, 1))
        by_label = {
            "mean": self.mean(),
            "sd": self.std(),
            low: {name: ends[..., 0] for name, ends in interval.items()},
            high: {name: ends[..., 1] for name, ends in interval.items()},
            "ess_bulk": {name: _whole(values) for name, values in self.ess.items()},
            "ess_tail": {name: _whole(values) for name, values in self.ess_tail.items()},
            "rhat": {name: np.round(values, 4) for name, values in self.rhat.items()},
        }
        if self.information:
            nothing = {name: np.full(values.shape[2:], np.nan) for name, values in self.draws.items()}
            by_label["bits"] = {**nothing, **{name: np.round(bits, 2) for name, bits in self.information.items()}}
        return {label: np.concatenate([np.ravel(by_name[name]) for name in names])
                for label, by_name in by_label.items()}

    def to_arviz(self):
        """Return the draws as an ArviZ object, for its plots and comparisons.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The type that the installed version of ArviZ uses.
        """
        try:
            import arviz
        except ImportError as error:
            raise ImportError('to_arviz needs ArviZ; install it with: pip install "skldp[arviz]"') from error
        # ArviZ 1.0 replaced one keyword argument per group by a dict of groups.
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict({"posterior": self.draws})
        return arviz.from_dict(posterior=self.draws)


def _whole(values):
    """Return rounded values, as integers unless any of them is NaN."""
    return values.round().astype(np.int64) if np.isfinite(values).all() else values.round()


def stack(posteriors):
    """Return posteriors of independent models of the same shape, stacked along a new last axis.

    They are truncated to the smallest number of chains and of draws; a single posterior is returned unchanged.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._posterior import Posterior, stack
    >>> nan = {"mean": np.array(np.nan)}
    >>> parts = [Posterior({"mean": np.zeros((4, n))}, rhat=nan, ess=nan, ess_tail=nan) for n in (10, 12)]
    >>> stack(parts).draws["mean"].shape
    (4, 10, 2)
    """
    if len(posteriors) == 1:
        return posteriors[0]
    shapes = [next(iter(posterior.draws.values())).shape[:2] for posterior in posteriors]
    n_chains, n_draws = np.min(shapes, axis=0)

    def side_by_side(by_names):
        """Return one array for each name, with a last axis over the posteriors."""
        return {name: np.stack([by_name[name] for by_name in by_names], axis=-1) for name in by_names[0]}

    def common(draws):
        """Return draws, truncated to the smallest number of chains and of draws."""
        return {name: values[:n_chains, :n_draws] for name, values in draws.items()}

    return Posterior(
        side_by_side([common(posterior.draws) for posterior in posteriors]),
        rhat=side_by_side([posterior.rhat for posterior in posteriors]),
        ess=side_by_side([posterior.ess for posterior in posteriors]),
        ess_tail=side_by_side([posterior.ess_tail for posterior in posteriors]),
        split_rhat=side_by_side([posterior.split_rhat for posterior in posteriors]),
        acceptance=min(posterior.acceptance for posterior in posteriors),
        n_steps=max(posterior.n_steps for posterior in posteriors),
        problem=next((posterior.problem for posterior in posteriors if posterior.problem), None),
        pareto_k=max(posterior.pareto_k for posterior in posteriors),
        warm_starts=sum((posterior.warm_starts for posterior in posteriors), ()),
    )


class SummaryTable:
    """A table of numbers with aligned columns, for installations without pandas.

    Parameters
    ----------
    index : list of str
        Row names.
    columns : dict of str to ndarray of shape (n_rows,)
        Column name to values.

    Examples
    --------
    >>> from skldp.sampling._posterior import SummaryTable
    >>> SummaryTable(["mean"], {"sd": [0.5], "rhat": [1.001]})
             sd   rhat
    mean    0.5  1.001
    """

    def __init__(self, index, columns):
        self.index = index
        self.columns = columns

    def __getitem__(self, label):
        return self.columns[label]

    def __repr__(self):
        cells = [[label] + [f"{value:.5g}" for value in values] for label, values in self.columns.items()]
        widths = [max(map(len, column)) + 2 for column in cells]
        margin = max(map(len, self.index))
        lines = []
        for name, *row in zip(["", *self.index], *cells):
            lines.append(name.ljust(margin) + "".join(cell.rjust(width) for cell, width in zip(row, widths)))
        return "\n".join(lines)
