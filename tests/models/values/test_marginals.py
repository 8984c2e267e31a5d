"""Closed forms against quadrature with 20 digits."""

import itertools
import warnings

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad

from skldp.exceptions import InvalidParameterError
from skldp.models.values._lemma import _LOG_ROOT_TWO_PI, _scaled_mass, log_noisy_marginal
from skldp.models.values._marginals import log_gaussian_gaussian, log_laplace_exponential, log_laplace_gaussian


def log_ndtr_difference(lower, upper):
    """Logarithm of the normal probability of an interval, by the function that the lemma uses."""
    lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    with np.errstate(all="ignore"):
        mass = _scaled_mass(lower, upper, upper - lower)
        nearest = np.where(mass > 0, np.maximum(np.maximum(lower, -upper), 0.0), 0.0)
        return np.log(mass) - 0.5 * np.square(nearest) - _LOG_ROOT_TWO_PI


STEPS = (-80, -30, -12, -5, 0, 5, 12, 30, 80)


@pytest.fixture(autouse=True)
def twenty_digits():
    with mpmath.workdps(20):
        yield


def integrate(function, a, b, *peaks):
    """Return the integral over [a, b], split around each (place, length) where the integrand is concentrated."""
    a, b = mpmath.mpf(a), mpmath.mpf(b)
    cuts = {a, (a + b) / 2, b}
    for place, length in peaks:
        cuts.update(cut for step in STEPS if a < (cut := mpmath.mpf(place) + step * mpmath.mpf(length)) < b)
    # The quadrature stops at an absolute error, so the integrand is scaled to a maximum near one.
    unit = max(abs(function(cut)) for cut in cuts)
    return unit * mpmath.quad(lambda x: function(x) / unit, sorted(cuts), method="gauss-legendre", maxdegree=5)


def true_clipped_gaussian(z, mean, std, bounds, noise, *peaks):
    """Log density of clip(x) + noise: the two point masses plus the interior."""
    z, mean, std = mpmath.mpf(z), mpmath.mpf(mean), mpmath.mpf(std)
    a, b = map(mpmath.mpf, bounds)
    ends = mpmath.ncdf((a - mean) / std) * noise(z - a) + mpmath.ncdf((mean - b) / std) * noise(z - b)

    def integrand(x):
        return mpmath.npdf(x, mean, std) * noise(z - x)

    return mpmath.log(ends + integrate(integrand, a, b, (mean, std), (a, std), (b, std), *peaks))


def laplace(scale):
    scale = mpmath.mpf(scale)
    return lambda error: mpmath.exp(-abs(error) / scale) / (2 * scale)


def gaussian(sigma):
    return lambda error: mpmath.npdf(error, 0, mpmath.mpf(sigma))


def error(computed, truth):
    """Difference of log densities, relative to the larger of one and the true value, whose rounding is unavoidable."""
    return float(abs(mpmath.mpf(float(computed)) - truth) / max(1, abs(truth)))


# ---------------------------------------------------------------------------------------------------------------------
# log_ndtr_difference


@pytest.mark.parametrize("lower", [-60.0, -38.5, -9.0, -2.0, -0.3, -1e-9, 0.0, 1e-7, 0.7, 5.0, 37.0, 400.0])
@pytest.mark.parametrize("width", [1e-13, 1e-10, 1e-5, 0.004, 0.0199, 0.0201, 0.1, 1.0, 7.0, 80.0])
def test_ndtr_difference(lower, width):
    upper = lower + width
    if upper == lower:
        assert log_ndtr_difference(lower, upper) == -np.inf
        return
    with mpmath.workdps(120):
        left, right = mpmath.mpf(lower) / mpmath.sqrt(2), mpmath.mpf(upper) / mpmath.sqrt(2)
        # Differences of the complementary function, on the side where it is small and does not cancel.
        truth = mpmath.erfc(left) - mpmath.erfc(right)
        if upper < 0:
            truth = mpmath.erfc(-right) - mpmath.erfc(-left)
        truth = mpmath.log(truth / 2)
    assert error(log_ndtr_difference(lower, upper), truth) < 1e-13


@pytest.mark.parametrize("lower, width", [(0.0, 0.0199), (0.98, 0.0199), (-0.004, 0.0199), (3.0, 0.0066),
                                          (40.0, 0.00049)])
def test_mass_of_a_narrow_interval_has_fourteen_digits(lower, width):
    near = max(lower, 0.0)
    truth = mpmath.quad(lambda t: mpmath.exp((mpmath.mpf(near) ** 2 - t**2) / 2), [lower, mpmath.mpf(lower) + width])
    found = _scaled_mass(*(np.asarray(value) for value in (lower, lower + width, width)))
    assert abs(mpmath.mpf(float(found)) / truth - 1) < 3e-14


def test_ndtr_difference_is_symmetric_and_handles_infinity():
    assert log_ndtr_difference(1.0, 2.5) == log_ndtr_difference(-2.5, -1.0)
    assert log_ndtr_difference(-np.inf, np.inf) == 0
    assert log_ndtr_difference(-np.inf, 0.0) == pytest.approx(np.log(0.5), rel=1e-15)
    assert log_ndtr_difference(0.0, np.inf) == pytest.approx(np.log(0.5), rel=1e-15)
    empty = log_ndtr_difference([np.inf, -np.inf, 3.0, 0.0, -3.0], [np.inf, -np.inf, 3.0, 0.0, -3.0])
    assert np.all(empty == -np.inf)


# ---------------------------------------------------------------------------------------------------------------------
# Laplace noise

GAUSSIANS = list(itertools.product([-50.0, -1.0, 0.2, 7.0], [1e-6, 1e-3, 0.7, 30.0, 1e6]))


@pytest.mark.parametrize("mean, std", GAUSSIANS)
@pytest.mark.parametrize("scale", [0.1, 2.0, 2e4])
def test_laplace_gaussian(mean, std, scale):
    bounds = (-1.0, 1.0)
    z = np.array([-1.0 - 3 * scale, -0.4, 0.2001, 0.999, 1.0 + 5 * scale])
    computed = log_laplace_gaussian(z, mean, std, bounds, scale)
    for point, value in zip(z, computed):
        near = (point, min(scale, std))
        assert error(value, true_clipped_gaussian(point, mean, std, bounds, laplace(scale), near)) < 1e-13


def true_laplace_exponential(z, rate, upper, scale):
    z, rate, upper = map(mpmath.mpf, (z, rate, upper))
    noise = laplace(scale)
    end = mpmath.exp(-rate * upper) * noise(z - upper)

    def integrand(x):
        return rate * mpmath.exp(-rate * x) * noise(z - x)

    return mpmath.log(end + integrate(integrand, 0, upper, (0, 1 / rate), (z, min(1 / rate, mpmath.mpf(scale)))))


@pytest.mark.parametrize("scale", [0.1, 2.0, 2e4])
@pytest.mark.parametrize("rate", [5e-7, 0.3, 40.0, 5e5])
def test_laplace_exponential(rate, scale):
    check_laplace_exponential(rate, scale)


@pytest.mark.parametrize("scale", [0.1, 2.0, 2e4])
@pytest.mark.parametrize("ratio", [1.0, 1.0 + 1e-13, 1.0 - 1e-9, 1.0 + 1e-4])
def test_laplace_exponential_with_equal_decay_rates(ratio, scale):
    check_laplace_exponential(ratio / scale, scale)


def check_laplace_exponential(rate, scale):
    z = np.array([-3 * scale, 0.0, 1e-4, 0.7, 1.9, 2.0, 2.0 + 5 * scale])
    computed = log_laplace_exponential(z, rate, 2.0, scale)
    for point, value in zip(z, computed):
        assert error(value, true_laplace_exponential(point, rate, 2.0, scale)) < 1e-13


def test_laplace_tails_equal_the_tails_of_the_noise():
    mean, std, scale = np.array([[-5.0], [0.3], [9.0]]), np.array([[1e-3], [0.4], [1e3]]), 0.5
    left, right = -np.array([0.0, 1.0, 8.0, 64.0]), 1.0 + np.array([0.0, 1.0, 8.0, 64.0])
    for tail in (left, right):
        for values in (
            log_laplace_gaussian(tail, mean, std, (0.0, 1.0), scale),
            log_laplace_exponential(tail, np.exp(mean), 1.0, scale),
        ):
            expected = values[:, :1] - np.abs(tail - tail[0]) / scale
            np.testing.assert_allclose(values, expected, rtol=1e-15, atol=1e-15)


def test_laplace_is_finite_beyond_the_stated_range():
    z = np.array([-1e6, 0.0, 0.5, 1.0, 1e6])
    values = log_laplace_gaussian(z, [[-1e12], [0.5], [1e12]], 1e-9, (0.0, 1.0), 1e-5)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(log_laplace_exponential(z, [[1e-12], [1e12]], 1.0, 1e-5)))


# ---------------------------------------------------------------------------------------------------------------------
# Gaussian noise


@pytest.mark.parametrize("mean, std", GAUSSIANS)
@pytest.mark.parametrize("sigma", [0.1, 2.0, 2e4])
def test_gaussian_gaussian(mean, std, sigma):
    bounds = (-1.0, 1.0)
    z = np.array([-1.0 - 6 * sigma, -0.4, 0.2001, 1.0 + 4 * sigma])
    computed = log_gaussian_gaussian(z, mean, std, bounds, sigma)
    variance = 1 / (1 / mpmath.mpf(std) ** 2 + 1 / mpmath.mpf(sigma) ** 2)
    for point, value in zip(z, computed):
        product_mean = variance * (mpmath.mpf(mean) / mpmath.mpf(std) ** 2 + mpmath.mpf(point) / mpmath.mpf(sigma) ** 2)
        peak = (product_mean, mpmath.sqrt(variance))
        assert error(value, true_clipped_gaussian(point, mean, std, bounds, gaussian(sigma), peak)) < 1e-12


def test_gaussian_gaussian_without_bounds_is_a_gaussian():
    z = np.linspace(-30.0, 30.0, 13)
    computed = log_gaussian_gaussian(z, 1.0, 2.0, (-np.inf, np.inf), 1.5)
    expected = -0.5 * (z - 1.0) ** 2 / 6.25 - 0.5 * np.log(2 * np.pi * 6.25)
    np.testing.assert_allclose(computed, expected, rtol=1e-13)


def polynomial(coefficients, x):
    return mpmath.fsum(coefficient * x**power for power, coefficient in enumerate(coefficients))


def true_lemma(z, sigma, g, h, bounds, centre=0.0):
    z, sigma, centre = map(mpmath.mpf, (z, sigma, centre))
    g, h = [mpmath.mpf(c) for c in g], [mpmath.mpf(c) for c in h] + [mpmath.mpf(0)] * (3 - len(h))
    curvature = 1 - 2 * sigma**2 * h[2]
    std = sigma / mpmath.sqrt(curvature)
    peak = centre + (z - centre + sigma**2 * h[1]) / curvature
    a, b = (mpmath.mpf(end) for end in bounds)
    nearest = min(max(peak, a), b)
    a, b = max(a, nearest - 60 * std), min(b, nearest + 60 * std)
    length = std**2 / (std + abs(nearest - peak))

    def integrand(x):
        y = x - centre
        return polynomial(g, y) * mpmath.exp(polynomial(h, y)) * mpmath.npdf(z, x, sigma)

    return mpmath.log(integrate(integrand, a, b, (peak, std), (nearest, length)))


def beta(p, q):
    """Coefficients of the Beta(p, q) density, which is a polynomial for integers p and q."""
    power = np.polynomial.polynomial.polypow([1.0, -1.0], q - 1)
    return np.concatenate([np.zeros(p - 1), power]), [-float(mpmath.log(mpmath.beta(p, q)))]


DISTANCES = (-30.0, -1.0, 0.0, 30.0)


@pytest.mark.parametrize("sigma", [0.01, 0.1, 1.0, 30.0, 1e4])
@pytest.mark.parametrize("p, q", [(1, 1), (2, 3), (5, 2), (1, 4)])
def test_lemma_on_beta_densities(p, q, sigma):
    g, h = beta(p, q)
    z = 0.4 + sigma * np.array(DISTANCES)
    for point, value in zip(z, log_noisy_marginal(z, sigma, g, h, (0.0, 1.0))):
        assert error(value, true_lemma(point, sigma, g, h, (0.0, 1.0))) < 1e-12


@pytest.mark.parametrize("sigma", [0.1, 1.0, 1e4])
def test_lemma_in_powers_of_the_distance_from_the_nearer_end(sigma):
    """Powers of x cancel near 1, where (1 - x)**5 is small; powers of x - 1 do not."""
    g, h = beta(6, 6)
    mirrored = g * (-1.0) ** np.arange(len(g))
    for distance in (1.0, 12.0, 30.0):
        left, right = 0.0 - distance * sigma, 1.0 + distance * sigma
        value = log_noisy_marginal(left, sigma, g, h, (0.0, 1.0))
        assert error(value, true_lemma(left, sigma, g, h, (0.0, 1.0))) < 1e-12
        value = log_noisy_marginal(right, sigma, mirrored, h, (0.0, 1.0), centre=1.0)
        assert error(value, true_lemma(right, sigma, mirrored, h, (0.0, 1.0), centre=1.0)) < 1e-12


@pytest.mark.parametrize("sigma", [0.01, 1.0, 1e4])
@pytest.mark.parametrize("rate", [1e-3, 2.0, 1e4])
@pytest.mark.parametrize("bounds", [(0.0, 1.0), (0.0, np.inf)])
def test_lemma_on_exponential_densities(rate, sigma, bounds):
    h = [float(np.log(rate)), -rate]
    for g in ([1.0], [0.0, rate]):
        z = sigma * np.array(DISTANCES)
        for point, value in zip(z, log_noisy_marginal(z, sigma, g, h, bounds)):
            assert error(value, true_lemma(point, sigma, g, h, bounds)) < 1e-12


@pytest.mark.parametrize("sigma", [0.01, 1.0, 1e3])
@pytest.mark.parametrize("std", [1e-3, 0.5, 1e3])
@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (-np.inf, 0.5), (-np.inf, np.inf)])
def test_lemma_on_gaussian_densities(std, sigma, bounds):
    centre = 0.3
    h = [-float(np.log(std)), 0.0, -0.5 / std**2]
    for g in ([0.4], [1.0, 0.0, 2.0, 0.0, 1.0]):
        z = centre + np.hypot(sigma, std) * np.array(DISTANCES)
        for point, value in zip(z, log_noisy_marginal(z, sigma, g, h, bounds, centre)):
            assert error(value, true_lemma(point, sigma, g, h, bounds, centre)) < 1e-12


def test_lemma_on_a_convex_exponent():
    h = [0.0, 0.5, 0.2]
    for g in ([1.0], [1.0, 0.5]):
        for point in (-3.0, 0.3, 4.0):
            value = log_noisy_marginal(point, 1.5, g, h, (0.0, 2.0))
            assert error(value, true_lemma(point, 1.5, g, h, (0.0, 2.0))) < 1e-13


def test_lemma_is_minus_infinity_for_a_negative_integral():
    assert log_noisy_marginal(0.0, 1.0, [-1.0], [0.0], (0.0, 1.0)) == -np.inf
    assert log_noisy_marginal(0.0, 1.0, [-1.0, -1.0], [0.0], (0.0, 1.0)) == -np.inf


def test_lemma_accepts_a_sign_change():
    g = [-0.2, 1.0]
    value = log_noisy_marginal(0.5, 0.4, g, [0.0], (0.0, 1.0))
    assert error(value, true_lemma(0.5, 0.4, g, [0.0], (0.0, 1.0))) < 1e-14


def test_lemma_rejects_an_exponent_that_grows_faster_than_the_noise_decays():
    for square in (0.5, 0.7):
        with pytest.raises(ValueError, match="must be positive"):
            log_noisy_marginal(0.0, 1.0, [1.0], [0.0, 0.0, square], (0.0, 1.0))
    with pytest.raises(InvalidParameterError, match="at most three"):
        log_noisy_marginal(0.0, 1.0, [1.0], [0.0, 0.0, 0.0, 1.0], (0.0, 1.0))


# ---------------------------------------------------------------------------------------------------------------------
# All densities


@pytest.mark.parametrize(
    "log_density",
    [
        lambda z: log_laplace_gaussian(z, 0.3, 0.4, (0.0, 1.0), 0.8),
        lambda z: log_laplace_gaussian(z, -2.0, 3.0, (0.0, 1.0), 0.2),
        lambda z: log_laplace_exponential(z, 1.25, 1.0, 0.8),
        lambda z: log_laplace_exponential(z, 9.0, 1.0, 0.3),
        lambda z: log_gaussian_gaussian(z, 0.3, 0.4, (0.0, 1.0), 0.8),
        lambda z: log_gaussian_gaussian(z, -2.0, 3.0, (0.0, 1.0), 0.2),
        lambda z: log_noisy_marginal(z, 0.3, *beta(2, 3), (0.0, 1.0)),
        lambda z: log_noisy_marginal(z, 2.0, *beta(5, 2), (0.0, 1.0)),
    ],
)
def test_densities_integrate_to_one(log_density):
    cuts = [-40.0, -2.0, 0.0, 0.5, 1.0, 3.0, 41.0]
    total = sum(quad(lambda z: float(np.exp(log_density(z))), *piece)[0] for piece in itertools.pairwise(cuts))
    assert total == pytest.approx(1.0, abs=1e-9)


def test_broadcasting_equals_scalar_calls():
    rng = np.random.default_rng(0)
    z = np.linspace(-3.0, 4.0, 7)
    mean, std, rate = rng.normal(size=(5, 1)), rng.uniform(0.01, 3.0, (5, 1)), rng.uniform(0.1, 9.0, (5, 1))
    g = np.stack([rate, std, std])
    h = np.stack([mean, -rate, -std])
    together = [
        log_laplace_gaussian(z, mean, std, (0.0, 1.0), 0.7),
        log_laplace_exponential(z, rate, 1.0, 0.7),
        log_gaussian_gaussian(z, mean, std, (0.0, 1.0), 0.7),
        log_noisy_marginal(z, 0.7, g, h, (0.0, 1.0)),
        log_ndtr_difference(z, z + std),
    ]
    for row, column in np.ndindex(5, 7):
        at, one, deviation, speed = z[column], mean[row, 0], std[row, 0], rate[row, 0]
        alone = [
            log_laplace_gaussian(at, one, deviation, (0.0, 1.0), 0.7),
            log_laplace_exponential(at, speed, 1.0, 0.7),
            log_gaussian_gaussian(at, one, deviation, (0.0, 1.0), 0.7),
            log_noisy_marginal(at, 0.7, g[:, row, 0], h[:, row, 0], (0.0, 1.0)),
            log_ndtr_difference(at, at + deviation),
        ]
        for array, value in zip(together, alone):
            assert array.shape == (5, 7)
            assert array[row, column] == pytest.approx(float(value), rel=1e-13)


def test_extreme_arguments_give_no_nan_and_no_warning():
    z = np.array([-1e8, -1.0, 0.0, 0.5, 1.0, 1e8])
    mean, std = np.array([[-1e9], [0.0], [0.5], [1e9]]), np.array([[1e-8], [1.0], [1e9], [1e-8]])
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for noise in (1e-3, 1.0, 1e6):
            for values in (
                log_laplace_gaussian(z, mean, std, (0.0, 1.0), noise),
                log_laplace_exponential(z, std, 1.0, noise),
                log_gaussian_gaussian(z, mean, std, (0.0, 1.0), noise),
                log_noisy_marginal(z, noise, [1.0, 1.0], [0.0, -std], (0.0, 1.0)),
            ):
                assert np.all(np.isfinite(values))
