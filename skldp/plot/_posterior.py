"""Plot of the posterior of a parameter: densities for a few elements, a forest plot for many."""

from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import gaussian_kde
from sklearn.base import BaseEstimator

from skldp._validation._parameters import check_fraction
from skldp.exceptions import InvalidParameterError
from skldp.plot._support import axes_or_new, fitted, legend_above, quoted
from skldp.sampling._elements import element_name, find, labels_of, short_names

_KINDS = ("auto", "density", "histogram", "forest")
_MOST_DENSITIES = 3  # more than three overlapping densities are hard to distinguish
_GRID = 300


class PosteriorDisplay:
    """Marginal posterior of one or more elements of a parameter.

    Up to three elements are drawn as densities with shaded intervals. More are drawn as a forest plot: a point and an
    interval for each. The legend is placed above the axes; use ``figure_.suptitle`` for a title.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_elements)
        Posterior draws.
    name : str
        Name of the parameter.
    labels : list of str
        Names of the elements.
    level : float, default=0.9
        Posterior probability inside the intervals.
    truth : ndarray of shape (n_elements,) or None, default=None
        Values to compare with; NaN for none.
    prior : callable, frozen distribution, array-like or None, default=None
        Density, distribution or draws of the prior, to compare with.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of artists
        A density or histogram of each element, or all the points of a forest.
    intervals_ : list of artists
        The shaded interval of each element, or all the bars of a forest.
    truth_ : list of artists
        Lines or marks at the truth.
    prior_ : list of artists
        Densities or intervals of the prior.

    See Also
    --------
    PosteriorDisplay.from_estimator : Draw the posterior of a fitted estimator.
    TraceDisplay : The chains that the draws come from.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPGaussian, PosteriorDisplay
    >>> X = np.random.default_rng(0).normal(1.0, 1.0, size=(5000, 1))
    >>> model = LDPGaussian(epsilon=2.0, inference="laplace", random_state=0).fit(X)
    >>> display = PosteriorDisplay.from_estimator(model, "mean", truth=1.0)
    >>> display.ax_.get_xlabel()
    'mean'
    """

    def __init__(self, draws, *, name, labels, level=0.9, truth=None, prior=None):
        self.draws = draws
        self.name = name
        self.labels = labels
        self.level = level
        self.truth = truth
        self.prior = prior

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, name: str | None = None, *, index: Any = None,
                       truth: ArrayLike | None = None, prior: Any = None, level: float = 0.9, kind: str = "auto",
                       ax: Any = None, **kwargs: Any) -> Self:
        """Draw the posterior of a parameter of a fitted estimator.

        Parameters
        ----------
        estimator : estimator or Pipeline
            A fitted Bayesian estimator, or a pipeline that ends in one.
        name : str or None, default=None
            A parameter, or one element as a summary names it, such as ``"coef[age]"`` or ``"coef[0]"``. None is the
            first parameter of ``posterior_.summary()``: the coefficients, the frequencies, or the mean.
        index : int, str, tuple, list of these, or None, default=None
            Elements to draw, in this order: by position, or by name (of a feature or a category). All by default; for a
            symmetric matrix those on and above the diagonal.
        truth : float, array-like or None, default=None
            Values to compare with: in the shape of the parameter, or one for each element drawn.
        prior : callable, frozen distribution, array-like or None, default=None
            Prior to compare with: a density, a frozen distribution of ``scipy.stats``, or draws of shape (n,) or
            (n, n_elements). A forest plot shows the prior's interval, so it needs a distribution or draws.
        level : float, default=0.9
            Posterior probability inside the intervals.
        kind : {"auto", "density", "histogram", "forest"}, default="auto"
            "auto" is "density" for up to three elements, else "forest".
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        **kwargs
            Passed on to the lines, histograms or points.

        Returns
        -------
        PosteriorDisplay
        """
        posterior = fitted(estimator).posterior_
        name, positions = find(posterior, short_names(posterior.draws)[0] if name is None else name)
        draws, labels = posterior.draws[name], labels_of(posterior, name)
        if index is not None:
            positions = _positions(index, name, draws.shape[2:], labels)
        chosen = np.stack([draws[(..., *position)].ravel() for position in positions], axis=-1)
        shown = [name if labels[position] is None else labels[position] for position in positions]
        display = cls(chosen, name=name, labels=shown, level=level,
                      truth=_truth(truth, name, draws.shape[2:], positions), prior=prior)
        return display.plot(ax=ax, kind=kind, **kwargs)

    def plot(self, ax: Any = None, *, kind: str = "auto", **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        kind : {"auto", "density", "histogram", "forest"}, default="auto"
            "auto" is "density" for up to three elements, else "forest".
        **kwargs
            Passed on to the lines, histograms or points.

        Returns
        -------
        self
        """
        if kind not in _KINDS:
            raise InvalidParameterError(f"kind must be one of {quoted(_KINDS)}, got {kind!r}.")
        check_fraction(self.level, "level")
        n_elements = self.draws.shape[1]
        if kind == "auto":
            kind = "density" if n_elements <= _MOST_DENSITIES else "forest"
        figsize = (6.4, max(4.8, 0.22 * n_elements + 1)) if kind == "forest" else None
        self.ax_, self.figure_ = axes_or_new(ax, figsize)
        self.lines_: list = []
        self.intervals_: list = []
        self.truth_: list = []
        self.prior_: list = []
        if kind == "forest":
            self._plot_forest(**kwargs)
        else:
            self._plot_densities(kind, **kwargs)
        return self

    def _plot_densities(self, kind, **kwargs):
        ax, alone = self.ax_, len(self.labels) == 1
        shade = f"{100 * self.level:g} % interval"
        for i, (values, ends) in enumerate(zip(self.draws.T, self._intervals(self.draws))):
            style = {"color": f"C{i}", "label": None if alone else self.labels[i], **kwargs}
            draw = _draw_histogram if kind == "histogram" else _draw_density
            line, interval = draw(ax, _check_not_constant(values, self.labels[i]), ends, style)
            self.lines_.append(line)
            self.intervals_.append(interval)
            if i == 0:
                interval.set_label(shade)
            if self.truth is not None and np.isfinite(self.truth[i]):
                self.truth_.append(ax.axvline(self.truth[i], color="black" if alone else style["color"], linewidth=1.2,
                                              linestyle="--", label="truth" if not self.truth_ else None))
        if self.prior is not None:
            self._plot_prior_densities()
        ax.set(xlabel=_full_label(self.name, self.labels[0]) if alone else self.name, ylabel="posterior density",
               yticks=[])
        ax.set_ylim(bottom=0, auto=True)  # autoscale on: a second posterior on the same axes may be higher
        legend_above(ax, last=[*self.intervals_, *self.truth_, *self.prior_])

    def _plot_prior_densities(self):
        left, right = self.ax_.get_xlim()
        grid = np.linspace(left, right, _GRID)
        for i, density in enumerate(_prior_densities(self.prior, grid, len(self.labels))):
            line, = self.ax_.plot(grid, density, color="0.45", linewidth=1.2, linestyle=":",
                                  label="prior" if i == 0 else None)
            self.prior_.append(line)
        self.ax_.set_xlim(left, right, auto=True)

    def _plot_forest(self, **kwargs):
        ax = self.ax_
        places = np.arange(len(self.labels))
        ends = self._intervals(self.draws)
        if ends.min() < 0 < ends.max():
            ax.axvline(0, color="0.8", linewidth=0.8, zorder=0)
        if self.prior is not None:
            self.prior_.append(ax.hlines(places, *self._prior_intervals(), color="0.85", linewidth=5, zorder=0.5,
                                         label="prior"))
        style = {"color": "C0", "marker": "o", "markersize": 4, "linestyle": "none", "label": "mean", **kwargs}
        points, = ax.plot(self.draws.mean(axis=0), places, **style)
        self.lines_.append(points)
        self.intervals_.append(ax.hlines(places, *ends.T, color=points.get_color(), linewidth=1.5,
                                         label=f"{100 * self.level:g} % interval"))
        if self.truth is not None:
            self.truth_.append(ax.scatter(self.truth, places, marker="x", s=28, color="black", zorder=3,
                                          linewidths=1.2, label="truth"))
        ax.set_yticks(places, self.labels, fontsize="small" if len(places) > 10 else None)
        ax.set(xlabel=self.name, ylim=(len(places) - 0.5, -0.5))
        legend_above(ax, last=[*self.intervals_, *self.truth_, *self.prior_])

    def _intervals(self, draws):
        return np.quantile(draws, [(1 - self.level) / 2, (1 + self.level) / 2], axis=0).T

    def _prior_intervals(self):
        ends = np.array([(1 - self.level) / 2, (1 + self.level) / 2])
        if hasattr(self.prior, "ppf"):
            low, high = self.prior.ppf(ends)
        elif callable(self.prior):
            raise InvalidParameterError(
                "A forest plot shows the interval of the prior, which cannot be read from a density. "
                "Pass the prior as draws or as a frozen distribution of scipy.stats."
            )
        else:
            low, high = np.quantile(_prior_draws(self.prior, len(self.labels)), ends, axis=0)
        return np.broadcast_to(low, len(self.labels)), np.broadcast_to(high, len(self.labels))


def _draw_density(ax, values, ends, style):
    grid = np.linspace(values.min(), values.max(), _GRID)
    density = _kernel_density(values, grid)
    line, = ax.plot(grid, density, **style)
    inside = np.linspace(ends[0], ends[1], _GRID)
    area = ax.fill_between(inside, np.interp(inside, grid, density), color=line.get_color(), alpha=0.25, linewidth=0)
    return line, area


def _draw_histogram(ax, values, ends, style):
    options = {"bins": 40, "histtype": "step", **style}
    heights, edges, (line,) = ax.hist(values, density=True, **options)
    inside = np.unique(np.clip(edges, *ends))
    bins = np.searchsorted(edges, (inside[1:] + inside[:-1]) / 2) - 1
    area = ax.stairs(heights[bins], inside, fill=True, color=line.get_edgecolor(), alpha=0.25)
    return line, area


def _kernel_density(values, grid):
    """Kernel density estimate on the range of the draws, reflected at both ends so that it integrates to one."""
    kernel = gaussian_kde(values)
    low, high = values.min(), values.max()
    density = kernel(grid) + kernel(2 * low - grid) + kernel(2 * high - grid)
    return np.where((grid < low) | (grid > high), 0.0, density)


def _check_not_constant(values, label):
    if np.ptp(values) == 0:
        raise InvalidParameterError(f'All draws of {label} are equal, so they have no density. Use kind="forest".')
    return values


def _prior_densities(prior, grid, n_elements):
    """Return the prior densities on the grid: one for all elements, or one for each."""
    density = getattr(prior, "pdf", prior)
    if callable(density):
        return [np.broadcast_to(density(grid), grid.shape)]
    return [_kernel_density(column, grid) for column in _prior_draws(prior, n_elements).T]


def _prior_draws(prior, n_elements):
    draws = np.asarray(prior, dtype=float)
    draws = draws[:, None] if draws.ndim == 1 else draws
    if draws.ndim != 2 or draws.shape[1] not in (1, n_elements):
        raise InvalidParameterError(
            f"Draws of the prior must have the shape (n,) or (n, {n_elements}), one column for each element "
            f"drawn; got {np.shape(prior)}."
        )
    return draws


def _full_label(name, label):
    """Return the label of an element with the name of its parameter, as in ``coef[age]``."""
    return element_name(name, None if label == name else label)


def _positions(index, name, shape, labels):
    """Return the positions of the requested elements."""
    items = [index] if isinstance(index, (str, tuple)) or not np.iterable(index) else list(index)
    if not items:
        raise InvalidParameterError("index selects no element. Leave it out to draw all of them.")
    return [_position(item, name, shape, labels) for item in items]


def _position(item, name, shape, labels):
    if isinstance(item, str):
        found = [position for position, label in labels.items() if label == item]
    else:
        wanted = item if isinstance(item, tuple) else (item,)
        found = [tuple(int(i) % n for i, n in zip(wanted, shape))] if _is_inside(wanted, shape) else []
    if not found:
        raise InvalidParameterError(
            f"{name} has no element {item!r}: it has the shape {shape} and the elements {quoted(labels.values())}."
        )
    return found[0]


def _is_inside(wanted, shape):
    return len(wanted) == len(shape) > 0 and all(isinstance(i, Integral) and -n <= i < n for i, n in zip(wanted, shape))


def _truth(truth, name, shape, positions):
    """Return one true value for each element drawn, or None."""
    if truth is None:
        return None
    values = np.asarray(truth, dtype=float)
    if values.size == np.prod(shape, dtype=int):
        values = values.reshape(shape)
        return np.array([values[position] for position in positions])
    if values.size != len(positions):
        raise InvalidParameterError(
            f"truth must have the shape {shape} of {name}, or one value for each of the {len(positions)} elements "
            f"drawn; got the shape {values.shape}."
        )
    return values.ravel()
