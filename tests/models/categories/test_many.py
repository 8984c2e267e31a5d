"""Models of more categories than chains can sample: the approximation by marginals, against exact posteriors."""

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import beta

from skldp.models import histogram_model
from skldp.models.categories import _model
from skldp.models.categories._prior import DirichletPrior
from skldp.protocols import CategoryProtocol
from skldp.sampling import sample
from skldp.sampling._independent import independent_posterior


def zipf(d):
    return 1 / np.arange(1, d + 1) / (1 / np.arange(1, d + 1)).sum()


def aggregate_of(d, n, mechanism="block", epsilon=2.0, seed=0):
    protocol = CategoryProtocol(categories=range(d), mechanism=mechanism, epsilon=epsilon)
    records = np.random.default_rng(seed).choice(d, p=zipf(d), size=n)
    return protocol.aggregate(protocol._randomize(records, None, seed))


def test_only_many_categories_are_approximated():
    models = [histogram_model(aggregate_of(d, 100)) for d in (2048, 2049)]
    assert [model.independent is None for model in models] == [True, False]
    assert [model.likelihood for model in models] == ["exact", "marginals"]


@pytest.mark.parametrize("mechanism, mean, rms", [("block", 0.15, 0.2), ("subset", 0.04, 0.05), ("rr", 0.04, 0.05)])
def test_marginals_agree_with_chains(mechanism, mean, rms, monkeypatch):
    """On categories few enough for chains; the means differ little in posterior deviations."""
    aggregate = aggregate_of(150, 20_000, mechanism)
    chains = sample(histogram_model(aggregate), seed=0)
    monkeypatch.setattr(_model, "_MOST_SAMPLED", 100)
    fast = sample(histogram_model(aggregate), seed=0)
    assert fast.draws["frequencies"].shape == (1, 997, 150)
    np.testing.assert_allclose(fast.draws["frequencies"].sum(axis=2), 1.0, rtol=1e-9)
    std = chains.std()["frequencies"]
    difference = np.abs(fast.mean()["frequencies"] - chains.mean()["frequencies"]) / std
    # The exact likelihood of block designs knows more of a category than its own count does. The others are those of
    # the counts, and the means of chains have errors of 0.02 to 0.03.
    assert difference.mean() < mean and np.sqrt(np.mean(difference**2)) < rms
    assert 0.95 < np.median(fast.std()["frequencies"] / std) < 1.05


def test_marginals_without_noise_are_those_of_the_dirichlet_posterior():
    d, n = 3000, 20_000
    protocol = CategoryProtocol(categories=range(d), mechanism="block", epsilon=np.inf)
    records = np.random.default_rng(0).choice(d, p=zipf(d), size=n)
    model = histogram_model(protocol.aggregate(protocol._randomize(records, None, 0)), concentration=0.5)
    posterior = sample(model, inference="laplace", seed=0)
    counts = np.bincount(records, minlength=d)
    expected = beta(counts + 0.5, n + d / 2 - counts - 0.5)
    np.testing.assert_allclose(posterior.mean()["frequencies"], expected.mean(), rtol=0.06)
    np.testing.assert_allclose(posterior.std()["frequencies"], expected.std(), rtol=0.06)
    ends = posterior.interval(0.9)["frequencies"]
    np.testing.assert_allclose(ends[:50], np.transpose([expected.ppf(0.05), expected.ppf(0.95)])[:50], rtol=0.02)


def test_the_learned_concentration_allows_large_frequencies_in_any_number_of_categories():
    assert DirichletPrior(400, "auto").concentrations[0] == pytest.approx(0.005)
    assert DirichletPrior(10**5, "auto").concentrations[0] == pytest.approx(2e-5)


def test_draws_are_stratified():
    class Plain:
        n_params, coordinates, few_draws = 2100, None, False

        def independent(self, theta):
            return {"frequencies": theta}

    draws = independent_posterior(Plain(), 0).draws["frequencies"][0]
    places = np.sort((ndtr(draws) * 997).astype(int), axis=0)
    assert (places == np.arange(997)[:, None]).all()
    correlations = np.corrcoef(draws[:, :200].T)[np.triu_indices(200, 1)]
    assert abs(correlations.mean()) < 0.005 and correlations.std() == pytest.approx(997**-0.5, rel=0.25)
    np.testing.assert_allclose(draws.std(axis=0), 1.0, atol=0.01)
