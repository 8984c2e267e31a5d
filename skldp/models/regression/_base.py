"""What the models of a response share: coordinates, units, and likelihoods that add."""

import copy
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from skldp.models._base import Model
from skldp.models.regression._coordinates import evaluate_within_bounds


@dataclass(frozen=True)
class Units:
    """What records are divided by, and what is taken off the response, to put them in public units."""

    x: float
    y: float = 1.0
    y_offset: float = 0.0


class RegressionModel(Model):
    """A model of a response given a vector x that is normal with mean m and covariance Sigma.

    Parameters
    ----------
    likelihoods : list
        One for each protocol.
    coordinates : RegressionCoordinates
        The map from theta to the parameters, with their priors.
    units : Units
        Units of the data.
    """

    def __init__(self, likelihoods, coordinates, units):
        self.likelihoods, self.coordinates, self.units = likelihoods, coordinates, units

    @property
    def n_params(self):  # type: ignore[override]
        """Number of unconstrained parameters."""
        return self.coordinates.n_params

    def in_coordinates(self, coordinates):
        """Return the same model in other coordinates."""
        other = copy.copy(self)
        other.coordinates = coordinates
        if self.approximation is not None:
            other.approximation = self.approximation.in_coordinates(coordinates)
        return other

    def constrain(self, theta):
        """Return the natural parameters by name, in the units of the data."""
        point, units = self.coordinates.expand(theta), self.units
        params = {"coef": point.coef * (units.y / units.x)}
        if point.intercept is not None:
            params["intercept"] = units.y_offset + units.y * point.intercept
        if point.sigma is not None:
            params["sigma"] = units.y * np.abs(point.sigma)
        params["covariance"] = units.x**2 * point.covariance
        return params

    def log_density(self, theta):
        """Return the log-density of unconstrained parameters, shape (n_walkers,)."""
        return self._within_bounds(self._evaluate, theta, False)[0]

    def _within_bounds(self, evaluate, theta, slopes):
        return evaluate_within_bounds(evaluate, theta, slopes, self.coordinates.largest_scale)

    def _evaluate(self, theta, slopes):
        """Return the log-density and, if slopes are asked for, its gradient, else None."""
        raise NotImplementedError


class Approximation(RegressionModel):
    """Differentiable approximation of a model, close to it near the mode.

    Parameters
    ----------
    model : RegressionModel
        The exact one, in plain coordinates.
    start : ndarray of shape (n_params,)
        Where the search for its mode, the pilot estimate, starts.
    n_rounds : int
        Number of searches, each with the approximation at the last pilot estimate.
    """

    def __init__(self, model, start, n_rounds):
        super().__init__(model.likelihoods, model.coordinates, model.units)
        self.model, self.pilot = model, start
        for _ in range(n_rounds):
            self._hold(self.pilot)
            found = optimize.minimize(self._loss, self.pilot, jac=True, method="L-BFGS-B")
            if np.isfinite(found.fun):
                self.pilot = found.x
        self._hold(self.pilot)

    def initial(self):
        """Return the pilot estimate."""
        return self.coordinates.from_plain(self.pilot[None])[0]

    def gradient(self, theta):
        """Return the log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._within_bounds(self._evaluate, theta, True)

    def _hold(self, theta):
        """Fix what the approximation takes from the point theta."""
        raise NotImplementedError

    def _loss(self, theta):
        value, gradient = self.gradient(theta[None])
        return (-value[0], -gradient[0]) if np.isfinite(value[0]) else (1e100, np.zeros_like(theta))
