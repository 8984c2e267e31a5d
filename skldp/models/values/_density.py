"""Log-density of the distribution of a bounded value, without a family, given counts of its square wave reports."""

import copy

import numpy as np

from skldp.models._base import Model
from skldp.models.values._density_pilot import find_pilot
from skldp.models.values._residuals import cell_residuals
from skldp.models.values._window_likelihood import WindowLikelihood

__all__ = ["DensityModel"]

_MONITORED = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)  # probabilities


class DensityModel(Model):
    r"""Masses of the cells of a bounded value, from counts of its square wave reports.

    Parameters
    ----------
    grid : ValueGrid
        Cells of the value.
    aggregate : Aggregate
        Counts under one or more protocols of values with the square wave, on the points of the grid.
    column : int, default=0
        Index of the clients' value that is modelled.

    Notes
    -----
    The masses p of the cells are those of ``SmoothMasses``: a density whose logarithm is that of a normal one plus
    smooth deviations, shares of it that are gathered at the bounds, and point masses. Coefficients of the log-density
    are functions of coordinates (t, y, z), which ``DensityCoordinates`` describes with their prior. The log-odds of a
    gathered share are :math:`-3 + 3x` and those of a point mass :math:`-4 + 2x`, with x standard normal a priori. The
    unconstrained parameters are (t, y, z, x), and the log-likelihood is :math:`\sum_g n_g\log P_g(p)`.

    Reports are counted in groups as wide as a cell. Cells with a point mass are found from the reports
    (``find_pilot``); the model takes them as given.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import DensityModel, ValueGrid
    >>> from skldp.protocols import ValueProtocol
    >>> protocol = ValueProtocol(epsilon=1.0, bounds=(0, 10), n_levels=10)
    >>> aggregate = protocol.aggregate(protocol.privatize(np.repeat([2, 3, 5], 400)))
    >>> model = DensityModel(ValueGrid((0, 10), n_levels=10, n_cells=11, discrete=True), aggregate)
    >>> model.constrain(model.initial()[None])["density"].shape
    (1, 11)
    """

    def __init__(self, grid, aggregate, column=0):
        self.grid = grid
        self.parts = [(protocol, tally.sums[column]) for protocol, tally in aggregate.parts.items()]
        group = max(1, round((grid.n_levels + 1) / grid.n_cells))
        self.likelihoods = [WindowLikelihood(grid, protocol.randomizer, counts, group)
                            for protocol, counts in self.parts]
        pilot = find_pilot(grid, self.likelihoods)
        self.masses, self.coordinates, self._x = pilot.masses, pilot.coordinates, pilot.x
        self.n_params = self.coordinates.n_coordinates + len(self._x)
        below = np.cumsum(self._total(self.initial()[None])[0])
        cells = np.searchsorted(below, _MONITORED)
        self._monitored = np.unique(np.concatenate([[0], cells[cells < grid.n_cells - 1] + 1]))

    def initial(self):
        """Return the coordinates nearest to the pilot estimate."""
        return np.concatenate([np.zeros(self.coordinates.n_coordinates), self._x])

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params)."""
        with np.errstate(all="ignore"):
            state, x = self.coordinates(self._smooth(theta)), self._spikes(theta)
            masses = self.masses(state.coefficients, x).total
            value = sum(part.log_likelihood(masses) for part in self.likelihoods) - 0.5 * np.vecdot(x, x)
            value = value + self.coordinates.log_prior(theta, state)
        return np.where(np.isnan(value), -np.inf, value)

    def gradient(self, theta):
        """Log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        state, x = self.coordinates(self._smooth(theta)), self._spikes(theta)
        masses = self.masses(state.coefficients, x)
        value, by_mass = self.coordinates.log_prior(theta, state) - 0.5 * np.vecdot(x, x), 0.0
        for part in self.likelihoods:
            part_value, part_gradient = part.value_and_gradient(masses.total)
            value, by_mass = value + part_value, by_mass + part_gradient
        by_coefficient, by_x = self.masses.pull_back(masses, by_mass)
        by_smooth = self.coordinates.gradient(self._smooth(theta), state, by_coefficient)
        return value, np.concatenate([by_smooth, by_x - x], axis=1)

    def constrain(self, theta):
        """Mean, standard deviation and density: shapes (n_walkers,), (n_walkers,) and (n_walkers, n_cells)."""
        masses = self._total(theta)
        mean, std = self.grid.moments(masses)
        return {"mean": mean, "std": std, "density": masses / self.grid.widths}

    def monitored(self, draws):
        """Replace the density by the distribution function at a few cells, where the pilot has 5 % to 95 %.

        Cells of an empty tail have skewed masses near zero, which mix slowly and matter to nobody. Their R-hat is that
        of the masses nevertheless.
        """
        masses = draws["density"] * self.grid.widths
        cdf = np.add.reduceat(masses, self._monitored, axis=-1)[..., :-1].cumsum(axis=-1)
        return {**{name: values for name, values in draws.items() if name != "density"}, "cdf": cdf}

    def report_log_likelihoods(self, protocol, theta):
        """Log-likelihood of each possible report of a protocol, shape (n_reports, n_walkers)."""
        none = np.zeros(protocol.cells.n_cells, dtype=np.int64)
        return np.log(WindowLikelihood(self.grid, protocol.randomizer, none).probabilities(self._total(theta))).T

    def fit_residuals(self, theta):
        """Residuals of the counts in runs of cells, given draws of the parameters; None if reports are too few."""
        return cell_residuals(self.report_log_likelihoods, self.parts, theta)

    def in_coordinates_of(self, other):
        """Return the same model, with the same point masses, in the coordinates of another one."""
        model = copy.copy(self)
        model.coordinates = other.coordinates
        return model

    def _total(self, theta):
        with np.errstate(all="ignore"):
            return self.masses(self.coordinates(self._smooth(theta)).coefficients, self._spikes(theta)).total

    def _smooth(self, theta):
        return theta[:, :self.coordinates.n_coordinates]

    def _spikes(self, theta):
        return theta[:, self.coordinates.n_coordinates:]
