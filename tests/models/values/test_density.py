"""The density of a value without a family: cells, likelihood, prior, coordinates and point masses."""

import numpy as np
import pytest
from scipy import stats

from skldp.models import DensityModel, ValueGrid
from skldp.models.values._density_coordinates import DensityCoordinates
from skldp.models.values._smooth_masses import SmoothMasses
from skldp.models.values._window_likelihood import WindowLikelihood
from skldp.protocols import ValueProtocol
from skldp.protocols._aggregate import Aggregate
from skldp.protocols._tallies import Tally

GRIDS = [ValueGrid((0.0, 1.0), 24, 9), ValueGrid((-3.0, 5.0), 16, 17, discrete=True), ValueGrid((0.0, 1.0), 1, 2),
         ValueGrid((0.0, 40.0), 40, 12, discrete=True)]

SCALE_MEAN, SCALE_STD, NORMAL_SCALE = np.log(6.0), 0.6, 2.5  # of the priors of log tau and of c


def masses_of(grid, n=5, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(grid.n_cells, 0.7), size=n)


def model_of(x, epsilon=1.0, n_cells=40, seed=0, window=0.25, **options):
    protocol = ValueProtocol(epsilon=epsilon, bounds=(0, 1), n_levels=200, window=window, **options)
    return DensityModel(ValueGrid((0.0, 1.0), 200, n_cells), protocol.aggregate(protocol._randomize(x, None, seed)))


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_cells_cover_all_points_once_with_the_bounds_on_their_own(grid):
    assert grid.edges[0] == 0 and grid.edges[-1] == grid.n_levels + 1
    assert (grid.sizes > 0).all() and len(grid.sizes) == grid.n_cells
    assert grid.sizes[0] == 1 and (grid.sizes[-1] == 1)


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_moments_equal_those_of_the_points(grid):
    masses = masses_of(grid)
    points = grid.bounds[0] + grid.step * np.arange(grid.n_levels + 1)
    by_point = np.repeat(masses / grid.sizes, grid.sizes, axis=1)
    mean = by_point @ points
    found_mean, found_std = grid.moments(masses)
    np.testing.assert_allclose(found_mean, mean, rtol=1e-12)
    np.testing.assert_allclose(found_std, np.sqrt(by_point @ points**2 - mean**2), rtol=1e-6, atol=1e-12)


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
def test_quantile_inverts_cdf(grid):
    masses, q = masses_of(grid), np.linspace(0.02, 0.98, 25)
    for row, values in zip(masses, grid.quantile(masses, q)):
        assert (grid.cdf(row[None], values)[0] >= q - 1e-9).all()
        # Half a step of the reports' grid lies between a bound and the first inner cell.
        assert (grid.cdf(row[None], values - 0.51 * grid.step - 1e-9)[0] <= q + 1e-9).all()


def test_cdf_of_whole_numbers_counts_them():
    grid = ValueGrid((0.0, 4.0), 4, 5, discrete=True)
    masses = np.array([[0.1, 0.2, 0.3, 0.25, 0.15]])
    np.testing.assert_allclose(grid.cdf(masses, np.array([-0.1, 0, 0.9, 1, 3, 4, 9]))[0],
                               [0, 0.1, 0.1, 0.3, 0.85, 1, 1])
    np.testing.assert_array_equal(grid.quantile(masses, np.array([0, 0.1, 0.11, 0.6, 0.61, 1]))[0], [0, 0, 1, 2, 3, 4])


def test_point_masses_at_the_bounds_are_quantiles_of_continuous_values():
    grid = ValueGrid((10.0, 20.0), 100, 12)
    masses = np.full((1, 12), 0.04)
    masses[0, 0], masses[0, -1] = 0.4, 0.2
    np.testing.assert_array_equal(grid.quantile(masses, np.array([0.1, 0.39, 0.81, 1.0]))[0], [10, 10, 20, 20])
    np.testing.assert_allclose(grid.cdf(masses, np.array([9.9, 10.0, 19.999, 20.0]))[0], [0, 0.4, 0.8, 1.0], atol=1e-3)


def test_draws_have_the_distribution_of_the_masses():
    grid, rng = ValueGrid((0.0, 1.0), 24, 9), np.random.default_rng(1)
    masses = masses_of(grid, 1)
    values = grid.draw(np.repeat(masses, 20_000, axis=0), rng)
    for x in (0.0, 0.3, 0.7, 0.99):
        assert abs(np.mean(values <= x) - grid.cdf(masses, np.array([x]))[0, 0]) < 0.02


@pytest.mark.parametrize("grid", GRIDS, ids=repr)
@pytest.mark.parametrize("group", [1, 3])
@pytest.mark.parametrize("window", [0.0, 0.2, 0.9])
def test_probabilities_of_reports_equal_those_of_the_mechanism(grid, group, window):
    protocol = ValueProtocol(epsilon=1.5, bounds=grid.bounds, n_levels=grid.n_levels, window=window)
    mechanism = protocol.randomizer
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    points = grid.bounds[0] + grid.step * np.arange(grid.n_levels + 1)
    by_point = np.exp(mechanism.log_prob(reports[:, None], points))
    by_cell = np.add.reduceat(by_point, grid.edges[:-1], axis=1) / grid.sizes
    by_group = np.add.reduceat(by_cell, np.arange(0, len(reports), group), axis=0)
    found = WindowLikelihood(grid, mechanism, np.zeros(len(reports), dtype=int), group).matrix
    np.testing.assert_allclose(found, by_group, rtol=1e-9, atol=1e-14)


def test_information_is_the_variance_of_the_score():
    grid = GRIDS[0]
    mechanism = ValueProtocol(epsilon=1.5, bounds=grid.bounds, n_levels=grid.n_levels, window=0.2).randomizer
    likelihood = WindowLikelihood(grid, mechanism, np.zeros(34, dtype=int))
    masses, directions = masses_of(grid, 1), np.random.default_rng(0).normal(size=(9, 2))
    directions -= masses[0][:, None] * directions.sum(axis=0)
    scores = likelihood.matrix @ directions / likelihood.probabilities(masses)[0][:, None]
    expected = scores.T @ (likelihood.probabilities(masses)[0][:, None] * scores)
    np.testing.assert_allclose(likelihood.information(masses[0], directions), expected, rtol=1e-10)


def test_masses_follow_their_definition():
    sizes = np.array([1, 4, 5, 4, 1])
    model = SmoothMasses(sizes, np.array([3, 2]))
    coefficients, x = np.random.default_rng(0).normal(size=(2, model.n_coefficients)), np.array([[1, 0.2, -1, 0.5]] * 2)
    smooth = sizes * np.exp(coefficients @ model.basis.T)
    smooth /= smooth.sum(axis=1, keepdims=True)
    (lower, upper), odds = 1 / (1 + np.exp(3 - 3 * x[0, :2])), np.exp(-4 + 2 * x[0, 2:])
    near = np.exp(-0.25 / 0.05)  # of the cell beside a bound; the middle has none
    total = smooth * [1 - lower, 1 - lower * near, 1, 1 - upper * near, 1 - upper]
    total[:, 0] += lower * (smooth[:, 0] + near * smooth[:, 1])
    total[:, 4] += upper * (smooth[:, 4] + near * smooth[:, 3])
    np.testing.assert_allclose(total.sum(axis=1), 1, rtol=1e-12)
    total[:, [3, 2]] += odds
    np.testing.assert_allclose(model(coefficients, x).total, total / (1 + odds.sum()), rtol=1e-12)
    with_lower = model.with_spike(0)
    assert not with_lower.near[0].any() and with_lower.near[1].any(), "a point mass in place of a share"
    with_upper = SmoothMasses(sizes, np.array([4]))
    assert with_upper.near[0].any() and not with_upper.near[1].any()


def test_deviations_have_an_average_prior_variance_of_one():
    basis = SmoothMasses(np.ones(50), np.array([0])).basis
    assert np.mean(np.sum(basis[:, 2:] ** 2, axis=1)) == pytest.approx(1.0)
    u = np.linspace(-1, 1, 50)
    np.testing.assert_allclose(basis[:, :2], np.stack([u, u**2], axis=1))
    penalty = np.diff(np.eye(50), axis=0).T @ np.diff(np.eye(50), axis=0)
    values = np.linalg.norm(penalty @ basis[:, 2:], axis=0) / np.linalg.norm(basis[:, 2:], axis=0)
    variances = np.sum(basis[:, 2:] ** 2, axis=0)
    np.testing.assert_allclose(variances * values**1.25, variances[0] * values[0] ** 1.25, rtol=1e-6)


def test_directions_are_derivatives_of_the_masses():
    model = SmoothMasses(np.array([1, 4, 5, 4, 1]), np.array([0, 3]))
    params, step = np.random.default_rng(0).normal(size=model.n_coefficients + 4), 1e-6
    n = model.n_coefficients

    def total(params):
        return model(params[None, :n], params[None, n:]).total[0]

    numeric = [(total(params + step * e) - total(params - step * e)) / (2 * step) for e in np.eye(len(params))]
    found = model.directions(model(params[None, :n], params[None, n:]))
    np.testing.assert_allclose(found, np.transpose(numeric), rtol=1e-6, atol=1e-10)


def test_coordinates_have_the_prior_of_the_coefficients():
    """The density of (t, y, z) is that of t, c and a by their definition, times a numerical Jacobian."""
    model = model_of(np.random.default_rng(0).beta(5, 2, 3000), n_cells=8)
    coordinates, n = model.coordinates, model.coordinates.n_coordinates
    theta = np.random.default_rng(1).normal(0, 0.5, size=(4, n))

    def natural(point):
        """t and all coefficients."""
        return np.append(point[0], coordinates(point[None]).coefficients[0])

    def by_definition(point):
        t, c, a = np.split(natural(point), [1, 3])
        step = 1e-6
        jacobian = [(natural(point + step * e) - natural(point - step * e)) / (2 * step) for e in np.eye(n)]
        scale = np.exp(SCALE_MEAN + SCALE_STD * t)
        return (stats.norm.logpdf(t).sum() + stats.norm.logpdf(c, scale=NORMAL_SCALE).sum()
                + stats.norm.logpdf(a, scale=scale).sum() + np.linalg.slogdet(jacobian)[1])

    found = coordinates.log_prior(theta, coordinates(theta))
    np.testing.assert_allclose(np.diff(found), np.diff([by_definition(point) for point in theta]), rtol=1e-5, atol=1e-5)


def test_coordinates_are_nearly_standard_normal_for_every_scale():
    """For half and for twice the scale of the pilot, the mode is within a few units of the centre."""
    model = model_of(np.random.default_rng(0).beta(3, 3, 50_000), epsilon=2.0)
    n = model.coordinates.n_coordinates
    for t, largest in ((-0.5, 3.0), (0.0, 0.1), (0.5, 3.0)):
        theta = np.tile(model.initial(), (2, 1))
        theta[:, 0] = t
        theta[1, 1] = 0.3
        gradient = model.gradient(theta)[1][:, 1:n]
        assert np.abs(gradient[0]).max() < largest
        assert 0.7 < (gradient[0, 0] - gradient[1, 0]) / 0.3 < 1.3


def test_conversion_keeps_the_density():
    rng = np.random.default_rng(0)
    one, other = (model_of(rng.beta(5, 2, 2000), seed=seed) for seed in (0, 1))
    theta = rng.normal(0, 0.5, size=(3, one.n_params))
    assert one.n_params == other.n_params
    converted = other.coordinates.convert(theta, one.coordinates)
    np.testing.assert_allclose(other.constrain(converted)["density"], one.constrain(theta)["density"], rtol=1e-9)
    assert isinstance(one.coordinates, DensityCoordinates)


def test_an_atom_is_found_where_it_is_and_none_in_a_smooth_density():
    rng = np.random.default_rng(0)
    smooth = rng.beta(3, 3, 50_000)
    assert len(model_of(smooth, epsilon=2.0).masses.spikes) == 0
    mixed = np.where(rng.random(50_000) < 0.3, 0.4, smooth)
    model = model_of(mixed, epsilon=2.0, window=0.125)
    found = model.masses.spikes
    assert len(found) and np.abs(model.grid.points[found] - 0.4).max() < 0.03


def test_a_point_mass_at_a_bound_is_found():
    x = np.where(np.random.default_rng(0).random(20_000) < 0.3, 0.0, np.random.default_rng(1).gamma(2, 0.15, 20_000))
    model = model_of(x, epsilon=2.0)
    density = model.constrain(model.initial()[None])["density"][0] * model.grid.widths
    assert 0.2 < density[0] < 0.4


def test_more_evidence_of_a_point_mass_at_a_bound_moves_the_estimate_gradually():
    """Expected reports of normal values and of 0 to 0.5 % at the bound: no jump of the standard deviation."""
    protocol = ValueProtocol(epsilon=4.0, bounds=(0, 1), n_levels=200, window=0.125)
    grid = ValueGrid((0.0, 1.0), 200, 40)
    normal = np.diff(stats.norm(0.5, 0.1).cdf(np.append(-np.inf, np.append(grid.value_edges[1:-1], np.inf))))
    none = np.zeros(protocol.cells.n_cells, dtype=int)
    stds = []
    for share in np.linspace(0, 0.005, 6):
        masses = (1 - share) * normal + share * np.eye(grid.n_cells)[-1]
        expected = WindowLikelihood(grid, protocol.randomizer, none).probabilities(masses[None])[0]
        counts = np.diff(np.round(20_000 * np.cumsum(expected)), prepend=0).astype(int)
        model = DensityModel(grid, Aggregate({protocol: Tally(int(counts.sum()), counts[None])}))
        stds.append(model.constrain(model.initial()[None])["std"][0])
    steps = np.diff(stds)
    assert (steps > 0).all() and steps.max() < 1.7 * steps.mean()


def test_cohorts_add_their_likelihoods():
    rng = np.random.default_rng(0)
    protocols = [ValueProtocol(epsilon=epsilon, bounds=(0, 1), n_levels=200, window=0.2) for epsilon in (1.0, 3.0)]
    parts = [protocol.aggregate(protocol._randomize(rng.beta(2, 2, 500), None, 0)) for protocol in protocols]
    grid = ValueGrid((0.0, 1.0), 200, 30)
    both = DensityModel(grid, parts[0] + parts[1])
    alone = [DensityModel(grid, part) for part in parts]
    masses = masses_of(grid, 3)
    total = sum(part.log_likelihood(masses) for part in both.likelihoods)
    np.testing.assert_allclose(total, sum(model.likelihoods[0].log_likelihood(masses) for model in alone))
