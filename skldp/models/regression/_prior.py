"""The prior of a regression as the user specifies it, and its conversion to public units."""

import math
from dataclasses import dataclass
from typing import Any, Self

from sklearn.base import BaseEstimator

from skldp._validation._parameters import check_choice, check_positive
from skldp.exceptions import InvalidParameterError
from skldp.models.regression._coordinates import Priors
from skldp.models.regression._covariance import LEARNED_SCALES

_RIDGE = 0.01  # weight of the coefficients themselves in the prior on what the line explains
_LKJ_ETA = 0.5


class RegressionPrior(BaseEstimator):
    r"""Prior of a regression: coefficients, noise, and the distribution of x.

    "auto" is the default of the estimator that uses it. R is the estimator's ``data_norm``, :math:`R_y` half the width
    of its ``bounds_y`` (1 for the logistic regression). A number is in the units of the data.

    Parameters
    ----------
    coef : {"explained", "normal"}, default="explained"
        What has a prior of known scale: the part of the response that the line explains, or the coefficients
        themselves, which are independent and normal, as in the paper. Only the first suits columns that are correlated,
        whose coefficients can be large although the line explains little.
    coef_scale : "auto" or float, default="auto"
        If ``coef="explained"``, the typical standard deviation of what the line explains; "auto" is :math:`R_y/4` for
        the linear and 1.25 for the logistic regression, whose line explains log-odds. If ``coef="normal"``, the
        standard deviation of a coefficient; "auto" is :math:`R_y/(2R)` or 2.5/R.
    covariance_scale : "auto" or float, default="auto"
        Scale of the half-normal prior of the standard deviations of x. "auto" takes them to be similar, with a common
        scale that is learned from the reports.
    mean_scale : "auto" or float, default="auto"
        Standard deviation of the means of x, if there is an intercept. "auto" learns it from the reports, between R/200
        and R/2.
    sigma_scale : "auto" or float, default="auto"
        Scale of the half-normal prior of the residual standard deviation. "auto" is :math:`R_y/2`. Unused if the model
        has no such parameter.
    lkj_eta : "auto" or float, default="auto"
        Parameter of the LKJ prior of the correlations of x. "auto" is 0.5: correlations close to 1 and -1 are as likely
        as among real columns. Use a large number such as 20 if columns are known to be nearly uncorrelated, as
        principal components are.

    See Also
    --------
    LDPBayesLinearRegression, LDPBayesLogisticRegression : Estimators that take it as ``prior``.

    Notes
    -----
    It has ``get_params`` and ``set_params``, so a grid search can vary ``prior__coef_scale``.

    With records x/R, responses :math:`y/R_y` and the scale g, the prior of the coefficients is a multivariate t with
    three degrees of freedom,

    .. math:: \theta | \Sigma \sim t_3(0, g^2K^{-1}), \qquad K = d\Sigma + 0.01 I,

    so that :math:`\theta^T\Sigma\theta` is about :math:`g^2` for any correlations of the d columns. The small multiple
    of the identity bounds coefficients of columns that barely vary. ``coef="normal"`` has K = I and a normal
    distribution.

    References
    ----------
    T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela (2022). Locally differentially private Bayesian inference. AISTATS.

    Examples
    --------
    >>> from skldp import LDPBayesLinearRegression, RegressionPrior
    >>> model = LDPBayesLinearRegression(prior=RegressionPrior(mean_scale=0.1))
    >>> model.set_params(prior__coef_scale=2.0).prior
    RegressionPrior(coef_scale=2.0, mean_scale=0.1)
    >>> RegressionPrior.paper()
    RegressionPrior(coef='normal', coef_scale=2.23..., covariance_scale=2.5, lkj_eta=2.0)
    """

    def __init__(self, *, coef: str = "explained", coef_scale: float | str = "auto",
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

    explained: float
    coef: float
    intercept: float
    sigma: float | None = None
    learned_scales: tuple[float, float] = LEARNED_SCALES


def check_regression_prior(prior):
    """Return the :class:`RegressionPrior` itself, or the default for "auto"."""
    if isinstance(prior, str) and prior == "auto":
        return RegressionPrior()
    if not isinstance(prior, RegressionPrior):
        raise InvalidParameterError(f'prior must be "auto" or a RegressionPrior, got {prior!r}.')
    return prior


def priors_in_public_units(prior, default, n_features, x_unit, y_unit=1.0):
    """Return the :class:`Priors` in public units, x/x_unit and y/y_unit, for a prior in the units of the data."""
    explained = check_choice(prior.coef, "coef", {"explained": True, "normal": False})
    coef_unit, coef_default = (y_unit, default.explained) if explained else (y_unit / x_unit, default.coef)
    sigma = _scale(prior.sigma_scale, "sigma_scale", y_unit, default.sigma)
    return Priors(
        coef_scale=_scale(prior.coef_scale, "coef_scale", coef_unit, coef_default),
        explained_weight=float(n_features) if explained else 0.0,
        ridge=_RIDGE if explained else 1.0,
        learns_coef_scale=explained,
        intercept_scale=default.intercept,
        covariance_scale=_scale(prior.covariance_scale, "covariance_scale", x_unit, None),
        lkj_eta=_scale(prior.lkj_eta, "lkj_eta", 1.0, _LKJ_ETA),
        mean_scale=_scale(prior.mean_scale, "mean_scale", x_unit, None),
        sigma_scale=None if default.sigma is None else sigma,
        learned_scales=default.learned_scales,
    )


def _scale(value: Any, name, unit, default):
    """Return a scale in public units: the default for "auto", or a number divided by its unit."""
    if isinstance(value, str):
        if value == "auto":
            return default
        raise InvalidParameterError(f'{name} must be "auto" or a positive number, got {value!r}.')
    return check_positive(value, name) / unit
