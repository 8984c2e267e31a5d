"""Pilot estimate of a density: where its coordinates are centred, and which cells have a point mass."""

from dataclasses import dataclass

import numpy as np

from skldp.models.values._density_coordinates import MEDIAN_SCALE, DensityCoordinates, prior_precision
from skldp.models.values._smooth_masses import N_ENDS, Masses, SmoothMasses

_N_STEPS = 40
_GOOD_GAIN = 1e-3  # the search ends when a step raises the log-density by less
_MOST_SPIKES = 8
# Standard deviations of its score, at which a cell gets a point mass. With 2.5 at the bounds, one in twenty columns of
# normal values got one, and then the standard deviation was three posterior standard deviations too large.
_LEAST_SCORE = 4.5


@dataclass(frozen=True, eq=False)
class Pilot:
    """Posterior mode for a fixed scale of the prior, and what is derived from it."""

    masses: SmoothMasses
    coordinates: DensityCoordinates
    x: np.ndarray  # standardised log-odds of the shares at the bounds and of the point masses


def find_pilot(grid, likelihoods):
    r"""Find the posterior mode for a fixed scale of the prior, and the cells that have a point mass.

    Parameters
    ----------
    grid : ValueGrid
    likelihoods : list of WindowLikelihood

    Returns
    -------
    Pilot

    Notes
    -----
    The search takes Fisher scoring steps, halved until the log-density rises. At the mode a point mass in cell j would
    change the log-likelihood at the rate :math:`u_j = \partial_j\ell - p^T\partial\ell`. If the largest of these scores
    is above 4.5 of its standard deviations, given that all other parameters adapt, the cell gets a point mass of its
    own, and the search is repeated, up to eight times. A point mass that the reports do not show is
    left to the density of its cell: a prior for it would have one mode without and one with the point mass, between
    which walkers hardly move. The scale of the deviations is 1 here, since rough ones would hide point masses, and in
    the end the median of its prior.
    """
    masses = SmoothMasses(grid.sizes, np.empty(0, dtype=np.int64))
    point = _Point.at(masses, likelihoods, 1.0, np.zeros(masses.n_coefficients), np.ones(N_ENDS)).mode()
    for _ in range(_MOST_SPIKES):
        cell, score = point.largest_score()
        if score < _LEAST_SCORE:
            break
        masses = masses.with_spike(cell)
        point = _Point.at(masses, likelihoods, 1.0, point.coefficients, np.append(point.x, 0.0)).mode()
    return _Point.at(masses, likelihoods, MEDIAN_SCALE, point.coefficients, point.x).mode().pilot()


@dataclass(frozen=True, eq=False)
class _Point:
    """Parameters, with the log-density there and the gradient by the masses."""

    model: SmoothMasses
    likelihoods: list
    scale: float
    precision: np.ndarray
    params: np.ndarray
    masses: Masses
    by_mass: np.ndarray
    log_density: float

    @classmethod
    def at(cls, model, likelihoods, scale, coefficients, x):
        """Return the point of these parameters, for a scale of the deviations."""
        masses = model(coefficients[None], x[None])
        parts = [part.value_and_gradient(masses.total) for part in likelihoods]
        params = np.concatenate([coefficients, x])
        precision = np.concatenate([prior_precision(len(coefficients), scale), np.ones(len(x))])
        value = sum(part[0][0] for part in parts) - 0.5 * precision @ params**2
        return cls(model, likelihoods, scale, precision, params, masses, sum(part[1] for part in parts), float(value))

    @property
    def coefficients(self):
        """Coefficients of the log-density."""
        return self.params[:self.model.n_coefficients]

    @property
    def x(self):
        """Standardised log-odds of the shares at the bounds and of the point masses."""
        return self.params[self.model.n_coefficients:]

    @property
    def score(self):
        """Gradient of the log-likelihood by all parameters."""
        return np.concatenate([part[0] for part in self.model.pull_back(self.masses, self.by_mass)])

    def information(self, directions):
        """Fisher information of all reports along directions of the masses."""
        return sum(part.n_reports * part.information(self.masses.total[0], directions) for part in self.likelihoods)

    def mode(self):
        """Return the point of highest log-density."""
        point = self
        for _ in range(_N_STEPS):
            after = point._step()
            if after.log_density < point.log_density + _GOOD_GAIN:
                return point if after.log_density < point.log_density else after
            point = after
        return point

    def _step(self):
        curvature = self.information(self.model.directions(self.masses)) + np.diag(self.precision)
        step = np.linalg.solve(curvature, self.score - self.precision * self.params)
        for share in 0.5 ** np.arange(12):
            params = self.params + share * step
            after = self.at(self.model, self.likelihoods, self.scale, *np.split(params, [self.model.n_coefficients]))
            if after.log_density > self.log_density:
                break
        return after

    def largest_score(self):
        """Return the cell in which a point mass would explain most, and its standardised score."""
        (total,), (by_mass,) = self.masses.total, self.by_mass
        fitted, added = self.model.directions(self.masses), np.eye(len(total)) - total[:, None]
        n_fitted = fitted.shape[1]
        information = self.information(np.concatenate([fitted, added], axis=1))
        among = information[:n_fitted, :n_fitted] + np.diag(self.precision)
        between = information[:n_fitted, n_fitted:]
        variances = np.diag(information)[n_fitted:] - np.sum(between * np.linalg.solve(among, between), axis=0)
        scores = (by_mass - total @ by_mass) / np.sqrt(np.maximum(variances, 1e-9))
        scores[self.model.spikes] = 0.0
        cell = int(np.argmax(scores))
        return cell, float(scores[cell])

    def pilot(self):
        """Return the coordinates around this point."""
        n = self.model.n_coefficients
        information = self.information(self.model.directions(self.masses)[:, :n])
        return Pilot(self.model, DensityCoordinates.at(self.coefficients, self.score[:n], information), self.x)
