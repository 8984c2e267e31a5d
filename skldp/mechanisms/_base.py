"""Base class of mechanisms, which draw reports and compute their probabilities."""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from skldp._validation._door import as_floats
from skldp.privacy._words import SystemWords, word_source


class Mechanism(ABC):
    """A randomiser of one record.

    ``encode`` clips records to the public domain and turns them into integers, and no value makes it raise or warn;
    ``randomize`` draws integer reports; ``decode`` puts reports on the natural scale; ``log_prob`` is the
    log-probability of a report given a record; ``valid`` is a mask of the reports an honest client could have sent.
    Mechanisms are immutable and compare by value.

    Examples
    --------
    >>> from skldp.mechanisms import Mechanism, RandomizedResponse
    >>> mechanism = RandomizedResponse(epsilon=1.0, n_categories=4)
    >>> isinstance(mechanism, Mechanism)
    True
    >>> float(mechanism.log_prob([2], [2])[0] - mechanism.log_prob([2], [3])[0]) <= mechanism.epsilon + 1e-12
    True
    """

    epsilon: float
    delta: float = 0.0

    def randomize(self, x: ArrayLike, rng: Any = None) -> np.ndarray:
        """Draw one report for each record.

        Parameters
        ----------
        x : array-like
            Records. Values outside the domain are clipped, NaN becomes a fixed public value.
        rng : None, int, Generator, RandomState or a source of words
            Source of the noise. ``None``, the only private choice, is the operating system's entropy. Anything else
            is for simulations: the stream depends on the seed, on this mechanism and on the records.

        Returns
        -------
        ndarray of int
            Reports, one row for each record.
        """
        codes = self.encode(x)
        return self._draw(codes, SystemWords() if rng is None else word_source(rng, repr(self), codes))

    @property
    def private(self):
        """Whether noise is added: False for ``epsilon=inf``."""
        return not math.isinf(self.epsilon)

    @abstractmethod
    def encode(self, x: ArrayLike) -> np.ndarray:
        """Clip records to the public domain and turn them into integers."""

    @abstractmethod
    def _draw(self, codes, source):
        """Draw reports for encoded records."""

    @abstractmethod
    def decode(self, reports: ArrayLike) -> np.ndarray:
        """Put integer reports on the natural scale of the records."""

    @abstractmethod
    def log_prob(self, reports: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Log-probability of reports given records."""

    @abstractmethod
    def valid(self, reports: ArrayLike) -> np.ndarray:
        """Mask of the reports that an honest client could have sent."""


def has_width(reports, width):
    """Whether an array has rows of ``width`` integers, as all reports do."""
    return is_integer(reports) and reports.ndim == 2 and reports.shape[1] == width


def check_width(x, width):
    """Return records as floats with ``width`` columns; an error shows only their shape, which is public."""
    x = as_floats(x)
    if x.ndim != 2 or x.shape[1] != width:
        raise ValueError(f"Records must be an array of shape (n, {width}), got shape {x.shape}.")
    return x


def in_blocks(draw, codes, n_rows, shape, dtype):
    """Draw reports block by block, so that temporary arrays stay small for any number of clients."""
    if len(codes) <= n_rows:
        return draw(codes).astype(dtype, copy=False)
    out = np.empty((len(codes), *shape), dtype=dtype)
    for start in range(0, len(codes), n_rows):
        out[start:start + n_rows] = draw(codes[start:start + n_rows])
    return out


def is_integer(reports):
    """Whether an array has an integer dtype, as all reports do."""
    return np.asarray(reports).dtype.kind in "iu"
