"""Gaussian noise on vectors of bounded norm."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from skldp._validation._limits import MAX_ENTRIES
from skldp._validation._parameters import (
    check_delta,
    check_epsilon,
    check_integer,
    check_positive,
    smallest_integer_dtype,
)
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._base import Mechanism, check_width, has_width
from skldp.mechanisms._encoding import BALL_RADIUS, encode_ball
from skldp.privacy._calibration import gaussian_sigma
from skldp.privacy._noise import GAUSSIAN_REACH, gaussian_noise, gaussian_slack, integer_noise
from skldp.privacy._sensitivity import ball_sensitivity


@dataclass(frozen=True, kw_only=True)
class Gaussian(Mechanism):
    r"""Gaussian noise calibrated to a ball, by the analytic Gaussian mechanism.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability in (0, 1).
    norm : float, default=1.0
        Public radius R; records are clipped to the ball :math:`\|x\|_2 \le R`.
    n_features : int, default=1
        Length of a record.

    Attributes
    ----------
    scale : float
        Standard deviation of the noise in grid units.
    clamp : tuple of int
        Smallest and largest entry of a report.
    noise_variance : float
        Variance of an entry of a decoded report around its record.

    Notes
    -----
    A record becomes an integer vector q with :math:`\|q\| \le Q = 2^{16}`, checked in integers, and the report is
    :math:`\mathrm{clamp}(q + \mathrm{rint}(s\,n))`, n standard normal in every entry.

    *Privacy.* The sensitivity is 2Q; rounding and clamping are post-processing of the ideal mechanism. Float
    arithmetic changes the probability of an entry by a factor within :math:`e^{\pm\eta}`
    (:func:`skldp.privacy.gaussian_slack`) within 10 standard deviations, and the clamps are set so that no report
    lies farther than that from any record. With d entries, and subscript 0 for the ideal mechanism,

    .. math:: P(S) \le e^{d\eta}P_0(S) \le e^{d\eta}(e^{\epsilon'}P_0'(S) + \delta')
              \le e^{\epsilon' + 2d\eta}P'(S) + e^{d\eta}\delta',

    so s is calibrated to :math:`\epsilon' = \epsilon - 2d\eta`, :math:`\delta' = \delta e^{-d\eta}`.

    *Probability.* Of an entry: :math:`\Phi((k+\frac12)/s) - \Phi((k-\frac12)/s)` with :math:`k = y - q`, and the tail
    probability at the clamps.

    Examples
    --------
    >>> from skldp.mechanisms import Gaussian
    >>> mechanism = Gaussian(epsilon=1.0, delta=1e-5, norm=1.0, n_features=2)
    >>> mechanism.randomize([[0.6, 0.8]], rng=0).shape
    (1, 2)
    >>> round(mechanism.noise_variance ** 0.5, 4)  # the sensitivity of norm 1 is 2
    7.4613
    """

    epsilon: float = 1.0
    delta: float = 1e-5
    norm: float = 1.0
    n_features: int = 1

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "delta", check_delta(self.delta))
        object.__setattr__(self, "norm", check_positive(self.norm, "norm"))
        object.__setattr__(self, "n_features", check_integer(self.n_features, "n_features", 1, MAX_ENTRIES))
        if self.private and self._slack > self.epsilon / 4:
            raise InvalidParameterError(
                f"epsilon={self.epsilon!r} is too small for Gaussian noise on {self.n_features} entries: rounding "
                f"errors would use up half of it. Raise epsilon or send fewer entries."
            )
        if self.private and self.clamp[1] < BALL_RADIUS + 4 * self.scale:
            raise InvalidParameterError(
                f"delta={self.delta!r} is too large to be a guarantee at epsilon={self.epsilon!r}. Lower delta."
            )

    @property
    def width(self):
        """Number of integers in a report."""
        return self.n_features

    @cached_property
    def _slack(self):
        # Taken at twice the uncorrected scale, which covers the increase of the scale that the slack itself causes.
        sigma = gaussian_sigma(self.epsilon, self.delta, ball_sensitivity(BALL_RADIUS))
        return self.n_features * gaussian_slack(2 * sigma)

    @cached_property
    def scale(self):
        """Standard deviation of the noise in grid units; 0 without noise."""
        if not self.private:
            return 0.0
        epsilon, delta = self.epsilon - 2 * self._slack, self.delta * math.exp(-self._slack)
        return gaussian_sigma(epsilon, delta, ball_sensitivity(BALL_RADIUS))

    @cached_property
    def clamp(self):
        """Smallest and largest entry of a report, within 10 standard deviations of every record."""
        if not self.private:
            return -BALL_RADIUS, BALL_RADIUS
        top = math.floor(GAUSSIAN_REACH * self.scale) - BALL_RADIUS
        return -top, top

    @cached_property
    def report_dtype(self):
        """Smallest integer dtype that holds every entry."""
        return smallest_integer_dtype(*self.clamp)

    @property
    def noise_variance(self):
        """Variance of an entry of a decoded report around its encoded record (clamping neglected)."""
        return (self.scale**2 + (1 / 12 if self.private else 0.0)) * self._step**2

    @property
    def _step(self):
        return self.norm / BALL_RADIUS

    def encode(self, x: ArrayLike) -> np.ndarray:
        """Clip vectors, shape (n, n_features), to the ball and round them to integers of norm at most 2**16."""
        return encode_ball(check_width(x, self.n_features), self.norm)

    def _draw(self, codes, source):
        if self.private:
            codes = codes + integer_noise(gaussian_noise, self.scale, codes.shape, source)
            np.clip(codes, *self.clamp, out=codes)
        return codes.astype(self.report_dtype)

    def decode(self, reports: ArrayLike) -> np.ndarray:
        """Unbiased vectors on the scale of the records."""
        return np.asarray(reports) * self._step

    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-probability of reports, shape (n, n_features), given vectors: one number for each row."""
        valid, codes = self.valid(reports), self.encode(x)
        reports = np.asarray(reports).astype(np.int64)
        if not self.private:
            return np.where(valid & (reports == codes).all(axis=1), 0.0, -np.inf)
        distance = np.abs(reports - codes)
        tail = log_ndtr((0.5 - distance) / self.scale)
        with np.errstate(divide="ignore"):
            inside = tail + np.log(-np.expm1(log_ndtr((-0.5 - distance) / self.scale) - tail))
        cells = np.where(np.abs(reports) == self.clamp[1], tail, inside)
        return np.where(valid, cells.sum(axis=1), -np.inf)

    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the rows whose entries are inside the clamps."""
        reports = np.asarray(reports)
        if not has_width(reports, self.n_features):
            return np.zeros(len(reports), dtype=bool)
        return ((reports >= self.clamp[0]) & (reports <= self.clamp[1])).all(axis=1)
