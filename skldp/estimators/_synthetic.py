"""Synthetic records from a posterior."""

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp._validation._parameters import check_integer, sampling_seed


class Synthetic:
    """An estimator whose posterior is a distribution of whole records."""

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draw synthetic records from the posterior predictive distribution.

        Parameters
        ----------
        n_samples : int, default=1
            Number of records.
        random_state : None, int, Generator or RandomState, default=None
            Seed of the draws.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "posterior_")
        check_integer(n_samples, "n_samples", 1)
        return self._sample(n_samples, np.random.default_rng(sampling_seed(random_state)))

    @abstractmethod
    def _sample(self, n_samples, rng):
        """Draw records."""
