"""Calibration of regressions in rounds: truths from the prior, records, reports of all rounds, posterior."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri, softmax
from sklearn.linear_model import LogisticRegression

from skldp import MCMC, RegressionPrior
from skldp.models import RoundModel
from skldp.models.regression import _rounds
from skldp.protocols import CountRoundProtocol, LabelMomentProtocol, RoundProtocol
from skldp.protocols._responses import labels_of
from skldp.sampling import sample
from tests.estimators.round_cases import CASES as ROUND_CASES
from tests.estimators.round_cases import X as ROWS
from tests.statistical.calibration import p_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

N_FITS, LEVEL = 100, 1e-4
SAMPLING = MCMC(n_walkers=16, n_warmup=40, n_draws=40)
N_CLIENTS = 20_000  # in each round
INTERCEPT_SCALE = 1.0
# Clipping to the ball is not modelled; at a tenth of the radius almost no record is clipped.
PRIOR = RegressionPrior(coef="normal", coef_scale=10.0, covariance_scale=0.1, lkj_eta=2.0, mean_scale=0.05)


def draw_labels(lines, rng):
    """Draw labels given predictors of shape (n, q)."""
    q = lines.shape[1]
    p = softmax(lines @ labels_of(q + 1).vertices.T, axis=1)
    return (rng.random((len(p), 1)) > np.cumsum(p, axis=1)).sum(axis=1)


@dataclass(frozen=True)
class Case:
    """Protocols of the first and of later rounds, and how a response is drawn from predictors."""

    first: Any
    later: Any
    draw: Any = draw_labels
    n_features: int = 1
    n_rounds: int = 2


LABELS = {"epsilon": 4.0, "classes": (0, 1)}
CLASSES = {"epsilon": 6.0, "classes": (0, 1, 2)}
COUNTS = {"epsilon": 4.0, "bounds_y": (0, 10)}
CASES = {
    "two labels, 2 rounds": Case(partial(LabelMomentProtocol, **LABELS), partial(RoundProtocol, **LABELS)),
    "two labels, 3 rounds": Case(partial(LabelMomentProtocol, **LABELS), partial(RoundProtocol, **LABELS), n_rounds=3),
    "two labels, 2 columns": Case(partial(LabelMomentProtocol, mechanism="axis", **LABELS),
                                  partial(RoundProtocol, **LABELS), n_features=2, n_rounds=3),
    "three labels": Case(partial(RoundProtocol, **CLASSES), partial(RoundProtocol, **CLASSES), n_rounds=3),
    "counts": Case(partial(CountRoundProtocol, **COUNTS), partial(CountRoundProtocol, **COUNTS),
                   lambda lines, rng: rng.poisson(np.exp(lines[:, 0])), n_rounds=3),
}


@pytest.fixture(autouse=True)
def moderate_intercepts(monkeypatch):
    """Set a moderate scale of the intercept, which is no user parameter; large intercepts give one label only."""
    monkeypatch.setattr(_rounds, "DefaultScales", partial(moderate, _rounds.DefaultScales))


def moderate(kind, explained, coef, intercept, *others):
    """Return default scales with a moderate scale of the intercept."""
    return kind(explained, coef, INTERCEPT_SCALE, *others)


def draw_records(case, response, rng):
    """Return true coefficients and intercepts as users read them, and records of all rounds."""
    d, q, n = case.n_features, response.n_lines, case.n_rounds * N_CLIENTS
    factor = np.eye(d)
    if d == 2:
        # The density (1 + a^2)^-(d + 2 eta - 1)/2 is that of t / sqrt(df), df = d + 2 eta - 2.
        a = rng.standard_t(4) / 2
        factor[1] = np.array([a, 1]) / np.hypot(a, 1)
    factor *= rng.normal(scale=PRIOR.covariance_scale, size=d)[:, None]
    coef = rng.normal(scale=PRIOR.coef_scale, size=(q, d))
    intercept = rng.normal(scale=INTERCEPT_SCALE, size=(q, 1))
    X = rng.normal(scale=PRIOR.mean_scale, size=d) + rng.normal(size=(n, d)) @ factor.T
    truth = {"coef": np.squeeze(response.rows(coef), 0) if q == 1 else response.rows(coef),
             "intercept": response.rows(intercept)[:, 0]}
    return truth, X, case.draw(X @ coef.T + intercept[:, 0], rng)


def scores_of(case, n_fits, noise=1.0):
    """Standard normal scores of true parameters, if models state a share of the variance of the noise."""
    scores = []
    for seed in range(n_fits):
        protocol, rounds = case.first(n_features=case.n_features), []
        response = _rounds.round_of(protocol).response
        truth, X, y = draw_records(case, response, np.random.default_rng(seed))
        for number in range(case.n_rounds):
            part = slice(number * N_CLIENTS, (number + 1) * N_CLIENTS)
            rounds.append(protocol.aggregate(protocol._randomize(X[part], y[part], seed)))
            with pytest.MonkeyPatch.context() as patch:
                state_noise(patch, {type(aggregate.protocol.randomizer) for aggregate in rounds}, noise)
                model = RoundModel(rounds, PRIOR)
                lines = model.next_lines()
                if number == case.n_rounds - 1:
                    posterior = sample(model, seed=seed, inference=SAMPLING)
            protocol = case.later(n_features=case.n_features, theta=tuple(lines.ravel().tolist()))
        scores.append(np.concatenate([ranks(posterior.draws[name], value) for name, value in truth.items()]))
    return np.array(scores)


def state_noise(patch, kinds, share):
    """Let mechanisms state a share of the variance of their noise."""
    for kind in kinds:
        right = kind.noise_variance
        patch.setattr(kind, "noise_variance", property(lambda self, right=right: share * right.fget(self)))


def ranks(draws, truth):
    """Standard normal scores of true values among draws."""
    truth = np.asarray(truth)
    draws = draws.reshape(-1, truth.size)
    return ndtri(((draws < truth.ravel()).sum(axis=0) + 0.5) / (len(draws) + 1))


def worst_p_value(scores):
    values = [p for column in scores.T for p in p_values(column)]
    return min(values) * len(values)


@pytest.mark.parametrize("name", CASES)
def test_rounds_are_calibrated(name):
    """Of 60 fits, scores have a root mean square of 0.9 to 1.1: 90 % intervals cover 85 to 92 %."""
    assert worst_p_value(scores_of(CASES[name], N_FITS)) > LEVEL


@pytest.mark.parametrize("epsilon", [3.0, 10.0])
def test_three_labels_on_steep_skewed_columns_are_not_biased(epsilon):
    """Maximum likelihood on the same 60,000 records, half of which are near one end of their columns."""
    case = ROUND_CASES["three labels"]
    plain = LogisticRegression(C=1e6).fit(ROWS, case.y)
    scores = []
    for seed in range(6):
        model = case.make(epsilon=epsilon, random_state=seed, inference="mcmc")
        model.fit(np.tile(ROWS, (5, 1)), np.tile(case.y, 5))
        scores.append((model.coef_ - plain.coef_) / model.coef_std_)
    assert np.abs(np.mean(scores, axis=0)).max() < 2.0 and np.sqrt(np.mean(np.square(scores))) < 1.5


@pytest.mark.parametrize("name", ["two labels, 2 rounds", "counts"])
def test_rounds_with_half_the_noise_are_detected(name):
    assert worst_p_value(scores_of(CASES[name], N_FITS, noise=0.5)) < LEVEL
