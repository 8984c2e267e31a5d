"""Likelihood of the reports of one round: mean score and curvature at a public model."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import chi2

from skldp.models.regression._covariance import matvec
from skldp.models.regression._moment_likelihoods import LEAST_NOISE
from skldp.models.regression._reported import ReportedMoments
from skldp.protocols._moment_protocol import LabelMomentProtocol
from skldp.protocols._responses import Response, labels_of
from skldp.protocols._round_protocol import CountRoundProtocol, RoundProtocol

_LEAST_WEIGHT = 0.01  # of the mean curvature, as a share of the largest
_WEIGHT_ERROR = 0.5  # of the mean curvature for normal x, in standard deviations of the curvature of a record
_LONGEST_STEP = 3.0  # root mean square change of the predictors up to which the mean curvature follows them
_PATH = tuple(zip((np.polynomial.legendre.leggauss(4)[0] + 1) / 2, np.polynomial.legendre.leggauss(4)[1] / 2))


@dataclass(frozen=True)
class Frame:
    """Coordinates of one round: the vector A (x - c) for x in public units, and the model of the round in them.

    Models have a row (intercept, coefficients) for each predictor, shape (q, d + 1).
    """

    transform: np.ndarray
    centre: np.ndarray
    lines: np.ndarray

    def moved(self, lines):
        """Return a model in this frame, for one in public units."""
        coef = np.linalg.solve(self.transform.T, lines[:, 1:].T).T
        return np.column_stack([lines[:, 0] + lines[:, 1:] @ self.centre, coef])

    def in_public_units(self, lines):
        """Return a model in public units, for one in this frame."""
        coef = lines[:, 1:] @ self.transform
        return np.column_stack([lines[:, 0] - coef @ self.centre, coef])

    def predictors(self, lines, x):
        """Return the predictors of x in public units, shape (n, q), by a model in this frame."""
        return lines[:, 0] + (x - self.centre) @ self.transform.T @ lines[:, 1:].T


@dataclass(frozen=True)
class Reported:
    """Unbiased means of one cohort of a round, and the variances of the noise of one report.

    ``score`` has shape (q, order). ``curvature_noise`` is the variance of a diagonal entry; entries beside the diagonal
    have half of it. ``evaluate`` maps records in public units to (constant, x) in the frame, mean response, curvature
    and weight, as that of :class:`skldp.protocols.RoundProtocol`.
    """

    frame: Frame
    response: Response
    intercept_weight: float
    score: np.ndarray
    curvature: np.ndarray
    score_noise: float
    curvature_noise: float
    evaluate: Callable


def _moments(protocol, tally):
    """Moments of labels -1 and 1 are score and curvature at the model zero, where every label has probability 1/2."""
    mechanism = protocol.randomizer
    moments = mechanism.matrix(protocol.mean_moments(tally))
    noise, w, kappa = max(mechanism.noise_variance, LEAST_NOISE), mechanism.y_weight, mechanism.intercept_weight

    def evaluate(x):
        """Return the parts of a record at the model zero."""
        extended = np.column_stack([np.full(len(x), kappa), x]) if kappa else x
        return extended, np.zeros((len(x), 1)), np.full(len(x), 0.25), np.ones(len(x))

    return Reported(frame_of(protocol), labels_of(2), kappa, moments[None, :-1, -1] / (2 * w), moments[:-1, :-1] / 4,
                    noise / (8 * w**2), noise / 16, evaluate)


def _moment_frame(protocol):
    d = protocol.n_features
    return Frame(np.eye(d), np.zeros(d), np.zeros((1, d + 1)))


def _score_frame(protocol):
    transform, centre = protocol.frame
    return Frame(transform, centre, protocol.lines)


def _score(protocol, tally):
    score, curvature = protocol.mean_report(tally)
    noise = max(protocol.randomizer.noise_variance, LEAST_NOISE)
    return Reported(frame_of(protocol), protocol.response, protocol.intercept_weight, score, curvature, noise, noise,
                    protocol.evaluate)


_FRAMES: dict[type, Any] = {LabelMomentProtocol: _moment_frame, RoundProtocol: _score_frame,
                            CountRoundProtocol: _score_frame}
_REPORTED: dict[type, Any] = {LabelMomentProtocol: _moments, RoundProtocol: _score, CountRoundProtocol: _score}


def frame_of(protocol):
    """Return the frame of a round."""
    return _FRAMES[type(protocol)](protocol)


class RoundLikelihood:
    r"""Normal log-likelihood of the mean score and curvature of a round, linear in the distance from a model.

    Notes
    -----
    A record counts by the curvature w that it reports. With the weighted mean m and covariance :math:`\Sigma` of x and
    the mean curvature W, the expected curvature is

    .. math:: W\begin{pmatrix}\kappa^2 & \kappa m^T\\ \kappa m & \Sigma + mm^T\end{pmatrix}.

    This is exact in the last round, whose weights define m and :math:`\Sigma`. Earlier rounds weigh records in another
    way: the difference, that of normal x, is subtracted from the reported curvature.

    The score is expanded at a model :math:`(\alpha_0, \theta_0)`. That of the round is best. In a round whose model has
    no coefficients, one without coefficients that has the reported mean response is closer to the truth. With
    :math:`\delta_j = \theta_j - \theta_{0j}`, :math:`l_j = \alpha_j - \alpha_{0j} + \delta_j^Tm` and predictors i, j,

    .. math:: E g_i = \sum_jT_{ij}\begin{pmatrix}\kappa l_j\\ ml_j + \Sigma\delta_j\end{pmatrix}
              + b_iW\begin{pmatrix}\kappa\\ m\end{pmatrix}.

    b is the difference of the mean response between the model of the expansion and that of the round, divided by w;
    zero if they are the same. The blocks of T turn second moments in which records count by the w of the last round,
    divided by their mean, into the mean curvature of all predictors on the way from the model of the expansion to the
    parameters,

    .. math:: T = E\left[v\int_0^1\mu'(u_0 + s(u - u_0))\,ds \otimes \tilde x\tilde x^T\right]
              \left(I \otimes \frac{E[vw\,\tilde x\tilde x^T]}{E[vw]}\right)^{-1},

    with which the relation is exact at a pilot estimate of u. The mean response is not linear around it: that of a rare
    label is convex, and uncertain parameters raise it. So the mean response is averaged over their posterior, by a
    cubature rule, and the difference is a further term of the expected score, which does not depend on the parameters.

    T is that of normal x and of a pilot estimate of u, and has an error for others. In the last round it is W for
    one predictor, if the pilot estimate is its model, for any distribution of x. The variance of the score is that
    of the noise, plus that of the responses, plus the error of the relation, a share of the squared length of what
    it predicts. All of this is fixed at the pilot estimate, as is W.
    """

    def __init__(self, protocol, tally):
        self.protocol = protocol
        self.reported_means = reported = _REPORTED[type(protocol)](protocol, tally)
        self.response, self.n_reports, self.frame = reported.response, tally.n_reports, reported.frame
        self.kappa = kappa = reported.intercept_weight
        values, vectors = np.linalg.eigh(reported.curvature)
        self.positive = (vectors * np.maximum(values, 0.0)) @ vectors.T  # the curvature without negative eigenvalues
        largest = self.response.largest_curvature
        self.weight = largest  # W, until estimate_weight
        self.origin = self.frame.lines  # the model of the expansion
        q = self.response.n_lines
        self.mix, self.base, self.secant = np.eye(q), np.zeros(q), largest * np.eye(reported.score.size)
        self.shift_of_curvature, self.offset = np.zeros_like(reported.curvature), np.zeros_like(reported.score)
        order = len(reported.curvature)
        # E (w |x|^2)^2 is at most the largest w |x|^2 times its mean, and the noise is spread over all entries.
        longest = largest * (1 + kappa**2)
        spread = max(longest * np.trace(self.positive) - np.sum(reported.curvature**2), 0.0) / (order * (order + 1) / 2)
        self.curvature_variance = (reported.curvature_noise + spread) / self.n_reports
        self.curvature_error = np.sqrt(2 * order * self.curvature_variance)  # of an eigenvalue of the curvature
        self.weight_error = 0.0
        self._set_errors(np.zeros_like(reported.score), 0.0, 0.0)

    def estimate_weight(self, x):
        """Set W: the mean over normal draws of x in public units, and the reported one, weighted by their precisions.

        For normal x the first has no error. For others it is taken to be a share of the standard deviation, which is
        zero at the model without coefficients, where all records count the same.
        """
        _, _, curvature, weight = self.reported_means.evaluate(x)
        counts = weight * curvature
        self.weight = max(float(np.mean(counts)), _LEAST_WEIGHT * self.response.largest_curvature)
        variance, share = (_WEIGHT_ERROR * np.std(counts)) ** 2, 0.0
        if self.kappa and variance:
            share = variance / (variance + self.curvature_variance / self.kappa**4)
            found = max(self.reported_means.curvature[0, 0], 0.0) / self.kappa**2
            self.weight += share * (found - self.weight)
        self.weight_error = np.sqrt((1 - share) * variance)

    def mean_response(self):
        """Return the estimated mean of the code of a response in a round whose model has no coefficients."""
        _, mean, curvature, _ = self.reported_means.evaluate(np.zeros((1, len(self.frame.centre))))
        counted = self.weight / curvature[0]  # mean of v
        return mean[0] + self.reported_means.score[:, 0] / (self.kappa * counted)

    def place(self, frame):
        """Set the frame of the model's coordinates, from which points are mapped to the frame of the round."""
        self.map = self.frame.transform @ np.linalg.inv(frame.transform)
        self.shift = self.frame.transform @ (frame.centre - self.frame.centre)
        self.inverse = np.linalg.inv(self.map)

    def counts(self, x):
        """Return how much records count, v w, for x in public units."""
        _, _, curvature, weight = self.reported_means.evaluate(x)
        return weight * curvature

    def calibrate(self, lines, covariance, x, last, score_error, curvature_error):
        """Set the relation of score and distance, and its errors, at a pilot estimate and draws of x in public units.

        Parameters
        ----------
        lines : ndarray of shape (q, d + 1)
            The pilot estimate in public units.
        covariance : ndarray of shape (q (d + 1), q (d + 1))
            Its covariance.
        x : ndarray of shape (n, d)
            Normal draws of x in public units.
        last : RoundLikelihood
            That of the last round, by whose curvature records count in m and Sigma.
        score_error, curvature_error : float
            Errors of the relation and of the curvature, as shares of their sizes, where predictors change by 1 or more.
        """
        pilot = self.frame.moved(lines)
        extended, mean, curvature, weight = self.reported_means.evaluate(x)
        counts, square = weight * curvature, np.vecdot(extended, extended)
        if not square.any():  # without an intercept, if no eigenvalue of the covariance exceeds its error
            square = np.ones(len(x))
        at = self.frame.predictors(self.origin, x)
        step = self.frame.predictors(pilot, x) - at
        deviation = _deviations(covariance, x, step.shape[1])
        shrink = min(1.0, _LONGEST_STEP / max(np.sqrt(np.mean(step**2) + np.mean(deviation**2)), 1e-12))
        step, ends = shrink * step, shrink * (step + deviation)
        slopes = sum(share * self.response.curvature(at + place * step) for place, share in _PATH)
        rise = sum(map(self.response.mean, at + ends)) / len(ends) - self.response.mean(at)
        floor = _LEAST_WEIGHT * self.response.largest_curvature
        total = max(counts.sum(), floor * len(x))
        self.mix = np.tensordot(weight * square, slopes, 1) / max(counts @ square, floor * square.sum())
        self.base = weight @ (self.response.mean(at) - mean) / total  # b
        weighted = extended * weight[:, None]
        shares, last_shares = (part.counts(x) for part in (self, last))
        shares, last_shares = shares / max(shares.sum(), 1e-12), last_shares / max(last_shares.sum(), 1e-12)
        second = (extended * last_shares[:, None]).T @ extended
        self.shift_of_curvature = self.weight * (extended * (shares - last_shares)[:, None]).T @ extended
        unit = self.weight / total  # such that records count W on average
        blocks = unit * np.einsum("nij,na,nb->iajb", slopes, weighted, extended, optimize=True)
        # Directions that the reports do not tell have the mean ratio of all others.
        least = self.curvature_error / self.weight * np.eye(len(second))
        blocks += np.einsum("ij,ab->iajb", self.weight * self.mix, least)
        solved = np.linalg.solve(second + least, blocks.reshape(-1, len(second)).T)
        self.secant = solved.T.reshape(self.secant.shape)  # T W
        bent = rise - np.einsum("nij,nj->ni", slopes, step)  # zero without uncertainty of the parameters
        self.offset = unit * bent.T @ weighted
        self._set_errors(self._extended(pilot - self.origin), score_error, curvature_error)

    def _extended(self, lines):
        """Return the vectors that (kappa, x) is multiplied by, for rows (intercept, coefficients)."""
        return np.column_stack([lines[:, 0] / self.kappa, lines[:, 1:]]) if self.kappa else lines[:, 1:]

    def _set_errors(self, change, score_error, curvature_error):
        by_entry = np.kron(self.mix, self.positive)
        explained = change.ravel() @ by_entry @ change.ravel()
        moved = np.sqrt(np.sum(change * (change @ self.positive)) / self.weight)  # root mean square of the predictors
        distance = min(1.0, moved)
        own = self.reported_means.score_noise * np.eye(len(by_entry)) + self.response.dispersion * by_entry
        self.variance = own / self.n_reports
        self.error = (score_error * distance) ** 2 * explained * by_entry / len(by_entry)
        if self.kappa:  # the curvature tells W Sigma, but the part of the score that is due to l depends on W alone
            mean = self.reported_means.curvature[0] / self.weight / self.kappa
            along = (change @ mean)[:, None] * mean
            along = self.weight_error / self.weight * self.secant @ along.ravel()
            self.error += np.outer(along, along)
        self.precision = np.linalg.inv(self.variance + self.error)
        size = np.mean(np.diag(self.positive)[int(self.kappa > 0):])
        self.spread = self.curvature_variance + (curvature_error * distance * size) ** 2

    def updated(self, aggregate):
        """Return the likelihood of other reports of the same protocol, with the same calibration."""
        tally = aggregate.parts[self.protocol]
        part = copy.copy(self)
        part.reported_means = _REPORTED[type(self.protocol)](self.protocol, tally)
        share = self.n_reports / tally.n_reports
        # Multiplied variances stay multiplied.
        part.precision = np.linalg.inv(np.linalg.inv(self.precision) + (share - 1) * self.variance)
        part.spread = self.spread + (share - 1) * self.curvature_variance
        return part

    def reported(self, n_features):
        """Return estimated moments of x and of the distance from the expansion's model, to choose coordinates."""
        means, weight, d, kappa, q = self.reported_means, self.weight, n_features, self.kappa, self.response.n_lines
        first, score, mean, second = int(kappa > 0), means.score - self.offset, np.zeros(d + q), np.eye(d + q)
        if kappa:
            score = score - np.outer(self.base, means.curvature[0] / kappa)
        inverse = np.linalg.inv(self.secant + _LEAST_WEIGHT * weight * np.eye(len(self.secant)))  # if no mean changes
        score = (inverse @ score.ravel()).reshape(score.shape)
        if kappa:
            mean = np.append(means.curvature[0, 1:] / (kappa * weight), score[:, 0] / kappa)
        second[:d, :d] = means.curvature[first:, first:] / weight
        second[:d, d:] = score[:, first:].T
        second[d:, :d] = score[:, first:]
        variances = np.diag(inverse @ self.variance @ inverse.T).reshape(q, -1)
        return ReportedMoments(mean, second, float(1 / np.mean(variances[:, first:])),
                               float(kappa**2 / np.mean(variances[:, 0])),
                               2 * (weight * kappa) ** 2 / self.curvature_variance, n_responses=q)

    def _expected(self, covariance, x_mean, intercept, coef):
        """Return what the relation is made of, in the frame of the round: Sigma, m, delta, l, and three residuals.

        The residuals are those of the score, shape (n, q order), of the curvature of x, and of that of x and the
        constant.
        """
        means, kappa, weight, first = self.reported_means, self.kappa, self.weight, int(self.kappa > 0)
        curvature = means.curvature - self.shift_of_curvature
        sigma, m = self.map @ covariance @ self.map.T, x_mean @ self.map.T + self.shift
        moved = coef @ self.inverse
        delta = moved - self.origin[:, 1:]
        line = intercept - moved @ self.shift - self.origin[:, 0] + matvec(delta, m)
        change = line[:, :, None] * m[:, None, :] + delta @ sigma
        square, linear = curvature[first:, first:] - weight * (sigma + m[:, :, None] * m[:, None, :]), np.zeros_like(m)
        constant: Any = 0.0
        if kappa:
            change = np.concatenate([kappa * line[:, :, None], change], axis=2)
            linear = curvature[0, 1:] - weight * kappa * m
            constant = weight * np.column_stack([np.full(len(m), kappa), m]) + self.shift_of_curvature[0] / kappa
            constant = self.base[:, None] * constant[:, None, :]
        expected = change.reshape(len(m), -1) @ self.secant.T
        constant = self.offset + constant * np.ones_like(change)
        residual = means.score.ravel() - expected - constant.reshape(expected.shape)
        return sigma, m, delta, line, residual, square, linear

    def discount(self, *arguments):
        """Give less weight to a round that contradicts the others at given parameters of shapes as below.

        The variances of score and curvature are multiplied such that the sum of squared standardised residuals is at
        most the 95 % quantile of its distribution.
        """
        *_, residual, square, linear = self._expected(*arguments)
        d, misfit = linear.shape[1], np.vecdot(residual, residual @ self.precision)[0]
        self.precision = self.precision / max(1.0, misfit / chi2.ppf(0.95, residual.shape[1]))
        misfit = (np.sum(square**2) + 2 * np.sum(linear**2)) / self.spread
        self.spread *= max(1.0, misfit / chi2.ppf(0.95, d * (d + 1) // 2 + d * (self.kappa > 0)))

    def value_and_gradients(self, covariance, x_mean, intercept, coef):
        """Return the log-likelihood, and its derivatives with respect to the arguments, in the model's frame.

        Shapes are (n, d, d), (n, d), (n, q) and (n, q, d).
        """
        kappa, weight, first = self.kappa, self.weight, int(self.kappa > 0)
        sigma, m, delta, line, residual, square, linear = self._expected(covariance, x_mean, intercept, coef)
        solved = residual @ self.precision
        value = -0.5 * np.vecdot(residual, solved) - 0.5 / self.spread * np.sum(square**2, axis=(1, 2))
        value -= np.vecdot(linear, linear) / self.spread
        by_square = weight / self.spread * square
        by_change = (solved @ self.secant).reshape(*line.shape, -1)
        along = by_change[:, :, first:]
        by_line = matvec(along, m) + (kappa * by_change[:, :, 0] if kappa else 0.0)
        by_covariance = by_square + along.swapaxes(1, 2) @ delta  # d Sigma
        by_mean = 2 * matvec(by_square, m) + 2 * weight * kappa / self.spread * linear  # d m
        by_mean += matvec(delta.swapaxes(1, 2), by_line) + matvec(along.swapaxes(1, 2), line)
        by_mean += weight * np.sum(self.base[:, None] * solved.reshape(by_change.shape)[:, :, first:], axis=1)
        by_delta = along @ sigma + by_line[:, :, None] * (m[:, None, :] - self.shift)
        return (value, self.map.T @ by_covariance @ self.map, by_mean @ self.map, by_line, by_delta @ self.inverse.T)


def _deviations(covariance, x, n_lines):
    """Return points whose mean and covariance are those of the predictors of x, less their means, shape (2q, n, q)."""
    extended = np.column_stack([np.ones(len(x)), x])
    blocks = covariance.reshape(n_lines, x.shape[1] + 1, n_lines, x.shape[1] + 1)
    values, vectors = np.linalg.eigh(np.einsum("na,iajb,nb->nij", extended, blocks, extended, optimize=True))
    roots = np.sqrt(n_lines * np.maximum(values, 0.0))[:, :, None] * vectors.swapaxes(1, 2)
    roots = roots.swapaxes(0, 1)
    return np.concatenate([roots, -roots])
