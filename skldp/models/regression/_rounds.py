"""Log-density of a regression of labels or counts, given the reports of several rounds."""

import copy
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import optimize
from scipy.special import ndtri
from scipy.stats import qmc

from skldp.exceptions import InvalidParameterError
from skldp.models.regression._base import RegressionModel, Units
from skldp.models.regression._coordinates import RegressionCoordinates
from skldp.models.regression._vector import MAX_RESIDUAL
from skldp.models.regression._prior import DefaultScales, check_regression_prior, priors_in_public_units
from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._round_likelihood import RoundLikelihood
from skldp.models.regression._round_reports import round_of
from skldp.protocols._moment_protocol import LabelMomentProtocol
from skldp.protocols._round_protocol import CountRoundProtocol, RoundProtocol, ScoreProtocol

__all__ = ["RoundModel"]

# Errors of the change of the score, and of the curvature of earlier rounds, as shares of their sizes, where predictors
# change by a standard deviation of 1 or more; in proportion below.
SCORE_ERROR, CURVATURE_ERROR = 0.3, 0.3
_CALIBRATIONS = 3
_LEAST = 1e-20  # of a weighted variance
_SHARE_OF_ERROR = 0.1
# The first search finds the neighbourhood of the mode from anywhere; the second one needs fewer steps close to it.
_SEARCHES: dict[str, dict] = {"L-BFGS-B": {"maxiter": 60}, "BFGS": {"maxiter": 500, "gtol": 1e-3}}
_LARGEST_CONDITION = 1e10  # of the transform of a round, whose inverse maps coefficients
_N_NORMALS = 256
_REACH = 1.5  # largest standard deviation of the change of predictors from round to round
_FARTHEST = 6.0  # likewise, from the last model to the mode: farther away all expected responses are at their bounds
# Protocols of later rounds, by that of the first one.
_LATER: dict[Any, Any] = {LabelMomentProtocol: RoundProtocol, RoundProtocol: RoundProtocol,
                          CountRoundProtocol: CountRoundProtocol}


class RoundModel(RegressionModel):
    r"""Regression of labels or counts from several rounds: coefficients and intercept, for any distribution of x.

    Parameters
    ----------
    rounds : list of Aggregate
        Reports of each round: of :class:`skldp.protocols.RoundProtocol`, or of
        :class:`skldp.protocols.CountRoundProtocol`. The first one of two labels may also be of
        :class:`skldp.protocols.LabelMomentProtocol`.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the parameters.

    Notes
    -----
    The likelihood of each round is a ``RoundLikelihood``: score and curvature at the model of that round. At the model
    that maximises the likelihood of all records the score is zero for any distribution of x; the distance from it
    follows from the curvature. All rounds have the same unknown :math:`\Sigma` and m, those of the last round, in
    whose coordinates the prior is that of :class:`skldp.RegressionPrior`. Predictors have independent priors: those of
    K labels are the coordinates of the K scores in a basis in which the log-odds of any two labels have the same prior
    as the log-odds of two labels.

    *Distance.* What a round tells far from its model depends on the distribution of x, for which points stand: normal
    x with the mean and covariance of the first round, in the unit ball, by quasi-Monte Carlo. For other
    distributions the score has an error, for which it has an additional variance. An earlier round that contradicts the
    others more than that gets larger variances; the last one, whose model is closest, never does. These variances are
    fixed at the mode; mode and variances are found in turn.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import RoundModel
    >>> from skldp.protocols import RoundProtocol
    >>> protocol = RoundProtocol(epsilon=1.0, n_features=2)
    >>> model = RoundModel([protocol.aggregate(protocol.privatize(np.zeros((100, 2)), np.zeros(100)))])
    >>> value, gradient = model.gradient(np.full((5, model.n_params), 0.1))
    >>> value.shape, gradient.shape
    ((5,), (5, 12))
    """

    def __init__(self, rounds, prior="auto"):
        _check_rounds(rounds)
        first, last = rounds[0].protocol, rounds[-1].protocol
        by_round = [[RoundLikelihood(part, tally) for part, tally in aggregate.parts.items() if tally.n_reports]
                    for aggregate in rounds]
        self.n_rounds, self.n_features, self.has_intercept = len(rounds), first.n_features, first.has_intercept
        self.last_round = round_of(last)
        self.response, self.frame = self.last_round.response, self.last_round.frame
        self.priors = priors_in_public_units(check_regression_prior(prior), DefaultScales(*self.response.typical),
                                             first.n_features, first.data_norm)
        likelihoods = [part for parts in by_round for part in parts]
        self.numbers = [number for number, parts in enumerate(by_round) for _ in parts]  # round of each likelihood
        self.last = [number == len(rounds) - 1 for number in self.numbers]
        super().__init__(likelihoods, None, Units(last.data_norm))
        self._calibrate(normal_draws(*moments_of_x(by_round[0], self.n_features)))

    def _settle(self, x):
        """Set the points of all rounds at x in public units, and return the matrix A at which they are x."""
        inside, counts = self.frame.inside(x), self.last_round.counts(x)
        shares = counts / max(counts.sum(), _LEAST)
        mean = shares @ inside if self.has_intercept else np.zeros(self.n_features)
        values, vectors = np.linalg.eigh(((inside - mean) * shares[:, None]).T @ (inside - mean))
        roots = np.sqrt(np.maximum(values, _LEAST))
        z = np.column_stack([np.ones(len(x)), (inside - mean) @ (vectors / roots) @ vectors.T])
        for part in self.likelihoods:
            part.settle(x, z, self.frame)
        self.ratio_scales = np.array([[part.ratio_scale for part in self.likelihoods]])
        return affine_of(mean[None], ((vectors * roots) @ vectors.T)[None])[0]

    def _calibrate(self, x):
        """Find the mode and what is fixed at it in turn, for points at x in public units at first."""
        affine, lines = self._settle(x), self.frame.lines
        self._set_coordinates(affine, lines)
        start = self.initial()
        for _ in range(_CALIBRATIONS):
            mode, coordinates = self._mode(start), self.coordinates
            affine, lines, ratios, _ = self._arguments(coordinates.expand(mode[None]), mode[None])
            self._set_coordinates(affine[0], lines[0])
            for part, ratio, is_last in zip(self.likelihoods, ratios, self.last):
                if not is_last:
                    part.discount(affine, lines, ratio)
            start = self.coordinates.convert(mode[None], coordinates)[0]

    def _set_coordinates(self, affine, lines):
        for part, is_last in zip(self.likelihoods, self.last):
            part.calibrate(affine, lines, SCORE_ERROR, 0.0 if is_last else CURVATURE_ERROR)
        q, last = self.response.n_lines, [part for part, is_last in zip(self.likelihoods, self.last) if is_last]
        information = self._mean_information()
        self.reported = ReportedMoments.pooled([part.reported(affine, information / len(last)) for part in last],
                                               self.n_features, q)
        self.coordinates = RoundCoordinates(
            self.n_rounds, [self.priors] * q, self.has_intercept, self.reported,
            centre=lines[:, 0] + self.reported.mean[-q:], offsets=list(lines[:, 1:]))

    def _mean_information(self):
        """Return the inverse variance of an entry of the mean of x, by the last reports that have a curvature."""
        told = [(number, part) for number, part in zip(self.numbers, self.likelihoods) if part.has_curvature]
        return sum(part.mean_information(self.frame) for number, part in told if number == told[-1][0])

    def with_round(self, place, aggregate):
        """Return the same model with other reports in one round, and everything that was calibrated as it is."""
        model = copy.copy(self)
        model.likelihoods = [part.updated(aggregate) if number == place else part
                             for number, part in zip(self.numbers, self.likelihoods)]
        return model

    def _mode(self, start):
        """Return a point near the mode: what is fixed there barely depends on where exactly it is."""
        def loss(theta):
            """Return the negative log-density and its gradient."""
            value, gradient = self.gradient(theta[None])
            possible = np.isfinite(value[0]) and self._change(theta[None]) < _FARTHEST
            return (-value[0], -gradient[0]) if possible else (1e100, np.zeros_like(theta))

        for method, options in _SEARCHES.items():
            start = optimize.minimize(loss, start, jac=True, method=method, options=options).x
        return start

    def _change(self, theta):
        """Return the standard deviation by which predictors change from the model of the last round."""
        affine, lines, *_ = self._arguments(self.coordinates.expand(theta), theta)
        return np.linalg.norm(((lines - self.frame.lines) @ affine)[:, :, 1:])

    def mode(self):
        """Return the coordinates of the mode, shape (1, n_params)."""
        return self._mode(self.initial())[None]

    def next_lines(self):
        """Return the model to publish next, in public units, with a row (intercept, coefficients) for each predictor.

        It is the mode, but predictors change by a standard deviation of at most 1.5: where a model is too steep,
        records have little curvature, and the reports of its round would say little.
        """
        theta = self.mode()
        affine, lines, *_ = self._arguments(self.coordinates.expand(theta), theta)
        return self.frame.in_public_units(self.likelihoods[-1].within_reach(affine, lines, _REACH)[0])

    def initial(self):
        """Return the conditional means given the reported covariance of x."""
        d = self.n_features
        return self.coordinates.start(self.reported.covariance[:d, :d])

    def gradient(self, theta):
        """Return the log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._within_bounds(self._evaluate, theta, True)

    def _arguments(self, point, theta):
        """Return the matrix A, the lines and the ratios of mean curvatures, and the eigenvalues behind A."""
        n, q = len(theta), self.response.n_lines
        values, vectors = point.vector.values, point.vector.vectors
        roots = np.sqrt(np.maximum(values, _LEAST))
        affine = affine_of(point.x_mean, (vectors * roots[:, None, :]) @ vectors.swapaxes(1, 2))
        lines = np.zeros((n, q, self.n_features + 1))
        lines[:, :, 1:] = point.coef.reshape(n, q, -1)
        if point.intercept is not None:
            lines[:, :, 0] = point.intercept.reshape(n, q)
        ratios = [np.exp(part.ratio_scale * theta[:, self.coordinates.ratios][:, number])
                  for number, part in zip(self.numbers, self.likelihoods)]
        return affine, lines, ratios, roots

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        affine, lines, ratios, roots = self._arguments(point, theta)
        free = theta[:, self.coordinates.ratios]
        value = point.log_prior() - 0.5 * np.vecdot(free, free)
        if not with_gradient:
            parts = zip(self.likelihoods, ratios)
            return value + sum(part.value(affine, lines, ratio) for part, ratio in parts), None
        by_affine, by_lines, by_free = np.zeros_like(affine), np.zeros_like(lines), -free
        for number, part, ratio in zip(self.numbers, self.likelihoods, ratios):
            own, own_affine, own_lines, by_ratio = part.value_and_gradients(affine, lines, ratio)
            value, by_affine, by_lines = value + own, by_affine + own_affine, by_lines + own_lines
            by_free[:, number] += part.ratio_scale * ratio * by_ratio
        by_covariance = _by_square(by_affine[:, 1:, 1:], roots, point.vector.vectors)
        by_coef = by_lines[:, :, 1:].reshape(point.coef.shape)
        if point.x_mean is None:
            return value, np.column_stack([point.gradient(by_coef, by_covariance), by_free])
        return value, np.column_stack([
            point.gradient(by_coef, by_covariance, by_affine[:, 1:, 0],
                           by_lines[:, :, 0].reshape(point.intercept.shape)), by_free])

    def constrain(self, theta):
        """Return the natural parameters by name, in the units of the data."""
        params, frame, rows = super().constrain(theta), self.frame, self.response.rows
        # Units are those of x in the frame; the frame is left last.
        inverse = np.linalg.inv(frame.transform)
        params["coef"] = params["coef"] @ frame.transform
        params["covariance"] = inverse @ params["covariance"] @ inverse.T
        if "x_mean" in params:
            params["x_mean"] = params["x_mean"] @ inverse.T + self.units.x * frame.centre
            params["intercept"] = params["intercept"] - params["coef"] @ (self.units.x * frame.centre)
            params["intercept"] = rows(params["intercept"][..., None])[..., 0]
        params["coef"] = rows(params["coef"])
        return params

    def prior_coef_std(self, covariance):
        """Return the prior standard deviations of the coefficients given covariances of x, shape (n, d, d)."""
        transform = self.frame.transform
        relative = self._relative_prior_covariance(transform @ covariance @ transform.T)
        variances = np.diagonal(transform.T @ relative @ transform, axis1=1, axis2=2)
        std = self.priors.coef_scale / self.units.x * np.sqrt(variances)
        q = self.response.n_lines
        lengths = np.linalg.norm(self.response.rows(np.eye(q)), axis=1)  # rows are sums of independent predictors
        return std if q == 1 else lengths[:, None] * std[:, None, :]


def _check_rounds(rounds):
    """Refuse rounds of other kinds or of other records than the first one, and coordinates that are not invertible."""
    protocols = [aggregate.protocol for aggregate in rounds]
    kinds = [type(protocol) for protocol in protocols]
    if not kinds or kinds[0] not in _LATER or kinds[1:] != [_LATER[kinds[0]]] * (len(kinds) - 1):
        raise InvalidParameterError("rounds must be aggregates of RoundProtocol (the first one may be of "
                                    "LabelMomentProtocol) or of CountRoundProtocol; got "
                                    f"{[kind.__name__ for kind in kinds]}.")
    if isinstance(protocols[0], ScoreProtocol) and not protocols[0].curvature_weight:
        raise InvalidParameterError("The first round must tell the curvature, from which the moments of x are known. "
                                    "Publish one with a curvature_weight above 0.")
    response = "bounds_y" if kinds[0] is CountRoundProtocol else "classes"
    same = {name: [getattr(protocol, name) for protocol in protocols]
            for name in ("n_features", "data_norm", response, "has_intercept")}
    same["response"] = [type(round_of(protocol).response).__name__ for protocol in protocols]
    for name, values in same.items():
        if values != values[:1] * len(values):
            raise InvalidParameterError(f"Rounds must ask for the same records, but {name} is {values}.")
    for protocol in protocols:
        if not np.linalg.cond(round_of(protocol).frame.transform) < _LARGEST_CONDITION:
            raise InvalidParameterError("The transform of a round must be invertible. Publish another one.")


def moments_of_x(parts, n_features):
    """Return mean and covariance of x in public units from the curvature of a round whose model has no coefficients.

    Eigenvalues of the covariance that are below their standard error are a small share of it.
    """
    if not parts:
        return np.zeros(n_features), np.eye(n_features) / (4 * n_features)
    frame, kappa = parts[0].frame, parts[0].kappa
    weight = parts[0].round.counts(frame.centre[None])[0]
    precision = np.array([1 / part.curvature_variance for part in parts])
    curvature = np.tensordot(precision / precision.sum(), [part.reported_means.curvature for part in parts], 1)
    first = int(kappa > 0)
    second, mean = curvature[first:, first:] / weight, np.zeros(n_features)
    if kappa:
        mean = np.clip(curvature[0, 1:] / (kappa * weight), -0.5, 0.5)
    error = np.sqrt(2 * len(curvature) / precision.sum()) / weight
    values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
    values[values < error] = _SHARE_OF_ERROR * error
    values = np.minimum(values, 1.0)
    inverse = np.linalg.inv(frame.transform)
    return inverse @ mean + frame.centre, inverse @ (vectors * values) @ vectors.T @ inverse.T


def affine_of(mean, root):
    """Return the matrix that maps (1, z) to (1, m + Rz), for every walker."""
    affine = np.zeros((len(root), root.shape[1] + 1, root.shape[1] + 1))
    affine[:, 0, 0], affine[:, 1:, 1:] = 1.0, root
    if mean is not None:
        affine[:, 1:, 0] = mean
    return affine


def _by_square(by_root, roots, vectors):
    """Return the derivative by a matrix, for that by its symmetric root, which has given eigenvalues."""
    inside = vectors.swapaxes(1, 2) @ by_root @ vectors
    inside = (inside + inside.swapaxes(1, 2)) / 2 / (roots[:, :, None] + roots[:, None, :])
    return vectors @ inside @ vectors.swapaxes(1, 2)


class RoundCoordinates(RegressionCoordinates):
    """Coordinates of a regression in rounds: those of a regression, and one for the mean curvature of each round."""

    def __init__(self, n_rounds, *arguments, **options):
        super().__init__(*arguments, **options)
        self.ratios = slice(self.n_params, self.n_params + n_rounds)
        self.n_params += n_rounds
        self.limits = np.append(self.limits, np.full(n_rounds, MAX_RESIDUAL))

    def convert(self, theta, other):
        """Return these coordinates of points in other coordinates of the same parameters."""
        found = super().convert(theta, other)
        found[:, self.ratios] = theta[:, other.ratios]
        return found


def normal_draws(mean, covariance):
    """Return quasi-random normal draws, clipped to the unit ball as records are."""
    values, vectors = np.linalg.eigh(covariance)
    draws = mean + _normals(len(mean)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    return draws / np.maximum(1.0, np.linalg.norm(draws, axis=1, keepdims=True))


@lru_cache(maxsize=8)
def _normals(n_features):
    """Quasi-random standard normal vectors, always the same ones."""
    points = qmc.Sobol(n_features, scramble=False).random(_N_NORMALS)
    return ndtri(points + 0.5 / _N_NORMALS)  # the centres of cells, of which the first begins at 0
