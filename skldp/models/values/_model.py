"""Log-density of the parameters of one value, given the counts of its noisy reports."""

import itertools

import numpy as np

__all__ = ["UnivariateModel"]


class UnivariateModel:
    r"""Parameters of one value per client, from counts of reports in public cells.

    Parameters
    ----------
    family : Family
        Distribution of the records, with the priors of its parameters.
    aggregate : Aggregate
        Counts under one or more :class:`skldp.protocols.ValueProtocol`.
    column : int, default=0
        Which of the clients' values.

    Notes
    -----
    :math:`\log p(\theta) + \log|\partial\theta| + \sum_c n_c\log P_\theta(c)` over the cells c of each protocol. The
    cost depends on the number of cells alone.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import GammaPrior, GaussianFamily, NormalPrior, UnivariateModel
    >>> from skldp.protocols import ValueProtocol
    >>> family = GaussianFamily({"mean": NormalPrior(0.0, 5.0), "std": GammaPrior(2.0, 2.0)})
    >>> protocol = ValueProtocol(epsilon=1.0, bounds=(-5, 5))
    >>> aggregate = protocol.aggregate(protocol.privatize(np.linspace(-1, 1, 1000)))
    >>> UnivariateModel(family, aggregate).log_density(np.zeros((3, 2))).shape
    (3,)
    """

    def __init__(self, family, aggregate, column=0):
        self.family = family
        self.priors = list(family.priors.values())
        self.likelihoods = [_likelihood(family, protocol, tally.sums[column])
                            for protocol, tally in aggregate.parts.items()]

    @property
    def n_params(self):
        """Number of unknown parameters."""
        return len(self.priors)

    def constrain(self, theta):
        """Natural parameters by name, each of shape (n_walkers,)."""
        return {name: prior.constrain(theta[:, i]) for i, (name, prior) in enumerate(self.family.priors.items())}

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params): prior, Jacobian and likelihood."""
        with np.errstate(all="ignore"):
            values = [prior.constrain(theta[:, [i]]) for i, prior in enumerate(self.priors)]
            total = np.zeros(len(theta))
            for i, (prior, value) in enumerate(zip(self.priors, values)):
                total += prior.log_density(value[:, 0]) + prior.log_jacobian(theta[:, i])
            for likelihood in self.likelihoods:
                total += likelihood(values)
        return np.where(np.isnan(total), -np.inf, total)

    def report_log_likelihoods(self, protocol, theta):
        """Log-likelihood of a report in each cell of a protocol, shape (n_cells, n_walkers)."""
        with np.errstate(all="ignore"):
            values = [prior.constrain(theta[:, [i]]) for i, prior in enumerate(self.priors)]
            every = np.ones(protocol.cells.n_cells, dtype=np.int64)
            return _likelihood(self.family, protocol, every).log_probabilities(values).T

    def initial(self):
        """The best of a grid of prior quantiles: a start for the search of the mode."""
        n_levels = {1: 41, 2: 15, 3: 8}.get(self.n_params, 4)
        levels = (np.arange(n_levels) + 0.5) / n_levels
        axes = [prior.unconstrain(prior.quantile(levels)) for prior in self.priors]
        grid = np.array(list(itertools.product(*axes)))
        return grid[np.argmax(self.log_density(grid))]


def _likelihood(family, protocol, counts):
    if protocol.mechanism == "square_wave":
        return SquareWaveLikelihood(family, protocol.randomizer, counts)
    if not protocol.randomizer.private:
        return NoiselessLikelihood(family, protocol, counts)
    if protocol.mechanism == "gaussian":
        return NoiseLikelihood(family.log_gaussian, protocol, counts)
    if family.discrete:
        return DiscreteLaplaceLikelihood(family, protocol, counts)
    return NoiseLikelihood(family.log_laplace, protocol, counts)


class CellLikelihood:
    """Log-likelihood of counts of reports in cells."""

    counts: np.ndarray

    def __call__(self, values):
        """Log-likelihood of parameter values, shape (n_walkers,)."""
        return self.log_probabilities(values) @ self.counts

    def log_probabilities(self, values):
        """Log-probability of every cell, up to a constant, shape (n_walkers, n_cells)."""
        raise NotImplementedError


class SquareWaveLikelihood(CellLikelihood):
    r"""Log-likelihood of square wave reports: exact on the grid, for anything with a CDF.

    Notes
    -----
    With C the distribution function of the rounded, clipped record on the grid 0 .. n (end masses included),
    :math:`P(y) = f + (h - f)[C(y+B) - C(y-B-1)]`, h and f the probabilities of a near and of a far report.
    """

    def __init__(self, family, mechanism, counts):
        self.family, self.mechanism, self.counts = family, mechanism, counts.astype(float)
        lower, upper = mechanism.bounds
        self.edges = lower + (np.arange(mechanism.n_levels) + 0.5) * (upper - lower) / mechanism.n_levels
        self.near = mechanism.near_probability / mechanism.n_near
        self.far = (1 - mechanism.near_probability) / mechanism.n_levels

    def log_probabilities(self, values):
        """Log-probability of every cell, up to a constant, shape (n_walkers, n_cells)."""
        cdf = self.family.cdf(self.edges, values)
        margin = self.mechanism.n_near
        # C is 0 left of the grid and 1 from its last point on, so a window that leaves the grid needs no exception.
        extended = np.empty((len(cdf), self.mechanism.n_levels + 2 * margin))
        extended[:, :margin] = 0.0
        extended[:, margin:margin + cdf.shape[1]] = cdf
        extended[:, margin + cdf.shape[1]:] = 1.0
        probability = extended[:, margin:] - extended[:, :-margin]
        probability *= self.near - self.far
        probability += self.far
        if self.far == 0:
            # Without noise a cell can have no probability at all: keep the logarithm finite, far below any other.
            np.maximum(probability, 1e-300, out=probability)
        return np.log(probability, out=probability)


class NoiseLikelihood(CellLikelihood):
    """Log-likelihood of reports under additive noise by the family's closed form, at the centres of the cells."""

    def __init__(self, log_marginal, protocol, counts):
        occupied = counts > 0
        self.log_marginal, self.bounds, self.scale = log_marginal, protocol.bounds, protocol.cells.noise_scale
        self.centres, self.counts = protocol.cells.centres[occupied], counts[occupied].astype(float)

    def log_probabilities(self, values):
        """Log-probability of every cell, up to a constant, shape (n_walkers, n_cells)."""
        return self.log_marginal(self.centres, values, self.bounds, self.scale)


class NoiselessLikelihood(CellLikelihood):
    """Log-likelihood of reports without noise: the records' own probability of each grid point, end masses included."""

    def __init__(self, family, protocol, counts):
        occupied = counts > 0
        self.family, self.counts = family, counts[occupied].astype(float)
        centres, mechanism = protocol.cells.centres[occupied], protocol.randomizer
        half = (mechanism.decode(1.0) - mechanism.decode(0.0)) / 2
        lower, upper = protocol.bounds
        # The ends of the grid hold everything beyond them.
        self.below = np.where(centres - half <= lower, -np.inf, centres - half)
        self.above = np.where(centres + half >= upper, np.inf, centres + half)

    def log_probabilities(self, values):
        """Log-probability of every cell, up to a constant, shape (n_walkers, n_cells)."""
        masses = np.where(np.isinf(self.above), 1.0, self.family.cdf(self.above, values))
        masses -= np.where(np.isinf(self.below), 0.0, self.family.cdf(self.below, values))
        return np.log(np.maximum(masses, 1e-300))


class DiscreteLaplaceLikelihood(CellLikelihood):
    """Log-likelihood of Laplace reports of counts: a finite sum over the grid with the tail mass at its end, exact."""

    def __init__(self, family, protocol, counts):
        occupied = counts > 0
        self.family, self.counts = family, counts[occupied].astype(float)
        lower, upper = protocol.bounds
        n_levels = protocol.randomizer.n_levels
        self.edges = lower + (np.arange(n_levels) + 0.5) * (upper - lower) / n_levels
        self.kernel = protocol.cells.probabilities[occupied].T

    def log_probabilities(self, values):
        """Log-probability of every cell, up to a constant, shape (n_walkers, n_cells)."""
        masses = np.diff(self.family.cdf(self.edges, values), axis=1, prepend=0.0, append=1.0)
        return np.log(np.maximum(masses @ self.kernel, 1e-300))
