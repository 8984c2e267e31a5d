"""Displays: pictures of posteriors, chains, calibration and the price of privacy. They need matplotlib to draw."""

from skldp._plot._coverage import CoverageDisplay
from skldp._plot._posterior import PosteriorDisplay
from skldp._plot._trace import TraceDisplay
from skldp._plot._utility import PrivacyUtilityDisplay

__all__ = [
    "CoverageDisplay",
    "PosteriorDisplay",
    "PrivacyUtilityDisplay",
    "TraceDisplay",
]
