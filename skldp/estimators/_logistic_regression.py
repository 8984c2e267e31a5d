"""Logistic regression with honest uncertainty."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit, logsumexp
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from skldp._validation._categories import category_codes, check_list
from skldp._validation._parameters import check_fraction
from skldp.estimators._regression import BaseLDPRegression, check_scale, features_of, weight_or
from skldp.exceptions import InvalidParameterError, PrivacyLeakWarning
from skldp.models.regression._logistic import LogisticMomentModel
from skldp.models.regression._logistic_records import LogisticRecordModel, check_link
from skldp.protocols._label_record_protocol import LabelRecordProtocol
from skldp.protocols._moment_protocol import LabelMomentProtocol

DEFAULT_Y_WEIGHT = 1.0
DEFAULT_INTERCEPT_WEIGHT = 0.3
_PREDICTING_ROWS = 1 << 12  # rows whose probabilities are averaged over all draws at a time


class LDPBayesLogisticRegression(ClassifierMixin, BaseLDPRegression):
    r"""Binary classification from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability of a client, where the mechanism has one (Gaussian noise).
    data_norm : float, default=1.0
        Public bound R on the Euclidean norm of a record; longer ones are shortened.
    classes : list of two labels or None, default=None
        The public labels, two strings or two numbers. As everywhere in scikit-learn they are put in order, and the
        later one is the positive class. ``None`` reads them off the data and warns.
    collect : {"statistics", "inputs"}, default="statistics"
        Whether a client sends the noisy second moments of its record and label, or the noisy record with its label
        by randomised response.
    mechanism : {"auto", "sphere", "gaussian"}, default="auto"
        How reports are randomised. "auto" is the sphere for statistics (pure epsilon) and Gaussian noise for inputs.
    fit_intercept : bool, default=True
        Whether there is an intercept. It costs noise, and calibrated probabilities need it.
    prior_scale : "auto" or float, default="auto"
        Prior of the coefficients: a multivariate t with three degrees of freedom and scale 2.5/R, or a Gaussian with
        this standard deviation.
    covariance_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the signed scales of x; R/2 for "auto". "learned" gives the variances of x a Gamma
        distribution whose mean and shape are learned from the reports.
    lkj_eta : "auto", "learned" or float, default="auto"
        Parameter of the LKJ prior of the correlations of x; large, 20 say, where columns are known to be nearly
        uncorrelated, as principal components are. "learned" from the reports, it is between 1 and 300. "auto" is
        "learned" for statistics, and 2 for inputs and for ``inference="laplace"``, which knows the mode alone.
    mean_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the means of x, with an intercept: small, R/50 say, where columns were centred with public
        constants. "learned" from the reports, it is between R/200 and R/2, and columns that are centred are found to be
        so. "auto" is "learned" for statistics, and R/2 for inputs and for ``inference="laplace"``.
    budget_split : float, default=0.5
        Share of epsilon that the label gets, for inputs.
    link : {"quadrature", "probit", "chebyshev"}, default="quadrature"
        For inputs, how the probability of a label is averaged over what is not known of its record: exactly, by a
        closed form that is off by up to 0.02, or by the paper's polynomial.
    y_weight, intercept_weight : "auto" or float, default="auto"
        Weights of the label and of the constant in a report of statistics, where the record has length 1; 1 and 0.3
        for "auto".
    inference, n_walkers, n_warmup, n_draws, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    coef_, coef_std_ : ndarray of shape (1, n_features)
        Posterior means and standard deviations of the coefficients.
    intercept_ : ndarray of shape (1,)
        Posterior mean of the intercept, 0 without one.
    classes_ : ndarray of shape (2,)
        The labels, the positive one last.
    covariance_ : ndarray of shape (n_features, n_features)
        Posterior mean of the covariance of x (of its second moments without an intercept).
    posterior_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    See Also
    --------
    LDPSGDClassifier : The interactive baseline.

    Notes
    -----
    :math:`x \sim N(m, \Sigma)` and :math:`P(y = 1|x) = 1/(1 + e^{-\alpha - \theta^Tx})`. A report of statistics is the
    noisy svec of :math:`\tilde v\tilde v^T`, :math:`\tilde v = (\kappa, x/R, wy)`, :math:`y = \pm 1`; its mean and
    covariance are exact, by one-dimensional quadrature. A report of inputs is x with Gaussian noise and y by
    randomised response.

    *Approximations.* The mean of N moment reports is taken to be normal; records are taken to be normal, and their
    clipping to the ball is not modelled: choose a norm that few records exceed. ``inference="laplace"`` also holds the
    covariance of the reports at a pilot estimate, and where reports are few its standard deviations can be half of
    what they should be.

    References
    ----------
    T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela (2022). Locally differentially private Bayesian inference. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPBayesLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(scale=0.3, size=(50_000, 2))
    >>> y = rng.random(50_000) < 1 / (1 + np.exp(-(X @ [4.0, -2.0])))
    >>> model = LDPBayesLogisticRegression(epsilon=2.0, classes=[False, True], random_state=0).fit(X, y)
    >>> bool(np.abs(model.coef_ - [4.0, -2.0]).max() < 5 * model.coef_std_.max())
    True
    >>> model.predict_proba([[0.5, 0.0]]).shape
    (1, 2)
    """

    def __init__(self, *, epsilon: float = 1.0, delta: float = 1e-5, data_norm: float = 1.0, classes: Any = None,
                 collect: str = "statistics", mechanism: str = "auto", fit_intercept: bool = True,
                 prior_scale: float | str = "auto", covariance_scale: float | str = "auto",
                 lkj_eta: float | str = "auto", mean_scale: float | str = "auto", budget_split: float = 0.5,
                 link: str = "quadrature", y_weight: float | str = "auto", intercept_weight: float | str = "auto",
                 inference: str = "mcmc", n_walkers: int | str = "auto", n_warmup: int = 200, n_draws: int = 3000,
                 random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.classes = classes
        self.collect = collect
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.prior_scale = prior_scale
        self.covariance_scale = covariance_scale
        self.lkj_eta = lkj_eta
        self.mean_scale = mean_scale
        self.budget_split = budget_split
        self.link = link
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

    def protocol(self, n_features: int = 1) -> LabelMomentProtocol | LabelRecordProtocol:
        """Return the public description of the collection; it needs ``classes``.

        Parameters
        ----------
        n_features : int, default=1
            Number of columns of the records.

        Returns
        -------
        LabelMomentProtocol or LabelRecordProtocol
        """
        if self.classes is None:
            raise InvalidParameterError("classes must be given: a protocol is public, and so are its labels. "
                                        "Pass classes= with the two labels to the estimator.")
        return self._protocol_for(self.classes, n_features)

    def _protocol_for(self, classes, n_features):
        mechanism = self._mechanism("sphere" if self.collect == "statistics" else "gaussian")
        check_fraction(self.budget_split, "budget_split")
        check_link(self.link)
        domain = {"epsilon": self.epsilon, "delta": self.delta, "data_norm": self.data_norm,
                  "classes": classes, "n_features": n_features}
        if self.collect == "inputs":
            return LabelRecordProtocol(budget_split=self.budget_split, **domain)
        constant = weight_or(self.intercept_weight, "intercept_weight", DEFAULT_INTERCEPT_WEIGHT)
        return LabelMomentProtocol(mechanism=mechanism, y_weight=weight_or(self.y_weight, "y_weight", DEFAULT_Y_WEIGHT),
                                   intercept_weight=constant if self.fit_intercept else 0.0, **domain)

    def _protocol_for_records(self, X, y):
        classes = self.classes
        if classes is None:
            warnings.warn(
                "classes were read off the private labels, which publishes them. "
                "Pass classes= to keep the guarantee.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
            classes = np.unique(y)
            if len(classes) < 2:
                raise ValueError(
                    f"This solver needs samples of at least 2 classes in the data, but the data contains only one "
                    f"class: {classes[0]!r}. Pass classes= to name the other one."
                )
        protocol = self._protocol_for(classes, X.shape[1])
        if (category_codes(y, check_list(protocol.classes)) < 0).any():
            raise ValueError("y has labels that are none of classes. Add them to classes, or leave their rows out of X "
                             "and y.")
        return protocol

    def _check_response(self, y):
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y", estimator_name=type(self).__name__)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if self.classes is not None and kind == "continuous":
            return y  # labels such as 0.5 and 1.5: the public ones decide
        check_classification_targets(y)
        if kind != "binary":
            raise ValueError(f"Only binary classification is supported. The type of the target is {kind}. "
                             "Give y two labels.")
        return y

    def _protocol_of_reports(self, reports):
        if self.classes is None and hasattr(self, "protocol_"):
            def protocol(n_features):
                """The protocol with the labels of the last fit."""
                return self._protocol_for(self.protocol_.classes, n_features)

            return protocol(features_of(protocol, reports.shape[1]))
        return super()._protocol_of_reports(reports)

    def _expected_protocol(self, found):
        # Classes that were read off the data are the reports' own.
        classes = getattr(found, "classes", (0, 1)) if self.classes is None else self.classes
        return self._protocol_for(classes, found.n_features)

    def _models(self, aggregate):
        learned = self.collect == "statistics" and self.inference == "mcmc"
        priors = {"prior_scale": check_scale(self.prior_scale, "prior_scale"),
                  "covariance_scale": _scale_or(self.covariance_scale, "covariance_scale", "auto"),
                  "lkj_eta": _scale_or(self.lkj_eta, "lkj_eta", "learned" if learned else 2.0),
                  "mean_scale": _scale_or(self.mean_scale, "mean_scale", "learned" if learned else "auto")}
        if self.collect == "statistics":
            return [LogisticMomentModel(aggregate, **priors)]
        return [LogisticRecordModel(aggregate, fit_intercept=self.fit_intercept, link=self.link, **priors)]

    def _describe(self, posterior, aggregate):
        mean = posterior.mean()
        return {
            "coef_": mean["coef"][None, :],
            "coef_std_": posterior.std()["coef"][None, :],
            "intercept_": np.atleast_1d(mean.get("intercept", 0.0)),
            "covariance_": mean["covariance"],
            "classes_": np.array(aggregate.protocol.classes),
        }

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Log-odds of the averaged probability of the second class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,)
            Positive for the second of ``classes_``. Smaller in size than the linear predictor at ``coef_``, because
            uncertain parameters make less certain predictions.
        """
        check_is_fitted(self, "posterior_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        draws = self.posterior_.draws
        coef = draws["coef"].reshape(-1, rows.shape[1])
        intercept = draws["intercept"].ravel() if "intercept" in draws else 0.0
        odds = np.empty(len(rows))
        for start in range(0, len(rows), _PREDICTING_ROWS):
            some = slice(start, start + _PREDICTING_ROWS)
            odds[some] = _averaged_odds(rows[some] @ coef.T + intercept)
        return odds

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Probabilities of both classes, averaged over the posterior.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            In the order of ``classes_``.
        """
        odds = self.decision_function(X)
        return np.column_stack([expit(-odds), expit(odds)])

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict labels: those with the larger averaged probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        # Thirty noisy reports of a check's small data set do not carry a good fit.
        tags.classifier_tags.poor_score = True
        return tags


def _scale_or(value, name, default):
    """Return "learned" or a positive float, or the default for "auto"."""
    value = check_scale(value, name, ("auto", "learned"))
    return default if value == "auto" else value


def _averaged_odds(predictor):
    """Log-odds of the mean probability over the draws, one column each."""
    with np.errstate(divide="ignore", invalid="ignore"):
        odds = np.log(expit(predictor).mean(axis=1)) - np.log(expit(-predictor).mean(axis=1))
    far = ~np.isfinite(odds)
    if far.any():
        # Beyond the range of floats for every draw: slower, and without a limit.
        extreme = predictor[far]
        odds[far] = logsumexp(log_expit(extreme), axis=1) - logsumexp(log_expit(-extreme), axis=1)
    return odds
