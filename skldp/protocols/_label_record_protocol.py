"""Noisy records with their randomised labels."""

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
    epsilon : float, default=1.0
        Budget of a client.
    delta : float, default=1e-5
        Failure probability of a client.
    data_norm : float, default=1.0
        Public bound on the Euclidean norm of x; longer records are shortened.
    classes : tuple, default=(0, 1)
        The two public labels, which are put in order: the later one is 1 and the other -1. A label that is none of
        them is replaced by either, at random.
    budget_split : float, default=0.5
        Share of epsilon that the label gets.
    n_features : int, default=1
        Length of x.

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
        randomizer = self.randomizer  # an impossible budget is an error here, not on the first client
        for name in ("epsilon", "delta", "budget_split"):
            object.__setattr__(self, name, getattr(randomizer, name))

    @property
    def has_intercept(self) -> bool:
        """Records tell an intercept, whether a model has one or not."""
        return True

    @property
    def keeps_reports(self) -> bool:
        """Whether an aggregate keeps the reports themselves: it does."""
        return True

    @cached_property
    def randomizer(self):
        """The mechanism."""
        return LabelledRecord(epsilon=self.epsilon, delta=self.delta, n_features=self.n_features,
                              budget_split=self.budget_split)

    def extreme_reports(self):
        """Records at corners and faces of the box of all reports, and half way there, with either label."""
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
