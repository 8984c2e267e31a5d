"""The public choice between sphere and axis, and the weight of the constant."""

import numpy as np
import pytest

from skldp.mechanisms import AxisMoments, SphereMoments
from skldp.protocols import LabelMomentProtocol, MomentProtocol, axis_constant, moment_mechanism, moment_risk


@pytest.mark.parametrize("cls", [SphereMoments, AxisMoments])
@pytest.mark.parametrize("labelled", [False, True])
@pytest.mark.parametrize("kappa", [0.0, 0.5])
def test_the_risk_is_the_variance_of_simulated_reports(cls, labelled, kappa):
    """Records are corners of a cube, which have the second moments that the risk is for; none is clipped."""
    d, n = 3, 150_000
    mechanism = cls(epsilon=3.0, n_features=d, intercept_weight=kappa, labelled=labelled)
    square = 1.0 if labelled else 0.25
    line = np.array([np.sqrt(0.25 * square * d / 0.5), 0.0, 0.0])
    rng = np.random.default_rng(0)
    x = np.sqrt(0.5 / d) * rng.choice([-1.0, 1.0], size=(n, d))
    y = np.where(rng.random(n) < 0.75, 1.0, -1.0) * np.sign(x[:, 0]) * np.sqrt(square)
    assert np.mean(x[:, 0] * y) == pytest.approx(0.5 / d * line[0], rel=0.02)
    v = np.column_stack([x, mechanism.y_weight * y])
    v = np.column_stack([np.full(n, kappa), v]) if kappa else v
    records = np.column_stack([x, y])
    found = mechanism.matrix(mechanism.decode(mechanism.randomize(records, rng=1)))
    error = found - v[:, :, None] * v[:, None, :]
    right = np.append(np.append(np.zeros(int(kappa > 0)), -line), 1 / mechanism.y_weight)
    slopes = 2 * d * (error @ right)[:, -2]
    risk = 0.5 * (slopes**2).mean()
    if kappa:
        risk += ((error @ right)[:, 0] ** 2).mean() / kappa**2
    # The risk is for normal records; their fourth moments matter little.
    assert moment_risk(mechanism) == pytest.approx(risk, rel=0.05)


def test_choices():
    assert [moment_mechanism(epsilon=epsilon, n_features=5) for epsilon in (0.1, 1.0, 2.0, 8.0, np.inf)] == [
        "sphere", "sphere", "axis", "axis", "sphere"]
    assert [moment_mechanism(epsilon=1.0, n_features=d) for d in (20, 40, 2000)] == ["sphere", "axis", "axis"]
    assert moment_mechanism(epsilon=0.1, n_features=100) == "sphere", "a short report is not worth 1.6 times the people"
    assert moment_mechanism(epsilon=4.0, n_features=5, n_responses=0) == "axis"


def test_the_weight_of_the_constant_suits_the_axis():
    for d in (1, 2, 5):
        risk = {weight: moment_risk(AxisMoments(epsilon=4.0, n_features=d, y_weight=1.0, intercept_weight=weight))
                for weight in (axis_constant(d), 0.5 * axis_constant(d), 2 * axis_constant(d))}
        assert min(risk, key=risk.get) == axis_constant(d)
    assert axis_constant(1) == np.sqrt(0.5) and axis_constant(1000) == 0.3


def test_the_automatic_weight_follows_mechanism_and_features():
    protocol = MomentProtocol(mechanism="axis", n_features=4, intercept_weight="auto")
    assert protocol.intercept_weight == 0.4
    assert protocol.with_width(12).n_features == 9 and protocol.with_width(12).intercept_weight == 0.3
    assert MomentProtocol(intercept_weight="auto").intercept_weight == np.sqrt(0.5)
    assert LabelMomentProtocol(intercept_weight="auto").intercept_weight == 0.3
    assert MomentProtocol(mechanism="axis", intercept_weight=0.2).with_width(12).intercept_weight == 0.2
