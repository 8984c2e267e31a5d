"""Mechanisms of vectors by name: the randomiser, the sums that its reports can have, and what one report can change."""

import numpy as np

from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._sphere import RESOLUTION, Sphere
from skldp.protocols._possible_sums import within_box, within_sphere


def _sphere(delta, **options):
    """Return the sphere mechanism, which is pure: delta is not used."""
    return Sphere(**options)


def _within_clamps(sums, n_reports, gaussian):
    """Whether ``n_reports`` valid reports with Gaussian noise can have these sums."""
    return within_box(sums, n_reports * gaussian.clamp[1])


MECHANISMS: dict = {"gaussian": Gaussian, "sphere": _sphere}
_POSSIBLE: dict = {Gaussian: _within_clamps, Sphere: within_sphere}
# Length of a report along each axis, and the norm of slopes to which the largest effect of one report is proportional.
_REACH: dict = {Gaussian: lambda gaussian: gaussian.clamp[1], Sphere: lambda sphere: RESOLUTION}
_NORMS: dict = {Gaussian: 1, Sphere: 2}


def possible_vector_sums(sums, n_reports, mechanism):
    """Whether ``n_reports`` valid reports of a mechanism can have these sums."""
    return _POSSIBLE[type(mechanism)](sums, n_reports, mechanism)


def vector_directions(mechanism):
    """Directions in which one report can change the sums: the axes, each of the length of a report along it."""
    return _REACH[type(mechanism)](mechanism) * np.eye(mechanism.width, dtype=np.int64)


def vector_effects(mechanism, slopes):
    """Smallest and largest change that one report can make to functions with these slopes along the directions."""
    size = np.linalg.norm(slopes, ord=_NORMS[type(mechanism)], axis=1)
    return -size, size
