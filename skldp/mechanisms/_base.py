"""What every mechanism is: it draws a report and knows the probability of that report."""

import math
from abc import ABC, abstractmethod

import numpy as np

from skldp.mechanisms._encoding import encode_category
from skldp.privacy._words import SystemWords, word_source


class Mechanism(ABC):
    """A randomiser of one record.

    ``encode`` clips records to the public domain and turns them into integers, without ever raising or warning about a
    value; ``randomize`` draws integer reports; ``decode`` puts reports on the natural scale; ``log_prob`` is the
    log-probability of a report given a record; ``valid`` says which reports an honest client could have sent.
    Mechanisms are immutable and compare by value.
    """

    epsilon: float
    delta: float = 0.0

    def randomize(self, x, rng=None):
        """Draw one report for each record.

        Parameters
        ----------
        x : array-like
            Records. Values outside the domain are clipped, NaN becomes a fixed public value.
        rng : None, int, Generator, RandomState or a source of words
            Where the noise comes from. ``None``, the only private choice, is the operating system's entropy. Anything
            else is a simulation: the stream depends on the seed, on this mechanism and on the records.

        Returns
        -------
        ndarray of int
            Reports, one row for each record.
        """
        codes = self.encode(x)
        return self._draw(codes, SystemWords() if rng is None else word_source(rng, repr(self), codes))

    @property
    def private(self):
        """Whether there is any noise at all: False for ``epsilon=inf``."""
        return not math.isinf(self.epsilon)

    @abstractmethod
    def encode(self, x):
        """Clip records to the public domain and turn them into integers."""

    @abstractmethod
    def _draw(self, codes, source):
        """Draw reports for encoded records."""

    @abstractmethod
    def decode(self, reports):
        """Put integer reports on the natural scale of the records."""

    @abstractmethod
    def log_prob(self, reports, x):
        """Log-probability of reports given records."""

    @abstractmethod
    def valid(self, reports):
        """Mask of the reports that an honest client could have sent."""


class CategoryMechanism(Mechanism):
    """A randomiser of one category of ``n_categories``."""

    n_categories: int

    @property
    def certain(self):
        """Whether the report is the record: without noise, or where there is only one category to tell."""
        return not self.private or self.n_categories == 1

    def encode(self, x):
        """Turn category numbers into integers, -1 for an unknown one."""
        return encode_category(x, self.n_categories)

    def decode(self, reports):
        """The reports as they are."""
        return np.asarray(reports)


def in_blocks(draw, codes, n_rows, shape, dtype):
    """Draw reports block by block, so that temporaries stay small whatever the number of clients."""
    out = np.empty((len(codes), *shape), dtype=dtype)
    for start in range(0, len(codes), n_rows):
        out[start:start + n_rows] = draw(codes[start:start + n_rows])
    return out


def is_integer(reports):
    """Whether an array holds integers: nothing else is ever sent."""
    return np.asarray(reports).dtype.kind in "iu"
