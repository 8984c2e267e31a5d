"""Calibration with two budgets: half of the clients spend 0.5, half 4."""

import numpy as np
import pytest

from skldp import MCMC, LDPGaussian, LDPHistogram
from skldp.protocols import Aggregate
from tests.statistical.calibration import rank_scores, worst_p_value

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
              # One of a thousand fits of the right model warns.
              pytest.mark.filterwarnings("ignore::skldp.exceptions.ModelMisfitWarning")]

N_FITS, N_CLIENTS, D, LEVEL = 100, 1500, 4, 1e-4
BUDGETS = np.where(np.arange(N_CLIENTS) % 2, 4.0, 0.5)


def gaussian(rng, seed):
    model = LDPGaussian(inference=MCMC(n_draws=200), random_state=seed)
    truth = {name: float(prior.quantile(rng.random())) for name, prior in model._family().priors.items()}
    return model, truth, rng.normal(truth["mean"], truth["std"], size=(N_CLIENTS, 1))


def histogram(rng, seed):
    truth = rng.dirichlet(np.ones(D))
    model = LDPHistogram(categories=list(range(D)), inference=MCMC(n_draws=200), random_state=seed)
    return model, dict(enumerate(truth)), rng.choice(D, p=truth, size=(N_CLIENTS, 1))


def scores_of(make, swapped=False):
    scores = []
    for seed in range(N_FITS):
        model, truth, records = make(np.random.default_rng(seed), seed)
        aggregate, = model._simulate(*model._records(records, None), BUDGETS)
        if swapped:
            protocols, tallies = zip(*aggregate.parts.items())
            aggregate = Aggregate(dict(zip(protocols, tallies[::-1])))
        draws = model.fit_reports(aggregate).posterior_.draws
        if "frequencies" in draws:
            draws = {k: draws["frequencies"][:, :, k] for k in range(D)}
        scores.append(rank_scores(type("Columns", (), {"draws": draws}), truth))
    return scores


@pytest.mark.parametrize("make", [gaussian, histogram])
def test_a_population_with_two_budgets_is_calibrated(make):
    assert worst_p_value(scores_of(make)) > LEVEL


def test_swapped_budgets_of_cohorts_are_detected():
    assert worst_p_value(scores_of(histogram, swapped=True)) < LEVEL
