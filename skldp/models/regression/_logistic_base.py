"""What the two logistic models share: coordinates, priors, and the search for a pilot estimate."""

import math

import numpy as np
from scipy import optimize

from skldp.models.regression._coordinates import RegressionCoordinates, guarded
from skldp.models.regression._coupled_coordinates import CoupledCoordinates
from skldp.models.regression._vector_priors import StudentPrior, coefficient_prior, in_units

INTERCEPT_SCALE = 2.5
COEFFICIENT_SCALE = 2.5  # of the heavy-tailed prior, in units of 1 / data_norm
BEND = math.pi / 8  # E tanh(u / 2) over normal u of mean a and variance v is about tanh(a / 2 sqrt(1 + pi v / 8))


def logistic_coordinates(protocol, has_intercept, prior_scale, covariance_scale, lkj_eta, mean_scale):
    """Coordinates and priors of both logistic models; the parameters are those of :class:`LogisticMomentModel`."""
    unit, d = protocol.data_norm, protocol.n_features
    prior = coefficient_prior(prior_scale, unit, COEFFICIENT_SCALE, d)
    return RegressionCoordinates(d, has_intercept, prior, INTERCEPT_SCALE, in_units(covariance_scale, unit), lkj_eta,
                                 in_units(mean_scale, unit))


def coupled_coordinates(plain, label_information, information, constant):
    """Coordinates that suit trajectories.

    Parameters
    ----------
    plain : RegressionCoordinates
        The parameters and their priors.
    label_information, information : float
        Inverse variances, roughly, of an entry of E y x and of one of E x x'.
    constant : float
        How much smaller the errors of E y and E x are than those.
    """
    # Where coefficients are small, E y x is half of the covariance of x times them, and E y half of the intercept.
    coupling = 0.5 * plain.prior.scale * math.sqrt(label_information)
    told = 0.25 * (INTERCEPT_SCALE * constant) ** 2 * label_information
    return CoupledCoordinates(plain, coupling, information, told=told, constant=constant, bend=BEND,
                              scaled=isinstance(plain.prior, StudentPrior))


def natural(point, unit):
    """Natural parameters by name, in the units of the data."""
    params = {"coef": point.coef / unit}
    if point.intercept is not None:
        params["intercept"] = point.intercept
    params["covariance"] = unit**2 * point.covariance
    return params


class Coupled:
    """A logistic model in the coordinates of :class:`CoupledCoordinates`, which depend on the number of reports.

    Parameters
    ----------
    model : LogisticMomentModel or LogisticRecordModel
        The same in coordinates of its own, called theta.
    """

    def __init__(self, model):
        vars(self).update(vars(model))
        self.coordinates = model.coupled_coordinates()
        self.n_params = self.coordinates.n_params
        self.approximation = model.approximation.coupled(self.coordinates)

    @property
    def sampled(self):
        """Itself."""
        return self

    def to_theta(self, coupled):
        """Coordinates theta of those here, shape (n_points, n_params)."""
        return self.coordinates.uncoupled(coupled)

    def from_theta(self, theta):
        """Coordinates here of theta, shape (n_points, n_params)."""
        return self.coordinates.coupled(theta)


class Approximation:
    """A density close to a model's near a pilot estimate, where it is highest, and with a gradient.

    Parameters
    ----------
    model : LogisticMomentModel or LogisticRecordModel
        The exact one.
    start : ndarray of shape (n_params,)
        Where to look for the pilot estimate.
    n_rounds : int
        How often to look for it, each time with the density that is close at the last one.
    """

    def __init__(self, model, start, n_rounds):
        self.model, self.coordinates, self.n_params = model, model.coordinates, model.n_params
        self.pilot = start
        for _ in range(n_rounds):
            self._hold(self.pilot)
            found = optimize.minimize(self._loss, self.pilot, jac=True, method="L-BFGS-B")
            if np.isfinite(found.fun):
                self.pilot = found.x
        self._hold(self.pilot)

    def coupled(self, coordinates):
        """The same density in other coordinates."""
        other = object.__new__(type(self))
        vars(other).update(vars(self), coordinates=coordinates, n_params=coordinates.n_params,
                           pilot=coordinates.coupled(self.pilot[None])[0])
        return other

    def initial(self):
        """The pilot estimate."""
        return self.pilot

    def constrain(self, theta):
        """Natural parameters by name, in the units of the data."""
        return natural(self.coordinates.expand(theta), self.model.x_unit)

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params)."""
        return guarded(self._evaluate, theta, False, self.coordinates.largest)[0]

    def log_density_and_gradient(self, theta):
        """Log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return guarded(self._evaluate, theta, True, self.coordinates.largest)

    def _hold(self, theta):
        """Keep what makes the density close at theta."""
        raise NotImplementedError

    def _evaluate(self, theta, slopes):
        raise NotImplementedError

    def _loss(self, theta):
        value, gradient = self.log_density_and_gradient(theta[None])
        return (-value[0], -gradient[0]) if np.isfinite(value[0]) else (1e100, np.zeros_like(theta))
