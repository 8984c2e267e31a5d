"""Tests of reported categories: their shares, the bits of subsets and of unary encoding, and pairs of bits."""

import math

import numpy as np
from scipy.special import bdtr

from skldp.analysis.report_checks._bounds import Finding, at_least, at_most, log_choose, log_most_equal, ones_p_value
from skldp.analysis.report_checks._equal import distinct_rows, equal_findings, most_equal_finding, repeats_finding
from skldp.analysis.report_checks._laws import log_largest_subset, log_largest_unary
from skldp.analysis.report_checks._spikes import row_finding
from skldp.protocols._tallies import PairTally, RowTally

_MOST_SIZES = 256  # sizes of the sets of categories that are looked at
_SMALLEST_TAIL = 1e-290  # above what underflows


def category_findings(protocol, tally, rows):
    """Every test of reported categories."""
    return _bit_findings(protocol, tally, rows) if protocol.sends_bits else [_share_finding(protocol, tally)]


def _share_finding(protocol, tally):
    """Test the counts of randomised response: every set of a categories has a share of a q at least.

    Of the sets of one size only the one with the fewest reports matters. The largest counts need no test of their own:
    they are what the rest leaves.
    """
    k, n = protocol.n_categories, tally.n_reports
    if k == 1:
        return Finding(1.0, "There is only one category.")
    sizes = np.unique(np.geomspace(1, k - 1, _MOST_SIZES).astype(int)) if k > _MOST_SIZES else np.arange(1, k)
    fewest = np.cumsum(np.sort(tally.sums))[sizes - 1]
    expected = sizes * protocol.randomizer.q * (1 - 1e-9)
    # A tail that underflows must not win over a number of sets beyond the range of floats.
    tail = np.maximum(at_most(fewest, n, expected), _SMALLEST_TAIL)
    log_p = np.log(tail) + log_choose(k, sizes) + math.log(len(sizes))
    place = int(log_p.argmin())
    reason = (f"{fewest[place]} of {n} reports name one of {sizes[place]} rare categories, and at least "
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
    """Test how often each bit, or pair of bits, is set, given its probabilities with and without the record."""
    least, most = min(one, other) * (1 - 1e-9), max(one, other) * (1 + 1e-9)
    p_values = np.array([at_least(counts, n, most), at_most(counts, n, least)])
    side, place = np.unravel_index(p_values.argmin(), p_values.shape)
    bound = f"at most {n * most:.1f}" if side == 0 else f"at least {n * least:.1f}"
    reason = f"{counts[place]} of {n} reports contain {what}, and {bound} are expected for any records."
    return Finding(float(p_values.min()) * p_values.size, reason)


def _total_finding(mechanism, n_ones, n):
    """Test the number of ones in all reports of unary encoding, whose distribution no record changes."""
    n_others = mechanism.n_categories - 1
    expected = n * (mechanism.p + n_others * mechanism.q)
    reason = f"The {n} reports have {n_ones} ones in all, and {expected:.0f} are expected for any records."
    return Finding(ones_p_value(n_ones, n, mechanism.p, mechanism.q, n_others), reason)


def _ones_finding(mechanism, ones, multiplicity):
    """Test the numbers of ones of single reports, and below each number: their distribution is known, too."""
    d, n = mechanism.n_categories, int(multiplicity.sum())
    others = np.append(bdtr(np.arange(d), d - 1, mechanism.q) if d > 1 else np.ones(1), 1.0)
    below = (others + np.append(0.0, others[:-1])) / 2
    each = np.bincount(ones, weights=multiplicity, minlength=d + 1)
    seen = np.concatenate([each, np.cumsum(each)[:-1]])
    probability = np.clip(np.concatenate([np.diff(below, prepend=0.0), below[:-1]]), 0.0, 1.0)
    upper = at_least(seen, n, probability * (1 + 1e-9) + 1e-15)
    lower = at_most(seen, n, np.maximum(probability * (1 - 1e-9) - 1e-15, 0.0))
    p_values = np.minimum(upper, lower)
    place = int(p_values.argmin())
    words = f"exactly {place}" if place <= d else f"at most {place - d - 1}"
    reason = (f"{seen[place]:.0f} of {n} reports have {words} ones, and {n * probability[place]:.1f} are expected "
              "for any records.")
    return Finding(float(p_values.min()) * 2 * len(p_values), reason)


def _equal_unary(mechanism, ones, multiplicity):
    """As for other equal reports, but for each number of ones on its own: rows with more ones are rarer."""
    n, most = int(multiplicity.sum()), np.zeros(mechanism.n_categories + 1, dtype=int)
    np.maximum.at(most, ones, multiplicity)
    log_largest, log_possible = log_largest_unary(mechanism)
    log_p = [log_most_equal(int(count), n, *terms) for count, *terms in zip(most, log_largest, log_possible)]
    place = int(np.argmin(log_p))
    equal = most_equal_finding(int(most[place]), n, log_largest[place], log_p[place] + math.log(len(most)))
    return [equal, repeats_finding(n - len(multiplicity), n, log_largest.max())]
