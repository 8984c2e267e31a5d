"""From private values to integers of a public grid. Nothing here raises or warns about a value."""

import numpy as np

BALL_RADIUS = 2**16  # integer radius of an encoded ball
_LARGEST = np.finfo(np.float64).max
_SMALLEST = np.finfo(np.float64).smallest_subnormal


def encode_interval(x, bounds, n_levels):
    r"""Clip values to an interval and put them on the grid 0 .. n_levels.

    NaN becomes the midpoint, infinities become the nearer end. The integers of any two records differ by at most
    ``n_levels``, and the two ends attain it.

    Parameters
    ----------
    x : array-like of float
        Values.
    bounds : tuple of float
        Public ends.
    n_levels : int
        The interval is mapped to {0, ..., n_levels}.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> encode_interval([-9.0, 0.0, float("nan"), 5.0], (-5, 5), 1024)
    array([   0,  512,  512, 1024])
    """
    lower, upper = bounds
    with np.errstate(all="ignore"):
        x = np.array(x, dtype=np.float64)
        x[np.isnan(x)] = lower + (upper - lower) / 2
        np.clip(x, lower, upper, out=x)
        x -= lower
        x *= n_levels / (upper - lower)
        # The product can exceed the last level by a rounding error.
        return np.clip(np.rint(x), 0, n_levels).astype(np.int64)


def encode_ball(x, norm):
    r"""Clip vectors to a ball and round them to integers of norm at most 2**16.

    NaN entries become 0, the centre's coordinate. The squared norm is checked in int64, and a vector that rounding pushed
    outside is shrunk toward zero, so :math:`\|q\| \le 2^{16}` holds in integers for every input.

    Parameters
    ----------
    x : array-like of float, shape (n, d)
        Vectors.
    norm : float
        Public radius of the ball.

    Returns
    -------
    ndarray of int64, shape (n, d)

    Examples
    --------
    >>> encode_ball([[3.0, 4.0], [0.5, 0.0]], 1.0)
    array([[39321, 52428],
           [32768,     0]])
    """
    with np.errstate(all="ignore"):
        unit = _clip_to_unit_ball(np.array(x, dtype=np.float64), norm)
        codes = np.rint(unit * BALL_RADIUS).astype(np.int64)
        outside = _square_norm(codes) > BALL_RADIUS**2
        if outside.any():
            codes[outside] = np.trunc(unit[outside] * BALL_RADIUS).astype(np.int64)
        # A length of 1 + 1e-16 can survive truncation: one step toward zero in every entry ends that.
        while (outside := _square_norm(codes) > BALL_RADIUS**2).any():
            codes[outside] -= np.sign(codes[outside])
    return codes


def encode_category(x, n_categories):
    """Turn category numbers into integers, with -1 for anything that is not a known category.

    Parameters
    ----------
    x : array-like
        Category numbers 0 .. n_categories - 1.
    n_categories : int
        How many there are.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> encode_category([0, 2, 7, 1.5], 3)
    array([ 0,  2, -1, -1])
    """
    with np.errstate(all="ignore"):
        x = np.asarray(x)
        known = (x >= 0) & (x < n_categories)
        codes = np.where(known, x, 0).astype(np.int64)
        return np.where(known & (codes == x), codes, -1)


def _clip_to_unit_ball(x, norm):
    """Rows of x / norm, shortened to length 1 where they are longer, without overflow for any float."""
    np.copyto(x, 0.0, where=np.isnan(x))
    np.minimum(x, _LARGEST, out=x)
    np.maximum(x, -_LARGEST, out=x)
    largest = np.abs(x).max(axis=1, keepdims=True, initial=_SMALLEST)
    # Dividing by the largest entry first keeps squares of 1e300 and of subnormal numbers representable.
    shape = x / largest
    length = np.sqrt(np.einsum("ij,ij->i", shape, shape))[:, None]
    length_in_norms = largest / norm * length
    return np.where(length_in_norms > 1, shape / np.maximum(length, 1.0), x / norm)


def _square_norm(codes):
    return np.einsum("ij,ij->i", codes, codes)
