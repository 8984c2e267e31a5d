r"""Tests of spikes: one report that is more frequent than similar reports can explain.

Records that make one report likely also make similar reports likely: those within a window of the square wave, and
subsets with common members. So a function that is 1 at the report and negative at similar reports has a small mean for
any records. The tail of its sum over independent reports is bounded by Chernoff's inequality with the largest
moment-generating function over all records, :math:`P(T \ge t) \le \min_\lambda\max_xM_x(\lambda)^ne^{-\lambda t}`.
"""

import math

import numpy as np

from skldp.analysis.report_checks._bounds import Finding, log_choose

_RATES = np.geomspace(1e-3, 20.0, 120)  # any rate gives a bound
_MOST_CELLS = 1 << 16


def window_finding(mechanism, column, counts):
    r"""Test whether a cell of the square wave is more frequent than its neighbours allow.

    Take two reports that are w apart, with a report r between them: a window of width w that contains r contains
    exactly one of the two. So a window that contains r contains w - 1 of the other reports less than w away from r, and
    the mean of :math:`1\{r\} - \frac1{w-1}1\{\text{others near } r\}` is no larger for these records than for
    others.
    """
    n, width, n_cells = int(counts.sum()), mechanism.n_near, len(counts)
    if width == 1 or n_cells > _MOST_CELLS:
        return Finding(1.0, "Not tested: the windows are single reports, or there are too many possible reports.")
    place, below = np.arange(n_cells), np.append(0, np.cumsum(counts))
    first, last = np.maximum(place - width + 1, 0), np.minimum(place + width, n_cells)
    beside, n_beside = below[last] - below[first] - counts, last - first - 1
    near = mechanism.near_probability / width
    far = (1 - mechanism.near_probability) / mechanism.n_levels
    up, down = np.expm1(_RATES), np.expm1(-_RATES / (width - 1))
    # Either the window contains the cell and width - 1 neighbours, or not; all other neighbours have at least the
    # probability far.
    inside = near * up + (near * (width - 1) + far * (n_beside[:, None] - width + 1)) * down
    outside = far * up + far * n_beside[:, None] * down
    log_moment = np.log1p(np.maximum(inside, outside))
    log_p = (n * log_moment - _RATES * (counts - beside / (width - 1))[:, None]).min(axis=1)
    spike = int(log_p.argmin())
    explained = (beside[spike] - n * far * (n_beside[spike] - width + 1)) / (width - 1)
    reason = (f"{counts[spike]} of {n} reports (column {column}) are {spike - mechanism.half_window}, and the reports "
              f"near it explain at most {explained:.1f}.")
    return Finding(math.exp(min(log_p[spike] + math.log(n_cells), 0.0)), reason)


def row_finding(mechanism, distinct, multiplicity, sums):
    """Test whether a row of bits is more frequent than the frequencies of its bits allow."""
    n, ones = int(multiplicity.sum()), mechanism.number_of_ones(distinct).astype(int)
    expected = _shared_counts(distinct, sums)
    moments = _unary_moments if mechanism.n_ones is None else _subset_moments
    log_groups = math.log(mechanism.n_categories + 1) if mechanism.n_ones is None else 0.0
    found = (0.0, 0, 0.0)
    for size in np.unique(ones).tolist():
        weight, log_moment, offset = moments(mechanism, size)
        rows = np.flatnonzero(ones == size)
        spike = rows[np.argmax(multiplicity[rows] - weight * expected[rows])]
        total = multiplicity[spike] - weight * expected[spike]
        log_p = (n * log_moment - _RATES * total).min() + log_choose(mechanism.n_categories, size) + log_groups
        found = min(found, (float(log_p), int(multiplicity[spike]), float(weight * expected[spike] + n * offset)))
    reason = f"{found[1]} of {n} reports are the same, and the frequencies of their bits explain {found[2]:.1f}."
    return Finding(math.exp(min(found[0], 0.0)), reason)


def _shared_counts(distinct, sums):
    """Sum the counts of the bits that are set in each row; in blocks, to limit memory."""
    n_rows = max(1, 2**22 // distinct.shape[1])
    blocks = [distinct[start:start + n_rows].astype(float) @ sums for start in range(0, len(distinct), n_rows)]
    return np.concatenate(blocks)


def _subset_moments(mechanism, size):
    """Return the weight of a shared bit, the log of the largest moment-generating function, and the function's mean."""
    d, p = mechanism.n_categories, mechanism.p
    # Number of shared members if the record is in the subset, and if it is not; p is for reports that contain it.
    laws = (p * _shared(d - 1, size - 1, size - 1, 1, size) + (1 - p) * _shared(d - 1, size - 1, size, 0, size),
            p * _shared(d - 1, size, size - 1, 0, size) + (1 - p) * _shared(d - 1, size, size, 0, size))
    shared = np.arange(size + 1)
    weight = (laws[0][-1] - laws[1][-1]) / (laws[0] @ shared - laws[1] @ shared)  # makes the mean equal for all records
    value = (shared == size) - weight * shared
    moments = [np.exp(_RATES[:, None] * value) @ law for law in laws]
    return weight, np.log(np.maximum(*moments)) + 1e-15, float(laws[1] @ value)


def _shared(n_places, n_marked, n_drawn, own, size):
    """Probabilities of 0 .. size marked members in a draw without replacement, plus ``own``."""
    hits = np.arange(size + 1) - own
    possible = (hits >= 0) & (hits <= min(n_marked, n_drawn)) & (n_drawn - hits <= n_places - n_marked)
    k = np.where(possible, hits, 0)
    with np.errstate(all="ignore"):
        log_probability = (log_choose(n_marked, k) + log_choose(n_places - n_marked, n_drawn - k)
                           - log_choose(n_places, n_drawn))
    return np.where(possible, np.exp(np.where(possible, log_probability, -np.inf)), 0.0)


def _unary_moments(mechanism, size):
    """As :func:`_subset_moments`; the bits are independent, and the record's own bit is 1 with probability p."""
    d, p, q = mechanism.n_categories, mechanism.p, mechanism.q
    far = (1 - p) * q**size * (1 - q) ** (d - 1 - size) if size < d else 0.0
    near = p * q ** (size - 1) * (1 - q) ** (d - size) if size else far
    weight = (near - far) / (p - q)
    fall = np.expm1(-weight * _RATES)
    spike = np.exp(-weight * size * _RATES) * np.expm1(_RATES)
    moments = [(1 + q * fall) ** size + far * spike]
    if size:
        moments.append((1 + p * fall) * (1 + q * fall) ** (size - 1) + near * spike)
    if size == d:
        del moments[0]  # all bits are ones, so no record is outside
    return weight, np.log(np.max(moments, axis=0)) + 1e-15, far - weight * q * size
