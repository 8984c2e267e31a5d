"""End of a run, from which a later run can start."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class WarmStart:
    """Mode, last positions and draws of an earlier run, in the plain coordinates of its model.

    Parameters
    ----------
    mode : ndarray of shape (n_params,)
        Result of the search for the mode.
    covariance : ndarray or None
        Metric of the walkers, in the coordinates in which they moved; None after a Laplace approximation.
    positions : ndarray of shape (n_walkers, n_params)
        Last positions of the walkers.
    draws : ndarray of shape (n_draws, n_params)
        About two thousand draws.
    """

    mode: np.ndarray
    covariance: np.ndarray | None
    positions: np.ndarray
    draws: np.ndarray

    def in_coordinates_of(self, model, n_plain):
        """Return this start in the coordinates of another model, or None if the number of parameters differs.

        Parameters
        ----------
        model : GuardedModel
            The model to sample.
        n_plain : int
            Number of its plain coordinates.
        """
        if len(self.mode) != n_plain:
            return None
        # Under another prior, the walkers may have moved in other coordinates, for which their metric is wrong.
        usable = self.covariance is not None and len(self.covariance) == model.n_params
        return WarmStart(model.from_plain(self.mode[None])[0], self.covariance if usable else None,
                         model.from_plain(self.positions), self.draws)
