"""Laplace noise on clipped values."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from skldp._validation._limits import MAX_LEVELS
from skldp._validation._parameters import check_bounds, check_epsilon, check_integer, smallest_integer_dtype
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._base import Mechanism, is_integer
from skldp.mechanisms._encoding import encode_interval
from skldp.privacy._noise import LAPLACE_CLAMP, integer_noise, laplace_noise, laplace_slack


@dataclass(frozen=True, kw_only=True)
class Laplace(Mechanism):
    r"""Laplace noise calibrated to the width of a public interval.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    bounds : tuple of float, default=(-1, 1)
        Public interval; values are clipped to it.
    n_levels : int, default=65536
        The interval is mapped to the integers 0 .. n_levels before noise is added.

    Attributes
    ----------
    scale : float
        Scale of the noise in grid units.
    clamp : tuple of int
        Smallest and largest report.
    noise_variance : float
        Variance of a decoded report around its record.

    Notes
    -----
    Report :math:`y = \mathrm{clamp}(q + \mathrm{rint}(s\,n))` with q the record on the grid and n standard Laplace.

    *Privacy.* The records of any two clients differ by at most ``n_levels`` = n on the grid, so
    :math:`s = n/\epsilon'` makes the ideal report :math:`\epsilon'`-private; rounding and clamping are
    post-processing. Float arithmetic changes every probability by a factor within :math:`e^{\pm\eta}`
    (:func:`skldp.privacy.laplace_slack`), so :math:`\epsilon' = \epsilon - 2\eta` gives epsilon in total. Reports are
    clamped 40 scales outside the domain, where the two-word uniform still resolves every cell: each report can come
    from every record.

    *Probability.* With :math:`k = y - q`: :math:`\tfrac12 e^{-(|k|-1/2)/s}(1 - e^{-1/s})` for
    :math:`k \ne 0`, :math:`1 - e^{-1/(2s)}` for k = 0, and the tail :math:`\tfrac12 e^{-(|k|-1/2)/s}` at the clamps.

    Examples
    --------
    >>> from skldp.mechanisms import Laplace
    >>> mechanism = Laplace(epsilon=1.0, bounds=(0, 10))
    >>> reports = mechanism.randomize([2.0, 3.0], rng=0)
    >>> reports.dtype
    dtype('int32')
    >>> mechanism.decode(reports).shape
    (2,)
    """

    epsilon: float = 1.0
    bounds: tuple = (-1.0, 1.0)
    n_levels: int = 2**16

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        object.__setattr__(self, "n_levels", check_integer(self.n_levels, "n_levels", 1, MAX_LEVELS))
        if self.private and 2 * laplace_slack(self.n_levels / self.epsilon, self.epsilon) > self.epsilon / 2:
            raise InvalidParameterError(
                f"epsilon={self.epsilon!r} is too small for Laplace noise on {self.n_levels} levels: rounding errors "
                f"would use up half of it. Raise epsilon or lower n_levels."
            )

    @cached_property
    def scale(self):
        """Scale of the noise in grid units; 0 without noise."""
        if not self.private:
            return 0.0
        # Taken at twice the uncorrected scale, which covers the increase of the scale that the slack itself causes.
        slack = laplace_slack(2 * self.n_levels / self.epsilon, self.epsilon)
        return self.n_levels / (self.epsilon - 2 * slack)

    @cached_property
    def clamp(self):
        """Smallest and largest report."""
        # Rounded down, because the slack holds for reports up to this distance from the domain.
        margin = math.floor(LAPLACE_CLAMP * self.scale)
        return -margin, self.n_levels + margin

    @cached_property
    def report_dtype(self):
        """Smallest integer dtype that holds every report."""
        return smallest_integer_dtype(*self.clamp)

    @property
    def noise_variance(self):
        """Variance of a decoded report around its encoded record (neglecting clamping, below e^-40)."""
        if not self.private:
            return 0.0
        decay = math.exp(-1 / self.scale)
        # Second moment of the rounded noise: sum over k of k^2 e^{-(k-1/2)/s} (1 - e^{-1/s}).
        grid = math.exp(-0.5 / self.scale) * (1 + decay) / (1 - decay) ** 2
        return grid * self._step**2

    @property
    def _step(self):
        return (self.bounds[1] - self.bounds[0]) / self.n_levels

    def encode(self, x: ArrayLike) -> np.ndarray:
        """Clip values to the bounds and round them to the grid 0 .. n_levels."""
        return encode_interval(x, self.bounds, self.n_levels)

    def _draw(self, codes, source):
        if self.private:
            codes = codes + integer_noise(laplace_noise, self.scale, codes.shape, source)
            codes = np.clip(codes, *self.clamp)
        return codes.astype(self.report_dtype)

    def decode(self, reports: ArrayLike) -> np.ndarray:
        """Unbiased values on the scale of the bounds."""
        return self.bounds[0] + np.asarray(reports) * self._step

    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-probability of integer reports given values, elementwise with broadcasting."""
        valid, codes = self.valid(reports), self.encode(x)
        reports = np.asarray(reports).astype(np.int64)
        if not self.private:
            return np.where(valid & (reports == codes), 0.0, -np.inf)
        low, high = self.clamp
        distance = np.abs(reports - codes)
        tail = math.log(0.5) - (distance - 0.5) / self.scale
        inside = tail + math.log(-math.expm1(-1 / self.scale))
        centre = math.log(-math.expm1(-0.5 / self.scale))
        value = np.where(distance == 0, centre, np.where((reports == low) | (reports == high), tail, inside))
        return np.where(valid, value, -np.inf)

    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the reports inside the clamps."""
        reports = np.asarray(reports)
        if not is_integer(reports):
            return np.zeros(reports.shape, dtype=bool)
        return (reports >= self.clamp[0]) & (reports <= self.clamp[1])
