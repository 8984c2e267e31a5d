"""Compare the influence bound with the effect of forged reports."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from skldp import LDPBayesLinearRegression, LDPGaussian, LDPHistogram
from skldp.exceptions import InvalidParameterError
from skldp.models.categories._attribute_marginals import marginal_models
from skldp.protocols import CategoryProtocol, MomentProtocol, RecordProtocol
from tests.estimators.test_streams import CASES, cases


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def shift(estimator, reports, fakes, name):
    """Shift of a posterior mean caused by adding forged reports."""
    before = clone(estimator).fit_reports(reports).posterior_.mean()[name]
    return clone(estimator).fit_reports(np.concatenate([reports, fakes])).posterior_.mean()[name] - before


def test_the_bound_for_randomised_response_is_close(rng):
    model = LDPHistogram(categories=range(4), mechanism="rr", epsilon=1.0, inference="laplace", random_state=0)
    reports = model.privatize(rng.choice(4, p=[0.4, 0.3, 0.2, 0.1], size=(20_000, 1)))
    bound = model.fit_reports(reports).influence_bound(200)["frequencies"]
    moved = [shift(model, reports, np.full((200, 1), k), "frequencies")[k] for k in range(4)]
    np.testing.assert_allclose(moved, bound, rtol=0.2)
    # One more report in N moves the unbiased estimate of a frequency by (1 - its share of reports) / N (p - q).
    mechanism = model.protocol_.randomizer
    p, q = mechanism.near_probability, (1 - mechanism.near_probability) / 3
    share = q + (p - q) * model.frequencies_
    np.testing.assert_allclose(bound, 200 * (1 - share) / (20_000 * (p - q)), rtol=0.2)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skldp.exceptions.ModelMisfitWarning")  # the forged reports are noticed
def test_the_bound_for_a_mean_is_close(rng):
    model = LDPGaussian(epsilon=1.0, bounds=(-4, 4), inference="laplace", random_state=0)
    reports = model.privatize(rng.normal(0.5, 1.0, size=(20_000, 1)))
    bound = model.fit_reports(reports).influence_bound(200)["mean"]
    low, high = model.protocol_.randomizer.clamp
    moved = [shift(model, reports, np.full((200, 1), int(cell)), "mean") for cell in np.linspace(low, high, 9)]
    assert 0.75 * bound < np.max(np.abs(moved)) < 1.15 * bound


def test_the_bound_for_many_categories_is_close(rng):
    d = 2100
    weights = 1 / np.arange(1, d + 1)
    model = LDPHistogram(categories=range(d), mechanism="block", epsilon=3.0, random_state=0)
    reports = model.privatize(rng.choice(d, p=weights / weights.sum(), size=(50_000, 1)))
    bound = model.fit_reports(reports).influence_bound(100)["frequencies"]
    mechanism = model.protocol_.randomizer
    cells = np.arange(mechanism.n_counts)
    for k in (0, 3, 40):
        near = cells[mechanism.log_prob(cells, np.full(len(cells), k)) > np.log(mechanism.far_probability) + 1]
        moved = shift(model, reports, rng.choice(near, size=(100, 1)).astype(reports.dtype), "frequencies")[k]
        assert 0.7 * bound[k] < moved < 1.15 * bound[k]
    np.testing.assert_allclose(model.influence_bound(300)["frequencies"], 3 * bound)


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_the_bound_for_several_attributes_is_close(epsilon, rng):
    lists = [["a", "b", "c", "d"], [0, 1], ["x", "y", "z"]]
    model = LDPHistogram(categories=lists, epsilon=epsilon, concentration=1.0, random_state=0)
    codes = [rng.choice(len(part), p=np.arange(1, len(part) + 1) / sum(range(len(part) + 1)), size=20_000)
             for part in lists]
    reports = model.privatize(np.stack([np.array(part, object)[code] for part, code in zip(lists, codes)], axis=1))
    bound, protocol = model.fit_reports(reports).influence_bound(100), model.protocol_
    assert [len(values) for values in bound.values()] == [4, 2, 3] and list(bound)[1] == "frequencies[1]"
    scores = [norm.ppf((rng.permuted(np.tile(np.arange(400), (size, 1)), axis=1).T + 0.5) / 400) for size in (4, 2, 3)]

    def means(aggregate):
        """Posterior means of the frequencies of all attributes."""
        models = marginal_models(aggregate, 1.0)
        return [one.by_marginals(part)["frequencies"].mean(axis=0) for one, part in zip(models, scores)]

    aggregate = model.aggregate(reports)
    before, moved = means(aggregate), [np.zeros(size) for size in (4, 2, 3)]
    for table, mechanism in enumerate(protocol.randomizer):
        for cell in range(mechanism.n_counts) if protocol.shares[table] else ():
            forged = np.tile(np.array([[table, cell]], dtype=reports.dtype), (100, 1))
            after = means(aggregate + model.aggregate(forged))
            moved = [np.maximum(most, np.abs(new - old)) for most, new, old in zip(moved, after, before)]
    for most, largest in zip(moved, bound.values()):
        assert (most < 1.15 * largest).all() and (most > 0.5 * largest).all()


@pytest.mark.parametrize("mechanism", ["subset", "oue"])
def test_the_bound_for_bits_is_close(mechanism, rng):
    model = LDPHistogram(categories=range(6), mechanism=mechanism, epsilon=1.0, likelihood="counts", random_state=0)
    reports = model.privatize(rng.choice(6, p=[0.4, 0.2, 0.1, 0.1, 0.1, 0.1], size=(20_000, 1)))
    bound = model.fit_reports(reports).influence_bound(200)["frequencies"]
    # Forged reports that contain the first category, and as many others as a valid report needs.
    ones = model.protocol_.randomizer.ones_range[0] if mechanism == "subset" else 1
    fake = np.zeros((200, 6), dtype=np.uint8)
    fake[:, 0] = 1
    if ones > 1:
        fake[:, 1:ones] = 1
    moved = shift(model, reports, fake, "frequencies")[0]
    assert 0.6 * bound[0] < moved < 1.1 * bound[0]


@pytest.mark.parametrize("options", [{}, {"mechanism": "gaussian"}, {"mechanism": "records"}])
def test_forged_records_do_not_exceed_the_bound_of_a_coefficient(options, rng):
    model = LDPBayesLinearRegression(epsilon=3.0, inference="laplace", random_state=0, **options)
    X, y = 0.4 * rng.normal(size=(20_000, 2)), np.zeros(20_000)
    y[:] = 0.5 * X[:, 0] + 0.2 * rng.normal(size=20_000)
    reports = model.privatize(X, y)
    bound = model.fit_reports(reports).influence_bound(100)["coef"]
    for record, response in (([1.0, 0.0], 1.0), ([-0.7, 0.7], 1.0), ([0.0, 1.0], -1.0)):
        fakes = clone(model).set_params(epsilon=20.0).protocol(2)._randomize([record] * 100, [response] * 100, 1)
        moved = np.abs(shift(model, reports, fakes.astype(reports.dtype), "coef"))
        assert (moved < bound).all()


def test_a_sphere_of_forged_reports_attains_the_bound(rng):
    """The worst report is along the slopes; it shows that the bound is tight."""
    model = LDPBayesLinearRegression(epsilon=3.0, mechanism="sphere", inference="laplace", random_state=0)
    X = 0.4 * rng.normal(size=(20_000, 2))
    reports = model.privatize(X, 0.5 * X[:, 0] + 0.2 * rng.normal(size=20_000))
    bound = model.fit_reports(reports).influence_bound(200)["coef"][0]
    protocol, theta = model.protocol_, model.posterior_.warm_starts[0].draws
    tally, = model.aggregate_.parts.values()
    aggregates = [type(model.aggregate_)({protocol: type(tally)(tally.n_reports, tally.sums + probe)})
                  for probe in protocol.directions()]
    before = model._models(model.aggregate_)[0]
    coef = before.constrain(theta)["coef"][:, 0]
    effects = np.array([model._models(one)[0].in_coordinates_of(before).log_density(theta) for one in aggregates])
    effects -= before.log_density(theta)
    slopes = effects @ (coef - coef.mean()) / len(coef)
    worst = np.rint(2**14 * slopes / np.linalg.norm(slopes)).astype(reports.dtype)
    moved = shift(model, reports, np.repeat(worst[None], 200, axis=0), "coef")[0]
    assert 0.7 * bound < moved < 1.15 * bound


@cases
def test_every_estimator_has_a_bound(name):
    estimator, data = clone(CASES[name][0]), CASES[name][1]
    estimator.fit(*data)
    bounds = estimator.influence_bound(5)
    for parameter, mean in estimator.posterior_.mean().items():
        assert bounds[parameter].shape == mean.shape
        assert np.isfinite(bounds[parameter]).all() and (bounds[parameter] > 0).all()


def test_the_bound_is_proportional_to_the_number_of_forged_reports():
    estimator = clone(CASES["histogram, counts"][0]).fit(*CASES["histogram, counts"][1])
    np.testing.assert_allclose(estimator.influence_bound(10)["frequencies"],
                               2 * estimator.influence_bound(5)["frequencies"])


def brute(protocol, slopes, reports):
    """Values of linear functions of the sums over many reports, by their slopes along the probes."""
    probes = np.array([np.ravel(probe).astype(float) for probe in protocol.directions()])
    sums = np.array([np.ravel(protocol._tally(report[None]).sums).astype(float) for report in reports])
    places = sums @ np.linalg.pinv(probes)
    return places @ slopes.T


@pytest.mark.parametrize("protocol", [
    CategoryProtocol(categories=tuple(range(5)), mechanism="subset", epsilon=0.3),
    CategoryProtocol(categories=tuple(range(5)), mechanism="oue", epsilon=0.3),
    CategoryProtocol(categories=tuple(range(5)), mechanism="rr"),
    MomentProtocol(n_features=2), MomentProtocol(n_features=2, mechanism="gaussian"), RecordProtocol(n_features=2),
])
def test_the_reach_of_linear_functions(protocol, rng):
    slopes = rng.normal(size=(4, len(list(protocol.directions()))))
    low, high = protocol.extreme_effects(slopes)
    if isinstance(protocol, CategoryProtocol):
        every = np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T if protocol.sends_bits else np.arange(5)[:, None]
        reports = every[protocol.check(every)]
        values = brute(protocol, slopes, reports)
        np.testing.assert_allclose(values.min(axis=0), low)
        np.testing.assert_allclose(values.max(axis=0), high)
    else:
        reports = protocol._randomize(rng.normal(size=(500, 2)), rng.normal(size=500), 0)
        values = brute(protocol, slopes, reports)
        assert (values >= 1.01 * low).all() and (values <= 1.01 * high).all()


def test_invalid_numbers_raise():
    with pytest.raises(NotFittedError):
        LDPGaussian().influence_bound(1)
    model = LDPGaussian(inference="laplace", random_state=0).fit(np.zeros((10, 1)))
    assert model.influence_bound(0)["mean"] == 0
    for bad in (-1, 1.5, "many"):
        with pytest.raises(InvalidParameterError, match="n_fakes"):
            model.influence_bound(bad)
