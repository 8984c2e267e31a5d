"""Protocols for second moments of each client's record, alone or with its response."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skldp._validation._parameters import check_choice, is_auto
from skldp.protocols._moment_choice import axis_constant, moment_mechanism
from skldp.protocols._moment_reports import MECHANISMS
from skldp.protocols._regression_protocol import BoundedProtocol, LabelledProtocol, RegressionProtocol
from skldp.protocols._tallies import Tally

DEFAULT_WEIGHT = math.sqrt(0.5)
_CONSTANTS = {"axis": axis_constant}  # weights of the constant that a mechanism suggests, by the number of features


@dataclass(frozen=True, kw_only=True)
class BaseMomentProtocol(RegressionProtocol):
    """Base class of protocols of moments, for any kind of response."""

    mechanism: str = "sphere"
    intercept_weight: float | str = DEFAULT_WEIGHT
    labelled: ClassVar[bool] = False
    _weights: ClassVar[tuple[str, ...]] = ("y_weight", "intercept_weight")
    _mechanisms: ClassVar[dict[str, Any]] = MECHANISMS
    # The likelihood of each cohort uses its own mechanism and weights; the response is centred only with a constant.
    _of_cohort: ClassVar[frozenset[str]] = frozenset({"mechanism", "y_weight", "intercept_weight"})
    _common: ClassVar[tuple[str, ...]] = ("has_intercept",)
    _automatic: ClassVar[dict[str, Any]] = {"intercept_weight": "auto"}
    _constant: ClassVar[float] = DEFAULT_WEIGHT

    def _check_moments(self):
        if is_auto(self.mechanism):
            # Compared with equal weights: the constant that suits the axis would lower the risk of the sphere, too.
            constant = {"intercept_weight": self._constant} if is_auto(self.intercept_weight) else {}
            chosen = moment_mechanism(epsilon=self.epsilon, **{**self._layout, **constant})
            object.__setattr__(self, "mechanism", chosen)
        if is_auto(self.intercept_weight):
            suggested = _CONSTANTS.get(self.mechanism, lambda n_features: self._constant)(self.n_reported)
            object.__setattr__(self, "intercept_weight", suggested)
        randomizer = self.randomizer  # an impossible budget or weight raises here, not on the first client
        for name in ("epsilon", "delta", *self._weights):
            object.__setattr__(self, name, getattr(randomizer, name))

    @property
    def n_reported(self) -> int:
        """Number of features in a report."""
        return self.n_features

    @property
    def has_intercept(self) -> bool:
        """Whether the report has moments with a constant, which an intercept needs."""
        return self.randomizer.intercept_weight > 0

    @cached_property
    def _reports(self):
        reports = check_choice(self.mechanism, "mechanism", self._mechanisms)
        return reports.of(epsilon=self.epsilon, delta=self.delta, **self._layout)

    @property
    def _layout(self):
        """Options of the mechanisms that describe a record."""
        return {"n_features": self.n_features, "labelled": self.labelled, "n_responses": self.n_responses,
                **{name: getattr(self, name) for name in self._weights}}

    @property
    def randomizer(self):
        """Mechanism that randomises the moments."""
        return self._reports.mechanism

    def mean_moments(self, tally: Tally) -> np.ndarray:
        """Mean of the decoded moments of a tally, in svec coordinates."""
        return self._reports.mean_moments(tally)

    def mean_matrix(self, tally: Tally) -> np.ndarray:
        """Mean of the decoded products v v' of v = (constant, x, responses).

        Parameters
        ----------
        tally : Tally
            Sums of valid reports.

        Returns
        -------
        ndarray of shape (order, order)
        """
        return self._reports.mean_matrix(tally)

    def directions(self):
        """Directions in which one report can change the sums, as arrays of the shape of the sums."""
        return self._reports.directions()

    def extreme_effects(self, slopes):
        """Smallest and largest change that one report can make to functions with these slopes along ``directions``."""
        return self._reports.extreme_effects(slopes)

    def _possible(self, tally):
        return self._reports.possible(tally)

    def _tally(self, reports):
        return self._reports.tally(reports)


@dataclass(frozen=True, kw_only=True)
class MomentProtocol(BoundedProtocol, BaseMomentProtocol):
    r"""Each client sends the second moments of its record and response, randomised as one vector.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client.
    delta : float, default=1e-5
        Failure probability of a client; used by Gaussian noise, 0 for the sphere.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of x; longer records are clipped to it.
    bounds_y : tuple of float or tuple of pairs, default=(-1, 1)
        Public interval of the response; one pair for each of several responses, which then have one report.
    mechanism : {"sphere", "axis", "gaussian", "auto"}, default="sphere"
        How the moments are randomised; see :class:`skldp.mechanisms.AxisMoments` for the axis. "auto" becomes the
        sphere or the axis by :func:`moment_mechanism`, here and now: a published protocol names one of them, and keeps
        it for other budgets.
    y_weight, intercept_weight : float, default=sqrt(1/2)
        Weights of each response and of the constant, relative to x, which has length 1 at most. A larger weight means
        less noise on the moments with that entry and more on the others. ``intercept_weight=0`` omits the constant, and
        "auto" is :func:`axis_constant` for axes, otherwise :math:`\sqrt{1/2}`, or 0.3 for labels.
    n_features : int, default=1
        Length of x.
    schema : tuple or None, default=None
        Public raw columns that the client maps to x, see :meth:`skldp.PublicColumns.protocol`.

    Examples
    --------
    >>> from skldp.protocols import MomentProtocol, Protocol
    >>> protocol = MomentProtocol(epsilon=1.0, n_features=2, bounds_y=(0, 10))
    >>> report = Protocol.from_json(protocol.to_json()).privatize([0.3, 0.4], 7.5)
    >>> report.shape, protocol.check(report)
    ((1, 10), array([ True]))
    >>> both = MomentProtocol(epsilon=1.0, n_features=2, bounds_y=((0, 10), (-1, 1)), y_weight=0.5)
    >>> both.privatize([0.3, 0.4], [7.5, 0.2]).shape
    (1, 15)
    """

    y_weight: float = DEFAULT_WEIGHT

    def __post_init__(self):
        self._check_domain()
        self._check_moments()


@dataclass(frozen=True, kw_only=True)
class LabelMomentProtocol(LabelledProtocol, BaseMomentProtocol):
    r"""Each client sends the second moments of its record and its label -1 or 1, randomised as one vector.

    Parameters
    ----------
    classes : tuple, default=(0, 1)
        The two public labels, which are sorted: the first is encoded as -1 and the second as 1. Any other label is
        replaced by one of the two at random.
    epsilon, delta, data_norm, mechanism, y_weight, intercept_weight, n_features, schema
        As in :class:`MomentProtocol`.

    Examples
    --------
    >>> from skldp.protocols import LabelMomentProtocol
    >>> protocol = LabelMomentProtocol(epsilon=1.0, n_features=2, classes=("no", "yes"))
    >>> protocol.privatize([[0.3, 0.4], [0.1, 0.0]], ["yes", "no"]).shape
    (2, 9)
    """

    y_weight: float = DEFAULT_WEIGHT
    labelled: ClassVar[bool] = True
    _constant: ClassVar[float] = 0.3

    def __post_init__(self):
        self._check_domain()
        self._check_moments()


@dataclass(frozen=True, kw_only=True)
class CovarianceProtocol(BaseMomentProtocol):
    r"""Each client sends the second moments of its record, randomised as one vector. There is no response.

    Parameters
    ----------
    intercept_weight : float, default=1/2
        Weight of the constant, relative to x, which has length 1 at most: a larger weight means less noise on the mean
        of x and more on the second moments. ``intercept_weight=0`` omits the constant, and with it the mean.
    epsilon, delta, data_norm, mechanism, n_features, schema
        As in :class:`MomentProtocol`.

    Notes
    -----
    Two records are at most :func:`skldp.privacy.moment_sensitivity` apart, and the encoding of each is in the ball of
    radius :func:`skldp.privacy.moment_radius`, both without responses.

    Examples
    --------
    >>> from skldp.protocols import CovarianceProtocol
    >>> protocol = CovarianceProtocol(epsilon=1.0, n_features=2)
    >>> protocol.privatize([[0.3, 0.4], [0.1, 0.0]]).shape
    (2, 6)
    """

    intercept_weight: float | str = 0.5
    y_weight: ClassVar[float] = 1.0  # of no response
    _constant: ClassVar[float] = 0.5
    _weights: ClassVar[tuple[str, ...]] = ("intercept_weight",)
    _of_cohort: ClassVar[frozenset[str]] = frozenset({"mechanism", "intercept_weight"})

    def __post_init__(self):
        self._check_vector()
        self._check_moments()

    @property
    def n_responses(self) -> int:
        """Number of responses of a record: none."""
        return 0

    def _responses(self, y, n_records):
        return np.empty((n_records, 0))

    def _numbers(self, y):
        return y

    def _response(self, y, source):
        return y
