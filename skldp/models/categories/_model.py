r"""Log-density of category frequencies, given aggregated reports.

The frequencies are :math:`\theta_k = g_k/G`, :math:`G = \sum_l g_l`, which needs no constraint. They are
Dirichlet(:math:`\alpha`), with :math:`\alpha` given or learned (see :mod:`skldp.models.categories._prior`). The
distribution of G is free: it is Gamma, independent of :math:`\theta`, with a shape S of d but at least 100, so that
G is nearly constant. With :math:`h(T)` the log-density of :math:`\theta`, the log-density of the logarithms
:math:`\phi_k = \log g_k` is then :math:`h(T) + T + S\log G - G`, plus the log-likelihood of :math:`\theta`.

The coordinates x are such that Gamma variables of every shape are nearly normal, also for categories that few clients
have. With :math:`w(x) = x\sqrt{1 + x^2/4}` and the mean u = S/d of a :math:`g_k`,

.. math:: \phi = \log u + \tfrac32\log(k\log(1 + e^w)) - m\log(1 + e^{-w}), \qquad k = 0.05,\ m = 8.

For positive x this is close to a cube root (Wilson and Hilferty 1931). For negative x, :math:`\phi` decreases as
:math:`-\frac{19}4x^2`, so that the tail :math:`e^{\alpha\phi}` of the prior is that of a normal distribution. Its width
suits categories that nobody has: if 20 of 200 have all clients, :math:`\alpha` is about 0.01, and chains need a third
of the steps that they need with m = 0. The Jacobian adds :math:`\sum_k\log\phi_k'`.
"""

import numpy as np
from scipy.special import expit, logsumexp

from skldp.models._base import Model
from skldp.models._normal_tails import bend, inverse_softplus, unbend
from skldp.models.categories._choice import check_likelihood
from skldp.models.categories._likelihoods import (
    CountLikelihood,
    MultinomialLikelihood,
    PairedCountLikelihood,
    QuadraticLikelihood,
    RowLikelihood,
    pooled_estimate,
)
from skldp.models.categories._residuals import category_residuals
from skldp.models.categories._prior import DirichletPrior, estimated_concentration
from skldp.protocols._tallies import PairTally, RowTally

_ROOT_SCALE = 0.05  # k

_LEFT_SLOPE = 8.0  # m
_PILOT = 0.5  # concentration for the point of expansion
_MANY = 64  # categories: matrices of them, and mixing over the concentration, would be slow
# With 1,000 categories and a concentration of 0.1, chains need about 500 steps, with 1 they need 71.
_LEAST_OF_MANY = 0.5
_LEAST_SHAPE = 100.0  # of G
_VERY_NEGATIVE = -30.0  # below this log(1 + exp(a)) is exp(a) in floating point

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

    def __init__(self, likelihoods, concentration="auto"):
        self.likelihoods = likelihoods
        self.concentration = concentration
        self.n_params = likelihoods[0].n_categories
        self.nearly_independent = self.n_params > _MANY
        self.prior = DirichletPrior(self.n_params, self._mixed(concentration))
        self.total = max(_LEAST_SHAPE, self.n_params)
        self.unit = self.total / self.n_params  # u
        self.n_reports = sum(part.n_reports for part in likelihoods)

    def _mixed(self, concentration):
        """Return the concentration of the prior: estimated, if it is to be learned and categories are many."""
        if not isinstance(concentration, str) or self.n_params <= _MANY:
            return concentration
        return max(estimated_concentration(*pooled_estimate(self.likelihoods)), _LEAST_OF_MANY)

    @property
    def likelihood(self):
        """Either "exact", or "counts" if the likelihood of any protocol uses counts alone."""
        return "counts" if any(isinstance(part, CountLikelihood) for part in self.likelihoods) else "exact"

    def constrain(self, theta):
        """Frequencies, shape (n_walkers, n_categories)."""
        return {"frequencies": softmax(self._logs(theta)[0])}

    def log_density(self, theta):
        """Log-density of unconstrained parameters, shape (n_walkers, n_params)."""
        logs, slope, _ = self._logs(theta)
        frequencies = softmax(logs)
        value = self._log_prior(logs, slope)[0] + sum(part.log_likelihood(frequencies) for part in self.likelihoods)
        return np.where(np.isnan(value), -np.inf, value)  # the softmax of infinite coordinates is NaN

    def gradient(self, theta):
        """Log-density and its gradient, shapes (n_walkers,) and (n_walkers, n_params)."""
        return self._value_and_gradient(theta, self.likelihoods)

    def initial(self):
        """Return the coordinates of the unbiased estimates, clipped to the interior of the simplex."""
        estimate, d = pooled_estimate(self.likelihoods)[0], self.n_params
        frequencies = np.maximum(estimate, 0.1 / d)
        w = inverse_softplus((d * frequencies / frequencies.sum()) ** (2 / 3) / _ROOT_SCALE)
        return unbend(w)

    def fit_residuals(self, theta):
        """Residuals of the counts of categories, which depend on no parameters; None without reports."""
        return category_residuals(self.likelihoods)

    def _value_and_gradient(self, theta, likelihoods):
        logs, slope, by_slope = self._logs(theta)
        frequencies = softmax(logs)
        (value, concentration), by_frequency = self._log_prior(logs, slope), np.zeros_like(theta)
        for part in likelihoods:
            part_value, part_gradient = part.value_and_gradient(frequencies)
            value, by_frequency = value + part_value, by_frequency + part_gradient
        # of the prior of G without the share that belongs to the frequencies
        by_total = self.total - self.n_params * concentration - np.vecdot(frequencies, by_frequency)
        by_logs = frequencies * (by_frequency + by_total[:, None]) + concentration[:, None] - np.exp(logs)
        return value, slope * by_logs + by_slope

    def _log_prior(self, logs, slope):
        """Return the log-density of the prior in the coordinates, and the mean of the concentration given them."""
        log_total = logsumexp(logs, axis=1)
        value, concentration = self.prior.evaluate(logs.sum(axis=1) - self.n_params * log_total)
        return value + np.log(slope).sum(axis=1) + self.total * log_total - np.exp(log_total), concentration

    def _logs(self, theta):
        r"""Return :math:`\phi` at coordinates x, its derivative :math:`\phi'`, and :math:`\phi''/\phi'`."""
        w, w_slope, w_bend = bend(theta)
        softplus, rise = np.logaddexp(0.0, w), expit(w)
        far = w < _VERY_NEGATIVE
        ratio = np.where(far, 1.0, rise / np.where(far, 1.0, softplus))
        log_softplus = np.where(far, w, np.log(np.where(far, 1.0, softplus)))
        logs = np.log(self.unit) + 1.5 * (np.log(_ROOT_SCALE) + log_softplus) + _LEFT_SLOPE * (w - softplus)
        slope = 1.5 * ratio + _LEFT_SLOPE * (1 - rise)
        curvature = 1.5 * ratio * (1 - rise - ratio) - _LEFT_SLOPE * rise * (1 - rise)
        return logs, slope * w_slope, curvature / slope * w_slope + w_bend


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
        frequencies = softmax(self._logs(self.initial())[0])
        for _ in range(n_steps):
            gradient = sum(part.value_and_gradient(frequencies[None])[1][0] for part in self.likelihoods)
            # Each likelihood is a mixture over the categories: the expected number of clients in each of them.
            clients = frequencies * (gradient + self.n_reports - frequencies @ gradient)
            frequencies = (clients + _PILOT) / (self.n_reports + self.n_params * _PILOT)
        return frequencies


def softmax(logs):
    """Return the softmax along the last axis."""
    shifted = np.exp(logs - logs.max(axis=-1, keepdims=True))
    return shifted / shifted.sum(axis=-1, keepdims=True)
