"""scikit-learn transformers over the mechanisms: private reports inside any Pipeline."""

import math
import warnings

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skldp._categories import category_codes, check_categories
from skldp._validation import check_bounds, check_epsilon, check_positive, split_budget, warn_large_delta
from skldp.exceptions import InvalidParameterError, PrivacyLeakWarning
from skldp.mechanisms._encoding import as_floats
from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._laplace import Laplace
from skldp.mechanisms._randomized_response import RandomizedResponse
from skldp.mechanisms._sphere import Sphere
from skldp.mechanisms._square_wave import SquareWave
from skldp.mechanisms._subset_selection import SubsetSelection
from skldp.mechanisms._unary_encoding import UnaryEncoding
from skldp.privacy._words import word_source


class BasePerturber(TransformerMixin, BaseEstimator):
    """What all perturbers share: fitting learns nothing but the number of columns.

    Asking the same person twice spends epsilon twice: transform each record once.
    """

    def fit(self, X, y=None):
        """Check the parameters against the number of columns.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Only its shape and column names are used, unless the categories are left to be read off it.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        self
        """
        X = self._read(X, reset=True)
        self.mechanism_ = self._build(X)
        self.epsilon_ = check_epsilon(self.epsilon)
        self.delta_ = float(getattr(self, "delta", 0.0))
        return self

    def transform(self, X):
        """Randomise every row of X once.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records. Values outside the public domain are clipped; no value raises or warns.

        Returns
        -------
        ndarray
            Reports on the natural scale, one row for each client.
        """
        check_is_fitted(self)
        return self._perturb(self._read(X, reset=False))

    def _read(self, X, reset):
        options = {"dtype": np.float64, "ensure_all_finite": False, "reset": reset}
        with np.errstate(all="ignore"):
            try:
                return validate_data(self, X, **options)
            except (TypeError, ValueError, OverflowError):
                if reset or getattr(X, "dtype", np.dtype(object)) != object:
                    raise
                # A value that is no number must not show on the client's path; a wrong shape still raises here.
                return validate_data(self, _with_floats(X), **options)

    def _build(self, X):
        raise NotImplementedError

    def _perturb(self, X):
        return self.mechanism_.decode(self.mechanism_.randomize(X, self.random_state))

    def __repr__(self, N_CHAR_MAX=700):
        text = super().__repr__(N_CHAR_MAX)
        return f"{text}  # no privacy" if _is_infinite(self.epsilon) else text

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


class LaplacePerturber(OneToOneFeatureMixin, BasePerturber):
    """Add Laplace noise to values clipped to public bounds.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a row (a client), split equally over its columns; ``inf`` for no noise.
    bounds : tuple of float, default=(-1, 1)
        Public interval of every column.
    random_state : None, int, Generator or RandomState, default=None
        ``None``, the only private choice, draws fresh noise at every call. An int is for simulations: the same data
        and parameters give the same reports, other data get independent noise.

    Attributes
    ----------
    mechanism_ : Laplace
        The randomiser of one value.
    epsilon_, delta_ : float
        What each client pays.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LaplacePerturber
    >>> ages = np.linspace(20, 60, 10_000).reshape(-1, 1)
    >>> reports = LaplacePerturber(epsilon=1.0, bounds=(0, 100), random_state=0).fit_transform(ages)
    >>> bool(abs(reports.mean() - 40) < 5)
    True
    """

    def __init__(self, *, epsilon=1.0, bounds=(-1, 1), random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.random_state = random_state

    def _build(self, X):
        return Laplace(epsilon=split_budget(self.epsilon, X.shape[1]), bounds=self.bounds)


class SquareWavePerturber(OneToOneFeatureMixin, BasePerturber):
    """Report a point near each value, clipped to public bounds, by the square wave mechanism.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a row (a client), split equally over its columns; ``inf`` for no noise.
    bounds : tuple of float, default=(-1, 1)
        Public interval of every column.
    random_state : None, int, Generator or RandomState, default=None
        ``None``, the only private choice, draws fresh noise at every call. An int is for simulations: the same data
        and parameters give the same reports, other data get independent noise.

    Attributes
    ----------
    mechanism_ : SquareWave
        The randomiser of one value; ``mechanism_.unbiased`` corrects the raw reports' shrinkage.
    epsilon_, delta_ : float
        What each client pays.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The reports are values on the grid, up to the half-window outside the bounds. Their distribution is not the records'
    plus noise of mean zero: use an estimator that knows the mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import SquareWavePerturber
    >>> SquareWavePerturber(random_state=0).fit_transform(np.zeros((5, 2))).shape
    (5, 2)
    """

    def __init__(self, *, epsilon=1.0, bounds=(-1, 1), random_state=None):
        self.epsilon = epsilon
        self.bounds = bounds
        self.random_state = random_state

    def _build(self, X):
        return SquareWave(epsilon=split_budget(self.epsilon, X.shape[1]), bounds=self.bounds)


class GaussianPerturber(OneToOneFeatureMixin, BasePerturber):
    """Add Gaussian noise to rows clipped to a public norm.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a row (a client); ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability, well below one over the number of clients.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row; longer rows are shortened to it.
    random_state : None, int, Generator or RandomState, default=None
        ``None``, the only private choice, draws fresh noise at every call. An int is for simulations: the same data
        and parameters give the same reports, other data get independent noise.

    Attributes
    ----------
    mechanism_ : Gaussian
        The randomiser of one row.
    epsilon_, delta_ : float
        What each client pays.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import GaussianPerturber
    >>> GaussianPerturber(epsilon=2.0, random_state=0).fit_transform(np.zeros((5, 3))).shape
    (5, 3)
    """

    def __init__(self, *, epsilon=1.0, delta=1e-5, data_norm=1.0, random_state=None):
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.random_state = random_state

    def _build(self, X):
        norm = check_positive(self.data_norm, "data_norm")
        mechanism = Gaussian(epsilon=self.epsilon, delta=self.delta, norm=norm, n_features=X.shape[1])
        warn_large_delta(mechanism.delta, len(X))
        return mechanism


class SpherePerturber(OneToOneFeatureMixin, BasePerturber):
    """Report rows clipped to a public norm by the sphere mechanism: unbiased and pure epsilon.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a row (a client); ``inf`` for no noise.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of a row; longer rows are shortened to it.
    random_state : None, int, Generator or RandomState, default=None
        ``None``, the only private choice, draws fresh noise at every call. An int is for simulations: the same data
        and parameters give the same reports, other data get independent noise.

    Attributes
    ----------
    mechanism_ : Sphere
        The randomiser of one row.
    epsilon_, delta_ : float
        What each client pays.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import SpherePerturber
    >>> X = np.tile([0.6, 0.0, -0.6], (20_000, 1))
    >>> reports = SpherePerturber(epsilon=2.0, random_state=0).fit_transform(X)
    >>> bool(np.abs(reports.mean(axis=0) - X[0]).max() < 0.05)
    True
    """

    def __init__(self, *, epsilon=1.0, data_norm=1.0, random_state=None):
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.random_state = random_state

    def _build(self, X):
        norm = check_positive(self.data_norm, "data_norm")
        return Sphere(epsilon=self.epsilon, norm=norm, n_features=X.shape[1])


class CategoryPerturber(BasePerturber):
    """What the perturbers of categories share: one mechanism for each column, the budget split between them."""

    _mechanism: type

    def _read(self, X, reset):
        if isinstance(X, (list, tuple)):
            # NumPy would turn every entry of a list into a string because of one of them.
            X = np.asarray(X, dtype=object)
        return validate_data(self, X, dtype=None, ensure_all_finite=False, reset=reset)

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
        # One source for all columns: a source of its own for each would repeat the noise of equal columns.
        source = word_source(self.random_state, type(self).__name__, repr(self.mechanism_), codes)
        reports = [mechanism.randomize(codes[:, j], source) for j, mechanism in enumerate(self.mechanism_)]
        return self._decode(reports)

    def _decode(self, reports):
        return np.concatenate(reports, axis=1)

    def get_feature_names_out(self, input_features=None):
        """Names of the output columns: the input column's name and the category.

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
        tags.input_tags.string = True
        return tags


class RandomizedResponsePerturber(OneToOneFeatureMixin, CategoryPerturber):
    """Report each category truly with high probability, else a uniformly random other one.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a row (a client), split equally over its columns; ``inf`` for no noise.
    categories : None, list, or list of lists, default=None
        The public categories: one list for all columns, or one for each. ``None`` reads them off the data and warns.
    random_state : None, int, Generator or RandomState, default=None
        ``None``, the only private choice, draws fresh noise at every call. An int is for simulations: the same data
        and parameters give the same reports, other data get independent noise.

    Attributes
    ----------
    categories_ : list of ndarray
        The categories of each column.
    mechanism_ : tuple of RandomizedResponse
        The randomiser of each column.
    epsilon_, delta_ : float
        What each client pays.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from skldp import RandomizedResponsePerturber
    >>> perturber = RandomizedResponsePerturber(categories=["no", "yes"], random_state=0)
    >>> perturber.fit_transform([["yes"], ["no"], ["yes"]]).shape
    (3, 1)
    """

    _mechanism = RandomizedResponse

    def __init__(self, *, epsilon=1.0, categories=None, random_state=None):
        self.epsilon = epsilon
        self.categories = categories
        self.random_state = random_state

    def _decode(self, reports):
        columns = [known[column] for known, column in zip(self.categories_, reports)]
        kinds = {column.dtype.kind in "biuf" for column in columns}
        dtype = None if kinds == {True} or len(columns) == 1 else object
        return np.column_stack([column.astype(dtype or column.dtype) for column in columns])


class SubsetSelectionPerturber(CategoryPerturber):
    """Report a random subset of the categories that leans toward the true one, as a 0/1 matrix.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a row (a client), split equally over its columns; ``inf`` for no noise.
    categories : None, list, or list of lists, default=None
        The public categories: one list for all columns, or one for each. ``None`` reads them off the data and warns.
    random_state : None, int, Generator or RandomState, default=None
        ``None``, the only private choice, draws fresh noise at every call. An int is for simulations: the same data
        and parameters give the same reports, other data get independent noise.

    Attributes
    ----------
    categories_ : list of ndarray
        The categories of each column.
    mechanism_ : tuple of SubsetSelection
        The randomiser of each column.
    epsilon_, delta_ : float
        What each client pays.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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

    def __init__(self, *, epsilon=1.0, categories=None, random_state=None):
        self.epsilon = epsilon
        self.categories = categories
        self.random_state = random_state


class UnaryEncodingPerturber(CategoryPerturber):
    """Report one noisy bit for each category (optimal unary encoding), as a 0/1 matrix.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a row (a client), split equally over its columns; ``inf`` for no noise.
    categories : None, list, or list of lists, default=None
        The public categories: one list for all columns, or one for each. ``None`` reads them off the data and warns.
    random_state : None, int, Generator or RandomState, default=None
        ``None``, the only private choice, draws fresh noise at every call. An int is for simulations: the same data
        and parameters give the same reports, other data get independent noise.

    Attributes
    ----------
    categories_ : list of ndarray
        The categories of each column.
    mechanism_ : tuple of UnaryEncoding
        The randomiser of each column.
    epsilon_, delta_ : float
        What each client pays.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from skldp import UnaryEncodingPerturber
    >>> perturber = UnaryEncodingPerturber(categories=[[0, 1], ["a", "b", "c"]], random_state=0)
    >>> perturber.fit_transform([[0, "a"], [1, "c"]]).shape
    (2, 5)
    """

    _mechanism = UnaryEncoding

    def __init__(self, *, epsilon=1.0, categories=None, random_state=None):
        self.epsilon = epsilon
        self.categories = categories
        self.random_state = random_state


class BoundedScaler(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Map public bounds of each feature into a ball of radius ``data_norm``.

    Parameters
    ----------
    bounds : tuple, default=(-1, 1)
        Public (lower, upper): numbers, or arrays with one entry for each feature.
    data_norm : float, default=1.0
        Radius of the ball that every transformed row lies in.

    Attributes
    ----------
    centre_, scale_ : ndarray of shape (n_features,)
        The map is (x - centre_) * scale_.
    n_features_in_, feature_names_in_
        As in scikit-learn.

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

    def __init__(self, *, bounds=(-1, 1), data_norm=1.0):
        self.bounds = bounds
        self.data_norm = data_norm

    def fit(self, X, y=None):
        """Check the bounds against the number of features; nothing is learned from X.

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
        d = validate_data(self, X, dtype=np.float64, ensure_all_finite=False).shape[1]
        radius = check_positive(self.data_norm, "data_norm")
        lower, upper = _feature_bounds(self.bounds, d)
        self.centre_ = lower + (upper - lower) / 2
        self.scale_ = 2 * radius / (math.sqrt(d) * (upper - lower))
        self._half_width = (upper - lower) / 2
        return self

    def transform(self, X):
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
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False)
        with np.errstate(all="ignore"):
            deviation = np.where(np.isnan(X), 0.0, X - self.centre_)
            return np.clip(deviation, -self._half_width, self._half_width) * self.scale_

    def inverse_transform(self, X):
        """Map points of the ball back to the features' scale, without clipping.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Transformed records, or reports about them.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        return np.asarray(X, dtype=np.float64) / self.scale_ + self.centre_

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags


def _feature_bounds(bounds, n_features):
    try:
        lower, upper = bounds
        pairs = np.broadcast_arrays(np.asarray(lower), np.asarray(upper), np.empty(n_features))[:2]
    except (TypeError, ValueError):
        raise InvalidParameterError(
            f"bounds must be a pair (lower, upper) of numbers or of arrays of length {n_features}, got {bounds!r}."
        ) from None
    checked = [check_bounds((a, b)) for a, b in zip(*(side.tolist() for side in pairs))]
    return np.asarray(checked, dtype=np.float64).T


def _with_floats(X):
    """X with every entry a float, column names kept."""
    values = as_floats(np.asarray(X, dtype=object))
    return type(X)(values, index=X.index, columns=X.columns) if hasattr(X, "columns") else values


def _is_infinite(epsilon):
    return isinstance(epsilon, float) and math.isinf(epsilon)
