"""Likelihoods of frequencies against brute force, Monte Carlo and finite differences."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal

from skldp.exceptions import InvalidParameterError
from skldp.models import SurrogateHistogramModel, histogram_model
from skldp.models.categories._choice import CHOICES, LikelihoodChoice
from skldp.models.categories._likelihoods import (
    CountLikelihood,
    MultinomialLikelihood,
    PairedCountLikelihood,
    RowLikelihood,
)
from skldp.models.categories._model import _normalised
from skldp.models.categories._pair_likelihood import PairLikelihood, containment
from skldp.protocols import CategoryProtocol


def protocol_of(mechanism, d, epsilon=0.7):
    return CategoryProtocol(categories=tuple(range(d)), mechanism=mechanism, epsilon=epsilon)


def aggregate_of(mechanism, d, keep_rows, n=400, epsilon=0.7):
    protocol = protocol_of(mechanism, d, epsilon)
    rng = np.random.default_rng(d)
    records = rng.choice(d, p=rng.dirichlet(np.ones(d)), size=n)
    return protocol.aggregate(protocol._randomize(records, None, 0), keep_rows=keep_rows)


MODELS = [(mechanism, d, keep_rows) for mechanism in ("subset", "oue", "rr") for d in (2, 3, 7, 35)
          for keep_rows in (True, False)] + [("block", d, False) for d in (3, 7, 35, 70)]


@pytest.mark.parametrize("mechanism, d, keep_rows", MODELS)
def test_gradient_matches_finite_differences(mechanism, d, keep_rows):
    model = histogram_model(aggregate_of(mechanism, d, keep_rows), 0.8, "exact" if keep_rows else "counts")
    theta, step = np.random.default_rng(0).normal(size=(4, d)), 1e-5
    # The second derivative of the coordinates jumps at multiples of 1/16, the ends of their cells.
    theta[np.abs(16 * theta - np.rint(16 * theta)) < 32 * step] += 4 * step
    value, gradient = model.gradient(theta)
    np.testing.assert_allclose(value, model.log_density(theta), rtol=1e-12)
    ends = [(model.log_density(theta + step * e), model.log_density(theta - step * e)) for e in np.eye(d)]
    numeric = [(above - below) / (2 * step) for above, below in ends]
    np.testing.assert_allclose(gradient, np.transpose(numeric), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("mechanism", ["oue", "subset", "rr", "block"])
@pytest.mark.parametrize("d", [2, 3, 4, 6])
def test_exact_likelihood_is_the_sum_over_categories_for_every_report(mechanism, d):
    protocol = protocol_of(mechanism, d)
    theta = np.random.default_rng(0).dirichlet(np.ones(d), size=3)
    if not protocol.sends_bits:
        reports = np.arange(protocol.randomizer.n_counts)[:, None]
    else:
        reports = np.array(list(itertools.product([0, 1], repeat=d)), dtype=np.uint8)
        reports = reports[protocol.check(reports)]
    log_prob = np.array([protocol.randomizer.log_prob(reports if protocol.sends_bits else reports[:, 0],
                                                      np.full(len(reports), category)) for category in range(d)])
    brute = np.log(theta @ np.exp(log_prob))
    for row, expected in zip(reports, brute.T):
        model = histogram_model(protocol.aggregate(row[None], keep_rows=True), likelihood="exact")
        found = model.likelihoods[0].log_likelihood(theta)
        np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-10)


def covariance_of(likelihood, theta):
    theta = theta[: likelihood.n_used]
    basis = np.stack([np.ones_like(theta), theta], axis=1)
    return np.diag(likelihood.d0 + likelihood.d1 * theta) + basis @ likelihood.core @ basis.T


@pytest.mark.parametrize("mechanism, d", [("oue", 4), ("oue", 2), ("subset", 5), ("subset", 9)])
def test_moments_of_the_counts_by_simulation(mechanism, d):
    protocol = protocol_of(mechanism, d, epsilon=0.5)
    theta = np.random.default_rng(1).dirichlet(np.ones(d))
    n = 400_000
    records = np.random.default_rng(2).choice(d, p=theta, size=n)
    reports = protocol._randomize(records, None, 0)
    likelihood = CountLikelihood(protocol.randomizer, reports.sum(axis=0, dtype=int), n)
    covariance = covariance_of(likelihood, theta)
    used = likelihood.n_used
    np.testing.assert_allclose(np.cov(reports[:, :used].T.astype(float)), covariance, atol=5 * 0.5 / np.sqrt(n))
    mean = likelihood.q + (likelihood.p - likelihood.q) * theta
    np.testing.assert_allclose(reports.mean(axis=0), mean, atol=5 * 0.5 / np.sqrt(n))


@pytest.mark.parametrize("mechanism, d", [("oue", 4), ("subset", 6)])
def test_counts_likelihood_is_the_normal_density(mechanism, d):
    aggregate = aggregate_of(mechanism, d, False, n=3000, epsilon=0.4)
    protocol, tally = next(iter(aggregate.parts.items()))
    likelihood = CountLikelihood(protocol.randomizer, tally.sums, tally.n_reports)
    theta = np.random.default_rng(0).dirichlet(np.ones(d), size=4)
    found = likelihood.log_likelihood(theta)
    expected = []
    for i in range(4):
        covariance = covariance_of(likelihood, theta[i]) / tally.n_reports
        mean = likelihood.q + (likelihood.p - likelihood.q) * theta[i, : likelihood.n_used]
        expected.append(multivariate_normal(mean, covariance).logpdf(likelihood.mean))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8)


def every_report(mechanism, d, epsilon=0.9):
    """Return all possible rows of bits, and their probabilities given each category."""
    randomizer = protocol_of(mechanism, d, epsilon).randomizer
    rows = np.array(list(itertools.product([0, 1], repeat=d)), dtype=np.uint8)
    given = np.exp([randomizer.log_prob(rows, np.full(len(rows), category)) for category in range(d)])
    return randomizer, rows.astype(float), given


@pytest.mark.parametrize("mechanism, d", [("oue", 2), ("oue", 6), ("subset", 5), ("subset", 7)])
def test_probability_of_sets_in_a_report(mechanism, d):
    randomizer, rows, given = every_report(mechanism, d)
    alpha, beta = containment(randomizer)
    for a in range(1, min(d, 4) + 1):
        for chosen in itertools.combinations(range(d), a):
            inside = np.isin(np.arange(d), chosen)
            expected = given @ rows[:, list(chosen)].all(axis=1)
            np.testing.assert_allclose(alpha[a] + beta[a] * inside, expected, atol=1e-12)


@pytest.mark.parametrize("mechanism, d", [("oue", 2), ("oue", 4), ("oue", 6), ("subset", 6), ("subset", 9)])
def test_pairs_have_the_normal_density_given_the_counts(mechanism, d):
    randomizer, rows, given = every_report(mechanism, d)
    rng = np.random.default_rng(d)
    reference, n = rng.dirichlet(np.ones(d)), 500
    sent = rows[rng.choice(len(rows), p=reference @ given, size=n)]

    def both(z):
        return np.hstack([z, z * (z @ reference)[:, None]])

    likelihood = PairLikelihood(randomizer, sent.T @ sent, n, reference)
    values = both(rows)
    covariance = np.cov(values.T, aweights=reference @ given, ddof=0)
    zz, tz, tt = covariance[:d, :d], covariance[d:, :d], covariance[d:, d:]
    regression = tz @ np.linalg.pinv(zz, rcond=1e-10)
    precision = np.linalg.pinv(tt - regression @ tz.T, rcond=1e-8, hermitian=True) * n
    theta = rng.dirichlet(np.ones(d), size=5)
    error = both(sent).mean(axis=0) - theta @ given @ values
    error = error[:, d:] - error[:, :d] @ regression.T
    expected = -np.einsum("ik,kl,il->i", error, precision, error) / 2
    found, gradient = likelihood.value_and_gradient(theta)
    np.testing.assert_allclose(found - found[0], expected - expected[0], atol=1e-7 * n)
    assert np.ptp(expected) > 100e-7 * n
    step = 1e-6 * np.eye(d)[:, None]
    ends = [likelihood.value_and_gradient(theta + sign * step)[0] for sign in (1, -1)]
    np.testing.assert_allclose(gradient.T, (ends[0] - ends[1]) / 2e-6, rtol=1e-5, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["oue", "subset"])
@pytest.mark.parametrize("weights", [np.ones(12), 1 / np.arange(1, 13)], ids=["equal", "1/k"])
def test_pairs_and_counts_lose_little_information(mechanism, weights):
    # Compares the curvatures at the truth, in the directions that preserve the sum. The loss of counts and pairs must
    # agree with the docstring of PairLikelihood.
    truth, n, d = weights / weights.sum(), 10**6, 12
    protocol = protocol_of(mechanism, d, 1.0)
    records = np.random.default_rng(3).choice(d, p=truth, size=n)
    aggregate = protocol.aggregate(protocol._randomize(records, None, 5), keep_rows=True)
    tangent = np.linalg.svd(np.eye(d) - 1 / d)[0][:, :-1]

    def variances(likelihood):
        step = 1e-4
        gradients = [likelihood.value_and_gradient(truth + sign * step * tangent.T)[1] for sign in (1, -1)]
        hessian = (gradients[0] - gradients[1]) @ tangent / (2 * step)
        return np.diag(tangent @ np.linalg.inv(-hessian) @ tangent.T)

    row_tally = aggregate.parts[protocol]
    exact = variances(RowLikelihood(protocol.randomizer, row_tally))
    paired = variances(PairedCountLikelihood(protocol.randomizer, row_tally.without_rows().pairs, n))
    np.testing.assert_allclose(paired / exact, 1, atol=0.01)
    alone = variances(CountLikelihood(protocol.randomizer, row_tally.sums, n)) / exact
    assert alone.mean() > 1.005 or (mechanism == "subset" and np.ptp(weights) == 0)


def test_choice_of_likelihood():
    def chosen(aggregate, likelihood="auto"):
        return type(histogram_model(aggregate, likelihood=likelihood).likelihoods[0])

    assert chosen(aggregate_of("rr", 5, True)) is MultinomialLikelihood
    assert chosen(aggregate_of("subset", 3, True, epsilon=3.0)) is MultinomialLikelihood
    assert chosen(aggregate_of("oue", 5, True)) is RowLikelihood
    assert chosen(aggregate_of("oue", 5, True), "counts") is PairedCountLikelihood
    assert chosen(aggregate_of("oue", 5, False)) is PairedCountLikelihood
    assert chosen(aggregate_of("oue", 33, False)) is CountLikelihood
    assert chosen(aggregate_of("oue", 33, True), "counts") is CountLikelihood
    assert isinstance(histogram_model(aggregate_of("oue", 5, True)), SurrogateHistogramModel)


def test_expansion_matches_the_likelihood_near_its_reference():
    model = histogram_model(aggregate_of("oue", 5, True), likelihood="exact")
    exact, expanded = model.likelihoods[0], model.surrogates[0]
    value, gradient = exact.value_and_gradient(expanded.reference[None])
    near = expanded.reference + 1e-4 * np.array([[1.0, -1.0, 0.5, -0.5, 0.0]])
    np.testing.assert_allclose(expanded.value_and_gradient(expanded.reference[None])[1], gradient)
    np.testing.assert_allclose(expanded.value_and_gradient(near)[1], exact.value_and_gradient(near)[1], rtol=1e-5)
    np.testing.assert_allclose(expanded.value_and_gradient(near)[0], exact.log_likelihood(near), atol=1e-5)


def test_expansion_is_made_near_the_mode():
    model = histogram_model(aggregate_of("oue", 5, True, n=20_000), likelihood="exact")
    mode = minimize(lambda theta: -model.log_density(theta[None])[0], model.initial()).x
    np.testing.assert_allclose(model.surrogates[0].reference, model.constrain(mode[None])["frequencies"][0], atol=0.02)


def test_rows_merge_and_fall_back_to_counts():
    protocol = protocol_of("oue", 5)
    reports = protocol.privatize(np.arange(5).repeat(100))
    whole = protocol.aggregate(reports, keep_rows=True).parts[protocol]
    halves = protocol.aggregate(reports[:250], keep_rows=True) + protocol.aggregate(reports[250:], keep_rows=True)
    merged = halves.parts[protocol]
    assert (merged.rows == whole.rows).all() and (merged.multiplicity == whole.multiplicity).all()
    assert (merged.sums == reports.sum(axis=0, dtype=int)).all()
    mixed = protocol.aggregate(reports[:250], keep_rows=True) + protocol.aggregate(reports[250:])
    assert (mixed.parts[protocol].sums == merged.sums).all() and not hasattr(mixed.parts[protocol], "rows")


@pytest.mark.parametrize("mechanism", ["oue", "subset"])
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
def test_pair_likelihood_is_concave_and_finite(mechanism, epsilon):
    for d in (1, 2, 3, 32):
        for n in (0, 1, 3, 1000):
            if mechanism == "subset" and d == 1:
                continue
            protocol = protocol_of(mechanism, d, epsilon)
            reports = protocol._randomize(np.arange(n)[:, None] % d, None, 0).reshape(n, d)
            model = histogram_model(protocol.aggregate(reports), likelihood="counts")
            value, gradient = model.gradient(np.random.default_rng(0).normal(size=(4, d)))
            assert np.isfinite(value).all() and np.isfinite(gradient).all()
            pairs = getattr(model.likelihoods[0], "pair_likelihood", None)
            if pairs is not None:
                eigenvalues = np.linalg.eigvalsh(pairs.hessian)
                assert eigenvalues.max() <= 1e-9 * np.abs(eigenvalues).max()


def test_normalised_frequencies_and_their_total():
    frequencies, log_total = _normalised(np.array([[1000.0, 1000.0, -1000.0]]))
    assert frequencies.tolist() == [[0.5, 0.5, 0.0]]
    np.testing.assert_allclose(log_total, [1000 + np.log(2)])


@pytest.mark.parametrize("mechanism, keep_rows, likelihood, expected", [
    ("oue", True, "auto", "exact"), ("oue", True, "exact", "exact"), ("oue", True, "counts", "counts"),
    ("oue", False, "auto", "counts"), ("subset", False, "counts", "counts"), ("rr", False, "counts", "exact"),
    ("rr", False, "exact", "exact"), ("oue", 0, "counts", "counts")])
def test_likelihood_attribute_of_a_model(mechanism, keep_rows, likelihood, expected):
    aggregate = aggregate_of(mechanism, 5, keep_rows, n=50)
    assert histogram_model(aggregate, likelihood=likelihood).likelihood == expected


def test_likelihood_is_counts_if_one_cohort_has_counts():
    total = aggregate_of("oue", 5, True) + aggregate_of("oue", 5, False, epsilon=1.5)
    assert histogram_model(total).likelihood == "counts"


def test_likelihood_of_empty_rows_follows_the_choice():
    protocol = protocol_of("oue", 5)
    aggregate = protocol.aggregate(np.empty((0, 5), dtype=np.uint8), keep_rows=True)
    assert [histogram_model(aggregate, likelihood=name).likelihood for name in CHOICES] == ["exact", "exact", "counts"]


def test_counts_neither_keep_nor_evaluate_rows():
    choice = CHOICES["counts"]
    assert not (choice.keeps(1) or choice.evaluates(1) or choice.needs_rows)


def test_rows_are_kept_and_evaluated_up_to_a_limit():
    choice = LikelihoodChoice(kept_bits=10, evaluated_entries=20)
    assert [choice.keeps(n_bits) for n_bits in (1, 10, 11)] == [True, True, False]
    assert [choice.evaluates(n_entries) for n_entries in (1, 20, 21)] == [True, True, False]


def test_auto_uses_counts_if_rows_are_too_many(monkeypatch):
    monkeypatch.setitem(CHOICES, "auto", LikelihoodChoice(kept_bits=50e6, evaluated_entries=20))
    aggregate = aggregate_of("oue", 5, True)
    assert histogram_model(aggregate).likelihood == "counts"
    assert histogram_model(aggregate, likelihood="exact").likelihood == "exact"


@pytest.mark.parametrize("likelihood", ["rows", None, ["auto"]])
def test_unknown_likelihood_raises_an_error(likelihood):
    with pytest.raises(InvalidParameterError, match='likelihood must be "auto", "exact" or "counts", got'):
        histogram_model(aggregate_of("oue", 5, True), likelihood=likelihood)
