"""Log-density of logistic regressions against brute force, Monte Carlo, quadrature and finite differences."""

import itertools

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import expit

from skldp import RegressionPrior
from skldp.exceptions import InvalidParameterError
from skldp.models import LogisticMomentModel, LogisticRecordModel
from skldp.models.regression._label_moments import LabelMomentLikelihood, LabelMoments
from skldp.models.regression._label_records import (
    _KNOTS,
    LINKS,
    _powers_by_cell,
    chebyshev_slope,
    mean_tanh,
    quadrature_link,
)
from skldp.models.regression._sigmoid import tanh_means
from skldp.protocols import Aggregate, LabelMomentProtocol, LabelRecordProtocol
from skldp.protocols._tallies import RecordTally, Tally
from skldp.sampling._density import GuardedModel, quiet
from tests.models.regression.priors import Prior, differences
from tests.models.regression.test_linear import axis_covariance

KINDS = ["sphere", "axis", "gaussian", "inputs"]
PRIOR = Prior(1.25, intercept=(0.0, 2.5))
with_and_without = pytest.mark.parametrize("intercept", [True, False])


def protocol_of(kind, d, intercept, **options):
    if kind == "inputs":
        return LabelRecordProtocol(n_features=d, **options)
    weight = {} if intercept else {"intercept_weight": 0.0}
    return LabelMomentProtocol(n_features=d, mechanism=kind, **weight, **options)


def model_of(aggregate, kind, intercept, **options):
    if kind == "inputs":
        return LogisticRecordModel(aggregate, fit_intercept=intercept, **options)
    return LogisticMomentModel(aggregate, **options)


def records(d, n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0.05, 0.4 / np.sqrt(d), size=(n, d))
    return X, (rng.random(n) < expit(X @ np.linspace(3.0, -2.0, d) + 0.4)).astype(int)


def aggregate_of(kind, d, intercept, n=400, seed=0, **options):
    protocol = protocol_of(kind, d, intercept, **options)
    return protocol.aggregate(protocol._randomize(*records(d, n, seed), 0))


def points(model, n=5, seed=0, size=0.4):
    """Return coordinates about as far from the reported moments as the posterior extends."""
    start = model.coordinates.start(model.reported.covariance[:-1, :-1])
    return start + np.random.default_rng(seed).normal(0.05, size, size=(n, model.n_params))


class Point:
    """Parameters of a regression for one walker, in public units."""

    def __init__(self, coef, covariance, x_mean=None, intercept=0.0):
        self.coef, self.covariance, self.intercept = np.asarray(coef, dtype=float), np.asarray(covariance), intercept
        self.mean = np.zeros(len(self.coef)) if x_mean is None else np.asarray(x_mean)

    @classmethod
    def at(cls, theta, model):
        """Return the points at coordinates, whose map to parameters is tested in test_coordinates."""
        params = model.constrain(theta)
        return [cls(**{name: values[i] for name, values in params.items()}) for i in range(len(theta))]

    def moments(self, protocol):
        """Return the moments at this point from the library."""
        constant = protocol.has_intercept
        return LabelMoments(self.covariance[None], self.coef[None], self.mean[None] if constant else None,
                            np.array([self.intercept]) if constant else None, protocol.y_weight,
                            protocol.intercept_weight)


# ---- Moments of tanh

@pytest.mark.parametrize("std, tolerance, of_derivatives", [
    (0.0, 1e-13, 1e-13), (1.0, 1e-12, 1e-12), (4.0, 1e-12, 1e-12), (10.0, 1e-12, 2e-10), (20.0, 1e-6, 3e-5),
    (60.0, 3e-3, 6e-3),
])
def test_means_of_tanh_and_its_derivatives_match_quadrature(std, tolerance, of_derivatives):
    curves = [lambda u: np.tanh(u / 2), lambda u: 0.5 / np.cosh(u / 2) ** 2,
              lambda u: -0.5 * np.tanh(u / 2) / np.cosh(u / 2) ** 2,
              lambda u: (2 * np.tanh(u / 2) ** 2 - 1 / np.cosh(u / 2) ** 2) / (4 * np.cosh(u / 2) ** 2)]
    for mean in (-6.0, -0.1, 2.5):
        found = tanh_means(np.array([mean]), np.array([std**2]))[:, 0]
        for number, curve in enumerate(curves):
            expected = curve(mean)
            if std:
                # Split near u = 0, where the curve changes, and around the mean, where the density is large.
                ends = np.clip([-40.0, -5.0, 0.0, 5.0, 40.0, mean], mean - 10 * std, mean + 10 * std)
                knots = np.unique([mean - 10 * std, *ends, mean + 10 * std])
                expected = sum(integrate.quad(lambda u: curve(u) * stats.norm.pdf(u, mean, std), low, high,
                                              epsabs=1e-14, epsrel=1e-13)[0] for low, high in itertools.pairwise(knots))
            assert abs(found[number] - expected) < (of_derivatives if number else tolerance), (mean, number)


def test_means_of_tanh_are_vectorised_and_treat_negative_variance_as_zero():
    mean, variance = np.array([0.5, -1.0, 2.0]), np.array([1.0, 4.0, -1e-18])
    found = tanh_means(mean, variance)
    assert found.shape == (4, 3)
    for i in range(3):
        np.testing.assert_allclose(tanh_means(mean[i:i + 1], variance[i:i + 1])[:, 0], found[:, i], rtol=1e-13)
    np.testing.assert_allclose(found[:, 2], tanh_means(mean[2:], np.zeros(1))[:, 0])


# ---- Moments of a report

def monomials(protocol):
    """Entries of a report, diagonal first: coefficient, columns of x, and whether the label is a factor."""
    d, w, kappa = protocol.n_features, protocol.y_weight, protocol.intercept_weight
    letters = [(1.0, (j,), 0) for j in range(d)] + [(w, (), 1)]
    if kappa:
        letters.insert(0, (kappa, (), 0))
    first = int(kappa > 0)
    pairs = [(i, i) for i in range(first, first + d)] + list(itertools.combinations(range(len(letters)), 2))
    return [(letters[i][0] * letters[j][0] * (1.0 if i == j else np.sqrt(2)), letters[i][1] + letters[j][1],
             letters[i][2] + letters[j][2]) for i, j in pairs]


def gaussian_moment(columns, mean, covariance):
    """Mean of a product of columns of Gaussians with given means, shape (d, n), by the recursion of Isserlis."""
    if not columns:
        return np.ones(mean.shape[1])
    first, rest = columns[0], columns[1:]
    value = mean[first] * gaussian_moment(rest, mean, covariance)
    for place, other in enumerate(rest):
        value = value + covariance[first, other] * gaussian_moment(rest[:place] + rest[place + 1:], mean, covariance)
    return value


class Expectation:
    """Means of monomials of x and a label: Gaussian given the linear predictor, then one integral over it."""

    def __init__(self, point):
        cov_xu = point.covariance @ point.coef
        variance = point.coef @ cov_xu
        nodes = np.linspace(-9, 9, 1201)
        self.weights = np.exp(-nodes**2 / 2) / np.exp(-nodes**2 / 2).sum()
        predictor = point.intercept + point.coef @ point.mean + np.sqrt(variance) * nodes
        self.label = 2 * expit(predictor) - 1
        self.mean = point.mean[:, None] + np.outer(cov_xu, nodes) / np.sqrt(variance)
        self.covariance = point.covariance - np.outer(cov_xu, cov_xu) / variance

    def __call__(self, columns, labels):
        value = gaussian_moment(columns, self.mean, self.covariance)
        return float(self.weights @ (value * self.label if labels % 2 else value))


def report_moments(point, protocol):
    """Mean and covariance of the statistic of a client, entry by entry."""
    entries, expectation = monomials(protocol), Expectation(point)
    mean = np.array([c * expectation(x, y) for c, x, y in entries])
    covariance = np.array([[c * e * expectation(x + u, y + v) for e, u, v in entries] for c, x, y in entries])
    return mean, covariance - np.outer(mean, mean)


def a_point(d, intercept, seed=0, size=0.5):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(d, d)) * size / np.sqrt(d)
    means = (rng.normal(scale=0.4, size=d), 0.7) if intercept else ()
    return Point(rng.normal(scale=2.5, size=d), root @ root.T + 0.02 * np.eye(d), *means)


def parts_of_the_library(point, protocol):
    """Mean and covariance of a report from the library, in the order of the report's entries."""
    d, w, kappa, moments = protocol.n_features, protocol.y_weight, protocol.intercept_weight, point.moments(protocol)
    above = np.triu_indices(d, 1)
    rows, columns = (np.concatenate([np.arange(d), part]) for part in above)
    root = np.where(rows == columns, 1.0, np.sqrt(2))
    second, cross, y = moments.second()[0], moments.cross[0], moments.means[0, 0]
    mean = [second[rows, columns] * root]
    if kappa:
        mean += [np.sqrt(2) * kappa * point.mean, [np.sqrt(2) * kappa * w * y]]
    mean.append(np.sqrt(2) * w * cross)
    names = [("xx", j, k) for j, k in zip(rows, columns)]
    names += [("x", j, 0) for j in range(d)] + [("y", 0, 0)] if kappa else []
    names += [("xy", j, 0) for j in range(d)]
    aside = moments.cross_covariance(rows, columns)[0] * root[:, None]
    return names, np.concatenate(mean), aside, moments.linear_covariance()[0]


def order_of(protocol, names):
    """Positions of the entries of monomials() among the names."""
    kinds = []
    for _, x, y in monomials(protocol):
        kinds.append(("xx", *x) if len(x) == 2 else ("xy", *x, 0) if x and y else ("x", *x, 0) if x else ("y", 0, 0))
    return [names.index(kind) for kind in kinds]


@with_and_without
@pytest.mark.parametrize("d", [1, 2, 3])
def test_moments_of_a_report_match_an_independent_integral(intercept, d):
    protocol = protocol_of("sphere", d, intercept, y_weight=0.8, **({"intercept_weight": 0.6} if intercept else {}))
    for seed in range(4):
        point = a_point(d, intercept, seed)
        names, mean, aside, rest = parts_of_the_library(point, protocol)
        order = order_of(protocol, names)
        expected, covariance = report_moments(point, protocol)
        place = np.argsort(order)
        expected, covariance = expected[place], covariance[np.ix_(place, place)]
        n = len(aside)
        np.testing.assert_allclose(mean, expected, atol=1e-12)
        np.testing.assert_allclose(aside, covariance[:n, n:], atol=1e-12)
        np.testing.assert_allclose(rest, covariance[n:, n:], atol=1e-12)


@pytest.mark.parametrize("d, intercept", [(1, True), (2, True), (2, False)])
def test_moments_of_a_report_match_four_million_simulated_clients(d, intercept):
    """Uses no formula: clients are drawn, and their statistics are averaged."""
    protocol = protocol_of("sphere", d, intercept)
    point = a_point(d, intercept, seed=7)
    names, mean, aside, rest = parts_of_the_library(point, protocol)
    order = order_of(protocol, names)
    likelihood = LabelMomentLikelihood(protocol, Tally(1, np.zeros(protocol.width, dtype=object)))
    noisy = np.linalg.inv(likelihood.precision(point.moments(protocol)))
    covariance = (noisy - likelihood.noise * np.eye(len(noisy)))[np.ix_(order, order)]
    mean = mean[order]
    rng, n, block = np.random.default_rng(3), 4_000_000, 250_000
    root = np.linalg.cholesky(point.covariance)
    entries = monomials(protocol)
    first, second, fourth = 0.0, 0.0, 0.0
    for _ in range(n // block):
        x = point.mean + rng.standard_normal((block, d)) @ root.T
        y = np.where(rng.random(block) < expit(point.intercept + x @ point.coef), 1.0, -1.0)
        sample = np.column_stack([c * x[:, list(u)].prod(axis=1) * y**v for c, u, v in entries]) - mean
        squares = sample**2
        first, second, fourth = first + sample.sum(axis=0), second + sample.T @ sample, fourth + squares.T @ squares
    error = np.sqrt(np.diag(covariance) / n)
    assert np.abs(first / n / error).max() < 4.5
    standard_error = np.sqrt((fourth / n - (second / n) ** 2) / n)
    assert np.abs((second / n - covariance) / standard_error).max() < 5


def test_moments_do_not_depend_on_the_coordinates_of_x():
    protocol = protocol_of("sphere", 3, True)
    moments = a_point(3, True).moments(protocol)
    values, vectors = np.linalg.eigh(moments.second())
    turned = moments.rotated(vectors, values)
    np.testing.assert_allclose(turned.second()[0], np.diag(values[0]), atol=1e-13)
    np.testing.assert_allclose(turned.cross[0], vectors[0].T @ moments.cross[0], atol=1e-13)
    assert turned.means is moments.means, "the linear predictor is the same"


# ---- Density of the statistics

def report_law(point, protocol):
    """Mean and covariance of one decoded report."""
    mean, covariance = report_moments(point, protocol)
    mechanism = protocol.randomizer
    if protocol.mechanism == "axis":
        places = list(zip(*mechanism.places))
        return mean, axis_covariance(mechanism.noise, mechanism.matrix(mean), places, covariance)
    return mean, covariance + max(mechanism.noise_variance, 1e-9) * np.eye(len(mean))


@with_and_without
@pytest.mark.parametrize("epsilon", [1.0, 8.0])
def test_covariance_of_axis_reports_by_simulation(intercept, epsilon):
    """Clients draw records and reports; nothing is clipped."""
    protocol, point = protocol_of("axis", 2, intercept, epsilon=epsilon), a_point(2, intercept, size=0.1)
    point.mean, point.covariance = 0.2 * point.mean, 0.5 * point.covariance
    rng, n = np.random.default_rng(0), 300_000
    x = rng.multivariate_normal(point.mean, point.covariance, size=n)
    y = (rng.random(n) < expit(point.intercept + x @ point.coef)).astype(int)
    assert np.linalg.norm(x, axis=1).max() < 1
    sent = protocol.randomizer.decode(protocol._randomize(x, y, 0))
    mean, covariance = report_law(point, protocol)
    size = np.sqrt(np.diag(covariance))
    deviation = (sent - mean) / size
    assert np.abs(deviation.mean(axis=0)).max() < 4.5 / np.sqrt(n)
    for i, j in itertools.combinations_with_replacement(range(len(mean)), 2):
        product = deviation[:, i] * deviation[:, j]
        assert abs(product.mean() - covariance[i, j] / (size[i] * size[j])) < 5 * product.std() / np.sqrt(n)


def brute_force(point, aggregate):
    """Log-likelihood of an aggregate of moments, by an ordinary Gaussian density."""
    value = 0.0
    for protocol, tally in aggregate.parts.items():
        mean, covariance = report_law(point, protocol)
        found = protocol.mean_moments(tally)
        value += stats.multivariate_normal(mean, covariance / tally.n_reports).logpdf(found)
    return value


@pytest.mark.parametrize("d", [1, 2, 3])
@with_and_without
@pytest.mark.parametrize("mechanism", ["sphere", "gaussian", "axis"])
def test_moment_density_is_the_full_gaussian_with_its_prior(mechanism, intercept, d):
    aggregate = sum(aggregate_of(mechanism, d, intercept, n, epsilon=epsilon, y_weight=0.6)
                    for epsilon, n in ((1.0, 300), (8.0, 500)))
    model = LogisticMomentModel(aggregate)
    theta = points(model, 4)
    expected = PRIOR(model, theta) + [brute_force(point, aggregate) for point in Point.at(theta, model)]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("d", [1, 2, 4])
@with_and_without
@pytest.mark.parametrize("mechanism", ["sphere", "axis"])
def test_moment_density_is_the_gaussian_with_the_full_precision(mechanism, intercept, d):
    aggregate = aggregate_of(mechanism, d, intercept, epsilon=20.0)
    model = LogisticMomentModel(aggregate)
    part, theta = model.likelihoods[0], points(model, 6)
    found, expected = [], []
    for t in theta[:, None]:
        moments = model.moments(model.coordinates.expand(t))
        precision = part.precision(moments)
        found.append(part.log_likelihood(moments)[0])
        expected.append(part.plug_in(moments, precision)[0][0] + 0.5 * np.linalg.slogdet(precision)[1])
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-8)


@with_and_without
def test_moment_density_without_noise_is_accurate(intercept):
    aggregate = aggregate_of("sphere", 2, intercept, 2000, epsilon=np.inf)
    model = LogisticMomentModel(aggregate)
    theta = points(model, size=0.1)
    expected = PRIOR(model, theta) + [brute_force(point, aggregate) for point in Point.at(theta, model)]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-4, atol=1e-3)


@with_and_without
def test_approximation_equals_the_density_at_the_pilot_estimate(intercept):
    """They are equal except for the log-determinant, which the approximation takes as constant."""
    aggregate = aggregate_of("sphere", 2, intercept, epsilon=4.0) + aggregate_of("sphere", 2, intercept, epsilon=1.0)
    model = LogisticMomentModel(aggregate)
    pilot = model.approximation.initial()
    covariances = [report_moments(Point.at(pilot[None], model)[0], protocol)[1] for protocol in aggregate.parts]
    constant = sum(-0.5 * np.linalg.slogdet(covariance + part.noise * np.eye(len(covariance)))[1]
                   for covariance, part in zip(covariances, model.likelihoods))
    exact, approximate = model.log_density(pilot[None])[0], model.approximation.log_density(pilot[None])[0]
    assert exact == pytest.approx(approximate + constant, abs=1e-7)


@with_and_without
@pytest.mark.parametrize("epsilon", [0.5, 4.0, np.inf])
def test_pilot_estimate_is_a_mode_of_the_approximation(intercept, epsilon):
    for kind in KINDS:
        model = model_of(aggregate_of(kind, 2, intercept, 4000, epsilon=epsilon), kind, intercept).approximation
        around = model.pilot + np.random.default_rng(0).normal(scale=0.01, size=(40, model.n_params))
        assert model.log_density(model.pilot[None])[0] > model.log_density(around).max() - 1e-3


def test_under_noise_the_approximation_is_close_to_the_density():
    """Within the posterior they differ by a fraction of a unit, so the gradient is a good surrogate."""
    for kind in KINDS:
        model = model_of(aggregate_of(kind, 2, True, 4000, epsilon=1.0), kind, True)
        near = model.approximation.initial() + np.random.default_rng(0).normal(0, 0.3, size=(30, model.n_params))
        gap = model.log_density(near) - model.approximation.log_density(near)
        assert np.ptp(gap) < 0.5 and np.ptp(model.log_density(near)) > 2 * np.ptp(gap)


# ---- Gradients

@pytest.mark.parametrize("kind", KINDS)
@with_and_without
@pytest.mark.parametrize("d, prior", [
    (1, "auto"), (4, "auto"), (2, RegressionPrior.paper()),
    (4, RegressionPrior(covariance_scale=0.3, lkj_eta=1.5, mean_scale=0.1))])
def test_gradient_of_the_approximation_matches_finite_differences(kind, intercept, d, prior):
    """The columns are nearly collinear, with correlations of 0.99."""
    total = 0
    for epsilon, n in ((5.0, 400), (2.0, 30_000)):
        protocol = protocol_of(kind, d, intercept, epsilon=epsilon)
        X, y = records(d, n)
        total = total + protocol.aggregate(protocol._randomize(0.1 * X + 0.3 * X[:, :1], y, 0))
    model = model_of(total, kind, intercept, prior=prior)
    theta, approximation = points(model, 4), model.approximation
    value, gradient = approximation.gradient(theta)
    np.testing.assert_allclose(value, approximation.log_density(theta), rtol=1e-12)
    assert (model.surrogate(theta) == gradient).all()
    numeric = differences(approximation.log_density, theta)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6 * np.abs(numeric).max())


@with_and_without
def test_without_noise_the_gradient_of_the_expansion_is_exact(intercept):
    """Without noise the linear predictor is known and its variance is zero, so no average is needed."""
    model = model_of(aggregate_of("inputs", 2, intercept, 3000, epsilon=np.inf), "inputs", intercept)
    pilot, step = model.approximation.initial(), 1e-5
    gradient = model.surrogate(pilot[None])[0]
    moved = pilot + step * np.vstack([np.eye(model.n_params), -np.eye(model.n_params)])
    above, below = np.split(model.log_density(moved), 2)
    scale = np.abs(model.surrogate(pilot[None] + 0.01)).max()
    np.testing.assert_allclose((above - below) / (2 * step), gradient, atol=1e-3 * scale)


def test_expansion_of_the_labels_has_their_score_and_expected_information():
    part = model_of(aggregate_of("inputs", 2, True, 500, epsilon=2.0), "inputs", True).likelihoods[0]
    shrunk, step = np.array([0.4, -1.0, 0.7]), 1e-5

    def log_probability(sign, shift):
        """Logarithm of the probability of the reported labels, or of the opposite ones, with shifted log-odds."""
        return np.log(0.5 * (1 + sign * part.contrast * np.tanh(0.5 * (shrunk @ part.signed + shift))))

    scores = {sign: (log_probability(sign, step) - log_probability(sign, -step)) / (2 * step) for sign in (1, -1)}
    expected = sum(np.exp(log_probability(sign, 0.0)) * score**2 for sign, score in scores.items())
    gradient, information = part.expansion(shrunk)
    np.testing.assert_allclose(gradient, part.signed @ scores[1], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(information, (part.signed * expected) @ part.signed.T, rtol=1e-6, atol=1e-6)


# ---- Density of the records

def integrated(point, protocol, reports):
    """Log-likelihood of rows, by integrals over x of p(x) p(z | x) p(label | x) on a grid."""
    mechanism, d = protocol.randomizer, protocol.n_features
    noise, keep = max(mechanism.noise_variance, 1e-9), 1 / (1 + np.exp(-mechanism.label.epsilon))
    nodes = np.linspace(-9, 9, 6001 if d == 1 else 401)
    axes = np.meshgrid(*[nodes] * d, indexing="ij")
    white = np.stack([axis.ravel() for axis in axes], axis=1)
    weights = np.exp(-0.5 * (white**2).sum(axis=1)) * ((nodes[1] - nodes[0]) / np.sqrt(2 * np.pi)) ** d
    x = point.mean + white @ np.linalg.cholesky(point.covariance).T
    positive = expit(point.intercept + x @ point.coef)
    reported = keep * positive + (1 - keep) * (1 - positive)
    total = 0.0
    for row in mechanism.decode(reports):
        density = np.exp(-0.5 * ((row[:-1] - x) ** 2).sum(axis=1) / noise) / (2 * np.pi * noise) ** (d / 2)
        total += np.log(weights @ (density * (reported if row[-1] > 0 else 1 - reported)))
    return total


@pytest.mark.parametrize("d, epsilon", [(1, 0.5), (1, 4.0), (1, 20.0), (2, 2.0), (2, 20.0)])
@pytest.mark.parametrize("split", [0.5, 0.2])
@with_and_without
def test_record_density_is_an_integral_over_the_records(d, epsilon, split, intercept):
    protocol = LabelRecordProtocol(n_features=d, epsilon=epsilon, budget_split=split)
    reports = protocol._randomize(*records(d, 6), 0)
    model = LogisticRecordModel(protocol.aggregate(reports), fit_intercept=intercept)
    theta = points(model, 3)
    expected = PRIOR(model, theta) + [integrated(point, protocol, reports) for point in Point.at(theta, model)]
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), atol=1e-6)


def test_log_densities_of_record_cohorts_add():
    rows = []
    for epsilon, n in ((3.0, 5), (12.0, 7)):
        protocol = LabelRecordProtocol(n_features=1, epsilon=epsilon)
        rows.append((protocol, protocol._randomize(*records(1, n), 0)))
    model = LogisticRecordModel(sum(protocol.aggregate(reports) for protocol, reports in rows))
    theta = points(model, 4)
    expected = PRIOR(model, theta) + [sum(integrated(point, *row) for row in rows) for point in Point.at(theta, model)]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), atol=1e-6)


@pytest.mark.parametrize("variance", [1e-6, 0.01, 0.5, 2.5, 3.9, 16.1, 250.0, 624.0, 626.0, 1e5, 1e8])
def test_mean_tanh_and_its_derivative_are_accurate_to_seven_digits(variance):
    positions = np.linspace(-25, 25, 301)
    found, derivative = mean_tanh(positions, variance)
    expected = tanh_means(positions, np.full(301, variance))
    np.testing.assert_allclose(found, expected[0], atol=1e-8)
    np.testing.assert_allclose(derivative, expected[1], atol=1e-7)


@pytest.mark.parametrize("contrast", [0.05, 0.46, 0.9, 0.9999])
@pytest.mark.parametrize("variance", [1e-8, 0.3, 9.0])
def test_table_matches_a_sum_over_rows(contrast, variance):
    positions = np.random.default_rng(0).normal(1.0, 2.5, size=20_000)
    direct = np.log1p(contrast * tanh_means(positions, np.full(len(positions), variance))[0]).sum()
    assert abs(quadrature_link(positions, variance, contrast) - direct) < 1e-7 * len(positions)
    for few in (positions[:1], positions[:2], np.full(5, 0.7), np.array([0.3, 0.3 + 1e-12])):
        direct = np.log1p(contrast * tanh_means(few, np.full(len(few), variance))[0]).sum()
        assert quadrature_link(few, variance, contrast) == pytest.approx(direct, abs=1e-7)
    assert quadrature_link(positions[:0], variance, contrast) == 0.0


def test_table_of_a_wide_range_is_accurate():
    """Linear predictors from -30 to 30 are a wider range than in a posterior."""
    positions = np.linspace(-30, 30, 20_011)
    direct = np.log1p(0.9 * tanh_means(positions, np.full(len(positions), 0.2))[0])
    assert abs(quadrature_link(positions, 0.2, 0.9) - direct.sum()) < 1e-6 * len(positions)


def test_without_noise_contradicting_labels_have_a_low_finite_likelihood():
    """1 + tanh(u / 2) cancels at u = -40. A sum of logarithms of probabilities must not be positive."""
    rng = np.random.default_rng(0)
    with quiet():
        for _ in range(300):
            positions = rng.normal(size=20) * 10 ** rng.uniform(0, 3) - 10 ** rng.uniform(0, 3)
            value = quadrature_link(positions, 10 ** rng.uniform(-6, 2), 1.0)
            assert value <= 20 * np.log(2) + 1e-6
    assert quadrature_link(np.array([-200.0, 3.0, 10.0]), 1e-6, 1.0) < -20


@pytest.mark.parametrize("n", [1, 7, 8192, 20_000])
def test_powers_by_cell_are_direct_sums(n):
    positions = np.random.default_rng(n).normal(size=n)
    low, step = positions.min(), max(np.ptp(positions), 1e-3) / (_KNOTS - 1)
    found = _powers_by_cell(positions, low, step)
    share = (positions - low) / step
    cell = np.minimum(share.astype(int), _KNOTS - 2)
    expected = np.zeros((4, _KNOTS - 1))
    for power in range(4):
        np.add.at(expected[power], cell, (share - cell) ** power)
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-12)
    assert found[0].sum() == n and found[0, -1] >= (n > 1), "the largest is in the last cell"


def test_chebyshev_polynomial_is_the_straight_line_of_the_paper():
    polynomial = np.polynomial.chebyshev.Chebyshev.interpolate(lambda u: 2 * expit(u) - 1, 101, domain=[-3, 3])
    second = polynomial.truncate(3).convert(kind=np.polynomial.Polynomial)
    np.testing.assert_allclose(second.coef, [0.0, chebyshev_slope(), 0.0], atol=1e-12)


@with_and_without
def test_chebyshev_link_matches_its_definition(intercept):
    protocol = LabelRecordProtocol(n_features=2, epsilon=6.0, budget_split=0.3)
    reports = protocol._randomize(*records(2, 40), 0)
    model = LogisticRecordModel(protocol.aggregate(reports), fit_intercept=intercept, link="chebyshev")
    theta = points(model, 5)
    expected = PRIOR(model, theta)
    z = protocol.randomizer.decode(reports)
    noise, contrast = protocol.randomizer.noise_variance, np.tanh(0.3 * 6.0 / 2)
    for i, point in enumerate(Point.at(theta, model)):
        total = point.covariance + noise * np.eye(2)
        gain = point.covariance @ np.linalg.inv(total)
        mean = point.intercept + (point.mean + (z[:, :2] - point.mean) @ gain.T) @ point.coef
        f = np.clip(chebyshev_slope() * mean, -1, 1)
        expected[i] += stats.multivariate_normal(point.mean, total).logpdf(z[:, :2]).sum()
        expected[i] += np.log((1 + contrast * z[:, 2] * f) / 2).sum()
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), atol=1e-7)


def test_links_agree_within_the_error_of_the_polynomial():
    aggregate = aggregate_of("inputs", 2, True, 2000, epsilon=6.0)
    exact, line = (LogisticRecordModel(aggregate, link=link) for link in LINKS)
    near = exact.initial() + np.random.default_rng(0).normal(scale=0.3, size=(20, exact.n_params))
    assert 0 < np.ptp(line.log_density(near) - exact.log_density(near)) < np.ptp(exact.log_density(near))
    with pytest.raises(InvalidParameterError, match='link must be one of "quadrature", "chebyshev"'):
        LogisticRecordModel(aggregate, link="logit")


@pytest.mark.parametrize("link", LINKS)
def test_order_of_the_rows_changes_no_bit(link):
    protocol = LabelRecordProtocol(n_features=3, epsilon=4.0)
    reports = protocol._randomize(*records(3, 3000), 0)
    models = [LogisticRecordModel(protocol.aggregate(rows), link=link)
              for rows in (reports, reports[::-1], np.random.default_rng(0).permutation(reports))]
    theta = points(models[0])
    for model in models[1:]:
        assert (model.log_density(theta) == models[0].log_density(theta)).all()
        assert (model.initial() == models[0].initial()).all()
        assert (model.surrogate(theta) == models[0].surrogate(theta)).all()


# ---- Both models

@pytest.mark.parametrize("kind", KINDS)
def test_log_densities_of_cohorts_add(kind):
    one, empty = aggregate_of(kind, 2, True, 4000, epsilon=9.0), protocol_of(kind, 2, True, epsilon=3.0)
    other = aggregate_of(kind, 2, True, 50, seed=1, epsilon=0.7)
    both, first, second = (model_of(aggregate, kind, True) for aggregate in (one + other, one, other))
    nobody = model_of(one + empty.aggregate(np.empty((0, empty.width), dtype=int)), kind, True)
    theta = points(both)
    first, second, nobody = (model.in_coordinates_of(both).log_density(theta) for model in (first, second, nobody))
    np.testing.assert_allclose(np.diff(both.log_density(theta)), np.diff(first + second - PRIOR(both, theta)),
                               rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(nobody, first, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
@with_and_without
def test_without_noise_extreme_parameters_have_zero_density_and_never_nan(kind, intercept):
    """The contract of models tests this with noise."""
    model = model_of(aggregate_of(kind, 3, intercept, epsilon=np.inf), kind, intercept)
    rng = np.random.default_rng(0)
    for size in (1e1, 1e2, 1e3, 3e3, 1e6, 1e300):
        theta = size * rng.normal(size=(60, model.n_params))
        theta[:3, 0] = np.nan, np.inf, -np.inf
        with quiet():
            value = model.log_density(theta)
            approximate, gradient = GuardedModel(model.approximation).gradient(theta)
        for found in (value, approximate):
            assert not np.isnan(found).any() and (found[:3] == -np.inf).all()
        assert gradient.shape == theta.shape


@pytest.mark.parametrize("kind, epsilon, intercept", [
    ("sphere", 1.0, False), ("sphere", 20.0, False), ("sphere", np.inf, True), ("sphere", np.inf, False),
    ("sphere", 1.0, True), ("inputs", 1.0, False), ("inputs", np.inf, True), ("inputs", np.inf, False),
])
def test_extreme_points_have_lower_density_than_the_mode(kind, epsilon, intercept):
    model = model_of(aggregate_of(kind, 1, intercept, 3000, epsilon=epsilon), kind, intercept)
    near = model.log_density(model.approximation.initial()[None])[0]
    rng = np.random.default_rng(0)
    for size in (1.0, 3.0, 10.0, 30.0, 100.0, 1000.0):
        with quiet():
            assert model.log_density(size * rng.normal(size=(600, model.n_params))).max() < near + 10


@pytest.mark.parametrize("kind", KINDS)
def test_nearly_collinear_and_vanishing_features_raise_no_error(kind):
    """Where a matrix of one walker is singular in floating point, the others keep their density."""
    model = model_of(aggregate_of(kind, 4, True, epsilon=np.inf), kind, True)
    rng, usual = np.random.default_rng(1), points(model, 1)
    for log_scale, free in itertools.product([-29.0, -10.0, 0.0, 29.0], [0.0, 8.0, 29.0]):
        theta = np.vstack([usual, points(model, 20)])
        theta[1:, 4:8] = log_scale
        theta[1:, 8:14] = free * rng.choice([-1, 1], size=(20, 6))
        for one in (model, model.approximation):
            value = one.log_density(theta)
            assert not np.isnan(value).any() and (value < np.inf).all()
            assert value[0] == pytest.approx(one.log_density(usual)[0], rel=1e-9)
        gradient = model.approximation.gradient(theta)[1]
        np.testing.assert_allclose(gradient[:1], model.approximation.gradient(usual)[1], rtol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
@with_and_without
@pytest.mark.parametrize("d", [1, 5])
def test_initial_point_has_finite_density_for_arbitrary_reports(kind, intercept, d):
    """Uses random well-formed reports, whose decoded moments belong to no distribution."""
    for epsilon, seed in itertools.product((0.1, np.inf), range(2)):
        protocol, rng = protocol_of(kind, d, intercept, epsilon=epsilon), np.random.default_rng(seed)
        n = int(rng.integers(1, 300))
        if kind == "inputs":
            top = int(protocol.randomizer.vector.clamp[1])
            rows = np.column_stack([rng.integers(-top, top + 1, size=(n, d)), rng.integers(0, 2, size=n)])
            tally = RecordTally(n, rows.astype(protocol.randomizer.report_dtype))
        else:
            size = int(10 ** rng.uniform(0, 12))
            shape = (protocol.width,) * (2 if kind == "axis" else 1)
            sums = rng.integers(-size, size + 1, size=shape)
            tally = Tally(n, sums.astype(object) if sums.ndim == 1 else sums + sums.T)
        model = model_of(Aggregate({protocol: tally}), kind, intercept)
        for part in (model, model.approximation):
            start = part.initial()
            assert start.shape == (model.n_params,) and np.isfinite(start).all()
            assert np.isfinite(part.log_density(start[None])).all()
        assert np.isfinite(model.surrogate(model.approximation.initial()[None])).all()


@pytest.mark.parametrize("kind", KINDS)
@with_and_without
def test_pilot_estimate_from_many_reports_is_near_the_truth(kind, intercept):
    rng, d, n = np.random.default_rng(0), 3, 100_000
    X = rng.normal(0.1 * intercept, 0.25, size=(n, d))
    coef = np.array([3.0, -2.0, 1.0])
    y = rng.random(n) < expit(X @ coef - 0.5 * intercept)
    protocol = protocol_of(kind, d, intercept, epsilon=20.0)
    model = model_of(protocol.aggregate(protocol._randomize(X, y, 0)), kind, intercept)
    start = model.constrain(model.approximation.initial()[None])
    np.testing.assert_allclose(start["coef"][0], coef, atol=0.6)
    np.testing.assert_allclose(start["covariance"][0], 0.0625 * np.eye(d), atol=0.01)
    if intercept:
        assert start["intercept"][0] == pytest.approx(-0.5, abs=0.1)
