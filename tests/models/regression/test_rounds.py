"""Regressions of labels and counts in several rounds, against plain evaluations, Monte Carlo and scikit-learn."""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy import linalg, stats
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression, PoissonRegressor

from skldp import RegressionPrior
from skldp.exceptions import InvalidParameterError
from skldp.models import RoundModel
from skldp.models.regression._round_likelihood import RoundLikelihood
from skldp.models.regression._round_reports import reported_of, round_of
from skldp.models.regression._rounds import affine_of, moments_of_x, normal_draws
from skldp.protocols import CountRoundProtocol, LabelMomentProtocol, RoundProtocol
from tests.models.regression.priors import Prior

D = 2
FRAME = {"centre": (0.1, -0.05), "transform": (1.5, 0.2, -0.3, 0.9)}


@dataclass(frozen=True)
class Kind:
    """A response: protocols of its rounds, a true model and a model of the second round, and the default prior.

    Models have a row for each predictor.
    """

    later: type
    truth: tuple
    second: tuple
    prior: Prior
    options: dict = field(default_factory=dict)
    first: type | None = None

    @property
    def n_lines(self):
        return len(self.truth)

    def protocols(self, intercept, n_rounds, later=None, **options):
        """Protocols of the rounds; all later ones have the same model, and further options."""
        options, lines = {"n_features": D, **self.options, **options}, np.array(self.second)
        if not intercept:
            options["intercept_weight"], lines[:, 0] = 0.0, 0.0
        frame = {**FRAME, "centre": FRAME["centre"] if intercept else (0.0, 0.0), "theta": tuple(lines.ravel())}
        following = self.later(**options, **frame, **(later or {}))
        return [(self.first or self.later)(**options), *[following] * (n_rounds - 1)]

    def draw(self, x, rng, intercept=True):
        """Responses of records at the true model."""
        rows = self.later(**self.options).response.rows(np.array(self.truth))
        scores = rows[:, 0] * intercept + x @ rows[:, 1:].T
        if self.later is CountRoundProtocol:
            return rng.poisson(np.exp(scores[:, 0]))
        if len(rows) == 1:
            return (rng.random(len(x)) < expit(scores[:, 0])).astype(int)
        number = np.sum(np.cumsum(softmax(scores, axis=1), axis=1)[:, :-1] < rng.random((len(x), 1)), axis=1)
        return np.array(self.options["classes"])[number]


KINDS = {
    "labels": Kind(RoundProtocol, ((0.4, 3.0, -2.0),), ((0.3, 2.0, -1.0),), Prior(1.25, intercept=(0.0, 2.5)),
                   first=LabelMomentProtocol),
    "three labels": Kind(RoundProtocol, ((0.4, 3.0, -2.0), (-0.3, 1.0, 2.0)), ((0.3, 2.0, -1.0), (0.0, 0.0, 1.0)),
                         Prior(1.25, intercept=(0.0, 2.5)), {"classes": ("a", "b", "c")}),
    "counts": Kind(CountRoundProtocol, ((0.3, 1.5, -1.0),), ((0.2, 1.0, -0.5),), Prior(0.75, intercept=(0.0, 3.0)),
                   {"bounds_y": (0, 4)}),
}
with_and_without = pytest.mark.parametrize("intercept", [True, False])
every_kind = pytest.mark.parametrize("kind", KINDS)


class InFrame:
    """A model whose parameters are those of the predictors in its last frame, where its prior is defined.

    It lacks the coordinates of the mean curvatures, which come last.
    """

    def __init__(self, model):
        self.model, self.frame = model, model.frame

    def constrain(self, theta):
        ratios = np.zeros((len(theta), self.model.n_params - theta.shape[1]))
        params, transform = dict(self.model.constrain(np.hstack([theta, ratios]))), self.frame.transform
        params["covariance"] = np.einsum("ij,njk,lk->nil", transform, params["covariance"], transform)
        if self.model.response.n_lines > 1:
            lines = self.model.response.lines
            params["coef"] = lines(params["coef"])
            if "intercept" in params:
                params["intercept"] = lines(params["intercept"][:, :, None])[:, :, 0]
        if "intercept" in params:
            params["intercept"] = params["intercept"] + params["coef"] @ self.frame.centre
            params["x_mean"] = (params["x_mean"] - self.frame.centre) @ transform.T
        params["coef"] = params["coef"] @ np.linalg.inv(transform)
        return params


def log_prior(model, theta, prior=KINDS["labels"].prior):
    """Log-density of the prior in coordinates, from its definition in the coordinates of the last round."""
    ratios = theta[:, model.coordinates.ratios]
    return prior(InFrame(model), theta[:, :-ratios.shape[1]]) + stats.norm.logpdf(ratios).sum(axis=1)


def records(n, seed=0, skewed=True, d=D, kind=KINDS["labels"], intercept=True):
    rng = np.random.default_rng(seed)
    X = rng.exponential(0.25, size=(n, d)) - 0.2 if skewed else rng.normal(0.05 * intercept, 0.2, size=(n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, kind.draw(X, rng, intercept)


def rounds_of(intercept, n=3000, epsilons=(4.0, 6.0), n_rounds=2, seed=0, kind="labels", skewed=True, **options):
    """Aggregates of rounds of the same records, each of cohorts with the given budgets."""
    found, kind = [], KINDS[kind]
    for number, protocol in enumerate(kind.protocols(intercept, n_rounds, **options)):
        data = records(n, seed + number, skewed, kind=kind, intercept=intercept)
        cohorts = [protocol.with_epsilon(epsilon) for epsilon in epsilons]
        found.append(sum(one.aggregate(one._randomize(*data, 7 * i)) for i, one in enumerate(cohorts)))
    return found


def points(model, n=6, size=0.4):
    return model.initial() + np.random.default_rng(0).normal(0.05, size, size=(n, model.n_params))


# ---- Reported score and curvature

@with_and_without
def test_moments_of_the_first_round_are_score_and_curvature_at_zero(intercept):
    X, y = records(500, intercept=intercept)
    (aggregate,) = rounds_of(intercept, 500, (math.inf,), 1)
    (protocol, tally), = aggregate.parts.items()
    likelihood = RoundLikelihood(protocol, tally)
    found, kappa = likelihood.reported_means, protocol.intercept_weight
    extended = np.column_stack([np.full(500, kappa), X])[:, int(kappa == 0):]
    np.testing.assert_allclose(found.score, (y - 0.5)[None] @ extended / 500, atol=2e-5)
    np.testing.assert_allclose(found.curvature, extended.T @ extended / 2000, atol=2e-5)
    assert likelihood.kappa == kappa and not likelihood.frame.lines.any()


@pytest.mark.parametrize("kind, number", [(kind, number) for kind in KINDS for number in (0, 1)])
def test_the_stated_noise_of_a_report_is_its_variance(kind, number):
    protocol = KINDS[kind].protocols(True, 2, epsilon=3.0, intercept_weight=0.5)[number]
    reports = protocol._randomize(np.full((6000, D), 0.3), np.full(6000, getattr(protocol, "classes", (1,))[-1]), 0)
    found = [RoundLikelihood(protocol, protocol.aggregate(row[None]).parts[protocol]).reported_means for row in reports]
    score, curvature = np.array([one.score for one in found]), np.array([one.curvature for one in found])
    np.testing.assert_allclose(score.var(axis=0), found[0].score_noise, rtol=0.1)
    sent = int(isinstance(protocol, LabelMomentProtocol))  # which does not send the square of the constant
    stated = np.where(np.eye(D + 1), 1.0, 0.5) * found[0].curvature_noise
    np.testing.assert_allclose(curvature.var(axis=0)[sent:, :], stated[sent:, :], rtol=0.1)


# ---- Log-density

def whitened_points(model, x):
    """The points z of the model, from where x is in public units, one by one."""
    last = model.last_round
    shares = last.counts(x) / last.counts(x).sum()
    inside = (x - last.frame.centre) @ last.frame.transform.T
    mean = shares @ inside if model.has_intercept else np.zeros(D)
    covariance = sum(share * np.outer(row - mean, row - mean) for share, row in zip(shares, inside))
    return (inside - mean) @ np.linalg.inv(linalg.sqrtm(covariance).real)


def plain_expectations(part, x, moved, lines):
    """Expected score and curvature of one round, from their definition as means over points.

    x are the points at which the round knows how records count and which response is expected; moved are the points
    at the parameters; both are in public units, as the lines are.
    """
    protocol, score, curvature = part.round, 0.0, 0.0
    _, mean, slope, weight = protocol.evaluate(x)
    for before, after, mean_before, w, v in zip(x, moved, mean, slope, weight):
        own = part.frame.transform @ (after - part.frame.centre)
        extended = np.append([part.kappa] if part.kappa else [], own)
        change = lines[:, 0] + lines[:, 1:] @ after - part.frame.lines[:, 0] - part.frame.lines[:, 1:] @ own
        u = part.frame.lines[:, 0] + part.frame.lines[:, 1:] @ part.frame.transform @ (before - part.frame.centre)
        score = score + v * np.outer(part.response.mean((u + change)[None])[0] - mean_before, extended) / len(x)
        curvature = curvature + v * w * np.outer(extended, extended) / len(x)
    return score, curvature


def plain_log_likelihood(model, part, ratio, coef, covariance, intercept=None, x_mean=None):
    """Log-likelihood of a cohort of one round, for lines in public units, shape (q, d)."""
    frame, reported, q = model.frame, part.reported_means, len(coef)
    x_mean, intercept = (np.zeros(D), np.zeros(q)) if x_mean is None else (x_mean, intercept)
    x = normal_draws(*moments_of_x(model.likelihoods[:model.numbers.count(0)], D))
    m = frame.transform @ (x_mean - frame.centre)
    root = linalg.sqrtm(frame.transform @ covariance @ frame.transform.T).real
    moved = frame.centre + (m + whitened_points(model, x) @ root) @ np.linalg.inv(frame.transform).T
    score, curvature = plain_expectations(part, x, moved, np.column_stack([intercept, coef]))
    residual = (reported.score - ratio * score).ravel()
    value = -0.5 * residual @ part.precision @ residual
    if not part.has_curvature:
        return value
    gap = reported.curvature - ratio * curvature
    for i in range(len(gap)):
        for j in range(i, len(gap)):
            value += stats.norm(0, math.sqrt(part.spread if i == j else part.spread / 2)).logpdf(gap[i, j])
    return value


@every_kind
@with_and_without
@pytest.mark.parametrize("n_rounds, later", [(1, {}), (2, {}), (2, {"curvature_weight": 0.0}),
                                             (2, {"curvature_weight": 0.4})])
def test_log_density_is_the_sum_of_normal_densities_and_the_prior(n_rounds, later, intercept, kind):
    rounds = rounds_of(intercept, n_rounds=n_rounds, kind=kind, later=later)
    model = RoundModel(rounds)
    theta = points(model)
    params, q = model.constrain(theta), KINDS[kind].n_lines
    lines = model.response.lines
    expected = log_prior(model, theta, KINDS[kind].prior)
    assert len(model.likelihoods) == sum(len(aggregate.parts) for aggregate in rounds) == 2 * n_rounds
    for i in range(len(theta)):
        one = {name: values[i] for name, values in params.items()}
        one["coef"] = lines(one["coef"].reshape(-1, D))
        if intercept:
            one["intercept"] = lines(one["intercept"].reshape(-1, 1)).ravel()
        assert one["coef"].shape == (q, D)
        ratios = [math.exp(part.ratio_scale * theta[i, model.coordinates.ratios][number])
                  for number, part in zip(model.numbers, model.likelihoods)]
        expected[i] += sum(plain_log_likelihood(model, part, ratio, **one)
                           for part, ratio in zip(model.likelihoods, ratios))
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-6, atol=1e-6)


@every_kind
@with_and_without
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_scores_are_at_their_expectation_at_the_truth_for_normal_records(weight, intercept, kind):
    """Expected score and curvature, far from the models of the rounds: errors are far below the change."""
    case, n = KINDS[kind], 100_000
    rounds = rounds_of(intercept, n, (math.inf,), 3, kind=kind, skewed=False, later={"curvature_weight": weight})
    model, truth = RoundModel(rounds), np.array(case.truth)
    truth[:, 0] *= intercept
    assert [part.n_reports for part in model.likelihoods] == [n] * 3
    for number, part in enumerate(model.likelihoods):
        x = records(n, number, skewed=False, kind=case, intercept=intercept)[0]
        inside, counts = model.frame.inside(x), model.last_round.counts(x)
        mean = counts @ inside / counts.sum() if intercept else np.zeros(D)
        covariance = ((inside - mean) * counts[:, None]).T @ (inside - mean) / counts.sum()
        affine = affine_of(mean[None], linalg.sqrtm(covariance).real[None])
        score, curvature = part.expected(affine, model.frame.moved(truth)[None], np.ones(1))
        residual = (part.reported_means.score - score[0]).ravel()
        # 256 points stand for the records, so the expectation has an error of about 1 % of the change.
        error = np.sqrt(np.diag(part.variance)) + 0.01 * np.abs(part.reported_means.score).max()
        assert np.abs(residual / error).max() < 3, residual / error
        size = np.abs(part.reported_means.score.ravel() / np.sqrt(np.diag(part.variance))).max()
        assert size > 25, "the model of the round is far from the truth"
        if part.has_curvature:
            assert np.abs(part.reported_means.curvature - curvature[0]).max() < 0.05 * curvature.max()


@pytest.mark.parametrize("mechanism", ["sphere", "axis"])
def test_the_stated_noise_of_a_round_of_moments_is_that_of_its_reports(mechanism):
    """Over new noise of the same records: averages over the score, and over the curvature's diagonal with x."""
    protocol, n, repeats = LabelMomentProtocol(n_features=D, epsilon=3.0, mechanism=mechanism), 2000, 200
    X, y = records(n, 0)
    found = [reported_of(protocol, protocol.aggregate(protocol._randomize(X, y, seed)).parts[protocol])
             for seed in range(repeats)]
    score = n * np.var([one.score[0] for one in found], axis=0).mean()
    curvature = n * np.var([np.diag(one.curvature)[1:] for one in found], axis=0).mean()
    stated = np.mean([(one.score_noise, one.curvature_noise) for one in found], axis=0)
    np.testing.assert_allclose([score, curvature], stated, rtol=0.2)


@every_kind
def test_the_stated_variance_of_the_score_is_that_of_the_responses(kind):
    """Without noise, over new responses of the same records, at a model close to the round's."""
    case, n = KINDS[kind], 400
    protocol = case.protocols(True, 2, epsilon=math.inf)[1]
    near = round_of(protocol).frame.in_public_units(protocol.lines)
    near = replace(case, truth=tuple(map(tuple, near)))
    x, _ = records(n, 3, kind=near)
    scores = []
    for seed in range(600):
        aggregate = protocol.aggregate(protocol.privatize(x, near.draw(x, np.random.default_rng(seed))))
        part = RoundLikelihood(protocol, aggregate.parts[protocol])
        scores.append(part.reported_means.score.ravel())
    stated = RoundModel([aggregate]).likelihoods[0].variance
    found = np.cov(np.transpose(scores))
    # Long records count less, by v^2 and not by v: the stated variance is at most a quarter too large.
    ratio = np.diag(found) / np.diag(stated)
    assert 0.65 < ratio.min() and ratio.max() < 1.15, ratio


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


@every_kind
@pytest.mark.parametrize("sizes", [(3000, 0), (0, 3000), (1, 1)])
def test_rounds_without_reports_leave_those_of_the_others(sizes, kind):
    rounds = [rounds_of(True, n, kind=kind)[number] for number, n in enumerate(sizes)]
    model, empty = RoundModel(rounds), RoundModel(rounds_of(True, 0, kind=kind))
    theta = points(model)
    value, gradient = model.gradient(theta)
    assert np.isfinite(value).all() and np.isfinite(gradient).all()
    other = empty.log_density(empty.coordinates.convert(theta, model.coordinates))
    assert np.ptp(value - other) > 0.01


THROUGH_ORIGIN = {"theta": (0.0, 2.0, -1.0), "transform": FRAME["transform"]}
COUNTS = CountRoundProtocol(n_features=D)


@pytest.mark.parametrize("change, message", [
    (lambda first, later: [], "must be aggregates of"), (lambda first, later: [later, first], "must be aggregates of"),
    (lambda first, later: [first, first], "must be aggregates of"),
    (lambda first, later: [first, COUNTS], "must be aggregates of"),
    (lambda first, later: [COUNTS, later], "must be aggregates of"),
    (lambda first, later: [COUNTS, replace(COUNTS, bounds_y=(0, 5))], "bounds_y is"),
    (lambda first, later: [first, replace(later, data_norm=2.0)], "data_norm is"),
    (lambda first, later: [first, replace(later, classes=("no", "yes"))], "classes is"),
    (lambda first, later: [first, RoundProtocol(n_features=D, classes=(0, 1, 2))], "classes is"),
    (lambda first, later: [replace(first, n_features=3), later], "n_features is"),
    (lambda first, later: [first, later, replace(later, **THROUGH_ORIGIN, centre=(), intercept_weight=0.0)],
     "has_intercept is"),
    (lambda first, later: [replace(later, curvature_weight=0.0), later], "must tell the curvature"),
    (lambda first, later: [first, replace(later, transform=(0.0,) * 4)], "invertible"),
    (lambda first, later: [first, replace(later, transform=(1.0, 2.0, 2.0, 4.0)), later], "invertible"),
    (lambda first, later: [first, replace(later, transform=(1e300, 0.0, 0.0, 1e-300))], "invertible"),
])
def test_rounds_that_do_not_fit_together_are_refused(change, message):
    protocols = change(*KINDS["labels"].protocols(True, 2))
    with pytest.raises(InvalidParameterError, match=message):
        RoundModel([protocol.aggregate([]) for protocol in protocols])


# ---- Frames

@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("n_lines", [1, 2])
def test_frames_map_models_without_changing_predictions(seed, n_lines):
    rng = np.random.default_rng(seed)
    protocol = RoundProtocol(n_features=3, theta=tuple(rng.normal(size=4 * n_lines)), centre=tuple(rng.normal(size=3)),
                             transform=tuple((rng.normal(size=(3, 3)) + 2 * np.eye(3)).ravel()),
                             classes=tuple(range(n_lines + 1)))
    frame, x, lines = round_of(protocol).frame, rng.normal(size=(5, 3)), rng.normal(size=(n_lines, 4))
    inside = (x - frame.centre) @ frame.transform.T
    moved = frame.moved(lines)
    expected = lines[:, 0] + x @ lines[:, 1:].T
    np.testing.assert_allclose(moved[:, 0] + inside @ moved[:, 1:].T, expected, atol=1e-12)
    np.testing.assert_allclose(moved[:, 0] + frame.inside(x) @ moved[:, 1:].T, expected, atol=1e-12)
    other = round_of(replace(protocol, theta=(), centre=(), transform=tuple(rng.normal(size=9)))).frame
    extended = np.column_stack([np.ones(5), other.inside(x)]) @ frame.extended_from(other, 0.3).T
    np.testing.assert_allclose(extended, np.column_stack([np.full(5, 0.3), inside]), atol=1e-11)
    np.testing.assert_allclose(frame.in_public_units(moved), lines, atol=1e-12)


def mode_of(model):
    return {name: values[0] for name, values in model.constrain(model._mode(model.initial())[None]).items()}


def next_round(model, kind=RoundProtocol, **options):
    """Return the protocol of a round at the mode of a model, with whitened records."""
    found = mode_of(model)
    values, vectors = np.linalg.eigh(found["covariance"])
    transform = 0.5 / math.sqrt(len(values)) * (vectors / np.sqrt(values)) @ vectors.T
    coef = np.atleast_2d(found["coef"])
    centre, public = np.zeros(len(values)), np.column_stack([np.zeros(len(coef)), coef])
    if "intercept" in found:
        centre, public = found["x_mean"], np.column_stack([np.atleast_1d(found["intercept"]), coef])
    lines = model.response.lines(public)
    theta = np.column_stack([lines[:, 0] + lines[:, 1:] @ centre, lines[:, 1:] @ np.linalg.inv(transform)])
    return kind(n_features=len(values), theta=tuple(theta.ravel()), centre=tuple(centre),
                transform=tuple(transform.ravel()), **options)


def test_the_frame_of_the_last_round_does_not_change_the_mode():
    """Up to the ridge of the prior and to other weights of long records, which are far below the standard error."""
    n = 40_000
    first = rounds_of(True, n, (math.inf,), 1)[0]
    base, (X, y) = next_round(RoundModel([first]), epsilon=math.inf), records(n, seed=5)
    public, modes = round_of(base).frame.in_public_units(round_of(base).frame.lines)[0], []
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


# ---- Large collections

def standard_errors(extended, curvature):
    """Standard errors of maximum likelihood for one line."""
    return np.sqrt(np.diag(np.linalg.inv((extended * curvature[:, None]).T @ extended)))


def modes_of_rounds(protocol, kind, X, y, weight):
    """Modes of the model after each of three rounds without noise, rows (intercept, coefficients)."""
    rounds, found = [], []
    for part in np.array_split(np.arange(len(X)), 3):
        rounds.append(protocol.aggregate(protocol.privatize(X[part], y[part])))
        model = RoundModel(rounds)
        mode = mode_of(model)
        coef = np.atleast_2d(mode["coef"])
        found.append(np.column_stack([np.broadcast_to(mode.get("intercept", 0.0), len(coef)), coef]))
        own = {name: getattr(protocol, name) for name in ("classes", "bounds_y") if name in vars(protocol)}
        protocol = next_round(model, kind, epsilon=math.inf, **own, **weight)
    return np.array(found)


def skewed_columns(n, d, rng, intercept):
    X = rng.exponential(0.3, size=(n, d)) - 0.3 * intercept
    return np.minimum(X, 1.2) / 2.2


@with_and_without
def test_without_noise_rounds_agree_with_maximum_likelihood_for_skewed_records(intercept):
    """Moments alone are off by many standard errors; three rounds are within a few, and close in absolute terms."""
    n, d, rng = 200_000, 3, np.random.default_rng(0)
    X = skewed_columns(n, d, rng, intercept)
    truth = np.array([0.5, 6.0, -4.0, 3.0])
    y = (rng.random(n) < expit(truth[0] * intercept + X @ truth[1:])).astype(int)
    plain = LogisticRegression(C=math.inf, fit_intercept=intercept, tol=1e-8).fit(X, y)
    first, weight = int(not intercept), {} if intercept else {"intercept_weight": 0.0}
    p, extended = plain.predict_proba(X)[:, 1], np.column_stack([np.ones(n), X])[:, first:]
    found = modes_of_rounds(LabelMomentProtocol(n_features=d, epsilon=math.inf, **weight), RoundProtocol, X, y, weight)
    expected = np.append(plain.intercept_ if intercept else 0.0, plain.coef_[0])
    distance = np.abs(found[:, 0] - expected)[:, first:] / standard_errors(extended, p * (1 - p))
    assert distance[0].max() > 8, "moments"
    assert distance[2].max() < 4 and np.abs(found[2, 0] - expected).max() < 0.15, found


def test_without_noise_rounds_of_three_labels_agree_with_maximum_likelihood_for_skewed_records():
    n, d, rng = 100_000, 2, np.random.default_rng(0)
    X = skewed_columns(n, d, rng, True)
    rows = np.array([[0.2, 4.0, -3.0], [-0.4, -1.0, 4.0], [0.2, -3.0, -1.0]])
    p = softmax(rows[:, 0] + X @ rows[:, 1:].T, axis=1)
    y = np.sum(np.cumsum(p, axis=1)[:, :-1] < rng.random((n, 1)), axis=1)
    plain = LogisticRegression(C=math.inf, tol=1e-8).fit(X, y)
    protocol = RoundProtocol(n_features=d, epsilon=math.inf, classes=(0, 1, 2))
    found = modes_of_rounds(protocol, RoundProtocol, X, y, {})
    assert found.shape == (3, 3, d + 1)
    np.testing.assert_allclose(found.sum(axis=1), 0.0, atol=1e-12)
    expected = np.column_stack([plain.intercept_, plain.coef_])
    extended = np.column_stack([np.ones(n), X])
    errors = [standard_errors(extended, one * (1 - one)) for one in p.T]
    distance = np.abs(found - expected) / errors
    assert distance[2].max() < 4 and np.abs(found[2] - expected).max() < 0.15, (found[2], expected)


def test_without_noise_rounds_of_counts_agree_with_maximum_likelihood_for_skewed_records():
    n, d, rng = 100_000, 2, np.random.default_rng(0)
    X = skewed_columns(n, d, rng, True)
    y = rng.poisson(np.exp(0.4 + X @ [3.0, -2.0]))
    plain = PoissonRegressor(alpha=0.0, tol=1e-8).fit(X, y)
    protocol = CountRoundProtocol(n_features=d, epsilon=math.inf, bounds_y=(0, 40))
    (found,) = modes_of_rounds(protocol, CountRoundProtocol, X, y, {})[-1]
    expected = np.append(plain.intercept_, plain.coef_)
    errors = standard_errors(np.column_stack([np.ones(n), X]), plain.predict(X))
    assert (np.abs(found - expected) / errors).max() < 4 and np.abs(found - expected).max() < 0.06, (found, expected)


def test_clipped_counts_do_not_bias_the_coefficients():
    """A bound that a third of the counts exceed: the mean of clipped counts is part of the model."""
    n, rng = 100_000, np.random.default_rng(0)
    X = rng.normal(0.0, 0.25, size=(n, 2))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    truth = np.array([1.0, 1.5, -1.0])
    y = rng.poisson(np.exp(truth[0] + X @ truth[1:]))
    assert 0.25 < np.mean(y > 3) < 0.45
    protocol = CountRoundProtocol(n_features=2, epsilon=math.inf, bounds_y=(0, 3))
    (found,) = modes_of_rounds(protocol, CountRoundProtocol, X, y, {})[-1]
    np.testing.assert_allclose(found, truth, atol=0.05)
    plain = PoissonRegressor(alpha=0.0).fit(X, np.minimum(y, 3))
    assert np.abs(plain.coef_ - truth[1:]).max() > 0.4, "clipping matters"


@every_kind
@pytest.mark.parametrize("intercept", [True, False])
def test_published_models_are_within_reach_and_have_the_mean_response_of_the_mode(intercept, kind):
    model = RoundModel(rounds_of(intercept, 1000, (math.inf,), 2, kind=kind))
    part, rng = model.likelihoods[-1], np.random.default_rng(0)
    affine = affine_of(np.full((1, D), 0.1) if intercept else None, np.array([[[0.4, 0.1], [0.1, 0.3]]]))
    lines = part.origin + rng.normal(scale=8.0, size=part.origin.shape)
    lines[:, 0] = lines[:, 0] / 8 * intercept
    shares = part.shares / part.shares.sum()

    def predictors(lines):
        return part.base + part.z @ ((lines - part.origin) @ affine[0]).T

    def change(lines):
        moved = predictors(lines) - part.base
        return moved, math.sqrt(shares @ np.sum((moved - shares @ moved) ** 2, axis=1))

    found = part.within_reach(affine, lines[None], 0.7)[0]
    assert change(lines)[1] > 1 and change(found)[1] == pytest.approx(0.7)
    assert (found[:, 1:] - part.origin[:, 1:] == pytest.approx(
        0.7 / change(lines)[1] * (lines[:, 1:] - part.origin[:, 1:])))
    if intercept:
        expected, mean = (shares @ part.response.mean(predictors(one)) for one in (lines, found))
        np.testing.assert_allclose(mean, expected, atol=1e-6)
    assert (part.within_reach(affine, found[None], 0.701)[0] == found).all(), "nothing changes within reach"


def test_without_reports_x_is_taken_to_be_centred_in_the_ball():
    mean, covariance = moments_of_x([], 3)
    np.testing.assert_array_equal(mean, np.zeros(3))
    np.testing.assert_allclose(np.trace(covariance), 0.25)
