"""What regressions from private reports share: records with a response, streamed through the client's half."""

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from skldp._validation._door import without_mask
from skldp._validation._limits import MAX_FEATURES
from skldp._validation._parameters import check_positive
from skldp.estimators._base import BaseLDPEstimator
from skldp.exceptions import InvalidParameterError


class BaseLDPRegression(BaseLDPEstimator):
    """An estimator of a response from a vector of bounded norm."""

    def fit(self, X: ArrayLike, y: ArrayLike, *,  # type: ignore[override]
            sample_epsilon: ArrayLike | None = None) -> Self:
        """Simulate a collection from raw records and infer from its reports.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records. They are used by the simulated clients alone, and in pieces: memory does not grow with the
            number of reports.
        y : array-like of shape (n_clients,)
            Responses.
        sample_epsilon : array-like of shape (n_clients,), default=None
            Personal budgets, public, in place of ``epsilon``; at most 32 distinct values.

        Returns
        -------
        self
        """
        records, response = self._check_labelled(X, y)
        protocol = self._protocol_for_records(records, response)
        self.fit_reports(self._simulate(protocol, records, response, sample_epsilon))
        validate_data(self, X, skip_check_array=True)
        return self

    def privatize(self, X: ArrayLike, y: ArrayLike) -> np.ndarray:  # type: ignore[override]
        """Simulate the collection: each record is randomised once, as its client would do it.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records.
        y : array-like of shape (n_clients,)
            Responses.

        Returns
        -------
        ndarray of int, shape (n_clients, n_report)
            Reports, as they would travel.
        """
        X, y = self._check_labelled(X, y)
        return self._protocol_for_records(X, y)._randomize(X, y, self.random_state)

    def _simulate_cohort(self, protocol, X, y):
        pieces = protocol._draw(*protocol._plain(X, y), self.random_state)
        return sum(protocol.aggregate(piece) for piece in pieces)

    def _protocol_for_records(self, X, y):
        return self.protocol(X.shape[1])

    def _check_labelled(self, X, y):
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        X = check_array(without_mask(X), dtype=np.float64, estimator=self)
        y = self._check_response(without_mask(y))
        check_consistent_length(X, y)
        return X, y

    def _check_response(self, y):
        y = column_or_1d(y, warn=True)
        return check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self)

    def _mechanism(self, default):
        """The mechanism that "auto" means, after a check against the collection."""
        if self.collect not in ("statistics", "inputs"):
            raise InvalidParameterError(f'collect must be "statistics" or "inputs", got {self.collect!r}.')
        if isinstance(self.mechanism, str) and self.mechanism == "auto":
            return default
        if self.mechanism not in ("sphere", "gaussian"):
            raise InvalidParameterError(f'mechanism must be "auto", "sphere" or "gaussian", got {self.mechanism!r}.')
        if self.collect == "inputs" and self.mechanism == "sphere":
            raise InvalidParameterError(
                'collect="inputs" sends noisy records, which the model needs to have Gaussian noise. '
                'Use mechanism="gaussian" (or "auto"), or collect="statistics".'
            )
        return self.mechanism

    def _protocol_of_reports(self, reports):
        if hasattr(self, "protocol_"):
            candidate = self.protocol(self.protocol_.n_features)
            if candidate.width == reports.shape[1]:
                return candidate
        return self.protocol(features_of(self.protocol, reports.shape[1]))


def check_scale(value, name, words=("auto",)):
    """Return one of the words or a positive float."""
    return value if isinstance(value, str) and value in words else check_positive(value, name)


def weight_or(value, name, default):
    """Return a weight of the moment report, or its default for "auto"."""
    return default if check_scale(value, name) == "auto" else value


def features_of(protocol, width):
    """Number of features whose reports have this width: the width grows with it."""
    n_features = max(1, math.isqrt(2 * max(width - 1, 0)) - 3)  # no report is wider than (d + 2)(d + 3) / 2 + 1
    while n_features < min(width, MAX_FEATURES) and protocol(n_features).width < width:
        n_features += 1
    return n_features
