"""Second moments of each client's record and response."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._moments import MOMENT_RADIUS, GaussianMoments, SphereMoments
from skldp.mechanisms._sphere import RESOLUTION
from skldp.protocols._possible_sums import column_sums, is_gram_matrix, largest_noisy_sums, within_box, within_sphere
from skldp.protocols._regression_protocol import BoundedProtocol, LabelledProtocol, RegressionProtocol
from skldp.protocols._tallies import Tally

MECHANISMS = ("sphere", "gaussian")


DEFAULT_WEIGHT = math.sqrt(0.5)


@dataclass(frozen=True, kw_only=True)
class _Moments(RegressionProtocol):
    """What protocols of moments share, for any kind of response."""

    mechanism: str = "sphere"
    y_weight: float = DEFAULT_WEIGHT
    intercept_weight: float = DEFAULT_WEIGHT
    labelled: ClassVar[bool] = False

    def _check_moments(self):
        if self.mechanism not in MECHANISMS:
            raise InvalidParameterError(f'mechanism must be "sphere" or "gaussian", got {self.mechanism!r}.')
        randomizer = self.randomizer  # an impossible budget or weight is an error here, not on the first client
        for name in ("epsilon", "delta", "y_weight", "intercept_weight"):
            object.__setattr__(self, name, getattr(randomizer, name))

    @property
    def has_intercept(self) -> bool:
        """Whether the report has moments with a constant, which an intercept needs."""
        return self.intercept_weight > 0

    @cached_property
    def randomizer(self):
        """The mechanism."""
        options: dict[str, Any] = {"epsilon": self.epsilon, "n_features": self.n_features, "y_weight": self.y_weight,
                                   "intercept_weight": self.intercept_weight, "labelled": self.labelled}
        if self.mechanism == "sphere":
            return SphereMoments(**options)
        return GaussianMoments(delta=self.delta, **options)

    def mean_moments(self, tally: Tally) -> np.ndarray:
        """Mean of the decoded moments of a tally, in svec coordinates."""
        mean = (tally.sums / max(tally.n_reports, 1)).astype(float)
        return self.randomizer.decode(mean[None])[0]

    def probes(self):
        """Directions in which one report can move the sums: arrays like the sums."""
        largest = RESOLUTION if self.mechanism == "sphere" else self.randomizer.clamp
        return np.diag(np.full(self.width, largest, dtype=np.int64))

    def reach(self, slopes):
        """Least and largest change that a report makes to functions with these slopes along the probes."""
        if self.mechanism == "sphere":
            size = np.sqrt(np.vecdot(slopes, slopes))  # reports lie on a sphere whose radius is the probes' length
        else:
            size = np.abs(slopes).sum(axis=1)  # and these in a box whose half-widths are the probes' lengths
        return -size, size

    def _possible(self, tally):
        if tally.sums.shape != (self.width,) or tally.sums.dtype != object:
            return False
        if self.mechanism == "gaussian":
            return self._possible_gaussian(tally)
        return within_sphere(tally.sums, tally.n_reports, self.randomizer.sphere)

    def _possible_gaussian(self, tally):
        mechanism, n_reports = self.randomizer, tally.n_reports
        if mechanism.private:
            scale = mechanism.scale / mechanism._isometry
            return within_box(tally.sums, largest_noisy_sums(n_reports, mechanism.clamp, mechanism._largest, scale))
        # Without noise, these are sums of products of records, whose x has a length of at most MOMENT_RADIUS.
        trace = sum(tally.sums[:self.n_features].tolist())
        largest = mechanism.clamp.astype(object) * n_reports
        return (within_box(tally.sums, largest) and trace <= n_reports * MOMENT_RADIUS**2
                and is_gram_matrix(self._products(tally)))

    def _products(self, tally):
        """Sums of products of records without noise as a symmetric matrix, constants put back."""
        mechanism = self.randomizer
        products = np.zeros((mechanism.order, mechanism.order), dtype=object)
        rows, columns = mechanism.places
        products[rows, columns] = products[columns, rows] = tally.sums
        if self.has_intercept:
            products[0, 0] = tally.n_reports * round(self.intercept_weight * MOMENT_RADIUS) ** 2
        if self.labelled:
            products[-1, -1] = tally.n_reports * round(self.y_weight * MOMENT_RADIUS) ** 2
        return products

    def _tally(self, reports):
        return Tally(len(reports), column_sums(reports))


@dataclass(frozen=True, kw_only=True)
class MomentProtocol(BoundedProtocol, _Moments):
    r"""Each client sends the second moments of its record and response, randomised as one vector.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client.
    delta : float, default=1e-5
        Failure probability of a client; used by Gaussian noise, 0 for the sphere.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of x; longer records are shortened.
    bounds_y : tuple of float, default=(-1, 1)
        Public interval of the response.
    mechanism : {"sphere", "gaussian"}, default="sphere"
        How the moments are randomised.
    y_weight, intercept_weight : float, default=sqrt(1/2)
        Weights of the response and of the constant, where x has length 1 at most: the larger, the less noise on the
        moments with that entry and the more on the others. ``intercept_weight=0`` leaves the constant out.
    n_features : int, default=1
        Length of x.

    Examples
    --------
    >>> from skldp.protocols import MomentProtocol, Protocol
    >>> protocol = MomentProtocol(epsilon=1.0, n_features=2, bounds_y=(0, 10))
    >>> report = Protocol.from_json(protocol.to_json()).privatize([0.3, 0.4], 7.5)
    >>> report.shape, protocol.check(report)
    ((1, 10), array([ True]))
    """

    def __post_init__(self):
        self._check_domain()
        self._check_moments()


@dataclass(frozen=True, kw_only=True)
class LabelMomentProtocol(LabelledProtocol, _Moments):
    r"""Each client sends the second moments of its record and its label -1 or 1, randomised as one vector.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client.
    delta : float, default=1e-5
        Failure probability of a client; used by Gaussian noise, 0 for the sphere.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of x; longer records are shortened.
    classes : tuple, default=(0, 1)
        The two public labels, which are put in order: the later one is 1 and the other -1. A label that is none of
        them is replaced by either, at random.
    mechanism : {"sphere", "gaussian"}, default="sphere"
        How the moments are randomised.
    y_weight, intercept_weight : float, default=sqrt(1/2)
        As in :class:`MomentProtocol`.
    n_features : int, default=1
        Length of x.

    Examples
    --------
    >>> from skldp.protocols import LabelMomentProtocol
    >>> protocol = LabelMomentProtocol(epsilon=1.0, n_features=2, classes=("no", "yes"))
    >>> protocol.privatize([[0.3, 0.4], [0.1, 0.0]], ["yes", "no"]).shape
    (2, 9)
    """

    labelled: ClassVar[bool] = True

    def __post_init__(self):
        self._check_domain()
        self._check_moments()
