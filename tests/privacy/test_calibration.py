import math

import mpmath
import pytest

from skldp.privacy import gaussian_delta, gaussian_sigma


def exact_delta(epsilon, sigma):
    with mpmath.workdps(80):
        epsilon, ratio = mpmath.mpf(epsilon), 1 / mpmath.mpf(sigma)
        here = mpmath.ncdf(ratio / 2 - epsilon / ratio)
        return here - mpmath.exp(epsilon) * mpmath.ncdf(-ratio / 2 - epsilon / ratio)


@pytest.mark.parametrize("epsilon, sigma", [(0.1, 30.749566), (1.0, 3.730632), (5.0, 0.891868)])
def test_published_values(epsilon, sigma):
    assert gaussian_sigma(epsilon, 1e-5) == pytest.approx(sigma, abs=5e-7)


@pytest.mark.parametrize("epsilon", [1e-3, 0.03, 1.0, 5.0, 20.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-5, 0.1, 0.9])
def test_sigma_is_the_smallest_private_one(epsilon, delta):
    sigma = gaussian_sigma(epsilon, delta)
    assert exact_delta(epsilon, sigma) <= delta
    assert exact_delta(epsilon, sigma * (1 - 1e-6)) > delta
    assert gaussian_delta(epsilon, sigma) == pytest.approx(delta, rel=1e-6)


def test_sensitivity_scales_the_noise():
    assert gaussian_sigma(1.0, 1e-5, 7.0) == pytest.approx(7 * gaussian_sigma(1.0, 1e-5))


def test_limits():
    assert gaussian_sigma(math.inf, 1e-5) == 0.0


@pytest.mark.parametrize("arguments", [(0, 1e-5), (-1, 1e-5), (1, 0), (1, 1), (1, 1e-5, -1), (True, 1e-5)])
def test_bad_parameters_raise(arguments):
    with pytest.raises(ValueError, match="must"):
        gaussian_sigma(*arguments)
