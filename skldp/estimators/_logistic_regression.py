"""Bayesian logistic regression from private reports."""

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from skldp.estimators._feature_sampling import changeable, sampled_options
from skldp.estimators._mechanisms import Records, check_mechanism, sends_records
from skldp.estimators._regression import predictive_line
from skldp.estimators._round_regression import BaseLDPRoundRegression
from skldp.estimators._rounds import check_number_of_rounds
from skldp.exceptions import InvalidParameterError, PrivacyLeakWarning
from skldp.models.regression._logistic_moments import LogisticMomentModel
from skldp.models.regression._logistic_records import LogisticRecordModel
from skldp.models.regression._rounds import RoundModel
from skldp.models.regression._sampled_models import SampledLogisticModel
from skldp.protocols._label_record_protocol import LabelRecordProtocol
from skldp.protocols._moment_protocol import LabelMomentProtocol
from skldp.protocols._round_protocol import RoundProtocol
from skldp.protocols._sampled_moment_protocol import SampledLabelMomentProtocol

_MODELS = {LabelMomentProtocol: LogisticMomentModel, SampledLabelMomentProtocol: SampledLogisticModel}  # of one round


class LDPBayesLogisticRegression(ClassifierMixin, BaseLDPRoundRegression):
    r"""Classification by two or more labels from one noisy report of each client, in one or several rounds.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability of the guarantee, if the mechanism has one (Gaussian noise).
    data_norm : float, default=1.0
        Public bound R on the Euclidean norm of a record; longer records are shortened.
    classes : list of labels or None, default=None
        The public labels, all strings or all numbers. As in scikit-learn they are sorted, and the last of two is the
        positive class. ``None`` takes them from the data and warns.
    mechanism : {"auto", "sphere", "axis", "gaussian", "records"}, Moments or Records, default="auto"
        What a client sends: second moments of its record and label, randomised on a sphere or by their axis (pure
        epsilon), or with Gaussian noise; or the record itself with Gaussian noise and its label, one of two, by
        randomised response. "auto" is the sphere or the axis, by the budget and the number of features:
        :func:`skldp.protocols.moment_mechanism`. Later rounds, and more than two labels, have the sphere in both cases.
    fit_intercept : bool, default=True
        Whether there is an intercept. It adds noise, but calibrated probabilities need it.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the coefficients and of the distribution of x.
    inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`. A warm start is used with one round only.
    features_per_client : int or None, default=None
        Number s of features that a client reports, with its label, one of two; a public coin chooses them. ``None`` is
        all of them. The collection then has one round. :class:`LDPBayesLinearRegression` says when that pays.
    n_rounds : "auto" or int, default="auto"
        Number of rounds of :meth:`fit`, on disjoint groups of clients: each person is asked once. "auto" is 3; it is 1
        for fewer than 1,000 clients, for noisy records and with ``features_per_client``. With 1 the coefficients are
        right for normal records only, and the reports cannot show whether records are normal. :meth:`privatize`,
        :meth:`protocol` and :meth:`fit_reports` of an array are about a collection in one round; :class:`RoundServer`
        runs several.

    Attributes
    ----------
    coef_, coef_std_ : ndarray of shape (1, n_features), or (n_classes, n_features) for more than two labels
        Posterior means and standard deviations of the coefficients. Rows of more than two labels add up to zero.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Posterior mean of the intercept; 0 without an intercept.
    predictive_coef_ : ndarray of the shape of ``coef_``
    predictive_intercept_ : ndarray of the shape of ``intercept_``
        The lines of ``decision_function``: the regression of the log-odds, or of the score of each label, on x in the
        posterior predictive distribution. With one round it is shrunk for the uncertainty of the parameters, so that
        ``predict_proba`` averages over the posterior. Its error is that of two approximations: the average is over x
        and the parameters together, and a normal average of the logistic function is taken as a logistic function,
        which is right to 0.02. With several rounds it is shrunk for the uncertainty of the log-odds at
        the mean of x alone, which predicts better.
    rounds_ : list of (Protocol, Aggregate)
        The rounds of the collection; :meth:`fit_reports` of this list gives the same posterior.
    classes_ : ndarray of shape (n_classes,)
        The labels; of two, the positive one is last.
    covariance_ : ndarray of shape (n_features, n_features)
        Posterior mean of the covariance of x (of its second moments without an intercept). With several rounds records
        count by their curvature p(1 - p) at the model of the last round.
    information_ : dict
        ``"coef"``: for each coefficient log2 of its prior over its posterior standard deviation, in bits. Near 0 the
        reports say nothing about it.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    Warns
    -----
    ScaleWarning
        If the reports show that most records exceed ``data_norm``, or are far below it; and, in
        predictions, for rows longer than three times ``data_norm``.
    FewReportsWarning
        If the posterior of most coefficients, or of those of collinear columns, is nearly the prior.

    See Also
    --------
    LDPBayesPoissonRegression : Regression of counts, by the same rounds.
    LDPSGDClassifier : The interactive baseline.

    Notes
    -----
    :math:`P(y = 1|x) = 1/(1 + e^{-\alpha - \theta^Tx})` for two labels, and
    :math:`P(y = k|x) \propto e^{\alpha_k + \theta_k^Tx}` for more. A report of moments is the noisy svec of
    :math:`\tilde v\tilde v^T`, :math:`\tilde v = (\kappa, x/R, wy)`, :math:`y = \pm 1`; its mean and covariance are
    computed exactly for :math:`x \sim N(m, \Sigma)`, by one-dimensional quadrature. A noisy record is x with Gaussian
    noise and y by randomised response.

    *Rounds.* The first round sends moments; of more than two labels, score and curvature at the model zero, which are
    the same kind of numbers. In each later one, other clients get the current model and send the score and curvature of
    their own log-likelihood there (:class:`skldp.protocols.RoundProtocol`). The mean score is zero at the maximum of
    the likelihood for **any** distribution of x, so the estimate converges to that of
    ``sklearn.linear_model.LogisticRegression`` without penalty, and more budget is not worse. One round infers
    coefficients from moments as if x were normal: on skewed columns they can be wrong by a factor of two. All rounds
    enter one posterior, see :class:`skldp.models.RoundModel`. Half of the clients are in the first round.

    *Approximations.* The mean of N moment reports and the records are assumed to be normal. The clipping of records to
    the ball is not modelled: choose a norm that few records exceed. ``inference="laplace"`` also fixes the covariance
    of the reports at a pilot estimate; with few reports its standard deviations can be half of the correct ones.
    With several rounds intervals are somewhat too narrow: in simulations from the prior 90 % intervals of two classes
    cover 88 %, and those of three classes less, where the log-odds vary by more than 2. With more than two classes and
    steep, skewed columns coefficients are biased. The intercept of a rare class (5 %) can be missed by two posterior
    standard deviations. ``tests/statistical/test_round_calibration.py`` and ``benchmarks/fig9_rounds.py`` measure this.

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
                 mechanism: Any = "auto", fit_intercept: bool = True, prior: Any = "auto", inference: Any = "mcmc",
                 random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False, features_per_client: int | None = None,
                 n_rounds: int | str = "auto") -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.classes = classes
        self.mechanism = mechanism
        self.fit_intercept = fit_intercept
        self.prior = prior
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start
        self.features_per_client = features_per_client
        self.n_rounds = n_rounds

    def _check_response(self, y):
        y = column_or_1d(y, warn=True)
        assert_all_finite(y, input_name="y", estimator_name=type(self).__name__)
        kind = type_of_target(y, input_name="y", raise_unknown=True)
        if self.classes is not None and kind == "continuous":
            return y, None  # labels such as 0.5 and 1.5 are valid if they are in the public classes
        check_classification_targets(y)
        return y, None if self.classes is not None else self._classes_of(y)

    def _classes_of(self, y):
        """Return the labels of raw responses, and warn that this publishes them."""
        warnings.warn("classes were read off the private labels, which publishes them. "
                      "Pass classes= to keep the guarantee.", PrivacyLeakWarning, stacklevel=6)
        classes = np.unique(y)
        if len(classes) < 2:
            raise ValueError(
                f"This solver needs samples of at least 2 classes in the data, but the data contains only one "
                f"class: {classes[0]!r}. Pass classes= with all labels."
            )
        if len(classes) > 2 and not self._takes_several_labels:
            raise ValueError("Only binary classification is supported. The type of the target is multiclass, and a "
                             'report of records or of some features has one of two labels. Use mechanism="auto" and '
                             "features_per_client=None for more.")
        return classes

    @property
    def _takes_several_labels(self):
        return self.features_per_client is None and not sends_records(self.mechanism)

    def _protocol(self, n_features=None, labels=None):
        classes = labels if self.classes is None else self.classes
        if classes is None:
            raise InvalidParameterError("classes must be given, because a protocol is public and contains its labels. "
                                        "Pass classes= with all labels to the estimator.")
        mechanism = check_mechanism(self.mechanism)
        domain: dict[str, Any] = {
            "epsilon": self.epsilon, "delta": self.delta, "data_norm": self.data_norm, "classes": classes,
            "n_features": 1 if n_features is None else n_features}
        if self.features_per_client is not None:
            return SampledLabelMomentProtocol(**sampled_options(self), **domain)
        if isinstance(mechanism, Records):
            return LabelRecordProtocol(budget_split=mechanism.budget_split, **domain)
        if np.ndim(classes) == 1 and len(classes) > 2:  # moments of more labels are score and curvature at zero
            return RoundProtocol(**mechanism._score_options(self.fit_intercept), **domain)
        return LabelMomentProtocol(**mechanism._options(self.fit_intercept), **domain)

    def _default_rounds(self, n_clients):
        if self.features_per_client is None and not isinstance(check_mechanism(self.mechanism), Records):
            return super()._default_rounds(n_clients)
        if check_number_of_rounds(self.n_rounds) not in (None, 1):
            what = "Noisy records" if self.features_per_client is None else "Some features of each client"
            raise InvalidParameterError(f"{what} are collected in one round, got n_rounds={self.n_rounds}. Use moments "
                                        "of all features, or n_rounds=1.")
        return 1

    def _models(self, *rounds):
        aggregate, mechanism = rounds[0], check_mechanism(self.mechanism)
        if isinstance(mechanism, Records):
            return [LogisticRecordModel(aggregate, self.prior, fit_intercept=self.fit_intercept, link=mechanism.link)]
        if len(rounds) == 1 and type(aggregate.protocol) in _MODELS:
            return [_MODELS[type(aggregate.protocol)](aggregate, self.prior)]
        return super()._models(*rounds)

    def _changeable(self):
        return super()._changeable() if self.features_per_client is None else changeable(self)

    def _describe(self, posterior, models, *rounds):
        return {**super()._describe(posterior, models, *rounds), "classes_": np.array(rounds[0].protocol.classes)}

    def _predictive(self, posterior, model):
        if isinstance(model, RoundModel):
            return super()._predictive(posterior, model)
        line = predictive_line(posterior.draws)
        # For a normal u of mean a and variance v, E expit(u) is about expit(a / sqrt(1 + pi v / 8)).
        certainty = 1 / math.sqrt(1 + math.pi * max(line.left, 0.0) / 8)
        return certainty * line.coef[None], np.array([certainty * line.intercept])

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the log-odds of the second of two classes, or the score of each of several.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            ``X @ predictive_coef_.T + predictive_intercept_``. For two classes it is positive for the second of
            ``classes_``; for more, the largest entry is that of the predicted class.
        """
        return self._scores(X)

    def _scores(self, X):
        scores = self._rows(X, stacklevel=3) @ self.predictive_coef_.T + self.predictive_intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self._scores(X)
        return np.column_stack([expit(-scores), expit(scores)]) if scores.ndim == 1 else softmax(scores, axis=1)

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Predict the labels with the largest probability.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self._takes_several_labels
        # scikit-learn's checks use too few samples for a good score.
        tags.classifier_tags.poor_score = True
        return tags
