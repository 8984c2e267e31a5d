"""Base classes of the models of a normal vector: coordinates, units, and a sum of likelihoods."""

import copy
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy import optimize

from skldp.models._base import Model
from skldp.models.regression._covariance import T_FREEDOM


@dataclass(frozen=True)
class Units:
    """Divisors of x and y, and the offset subtracted from y, that convert records to public units.

    Those of y are arrays for several responses.
    """

    x: float
    y: float | np.ndarray = 1.0
    y_offset: float | np.ndarray = 0.0


class VectorModel(Model):
    """A model of a normal vector x, with a likelihood for each protocol."""

    def __init__(self, likelihoods, coordinates, units):
        self.likelihoods, self.coordinates, self.units = likelihoods, coordinates, units

    @property
    def n_params(self):  # type: ignore[override]
        """Number of unconstrained parameters."""
        return self.coordinates.n_params

    def in_coordinates_of(self, other):
        """Return the same model in the coordinates of another one."""
        model = copy.copy(self)
        model.coordinates = other.coordinates
        vars(model).pop("approximation", None)
        return model

    def log_density(self, theta):
        """Return the log-density of unconstrained parameters, shape (n_walkers,)."""
        return self._within_bounds(self._evaluate, theta, False)[0]

    def _within_bounds(self, evaluate, theta, with_gradient):
        """Return a log-density and its gradient; the log-density is -inf beyond the limits or where it is NaN."""
        beyond = ~(np.abs(theta) < self.coordinates.limits).all(axis=1)
        if beyond.any():
            theta = np.where(beyond[:, None], 0.1, theta)
        with np.errstate(all="ignore"):
            try:
                value, gradient = evaluate(theta, with_gradient)
            except np.linalg.LinAlgError:
                value, gradient = self._evaluate_singly(evaluate, theta, with_gradient)
        return np.where(beyond | np.isnan(value), -np.inf, value), gradient

    @staticmethod
    def _evaluate_singly(evaluate, theta, with_gradient):
        """Evaluate walkers one by one; where a matrix is singular in floating point, the density is zero."""
        value, gradient = np.full(len(theta), -np.inf), np.zeros_like(theta) if with_gradient else None
        for i in range(len(theta)):
            with suppress(np.linalg.LinAlgError):
                one = evaluate(theta[i:i + 1], with_gradient)
                value[i] = one[0][0]
                if gradient is not None:
                    gradient[i] = one[1][0]
        return value, gradient

    def _evaluate(self, theta, with_gradient):
        """Return the log-density and its gradient; the gradient is None unless ``with_gradient``."""
        raise NotImplementedError

    def _likelihood(self, mean, covariance, with_gradient):
        """Return the log-likelihood of all reports, and its derivatives by mean and covariance of (x, y)."""
        value, by_mean = np.zeros(len(covariance)), np.zeros(covariance.shape[:2])
        by_covariance = np.zeros_like(covariance)
        for part in self.likelihoods:
            weights = part.weights  # cohorts may have different ones
            products = np.outer(weights, weights)
            part_value, part_by_mean, part_by_covariance = part.value_and_gradients(
                None if mean is None else mean * weights, covariance * products, with_gradient)
            value = value + part_value
            if with_gradient:
                by_mean = by_mean if part_by_mean is None else by_mean + part_by_mean * weights
                by_covariance = by_covariance + part_by_covariance * products
        return value, by_mean, by_covariance


class RegressionModel(VectorModel):
    """A model of a response given a normal vector x, with a likelihood for each protocol."""

    def constrain(self, theta):
        """Return the natural parameters by name, in the units of the data."""
        point, units = self.coordinates.expand(theta), self.units
        params = {"coef": point.coef * np.expand_dims(units.y / units.x, -1)}
        if point.intercept is not None:
            params["intercept"] = units.y_offset + units.y * point.intercept
        if point.sigma is not None:
            params["sigma"] = units.y * point.sigma
        if point.correlation is not None:
            params["residual_correlation"] = point.correlation
        params["covariance"] = units.x**2 * point.covariance
        if point.x_mean is not None:
            params["x_mean"] = units.x * point.x_mean
        return params

    def prior_coef_std(self, covariance):
        """Return the prior standard deviations of the coefficients given covariances of x, shape (n, d, d)."""
        units = self.units
        variances = np.diagonal(self._relative_prior_covariance(covariance), axis1=1, axis2=2)
        scales = np.reshape([line.priors.coef_scale for line in self.coordinates.lines], np.shape(units.y))
        return np.multiply.outer(np.sqrt(variances), scales * units.y / units.x).swapaxes(1, -1)

    def _relative_prior_covariance(self, covariance):
        """Return the prior covariance of coefficients in public units with a scale g of 1, given covariances of x."""
        priors, order = self.coordinates.priors, np.arange(covariance.shape[1])
        inverse = priors.explained_weight / self.units.x**2 * covariance
        inverse[:, order, order] += priors.ridge
        return np.linalg.inv(inverse) * (T_FREEDOM / (T_FREEDOM - 2) if priors.learns_coef_scale else 1.0)


class Approximation(RegressionModel):
    """Differentiable approximation of a model, close to it near the mode.

    Its mode is the pilot estimate, at which the approximation is made. It is searched for ``n_rounds`` times from
    ``start``, each time with the approximation at the last one.
    """

    def __init__(self, model, start, n_rounds):
        super().__init__(model.likelihoods, model.coordinates, model.units)
        self.model, self.pilot = model, start
        for _ in range(n_rounds):
            self._approximate_at(self.pilot)
            self.pilot = highest_point(self, self.pilot)
        self._approximate_at(self.pilot)

    def initial(self):
        """Return the pilot estimate."""
        return self.pilot

    def gradient(self, theta):
        """Return the log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._within_bounds(self._evaluate, theta, True)

    def _approximate_at(self, theta):
        """Compute the terms of the approximation that are fixed at the point theta, shape (n_params,)."""
        raise NotImplementedError


def highest_point(model, start):
    """Return the point of highest density of a model with a gradient, or the start if there is none."""
    def loss(theta):
        """Negative log-density and its gradient."""
        value, gradient = model.gradient(theta[None])
        return (-value[0], -gradient[0]) if np.isfinite(value[0]) else (1e100, np.zeros_like(theta))

    found = optimize.minimize(loss, start, jac=True, method="L-BFGS-B")
    return found.x if np.isfinite(found.fun) else start
