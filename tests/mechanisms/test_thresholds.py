"""Every comparison with a threshold T, for the words T - 1, T and T + 1; an off-by-one error would exceed epsilon."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from skldp.mechanisms import LabelledRecord, RandomizedResponse, Sphere, SquareWave, SubsetSelection, UnaryEncoding
from skldp.mechanisms._randomized_response import replace_unknown
from skldp.privacy import exp_lower, flip_threshold
from tests.mechanisms.registry import Scripted, repeat

WORD = 2**64
EPSILONS = [0.1, 1.0, 4.0, 20.0]
everyone = pytest.mark.parametrize("epsilon", EPSILONS)


def around(threshold):
    return [threshold - 1, threshold, threshold + 1]


def largest_private(epsilon, near, far, slack):
    """Return the threshold by its definition: the largest T that satisfies epsilon."""
    odds = exp_lower(epsilon) * Fraction(near, far) * (1 - slack) / (1 + slack)
    return (WORD * odds / (1 + odds)).__floor__()


@everyone
@pytest.mark.parametrize("k", [2, 5, 1000])
def test_randomised_response(epsilon, k):
    mechanism = RandomizedResponse(epsilon=epsilon, n_categories=k)
    threshold = mechanism._threshold
    assert threshold == largest_private(epsilon, 1, k - 1, Fraction(k - 1, WORD))
    assert mechanism.near_probability == threshold / WORD
    # One word for an unknown category, one for the level, one for the step to another category.
    levels = around(threshold) * 2
    source = Scripted([0] * 6 + levels + [0] * 3 + [WORD - 1] * 3)
    reports = mechanism._draw(np.ones(6, dtype=np.int64), source)
    assert reports.tolist() == [1, 2 % k, 2 % k, 1, 0, 0]


@everyone
@pytest.mark.parametrize("k", [2, 5, 40])
@pytest.mark.parametrize("n", [3, 66])
def test_subset_selection(epsilon, k, n):
    """Few rows, and enough rows that they are drawn together."""
    mechanism = SubsetSelection(epsilon=epsilon, n_categories=k)
    threshold, size = mechanism._threshold, mechanism.subset_size
    assert threshold == largest_private(epsilon, size, k - size, Fraction(2 * size * k, WORD))
    assert mechanism.p == threshold / WORD
    assert mechanism.q == pytest.approx((size - mechanism.p) / (k - 1), rel=1e-12), "a subset has `size` members"
    for record, word in itertools.product((0, k // 2, k - 1), (0, WORD // 3, WORD - 1)):
        source = Scripted([0] * n + around(threshold) * (n // 3) + [word] * n * size)
        reports = mechanism._draw(np.full(n, record), source)
        assert reports[:, record].tolist() == [1, 0, 0] * (n // 3)
        assert (reports.sum(axis=1) == size).all() and not source.left


@everyone
@pytest.mark.parametrize("n_levels, window", [(1024, "auto"), (8, 0.0), (20, 0.3)])
def test_square_wave(epsilon, n_levels, window):
    mechanism = SquareWave(epsilon=epsilon, n_levels=n_levels, window=window)
    threshold, half = mechanism._threshold, mechanism.half_window
    slack = Fraction(2 * half + 1 + n_levels, WORD)
    assert threshold == largest_private(epsilon, 2 * half + 1, n_levels, slack)
    assert mechanism.near_probability == threshold / WORD
    for code in (0, n_levels // 2, n_levels):
        # First and last position: the ends of the window, and the ends of the range or the cells next to the window.
        left = -half if code else code + half + 1
        right = n_levels + half if code < n_levels else code - half - 1
        for word, near, far in ((0, code - half, left), (WORD - 1, code + half, right)):
            reports = mechanism._draw(np.full(3, code), Scripted(around(threshold) + [word] * 3))
            assert reports.tolist() == [near, far, far]


@pytest.mark.parametrize("window", [0.0, 0.25])
def test_every_report_of_the_square_wave_has_its_own_position(window):
    """On a small grid, near reports fill the window and far reports all other positions, each once."""
    n = 8
    mechanism = SquareWave(epsilon=1.0, n_levels=n, window=window)
    half, width = mechanism.half_window, mechanism.n_near
    for code in range(n + 1):
        for level, size in ((0, width), (WORD - 1, n)):
            positions = [-(-place * WORD // size) for place in range(size)]
            reports = mechanism._draw(np.full(size, code), Scripted([level] * size + positions))
            window_of = set(range(code - half, code + half + 1))
            expected = window_of if level == 0 else set(range(-half, n + half + 1)) - window_of
            assert sorted(reports.tolist()) == sorted(expected)


@everyone
def test_unary_encoding(epsilon):
    """If a byte equals the threshold's, the 56 top bits of a word decide; the record's own bit is one with p = 1/2."""
    mechanism = UnaryEncoding(epsilon=epsilon, n_categories=4)
    threshold = flip_threshold(epsilon)
    assert (mechanism.p, mechanism.q) == (0.5, threshold / WORD)
    leading, rest = divmod(threshold, 2**56)
    words = [max(rest - 1, 0) << 8 | 255, rest << 8, (rest + 1) << 8]
    for coin in (0, 1, 254, 255):
        # One word for an unknown category, a byte for each bit, words for the ties, a byte for the record's own bit.
        octets = [leading, leading, leading, leading + 1, coin]
        reports = mechanism._draw(np.array([3]), Scripted([0] + words, octets))
        assert reports.tolist() == [[int(rest > 0), 0, 0, coin % 2]]
    if leading:
        reports = mechanism._draw(np.array([3]), Scripted([0], [leading - 1, 0, leading + 1, 255, 1]))
        assert reports.tolist() == [[1, 1, 0, 1]]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("d", [1, 2, 20])
def test_sphere(epsilon, d):
    mechanism = Sphere(epsilon=epsilon, n_features=d)
    record, m, half = np.full((1, d), 0.3 / d), d + 1, 2**62
    threshold, found = mechanism._far_threshold, []
    for word in around(threshold):
        # All other words have the sign bit 0 and the uniform number one half: the middle of the cap, or of the lower
        # half of the rest.
        report = mechanism._draw(mechanism.encode(record), Scripted([word] + [half] * 4 * m))
        found.append(mechanism.log_prob(report, record)[0])
    assert found[1] == found[2] > found[0], "below the threshold the report lies outside the cap"
    assert 0.99 * epsilon < found[1] - found[0] <= epsilon
    assert mechanism.near_probability == 1 - threshold / WORD


def test_the_label_of_a_record():
    mechanism = LabelledRecord(epsilon=2.0, n_features=2)
    threshold = mechanism.label._threshold
    middle = [2**62] * 2 * 2 * 3
    # The words of the vector, one for an unknown label, then the level and the step.
    source = Scripted(middle + [0] * 3 + around(threshold) + [0] * 3)
    reports = mechanism._draw(mechanism.encode(repeat([0.0, 0.0, 1.0], 3)), source)
    assert reports[:, 2].tolist() == [1, 0, 0]


def test_only_an_unknown_category_is_replaced():
    codes = replace_unknown(np.array([-1, 0, 1, -1]), 3, Scripted([WORD - 1] * 3 + [0]))
    assert codes.tolist() == [2, 0, 1, 0]
