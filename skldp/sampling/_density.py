"""A wrapper of models for the samplers: no floating-point warnings, and no NaN."""

import warnings
from contextlib import contextmanager

import numpy as np

_BLOCK = 200_000  # entries of theta


@contextmanager
def quiet():
    """Suppress floating-point warnings of a density.

    A sampler also proposes parameters of zero density, and rejects them. Overflow is expected there.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._density import quiet
    >>> with quiet():
    ...     np.log(np.zeros(1))
    array([-inf])
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


class GuardedModel:
    """Wrapper of a model whose log-density is finite or minus infinity, never NaN.

    The gradient of trajectories is the surrogate of the model, or else its exact gradient.
    """

    def __init__(self, model):
        self.model = model
        self.n_params = int(model.n_params)
        self.has_gradient = model.gradient is not None
        self.has_surrogate = model.surrogate is not None
        self.nearly_standard_normal = model.nearly_standard_normal
        self.nearly_independent = model.nearly_independent
        self.has_trajectory_gradient = self.has_gradient or self.has_surrogate
        self._last = np.empty((0, 0)), np.empty(0)

    def approximation(self):
        """Return the model whose mode is searched: the approximation if there is one, else this model."""
        return self if self.model.approximation is None else GuardedModel(self.model.approximation)

    def initial(self):
        """Return the start of the search for the mode, shape (n_params,)."""
        return np.array(self.model.initial(), dtype=float).reshape(self.n_params)

    def log_density(self, theta):
        """Return the log-density of each row, with non-finite values replaced by minus infinity."""
        # The last gradient call already computed this value.
        last_theta, value = self._last
        known = np.array_equal(last_theta, theta)
        return value.copy() if known else np.concatenate(
            [_finite_or_minus_inf(self.model.log_density(block)) for block in _blocks(theta)])

    def gradient(self, theta):
        """Return the log-density and gradient of each row, by central differences if the model has no gradient."""
        if self.has_gradient:
            value, gradient = self.model.gradient(theta)
            return _finite_or_minus_inf(value), np.asarray(gradient, dtype=float)
        return self._central_differences(theta)

    def trajectory_gradient(self, theta):
        """Return the gradient for trajectories: the surrogate if there is one, else the exact gradient."""
        if self.has_surrogate:
            return np.asarray(self.model.surrogate(theta), dtype=float)
        value, gradient = self.model.gradient(theta)
        self._last = theta.copy(), _finite_or_minus_inf(value)
        return np.asarray(gradient, dtype=float)

    def constrain(self, theta):
        """Return the natural parameters of theta, shape (chain, draw, n_params): dict name -> (chain, draw, ...)."""
        chains_and_draws = theta.shape[:2]
        blocks = [self.model.constrain(block) for block in _blocks(theta.reshape(-1, self.n_params))]
        return {name: _unflatten(np.concatenate([block[name] for block in blocks]), chains_and_draws)
                for name in blocks[0]}

    def monitored(self, draws):
        """Return what the stop rule depends on: all draws, unless the model says otherwise."""
        return draws if self.model.monitored is None else self.model.monitored(draws)

    def _central_differences(self, theta):
        n_points, n_params = theta.shape
        step = 6e-6 * np.maximum(1.0, np.abs(theta))
        shift = step[:, None, :] * np.eye(n_params)
        grid = np.concatenate([theta[:, None], theta[:, None] + shift, theta[:, None] - shift], axis=1)
        values = self.log_density(grid.reshape(-1, n_params)).reshape(n_points, -1)
        gradient = (values[:, 1:n_params + 1] - values[:, n_params + 1:]) / (2 * step)
        return values[:, 0], gradient


def _blocks(theta):
    """Return blocks of rows whose intermediate results stay small: in the cache, and in memory."""
    n_rows = max(1, _BLOCK // theta.shape[1])
    return [theta[start:start + n_rows] for start in range(0, max(len(theta), 1), n_rows)]


def _finite_or_minus_inf(values):
    values = np.asarray(values, dtype=float)
    return np.where(np.isfinite(values), values, -np.inf)


def _unflatten(values, leading):
    values = np.asarray(values, dtype=float)
    return values.reshape(leading + values.shape[1:])
