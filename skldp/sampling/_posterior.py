"""Draws from a posterior, with their diagnostics."""

from dataclasses import dataclass, field, replace

import numpy as np

from skldp.exceptions import InvalidParameterError
from skldp.sampling._diagnostics import diagnose, superchains, tail_ess, unknown
from skldp.sampling._elements import element_name, find, labels_of, short_names
from skldp.sampling._tables import SummaryTable
from skldp.sampling._warm_start import WarmStart


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
    labels : dict of str to tuple of tuples of str, default={}
        For some parameters, names along each axis, such as features or categories. Others have numbers.

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
    labels: dict = field(default_factory=dict)

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

    def interval(self, level=0.95, name=None):
        """Return central credible intervals.

        Parameters
        ----------
        level : float, default=0.95
            Posterior probability inside, strictly between 0 and 1.
        name : str or None, default=None
            A parameter, or an element as a summary names it, such as ``"coef[carat]"`` or ``"coef[0]"``. None is all
            parameters.

        Returns
        -------
        interval : dict of str to ndarray of shape (..., 2), or ndarray if there is a name
            Lower and upper ends along the last axis.
        """
        if isinstance(level, str):
            raise InvalidParameterError(f"level is a probability; got {level!r}. Write interval(name={level!r}).")
        if not 0 < level < 1:
            raise ValueError(f"level is a probability strictly between 0 and 1; got {level!r}.")
        ends = [(1 - level) / 2, (1 + level) / 2]
        if name is not None:
            return _ends(self._values(name), ends)
        return {name: _ends(values, ends) for name, values in self.draws.items()}

    def _values(self, name):
        """Return the draws of a parameter, or of an element by its name."""
        parameter, positions = find(self, name)
        return self.draws[parameter] if name == parameter else self.draws[parameter][(..., *positions[0])]

    def with_derived(self, draws):
        """Return the posterior with further quantities, which were computed from its draws.

        Parameters
        ----------
        draws : dict of str to ndarray of shape (chain, draw, ...)
            Quantities by name. Their R-hat and effective sample sizes are those of the stored draws.

        Returns
        -------
        posterior : Posterior
            The new quantities come first.
        """
        rhat = split_rhat = ess = ess_tail = unknown(draws)
        if self.n_steps:  # draws of chains
            n_chains = len(next(iter(draws.values())))
            found = diagnose(draws, superchains(n_chains))
            rhat, split_rhat, ess, ess_tail = found.rhat, found.split_rhat, found.ess, tail_ess(draws)
        return replace(self, draws={**draws, **self.draws}, rhat={**rhat, **self.rhat}, ess={**ess, **self.ess},
                       split_rhat={**split_rhat, **self.split_rhat}, ess_tail={**ess_tail, **self.ess_tail})

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

    def summary(self, level=0.95, names=None, full=False):
        """Return a table with one row per element of each parameter.

        Parameters
        ----------
        level : float, default=0.95
            Posterior probability inside the interval.
        names : str, list of str or None, default=None
            Parameters, or elements such as ``"coef[carat]"``, to show, in this order.
        full : bool, default=False
            Whether to show, last, also covariance matrices and parameters of more than 64 elements, if no names are
            given. They are left out otherwise, unless there are no others.

        Returns
        -------
        table : pandas.DataFrame or SummaryTable
            Columns mean, sd, lower and upper end of the interval, ess_bulk, ess_tail, rhat, and bits if the information
            gained is known. The numbers are exact; they are rounded where the table is printed, to two significant
            digits of the standard deviation. A SummaryTable if pandas is not installed.
        """
        shown = short_names(self.draws)
        others = [name for name in self.draws if name not in shown] if names is None else []
        names = [*shown, *(others if full else [])] if names is None else [names] if isinstance(names, str) else names
        elements = [(name, position) for name, positions in (find(self, name) for name in names)
                    for position in positions]
        rows = [element_name(name, labels_of(self, name)[position]) for name, position in elements]
        return _table(rows, self._columns(level, elements), "" if full else _left_out(self.draws, others))

    def _columns(self, level, elements):
        interval = self.interval(level)
        low, high = (f"{50 * (1 + side * level):.4g}%" for side in (-1, 1))
        by_label = {
            "mean": self.mean(),
            "sd": self.std(),
            low: {name: ends[..., 0] for name, ends in interval.items()},
            high: {name: ends[..., 1] for name, ends in interval.items()},
            "ess_bulk": self.ess,
            "ess_tail": self.ess_tail,
            "rhat": self.rhat,
        }
        if self.information:
            by_label["bits"] = {**unknown(self.draws), **self.information}
        return {label: np.array([by_name[name][position] for name, position in elements], dtype=float)
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


def _ends(values, probabilities):
    """Return quantiles of the draws along the last axis."""
    return np.moveaxis(np.quantile(values, probabilities, axis=(0, 1)), 0, -1)


def _table(rows, columns, left_out):
    """Return a table as a DataFrame, or as a SummaryTable if pandas is not installed."""
    try:
        from skldp.sampling._summary_frame import SummaryFrame
    except ImportError:
        return SummaryTable(rows, columns, left_out)
    table = SummaryFrame(columns, index=rows)
    table.left_out = left_out
    return table


def _left_out(draws, names):
    """Return a sentence about parameters that a summary leaves out, or nothing if there are none."""
    sizes = [f"{name} ({' x '.join(map(str, draws[name].shape[2:]))})" for name in names]
    return f"without {', '.join(sizes)}: summary(full=True) shows all" if sizes else ""


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
