"""Tests of reported categories: counts of categories, of bits and of pairs of bits."""

import math

import numpy as np
from scipy.special import bdtr

from skldp.analysis.report_checks._bounds import Finding, at_least, at_most, log_choose, log_most_equal, ones_p_value
from skldp.analysis.report_checks._equal import distinct_rows, equal_findings, most_equal_finding, repeats_finding
from skldp.analysis.report_checks._laws import log_largest_subset, log_largest_unary
from skldp.analysis.report_checks._spikes import row_finding
from skldp.protocols._tallies import PairTally, RowTally

_MOST_SIZES = 256  # largest number of sizes of sets of categories that are tested
_SMALLEST_TAIL = 1e-290  # does not underflow


def category_findings(protocol, tally, rows):
    """Run every test of reported categories."""
    if protocol.sends_bits:
        return _bit_findings(protocol, tally, rows)
    return _number_findings(protocol.randomizer, tally.sums, tally.n_reports)


def pair_findings(protocol, tally):
    """Run every test of the reports of each table of attributes, and one of how often each table was chosen."""
    counts = np.split(tally.sums, protocol.starts[1:-1])
    sizes = np.array([part.sum() for part in counts])
    shares = np.array(protocol.shares) / sum(protocol.shares)
    findings = [_bit_finding("a table of attributes", sizes, tally.n_reports, shares, shares)] if len(sizes) > 1 else []
    for mechanism, part in zip(protocol.randomizer, counts):
        findings += _number_findings(mechanism, part, int(part.sum()))
    return findings


def _number_findings(mechanism, counts, n_reports):
    """Test counts of reports that are one number each."""
    findings = [_share_finding(mechanism, counts, n_reports)]
    if not mechanism.names_one:
        near = mechanism.category_counts(counts)
        findings.append(_bit_finding("a category", near, n_reports, mechanism.p, mechanism.q))
    return findings


def _share_finding(mechanism, counts, n):
    """Test the counts of reports that are one number: each number has at least the probability of a far one.

    Of the sets of one size only the one with the fewest reports is tested. Large counts need no separate test, because
    they imply small counts of the remaining categories.
    """
    k = mechanism.n_counts
    if k == 1:
        return Finding(1.0, "There is only one category.")
    sizes = np.unique(np.geomspace(1, k - 1, _MOST_SIZES).astype(int)) if k > _MOST_SIZES else np.arange(1, k)
    fewest = np.cumsum(np.sort(counts))[sizes - 1]
    expected = sizes * mechanism.far_probability * (1 - 1e-9)
    # A tail that underflows to 0 would outweigh the number of sets, which can exceed the range of floats.
    tail = np.maximum(at_most(fewest, n, expected), _SMALLEST_TAIL)
    log_p = np.log(tail) + log_choose(k, sizes) + math.log(len(sizes))
    place = int(log_p.argmin())
    reason = (f"{fewest[place]} of {n} reports have one of {sizes[place]} rare values, and at least "
              f"{n * expected[place]:.1f} are expected for any records.")
    return Finding(float(np.exp(min(log_p[place], 0.0))), reason)


def _bit_findings(protocol, tally, rows):
    mechanism, n = protocol.randomizer, tally.n_reports
    if mechanism.certain:
        return [Finding(1.0, "There is only one category.")]
    findings = [_bit_finding("a category", tally.sums, n, mechanism.p, mechanism.q)]
    if isinstance(tally, (PairTally, RowTally)) and protocol.counts_pairs:
        pairs = tally.pairs if isinstance(tally, PairTally) else tally.without_rows().pairs
        places = np.triu_indices(protocol.n_categories, 1)
        findings.append(_bit_finding("a pair of categories", pairs[places], n, *mechanism.pair_probabilities))
    if mechanism.n_ones is None:
        findings.append(_total_finding(mechanism, int(tally.sums.sum()), n))
    if isinstance(tally, RowTally):
        distinct, multiplicity = tally.unpacked(), tally.multiplicity
    elif rows is not None:
        packed, multiplicity = distinct_rows(np.packbits(rows.astype(np.uint8, copy=False), axis=1))
        distinct = np.unpackbits(packed, axis=1, count=protocol.width)
    else:
        return findings
    findings.append(row_finding(mechanism, distinct, multiplicity, tally.sums))
    if mechanism.n_ones is None:
        ones = mechanism.number_of_ones(distinct).astype(int)
        return [*_equal_unary(mechanism, ones, multiplicity), _ones_finding(mechanism, ones, multiplicity), *findings]
    return equal_findings(multiplicity, n, *log_largest_subset(mechanism)) + findings


def _bit_finding(what, counts, n, one, other):
    """Test the count of each bit, or pair of bits, given its probabilities with and without the record."""
    one, other = (np.broadcast_to(part, counts.shape) for part in (one, other))
    least, most = np.minimum(one, other) * (1 - 1e-9), np.maximum(one, other) * (1 + 1e-9)
    p_values = np.array([at_least(counts, n, most), at_most(counts, n, least)])
    side, place = np.unravel_index(p_values.argmin(), p_values.shape)
    bound = f"at most {n * most[place]:.1f}" if side == 0 else f"at least {n * least[place]:.1f}"
    reason = f"{counts[place]} of {n} reports contain {what}, and {bound} are expected for any records."
    return Finding(float(p_values.min()) * p_values.size, reason)


def _total_finding(mechanism, n_ones, n):
    """Test the total number of ones in reports of unary encoding; its distribution does not depend on the records."""
    n_others = mechanism.n_categories - 1
    expected = n * (mechanism.p + n_others * mechanism.q)
    reason = f"The {n} reports have {n_ones} ones in all, and {expected:.0f} are expected for any records."
    return Finding(ones_p_value(n_ones, n, mechanism.p, mechanism.q, n_others), reason)


def _ones_finding(mechanism, ones, multiplicity):
    """Test how many reports have exactly, and at most, each number of ones; the records do not affect this either."""
    d, n = mechanism.n_categories, int(multiplicity.sum())
    others = np.append(bdtr(np.arange(d), d - 1, mechanism.q) if d > 1 else np.ones(1), 1.0)
    below = (1 - mechanism.p) * others + mechanism.p * np.append(0.0, others[:-1])
    each = np.bincount(ones, weights=multiplicity, minlength=d + 1)
    seen = np.concatenate([each, np.cumsum(each)[:-1]])
    probability = np.clip(np.concatenate([np.diff(below, prepend=0.0), below[:-1]]), 0.0, 1.0)
    upper = at_least(seen, n, probability * (1 + 1e-9) + 1e-15)
    lower = at_most(seen, n, np.maximum(probability * (1 - 1e-9) - 1e-15, 0.0))
    p_values = np.minimum(upper, lower)
    place = int(p_values.argmin())
    quantity = f"exactly {place}" if place <= d else f"at most {place - d - 1}"
    reason = (f"{seen[place]:.0f} of {n} reports have {quantity} ones, and {n * probability[place]:.1f} are expected "
              "for any records.")
    return Finding(float(p_values.min()) * 2 * len(p_values), reason)


def _equal_unary(mechanism, ones, multiplicity):
    """Test equal reports separately for each number of ones, because rows with more ones are rarer."""
    n, most = int(multiplicity.sum()), np.zeros(mechanism.n_categories + 1, dtype=int)
    np.maximum.at(most, ones, multiplicity)
    log_largest, log_possible = log_largest_unary(mechanism)
    log_p = [log_most_equal(int(count), n, *terms) for count, *terms in zip(most, log_largest, log_possible)]
    place = int(np.argmin(log_p))
    equal = most_equal_finding(int(most[place]), n, log_largest[place], log_p[place] + math.log(len(most)))
    return [equal, repeats_finding(n - len(multiplicity), n, log_largest.max())]
