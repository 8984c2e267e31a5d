"""Likelihoods against brute force, families against scipy, and the conventions of a model."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from skldp.models import (
    BetaPrior,
    ExponentialFamily,
    GammaPrior,
    GaussianFamily,
    GeometricFamily,
    NormalPrior,
    PoissonFamily,
    ScipyFamily,
    UnivariateModel,
)
from skldp.models.values._cell_likelihoods import (
    MergedSquareWaveLikelihood,
    SquareWaveLikelihood,
    _differ_within,
    _groups,
)
from skldp.models.values._scipy_family import parameter_names, scipy_family
from skldp.protocols import Aggregate, ValueProtocol
from skldp.protocols._tallies import Tally

GAUSSIAN = GaussianFamily({"mean": NormalPrior(0.0, 2.5), "std": GammaPrior(2.0, 4.0)})
EXPONENTIAL = ExponentialFamily({"rate": GammaPrior(2.0, 2.0)})
POISSON = PoissonFamily({"rate": GammaPrior(2.0, 0.4)})
GEOMETRIC = GeometricFamily({"probability": BetaPrior(1.0, 1.0)})
CASES = [
    (GAUSSIAN, stats.norm, [0.4, 0.7], ValueProtocol(bounds=(-1, 2), n_levels=40)),
    (GAUSSIAN, stats.norm, [3.0, 0.2], ValueProtocol(bounds=(-1, 2), epsilon=4.0, n_levels=40)),
    (EXPONENTIAL, lambda rate: stats.expon(scale=1 / rate), [0.8], ValueProtocol(bounds=(0, 3), n_levels=40)),
    (POISSON, stats.poisson, [4.2], ValueProtocol(bounds=(0, 10), n_levels=10)),
    (POISSON, stats.poisson, [4.2], ValueProtocol(bounds=(0, 10), n_levels=10, mechanism="laplace")),
    (GEOMETRIC, lambda p: stats.geom(p, loc=-1), [0.3], ValueProtocol(bounds=(0, 10), n_levels=10, epsilon=3.0)),
    (GEOMETRIC, lambda p: stats.geom(p, loc=-1), [0.3],
     ValueProtocol(bounds=(0, 10), n_levels=10, mechanism="laplace")),
    (scipy_family("gamma", None, (0, 10)), stats.gamma, [2.0, 0.0, 1.5], ValueProtocol(bounds=(0, 10), n_levels=30)),
    (scipy_family("nbinom", None, (0, 12)), stats.nbinom, [2.5, 0.4], ValueProtocol(bounds=(0, 12), n_levels=12)),
]
CASE_IDS = [f"{type(case[0]).__name__}-{case[3].mechanism}-{i}" for i, case in enumerate(CASES)]


def cell_log_probabilities(family, protocol, values):
    """Log-probability of each cell under the model, from the change of the log-density by one report."""
    n_cells = protocol.cells.n_cells
    free = [np.atleast_1d(value) for value in values]
    theta = np.array([[prior.unconstrain(value[0]) for prior, value in zip(family.priors.values(), free)]])
    empty = Aggregate({protocol: Tally(0, np.zeros((1, n_cells), dtype=np.int64))})
    base = UnivariateModel(family, empty).log_density(theta)[0]
    out = []
    for cell in range(n_cells):
        counts = np.zeros((1, n_cells), dtype=np.int64)
        counts[0, cell] = 1
        model = UnivariateModel(family, Aggregate({protocol: Tally(1, counts)}))
        out.append(model.log_density(theta)[0] - base)
    return np.array(out)


def exact_cell_probabilities(frozen, protocol):
    """Sum over the grid of the record's probability, end masses included, times the report's probability given it."""
    mechanism = protocol.randomizer
    lower, upper = protocol.bounds
    grid = lower + np.arange(mechanism.n_levels + 1) * (upper - lower) / mechanism.n_levels
    edges = (grid[1:] + grid[:-1]) / 2
    masses = np.diff(frozen.cdf(edges), prepend=0.0, append=1.0)
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    probability = sum(mass * np.exp(mechanism.log_prob(reports, x)) for mass, x in zip(masses, grid))
    return np.bincount(protocol.cells.index(reports), weights=probability, minlength=protocol.cells.n_cells)


@pytest.mark.parametrize("family, distribution, values, protocol", CASES, ids=CASE_IDS)
def test_likelihood_equals_the_sum_over_all_records(family, distribution, values, protocol):
    expected = exact_cell_probabilities(distribution(*values), protocol)
    free = [values[0], values[2]] if len(values) == 3 else values
    found = np.exp(cell_log_probabilities(family, protocol, free))
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)
    assert found.sum() == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("family, distribution, values, protocol", CASES, ids=CASE_IDS)
def test_likelihood_of_a_single_report_equals_the_probability_of_its_cell(family, distribution, values, protocol):
    free = [values[0], values[2]] if len(values) == 3 else values
    theta = np.array([[prior.unconstrain(value) for prior, value in zip(family.priors.values(), free)]])
    model = UnivariateModel(family, protocol.aggregate([]))
    found = model.report_log_likelihoods(protocol, np.concatenate([theta, theta + 0.1]))
    assert found.shape == (protocol.cells.n_cells, 2)
    np.testing.assert_allclose(np.exp(found[:, 0]), exact_cell_probabilities(distribution(*values), protocol),
                               rtol=1e-9, atol=1e-14)
    assert (found[:, 0] != found[:, 1]).any()


def test_probabilities_of_cells_without_noise_add_up_to_one():
    protocol = ValueProtocol(bounds=(-1, 2), mechanism="laplace", epsilon=np.inf)
    theta = np.array([[prior.unconstrain(value) for prior, value in zip(GAUSSIAN.priors.values(), [0.4, 0.7])]])
    found = np.exp(UnivariateModel(GAUSSIAN, protocol.aggregate([])).report_log_likelihoods(protocol, theta))[:, 0]
    assert found.sum() == pytest.approx(1, abs=1e-9)
    assert found[protocol.cells.centres == -1.0].max() == pytest.approx(stats.norm(0.4, 0.7).cdf(-1), rel=0.05)


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("values", [[0.4, 0.7], [0.4, 0.05], [-2.0, 3.0], [0.5, 30.0]])
@pytest.mark.parametrize("epsilon", [0.3, 4.0])
def test_noise_likelihood_equals_quadrature_at_cell_centres(mechanism, values, epsilon):
    protocol = ValueProtocol(bounds=(-1, 2), mechanism=mechanism, epsilon=epsilon, delta=1e-5)
    frozen, cells = stats.norm(*values), protocol.cells
    noise = (stats.laplace if mechanism == "laplace" else stats.norm)(scale=cells.noise_scale)
    a, b = protocol.bounds
    found = cell_log_probabilities(GAUSSIAN, protocol, values)
    for cell in np.linspace(0, cells.n_cells - 1, 7).astype(int):
        z = cells.centres[cell]
        points = [point for point in (z, values[0]) if a < point < b]
        inside = quad(lambda x: frozen.pdf(x) * noise.pdf(z - x), a, b, points=points or None, epsabs=0, epsrel=1e-9,
                      limit=200)[0]
        expected = inside + frozen.cdf(a) * noise.pdf(z - a) + frozen.sf(b) * noise.pdf(z - b)
        assert found[cell] == pytest.approx(np.log(expected), abs=1e-6)


def test_binning_error_of_cells_is_negligible():
    """The density at cell centres is compared with the density at every report."""
    rng = np.random.default_rng(0)
    x = rng.normal(0.3, 0.4, size=20_000)
    for mechanism in ("laplace", "gaussian"):
        protocol = ValueProtocol(bounds=(-1, 2), mechanism=mechanism, epsilon=2.0, delta=1e-5)
        reports = protocol._randomize(x, None, 0)
        theta = np.array([[0.3, np.log(0.4)], [0.35, np.log(0.3)]])
        values = [theta[:, [0]], np.exp(theta[:, [1]])]
        decode = protocol.randomizer.decode(reports[:, 0]) + (protocol.midpoint if mechanism == "gaussian" else 0.0)
        marginal = GAUSSIAN.log_laplace if mechanism == "laplace" else GAUSSIAN.log_gaussian
        noise = np.sqrt(protocol.randomizer.noise_variance) if mechanism == "gaussian" else protocol.cells.noise_scale
        exact = np.diff(marginal(decode, values, protocol.bounds, noise).sum(axis=1))
        model = UnivariateModel(GAUSSIAN, protocol.aggregate(reports))
        empty = UnivariateModel(GAUSSIAN, protocol.aggregate(reports[:0]))
        binned = np.diff(model.log_density(theta) - empty.log_density(theta))
        assert abs(exact - binned) < 0.02, "a fiftieth of a log-likelihood unit over 20,000 reports"


@pytest.mark.parametrize("family, distribution, values, protocol", CASES, ids=CASE_IDS)
def test_families_match_scipy(family, distribution, values, protocol):
    frozen = distribution(*values)
    free = [values[0], values[2]] if len(values) == 3 else values
    parameters = [np.array([[value]]) for value in free]
    x = np.arange(-2, 15) if family.discrete else np.linspace(-2, 15, 41)
    np.testing.assert_allclose(family.cdf(x, parameters)[0], frozen.cdf(x), atol=1e-12)
    expected = frozen.logpmf(x) if family.discrete else frozen.logpdf(x)
    np.testing.assert_allclose(family.log_density(x, parameters)[0], expected, rtol=1e-9, atol=1e-12)


def test_prior_and_jacobian_integrate_to_one_without_reports():
    protocol = ValueProtocol(bounds=(0, 3))
    model = UnivariateModel(EXPONENTIAL, protocol.aggregate(np.empty((0, 1), dtype=int)))
    total = quad(lambda theta: np.exp(model.log_density(np.array([[theta]]))[0]), -20, 8)[0]
    assert total == pytest.approx(1, abs=1e-6)


def test_batch_equals_single_walkers_and_extremes_are_never_nan():
    rng = np.random.default_rng(0)
    for mechanism in ("square_wave", "laplace", "gaussian"):
        protocol = ValueProtocol(bounds=(-1, 2), mechanism=mechanism, delta=1e-5)
        model = UnivariateModel(GAUSSIAN, protocol.aggregate(protocol.privatize(rng.normal(size=300))))
        theta = np.array([[0.0, 0.0], [1e6, -14.0], [-1e6, 14.0], [0.5, -13.8], [0.5, 13.8], [0.5, -700], [0, 700]])
        together = model.log_density(theta)
        assert not np.isnan(together).any()
        assert np.isfinite(together[[0, 3, 4]]).all(), "standard deviations from 1e-6 to 1e6 of the range"
        apart = np.concatenate([model.log_density(row[None]) for row in theta])
        np.testing.assert_allclose(together, apart, rtol=1e-12)
        assert np.isfinite(model.log_density(model.initial()[None])).all()


def test_log_likelihoods_of_cohorts_add():
    protocols = [ValueProtocol(epsilon=epsilon) for epsilon in (0.5, 4.0)]
    parts = [protocol.aggregate(protocol.privatize(np.zeros(100))) for protocol in protocols]
    theta = np.array([[0.1, -1.0], [1.0, 0.0]])
    densities = [UnivariateModel(GAUSSIAN, part).log_density(theta) for part in (*parts, sum(parts))]
    prior = UnivariateModel(GAUSSIAN, protocols[0].aggregate(np.empty((0, 1), dtype=int))).log_density(theta)
    np.testing.assert_allclose(densities[0] + densities[1] - prior, densities[2])


def test_families_without_a_closed_form_raise_an_error():
    with pytest.raises(ValueError, match="no closed form under Gaussian"):
        EXPONENTIAL.log_gaussian(0.0, [1.0], (0, 1), 1.0)
    with pytest.raises(ValueError, match="no closed form under Laplace"):
        ScipyFamily(stats.gamma, {}).log_laplace(0.0, [1.0], (0, 1), 1.0)


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.2}, {"epsilon": 4.0}, {"window": 0.5}, {"window": 1.0},
                                     {"n_levels": 1000, "window": 0.3}, {"n_levels": 601}], ids=str)
def test_merged_cells_of_the_square_wave(options):
    """Each group has the mean probability of its cells: exactly for a cubic distribution function."""
    protocol = ValueProtocol(bounds=(0, 1), **options)
    counts = np.random.default_rng(0).poisson(30.0, size=protocol.cells.n_cells) + 1
    first, last = _groups(protocol.randomizer)
    assert first[0] == 0 and (last[:-1] == first[1:]).all() and last[-1] == len(counts)
    n_near, n_levels = protocol.randomizer.n_near, protocol.randomizer.n_levels
    assert (last - first).max() == max(1, min(n_near // 25, n_levels // 100)), "25 in a window, 100 in the range"
    for shapes, accuracy in (((3.0, 1.0), 1e-10), ((2.3, 4.1), 1e-7), ((60.0, 90.0), 1e-7), ((900.0, 500.0), 1e-5),
                             ((40_000.0, 50_000.0), 1e-5)):
        values = [np.array([[shape], [shape]]) for shape in shapes]
        family = scipy_family("beta", None, (0, 1))
        merged = MergedSquareWaveLikelihood(family, protocol, counts)
        cells = np.exp(SquareWaveLikelihood(family, protocol, np.ones_like(counts)).log_probabilities(values))
        mean = np.add.reduceat(cells, first, axis=1) / (last - first)
        expected = np.log(mean) @ np.add.reduceat(counts, first)
        np.testing.assert_allclose(merged(values), expected, rtol=accuracy)
        np.testing.assert_array_equal(merged.log_probabilities(values), np.log(cells), "those of single cells")


def test_narrow_windows_few_reports_and_narrow_records_are_not_merged():
    family, values = scipy_family("beta", None, (0, 1)), [np.array([[2.0]]), np.array([[3.0]])]
    for protocol, count in ((ValueProtocol(bounds=(0, 1), epsilon=12.0), 5), (ValueProtocol(bounds=(0, 1)), 0),
                            (ValueProtocol(bounds=(0, 1)), 500)):
        counts = np.random.default_rng(0).poisson(count, protocol.cells.n_cells)
        counts[40:47] += 500  # differences within a group, which merging would lose
        exact = SquareWaveLikelihood(family, protocol, counts)(values)
        np.testing.assert_array_equal(MergedSquareWaveLikelihood(family, protocol, counts)(values), exact)


def test_cells_that_differ_by_chance_are_merged():
    """The limit is two standard deviations of a chi-squared statistic, which one of forty collections exceeds."""
    rng, first, sizes = np.random.default_rng(0), np.arange(0, 300, 10), np.full(30, 10)
    differ = [_differ_within(rng.poisson(50.0, 300), first, sizes, epsilon=0.01) for _ in range(1000)]
    assert 0.01 < np.mean(differ) < 0.04


@pytest.mark.parametrize("name, bounds, fixed", [
    ("beta", (0, 1), {"loc": 0.0, "scale": 1.0}), ("beta", (-2, 8), {"loc": -2.0, "scale": 10.0}),
    ("rdist", (0, 4), {"loc": 2.0, "scale": 2.0}), ("triang", (0, 10), {"loc": 0.0, "scale": 10.0}),
    ("gamma", (0, 9), {"loc": 0.0}), ("expon", (0, 9), {"loc": 0.0}), ("expon", (1, 9), {}),
    ("uniform", (0, 1), {}), ("norm", (0, 1), {}), ("truncnorm", (0, 1), {"loc": 0.0}),
    ("nbinom", (0, 9), {"loc": 0.0}),
])
def test_bounds_at_the_ends_of_the_support_fix_loc_and_scale(name, bounds, fixed):
    family = scipy_family(name, None, bounds)
    assert family.fixed == fixed
    assert set(family.priors) == set(parameter_names(family.distribution)) - set(fixed)


def test_given_priors_come_before_the_bounds():
    family = scipy_family("beta", {"scale": stats.gamma(2), "loc": 0.5}, (0, 1))
    assert family.fixed == {"loc": 0.5} and list(family.priors) == ["a", "b", "scale"]
