"""scikit-learn transformers that randomise categories."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from skldp._validation._categories import category_codes, check_categories
from skldp._validation._parameters import split_budget
from skldp.exceptions import PrivacyLeakWarning
from skldp.mechanisms._randomized_response import RandomizedResponse
from skldp.mechanisms._subset_selection import SubsetSelection
from skldp.mechanisms._unary_encoding import UnaryEncoding
from skldp.privacy._spending import counting, spend
from skldp.privacy._words import word_source
from skldp.transformers._perturbers import BasePerturber, private_table


class CategoryPerturber(BasePerturber):
    """Base class of the perturbers of categories: one mechanism for each column, which share the budget equally."""

    _mechanism: type

    def __init__(self, *, epsilon: float = 1.0, categories: Any = None, random_state: Any = None) -> None:
        self.epsilon = epsilon
        self.categories = categories
        self.random_state = random_state

    def _read(self, X, reset):
        return private_table(self, X, reset)

    def _build(self, X):
        if self.categories is None:
            warnings.warn(
                "categories were read off the private data, which publishes them. "
                "Pass categories= to keep the guarantee.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
        self.categories_ = check_categories(self.categories, X)
        epsilon = split_budget(self.epsilon, X.shape[1])
        return tuple(self._mechanism(epsilon=epsilon, n_categories=len(known)) for known in self.categories_)

    def _perturb(self, X):
        codes = np.column_stack([category_codes(X[:, j], known) for j, known in enumerate(self.categories_)])
        if counting():
            columns = [known[codes[:, j]] for j, known in enumerate(self.categories_)]
            spend(self.epsilon_, self.delta_, np.column_stack(columns))
        # One source for all columns: with separate sources, equal columns would get the same noise.
        source = word_source(self.random_state, type(self).__name__, repr(self.mechanism_), codes)
        reports = [mechanism.randomize(codes[:, j], source) for j, mechanism in enumerate(self.mechanism_)]
        return self._decode(reports)

    def _decode(self, reports):
        return np.concatenate(reports, axis=1)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> np.ndarray:
        """Return the names of the output columns: the input column's name and the category.

        Parameters
        ----------
        input_features : array-like of str or None
            Names of the input columns; those seen in ``fit`` by default.

        Returns
        -------
        ndarray of str objects
        """
        check_is_fitted(self)
        columns = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        names = [f"{column}_{value}" for column, known in zip(columns, self.categories_) for value in known]
        return np.asarray(names, dtype=object)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        return tags


class RandomizedResponsePerturber(OneToOneFeatureMixin, CategoryPerturber):
    """Report the true category with high probability, else a uniformly random other one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a row (a client), split equally over its columns; ``inf`` for no noise.
    categories : None, list, or list of lists, default=None
        The public categories: one list for all columns, or one for each. ``None`` reads them from the data and warns.
    random_state
        As in :class:`LaplacePerturber`.

    Attributes
    ----------
    categories_ : list of ndarray
        The categories of each column.
    mechanism_ : tuple of RandomizedResponse
        The randomiser of each column.
    epsilon_, delta_, n_features_in_, feature_names_in_
        As in :class:`LaplacePerturber`.

    Examples
    --------
    >>> from skldp import RandomizedResponsePerturber
    >>> perturber = RandomizedResponsePerturber(categories=["no", "yes"], random_state=0)
    >>> perturber.fit_transform([["yes"], ["no"], ["yes"]]).shape
    (3, 1)
    """

    _mechanism = RandomizedResponse

    def _decode(self, reports):
        columns = [known[column] for known, column in zip(self.categories_, reports)]
        kinds = {column.dtype.kind in "biuf" for column in columns}
        dtype = None if kinds == {True} or len(columns) == 1 else object
        return np.column_stack([column.astype(dtype or column.dtype) for column in columns])


class SubsetSelectionPerturber(CategoryPerturber):
    """Report a random subset of the categories, likely to contain the true one, as a 0/1 matrix.

    Parameters
    ----------
    epsilon, categories, random_state
        As in :class:`RandomizedResponsePerturber`.

    Attributes
    ----------
    mechanism_ : tuple of SubsetSelection
        The randomiser of each column.
    categories_, epsilon_, delta_, n_features_in_, feature_names_in_
        As in :class:`RandomizedResponsePerturber`.

    Examples
    --------
    >>> from skldp import SubsetSelectionPerturber
    >>> perturber = SubsetSelectionPerturber(categories=["a", "b", "c"], random_state=0)
    >>> perturber.fit_transform([["a"], ["c"]]).sum(axis=1)
    array([1, 1]...)
    >>> perturber.get_feature_names_out()
    array(['x0_a', 'x0_b', 'x0_c'], dtype=object)
    """

    _mechanism = SubsetSelection


class UnaryEncodingPerturber(CategoryPerturber):
    """Report one noisy bit for each category (optimal unary encoding), as a 0/1 matrix.

    Parameters
    ----------
    epsilon, categories, random_state
        As in :class:`RandomizedResponsePerturber`.

    Attributes
    ----------
    mechanism_ : tuple of UnaryEncoding
        The randomiser of each column.
    categories_, epsilon_, delta_, n_features_in_, feature_names_in_
        As in :class:`RandomizedResponsePerturber`.

    Examples
    --------
    >>> from skldp import UnaryEncodingPerturber
    >>> perturber = UnaryEncodingPerturber(categories=[[0, 1], ["a", "b", "c"]], random_state=0)
    >>> perturber.fit_transform([[0, "a"], [1, "c"]]).shape
    (2, 5)
    """

    _mechanism = UnaryEncoding
