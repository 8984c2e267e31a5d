"""Mechanisms of moments by name: the randomiser, and the sums that its reports can have."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from skldp.mechanisms._axis import AXIS_RESOLUTION
from skldp.mechanisms._axis_moments import AxisMoments
from skldp.mechanisms._gaussian_moments import MOMENT_RADIUS, GaussianMoments
from skldp.mechanisms._moments import SphereMoments
from skldp.mechanisms._sphere import RESOLUTION
from skldp.protocols._possible_sums import (
    column_sums,
    is_gram_matrix,
    largest_noisy_sums,
    product_sums,
    within_axes,
    within_box,
    within_sphere,
)
from skldp.protocols._tallies import Tally


@dataclass(frozen=True)
class MomentReports(ABC):
    """Reports of moments by one mechanism."""

    mechanism: Any

    @classmethod
    @abstractmethod
    def of(cls, delta, **options):
        """Return the reports of a mechanism with the given options."""

    def tally(self, reports):
        """Tally of valid reports, which can be added to others."""
        return Tally(len(reports), column_sums(reports))

    def mean_moments(self, tally):
        """Mean of the decoded moments of a tally, in svec coordinates."""
        mean = (tally.sums / max(tally.n_reports, 1)).astype(float)
        return self.mechanism.decode(mean[None])[0]

    def mean_matrix(self, tally):
        """Mean of the decoded products v v' of a tally, with all entries that the noise of a report has."""
        return self.mechanism.matrix(self.mean_moments(tally))

    @abstractmethod
    def directions(self):
        """Directions in which one report can change the sums, as arrays of the shape of the sums."""

    @abstractmethod
    def extreme_effects(self, slopes):
        """Smallest and largest change that one report can make to functions with these slopes along ``directions``."""

    @abstractmethod
    def possible(self, tally):
        """Whether valid reports can have these sums."""


class SphereReports(MomentReports):
    """Reports on a sphere of integers."""

    @classmethod
    def of(cls, delta, **options):
        """Return the reports of :class:`SphereMoments`, which is pure: delta is not used."""
        return cls(SphereMoments(**options))

    def directions(self):
        """Directions in which one report can change the sums, as arrays of the shape of the sums."""
        return RESOLUTION * np.eye(self.mechanism.width, dtype=np.int64)

    def extreme_effects(self, slopes):
        """Smallest and largest change that one report can make to functions with these slopes along ``directions``."""
        size = np.sqrt(np.vecdot(slopes, slopes))  # each direction has the length of the sphere's radius
        return -size, size

    def possible(self, tally):
        """Whether valid reports can have these sums."""
        well_formed = tally.sums.shape == (self.mechanism.width,) and tally.sums.dtype == object
        return well_formed and within_sphere(tally.sums, tally.n_reports, self.mechanism.sphere)


class GaussianReports(MomentReports):
    """Reports in a box of integers: products of records with clamped noise."""

    @classmethod
    def of(cls, delta, **options):
        """Return the reports of :class:`GaussianMoments`."""
        return cls(GaussianMoments(delta=delta, **options))

    def directions(self):
        """Directions in which one report can change the sums, as arrays of the shape of the sums."""
        return np.diag(self.mechanism.clamp)

    def extreme_effects(self, slopes):
        """Smallest and largest change that one report can make to functions with these slopes along ``directions``."""
        size = np.abs(slopes).sum(axis=1)  # each direction has the length of a half-width of the box
        return -size, size

    def possible(self, tally):
        """Whether valid reports can have these sums."""
        mechanism, n_reports = self.mechanism, tally.n_reports
        if tally.sums.shape != (mechanism.width,) or tally.sums.dtype != object:
            return False
        if mechanism.private:
            scale = mechanism.scale / mechanism._isometry
            return within_box(tally.sums, largest_noisy_sums(n_reports, mechanism.clamp, mechanism._largest, scale))
        # Without noise, these are sums of products of records, in which x has length at most MOMENT_RADIUS.
        trace = sum(tally.sums[:mechanism.n_features].tolist())
        largest = mechanism.clamp.astype(object) * n_reports
        return (within_box(tally.sums, largest) and trace <= n_reports * MOMENT_RADIUS**2
                and is_gram_matrix(self._products(tally)))

    def _products(self, tally):
        """Sums of products of records without noise, as a symmetric matrix with the constant entries filled in."""
        mechanism = self.mechanism
        products = np.zeros((mechanism.order, mechanism.order), dtype=object)
        rows, columns = mechanism.places
        products[rows, columns] = products[columns, rows] = tally.sums
        if mechanism.intercept_weight > 0:
            products[0, 0] = tally.n_reports * round(mechanism.intercept_weight * MOMENT_RADIUS) ** 2
        if mechanism.labelled:
            products[-1, -1] = tally.n_reports * round(mechanism.y_weight * MOMENT_RADIUS) ** 2
        return products


class AxisReports(MomentReports):
    """Reports of axes: the sums are those of the products r r' of the reports, as a symmetric matrix."""

    @classmethod
    def of(cls, delta, **options):
        """Return the reports of :class:`AxisMoments`, which is pure: delta is not used."""
        return cls(AxisMoments(**options))

    def tally(self, reports):
        """Tally of valid reports, which can be added to others."""
        return Tally(len(reports), product_sums(reports))

    def mean_moments(self, tally):
        """Mean of the decoded moments of a tally, in svec coordinates."""
        return self.mechanism.svec(self.mean_matrix(tally))

    def mean_matrix(self, tally):
        """Mean of the decoded products v v' of a tally; the constant entries are noisy like the others."""
        return self.mechanism.axis.decode_products(tally.sums / max(tally.n_reports, 1))

    def directions(self):
        """Directions in which one report can change the sums, as arrays of the shape of the sums."""
        return [AXIS_RESOLUTION**2 * direction for direction in symmetric_directions(self.mechanism.width)]

    def extreme_effects(self, slopes):
        """Smallest and largest change that one report can make to functions with these slopes along ``directions``."""
        values = np.linalg.eigvalsh(symmetric_slopes(slopes, self.mechanism.width))
        return values[:, 0], values[:, -1]

    def possible(self, tally):
        """Whether valid reports can have these sums."""
        shape = self.mechanism.width, self.mechanism.width
        well_formed = tally.sums.shape == shape and tally.sums.dtype == np.int64
        return well_formed and within_axes(tally.sums, tally.n_reports, self.mechanism.axis)


def symmetric_directions(width):
    """Symmetric integer matrices with one in a pair of entries, or in one on the diagonal."""
    directions = []
    for row, column in zip(*np.triu_indices(width)):
        direction = np.zeros((width, width), dtype=np.int64)
        direction[row, column] = direction[column, row] = 1
        directions.append(direction)
    return directions


def symmetric_slopes(slopes, width):
    """Matrices S of the effect z'Sz of z z', from slopes along symmetric directions: half in each entry of a pair."""
    rows, columns = np.triu_indices(width)
    matrices = np.zeros((len(slopes), width, width))
    matrices[:, rows, columns] += slopes / 2
    matrices[:, columns, rows] += slopes / 2
    return matrices


MECHANISMS = {"sphere": SphereReports, "axis": AxisReports, "gaussian": GaussianReports}
