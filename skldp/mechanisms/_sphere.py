"""Sphere mechanism (PrivUnit): a random direction, more likely near that of the record."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, gammaln

from skldp.mechanisms._directions import DITHER_VARIANCE, DirectionMechanism, upper_share

RESOLUTION = DirectionMechanism.resolution


@dataclass(frozen=True, kw_only=True)
class Sphere(DirectionMechanism):
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

    def _excess(self, gamma):
        return mean_cosine(gamma, self._cap_epsilon, self.dimension) - gamma

    @cached_property
    def cap_mass(self):
        """Share of the sphere that lies in the cap."""
        return cap_mass(self.gamma, self.dimension)

    @property
    def noise_variance(self):
        """Variance of every entry of a decoded report around its record, including the dither."""
        if not self.private:
            return 0.0
        per_entry = (1 - self.gamma**2) / self.dimension + DITHER_VARIANCE / RESOLUTION**2
        return self.norm**2 * per_entry / self.gamma**2

    def _beta_quantile(self, near, upper, uniform):
        # The share of the sphere beyond the cosine is uniform on (0, q) in the cap and on (q, 1) outside. The bit
        # chooses the upper or lower half of (q, 1).
        half, cap = (self.dimension - 1) / 2, self.cap_mass
        toward = near | upper
        share = uniform * np.where(near, cap, (1 - cap) / 2)
        share[toward > near] += cap
        return betaincinv(half, half, share), toward

    def _is_near(self, cosine, length):
        return cosine >= self.gamma * length

    def decode(self, reports: ArrayLike) -> np.ndarray:
        """Unbiased vectors on the scale of the records, shape (n, n_features)."""
        return np.asarray(reports)[:, :-1] * (self.norm / (RESOLUTION * self.gamma))


def cap_mass(gamma, dimension):
    r"""Share :math:`\frac12 I_{1-\gamma^2}(\frac{m-1}2, \frac12)` of the sphere with first entry at least gamma."""
    return upper_share(0.5, (dimension - 1) / 2, gamma) / 2


def mean_cosine(gamma, epsilon, dimension):
    """Mean of the report along the record's direction for a cap of height gamma, see Sphere."""
    half = (dimension - 1) / 2
    log_moment = gammaln(dimension / 2) - gammaln(half) - math.log(2 * half) - math.log(math.pi) / 2
    moment = math.exp(log_moment + half * math.log1p(-gamma * gamma)) if gamma < 1 else 0.0
    return moment * math.expm1(epsilon) / (1 + math.expm1(epsilon) * cap_mass(gamma, dimension))
