"""The distance of encoded records is at most the declared one, and extreme records attain it, on hostile inputs."""

import numpy as np
import pytest

from skldp.mechanisms._encoding import BALL_RADIUS, encode_ball, encode_category, encode_interval

HOSTILE = [np.nan, np.inf, -np.inf, 1e300, -1e300, 1.7e308, 5e-324, -5e-324, -0.0, 0.0, 1.0, -1.0, 0.3, 1e-200]


@pytest.mark.parametrize("bounds", [(-5, 5), (0, 2e-290), (-1e307, 1e307), (1e15, 1e15 + 2), (0.1, 0.3)])
@pytest.mark.parametrize("n_levels", [1, 20, 1024, 2**16])
def test_interval(bounds, n_levels):
    codes = encode_interval([*HOSTILE, *bounds], bounds, n_levels)
    assert codes.min() == 0 and codes.max() == n_levels
    assert encode_interval([np.inf, -np.inf, np.nan], bounds, n_levels)[:2].tolist() == [n_levels, 0]
    assert encode_interval(bounds, bounds, n_levels).tolist() == [0, n_levels]


def test_interval_rounds_to_the_nearest_level():
    x = np.linspace(-1, 1, 1001)
    np.testing.assert_allclose(encode_interval(x, (-1, 1), 1024) / 512 - 1, x, atol=1 / 1024 + 1e-12)


@pytest.mark.parametrize("d", [1, 2, 3, 10, 200])
@pytest.mark.parametrize("norm", [1.0, 1e-300, 1e300, 3.7])
def test_ball_norm_holds_in_integers(d, norm):
    rng = np.random.default_rng(0)
    x = np.vstack([rng.choice(HOSTILE, size=(500, d)), rng.normal(size=(500, d)) * norm * 3, np.eye(d) * norm])
    codes = encode_ball(x, norm)
    squares = [sum(int(entry) ** 2 for entry in row) for row in codes]
    assert max(squares) <= BALL_RADIUS**2
    assert max(squares) >= 0.999 * BALL_RADIUS**2
    axis = encode_ball(np.array([[norm] + [0.0] * (d - 1), [-norm] + [0.0] * (d - 1)]), norm)
    assert abs(axis[0] - axis[1]).max() == 2 * BALL_RADIUS, "opposite records attain the declared distance"


def test_rows_exactly_on_the_boundary_stay_inside():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20_000, 5))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    codes = encode_ball(x, 1.0)
    assert (codes**2).sum(axis=1).max() <= BALL_RADIUS**2
    np.testing.assert_allclose(codes / BALL_RADIUS, x, atol=1.5 / BALL_RADIUS)


def test_ball_keeps_directions_and_centres_nan():
    assert encode_ball([[np.nan, np.nan]], 1.0).tolist() == [[0, 0]]
    assert encode_ball([[np.nan, 2.0]], 1.0).tolist() == [[0, BALL_RADIUS]]
    assert encode_ball([[np.inf, 0.0]], 1.0).tolist() == [[BALL_RADIUS, 0]]


def test_category():
    values = [0, 4, 5, -1, 2.0, 2.5, np.nan, np.inf]
    assert encode_category(values, 5).tolist() == [0, 4, -1, -1, 2, -1, -1, -1]
    assert encode_category(np.array([1, 2**62]), 3).tolist() == [1, -1]
    assert encode_category(np.array([True, False]), 3).tolist() == [1, 0]
