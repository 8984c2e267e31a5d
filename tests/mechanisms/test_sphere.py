import mpmath
import numpy as np
import pytest

from skldp.mechanisms import Gaussian, Sphere
from skldp.mechanisms._sphere import RESOLUTION, cap_mass, mean_cosine
from skldp.privacy import SeededWords, uniform_below
from tests.mechanisms.exact_points import point_errors
from tests.mechanisms.registry import repeat


@pytest.mark.parametrize("n_features", [1, 2, 5, 65])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 6.0])
def test_unbiased_with_the_stated_isotropic_covariance(n_features, epsilon):
    mechanism = Sphere(epsilon=epsilon, norm=2.0, n_features=n_features)
    record = np.zeros(n_features)
    record[0], record[-1] = 1.5, -0.9
    n = 100_000 if n_features < 20 else 40_000
    reports = mechanism.decode(mechanism.randomize(repeat(record, n), rng=0))
    error = (reports.mean(axis=0) - record) / np.sqrt(mechanism.noise_variance / n)
    assert np.abs(error).max() < 4.5
    deviation = (reports - record) / np.sqrt(mechanism.noise_variance)
    for i, j in {(0, 0), (0, n_features - 1), (n_features - 1, n_features - 1), (0, n_features // 2)}:
        product = deviation[:, i] * deviation[:, j]
        assert abs(product.mean() - (i == j)) < 5 * product.std() / np.sqrt(n)


@pytest.mark.parametrize("m", [2, 3, 66, 2000, 20_000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_gamma_is_the_fixed_point_and_the_best_height(m, epsilon):
    mechanism = Sphere(epsilon=epsilon, n_features=m - 1)
    gamma, cap_epsilon = mechanism.gamma, mechanism._cap_epsilon
    assert mean_cosine(gamma, cap_epsilon, m) == pytest.approx(gamma, rel=1e-9)
    for other in (0.98 * gamma, min(1.02 * gamma, (1 + gamma) / 2)):
        assert mean_cosine(other, cap_epsilon, m) <= mean_cosine(gamma, cap_epsilon, m) * (1 + 1e-12)
    assert 0.99 * epsilon <= cap_epsilon < epsilon


@pytest.mark.parametrize("m", [2, 3, 66, 2000])
@pytest.mark.parametrize("epsilon", [0.01, 1.0, 20.0])
def test_the_level_margin_covers_the_error_of_the_cap(m, epsilon):
    mechanism = Sphere(epsilon=epsilon, n_features=m - 1)
    with mpmath.workdps(50):
        height = mpmath.mpf(mechanism.gamma)
        mass = mpmath.betainc(mpmath.mpf(m - 1) / 2, 0.5, 0, 1 - height**2, regularized=True) / 2
        far = mpmath.mpf(mechanism._far_threshold) / 2**64
        ratio = (1 - far) / mass / (far / (1 - mass))
        assert ratio <= mpmath.exp(mechanism._cap_epsilon)
        assert ratio >= mpmath.exp(mechanism._cap_epsilon - 1e-10)
        assert abs(cap_mass(mechanism.gamma, m) / mass - 1) < 2.0**-42


@pytest.mark.parametrize("n_features, epsilon", [(1, 1.0), (2, 0.1), (5, 4.0), (30, 1.0), (30, 10.0), (19, 20.0)])
def test_float_error_of_the_point_is_within_its_bound(n_features, epsilon):
    def target(cap, near, upper, uniform):
        """Share of the sphere beyond the cosine, from the pole of its half."""
        return uniform * (cap if near else (1 - cap) / 2) + (cap if upper and not near else 0)

    mechanism = Sphere(epsilon=epsilon, n_features=n_features)
    for error, shortest in point_errors(mechanism, target):
        assert error * shortest <= (mechanism.dimension + 64) * mpmath.mpf(2) ** -52


def test_every_report_lies_near_the_sphere_and_far_ones_are_refused():
    mechanism = Sphere(epsilon=1.0, n_features=5)
    reports = mechanism.randomize(np.zeros((1000, 5)))
    length = np.linalg.norm(reports.astype(float), axis=1)
    assert np.abs(length - RESOLUTION).max() < 40
    assert mechanism.valid(reports).all()
    assert not mechanism.valid(reports.astype(np.int64) * 2).any()
    assert not mechanism.valid(np.zeros((3, 6), dtype=int)).any()


def test_the_share_of_reports_in_the_cap_is_p():
    mechanism = Sphere(epsilon=2.0, n_features=4)
    record = np.array([0.3, -0.5, 0.2, 0.1])
    reports = mechanism.randomize(repeat(record, 100_000), rng=1)
    log_prob = mechanism.log_prob(reports, repeat(record, len(reports)))
    share = (log_prob == log_prob.max()).mean()
    assert share == pytest.approx(mechanism.near_probability, abs=0.01)
    assert np.exp(log_prob.max()) * mechanism.cap_mass == pytest.approx(mechanism.near_probability, rel=1e-12)


def test_directions_orthogonal_to_the_record_are_uniform():
    mechanism = Sphere(epsilon=1.0, n_features=2)
    record = np.array([0.6, -0.8])
    reports = mechanism.randomize(repeat(record, 100_000), rng=2).astype(float)
    across = reports @ np.array([[0.8, 0.0], [0.6, 0.0], [0.0, 1.0]])
    angle = np.sort(np.arctan2(across[:, 1], across[:, 0])) / (2 * np.pi) + 0.5
    distance = np.abs(angle - np.arange(len(angle)) / len(angle)).max()
    assert distance < 2.6 / np.sqrt(len(angle))  # Kolmogorov-Smirnov test at a level of 1e-5


def test_far_less_noise_than_the_gaussian_mechanism():
    for epsilon in (0.1, 1.0, 10.0):
        sphere, gaussian = Sphere(epsilon=epsilon, n_features=66), Gaussian(epsilon=epsilon, n_features=66)
        assert 5 < gaussian.noise_variance / sphere.noise_variance < 12


def test_published_noise():
    variance = [Sphere(epsilon=epsilon, n_features=65).noise_variance for epsilon in (0.3, 1.0, 3.2)]
    np.testing.assert_allclose(variance, [69, 6.3, 0.66], rtol=0.03)


def test_words_with_zero_tangent_give_a_point_of_the_sphere():
    """With one feature the orthogonal direction is a sign; if it were zero the report would be the record."""

    class AllOnes(SeededWords):
        def words(self, n_words):
            return np.full(n_words, 2**63 - 1, dtype=np.uint64)

    mechanism = Sphere(epsilon=1.0, n_features=1)
    reports = mechanism.randomize(np.array([[0.5]]), AllOnes(b""))
    assert mechanism.valid(reports).all()


def test_records_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"shape \(n, 5\)"):
        Sphere(n_features=5).randomize([[1.0]])
    assert not Sphere(n_features=5).valid(np.zeros((2, 9), dtype=int)).any()


def test_dither_hides_the_grid():
    """Without the dither, a report's distance from the sphere would reveal float rounding; with it, it is noise."""
    mechanism = Sphere(epsilon=1.0, n_features=1)
    reports = mechanism.randomize(np.zeros((50_000, 1)), rng=0).astype(float)
    off = np.linalg.norm(reports, axis=1) - RESOLUTION
    assert off.var() == pytest.approx(2 + 1 / 12, rel=0.1)


def test_small_words_draw_every_category_equally():
    words = SeededWords(b"x").words(90_000)
    counts = np.bincount(uniform_below(words, 9), minlength=9)
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 50
