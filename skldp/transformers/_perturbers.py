"""scikit-learn transformers that randomise values and vectors."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skldp._validation._door import as_floats, as_table, as_values, is_ragged
from skldp._validation._parameters import check_epsilon, check_positive, split_budget, warn_large_delta
from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._laplace import Laplace
from skldp.mechanisms._sphere import Sphere
from skldp.mechanisms._square_wave import SquareWave
from skldp.privacy._display import ShowsBudget
from skldp.privacy._spending import Counted, spend


def private_table(transformer, X, reset):
    """Return private records as a plain table; check only their public shape and column names, as scikit-learn does.

    With ``reset`` the transformer stores the number and names of the columns, else they are compared with those stored.
    """
    values = as_values(X)
    if values.ndim == 1 and not is_ragged(values):
        raise ValueError(f"Expected 2D array, got 1D array instead, of shape {values.shape}. Reshape your data: "
                         "X.reshape(-1, 1) for one column, X.reshape(1, -1) for one record.")
    table = as_table(values, None if reset or not is_ragged(values) else transformer.n_features_in_)
    validate_data(transformer, X if hasattr(X, "columns") else table, skip_check_array=True, reset=reset)
    # Zeros of the same shape: scikit-learn's errors about the numbers of rows and columns then show no private value.
    check_array(np.broadcast_to(0.0, table.shape), estimator=transformer)
    return table


def refuse_complex(X):
    """Refuse complex columns in ``fit``, as scikit-learn does; the type of the columns is public."""
    if as_values(X).dtype.kind == "c":
        raise ValueError("Complex data not supported. Pass columns of real numbers or of categories.")


class BasePerturber(ShowsBudget, TransformerMixin, Counted, BaseEstimator):
    """Base class of all perturbers. Fitting only stores the number and names of the columns.

    Asking the same person twice spends epsilon twice: transform each record once.
    """

    delta: float = 0.0  # a parameter of the perturbers whose mechanism is not pure

    def fit(self, X: ArrayLike, y: object = None) -> Self:
        """Check the parameters against the number of columns.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Only its shape and column names are used, unless the categories are read from it.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        self
        """
        refuse_complex(X)
        return self._learn(X)

    def fit_transform(self, X: ArrayLike, y: object = None) -> np.ndarray:
        """Check the parameters against the number of columns, and randomise every row of X once.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records. Values outside the public domain are clipped; no value raises or warns.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        ndarray
            Reports on the natural scale, one row for each client.
        """
        return self._learn(X).transform(X)

    def _learn(self, X):
        X = self._read(X, reset=True)
        self.mechanism_ = self._build(X)
        self.epsilon_ = check_epsilon(self.epsilon)
        self.delta_ = float(self.delta)
        return self

    def transform(self, X: ArrayLike) -> np.ndarray:
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
        return as_floats(private_table(self, X, reset))

    def _build(self, X):
        raise NotImplementedError

    def _perturb(self, X):
        spend(self.epsilon_, self.delta_, X)
        return self.mechanism_.decode(self.mechanism_.randomize(X, self.random_state))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.non_deterministic = True
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True  # strings become NaN without an error
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
        and parameters give the same reports; other data get independent noise.

    Attributes
    ----------
    mechanism_ : Laplace
        The randomiser of one value.
    epsilon_, delta_ : float
        Budget spent by each client.
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

    def __init__(self, *, epsilon: float = 1.0, bounds: tuple[float, float] = (-1, 1),
                 random_state: Any = None) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.random_state = random_state

    def _build(self, X):
        return Laplace(epsilon=split_budget(self.epsilon, X.shape[1]), bounds=self.bounds)


class SquareWavePerturber(LaplacePerturber):
    """Report a point near each value, clipped to public bounds, by the square wave mechanism.

    Parameters
    ----------
    epsilon, bounds, random_state
        As in :class:`LaplacePerturber`.

    Attributes
    ----------
    mechanism_ : SquareWave
        The randomiser of one value; ``mechanism_.unbiased`` corrects the shrinkage of the reports.
    epsilon_, delta_, n_features_in_, feature_names_in_
        As in :class:`LaplacePerturber`.

    Notes
    -----
    The reports are values on the grid, up to half a window outside the bounds. They are not the records plus noise of
    mean zero: use an estimator that models the mechanism.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import SquareWavePerturber
    >>> SquareWavePerturber(random_state=0).fit_transform(np.zeros((5, 2))).shape
    (5, 2)
    """

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
        Public bound on the Euclidean norm of a row; longer rows are clipped to it.
    random_state
        As in :class:`LaplacePerturber`.

    Attributes
    ----------
    mechanism_ : Gaussian
        The randomiser of one row.
    epsilon_, delta_, n_features_in_, feature_names_in_
        As in :class:`LaplacePerturber`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import GaussianPerturber
    >>> GaussianPerturber(epsilon=2.0, random_state=0).fit_transform(np.zeros((5, 3))).shape
    (5, 3)
    """

    def __init__(self, *, epsilon: float = 1.0, delta: float = 1e-5, data_norm: float = 1.0,
                 random_state: Any = None) -> None:
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
        Public bound on the Euclidean norm of a row; longer rows are clipped to it.
    random_state
        As in :class:`LaplacePerturber`.

    Attributes
    ----------
    mechanism_ : Sphere
        The randomiser of one row.
    epsilon_, delta_, n_features_in_, feature_names_in_
        As in :class:`LaplacePerturber`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import SpherePerturber
    >>> X = np.tile([0.6, 0.0, -0.6], (20_000, 1))
    >>> reports = SpherePerturber(epsilon=2.0, random_state=0).fit_transform(X)
    >>> bool(np.abs(reports.mean(axis=0) - X[0]).max() < 0.05)
    True
    """

    def __init__(self, *, epsilon: float = 1.0, data_norm: float = 1.0, random_state: Any = None) -> None:
        self.epsilon = epsilon
        self.data_norm = data_norm
        self.random_state = random_state

    def _build(self, X):
        norm = check_positive(self.data_norm, "data_norm")
        return Sphere(epsilon=self.epsilon, norm=norm, n_features=X.shape[1])
