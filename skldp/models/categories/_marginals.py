r"""Posterior of each frequency by the count of its own category, on nodes."""

import numpy as np
from scipy.special import gammaln

from skldp.models.categories._likelihoods import pooled_estimate

# Numbers of nodes near zero, around the estimate and around the mean of prior and estimate; all times the fineness.
_NEAR_ZERO, _AROUND = 24, 64
_WIDTH = 7.0  # of the nodes on each side, in standard errors
_LEAST = 1e-4  # standard errors; below this frequency the likelihood is constant
_WIDEST = 10.0  # frequencies under the prior, in units of their scale
_NEWTON_STEPS = 60
_PRECISION = 1e-3  # of the sum of the means, in standard deviations of the sum
_FLAT = 1e-3  # rise of a logarithm, below which its mean value is precise
_LEAST_VARIANCE = 1e-18  # if nearly all clients have one category and there is no noise
_LONGEST_STEP = 2.0  # in standard deviations of the sum of the frequencies


class Marginals:
    r"""Independent posteriors of all frequencies, whose means sum to one.

    Parameters
    ----------
    likelihoods : list
        One for each protocol, with the method ``marginal``.
    concentration : float
        Parameter :math:`\alpha` of the symmetric Dirichlet prior.
    fineness : int, default=4
        Factor of the number of nodes; 1 is enough for the evidence.

    Attributes
    ----------
    row : ndarray of int, shape (n_categories,)
        Row of each category in the other arrays. Categories with the same counts have the same posterior, and share it.
    logs, density : ndarray of shape (n_rows, n_nodes)
        Nodes :math:`\log y`, and the density of :math:`\log y` there, up to a constant for each row.
    masses : ndarray of shape (n_rows, n_nodes)
        Integrals of that density from each node to the next lower one, the first from minus infinity.
    variance : float
        Sum of the variances of all y.
    log_evidence : float
        Logarithm of the marginal likelihood of :math:`\alpha`, up to a constant.

    Notes
    -----
    If the log-likelihood is a sum :math:`\sum_k\ell_k(\theta_k)`, the posterior of :math:`\theta` is that of
    independent :math:`y_k` with densities

    .. math:: p_k(y) = \frac{y^{\alpha-1}e^{-\lambda y}e^{\ell_k(y)}}{Z_k\Gamma(\alpha)},

    given that their sum is one. This holds for every :math:`\lambda`. The :math:`\lambda` at which the means sum to
    one makes the condition harmless, and with the variance V of the sum the evidence of :math:`\alpha` is nearly
    :math:`\Gamma(d\alpha)e^\lambda\prod_kZ_k/\sqrt{2\pi V}` (a saddlepoint approximation).

    Examples
    --------
    >>> from skldp.models.categories._marginals import Marginals
    >>> from skldp.models.categories._likelihoods import MultinomialLikelihood
    >>> from skldp.mechanisms import RandomizedResponse
    >>> likelihood = MultinomialLikelihood(RandomizedResponse(epsilon=1.0, n_categories=4), [0, 0, 0, 0], 0)
    >>> round(Marginals([likelihood], 5.0).variance, 3)  # of Gamma variables with shape 20 in all, over 20
    0.05
    """

    def __init__(self, likelihoods, concentration, fineness=4):
        self.concentration = concentration
        first, self.row, self._n_sharing = _groups([part.sums for part in likelihoods])
        estimate, errors = (part[first] for part in pooled_estimate(likelihoods))
        self._nodes = _nodes(estimate, errors, len(self.row), concentration, fineness)
        self.logs = np.log(self._nodes)
        self._level = concentration * self.logs + sum(part.marginal(self._nodes, first) for part in likelihoods)
        self._widths = np.diff(self.logs, axis=1)
        below = self._nodes[:, :1] * concentration / (1 + concentration)
        self._middles = np.concatenate([below, (self._nodes[:, 1:] + self._nodes[:, :-1]) / 2], axis=1)
        self._balance()

    def _balance(self):
        """Find lambda by Newton's method, and bisection where that would leave the interval known to contain it."""
        tilt, low, high = len(self.row) * self.concentration, -np.inf, np.inf
        for _ in range(_NEWTON_STEPS):
            excess, scale = self._tilt(tilt), np.sqrt(self.variance)
            if abs(excess) < _PRECISION * min(1.0, scale):
                break
            low, high = (tilt, high) if excess > 0 else (low, tilt)
            tilt += np.clip(excess / scale, -_LONGEST_STEP, _LONGEST_STEP) / scale
            tilt = tilt if low < tilt < high else (low + high) / 2

    def _tilt(self, tilt):
        """Set densities, variance and evidence for a value of lambda; return the sum of the means, less one."""
        level = self._level - tilt * self._nodes
        level -= (top := level.max(axis=1, keepdims=True))
        self.density = np.exp(level)
        inner = self._widths * _logarithmic_mean(self.density, level)
        self.masses = np.concatenate([self.density[:, :1] / self.concentration, inner], axis=1)
        total = self.masses.sum(axis=1)
        mean = np.vecdot(self.masses, self._middles) / total
        variances = np.vecdot(self.masses, (self._middles - mean[:, None]) ** 2) / total
        self.variance = max(float(self._n_sharing @ variances), _LEAST_VARIANCE)
        d = len(self.row)
        self.log_evidence = (gammaln(d * self.concentration) - d * gammaln(self.concentration) + tilt
                             + self._n_sharing @ (np.log(total) + top[:, 0]) - np.log(self.variance) / 2)
        return self._n_sharing @ mean - 1


def _groups(counts):
    """Return the first category of each group with the same counts, the group of each category, and their sizes."""
    # Sorting one array of numbers is many times faster than sorting the columns of an array.
    one, axis = (counts[0], None) if len(counts) == 1 else (np.array(counts), 1)
    return np.unique(one, axis=axis, return_index=True, return_inverse=True, return_counts=True)[1:]


def _logarithmic_mean(density, level):
    """Return the means of a density between nodes, if its logarithm is linear there."""
    rise = np.diff(level, axis=1)
    is_flat = np.abs(rise) < _FLAT
    exact = np.diff(density, axis=1) / np.where(is_flat, 1.0, rise)
    return np.where(is_flat, (density[:, 1:] + density[:, :-1]) / 2, exact)


def _nodes(estimate, errors, d, concentration, fineness):
    """Return increasing positive frequencies for each row, dense wherever its posterior can be."""
    errors = np.minimum(errors, 1 + _WIDEST / (d * concentration))
    estimate = np.clip(estimate, -5 * errors, 1)
    width = 1 / np.sqrt(1 / errors**2 + d**2 * concentration)  # of prior and estimate together, if both are normal
    centre = width**2 * (estimate / errors**2 + d * concentration)
    small = _LEAST * np.minimum(errors, 1 / d)
    near_zero = np.geomspace(small, np.maximum(errors, 1 / d), _NEAR_ZERO * fineness, axis=1)
    around = [_spread(middle, scale, fineness) for middle, scale in ((estimate, errors), (centre, width))]
    return np.sort(np.concatenate([near_zero, *around], axis=1), axis=1)


def _spread(middle, scale, fineness):
    """Return equally spaced positive numbers within a few scales around the middle."""
    low, high = np.maximum(middle - _WIDTH * scale, 0.0), np.maximum(middle, 0.0) + _WIDTH * scale
    return np.linspace(low, high, _AROUND * fineness + 1, axis=1)[:, 1:]
