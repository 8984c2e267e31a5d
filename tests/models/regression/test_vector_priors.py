"""Priors of coefficients and means against their definitions."""

import numpy as np
import pytest
from scipy import stats

from skldp.models.regression._radial import Identity
from skldp.models.regression._vector_priors import LEARNED_MEANS, LearnedMeans, NormalPrior, StudentPrior


def vectors(d, size):
    return size * np.random.default_rng(d).standard_normal((6, d))


@pytest.mark.parametrize("d", [1, 3, 20])
@pytest.mark.parametrize("size", [1e-3, 0.05, 0.4])
def test_learned_means_are_a_mixture_of_normals(d, size):
    means = vectors(d, size)
    expected = np.log(np.mean([stats.norm(0, scale).pdf(means).prod(axis=1) for scale in LEARNED_MEANS], axis=0))
    np.testing.assert_allclose(np.diff(LearnedMeans(d)(means)[0]), np.diff(expected), rtol=1e-9)


@pytest.mark.parametrize("prior", [LearnedMeans(3), NormalPrior(0.3), StudentPrior(0.3, 3)])
def test_gradients_match_finite_differences(prior):
    points, step = vectors(3, 0.1), 1e-6
    numeric = np.transpose([(prior(points + step * e)[0] - prior(points - step * e)[0]) / (2 * step)
                            for e in np.eye(3)])
    np.testing.assert_allclose(prior(points)[1], numeric, rtol=1e-6)


def test_fixed_scale_has_the_identity_map():
    assert isinstance(NormalPrior(0.1).radial_map(2, 0.1), Identity)


@pytest.mark.parametrize("standard_error, most", [
    (np.inf, LEARNED_MEANS[-1]), (0.05, 0.05), (1e-5, 1.01 * LEARNED_MEANS[0])])
def test_radial_map_of_learned_means_covers_the_remaining_scales(standard_error, most):
    radial, least = LearnedMeans(3).radial_map(3, standard_error), LEARNED_MEANS[0]
    assert np.exp(radial.log_scale) == pytest.approx(np.sqrt(least * most))
    assert radial.log_std == pytest.approx(np.log(most / least) / 3)
