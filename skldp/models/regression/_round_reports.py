"""What the reports of one round tell: frame and response of its protocol, mean score and curvature of its reports."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldp.models.regression._moment_likelihoods import LEAST_NOISE
from skldp.protocols._moment_protocol import LabelMomentProtocol
from skldp.protocols._responses import Response, labels_of
from skldp.protocols._round_protocol import CountRoundProtocol, RoundProtocol


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

    def inside(self, x):
        """Return x in this frame, for x in public units."""
        return (x - self.centre) @ self.transform.T

    def extended_from(self, other, intercept_weight):
        """Return the matrix that maps (1, x) in another frame to (intercept weight, x) in this one."""
        map_ = self.transform @ np.linalg.inv(other.transform)
        shift = self.transform @ (other.centre - self.centre)
        rows = np.column_stack([shift, map_])
        return np.vstack([intercept_weight * np.eye(1, rows.shape[1]), rows]) if intercept_weight else rows


@dataclass(frozen=True)
class Round:
    """The public part of a round.

    ``evaluate`` maps records in public units to (constant, x) in the frame, mean response, curvature and weight, as
    that of :class:`skldp.protocols.RoundProtocol`.
    """

    frame: Frame
    response: Response
    intercept_weight: float
    evaluate: Callable

    def counts(self, x):
        """Return how much records count, weight times curvature, for x in public units."""
        _, _, curvature, weight = self.evaluate(x)
        return weight * curvature


@dataclass(frozen=True)
class Reported:
    """Unbiased means of one cohort of a round, and the variances of the noise of one report.

    ``score`` has shape (q, order). ``curvature`` is None where it was not asked. ``curvature_noise`` is the variance of
    a diagonal entry; entries beside the diagonal have half of it.
    """

    score: np.ndarray
    curvature: np.ndarray | None
    score_noise: float
    curvature_noise: float


def _moment_round(protocol):
    """Moments of labels -1 and 1 are score and curvature at the model zero, where every label has probability 1/2."""
    d, kappa = protocol.n_features, protocol.randomizer.intercept_weight

    def evaluate(x):
        """Return the parts of a record at the model zero."""
        extended = np.column_stack([np.full(len(x), kappa), x]) if kappa else x
        return extended, np.zeros((len(x), 1)), np.full(len(x), 0.25), np.ones(len(x))

    return Round(Frame(np.eye(d), np.zeros(d), np.zeros((1, d + 1))), labels_of(2), kappa, evaluate)


def _score_round(protocol):
    transform, centre = protocol.frame
    return Round(Frame(transform, centre, protocol.lines), protocol.response, protocol.intercept_weight,
                 protocol.evaluate)


def _moments(protocol, tally):
    """Score and curvature at the model zero. Noise that depends on records is averaged over entries of each."""
    mechanism = protocol.randomizer
    reported = mechanism.matrix(protocol.mean_moments(tally))
    values, vectors = np.linalg.eigh(reported)
    theta, units = (vectors * np.maximum(values, 0.0)) @ vectors.T, np.eye(len(reported))
    noise, w, label = mechanism.noise, mechanism.y_weight, units[-1]
    score = np.mean(noise.variance(units[:-1], label, theta))
    curvature = np.mean([noise.variance(one[None], one, theta) for one in units[:-1]])
    return Reported(reported[None, :-1, -1] / (2 * w), reported[:-1, :-1] / 4,
                    max(score / (4 * w**2), LEAST_NOISE), max(curvature / 16, LEAST_NOISE))


def _score(protocol, tally):
    noise, weight = max(protocol.randomizer.noise_variance, LEAST_NOISE), protocol.curvature_weight
    score, curvature = protocol.mean_report(tally)
    return Reported(score, curvature, noise, noise / weight**2 if weight else np.inf)


_ROUNDS: dict[type, Any] = {LabelMomentProtocol: _moment_round, RoundProtocol: _score_round,
                            CountRoundProtocol: _score_round}
_REPORTED: dict[type, Any] = {LabelMomentProtocol: _moments, RoundProtocol: _score, CountRoundProtocol: _score}


def round_of(protocol):
    """Return the public part of a round."""
    return _ROUNDS[type(protocol)](protocol)


def reported_of(protocol, tally):
    """Return what the reports of a cohort of a round tell."""
    return _REPORTED[type(protocol)](protocol, tally)
