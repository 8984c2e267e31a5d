"""Compare planned numbers of reports with simulated studies, enumeration, and the curvature of the models."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtri

from skldp import (
    MCMC,
    LDPBayesLinearRegression,
    LDPBayesLogisticRegression,
    LDPExponential,
    LDPGaussian,
    LDPGeometric,
    LDPHistogram,
    LDPPoisson,
    RegressionPrior,
    required_reports,
)
from skldp.analysis._planning import _log_cells
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms import SubsetSelection, UnaryEncoding
from skldp.models import LinearModel
from skldp.protocols import Aggregate, RecordProtocol
from skldp.protocols._tallies import Tally

CATEGORIES = list(range(4))
SHORT = {"inference": MCMC(n_draws=400)}
NORMAL = {"inference": "laplace"}  # fast, and accurate for this many reports


def normal(n, rng):
    return rng.normal(0.5, 1.0, size=(n, 1)), None


def categories(n, rng):
    return rng.choice(CATEGORIES, p=[0.4, 0.2, 0.2, 0.2], size=(n, 1)), None


def line(n, rng):
    X = rng.normal(scale=0.3, size=(n, 2))
    return X, X @ [0.6, 0.0] + rng.normal(scale=0.2, size=n)


STUDIES = {
    "mean, square wave": (LDPGaussian(epsilon=2.0, **SHORT), 0.2, "mean", {"mean": 0.5, "std": 1.0}, normal),
    "std, square wave": (LDPGaussian(epsilon=2.0, **NORMAL), 0.2, "std", {"mean": 0.5, "std": 1.0}, normal),
    "mean, Laplace": (LDPGaussian(epsilon=2.0, mechanism="laplace", **NORMAL), 0.4, "mean", {"mean": 0.5, "std": 1.0},
                      normal),
    "mean, Gaussian": (LDPGaussian(epsilon=4.0, mechanism="gaussian", **NORMAL), 0.4, "mean",
                       {"mean": 0.5, "std": 1.0}, normal),
    "frequency, subsets": (LDPHistogram(epsilon=1.0, categories=CATEGORIES, **SHORT), 0.08, "frequencies",
                           {"frequency": 0.4}, categories),
    "frequency, unary": (LDPHistogram(epsilon=1.0, categories=CATEGORIES, mechanism="oue", **SHORT), 0.08,
                         "frequencies", {"frequency": 0.4}, categories),
    "frequency, response": (LDPHistogram(epsilon=1.0, categories=CATEGORIES, mechanism="rr", **NORMAL), 0.08,
                            "frequencies", {"frequency": 0.4}, categories),
    "coefficient, sphere": (LDPBayesLinearRegression(epsilon=8.0, **NORMAL), 0.15, "coef",
                            {"n_features": 2, "feature_std": 0.3, "sigma": 0.2, "coef": [0.6, 0.0]}, line),
    "coefficient, Gaussian": (LDPBayesLinearRegression(epsilon=16.0, mechanism="gaussian", **NORMAL), 0.15, "coef",
                              {"n_features": 2, "feature_std": 0.3, "sigma": 0.2, "coef": [0.6, 0.0]}, line),
}


@pytest.mark.slow
@pytest.mark.parametrize("study", STUDIES)
def test_a_study_of_that_size_has_intervals_of_that_width(study):
    estimator, width, parameter, assumptions, records = STUDIES[study]
    n = required_reports(estimator, width, parameter=parameter, **assumptions)
    widths = []
    # A regression also estimates Cov(x), so its widths differ by 7 % between studies; others differ by 1 %.
    for seed in range(8 if parameter == "coef" else 3):
        X, y = records(n, np.random.default_rng(seed))
        estimator.set_params(random_state=seed).fit(X, y)
        widths.append(np.atleast_2d(np.diff(estimator.posterior_.interval(0.9)[parameter]))[0, 0])
    assert np.mean(widths) == pytest.approx(width, rel=0.1)


@pytest.mark.parametrize("mechanism", ["square_wave", "laplace", "gaussian"])
def test_the_cells_of_a_value_are_a_distribution(mechanism):
    estimator = LDPGaussian(epsilon=1.0, mechanism=mechanism)
    cells = _log_cells(estimator._family(), estimator.protocol())
    assert np.exp(cells([np.array([[0.3]]), np.array([[1.0]])])).sum() == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("estimator, assumptions, variance", [
    (LDPGaussian(), {"mean": 0.0, "std": 0.5}, 0.25),
    (LDPExponential(upper=50.0), {"rate": 1.0}, 1.0),
    (LDPPoisson(upper=40), {"rate": 4.0}, 4.0),
    (LDPGeometric(upper=200), {"probability": 0.3}, 0.3**2 * 0.7),
    (LDPHistogram(categories=CATEGORIES), {"frequency": 0.3}, 0.21),
    (LDPHistogram(categories=CATEGORIES, mechanism="oue"), {"frequency": 0.3}, 0.21),
    (LDPHistogram(categories=CATEGORIES, mechanism="rr"), {"frequency": 0.3}, 0.21),
    (LDPBayesLinearRegression(), {"feature_std": 0.4, "sigma": 0.2}, 0.25),
    (LDPBayesLinearRegression(mechanism="records"), {"feature_std": 0.4, "sigma": 0.2}, 0.25),
], ids=lambda value: type(value).__name__ if hasattr(value, "fit") else "")
def test_without_noise_the_number_is_the_textbook_one(estimator, assumptions, variance):
    estimator.set_params(epsilon=np.inf)
    expected = variance * (2 * ndtri(0.95) / 0.01) ** 2
    assert required_reports(estimator, 0.01, **assumptions) == pytest.approx(expected, rel=0.01)


@pytest.mark.parametrize("mechanism, kind", [("auto", SubsetSelection), ("oue", UnaryEncoding)])
def test_a_frequency_agrees_with_the_information_of_all_reports(mechanism, kind):
    d, epsilon, truth = 5, 0.7, np.array([0.4, 0.15, 0.15, 0.15, 0.15])
    randomizer = kind(epsilon=epsilon, n_categories=d)
    reports = np.array(list(itertools.product([0, 1], repeat=d)))
    chances = np.array([np.exp(randomizer.log_prob(reports, np.full(len(reports), x))) for x in range(d)]).T @ truth
    contrast = randomizer.ratio - 1
    scores = contrast * reports / (1 + contrast * reports @ truth)[:, None]
    # The frequencies sum to one, so the last is one minus the others.
    free = scores[:, :-1] - scores[:, -1:]
    variance = np.linalg.inv((free * chances[:, None]).T @ free)[0, 0]
    model = LDPHistogram(epsilon=epsilon, categories=range(d), mechanism=mechanism, likelihood="exact")
    assert required_reports(model, 0.01, frequency=0.4) == pytest.approx(variance * (2 * ndtri(0.95) / 0.01) ** 2,
                                                                         rel=1e-4)


def test_counts_have_slightly_less_information_than_reports():
    model = LDPHistogram(epsilon=4.0, categories=range(50), mechanism="oue", likelihood="exact")
    exact = required_reports(model, 0.01, frequency=0.02)
    counts = required_reports(model.set_params(likelihood="counts"), 0.01, frequency=0.02)
    assert 1.02 < counts / exact < 1.25
    # 5,000 reports of 50 bits are evaluated one by one, a million are not.
    model.set_params(likelihood="auto")
    assert required_reports(model, 0.01, frequency=0.02) == exact
    assert required_reports(model, 0.0005, frequency=0.02) == pytest.approx(counts * 400, rel=1e-3)


@pytest.mark.parametrize("mechanism", ["sphere", "axis", "records"])
@pytest.mark.parametrize("intercept", [True, False])
def test_a_coefficient_agrees_with_the_curvature_of_the_model(mechanism, intercept):
    s, sigma, coef = 0.3, 0.2, np.array([0.6, -0.2])
    estimator = LDPBayesLinearRegression(epsilon=2.0, mechanism=mechanism, fit_intercept=intercept)
    protocol = estimator.protocol(2)
    w = protocol.y_weight
    joint = np.block([[s**2 * np.eye(2), w * s**2 * coef[:, None]],
                      [w * s**2 * coef[None], np.array([[w**2 * (s**2 * coef @ coef + sigma**2)]])]])
    # Every coordinate is identified.
    curvature, prior = [], RegressionPrior(coef="normal", covariance_scale=1.0, mean_scale=0.5)
    for n in (1, 2):  # the difference is the curvature of one report, without the prior
        model = LinearModel(Aggregate({protocol: Tally(0, np.zeros(1))}), prior)
        model.likelihoods = [_expected_likelihood(protocol, joint, n)]
        theta = model.coordinates.of_parameters(coef[None], s**2 * np.eye(2)[None], np.zeros((1, 2)), np.zeros(1),
                                                np.full(1, sigma))[0]
        steps = 1e-5 * np.eye(len(theta))
        gradients = [model.gradient(theta + sign * steps)[1] for sign in (1, -1)]
        curvature.append((gradients[1] - gradients[0]) / 2e-5)
    slopes = (model.constrain(theta + steps)["coef"] - model.constrain(theta - steps)["coef"])[:, 0] / 2e-5
    variance = slopes @ np.linalg.solve(curvature[1] - curvature[0], slopes)
    planned = required_reports(estimator, 0.01, n_features=2, feature_std=s, sigma=sigma, coef=coef)
    # The noise of axes is correlated, and the constant entry, which is known, says a little about that of the others.
    known = mechanism == "axis" and intercept
    assert planned == pytest.approx(variance * (2 * ndtri(0.95) / 0.01) ** 2, rel=0.02 if known else 1e-3)


def _expected_likelihood(protocol, joint, n):
    """Likelihood of n reports with a mean equal to its expectation."""
    from skldp.models.regression._moment_likelihoods import MomentLikelihood, RecordLikelihood

    of_records = isinstance(protocol, RecordProtocol)
    likelihood = object.__new__(RecordLikelihood if of_records else MomentLikelihood)
    likelihood.n_reports, likelihood.noise = n, protocol.randomizer.noise_variance
    likelihood.weights = np.array([1.0, 1.0, protocol.y_weight])
    if of_records:
        likelihood.first, likelihood.second = np.zeros(3), joint + likelihood.noise * np.eye(3)
        return likelihood
    likelihood.law = protocol.randomizer.noise
    kappa = likelihood.intercept_weight = protocol.randomizer.intercept_weight
    likelihood.mean = joint
    if kappa:
        likelihood.mean = np.zeros((4, 4))
        likelihood.mean[0, 0], likelihood.mean[1:, 1:] = kappa**2, joint
    return likelihood


def test_less_width_more_confidence_or_more_privacy_needs_more_reports():
    def plan(epsilon=1.0, width=0.1, level=0.9, columns="split", **options):
        return required_reports(LDPGaussian(epsilon=epsilon, columns=columns), width, level=level, std=1.0, **options)

    assert plan(width=0.05) == pytest.approx(4 * plan(), rel=1e-3)
    assert plan(level=0.99) > plan() < plan(epsilon=0.5)
    assert plan(n_features=2) == plan(epsilon=0.5)
    assert plan(n_features=2, columns="sample") == pytest.approx(2 * plan(), abs=2)
    assert plan(width=1e3) == 1


@pytest.mark.parametrize("estimator, arguments, sentence", [
    (LDPBayesLogisticRegression(), {"width": 0.1}, "plans with one of LDPDensity"),
    ("mean", {"width": 0.1}, "plans with one of LDPDensity"),
    (LDPGaussian(), {"width": 0.0, "std": 1.0}, "width must be positive"),
    (LDPGaussian(), {"width": 0.1, "level": 1.0, "std": 1.0}, "level must lie strictly between 0 and 1"),
    (LDPGaussian(), {"width": 0.1}, "std must be assumed"),
    (LDPGaussian(), {"width": 0.1, "std": -1.0}, "std must be positive"),
    (LDPGaussian(), {"width": 0.1, "std": 1.0, "mean": 7.0}, "outside the bounds"),
    (LDPGaussian(), {"width": 0.1, "std": 1.0, "sigma": 1.0}, "'sigma' is no assumption about LDPGaussian"),
    (LDPGaussian(), {"width": 0.1, "std": 1.0, "parameter": "median"}, "parameter must be one of 'mean', 'std'"),
    (LDPGaussian(), {"width": 0.1, "std": 1.0, "n_features": 0}, "n_features must be between 1 and 4096"),
    (LDPGaussian(epsilon=-1), {"width": 0.1, "std": 1.0}, "epsilon must be positive"),
    (LDPExponential(), {"width": 0.1, "rate": 1.0, "mean": 1.0}, "'mean' is no assumption about LDPExponential"),
    (LDPExponential(), {"width": 0.1, "rate": 1e5}, "tells nothing"),
    (LDPGeometric(), {"width": 0.1, "probability": 1.0}, "probability must lie strictly"),
    (LDPHistogram(), {"width": 0.1, "frequency": 0.5}, "categories must be given"),
    (LDPHistogram(categories=["a"]), {"width": 0.1, "frequency": 0.5}, "at least two categories"),
    (LDPHistogram(categories=["a", "b"]), {"width": 0.1, "frequency": 1.5}, "frequency must lie strictly"),
    (LDPHistogram(categories=["a", "b"], likelihood="best"), {"width": 0.1, "frequency": 0.5}, "likelihood must be"),
    (LDPBayesLinearRegression(mechanism="all"), {"width": 0.1, "feature_std": 0.2, "sigma": 0.1}, "mechanism must be"),
    (LDPBayesLinearRegression(), {"width": 0.1}, "feature_std and sigma must be assumed"),
    (LDPBayesLinearRegression(), {"width": 0.1, "feature_std": 2.0, "sigma": 0.1}, "beyond data_norm"),
    (LDPBayesLinearRegression(), {"width": 0.1, "feature_std": 0.2, "sigma": 3.0}, "do not fit in bounds_y"),
    (LDPBayesLinearRegression(), {"width": 0.1, "feature_std": 0.2, "sigma": 0.1, "coef": [1, 2]}, "coef must be"),
])
def test_invalid_input_raises(estimator, arguments, sentence):
    with pytest.raises(InvalidParameterError, match=sentence):
        required_reports(estimator, **arguments)
