"""Client and server of private gradient descent: a client sends one report, the server steps with their mean."""

import math
from collections.abc import Iterable
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from skldp._validation._door import is_row
from skldp._validation._parameters import check_choice, check_integer, check_positive
from skldp.protocols._base import Protocol
from skldp.protocols._gradient_model import GradientModel
from skldp.protocols._gradient_protocol import GradientProtocol


def _constant(server, number, n_reports):
    return server.eta0


def _invscaling(server, number, n_reports):
    return server.eta0 / math.sqrt(number)


def _optimal(server, number, n_reports):
    if n_reports == 0:
        return 0.0
    second_moment = server.protocol.report_variance / n_reports
    step = server.eta0 / math.sqrt(second_moment * max(server.n_rounds, number))
    return min(1 / server.protocol.smoothness, step)


SCHEDULES = {"constant": _constant, "invscaling": _invscaling, "optimal": _optimal}


class GradientClient:
    """Client of private gradient descent, which answers a model with one report.

    It stores nothing and does not count its answers. **A person answers once**: a second answer spends the budget a
    second time.

    Parameters
    ----------
    protocol : GradientProtocol or str
        The published protocol, or its JSON text.

    Examples
    --------
    >>> from skldp.protocols import GradientClient, GradientProtocol, GradientServer
    >>> protocol = GradientProtocol(epsilon=2.0, n_features=2)
    >>> server, client = GradientServer(protocol), GradientClient(protocol.to_json())
    >>> client.gradient(server.round(), [0.3, -0.2], 1).shape
    (3,)
    """

    def __init__(self, protocol: GradientProtocol | str):
        found = Protocol.from_json(protocol) if isinstance(protocol, str) else protocol
        if not isinstance(found, GradientProtocol):
            raise TypeError(f"GradientClient runs a GradientProtocol; got {type(found).__name__}. "
                            "Pass the protocol of an LDPSGDClassifier or LDPSGDRegressor.")
        self.protocol = found

    def gradient(self, model: GradientModel | str, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Randomise the gradient of the loss of a record at a model, with the operating system's entropy.

        Parameters
        ----------
        model : GradientModel or str
            What the server's ``round()`` returned, or its JSON text.
        x : array-like of shape (n_features,) or (n, n_features)
            The record, or the records of several people. No value raises or warns.
        y : scalar or array-like of shape (n,)
            Label or response of each record.

        Returns
        -------
        ndarray of int, shape (width,) or (n, width)
            The report, or reports.
        """
        if isinstance(model, str):
            model = GradientModel.from_json(model)
        one = not is_row(y)
        reports = self.protocol.privatize(x, y, model=model)
        return reports[0] if one else reports


class GradientServer:
    r"""Server of private gradient descent: it sends a model, collects a group's reports, and steps with their mean.

    Parameters
    ----------
    protocol : GradientProtocol
        The published protocol.
    learning_rate : {"optimal", "constant", "invscaling"}, default="optimal"
        Schedule of the step sizes, see Notes.
    eta0 : float, default=1.0
        Scale of the steps.
    average : bool or int, default=False
        Whether the result is the mean of the models after all rounds; an integer above 1 starts the mean after that
        many reports. The model that is sent to clients is always the current one.
    n_rounds : int or None, default=None
        Planned number T of rounds, on which the steps of "optimal" depend; ``None`` if it is not known.

    Attributes
    ----------
    theta : ndarray of shape (dimension,)
        The current model in scaled coordinates.
    n_rounds_done, n_reports, n_rejected : int
        Numbers of rounds, of valid reports and of rejected reports so far.
    loss_curve : list of float
        Estimated mean loss of the model that was sent in each round, minus that of the first model.

    Notes
    -----
    Round t = 1, 2, ... updates :math:`\theta \leftarrow \theta - \eta_t\hat g_t`, with :math:`\hat g_t` the mean of
    the group's decoded reports and

    - "constant": :math:`\eta_t = \eta_0`;
    - "invscaling": :math:`\eta_t = \eta_0/\sqrt t`;
    - "optimal": :math:`\eta_t = \min(1/L,\ \eta_0/\sqrt{v_t\max(T, t)})` with
      :math:`v_t = (C^2 + m\tau^2)/n_t` for :math:`n_t` reports of m entries, clipped to norm C, with noise variance
      :math:`\tau^2`, and L the largest curvature of a client's loss. This step minimises the bound on the regret of
      stochastic gradients for a solution at distance :math:`\eta_0`. All its terms are public. The noise of all rounds
      adds up to a vector of length about :math:`\eta_0` for any epsilon and group size, so :math:`\eta_0` sets how
      much noise the model may contain.

    A round without valid reports leaves the model unchanged.

    *Loss curve.* The loss is never reported, but its change can be estimated from the gradients at no extra budget: by
    convexity :math:`f(\theta_t) - f(\theta_{t-1}) \le \langle\nabla f(\theta_t), \theta_t - \theta_{t-1}\rangle`, and
    the right-hand side is estimated without bias by the next group's mean, whose noise is independent of both models.
    The curve adds these up. Clipping of the gradients makes it slightly too flat.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.protocols import GradientClient, GradientProtocol, GradientServer
    >>> rng = np.random.default_rng(0)
    >>> protocol = GradientProtocol(epsilon=4.0, mechanism="sphere", fit_intercept=False, n_features=2)
    >>> server, client = GradientServer(protocol, n_rounds=5), GradientClient(protocol)
    >>> for _ in range(5):
    ...     x = rng.uniform(-0.7, 0.7, size=(2000, 2))
    ...     reports = client.gradient(server.round(), x, np.where(x[:, 0] > 0, 1, -1))
    ...     server = server.step(reports)
    >>> coef, intercept = server.result()
    >>> bool(coef[0] > 3 * abs(coef[1])), server.n_reports
    (True, 10000)
    """

    def __init__(self, protocol, *, learning_rate="optimal", eta0=1.0, average=False, n_rounds=None):
        check_choice(learning_rate, "learning_rate", SCHEDULES)
        self.protocol = protocol
        self.learning_rate = learning_rate
        self.eta0 = check_positive(eta0, "eta0")
        self.average = average if isinstance(average, (bool, np.bool_)) else check_integer(average, "average", 0)
        self.n_rounds = 1 if n_rounds is None else check_integer(n_rounds, "n_rounds", 1)
        self.theta = np.zeros(protocol.dimension)
        self.n_rounds_done = self.n_reports = self.n_rejected = 0
        self.loss_curve: list[float] = []
        self._last_move = np.zeros(protocol.dimension)
        self._mean_theta = np.zeros(protocol.dimension)
        self._n_averaged = 0

    def round(self) -> GradientModel:
        """Return the public model for the next group.

        Returns
        -------
        GradientModel
        """
        return GradientModel(self.protocol.id, self.n_rounds_done, tuple(self.theta.tolist()))

    def step(self, reports: ArrayLike | Iterable, on_invalid: str = "raise") -> "GradientServer":
        """Update the model with the mean of a group's reports.

        Parameters
        ----------
        reports : array-like of int, shape (n, width), or a list of reports
            Answers of clients to the last model, without the clients that did not answer.
        on_invalid : {"raise", "drop"}, default="raise"
            Whether a report that no honest client could have sent is an error, or is left out and counted.

        Returns
        -------
        self
        """
        rows = reports if hasattr(reports, "__array__") else list(cast(Iterable, reports))
        aggregate = self.protocol.aggregate(rows, on_invalid)
        n = aggregate.n_reports
        gradient = self.protocol.mean_gradient(aggregate) if n else np.zeros_like(self.theta)
        self.loss_curve.append((self.loss_curve or [0.0])[-1] + float(gradient @ self._last_move))
        self.n_rounds_done += 1
        self.n_reports += n
        self.n_rejected += aggregate.n_rejected
        self._last_move = -self.step_size(self.n_rounds_done, n) * gradient
        self.theta = self.theta + self._last_move
        self._update_mean()
        return self

    def step_size(self, number: int, n_reports: int) -> float:
        r"""Step size :math:`\eta_t` of a round.

        Parameters
        ----------
        number : int
            Number t = 1, 2, ... of the round.
        n_reports : int
            Number of valid reports in it.

        Returns
        -------
        float
        """
        return SCHEDULES[self.learning_rate](self, number, n_reports)

    def result(self) -> tuple[np.ndarray, float | np.ndarray]:
        """Return coefficients and intercept on the scale of the records, of the current or the mean model.

        Returns
        -------
        coef : ndarray of shape (n_features,), or (n_classes, n_features) for the softmax
        intercept : float, or ndarray of shape (n_classes,) for the softmax
        """
        return self.protocol.natural(self._mean_theta if self._n_averaged else self.theta)

    def _update_mean(self):
        if self.average and self.n_reports >= self.average:
            self._n_averaged += 1
            self._mean_theta = self._mean_theta + (self.theta - self._mean_theta) / self._n_averaged
