"""What a protocol is: the public description of one collection, which clients run and the aggregator checks."""

import dataclasses
import hashlib
import json
import math
import warnings
from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np

from skldp.exceptions import InvalidParameterError, InvalidReportError, SeededNoiseWarning
from skldp.protocols._aggregate import Aggregate

FORMAT = "skldp-protocol"
VERSION = 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Protocol(ABC):
    """Public description of one collection: what a client does, and what the aggregator keeps.

    Protocols are immutable, compare by value and travel as JSON. Asking the same person twice, under one protocol or
    two, spends their budgets twice.
    """

    epsilon: float = 1.0
    delta: float = 0.0

    _kinds: ClassVar[dict] = {}

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        Protocol._kinds[cls.__name__] = cls

    def privatize(self, X, y=None, random_state=None):
        """Randomise records: the client's half.

        Parameters
        ----------
        X : array-like
            Records, one row each. No value raises or warns; what is outside the public domain is clipped.
        y : array-like or None
            Responses, for the protocols that have them.
        random_state : None or a seed
            ``None`` is the operating system's entropy. Anything else is a simulation that protects nobody, and warns.

        Returns
        -------
        ndarray of int, shape (n, width)
            Reports, ready to be sent.
        """
        if hasattr(X, "toarray"):
            raise TypeError("Sparse records are refused: which entries are zero would show. Pass X.toarray().")
        if random_state is not None:
            warnings.warn(
                "The noise is drawn from a seed, so anybody who knows the seed can take it off. "
                "Leave random_state=None on a client.",
                SeededNoiseWarning,
                stacklevel=2,
            )
        return self._randomize(X, y, random_state)

    def check(self, reports):
        """Say which reports an honest client could have sent.

        Parameters
        ----------
        reports : array-like of int, shape (n, width)
            Reports of unknown origin.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        return self._valid_rows(self._read(reports))

    def aggregate(self, reports, on_invalid="raise"):
        """Add reports up into the small statistic that inference needs.

        Parameters
        ----------
        reports : array-like of int, shape (n, width)
            Reports of unknown origin: every row is checked.
        on_invalid : {"raise", "drop"}, default="raise"
            Whether a report that no honest client could have sent is an error, or is left out and counted.

        Returns
        -------
        Aggregate
        """
        return self._aggregate(reports, on_invalid, self._tally)

    def _aggregate(self, reports, on_invalid, tally):
        if on_invalid not in ("raise", "drop"):
            raise InvalidParameterError(f'on_invalid must be "raise" or "drop", got {on_invalid!r}.')
        reports = self._read(reports)
        valid = self._valid_rows(reports)
        n_rejected = int(len(reports) - np.count_nonzero(valid))
        if n_rejected and on_invalid == "raise":
            rows = ", ".join(map(str, np.flatnonzero(~valid)[:5])) + (", ..." if n_rejected > 5 else "")
            raise InvalidReportError(
                f"{n_rejected} of {len(reports)} reports could not have come from {type(self).__name__} (rows {rows}). "
                f'Pass on_invalid="drop" to leave such reports out.'
            )
        if n_rejected:
            reports = reports[valid]
        return Aggregate({self: tally(reports)}, n_rejected)

    @property
    def id(self):
        """Digest of the description: equal for equal protocols, whatever machine they are on."""
        return hashlib.blake2b(self._canonical().encode(), digest_size=8).hexdigest()

    def to_json(self):
        """Return the description as JSON text, to be published.

        Returns
        -------
        str
        """
        return self._canonical()

    @staticmethod
    def from_json(text):
        """Read a published description.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        Protocol
        """
        fields = _parse(text)
        kind = Protocol._kinds.get(fields.pop("kind", None))
        if kind is None:
            raise InvalidParameterError("This protocol file is of a kind that this version of skldp does not know.")
        known = {field.name for field in dataclasses.fields(kind)}
        if set(fields) != known:
            strange = ", ".join(sorted(set(fields) ^ known))
            raise InvalidParameterError(f"This protocol file has missing or unknown fields: {strange}.")
        if fields.get("epsilon") == "inf":
            raise InvalidParameterError(
                "This protocol has epsilon=inf, which is no privacy at all: it is a simulation and not for clients."
            )
        return kind(**{name: _freeze(value) for name, value in fields.items()})

    def _canonical(self):
        fields = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        if math.isinf(self.epsilon):
            fields["epsilon"] = "inf"
        description = {"format": FORMAT, "version": VERSION, "kind": type(self).__name__, **fields}
        return json.dumps(description, sort_keys=True)

    def _read(self, reports):
        reports = np.asarray(reports)
        if reports.ndim == 1 and self.width == 1:
            reports = reports[:, None]
        if reports.ndim != 2 or reports.shape[1] != self.width:
            raise InvalidReportError(
                f"Reports under this {type(self).__name__} have {self.width} columns; "
                f"got an array of shape {reports.shape}."
            )
        if reports.dtype.kind not in "iu" and reports.size:
            raise InvalidReportError(
                f"Reports are integers; got dtype {reports.dtype}. Pass what privatize returned, unchanged."
            )
        return reports

    @property
    @abstractmethod
    def width(self):
        """Number of integers in a report."""

    @abstractmethod
    def _randomize(self, X, y, random_state):
        """Randomise records without the client's warning about seeds."""

    @abstractmethod
    def _valid_rows(self, reports):
        """Mask of the rows that an honest client could have sent."""

    @abstractmethod
    def _tally(self, reports):
        """The statistic of valid reports: sums that add."""


def _freeze(value):
    """JSON knows lists only; a description is made of tuples."""
    return tuple(_freeze(item) for item in value) if isinstance(value, list) else value


def _parse(text):
    try:
        fields = json.loads(text)
    except (TypeError, ValueError):
        raise InvalidParameterError("This is not a protocol file: it is no JSON. It may have been cut short.") from None
    if not isinstance(fields, dict) or fields.pop("format", None) != FORMAT:
        raise InvalidParameterError('This is not a protocol file of skldp: its "format" is missing or foreign.')
    version = fields.pop("version", None)
    if version != VERSION:
        raise InvalidParameterError(
            f"This protocol file has version {version!r}; this skldp reads version {VERSION}. Upgrade the older side."
        )
    return fields
