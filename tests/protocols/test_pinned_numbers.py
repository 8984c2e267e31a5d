"""Defaults, widths, cells, sums and steps of protocols against independent computations."""

import itertools
import math

import numpy as np
import pytest

from skldp.mechanisms import Gaussian
from skldp.privacy import gaussian_sigma
from skldp.protocols import (
    CategoryProtocol,
    CountRoundProtocol,
    GradientProtocol,
    GradientServer,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    RecordProtocol,
    RoundProtocol,
    ValueProtocol,
)
from skldp.protocols._tallies import PairTally
from tests.mechanisms.registry import Scripted

HALF = math.sqrt(0.5)
VECTOR = {"epsilon": 1.0, "data_norm": 1.0, "n_features": 1}


@pytest.mark.parametrize("cls, expected", [
    (ValueProtocol, {"epsilon": 1.0, "delta": 0.0, "bounds": (-5.0, 5.0), "mechanism": "square_wave",
                     "n_levels": 1024, "n_features": 1}),
    (MomentProtocol, {**VECTOR, "delta": 0.0, "bounds_y": (-1.0, 1.0), "mechanism": "sphere", "y_weight": HALF,
                      "intercept_weight": HALF}),
    (LabelMomentProtocol, {**VECTOR, "delta": 0.0, "classes": (0, 1), "mechanism": "sphere", "y_weight": HALF,
                           "intercept_weight": HALF}),
    (RecordProtocol, {**VECTOR, "delta": 1e-5, "bounds_y": (-1.0, 1.0), "y_weight": HALF, "centred": True}),
    (LabelRecordProtocol, {**VECTOR, "delta": 1e-5, "classes": (0, 1), "budget_split": 0.5}),
    (GradientProtocol, {**VECTOR, "delta": 1e-5, "loss": "logistic", "classes": (-1, 1), "mechanism": "gaussian",
                        "clip_norm": 1.0, "fit_intercept": True}),
    (RoundProtocol, {**VECTOR, "delta": 0.0, "classes": (0, 1), "mechanism": "sphere", "theta": (), "centre": (),
                     "transform": (), "intercept_weight": 0.3, "link": "logit"}),
    (CountRoundProtocol, {**VECTOR, "delta": 0.0, "bounds_y": (0, 20), "mechanism": "sphere", "theta": (),
                          "centre": (), "transform": (), "intercept_weight": 0.3}),
])
def test_defaults(cls, expected):
    assert {name: getattr(cls(), name) for name in expected} == expected
    with pytest.raises(ValueError, match="n_features"):
        cls(n_features=0)


def test_other_defaults():
    assert [ValueProtocol(mechanism=name, delta=1e-5).n_levels for name in ("laplace", "gaussian")] == [2**16, 2**16]
    assert GradientProtocol(loss="squared").bounds_y == (-1.0, 1.0)
    category = CategoryProtocol(categories=[0, 1])
    assert (category.epsilon, category.delta, category.n_features) == (1.0, 0.0, 1)
    assert MomentProtocol(mechanism="gaussian").delta == LabelMomentProtocol(mechanism="gaussian").delta == 1e-5


@pytest.mark.parametrize("protocol, width", [
    (ValueProtocol(n_features=3), 3), (CategoryProtocol(categories=list("abcd"), mechanism="rr"), 1),
    (CategoryProtocol(categories=list("abcd"), mechanism="subset"), 4), (MomentProtocol(n_features=2), 10),
    (MomentProtocol(n_features=2, mechanism="gaussian"), 9), (LabelMomentProtocol(n_features=2), 9),
    (RecordProtocol(n_features=2), 3), (LabelRecordProtocol(n_features=2), 3), (GradientProtocol(n_features=2), 3),
    (GradientProtocol(n_features=2, mechanism="sphere"), 4), (GradientProtocol(n_features=2, fit_intercept=False), 2),
    (RoundProtocol(), 6), (RoundProtocol(mechanism="gaussian"), 5), (RoundProtocol(intercept_weight=0.0), 3),
], ids=lambda value: type(value).__name__)
def test_widths(protocol, width):
    assert protocol.width == width
    assert protocol.aggregate(np.empty((0, width), dtype=int)).n_reports == 0


@pytest.mark.parametrize("mechanism", ["square_wave", "laplace", "gaussian"])
def test_values_at_the_clamps_are_valid_and_values_outside_are_not(mechanism):
    protocol = ValueProtocol(epsilon=2.0, delta=1e-5, bounds=(2, 8), mechanism=mechanism)
    low, high = protocol.randomizer.clamp
    assert protocol.check(np.array([[low - 1], [low], [high], [high + 1]])).tolist() == [False, True, True, False]
    assert protocol.check(np.array([[low], [high]])).all()
    # Outside at one end only, because a batch is checked by its smallest and by its largest report.
    assert protocol.check(np.array([[low], [high + 1]])).tolist() == [True, False]
    assert protocol.check(np.array([[low - 1], [high]])).tolist() == [False, True]
    assert not protocol.check(np.array([[low - 1]])).any() and not protocol.check(np.array([[high + 1]])).any()
    sums = protocol.aggregate(np.array([[low], [high], [high]])).parts[protocol].sums
    assert sums.shape == (1, protocol.cells.n_cells)
    assert (sums[0, 0], sums[0, -1], sums.sum()) == (1, 2, 3), "the ends are counted in the first and the last cell"


def test_every_report_has_a_cell_of_the_right_width():
    wave = ValueProtocol(epsilon=1.0, n_levels=20)
    low, high = wave.randomizer.clamp
    assert wave.cells.n_cells == high - low + 1
    assert wave.cells.index(np.arange(low, high + 1)).tolist() == list(range(wave.cells.n_cells))
    # 300 levels: 300 // 128 = 2 grid points in a cell; a 64th of the noise scale is wider.
    laplace = ValueProtocol(epsilon=1.0, n_levels=300, mechanism="laplace", bounds=(0, 3)).cells
    assert laplace.cell_width == 2 and laplace.n_cells == 153
    found = laplace.index(np.array([-500, -1, 0, 1, 2, 299, 300, 301, 900]))
    assert found.tolist() == [0, 0, 1, 1, 2, 150, 151, 152, 152]
    np.testing.assert_allclose(laplace.centres[[0, 1, 2, 151, 152]], [0, 0.005, 0.025, 3.0, 3])
    assert ValueProtocol(epsilon=20.0, n_levels=640, mechanism="laplace").cells.cell_width == 1
    for n_levels, width in ((640, 5), (639, 4)):  # 128 cells inside the bounds
        assert ValueProtocol(epsilon=1.0, n_levels=n_levels, mechanism="laplace").cells.cell_width == width
    for n_levels, width in ((2560, 5), (2559, 4)):  # 64 cells in a scale of 320
        assert ValueProtocol(epsilon=8.0, n_levels=n_levels, mechanism="laplace").cells.cell_width == width
    gaussian = ValueProtocol(epsilon=1.0, delta=1e-5, mechanism="gaussian", bounds=(2, 8))
    scale, (low, high) = gaussian.randomizer.scale, gaussian.randomizer.clamp
    width = int(scale / 16)
    assert gaussian.cells.cell_width == width and gaussian.cells.n_cells == (high - low) // width + 1
    found = gaussian.cells.index(np.array([low, low + width - 1, low + width, high]))
    assert found.tolist() == [0, 0, 1, gaussian.cells.n_cells - 1]
    step = 3 / 2**16
    centres = 5 + (low + np.arange(gaussian.cells.n_cells) * width + (width - 1) / 2) * step
    np.testing.assert_allclose(gaussian.cells.centres, centres, rtol=1e-12)
    assert gaussian.cells.noise_scale == pytest.approx(step * math.sqrt(scale**2 + width**2 / 12), rel=1e-12)


def test_probabilities_of_laplace_cells():
    """Sums of the mechanism's probabilities over the reports of each cell; the clamps are in the tails."""
    protocol = ValueProtocol(epsilon=3.0, n_levels=260, mechanism="laplace", bounds=(0, 260))
    low, high = protocol.randomizer.clamp
    reports = np.arange(low, high + 1)
    cells = protocol.cells.index(reports)
    for level in (0, 1, 130, 260):
        probability = np.exp(protocol.randomizer.log_prob(reports, np.full(len(reports), float(level))))
        expected = np.bincount(cells, weights=probability, minlength=protocol.cells.n_cells)
        np.testing.assert_allclose(protocol.cells.probabilities[:, level], expected, rtol=1e-9)
    assert protocol.cells.noise_scale == pytest.approx(protocol.randomizer.scale, rel=1e-12)


def test_gaussian_values_are_centred_on_their_interval():
    protocol = ValueProtocol(epsilon=2.0, delta=1e-5, bounds=(2, 8), mechanism="gaussian", n_features=2)
    assert protocol.midpoint == 5.0
    assert protocol.randomizer == Gaussian(epsilon=1.0, delta=5e-6, norm=3.0)
    plain = ValueProtocol(epsilon=math.inf, delta=1e-5, bounds=(2, 8), mechanism="gaussian")
    reports = plain.privatize([2.0, 8.0, 5.0, 6.5, math.nan, -9.0])
    assert reports[:, 0].tolist() == [-2**16, 2**16, 0, 2**15, 0, -2**16]


@pytest.mark.parametrize("cls, centred, plain", [
    (MomentProtocol, {"intercept_weight": 0.5}, {"intercept_weight": 0.0}),
    (RecordProtocol, {"centred": True}, {"centred": False})])
def test_scale_of_the_response(cls, centred, plain):
    for bounds, largest in (((2, 8), 8.0), ((-9, 4), 9.0)):
        protocol = cls(bounds_y=bounds, **centred)
        assert (protocol.y_offset, protocol.y_scale) == (sum(bounds) / 2, (bounds[1] - bounds[0]) / 2)
        protocol = cls(bounds_y=bounds, **plain)
        assert (protocol.y_offset, protocol.y_scale) == (0.0, largest)


def test_records_without_noise():
    protocol = RecordProtocol(epsilon=math.inf, data_norm=2.0, bounds_y=(0, 10), y_weight=0.75, n_features=2)
    assert protocol.randomizer.norm == 1.25
    reports = protocol.privatize([[2.0, 0.0], [0.0, -1.0], [6.0, 8.0], [math.nan, 1.0]], [10.0, 2.5, -3.0, math.nan])
    expected = np.array([[1, 0, 0.75], [0, -0.5, -0.375], [0.6, 0.8, -0.75], [0, 0.5, 0.0]])
    np.testing.assert_allclose(protocol.randomizer.decode(reports), expected, atol=2e-5)


def test_an_unknown_label_is_replaced_by_a_fair_coin():
    """The top bit of the word decides; known labels are kept for any word."""
    protocol = LabelRecordProtocol(epsilon=math.inf)
    words = [2**63 - 1, 2**63, 0, 2**64 - 1]
    found = protocol._response(np.array([math.nan, math.nan, 1.0, -1.0]), Scripted(words))
    assert found.tolist() == [-1.0, 1.0, 1.0, -1.0]


@pytest.mark.parametrize("n_reports", [0, 1, 4096, 4097, 10_000])
def test_sums_of_products_are_exact(n_reports):
    """Comparison with Python's integers for reports at the clamps, where 20-bit words carry."""
    protocol = RecordProtocol(epsilon=0.01, n_features=1)
    top = protocol.randomizer.clamp[1]
    assert top > 2**22
    reports = np.random.default_rng(0).choice([-top, top, 1, -1, 2**20, -2**20 - 1, 12345], size=(n_reports, 2))
    found = protocol.aggregate(reports).parts[protocol].sums
    rows = [(1, *row) for row in reports.tolist()]
    expected = [[sum(row[i] * row[j] for row in rows) for j in range(3)] for i in range(3)]
    assert found.tolist() == expected


def test_sums_of_products_of_the_largest_words_are_exact():
    """The low words of small negative numbers are all ones, so that sums of products nearly fill a float's 53 bits."""
    protocol = RecordProtocol(epsilon=0.01, n_features=1)
    reports = np.random.default_rng(0).choice([-1, -2, -3], size=(4096, 2))
    found = protocol.aggregate(reports).parts[protocol].sums
    assert found[1:, 1:].tolist() == (reports.T @ reports).tolist()


@pytest.mark.parametrize("n_reports", [1, 2**14, 2**14 + 7])
def test_pairs_of_bits_are_counted(n_reports):
    protocol = CategoryProtocol(epsilon=0.5, categories=list(range(6)), mechanism="subset")
    records = np.arange(n_reports) % 6
    reports = protocol._randomize(records, None, 0)
    expected = reports.astype(np.int64).T @ reports.astype(np.int64)
    part = protocol.aggregate(reports).parts[protocol]
    assert part.pairs.tolist() == expected.tolist() and part.sums.tolist() == reports.sum(axis=0, dtype=int).tolist()
    rows = protocol.aggregate(reports, keep_rows=True).parts[protocol]
    assert rows.without_rows().pairs.tolist() == expected.tolist()
    assert rows.sums.tolist() == part.sums.tolist() and rows.n_reports == part.n_reports == n_reports
    twice = protocol.aggregate(reports, keep_rows=True).parts[protocol] + rows
    assert (twice.n_reports, twice.sums.tolist()) == (2 * n_reports, (2 * part.sums).tolist())
    assert len(twice.multiplicity) == len(rows.multiplicity) <= 20


def test_pairs_of_many_distinct_rows():
    rng = np.random.default_rng(0)
    rows, multiplicity = rng.integers(2, size=(20_000, 18)), rng.integers(1, 9, size=20_000)
    tally = PairTally.of(rows.astype(np.uint8), multiplicity)
    assert tally.n_reports == multiplicity.sum()
    assert (tally.pairs == rows.T @ (rows * multiplicity[:, None])).all()


@pytest.mark.parametrize("mechanism", ["rr", "subset", "oue"])
def test_extreme_effects_of_a_category_by_enumeration(mechanism):
    protocol = CategoryProtocol(epsilon=0.5, categories=list(range(5)), mechanism=mechanism)
    if mechanism == "rr":
        reports = np.eye(5)
    else:
        reports = np.array(list(itertools.product([0, 1], repeat=5)))
        fewest, most = protocol.randomizer.ones_range
        reports = reports[(reports.sum(axis=1) >= fewest) & (reports.sum(axis=1) <= most)]
    slopes = np.random.default_rng(0).normal(size=(20, 5)) + np.linspace(-2, 2, 20)[:, None]
    low, high = protocol.extreme_effects(slopes)
    np.testing.assert_allclose(low, (slopes @ reports.T).min(axis=1))
    np.testing.assert_allclose(high, (slopes @ reports.T).max(axis=1))


def test_extreme_effects_of_a_record_by_enumeration():
    """Each square lies between 0 and its largest value, each product between plus and minus its largest value."""
    protocol = RecordProtocol(n_features=1)
    top = protocol.randomizer.clamp[1]
    directions = np.array([direction.astype(float) for direction in protocol.directions()])
    size = np.array([1, top, top])
    places = [(0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    for direction, (i, j) in zip(directions, places, strict=True):
        expected = np.zeros((3, 3))
        expected[i, j] = expected[j, i] = size[i] * size[j]
        assert (direction == expected).all()
    slopes = np.random.default_rng(1).normal(size=(10, 5))
    ends = [(0, 1) if i == j else (-1, 1) for i, j in places]
    corners = np.array(list(itertools.product(*ends)))
    low, high = protocol.extreme_effects(slopes)
    np.testing.assert_allclose(low, (slopes @ corners.T).min(axis=1))
    np.testing.assert_allclose(high, (slopes @ corners.T).max(axis=1))


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "squared"])
def test_numbers_of_gradients(loss, intercept):
    protocol = GradientProtocol(loss=loss, fit_intercept=intercept, bounds_y=(2, 8), n_features=2, data_norm=4.0,
                                clip_norm=3.0)
    assert protocol.smoothness == (1 + intercept) * (0.25 if loss == "logistic" else 1.0)
    centre, scale = (0, 1) if loss == "logistic" else (5, 3) if intercept else (0, 8)
    assert protocol.response_scale == (centre, scale)
    m = 2 + intercept
    sigma = gaussian_sigma(1.0, 1e-5, 2.0) * 3
    assert protocol.report_variance == pytest.approx(9 + m * sigma**2, rel=1e-4)
    coef, constant = protocol.natural(np.arange(1.0, m + 1))
    assert coef.tolist() == [scale / 4, 2 * scale / 4] and constant == (centre + 3 * scale if intercept else 0)
    theta, x = np.arange(m) / 4 + 0.25, np.array([[2.0, -1.0]])
    u = np.append(x / 4, [[1.0]], axis=1)[:, :m]
    if loss == "logistic":
        expected = {1: -u / (1 + np.exp(u @ theta)), -1: u / (1 + np.exp(-u @ theta)), 7: 0 * u}
    else:
        expected = {y: u * (u @ theta - (min(y, 8) - centre) / scale) for y in (2.0, 5.5, 9.0)}
    for y, gradient in expected.items():
        np.testing.assert_allclose(protocol.gradient(x, np.array([y]), theta), gradient, rtol=1e-12)


def test_steps_of_a_server():
    """Two rounds by hand: theta, the loss curve and the mean of the models."""
    protocol = GradientProtocol(epsilon=20.0, n_features=1, fit_intercept=False)
    first, second = (np.array([[value], [value]]) for value in (3000, -5000))
    decode = protocol.randomizer.decode(1.0)
    server = GradientServer(protocol, learning_rate="constant", eta0=0.5, average=True)
    server.step(first).step(second, on_invalid="drop")
    moves = -0.5 * decode * np.array([3000, -5000])
    assert server.theta[0] == pytest.approx(moves.sum())
    assert server.loss_curve == pytest.approx([0.0, -5000 * decode * moves[0]])
    assert server.result()[0][0] == pytest.approx(moves[0] + moves[1] / 2), "the mean of the models after each round"
    assert (server.n_rounds_done, server.n_reports, server.n_rejected) == (2, 4, 0)
    assert server.round().round == 2 and server.round().theta == tuple(server.theta)
    late = GradientServer(protocol, learning_rate="constant", eta0=0.5, average=3).step(first).step(second)
    assert late.result()[0][0] == pytest.approx(moves.sum()), "the mean starts after three reports"


def test_step_sizes():
    protocol = GradientProtocol(epsilon=1.0, n_features=2)
    variance = protocol.report_variance
    power = GradientServer(protocol, learning_rate="invscaling", eta0=3.0)
    assert power.step_size(16, 5) == pytest.approx(0.75)
    for n_rounds, number, rounds in ((None, 1, 1), (None, 3, 3), (1, 1, 1), (10, 3, 10), (10, 20, 20)):
        server = GradientServer(protocol, eta0=0.1, n_rounds=n_rounds)
        assert server.step_size(number, 50) == pytest.approx(0.1 / math.sqrt(variance / 50 * rounds))
        assert server.step_size(number, 0) == 0.0
    assert GradientServer(protocol, eta0=1e9).step_size(1, 10) == 1 / protocol.smoothness
    with pytest.raises(ValueError, match="n_rounds"):
        GradientServer(protocol, n_rounds=0)


def test_extreme_reports_reach_both_ends_of_every_entry_with_either_label():
    protocol = LabelRecordProtocol(n_features=3)
    top, reports = protocol.randomizer.vector.clamp[1], protocol.extreme_reports()
    assert protocol.check(reports).all()
    for label in (0, 1):
        part = reports[reports[:, -1] == label, :-1]
        assert (part.min(axis=0) == -top).all() and (part.max(axis=0) == top).all()
        assert (np.abs(part).min(axis=1) == top).any() and (np.abs(part).sum(axis=1) == top).any()
    assert len(np.unique(np.sign(reports[:, :-1]), axis=0)) > 8


def test_a_saved_file_has_the_mode_of_any_new_file(tmp_path):
    protocol = ValueProtocol()
    protocol.aggregate(protocol.privatize([0.0])).save(tmp_path / "saved.npz")
    (tmp_path / "plain").write_text("")
    assert (tmp_path / "saved.npz").stat().st_mode == (tmp_path / "plain").stat().st_mode
