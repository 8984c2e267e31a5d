"""Priors of single parameters: log-density, quantiles, and the map from the real line to their support."""

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, betaln, expit, gammaincinv, gammaln, ndtri

from skldp._validation._parameters import check_positive, check_real, is_auto
from skldp.exceptions import InvalidParameterError


class Prior:
    r"""A distribution of one parameter on its support.

    ``constrain`` maps an unconstrained number to the support: the identity on the real line, :math:`a + e^\theta` on a
    half-line, a scaled logistic function on an interval. ``log_jacobian`` is the logarithm of its derivative.
    """

    support: tuple = (-np.inf, np.inf)

    def constrain(self, theta):
        """Map unconstrained numbers to the support."""
        lower, upper = self.support
        if np.isinf(lower) and np.isinf(upper):
            return theta
        if np.isinf(upper):
            return lower + np.exp(theta)
        if np.isinf(lower):
            return upper - np.exp(theta)
        return lower + (upper - lower) * expit(theta)

    def log_jacobian(self, theta):
        """Logarithm of the derivative of ``constrain``."""
        lower, upper = self.support
        if np.isinf(lower) and np.isinf(upper):
            return np.zeros_like(theta)
        if np.isinf(lower) or np.isinf(upper):
            return theta
        return np.log(upper - lower) - np.logaddexp(0, theta) - np.logaddexp(0, -theta)

    def unconstrain(self, value):
        """Inverse of ``constrain``."""
        lower, upper = self.support
        if np.isinf(lower) and np.isinf(upper):
            return value
        if np.isinf(upper):
            return np.log(value - lower)
        if np.isinf(lower):
            return np.log(upper - value)
        share = (value - lower) / (upper - lower)
        return np.log(share) - np.log1p(-share)

    def log_density(self, value):
        """Log-density at values of the support."""
        raise NotImplementedError

    def quantile(self, u):
        """Return quantiles, for starting points and simulations from the prior."""
        raise NotImplementedError


@dataclass(frozen=True)
class NormalPrior(Prior):
    """Normal prior with a location and a scale.

    Parameters
    ----------
    location, scale : float
        Mean and standard deviation.

    Examples
    --------
    >>> from skldp.models import NormalPrior
    >>> NormalPrior(170.0, 10.0).quantile(0.5)
    np.float64(170.0)
    """

    location: float
    scale: float

    def log_density(self, value):
        """Log-density at values of the support."""
        return -((value - self.location) / self.scale) ** 2 / 2 - np.log(self.scale * np.sqrt(2 * np.pi))

    def quantile(self, u):
        """Return quantiles."""
        return self.location + self.scale * ndtri(u)


@dataclass(frozen=True)
class GammaPrior(Prior):
    """Gamma prior with a shape and a rate.

    Parameters
    ----------
    shape, rate : float
        The mean is shape / rate.

    Examples
    --------
    >>> from skldp.models import GammaPrior
    >>> prior = GammaPrior(1.0, 2.0)
    >>> round(float(prior.log_density(0.5)), 6)
    -0.306853
    >>> prior.constrain(0.0)  # from the real line to the positive numbers
    np.float64(1.0)
    """

    shape: float
    rate: float
    support = (0.0, np.inf)

    def log_density(self, value):
        """Log-density at values of the support."""
        constant = self.shape * np.log(self.rate) - gammaln(self.shape)
        return constant + (self.shape - 1) * np.log(value) - self.rate * value

    def quantile(self, u):
        """Return quantiles."""
        return gammaincinv(self.shape, u) / self.rate


@dataclass(frozen=True)
class BetaPrior(Prior):
    """Beta prior with two shapes.

    Parameters
    ----------
    a, b : float
        The mean is a / (a + b).

    Examples
    --------
    >>> from skldp.models import BetaPrior
    >>> BetaPrior(1.0, 1.0).quantile(0.25)
    np.float64(0.25)
    """

    a: float
    b: float
    support = (0.0, 1.0)

    def log_density(self, value):
        """Log-density at values of the support."""
        return (self.a - 1) * np.log(value) + (self.b - 1) * np.log1p(-value) - betaln(self.a, self.b)

    def quantile(self, u):
        """Return quantiles."""
        return betaincinv(self.a, self.b, u)


class ScipyPrior(Prior):
    """Any frozen continuous distribution of ``scipy.stats`` as a prior.

    Parameters
    ----------
    frozen : frozen distribution
        The prior. Its support is the support of the parameter.

    Examples
    --------
    >>> from scipy import stats
    >>> from skldp.models import ScipyPrior
    >>> ScipyPrior(stats.uniform(0, 2)).support
    (0.0, 2.0)
    """

    def __init__(self, frozen):
        self.frozen, self._logpdf = frozen, frozen.logpdf
        self.support = tuple(float(end) for end in frozen.support())

    def log_density(self, value):
        """Log-density at values of the support."""
        return self._logpdf(value)

    def quantile(self, u):
        """Return quantiles."""
        return self.frozen.ppf(u)


def check_prior(value, default, kind, name):
    """Return a prior with two parameters: the default for "auto", otherwise one made from a pair of numbers.

    Parameters
    ----------
    value : "auto" or pair of float
        Value of the estimator's parameter.
    default : Prior
        Prior for "auto".
    kind : type
        :class:`NormalPrior`, :class:`GammaPrior` or :class:`BetaPrior`.
    name : str
        Name of the estimator's parameter.

    Returns
    -------
    Prior
    """
    if is_auto(value):
        return default
    words = " and ".join(field for field in kind.__dataclass_fields__)
    try:
        first, second = value
    except (TypeError, ValueError):
        raise InvalidParameterError(f'{name} must be "auto" or a pair ({words}), got {value!r}.') from None
    first = check_real(first, name) if kind is NormalPrior else check_positive(first, name)
    return kind(first, check_positive(second, name))
