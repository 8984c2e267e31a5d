"""Round protocol: score and curvature against derivatives of the log-likelihood, hostile input, and audits."""

import json
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._encoding import BALL_RADIUS
from skldp.privacy import audit_epsilon, score_radius
from skldp.protocols import Client, Protocol, RoundProtocol

HOSTILE = [math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0, 1.7976931348623157e308]
with_and_without = pytest.mark.parametrize("kappa", [0.4, 0.0])


def random_protocol(seed, d, kappa, size=2.0, **options):
    """Return a protocol with a random model, centre and transform."""
    rng = np.random.default_rng(seed)
    theta, centre = size * rng.normal(size=d + 1), rng.normal(scale=0.2, size=d)
    if not kappa:
        theta[0], centre[:] = 0.0, 0.0
    transform = rng.normal(size=(d, d)) + np.eye(d)
    return RoundProtocol(**{"epsilon": math.inf, "n_features": d, "theta": tuple(theta), "centre": tuple(centre),
                            "transform": tuple(transform.ravel()), "intercept_weight": kappa, **options})


def records(d, n, seed=0):
    """Records in the unit ball with skewed columns."""
    rng = np.random.default_rng(seed)
    x = rng.exponential(0.3, size=(n, d)) - 0.2
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))
    return x, (rng.random(n) < expit(x @ np.linspace(3.0, -2.0, d) - 0.5)).astype(int)


def log_likelihood(x, y, theta):
    """Log-likelihood of each record for x in the coordinates of the model."""
    u = theta[0] + x @ theta[1:]
    return np.where(y == 1, -np.logaddexp(0, -u), -np.logaddexp(0, u))


def weights_of(x, theta, kappa):
    """The weight of each record, from its definition: the length for the less likely label, if it is above rho."""
    p = expit(theta[0] + x @ theta[1:])
    lengths = []
    for residual in (p, 1 - p):
        square = kappa**2 + np.sum(x**2, axis=1)
        lengths.append(np.sqrt(residual**2 * square + (p * (1 - p)) ** 2 * square**2))
    return np.minimum(1.0, score_radius(kappa) / np.max(lengths, axis=0))


def mean_report(protocol, x, y):
    aggregate = protocol.aggregate(protocol.privatize(x, y))
    score, curvature = protocol.mean_report(aggregate.parts[protocol])
    return score[0], curvature  # two labels have one predictor


def moved(protocol, x):
    """Records in the coordinates of the model."""
    return (x / protocol.data_norm - protocol.centre) @ np.reshape(protocol.transform, (protocol.n_features,) * 2).T


@with_and_without
@pytest.mark.parametrize("d", [1, 3])
@pytest.mark.parametrize("size", [0.0, 1.0, 8.0])
def test_score_and_curvature_are_derivatives_of_the_weighted_log_likelihood(size, d, kappa):
    """Derivatives by the intercept divided by kappa and by the coefficients, with fixed weights."""
    (x, y), least = records(d, 300), []
    for seed in range(4):
        protocol = random_protocol(seed, d, kappa, size)
        z, theta = moved(protocol, x), np.array(protocol.theta)
        weights = weights_of(z, theta, kappa)
        least.append(weights.min())
        scale = np.append(kappa, np.ones(d))

        def total(move):
            return np.mean(weights * log_likelihood(z, y, theta + scale * move))

        steps, h = np.eye(d + 1), 1e-3
        score = [(total(h * e) - total(-h * e)) / (2 * h) for e in steps]
        curvature = [[-(total(h * (e + f)) - total(h * (e - f)) - total(h * (f - e)) + total(-h * (e + f)))
                      / (4 * h**2) for e in steps] for f in steps]
        first = int(kappa == 0)
        found_score, found_curvature = mean_report(protocol, x, y)
        tolerance = 2e-5 if size < 8 else 1e-4  # rounding to the grid of integers, and the step of the differences
        np.testing.assert_allclose(found_score, score[first:], atol=tolerance)
        np.testing.assert_allclose(found_curvature, np.array(curvature)[first:, first:], atol=tolerance)
    assert min(least) < 0.9, "some records are shortened"


@with_and_without
def test_the_order_of_entries_and_the_isometry(kappa):
    """A report without noise has the entries of the score, the diagonal, and the products times the root of two."""
    protocol = random_protocol(0, 2, kappa, mechanism="gaussian")
    x, y = records(2, 40)
    z, theta = moved(protocol, x), np.array(protocol.theta)
    extended = np.column_stack([np.full(40, kappa), z])[:, int(kappa == 0):]
    p, weights = expit(theta[0] + z @ theta[1:]), weights_of(z, theta, kappa)
    for i in range(40):
        matrix = p[i] * (1 - p[i]) * np.outer(extended[i], extended[i])
        above = [math.sqrt(2) * matrix[a, b] for a in range(len(matrix)) for b in range(a + 1, len(matrix))]
        expected = weights[i] * np.concatenate([(y[i] - p[i]) * extended[i], np.diag(matrix), above])
        found = protocol.randomizer.decode(protocol.privatize(x[i], y[i]))[0]
        np.testing.assert_allclose(found, expected, atol=2e-5)
    assert protocol.order == len(extended[0]) and protocol.width == len(expected)


@with_and_without
def test_the_score_is_zero_at_the_weighted_maximum_for_skewed_records(kappa):
    """The maximum of the likelihood weighted by v at the model is where the mean report of the score is zero."""
    d, (x, y) = 2, records(2, 4000)
    protocol = random_protocol(1, d, kappa)
    z = moved(protocol, x)
    theta = np.array(protocol.theta)
    first = int(kappa == 0)
    extended = np.column_stack([np.ones(len(z)), z])[:, first:]
    for _ in range(15):
        weights = weights_of(z, theta, kappa)

        def loss(free, weights=weights):
            full = np.append(np.zeros(first), free)
            residual = y - expit(full[0] + z @ full[1:])
            return -np.mean(weights * log_likelihood(z, y, full)), -(weights * residual) @ extended / len(z)

        free = optimize.minimize(loss, theta[first:], jac=True, method="BFGS", options={"gtol": 1e-10}).x
        theta = np.append(np.zeros(first), free)
    fitted = replace(protocol, theta=tuple(theta))
    assert np.abs(mean_report(fitted, x, y)[0]).max() < 1e-6
    assert np.abs(mean_report(protocol, x, y)[0]).max() > 0.02


def test_the_score_is_zero_at_the_true_model_whatever_the_weights():
    """Exactly, by averaging over the label: for records far outside the ball of the model, too."""
    rng = np.random.default_rng(0)
    protocol = random_protocol(3, 2, 0.4, 0.7)
    x = rng.choice([[0.1, 0.2], [0.9, -0.4], [-0.3, 0.95], [0.0, 0.0]], size=5)
    p = expit(protocol.theta[0] + moved(protocol, x) @ protocol.theta[1:])
    codes = [protocol.response.codes(np.full(5, label)) for label in (0, 1)]
    zero, one = (protocol._score_and_curvature(x, code)[:, :3] for code in codes)
    np.testing.assert_allclose(p[:, None] * one + (1 - p)[:, None] * zero, 0.0, atol=1e-15)
    assert np.abs(one).min() > 1e-4


def test_units_and_labels():
    protocol = random_protocol(0, 2, 0.4, classes=("no", "yes"))
    x, y = records(2, 100)
    expected = mean_report(protocol, x, np.array(protocol.classes)[y])
    scaled = replace(protocol, data_norm=8.0)
    for found, value in zip(mean_report(scaled, 8 * x, np.array(protocol.classes)[y]), expected):
        np.testing.assert_array_equal(found, value)
    other = mean_report(protocol, x, np.array(protocol.classes)[1 - y])
    assert np.abs(other[0] - expected[0]).min() > 0.01, "the score depends on the label"
    np.testing.assert_allclose(other[1], expected[1], atol=1e-6)


def test_records_outside_the_ball_are_moved_to_its_edge():
    protocol = random_protocol(0, 2, 0.4)
    far = np.array([[3.0, -4.0], [0.9, 1.2], [-60.0, 0.0]])
    edge = far / np.linalg.norm(far, axis=1, keepdims=True)
    found, expected = (protocol.randomizer.decode(protocol.privatize(x, [0, 1, 1])) for x in (far, edge))
    np.testing.assert_allclose(found, expected, atol=2e-5)


def test_columns_of_a_schema_are_mapped_to_x_by_the_client():
    schema = (1.0, (("a", "number", (0.0, 10.0)), ("b", "number", (-1.0, 1.0))))
    protocol = random_protocol(0, 2, 0.4, schema=schema)
    raw = np.array([[2.0, 0.5], [9.0, -0.3]])
    x = protocol.columns.encode(raw)
    np.testing.assert_array_equal(protocol.privatize(raw, [0, 1]), replace(protocol, schema=None).privatize(x, [0, 1]))


@with_and_without
@pytest.mark.parametrize("mechanism", ["sphere", "gaussian"])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e5, 1e300])
def test_hostile_records_and_models_give_valid_reports_of_bounded_length(size, mechanism, kappa):
    """No value raises or warns, whatever model a client receives; reports have a norm of at most rho in integers."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.choice(HOSTILE, size=(300, 2)), rng.normal(size=(300, 2))])
    y = np.array([*HOSTILE, 0, 1, None], dtype=object)[rng.integers(11, size=600)]
    base = random_protocol(0, 2, kappa, mechanism=mechanism, epsilon=2.0)
    entries = size * rng.normal(size=9)
    theta, centre = (0.0, *entries[1:3]) if not kappa else tuple(entries[:3]), tuple(entries[3:5] * (kappa > 0))
    for changes in ({"theta": theta}, {"centre": centre}, {"transform": tuple(entries[5:])},
                    {"theta": theta, "centre": centre, "transform": tuple(entries[5:])}):
        protocol = replace(base, **changes)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vectors = protocol._scaled(*protocol._plain(x, y), Coins())
            codes = protocol.randomizer.encode(vectors)
            reports = Protocol.from_json(protocol.to_json()).privatize(x, y)
        assert np.isfinite(vectors).all()
        assert np.linalg.norm(vectors, axis=1).max() <= score_radius(kappa) * (1 + 1e-9)
        assert codes.dtype == np.int64 and (np.vecdot(codes, codes) <= BALL_RADIUS**2).all()
        assert protocol.check(reports).all() and reports.shape == (600, protocol.width)


class Coins:
    """Source of words for labels that are not known."""

    @staticmethod
    def words(n):
        return np.random.default_rng(0).integers(2**63, size=n, dtype=np.uint64) * np.uint64(2)


@pytest.mark.parametrize("mechanism", ["sphere", "gaussian"])
def test_mean_of_noisy_reports_is_unbiased_with_the_stated_variance(mechanism):
    protocol = random_protocol(2, 2, 0.4, mechanism=mechanism, epsilon=4.0)
    n = 60_000
    x, y = records(2, n)
    score, curvature = mean_report(replace(protocol, epsilon=math.inf), x, y)
    aggregate = protocol.aggregate(protocol._randomize(x, y, 0))
    (noisy_score,), noisy_curvature = protocol.mean_report(aggregate.parts[protocol])
    error = math.sqrt(protocol.randomizer.noise_variance / n)
    assert np.abs(noisy_score - score).max() < 4.5 * error
    z = (noisy_curvature - curvature) / np.where(np.eye(3), error, error / math.sqrt(2))
    assert np.abs(z).max() < 4.5 and np.abs(z).max() > 0.3
    np.testing.assert_array_equal(noisy_curvature, noisy_curvature.T)


def test_an_empty_aggregate_has_a_mean_report_of_the_right_shape():
    protocol = random_protocol(2, 3, 0.0)
    score, curvature = protocol.mean_report(protocol.aggregate([]).parts[protocol])
    assert score.shape == (1, 3) and curvature.shape == (3, 3)


# ---- Privacy

# A model that is certain, and wrong for the first of these records: without the weight and without clipping,
# the scores of the two labels are 2.2 times as far apart as the radius allows.
MODEL = {"epsilon": 1.0, "n_features": 2, "theta": (0.0, 30.0, 0.0), "centre": (0.0, 0.0),
         "transform": (2.0, 0.0, 0.0, 2.0), "intercept_weight": 0.3}


def directions(protocol, records):
    """Points of the sphere with which the mechanism centres its caps, for the records of two clients."""
    x, y = np.array([record[:2] for record in records]), np.array([record[2] for record in records])
    codes = protocol.randomizer.encode(protocol._scaled(x, 2 * y - 1, Coins()))
    return protocol.randomizer.direction(codes)


def largest_log_ratio(protocol, log_prob):
    """Largest log-ratio of the probabilities of the same reports for pairs of records."""
    worst = 0.0
    rng = np.random.default_rng(0)
    for _ in range(20):
        pair = rng.normal(size=(2, 2))
        pair /= np.linalg.norm(pair, axis=1, keepdims=True)
        y = rng.integers(2, size=2)
        reports = protocol.privatize(np.repeat(pair, 50, axis=0), np.repeat(y, 50))
        vectors = protocol._scaled(pair, 2.0 * y - 1, Coins())
        one, other = (log_prob(protocol, reports, np.tile(vector, (len(reports), 1))) for vector in vectors)
        worst = max(worst, np.abs(one - other).max())
    return worst


def test_the_likelihood_ratio_of_reports_is_at_most_epsilon():
    def log_prob(protocol, reports, vectors):
        return protocol.randomizer.log_prob(reports, vectors)

    for seed in range(3):
        protocol = random_protocol(seed, 2, 0.3, 5.0, epsilon=1.0)
        assert 0.9 < largest_log_ratio(protocol, log_prob) <= 1.0


class Unweighted(RoundProtocol):
    """A faulty protocol: no weight v, and Gaussian noise that is added to the vector as it is, without clipping."""

    def noisy(self, x, y):
        """Vectors with the noise of the Gaussian mechanism for the stated radius."""
        theta, z = np.array(self.theta), moved(self, x)
        p = expit(theta[0] + z @ theta[1:])
        extended = np.column_stack([np.full(len(z), self.intercept_weight), z])
        rows, columns = self.places
        products = extended[:, rows] * extended[:, columns] * np.where(rows == columns, 1.0, math.sqrt(2))
        vectors = np.hstack([(y - p)[:, None] * extended, (p * (1 - p))[:, None] * products])
        return vectors + np.random.default_rng(0).normal(scale=math.sqrt(self.randomizer.noise_variance),
                                                         size=vectors.shape)


def audit(draw, along, delta=0.0):
    """Lower bound of epsilon from reports of two records, by the projection on the difference of their means."""
    def randomize(pairs):
        return draw(pairs[:, :2], pairs[:, 2])

    ends = np.array([-1.0, 0.0, 0.0]), np.array([-1.0, 0.0, 1.0])
    return audit_epsilon(randomize, *ends, n_reports=200_000, delta=delta,
                         statistic=lambda reports: reports.astype(float) @ along).epsilon_lower


def test_audit_of_the_sphere_end_to_end():
    protocol = RoundProtocol(**MODEL)
    client = Client(protocol)
    assert client.protocol == protocol
    one, other = directions(protocol, [(-1.0, 0.0, 1), (-1.0, 0.0, 0)])
    assert 0.2 < audit(protocol.privatize, one - other) <= 1.0
    spent = RoundProtocol(**{**MODEL, "epsilon": 4.0})
    assert audit(spent.privatize, one - other) > 1.0, "an audit of a budget four times as large"


def test_a_protocol_without_weight_and_clipping_is_detected():
    options = {**MODEL, "mechanism": "gaussian", "delta": 1e-2}
    honest, faulty = RoundProtocol(**options), Unweighted(**options)
    difference = np.append([0.3, -2.0], np.zeros(honest.width - 2))  # of the two labels: the extended record
    assert audit(honest.privatize, difference, 1e-2) <= 1.0
    assert audit(faulty.noisy, difference, 1e-2) > 1.0


# ---- Parameters

@pytest.mark.parametrize("changes, message", [
    ({"theta": (0.0,)}, "theta must be a list of 2 numbers"), ({"theta": (0.0, 1.0, 2.0)}, "theta must be a list"),
    ({"theta": None}, "theta must be"), ({"theta": "ab"}, "theta must be"), ({"theta": {"a": 1, "b": 2}}, "theta must"),
    ({"theta": [0, "a"]}, "each entry of theta must"), ({"theta": [0, None]}, "each entry of theta must"),
    ({"theta": [0, True]}, "each entry of theta must"), ({"theta": [0, [1]]}, "each entry of theta must"),
    ({"theta": [0, math.nan]}, "theta must contain finite|each entry of theta must"),
    ({"theta": [math.inf, 0]}, "theta must contain finite"),
    ({"centre": (0.0, 0.0)}, "centre must be a list of 1 numbers"), ({"transform": (1.0, 2.0)}, "transform must be"),
    ({"intercept_weight": -1.0}, "intercept_weight must"), ({"intercept_weight": math.inf}, "intercept_weight must"),
    ({"intercept_weight": 0.0, "theta": (0.1, 1.0)}, "Without an intercept"),
    ({"intercept_weight": 0.0, "centre": (0.1,)}, "Without an intercept"),
    ({"mechanism": "laplace"}, "mechanism must be one of"), ({"link": "identity"}, "link must be one of"),
    ({"link": None}, "link must be"), ({"epsilon": 0}, "epsilon must"),
    ({"classes": (1,)}, "classes must be at least two"), ({"n_features": 0}, "n_features must"),
])
def test_parameters_are_checked_at_once(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        RoundProtocol(**changes)
    values = json.dumps({**json.loads(RoundProtocol().to_json()), **changes}, default=list)
    with pytest.raises(InvalidParameterError):
        Protocol.from_json(values)


def test_a_file_with_a_number_beyond_floats_is_refused():
    values = json.loads(RoundProtocol().to_json())
    with pytest.raises(InvalidParameterError):
        Protocol.from_json(json.dumps({**values, "theta": [10**400, 0]}))


def test_equal_protocols_have_equal_ids():
    one = RoundProtocol(theta=np.array([0.0, 1.0]), centre=[-0.0], transform=[1])
    other = RoundProtocol(theta=(-0.0, 1), centre=(0,), transform=np.array([1.0]))
    assert one == other and one.id == other.id
    assert all(type(value) is float for value in (*one.theta, *one.centre, *one.transform))
