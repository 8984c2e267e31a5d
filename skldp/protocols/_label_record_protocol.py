"""Protocol for noisy records with randomised labels."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skldp.mechanisms._labelled_record import LabelledRecord
from skldp.protocols._regression_protocol import LabelledProtocol
from skldp.protocols._tallies import RecordTally

_N_CORNERS = 16


@dataclass(frozen=True, kw_only=True)
class LabelRecordProtocol(LabelledProtocol):
    """Each client sends its record with Gaussian noise and its label by randomised response.

    Parameters
    ----------
    budget_split : float, default=0.5
        Share of epsilon that the label gets.
    epsilon, delta, data_norm, classes, n_features, schema
        As in :class:`LabelMomentProtocol`.

    Notes
    -----
    The aggregate keeps every report: N (d + 1) integers.

    Examples
    --------
    >>> from skldp.protocols import LabelRecordProtocol
    >>> protocol = LabelRecordProtocol(epsilon=1.0, n_features=2, classes=("no", "yes"))
    >>> protocol.privatize([[0.3, 0.4], [0.1, 0.0]], ["yes", "no"]).shape
    (2, 3)
    """

    budget_split: float = 0.5

    def __post_init__(self):
        self._check_domain()
        randomizer = self.randomizer  # an impossible budget raises here, not on the first client
        for name in ("epsilon", "delta", "budget_split"):
            object.__setattr__(self, name, getattr(randomizer, name))

    @property
    def has_intercept(self) -> bool:
        """Whether the reports can be used to estimate an intercept: always."""
        return True

    @property
    def keeps_reports(self) -> bool:
        """Whether an aggregate keeps the reports themselves: always."""
        return True

    @cached_property
    def randomizer(self):
        """Mechanism that randomises a record with its label."""
        return LabelledRecord(epsilon=self.epsilon, delta=self.delta, n_features=self.n_features,
                              budget_split=self.budget_split)

    def extreme_reports(self):
        """Reports at corners and face centres of the box of valid reports, and halfway to them, with either label."""
        d, top = self.n_features, self.randomizer.vector.clamp[1]
        signs = np.random.default_rng(0).choice([-1, 1], size=(_N_CORNERS, d))
        directions = np.concatenate([np.eye(d, dtype=int), -np.eye(d, dtype=int), signs, -signs])
        records = np.concatenate([top * directions, top * directions // 2])
        reports = np.array([[*record, label] for record in records.tolist() for label in (0, 1)])
        return reports.astype(self.randomizer.report_dtype)

    def _possible(self, tally):
        return False  # there are no sums: every report is kept

    def _tally(self, reports):
        return RecordTally(len(reports), np.array(reports, dtype=self.randomizer.report_dtype))
