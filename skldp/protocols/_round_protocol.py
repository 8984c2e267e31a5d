"""Protocols of a round: score and curvature of each client's log-likelihood at a public model."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skldp._validation._door import as_floats
from skldp._validation._limits import MAX_CLASSES, MAX_ENTRIES, MAX_FEATURES
from skldp._validation._parameters import check_choice, check_integer, check_length, check_real
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._encoding import clip_to_unit_ball
from skldp.mechanisms._randomized_response import replace_unknown
from skldp.privacy._radii import score_radius
from skldp.privacy._sensitivity import check_nonnegative
from skldp.protocols._possible_sums import column_sums
from skldp.protocols._regression_protocol import LabelledProtocol, RegressionProtocol
from skldp.protocols._responses import LINKS, Counts, Response
from skldp.protocols._tallies import Tally
from skldp.protocols._vector_reports import MECHANISMS, possible_vector_sums, vector_directions, vector_effects

MOST_COUNTS = 10**6


@dataclass(frozen=True, kw_only=True)
class ScoreProtocol(RegressionProtocol):
    """Base class of the protocols of a round, for any response."""

    mechanism: str = "sphere"
    theta: tuple = ()
    centre: tuple = ()
    transform: tuple = ()
    intercept_weight: float = 0.3
    curvature_weight: float = 1.0

    @property
    @abstractmethod
    def response(self) -> Response:
        """The response: its mean and curvature given linear predictors."""

    def _check_model(self):
        weight = check_nonnegative(self.intercept_weight, "intercept_weight")
        object.__setattr__(self, "intercept_weight", weight)
        object.__setattr__(self, "curvature_weight", check_nonnegative(self.curvature_weight, "curvature_weight"))
        d, q = self.n_features, self.response.n_lines
        if self._n_entries > MAX_ENTRIES:
            raise InvalidParameterError(f"n_features={d} means a report of {self._n_entries} entries, and it may have "
                                        f"{MAX_ENTRIES}. Send fewer features.")
        for name, size in (("theta", q * (d + 1)), ("centre", d), ("transform", d * d)):
            object.__setattr__(self, name, _numbers(getattr(self, name), name, size))
        if not weight and (any(self.centre) or self.lines[:, 0].any()):
            raise InvalidParameterError("Without an intercept, centre and the first entries of theta must be zero.")
        randomizer = self.randomizer  # an impossible budget raises here, not on the first client
        object.__setattr__(self, "epsilon", randomizer.epsilon)
        object.__setattr__(self, "delta", randomizer.delta)

    @property
    def has_intercept(self) -> bool:
        """Whether the report has the score of an intercept."""
        return self.intercept_weight > 0

    @property
    def order(self) -> int:
        """Length of the vector (constant, x): the number of entries of the score of one predictor."""
        return self.n_features + self.has_intercept

    @property
    def lines(self) -> np.ndarray:
        """The public model: a row (intercept, coefficients) for each predictor, shape (q, d + 1)."""
        shape = self.response.n_lines, self.n_features + 1
        return np.reshape(self.theta, shape) if self.theta else np.zeros(shape)

    @property
    def frame(self) -> tuple[np.ndarray, np.ndarray]:
        """Public transform and centre of x."""
        d = self.n_features
        return (np.reshape(self.transform, (d, d)) if self.transform else np.eye(d),
                np.array(self.centre) if self.centre else np.zeros(d))

    @property
    def _n_score(self):
        return self.response.n_lines * self.order

    @property
    def _n_entries(self):
        return self._n_score + (self.curvature_weight > 0) * self.order * (self.order + 1) // 2

    @property
    def radius(self) -> float:
        """Largest length of the vector that is randomised."""
        return score_radius(self.intercept_weight, self.response.radius, self.curvature_weight)

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the entries of the curvature: the diagonal, then the entries above it."""
        above = np.triu_indices(self.order, 1)
        rows, columns = (np.concatenate([np.arange(self.order), part]) for part in above)
        return rows, columns

    @cached_property
    def _scales(self):
        rows, columns = self.places
        return self.curvature_weight * np.where(rows == columns, 1.0, math.sqrt(2))

    @cached_property
    def randomizer(self):
        """Mechanism that randomises score and curvature."""
        construct = check_choice(self.mechanism, "mechanism", MECHANISMS)
        return construct(epsilon=self.epsilon, delta=self.delta, norm=self.radius, n_features=self._n_entries)

    def _features_of(self, width):
        if self.theta or self.centre or self.transform:
            return self.n_features  # the model has this number of features
        n_features = 1
        while n_features < min(width, MAX_FEATURES) and self._replace(n_features=n_features).width < width:
            n_features += 1
        return n_features

    def mean_report(self, tally: Tally) -> tuple[np.ndarray, Any]:
        """Return the unbiased mean score, shape (q, order), and the mean curvature, shape (order, order), or None.

        Parameters
        ----------
        tally : Tally
            Sums of valid reports.

        Returns
        -------
        score : ndarray
        curvature : ndarray or None
            None without a curvature weight.
        """
        mean = self.randomizer.decode((tally.sums / max(tally.n_reports, 1)).astype(float)[None])[0]
        score = mean[:self._n_score].reshape(-1, self.order)
        if not self.curvature_weight:
            return score, None
        curvature = np.empty((self.order, self.order))
        rows, columns = self.places
        curvature[rows, columns] = curvature[columns, rows] = mean[self._n_score:] / self._scales
        return score, curvature

    def directions(self):
        """Directions in which one report can change the sums, as arrays of the shape of the sums."""
        return vector_directions(self.randomizer)

    def extreme_effects(self, slopes):
        """Smallest and largest change that one report can make to functions with these slopes along ``directions``."""
        return vector_effects(self.randomizer, slopes)

    def _scaled(self, X, y, source):
        """Score and curvature of each record, which the mechanism clips."""
        with np.errstate(all="ignore"):
            x = clip_to_unit_ball(X / self.data_norm, 1.0)
            codes = self.response.codes(self._response(y, source))
            return np.nan_to_num(self._score_and_curvature(x, codes), posinf=0.0, neginf=0.0)

    def _score_and_curvature(self, x, codes):
        """Weighted score and curvature in svec coordinates, one row for each of the records x in public units."""
        extended, mean, curvature, weight = self.evaluate(x)
        score = ((weight[:, None] * (codes - mean))[:, :, None] * extended[:, None, :]).reshape(len(x), self._n_score)
        if not self.curvature_weight:
            return score
        rows, columns = self.places
        products = extended[:, rows] * extended[:, columns] * self._scales
        return np.hstack([score, (weight * curvature)[:, None] * products])

    def evaluate(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return (constant, x) in the coordinates of the model, mean response, curvature, and weight of records.

        Parameters
        ----------
        x : ndarray of shape (n, d)
            Records in public units.

        Returns
        -------
        extended, mean, curvature, weight : ndarray
            Of shapes (n, order), (n, q), (n,) and (n,).
        """
        transform, centre = self.frame
        x, lines = (x - centre) @ transform.T, self.lines
        u = lines[:, 0] + x @ lines[:, 1:].T
        extended = np.column_stack([np.full(len(x), self.intercept_weight), x]) if self.has_intercept else x
        mean, square = self.response.mean(u), np.vecdot(extended, extended)
        curvature = self.response.weight(u, mean)
        largest = np.sqrt(self.response.largest_residual(mean) ** 2 * square
                          + (self.curvature_weight * curvature * square) ** 2)
        return extended, mean, curvature, self.radius / np.maximum(largest, self.radius)

    def _possible(self, tally):
        well_formed = tally.sums.shape == (self.width,) and tally.sums.dtype == object
        return well_formed and possible_vector_sums(tally.sums, tally.n_reports, self.randomizer)

    def _tally(self, reports):
        return Tally(len(reports), column_sums(reports))


@dataclass(frozen=True, kw_only=True)
class RoundProtocol(LabelledProtocol, ScoreProtocol):
    r"""Each client sends the score and curvature of the log-likelihood of its label at the model that it received.

    Parameters
    ----------
    theta : tuple of float, default=()
        The public model: intercept and coefficients of each predictor, for x in public units, in the coordinates below.
        Two labels have one predictor, the log-odds; K labels have K - 1. Empty for the model zero.
    centre : tuple of float, default=()
        Public vector that is subtracted from x in public units; zero without an intercept. Empty for zero.
    transform : tuple of float, default=()
        Public matrix by which the difference is multiplied, row after row. Empty for the identity.
    intercept_weight : float, default=0.3
        Weight :math:`\kappa` of the constant; 0 omits it.
    curvature_weight : float, default=1.0
        Weight c of the curvature; 0 omits it. The noise is spread over all entries, so there is less without it.
    mechanism : {"sphere", "gaussian"}, default="sphere"
        How the vector is randomised.
    classes : tuple, default=(0, 1)
        The public labels, two or more, which are sorted. Any other label is replaced by one of them at random.
    link : {"logit"}, default="logit"
        How the probabilities of the labels depend on the predictors.
    epsilon, delta, data_norm, n_features, schema
        As in :class:`LabelMomentProtocol`.

    Notes
    -----
    With :math:`x' = A(x/R - c)`, :math:`\tilde x = (\kappa, x')` and the predictors
    :math:`u_i = \theta_{i0} + \theta_i^Tx'`, label k has the probability :math:`p_k \propto \exp(t_k^Tu)`, where
    :math:`t_k` is a vertex of a regular simplex with edges of length 1 (-1/2 and 1/2 for two labels). A client with
    label k sends

    .. math:: v\,(r\tilde x^T,\ cw\,\mathrm{svec}\,\tilde x\tilde x^T), \qquad r = t_k - \sum_jp_jt_j, \qquad
              w = \frac14\,\frac{1 - \sum_jp_j^2}{1 - 1/K}

    with the weight v of :func:`skldp.privacy.score_radius`, which makes it at most :math:`\rho` long; for two labels w
    is p(1 - p). The vector is then clipped to this length in integers and randomised, so that each report is private
    against a server that chooses its models freely. Since v does not depend on the label, the mean of
    :math:`vr\tilde x^T` is zero at the true model **for any distribution of x**.

    Asking a person in two rounds spends its budget twice: each round has its own people.

    Examples
    --------
    >>> from skldp.protocols import Protocol, RoundProtocol
    >>> protocol = RoundProtocol(epsilon=1.0, theta=(-1.0, 2.0, 0.5), n_features=2)
    >>> report = Protocol.from_json(protocol.to_json()).privatize([0.3, 0.4], 1)
    >>> report.shape, protocol.check(report)
    ((1, 10), array([ True]))
    >>> RoundProtocol(epsilon=1.0, classes=("a", "b", "c"), n_features=2).privatize([0.3, 0.4], "b").shape
    (1, 13)
    """

    link: str = "logit"
    most_classes: ClassVar[int] = MAX_CLASSES

    def __post_init__(self):
        self._check_domain()
        self._check_model()

    @cached_property
    def response(self) -> Response:
        """The labels."""
        return check_choice(self.link, "link", LINKS)(len(self.classes))

    def _response(self, y, source):
        """Numbers of the labels."""
        numbers = np.rint((y + 1) / 2 * (len(self.classes) - 1))
        return replace_unknown(np.where(np.isnan(y), -1, numbers).astype(np.int64), len(self.classes), source)


@dataclass(frozen=True, kw_only=True)
class CountRoundProtocol(ScoreProtocol):
    r"""Each client sends the score and curvature of its count at the model that it received.

    Parameters
    ----------
    bounds_y : tuple of (0, int), default=(0, 20)
        Zero, and the largest count b that is told apart: larger ones are clipped to it.
    theta, centre, transform, intercept_weight, curvature_weight, mechanism
        As in :class:`RoundProtocol`; the one predictor is the logarithm of the rate.
    epsilon, delta, data_norm, n_features, schema
        As in :class:`LabelMomentProtocol`.

    Notes
    -----
    With :math:`x'` and :math:`\tilde x` as in :class:`RoundProtocol` and the rate
    :math:`\lambda = \exp(\theta_0 + \theta^Tx')`, a client with count y sends

    .. math:: v\,(r\tilde x,\ cw\,\mathrm{svec}\,\tilde x\tilde x^T), \qquad
              r = \frac{\min(y, b) - E\min(Y, b)}b, \qquad w = \frac{\lambda P(Y < b)}b,

    where Y is a Poisson variable of rate :math:`\lambda`, and w is the derivative of the mean: clipping is part of the
    model. The mean of :math:`vr\tilde x` is zero at the true model for any distribution of x.

    Examples
    --------
    >>> from skldp.protocols import CountRoundProtocol
    >>> protocol = CountRoundProtocol(epsilon=1.0, bounds_y=(0, 10), n_features=2)
    >>> protocol.privatize([[0.3, 0.4], [0.1, 0.0]], [3, 25]).shape
    (2, 10)
    """

    bounds_y: tuple = (0, 20)

    def __post_init__(self):
        self._check_vector()
        object.__setattr__(self, "bounds_y", _check_counts(self.bounds_y))
        self._check_model()

    @cached_property
    def response(self) -> Response:
        """The clipped count."""
        return Counts(self.bounds_y[1])

    def _numbers(self, y):
        return as_floats(y)

    def _response(self, y, source):
        upper = self.bounds_y[1]
        return np.nan_to_num(np.clip(y, 0, upper) / upper, nan=0.5)  # a missing count is the middle of the bounds


def _check_counts(bounds: Any) -> tuple:
    """Return the pair (0, b) with an integer b."""
    if not isinstance(bounds, (list, tuple, np.ndarray)) or len(bounds) != 2 or check_real(bounds[0], "bounds_y") != 0:
        raise InvalidParameterError(f"bounds_y must be a pair (0, b), where b is the largest count; got {bounds!r}.")
    upper = check_real(bounds[1], "bounds_y")
    if not upper.is_integer():
        raise InvalidParameterError(f"bounds_y must end with a whole number, got {bounds!r}.")
    return 0, check_integer(int(upper), "the upper end of bounds_y", 1, MOST_COUNTS)


def _numbers(values, name, size):
    """Return a tuple of finite floats of a given length, or an empty one, or raise an error."""
    check_length(values, name, MAX_ENTRIES)
    if not isinstance(values, (list, tuple, np.ndarray)) or len(values) not in (0, size):
        raise InvalidParameterError(f"{name} must be a list of {size} numbers, or empty. "
                                    "Use the protocol as the server published it.")
    numbers = tuple(check_real(value, f"each entry of {name}") + 0.0 for value in values)  # -0.0 becomes 0.0
    if not all(map(math.isfinite, numbers)):
        raise InvalidParameterError(f"{name} must contain finite numbers. Use the protocol as the server published it.")
    return numbers
