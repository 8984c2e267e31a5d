"""Moments of some features of each client: the coin, the guarantee, unbiasedness and the covariance of means."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import chi2

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms import AxisMoments, SampledMoments
from skldp.mechanisms._feature_subsets import FeatureSubsets
from skldp.mechanisms._sampled_moments import UNFILLED
from skldp.privacy import audit_epsilon, subset_radius
from tests.mechanisms.registry import LAYOUTS, moments, repeat

RECORD = np.array([0.3, -0.25, 0.1, 0.35, 0.2])
LAYOUT_IDS = [str(layout) for layout in LAYOUTS]


def mechanism_of(epsilon=4.0, n_features=4, features_per_client=2, **layout):
    return SampledMoments(epsilon=epsilon, n_features=n_features, features_per_client=features_per_client, **layout)


def subsets_of(reports, mechanism):
    """Return the features of each report as bits of a number."""
    start = mechanism.subsets.first
    return (reports[:, start:start + mechanism.n_features] != UNFILLED) @ 2 ** np.arange(mechanism.n_features)


@pytest.mark.parametrize("n_features, s", [(4, 2), (5, 3), (3, 7), (1, 2)])
@pytest.mark.parametrize("record", [0.0, 1.0])
def test_the_coin_is_uniform_over_subsets_and_does_not_depend_on_the_record(n_features, s, record):
    mechanism, n = mechanism_of(n_features=n_features, features_per_client=s), 20_000
    reports = mechanism.randomize(np.full((n, n_features + 1), record), rng=0)
    found = np.bincount(subsets_of(reports, mechanism), minlength=2**n_features)
    size = min(s, n_features)
    possible = [sum(2**j for j in subset) for subset in itertools.combinations(range(n_features), size)]
    assert found[possible].sum() == n
    expected = n / len(possible)
    statistic = ((found[possible] - expected) ** 2 / expected).sum()
    assert len(possible) == 1 or statistic < chi2.isf(1e-6, len(possible) - 1)


def test_probabilities_of_features_by_counting_subsets():
    d, s = 6, 4
    subsets = FeatureSubsets(d, s, 1, d + 2)
    every = list(itertools.combinations(range(d), s))
    for m in range(5):
        share = np.mean([set(range(m)) <= set(subset) for subset in every])
        assert subsets.probabilities[m] == pytest.approx(share)
    rows, columns = np.triu_indices(d + 2)
    masks = np.ones((len(every), d + 2), dtype=bool)
    masks[:, 1:-1] = [[j in subset for j in range(d)] for subset in every]
    filled = (masks[:, rows] & masks[:, columns]).astype(float)
    shares = filled.T @ filled / len(every)
    np.testing.assert_allclose(subsets.pair_probabilities[rows, columns], np.diag(shares))
    np.testing.assert_allclose(subsets.overlap(rows, columns),
                               shares / np.sqrt(np.outer(np.diag(shares), np.diag(shares))), atol=1e-12)


@pytest.mark.parametrize("layout", LAYOUTS, ids=LAYOUT_IDS)
def test_every_subset_has_the_whole_budget_and_no_more(layout):
    """The largest ratio of two records' probabilities, over the reports of each subset."""
    mechanism = mechanism_of(epsilon=1.0, **layout)
    rng = np.random.default_rng(0)
    records = np.vstack([rng.uniform(-1, 1, size=(20, 5)), np.full((2, 5), [[2.0], [-2.0]])])
    reports = np.concatenate([mechanism.randomize(repeat(record, 300), rng=0) for record in records])
    log_prob = np.array([mechanism.log_prob(reports, repeat(record, len(reports))) for record in records])
    gap = log_prob.max(axis=0) - log_prob.min(axis=0)
    subsets = subsets_of(reports, mechanism)
    for subset in np.unique(subsets):
        assert 0.98 * mechanism.epsilon <= gap[subsets == subset].max() <= mechanism.epsilon + 1e-12


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("d, s", [(3, 2), (20, 4), (1000, 8)])
def test_audits_find_no_more_than_epsilon(epsilon, d, s):
    if mechanism_of(epsilon, d, s).part.width > 900 and epsilon < 1:
        pytest.skip("rounding errors would use up the budget")
    records = np.full((2, d + 1), 1 / math.sqrt(d))
    records[1, d // 2:] *= -1
    result = audit_epsilon(mechanism_of(epsilon, d, s), *records, n_reports=20_000 if d > 100 else 100_000)
    assert result.epsilon_lower <= epsilon


@pytest.mark.parametrize("layout", LAYOUTS, ids=LAYOUT_IDS)
@pytest.mark.parametrize("epsilon", [1.0, 8.0, np.inf])
def test_decoded_reports_are_unbiased(layout, epsilon):
    mechanism, n = mechanism_of(epsilon, **layout), 100_000
    decoded = mechanism.decode(mechanism.randomize(repeat(RECORD, n), rng=1))
    truth = mechanism.svec(moments(mechanism, RECORD[None]))[0]
    error = decoded.std(axis=0) / math.sqrt(n) + 3 / 2**11  # rounding of the record and of the report
    assert (np.abs(decoded.mean(axis=0) - truth) < 5 * error).all()


def test_all_features_are_the_axis_of_the_whole_record():
    full, sampled = AxisMoments(epsilon=3.0, n_features=4), mechanism_of(3.0, 4, 4)
    assert sampled.part == full
    reports = full.randomize(repeat(RECORD, 50), rng=0)
    np.testing.assert_allclose(sampled.decode(reports), full.decode(reports))
    records = np.random.default_rng(0).uniform(-1, 1, size=(50, 5))
    expected = full.log_prob(reports, records)
    assert np.mean(np.abs(sampled.log_prob(reports, records) - expected) < 1e-12) > 0.95, "but for rounding at the edge"


def test_only_long_subsets_are_shortened():
    """A record in the box of the bounds is sent as it is; a longer subset has the radius of the others."""
    mechanism = mechanism_of(np.inf, 4, 2)
    inside = np.array([[0.5, -0.5, 0.5, 0.5, 0.2]])
    found = mechanism.decode(mechanism.randomize(np.repeat(inside, 200, axis=0), rng=0))
    square = found[:, :4] * mechanism.subsets.probabilities[1]
    assert np.allclose(square[square != 0], 0.25, atol=3 / 2**11)
    found = mechanism.decode(mechanism.randomize(np.repeat(10 * inside, 200, axis=0), rng=0))
    assert found[:, :4].sum(axis=1) * mechanism.subsets.probabilities[1] == pytest.approx(0.5, abs=3 / 2**10)


@pytest.mark.parametrize("norm, d, s", [(1.0, 4, 2), (2.5, 5, 3), (1.0, 3, 3), (0.3, 6, 1)])
def test_subset_radius_by_brute_force(norm, d, s):
    corners = np.array(list(itertools.product([-1.0, 1.0], repeat=d))) * norm / math.sqrt(d)
    box = np.vstack([corners, np.random.default_rng(0).uniform(-1, 1, size=(500, d)) * norm / math.sqrt(d)])
    found = max(np.linalg.norm(box[:, subset], axis=1).max() for subset in itertools.combinations(range(d), s))
    assert subset_radius(norm, d, s) == pytest.approx(found, rel=1e-12)


def test_hostile_coins_are_refused():
    mechanism = mechanism_of(labelled=True)
    honest = mechanism.randomize(repeat(RECORD, 1), rng=0)[0].astype(np.int64)
    filled = np.flatnonzero(honest != UNFILLED)
    features = [place for place in filled if 1 <= place <= 4]
    other = next(place for place in range(1, 5) if place not in features)
    hostile = {"one feature": {features[0]: UNFILLED}, "three features": {other: 0},
               "no constant": {0: UNFILLED, other: honest[0]}, "no response": {5: UNFILLED, other: honest[5]},
               "no padding": {6: UNFILLED, other: honest[6]}, "another mark": {other: -(2**15) + 1},
               "too long": {features[0]: 5000}, "far too long": {features[0]: 2**62}}
    for name, changes in hostile.items():
        report = honest.copy()
        report[list(changes)] = list(changes.values())
        assert not mechanism.valid(report[None]).any(), name
        assert np.isneginf(mechanism.log_prob(report[None], RECORD[None])[0]) or "long" in name
    assert mechanism.valid(honest[None]).all()
    assert not mechanism.valid(np.full((1, 7), UNFILLED)).any()


@pytest.mark.parametrize("value", [1, 0, -3, 2.5, "2", None, True])
def test_features_per_client_is_an_integer_of_at_least_two(value):
    with pytest.raises(InvalidParameterError, match="features_per_client"):
        SampledMoments(n_features=4, features_per_client=value)


def gaussian_records(mechanism, theta, mean, n, rng):
    """Return rows (x, y) of the records v = (kappa, x, w y) with given moments."""
    start = mechanism.subsets.first
    covariance = theta - np.outer(mean, mean)
    rows = rng.multivariate_normal(mean[start:], covariance[start:, start:], n)
    rows[:, -1] /= mechanism.y_weight
    return rows


@pytest.mark.parametrize("epsilon", [2.0, 20.0, np.inf])
@pytest.mark.parametrize("intercept_weight", [0.6, 0.0])
def test_covariance_of_means_by_simulation(epsilon, intercept_weight):
    """Over clients with different records, which fill different entries."""
    mechanism = mechanism_of(epsilon, 3, 2, intercept_weight=intercept_weight)
    rng, n, n_groups = np.random.default_rng(0), 200, 4000
    start, order = mechanism.subsets.first, mechanism.order
    factor = rng.normal(scale=0.08, size=(4, 4))
    mean = np.concatenate([[intercept_weight][:start], [0.1, -0.05, 0.0, 0.1] if start else np.zeros(4)])
    theta = np.outer(mean, mean)
    theta[start:, start:] += factor @ factor.T
    reports = mechanism.randomize(gaussian_records(mechanism, theta, mean, n * n_groups, rng), rng=1)
    filled = mechanism.filled(reports)
    entries = np.where(filled, reports, 0).astype(float).reshape(n_groups, n, order + 1)
    own = 1.0 * filled.reshape(n_groups, n, order + 1)
    counts = own.swapaxes(1, 2) @ own
    means = mechanism.decode_means(entries.swapaxes(1, 2) @ entries / counts, counts[:, :-1, :-1])
    scales, place = mechanism.subsets.scales, mechanism.places
    scaled = theta * np.outer(scales, scales)
    errors = ((means - theta) * np.outer(scales, scales) * np.sqrt(counts[:, :-1, :-1]))[:, *place]
    expected = mechanism.noise.correlated(scaled, mean * scales, *place)
    assert np.linalg.eigvalsh(expected)[0] > 0
    deviations = np.sqrt(np.diag(expected))
    products = errors[:, :, None] * errors[:, None, :] / np.outer(deviations, deviations)
    expected = expected / np.outer(deviations, deviations)
    assert np.abs(expected - np.eye(len(expected))).max() > (0.05 if epsilon < 10 else 0.2), "entries are correlated"
    # Rare reports far from the record have heavy tails at a large epsilon. Rounding and the replaced numbers of clients
    # change variances by one per cent at most.
    error = products.std(axis=0) / math.sqrt(n_groups)
    assert (np.abs(products.mean(axis=0) - expected) < 4.5 * error + 0.01).all()


def test_variance_of_a_combination_is_that_of_its_entries():
    """Against the full covariance, less the variance that records have if everybody fills every entry."""
    mechanism, rng = mechanism_of(3.0, 3, 2), np.random.default_rng(1)
    factor = rng.normal(scale=0.2, size=(4, 4))
    theta = np.zeros((5, 5))
    theta[0, 0], theta[1:, 1:] = mechanism.intercept_weight**2, factor @ factor.T
    left, right = rng.normal(size=(2, 5)), rng.normal(size=5)
    right[0] = 0.0
    scales, place = mechanism.subsets.scales, np.triu_indices(5)
    mean = np.array([mechanism.intercept_weight, 0.0, 0.0, 0.0, 0.0])
    entries = mechanism.noise.correlated(theta * np.outer(scales, scales), mean, *place)
    shares = mechanism.subsets.pair_probabilities[place]
    for row, found in zip(left, mechanism.noise.variance(left, right, theta)):
        half = (np.outer(row, right) + np.outer(right, row)) / 2
        weights = half[place] * np.where(place[0] == place[1], 1, 2) / (scales[place[0]] * scales[place[1]])
        weights = weights / np.sqrt(shares)
        across, along, other = row @ theta @ right, row @ theta @ row, right @ theta @ right
        assert found == pytest.approx(weights @ entries @ weights - along * other - across**2, rel=1e-10)


def test_all_features_have_the_variance_of_axes():
    full, sampled = AxisMoments(epsilon=3.0, n_features=3), mechanism_of(3.0, 3, 3)
    theta = np.diag([full.intercept_weight**2, 0.1, 0.2, 0.05, 0.1])
    theta[1, 4] = theta[4, 1] = 0.05
    left, right = np.random.default_rng(0).normal(size=(3, 5)), np.array([0.0, 1.0, -0.5, 0.2, 2.0])
    np.testing.assert_allclose(sampled.noise.variance(left, right, theta), full.noise.variance(left, right, theta))
    np.testing.assert_allclose(sampled.noise.variance(left[:, 1:], right[1:], theta[1:, 1:]),
                               full.noise.variance(left[:, 1:], right[1:], theta[1:, 1:]))
    assert sampled.noise_variance == full.noise_variance
