"""Coordinates of the regressions against their definition, their prior and their gradient, by brute force."""

import numpy as np
import pytest
from scipy import linalg, optimize, special, stats

from skldp import RegressionPrior
from skldp.models import LinearModel, LogisticMomentModel, LogisticRecordModel
from skldp.models.regression._base import RegressionModel, Units
from skldp.models.regression._coordinates import Priors, RegressionCoordinates
from skldp.models.regression._logistic_coordinates import logistic_coordinates
from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._stretch import Stretch
from skldp.models.regression._vector import pivot_order
from skldp.protocols import LabelMomentProtocol, LabelRecordProtocol, MomentProtocol, RecordProtocol
from tests.models.regression.priors import Prior, differences
from tests.models.regression.test_covariance import covariance_of, half_normal_log_scales_of, log_scales_of

PRIORS = {
    "auto": Prior(0.25, sigma_scale=0.5),
    "logistic": Prior(1.25, intercept=(0.0, 2.5)),
    "rounds": Prior(1.2, intercept=(0.0, 1.5)),
    "paper": Prior(2.2, sigma_scale=0.4, explained=False, covariance_scale=0.8, eta=2.0),
    "numbers": Prior(0.4, sigma_scale=0.3, covariance_scale=0.4, mean_scale=0.1, eta=3.0),
}
NEARLY_SINGULAR = "nearly singular"
INFORMATION = {"nothing": 0.0, "little": 20.0, NEARLY_SINGULAR: 3e4}
every_prior = pytest.mark.parametrize("prior", PRIORS.values(), ids=PRIORS)
every_report = pytest.mark.parametrize("reports", INFORMATION)
with_and_without = pytest.mark.parametrize("intercept", [True, False])


def reported_moments(d, reports, intercept):
    """Return moments; where they are nearly singular, columns have correlations of 0.99."""
    information = INFORMATION[reports]
    if not information:
        return ReportedMoments.pooled([], d)
    rng = np.random.default_rng(d)
    x = rng.normal(size=(50, d)) * np.linspace(0.2, 0.3, d)
    if reports == NEARLY_SINGULAR:
        x = 0.14 * x + 0.25 * rng.normal(size=(50, 1))
    y = x @ np.linspace(0.6, -0.4, d) + 0.1 * rng.normal(size=50)
    values = np.column_stack([x, y]) + 0.1 * intercept
    return ReportedMoments(values.mean(axis=0) * intercept, values.T @ values / 50, information, 1.4 * information,
                           0.6 * information, 0.5 * information)


class Probe(RegressionModel):
    """Density of the prior times the exponential of a linear function of the parameters."""

    def __init__(self, prior, d, intercept, reports, slopes=0.0, **options):
        priors = Priors(coef_scale=prior.coef_scale, explained_weight=float(d * prior.explained),
                        ridge=0.01 if prior.explained else 1.0, learns_coef_scale=prior.explained,
                        intercept_scale=prior.intercept[1], covariance_scale=prior.covariance_scale, lkj_eta=prior.eta,
                        mean_scale=prior.mean_scale, sigma_scale=prior.sigma_scale)
        self.reported, self.options = reported_moments(d, reports, intercept), options
        super().__init__([], RegressionCoordinates(priors, intercept, self.reported, **options), Units(1.0))
        rng = np.random.default_rng(0)
        self.slopes = [slopes * rng.normal(size=size) for size in ((1, d), (1, d, d), (1, d), 1, 1)]

    def initial(self):
        return self.coordinates.start(self.reported.covariance[:-1, :-1])

    def _evaluate(self, theta, with_gradient):
        point = self.coordinates.expand(theta)
        values = [point.coef, point.covariance, point.x_mean, point.intercept,
                  None if point.sigma is None else point.sigma**2]
        used = [None if value is None else np.broadcast_to(slope, value.shape)
                for value, slope in zip(values, self.slopes)]
        total = sum((slope * value).reshape(len(theta), -1).sum(axis=1)
                    for slope, value in zip(used, values) if value is not None)
        return point.log_prior() + total, point.gradient(*used) if with_gradient else None


def points(model, n=4, size=0.5):
    return model.initial() + np.random.default_rng(1).normal(scale=size, size=(n, model.n_params))


def options_of(prior, d):
    """Return the options of coordinates of labels, in one round or in several, if the prior is one of labels."""
    if prior is PRIORS["rounds"]:
        return {"centre": 0.3, "offsets": [np.linspace(0.8, -0.5, d)]}
    return {} if prior.sigma_scale else {"slope": 0.4, "centre": 0.3, "stretch": Stretch(0.3, 0.1)}


def by_definition(probe, prior, theta, slope=1.0, centre=None, stretch=None, offsets=(0.0,)):
    """Return coef, covariance, mean, intercept and sigma at one theta, by roots and inverses of matrices."""
    reported, d = probe.reported, probe.coordinates.n_features
    n_scales = d + (prior.covariance_scale is None and d > 1)
    z, logs, rows, rest = np.split(theta, [d, d + n_scales, d + n_scales + d * (d - 1) // 2])
    if prior.covariance_scale is None:
        variances = np.diag(reported.covariance)[:-1]
        logs = log_scales_of(logs, 0.5 * np.log(variances), 2 * variances.mean() ** 2 * reported.cross_information)
    else:
        logs = half_normal_log_scales_of(logs, prior.covariance_scale)
    covariance = covariance_of(np.exp(logs), rows, pivot_order(reported.covariance[:-1, :-1]))
    mean, target = None, reported.second[:-1, -1] / slope
    if probe.coordinates.vector.has_mean:
        standard_deviation = prior.mean_scale or 0.05 * np.exp(0.5 * np.log(10) * rest[-1])
        precision = standard_deviation**-2.0 + reported.mean_information
        mean = reported.mean_information * reported.mean[:-1] / precision + rest[:d] / np.sqrt(precision)
        target = target - reported.mean[-1] / slope * mean
        rest = rest[d:]
    # The coordinates left are the intercept's, sigma's, log s and log s_m.
    learned_mean = mean is not None and prior.mean_scale is None
    log_scale = rest[len(rest) - 1 - learned_mean] if prior.explained else 0.0
    information = slope**2 * reported.cross_information * covariance @ covariance
    precision = prior.precision(covariance) / (prior.coef_scale * np.exp(log_scale)) ** 2 + information
    if prior.sigma_scale is not None:
        error = 1 / np.sqrt(prior.sigma_scale**-4.0 + reported.cross_information / 2)
        variance = reported.second[-1, -1] - reported.mean[-1] ** 2
        precision += error**2 * reported.cross_information / 2 / (variance + 2 * error) * covariance
    target = target + covariance @ np.broadcast_to(offsets[0], d)
    target = slope**2 * reported.cross_information * covariance @ target
    coef = np.linalg.inv(precision) @ target + np.linalg.inv(linalg.sqrtm(precision)) @ z
    if stretch is not None:
        coef = coef * np.exp(max(np.sqrt(coef @ covariance @ coef) - stretch.start, 0) ** 2 * stretch.rate / 2)
    intercept = sigma = None
    if mean is not None:
        weight = slope**2 * reported.response_information
        precision = prior.intercept[1] ** -2.0 + weight
        expected = reported.mean[-1] if centre is None else centre
        intercept = weight * (expected - (coef - offsets[0]) @ mean) / precision + rest[0] / np.sqrt(precision)
        rest = rest[1:]
    if prior.sigma_scale is not None:
        information = reported.cross_information / 2
        error = 1 / np.sqrt(prior.sigma_scale**-4.0 + information)
        variance = reported.second[-1, -1] - reported.mean[-1] ** 2
        a = error * information * (variance - coef @ covariance @ coef) + rest[0]
        sigma = np.sqrt(error * np.log1p(np.exp(a if a > 0 else a * np.sqrt(1 + a**2 / 4))))
    return coef, covariance, mean, intercept, sigma


@every_prior
@every_report
@with_and_without
@pytest.mark.parametrize("d", [1, 4])
def test_parameters_are_those_of_the_definition_and_are_inverted(prior, reports, intercept, d):
    options = options_of(prior, d)
    probe = Probe(prior, d, intercept, reports, **options)
    theta = points(probe)
    point = probe.coordinates.expand(theta)
    found = point.coef, point.covariance, point.x_mean, point.intercept, point.sigma
    for i, row in enumerate(theta):
        for value, expected in zip(found, by_definition(probe, prior, row, **options)):
            assert (value is None) == (expected is None)
            if value is not None:
                np.testing.assert_allclose(value[i], expected, rtol=1e-6, atol=1e-6)
    back = probe.coordinates.of_parameters(*found)
    again = probe.coordinates.expand(back)
    for value, name in zip(found, ("coef", "covariance", "x_mean", "intercept", "sigma")):
        if value is not None:
            np.testing.assert_allclose(getattr(again, name), value, rtol=1e-8, atol=1e-10)
    if not prior.explained and not intercept:  # no scale is learned, so all coordinates follow from the parameters
        np.testing.assert_allclose(back, theta, rtol=1e-6, atol=1e-7)


@every_prior
@every_report
@with_and_without
@pytest.mark.parametrize("d", [1, 3])
def test_prior_of_the_natural_parameters_does_not_depend_on_the_reports(prior, reports, intercept, d):
    probe = Probe(prior, d, intercept, reports, **options_of(prior, d))
    theta = points(probe, 6)
    np.testing.assert_allclose(np.diff(probe.log_density(theta)), np.diff(prior(probe, theta)), rtol=1e-6, atol=1e-6)


@every_prior
@every_report
@with_and_without
@pytest.mark.parametrize("d", [1, 4])
def test_gradient_matches_finite_differences(prior, reports, intercept, d):
    options = options_of(prior, d)
    probe = Probe(prior, d, intercept, reports, slopes=2.0, **options)
    # At the first point eigenvalues of the covariance are equal without reports.
    theta = np.vstack([probe.initial(), points(probe), points(probe, 2, size=2.0)])
    value, gradient = probe._within_bounds(probe._evaluate, theta, True)
    np.testing.assert_allclose(value, probe.log_density(theta), rtol=1e-12)
    numeric = differences(probe.log_density, theta)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-5, atol=1e-6 * np.abs(numeric).max())


def test_residual_variance_far_below_zero_has_a_density_and_a_gradient():
    """There the density with respect to w(a) decreases as exp(w / 2), and w as -a^2 / 2 - 1."""
    probe = Probe(PRIORS["auto"], 2, False, "little")
    theta = np.repeat(points(probe, 1), 4, axis=0)
    place = probe.coordinates.pieces[4].start
    theta[:, place] = -29.0, -31.0, -100.0, -800.0
    value, gradient = probe._within_bounds(probe._evaluate, theta, True)
    argument = probe.coordinates.expand(theta).lines[0].argument
    expected = -(argument**2) / 4 + np.log(-argument)
    np.testing.assert_allclose(np.diff(value), np.diff(expected), rtol=1e-4)
    np.testing.assert_allclose(gradient[:, place], -argument / 2 + 1 / argument, rtol=1e-4)


@pytest.mark.parametrize("d", [1, 3])
def test_coefficients_have_a_multivariate_t_distribution_given_the_covariance(d):
    """The density is integrated over log s; without reports, z is the root of K times the coefficients over gs."""
    prior, rng = PRIORS["logistic"], np.random.default_rng(d)
    probe = Probe(prior, d, False, "nothing")
    grid = np.linspace(-4, 7, 1001)
    found, expected = [], []
    for row in points(probe):
        covariance = probe.coordinates.expand(row[None]).covariance[0]
        coef, k = rng.normal(scale=4.0, size=d), prior.precision(covariance)
        width = 1.25 * np.exp(grid)[:, None]
        theta = np.repeat(row[None], len(grid), axis=0)
        theta[:, :d], theta[:, -1] = linalg.sqrtm(k) @ coef / width, grid
        # The Jacobian of z is that of the root of K / (gs)^2; the prior of the covariance is subtracted.
        values = probe.coordinates.expand(theta).log_prior() + 0.5 * np.linalg.slogdet(k)[1] - d * np.log(width[:, 0])
        values -= probe.coordinates.expand(theta[:1]).vector.matrix.log_prior()
        found.append(special.logsumexp(values))
        expected.append(stats.multivariate_t(np.zeros(d), 1.25**2 * np.linalg.inv(k), df=3).logpdf(coef))
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-6)


@every_prior
@with_and_without
def test_conversion_between_coordinates_of_other_reports_and_priors(prior, intercept):
    one = Probe(prior, 3, intercept, "little")
    for other in (Probe(prior, 3, intercept, NEARLY_SINGULAR),
                  Probe(Prior(3.0, (0.0, 0.7), prior.sigma_scale and 1.0, prior.explained, None, prior.mean_scale, 1.0),
                        3, intercept, "little")):
        theta = points(one)
        converted = other.coordinates.convert(theta, one.coordinates)
        for name, values in one.constrain(theta).items():
            np.testing.assert_allclose(other.constrain(converted)[name], values, rtol=1e-7, atol=1e-9)
        # Scales that are learned are functions of the other parameters after a conversion.
        there = one.coordinates.convert(converted, other.coordinates)
        back = one.coordinates.convert(other.coordinates.convert(there, one.coordinates), other.coordinates)
        np.testing.assert_allclose(back, there, rtol=1e-6, atol=1e-7)


def test_stretch_of_coefficients():
    """Sizes below the start stay as they are, all are inverted, and the Jacobian is that of the map."""
    stretch, covariance = Stretch(1.2, 3.0), np.array([[0.5, 0.2], [0.2, 0.3]])

    def stretched(vector):
        return vector * np.exp(stretch.logarithm(np.sqrt(vector @ covariance @ vector))[0])

    sizes = np.array([0.0, 1.0, 1.2, 1.3, 2.0, 50.0])
    factors = np.exp(stretch.logarithm(sizes)[0])
    np.testing.assert_allclose(factors[:5], np.exp([0.0, 0.0, 0.0, 0.015, 0.96]))
    assert factors[5] == pytest.approx(np.exp(30))
    np.testing.assert_allclose(stretch.inverse((sizes * factors)[1:]), sizes[1:], rtol=1e-12)
    for vector in np.array([[0.3, 0.4], [2.5, -1.0], [100.0, 0.0]]):
        jacobian = np.column_stack([(stretched(vector + step) - stretched(vector - step)) / 2e-6
                                    for step in 1e-6 * np.eye(2)])
        found = stretch.log_jacobian(np.sqrt(vector @ covariance @ vector), 2)[0]
        assert found == pytest.approx(np.linalg.slogdet(jacobian)[1], abs=1e-5)


def test_conversion_takes_the_most_likely_scale_of_the_coefficients():
    prior = PRIORS["logistic"]
    probe = Probe(prior, 3, False, "little")
    theta = probe.coordinates.convert(points(probe), probe.coordinates)
    for row in theta:
        params = {name: values[0] for name, values in probe.constrain(row[None]).items()}
        best, *others = [prior.logpdf(params, [row[-1] + change], 0.0, row[6]) for change in (0.0, -0.01, 0.01)]
        assert best > max(others)


# ---- Models

def data(d, n, seed=0):
    rng = np.random.default_rng(seed)
    x = 0.05 + rng.normal(size=(n, d)) @ np.linalg.cholesky(0.5 + 0.5 * np.eye(d)).T * 0.25 / np.sqrt(d)
    line = x @ np.linspace(0.5, -0.3, d)
    return x, 0.1 + line + rng.normal(0, 0.15, size=n), (rng.random(n) < special.expit(0.4 + 6 * line)).astype(int)


def protocol_of(kind, d, intercept=True, **options):
    weight = {} if intercept else {"intercept_weight": 0.0}
    return {"moments": lambda: MomentProtocol(n_features=d, **weight, **options),
            "records": lambda: RecordProtocol(n_features=d, centred=intercept, **options),
            "label moments": lambda: LabelMomentProtocol(n_features=d, **weight, **options),
            "label records": lambda: LabelRecordProtocol(n_features=d, **options)}[kind]()


def model_of(kind, d, intercept=True, n=2000, seed=0, prior="auto", epsilon=4.0, **options):
    protocol = protocol_of(kind, d, intercept, epsilon=epsilon, **options)
    x, y, labels = data(d, n, seed)
    x = x * protocol.data_norm
    aggregate = protocol.aggregate(protocol._randomize(x, labels if "label" in kind else y, seed))
    if kind == "label records":
        return LogisticRecordModel(aggregate, prior, fit_intercept=intercept)
    return (LogisticMomentModel if "label" in kind else LinearModel)(aggregate, prior)


KINDS = ["moments", "records", "label moments", "label records"]
every_kind = pytest.mark.parametrize("kind", KINDS)


@every_kind
@with_and_without
def test_posterior_does_not_depend_on_the_reports_that_choose_the_coordinates(kind, intercept):
    prior = Prior(1.0, sigma_scale=None if "label" in kind else 0.5)
    model, other = model_of(kind, 2, intercept), model_of(kind, 2, intercept, n=50_000, seed=1)
    moved = model.in_coordinates_of(other)
    assert moved.coordinates is other.coordinates and model.coordinates is not other.coordinates
    # The first conversion gives learned scales that are functions of the other parameters.
    theta = model.coordinates.convert(points(model), model.coordinates)
    theta_moved = other.coordinates.convert(theta, model.coordinates)
    assert np.abs(theta - theta_moved).max() > 0.1
    natural = [one.log_density(at) - prior.log_jacobian(one, at) for one, at in ((model, theta), (moved, theta_moved))]
    np.testing.assert_allclose(np.diff(natural[1]), np.diff(natural[0]), rtol=1e-5, atol=1e-5)
    if model.approximation is not None:
        assert moved.approximation.coordinates is other.coordinates is not model.approximation.coordinates


@every_kind
@with_and_without
@pytest.mark.parametrize("chosen", [
    RegressionPrior(), RegressionPrior.paper(), RegressionPrior(coef="normal"), RegressionPrior(coef_scale=1.7),
    RegressionPrior(covariance_scale=0.9, mean_scale=0.3, sigma_scale=2.0, lkj_eta=3.0)], ids=repr)
def test_numbers_of_a_prior_are_in_the_units_of_the_data(kind, intercept, chosen):
    """Without reports the density is the prior, here of x of norm 4 and of y between 10 and 30 or 0 and 1."""
    linear, x_unit = "label" not in kind, 4.0
    y_unit, offset = ((10.0, 20.0) if intercept else (30.0, 0.0)) if linear else (1.0, 0.0)
    options = {"bounds_y": (10.0, 30.0)} if linear else {}
    empty = protocol_of(kind, 2, intercept, data_norm=x_unit, **options)
    empty = empty.aggregate(np.empty((0, empty.width), dtype=int))
    fitted = model_of(kind, 2, intercept, data_norm=x_unit, n=300, prior=chosen, **options)
    more = {"fit_intercept": intercept} if kind == "label records" else {}
    model = type(fitted)(empty, chosen, **more)

    def number(name, default):
        return default if getattr(chosen, name) == "auto" else getattr(chosen, name)

    explained = chosen.coef == "explained"
    default = (0.25 if linear else 1.25) * y_unit if explained else (0.5 if linear else 2.5) * y_unit / x_unit
    prior = Prior(number("coef_scale", default), (offset, y_unit if linear else 2.5),
                  number("sigma_scale", y_unit / 2) if linear else None, explained, number("covariance_scale", None),
                  number("mean_scale", None), number("lkj_eta", 0.5), x_unit)
    for one in (model, model.in_coordinates_of(fitted)):
        theta = fitted.initial() + points(one) - one.initial() if one is not model else points(one)
        np.testing.assert_allclose(np.diff(one.log_density(theta)), np.diff(prior(one, theta)), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("chosen", [RegressionPrior(), RegressionPrior.paper()], ids=repr)
def test_prior_standard_deviation_of_the_coefficients_by_simulation(chosen):
    model = model_of("moments", 2, data_norm=4.0, bounds_y=(-3.0, 3.0), prior=chosen)
    covariance, rng, n = np.array([[1.0, 0.8], [0.8, 0.9]]), np.random.default_rng(0), 400_000
    scale, k = np.sqrt(5.0), np.eye(2)
    if chosen.coef == "explained":
        scale, k = 0.75 / np.sqrt(stats.chi2(3).rvs(n, random_state=rng) / 3), 2 * covariance + 0.16 * np.eye(2)
    draws = np.expand_dims(scale, -1) * (rng.normal(size=(n, 2)) @ linalg.sqrtm(np.linalg.inv(k)))
    found, before = model.prior_coef_std(covariance[None])[0], covariance.copy()
    # Squares of a t with three degrees of freedom have no variance, so their average converges slowly.
    np.testing.assert_allclose(found, draws.std(axis=0), rtol=0.05)
    assert (covariance == before).all()


@every_kind
@pytest.mark.parametrize("epsilon, least, most", [(2.0, 0.4, 4.0), (20.0, 0.4, 4.0), (np.inf, 0.2, 60.0)])
def test_posterior_of_the_residuals_is_nearly_standard_normal(kind, epsilon, least, most):
    """At the mode, residuals are small, and curvatures of those of coefficients, mean and intercept are about one."""
    model = model_of(kind, 3, n=50_000, epsilon=epsilon)
    model = model if model.approximation is None else model.approximation
    mode = optimize.minimize(lambda theta: [-part[0] for part in model.gradient(theta[None])], model.initial(),
                             jac=True, method="L-BFGS-B").x
    information = -differences(lambda theta: model.gradient(theta)[1], mode[None], 1e-4)
    for place in (0, 2, 3):
        block = model.coordinates.pieces[place]
        values = np.linalg.eigvalsh(information[block, 0, block])
        assert least < values.min() and values.max() < most
        assert np.abs(mode[block]).max() < 5


# ---- What the reports say

def test_order_of_columns_by_their_remainder():
    """A nearly duplicate column comes last, although its variance is the second largest."""
    factor = np.array([[3.0, 0, 0], [2.9, 0.1, 0], [0, 0, 1.0]])
    assert pivot_order(factor @ factor.T).tolist() == [0, 2, 1]
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    covariance = root @ root.T
    order = pivot_order(covariance)
    assert order.tolist() == (linalg.lapack.dpstrf(covariance)[1] - 1).tolist()


@pytest.mark.slow
@every_kind
@with_and_without
def test_reported_moments_are_unbiased_with_their_information(kind, intercept):
    """Estimates from 200 groups of clients vary around the moments by about the standard errors."""
    d, n, groups = 2, 400, 200
    x, y, labels = data(d, n)
    y = 2.0 * labels - 1 if "label" in kind else np.clip(y, -1, 1)
    x = x / np.maximum(1, np.linalg.norm(x, axis=1, keepdims=True))
    protocol = protocol_of(kind, d, intercept, epsilon=4.0)
    found = []
    for seed in range(groups):
        aggregate = protocol.aggregate(protocol._randomize(x, labels if "label" in kind else y, seed))
        options = {"fit_intercept": intercept} if kind == "label records" else {}
        kinds = {"moments": LinearModel, "records": LinearModel, "label moments": LogisticMomentModel}
        found.append(kinds.get(kind, LogisticRecordModel)(aggregate, **options).reported)
    values = np.column_stack([x, y])
    second = np.array([one.second for one in found]) - values.T @ values / n
    information = np.array([found[0].cross_information, found[0].response_information, found[0].mean_information])
    assert np.abs(second.mean(axis=0) / np.maximum(second.std(axis=0), 1e-12)).max() < 4 / np.sqrt(groups)
    spreads = [second[:, 0, -1].std()]
    if intercept:
        mean = np.array([one.mean for one in found]) - values.mean(axis=0)
        assert np.abs(mean.mean(axis=0) / mean.std(axis=0)).max() < 4 / np.sqrt(groups)
        spreads += [mean[:, -1].std(), mean[:, 0].std()]
    else:
        assert not np.any([one.mean for one in found])
    standardised = np.array(spreads) * np.sqrt(information[:len(spreads)])
    assert 0.6 < standardised.min() and standardised.max() < 1.5


def test_pooled_moments_are_weighted_by_information():
    rng = np.random.default_rng(0)
    parts = [ReportedMoments(rng.normal(size=3), rng.normal(size=(3, 3)), *information)
             for information in ((10.0, 20.0, 30.0), (30.0, 1.0, 2.0), (0.0, 0.0, 0.0))]
    pooled = ReportedMoments.pooled(parts, 2)
    np.testing.assert_allclose(pooled.mean, 0.25 * parts[0].mean + 0.75 * parts[1].mean)
    np.testing.assert_allclose(pooled.second, 0.25 * parts[0].second + 0.75 * parts[1].second)
    assert (pooled.cross_information, pooled.response_information, pooled.mean_information) == (40.0, 21.0, 32.0)


def test_reported_covariance_is_positive_definite():
    """Eigenvalues below a standard error of zero, here 0.01, are raised to it."""
    second = np.array([[0.2, 0.25, 0.1], [0.25, 0.2, 0.1], [0.1, 0.1, 0.3]])
    mean = np.array([0.1, 0.1, 0.2])
    covariance = ReportedMoments(mean, second, 1e4, 1e4, 1e4).covariance
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance[:2, :2]), [0.01, 0.43])
    np.testing.assert_allclose(covariance[2], [0.08, 0.08, 0.26])


@pytest.mark.parametrize("size", [0.3, 2.0, 5.0])
@pytest.mark.parametrize("constant", [0.0, -0.8])
def test_slope_and_centre_of_labels_by_simulation(size, constant):
    """From the moments of labels: the centre of the line, and the ratio of Cov(x, y) to Cov(x) theta."""
    rng, n, coef = np.random.default_rng(0), 1_000_000, size * np.array([1.0, -0.6])
    root, mean = np.array([[0.4, 0.0], [0.2, 0.3]]), np.array([0.1, -0.2])
    x = mean + rng.normal(size=(n, 2)) @ root.T
    y = np.where(rng.random(n) < special.expit(constant + x @ coef), 1.0, -1.0)
    values = np.column_stack([x, y])
    reported = ReportedMoments(values.mean(axis=0), values.T @ values / n, 1e6, 1e6, 1e6)
    coordinates = logistic_coordinates(LabelMomentProtocol(n_features=2), True, "auto", reported)
    cross = coordinates.lines[0].cross - coordinates.lines[0].response * mean
    np.testing.assert_allclose(cross, root @ root.T @ coef, atol=0.03 * np.linalg.norm(root @ root.T @ coef) + 0.002)
    assert coordinates.lines[0].centre == pytest.approx(constant + coef @ mean, rel=0.05, abs=0.01)


@pytest.mark.parametrize("prior", ["auto", "paper"])
def test_the_density_of_a_vanishing_residual_variance_matches_its_gradient(prior):
    """There the logarithm of sigma is computed from its coordinate, because sigma itself underflows."""
    probe = Probe(PRIORS[prior], 2, False, "little")
    units = np.eye(probe.n_params)
    start, moved = (probe.coordinates.expand(probe.initial() - step * units) for step in (0.0, 1.0))
    place, = np.flatnonzero((moved.sigma != start.sigma) & (moved.coef == start.coef).all(axis=1))
    theta = probe.initial() - np.linspace(15, 60, 5)[:, None] * units[place]
    assert (probe.coordinates.expand(theta).lines[0].bent < -30).all()
    with np.errstate(divide="ignore"):  # of log(sigma), which is not used there
        found, expected = probe._evaluate(theta, True)[1], differences(probe.log_density, theta)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
