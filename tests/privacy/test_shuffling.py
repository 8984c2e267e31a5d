"""Compare the shuffling theorem with the exact guarantee of shuffled randomised response."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import binom

from skldp.exceptions import InvalidParameterError
from skldp.privacy import shuffled_epsilon


def shuffled_counts(n_reports, n_ones, p):
    """Distribution of the number of ones among reported bits that are correct with probability p."""
    zeros = binom.pmf(np.arange(n_reports - n_ones + 1), n_reports - n_ones, 1 - p)
    ones = binom.pmf(np.arange(n_ones + 1), n_ones, p)
    return np.convolve(zeros, ones)


def exact_epsilon(local, n_reports, delta):
    """Central epsilon of shuffled randomised response of bits, maximised over the other clients' records."""
    p = math.exp(local) / (1 + math.exp(local))

    def excess(epsilon, one, other):
        return np.maximum(one - math.exp(epsilon) * other, 0).sum() - delta

    worst = 0.0
    for n_ones in (0, n_reports // 4, n_reports // 2, n_reports - 1):
        pair = shuffled_counts(n_reports, n_ones, p), shuffled_counts(n_reports, n_ones + 1, p)
        for one, other in (pair, pair[::-1]):
            if excess(0.0, one, other) > 0:
                worst = max(worst, brentq(excess, 0.0, local, args=(one, other)))
    return worst


@pytest.mark.parametrize("local, n_reports, delta", [
    (0.1, 500, 1e-6), (0.5, 500, 1e-5), (1.0, 1000, 1e-6), (1.0, 4000, 1e-8), (2.0, 4000, 1e-6), (3.0, 6000, 1e-6)])
def test_the_bound_holds_and_is_not_loose(local, n_reports, delta):
    exact, bound = exact_epsilon(local, n_reports, delta), shuffled_epsilon(local, n_reports, delta)
    assert exact <= bound <= local
    assert bound < 6 * exact


def test_ten_times_less_for_a_hundred_times_more_reports():
    few, many = shuffled_epsilon(1.0, 10**5, 1e-8), shuffled_epsilon(1.0, 10**7, 1e-8)
    assert many == pytest.approx(few / 10, rel=0.05)


def test_the_published_value():
    # 1 + (e - 1)/(e + 1) (8 sqrt(e log(4e8) / 1e5) + 8 e / 1e5), written out.
    e = math.e
    inside = 1 + (e - 1) / (e + 1) * (8 * math.sqrt(e * math.log(4e8) / 1e5) + 8 * e / 1e5)
    assert shuffled_epsilon(1.0, 10**5, 1e-8) == pytest.approx(math.log(inside), rel=1e-12)


@pytest.mark.parametrize("local, n_reports, delta", [
    (1.0, 500, 1e-6), (10.0, 10**6, 1e-6), (math.inf, 10**9, 1e-6)])
def test_parameters_outside_the_domain_of_the_theorem_raise(local, n_reports, delta):
    with pytest.raises(InvalidParameterError, match="domain of the theorem"):
        shuffled_epsilon(local, n_reports, delta)


@pytest.mark.parametrize("arguments", [(-1.0, 1000, 1e-6), (1.0, 0, 1e-6), (1.0, 10.5, 1e-6), (1.0, 1000, 0.0)])
def test_bad_parameters(arguments):
    with pytest.raises(InvalidParameterError):
        shuffled_epsilon(*arguments)
