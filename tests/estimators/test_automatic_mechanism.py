"""mechanism="auto": the sphere or the axis, by the budget and the number of features."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from skldp import LDPPCA, LDPBayesLinearRegression, LDPBayesLogisticRegression, LDPCovariance, Moments, RoundServer
from skldp._validation._limits import MAX_ENTRIES
from skldp.exceptions import InvalidReportError
from skldp.mechanisms import Axis, Sphere
from skldp.protocols import Aggregate, MomentProtocol, Protocol, save_reports

RNG = np.random.default_rng(0)
ESTIMATORS = {
    "linear": LDPBayesLinearRegression(inference="laplace", random_state=0),
    "two responses": LDPBayesLinearRegression(inference="laplace", random_state=0, bounds_y=[(-1, 1), (-2, 3)]),
    "logistic": LDPBayesLogisticRegression(inference="laplace", random_state=0, n_rounds=1, classes=[0, 1]),
    "covariance": LDPCovariance(inference="laplace", random_state=0),
    "components": LDPPCA(inference="laplace", random_state=0),
    "own weight": LDPBayesLinearRegression(inference="laplace", random_state=0,
                                           mechanism=Moments(intercept_weight=0.5)),
    "centred": LDPBayesLinearRegression(inference="laplace", random_state=0, fit_intercept=False),
}
every = pytest.mark.parametrize("name", ESTIMATORS)


def estimator(name, epsilon):
    return clone(ESTIMATORS[name]).set_params(epsilon=epsilon)


def records(name, n, d):
    """Return X and y with coefficients 1, or labels."""
    X = RNG.normal(scale=0.5 / np.sqrt(d), size=(n, d))
    line = X[:, 0] + 0.1 * RNG.normal(size=n)
    return X, {"two responses": np.column_stack([line, 2 * line]), "logistic": (line > 0).astype(int)}.get(name, line)


def few_reports(name, epsilon, d):
    model = estimator(name, epsilon)
    return model, model.privatize(*records(name, 8, d))


@every
def test_low_budgets_have_the_sphere_and_high_ones_the_axis(name):
    assert [estimator(name, epsilon).protocol(6).mechanism for epsilon in (0.1, 4.0)] == ["sphere", "axis"]
    assert estimator(name, 1.0).protocol(50).mechanism == "axis", "where a report of the sphere is long"
    assert estimator(name, np.inf).protocol(6).mechanism == "sphere"
    for kind in ("sphere", "axis", "gaussian"):
        assert estimator(name, 4.0).set_params(mechanism=kind).protocol(6).mechanism == kind


@every
def test_the_published_protocol_names_the_mechanism(name):
    protocol = estimator(name, 4.0).protocol(6)
    assert json.loads(protocol.to_json())["mechanism"] == "axis"
    assert Protocol.from_json(protocol.to_json()) == protocol
    assert protocol.with_epsilon(0.1).mechanism == "axis", "a published protocol keeps its mechanism"


def test_the_word_is_resolved_when_a_protocol_is_made():
    options = {"n_features": 6, "mechanism": "auto"}
    assert [MomentProtocol(epsilon=epsilon, **options).mechanism for epsilon in (0.1, 4.0)] == ["sphere", "axis"]
    assert MomentProtocol(n_features=6, epsilon=4.0).mechanism == "sphere", "the default of a protocol, as in files"


@every
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("d", [1, 2, 7, 10, 33, 90])
def test_the_number_of_features_is_found_from_the_reports(name, epsilon, d):
    model, reports = few_reports(name, epsilon, d)
    expected = model.protocol(d)
    assert model.aggregate(reports).protocol == expected
    assert model.aggregate([reports[:0], reports]).protocol == expected, "a stream whose first chunk is empty"


def ambiguous(name, epsilon):
    """Return numbers of features of the sphere and the axis that give reports of the same width."""
    model = estimator(name, epsilon)
    short = clone(model).set_params(mechanism="axis").protocol(1)
    for d in range(1, 30):
        both = model.protocol(d), model.protocol(short.with_width(model.protocol(d).width).n_features)
        if both[0].width == both[1].width and [one.mechanism for one in both] == ["sphere", "axis"]:
            return [one.n_features for one in both]
    raise AssertionError("each of these widths belongs to one number of features")


@pytest.mark.parametrize("epsilon", [20.0, np.inf])
def test_no_report_is_valid_for_both_mechanisms(epsilon):
    """Reports of the axis are shorter than those of the sphere; the dither, and so the window, is that of any epsilon.

    Windows grow with the number of entries, and are still apart at the largest one.
    """
    for n_features in (1, 10, 1000, MAX_ENTRIES):
        options = {"epsilon": epsilon, "n_features": n_features}
        sphere, axis = Sphere(**options), Axis(**options)
        assert axis.longest < sphere.resolution - sphere._length_tolerance


@pytest.mark.parametrize("name", ["linear", "logistic", "covariance"])
def test_reports_of_the_same_width_are_told_apart(name, tmp_path):
    epsilon = 1.0
    for place, d in enumerate(ambiguous(name, epsilon)):
        model, reports = few_reports(name, epsilon, d)
        assert model.protocol(d).mechanism == ("sphere", "axis")[place]
        expected = model.protocol(d)
        other = few_reports(name, epsilon, ambiguous(name, epsilon)[1 - place])[1]
        hostile = np.concatenate([other[:2], reports, other[:1]])
        assert model.aggregate(hostile, on_invalid="drop").protocol == expected
        assert model.aggregate(hostile, on_invalid="drop").n_rejected == 3
        with pytest.raises(InvalidReportError, match="3 of 11 reports"):
            model.aggregate(hostile)
        save_reports(tmp_path / "reports.npz", reports, expected)
        assert model.aggregate(tmp_path / "reports.npz").protocol == expected
        lines = (json.dumps({"protocol": expected.id, "submission": f"{number:032x}", "report": row.tolist()})
                 for number, row in enumerate(reports))
        (tmp_path / "reports.jsonl").write_text("\n".join(["{", *lines]))
        assert model.aggregate(tmp_path / "reports.jsonl", "drop").n_reports == 8
        # Another estimator with the mechanism named reads only its own.
        named = clone(model).set_params(mechanism=expected.mechanism)
        assert named.aggregate(reports).protocol == expected
        no_rows = np.empty((0, expected.width), dtype=np.int16)
        with pytest.raises(InvalidReportError, match="do not show which. Pass est.protocol"):
            model.aggregate(no_rows)
        assert model.aggregate(expected.aggregate(no_rows)).protocol == expected
        assert named.aggregate(no_rows).protocol.n_features == d


def test_blocks_of_dask_arrays_are_read_only_if_the_width_does_not_tell():
    dask = pytest.importorskip("dask")
    array, read = pytest.importorskip("dask.array"), []

    def block(rows):
        read.append(len(rows))
        return rows

    for place, d in enumerate(ambiguous("linear", 1.0)):
        model, reports = few_reports("linear", 1.0, d)
        blocks = [array.from_delayed(dask.delayed(block)(part), part.shape, part.dtype)
                  for part in (reports[:0], reports[:3], reports[3:])]
        with dask.config.set(scheduler="synchronous"):
            assert model.aggregate(array.concatenate(blocks)).protocol == model.protocol(d)
    read.clear()
    model, reports = few_reports("linear", 1.0, 1)
    with dask.config.set(scheduler="synchronous"):
        model.aggregate(array.from_delayed(dask.delayed(block)(reports), reports.shape, reports.dtype))
    assert read == [8]


@every
def test_personal_budgets_have_mechanisms_of_their_own(name):
    """Half of the clients at epsilon 0.1 and half at 4: each cohort has the protocol of its budget."""
    X, y = records(name, 4000, 3)
    budgets = np.where(np.arange(len(X)) % 2, 4.0, 0.1)
    model = estimator(name, 1.0).fit(X, y, sample_epsilon=budgets)
    expected = {estimator(name, epsilon).protocol(3) for epsilon in (0.1, 4.0)}
    assert set(model.aggregate_.parts) == expected
    assert {part.mechanism for part in expected} == {"sphere", "axis"}
    again = estimator(name, 1.0).fit_reports(Aggregate.from_json(model.aggregate_.to_json()))
    assert {key: values.tolist() for key, values in again.posterior_.mean().items()} == {
        key: values.tolist() for key, values in model.posterior_.mean().items()}
    own = estimator(name, 1.0).set_params(mechanism="sphere").fit(X, y, sample_epsilon=budgets)
    assert {part.mechanism for part in own.aggregate_.parts} == {"sphere"}, "a mechanism that was chosen is kept"


def test_the_posterior_of_mixed_budgets_is_right():
    """Epsilon 0.5 and 4 in one fit: around the truth, and as narrow as the information of both."""
    n, coef = 60_000, np.array([0.6, -0.4])
    X = RNG.normal(scale=0.25, size=(n, 2))
    y = X @ coef + 0.2 + RNG.normal(scale=0.2, size=n)
    model = LDPBayesLinearRegression(inference="laplace")
    budgets, z, widths = np.where(np.arange(n) % 2, 4.0, 0.5), [], []
    for seed in range(30):
        both = clone(model).set_params(random_state=seed).fit(X, y, sample_epsilon=budgets)
        z.append((both.coef_ - coef) / both.coef_std_)
        widths.append(both.coef_std_)
    assert {part.mechanism for part in both.aggregate_.parts} == {"sphere", "axis"}
    # 60 correlated standard normal numbers, most of whose variance is noise.
    assert 0.75 < np.sqrt(np.mean(np.square(z))) < 1.3
    # The information of both cohorts adds up.
    precision = sum(np.mean([clone(model).set_params(random_state=seed, epsilon=epsilon).fit(
        X[budgets == epsilon], y[budgets == epsilon]).coef_std_ for seed in range(5)], axis=0)**-2.0
        for epsilon in (0.5, 4.0))
    np.testing.assert_allclose(np.mean(widths, axis=0), precision**-0.5, rtol=0.1)


def test_personal_budgets_in_rounds():
    X, y = records("logistic", 6000, 3)
    budgets = np.where(np.arange(len(X)) % 2, 4.0, 0.1)
    model = estimator("logistic", 1.0).set_params(n_rounds=3).fit(X, y, sample_epsilon=budgets)
    mechanisms = [{part.mechanism for part in aggregate.parts} for _, aggregate in model.rounds_]
    assert mechanisms == [{"sphere", "axis"}, {"sphere"}, {"sphere"}]
    again = estimator("logistic", 1.0).set_params(n_rounds=3).fit_reports(model.rounds_)
    assert (again.coef_ == model.coef_).all()


def test_a_server_of_rounds_adds_cohorts_of_its_protocol():
    X, y = records("logistic", 1200, 3)
    server = RoundServer(estimator("logistic", 4.0).set_params(n_rounds=2), n_features=3)
    for epsilon, rows in ((4.0, slice(0, 600)), (8.0, slice(600, None))):
        cohort = server.round().with_epsilon(epsilon)
        assert cohort.mechanism == "axis"
        server.add(cohort.aggregate(cohort._randomize(X[rows], y[rows], 0)))
    assert server.close().round().mechanism == "sphere"
