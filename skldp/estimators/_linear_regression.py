"""Bayesian linear regression from private reports."""

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_array

from skldp._validation._parameters import plain_number
from skldp.analysis._planning import plan_coefficient
from skldp.estimators._feature_sampling import changeable, sampled_options
from skldp.estimators._mechanisms import Records, check_mechanism
from skldp.estimators._regression import BaseLDPRegression, draws_by_line, predictive_line
from skldp.exceptions import InvalidParameterError
from skldp.models.regression._linear import LinearModel
from skldp.models.regression._sampled_models import SampledLinearModel
from skldp.protocols._moment_protocol import MomentProtocol
from skldp.protocols._record_protocol import RecordProtocol
from skldp.protocols._regression_protocol import RegressionProtocol, check_response_bounds, n_pairs
from skldp.protocols._sampled_moment_protocol import SampledMomentProtocol

# Fitted attributes that have an axis for responses if y has two dimensions.
_BY_RESPONSE = ("coef_", "coef_std_", "intercept_", "sigma_", "predictive_coef_", "predictive_intercept_")
_MODELS = {SampledMomentProtocol: SampledLinearModel}  # of the protocols that LinearModel is not for


class LDPBayesLinearRegression(RegressorMixin, BaseLDPRegression):
    r"""Linear regression from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability of the guarantee, if the mechanism has one (Gaussian noise).
    data_norm : float, default=1.0
        Public bound R on the Euclidean norm of a record; longer records are shortened.
    bounds_y : pair of float, or list of pairs, default=(-1, 1)
        Public interval of the response; values outside are clipped. For several responses, one pair for each of them,
        or one for all.
    mechanism : {"auto", "sphere", "axis", "gaussian", "records"}, Moments or Records, default="auto"
        What a client sends: second moments of its record, randomised on a sphere or by their axis (pure epsilon, and at
        least three times fewer clients than Gaussian noise for the same posterior), or with Gaussian noise; or the
        record itself with Gaussian noise. "auto" is the sphere or the axis, by the budget and the number of features:
        :func:`skldp.protocols.moment_mechanism`.
    fit_intercept : bool, default=True
        Whether there is an intercept. It adds noise; without it, x and y are assumed to be centred.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of coefficients, noise, and the distribution of x.
    inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.
    features_per_client : int or None, default=None
        Number s of features, at least 2, that a client reports with its response; a public coin chooses them. ``None``
        is all of them, which is better for most columns; see Notes.

    Attributes
    ----------
    coef_, coef_std_ : ndarray of shape (n_features,), or (n_responses, n_features)
        Posterior means and standard deviations of the coefficients. They have an axis for responses, as the following
        attributes have, if y has two dimensions.
    intercept_ : float, or ndarray of shape (n_responses,)
        Posterior mean of the intercept; 0 without an intercept.
    predictive_coef_ : ndarray of shape (n_features,), or (n_responses, n_features)
    predictive_intercept_ : float, or ndarray of shape (n_responses,)
        The line of ``predict``: the regression of y on x in the posterior predictive distribution, which predicts
        better than the posterior means of the parameters, ``coef_`` and ``intercept_``.
    sigma_ : float, or ndarray of shape (n_responses,)
        Posterior mean of the residual standard deviation.
    covariance_ : ndarray of shape (n_features, n_features)
        Posterior mean of the covariance of x (of its second moments without an intercept).
    information_ : dict
        ``"coef"``: for each coefficient log2 of its prior over its posterior standard deviation, in bits. Near 0 the
        reports say nothing about it.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    Warns
    -----
    ScaleWarning
        If the reports show that most records exceed ``data_norm`` or ``bounds_y``, or are far below it; and, in
        predictions, for rows longer than three times ``data_norm``.
    FewReportsWarning
        If the posterior of most coefficients, or of those of collinear columns, is nearly the prior.

    See Also
    --------
    LDPSGDRegressor : The interactive baseline.

    Notes
    -----
    :math:`x \sim N(m, \Sigma)` and :math:`y = \alpha + \theta^Tx + N(0, \sigma^2)`. A report of moments is the noisy
    svec of :math:`\tilde v\tilde v^T`, :math:`\tilde v = (\kappa, x/R, w y/R_y)` with y centred by its public midpoint.
    Their mean over N clients is approximately Gaussian with known moments, and its density costs one
    eigendecomposition of order d + 2 for any N. A noisy record is :math:`(x/R, wy/R_y)` with Gaussian noise; sums and
    products of noisy records are sufficient.

    *Several responses.* With y of shape (n, k), k > 1, a client sends one report of the moments of
    :math:`(\kappa, x/R, w y_1/R_1, ..., w y_k/R_k)`, :math:`w = 1/\sqrt k`, so that its noise is nearly that of one
    response, and :math:`y = \alpha + Bx + N(0, S)`. The draw ``residual_correlation`` of the posterior has the
    correlations of S. Separate fits would have to divide epsilon by k. Noisy records have one response.

    *Some features.* With ``features_per_client=s`` a client draws s of the d features by a coin, before it reads its
    record, and reports the axis of these, the response and the constant, with its whole budget. The s features are
    shortened to the norm :math:`R\sqrt{s/d}`: choose ``data_norm`` so that few subsets exceed that. A report marks the
    features that its client does not fill, and each moment is a mean over those who fill it. It pays for columns with
    bounds of their own at which they lie, such as columns that are 1 or -1: with 10 to 50 of them, s of 4 to 8 needs 3
    to 14 % fewer people at epsilon 1 and 2 than axes of all features. For other columns the length of all features
    together varies less than that of a few, so that ``data_norm`` can be lower without subsets: for uniform columns
    s = 8 needs up to 1.4 times, and for normal ones up to 1.7 times as many people
    (``benchmarks/table_feature_sampling.py``). If 5 % of the subsets of normal columns are shortened, coefficients are
    2 % too large; of 20 %, up to 10 %.

    *Approximations.* The mean of N moment reports and the records are assumed to be normal. The clipping of records to
    the ball and to ``bounds_y`` is not modelled: choose bounds that few records exceed.

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
    >>> both = np.column_stack([y, 10 * X[:, 1] + rng.normal(scale=3.0, size=50_000)])
    >>> model = LDPBayesLinearRegression(epsilon=2.0, bounds_y=[(-1, 1), (-10, 10)], random_state=0).fit(X, both)
    >>> model.coef_.shape, model.predict(X[:3]).shape
    ((2, 2), (3, 2))
    """

    def __init__(self, *, epsilon: float = 1.0, delta: float = 1e-5, data_norm: float = 1.0,
                 bounds_y: Any = (-1, 1), mechanism: Any = "auto", fit_intercept: bool = True,
                 prior: Any = "auto", inference: Any = "mcmc", random_state: Any = None, n_jobs: int | None = None,
                 progress: bool = False, warm_start: bool = False,
                 features_per_client: int | None = None) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start
        self.features_per_client = features_per_client

    _plan = staticmethod(plan_coefficient)

    def _check_response(self, y):
        """Return responses as an array, and their number if they have two dimensions."""
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y", estimator=self)
        if y.ndim == 2 and y.shape[1] > 1:
            return y, y.shape[1]
        return y.ravel(), 1

    def _protocol(self, n_features=None, labels=None):
        mechanism, bounds_y = check_mechanism(self.mechanism), self._bounds(labels)
        domain: dict[str, Any] = {
            "epsilon": self.epsilon, "delta": self.delta, "data_norm": self.data_norm, "bounds_y": bounds_y,
            "n_features": 1 if n_features is None else n_features}
        if self.features_per_client is not None:
            return SampledMomentProtocol(**sampled_options(self, n_pairs(bounds_y)), **domain)
        if isinstance(mechanism, Records):
            return RecordProtocol(centred=bool(self.fit_intercept), y_weight=1.0, **domain)
        return MomentProtocol(**mechanism._options(self.fit_intercept, n_pairs(bounds_y)), **domain)

    def _bounds(self, n_responses):
        """Return the bounds of each response: as given, or one pair for all of a known number of responses."""
        bounds = check_response_bounds(self.bounds_y)
        if n_responses is None or n_responses == n_pairs(bounds):
            return bounds
        if n_pairs(bounds) > 1:
            raise InvalidParameterError(f"bounds_y has {n_pairs(bounds)} pairs, and y has {n_responses} columns. Give "
                                        "one pair for each column, or one for all.")
        return (bounds,) * n_responses

    def _found(self, protocol):
        given = n_pairs(check_response_bounds(self.bounds_y))
        return protocol.n_responses if isinstance(protocol, RegressionProtocol) and given == 1 else given

    def _shape_like(self, y):
        if np.asarray(y).ndim == 2 and self.protocol_.n_responses == 1:
            for name in _BY_RESPONSE:
                setattr(self, name, np.expand_dims(getattr(self, name), 0))

    def _models(self, aggregate):
        return [_MODELS.get(type(aggregate.protocol), LinearModel)(aggregate, self.prior)]

    def _changeable(self):
        return super()._changeable() if self.features_per_client is None else changeable(self)

    def _describe(self, posterior, models, aggregate):
        mean, posterior = posterior.mean(), self._informed(models[0], posterior)
        lines = [predictive_line(draws) for draws in draws_by_line(posterior.draws)]
        shape = mean["sigma"].shape
        return {
            "predictive_coef_": np.reshape([line.coef for line in lines], mean["coef"].shape),
            "predictive_intercept_": plain_number(np.reshape([line.intercept for line in lines], shape)),
            "coef_": mean["coef"],
            "coef_std_": posterior.std()["coef"],
            "intercept_": plain_number(mean.get("intercept", np.zeros(shape))),
            "sigma_": plain_number(mean["sigma"]),
            "covariance_": mean["covariance"],
            "information_": posterior.information,
            "posterior_": posterior,
        }

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> np.ndarray:
        """Predict responses."""

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]:
        """Predict responses and their standard deviations."""

    def predict(self, X: ArrayLike, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict responses.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.
        return_std : bool, default=False
            Whether to also return the standard deviation of the response around the mean, which includes the
            uncertainty of the parameters and the residual noise.

        Returns
        -------
        mean : ndarray of shape (n_samples,), or (n_samples, n_responses)
            ``X @ predictive_coef_.T + predictive_intercept_``, the best linear prediction.
        std : ndarray of shape (n_samples,), or (n_samples, n_responses)
            Only with ``return_std``.
        """
        rows = self._rows(X, stacklevel=2)
        mean = rows @ self.predictive_coef_.T + self.predictive_intercept_
        if not return_std:
            return mean
        lines = np.column_stack([np.atleast_2d(self.predictive_coef_), np.atleast_1d(self.predictive_intercept_)])
        std = [_predictive_std(rows, draws, line)
               for draws, line in zip(draws_by_line(self.posterior_.draws), lines)]
        return mean, np.transpose(std).reshape(mean.shape)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # scikit-learn's checks use too few samples for a good score.
        tags.regressor_tags.poor_score = True
        tags.target_tags.multi_output = True
        return tags


def _predictive_std(rows, draws, line):
    """Return the standard deviations of new responses around a line, with its constant last."""
    lines = draws["coef"].reshape(-1, rows.shape[1])
    if "intercept" in draws:
        rows = np.column_stack([rows, np.ones(len(rows))])
        lines = np.column_stack([lines, draws["intercept"].ravel()])
    deviations = lines - line[:lines.shape[1]]
    second = deviations.T @ deviations / len(deviations)
    return np.sqrt(np.vecdot(rows @ second, rows) + np.mean(draws["sigma"] ** 2))
