"""Log-density of linear regressions against brute force, Monte Carlo, quadrature and finite differences."""

import dataclasses
import itertools

import numpy as np
import pytest
from scipy import stats

from skldp import RegressionPrior
from skldp.mechanisms import SphereMoments
from skldp.models import LinearModel
from skldp.models.regression._moment_likelihoods import MomentLikelihood, RecordLikelihood
from skldp.protocols import Aggregate, MomentProtocol, RecordProtocol
from skldp.protocols._tallies import Tally
from tests.models.regression.priors import Prior, differences

KINDS = ["sphere", "axis", "gaussian", "inputs"]
PRIOR = Prior(0.25, sigma_scale=0.5)


def protocol_of(kind, d, intercept, **options):
    if kind == "inputs":
        return RecordProtocol(n_features=d, centred=intercept, **options)
    weight = {} if intercept else {"intercept_weight": 0.0}
    return MomentProtocol(n_features=d, mechanism=kind, **weight, **options)


def records(d, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0.05, 0.4 / np.sqrt(d), size=(n, d))
    return X, X @ np.linspace(0.5, -0.3, d) + 0.1 + rng.normal(0, 0.1, size=n)


def aggregate_of(kind, d, intercept, n=400, seed=0, **options):
    protocol = protocol_of(kind, d, intercept, **options)
    return protocol.aggregate(protocol._randomize(*records(d, n, seed), 0))


def points(model, n=5, seed=0, size=0.4):
    """Return coordinates about as far from the initial point as the posterior extends."""
    return model.initial() + np.random.default_rng(seed).normal(0.05, size, size=(n, model.n_params))


class Point:
    """Parameters of a regression for one walker, in public units."""

    def __init__(self, coef, sigma, covariance, x_mean=None, intercept=0.0, residual_correlation=1.0):
        self.coef, self.sigma, self.covariance, self.intercept = coef, sigma, covariance, intercept
        self.mean = np.zeros(len(covariance)) if x_mean is None else x_mean
        self.residual = np.atleast_2d(np.multiply.outer(sigma, sigma) * residual_correlation)

    @classmethod
    def at(cls, theta, model):
        """Return the points at coordinates, whose map to parameters is tested in test_coordinates."""
        params = model.constrain(theta)
        return [cls(**{name: values[i] for name, values in params.items()}) for i in range(len(theta))]

    def joint(self, w):
        """Mean and covariance of (x, w y)."""
        coef = np.atleast_2d(self.coef)
        cross = coef @ self.covariance
        covariance = np.block([[self.covariance, w * cross.T], [w * cross, w**2 * (cross @ coef.T + self.residual)]])
        return np.append(self.mean, w * (self.intercept + coef @ self.mean)), covariance


def svec_moments(mean, covariance, places):
    """Mean and covariance of svec(v v') of a Gaussian v, entry by entry (Isserlis)."""
    root = [1.0 if i == j else np.sqrt(2) for i, j in places]
    m, s = mean, covariance
    expected = np.array([r * (m[i] * m[j] + s[i, j]) for r, (i, j) in zip(root, places)])
    svec_cov = np.empty((len(places), len(places)))
    for (a, (i, j)), (b, (k, n)) in itertools.product(enumerate(places), repeat=2):
        svec_cov[a, b] = root[a] * root[b] * (
            s[i, k] * s[j, n] + s[i, n] * s[j, k]
            + m[i] * m[k] * s[j, n] + m[i] * m[n] * s[j, k] + m[j] * m[k] * s[i, n] + m[j] * m[n] * s[i, k]
        )
    return expected, svec_cov


def extended(point, protocol):
    """Mean and covariance of (kappa, x, w y), and the entries of the matrix that are sent, diagonal first."""
    mean, covariance = point.joint(protocol.y_weight)
    order = len(mean)
    diagonal = [(i, i) for i in range(order)]
    if protocol.has_intercept:
        mean = np.append(protocol.intercept_weight, mean)
        covariance = np.pad(covariance, ((1, 0), (1, 0)))
        order, diagonal = order + 1, [(i + 1, i + 1) for i, _ in diagonal]
    if protocol.mechanism == "axis":
        diagonal = [(i, i) for i in range(order)]  # the constant entry is sent, too
    return mean, covariance, diagonal + list(itertools.combinations(range(order), 2))


def in_svec(matrices, places):
    """Entries of symmetric matrices at places, those off the diagonal times the root of two."""
    rows, columns = np.transpose(places)
    return matrices[..., rows, columns] * np.where(rows == columns, 1.0, np.sqrt(2))


def report_law(point, protocol):
    """Mean and covariance of one decoded report of a normal record, and its places."""
    mean, covariance, places = extended(point, protocol)
    expected, svec_cov = svec_moments(mean, covariance, places)
    if protocol.mechanism == "axis":
        return expected, axis_covariance(
            protocol.randomizer.noise, covariance + np.outer(mean, mean), places, svec_cov), places
    return expected, svec_cov + max(protocol.randomizer.noise_variance, 1e-9) * np.eye(len(places)), places


def axis_covariance(noise, second, places, svec_cov):
    """Covariance of a decoded report of axes: MomentNoise applied to each of the basis matrices of svec."""
    basis = np.zeros((len(places), len(second), len(second)))
    for matrix, (i, j) in zip(basis, places):
        matrix[i, j] += 0.5 if i == j else np.sqrt(0.5)
        matrix[j, i] += 0.5 if i == j else 0.0
        matrix[j, i] = matrix[i, j]
    identity, theta = in_svec(np.eye(len(second)), places), in_svec(second, places)
    linear = in_svec(second @ basis + basis @ second, places)
    mixed = np.outer(identity, theta)
    return (max(noise.constant, 1e-9) * np.eye(len(places)) + noise.linear * linear + noise.square * svec_cov
            + noise.identity * np.outer(identity, identity) + noise.mixed * (mixed + mixed.T)
            + (noise.square - 1) * np.outer(theta, theta))


def brute_force(point, aggregate):
    """Log-likelihood of an aggregate of moments, by an ordinary Gaussian density."""
    value = 0.0
    for protocol, tally in aggregate.parts.items():
        expected, svec_cov, places = report_law(point, protocol)
        found = in_svec(protocol.mean_matrix(tally), places)
        value += stats.multivariate_normal(expected, svec_cov / tally.n_reports).logpdf(found)
    return value


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("mechanism", ["sphere", "gaussian", "axis"])
def test_moment_density_is_the_full_gaussian_with_its_prior(mechanism, intercept, d):
    aggregate = sum(aggregate_of(mechanism, d, intercept, n, epsilon=epsilon, y_weight=0.6)
                    for epsilon, n in ((1.0, 300), (8.0, 500)))
    model = LinearModel(aggregate)
    theta = points(model)
    expected = PRIOR(model, theta) + [brute_force(point, aggregate) for point in Point.at(theta, model)]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-7, atol=1e-7)


def responses_aggregate(mechanism, d, k, intercept, n=400, **options):
    rng = np.random.default_rng(d + k)
    X = rng.normal(0.05, 0.4 / np.sqrt(d), size=(n, d))
    y = X @ rng.uniform(-0.6, 0.6, size=(d, k)) + 0.1 + 0.1 * rng.normal(size=(n, k)) + 0.1 * rng.normal(size=(n, 1))
    protocol = protocol_of(mechanism, d, intercept, bounds_y=tuple((-1, 1 + place) for place in range(k)), **options)
    return protocol.aggregate(protocol._randomize(X, y, 0))


@pytest.mark.parametrize("d, k", [(1, 2), (3, 2), (2, 3)])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("mechanism", ["sphere", "gaussian", "axis"])
def test_moment_density_of_several_responses_is_the_full_gaussian_with_its_prior(mechanism, intercept, d, k):
    aggregate = sum(responses_aggregate(mechanism, d, k, intercept, n, epsilon=epsilon, y_weight=0.5)
                    for epsilon, n in ((1.0, 300), (8.0, 500)))
    # Public units are those of the data if all bounds are -1 and 1.
    aggregate = Aggregate({dataclasses.replace(protocol, bounds_y=((-1, 1),) * k): tally
                           for protocol, tally in aggregate.parts.items()})
    model = LinearModel(aggregate)
    theta = points(model)
    expected = PRIOR(model, theta) + [brute_force(point, aggregate) for point in Point.at(theta, model)]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("prior, epsilon, tolerance", [
    ("auto", 5.0, 1e-5), (RegressionPrior.paper(), 5.0, 1e-5), ("auto", np.inf, 2e-3),
    (RegressionPrior(coef_scale=0.3, sigma_scale=0.2), 20.0, 1e-5)])
def test_gradient_of_several_responses_matches_finite_differences(intercept, prior, epsilon, tolerance):
    model = LinearModel(responses_aggregate("sphere", 3, 3, intercept, 5000, epsilon=epsilon), prior)
    theta = np.vstack([points(model, 3), points(model, 2, size=2.0)])
    value, gradient = model.gradient(theta)
    np.testing.assert_allclose(value, model.log_density(theta), rtol=1e-12)
    numeric = differences(model.log_density, theta)
    np.testing.assert_allclose(gradient, numeric, rtol=tolerance, atol=tolerance * np.abs(numeric).max())


def test_priors_of_several_responses_are_in_the_units_of_each():
    model = LinearModel(responses_aggregate("sphere", 2, 2, True), RegressionPrior(coef_scale=0.3, sigma_scale=0.2))
    first, second = (line.priors for line in model.coordinates.lines)
    assert (first.coef_scale, first.sigma_scale) == (0.3, 0.2)  # bounds of -1 and 1
    assert (second.coef_scale, second.sigma_scale) == pytest.approx((0.2, 0.2 / 1.5))  # bounds of -1 and 2
    width = model.prior_coef_std(np.eye(2)[None])
    assert width.shape == (1, 2, 2) and width[0, 0] == pytest.approx(width[0, 1])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("d", [1, 3])
def test_moment_density_without_noise_is_accurate(intercept, d):
    """Without noise the constant entry has no variance, and its formula loses nine digits to cancellation."""
    aggregate = aggregate_of("sphere", d, intercept, 2000, epsilon=np.inf)
    model = LinearModel(aggregate)
    theta = points(model, size=0.1)
    expected = PRIOR(model, theta) + [brute_force(point, aggregate) for point in Point.at(theta, model)]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-4, atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("mechanism", ["sphere", "gaussian", "axis"])
def test_moments_of_reports_by_simulation(mechanism, intercept, d):
    """Decoded reports of Gaussian records have the mean and covariance that the likelihood uses."""
    protocol = protocol_of(mechanism, d, intercept, epsilon=20.0, data_norm=1.0)
    rng, n = np.random.default_rng(d), 400_000
    # Records so small that none is clipped.
    means = (rng.uniform(-0.12, 0.12, size=d), 0.1) if intercept else ()
    root = rng.uniform(-0.1, 0.1, size=(d, d)) + 0.05 * np.eye(d)
    point = Point(rng.uniform(-1, 1, size=d), 0.1, root @ root.T, *means)
    X = rng.multivariate_normal(point.mean, point.covariance, size=n)
    y = point.intercept + X @ point.coef + rng.normal(scale=abs(point.sigma), size=n)
    assert np.linalg.norm(X, axis=1).max() < 1 and np.abs(y).max() < 1, "nothing is clipped"
    expected, svec_cov, places = report_law(point, protocol)
    reports, mechanism = protocol._randomize(X, y, 0), protocol.randomizer
    axes = protocol.mechanism == "axis"
    sent = in_svec(mechanism.axis.decode(reports) if axes else mechanism.matrix(mechanism.decode(reports)), places)
    error = np.sqrt(np.diag(svec_cov) / n)
    assert np.abs((sent.mean(axis=0) - expected) / error).max() < 4.5
    deviation = (sent - expected) / np.sqrt(np.diag(svec_cov))
    correlation = svec_cov / np.sqrt(np.outer(np.diag(svec_cov), np.diag(svec_cov)))
    for i, j in itertools.combinations_with_replacement(range(len(places)), 2):
        product = deviation[:, i] * deviation[:, j]
        assert abs(product.mean() - correlation[i, j]) < 5 * product.std() / np.sqrt(n)


@pytest.mark.parametrize("intercept", [True, False])
def test_covariance_of_products_by_simulation(intercept):
    """Checks the formula in this file, with records far larger than the noise."""
    rng, n = np.random.default_rng(1), 1_000_000
    root = rng.normal(size=(3, 3))
    mean = rng.normal(size=3) * intercept
    v = mean + rng.normal(size=(n, 3)) @ root.T
    places = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)]
    sample = np.column_stack([v[:, i] * v[:, j] * (1 if i == j else np.sqrt(2)) for i, j in places])
    expected, svec_cov = svec_moments(mean, root @ root.T, places)
    size = np.sqrt(np.diag(svec_cov))
    np.testing.assert_allclose(sample.mean(axis=0) / size, expected / size, atol=5e-3)
    np.testing.assert_allclose(np.cov(sample.T) / np.outer(size, size), svec_cov / np.outer(size, size), atol=0.03)


@pytest.mark.parametrize("d", [1, 2, 4])
@pytest.mark.parametrize("intercept", [True, False])
def test_record_density_is_the_sum_over_rows_with_its_prior(intercept, d):
    total, rows = 0, []
    for epsilon, n in ((2.0, 7), (15.0, 11)):
        protocol = protocol_of("inputs", d, intercept, epsilon=epsilon, y_weight=0.6)
        reports = protocol._randomize(*records(d, n), 0)
        total = total + protocol.aggregate(reports)
        rows.append((protocol, reports * protocol.randomizer.norm / 2**16))
    model = LinearModel(total)
    theta = points(model)
    expected = PRIOR(model, theta)
    for i, (mean, covariance) in enumerate(point.joint(0.6) for point in Point.at(theta, model)):
        for protocol, z in rows:
            noisy = covariance + protocol.randomizer.noise_variance * np.eye(d + 1)
            expected[i] += stats.multivariate_normal(mean, noisy).logpdf(z).sum()
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_depends_on_the_weight_of_the_response(kind):
    """The same reports have another likelihood under another weight."""
    one, other = (LinearModel(Aggregate({protocol_of(kind, 1, True, y_weight=w): tally})) for w, tally in (
        (0.7, next(iter(aggregate_of(kind, 1, True, y_weight=0.7).parts.values()))),
        (0.35, next(iter(aggregate_of(kind, 1, True, y_weight=0.7).parts.values()))),
    ))
    other, theta = other.in_coordinates_of(one), points(one)
    assert np.abs(np.diff(one.log_density(theta)) - np.diff(other.log_density(theta))).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("d, prior, epsilon, tolerance", [
    (1, "auto", 5.0, 1e-5), (4, RegressionPrior.paper(), 5.0, 1e-5), (2, "auto", np.inf, 2e-3),
    (4, RegressionPrior(covariance_scale=0.3, sigma_scale=0.2, mean_scale=0.1, lkj_eta=1.5), 5.0, 1e-5)])
def test_gradient_matches_finite_differences(kind, intercept, d, prior, epsilon, tolerance):
    """The columns are nearly collinear, with correlations of 0.99."""
    protocol, total = protocol_of(kind, d, intercept, epsilon=epsilon), 0
    for seed in (0, 1):
        X, y = records(d, 10_000, seed)
        X = 0.1 * X + 0.3 * X[:, :1]
        total = total + protocol.aggregate(protocol._randomize(X, y, seed))
    model = LinearModel(total, prior)
    theta = points(model, 4)
    value, gradient = model.gradient(theta)
    np.testing.assert_allclose(value, model.log_density(theta), rtol=1e-12)
    numeric = differences(model.log_density, theta)
    np.testing.assert_allclose(gradient, numeric, rtol=tolerance, atol=tolerance * np.abs(numeric).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_natural_parameters_are_in_the_units_of_the_data(kind, intercept):
    d, norm, bounds = 2, 4.0, (10.0, 30.0)
    protocol = protocol_of(kind, d, intercept, data_norm=norm, bounds_y=bounds)
    model = LinearModel(protocol.aggregate(protocol._randomize(np.zeros((9, d)), np.full(9, 20.0), 0)))
    theta = points(model)
    natural, point = model.constrain(theta), model.coordinates.expand(theta)
    y_unit = 10.0 if intercept else 30.0
    expected = {"coef": point.coef * y_unit / norm, "sigma": point.sigma * y_unit,
                "covariance": norm**2 * point.covariance}
    if intercept:
        expected |= {"intercept": 20.0 + 10.0 * point.intercept, "x_mean": norm * point.x_mean}
    assert natural.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(natural[name], values)


@pytest.mark.parametrize("kind", KINDS)
def test_cohort_without_reports_changes_nothing(kind):
    one = aggregate_of(kind, 2, True, epsilon=1.0)
    other = protocol_of(kind, 2, True, epsilon=3.0)
    both = one + other.aggregate(np.empty((0, other.width), dtype=int))
    model, alone = LinearModel(both), LinearModel(one)
    theta = points(model)
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(alone.log_density(theta)), rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("d", [1, 5])
def test_initial_point_has_finite_density_for_arbitrary_reports(kind, intercept, d):
    """Uses random well-formed reports, whose decoded moments belong to no distribution."""
    for epsilon in (0.1, 20.0, np.inf):
        protocol = protocol_of(kind, d, intercept, epsilon=epsilon)
        side = protocol.width + (kind == "inputs")
        shape = (side, side) if kind in ("axis", "inputs") else (side,)
        for seed in range(20):
            rng = np.random.default_rng(seed)
            size = int(10 ** rng.uniform(0, 12))
            sums = rng.integers(-size, size + 1, size=shape)
            sums = sums if sums.ndim == 1 else sums + sums.T
            sums = sums.astype(np.int64 if kind == "axis" else object)
            model = LinearModel(Aggregate({protocol: Tally(int(rng.integers(1, 1000)), sums)}))
            start = model.initial()
            assert start.shape == (model.n_params,) and np.isfinite(start).all()
            assert np.isfinite(model.log_density(start[None])).all()
            assert np.isfinite(model.gradient(start[None])[1]).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_initial_point_from_many_reports_is_near_the_truth(kind, intercept):
    rng, d, n = np.random.default_rng(0), 3, 200_000
    X = rng.normal(0.1 * intercept, 0.25, size=(n, d))
    coef = np.array([0.5, -0.3, 0.2])
    y = X @ coef + 0.1 * intercept + rng.normal(0, 0.1, size=n)
    protocol = protocol_of(kind, d, intercept, epsilon=20.0)
    model = LinearModel(protocol.aggregate(protocol._randomize(X, y, 0)))
    start = model.constrain(model.initial()[None])
    np.testing.assert_allclose(start["coef"][0], coef, atol=0.1)
    np.testing.assert_allclose(start["sigma"][0], 0.1, atol=0.05)
    np.testing.assert_allclose(start["covariance"][0], 0.0625 * np.eye(d), atol=0.01)


def test_likelihood_is_chosen_by_the_protocol():
    assert isinstance(LinearModel(aggregate_of("sphere", 1, True)).likelihoods[0], MomentLikelihood)
    assert isinstance(LinearModel(aggregate_of("inputs", 1, True)).likelihoods[0], RecordLikelihood)
    assert isinstance(aggregate_of("sphere", 1, True).protocol.randomizer, SphereMoments)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_initial_point_of_very_many_reports_is_moderate_and_near_the_mode(kind, intercept):
    protocol = protocol_of(kind, 3, intercept, epsilon=np.inf)
    tally = next(iter(protocol.aggregate(protocol._randomize(*records(3, 500), 0)).parts.values()))
    model = LinearModel(Aggregate({protocol: Tally(500 * 10**6, tally.sums * 10**6)}))
    start = model.initial()
    assert np.abs(start).max() < 10
    value, gradient = model.gradient(start[None])
    assert np.isfinite(gradient).all()
    assert value[0] > model.log_density(points(model, 50, size=0.1)).max()
