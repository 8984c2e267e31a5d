"""Checks of public parameters, the one door for private values, and the limits of what is read."""
