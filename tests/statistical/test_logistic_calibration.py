"""End-to-end calibration of LDPBayesLogisticRegression: prior, records, reports, posterior."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, ndtri

from skldp import MCMC, LDPBayesLogisticRegression
from skldp.models.regression import _covariance_priors as priors
from skldp.models.regression import _logistic_coordinates as coordinates
from skldp.models.regression import _vector_priors as vector_priors
from skldp.sampling import sample
from tests.flat import build
from tests.statistical.calibration import p_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

N_FITS, LEVEL = 100, 1e-4
SAMPLING = {"n_walkers": 16, "n_warmup": 40, "n_draws": 40}
FEW_WALKERS = {**SAMPLING, "n_walkers": 8}  # for records, where every walker needs its own pass over the labels
# Clipping to the ball is not modelled; at a tenth of the radius almost no record is clipped.
PRIORS = {"coef": "normal", "coef_scale": 10.0, "covariance_scale": 0.1, "lkj_eta": 2.0, "mean_scale": 0.05}
INTERCEPT_SCALE = 1.0
# Number of features and of clients. With few clients the posterior would be the prior.
CASES = {
    "sphere": (1, 40_000, {"epsilon": 20.0}),
    "gaussian": (1, 200_000, {"epsilon": 20.0, "delta": 1e-6, "mechanism": "gaussian", "fit_intercept": False}),
    "inputs": (1, 600, {"epsilon": 20.0, "mechanism": "records", "budget_split": 0.2}),
}
# Wrong noise shows only if it exceeds the variance of the moments, which is large with labels and a constant.
CASES_OF_MUTANTS = {**CASES, "sphere": (1, 40_000, {"epsilon": 8.0, "fit_intercept": False})}
# Noisy records show their own variance, so few fits are enough to detect the wrong noise.
MUTANT_FITS = {"sphere": N_FITS, "gaussian": N_FITS, "inputs": 20}


@pytest.fixture(autouse=True)
def moderate_intercepts(monkeypatch):
    """Set a moderate scale of the intercept, which is no user parameter; large intercepts give one label only."""
    for name in ("FIXED", "LEARNING"):
        monkeypatch.setattr(coordinates, name, replace(getattr(coordinates, name), intercept=INTERCEPT_SCALE))


def draw_truth(rng, d, n_clients, intercept, heavy=False):
    factor = np.eye(d)
    if d == 2:
        # The density (1 + a^2)^-(d + 2 eta - 1)/2 is that of t / sqrt(df), df = d + 2 eta - 2.
        a = rng.standard_t(4) / 2
        factor[1] = np.array([a, 1]) / np.hypot(a, 1)
    factor *= rng.normal(scale=PRIORS["covariance_scale"], size=d)[:, None]
    truth = {"coef": rng.normal(scale=PRIORS["coef_scale"], size=d), "covariance": factor @ factor.T}
    if heavy:
        truth["coef"] /= np.sqrt(rng.chisquare(3) / 3)
    mean = np.zeros(d)
    if intercept:
        truth["intercept"] = rng.normal(scale=INTERCEPT_SCALE)
        mean = rng.normal(scale=PRIORS["mean_scale"], size=d)
    X = mean + rng.normal(size=(n_clients, d)) @ factor.T
    y = rng.random(n_clients) < expit(X @ truth["coef"] + truth.get("intercept", 0.0))
    return truth, X, y


def scores_of(case, n_fits, break_model=None):
    """Standard normal scores of the true parameters in their posteriors, shape (n_fits, n_parameters)."""
    d, n_clients, options = (CASES if break_model is None else CASES_OF_MUTANTS)[case]
    sampling, scores = FEW_WALKERS if case == "inputs" else SAMPLING, []
    for seed in range(n_fits):
        model = build(LDPBayesLogisticRegression, random_state=seed, classes=[False, True], **options, **PRIORS,
                      **sampling)
        truth, X, y = draw_truth(np.random.default_rng(seed), d, n_clients, model.fit_intercept)
        aggregate = model.aggregate(model.privatize(X, y))
        if break_model is None:
            posterior = model.fit_reports(aggregate).posterior_
        else:
            posterior = sample(break_model(model, aggregate), seed=seed, inference=MCMC(**sampling))
        scores.append(ranks_of(posterior, truth))
    return np.array(scores)


def worst_p_value(scores):
    values = [p for column in scores.T for p in p_values(column)]
    return min(values) * len(values)


@pytest.mark.parametrize("case", CASES)
def test_posterior_is_calibrated(case):
    assert worst_p_value(scores_of(case, N_FITS)) > LEVEL


def test_inputs_with_the_default_prior_are_calibrated():
    """Coefficients have heavy tails, and their scale is a coordinate of the chains."""
    scores, options = [], {**CASES["inputs"][2], **PRIORS, **FEW_WALKERS, "coef": "student"}
    for seed in range(N_FITS):
        truth, X, y = draw_truth(np.random.default_rng(seed), 2, 3000, True, heavy=True)
        model = build(LDPBayesLogisticRegression, random_state=seed, classes=[False, True], **options).fit(X, y)
        scores.append(ranks_of(model.posterior_, truth))
    assert worst_p_value(np.array(scores)) > LEVEL


def draw_factor(rng, d):
    """Rows of unit length with correlations from the learned prior, in which each row is t distributed."""
    eta, factor = rng.choice(priors.LEARNED_ETAS), np.eye(d)
    for n in range(1, d):
        freedom = d + 2 * eta - 1 - n
        factor[n, :n] = rng.standard_normal(n) / np.sqrt(rng.chisquare(freedom))
    return factor / np.linalg.norm(factor, axis=1, keepdims=True)


def ranks_of(posterior, truth):
    """Standard normal scores of true parameters; for a covariance matrix, of its lower triangle."""
    row = []
    for name, true in truth.items():
        draws = posterior.draws[name].reshape(-1, *np.shape(true))
        scores = ndtri(((draws < true).sum(axis=0) + 0.5) / (len(draws) + 1))
        row += (scores[np.tril_indices(len(true))] if name == "covariance" else np.atleast_1d(scores)).tolist()
    return row


def test_learned_covariances_are_calibrated(monkeypatch):
    # A hundredth of the largest possible variances, so that almost no record is clipped.
    monkeypatch.setattr(priors, "LEARNED_VARIANCES", np.geomspace(0.003, 0.02, 4))
    scores, d = [], 2
    for seed in range(N_FITS):
        rng = np.random.default_rng(seed)
        shape, mean = rng.choice(priors.LEARNED_SHAPES), rng.choice(priors.LEARNED_VARIANCES)
        factor = draw_factor(rng, d) * np.sqrt(rng.gamma(shape, mean / d / shape, size=d))[:, None]
        truth = {"coef": rng.normal(scale=PRIORS["coef_scale"], size=d), "covariance": factor @ factor.T}
        X = rng.normal(size=(40_000, d)) @ factor.T
        y = rng.random(len(X)) < expit(X @ truth["coef"])
        model = build(LDPBayesLogisticRegression, epsilon=20.0, classes=[False, True], fit_intercept=False,
                      random_state=seed, coef="normal", coef_scale=PRIORS["coef_scale"], covariance_scale="learned",
                      lkj_eta="learned", **SAMPLING).fit(X, y)
        scores.append(ranks_of(model.posterior_, truth))
    assert worst_p_value(np.array(scores)) > LEVEL


@pytest.mark.parametrize("epsilon", [3.0, 20.0])
def test_default_priors_are_calibrated(epsilon, monkeypatch):
    """Heavy-tailed coefficients, learned correlations and means, with uninformative and with informative reports."""
    # Records are a tenth of the largest norm, so that almost none is clipped.
    monkeypatch.setattr(vector_priors, "LEARNED_MEANS", np.geomspace(0.005, 0.1, 6))
    scores, d = [], 3
    for seed in range(N_FITS):
        rng = np.random.default_rng(seed)
        factor = draw_factor(rng, d) * rng.normal(scale=PRIORS["covariance_scale"], size=d)[:, None]
        truth = {"coef": 10.0 * rng.standard_normal(d) / np.sqrt(rng.chisquare(3) / 3),
                 "intercept": rng.normal(scale=INTERCEPT_SCALE), "covariance": factor @ factor.T}
        mean = rng.normal(scale=rng.choice(vector_priors.LEARNED_MEANS), size=d)
        X = mean + rng.normal(size=(40_000, d)) @ factor.T
        y = rng.random(len(X)) < expit(X @ truth["coef"] + truth["intercept"])
        model = build(LDPBayesLogisticRegression, epsilon=epsilon, classes=[False, True], random_state=seed,
                      coef_scale=10.0, covariance_scale=PRIORS["covariance_scale"], **SAMPLING).fit(X, y)
        scores.append(ranks_of(model.posterior_, truth))
    assert worst_p_value(np.array(scores)) > LEVEL


def half_the_noise(monkeypatch):
    """Return a function to a wrong model, whose mechanisms state half the variance of their noise."""
    def break_model(model, aggregate):
        with monkeypatch.context() as patch:
            kind = type(aggregate.protocol.randomizer)
            right = kind.noise_variance
            patch.setattr(kind, "noise_variance", property(lambda self: right.fget(self) / 2))
            return model._models(aggregate)[0]

    return break_model


@pytest.mark.parametrize("case", MUTANT_FITS)
def test_a_likelihood_with_half_the_noise_is_detected(case, monkeypatch):
    assert worst_p_value(scores_of(case, MUTANT_FITS[case], half_the_noise(monkeypatch))) < LEVEL
