"""Bayesian inference under local differential privacy, for scikit-learn users."""

__version__ = "0.1.0"
