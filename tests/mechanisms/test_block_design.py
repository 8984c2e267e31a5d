"""The block design: the design property, exact probabilities by enumeration, thresholds and the choice of the set."""

from fractions import Fraction

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms import BlockDesign, RandomizedResponse, SubsetSelection
from skldp.mechanisms._block_design import best_design, variance_of_rare
from skldp.mechanisms._difference_sets import designs, difference_set, singer_order
from skldp.mechanisms._finite_fields import finite_field, prime_factors, prime_power
from skldp.privacy import exp_lower
from tests.mechanisms.registry import Scripted

WORD = 2**64
SETS = sorted(set(designs(2, 700)) | {pair for first in range(7, 60) for pair in designs(first, 120)})
MECHANISMS = [BlockDesign(epsilon=epsilon, n_categories=d, design=design) for epsilon in (0.1, 1.0, 4.0, 20.0)
              for d, design in ((3, None), (5, (7, 3)), (7, (7, 3)), (6, (11, 5)), (17, (21, 5)), (31, (31, 15)))]


@pytest.mark.parametrize("n_cells, n_near", SETS)
def test_every_difference_occurs_equally_often(n_cells, n_near):
    members = difference_set(n_cells, n_near)
    differences = (members[:, None] - members) % n_cells
    counts = np.bincount(differences.ravel(), minlength=n_cells)
    assert counts[0] == n_near == len(members)
    assert set(counts[1:].tolist()) == {n_near * (n_near - 1) // (n_cells - 1)}


def test_singers_sets_and_quadratic_residues_are_among_them():
    assert {(7, 3), (13, 4), (21, 5), (31, 6), (57, 8), (73, 9), (91, 10), (40, 13), (11, 5), (59, 29)} <= set(SETS)
    assert singer_order(2396745, 299593) == (8, 8) and singer_order(11, 5) is None


def test_a_large_set_has_the_design_property():
    """The sum of products of the indicator with its shift by t is the number of pairs with the difference t."""
    n_cells, n_near = 88573, 29524
    indicator = np.zeros(n_cells, dtype=np.int64)
    indicator[difference_set(n_cells, n_near)] = 1
    shares = {int(indicator @ np.roll(indicator, shift)) for shift in (1, 2, 3, 5, 1000, 29524, 44286, 88572)}
    assert shares == {n_near * (n_near - 1) // (n_cells - 1)}


@pytest.mark.parametrize("q", [4, 7, 8, 9, 25, 27])
def test_fields(q):
    field, elements = finite_field(q), range(q)
    for a in elements:
        assert field.add(a, 0) == a and field.multiply(a, 1) == a and field.multiply(a, 0) == 0
        assert sorted(field.add(a, b) for b in elements) == list(elements)
        if a:
            assert sorted(field.multiply(a, b) for b in elements) == list(elements)
        for b in elements:
            assert field.multiply(a, b) == field.multiply(b, a)
            for c in (1, q // 2, q - 1):
                assert field.multiply(a, field.add(b, c)) == field.add(field.multiply(a, b), field.multiply(a, c))
    sequence = np.arange(q, dtype=field.dtype)
    combined = field.combine((2, 0, q - 1), sequence, q - 2)
    assert combined.tolist() == [field.add(field.multiply(2, i), field.multiply(q - 1, i + 2)) for i in range(q - 2)]


def test_prime_powers():
    assert [q for q in range(2, 33) if prime_power(q)] == [2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31,
                                                           32]
    assert prime_factors(360) == [2, 3, 5] and prime_factors(97) == [97]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_epsilon_is_exact_by_enumeration_of_words(mechanism):
    """The largest ratio of the numbers of words of a near and of a far report is at most e^epsilon, and nearly that."""
    n_cells, n_near = mechanism.design
    threshold = mechanism._threshold
    most_near = Fraction(threshold, WORD) * Fraction(-(-WORD // n_near), WORD)
    least_far = Fraction(WORD - threshold, WORD) * Fraction(WORD // (n_cells - n_near), WORD)
    assert most_near / least_far <= exp_lower(mechanism.epsilon) * (1 + Fraction(1, 10**50))
    assert most_near / least_far >= exp_lower(mechanism.epsilon) * (1 - Fraction(1, 10**9))


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_every_word_leads_to_its_own_report(mechanism):
    """Near words reach each of the w near reports once, and far words each of the K - w others once."""
    (n_cells, n_near), threshold = mechanism.design, mechanism._threshold
    members = set(difference_set(n_cells, n_near).tolist())
    for code in (0, mechanism.n_categories // 2, mechanism.n_categories - 1):
        near = {(code - member) % n_cells for member in members}
        for level, expected in ((0, near), (threshold - 1, near), (threshold, set(range(n_cells)) - near),
                                (WORD - 1, set(range(n_cells)) - near)):
            places = [-(-place * WORD // len(expected)) for place in range(len(expected))]
            source = Scripted([0] * len(places) + [level] * len(places) + places)
            reports = mechanism._draw(np.full(len(places), code), source)
            assert sorted(reports.tolist()) == sorted(expected) and not source.left


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
def test_probabilities_by_enumeration(mechanism):
    d, reports = mechanism.n_categories, np.arange(mechanism.n_counts)
    probability = np.exp([mechanism.log_prob(reports, np.full(len(reports), code)) for code in range(d)])
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    near = probability > probability.min() * (1 + mechanism.epsilon / 2)
    contained = probability @ near.T  # given each record, that the report is near each category
    expected = np.where(np.eye(d) == 1, mechanism.p, mechanism.q)
    np.testing.assert_allclose(contained, expected, rtol=1e-9, atol=1e-15)
    unknown = np.exp(mechanism.log_prob(reports, np.full(len(reports), -1)))
    np.testing.assert_allclose(unknown, probability.mean(axis=0), rtol=1e-12)
    assert probability.max() / probability.min() == pytest.approx(mechanism.ratio, rel=1e-9)
    rng = np.random.default_rng(0)
    values, cells = rng.normal(size=(3, d)), rng.normal(size=(2, len(reports)))
    np.testing.assert_allclose(mechanism.sum_blocks(values), values @ near, atol=1e-12)
    np.testing.assert_allclose(mechanism.sum_near(cells), cells @ near.T, atol=1e-12)


def test_marginal_probabilities_are_those_of_subset_selection():
    block = BlockDesign(epsilon=2.0, n_categories=57, design=(57, 8))
    subset = SubsetSelection(epsilon=2.0, n_categories=57, subset_size=8)
    assert (block.p, block.q, block.ratio) == pytest.approx((subset.p, subset.q, subset.ratio), rel=1e-12)


def test_the_set_of_one_element_is_randomised_response():
    block, response = BlockDesign(epsilon=6.0, n_categories=4), RandomizedResponse(epsilon=6.0, n_categories=4)
    assert block.design == (4, 1) and block.names_one
    assert (block.p, block.q, block.ratio) == pytest.approx((response.p, response.q, response.ratio), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0, 4.0])
@pytest.mark.parametrize("d", [2000, 22_000, 1_000_000])
def test_the_loss_of_the_chosen_design(epsilon, d):
    """At most 1.5 % more variance than the best subsets of d categories, with a number of cells within the limits."""
    design = best_design(epsilon, d)
    size = SubsetSelection(epsilon=epsilon, n_categories=d).subset_size
    assert 1.0 <= variance_of_rare(epsilon, *design) / variance_of_rare(epsilon, d, size) < 1.015
    assert d <= design[0] <= max(8 * d, 10**4)


def test_no_design_has_much_less_variance_than_the_chosen_one():
    for epsilon in (0.1, 0.5, 1.0, 3.0, 6.0, 9.0):
        for d in (3, 10, 100, 1500):
            least = min(variance_of_rare(epsilon, *one) for one in [(d, 1), *designs(d, max(8 * d, 10**4))])
            assert variance_of_rare(epsilon, *best_design(epsilon, d)) <= 1.002 * least * (1 + 1e-12)


def test_estimates_are_unbiased_and_have_their_variance():
    mechanism, n = BlockDesign(epsilon=2.0, n_categories=3000), 100_000
    records = np.random.default_rng(1).integers(100, size=n)
    counts = mechanism.counts(mechanism.randomize(records, rng=0))
    assert counts.dtype == np.int64 and counts.shape == (mechanism.n_counts,) and counts.sum() == n
    error = mechanism.frequencies(counts, n) - np.bincount(records, minlength=3000) / n
    expected = np.sqrt(variance_of_rare(2.0, *mechanism.design) / n)
    assert abs(error[100:].mean()) < 4 * expected / np.sqrt(2900)
    assert error[100:].std() == pytest.approx(expected, rel=0.06)
    assert np.abs(error[:100]).max() < 5 * expected


@pytest.mark.parametrize("design", [(8, 3), (6, 1), (4, 2), (3, 1), (7, 0), (7.0, 3), "auto", (7,), (2**40, 5)])
def test_impossible_designs_are_refused(design):
    with pytest.raises(InvalidParameterError, match="design"):
        BlockDesign(epsilon=1.0, n_categories=5, design=design)


def test_a_report_of_a_million_categories_has_four_bytes():
    assert BlockDesign(epsilon=2.0, n_categories=10**6).report_dtype.itemsize == 4
