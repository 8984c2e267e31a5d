"""Broken mechanisms that the audits must detect. If one passes, the audit is broken."""

import numpy as np
import pytest

from skldp.mechanisms import (
    Axis,
    AxisMoments,
    BlockDesign,
    Gaussian,
    Laplace,
    RandomizedResponse,
    SampledMoments,
    Sphere,
    SphereMoments,
    SquareWave,
    SubsetSelection,
    UnaryEncoding,
)
from skldp.privacy import SeededWords, audit_epsilon, gaussian_delta
from tests.mechanisms.registry import repeat


class QuietLaplace(Laplace):
    """Broken mechanism: noise times 0.8."""

    @property
    def scale(self):
        return 0.8 * super().scale


class QuietGaussian(Gaussian):
    """Broken mechanism: noise times 0.8."""

    @property
    def scale(self):
        return 0.8 * super().scale


def lowered(cls):
    """Return a broken mechanism that uses 1.25 times its stated budget."""

    class Mutant(cls):
        def _draw(self, codes, source):
            return cls._draw(cls(**{**vars_of(self), "epsilon": 1.25 * self.epsilon}), codes, source)

    return Mutant


def vars_of(mechanism):
    return {field: getattr(mechanism, field) for field in mechanism.__dataclass_fields__}


CASES = [
    (QuietLaplace(epsilon=1.0), -1.0, 1.0),
    (lowered(SquareWave)(epsilon=1.0), -1.0, 1.0),
    (lowered(RandomizedResponse)(epsilon=1.0, n_categories=3), 0, 1),
    (lowered(UnaryEncoding)(epsilon=1.0, n_categories=4), 0, 1),
    (lowered(SubsetSelection)(epsilon=1.0, n_categories=4), 0, 1),
    (lowered(BlockDesign)(epsilon=1.0, n_categories=7, design=(7, 3)), 0, 1),
    (lowered(Sphere)(epsilon=1.0, n_features=2), np.array([1.0, 0.0]), np.array([-1.0, 0.0])),
    (lowered(Axis)(epsilon=1.0, n_features=2), np.array([1.0, 0.0]), np.array([0.0, 1.0])),
    (lowered(AxisMoments)(epsilon=1.0, n_features=1), np.array([1.0, 1.0]), np.array([1.0, -1.0])),
    (lowered(SampledMoments)(epsilon=1.0, n_features=3), np.array([0.5, 0.5, 0.5, 1.0]),
     np.array([0.5, 0.5, 0.5, -1.0])),
    (lowered(SphereMoments)(epsilon=1.0, n_features=1), np.array([1.0, 1.0]), np.array([1.0, -1.0])),
]


@pytest.mark.parametrize("mechanism, x, x_prime", CASES, ids=lambda value: type(value).__name__)
def test_too_little_noise_is_detected(mechanism, x, x_prime):
    assert audit_epsilon(mechanism, x, x_prime, n_reports=200_000).epsilon_lower > mechanism.epsilon


def test_too_little_gaussian_noise_is_detected_by_the_delta_test():
    honest, quiet = (cls(epsilon=1.0, delta=1e-2) for cls in (Gaussian, QuietGaussian))
    records = np.array([1.0]), np.array([-1.0])
    assert audit_epsilon(honest, *records, n_reports=200_000, delta=1e-2).epsilon_lower <= 1.0
    assert audit_epsilon(quiet, *records, n_reports=200_000, delta=1e-2).epsilon_lower > 1.0


def test_too_little_gaussian_noise_is_detected_by_the_separation_of_means():
    mechanism = QuietGaussian(epsilon=1.0, delta=1e-5)
    one, other = (mechanism.randomize(repeat([x], 50_000))[:, 0].astype(float) for x in (1.0, -1.0))
    sigma = np.concatenate([one - one.mean(), other - other.mean()]).std()
    assert gaussian_delta(1.0, sigma * 1.007, abs(one.mean() - other.mean()) - 0.032 * sigma) > 2 * mechanism.delta


def test_equal_seeds_of_a_generator_reveal_the_difference_of_two_releases():
    mechanism = Laplace(epsilon=0.1)
    first, second = np.zeros(50), np.full(50, 0.25)

    def difference(source_of):
        reports = [mechanism.randomize(x, source_of(x)).astype(int) for x in (first, second)]
        return reports[1] - reports[0]

    reseeded = difference(lambda x: SeededWords(b"0"))
    ours = difference(lambda x: 0)
    assert (reseeded == 8192).all(), "the control: equal noise cancels and shows the difference exactly"
    assert (ours != 8192).mean() > 0.9
