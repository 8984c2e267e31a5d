"""Base class of private stochastic gradient descent: groups, rounds and the fitted model."""

import copy
import math
from abc import ABCMeta, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from skldp._validation._door import without_mask
from skldp._validation._parameters import (
    check_epsilon,
    check_integer,
    is_auto,
    refuse_unknown,
    sampling_seed,
    warn_large_delta,
)
from skldp.exceptions import InvalidParameterError
from skldp.privacy._display import ShowsBudget
from skldp.privacy._spending import Counted, one_call
from skldp.protocols._gradient_protocol import GradientProtocol
from skldp.protocols._gradient_server import GradientServer

GROUP_CONSTANT = 20.0  # c of the automatic group size; see benchmarks/table_sgd.py
MIN_GROUP_SIZE = 100  # of the automatic group size
MIN_ROUNDS = 8  # with the automatic group size, if there are at least MIN_ROUNDS * MIN_GROUP_SIZE users


class BaseLDPSGD(ShowsBudget, Counted, BaseEstimator, metaclass=ABCMeta):
    """Base class of the classifier and the regressor, which differ only in the loss."""

    @abstractmethod
    def _protocol(self, n_features, classes=None):
        """Return the protocol for a number of columns, and for labels where the estimator has none."""

    @abstractmethod
    def _read(self, X, y, classes, reset):
        """Check raw records; return X, y and the protocol of the collection."""

    def protocol(self, n_features: int = 1) -> GradientProtocol:
        """Return the public description of what a client does.

        Parameters
        ----------
        n_features : int, default=1
            Number of columns of the records.

        Returns
        -------
        GradientProtocol
            It needs the ``classes`` of a classifier.
        """
        return self._protocol(n_features)

    def server(self, n_features: int = 1, n_rounds: int | None = None) -> GradientServer:
        """Return the aggregator's side of the collection, before its first round.

        Parameters
        ----------
        n_features : int, default=1
            Number of columns of the records.
        n_rounds : int or None, default=None
            Planned number of rounds, for ``learning_rate="optimal"``.

        Returns
        -------
        GradientServer
        """
        return self._server(self.protocol(n_features), n_rounds)

    def adopt(self, server: GradientServer) -> Self:
        """Copy the model of a deployed server into this estimator.

        Parameters
        ----------
        server : GradientServer
            A server of this estimator's protocol, after any number of rounds. It is copied.

        Returns
        -------
        self
        """
        expected = self.protocol(server.protocol.n_features)
        if server.protocol != expected:
            raise InvalidParameterError(
                "This server runs another protocol than the one given by the estimator's parameters. "
                "Create it with the estimator's server()."
            )
        return self._adopt(copy.deepcopy(server))

    def fit(self, X: ArrayLike, y: ArrayLike, **unknown: Any) -> Self:
        """Simulate the whole collection from raw records: one group in each round, each client once.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records. Only the simulated clients use them.
        y : array-like of shape (n_clients,)
            Labels or responses.
        **unknown
            Refused. There are no weights: the aggregator cannot know the weight of the record behind a report.

        Returns
        -------
        self
        """
        refuse_unknown(self, unknown)
        return self._fit(X, y)

    def _fit(self, X, y):
        records, y, protocol = self._read(X, y, None, reset=True)
        warn_large_delta(protocol.delta, len(y))
        groups = self._groups(len(y), protocol)
        server = self._server(protocol, len(groups))
        with one_call():
            for rows in _with_progress_bar(groups, self.progress):
                server.step(protocol._randomize(records[rows], y[rows], self.random_state, server.round()))
        # Attributes are set only after all rounds, so that an interrupt leaves the estimator unchanged.
        validate_data(self, X, skip_check_array=True)
        return self._adopt(server)

    def _partial_fit(self, X, y, classes=None):
        reset = not hasattr(self, "server_")
        records, y, protocol = self._read(X, y, classes, reset)
        warn_large_delta(protocol.delta, len(y))
        server = self._server(protocol, None) if reset else self._continued(protocol)
        server.step(protocol._randomize(records, y, self.random_state, server.round()))
        validate_data(self, X, skip_check_array=True, reset=reset)
        return self._adopt(server)

    def _continued(self, protocol):
        """Return a copy of the current server, which must have run the same protocol."""
        if protocol != self.server_.protocol:
            raise InvalidParameterError(
                "The parameters or classes have changed since the first call, so the next group would send other "
                "gradients. Call fit to start again."
            )
        return copy.deepcopy(self.server_)

    def _check_X_y(self, X, y, reset, **options):
        """Return raw records as checked arrays, without setting attributes of the estimator."""
        X, y = without_mask(X), without_mask(y)
        if reset:
            return check_X_y(X, y, dtype=np.float64, estimator=self, **options)
        return validate_data(self, X, y, dtype=np.float64, reset=False, **options)

    def _server(self, protocol, n_rounds):
        return GradientServer(protocol, learning_rate=self.learning_rate, eta0=self.eta0,
                              average=self.average, n_rounds=n_rounds)

    def _adopt(self, server):
        self.server_ = server
        self.protocol_ = server.protocol
        self.coef_, self.intercept_ = server.result()
        self.epsilon_, self.delta_ = server.protocol.epsilon, server.protocol.delta
        self.n_rounds_, self.n_messages_, self.n_rejected_ = server.n_rounds_done, server.n_reports, server.n_rejected
        self.loss_curve_ = np.array(server.loss_curve)
        self.n_features_in_ = server.protocol.n_features
        return self

    def _groups(self, n_clients, protocol):
        """Return the rows of each round, in random order; all are used, and only a single group may be too small."""
        size = self._group_size(protocol, n_clients)
        order = np.random.default_rng(sampling_seed(self.random_state)).permutation(n_clients)
        return np.array_split(order, max(1, n_clients // size))

    def _group_size(self, protocol, n_clients):
        if is_auto(self.group_size):
            # One or two steps are too few for the model to converge, so the number of rounds has a minimum.
            largest = max(MIN_GROUP_SIZE, n_clients // MIN_ROUNDS)
            return min(automatic_group_size(protocol.dimension, protocol.epsilon), largest)
        if isinstance(self.group_size, str):
            raise InvalidParameterError(f'group_size must be "auto" or a positive integer, got {self.group_size!r}.')
        return check_integer(self.group_size, "group_size", 1)

    def _linear(self, X):
        check_is_fitted(self, "server_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        coef, intercept = self.server_.result()
        return X @ coef.T + intercept


def automatic_group_size(n_entries, epsilon):
    r"""Number of users of a round, :math:`\lceil c\,d\log d/\epsilon^2\rceil` with c = 20 and d entries, at least 100.

    Examples
    --------
    >>> automatic_group_size(8, 1.0), automatic_group_size(8, 0.1), automatic_group_size(1, float("inf"))
    (333, 33272, 100)
    """
    size = GROUP_CONSTANT * n_entries * math.log(n_entries) / check_epsilon(epsilon) ** 2
    return max(MIN_GROUP_SIZE, math.ceil(size))


def _with_progress_bar(groups, shown):
    if not shown:
        return groups
    from tqdm.auto import tqdm  # a widget in a notebook, else text

    return tqdm(groups, desc="rounds", unit="round", dynamic_ncols=True)
