"""Mean and covariance without a response, against brute force, quadrature and finite differences."""

import itertools

import numpy as np
import pytest
from scipy import stats

from skldp import RegressionPrior
from skldp.models import CovarianceModel
from skldp.protocols import Aggregate, CovarianceProtocol
from skldp.protocols._tallies import Tally
from tests.models.regression.priors import Prior, differences
from tests.models.regression.test_linear import svec_moments
from tests.statistical.calibration import draw_covariance

PRIORS = {"auto": ("auto", Prior(1.0, spread=0.5, common=0.6)),
          "numbers": (RegressionPrior(covariance_scale=0.4, mean_scale=0.1, lkj_eta=3.0),
                      Prior(1.0, covariance_scale=0.4, mean_scale=0.1, eta=3.0))}
every_prior = pytest.mark.parametrize("prior", PRIORS)
with_and_without_mean = pytest.mark.parametrize("constant", [0.5, 0.0])


def records(d, n, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(0.1, 0.4 / np.sqrt(d), size=(n, d)) + 0.1 * rng.normal(size=(n, 1))


def aggregate_of(d, constant=0.5, n=400, mechanism="sphere", **options):
    protocol = CovarianceProtocol(n_features=d, mechanism=mechanism, intercept_weight=constant, **options)
    return protocol.aggregate(protocol._randomize(records(d, n), None, 0))


def points(model, n=5, size=0.4):
    return model.initial() + np.random.default_rng(0).normal(0.05, size, size=(n, model.n_params))


def log_prior(model, theta, prior=PRIORS["auto"][1]):
    """Log-density of the prior at coordinates, from the densities of scales, correlations and means."""
    return np.array([_log_prior(model, one, prior) + _log_jacobian(model, one, prior) for one in theta])


def _learned(model, theta, prior):
    """Logarithms of the spread of the scales and of the scale of the means, which are coordinates if learned."""
    d, has_mean = model.constrain(theta[None])["covariance"].shape[1], model.coordinates.has_mean
    spread = theta[d] if prior.covariance_scale is None and d > 1 else 0.0
    mean_scale = np.log(0.05) + np.log(10) / 2 * theta[-1] if has_mean and prior.mean_scale is None else np.log(
        prior.mean_scale or 1.0)
    return spread, mean_scale


def _log_prior(model, theta, prior):
    params = {name: values[0] for name, values in model.constrain(theta[None]).items()}
    covariance, (spread, mean_scale) = params["covariance"], _learned(model, theta, prior)
    scales = np.sqrt(np.diag(covariance))
    value = (prior.eta - 1) * np.linalg.slogdet(covariance / np.outer(scales, scales))[1]
    value += prior.log_scales(np.log(scales), spread)
    if "location" in params:
        value += stats.norm(0, np.exp(mean_scale)).logpdf(params["location"]).sum()
        if prior.mean_scale is None:
            value += stats.norm(np.log(0.05), np.log(10) / 2).logpdf(mean_scale)
    return value


def _log_jacobian(model, theta, prior):
    def natural(theta):
        """Logarithms of scales, correlations, means and learned scales."""
        params = model.constrain(theta[None])
        covariance = params["covariance"][0]
        logs, below = 0.5 * np.log(np.diag(covariance)), np.tril_indices(len(covariance), -1)
        correlations = (covariance * np.exp(-np.add.outer(logs, logs)))[below]
        spread, mean_scale = _learned(model, theta, prior)
        learned = [spread] * (prior.covariance_scale is None and len(logs) > 1)
        learned += [mean_scale] * ("location" in params and prior.mean_scale is None)
        return np.concatenate([logs, correlations, params.get("location", np.empty((1, 0)))[0], learned])

    steps = 1e-3 * np.eye(len(theta))
    jacobian = [(8 * (natural(theta + e) - natural(theta - e)) - natural(theta + 2 * e) + natural(theta - 2 * e))
                / 12e-3 for e in steps]
    return np.linalg.slogdet(jacobian)[1]


def brute_force(location, covariance, aggregate):
    """Log-likelihood of an aggregate, by an ordinary Gaussian density of all entries that are sent."""
    value, d = 0.0, len(covariance)
    for protocol, tally in aggregate.parts.items():
        shift = int(protocol.intercept_weight > 0)
        mean = np.append(np.full(shift, protocol.intercept_weight), location)
        places = [(i + shift, i + shift) for i in range(d)] + list(itertools.combinations(range(d + shift), 2))
        expected, spread = svec_moments(mean, np.pad(covariance, ((shift, 0), (shift, 0))), places)
        spread += max(protocol.randomizer.noise_variance, 1e-9) * np.eye(len(places))
        found = protocol.randomizer.decode((tally.sums / tally.n_reports).astype(float)[None])[0]
        value += stats.multivariate_normal(expected, spread / tally.n_reports).logpdf(found)
    return value


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("mechanism", ["sphere", "gaussian"])
@with_and_without_mean
@every_prior
def test_density_is_the_full_gaussian_with_its_prior(prior, constant, mechanism, d):
    aggregate = sum(aggregate_of(d, constant, n, mechanism, epsilon=epsilon) for epsilon, n in ((1.0, 300), (8.0, 500)))
    model = CovarianceModel(aggregate, PRIORS[prior][0])
    theta, params = points(model), model.constrain(points(model))
    likelihoods = [brute_force(params["location"][i] if constant else np.zeros(d), params["covariance"][i], aggregate)
                   for i in range(len(theta))]
    expected = log_prior(model, theta, PRIORS[prior][1]) + likelihoods
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-6, atol=1e-6)


@with_and_without_mean
@every_prior
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("epsilon, tolerance", [(5.0, 1e-5), (np.inf, 2e-3)])
def test_gradient_matches_finite_differences(prior, constant, d, epsilon, tolerance):
    model = CovarianceModel(aggregate_of(d, constant, 5000, epsilon=epsilon), PRIORS[prior][0])
    theta = np.vstack([points(model, 3), points(model, 2, size=1.5)])
    value, gradient = model.gradient(theta)
    np.testing.assert_allclose(value, model.log_density(theta), rtol=1e-12)
    numeric = differences(model.log_density, theta)
    np.testing.assert_allclose(gradient, numeric, rtol=tolerance, atol=tolerance * np.abs(numeric).max())


@with_and_without_mean
@pytest.mark.parametrize("d", [1, 5])
def test_initial_point_has_finite_density_for_arbitrary_reports(constant, d):
    """Uses random well-formed sums, whose decoded moments belong to no distribution."""
    for epsilon, seed in itertools.product((0.1, 20.0, np.inf), range(20)):
        protocol, rng = CovarianceProtocol(n_features=d, intercept_weight=constant, epsilon=epsilon), \
            np.random.default_rng(seed)
        size = int(10 ** rng.uniform(0, 12))
        sums = rng.integers(-size, size + 1, size=protocol.width)
        model = CovarianceModel(Aggregate({protocol: Tally(int(rng.integers(1, 1000)), sums.astype(object))}))
        start = model.initial()
        assert np.isfinite(model.log_density(start[None])).all() and np.isfinite(model.gradient(start[None])[1]).all()


def test_the_mean_can_have_another_name():
    model = CovarianceModel(aggregate_of(2, data_norm=2.0), mean_name="mean")
    assert list(model.constrain(points(model))) == ["mean", "covariance"]


@pytest.mark.parametrize("prior", [*PRIORS])
def test_prior_deviations_are_those_of_draws(prior):
    """Of the logarithm of a variance and of a correlation, by which the information gained is measured."""
    rng, d = np.random.default_rng(0), 3
    model = CovarianceModel(aggregate_of(d, n=0), PRIORS[prior][0])
    log_variance, correlation = model.coordinates.matrix.prior_deviations()
    if prior == "numbers":
        assert log_variance == pytest.approx(2 * np.log(np.abs(rng.normal(size=200_000))).std(), rel=0.01)
        return
    draws = np.array([draw_covariance(rng, d, 0.5, 0.6) for _ in range(20_000)])
    logs = np.log(np.diagonal(draws, axis1=1, axis2=2))
    assert log_variance == pytest.approx(logs.std(), rel=0.15)  # the variance of s^2 is infinite
    found = draws[:, 0, 1] / np.exp(0.5 * (logs[:, 0] + logs[:, 1]))
    assert correlation == pytest.approx(found.std(), rel=0.02)
