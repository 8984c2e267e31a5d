"""Priors of a covariance matrix, fixed and learned, against their definitions."""

import numpy as np
import pytest
from scipy import integrate, stats

from skldp.models.regression._covariance_priors import (
    LEARNED_ETAS,
    LEARNED_SHAPES,
    LEARNED_VARIANCES,
    LearnedCorrelations,
    LearnedScales,
    log_mixture,
)
from tests.models.regression.priors import covariance_coordinates


def lkj(free, d, eta):
    """Normalised density of the free rows of a factor: independent rows, each t distributed up to its scale."""
    value, start = 1.0, 0
    for n in range(1, d):
        row, start = free[start:start + n], start + n
        freedom = d + 2 * eta - 1 - n
        value *= stats.multivariate_t(np.zeros(n), np.eye(n) / freedom, df=freedom).pdf(row)
    return value


@pytest.mark.parametrize("d", [2, 3, 5])
def test_learned_correlations_are_a_mixture_of_lkj(d):
    prior, rng = LearnedCorrelations(d), np.random.default_rng(d)
    free = rng.normal(scale=0.4, size=(6, d * (d - 1) // 2))
    rows, _ = np.tril_indices(d, -1)
    log_norms = np.zeros((6, d))
    for j in range(d):
        log_norms[:, j] = np.log1p((free[:, rows == j] ** 2).sum(axis=1))
    found, exponent = prior(log_norms.sum(axis=1))
    expected = [np.log(np.mean([lkj(one, d, eta) for eta in LEARNED_ETAS])) for one in free]
    np.testing.assert_allclose(found - np.log(len(LEARNED_ETAS)), expected, rtol=1e-9)
    step = 1e-6
    derivative = (prior(log_norms.sum(axis=1) + step)[0] - prior(log_norms.sum(axis=1) - step)[0]) / (2 * step)
    np.testing.assert_allclose(-exponent[:, 0], derivative, rtol=1e-6)


def test_correlation_of_two_columns_has_the_lkj_distribution():
    # LKJ for two columns: (1 + r) / 2 is Beta(eta, eta).
    eta, a = 3.5, np.linspace(-2, 2, 9)
    r = a / np.hypot(a, 1)
    expected = stats.beta(eta, eta).pdf((1 + r) / 2) / 2 * (1 + a**2) ** -1.5
    np.testing.assert_allclose([lkj([one], 2, eta) for one in a], expected, rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 4])
def test_learned_scales_are_a_mixture_of_gammas(d):
    prior, rng = LearnedScales(d), np.random.default_rng(d)
    scales = rng.normal(scale=0.5, size=(6, d))
    found, gradient = prior(scales)
    expected = np.log(np.mean([
        np.prod(stats.gamma(a, scale=v / d / a).pdf(scales**2) * np.abs(scales), axis=1)
        for a in LEARNED_SHAPES for v in LEARNED_VARIANCES], axis=0))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-9)
    step = 1e-6 * np.eye(d)[:, None]
    ends = [prior((scales + sign * step).reshape(-1, d))[0].reshape(d, -1) for sign in (1, -1)]
    numeric = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose(gradient.T, numeric, rtol=1e-5, atol=1e-6)


def test_every_component_of_the_learned_scales_integrates_to_one():
    grid = len(LEARNED_SHAPES) * len(LEARNED_VARIANCES)
    prior = LearnedScales(1)
    mass = 2 * integrate.quad(lambda tau: np.exp(prior(np.array([[tau]]))[0][0]), 0, 20, points=[0.2, 0.5, 1, 2])[0]
    assert mass == pytest.approx(grid, rel=1e-6)


@pytest.mark.parametrize("scale", ["learned", 0.3])
@pytest.mark.parametrize("eta", ["learned", 1.5])
def test_gradients_match_finite_differences(scale, eta):
    coordinates, rng = covariance_coordinates(4, scale, eta), np.random.default_rng(0)
    theta, by_covariance = rng.normal(scale=0.5, size=(5, 10)), rng.normal(size=(5, 4, 4))

    def value(theta):
        point = coordinates.expand(theta)
        return point.log_prior() + (by_covariance * point.covariance).sum(axis=(1, 2))

    step = 1e-6
    numeric = [(value(theta + step * e) - value(theta - step * e)) / (2 * step) for e in np.eye(10)]
    gradient = coordinates.expand(theta).pull_back(by_covariance)
    np.testing.assert_allclose(gradient, np.transpose(numeric), rtol=1e-5, atol=1e-6)


def test_log_mixture_of_extreme_terms_is_finite():
    value, share = log_mixture(np.array([[-1e5, -2e5], [800.0, 800.0]]))
    np.testing.assert_allclose(value, [-1e5, 800 + np.log(2)])
    np.testing.assert_allclose(share, [[1, 0], [0.5, 0.5]])
