"""Base class of the regressions from private reports."""

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from skldp._validation._door import without_mask
from skldp.estimators._base import BaseLDPEstimator


class BaseLDPRegression(BaseLDPEstimator):
    """An estimator of a response from a vector of bounded norm."""

    def _check(self, X, y):
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        X = check_array(without_mask(X), dtype=np.float64, estimator=self)
        y, labels = self._check_response(without_mask(y))
        check_consistent_length(X, y)
        return X, y, labels

    def _check_response(self, y):
        """Return responses as an array, and the labels found in them (None for numbers)."""
        y = column_or_1d(y, warn=True)
        return check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self), None
