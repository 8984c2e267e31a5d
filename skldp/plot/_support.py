"""Helpers shared by the displays: matplotlib import, fitted posteriors, element names, tables of results."""

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from skldp.exceptions import InvalidParameterError

_BY_RESPONSE = {"intercept", "sigma", "residual_correlation"}  # parameters whose axes are responses or classes


def pyplot():
    """Return matplotlib's pyplot, or raise an error that explains how to install it."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError('Displays need matplotlib; install it with: pip install "skldp[plot]"') from error
    return plt


def axes_or_new(ax, figsize=None):
    """Return the given axes, or new ones, and their figure."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(figsize=figsize, layout="constrained")
    return ax, ax.figure


def legend_above(ax, last=()):
    """Put a legend above the axes, where it hides nothing; the artists in ``last`` come last in it."""
    by_label: dict = {}
    for handle, label in zip(*ax.get_legend_handles_labels()):
        by_label.setdefault(label, handle)
    for artist in last:
        if artist.get_label() in by_label:
            by_label[artist.get_label()] = by_label.pop(artist.get_label())
    if by_label:
        ax.legend(by_label.values(), by_label, loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False,
                  ncols=_n_columns(ax, by_label), fontsize="small", borderaxespad=0.2, columnspacing=1.0,
                  handletextpad=0.5, handlelength=1.6)


def _n_columns(ax, labels):
    """Number of legend columns that fit, if a small letter is 1/16 inch wide and a handle takes five letters."""
    room = 16 * ax.bbox.width / ax.figure.dpi
    widths = [len(label) + 5 for label in labels]
    return len(widths) if sum(widths) <= room else max(1, int(room / max(widths)))


def fitted(estimator):
    """Return the fitted estimator with a posterior; for a pipeline, its last step."""
    if isinstance(estimator, Pipeline):
        estimator = estimator[-1]
    if not hasattr(estimator, "sample_posterior"):
        raise TypeError(
            f"{type(estimator).__name__} has no posterior. Pass a Bayesian estimator of skldp, such as LDPGaussian."
        )
    check_is_fitted(estimator, "posterior_")
    return estimator


def parameter(estimator, name):
    """Return the draws of a parameter, of shape (chain, draw, ...)."""
    draws = estimator.posterior_.draws
    if not isinstance(name, str) or name not in draws:
        raise InvalidParameterError(
            f"The posterior of {type(estimator).__name__} has no parameter {name!r}. Choose from {quoted(draws)}."
        )
    return draws[name]


def element_labels(estimator, name, shape):
    """Names of the elements of a parameter, from the categories or feature names if the estimator has them."""
    if not shape:
        return [name]
    # Axes of responses come first, and have numbers.
    n_plain = len(shape) if name in _BY_RESPONSE else len(shape) - 1 if name == "coef" else 0
    axes = [_axis_names(estimator, size) if place >= n_plain else list(map(str, range(size)))
            for place, size in enumerate(shape)]
    return [", ".join(names[i] for names, i in zip(axes, position)) for position in np.ndindex(shape)]


def full_label(name, label):
    """Label of an element with the name of its parameter, as in ``coef[age]``."""
    return name if label == name else f"{name}[{label}]"


def distinct_positions(draws):
    """Positions of a parameter's elements; for a symmetric matrix those on and above the diagonal."""
    shape = draws.shape[2:]
    symmetric = len(shape) == 2 and np.array_equal(draws, draws.swapaxes(2, 3))
    return [position for position in np.ndindex(shape) if not symmetric or position[0] <= position[1]]


def columns(results, required, optional=()):
    """Return columns of a table of results as a dict of arrays; numbers may be strings, as read from a file."""
    if isinstance(results, (list, tuple)):
        keys = list(results[0]) if results else []
        results = {key: [row[key] for row in results] for key in keys}
    missing = [name for name in required if name not in results]
    if missing:
        raise InvalidParameterError(
            f"The results have no column {quoted(missing)}. The columns are {quoted(results) or 'none'}."
        )
    return {name: np.asarray(results[name]) for name in (*required, *optional) if name in results}


def numbers(table, name):
    """Return a column of a table as floats."""
    try:
        return table[name].astype(float)
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"The column {name!r} must hold numbers.") from error


def quoted(names):
    """Return quoted names, separated by commas."""
    return ", ".join(repr(str(name)) for name in names)


def _axis_names(estimator, length):
    if hasattr(estimator, "categories_"):
        return [", ".join(map(str, np.atleast_1d(category).tolist())) for category in estimator.categories_]
    names = getattr(estimator, "feature_names_in_", ())
    return [str(name) for name in names] if len(names) == length else [str(i) for i in range(length)]
