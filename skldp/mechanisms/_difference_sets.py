r"""Cyclic difference sets: subsets D of Z_K in which every difference except zero occurs equally often.

With :math:`|D| = w` every non-zero element of Z_K is a difference of :math:`\lambda = w(w-1)/(K-1)` pairs of D. Three
families are built here: the set {0}; the quadratic residues of a prime K, 3 modulo 4; and Singer's sets, the
hyperplanes of a projective space over a finite field. K and w identify the set: of two with the same numbers, Singer's
is taken.
"""

from functools import lru_cache
from itertools import count, product

import numpy as np

from skldp.mechanisms._finite_fields import finite_field, prime_factors, prime_power

_MIN_TERMS = 3  # of a recurrence; two give w = 1


@lru_cache(maxsize=8)
def difference_set(n_cells: int, n_near: int) -> np.ndarray:
    r"""Return the sorted difference set with ``n_near`` elements of 0 .. ``n_cells`` - 1, or raise an error.

    Parameters
    ----------
    n_cells : int
        Number K of cells.
    n_near : int
        Number w of elements.

    Returns
    -------
    ndarray of int64, shape (n_near,), read-only

    Notes
    -----
    Singer's set over the field of q elements is :math:`\{i: s_i = 0\}` for i from 0 to K - 1, where s satisfies a
    linear recurrence of m terms whose polynomial f makes the powers of x, times constants, all non-zero polynomials
    modulo f. Among such polynomials the first one in lexicographic order is used, so the set is a function of K and w.

    References
    ----------
    J. Singer (1938). A theorem in finite projective geometry and some applications to number theory. Transactions of
    the AMS.

    Examples
    --------
    >>> difference_set(7, 3)
    array([0, 1, 3])
    >>> difference_set(11, 5)
    array([1, 3, 4, 5, 9])
    """
    if n_near == 1:
        members = np.zeros(1, dtype=np.int64)
    elif (found := singer_order(n_cells, n_near)) is not None:
        members = np.flatnonzero(_recurrence(found[0], found[1], n_cells) == 0)
    elif has_residues(n_cells, n_near):
        members = np.unique(np.arange(1, n_near + 1, dtype=np.int64) ** 2 % n_cells)
    else:
        raise ValueError(f"There is no difference set with {n_near} of {n_cells} elements here.")
    members.flags.writeable = False
    return members


def designs(fewest, most):
    """Yield (n_cells, n_near) of all sets with more than one element and ``fewest`` to ``most`` cells."""
    for q in count(2):
        if q * q + q + 1 > most:
            break
        if prime_power(q) is None:
            continue
        n_near, n_cells = q + 1, q * q + q + 1
        while n_cells <= most:
            if n_cells >= fewest:
                yield n_cells, n_near
            n_near, n_cells = n_cells, q * n_cells + 1
    # Of the quadratic residues only the smallest set is of use: all have the same share of members.
    for n_cells in count(max(fewest, 7) + (3 - max(fewest, 7)) % 4, 4):
        if n_cells > most:
            break
        if has_residues(n_cells, (n_cells - 1) // 2):
            yield n_cells, (n_cells - 1) // 2
            break


def singer_order(n_cells, n_near):
    """Return q and the number of terms of the recurrence of Singer's set with these numbers; None if there is none."""
    if n_near < 2 or (n_cells - 1) % n_near:
        return None
    q, n_terms, size = (n_cells - 1) // n_near, 1, 1
    if q < 2 or prime_power(q) is None:
        return None
    while size < n_cells:
        size, n_terms = q * size + 1, n_terms + 1
    return (q, n_terms) if size == n_cells and n_terms >= _MIN_TERMS else None


def has_residues(n_cells, n_near):
    """Whether the quadratic residues of ``n_cells`` are a difference set with ``n_near`` elements."""
    return n_cells % 4 == 3 and n_near == (n_cells - 1) // 2 and prime_factors(n_cells) == [n_cells]


def _recurrence(q, n_terms, length):
    """Return ``length`` terms of the sequence that begins with zeros and a one, for the first polynomial that fits."""
    field = finite_field(q)
    taps = _first_polynomial(field, n_terms)
    sequence = np.zeros(length + n_terms, dtype=field.dtype)
    sequence[n_terms - 1] = 1
    # A power of x modulo f tells every term from n_terms consecutive ones: the known part doubles in each step.
    known, power = n_terms, taps
    while known < len(sequence):
        start = known - n_terms  # term i + known is the power applied to the terms from i on
        size = min(start + 1, len(sequence) - known)
        sequence[known:known + size] = field.combine(power, sequence, size)
        known += size
        power = _power_of_x(field, known, taps)
    return sequence[:length]


def _first_polynomial(field, n_terms):
    r"""Return the first taps c for which x has the order K modulo constants and :math:`x^m = \sum_jc_jx^j`."""
    n_cells = (field.q**n_terms - 1) // (field.q - 1)
    parts = [n_cells // factor for factor in prime_factors(n_cells)]
    for rest in product(range(field.q), repeat=n_terms - 1):
        for constant in range(1, field.q):
            taps = (constant, *rest[::-1])
            if _is_constant(_power_of_x(field, n_cells, taps)) and not any(
                    _is_constant(_power_of_x(field, part, taps)) for part in parts):
                return taps
    raise AssertionError("every field has such a polynomial")


def _is_constant(polynomial):
    return not any(polynomial[1:])


def _power_of_x(field, exponent, taps):
    """Return the coefficients of a power of x modulo the polynomial with given taps."""
    result = (1,) + (0,) * (len(taps) - 1)
    for bit in bin(exponent)[2:]:
        result = _product(field, result, result, taps)
        if bit == "1":
            result = _times_x(field, result, taps)
    return result


def _times_x(field, polynomial, taps):
    shifted = (0, *polynomial[:-1])
    return tuple(field.add(low, field.multiply(polynomial[-1], tap)) for low, tap in zip(shifted, taps))


def _product(field, one, other, taps):
    total = (0,) * len(taps)
    for factor in reversed(one):
        total = _times_x(field, total, taps)
        total = tuple(field.add(value, field.multiply(factor, term)) for value, term in zip(total, other))
    return total
