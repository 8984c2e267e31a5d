"""Coupled coordinates of the logistic regressions: same posterior, and correct gradients."""

import numpy as np
import pytest
from scipy import special

from skldp.models import LogisticMomentModel, LogisticRecordModel
from skldp.models.regression._coupled_coordinates import CoupledCoordinates
from skldp.models.regression._vector_priors import StudentPrior
from skldp.protocols import LabelMomentProtocol, LabelRecordProtocol
from tests.models.regression.priors import prior

OPTIONS = [(1, "auto", 1.5, "learned"), (2, 0.7, "learned", "auto"), (4, "auto", "learned", "learned"),
           (3, "auto", 1.5, 0.1)]
cases = pytest.mark.parametrize("d, prior_scale, lkj_eta, mean_scale", OPTIONS)
kinds = pytest.mark.parametrize("kind", ["sphere", "inputs"])
with_and_without = pytest.mark.parametrize("intercept", [True, False])


def aggregate_of(kind, d, intercept, n=400, seed=0, epsilon=1.0):
    if kind == "inputs":
        protocol = LabelRecordProtocol(n_features=d, epsilon=epsilon)
    else:
        weight = {} if intercept else {"intercept_weight": 0.0}
        protocol = LabelMomentProtocol(n_features=d, mechanism=kind, epsilon=epsilon, **weight)
    rng = np.random.default_rng(seed)
    X = rng.normal(0.05, 0.4 / np.sqrt(d), size=(n, d))
    y = (rng.random(n) < special.expit(X @ np.linspace(3.0, -2.0, d) + 0.4)).astype(int)
    return protocol.aggregate(protocol._randomize(X, y, 0))


def model_of(aggregate, kind, intercept, **options):
    if kind == "inputs":
        return LogisticRecordModel(aggregate, fit_intercept=intercept, **options)
    return LogisticMomentModel(aggregate, **options)


def points(model, n=4):
    """Return coordinates about as far from the pilot estimate as the posterior extends."""
    return model.approximation.initial() + np.random.default_rng(0).normal(0.02, 0.15, size=(n, model.n_params))


def derivatives(function, theta, step=1e-5):
    """Return central differences with respect to every coordinate, shape (n_params, n_points, ...)."""
    return np.array([(function(theta + step * e) - function(theta - step * e)) / (2 * step)
                     for e in np.eye(theta.shape[1])])


def mixing_constant(d):
    """Log of the integral over the scale divided by the t density, both without normalising constants."""
    half = 0.5 * (3 + d)
    return np.log(0.5) + special.gammaln(half) + half * np.log(2 / 3)


@kinds
@with_and_without
@cases
def test_gradient_matches_finite_differences(kind, intercept, d, prior_scale, lkj_eta, mean_scale):
    aggregate = (aggregate_of(kind, d, intercept, epsilon=5.0)
                 + aggregate_of(kind, d, intercept, n=30_000, seed=1, epsilon=2.0))
    model = model_of(aggregate, kind, intercept, prior=prior(prior_scale, lkj_eta=lkj_eta, mean_scale=mean_scale))
    model = model.reparametrised()
    approximation, theta = model.approximation, points(model)
    if model.coordinates.scaled:
        theta[:, -1] += [-1.5, -0.5, 0.5, 2.0]
    value, gradient = approximation.gradient(theta)
    np.testing.assert_allclose(value, approximation.log_density(theta), rtol=1e-12)
    np.testing.assert_array_equal(model.surrogate(theta), gradient)
    numeric = derivatives(approximation.log_density, theta).T
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6 * np.abs(numeric).max())


@kinds
@with_and_without
@cases
def test_coupled_coordinates_have_the_same_posterior(kind, intercept, d, prior_scale, lkj_eta, mean_scale):
    model = model_of(aggregate_of(kind, d, intercept, 3000), kind, intercept,
                     prior=prior(prior_scale, lkj_eta=lkj_eta, mean_scale=mean_scale))
    coupled = model.reparametrised()
    theta = coupled.coordinates.to_plain(points(coupled))
    scales, constant = [None], 0.0
    if coupled.coordinates.scaled:
        scales, constant = np.linspace(-3, 12, 301), mixing_constant(d)
    for one, other in [(coupled, model), (coupled.approximation, model.approximation)]:
        values = []
        for scale in scales:
            theta_coupled = coupled.coordinates.from_plain(theta, None if scale is None else np.full(len(theta), scale))
            np.testing.assert_allclose(coupled.coordinates.to_plain(theta_coupled), theta, rtol=1e-9, atol=1e-11)
            jacobian = derivatives(coupled.coordinates.to_plain, theta_coupled)[:model.n_params].transpose(1, 0, 2)
            values.append(one.log_density(theta_coupled) - np.linalg.slogdet(jacobian)[1])
        # The density is integrated over the scale; the trapezoidal rule is accurate for a smooth peak.
        found = values[0] if len(scales) == 1 else special.logsumexp(values, axis=0) + np.log(scales[1] - scales[0])
        np.testing.assert_allclose(found, other.log_density(theta) + constant, rtol=1e-12, atol=1e-5)


@kinds
@with_and_without
@cases
def test_natural_parameters_and_initial_point_are_the_same(kind, intercept, d, prior_scale, lkj_eta, mean_scale):
    model = model_of(aggregate_of(kind, d, intercept, 3000), kind, intercept,
                     prior=prior(prior_scale, lkj_eta=lkj_eta, mean_scale=mean_scale))
    coupled = model.reparametrised()
    theta_coupled = points(coupled)
    for name, values in model.constrain(coupled.coordinates.to_plain(theta_coupled)).items():
        for one in (coupled, coupled.approximation):
            np.testing.assert_allclose(one.constrain(theta_coupled)[name], values, rtol=1e-9, atol=1e-12)
    start = coupled.coordinates.to_plain(coupled.initial()[None])[0]
    np.testing.assert_allclose(start, model.initial(), rtol=1e-9, atol=1e-12)
    theta = coupled.coordinates.to_plain(theta_coupled)
    back = coupled.coordinates.to_plain(coupled.coordinates.from_plain(theta))
    np.testing.assert_allclose(back, theta, rtol=1e-9, atol=1e-12)
    if not coupled.coordinates.scaled:
        np.testing.assert_allclose(coupled.coordinates.from_plain(theta), theta_coupled, rtol=1e-9, atol=1e-12)


@kinds
@with_and_without
def test_without_reports_coordinates_are_not_coupled(kind, intercept):
    nothing = aggregate_of(kind, 3, intercept, n=1).protocol
    model = model_of(nothing.aggregate(np.empty((0, nothing.width), dtype=int)), kind, intercept,
                     prior=prior(lkj_eta="learned", mean_scale="learned"))
    coupled = model.reparametrised()
    coordinates = coupled.coordinates
    assert (coordinates.coupling, coordinates.mean_share) == (0.0, 0.0)
    theta_coupled = points(coupled)
    point = coordinates.expand(theta_coupled)
    np.testing.assert_allclose(point.coef, np.exp(theta_coupled[:, -1:]) * theta_coupled[:, :3])
    if intercept:
        np.testing.assert_allclose(point.intercept, theta_coupled[:, -2])
    assert np.isfinite(coupled.log_density(theta_coupled)).all()


@pytest.mark.parametrize("scale", [0.3, 2.5])
def test_t_prior_is_a_scale_mixture_of_normals(scale):
    student, coef = StudentPrior(scale, 3), np.random.default_rng(0).normal(size=(5, 3)) * [[0.1], [1], [3], [10], [30]]
    grid = np.linspace(-6, 16, 2001)
    values = [student.given_scale(coef, np.full(5, x))[0] + student.log_prior_of_scale(x)[0] for x in grid]
    total = special.logsumexp(values, axis=0) + np.log(grid[1] - grid[0])
    np.testing.assert_allclose(total, student(coef)[0] + mixing_constant(3), rtol=1e-9)
    # The derivative is zero at the mode.
    at, step = student.mode_of_log_scale(coef), 1e-5
    derivative = student.given_scale(coef, at)[2] + student.log_prior_of_scale(at)[1]
    np.testing.assert_allclose(derivative, 0.0, atol=1e-9)
    ends = [student.given_scale(coef, x)[0] + student.log_prior_of_scale(x)[0]
            for x in (at + 0.5 + step, at + 0.5 - step)]
    np.testing.assert_allclose(student.given_scale(coef, at + 0.5)[2] + student.log_prior_of_scale(at + 0.5)[1],
                               (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_derivatives_of_strength_and_width_match_finite_differences():
    plain = LogisticMomentModel(aggregate_of("sphere", 3, True)).coordinates
    step, x = 1e-6, np.linspace(-3, 6, 19)
    for coupling, information in [(0.0, 0.0), (0.3, 2.0), (40.0, 500.0)]:
        coordinates = CoupledCoordinates(plain, coupling, 100.0, intercept_information=information, flattening=0.4,
                                         scaled=True)
        strength, log_strength_slope = coordinates.strength(x)
        ends = coordinates.strength(x + step)[0], coordinates.strength(x - step)[0]
        numeric = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(strength * log_strength_slope, numeric, rtol=1e-6, atol=1e-9)
        v = np.exp(x)
        width, log_width_slope = coordinates.width(v)
        numeric = (coordinates.width(v + step)[0] - coordinates.width(v - step)[0]) / (2 * step)
        np.testing.assert_allclose(width * log_width_slope, numeric, rtol=1e-5, atol=1e-9)
        assert (width >= 1).all() and (width**2 <= min(1 + 0.4 * v.max(), 1 + information) + 1e-9).all()


def test_width_converges_for_very_large_coefficients():
    plain = LogisticMomentModel(aggregate_of("sphere", 3, True)).coordinates
    coordinates = CoupledCoordinates(plain, 1.0, 100.0, intercept_information=24.0, flattening=0.4, scaled=True)
    assert coordinates.width(np.array([0.0, 1e9]))[0] == pytest.approx([1.0, 5.0])


@kinds
def test_extreme_scales_raise_no_error(kind):
    model = model_of(aggregate_of(kind, 3, True), kind, True).reparametrised()
    theta_coupled = np.repeat(model.initial()[None], 4, axis=0)
    theta_coupled[:, -1] = [-500.0, 50.0, 700.0, 5000.0]
    theta_coupled[2:, 3:6] = 0.0
    with np.errstate(all="ignore"):
        value, gradient = model.approximation.gradient(theta_coupled)
        exact = model.log_density(theta_coupled)
    assert np.isneginf(value).all() and np.isneginf(exact).all()
    assert gradient.shape == theta_coupled.shape
