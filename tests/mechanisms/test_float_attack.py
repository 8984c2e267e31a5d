"""Attack on floating-point noise: it succeeds against naive NumPy noise and fails against ours."""

from functools import partial

import numpy as np
import pytest

from skldp.mechanisms import Laplace
from skldp.privacy import laplace_noise, noise_pmf


def naive_laplace(u, x, scale):
    """Return the Laplace draw of NumPy's generator for a uniform number u, a location x and a scale."""
    with np.errstate(all="ignore"):
        return np.where(u >= 0.5, x - scale * np.log(2.0 - u - u), x + scale * np.log(u + u))


def reachable(reports, x, scale):
    """Whether each report is possible from the record x, for some 53-bit uniform number."""
    deviation = (reports - x) / scale
    guess = np.where(deviation > 0, 1 - np.exp(-deviation) / 2, np.exp(deviation) / 2)
    found = np.zeros(len(reports), dtype=bool)
    for step in range(-40, 41):
        u = np.rint(guess * 2.0**53 + step) * 2.0**-53
        found |= naive_laplace(u, x, scale) == reports
    return found


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_control_naive_noise_is_broken(epsilon):
    u = np.random.default_rng(0).random(20_000)
    reports = naive_laplace(u, 1.0, 1 / epsilon)
    assert reachable(reports, 1.0, 1 / epsilon).mean() > 0.95
    assert (~reachable(reports, 0.0, 1 / epsilon)).mean() > 0.5, "reports that only one record can have sent"


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
def test_every_report_of_ours_can_come_from_every_record(epsilon):
    mechanism = Laplace(epsilon=epsilon, bounds=(0, 1))
    reports = mechanism.randomize(np.ones(2000)).astype(np.int64)
    law = partial(laplace_noise, scale=mechanism.scale)
    from_zero, from_one = noise_pmf(law, reports), noise_pmf(law, reports - mechanism.n_levels)
    assert (from_zero > 0).all() and (from_one > 0).all()
    assert np.abs(np.log(from_zero / from_one)).max() <= epsilon
