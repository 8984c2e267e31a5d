"""Cells of a bounded value: their points, and moments, probabilities and quantiles of masses on them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np


@dataclass(frozen=True)
class ValueGrid:
    r"""Cells of neighbouring points of the grid on which clients encode a value.

    The points are 0 .. n, and 0 and n, to which values outside the bounds are clipped, are cells of their own. The mass
    of a cell is spread evenly over its points. A continuous value is spread evenly between them, too, so that its
    distribution function is piecewise linear with a jump at each bound.

    Parameters
    ----------
    bounds : tuple of float
        Public interval of the values.
    n_levels : int
        Largest point n.
    n_cells : int
        Number of cells, between 3 and n + 1 (2 if n is 1).
    discrete : bool, default=False
        Whether the values themselves lie on the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models.values._grid import ValueGrid
    >>> grid = ValueGrid((0.0, 10.0), n_levels=10, n_cells=11, discrete=True)
    >>> grid.quantile(np.full((1, 11), 1 / 11), np.array([0.5]))
    array([[5.]])
    """

    bounds: tuple
    n_levels: int
    n_cells: int
    discrete: bool = False

    @cached_property
    def edges(self):
        """First point of each cell, and the last point plus one."""
        inner = np.round(np.linspace(1, self.n_levels, max(self.n_cells - 1, 1))).astype(np.int64)
        return np.concatenate([[0], inner, [self.n_levels + 1]])

    @cached_property
    def sizes(self):
        """Number of points in each cell."""
        return np.diff(self.edges)

    @property
    def step(self):
        """Distance of neighbouring points."""
        return (self.bounds[1] - self.bounds[0]) / self.n_levels

    @cached_property
    def points(self):
        """Mean value of each cell."""
        return self.bounds[0] + self.step * (self.edges[:-1] + self.edges[1:] - 1) / 2

    @cached_property
    def widths(self):
        """Length of the interval of each cell; half a step at the bounds for a continuous value."""
        widths = self.step * self.sizes
        if not self.discrete:
            widths[[0, -1]] = self.step / 2
        return widths

    @cached_property
    def value_edges(self):
        """Ends of the intervals of the cells, ascending, shape (n_cells + 1,)."""
        edges = self.bounds[0] + self.step * (self.edges - 0.5)
        return edges if self.discrete else np.clip(edges, *self.bounds)

    def moments(self, masses):
        """Return mean and standard deviation, each of shape (n,), of masses of shape (n, n_cells)."""
        offsets = self.points - (self.bounds[0] + self.bounds[1]) / 2
        mean = masses @ offsets
        within = self.step**2 * (self.sizes**2 - 1.0) / 12
        variance = masses @ (offsets**2 + within) - mean**2
        return mean + (self.bounds[0] + self.bounds[1]) / 2, np.sqrt(np.maximum(variance, 0.0))

    def cdf(self, masses, x):
        """Return the probability of values up to each x, shape (n, n_x)."""
        below = np.pad(np.cumsum(masses, axis=1), ((0, 0), (1, 0)))
        place = self._position(x)
        cell = np.clip(np.searchsorted(self.edges, place, side="right") - 1, 0, self.n_cells - 1)
        share = (place - self.edges[cell]) / self.sizes[cell]
        return np.clip(below[:, cell] + share * masses[:, cell], 0.0, 1.0)

    def _position(self, x):
        """Return where on the scale of ``edges`` the probability up to each x ends."""
        level = (x - self.bounds[0]) / self.step
        if self.discrete:
            inside = np.floor(level + 1e-9) + 1
        else:
            inside = np.clip(level + 0.5, 1, self.n_levels)
        return np.where(x < self.bounds[0], 0.0, np.where(x >= self.bounds[1], self.n_levels + 1.0, inside))

    def quantile(self, masses, q):
        """Return the smallest value up to which the probability is q, shape (n, n_q)."""
        below = np.pad(np.cumsum(masses, axis=1), ((0, 0), (1, 0)))
        below /= below[:, -1:]
        # One search for all rows: row i is moved by 2i, so that the rows together are ascending.
        shift = 2.0 * np.arange(len(masses))[:, None]
        found = np.searchsorted((below + shift).ravel(), q + shift)
        cell = np.clip(found - len(self.edges) * np.arange(len(masses))[:, None] - 1, 0, self.n_cells - 1)
        rows = np.arange(len(masses))[:, None]
        share = (q - below[rows, cell]) / np.maximum(np.diff(below, axis=1)[rows, cell], 1e-300)
        return self._value(self.edges[cell] + np.clip(share, 0.0, 1.0) * self.sizes[cell])

    def _value(self, place):
        """Return the value up to which probability reaches a place on the scale of ``edges``."""
        if self.discrete:
            level = np.ceil(place - 1e-9) - 1
        else:
            level = np.where(place <= 1, 0.0, np.where(place >= self.n_levels, self.n_levels, place - 0.5))
        return self.bounds[0] + self.step * np.clip(level, 0.0, self.n_levels)

    def cell_of(self, x):
        """Return the cell of each value, after clipping and rounding as a client does."""
        level = np.clip(np.rint((x - self.bounds[0]) / self.step), 0, self.n_levels)
        return np.searchsorted(self.edges, level, side="right") - 1

    def draw(self, masses, rng):
        """Draw one value from each row of masses."""
        return self.quantile(masses, rng.random((len(masses), 1)))[:, 0]
