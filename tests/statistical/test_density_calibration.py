"""End-to-end calibration of LDPDensity: densities from its prior, and columns that are not."""

import numpy as np
import pytest

from skldp import MCMC, LDPDensity
from skldp.analysis._mean_check import WARNING_LEVEL
from skldp.models.values._smooth_masses import SmoothMasses
from skldp.sampling import sample
from tests.statistical.calibration import rank_scores, worst_p_value

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
              pytest.mark.filterwarnings("ignore::skldp.exceptions.ModelMisfitWarning")]

N_FITS, N_CLIENTS, LEVEL, N_CELLS = 60, 2000, 1e-4, 24
INFERENCE = MCMC(n_draws=100)


def drawn_masses(rng, grid):
    """Return masses of the cells from the prior, by its definition, without point masses inside."""
    masses = SmoothMasses(grid.sizes, np.empty(0, dtype=int))
    scale = 6.0 * np.exp(0.6 * rng.standard_normal())
    scales = np.append(np.full(2, 2.5), np.full(masses.n_coefficients - 2, scale))
    drawn = masses((scales * rng.standard_normal(masses.n_coefficients))[None], rng.standard_normal((1, 2)))
    return drawn.total[0] / drawn.total[0].sum()


def simulated(epsilon, seed, inference=INFERENCE):
    """Return an estimator, the aggregate of clients whose values are drawn from the prior, and the masses."""
    rng = np.random.default_rng(seed)
    model = LDPDensity(epsilon=epsilon, bounds=(0, 100), step=1, n_cells=N_CELLS, random_state=seed,
                       inference=inference)
    grid = model._grid(model.protocol())
    masses = drawn_masses(rng, grid)
    cells = rng.choice(N_CELLS, p=masses, size=N_CLIENTS)
    levels = grid.edges[cells] + (rng.random(N_CLIENTS) * grid.sizes[cells]).astype(int)
    return model, model.aggregate(model.privatize(levels[:, None].astype(float))), masses


def scores_of(epsilon, break_model=None):
    """Rank scores of mean, standard deviation and median."""
    all_scores = []
    for seed in range(N_FITS):
        model, aggregate, masses = simulated(epsilon, seed)
        target = model._models(aggregate)[0]
        posterior = sample(target if break_model is None else break_model(target), seed=seed, inference=INFERENCE)
        mean, std = target.grid.moments(masses[None])
        all_scores.append(rank_scores(posterior, {"mean": mean[0], "std": std[0]}))
    return all_scores


def test_posterior_is_calibrated():
    assert worst_p_value(scores_of(4.0)) > LEVEL


def sharper(model):
    """Return a wrong model: a square wave of higher contrast."""
    for likelihood in model.likelihoods:
        typical = likelihood.matrix.mean(axis=1, keepdims=True)
        likelihood.matrix = np.maximum(typical + 1.5 * (likelihood.matrix - typical), 1e-9)
        likelihood.matrix /= likelihood.matrix.sum(axis=0)
    return model


def test_a_likelihood_with_less_noise_is_detected():
    assert worst_p_value(scores_of(4.0, sharper)) < LEVEL


def test_means_of_densities_from_the_prior_rarely_disagree_with_the_average():
    p_values = []
    for seed in range(100):
        model, aggregate, _ = simulated(1.0, seed, MCMC(n_draws=40))
        p_values.append(model.fit_reports(aggregate).mean_check_.p_value)
    assert np.sum(np.array(p_values) < WARNING_LEVEL) <= 3


def test_intervals_cover_columns_that_are_not_from_the_prior():
    """Over skewed, clipped and zero-inflated columns at two budgets, at least 80 % of all 90 % intervals."""
    inside = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        for values in (rng.gamma(2, 12, 20_000), np.where(rng.random(20_000) < 0.3, 0, rng.gamma(3, 10, 20_000)),
                       rng.normal(60, 25, 20_000)):
            x = np.clip(values, 0, 100)
            model = LDPDensity(epsilon=2.0, bounds=(0, 100), n_cells=64, random_state=seed, inference=INFERENCE)
            model.fit(x[:, None])
            low, high = model.posterior_.interval(0.9)["mean"]
            inside.append(low <= x.mean() <= high)
            _, low, high = model.quantile([0.25, 0.5, 0.75], level=0.9)
            inside.extend((low <= np.quantile(x, [0.25, 0.5, 0.75])) & (np.quantile(x, [0.25, 0.5, 0.75]) <= high))
    assert np.mean(inside) > 0.8
