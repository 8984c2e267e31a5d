"""Base class of the protocols of categories, whose records are category numbers before anything else is done."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skldp._validation._categories import check_list
from skldp.protocols._base import Protocol


@dataclass(frozen=True, kw_only=True)
class CodedProtocol(Protocol):
    """A protocol of public categories; ``known_categories`` are checked copies of them, which are not pickled."""

    categories: tuple = (0, 1)

    @property
    def labels(self) -> tuple:
        """The public categories."""
        return self.categories

    @abstractmethod
    def codes(self, X: ArrayLike) -> np.ndarray:
        """Category numbers of records, -1 for an unknown category; no value raises."""

    def __getstate__(self) -> Any:
        # The arrays repeat the tuple, and there may be millions of categories.
        return {name: value for name, value in super().__getstate__().items() if name != "known_categories"}

    def _plain(self, X, y):
        return self.codes(X), None

    def _refuse_unknown(self, X, y):
        if (X < 0).any():
            raise ValueError("X has values that are none of categories. "
                             "Add them to categories, or leave their rows out.")


def checked_categories(categories, n_columns):
    """Return checked categories as a read-only array. Its dtype does not depend on that of a NumPy argument."""
    known = check_list(categories, n_columns)
    known = known if known.dtype == object else np.asarray(known.tolist())
    known.flags.writeable = False
    return known
