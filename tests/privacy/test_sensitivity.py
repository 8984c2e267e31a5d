"""Compare every sensitivity with brute force over pairs of records: attained and not exceeded."""

import math

import numpy as np
import pytest
from scipy.special import expit

from skldp.privacy import (
    ball_sensitivity,
    interval_sensitivity,
    labelled_moment_radius,
    moment_radius,
    moment_sensitivity,
    paper_moment_bound,
    score_radius,
    weighted_moment_sensitivity,
)
from skldp.protocols._responses import Counts
from tests.protocols.responses import RESPONSES

SETTINGS = [  # norm, y_bound, y_weight, intercept_weight
    (1.0, 1.0, 1.0, 0.0),
    (1.0, 2.0, 0.5, 0.0),
    (1.0, 2.0, math.sqrt(1 / 8), math.sqrt(0.5)),
    (2.0, 1.0, 1.0, 1.5),
    (1.0, 3.0, 1.0, 0.0),
    (1.0, 5.0, 1.0, 0.7),
]


def svec(v):
    rows, columns = np.triu_indices(v.shape[-1])
    return (v[..., :, None] * v[..., None, :])[..., rows, columns] * np.where(rows == columns, 1.0, math.sqrt(2))


def clipped(records, norm, y_bound):
    x, y = records[..., :-1], records[..., -1:]
    return x * np.minimum(1.0, norm / np.linalg.norm(x, axis=-1, keepdims=True)), np.clip(y, -y_bound, y_bound)


def brute_force(distance, norm, y_bound, n_features=2, n_pairs=5000, n_kept=50):
    """Largest distance of the moments of two records: the best of random pairs, moved by smaller and smaller steps."""
    rng, scale = np.random.default_rng(0), max(norm, y_bound)
    pairs = rng.normal(scale=scale, size=(n_pairs, 2, n_features + 1))
    for step in np.geomspace(scale, 1e-4 * scale, 40):
        found = distance(*clipped(pairs, norm, y_bound))
        best = pairs[np.argsort(found)[-n_kept:]]
        moved = best + step * rng.normal(size=(n_pairs // n_kept, *best.shape))
        pairs = np.concatenate([best, moved.reshape(-1, *best.shape[1:])])
    return found.max()


def between(vectors):
    """Distance of the two records of each pair."""
    return np.linalg.norm(vectors[:, 0] - vectors[:, 1], axis=-1)


def moment_distance(y_weight, kappa):
    def distance(x, y):
        return between(svec(np.concatenate([np.full_like(y, kappa), x, y_weight * y], axis=-1)))

    return distance


@pytest.mark.parametrize("norm, y_bound, y_weight, kappa", SETTINGS)
def test_moment_sensitivity_is_attained_and_not_exceeded(norm, y_bound, y_weight, kappa):
    found = brute_force(moment_distance(y_weight, kappa), norm, y_bound)
    declared = moment_sensitivity(norm, y_bound, y_weight, kappa)
    assert found <= declared * (1 + 1e-9)
    assert found >= 0.999 * declared


def test_a_sensitivity_without_its_root_two_is_caught():
    norm, y_bound, y_weight, kappa = SETTINGS[2]
    mutant = moment_sensitivity(norm, y_bound, y_weight, kappa) / math.sqrt(2)
    assert brute_force(moment_distance(y_weight, kappa), norm, y_bound) > mutant * 1.1


@pytest.mark.parametrize("kappa", [0.0, 0.7])
def test_one_feature_has_a_close_upper_bound(kappa):
    found = brute_force(moment_distance(0.8, kappa), 1.0, 1.0, n_features=1)
    declared = moment_sensitivity(1.0, 1.0, 0.8, kappa)
    assert 0.9 * declared <= found <= declared * (1 + 1e-9)


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("norm, y_bound, y_weight, kappa", [
    (1.0, 1.0, 0.4, 0.0), (1.0, 1.0, 0.4, 0.7), (2.0, 3.0, 0.3, 0.5), (1.0, 2.0, 1.0, 0.3)])
def test_sensitivity_of_several_responses_is_not_exceeded_and_attained(norm, y_bound, y_weight, kappa, k):
    """Corners of the box of responses, with the x that is best for each pair of corners, and random records."""
    declared = moment_sensitivity(norm, y_bound, y_weight, kappa, k)
    rng, weight = np.random.default_rng(0), y_weight * y_bound
    corners = weight * rng.choice([-1.0, 1.0], size=(400, 2, k))
    cosine = np.clip(-(kappa**2 + np.vecdot(corners[:, 0], corners[:, 1])) / norm**2, -1, 1)
    x = norm * np.stack([np.stack([np.ones(400), np.zeros(400)], 1), np.stack([cosine, np.sqrt(1 - cosine**2)], 1)], 1)
    best = between(svec(np.concatenate([np.full((400, 2, 1), kappa), x, corners], axis=-1)))
    inside = rng.normal(size=(20_000, 2, 2))
    inside *= norm * rng.uniform(size=(20_000, 2, 1)) / np.linalg.norm(inside, axis=2, keepdims=True)
    y = weight * np.clip(rng.normal(scale=2, size=(20_000, 2, k)), -1, 1)
    others = between(svec(np.concatenate([np.full((20_000, 2, 1), kappa), inside, y], axis=-1)))
    assert max(best.max(), others.max()) <= declared * (1 + 1e-9)
    if k % 2 == 0 and kappa <= norm or kappa**2 + weight**2 <= norm**2:
        assert best.max() >= 0.9999 * declared


def vector_distance(kappa):
    def distance(x, y):
        return between(svec(np.concatenate([np.full_like(y, kappa), x], axis=-1)))

    return distance


@pytest.mark.parametrize("norm, kappa", [(1.0, 0.0), (1.0, 0.5), (2.0, 1.9), (1.0, 1.0), (1.0, 1.3), (0.5, 4.0)])
@pytest.mark.parametrize("d", [2, 3])
def test_sensitivity_without_responses_is_attained_and_not_exceeded(norm, kappa, d):
    found = brute_force(vector_distance(kappa), norm, 1.0, n_features=d)
    declared = moment_sensitivity(norm, 1.0, intercept_weight=kappa, n_responses=0)
    assert 0.999 * declared <= found <= declared * (1 + 1e-9)


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0, 2.0])
def test_sensitivity_of_one_feature_without_responses(kappa):
    """It is attained from kappa = R on, and otherwise at most the root of two times too large."""
    found = brute_force(vector_distance(kappa), 1.0, 1.0, n_features=1)
    declared = moment_sensitivity(1.0, 1.0, intercept_weight=kappa, n_responses=0)
    assert found <= declared * (1 + 1e-9)
    assert found >= (0.999 if kappa >= 1 else 0.999 / math.sqrt(2)) * declared


@pytest.mark.parametrize("k", [0, 2, 5])
@pytest.mark.parametrize("recentre", [False, True])
@pytest.mark.parametrize("norm, y_bound, y_weight, kappa", SETTINGS)
def test_radius_of_several_responses_is_attained_and_not_exceeded(norm, y_bound, y_weight, kappa, recentre, k):
    rng, n, d = np.random.default_rng(1), 4000, 3
    x = rng.normal(size=(n, d))
    x *= norm * rng.choice([0.0, 0.3, 1.0, 1.0], size=(n, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    y = y_bound * rng.choice([-1.0, -0.5, 0.0, 1.0], size=(n, k))
    y[::2] = y_bound * rng.choice([-1.0, 1.0], size=(n // 2, k))
    y[::3] = 0.0
    v = np.column_stack([np.full(n, kappa), x, y_weight * y])
    centre = np.append(np.full(d, norm**2 / d), np.full(k, (y_weight * y_bound) ** 2)) * recentre
    deviation = v[:, :, None] * v[:, None, :] - np.diag(np.append(0.0, centre))
    deviation[:, 0, 0] = 0.0
    lengths = np.linalg.norm(deviation, axis=(1, 2))
    declared = moment_radius(norm, y_bound, d, y_weight, kappa, recentre, k)
    assert lengths.max() == pytest.approx(declared, rel=1e-12)


def test_closed_form_inside_its_conditions():
    for norm, y_bound, y_weight, kappa in SETTINGS[:4]:
        total = norm**2 + kappa**2 + (y_weight * y_bound) ** 2
        assert moment_sensitivity(norm, y_bound, y_weight, kappa) == pytest.approx(math.sqrt(2) * total, rel=1e-12)


@pytest.mark.parametrize("norm, y_bound, c1, c2", [
    (1, 1, 1, 1), (1, 2, 1, 1), (1, 5, 1, 1), (2, 1, 3, 0.2), (1, 3, 0.3, 2),
])
def test_weighted_sensitivity_is_attained_and_below_the_papers(norm, y_bound, c1, c2):
    def distance(x, y):
        return between(np.concatenate([svec(x), math.sqrt(c1) * y * x, math.sqrt(c2) * y * y], axis=-1))

    found = brute_force(distance, norm, y_bound)
    declared = weighted_moment_sensitivity(norm, y_bound, c1, c2)
    assert 0.999 * declared <= found <= declared * (1 + 1e-9)
    assert declared <= paper_moment_bound(norm, y_bound, c1, c2)


def test_ratio_of_the_papers_bound_to_the_sensitivity():
    ratios = [(paper_moment_bound(1, b) / weighted_moment_sensitivity(1, b)) ** 2 for b in (1, 2)]
    assert ratios == pytest.approx([1.222, 1.545], abs=1e-3)


def centred_lengths(norm, y_bound, d, y_weight, kappa, labelled, recentre):
    """Distances of many moment vectors, including extreme ones, to the centre; constant entries are left out."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, d))
    x *= norm * rng.choice([0.0, 0.3, 1.0, 1.0], size=(4000, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    y = rng.choice([-1.0, 1.0], 4000) if labelled else y_bound * rng.choice([-1.0, -0.5, 0.0, 1.0], 4000)
    v = np.column_stack([np.full(4000, kappa), x, y_weight * y])
    deviation = np.einsum("ni,nj->nij", v, v)
    deviation[:, 0, 0] = 0.0
    inner = np.arange(1, d + 1)
    if recentre:
        deviation[:, inner, inner] -= norm**2 / d
    if labelled:
        deviation[:, -1, -1] = 0.0
    elif recentre:
        deviation[:, -1, -1] -= (y_weight * y_bound) ** 2
    return np.linalg.norm(deviation, axis=(1, 2))


@pytest.mark.parametrize("d", [1, 2, 8])
@pytest.mark.parametrize("recentre", [False, True])
@pytest.mark.parametrize("norm, y_bound, y_weight, kappa", SETTINGS)
def test_radii_are_attained_and_not_exceeded(d, recentre, norm, y_bound, y_weight, kappa):
    lengths = centred_lengths(norm, y_bound, d, y_weight, kappa, False, recentre)
    assert lengths.max() == pytest.approx(moment_radius(norm, y_bound, d, y_weight, kappa, recentre), rel=1e-12)
    lengths = centred_lengths(norm, 1.0, d, y_weight, kappa, True, recentre)
    assert lengths.max() == pytest.approx(labelled_moment_radius(norm, d, y_weight, kappa, recentre), rel=1e-12)


def score_and_curvature(x, y, theta, kappa):
    """Unweighted report of each record by its definition, and the probability p of each."""
    extended = np.column_stack([np.full(len(x), kappa), x])
    p = expit(theta[0] + x @ theta[1:])
    return np.column_stack([(y - p)[:, None] * extended, (p * (1 - p))[:, None] * svec(extended)]), p


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("d", [1, 3])
def test_weighted_score_and_curvature_are_not_longer_than_their_radius(d, kappa):
    """Both labels of random records in the ball, random models, and maps that move records out of the ball."""
    rng, declared, longest, shortened = np.random.default_rng(0), score_radius(kappa), 0.0, 0
    for size in np.repeat([0.0, 1.0, 5.0, 50.0], 10):
        x = rng.normal(size=(500, d))
        x *= rng.choice([0.2, 1.0, 1.0], size=(500, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
        x = (x - rng.normal(scale=0.3, size=d)) @ (rng.choice([0.5, 3.0, 30.0]) * rng.normal(size=(d, d)))
        theta = size * rng.normal(size=d + 1)
        square = np.sum(x**2, axis=1) + kappa**2
        for y in (0.0, 1.0):
            vectors, p = score_and_curvature(x, y, theta, kappa)
            bound = np.sqrt(np.maximum(p, 1 - p) ** 2 * square + (p * (1 - p) * square) ** 2)
            lengths = np.minimum(1.0, declared / bound) * np.linalg.norm(vectors, axis=1)
            longest, shortened = max(longest, lengths.max()), shortened + np.sum(bound > declared)
            assert np.linalg.norm(vectors, axis=1).max() <= bound.max() * (1 + 1e-9)
    assert longest <= declared * (1 + 1e-9) and longest >= 0.9999 * declared
    assert shortened > 1000, "the weights are tested"


ROUNDS = [RESPONSES[name] for name in ("2 labels", "3 labels", "6 labels", "counts up to 1", "counts up to 20")]


def curvature_of(case, p, u):
    """The number w that is reported with each record, from its definition."""
    if isinstance(case.response, Counts):
        return np.exp(u[:, 0]) * p[:, :-1].sum(axis=1) / case.response.upper
    return 0.25 * (1 - np.sum(p**2, axis=1)) / (1 - 1 / p.shape[1])


def weighted_vectors(case, x, u, kappa, largest=np.max, c=1.0):
    """Weighted reports of each record with each outcome, shape (n, n_outcomes, width), and the smallest weight."""
    extended, p, codes = np.column_stack([np.full(len(x), kappa), x]), case.probabilities(u), case.response.codes(
        case.outcomes)
    residuals, w = codes[None] - (p @ codes)[:, None], c * curvature_of(case, p, u)
    scores = (residuals[:, :, :, None] * extended[:, None, None, :]).reshape(len(x), len(codes), -1)
    curvatures = np.repeat((w[:, None] * svec(extended))[:, None], len(codes), axis=1)
    square = np.sum(extended**2, axis=1)
    bound = np.sqrt(largest(np.sum(residuals**2, axis=2), axis=1) * square + (w * square) ** 2)
    weight = np.minimum(1.0, score_radius(kappa, case.response.radius, c) / np.maximum(bound, 1e-300))
    return weight[:, None, None] * np.concatenate([scores, curvatures], axis=2), weight.min()


def hostile_rounds(case, kappa, d=2, n=60):
    """Records, with their negatives, and predictors of random models, up to certain ones, in maps out of the ball."""
    rng, q = np.random.default_rng(0), case.response.n_lines
    for size in np.repeat([0.0, 1.0, 5.0, 30.0], 8):
        x = rng.normal(size=(n, d))
        x *= rng.choice([0.2, 1.0], size=(n, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
        x = np.concatenate([x, -x]) @ (rng.choice([0.5, 3.0, 300.0]) * rng.normal(size=(d, d)))
        u = size * rng.normal(size=q) + rng.choice([0.0, 1.0]) * x @ rng.normal(size=(d, q))
        yield x, np.clip(u, -30, 30)


@pytest.mark.parametrize("kappa, c", [(0.0, 1.0), (0.3, 1.0), (1.0, 1.0), (0.0, 0.0), (0.3, 0.0), (0.3, 0.5)])
@pytest.mark.parametrize("case", ROUNDS, ids=lambda case: f"{type(case.response).__name__}{len(case.outcomes)}")
def test_weighted_reports_of_any_response_are_within_their_radius_and_attain_it(case, kappa, c):
    declared, longest, farthest, least = score_radius(kappa, case.response.radius, c), 0.0, 0.0, 1.0
    for x, u in hostile_rounds(case, kappa):
        vectors, weight = weighted_vectors(case, x, u, kappa, c=c)
        longest, least = max(longest, np.linalg.norm(vectors, axis=2).max()), min(least, weight)
        ends = vectors.reshape(-1, vectors.shape[2])
        ends = ends[np.argsort(np.linalg.norm(ends, axis=1))[-80:]]
        farthest = max(farthest, np.linalg.norm(ends[:, None] - ends[None], axis=2).max())
    assert 0.9999 * declared <= longest <= declared * (1 + 1e-9)
    assert 0.99 * 2 * declared <= farthest <= 2 * declared * (1 + 1e-9)
    assert least < 0.5, "the weights are tested"


@pytest.mark.parametrize("faulty", [np.min, np.mean], ids=["smallest residual", "mean residual"])
@pytest.mark.parametrize("case", ROUNDS, ids=lambda case: f"{type(case.response).__name__}{len(case.outcomes)}")
def test_weights_from_other_residuals_are_too_large(case, faulty):
    longest = max(np.linalg.norm(weighted_vectors(case, x, u, 0.3, faulty)[0], axis=2).max()
                  for x, u in hostile_rounds(case, 0.3))
    assert longest > 1.05 * score_radius(0.3, case.response.radius)


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_classes", range(2, 7))
def test_no_record_in_the_ball_is_shortened_at_equal_probabilities(n_classes, kappa):
    case, rng = RESPONSES[f"{n_classes} labels"], np.random.default_rng(0)
    x = rng.normal(size=(200, 3))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    vectors, least = weighted_vectors(case, x, np.zeros((200, n_classes - 1)), kappa)
    assert least == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=2), score_radius(kappa, case.response.radius), rtol=1e-12)


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0])
def test_the_radius_is_attained_at_the_edge_by_the_model_of_equal_probabilities(kappa):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(4000, 3))
    x *= rng.uniform(size=(4000, 1)) / np.linalg.norm(x, axis=1, keepdims=True)
    x[:100] /= np.linalg.norm(x[:100], axis=1, keepdims=True)
    lengths = np.linalg.norm(score_and_curvature(x, rng.integers(2, size=4000), np.zeros(4), kappa)[0], axis=1)
    np.testing.assert_allclose(lengths[:100], score_radius(kappa), rtol=1e-12)
    assert lengths.max() <= score_radius(kappa) * (1 + 1e-12), "no record in the ball is shortened"


def test_values_and_vectors():
    assert interval_sensitivity((-2, 3)) == 5
    assert ball_sensitivity(1.5) == 3
    found = brute_force(lambda x, y: between(x), 1.5, 1.0)
    assert found == pytest.approx(ball_sensitivity(1.5), rel=1e-6)


@pytest.mark.parametrize("call", [
    lambda: moment_sensitivity(0, 1),
    lambda: moment_sensitivity(1, None),
    lambda: moment_sensitivity(1, 1, intercept_weight=-1),
    lambda: moment_radius(1, 1, 0),
    lambda: score_radius(-0.1),
    lambda: score_radius(float("inf")),
    lambda: score_radius(0.3, 0.0),
    lambda: score_radius(0.3, float("nan")),
    lambda: interval_sensitivity((1, 1)),
    lambda: ball_sensitivity(float("inf")),
])
def test_bad_parameters_raise(call):
    with pytest.raises(ValueError, match="must"):
        call()
