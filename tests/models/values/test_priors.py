"""Priors: densities against scipy, maps to the real line, and defaults of the estimators."""

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from skldp import LDPDistribution, LDPExponential, LDPGaussian, LDPGeometric, LDPPoisson
from skldp.models import BetaPrior, GammaPrior, NormalPrior, ScipyPrior

PRIORS = [
    (NormalPrior(1.0, 2.0), stats.norm(1.0, 2.0)),
    (NormalPrior(-30.0, 0.2), stats.norm(-30.0, 0.2)),
    (GammaPrior(3.0, 0.5), stats.gamma(3.0, scale=2.0)),
    (GammaPrior(2.0, 20.0), stats.gamma(2.0, scale=0.05)),
    (BetaPrior(1.0, 1.0), stats.beta(1.0, 1.0)),
    (BetaPrior(2.0, 3.5), stats.beta(2.0, 3.5)),
    (ScipyPrior(stats.cauchy(1.0, 2.0)), stats.cauchy(1.0, 2.0)),
    (ScipyPrior(stats.uniform(-1, 4)), stats.uniform(-1, 4)),
    (ScipyPrior(stats.gamma(2.0, loc=3.0)), stats.gamma(2.0, loc=3.0)),
    (ScipyPrior(stats.truncnorm(-np.inf, 1.0)), stats.truncnorm(-np.inf, 1.0)),
]
every_prior = pytest.mark.parametrize("prior, frozen", PRIORS, ids=lambda value: type(value).__name__)
SHARES = np.linspace(0.01, 0.99, 25)


@every_prior
def test_densities_and_quantiles_match_scipy(prior, frozen):
    assert prior.support == frozen.support()
    x = frozen.ppf(SHARES)
    np.testing.assert_allclose(prior.quantile(SHARES), x, rtol=1e-9)
    np.testing.assert_allclose(prior.log_density(x), frozen.logpdf(x), rtol=1e-9, atol=1e-12)


@every_prior
def test_quantiles_invert_the_integral_of_the_density(prior, frozen):
    for share, next_share in ((0.1, 0.3), (0.5, 0.9)):
        ends = prior.quantile(share), prior.quantile(next_share)
        mass = quad(lambda x: np.exp(prior.log_density(x)), *ends)[0]
        assert mass == pytest.approx(next_share - share, abs=1e-8)


@every_prior
def test_unconstrain_inverts_constrain_and_jacobian_is_its_derivative(prior, frozen):
    x = frozen.ppf(SHARES)
    theta = prior.unconstrain(x)
    np.testing.assert_allclose(prior.constrain(theta), x, rtol=1e-9)
    step = 1e-6
    derivative = np.abs(prior.constrain(theta + step) - prior.constrain(theta - step)) / (2 * step)
    np.testing.assert_allclose(prior.log_jacobian(theta), np.log(derivative), atol=1e-6)
    lower, upper = prior.support
    far = prior.constrain(np.array([-30.0, 30.0]))
    assert (far >= lower).all() and (far <= upper).all()


@every_prior
def test_priors_integrate_to_one_in_unconstrained_coordinates(prior, frozen):
    def density(theta):
        return np.exp(prior.log_density(prior.constrain(theta)) + prior.log_jacobian(theta))

    # Split at quantiles, so that quad misses no peak; the probability beyond the outer quantiles is 2e-6.
    ends = np.sort(prior.unconstrain(prior.quantile(np.array([1e-6, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-3, 1 - 1e-6]))))
    total = sum(quad(density, *piece)[0] for piece in zip(ends[:-1], ends[1:]))
    assert total == pytest.approx(1 - 2e-6, abs=1e-8)


# By hand from the docstrings: half the range, mean a tenth of the range, mean 5 / upper, mean upper / 4.
@pytest.mark.parametrize("estimator, priors, fixed", [
    (LDPGaussian(), {"mean": NormalPrior(0.0, 5.0), "std": GammaPrior(2.0, 2.0)}, None),
    (LDPGaussian(bounds=(100, 300)), {"mean": NormalPrior(200.0, 100.0), "std": GammaPrior(2.0, 0.1)}, None),
    (LDPGaussian(mean_prior=(7, 3), std_prior=(4, 5)), {"mean": NormalPrior(7, 3), "std": GammaPrior(4, 5)}, None),
    (LDPExponential(), {"rate": GammaPrior(2.0, 2.0)}, None),
    (LDPExponential(upper=20.0), {"rate": GammaPrior(2.0, 8.0)}, None),
    (LDPExponential(rate_prior=(4, 5)), {"rate": GammaPrior(4, 5)}, None),
    (LDPPoisson(), {"rate": GammaPrior(2.0, 0.4)}, None),
    (LDPPoisson(upper=8), {"rate": GammaPrior(2.0, 1.0)}, None),
    (LDPPoisson(rate_prior=(4, 5)), {"rate": GammaPrior(4, 5)}, None),
    (LDPGeometric(), {"probability": BetaPrior(1.0, 1.0)}, None),
    (LDPGeometric(upper=7), {"probability": BetaPrior(1.0, 1.0)}, None),
    (LDPGeometric(probability_prior=(4, 5)), {"probability": BetaPrior(4, 5)}, None),
    (LDPDistribution(), {"loc": NormalPrior(0.0, 5.0), "scale": GammaPrior(2.0, 2.0)}, {}),
    (LDPDistribution(bounds=(100, 300)), {"loc": NormalPrior(200.0, 100.0), "scale": GammaPrior(2.0, 0.1)}, {}),
    (LDPDistribution(distribution="gamma", bounds=(0, 10)), {"a": GammaPrior(2.0, 1.0), "scale": GammaPrior(2.0, 2.0)},
     {"loc": 0.0}),
    (LDPDistribution(distribution="gamma", bounds=(0, 400), priors={"scale": 3}), {"a": GammaPrior(2.0, 1.0)},
     {"loc": 0.0, "scale": 3.0}),
    (LDPDistribution(distribution="nbinom", bounds=(0, 12)), {"n": GammaPrior(2.0, 1.0), "p": BetaPrior(1.0, 1.0)},
     {"loc": 0.0}),
    (LDPDistribution(distribution="nbinom", bounds=(2, 50)), {"n": GammaPrior(2.0, 1.0), "p": BetaPrior(1.0, 1.0)},
     {"loc": 0.0}),
], ids=lambda value: repr(value) if hasattr(value, "get_params") else "")
def test_default_and_given_priors_of_estimators(estimator, priors, fixed):
    family = estimator._family()
    assert list(family.priors) == list(priors)
    for name, expected in priors.items():
        found = family.priors[name]
        assert type(found) is type(expected) and found.__dict__ == pytest.approx(expected.__dict__, rel=1e-14), name
    assert getattr(family, "fixed", None) == fixed
