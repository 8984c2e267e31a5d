"""Plots of a density without a family, and of its distribution function, with their intervals."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from skldp._validation._parameters import check_fraction, check_integer
from skldp.exceptions import InvalidParameterError
from skldp.plot._support import axes_or_new, fitted, legend_above

_N_POINTS = 512


class DensityDisplay:
    """Posterior mean of a density or of a distribution function, with a band of credible intervals.

    Parameters
    ----------
    x : ndarray of shape (n_points,)
        Values.
    mean, low, high : ndarray of shape (n_points,)
        Posterior mean and ends of the intervals.
    label : str
        What is drawn, the label of the vertical axis.
    level : float, default=0.9
        Posterior probability inside the intervals.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    line_ : artist
        The posterior mean.
    band_ : artist
        The intervals.

    See Also
    --------
    DensityDisplay.from_estimator : Draw the density of a fitted LDPDensity, or its distribution function.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import DensityDisplay, LDPDensity
    >>> X = np.random.default_rng(0).beta(2, 5, size=(5000, 1))
    >>> model = LDPDensity(epsilon=2.0, bounds=(0, 1), n_cells=32, inference="laplace", random_state=0).fit(X)
    >>> display = DensityDisplay.from_estimator(model, cumulative=True)
    >>> display.ax_.get_ylabel()
    'probability of values up to x'
    """

    def __init__(self, x, mean, low, high, *, label, level=0.9):
        self.x = x
        self.mean = mean
        self.low = low
        self.high = high
        self.label = label
        self.level = level

    @classmethod
    def from_estimator(cls, estimator: BaseEstimator, *, column: int = 0, cumulative: bool = False,
                       level: float = 0.9, ax: Any = None, **kwargs: Any) -> Self:
        """Draw the density of a fitted estimator.

        Parameters
        ----------
        estimator : LDPDensity or Pipeline
            A fitted estimator, or a pipeline that ends in one.
        column : int, default=0
            Column of the records.
        cumulative : bool, default=False
            Whether to draw the distribution function instead of the density.
        level : float, default=0.9
            Posterior probability inside the intervals.
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        **kwargs
            Passed on to the line.

        Returns
        -------
        DensityDisplay
        """
        estimator = fitted(estimator)
        if "density" not in estimator.posterior_.draws:
            raise InvalidParameterError(f"DensityDisplay draws a fitted LDPDensity, got {type(estimator).__name__}. "
                                        "PosteriorDisplay draws the parameters of the others.")
        check_integer(column, "column", 0, estimator.n_features_in_ - 1)
        x, *parts = (_distribution if cumulative else _density)(estimator, check_fraction(level, "level"))
        mean, low, high = (part.reshape(len(x), -1)[:, column] for part in parts)
        label = "probability of values up to x" if cumulative else "density"
        return cls(x, mean, low, high, label=label, level=level).plot(ax=ax, **kwargs)

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw; a new figure by default.
        **kwargs
            Passed on to the line.

        Returns
        -------
        self
        """
        self.ax_, self.figure_ = axes_or_new(ax)
        self.line_, = self.ax_.plot(self.x, self.mean, **{"label": "posterior mean", **kwargs})
        self.band_ = self.ax_.fill_between(self.x, self.low, self.high, alpha=0.3, linewidth=0,
                                           color=self.line_.get_color(), label=f"{self.level:.0%} interval")
        self.ax_.set(xlabel="x", ylabel=self.label, ylim=(0, None))
        legend_above(self.ax_)
        return self


def _distribution(estimator, level):
    """Return values, and the distribution function there with its interval."""
    lower, upper = estimator.protocol_.bounds
    x = np.linspace(lower, upper, _N_POINTS)
    return x, *estimator.cdf(x, level=level)


def _density(estimator, level):
    """Return ends of the cells, each twice, and the density on both sides of them with its interval.

    The first and the last cell are left out for continuous values: they hold the point masses at the bounds.
    """
    draws = estimator.posterior_.draws["density"]
    draws = draws.reshape(-1, *draws.shape[2:])
    tail = (1 - level) / 2
    parts = draws.mean(axis=0), *np.quantile(draws, [tail, 1 - tail], axis=0)
    inner = slice(None) if estimator.step is not None or len(parts[0]) < 4 else slice(1, -1)
    edges = estimator.cell_edges_
    x = np.repeat(edges, 2)[1:-1].reshape(-1, 2)[inner].ravel()
    return x, *(np.repeat(part[inner], 2, axis=0) for part in parts)
