"""Masses of cells: a smooth density, and point masses."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import expit

_ORDER = 1.25  # of the smoothness; 1 is a random walk and 2 an integrated one
_MOST_COSINES = 60
# Prior of the log-odds of a point mass, which only cells have where the reports show one: 0.07 % to 33 %, with a
# probability of 90 %.
_LOG_ODDS_MEAN, _LOG_ODDS_STD = -4.0, 2.0
# Prior of the log-odds of the share of the mass near a bound that is moved onto it: the share is below 5 % with a
# probability of 50 %, and above 50 % with a probability of 16 %.
_SHARE_MEAN, _SHARE_STD = -3.0, 3.0
# Distance over which mass is gathered, relative to the range. From expected reports of normal values at epsilon 4, the
# standard deviation is 0.35 posterior standard deviations too large with 0.05, 0.65 with 0.07 and 0.76 with 0.1.
_REACH = 0.05
N_ENDS = 2  # lower and upper bound


@dataclass(frozen=True, eq=False)
class Masses:
    """Masses of cells, shape (n_walkers, n_cells), and what they are made of."""

    total: np.ndarray
    smooth: np.ndarray  # sums to one
    shares: np.ndarray  # gathered at the bounds, shape (n_walkers, 2)
    odds: np.ndarray  # of the point masses against the rest, shape (n_walkers, n_spikes)


@dataclass(frozen=True, eq=False)
class SmoothMasses:
    r"""Masses of cells as a function of coefficients of the log-density and log-odds of point masses.

    Parameters
    ----------
    sizes : ndarray of shape (n_cells,)
        Number of points in each cell.
    spikes : ndarray of int, shape (n_spikes,)
        Cells that have a point mass besides their share of the density.

    Notes
    -----
    A smooth density has the masses

    .. math:: m_j = \frac{w_je^{f_j}}{\sum_i w_ie^{f_i}}, \qquad f = c_1u + c_2u^2 + \sum_i a_i\sqrt{\lambda_i}\,v_i,

    with :math:`w_j` the size of cell j and u its position on (-1, 1). If all a are zero, the density is that of a
    normal distribution between the bounds. The cosines :math:`v_i(j) = \sqrt{2/M}\cos(\pi i(j + \frac12)/M)`, the
    eigenvectors of the penalty :math:`D^TD` on first differences, are deviations from it. The :math:`\lambda_i` are the
    eigenvalues of the penalty to the power -1.25, scaled such that the deviation has an average variance of one if that
    of the coefficients is one. So it is a little smoother than a random walk (power -1). An integrated random walk
    (power -2) is too sure of its quantiles. The normal part is there because a random walk alone leaves mass in empty
    tails.

    A share r of the mass near each bound is gathered at the bound. With :math:`k_j = e^{-d_j/0.05}`, :math:`d_j` the
    distance of cell j from the lower bound relative to the range (zero beyond the middle), cell j keeps
    :math:`m_j(1 - rk_j)`, and the first cell gets :math:`r\sum_j k_jm_j`; likewise at the upper bound. Since this moves
    mass but adds none, an empty tail has no point mass, and r is nearly independent of f in the posterior. With a point
    mass of its own beside the density, either explains the reports, and walkers hardly move between the two.

    Cells with a point mass of odds :math:`o_l` get that in addition, and all masses are divided by
    :math:`1 + \sum_l o_l`. A bound with a point mass gathers nothing.
    """

    sizes: np.ndarray
    spikes: np.ndarray

    @cached_property
    def basis(self):
        """Log-density of each coefficient, (c, a), shape (n_cells, n_coefficients)."""
        n_cells = len(self.sizes)
        u = np.linspace(-1, 1, n_cells)
        angles = np.pi * np.arange(1, min(n_cells - 1, _MOST_COSINES) + 1) / n_cells
        cosines = np.sqrt(2 / n_cells) * np.cos(angles * (np.arange(n_cells)[:, None] + 0.5))
        variances = (2 - 2 * np.cos(angles)) ** -_ORDER
        return np.concatenate([u[:, None], u[:, None] ** 2, cosines * np.sqrt(variances * n_cells / variances.sum())],
                              axis=1)

    @property
    def n_coefficients(self):
        """Number of coefficients of the log-density."""
        return self.basis.shape[1]

    def with_spike(self, cell):
        """Return masses with one more point mass."""
        return replace(self, spikes=np.append(self.spikes, cell))

    @cached_property
    def near(self):
        """Nearness of each cell to the lower and to the upper bound, shape (2, n_cells); 0 beyond the middle."""
        n_cells = len(self.sizes)
        distance = np.linspace(0, 1, n_cells)
        nearness = np.where(distance < 0.5, np.exp(-distance / _REACH), 0.0)
        # A bound with a point mass gathers nothing. With both, 1e8 reports took 2,500 steps.
        return np.stack([nearness, nearness[::-1]]) * ~np.isin([[0], [n_cells - 1]], self.spikes)

    def __call__(self, coefficients, x):
        """Return the masses; ``x`` are the standardised log-odds of the shares at the bounds, and of point masses."""
        logs = coefficients @ self.basis.T
        smooth = self.sizes * np.exp(logs - logs.max(axis=1, keepdims=True))
        smooth /= smooth.sum(axis=1, keepdims=True)
        shares = expit(_SHARE_MEAN + _SHARE_STD * x[:, :N_ENDS])
        odds = np.exp(_LOG_ODDS_MEAN + _LOG_ODDS_STD * x[:, N_ENDS:])
        total = smooth * (1 - shares @ self.near)
        total[:, [0, -1]] += shares * (smooth @ self.near.T)
        for spike, cell in enumerate(self.spikes):
            total[:, cell] += odds[:, spike]
        return Masses(total / (1 + odds.sum(axis=1, keepdims=True)), smooth, shares, odds)

    def pull_back(self, masses, by_mass):
        """Return the gradients by the coefficients and by ``x``, from the gradient by the masses."""
        smooth, shares = masses.smooth, masses.shares
        weight = 1 / (1 + masses.odds.sum(axis=1, keepdims=True))
        by_smooth = by_mass * (1 - shares @ self.near) + (shares * by_mass[:, [0, -1]]) @ self.near
        by_log = smooth * (by_smooth - np.vecdot(smooth, by_smooth)[:, None])
        by_share = (smooth @ self.near.T) * by_mass[:, [0, -1]] - (smooth * by_mass) @ self.near.T
        at_spikes = by_mass[:, self.spikes] - np.vecdot(masses.total, by_mass)[:, None]
        by_x = np.concatenate([_SHARE_STD * shares * (1 - shares) * by_share,
                               _LOG_ODDS_STD * masses.odds * at_spikes], axis=1)
        return weight * (by_log @ self.basis), weight * by_x

    def directions(self, masses):
        """Return the derivatives of the masses of one walker by (coefficients, x), shape (n_cells, n)."""
        (total,), (smooth,), (shares,), (odds,) = masses.total, masses.smooth, masses.shares, masses.odds
        ends = np.eye(len(total))[:, [0, -1]]
        weight = 1 / (1 + odds.sum())
        by_log = smooth[:, None] * (self.basis - smooth @ self.basis)
        by_coefficient = by_log * (1 - shares @ self.near)[:, None] + (ends * shares) @ (self.near @ by_log)
        by_share = ends * (self.near @ smooth) - smooth[:, None] * self.near.T
        by_odds = np.eye(len(total))[:, self.spikes] - total[:, None]
        return weight * np.concatenate([by_coefficient, _SHARE_STD * shares * (1 - shares) * by_share,
                                        _LOG_ODDS_STD * odds * by_odds], axis=1)
