"""Collection of a regression in rounds: the server, and the model that it publishes for each round."""

import json
from dataclasses import replace
from typing import Any, Self

import numpy as np

from skldp._validation._parameters import check_integer
from skldp.estimators._mechanisms import vector_mechanism
from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.models.regression._round_reports import Frame
from skldp.models.regression._rounds import RoundModel
from skldp.protocols._aggregate import Aggregate
from skldp.protocols._description import VERSION, check_format, parse
from skldp.protocols._round_protocol import RoundProtocol, ScoreProtocol
from skldp.protocols._schema import Schema
from skldp.sampling._inference import LaplaceApproximation

FORMAT = "skldp-rounds"
DEFAULT_ROUNDS = 3
FEW_CLIENTS = 1000  # below this number a collection has one round by default
MOST_ROUNDS = 16
_TYPICAL_SQUARE = 0.5  # mean squared length of x in the coordinates of a later round; longer records get less weight
_SHARE_OF_ERROR = 0.3  # of a standard error, added to eigenvalues before records are whitened by them
_WHAT = "a file of rounds"


class RoundServer:
    """Server of a regression that collects in rounds: it publishes a protocol for each round and collects its reports.

    Each person takes part in one round. :meth:`round` is what the clients of the current round run, :meth:`add` takes
    their reports in any number of batches, :meth:`close` ends the round, and :meth:`result` fits the estimator. The
    protocol of a round is a function of the reports before it, so a server that is saved with :meth:`to_json` goes on
    after a crash as if nothing had happened.

    Parameters
    ----------
    estimator : LDPBayesLogisticRegression or LDPBayesPoissonRegression
        Its parameters describe the collection; a logistic regression needs ``classes``.
    n_features : int
        Number of columns of a record.
    schema : Schema or None, default=None
        Public raw columns that clients map to these, as ``PublicColumns.protocol(estimator).columns`` has them.

    Attributes
    ----------
    rounds : list of (Protocol, Aggregate)
        The closed rounds.
    n_rounds : int
        Number of rounds in all.

    See Also
    --------
    skldp.protocols.Client : The other side, which also counts what a person has spent.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPBayesLogisticRegression, RoundServer
    >>> from skldp.protocols import Client
    >>> model = LDPBayesLogisticRegression(epsilon=4.0, classes=["no", "yes"], inference="laplace", random_state=0)
    >>> server, rng = RoundServer(model, n_features=2), np.random.default_rng(0)
    >>> while not server.done:
    ...     published = server.round().to_json()  # to the clients of this round
    ...     for _ in range(50):
    ...         x = rng.uniform(-0.7, 0.7, size=2)
    ...         server = server.add(Client(published).report((*x, "yes" if x[0] > 0 else "no")))
    ...     server = RoundServer.from_json(model, server.close().to_json())  # as after a crash
    >>> server.result().coef_.shape, model.n_reports_
    ((1, 2), 150)
    """

    def __init__(self, estimator: Any, n_features: int, schema: Schema | None = None):
        self.estimator = estimator
        self.n_rounds = estimator._number_of_rounds()
        self.rounds: list = []
        self._first = estimator.protocol(check_integer(n_features, "n_features", 1)).with_schema(schema)
        self._current: Any = None
        self._open: Any = 0

    @property
    def done(self) -> bool:
        """Whether all rounds are closed."""
        return len(self.rounds) == self.n_rounds

    def round(self) -> Any:
        """Return the protocol of the current round.

        Returns
        -------
        Protocol
        """
        if self.done:
            raise InvalidParameterError(f"All {self.n_rounds} rounds are closed. Call result().")
        if self._current is None:
            self._current = next_protocol([part for _, part in self.rounds], self.estimator.prior, self._first)
        return self._current

    def add(self, reports: Any, on_invalid: str = "raise") -> Self:
        """Add reports of the current round.

        Parameters
        ----------
        reports : array-like of int, shape (n, width), or Aggregate
            Answers of clients to the protocol of :meth:`round`, without the clients that did not answer.
        on_invalid : {"raise", "drop"}, default="raise"
            Whether a report that no honest client could have sent is an error, or is left out and counted.

        Returns
        -------
        self
        """
        protocol = self.round()
        if not isinstance(reports, Aggregate):
            reports = protocol.aggregate(reports, on_invalid)
        if any(part.with_epsilon(protocol.epsilon) != protocol for part in reports.parts):
            raise InvalidReportError("These reports answer another round, or another collection. Add the answers to "
                                     "the protocol that round() returns.")
        self._open = self._open + reports
        return self

    def close(self) -> Self:
        """End the current round; the next protocol depends on its reports.

        Returns
        -------
        self
        """
        if not isinstance(self._open, Aggregate) or self._open.n_reports == 0:
            raise InvalidParameterError("This round has no reports yet. Add some before you close it.")
        self.rounds = [*self.rounds, (self._open.protocol, self._open)]
        self._current, self._open = None, 0
        return self

    def result(self) -> Any:
        """Fit the estimator to the closed rounds and return it.

        Returns
        -------
        LDPBayesLogisticRegression or LDPBayesPoissonRegression
        """
        return self.estimator.fit_reports(self.rounds)

    def to_json(self) -> str:
        """Return the state as JSON text: closed rounds, and the reports of the current one.

        Returns
        -------
        str
        """
        closed = [json.loads(part.to_json()) for _, part in self.rounds]
        current = json.loads(self._open.to_json()) if isinstance(self._open, Aggregate) else None
        return json.dumps({"format": FORMAT, "version": VERSION, "n_features": self._first.n_features,
                           "schema": self._first.schema, "closed": closed, "current": current})

    @classmethod
    def from_json(cls, estimator: Any, text: str | bytes) -> Self:
        """Return the server that :meth:`to_json` described.

        Parameters
        ----------
        estimator : LDPBayesLogisticRegression or LDPBayesPoissonRegression
            With the parameters of the collection.
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        RoundServer
        """
        fields = parse(text, _WHAT)
        check_format(fields, FORMAT, _WHAT)
        description = fields.pop("schema", None)  # older files lack it
        if set(fields) != {"n_features", "closed", "current"} or not isinstance(fields["closed"], list) \
                or len(fields["closed"]) > MOST_ROUNDS:
            raise InvalidParameterError(f"This is not {_WHAT}: fields are missing, unknown or too long. "
                                        "Pass what to_json returned, unchanged.")
        schema = None if description is None else Schema.from_description(description)
        server = cls(estimator, fields["n_features"], schema)
        for part in fields["closed"]:
            server = server.add(Aggregate.from_json(json.dumps(part))).close()
        current = fields["current"]
        return server if current is None else server.add(Aggregate.from_json(json.dumps(current)))


def next_protocol(rounds, prior, first):
    r"""Return the protocol of the next round, a function of the aggregates of the rounds before.

    Notes
    -----
    Its model is that at the mode of the posterior so far. The coordinates of x, and whether clients send the curvature,
    are the same in all later rounds: see ``_whitened`` and ``_tells_curvature``.
    """
    if not rounds:
        return first
    model = RoundModel(rounds, prior)
    last, public = rounds[-1].protocol, model.next_lines()
    if len(rounds) > 1:
        return replace(last, epsilon=first.epsilon, theta=_flat(model.frame.moved(public)))
    posterior = LaplaceApproximation()._infer(model, 0, False, None)
    transform, centre = _whitened(posterior.mean(), model, first)
    options = {"theta": _flat(Frame(transform, centre, public).moved(public)), "centre": _flat(centre),
               "transform": _flat(transform)}
    if isinstance(first, ScoreProtocol):
        following = replace(first, **options)
    else:
        following = RoundProtocol(
            epsilon=first.epsilon, delta=first.delta or 1e-5, data_norm=first.data_norm, n_features=first.n_features,
            schema=first.schema, classes=first.classes, mechanism=vector_mechanism(first.mechanism),
            intercept_weight=first.intercept_weight, **options)
    told = _tells_curvature(following, rounds[0].n_reports)
    return following if told else replace(following, curvature_weight=0.0)


def _tells_curvature(protocol, n_reports):
    """Whether reports tell the curvature: the error of an eigenvalue is below the largest one that is typical.

    Otherwise the curvature of later rounds would be noise, to which the posterior adapts. Clients then send the score
    alone, which is shorter and has less noise, and the first round tells the covariance of x.
    """
    error = np.sqrt(2 * protocol.order * protocol.randomizer.noise_variance / max(n_reports, 1))
    return error < protocol.response.largest_curvature * _TYPICAL_SQUARE / protocol.n_features


def _whitened(mean, model, first):
    r"""Return the transform and the centre of x in later rounds.

    Notes
    -----
    With the posterior means :math:`\Sigma` and m of covariance and mean of x, and e the standard error of an eigenvalue
    of the reported covariance, records are centred at m and multiplied by :math:`(\Sigma + eI)^{-1/2}`, scaled to a
    mean squared length of 1/2: noise is then the same in all directions in which the reports tell the covariance. They
    are those of the first round, in which all records count the same. In later rounds long records count less, and the
    covariance would not tell how long they are.
    """
    d, unit = first.n_features, first.data_norm
    centre = mean["x_mean"] / unit if "x_mean" in mean else np.zeros(d)
    values, vectors = np.linalg.eigh(mean["covariance"] / unit**2)
    part = model.likelihoods[0]
    whitened = np.maximum(values, 0.0) + _SHARE_OF_ERROR * np.sqrt(d * part.curvature_variance) / part.weight
    scales = np.sqrt(_TYPICAL_SQUARE / np.sum(np.maximum(values, 0.0) / whitened) / whitened)
    return (vectors * scales) @ vectors.T, centre


def _flat(values):
    return tuple(values.ravel().tolist())


def first_of_each_round(n_clients, n_rounds):
    """Return the places at which groups of clients, of equal size, are divided.

    Examples
    --------
    >>> first_of_each_round(100, 3)
    [33, 67]
    """
    return [max(number, round(number * n_clients / n_rounds)) for number in range(1, n_rounds)]


def as_rounds(reports):
    """Return the aggregates of a list of rounds, pairs of a protocol and an Aggregate; None for anything else."""
    if not isinstance(reports, (list, tuple)) or not reports:
        return None
    pairs = all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], Aggregate) for pair in reports)
    return [part for _, part in reports] if pairs else None


def check_number_of_rounds(n_rounds):
    """Return the number of rounds, or None for "auto"."""
    if isinstance(n_rounds, str) and n_rounds == "auto":
        return None
    return check_integer(n_rounds, "n_rounds", 1, MOST_ROUNDS)
