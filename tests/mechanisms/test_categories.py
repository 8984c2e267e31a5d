import itertools
from fractions import Fraction

import numpy as np
import pytest

from skldp.mechanisms import RandomizedResponse, SubsetSelection, UnaryEncoding
from skldp.mechanisms._category_base import column_sums
from skldp.mechanisms._unary_encoding import below_threshold
from skldp.privacy import SeededWords
from tests.mechanisms.registry import Scripted, every_report


@pytest.mark.parametrize("threshold", [0, 1, 2**56 - 1, 2**56, 3 * 2**56 + 12345, 2**63, 2**64 - 1, 2**64])
def test_a_byte_and_its_tie_breaker_compare_the_whole_word(threshold):
    """The word is a byte followed by the top 56 bits of a second word; the bit is one if it is below the threshold."""
    leading, rest = divmod(threshold, 2**56)
    octets = sorted({0, 1, 2, 127, 128, 254, 255, min(leading, 255), max(min(leading, 256) - 1, 0)})
    for octet, tail in itertools.product(octets, sorted({0, max(rest - 1, 0), rest, min(rest + 1, 2**56 - 1)})):
        bit = below_threshold(threshold, (1,), Scripted([tail << 8], [octet]))[0]
        assert bit == (octet * 2**56 + tail < threshold)


def test_floyds_algorithm_draws_every_subset_equally_often():
    """Enumerate all outcomes of small dice: the subsets without (and with) the record are equally frequent."""
    mechanism = SubsetSelection(epsilon=0.3, n_categories=5)
    size = mechanism.subset_size
    assert size == 2
    places = range(4 - size, 4)
    for record, near in itertools.product(range(5), (True, False)):
        level = 0 if near else 2**64 - 1
        counts = {}
        for dice in itertools.product(*(range(place + 1) for place in places)):
            words = [-(-(die << 64) // (place + 1)) for die, place in zip(dice, places)]
            row = mechanism._draw_block(np.array([record]), Scripted([level, *words]))[0]
            counts[tuple(row.tolist())] = counts.get(tuple(row.tolist()), 0) + 1
        assert all(sum(row) == size and row[record] == near for row in counts)
        assert len(set(counts.values())) == 1
        assert len(counts) == (4 if near else 6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("d", [2, 3, 16, 101])
def test_subset_size_is_optimal(epsilon, d):
    mechanism = SubsetSelection(epsilon=epsilon, n_categories=d)
    sizes = np.arange(1, d)
    information = sizes * (d - sizes) / (d - sizes + sizes * np.exp(epsilon)) ** 2
    assert information[mechanism.subset_size - 1] == pytest.approx(information.max())


CLASSES = [RandomizedResponse, UnaryEncoding, SubsetSelection]
SMALL = [cls(epsilon=epsilon, n_categories=d) for cls in CLASSES for epsilon in (0.3, 2.0, np.inf) for d in (1, 2, 5)]
SMALL += [SubsetSelection(epsilon=0.7, n_categories=5, subset_size=size) for size in (1, 2, 3, 4)]


def enumerated(mechanism):
    """All reports as rows of bits, and their probabilities given each category."""
    reports, d = every_report(mechanism), mechanism.n_categories
    probability = np.exp([mechanism.log_prob(reports, np.full(len(reports), category)) for category in range(d)])
    rows = np.eye(d)[reports] if reports.ndim == 1 else reports.astype(float)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-9)
    return rows, probability


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_probabilities_of_one_and_of_two_categories_by_enumeration(mechanism):
    rows, probability = enumerated(mechanism)
    d = mechanism.n_categories
    for record in range(d):
        single = probability[record] @ rows
        np.testing.assert_allclose(single, np.where(np.arange(d) == record, mechanism.p, mechanism.q), atol=1e-12)
        pairs = rows.T @ (probability[record][:, None] * rows)
        one, neither = mechanism.pair_probabilities
        for other in set(range(d)) - {record}:
            assert pairs[record, other] == pytest.approx(one, abs=1e-12)
            for third in set(range(d)) - {record, other}:
                assert pairs[other, third] == pytest.approx(neither, abs=1e-12)


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_ratio_of_probabilities_by_enumeration(mechanism):
    rows, probability = enumerated(mechanism)
    if mechanism.certain and mechanism.n_ones == 1:
        assert mechanism.ratio == np.inf and (rows.T[probability > 0] == 1).all()
        return
    for row, given in zip(rows, probability.T):
        inside, outside = given[row == 1], given[row == 0]
        if len(inside) and len(outside):
            np.testing.assert_allclose(inside[:, None] / outside, mechanism.ratio, rtol=1e-9)
    assert mechanism.ratio <= np.exp(mechanism.epsilon) * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_probabilities_of_sets_without_the_record_by_enumeration(mechanism):
    rows, probability = enumerated(mechanism)
    with_own, without = mechanism.others_contained(4)
    own = rows[:, 0] == 1
    for n_others in range(min(mechanism.n_categories, 5)):
        contained = rows[:, 1:n_others + 1].all(axis=1)
        assert probability[0] @ (contained & own) == pytest.approx(mechanism.p * with_own[n_others], abs=1e-12)
        assert probability[0] @ (contained & ~own) == pytest.approx((1 - mechanism.p) * without[n_others], abs=1e-12)


@pytest.mark.parametrize("mechanism", SMALL, ids=repr)
def test_numbers_of_categories_in_a_report(mechanism):
    rows, probability = enumerated(mechanism)
    possible = (probability > 0).any(axis=0)
    numbers = set(rows[possible].sum(axis=1).astype(int).tolist())
    assert (mechanism.n_ones is None) == (len(numbers) > 1)
    assert mechanism.ones_range == (min(numbers), max(numbers))
    assert mechanism.names_one == (numbers == {1} or mechanism.n_categories == 1)
    if mechanism.n_ones is not None:
        assert numbers == {mechanism.n_ones}


@pytest.mark.parametrize("cls", CLASSES)
def test_width_and_counts_of_reports(cls):
    mechanism = cls(epsilon=1.0, n_categories=5)
    reports = mechanism.randomize(np.arange(5).repeat(200), rng=0)
    rows = reports.reshape(1000, -1)
    assert rows.shape[1] == mechanism.width and mechanism.sends_bits == (mechanism.width == 5)
    expected = rows.sum(axis=0, dtype=int) if mechanism.sends_bits else [(rows == k).sum() for k in range(5)]
    counts = mechanism.counts(reports)
    assert counts.tolist() == list(expected) and counts.dtype == np.int64


@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("d", [2, 3, 20])
def test_frequencies_are_unbiased(cls, d):
    mechanism, n = cls(epsilon=1.0, n_categories=d), 100_000
    truth = np.random.default_rng(0).dirichlet(np.ones(d))
    records = np.random.default_rng(1).choice(d, size=n, p=truth)
    estimate = mechanism.frequencies(mechanism.counts(mechanism.randomize(records, rng=0)), n)
    error = np.abs(estimate - np.bincount(records, minlength=d) / n).max()
    assert error < 5 * np.sqrt(0.25 / n) / (mechanism.p - mechanism.q)


def test_subsets_of_one_are_randomised_response():
    subset, response = (cls(epsilon=2.0, n_categories=3) for cls in (SubsetSelection, RandomizedResponse))
    assert subset.subset_size == 1
    assert subset.p == pytest.approx(response.near_probability, rel=1e-12)


@pytest.mark.parametrize("cls", CLASSES)
def test_an_unknown_category_becomes_a_uniformly_random_one(cls):
    mechanism = cls(epsilon=20.0, n_categories=4)
    reports = mechanism.randomize(np.full(40_000, 99), rng=0)
    counts = np.bincount(reports, minlength=4) if reports.ndim == 1 else reports.sum(axis=0, dtype=int)
    assert np.abs(counts / counts.sum() - 0.25).max() < 0.02


@pytest.mark.parametrize("cls", CLASSES)
def test_a_single_category_is_allowed(cls):
    mechanism = cls(epsilon=1.0, n_categories=1)
    reports = mechanism.randomize(np.zeros(100, dtype=int), rng=0)
    assert mechanism.valid(reports).all()


@pytest.mark.parametrize("n_rows", [0, 1, 254, 255, 256, 1000])
def test_column_sums(n_rows):
    bits = (SeededWords(b"bits").bytes(n_rows * 7).reshape(n_rows, 7) < 200).astype(np.uint8)
    assert column_sums(bits).tolist() == bits.sum(axis=0, dtype=int).tolist()


def test_all_ones_do_not_overflow_the_byte_sums():
    assert column_sums(np.ones((10_000, 3), dtype=np.uint8)).tolist() == [10_000] * 3


def test_unary_window_refuses_improbable_numbers_of_ones():
    mechanism = UnaryEncoding(epsilon=1.0, n_categories=200)
    honest = mechanism.randomize(np.arange(200).repeat(100))
    assert mechanism.valid(honest).all()
    assert not mechanism.valid(np.ones((1, 200), dtype=np.uint8)).any()
    assert not mechanism.valid(np.zeros((1, 200), dtype=np.uint8)).any()
    assert not mechanism.valid(np.full((1, 200), 2, dtype=np.uint8)).any()
    low, high = mechanism.ones_range
    ones = mechanism.q * 199 + 0.5
    assert ones - 8 * np.sqrt(ones) < low < ones < high < ones + 8 * np.sqrt(ones)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 20.0])
@pytest.mark.parametrize("n_levels, window", [(1024, "auto"), (20, "auto"), (1024, 0.3), (8, 0.0)])
def test_square_wave_epsilon_is_exact_by_enumeration(epsilon, n_levels, window):
    """The likelihood ratio, from counts of all 64-bit words, is at most e^epsilon."""
    from skldp.mechanisms import SquareWave
    from skldp.privacy import exp_lower

    mechanism = SquareWave(epsilon=epsilon, n_levels=n_levels, window=window)
    threshold, word = mechanism._threshold, 2**64
    most_near = Fraction(threshold, word) * Fraction(-(-word // mechanism.n_near), word)
    least_far = Fraction(word - threshold, word) * Fraction(word // n_levels, word)
    assert most_near / least_far <= exp_lower(epsilon) * (1 + Fraction(1, 10**50))
    assert most_near / least_far >= exp_lower(epsilon) * (1 - Fraction(1, 10**9))
