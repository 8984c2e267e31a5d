"""Scaler with public bounds, which learns nothing from the data."""

import math
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from skldp._validation._door import as_floats
from skldp._validation._parameters import check_bounds, check_positive
from skldp.exceptions import InvalidParameterError
from skldp.transformers._perturbers import private_table, refuse_complex


class BoundedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Scale features with public bounds so that every row lies in a ball of radius ``data_norm``.

    Parameters
    ----------
    bounds : tuple, list or dict, default=(-1, 1)
        Public (lower, upper): numbers, or arrays with one entry for each feature; or one pair for each feature, in a
        list or in a dict by column names. Two pairs for two features that could be read either way are refused.
    data_norm : float, default=1.0
        Radius of the ball that every transformed row lies in.

    Attributes
    ----------
    centre_, scale_ : ndarray of shape (n_features,)
        The map is ``(x - centre_) * scale_``.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    See Also
    --------
    PublicColumns : For tables with categories, transforms and names.

    Notes
    -----
    :math:`x_j \mapsto \frac{R}{\sqrt d}\cdot\frac{x_j - (a_j + b_j)/2}{(b_j - a_j)/2}` after clipping to
    :math:`[a_j, b_j]`, so :math:`\|x\| \le R`. Unlike scikit-learn's scalers it learns nothing from the data, so it
    costs no privacy. NaN becomes the midpoint.

    Examples
    --------
    >>> from skldp import BoundedScaler
    >>> BoundedScaler(bounds=(0, 10)).fit_transform([[0.0], [5.0], [99.0]])
    array([[-1.],
           [ 0.],
           [ 1.]])
    """

    def __init__(self, *, bounds: Any = (-1, 1), data_norm: float = 1.0) -> None:
        self.bounds = bounds
        self.data_norm = data_norm

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Compute the scale from the bounds and the number of features; nothing is learned from X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only its shape and column names are used.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        self
        """
        refuse_complex(X)
        d = private_table(self, X, reset=True).shape[1]
        radius = check_positive(self.data_norm, "data_norm")
        lower, upper = _feature_bounds(self.bounds, getattr(self, "feature_names_in_", None), d)
        self.centre_ = lower + (upper - lower) / 2
        self.scale_ = 2 * radius / (math.sqrt(d) * (upper - lower))
        self._half_width = (upper - lower) / 2
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Clip X to the bounds and map it into the ball.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        X = as_floats(private_table(self, X, reset=False))
        with np.errstate(all="ignore"):
            deviation = np.where(np.isnan(X), 0.0, X - self.centre_)
            return np.clip(deviation, -self._half_width, self._half_width) * self.scale_

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Map points of the ball back to the scale of the features, without clipping.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Transformed records, or reports of them.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return np.asarray(X, dtype=np.float64) / self.scale_ + self.centre_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _feature_bounds(bounds, names, n_features):
    """Return the lower and upper ends for each feature, from any of the accepted forms."""
    if isinstance(bounds, Mapping):
        return _by_name(bounds, names)
    sides = _side_by_side(bounds, n_features)
    pairs = _pairs(bounds, n_features)
    if sides is not None and pairs is not None and not np.array_equal(sides, pairs):
        raise InvalidParameterError(
            f"bounds={bounds!r} can be read as (lower ends, upper ends) or as one pair for each of two features. Give "
            'a dict by column names, such as {"carat": (0, 3), "depth": (50, 70)}, or use PublicColumns.')
    found = sides if sides is not None else pairs
    if found is None:
        raise InvalidParameterError(
            f"bounds must be a pair (lower, upper) of numbers or of arrays of length {n_features}, a list of "
            f"{n_features} pairs, or a dict of pairs by column names, all with lower < upper; got {bounds!r}.")
    return found


def _by_name(bounds, names):
    """Return the ends of a dict by column names."""
    if names is None or set(bounds) != set(names):
        raise InvalidParameterError(
            f"bounds has the columns {list(bounds)}, and X has {'no names' if names is None else list(names)}. Give "
            "one pair (lower, upper) for each column of a table with names.")
    return np.array([check_bounds(bounds[name], f"bounds of {name!r}") for name in names]).T


def _side_by_side(bounds, n_features):
    """Return the ends if bounds is a pair of lower and upper ends, else None."""
    try:
        lower, upper = bounds
        sides = np.broadcast_arrays(np.asarray(lower), np.asarray(upper), np.empty(n_features))[:2]
    except (TypeError, ValueError):
        return None
    return _checked(zip(*(side.tolist() for side in sides)))


def _pairs(bounds, n_features):
    """Return the ends if bounds is a list of one pair for each feature, else None."""
    try:
        rows = [tuple(pair) for pair in bounds]
    except TypeError:
        return None
    return _checked(rows) if len(rows) == n_features and all(len(row) == 2 for row in rows) else None


def _checked(pairs):
    """Return pairs as an array of lower and upper ends, or None if one of them is no interval."""
    try:
        return np.asarray([check_bounds(pair) for pair in pairs], dtype=np.float64).T
    except InvalidParameterError:
        return None
