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
    >>> off_diagonal = np.array([[0.0, 0.5], [0.5, 0.0]])
    >>> float(MomentNoise(constant=3.0).variance(off_diagonal, np.eye(2)))
    2.5
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

    def variance(self, x, theta):
        r"""Variance of :math:`\langle X, R\rangle`, X of shape (..., k, k), for Gaussian records of mean 0."""
        product = x @ theta
        trace, along = np.trace(x, axis1=-2, axis2=-1), np.trace(product, axis1=-2, axis2=-1)
        return (self.constant * np.sum(x * x, axis=(-2, -1)) + 2 * self.linear * np.sum(product * x, axis=(-2, -1))
                + 2 * self.square * np.sum(product * product.swapaxes(-2, -1), axis=(-2, -1))
                + self.identity * trace**2 + 2 * self.mixed * trace * along + (self.square - 1) * along**2)
