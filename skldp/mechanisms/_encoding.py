"""Encoding of private values as integers on a public grid. No value raises or warns."""

import numpy as np

from skldp._validation._door import as_floats, as_values

BALL_RADIUS = 2**16  # integer radius of an encoded ball
_BLOCK = 1 << 15  # values per block, so that temporary arrays stay in the processor's cache
_LARGEST = np.finfo(np.float64).max
_SMALLEST = np.finfo(np.float64).smallest_subnormal


def encode_interval(x, bounds, n_levels):
    """Clip values to an interval and round them to the grid 0 .. n_levels.

    NaN becomes the midpoint, infinities become the nearer end. The integers of any two records differ by at most
    ``n_levels``, and those of the two ends by exactly that.

    Examples
    --------
    >>> encode_interval([-9.0, 0.0, float("nan"), 5.0], (-5, 5), 1024)
    array([   0,  512,  512, 1024])
    """
    lower, upper = bounds
    with np.errstate(all="ignore"):
        x = as_floats(x)
        share = (np.clip(x, lower, upper) - lower) / (upper - lower)
        share[np.isnan(share)] = 0.5
        # The product can exceed the last level by a rounding error.
        return np.clip(np.rint(share * n_levels), 0, n_levels).astype(np.int64)


def encode_ball(x, norm, radius=BALL_RADIUS):
    r"""Clip vectors to a ball of public radius ``norm`` and round them to integers of norm at most ``radius``.

    NaN entries become 0, the coordinate of the centre. The squared norm is checked in integers, and a vector that is
    outside after rounding is shrunk toward zero, so :math:`\|q\| \le Q` holds in integers for every input.

    Examples
    --------
    >>> encode_ball([[3.0, 4.0], [0.5, 0.0]], 1.0)
    array([[39321, 52428],
           [32768,     0]])
    """
    x = as_floats(x)  # a copy, which the blocks overwrite
    n_rows = max(1, _BLOCK // max(x.shape[1], 1))
    codes = np.empty(x.shape, dtype=np.int64)
    with np.errstate(all="ignore"):
        for start in range(0, len(x), n_rows):
            block = slice(start, start + n_rows)
            codes[block] = _encode_block(x[block], norm, radius)
    return codes


def encode_category(x, n_categories):
    """Turn category numbers into integers, with -1 for anything that is not a known category.

    Examples
    --------
    >>> encode_category([0, 2, 7, 1.5], 3)
    array([ 0,  2, -1, -1])
    """
    with np.errstate(all="ignore"):
        x = as_values(x)
        if x.dtype.kind not in "biuf":
            x = as_floats(x)
        known = (x >= 0) & (x < n_categories)
        codes = np.where(known, x, 0).astype(np.int64)
        return np.where(known & (codes == x), codes, -1)


def _encode_block(x, norm, radius):
    unit = clip_to_unit_ball(x, norm)
    unit *= radius
    codes = np.rint(unit)
    outside = _square_norm(codes) > radius**2
    if outside.any():
        codes[outside] = _shrink(np.trunc(unit[outside]), radius)
    return codes


def _shrink(codes, radius):
    # A vector of length 1 + 1e-16 can still be outside after truncation; a step toward zero in every entry shrinks it.
    while (outside := _square_norm(codes) > radius**2).any():
        codes[outside] -= np.sign(codes[outside])
    return codes


def clip_to_unit_ball(x, norm):
    """Return the rows of x / norm, scaled to length 1 where longer. No float overflows; x is overwritten."""
    np.copyto(x, 0.0, where=np.isnan(x))
    np.minimum(x, _LARGEST, out=x)
    np.maximum(x, -_LARGEST, out=x)
    # Dividing by the largest entry first keeps squares of 1e300 and of subnormal numbers representable.
    largest = np.maximum.reduce(np.abs(x), axis=1, keepdims=True, initial=_SMALLEST)
    x /= largest
    length = np.sqrt(_square_norm(x))[:, None]
    in_norms = largest / norm
    x *= np.where(in_norms * length > 1, 1 / np.maximum(length, 1.0), in_norms)
    return x


def _square_norm(x):
    # Integers up to 2**53 are exact in floats, so a sum of squares near 2**32 is exact in any order of summation.
    return np.vecdot(x, x)
