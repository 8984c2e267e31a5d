"""LDPHistogram of several attributes."""

import numpy as np
import pandas as pd
import pytest

from skldp import LDPHistogram
from skldp.exceptions import InvalidParameterError
from skldp.models.categories._attribute_marginals import pooled_marginals
from skldp.models.categories._joint import JointModel
from skldp.protocols import PairProtocol, Protocol
from skldp.sampling import sample

LISTS = [["cat", "dog", "fish", "none"], ["no", "yes"], [1, 2, 3]]
TRUTH = np.random.default_rng(3).dirichlet(np.full(24, 0.7)).reshape(4, 2, 3)


def records(n, seed=0, truth=TRUTH):
    codes = np.unravel_index(np.random.default_rng(seed).choice(truth.size, p=truth.ravel(), size=n), truth.shape)
    return np.stack([np.array(part, dtype=object)[code] for part, code in zip(LISTS, codes)], axis=1)


def fitted(n=30_000, epsilon=3.0, X=None, seed=0):
    X = records(n, seed) if X is None else X
    return LDPHistogram(epsilon=epsilon, categories=LISTS, random_state=seed).fit(X)


def test_tables_marginals_and_predictions_are_of_one_joint_table():
    model = fitted()
    assert [one.shape for one in model.frequencies_] == [(4,), (2,), (3,)]
    for a in range(3):
        for b in {0, 1, 2} - {a}:
            table = model.table(a, b)
            np.testing.assert_allclose(table.sum(axis=1), model.frequencies_[a], atol=1e-12)
            np.testing.assert_allclose(table.sum(axis=0), model.frequencies_[b], atol=1e-12)
            np.testing.assert_allclose(model.table(b, a), table.T)
            expected = TRUTH.sum(axis=({0, 1, 2} - {a, b}).pop())
            assert np.abs(table - (expected if a < b else expected.T)).max() < 0.05
    every = np.array([[pet, owner, size] for pet in LISTS[0] for owner in LISTS[1] for size in LISTS[2]], dtype=object)
    joint = model.predict(every)
    assert joint.sum() == pytest.approx(1)
    np.testing.assert_allclose(joint.reshape(4, 2, 3).sum(axis=2), model.table(0, 1), atol=1e-12)
    assert model.predict(np.array([["unicorn", "no", 1], ["cat", "no", 4]], dtype=object)).tolist() == [0.0, 0.0]
    assert [one.tolist() for one in model.categories_] == LISTS
    for one, truth in zip(model.point_estimate_, ((1, 2), (0, 2), (0, 1))):
        assert np.abs(one - TRUTH.sum(axis=truth)).max() < 0.06


def test_intervals_names_and_errors():
    frame = pd.DataFrame(records(5000), columns=["pet", "owner", "size"])
    model = fitted(X=frame)
    mean, low, high = model.table("pet", "size", level=0.9)
    assert mean.shape == low.shape == high.shape == (4, 3) and (low <= mean).all() and (mean <= high).all()
    np.testing.assert_array_equal(mean, model.table(0, 2))
    for wrong in ((0, 0), (0, 3), (0, "none")):
        with pytest.raises(InvalidParameterError):
            model.table(*wrong)
    with pytest.raises(InvalidParameterError, match="one attribute"):
        LDPHistogram(categories=[0, 1], inference="laplace").fit([[0], [1]] * 50).table(0, 1)
    with pytest.raises(InvalidParameterError, match="3 lists for 2 columns"):
        LDPHistogram(categories=LISTS).fit(records(100)[:, :2])
    with pytest.raises(InvalidParameterError, match="cells"):
        LDPHistogram(categories=[list(range(100))] * 3).fit(np.zeros((10, 3)))


def test_association_of_dependent_and_independent_attributes():
    truth, covered = np.log(2) + 0.2 * np.log(0.2) + 0.8 * np.log(0.8), []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        first, third = rng.integers(4, size=60_000), rng.integers(3, size=60_000)
        second = ((first < 2) ^ (rng.uniform(size=60_000) < 0.2)).astype(int)
        X = np.stack([np.array(part, dtype=object)[code] for part, code in zip(LISTS, (first, second, third))], axis=1)
        model = fitted(X=X, epsilon=4.0, seed=seed)
        strong, none = model.association(0, 1), model.association(1, 2)
        information, v = strong["mutual_information"], strong["cramers_v"]
        covered += [information[1] < truth < information[2], v[1] < 0.6 < v[2]]
        assert information[0] == pytest.approx(truth, abs=0.02)
        assert none["cramers_v"][2] < 0.1 and none["mutual_information"][2] < 0.01
    assert np.mean(covered) >= 0.75


def test_samples_follow_the_joint_frequencies():
    model = fitted()
    drawn = model.sample(20_000, random_state=0)
    assert drawn.shape == (20_000, 3)
    share = np.mean((drawn[:, 0] == "dog") & (drawn[:, 1] == "yes"))
    assert share == pytest.approx(model.table(0, 1)[1, 1], abs=0.015)
    single = LDPHistogram(categories=["a", "b"], inference="laplace", random_state=0).fit([["a"], ["b"]] * 100)
    assert single.sample(5, random_state=0).shape == (5, 1)


def test_reports_are_pairs_of_integers_and_fit_equals_fit_reports():
    X = records(4000)
    model = LDPHistogram(epsilon=2.0, categories=LISTS, random_state=0)
    reports = model.privatize(X)
    assert reports.shape == (4000, 2) and isinstance(model.protocol(3), PairProtocol)
    assert Protocol.from_json(model.protocol(3).to_json()) == model.protocol(3)
    one, other = model.fit(X).table(0, 1), model.fit_reports(reports).table(0, 1)
    np.testing.assert_allclose(one, other)
    np.testing.assert_allclose(model.fit_reports(model.aggregate(reports)).table(0, 1), one)
    assert model.check_reports(reports).p_value > 1e-3
    forged = reports.copy()
    forged[:800] = [0, 3]
    with pytest.warns(UserWarning, match="No records make these reports probable"):
        assert model.check_reports(forged).p_value < 1e-4
    high = LDPHistogram(epsilon=4.0, categories=LISTS, random_state=1)
    both = model.aggregate(reports) + high.aggregate(high.privatize(X))
    assert model.fit_reports(both).n_reports_ == 8000


def test_tables_are_chosen_with_their_shares_and_cost_no_budget():
    protocol = PairProtocol(categories=LISTS, epsilon=1.0)
    reports = protocol._randomize(records(30_000), None, 0)
    shares = np.array(protocol.shares) / sum(protocol.shares)
    assert np.abs(np.bincount(reports[:, 0], minlength=6) / 30_000 - shares).max() < 0.015
    x = [np.tile(np.array([row], dtype=object), (60_000, 1)) for row in (["cat", "no", 1], ["none", "yes", 3])]
    one, other = (np.bincount(protocol.starts[r[:, 0].astype(int)] + r[:, 1], minlength=protocol.starts[-1])
                  for r in (protocol._randomize(part, None, seed) for seed, part in enumerate(x)))
    # every report of one record has at most e^epsilon times its share among those of the other, up to 5 deviations
    assert (one <= np.e * other + 5 * np.sqrt(one + np.e**2 * other + 1)).all()


def test_without_noise_the_joint_table_is_that_of_the_records():
    X = records(20_000)[:, :2]
    model = LDPHistogram(epsilon=np.inf, categories=LISTS[:2], random_state=0).fit(X)
    expected = np.array([[np.mean((X[:, 0] == pet) & (X[:, 1] == owner)) for owner in LISTS[1]] for pet in LISTS[0]])
    np.testing.assert_allclose(model.table(0, 1), expected, atol=0.002)
    std = np.sqrt(expected * (1 - expected) / 20_000)
    draws = model._pair_draws(0, 1)
    np.testing.assert_allclose(draws.std(axis=0), std, rtol=0.25)


def test_factors_are_the_gradient_of_the_log_likelihood():
    protocol = PairProtocol(categories=LISTS, epsilon=1.0)
    model = JointModel(protocol.aggregate(protocol._randomize(records(500), None, 0)))
    table = np.random.default_rng(0).dirichlet(np.ones(24), size=2).reshape(2, 4, 2, 3)
    counts = np.tile(model._counts, (2, 1))
    total = counts.sum(axis=1)
    added = np.random.default_rng(1).uniform(size=table.shape)
    value, factors = model._evaluate(counts, added, table, total)
    # A direct sum over the probabilities of single reports given each record.
    brute, gradient = 0.0, np.zeros((4, 2, 3))
    places = np.stack(np.unravel_index(np.arange(24), (4, 2, 3)), axis=1)
    for pair, mechanism in enumerate(protocol.randomizer[:3]):
        own = counts[0, protocol.starts[pair]:protocol.starts[pair + 1]]
        codes = protocol.cells(places, pair)
        cells = np.arange(mechanism.n_counts)
        given = np.exp([mechanism.log_prob(cells, np.full(len(cells), code)) for code in codes])
        probability = table[0].ravel() @ given
        brute += own @ np.log(probability)
        gradient += (given @ (own / probability)).reshape(4, 2, 3)
    np.testing.assert_allclose(factors[0], gradient / total[0], rtol=1e-9)
    assert value[0] == pytest.approx(brute + (added[0] * np.log(table[0])).sum())


def test_the_maximum_is_a_stationary_point():
    """The factor of a cell plus h / (N theta) is a sum of one term for each attribute, whose frequencies are given."""
    protocol = PairProtocol(categories=LISTS, epsilon=2.0)
    model = JointModel(protocol.aggregate(protocol._randomize(records(3000), None, 0)))
    counts, added = model._counts[None], 1 + np.random.default_rng(0).exponential(size=(1, 4, 2, 3))
    truth = TRUTH[None] + 0.01
    marginals = [truth.sum(axis=others, keepdims=True) / truth.sum() for others in ((2, 3), (1, 3), (1, 2))]
    found = model._maximise(counts, added, marginals, 5000)
    for others, marginal in zip(((2, 3), (1, 3), (1, 2)), marginals):
        np.testing.assert_allclose(found.sum(axis=others, keepdims=True), marginal, rtol=1e-9)
    _, factors = model._evaluate(counts, added, found, counts.sum(axis=1))
    slopes = (factors + added / found / counts.sum())[0]
    interactions = slopes - sum(slopes.mean(axis=others, keepdims=True) for others in ((1, 2), (0, 2), (0, 1)))
    np.testing.assert_allclose(interactions, interactions.mean(), atol=0.02)


def test_pooled_frequencies_are_unbiased_with_the_variance_of_their_model():
    """By simulation under frequencies that are far from equal."""
    truth = np.einsum("i,j,k->ijk", [0.7, 0.2, 0.08, 0.02], [0.95, 0.05], [0.8, 0.15, 0.05])
    for epsilon in (1.0, 5.0):
        protocol = PairProtocol(categories=LISTS, epsilon=epsilon)
        found = []
        for seed in range(300):
            reports = protocol._randomize(records(3000, seed, truth), None, seed)
            found.append(pooled_marginals(protocol.aggregate(reports)))
        for axis, others in enumerate(((1, 2), (0, 2), (0, 1))):
            frequencies, size = truth.sum(axis=others), LISTS[axis]
            errors = np.array([run[axis][0] for run in found]) - frequencies
            variance, slope = (np.mean([run[axis][part] for run in found]) for part in (1, 2))
            assert np.abs(errors.mean(axis=0)).max() < 4 * np.sqrt(variance / 300)
            # Given their sum, independent errors with these variances have the variance of the estimate.
            own = variance + slope * (frequencies - 1 / len(size))
            expected = own - own**2 / own.sum()
            assert np.square(errors).sum(axis=1).mean() == pytest.approx(expected.sum(), rel=0.2)
            np.testing.assert_allclose(errors.var(axis=0), expected, rtol=0.4)


def test_one_attribute_may_have_one_category_and_reports_may_be_missing():
    lists = [["only"], ["a", "b", "c"], [0, 1]]
    X = np.array([["only", "b", 1], ["only", "a", 0]] * 500, dtype=object)
    model = LDPHistogram(epsilon=4.0, categories=lists, random_state=0).fit(X)
    assert model.frequencies_[0] == pytest.approx(np.ones(1)) and model.table(0, 1).shape == (1, 3)
    assert model.frequencies_[1] == pytest.approx([0.5, 0.5, 0.0], abs=0.15)
    protocol = PairProtocol(categories=LISTS, epsilon=1.0)
    draws = sample(JointModel(protocol.aggregate(np.zeros((0, 2), dtype=int))), seed=0).draws["frequencies"]
    np.testing.assert_allclose(draws.sum(axis=-1), 1)
    assert np.abs(draws.reshape(-1, 4, 6).sum(axis=2).mean(axis=0) - 0.25).max() < 0.08


@pytest.mark.parametrize("shares", [(0, 0, 0, 1, 1, 1), (1, 2, 1, 0, 0, 0)])
def test_aggregates_under_other_shares_are_read(shares):
    """Without reports on pairs the prior alone decides on associations."""
    protocol = PairProtocol(categories=LISTS, epsilon=3.0, shares=shares)
    aggregate = protocol.aggregate(protocol._randomize(records(30_000), None, 0))
    model = LDPHistogram(epsilon=3.0, categories=LISTS, random_state=0).fit_reports(aggregate)
    assert model.protocol_.shares == shares
    for one, others in zip(model.frequencies_, ((1, 2), (0, 2), (0, 1))):
        np.testing.assert_allclose(one, TRUTH.sum(axis=others), atol=0.04)
    _, low, high = model.association(0, 1)["mutual_information"]
    assert (high - low > 0.2) == (shares[0] == 0)


def test_a_given_concentration_is_the_prior_of_the_frequencies_of_each_attribute():
    X = records(300)
    stds = [LDPHistogram(epsilon=0.5, categories=LISTS, random_state=0, concentration=one).fit(X).frequencies_std_[0]
            for one in (0.5, 200.0)]
    np.testing.assert_allclose(stds[1], np.sqrt(0.25 * 0.75 / 801), rtol=0.2)
    assert (stds[0] > 3 * stds[1]).all()


def test_coverage_of_pair_tables_and_frequencies():
    tables, frequencies = [], []
    protocol = PairProtocol(categories=LISTS, epsilon=2.0)
    for seed in range(12):
        aggregate = protocol.aggregate(protocol._randomize(records(10_000, seed), None, seed))
        draws = sample(JointModel(aggregate), seed=seed).draws["frequencies"].reshape(-1, 4, 2, 3)
        for inside, axes in ((tables, (1, 2, 3)), (frequencies, ((1, 2), (1, 3), (2, 3)))):
            for axis in axes:
                low, high = np.quantile(draws.sum(axis=axis), [0.05, 0.95], axis=0)
                truth = TRUTH[None].sum(axis=axis)[0]
                inside.append(np.mean((low <= truth) & (truth <= high)))
    assert 0.85 <= np.mean(tables) <= 0.97 and 0.85 <= np.mean(frequencies) <= 0.97
