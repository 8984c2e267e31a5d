"""Priors of regressions in few words, for tests that go over many."""

from skldp import RegressionPrior
from skldp.models.regression._covariance import CovarianceCoordinates
from skldp.models.regression._covariance_priors import FixedCorrelations, LearnedCorrelations, LearnedScales
from skldp.models.regression._vector_priors import NormalPrior


def prior(coef_scale="auto", **scales):
    """A t prior of the default scale, or a normal one of a given scale."""
    family = "student" if coef_scale == "auto" else "normal"
    return RegressionPrior(coef=family, coef_scale=coef_scale, **scales)


def covariance_coordinates(d, scale, eta):
    """Coordinates of a covariance matrix, with learned priors or fixed ones."""
    scales = LearnedScales(d) if scale == "learned" else NormalPrior(scale)
    correlations = LearnedCorrelations(d) if eta == "learned" else FixedCorrelations(d, eta)
    return CovarianceCoordinates(d, scales, correlations)
