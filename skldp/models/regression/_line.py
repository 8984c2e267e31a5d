"""The line of one response at given coordinates: coefficients, intercept and residual variance."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit

from skldp.models._normal_tails import bend_negative
from skldp.models.regression._covariance import T_FREEDOM, matvec

TINY = 1e-300
_LEAST = 1e-12  # share of c^2 that is added to P, so that it is positive definite in floating point


class LineGradient(NamedTuple):
    """Derivatives with respect to the coordinates of a line, and to the covariance and mean of x.

    None stands for coordinates that the line does not have.
    """

    z: np.ndarray
    constant: Any
    sigma: Any
    log_scale: Any
    covariance: np.ndarray
    x_mean: Any


class LinePoint:
    """Line of one response at given coordinates, with its prior and its gradient.

    Attributes
    ----------
    coef : ndarray of shape (n_walkers, d)
    intercept, sigma : ndarray of shape (n_walkers,) or None
    """

    def __init__(self, coordinates, vector, z, constant, sigma, log_scale):
        self.coordinates, self.priors, self.vector, self.z = coordinates, coordinates.priors, vector, z
        self.intercept: Any = None
        self.sigma: Any = None
        target = coordinates.cross
        if coordinates.offset is not None:
            target = target + matvec(vector.covariance, np.broadcast_to(coordinates.offset, z.shape))  # b + Sigma h
        if vector.x_mean is not None:
            target = target - coordinates.response * vector.x_mean  # b - y m
        self._expand_coef(target, log_scale[:, 0] if log_scale.size else np.zeros(len(z)))
        if vector.x_mean is not None:
            self.intercept_precision = self.priors.intercept_scale**-2.0 + coordinates.centre_information  # q
            self.share = coordinates.centre_information / self.intercept_precision
            self.intercept = self.share * (coordinates.centre - np.vecdot(self._beyond_offset, vector.x_mean))
            self.intercept = self.intercept + constant[:, 0] / np.sqrt(self.intercept_precision)
        if self.priors.sigma_scale is not None:
            explained = np.vecdot(self.values, self.rotated_coef**2)
            left = coordinates.variance_share * (coordinates.variance - explained) / coordinates.variance_error
            self.argument = left + sigma[:, 0]  # a
            self.bent, self.bent_slope, self.bent_bend = bend_negative(self.argument)  # w(a), w', w'' / w'
            self.sigma = np.sqrt(coordinates.variance_error * np.logaddexp(0.0, self.bent))

    @property
    def values(self):
        r"""Eigenvalues of :math:`\Sigma`."""
        return self.vector.values

    @property
    def vectors(self):
        r"""Eigenvectors of :math:`\Sigma`."""
        return self.vector.vectors

    @property
    def _beyond_offset(self):
        return self.coef if self.coordinates.offset is None else self.coef - self.coordinates.offset

    def _expand_coef(self, target, log_scale):
        r"""Compute the coefficients in the eigenbasis of :math:`\Sigma`, in which K and P are diagonal."""
        priors, information = self.priors, self.coordinates.cross_information
        self.log_scale = log_scale
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
        priors = self.priors
        # |K| and s are from the prior of the coefficients, |P| from the Jacobian.
        value = 0.5 * (np.log(self.prior_precision) - np.log(self.precision)).sum(axis=1) - 0.5 * self._prior_distance
        if self.coordinates.stretch is not None:
            value += self.coordinates.stretch.log_jacobian(self.size, self.z.shape[1])[0]
        if priors.learns_coef_scale:
            value -= T_FREEDOM * (self.log_scale + 0.5 * np.exp(-2 * self.log_scale))
        if self.sigma is not None:
            # Half-normal sigma has the density exp(-sigma^2 / 2s^2) / sigma with respect to its square, which for very
            # negative w is proportional to exp(w); expit(w) w' is from the Jacobian.
            small = 0.5 * (self.bent + np.log(self.coordinates.variance_error))
            log_sigma = np.where(self.bent < -30, small, np.log(self.sigma))
            value -= 0.5 * (self.sigma / priors.sigma_scale) ** 2 + log_sigma + np.logaddexp(0.0, -self.bent)
            value += np.log(self.bent_slope)
        if self.intercept is not None:
            value -= 0.5 * (self.intercept / priors.intercept_scale) ** 2
        return value

    def pull_back(self, by_coef, by_intercept=None, by_sigma_square=None):
        """Return the :class:`LineGradient`, prior included, for derivatives with respect to the parameters."""
        by_constant = by_argument = by_mean = None
        by_covariance = np.zeros_like(self.vector.covariance)
        if self.sigma is not None:
            by_argument, by_explained = self._pull_back_sigma(by_sigma_square)
            by_coef = by_coef + 2 * by_explained[:, None] * matvec(self.vector.covariance, self.coef)
            by_covariance = by_explained[:, None, None] * self.coef[:, :, None] * self.coef[:, None, :]
        if self.intercept is not None:
            by_intercept = by_intercept - self.intercept / self.priors.intercept_scale**2
            by_constant = by_intercept / np.sqrt(self.intercept_precision)
            by_product = (self.share * by_intercept)[:, None]
            by_coef = by_coef - by_product * self.vector.x_mean
            by_mean = -by_product * self._beyond_offset
        by_z, by_target, by_matrix, by_log_scale = self._pull_back_coef(by_coef)
        if self.coordinates.offset is not None:
            by_matrix = by_matrix + by_target[:, :, None] * self.coordinates.offset
        if by_mean is not None:
            by_mean = by_mean - self.coordinates.response * by_target
        by_log_scale = by_log_scale + T_FREEDOM * (np.exp(-2 * self.log_scale) - 1)
        return LineGradient(by_z, by_constant, by_argument, by_log_scale if self.priors.learns_coef_scale else None,
                            by_covariance + by_matrix, by_mean)

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
