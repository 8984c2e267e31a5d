"""Priors of vectors: coefficients, scales and means."""

import numpy as np

from skldp.models.regression._covariance_priors import log_mixture
from skldp.models.regression._radial import Identity, radial_between

T_FREEDOM = 3.0
LEARNED_MEANS = np.geomspace(0.005, 0.5, 64)  # standard deviations, in units of R


class NormalPrior:
    """Prior of independent normal entries with mean 0."""

    learns_scale = False

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, vectors):
        """Return the log-density of vectors, shape (n_walkers, n), and its gradient."""
        return -0.5 * np.vecdot(vectors, vectors) / self.scale**2, -vectors / self.scale**2

    def radial_map(self, n, standard_error):
        """Return the identity: the scale is fixed."""
        return Identity()


class StudentPrior:
    r"""Multivariate t prior, that is, a normal prior :math:`N(0, s^2t^2I)` with the scale t integrated out.

    The log-density is :math:`-\frac{\nu + d}2\log(1 + \|\theta\|^2/(\nu s^2))`.
    """

    learns_scale = True

    def __init__(self, scale, n_features):
        self.scale, self.power = scale, T_FREEDOM + n_features

    def __call__(self, coef):
        """Return the log-density of coefficients and its gradient."""
        width = T_FREEDOM * self.scale**2
        ratio = np.vecdot(coef, coef) / width
        return -0.5 * self.power * np.log1p(ratio), -self.power / width * coef / (1 + ratio)[:, None]

    def log_prior_of_scale(self, log_scale):
        """Return the log-density of log t and its derivative."""
        inverse_square = np.exp(-2 * log_scale)
        return -T_FREEDOM * (log_scale + 0.5 * inverse_square), T_FREEDOM * (inverse_square - 1)

    def given_scale(self, coef, log_scale):
        """Return the log-density of coefficients given log t, and its derivatives with respect to both."""
        precision = np.exp(-2 * log_scale) / self.scale**2
        distance, n = precision * np.vecdot(coef, coef), coef.shape[1]
        return -0.5 * distance - n * log_scale, -precision[:, None] * coef, distance - n

    def mode_of_log_scale(self, coef):
        """Return the most likely log t given coefficients."""
        return 0.5 * np.log((T_FREEDOM + np.vecdot(coef, coef) / self.scale**2) / self.power)


class LearnedMeans:
    r"""Prior of normal entries with a common standard deviation, log-uniform between R/200 and R/2 on 64 points.

    Notes
    -----
    Users rarely say whether columns are centred, but the reports usually show it. If the reported means are no larger
    than their standard errors, most of the posterior is at small standard deviations, and the errors of the means do
    not enter the coefficients. Given s the density of n entries is :math:`s^{-n}e^{-\|m\|^2/2s^2}`.
    """

    def __init__(self, n_features):
        self.scale = LEARNED_MEANS[-1]
        self.half_precisions, self.constants = 0.5 / LEARNED_MEANS**2, -n_features * np.log(LEARNED_MEANS)

    def __call__(self, means):
        """Return the log-density of means and its gradient."""
        value, weights = log_mixture(self.constants - np.vecdot(means, means)[:, None] * self.half_precisions)
        return value, -2 * (weights @ self.half_precisions)[:, None] * means

    def radial_map(self, n, standard_error):
        """Return coordinates for n means, given the standard error of a reported mean."""
        return radial_between(n, LEARNED_MEANS[0], min(LEARNED_MEANS[-1], standard_error))
