"""Base class of protocols: the public description of one collection, for clients and for the aggregator."""

import dataclasses
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from skldp.exceptions import InvalidParameterError, InvalidReportError, SeededNoiseWarning
from skldp.privacy._spending import Counted
from skldp.privacy._words import RandomState
from skldp.protocols._aggregate import Aggregate
from skldp.protocols._batches import Batches
from skldp.protocols._description import KINDS, canonical, describe, digest, parse, protocol_from
from skldp.protocols._rows import read_rows
from skldp.protocols._survey_page import write_page


@dataclasses.dataclass(frozen=True, kw_only=True)
class Protocol(Counted, ABC):
    """Public description of one collection: what a client does, and what the aggregator keeps.

    Protocols are immutable, compare by value and are published as JSON. Asking the same person twice spends budget
    twice, under one protocol or under two.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client.
    delta : float, default=0.0
        Failure probability of a client.

    Examples
    --------
    >>> from skldp.protocols import Protocol, ValueProtocol
    >>> published = ValueProtocol(epsilon=1.0, bounds=(0, 10)).to_json()
    >>> Protocol.from_json(published).privatize(3.0).shape
    (1, 1)
    """

    epsilon: float = 1.0
    delta: float = 0.0

    # Fields whose default depends on the budget, with the value that stands for the default.
    _automatic: ClassVar[dict[str, Any]] = {}
    # Other fields in which cohorts of one collection may differ, and properties in which they may not.
    _of_cohort: ClassVar[frozenset[str]] = frozenset()
    _common: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        KINDS[cls.__name__] = cls

    def privatize(self, X: ArrayLike, y: ArrayLike | None = None, random_state: RandomState = None) -> np.ndarray:
        """Randomise records, on the client.

        Parameters
        ----------
        X : array-like
            Records, one row each. No value raises or warns; values outside the public domain are clipped.
        y : array-like or None
            Responses, for the protocols that have them.
        random_state : None or a seed
            ``None`` is the operating system's entropy. Anything else is for simulations, protects nobody, and warns.

        Returns
        -------
        ndarray of int, shape (n, width)
            Reports, ready to be sent.
        """
        warn_seeded(random_state)
        return self._randomize(X, y, random_state)

    def check(self, reports: ArrayLike) -> np.ndarray:
        """Return a mask of the reports that an honest client could have sent.

        Parameters
        ----------
        reports : array-like of int, shape (n, width)
            Reports of unknown origin.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        return self._read(reports, "drop")[1]

    def aggregate(self, reports: ArrayLike, on_invalid: str = "raise") -> Aggregate:
        """Add up reports into the small statistic that inference needs.

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
        check_on_invalid(on_invalid)
        reports, valid = self._read(reports, on_invalid)
        n_rejected = int(len(reports) - np.count_nonzero(valid))
        if n_rejected:
            reports = reports[valid]
        return Aggregate({self: tally(reports)}, n_rejected, Batches.new(len(reports)))

    def _read(self, reports, on_invalid="raise", remedy='Pass on_invalid="drop" to leave such reports out.'):
        """Rows of integers, and a mask of those that an honest client could have sent; "raise" requires all of them."""
        rows, is_row = read_rows(reports, self.width, type(self).__name__, on_invalid == "drop")
        valid = self._valid_rows(rows) if is_row is None else is_row & self._valid_rows(rows)
        if on_invalid == "raise" and not valid.all():
            raise self._invalid_rows_error(valid, remedy)
        return rows, valid

    def _invalid_rows_error(self, valid, remedy):
        """Error with the numbers of the rows that no honest client could have sent."""
        invalid = np.flatnonzero(~valid)
        rows = ", ".join(map(str, invalid[:5])) + (", ..." if len(invalid) > 5 else "")
        return InvalidReportError(
            f"{len(invalid)} of {len(valid)} reports could not have come from {type(self).__name__} (rows {rows}). "
            f"{remedy}"
        )

    def with_epsilon(self, epsilon: float) -> Self:
        """Return the same collection with another budget, for a cohort with that budget.

        A window or subset size that is the default for this budget becomes the default for the other one. A number
        that was chosen is kept.

        Parameters
        ----------
        epsilon : float
            Budget of a client.

        Returns
        -------
        Protocol

        Examples
        --------
        >>> from skldp.protocols import ValueProtocol
        >>> ValueProtocol(epsilon=1.0).with_epsilon(2.0).window, ValueProtocol(window=0.2).with_epsilon(2.0).window
        (0.1, 0.2)
        """
        return self._replace(epsilon=epsilon)

    def with_width(self, width: int) -> Self:
        """Return the same collection with the number of features that gives reports of a given width.

        Parameters
        ----------
        width : int
            Number of integers in a report.

        Returns
        -------
        Protocol
            If no number of features gives this width, the one with the next larger width.

        Examples
        --------
        >>> from skldp.protocols import MomentProtocol
        >>> MomentProtocol(epsilon=1.0).with_width(10).n_features
        2
        """
        return self if width == self.width else self._replace(n_features=self._features_of(width))

    def _features_of(self, width):
        """Number of features of reports of this width: one for each integer, unless a protocol knows otherwise."""
        return width

    def _replace(self, **changes):
        """Return the same collection with some fields changed; fields at the default for the budget stay at it."""
        default = {name: value for name, value in self._automatic.items()
                   if dataclasses.replace(self, **{name: value}) == self}
        return dataclasses.replace(self, **default, **changes)

    @property
    def id(self) -> str:
        """Digest of the description, 128 bits, equal for equal protocols on every machine."""
        return digest(self)

    def to_json(self) -> str:
        """Return the description as JSON text, to be published.

        Returns
        -------
        str
        """
        return self._canonical()

    @staticmethod
    def from_json(text: str | bytes) -> "Protocol":
        """Read a published description.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        Protocol
        """
        return protocol_from(parse(text))

    def to_html(self, path: str | os.PathLike, title: str | None = None, questions: Any = None,
                submit: str | None = None) -> None:
        """Write a page on which people answer with a browser: a form that draws the report on their own device.

        The page is one file without external resources. It works offline, draws one report from the browser's
        cryptographic generator, shows it, sends it to ``submit`` or offers to copy it, and remembers it: a person who
        comes back gets the same report. Reports of values (square wave) and of categories are drawn from integers
        alone, with the thresholds of this protocol. Other noise and other protocols are refused.

        Parameters
        ----------
        path : path
            File to write; it is replaced atomically.
        title : str or None, default=None
            Title of the page; "Private survey" by default.
        questions : str, list or None, default=None
            One entry for each column: a text, or a pair of a text and a unit, as in
            ``[("How tall are you?", "cm")]``.
        submit : str or None, default=None
            Address that reports are posted to: https, http of this machine, or a path on the host of the page. With
            ``None`` the page only offers to copy the report.

        Raises
        ------
        InvalidParameterError
            When there is no page for this protocol, or a parameter is wrong.

        See Also
        --------
        load_reports : Read what such pages send.

        Examples
        --------
        >>> import os, tempfile
        >>> from skldp.protocols import ValueProtocol
        >>> protocol = ValueProtocol(epsilon=1.0, bounds=(120, 220))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "survey.html")
        ...     protocol.to_html(path, "Heights", [("How tall are you?", "cm")], "https://example.org/reports")
        ...     os.path.getsize(path) < 30_000
        True
        """
        write_page(self, path, title, questions, submit)

    def _canonical(self):
        return canonical(describe(self))

    @property
    def sends_bits(self) -> bool:
        """Whether a report is a row of zeros and ones, which files store as packed bits."""
        return False

    @property
    def keeps_reports(self) -> bool:
        """Whether an aggregate keeps the reports themselves, because their likelihood has no smaller summary."""
        return False

    @property
    def labels(self) -> tuple | None:
        """Public labels that a client chooses from: categories, or classes; ``None`` if there are none."""
        return None

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of integers in a report."""

    def _randomize(self, X, y, random_state):
        """Randomise records without the warning about seeds."""
        X, y = self._plain(X, y)
        return joined(self._draw(X, y, random_state))

    def _like(self, other):
        """Return this protocol with the fields of another one that an estimator does not know: its raw columns."""
        return self

    def _refuse_unknown(self, X, y):
        """Raise an error if a plain record has none of the public labels; for simulations only, clients never raise."""

    def _compared(self, X, y):
        """Arrays that are equal for two plain records only if their reports have the same distribution."""
        return (X,) if y is None else (X, y)

    @abstractmethod
    def _plain(self, X, y):
        """Convert records and responses to plain arrays of floats or codes, before anything else is done with them."""

    @abstractmethod
    def _draw(self, X, y, random_state) -> Iterator[np.ndarray]:
        """Draw the reports of plain records, in one or more pieces of rows."""

    @abstractmethod
    def _valid_rows(self, reports):
        """Mask of the rows that an honest client could have sent."""

    @abstractmethod
    def _tally(self, reports):
        """Tally of valid reports, which can be added to others."""

    @abstractmethod
    def _possible(self, tally):
        """Whether valid reports can have these sums, by shape, type and size."""


def joined(pieces):
    """Return pieces of reports as one array; a single piece is not copied."""
    pieces = list(pieces)
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)


def check_on_invalid(on_invalid):
    """Raise an error unless ``on_invalid`` is "raise" or "drop"."""
    if on_invalid not in ("raise", "drop"):
        raise InvalidParameterError(f'on_invalid must be "raise" or "drop", got {on_invalid!r}.')


def warn_seeded(random_state):
    """Warn that noise drawn from a seed can be removed."""
    if random_state is not None:
        warnings.warn(
            "The noise is drawn from a seed, so anybody who knows the seed can remove it. "
            "Leave random_state=None on a client.",
            SeededNoiseWarning,
            stacklevel=3,
        )
