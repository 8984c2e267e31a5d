"""Sphere mechanism (PrivUnit): a random direction, more likely near that of the record."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, betaincc, betaincinv, gammaln, ndtri

from skldp._validation._limits import MAX_ENTRIES
from skldp._validation._parameters import check_epsilon, check_integer, check_positive
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._base import Mechanism, check_width, has_width, in_blocks
from skldp.mechanisms._encoding import BALL_RADIUS, encode_ball
from skldp.privacy._noise import uniform_pair
from skldp.privacy._thresholds import WORD

RESOLUTION = 2**14  # integer length of a reported direction
_LEVEL_MARGIN = 2.0**-40  # relative margin of the threshold, above the float error of the cap's mass
_DITHER_VARIANCE = 2 + 1 / 12  # of rounded Laplace noise of scale 1, to 1e-3


@dataclass(frozen=True, kw_only=True)
class Sphere(Mechanism):
    r"""Report a random unit vector, more likely near the record's direction (PrivUnit); unbiased after scaling.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    norm : float, default=1.0
        Public radius :math:`\rho`; records are clipped to the ball :math:`\|x\|_2 \le \rho`.
    n_features : int, default=1
        Length of a record. A report has one entry more.

    Attributes
    ----------
    gamma : float
        Height of the cap, and mean of the report along the record's direction.
    near_probability : float
        Probability p that the report lies in the cap.
    noise_variance : float
        Variance :math:`\tau^2` of every entry of a decoded report around its record.

    Notes
    -----
    A record x becomes the unit vector :math:`u = (x, \sqrt{\rho^2 - \|x\|^2})/\rho` of dimension m = n_features + 1.
    With probability p the report's direction :math:`\zeta` is uniform on the cap
    :math:`\langle\zeta,u\rangle \ge \gamma`, else uniform on the rest. With
    :math:`q_c = \frac12 I_{1-\gamma^2}(\frac{m-1}2, \frac12)` the share of the cap and
    :math:`p = e^\epsilon q_c/(1 + (e^\epsilon - 1)q_c)`, the density has two levels in the ratio :math:`e^\epsilon`.

    *Moments.* :math:`E\langle\zeta,u\rangle = M(e^\epsilon-1)/(1 + (e^\epsilon-1)q_c)`,
    :math:`M = \Gamma(\frac m2)(1-\gamma^2)^{(m-1)/2}/((m-1)\sqrt\pi\,\Gamma(\frac{m-1}2))`. The best height is the
    fixed point :math:`\gamma = E\langle\zeta,u\rangle`; then :math:`\rho\zeta/\gamma` has mean :math:`\rho u` and,
    given the record, the covariance :math:`\tau^2I` with :math:`\tau^2 = \rho^2(1-\gamma^2)/(m\gamma^2)`: unbiased
    with isotropic noise, as Gaussian noise would be, but pure epsilon and several times smaller.

    *Drawing.* An integer threshold chooses the level. :math:`t = \langle\zeta,u\rangle` is drawn by inverting its Beta
    distribution on the chosen side of :math:`\gamma`. A uniform direction orthogonal to u is a normalised normal vector
    of dimension m - 1, mapped by the Householder reflection that takes the first axis to :math:`\pm u` (without
    cancellation for any u).

    *Privacy in floats.* The report is :math:`\mathrm{rint}(s\zeta + n)` with :math:`s = 2^{14}` and n a dither, Laplace
    noise of scale 1 in every entry. The dither is far smaller than the noise of the mechanism (a share of about
    :math:`2m/s^2` of the variance), and is needed for the proof: given :math:`\zeta`, the log-probability of any report
    changes by at most :math:`\|s(\zeta - \zeta')\|_1 \le s\sqrt m\|\zeta - \zeta'\|_2`, so an error e in the computed
    :math:`\zeta` changes the probability of a report by a factor within :math:`e^{\pm s\sqrt m\|e\|_2}`. Without the
    dither, a report whose cell barely touches the sphere could identify a record.

    The error is :math:`\|e\|_2 \le (m + 64)2^{-52}\max(1, 1/r)` with r the length of the normal vector: m products
    and sums of vectors of length at most 2, and the errors of the inverse CDFs (measured against arbitrary precision
    in the tests). Since r is independent of the direction, the factor is the mean of :math:`e^{s\sqrt m\|e\|_2}`
    over r, which exceeds its value at r = 1 by :math:`O(s\sqrt m\,2^{-46})` at most, outside an event (r below
    :math:`2^{-35}` at m = 3, or a uniform number so small that its last bits matter) of probability below
    :math:`2^{-70}`; for m = 2 the normal vector is a sign and r does not matter. So the cap is built for
    :math:`\epsilon' = \epsilon - 4s\sqrt m(m+64)2^{-52} - 2^{-39}`, which subtracts twice what the worst case needs.
    The last term covers the threshold, which is moved by a relative :math:`2^{-40}` toward more privacy to allow for
    the error of :math:`q_c`.

    References
    ----------
    A. Bhowmick, J. Duchi, J. Freudiger, G. Kapoor, R. Rogers (2018). Protection against reconstruction and its
    applications in private federated learning. arXiv:1812.00984.

    H. Asi, V. Feldman, K. Talwar (2022). Optimal algorithms for mean estimation under local differential privacy. ICML.

    Examples
    --------
    >>> from skldp.mechanisms import Sphere
    >>> mechanism = Sphere(epsilon=1.0, norm=1.0, n_features=65)
    >>> round(mechanism.noise_variance, 2)
    6.27
    >>> reports = mechanism.randomize([[0.1] * 65], rng=0)
    >>> reports.shape, mechanism.decode(reports).shape
    ((1, 66), (1, 65))
    """

    epsilon: float = 1.0
    norm: float = 1.0
    n_features: int = 1

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
        return self.epsilon - 4 * RESOLUTION * math.sqrt(m) * (m + 64) * 2.0**-52 - 2.0**-39

    @cached_property
    def gamma(self):
        """Height of the cap; 1 without noise."""
        # Imported here, because a client that sends categories or values needs no root finder.
        from scipy.optimize import brentq

        if not self.private:
            return 1.0
        m, epsilon = self.dimension, self._cap_epsilon
        return float(brentq(lambda g: mean_cosine(g, epsilon, m) - g, 0.0, 1 - 1e-16, xtol=1e-15, rtol=1e-14))

    @cached_property
    def cap_mass(self):
        """Share of the sphere that lies in the cap."""
        return cap_mass(self.gamma, self.dimension)

    @cached_property
    def _far_threshold(self):
        """Threshold below which a word chooses the complement of the cap."""
        growth = 1 + math.expm1(self._cap_epsilon) * self.cap_mass
        return math.ceil(WORD * (1 - self.cap_mass) / growth * (1 + _LEVEL_MARGIN))

    @property
    def near_probability(self):
        """Probability that the report lies in the cap."""
        return 1 - self._far_threshold / WORD if self.private else 1.0

    @property
    def _length_tolerance(self):
        # The dither changes the length by its component along the report and by half its square over the length.
        # Together these exceed the tolerance once in 1e20 reports.
        return 64 + (4 * self.dimension + 4000) / RESOLUTION if self.private else math.sqrt(self.dimension)

    @property
    def longest(self):
        """Integer upper bound on the length of a report."""
        return RESOLUTION + math.floor(self._length_tolerance) + 1

    @property
    def noise_variance(self):
        """Variance of every entry of a decoded report around its record, including the dither."""
        if not self.private:
            return 0.0
        per_entry = (1 - self.gamma**2) / self.dimension + _DITHER_VARIANCE / RESOLUTION**2
        return self.norm**2 * per_entry / self.gamma**2

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

    def _draw(self, codes, source):
        n_rows = max(1, 2**16 // self.dimension)
        draw = self._draw_block if self.private else self._encode_block
        return in_blocks(lambda rows: draw(rows, source), codes, n_rows, (self.dimension,), self.report_dtype)

    def _encode_block(self, codes, source):
        return np.rint(RESOLUTION * self.direction(codes))

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
        report *= RESOLUTION
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

    def _beta_quantile(self, near, upper, uniform):
        """Return the Beta quantile (1 - cosine) / 2 where the second result is true, else (1 + cosine) / 2.

        The share of the sphere beyond the cosine is uniform on (0, q) in the cap and on (q, 1) outside. The bit chooses
        the upper or lower half of (q, 1). Each half is measured from its own pole, which avoids cancellation.
        """
        half, cap = (self.dimension - 1) / 2, self.cap_mass
        toward = near | upper
        share = uniform * np.where(near, cap, (1 - cap) / 2)
        share[toward > near] += cap
        return betaincinv(half, half, share), toward

    def decode(self, reports: ArrayLike) -> np.ndarray:
        """Unbiased vectors on the scale of the records, shape (n, n_features)."""
        return np.asarray(reports)[:, :-1] * (self.norm / (RESOLUTION * self.gamma))

    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-density of the reported directions, against the uniform measure on the sphere, given vectors.

        Two levels: :math:`p/q_c` in the cap and :math:`(1-p)/(1-q_c)` outside. Rounding and dither, both far smaller
        than the cap, are neglected.
        """
        return self._log_prob_codes(reports, self.encode(x))

    def _log_prob_codes(self, reports, codes):
        reports = np.asarray(reports, dtype=np.float64)
        cosine = np.vecdot(reports, self.direction(codes))
        if not self.private:
            return np.where(np.abs(cosine - RESOLUTION) < 1, np.inf, -np.inf)
        near = cosine >= self.gamma * np.sqrt(np.vecdot(reports, reports))
        far_probability = self._far_threshold / WORD
        log_near = math.log((1 - far_probability) / self.cap_mass)
        log_far = math.log(far_probability / (1 - self.cap_mass))
        return np.where(near, log_near, log_far)

    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the rows whose length a dithered unit vector can have."""
        reports = np.asarray(reports)
        if not has_width(reports, self.dimension):
            return np.zeros(len(reports), dtype=bool)
        # As floats, because a hostile entry may overflow when squared.
        wide = reports.astype(np.float64)
        length = np.sqrt(np.vecdot(wide, wide))
        return np.abs(length - RESOLUTION) <= self._length_tolerance


def cap_mass(gamma, dimension):
    r"""Share :math:`\frac12 I_{1-\gamma^2}(\frac{m-1}2, \frac12)` of the sphere with first entry at least gamma."""
    half = (dimension - 1) / 2
    # Each form is precise where the other is not: gamma^2 for small gamma, 1 - gamma^2 for gamma close to 1.
    if gamma * gamma < 0.5:
        return float(betaincc(0.5, half, gamma * gamma) / 2)
    return float(betainc(half, 0.5, (1 - gamma) * (1 + gamma)) / 2)


def mean_cosine(gamma, epsilon, dimension):
    """Mean of the report along the record's direction for a cap of height gamma, see Sphere."""
    half = (dimension - 1) / 2
    log_moment = gammaln(dimension / 2) - gammaln(half) - math.log(2 * half) - math.log(math.pi) / 2
    moment = math.exp(log_moment + half * math.log1p(-gamma * gamma)) if gamma < 1 else 0.0
    return moment * math.expm1(epsilon) / (1 + math.expm1(epsilon) * cap_mass(gamma, dimension))
