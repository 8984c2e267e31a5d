"""What private stochastic gradient descent does around its loss: groups, rounds, and the model that results."""

import copy
import math
from abc import ABCMeta, abstractmethod
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_X_y, validate_data

from skldp._validation._door import without_mask
from skldp._validation._parameters import check_epsilon, check_integer, is_auto, sampling_seed, warn_large_delta
from skldp.exceptions import InvalidParameterError
from skldp.privacy._spending import Counted, one_call
from skldp.protocols._gradient_protocol import GradientProtocol
from skldp.protocols._gradient_server import GradientServer

GROUP_CONSTANT = 20.0  # c of the automatic group size; benchmarks/table_sgd.py
SMALLEST_GROUP = 100  # of the automatic group size
FEWEST_ROUNDS = 8  # that the automatic group size leaves, where there are users enough


class BaseLDPSGD(Counted, BaseEstimator, metaclass=ABCMeta):
    """What classifier and regressor share: they differ in the loss alone."""

    @abstractmethod
    def protocol(self, n_features: int = 1) -> GradientProtocol:
        """Return the public description of what a client does.

        Parameters
        ----------
        n_features : int, default=1
            Number of columns of the records.

        Returns
        -------
        GradientProtocol
        """

    @abstractmethod
    def _read(self, X, y, classes, reset):
        """Check raw records; return X, y and the protocol that they are collected under."""

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
        """Take over the model that a deployed server has learned.

        Parameters
        ----------
        server : GradientServer
            A server of this estimator's protocol, at any point of its life. It is copied.

        Returns
        -------
        self
        """
        expected = self.protocol(server.protocol.n_features)
        if server.protocol != expected:
            raise InvalidParameterError(
                "This server runs another protocol than this estimator's parameters describe. "
                "Make it with the estimator's server()."
            )
        return self._adopt(copy.deepcopy(server))

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Simulate the whole collection from raw records: groups in turn, each client once.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records. They are used by the simulated clients alone.
        y : array-like of shape (n_clients,)
            Labels or responses.

        Returns
        -------
        self
        """
        return self._fit(X, y)

    def _fit(self, X, y):
        records, y, protocol = self._read(X, y, None, reset=True)
        warn_large_delta(protocol.delta, len(y))
        groups = self._groups(len(y), protocol)
        server = self._server(protocol, len(groups))
        with one_call():
            for rows in _with_bar(groups, self.progress):
                server.step(protocol._randomize(records[rows], y[rows], self.random_state, server.round()))
        # Nothing is stored before everything is there: an interrupt leaves the estimator as it was.
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
        """A copy of the server so far, which must have run the same protocol."""
        if protocol != self.server_.protocol:
            raise InvalidParameterError(
                "The parameters or classes have changed since the first call, so that the next group would send other "
                "gradients. Call fit to start again."
            )
        return copy.deepcopy(self.server_)

    def _check_X_y(self, X, y, reset, **options):
        """Raw records as arrays; no attribute is set before the fit is done."""
        X, y = without_mask(X), without_mask(y)
        if reset:
            return check_X_y(X, y, dtype=np.float64, estimator=self, **options)
        return validate_data(self, X, y, dtype=np.float64, reset=False, **options)

    def _server(self, protocol, n_rounds):
        return GradientServer(protocol, learning_rate=self.learning_rate, eta0=self.eta0, power_t=self.power_t,
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
        """Rows of each round, in random order; nobody is left out, and no group but a single one is too small."""
        size = self._group_size(protocol, n_clients)
        order = np.random.default_rng(sampling_seed(self.random_state)).permutation(n_clients)
        return np.array_split(order, max(1, n_clients // size))

    def _group_size(self, protocol, n_clients):
        if is_auto(self.group_size):
            # A model that is sent once or twice has hardly been anywhere: some rounds there must be.
            most = max(SMALLEST_GROUP, n_clients // FEWEST_ROUNDS)
            return min(automatic_group_size(protocol.dimension, protocol.epsilon), most)
        if isinstance(self.group_size, str):
            raise InvalidParameterError(f'group_size must be "auto" or a positive integer, got {self.group_size!r}.')
        return check_integer(self.group_size, "group_size", 1)

    def _linear(self, X):
        check_is_fitted(self, "server_")
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return X @ np.ravel(self.coef_) + np.ravel(self.intercept_)[0]

    def __repr__(self, N_CHAR_MAX=700):
        text = super().__repr__(N_CHAR_MAX)
        no_privacy = isinstance(self.epsilon, float) and math.isinf(self.epsilon)
        return f"{text}  # no privacy" if no_privacy else text


def automatic_group_size(n_entries, epsilon):
    r"""Users of a round, :math:`\lceil c\,d\log d/\epsilon^2\rceil` with c = 20, at least 100.

    Parameters
    ----------
    n_entries : int
        Number d of entries of a gradient.
    epsilon : float
        Budget of a client.

    Returns
    -------
    int

    Examples
    --------
    >>> automatic_group_size(8, 1.0), automatic_group_size(8, 0.1), automatic_group_size(1, float("inf"))
    (333, 33272, 100)
    """
    wanted = GROUP_CONSTANT * n_entries * math.log(n_entries) / check_epsilon(epsilon) ** 2
    return max(SMALLEST_GROUP, math.ceil(wanted))


def _with_bar(groups, shown):
    if not shown:
        return groups
    from tqdm import tqdm

    return tqdm(groups, desc="rounds", unit="round", dynamic_ncols=True)
