"""Models with known posteriors."""

import numpy as np
from scipy import stats

from skldp.models import Model


class Gaussian(Model):
    """A correlated Gaussian, without a gradient."""

    def __init__(self, n_params, seed=0, scale=1.0):
        rng = np.random.default_rng(seed)
        root = rng.standard_normal((n_params, n_params))
        self.n_params = n_params
        self.mean = rng.standard_normal(n_params)
        self.covariance = scale**2 * (root @ root.T / n_params + 0.1 * np.eye(n_params))
        self.precision = np.linalg.inv(self.covariance)
        self.sd = np.sqrt(np.diag(self.covariance))
        self.n_calls = 0

    def initial(self):
        return np.zeros(self.n_params)

    def log_density(self, theta):
        self.n_calls += 1
        return self._density_and_gradient(theta)[0]

    def constrain(self, theta):
        return {"x": theta}

    def _density_and_gradient(self, theta):
        centered = theta - self.mean
        gradient = -centered @ self.precision
        return 0.5 * np.sum(gradient * centered, axis=1), gradient


class SmoothGaussian(Gaussian):
    """A correlated Gaussian with its gradient."""

    def gradient(self, theta):
        return self._density_and_gradient(theta)


class SurrogateGaussian(SmoothGaussian):
    """A correlated Gaussian whose surrogate gradient is 30 % too small."""

    def surrogate(self, theta):
        return 0.7 * self._density_and_gradient(theta)[1]


class Banana(Model):
    """x0 ~ N(0, 1), x1 | x0 ~ N(x0^2 / 2, 0.5^2)."""

    n_params = 2

    def initial(self):
        return np.array([1.0, 1.0])

    def log_density(self, theta):
        return -0.5 * theta[:, 0] ** 2 - 2 * (theta[:, 1] - 0.5 * theta[:, 0] ** 2) ** 2

    def constrain(self, theta):
        return {"x": theta[:, 0], "residual": theta[:, 1] - 0.5 * theta[:, 0] ** 2, "height": theta[:, 1]}


class SmoothBanana(Banana):
    def gradient(self, theta):
        residual = theta[:, 1] - 0.5 * theta[:, 0] ** 2
        gradient = np.stack([-theta[:, 0] + 4 * residual * theta[:, 0], -4 * residual], axis=1)
        return self.log_density(theta), gradient


class Student(Model):
    """A multivariate t with few degrees of freedom."""

    nu = 3

    def __init__(self, n_params):
        self.n_params = n_params

    def initial(self):
        return np.ones(self.n_params)

    def log_density(self, theta):
        return -0.5 * (self.nu + self.n_params) * np.log1p(np.sum(theta**2, axis=1) / self.nu)

    def constrain(self, theta):
        # Uniform if the draws are correct, so that all moments exist.
        return {"probability": stats.t.cdf(theta, self.nu)}


class SmoothStudent(Student):
    def gradient(self, theta):
        norm = self.nu + np.sum(theta**2, axis=1, keepdims=True)
        return self.log_density(theta), -(self.nu + self.n_params) * theta / norm


class Gamma(Model):
    """Log of a Gamma(4, 1) variable, with overflow, NaN and +inf at invalid points."""

    n_params = 1

    def initial(self):
        return np.zeros(1)

    def log_density(self, theta):
        t = theta[:, 0]
        value = 4 * t - np.exp(t)
        value = np.where(t > 3.5, np.nan, value)
        return np.where(t < -3, np.inf, value)

    def constrain(self, theta):
        return {"rate": np.exp(theta[:, 0])}


def worst_z(values, expected):
    """Largest error of a mean over columns, in Monte Carlo standard errors."""
    from arviz_stats.base import array_stats

    columns = values.reshape(values.shape[:2] + (-1,))
    ess = array_stats.ess(columns, chain_axis=0, draw_axis=1, method="mean")
    error = columns.std(axis=(0, 1)) / np.sqrt(ess)
    return np.max(np.abs(columns.mean(axis=(0, 1)) - np.ravel(expected)) / error)


def worst_moment_z(values, mean, sd):
    """Largest error of means and variances over columns, in Monte Carlo standard errors."""
    return max(worst_z(values, mean), worst_z((values - mean) ** 2, np.square(sd)))


def worst_rhat(posterior):
    return max(np.max(values) for values in posterior.rhat.values())
