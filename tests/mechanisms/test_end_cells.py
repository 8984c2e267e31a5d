"""Check sums over all reports, including the clamps, and every public number by an independent computation."""

import math
from functools import partial

import mpmath
import numpy as np
import pytest

from skldp.mechanisms import Gaussian, GaussianMoments, LabelledRecord, Laplace, Sphere, SphereMoments, SquareWave
from skldp.mechanisms import _gaussian as gaussian_module
from skldp.privacy import (
    epsilon_between,
    gaussian_noise,
    gaussian_sigma,
    hockey_stick,
    laplace_noise,
    laplace_slack,
    noise_pmf,
)
from skldp.privacy._audit import _count_above
from tests.mechanisms.registry import Scripted


def report_pmf(law, code, clamp):
    """Return the exact probabilities of the reports clamp[0] .. clamp[1] of a record, with the tails at the ends."""
    reports = np.arange(clamp[0], clamp[1] + 1)
    pmf = noise_pmf(law, reports - code)
    pmf[[0, -1]] = tails(law, code, clamp)
    return pmf


def tails(law, code, clamp):
    """Return the probabilities of the two end cells: of noise at least as large as their (positive) distance."""
    distance = np.array([code - clamp[0], clamp[1] - code])
    return _count_above(law, distance - 1).astype(float) * 2.0**-128


def log_pmf(mechanism, x, clamp):
    reports = np.arange(clamp[0], clamp[1] + 1)
    if isinstance(mechanism, Gaussian):
        return mechanism.log_prob(reports[:, None], np.full((len(reports), 1), x))
    return mechanism.log_prob(reports, np.full(len(reports), x))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("n_levels", [1, 2, 3, 16])
def test_laplace_keeps_epsilon_on_every_report(epsilon, n_levels):
    mechanism = Laplace(epsilon=epsilon, n_levels=n_levels)
    law = partial(laplace_noise, scale=mechanism.scale)
    ends = [report_pmf(law, code, mechanism.clamp) for code in (0, n_levels)]
    for x, pmf in zip((-1.0, 1.0), ends):
        assert math.fsum(pmf) == pytest.approx(1, abs=1e-14)
        np.testing.assert_allclose(log_pmf(mechanism, x, mechanism.clamp), np.log(pmf), rtol=0, atol=2e-8)
    assert 0.999 * epsilon < epsilon_between(*ends) <= epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
def test_laplace_keeps_epsilon_at_the_ends_of_the_usual_grid(epsilon):
    mechanism = Laplace(epsilon=epsilon)
    law, (low, high) = partial(laplace_noise, scale=mechanism.scale), mechanism.clamp
    inner = np.array([low + 1, low + 2, -1, 0, 1, mechanism.n_levels, high - 2, high - 1])
    ends = [np.append(noise_pmf(law, inner - code), tails(law, code, mechanism.clamp)) for code in (0, 2**16)]
    assert np.abs(np.log(ends[0] / ends[1])).max() <= epsilon


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.parametrize("n_levels", [1, 3, 2**16, 2**24])
def test_laplace_clamps_are_within_the_range_of_the_slack(epsilon, n_levels):
    mechanism = Laplace(epsilon=epsilon, n_levels=n_levels)
    low, high = mechanism.clamp
    assert -low <= 40 * mechanism.scale < 1 - low
    assert high == n_levels - low
    # The part of epsilon not used by the noise covers the slack on both sides, and is not much larger.
    left, slack = epsilon - n_levels / mechanism.scale, laplace_slack(mechanism.scale, epsilon)
    assert 2 * slack <= left + 1e-15 * epsilon and left <= 4.1 * slack + 1e-15 * epsilon


@pytest.mark.parametrize("epsilon, n_levels", [(0.5, 1), (4.0, 1), (20.0, 1), (1.0, 64), (20.0, 2**16)])
def test_laplace_noise_variance(epsilon, n_levels):
    """Compare with the sum over all cells and, for a fine grid, with the variance of a rounded variable."""
    mechanism = Laplace(epsilon=epsilon, bounds=(0, 3), n_levels=n_levels)
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    probability = np.exp(log_pmf(mechanism, 0.0, mechanism.clamp))
    assert math.fsum(probability) == pytest.approx(1, abs=1e-9)
    variance = math.fsum(probability * mechanism.decode(reports) ** 2)
    assert mechanism.noise_variance == pytest.approx(variance, rel=1e-9)
    if n_levels > 1:
        step = 3 / n_levels
        assert mechanism.noise_variance == pytest.approx((2 * mechanism.scale**2 + 1 / 12) * step**2, rel=1e-5)


@pytest.mark.parametrize("epsilon, delta", [(0.5, 1e-5), (1.0, 1e-9), (4.0, 1e-2), (20.0, 1e-5)])
def test_gaussian_keeps_delta_on_every_report(epsilon, delta, monkeypatch):
    """On a small grid all reports are enumerated; delta is the sum over all of them, including the clamps."""
    radius = 64
    monkeypatch.setattr(gaussian_module, "BALL_RADIUS", radius)
    monkeypatch.setattr(gaussian_module, "encode_ball", lambda x, norm: np.rint(x / norm * radius).astype(np.int64))
    mechanism = Gaussian(epsilon=epsilon, delta=delta, norm=2.0)
    assert mechanism.clamp == (-mechanism.clamp[1], mechanism.clamp[1])
    assert mechanism.clamp[1] + radius <= 10 * mechanism.scale < mechanism.clamp[1] + radius + 1
    law = partial(gaussian_noise, scale=mechanism.scale)
    ends = [report_pmf(law, code, mechanism.clamp) for code in (-radius, radius)]
    for x, pmf in zip((-2.0, 2.0), ends):
        assert math.fsum(pmf) == pytest.approx(1, abs=1e-14)
        np.testing.assert_allclose(log_pmf(mechanism, x, mechanism.clamp), np.log(pmf), rtol=0, atol=1e-9)
    found = [hockey_stick(*pair, epsilon) for pair in (ends, ends[::-1])]
    assert 0.8 * delta <= min(found) and max(found) <= delta
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    middle = np.exp(log_pmf(mechanism, 0.0, mechanism.clamp))
    assert mechanism.noise_variance == pytest.approx(math.fsum(middle * mechanism.decode(reports) ** 2), rel=1e-6)


def test_gaussian_probabilities_of_the_usual_grid_sum_to_one():
    mechanism = Gaussian(epsilon=20.0, delta=1e-5)
    for x in (-1.0, 0.3):
        assert math.fsum(np.exp(log_pmf(mechanism, x, mechanism.clamp))) == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("place", [0, 1])
def test_gaussian_moments_sum_to_one_over_every_entry(place):
    """Two entries, x^2 and sqrt(2) x y: the sum over one gives the probability of the other."""
    mechanism = GaussianMoments(epsilon=20.0, n_features=1, intercept_weight=0.0, labelled=True)
    top, record = int(mechanism.clamp[place]), np.array([[0.5, 1.0]])
    reports = np.zeros((2 * top + 1, 2), dtype=np.int64)
    reports[:, place] = np.arange(-top, top + 1)
    log_prob = mechanism.log_prob(reports, np.broadcast_to(record, (len(reports), 2)))
    other = 1 - place
    product = 128 * (128 if other == 0 else round(mechanism.y_weight * 256))
    scale = mechanism.scale / (1.0 if other == 0 else math.sqrt(2))
    cell = mpmath.ncdf((0.5 - product) / scale) - mpmath.ncdf((-0.5 - product) / scale)
    assert math.fsum(np.exp(log_prob)) == pytest.approx(float(cell), rel=1e-9)


@pytest.mark.parametrize("layout, square", [
    ({"intercept_weight": 0.0, "y_weight": 1.0}, 2.0), ({"intercept_weight": 0.5, "y_weight": 0.5}, 1.5),
    ({"intercept_weight": 0.25, "y_weight": 0.75, "labelled": True}, 1.625)])
@pytest.mark.parametrize("epsilon", [0.5, 20.0])
def test_scale_and_clamps_of_gaussian_moments(layout, square, epsilon):
    """The sensitivity is sqrt(2) times the largest squared norm of a record, times 2^16 on the grid."""
    mechanism = GaussianMoments(epsilon=epsilon, delta=1e-6, n_features=2, **layout)
    sigma = gaussian_sigma(epsilon, 1e-6, math.sqrt(2) * square * 2**16)
    assert sigma < mechanism.scale < sigma * (1 + 1e-3)
    assert mechanism.noise_variance == pytest.approx((mechanism.scale / 2**16) ** 2, rel=1e-12)
    ten_sigma = np.where(np.arange(mechanism.n_moments) < mechanism.n_diagonal, 10, 10 / math.sqrt(2)) * mechanism.scale
    assert (mechanism.clamp == np.floor(ten_sigma) - 2**16).all()


@pytest.mark.parametrize("sign, side", [(0, 1), (2**63, 0)])
def test_the_most_extreme_words_are_clamped(sign, side):
    """Words of zeros give noise of 88 scales, or 13 standard deviations, so the clamp is reported."""
    laplace = Laplace(epsilon=1.0)
    assert laplace._draw(np.array([0, 2**16]), Scripted([sign] * 2 + [0] * 2)).tolist() == [laplace.clamp[side]] * 2
    gaussian = Gaussian(epsilon=1.0, n_features=2)
    assert gaussian._draw(np.array([[2**16, -2**16]]), Scripted([sign] * 2 + [0] * 2)).tolist() == [
        [gaussian.clamp[side]] * 2]
    moments = GaussianMoments(epsilon=1.0, n_features=1)
    n_above = moments.n_moments - moments.n_diagonal
    words = [sign] * 2 + [0] * 2 + [sign] * n_above + [0] * n_above
    assert moments._draw(moments.encode([[1.0, -1.0]]), Scripted(words)).tolist() == [
        (moments.clamp if side else -moments.clamp).tolist()]


@pytest.mark.parametrize("mechanism", [Laplace(epsilon=2.0), SquareWave(epsilon=2.0), Gaussian(epsilon=2.0),
                                       GaussianMoments(n_features=1, intercept_weight=0.0, labelled=True)], ids=repr)
def test_reports_are_valid_up_to_the_clamps(mechanism):
    width = 2 if isinstance(mechanism, GaussianMoments) else 1
    low, high = (-mechanism.clamp, mechanism.clamp) if width == 2 else mechanism.clamp
    for step, expected in ((0, True), (1, False)):
        reports = np.array([low - step * np.ones(width, int), high + step * np.ones(width, int)])
        reports = reports if hasattr(mechanism, "n_features") else reports[:, 0]
        x = np.zeros((2, width if width == 2 else 1)) if hasattr(mechanism, "n_features") else np.zeros(2)
        assert mechanism.valid(reports).tolist() == [expected] * 2
        assert np.isfinite(mechanism.log_prob(reports, x)).tolist() == [expected] * 2


# Knots from the docstring and the table, and points between neighbouring ones.
WINDOWS = {0.01: 0.15, 0.25: 0.15, 0.375: 0.145, 0.5: 0.14, 0.75: 0.1325, 1.0: 0.125, 1.5: 0.1125, 2.0: 0.1, 2.5: 0.08,
           3.0: 0.06, 3.5: 0.055, 4.0: 0.05, 5.0: 0.0375, 6.0: 0.025, 7.0: 0.02, 8.0: 0.015, 9.0: 0.0125, 10.0: 0.01,
           11.0: 0.008, 12.0: 0.006, 13.5: 0.0035, 15.0: 0.001, 20.0: 0.001}


@pytest.mark.parametrize("epsilon, share", WINDOWS.items())
def test_windows_of_the_square_wave(epsilon, share):
    fine, usual = SquareWave(epsilon=epsilon, n_levels=10**6), SquareWave(epsilon=epsilon)
    assert fine.half_window == round(share * 10**6)
    assert usual.half_window == round(share * 1024)
    assert fine.n_near == 2 * fine.half_window + 1
    assert fine.clamp == (-fine.half_window, 10**6 + fine.half_window)


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_means_of_the_square_wave(epsilon):
    """The mean of unbiased reports, by the sum over all reports, is the record."""
    mechanism = SquareWave(epsilon=epsilon, bounds=(-1, 3), n_levels=32)
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    assert mechanism.decode([-4, 0, 8, 32]).tolist() == [-1.5, -1.0, 0.0, 3.0]
    for x in (-1.0, 0.5, 3.0):
        probability = np.exp(log_pmf(mechanism, x, mechanism.clamp))
        assert math.fsum(probability) == pytest.approx(1, abs=1e-14)
        assert math.fsum(probability * mechanism.unbiased(reports)) == pytest.approx(x, abs=1e-12)


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 8.0])
def test_the_sphere_in_three_dimensions(epsilon):
    """The cosine of a uniform direction is uniform there, so the best height solves a quadratic equation."""
    mechanism = Sphere(epsilon=epsilon, norm=1.5, n_features=2)
    growth = math.expm1(epsilon)
    # gamma (1 + growth (1 - gamma) / 2) = growth (1 - gamma^2) / 4
    a, b, c = growth / 4, -(1 + growth / 2), growth / 4
    gamma = (-b - math.sqrt(b * b - 4 * a * c)) / (2 * a)
    mass = (1 - gamma) / 2
    assert mechanism.gamma == pytest.approx(gamma, rel=1e-8)
    assert mechanism.cap_mass == pytest.approx(mass, rel=1e-8)
    assert mechanism.near_probability == pytest.approx((1 + growth) * mass / (1 + growth * mass), rel=1e-8)
    variance = 1.5**2 * ((1 - gamma**2) / 3 + (2 + 1 / 12) / 2**28) / gamma**2
    assert mechanism.noise_variance == pytest.approx(variance, rel=1e-8)


def test_variances_of_the_parts():
    moments, record = SphereMoments(n_features=2), LabelledRecord(epsilon=2.0, n_features=3, budget_split=0.25)
    assert moments.noise_variance == Sphere(norm=moments.sphere.norm, n_features=moments.n_moments).noise_variance
    assert record.noise_variance == Gaussian(epsilon=1.5, n_features=3).noise_variance


@pytest.mark.parametrize("mechanism, top", [
    (Gaussian(n_features=3), lambda mechanism: np.full(3, mechanism.clamp[1])),
    (GaussianMoments(n_features=2), lambda mechanism: mechanism.clamp),
], ids=lambda value: type(value).__name__)
def test_one_entry_outside_the_clamps_makes_a_report_invalid(mechanism, top):
    edge = top(mechanism).astype(np.int64)
    steps = np.eye(len(edge), dtype=np.int64)
    assert mechanism.valid(np.stack([edge, -edge])).all()
    assert not mechanism.valid(np.concatenate([edge + steps, -edge - steps])).any()
    assert not mechanism.valid(steps * (edge + 1)).any()  # all other entries are zero
