"""Protocols for second moments of some features of each client's record, with its response."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from skldp._validation._limits import MAX_FEATURES
from skldp._validation._parameters import check_choice, check_integer
from skldp.protocols._moment_protocol import BaseMomentProtocol, LabelMomentProtocol, MomentProtocol
from skldp.protocols._sampled_reports import SampledReports
from skldp.protocols._tallies import Tally


@dataclass(frozen=True, kw_only=True)
class _Sampled(BaseMomentProtocol):
    """Base class of protocols of moments of which each client fills some."""

    mechanism: str = "axis"
    features_per_client: int = 2
    _mechanisms: ClassVar[dict[str, Any]] = {"axis": SampledReports}

    @property
    def _layout(self):
        return {**super()._layout, "features_per_client": self.features_per_client}

    def _check_moments(self):
        check_choice(self.mechanism, "mechanism", self._mechanisms)
        check_integer(self.features_per_client, "features_per_client", 2, MAX_FEATURES)
        super()._check_moments()

    @property
    def n_reported(self) -> int:
        """Number of features in a report."""
        return min(self.features_per_client, self.n_features)

    def counts(self, tally: Tally) -> np.ndarray:
        """Number of clients who fill each entry of :meth:`mean_matrix`.

        Parameters
        ----------
        tally : Tally
            Sums of valid reports.

        Returns
        -------
        ndarray of int, shape (order, order)
        """
        return self._reports.counts(tally)


@dataclass(frozen=True, kw_only=True)
class SampledMomentProtocol(_Sampled, MomentProtocol):
    r"""Each client sends the second moments of some of its features and its response, randomised as one axis.

    Parameters
    ----------
    features_per_client : int, default=2
        Number s of features in a report, at least 2; all of them, if there are fewer.
    data_norm : float, default=1.0
        Public bound R on the norm of x. The s features of a client are shortened to :math:`R\sqrt{s/d}`, which is their
        largest norm if each of the d features is in :math:`\pm R/\sqrt d`, as :class:`skldp.BoundedScaler` scales them.
    mechanism : {"axis"}, default="axis"
        How the moments are randomised.
    epsilon, delta, bounds_y, y_weight, intercept_weight, n_features, schema
        As in :class:`MomentProtocol`.

    See Also
    --------
    skldp.mechanisms.SampledMoments : What a report is.

    Examples
    --------
    >>> from skldp.protocols import Protocol, SampledMomentProtocol
    >>> protocol = SampledMomentProtocol(epsilon=4.0, n_features=6, features_per_client=3)
    >>> report = Protocol.from_json(protocol.to_json()).privatize([0.1, 0.3, 0.0, -0.2, 0.1, 0.4], 0.5)
    >>> report.shape, int((report == -32768).sum())
    ((1, 9), 3)
    """


@dataclass(frozen=True, kw_only=True)
class SampledLabelMomentProtocol(_Sampled, LabelMomentProtocol):
    r"""Each client sends the second moments of some of its features and its label -1 or 1, randomised as one axis.

    Parameters
    ----------
    features_per_client, data_norm, mechanism
        As in :class:`SampledMomentProtocol`.
    classes, epsilon, delta, y_weight, intercept_weight, n_features, schema
        As in :class:`LabelMomentProtocol`.

    Examples
    --------
    >>> from skldp.protocols import SampledLabelMomentProtocol
    >>> protocol = SampledLabelMomentProtocol(epsilon=4.0, n_features=6, classes=("no", "yes"))
    >>> int((protocol.privatize([[0.1, 0.3, 0.0, -0.2, 0.1, 0.4]], ["yes"]) == -32768).sum())
    4
    """
