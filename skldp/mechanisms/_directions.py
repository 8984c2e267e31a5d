"""Base class of mechanisms that report a random unit vector, more likely near the direction of the record."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincc, ndtri

from skldp._validation._limits import MAX_ENTRIES
from skldp._validation._parameters import check_epsilon, check_integer, check_positive
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._base import Mechanism, check_width, has_width, in_blocks
from skldp.mechanisms._encoding import BALL_RADIUS, encode_ball
from skldp.privacy._noise import uniform_pair
from skldp.privacy._thresholds import WORD

DITHER_VARIANCE = 2 + 1 / 12  # of rounded Laplace noise of scale 1, to 1e-3
_LEVEL_MARGIN = 2.0**-40  # relative margin of the threshold, above the float error of the near set's share


@dataclass(frozen=True, kw_only=True)
class DirectionMechanism(Mechanism):
    r"""A unit vector :math:`\zeta` whose density has two levels: high on a near set around the record's direction u.

    The near set is described by :math:`\langle\zeta, u\rangle` and its height ``gamma``. A subclass says what it is,
    and what its reports estimate.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    norm : float, default=1.0
        Public radius; records are clipped to the ball.
    n_features : int, default=1
        Length of a record. A report has one entry more.

    Notes
    -----
    Drawing, the dither, and the proof in floats are those of :class:`Sphere`, with s the ``resolution``.
    """

    epsilon: float = 1.0
    norm: float = 1.0
    n_features: int = 1

    resolution = 2**14  # integer length of a reported direction
    report_dtype = np.dtype(np.int16)

    def __post_init__(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "norm", check_positive(self.norm, "norm"))
        object.__setattr__(self, "n_features", check_integer(self.n_features, "n_features", 1, MAX_ENTRIES))
        if self.private and self._cap_epsilon < self.epsilon / 2:
            raise InvalidParameterError(
                f"epsilon={self.epsilon!r} is too small for {self.n_features} entries: rounding errors would use up "
                f"half of it. Raise epsilon or send fewer entries."
            )

    @property
    def dimension(self):
        """Number m of entries of a report, including the padding."""
        return self.n_features + 1

    @property
    def width(self):
        """Number of integers in a report."""
        return self.dimension

    @property
    def _cap_epsilon(self):
        m = self.dimension
        return self.epsilon - 4 * self.resolution * math.sqrt(m) * (m + 64) * 2.0**-52 - 2.0**-39

    @cached_property
    def gamma(self):
        """Height of the near set; 1 without noise."""
        # Imported here, because a client that sends categories or values needs no root finder.
        from scipy.optimize import brentq

        if not self.private:
            return 1.0
        return float(brentq(self._excess, 0.0, 1 - 1e-16, xtol=1e-15, rtol=1e-14))

    @abstractmethod
    def _excess(self, gamma):
        """Difference whose root is the best height."""

    @property
    @abstractmethod
    def cap_mass(self):
        """Share of the sphere that lies in the near set."""

    @cached_property
    def _far_threshold(self):
        """Threshold below which a word chooses the complement of the near set."""
        growth = 1 + math.expm1(self._cap_epsilon) * self.cap_mass
        return math.ceil(WORD * (1 - self.cap_mass) / growth * (1 + _LEVEL_MARGIN))

    @property
    def near_probability(self):
        """Probability that the report lies in the near set."""
        return 1 - self._far_threshold / WORD if self.private else 1.0

    @property
    def _length_tolerance(self):
        # The dither changes the length by its component along the report and by half its square over the length.
        # Together these exceed the tolerance once in 1e20 reports.
        return 64 + (4 * self.dimension + 4000) / self.resolution if self.private else math.sqrt(self.dimension)

    @property
    def longest(self):
        """Integer upper bound on the length of a report."""
        return self.resolution + math.floor(self._length_tolerance) + 1

    def encode(self, x: ArrayLike) -> np.ndarray:
        """Clip vectors, shape (n, n_features), to the ball and round them to integers of norm at most 2**16."""
        return encode_ball(check_width(x, self.n_features), self.norm)

    def direction(self, codes):
        """Unit vectors, shape (n, n_features + 1), of encoded records, with the padding last."""
        unit = np.empty((len(codes), self.dimension))
        unit[:, :-1] = codes
        unit[:, -1] = np.sqrt(BALL_RADIUS**2 - np.vecdot(codes, codes))
        unit /= BALL_RADIUS
        return unit

    @property
    def _block_rows(self):
        """Number of reports that are drawn or checked at once, so that temporary arrays stay in the cache."""
        return max(1, 2**16 // self.dimension)

    def _draw(self, codes, source):
        draw = self._draw_block if self.private else self._encode_block
        return in_blocks(lambda rows: draw(rows, source), codes, self._block_rows, (self.dimension,), self.report_dtype)

    def _encode_block(self, codes, source):
        return np.rint(self.resolution * self.direction(codes))

    def _draw_block(self, codes, source):
        n, m = len(codes), self.dimension
        words = source.words(n + 4 * n * m)
        near = words[:n] >= np.uint64(self._far_threshold)
        high, low = words[n:].reshape(2, n, 2 * m)
        uniform = uniform_pair(high, low)
        sign = high.view(np.int64)
        # The floor gives a direction to a vector whose entries would all round to zero.
        tangent = np.copysign(np.maximum(-ndtri(uniform[:, 1:m] * 0.5), 2.0**-60), sign[:, 1:m])
        report = self._point(self.direction(codes), near, sign[:, 0] < 0, uniform[:, 0], tangent)
        report *= self.resolution
        report += np.copysign(np.log(uniform[:, m:]), sign[:, m:])
        # No clamp is needed: an entry of the dither is below 89, so the report fits its dtype.
        return np.rint(report, out=report)

    def _point(self, u, near, upper, uniform, tangent):
        """Point of the sphere, in floats, from a level, a bit, a uniform number and a normal vector."""
        x, toward = self._beta_quantile(near, upper, uniform)
        cosine = np.where(toward, 1 - 2 * x, 2 * x - 1)
        sine = 2 * np.sqrt(x * (1 - x))
        sign = np.copysign(1.0, u[:, 0])
        point = np.empty_like(u)
        np.multiply(-sign, cosine, out=point[:, 0])
        np.multiply(tangent, (sine / np.sqrt(np.vecdot(tangent, tangent)))[:, None], out=point[:, 1:])
        # Reflection I - v v' / (1 + |u_0|) with v = u + sign e_0 takes -sign e_0 to u.
        along = (np.vecdot(u, point) - cosine) / (1 + np.abs(u[:, 0]))
        point -= along[:, None] * u
        point[:, 0] -= sign * along
        return point

    @abstractmethod
    def _beta_quantile(self, near, upper, uniform):
        """Return the Beta quantile (1 - cosine) / 2 where the second result is true, else (1 + cosine) / 2.

        Each half of the sphere is measured from its own pole, which avoids cancellation.
        """

    @abstractmethod
    def _is_near(self, cosine, length):
        """Whether vectors of a length, with inner products with the record's direction, are in the near set."""

    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-density of the reported directions, against the uniform measure on the sphere, given vectors.

        Two levels: :math:`p/q_c` in the near set, whose share of the sphere is :math:`q_c`, and
        :math:`(1-p)/(1-q_c)` outside. Rounding and dither, both far smaller than the near set, are neglected.
        """
        return self._log_prob_codes(reports, self.encode(x))

    def _log_prob_codes(self, reports, codes):
        reports = np.asarray(reports, dtype=np.float64)
        cosine = np.vecdot(reports, self.direction(codes))
        if not self.private:
            return np.where(np.abs(cosine - self.resolution) < 1, np.inf, -np.inf)
        near = self._is_near(cosine, np.sqrt(np.vecdot(reports, reports)))
        far_probability = self._far_threshold / WORD
        log_near = math.log((1 - far_probability) / self.cap_mass)
        log_far = math.log(far_probability / (1 - self.cap_mass))
        return np.where(near, log_near, log_far)

    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the rows whose length a dithered unit vector can have."""
        reports = np.asarray(reports)
        if not has_width(reports, self.dimension):
            return np.zeros(len(reports), dtype=bool)
        return in_blocks(self._has_valid_length, reports, self._block_rows, (), np.dtype(bool))

    def _has_valid_length(self, reports):
        # As floats, because a hostile entry may overflow when squared.
        wide = reports.astype(np.float64)
        return np.abs(np.sqrt(np.vecdot(wide, wide)) - self.resolution) <= self._length_tolerance


def upper_share(power, half, gamma):
    r"""Probability that a Beta variable with the parameters ``power`` and ``half`` is at least :math:`\gamma^2`.

    The squared entry of a uniform unit vector in m dimensions is such a variable with 1/2 and (m - 1)/2.
    """
    # Each form is precise where the other is not: gamma^2 for small gamma, 1 - gamma^2 for gamma close to 1.
    if gamma * gamma < 0.5:
        return float(betaincc(power, half, gamma * gamma))
    return float(betainc(half, power, (1 - gamma) * (1 + gamma)))
