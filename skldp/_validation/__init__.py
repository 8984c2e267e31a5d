"""Checks of public parameters, conversion of private values, and size limits of untrusted input."""
