"""Bayesian regression of counts from private reports."""

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.metrics import d2_tweedie_score
from sklearn.utils.validation import check_array, column_or_1d

from skldp._validation._parameters import plain_number
from skldp.estimators._mechanisms import Records, check_mechanism
from skldp.estimators._round_regression import BaseLDPRoundRegression
from skldp.exceptions import InvalidParameterError
from skldp.protocols._round_protocol import CountRoundProtocol

_MOST_DRAWS = 400  # over which predictive standard deviations are averaged


class LDPBayesPoissonRegression(RegressorMixin, BaseLDPRoundRegression):
    r"""Regression of counts, with a logarithmic link, from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability of the guarantee, if the mechanism has one (Gaussian noise).
    data_norm : float, default=1.0
        Public bound R on the Euclidean norm of a record; longer records are shortened.
    bounds_y : tuple of (0, int), default=(0, 20)
        Zero, and the public count b at which counts are clipped. Clipping is part of the model.
    mechanism : {"auto", "sphere", "gaussian"} or Moments, default="auto"
        How score and curvature are randomised: on a sphere ("auto": pure epsilon), or with Gaussian noise.
    fit_intercept : bool, default=True
        Whether there is an intercept. Without one the rate is 1 where x is zero.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the coefficients and of the distribution of x.
    inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`. A warm start is used with one round only.
    n_rounds : "auto" or int, default="auto"
        Number of rounds of :meth:`fit`, on disjoint groups of clients, as in :class:`LDPBayesLogisticRegression`. One
        round is right for normal records only, and the reports cannot show whether they are normal.

    Attributes
    ----------
    coef_, coef_std_ : ndarray of shape (n_features,)
        Posterior means and standard deviations of the coefficients of the logarithm of the rate.
    intercept_ : float
        Posterior mean of the intercept; 0 without an intercept.
    predictive_coef_ : ndarray of shape (n_features,)
    predictive_intercept_ : float
        The line of ``predict``: the regression of the logarithm of the rate on x in the posterior predictive
        distribution.
    rounds_ : list of (Protocol, Aggregate)
        The rounds of the collection; :meth:`fit_reports` of this list gives the same posterior.
    covariance_ : ndarray of shape (n_features, n_features)
        Posterior mean of the covariance of x. Records count by their curvature at the model of the last round, which is
        in proportion to their rate where few counts are clipped.
    information_ : dict
        ``"coef"``: for each coefficient log2 of its prior over its posterior standard deviation, in bits.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`; ``protocol_`` is that of the first round, and ``fit_check_`` is None.

    Warns
    -----
    ScaleWarning
        If the reports show that most records were clipped, or that all are far below ``data_norm``; and in
        predictions, for rows longer than three times ``data_norm``.
    FewReportsWarning
        If the posterior of most coefficients, or of those of collinear columns, is nearly the prior.

    See Also
    --------
    LDPBayesLogisticRegression : Regression of labels, by the same rounds.

    Notes
    -----
    :math:`y \sim \mathrm{Poisson}(e^{\alpha + \theta^Tx})`. In each round clients get the current model and send the
    score and curvature of their clipped count there (:class:`skldp.protocols.CountRoundProtocol`); the model of the
    first round has no coefficients. The mean score is zero at the true model for **any** distribution of x. It is that
    of a quasi-likelihood: counts that vary more than a Poisson variable do not bias the coefficients, unless clipped,
    but without noise, or with very many reports, the intervals are then too narrow.

    *Approximations.* In simulations from the prior 90 % intervals cover 82 to 87 %
    (``tests/statistical/test_round_calibration.py``). The clipping of records to the ball is not modelled.

    References
    ----------
    T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela (2022). Locally differentially private Bayesian inference. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPBayesPoissonRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(scale=0.3, size=(50_000, 2))
    >>> y = rng.poisson(np.exp(0.5 + X @ [1.5, -1.0]))
    >>> model = LDPBayesPoissonRegression(epsilon=4.0, bounds_y=(0, 10), random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [1.5, -1.0]).max() < 5 * model.coef_std_.max())
    True
    """

    def __init__(self, *, epsilon: float = 1.0, delta: float = 1e-5, data_norm: float = 1.0, bounds_y: Any = (0, 20),
                 mechanism: Any = "auto", fit_intercept: bool = True, prior: Any = "auto", inference: Any = "mcmc",
                 random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False, n_rounds: int | str = "auto") -> None:
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
        self.n_rounds = n_rounds

    def _check_response(self, y):
        y = check_array(column_or_1d(y, warn=True), dtype=np.float64, ensure_2d=False, input_name="y", estimator=self)
        if (y < 0).any():
            raise ValueError(f"y has {int(np.sum(y < 0))} negative values, and counts cannot be negative. "
                             "Check that y holds counts, or use LDPBayesLinearRegression.")
        return y, None

    def _protocol(self, n_features=None, labels=None):
        mechanism = check_mechanism(self.mechanism)
        if isinstance(mechanism, Records):
            raise InvalidParameterError('Counts are collected as score and curvature, not as noisy records. Use '
                                        'mechanism="auto".')
        return CountRoundProtocol(
            epsilon=self.epsilon, delta=self.delta, data_norm=self.data_norm, bounds_y=self.bounds_y,
            n_features=1 if n_features is None else n_features, **mechanism._score_options(self.fit_intercept))

    def _describe(self, posterior, models, *rounds):
        found = super()._describe(posterior, models, *rounds)
        for name in ("predictive_coef_", "predictive_intercept_", "coef_", "coef_std_", "intercept_"):
            found[name] = plain_number(found[name][0])
        return {**found, "information_": found["posterior_"].information}

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[False] = False) -> np.ndarray:
        """Predict rates."""

    @overload
    def predict(self, X: ArrayLike, return_std: Literal[True]) -> tuple[np.ndarray, np.ndarray]:
        """Predict rates, and standard deviations of counts."""

    def predict(self, X: ArrayLike, return_std: bool = False) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Predict the rates of counts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.
        return_std : bool, default=False
            Whether to also return the standard deviation of the count, which includes the uncertainty of the
            parameters and that of a Poisson variable.

        Returns
        -------
        mean : ndarray of shape (n_samples,)
            ``exp(X @ predictive_coef_ + predictive_intercept_)``, of counts that are not clipped.
        std : ndarray of shape (n_samples,)
            Only with ``return_std``.
        """
        rows = self._rows(X, stacklevel=2)
        rate = np.exp(rows @ self.predictive_coef_ + self.predictive_intercept_)
        if not return_std:
            return rate
        draws = self.posterior_.sample(_MOST_DRAWS, np.random.default_rng(0))
        deviations = draws["coef"] - self.predictive_coef_, draws.get("intercept", 0.0) - self.predictive_intercept_
        change = np.clip(rows @ deviations[0].T + deviations[1], -10, 10)  # of the logarithm of the rate
        return rate, np.sqrt(rate + rate**2 * np.mean(np.expm1(change) ** 2, axis=1))

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return D², the share of the Poisson deviance that the rates explain, as in ``PoissonRegressor``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.
        y : array-like of shape (n_samples,)
            Counts.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
            1 for perfect rates, 0 for those of a constant, negative for worse ones.
        """
        return d2_tweedie_score(y, self.predict(X), sample_weight=sample_weight, power=1)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        # scikit-learn's checks use too few samples for a good score, and negative responses.
        tags.regressor_tags.poor_score = True
        tags.target_tags.positive_only = True
        return tags
