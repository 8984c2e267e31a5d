"""A model as the samplers see it: batched, quiet, and never NaN."""

import warnings
from contextlib import contextmanager

import numpy as np


@contextmanager
def quiet():
    """Suppress floating-point warnings of a density.

    A sampler tries impossible parameters on purpose, and rejects them; that their density overflows is expected.

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
    """A model as the samplers see it: its density is a finite number or minus infinity.

    Parameters
    ----------
    model : Model
        What is sampled.

    Attributes
    ----------
    n_params : int
        Number of unconstrained parameters.
    has_gradient : bool
        Whether the model knows the exact gradient of its density.
    has_surrogate : bool
        Whether it knows a cheaper approximate gradient.
    has_force : bool
        Whether it knows any of the two.
    """

    def __init__(self, model):
        self.model = model
        self.n_params = int(model.n_params)
        self.has_gradient = model.gradient is not None
        self.has_surrogate = model.surrogate is not None
        self.has_force = self.has_gradient or self.has_surrogate
        self._last = np.empty((0, 0)), np.empty(0)

    def approximation(self):
        """Return the model in which the mode is searched: this one, unless it names another."""
        return self if self.model.approximation is None else GuardedModel(self.model.approximation)

    def initial(self):
        """Return the start of the search for the mode, shape (n_params,)."""
        return np.array(self.model.initial(), dtype=float).reshape(self.n_params)

    def log_density(self, theta):
        """Return the log-density of each row, with everything non-finite turned into minus infinity."""
        # The last gradient call already computed this value.
        known, value = self._last
        return value.copy() if np.array_equal(known, theta) else _only_possible(self.model.log_density(theta))

    def gradient(self, theta):
        """Return the exact log-density and gradient of each row; numerical where the model has no gradient."""
        if self.has_gradient:
            value, gradient = self.model.gradient(theta)
            return _only_possible(value), np.asarray(gradient, dtype=float)
        return self._central_differences(theta)

    def force(self, theta):
        """Return the gradient that drives trajectories: the surrogate where there is one."""
        if self.has_surrogate:
            return np.asarray(self.model.surrogate(theta), dtype=float)
        value, gradient = self.model.gradient(theta)
        self._last = theta.copy(), _only_possible(value)
        return np.asarray(gradient, dtype=float)

    def to_plain(self, theta):
        """Return the plain coordinates of points, shape (n_points, n_params)."""
        return theta if self.model.coordinates is None else self.model.coordinates.to_plain(theta)

    def from_plain(self, theta):
        """Return the coordinates of this model for points in plain ones."""
        return theta if self.model.coordinates is None else self.model.coordinates.from_plain(theta)

    def constrain(self, theta):
        """Return the natural parameters of theta (chain, draw, n_params): dict name -> (chain, draw, ...)."""
        chains_and_draws = theta.shape[:2]
        natural = self.model.constrain(theta.reshape(-1, self.n_params))
        return {name: _unflatten(values, chains_and_draws) for name, values in natural.items()}

    def _central_differences(self, theta):
        n_points, n_params = theta.shape
        step = 6e-6 * np.maximum(1.0, np.abs(theta))
        shift = step[:, None, :] * np.eye(n_params)
        grid = np.concatenate([theta[:, None], theta[:, None] + shift, theta[:, None] - shift], axis=1)
        values = self.log_density(grid.reshape(-1, n_params)).reshape(n_points, -1)
        gradient = (values[:, 1:n_params + 1] - values[:, n_params + 1:]) / (2 * step)
        return values[:, 0], gradient


def _only_possible(values):
    values = np.asarray(values, dtype=float)
    return np.where(np.isfinite(values), values, -np.inf)


def _unflatten(values, leading):
    values = np.asarray(values, dtype=float)
    return values.reshape(leading + values.shape[1:])
