"""Mean and covariance of a vector from private reports."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.covariance import EmpiricalCovariance

from skldp.analysis._planning import plan_covariance
from skldp.analysis._regression_checks import covariance_information, warn_about_covariance
from skldp.estimators._mechanisms import Moments, check_mechanism
from skldp.estimators._moment_estimator import BaseMomentEstimator
from skldp.exceptions import InvalidParameterError
from skldp.models.regression._covariance_model import CovarianceModel
from skldp.protocols._moment_protocol import CovarianceProtocol


class BaseLDPCovariance(BaseMomentEstimator):
    """An estimator of the covariance of a vector of bounded norm."""

    _mean_name = "location"

    def _protocol(self, n_features=None, labels=None):
        mechanism = check_mechanism(self.mechanism)
        if not isinstance(mechanism, Moments):
            raise InvalidParameterError(f"{type(self).__name__} needs moments of records: mechanism={self.mechanism!r} "
                                        'reports noisy records. Choose "auto", "sphere", "axis", "gaussian" or '
                                        "Moments(...).")
        options = mechanism._options(not self.assume_centered)
        del options["y_weight"]  # there is no response
        return CovarianceProtocol(epsilon=self.epsilon, delta=self.delta, data_norm=self.data_norm,
                                  n_features=1 if n_features is None else n_features, **options)

    def _models(self, aggregate):
        return [CovarianceModel(aggregate, self.prior, self._mean_name)]

    @staticmethod
    def _informed(model, posterior):
        """Return the posterior with the bits that variances and correlations have gained."""
        bits = covariance_information(posterior.draws["covariance"], *model.coordinates.matrix.prior_deviations())
        return replace(posterior, information={"covariance": bits})

    def _warn(self):
        warn_about_covariance(self.aggregate_, self.information_["covariance"], stacklevel=3)


class LDPCovariance(BaseLDPCovariance, EmpiricalCovariance):
    r"""Mean and covariance of a vector from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability of the guarantee, if the mechanism has one (Gaussian noise).
    data_norm : float, default=1.0
        Public bound R on the Euclidean norm of a record; longer records are shortened.
    mechanism : {"auto", "sphere", "axis", "gaussian"} or Moments, default="auto"
        How second moments are randomised: on a sphere or by their axis (pure epsilon), or with Gaussian noise. "auto"
        is the sphere or the axis, by the budget and the number of features: :func:`skldp.protocols.moment_mechanism`.
    assume_centered : bool, default=False
        Whether the mean is known to be zero. It is then not reported, which saves noise, and the covariance stands for
        the second moments.
    prior : "auto" or RegressionPrior, default="auto"
        Priors of the scales, correlations and means of the columns. Those of coefficients and residuals are not used.
    inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    location_ : ndarray of shape (n_features,)
        Posterior mean of the mean; zero with ``assume_centered``.
    covariance_, covariance_std_ : ndarray of shape (n_features, n_features)
        Posterior means and standard deviations of the covariances.
    precision_ : ndarray of shape (n_features, n_features)
        Inverse of ``covariance_``.
    information_ : dict
        ``"covariance"``: log2 of prior over posterior standard deviations, in bits; of the logarithms of the variances
        on the diagonal, and elsewhere of the correlations. Near 0 the reports say nothing.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`; ``fit_check_`` is None. The draws are ``location`` and ``covariance``.

    Warns
    -----
    ScaleWarning
        If the reports show that most records exceed ``data_norm``, or are far below it.
    FewReportsWarning
        If the posterior of most variances or correlations is nearly the prior.

    See Also
    --------
    LDPPCA : Principal components from the same reports.

    Notes
    -----
    The model is :math:`x \sim N(m, \Sigma)`. A client reports the noisy svec of :math:`\tilde v\tilde v^T`,
    :math:`\tilde v = (\kappa, x/R)`: that of a linear regression without the response. ``get_precision``,
    ``mahalanobis``, ``score`` and ``error_norm`` are those of ``sklearn.covariance.EmpiricalCovariance``.

    *Approximations.* The mean of N reports and the records are assumed to be normal, and the clipping of records to the
    ball is not modelled: choose ``data_norm`` such that few records exceed it.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPCovariance
    >>> truth = np.array([[0.08, 0.03], [0.03, 0.04]])
    >>> X = np.random.default_rng(0).multivariate_normal([0.1, 0.0], truth, size=50_000)
    >>> model = LDPCovariance(epsilon=2.0, random_state=0).fit(X)
    >>> bool(np.abs(model.covariance_ - truth).max() < 5 * model.covariance_std_.max())
    True
    >>> low, high = model.posterior_.interval(0.99)["covariance"][0, 1]
    >>> bool(low < 0.03 < high)
    True
    """

    store_precision = True  # of EmpiricalCovariance

    def __init__(self, *, epsilon: float = 1.0, delta: float = 1e-5, data_norm: float = 1.0, mechanism: Any = "auto",
                 assume_centered: bool = False, prior: Any = "auto", inference: Any = "mcmc", random_state: Any = None,
                 n_jobs: int | None = None, progress: bool = False, warm_start: bool = False) -> None:
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

    _plan = staticmethod(plan_covariance)

    def _describe(self, posterior, models, aggregate):
        mean, posterior = posterior.mean(), self._informed(models[0], posterior)
        covariance = mean["covariance"]
        return {
            "location_": mean.get("location", np.zeros(len(covariance))),
            "covariance_": covariance,
            "covariance_std_": posterior.std()["covariance"],
            "precision_": np.linalg.inv(covariance),
            "information_": posterior.information,
            "posterior_": posterior,
        }
