"""Subsets of every size satisfy their budget, not only those of the optimal size."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from skldp.mechanisms import SubsetSelection
from skldp.privacy import exp_lower
from tests.mechanisms.test_categories import Scripted


def subset_probabilities(mechanism, record):
    """Return the exact probability of every subset given a record, from counts of all words."""
    d, word, size = mechanism.n_categories, 2**64, mechanism.subset_size
    places = range(d - 1 - size, d - 1)
    levels = {0: Fraction(mechanism._threshold, word), word - 1: 1 - Fraction(mechanism._threshold, word)}
    found = {}
    for level, dice in itertools.product(levels, itertools.product(*(range(place + 1) for place in places))):
        starts = [(-(-(die << 64) // (place + 1)), -(-((die + 1) << 64) // (place + 1)))
                  for die, place in zip(dice, places)]
        row = mechanism._draw_block(np.array([record]), Scripted([level, *(first for first, _ in starts)]))[0]
        share = Fraction(math.prod(end - first for first, end in starts), word ** len(places))
        found[tuple(row.tolist())] = found.get(tuple(row.tolist()), 0) + levels[level] * share
    assert sum(found.values()) == 1 and all(sum(row) == size for row in found)
    return found


def exact_ratio(mechanism):
    """Return the largest ratio of the probabilities of a subset given two records."""
    given = [subset_probabilities(mechanism, record) for record in range(mechanism.n_categories)]
    assert all(len(one) == math.comb(mechanism.n_categories, mechanism.subset_size) for one in given)
    return max(max(one[row] for one in given) / min(one[row] for one in given) for row in given[0])


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 20.0])
@pytest.mark.parametrize("d, size", [(d, size) for d in (2, 3, 4, 5, 6) for size in range(1, d)])
def test_subset_epsilon_is_exact_for_every_size(epsilon, d, size):
    """Sizes that are not optimal for a budget satisfy it too."""
    ratio = exact_ratio(SubsetSelection(epsilon=epsilon, n_categories=d, subset_size=size))
    assert exp_lower(epsilon) * (1 - Fraction(1, 10**9)) <= ratio <= exp_lower(epsilon) * (1 + Fraction(1, 10**50))


def test_a_threshold_for_another_size_is_detected():
    """Control of the test above: with the threshold of another size the budget is exceeded."""
    mechanism = SubsetSelection(epsilon=1.0, n_categories=5, subset_size=2)
    other = SubsetSelection(epsilon=1.0, n_categories=5, subset_size=3)
    mechanism.__dict__["_threshold"] = other._threshold
    assert exact_ratio(mechanism) > exp_lower(1.0) * Fraction(3, 2)


@pytest.mark.parametrize("epsilon, d", [(1.0, 1), (np.inf, 5)])
def test_a_certain_subset_is_the_record_alone(epsilon, d):
    mechanism = SubsetSelection(epsilon=epsilon, n_categories=d, subset_size=1)
    assert mechanism.subset_size == SubsetSelection(epsilon=epsilon, n_categories=d).subset_size == 1
    assert mechanism.randomize([0], 0)[0].tolist() == [1] + [0] * (d - 1)
    assert SubsetSelection(epsilon=np.inf, n_categories=5, subset_size=3).subset_size == 1
