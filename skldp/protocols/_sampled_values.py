"""Protocol for one value of each client, out of several."""

from dataclasses import dataclass

import numpy as np

from skldp._validation._limits import MAX_FEATURES
from skldp._validation._parameters import check_integer, smallest_integer_dtype
from skldp.privacy._spending import spend
from skldp.privacy._words import SystemWords, word_source
from skldp.protocols._column_sampling import by_column, draw_columns, own_reports, to_rows
from skldp.protocols._values import ValueProtocol


@dataclass(frozen=True, kw_only=True)
class SampledValueProtocol(ValueProtocol):
    r"""Each client sends one of its noisy values, chosen by its own coin, with its whole budget.

    Parameters
    ----------
    epsilon, delta, bounds, mechanism, n_levels
        As in :class:`ValueProtocol`.
    window : "auto", float or None, default="auto"
        Half-window of the square wave as a share of the range. "auto" is replaced by the number for the whole budget.
        ``None`` for the other mechanisms, which have no window.
    n_features : int, default=2
        Number of values of a client, at least 2.

    See Also
    --------
    ValueProtocol : Each client sends all of its values, and splits its budget.

    Notes
    -----
    A report has ``n_features + 1`` integers: the number j of a column, then a place for each column, with the noisy
    value at place j and zeros at the others.

    *Privacy.* The client draws j before it reads its record, with probabilities :math:`\pi_j` that do not depend on the
    record. So for all records x and x', which may differ in every column, and every report (j, z),

    .. math:: \frac{P(j, z|x)}{P(j, z|x')} = \frac{\pi_j\,P(z|x_j)}{\pi_j\,P(z|x'_j)} \le e^\epsilon:

    the index costs no budget, also if the coin is not exactly uniform. With Gaussian noise the inequality for an event
    holds with delta given each j, and so on average over j.

    *People.* Each column has N/k reports with budget :math:`\epsilon`, instead of N reports with :math:`\epsilon/k`.
    The variance of an estimate from n reports is about V/n with :math:`V(\epsilon) = \sigma^2 + c/\epsilon^2`, a part
    from the records and one from the noise. Then sampling needs :math:`kV(\epsilon)/V(\epsilon/k)` times as many
    people: 1/k for a small epsilon, and fewer than splitting if :math:`\epsilon < \sqrt{kc}/\sigma`.

    Examples
    --------
    >>> from skldp.protocols import Protocol, SampledValueProtocol
    >>> protocol = SampledValueProtocol(epsilon=1.0, bounds=(0, 100), n_features=3)
    >>> report = Protocol.from_json(protocol.to_json()).privatize([37.5, 20.0, 3.0])
    >>> report.shape, protocol.check(report), protocol.randomizer.epsilon
    ((1, 4), array([ True]), 1.0)
    """

    n_features: int = 2

    def __post_init__(self):
        check_integer(self.n_features, "n_features", 2, MAX_FEATURES)
        super().__post_init__()

    @property
    def n_reported(self) -> int:
        """Number of values in a report, which share the budget."""
        return 1

    @property
    def width(self) -> int:
        """Number of integers in a report."""
        return self.n_features + 1

    def _features_of(self, width):
        return max(width - 1, 2)

    @property
    def report_dtype(self):
        """Integer dtype of reports."""
        low, high = self.randomizer.clamp
        return smallest_integer_dtype(min(low, 0), max(high, self.n_features - 1))

    def _draw(self, X, y, random_state):
        spend(self.epsilon, self.delta, X)
        source = SystemWords() if random_state is None else word_source(random_state, repr(self), *self._compared(X, y))
        columns = draw_columns(len(X), self.n_features, source)
        reports = self._scheme.randomize(self, X[np.arange(len(X)), columns], source)
        yield to_rows(columns, reports, self.n_features, self.report_dtype)

    def reported(self, reports):
        """Return the noisy values in valid reports, shape (n, n_reported)."""
        return own_reports(reports)[0][:, None]

    def _valid_rows(self, reports):
        own, well_formed = own_reports(reports)
        return well_formed & super()._valid_rows(own[:, None])

    def _by_column(self, reports):
        return by_column(reports)

    def _possible_totals(self, totals, n_reports):
        return totals.sum() == n_reports
