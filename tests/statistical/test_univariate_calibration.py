"""End-to-end calibration of the univariate estimators: prior, records, reports, posterior."""

import functools

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtri

from skldp import MCMC, LDPDistribution, LDPExponential, LDPGaussian, LDPGeometric, LDPPoisson
from skldp.sampling import sample
from tests.statistical.calibration import rank_scores, worst_p_value

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
              # One of a thousand fits of the right model warns.
              pytest.mark.filterwarnings("ignore::skldp.exceptions.ModelMisfitWarning")]

N_FITS, N_CLIENTS, LEVEL = 100, 2000, 1e-4
N_DRAWS = 200  # for each of 16 chains: well over a thousand effective draws


def gamma_model():
    return LDPDistribution(distribution="gamma", bounds=(0, 12), epsilon=2.0,
                           priors={"a": stats.gamma(4, scale=0.5), "scale": stats.gamma(4, scale=0.25)})


RECORDS = {
    LDPGaussian: lambda rng, mean, std: rng.normal(mean, std, size=N_CLIENTS),
    LDPExponential: lambda rng, rate: rng.exponential(1 / rate, size=N_CLIENTS),
    LDPPoisson: lambda rng, rate: rng.poisson(rate, size=N_CLIENTS),
    LDPGeometric: lambda rng, probability: rng.geometric(probability, size=N_CLIENTS) - 1,
    LDPDistribution: lambda rng, a, scale: rng.gamma(a, scale, size=N_CLIENTS),
}
CASES = {
    "gaussian square wave": lambda: LDPGaussian(epsilon=1.0),
    "gaussian laplace": lambda: LDPGaussian(epsilon=1.0, mechanism="laplace"),
    "gaussian gaussian": lambda: LDPGaussian(epsilon=3.0, mechanism="gaussian"),
    "exponential square wave": lambda: LDPExponential(epsilon=1.0),
    "exponential laplace": lambda: LDPExponential(epsilon=1.0, mechanism="laplace"),
    "poisson square wave": lambda: LDPPoisson(epsilon=1.0),
    "poisson laplace": lambda: LDPPoisson(epsilon=1.0, mechanism="laplace"),
    "geometric square wave": lambda: LDPGeometric(epsilon=1.0),
    "geometric laplace": lambda: LDPGeometric(epsilon=1.0, mechanism="laplace"),
    "gamma square wave": gamma_model,
}
N_BETA = 20


def scores_of(make, n_fits, break_model=None):
    """Rank scores of repeated collections with true parameters drawn from the prior."""
    all_scores = []
    for seed in range(n_fits):
        rng = np.random.default_rng(seed)
        model = make().set_params(random_state=seed, inference=MCMC(n_draws=N_DRAWS))
        truth = {name: float(prior.quantile(rng.random())) for name, prior in model._family().priors.items()}
        records = RECORDS[type(model)](rng, *truth.values())
        aggregate = model.aggregate(model.privatize(records[:, None]))
        if break_model is None:
            posterior = model.fit_reports(aggregate).posterior_
        else:
            posterior = sample(break_model(model._models(aggregate)[0]), seed=seed, inference=MCMC(n_draws=N_DRAWS))
        all_scores.append(rank_scores(posterior, truth))
    return all_scores


@pytest.mark.parametrize("case", CASES)
def test_posterior_is_calibrated(case):
    assert worst_p_value(scores_of(CASES[case], N_FITS)) > LEVEL


def half_the_noise(model):
    """Return a wrong model: additive noise of half the variance, or a square wave of higher contrast."""
    for likelihood in model.likelihoods:
        if hasattr(likelihood, "near"):
            likelihood.near, likelihood.far = likelihood.near * 1.3, likelihood.far * 0.8
        elif hasattr(likelihood, "scale"):
            likelihood.scale /= np.sqrt(2)
        else:
            sharper = likelihood.kernel**2
            likelihood.kernel = sharper / sharper.sum(axis=1, keepdims=True)
    return model


@pytest.mark.parametrize("case", ["gaussian square wave", "gaussian laplace", "exponential square wave",
                                  "poisson laplace", "geometric square wave"])
def test_a_likelihood_with_half_the_noise_is_detected(case):
    assert worst_p_value(scores_of(CASES[case], N_FITS, half_the_noise)) < LEVEL


def test_the_default_beta_is_calibrated():
    """Bounds at the ends of the support fix loc and scale; the shapes are drawn from their default priors."""
    all_scores = []
    for seed in range(N_BETA):
        rng = np.random.default_rng(seed)
        model = LDPDistribution(distribution="beta", bounds=(0, 10), random_state=seed)
        truth = {name: float(prior.quantile(rng.random())) for name, prior in model._family().priors.items()}
        model.fit(10 * rng.beta(*truth.values(), size=(N_CLIENTS, 1)))
        assert set(truth) == {"a", "b"} and max(model.posterior_.rhat.values()) <= 1.01
        all_scores.append(rank_scores(model.posterior_, truth))
    assert worst_p_value(all_scores) > LEVEL


@functools.cache
def sampled_fits():
    """Parameters of two columns, and posterior draws from clients that each report one of the columns."""
    fits = []
    for seed in range(N_FITS // 2):
        rng = np.random.default_rng(seed)
        model = LDPGaussian(columns="sample", random_state=seed, inference=MCMC(n_draws=N_DRAWS))
        priors = model._family().priors
        truth = {name: np.array([prior.quantile(rng.random()) for _ in range(2)]) for name, prior in priors.items()}
        model.fit(rng.normal(truth["mean"], truth["std"], size=(2 * N_CLIENTS, 2)))
        fits.append((truth, {name: values.reshape(-1, 2) for name, values in model.posterior_.draws.items()}))
    return fits


def sampled_scores(order):
    """Rank scores of the parameters, with the posteriors of the columns in a given order."""
    return [{name: ndtri(((draws[name][:, place] < values[column]).sum() + 0.5) / (len(draws[name]) + 1))
             for name, values in truth.items()}
            for truth, draws in sampled_fits() for column, place in enumerate(order)]


def test_sampled_columns_are_calibrated():
    assert worst_p_value(sampled_scores((0, 1))) > LEVEL


def test_exchanged_columns_are_detected():
    assert worst_p_value(sampled_scores((1, 0))) < LEVEL
