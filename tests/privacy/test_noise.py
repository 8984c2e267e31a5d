"""Exact output probabilities of the production noise functions, computed by bisection."""

import math
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy.special import ndtri

from skldp.mechanisms import Gaussian, Laplace
from skldp.privacy import (
    SeededWords,
    SystemWords,
    epsilon_between,
    gaussian_noise,
    gaussian_sigma,
    gaussian_slack,
    hockey_stick,
    integer_noise,
    laplace_noise,
    laplace_slack,
    noise_pmf,
    uniform_below,
)

WIDTH = 64  # a small grid, so that every output can be enumerated


def pmf_pair(law, scale, reach):
    """Probabilities of all unclamped reports about the records 0 and WIDTH."""
    reports = np.arange(-reach, WIDTH + reach + 1)
    law = partial(law, scale=scale)
    return noise_pmf(law, reports), noise_pmf(law, reports - WIDTH)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_bisected_laplace_keeps_epsilon(epsilon):
    scale = WIDTH / epsilon
    p, q = pmf_pair(laplace_noise, scale, int(40 * scale))
    assert p.sum() == pytest.approx(1, abs=1e-12)
    found = epsilon_between(p, q)
    assert found <= epsilon + 2 * laplace_slack(scale, epsilon)
    assert found >= 0.999 * epsilon


def test_bisection_catches_laplace_noise_times_0_8():
    scale = 0.8 * WIDTH
    assert epsilon_between(*pmf_pair(laplace_noise, scale, int(40 * scale))) > 1.2


@pytest.mark.parametrize("epsilon, delta", [(0.5, 1e-5), (1.0, 1e-9), (4.0, 1e-5), (1.0, 1e-2)])
def test_bisected_gaussian_keeps_delta(epsilon, delta):
    scale = gaussian_sigma(epsilon, delta, WIDTH)
    p, q = pmf_pair(gaussian_noise, scale, int(9 * scale))
    found = hockey_stick(p, q, epsilon)
    assert 0.9 * delta <= found <= delta
    assert epsilon_between(p, q, delta) == pytest.approx(epsilon, rel=0.05)


@pytest.mark.parametrize("epsilon, delta", [(0.5, 1e-5), (1.0, 1e-9)])
def test_bisection_catches_gaussian_noise_times_0_8(epsilon, delta):
    scale = 0.8 * gaussian_sigma(epsilon, delta, WIDTH)
    assert hockey_stick(*pmf_pair(gaussian_noise, scale, int(9 * scale)), epsilon) > 10 * delta


def exact_laplace_cell(k, scale):
    with mpmath.workdps(60):
        return mpmath.exp(-(mpmath.mpf(k) - 0.5) / scale) * -mpmath.expm1(-1 / mpmath.mpf(scale)) / 2


def exact_gaussian_cell(k, scale):
    with mpmath.workdps(60):
        return mpmath.ncdf((mpmath.mpf(k) + 0.5) / scale) - mpmath.ncdf((mpmath.mpf(k) - 0.5) / scale)


@pytest.mark.parametrize("law, scale, slack, depth, exact", [
    (laplace_noise, Laplace(epsilon=0.1).scale, laplace_slack(Laplace(epsilon=0.1).scale, 0.1), 40, exact_laplace_cell),
    (laplace_noise, Laplace(epsilon=4.0).scale, laplace_slack(Laplace(epsilon=4.0).scale, 4.0), 44, exact_laplace_cell),
    (gaussian_noise, Gaussian(epsilon=0.1).scale, gaussian_slack(Gaussian(epsilon=0.1).scale), 10, exact_gaussian_cell),
    (gaussian_noise, Gaussian(epsilon=4.0).scale, gaussian_slack(Gaussian(epsilon=4.0).scale), 10, exact_gaussian_cell),
], ids=["laplace-0.1", "laplace-4", "gaussian-0.1", "gaussian-4"])
def test_float_error_of_production_noise_is_within_its_slack(law, scale, slack, depth, exact):
    outputs = np.unique(np.rint(np.geomspace(1, depth * scale - 1, 150)).astype(np.int64))
    pmf = noise_pmf(partial(law, scale=scale), outputs)
    error = [abs(float(mpmath.log(mpmath.mpf(float(p)) / exact(-int(k), scale)))) if law is gaussian_noise
             else abs(float(mpmath.log(mpmath.mpf(float(p)) / exact(int(k), scale)))) for p, k in zip(pmf, outputs)]
    # 2e-15 for the final division of the exact count by a power of two and the logarithm's own rounding.
    assert max(error) <= slack + 2e-15
    assert max(error) > slack / 1e4, "the bound says nothing if it is this loose"


def test_inverse_normal_cdf_is_as_accurate_as_the_slack_assumes():
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.random(200) / 2, np.exp(-55 * rng.random(200)) / 2, 0.5 - np.exp(-30 * rng.random(50)) / 4])
    with mpmath.workdps(50):
        for value in u:
            root = mpmath.mpf(float(ndtri(value)))
            for _ in range(3):
                root -= (mpmath.ncdf(root) - mpmath.mpf(value)) / mpmath.npdf(root)
            error = abs(mpmath.mpf(float(ndtri(value))) - root)
            assert error <= mpmath.mpf(2) ** -51 * (1 + abs(root))


def test_every_clamped_report_is_possible_for_every_record():
    for epsilon in (0.1, 1.0, 20.0):
        mechanism = Laplace(epsilon=epsilon)
        law = partial(laplace_noise, scale=mechanism.scale)
        farthest = mechanism.clamp[1] - 0
        assert (noise_pmf(law, [farthest - 1, farthest]) > 0).all()


def test_moments_of_drawn_noise():
    noise = integer_noise(gaussian_noise, 100.0, (200_000,), SeededWords(b"moments"))
    assert abs(noise.mean()) < 4 * 100 / math.sqrt(noise.size)
    assert noise.var() == pytest.approx(100**2 + 1 / 12, rel=0.02)
    noise = integer_noise(laplace_noise, 100.0, (200_000,), SeededWords(b"moments"))
    assert abs(noise.mean()) < 4 * 141.5 / math.sqrt(noise.size)
    assert np.abs(noise).mean() == pytest.approx(100, rel=0.02)


def test_chunks_continue_one_stream():
    whole = integer_noise(laplace_noise, 10.0, (70_000,), SeededWords(b"key"))
    assert len(np.unique(whole[:30_000] == whole[32_768:62_768])) == 2, "two chunks repeat the same noise"


def test_extreme_words_give_finite_noise():
    words = np.array([0, 1, 2**63 - 1, 2**63, 2**64 - 1], dtype=np.uint64)
    for law in (laplace_noise, gaussian_noise):
        noise = law(words, words, 1000.0)
        assert np.abs(noise).max() < 90_000
        assert law(words[:1], words[:1], 1000.0) == -law(words[3:4], words[:1], 1000.0)


@pytest.mark.parametrize("n_values", [1, 2, 3, 10, 1024, 2**31 + 7])
def test_uniform_below_is_the_exact_product(n_values):
    words = SystemWords().words(2000)
    expected = [(int(word) * n_values) >> 64 for word in words]
    assert uniform_below(words, n_values).tolist() == expected


@pytest.mark.parametrize("n_values", [2, 3, 10, 257, 1000, 2**31 + 7, 2**32 - 1])
def test_uniform_below_switches_at_the_exact_word(n_values):
    """Check the first word of each value and the word before it, which differ in the lowest bits."""
    values = sorted({*range(1, min(n_values, 300)), n_values - 1})
    first = [-(-value * 2**64 // n_values) for value in values]
    assert any(word % 2 for word in first) or n_values in (2, 3), "a word that only its lowest bit sets apart"
    assert uniform_below(np.array(first, dtype=np.uint64), n_values).tolist() == values
    before = np.array(first, dtype=np.uint64) - np.uint64(1)
    assert uniform_below(before, n_values).tolist() == [value - 1 for value in values]
