"""Likelihood of counts of square wave reports, given the masses of cells."""

import numpy as np


class WindowLikelihood:
    r"""Log-likelihood of counts of square wave reports, whose probabilities are linear in the masses of cells.

    Parameters
    ----------
    grid : ValueGrid
        Cells of the value.
    mechanism : SquareWave
        Mechanism of the reports, on the same points.
    counts : ndarray of int, shape (n_reports,)
        Number of reports at each possible report, from -B to n + B.
    group : int, default=1
        Number of neighbouring reports that are counted together.

    Notes
    -----
    With h and f the probabilities of a near and of a far report, a report from a group g of reports has the probability
    :math:`P_g = \sum_j A_{gj}p_j`, :math:`A_{gj} = f|g| + (h - f)\,\mathrm{E}|\{y \in g: |y - k| \le B\}|`, where the
    point k is uniform on cell j. The number of pairs (y, k) with y < Y, k < K and :math:`|y - k| \le B` is a difference
    of sums :math:`\sum_{i \le x}\min(\max(i, 0), w)`, w = 2B + 1, so that A is exact for any number of points.
    """

    def __init__(self, grid, mechanism, counts, group=1):
        starts = np.arange(0, len(counts), group)
        self.counts = np.add.reduceat(counts, starts).astype(float)
        self.n_reports = float(self.counts.sum())
        # The first report, -B, is near to the point 0 only. On the scale on which it is 0, y is near to y - w + 1 .. y.
        ends = np.append(starts, len(counts)).astype(float)[:, None]
        pairs = _sum_of_clipped(ends, mechanism.n_near) - _sum_of_clipped(ends - grid.edges, mechanism.n_near)
        near = np.diff(np.diff(pairs, axis=0), axis=1) / grid.sizes
        high = mechanism.near_probability / mechanism.n_near
        far = (1 - mechanism.near_probability) / mechanism.n_levels
        self.matrix = far * np.diff(ends, axis=0) + (high - far) * near

    def probabilities(self, masses):
        """Return the probability of each group, shape (n_walkers, n_groups)."""
        # Without noise a group can have probability zero: keep its logarithm finite, far below all others.
        return np.maximum(masses @ self.matrix.T, 1e-300)

    def log_likelihood(self, masses):
        """Return the log-likelihood, shape (n_walkers,)."""
        return np.log(self.probabilities(masses)) @ self.counts

    def value_and_gradient(self, masses):
        """Return the log-likelihood, and its gradient with respect to the masses."""
        probabilities = self.probabilities(masses)
        return np.log(probabilities) @ self.counts, (self.counts / probabilities) @ self.matrix

    def information(self, masses, directions):
        """Return the Fisher information of one report along directions of the masses, the columns of a matrix."""
        moved = self.matrix @ directions
        return moved.T @ (moved / self.probabilities(masses)[:, None])


def _sum_of_clipped(x, w):
    """Return the sum of min(max(i, 0), w) over all integers i up to x."""
    inside = np.clip(x, 0, w)
    return inside * (inside + 1) / 2 + np.maximum(x - w, 0.0) * w
