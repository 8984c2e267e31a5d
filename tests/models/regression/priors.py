"""Priors of the regressions from their definitions, in the units of the data, and densities in coordinates."""

from dataclasses import dataclass

import numpy as np
from scipy import linalg, stats


@dataclass(frozen=True)
class Prior:
    """Prior of a regression, without code of the library.

    Parameters
    ----------
    coef_scale : float
        Typical standard deviation of what the line explains, or of a coefficient unless ``explained``.
    intercept : tuple of float
        Mean and standard deviation of the intercept.
    sigma_scale : float or None
        Scale of the residual standard deviation; None if there is none.
    explained : bool
        Whether coefficients have a t distribution with a scale that depends on the covariance.
    covariance_scale, mean_scale : float or None
        Scales of the standard deviations and of the means of x; None if they are learned.
    eta : float
        Parameter of LKJ.
    norm : float
        Bound R on the norm of x.
    spread, common : float
        Typical deviation of the logarithms of the scales of x, and standard deviation of the common one.
    """

    coef_scale: float
    intercept: tuple = (0.0, 1.0)
    sigma_scale: float | None = None
    explained: bool = True
    covariance_scale: float | None = None
    mean_scale: float | None = None
    eta: float = 0.5
    norm: float = 1.0
    spread: float = 0.2
    common: float = 0.3

    def precision(self, covariance):
        """Return the matrix K."""
        identity = np.eye(len(covariance))
        return len(identity) * covariance + 0.01 * self.norm**2 * identity if self.explained else identity

    def logpdf(self, params, log_scale, log_mean_scale, log_spread):
        """Log-density of (coef, log scales of x, correlations, mean, intercept, sigma, log s, log s_m, log spread).

        Several responses have independent coefficients, intercepts and sigmas, and residual correlations that are
        uniform, which add nothing.
        """
        covariance = params["covariance"]
        scales, d = np.sqrt(np.diag(covariance)), len(covariance)
        value = (self.eta - 1) * np.linalg.slogdet(covariance / np.outer(scales, scales))[1]
        value += self.log_scales(np.log(scales), log_spread)
        for one, coef in zip(log_scale, np.atleast_2d(params["coef"])):
            width = (self.coef_scale * np.exp(one)) ** 2
            normal = stats.multivariate_normal(np.zeros(d), width * np.linalg.inv(self.precision(covariance)))
            value += normal.logpdf(coef) + (log_density_of_log_scale(one) if self.explained else 0.0)
        if self.sigma_scale is not None:
            value += stats.halfnorm(scale=self.sigma_scale).logpdf(params["sigma"]).sum()
        if "intercept" in params:
            value += stats.norm(*self.intercept).logpdf(params["intercept"]).sum()
            value += stats.norm(0, np.exp(log_mean_scale)).logpdf(params["x_mean"]).sum()
            if self.mean_scale is None:
                value += stats.norm(np.log(0.05 * self.norm), np.log(10) / 2).logpdf(log_mean_scale)
        return value

    def log_scales(self, logs, log_spread):
        """Log-density of logarithms of the scales of x and of their spread."""
        d = len(logs)
        if self.covariance_scale is not None:
            return (stats.halfnorm(scale=self.covariance_scale).logpdf(np.exp(logs)) + logs).sum()
        value = stats.norm(np.log(self.norm / 2 / np.sqrt(d)), self.common).logpdf(logs.mean())
        if d > 1:
            deviations = linalg.helmert(d) @ logs  # orthonormal contrasts
            value += stats.norm(0, self.spread * np.exp(log_spread)).logpdf(deviations).sum()
            value += log_density_of_log_scale(log_spread)
        return value

    def learned(self, params):
        """Return whether log s, log s_m and the logarithm of the spread are learned."""
        return [self.explained, "x_mean" in params and self.mean_scale is None,
                self.covariance_scale is None and params["coef"].shape[-1] > 1]

    def log_scales_of(self, params, theta):
        """Return log s, log s_m and the logarithm of the spread, which are coordinates if they are learned."""
        k, d = _n_responses(params), params["coef"].shape[-1]
        n = theta.shape[1]
        if "residual_correlation" in params:
            n -= k * (k - 1) // 2  # they are last
        scale, mean_scale, spread = self.learned(params)
        log_scale, log_mean_scale = np.zeros((len(theta), k)), np.full(len(theta), np.log(self.mean_scale or 1.0))
        if scale:
            log_scale = theta[:, n - k - mean_scale:n - mean_scale]
        if mean_scale:
            log_mean_scale = np.log(0.05 * self.norm) + np.log(10) / 2 * theta[:, n - 1]
        return log_scale, log_mean_scale, theta[:, (k + 1) * d] if spread else np.zeros(len(theta))

    def natural(self, model, theta):
        """Log-density of the natural parameters at coordinates of a model."""
        params = model.constrain(theta)
        rows = zip(*self.log_scales_of(params, theta))
        return np.array([self.logpdf({name: values[i] for name, values in params.items()}, *row)
                         for i, row in enumerate(rows)])

    def __call__(self, model, theta):
        """Log-density of the prior in the coordinates of a model, up to a constant."""
        return self.natural(model, theta) + self.log_jacobian(model, theta)

    def log_jacobian(self, model, theta, step=1e-3):
        """Return the logarithm of the Jacobian of the natural parameters, by differences of fourth order."""
        n = theta.shape[1]
        values = [self._flat(model, (theta[:, None] + shift * step * np.eye(n)).reshape(-1, n)).reshape(*theta.shape, n)
                  for shift in (2, 1, -1, -2)]
        jacobian = (8 * (values[1] - values[2]) - (values[0] - values[3])) / (12 * step)
        return np.linalg.slogdet(jacobian)[1]

    def _flat(self, model, theta):
        params = model.constrain(theta)
        covariance, d = params["covariance"], params["coef"].shape[-1]
        logs = 0.5 * np.log(np.diagonal(covariance, axis1=1, axis2=2))
        below = np.tril_indices(d, -1)
        correlations = covariance[:, *below] * np.exp(-logs[:, below[0]] - logs[:, below[1]])
        rest = [params[name].reshape(len(theta), -1) for name in ("x_mean", "intercept", "sigma") if name in params]
        if "residual_correlation" in params:
            rest.append(params["residual_correlation"][:, *np.tril_indices(_n_responses(params), -1)])
        scales = [values for values, learned in zip(self.log_scales_of(params, theta), self.learned(params)) if learned]
        return np.column_stack([params["coef"].reshape(len(theta), -1), logs, correlations, *rest, *scales])


def _n_responses(params):
    return params["coef"].shape[1] if params["coef"].ndim == 3 else 1


def log_density_of_log_scale(log_scale):
    """Log-density of log s, if 1 / s^2 is a chi square variable with three degrees of freedom, divided by three."""
    chi_square = 3 * np.exp(-2 * log_scale)
    return stats.chi2(3).logpdf(chi_square) + np.log(2 * chi_square)


def differences(function, theta, step=1e-5):
    """Return the gradient of a function of coordinates by central differences, shape (n_walkers, n_params)."""
    return np.transpose([(function(theta + step * e) - function(theta - step * e)) / (2 * step)
                         for e in np.eye(theta.shape[1])])
