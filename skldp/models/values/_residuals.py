r"""Counts of reports in runs of cells, compared with the posterior predictive distribution.

Let n be the numbers of reports in groups of cells, :math:`\mu(\theta)` their means and V their covariance given the
parameters. If the posterior is normal and :math:`\mu` linear, the difference of n and the posterior mean of :math:`\mu`
has the covariance

.. math:: V - \mathrm{Cov}(\mu(\theta) \mid n)

over records drawn from the model and parameters from the prior. Where the reports determine the parameters and the
prior matters little, this is the usual correction for fitted parameters: residuals are projected off the tangent space
of the model. Both moments of :math:`\mu` are computed from posterior draws.
"""

import numpy as np

from skldp.models._residuals import Residuals

_MOST_GROUPS = 64
_FEWEST_EXPECTED = 10  # reports in a group
_N_DRAWS, _FEWEST_DRAWS = 256, 64  # of the posterior; the standard error of its variances is 9 % with 256
_LARGEST_BLOCK = 2**20  # probabilities computed at the same time
_LEAST_SHARE = 0.4  # of the variance of a run that the fit leaves; of less, the draws give no accurate part


def cell_residuals(log_probabilities, parts, theta):
    """Return the residuals of counts in runs of cells, over all cohorts.

    Parameters
    ----------
    log_probabilities : callable
        Maps a protocol and parameters to the log-probabilities of its cells, shape (n_cells, n_walkers).
    parts : list of (ValueProtocol, ndarray of int)
        Protocols and the counts of reports in their cells.
    theta : ndarray of shape (n_draws, n_params) or None
        Draws of the parameters; None if they are not those of the posterior.

    Returns
    -------
    Residuals or None
        None without draws, or if there are too few reports to tell.

    Notes
    -----
    Cells of all protocols are put in the order of their reports' values, and merged into up to 64 groups with at least
    10 expected reports. The sets are all runs of groups, except those in which the parameters can explain any count.
    """
    if theta is None:
        return None
    centre = theta.mean(axis=0, keepdims=True)
    groups = _Groups([protocol.cells.centres for protocol, _ in parts],
                     [counts.sum() * np.exp(log_probabilities(protocol, centre)[:, 0]) for protocol, counts in parts])
    theta = theta[::_stride(theta, parts)]
    size = groups.n_groups
    observed, drawn, covariance = np.zeros(size), np.zeros((len(theta), size)), np.zeros((size, size))
    for place, (protocol, counts) in enumerate(parts):
        n = counts.sum()
        shares = _group_probabilities(log_probabilities, protocol, theta, lambda cells: groups.add_up(place, cells))
        mean = shares.mean(axis=0)
        observed += groups.add_up(place, counts)
        drawn += n * shares
        covariance += n * (np.diag(mean) - np.outer(mean, mean))
    return _runs(observed, drawn.mean(axis=0), covariance - np.atleast_2d(np.cov(drawn.T)), groups.edges)


class _Groups:
    """Neighbouring cells of all protocols, merged until each group has enough expected reports."""

    def __init__(self, centres, expected):
        pooled = np.concatenate(centres)
        order = np.argsort(pooled, kind="stable")
        cumulative = np.cumsum(np.concatenate(expected)[order])
        least = max(cumulative[-1] / _MOST_GROUPS, _FEWEST_EXPECTED)
        starts, reached = [0], 0.0
        while cumulative[-1] - reached >= 2 * least:
            end = int(np.searchsorted(cumulative, reached + least)) + 1
            reached = cumulative[end - 1]
            if cumulative[-1] - reached >= least:
                starts.append(end)
        self.n_groups = len(starts)
        inner = np.array(starts[1:], dtype=int)
        self.edges = (pooled[order][inner - 1] + pooled[order][inner]) / 2
        labels = np.empty(len(pooled), dtype=int)
        labels[order] = np.searchsorted(inner, np.arange(len(pooled)), side="right")
        self.labels = np.split(labels, np.cumsum([len(one) for one in centres])[:-1])

    def add_up(self, place, cells):
        """Sum over the cells of each group, along the last axis, for the protocol in a place."""
        labels = self.labels[place]  # in ascending order, as the centres are
        first = np.flatnonzero(np.diff(labels, prepend=-1))
        total = np.zeros((*cells.shape[:-1], self.n_groups))
        total[..., labels[first]] = np.add.reduceat(cells, first, axis=-1)
        return total


def _stride(theta, parts):
    """Return the distance of the draws that are used: fewer if there are many cells."""
    n_cells = sum(len(counts) for _, counts in parts)
    n_draws = min(max(_LARGEST_BLOCK // n_cells, _FEWEST_DRAWS), _N_DRAWS)
    return max(1, len(theta) // n_draws)


def _group_probabilities(log_probabilities, protocol, theta, add_up):
    """Return the probabilities of groups at every draw, shape (n_draws, n_groups); in blocks, to limit memory."""
    size = max(1, _LARGEST_BLOCK // protocol.cells.n_cells)
    return np.concatenate([add_up(np.exp(log_probabilities(protocol, theta[start:start + size]).T))
                           for start in range(0, len(theta), size)])


def _runs(observed, expected, covariance, edges):
    """Return the residuals of all runs of groups in which the fit leaves a part of the variance, or None."""
    n_reports = int(observed.sum())
    first, last = np.triu_indices(len(observed))
    values, vectors = np.linalg.eigh(covariance)
    factor = vectors * np.sqrt(np.maximum(values, 0.0))  # negative ones are errors of the sampled covariance

    def over_runs(groups):
        """Sum over the groups of each run."""
        total = np.concatenate([np.zeros_like(groups[:1]), np.cumsum(groups, axis=0)])
        return total[last + 1] - total[first]

    directions, share = over_runs(factor), over_runs(expected) / max(n_reports, 1)
    std, whole = np.linalg.norm(directions, axis=1), last - first == len(observed) - 1
    kept = ~whole & (std**2 > _LEAST_SHARE * n_reports * share * (1 - share))
    if not kept.any():
        return None
    ends = [None, *edges.tolist(), None]
    places = [_words(ends[start], ends[end + 1]) for start, end in zip(first[kept], last[kept])]
    return Residuals(over_runs(observed)[kept], over_runs(expected)[kept], std[kept], n_reports, places,
                     directions[kept] / std[kept, None])


def _words(low, high):
    """Return a range of values in words; None for no limit."""
    if low is None:
        return f"below {high:.4g}"
    return f"above {low:.4g}" if high is None else f"from {low:.4g} to {high:.4g}"
