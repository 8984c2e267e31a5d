r"""Second moments of a record (x, y), randomised as one vector.

A record is :math:`\tilde v = (\kappa, x, w\eta)` with :math:`\|x\| \le 1` and :math:`|\eta_j| \le 1`, any number of
responses; its statistic is
:math:`\mathrm{svec}(\tilde v\tilde v^T)`, the isometric half-vectorisation: the diagonal first, then the entries above
it times :math:`\sqrt 2`. Constant entries (:math:`\kappa^2`, and :math:`w^2` for labels) are not sent.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import log_ndtr

from skldp._validation._limits import MAX_ENTRIES, MAX_FEATURES
from skldp._validation._parameters import (
    check_delta,
    check_epsilon,
    check_integer,
    check_positive,
    smallest_integer_dtype,
)
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._base import Mechanism, check_width, has_width, in_blocks
from skldp.mechanisms._encoding import clip_to_unit_ball, encode_ball
from skldp.mechanisms._sphere import Sphere
from skldp.privacy._calibration import gaussian_sigma
from skldp.privacy._noise import GAUSSIAN_REACH, gaussian_noise, gaussian_slack, integer_noise
from skldp.privacy._sensitivity import check_nonnegative, labelled_moment_radius, moment_radius, moment_sensitivity

MOMENT_RADIUS = 2**8  # integer radius of x where the products of a record are computed in integers
_BLOCK_ROWS = 4096
_LARGEST_WEIGHT = 100


@dataclass(frozen=True, kw_only=True)
class MomentMechanism(Mechanism):
    """Base class of both randomisers of moments: the layout of a report.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report.
    n_features : int, default=1
        Length d of x; a record has d + 1 entries, the response last.
    y_weight : float, default=sqrt(1/2)
        Weight w of each response.
    intercept_weight : float, default=sqrt(1/2)
        The constant entry kappa; 0 without an intercept.
    labelled : bool, default=False
        Whether the only response is -1 or 1.
    n_responses : int, default=1
        Number k of responses, which may be 0.
    """

    epsilon: float = 1.0
    n_features: int = 1
    y_weight: float = math.sqrt(0.5)
    intercept_weight: float = math.sqrt(0.5)
    labelled: bool = False
    n_responses: int = 1

    def _check_layout(self):
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "n_features", check_integer(self.n_features, "n_features", 1, MAX_FEATURES))
        least = int(self.labelled)  # a label is a response
        object.__setattr__(self, "n_responses", check_integer(self.n_responses, "n_responses", least, MAX_FEATURES))
        object.__setattr__(self, "y_weight", check_positive(self.y_weight, "y_weight"))
        object.__setattr__(self, "intercept_weight", check_nonnegative(self.intercept_weight, "intercept_weight"))
        if max(self.y_weight, self.intercept_weight) > _LARGEST_WEIGHT:
            raise InvalidParameterError(
                f"y_weight and intercept_weight must be at most {_LARGEST_WEIGHT}, where x has length 1; got "
                f"{self.y_weight!r} and {self.intercept_weight!r}. Lower the larger one."
            )
        if self.n_moments > MAX_ENTRIES:
            raise InvalidParameterError(
                f"n_features={self.n_features} and n_responses={self.n_responses} mean {self.n_moments} moments, and a "
                f"report may have {MAX_ENTRIES}: each adds to the share of epsilon that rounding errors use up. Send "
                "fewer features, or records."
            )

    @property
    def order(self):
        """Number of rows of the matrix of moments: x, the responses and, with an intercept, the constant."""
        return self.n_features + self.n_responses + (self.intercept_weight > 0)

    @cached_property
    def places(self):
        """Row and column indices of the entries that are sent, the diagonal first."""
        diagonal = np.arange(self.order)
        diagonal = diagonal[int(self.intercept_weight > 0):self.order - self.labelled]
        above = np.triu_indices(self.order, 1)
        return np.concatenate([diagonal, above[0]]), np.concatenate([diagonal, above[1]])

    @property
    def n_diagonal(self):
        """Number of diagonal entries that are sent."""
        return self.n_features + self.n_responses - self.labelled

    @property
    def n_moments(self):
        """Number of entries that are sent."""
        return self.n_diagonal + self.order * (self.order - 1) // 2

    @cached_property
    def _isometry(self):
        return np.where(np.arange(self.n_moments) < self.n_diagonal, 1.0, math.sqrt(2))

    def matrix(self, moments):
        """Symmetric matrices, shape (..., order, order), from svec coordinates, with the constant entries filled in."""
        moments = np.asarray(moments)
        out = np.zeros((*moments.shape[:-1], self.order, self.order))
        rows, columns = self.places
        out[..., rows, columns] = out[..., columns, rows] = moments / self._isometry
        if self.intercept_weight > 0:
            out[..., 0, 0] = self.intercept_weight**2
        if self.labelled:
            out[..., -1, -1] = self.y_weight**2
        return out

    @property
    def _parts(self):
        """Places of the entries of x and of the responses in a row of the matrix."""
        start = int(self.intercept_weight > 0)
        return slice(start, start + self.n_features), slice(start + self.n_features, None)

    def _response(self, x):
        response = np.clip(np.nan_to_num(x[:, self.n_features:], nan=0.0), -1.0, 1.0)
        return np.where(response < 0, -1.0, 1.0) if self.labelled else response


@dataclass(frozen=True, kw_only=True)
class SphereMoments(MomentMechanism):
    r"""Moments of a record, recentred and randomised by the sphere mechanism: pure epsilon.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    n_features : int, default=1
        Length d of x; a record has d + k entries, the responses last. Records are clipped to norm 1 in x and to
        [-1, 1] in each response.
    y_weight, intercept_weight : float, default=sqrt(1/2)
        Weights w and kappa of each response and of the constant; ``intercept_weight=0`` leaves the constant out.
    labelled : bool, default=False
        Whether the only response is -1 or 1, so that its square is not sent.
    n_responses : int, default=1
        Number k of responses; 0 for the moments of x alone.

    Notes
    -----
    The vector that is sent is :math:`s - s_0` with :math:`s = \mathrm{svec}(\tilde v\tilde v^T)` and :math:`s_0` the
    public centre, 1/d on the diagonal of the x block and :math:`w^2` on the squares of the responses. It lies in the
    ball of radius :func:`skldp.privacy.moment_radius` (:func:`skldp.privacy.labelled_moment_radius` for labels), and
    :class:`Sphere` randomises any vector of that ball; decoding adds the centre.

    Examples
    --------
    >>> from skldp.mechanisms import SphereMoments
    >>> mechanism = SphereMoments(epsilon=1.0, n_features=2)
    >>> reports = mechanism.randomize([[0.6, 0.8, -0.3]], rng=0)
    >>> reports.shape, mechanism.matrix(mechanism.decode(reports)).shape
    ((1, 10), (1, 4, 4))
    """

    def __post_init__(self):
        self._check_layout()
        self.sphere  # built here so that an impossible budget raises at once

    @cached_property
    def sphere(self):
        """Mechanism that randomises the recentred moments."""
        weights = self.y_weight, self.intercept_weight
        if self.labelled:
            radius = labelled_moment_radius(1.0, self.n_features, *weights)
        else:
            radius = moment_radius(1.0, 1.0, self.n_features, *weights, n_responses=self.n_responses)
        return Sphere(epsilon=self.epsilon, norm=radius, n_features=self.n_moments)

    @cached_property
    def centre(self):
        """Public centre of the statistics, in svec coordinates."""
        centre = np.zeros(self.n_moments)
        centre[:self.n_features] = 1 / self.n_features
        centre[self.n_features:self.n_diagonal] = self.y_weight**2
        return centre

    @property
    def width(self):
        """Number of integers in a report."""
        return self.sphere.width

    @property
    def report_dtype(self):
        """Integer dtype of a report."""
        return self.sphere.report_dtype

    @property
    def noise_variance(self):
        """Variance of every decoded entry, in svec coordinates, around that of its record."""
        return self.sphere.noise_variance

    def encode(self, x: Any) -> np.ndarray:
        """Encode the moments of records, shape (n, n_features + k), as integers of norm at most 2**16."""
        x = check_width(x, self.n_features + self.n_responses)
        vector, responses = self._parts
        with np.errstate(all="ignore"):
            record = np.empty((len(x), self.order))
            record[:, 0] = self.intercept_weight
            record[:, responses] = self.y_weight * self._response(x)
            record[:, vector] = clip_to_unit_ball(x[:, :self.n_features].copy(), 1.0)
            rows, columns = self.places
            return self.sphere.encode(record[:, rows] * record[:, columns] * self._isometry - self.centre)

    def _draw(self, codes, source):
        return self.sphere._draw(codes, source)

    def decode(self, reports: Any) -> np.ndarray:
        """Unbiased moments in svec coordinates, shape (n, n_moments)."""
        return self.sphere.decode(reports) + self.centre

    def log_prob(self, reports: Any, x: Any) -> np.ndarray:
        """Log-density of the reported directions given records, as in :class:`Sphere`."""
        return self.sphere._log_prob_codes(reports, self.encode(x))

    def valid(self, reports: Any) -> np.ndarray:
        """Mask of the rows that an honest client could have sent."""
        return self.sphere.valid(reports)


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
        def draw(block):
            """Draw the reports of a block of encoded records."""
            return self._draw_block(block, source)

        return in_blocks(draw, codes, _BLOCK_ROWS, (self.n_moments,), self.report_dtype)

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
