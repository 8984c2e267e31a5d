"""Log-density of linear regressions against brute force, Monte Carlo, quadrature and finite differences."""

import itertools

import numpy as np
import pytest
from scipy import stats

from skldp.mechanisms import SphereMoments
from skldp.models import LinearModel
from skldp.models.regression._moment_likelihoods import MomentLikelihood, RecordLikelihood
from skldp.protocols import Aggregate, MomentProtocol, RecordProtocol
from skldp.protocols._tallies import Tally
from tests.models.regression.priors import covariance_coordinates, prior

KINDS = ["sphere", "gaussian", "inputs"]
KINDS_WITHOUT_REPORTS = ["sphere", "gaussian", "inputs"]


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


def points(model, n=5, seed=0):
    """Return parameters of a size typical of a posterior, with both signs."""
    theta = np.random.default_rng(seed).normal(scale=0.4, size=(n, model.n_params)) + 0.05
    theta[:, :model.n_features] *= 0.3
    return theta


class Point:
    """Parameters of a regression, computed from the definitions for one walker."""

    def __init__(self, coef, sigma, scales, free, mean=None, intercept=0.0):
        d = len(scales)
        rest, factor = list(free), np.zeros((d, d))
        self.sigma, self.scales, self.free = sigma, scales, []
        for j in range(d):
            row = np.array([rest.pop(0) for _ in range(j)])
            self.free.append(row)
            factor[j, :j + 1] = scales[j] * np.append(row, 1.0) / np.linalg.norm(np.append(row, 1.0))
        self.covariance = factor @ factor.T
        self.coef = coef
        self.mean, self.intercept = (np.zeros(d) if mean is None else mean), intercept

    @classmethod
    def of(cls, theta, model):
        """Return the point at coordinates: coef, scales, rows, mean and intercept, sigma."""
        d = model.n_features
        ends = np.cumsum([d, d, d * (d - 1) // 2])
        coef, scales, free, rest = np.split(theta, ends)
        means = (rest[:d], rest[d]) if model.coordinates.has_intercept else ()
        return cls(coef, theta[-1], scales, free, *means)

    def joint(self, w):
        """Mean and covariance of (x, w y)."""
        cross = self.covariance @ self.coef
        d = len(cross)
        covariance = np.empty((d + 1, d + 1))
        covariance[:d, :d] = self.covariance
        covariance[d, :d] = covariance[:d, d] = w * cross
        covariance[d, d] = w**2 * (self.coef @ cross + self.sigma**2)
        return np.append(self.mean, w * (self.intercept + self.coef @ self.mean)), covariance

    def log_prior(self, eta=2.0, coefficients=None):
        """Log-density of the prior in the coordinates, up to a constant, with LKJ rows of the factor."""
        d = len(self.coef)
        coefficients = coefficients or stats.multivariate_t(np.zeros(d), 0.25 * np.eye(d), df=3)
        value = np.sum(coefficients.logpdf(self.coef)) + stats.norm(0, 0.5).logpdf([self.sigma, *self.scales]).sum()
        value -= (d + 2 * eta - 1) / 2 * sum(np.log1p(row @ row) for row in self.free)
        value += stats.norm(0, 0.5).logpdf(self.mean).sum() + stats.norm(0, 1).logpdf(self.intercept)
        return value


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
    return mean, covariance, diagonal + list(itertools.combinations(range(order), 2))


def brute_force(point, aggregate):
    """Log-likelihood of an aggregate of moments, by an ordinary Gaussian density."""
    value = 0.0
    for protocol, tally in aggregate.parts.items():
        mean, covariance, places = extended(point, protocol)
        expected, svec_cov = svec_moments(mean, covariance, places)
        svec_cov += max(protocol.randomizer.noise_variance, 1e-9) * np.eye(len(places))
        found = protocol.randomizer.decode((tally.sums / tally.n_reports).astype(float)[None])[0]
        value += stats.multivariate_normal(expected, svec_cov / tally.n_reports).logpdf(found)
    return value


@pytest.mark.parametrize("d", [1, 2, 3, 4])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("mechanism", ["sphere", "gaussian"])
def test_moment_density_is_the_full_gaussian_with_its_prior(mechanism, intercept, d):
    aggregate = sum(aggregate_of(mechanism, d, intercept, n, epsilon=epsilon, y_weight=0.6)
                    for epsilon, n in ((1.0, 300), (8.0, 500)))
    model = LinearModel(aggregate)
    theta = points(model)
    expected = [brute_force(point, aggregate) + point.log_prior() for point in (Point.of(t, model) for t in theta)]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("d", [1, 3])
def test_moment_density_without_noise_is_accurate(intercept, d):
    """Without noise the constant entry has no variance, and its formula loses nine digits to cancellation."""
    aggregate = aggregate_of("sphere", d, intercept, 2000, epsilon=np.inf)
    model = LinearModel(aggregate)
    theta = model.initial() + 0.01 * points(model)
    expected = [brute_force(point, aggregate) + point.log_prior() for point in (Point.of(t, model) for t in theta)]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("d", [1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("mechanism", ["sphere", "gaussian"])
def test_moments_of_reports_by_simulation(mechanism, intercept, d):
    """Decoded reports of Gaussian records have the mean and covariance that the likelihood uses."""
    protocol = protocol_of(mechanism, d, intercept, epsilon=20.0, data_norm=1.0)
    rng, n = np.random.default_rng(d), 400_000
    # Records so small that none is clipped.
    means = (rng.uniform(-0.12, 0.12, size=d), 0.1) if intercept else ()
    point = Point(rng.uniform(-1, 1, size=d), 0.1, rng.uniform(-0.12, 0.12, size=d), rng.normal(size=d - 1), *means)
    X = rng.multivariate_normal(point.mean, point.covariance, size=n)
    y = point.intercept + X @ point.coef + rng.normal(scale=abs(point.sigma), size=n)
    assert np.linalg.norm(X, axis=1).max() < 1 and np.abs(y).max() < 1, "nothing is clipped"
    sent = protocol.randomizer.decode(protocol._randomize(X, y, 0))
    mean, covariance, places = extended(point, protocol)
    expected, svec_cov = svec_moments(mean, covariance, places)
    svec_cov += protocol.randomizer.noise_variance * np.eye(len(places))
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
    theta, expected = points(model), []
    for point in (Point.of(t, model) for t in theta):
        mean, covariance = point.joint(0.6)
        expected.append(point.log_prior() + sum(
            stats.multivariate_normal(mean, covariance + protocol.randomizer.noise_variance * np.eye(d + 1))
            .logpdf(z).sum() for protocol, z in rows))
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_likelihood_depends_on_the_weight_of_the_response(kind):
    """The same reports have another likelihood under another weight."""
    one, other = (LinearModel(Aggregate({protocol_of(kind, 1, True, y_weight=w): tally})) for w, tally in (
        (0.7, next(iter(aggregate_of(kind, 1, True, y_weight=0.7).parts.values()))),
        (0.35, next(iter(aggregate_of(kind, 1, True, y_weight=0.7).parts.values()))),
    ))
    theta = points(one)
    assert np.abs(np.diff(one.log_density(theta)) - np.diff(other.log_density(theta))).max() > 1e-3


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("d, prior_scale", [(1, "auto"), (2, 0.7), (4, "auto"), (4, 2.0)])
def test_gradient_matches_finite_differences(kind, intercept, d, prior_scale):
    aggregate = aggregate_of(kind, d, intercept, epsilon=5.0) + aggregate_of(kind, d, intercept, seed=1, epsilon=0.5)
    model = LinearModel(aggregate, prior(prior_scale, covariance_scale=0.3, sigma_scale=0.2, lkj_eta=1.5,
                                         mean_scale=0.1))
    theta = points(model, 4)
    value, gradient = model.gradient(theta)
    np.testing.assert_allclose(value, model.log_density(theta), rtol=1e-12)
    step = 1e-5
    ends = [(model.log_density(theta + step * e), model.log_density(theta - step * e)) for e in np.eye(model.n_params)]
    numeric = np.transpose([(above - below) / (2 * step) for above, below in ends])
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5 * np.abs(numeric).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_gradient_of_many_reports_without_noise(kind, intercept):
    model = LinearModel(aggregate_of(kind, 2, intercept, 20_000, epsilon=np.inf))
    theta = model.initial() + 0.02 * points(model, 3)
    _, gradient = model.gradient(theta)
    step = 1e-6
    ends = [(model.log_density(theta + step * e), model.log_density(theta - step * e)) for e in np.eye(model.n_params)]
    numeric = np.transpose([(above - below) / (2 * step) for above, below in ends])
    np.testing.assert_allclose(gradient, numeric, rtol=2e-3, atol=2e-3 * np.abs(numeric).max())


@pytest.mark.parametrize("kind", KINDS)
def test_signs_of_the_scales_are_not_identified(kind):
    model = LinearModel(aggregate_of(kind, 1, True))
    theta = points(model)
    flipped = theta * [1, -1, 1, 1, -1]  # signs of the scale of x and of sigma
    np.testing.assert_allclose(model.log_density(flipped), model.log_density(theta), rtol=1e-12)
    for name, values in model.constrain(theta).items():
        np.testing.assert_allclose(model.constrain(flipped)[name], values)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
def test_natural_parameters_are_in_the_units_of_the_data(kind, intercept):
    d, norm, bounds = 2, 4.0, (10.0, 30.0)
    protocol = protocol_of(kind, d, intercept, data_norm=norm, bounds_y=bounds)
    model = LinearModel(protocol.aggregate(protocol._randomize(np.zeros((9, d)), np.full(9, 20.0), 0)))
    theta = points(model)
    natural = model.constrain(theta)
    y_unit = 10.0 if intercept else 30.0
    for i, point in enumerate(Point.of(t, model) for t in theta):
        np.testing.assert_allclose(natural["coef"][i], point.coef * y_unit / norm)
        np.testing.assert_allclose(natural["sigma"][i], abs(point.sigma) * y_unit)
        np.testing.assert_allclose(natural["covariance"][i], point.covariance * norm**2)
        if intercept:
            np.testing.assert_allclose(natural["intercept"][i], 20.0 + 10.0 * point.intercept)
    assert ("intercept" in natural) == intercept


@pytest.mark.parametrize("kind", KINDS)
def test_scales_of_the_priors_are_in_the_units_of_the_data(kind):
    """Numbers given by the user are standard deviations of coef, sigma and the scales of x in the units of the data."""
    protocol = protocol_of(kind, 2, True, data_norm=4.0, bounds_y=(10.0, 30.0))
    aggregate = protocol.aggregate(protocol._randomize(np.zeros((9, 2)), np.full(9, 20.0), 0))
    plain = LinearModel(aggregate)
    theta = points(plain)
    natural = plain.constrain(theta)
    half = np.array([Point.of(t, plain).scales for t in theta])
    means = 4 * np.array([Point.of(t, plain).mean for t in theta])
    student = stats.multivariate_t(np.zeros(2), (0.5 * 10 / 4) ** 2 * np.eye(2), df=3).logpdf(natural["coef"])
    changes = {
        "coef_scale": (1.7, stats.norm(0, 1.7).logpdf(natural["coef"]).sum(axis=1) - student),
        "sigma_scale": (3.0, stats.norm(0, 3.0).logpdf(natural["sigma"]) - stats.norm(0, 5.0).logpdf(natural["sigma"])),
        "covariance_scale": (0.9, (stats.norm(0, 0.9).logpdf(4 * half) - stats.norm(0, 2.0).logpdf(4 * half)).sum(1)),
        "mean_scale": (0.4, (stats.norm(0, 0.4).logpdf(means) - stats.norm(0, 2.0).logpdf(means)).sum(1)),
    }
    for name, (value, expected) in changes.items():
        found = LinearModel(aggregate, prior(**{name: value})).log_density(theta) - plain.log_density(theta)
        np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-8, err_msg=name)


def correlations(covariance):
    size = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    return covariance / size[:, :, None] / size[:, None, :]


@pytest.mark.parametrize("eta", [0.7, 1.0, 2.0, 5.0])
def test_correlation_of_two_features_is_a_beta(eta):
    coordinates = covariance_coordinates(2, 0.5, eta)
    t = np.linspace(-14, 14, 40_001)
    point = coordinates.expand(np.column_stack([np.full((len(t), 2), 0.3), np.sinh(t)]))
    weight = np.exp(point.log_prior()) * np.cosh(t)
    r = correlations(point.covariance)[:, 0, 1]
    share = (np.cumsum(weight) - weight / 2) / weight.sum()
    np.testing.assert_allclose(share, stats.beta(eta, eta).cdf((r + 1) / 2), atol=1e-5)


@pytest.mark.parametrize("eta", [1.0, 2.5])
@pytest.mark.parametrize("d", [3, 4])
def test_correlations_of_more_features_have_the_beta_marginals_of_lkj(d, eta):
    """Uses importance sampling with a proposal of heavier tails, one row of the factor at a time."""
    coordinates, rng, n = covariance_coordinates(d, 0.5, eta), np.random.default_rng(0), 300_000
    columns, log_proposal = [np.full((n, d), 0.3)], 0.0
    for j in range(1, d):
        proposal = stats.multivariate_t(np.zeros(j), np.eye(j) / 2, df=2, seed=rng)
        rows = proposal.rvs(n).reshape(n, j)
        columns.append(rows)
        log_proposal = log_proposal + proposal.logpdf(rows)
    point = coordinates.expand(np.hstack(columns))
    weight = np.exp(point.log_prior() - log_proposal)
    weight /= weight.sum()
    shape = eta + d / 2 - 1
    for i, j in itertools.combinations(range(d), 2):
        r = correlations(point.covariance)[:, i, j]
        for u in (0.05, 0.3, 0.5, 0.9):
            below = r < 2 * stats.beta(shape, shape).ppf(u) - 1
            error = np.sqrt(np.sum(weight**2 * (below - u) ** 2))
            assert abs(weight @ below - u) < 5 * error


@pytest.mark.parametrize("d", [1, 2, 5])
def test_gradient_of_covariance_coordinates_matches_finite_differences(d):
    coordinates, rng = covariance_coordinates(d, 0.4, 1.3), np.random.default_rng(0)
    by_covariance = rng.normal(size=(3, d, d))
    by_covariance = by_covariance + by_covariance.swapaxes(1, 2)
    theta = rng.normal(size=(3, coordinates.n_params))

    def value(theta):
        point = coordinates.expand(theta)
        return np.einsum("wij,wij->w", by_covariance, point.covariance) + point.log_prior()

    step = 1e-6
    numeric = [(value(theta + step * e) - value(theta - step * e)) / (2 * step) for e in np.eye(coordinates.n_params)]
    gradient = coordinates.expand(theta).pull_back(by_covariance)
    np.testing.assert_allclose(gradient, np.transpose(numeric), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_coordinates_of_a_covariance_are_inverted(d):
    rng = np.random.default_rng(d)
    root = rng.normal(size=(d, d))
    coordinates = covariance_coordinates(d, 0.5, 2.0)
    theta = coordinates.coordinates(root @ root.T)
    assert (theta[:d] > 0).all()
    np.testing.assert_allclose(coordinates.expand(theta[None]).covariance[0], root @ root.T, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS_WITHOUT_REPORTS)
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
        shape = (protocol.width,) if kind != "inputs" else (protocol.width + 1, protocol.width + 1)
        for seed in range(20):
            rng = np.random.default_rng(seed)
            size = int(10 ** rng.uniform(0, 12))
            sums = rng.integers(-size, size + 1, size=shape)
            sums = sums if kind != "inputs" else sums + sums.T
            model = LinearModel(Aggregate({protocol: Tally(int(rng.integers(1, 1000)), sums.astype(object))}))
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
@pytest.mark.parametrize("d, prior_scale", [(1, "auto"), (3, "auto"), (4, 2.0)])
def test_coupled_coordinates_have_the_same_posterior(kind, intercept, d, prior_scale):
    """The density is that of theta times the Jacobian, which is computed numerically; the map is inverted."""
    model = LinearModel(aggregate_of(kind, d, intercept, 4000, epsilon=5.0), prior(prior_scale))
    coupled, theta = model.reparametrised(), points(model)
    theta_coupled = coupled.coordinates.from_plain(theta)
    assert np.abs(theta_coupled - theta).max() > 0.01, "the coordinates differ"
    np.testing.assert_allclose(coupled.coordinates.to_plain(theta_coupled), theta, rtol=1e-10, atol=1e-12)
    step = 1e-6 * np.eye(model.n_params)
    plain = coupled.coordinates.to_plain
    jacobians = [(plain(point + step) - plain(point - step)) / 2e-6 for point in theta_coupled]
    expected = model.log_density(theta) + np.linalg.slogdet(np.array(jacobians))[1]
    np.testing.assert_allclose(np.diff(coupled.log_density(theta_coupled)), np.diff(expected), rtol=1e-7, atol=1e-5)
    for name, values in model.constrain(theta).items():
        np.testing.assert_allclose(coupled.constrain(theta_coupled)[name], values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("d, prior_scale", [(1, "auto"), (2, 0.7), (4, "auto"), (4, 2.0)])
def test_gradient_in_coupled_coordinates_matches_finite_differences(kind, intercept, d, prior_scale):
    aggregate = aggregate_of(kind, d, intercept, epsilon=5.0) + aggregate_of(kind, d, intercept, seed=1, epsilon=0.5)
    model = LinearModel(aggregate, prior(prior_scale, covariance_scale=0.3, sigma_scale=0.2,
                                         mean_scale="learned" if d == 4 else 0.1)).reparametrised()
    theta = points(model, 4)
    value, gradient = model.gradient(theta)
    np.testing.assert_allclose(value, model.log_density(theta), rtol=1e-12)
    step = 1e-5
    ends = [(model.log_density(theta + step * e), model.log_density(theta - step * e)) for e in np.eye(model.n_params)]
    numeric = np.transpose([(above - below) / (2 * step) for above, below in ends])
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-5 * np.abs(numeric).max())


@pytest.mark.parametrize("intercept", [True, False])
def test_coupled_coordinates_have_the_same_initial_point(intercept):
    model = LinearModel(aggregate_of("sphere", 3, intercept, 4000))
    start = model.reparametrised().coordinates.to_plain(model.reparametrised().initial()[None])[0]
    np.testing.assert_allclose(start, model.initial(), rtol=1e-10, atol=1e-12)
    assert np.isfinite(model.reparametrised().initial()).all()


@pytest.mark.parametrize("intercept", [True, False])
def test_without_reports_coordinates_are_not_coupled(intercept):
    protocol = protocol_of("sphere", 2, intercept)
    model = LinearModel(protocol.aggregate(np.empty((0, protocol.width), dtype=int)))
    theta = points(model)
    coupled = model.reparametrised()
    np.testing.assert_allclose(coupled.log_density(coupled.coordinates.from_plain(theta)), model.log_density(theta))


@pytest.mark.parametrize("kind", KINDS)
def test_coupled_coordinates_of_very_many_reports_are_moderate(kind):
    """For every number of reports and every noise, the coordinates are about as large as the coefficients."""
    protocol = protocol_of(kind, 3, True, epsilon=np.inf)
    sums = next(iter(protocol.aggregate(protocol._randomize(*records(3, 500), 0)).parts.values()))
    model = LinearModel(Aggregate({protocol: Tally(500 * 10**9, sums.sums * 10**9)}))
    assert np.abs(model.reparametrised().initial()).max() < 10
    assert np.isfinite(model.reparametrised().gradient(model.reparametrised().initial()[None])[1]).all()
