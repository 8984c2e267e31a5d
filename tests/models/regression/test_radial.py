"""The radial change of coordinates against its definition."""

import numpy as np
import pytest
from scipy import stats

from skldp.models.regression._radial import Identity, RadialMap


@pytest.mark.parametrize("n", [1, 3, 28])
@pytest.mark.parametrize("scale, log_std", [(1.0, 0.5), (0.1, 1.2), (2.5, 1e-3)])
def test_image_inverse_and_jacobian(n, scale, log_std):
    radial, rng = RadialMap(n, scale, log_std), np.random.default_rng(n)
    b = rng.standard_normal((5, n))
    found = radial(b)
    square = (b**2).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found.image, scale * b * np.exp(2 * log_std * np.tanh((square - n) / np.sqrt(8 * n))),
                               rtol=1e-12)
    np.testing.assert_allclose(radial.inverse(found.image), b, rtol=1e-9)
    step = 1e-5
    for row, log_jacobian in zip(b, found.log_jacobian):
        ends = radial(row + step * np.vstack([np.eye(n), -np.eye(n)])).image
        numeric = (ends[:n] - ends[n:]) / (2 * step)
        assert log_jacobian == pytest.approx(np.linalg.slogdet(numeric)[1], abs=1e-6)


@pytest.mark.parametrize("n", [1, 4])
def test_pull_back_matches_finite_differences(n):
    radial, rng, step = RadialMap(n, 0.3, 0.9), np.random.default_rng(n), 1e-6
    b, weights = rng.standard_normal((5, n)), rng.standard_normal(n)

    def value(b):
        point = radial(b)
        return np.sin(point.image) @ weights + point.log_jacobian

    numeric = np.transpose([(value(b + step * e) - value(b - step * e)) / (2 * step) for e in np.eye(n)])
    point = radial(b)
    np.testing.assert_allclose(point.pull_back(np.cos(point.image) * weights), numeric, rtol=1e-6, atol=1e-7)


def test_log_of_common_scale_has_the_given_standard_deviation():
    b = np.random.default_rng(0).standard_normal((20_000, 40))
    sizes = np.log(np.linalg.norm(RadialMap(40, 0.2, 0.8)(b).image, axis=1) / np.sqrt(40))
    square = stats.chi2(40).median()
    median = np.log(0.2 * np.sqrt(square / 40)) + 2 * 0.8 * np.tanh((square - 40) / np.sqrt(8 * 40))
    assert np.median(sizes) == pytest.approx(median, abs=0.02)
    assert sizes.std() == pytest.approx(0.8, rel=0.1)


def test_inverse_of_zero_and_of_empty_vectors():
    assert (RadialMap(3, 0.5, 1.0).inverse(np.zeros((2, 3))) == 0).all()
    assert RadialMap(0, 0.5, 1.0).inverse(np.empty((2, 0))).shape == (2, 0)
    assert (RadialMap(0, 0.5, 1.0)(np.empty((2, 0))).log_jacobian == 0).all()


def test_identity_changes_nothing():
    b = np.random.default_rng(0).standard_normal((4, 3))
    point = Identity()(b)
    assert point.image is b and point.log_jacobian == 0 and Identity().inverse(b) is b and point.pull_back(b) is b
