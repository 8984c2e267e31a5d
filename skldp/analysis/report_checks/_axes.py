"""Test of the mean of the products of axis reports."""

import math

import numpy as np

from skldp.analysis.report_checks._bounds import Finding, bounded_sum_p_value


def mean_products_finding(axis, products, n, outside):
    r"""Test whether the mean of :math:`rr^T/s^2` over n reports r is close enough to a possible one.

    ``outside`` is a lower bound on the distance from the decoded mean to all means of records.

    Notes
    -----
    Each :math:`W = rr^T/s^2` has the mean :math:`(\alpha + \eta)I + \beta uu^T`, with :math:`\eta` the variance of the
    dither. In Frobenius norm a valid report has :math:`\|W\| \le (\mathrm{longest}/s)^2`, and
    :math:`E\|W\|^2 \le (1 + (D + 3)\eta)^2`. Its variance in any direction is at most the norm of its fourth moment,
    at most :math:`(2 + D)A' + (4 + 2\sqrt D)|B'| + |C'|` without the dither, by :class:`skldp.mechanisms.Axis`, and at
    most the total variance. Possible means have the trace :math:`D(\alpha + \eta) + \beta`, and
    no eigenvalue below :math:`\alpha + \eta`.
    """
    (alpha, beta), (a, b, c), m = axis._alpha_beta, axis._fourth_moments, axis.dimension
    offset, dither = alpha + axis._dither, axis._dither
    values = np.linalg.eigvalsh(products)
    outside = max(math.sqrt(np.sum(np.minimum(values - offset, 0.0) ** 2)),
                  abs(values.sum() - m * offset - beta) / math.sqrt(m), outside * beta / axis.norm**2)
    total = (1 + (m + 3) * dither) ** 2 - m * offset**2 - 2 * offset * beta - beta**2
    directed = (2 + m) * a + (4 + 2 * math.sqrt(m)) * abs(b) + abs(c) + 3 * (m + 3) * dither
    length, largest = n * (outside - 1e-9), (axis.longest / axis.resolution) ** 2 + 1
    noise = math.sqrt(total / n)
    where = f"at least {outside:.3g} outside" if outside > 0 else "within"
    return Finding(bounded_sum_p_value(length, n, total, min(total, directed), largest),
                   f"The mean of the products of {n} reports lies {where} the range of records; its noise has about "
                   f"norm {noise:.3g}.")
