"""Names of the elements of a posterior's parameters, such as ``coef[carat]``."""

import numpy as np

from skldp.exceptions import InvalidParameterError

LONGEST = 64  # elements of a parameter that a summary shows by default
# Parameters whose axes are responses, classes or components, which have numbers.
_NUMBERED = {"intercept", "sigma", "residual_correlation", "explained_variance", "explained_variance_ratio"}


def axis_labels(draws, names, classes=()):
    """Return names along each axis of each parameter: those given where the lengths agree, else numbers.

    Parameters
    ----------
    draws : dict of str to ndarray of shape (chain, draw, ...)
    names : sequence of str or of tuples of str
        Names of features or categories.
    classes : sequence, default=()
        Labels of a classification, for the axes that are responses or classes.

    Returns
    -------
    dict of str to tuple of tuples of str

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._elements import axis_labels
    >>> axis_labels({"coef": np.zeros((4, 10, 2)), "density": np.zeros((4, 10, 3, 2))}, ["age", "height"])
    {'coef': (('age', 'height'),), 'density': (('0', '1', '2'), ('age', 'height'))}
    """
    names, classes = (tuple(map(_joined, part.tolist() if isinstance(part, np.ndarray) else part))
                      for part in (names, classes))
    return {name: tuple(_names(length, classes if place < _n_numbered(name, values) else names)
                        for place, length in enumerate(values.shape[2:])) for name, values in draws.items()}


def _names(length, names):
    return names if length == len(names) else _numbers(length)


def _joined(name):
    return ", ".join(map(str, name)) if isinstance(name, (tuple, list, np.ndarray)) else str(name)


def _n_numbered(name, draws):
    """Return the number of axes of a parameter that have numbers, or are classes, which come first."""
    n_axes = draws.ndim - 2
    return n_axes if name in _NUMBERED else n_axes - 1 if name == "coef" else 0


def element_labels(axes):
    """Return the label of each element by its position; the only element of a number has the label None.

    Examples
    --------
    >>> from skldp.sampling._elements import element_labels
    >>> element_labels([["a", "b"], ["0"]])
    {(0, 0): 'a, 0', (1, 0): 'b, 0'}
    """
    return {position: ", ".join(names[i] for names, i in zip(axes, position)) if position else None
            for position in np.ndindex(*map(len, axes))}


def element_name(name, label):
    """Return the name of an element, as in ``coef[age]``; of a number, the name of the parameter."""
    return name if label is None else f"{name}[{label}]"


def numbered_names(name, shape):
    """Return the names of a parameter's elements by their numbers, as in ``coef[0]``.

    Examples
    --------
    >>> from skldp.sampling._elements import numbered_names
    >>> numbered_names("sigma", ()), numbered_names("coef", (2,))
    (['sigma'], ['coef[0]', 'coef[1]'])
    """
    return [element_name(name, label) for label in element_labels([_numbers(length) for length in shape]).values()]


def is_symmetric(draws):
    """Whether all draws of a parameter are symmetric matrices, such as covariances."""
    return draws.ndim == 4 and draws.shape[2] == draws.shape[3] and np.array_equal(draws, draws.swapaxes(2, 3))


def distinct_positions(draws):
    """Return positions of a parameter's elements; for a symmetric matrix those on and above the diagonal."""
    symmetric = is_symmetric(draws)
    return [position for position in np.ndindex(draws.shape[2:]) if not symmetric or position[0] <= position[1]]


def is_long(draws):
    """Whether a summary leaves a parameter out unless asked: symmetric matrices, and more than 64 elements."""
    return is_symmetric(draws) or np.prod(draws.shape[2:]) > LONGEST


def short_names(draws):
    """Return the names of the parameters that a summary shows by default; all of them if none is short."""
    return [name for name, values in draws.items() if not is_long(values)] or list(draws)


def labels_of(posterior, name):
    """Return the label of each element of a parameter by its position."""
    axes = posterior.labels.get(name) or [_numbers(length) for length in posterior.draws[name].shape[2:]]
    return element_labels(axes)


def find(posterior, name):
    """Return the parameter and the positions that a name stands for.

    A parameter means all its elements. An element is named by its label, as in ``coef[carat]``, or by its number, as in
    ``coef[0]``.
    """
    if not isinstance(name, str):
        raise InvalidParameterError(f'A name is a string, such as "{next(iter(posterior.draws))}"; got {name!r}.')
    if name in posterior.draws:
        return name, distinct_positions(posterior.draws[name])
    parameter = name.partition("[")[0]
    if parameter in posterior.draws:
        by_name = _positions_by_name(posterior, parameter)
        if name in by_name:
            return parameter, [by_name[name]]
    raise InvalidParameterError(f"The posterior has no parameter or element {name!r}. Choose from "
                                f"{', '.join(map(repr, posterior.draws))}{_example(posterior)}.")


def _positions_by_name(posterior, parameter):
    """Return the position of each element by its number and by its label; labels win."""
    labels = labels_of(posterior, parameter)
    by_number = dict(zip(numbered_names(parameter, posterior.draws[parameter].shape[2:]), labels))
    return {**by_number, **{element_name(parameter, label): position for position, label in labels.items()}}


def _example(posterior):
    """Return the part of a sentence that names an element of the first vector, or nothing if there is no vector."""
    for name, values in posterior.draws.items():
        if values.ndim > 2:
            first = next(iter(labels_of(posterior, name).values()))
            return f", or an element such as {element_name(name, first)!r}"
    return ""


def _numbers(length):
    return tuple(map(str, range(length)))
