"""Rounds of several labels and of counts: reports against their definition, hostile input, audits and clients.

What is the same for two labels is in test_round_protocol.py, and responses alone in test_responses.py.
"""

import json
import math
import warnings
from dataclasses import dataclass, replace

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._encoding import BALL_RADIUS
from skldp.privacy import audit_epsilon, score_radius
from skldp.privacy._words import SystemWords
from skldp.protocols import Client, CountRoundProtocol, Protocol, RoundProtocol
from skldp.protocols import _regression_protocol as shared
from tests.protocols.responses import RESPONSES
from tests.protocols.test_round_protocol import HOSTILE

LETTERS = tuple("abcdef")


@dataclass(frozen=True)
class Kind:
    """A protocol, its response with the probabilities of all outcomes, and the raw values of these outcomes."""

    cls: type
    options: dict
    response: str
    outcomes: tuple

    @property
    def case(self):
        return RESPONSES[self.response]

    def protocol(self, seed=0, kappa=0.4, size=1.0, d=2, **options):
        """A protocol with a random model, centre and transform."""
        rng, q = np.random.default_rng(seed), self.case.response.n_lines
        lines, centre = size * rng.normal(size=(q, d + 1)), rng.normal(scale=0.2, size=d)
        if not kappa:
            lines[:, 0], centre[:] = 0.0, 0.0
        transform = rng.normal(size=(d, d)) + np.eye(d)
        return self.cls(**{"epsilon": math.inf, "n_features": d, "theta": tuple(lines.ravel()),
                           "centre": tuple(centre), "transform": tuple(transform.ravel()), "intercept_weight": kappa,
                           **self.options, **options})


KINDS = {
    "three labels": Kind(RoundProtocol, {"classes": LETTERS[:3]}, "3 labels", LETTERS[:3]),
    "six labels": Kind(RoundProtocol, {"classes": tuple(range(6))}, "6 labels", tuple(range(6))),
    "counts": Kind(CountRoundProtocol, {"bounds_y": (0, 20)}, "counts up to 20", tuple(range(21))),
    "counts up to 1": Kind(CountRoundProtocol, {"bounds_y": (0, 1)}, "counts up to 1", (0, 1)),
}
every = pytest.mark.parametrize("kind", KINDS.values(), ids=list(KINDS))
with_and_without = pytest.mark.parametrize("kappa", [0.4, 0.0])


def records(d, n, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.exponential(0.3, size=(n, d)) - 0.2
    return x / np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True))


def moved(protocol, x):
    """Records with the constant, in the coordinates of the model, and the predictors there."""
    d = protocol.n_features
    z = (x / protocol.data_norm - np.array(protocol.centre or [0.0] * d)) @ np.reshape(protocol.transform, (d, d)).T
    lines = np.reshape(protocol.theta, (-1, d + 1))
    constant = np.full((len(z), int(protocol.intercept_weight > 0)), protocol.intercept_weight)
    return np.hstack([constant, z]), lines[:, 0] + z @ lines[:, 1:].T


def plain_reports(kind, protocol, x):
    """Vectors before the mechanism for each record and each outcome, by their definition, with plain loops."""
    extended, u = moved(protocol, x)
    codes, probabilities = kind.case.response.codes(kind.case.outcomes), kind.case.probabilities(u)
    found = []
    for v, p, eta in zip(extended, probabilities, u):
        mean = sum(one * code for one, code in zip(p, codes))
        if kind.cls is CountRoundProtocol:
            w = math.exp(eta[0]) * sum(p[:-1]) / (len(p) - 1)
        else:
            w = 0.25 * (1 - sum(one**2 for one in p)) / (1 - 1 / len(p))
        w *= protocol.curvature_weight
        matrix = w * np.outer(v, v)
        above = [math.sqrt(2) * matrix[i, j] for i in range(len(v)) for j in range(i + 1, len(v))]
        rows = [np.concatenate([*(r * v for r in code - mean), np.diag(matrix), above]) for code in codes]
        largest = math.sqrt(max(np.sum((code - mean) ** 2) for code in codes) * (v @ v) + (w * (v @ v)) ** 2)
        radius = score_radius(protocol.intercept_weight, kind.case.response.radius, protocol.curvature_weight)
        found.append(min(1.0, radius / largest) * np.array(rows))
    return np.array(found)[:, :, :protocol._n_entries]


@every
@with_and_without
@pytest.mark.parametrize("size, c", [(0.0, 1.0), (1.0, 1.0), (6.0, 1.0), (6.0, 0.5), (6.0, 0.0)])
def test_a_report_without_noise_is_its_definition(size, c, kind, kappa):
    protocol, x = kind.protocol(0, kappa, size, mechanism="gaussian", curvature_weight=c), records(2, 15)
    expected = plain_reports(kind, protocol, x)
    for number, outcome in enumerate(kind.outcomes):
        found = protocol.randomizer.decode(protocol.privatize(x, [outcome] * len(x)))
        np.testing.assert_allclose(found, expected[:, number], atol=2e-5)
    order = 2 + (kappa > 0)
    assert protocol.order == order and protocol.width == expected.shape[2]
    assert protocol.width == kind.case.response.n_lines * order + (c > 0) * order * (order + 1) // 2


@every
@pytest.mark.parametrize("c", [1.0, 0.5])
def test_the_mean_report_separates_score_and_curvature(kind, c):
    protocol, x = kind.protocol(curvature_weight=c), records(2, 60)
    y = np.random.default_rng(1).integers(len(kind.outcomes), size=60)
    aggregate = protocol.aggregate(protocol.privatize(x, np.array(kind.outcomes)[y]))
    score, curvature = protocol.mean_report(aggregate.parts[protocol])
    vectors, q = plain_reports(kind, protocol, x)[np.arange(60), y].mean(axis=0), kind.case.response.n_lines
    np.testing.assert_allclose(score, vectors[:3 * q].reshape(q, 3), atol=2e-5)
    np.testing.assert_allclose(c * np.diag(curvature), vectors[3 * q:3 * q + 3], atol=2e-5)
    np.testing.assert_allclose(c * math.sqrt(2) * curvature[np.triu_indices(3, 1)], vectors[3 * q + 3:], atol=2e-5)
    np.testing.assert_array_equal(curvature, curvature.T)


@every
def test_the_score_is_zero_at_the_true_model_whatever_the_weights(kind):
    """By averaging over all outcomes; the curvature does not depend on the outcome."""
    protocol, x = kind.protocol(3, size=1.5), np.array([[0.1, 0.2], [0.9, -0.4], [-0.3, 0.95], [0.0, 0.0]])
    codes = kind.case.response.codes(kind.case.outcomes)
    vectors = np.array([protocol._score_and_curvature(x, np.tile(code, (4, 1))) for code in codes])
    p = kind.case.probabilities(moved(protocol, x)[1])
    n_score = 3 * kind.case.response.n_lines
    np.testing.assert_allclose(np.einsum("nk,kni->ni", p, vectors[:, :, :n_score]), 0.0, atol=1e-14)
    assert np.abs(vectors[:, :, :n_score]).max() > 0.01
    np.testing.assert_allclose(np.ptp(vectors[:, :, n_score:], axis=0), 0.0, atol=1e-15)


@pytest.mark.parametrize("mechanism", ["sphere", "gaussian"])
@every
def test_mean_of_noisy_reports_is_unbiased_with_the_stated_variance(kind, mechanism):
    protocol, n = kind.protocol(2, mechanism=mechanism, epsilon=4.0), 30_000
    x, y = records(2, n), np.array(kind.outcomes)[np.random.default_rng(1).integers(len(kind.outcomes), size=n)]
    reports = [one.aggregate(one._randomize(x, y, 0)) for one in (protocol, protocol.with_epsilon(math.inf))]
    noisy, plain = (np.concatenate([part.ravel() for part in one.protocol.mean_report(one.parts[one.protocol])])
                    for one in reports)
    error = math.sqrt(protocol.randomizer.noise_variance / n)
    scale = np.append(np.ones(3 * kind.case.response.n_lines), np.where(np.eye(3), 1, math.sqrt(0.5)).ravel())
    z = (noisy - plain) / (error * scale)
    assert np.abs(z).max() < 4.5 and z.std() > 0.4


@every
@with_and_without
@pytest.mark.parametrize("mechanism", ["sphere", "gaussian"])
@pytest.mark.parametrize("size", [0.0, 1.0, 1e5, 1e300])
def test_hostile_records_and_models_give_valid_reports_of_bounded_length(size, mechanism, kappa, kind):
    """No value raises or warns, whatever model a client receives."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.choice(HOSTILE, size=(150, 2)), rng.normal(size=(150, 2))])
    y = np.array([*HOSTILE, -3, 10**400, None, "x", kind.outcomes[-1]], dtype=object)[rng.integers(13, size=300)]
    protocol = kind.protocol(1, kappa, 0.0, mechanism=mechanism, epsilon=2.0)
    theta, rest = size * rng.normal(size=protocol.lines.shape), size * rng.normal(size=6)
    theta[:, 0] *= kappa > 0
    for changes in ({"theta": tuple(theta.ravel())}, {"transform": tuple(rest[:4])},
                    {"theta": tuple(theta.ravel()), "centre": tuple(rest[4:] * (kappa > 0)),
                     "transform": tuple(rest[:4])}):
        changed = replace(protocol, **changes)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            vectors = changed._scaled(*changed._plain(x, y), SystemWords())
            codes = changed.randomizer.encode(vectors)
            reports = Protocol.from_json(changed.to_json()).privatize(x, y)
        assert np.isfinite(vectors).all()
        radius = score_radius(kappa, kind.case.response.radius)
        assert np.linalg.norm(vectors, axis=1).max() <= radius * (1 + 1e-9)
        assert codes.dtype == np.int64 and (np.vecdot(codes, codes) <= BALL_RADIUS**2).all()
        assert changed.check(reports).all() and reports.shape == (300, changed.width)


# ---- Responses of clients

def test_unknown_labels_are_replaced_by_any_label_alike():
    protocol = RoundProtocol(classes=LETTERS[:5], epsilon=math.inf)
    n = 10_000
    for unknown in ("z", None, math.nan, 7):
        y = np.full(n, unknown, dtype=object)
        y[::2] = "b"
        numbers = protocol._response(protocol._numbers(y), SystemWords())
        assert (numbers[::2] == 1).all(), "known labels are kept"
        counts = np.bincount(numbers[1::2], minlength=5)
        assert np.abs(counts - n / 10).max() < 5 * math.sqrt(n / 10) and len(counts) == 5


@pytest.mark.parametrize("classes", [("c", "a", "b"), (2.5, 0.5, 1.5), (True, 7, 0), np.array([30, 10, 20])])
def test_labels_are_sorted_and_told_apart(classes):
    protocol = RoundProtocol(classes=classes, epsilon=math.inf)
    assert list(protocol.classes) == sorted(classes)
    numbers = [protocol._response(protocol._numbers(np.array([one], dtype=object)), SystemWords())[0]
               for one in protocol.classes]
    assert numbers == [0, 1, 2]
    private = replace(protocol, epsilon=1.0)
    back = Protocol.from_json(private.to_json())
    assert back == private and list(map(type, back.classes)) == list(map(type, protocol.classes))


def test_all_labels_of_a_long_list_are_told_apart():
    protocol = RoundProtocol(classes=tuple(range(1000)))
    numbers = protocol._response(protocol._numbers(np.arange(1000)), SystemWords())
    assert numbers.tolist() == list(range(1000))


def test_counts_are_clipped_and_missing_ones_are_in_the_middle():
    protocol = CountRoundProtocol(bounds_y=(0, 8), epsilon=math.inf)
    for value, share in [(0, 0.0), (3, 0.375), (8, 1.0), (9, 1.0), (1e300, 1.0), (math.inf, 1.0), (-1, 0.0),
                         (-math.inf, 0.0), (math.nan, 0.5), (None, 0.5), ("many", 0.5), (True, 0.125), (2.5, 0.3125)]:
        y = np.empty(1, dtype=object)
        y[0] = value
        assert protocol._response(protocol._numbers(y), None).tolist() == [share], value


@pytest.mark.parametrize("kind", [KINDS["three labels"], KINDS["counts"]], ids=["labels", "counts"])
def test_the_number_of_words_does_not_depend_on_the_data(kind, monkeypatch):
    class Counted(SystemWords):
        """Source that records how many words are requested."""

        def __init__(self):
            self.asked = []

        def words(self, n_words):
            self.asked.append(n_words)
            return super().words(n_words)

        def bytes(self, n_bytes):
            self.asked.append(("bytes", n_bytes))
            return super().bytes(n_bytes)

    asked = []
    for y in ([kind.outcomes[0]] * 30, [None] * 30, [kind.outcomes[-1], math.nan, "?"] * 10):
        for x in (0.0, math.nan, 1e300):
            source = Counted()
            monkeypatch.setattr(shared, "word_source", lambda *key, source=source: source)
            kind.protocol(epsilon=2.0).privatize(np.full((30, 2), x), y)
            asked.append(source.asked)
    assert all(one == asked[0] for one in asked) and asked[0]


# ---- Privacy

def log_ratios(kind, protocol):
    """Largest log-ratio of the probabilities of the same reports for pairs of records with random outcomes."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(25):
        pair = rng.normal(size=(2, 2))
        pair /= np.linalg.norm(pair, axis=1, keepdims=True)
        y = np.array(kind.outcomes)[rng.integers(len(kind.outcomes), size=2)]
        reports = protocol.privatize(np.repeat(pair, 40, axis=0), np.repeat(y, 40))
        vectors = protocol._scaled(*protocol._plain(pair, y), SystemWords())
        one, other = (protocol.randomizer.log_prob(reports, np.tile(vector, (len(reports), 1))) for vector in vectors)
        worst = max(worst, np.abs(one - other).max())
    return worst


@every
def test_the_likelihood_ratio_of_reports_is_at_most_epsilon(kind):
    for seed in range(2):
        protocol = kind.protocol(seed, 0.3, 5.0, epsilon=1.0)
        assert 0.9 < log_ratios(kind, protocol) <= 1.0


def certain(kind, **options):
    """A protocol whose model is certain of one outcome of all records, with a transform far out of the ball."""
    protocol = kind.protocol(0, 0.3, 0.0, **{"epsilon": 1.0, **options})
    lines = np.zeros_like(protocol.lines)
    lines[:, 0] = -30.0 if kind.cls is CountRoundProtocol else 60 * kind.case.response.codes(kind.case.outcomes)[0]
    return replace(protocol, theta=tuple(lines.ravel()), transform=(4.0, 0.0, 0.0, 4.0), centre=())


def unweighted(kind, protocol, x, number):
    """Vectors of a faulty client: no weight, no clipping, and the Gaussian noise of the stated radius."""
    extended, u = moved(protocol, x)
    codes, p = kind.case.response.codes(kind.case.outcomes), kind.case.probabilities(u)
    vectors = ((codes[number] - p @ codes)[:, :, None] * extended[:, None]).reshape(len(x), -1)
    scale = math.sqrt(protocol.randomizer.noise_variance)
    return vectors + np.random.default_rng(0).normal(scale=scale, size=vectors.shape)


ENDS = np.array([1.0, 0.0, 1.0]), np.array([-1.0, 0.0, 1.0])  # two records far apart, with the last outcome


def audit(draw, along, delta=0.0):
    """Lower bound of epsilon, by the projection on the difference of the means of two records."""
    return audit_epsilon(draw, *ENDS, n_reports=150_000, delta=delta,
                         statistic=lambda reports: reports.astype(float) @ along).epsilon_lower


@pytest.mark.parametrize("kind", [KINDS["three labels"], KINDS["counts"]], ids=["labels", "counts"])
def test_audit_of_the_sphere_end_to_end(kind):
    def draw(protocol):
        return lambda rows: protocol.privatize(rows[:, :2], np.array(kind.outcomes)[[-1] * len(rows)])

    protocol = certain(kind)
    ends = np.array(ENDS)[:, :2]
    vectors = protocol._scaled(*protocol._plain(ends, [kind.outcomes[-1]] * 2), SystemWords())
    one, other = protocol.randomizer.direction(protocol.randomizer.encode(vectors))
    assert 0.2 < audit(draw(protocol), one - other) <= 1.0
    assert audit(draw(protocol.with_epsilon(4.0)), one - other) > 1.0, "an audit of a budget four times as large"


@pytest.mark.parametrize("kind", [KINDS["three labels"], KINDS["counts"]], ids=["labels", "counts"])
def test_a_client_without_weight_and_clipping_is_detected(kind):
    protocol = certain(kind, mechanism="gaussian", delta=1e-2)

    def honest(rows):
        return protocol.privatize(rows[:, :2], np.array(kind.outcomes)[[-1] * len(rows)])

    def faulty(rows):
        return unweighted(kind, protocol, rows[:, :2], -1)

    ends = protocol.with_epsilon(math.inf)
    first, second = ends.randomizer.decode(ends.privatize(np.array(ENDS)[:, :2], [kind.outcomes[-1]] * 2))
    assert 0.2 < audit(honest, first - second, 1e-2) <= 1.0
    assert audit(faulty, (first - second)[:protocol._n_score], 1e-2) > 1.0


# ---- Files, limits and clients

@pytest.mark.parametrize("make", [
    lambda d: RoundProtocol(n_features=d, classes=LETTERS[:3]), lambda d: RoundProtocol(n_features=d, classes=LETTERS),
    lambda d: RoundProtocol(n_features=d, classes=LETTERS, intercept_weight=0.0),
    lambda d: CountRoundProtocol(n_features=d), lambda d: CountRoundProtocol(n_features=d, mechanism="gaussian")])
def test_the_number_of_features_follows_from_the_width(make):
    for d in (1, 2, 3, 7, 20):
        assert make(1).with_width(make(d).width) == make(d)


@pytest.mark.parametrize("bounds", [
    (0, 0), (0, -1), (1, 20), (-1, 20), (0, 2.5), (0, math.inf), (0, math.nan), (0, 10**6 + 1), (0,), (0, 1, 2), None,
    20, "ab", (0, "b"), (0, None), (0, True), (0, 10**400), [[0, 1], [0, 2]]])
def test_bounds_of_counts_are_zero_and_a_whole_number(bounds):
    with pytest.raises(InvalidParameterError, match="bounds_y"):
        CountRoundProtocol(bounds_y=bounds)
    text = json.dumps({**json.loads(CountRoundProtocol().to_json()), "bounds_y": bounds})
    with pytest.raises(InvalidParameterError):
        Protocol.from_json(text)


def test_equal_bounds_of_counts_are_the_same_collection():
    assert CountRoundProtocol(bounds_y=[0.0, 8.0]) == CountRoundProtocol(bounds_y=(0, 8))
    assert CountRoundProtocol(bounds_y=np.array([0, 8])).id == CountRoundProtocol(bounds_y=(0, 8)).id
    assert CountRoundProtocol(bounds_y=(0, 10**6)).privatize([[0.5]], [12]).shape == (1, 6)


@pytest.mark.parametrize("changes, message", [
    ({"theta": (0.0,) * 5}, "theta must be a list of 6 numbers"), ({"theta": (0.0,) * 3}, "theta must be a list of 6"),
    ({"classes": LETTERS[:4]}, "theta must be a list of 9 numbers"),
    ({"intercept_weight": 0.0}, "Without an intercept"), ({"classes": ("a",)}, "classes must be at least two"),
    ({"classes": ("a", "b", 3)}, "classes must all be strings"), ({"classes": ("a", "a", "b")}, "classes must be dist"),
])
def test_models_of_three_labels_are_checked(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        RoundProtocol(**{"classes": LETTERS[:3], "n_features": 2, "theta": (0.1,) * 6, **changes})


SCHEMA = (1.0, (("carat", "number", (0.2, 2.5)), ("cut", "category", ("Fair", "Good"))))


@pytest.mark.parametrize("protocol, answer", [
    (RoundProtocol(classes=LETTERS[:3], n_features=2, schema=SCHEMA, intercept_weight=0.2), "b"),
    (CountRoundProtocol(n_features=2, schema=SCHEMA, theta=(0.5, 1.0, -1.0)), 4)])
def test_a_client_reports_raw_columns_and_its_response(protocol, answer, tmp_path):
    row = [1.1, "Good"]
    client = Client(protocol.to_json(), ledger=tmp_path / "spent.json", max_epsilon=1.0)
    first = client.report({"cut": "Good", "carat": 1.1, "answer": answer})
    assert first.shape == (1, protocol.width) and protocol.check(first).all() and client.spent() == 1.0
    for again in (client.report(row, answer), client.report([*row, answer]),
                  Client(protocol, ledger=tmp_path / "spent.json").report({"carat": 1.1, "cut": "Good"}, y=answer)):
        np.testing.assert_array_equal(again, first)
    with pytest.raises(ValueError, match="max_epsilon"):
        client.report(row, "c" if answer == "b" else 5)
    simulation = protocol.with_epsilon(math.inf)
    plain = replace(simulation, schema=None).privatize(protocol.columns.encode(np.array([row], dtype=object)), [answer])
    np.testing.assert_array_equal(simulation.privatize([row], [answer]), plain)
