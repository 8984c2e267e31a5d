"""Coordinates and priors of a covariance matrix against their definitions."""

import itertools

import numpy as np
import pytest
from scipy import integrate, linalg, special, stats

from skldp.models.regression._covariance import CovarianceCoordinates, HalfNormalScales, LearnedScales
from tests.models.regression.priors import Prior, differences


def covariance_of(scales, rows, order):
    """Return a covariance matrix from the definition of its coordinates: scales, and rows of the factor."""
    d = len(order)
    factor, free = np.zeros((d, d)), list(rows)
    for j in range(d):
        row = np.array([free.pop(0) for _ in range(j)])
        rho = np.linalg.norm(row)
        r = rho * np.sqrt(1 + rho**2 / 4)
        factor[j, :j] = row * np.tanh(r) / rho if j else row
        factor[j, j] = 1 / np.cosh(r)
        factor[j] *= scales[order[j]]
    covariance = np.empty((d, d))
    covariance[np.ix_(order, order)] = factor @ factor.T
    return covariance


def half_normal_log_scales_of(theta, std):
    """Return the logarithms of half-normal scales from the definition of their coordinates."""
    return np.log(std) + np.array([x if x > 0 else x * np.sqrt(1 + x**2 / 4) for x in theta])


def log_scales_of(theta, estimate, information):
    """Return learned log scales from the definition of their coordinates: residuals, and the log spread."""
    d, centre = len(estimate), np.log(0.5 / np.sqrt(len(estimate)))
    z, spread = theta[:d], 0.2 * np.exp(theta[d]) if d > 1 else 0.2
    ones, common = np.full((d, d), 1 / d), 1 / (0.3**2 * d) + information
    precision = spread**-2.0 + information
    deviations = (np.eye(d) - ones) @ (information * estimate / precision + z / np.sqrt(precision))
    return centre + ones @ (information * (estimate - centre) / common + z / np.sqrt(common)) + deviations


def correlations(covariance):
    size = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    return covariance / size[:, :, None] / size[:, None, :]


@pytest.mark.parametrize("order", [[0], [1, 0], [2, 0, 1], [3, 1, 0, 2]])
def test_covariance_is_that_of_the_definition_and_is_inverted(order):
    d = len(order)
    coordinates = CovarianceCoordinates(d, HalfNormalScales(d, 0.5), 2.0, np.array(order))
    theta = np.random.default_rng(d).normal(size=(4, coordinates.n_params))
    covariance = coordinates.expand(theta).covariance
    expected = [covariance_of(np.exp(half_normal_log_scales_of(row[:d], 0.5)), row[d:], order) for row in theta]
    np.testing.assert_allclose(covariance, expected, rtol=1e-12)
    np.testing.assert_allclose(coordinates.coordinates(covariance), theta, rtol=1e-9)


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("information", [0.0, 9.0])
def test_learned_scales_are_those_of_the_definition_and_are_inverted(d, information):
    rng = np.random.default_rng(d)
    estimate = rng.normal(-1.5, 0.4, size=d)
    scales = LearnedScales(d, estimate, information)
    theta = rng.normal(size=(4, scales.n_params))
    logs = scales.expand(theta).log_scales
    np.testing.assert_allclose(logs, [log_scales_of(row, estimate, information) for row in theta], rtol=1e-12)
    back = scales.coordinates(logs)
    np.testing.assert_allclose(scales.expand(back).log_scales, logs, rtol=1e-12)
    if d > 1:  # the spread is the most likely one given the scales
        for row, log_scale in zip(back, logs):
            best, *others = [Prior(1.0).log_scales(log_scale, row[-1] + change) for change in (0, -0.01, 0.01)]
            assert best > max(others)


@pytest.mark.parametrize("eta", [0.5, 1.0, 3.0])
def test_correlation_of_two_columns_is_a_beta(eta):
    coordinates = CovarianceCoordinates(2, HalfNormalScales(2, 0.5), eta)
    t = np.linspace(-9, 9, 80_001)
    point = coordinates.expand(np.column_stack([np.full((len(t), 2), -1.0), t]))
    weight = np.exp(point.log_prior())
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    r = correlations(point.covariance)[:, 0, 1]
    np.testing.assert_allclose(share, stats.beta(eta, eta).cdf((r + 1) / 2), atol=1e-5)


@pytest.mark.parametrize("d, eta", [(3, 0.5), (4, 2.5)])
def test_correlations_of_more_columns_have_the_beta_marginals_of_lkj(d, eta):
    """Uses importance sampling with a proposal of heavier tails, one row of the factor at a time."""
    coordinates = CovarianceCoordinates(d, HalfNormalScales(d, 0.5), eta, np.arange(d)[::-1])
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
@pytest.mark.parametrize("information", [0.0, 9.0])
def test_prior_of_learned_scales(d, information):
    """The density of the coordinates is that of the definition times the Jacobian, by differences."""
    rng = np.random.default_rng(d)
    scales = LearnedScales(d, rng.normal(-1.5, 0.4, size=d), information)
    theta = rng.normal(scale=0.5, size=(6, scales.n_params))

    def natural(row):
        """Log scales and log spread."""
        return np.append(scales.expand(row[None]).log_scales[0], row[d:])

    expected = []
    for row in theta:
        jacobian = [(natural(row + 1e-5 * e) - natural(row - 1e-5 * e)) / 2e-5 for e in np.eye(len(row))]
        values = natural(row)
        expected.append(Prior(1.0).log_scales(values[:d], values[-1]) + np.linalg.slogdet(jacobian)[1])
    np.testing.assert_allclose(np.diff(scales.expand(theta).log_prior), np.diff(expected), rtol=1e-6)


def test_prior_of_half_normal_scales():
    """The density of the coordinates is that of log scales times the Jacobian, by differences."""
    theta, expected = np.random.default_rng(0).normal(-0.5, 1.0, size=(6, 3)), []
    for row in theta:
        above, below = (half_normal_log_scales_of(row + step, 0.3) for step in (1e-5, -1e-5))
        density = Prior(1.0, covariance_scale=0.3).log_scales(half_normal_log_scales_of(row, 0.3), 0.0)
        expected.append(density + np.log((above - below) / 2e-5).sum())
    np.testing.assert_allclose(np.diff(HalfNormalScales(3, 0.3).expand(theta).log_prior), np.diff(expected), rtol=1e-7)


def test_deviations_of_scales_have_a_multivariate_t_distribution():
    """The density is integrated over the log spread."""
    scales, grid, rng = LearnedScales(3, np.zeros(3), 0.0), np.linspace(-4, 8, 2001), np.random.default_rng(0)
    found, expected = [], []
    for logs in scales.centre + rng.normal(scale=0.3, size=(4, 3)):
        deviations = logs - logs.mean()
        theta = np.empty((len(grid), 4))
        theta[:, :3] = deviations / (0.2 * np.exp(grid))[:, None]
        theta[:, :3] += (logs.mean() - scales.centre) * np.sqrt(scales.common_precision)
        theta[:, 3] = grid
        # Two contrasts of the residuals are those of the scales, divided by the spread.
        found.append(special.logsumexp(scales.expand(theta).log_prior - 2 * grid))
        expected.append(stats.norm(scales.centre, 0.3).logpdf(logs.mean())
                        + stats.multivariate_t(np.zeros(2), 0.04 * np.eye(2), df=3).logpdf(linalg.helmert(3) @ logs))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-6)


def test_common_scale_is_known_within_a_factor_of_two():
    """The common scale is within a factor of 1.8 of half of R / sqrt(d), with probability 95 %."""
    scales, z = LearnedScales(3, np.zeros(3), 0.0), np.linspace(-6, 6, 4001)
    point = scales.expand(np.column_stack([np.repeat(z[:, None], 3, axis=1), np.zeros(len(z))]))
    share = integrate.cumulative_trapezoid(np.exp(point.log_prior), point.log_scales[:, 0], initial=0)
    low, high = np.exp(np.interp([0.025, 0.975], share / share[-1], point.log_scales[:, 0])) * np.sqrt(3)
    assert low == pytest.approx(0.5 / 1.8, rel=0.01) and high == pytest.approx(0.5 * 1.8, rel=0.01)


SCALES = [LearnedScales(4, np.array([-1.0, -1.5, -0.8, -1.2]), 5.0), HalfNormalScales(4, 0.3)]


@pytest.mark.parametrize("scales", SCALES)
@pytest.mark.parametrize("size", [1e-4, 0.5, 3.0])
def test_gradient_matches_finite_differences(scales, size):
    """Rows of size 3 have correlations of 0.99; those of size zero are where tanh(r) / rho needs its limit."""
    coordinates, rng = CovarianceCoordinates(4, scales, 0.7, np.array([2, 0, 3, 1])), np.random.default_rng(0)
    n, by_covariance = coordinates.n_params, rng.normal(size=(5, 4, 4))
    theta = rng.normal(scale=size, size=(5, n))
    theta[:, :scales.n_params] = rng.normal(-1.0, 0.3, size=(5, scales.n_params))

    def value(theta):
        point = coordinates.expand(theta)
        return point.log_prior() + (by_covariance * point.covariance).sum(axis=(1, 2))

    gradient = coordinates.expand(theta).pull_back(by_covariance)
    np.testing.assert_allclose(gradient, differences(value, theta), rtol=1e-6, atol=1e-7)
    assert np.isfinite(coordinates.expand(np.zeros((1, n))).pull_back(by_covariance[:1])).all()
