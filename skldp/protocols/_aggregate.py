"""Aggregates: for each protocol, sums of reports that can be added."""

import dataclasses
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import IO, Any

from skldp._validation._limits import MAX_REPORTS
from skldp.exceptions import InvalidReportError
from skldp.protocols._aggregate_files import aggregate_to_json, load_parts, parts_from_json, save_aggregate
from skldp.protocols._batches import Batches
from skldp.protocols._possible_sums import too_many_reports

# Protocols of one aggregate may differ in these fields, and in those whose default depends on the budget, because the
# likelihood of each part uses the mechanism of its own protocol.
BUDGET_FIELDS = {"epsilon", "delta"}


class Aggregate:
    """Sums of reports for each protocol. Small and picklable; ``+`` merges.

    Parameters
    ----------
    parts : dict of Protocol to Tally
        The sums. Protocols may differ only in their budget, in the window or subset size that depends on it, and, for
        moments, in mechanism and weights.
    n_rejected : int, default=0
        Number of reports that were left out as impossible.
    batches : Batches or None, default=None
        Random ids of the batches of reports in the sums, set by :meth:`Protocol.aggregate`; ``None`` if unknown.

    Attributes
    ----------
    parts : mapping of Protocol to Tally
    n_reports, n_rejected : int
    epsilon, delta : float
        Largest budget among the protocols: the most that a client has spent.
    checks_replay : bool
        Whether every report is in a batch with a known id, so that ``+`` detects a batch that is added twice.

    Notes
    -----
    *Replay.* Every call of ``aggregate`` gives its result a random id of 128 bits, which sums, files and pickles keep.
    ``+`` and ``fit_reports`` refuse to add an id twice; ``merge(other, allow_repeats=True)`` allows it. Contents are
    not compared, because equal reports need not be a replay. These are not detected: reports that are aggregated
    again, by a user or by a worker that repeats a task, because that makes a new batch; files of older versions, which
    have no ids; files whose ids were changed; and sums of more than 65,536 batches, which keep no ids.

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

    def __init__(self, parts, n_rejected=0, batches=None):
        first, *others = parts
        for other in others:
            _check_alike(first, other)
        self._parts = dict(parts)
        self.n_rejected = int(n_rejected)
        if self.n_rejected > MAX_REPORTS:
            raise too_many_reports()
        # Without reports, nothing can be counted twice.
        self._batches = Batches.of(complete=self.n_reports == 0) if batches is None else batches

    @property
    def parts(self) -> Mapping:
        """The sums under each protocol."""
        return MappingProxyType(self._parts)

    @property
    def n_reports(self) -> int:
        """Total number of reports."""
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
        """The first protocol; the others differ only in their budget and in fields that depend on it."""
        return next(iter(self._parts))

    @property
    def batches(self) -> Batches:
        """Known ids of the batches of reports in the sums."""
        return self._batches

    def with_batches(self, batches: Batches) -> "Aggregate":
        """Return the same sums with other ids, so that many batches can count as one.

        Parameters
        ----------
        batches : Batches
            Ids that replace the known ones.

        Returns
        -------
        Aggregate
        """
        return Aggregate(self._parts, self.n_rejected, batches)

    @property
    def checks_replay(self) -> bool:
        """Whether every report is in a batch with a known id."""
        return self._batches.complete

    def merge(self, other: "Aggregate", allow_repeats: bool = False) -> "Aggregate":
        """Add the sums of two aggregates; ``a + b`` is ``a.merge(b)``.

        Parameters
        ----------
        other : Aggregate
            Sums under the same protocols, or under protocols that differ as those of ``parts`` may.
        allow_repeats : bool, default=False
            Whether a batch of reports may be in both aggregates. Its clients are then counted twice.

        Returns
        -------
        Aggregate

        Raises
        ------
        InvalidReportError
            When the protocols differ in more than that, when a batch is in both, or when there are too many
            reports to be added exactly.

        Examples
        --------
        >>> from skldp.protocols import ValueProtocol
        >>> protocol = ValueProtocol(epsilon=1.0, bounds=(0, 10))
        >>> monday = protocol.aggregate(protocol.privatize([3.0, 4.0]))
        >>> monday + monday
        Traceback (most recent call last):
            ...
        skldp.exceptions.InvalidReportError: These aggregates have a batch of reports in common, ...
        >>> monday.merge(monday, allow_repeats=True).n_reports
        4
        """
        parts = dict(self._parts)
        for protocol, tally in other._parts.items():
            known = parts.get(protocol)
            parts[protocol] = tally if known is None else known + tally
        batches = self._batches.merge(other._batches, allow_repeats)
        return Aggregate(parts, self.n_rejected + other.n_rejected, batches)

    def __add__(self, other: "Aggregate") -> "Aggregate":
        return self.merge(other) if isinstance(other, Aggregate) else NotImplemented

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
        """Read an aggregate from JSON text.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        Aggregate
        """
        return Aggregate(*parts_from_json(text))

    def save(self, file: str | os.PathLike | IO[bytes]) -> None:
        """Write the sums with their protocols to an npz file, without pickle. It is smaller than JSON if rows are kept.

        Parameters
        ----------
        file : path or binary file object
            A file at this path is replaced atomically.
        """
        save_aggregate(file, self)

    @staticmethod
    def load(file: str | os.PathLike | IO[bytes]) -> "Aggregate":
        """Read an aggregate from an npz file.

        Parameters
        ----------
        file : path or binary file object
            What :meth:`save` wrote.

        Returns
        -------
        Aggregate
        """
        return Aggregate(*load_parts(file))

    def __repr__(self):
        budgets = ", ".join(f"{protocol.epsilon:g}" for protocol in self._parts)
        replay = "" if self.checks_replay else "; replay is not checked"
        return f"Aggregate({self.n_reports} reports; epsilon {budgets}; {self.n_rejected} rejected{replay})"


def _check_alike(one, other):
    if type(one) is not type(other):
        raise InvalidReportError(
            f"Aggregates of {type(one).__name__} and {type(other).__name__} cannot be added: "
            f"they belong to different collections. Fit each separately."
        )
    name = differing_field(one, other)
    if name is not None:
        raise InvalidReportError(
            f"These aggregates cannot be added: {name} is {getattr(one, name)!r} in one and {getattr(other, name)!r} "
            "in the other. Fit each separately."
        )


def differing_field(one, other, chosen=()):
    """Name of the first field that shows two protocols to belong to different collections; None if there is none.

    The budget, the fields whose default depends on it, and those that belong to a cohort may differ, except those in
    ``chosen``.
    """
    if type(one) is not type(other):
        return "kind"
    ignored = {*BUDGET_FIELDS, *one._automatic, *one._of_cohort} - set(chosen)
    names = [*(field.name for field in dataclasses.fields(one) if field.name not in ignored), *one._common]
    return next((name for name in names if getattr(one, name) != getattr(other, name)), None)
