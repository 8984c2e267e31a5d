"""Priors of vectors: coefficients, scales and means."""

import numpy as np

from skldp.models.regression._covariance_priors import mixed
from skldp.models.regression._radial import Identity, radial_between

T_FREEDOM = 3.0
LEARNED_MEANS = np.geomspace(0.005, 0.5, 64)  # standard deviations, in units of R


class NormalPrior:
    """Independent normal entries with mean 0."""

    learns_scale = False

    def __init__(self, scale):
        self.scale = scale

    def __call__(self, vectors):
        """Log-density of vectors, shape (n_walkers, n), and its gradient."""
        return -0.5 * np.vecdot(vectors, vectors) / self.scale**2, -vectors / self.scale**2

    def radial(self, n, standard_error):
        """Coordinates for vectors of length n: their own."""
        return Identity()


class StudentPrior:
    r""":math:`-\frac{\nu + d}2\log(1 + \|\theta\|^2/(\nu s^2))`: a Gaussian whose scale is learned, integrated out."""

    learns_scale = True

    def __init__(self, scale, n_features):
        self.scale, self.power = scale, T_FREEDOM + n_features

    def __call__(self, coef):
        """Log-density of coefficients and its gradient."""
        width = T_FREEDOM * self.scale**2
        excess = np.vecdot(coef, coef) / width
        return -0.5 * self.power * np.log1p(excess), -self.power / width * coef / (1 + excess)[:, None]

    def log_prior_of_scale(self, log_scale):
        """Log-density of the logarithm of the scale of that Gaussian, in units of s, and its slope."""
        pull = np.exp(-2 * log_scale)
        return -T_FREEDOM * (log_scale + 0.5 * pull), T_FREEDOM * (pull - 1)

    def given_scale(self, coef, log_scale):
        """Log-density of coefficients given that scale, with its slopes in both."""
        precision = np.exp(-2 * log_scale) / self.scale**2
        distance, n = precision * np.vecdot(coef, coef), coef.shape[1]
        return -0.5 * distance - n * log_scale, -precision[:, None] * coef, distance - n

    def likely_log_scale(self, coef):
        """Where that scale is, given coefficients."""
        return 0.5 * np.log((T_FREEDOM + np.vecdot(coef, coef) / self.scale**2) / self.power)


class LearnedMeans:
    r"""Normal entries whose common standard deviation is log-uniform between R/200 and R/2, on 64 points.

    Notes
    -----
    Users rarely say whether columns are centred, but the reports usually show it: where the reported means are no
    larger than their standard errors, small standard deviations have most of the posterior, and the error of the means
    does not enter the coefficients. Given s the density of n entries is :math:`s^{-n}e^{-\|m\|^2/2s^2}`.
    """

    def __init__(self, n_features):
        self.scale = LEARNED_MEANS[-1]
        self.halves, self.constants = 0.5 / LEARNED_MEANS**2, -n_features * np.log(LEARNED_MEANS)

    def __call__(self, means):
        """Log-density of means and its gradient."""
        value, share = mixed(self.constants - np.vecdot(means, means)[:, None] * self.halves)
        return value, -2 * (share @ self.halves)[:, None] * means

    def radial(self, n, standard_error):
        """Coordinates for n means, whose common size is uncertain, given the standard error of their reports."""
        return radial_between(n, LEARNED_MEANS[0], min(LEARNED_MEANS[-1], standard_error))
