"""Second moments of a record (x, y) with Gaussian noise, computed from integers."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from skldp._validation._parameters import check_delta, smallest_integer_dtype
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._base import check_width, has_width, in_blocks
from skldp.mechanisms._encoding import encode_ball
from skldp.mechanisms._moments import MomentMechanism
from skldp.privacy._calibration import gaussian_sigma
from skldp.privacy._noise import GAUSSIAN_REACH, gaussian_noise, gaussian_slack, integer_noise
from skldp.privacy._sensitivity import moment_sensitivity

MOMENT_RADIUS = 2**8  # integer radius of x where the products of a record are computed in integers
_BLOCK_ROWS, _BLOCK_ENTRIES = 4096, 1 << 22  # of reports that are drawn at once


@dataclass(frozen=True, kw_only=True)
class GaussianMoments(MomentMechanism):
    r"""Moments of a record with Gaussian noise, calibrated to their exact sensitivity.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    delta : float, default=1e-5
        Failure probability in (0, 1).
    n_features, y_weight, intercept_weight, labelled, n_responses
        As in :class:`SphereMoments`; the weights are rounded to multiples of :math:`2^{-8}`.

    Attributes
    ----------
    scale : float
        Standard deviation of the noise on the diagonal, in grid units; off the diagonal it is divided by
        :math:`\sqrt2`.
    noise_variance : float
        Variance of every decoded entry, in svec coordinates, around that of its record.

    Notes
    -----
    The record first becomes an integer vector V, with :math:`\|V_x\| \le Q = 2^8` and :math:`|V_y| \le W` for each of k
    responses, checked in integers. Its products are exact, and by :func:`skldp.privacy.moment_sensitivity` the svec of
    any two records are at most :math:`\Delta = \sqrt2(K^2 + Q^2 + kW^2)` apart (for k = 1 with
    :math:`W^2 \le K^2 + Q^2`). The report is
    :math:`\mathrm{clamp}(V_iV_j + \mathrm{rint}(s_{ij}n))` with :math:`s_{ii} = s` and
    :math:`s_{ij} = s/\sqrt2`: isotropic noise of standard deviation s in svec coordinates. Rounding, clamping and
    float errors are accounted for as in :class:`Gaussian`.

    Examples
    --------
    >>> from skldp.mechanisms import GaussianMoments
    >>> mechanism = GaussianMoments(epsilon=1.0, delta=1e-5, n_features=2, intercept_weight=0.0)
    >>> mechanism.randomize([[0.6, 0.8, -0.3]], rng=0).shape
    (1, 6)
    >>> round(mechanism.noise_variance ** 0.5 / (2**0.5 * 1.5), 2)  # per unit of sensitivity
    3.73
    """

    delta: float = 1e-5

    def __post_init__(self):
        self._check_layout()
        self._check_entries()
        object.__setattr__(self, "delta", check_delta(self.delta))
        for name in ("y_weight", "intercept_weight"):
            rounded = round(getattr(self, name) * MOMENT_RADIUS) / MOMENT_RADIUS
            if rounded == 0 and getattr(self, name) > 0:
                raise InvalidParameterError(f"{name}={getattr(self, name)!r} is below the grid of 1/{MOMENT_RADIUS} "
                                            f"and would become 0. Raise it.")
            object.__setattr__(self, name, rounded)
        if self.private and self._slack > self.epsilon / 4:
            raise InvalidParameterError(
                f"epsilon={self.epsilon!r} is too small for Gaussian noise on {self.n_moments} entries: rounding "
                f"errors would use up half of it. Raise epsilon or send fewer entries."
            )
        if self.private and (self.clamp < self._largest + 2 * self.scale).any():
            raise InvalidParameterError(
                f"delta={self.delta!r} is too large to be a guarantee at epsilon={self.epsilon!r}. Lower delta."
            )

    @property
    def width(self):
        """Number of integers in a report."""
        return self.n_moments

    @cached_property
    def sensitivity(self):
        """L2 sensitivity of the products in svec coordinates, in grid units."""
        w, kappa = self.y_weight * MOMENT_RADIUS, self.intercept_weight * MOMENT_RADIUS
        return moment_sensitivity(MOMENT_RADIUS, w, 1.0, kappa, self.n_responses)

    @cached_property
    def _slack(self):
        # Taken at twice the uncorrected scale, which covers the increase of the scale that the slack itself causes.
        return self.n_moments * gaussian_slack(2 * gaussian_sigma(self.epsilon, self.delta, self.sensitivity))

    @cached_property
    def scale(self):
        """Standard deviation of the noise on the diagonal in grid units; 0 without noise."""
        if not self.private:
            return 0.0
        epsilon, delta = self.epsilon - 2 * self._slack, self.delta * math.exp(-self._slack)
        return gaussian_sigma(epsilon, delta, self.sensitivity)

    @property
    def _largest(self):
        """Upper bound on the product of two entries."""
        return round(MOMENT_RADIUS**2 * max(1.0, self.y_weight, self.intercept_weight) ** 2)

    @cached_property
    def clamp(self):
        """Largest absolute value of each entry of a report, within 10 standard deviations of every record."""
        if not self.private:
            return np.full(self.n_moments, self._largest)
        return np.floor(GAUSSIAN_REACH * self.scale / self._isometry).astype(np.int64) - self._largest

    @cached_property
    def report_dtype(self):
        """Smallest integer dtype that holds every entry."""
        top = int(self.clamp.max())
        return smallest_integer_dtype(-top, top)

    @property
    def noise_variance(self):
        """Variance of every decoded entry, in svec coordinates (neglecting rounding and clamping)."""
        return self.scale**2 / MOMENT_RADIUS**4

    def encode(self, x: Any) -> np.ndarray:
        """Encode records, shape (n, n_features + k), as integer vectors V."""
        x = check_width(x, self.n_features + self.n_responses)
        vector, responses = self._parts
        codes = np.empty((len(x), self.order), dtype=np.int64)
        with np.errstate(all="ignore"):
            codes[:, 0] = round(self.intercept_weight * MOMENT_RADIUS)
            codes[:, responses] = np.rint(self._response(x) * round(self.y_weight * MOMENT_RADIUS))
            codes[:, vector] = encode_ball(x[:, :self.n_features], 1.0, MOMENT_RADIUS)
        return codes

    def _draw(self, codes, source):
        n_rows = max(1, min(_BLOCK_ROWS, _BLOCK_ENTRIES // self.n_moments))
        return in_blocks(lambda block: self._draw_block(block, source), codes, n_rows, (self.n_moments,),
                         self.report_dtype)

    def _draw_block(self, codes, source):
        rows, columns = self.places
        report = codes[:, rows] * codes[:, columns]
        if self.private:
            n, diagonal = len(codes), self.n_diagonal
            shape = (n, self.n_moments - diagonal)
            report[:, :diagonal] += integer_noise(gaussian_noise, self.scale, (n, diagonal), source)
            report[:, diagonal:] += integer_noise(gaussian_noise, self.scale / math.sqrt(2), shape, source)
            np.clip(report, -self.clamp, self.clamp, out=report)
        return report

    def decode(self, reports: Any) -> np.ndarray:
        """Unbiased moments in svec coordinates, shape (n, n_moments)."""
        return np.asarray(reports) * (self._isometry / MOMENT_RADIUS**2)

    def log_prob(self, reports: Any, x: Any) -> np.ndarray:
        """Log-probability of reports, shape (n, n_moments), given records: one number for each row."""
        valid, codes = self.valid(reports), self.encode(x)
        rows, columns = self.places
        reports = np.asarray(reports).astype(np.int64)
        distance = np.abs(reports - codes[:, rows] * codes[:, columns])
        if not self.private:
            return np.where(valid & (distance == 0).all(axis=1), 0.0, -np.inf)
        scale = self.scale / self._isometry
        tail = log_ndtr((0.5 - distance) / scale)
        with np.errstate(divide="ignore"):
            inside = tail + np.log(-np.expm1(log_ndtr((-0.5 - distance) / scale) - tail))
        cells = np.where(np.abs(reports) == self.clamp, tail, inside)
        return np.where(valid, cells.sum(axis=1), -np.inf)

    def valid(self, reports: Any) -> np.ndarray:
        """Mask of the rows whose entries are inside the clamps."""
        reports = np.asarray(reports)
        if not has_width(reports, self.n_moments):
            return np.zeros(len(reports), dtype=bool)
        return ((reports >= -self.clamp) & (reports <= self.clamp)).all(axis=1)
