"""Likelihoods of counts of reports in public cells, where each client reports one value."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from skldp.protocols._cells import GaussianCells, LaplaceCells, SquareWaveCells


_STEEP = 0.2  # rise of the distribution function near a group of cells; normal records spread over 3 % of the range


class CellLikelihood(ABC):
    """Log-likelihood of counts of reports in cells. Subclasses may leave out empty cells.

    Parameters
    ----------
    family : Family
        Distribution of the records.
    protocol : ValueProtocol
        Protocol of the reports.
    counts : ndarray of int, shape (n_cells,)
        Number of reports in each cell.
    """

    log_sizes: Any = 0.0  # adding this to log_probabilities turns log-densities into log-probabilities of cells

    @abstractmethod
    def __init__(self, family, protocol, counts):
        self.family, self.counts = family, counts.astype(float)

    def __call__(self, values):
        """Log-likelihood of parameter values, shape (n_walkers,)."""
        return self.log_probabilities(values) @ self.counts

    @abstractmethod
    def log_probabilities(self, values):
        """Log-probability of every cell minus its entry of ``log_sizes``, shape (n_walkers, n_cells)."""


class SquareWaveLikelihood(CellLikelihood):
    r"""Log-likelihood of square wave reports: exact on the grid, for every family with a CDF.

    Notes
    -----
    With C the distribution function of the rounded, clipped record on the grid 0 .. n (end masses included),
    :math:`P(y) = f + (h - f)[C(y+B) - C(y-B-1)]`, where h and f are the probabilities of a near and of a far report.
    """

    def __init__(self, family, protocol, counts):
        occupied = np.flatnonzero(counts)
        super().__init__(family, protocol, counts[occupied])
        mechanism = protocol.randomizer
        lower, upper = mechanism.bounds
        n_levels, first = mechanism.n_levels, occupied - mechanism.n_near
        # Points of the grid at either end of a window; C is 0 left of the grid and 1 from its last point on.
        points = np.unique(np.concatenate([occupied[occupied < n_levels], first[first >= 0]]))
        self.edges = lower + (points + 0.5) * (upper - lower) / n_levels
        self.ends = np.where(occupied < n_levels, 1 + np.searchsorted(points, occupied), len(points) + 1)
        self.starts = np.where(first >= 0, 1 + np.searchsorted(points, first), 0)
        self.near = mechanism.near_probability / mechanism.n_near
        self.far = (1 - mechanism.near_probability) / mechanism.n_levels

    def log_probabilities(self, values):
        """Log-probability of every cell minus its entry of ``log_sizes``, shape (n_walkers, n_cells)."""
        cdf = np.pad(self.family.cdf(self.edges, values), ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
        probability = cdf.take(self.ends, axis=1) - cdf.take(self.starts, axis=1)
        probability *= self.near - self.far
        probability += self.far
        if self.far == 0:
            # Without noise a cell can have probability zero: keep its logarithm finite, far below all others.
            np.maximum(probability, 1e-300, out=probability)
        return np.log(probability, out=probability)


class MergedSquareWaveLikelihood(SquareWaveLikelihood):
    r"""Log-likelihood of square wave reports in groups of cells, for families whose distribution function is costly.

    ``log_probabilities`` is still that of every cell.

    Notes
    -----
    A group of c cells has the mean probability :math:`f + (h - f)(\bar C_2 - \bar C_1)`, with the averages of C over
    the ends and over the starts of its windows, c consecutive points of the grid each. An average is computed as the
    mean of C at two points that have the same mean and variance, :math:`m \pm \sqrt{(c^2-1)/12}`, which is exact for
    cubic polynomials. Where C rises steeply, it is the average over all points. Groups repeat with the period w of the
    window, so that ends and starts have the same averages. There are 25 groups or more in a window and 100 in the
    range. For normal records that spread over 5 % of the range, groups make the variance of the mean larger by 0.2 %
    and that of the standard deviation by 0.5 %. Cells are not merged if they differ within groups, which shows records
    that spread less, or if that would save no time.
    """

    def __init__(self, family, protocol, counts):
        super().__init__(family, protocol, counts)
        self.mechanism = mechanism = protocol.randomizer
        first, last = _groups(mechanism)
        self.first, self.sizes = first, last - first
        self.group_counts = np.add.reduceat(counts, first).astype(float)
        inside = last <= mechanism.n_levels
        middle, spread = (first + last - 1)[inside] / 2, np.sqrt(((last - first)[inside] ** 2 - 1) / 12)
        self.nodes = mechanism.decode(np.concatenate([middle - spread, middle + spread]) + 0.5)
        self.merges = len(self.nodes) < len(self.edges) and not _differ_within(
            counts, first, self.sizes, mechanism.epsilon)
        # Averages of C are numbered from 1. Number 0 is left of the grid, where C is 0; the last is right of it.
        self.group_ends = np.minimum(np.arange(len(first)), np.count_nonzero(inside)) + 1
        self.group_starts = np.where(first >= mechanism.n_near, np.searchsorted(first, first - mechanism.n_near) + 1, 0)

    def __call__(self, values):
        """Log-likelihood of parameter values, shape (n_walkers,)."""
        if not self.merges:
            return super().__call__(values)
        low, high = np.split(self.family.cdf(self.nodes, values), 2, axis=1)
        mean = np.pad((low + high) / 2, ((0, 0), (1, 1)), constant_values=(0.0, 1.0))
        rise = np.pad(low[:, 1:], ((0, 0), (0, 1)), constant_values=1.0) - np.pad(high[:, :-1], ((0, 0), (1, 0)))
        walkers, groups = np.nonzero(rise > _STEEP)
        if len(walkers):
            mean[walkers, groups + 1] = self._exact_means([value[walkers] for value in values], groups)
        probability = mean.take(self.group_ends, axis=1) - mean.take(self.group_starts, axis=1)
        probability *= self.near - self.far
        probability += self.far
        return np.log(probability, out=probability) @ self.group_counts

    def _exact_means(self, values, groups):
        """Averages of C over all points of groups, one for each value of the parameters."""
        sizes = self.sizes[groups][:, None]
        offsets = np.arange(sizes.max())
        points = self.mechanism.decode(self.first[groups][:, None] + np.minimum(offsets, sizes - 1) + 0.5)
        return np.sum(self.family.cdf(points, values) * (offsets < sizes), axis=1) / sizes[:, 0]


def _differ_within(counts, first, sizes, epsilon):
    """Whether the reports show that cells of a group differ so much that merging them would lose information.

    The excess of the chi-squared statistic over its mean is compared with its noise and with the number of reports. If
    normal records spread over 3 % of the range, it is 1.5e-4 for each report at epsilon 1 and 4e-4 at 2 and above.
    """
    expected = np.repeat(np.add.reduceat(counts, first) / sizes, sizes)
    n_degrees = len(counts) - len(first)
    statistic = np.sum((counts - expected) ** 2 / np.maximum(expected, 1e-9))
    return statistic - n_degrees > 1.5e-4 * min(epsilon**2, 3.0) * counts.sum() + 2 * np.sqrt(2 * n_degrees)


def _groups(mechanism):
    """First cells of groups of cells of the square wave, and their last cells plus one, with the period of a window."""
    n_levels, period = mechanism.n_levels, mechanism.n_near
    size = max(1, min(period // 25, n_levels // 100))
    within = np.union1d(np.arange(0, period, size), n_levels % period)
    n_cells = n_levels + period
    starts = (period * np.arange(n_cells // period + 1)[:, None] + within).ravel()
    first = starts[starts < n_cells]
    return first, np.append(first[1:], n_cells)


class NoiseLikelihood(CellLikelihood):
    """Log-likelihood of reports with additive noise: the family's closed form at the centres of the cells."""

    def __init__(self, family, protocol, counts):
        occupied, cells = counts > 0, protocol.cells
        super().__init__(family, protocol, counts[occupied])
        self.bounds, self.scale, self.centres = protocol.bounds, cells.noise_scale, cells.centres[occupied]
        self.log_sizes = np.log(cells.sizes[occupied])


class LaplaceLikelihood(NoiseLikelihood):
    """Log-likelihood of values with Laplace noise."""

    def log_probabilities(self, values):
        """Log-probability of every cell minus its entry of ``log_sizes``, shape (n_walkers, n_cells)."""
        return self.family.log_laplace(self.centres, values, self.bounds, self.scale)


class GaussianLikelihood(NoiseLikelihood):
    """Log-likelihood of values with Gaussian noise."""

    def log_probabilities(self, values):
        """Log-probability of every cell minus its entry of ``log_sizes``, shape (n_walkers, n_cells)."""
        return self.family.log_gaussian(self.centres, values, self.bounds, self.scale)


class NoiselessLikelihood(CellLikelihood):
    """Log-likelihood of reports without noise: the probability of each grid point, end masses included."""

    def __init__(self, family, protocol, counts):
        occupied = counts > 0
        super().__init__(family, protocol, counts[occupied])
        centres, mechanism = protocol.cells.centres[occupied], protocol.randomizer
        half = (mechanism.decode(1.0) - mechanism.decode(0.0)) / 2
        lower, upper = protocol.bounds
        # Clipping moves all mass outside the bounds onto the ends of the grid.
        self.below = np.where(centres - half <= lower, -np.inf, centres - half)
        self.above = np.where(centres + half >= upper, np.inf, centres + half)
        # Without noise no report lies in a tail, whose centre is the bound.
        self.above = np.where(np.diff(protocol.cells.report_edges)[occupied] > 0, self.above, self.below)

    def log_probabilities(self, values):
        """Log-probability of every cell minus its entry of ``log_sizes``, shape (n_walkers, n_cells)."""
        masses = np.where(self.above == np.inf, 1.0, self.family.cdf(self.above, values))
        masses -= np.where(self.below == -np.inf, 0.0, self.family.cdf(self.below, values))
        return np.log(np.maximum(masses, 1e-300))


class DiscreteLaplaceLikelihood(CellLikelihood):
    """Exact log-likelihood of counts with Laplace noise: a finite sum over the grid, tail mass at its end."""

    def __init__(self, family, protocol, counts):
        occupied = counts > 0
        super().__init__(family, protocol, counts[occupied])
        lower, upper = protocol.bounds
        n_levels = protocol.randomizer.n_levels
        self.edges = lower + (np.arange(n_levels) + 0.5) * (upper - lower) / n_levels
        self.kernel = protocol.cells.probabilities[occupied].T

    def log_probabilities(self, values):
        """Log-probability of every cell minus its entry of ``log_sizes``, shape (n_walkers, n_cells)."""
        masses = np.diff(self.family.cdf(self.edges, values), axis=1, prepend=0.0, append=1.0)
        return np.log(np.maximum(masses @ self.kernel, 1e-300))


# For each type of cells: the likelihood by the kind of the family, and that of reports without noise.
_LIKELIHOODS: dict = {
    SquareWaveCells: {"continuous": SquareWaveLikelihood, "costly": MergedSquareWaveLikelihood,
                      "discrete": SquareWaveLikelihood, "noiseless": SquareWaveLikelihood},
    LaplaceCells: {"continuous": LaplaceLikelihood, "costly": LaplaceLikelihood,
                   "discrete": DiscreteLaplaceLikelihood, "noiseless": NoiselessLikelihood},
    GaussianCells: {"continuous": GaussianLikelihood, "costly": GaussianLikelihood,
                    "discrete": GaussianLikelihood, "noiseless": NoiselessLikelihood},
}


def cell_likelihood(family, protocol, counts):
    """Return the likelihood of counts of reports.

    Parameters
    ----------
    family : Family
        Distribution of the records.
    protocol : ValueProtocol
        Protocol of the reports.
    counts : ndarray of int, shape (n_cells,)
        Number of reports in each cell.

    Returns
    -------
    CellLikelihood
    """
    kind = family.kind if protocol.randomizer.private else "noiseless"
    return _LIKELIHOODS[type(protocol.cells)][kind](family, protocol, counts)
