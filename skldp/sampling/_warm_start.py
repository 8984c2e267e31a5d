"""End of a run, from which a later run can start."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class WarmStart:
    """Normal approximation and draws of an earlier run.

    Parameters
    ----------
    mode : ndarray of shape (n_params,)
        Its centre.
    covariance : ndarray or None
        Its covariance; None after a Laplace approximation, whose mode was found for other reports.
    draws : ndarray of shape (n_draws, n_params)
        About two thousand draws.
    coordinates : object or None, default=None
        Coordinates of the model, if they depend on its reports.
    """

    mode: np.ndarray
    covariance: np.ndarray | None
    draws: np.ndarray
    coordinates: Any = None

    def in_coordinates_of(self, model):
        """Return this start in the coordinates of another model, or None if the number of parameters differs."""
        if len(self.mode) != model.n_params:
            return None
        if model.coordinates is None:
            return self
        return replace(self, mode=model.coordinates.convert(self.mode[None], self.coordinates)[0])
