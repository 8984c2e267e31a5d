"""Coordinates and priors of the logistic models."""

import numpy as np
from scipy.stats import norm

from skldp.models.regression._coordinates import RegressionCoordinates
from skldp.models.regression._prior import DefaultScales, check_regression_prior, priors_in_public_units
from skldp.models.regression._sigmoid import tanh_means
from skldp.models.regression._stretch import Stretch
from skldp.protocols._responses import Labels

LOGISTIC_SCALES = DefaultScales(*Labels.typical)
_ROUNDS = 20
_MOST_EXPLAINED = 0.785  # of the largest variance of y, that of a line without error


def logistic_coordinates(protocol, has_intercept, prior, reported, moments_alone=False):
    r"""Return the coordinates of a logistic model, with its priors.

    If moments of the labels are all that is reported, large coefficients are stretched.

    Notes
    -----
    For normal x the covariance of x and y is :math:`f_1\Sigma\theta` and E y is :math:`f_0`, with :math:`f_k` the mean
    of the k-th derivative of tanh(u / 2), :math:`u \sim N(\mu, v)`. Both :math:`\mu` and v follow from the reported
    moments by iteration, in which :math:`f_1^2v` is the variance of y that a line explains.
    """
    priors = logistic_priors(prior, protocol)
    mean = np.clip(reported.mean[-1], -0.9, 0.9)
    covariance = reported.covariance
    explained = covariance[-1, :-1] @ np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
    # Infinite coefficients have labels 1 on one side of a plane: E yx is 2 phi(q), if the plane is at the q-quantile.
    limit = 2 * norm.pdf(norm.ppf((1 + mean) / 2))
    explained = min(explained, _MOST_EXPLAINED * limit**2)
    slope, centre = 0.5, 0.0
    for _ in range(_ROUNDS if reported.cross_information else 0):
        variance = explained / slope**2
        centre = 2 * np.arctanh(mean) * np.sqrt(1 + np.pi * variance / 8)
        slope = float(tanh_means(np.full(1, centre), np.full(1, variance))[1, 0])
    return RegressionCoordinates(priors, has_intercept, reported, slope, centre,
                                 _stretch(reported, slope, limit) if moments_alone else None)


def logistic_priors(prior, protocol):
    """Return the :class:`Priors` of a logistic model in public units."""
    prior = check_regression_prior(prior)
    return priors_in_public_units(prior, LOGISTIC_SCALES, protocol.n_features, protocol.data_norm)


def _stretch(reported, slope, limit):
    """Return the stretch of coefficients, which begins three standard errors before the limit."""
    covariance = reported.covariance
    coef = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1]) / slope
    variance = coef @ covariance[:-1, :-1] @ coef / (coef @ coef) if coef.any() else 0.0
    information = slope**2 * reported.cross_information * variance  # about the size of the coefficients
    return Stretch(max(limit / slope - 3 / np.sqrt(information), 0.0), information / 6) if information else None
