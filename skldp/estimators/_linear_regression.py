"""Linear regression with honest uncertainty."""

import math
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skldp.analysis._planning import plan_coefficient
from skldp.estimators._regression import BaseLDPRegression, check_scale, weight_or
from skldp.models.regression._linear import LinearModel
from skldp.protocols._moment_protocol import MomentProtocol
from skldp.protocols._record_protocol import RecordProtocol

DEFAULT_Y_WEIGHT = 1.0
DEFAULT_INTERCEPT_WEIGHT = math.sqrt(0.5)


class LDPBayesLinearRegression(RegressorMixin, BaseLDPRegression):
    r"""Linear regression from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability of a client, where the mechanism has one (Gaussian noise).
    data_norm : float, default=1.0
        Public bound R on the Euclidean norm of a record; longer ones are shortened.
    bounds_y : tuple of float, default=(-1, 1)
        Public interval of the response; values outside are clipped.
    collect : {"statistics", "inputs"}, default="statistics"
        Whether a client sends the noisy second moments of its record, or the noisy record itself.
    mechanism : {"auto", "sphere", "gaussian"}, default="auto"
        How reports are randomised. "auto" is the sphere for statistics (pure epsilon, about five times fewer clients
        for the same posterior) and Gaussian noise for inputs.
    fit_intercept : bool, default=True
        Whether there is an intercept. It costs noise; without it, x and y are taken to be centred.
    prior_scale : "auto" or float, default="auto"
        Prior of the coefficients: a multivariate t with three degrees of freedom and scale
        :math:`R_y/(2R)`, or a Gaussian with this standard deviation.
    covariance_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the signed scales of x; R/2 for "auto". "learned" gives the variances of x a Gamma
        distribution whose mean and shape are learned from the reports.
    sigma_scale : "auto" or float, default="auto"
        Scale of the half-normal prior of the noise; :math:`R_y/2` for "auto".
    lkj_eta : "learned" or float, default=2.0
        Parameter of the LKJ prior of the correlations of x; large, 20 say, where columns are known to be nearly
        uncorrelated, as principal components are. "learned" from the reports, it is between 1 and 300.
    mean_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the means of x, with an intercept; R/2 for "auto". Give a small number, R/50 say, where
        columns were centred with public constants: an intercept then costs little. "learned" from the reports, it is
        between R/200 and R/2.
    y_weight, intercept_weight : "auto" or float, default="auto"
        Weights of the response and of the constant in a report, where the record has length 1. The larger, the less
        noise on the moments with that entry and the more on all others; 1 and :math:`\sqrt{1/2}` for "auto".
    inference, n_walkers, n_warmup, n_draws, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    coef_, coef_std_ : ndarray of shape (n_features,)
        Posterior means and standard deviations of the coefficients.
    intercept_ : float
        Posterior mean of the intercept, 0 without one.
    sigma_ : float
        Posterior mean of the standard deviation of the response around the line.
    covariance_ : ndarray of shape (n_features, n_features)
        Posterior mean of the covariance of x (of its second moments without an intercept).
    posterior_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    See Also
    --------
    LDPSGDRegressor : The interactive baseline.

    Notes
    -----
    :math:`x \sim N(m, \Sigma)` and :math:`y = \alpha + \theta^Tx + N(0, \sigma^2)`. A report of statistics is the noisy
    svec of :math:`\tilde v\tilde v^T`, :math:`\tilde v = (\kappa, x/R, w y/R_y)` with y centred by its public midpoint.
    Their mean over N clients is approximately Gaussian with known moments, and its density costs one
    eigendecomposition of order d + 2 whatever N is. A report of inputs is :math:`(x/R, wy/R_y)` with Gaussian noise,
    whose sums and products are sufficient.

    *Approximations.* The mean of N moment reports is taken to be normal; records are taken to be normal, and their
    clipping to the ball and to ``bounds_y`` is not modelled: choose bounds that few records exceed.

    References
    ----------
    T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela (2022). Locally differentially private Bayesian inference. AISTATS.

    G. Bernstein, D. Sheldon (2019). Differentially private Bayesian linear regression. NeurIPS.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPBayesLinearRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(scale=0.3, size=(50_000, 2))
    >>> y = X @ [1.0, -0.5] + rng.normal(scale=0.1, size=50_000)
    >>> model = LDPBayesLinearRegression(epsilon=2.0, random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1.0, -0.5]).max() < 5 * model.coef_std_.max())
    True
    >>> mean, std = model.predict(X[:3], return_std=True)
    >>> mean.shape, std.shape
    ((3,), (3,))
    """

    def __init__(self, *, epsilon: float = 1.0, delta: float = 1e-5, data_norm: float = 1.0,
                 bounds_y: tuple[float, float] = (-1, 1), collect: str = "statistics", mechanism: str = "auto",
                 fit_intercept: bool = True, prior_scale: float | str = "auto",
                 covariance_scale: float | str = "auto", sigma_scale: float | str = "auto", lkj_eta: float | str = 2.0,
                 mean_scale: float | str = "auto", y_weight: float | str = "auto",
                 intercept_weight: float | str = "auto", inference: str = "mcmc", n_walkers: int | str = "auto",
                 n_warmup: int = 120, n_draws: int = 3000, random_state: Any = None, n_jobs: int | None = None,
                 progress: bool = False, warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.collect = collect
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.prior_scale = prior_scale
        self.covariance_scale = covariance_scale
        self.sigma_scale = sigma_scale
        self.lkj_eta = lkj_eta
        self.mean_scale = mean_scale
        self.y_weight = y_weight
        self.intercept_weight = intercept_weight
        self.inference = inference
        self.n_walkers = n_walkers
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    _plan = staticmethod(plan_coefficient)

    def protocol(self, n_features: int = 1) -> MomentProtocol | RecordProtocol:
        """Return the public description of the collection.

        Parameters
        ----------
        n_features : int, default=1
            Number of columns of the records.

        Returns
        -------
        MomentProtocol or RecordProtocol
        """
        mechanism = self._mechanism("sphere" if self.collect == "statistics" else "gaussian")
        domain = {"epsilon": self.epsilon, "delta": self.delta, "data_norm": self.data_norm,
                  "bounds_y": self.bounds_y, "n_features": n_features,
                  "y_weight": weight_or(self.y_weight, "y_weight", DEFAULT_Y_WEIGHT)}
        if self.collect == "inputs":
            return RecordProtocol(centred=bool(self.fit_intercept), **domain)
        constant = weight_or(self.intercept_weight, "intercept_weight", DEFAULT_INTERCEPT_WEIGHT)
        return MomentProtocol(mechanism=mechanism, intercept_weight=constant if self.fit_intercept else 0.0, **domain)

    def _models(self, aggregate):
        return [LinearModel(
            aggregate,
            prior_scale=check_scale(self.prior_scale, "prior_scale"),
            covariance_scale=check_scale(self.covariance_scale, "covariance_scale", ("auto", "learned")),
            sigma_scale=check_scale(self.sigma_scale, "sigma_scale"),
            lkj_eta=check_scale(self.lkj_eta, "lkj_eta", ("learned",)),
            mean_scale=check_scale(self.mean_scale, "mean_scale", ("auto", "learned")),
        )]

    def _describe(self, posterior, aggregate):
        mean = posterior.mean()
        return {
            "coef_": mean["coef"],
            "coef_std_": posterior.std()["coef"],
            "intercept_": float(mean.get("intercept", 0.0)),
            "sigma_": float(mean["sigma"]),
            "covariance_": mean["covariance"],
        }

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> np.ndarray:
        """Predict responses."""

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]:
        """Predict responses, with standard deviations."""

    def predict(self, X: ArrayLike, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict responses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.
        return_std : bool, default=False
            Whether to return the standard deviation of the response too, from the uncertainty of the parameters and
            from the noise around the line.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            Posterior mean of the response.
        std : ndarray of shape (n_samples,)
            Only with ``return_std``.
        """
        check_is_fitted(self, "posterior_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        mean = rows @ self.coef_ + self.intercept_
        if not return_std:
            return mean
        draws = self.posterior_.draws
        lines = draws["coef"].reshape(-1, self.n_features_in_)
        if "intercept" in draws:
            rows = np.column_stack([rows, np.ones(len(rows))])
            lines = np.column_stack([lines, draws["intercept"].ravel()])
        spread = np.atleast_2d(np.cov(lines.T, ddof=0))
        return mean, np.sqrt(np.vecdot(rows @ spread, rows) + np.mean(draws["sigma"] ** 2))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # Twenty noisy reports of a check's small data set do not carry a good fit.
        tags.regressor_tags.poor_score = True
        return tags
