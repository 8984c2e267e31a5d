"""Calibration of LDPBayesLogisticRegression through the real path: prior, records, reports, posterior."""

import numpy as np
import pytest
from scipy.special import expit, ndtri

from skldp import LDPBayesLogisticRegression
from skldp.models import _covariance_priors as priors
from skldp.sampling import sample
from tests.statistical.calibration import p_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

N_FITS, LEVEL = 100, 1e-4
SAMPLING = {"n_walkers": 16, "n_warmup": 40, "n_draws": 40}
FEW_WALKERS = {**SAMPLING, "n_walkers": 8}  # of inputs, where every walker costs its own pass over the labels
# Clipping to the ball is not modelled: at a tenth of the radius hardly any record is clipped.
PRIORS = {"prior_scale": 10.0, "covariance_scale": 0.1, "lkj_eta": 2.0, "mean_scale": 0.05}
INTERCEPT_SCALE = 1.0
# Number of features and of clients. With few clients noise leaves the prior as it is, and nothing to test.
CASES = {
    "sphere": (1, 40_000, {"epsilon": 20.0}),
    "gaussian": (1, 200_000, {"epsilon": 20.0, "delta": 1e-6, "mechanism": "gaussian", "fit_intercept": False}),
    "inputs": (1, 600, {"epsilon": 20.0, "collect": "inputs", "budget_split": 0.2}),
}
# Mutants show where noise outweighs the spread of the moments themselves, which labels with a constant have much of.
CASES_OF_MUTANTS = {**CASES, "sphere": (1, 40_000, {"epsilon": 8.0, "fit_intercept": False})}
# The records of inputs tell their own scale, so that few fits betray the wrong noise.
MUTANT_FITS = {"sphere": N_FITS, "gaussian": N_FITS, "inputs": 20}


@pytest.fixture(autouse=True)
def moderate_intercepts(monkeypatch):
    """The intercept has no parameter for its scale, and large ones leave one label only."""
    monkeypatch.setattr("skldp.models._logistic.INTERCEPT_SCALE", INTERCEPT_SCALE)


def draw_truth(rng, d, n_clients, intercept):
    factor = np.eye(d)
    if d == 2:
        # (1 + a^2)^-(d + 2 eta - 1)/2 is a t with d + 2 eta - 2 degrees of freedom, over their root.
        a = rng.standard_t(4) / 2
        factor[1] = np.array([a, 1]) / np.hypot(a, 1)
    factor *= rng.normal(scale=PRIORS["covariance_scale"], size=d)[:, None]
    truth = {"coef": rng.normal(scale=PRIORS["prior_scale"], size=d), "covariance": factor @ factor.T}
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
        model = LDPBayesLogisticRegression(random_state=seed, classes=[False, True], **options, **PRIORS, **sampling)
        truth, X, y = draw_truth(np.random.default_rng(seed), d, n_clients, model.fit_intercept)
        aggregate = model.aggregate(model.privatize(X, y))
        if break_model is None:
            posterior = model.fit_reports(aggregate).posterior_
        else:
            posterior = sample(break_model(model, aggregate), seed=seed, **sampling)
        row = []
        for name in ("coef", "intercept", "covariance"):
            if name in truth:
                draws = posterior.draws[name].reshape(-1, *np.shape(truth[name]))
                below = (draws < truth[name]).sum(axis=0)
                ranks = ndtri((below + 0.5) / (len(draws) + 1))
                row += (np.diag(ranks) if name == "covariance" else np.atleast_1d(ranks)).tolist()
        scores.append(row)
    return np.array(scores)


def worst_p_value(scores):
    values = [p for column in scores.T for p in p_values(column)]
    return min(values) * len(values)


@pytest.mark.parametrize("case", CASES)
def test_posterior_is_calibrated(case):
    assert worst_p_value(scores_of(case, N_FITS)) > LEVEL


def draw_learned_truth(rng, d, n_clients):
    """Parameters from the learned prior of the covariance, by its definition."""
    eta, shape, mean = (rng.choice(grid) for grid in (priors.LEARNED_ETAS, priors.LEARNED_SHAPES,
                                                      priors.LEARNED_VARIANCES))
    freedom = d + 2 * eta - 2
    a = rng.standard_t(freedom) / np.sqrt(freedom)
    factor = np.array([[1.0, 0.0], np.array([a, 1]) / np.hypot(a, 1)])
    factor *= np.sqrt(rng.gamma(shape, mean / d / shape, size=d))[:, None]
    coef = rng.normal(scale=PRIORS["prior_scale"], size=d)
    X = rng.normal(size=(n_clients, d)) @ factor.T
    return coef, factor @ factor.T, X, rng.random(n_clients) < expit(X @ coef)


def test_learned_covariances_are_calibrated(monkeypatch):
    # A hundredth of what is possible, so that hardly any record is clipped.
    monkeypatch.setattr(priors, "LEARNED_VARIANCES", np.geomspace(0.003, 0.02, 4))
    scores = []
    for seed in range(N_FITS):
        coef, covariance, X, y = draw_learned_truth(np.random.default_rng(seed), 2, 40_000)
        model = LDPBayesLogisticRegression(epsilon=20.0, classes=[False, True], fit_intercept=False, random_state=seed,
                                           prior_scale=PRIORS["prior_scale"], covariance_scale="learned",
                                           lkj_eta="learned", **SAMPLING).fit(X, y)
        draws = {name: values.reshape(-1, *values.shape[2:]) for name, values in model.posterior_.draws.items()}
        pairs = [*zip(draws["coef"].T, coef), *((draws["covariance"][:, i, j], covariance[i, j])
                                                for i, j in ((0, 0), (1, 1), (0, 1)))]
        scores.append([ndtri(((values < true).sum() + 0.5) / (len(values) + 1)) for values, true in pairs])
    assert worst_p_value(np.array(scores)) > LEVEL


def half_the_noise(monkeypatch):
    """The mutant: mechanisms that report half the variance of their noise, once the reports are there."""
    def break_model(model, aggregate):
        with monkeypatch.context() as patch:
            kind = type(aggregate.protocol.randomizer)
            right = kind.noise_variance
            patch.setattr(kind, "noise_variance", property(lambda self: right.fget(self) / 2))
            return model._models(aggregate)[0]

    return break_model


@pytest.mark.parametrize("case", MUTANT_FITS)
def test_a_likelihood_told_half_the_noise_is_caught(case, monkeypatch):
    assert worst_p_value(scores_of(case, MUTANT_FITS[case], half_the_noise(monkeypatch))) < LEVEL
