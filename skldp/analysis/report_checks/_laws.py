r"""Bounds on the probabilities of reports over all records, for every mechanism."""

import math

import numpy as np
from scipy.special import gammaln, ndtr

from skldp.analysis.report_checks._bounds import log_choose
from skldp.mechanisms._directions import DirectionMechanism
from skldp.mechanisms._encoding import BALL_RADIUS
from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._laplace import Laplace
from skldp.mechanisms._gaussian_moments import GaussianMoments
from skldp.mechanisms._square_wave import SquareWave
from skldp.privacy._noise import gaussian_slack, laplace_slack

_ROUNDING = 1e-9  # relative; exceeds the rounding errors of floats and of uniform integers made from words


def interval_probabilities(mechanism, low, high):
    """Smallest and largest probability, over all records, that the report of a value is in low .. high - 1.

    The ends are in grid units and may be infinite.

    Notes
    -----
    Given a record x the report is x plus symmetric noise, with a probability that decreases with the absolute value of
    the noise. So the probability of an interval is largest for the x nearest to the interval's centre, and smallest
    for one of the ends of the domain. The same holds for the share of the square wave's window in an interval.
    """
    mass, (first, last), slack = _location_law(mechanism)
    at_ends = np.stack([mass(low, high, first), mass(low, high, last)])
    with np.errstate(invalid="ignore"):
        centre = np.nan_to_num((low + high - 1) / 2, nan=0.0, posinf=last, neginf=first)
    largest = np.maximum(mass(low, high, np.clip(centre, first, last)), at_ends.max(axis=0))
    return at_ends.min(axis=0) * math.exp(-slack), np.minimum(largest * math.exp(slack), 1.0)


def _location_law(mechanism):
    """Return the probability of an interval given a record, the extreme records, and the error of its logarithm."""
    if isinstance(mechanism, SquareWave):
        return _square_wave_mass(mechanism), (0, mechanism.n_levels), _ROUNDING
    if isinstance(mechanism, Laplace):
        slack = _ROUNDING + laplace_slack(mechanism.scale, mechanism.epsilon)
        return _noise_mass(_laplace_cdf, mechanism), (0, mechanism.n_levels), slack
    slack = _ROUNDING + gaussian_slack(mechanism.scale)
    return _noise_mass(ndtr, mechanism), (-BALL_RADIUS, BALL_RADIUS), slack


def _square_wave_mass(mechanism):
    near = mechanism.near_probability / mechanism.n_near
    far = (1 - mechanism.near_probability) / mechanism.n_levels
    lowest, highest = mechanism.clamp

    def mass(low, high, x):
        """Probability of low .. high - 1 given x; x need not be a grid point."""
        low, high = np.maximum(low, lowest), np.minimum(high, highest + 1)
        overlap = np.minimum(high, x + mechanism.half_window + 1) - np.maximum(low, x - mechanism.half_window)
        return far * np.maximum(high - low, 0) + (near - far) * np.maximum(overlap, 0)

    return mass


def _noise_mass(cdf, mechanism):
    lowest, highest = mechanism.clamp

    def mass(low, high, x):
        """Probability of low .. high - 1 given x; the tails belong to the clamped reports."""
        start = np.where(low <= lowest, -np.inf, (low - 0.5 - x) / mechanism.scale)
        end = np.where(high > highest, np.inf, (high - 0.5 - x) / mechanism.scale)
        right = start > 0  # the difference of upper tails avoids cancellation there
        return cdf(np.where(right, -start, end)) - cdf(np.where(right, -end, start))

    return mass


def _laplace_cdf(x):
    return np.where(x < 0, np.exp(np.minimum(x, 0.0)) / 2, 1 - np.exp(-np.maximum(x, 0.0)) / 2)


def log_largest_value(mechanism):
    """Logarithms of the largest probability of one reported value and of the number of values."""
    low, high = mechanism.clamp
    # All values inside the domain have the same largest probability; the clamps collect the tails.
    cells = np.array([low, 0, high], dtype=float)
    largest = interval_probabilities(mechanism, cells, cells + 1)[1].max()
    return math.log(largest), math.log(high - low + 1)


def log_largest_subset(mechanism):
    """Logarithms of the largest probability of a subset and of the number of subsets."""
    d, size = mechanism.n_categories, mechanism.subset_size
    near = math.log(mechanism.p) - log_choose(d - 1, size - 1)
    far = math.log(max(1 - mechanism.p, 1e-300)) - log_choose(d - 1, size)
    return max(near, far) + _ROUNDING, float(log_choose(d, size))


def log_largest_unary(mechanism):
    """Logarithms of the largest probability of a row of bits and of the number of rows, by the number of ones."""
    d, p, q = mechanism.n_categories, mechanism.p, mechanism.q
    ones = np.arange(d + 1.0)
    # The record's own bit is 1 with probability p > q, so a row with ones is likeliest if the record is one of them.
    others = np.maximum(ones - 1, 0)
    value = np.log(np.where(ones > 0, p, 1 - p)) + others * math.log(q) + (d - 1 - others) * math.log1p(-q)
    return value + _ROUNDING, log_choose(d, ones)


def log_largest_vector(mechanism):
    """Logarithm of the largest probability of a noisy vector."""
    if isinstance(mechanism, DirectionMechanism):
        return _log_largest_direction(mechanism)
    if isinstance(mechanism, Gaussian):
        entries = np.full(mechanism.n_features, _log_largest_entry(mechanism.scale, mechanism.clamp[1], BALL_RADIUS))
    else:
        entries = _log_largest_entry(mechanism.scale / mechanism._isometry, mechanism.clamp, mechanism._largest)
    return float(entries.sum())


def _log_largest_entry(scale, clamp, largest):
    """Logarithm of the larger probability of a grid cell at the record and of the tail beyond the clamp."""
    cell = 1 / (scale * math.sqrt(2 * math.pi))
    tail = ndtr(-(clamp - 0.5 - largest) / scale)
    return np.log(np.maximum(cell, tail)) + gaussian_slack(np.min(scale)) + _ROUNDING


def _log_largest_direction(mechanism):
    r"""Logarithm of a bound on the probability of one report of a mechanism of directions.

    The density on the sphere is at most :math:`p/q_c`. Given the point :math:`\zeta` the report is z with probability
    :math:`\prod_jg(z_j - s\zeta_j)`, where :math:`g(t) = \int_{t-1/2}^{t+1/2}\frac12e^{-|u|}du` has the integral 1
    and the maximum :math:`g(0) = 1 - e^{-1/2}`. The sphere is covered by the m regions where one coordinate has an
    absolute value of at least :math:`1/\sqrt m`; there the density of the others is at most
    :math:`\sqrt m\,\Gamma(m/2)/\pi^{m/2}`. Integrating over these, and bounding the factor of the remaining
    coordinate by g(0),

    .. math:: P(z) \le \frac p{q_c}\,m^{3/2}\,\Gamma(m/2)\,\pi^{-m/2}\,(1 - e^{-1/2})\,s^{1-m}.
    """
    m = mechanism.dimension
    level = math.log(mechanism.near_probability / mechanism.cap_mass)
    shape = 1.5 * math.log(m) + float(gammaln(m / 2)) - m / 2 * math.log(math.pi) + math.log(-math.expm1(-0.5))
    return min(level + shape - (m - 1) * math.log(mechanism.resolution) + 1e-6, 0.0)


def clamp_probability(mechanism):
    """Bound on the probability that a clamp changes a report with Gaussian noise."""
    if isinstance(mechanism, GaussianMoments):
        depth = (mechanism.clamp - mechanism._largest) / (mechanism.scale / mechanism._isometry)
    else:
        depth = np.full(mechanism.n_features, (mechanism.clamp[1] - BALL_RADIUS) / mechanism.scale)
    return float(2 * ndtr(-depth).sum())
