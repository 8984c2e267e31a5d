r"""Log-density of category frequencies, given aggregated reports.

The frequencies are :math:`\theta_k = e^{\phi_k}/\sum_l e^{\phi_l}` with
:math:`g_k = e^{\phi_k} \sim \mathrm{Gamma}(\alpha, 1)` independent, which makes :math:`\theta`
Dirichlet(:math:`\alpha`) and needs no constraint: the unconstrained log-density is
:math:`\sum_k(\alpha\phi_k - e^{\phi_k})` plus the log-likelihood of :math:`\theta`. The sum of the :math:`g_k` is
independent of :math:`\theta`, and its posterior is its prior.
"""

import numpy as np

from skldp.models._base import Model
from skldp.models.categories._choice import check_likelihood
from skldp.models.categories._likelihoods import (
    CountLikelihood,
    MultinomialLikelihood,
    PairedCountLikelihood,
    QuadraticLikelihood,
    RowLikelihood,
)
from skldp.protocols._tallies import PairTally, RowTally

__all__ = ["HistogramModel", "SurrogateHistogramModel", "histogram_model"]


def histogram_model(aggregate, concentration=1.0, likelihood="auto"):
    """Return the model of category frequencies for an aggregate.

    Parameters
    ----------
    aggregate : Aggregate
        Counts or rows under one or more :class:`skldp.protocols.CategoryProtocol`.
    concentration : float, default=1.0
        Parameter of the symmetric Dirichlet prior.
    likelihood : {"auto", "exact", "counts"}, default="auto"
        "exact" evaluates single reports if the aggregate kept them, "auto" only if that is also cheap, and "counts"
        never. For randomised response and subsets of size one, counts are exact. The model's attribute
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
    if isinstance(tally, RowTally):
        if choice.evaluates(tally.rows.shape[0] * tally.width):
            return RowLikelihood(mechanism, tally)
        tally = tally.without_rows()
    if isinstance(tally, PairTally):
        return PairedCountLikelihood(mechanism, tally.pairs, tally.n_reports)
    return CountLikelihood(mechanism, tally.sums, tally.n_reports)


class HistogramModel(Model):
    """Frequencies of categories under a symmetric Dirichlet prior.

    Parameters
    ----------
    likelihoods : list
        One for each protocol, with the methods ``log_likelihood``, ``value_and_gradient`` and ``estimate``.
    concentration : float, default=1.0
        Parameter of the prior.

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

    def __init__(self, likelihoods, concentration=1.0):
        self.likelihoods = likelihoods
        self.concentration = concentration
        self.n_params = likelihoods[0].n_categories
        self.n_reports = sum(part.n_reports for part in likelihoods)

    @property
    def likelihood(self):
        """Either "exact", or "counts" if the likelihood of any protocol uses counts alone."""
        return "counts" if any(isinstance(part, CountLikelihood) for part in self.likelihoods) else "exact"

    def constrain(self, theta):
        """Frequencies, shape (n_walkers, n_categories)."""
        return {"frequencies": softmax(theta)}

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params)."""
        frequencies = softmax(theta)
        value = self._log_prior(theta) + sum(part.log_likelihood(frequencies) for part in self.likelihoods)
        return np.where(np.isnan(value), -np.inf, value)  # the softmax of infinite coordinates is NaN

    def gradient(self, theta):
        """Log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._value_and_gradient(theta, self.likelihoods)

    def initial(self):
        """Return the coordinates of the unbiased estimates, clipped to the interior of the simplex."""
        estimate = np.mean([part.estimate() for part in self.likelihoods], axis=0)
        d = self.n_params
        frequencies = np.maximum(estimate, 0.1 / d)
        return np.log(frequencies / frequencies.sum() * d * self.concentration)

    def _value_and_gradient(self, theta, likelihoods):
        frequencies = softmax(theta)
        value, by_frequency = self._log_prior(theta), np.zeros_like(theta)
        for part in likelihoods:
            part_value, part_gradient = part.value_and_gradient(frequencies)
            value, by_frequency = value + part_value, by_frequency + part_gradient
        by_theta = frequencies * (by_frequency - np.vecdot(frequencies, by_frequency)[:, None])
        return value, by_theta + self.concentration - np.exp(theta)

    def _log_prior(self, theta):
        return (self.concentration * theta - np.exp(theta)).sum(axis=1)


class SurrogateHistogramModel(HistogramModel):
    """A HistogramModel whose trajectories use a second-order expansion of the likelihood of rows.

    The accept step evaluates the exact density, so the posterior is exact. A step of the sampler costs one pass over
    the rows instead of one for each leapfrog.

    Parameters
    ----------
    likelihoods : list
        Exact, one for each protocol.
    concentration : float, default=1.0
        Parameter of the prior.

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

    def __init__(self, likelihoods, concentration=1.0):
        super().__init__(likelihoods, concentration)
        reference = self._near_mode()
        self.surrogates = [QuadraticLikelihood(part, reference) if isinstance(part, RowLikelihood) else part
                           for part in likelihoods]

    def surrogate(self, theta):
        """Gradient of the log-density with the likelihood of rows replaced by its expansion."""
        return self._value_and_gradient(theta, self.surrogates)[1]

    def _near_mode(self, n_steps=30):
        """Return the frequencies after ``n_steps`` steps of expectation-maximisation, as the point of expansion."""
        frequencies = softmax(self.initial())
        for _ in range(n_steps):
            gradient = sum(part.value_and_gradient(frequencies[None])[1][0] for part in self.likelihoods)
            # Each likelihood is a mixture over the categories: the expected number of clients in each of them.
            clients = frequencies * (gradient + self.n_reports - frequencies @ gradient)
            frequencies = (clients + self.concentration) / (self.n_reports + self.n_params * self.concentration)
        return frequencies


def softmax(theta):
    """Return the softmax along the last axis."""
    shifted = np.exp(theta - theta.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)
