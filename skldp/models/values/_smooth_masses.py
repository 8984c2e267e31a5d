"""Masses of cells: a smooth density, and point masses."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

_ORDER = 1.25  # of the smoothness; 1 is a random walk and 2 an integrated one
_MOST_COSINES = 60
# Prior of the log-odds of a point mass, which only cells have where the reports show one: 0.07 % to 33 %, with a
# probability of 90 %.
_LOG_ODDS_MEAN, _LOG_ODDS_STD = -4.0, 2.0


@dataclass(frozen=True, eq=False)
class Masses:
    """Masses of cells, each of shape (n_walkers, n_cells) or (n_walkers, n_spikes)."""

    total: np.ndarray
    smooth: np.ndarray  # sums to one
    odds: np.ndarray  # of the point masses against the smooth density


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
    With :math:`w_j` the size of cell j, u its position on (-1, 1), and odds :math:`o_l` of the point mass in cell
    :math:`c_l`,

    .. math:: p_j = \frac{m_j + \sum_{l:\,c_l = j} o_l}{1 + \sum_l o_l}, \qquad
              m_j = \frac{w_je^{f_j}}{\sum_i w_ie^{f_i}}, \qquad
              f = c_1u + c_2u^2 + \sum_i a_i\sqrt{\lambda_i}\,v_i.

    If all a are zero, the density is that of a normal distribution between the bounds. The cosines
    :math:`v_i(j) = \sqrt{2/M}\cos(\pi i(j + \frac12)/M)`, the eigenvectors of the penalty :math:`D^TD` on first
    differences, are deviations from it. The :math:`\lambda_i` are the eigenvalues of the penalty to the power -1.25,
    scaled such that the deviation has an average variance of one if that of the coefficients is one. So it is a little
    smoother than a random walk (power -1). An integrated random walk (power -2) is too sure of its quantiles. The
    normal part is there because a random walk alone leaves mass in empty tails.
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

    def __call__(self, coefficients, x):
        """Return the masses; ``x`` are the standardised log-odds of the point masses."""
        logs = coefficients @ self.basis.T
        smooth = self.sizes * np.exp(logs - logs.max(axis=1, keepdims=True))
        smooth /= smooth.sum(axis=1, keepdims=True)
        odds = np.exp(_LOG_ODDS_MEAN + _LOG_ODDS_STD * x)
        total = smooth.copy()
        for spike, cell in enumerate(self.spikes):
            total[:, cell] += odds[:, spike]
        return Masses(total / (1 + odds.sum(axis=1, keepdims=True)), smooth, odds)

    def pull_back(self, masses, by_mass):
        """Return the gradients by the coefficients and by ``x``, from the gradient by the masses."""
        weight = 1 / (1 + masses.odds.sum(axis=1, keepdims=True))
        by_log = masses.smooth * (by_mass - np.vecdot(masses.smooth, by_mass)[:, None])
        at_spikes = by_mass[:, self.spikes] - np.vecdot(masses.total, by_mass)[:, None]
        return weight * (by_log @ self.basis), _LOG_ODDS_STD * weight * masses.odds * at_spikes

    def directions(self, masses):
        """Return the derivatives of the masses of one walker by (coefficients, x), shape (n_cells, n)."""
        (total,), (smooth,), (odds,) = masses.total, masses.smooth, masses.odds
        weight = 1 / (1 + odds.sum())
        by_coefficient = smooth[:, None] * (self.basis - smooth @ self.basis)
        by_x = _LOG_ODDS_STD * odds * (np.eye(len(total))[:, self.spikes] - total[:, None])
        return weight * np.concatenate([by_coefficient, by_x], axis=1)
