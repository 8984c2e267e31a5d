r"""Joint frequencies of several attributes, given reports on pairs of them and on single ones."""

import math

import numpy as np
from scipy.special import gammaincinv, ndtr

from skldp.exceptions import InvalidParameterError
from skldp.models._base import Model
from skldp.models.categories._attribute_marginals import largest_changes, marginal_models, table_parts

MAX_JOINT = 10**5  # cells of a joint table
_N_STEPS = 400  # largest number of steps of a maximisation
_GAIN = 0.005  # of a log-likelihood in a step, below which a maximisation ends
_RISE, _FALL = 1.5, 0.4  # factors of a step size after a success and after a failure
_SMALLEST = 1e-300
_LEAST_WEIGHT = 1e-30  # of a cell, so that its logarithm exists
_LONGEST = 0.95  # share of a frequency that one step may take away
_PRIOR = 0.05  # sum of the parameters of the prior over a cell of the largest pair table
_N_SWEEPS, _N_LAST = 2, 20  # over all attributes, of the fit of a table to its marginals in a step and at the end


class JointModel(Model):
    r"""Joint table of several attributes: first the frequencies of each attribute, and then the table given these.

    Parameters
    ----------
    aggregate, concentration
        As in :func:`marginal_models`.

    Notes
    -----
    The joint table :math:`\theta` has one cell for each combination of categories, at most 100,000. The probability of
    a report is linear in the table of its attributes, which is a sum over :math:`\theta`, so all pair tables and
    marginal frequencies are those of one joint table.

    A draw has two parts. The frequencies of each attribute are drawn from their posterior given unbiased estimates from
    all tables (:func:`marginal_models`). In a table many cells are empty, and if noise is larger than the frequencies,
    estimates of them that cannot be negative have a bias, whose sum over a row can exceed the error of the unbiased
    estimate. Then, among joint tables with these marginal frequencies, a weighted likelihood bootstrap [1]_ maximises
    :math:`\sum_ig_i\log P(z_i|\theta) + \sum_kh_k\log\theta_k` over reports of pairs, with independent weights,
    exponential :math:`g_i` of reports and :math:`h_k \sim \mathrm{Gamma}(\alpha)` of cells. The prior is a Dirichlet
    distribution whose parameters sum to 1/20 in each cell of the largest pair table: small, because they add up in the
    cells of small tables, which may be empty. With many reports the draws are those of the posterior, also for a
    frequency near zero: if the log-likelihood falls by s per unit there, :math:`\theta_k = h_k/s` is its posterior
    Gamma(:math:`\alpha`, s). The parameters of this model are normal scores: of the frequencies of each attribute
    given its estimate, and of the weights.

    What reports do not tell, associations of three and more attributes, comes from the prior and from the independent
    attributes from which the maximisation starts.

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

    def __init__(self, aggregate, concentration="auto"):
        protocol = aggregate.protocol
        self.shape, self.likelihood = protocol.shape, "exact"
        if math.prod(self.shape) > MAX_JOINT:
            raise InvalidParameterError(
                f"The joint table of these attributes has {math.prod(self.shape)} cells, and at most {MAX_JOINT} are "
                "modelled. Use fewer attributes, or merge rare categories.")
        self._aggregate, self.marginals = aggregate, marginal_models(aggregate, concentration)
        self._parts = [part for one, tally in aggregate.parts.items() for part in table_parts(one, tally)
                       if len(part[1]) == 2]
        self._counts = np.concatenate([np.zeros(0), *(counts for _, _, counts in self._parts)])
        self.n_cells = math.prod(self.shape)
        self.concentration = _PRIOR * math.prod(sorted(self.shape)[-2:]) / self.n_cells
        self._ends = np.cumsum([*self.shape, len(self._counts), self.n_cells])
        self.n_params = int(self._ends[-1])

    def initial(self):
        """Return zero, the medians of frequencies of attributes, at which all reports have about the same weight."""
        return np.zeros(self.n_params)

    def log_density(self, theta):
        """Log-density of standard normal scores, up to a constant."""
        return -0.5 * np.vecdot(theta, theta)

    def constrain(self, theta):
        """Joint frequencies of all combinations, shape (n_walkers, n_cells), in the order of nested attributes."""
        *scores, own, prior = np.split(theta, self._ends[:-1], axis=1)
        marginals = [_placed(one.by_marginals(part)["frequencies"], axis, len(self.shape))
                     for axis, (one, part) in enumerate(zip(self.marginals, scores))]
        # Sums of c exponential variables have Gamma distributions, here by the cubes of normal variables of Wilson and
        # Hilferty.
        scale = 1 / np.maximum(9 * self._counts, 1.0)
        weights = self._counts * np.maximum(1 - scale + own * np.sqrt(scale), 0.0) ** 3
        added = np.maximum(gammaincinv(self.concentration, ndtr(prior)), _LEAST_WEIGHT).reshape(-1, *self.shape)
        return {"frequencies": self._maximise(weights, added, marginals, _N_STEPS).reshape(len(theta), -1)}

    independent = constrain

    def influence(self, draws):
        """Return the largest change of the posterior mean of each frequency of an attribute by one report, by name."""
        joint = draws["frequencies"].reshape(-1, *self.shape)
        found = {}
        for axis, changes in enumerate(largest_changes(self._aggregate)):
            frequencies = joint.sum(axis=tuple(other + 1 for other in range(len(self.shape)) if other != axis))
            found[f"frequencies[{axis}]"] = frequencies.var(axis=0) * changes
        return found

    def _maximise(self, counts, added, marginals, n_steps):
        """Return joint tables of given marginals with the largest likelihood, for weights of reports and of cells."""
        table = math.prod(marginals[1:], start=marginals[0])
        axes = tuple(range(1, table.ndim))
        total = counts.sum(axis=1) + added.sum(axis=axes)
        size, n_small = np.ones(len(table)), 0
        value, slopes = self._evaluate(counts, added, table, total)
        for _ in range(n_steps):
            # With the size 1 this is expectation-maximisation, which is slow under much noise.
            longest = _LONGEST / np.maximum(1 - slopes.min(axis=axes), _SMALLEST)
            step = _along(np.minimum(size, longest), table)
            proposal = table * (1 + step * (slopes - 1)) + step * added / _along(total, table)
            proposal = _fitted(proposal, marginals, _N_SWEEPS)
            found, found_slopes = self._evaluate(counts, added, proposal, total)
            better = found >= value
            gain = np.where(better, found - value, np.inf)
            chosen = _along(better, table)
            table, slopes = np.where(chosen, proposal, table), np.where(chosen, found_slopes, slopes)
            value, size = np.where(better, found, value), size * np.where(better, _RISE, _FALL)
            n_small = 0 if gain.max() >= _GAIN else n_small + 1
            if n_small == 3:
                break
        return _fitted(table, marginals, _N_LAST)

    def _evaluate(self, counts, added, table, total):
        """Return log-densities, and the factors of all cells in expectation-maximisation without a prior."""
        value, weights, start = 0.0, 0.0, 0
        for mechanism, (a, b), part in self._parts:
            own = counts[:, start:start + len(part)]
            start += len(part)
            others = tuple(axis + 1 for axis in range(len(self.shape)) if axis not in (a, b))
            pair = table.sum(axis=others, keepdims=True)
            far = mechanism.far_probability
            contrast = mechanism.p / mechanism.n_ones - far
            probability = np.maximum(far + contrast * mechanism.sum_blocks(pair.reshape(len(table), -1)), _SMALLEST)
            value = value + np.vecdot(own, np.log(probability))
            shares = own / probability
            factors = far * shares.sum(axis=1, keepdims=True) + contrast * mechanism.sum_near(shares)
            weights = weights + np.maximum(factors, 0.0).reshape(pair.shape)
        value = value + (added * np.log(np.maximum(table, _SMALLEST))).sum(axis=tuple(range(1, table.ndim)))
        return value, weights / _along(total, table)


def _along(values, table):
    """Return one value for each table with the number of axes of the tables."""
    return values.reshape(-1, *(1,) * (table.ndim - 1))


def _placed(frequencies, axis, n_attributes):
    """Return frequencies of an attribute, shape (n, K), with the axes of joint tables."""
    places = [1] * n_attributes
    places[axis] = frequencies.shape[1]
    return frequencies.reshape(-1, *places)


def _fitted(table, marginals, n_sweeps):
    """Return tables scaled to the frequencies of each attribute in turn (iterative proportional fitting)."""
    for _ in range(n_sweeps):
        for axis, marginal in enumerate(marginals, 1):
            others = tuple(other for other in range(1, table.ndim) if other != axis)
            table = table * (marginal / np.maximum(table.sum(axis=others, keepdims=True), _SMALLEST))
    return table
