"""Second moments of some features of a record, which a public coin chooses for each client, with its response."""

import dataclasses
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from skldp._validation._parameters import check_integer
from skldp.mechanisms._axis_moments import AxisMoments
from skldp.mechanisms._base import check_width, has_width
from skldp.mechanisms._feature_subsets import FeatureSubsets
from skldp.mechanisms._moments import MomentMechanism
from skldp.mechanisms._sampled_noise import SampledNoise
from skldp.privacy._radii import subset_radius

_UNIT = 2**24  # of the fixed-point numbers in which records wait for their subset
UNFILLED = -(2**15)  # in a report, at the features that a client does not fill; no axis has such an entry


@dataclass(frozen=True, kw_only=True)
class SampledMoments(MomentMechanism):
    r"""Moments of s features of a record and its response; the axis of these entries is randomised: pure epsilon.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of one report, in (0, 20], or ``inf`` for no noise.
    features_per_client : int, default=2
        Number s of features in a report; all of them, if there are fewer.
    n_features, y_weight, intercept_weight, labelled, n_responses
        As in :class:`SphereMoments`, but it is the s features of a client that are shortened, to the norm
        :func:`skldp.privacy.subset_radius`.

    Attributes
    ----------
    part : AxisMoments
        Mechanism that randomises the entries of a client.
    subsets : FeatureSubsets
        Distribution of the features of a client.
    noise : SampledNoise
        Covariance of mean reports, over records.

    Notes
    -----
    The client draws a uniformly random subset S of s features, and reports the axis of
    :math:`(\kappa, \sqrt{d/s}\,x_S, wy)` by :class:`Axis`, in s + k + 2 dimensions for k responses. :math:`x_S` is
    shortened to the norm :math:`\sqrt{s/d}`, beyond which it cannot be if every feature is at most
    :math:`1/\sqrt d` (:func:`skldp.privacy.subset_radius`); so the radius is :func:`skldp.privacy.record_radius`. A
    report has d + k + 2 integers, like one of :class:`AxisMoments`, of which d - s are -32768: entries that this client
    does not fill. They are not unknown values of the client. A mean over clients has its own number of clients for each
    entry.

    *Privacy.* The subset is drawn independently of the record, and every axis mechanism has the budget epsilon for
    every subset, so that the report, which includes the subset, has it (``_feature_subsets.py``).

    Examples
    --------
    >>> from skldp.mechanisms import SampledMoments
    >>> mechanism = SampledMoments(epsilon=4.0, n_features=6, features_per_client=2)
    >>> report = mechanism.randomize([[0.1] * 6 + [-0.3]], rng=0)
    >>> report.shape, int((report == -32768).sum()), mechanism.part.width
    ((1, 9), 4, 5)
    """

    features_per_client: int = 2

    def __post_init__(self):
        self._check_layout()
        object.__setattr__(self, "features_per_client",
                           check_integer(self.features_per_client, "features_per_client", 2))
        self.part.axis  # built here so that an impossible budget raises at once

    @property
    def n_sampled(self):
        """Number s of features in a report."""
        return min(self.features_per_client, self.n_features)

    @cached_property
    def part(self):
        """Mechanism that randomises the entries of a client."""
        names = [field.name for field in dataclasses.fields(MomentMechanism)]
        return AxisMoments(**{**{name: getattr(self, name) for name in names}, "n_features": self.n_sampled})

    @cached_property
    def subsets(self):
        """Distribution of the features of a client."""
        return FeatureSubsets(self.n_features, self.n_sampled, int(self.intercept_weight > 0), self.order)

    @property
    def width(self):
        """Number of integers in a report."""
        return self.order + 1

    @property
    def report_dtype(self):
        """Integer dtype of a report."""
        return self.part.report_dtype

    @cached_property
    def noise(self):
        """Covariance of mean reports, over records."""
        return SampledNoise(**dataclasses.asdict(self.part.noise), subsets=self.subsets)

    @property
    def noise_variance(self):
        r"""Variance of an entry of a mean report of x with a response, times the number of all clients.

        As in :class:`AxisMoments`, for typical records. A share s/d of the clients fills the entry, which is multiplied
        by the root of d/s in a report, so it is that of a report of s features.
        """
        return self.part.noise_variance

    def encode(self, x: Any) -> np.ndarray:
        """Records (x, responses) as integers, shape (n, n_features + k), each entry clipped to [-1, 1]."""
        x = check_width(x, self.n_features + self.n_responses)
        with np.errstate(all="ignore"):
            x[:, self.n_features:] = self._response(x)
            return np.rint(np.clip(np.nan_to_num(x, nan=0.0), -1.0, 1.0) * _UNIT).astype(np.int64)

    def _encode_own(self, codes, filled):
        """Encode the entries that clients fill, for their axis: s features, of which the length is at most 1."""
        start, n = self.subsets.first, len(codes)
        x = codes[:, :self.n_features][filled[:, start:start + self.n_features]].reshape(n, self.n_sampled)
        scale = _UNIT * subset_radius(1.0, self.n_features, self.n_sampled)
        return self.part.encode(np.column_stack([x / scale, codes[:, self.n_features:] / _UNIT]))

    def _draw(self, codes, source):
        filled = self.subsets.draw(len(codes), source)
        reports = np.full((len(codes), self.width), UNFILLED, dtype=self.report_dtype)
        own = self.part._draw(self._encode_own(codes, filled), source)
        reports[np.column_stack([filled, np.ones(len(filled), dtype=bool)])] = own.ravel()
        return reports

    def filled(self, reports):
        """Mask of the entries of reports that their clients fill, shape (n, width), with the padding."""
        return np.asarray(reports) != UNFILLED

    def _own_entries(self, reports):
        """Entries that clients fill, shape (n, part.width), and a mask of the rows that fill those of a subset."""
        filled = self.filled(reports)
        possible = self.subsets.possible(filled[:, :-1]) & filled[:, -1]
        chosen = np.where(possible[:, None], filled, np.append(self.subsets.smallest, True))
        return np.asarray(reports)[chosen].reshape(len(chosen), self.part.width), chosen, possible

    def decode(self, reports: Any) -> np.ndarray:
        """Unbiased moments in svec coordinates, shape (n, n_moments): zero, or divided by the share who fill them."""
        filled = self.filled(reports)
        entries = np.where(filled, reports, 0).astype(float)
        products, own = entries[:, :, None] * entries[:, None, :], filled[:, :-1, None] & filled[:, None, :-1]
        return self.svec(self.decode_means(products, own) / self.subsets.pair_probabilities)

    def decode_means(self, products, counts):
        """Unbiased matrices from mean products r r' over those who fill each entry; zero where nobody does."""
        scales = self.subsets.scales
        found = self.part.axis.decode_products(products) / np.outer(scales, scales)
        return np.where(counts > 0, found, 0.0)

    def log_prob(self, reports: Any, x: Any) -> np.ndarray:
        """Log-probability of the subset, plus the log-density of the reported directions as in :class:`Axis`."""
        own, chosen, possible = self._own_entries(reports)
        codes = self._encode_own(self.encode(x), chosen)
        subset = -math.log(math.comb(self.n_features, self.n_sampled))
        return np.where(possible, subset + self.part.axis._log_prob_codes(own, codes), -np.inf)

    def valid(self, reports: Any) -> np.ndarray:
        """Mask of the rows that an honest client could have sent."""
        reports = np.asarray(reports)
        if not has_width(reports, self.width):
            return np.zeros(len(reports), dtype=bool)
        own, _, possible = self._own_entries(reports)
        return possible & self.part.axis.valid(own)
