"""End-to-end calibration of LDPCovariance: prior, records, reports, posterior."""

import numpy as np
import pytest
from scipy.special import ndtri

from skldp import MCMC, LDPCovariance
from skldp.sampling import sample
from tests.statistical.calibration import draw_covariance, draw_mean, halved, p_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")]

N_FITS, LEVEL, N_CLIENTS = 100, 1e-4, 4000
SHORT = MCMC(n_walkers=32, n_warmup=40, n_draws=40)


def unclipped(covariance, mean):
    """Whether, for each draw, almost no record is clipped; truths and draws are restricted in the same way."""
    return np.trace(covariance, axis1=1, axis2=2) + np.vecdot(mean, mean) < 0.15


def scores_of(epsilon, mechanism="auto", centred=False, d=3, n_fits=N_FITS, break_model=lambda model: model):
    """Standard normal scores of true means, covariances and explained variances in their posteriors."""
    scores = []
    for seed in range(n_fits):
        rng, keep = np.random.default_rng(seed), False
        while not keep:
            covariance = draw_covariance(rng, d, 0.5, 0.6)
            mean = np.zeros(d) if centred else draw_mean(rng, d)
            keep = unclipped(covariance[None], mean[None])[0]
        X = rng.multivariate_normal(mean, covariance, N_CLIENTS)
        model = LDPCovariance(epsilon=epsilon, mechanism=mechanism, assume_centered=centred, random_state=seed)
        target = model._models(model.aggregate(model.privatize(X)))[0]
        draws = {name: values.reshape(-1, *values.shape[2:]) for name, values in
                 sample(break_model(target), seed=seed, inference=SHORT).draws.items()}
        means = draws.get("location", np.zeros((len(draws["covariance"]), d)))
        kept = unclipped(draws["covariance"], means)
        drawn = [draws["covariance"][kept][:, *np.tril_indices(d)], np.linalg.eigvalsh(draws["covariance"][kept])]
        true = [covariance[np.tril_indices(d)], np.linalg.eigvalsh(covariance)]
        if not centred:
            drawn, true = [*drawn, means[kept]], [*true, mean]
        scores.append(np.concatenate([ndtri(((one < truth).sum(axis=0) + 0.5) / (kept.sum() + 1))
                                      for one, truth in zip(drawn, true)]))
    return np.array(scores)


def worst_p_value(scores):
    values = [p for column in scores.T for p in p_values(column)]
    return min(values) * len(values)


@pytest.mark.parametrize("options", [{"epsilon": 3.0}, {"epsilon": 20.0}, {"epsilon": 20.0, "centred": True},
                                     {"epsilon": 3.0, "mechanism": "sphere"}, {"epsilon": 20.0, "mechanism": "sphere"},
                                     {"epsilon": 8.0, "mechanism": "axis", "d": 2},
                                     {"epsilon": 20.0, "mechanism": "gaussian", "d": 2}], ids=str)
def test_posterior_is_calibrated(options):
    assert worst_p_value(scores_of(**options)) > LEVEL


@pytest.mark.parametrize("epsilon, mechanism", [(4.0, "auto"), (20.0, "sphere"), (20.0, "gaussian")])
def test_a_likelihood_with_half_the_noise_is_detected(epsilon, mechanism):
    def half_the_noise(model):
        for likelihood in model.likelihoods:
            likelihood.law = halved(likelihood.law)
        return model

    assert worst_p_value(scores_of(epsilon, mechanism, d=2, break_model=half_the_noise)) < LEVEL
