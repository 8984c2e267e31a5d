"""End of a run, from which a later run can start."""

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class WarmStart:
    """Mode, last positions and draws of an earlier run.

    Parameters
    ----------
    mode : ndarray of shape (n_params,)
        Result of the search for the mode.
    covariance : ndarray or None
        Metric of the walkers; None after a Laplace approximation.
    positions : ndarray of shape (n_walkers, n_params)
        Last positions of the walkers.
    draws : ndarray of shape (n_draws, n_params)
        About two thousand draws.
    coordinates : object or None, default=None
        Coordinates of the model, if they depend on its reports.
    """

    mode: np.ndarray
    covariance: np.ndarray | None
    positions: np.ndarray
    draws: np.ndarray
    coordinates: Any = None

    def in_coordinates_of(self, model):
        """Return this start in the coordinates of another model, or None if the number of parameters differs."""
        if len(self.mode) != model.n_params:
            return None
        if model.coordinates is None:
            return self
        return WarmStart(model.coordinates.convert(self.mode[None], self.coordinates)[0], self.covariance,
                         model.coordinates.convert(self.positions, self.coordinates), self.draws, self.coordinates)
