"""Protocol of a later round: score and curvature of each client's log-likelihood at a public model."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit

from skldp._validation._limits import MAX_ENTRIES
from skldp._validation._parameters import check_choice, check_length, check_real
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._encoding import clip_to_unit_ball
from skldp.privacy._sensitivity import check_nonnegative, score_radius
from skldp.protocols._possible_sums import column_sums
from skldp.protocols._regression_protocol import LabelledProtocol
from skldp.protocols._tallies import Tally
from skldp.protocols._vector_reports import MECHANISMS, possible_vector_sums, vector_directions, vector_effects

_LARGEST_PREDICTION = 1e3  # log-odds of a hostile model are clipped to this; probabilities are 0 and 1 far below it


@dataclass(frozen=True, kw_only=True)
class RoundProtocol(LabelledProtocol):
    r"""Each client sends the score and curvature of its own log-likelihood at the model that it received.

    Parameters
    ----------
    theta : tuple of float, default=(0, 0)
        The public model: intercept and coefficients of the log-odds, for x in public units, in the coordinates below.
    centre : tuple of float, default=(0,)
        Public vector that is subtracted from x in public units; zero without an intercept.
    transform : tuple of float, default=(1,)
        Public matrix by which the difference is multiplied, row after row.
    intercept_weight : float, default=0.3
        Weight :math:`\kappa` of the constant; 0 omits it.
    mechanism : {"sphere", "gaussian"}, default="sphere"
        How the vector is randomised.
    epsilon, delta, data_norm, classes, n_features, schema
        As in :class:`LabelMomentProtocol`.

    Notes
    -----
    With :math:`x' = A(x/R - c)`, :math:`\tilde x = (\kappa, x')`, :math:`u = \theta_0 + \theta^Tx'`,
    :math:`p = 1/(1 + e^{-u})`, :math:`r = y - p` for a label y of 0 or 1 and :math:`w = p(1 - p)`, a client sends

    .. math:: v\,(r\tilde x,\ w\,\mathrm{svec}\,\tilde x\tilde x^T)

    with the weight v of :func:`skldp.privacy.score_radius`, which makes it at most :math:`\rho` long. The vector is
    then clipped to this length in integers and randomised, so that each report is private against a server that chooses
    its models freely. Since v does not depend on the label, the mean of :math:`vr\tilde x` is zero at the true model
    **for any distribution of x**.

    Asking a person in two rounds spends its budget twice: each round has its own people.

    Examples
    --------
    >>> from skldp.protocols import Protocol, RoundProtocol
    >>> protocol = RoundProtocol(epsilon=1.0, theta=(-1.0, 2.0, 0.5), centre=(0.0, 0.0),
    ...                          transform=(1.0, 0.0, 0.0, 1.0), n_features=2)
    >>> report = Protocol.from_json(protocol.to_json()).privatize([0.3, 0.4], 1)
    >>> report.shape, protocol.check(report)
    ((1, 10), array([ True]))
    """

    mechanism: str = "sphere"
    theta: tuple = (0.0, 0.0)
    centre: tuple = (0.0,)
    transform: tuple = (1.0,)
    intercept_weight: float = 0.3

    def __post_init__(self):
        self._check_domain()
        weight = check_nonnegative(self.intercept_weight, "intercept_weight")
        object.__setattr__(self, "intercept_weight", weight)
        d = self.n_features
        if self._n_entries > MAX_ENTRIES:
            raise InvalidParameterError(f"n_features={d} means a report of {self._n_entries} entries, and it may have "
                                        f"{MAX_ENTRIES}. Send fewer features.")
        for name, size in (("theta", d + 1), ("centre", d), ("transform", d * d)):
            object.__setattr__(self, name, _numbers(getattr(self, name), name, size))
        if not weight and (any(self.centre) or self.theta[0]):
            raise InvalidParameterError("Without an intercept, centre and the first entry of theta must be zero.")
        randomizer = self.randomizer  # an impossible budget raises here, not on the first client
        object.__setattr__(self, "epsilon", randomizer.epsilon)
        object.__setattr__(self, "delta", randomizer.delta)

    @property
    def has_intercept(self) -> bool:
        """Whether the report has the score of an intercept."""
        return self.intercept_weight > 0

    @property
    def order(self) -> int:
        """Length of the vector (constant, x): the number of entries of the score."""
        return self.n_features + self.has_intercept

    @property
    def _n_entries(self):
        return self.order + self.order * (self.order + 1) // 2

    @cached_property
    def places(self) -> tuple[np.ndarray, np.ndarray]:
        """Rows and columns of the entries of the curvature: the diagonal, then the entries above it."""
        above = np.triu_indices(self.order, 1)
        rows, columns = (np.concatenate([np.arange(self.order), part]) for part in above)
        return rows, columns

    @cached_property
    def _isometry(self):
        rows, columns = self.places
        return np.where(rows == columns, 1.0, math.sqrt(2))

    @cached_property
    def randomizer(self):
        """Mechanism that randomises score and curvature."""
        construct = check_choice(self.mechanism, "mechanism", MECHANISMS)
        return construct(epsilon=self.epsilon, delta=self.delta, norm=score_radius(self.intercept_weight),
                         n_features=self._n_entries)

    def _features_of(self, width):
        return self.n_features  # the model has this number of features

    def mean_report(self, tally: Tally) -> tuple[np.ndarray, np.ndarray]:
        """Return the unbiased mean score, shape (order,), and the mean curvature, shape (order, order).

        Parameters
        ----------
        tally : Tally
            Sums of valid reports.

        Returns
        -------
        score, curvature : ndarray
        """
        mean = self.randomizer.decode((tally.sums / max(tally.n_reports, 1)).astype(float)[None])[0]
        curvature = np.empty((self.order, self.order))
        rows, columns = self.places
        curvature[rows, columns] = curvature[columns, rows] = mean[self.order:] / self._isometry
        return mean[:self.order], curvature

    def directions(self):
        """Directions in which one report can change the sums, as arrays of the shape of the sums."""
        return vector_directions(self.randomizer)

    def extreme_effects(self, slopes):
        """Smallest and largest change that one report can make to functions with these slopes along ``directions``."""
        return vector_effects(self.randomizer, slopes)

    def _scaled(self, X, y, source):
        """Score and curvature of each record, which the mechanism clips."""
        rows = super()._scaled(X, y, source)
        with np.errstate(all="ignore"):
            x = clip_to_unit_ball(rows[:, :-1].copy(), 1.0)
            return np.nan_to_num(self._score_and_curvature(x, rows[:, -1] > 0), posinf=0.0, neginf=0.0)

    def _score_and_curvature(self, x, positive):
        """Weighted score and curvature, shape (n, order + order (order + 1) / 2), for x in public units."""
        theta, d = np.array(self.theta), self.n_features
        x = (x - np.array(self.centre)) @ np.reshape(self.transform, (d, d)).T
        u = np.clip(theta[0] + x @ theta[1:], -_LARGEST_PREDICTION, _LARGEST_PREDICTION)
        extended = x
        if self.has_intercept:
            extended = np.column_stack([np.full(len(x), self.intercept_weight), x])
        p, square = expit(u), np.vecdot(extended, extended)
        curvature = p * expit(-u)
        largest = np.sqrt(np.maximum(p, 1 - p) ** 2 * square + (curvature * square) ** 2)
        weight = np.minimum(1.0, score_radius(self.intercept_weight) / largest)
        rows, columns = self.places
        products = extended[:, rows] * extended[:, columns] * self._isometry
        return np.hstack([(weight * (positive - p))[:, None] * extended, (weight * curvature)[:, None] * products])

    def _possible(self, tally):
        well_formed = tally.sums.shape == (self.width,) and tally.sums.dtype == object
        return well_formed and possible_vector_sums(tally.sums, tally.n_reports, self.randomizer)

    def _tally(self, reports):
        return Tally(len(reports), column_sums(reports))


def _numbers(values, name, size):
    """Return a tuple of finite floats of a given length, or raise an error."""
    check_length(values, name, MAX_ENTRIES)
    if not isinstance(values, (list, tuple, np.ndarray)) or len(values) != size:
        raise InvalidParameterError(f"{name} must be a list of {size} numbers. "
                                    "Use the protocol as the server published it.")
    numbers = tuple(check_real(value, f"each entry of {name}") + 0.0 for value in values)  # -0.0 becomes 0.0
    if not all(map(math.isfinite, numbers)):
        raise InvalidParameterError(f"{name} must contain finite numbers. Use the protocol as the server published it.")
    return numbers
