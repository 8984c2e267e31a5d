"""The prior of a regression as the user specifies it, and its conversion to public units."""

import math
from dataclasses import dataclass
from typing import Any, Self

from sklearn.base import BaseEstimator

from skldp._validation._parameters import check_choice, check_positive
from skldp.exceptions import InvalidParameterError
from skldp.models.regression._coordinates import Priors
from skldp.models.regression._covariance import CovarianceCoordinates
from skldp.models.regression._covariance_priors import FixedCorrelations, LearnedCorrelations, LearnedScales
from skldp.models.regression._vector_priors import LearnedMeans, NormalPrior, StudentPrior

LEARNED = "learned"
_COEF = {"student": StudentPrior, "normal": lambda scale, n_features: NormalPrior(scale)}


class RegressionPrior(BaseEstimator):
    r"""Prior of a regression: coefficients, noise, and the distribution of x.

    "auto" is the default of the estimator that uses it. R is the estimator's ``data_norm``, :math:`R_y` half the width
    of its ``bounds_y``. A number is in the units of the data.

    Parameters
    ----------
    coef : {"student", "normal"}, default="student"
        Distribution of the coefficients: a multivariate t with three degrees of freedom, which is a normal
        distribution with a learned scale; or independent normal distributions, as in the paper.
    coef_scale : "auto" or float, default="auto"
        Scale of the coefficients. "auto" is :math:`R_y/(2R)` for the linear and 2.5/R for the logistic regression.
    covariance_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the signed scales of x. "auto" is R/2. "learned" gives the variances of x a Gamma
        distribution whose mean and shape are learned from the reports.
    mean_scale : "auto", "learned" or float, default="auto"
        Standard deviation of the means of x, if there is an intercept. Use a small number such as R/50 if columns
        were centred with public constants. "learned" learns it from the reports, between R/200 and R/2. "auto" is R/2;
        for the logistic regression from moments it is "learned" (R/2 with a Laplace approximation, which uses only the
        mode).
    sigma_scale : "auto" or float, default="auto"
        Scale of the half-normal prior of the residual standard deviation. "auto" is :math:`R_y/2`. Unused if the model
        has no such parameter.
    lkj_eta : "auto", "learned" or float, default="auto"
        Parameter of the LKJ prior of the correlations of x. Use a large number such as 20 if columns are known to be
        nearly uncorrelated, as principal components are. "learned" learns it from the reports, between 1 and 300.
        "auto" is 2; for the logistic regression from moments it is "learned" (2 with a Laplace approximation).

    See Also
    --------
    LDPBayesLinearRegression, LDPBayesLogisticRegression : Estimators that take it as ``prior``.

    Notes
    -----
    It has ``get_params`` and ``set_params``, so a grid search can vary ``prior__coef_scale``.

    References
    ----------
    T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela (2022). Locally differentially private Bayesian inference. AISTATS.

    Examples
    --------
    >>> from skldp import LDPBayesLinearRegression, RegressionPrior
    >>> model = LDPBayesLinearRegression(prior=RegressionPrior(mean_scale="learned"))
    >>> model.set_params(prior__coef_scale=2.0).prior
    RegressionPrior(coef_scale=2.0, mean_scale='learned')
    >>> RegressionPrior.paper()
    RegressionPrior(coef='normal', coef_scale=2.23..., covariance_scale=2.5, lkj_eta=2.0)
    """

    def __init__(self, *, coef: str = "student", coef_scale: float | str = "auto",
                 covariance_scale: float | str = "auto", mean_scale: float | str = "auto",
                 sigma_scale: float | str = "auto", lkj_eta: float | str = "auto") -> None:
        self.coef = coef
        self.coef_scale = coef_scale
        self.covariance_scale = covariance_scale
        self.mean_scale = mean_scale
        self.sigma_scale = sigma_scale
        self.lkj_eta = lkj_eta

    @classmethod
    def paper(cls) -> Self:
        """Return the prior of Kulkarni et al. (2022): N(0, 5 I) coefficients, N(0, 2.5) scales of x, LKJ(2).

        Returns
        -------
        RegressionPrior
        """
        return cls(coef="normal", coef_scale=math.sqrt(5), covariance_scale=2.5, lkj_eta=2.0)


@dataclass(frozen=True)
class DefaultScales:
    """Values for "auto" in a :class:`RegressionPrior`, in public units: x of norm 1, responses between -1 and 1."""

    coef: float
    intercept: float
    sigma: float | None = None
    covariance: float | str = 0.5
    mean: float | str = 0.5
    lkj_eta: float | str = 2.0


def check_regression_prior(prior):
    """Return the :class:`RegressionPrior` itself, or the default for "auto"."""
    if isinstance(prior, str) and prior == "auto":
        return RegressionPrior()
    if not isinstance(prior, RegressionPrior):
        raise InvalidParameterError(f'prior must be "auto" or a RegressionPrior, got {prior!r}.')
    return prior


def priors_in_public_units(prior, default, n_features, x_unit, y_unit=1.0):
    """Return the :class:`Priors` in public units for a prior in the units of the data.

    Parameters
    ----------
    prior : RegressionPrior
        The user's prior, in the units of the data.
    default : DefaultScales
        Values for "auto".
    n_features : int
        Number of coefficients.
    x_unit, y_unit : float
        Divisors of x and of the response.
    """
    family = check_choice(prior.coef, "coef", _COEF)
    coef = _scale(prior.coef_scale, "coef_scale", y_unit / x_unit, default.coef)
    covariance = _scale(prior.covariance_scale, "covariance_scale", x_unit, default.covariance, learnable=True)
    mean = _scale(prior.mean_scale, "mean_scale", x_unit, default.mean, learnable=True)
    sigma = _scale(prior.sigma_scale, "sigma_scale", y_unit, default.sigma)
    eta = _scale(prior.lkj_eta, "lkj_eta", 1.0, default.lkj_eta, learnable=True)
    correlations = LearnedCorrelations(n_features) if eta == LEARNED else FixedCorrelations(n_features, eta)
    scales = LearnedScales(n_features) if covariance == LEARNED else NormalPrior(covariance)
    return Priors(
        coef=family(coef, n_features),
        intercept_scale=default.intercept,
        covariance=CovarianceCoordinates(n_features, scales, correlations),
        mean=LearnedMeans(n_features) if mean == LEARNED else NormalPrior(mean),
        sigma_scale=None if default.sigma is None else sigma,
    )


def _scale(value: Any, name, unit, default, learnable=False):
    """Return a scale in public units: the default for "auto", "learned" unchanged, or a number divided by its unit."""
    words = ("auto", LEARNED) if learnable else ("auto",)
    if isinstance(value, str) and value in words:
        return default if value == "auto" else value
    if isinstance(value, str):
        raise InvalidParameterError(f"{name} must be {' or '.join(map(repr, words))} or a positive number, got "
                                    f"{value!r}.")
    return check_positive(value, name) / unit
