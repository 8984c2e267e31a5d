"""Finite fields whose elements are 0 .. q - 1: integers modulo a prime, or tables for a power of a prime."""

from functools import lru_cache
from itertools import product

import numpy as np

_LARGEST_TABLE = 256  # order of a field that is given by tables of its sums and products


class PrimeField:
    """Integers modulo a prime q."""

    dtype = np.int32

    def __init__(self, q):
        self.q = q

    def add(self, one, other):
        """Sum of two elements."""
        return (one + other) % self.q

    def multiply(self, one, other):
        """Product of two elements."""
        return one * other % self.q

    def combine(self, weights, sequence, size):
        """Sums of ``weights`` times consecutive terms, for the ``size`` first starting terms."""
        total = np.zeros(size, dtype=np.int64)
        for place, weight in enumerate(weights):
            if weight:
                total += sequence[place:place + size] * np.int64(weight)
        return total % self.q


class TableField:
    """Field of :math:`q = p^m` elements: polynomials over the integers modulo p, as numbers with the digits in base p.

    Parameters
    ----------
    p, m : int
        Prime, and exponent of at least 2.
    """

    dtype = np.uint8

    def __init__(self, p, m):
        self.q = p**m
        digits = np.array(list(product(range(p), repeat=m)))[:, ::-1]  # the constant first
        weights = p ** np.arange(m)
        sums = ((digits[:, None] + digits) % p @ weights).astype(np.uint8)
        powers = _powers_of_x(p, m)
        logarithm = np.argsort(powers)  # place of the numbers 1 .. q - 1
        self._products = np.zeros((self.q, self.q), dtype=np.uint8)
        self._products[1:, 1:] = powers[(logarithm[:, None] + logarithm) % (self.q - 1)]
        # One index into an array is several times faster than two, and lists are faster for single elements.
        self._flat_sums = sums.ravel()
        self._sum_of, self._product_of = sums.tolist(), self._products.tolist()

    def add(self, one, other):
        """Sum of two elements."""
        return self._sum_of[one][other]

    def multiply(self, one, other):
        """Product of two elements."""
        return self._product_of[one][other]

    def combine(self, weights, sequence, size):
        """Sums of ``weights`` times consecutive terms, for the ``size`` first starting terms."""
        total = np.zeros(size, dtype=np.uint8)
        for place, weight in enumerate(weights):
            if weight:
                row = self._products[weight].take(sequence[place:place + size])
                total = self._flat_sums.take(total.astype(np.uint16) * np.uint16(self.q) + row)
        return total


def _powers_of_x(p, m):
    """Return the q - 1 powers of x modulo the first polynomial for which they are all non-zero polynomials."""
    for taps in product(range(p), repeat=m):
        powers, current = [], (1,) + (0,) * (m - 1)
        for _ in range(p**m - 1):
            powers.append(sum(digit * p**place for place, digit in enumerate(current)))
            current = tuple((low + current[-1] * tap) % p for low, tap in zip((0, *current[:-1]), taps))
        if len(set(powers)) == len(powers) and 0 not in powers:
            return np.array(powers)
    raise AssertionError("every finite field has such a polynomial")


@lru_cache(maxsize=16)
def finite_field(q):
    """Return the field of q elements."""
    p, m = prime_power(q)
    return PrimeField(p) if m == 1 else TableField(p, m)


@lru_cache(maxsize=2**14)
def prime_power(q):
    """Return (p, m) if q is a power m of a prime p, and has a field here; else None."""
    p, *others = prime_factors(q)
    if others:
        return None
    m = 1
    while p**m < q:
        m += 1
    return (p, m) if m == 1 or q <= _LARGEST_TABLE else None


def prime_factors(number):
    """Return the distinct prime factors of a number above 1, in increasing order."""
    found, divisor = [], 2
    while divisor * divisor <= number:
        if number % divisor == 0:
            found.append(divisor)
            while number % divisor == 0:
                number //= divisor
        divisor += 1
    return found + [number] * (number > 1)
