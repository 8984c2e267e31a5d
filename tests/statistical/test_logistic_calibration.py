"""End-to-end calibration of LDPBayesLogisticRegression: prior, records, reports, posterior."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit, ndtri

from skldp import MCMC, LDPBayesLogisticRegression
from skldp.mechanisms import AxisMoments
from skldp.models.regression import _logistic_coordinates as coordinates
from skldp.sampling import sample
from tests.flat import build
from tests.statistical.calibration import draw_covariance, draw_explained_coef, draw_mean, halved, p_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
              pytest.mark.filterwarnings("ignore::skldp.exceptions.StatisticalWarning")]

N_FITS, LEVEL = 100, 1e-4
SAMPLING = {"n_walkers": 16, "n_warmup": 40, "n_draws": 40}
FEW_WALKERS = {**SAMPLING, "n_walkers": 8}  # for records, where every walker needs its own pass over the labels
# Clipping to the ball is not modelled; at a tenth of the radius almost no record is clipped.
PRIORS = {"coef": "normal", "coef_scale": 10.0, "covariance_scale": 0.1, "lkj_eta": 2.0, "mean_scale": 0.05}
INTERCEPT_SCALE = 1.0
# Number of features and of clients. With few clients the posterior would be the prior.
CASES = {
    "sphere": (1, 40_000, {"epsilon": 20.0, "mechanism": "sphere"}),
    "axis": (1, 40_000, {"epsilon": 8.0, "mechanism": "axis"}),
    "gaussian": (1, 200_000, {"epsilon": 20.0, "delta": 1e-6, "mechanism": "gaussian", "fit_intercept": False}),
    "inputs": (1, 600, {"epsilon": 20.0, "mechanism": "records", "budget_split": 0.2}),
}
# Wrong noise shows only if it exceeds the variance of the moments, which is large with labels and a constant.
CASES_OF_MUTANTS = {**CASES, "sphere": (1, 40_000, {"epsilon": 8.0, "mechanism": "sphere", "fit_intercept": False}),
                    "axis": (1, 40_000, {"epsilon": 4.0, "mechanism": "axis", "fit_intercept": False})}
# Noisy records show their own variance, so few fits are enough to detect the wrong noise.
MUTANT_FITS = {"sphere": N_FITS, "axis": N_FITS, "gaussian": N_FITS, "inputs": 20}


@pytest.fixture(autouse=True)
def moderate_intercepts(monkeypatch):
    """Set a moderate scale of the intercept, which is no user parameter; large intercepts give one label only."""
    monkeypatch.setattr(coordinates, "LOGISTIC_SCALES", replace(coordinates.LOGISTIC_SCALES, intercept=INTERCEPT_SCALE))


def draw_truth(rng, d, n_clients, intercept):
    factor = np.eye(d)
    if d == 2:
        # The density (1 + a^2)^-(d + 2 eta - 1)/2 is that of t / sqrt(df), df = d + 2 eta - 2.
        a = rng.standard_t(4) / 2
        factor[1] = np.array([a, 1]) / np.hypot(a, 1)
    factor *= rng.normal(scale=PRIORS["covariance_scale"], size=d)[:, None]
    truth = {"coef": rng.normal(scale=PRIORS["coef_scale"], size=d), "covariance": factor @ factor.T}
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


def ranks_of(posterior, truth, keep=slice(None)):
    """Standard normal scores of true parameters in the kept draws; for a covariance matrix, of its lower triangle."""
    row = []
    for name, true in truth.items():
        draws = posterior.draws[name].reshape(-1, *np.shape(true))[keep]
        scores = ndtri(((draws < true).sum(axis=0) + 0.5) / (len(draws) + 1))
        row += (scores[np.tril_indices(len(true))] if name == "covariance" else np.atleast_1d(scores)).tolist()
    return row


@pytest.mark.parametrize("epsilon, d, options", [
    # Reports of the axis at 20 are so precise that the clipping, which is not modelled, is seen, as without noise.
    (3.0, 3, SAMPLING), (8.0, 3, SAMPLING), (3.0, 3, {"mechanism": "sphere", **SAMPLING}),
    (20.0, 3, {"mechanism": "sphere", **SAMPLING}), (20.0, 2, {**CASES["inputs"][2], **FEW_WALKERS}),
])
def test_the_default_prior_is_calibrated(epsilon, d, options):
    """With uninformative and with informative reports, of moments and of records."""
    n_clients, scores = 3000 if options.get("mechanism") == "records" else 40_000, []
    for seed in range(N_FITS):
        rng = np.random.default_rng(seed)
        truth = {"covariance": np.eye(d), "x_mean": np.zeros(d)}
        # Clipping is not modelled: large records are excluded from truths and, below, from draws.
        while not plausible(truth):
            truth = {"covariance": draw_covariance(rng, d), "intercept": rng.normal(scale=INTERCEPT_SCALE),
                     "x_mean": draw_mean(rng, d)}
        truth["coef"] = draw_explained_coef(rng, truth["covariance"], 1.25)
        X = rng.multivariate_normal(truth["x_mean"], truth["covariance"], n_clients)
        y = rng.random(n_clients) < expit(X @ truth["coef"] + truth["intercept"])
        model = build(LDPBayesLogisticRegression, random_state=seed, classes=[False, True], n_rounds=1,
                      **{"epsilon": epsilon, **options}).fit(X, y)
        scores.append(ranks_of(model.posterior_, truth, plausible(model.posterior_.draws).ravel()))
    assert worst_p_value(np.array(scores)) > LEVEL


def plausible(params):
    """Whether almost no record is clipped."""
    square = np.vecdot(params["x_mean"], params["x_mean"])
    return square + np.trace(params["covariance"], axis1=-2, axis2=-1) < 0.2


def half_the_noise(monkeypatch):
    """Return a function to a wrong model, whose mechanisms state half the variance of their noise."""
    def break_model(model, aggregate):
        with monkeypatch.context() as patch:
            kind = type(aggregate.protocol.randomizer)
            right = kind.noise_variance
            patch.setattr(kind, "noise_variance", property(lambda self: right.fget(self) / 2))
            if kind is AxisMoments:
                law = kind.noise
                patch.setattr(kind, "noise", property(lambda self: halved(law.fget(self))))
            return model._models(aggregate)[0]

    return break_model


@pytest.mark.parametrize("case", MUTANT_FITS)
def test_a_likelihood_with_half_the_noise_is_detected(case, monkeypatch):
    assert worst_p_value(scores_of(case, MUTANT_FITS[case], half_the_noise(monkeypatch))) < LEVEL
