"""Random ids of batches of reports, with which an aggregate detects a batch that is added twice."""

import os

from skldp.exceptions import InvalidReportError

MAX_BATCHES = 2**16  # largest number of ids in an aggregate, 2.4 MB of JSON; with more, it keeps none
_ID_BYTES = 16


class Batches:
    """Ids of the batches of reports in an aggregate, by position. Immutable; use :meth:`of` or :meth:`new`.

    They are complete if every report is in a batch with a known id.
    """

    # The ids are the first ``_size`` keys of a dict. A sum shares the dict of its larger term and appends to it:
    # otherwise, adding thousands of aggregates one by one would copy millions of ids. Only one sum may append to a
    # given dict: the one that pops the only item of ``_extensible``, which is atomic. Other sums copy the dict.
    __slots__ = ("_extensible", "_places", "_size", "complete")

    def __init__(self, places, complete):
        self._places, self._size, self.complete = places, len(places), complete
        self._extensible = [True]

    @staticmethod
    def of(ids=(), complete=True):
        """Batches with the given ids."""
        return Batches({name: place for place, name in enumerate(ids)}, complete)

    @staticmethod
    def new(n_reports=1):
        """One batch with a unique id, 128 bits from the operating system; no id if there are no reports."""
        return Batches({os.urandom(_ID_BYTES): 0} if n_reports else {}, True)

    @property
    def ids(self):
        """The ids, as a list of bytes."""
        ids = list(self._places)
        return ids if len(ids) == self._size else ids[:self._size]

    def merge(self, other, allow_repeats=False):
        """Batches of the sum of two aggregates, which may have a batch in common if ``allow_repeats``."""
        large, small = (self, other) if self._size >= other._size else (other, self)
        places, size = large._places, large._size
        added = [name for name in small.ids if places.get(name, size) >= size]
        if len(added) < small._size and not allow_repeats:
            raise InvalidReportError(
                "These aggregates have a batch of reports in common, and adding it twice would count its clients "
                "twice. Add each batch once; if this is intended, use merge(other, allow_repeats=True)."
            )
        if size + len(added) > MAX_BATCHES:
            return Batches({}, False)
        return Batches(large._extended(added), self.complete and other.complete)

    def _extended(self, added):
        try:
            self._extensible.pop()
            places = self._places
        except IndexError:
            places = {name: place for place, name in enumerate(self.ids)}
        for name in added:
            places[name] = len(places)
        return places

    def __reduce__(self):
        return Batches.of, (self.ids, self.complete)


def ids_to_text(batches):
    """Ids as text, for files."""
    return [name.hex() for name in batches.ids]


def batches_from_text(texts, complete):
    """Batches of a file, or None if the texts cannot be ids."""
    if not isinstance(texts, list) or len(texts) > MAX_BATCHES or not isinstance(complete, bool):
        return None
    if not all(isinstance(text, str) and len(text) == 2 * _ID_BYTES for text in texts):
        return None
    try:
        ids = {bytes.fromhex(text) for text in texts}
    except ValueError:
        return None
    valid = len(ids) == len(texts) and all(len(name) == _ID_BYTES for name in ids)
    return Batches.of(ids, complete) if valid else None
