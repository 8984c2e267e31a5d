"""The JavaScript client of surveys: distribution and epsilon of a million reports."""

import pytest

from tests.survey.node import needs_node
from tests.survey.test_client import AUDITED, QUIET, epsilon_bound, p_value, replaced

pytestmark = [pytest.mark.slow, needs_node]
N_REPORTS = 1_000_000


@pytest.mark.parametrize("name", AUDITED)
def test_reports_of_the_client_have_the_right_distribution(name):
    """A false alarm has a probability of 1e-6."""
    protocol, answers, _ = AUDITED[name]
    assert p_value(protocol, answers, N_REPORTS) > 1e-6


@pytest.mark.parametrize("name", AUDITED)
def test_the_epsilon_of_the_client_is_not_exceeded(name):
    protocol, answers, other = AUDITED[name]
    assert 0.9 * protocol.epsilon < epsilon_bound(protocol, answers, other, N_REPORTS) <= protocol.epsilon


def test_too_little_noise_of_the_client_is_detected():
    protocol, answers, other = AUDITED["randomised response"]
    assert epsilon_bound(protocol, answers, other, 100_000, replaced(*QUIET)) > protocol.epsilon
