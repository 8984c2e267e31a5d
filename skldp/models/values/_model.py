"""Log-density of the parameters of a distribution of one value, given counts of its noisy reports."""

import itertools

import numpy as np

from skldp.models._base import Model
from skldp.models.values._cell_likelihoods import cell_likelihood
from skldp.models.values._residuals import cell_residuals

__all__ = ["UnivariateModel"]


class UnivariateModel(Model):
    r"""Parameters of the distribution of one value per client, from counts of reports in public cells.

    Parameters
    ----------
    family : Family
        Distribution of the records, with the priors of its parameters.
    aggregate : Aggregate
        Counts under one or more :class:`skldp.protocols.ValueProtocol`.
    column : int, default=0
        Index of the clients' value that is modelled.

    Notes
    -----
    The log-density is :math:`\log p(\theta) + \log|\partial\theta| + \sum_c n_c\log P_\theta(c)`, summed over the cells
    c of each protocol. Its cost depends only on the number of cells.

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
        self.n_params = len(self.priors)
        self.parts = [(protocol, tally.sums[column]) for protocol, tally in aggregate.parts.items()]
        self.likelihoods = [cell_likelihood(family, protocol, counts) for protocol, counts in self.parts]

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
            one_report_per_cell = np.ones(protocol.cells.n_cells, dtype=np.int64)
            likelihood = cell_likelihood(self.family, protocol, one_report_per_cell)
            return (likelihood.log_probabilities(values) + likelihood.log_sizes).T

    def fit_residuals(self, theta):
        """Residuals of the counts in runs of cells, given draws of the parameters; None if reports are too few."""
        return cell_residuals(self.report_log_likelihoods, self.parts, theta)

    def initial(self):
        """Return the point of highest log-density on a grid of prior quantiles, to start the search for the mode."""
        n_levels = {1: 41, 2: 15, 3: 8}.get(self.n_params, 4)
        levels = (np.arange(n_levels) + 0.5) / n_levels
        axes = [prior.unconstrain(prior.quantile(levels)) for prior in self.priors]
        grid = np.array(list(itertools.product(*axes)))
        return grid[np.argmax(self.log_density(grid))]
