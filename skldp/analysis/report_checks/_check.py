r"""Test of whether honest clients could have sent a collection of reports, valid for any records.

The null hypothesis of every test is that the mechanism drew each report from some record. The records are arbitrary:
unusual data do not cause small p-values, and forged reports that some data could explain are not detected. The tests of
a collection are combined by Bonferroni's correction; their number depends on the protocol alone.
"""

import math
from dataclasses import dataclass

from skldp.analysis.report_checks._categories import category_findings, pair_findings
from skldp.analysis.report_checks._values import value_findings
from skldp.analysis.report_checks._vectors import vector_findings
from skldp.protocols._category_protocol import CategoryProtocol
from skldp.protocols._pair_protocol import PairProtocol
from skldp.protocols._tallies import RecordTally
from skldp.protocols._values import ValueProtocol

WARNING_LEVEL = 1e-4  # p-values below it cause a warning; a tenth of the promised rate of false alarms
_NEGLECTED = 1e-12  # added to every p-value, for the events that the bounds ignore, each rarer than 1e-13


@dataclass(frozen=True)
class ReportCheck:
    """Result of the test of whether honest clients could have sent a collection of reports.

    Parameters
    ----------
    p_value : float
        Largest probability, over all records that the clients may have, of reports as extreme as these. A small value
        means that some reports were not made by the protocol; a large value does not mean that all were.
    reason : str
        The result of the test with the smallest p-value, in a sentence.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPGaussian
    >>> model = LDPGaussian(bounds=(0, 10), random_state=0)
    >>> reports = model.privatize(np.full((5000, 1), 3.0))
    >>> bool(model.check_reports(reports).p_value > 0.01)
    True
    """

    p_value: float
    reason: str


def check_aggregate(aggregate, rows=None):
    """Test the sums of reports, and also the reports themselves if they are available and all of one protocol."""
    noisy = [part for part in aggregate.parts.items() if part[1].n_reports and part[0].epsilon < math.inf]
    findings = [finding for protocol, tally in noisy for finding in _findings(protocol, tally, rows)]
    if not findings:
        return ReportCheck(1.0, "Nothing to test: there are no reports, or they have no noise.")
    return _combined(findings)


def _combined(findings):
    """Combine all tests by Bonferroni's correction."""
    smallest = min(findings, key=lambda finding: finding.p_value)  # of ties the first, which is about equal reports
    return ReportCheck(min(1.0, len(findings) * smallest.p_value + _NEGLECTED), smallest.reason)


def _findings(protocol, tally, rows):
    """Run every test of the reports of one protocol."""
    if isinstance(tally, RecordTally):
        rows = tally.reports
    if isinstance(protocol, ValueProtocol):
        return value_findings(protocol, tally, rows)
    if isinstance(protocol, CategoryProtocol):
        return category_findings(protocol, tally, rows)
    if isinstance(protocol, PairProtocol):
        return pair_findings(protocol, tally)
    return vector_findings(protocol, tally, rows)
