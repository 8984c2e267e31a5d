"""Parameters of a regression at given coordinates, with their prior and their gradient with respect to coordinates."""

from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit

from skldp.models._normal_tails import bend_negative
from skldp.models.regression._covariance import T_FREEDOM, matvec

# Learned scale of the means: its median, and the standard deviation of its logarithm.
MEAN_SCALE = 0.05, np.log(10.0) / 2
TINY = 1e-300
_LEAST = 1e-12  # share of c^2 that is added to P, so that it is positive definite in floating point


class RegressionPoint:
    """Parameters at given coordinates, and the gradient with respect to the coordinates.

    Attributes
    ----------
    coef : ndarray of shape (n_walkers, d)
    covariance : ndarray of shape (n_walkers, d, d)
    x_mean : ndarray of shape (n_walkers, d) or None
    intercept, sigma : ndarray of shape (n_walkers,) or None
    """

    def __init__(self, coordinates, z, matrix, mean, constant, sigma, log_scale, mean_scale):
        self.coordinates, self.priors, self.z = coordinates, coordinates.priors, z
        priors = coordinates.priors
        self.matrix = coordinates.matrix.expand(matrix)
        self.covariance = self.matrix.covariance
        self.x_mean: Any = None
        self.intercept: Any = None
        self.sigma: Any = None
        target = coordinates.cross
        if coordinates.has_intercept:
            self.mean_scale = mean_scale
            scale = MEAN_SCALE[0] * np.exp(MEAN_SCALE[1] * mean_scale) if mean_scale.size else priors.mean_scale
            self.mean_prior_precision = np.broadcast_to(scale, (len(z), 1)) ** -2.0
            self.mean_precision = self.mean_prior_precision + coordinates.mean_information  # p
            self.x_mean = coordinates.mean_information * coordinates.x_mean / self.mean_precision
            self.x_mean = self.x_mean + mean / np.sqrt(self.mean_precision)
            target = target - coordinates.response * self.x_mean  # b - y m
        self._expand_coef(target, log_scale[:, 0] if log_scale.size else np.zeros(len(z)))
        if coordinates.has_intercept:
            self.intercept_precision = priors.intercept_scale**-2.0 + coordinates.centre_information  # q
            self.share = coordinates.centre_information / self.intercept_precision
            self.intercept = self.share * (coordinates.centre - np.vecdot(self.coef, self.x_mean))
            self.intercept = self.intercept + constant[:, 0] / np.sqrt(self.intercept_precision)
        if priors.sigma_scale is not None:
            explained = np.vecdot(self.values, self.rotated_coef**2)
            left = coordinates.variance_share * (coordinates.variance - explained) / coordinates.variance_error
            self.argument = left + sigma[:, 0]  # a
            self.bent, self.bent_slope, self.bent_bend = bend_negative(self.argument)  # w(a), w', w'' / w'
            self.sigma = np.sqrt(coordinates.variance_error * np.logaddexp(0.0, self.bent))

    def _expand_coef(self, target, log_scale):
        r"""Compute the coefficients in the eigenbasis of :math:`\Sigma`, in which K and P are diagonal."""
        priors, information = self.priors, self.coordinates.cross_information
        self.log_scale = log_scale
        self.values, self.vectors = np.linalg.eigh(self.covariance)
        self.inverse_square = np.exp(-2 * self.log_scale)[:, None] / priors.coef_scale**2  # 1 / (g s)^2
        self.k_values = priors.explained_weight * np.abs(self.values) + priors.ridge  # eigenvalues of K
        self.prior_precision = self.inverse_square * self.k_values
        self.precision = self.prior_precision + information * (self.values**2 + _LEAST)
        self.precision += self.coordinates.line_information * np.abs(self.values)  # eigenvalues of P
        self.root = np.sqrt(self.precision)
        self.rotated_z, self.rotated_target = self.rotated(self.z), self.rotated(target)
        self.rotated_mean = information * self.values * self.rotated_target / self.precision
        self.rotated_line = self.rotated_coef = self.rotated_mean + self.rotated_z / self.root
        if self.coordinates.stretch is not None:
            self.size = self._size(self.rotated_line)
            self.factor = np.exp(self.coordinates.stretch.logarithm(self.size)[0])[:, None]
            self.rotated_coef = self.factor * self.rotated_line
        self.coef = matvec(self.vectors, self.rotated_coef)

    def rotated(self, vectors):
        r"""Return vectors in the eigenbasis of :math:`\Sigma`."""
        return matvec(self.vectors.swapaxes(1, 2), np.broadcast_to(vectors, self.z.shape))

    def residuals(self, coef):
        """Return the residuals z of given coefficients."""
        line = self.rotated(coef)
        if self.coordinates.stretch is not None:
            size = self._size(line)
            line = line * (self.coordinates.stretch.inverse(size) / size)[:, None]
        return matvec(self.vectors, self.root * (line - self.rotated_mean))

    def _size(self, rotated):
        r"""Return the root of :math:`v^T\Sigma v` of vectors in the eigenbasis."""
        return np.sqrt(np.vecdot(np.abs(self.values), rotated**2) + TINY)

    @cached_property
    def _prior_distance(self):
        """The prior's quadratic form of the coefficients, given s."""
        return np.vecdot(self.prior_precision, self.rotated_coef**2)

    def log_prior(self):
        """Return the log-density of the prior with respect to the coordinates."""
        priors, d = self.priors, self.z.shape[1]
        # |K| and s are from the prior of the coefficients, |P| from the Jacobian.
        value = 0.5 * (np.log(self.prior_precision) - np.log(self.precision)).sum(axis=1) - 0.5 * self._prior_distance
        value = value + self.matrix.log_prior()
        if self.coordinates.stretch is not None:
            value += self.coordinates.stretch.log_jacobian(self.size, d)[0]
        if priors.learns_coef_scale:
            value -= T_FREEDOM * (self.log_scale + 0.5 * np.exp(-2 * self.log_scale))
        if self.sigma is not None:
            # Half-normal sigma has the density exp(-sigma^2 / 2s^2) / sigma with respect to its square, which for very
            # negative w is proportional to exp(w); expit(w) w' is from the Jacobian.
            small = 0.5 * (self.bent + np.log(self.coordinates.variance_error))
            log_sigma = np.where(self.bent < -30, small, np.log(self.sigma))
            value -= 0.5 * (self.sigma / priors.sigma_scale) ** 2 + log_sigma + np.logaddexp(0.0, -self.bent)
            value += np.log(self.bent_slope)
        if self.x_mean is None:
            return value
        prior_precision, precision = self.mean_prior_precision[:, 0], self.mean_precision[:, 0]
        value += 0.5 * d * np.log(prior_precision / precision)
        value -= 0.5 * prior_precision * np.vecdot(self.x_mean, self.x_mean)
        value -= 0.5 * (self.intercept / priors.intercept_scale) ** 2
        return value - 0.5 * np.vecdot(self.mean_scale, self.mean_scale)

    def gradient(self, by_coef, by_covariance, by_mean=None, by_intercept=None, by_sigma_square=None):
        """Return the gradient with respect to the coordinates, prior included.

        The arguments are the derivatives of the log-likelihood with respect to the parameters.
        """
        residuals = []
        if self.sigma is not None:
            by_argument, by_explained = self._pull_back_sigma(by_sigma_square)
            residuals.append(by_argument[:, None])
            by_coef = by_coef + 2 * by_explained[:, None] * matvec(self.covariance, self.coef)
            by_covariance = by_covariance + by_explained[:, None, None] * self.coef[:, :, None] * self.coef[:, None, :]
        if self.x_mean is not None:
            by_intercept = by_intercept - self.intercept / self.priors.intercept_scale**2
            by_product = (self.share * by_intercept)[:, None]
            by_coef = by_coef - by_product * self.x_mean
            by_mean = by_mean - by_product * self.coef - self.mean_prior_precision * self.x_mean
            residuals.insert(0, (by_intercept / np.sqrt(self.intercept_precision))[:, None])
        by_z, by_target, by_matrix, by_log_scale = self._pull_back_coef(by_coef)
        if self.x_mean is not None:
            by_mean = by_mean - self.coordinates.response * by_target
            residuals.insert(0, by_mean / np.sqrt(self.mean_precision))
        pieces = [by_z, self.matrix.pull_back(by_covariance + by_matrix), *residuals]
        if self.priors.learns_coef_scale:
            pieces.append((by_log_scale + T_FREEDOM * (np.exp(-2 * self.log_scale) - 1))[:, None])
        if self.x_mean is not None and self.mean_scale.size:
            pieces.append(self._by_mean_scale(by_mean))
        return np.concatenate(pieces, axis=1)

    def _pull_back_coef(self, by_coef):
        r"""Return derivatives with respect to z, the target, :math:`\Sigma` and log s, prior and Jacobian included.

        Notes
        -----
        A function :math:`f(\Sigma) = U\mathrm{diag} f(\lambda)U^T` has the derivative
        :math:`U(\Gamma\circ U^Td\Sigma U)U^T` with the divided differences
        :math:`\Gamma_{ij} = (f(\lambda_i) - f(\lambda_j))/(\lambda_i - \lambda_j)`. With
        :math:`\pi = A + B\lambda + c^2\lambda^2` the eigenvalues of P and :math:`\rho = \sqrt\pi`, they are
        :math:`-(B + c^2(\lambda_i + \lambda_j))/(\rho_i\rho_j(\rho_i + \rho_j))` for :math:`P^{-1/2}` and
        :math:`c^2(A - c^2\lambda_i\lambda_j)/(\pi_i\pi_j)` for :math:`c^2P^{-1}\Sigma`.
        """
        information, root, values = self.coordinates.cross_information, self.root, self.values
        prior_slope = self.inverse_square * self.priors.explained_weight
        slope = prior_slope + self.coordinates.line_information  # B
        constant = self.inverse_square * self.priors.ridge + information * _LEAST  # A
        by_coef = self.rotated(by_coef) - self.prior_precision * self.rotated_coef
        by_line, by_size = self._pull_back_stretch(by_coef)
        by_z = by_line / root
        roots = root[:, :, None] * root[:, None, :]
        total = slope[:, :, None] + information * (values[:, :, None] + values[:, None, :])
        by_root = -total / (roots * (root[:, :, None] + root[:, None, :]))
        by_matrix = by_root * by_line[:, :, None] * self.rotated_z[:, None, :]
        product = constant[:, :, None] - information * values[:, :, None] * values[:, None, :]
        by_matrix += information * product / roots**2 * by_line[:, :, None] * self.rotated_target[:, None, :]
        by_matrix -= 0.5 * prior_slope[:, :, None] * self.rotated_coef[:, :, None] * self.rotated_coef[:, None, :]
        by_matrix += (0.5 * by_size)[:, None, None] * self.rotated_line[:, :, None] * self.rotated_line[:, None, :]
        by_values = 0.5 * (self.priors.explained_weight / self.k_values
                           - (slope + 2 * information * values) / self.precision)
        by_matrix.reshape(len(root), -1)[:, ::root.shape[1] + 1] += by_values
        share = self.prior_precision / self.precision
        by_log_scale = np.vecdot(by_line, share * (self.rotated_line + self.rotated_mean))
        by_log_scale += share.sum(axis=1) + self._prior_distance - root.shape[1]
        by_target = matvec(self.vectors, information * values / self.precision * by_line)
        by_matrix = self.vectors @ by_matrix @ self.vectors.swapaxes(1, 2)
        return matvec(self.vectors, by_z), by_target, by_matrix, by_log_scale

    def _pull_back_stretch(self, by_coef):
        r"""Return derivatives with respect to :math:`\theta_0`, and to x divided by x, Jacobian included."""
        stretch = self.coordinates.stretch
        if stretch is None:
            return by_coef, np.zeros(len(by_coef))
        by_size = np.vecdot(by_coef, self.rotated_coef) * stretch.logarithm(self.size)[1]
        by_size = (by_size + stretch.log_jacobian(self.size, self.z.shape[1])[1]) / self.size
        return self.factor * by_coef + by_size[:, None] * self.values * self.rotated_line, by_size

    def _pull_back_sigma(self, by_square):
        r"""Return derivatives with respect to a and to :math:`\theta^T\Sigma\theta`, prior and Jacobian included."""
        error, slope = self.coordinates.variance_error, expit(self.bent)
        # sigma^2 = e log(1 + exp(w)), and -log sigma in the prior; for very negative w, -w / 2
        ratio = np.where(self.bent < -30, 1.0, error * slope / np.maximum(self.sigma**2, TINY))
        by_bent = error * slope * (by_square - 0.5 / self.priors.sigma_scale**2) - 0.5 * ratio + 1 - slope
        by_argument = self.bent_slope * by_bent + self.bent_bend
        return by_argument, -self.coordinates.variance_share / error * by_argument

    def _by_mean_scale(self, by_mean):
        """Return the derivative with respect to the learned scale of the means."""
        # d p = -2 / s^2 d log s, m = c^2 m / p + z / sqrt(p)
        share = self.mean_prior_precision / self.mean_precision
        coordinates = self.coordinates
        slope = share * (self.x_mean + coordinates.mean_information * coordinates.x_mean / self.mean_precision)
        by_log = np.vecdot(by_mean, slope) + share[:, 0] * self.x_mean.shape[1] - self.x_mean.shape[1]
        by_log += self.mean_prior_precision[:, 0] * np.vecdot(self.x_mean, self.x_mean)
        return MEAN_SCALE[1] * by_log[:, None] - self.mean_scale
