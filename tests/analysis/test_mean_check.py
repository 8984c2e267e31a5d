"""The posterior mean of a density against the average of the decoded reports."""

import numpy as np
import pytest

from skldp import LDPDensity
from skldp.analysis._mean_check import WARNING_LEVEL, average_report, check_mean, warn_of_mean
from skldp.exceptions import ModelMisfitWarning
from skldp.protocols import ValueProtocol

PROTOCOLS = [ValueProtocol(epsilon=1.0, bounds=(0, 10), n_levels=50, window=0.25),
             ValueProtocol(epsilon=3.0, bounds=(-4, 1), n_levels=20, window=0.1)]


def expected_counts(protocol, values, n=1e6):
    """Expected numbers of each report, from the mechanism's probabilities."""
    mechanism = protocol.randomizer
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    return n * np.exp(mechanism.log_prob(reports[:, None], values)).mean(axis=1)


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
def test_average_is_unbiased_with_the_standard_error_of_simulated_reports(protocol):
    mechanism = protocol.randomizer
    levels = np.random.default_rng(0).integers(0, mechanism.n_levels + 1, 4) / mechanism.n_levels
    values = mechanism.bounds[0] + levels * (mechanism.bounds[1] - mechanism.bounds[0])
    counts = expected_counts(protocol, values)
    assert average_report([(protocol, counts)])[0] == pytest.approx(values.mean(), rel=1e-9)
    _, error = average_report([(protocol, counts / 1000)])
    rng = np.random.default_rng(1)
    averages = [average_report([(protocol, rng.multinomial(1000, counts / counts.sum()))])[0] for _ in range(2000)]
    assert np.std(averages) == pytest.approx(error, rel=0.06)


def test_cohorts_are_weighted_by_their_precision():
    parts = [(protocol, expected_counts(protocol, np.array([0.5]), n)) for protocol, n in zip(PROTOCOLS, (400, 900))]
    singles = np.array([average_report([part]) for part in parts])
    average, error = average_report(parts)
    assert error**-2 == pytest.approx((singles[:, 1] ** -2).sum())
    assert average == pytest.approx(np.average(singles[:, 0], weights=singles[:, 1] ** -2))


def test_differences_are_standard_normal_for_a_normal_prior_and_likelihood():
    """In the linear model, where posterior means and variances are exact."""
    rng, protocol = np.random.default_rng(0), PROTOCOLS[0]
    values = np.array([2.0, 5.0])
    counts = expected_counts(protocol, values, 2000)
    _, error = average_report([(protocol, counts)])
    found = []
    for _ in range(400):
        mean = values.mean() + error * rng.standard_normal()  # prior variance: that of the average
        average = mean + error * rng.standard_normal()
        posterior = (average + values.mean()) / 2
        shifted = rng.normal(posterior + values.mean() - average, error / np.sqrt(2), size=(4000, 1))
        found.append(check_mean([[(protocol, counts)]], shifted).difference)
    assert np.mean(np.square(found)) == pytest.approx(1.0, abs=4 * np.sqrt(2 / 400))


def test_warning_names_the_column_and_the_numbers():
    protocol = PROTOCOLS[0]
    parts = [[(protocol, expected_counts(protocol, np.array([x]), 10_000))] for x in (3.0, 7.0)]
    errors = [average_report(part)[1] for part in parts]
    draws = np.random.default_rng(0).normal([3.0, 7.0], 0.5 * np.array(errors), size=(4000, 2))
    fine = check_mean(parts, draws)
    assert fine.p_value > 0.5 and fine.average.shape == (2,)
    warn_of_mean(fine, draws.mean(axis=0))
    low = check_mean(parts, draws - [0.0, 4 * errors[1]])
    assert low.p_value < WARNING_LEVEL and low.difference[1] == pytest.approx(-4 / np.sqrt(0.75), abs=0.1)
    with pytest.warns(ModelMisfitWarning, match=r"of column 1, .* is too small .* 7 with a standard error"):
        warn_of_mean(low, draws.mean(axis=0) - [0.0, 4 * errors[1]])


def test_few_reports_and_reports_without_noise_cause_no_warning():
    model = LDPDensity(epsilon=np.inf, bounds=(0, 10), n_cells=16, inference="laplace", random_state=0)
    assert model.fit(np.full((20, 1), 3.0)).mean_check_ is None
    check = model.fit(np.full((1000, 1), 3.0)).mean_check_
    assert check.average == pytest.approx(3.0, abs=0.01) and check.p_value > WARNING_LEVEL
