"""Coordinates of frequencies, and the independent posteriors behind them, against closed forms and quadrature."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import gammaln

from skldp.mechanisms import RandomizedResponse, SubsetSelection, UnaryEncoding
from skldp.models import histogram_model
from skldp.models.categories._coordinates import FrequencyCoordinates
from skldp.models.categories._likelihoods import CountLikelihood, MultinomialLikelihood, pooled_estimate
from skldp.models.categories._marginals import Marginals
from skldp.protocols import CategoryProtocol


def no_reports(d):
    return MultinomialLikelihood(RandomizedResponse(epsilon=1.0, n_categories=d), np.zeros(d), 0)


def counts(d=6, n=2000, epsilon=1.0, mechanism=SubsetSelection):
    rng, randomizer = np.random.default_rng(d), mechanism(epsilon=epsilon, n_categories=d)
    reports = randomizer.randomize(rng.choice(d, p=rng.dirichlet(np.full(d, 0.4)), size=n), rng)
    return CountLikelihood(randomizer, reports.sum(axis=0, dtype=int), n)


@pytest.mark.parametrize("concentration", [0.02, 0.5, 1.0, 20.0, 1000.0])
def test_without_reports_marginals_are_gamma(concentration):
    marginals = Marginals([no_reports(5)], concentration)
    np.testing.assert_allclose(1 / marginals.variance, 5 * concentration, rtol=0.01)
    coordinates, gamma = FrequencyCoordinates(marginals), stats.gamma(concentration, scale=1 / (5 * concentration))
    x = np.linspace(-3, 3, 25)
    logs = coordinates(np.tile(x[:, None], 5))[0]
    shown = logs[:, 0] > -600  # otherwise the frequency is zero in floating point
    np.testing.assert_allclose(gamma.cdf(np.exp(logs[shown, 0])), stats.norm.cdf(x[shown]), atol=0.003)


@pytest.mark.parametrize("fineness", [1, 4])
@pytest.mark.parametrize("concentration", [0.1, 1.0, 5.0])
def test_evidence_is_that_of_dirichlet_multinomial_counts(concentration, fineness):
    sums = np.array([60, 30, 9, 1, 0, 0])
    likelihood = MultinomialLikelihood(RandomizedResponse(epsilon=np.inf, n_categories=6), sums, 100)  # nearly no noise
    found = [Marginals([likelihood], alpha, fineness).log_evidence for alpha in (concentration, 0.5)]

    def exact(alpha):
        return gammaln(6 * alpha) - gammaln(6 * alpha + 100) + np.sum(gammaln(sums + alpha) - gammaln(alpha))

    assert found[0] - found[1] == pytest.approx(exact(concentration) - exact(0.5), abs=0.1)


def _marginal(likelihood, frequencies, category=2):
    return likelihood.marginal(np.reshape(frequencies, (1, -1)), [category])[0]


def test_marginals_match_quadrature():
    likelihood, alpha = counts(), 0.3
    marginals = Marginals([likelihood], alpha)
    row = marginals.row[2]
    logs = marginals.logs[row]
    level = np.log(marginals.density[row]) - _marginal(likelihood, np.exp(logs)) - alpha * logs
    tilt = -np.polyfit(np.exp(logs), level, 1)[0]

    def density(log):
        value = _marginal(likelihood, np.exp(log))[0]
        return np.exp(alpha * log + value - tilt * np.exp(log))

    whole = quad(density, -60, 0, limit=400)[0]
    for x in (-1.5, 0.0, 1.0):
        end = FrequencyCoordinates(marginals)(np.full((1, 6), x))[0][0, 2]
        assert quad(density, -60, end, limit=400)[0] / whole == pytest.approx(stats.norm.cdf(x), abs=0.003)


@pytest.mark.parametrize("likelihood", [
    counts(), counts(mechanism=UnaryEncoding), counts(2), counts(40, 300), counts(5, 10**5, 2.0), no_reports(3),
    MultinomialLikelihood(RandomizedResponse(epsilon=4.0, n_categories=4), np.array([834_000, 105_000, 44_000, 17_000]),
                          10**6),
    MultinomialLikelihood(RandomizedResponse(epsilon=np.inf, n_categories=4), np.array([10**8, 1, 0, 0]), 10**8 + 1)])
@pytest.mark.parametrize("concentration", [0.005, 0.5, 30.0])
def test_means_sum_to_one_and_maps_increase(likelihood, concentration):
    marginals = Marginals([likelihood], concentration)
    middles = np.exp(marginals.logs)
    middles[:, 1:] = (middles[:, 1:] + middles[:, :-1]) / 2
    middles[:, 0] *= concentration / (1 + concentration)
    means = np.vecdot(marginals.masses, middles) / marginals.masses.sum(axis=1)
    assert means[marginals.row].sum() == pytest.approx(1, abs=1e-3)
    x = np.tile(np.linspace(-9, 9, 2000)[:, None], likelihood.n_categories)
    logs, slope, relative = FrequencyCoordinates(marginals)(x)
    assert (np.diff(logs, axis=0) > 0).all() and (slope > 0).all() and np.isfinite(relative).all()


def test_standard_errors_of_the_pooled_estimate():
    """Two cohorts of different precision: the estimates of 200 collections vary by the stated standard errors."""
    rng, frequencies, n = np.random.default_rng(0), np.array([0.02, 0.03, 0.15, 0.8]), 5000
    estimates, errors = [], []
    for _ in range(200):
        parts = []
        for epsilon in (0.5, 2.0):
            mechanism = UnaryEncoding(epsilon=epsilon, n_categories=4)
            # A bit is one with probability p for the client's own category, and q for the others.
            clients = rng.multinomial(n, frequencies)
            sums = rng.binomial(clients, mechanism.p) + rng.binomial(n - clients, mechanism.q)
            parts.append(CountLikelihood(mechanism, sums, n))
        estimate, error = pooled_estimate(parts)
        estimates.append(estimate)
        errors.append(error)
    rare = slice(0, 2)  # the variance of a count is taken as Poisson, which is too large by 1 / (1 - q) for rare ones
    ratio = np.std(estimates, axis=0)[rare] / np.mean(errors, axis=0)[rare]
    assert 0.75 < ratio.min() and ratio.max() < 1.1
    alone = [pooled_estimate([part])[1][rare] for part in parts]
    np.testing.assert_allclose(errors[-1][rare], np.sum(np.power(alone, -2.0), axis=0) ** -0.5)


@pytest.mark.parametrize("d, independent", [(64, False), (65, True)])
def test_parameters_are_independent_above_64_categories(d, independent):
    protocol = CategoryProtocol(categories=tuple(range(d)))
    model = histogram_model(protocol.aggregate(protocol._randomize(np.zeros((10, 1), dtype=int), None, 0)))
    assert model.nearly_independent is independent


def test_derivatives():
    coordinates = FrequencyCoordinates(Marginals([counts()], 0.4))
    x, step = np.random.default_rng(0).normal(0, 3, size=(50, 6)), 1e-6
    logs, slope, relative = coordinates(x)
    ends = [coordinates(x + sign * step) for sign in (1, -1)]
    np.testing.assert_allclose(slope, (ends[0][0] - ends[1][0]) / (2 * step), rtol=1e-6)
    np.testing.assert_allclose(relative * slope, (ends[0][1] - ends[1][1]) / (2 * step), rtol=1e-4, atol=1e-4)


def test_conversion_keeps_the_logarithms():
    first, second = (FrequencyCoordinates(Marginals([counts(n=n)], alpha)) for n, alpha in ((2000, 0.3), (2500, 0.5)))
    x = np.random.default_rng(0).standard_normal((30, 6))
    np.testing.assert_allclose(second(second.convert(x, first))[0], first(x)[0], atol=1e-6)
    np.testing.assert_allclose(first.convert(x, first), x, atol=1e-6)


@pytest.mark.parametrize("d, n, alpha", [(100, 5000, "auto"), (200, 10**5, "auto"), (300, 10**4, 0.02)])
def test_posterior_is_nearly_standard_normal(d, n, alpha):
    protocol = CategoryProtocol(categories=tuple(range(d)))
    weights = 1 / np.arange(1, d + 1)
    records = np.random.default_rng(d).choice(d, p=weights / weights.sum(), size=(n, 1))
    model = histogram_model(protocol.aggregate(protocol._randomize(records, None, 0)), alpha)
    x = np.random.default_rng(0).standard_normal((64, d))
    assert np.sqrt(np.mean((x + model.gradient(x)[1]) ** 2)) < 0.45


def test_model_in_coordinates_of_another():
    protocol = CategoryProtocol(categories=tuple(range(70)))
    reports = [protocol._randomize(np.arange(n)[:, None] % 9, None, n) for n in (400, 300)]
    first, second = (histogram_model(protocol.aggregate(part)) for part in reports)
    moved, x = second.in_coordinates_of(first), np.zeros((2, 70))
    assert moved.likelihoods is second.likelihoods
    np.testing.assert_array_equal(moved.constrain(x)["frequencies"], first.constrain(x)["frequencies"])
    assert moved.log_density(x)[0] != first.log_density(x)[0]
