"""The coin of protocols of several attributes: which table of attributes a client reports."""

from itertools import combinations
from math import prod

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms import BlockDesign
from skldp.privacy._words import SystemWords, word_source
from skldp.protocols import PairProtocol, Protocol
from skldp.protocols._table_coin import attribute_tables, best_shares, contrast_variance, draw_tables

LISTS = (("a", "b", "c"), (1, 2), ("x", "y"))
SHAPE = (3, 2, 2)


def mechanisms(shape, epsilon):
    return [BlockDesign(epsilon=epsilon, n_categories=prod(shape[a] for a in table))
            for table in attribute_tables(len(shape))]


def information(shape, tables, parts, shares):
    """Fisher information of a report on the joint table at equal frequencies, by enumeration of all reports."""
    places = np.stack(np.unravel_index(np.arange(prod(shape)), shape), axis=1)
    total = np.zeros((prod(shape),) * 2)
    for table, mechanism, share in zip(tables, parts, shares):
        own = np.ravel_multi_index(places[:, list(table)].T, [shape[a] for a in table])
        cells = np.arange(mechanism.n_counts)
        given = np.exp([mechanism.log_prob(cells, np.full(len(cells), code)) for code in own])
        total += share * given / given.mean(axis=0) @ given.T
    return total


def mean_variances(shape, tables, parts, shares):
    """Mean variances of frequencies of attributes, and of interactions in cells of pairs, by that information."""
    k, n_cells = len(shape), prod(shape)
    fisher = information(shape, tables, parts, shares)
    centred = [np.eye(size) - 1 / size for size in shape]
    mean = [np.full((size, size), 1 / size) for size in shape]

    def variance(attributes):
        """Mean variance of the effect of some attributes in a cell of their table."""
        effect = np.ones((1, 1))
        for a in range(k):
            effect = np.kron(effect, centred[a] if a in attributes else mean[a])
        # The effect in a cell of the table is the sum of that in its joint cells.
        inverse = np.linalg.pinv(effect @ fisher @ effect, rcond=1e-9, hermitian=True)
        joint = np.diag(inverse).mean()
        return joint * (n_cells / prod(shape[a] for a in attributes)) ** 2

    ones = np.mean([variance((a,)) for a in range(k)])
    return ones, np.mean([variance(pair) for pair in combinations(range(k), 2)])


@pytest.mark.parametrize("epsilon", [1.5, 4.0])
def test_shares_minimise_the_variances_of_frequencies(epsilon):
    tables, parts = attribute_tables(3), mechanisms(SHAPE, epsilon)
    assert all(one.names_one for one in parts)  # whose variances are those of the formula

    def loss(shares):
        ones, pairs = mean_variances(SHAPE, tables, parts, shares / shares.sum())
        return 16 * ones + pairs

    best = np.array(best_shares(SHAPE, parts), dtype=float)
    least, rng = loss(best), np.random.default_rng(0)
    assert all(loss(best * np.exp(0.3 * rng.normal(size=6)) + 1000 * (best == 0)) > least for _ in range(30))
    assert all(loss(best + step) > least * (1 - 1e-5) for step in 300 * np.eye(6))


def test_contrast_variance_is_the_inverse_of_the_information():
    for mechanism in (*mechanisms(SHAPE, 2.0), BlockDesign(epsilon=0.7, n_categories=7)):
        size = mechanism.n_categories
        fisher = information((size,), [(0,)], [mechanism], [1.0])
        contrast = np.zeros(size)
        contrast[:2] = np.array([1, -1]) / np.sqrt(2)
        expected = 1 / (contrast @ fisher @ contrast)
        assert contrast_variance(mechanism) == pytest.approx(expected, rel=1e-6 if mechanism.names_one else 0.03)


def test_much_noise_prefers_single_attributes_and_little_noise_pairs():
    shape = (16, 7, 6, 2)
    single = [np.array(best_shares(shape, mechanisms(shape, epsilon))) for epsilon in (0.5, 2.0, 4.0, 8.0, np.inf)]
    shares = [one[-4:].sum() / one.sum() for one in single]
    assert 0.6 < shares[0] < 0.75 and shares[1] > 0.6 > shares[2] > 0.05 and shares[3] == shares[4] == 0
    assert all((one[:6] >= 1).all() for one in single)  # every pair is reported
    assert best_shares((5, 6), mechanisms((5, 6), 1.0)) == (1,)
    assert min(best_shares((1, 1, 1, 1), mechanisms((1, 1, 1, 1), 1.0))) >= 0


def test_tables_are_drawn_with_their_shares():
    shares = (5, 0, 3, 1, 0, 7)
    drawn = draw_tables(160_000, shares, word_source(0, "", np.zeros(1)))
    expected = 160_000 * np.array(shares) / 16
    np.testing.assert_allclose(np.bincount(drawn, minlength=6), expected, atol=5 * np.sqrt(160_000) / 2)
    assert (np.bincount(drawn, minlength=6)[[1, 4]] == 0).all()


class Words(SystemWords):
    """The same words for every collection."""

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def words(self, n):
        return self.rng.integers(2**64, size=n, dtype=np.uint64)


def test_the_coin_does_not_depend_on_the_record(monkeypatch):
    """Equal words give equal tables for all records, also for those that are no categories."""
    monkeypatch.setattr("skldp.protocols._pair_protocol.SystemWords", Words)
    protocol = PairProtocol(categories=LISTS, epsilon=1.0)
    rows = [["a", 1, "x"], ["c", 2, "y"], ["?", None, float("nan")]]
    reports = [protocol.privatize(np.tile(np.array([row], dtype=object), (500, 1))) for row in rows]
    assert len(np.unique(reports[0][:, 0])) == 6
    for other in reports[1:]:
        np.testing.assert_array_equal(other[:, 0], reports[0][:, 0])
        assert (other[:, 1] != reports[0][:, 1]).any()


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_privacy_loss_of_whole_records_is_epsilon(epsilon):
    """By enumeration of all reports and records, which may differ in every attribute."""
    protocol = PairProtocol(categories=LISTS, epsilon=epsilon)
    records = np.stack(np.unravel_index(np.arange(12), SHAPE), axis=1)
    shares = np.array(protocol.shares) / sum(protocol.shares)
    logs = []
    for table, mechanism in enumerate(protocol.randomizer):
        cells = np.arange(mechanism.n_counts)
        own = protocol.cells(records, table)
        given = [mechanism.log_prob(cells, np.full(len(cells), one)) for one in own]
        logs.append(np.log(max(shares[table], 1e-300)) + np.array(given))
    logs = np.concatenate(logs, axis=1)
    assert np.exp(logs).sum(axis=1) == pytest.approx(np.ones(12))
    loss = (logs.max(axis=0) - logs.min(axis=0)).max()
    assert epsilon - 1e-9 < loss <= epsilon + 1e-12  # which is rounding of logarithms


def test_reports_of_a_table_that_nobody_sends_are_refused():
    protocol = PairProtocol(categories=LISTS, epsilon=4.0, shares=(2, 3, 4, 0, 1, 0))
    rows = np.array([[table, 0] for table in range(6)] + [[6, 0], [-1, 0], [0, protocol.randomizer[0].n_counts]])
    assert protocol.check(rows).tolist() == [True, True, True, False, True, False, False, False, False]
    tally = protocol.aggregate(rows[:3]).parts[protocol]
    forged = tally.sums.copy()
    forged[[0, protocol.starts[3]]] += [-1, 1]
    assert tally.fits(protocol) and not type(tally)(3, forged).fits(protocol)


def test_shares_are_part_of_the_description():
    protocol = PairProtocol(categories=LISTS, epsilon=1.0)
    assert Protocol.from_json(protocol.to_json()) == protocol
    assert protocol.with_epsilon(6.0) == PairProtocol(categories=LISTS, epsilon=6.0)
    chosen = PairProtocol(categories=LISTS, epsilon=1.0, shares=(1, 1, 1, 0, 0, 0))
    assert chosen.with_epsilon(6.0).shares == chosen.shares != protocol.shares
    assert chosen.id != protocol.id


@pytest.mark.parametrize("shares", [(1, 1), "coin", (1,) * 5 + (-1,), (0,) * 6, (2**31,) * 6, (0.5,) * 6, (True,) * 6,
                                    (1,) * 5 + (10**400,), (float("nan"),) * 6])
def test_impossible_shares_are_refused(shares):
    with pytest.raises(InvalidParameterError):
        PairProtocol(categories=LISTS, shares=shares)
