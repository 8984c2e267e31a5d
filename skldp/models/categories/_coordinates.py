r"""Coordinates of frequencies in which each category, by its own count, is standard normal."""

import numpy as np
from scipy.special import log_ndtr, ndtri

_LAST, _CELLS = 6.0, 192  # of the table of each category
_STEP = 2 * _LAST / _CELLS
_FARTHEST = 8.0  # coordinates of nodes; ndtri loses its precision beyond
_STEEPEST = 2.5  # times the mean slope of a cell; a cubic is increasing up to 3
_LOG_ROOT_TWO_PI = np.log(2 * np.pi) / 2


class FrequencyCoordinates:
    r"""Increasing map from each coordinate x to :math:`\phi = \log y`, the logarithm of a frequency up to a factor.

    Parameters
    ----------
    marginals : Marginals
        Independent posteriors of the y.

    Attributes
    ----------
    concentration : float
        Parameter of the prior in these posteriors.
    total : float
        Shape S of the distribution of :math:`Y = \sum_ky_k`: Gamma with the mean 1 and the variance of independent y.

    Notes
    -----
    :math:`x_k = \Phi^{-1}(F_k(y_k))` with the distribution function :math:`F_k` of the marginal posterior of
    category k. So x is nearly standard normal, also for a category that may be empty, whose :math:`\log y` has two
    modes. The map is a table of increasing cubic polynomials on 192 cells between -6 and 6. Below, :math:`\phi` is
    quadratic, so that the tail :math:`e^{\alpha\phi}` of the prior is that of a normal distribution; above, it is
    linear. The posterior does not depend on the map, whose Jacobian is that of the polynomials.
    """

    def __init__(self, marginals):
        self.concentration, self.total = marginals.concentration, 1 / marginals.variance
        self._ends = np.linspace(-_LAST, _LAST, _CELLS + 1)
        tables = [_tabulated(self._ends, logs, x, slope, self.concentration)
                  for logs, x, slope in zip(*_scores(marginals))]
        self._values, slopes = np.moveaxis(np.array(tables), 1, 0)
        self._tables = [np.ascontiguousarray(table).ravel() for table in _polynomials(self._values, slopes)]
        self._row = marginals.row

    def __call__(self, x):
        r"""Return :math:`\phi`, its derivative :math:`\phi'`, and :math:`\phi''/\phi'`, at x of shape (n, d)."""
        place = (x + _LAST) / _STEP
        cell = np.fmin(np.fmax(place, 0), _CELLS - 1).astype(np.intp)
        u = (place - cell) * _STEP
        cell += self._row * _CELLS
        c0, c1, c2, c3 = (table.take(cell) for table in self._tables)
        c3 *= u
        c2 += c3  # c2 + c3 u
        slope = c1 + u * (2 * c2 + c3)
        return c0 + u * (c1 + u * c2), slope, 2 * (c2 + 2 * c3) / slope

    def inverse(self, logs):
        r"""Return the coordinates x with given :math:`\phi`."""
        columns = zip(logs.T, self._values[self._row])
        x = np.stack([np.interp(column, values, self._ends) for column, values in columns], axis=1)
        for _ in range(8):
            found, slope, _ = self(x)
            x = x + np.clip((logs - found) / slope, -_LAST, _LAST)
        return x

    def convert(self, theta, other):
        """Return these coordinates of points in other ones."""
        return self.inverse(other(theta)[0])


def _scores(marginals):
    r"""Return :math:`\phi`, x and the derivative of :math:`\phi` at the nodes of all rows."""
    total = marginals.masses.sum(axis=1, keepdims=True)
    below = np.cumsum(marginals.masses, axis=1) / total
    above = np.cumsum(marginals.masses[:, ::-1], axis=1)[:, -2::-1] / total
    above = np.concatenate([above, np.zeros_like(total)], axis=1)
    x = np.where(below < 0.5, ndtri(np.minimum(below, 0.5)), -ndtri(np.minimum(above, 0.5)))
    with np.errstate(all="ignore"):  # the density may be zero at both ends
        slope = np.exp(-x**2 / 2 - _LOG_ROOT_TWO_PI) * total / marginals.density
    return marginals.logs, x, slope


def _tabulated(ends, logs, x, slope, concentration):
    r"""Return :math:`\phi` and its derivative at the ends of the cells, for one category.

    Below the first node the density of :math:`\phi` is :math:`e^{\alpha\phi}`, so :math:`\alpha\phi` is
    :math:`\log\Phi(x)` up to a constant.
    """
    kept = np.flatnonzero((np.abs(x) < _FARTHEST) & np.isfinite(slope))
    kept = kept[np.diff(x[kept], prepend=-np.inf) > 1e-6]
    logs, x, slope = logs[kept], x[kept], slope[kept]
    cell = np.clip(np.searchsorted(x, ends) - 1, 0, len(x) - 2)
    values, slopes = _cubic(ends - x[cell], x[cell + 1] - x[cell], logs[cell], logs[cell + 1], slope[cell],
                            slope[cell + 1])
    low, high = ends < x[0], ends > x[-1]
    values[low] = logs[0] + (log_ndtr(ends[low]) - log_ndtr(x[0])) / concentration
    slopes[low] = np.exp(-ends[low] ** 2 / 2 - _LOG_ROOT_TWO_PI - log_ndtr(ends[low])) / concentration
    values[high], slopes[high] = logs[-1] + slope[-1] * (ends[high] - x[-1]), slope[-1]
    return values, slopes


def _cubic(u, width, value, next_value, slope, next_slope):
    """Return value and derivative at u of the increasing cubic polynomials between 0 and given widths."""
    c1, c2, c3 = _coefficients(width, value, next_value, slope, next_slope)
    return value + u * (c1 + u * (c2 + u * c3)), c1 + u * (2 * c2 + 3 * u * c3)


def _coefficients(width, value, next_value, slope, next_slope):
    """Return the coefficients of u, u^2 and u^3 of the cubic polynomials with given values and slopes at the ends."""
    mean = (next_value - value) / width
    slope, next_slope = np.minimum(slope, _STEEPEST * mean), np.minimum(next_slope, _STEEPEST * mean)
    return slope, (3 * mean - 2 * slope - next_slope) / width, (slope + next_slope - 2 * mean) / width**2


def _polynomials(values, slopes):
    """Return the four coefficients of all cells; a quadratic polynomial in the first and a linear one in the last."""
    # A slope belongs to two cells, so it is limited by both.
    mean = np.diff(values, axis=1) / _STEP
    slopes[:, 1:-1] = np.minimum(slopes[:, 1:-1], _STEEPEST * np.minimum(mean[:, 1:], mean[:, :-1]))
    c1, c2, c3 = _coefficients(_STEP, values[:, :-1], values[:, 1:], slopes[:, :-1], slopes[:, 1:])
    c0 = values[:, :-1].copy()
    curvature = np.minimum((slopes[:, 2] - slopes[:, 1]) / _STEP, 0.0)
    c1[:, 0] = slopes[:, 1] - curvature * _STEP
    c0[:, 0] = values[:, 1] - slopes[:, 1] * _STEP + curvature * _STEP**2 / 2
    c2[:, 0], c3[:, 0] = curvature / 2, 0.0
    c1[:, -1], c2[:, -1], c3[:, -1] = slopes[:, -2], 0.0, 0.0
    return c0, c1, c2, c3
