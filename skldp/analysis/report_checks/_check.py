r"""Could honest clients have sent these reports? A test that is valid for any records.

Every test here has the hypothesis that each report was drawn by the mechanism from some record. The records are
arbitrary, so a lie that some data could explain is not seen, and a small p-value does not come from strange data. The
tests of a collection are combined by Bonferroni's correction; their number depends on the protocol alone.
"""

import math
from dataclasses import dataclass

from skldp.analysis.report_checks._categories import category_findings
from skldp.analysis.report_checks._values import value_findings
from skldp.analysis.report_checks._vectors import vector_findings
from skldp.protocols._category_protocol import CategoryProtocol
from skldp.protocols._tallies import RecordTally
from skldp.protocols._values import ValueProtocol

WARNING_LEVEL = 1e-4  # of the p-value; a tenth of the false alarms that are promised
NEGLECTED = 1e-12  # added to every p-value: covers events that the bounds leave out, each rarer than 1e-13


@dataclass(frozen=True)
class ReportCheck:
    """Whether honest clients could have sent a collection of reports.

    Parameters
    ----------
    p_value : float
        Largest probability, over all records that the clients may have, of reports as strange as these. A small one
        means that some reports were not made by the protocol; a large one does not mean that all were.
    reason : str
        What is strangest about the reports, in a sentence.

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


def check_rows(protocol, reports):
    """Test reports under a protocol, one row for each client, which must be valid.

    Parameters
    ----------
    protocol : Protocol
        What the reports came under; a GradientProtocol, too.
    reports : array-like of int, shape (n, width)
        Reports of unknown origin.

    Returns
    -------
    ReportCheck
    """
    rows, _ = protocol._read(reports)
    return check_aggregate(protocol.aggregate(rows), rows)


def check_aggregate(aggregate, rows=None):
    """Test the sums of reports, and the reports themselves where they are at hand.

    Parameters
    ----------
    aggregate : Aggregate
        The sums.
    rows : ndarray of int or None
        The valid reports behind the sums, if they came under one protocol.

    Returns
    -------
    ReportCheck
    """
    noisy = [part for part in aggregate.parts.items() if part[1].n_reports and part[0].epsilon < math.inf]
    findings = [finding for protocol, tally in noisy for finding in _findings(protocol, tally, rows)]
    if not findings:
        return ReportCheck(1.0, "No report says anything: there is none, or none has any noise.")
    return _combined(findings)


def _combined(findings):
    """Bonferroni's correction for the number of tests."""
    strangest = min(findings, key=lambda finding: finding.p_value)  # of ties the first: equal reports
    return ReportCheck(min(1.0, len(findings) * strangest.p_value + NEGLECTED), strangest.reason)


def _findings(protocol, tally, rows):
    """Every test of the reports under one protocol."""
    if isinstance(tally, RecordTally):
        rows = tally.reports
    if isinstance(protocol, ValueProtocol):
        return value_findings(protocol, tally, rows)
    if isinstance(protocol, CategoryProtocol):
        return category_findings(protocol, tally, rows)
    return vector_findings(protocol, tally, rows)
