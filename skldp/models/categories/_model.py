r"""Log-density of category frequencies, given aggregated reports.

The frequencies are :math:`\theta_k = y_k/Y`, :math:`Y = \sum_ly_l`, which needs no constraint. They are
Dirichlet(:math:`\alpha`), with :math:`\alpha` given or learned (see :mod:`skldp.models.categories._prior`). The
distribution of Y is free: it is Gamma, independent of :math:`\theta`, with a shape S and the mean 1. With
:math:`h(T)` the log-density of :math:`\theta`, the log-density of the logarithms :math:`\phi_k = \log y_k` is then
:math:`h(T) + T + S\log Y - SY`, plus the log-likelihood of :math:`\theta`. Each :math:`\phi_k` is a function of one
coordinate :math:`x_k`, which is nearly standard normal given the reports (see
:mod:`skldp.models.categories._coordinates`). The Jacobian adds :math:`\sum_k\log\phi_k'`.
"""

from copy import copy
from functools import cached_property

import numpy as np

from skldp.models._base import Model
from skldp.models.categories._block_likelihood import BlockLikelihood
from skldp.models.categories._choice import check_likelihood
from skldp.models.categories._coordinates import FrequencyCoordinates
from skldp.models.categories._likelihoods import (
    CountLikelihood,
    MultinomialLikelihood,
    PairedCountLikelihood,
    QuadraticLikelihood,
    RowLikelihood,
)
from skldp.models.categories._marginals import Marginals
from skldp.models.categories._prior import DirichletPrior, estimated_concentration
from skldp.models.categories._residuals import category_residuals
from skldp.protocols._tallies import PairTally, RowTally

_PILOT = 0.5  # concentration for the point of expansion
_MANY = 64  # categories: matrices of them, and mixing over the concentration, would be slow
_SMALLEST = 1e-300
_MOST_SAMPLED = 2048  # categories: chains of more would take minutes

__all__ = ["HistogramModel", "SurrogateHistogramModel", "histogram_model"]


def histogram_model(aggregate, concentration="auto", likelihood="auto"):
    """Return the model of category frequencies for an aggregate.

    Parameters
    ----------
    aggregate : Aggregate
        Counts or rows under one or more :class:`skldp.protocols.CategoryProtocol`.
    concentration : "auto" or float, default="auto"
        Parameter of the symmetric Dirichlet prior, learned by default.
    likelihood : {"auto", "exact", "counts"}, default="auto"
        "exact" evaluates single reports if the aggregate kept them, "auto" only if that is also cheap, and "counts"
        never. For randomised response, block designs and subsets of size one, counts are exact. The model's attribute
        ``likelihood`` is the result of the choice.

    Returns
    -------
    HistogramModel

    Examples
    --------
    >>> from skldp.models import histogram_model
    >>> from skldp.protocols import CategoryProtocol
    >>> protocol = CategoryProtocol(categories=("a", "b", "c"), mechanism="rr")
    >>> model = histogram_model(protocol.aggregate(protocol.privatize(["a", "b", "a"])))
    >>> model.n_params
    3
    """
    choice = check_likelihood(likelihood)
    likelihoods = [_likelihood(protocol.randomizer, tally, choice) for protocol, tally in aggregate.parts.items()]
    if not any(isinstance(part, RowLikelihood) for part in likelihoods):
        return HistogramModel(likelihoods, concentration)
    return SurrogateHistogramModel(likelihoods, concentration)


def _likelihood(mechanism, tally, choice):
    if mechanism.names_one:
        return MultinomialLikelihood(mechanism, tally.sums, tally.n_reports)
    if mechanism.counts_suffice:
        return BlockLikelihood(mechanism, tally.sums, tally.n_reports)
    if isinstance(tally, RowTally):
        if choice.evaluates(tally.rows.shape[0] * tally.width):
            return RowLikelihood(mechanism, tally)
        tally = tally.without_rows()
    if isinstance(tally, PairTally):
        return PairedCountLikelihood(mechanism, tally.pairs, tally.n_reports)
    return CountLikelihood(mechanism, tally.sums, tally.n_reports)


class HistogramModel(Model):
    """Frequencies of categories under a symmetric Dirichlet prior, of a given or a learned concentration.

    Parameters
    ----------
    likelihoods : list
        One for each protocol, with the methods ``log_likelihood``, ``value_and_gradient`` and ``estimate``.
    concentration : "auto" or float, default="auto"
        Parameter of the prior: learned with the frequencies, or estimated first if there are more than 64 categories.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import histogram_model
    >>> from skldp.protocols import CategoryProtocol
    >>> protocol = CategoryProtocol(categories=("a", "b", "c"), mechanism="rr")
    >>> model = histogram_model(protocol.aggregate(protocol.privatize(["a"] * 100)))
    >>> value, gradient = model.gradient(np.zeros((5, 3)))
    >>> value.shape, gradient.shape
    ((5,), (5, 3))
    """

    nearly_standard_normal = True

    def __init__(self, likelihoods, concentration="auto"):
        self.likelihoods = likelihoods
        self.concentration = concentration
        self.n_params = likelihoods[0].n_categories
        self.nearly_independent = self.n_params > _MANY
        self.n_reports = sum(part.n_reports for part in likelihoods)

    @cached_property
    def prior(self):
        """Prior of the frequencies. With many categories its concentration is that of the coordinates."""
        concentration = self.coordinates.concentration if self.nearly_independent else self.concentration
        return DirichletPrior(self.n_params, concentration)

    @cached_property
    def coordinates(self):
        """Map from the coordinates of all categories to the logarithms of their frequencies."""
        is_learned = isinstance(self.concentration, str)
        likely = estimated_concentration(self.likelihoods) if is_learned else self.concentration
        return FrequencyCoordinates(Marginals(self.likelihoods, likely))

    def in_coordinates_of(self, other):
        """Return the same model in the coordinates of another one, with its estimate of the concentration."""
        model = copy(self)
        vars(model).pop("prior", None)
        model.coordinates = other.coordinates
        return model

    @property
    def likelihood(self):
        """Either "exact", "counts" if the likelihood of any protocol uses counts alone, or "marginals"."""
        if self.independent is not None:
            return "marginals"
        return "counts" if any(isinstance(part, CountLikelihood) for part in self.likelihoods) else "exact"

    def constrain(self, theta):
        """Frequencies, shape (n_walkers, n_categories)."""
        return {"frequencies": _normalised(self.coordinates(theta)[0])[0]}

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params)."""
        logs, slope, _ = self.coordinates(theta)
        frequencies, log_total = _normalised(logs)
        value, _ = self._log_prior(logs, slope, log_total)
        value = value + sum(part.log_likelihood(frequencies) for part in self.likelihoods)
        return np.where(np.isnan(value), -np.inf, value)  # infinite coordinates have NaN

    def gradient(self, theta):
        """Log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._value_and_gradient(theta, self.likelihoods)

    def initial(self):
        """Return zero, the median of every frequency given the count of its category."""
        return np.zeros(self.n_params)

    def fit_residuals(self, theta):
        """Residuals of the counts of categories, which depend on no parameters; None without reports."""
        return category_residuals(self.likelihoods)

    @property
    def independent(self):
        """Function of standard normal coordinates to frequencies, for more than 2,048 categories; else None."""
        return self.by_marginals if self.n_params > _MOST_SAMPLED else None

    def influence(self, draws):
        r"""Return the largest change of each posterior mean by one report, from draws by name.

        The log-likelihood of a report that contains category k, and of one that does not, has the derivatives
        :math:`(p - q)/m_k` and :math:`-(p - q)/(1 - m_k)` in :math:`\theta_k`, with
        :math:`m_k = q + (p-q)\theta_k`. The posterior variance times the larger one is the change to first order.
        """
        frequencies = draws["frequencies"].reshape(-1, self.n_params)
        mean, variance = frequencies.mean(axis=0), frequencies.var(axis=0)
        contained = [(part.p - part.q, part.q + (part.p - part.q) * mean) for part in self.likelihoods]
        slopes = [slope / np.maximum(np.minimum(m, 1 - m), _SMALLEST) for slope, m in contained]
        return {"frequencies": variance * np.max(slopes, axis=0)}

    def by_marginals(self, theta):
        r"""Return frequencies with the posterior of each category given its own count, whose sum is one.

        The marginal posteriors of all :math:`y_k` are independent, and the sum of a draw is nearly one. It becomes one
        by changes of :math:`\log y_k` in proportion to its uncertainty, at most 1. Dividing all by the sum would make
        large frequencies as uncertain as the sum of all others.
        """
        logs, slope, _ = self.coordinates(theta)
        frequencies, uncertainty = np.exp(logs), np.fmin(slope, 1.0)
        shift = (1 - frequencies.sum(axis=1)) / np.vecdot(frequencies, uncertainty)
        frequencies *= np.exp(shift[:, None] * uncertainty)
        return {"frequencies": frequencies / frequencies.sum(axis=1, keepdims=True)}

    @property
    def report_log_likelihoods(self):
        """Function of a protocol and theta to the log-likelihoods of single reports, if all are of block designs."""
        return self._by_report if all(isinstance(part, BlockLikelihood) for part in self.likelihoods) else None

    def _by_report(self, protocol, theta):
        part = next(part for part in self.likelihoods if part.mechanism == protocol.randomizer)
        return part.report_log_likelihoods(self.constrain(theta)["frequencies"])

    def _value_and_gradient(self, theta, likelihoods):
        logs, slope, by_slope = self.coordinates(theta)
        frequencies, log_total = _normalised(logs)
        value, concentration = self._log_prior(logs, slope, log_total)
        by_frequency = 0.0
        for part in likelihoods:
            part_value, part_gradient = part.value_and_gradient(frequencies)
            value, by_frequency = value + part_value, by_frequency + part_gradient
        # of the prior of Y without the share that belongs to the frequencies
        by_total = (self.coordinates.total * (1 - np.exp(log_total)) - self.n_params * concentration
                    - np.vecdot(frequencies, by_frequency))
        by_logs = frequencies * (by_frequency + by_total[:, None]) + concentration[:, None]
        return value, slope * by_logs + by_slope

    def _log_prior(self, logs, slope, log_total):
        """Return the log-density of the prior in the coordinates, and the mean of the concentration given them."""
        value, concentration = self.prior.evaluate(logs.sum(axis=1) - self.n_params * log_total)
        value = value + np.log(slope).sum(axis=1) + self.coordinates.total * (log_total - np.exp(log_total))
        return value, concentration


class SurrogateHistogramModel(HistogramModel):
    """A HistogramModel whose trajectories use a second-order expansion of the likelihood of rows.

    The accept step evaluates the exact density, so the posterior is exact. A step of the sampler costs one pass over
    the rows instead of one for each leapfrog.

    Parameters
    ----------
    likelihoods : list
        Exact, one for each protocol.
    concentration : "auto" or float, default="auto"
        Parameter of the prior: learned with the frequencies, or estimated first if there are more than 64 categories.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import histogram_model
    >>> from skldp.protocols import CategoryProtocol
    >>> protocol = CategoryProtocol(categories=("a", "b", "c"), mechanism="oue")
    >>> model = histogram_model(protocol.aggregate(protocol.privatize(["a"] * 100), keep_rows=True))
    >>> type(model).__name__
    'SurrogateHistogramModel'
    >>> model.surrogate(np.zeros((5, 3))).shape
    (5, 3)
    """

    def __init__(self, likelihoods, concentration="auto"):
        super().__init__(likelihoods, concentration)
        reference = self._near_mode()
        self.surrogates = [QuadraticLikelihood(part, reference) if isinstance(part, RowLikelihood) else part
                           for part in likelihoods]

    def surrogate(self, theta):
        """Gradient of the log-density with the likelihood of rows replaced by its expansion."""
        return self._value_and_gradient(theta, self.surrogates)[1]

    def _near_mode(self, n_steps=30):
        """Return the frequencies after ``n_steps`` steps of expectation-maximisation, as the point of expansion."""
        frequencies = self.constrain(self.initial()[None])["frequencies"][0]
        for _ in range(n_steps):
            gradient = sum(part.value_and_gradient(frequencies[None])[1][0] for part in self.likelihoods)
            # Each likelihood is a mixture over the categories: the expected number of clients in each of them.
            clients = frequencies * (gradient + self.n_reports - frequencies @ gradient)
            frequencies = (clients + _PILOT) / (self.n_reports + self.n_params * _PILOT)
        return frequencies


def _normalised(logs):
    """Return frequencies with given logarithms up to a constant, and the logarithms of their sums."""
    largest = logs.max(axis=1)
    weights = np.exp(logs - largest[:, None])
    total = weights.sum(axis=1)
    weights /= total[:, None]
    return weights, largest + np.log(total)
