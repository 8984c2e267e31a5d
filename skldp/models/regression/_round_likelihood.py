"""Likelihood of the reports of one round: mean score and curvature at a public model."""

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldp.models.regression._covariance import matvec
from skldp.models.regression._moment_likelihoods import LEAST_NOISE
from skldp.models.regression._reported import ReportedMoments
from skldp.protocols._moment_protocol import LabelMomentProtocol
from skldp.protocols._round_protocol import RoundProtocol

LARGEST_CURVATURE = 0.25  # of the log-likelihood of a label, with respect to the log-odds
_LEAST_WEIGHT = 0.02  # of the reported mean curvature, which noise can make negative


@dataclass(frozen=True)
class Frame:
    """Coordinates of one round: the vector A (x - c) for x in public units, and the model of the round in them."""

    transform: np.ndarray
    centre: np.ndarray
    theta: np.ndarray

    def moved(self, theta):
        """Return intercept and coefficients in this frame, for those in public units."""
        coef = np.linalg.solve(self.transform.T, theta[1:])
        return np.append(theta[0] + theta[1:] @ self.centre, coef)

    def in_public_units(self, theta):
        """Return intercept and coefficients in public units, for those in this frame."""
        coef = theta[1:] @ self.transform
        return np.append(theta[0] - coef @ self.centre, coef)


@dataclass(frozen=True)
class Reported:
    """Unbiased means of one cohort of a round, and the variances of the noise of one report.

    ``curvature_noise`` is the variance of a diagonal entry; entries beside the diagonal have half of it.
    """

    frame: Frame
    intercept_weight: float
    score: np.ndarray
    curvature: np.ndarray
    score_noise: float
    curvature_noise: float


def _first_round(protocol, tally):
    """Moments of labels -1 and 1 are score and curvature at the model zero, where every label has probability 1/2."""
    mechanism = protocol.randomizer
    moments = mechanism.matrix(protocol.mean_moments(tally))
    noise, w = max(mechanism.noise_variance, LEAST_NOISE), mechanism.y_weight
    score, curvature = moments[:-1, -1] / (2 * w), moments[:-1, :-1] / 4
    frame, kappa = _first_frame(protocol), mechanism.intercept_weight
    return Reported(frame, kappa, score, curvature, noise / (8 * w**2), noise / 16)


def _first_frame(protocol):
    d = protocol.n_features
    return Frame(np.eye(d), np.zeros(d), np.zeros(d + 1))


def _later_frame(protocol):
    d = protocol.n_features
    return Frame(np.reshape(protocol.transform, (d, d)), np.array(protocol.centre), np.array(protocol.theta))


def _later_round(protocol, tally):
    score, curvature = protocol.mean_report(tally)
    noise = max(protocol.randomizer.noise_variance, LEAST_NOISE)
    return Reported(_later_frame(protocol), protocol.intercept_weight, score, curvature, noise, noise)


_FRAMES: dict[type, Any] = {LabelMomentProtocol: _first_frame, RoundProtocol: _later_frame}
_REPORTED: dict[type, Any] = {LabelMomentProtocol: _first_round, RoundProtocol: _later_round}


def frame_of(protocol):
    """Return the frame of a round."""
    return _FRAMES[type(protocol)](protocol)


class RoundLikelihood:
    r"""Normal log-likelihood of the mean score and curvature of a round, linear in the distance from its model.

    Notes
    -----
    With the model :math:`(\alpha_k, \theta_k)` of the round, :math:`\delta = \theta - \theta_k`, the weighted mean m
    and covariance :math:`\Sigma` of x, in which a record counts by its curvature, and W the mean curvature, the
    expected curvature and score are

    .. math:: W\begin{pmatrix}\kappa^2 & \kappa m^T\\ \kappa m & \Sigma + mm^T\end{pmatrix}, \qquad
              \phi W\begin{pmatrix}\kappa l\\ ml + \Sigma\delta\end{pmatrix}, \qquad l = \alpha - \alpha_k + \delta^Tm.

    The first is exact, and so is the second at :math:`\delta = 0`, for any distribution of x. The factor :math:`\phi`
    is the ratio of secant to tangent for normal x, see :class:`RoundModel`. The variance of the score is that of the
    noise, plus the curvature (the information equality), plus the error of the linear relation, a share of the squared
    length of what it predicts. All three are fixed at a pilot estimate, as is W.
    """

    def __init__(self, protocol, tally):
        self.protocol = protocol
        self.reported_means = reported = _REPORTED[type(protocol)](protocol, tally)
        self.n_reports, self.frame, self.kappa = tally.n_reports, reported.frame, reported.intercept_weight
        values, vectors = np.linalg.eigh(reported.curvature)
        self.positive = (vectors * np.maximum(values, 0.0)) @ vectors.T  # the curvature without negative eigenvalues
        self.weight = LARGEST_CURVATURE  # W, unless the constant tells it
        if self.kappa:
            self.weight = max(reported.curvature[0, 0] / self.kappa**2, _LEAST_WEIGHT)
        self.ratio = 1.0  # phi
        order = len(reported.score)
        # E (w |x|^2)^2 is at most the largest w |x|^2 times its mean, and the noise is spread over all entries.
        longest = LARGEST_CURVATURE * (1 + self.kappa**2)
        spread = max(longest * np.trace(self.positive) - np.sum(reported.curvature**2), 0.0) / (order * (order + 1) / 2)
        self.curvature_variance = (reported.curvature_noise + spread) / self.n_reports
        self.variance = (reported.score_noise * np.eye(order) + self.positive) / self.n_reports
        self.precision = np.linalg.inv(self.variance)

    def place(self, frame):
        """Set the frame of the model's coordinates, from which points are mapped to the frame of the round."""
        self.map = self.frame.transform @ np.linalg.inv(frame.transform)
        self.shift = self.frame.transform @ (frame.centre - self.frame.centre)
        self.inverse = np.linalg.inv(self.map)

    def calibrate(self, theta, ratio, weight, score_error, curvature_error):
        """Set the factor and the errors of the linear relation at a pilot estimate, in public units."""
        self.ratio = ratio
        if not self.kappa:
            self.weight = weight
        delta = self.frame.moved(theta) - self.frame.theta
        delta = np.append(delta[0] / self.kappa, delta[1:]) if self.kappa else delta[1:]
        explained = delta @ self.positive @ delta
        distance = min(1.0, np.sqrt(explained / self.weight))  # root mean square change of the log-odds
        self.error = (score_error * distance) ** 2 * explained * self.positive / len(delta)
        self.precision = np.linalg.inv(self.variance + self.error)
        size = np.mean(np.diag(self.positive)[int(self.kappa > 0):])
        self.spread = self.curvature_variance + (curvature_error * distance * size) ** 2

    def updated(self, aggregate):
        """Return the likelihood of other reports of the same protocol, with the same calibration."""
        tally = aggregate.parts[self.protocol]
        part = copy.copy(self)
        part.reported_means = _REPORTED[type(self.protocol)](self.protocol, tally)
        share = self.n_reports / tally.n_reports
        part.precision = np.linalg.inv(share * self.variance + self.error)
        part.spread = self.spread + (share - 1) * self.curvature_variance
        return part

    def reported(self, n_features):
        """Return estimated moments of x and of the distance from the model, which choose coordinates."""
        means, weight, d, kappa = self.reported_means, self.weight, n_features, self.kappa
        first, slope = int(kappa > 0), self.weight * self.ratio
        mean = np.zeros(d + 1)
        if kappa:
            mean = np.append(means.curvature[0, 1:] / (kappa * weight), means.score[0] / (kappa * slope))
        second = np.eye(d + 1)
        second[:d, :d] = means.curvature[first:, first:] / weight
        second[:d, d] = second[d, :d] = means.score[first:] / slope
        variances = np.diag(self.variance)
        information = float(slope**2 / np.mean(variances[first:]))
        return ReportedMoments(mean, second, information, (slope * kappa) ** 2 / variances[0],
                               2 * (weight * kappa) ** 2 / self.curvature_variance)

    def value_and_gradients(self, covariance, x_mean, intercept, coef):
        """Return the log-likelihood, and its derivatives with respect to the arguments, in the model's frame."""
        means, kappa, weight, slope = self.reported_means, self.kappa, self.weight, self.weight * self.ratio
        to_round, shift, first = self.map, self.shift, int(self.kappa > 0)
        sigma, m = to_round @ covariance @ to_round.T, x_mean @ to_round.T + shift
        moved = coef @ self.inverse
        delta = moved - self.frame.theta[1:]
        line = intercept - moved @ shift - self.frame.theta[0] + np.vecdot(delta, m)  # l
        expected = slope * (m * line[:, None] + matvec(sigma, delta))
        square = means.curvature[first:, first:] - weight * (sigma + m[:, :, None] * m[:, None, :])
        value = -0.5 / self.spread * np.sum(square**2, axis=(1, 2))
        by_square = weight / self.spread * square
        by_mean = 2 * matvec(by_square, m)
        if kappa:
            expected = np.column_stack([kappa * slope * line, expected])
            linear = means.curvature[0, 1:] - weight * kappa * m
            value -= np.vecdot(linear, linear) / self.spread
            by_mean += 2 * weight * kappa / self.spread * linear
        residual = means.score - expected
        solved = residual @ self.precision
        value -= 0.5 * np.vecdot(residual, solved)
        along = solved[:, first:]
        by_line = slope * np.vecdot(along, m)  # d l
        if kappa:
            by_line += slope * kappa * solved[:, 0]
        by_mean += by_line[:, None] * delta + slope * line[:, None] * along  # d m
        by_moved = by_line[:, None] * m + slope * matvec(sigma, along)  # d theta
        by_covariance = by_square + slope * along[:, :, None] * delta[:, None, :]  # d Sigma
        by_coef = (by_moved - by_line[:, None] * shift) @ self.inverse.T
        return value, to_round.T @ by_covariance @ to_round, by_mean @ to_round, by_line, by_coef
