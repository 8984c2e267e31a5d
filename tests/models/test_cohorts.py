"""Cohorts with different windows and subset sizes: each is decoded with its own protocol."""

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone

from skldp import LDPGaussian, LDPHistogram
from skldp.exceptions import InvalidReportError
from skldp.models import GammaPrior, GaussianFamily, NormalPrior, UnivariateModel, histogram_model
from skldp.protocols import CategoryProtocol, ValueProtocol

WINDOWS = [{}, {"window": 0.3}, {"window": 0.0}, {"epsilon": 0.3}, {"epsilon": 4.0}]
VALUES = [ValueProtocol(bounds=(-1, 2), n_levels=24, **change) for change in WINDOWS]
SIZES = [{}, {"subset_size": 1}, {"subset_size": 4}, {"subset_size": 6}, {"epsilon": 0.3}, {"epsilon": 4.0}]
CATEGORIES = [CategoryProtocol(categories=tuple(range(7)), **change) for change in SIZES]


def total(protocols, draw, n=4000, **options):
    reports = [protocol._randomize(draw(np.random.default_rng(k), n), None, k) for k, protocol in enumerate(protocols)]
    return reports, sum(one.aggregate(rows, **options) for one, rows in zip(protocols, reports))


def values(rng, n):
    return rng.normal(0.4, 0.5, size=(n, 1))


def categories(rng, n):
    return rng.choice(7, p=np.arange(1, 8) / 28, size=n)


def test_density_of_cohorts_with_different_windows_is_a_sum_over_reports():
    family = GaussianFamily({"mean": NormalPrior(0.0, 2.5), "std": GammaPrior(2.0, 4.0)})
    reports, aggregate = total(VALUES, values, n=50)
    theta = np.array([[0.3, np.log(0.5)], [0.6, np.log(0.3)]])
    edges = np.concatenate([[-np.inf], -1 + (np.arange(24) + 0.5) * 3 / 24, [np.inf]])
    levels, expected = np.linspace(-1, 2, 25), np.zeros(2)
    for walker, (mean, log_std) in enumerate(theta):
        masses = np.diff(stats.norm(mean, np.exp(log_std)).cdf(edges))
        for protocol, rows in zip(VALUES, reports):
            expected[walker] += np.log(np.exp(protocol.randomizer.log_prob(rows, levels)) @ masses).sum()
    prior = UnivariateModel(family, VALUES[0].aggregate([])).log_density(theta)
    found = UnivariateModel(family, aggregate).log_density(theta) - prior
    assert found == pytest.approx(expected, rel=1e-10)


def test_density_of_cohorts_with_different_subset_sizes_is_a_sum_over_reports():
    reports, aggregate = total(CATEGORIES, categories, n=50, keep_rows=True)
    frequencies = np.random.default_rng(0).dirichlet(np.ones(7), size=3)
    expected = np.zeros(3)
    for protocol, rows in zip(CATEGORIES, reports):
        given = [protocol.randomizer.log_prob(rows, np.full(len(rows), category)) for category in range(7)]
        expected += np.log(frequencies @ np.exp(given)).sum(axis=1)
    parts = histogram_model(aggregate, likelihood="exact").likelihoods
    found = sum(part.log_likelihood(frequencies) for part in parts)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-9)


FREQUENCIES = {"frequencies": np.arange(1, 8) / 28}
GAUSSIAN = LDPGaussian(bounds=(-1, 2), inference="laplace", random_state=0)
HISTOGRAM = LDPHistogram(categories=range(7), inference="laplace", random_state=0)


@pytest.mark.parametrize("estimator, protocols, draw, truth", [
    (GAUSSIAN, [ValueProtocol(bounds=(-1, 2), **change) for change in WINDOWS], values, {"mean": 0.4, "std": 0.5}),
    (clone(HISTOGRAM).set_params(likelihood="exact"), CATEGORIES, categories, FREQUENCIES),
    (clone(HISTOGRAM).set_params(likelihood="counts"), CATEGORIES, categories, FREQUENCIES)],
    ids=["values", "rows", "counts"])
def test_posterior_of_different_cohorts_contains_the_truth(estimator, protocols, draw, truth):
    """A cohort decoded with the window or size of another would shift the means by many standard deviations."""
    options = {"keep_rows": True} if draw is categories else {}
    _, aggregate = total(protocols, draw, n=20_000, **options)
    posterior = clone(estimator).fit_reports(aggregate).posterior_
    for name, value in truth.items():
        assert np.abs((posterior.mean()[name] - value) / posterior.std()[name]).max() < 4


def test_window_and_subset_size_left_at_auto_are_taken_from_the_reports():
    chosen = ValueProtocol(bounds=(-1, 2), window=0.3, epsilon=0.5)
    model = clone(GAUSSIAN).fit_reports(total([chosen], values)[1])
    assert (model.protocol_, model.epsilon_) == (chosen, 0.5)
    model = clone(HISTOGRAM).fit_reports(total([CATEGORIES[2]], categories)[1])
    assert model.protocol_.subset_size == 4


def test_reports_with_another_window_than_the_given_one_raise_an_error():
    model = clone(GAUSSIAN).set_params(window=0.3)
    alike = [ValueProtocol(bounds=(-1, 2), window=0.3, epsilon=epsilon) for epsilon in (0.5, 1.0)]
    assert model.fit_reports(total(alike, values)[1]).n_reports_ == 8000
    for other in (ValueProtocol(bounds=(-1, 2)), ValueProtocol(bounds=(-1, 2), epsilon=0.5)):
        # As the only cohort, and as the last of several.
        for protocols in ([other], [*alike, other]):
            with pytest.raises(InvalidReportError, match=f"window is {other.window} there, and this LDPG.* has 0.3"):
                model.fit_reports(total(protocols, values)[1])


def test_default_window_given_as_a_number_must_match():
    model = clone(GAUSSIAN).set_params(window=0.125)
    assert model.fit_reports(total([ValueProtocol(bounds=(-1, 2), window=0.125, epsilon=0.5)], values)[1])
    with pytest.raises(InvalidReportError, match="window"):
        model.fit_reports(total([ValueProtocol(bounds=(-1, 2), epsilon=0.5)], values)[1])
