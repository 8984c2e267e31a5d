"""What the aggregator keeps: for each protocol, sums that add."""

import dataclasses
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import IO, Any

from skldp.exceptions import InvalidReportError
from skldp.protocols._aggregate_files import aggregate_to_json, load_parts, parts_from_json, save_aggregate

# Cohorts may differ in these and still be added up, side by side; and in the fields whose default follows the budget,
# because the likelihood of each part uses the mechanism of its own protocol.
BUDGET_FIELDS = {"epsilon", "delta"}


class Aggregate:
    """Sums of reports, for each protocol they came under. Small, picklable; ``+`` merges.

    Parameters
    ----------
    parts : dict of Protocol to Tally
        The sums. Protocols that differ in their budget alone, and in the window or subset size that follows it, may
        stand side by side.
    n_rejected : int, default=0
        How many reports were left out as impossible.

    Attributes
    ----------
    parts : mapping of Protocol to Tally
    n_reports, n_rejected : int
    epsilon, delta : float
        The largest budget among the protocols: what each client paid at most.

    Examples
    --------
    >>> from skldp.protocols import Aggregate, ValueProtocol
    >>> protocol = ValueProtocol(epsilon=1.0, bounds=(0, 10))
    >>> monday, tuesday = (protocol.aggregate(protocol.privatize([3.0, 4.0])) for _ in range(2))
    >>> (monday + tuesday).n_reports
    4
    >>> Aggregate.from_json(monday.to_json()) + tuesday
    Aggregate(4 reports; epsilon 1; 0 rejected)
    """

    def __init__(self, parts, n_rejected=0):
        first, *others = parts
        for other in others:
            _check_alike(first, other)
        self._parts = dict(parts)
        self.n_rejected = int(n_rejected)

    @property
    def parts(self) -> Mapping:
        """The sums under each protocol."""
        return MappingProxyType(self._parts)

    @property
    def n_reports(self) -> int:
        """Number of reports in all."""
        return sum(tally.n_reports for tally in self._parts.values())

    @property
    def epsilon(self) -> float:
        """Largest budget among the protocols."""
        return max(protocol.epsilon for protocol in self._parts)

    @property
    def delta(self) -> float:
        """Largest failure probability among the protocols."""
        return max(protocol.delta for protocol in self._parts)

    @property
    def protocol(self) -> Any:
        """The first protocol: all others differ from it in their budget alone, and in what follows it."""
        return next(iter(self._parts))

    def __add__(self, other: "Aggregate") -> "Aggregate":
        if not isinstance(other, Aggregate):
            return NotImplemented
        parts = dict(self._parts)
        for protocol, tally in other._parts.items():
            parts[protocol] = parts[protocol] + tally if protocol in parts else tally
        return Aggregate(parts, self.n_rejected + other.n_rejected)

    def __radd__(self, other):
        # sum() starts from 0.
        return self if other == 0 else NotImplemented

    def to_json(self) -> str:
        """Return the sums with their protocols as JSON text.

        Returns
        -------
        str
        """
        return aggregate_to_json(self)

    @staticmethod
    def from_json(text: str | bytes) -> "Aggregate":
        """Read what :meth:`to_json` returned.

        Parameters
        ----------
        text : str
            The sums with their protocols.

        Returns
        -------
        Aggregate
        """
        return Aggregate(*parts_from_json(text))

    def save(self, file: str | os.PathLike | IO[bytes]) -> None:
        """Write the sums with their protocols to an npz file, without pickle: smaller than JSON where rows are kept.

        Parameters
        ----------
        file : path or binary file object
            A path is replaced as a whole or not at all.
        """
        save_aggregate(file, self)

    @staticmethod
    def load(file: str | os.PathLike | IO[bytes]) -> "Aggregate":
        """Read what :meth:`save` wrote.

        Parameters
        ----------
        file : path or binary file object
            The sums with their protocols.

        Returns
        -------
        Aggregate
        """
        return Aggregate(*load_parts(file))

    def __repr__(self):
        budgets = ", ".join(f"{protocol.epsilon:g}" for protocol in self._parts)
        return f"Aggregate({self.n_reports} reports; epsilon {budgets}; {self.n_rejected} rejected)"


def _check_alike(one, other):
    if type(one) is not type(other):
        raise InvalidReportError(
            f"Aggregates of {type(one).__name__} and {type(other).__name__} do not add: "
            f"they are of different collections. Fit each on its own."
        )
    name = differing_field(one, other)
    if name is not None:
        raise InvalidReportError(
            f"These aggregates do not add: {name} is {getattr(one, name)!r} in one and {getattr(other, name)!r} in the "
            "other. Fit each on its own."
        )


def differing_field(one, other, chosen=()):
    """Name of the first field in which two protocols are of different collections; None if there is none.

    Parameters
    ----------
    one, other : Protocol
        What is compared: everything but the budget, and the fields whose default follows it.
    chosen : iterable of str, default=()
        Which of the latter are compared nevertheless.

    Returns
    -------
    str or None
    """
    if type(one) is not type(other):
        return "kind"
    apart = {*BUDGET_FIELDS, *one._automatic} - set(chosen)
    for field in dataclasses.fields(one):
        if field.name not in apart and getattr(one, field.name) != getattr(other, field.name):
            return field.name
    return None
