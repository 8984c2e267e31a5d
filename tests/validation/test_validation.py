"""Wrong public parameters raise at once, with a clear error."""

import numpy as np
import pytest

from skldp._validation._parameters import smallest_integer_dtype
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms import Gaussian, Laplace, RandomizedResponse, Sphere, SquareWave, SubsetSelection, UnaryEncoding

ALL = [Laplace, SquareWave, Gaussian, Sphere, RandomizedResponse, UnaryEncoding, SubsetSelection]


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("epsilon", [0, -1.0, np.nan, True, "1", None, 20.5, 1000.0, 1e-7, -np.inf, 1j, [1.0]])
def test_bad_epsilon(cls, epsilon):
    with pytest.raises(InvalidParameterError, match="epsilon"):
        cls(epsilon=epsilon)


@pytest.mark.parametrize("cls", ALL)
def test_the_error_is_both_a_value_and_a_type_error(cls):
    for error in (ValueError, TypeError):
        with pytest.raises(error):
            cls(epsilon="one")


@pytest.mark.parametrize("cls", ALL)
@pytest.mark.parametrize("epsilon", [1, np.float32(0.5), np.int64(2), 20, 1e-3])
def test_good_epsilon(cls, epsilon):
    assert cls(epsilon=epsilon).epsilon == float(epsilon)


@pytest.mark.parametrize("delta", [0, 1, -1e-5, np.nan, True, "small", None])
def test_bad_delta(delta):
    with pytest.raises(InvalidParameterError, match="delta must"):
        Gaussian(delta=delta)


@pytest.mark.parametrize("cls", [Laplace, SquareWave])
@pytest.mark.parametrize("bounds", [
    None, 5, (1,), (1, 2, 3), (2, 1), (1, 1), (0, np.inf), (np.nan, 1), ("a", "b"), (True, 2), (-1.7e308, 1.7e308),
    (0, 1e-304),
])
def test_bad_bounds(cls, bounds):
    with pytest.raises(InvalidParameterError, match="bounds"):
        cls(bounds=bounds)


@pytest.mark.parametrize("cls", [Gaussian, Sphere])
@pytest.mark.parametrize("norm", [0, -1, np.inf, np.nan, None, "1", True])
def test_bad_norm(cls, norm):
    with pytest.raises(InvalidParameterError, match="norm must"):
        cls(norm=norm)


@pytest.mark.parametrize("cls", [RandomizedResponse, UnaryEncoding, SubsetSelection])
@pytest.mark.parametrize("n_categories", [0, -1, 2.0, True, None, "3"])
def test_bad_n_categories(cls, n_categories):
    with pytest.raises(InvalidParameterError, match="n_categories must be"):
        cls(n_categories=n_categories)


@pytest.mark.parametrize("cls", [Gaussian, Sphere])
@pytest.mark.parametrize("n_features", [0, -1, 1.5, None])
def test_bad_n_features(cls, n_features):
    with pytest.raises(InvalidParameterError, match="n_features must be"):
        cls(n_features=n_features)


@pytest.mark.parametrize("window", [-0.1, 1.1, "wide", None, np.nan])
def test_bad_window(window):
    with pytest.raises(InvalidParameterError, match="window"):
        SquareWave(window=window)


@pytest.mark.parametrize("cls, options", [(Laplace, {}), (Gaussian, {}), (Sphere, {"n_features": 20_000})])
def test_an_epsilon_below_the_rounding_errors_is_refused(cls, options):
    with pytest.raises(InvalidParameterError, match="too small"):
        cls(epsilon=1e-5, **options)


@pytest.mark.parametrize("cls", [RandomizedResponse, UnaryEncoding, SubsetSelection])
def test_numpy_integers_are_accepted(cls):
    mechanism = cls(n_categories=np.int64(5))
    assert mechanism == cls(n_categories=5)
    assert len(mechanism.randomize([1, 2])) == 2


def test_too_many_categories_for_the_resolution_of_words_are_refused():
    with pytest.raises(InvalidParameterError, match="too small for this many"):
        SubsetSelection(epsilon=1e-6, n_categories=2**24).p


def test_a_delta_without_a_meaningful_guarantee_is_refused():
    with pytest.raises(InvalidParameterError, match="delta"):
        Gaussian(epsilon=20, delta=0.99)


@pytest.mark.parametrize("lower, upper, name", [
    (0, 255, "uint8"), (-1, 127, "int8"), (-1, 128, "int16"), (0, 65535, "uint16"), (-2**31, 2**31 - 1, "int32"),
    (-1, 2**32, "int64"),
])
def test_smallest_integer_dtype(lower, upper, name):
    assert smallest_integer_dtype(lower, upper) == np.dtype(name)
