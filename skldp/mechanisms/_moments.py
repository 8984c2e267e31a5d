r"""Second moments of a record (x, y), randomised as one vector.

A record is :math:`\tilde v = (\kappa, x, w\eta)` with :math:`\|x\| \le 1` and :math:`|\eta_j| \le 1`, any number of
responses; its statistic is
:math:`\mathrm{svec}(\tilde v\tilde v^T)`, the isometric half-vectorisation: the diagonal first, then the entries above
it times :math:`\sqrt 2`. Constant entries (:math:`\kappa^2`, and :math:`w^2` for labels) are not sent.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skldp._validation._limits import MAX_ENTRIES, MAX_FEATURES
from skldp._validation._parameters import check_epsilon, check_integer, check_positive
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._base import Mechanism, check_width
from skldp.mechanisms._encoding import clip_to_unit_ball
from skldp.mechanisms._moment_noise import MomentNoise
from skldp.mechanisms._sphere import Sphere
from skldp.privacy._sensitivity import check_nonnegative, labelled_moment_radius, moment_radius

_LARGEST_WEIGHT = 100


@dataclass(frozen=True, kw_only=True)
class MomentMechanism(Mechanism):
    """Base class of the randomisers of moments: the layout of a record.

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

    def _check_entries(self):
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

    def svec(self, matrices):
        """Entries that are unknown, in svec coordinates, of symmetric matrices of shape (..., order, order)."""
        rows, columns = self.places
        return matrices[..., rows, columns] * self._isometry

    @property
    @abstractmethod
    def noise_variance(self):
        """Variance of every decoded entry, in svec coordinates, around that of its record."""

    @property
    def noise(self):
        """Covariance of a decoded report, over records."""
        return MomentNoise(self.noise_variance)

    @property
    def _parts(self):
        """Places of the entries of x and of the responses in a row of the matrix."""
        start = int(self.intercept_weight > 0)
        return slice(start, start + self.n_features), slice(start + self.n_features, None)

    def _records(self, x):
        """Return clipped records (kappa, x, w y) of rows (x, y), shape (n, order), in floats."""
        vector, responses = self._parts
        record = np.empty((len(x), self.order))
        record[:, 0] = self.intercept_weight
        record[:, responses] = self.y_weight * self._response(x)
        record[:, vector] = clip_to_unit_ball(x[:, :self.n_features].copy(), 1.0)
        return record

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
        self._check_entries()
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
        with np.errstate(all="ignore"):
            record, (rows, columns) = self._records(x), self.places
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
