r"""Frequencies of each of several attributes, given reports on tables of attributes."""

from types import SimpleNamespace

import numpy as np

from skldp.models.categories._likelihoods import MultinomialLikelihood
from skldp.models.categories._model import HistogramModel
from skldp.protocols._table_coin import contrast_variance


def marginal_models(aggregate, concentration="auto"):
    r"""Return a model of the frequencies of each attribute, given unbiased estimates from all of its tables.

    Parameters
    ----------
    aggregate : Aggregate
        Counts of reports under one or more :class:`skldp.protocols.PairProtocol`.
    concentration : "auto" or float, default="auto"
        Parameter of the Dirichlet prior of the frequencies of each attribute.

    Returns
    -------
    list of HistogramModel

    Notes
    -----
    The sums of a table over the other attribute are unbiased estimates of the frequencies of one attribute, and the
    pooled estimate is their mean, weighted by precision. Its errors are nearly normal, with a variance
    :math:`v + s\theta_k` that is linear in the frequency. The same estimate and variance belong to n = 1/s reports
    with the probabilities :math:`\theta_k + v/s`, which a multinomial likelihood describes.
    """
    models = []
    for estimate, variance, slope in pooled_marginals(aggregate):
        n_reports = 1 / slope
        background = max(variance - slope / len(estimate), 0.0) * n_reports
        equivalent = SimpleNamespace(p=1 + background, q=background, n_categories=len(estimate))
        counts = np.maximum(n_reports * (background + estimate), 0.0)
        models.append(HistogramModel([MultinomialLikelihood(equivalent, counts, n_reports)], concentration))
    return models


def pooled_marginals(aggregate):
    r"""Return the unbiased estimates of the frequencies of each attribute, with variance and slope.

    Parameters
    ----------
    aggregate : Aggregate
        Counts of reports under one or more :class:`skldp.protocols.PairProtocol`.

    Returns
    -------
    list of tuples (estimate, variance, slope)
        ``variance`` is that of a contrast of unit length if all cells are equally frequent, and ``slope`` the
        derivative of the variance of an estimated frequency. Without reports the frequencies are equal, and one report
        without noise stands for the variance, so that a prior decides.
    """
    shape = aggregate.protocol.shape
    found: list[list] = [[] for _ in shape]
    for protocol, tally in aggregate.parts.items():
        for mechanism, attributes, counts in table_parts(protocol, tally):
            n_reports = counts.sum()
            table = mechanism.frequencies(counts, n_reports).reshape([shape[a] for a in attributes])
            for place, axis in enumerate(attributes):
                others = tuple(other for other in range(table.ndim) if other != place)
                variance = contrast_variance(mechanism) * table.size / shape[axis] / n_reports
                slope = 1 / (mechanism.p - mechanism.q) / n_reports
                found[axis].append((table.sum(axis=others), variance, slope))
    return [_pooled(parts) if parts else (np.full(size, 1 / size), 1.0, 1.0) for parts, size in zip(found, shape)]


def largest_changes(aggregate):
    r"""Return the largest change of each frequency of an attribute by one report, in units of its posterior variance.

    Parameters
    ----------
    aggregate : Aggregate
        As in :func:`pooled_marginals`.

    Returns
    -------
    list of ndarray

    Notes
    -----
    One report of table j, which has the share w of the precision 1/V of the pooled estimate x, moves that estimate by
    :math:`w(f_k - x_k)/n_j`, with the estimate :math:`f_k = (N - rq)/(p - q)` from this report alone: its block
    contains N of the r cells of category k, from none to as many as fit. With the variances :math:`V_k` of estimates
    a normal posterior of the variance :math:`\sigma_k^2(1 - V_k/\sum_lV_l)`, for frequencies whose sum is given, moves
    by :math:`\sigma_k^2/V_k` times as much, and :math:`w/(n_jV)` is the precision of one report. The concentration of
    the prior is taken as given.
    """
    shape = aggregate.protocol.shape
    found = []
    for axis, (estimate, variance, slope) in enumerate(pooled_marginals(aggregate)):
        largest, n_categories = np.zeros(len(estimate)), len(estimate)
        own = np.maximum(variance + slope * (np.clip(estimate, 0, 1) - 1 / n_categories), 1e-3 * variance)
        for mechanism, attributes, share in (part for one in aggregate.parts
                                             for part in zip(one.randomizer, one.tables, one.shares)):
            if axis in attributes and share:
                n_cells = mechanism.n_categories // shape[axis]
                counts = np.array([[0.0], [min(n_cells, mechanism.n_ones)]])
                alone = (counts - n_cells * mechanism.q) / (mechanism.p - mechanism.q)
                change = np.abs(alone - estimate).max(axis=0)
                largest = np.maximum(largest, change / n_cells / contrast_variance(mechanism))
        found.append(largest * variance / own / np.maximum(1 - own / own.sum(), 1e-3))
    return found


def table_parts(protocol, tally):
    """Return the mechanism, the attributes and the counts of each table that has reports."""
    counts = np.split(tally.sums, protocol.starts[1:-1])
    return [part for part in zip(protocol.randomizer, protocol.tables, counts) if part[2].any()]


def _pooled(parts):
    estimates, variances, slopes = (np.array(part) for part in zip(*parts))
    weights = 1 / variances / (1 / variances).sum()
    return weights @ estimates, weights**2 @ variances, weights**2 @ slopes
