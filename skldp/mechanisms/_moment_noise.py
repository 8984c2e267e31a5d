"""Covariance of decoded reports of second moments, as an operator on symmetric matrices."""

import math
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True)
class MomentNoise:
    r"""Covariance of a decoded report over records v, given :math:`\Theta = E\,vv^T`.

    Parameters
    ----------
    constant, linear, square : float
        :math:`c_0, c_1, c_2` below.
    identity, mixed : float
        :math:`g_0, g_1` below.
    square_radius : float, default=inf
        Largest squared length of a record; infinite if the noise does not depend on it.

    Notes
    -----
    With the Frobenius product :math:`\langle\cdot,\cdot\rangle`, the variance of :math:`\langle X, R\rangle` for a
    report R of one record is :math:`\langle X, \mathcal C[X]\rangle` for

    .. math:: \mathcal C[X] = c_0X + c_1(\Theta X + X\Theta) + c_2\mathrm{Cov}(vv^T)[X]
              + g_0\langle I, X\rangle I + g_1(\langle\Theta, X\rangle I + \langle I, X\rangle\Theta)
              + (c_2 - 1)\langle\Theta, X\rangle\Theta .

    Isotropic noise of variance :math:`\tau^2` has :math:`c_0 = \tau^2`, :math:`c_2 = 1` and zeros. If v is Gaussian
    with mean m, :math:`\mathrm{Cov}(vv^T)[X] = 2\Theta X\Theta - 2\langle mm^T, X\rangle mm^T`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.mechanisms._moment_noise import MomentNoise
    >>> MomentNoise(constant=3.0).variance(np.eye(2), np.array([0.0, 1.0]), np.eye(2))
    array([1.5, 3. ])
    """

    constant: float
    linear: float = 0.0
    square: float = 1.0
    identity: float = 0.0
    mixed: float = 0.0
    square_radius: float = math.inf

    @property
    def isotropic(self):
        """Whether the noise does not depend on the records."""
        return math.isinf(self.square_radius)

    def within(self, square):
        """Noise of records whose mean squared length is ``square``, an array, with fields that are arrays.

        Records are not longer than the radius. A model may say that they are; then this is the noise of records with
        the same moments, scaled to the radius, because without the scaling it might be no covariance.
        """
        if self.isotropic:
            return self
        share = np.minimum(1.0, self.square_radius / square)
        return replace(self, linear=self.linear * share, square=1 + (self.square - 1) * share**2,
                       mixed=self.mixed * share)

    def variance(self, left, right, theta):
        r"""Variance of :math:`l^TRr` that is due to the noise, for the rows l of a matrix and a vector r.

        Notes
        -----
        It is :math:`\langle X, \mathcal C[X]\rangle - \langle X, \mathrm{Cov}(vv^T)[X]\rangle` at
        :math:`X = \frac12(lr^T + rl^T)`, for Gaussian records of mean zero.
        """
        lr, ll, rr = left @ right, np.vecdot(left, left), right @ right
        across, along, other = left @ theta @ right, np.vecdot(left @ theta, left), right @ theta @ right
        return (self.constant * (ll * rr + lr**2) / 2
                + self.linear * (2 * lr * across + rr * along + ll * other) / 2
                + (self.square - 1) * (along * other + 2 * across**2)
                + self.identity * lr**2 + 2 * self.mixed * lr * across)

    def trace_variance(self, size, square):
        r"""Variance, due to the noise, of the sum of ``size`` diagonal entries of R.

        Notes
        -----
        It is that of ``variance`` with the projection on these entries for X, for records whose squared entries there
        add up to ``square``, the same number for all records.
        """
        return (self.constant * size + 2 * self.linear * square + (self.square - 1) * square**2
                + self.identity * size**2 + 2 * self.mixed * size * square)
