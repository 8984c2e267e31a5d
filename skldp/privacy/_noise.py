r"""Integer noise that keeps its privacy guarantee in floating point.

A record is first encoded as an integer q on a public grid. The report is :math:`q + \mathrm{rint}(s\,n)` with n a
standard Laplace or normal variable and s its scale in grid units. Because q is an integer this equals
:math:`\mathrm{rint}(q + s\,n)`. It is post-processing of the ideal continuous mechanism on q, so the calibration of
that mechanism still holds. The only remaining error is that n is computed in floats: :func:`laplace_slack` and
:func:`gaussian_slack` bound how much this can change the probability of any report.

The variable n is the inverse CDF of a uniform number. Two 64-bit words supply one sign bit and 127 bits of magnitude.
There is no rejection loop, and the number of words never depends on data.
"""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from skldp.privacy._words import SeededWords, SystemWords

__all__ = [
    "gaussian_noise",
    "gaussian_slack",
    "integer_noise",
    "laplace_noise",
    "laplace_slack",
    "uniform_below",
]

GAUSSIAN_REACH = 10.0  # standard deviations within which gaussian_slack holds
LAPLACE_CLAMP = 40.0  # scales beyond the domain at which Laplace reports are clamped

_CHUNK = 1 << 15  # values per block, so that temporary arrays fit in the processor's cache
_MAGNITUDE = np.uint64(2**63 - 1)
_HALF = np.uint64(32)
_LOW = np.uint64(2**32 - 1)


def laplace_noise(high: np.ndarray, low: np.ndarray, scale: float) -> np.ndarray:
    r"""Laplace noise, rounded to integers, from pairs of words.

    Parameters
    ----------
    high, low : ndarray of uint64
        Two words per value: the sign and the 127-bit uniform u.
    scale : float
        Scale s in grid units.

    Returns
    -------
    ndarray of int64
        :math:`\pm\mathrm{rint}(-s\log u)`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.privacy import laplace_noise
    >>> half, zero = np.array([2**62], dtype=np.uint64), np.array([0], dtype=np.uint64)
    >>> laplace_noise(half, zero, 1000.0)
    array([693])
    """
    return _signed(np.log(uniform_pair(high, low)) * -scale, high)


def gaussian_noise(high: np.ndarray, low: np.ndarray, scale: float) -> np.ndarray:
    r"""Gaussian noise, rounded to integers, from pairs of words.

    Parameters
    ----------
    high, low : ndarray of uint64
        Two words per value: the sign and the 127-bit uniform u.
    scale : float
        Standard deviation s in grid units.

    Returns
    -------
    ndarray of int64
        :math:`\pm\mathrm{rint}(-s\,\Phi^{-1}(u/2))`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.privacy import gaussian_noise
    >>> half, zero = np.array([2**62], dtype=np.uint64), np.array([0], dtype=np.uint64)
    >>> gaussian_noise(half, zero, 1000.0)
    array([674])
    """
    return _signed(ndtri(uniform_pair(high, low) * 0.5) * -scale, high)


def integer_noise(law: Callable[..., np.ndarray], scale: float, shape: tuple[int, ...],
                  source: SystemWords | SeededWords) -> np.ndarray:
    """Return an array of integer noise.

    Parameters
    ----------
    law : callable
        :func:`laplace_noise` or :func:`gaussian_noise`.
    scale : float
        Scale in grid units.
    shape : tuple of int
        Shape of the result.
    source : SystemWords or SeededWords
        Source of random words; each value uses two.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> from skldp.privacy import SeededWords, integer_noise, laplace_noise
    >>> integer_noise(laplace_noise, 100.0, (2, 2), SeededWords(b"x")).shape
    (2, 2)
    """
    out = np.empty(math.prod(shape), dtype=np.int64)
    for start in range(0, out.size, _CHUNK):
        block = out[start:start + _CHUNK]
        high, low = source.words(2 * block.size).reshape(2, -1)
        block[:] = law(high, low, scale)
    return out.reshape(shape)


def laplace_slack(scale: float, epsilon: float) -> float:
    r"""Bound eta on the error of the log-probability of a Laplace report in float arithmetic.

    Parameters
    ----------
    scale : float
        Scale s in grid units.
    epsilon : float
        The budget, which bounds the distance from a record to a clamped report.

    Returns
    -------
    float
        The probability of every report is within a factor :math:`e^{\pm\eta}` of its ideal value.

    Notes
    -----
    Reports are clamped 40 scales beyond the domain, so a report lies at most :math:`L = 40 + \epsilon` scales from
    any record. The float value of :math:`-s\log u` is off by at most :math:`s\,2^{-52}(1 + 1.5L)`: two roundings in
    u, one unit in the last place of the logarithm, one in the product. A cell of the rounding has width 1 and the
    density falls by :math:`e^{-1/s}` across it, so a displacement :math:`\Delta` of both its ends changes its
    probability by a factor within :math:`e^{\pm 2\Delta(1 + 1/s)}` at most. The granularity
    of 127-bit uniform numbers adds a second error: a cell at distance L holds :math:`2^{127}e^{-L}(1-e^{-1/s})` of
    them, and the relative error is two over that. The function returns the sum of both errors, times 2 for safety;
    :func:`skldp.privacy.noise_pmf` computes the exact probabilities.

    Examples
    --------
    >>> from skldp.privacy import laplace_slack
    >>> laplace_slack(65536.0, 1.0) < 1e-8
    True
    """
    distance = LAPLACE_CLAMP + epsilon
    displacement = 2 * scale * 2.0**-52 * (1 + 1.5 * distance) * (1 + 1 / scale)
    granularity = 2 * math.exp(distance) * 2.0**-127 / -math.expm1(-1 / scale)
    return 2 * (displacement + granularity)


def gaussian_slack(scale: float) -> float:
    r"""Bound eta on the error of the log-probability of a Gaussian coordinate in float arithmetic.

    Parameters
    ----------
    scale : float
        Standard deviation s in grid units, at least 10.

    Returns
    -------
    float
        The probability of every value within 10 standard deviations is within a factor :math:`e^{\pm\eta}` of its ideal
        value.

    Notes
    -----
    As for :func:`laplace_slack`, with L = 10: the float value of :math:`-s\Phi^{-1}(u/2)` is off by at most
    :math:`s\,2^{-50}(1 + L)`; the error of the inverse CDF itself, at most :math:`2^{-51}(1 + |n|)` against
    arbitrary-precision arithmetic, is part of it and is measured in the tests. Across a cell the density changes by
    at most :math:`e^{(L + 1)/s}`. At distance L a cell holds about :math:`2^{127}\cdot 2\varphi(L)/s` uniform numbers.

    Examples
    --------
    >>> from skldp.privacy import gaussian_slack
    >>> gaussian_slack(2.0**18) < 1e-7
    True
    """
    distance = GAUSSIAN_REACH
    density_ratio = math.exp((distance + 1) / scale)
    displacement = 2 * scale * 2.0**-50 * (1 + distance) * density_ratio
    density = 2 * math.exp(-distance**2 / 2) / math.sqrt(2 * math.pi)
    granularity = 2 * scale * density_ratio * 2.0**-127 / density
    return 2 * (displacement + granularity)


def uniform_below(words: np.ndarray, n_values: int | np.ndarray) -> np.ndarray:
    r"""Map uniform words to integers 0 .. n_values - 1 by multiplication.

    Parameters
    ----------
    words : ndarray of uint64
        Uniform words.
    n_values : int or ndarray of uint64
        Number of values, below 2**32: one for all words, or one for each word.

    Returns
    -------
    ndarray of int64
        :math:`\lfloor \mathrm{word}\cdot n/2^{64}\rfloor`. Each value is the image of
        :math:`\lfloor 2^{64}/n\rfloor` words or of one more, so its probability is within a factor
        :math:`1 \pm n2^{-64}` of 1/n; thresholds take that into account.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.privacy import uniform_below
    >>> uniform_below(np.array([0, 2**63, 2**64 - 1], dtype=np.uint64), 10)
    array([0, 5, 9])
    """
    n = np.asarray(n_values, dtype=np.uint64)
    carry = ((words & _LOW) * n) >> _HALF
    return (((words >> _HALF) * n + carry) >> _HALF).view(np.int64)


def uniform_pair(high: np.ndarray, low: np.ndarray) -> np.ndarray:
    """Return a 127-bit uniform number in (0, 1), as a float, from the low 63 bits of one word and all of another."""
    # Numbers near zero give the tail of the noise; the 63 high bits alone are too coarse there.
    u = (high & _MAGNITUDE).view(np.int64).astype(np.float64)
    u *= 2.0**-63
    tail = low.astype(np.float64)
    tail += 0.5
    tail *= 2.0**-127
    u += tail
    return u


def _signed(magnitude, high):
    value = np.rint(magnitude, out=magnitude).astype(np.int64)
    minus = -(high >> np.uint64(63)).view(np.int64)
    value ^= minus
    value -= minus
    return value
