"""Tests of whether sums of reports are possible, in integers, or in floats with a margin for rounding."""

import math

import numpy as np

from skldp.exceptions import InvalidReportError

_N_DEVIATIONS = 11.0  # standard deviations; a sum of Gaussian noise exceeds this once in 1e26 sums
_BLOCK_ENTRIES = 1 << 22  # entries of reports that are multiplied at once
_BLOCK_ROWS = 1 << 20  # rows whose sums fit in int64 for any budget, because entries of reports are below 2**43


def column_sums(reports):
    """Column sums of integer rows, as Python integers."""
    blocks = range(0, max(len(reports), 1), _BLOCK_ROWS)
    return sum(np.add.reduce(reports[start:start + _BLOCK_ROWS], axis=0, dtype=np.int64).astype(object)
               for start in blocks)


def product_sums(reports):
    """Sum of r r' over integer rows r whose squared length is below 2**23, as int64."""
    width = reports.shape[1]
    n_rows = max(1, _BLOCK_ENTRIES // width)
    total = np.zeros((width, width), dtype=np.int64)
    for start in range(0, len(reports), n_rows):
        block = reports[start:start + n_rows].astype(np.float64)
        total += (block.T @ block).astype(np.int64)  # exact: up to 2**22 products below 2**23
    return total


def as_python_ints(sums):
    """Return sums as Python integers, which do not overflow for any number of reports."""
    return np.asarray(sums).astype(object)


def add_sums(one, other, n_reports):
    """Add the sums of ``n_reports`` reports in total; raise an error on overflow, because int64 wraps silently."""
    total = one + other
    if n_reports > _BLOCK_ROWS and total.dtype == np.int64 and (((one ^ total) & (other ^ total)) < 0).any():
        raise too_many_reports()
    return total


def too_many_reports():
    """Error for sums that are too large to be kept exactly."""
    return InvalidReportError("These are more reports than can be added up exactly under one protocol. "
                              "Fit them in several parts.")


def is_gram_matrix(sums):
    """Whether a matrix of integers below 1e300 can be a sum of :math:`vv^T` over integer vectors v.

    It is True for every such sum, and False for some other matrices, but not for all of them.

    Notes
    -----
    Symmetry and the Cauchy-Schwarz inequality are tested in integers. Positive semi-definiteness is tested in floats,
    for the matrix scaled to a unit diagonal. With u = 2**-53, its entries are rounded by 6u at most, which moves
    eigenvalues by 6ku, and the factorisation of a matrix of unit diagonal succeeds when its eigenvalues are above
    k(k + 1)u to the first order [1]_. The margin is twice the sum of both.

    References
    ----------
    .. [1] N. Higham (2002). Accuracy and Stability of Numerical Algorithms. SIAM. Theorem 10.7.
    """
    squares = np.diagonal(sums)
    if (sums != sums.T).any() or (squares < 0).any():
        return False
    # Products of int64 would overflow; there the factorisation below, which is stronger but for its margin, is enough.
    if sums.dtype == object and (sums * sums > np.outer(squares, squares)).any():
        return False
    scale = np.sqrt(np.maximum(squares, 1).astype(float))
    k = len(sums)
    unit = sums.astype(float) / np.outer(scale, scale) + k * (k + 8) * 2.0**-52 * np.eye(k)
    try:
        np.linalg.cholesky(unit)
    except np.linalg.LinAlgError:
        return False
    return True


def within_sphere(sums, n_reports, sphere):
    """Whether ``n_reports`` valid reports of the sphere mechanism can have these sums."""
    if sum(int(value) ** 2 for value in sums.tolist()) > (n_reports * sphere.longest) ** 2:
        return False
    # Two vectors of the longest length can have any sum of up to twice that length; a single report must be valid.
    return n_reports != 1 or bool(sphere.valid(sums[None].astype(np.int64))[0])


def within_axes(sums, n_reports, axis):
    """Whether ``n_reports`` valid reports of the axis mechanism can have these sums of products."""
    shortest = max(2 * axis.resolution - axis.longest, 0)
    trace = sum(np.diagonal(sums).tolist())
    if not n_reports * shortest**2 <= trace <= n_reports * axis.longest**2 or not is_gram_matrix(sums):
        return False
    return n_reports != 1 or _is_square_of_valid(sums, axis)


def _is_square_of_valid(products, axis):
    """Whether a matrix is r r' for one valid report r."""
    size = np.rint(np.sqrt(np.diagonal(products).astype(float))).astype(np.int64)
    first = int(np.argmax(size))
    report = np.where(products[first] < 0, -size, size)
    return bool(axis.valid(report[None])[0]) and np.array_equal(np.outer(report, report), products)


def within_box(sums, largest):
    """Whether no entry of the sums exceeds ``largest`` in absolute value."""
    return bool((abs(sums.astype(object)) <= largest).all())


def largest_noisy_sums(n_reports, clamp, largest, scale):
    r"""Largest sums of reports with clamped Gaussian noise, of which half may be forged.

    Parameters
    ----------
    n_reports : int
        Number n of reports.
    clamp : ndarray of int
        Largest absolute value c of each entry of a report.
    largest : int
        Largest absolute value L of an entry before the noise, at most c.
    scale : ndarray of float
        Standard deviation s of the noise of each entry.

    Returns
    -------
    ndarray of object

    Notes
    -----
    An entry of an honest report is :math:`\mathrm{clip}(v + \mathrm{rint}(sg), \pm c)` with g normal and
    :math:`|v| \le L`. Without the rounding, which changes each entry by 1/2 at most, its mean is not farther from 0
    than v, because clipping is odd and 1-Lipschitz. The sum over n reports is a function of n normal variables with
    the Lipschitz constant :math:`s\sqrt n`, so it exceeds its mean by more than :math:`ts\sqrt n` with a probability
    of at most :math:`e^{-t^2/2}` (Gaussian concentration). With t = 11 that is 6e-27, on either side of each entry:
    an honest collection of a million entries is refused with a probability below 1e-19.

    Any single report within the clamps passes the protocol's check, and a few forged ones change the sums by more than
    the noise of the others does. A few forged reports must not make a file unreadable, so up to half of the reports
    may be anything within the clamps. Tests of traces and eigenvalues would then refuse nothing more: the clamps are
    several times as large as any product of a record, so that a few per cent of forged reports outweigh all records.
    """
    n_forged = n_reports // 2
    noise = [math.ceil(_N_DEVIATIONS * one * math.sqrt(n_reports)) for one in scale.tolist()]
    honest = (n_reports - n_forged) * (largest + 1) + np.array(noise, dtype=object)
    return np.minimum(n_forged * clamp.astype(object) + honest, n_reports * clamp.astype(object))
