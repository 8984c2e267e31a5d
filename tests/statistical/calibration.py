"""Simulation-based calibration: ranks of true parameters among posterior draws, as standard normal scores."""

from dataclasses import replace

import numpy as np
from scipy.special import ndtri
from scipy.stats import chi2, norm


def rank_scores(posterior, truth):
    """Standard normal score of each true parameter in its posterior: dict of name to float."""
    scores = {}
    for name, value in truth.items():
        draws = posterior.draws[name].ravel()
        scores[name] = ndtri(((draws < value).sum() + 0.5) / (draws.size + 1))
    return scores


def halved(law):
    """Half the noise of a decoded report of moments; the records keep their own variance."""
    return replace(law, constant=law.constant / 2, linear=law.linear / 2, square=1 + (law.square - 1) / 2,
                   identity=law.identity / 2, mixed=law.mixed / 2)


def p_values(scores):
    """Two-sided p-values of the mean and of the sum of squares of scores that should be standard normal.

    The sum of squares has most of the power against a posterior that is too narrow or too wide.
    """
    scores = np.asarray(scores)
    squares = np.sum(scores**2)
    square_p_value = 2 * min(chi2.cdf(squares, scores.size), chi2.sf(squares, scores.size))
    return 2 * norm.sf(abs(scores.mean()) * np.sqrt(scores.size)), square_p_value


def worst_p_value(all_scores):
    """Smallest p-value over the parameters, corrected for their number and for the two tests of each."""
    values = [p for name in all_scores[0] for p in p_values([scores[name] for scores in all_scores])]
    return min(values) * len(values)


def draw_covariance(rng, d, spread=0.2, common=0.3):
    """Return a covariance matrix from the default prior of the regressions, in units where records have norm 1."""
    factor = np.eye(d)
    for n in range(1, d):
        # Row n of an LKJ(1/2) factor is a multivariate t, normalised.
        factor[n, :n] = rng.standard_normal(n) / np.sqrt(rng.chisquare(d - n))
    factor /= np.linalg.norm(factor, axis=1, keepdims=True)
    deviations = rng.standard_normal(d)
    deviations = spread * (deviations - deviations.mean()) / np.sqrt(rng.chisquare(3) / 3)
    factor *= np.exp(np.log(0.5 / np.sqrt(d)) + common * rng.standard_normal() + deviations)[:, None]
    return factor @ factor.T


def draw_explained_coef(rng, covariance, scale):
    """Return coefficients from the default prior: a multivariate t on what the line explains."""
    precision = len(covariance) * covariance + 0.01 * np.eye(len(covariance))
    normal = np.linalg.solve(np.linalg.cholesky(precision).T, rng.standard_normal(len(covariance)))
    return scale * normal / np.sqrt(rng.chisquare(3) / 3)


def draw_mean(rng, d):
    """Return means of x from the default prior."""
    return 0.05 * np.exp(0.5 * np.log(10.0) * rng.standard_normal()) * rng.standard_normal(d)
