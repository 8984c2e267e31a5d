"""Noisy records: exact sums of products, and decoding. Other tests are in test_moment_protocol.py."""

import math

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.protocols import RecordProtocol
from skldp.protocols._record_protocol import _products


def exact_products(rows):
    """Sum of (1, z)(1, z)' in Python's integers."""
    rows = [[1, *map(int, row)] for row in rows]
    return [[sum(row[i] * row[j] for row in rows) for j in range(len(rows[0]))] for i in range(len(rows[0]))]


@pytest.mark.parametrize("epsilon, delta", [(0.002, 1e-12), (1.0, 1e-5), (20.0, 1e-5), (math.inf, 1e-5)])
def test_products_are_exact_at_the_largest_reports(epsilon, delta):
    """More rows than one block, all at or near the clamps and of either sign."""
    protocol = RecordProtocol(n_features=2, epsilon=epsilon, delta=delta)
    top, rng = protocol.randomizer.clamp[1], np.random.default_rng(0)
    reports = rng.choice([-top, top, top - 1, 1 - top, 0, 1, -1], size=(9000, 3)).astype(np.int64)
    reports[:5000] = top
    tally = protocol.aggregate(reports).parts[protocol]
    assert tally.sums.tolist() == exact_products(reports)
    assert tally.n_reports == tally.sums[0, 0] == 9000


def test_products_of_words_that_use_every_bit():
    """4096 rows of the largest 40-bit numbers, for which the sums of products of words reach 2**52."""
    for value in (2**39 - 1, -(2**39), 2**20 - 1, -(2**20), 2**39 - 2**20):
        reports = np.full((4096, 2), value, dtype=np.int64)
        reports[::2, 1] = 2**20 - 1
        assert _products(reports).tolist() == exact_products(reports)


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint16, np.uint64])
def test_products_of_reports_in_any_integer_dtype(dtype):
    protocol, rng = RecordProtocol(n_features=1), np.random.default_rng(0)
    low, high = (-100, 100) if np.issubdtype(dtype, np.signedinteger) else (0, 200)
    reports = rng.integers(low, high, size=(50, 2)).astype(dtype)
    assert protocol.aggregate(reports).parts[protocol].sums.tolist() == exact_products(reports)


def test_mean_products_are_those_of_the_decoded_reports():
    protocol = RecordProtocol(n_features=3, epsilon=2.0)
    reports = protocol.privatize(np.full((700, 3), 0.2), np.full(700, 0.5))
    rows = np.column_stack([np.ones(700), protocol.randomizer.decode(reports)])
    found = protocol.mean_products(protocol.aggregate(reports).parts[protocol])
    np.testing.assert_allclose(found, rows.T @ rows / 700, rtol=1e-12)


@pytest.mark.parametrize("y_weight", [0.3, math.sqrt(0.5), 2.0])
@pytest.mark.parametrize("centred", [True, False])
def test_the_report_is_the_record_with_isotropic_noise(y_weight, centred):
    protocol = RecordProtocol(n_features=2, epsilon=5.0, data_norm=2.0, bounds_y=(0, 10), y_weight=y_weight,
                              centred=centred)
    n = 50_000
    z = protocol.randomizer.decode(protocol._randomize(np.full((n, 2), 0.5), np.full(n, 8.0), 0))
    expected = np.array([0.25, 0.25, y_weight * (0.6 if centred else 0.8)])
    noise = protocol.randomizer.noise_variance
    assert np.abs(z.mean(axis=0) - expected).max() < 4.5 * math.sqrt(noise / n)
    np.testing.assert_allclose(np.cov(z.T), noise * np.eye(3), atol=5 * noise * math.sqrt(2 / n))


@pytest.mark.parametrize("y_weight", [0.3, math.sqrt(0.5), 2.0])
def test_no_two_records_differ_by_more_than_the_sensitivity(y_weight):
    """In integers, for hostile records; records with opposite x and response attain the bound."""
    protocol = RecordProtocol(n_features=3, epsilon=math.inf, y_weight=y_weight)
    rng = np.random.default_rng(0)
    hostile = [np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, 1.0, -1.0, 0.4]
    X, y = rng.choice(hostile, size=(300, 3)), rng.choice(hostile, size=300)
    X[:2], y[:2] = [[1, 0, 0], [-1, 0, 0]], [1, -1]
    codes = protocol.privatize(X, y).astype(np.int64)
    square = (np.square(codes[:, None] - codes[None])).sum(axis=2)
    assert (np.vecdot(codes, codes) <= 2**32).all()
    assert 0.999 * 2**17 <= math.sqrt(square.max()) <= 2**17
    # x is clipped separately, so that a small response does not allow a longer x.
    step = protocol.randomizer.norm / 2**16
    assert (np.linalg.norm(codes[:, :3] * step, axis=1) <= 1 + 3 * step).all()
    assert np.abs(codes[:, 3] * step).max() <= y_weight + step


@pytest.mark.parametrize("options", [{"epsilon": 0}, {"delta": 0}, {"y_weight": 0}, {"n_features": 0},
                                     {"data_norm": -1}, {"bounds_y": (2, 1)}, {"bounds_y": None}])
def test_bad_parameters(options):
    with pytest.raises(InvalidParameterError):
        RecordProtocol(**options)
