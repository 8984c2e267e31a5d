"""A model as the samplers see it: batched, quiet, and never NaN."""

import warnings
from contextlib import contextmanager

import numpy as np


@contextmanager
def quiet():
    """Keep floating-point complaints of a density from reaching the user.

    A sampler tries impossible parameters on purpose, and rejects them; the
    overflow met on the way is no news.

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
    """A model whose density is a finite number or minus infinity.

    Parameters
    ----------
    model : Model
        Anything with `n_params`, `initial()`, `log_density(theta)` and
        `constrain(theta)`, and optionally `log_density_and_gradient(theta)`
        and `surrogate_gradient(theta)`.

    Attributes
    ----------
    n_params : int
        Number of unconstrained parameters.
    has_gradient : bool
        Whether the model knows the exact gradient of its density.
    has_force : bool
        Whether it knows any gradient, exact or surrogate.
    """

    def __init__(self, model):
        self.model = model
        self.n_params = int(model.n_params)
        self.has_gradient = hasattr(model, "log_density_and_gradient")
        self.has_surrogate = hasattr(model, "surrogate_gradient")
        self.has_force = self.has_gradient or self.has_surrogate
        self._last = np.empty((0, 0)), np.empty(0)

    def initial(self):
        """Starting point of the search for the mode, shape (n_params,)."""
        return np.array(self.model.initial(), dtype=float).reshape(self.n_params)

    def log_density(self, theta):
        """Log-density of each row, with everything non-finite turned into minus infinity."""
        # A trajectory has met the density of its end on the way: with the last gradient.
        known, value = self._last
        return value.copy() if np.array_equal(known, theta) else _only_possible(self.model.log_density(theta))

    def log_density_and_gradient(self, theta):
        """Exact log-density and gradient of each row; numerical where the model has no gradient."""
        if self.has_gradient:
            value, gradient = self.model.log_density_and_gradient(theta)
            return _only_possible(value), np.asarray(gradient, dtype=float)
        return self._central_differences(theta)

    def force(self, theta):
        """Gradient that drives trajectories: the surrogate where there is one."""
        if self.has_surrogate:
            return np.asarray(self.model.surrogate_gradient(theta), dtype=float)
        value, gradient = self.model.log_density_and_gradient(theta)
        self._last = theta.copy(), _only_possible(value)
        return np.asarray(gradient, dtype=float)

    def to_theta(self, walked):
        """Parameters theta of points that chains walk through, shape (n_points, n_params); as a rule the same."""
        return self.model.to_theta(walked) if hasattr(self.model, "to_theta") else walked

    def from_theta(self, theta):
        """Points that chains walk through, of parameters theta."""
        return self.model.from_theta(theta) if hasattr(self.model, "from_theta") else theta

    def constrain(self, theta):
        """Natural parameters of theta (chain, draw, n_params): dict name -> (chain, draw, ...)."""
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
