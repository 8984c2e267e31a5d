"""Radial map for coefficients so large that the reports barely depend on their size."""

from dataclasses import dataclass

import numpy as np

_MAX_LOGARITHM = 30.0  # of m, against overflow


@dataclass(frozen=True)
class Stretch:
    r"""Radial map that lengthens vectors beyond a given size, so that their tail is that of a normal distribution.

    Parameters
    ----------
    start : float
        Largest size :math:`x_1` of a vector that stays as it is.
    rate : float
        Rate q of the stretch.

    Notes
    -----
    The covariance of x and a label has a limit: beyond some size, larger coefficients :math:`\theta` barely change it,
    and the tail of their posterior is that of a t distribution. In coordinates in which the covariance is linear the
    limit is a size :math:`x_1` of :math:`\theta_0 = \theta/m`, and with

    .. math:: \theta = m(x)\theta_0, \qquad x = \sqrt{\theta_0^T\Sigma\theta_0}, \qquad
              \log m = \tfrac q2\max(x - x_1, 0)^2 \le 30

    the tail :math:`\theta^{-3}` becomes :math:`e^{-3q(x - x_1)^2/2}`. In d dimensions the Jacobian is
    :math:`m^d(1 + xm'/m)`.
    """

    start: float
    rate: float

    def logarithm(self, size):
        """Return log m and its derivative at sizes x."""
        beyond, within = self._beyond(size)
        return 0.5 * self.rate * beyond**2, self.rate * beyond * within

    def log_jacobian(self, size, n_features):
        """Return the logarithm of the Jacobian and its derivative at sizes x."""
        value, slope = self.logarithm(size)
        relative = 1 + size * slope
        by_relative = (slope + self.rate * size * self._beyond(size)[1]) / relative
        return n_features * value + np.log(relative), n_features * slope + by_relative

    def _beyond(self, size):
        """Return the part of sizes beyond the start, and whether m increases there."""
        farthest = np.sqrt(2 * _MAX_LOGARITHM / self.rate)
        beyond = size - self.start
        return np.clip(beyond, 0.0, farthest), (beyond > 0) & (beyond < farthest)

    def inverse(self, stretched):
        """Return the sizes x at which x m(x) has given positive values, by bisection."""
        low, high = np.zeros_like(stretched), stretched
        for _ in range(100):
            middle = 0.5 * (low + high)
            too_large = np.log(middle) + self.logarithm(middle)[0] > np.log(stretched)
            low, high = np.where(too_large, low, middle), np.where(too_large, middle, high)
        return high
