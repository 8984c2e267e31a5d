"""Checks of public parameters: budgets, bounds, norms and sizes. Each error says what to do.

Private values are never checked here; they are converted by :mod:`skldp._validation._door`.
"""

import math
import warnings
from fractions import Fraction
from numbers import Integral, Real

import numpy as np

from skldp.exceptions import InvalidParameterError

MIN_EPSILON = 1e-6
MAX_EPSILON = 20.0
_MIN_WIDTH = 1e-290  # computations with a smaller width may overflow


def check_real(value, name, hint="Give a number."):
    """Return ``value`` as a float, or raise if it is not a real number."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise InvalidParameterError(f"{name} must be a real number, got {value!r}. {hint}")
    try:
        value = float(value)
    except OverflowError:
        raise InvalidParameterError(f"{name} is beyond the largest float. {hint}") from None
    if math.isnan(value):
        raise InvalidParameterError(f"{name} must not be NaN. {hint}")
    return value


def is_auto(value):
    """Whether a parameter is the word "auto", which asks for a default."""
    return isinstance(value, str) and value == "auto"


def check_epsilon(epsilon, name="epsilon"):
    """Return a privacy budget in (0, 20], or infinity for a simulation without noise."""
    epsilon = check_real(epsilon, name, "Give a budget in (0, 20], or np.inf for no privacy.")
    if epsilon <= 0:
        raise InvalidParameterError(f"{name} must be positive, got {epsilon!r}. Give a budget in (0, 20].")
    if epsilon < MIN_EPSILON:
        raise InvalidParameterError(
            f"{name}={epsilon!r} is below {MIN_EPSILON:g}, too small to learn from any realistic number of clients. "
            f"Give a larger budget."
        )
    if MAX_EPSILON < epsilon < math.inf:
        raise InvalidParameterError(
            f"{name}={epsilon!r} is above {MAX_EPSILON:g}, too large to protect anybody. "
            f"Give a budget in (0, 20], or np.inf to simulate without noise."
        )
    return epsilon


def split_budget(epsilon, n_parts):
    """Return the largest float that can be spent ``n_parts`` times within ``epsilon``.

    Examples
    --------
    >>> split_budget(1.0, 3) * 3 <= 1.0
    True
    """
    epsilon = check_epsilon(epsilon)
    part = epsilon / n_parts
    if math.isfinite(epsilon) and Fraction(part) * n_parts > Fraction(epsilon):
        part = math.nextafter(part, 0.0)
    return part


def check_delta(delta):
    """Return a failure probability in (0, 1)."""
    delta = check_real(delta, "delta", "Give a number in (0, 1), well below one over the number of clients.")
    if not 0 < delta < 1:
        raise InvalidParameterError(
            f"delta must lie in (0, 1), got {delta!r}. Choose it well below one over the number of clients."
        )
    return delta


def warn_large_delta(delta, n_clients):
    """Warn if delta is so large that the guarantee allows a record to be published."""
    if delta * n_clients >= 1:
        warnings.warn(
            f"delta={delta!r} is at least one over the number of clients ({n_clients}): the guarantee would allow a "
            f"client's record to be published. Choose delta well below {1 / n_clients:.1g}.",
            UserWarning,
            stacklevel=4,
        )


def check_bounds(bounds, name="bounds"):
    """Return public bounds as a pair of floats ``(lower, upper)``, ``lower < upper``."""
    if bounds is None:
        raise InvalidParameterError(
            f"{name} must be given: it is public and cannot be read off the private data. Give a pair (lower, upper)."
        )
    try:
        lower, upper = bounds
    except (TypeError, ValueError):
        raise InvalidParameterError(f"{name} must be a pair (lower, upper), got {bounds!r}.") from None
    lower = check_real(lower, f"the lower end of {name}")
    upper = check_real(upper, f"the upper end of {name}")
    if not _MIN_WIDTH < upper - lower < math.inf:
        raise InvalidParameterError(
            f"{name} must be finite with lower < upper and a finite width, got ({lower!r}, {upper!r})."
        )
    return lower + 0.0, upper + 0.0  # -0.0 becomes 0.0


def check_positive(value, name):
    """Return a finite positive float: a norm, an upper end, a scale."""
    if value is None:
        raise InvalidParameterError(
            f"{name} must be given: it is public and cannot be read off the private data. Give a positive number."
        )
    value = check_real(value, name, "Give a positive number.")
    if not 0 < value < math.inf:
        raise InvalidParameterError(f"{name} must be positive and finite, got {value!r}.")
    return value


def check_integer(value, name, minimum, maximum=None):
    """Return an int in ``[minimum, maximum]``."""
    span = f"at least {minimum}" if maximum is None else f"between {minimum} and {maximum}"
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral):
        raise InvalidParameterError(f"{name} must be an integer {span}, got {value!r}.")
    if value < minimum or (maximum is not None and value > maximum):
        raise InvalidParameterError(f"{name} must be {span}, got {value!r}.")
    return int(value)


def check_length(values, name, maximum):
    """Refuse a list that is too long, before it is converted; other types are checked elsewhere."""
    if hasattr(values, "__len__") and len(values) > maximum:
        raise InvalidParameterError(f"{name} must have at most {maximum} entries, got {len(values)}. Give fewer.")


def check_fraction(value, name):
    """Return a float strictly between 0 and 1."""
    value = check_real(value, name, "Give a number strictly between 0 and 1.")
    if not 0 < value < 1:
        raise InvalidParameterError(f"{name} must lie strictly between 0 and 1, got {value!r}.")
    return value


def check_choice(value, name, choices):
    """Return the entry of a table that a word names."""
    if not isinstance(value, str) or value not in choices:
        words = ", ".join(f'"{word}"' for word in choices)
        raise InvalidParameterError(f"{name} must be one of {words}, got {value!r}.")
    return choices[value]


def plain_number(value):
    """Return an array of several numbers as it is, and a single number as a float."""
    return value if np.ndim(value) else float(value)


def smallest_integer_dtype(lower, upper):
    """Return the narrowest NumPy integer dtype that holds ``[lower, upper]``.

    Examples
    --------
    >>> smallest_integer_dtype(-90, 1114)
    dtype('int16')
    >>> smallest_integer_dtype(0, 200)
    dtype('uint8')
    """
    for name in ("uint8", "int8", "uint16", "int16", "uint32", "int32"):
        if np.iinfo(name).min <= lower and upper <= np.iinfo(name).max:
            return np.dtype(name)
    return np.dtype("int64")


def sampling_seed(random_state):
    """Return an integer seed for sampling, or None for fresh entropy; a generator supplies one draw."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return None if random_state is None else int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise InvalidParameterError(
        f"random_state must be None, an int, or a NumPy Generator or RandomState, got {random_state!r}."
    )


def refuse_unknown(estimator, options):
    """Raise an error for keyword arguments that ``fit`` does not have; scikit-learn's weights get an explanation.

    Examples
    --------
    >>> from skldp import LDPGaussian
    >>> LDPGaussian().fit([[0.5]], sample_weight=[2.0])
    Traceback (most recent call last):
        ...
    TypeError: LDPGaussian.fit takes no sample_weight: each client sends one report, and the aggregator cannot know the
    weight of the record behind it. Leave sample_weight out, and weight predictions or results of groups instead.
    """
    name = type(estimator).__name__
    for option in options:
        if option in ("sample_weight", "class_weight"):
            raise TypeError(f"{name}.fit takes no {option}: each client sends one report, and the aggregator cannot "
                            f"know the weight of the record behind it. Leave {option} out, and weight predictions or "
                            "results of groups instead.")
        raise TypeError(f"{name}.fit() got an unexpected keyword argument {option!r}.")
