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
from skldp.models.regression._prior import DefaultScales, check_regression_prior, priors_in_public_units
from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._round_likelihood import RoundLikelihood, frame_of
from skldp.protocols._moment_protocol import LabelMomentProtocol
from skldp.protocols._responses import labels_of
from skldp.protocols._round_protocol import CountRoundProtocol, RoundProtocol

__all__ = ["RoundModel"]

# Errors of the linear relation between score and distance, and of the curvature of earlier rounds, as shares of their
# sizes, where the predictors change by 1 or more; in proportion below.
SCORE_ERROR, CURVATURE_ERROR = 0.3, 0.3
_CALIBRATIONS = 3
_LEAST_INFORMATION = 0.01  # of a coordinate that is nearly standard normal; smaller only if the search failed
_STEPS = 100  # of each search for the mode
_LARGEST_CONDITION = 1e10  # of the transform of a round, whose inverse maps coefficients
_N_NORMALS = 1024
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

    *Secants.* A score at distance :math:`\delta` is not curvature times :math:`\delta`, because the curvature changes
    on the way, and records count by another curvature in each round. Both are taken from normal x with the mean and
    covariance of the first round, in the unit ball, by quasi-Monte Carlo, at the mode; mode and mean curvature are
    found in turn. For other distributions of x they have an error, for which the score has an additional variance. An
    earlier round that contradicts the others more than that gets larger variances; the last one, whose model is
    closest, never does.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import RoundModel
    >>> from skldp.protocols import RoundProtocol
    >>> protocol = RoundProtocol(epsilon=1.0, n_features=2)
    >>> model = RoundModel([protocol.aggregate(protocol.privatize(np.zeros((100, 2)), np.zeros(100)))])
    >>> value, gradient = model.gradient(np.full((5, model.n_params), 0.1))
    >>> value.shape, gradient.shape
    ((5,), (5, 11))
    """

    def __init__(self, rounds, prior="auto"):
        _check_rounds(rounds)
        first, last = rounds[0].protocol, rounds[-1].protocol
        by_round = [[RoundLikelihood(part, tally) for part, tally in aggregate.parts.items() if tally.n_reports]
                    for aggregate in rounds]
        self.n_features, self.has_intercept = first.n_features, first.has_intercept
        self.response = response_of(last)
        self.priors = priors_in_public_units(check_regression_prior(prior), DefaultScales(*self.response.typical),
                                             first.n_features, first.data_norm)
        self.frame, self.last = frame_of(last), by_round[-1]
        likelihoods = [part for parts in by_round for part in parts]
        self.numbers = [number for number, parts in enumerate(by_round) for _ in parts]  # round of each likelihood
        for part in likelihoods:
            part.place(self.frame)
        super().__init__(likelihoods, None, Units(last.data_norm))
        x = _normal_draws(np.zeros(self.n_features), np.eye(self.n_features) / (4 * self.n_features))
        for part in by_round[0]:
            part.estimate_weight(x)
        x = _normal_draws(*_moments_of_x(by_round[0], self.n_features))
        for part in likelihoods:
            part.estimate_weight(x)
        self._expand_at_mean_response(by_round[0])
        self._calibrate(x)

    def _expand_at_mean_response(self, parts):
        """Expand the first round at the model without coefficients that has the reported mean response."""
        if not parts or not self.has_intercept or parts[0].frame.lines[:, 1:].any():
            return
        counts = np.array([part.n_reports / part.reported_means.score_noise for part in parts])
        mean = counts @ [part.mean_response() for part in parts] / counts.sum()
        for part in parts:
            part.origin = np.zeros_like(part.frame.lines)
            part.origin[:, 0] = self.response.constant(mean)

    def _calibrate(self, x):
        """Find the mode and the relations of all rounds in turn, for normal x with the moments of the first round."""
        lines = self.frame.in_public_units(self.last[0].origin if self.last else self.frame.lines)
        self._set_coordinates(lines, np.zeros((lines.size, lines.size)), x)
        start = self.initial()
        for _ in range(_CALIBRATIONS):
            mode, coordinates = self._mode(start), self.coordinates
            point = coordinates.expand(mode[None])
            lines, covariance = self._lines(mode)
            self._set_coordinates(lines, covariance, x)
            for part in self.likelihoods:
                if part not in self.last:
                    part.discount(*self._arguments(point))
            start = self.coordinates.convert(mode[None], coordinates)[0]

    def _lines(self, mode):
        """Return lines in public units at the mode, and their covariance given that of x.

        The log-density is quadratic in the coordinates of coefficients and intercepts, and these are linear in them.
        """
        pieces = self.coordinates.pieces
        free = np.r_[pieces[0], pieces[3]]
        points = np.vstack([mode, mode + np.eye(len(mode))[free]])
        _, gradient = self.gradient(points)
        information = (gradient[0] - gradient[1:])[:, free]
        point, q = self.coordinates.expand(points), self.response.n_lines
        coef = point.coef.reshape(len(points), q, -1)
        constant = np.zeros((len(points), q)) if point.intercept is None else point.intercept.reshape(-1, q)
        found = [self.frame.in_public_units(np.column_stack(line)) for line in zip(constant, coef)]
        change = np.reshape(found[1:], (len(free), -1)) - found[0].ravel()
        values, vectors = np.linalg.eigh((information + information.T) / 2)
        change = vectors.T @ change
        return found[0], change.T @ (change / np.maximum(values, _LEAST_INFORMATION)[:, None])

    def _set_coordinates(self, lines, covariance, x):
        for part in self.likelihoods:
            part.calibrate(lines, covariance, x, self.last[0] if self.last else part, SCORE_ERROR,
                           0.0 if part in self.last else CURVATURE_ERROR)
        q, origin = self.response.n_lines, self.last[0].origin if self.last else self.frame.lines
        found = [part.reported(self.n_features) for part in self.last]
        self.reported = ReportedMoments.pooled(found, self.n_features, q)
        centre = origin[:, 0] + self.reported.mean[-q:]
        self.coordinates = RegressionCoordinates([self.priors] * q, self.has_intercept, self.reported, centre=centre,
                                                 offsets=list(origin[:, 1:]))

    def with_round(self, place, aggregate):
        """Return the same model with other reports in one round, and everything that was calibrated as it is."""
        model = copy.copy(self)
        model.likelihoods = [part.updated(aggregate) if number == place else part
                             for number, part in zip(self.numbers, self.likelihoods)]
        return model

    def _mode(self, start):
        """Return a point near the mode: the factors barely depend on where exactly it is."""
        def loss(theta):
            """Return the negative log-density and its gradient."""
            value, gradient = self.gradient(theta[None])
            return (-value[0], -gradient[0]) if np.isfinite(value[0]) else (1e100, np.zeros_like(theta))

        return optimize.minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": _STEPS}).x

    def initial(self):
        """Return the conditional means given the reported covariance of x."""
        d = self.n_features
        return self.coordinates.start(self.reported.covariance[:d, :d])

    def gradient(self, theta):
        """Return the log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._within_bounds(self._evaluate, theta, True)

    def _arguments(self, point):
        """Return covariance and mean of x, intercepts and coefficients, for the likelihoods."""
        n, q = len(point.covariance), self.response.n_lines
        coef = point.coef.reshape(n, q, self.n_features)
        if point.x_mean is None:
            return point.covariance, np.zeros((n, self.n_features)), np.zeros((n, q)), coef
        return point.covariance, point.x_mean, point.intercept.reshape(n, q), coef

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        arguments = self._arguments(point)
        totals = [point.log_prior(), *map(np.zeros_like, arguments)]
        for part in self.likelihoods:
            totals = [total + term for total, term in zip(totals, part.value_and_gradients(*arguments))]
        value, by_covariance, by_mean, by_intercept, by_coef = totals
        if not with_gradient:
            return value, None
        by_coef = by_coef.reshape(point.coef.shape)
        if point.x_mean is None:
            return value, point.gradient(by_coef, by_covariance)
        return value, point.gradient(by_coef, by_covariance, by_mean, by_intercept.reshape(point.intercept.shape))

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


def response_of(protocol):
    """Return the response of the reports of a round."""
    return labels_of(2) if isinstance(protocol, LabelMomentProtocol) else protocol.response


def _check_rounds(rounds):
    """Refuse rounds of other kinds or of other records than the first one, and coordinates that are not invertible."""
    protocols = [aggregate.protocol for aggregate in rounds]
    kinds = [type(protocol) for protocol in protocols]
    if not kinds or kinds[0] not in _LATER or kinds[1:] != [_LATER[kinds[0]]] * (len(kinds) - 1):
        raise InvalidParameterError("rounds must be aggregates of RoundProtocol (the first one may be of "
                                    "LabelMomentProtocol) or of CountRoundProtocol; got "
                                    f"{[kind.__name__ for kind in kinds]}.")
    response = "bounds_y" if kinds[0] is CountRoundProtocol else "classes"
    same = {name: [getattr(protocol, name) for protocol in protocols]
            for name in ("n_features", "data_norm", response, "has_intercept")}
    same["response"] = [type(response_of(protocol)).__name__ for protocol in protocols]
    for name, values in same.items():
        if values != values[:1] * len(values):
            raise InvalidParameterError(f"Rounds must ask for the same records, but {name} is {values}.")
    for protocol in protocols:
        if not np.linalg.cond(frame_of(protocol).transform) < _LARGEST_CONDITION:
            raise InvalidParameterError("The transform of a round must be invertible. Publish another one.")


def _moments_of_x(parts, n_features):
    """Return mean and covariance of x in public units from the curvature of a round whose model has no coefficients.

    Eigenvalues of the covariance that are below their standard error are set to zero.
    """
    if not parts:
        return np.zeros(n_features), np.eye(n_features) / (4 * n_features)
    found = [part.reported(n_features) for part in parts]
    pooled = ReportedMoments.pooled(found, n_features, found[0].n_responses)
    mean, second = pooled.mean[:n_features], pooled.second[:n_features, :n_features]
    error = np.sum([(part.weight / part.curvature_error) ** 2 for part in parts]) ** -0.5
    values, vectors = np.linalg.eigh(second - np.outer(mean, mean))
    values[values < error] = 0.0
    inverse = np.linalg.inv(parts[0].frame.transform)
    return inverse @ mean + parts[0].frame.centre, inverse @ (vectors * values) @ vectors.T @ inverse.T


def _normal_draws(mean, covariance):
    """Return quasi-random normal draws, clipped to the unit ball as records are."""
    values, vectors = np.linalg.eigh(covariance)
    draws = mean + _normals(len(mean)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
    return draws / np.maximum(1.0, np.linalg.norm(draws, axis=1, keepdims=True))


@lru_cache(maxsize=8)
def _normals(n_features):
    """Quasi-random standard normal vectors, always the same ones."""
    points = qmc.Sobol(n_features, scramble=False).random(_N_NORMALS)
    return ndtri(points + 0.5 / _N_NORMALS)  # the centres of cells, of which the first begins at 0
