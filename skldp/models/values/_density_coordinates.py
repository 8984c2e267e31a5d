"""Coordinates of a log-density: a normal one plus deviations whose prior has an unknown scale."""

from dataclasses import dataclass

import numpy as np

_N_NORMAL = 2  # coefficients of the normal density, which come first
# Prior of the logarithm of the scale tau, the standard deviation of deviations of the log-density: between 2.2 and 16
# with a probability of 90 %. The reports alone cannot tell a thin tail from a heavy one: with a median of 2.5, means of
# skewed values were up to 1.15 posterior standard deviations too small from expected reports at epsilon 1, and with
# 6 (and 2.5 for c) up to 0.8. With 0.3 in place of 0.6, standard deviations of normal values are better covered, but
# the Kolmogorov distance from a Beta distribution grows by a sixth.
MEDIAN_SCALE, _STD = 6.0, 0.6
_LARGEST = 12.0  # standard deviations of the prior; beyond them the scale would overflow
# Standard deviation of c. With 100, which fits any normal density, the tails of skewed values were too thin, with 5
# their means are less well covered. Larger scales tau need less of the normal part; with tau near 9 it is not needed.
_NORMAL_SCALE = 2.5


def prior_precision(n_coefficients, scale):
    """Return the prior precisions of the coefficients (c, a), for a scale of a."""
    precision = np.full(n_coefficients, scale**-2.0)
    precision[:_N_NORMAL] = _NORMAL_SCALE**-2
    return precision


@dataclass(frozen=True, eq=False)
class State:
    """Coefficients at coordinates, and what their derivatives need."""

    normal: np.ndarray  # c
    deviations: np.ndarray  # a
    std: np.ndarray  # s
    shrinkage: np.ndarray  # d log s / d log tau
    scale: np.ndarray  # tau, shape (n_walkers, 1)

    @property
    def coefficients(self):
        """All coefficients of the log-density, (c, a)."""
        return np.concatenate([self.normal, self.deviations], axis=1)


@dataclass(frozen=True, eq=False)
class DensityCoordinates:
    r"""Map from nearly standard normal coordinates to the coefficients of a log-density, for every scale.

    The prior is :math:`c \sim N(0, 2.5^2I)` for the two coefficients of the normal density, and
    :math:`a \sim N(0, \tau^2I)` for the deviations, with :math:`\log\tau = \log 6 + 0.6t` and t standard normal. The
    reports add a nearly quadratic term, with the information F at a pilot estimate :math:`(\hat c, \hat a)`. If a
    changes by :math:`\delta`, the best c changes by :math:`-L\delta`, :math:`L = F_{cc}^{-1}F_{ca}`. What the reports
    say about a alone has the information :math:`F_{aa} - F_{ac}L = U\,\mathrm{diag}(\varphi)\,U^T` and a slope b at
    zero along the columns of U. So given :math:`\tau`, :math:`U^Ta` is nearly normal with the variances
    :math:`s^2 = (\tau^{-2} + \varphi)^{-1}` and the means :math:`s^2b`. The coordinates are t, y and z:

    .. math:: U^Ta = s^2b + sz, \qquad c = \hat c - L(a - \hat a) + F_{cc}^{-1/2}y.

    The distribution of y and z is nearly the same for every :math:`\tau`, so that nothing slows walkers down where the
    scale is small.

    Parameters
    ----------
    normal : ndarray of shape (2,)
        :math:`\hat c + L\hat a`.
    root : ndarray of shape (2, 2)
        Lower triangular root of :math:`F_{cc}^{-1}`.
    adjustment : ndarray of shape (2, n)
        L.
    rotation : ndarray of shape (n, n)
        U.
    curvature, slope : ndarray of shape (n,)
        :math:`\varphi` and b.
    """

    normal: np.ndarray
    root: np.ndarray
    adjustment: np.ndarray
    rotation: np.ndarray
    curvature: np.ndarray
    slope: np.ndarray

    @classmethod
    def at(cls, coefficients, score, information):
        """Return the coordinates for the gradient and information of the log-likelihood at a pilot estimate."""
        c, a = coefficients[:_N_NORMAL], coefficients[_N_NORMAL:]
        among = information[:_N_NORMAL, :_N_NORMAL] + np.eye(_N_NORMAL) / _NORMAL_SCALE**2
        between = information[:_N_NORMAL, _N_NORMAL:]
        adjustment = np.linalg.solve(among, between)
        curvature, rotation = np.linalg.eigh(information[_N_NORMAL:, _N_NORMAL:] - between.T @ adjustment)
        curvature = np.maximum(curvature, 0.0)
        by_normal = score[:_N_NORMAL] - c / _NORMAL_SCALE**2  # nearly zero at a mode
        slope = rotation.T @ (score[_N_NORMAL:] - adjustment.T @ by_normal) + curvature * (rotation.T @ a)
        return cls(c + adjustment @ a, np.linalg.cholesky(np.linalg.inv(among)), adjustment, rotation, curvature, slope)

    @property
    def n_coordinates(self):
        """Number of coordinates (t, y, z)."""
        return 1 + _N_NORMAL + len(self.slope)

    def __call__(self, theta):
        """Return the coefficients at coordinates (t, y, z) of shape (n_walkers, n_coordinates)."""
        t, y, z = theta[:, :1], theta[:, 1:1 + _N_NORMAL], theta[:, 1 + _N_NORMAL:]
        scale = MEDIAN_SCALE * np.exp(_STD * np.clip(t, -_LARGEST, _LARGEST))
        shrinkage = 1 / (1 + self.curvature * scale**2)
        std = scale * np.sqrt(shrinkage)
        deviations = (std**2 * self.slope + std * z) @ self.rotation.T
        return State(self.normal - deviations @ self.adjustment.T + y @ self.root.T, deviations, std, shrinkage, scale)

    def log_prior(self, theta, state):
        """Return the logarithm of the prior density of the coordinates: of t, c and a, with the Jacobian of (c, a)."""
        squares = (state.deviations**2).sum(axis=1) / state.scale[:, 0] ** 2
        squares += (state.normal**2).sum(axis=1) / _NORMAL_SCALE**2 + theta[:, 0] ** 2
        return np.log(state.std).sum(axis=1) - len(self.slope) * np.log(state.scale[:, 0]) - 0.5 * squares

    def gradient(self, theta, state, by_coefficient):
        """Return the gradient of log-prior and log-likelihood by (t, y, z), from the latter's by (c, a)."""
        by_normal = by_coefficient[:, :_N_NORMAL] - state.normal / _NORMAL_SCALE**2
        precise = state.deviations / state.scale**2
        by_deviation = by_coefficient[:, _N_NORMAL:] - precise - by_normal @ self.adjustment
        by_rotated = by_deviation @ self.rotation
        moved = state.shrinkage * state.std * (2 * state.std * self.slope + theta[:, 1 + _N_NORMAL:])
        by_log_scale = (np.vecdot(by_rotated, moved) + state.shrinkage.sum(axis=1)
                        + np.vecdot(state.deviations, precise) - len(self.slope))
        by_t = (_STD * by_log_scale - theta[:, 0])[:, None]
        return np.concatenate([by_t, by_normal @ self.root, by_rotated * state.std], axis=1)

    def convert(self, theta, other):
        """Return these coordinates of points in other ones. Further parameters, behind (t, y, z), are kept."""
        n = self.n_coordinates
        state = other(theta[:, :n])
        std = state.scale / np.sqrt(1 + self.curvature * state.scale**2)
        z = state.deviations @ self.rotation / std - std * self.slope
        c = state.normal - self.normal + state.deviations @ self.adjustment.T
        y = np.linalg.solve(self.root, c.T).T
        return np.concatenate([theta[:, :1], y, z, theta[:, n:]], axis=1)
