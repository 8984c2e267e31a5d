"""Common contract of the mechanisms, tested for all of them."""

import dataclasses
import pickle
import warnings
from collections import Counter
from functools import partial

import numpy as np
import pytest
from scipy.stats import chi2

from skldp.mechanisms import (
    Axis,
    AxisMoments,
    Gaussian,
    GaussianMoments,
    Laplace,
    SampledMoments,
    Sphere,
    SphereMoments,
)
from skldp.privacy import audit_epsilon, epsilon_between, gaussian_delta, laplace_noise, noise_pmf
from tests.mechanisms.registry import ALL, DIRECTIONS, GAUSSIAN, PURE, enumerable, every_report, moments, repeat

ENUMERABLE = [pair for pair in ALL if enumerable(pair[0])]
HOSTILE = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0, 1e16, 0.1, 2**53])


def name(value):
    return repr(value) if dataclasses.is_dataclass(value) else ""


def hostile_records(mechanism, width):
    if isinstance(mechanism, (Gaussian, GaussianMoments, *DIRECTIONS)):
        rng = np.random.default_rng(0)
        return np.vstack([rng.choice(HOSTILE, size=(300, width)), np.repeat(HOSTILE[:, None], width, axis=1)])
    return HOSTILE


@pytest.mark.parametrize("mechanism, domain", PURE, ids=name)
def test_log_ratio_is_at_most_epsilon(mechanism, domain):
    if enumerable(mechanism):
        reports = every_report(mechanism)
    else:
        reports = np.concatenate([mechanism.randomize(repeat(record, 200), rng=0) for record in domain])
    log_prob = np.array([mechanism.log_prob(reports, repeat(record, len(reports))) for record in domain])
    gap = (log_prob[:, None] - log_prob[None, :]).max()
    assert gap <= mechanism.epsilon + 1e-12
    assert gap >= 0.98 * mechanism.epsilon, "a report that reaches the budget exists"


@pytest.mark.parametrize("mechanism, domain", ENUMERABLE, ids=name)
def test_probabilities_sum_to_one(mechanism, domain):
    reports = every_report(mechanism)
    for record in domain:
        total = np.exp(mechanism.log_prob(reports, repeat(record, len(reports)))).sum()
        assert total == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("mechanism, domain", ENUMERABLE, ids=name)
def test_drawn_reports_follow_log_prob(mechanism, domain):
    reports, n = every_report(mechanism), 20_000
    for record in domain[[0, -1]]:
        drawn = mechanism.randomize(repeat(record, n), rng=1)
        probability = np.exp(mechanism.log_prob(reports, repeat(record, len(reports))))
        found = Counter(map(tuple, drawn.reshape(n, -1).tolist()))
        counts = np.array([found[report] for report in map(tuple, reports.reshape(len(reports), -1).tolist())])
        common = probability * n >= 5
        counts = np.append(counts[common], counts[~common].sum())
        expected = np.append(probability[common], probability[~common].sum()) * n
        used = expected > 0
        statistic = ((counts - expected)[used] ** 2 / expected[used]).sum()
        assert statistic < chi2.isf(1e-6, used.sum() - 1)
        assert counts[~used].sum() == 0


@pytest.mark.parametrize("mechanism, domain", ALL, ids=name)
def test_hostile_values_are_clipped_without_error_or_warning(mechanism, domain):
    records = hostile_records(mechanism, domain.shape[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reports = mechanism.randomize(records, rng=0)
        log_prob = mechanism.log_prob(reports, records)
    assert mechanism.valid(reports).all()
    assert np.isfinite(log_prob).all()


@pytest.mark.parametrize("mechanism, domain", ALL, ids=name)
def test_honest_reports_are_small_integers_and_valid(mechanism, domain):
    reports = mechanism.randomize(domain)
    assert reports.dtype == mechanism.report_dtype
    assert reports.dtype.kind in "iu"
    assert len(reports) == len(domain)
    assert mechanism.valid(reports).all()
    assert not mechanism.valid(reports.astype(float)).any(), "floats are never sent"


@pytest.mark.parametrize("mechanism, domain", ALL, ids=name)
def test_impossible_reports_are_invalid(mechanism, domain):
    report = mechanism.randomize(domain[:2], rng=0).astype(np.int64)
    report[0] = 2**40
    assert mechanism.valid(report).tolist() == [False, True]
    assert mechanism.log_prob(report, domain[:2])[0] == -np.inf or isinstance(mechanism, DIRECTIONS)


@pytest.mark.parametrize("mechanism, domain", ALL, ids=name)
def test_equal_seeds_repeat_and_other_budgets_are_independent(mechanism, domain):
    many = np.concatenate([domain] * 400)
    once = mechanism.randomize(many, rng=3)
    assert (mechanism.randomize(many, rng=3) == once).all()
    other_budget = dataclasses.replace(mechanism, epsilon=mechanism.epsilon * 1.01)
    assert (mechanism.randomize(many, rng=4) != once).any()
    assert (mechanism.randomize(many) != mechanism.randomize(many)).any()
    # If the noise were shared, two nearly equal budgets would give nearly equal reports.
    difference = mechanism.randomize(many, rng=3) != other_budget.randomize(many, rng=3)
    assert difference.mean() > 0.3 * (mechanism.randomize(many, rng=4) != once).mean()


@pytest.mark.parametrize("mechanism, domain", ALL, ids=name)
def test_without_noise_the_report_is_the_record(mechanism, domain):
    plain = dataclasses.replace(mechanism, epsilon=np.inf)
    assert not plain.private
    if isinstance(plain, SampledMoments):
        plain = dataclasses.replace(plain, features_per_client=plain.n_features)  # the subset of a client is random
    reports = plain.randomize(domain)
    assert (reports == plain.randomize(domain)).all()
    assert plain.valid(reports).all()
    if isinstance(plain, (AxisMoments, GaussianMoments, SampledMoments, SphereMoments)):
        step = {AxisMoments: 3 / 2**11, GaussianMoments: 3 / 2**8, SampledMoments: 3 / 2**11,
                SphereMoments: 2 / 2**12}[type(plain)]
        np.testing.assert_allclose(plain.matrix(plain.decode(reports)), moments(plain, domain), atol=step)
        return
    if isinstance(plain, Axis):
        np.testing.assert_allclose(plain.decode(reports), domain[:, :, None] * domain[:, None, :], atol=2 / 2**11)
        return
    expected = domain if reports.shape == domain.shape or isinstance(plain, Sphere) else np.eye(len(domain))
    step = 2 / getattr(mechanism, "n_levels", 2**12)
    np.testing.assert_allclose(plain.decode(reports), expected, atol=step)


@pytest.mark.parametrize("mechanism, domain", ALL, ids=name)
def test_mechanisms_are_immutable_and_comparable(mechanism, domain):
    copy = pickle.loads(pickle.dumps(mechanism))
    assert copy == mechanism and hash(copy) == hash(mechanism)
    assert (copy.randomize(domain, rng=0) == mechanism.randomize(domain, rng=0)).all()
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.epsilon = 2.0


@pytest.mark.parametrize("mechanism, domain", ALL, ids=name)
def test_no_records_give_no_reports(mechanism, domain):
    assert len(mechanism.randomize(domain[:0])) == len(mechanism.randomize(domain[:0], rng=0)) == 0


@pytest.mark.parametrize("n_levels", [1, 2, 3])
def test_a_coarse_grid_keeps_a_large_epsilon(n_levels):
    """Reports at the clamps are farthest in the tail: their exact probabilities must satisfy the budget."""
    mechanism = Laplace(epsilon=20.0, n_levels=n_levels)
    outputs = np.arange(mechanism.clamp[0] + 1, mechanism.clamp[1])
    law = partial(laplace_noise, scale=mechanism.scale)
    assert epsilon_between(noise_pmf(law, outputs), noise_pmf(law, outputs - n_levels)) <= 20.0


@pytest.mark.parametrize("mechanism, domain", PURE, ids=name)
def test_end_to_end_audit_finds_no_more_than_epsilon(mechanism, domain):
    result = audit_epsilon(mechanism, domain[0], domain[-1 if domain.ndim == 1 else 1], n_reports=50_000)
    assert result.epsilon_lower <= mechanism.epsilon


@pytest.mark.parametrize("mechanism, domain", GAUSSIAN, ids=name)
def test_gaussian_mean_separation(mechanism, domain):
    reports = [mechanism.randomize(repeat(record, 50_000))[:, 0].astype(float) for record in domain[:2]]
    sigma = np.concatenate([values - values.mean() for values in reports]).std()
    separation = abs(reports[0].mean() - reports[1].mean())
    # With 50,000 reports 5 standard errors are 0.7 % of sigma, and 0.03 sigma of the separation of the means.
    assert gaussian_delta(mechanism.epsilon, sigma * 1.007, separation - 0.032 * sigma) <= mechanism.delta
    assert gaussian_delta(mechanism.epsilon, sigma * 0.993, separation + 0.032 * sigma) >= mechanism.delta
