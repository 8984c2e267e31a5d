"""End-to-end calibration of LDPHistogram: prior, records, reports, posterior."""

import numpy as np
import pytest

from skldp import MCMC, LDPHistogram
from skldp.protocols import Aggregate
from skldp.sampling import sample
from tests.statistical.calibration import p_values, rank_scores

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
              # One of a thousand fits of the right model warns.
              pytest.mark.filterwarnings("ignore::skldp.exceptions.ModelMisfitWarning")]

N_FITS, N_CLIENTS, D, LEVEL = 100, 1500, 4, 1e-4
CASES = [("subset", "exact"), ("subset", "counts"), ("oue", "exact"), ("oue", "counts"), ("rr", "exact"),
         ("subset", "sums"), ("oue", "sums")]


def draw_concentration(rng):
    """Return a concentration from the default prior."""
    while True:
        concentration = 0.5 * np.exp(1.5 * rng.standard_normal())
        if 0.005 <= concentration <= 20:
            return concentration


def worst(mechanism, likelihood, break_model=None, concentration=1.0):
    """Smallest corrected p-value over the frequencies; "sums" are counts without pairs."""
    without_pairs, likelihood = likelihood == "sums", likelihood.replace("sums", "counts")
    scores = []
    for seed in range(N_FITS):
        rng = np.random.default_rng(seed)
        truth = rng.dirichlet(np.full(D, draw_concentration(rng) if concentration == "auto" else concentration))
        model = LDPHistogram(epsilon=0.8, categories=list(range(D)), mechanism=mechanism, likelihood=likelihood,
                             concentration=concentration, inference=MCMC(n_draws=200), random_state=seed)
        records = rng.choice(D, p=truth, size=(N_CLIENTS, 1))
        aggregate = model.aggregate(model.privatize(records))
        if without_pairs:
            aggregate = Aggregate({protocol: tally.only_sums() for protocol, tally in aggregate.parts.items()})
        if break_model is None:
            posterior = model.fit_reports(aggregate).posterior_
        else:
            posterior = sample(break_model(model._models(aggregate)[0]), seed=seed, inference=MCMC(n_draws=200))
        draws = posterior.draws["frequencies"]
        columns = type("Columns", (), {"draws": {k: draws[:, :, k] for k in range(D)}})
        scores.append(list(rank_scores(columns, dict(enumerate(truth))).values()))
    values = [p for column in np.transpose(scores) for p in p_values(column)]
    return min(values) * len(values)


@pytest.mark.parametrize("mechanism, likelihood", CASES)
def test_posterior_is_calibrated(mechanism, likelihood):
    assert worst(mechanism, likelihood) > LEVEL


@pytest.mark.parametrize("mechanism", ["subset", "rr"])
def test_posterior_with_learned_concentration_is_calibrated(mechanism):
    assert worst(mechanism, "exact", concentration="auto") > LEVEL


def half_the_noise(model):
    """Return a wrong model: with the contrast between reports that a much larger budget would have."""
    for part in model.likelihoods + getattr(model, "surrogates", []):
        if hasattr(part, "contrast"):
            part.contrast *= 2
        else:
            part.q *= 0.5
            part.p = min(1.0, part.p * 1.3)
    return model


@pytest.mark.parametrize("mechanism, concentration", [("subset", 1.0), ("rr", 1.0), ("rr", "auto")])
def test_a_likelihood_with_too_little_noise_is_detected(mechanism, concentration):
    assert worst(mechanism, "exact", half_the_noise, concentration) < LEVEL
