"""Base classes of the regression models: coordinates, units, and a sum of likelihoods."""

import copy
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from skldp.models._base import Model
from skldp.models.regression._coordinates import evaluate_within_bounds


@dataclass(frozen=True)
class Units:
    """Divisors of x and y, and the offset subtracted from y, that convert records to public units."""

    x: float
    y: float = 1.0
    y_offset: float = 0.0


class RegressionModel(Model):
    """A model of a response given a normal vector x with mean m and covariance Sigma.

    Parameters
    ----------
    likelihoods : list
        One for each protocol.
    coordinates : RegressionCoordinates
        Map from theta to the parameters, with their priors.
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

    def _within_bounds(self, evaluate, theta, with_gradient):
        return evaluate_within_bounds(evaluate, theta, with_gradient, self.coordinates.largest_scale)

    def _evaluate(self, theta, with_gradient):
        """Return the log-density and its gradient; the gradient is None unless ``with_gradient``."""
        raise NotImplementedError


class Approximation(RegressionModel):
    """Differentiable approximation of a model, close to it near the mode.

    Its mode is the pilot estimate, at which the approximation is made.

    Parameters
    ----------
    model : RegressionModel
        The exact model, in plain coordinates.
    start : ndarray of shape (n_params,)
        Start of the search for the pilot estimate.
    n_rounds : int
        Number of searches, each with the approximation at the last pilot estimate.
    """

    def __init__(self, model, start, n_rounds):
        super().__init__(model.likelihoods, model.coordinates, model.units)
        self.model, self.pilot = model, start
        for _ in range(n_rounds):
            self._approximate_at(self.pilot)
            found = optimize.minimize(self._loss, self.pilot, jac=True, method="L-BFGS-B")
            if np.isfinite(found.fun):
                self.pilot = found.x
        self._approximate_at(self.pilot)

    def initial(self):
        """Return the pilot estimate."""
        return self.coordinates.from_plain(self.pilot[None])[0]

    def gradient(self, theta):
        """Return the log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._within_bounds(self._evaluate, theta, True)

    def _approximate_at(self, theta):
        """Compute the terms of the approximation that are fixed at the point theta, shape (n_params,)."""
        raise NotImplementedError

    def _loss(self, theta):
        value, gradient = self.gradient(theta[None])
        return (-value[0], -gradient[0]) if np.isfinite(value[0]) else (1e100, np.zeros_like(theta))
