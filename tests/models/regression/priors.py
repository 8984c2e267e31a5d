"""Short constructors of priors of regressions, for parametrised tests."""

from skldp import RegressionPrior
from skldp.models.regression._covariance import CovarianceCoordinates
from skldp.models.regression._covariance_priors import FixedCorrelations, LearnedCorrelations, LearnedScales
from skldp.models.regression._vector_priors import NormalPrior


def prior(coef_scale="auto", **scales):
    """Return a t prior with the default scale, or a normal prior with a given scale."""
    family = "student" if coef_scale == "auto" else "normal"
    return RegressionPrior(coef=family, coef_scale=coef_scale, **scales)


def covariance_coordinates(d, scale, eta):
    """Return coordinates of a covariance matrix, with learned or fixed priors."""
    scales = LearnedScales(d) if scale == "learned" else NormalPrior(scale)
    correlations = LearnedCorrelations(d) if eta == "learned" else FixedCorrelations(d, eta)
    return CovarianceCoordinates(d, scales, correlations)
