"""Files, rows and sums just outside and just inside their limits."""

import numpy as np
import pytest

from skldp.exceptions import InvalidReportError
from skldp.protocols import Aggregate, CategoryProtocol, RecordProtocol, ValueProtocol
from skldp.protocols._client_ledger import Account, _Damaged
from skldp.protocols._tallies import PairTally, RowTally, Tally


def test_negative_counts_of_values_are_refused():
    protocol = ValueProtocol(n_levels=8, n_features=2)
    sums = np.zeros((2, protocol.cells.n_cells), dtype=np.int64)
    sums[:, 3] = 3
    honest = Aggregate({protocol: Tally(3, sums)})
    assert Aggregate.from_json(honest.to_json()).n_reports == 3
    for column, place, change in ((0, [3, 4], [1, -1]), (1, [0, 3], [-1, 1]), (1, [3], [1]), (0, [3], [-1])):
        wrong = sums.copy()
        wrong[column, place] += change
        with pytest.raises(InvalidReportError, match="does not hold sums"):
            Aggregate.from_json(Aggregate({protocol: Tally(3, wrong)}).to_json())


def test_many_reports_with_empty_cells_can_be_added():
    """Sums that are zero, or equal, are not mistaken for an integer overflow."""
    protocol = ValueProtocol(n_levels=8)
    sums = np.zeros((1, protocol.cells.n_cells), dtype=np.int64)
    sums[0, [2, 5]] = 2**20, 2**20
    total = Tally(2**21, sums) + Tally(2**21, sums[:, ::-1].copy())
    assert total.n_reports == 2**22
    assert (total.sums == sums + sums[:, ::-1]).all()


def test_rows_of_the_wrong_type_are_refused():
    protocol = CategoryProtocol(categories=list(range(10)), mechanism="subset")
    reports = protocol.privatize([0, 1, 2])
    honest = protocol.aggregate(reports, keep_rows=True).parts[protocol]
    assert honest.fits(protocol)
    rows, counts = honest.rows, honest.multiplicity
    for wrong in ((rows.astype(np.int64), counts), (rows, counts.astype(np.int32)), (rows, counts[:, None]),
                  (rows, counts.tolist()), (rows, counts * 0), (rows, counts + 1)):
        assert not RowTally(honest.n_reports, *wrong, honest.width).fits(protocol)
    assert not RowTally(honest.n_reports, rows, counts, 9).fits(protocol)
    assert not RowTally(float(honest.n_reports), rows, counts, honest.width).fits(protocol)
    assert not RowTally(honest.n_reports, rows, counts, float(honest.width)).fits(protocol)
    response = CategoryProtocol(mechanism="rr")
    one_bit = RowTally(3, np.array([[128]], dtype=np.uint8), np.array([3]), 1)
    assert not one_bit.fits(response), "randomised response sends no bits"


@pytest.mark.parametrize("entry", [2**63, 2**63 + 1, -2**63, -2**63 - 1, 2.0**63, 10**30])
def test_a_row_with_an_entry_above_int64_is_dropped(entry):
    protocol = ValueProtocol()
    aggregate = protocol.aggregate([[0], [entry], ["no number"], [2**63 - 1], [1]], on_invalid="drop")
    assert (aggregate.n_reports, aggregate.n_rejected) == (2, 3)


def test_default_categories():
    assert CategoryProtocol().categories == (0, 1)


@pytest.mark.parametrize("epsilon, delta, count", [
    (1.0, 0.0, 0), (1.0, 0.0, -1), (1.0, 0.0, 1.0), (0.0, 0.0, 1), (20.5, 0.0, 1), (1.0, 1.0, 1), (1.0, -0.1, 1)])
def test_a_ledger_of_impossible_spending_is_damaged(epsilon, delta, count):
    assert Account.from_json(Account(spent={("id", 20.0, 0.0): 1}).to_json()).total() == (20, 0)
    with pytest.raises(_Damaged):
        Account.from_json(Account(spent={("id", epsilon, delta): count}).to_json())


@pytest.mark.parametrize("mechanism, n_levels", [("gaussian", 2**17), ("laplace", 2**16), ("square_wave", 1024)])
def test_values_of_different_codes_are_different_records(mechanism, n_levels):
    """A stored report is returned for a value of the same code, and not for a value of a neighbouring code."""
    protocol = ValueProtocol(epsilon=1.0, delta=1e-5, bounds=(0, 1), mechanism=mechanism)
    codes = np.arange(n_levels // 2 - 3, n_levels // 2 + 4)
    for shift in (0.0, 0.4, -0.4):
        x = ((codes + shift) / n_levels)[:, None]
        assert (protocol._compared(x, None)[0][:, 0] == codes).all()


def test_counts_of_pairs_above_single_precision_are_exact():
    rows, often = np.array([[1, 1, 0], [0, 1, 1]], dtype=np.uint8), np.array([2**24 + 1, 2**40 + 1])
    pairs = PairTally.of(rows, often).pairs
    assert pairs.tolist() == [[often[0], often[0], 0], [often[0], often.sum(), often[1]], [0, often[1], often[1]]]


def test_digests_of_records_have_128_bits():
    assert len(bytes.fromhex(Account().digest(ValueProtocol(), [np.zeros(1)]))) == 16


def test_repr_of_an_account_shows_neither_key_nor_answers():
    account = Account(answers={"0123": ("id", "int16", "c2VjcmV0")})
    text = repr(account)
    assert account.key.hex() not in text and repr(account.key) not in text and "c2VjcmV0" not in text


def test_sums_of_records_are_bounded_by_the_clamps():
    """Sums of reports that are all at a clamp are possible; a sum that is larger by one is not."""
    protocol = RecordProtocol(n_features=1)
    top = protocol.randomizer.clamp[1]
    part = protocol.aggregate(np.full((3, 2), top)).parts[protocol]
    assert part.sums.tolist() == [[3, 3 * top, 3 * top], [3 * top, 3 * top**2, 3 * top**2],
                                  [3 * top, 3 * top**2, 3 * top**2]]
    assert part.fits(protocol)
    for i, j in ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)):
        wrong = part.sums.copy()
        wrong[i, j] = wrong[j, i] = wrong[i, j] + 1
        assert not Tally(3, wrong).fits(protocol)
