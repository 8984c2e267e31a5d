"""Plot of the empirical coverage of credible intervals."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from skldp._validation._parameters import check_fraction
from skldp.exceptions import InvalidParameterError
from skldp.plot._support import axes_or_new, columns, legend_above, numbers

_LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)


class CoverageDisplay:
    r"""Empirical against nominal coverage of credible intervals, with a band for sampling error.

    The legend is placed above the axes; use ``figure_.suptitle`` for a title.

    Parameters
    ----------
    level : array-like of shape (n,)
        Nominal levels, in (0, 1).
    coverage : array-like of shape (n,)
        Share of the repeats in which the interval contains the truth.
    repeats : int or array-like of shape (n,)
        Number of independent repeats behind each share.
    label : array-like of shape (n,) or None, default=None
        Curve that each share belongs to; one curve by default.
    confidence : float, default=0.99
        Probability of the band, at each level.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of lines
        One for each curve.
    bands_ : list of artists
        One for each number of repeats.
    exact_ : line
        The line of exact calibration.

    See Also
    --------
    CoverageDisplay.from_results : Draw a table of coverages.
    CoverageDisplay.from_ranks : Draw the ranks of truths among posterior draws.

    Notes
    -----
    Of R calibrated intervals of level :math:`p`, :math:`\mathrm{Binomial}(R, p)` contain the truth. The band lies
    between central quantiles of this distribution. If the truths are drawn from the prior, the intervals of a correct
    posterior are calibrated exactly; for a fixed truth, only in the limit of many reports.

    Examples
    --------
    >>> from skldp import CoverageDisplay
    >>> results = [{"level": 0.5, "covered": 52, "repeats": 100, "epsilon": 1.0},
    ...            {"level": 0.9, "covered": 91, "repeats": 100, "epsilon": 1.0},
    ...            {"level": 0.5, "covered": 47, "repeats": 100, "epsilon": 4.0},
    ...            {"level": 0.9, "covered": 88, "repeats": 100, "epsilon": 4.0}]
    >>> display = CoverageDisplay.from_results(results, by="epsilon")
    >>> [line.get_label() for line in display.lines_]
    ['epsilon 1', 'epsilon 4']
    """

    def __init__(self, level, coverage, repeats, *, label=None, confidence=0.99):
        self.level = level
        self.coverage = coverage
        self.repeats = repeats
        self.label = label
        self.confidence = confidence

    @classmethod
    def from_results(cls, results: Any, *, by: str | None = None, confidence: float = 0.99, difference: bool = False,
                     ax: Any = None, **kwargs: Any) -> Self:
        """Draw a table of coverages.

        Parameters
        ----------
        results : DataFrame, dict of columns, or list of dicts
            Table with the columns ``level``, ``repeats``, and ``coverage`` (a share) or ``covered`` (a count).
        by : str or None, default=None
            Column whose values separate the curves.
        confidence : float, default=0.99
            Probability of the band, at each level.
        difference : bool, default=False
            Draw by how many percentage points the coverage differs from the level.
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        **kwargs
            Passed on to the lines.

        Returns
        -------
        CoverageDisplay
        """
        required = ["level", "repeats"] + ([by] if by else [])
        table = columns(results, required, optional=["coverage", "covered"])
        repeats = numbers(table, "repeats")
        if "coverage" in table:
            coverage = numbers(table, "coverage")
        elif "covered" in table:
            coverage = numbers(table, "covered") / repeats
        else:
            raise InvalidParameterError("The results need a column 'coverage' (a share) or 'covered' (a count).")
        label = np.array([_curve_name(by, value) for value in table[by]]) if by else None
        display = cls(numbers(table, "level"), coverage, repeats, label=label, confidence=confidence)
        return display.plot(ax=ax, difference=difference, **kwargs)

    @classmethod
    def from_ranks(cls, ranks: ArrayLike, *, level: ArrayLike = _LEVELS, confidence: float = 0.99,
                   difference: bool = False, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the coverage that follows from the ranks of truths among posterior draws.

        Parameters
        ----------
        ranks : array-like of shape (n_repeats,), or dict of str to these
            Share of the posterior draws below the truth, for each repeat; a dict has one entry for each curve.
        level : array-like of float
            Levels of the central intervals.
        confidence, difference, ax, **kwargs
            As in :meth:`from_results`.

        Returns
        -------
        CoverageDisplay

        Examples
        --------
        >>> import numpy as np
        >>> from skldp import CoverageDisplay
        >>> ranks = np.random.default_rng(0).random(200)  # uniform, as for a calibrated posterior
        >>> display = CoverageDisplay.from_ranks(ranks)
        >>> bool(np.abs(display.coverage - display.level).max() < 0.1)
        True
        """
        by_curve = ranks if isinstance(ranks, dict) else {"": ranks}
        levels = np.asarray(level, dtype=float)
        rows = []
        for label, values in by_curve.items():
            # The central interval of level p contains the truth if the rank is at most p / 2 away from 1 / 2.
            distance = 2 * np.abs(np.asarray(values, dtype=float).ravel() - 0.5)
            rows += [(p, np.mean(distance <= p), distance.size, label) for p in levels]
        flat, coverage, repeats, labels = (np.array(column) for column in zip(*rows))
        display = cls(flat, coverage, repeats, label=labels if isinstance(ranks, dict) else None, confidence=confidence)
        return display.plot(ax=ax, difference=difference, **kwargs)

    def plot(self, ax: Any = None, *, difference: bool = False, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        difference : bool, default=False
            Draw by how many percentage points the coverage differs from the level.
        **kwargs
            Passed on to the lines.

        Returns
        -------
        self
        """
        check_fraction(self.confidence, "confidence")
        level, coverage, repeats, label = self._rows()
        self.ax_, self.figure_ = axes_or_new(ax)
        self.bands_ = [self._plot_band(level[repeats == n], int(n), difference, len(np.unique(repeats)) == 1)
                       for n in np.unique(repeats)]
        ends = np.array([level.min(), level.max()])
        self.exact_, = self.ax_.plot(ends, 0 * ends if difference else ends, color="0.4", linewidth=0.8)
        self.lines_ = []
        style = {"marker": "o", "markersize": 4, "linewidth": 1.1, **kwargs}
        for name in dict.fromkeys(label):
            here = np.flatnonzero(label == name)
            here = here[np.argsort(level[here], kind="stable")]
            heights = 100 * (coverage - level) if difference else coverage
            line, = self.ax_.plot(level[here], heights[here], **{"label": str(name) or "coverage", **style})
            self.lines_.append(line)
        self.ax_.set(xlabel="nominal coverage", ylabel="empirical minus nominal\n(percentage points)" if difference
                     else "empirical coverage")
        legend_above(self.ax_, last=self.bands_)
        return self

    def _rows(self):
        """Return the checked columns, broadcast to the same length."""
        level = np.asarray(self.level, dtype=float)
        coverage, repeats = (np.broadcast_to(np.asarray(values, dtype=float), level.shape)
                             for values in (self.coverage, self.repeats))
        label = np.full(level.shape, "") if self.label is None else np.asarray(self.label)
        if level.size == 0 or not ((level > 0) & (level < 1)).all():
            raise InvalidParameterError("Levels must lie strictly between 0 and 1, at least one. Pass 0.9 for 90 %.")
        if not ((coverage >= 0) & (coverage <= 1)).all():
            raise InvalidParameterError("Coverages must be shares between 0 and 1; pass counts as 'covered'.")
        if not (repeats >= 1).all():
            raise InvalidParameterError("Every coverage needs at least one repeat: check repeats.")
        return level, coverage, repeats, label

    def _plot_band(self, level, n_repeats, difference, alone):
        level = np.unique(level)
        ends = binom.ppf([[(1 - self.confidence) / 2], [(1 + self.confidence) / 2]], n_repeats, level) / n_repeats
        low, high = 100 * (ends - level) if difference else ends
        label = f"{100 * self.confidence:g} % band" + ("" if alone else f" of {n_repeats} repeats")
        return self.ax_.fill_between(level, low, high, color="0.5", alpha=0.2, linewidth=0, label=label)


def _curve_name(by, value):
    """Label of a curve: a number is preceded by the name of its column, other values stand alone."""
    try:
        return f"{by} {float(value):g}"
    except (TypeError, ValueError):
        return str(value)
