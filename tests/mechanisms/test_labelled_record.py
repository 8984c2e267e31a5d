"""Tests of noisy records with labels: budgets, probabilities, hostile values, and the privacy of the label."""

import dataclasses
import math
import pickle
import warnings

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms import Gaussian, LabelledRecord, RandomizedResponse
from skldp.privacy import audit_epsilon, gaussian_delta
from tests.mechanisms.registry import repeat

RECORDS = np.array([[1.0, 0.0, 1.0], [-1.0, 0.0, -1.0], [0.6, -0.8, -1.0], [0.0, 0.0, 1.0], [0.3, -0.2, -1.0]])
HOSTILE = np.array([np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0, 1e16, 0.1, 2**53])
MECHANISMS = [LabelledRecord(epsilon=epsilon, n_features=2, budget_split=split)
              for epsilon, split in ((0.3, 0.5), (1.0, 0.2), (4.0, 0.9), (20.0, 0.5))]
everyone = pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 7.3, 20.0])
@pytest.mark.parametrize("split", [0.05, 0.3, 0.5, 0.95])
def test_the_budgets_of_the_parts_add_up(epsilon, split):
    mechanism = LabelledRecord(epsilon=epsilon, delta=1e-6, n_features=3, budget_split=split)
    assert mechanism.vector == Gaussian(epsilon=(1 - split) * epsilon, delta=1e-6, n_features=3)
    assert mechanism.label == RandomizedResponse(epsilon=split * epsilon, n_categories=2)
    assert mechanism.vector.epsilon + mechanism.label.epsilon == pytest.approx(epsilon, rel=1e-15)
    assert mechanism.noise_variance == mechanism.vector.noise_variance > 0
    assert mechanism.contrast == pytest.approx(math.tanh(split * epsilon / 2), rel=1e-9)
    assert mechanism.width == 4


def test_without_noise_the_report_is_the_record():
    plain = LabelledRecord(epsilon=np.inf, n_features=2)
    assert not plain.private and plain.contrast == 1.0 and plain.noise_variance == 0.0
    decoded = plain.decode(plain.randomize(RECORDS))
    np.testing.assert_allclose(decoded, RECORDS, atol=2 / 2**12)
    assert (decoded[:, -1] == RECORDS[:, -1]).all()


@everyone
def test_reports_are_unbiased_vectors_with_independent_noise(mechanism):
    record, n = np.array([0.3, -0.5, 1.0]), 40_000
    decoded = mechanism.decode(mechanism.randomize(repeat(record, n), rng=0))
    deviation = (decoded[:, :2] - record[:2]) / math.sqrt(mechanism.noise_variance)
    assert np.abs(deviation.mean(axis=0)).max() < 4.5 / math.sqrt(n)
    assert np.abs((deviation**2).mean(axis=0) - 1).max() < 5 * math.sqrt(2 / n)
    assert set(np.unique(decoded[:, 2])) <= {-1.0, 1.0}
    spread = math.sqrt(max(1 - mechanism.contrast**2, 1e-9) / n)
    assert abs(decoded[:, 2].mean() - mechanism.contrast) < 4.5 * spread + 1e-12
    together = deviation * (decoded[:, 2:] - mechanism.contrast)
    assert np.abs(together.mean(axis=0)).max() < 5 * spread, "noise of the vector knows nothing of the label's"


@everyone
def test_log_prob_is_the_sum_over_the_parts(mechanism):
    reports = mechanism.randomize(RECORDS, rng=0)
    found = mechanism.log_prob(reports, RECORDS)
    vector = mechanism.vector.log_prob(reports[:, :2], RECORDS[:, :2])
    label = mechanism.label.log_prob(reports[:, 2], (RECORDS[:, 2] > 0).astype(int))
    assert (found == vector + label).all() and np.isfinite(found).all()
    flipped = RECORDS * [1, 1, -1]
    ratio = found - mechanism.log_prob(reports, flipped)
    np.testing.assert_allclose(np.abs(ratio), mechanism.label.epsilon, rtol=1e-9)
    total = sum(np.exp(mechanism.log_prob(np.column_stack([reports[:, :2], np.full(5, code)]), RECORDS))
                for code in (0, 1))
    np.testing.assert_allclose(total, np.exp(vector), rtol=1e-12)


@everyone
def test_hostile_values_are_clipped_without_error_or_warning(mechanism):
    rng = np.random.default_rng(0)
    records = np.vstack([rng.choice(HOSTILE, size=(300, 3)), np.repeat(HOSTILE[:, None], 3, axis=1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reports = mechanism.randomize(records, rng=0)
        log_prob = mechanism.log_prob(reports, records)
    assert mechanism.valid(reports).all() and np.isfinite(log_prob).all()
    codes = mechanism.encode(records)
    assert (np.vecdot(codes[:, :2], codes[:, :2]) <= 2**32).all() and set(codes[:, 2]) == {0, 1}


def test_a_label_is_encoded_by_its_sign_and_nan_as_the_first():
    mechanism = LabelledRecord(n_features=1)
    codes = mechanism.encode([[0.0, -1.0], [0.0, 1.0], [0.0, -1e-300], [0.0, np.inf], [0.0, np.nan]])
    assert codes[:, 1].tolist() == [0, 1, 0, 1, 0]


@everyone
def test_honest_reports_are_small_integers_and_valid(mechanism):
    reports = mechanism.randomize(RECORDS)
    assert reports.dtype == mechanism.report_dtype and reports.dtype.kind == "i" and reports.shape == (5, 3)
    assert mechanism.valid(reports).all()
    assert not mechanism.valid(reports.astype(float)).any(), "floats are never sent"
    assert len(mechanism.randomize(RECORDS[:0])) == 0


@everyone
def test_impossible_reports_are_invalid(mechanism):
    honest = mechanism.randomize(RECORDS[:1], rng=0).astype(np.int64)
    top = int(mechanism.vector.clamp[1])
    for place, value in [(0, 2**40), (0, top + 1), (1, -top - 1), (2, 2), (2, -1), (2, 2**62)]:
        report = honest.copy()
        report[0, place] = value
        assert not mechanism.valid(report).any()
        assert mechanism.log_prob(report, RECORDS[:1])[0] == -np.inf
    limit = np.array([[top, -top, 1]])
    assert mechanism.valid(limit).all()
    assert not mechanism.valid(honest[:, :2]).any() and not mechanism.valid(np.hstack([honest, honest])).any()
    assert not mechanism.valid(np.full((1, 3), 2**64 - 1, dtype=np.uint64)).any()


@everyone
def test_equal_seeds_repeat_and_other_seeds_differ(mechanism):
    many = np.concatenate([RECORDS] * 200)
    once = mechanism.randomize(many, rng=3)
    assert (mechanism.randomize(many, rng=3) == once).all()
    assert (mechanism.randomize(many, rng=4)[:, :2] != once[:, :2]).mean() > 0.9
    assert (mechanism.randomize(many) != mechanism.randomize(many)).any()
    copy = pickle.loads(pickle.dumps(mechanism))
    assert copy == mechanism and hash(copy) == hash(mechanism)
    with pytest.raises(dataclasses.FrozenInstanceError):
        mechanism.epsilon = 2.0


@pytest.mark.parametrize("epsilon, split", [(1.0, 0.5), (4.0, 0.5), (3.0, 0.9)])
def test_the_label_spends_its_share_of_the_budget_and_no_more(epsilon, split):
    mechanism = LabelledRecord(epsilon=epsilon, n_features=2, budget_split=split)
    one, other = np.array([0.1, 0.2, 1.0]), np.array([0.1, 0.2, -1.0])
    result = audit_epsilon(mechanism, one, other, n_reports=250_000)
    assert 0.9 * split * epsilon < result.epsilon_lower <= split * epsilon
    worst = audit_epsilon(mechanism, RECORDS[0], RECORDS[1], n_reports=50_000, delta=1e-5)
    assert worst.epsilon_lower <= epsilon


class WholeBudgetLabel(LabelledRecord):
    """Broken mechanism: the label has the whole budget instead of its share."""

    @property
    def label(self):
        return RandomizedResponse(epsilon=self.epsilon, n_categories=2)


def test_a_label_with_more_than_its_share_is_caught():
    """Control: shows that the test above can fail."""
    mechanism = WholeBudgetLabel(epsilon=2.0, n_features=1)
    result = audit_epsilon(mechanism, np.array([0.0, 1.0]), np.array([0.0, -1.0]), n_reports=100_000)
    assert result.epsilon_lower > 1.0


@pytest.mark.parametrize("split", [0.2, 0.5])
def test_the_vector_satisfies_its_budget_for_the_farthest_records(split):
    mechanism = LabelledRecord(epsilon=2.0, n_features=2, budget_split=split)
    parts = [mechanism.decode(mechanism.randomize(repeat(record, 50_000)))[:, 0] for record in RECORDS[:2]]
    sigma = np.concatenate([part - part.mean() for part in parts]).std()
    separation, epsilon = abs(parts[0].mean() - parts[1].mean()), (1 - split) * 2.0
    # With 50,000 reports 5 standard errors are 0.7 % of sigma, and 0.03 sigma of the separation of the means.
    assert gaussian_delta(epsilon, sigma * 1.007, separation - 0.032 * sigma) <= mechanism.delta
    assert gaussian_delta(epsilon, sigma * 0.993, separation + 0.032 * sigma) >= mechanism.delta


@pytest.mark.parametrize("options, message", [
    ({"budget_split": 0}, "budget_split"), ({"budget_split": 1.0}, "budget_split"), ({"budget_split": None}, "budget"),
    ({"budget_split": np.nan}, "budget_split"), ({"budget_split": True}, "budget_split"),
    ({"epsilon": 0}, "epsilon"), ({"epsilon": 21}, "above 20"), ({"delta": 0}, "delta"), ({"n_features": 0}, "n_feat"),
])
def test_invalid_parameters_raise(options, message):
    with pytest.raises(InvalidParameterError, match=message):
        LabelledRecord(**options)


def test_records_of_another_width_raise():
    with pytest.raises(ValueError, match="3"):
        LabelledRecord(n_features=2).randomize(np.zeros((4, 2)))
