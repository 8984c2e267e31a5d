"""Square wave mechanism: high probability near the clipped value, low probability elsewhere."""

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from skldp._validation._limits import MAX_LEVELS
from skldp._validation._parameters import (
    check_bounds,
    check_epsilon,
    check_integer,
    check_real,
    is_auto,
    smallest_integer_dtype,
)
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._base import Mechanism, is_integer
from skldp.mechanisms._encoding import encode_interval
from skldp.privacy._noise import uniform_below
from skldp.privacy._thresholds import WORD, near_threshold

# Half-windows, as shares of the range, that minimise the regret in Fisher information about the mean and the standard
# deviation of normal records whose standard deviation is 5 % to 25 % of the range.
_EPSILONS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0)
_WINDOWS = (0.15, 0.14, 0.125, 0.10, 0.06, 0.05, 0.025, 0.015, 0.01, 0.006, 0.001)
# The same for records of any shape, wide enough for an efficient mean. Medians would prefer 16 % at epsilon 1; the
# largest regret of 25 % is 1.25 there (benchmarks/table_density.py --blocks windows).
_DENSITY_WINDOWS = (0.25, 0.25, 0.25, 0.2, 0.15, 0.125, 0.06, 0.03, 0.015, 0.006, 0.001)


@dataclass(frozen=True, kw_only=True)
class SquareWave(Mechanism):
    r"""Report a point near the record with high probability, any other point with low probability.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    bounds : tuple of float, default=(-1, 1)
        Public interval; values are clipped to it.
    n_levels : int, default=1024
        The interval is mapped to the integers 0 .. n_levels = n.
    window : "auto" or float, default="auto"
        Half-window as a share of the range, in [0, 1]. "auto" takes the value of least regret from a table: 15 % of
        the range at epsilon 0.25 and below, 12.5 % at 1, 10 % at 2, 5 % at 4, 1.5 % at 8. It is replaced by the number.

    Attributes
    ----------
    half_window : int
        Half-window B in grid units.
    near_probability : float
        Probability that the report lies within B of the record.

    Notes
    -----
    With w = 2B + 1 the report is uniform on the w integers :math:`[x-B, x+B]` with probability
    :math:`we^\epsilon/(we^\epsilon + n)`, else uniform on the other n integers of :math:`[-B, n+B]`. Every report has
    one of two probabilities, in the ratio :math:`e^\epsilon`.

    *Privacy.* Pure epsilon, exactly: the level is chosen by comparing a word with an integer threshold that is
    rounded down. The threshold allows for the fact that an integer drawn from 64 bits is uniform only within a factor
    :math:`1 \pm 2^{-64}(n + w)` (:func:`skldp.privacy.near_threshold`). No floats are used.

    A report carries more information than one with Laplace noise about the standard deviation of the records, and about
    their mean except where the standard deviation is a quarter of the range or more and the window is narrow.

    References
    ----------
    Z. Li, T. Wang, M. Lopuhaä-Zwakenberg, N. Li, B. Škoric (2020). Estimating numerical distributions under local
    differential privacy. SIGMOD.

    Examples
    --------
    >>> from skldp.mechanisms import SquareWave
    >>> mechanism = SquareWave(epsilon=1.0, bounds=(0, 10))
    >>> mechanism.window, mechanism.half_window
    (0.125, 128)
    >>> mechanism.randomize([2.0, 3.0], rng=0).dtype
    dtype('int16')
    """

    epsilon: float = 1.0
    bounds: tuple = (-1.0, 1.0)
    n_levels: int = 1024
    window: float | str = "auto"

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "bounds", check_bounds(self.bounds))
        object.__setattr__(self, "n_levels", check_integer(self.n_levels, "n_levels", 1, MAX_LEVELS))
        window = automatic_window(self.epsilon) if is_auto(self.window) else _check_window(self.window)
        object.__setattr__(self, "window", window)

    @cached_property
    def half_window(self):
        """Half-window B in grid units; 0 without noise."""
        return round(float(self.window) * self.n_levels) if self.private else 0

    @property
    def n_near(self):
        """Number w = 2B + 1 of reports within the window."""
        return 2 * self.half_window + 1

    @cached_property
    def _threshold(self):
        if not self.private:
            return WORD
        return near_threshold(self.epsilon, self.n_near, self.n_levels, Fraction(self.n_near + self.n_levels, WORD))

    @property
    def near_probability(self):
        """Probability that a report lies within the window."""
        return self._threshold / WORD

    @property
    def clamp(self):
        """Smallest and largest report."""
        return -self.half_window, self.n_levels + self.half_window

    @cached_property
    def report_dtype(self):
        """Smallest integer dtype that holds every report."""
        return smallest_integer_dtype(*self.clamp)

    @property
    def _step(self):
        return (self.bounds[1] - self.bounds[0]) / self.n_levels

    def encode(self, x: ArrayLike) -> np.ndarray:
        """Clip values to the bounds and round them to the grid 0 .. n_levels."""
        return encode_interval(x, self.bounds, self.n_levels)

    def _draw(self, codes, source):
        if not self.private:
            return codes.astype(self.report_dtype)
        out = np.empty(codes.size, dtype=self.report_dtype)
        flat = codes.ravel()
        for start in range(0, flat.size, 1 << 15):
            block = slice(start, start + (1 << 15))
            out[block] = self._draw_block(flat[block], source)
        return out.reshape(codes.shape)

    def _draw_block(self, codes, source):
        level, position = source.words(2 * codes.size).reshape(2, -1)
        near = uniform_below(position, self.n_near)
        near += codes
        far = uniform_below(position, self.n_levels)
        # The far reports are numbered from the left; those to the right of the window skip over it.
        far += (far >= codes) * self.n_near
        return np.where(level < np.uint64(self._threshold), near, far) - self.half_window

    def decode(self, reports: ArrayLike) -> np.ndarray:
        """Reports on the scale of the bounds (not unbiased; see :meth:`unbiased`)."""
        return self.bounds[0] + np.asarray(reports) * self._step

    def unbiased(self, reports):
        r"""Values whose expectation is the record.

        A near report has mean x on the grid and a far one :math:`(n+w)/2 - wx/n`, so
        :math:`E[y|x] = px + (1-p)((n+w)/2 - wx/n)` is linear in x and is solved for x.
        """
        p, n = self.near_probability, self.n_levels
        slope = p - (1 - p) * self.n_near / n
        middle = (1 - p) * (n + self.n_near) / 2
        return self.bounds[0] + (np.asarray(reports) - middle) / slope * self._step

    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-probability of integer reports given values, elementwise with broadcasting."""
        valid, codes = self.valid(reports), self.encode(x)
        reports = np.asarray(reports).astype(np.int64)
        with np.errstate(divide="ignore"):
            near = np.log(self._threshold / WORD / self.n_near)
            far = np.log((WORD - self._threshold) / WORD / self.n_levels)
        value = np.where(np.abs(reports - codes) <= self.half_window, near, far)
        return np.where(valid, value, -np.inf)

    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the reports in [-B, n + B]."""
        reports = np.asarray(reports)
        if not is_integer(reports):
            return np.zeros(reports.shape, dtype=bool)
        return (reports >= self.clamp[0]) & (reports <= self.clamp[1])


def automatic_window(epsilon):
    """Half-window of least regret for normal records, as a share of the range; 0 without noise.

    Examples
    --------
    >>> automatic_window(1.0), automatic_window(0.1), automatic_window(20.0)
    (0.125, 0.15, 0.001)
    """
    return _interpolated(epsilon, _WINDOWS)


def density_window(epsilon):
    """Half-window for records of any shape, as a share of the range; 0 without noise.

    Parameters
    ----------
    epsilon : float
        Budget of one report.

    Returns
    -------
    float

    Examples
    --------
    >>> density_window(1.0), density_window(0.1), density_window(4.0)
    (0.25, 0.25, 0.125)
    """
    return _interpolated(epsilon, _DENSITY_WINDOWS)


def _interpolated(epsilon, windows):
    if math.isinf(epsilon):
        return 0.0
    place = bisect_right(_EPSILONS, epsilon) - 1
    if not 0 <= place < len(_EPSILONS) - 1:
        return windows[max(place, 0)]
    # Not np.interp: on some machines compiled code fuses the product and the sum, which changes the last bit, and the
    # id of a protocol depends on every bit.
    slope = (windows[place + 1] - windows[place]) / (_EPSILONS[place + 1] - _EPSILONS[place])
    return slope * (epsilon - _EPSILONS[place]) + windows[place]


def _check_window(window):
    if isinstance(window, str) or not 0 <= check_real(window, "window") <= 1:
        raise InvalidParameterError(f'window must be "auto" or a number in [0, 1], got {window!r}.')
    return abs(float(window))  # so that -0.0 and 0.0 have the same id
