"""Tests of equal reports: the count of the most frequent report, and the number of repeats."""

import math

import numpy as np

from skldp.analysis.report_checks._bounds import Finding, expected_repeats, log_most_equal, repeats_p_value


def equal_findings(multiplicity, n, log_largest, log_possible):
    """Test the count of the most frequent report, and the number of reports that repeat others."""
    most = int(multiplicity.max())
    log_p = log_most_equal(most, n, log_largest, log_possible)
    return [most_equal_finding(most, n, log_largest, log_p),
            repeats_finding(n - len(multiplicity), n, log_largest)]


def most_equal_finding(most, n, log_largest, log_p):
    """Return the finding about the most frequent report, given the logarithm of its p-value."""
    reason = (f"{most} of {n} reports are the same, and for any records at most {n * math.exp(log_largest):.3g} are "
              "expected of any one report.")
    return Finding(math.exp(min(log_p, 0.0)), reason)


def repeats_finding(n_repeats, n, log_largest):
    """Return the finding about the number of reports that repeat others."""
    expected = expected_repeats(n, log_largest)
    reason = (f"{n_repeats} of {n} reports are copies of others, and at most {expected:.3g} are expected for any "
              "records.")
    return Finding(repeats_p_value(n_repeats, n, log_largest), reason)


def multiplicities(rows):
    """Return the count of each distinct row."""
    return distinct_rows(np.ascontiguousarray(rows))[1]


def distinct_rows(rows):
    """Return the distinct rows and their counts."""
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    distinct, multiplicity = np.unique(whole, return_counts=True)
    return distinct.view(rows.dtype).reshape(-1, rows.shape[1]), multiplicity
