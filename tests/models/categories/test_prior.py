"""Learned concentration of the Dirichlet prior."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from skldp.mechanisms import UnaryEncoding
from skldp.models.categories._likelihoods import CountLikelihood
from skldp.models.categories._prior import DirichletPrior, estimated_concentration


@pytest.mark.parametrize("d, concentration", [(7, 0.05), (60, 0.5), (7, 3.0)])
def test_mixture_is_the_integral_over_the_concentration(d, concentration):
    frequencies = np.random.default_rng(d).dirichlet(np.full(d, concentration), size=2) + 1e-12
    frequencies /= frequencies.sum(axis=1, keepdims=True)

    def integral(theta, power):
        reference = stats.dirichlet(np.full(d, concentration)).logpdf(theta)

        def density(log):
            value = stats.dirichlet(np.full(d, np.exp(log))).logpdf(theta) - reference
            return np.exp(value + power * log) * stats.norm(np.log(0.5), 1.5).pdf(log)

        return quad(density, np.log(0.005), np.log(20), limit=200, points=[np.log(concentration)])[0], reference

    log_sums = np.log(frequencies).sum(axis=1)
    value, mean = DirichletPrior(d, "auto").evaluate(log_sums)
    wanted = [np.log(part) + reference for part, reference in (integral(theta, 0) for theta in frequencies)]
    np.testing.assert_allclose(np.diff(value - log_sums), np.diff(wanted), atol=0.02)
    ratio = [integral(theta, 1)[0] / integral(theta, 0)[0] for theta in frequencies]
    np.testing.assert_allclose(mean, ratio, rtol=0.03)


def test_slope_is_the_mean_concentration():
    prior, step = DirichletPrior(5, "auto"), 1e-5
    at = np.array([-60.0, -20.0, -9.0])
    numeric = (prior.evaluate(at + step)[0] - prior.evaluate(at - step)[0]) / (2 * step)
    np.testing.assert_allclose(prior.evaluate(at)[1], numeric, rtol=1e-6)


@pytest.mark.parametrize("truth", [0.03, 0.3, 3.0])
def test_estimated_concentration_is_near_the_truth(truth):
    rng, d, n = np.random.default_rng(3), 1000, 10**8
    mechanism = UnaryEncoding(epsilon=1.0, n_categories=d)
    means = mechanism.q + (mechanism.p - mechanism.q) * rng.dirichlet(np.full(d, truth))
    likelihood = CountLikelihood(mechanism, rng.binomial(n, means), n)
    assert abs(np.log(estimated_concentration([likelihood]) / truth)) < 0.2


def test_estimated_concentration_without_reports_is_the_centre_of_its_prior():
    likelihood = CountLikelihood(UnaryEncoding(epsilon=1.0, n_categories=100), np.zeros(100, dtype=int), 0)
    assert estimated_concentration([likelihood]) == pytest.approx(0.5, rel=0.25)  # the prior is flat: its scale is 1.5
