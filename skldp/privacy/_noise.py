r"""Integer noise whose guarantee survives floating point.

A record is first an integer q on a public grid. The report is :math:`q + \mathrm{rint}(s\,n)` with n a standard Laplace
or normal variable and s its scale in grid units. Because q is an integer this equals
:math:`\mathrm{rint}(q + s\,n)`: post-processing of the ideal continuous mechanism on q, whose calibration therefore
holds unchanged. What is left is that n is computed in floats, and :func:`laplace_slack` and :func:`gaussian_slack`
bound by how much that can change the probability of any report.

The variable n is the inverse CDF of a 127-bit uniform number made of two words: one bit is the sign, the others the
magnitude. There is no rejection loop, and the number of words never depends on data.
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

_CHUNK = 1 << 15  # values per block: the temporaries stay in the processor's cache
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
    """Draw an array of integer noise.

    Parameters
    ----------
    law : callable
        :func:`laplace_noise` or :func:`gaussian_noise`.
    scale : float
        Scale in grid units.
    shape : tuple of int
        Shape of the result.
    source : SystemWords or SeededWords
        Where the words come from, two for each value.

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
    r"""Bound eta on how far float arithmetic moves the log-probability of a Laplace report.

    Parameters
    ----------
    scale : float
        Scale s in grid units.
    epsilon : float
        The budget, which bounds the depth at which a clamped report can lie.

    Returns
    -------
    float
        Every report has a probability within :math:`e^{\pm\eta}` of the ideal one.

    Notes
    -----
    Reports are clamped 40 scales beyond the domain, so a report lies at most :math:`L = 40 + \epsilon` scales from
    any record. The float value of :math:`-s\log u` is off by at most :math:`s\,2^{-52}(1 + 1.5L)`: two roundings in
    u, one unit in the last place of the logarithm, one in the product. A cell of the rounding has width 1 and the
    density falls by :math:`e^{-1/s}` across it, so a displacement :math:`\Delta` of both its ends changes its
    probability by a factor within :math:`e^{\pm 2\Delta(1 + 1/s)}` at most. A uniform number of 127 bits adds its
    granularity: a cell at depth L holds :math:`2^{127}e^{-L}(1-e^{-1/s})` of them, a relative error of two over that.
    The sum of both, times 2 for safety, is returned; :func:`skldp.privacy.noise_pmf` measures the truth.

    Examples
    --------
    >>> from skldp.privacy import laplace_slack
    >>> laplace_slack(65536.0, 1.0) < 1e-8
    True
    """
    depth = LAPLACE_CLAMP + epsilon
    displaced = 2 * scale * 2.0**-52 * (1 + 1.5 * depth) * (1 + 1 / scale)
    grain = 2 * math.exp(depth) * 2.0**-127 / -math.expm1(-1 / scale)
    return 2 * (displaced + grain)


def gaussian_slack(scale: float) -> float:
    r"""Bound eta on how far float arithmetic moves the log-probability of a Gaussian coordinate.

    Parameters
    ----------
    scale : float
        Standard deviation s in grid units, at least 10.

    Returns
    -------
    float
        Every value within 10 standard deviations has a probability within :math:`e^{\pm\eta}` of the ideal one.

    Notes
    -----
    As for :func:`laplace_slack`, with L = 10: the float value of :math:`-s\Phi^{-1}(u/2)` is off by at most
    :math:`s\,2^{-50}(1 + L)`; the error of the inverse CDF itself, at most :math:`2^{-51}(1 + |n|)` against
    arbitrary-precision arithmetic, is part of it and is measured in the tests. Across a cell the density changes by
    at most :math:`e^{(L + 1)/s}`. At depth L a cell holds about :math:`2^{127}\cdot 2\varphi(L)/s` uniform numbers.

    Examples
    --------
    >>> from skldp.privacy import gaussian_slack
    >>> gaussian_slack(2.0**18) < 1e-7
    True
    """
    depth = GAUSSIAN_REACH
    steep = math.exp((depth + 1) / scale)
    displaced = 2 * scale * 2.0**-50 * (1 + depth) * steep
    density = 2 * math.exp(-depth**2 / 2) / math.sqrt(2 * math.pi)
    grain = 2 * scale * steep * 2.0**-127 / density
    return 2 * (displaced + grain)


def uniform_below(words: np.ndarray, n_values: int | np.ndarray) -> np.ndarray:
    r"""Map uniform words to integers 0 .. n_values - 1 by multiplication.

    Parameters
    ----------
    words : ndarray of uint64
        Uniform words.
    n_values : int or ndarray of uint64
        How many values, below 2**32: one number for all words, or one for each.

    Returns
    -------
    ndarray of int64
        :math:`\lfloor \mathrm{word}\cdot n/2^{64}\rfloor`. Each value has :math:`\lfloor 2^{64}/n\rfloor` or one more
        words, so its probability is within a factor :math:`1 \pm n2^{-64}` of 1/n; thresholds take that into account.

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
    """A 127-bit uniform number in (0, 1), as a float, from the low 63 bits of one word and all of another."""
    # The high part alone has too few bits near zero, where the tail of the noise is decided: low supplies them.
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
