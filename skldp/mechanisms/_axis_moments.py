"""Second moments of a record (x, y), randomised by its axis."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skldp.mechanisms._axis import Axis
from skldp.mechanisms._base import check_width
from skldp.mechanisms._moments import MomentMechanism
from skldp.privacy._radii import record_radius


@dataclass(frozen=True, kw_only=True)
class AxisMoments(MomentMechanism):
    r"""Moments of a record, of which the axis is randomised: pure epsilon, and a report as short as the record.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    n_features, y_weight, intercept_weight, labelled, n_responses
        As in :class:`SphereMoments`.

    Attributes
    ----------
    axis : Axis
        Mechanism that randomises the record.
    noise : MomentNoise
        Covariance of a decoded report, over records.

    Notes
    -----
    The record :math:`\tilde v = (\kappa, x, wy)`, in the ball of radius :func:`skldp.privacy.record_radius`, is
    randomised by :class:`Axis`. A report has d + k + 2 integers (one less without the constant), and its products
    estimate all of :math:`\tilde v\tilde v^T`, constant entries included.

    Examples
    --------
    >>> from skldp.mechanisms import AxisMoments
    >>> mechanism = AxisMoments(epsilon=4.0, n_features=20)
    >>> reports = mechanism.randomize([[0.1] * 20 + [-0.3]], rng=0)
    >>> reports.shape, mechanism.matrix(mechanism.decode(reports)).shape
    ((1, 23), (1, 22, 22))
    """

    def __post_init__(self):
        self._check_layout()
        self.axis  # built here so that an impossible budget raises at once

    @cached_property
    def axis(self):
        """Mechanism that randomises the record."""
        radius = record_radius(1.0, 1.0, self.y_weight, self.intercept_weight, self.n_responses)
        return Axis(epsilon=self.epsilon, norm=radius, n_features=self.order)

    @property
    def width(self):
        """Number of integers in a report."""
        return self.axis.width

    @property
    def report_dtype(self):
        """Integer dtype of a report."""
        return self.axis.report_dtype

    @property
    def noise(self):
        """Covariance of a decoded report, over records."""
        return self.axis.noise

    @property
    def noise_variance(self):
        """Variance of a decoded entry of x with a response, in svec coordinates, for typical records.

        It depends on the records, see ``noise``. Typical ones have a mean squared length of x of 1/2, and of a response
        of 1/4 of its square bound (1 for labels). The variance of an entry of x with x is smaller.
        """
        x = 0.5 / self.n_features
        y = self.y_weight**2 * (1.0 if self.labelled else 0.25) if self.n_responses else x
        return self.noise.constant + self.noise.linear * (x + y) + 2 * (self.noise.square - 1) * x * y

    def encode(self, x: Any) -> np.ndarray:
        """Encode records, shape (n, n_features + k), as integers of norm at most 2**16."""
        x = check_width(x, self.n_features + self.n_responses)
        with np.errstate(all="ignore"):
            return self.axis.encode(self._records(x))

    def _draw(self, codes, source):
        return self.axis._draw(codes, source)

    def decode(self, reports: Any) -> np.ndarray:
        """Unbiased moments in svec coordinates, shape (n, n_moments)."""
        return self.svec(self.axis.decode(reports))

    def log_prob(self, reports: Any, x: Any) -> np.ndarray:
        """Log-density of the reported directions given records, as in :class:`Axis`."""
        return self.axis._log_prob_codes(reports, self.encode(x))

    def valid(self, reports: Any) -> np.ndarray:
        """Mask of the rows that an honest client could have sent."""
        return self.axis.valid(reports)
