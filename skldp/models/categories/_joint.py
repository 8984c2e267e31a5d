r"""Joint frequencies of several attributes, given reports on pairs of them and on single ones."""

import math

import numpy as np
from scipy.special import gammaincinv, ndtr

from skldp.exceptions import InvalidParameterError
from skldp.models._base import Model
from skldp.protocols._table_coin import contrast_variance

MAX_JOINT = 10**5  # cells of a joint table
_N_STEPS, _N_FIRST = 500, 500  # largest numbers of steps of the maximisation of a draw, and of the first one
_GAIN = 0.005  # of a log-likelihood in a step, below which a maximisation ends
_RISE, _FALL = 1.5, 0.4  # factors of a step size after a success and after a failure
_MIXED = 0.1  # share of equal frequencies in the point from which draws start
_SMALLEST = 1e-300
_LEAST_WEIGHT = 1e-30  # of a cell, so that its logarithm exists
_LONGEST = 0.95  # share of a frequency that one step may take away
_PRIOR = 0.05  # sum of the parameters of the prior over a cell of the largest pair table


class JointModel(Model):
    r"""Joint table of several attributes, whose pair tables give the probabilities of reports.

    Parameters
    ----------
    aggregate : Aggregate
        Counts of reports under one or more :class:`skldp.protocols.PairProtocol`.

    Notes
    -----
    The joint table :math:`\theta` has one cell for each combination of categories, at most 100,000. The probability of
    a report is linear in the table of its attributes, which is a sum over :math:`\theta`, so all pair tables and
    marginal frequencies are those of one joint table. The prior is a Dirichlet distribution whose parameters sum to
    1/20 in each cell of the largest pair table: small, because they add up in the cells of small tables, which may be
    empty. Draws are a weighted likelihood bootstrap [1]_: each maximises :math:`\sum_ig_i\log P(z_i|\theta) + \sum_kh_k\log\theta_k`
    with independent weights, exponential :math:`g_i` of reports and :math:`h_k \sim \mathrm{Gamma}(\alpha)` of cells.
    With many reports that is the posterior, also for a frequency near zero: if the log-likelihood falls by s per unit
    there, :math:`\theta_k = h_k/s` is its posterior Gamma(:math:`\alpha`, s). The parameters of this model are the
    normal scores of the weights.

    What reports do not tell, associations of three and more attributes, comes from the prior and from the equal
    frequencies from which the maximisation starts.

    References
    ----------
    .. [1] M. A. Newton, A. E. Raftery (1994). Approximate Bayesian inference with the weighted likelihood bootstrap.
       JRSS B 56.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models.categories._joint import JointModel
    >>> from skldp.protocols import PairProtocol
    >>> protocol = PairProtocol(categories=((0, 1), (0, 1, 2)), epsilon=4.0)
    >>> model = JointModel(protocol.aggregate(protocol.privatize(np.tile([[1, 2]], (500, 1)))))
    >>> model.constrain(np.zeros((1, model.n_params)))["frequencies"].argmax()
    np.int64(5)
    """

    few_draws = True

    def __init__(self, aggregate):
        protocol = aggregate.protocol
        self.shape, self.likelihood = protocol.shape, "exact"
        if math.prod(self.shape) > MAX_JOINT:
            raise InvalidParameterError(
                f"The joint table of these attributes has {math.prod(self.shape)} cells, and at most {MAX_JOINT} are "
                "modelled. Use fewer attributes, or merge rare categories.")
        self._parts = [part for one, tally in aggregate.parts.items() for part in _table_parts(one, tally)]
        self._counts = np.concatenate([np.zeros(0), *(counts for _, _, counts in self._parts)])
        self.n_cells = math.prod(self.shape)
        self.concentration = _PRIOR * math.prod(sorted(self.shape)[-2:]) / self.n_cells
        self.n_params = len(self._counts) + self.n_cells
        self._first = None

    def initial(self):
        """Return zero, at which all reports have about the same weight."""
        return np.zeros(self.n_params)

    def log_density(self, theta):
        """Log-density of the standard normal scores of the weights, up to a constant."""
        return -0.5 * np.vecdot(theta, theta)

    def constrain(self, theta):
        """Joint frequencies of all combinations, shape (n_walkers, n_cells), in the order of nested attributes."""
        counts, (own, prior) = self._counts, np.split(theta, [len(self._counts)], axis=1)
        # Sums of c exponential variables have Gamma distributions, here by the cubes of normal variables of Wilson and
        # Hilferty.
        scale = 1 / np.maximum(9 * counts, 1.0)
        weights = counts * np.maximum(1 - scale + own * np.sqrt(scale), 0.0) ** 3
        added = np.maximum(gammaincinv(self.concentration, ndtr(prior)), _LEAST_WEIGHT).reshape(-1, *self.shape)
        start = np.repeat(self._start(), len(theta), axis=0)
        return {"frequencies": self._maximise(weights, added, start, _N_STEPS).reshape(len(theta), -1)}

    independent = constrain

    def _start(self):
        """Return the joint table of the largest likelihood, moved towards equal frequencies."""
        if self._first is None:
            equal = np.full((1, *self.shape), 1 / self.n_cells)
            found = self._maximise(self._counts[None], np.full(equal.shape, self.concentration), equal, _N_FIRST)
            self._first = (1 - _MIXED) * found + _MIXED * equal
        return self._first

    def _maximise(self, counts, added, table, n_steps):
        """Return the joint tables with the largest weighted likelihood, for weights of reports and of cells."""
        axes = tuple(range(1, table.ndim))
        total = np.maximum(counts.sum(axis=1), _SMALLEST)
        size, n_small = np.ones(len(table)), 0
        value, slopes = self._evaluate(counts, added, table, total)
        for _ in range(n_steps):
            # With the size 1 this is expectation-maximisation, which is slow under much noise.
            longest = _LONGEST / np.maximum(1 - slopes.min(axis=axes), _SMALLEST)
            step = _along(np.minimum(size, longest), table)
            proposal = table * (1 + step * (slopes - 1)) + step * added / _along(total, table)
            proposal /= proposal.sum(axis=axes, keepdims=True)
            found, found_slopes = self._evaluate(counts, added, proposal, total)
            better = found >= value
            gain = np.where(better, found - value, np.inf)
            chosen = _along(better, table)
            table, slopes = np.where(chosen, proposal, table), np.where(chosen, found_slopes, slopes)
            value, size = np.where(better, found, value), size * np.where(better, _RISE, _FALL)
            n_small = 0 if gain.max() >= _GAIN else n_small + 1
            if n_small == 3:
                break
        return table

    def _evaluate(self, counts, added, table, total):
        """Return log-densities, and the factors of all cells in expectation-maximisation without a prior."""
        value, weights, start = 0.0, 0.0, 0
        for mechanism, attributes, part in self._parts:
            own = counts[:, start:start + len(part)]
            start += len(part)
            others = tuple(axis + 1 for axis in range(len(self.shape)) if axis not in attributes)
            own_table = table.sum(axis=others, keepdims=True)
            far = mechanism.far_probability
            contrast = mechanism.p / mechanism.n_ones - far
            probability = np.maximum(far + contrast * mechanism.sum_blocks(own_table.reshape(len(table), -1)), _SMALLEST)
            value = value + np.vecdot(own, np.log(probability))
            shares = own / probability
            factors = far * shares.sum(axis=1, keepdims=True) + contrast * mechanism.sum_near(shares)
            weights = weights + np.maximum(factors, 0.0).reshape(own_table.shape)
        value = value + (added * np.log(np.maximum(table, _SMALLEST))).sum(axis=tuple(range(1, table.ndim)))
        return value, weights / _along(total, table)


def _table_parts(protocol, tally):
    """Return the mechanism, the attributes and the counts of each table that has reports."""
    counts = np.split(tally.sums, protocol.starts[1:-1])
    return [part for part in zip(protocol.randomizer, protocol.tables, counts) if part[2].any()]


def _along(values, table):
    """Return one value for each table with the number of axes of the tables."""
    return values.reshape(-1, *(1,) * (table.ndim - 1))


def unbiased_marginals(aggregate):
    """Return unbiased estimates of the frequencies of each attribute: averages over tables, weighted by precision."""
    shape = aggregate.protocol.shape
    totals, weights = [np.zeros(size) for size in shape], np.zeros(len(shape))
    for protocol, tally in aggregate.parts.items():
        for mechanism, attributes, counts in _table_parts(protocol, tally):
            n_reports = counts.sum()
            table = mechanism.frequencies(counts, n_reports).reshape([shape[a] for a in attributes])
            for place, axis in enumerate(attributes):
                others = tuple(other for other in range(table.ndim) if other != place)
                weight = n_reports * shape[axis] / table.size / contrast_variance(mechanism)
                totals[axis] += weight * table.sum(axis=others)
                weights[axis] += weight
    return [total / weight if weight else np.full(len(total), 1 / len(total))
            for total, weight in zip(totals, weights)]
