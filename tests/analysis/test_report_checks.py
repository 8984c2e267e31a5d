"""Report checks detect crude forgeries, and accept honest collections for any records."""

import itertools
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone

from skldp import LDPGaussian, LDPHistogram, ReportCheck
from skldp.analysis.report_checks import _bounds, _check, _laws, _spikes
from skldp.analysis.report_checks._check import WARNING_LEVEL, check_aggregate
from skldp.exceptions import ImplausibleReportsWarning, InvalidParameterError, InvalidReportError, StatisticalWarning
from skldp.mechanisms import Gaussian, Laplace, Sphere, SquareWave, SubsetSelection, UnaryEncoding
from skldp.protocols import (
    CategoryProtocol,
    CovarianceProtocol,
    GradientProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    RecordProtocol,
    SampledValueProtocol,
    ValueProtocol,
)
from tests.estimators.test_streams import CASES, cases, chunked, made

TINY = {
    "square wave": (ValueProtocol(epsilon=1.0, bounds=(0, 4), n_levels=4, window=0.25), np.arange(5.0), 4),
    "square wave, wider": (ValueProtocol(epsilon=3.0, bounds=(0, 2), n_levels=2, window=1.0), np.arange(3.0), 4),
    "laplace": (ValueProtocol(epsilon=12.0, bounds=(0, 1), n_levels=1, mechanism="laplace"), np.arange(2.0), 3),
    "two columns": (ValueProtocol(epsilon=2.0, bounds=(0, 1), n_levels=1, window=0.0, n_features=2),
                    np.array(list(itertools.product([0.0, 1.0], repeat=2))), 4),
    "one of two columns": (SampledValueProtocol(epsilon=1.0, bounds=(0, 1), n_levels=1, window=0.0),
                           np.array(list(itertools.product([0.0, 1.0], repeat=2))), 5),
    "rr": (CategoryProtocol(categories=(0, 1, 2), mechanism="rr"), np.arange(3), 7),
    "block": (CategoryProtocol(categories=(0, 1, 2), epsilon=0.2, mechanism="block", design=(7, 3)), np.arange(3), 5),
    "subset": (CategoryProtocol(categories=(0, 1, 2, 3), epsilon=0.5), np.arange(4), 5),
    "subset, certain": (CategoryProtocol(categories=(0, 1, 2, 3), epsilon=5.0), np.arange(4), 5),
    "oue": (CategoryProtocol(categories=(0, 1, 2), mechanism="oue"), np.arange(3), 4),
}
VECTORS = {
    "moments, sphere": MomentProtocol(n_features=2),
    "moments, axis": MomentProtocol(n_features=2, mechanism="axis", epsilon=3.0),
    "moments, gaussian": MomentProtocol(n_features=2, mechanism="gaussian"),
    "covariance, sphere": CovarianceProtocol(n_features=2),
    "covariance, gaussian": CovarianceProtocol(n_features=2, mechanism="gaussian"),
    "records": RecordProtocol(n_features=2, epsilon=8.0), "labelled": LabelRecordProtocol(n_features=2, epsilon=8.0),
    "gradients": GradientProtocol(n_features=2, mechanism="sphere"),
    "gradients, gaussian": GradientProtocol(n_features=2),
}


def every_report(protocol):
    """All valid reports of a tiny protocol."""
    if isinstance(protocol, CategoryProtocol):
        values = (0, 1) if protocol.sends_bits else range(protocol.randomizer.n_counts)
    else:
        values = range(protocol.randomizer.clamp[0], protocol.randomizer.clamp[1] + 1)
    rows = np.array(list(itertools.product(values, repeat=protocol.width)))
    return rows[protocol.check(rows)]


def probabilities(protocol, records):
    """Probabilities of all reports given each record."""
    reports, mechanism = every_report(protocol), protocol.randomizer
    if isinstance(protocol, SampledValueProtocol):
        given = mechanism.log_prob(protocol.reported(reports)[:, 0], records[:, reports[:, 0]])
        log_prob = given - math.log(protocol.n_features)
    elif isinstance(protocol, ValueProtocol):
        records = records.reshape(len(records), -1)
        log_prob = mechanism.log_prob(reports[None], records[:, None]).sum(axis=2)
    else:
        rows = reports if protocol.sends_bits else reports[:, 0]
        log_prob = np.array([mechanism.log_prob(rows, np.full(len(rows), record)) for record in records])
    return np.exp(log_prob)


def largest_excess(protocol, records, n, p_values_of):
    """Largest ratio P(p-value <= a) / a over data sets, tests and levels a."""
    reports, table = every_report(protocol), probabilities(protocol, records)
    np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-8)
    outcomes = np.array(list(itertools.product(range(len(reports)), repeat=n)))
    kinds, kind = np.unique(np.sort(outcomes, axis=1), axis=0, return_inverse=True)
    p_values = np.array([p_values_of(protocol, reports[rows]) for rows in kinds])
    worst = 0.0
    for data in itertools.combinations_with_replacement(range(len(table)), n):
        probability = np.ones(1)
        for record in data:
            probability = np.multiply.outer(probability, table[record]).ravel()
        # Sum over the orders of the reports.
        mass = np.bincount(kind.ravel(), weights=probability, minlength=len(kinds))
        for column in p_values.T:
            order = np.argsort(column)
            reached, level = np.cumsum(mass[order]), column[order]
            last = np.append(level[1:] > level[:-1], True) & (level < 1)  # equal p-values are counted together
            worst = max(worst, (reached[last] / np.maximum(level[last], 1e-300)).max(initial=0.0))
    return worst


def each_test(protocol, rows):
    """Return the p-value of each test and the combined one."""
    tally, = protocol.aggregate(rows).parts.values()
    findings = _check._findings(protocol, tally, rows)
    return [*(min(one.p_value, 1.0) for one in findings), _check._combined(findings).p_value]


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_p_values_are_valid_for_every_data_set(name):
    assert 0 < largest_excess(*TINY[name], each_test) <= 1 + 1e-6


@pytest.mark.parametrize("name", ["square wave", "laplace", "subset", "oue"])
def test_a_bound_of_half_the_probability_is_detected(name, monkeypatch):
    protocol, records, n = TINY[name]
    pristine = _laws.interval_probabilities

    def mutant(mechanism, low, high):
        least, most = pristine(mechanism, low, high)
        return least, most / 2

    def alone(protocol, rows):
        """p-value of each cell or bit without correction, which could hide an error."""
        n = len(rows)
        if isinstance(protocol, ValueProtocol):
            cells = np.unique(every_report(protocol)).astype(float)
            most = _laws.interval_probabilities(protocol.randomizer, cells, cells + 1)[1]
            return _bounds.at_least((rows[:, :1] == cells).sum(axis=0), n, most)
        return _bounds.at_least(rows.sum(axis=0), n, protocol.randomizer.p * share)

    share = 1.0
    assert largest_excess(protocol, records, n, alone) <= 1 + 1e-6
    monkeypatch.setattr(_laws, "interval_probabilities", mutant)
    share = 0.5
    assert largest_excess(protocol, records, n, alone) > 1.5


@pytest.mark.parametrize("name", VECTORS)
def test_tests_of_vectors_are_valid(name):
    """Records at the boundary of the domain, where noise alone can move the mean outside."""
    protocol, rng = VECTORS[name], np.random.default_rng(0)
    found = []
    for seed in range(150):
        n = (1, 2, 30)[seed % 3]
        X, y = np.tile([1.0, 0.0], (n, 1)), np.ones(n)
        if seed % 2:
            X, y = 3 * rng.normal(size=(n, 2)), np.sign(rng.normal(size=n))
        found.append(each_test(protocol, protocol._randomize(X, y, seed)))
    found = np.array(found)
    for level in (0.05, 0.3, 0.5):
        alarms = (found <= level).sum(axis=0)
        assert (stats.binom.sf(alarms - 1, len(found), level) > 1e-4).all()


def test_the_tails_of_counts():
    k = np.arange(21)
    np.testing.assert_allclose(_bounds.at_least(k, 20, 0.3), stats.binom.sf(k - 1, 20, 0.3), atol=1e-14)
    np.testing.assert_allclose(_bounds.at_most(k, 20, 0.3), stats.binom.cdf(k, 20, 0.3), atol=1e-14)
    assert _bounds.at_least(21, 20, 0.3) == 0 and _bounds.at_least(0, 20, 0.0) == 1
    assert _bounds.at_most(20, 20, 1.0) == 1


@pytest.mark.parametrize("n_values", [3, 6])
def test_bounds_on_equal_reports_hold_for_uniform_reports(n_values):
    n = 6
    outcomes = np.array(list(itertools.product(range(n_values), repeat=n)))
    counts = np.array([np.bincount(row, minlength=n_values) for row in outcomes])
    most, repeats = counts.max(axis=1), n - (counts > 0).sum(axis=1)
    for k in range(n + 1):
        for log_possible in (math.log(n_values), math.inf):
            bound = math.exp(_bounds.log_most_equal(k, n, -math.log(n_values), log_possible))
            assert (most >= k).mean() <= bound + 1e-12
        assert (repeats >= k).mean() <= _bounds.repeats_p_value(k, n, -math.log(n_values)) + 1e-12
    assert _bounds.log_most_equal(n, n, -math.log(6), math.log(6)) < math.log(1e-3)
    assert abs(_bounds.expected_repeats(n, -math.log(7)) - (0 + 1 + 2 + 3 + 4 + 5) / 7) < 1e-9


def test_bounds_on_sums_hold():
    n, own, other = 30, 0.5, 0.2
    law = np.convolve(stats.binom.pmf(np.arange(n + 1), n, own), stats.binom.pmf(np.arange(3 * n + 1), 3 * n, other))
    for ones in range(len(law)):
        tail = law[ones:].sum() if ones >= n * (own + 3 * other) else law[:ones + 1].sum()
        assert tail <= _bounds.ones_p_value(ones, n, own, other, 3) + 1e-12
    for square in (5.0, 12.0, 40.0, 90.0):
        for noncentrality in (0.1, 3.0, 30.0):
            exact = stats.ncx2.sf(square, 8, noncentrality)
            assert exact <= _bounds.large_scatter_p_value(square, 8, noncentrality) + 1e-12
            below = _bounds.small_scatter_p_value(math.sqrt(square), 8)
            assert stats.ncx2.cdf(square, 8, noncentrality) <= below + 1e-12
    signs = np.arange(-100, 101, 2)
    mass = stats.binom.pmf(np.arange(101), 100, 0.5)
    for length in range(1, 101):
        assert mass[np.abs(signs) >= length].sum() <= _bounds.bounded_sum_p_value(length, 100, 1.0, 1.0, 1.0)
    assert _bounds.bounded_sum_p_value(60, 100, 1.0, 1.0, 1.0) < 1e-4


def test_bounds_on_sums_of_directions_hold():
    steps = np.random.default_rng(0).normal(size=(2000, 60, 5))
    steps /= np.linalg.norm(steps, axis=2, keepdims=True)
    p_values = np.array([_bounds.bounded_sum_p_value(length, 60, 1.0, 0.2, 1.0)
                         for length in np.linalg.norm(steps.sum(axis=1), axis=1)])
    for level in (0.01, 0.1, 0.5):
        assert (p_values <= level).mean() <= level


@pytest.mark.parametrize("mechanism", [SquareWave(n_levels=9, window=0.2), SquareWave(n_levels=3, window=1.0),
                                       Laplace(epsilon=4.0, n_levels=6), Laplace(epsilon=10.0, n_levels=1)], ids=repr)
def test_probabilities_of_intervals_are_the_extremes_over_records(mechanism):
    low, high = mechanism.clamp
    every, records = np.arange(low, high + 1), np.linspace(-1, 1, mechanism.n_levels + 1)
    below = np.cumsum(np.exp(mechanism.log_prob(every[None], records[:, None])), axis=1)
    below = np.column_stack([np.zeros(len(records)), below])
    first, last = np.triu_indices(len(every) + 1, 1)
    exact = below[:, last] - below[:, first]
    least, most = _laws.interval_probabilities(mechanism, every[0] + first.astype(float), every[0] + last.astype(float))
    assert (least <= exact.min(axis=0) + 1e-12).all() and (most >= exact.max(axis=0) - 1e-12).all()
    np.testing.assert_allclose(least, exact.min(axis=0), atol=1e-7)
    # The largest probability may be slightly larger for a record between two grid points.
    assert (most <= 1.2 * exact.max(axis=0) + 1e-12).all()


def test_largest_probabilities_of_reports():
    for mechanism in (SquareWave(n_levels=9), Laplace(epsilon=4.0, n_levels=6)):
        every = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
        exact = mechanism.log_prob(every[None], np.linspace(-1, 1, mechanism.n_levels + 1)[:, None]).max()
        assert abs(_laws.log_largest_value(mechanism)[0] - exact) < 1e-6
    for mechanism in (SubsetSelection(n_categories=6, epsilon=0.4), UnaryEncoding(n_categories=6, epsilon=0.4)):
        rows = np.array(list(itertools.product((0, 1), repeat=6)))
        exact = np.max([mechanism.log_prob(rows, np.full(64, x)) for x in range(6)], axis=0)
        if isinstance(mechanism, UnaryEncoding):
            bound, n_rows = _laws.log_largest_unary(mechanism)
            np.testing.assert_allclose(bound[rows.sum(axis=1)], exact, atol=1e-6)
        else:
            bound, n_rows = _laws.log_largest_subset(mechanism)
            assert abs(bound - exact.max()) < 1e-6 and round(math.exp(n_rows)) == np.isfinite(exact).sum()
    gaussian = Gaussian(epsilon=1.0, n_features=2)
    middle = gaussian.log_prob(np.zeros((1, 2), dtype=int), np.zeros((1, 2)))[0]
    assert 0 <= _laws.log_largest_vector(gaussian) - middle < 1e-5


@pytest.mark.parametrize("angle", [0.0, 0.3, 0.785, 1.57])
def test_no_report_of_the_circle_exceeds_the_largest_probability(angle):
    """In two dimensions the probability of a report is an integral over the circle."""
    mechanism = Sphere(epsilon=1.0, n_features=1)
    report = np.rint(2**14 * np.array([math.cos(angle), math.sin(angle)]))
    theta = angle + np.linspace(-0.01, 0.01, 200_001)
    away = [np.abs(report[0] - 2**14 * np.cos(theta)), np.abs(report[1] - 2**14 * np.sin(theta))]
    given = np.prod([stats.laplace.cdf(one + 0.5) - stats.laplace.cdf(one - 0.5) for one in away], axis=0)
    mass = given.sum() * (theta[1] - theta[0]) / (2 * math.pi) * mechanism.near_probability / mechanism.cap_mass
    assert mass <= math.exp(_laws.log_largest_vector(mechanism)) < 10 * mass


def test_spikes_are_explained_by_honest_neighbours():
    """The mean of the function of a spike is the same for all records."""
    mechanism = SubsetSelection(epsilon=0.5, n_categories=5)
    rows = every_report(CategoryProtocol(categories=range(5), epsilon=0.5))
    weight, log_moment, offset = _spikes._subset_moments(mechanism, mechanism.subset_size)
    value = (rows == rows[0]).all(axis=1) - weight * rows @ rows[0]
    for record in range(5):
        probability = np.exp(mechanism.log_prob(rows, np.full(len(rows), record)))
        assert abs(probability @ value - offset) < 1e-9
        assert (np.log(np.exp(np.outer(_spikes._RATES, value)) @ probability) <= log_moment + 1e-9).all()
    unary = UnaryEncoding(n_categories=4)
    rows = np.array(list(itertools.product((0, 1), repeat=4)))
    for target in rows:
        weight, log_moment, offset = _spikes._unary_moments(unary, int(target.sum()))
        value = (rows == target).all(axis=1) - weight * rows @ target
        for record in range(4):
            probability = np.exp(unary.log_prob(rows, np.full(len(rows), record)))
            assert abs(probability @ value - offset) < 1e-9
            assert (np.log(np.exp(np.outer(_spikes._RATES, value)) @ probability) <= log_moment + 1e-9).all()


def check_with_warning(estimator, reports):
    with pytest.warns(ImplausibleReportsWarning, match="No records make these reports probable") as caught:
        check = estimator.check_reports(reports)
    assert caught[0].filename == __file__
    assert check.p_value < WARNING_LEVEL
    return check


@cases
def test_copies_are_detected(name):
    estimator, reports = made(name)
    before = reports.copy()
    copies = np.repeat(reports[:1], 10_000, axis=0)
    for collection in (copies, np.concatenate([reports, copies])):
        assert isinstance(check_with_warning(clone(estimator), collection), ReportCheck)
    check_with_warning(clone(estimator), estimator.aggregate(np.concatenate([reports, copies])))
    np.testing.assert_array_equal(reports, before)


@pytest.mark.parametrize("name", [name for name in CASES if not name.startswith("histogram")])
def test_one_percent_of_copies_is_detected(name):
    """Except for few categories, where any report has a probability of several per cent."""
    estimator, reports = made(name)
    reports[1:31] = reports[0]
    check_with_warning(clone(estimator), reports)


@pytest.mark.parametrize("protocol", [ValueProtocol(), CategoryProtocol(categories=range(16)),
                                      CategoryProtocol(categories=range(16), mechanism="oue")], ids=repr)
def test_a_spike_below_the_largest_probability_is_detected(protocol):
    """The counts of similar reports bound the count of a report more tightly than the worst case."""
    n, rng = 100_000, np.random.default_rng(0)
    reports = protocol._randomize(rng.integers(5, size=(n, 1)), None, 0)
    reports[1:200] = reports[0]
    check = check_aggregate(protocol.aggregate(reports), reports)
    assert check.p_value < WARNING_LEVEL and "explain" in check.reason


@pytest.mark.parametrize("mechanism", ["sphere", "gaussian"])
def test_gradients_are_checked(mechanism):
    protocol = GradientProtocol(n_features=3, mechanism=mechanism)
    reports = protocol._randomize(np.zeros((2000, 3)), np.ones(2000), 0)
    assert check_aggregate(protocol.aggregate(reports), reports).p_value > WARNING_LEVEL
    reports[:20] = reports[0]
    assert check_aggregate(protocol.aggregate(reports), reports).p_value < WARNING_LEVEL


@cases
def test_honest_collections_are_accepted(name):
    estimator, data = CASES[name]
    smallest = 1.0
    for seed in range(12):
        n = (1, 7, 300, 3000)[seed % 4]
        reports = clone(estimator).set_params(random_state=seed).privatize(*(part[:n] for part in data))
        smallest = min(smallest, estimator.check_reports(reports).p_value)
        # Only sums, of cohorts with different budgets.
        other = clone(estimator).set_params(random_state=seed, epsilon=3.0)
        merged = estimator.aggregate(reports) + other.aggregate(other.privatize(*(part[:n] for part in data)))
        smallest = min(smallest, estimator.check_reports(merged).p_value)
    assert smallest > 1e-3


@pytest.mark.parametrize("mechanism, n_categories", [("rr", 20_000), ("block", 20_000), ("subset", 300), ("oue", 300)])
def test_honest_reports_of_many_categories_are_accepted(mechanism, n_categories):
    """The number of sets of categories exceeds the range of floats, and the tails underflow."""
    protocol = CategoryProtocol(categories=tuple(range(n_categories)), mechanism=mechanism)
    for n in (100, 20_000 if mechanism == "rr" else 1000):
        reports = protocol._randomize(np.random.default_rng(0).integers(n_categories, size=(n, 1)), None, 0)
        assert check_aggregate(protocol.aggregate(reports), reports).p_value > 0.01


@cases
def test_every_container_gives_the_same_check(name):
    estimator, reports = made(name)
    check = estimator.check_reports(reports)
    for same in (pd.DataFrame(reports), reports.tolist(), chunked(reports), list(chunked(reports, 1000)),
                 [reports[:0], reports]):
        assert estimator.check_reports(same) == check
    halves = [estimator.aggregate(reports[:1000]), reports[1000:]]
    assert estimator.check_reports(halves) == estimator.check_reports(estimator.aggregate(reports))


def test_invalid_and_uninformative_reports():
    with pytest.raises(InvalidReportError, match="could not have come from"):
        LDPGaussian().check_reports([[10**6]])
    with pytest.raises(InvalidParameterError, match="categories must be given"):
        LDPHistogram().check_reports([[0, 1]])
    with pytest.raises(InvalidReportError, match="epsilon|bounds"):
        LDPGaussian().check_reports(LDPGaussian(bounds=(0, 1)).aggregate([[512]]))
    assert LDPGaussian().check_reports(np.empty((0, 1), dtype=int)).p_value == 1
    assert LDPGaussian(epsilon=np.inf).check_reports(np.full((1000, 1), 3)).p_value == 1


def test_a_fitted_histogram_knows_its_categories():
    model = LDPHistogram(inference="laplace", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit([["a"], ["b"], ["c"]] * 50)
        reports = model.privatize([["a"], ["b"], ["c"]] * 50)
    assert model.check_reports(reports).p_value > 0.01


def test_sums_of_all_cohorts_are_checked():
    model = LDPGaussian(random_state=0)
    honest = model.aggregate(model.privatize(np.zeros((1000, 1))))
    other = clone(model).set_params(epsilon=2.0)
    forged = other.aggregate(np.full((1000, 1), 7))
    assert check_aggregate(honest).p_value > 0.1
    assert check_aggregate(honest + forged).p_value < 1e-9


def test_the_warning_has_a_base_class():
    assert issubclass(ImplausibleReportsWarning, StatisticalWarning) and issubclass(StatisticalWarning, UserWarning)


def test_the_reason_contains_the_counts():
    reports = np.full((10_000, 1), 512)
    check = check_with_warning(LDPGaussian(), reports)
    assert "10000 of 10000 reports are the same" in check.reason and "at most 15.8 are expected" in check.reason
