"""Likelihoods of moments of which each client fills some entries."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import chi2, multivariate_normal, norm

from skldp.mechanisms import SampledMoments
from skldp.models import LinearModel, LogisticMomentModel, SampledLinearModel, SampledLogisticModel
from skldp.models.regression import _sampled_likelihoods
from skldp.models.regression._label_moments import LabelMomentLikelihood, LabelMoments
from skldp.models.regression._moment_likelihoods import MomentLikelihood
from skldp.models.regression._sampled_likelihoods import (
    EntryVariances,
    SampledLabelLikelihood,
    SampledMomentLikelihood,
)
from skldp.protocols import (
    Aggregate,
    LabelMomentProtocol,
    MomentProtocol,
    SampledLabelMomentProtocol,
    SampledMomentProtocol,
)
from skldp.protocols._tallies import Tally
from tests.protocols.registry import simulate

D = 3


def moments_of(rng, order=D + 1, size=0.12):
    """Mean and covariance of v = (x, w y)."""
    factor = rng.normal(scale=size, size=(order, order))
    return rng.normal(scale=0.1, size=order), factor @ factor.T


def gaussian_tally(protocol, n=4000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(0.05, 0.2, size=(n, protocol.n_features))
    y = X @ np.linspace(0.5, -0.3, protocol.n_features) + rng.normal(0, 0.1, size=n)
    labels = (rng.random(n) < expit(4 * y)).astype(int)
    return protocol._tally(simulate(protocol, X, y if protocol.labels is None else labels))


def value(likelihood, mean, covariance):
    return likelihood.value_and_gradients(None if mean is None else mean[None], covariance[None], False)[0][0]


@pytest.mark.parametrize("weight", [0.6, 0.0])
def test_linear_likelihood_is_the_normal_density_of_the_means(weight):
    protocol = SampledMomentProtocol(n_features=D, epsilon=6.0, intercept_weight=weight)
    tally, rng = gaussian_tally(protocol), np.random.default_rng(1)
    likelihood, mechanism = SampledMomentLikelihood(protocol, tally), protocol.randomizer
    scales = mechanism.subsets.scales
    place, counts = mechanism.places, protocol.counts(tally)[mechanism.places]
    pilot = moments_of(rng)
    likelihood.fix(pilot[0] if weight else None, pilot[1])

    def exact(mean, covariance):
        theta, extended = np.zeros((len(scales),) * 2), None
        theta[-D - 1:, -D - 1:] = covariance
        if weight:
            extended = np.append(weight, mean)
            theta += np.outer(extended, extended)
        found = mechanism.noise.correlated(theta, extended, *place)
        return theta[place], np.sqrt(np.diag(found) / counts), found

    found = exact(*pilot)[2]
    correlation = found / np.sqrt(np.outer(np.diag(found), np.diag(found)))
    observed = (protocol.mean_matrix(tally) * np.outer(scales, scales))[place]
    differences = []
    for mean, covariance in [pilot, *(moments_of(rng) for _ in range(4))]:
        expected, deviations, _ = exact(mean, covariance)
        density = multivariate_normal(expected, correlation * np.outer(deviations, deviations)).logpdf(observed)
        differences.append(density - value(likelihood, mean if weight else None, covariance))
    assert np.ptp(differences) < 1e-8 * np.abs(differences).max() + 1e-6


def test_reports_of_all_features_have_the_likelihood_of_axes():
    """Without a constant, of which axes use the noisy square as well."""
    options = {"n_features": D, "epsilon": 6.0, "intercept_weight": 0.0}
    full, sampled = MomentProtocol(mechanism="axis", **options), SampledMomentProtocol(features_per_client=D, **options)
    one = MomentLikelihood(full, gaussian_tally(full))
    other, rng, differences = SampledMomentLikelihood(sampled, gaussian_tally(sampled)), np.random.default_rng(0), []
    other.entries.products = one.mean[other.entries.place]  # the same reports
    for _ in range(4):
        _, covariance = moments_of(rng)
        other.fix(None, covariance)  # so that nothing is approximated
        determinant = np.linalg.slogdet(other.inverse)[1] / 2
        differences.append(value(one, None, covariance) - value(other, None, covariance) - determinant)
    assert np.ptp(differences) < 1e-6


@pytest.mark.parametrize("weight", [0.6, 0.0])
def test_labels_of_all_features_have_the_precision_of_axes(weight):
    options = {"n_features": D, "epsilon": 6.0, "intercept_weight": weight}
    full = LabelMomentProtocol(mechanism="axis", **options)
    sampled = SampledLabelMomentProtocol(features_per_client=D, **options)
    one = LabelMomentLikelihood(full, gaussian_tally(full))
    other = SampledLabelLikelihood(sampled, gaussian_tally(sampled))
    moments = label_moments(np.random.default_rng(0), full.y_weight, weight)
    covariance = np.linalg.inv(one.precision(moments))
    deviations = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(deviations, deviations)
    np.testing.assert_allclose(np.linalg.inv(other.precision(moments)), correlation, rtol=1e-8, atol=1e-8)
    weighted = other._in_units_of_report(moments)
    mean = np.pad(weighted.x_mean, ((0, 0), (other.x.start, 1))) if weight else None
    entries = other.entries
    found = EntryVariances(other.law, weighted.matrix(), mean, entries.place, entries.normal).values[0]
    isometry = np.where(entries.place[0] == entries.place[1], 1.0, math.sqrt(2))
    np.testing.assert_allclose(found, np.diag(covariance) / isometry**2, rtol=1e-8)


def label_moments(rng, y_weight, weight):
    factor = rng.normal(scale=0.2, size=(1, D, D))
    mean, intercept = (rng.normal(scale=0.1, size=(1, D)), np.array([0.4])) if weight else (None, None)
    return LabelMoments(factor @ factor.swapaxes(1, 2), np.array([[4.0, -2.0, 1.0]]), mean, intercept, y_weight, weight)


def test_matrix_and_scaling_of_label_moments():
    moments = label_moments(np.random.default_rng(0), 0.7, 0.3)
    matrix = moments.matrix()[0]
    np.testing.assert_allclose(matrix[1:-1, 1:-1], moments.second()[0])
    np.testing.assert_allclose(matrix[0, [0, -1]], [0.09, 0.3 * 0.7 * moments.means[0][0]])
    np.testing.assert_allclose(matrix[1:-1, -1], 0.7 * moments.cross[0])
    scales = np.array([1, 2, 2, 2, 1])
    np.testing.assert_allclose(moments.scaled(2.0).matrix()[0], matrix * np.outer(scales, scales))
    np.testing.assert_allclose(matrix, matrix.T)


@pytest.mark.parametrize("epsilon", [4.0, np.inf])
def test_precision_of_labels_by_simulation(epsilon):
    """The squared, weighted deviation has a chi-square distribution for clients who fill different entries."""
    n, n_groups, rng = 3000, 300, np.random.default_rng(0)
    protocol = SampledLabelMomentProtocol(n_features=D, epsilon=epsilon, intercept_weight=0.5)
    factor, mean, coef, intercept = rng.normal(scale=0.12, size=(D, D)), np.array([0.1, 0.0, -0.1]), [5, -3, 2], 0.5
    moments = LabelMoments((factor @ factor.T)[None], np.array([coef], dtype=float), mean[None], np.array([intercept]),
                           protocol.y_weight, protocol.intercept_weight)
    found = []
    for group in range(n_groups):
        X = mean + rng.normal(size=(n, D)) @ factor.T
        y = (rng.random(n) < expit(X @ coef + intercept)).astype(int)
        part = SampledLabelLikelihood(protocol, protocol._tally(simulate(protocol, X, y, seed=group)))
        found.append(-2 * part.plug_in_value(moments, part.precision(moments))[0][0])
    size = len(part.entries.counts)
    weighted = part._in_units_of_report(moments)
    mean, entries = np.pad(weighted.x_mean, ((0, 0), (1, 1))), part.entries
    found = np.array(found) - np.log(EntryVariances(part.law, weighted.matrix(), mean, entries.place,
                                                    entries.normal).values).sum()
    assert size == 6 + 2 * D + 1
    error = math.sqrt(2 * size / n_groups)
    assert abs(np.mean(found) - size) < 4.5 * error + 0.01 * size
    assert chi2.sf(max(found), size) * n_groups > 1e-6


def test_entries_that_nobody_fills_have_no_weight():
    protocol = SampledMomentProtocol(n_features=20, epsilon=4.0)
    tally = gaussian_tally(protocol, n=30)
    likelihood = SampledMomentLikelihood(protocol, tally)
    n_unfilled = np.count_nonzero(protocol.counts(tally)[protocol.randomizer.places] == 0)
    assert n_unfilled > 100
    assert len(likelihood.entries.counts) == protocol.randomizer.n_moments - n_unfilled
    model = SampledLinearModel(protocol.aggregate(np.empty((0, protocol.width), dtype=int)))
    assert np.isfinite(model.log_density(model.initial()[None])).all()
    labels = SampledLabelMomentProtocol(n_features=20, epsilon=4.0)
    part = SampledLabelLikelihood(labels, gaussian_tally(labels, n=30))
    moments = LabelMoments(np.eye(20)[None] / 80, np.ones((1, 20)), np.zeros((1, 20)), np.zeros(1), part.y_weight,
                           part.intercept_weight)
    precision = part.precision(moments)
    assert len(precision) < labels.randomizer.n_moments - 100
    assert np.isfinite(part.plug_in_value(moments, precision)[0]).all()


@pytest.mark.parametrize("model_of, protocol_of", [
    (SampledLinearModel, SampledMomentProtocol), (SampledLogisticModel, SampledLabelMomentProtocol)])
def test_cohorts_and_pilots(model_of, protocol_of):
    """The pilot is the mode, and two cohorts with their own budgets and weights are one model."""
    cohorts = (2.0, 0.7), (8.0, 1.0)
    protocols = [protocol_of(n_features=D, epsilon=epsilon, y_weight=weight) for epsilon, weight in cohorts]
    parts = [protocol.aggregate(simulate(protocol, *records(protocol))) for protocol in protocols]
    model = model_of(parts[0] + parts[1])
    assert len(model.likelihoods) == 2
    gradient = model.gradient(model.initial()[None])[1]
    assert np.abs(gradient).max() < 1.0, "the mode, but for the covariance being fixed there afterwards"
    coef = model.constrain(model.initial()[None])["coef"]
    truth = np.array([0.5, 0.1, -0.3]) * (1 if protocols[0].labels is None else 8)
    assert np.abs(coef - truth).max() < 0.3 * np.abs(truth).max()


def records(protocol, n=60_000):
    rng = np.random.default_rng(5)
    X = rng.normal(0.05, 0.2, size=(n, D))
    line = X @ [0.5, 0.1, -0.3]
    if protocol.labels is None:
        return X, line + rng.normal(0, 0.1, size=n)
    return X, (rng.random(n) < expit(8 * line)).astype(int)


def test_models_of_all_features_do_not_read_sampled_reports_and_the_other_way_round():
    full, sampled = MomentProtocol(n_features=D), SampledMomentProtocol(n_features=D)
    assert type(LinearModel(full.aggregate(simulate(full, *records(full, 50)))).likelihoods[0]) is MomentLikelihood
    linear = SampledLinearModel(sampled.aggregate(simulate(sampled, *records(sampled, 50))))
    assert type(linear.likelihoods[0]) is SampledMomentLikelihood
    labels = SampledLabelMomentProtocol(n_features=D)
    logistic = LogisticMomentModel(labels.aggregate(simulate(labels, *records(labels, 50))))
    assert type(logistic.likelihoods[0]) is SampledLabelLikelihood


def test_noise_is_that_of_the_records_within_the_radius():
    """Moments that are too large for the radius are scaled before the noise is computed."""
    mechanism = SampledMoments(epsilon=4.0, n_features=4)
    inside = np.diag([0.5, 0.1, 0.1, 0.1, 0.1, 0.1])
    law = mechanism.noise
    assert law.of_records(np.diag(inside)) == replace(law)
    assert law.of_records(100 * np.diag(inside)).linear < law.linear


@pytest.mark.parametrize("model_of, protocol_of", [
    (SampledLinearModel, SampledMomentProtocol), (SampledLogisticModel, SampledLabelMomentProtocol)])
def test_very_many_entries_are_independent(model_of, protocol_of, monkeypatch):
    protocol = protocol_of(n_features=D, epsilon=4.0)
    aggregate = protocol.aggregate(simulate(protocol, *records(protocol, 5000)))
    dependent = model_of(aggregate)
    monkeypatch.setattr(_sampled_likelihoods, "_MOST_CORRELATED", 0)
    model = model_of(aggregate)
    theta = model.initial() + np.random.default_rng(0).normal(scale=0.1, size=(3, model.n_params))
    value, gradient = model.gradient(theta)
    steps = 1e-5 * np.eye(model.n_params)
    numeric = [(model.log_density(theta + step) - model.log_density(theta - step)) / 2e-5 for step in steps]
    np.testing.assert_allclose(gradient, np.transpose(numeric), rtol=1e-4, atol=1e-4 * np.abs(gradient).max())
    assert np.ptp(value - dependent.log_density(theta)) > 1e-3
    entries = model.likelihoods[0].entries
    moments, mean = np.eye(protocol.randomizer.order)[None] * 0.3, np.zeros((1, protocol.randomizer.order))
    found = entries.evaluate(None, moments, mean, False)[0][0]
    variances = EntryVariances(entries.law, moments, mean, entries.place, entries.normal).values[0] / entries.counts
    each = norm(moments[0][entries.place], np.sqrt(variances)).logpdf(entries.products)
    assert found == pytest.approx(np.sum(each + 0.5 * np.log(2 * np.pi / entries.counts)), rel=1e-10)


def test_forged_sums_keep_the_correlations_of_the_fit():
    protocol = SampledMomentProtocol(n_features=D, epsilon=4.0)
    aggregate = protocol.aggregate(simulate(protocol, *records(protocol, 5000)))
    model = SampledLinearModel(aggregate)
    same, theta = model.with_aggregate(aggregate), model.initial()[None]
    assert same.log_density(theta) == model.log_density(theta)
    tally = aggregate.parts[protocol]
    changed = model.with_aggregate(Aggregate({protocol: Tally(tally.n_reports, tally.sums + protocol.directions()[3])}))
    assert changed.likelihoods[0].inverse is model.likelihoods[0].inverse
    assert changed.log_density(theta) != model.log_density(theta)


@pytest.mark.parametrize("seed", range(6))
def test_noise_is_a_covariance_where_a_subset_is_longer_than_the_radius(seed):
    """Few reports say little about the sizes of features, so that the model may say that some are too large."""
    law, rng = SampledMoments(epsilon=1.0, n_features=6).noise, np.random.default_rng(seed)
    factor = rng.normal(size=(8, 8)) * np.exp(rng.normal(size=8))[:, None]
    found = law.correlated(factor @ factor.T, None, *np.triu_indices(8))
    assert np.linalg.eigvalsh(found)[0] > 0


@pytest.mark.parametrize("n", [1, 2, 20])
@pytest.mark.parametrize("model_of, protocol_of", [
    (SampledLinearModel, SampledMomentProtocol), (SampledLogisticModel, SampledLabelMomentProtocol)])
def test_very_few_reports_have_a_pilot(model_of, protocol_of, n):
    protocol = protocol_of(n_features=10, epsilon=1.0)
    for seed in range(5):
        X = np.random.default_rng(seed).uniform(0, 3, size=(n, 10))
        model = model_of(protocol.aggregate(simulate(protocol, X, np.ones(n), seed)))
        assert np.isfinite(model.log_density(model.initial()[None])).all()
