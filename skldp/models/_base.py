"""Base class of all models: a posterior as a log-density that samplers can evaluate."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np


class Model(ABC):
    r"""Log-density of unconstrained parameters given the reports of one aggregate.

    Every method takes ``theta`` of shape (n_walkers, n_params) and treats its rows independently. Four members are
    required: ``n_params``, ``initial``, ``log_density`` and ``constrain``. The others are optional and ``None`` by
    default, so that callers need no ``hasattr``.

    Attributes
    ----------
    n_params : int
        Number of unconstrained parameters.
    gradient : callable or None
        Maps theta to the log-density, shape (n_walkers,), and its gradient, shape (n_walkers, n_params).
    surrogate : callable or None
        Maps theta to an approximate gradient that is much cheaper than the log-density. Trajectories use it, and the
        accept step evaluates the log-density.
    approximation : Model or None
        Model of the same parameters that has a gradient and is close to this one near the mode. The search for the
        mode uses it.
    coordinates : object or None
        Map from theta to the parameters, if it depends on the reports. Its method ``convert`` returns its coordinates
        of points in other coordinates.
    report_log_likelihoods : callable or None
        Maps a protocol and theta to the log-likelihoods of single reports, shape (n_reports, n_walkers).
    fit_residuals : callable or None
        Maps draws of theta to the sums of the reports compared with what the fitted model expects of them; None if
        the reports cannot tell.
    monitored : callable or None
        Maps draws by name, each of shape (chain, draw, ...), to those on which the stop rule of samplers depends, in
        place of all of them.
    independent : callable or None
        Maps standard normal theta to natural parameters, as ``constrain`` does, if they are so many that chains would
        take too long. Samplers then draw from this approximation of the posterior.
    influence : callable or None
        Maps natural draws by name to the largest change of each posterior mean by one report, to first order, if the
        model has ``independent``.
    few_draws : bool
        Whether each draw of ``independent`` is expensive.
    nearly_standard_normal : bool
        Whether parameters are nearly standard normal given the reports, around ``initial()``. Samplers then start from
        that distribution and do not search for the mode. Needs a gradient.
    nearly_independent : bool
        Whether such parameters are so many that matrices of them are expensive. Samplers then use variances in place of
        covariances.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models import Model
    >>> class LogNormal(Model):
    ...     n_params = 1
    ...     def initial(self):
    ...         return np.zeros(1)
    ...     def log_density(self, theta):
    ...         return -0.5 * theta[:, 0] ** 2
    ...     def constrain(self, theta):
    ...         return {"scale": np.exp(theta[:, 0])}
    >>> LogNormal().gradient is None
    True
    """

    n_params: int
    gradient: Any = None
    surrogate: Any = None
    approximation: Any = None
    coordinates: Any = None
    report_log_likelihoods: Any = None
    fit_residuals: Any = None
    monitored: Any = None
    independent: Any = None
    influence: Any = None
    few_draws: bool = False
    nearly_standard_normal: bool = False
    nearly_independent: bool = False

    @abstractmethod
    def initial(self) -> np.ndarray:
        """Return a point of finite log-density, shape (n_params,), from which the search for the mode starts."""

    @abstractmethod
    def log_density(self, theta: np.ndarray) -> np.ndarray:
        """Return the log-density up to a constant, shape (n_walkers,): -inf where impossible, never NaN.

        Priors and the Jacobian of ``constrain`` are included.
        """

    @abstractmethod
    def constrain(self, theta: np.ndarray) -> dict[str, np.ndarray]:
        """Return the natural parameters by name, each of shape (n_walkers, ...), in the units of the data."""

    def in_coordinates_of(self, other: "Model") -> "Model":
        """Return the same model in the coordinates of another one: itself if coordinates never depend on reports."""
        return self
