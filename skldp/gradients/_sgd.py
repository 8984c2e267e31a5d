"""Classifier and regressor by private stochastic gradient descent, the interactive baseline."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.multiclass import check_classification_targets

from skldp.exceptions import PrivacyLeakWarning
from skldp.gradients._base import BaseLDPSGD
from skldp.protocols._gradient_protocol import GradientProtocol


class LDPSGDClassifier(ClassifierMixin, BaseLDPSGD):
    r"""Logistic regression by private stochastic gradient descent, an interactive baseline.

    Users are split into groups, one for each round. Each user of a group receives the current model and sends one
    report: the gradient of their own loss, clipped to norm ``clip_norm`` and randomised. The aggregator then takes a
    step along the mean of the reports.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability; for Gaussian noise only.
    data_norm : float, default=1.0
        Public radius; rows of X are clipped to norm ``data_norm``.
    classes : list of labels or None, default=None
        The public labels, two or more. ``None`` reads them from y and warns.
    mechanism : {"gaussian", "sphere"}, default="gaussian"
        Gaussian noise, as in the paper, or the sphere: pure epsilon with 6 to 10 times less variance.
    group_size : "auto" or int, default="auto"
        Number of users of a round. "auto" is :math:`\lceil c\,d\log d/\epsilon^2\rceil` with c = 20 and d the number of
        entries of the gradient, at least 100 and at most an eighth of the users. The sizes of groups differ by at most
        one user. No group is smaller than this, unless there are fewer users in all: then they are one group.
    learning_rate : {"optimal", "constant", "invscaling"}, default="optimal"
        Schedule of the step sizes; "optimal" depends on the noise and the number of rounds, see
        :class:`skldp.protocols.GradientServer`.
    eta0 : float, default=1.0
        Scale of the steps, in coordinates where x has norm at most 1. With "optimal" it is approximately the norm of
        the noise in the model.
    clip_norm : float, default=1.0
        Public norm to which gradients are clipped; the noise is proportional to it. The norm of the logistic gradient
        is at most that of the row (with the constant), and half of that at the start: 0.5 clips little and halves the
        noise. With K > 2 labels it is at most 1.41 times that of the row, and :math:`\sqrt{1 - 1/K}` times at the
        start.
    average : bool or int, default=False
        Whether the result is the mean of the models over the rounds; with an integer above 1 the mean starts after that
        many users. With the default schedule the last model is better than the mean.
    fit_intercept : bool, default=True
        Whether to fit an intercept.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the users' order and of the simulated noise. The noise also depends on the records, the model and the
        round, so that it differs between rounds.
    progress : bool, default=False
        Show a progress bar over the rounds.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), or (n_classes, n_features) for more than two labels
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Rows of more than two labels add up to zero.
    classes_ : ndarray of shape (n_classes,)
        The labels, in order.
    n_rounds_, n_messages_, n_rejected_ : int
        Numbers of rounds, of valid reports (one for each user), and of rejected reports.
    loss_curve_ : ndarray of shape (n_rounds,)
        Estimate, **from the reports alone**, of the mean loss of the model sent in each round, minus the mean loss of
        the initial model. It starts at 0 and becomes negative as the model improves. It is noisy and costs no privacy.
    epsilon_, delta_ : float
        Budget spent by each client.
    server_, protocol_ : GradientServer, GradientProtocol
        The aggregator after the last round, and the protocol of each client.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    :math:`P(y = 1|x) = 1/(1 + e^{-\alpha - \theta\cdot x})` for two labels, and
    :math:`P(y = k|x) \propto e^{\alpha_k + \theta_k\cdot x}` for more, without regularisation. A report has d + 1
    entries for two labels and (K - 1)(d + 1) for K; the noise of the model grows with their number. :meth:`fit` puts
    the users in random order, because in a sorted file each group would have one class only. If all data have one
    label, the model learns to predict it; with ``classes=None`` they are an error.

    References
    ----------
    J. Duchi, M. Jordan, M. Wainwright (2018). Minimax optimal procedures for locally private estimation. JASA.

    T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela (2022). Locally differentially private Bayesian inference. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPSGDClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(20_000, 3))
    >>> y = np.where(X[:, 0] + 0.1 * rng.normal(size=20_000) > 0, "yes", "no")
    >>> model = LDPSGDClassifier(epsilon=2.0, mechanism="sphere", classes=["no", "yes"], random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.85), model.delta_
    (True, 0.0)
    """

    def __init__(self, *, epsilon: float = 1.0, delta: float = 1e-5, data_norm: float = 1.0, classes: Any = None,
                 mechanism: str = "gaussian", group_size: int | str = "auto", learning_rate: str = "optimal",
                 eta0: float = 1.0, clip_norm: float = 1.0, average: bool = False,
                 fit_intercept: bool = True, random_state: Any = None, progress: bool = False) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.classes = classes
        self.mechanism = mechanism
        self.group_size = group_size
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.clip_norm = clip_norm
        self.average = average
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.progress = progress

    def _protocol(self, n_features, classes=None):
        if classes is None and self.classes is not None:
            classes = np.unique(self.classes)
        loss = "softmax" if classes is not None and len(classes) > 2 else "logistic"
        return GradientProtocol(epsilon=self.epsilon, delta=self.delta, data_norm=self.data_norm, loss=loss,
                                classes=classes, mechanism=self.mechanism, clip_norm=self.clip_norm,
                                fit_intercept=self.fit_intercept, n_features=n_features)

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: ArrayLike | None = None) -> Self:
        """Run one more round with the rows of X as its group, which must be new users.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records of the group, of any size.
        y : array-like of shape (n_clients,)
            Labels.
        classes : list of labels or None
            The public labels, if the parameter ``classes`` is ``None``; given in the first call.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y, classes)

    def _read(self, X, y, classes, reset):
        X, y = self._check_X_y(X, y, reset)
        if reset:
            labels = self._labels(y, classes)
        else:
            labels = self.classes_ if classes is None else np.unique(classes)
        protocol = self._protocol(X.shape[1], labels)
        if not np.isin(y, labels).all():
            raise ValueError("y has labels that are none of classes. Add them to classes, or leave their rows out of X "
                             "and y.")
        return X, y, protocol

    def _labels(self, y, classes):
        given = self.classes if self.classes is not None else classes
        if given is not None:
            return np.unique(given)
        labels = np.unique(y)
        if len(labels) > 2:
            check_classification_targets(y)
        if len(labels) < 2:
            raise ValueError("y holds one class only. Pass classes= with all labels: they are public.")
        warnings.warn(
            "classes were read off the private data, which publishes them. Pass classes= to keep the guarantee.",
            PrivacyLeakWarning,
            stacklevel=5,
        )
        return labels

    def _adopt(self, server):
        super()._adopt(server)
        self.coef_, self.intercept_ = np.atleast_2d(self.coef_), np.atleast_1d(self.intercept_)
        self.classes_ = np.array(server.protocol.classes)
        return self

    def decision_function(self, X: ArrayLike) -> np.ndarray:
        """Return the logit of the second of two classes, or the scores of more classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        return self._linear(X)

    def predict_proba(self, X: ArrayLike) -> np.ndarray:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self.decision_function(X)
        if scores.ndim == 2:
            return softmax(scores, axis=1)
        return np.column_stack([expit(-scores), expit(scores)])

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the most probable class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return self.classes_[scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags


class LDPSGDRegressor(RegressorMixin, BaseLDPSGD):
    r"""Linear regression by private stochastic gradient descent, an interactive baseline.

    Parameters
    ----------
    epsilon, delta, data_norm, mechanism, group_size, learning_rate
        As in :class:`LDPSGDClassifier`.
    clip_norm, average, fit_intercept, random_state, progress
        As in :class:`LDPSGDClassifier`.
    bounds_y : tuple of float, default=(-1, 1)
        Public interval of the response; responses are clipped to it.
    eta0 : float, default=0.3
        Scale of the steps, in coordinates where x has norm at most 1 and y lies between -1 and 1. With "optimal" it is
        approximately the norm of the noise in the model.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    n_rounds_, n_messages_, n_rejected_, loss_curve_, epsilon_, delta_, server_, protocol_
        As in :class:`LDPSGDClassifier`.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Notes
    -----
    The loss is :math:`\frac12(\theta\cdot x + \alpha - y)^2` without regularisation, in scaled coordinates. Gradients
    are clipped to ``clip_norm``, which reduces the influence of large residuals, as Huber's loss does. The initial
    model predicts the midpoint of ``bounds_y`` with an intercept, and 0 without. A constant response is learned as an
    intercept.

    References
    ----------
    J. Duchi, M. Jordan, M. Wainwright (2018). Minimax optimal procedures for locally private estimation. JASA.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPSGDRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-0.5, 0.5, size=(50_000, 3))
    >>> y = X[:, 0] + 0.1 * rng.normal(size=50_000)
    >>> model = LDPSGDRegressor(epsilon=4.0, mechanism="sphere", random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.5)
    True
    """

    def __init__(self, *, epsilon: float = 1.0, delta: float = 1e-5, data_norm: float = 1.0,
                 bounds_y: tuple[float, float] = (-1, 1), mechanism: str = "gaussian",
                 group_size: int | str = "auto", learning_rate: str = "optimal", eta0: float = 0.3,
                 clip_norm: float = 1.0, average: bool = False, fit_intercept: bool = True,
                 random_state: Any = None, progress: bool = False) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.data_norm = data_norm
        self.bounds_y = bounds_y
        self.mechanism = mechanism
        self.group_size = group_size
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.clip_norm = clip_norm
        self.average = average
        self.fit_intercept = fit_intercept
        self.random_state = random_state
        self.progress = progress

    def _protocol(self, n_features, classes=None):
        return GradientProtocol(epsilon=self.epsilon, delta=self.delta, data_norm=self.data_norm, loss="squared",
                                bounds_y=self.bounds_y, mechanism=self.mechanism, clip_norm=self.clip_norm,
                                fit_intercept=self.fit_intercept, n_features=n_features)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Run one more round with the rows of X as its group, which must be new users.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records of the group, of any size.
        y : array-like of shape (n_clients,)
            Responses.

        Returns
        -------
        self
        """
        return self._partial_fit(X, y)

    def _read(self, X, y, classes, reset):
        X, y = self._check_X_y(X, y, reset, y_numeric=True)
        return X, y, self.protocol(X.shape[1])

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the predicted responses, not clipped to ``bounds_y``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points; they are not clipped.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._linear(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags
