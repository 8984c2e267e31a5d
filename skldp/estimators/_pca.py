"""Principal components from private reports."""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skldp._validation._parameters import check_fraction, check_integer
from skldp.estimators._covariance import BaseLDPCovariance

_N_DRAWS = 1000  # draws of the covariance whose eigenvectors are compared with the components


class LDPPCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseLDPCovariance):
    r"""Principal components from one noisy report of each client.

    Parameters
    ----------
    n_components : int, float or None, default=None
        Number of components; or a share in (0, 1) of the variance that they explain together, by its posterior mean.
        ``None`` keeps all.
    epsilon, delta, data_norm, mechanism, assume_centered, prior
        As in :class:`LDPCovariance`.
    inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Eigenvectors of the posterior mean of the covariance, by decreasing eigenvalue. The largest entry of each in
        absolute value is positive, as in scikit-learn.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Posterior means of the variance along each component, and of its share of the total variance. The former are
        the eigenvalues of ``covariance_``.
    mean_ : ndarray of shape (n_features,)
        Posterior mean of the mean; zero with ``assume_centered``.
    covariance_ : ndarray of shape (n_features, n_features)
        Posterior mean of the covariance.
    n_components_ : int
        Number of components.
    information_ : dict
        As in :class:`LDPCovariance`.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`; ``fit_check_`` is None. The draws are ``mean``, ``covariance``, and
        ``explained_variance`` and ``explained_variance_ratio`` of the components.

    Warns
    -----
    ScaleWarning, FewReportsWarning
        As in :class:`LDPCovariance`.

    See Also
    --------
    LDPCovariance : The covariance itself.

    Notes
    -----
    Reports and model are those of :class:`LDPCovariance`. The variance that a component explains is that **along the
    component as it is reported**, :math:`c^T\Sigma c`, the variance of a column of ``transform``. The eigenvalues of
    draws of :math:`\Sigma` would be another answer, to which noise adds: the largest ones of them are too large, and
    the smallest ones cannot be as small as those of collinear columns. On 12 raw columns of Wine Quality at epsilon 4,
    90 % intervals of variances along components contain them in 9 of 10 cases, and those of eigenvalues in 5 of 10
    (``benchmarks/table_covariance.py``). Components whose variances are nearly equal are found partly by chance, so
    that the first of them seems to explain more than it does.

    Eigenvectors of draws have no average, so that the posterior has none; :meth:`direction_angles` says how far the
    components may be from the true ones. Components that explain nearly the same variance are uncertain, even if the
    plane that they span is known.

    *In a pipeline.* A regression after this step asks its people as well. So that each person is asked once, divide
    them by ``sample_epsilon``, in which 0 means that a person is not asked: see the example. A transformed record is
    longer than the record by at most the norm of ``mean_``.

    Examples
    --------
    Every fifth person reports for the components, and the others for the regression.

    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from skldp import LDPBayesLinearRegression, LDPPCA
    >>> rng = np.random.default_rng(0)
    >>> X = 0.2 * rng.normal(size=(50_000, 1)) + 0.05 * rng.normal(size=(50_000, 5))
    >>> y = 2 * X.mean(axis=1) + 0.1 * rng.normal(size=50_000)
    >>> pipeline = make_pipeline(LDPPCA(n_components=1, random_state=0), LDPBayesLinearRegression(random_state=0))
    >>> for_components = np.arange(50_000) % 5 == 0
    >>> pipeline = pipeline.fit(X, y, ldppca__sample_epsilon=1.0 * for_components,
    ...                         ldpbayeslinearregression__sample_epsilon=1.0 * ~for_components)
    >>> [step.n_reports_ for step in pipeline]
    [10000, 40000]
    >>> component_angle, _ = pipeline[0].direction_angles(0.9)
    >>> bool(component_angle[0] < 30)  # degrees
    True
    """

    _mean_name = "mean"

    def __init__(self, *, n_components: Any = None, epsilon: float = 1.0, delta: float = 1e-5, data_norm: float = 1.0,
                 mechanism: Any = "auto", assume_centered: bool = False, prior: Any = "auto", inference: Any = "mcmc",
                 random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.mechanism = mechanism
        self.assume_centered = assume_centered
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    def _models(self, aggregate):
        self._number_of_components(np.ones(aggregate.protocol.n_features))  # a wrong number raises before sampling
        return super()._models(aggregate)

    def _number_of_components(self, ratios):
        """Return the number of components, given the share of the variance that each explains."""
        if self.n_components is None:
            return len(ratios)
        if isinstance(self.n_components, Integral):
            return check_integer(self.n_components, "n_components", 1, len(ratios))
        share = check_fraction(self.n_components, "n_components")
        return min(int(np.searchsorted(np.cumsum(ratios), share)) + 1, len(ratios))

    def _describe(self, posterior, models, aggregate):
        axes = principal_axes(posterior.mean()["covariance"])
        draws = posterior.draws["covariance"]
        variances = np.vecdot(axes @ draws, axes)
        ratios = variances / np.trace(draws, axis1=2, axis2=3)[:, :, None]
        k = self._number_of_components(ratios.mean(axis=(0, 1)))
        posterior = self._informed(models[0], posterior.with_derived(
            {"explained_variance": variances[:, :, :k], "explained_variance_ratio": ratios[:, :, :k]}))
        mean = posterior.mean()
        return {
            "components_": axes[:k],
            "explained_variance_": mean["explained_variance"],
            "explained_variance_ratio_": mean["explained_variance_ratio"],
            "mean_": mean.get("mean", np.zeros(len(mean["covariance"]))),
            "covariance_": mean["covariance"],
            "n_components_": k,
            "information_": posterior.information,
            "posterior_": posterior,
        }

    @property
    def _n_features_out(self):
        return len(self.components_)

    def transform(self, X: ArrayLike) -> np.ndarray:
        """Return the coordinates of records along the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self, "posterior_")
        return (validate_data(self, X, dtype=np.float64, reset=False) - self.mean_) @ self.components_.T

    def inverse_transform(self, X: ArrayLike) -> np.ndarray:
        """Return the records with given coordinates along the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Coordinates.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self, "posterior_")
        return check_array(X, dtype=np.float64, estimator=self) @ self.components_ + self.mean_

    def direction_angles(self, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        r"""Return how far, in degrees, the true directions may be from the components.

        Parameters
        ----------
        level : float, default=0.95
            Posterior probability that the angle is not larger.

        Returns
        -------
        component : ndarray of shape (n_components,)
            Angle between each component and the true principal axis of the same number. 90 degrees means that the
            reports say nothing about it.
        subspace : ndarray of shape (n_components,)
            Largest angle between a direction in the span of the first j components, for each j, and the span of the
            first j true axes. It is small where the next component explains much less, even if single components are
            uncertain; the span of all components of a space is certain.
        """
        check_is_fitted(self, "posterior_")
        check_fraction(level, "level")
        draws = self.posterior_.draws["covariance"]
        draws = draws.reshape(-1, *draws.shape[2:])
        axes = np.linalg.eigh(draws[::max(1, len(draws) // _N_DRAWS)])[1][:, :, ::-1]
        cosines = self.components_ @ axes
        k = self.n_components_
        component = np.abs(np.diagonal(cosines, axis1=1, axis2=2))[:, :k]
        subspace = np.stack([np.linalg.svd(cosines[:, :j, :j], compute_uv=False)[:, -1] for j in range(1, k + 1)], 1)
        angles = np.degrees(np.arccos(np.minimum([component, subspace], 1.0)))
        component, subspace = np.quantile(angles, level, axis=1)
        return component, subspace


def principal_axes(covariance):
    """Return the eigenvectors of a covariance as rows, by decreasing eigenvalue; the largest entry is positive.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.estimators._pca import principal_axes
    >>> principal_axes(np.array([[2.0, -1.0], [-1.0, 1.0]])).round(2)
    array([[ 0.85, -0.53],
           [ 0.53,  0.85]])
    """
    axes = np.linalg.eigh(covariance)[1].T[::-1]
    largest = axes[np.arange(len(axes)), np.argmax(np.abs(axes), axis=1)]
    return axes * np.sign(largest)[:, None]
