"""Bayesian inference under local differential privacy, for scikit-learn users.

Public names are imported on first use, so that a client that needs the randomisers only starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from skldp._show_versions import show_versions
    from skldp.analysis._fit_checks import FitCheck
    from skldp.analysis._mean_check import MeanCheck
    from skldp.analysis._planning import required_reports
    from skldp.analysis.report_checks._check import ReportCheck
    from skldp.estimators._covariance import LDPCovariance
    from skldp.estimators._density import LDPDensity
    from skldp.estimators._distribution import LDPDistribution
    from skldp.estimators._histogram import LDPHistogram
    from skldp.estimators._linear_regression import LDPBayesLinearRegression
    from skldp.estimators._logistic_regression import LDPBayesLogisticRegression
    from skldp.estimators._mechanisms import Moments, Records
    from skldp.estimators._pca import LDPPCA
    from skldp.estimators._poisson_regression import LDPBayesPoissonRegression
    from skldp.estimators._rates import LDPExponential, LDPGeometric, LDPPoisson
    from skldp.estimators._rounds import RoundServer
    from skldp.estimators._values import LDPGaussian
    from skldp.gradients._sgd import LDPSGDClassifier, LDPSGDRegressor
    from skldp.models.categories._simplex import project_on_simplex
    from skldp.models.regression._prior import RegressionPrior
    from skldp.plot import (
        CoefficientDisplay,
        CoverageDisplay,
        DensityDisplay,
        PosteriorDisplay,
        PrivacyUtilityDisplay,
        TraceDisplay,
    )
    from skldp.sampling._inference import MCMC, LaplaceApproximation
    from skldp.transformers._category_perturbers import (
        RandomizedResponsePerturber,
        SubsetSelectionPerturber,
        UnaryEncodingPerturber,
    )
    from skldp.transformers._perturbers import GaussianPerturber, LaplacePerturber, SpherePerturber, SquareWavePerturber
    from skldp.transformers._public_columns import PublicColumns
    from skldp.transformers._scaler import BoundedScaler

_MODULES = {
    "BoundedScaler": "transformers._scaler",
    "CoefficientDisplay": "plot",
    "CoverageDisplay": "plot",
    "DensityDisplay": "plot",
    "FitCheck": "analysis._fit_checks",
    "GaussianPerturber": "transformers._perturbers",
    "LDPBayesLinearRegression": "estimators._linear_regression",
    "LDPBayesLogisticRegression": "estimators._logistic_regression",
    "LDPBayesPoissonRegression": "estimators._poisson_regression",
    "LDPCovariance": "estimators._covariance",
    "LDPDensity": "estimators._density",
    "LDPDistribution": "estimators._distribution",
    "LDPExponential": "estimators._rates",
    "LDPGaussian": "estimators._values",
    "LDPGeometric": "estimators._rates",
    "LDPHistogram": "estimators._histogram",
    "LDPPCA": "estimators._pca",
    "LDPPoisson": "estimators._rates",
    "LDPSGDClassifier": "gradients._sgd",
    "LDPSGDRegressor": "gradients._sgd",
    "LaplaceApproximation": "sampling._inference",
    "LaplacePerturber": "transformers._perturbers",
    "MCMC": "sampling._inference",
    "MeanCheck": "analysis._mean_check",
    "Moments": "estimators._mechanisms",
    "PosteriorDisplay": "plot",
    "PrivacyUtilityDisplay": "plot",
    "PublicColumns": "transformers._public_columns",
    "RandomizedResponsePerturber": "transformers._category_perturbers",
    "Records": "estimators._mechanisms",
    "RegressionPrior": "models.regression._prior",
    "ReportCheck": "analysis.report_checks._check",
    "RoundServer": "estimators._rounds",
    "SpherePerturber": "transformers._perturbers",
    "SquareWavePerturber": "transformers._perturbers",
    "SubsetSelectionPerturber": "transformers._category_perturbers",
    "TraceDisplay": "plot",
    "UnaryEncodingPerturber": "transformers._category_perturbers",
    "project_on_simplex": "models.categories._simplex",
    "required_reports": "analysis._planning",
    "show_versions": "_show_versions",
}

__all__ = ["__version__", *_MODULES]


def __getattr__(name):
    if name in _MODULES:
        return getattr(import_module(f"skldp.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'skldp' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
