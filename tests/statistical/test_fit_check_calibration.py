"""Calibration of the p-values of the test of fit: records from the model of each estimator."""

import numpy as np
import pytest
from scipy import stats

from skldp import LDPGaussian, LDPGeometric, LDPHistogram, LDPPoisson

pytestmark = pytest.mark.slow

N_FITS, LEVEL = 150, 1e-4
CASES = {
    "gaussian laplace": (lambda: LDPGaussian(mechanism="laplace"), lambda rng, n: rng.normal(1, 1, size=(n, 1))),
    "poisson square wave": (lambda: LDPPoisson(), lambda rng, n: rng.poisson(6, size=(n, 1))),
    "geometric laplace": (lambda: LDPGeometric(mechanism="laplace"),
                          lambda rng, n: rng.geometric(0.2, size=(n, 1)) - 1),
}


def p_values(make, draw):
    """Return the p-values of fits whose Laplace approximation is good enough for one."""
    found = []
    for seed in range(N_FITS):
        records = draw(np.random.default_rng(seed), (200, 5000)[seed % 2])
        found.append(make().set_params(inference="laplace", random_state=seed).fit(records).fit_check_)
    return np.array([check.p_value for check in found if check is not None])


@pytest.mark.filterwarnings("ignore::skldp.exceptions.ModelMisfitWarning")
@pytest.mark.parametrize("case", CASES)
def test_p_values_of_records_from_the_model_are_uniform(case):
    found = p_values(*CASES[case])
    assert len(found) > N_FITS / 3
    for share in (0.05, 0.2, 0.5):
        low, high = stats.binom.ppf([LEVEL / 2, 1 - LEVEL / 2], len(found), share)
        assert low <= np.sum(found < share) <= high
    assert np.sum(found < 1e-3) <= stats.binom.ppf(1 - LEVEL, len(found), 1e-3)


@pytest.mark.parametrize("mechanism", ["subset", "oue", "rr"])
def test_categories_have_few_false_alarms_whatever_their_frequencies(mechanism):
    found = []
    for seed in range(N_FITS):
        rng = np.random.default_rng(seed)
        records = rng.choice(30, p=rng.dirichlet(np.full(30, (0.05, 1.0)[seed % 2])), size=(3000, 1))
        model = LDPHistogram(categories=range(30), mechanism=mechanism, likelihood="counts", random_state=seed)
        residuals = model._models(model.aggregate(model.privatize(records)))[0].fit_residuals(None)
        found.append(np.abs(residuals.standardised()).max())
    bonferroni = 30 * 2 * stats.norm.sf(found)
    assert np.sum(bonferroni < 0.05) <= stats.binom.ppf(1 - LEVEL, N_FITS, 0.05)
