"""Tests of reported values: their counts in intervals, and their distance from the bounds."""

import math

import numpy as np

from skldp.analysis.report_checks._bounds import Finding, at_least, at_most, log_choose
from skldp.analysis.report_checks._equal import equal_findings, multiplicities
from skldp.analysis.report_checks._laws import interval_probabilities, log_largest_value
from skldp.analysis.report_checks._spikes import window_finding
from skldp.mechanisms._laplace import Laplace
from skldp.mechanisms._square_wave import SquareWave
from skldp.privacy._noise import laplace_slack

_MOST_CELLS = 4096  # cells of a value that are tested one by one and in dyadic groups; more are merged first


def value_findings(protocol, tally, rows):
    """Run every test of reported values."""
    mechanism, columns = protocol.randomizer, list(enumerate(tally.sums))
    findings = [_interval_finding(protocol, column, counts) for column, counts in columns]
    if protocol.n_reported < protocol.n_features:
        findings.append(_coin_finding(tally.sums.sum(axis=1)))
    for test in _COUNT_TESTS.get(type(mechanism), ()):
        findings += [test(mechanism, column, counts) for column, counts in columns]
    if rows is None:
        return findings
    findings += [test(mechanism, protocol.reported(rows)) for test in _ROW_TESTS.get(type(mechanism), ())]
    log_largest, log_possible = (protocol.n_reported * term for term in log_largest_value(mechanism))
    # Each choice of the columns in a report is equally probable.
    log_choices = float(log_choose(protocol.n_features, protocol.n_reported))
    log_largest, log_possible = log_largest - log_choices, log_possible + log_choices
    return equal_findings(multiplicities(rows), tally.n_reports, log_largest, log_possible) + findings


def _coin_finding(totals):
    """Test how many reports there are of each column, of which every client draws one with equal probabilities."""
    n, k = int(totals.sum()), len(totals)
    p_values = np.array([at_least(totals, n, (1 + 1e-9) / k), at_most(totals, n, (1 - 1e-9) / k)])
    place = int(p_values.min(axis=0).argmin())
    reason = f"{totals[place]} of {n} reports are of column {place}, and {n / k:.1f} are expected for any records."
    return Finding(float(p_values.min()) * p_values.size, reason)


def _interval_finding(protocol, column, counts):
    """Test the counts of a value in cells, in dyadic groups of cells, and below every cell edge."""
    edges = protocol.cells.report_edges
    group = -(-len(counts) // _MOST_CELLS)
    edges = np.append(edges[:-1:group], edges[-1])
    below = np.concatenate([[0], np.cumsum(counts)[group - 1:-1:group], [counts.sum()]])
    first, last = _intervals(len(edges) - 1)
    n, seen = int(counts.sum()), below[last] - below[first]
    least, most = interval_probabilities(protocol.randomizer, edges[first], edges[last])
    p_values = np.array([at_least(seen, n, most), at_most(seen, n, least)])
    side, place = np.unravel_index(p_values.argmin(), p_values.shape)
    bound = "at most" if side == 0 else "at least"
    expected = n * (most, least)[side][place]
    reason = (f"{seen[place]} of {n} reports (column {column}) lie from {edges[first[place]]:.0f} to "
              f"{edges[last[place]] - 1:.0f}, and {bound} {expected:.1f} are expected for any records.")
    return Finding(float(p_values.min()) * p_values.size, reason)


def _intervals(n_cells):
    """Return the first cell and the last cell plus one of dyadic intervals and of all intervals from the first cell."""
    first, last, width = [], [], 1
    while width < n_cells:
        starts = np.arange(0, n_cells, width)
        first.append(starts)
        last.append(np.minimum(starts + width, n_cells))
        width *= 2
    first.append(np.zeros(n_cells - 1, dtype=int))
    last.append(np.arange(1, n_cells))
    return np.concatenate(first), np.concatenate(last)


def _excess_finding(mechanism, rows):
    """Test the largest distance of a report with Laplace noise from the domain."""
    excess = max(int(rows.max()) - mechanism.n_levels, -int(rows.min()), 0)
    slack = laplace_slack(mechanism.scale, mechanism.epsilon)
    log_p = math.log(rows.size) - (excess - 0.5) / mechanism.scale + slack
    reason = (f"A report lies {excess / mechanism.scale:.1f} noise scales outside the bounds, and the farthest of "
              f"{rows.size} values is expected at about {math.log(rows.size):.1f} at most.")
    return Finding(math.exp(min(log_p, 0.0)), reason)


# Tests that only one mechanism has: of the counts in cells, column by column, and of the reports themselves.
_COUNT_TESTS: dict = {SquareWave: (window_finding,)}
_ROW_TESTS: dict = {Laplace: (_excess_finding,)}
