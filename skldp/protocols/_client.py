"""A client that counts the budget it spends, and repeats its report for the same record."""

import math
import os
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from skldp._validation._door import flat, is_row
from skldp._validation._parameters import check_positive
from skldp.exceptions import BudgetError, InvalidParameterError
from skldp.protocols._base import Protocol
from skldp.protocols._client_ledger import FileLedger, MemoryLedger, decimal_fraction
from skldp.protocols._gradient_protocol import GradientProtocol
from skldp.protocols._regression_protocol import RegressionProtocol

__all__ = ["Client"]

MAX_DELTA = 0.01  # largest total for clients with a ceiling: a large delta is no privacy at any epsilon


class Client:
    """Client of one person: it reports, counts the budget that is spent, and refuses to spend more than a ceiling.

    The noise always comes from the operating system. Budgets are added up over all protocols that share a ledger
    (basic composition). The sums are exact, of the decimal numbers as written.

    Parameters
    ----------
    protocol : Protocol, str or bytes
        The published protocol, or its JSON text. A protocol without privacy (``epsilon=inf``) is refused.
    ledger : path-like or None, default=None
        File of the account of one person, created if it does not exist. Programs lock a second file next to it, with
        the suffix ``.lock``. With ``None``, the account is kept in memory and lost with this object.
    max_epsilon : float or None, default=None
        Ceiling of the person: the most that all reports may spend together. A protocol that asks for more is refused
        at once. With a ceiling, deltas may add up to 0.01 at most. With ``None``, spending is counted and not limited.

    Raises
    ------
    BudgetError
        When the protocol asks for more than the ceiling.
    InvalidParameterError
        When a parameter, or the ledger, cannot be used.

    See Also
    --------
    Protocol.privatize : Reports without an account, for one or many records.
    GradientClient : Answers to the models of a server.

    Notes
    -----
    *The same report.* A second request for the same record under the same protocol is answered with the first report
    and costs nothing, so that the noise cannot be averaged away by asking again. Records are the same if the protocol
    encodes them alike: for a :class:`ValueProtocol` the same point of its grid, for a :class:`CategoryProtocol` the
    same category, otherwise the same numbers. A changed record gets a new report, and costs its epsilon again; so does
    the same record under another protocol.

    *What this does not hide.* An aggregator that asks again gets another report, or a refusal, only if the record has
    changed. The values stay protected, but the fact that they have changed does not.

    *The file* is JSON, readable by its owner only (mode 0600), replaced atomically and synced **before** a report is
    returned: a crash may count too much, never too little. Programs that share it wait for each other. A ledger that
    is damaged, foreign, longer than 1 MB or of a later version is an error, and nothing is reported. If it would
    grow past 1 MB, the oldest reports are dropped; their cost stays counted.

    *What the file reveals about the person.* It has the reports, which the aggregators have as well, and a keyed digest
    of each record instead of the record. The key is in the file: somebody who has only a digest, or two ledgers to
    compare, learns nothing, but somebody who has the whole file can try all values of a small domain. Keep it as
    private as the record. If it is removed, or replaced by an old copy, the client no longer knows what it has spent.

    Examples
    --------
    >>> import os, tempfile
    >>> from skldp.protocols import Client, ValueProtocol
    >>> published = ValueProtocol(epsilon=0.5, bounds=(120, 220)).to_json()
    >>> folder = tempfile.TemporaryDirectory()
    >>> client = Client(published, ledger=os.path.join(folder.name, "spent.json"), max_epsilon=1.0)
    >>> first = client.report(171.5)
    >>> bool((client.report(171.5) == first).all()), client.spent()    # the same report, at no cost
    (True, 0.5)
    >>> report = client.report(174.0)    # another record, another report
    >>> client.spent()
    1.0
    >>> try:
    ...     client.report(180.0)
    ... except ValueError as error:
    ...     print(error)
    Nothing was reported: it would cost epsilon=0.5, and 1.0 of max_epsilon=1.0 is spent. ...
    >>> folder.cleanup()
    """

    def __init__(self, protocol: Protocol | str | bytes, ledger: str | bytes | os.PathLike | None = None,
                 max_epsilon: float | None = None):
        self.protocol = _check_protocol(protocol)
        self.ledger = ledger
        self.max_epsilon = None if max_epsilon is None else check_positive(max_epsilon, "max_epsilon")
        if ledger is not None and not isinstance(ledger, (str, bytes, os.PathLike)):
            raise InvalidParameterError(f"ledger must be the path of a file, or None, got {ledger!r}.")
        self._check_budget(Fraction(0), Fraction(0))
        self._store = MemoryLedger() if ledger is None else FileLedger(ledger)

    def report(self, record: Any, y: Any = None) -> np.ndarray:
        """Return the report of the person's record: the earlier one if there is one, or a new one.

        Parameters
        ----------
        record : scalar, array-like or dict
            One record: a value, a row, or a dict. The values of a dict are in the order of the columns, unless the
            protocol has a schema with their names. No value raises or warns.
        y : scalar, list or None, default=None
            Response, for the protocols that have one; a list of several responses. It may also be the entry ``"y"`` of
            a dict, the only entry of a dict that is not in the schema of the protocol, or the last entries of a list or
            array.

        Returns
        -------
        ndarray of int, shape (1, width)
            Report, ready to be sent.

        Raises
        ------
        BudgetError
            When the person's budget is not enough. No report is drawn then.
        """
        x, y = self.protocol._plain(*_split_response(self.protocol, record, y))
        if len(x) != 1:
            raise ValueError(f"report takes the record of one person, got {len(x)} records. Call it for each of them.")
        with self._store.open() as account:
            name = account.digest(self.protocol, self.protocol._compared(x, y))
            report = account.answer(name, self.protocol)
            if report is None:
                self._check_budget(*account.total())
                report, = self.protocol._draw(x, y, None)
                account.add(name, self.protocol, report)
                self._store.save(account)  # before the report is returned, so that a crash never counts too little
        return report

    def spent(self) -> float:
        """Return the sum of the epsilons of all reports in the ledger, rounded up.

        Returns
        -------
        float
        """
        return self._totals()[0]

    def spent_delta(self) -> float:
        """Return the sum of the deltas of all reports in the ledger, rounded up.

        Returns
        -------
        float
        """
        return self._totals()[1]

    def __repr__(self):
        return (f"Client({type(self.protocol).__name__} with epsilon={self.protocol.epsilon!r}, "
                f"ledger={self.ledger!r}, max_epsilon={self.max_epsilon!r})")

    def _totals(self):
        with self._store.open() as account:
            return tuple(map(_round_up, account.total()))

    def _check_budget(self, epsilon, delta):
        """Raise an error if a report would bring these totals above the ceiling."""
        if self.max_epsilon is None:
            return
        if epsilon + decimal_fraction(self.protocol.epsilon) > decimal_fraction(self.max_epsilon):
            raise BudgetError(
                f"Nothing was reported: it would cost epsilon={self.protocol.epsilon!r}, and {_round_up(epsilon)!r} of "
                f"max_epsilon={self.max_epsilon!r} is spent. Do not answer this request, or raise max_epsilon."
            )
        if delta + decimal_fraction(self.protocol.delta) > decimal_fraction(MAX_DELTA):
            raise BudgetError(
                f"Nothing was reported: it would cost delta={self.protocol.delta!r}, and {_round_up(delta)!r} of "
                f"{MAX_DELTA} is spent. Do not answer this request, or ask for a protocol with a smaller delta."
            )


def _check_protocol(protocol):
    """Return a protocol, or read it from its JSON text; raise an error if it has rounds or no privacy."""
    if isinstance(protocol, (str, bytes)):
        protocol = Protocol.from_json(protocol)
    if isinstance(protocol, GradientProtocol):
        raise InvalidParameterError("A GradientProtocol asks for gradients at the models of a server, which change "
                                    "from round to round. Use GradientClient, and take part once.")
    if not isinstance(protocol, Protocol):
        raise InvalidParameterError(f"protocol must be a Protocol or its JSON text, got {type(protocol).__name__}.")
    if math.isinf(protocol.epsilon):
        raise InvalidParameterError("This protocol has epsilon=inf, which is no privacy at all: it is a simulation "
                                    "and not for clients. Ask for a protocol with a finite epsilon.")
    return protocol


def _split_response(protocol, record, y):
    """Return a record without its response, and the response, from any of the accepted forms."""
    has_columns = isinstance(protocol, RegressionProtocol)
    has_response = has_columns and protocol.n_responses > 0
    if y is not None and not has_response:
        raise ValueError(f"{type(protocol).__name__} has no response: leave y out.")
    columns = protocol.columns if has_columns else None
    n_columns = len(columns.names) if columns is not None else getattr(protocol, "n_features", 0)
    if isinstance(record, Mapping) and columns is not None:
        row = [flat([record.get(name) for name in columns.names])]
        return row, _response_beside(columns.names, record, y) if has_response else None
    if isinstance(record, Mapping):
        columns = dict(record)
        if has_response and y is None and "y" in columns:
            y = columns.pop("y")
            y = flat(y if protocol.n_responses > 1 and is_row(y) else [y])
        values = list(columns.values())
        # If all values are lists, they are rows of a table, whose shape is checked. A list among other values counts
        # as a missing value.
        return values if all(map(is_row, values)) else [flat(values)], y
    is_list = isinstance(record, (list, tuple)) or (isinstance(record, np.ndarray) and record.ndim == 1)
    if has_response and y is None and is_list and len(record) == n_columns + protocol.n_responses:
        return record[:n_columns], record[n_columns:]
    return record, y


def _response_beside(names, record, y):
    """Return the response of a record of named columns: y, else the only other entry, or the entry "y"."""
    if y is not None:
        return y
    others = {name: value for name, value in record.items() if name not in names}
    response = others if len(others) == 1 else {"y": others["y"]} if "y" in others else {}
    if not response:
        raise ValueError("The record must have its response as the only entry that is no column of the schema, as "
                         f"the entry \"y\", or as the argument y; it has {len(others)} other entries.")
    return flat(list(response.values()))


def _round_up(total):
    """Return the smallest float whose decimal form is at least an exact sum."""
    value = float(total)
    return value if decimal_fraction(value) >= total else math.nextafter(value, math.inf)
