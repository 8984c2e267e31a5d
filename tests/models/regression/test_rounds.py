"""Logistic regression in several rounds, against plain evaluations, Monte Carlo and scikit-learn."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import linalg, stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from skldp import RegressionPrior
from skldp.exceptions import InvalidParameterError
from skldp.models import RoundModel
from skldp.models.regression._round_likelihood import RoundLikelihood, frame_of
from skldp.models.regression._rounds import _normal_draws, secant_ratio
from skldp.protocols import LabelMomentProtocol, RoundProtocol
from tests.models.regression.priors import Prior

PRIOR = Prior(1.25, intercept=(0.0, 2.5))
D = 2
FRAME = {"theta": (0.3, 2.0, -1.0), "centre": (0.1, -0.05), "transform": (1.5, 0.2, -0.3, 0.9)}
THROUGH_ORIGIN = {"theta": (0.0, 2.0, -1.0), "centre": (0.0, 0.0), "transform": (1.5, 0.2, -0.3, 0.9)}
with_and_without = pytest.mark.parametrize("intercept", [True, False])


class InFrame:
    """A model whose parameters are those of its last frame, where its prior is defined."""

    def __init__(self, model):
        self.model, self.frame = model, model.frame

    def constrain(self, theta):
        params, transform = dict(self.model.constrain(theta)), self.frame.transform
        params["covariance"] = np.einsum("ij,njk,lk->nil", transform, params["covariance"], transform)
        if "intercept" in params:
            params["intercept"] = params["intercept"] + params["coef"] @ self.frame.centre
            params["x_mean"] = (params["x_mean"] - self.frame.centre) @ transform.T
        params["coef"] = params["coef"] @ np.linalg.inv(transform)
        return params


def log_prior(model, theta):
    """Log-density of the prior in coordinates, from its definition in the coordinates of the last round."""
    return PRIOR(InFrame(model), theta)


def records(n, seed=0, skewed=True, d=D):
    rng = np.random.default_rng(seed)
    X = rng.exponential(0.25, size=(n, d)) - 0.2 if skewed else rng.normal(0.05, 0.25, size=(n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, (rng.random(n) < expit(X @ np.linspace(3.0, -2.0, d) + 0.4)).astype(int)


def rounds_of(intercept, n=3000, epsilons=(4.0, 6.0), n_rounds=2, seed=0, model=None, **options):
    """Aggregates of rounds of the same records, each of cohorts with the given budgets."""
    weight, found = {} if intercept else {"intercept_weight": 0.0}, []
    model = model or (FRAME if intercept else THROUGH_ORIGIN)
    for number in range(n_rounds):
        kind, values = (RoundProtocol, model) if number else (LabelMomentProtocol, {})
        cohorts = [kind(n_features=D, epsilon=epsilon, **weight, **values, **options) for epsilon in epsilons]
        found.append(sum(protocol.aggregate(protocol._randomize(*records(n, seed + number), 7 * i))
                         for i, protocol in enumerate(cohorts)))
    return found


def points(model, n=6, size=0.4):
    return model.initial() + np.random.default_rng(0).normal(0.05, size, size=(n, model.n_params))


# ---- Reported score and curvature

@with_and_without
def test_moments_of_the_first_round_are_score_and_curvature_at_zero(intercept):
    X, y = records(500)
    (aggregate,) = rounds_of(intercept, 500, (math.inf,), 1)
    (protocol, tally), = aggregate.parts.items()
    likelihood = RoundLikelihood(protocol, tally)
    found, kappa = likelihood.reported_means, protocol.intercept_weight
    extended = np.column_stack([np.full(500, kappa), X])[:, int(kappa == 0):]
    np.testing.assert_allclose(found.score, (y - 0.5) @ extended / 500, atol=2e-5)
    np.testing.assert_allclose(found.curvature, extended.T @ extended / 2000, atol=2e-5)
    assert found.intercept_weight == kappa and not likelihood.frame.theta.any()


@pytest.mark.parametrize("kind", [LabelMomentProtocol, RoundProtocol])
def test_the_stated_noise_of_a_report_is_its_variance(kind):
    protocol = kind(epsilon=3.0, n_features=D, intercept_weight=0.5, **(FRAME if kind is RoundProtocol else {}))
    reports = protocol._randomize(np.full((6000, D), 0.3), np.ones(6000), 0)
    found = [RoundLikelihood(protocol, protocol.aggregate(row[None]).parts[protocol]).reported_means for row in reports]
    score, curvature = np.array([one.score for one in found]), np.array([one.curvature for one in found])
    np.testing.assert_allclose(score.var(axis=0), found[0].score_noise, rtol=0.1)
    first, stated = int(kind is LabelMomentProtocol), np.where(np.eye(D + 1), 1.0, 0.5) * found[0].curvature_noise
    free = curvature.var(axis=0)[first:, :], stated[first:, :]  # the square of the constant is not sent in round 1
    np.testing.assert_allclose(*free, rtol=0.1)


# ---- Log-density

def record_calibrations(monkeypatch):
    """Return a dict that has the last arguments of ``calibrate`` of each likelihood."""
    seen, calibrate = {}, RoundLikelihood.calibrate

    def spy(self, *arguments):
        seen[self] = arguments
        return calibrate(self, *arguments)

    monkeypatch.setattr(RoundLikelihood, "calibrate", spy)
    return seen


def plain_log_likelihood(part, calibration, n_reports, coef, covariance, intercept=0.0, x_mean=None):
    """Log-likelihood of a cohort of one round from its definition, with matrices of (constant, x)."""
    pilot, ratio, pilot_weight, score_error, curvature_error = calibration
    reported, frame, kappa = part.reported_means, part.frame, part.reported_means.intercept_weight
    x_mean, first = np.zeros(D) if x_mean is None else x_mean, int(kappa == 0)

    def distance(alpha, theta):
        """Difference from the model of the round, in its frame, such that u changes by (kappa, x) times it."""
        own = np.linalg.inv(frame.transform).T @ theta
        change = np.append(alpha + theta @ frame.centre, own) - frame.theta
        return np.append(change[0] / kappa, change[1:]) if kappa else change[1:]

    m = frame.transform @ (x_mean - frame.centre)
    second = frame.transform @ covariance @ frame.transform.T + np.outer(m, m)
    weight = max(reported.curvature[0, 0] / kappa**2, 0.02) if kappa else pilot_weight
    expected = weight * np.block([[np.full((1, 1), kappa**2), kappa * m[None]], [kappa * m[:, None], second]])
    expected = expected[first:, first:]
    values, vectors = np.linalg.eigh(reported.curvature)
    positive = vectors @ np.diag(np.clip(values, 0, None)) @ vectors.T
    size = len(positive)

    change = distance(pilot[0], pilot[1:])
    explained = change @ positive @ change
    far = min(1.0, math.sqrt(explained / weight))
    error = (score_error * far) ** 2 * explained / size * positive
    variance = (reported.score_noise * np.eye(size) + positive) / n_reports + error
    score = ratio * expected @ distance(intercept, coef)
    value = stats.multivariate_normal(score, variance).logpdf(reported.score)

    longest = 0.25 * (1 + kappa**2)
    own = max(longest * np.trace(positive) - np.sum(reported.curvature**2), 0.0) / (size * (size + 1) / 2)
    diagonal = np.diag(positive)[1 - first:].mean()
    spread = (reported.curvature_noise + own) / n_reports + (curvature_error * far * diagonal) ** 2
    for i in range(size):
        for j in range(i, size):
            if (i, j) != (0, 0) or not kappa:
                deviation = math.sqrt(spread if i == j else spread / 2)
                value += stats.norm(expected[i, j], deviation).logpdf(reported.curvature[i, j])
    return value


@with_and_without
@pytest.mark.parametrize("n_rounds", [1, 2])
def test_log_density_is_the_sum_of_normal_densities_and_the_prior(n_rounds, intercept, monkeypatch):
    seen = record_calibrations(monkeypatch)
    rounds = rounds_of(intercept, n_rounds=n_rounds)
    model = RoundModel(rounds)
    theta = points(model)
    params = model.constrain(theta)
    expected = log_prior(model, theta)
    tallies = [tally for aggregate in rounds for tally in aggregate.parts.values()]
    assert len(model.likelihoods) == len(tallies) == 2 * n_rounds
    for part, tally in zip(model.likelihoods, tallies):
        expected += [plain_log_likelihood(part, seen[part], tally.n_reports,
                                          **{name: values[i] for name, values in params.items()})
                     for i in range(len(theta))]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-6, atol=1e-6)
    errors = [seen[part][-1] for part in model.likelihoods]
    assert errors == ([0.3, 0.3, 0.0, 0.0] if n_rounds == 2 else [0.0, 0.0]), "curvature is that of the last round"


def test_the_factors_are_those_at_the_mode(monkeypatch):
    """Mode and factors are found in turn; after the last turn they agree to about a percent."""
    seen = record_calibrations(monkeypatch)
    model = RoundModel(rounds_of(True, n=200_000, epsilons=(8.0,), n_rounds=2))
    params = {name: values[0] for name, values in model.constrain(model._mode(model.initial())[None]).items()}
    first = RoundModel(rounds_of(True, n=200_000, epsilons=(8.0,), n_rounds=1))
    law = first.reported.mean[:-1], first.reported.covariance[:-1, :-1]
    x = np.random.default_rng(0).multivariate_normal(*law, size=200_000)
    for part in model.likelihoods:
        ratio, _ = secant_ratio(x, np.append(params["intercept"], params["coef"]), part.frame)
        assert seen[part][1] == part.ratio == pytest.approx(ratio, abs=0.015)
    assert model.likelihoods[0].ratio < 0.98


def test_coordinates_of_the_mode_are_a_few_standard_deviations_from_zero():
    model = RoundModel(rounds_of(True, n=200_000, epsilons=(8.0,)))
    coefficients, _, _, constant, *_ = model.coordinates.pieces
    mode = model._mode(model.initial())
    assert np.abs(mode[coefficients]).max() < 4 and abs(mode[constant][0]) < 4


def test_other_priors_are_used():
    prior = RegressionPrior(coef="normal", coef_scale=0.01)
    rounds = rounds_of(True)
    narrow, wide = (model.constrain(model._mode(model.initial())[None])["coef"] for model in (
        RoundModel(rounds, prior), RoundModel(rounds)))
    assert np.abs(narrow).max() < 0.1 < np.abs(wide).max()


@pytest.mark.parametrize("sizes", [(3000, 0), (0, 3000), (1, 1)])
def test_rounds_without_reports_leave_those_of_the_others(sizes):
    rounds = [rounds_of(True, n)[number] for number, n in enumerate(sizes)]
    model, empty = RoundModel(rounds), RoundModel(rounds_of(True, 0))
    theta = points(model)
    value, gradient = model.gradient(theta)
    assert np.isfinite(value).all() and np.isfinite(gradient).all()
    other = empty.log_density(empty.coordinates.convert(theta, model.coordinates))
    assert np.ptp(value - other) > 0.01


@pytest.mark.parametrize("change, message", [
    (lambda first, later: [], "must be one aggregate"), (lambda first, later: [later], "must be one aggregate"),
    (lambda first, later: [first, first], "must be one aggregate"),
    (lambda first, later: [first, replace(later, data_norm=2.0)], "data_norm is"),
    (lambda first, later: [first, replace(later, classes=("no", "yes"))], "classes is"),
    (lambda first, later: [replace(first, n_features=3), later], "n_features is"),
    (lambda first, later: [first, later, replace(later, **THROUGH_ORIGIN, intercept_weight=0.0)], "has_intercept is"),
    (lambda first, later: [first, replace(later, transform=(0.0,) * 4)], "invertible"),
    (lambda first, later: [first, replace(later, transform=(1.0, 2.0, 2.0, 4.0)), later], "invertible"),
    (lambda first, later: [first, replace(later, transform=(1e300, 0.0, 0.0, 1e-300))], "invertible"),
])
def test_rounds_that_do_not_fit_together_are_refused(change, message):
    protocols = change(LabelMomentProtocol(n_features=D), RoundProtocol(n_features=D, **FRAME))
    with pytest.raises(InvalidParameterError, match=message):
        RoundModel([protocol.aggregate([]) for protocol in protocols])


# ---- Frames

@pytest.mark.parametrize("seed", range(3))
def test_frames_map_models_without_changing_predictions(seed):
    rng = np.random.default_rng(seed)
    protocol = RoundProtocol(n_features=3, theta=tuple(rng.normal(size=4)), centre=tuple(rng.normal(size=3)),
                             transform=tuple((rng.normal(size=(3, 3)) + 2 * np.eye(3)).ravel()))
    frame, x, theta = frame_of(protocol), rng.normal(size=(5, 3)), rng.normal(size=4)
    inside = (x - frame.centre) @ frame.transform.T
    moved = frame.moved(theta)
    np.testing.assert_allclose(moved[0] + inside @ moved[1:], theta[0] + x @ theta[1:], atol=1e-12)
    np.testing.assert_allclose(frame.in_public_units(moved), theta, atol=1e-12)


def mode_of(model):
    return {name: values[0] for name, values in model.constrain(model._mode(model.initial())[None]).items()}


def next_round(model, **options):
    """Return the protocol of a round at the mode of a model, with whitened records."""
    found = mode_of(model)
    values, vectors = np.linalg.eigh(found["covariance"])
    transform = 0.5 / math.sqrt(len(values)) * (vectors / np.sqrt(values)) @ vectors.T
    centre, public = np.zeros(len(values)), np.append(0.0, found["coef"])
    if "intercept" in found:
        centre, public = found["x_mean"], np.append(found["intercept"], found["coef"])
    theta = np.append(public[0] + public[1:] @ centre, np.linalg.inv(transform).T @ public[1:])
    return RoundProtocol(n_features=len(values), theta=tuple(theta), centre=tuple(centre),
                         transform=tuple(transform.ravel()), **options)


def test_the_frame_of_the_last_round_does_not_change_the_mode():
    """Up to the ridge of the prior and to other weights of long records, which are far below the standard error."""
    n = 40_000
    first = rounds_of(True, n, (math.inf,), 1)[0]
    base, (X, y) = next_round(RoundModel([first]), epsilon=math.inf), records(n, seed=5)
    public, modes = frame_of(base).in_public_units(frame_of(base).theta), []
    transform = np.reshape(base.transform, (D, D))
    for map_, shift in ((np.eye(D), 0.0), (np.array([[0.9, 0.3], [-0.2, 1.1]]), 0.05), (0.7 * np.eye(D), -0.05)):
        centre = np.array(base.centre) + shift
        changed = map_ @ transform
        theta = np.append(public[0] + public[1:] @ centre, np.linalg.inv(changed).T @ public[1:])
        protocol = replace(base, theta=tuple(theta), centre=tuple(centre), transform=tuple(changed.ravel()))
        modes.append(mode_of(RoundModel([first, protocol.aggregate(protocol.privatize(X, y))])))
    extended = np.column_stack([np.ones(n), X])
    p = expit(extended @ public)
    errors = np.sqrt(np.diag(np.linalg.inv((extended * (p * (1 - p))[:, None]).T @ extended)))
    for other in modes[1:]:
        assert np.all(np.abs(other["coef"] - modes[0]["coef"]) < 0.3 * errors[1:])
        assert abs(other["intercept"] - modes[0]["intercept"]) < 0.3 * errors[0]
        np.testing.assert_allclose(other["x_mean"], modes[0]["x_mean"], atol=0.02)
        np.testing.assert_allclose(other["covariance"], modes[0]["covariance"], atol=0.006)


@pytest.mark.parametrize("explained", [True, False])
def test_prior_standard_deviation_in_a_frame_by_simulation(explained):
    prior = "auto" if explained else RegressionPrior(coef="normal", coef_scale=2.0)
    options = {"data_norm": 4.0}
    model = RoundModel(rounds_of(True, 0, (4.0,), 2, **options), prior)
    rng, transform = np.random.default_rng(0), model.frame.transform
    covariance = np.array([[1.1, 0.5], [0.5, 2.0]])  # in the units of the data
    inside = transform @ covariance @ transform.T / 16
    precision = D * inside + 0.01 * np.eye(D) if explained else np.eye(D)
    scale = 1.25 if explained else 2.0 * 4
    normal = rng.normal(size=(400_000, D)) @ linalg.sqrtm(np.linalg.inv(precision)) * scale
    if explained:
        normal /= np.sqrt(rng.chisquare(3, size=(400_000, 1)) / 3)
    draws, before = normal @ transform / 4, covariance.copy()  # coefficients of x in the units of the data
    found = model.prior_coef_std(covariance[None])[0]
    quantile = stats.t(3).ppf(0.84) * math.sqrt(1 / 3) if explained else stats.norm.ppf(0.84)
    np.testing.assert_allclose(found * quantile, np.quantile(draws, 0.84, axis=0), rtol=0.02)
    np.testing.assert_array_equal(covariance, before)


# ---- Ratio of secant to tangent

@pytest.mark.parametrize("theta", [(0.5, 2.0, -3.0), (-2.0, 6.0, 1.0), (0.2, 1.0, 1.0)])
@pytest.mark.parametrize("at", [(0.0, 0.0, 0.0), (1.0, 1.0, -1.0)])
def test_secant_ratio_against_monte_carlo(at, theta):
    """Labels are drawn at the model, and their score is projected on the difference of the two models."""
    rng = np.random.default_rng(0)
    theta, at = np.array(theta), np.array(at)
    mean, covariance = np.array([0.1, -0.2]), np.array([[0.2, 0.05], [0.05, 0.1]])
    protocol = RoundProtocol(n_features=2, centre=(0.1, 0.3), transform=(2.0, 0.5, 0.0, 1.0), theta=(0, 0, 0))
    frame = frame_of(protocol)
    frame = frame_of(replace(protocol, theta=tuple(frame.moved(at))))
    x = rng.multivariate_normal(mean, covariance, size=1_000_000)
    u, own = theta[0] + x @ theta[1:], at[0] + x @ at[1:]
    p = expit(own)
    secant = np.mean((expit(u) - p) * (u - own))
    tangent = np.mean(p * (1 - p) * (u - own) ** 2)
    ratio, weight = secant_ratio(_normal_draws(mean, covariance), theta, frame)
    assert ratio == pytest.approx(secant / tangent, abs=0.01)
    assert weight == pytest.approx(np.mean(p * (1 - p)), abs=2e-3)
    labels = rng.random(1_000_000) < expit(u)
    assert np.mean((labels - p) * (u - own)) / tangent == pytest.approx(ratio, abs=0.02)
    assert secant_ratio(_normal_draws(mean, covariance), at, frame)[0] == pytest.approx(1.0, abs=1e-6)


def test_secant_ratio_is_limited():
    frame = frame_of(RoundProtocol(n_features=1, theta=(0.0, 0.0)))
    x = np.random.default_rng(0).normal(size=(1000, 1))
    assert secant_ratio(x, np.array([0.0, 1e6]), frame)[0] == 0.2
    far = frame_of(RoundProtocol(n_features=1, theta=(8.0, 0.0)))
    assert secant_ratio(x, np.zeros(2), far)[0] == 1.5


# ---- Large collections

def fitted(X, y, intercept):
    model = LogisticRegression(C=math.inf, fit_intercept=intercept, tol=1e-8).fit(X, y)
    return np.append(model.intercept_, model.coef_[0]) if intercept else model.coef_[0]


@with_and_without
def test_without_noise_rounds_agree_with_maximum_likelihood_for_skewed_records(intercept):
    """Moments alone are off by many standard errors; three rounds are within a few, and close in absolute terms."""
    n, d, rng = 200_000, 3, np.random.default_rng(0)
    X = rng.exponential(0.3, size=(n, d)) - 0.3 * intercept
    X = np.minimum(X, 1.2) / 2.2
    truth = np.array([0.5, 6.0, -4.0, 3.0])
    y = (rng.random(n) < expit(truth[0] * intercept + X @ truth[1:])).astype(int)
    expected = fitted(X, y, intercept)
    extended = np.column_stack([np.ones(n), X])[:, int(not intercept):]
    p = expit(extended @ expected)
    errors = np.sqrt(np.diag(np.linalg.inv((extended * (p * (1 - p))[:, None]).T @ extended)))
    weight = {} if intercept else {"intercept_weight": 0.0}
    protocol, rounds, found = LabelMomentProtocol(n_features=d, epsilon=math.inf, **weight), [], []
    for part in np.array_split(np.arange(n), 3):
        rounds.append(protocol.aggregate(protocol.privatize(X[part], y[part])))
        model = RoundModel(rounds)
        mode = mode_of(model)
        found.append(np.append(mode["intercept"], mode["coef"]) if intercept else mode["coef"])
        protocol = next_round(model, epsilon=math.inf, **weight)
    distance = np.abs(found - expected) / errors
    assert distance[0].max() > 8, "moments"
    assert distance[2].max() < 4 and np.abs(found[2] - expected).max() < 0.15, found
