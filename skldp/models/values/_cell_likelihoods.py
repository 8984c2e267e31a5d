"""Likelihoods of counts of reports in public cells, where each client reports one value."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from skldp.protocols._cells import GaussianCells, LaplaceCells, SquareWaveCells


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


# For each type of cells: the likelihood of continuous records, of counts, and of reports without noise.
_LIKELIHOODS: dict = {
    SquareWaveCells: (SquareWaveLikelihood, SquareWaveLikelihood, SquareWaveLikelihood),
    LaplaceCells: (LaplaceLikelihood, DiscreteLaplaceLikelihood, NoiselessLikelihood),
    GaussianCells: (GaussianLikelihood, GaussianLikelihood, NoiselessLikelihood),
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
    continuous, discrete, noiseless = _LIKELIHOODS[type(protocol.cells)]
    noisy = discrete if family.discrete else continuous
    return (noisy if protocol.randomizer.private else noiseless)(family, protocol, counts)
