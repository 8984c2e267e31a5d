"""Integer thresholds satisfy epsilon, and the next integer does not."""

from fractions import Fraction

import mpmath
import pytest

from skldp.privacy import exp_lower, flip_threshold, near_threshold

WORD = 2**64
EPSILONS = [1e-3, 0.1, 1.0, 3.7, 10.0, 20.0]


def exp_upper(epsilon):
    return exp_lower(epsilon) * (1 + Fraction(1, 10**50))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_exp_lower_is_below_and_close(epsilon):
    with mpmath.workdps(80):
        lower = mpmath.mpf(exp_lower(epsilon).numerator) / exp_lower(epsilon).denominator
        assert lower < mpmath.exp(mpmath.mpf(epsilon)) < lower * (1 + mpmath.mpf(10) ** -50)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_flipping_keeps_epsilon_and_rounding_down_does_not(epsilon):
    def odds(threshold):
        return Fraction(WORD - threshold, threshold)

    threshold = flip_threshold(epsilon)
    assert odds(threshold) <= exp_upper(epsilon)
    assert odds(threshold - 1) > exp_lower(epsilon), "the mutant that rounds down breaks its promise"


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("near, far", [(1, 1), (1, 99), (257, 1024), (4, 12)])
def test_near_threshold_is_the_largest_private_one(epsilon, near, far):
    slack = Fraction(near + far, WORD)

    def worst_ratio(threshold):
        most_likely_near = Fraction(threshold, WORD) * (1 + slack) / near
        least_likely_far = Fraction(WORD - threshold, WORD) * (1 - slack) / far
        return most_likely_near / least_likely_far

    threshold = near_threshold(epsilon, near, far, slack)
    assert worst_ratio(threshold) <= exp_upper(epsilon)
    assert worst_ratio(threshold + 1) > exp_lower(epsilon)
