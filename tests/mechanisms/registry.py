"""List of mechanisms with the corners of their domains, for the tests of the common contract."""

import itertools

import numpy as np

from skldp.mechanisms import (
    Axis,
    AxisMoments,
    BlockDesign,
    Gaussian,
    GaussianMoments,
    Laplace,
    RandomizedResponse,
    SampledMoments,
    Sphere,
    SphereMoments,
    SquareWave,
    SubsetSelection,
    UnaryEncoding,
)

VALUES = np.array([-1.0, -0.4, 0.0, 0.7, 1.0])
VECTORS = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, 0.0], [0.3, -0.2, 0.1]])
# x and, last, a response; no two rows have the same moments, and the first two have the largest distance.
RECORDS = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, -1.0], [0.6, -0.8, -0.4], [0.0, 0.0, 0.0], [0.3, -0.2, 0.1]])
AXES = VECTORS[[0, 2, 3, 4]]  # v and -v have the same reports
DIRECTIONS = Axis, AxisMoments, SampledMoments, Sphere, SphereMoments
# Without a response; the first two rows have the largest distance if the constant is 1/2.
LONE_RECORDS = np.array([[1.0, 0.0, 0.0], [-0.25, 0.9375**0.5, 0.0], [0.0, 0.6, 0.8], [0.0, 0.0, 0.0],
                         [0.3, -0.2, 0.1]])
# Four features, no two of which are equal in the first two rows, and a response.
LONG_RECORDS = np.array([[0.5, 0.5, 0.5, 0.5, 1.0], [-0.5, -0.5, -0.5, -0.5, 1.0], [0.5, -0.5, 0.1, 0.4, -0.4],
                         [0.0, 0.0, 0.0, 0.0, 0.0], [0.3, -0.2, 0.1, 0.2, -1.0]])
LAYOUTS = [{}, {"intercept_weight": 0.0}, {"labelled": True}]


class Scripted:
    """Source of words that returns given words in order."""

    def __init__(self, words=(), octets=()):
        self._words, self._bytes = list(words), list(octets)

    @property
    def left(self):
        """Numbers of words and bytes that have not been used."""
        return len(self._words) + len(self._bytes)

    def words(self, n_words):
        taken, self._words = self._words[:n_words], self._words[n_words:]
        return np.array(taken, dtype=np.uint64)

    def bytes(self, n_bytes):
        taken, self._bytes = self._bytes[:n_bytes], self._bytes[n_bytes:]
        return np.array(taken, dtype=np.uint8)


def _pure():
    for epsilon in (0.3, 1.0, 4.0):
        yield SphereMoments(epsilon=epsilon, n_features=1, n_responses=2), RECORDS
        yield SphereMoments(epsilon=epsilon, n_features=3, n_responses=0, intercept_weight=0.5), LONE_RECORDS
        yield AxisMoments(epsilon=epsilon, n_features=3, n_responses=0, intercept_weight=0.5), LONE_RECORDS
        yield Laplace(epsilon=epsilon, n_levels=64), VALUES
        yield Laplace(epsilon=epsilon), VALUES
        yield SquareWave(epsilon=epsilon, n_levels=32), VALUES
        yield SquareWave(epsilon=epsilon, window=0.0, n_levels=8), VALUES
        yield Sphere(epsilon=epsilon, n_features=3), VECTORS
        yield Axis(epsilon=epsilon, n_features=3), AXES
        yield AxisMoments(epsilon=epsilon, n_features=1, n_responses=2), RECORDS
        for layout in LAYOUTS:
            yield SphereMoments(epsilon=epsilon, n_features=2, **layout), RECORDS
            yield AxisMoments(epsilon=epsilon, n_features=2, **layout), RECORDS
            yield SampledMoments(epsilon=epsilon, n_features=2, **layout), RECORDS
            yield SampledMoments(epsilon=epsilon, n_features=4, **layout), LONG_RECORDS
        for n_categories in (2, 5):
            for category in (RandomizedResponse, UnaryEncoding, SubsetSelection):
                yield category(epsilon=epsilon, n_categories=n_categories), np.arange(n_categories)
        for n_categories, design in ((2, None), (5, None), (5, (7, 3)), (5, (13, 4)), (9, (11, 5)), (21, (21, 5))):
            yield BlockDesign(epsilon=epsilon, n_categories=n_categories, design=design), np.arange(n_categories)
        for subset_size in (2, 3, 4):
            yield SubsetSelection(epsilon=epsilon, n_categories=5, subset_size=subset_size), np.arange(5)


PURE = list(_pure())
GAUSSIAN = [(Gaussian(epsilon=epsilon, delta=1e-5, n_features=3), VECTORS) for epsilon in (0.3, 1.0, 4.0)]
GAUSSIAN_MOMENTS = [(GaussianMoments(epsilon=epsilon, delta=1e-5, n_features=2, **layout), RECORDS)
                    for epsilon in (0.3, 1.0, 4.0) for layout in LAYOUTS]
GAUSSIAN_MOMENTS += [(GaussianMoments(epsilon=1.0, delta=1e-5, n_features=1, n_responses=2), RECORDS)]
GAUSSIAN_MOMENTS += [(GaussianMoments(delta=1e-5, n_features=3, n_responses=0, intercept_weight=0.5), LONE_RECORDS)]
ALL = PURE + GAUSSIAN + GAUSSIAN_MOMENTS


def enumerable(mechanism):
    """Whether all reports of the mechanism can be listed."""
    if isinstance(mechanism, Laplace):
        return mechanism.n_levels <= 64
    return not isinstance(mechanism, (Gaussian, GaussianMoments, *DIRECTIONS))


def every_report(mechanism):
    """All reports of an enumerable mechanism."""
    if isinstance(mechanism, (RandomizedResponse, BlockDesign)):
        return np.arange(mechanism.n_counts)
    if isinstance(mechanism, (UnaryEncoding, SubsetSelection)):
        rows = np.array(list(itertools.product([0, 1], repeat=mechanism.n_categories)), dtype=np.uint8)
        full = isinstance(mechanism, UnaryEncoding)
        return rows if full else rows[rows.sum(axis=1) == mechanism.subset_size]
    return np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)


def moments(mechanism, records):
    """Return the matrices v v' of records v = (kappa, x, w y), by definition."""
    records = np.asarray(records, dtype=float)
    x, response = np.split(records, [mechanism.n_features], axis=1)
    response = np.where(response < 0, -1.0, 1.0) if mechanism.labelled else response
    columns = [x, mechanism.y_weight * response]
    if mechanism.intercept_weight:
        columns.insert(0, np.full(len(records), mechanism.intercept_weight))
    v = np.column_stack(columns)
    return v[:, :, None] * v[:, None, :]


def repeat(record, n):
    record = np.asarray(record)
    return np.broadcast_to(record, (n, *record.shape)).copy()
