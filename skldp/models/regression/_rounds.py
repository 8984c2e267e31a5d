"""Log-density of a logistic regression, given the reports of several rounds."""

import copy
from functools import lru_cache

import numpy as np
from scipy import optimize
from scipy.special import expit, ndtri
from scipy.stats import qmc

from skldp.exceptions import InvalidParameterError
from skldp.models.regression._base import RegressionModel, Units
from skldp.models.regression._coordinates import RegressionCoordinates
from skldp.models.regression._logistic_coordinates import logistic_priors
from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._round_likelihood import RoundLikelihood, frame_of
from skldp.protocols._moment_protocol import LabelMomentProtocol
from skldp.protocols._round_protocol import RoundProtocol

__all__ = ["RoundModel"]

# Errors of the linear relation between score and distance, and of the curvature of earlier rounds, as shares of their
# sizes, where the log-odds change by 1 or more; in proportion below.
SCORE_ERROR, CURVATURE_ERROR = 0.3, 0.3
_LEAST_RATIO, _LARGEST_RATIO = 0.2, 1.5
_CALIBRATIONS = 3
_STEPS = 100  # of each search for the mode
_LARGEST_CONDITION = 1e10  # of the transform of a round, whose inverse maps coefficients
_N_NORMALS = 1024


class RoundModel(RegressionModel):
    r"""Logistic regression from several rounds: coefficients and intercept, for any distribution of x.

    Parameters
    ----------
    rounds : list of Aggregate
        Reports of each round: of :class:`skldp.protocols.LabelMomentProtocol` in the first, and of
        :class:`skldp.protocols.RoundProtocol` in the others.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the parameters.

    Notes
    -----
    The likelihood of each round is a ``RoundLikelihood``: score and curvature at the model of that round. At the model
    that maximises the likelihood of all records the score is zero for any distribution of x; the distance from it
    follows from the curvature. All rounds have the same unknown :math:`\Sigma` and m, those of the last round, in
    whose coordinates the prior is that of :class:`skldp.RegressionPrior`.

    *Ratio of secant to tangent.* A score at distance :math:`\delta` is smaller than curvature times :math:`\delta`
    where probabilities approach 0 or 1. The factor :math:`\phi` is that of normal x with the mean and covariance of the
    first round, by quasi-Monte Carlo, at the mode; mode and factor are found in turn. For other distributions of x it
    has an error, for which the score has an additional variance.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import RoundModel
    >>> from skldp.protocols import LabelMomentProtocol
    >>> protocol = LabelMomentProtocol(epsilon=1.0, n_features=2)
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
        self.priors = logistic_priors(prior, first)
        self.frame, self.last = frame_of(last), by_round[-1]
        likelihoods = [part for parts in by_round for part in parts]
        self.numbers = [number for number, parts in enumerate(by_round) for _ in parts]  # round of each likelihood
        for part in likelihoods:
            part.place(self.frame)
        super().__init__(likelihoods, None, Units(last.data_norm))
        self._calibrate(ReportedMoments.pooled([part.reported(self.n_features) for part in by_round[0]],
                                               self.n_features))

    def _calibrate(self, first):
        """Find the mode and the factors of all rounds in turn, for normal x with the moments of the first round."""
        theta = self.frame.in_public_units(self.frame.theta)
        self._set_coordinates(theta, np.ones(len(self.likelihoods)), np.full(len(self.likelihoods), 0.25))
        x = _normal_draws(first.mean[:-1], first.covariance[:-1, :-1])
        start = self.initial()
        for _ in range(_CALIBRATIONS):
            mode, coordinates = self._mode(start), self.coordinates
            point = coordinates.expand(mode[None])
            theta = self.frame.in_public_units(np.append(0.0 if point.intercept is None else point.intercept[0],
                                                         point.coef[0]))
            found = [secant_ratio(x, theta, part.frame) for part in self.likelihoods]
            self._set_coordinates(theta, [ratio for ratio, _ in found], [weight for _, weight in found])
            start = self.coordinates.convert(mode[None], coordinates)[0]

    def _set_coordinates(self, theta, ratios, weights):
        for part, ratio, weight in zip(self.likelihoods, ratios, weights):
            error = 0.0 if part in self.last else CURVATURE_ERROR
            part.calibrate(theta, ratio, weight, SCORE_ERROR, error)
        self.reported = ReportedMoments.pooled([part.reported(self.n_features) for part in self.last], self.n_features)
        centre = self.frame.theta[0] + self.reported.mean[-1]
        self.coordinates = RegressionCoordinates(self.priors, self.has_intercept, self.reported, centre=centre,
                                                 offsets=[self.frame.theta[1:]])

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
        return self.coordinates.start(self.reported.covariance[:-1, :-1])

    def gradient(self, theta):
        """Return the log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._within_bounds(self._evaluate, theta, True)

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        arguments = point.covariance, point.x_mean, point.intercept, point.coef
        if point.x_mean is None:
            arguments = point.covariance, np.zeros_like(point.coef), np.zeros(len(theta)), point.coef
        totals = [point.log_prior(), *map(np.zeros_like, arguments)]
        for part in self.likelihoods:
            totals = [total + term for total, term in zip(totals, part.value_and_gradients(*arguments))]
        value, by_covariance, by_mean, by_intercept, by_coef = totals
        if not with_gradient:
            return value, None
        if point.x_mean is None:
            return value, point.gradient(by_coef, by_covariance)
        return value, point.gradient(by_coef, by_covariance, by_mean, by_intercept)

    def constrain(self, theta):
        """Return the natural parameters by name, in the units of the data."""
        params, frame = super().constrain(theta), self.frame
        # Units are those of x in the frame; the frame is left last.
        inverse = np.linalg.inv(frame.transform)
        params["coef"] = params["coef"] @ frame.transform
        params["covariance"] = inverse @ params["covariance"] @ inverse.T
        if "x_mean" in params:
            params["x_mean"] = params["x_mean"] @ inverse.T + self.units.x * frame.centre
            params["intercept"] = params["intercept"] - params["coef"] @ (self.units.x * frame.centre)
        return params

    def prior_coef_std(self, covariance):
        """Return the prior standard deviations of the coefficients given covariances of x, shape (n, d, d)."""
        transform = self.frame.transform
        relative = self._relative_prior_covariance(transform @ covariance @ transform.T)
        variances = np.diagonal(transform.T @ relative @ transform, axis1=1, axis2=2)
        return self.priors.coef_scale / self.units.x * np.sqrt(variances)


def _check_rounds(rounds):
    """Refuse rounds of other kinds or of other records than the first one, and coordinates that are not invertible."""
    kinds = [LabelMomentProtocol, *[RoundProtocol] * (len(rounds) - 1)]
    protocols = [aggregate.protocol for aggregate in rounds]
    if [type(protocol) for protocol in protocols] != kinds:
        raise InvalidParameterError("rounds must be one aggregate of LabelMomentProtocol, then aggregates of "
                                    f"RoundProtocol; got {[type(protocol).__name__ for protocol in protocols]}.")
    for name in ("n_features", "data_norm", "classes", "has_intercept"):
        values = [getattr(protocol, name) for protocol in protocols]
        if values != values[:1] * len(values):
            raise InvalidParameterError(f"Rounds must ask for the same records, but {name} is {values}.")
    for protocol in protocols[1:]:
        if not np.linalg.cond(frame_of(protocol).transform) < _LARGEST_CONDITION:
            raise InvalidParameterError("The transform of a round must be invertible. Publish another one.")


def secant_ratio(x, theta, frame):
    """Return the ratio of the score at the model of a round to its linear approximation, and the mean curvature.

    Parameters
    ----------
    x : ndarray of shape (n, d)
        Draws of x in public units.
    theta : ndarray of shape (d + 1,)
        Intercept and coefficients in public units.
    frame : Frame
        The frame of the round.

    Returns
    -------
    ratio, weight : float
    """
    own = frame.in_public_units(frame.theta)
    extended = np.column_stack([np.ones(len(x)), x])
    at, change = extended @ own, extended @ (theta - own)
    curvature = expit(at) * expit(-at)
    score = (expit(at + change) - expit(at)) @ extended
    tangent = (curvature * change) @ extended
    # In the metric of the curvature, which does not depend on the coordinates of x.
    solved = np.linalg.lstsq((extended * curvature[:, None]).T @ extended, tangent, rcond=None)[0]
    size = tangent @ solved
    ratio = score @ solved / size if size > 1e-9 * len(x) else 1.0
    return float(np.clip(ratio, _LEAST_RATIO, _LARGEST_RATIO)), float(curvature.mean())


def _normal_draws(mean, covariance):
    values, vectors = np.linalg.eigh(covariance)
    return mean + _normals(len(mean)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T


@lru_cache(maxsize=8)
def _normals(n_features):
    """Quasi-random standard normal vectors, always the same ones."""
    points = qmc.Sobol(n_features, scramble=False).random(_N_NORMALS)
    return ndtri(points + 0.5 / _N_NORMALS)  # the centres of cells, of which the first begins at 0
