"""One value of each client, out of several: the coin, the budget, the form of reports, and possible counts."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.privacy import SeededWords
from skldp.protocols import Aggregate, Protocol, SampledValueProtocol, ValueProtocol
from skldp.protocols._column_sampling import draw_columns
from skldp.protocols._tallies import Tally
from tests.protocols.registry import simulate

OPTIONS = {"square_wave": {}, "laplace": {"mechanism": "laplace"}, "gaussian": {"mechanism": "gaussian", "delta": 1e-6}}
each_mechanism = pytest.mark.parametrize("mechanism", OPTIONS)
BINARY = SampledValueProtocol(epsilon=1.0, bounds=(0, 1), n_levels=1, window=0.0)
N = 100_000


class CountedWords(SeededWords):
    """Seeded words that record how many were drawn in each call."""

    def __init__(self, key):
        super().__init__(key)
        self.calls = []

    def words(self, n_words):
        self.calls.append(n_words)
        return super().words(n_words)


@each_mechanism
def test_the_coin_is_drawn_first_and_does_not_depend_on_the_records(mechanism):
    protocol = SampledValueProtocol(n_features=5, **OPTIONS[mechanism])
    records = (np.zeros((50, 5)), np.full((50, 5), math.nan), np.random.default_rng(0).normal(size=(50, 5)))
    sources = [CountedWords(b"x") for _ in records]
    columns = [next(protocol._draw(X, None, source))[:, 0] for X, source in zip(records, sources)]
    expected = draw_columns(50, 5, SeededWords(b"x"))
    assert all((found == expected).all() for found in columns)
    assert sources[0].calls[0] == 50 and sources[0].calls == sources[1].calls == sources[2].calls


def test_the_coin_is_uniform_and_each_value_has_the_whole_budget():
    """The frequencies of all reports of worst-case neighbours: the ratio of their probabilities is e^epsilon."""
    counts = []
    for value, seed in ((0.0, 0), (1.0, 1)):
        reports = simulate(BINARY, np.full((N, 2), value), seed=seed)
        counts.append(np.array([np.count_nonzero((reports[:, 0] == j) & (reports[:, j + 1] == z))
                                for j in (0, 1) for z in (0, 1)]))
        assert counts[-1].sum() == N
        near = math.e / (math.e + 1) / 2
        share = np.array([near, 0.5 - near] if value == 0 else [0.5 - near, near])
        assert stats.chisquare(counts[-1], N * np.tile(share, 2)).pvalue > 1e-3
    ratio = np.maximum(counts[0] / counts[1], counts[1] / counts[0])
    np.testing.assert_allclose(np.log(ratio), BINARY.epsilon, atol=0.05)


@pytest.mark.parametrize("n_features", [2, 3, 300])
def test_columns_are_equally_probable(n_features):
    columns = draw_columns(N, n_features, SeededWords(b"coin"))
    assert stats.chisquare(np.bincount(columns, minlength=n_features)).pvalue > 1e-3


@each_mechanism
def test_the_mechanism_is_that_of_one_value_with_the_whole_budget(mechanism):
    one = ValueProtocol(epsilon=2.0, bounds=(-1, 3), **OPTIONS[mechanism])
    sampled = SampledValueProtocol(epsilon=2.0, bounds=(-1, 3), n_features=7, **OPTIONS[mechanism])
    assert sampled.randomizer == one.randomizer and sampled.cells.n_cells == one.cells.n_cells
    assert (sampled.window, sampled.delta) == (one.window, one.delta)


@each_mechanism
def test_without_noise_a_report_is_the_encoded_value_of_its_column(mechanism):
    options = {"epsilon": math.inf, "bounds": (-4, 4), "n_features": 3, **OPTIONS[mechanism]}
    X = np.random.default_rng(0).normal(size=(200, 3))
    reports, plain = SampledValueProtocol(**options).privatize(X), ValueProtocol(**options).privatize(X)
    chosen = np.arange(3) == reports[:, :1]
    assert len(np.unique(reports[:, 0])) == 3
    np.testing.assert_array_equal(reports[:, 1:], np.where(chosen, plain, 0))


def test_rows_of_another_form_are_invalid():
    protocol = SampledValueProtocol(n_features=3)
    low, high = protocol.randomizer.clamp
    rows = {(0, 5, 0, 0): True, (2, 0, 0, high): True, (1, 0, low, 0): True, (1, 0, 0, 0): True, (3, 0, 0, 0): False,
            (-1, 0, 0, 5): False, (0, 0, 5, 0): False, (0, 5, 1, 0): False, (0, high + 1, 0, 0): False,
            (1, 0, low - 1, 0): False, (2**40, 5, 0, 0): False, (0, 5, 0, 2**40): False}
    assert protocol.check(np.array(list(rows))).tolist() == list(rows.values())
    with pytest.raises(InvalidReportError, match=r"8 of 12 reports .* \(rows 4, 5, 6, 7, 8, ...\)"):
        protocol.aggregate(np.array(list(rows)))
    assert protocol.aggregate(np.array(list(rows)), on_invalid="drop").n_rejected == 8


def test_counts_of_each_column():
    protocol = SampledValueProtocol(n_features=3)
    reports = np.array([[2, 0, 0, 7], [0, 7, 0, 0], [2, 0, 0, 7], [2, 0, 0, -3], [0, 0, 0, 0]])
    tally, = protocol.aggregate(reports).parts.values()
    start = protocol.randomizer.half_window
    expected = np.zeros_like(tally.sums)
    expected[2, start + 7], expected[2, start - 3], expected[0, start + 7], expected[0, start] = 2, 1, 1, 1
    np.testing.assert_array_equal(tally.sums, expected)
    assert tally.n_reports == 5 and tally.sums.sum() == 5


def test_counts_that_do_not_add_up_to_the_reports_are_refused():
    protocol = SampledValueProtocol(n_features=3)
    sums = protocol.aggregate(simulate(protocol, np.zeros((50, 3)))).parts[protocol].sums
    wrapped = sums.copy()
    wrapped[0, :4] += 2**62  # four of these are 0 in int64
    negative = sums.copy()
    negative[0, 0], negative[1, 0] = -1, negative[1, 0] + 1 + sums[0, 0]
    for wrong in (Tally(49, sums), Tally(150, sums), Tally(50, sums[:2]), Tally(50, wrapped), Tally(50, negative)):
        assert not wrong.fits(protocol)
        with pytest.raises(InvalidReportError, match="does not hold sums of reports"):
            Aggregate.from_json(Aggregate({protocol: wrong}).to_json())
    assert Tally(50, sums).fits(protocol)
    assert not Tally(50, sums).fits(ValueProtocol(n_features=3))


def test_the_width_tells_the_number_of_columns():
    protocol = SampledValueProtocol(epsilon=2.0, n_features=4)
    assert protocol.width == 5
    for n_features in (2, 3, 57):
        other = SampledValueProtocol(epsilon=2.0, n_features=n_features)
        assert protocol.with_width(other.width) == other and other.with_width(5) == protocol
    assert protocol.with_width(1).n_features == protocol.with_width(2).n_features == 2
    for n_features in (0, 1, 4097, 2.5):
        with pytest.raises(InvalidParameterError, match="n_features"):
            SampledValueProtocol(n_features=n_features)


def test_the_dtype_holds_values_and_columns():
    assert SampledValueProtocol(n_levels=1, window=0.0).report_dtype == np.uint8
    assert SampledValueProtocol(n_levels=1, window=0.0, n_features=257).report_dtype == np.uint16
    assert SampledValueProtocol(n_features=300).report_dtype == np.int16
    wide = SampledValueProtocol(n_levels=1, window=0.0, n_features=300)
    assert wide.privatize(np.zeros((2000, 300)))[:, 0].max() > 255


def test_a_sampled_protocol_is_another_kind():
    split, sampled = ValueProtocol(n_features=2), SampledValueProtocol(n_features=2)
    assert split != sampled and split.id != sampled.id
    fields = json.loads(sampled.to_json())
    assert fields.pop("kind") == "SampledValueProtocol" and set(fields) == set(json.loads(split.to_json())) - {"kind"}
    assert type(Protocol.from_json(sampled.to_json())) is SampledValueProtocol
    with pytest.raises(InvalidReportError, match="different collections"):
        split.aggregate([]) + sampled.aggregate([])
