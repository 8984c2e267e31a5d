"""Tests of the axis mechanism: moments by quadrature and simulation, privacy of the level, the point and the sign."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy.stats import beta

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms import Axis, AxisMoments
from skldp.mechanisms._axis import AXIS_RESOLUTION
from skldp.privacy import SeededWords, audit_epsilon, record_radius
from tests.mechanisms.exact_points import point_errors
from tests.mechanisms.registry import LAYOUTS, moments, repeat

DIMENSIONS = [3, 8, 66, 1003]
EPSILONS = [0.1, 1.0, 4.0, 20.0]


def height_moments(mechanism):
    """Return E T^(2i) (1 - T^2)^j for six pairs (i, j), by quadrature of the density of T with its two levels."""
    power = mpmath.mpf(mechanism.dimension - 3) / 2
    gamma, near = mpmath.mpf(mechanism.gamma), mpmath.exp(mechanism._cap_epsilon)
    far_ends = [0, gamma / 2, gamma]
    near_ends = [gamma, *(gamma + (1 - gamma) * share for share in (0.001, 0.02, 0.1, 0.4)), 1]

    def integral(i, j):
        def density(t):
            return t ** (2 * i) * (1 - t * t) ** (power + j)

        return mpmath.quad(density, far_ends) + near * mpmath.quad(density, near_ends)

    total = integral(0, 0)
    return {(i, j): integral(i, j) / total for i, j in ((1, 0), (0, 1), (2, 0), (1, 1), (0, 2))}


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_moments_agree_with_quadrature(dimension, epsilon):
    mechanism = Axis(epsilon=epsilon, n_features=dimension - 1)
    p = dimension - 1
    with mpmath.workdps(30):
        square = height_moments(mechanism)
        alpha = square[0, 1] / p
        a = square[0, 2] / (p * (p + 2))
        b = square[1, 1] / p - a
        c = square[2, 0] - 6 * square[1, 1] / p + 3 * a
        expected = [alpha, square[1, 0] - alpha, a, b, c]
    np.testing.assert_allclose([*mechanism._alpha_beta, *mechanism._fourth_moments], [float(one) for one in expected],
                               rtol=1e-10)


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_height_is_the_fixed_point_and_the_best(dimension, epsilon):
    mechanism = Axis(epsilon=epsilon, n_features=dimension - 1)
    alpha, slope = mechanism._alpha_beta
    assert alpha + slope == pytest.approx(mechanism.gamma**2, rel=1e-9)  # E T^2
    for factor in (0.98, 1.02):
        other = Axis(epsilon=epsilon, n_features=dimension - 1)
        vars(other)["gamma"] = min(factor * mechanism.gamma, (1 + mechanism.gamma) / 2)
        assert other._alpha_beta[1] < slope
        assert other.noise_variance > mechanism.noise_variance


@pytest.mark.parametrize("dimension", [2, *DIMENSIONS])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_the_two_levels_have_the_promised_ratio(dimension, epsilon):
    """The exact probability of each level, over its exact share of the sphere: the ratio is epsilon, from below."""
    mechanism = Axis(epsilon=epsilon, n_features=dimension - 1)
    with mpmath.workdps(50):
        height = mpmath.mpf(mechanism.gamma)
        mass = mpmath.betainc(mpmath.mpf(dimension - 1) / 2, 0.5, 0, 1 - height**2, regularized=True)
        far = mpmath.mpf(mechanism._far_threshold) / 2**64
        ratio = (1 - far) / mass / (far / (1 - mass))
        assert ratio <= mpmath.exp(mechanism._cap_epsilon)
        assert ratio >= mpmath.exp(mechanism._cap_epsilon - 1e-10)
    assert 0.99 * epsilon <= mechanism._cap_epsilon < epsilon


@pytest.mark.parametrize("n_features, epsilon", [(1, 1.0), (2, 0.1), (2, 20.0), (5, 4.0), (30, 1.0), (30, 10.0),
                                                 (19, 20.0), (300, 1.0)])
def test_float_error_of_the_point_is_within_its_bound(n_features, epsilon):
    def target(cap, near, upper, uniform):
        """Share of the sphere beyond the cosine, from the pole of its half."""
        return uniform * cap if near else cap + uniform * (0.5 - cap)

    mechanism = Axis(epsilon=epsilon, n_features=n_features)
    for error, shortest in point_errors(mechanism, target):
        assert error * shortest <= (mechanism.dimension + 64) * mpmath.mpf(2) ** -52


@pytest.mark.parametrize("dimension", DIMENSIONS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
def test_audits_find_no_more_than_epsilon(dimension, epsilon):
    """Orthogonal records, and opposite ones, by the likelihood ratio and by events along u and u'."""
    mechanism, n = Axis(epsilon=epsilon, n_features=dimension - 1), {66: 4000, 1003: 400}.get(dimension, 20_000)
    one, other = np.eye(dimension - 1)[0], np.eye(dimension - 1)[1]

    def along(reports):
        return reports[:, 0] / AXIS_RESOLUTION

    found = audit_epsilon(mechanism, one, other, n_reports=n).epsilon_lower
    assert found <= epsilon
    if n == 20_000 and epsilon in (1.0, 4.0):
        assert found > 0.75 * epsilon
    assert audit_epsilon(mechanism, one, other, n_reports=n,
                         statistic=lambda reports: along(reports) ** 2 - (reports[:, 1] / AXIS_RESOLUTION) ** 2
                         ).epsilon_lower <= epsilon
    assert audit_epsilon(mechanism, one, -one, n_reports=n, statistic=along).epsilon_lower < 0.1 + epsilon / 20


class OneSided(Axis):
    """Broken mechanism: reports only on the side of the record."""

    def _beta_quantile(self, near, upper, uniform):
        return super()._beta_quantile(near, np.ones_like(upper), uniform)


class TwiceTheMass(Axis):
    """Broken mechanism: levels for twice the share that the near set has, as if its height were of one cap."""

    @property
    def _far_threshold(self):
        mass = 2 * self.cap_mass
        return math.ceil(2**64 * (1 - mass) / (1 + math.expm1(self._cap_epsilon) * mass))


def test_a_report_on_one_side_only_is_detected():
    result = audit_epsilon(OneSided(epsilon=1.0, n_features=2), np.array([1.0, 0.0]), np.array([-1.0, 0.0]),
                           n_reports=20_000, statistic=lambda reports: reports[:, 0])
    assert result.epsilon_lower > 1.0


def test_levels_for_a_wrong_share_are_detected():
    records = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
    assert audit_epsilon(TwiceTheMass(epsilon=1.0, n_features=3), *records, n_reports=50_000).epsilon_lower > 1.0
    assert audit_epsilon(Axis(epsilon=1.0, n_features=3), *records, n_reports=50_000).epsilon_lower <= 1.0


@pytest.mark.parametrize("dimension", [2, 3, 8, 66])
@pytest.mark.parametrize("epsilon", [0.5, 4.0, 20.0])
def test_points_before_the_dither_have_their_two_level_density(dimension, epsilon):
    """Kolmogorov-Smirnov test of T^2 = <z, u>^2, and symmetry of T."""
    mechanism, n, rng = Axis(epsilon=epsilon, n_features=dimension - 1), 60_000, np.random.default_rng(1)
    u = mechanism.direction(mechanism.encode(np.linspace(0.5, -0.3, dimension - 1)[None]))
    points = mechanism._point(repeat(u[0], n), rng.random(n) < mechanism.near_probability, rng.random(n) < 0.5,
                              rng.random(n), rng.normal(size=(n, dimension - 1)))
    cosine = points @ u[0]
    height, law = np.sort(cosine**2), beta(0.5, (dimension - 1) / 2)
    t, growth = mechanism.gamma**2, math.expm1(epsilon)
    cdf = (law.cdf(height) + growth * np.maximum(law.sf(t) - law.sf(height), 0.0)) / (1 + growth * law.sf(t))
    assert np.abs(cdf - (np.arange(n) + 0.5) / n).max() < 2.6 / math.sqrt(n)
    assert abs((cosine > 0).mean() - 0.5) < 2.5 / math.sqrt(n)
    np.testing.assert_allclose(np.vecdot(points, points), 1.0, atol=1e-12)


def covariance_of(noise, vectors):
    """Return the covariance of decoded reports, row after row, over equally likely records: by the operator."""
    d = vectors.shape[1]
    products = (vectors[:, :, None] * vectors[:, None, :]).reshape(len(vectors), -1)
    theta, identity = products.mean(axis=0), np.eye(d).ravel()
    matrix = theta.reshape(d, d)

    def symmetric(left, right):
        """Operator X -> (left X right + right X left) / 2 on symmetric matrices."""
        return sum(np.einsum(places, one, other).reshape(d * d, d * d) / 4
                   for one, other in ((left, right), (right, left)) for places in ("ik,jl->ijkl", "il,jk->ijkl"))

    mixed = np.outer(identity, theta)
    return (noise.constant * symmetric(np.eye(d), np.eye(d)) + 2 * noise.linear * symmetric(matrix, np.eye(d))
            + noise.square * np.cov(products.T, bias=True) + noise.identity * np.outer(identity, identity)
            + noise.mixed * (mixed + mixed.T) + (noise.square - 1) * np.outer(theta, theta))


@pytest.mark.parametrize("n_features", [2, 3, 6])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
def test_unbiased_with_the_stated_covariance_for_any_records(n_features, epsilon):
    rng, n = np.random.default_rng(3), 100_000
    points = rng.normal(size=(4, n_features))
    points *= np.array([[1.3], [0.9], [0.4], [0.0]]) / np.linalg.norm(points, axis=1, keepdims=True)
    mechanism = Axis(epsilon=epsilon, norm=1.3, n_features=n_features)
    found = mechanism.decode(mechanism.randomize(points[np.arange(n) % 4], rng=5)).reshape(n, -1)
    expected = covariance_of(mechanism.noise, points)
    mean = np.einsum("ni,nj->ij", points, points).ravel() / 4
    sd = np.sqrt(np.diag(expected))
    assert np.abs((found.mean(axis=0) - mean) / sd).max() < 4.5 / math.sqrt(n)
    deviation = (found - mean) / sd
    places = range(0, n_features**2, 1 + (n_features > 3) * 2)
    for i, j in itertools.combinations_with_replacement(places, 2):
        product = deviation[:, i] * deviation[:, j]
        error = product.std() / math.sqrt(n)
        assert abs(product.mean() - expected[i, j] / (sd[i] * sd[j])) < 5 * error + 1e-3


@pytest.mark.parametrize("epsilon", [0.5, 4.0])
def test_the_average_noise_is_that_of_random_directions(epsilon):
    rng, n = np.random.default_rng(0), 300_000
    mechanism = Axis(epsilon=epsilon, norm=2.0, n_features=4)
    u = rng.normal(size=(n, 5))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    products = mechanism.decode(mechanism.randomize(2 * u[:, :-1], rng=1))[:, 0, 1]
    square = (products - 4 * u[:, 0] * u[:, 1]) ** 2
    assert abs(2 * square.mean() - mechanism.noise_variance) < 10 * square.std() / math.sqrt(n)
    slope = mechanism._alpha_beta[1]
    assert mechanism.noise_variance == pytest.approx(2 * 16 * (slope**-2 - 1) / (5 * 7), rel=1e-4)  # without dither


@pytest.mark.parametrize("epsilon, d, square", [(1.0, 5, 0.2), (8.0, 2, 1.0), (8.0, 20, 0.6)])
def test_the_variance_of_a_trace_is_that_of_simulated_reports(epsilon, d, square):
    mechanism, n = AxisMoments(epsilon=epsilon, n_features=d), 40_000
    x = np.random.default_rng(0).normal(size=(n, d))
    x *= math.sqrt(square) / np.linalg.norm(x, axis=1, keepdims=True)
    records = np.column_stack([x, np.full(n, 0.5)])
    found = mechanism.matrix(mechanism.decode(mechanism.randomize(records, rng=0)))
    traces, corner = np.trace(found[:, 1:-1, 1:-1], axis1=1, axis2=2), found[:, -1, -1]
    assert traces.mean() == pytest.approx(square, abs=4 * traces.std() / math.sqrt(n))
    assert np.var(traces) == pytest.approx(mechanism.noise.trace_variance(d, square), rel=0.04)
    expected = mechanism.noise.trace_variance(1, 0.25 * mechanism.y_weight**2)
    assert np.var(corner) == pytest.approx(expected, rel=0.04)


def test_sums_of_squares_of_many_reports_stay_exact():
    mechanism = Axis(epsilon=1.0, n_features=4095)
    assert mechanism.longest**2 * 2**40 < 2**63
    reports = mechanism.randomize(np.zeros((200, 4095)))
    assert np.abs(reports).max() <= mechanism.longest
    assert reports.dtype == np.int16


def test_every_report_lies_near_the_sphere_and_far_ones_are_refused():
    mechanism = Axis(epsilon=1.0, n_features=5)
    reports = mechanism.randomize(np.zeros((1000, 5)))
    length = np.linalg.norm(reports.astype(float), axis=1)
    assert np.abs(length - AXIS_RESOLUTION).max() < 40
    assert mechanism.valid(reports).all()
    assert not mechanism.valid(reports.astype(np.int64) * 2).any()
    assert not mechanism.valid(np.zeros((3, 6), dtype=int)).any()


def test_dither_hides_the_grid():
    """Without the dither, a report's distance from the sphere would reveal float rounding; with it, it is noise."""
    mechanism = Axis(epsilon=1.0, n_features=1)
    reports = mechanism.randomize(np.zeros((50_000, 1)), rng=0).astype(float)
    off = np.linalg.norm(reports, axis=1) - AXIS_RESOLUTION
    assert off.var() == pytest.approx(2 + 1 / 12, rel=0.1)


def test_the_dither_is_subtracted_from_the_diagonal():
    """In 1,003 dimensions the dither is 1 part in 2,000 of alpha: decoding without it would be biased by that."""
    mechanism = Axis(epsilon=1.0, n_features=1002)
    alpha = mechanism._alpha_beta[0]
    assert mechanism._dither / alpha == pytest.approx((2 + 1 / 12) * 1003 / 2**22, rel=1e-2)
    trace = mechanism.decode_products((alpha + mechanism._dither) * 2**22 * np.eye(1003)).trace()
    assert abs(trace) < 1e-9
    reports = mechanism.randomize(np.zeros((200, 1002)), rng=0).astype(float)
    length = np.vecdot(reports, reports).mean() / 2**22
    assert length == pytest.approx(1 + 1003 * mechanism._dither, abs=5 * 2 * math.sqrt(2.1 / 200) / 2**11)


@pytest.mark.parametrize("layout", LAYOUTS + [{"n_responses": 2}])
@pytest.mark.parametrize("epsilon", [1.0, 6.0])
def test_moments_of_records_are_unbiased(layout, epsilon):
    mechanism = AxisMoments(epsilon=epsilon, n_features=3 - layout.get("n_responses", 1), **layout)
    record, n = np.array([0.6, -0.5, 0.4]), 150_000
    decoded = mechanism.decode(mechanism.randomize(repeat(record, n), rng=0))
    error = mechanism.matrix(decoded.mean(axis=0)) - moments(mechanism, record[None])[0]
    assert np.abs(error).max() < 5 * decoded.std(axis=0).max() / math.sqrt(n)


@pytest.mark.parametrize("kappa, weight, k", [(0.0, 0.5, 1), (0.7, 1.5, 1), (0.3, 0.8, 3)])
def test_the_radius_is_attained_and_not_exceeded(kappa, weight, k):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(500, 2)) * rng.choice([0.1, 1, 1e200], size=(500, 1))
    y = rng.choice([-1e300, -1.0, 0.2, 1.0, np.inf, np.nan], size=(500, k))
    mechanism = AxisMoments(n_features=2, n_responses=k, y_weight=weight, intercept_weight=kappa)
    length = np.linalg.norm(mechanism._records(np.column_stack([x, y])), axis=1)
    radius = record_radius(1.0, 1.0, weight, kappa, k)
    assert mechanism.axis.norm == radius
    assert length.max() <= radius * (1 + 1e-12)
    assert length.max() >= 0.999 * radius
    codes = mechanism.encode(np.column_stack([x, y]))
    assert np.vecdot(codes, codes).max() <= 2**32


def test_words_with_zero_tangent_give_a_point_of_the_sphere():
    class AllOnes(SeededWords):
        def words(self, n_words):
            return np.full(n_words, 2**63 - 1, dtype=np.uint64)

    mechanism = Axis(epsilon=1.0, n_features=1)
    assert mechanism.valid(mechanism.randomize(np.array([[0.5]]), AllOnes(b""))).all()


def test_reports_are_as_short_as_the_record():
    for d, kappa, k in itertools.product((1, 20, 1000), (0.0, 0.5), (1, 2)):
        mechanism = AxisMoments(n_features=d, intercept_weight=kappa, n_responses=k)
        assert mechanism.width == d + k + 1 + (kappa > 0)
        assert mechanism.randomize(np.zeros((2, d + k))).nbytes == 4 * mechanism.width


def test_impossible_options_raise():
    with pytest.raises(InvalidParameterError, match="too small"):
        AxisMoments(epsilon=1e-8, n_features=50)
    with pytest.raises(InvalidParameterError, match="y_weight"):
        AxisMoments(y_weight=0.0)
    with pytest.raises(InvalidParameterError, match="epsilon"):
        Axis(epsilon=21.0)
