"""Gradient protocol: gradients, sensitivity, audits, and a collection over many rounds."""

import json
import math
import warnings
from functools import cached_property

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.mechanisms import Gaussian, Sphere
from skldp.mechanisms._encoding import BALL_RADIUS
from skldp.privacy import audit_epsilon, gaussian_delta
from skldp.protocols import GradientClient, GradientModel, GradientProtocol, GradientServer, ValueProtocol

PROTOCOLS = [
    GradientProtocol(n_features=3),
    GradientProtocol(n_features=3, mechanism="sphere", fit_intercept=False, data_norm=2.0),
    GradientProtocol(n_features=3, loss="squared", bounds_y=(0, 10)),
    GradientProtocol(n_features=3, loss="squared", bounds_y=(-3, 1), mechanism="sphere", fit_intercept=False),
    GradientProtocol(n_features=1, loss="squared", epsilon=4.0, mechanism="sphere", clip_norm=0.5),
    GradientProtocol(n_features=2, classes=("no", "yes"), epsilon=0.2, mechanism="sphere"),
    GradientProtocol(n_features=3, loss="softmax", classes=("a", "b", "c"), data_norm=2.0),
    GradientProtocol(n_features=2, loss="softmax", classes=(0, 1, 2, 5, 9), mechanism="sphere", fit_intercept=False),
]
everyone = pytest.mark.parametrize(
    "protocol", PROTOCOLS, ids=lambda value: f"{value.loss}-{value.mechanism}-{value.n_features}")
HOSTILE = [math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0, 1.7976931348623157e308]


def records(protocol, n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, protocol.n_features))
    if protocol.classes is not None:
        place = np.digitize(X[:, 0] + rng.normal(size=n), np.arange(len(protocol.classes) - 1))
        return X, np.array(protocol.classes)[place]
    return X, rng.uniform(-4, 12, size=n)


def model(protocol, theta, number=3):
    return GradientModel(protocol.id, number, tuple(theta))


def record_losses(protocol, X, y, theta):
    """Loss of each record by its formula, in natural coordinates; records are inside the domain."""
    coef, intercept = protocol.natural(theta)
    score = X @ coef.T + intercept
    if protocol.loss == "softmax":
        own = score[np.arange(len(X)), np.searchsorted(protocol.classes, y)]
        return np.log(np.exp(score).sum(axis=1)) - own
    if protocol.loss == "logistic":
        return np.logaddexp(0, -np.where(y == protocol.classes[1], 1, -1) * score)
    return ((score - y) / protocol.response_scale[1]) ** 2 / 2


@everyone
def test_gradients_match_finite_differences(protocol):
    X, y = records(protocol, n=20)
    X *= protocol.data_norm / (1.01 * np.linalg.norm(X, axis=1, keepdims=True))
    if protocol.loss == "squared":
        y = np.clip(y, *protocol.bounds_y)
    # Records on the grid, because a record is rounded to the grid before its gradient is computed.
    X = np.rint(X / protocol.data_norm * BALL_RADIUS) * protocol.data_norm / BALL_RADIUS
    theta = np.random.default_rng(1).normal(size=protocol.dimension)
    steps = 1e-5 * np.eye(protocol.dimension)
    expected = [(record_losses(protocol, X, y, theta + step) - record_losses(protocol, X, y, theta - step)) / 2e-5
                for step in steps]
    np.testing.assert_allclose(protocol.gradient(X, y, theta), np.transpose(expected), atol=1e-8)


@everyone
@pytest.mark.parametrize("size", [0.0, 1.0, 1e5, 1e300])
def test_gradients_have_norm_at_most_one_in_integers(protocol, size):
    rng = np.random.default_rng(0)
    shape = (300, protocol.n_features)
    X = np.concatenate([rng.choice(HOSTILE, size=shape), rng.normal(size=shape)])
    y = np.array([*HOSTILE, *(protocol.classes or protocol.bounds_y)[:2], None], dtype=object)
    y = y[rng.integers(11, size=600)]
    theta = size * rng.normal(size=protocol.dimension)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gradients = protocol.gradient(X, y, theta)
        codes = protocol.randomizer.encode(gradients)
        reports = protocol.privatize(X, y, model=model(protocol, theta))
    assert codes.dtype == np.int64 and (np.vecdot(codes, codes) <= BALL_RADIUS**2).all()
    assert protocol.check(reports).all() and reports.shape == (600, protocol.width)


def test_the_declared_sensitivity_is_attained():
    for mechanism in ("gaussian", "sphere"):
        protocol = GradientProtocol(loss="squared", n_features=2, fit_intercept=False, mechanism=mechanism)
        one, other = protocol.randomizer.encode(protocol.gradient([[1.0, 0.0]] * 2, [1.0, -1.0], [0.0, 0.0]))
        assert np.linalg.norm(one - other) >= 0.9999 * 2 * BALL_RADIUS


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_the_gradient_of_the_softmax_is_within_its_bound(n_classes):
    """The largest of 20,000 gradients, half of them at models that are certain and wrong, against the proof."""
    protocol = GradientProtocol(n_features=2, loss="softmax", classes=tuple(range(n_classes)))
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), rng.integers(n_classes, size=200)
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    norms = [np.linalg.norm(protocol.gradient(X, y, size * rng.normal(size=protocol.dimension)), axis=1)
             for size in np.repeat([1.0, 100.0], 50)]
    assert 0.999 * 2 < np.max(norms) < 2 * (1 + 1e-4)  # the root of two times the length of (x, 1)
    start = np.linalg.norm(protocol.gradient(X, y, np.zeros(protocol.dimension)), axis=1)
    np.testing.assert_allclose(start, math.sqrt(2 * (1 - 1 / n_classes)), rtol=1e-4)


def test_the_curvature_of_the_softmax_is_within_its_bound():
    protocol = GradientProtocol(n_features=1, loss="softmax", classes=(0, 1, 2), fit_intercept=False)
    moves, curvatures = 1e-5 * np.eye(2), []
    # At (0, 30) two labels have probability 1/2.
    for theta in [*np.random.default_rng(0).normal(scale=2, size=(300, 2)), np.array([0.0, 30.0])]:
        ends = [[protocol.gradient([[1.0]], [0], theta + sign * move)[0] for sign in (1, -1)] for move in moves]
        curvatures.append(np.linalg.eigvalsh([(high - low) / 2e-5 for high, low in ends])[-1])
    assert protocol.smoothness == 0.5 and 0.4999 < max(curvatures) < 0.5001


def test_the_softmax_of_two_labels_is_the_logistic_loss():
    logistic = GradientProtocol(n_features=2)
    softmax = GradientProtocol(n_features=2, loss="softmax")
    X, y = records(logistic, n=50)
    theta = np.array([0.3, -1.2, 0.5])
    contrast = softmax.natural([0.0, 0.0, 1.0])[1]  # of the scores of both labels
    same = theta / (contrast[1] - contrast[0])
    np.testing.assert_allclose(softmax.gradient(X, y, same) / (contrast[1] - contrast[0]),
                               logistic.gradient(X, y, theta), atol=1e-12)


def test_unknown_labels_and_missing_responses():
    softmax = GradientProtocol(n_features=2, loss="softmax", classes=("no", "yes", "maybe"))
    gradients = softmax.gradient(np.full((5, 2), 0.5), ["yes", "maybe", "never", None, math.nan], np.zeros(6))
    assert (gradients[:2] != 0).any(axis=1).all() and (gradients[2:] == 0).all()
    logistic = GradientProtocol(n_features=2, classes=("no", "yes"))
    X = np.full((5, 2), 0.5)
    gradients = logistic.gradient(X, ["yes", "no", "maybe", None, math.nan], np.zeros(3))
    assert (gradients[0] == -gradients[1]).all() and (gradients[0] == [-0.25, -0.25, -0.5]).all()
    assert (gradients[2:] == 0).all()
    squared = GradientProtocol(n_features=2, loss="squared", bounds_y=(0, 10))
    gradients = squared.gradient(X, [math.nan, 5.0, 10.0, 1e300, -math.inf], np.zeros(3))
    assert (gradients[0] == gradients[1]).all() and (gradients[1] == 0).all()
    assert (gradients[2] == gradients[3]).all() and (gradients[2] == -gradients[4]).all()


def test_scales_are_public_constants():
    with_intercept = GradientProtocol(loss="squared", bounds_y=(0, 10), data_norm=2.0, n_features=2)
    coef, intercept = with_intercept.natural([0.2, -0.4, 0.6])
    assert coef == pytest.approx([0.5, -1.0]) and intercept == pytest.approx(8.0)
    through_origin = GradientProtocol(loss="squared", bounds_y=(-2, 10), n_features=1, fit_intercept=False)
    coef, intercept = through_origin.natural([0.3])
    assert coef == pytest.approx([3.0]) and intercept == 0.0


@everyone
def test_mean_of_reports_is_unbiased(protocol):
    X, y = records(protocol, n=60_000)
    theta = 0.3 * np.ones(protocol.dimension)
    gradient = protocol.gradient(X, y, theta)
    expected = gradient * np.minimum(1, protocol.clip_norm / np.linalg.norm(gradient, axis=1, keepdims=True))
    aggregate = protocol.aggregate(protocol._randomize(X, y, 0, model(protocol, theta)))
    error = protocol.mean_gradient(aggregate) - expected.mean(axis=0)
    z = error / math.sqrt(protocol.randomizer.noise_variance / len(X))
    assert np.abs(z).max() < 4.5


@everyone
def test_the_aggregate_is_the_sum_of_the_reports(protocol):
    reports = protocol._randomize(*records(protocol), 0)
    whole = protocol.aggregate(reports)
    assert (whole.parts[protocol].sums == reports.astype(object).sum(axis=0)).all()
    decoded = protocol.randomizer.decode(reports).mean(axis=0)
    np.testing.assert_allclose(protocol.mean_gradient(whole), decoded, atol=1e-12)


@everyone
def test_rounds_do_not_share_noise(protocol):
    X, y = records(protocol, n=50)
    zero = np.zeros(protocol.dimension)
    first = protocol._randomize(X, y, 0, model(protocol, zero, 0))
    assert (first == protocol._randomize(X, y, 0, model(protocol, zero, 0))).all()
    nudged = zero + 1e-12  # the same gradients on the grid, so that only the noise can differ
    for other in (model(protocol, zero, 1), model(protocol, nudged, 0)):
        assert (first != protocol._randomize(X, y, 0, other)).mean() > 0.9
    moved = X.copy()
    moved[0] += 0.01
    assert (first[1:] != protocol._randomize(moved, y, 0, model(protocol, zero, 0))[1:]).mean() > 0.9
    assert (protocol._randomize(X, y, None) != protocol._randomize(X, y, None)).mean() > 0.9


# Worst-case neighbours: gradients of full length in opposite directions.
WORST = {"loss": "squared", "fit_intercept": False, "n_features": 2, "epsilon": 1.0}


class OverspendingSphere(GradientProtocol):
    """A faulty protocol that uses 1.25 times the stated budget."""

    @cached_property
    def randomizer(self):
        return Sphere(epsilon=1.25 * self.epsilon, n_features=self.dimension)


class QuietGaussian(Gaussian):
    """A faulty mechanism with 0.8 times the noise."""

    @property
    def scale(self):
        return 0.8 * super().scale


class WideGaussian(Gaussian):
    """A faulty mechanism that clips to norm 1.25 and adds the noise for norm 1."""

    def encode(self, x):
        return np.rint(1.25 * super().encode(np.asarray(x) / 1.25)).astype(np.int64)


class QuietProtocol(GradientProtocol):
    """A faulty protocol with too little noise."""

    @cached_property
    def randomizer(self):
        return QuietGaussian(epsilon=self.epsilon, delta=self.delta, n_features=self.dimension)


class WideProtocol(GradientProtocol):
    """A faulty protocol that clips to a larger norm than stated."""

    @cached_property
    def randomizer(self):
        return WideGaussian(epsilon=self.epsilon, delta=self.delta, n_features=self.dimension)


def audit_sphere(protocol):
    client, ends = GradientClient(protocol), np.array([[-1.0, 0.0], [1.0, 0.0]])

    def log_ratio(reports):
        there, here = (protocol.randomizer.log_prob(reports, np.tile(end, (len(reports), 1))) for end in ends)
        return here - there

    return audit_epsilon(lambda X: client.gradient(protocol.start(), X, np.ones(len(X))), *ends, n_reports=200_000,
                         statistic=log_ratio).epsilon_lower


def delta_from_means(cls):
    """Lower estimate of delta at epsilon from the difference of the mean reports of two neighbouring records.

    With an intercept, the gradient of the record (1, 0) has length 1.41 before clipping, and the sign of the response.
    """
    protocol = cls(**{**WORST, "fit_intercept": True}, delta=1e-5)
    client, X = GradientClient(protocol), np.tile([1.0, 0.0], (200_000, 1))
    reports = (client.gradient(protocol.start(), X, np.full(len(X), y)) for y in (1e300, -1e300))
    one, other = (part @ np.array([1.0, 0.0, 1.0]) / math.sqrt(2) for part in reports)
    sigma = np.concatenate([one - one.mean(), other - other.mean()]).std()
    return gaussian_delta(1.0, sigma * 1.007, abs(one.mean() - other.mean()) - 0.032 * sigma)


def test_audit_of_the_sphere_end_to_end():
    found = audit_sphere(GradientProtocol(**WORST, mechanism="sphere"))
    assert 0.9 < found <= 1.0
    assert audit_sphere(OverspendingSphere(**WORST, mechanism="sphere")) > 1.0


def test_audit_of_gaussian_noise_end_to_end():
    assert delta_from_means(GradientProtocol) <= 1e-5
    assert delta_from_means(QuietProtocol) > 2e-5
    assert delta_from_means(WideProtocol) > 2e-5


@pytest.mark.parametrize("changes, message", [
    ({"epsilon": 0}, "epsilon must be positive"), ({"delta": 2.0}, "delta must lie"),
    ({"data_norm": None}, "data_norm must be given"),
    ({"loss": "hinge"}, 'loss must be one of "logistic", "softmax", "squared"'),
    ({"mechanism": "laplace"}, 'mechanism must be one of "gaussian", "sphere"'),
    ({"clip_norm": 0}, "clip_norm must be"),
    ({"loss": "softmax", "classes": (1,)}, "at least two distinct labels"),
    ({"loss": "softmax", "classes": (1, [2])}, "classes must be"),
    ({"loss": "softmax", "classes": None}, "must be given"),
    ({"loss": "softmax", "classes": range(1000), "n_features": 4096}, "merge classes"),
    ({"classes": None}, "classes must be given"), ({"classes": (1, 2, 3)}, "two distinct labels"),
    ({"classes": (1, (2, 3))}, "two distinct labels"), ({"classes": (1, 1)}, "classes must be distinct"),
    ({"loss": "squared", "bounds_y": None}, "bounds_y must be given"),
    ({"n_features": 0}, "n_features must be"), ({"mechanism": []}, "mechanism must be"),
])
def test_parameters_are_checked_at_once(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        GradientProtocol(**changes)


def test_widths_of_the_softmax():
    for mechanism, padding in (("gaussian", 0), ("sphere", 1)):
        protocol = GradientProtocol(n_features=3, loss="softmax", classes=range(5), mechanism=mechanism)
        assert protocol.dimension == 16 and protocol.width == 16 + padding
        assert protocol.with_width(4 * 8 + padding).n_features == 7
    coef, intercept = protocol.natural(np.arange(16.0))
    assert coef.shape == (5, 3) and intercept.shape == (5,)
    assert np.abs(coef.sum(axis=0)).max() < 1e-12 and abs(intercept.sum()) < 1e-12


def test_models_survive_json_and_invalid_ones_are_refused():
    start = PROTOCOLS[0].start()
    sent = GradientModel(start.protocol_id, 7, (0.1, 1 / 3, -2e-300, 4.0))
    assert GradientModel.from_json(sent.to_json()) == sent
    client = GradientClient(PROTOCOLS[0].to_json())
    assert client.gradient(sent.to_json(), [0.1, 0.2, 0.3], 1).shape == (4,)
    for text in ("", "[]", "{}", '{"protocol_id": "a", "round": 0, "theta": ["x"]}', None):
        with pytest.raises(InvalidParameterError, match="not a model"):
            GradientModel.from_json(text)
    with pytest.raises(InvalidParameterError, match="not finite"):
        GradientModel.from_json(json.dumps({"protocol_id": "a", "round": 0, "theta": [math.nan]}))
    with pytest.raises(InvalidParameterError, match="another protocol"):
        client.gradient(PROTOCOLS[2].start(), [0.1, 0.2, 0.3], 1)


def test_clients_refuse_other_protocols_and_missing_privacy():
    with pytest.raises(TypeError, match="ValueProtocol"):
        GradientClient(ValueProtocol())
    with pytest.raises(InvalidParameterError, match="no privacy"):
        GradientClient(GradientProtocol(epsilon=np.inf).to_json())


def test_one_step_by_hand():
    protocol = GradientProtocol(epsilon=np.inf, n_features=2, fit_intercept=False)
    X, y = np.array([[0.5, 0.0], [0.0, -1.0]]), [1, -1]
    server = GradientServer(protocol, learning_rate="constant", eta0=2.0)
    server.step(protocol.privatize(X, y, model=server.round()))
    assert server.theta == pytest.approx([0.25, 0.5], abs=1e-4)  # the gradients are -x/2 and x/2
    gradient = protocol.gradient(X, y, server.theta).mean(axis=0)
    before = server.theta
    server.step(protocol.privatize(X, y, model=server.round()))
    assert server.theta == pytest.approx(before - 2 * gradient, abs=1e-4)
    assert server.loss_curve == pytest.approx([0.0, gradient @ before], abs=1e-4)


def test_schedules_by_hand():
    protocol = GradientProtocol(n_features=3)
    steps = {name: GradientServer(protocol, learning_rate=name, eta0=0.3, n_rounds=9).step_size
             for name in ("constant", "invscaling", "optimal")}
    variance = 1 + 4 * protocol.randomizer.noise_variance
    assert steps["constant"](5, 10) == 0.3
    assert steps["invscaling"](16, 10) == pytest.approx(0.075)
    assert steps["optimal"](1, 10) == pytest.approx(0.3 / math.sqrt(9 * variance / 10))
    assert steps["optimal"](25, 10) == pytest.approx(0.3 / math.sqrt(25 * variance / 10))
    assert steps["optimal"](1, 10**9) == pytest.approx(1 / protocol.smoothness) == pytest.approx(2.0)
    assert steps["optimal"](1, 0) == 0.0


def test_averages_by_hand():
    protocol = GradientProtocol(epsilon=np.inf, n_features=1, fit_intercept=False)
    X, y = np.array([[1.0], [0.5]]), [1, 1]
    last, mean, late = (GradientServer(protocol, learning_rate="constant", average=average)
                        for average in (False, True, 5))
    seen = []
    for _ in range(4):
        for server in (last, mean, late):
            server.step(protocol.privatize(X, y, model=server.round()))
        seen.append(last.theta[0])
    assert last.result()[0][0] == seen[-1] and mean.theta[0] == seen[-1]
    assert mean.result()[0][0] == pytest.approx(np.mean(seen))
    assert late.result()[0][0] == pytest.approx(np.mean(seen[2:]))  # from the sixth report on


@pytest.mark.parametrize("changes, message", [
    ({"learning_rate": "adaptive"}, "learning_rate must be one of"), ({"eta0": 0}, "eta0 must be positive"),
    ({"average": 0.5}, "average must be"), ({"n_rounds": 0}, "n_rounds must be"),
])
def test_the_server_checks_its_parameters(changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        GradientServer(PROTOCOLS[0], **changes)


@pytest.mark.parametrize("mechanism", ["gaussian", "sphere"])
@pytest.mark.parametrize("loss, classes", [("logistic", ("no", "yes")), ("softmax", ("no", "yes", "never"))])
def test_rounds_with_absent_and_hostile_clients(loss, classes, mechanism):
    rng = np.random.default_rng(0)
    # The noise has no seed. At epsilon 20 every assertion below is five standard deviations from failing.
    protocol = GradientProtocol(epsilon=20.0, mechanism=mechanism, n_features=2, loss=loss, classes=classes)
    server, client = GradientServer(protocol, n_rounds=8), GradientClient(protocol.to_json())
    hostile = [None, "nonsense", [1.5, 2.5], [2**40] * protocol.width, [10**30] * protocol.width,
               np.full(protocol.width, 2**64 - 1, dtype=np.uint64), [1] * (protocol.width + 1), [[1, 2], [3]],
               np.full(protocol.width, np.nan), np.full(protocol.width, 2**62)]
    for _ in range(8):
        sent = server.round().to_json()
        X = rng.uniform(-0.7, 0.7, size=(300, 2))
        people = [(x, "yes" if x[0] > x[1] else "no") for x in X if rng.uniform() < 0.8]  # a fifth do not answer
        answers = [client.gradient(sent, x, label) for x, label in people] + hostile
        rng.shuffle(order := list(range(len(answers))))
        server.step([answers[i] for i in order], on_invalid="drop")
    assert server.n_rejected == 8 * len(hostile) and 8 * 200 < server.n_reports < 8 * 280
    coef, intercept = server.result()
    if coef.ndim == 2:
        assert intercept[2] < min(intercept[:2])  # a label that nobody has
        coef, intercept = coef[1] - coef[0], intercept[1] - intercept[0]
    assert coef[0] > 0.5 and coef[1] < -0.5 and abs(intercept) < 1
    assert len(server.loss_curve) == server.n_rounds_done == 8 and np.mean(server.loss_curve[2:]) < 0


def test_hostile_reports_leave_the_model_unchanged():
    server = GradientServer(PROTOCOLS[0])
    for reports in ([[1] * 4, None], [[1] * 4, [2**62] * 4], np.full((3, 4), 2**40)):
        with pytest.raises(InvalidReportError, match='on_invalid="drop"'):
            server.step(reports)
    assert server.n_rounds_done == 0 and (server.theta == 0).all()
    server.step([None], on_invalid="drop").step(np.empty((0, 4), dtype=int)).step([])
    assert (server.n_rounds_done, server.n_reports, server.n_rejected) == (3, 0, 1)
    assert (server.theta == 0).all() and server.loss_curve == [0.0, 0.0, 0.0]
    with pytest.raises(InvalidParameterError, match="on_invalid"):
        server.step([], on_invalid="ignore")
