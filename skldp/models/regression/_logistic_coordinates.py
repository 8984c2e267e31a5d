"""Coordinates and priors of the logistic models."""

import math
from dataclasses import replace

from skldp.models.regression._coordinates import RegressionCoordinates
from skldp.models.regression._coupled_coordinates import CoupledCoordinates
from skldp.models.regression._prior import LEARNED, DefaultScales, check_regression_prior, priors_in_public_units

FIXED = DefaultScales(coef=2.5, intercept=2.5)
LEARNING = replace(FIXED, mean=LEARNED, lkj_eta=LEARNED)
FLATTENING = math.pi / 8  # for u of mean a and variance v, E tanh(u / 2) is about tanh(a / 2 sqrt(1 + pi v / 8))


def logistic_coordinates(protocol, has_intercept, prior, learn_scales=False):
    """Return the plain coordinates of a logistic model, with its priors."""
    priors = priors_in_public_units(check_regression_prior(prior), LEARNING if learn_scales else FIXED,
                                    protocol.n_features, protocol.data_norm)
    return RegressionCoordinates(priors, has_intercept)


def coupled_logistic_coordinates(plain, label_information, information, constant):
    """Return the coordinates of a logistic model that suit trajectories.

    Parameters
    ----------
    plain : RegressionCoordinates
        The parameters and their priors.
    label_information, information : float
        Approximate inverse variances of an entry of E y x and of an entry of E x x'.
    constant : float
        Ratio of these standard errors to those of E y and E x.
    """
    # If the coefficients are small, E y x is about Sigma theta / 2, and E y about half the intercept.
    prior = plain.priors.coef
    coupling = 0.5 * prior.scale * math.sqrt(label_information)
    intercept_information = 0.25 * (plain.priors.intercept_scale * constant) ** 2 * label_information
    return CoupledCoordinates(plain, coupling, information, intercept_information=intercept_information,
                              constant=constant, flattening=FLATTENING, scaled=prior.learns_scale)
