"""Bayesian inference under local differential privacy, for scikit-learn users.

Public names are imported on first use, so that a client that needs the randomisers only starts fast.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from skldp._category_perturbers import (
        RandomizedResponsePerturber,
        SubsetSelectionPerturber,
        UnaryEncodingPerturber,
    )
    from skldp._distribution import LDPDistribution
    from skldp._histogram import LDPHistogram
    from skldp._linear_regression import LDPBayesLinearRegression
    from skldp._logistic_regression import LDPBayesLogisticRegression
    from skldp._perturbers import GaussianPerturber, LaplacePerturber, SpherePerturber, SquareWavePerturber
    from skldp._planning import required_reports
    from skldp._plot import CoverageDisplay, PosteriorDisplay, PrivacyUtilityDisplay, TraceDisplay
    from skldp._rates import LDPExponential, LDPGeometric, LDPPoisson
    from skldp._report_checks._check import ReportCheck
    from skldp._scaler import BoundedScaler
    from skldp._sgd import LDPSGDClassifier, LDPSGDRegressor
    from skldp._show_versions import show_versions
    from skldp._simplex import project_on_simplex
    from skldp._univariate import LDPGaussian

_MODULES = {
    "BoundedScaler": "_scaler",
    "CoverageDisplay": "_plot",
    "GaussianPerturber": "_perturbers",
    "LDPBayesLinearRegression": "_linear_regression",
    "LDPBayesLogisticRegression": "_logistic_regression",
    "LDPDistribution": "_distribution",
    "LDPExponential": "_rates",
    "LDPGaussian": "_univariate",
    "LDPGeometric": "_rates",
    "LDPHistogram": "_histogram",
    "LDPPoisson": "_rates",
    "LDPSGDClassifier": "_sgd",
    "LDPSGDRegressor": "_sgd",
    "LaplacePerturber": "_perturbers",
    "PosteriorDisplay": "_plot",
    "PrivacyUtilityDisplay": "_plot",
    "RandomizedResponsePerturber": "_category_perturbers",
    "ReportCheck": "_report_checks._check",
    "SpherePerturber": "_perturbers",
    "SquareWavePerturber": "_perturbers",
    "SubsetSelectionPerturber": "_category_perturbers",
    "TraceDisplay": "_plot",
    "UnaryEncodingPerturber": "_category_perturbers",
    "project_on_simplex": "_simplex",
    "required_reports": "_planning",
    "show_versions": "_show_versions",
}

__all__ = [
    "BoundedScaler",
    "CoverageDisplay",
    "GaussianPerturber",
    "LDPBayesLinearRegression",
    "LDPBayesLogisticRegression",
    "LDPDistribution",
    "LDPExponential",
    "LDPGaussian",
    "LDPGeometric",
    "LDPHistogram",
    "LDPPoisson",
    "LDPSGDClassifier",
    "LDPSGDRegressor",
    "LaplacePerturber",
    "PosteriorDisplay",
    "PrivacyUtilityDisplay",
    "RandomizedResponsePerturber",
    "ReportCheck",
    "SpherePerturber",
    "SquareWavePerturber",
    "SubsetSelectionPerturber",
    "TraceDisplay",
    "UnaryEncodingPerturber",
    "__version__",
    "project_on_simplex",
    "required_reports",
    "show_versions",
]


def __getattr__(name):
    if name in _MODULES:
        return getattr(import_module(f"skldp.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'skldp' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
