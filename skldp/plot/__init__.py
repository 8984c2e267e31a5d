"""Displays: plots of posteriors, chains, coverage, and scores against epsilon. Drawing needs matplotlib."""

from skldp.plot._coefficients import CoefficientDisplay
from skldp.plot._coverage import CoverageDisplay
from skldp.plot._density import DensityDisplay
from skldp.plot._posterior import PosteriorDisplay
from skldp.plot._trace import TraceDisplay
from skldp.plot._utility import PrivacyUtilityDisplay

__all__ = [
    "CoefficientDisplay",
    "CoverageDisplay",
    "DensityDisplay",
    "PosteriorDisplay",
    "PrivacyUtilityDisplay",
    "TraceDisplay",
]
