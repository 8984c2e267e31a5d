"""Axis mechanism: a random direction, more likely near the axis of the record, on either side."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, betaln

from skldp.mechanisms._directions import DITHER_VARIANCE, DirectionMechanism, upper_share
from skldp.mechanisms._moment_noise import MomentNoise

# Integer length of a reported direction. Squares of entries are below 2**23, so that sums over 2**40 reports are exact
# in int64.
AXIS_RESOLUTION = 2**11


@dataclass(frozen=True, kw_only=True)
class Axis(DirectionMechanism):
    r"""Report a random unit vector, more likely near the line through the record; its square estimates v v'.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    norm : float, default=1.0
        Public radius :math:`\rho`; records are clipped to the ball :math:`\|v\|_2 \le \rho`.
    n_features : int, default=1
        Length of a record. A report has one entry more.

    Attributes
    ----------
    gamma : float
        Height of the two caps: reports with :math:`\langle z, u\rangle^2 \ge \gamma^2` are more likely.
    cap_mass : float
        Share of the sphere that lies in the two caps.
    near_probability : float
        Probability that the report lies in one of them.
    noise : MomentNoise
        Covariance of a decoded report, over any distribution of records.
    noise_variance : float
        Variance of a decoded entry off the diagonal times 2, averaged over all directions of the record.

    Notes
    -----
    A record v becomes the unit vector :math:`u = (v, \sqrt{\rho^2 - \|v\|^2})/\rho` of dimension D = n_features + 1,
    and z is drawn from the sphere with a density proportional to
    :math:`1 + (e^\epsilon - 1)\,1\{\langle z, u\rangle^2 \ge t\}`. The normalising constant
    :math:`Z = 1 + (e^\epsilon - 1)P_0`, :math:`P_0 = P(T^2 \ge t)`, is the same for every u, so the densities of any
    two records have a ratio of at most :math:`e^\epsilon`. z and -z are equally likely, so z has information about
    :math:`uu^T` alone, and its budget is spent in D dimensions instead of the :math:`D^2/2` of that matrix.

    *Moments.* :math:`T = \langle z, u\rangle`, and given T the rest of z is uniform on the directions orthogonal to u.
    For a uniform z, :math:`T^2 \sim \mathrm{Beta}(\frac12, \frac p2)` with p = D - 1; let
    :math:`P_{ij} = P(\mathrm{Beta}(\frac12 + i, \frac p2 + j) \ge t)`, so that, with :math:`E = e^\epsilon - 1`,
    :math:`E\,T^{2i}(1 - T^2)^j` is the moment of the uniform z times :math:`(1 + E\,P_{ij})/Z`. Then

    .. math:: E\,zz^T = \alpha I + \beta uu^T, \quad \alpha = \frac{E(1 - T^2)}p = \frac{1 + E\,P_{01}}{ZD}, \quad
              \beta = E\,T^2 - \alpha = \frac EZ\,\frac{P_{10} - P_{00}}p
              = \frac{E\,t^{1/2}(1 - t)^{p/2}}{\frac12Zp\,\mathrm B(\frac12, \frac p2)},

    and :math:`R = \rho^2(zz^T - \alpha I)/\beta`, without the row and the column of the padding, is unbiased for
    :math:`vv^T`. By symmetry the fourth moments are sums of products of I and :math:`uu^T`,

    .. math:: E\,z_iz_jz_kz_l = A'(\delta\delta)_3 + B'(\delta uu)_6 + C'u_iu_ju_ku_l,

    with the 3 and 6 different terms of each kind, and matching them given T,

    .. math:: A' = \frac{E(1 - T^2)^2}{p(p + 2)} = \frac{1 + E\,P_{02}}{ZD(D + 2)}, \quad
              B' = \frac{E\,T^2(1 - T^2)}p - A' = \frac{E(P_{11} - P_{02})}{ZD(D + 2)},

    .. math:: C' = E\,T^4 - 6\frac{E\,T^2(1 - T^2)}p + 3A' = \frac{E(3P_{20} - 6P_{11} + 3P_{02})}{ZD(D + 2)} .

    Contracted with a symmetric X without entries in the padding's row, this is ``MomentNoise`` with
    :math:`(c_0, c_1, c_2) = (2\rho^4A', 2\rho^2B', C')/\beta^2` and
    :math:`(g_0, g_1) = (\rho^4(A' - \alpha^2), \rho^2(B' - \alpha\beta))/\beta^2`. The padding is not in the formula,
    for any distribution.

    *Height.* For u uniform on the sphere z is uniform too, so the variance of an entry off the diagonal is
    :math:`\rho^4(\beta^{-2} - 1)/(D(D + 2))`: the best t maximises :math:`\beta`, or :math:`a = E\,T^2`. Since
    :math:`\partial_ta \propto a - t`, it is the fixed point :math:`t = E\,T^2`. For records with unequal entries
    another t would be better, by less than 0.1 % of the variance for typical records of five features or more, up to
    epsilon 8 (``benchmarks/table_axis.py``).

    *Privacy in floats* is that of :class:`Sphere`: the report is :math:`\mathrm{rint}(sz + n)` with :math:`s = 2^{11}`
    and the dither n, and the level comes from an integer threshold. The half of the sphere is a random bit, and
    :math:`|T|` is drawn by inverting its Beta distribution, measured from the pole. Per entry the dither has the
    variance :math:`\eta` in units of s, which adds :math:`\eta` to :math:`\alpha` in decoding, and
    :math:`2\alpha\eta + \eta^2` and :math:`\beta\eta` to A' and B' in :math:`c_0` and :math:`c_1`.

    Examples
    --------
    >>> from skldp.mechanisms import Axis
    >>> mechanism = Axis(epsilon=4.0, norm=1.0, n_features=7)
    >>> reports = mechanism.randomize([[0.3] * 7], rng=0)
    >>> reports.shape, mechanism.decode(reports).shape
    ((1, 8), (1, 7, 7))
    >>> round(mechanism.noise_variance, 2)
    0.17
    """

    resolution = AXIS_RESOLUTION

    def _excess(self, gamma):
        epsilon, m = self._cap_epsilon, self.dimension
        growth = math.expm1(epsilon)
        mean_square = (1 + growth * self._share(1, 0, gamma)) / (m * (1 + growth * self._share(0, 0, gamma)))
        return mean_square - gamma * gamma

    def _share(self, i, j, gamma):
        r"""Probability :math:`P_{ij}`."""
        return upper_share(0.5 + i, (self.dimension - 1) / 2 + j, gamma)

    @cached_property
    def cap_mass(self):
        """Share of the sphere that lies in the two caps."""
        return self._share(0, 0, self.gamma)

    @cached_property
    def _alpha_beta(self):
        r""":math:`\alpha` and :math:`\beta`."""
        if not self.private:
            return 0.0, 1.0
        p, gamma, growth = self.dimension - 1, self.gamma, math.expm1(self._cap_epsilon)
        total = 1 + growth * self.cap_mass
        log_slope = math.log(gamma) + p / 2 * math.log1p(-gamma * gamma) - math.log(p / 2) - betaln(0.5, p / 2)
        alpha = (1 + growth * self._share(0, 1, gamma)) / (total * (p + 1))
        return alpha, growth / total * math.exp(log_slope)

    @property
    def _dither(self):
        """Variance of an entry of the report that is due to the dither, relative to its squared length."""
        return DITHER_VARIANCE / AXIS_RESOLUTION**2 if self.private else 0.0

    @cached_property
    def _fourth_moments(self):
        """A', B' and C', without the dither."""
        m, growth = self.dimension, math.expm1(self._cap_epsilon)
        p02, p11, p20 = (self._share(i, j, self.gamma) for i, j in ((0, 2), (1, 1), (2, 0)))
        scale = 1 / ((1 + growth * self.cap_mass) * m * (m + 2))
        return (1 + growth * p02) * scale, growth * (p11 - p02) * scale, growth * 3 * (p20 - 2 * p11 + p02) * scale

    @cached_property
    def noise(self):
        """Covariance of a decoded report over records."""
        if not self.private:
            return MomentNoise(0.0)
        (alpha, beta), (a, b, c), dither = self._alpha_beta, self._fourth_moments, self._dither
        square = self.norm**2
        return MomentNoise(constant=2 * square**2 * (a + 2 * alpha * dither + dither**2) / beta**2,
                           linear=2 * square * (b + beta * dither) / beta**2, square=c / beta**2,
                           identity=square**2 * (a - alpha**2) / beta**2, mixed=square * (b - alpha * beta) / beta**2,
                           square_radius=square)

    @property
    def noise_variance(self):
        """Twice the variance of a decoded entry off the diagonal, averaged over all directions of the record."""
        noise, m, square = self.noise, self.dimension, self.norm**2
        # E v_i^2 = rho^2 / D and E v_i^2 v_j^2 = rho^4 / (D (D + 2)) off the diagonal.
        spread = 2 * (noise.square - 1) * square**2 / (m * (m + 2))
        return noise.constant + 2 * noise.linear * square / m + spread

    def _beta_quantile(self, near, upper, uniform):
        # Half of each cap is on either side; beyond |cosine| lies a share of (0, q/2) in a cap, of (q/2, 1/2) outside.
        half, cap = (self.dimension - 1) / 2, self.cap_mass / 2
        share = uniform * np.where(near, cap, 0.5 - cap)
        share[~near] += cap
        return betaincinv(half, half, share), upper

    def _is_near(self, cosine, length):
        return np.abs(cosine) >= self.gamma * length

    def decode(self, reports: ArrayLike) -> np.ndarray:
        """Unbiased products v v', shape (n, n_features, n_features)."""
        reports = np.asarray(reports, dtype=np.float64)
        return self.decode_products(reports[:, :, None] * reports[:, None, :])

    def decode_products(self, products: ArrayLike) -> np.ndarray:
        """Unbiased estimates of v v' from (means of) products r r' of reports, shape (..., D, D)."""
        alpha, beta = self._alpha_beta
        out = np.asarray(products, dtype=np.float64)[..., :-1, :-1] * (self.norm**2 / (beta * AXIS_RESOLUTION**2))
        order = np.arange(out.shape[-1])  # a matrix may be larger if each record has some of its entries
        out[..., order, order] -= (alpha + self._dither) * self.norm**2 / beta
        return out
