r"""Public cells in which reports of values are counted.

The counts are sufficient for inference: exactly for the square wave, and up to a stated resolution for Laplace and
Gaussian noise. Their number does not grow with the number of clients.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._laplace import Laplace
from skldp.mechanisms._square_wave import SquareWave

LAPLACE_CELLS = 128  # minimum number of cells inside the bounds
LAPLACE_RESOLUTION = 64  # minimum number of cells per scale of the noise
GAUSSIAN_RESOLUTION = 16  # number of cells per standard deviation of the noise


class Cells(ABC):
    """Public cells in which the reports of one value are counted."""

    @property
    @abstractmethod
    def n_cells(self):
        """Number of cells."""

    @property
    @abstractmethod
    def report_edges(self):
        """Smallest report of each cell, and the largest possible report plus one, as floats."""

    @property
    @abstractmethod
    def centres(self):
        """Natural value of the reports of each cell, in ascending order."""

    @abstractmethod
    def index(self, reports):
        """Number of the cell of each report."""


@dataclass(frozen=True)
class SquareWaveCells(Cells):
    """One cell for each possible report, so that the counts are sufficient."""

    mechanism: SquareWave

    @property
    def n_cells(self):
        """Number of cells."""
        return self.mechanism.n_levels + 2 * self.mechanism.half_window + 1

    @property
    def report_edges(self):
        """Smallest report of each cell, and the largest possible report plus one, as floats."""
        return np.arange(self.n_cells + 1.0) - self.mechanism.half_window

    @property
    def centres(self):
        """Natural value of each possible report."""
        return self.mechanism.decode(self.report_edges[:-1])

    def index(self, reports):
        """Number of the cell of each report."""
        return reports.astype(np.intp) + self.mechanism.half_window


@dataclass(frozen=True)
class LaplaceCells(Cells):
    r"""Cells of at most 1/128 of the range and 1/64 of the noise scale inside the bounds, and one for each tail.

    Outside the bounds the density of a report is exactly exponential for any records, so that each tail needs one
    cell only. Inside, the density is evaluated at the centre of a cell of width h, with a relative error of
    :math:`\frac{h^2}{24}|p''/p|`, where :math:`p'' = (p - f)/s^2` for records of density f under noise of scale s.
    For records that spread over a tenth of the range, that is below 2e-5 times epsilon.
    """

    mechanism: Laplace

    @cached_property
    def cell_width(self):
        """Grid units in a cell."""
        widest = min(self.mechanism.n_levels / LAPLACE_CELLS, self.mechanism.scale / LAPLACE_RESOLUTION)
        return max(1, int(widest))

    @property
    def n_cells(self):
        """Number of cells, including the tails."""
        return self.mechanism.n_levels // self.cell_width + 3

    @property
    def report_edges(self):
        """Smallest report of each cell, and the largest possible report plus one, as floats."""
        low, high = self.mechanism.clamp
        return np.concatenate([[low], self.edges, [high + 1]]).astype(float)

    def index(self, reports):
        """Number of the cell of each report: the lower tail is 0, the upper tail the last."""
        inside = np.clip(reports.astype(np.intp), -1, self.mechanism.n_levels + 1)
        index = inside // self.cell_width + 1
        # -1 // cell_width is -1 for any width, so the lower tail is cell 0; the upper tail is set separately.
        index[inside > self.mechanism.n_levels] = self.n_cells - 1
        return index

    @cached_property
    def edges(self):
        """First grid point of each inner cell, and the last grid point plus one."""
        starts = np.arange(0, self.mechanism.n_levels + 1, self.cell_width)
        return np.append(starts, self.mechanism.n_levels + 1)

    @cached_property
    def centres(self):
        """Natural values at which the density of each cell is evaluated: its centre, or the bound for a tail."""
        grid = (self.edges[:-1] + self.edges[1:] - 1) / 2
        return np.concatenate([[self.mechanism.bounds[0]], self.mechanism.decode(grid), [self.mechanism.bounds[1]]])

    @property
    def noise_scale(self):
        """Scale of the noise on the natural scale."""
        lower, upper = self.mechanism.bounds
        return self.mechanism.scale * (upper - lower) / self.mechanism.n_levels

    @cached_property
    def sizes(self):
        """Factors that turn the density at a centre into the probability of its cell."""
        lower, upper = self.mechanism.bounds
        unit = (upper - lower) / self.mechanism.n_levels
        # The probability of an exponential tail is its density at the bound times the scale.
        return np.concatenate([[self.noise_scale], unit * np.diff(self.edges), [self.noise_scale]])

    @cached_property
    def probabilities(self):
        """Exact probability of each cell given each grid point of the record, shape (n_cells, n_levels + 1)."""
        levels = np.arange(self.mechanism.n_levels + 1)
        below = _laplace_cdf((self.edges[:, None] - 0.5 - levels) / self.mechanism.scale)
        return np.diff(below, axis=0, prepend=0.0, append=1.0)


@dataclass(frozen=True)
class GaussianCells(Cells):
    r"""Cells of 1/16 of the noise's standard deviation over the whole range of reports.

    A cell of width h adds a uniform rounding error to the noise. Its variance :math:`h^2/12` is part of
    ``noise_scale``, so that the density at the centre is accurate for the cell up to the fourth order: a relative
    error below :math:`(1/16)^4/2880\,|H_4|`, 5e-9 times a Hermite polynomial of the standardised report.
    """

    mechanism: Gaussian
    offset: float

    @cached_property
    def cell_width(self):
        """Grid units in a cell."""
        return max(1, int(self.mechanism.scale // GAUSSIAN_RESOLUTION))

    @property
    def n_cells(self):
        """Number of cells."""
        low, high = self.mechanism.clamp
        return (high - low) // self.cell_width + 1

    @property
    def report_edges(self):
        """Smallest report of each cell, and the largest possible report plus one, as floats."""
        low, high = self.mechanism.clamp
        return np.append(low + self.cell_width * np.arange(self.n_cells, dtype=float), high + 1)

    def index(self, reports):
        """Number of the cell of each report."""
        return (reports.astype(np.intp) - self.mechanism.clamp[0]) // self.cell_width

    @cached_property
    def centres(self):
        """Natural values at which the density of each cell is evaluated."""
        starts = self.mechanism.clamp[0] + np.arange(self.n_cells) * self.cell_width
        return self.offset + self.mechanism.decode(starts + (self.cell_width - 1) / 2)

    @property
    def sizes(self):
        """Factors that turn the density at a centre into the probability of its cell."""
        return np.full(self.n_cells, self.centres[1] - self.centres[0])

    @property
    def noise_scale(self):
        """Standard deviation of noise plus rounding to cells, on the natural scale."""
        step = self.mechanism.decode(1.0)
        return float(step * np.sqrt(self.mechanism.scale**2 + self.cell_width**2 / 12))


def _laplace_cdf(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0.0)) / 2, 1 - np.exp(-np.maximum(x, 0.0)) / 2)
