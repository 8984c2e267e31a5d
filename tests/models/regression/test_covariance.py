"""Coordinates and priors of a covariance matrix against their definitions."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats

from skldp.models.regression._covariance import CovarianceCoordinates, HalfNormalScales, LearnedScales
from tests.models.regression.priors import Prior, differences


def covariance_of(theta, order):
    """Return a covariance matrix from the definition of its coordinates: log scales, then rows of the factor."""
    d = len(order)
    factor, free = np.zeros((d, d)), list(theta[d:])
    for j in range(d):
        row = np.array([free.pop(0) for _ in range(j)])
        r = np.linalg.norm(row)
        factor[j, :j] = row * np.tanh(r) / r if j else row
        factor[j, j] = 1 / np.cosh(r)
        factor[j] *= np.exp(theta[j])
    covariance = np.empty((d, d))
    covariance[np.ix_(order, order)] = factor @ factor.T
    return covariance


def correlations(covariance):
    size = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    return covariance / size[:, :, None] / size[:, None, :]


@pytest.mark.parametrize("order", [[0], [1, 0], [2, 0, 1], [3, 1, 0, 2]])
def test_covariance_is_that_of_the_definition_and_is_inverted(order):
    d = len(order)
    coordinates = CovarianceCoordinates(d, HalfNormalScales(0.5), 2.0, np.array(order))
    theta = np.random.default_rng(d).normal(size=(4, coordinates.n_params))
    covariance = coordinates.expand(theta).covariance
    np.testing.assert_allclose(covariance, [covariance_of(row, order) for row in theta], rtol=1e-12)
    np.testing.assert_allclose(coordinates.coordinates(covariance), theta, rtol=1e-9)


@pytest.mark.parametrize("eta", [0.5, 1.0, 3.0])
def test_correlation_of_two_columns_is_a_beta(eta):
    coordinates = CovarianceCoordinates(2, HalfNormalScales(0.5), eta)
    t = np.linspace(-40, 40, 80_001)
    point = coordinates.expand(np.column_stack([np.full((len(t), 2), -1.0), t]))
    weight = np.exp(point.log_prior())
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    r = correlations(point.covariance)[:, 0, 1]
    np.testing.assert_allclose(share, stats.beta(eta, eta).cdf((r + 1) / 2), atol=1e-5)


@pytest.mark.parametrize("d, eta", [(3, 0.5), (4, 2.5)])
def test_correlations_of_more_columns_have_the_beta_marginals_of_lkj(d, eta):
    """Uses importance sampling with a proposal of heavier tails, one row of the factor at a time."""
    coordinates = CovarianceCoordinates(d, HalfNormalScales(0.5), eta, np.arange(d)[::-1])
    rng, n = np.random.default_rng(0), 300_000
    columns, log_proposal = [np.full((n, d), -1.0)], 0.0
    for j in range(1, d):
        proposal = stats.multivariate_t(np.zeros(j), np.eye(j), df=4, seed=rng)
        rows = proposal.rvs(n).reshape(n, j)
        columns.append(rows)
        log_proposal = log_proposal + proposal.logpdf(rows)
    point = coordinates.expand(np.hstack(columns))
    weight = np.exp(point.log_prior() - log_proposal)
    weight /= weight.sum()
    shape = eta + d / 2 - 1
    for i, j in itertools.combinations(range(d), 2):
        r = correlations(point.covariance)[:, i, j]
        for u in (0.05, 0.3, 0.5, 0.9):
            below = r < 2 * stats.beta(shape, shape).ppf(u) - 1
            assert abs(weight @ below - u) < 5 * np.sqrt(np.sum(weight**2 * (below - u) ** 2))


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_prior_of_the_scales(d, scale):
    logs = np.random.default_rng(d).normal(-1.0, 0.5, size=(6, d))
    found = (LearnedScales(d) if scale is None else HalfNormalScales(scale))(logs)[0]
    expected = [Prior(1.0, covariance_scale=scale)._log_scales(row) for row in logs]
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-9)


def test_common_scale_is_known_within_a_factor_of_two():
    """The common scale is within a factor of 1.8 of half of R / sqrt(d), with probability 95 %."""
    prior, grid = LearnedScales(3), np.linspace(-6, 3, 4001)
    share = integrate.cumulative_trapezoid(np.exp(prior(np.repeat(grid[:, None], 3, axis=1))[0]), grid, initial=0)
    low, high = np.exp(np.interp([0.025, 0.975], share / share[-1], grid)) * np.sqrt(3)
    assert low == pytest.approx(0.5 / 1.8, rel=0.01) and high == pytest.approx(0.5 * 1.8, rel=0.01)


@pytest.mark.parametrize("scales", [LearnedScales(4), HalfNormalScales(0.3)])
@pytest.mark.parametrize("size", [1e-4, 0.5, 3.0])
def test_gradient_matches_finite_differences(scales, size):
    """Rows of size 3 have correlations of 0.99; those of size zero are where tanh(r) / r needs its limit."""
    coordinates, rng = CovarianceCoordinates(4, scales, 0.7, np.array([2, 0, 3, 1])), np.random.default_rng(0)
    theta, by_covariance = rng.normal(scale=size, size=(5, 10)), rng.normal(size=(5, 4, 4))
    theta[:, :4] = rng.normal(-1.0, 0.3, size=(5, 4))

    def value(theta):
        point = coordinates.expand(theta)
        return point.log_prior() + (by_covariance * point.covariance).sum(axis=(1, 2))

    gradient = coordinates.expand(theta).pull_back(by_covariance)
    np.testing.assert_allclose(gradient, differences(value, theta), rtol=1e-6, atol=1e-7)
    assert np.isfinite(coordinates.expand(np.zeros((1, 10))).pull_back(by_covariance[:1])).all()
