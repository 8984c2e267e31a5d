r"""Families of distributions of one value: parameters, CDF, and densities under noise if these have a closed form.

Parameters are passed as a list of arrays of shape (n_walkers, 1), points as arrays of shape (n_points,). The square
wave needs only a CDF. Discrete families are distributions on the integers, so their CDF at j + 1/2 equals that at j.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln, ndtr, pdtr, xlogy

from skldp.exceptions import InvalidParameterError
from skldp.models.values._marginals import log_gaussian_gaussian, log_laplace_exponential, log_laplace_gaussian
from skldp.models.values._priors import Prior

__all__ = ["ExponentialFamily", "GaussianFamily", "GeometricFamily", "PoissonFamily", "ScipyFamily"]


class Family:
    """A parametric family of distributions with independent priors of its parameters."""

    priors: dict[str, Prior]

    @property
    def discrete(self):
        """Whether the distribution is on the integers."""
        return False

    @property
    def kind(self):
        """Which likelihood the family needs: "continuous", "discrete", or "costly" if the CDF is slow to evaluate."""
        return "discrete" if self.discrete else "continuous"

    def cdf(self, x, parameters):
        """Distribution function at points, shape (n_walkers, n_points)."""
        raise NotImplementedError

    def log_density(self, x, parameters):
        """Log-density (log-probability if discrete) at points, before clipping."""
        raise NotImplementedError

    def log_laplace(self, z, parameters, bounds, scale):
        """Log-density of a clipped value plus Laplace noise."""
        raise InvalidParameterError(f"{type(self).__name__} has no closed form under Laplace noise. "
                                    'Use mechanism="square_wave".')

    def log_gaussian(self, z, parameters, bounds, sigma):
        """Log-density of a clipped value plus Gaussian noise."""
        raise InvalidParameterError(f"{type(self).__name__} has no closed form under Gaussian noise. "
                                    'Use mechanism="square_wave".')


class CountFamily(Family):
    """A family of distributions of counts."""

    @property
    def discrete(self):
        """Whether the distribution is on the integers."""
        return True


@dataclass(frozen=True)
class GaussianFamily(Family):
    """Normal distribution with a mean and a standard deviation.

    Parameters
    ----------
    priors : dict
        Priors of ``mean`` and ``std``, in this order.

    Examples
    --------
    >>> from skldp.models import GammaPrior, GaussianFamily, NormalPrior
    >>> family = GaussianFamily({"mean": NormalPrior(0.0, 5.0), "std": GammaPrior(2.0, 2.0)})
    >>> family.cdf(1.0, [1.0, 2.0])
    np.float64(0.5)
    """

    priors: dict

    def cdf(self, x, parameters):
        """Distribution function."""
        mean, std = parameters
        return ndtr((x - mean) / std)

    def log_density(self, x, parameters):
        """Log-density."""
        mean, std = parameters
        return -((x - mean) / std) ** 2 / 2 - np.log(std * np.sqrt(2 * np.pi))

    def log_laplace(self, z, parameters, bounds, scale):
        """Log-density of a clipped value plus Laplace noise."""
        mean, std = parameters
        return log_laplace_gaussian(z, mean, std, bounds, scale)

    def log_gaussian(self, z, parameters, bounds, sigma):
        """Log-density of a clipped value plus Gaussian noise."""
        mean, std = parameters
        return log_gaussian_gaussian(z, mean, std, bounds, sigma)


@dataclass(frozen=True)
class ExponentialFamily(Family):
    """Exponential distribution with a rate.

    Parameters
    ----------
    priors : dict
        Prior of ``rate``.

    Examples
    --------
    >>> from skldp.models import ExponentialFamily, GammaPrior
    >>> family = ExponentialFamily({"rate": GammaPrior(2.0, 1.0)})
    >>> round(float(family.cdf(1.0, [2.0])), 6)
    0.864665
    """

    priors: dict

    def cdf(self, x, parameters):
        """Distribution function."""
        return -np.expm1(-parameters[0] * np.maximum(x, 0.0))

    def log_density(self, x, parameters):
        """Log-density."""
        with np.errstate(invalid="ignore"):
            return np.where(x >= 0, np.log(parameters[0]) - parameters[0] * x, -np.inf)

    def log_laplace(self, z, parameters, bounds, scale):
        """Log-density of a clipped value plus Laplace noise."""
        return log_laplace_exponential(z, parameters[0], bounds[1], scale)


@dataclass(frozen=True)
class PoissonFamily(CountFamily):
    """Poisson distribution with a rate.

    Parameters
    ----------
    priors : dict
        Prior of ``rate``.

    Examples
    --------
    >>> from skldp.models import GammaPrior, PoissonFamily
    >>> family = PoissonFamily({"rate": GammaPrior(2.0, 1.0)})
    >>> round(float(family.log_density(0, [3.0])), 6)
    -3.0
    """

    priors: dict

    def cdf(self, x, parameters):
        """Distribution function."""
        return np.where(x < 0, 0.0, pdtr(np.floor(np.maximum(x, 0.0)), parameters[0]))

    def log_density(self, x, parameters):
        """Log-probability."""
        count = np.maximum(x, 0.0)
        value = xlogy(count, parameters[0]) - parameters[0] - gammaln(count + 1)
        return np.where(_is_count(x), value, -np.inf)


@dataclass(frozen=True)
class GeometricFamily(CountFamily):
    """Geometric distribution: the number of failures before the first success, with a probability of success.

    Parameters
    ----------
    priors : dict
        Prior of ``probability``.

    Examples
    --------
    >>> from skldp.models import BetaPrior, GeometricFamily
    >>> family = GeometricFamily({"probability": BetaPrior(1.0, 1.0)})
    >>> round(float(family.cdf(1, [0.5])), 6)
    0.75
    """

    priors: dict

    def cdf(self, x, parameters):
        """Distribution function."""
        return np.where(x < 0, 0.0, -np.expm1((np.floor(np.maximum(x, 0.0)) + 1) * np.log1p(-parameters[0])))

    def log_density(self, x, parameters):
        """Log-probability."""
        value = np.log(parameters[0]) + np.maximum(x, 0.0) * np.log1p(-parameters[0])
        return np.where(_is_count(x), value, -np.inf)


@dataclass(frozen=True)
class ScipyFamily(Family):
    """Any distribution of ``scipy.stats``, with fixed values for part of its parameters.

    Parameters
    ----------
    distribution : scipy.stats distribution
        Not frozen, continuous or discrete.
    priors : dict
        Priors of the parameters that are learned, by name.
    fixed : dict, default={}
        Values of the other parameters, by name.

    Examples
    --------
    >>> from scipy import stats
    >>> from skldp.models import GammaPrior, ScipyFamily
    >>> family = ScipyFamily(stats.gamma, {"a": GammaPrior(2.0, 1.0)}, {"loc": 0.0, "scale": 1.0})
    >>> round(float(family.cdf(1.0, [1.0])), 6)
    0.632121
    """

    distribution: Any
    priors: dict
    fixed: dict = field(default_factory=dict)

    @property
    def discrete(self):
        """Whether the distribution is on the integers."""
        return is_discrete(self.distribution)

    @property
    def kind(self):
        """Which likelihood the family needs; the functions of ``scipy.stats`` are costly."""
        return "discrete" if self.discrete else "costly"

    def _arguments(self, parameters):
        return {**self.fixed, **dict(zip(self.priors, parameters))}

    def cdf(self, x, parameters):
        """Distribution function."""
        # scipy returns NaN for invalid parameters; UnivariateModel turns that into a density of zero.
        return self.distribution.cdf(x, **self._arguments(parameters))

    def log_density(self, x, parameters):
        """Log-density or log-probability."""
        log_density = self.distribution.logpmf if self.discrete else self.distribution.logpdf
        return log_density(x, **self._arguments(parameters))


def _is_count(x):
    return (x >= 0) & (x == np.floor(x))


def is_discrete(distribution):
    """Whether a distribution of ``scipy.stats`` is discrete."""
    from scipy.stats import rv_discrete  # late: it takes as long to import as the rest

    return isinstance(distribution, rv_discrete)
