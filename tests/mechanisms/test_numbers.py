"""Fixed values of the defaults, limits and public numbers of the mechanisms."""

import dataclasses
import math

import mpmath
import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms import (
    Gaussian,
    GaussianMoments,
    LabelledRecord,
    Laplace,
    RandomizedResponse,
    Sphere,
    SphereMoments,
    SquareWave,
    SubsetSelection,
    UnaryEncoding,
)
from skldp.mechanisms._base import in_blocks
from skldp.mechanisms._encoding import _shrink, encode_ball, encode_category, encode_interval
from skldp.privacy import gaussian_sigma, gaussian_slack, laplace_slack

CATEGORIES = [RandomizedResponse, SubsetSelection, UnaryEncoding]
HALF = math.sqrt(0.5)


@pytest.mark.parametrize("cls, expected", [
    (RandomizedResponse, {"epsilon": 1.0, "n_categories": 2}),
    (SubsetSelection, {"epsilon": 1.0, "n_categories": 2, "subset_size": 1}),
    (UnaryEncoding, {"epsilon": 1.0, "n_categories": 2}),
    (Laplace, {"epsilon": 1.0, "bounds": (-1.0, 1.0), "n_levels": 2**16}),
    (SquareWave, {"epsilon": 1.0, "bounds": (-1.0, 1.0), "n_levels": 1024, "window": 0.125}),
    (Gaussian, {"epsilon": 1.0, "delta": 1e-5, "norm": 1.0, "n_features": 1}),
    (Sphere, {"epsilon": 1.0, "norm": 1.0, "n_features": 1}),
    (LabelledRecord, {"epsilon": 1.0, "delta": 1e-5, "n_features": 1, "budget_split": 0.5}),
    (SphereMoments, {"epsilon": 1.0, "n_features": 1, "y_weight": HALF, "intercept_weight": HALF, "labelled": False,
                     "n_responses": 1}),
    (GaussianMoments, {"epsilon": 1.0, "n_features": 1, "y_weight": 181 / 256, "intercept_weight": 181 / 256,
                       "labelled": False, "n_responses": 1, "delta": 1e-5}),
])
def test_defaults(cls, expected):
    found = {field.name: getattr(cls(), field.name) for field in dataclasses.fields(cls)}
    assert found == expected
    assert cls().private and not cls(epsilon=math.inf).private


@pytest.mark.parametrize("cls, name, value", [
    *((cls, "n_categories", 0) for cls in CATEGORIES), (Laplace, "n_levels", 0), (SquareWave, "n_levels", 0),
    *((cls, "n_features", 0) for cls in (Gaussian, Sphere, LabelledRecord, SphereMoments, GaussianMoments)),
    (SquareWave, "window", -1e-9), (SquareWave, "window", 1 + 1e-9), (SquareWave, "window", "wide"),
    (SquareWave, "window", None), (Gaussian, "norm", 0.0), (Sphere, "norm", -1.0),
])
def test_values_just_outside_the_domain(cls, name, value):
    with pytest.raises(InvalidParameterError, match=name):
        cls(**{name: value})


def test_values_just_inside_the_domain():
    for cls in CATEGORIES:
        assert cls(n_categories=1).n_categories == 1
    assert SquareWave(n_levels=1, window=0).n_near == 1 and SquareWave(n_levels=4, window=1).n_near == 9
    assert Laplace(n_levels=1).clamp == (-math.floor(40 * Laplace(n_levels=1).scale), 1 + math.floor(
        40 * Laplace(n_levels=1).scale))
    assert SphereMoments(y_weight=100, intercept_weight=100).y_weight == 100
    with pytest.raises(InvalidParameterError, match="at most 100"):
        SphereMoments(intercept_weight=100.1)


def test_without_noise_there_is_no_variance():
    infinite = {"epsilon": math.inf}
    assert RandomizedResponse(**infinite, n_categories=4).near_probability == 1.0
    for cls, q in ((SubsetSelection, 0.0), (UnaryEncoding, 0.0)):
        mechanism = cls(**infinite, n_categories=4)
        assert (mechanism.p, mechanism.q, mechanism.ones_range) == (1.0, q, (1, 1))
    wave = SquareWave(**infinite)
    assert (wave.half_window, wave.near_probability, wave.clamp) == (0, 1.0, (0, 1024))
    sphere = Sphere(**infinite)
    assert (sphere.gamma, sphere.near_probability, sphere.noise_variance) == (1.0, 1.0, 0.0)
    laplace, gaussian, moments = (cls(**infinite) for cls in (Laplace, Gaussian, GaussianMoments))
    assert (laplace.scale, laplace.noise_variance, laplace.clamp) == (0.0, 0.0, (0, 2**16))
    assert (gaussian.scale, gaussian.noise_variance, gaussian.clamp) == (0.0, 0.0, (-2**16, 2**16))
    assert (moments.scale, moments.noise_variance) == (0.0, 0.0) and (moments.clamp == 2**16).all()
    heavy = GaussianMoments(**infinite, y_weight=2.0, intercept_weight=3.0)
    assert (heavy.clamp == 9 * 2**16).all(), "a product of two entries is at most the larger one squared"


@pytest.mark.parametrize("cls", CATEGORIES)
def test_log_prob_without_noise_is_certain(cls):
    mechanism = cls(epsilon=math.inf, n_categories=3)
    reports = mechanism.randomize([0, 1, 2])
    for shift in range(3):
        expected = 0.0 if shift == 0 else -math.inf
        assert mechanism.log_prob(reports, (np.arange(3) + shift) % 3).tolist() == [expected] * 3
    np.testing.assert_allclose(mechanism.log_prob(reports, [9, 9, 9]), -math.log(3))


@pytest.mark.parametrize("cls", CATEGORIES)
@pytest.mark.parametrize("k", [2, 4])
def test_an_unknown_category_is_a_mixture_of_all(cls, k):
    mechanism = cls(epsilon=1.3, n_categories=k)
    reports = mechanism.randomize(np.arange(k), rng=0)
    parts = [np.exp(mechanism.log_prob(reports, np.full(k, record))) for record in range(k)]
    np.testing.assert_allclose(mechanism.log_prob(reports, np.full(k, -1)), np.log(np.mean(parts, axis=0)), atol=1e-9)


@pytest.mark.parametrize("epsilon, d", [(1.0, 1), (0.3, 50)])
def test_gaussian_scale_covers_the_slack(epsilon, d):
    mechanism = Gaussian(epsilon=epsilon, delta=1e-6, n_features=d)
    slack = d * gaussian_slack(2 * gaussian_sigma(epsilon, 1e-6, 2**17))
    assert mechanism.scale == gaussian_sigma(epsilon - 2 * slack, 1e-6 * math.exp(-slack), 2**17)
    moments = GaussianMoments(epsilon=epsilon, delta=1e-6, n_features=3, intercept_weight=0.0)
    sensitivity = math.sqrt(2) * (2**16 + 181**2)
    slack = moments.n_moments * gaussian_slack(2 * gaussian_sigma(epsilon, 1e-6, sensitivity))
    assert moments.scale == pytest.approx(
        gaussian_sigma(epsilon - 2 * slack, 1e-6 * math.exp(-slack), sensitivity), rel=1e-12)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 20.0])
@pytest.mark.parametrize("m", [2, 3, 100])
def test_the_cap_covers_float_errors(epsilon, m):
    """Compare the budget of the cap, and the level's margin of 2^-40, with arbitrary-precision arithmetic."""
    mechanism = Sphere(epsilon=epsilon, n_features=m - 1)
    cost = 4 * 2**14 * math.sqrt(m) * (m + 64) * 2.0**-52 + 2.0**-39
    assert mechanism._cap_epsilon == epsilon - 4 * 2**14 * math.sqrt(m) * (m + 64) * 2.0**-52 - 2.0**-39
    assert epsilon - mechanism._cap_epsilon == pytest.approx(cost, rel=1e-3)
    with mpmath.workdps(50):
        height = mpmath.mpf(mechanism.gamma)
        mass = mpmath.betainc(mpmath.mpf(m - 1) / 2, 0.5, 0, 1 - height**2, regularized=True) / 2
        far = (1 - mass) / (1 + mpmath.expm1(mechanism._cap_epsilon) * mass)
        margin = (mpmath.mpf(mechanism._far_threshold) / 2**64 / far - 1) * 2**40
        assert 0.7 < margin < 1.3


@pytest.mark.parametrize("m", [2, 2000, 20_000])
def test_lengths_of_the_sphere(m):
    """The norms of honest reports differ from 2^14 by at most 64 + (4m + 4000) / 2^14; without noise by sqrt(m)."""
    for mechanism, slack in ((Sphere(n_features=m - 1), 64 + (4 * m + 4000) / 2**14),
                             (Sphere(n_features=m - 1, epsilon=math.inf), math.sqrt(m))):
        inside, reports = math.floor(slack), np.zeros((4, m), dtype=np.int64)
        reports[:, 0] = [2**14 + inside, 2**14 - inside, 2**14 + inside + 1, 2**14 - inside - 1]
        assert mechanism.valid(reports).tolist() == [True, True, False, False]


@pytest.mark.parametrize("epsilon, d", [(0.5, 2), (1.0, 30), (4.0, 200), (20.0, 1)])
def test_the_window_of_unary_encoding(epsilon, d):
    """Fewer than 1e-9 of honest reports are outside the window; one step less on either side would exclude more."""
    mechanism = UnaryEncoding(epsilon=epsilon, n_categories=d)
    low, high = mechanism.ones_range
    with mpmath.workdps(40):
        q, others = mpmath.mpf(mechanism.q), d - 1
        binomial = [mpmath.binomial(others, k) * q**k * (1 - q) ** (others - k) for k in range(d)]
        pmf = [(one + other) / 2 for one, other in zip(binomial + [0], [0] + binomial)]
        below, above = sum(pmf[:low]), sum(pmf[high + 1:])
        assert below <= 1e-9 and above <= 1e-9
        assert below + pmf[low] > 1e-9 and above + pmf[high] > 1e-9
    rows = (np.arange(d) < np.arange(d + 1)[:, None]).astype(np.uint8)
    assert mechanism.valid(rows).tolist() == [low <= ones <= high for ones in range(d + 1)]


@pytest.mark.parametrize("d", [255, 256, 257, 600])
def test_wide_rows_of_ones_are_counted(d):
    subset = SubsetSelection(epsilon=0.01, n_categories=d)
    reports = subset.randomize(np.arange(d), rng=0)
    assert subset.valid(reports).all()
    wrong = reports.copy()
    wrong[np.arange(d), wrong.argmin(axis=1)] = 1
    assert not subset.valid(wrong).any()
    ones = np.ones((1, d), dtype=np.uint8)
    assert not UnaryEncoding(epsilon=1.0, n_categories=d).valid(ones).any(), "256 ones are not none"
    # The number of ones equals the subset size modulo 256.
    more = np.zeros((1, 600), dtype=np.uint8)
    more[0, :256 + 9] = 1
    nine = SubsetSelection(epsilon=math.log(600 / 9 - 1), n_categories=600)
    assert nine.subset_size == 9 and not nine.valid(more).any()


def test_other_values_than_bits_are_invalid():
    mechanism = UnaryEncoding(epsilon=1.0, n_categories=3)
    reports = np.array([[0, 1, 0], [0, 2, 0], [-1, 1, 0], [1, 1, 257]])
    assert mechanism.valid(reports).tolist() == [True, False, False, False]
    assert np.isfinite(mechanism.log_prob(reports, [0] * 4)).tolist() == [True, False, False, False]
    assert mechanism.valid(reports[:1].astype(np.uint64)).all() and not mechanism.valid(reports[:, :2]).any()
    assert len(mechanism.valid(np.zeros((0, 3), dtype=np.uint8))) == 0


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7, 8])
def test_blocks_cover_every_row_once(n_rows):
    seen = []

    def draw(codes):
        seen.append(len(codes))
        return np.stack([codes, codes * 2], axis=1)

    codes = np.arange(7)
    out = in_blocks(draw, codes, n_rows, (2,), np.int8)
    assert out.dtype == np.int8 and (out == np.stack([codes, codes * 2], axis=1)).all()
    assert max(seen) <= n_rows and sum(seen) == 7


@pytest.mark.parametrize("mechanism, records", [
    (SquareWave(epsilon=math.inf), np.linspace(-1, 1, 2**15 + 5)),
    (SubsetSelection(epsilon=math.inf, n_categories=3), np.arange(2**19 // 3 + 5) % 3),
    (UnaryEncoding(epsilon=math.inf, n_categories=3), np.arange(2**19 // 3 + 5) % 3),
    (GaussianMoments(epsilon=math.inf), np.tile(np.linspace(-0.9, 0.9, 4099)[:, None], 2)),
    (LabelledRecord(epsilon=math.inf), np.tile(np.linspace(-0.9, 0.9, 4099)[:, None], 2)),
    (Sphere(epsilon=math.inf, n_features=3), np.tile(np.linspace(-0.5, 0.5, 2**14 + 3)[:, None], 3)),
], ids=lambda value: type(value).__name__)
def test_records_past_a_block_are_reported_too(mechanism, records):
    reports = mechanism.randomize(records)
    edges = np.r_[0:3, len(records) - 8:len(records)]
    assert len(reports) == len(records)
    assert (reports[edges] == mechanism.randomize(records[edges])).all()
    noisy = dataclasses.replace(mechanism, epsilon=1.0).randomize(records)
    assert (noisy[-1000:] != noisy[:1000]).any() and len(noisy) == len(records)


def test_encodings_of_single_values():
    assert encode_interval([0.4999, 0.5001, 1.4999], (0, 4), 4).tolist() == [0, 1, 1]
    assert encode_interval([-0.1, 4.1, np.nan], (0, 4), 5).tolist() == [0, 5, 2]
    assert encode_category([0, 1, 2, 3, -1, 0.5], 3).tolist() == [0, 1, 2, -1, -1, -1]
    assert encode_ball([[0.25, -0.5]], 1.0, 8).tolist() == [[2, -4]]
    assert encode_ball([[3.0, 4.0]], 5.0, 10).tolist() == [[6, 8]]
    assert encode_ball([[1e-320, 0.0]], 1e-320, 8).tolist() == [[8, 0]]
    assert encode_ball([[-np.inf, np.inf]], 1.0, 2**8).tolist() == [[-181, 181]]


@pytest.mark.parametrize("radius", [3, 8, 100])
def test_integer_vectors_stay_inside_the_ball(radius):
    """On a fine circle rounding often moves vectors outside; the correction is at most one step in each entry."""
    angle = np.linspace(0, 2 * np.pi, 20_011)
    x = np.column_stack([np.cos(angle), np.sin(angle)])
    codes = encode_ball(x, 1.0, radius)
    assert (codes**2).sum(axis=1).max() <= radius**2
    assert np.abs(codes - radius * x).max() <= 1 + 1e-9


def test_a_ball_in_blocks():
    x = np.random.default_rng(0).normal(size=(2**15 + 9, 1))
    codes = encode_ball(x, 1.0)
    assert (codes == np.concatenate([encode_ball(part, 1.0) for part in np.array_split(x, 7)])).all()


def test_layouts_of_moments():
    mechanism = SphereMoments(n_features=2, intercept_weight=0.5, y_weight=0.25)
    rows, columns = mechanism.places
    assert list(zip(rows.tolist(), columns.tolist())) == [
        (1, 1), (2, 2), (3, 3), (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    assert mechanism.centre.tolist() == [0.5, 0.5, 0.0625, *[0.0] * 6]
    assert SphereMoments(n_features=2, intercept_weight=0.0, labelled=True).centre.tolist() == [0.5, 0.5, 0, 0, 0]
    matrix = mechanism.matrix(np.arange(9.0))
    assert (matrix == matrix.T).all() and matrix[0, 0] == 0.25
    assert matrix[1, 2] == 6 / math.sqrt(2) and matrix[3, 3] == 2.0
    labelled = SphereMoments(n_features=1, labelled=True, y_weight=0.5).matrix(np.zeros((2, 4)))
    assert (labelled[:, 2, 2] == 0.25).all() and labelled.shape == (2, 3, 3)


def test_log_prob_of_the_sphere():
    """The density has two levels, separated at the height of the cap; without noise only the record is possible."""
    mechanism = Sphere(epsilon=2.0, n_features=1)
    angles = np.array([-1e-3, 1e-3]) + math.acos(mechanism.gamma)
    reports = np.rint(2**14 * np.column_stack([np.cos(angles), np.sin(angles)])).astype(int)
    near, far = mechanism.log_prob(reports, np.ones((2, 1)))
    p, mass = mechanism.near_probability, mechanism.cap_mass
    assert near == pytest.approx(math.log(p / mass)) and far == pytest.approx(math.log((1 - p) / (1 - mass)))
    plain = Sphere(epsilon=math.inf, n_features=2)
    x = np.array([[0.6, 0.0], [0.0, 0.6]])
    assert plain.log_prob(plain.randomize(x), x).tolist() == [math.inf] * 2
    assert plain.log_prob(plain.randomize(x), x[::-1]).tolist() == [-math.inf] * 2


def smallest_epsilon(make):
    """Return the smallest budget that a mechanism accepts, by bisection of its logarithm."""
    low, high = math.log(2e-6), math.log(20.0)
    for _ in range(40):
        middle = (low + high) / 2
        try:
            make(math.exp(middle))
            high = middle
        except InvalidParameterError:
            low = middle
    return math.exp(high)


@pytest.mark.parametrize("make, share", [
    (lambda epsilon: Laplace(epsilon=epsilon, n_levels=2**24),
     lambda mechanism: 2 * laplace_slack(2**24 / mechanism.epsilon, mechanism.epsilon)),
    (lambda epsilon: Gaussian(epsilon=epsilon, n_features=500), lambda mechanism: 2 * mechanism._slack),
    (lambda epsilon: GaussianMoments(epsilon=epsilon, n_features=60), lambda mechanism: 2 * mechanism._slack),
    (lambda epsilon: Sphere(epsilon=epsilon, n_features=2**18),
     lambda mechanism: mechanism.epsilon - mechanism._cap_epsilon),
], ids=["Laplace", "Gaussian", "GaussianMoments", "Sphere"])
def test_rounding_errors_use_up_at_most_half_of_a_budget(make, share):
    mechanism = make(smallest_epsilon(make))
    assert 1e-5 < mechanism.epsilon < 10, "some budgets are too small, and some are not"
    assert share(mechanism) / mechanism.epsilon == pytest.approx(0.5, rel=1e-3)


@pytest.mark.parametrize("make, room", [
    (lambda delta: Gaussian(epsilon=1.0, delta=delta), lambda mechanism: [
        (mechanism.clamp[1] - 2**16) / mechanism.scale / 4]),
    (lambda delta: GaussianMoments(epsilon=1.0, delta=delta, n_features=2),
     lambda mechanism: (mechanism.clamp - mechanism._largest) / mechanism.scale / 2),
], ids=["Gaussian", "GaussianMoments"])
def test_clamps_leave_room_for_the_noise(make, room):
    """A large delta needs so little noise that the clamps would be inside the domain; it is refused."""
    low, high = 0.0, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        try:
            make(middle)
            low = middle
        except InvalidParameterError:
            high = middle
    assert min(room(make(low))) == pytest.approx(1, abs=1e-3)


def test_shrinking_ends_when_every_row_is_inside():
    codes = _shrink(np.array([[8.0, 0.0], [9.0, 0.0], [-9.0, 9.0], [0.0, -30.0]]), 8)
    assert codes.tolist() == [[8, 0], [8, 0], [-5, 5], [0, -8]]


@pytest.mark.parametrize("mechanism, record", [
    (Gaussian(epsilon=math.inf, n_features=3), [[0.3, -0.2, 0.1]]),
    (GaussianMoments(epsilon=math.inf, n_features=2), [[0.3, -0.2, 0.1]]),
    (LabelledRecord(epsilon=math.inf, n_features=2), [[0.3, -0.2, 1.0]])], ids=lambda value: type(value).__name__)
def test_without_noise_one_changed_entry_is_impossible(mechanism, record):
    report = mechanism.randomize(record).astype(np.int64)
    assert mechanism.log_prob(report, record).tolist() == [0.0]
    for place in range(report.shape[1]):
        other = report.copy()
        other[0, place] -= 1
        assert mechanism.log_prob(other, record).tolist() == [-math.inf]


def test_entries_of_gaussian_moments_are_rounded_to_multiples_of_one_256th():
    """Records just below and above a rounding threshold, far from the centre, where a wrong norm has an effect."""
    mechanism = GaussianMoments(n_features=2, intercept_weight=0.5, y_weight=0.75)
    x, y = np.array([[200.45, -60.55], [200.55, -60.45]]) / 256, np.array([[150.45], [150.55]]) / 192
    assert mechanism.encode(np.hstack([x, y])).tolist() == [[128, 200, -61, 150], [128, 201, -60, 151]]
