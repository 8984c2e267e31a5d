"""Tests of the ledger: its sums, how it matches rows, and its warnings about what it may have missed."""

import itertools
import math
import multiprocessing
import os
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from skldp.privacy import Ledger, hockey_stick
from skldp.privacy import _ledger as accounts
from skldp.privacy._spending import counting, one_call, spend
from skldp.protocols import ValueProtocol

pytestmark = pytest.mark.usefixtures("no_older_workers")
ROWS = np.arange(12.0).reshape(6, 2)
needs_fork = pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
quiet_fork = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def test_nothing_is_counted_unless_a_ledger_is_open():
    ledger = Ledger()
    spend(1.0, 0.0, ROWS)
    with ledger:
        assert counting()
    spend(1.0, 0.0, ROWS)
    assert not counting() and (ledger.largest, ledger.upper) == (0.0, 0.0)
    assert "0 calls, 0 rows" in ledger.summary()


def test_totals_by_content_and_over_calls():
    with Ledger() as spent:
        spend(1.0, 0.0, ROWS[:4])
        spend(0.5, 1e-6, ROWS[2:])
        spend(0.25, 1e-6, ROWS[4:])
    assert (spent.largest, spent.upper) == (1.5, 1.75)
    assert "3 calls, 6 rows" in spent.summary()
    assert "epsilon 1.5, delta 2e-06" in spent.summary() and "epsilon 1.75, delta 2e-06" in spent.summary()


def test_equal_rows_of_one_call_are_different_clients_and_match_by_number():
    with Ledger() as spent:
        spend(1.0, 0.0, np.zeros((3, 2)))
        assert spent.largest == 1.0
        spend(1.0, 0.0, np.zeros((2, 2)))
    assert spent.largest == 2.0 and "3 rows" in spent.summary()


def test_parts_of_one_call_are_different_people():
    with Ledger() as spent:
        with one_call():
            spend(0.5, 0.0, np.zeros((2, 1)))
            spend(4.0, 0.0, np.zeros((2, 1)))
        assert (spent.largest, spent.upper) == (4.0, 4.0)
        spend(1.0, 0.0, np.zeros((4, 1)))
    assert (spent.largest, spent.upper) == (5.0, 5.0)


@pytest.mark.parametrize("one, other", [
    ([[0.0, np.nan]], [[-0.0, -np.nan]]), ([[1, 2]], [[1.0, 2.0]]), (np.asfortranarray(ROWS), ROWS),
    ([["a", "b"]], np.array([["a", "b"]], dtype="<U9")), ([["\ud800"]], np.array([["\ud800"]], dtype=object)),
    (ROWS[:, 0], ROWS[:, :1]), (ROWS[::2], ROWS[::2].copy()), ([[True]], [[1]]),
])
def test_equal_content_in_another_form_matches(one, other):
    with Ledger() as spent:
        spend(1.0, 0.0, np.asarray(one))
        spend(1.0, 0.0, np.asarray(other))
    assert spent.largest == 2.0


@pytest.mark.parametrize("one, other", [
    ([[1.0, 2.0]], [[2.0, 1.0]]), ([["ab", "c"]], [["a", "bc"]]), ([[1.0]], [["1.0"]]),
])
def test_other_content_does_not_match(one, other):
    with Ledger() as spent:
        spend(1.0, 0.0, np.asarray(one))
        spend(1.0, 0.0, np.asarray(other))
    assert (spent.largest, spent.upper) == (1.0, 2.0)


def test_no_rows_spend_nothing():
    with Ledger() as spent:
        spend(1.0, 0.0, np.empty((0, 3)))
    assert spent.upper == 0.0


def test_no_noise_is_an_infinite_budget():
    with Ledger() as spent:
        spend(math.inf, 0.0, ROWS)
        spend(1.0, 0.0, ROWS)
    assert (spent.largest, spent.upper) == (math.inf, math.inf) and "epsilon inf, delta 0." in spent.summary()


def test_ledgers_nest_and_may_be_opened_again():
    with Ledger() as outer:
        spend(1.0, 0.0, ROWS)
        inner = Ledger().open()
        spend(2.0, 0.0, ROWS)
        inner.close()
        spend(4.0, 0.0, ROWS)
    with outer:
        spend(8.0, 0.0, ROWS)
    assert inner.largest == 2.0 and outer.upper == 15.0


def test_a_ledger_cannot_be_opened_twice():
    with Ledger() as spent, pytest.raises(RuntimeError, match="open already"):
        spent.open()
    spent.close()
    spent.close()
    assert not counting()


def test_threads_are_counted():
    def work(start):
        for _ in range(50):
            with one_call():
                spend(0.5, 0.0, ROWS[start:])

    with Ledger() as spent:
        threads = [threading.Thread(target=work, args=(start,)) for start in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert (spent.largest, spent.upper) == (100.0, 100.0)


def test_only_digests_are_kept_and_every_ledger_has_its_own_key():
    with Ledger() as one, Ledger() as other:
        spend(1.0, 0.0, np.array([["secret-value"]], dtype=object))
        assert not set(one._totals) & set(other._totals)
        assert one._spool.folder.stat().st_mode & 0o077 == 0
    assert b"secret" not in b"".join(one._totals) and "secret" not in repr(vars(one))


def exact_delta(budgets, epsilon):
    """Delta at epsilon of a composition of randomised responses, the worst mechanisms for these budgets."""
    p, q = np.ones(1), np.ones(1)
    for budget in budgets:
        true = 1 / (1 + math.exp(-budget))
        p, q = (np.concatenate([both * first, both * (1 - first)]) for both, first in ((p, true), (q, 1 - true)))
    return hockey_stick(p, q, epsilon)


@pytest.mark.parametrize("budgets, delta", [([0.1] * 14, 1e-2), ([0.3] * 14, 1e-1), ([0.05, 0.4] * 7, 5e-2)])
def test_advanced_composition_is_smaller_than_the_sum_and_holds(budgets, delta):
    total = accounts._NOTHING
    for budget in budgets:
        total = total.plus(accounts._Total.of(budget, 0.0))
    advanced = total.advanced(delta)
    assert exact_delta(budgets, advanced) <= delta
    assert exact_delta(budgets, 0.3 * advanced) > delta  # shows that the check above can fail


def test_the_summary_composes_both_ways():
    with Ledger() as spent:
        for _ in range(1000):
            spend(0.01, 1e-9, ROWS[:1])
    text = spent.summary(delta=1e-5)
    epsilon = 10 * math.tanh(0.005) + math.sqrt(2 * math.log(1e5) * 1000 * 1e-4)
    assert text.count(f"epsilon 10, delta 1e-06; or epsilon {epsilon:.3g} at delta 1.1e-05 (advanced") == 2
    with pytest.raises(ValueError, match="delta"):
        spent.summary(delta=0.0)


def test_the_summary_warns_that_changed_rows_cannot_be_matched():
    with Ledger() as spent:
        spend(1.0, 0.0, ROWS)
    assert "a scaler or PCA fitted on each fold, cannot be matched" in spent.summary()
    assert "could not see" not in spent.summary()


def test_no_files_or_variables_remain():
    before = dict(os.environ)
    with Ledger() as spent:
        folder = spent._spool.folder
        assert folder.exists() and os.environ != before
    assert not folder.exists() and os.environ == before


def test_a_program_that_ends_with_an_open_ledger_removes_its_folder():
    code = "from skldp.privacy import Ledger; ledger = Ledger().open(); print(ledger._spool.folder)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not pathlib.Path(done.stdout.strip()).exists()


CHILD = "import numpy as np; from skldp.privacy._spending import spend; spend(2.0, 0.0, np.zeros((3, 2)))"


def test_processes_started_inside_are_counted():
    with Ledger() as outer, Ledger() as inner:
        spend(1.0, 0.0, np.zeros((3, 2)))
        subprocess.run([sys.executable, "-c", CHILD], check=True)
        assert outer.largest == inner.largest == 3.0
    assert outer.upper == inner.upper == 3.0


def spend_a_lot():
    with one_call():
        for row in ROWS:
            spend(1.0, 0.0, row[None, :])


@needs_fork
@quiet_fork
def test_forked_children_are_counted():
    with Ledger() as spent:
        children = [multiprocessing.get_context("fork").Process(target=spend_a_lot) for _ in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        spend(1.0, 0.0, ROWS)
    assert (spent.largest, spent.upper) == (4.0, 4.0)


def leave_the_block(ledger):
    with pytest.raises(RuntimeError, match="belongs to process"):
        ledger.largest
    ledger.close()
    os._exit(0 if not counting() else 1)


@needs_fork
@quiet_fork
def test_a_forked_child_does_not_change_the_ledger_of_its_parent():
    with Ledger() as spent:
        child = multiprocessing.get_context("fork").Process(target=leave_the_block, args=(spent,))
        child.start()
        child.join()
        spend_a_lot()
        assert child.exitcode == 0 and spent._spool.folder.exists()
    assert spent.upper == 1.0


@needs_fork
@quiet_fork
def test_older_children_that_work_on_their_own_are_warned_about():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(spend_a_lot)
        time.sleep(0.1)
        with Ledger() as idle:
            spend_a_lot()
        with pytest.warns(UserWarning, match="could not see 1 child processes"), Ledger() as spent:
            pool.apply(sum, ([0.1] * 10**6,))
    assert "could not see" not in idle.summary() and "could not see 1 child" in spent.summary()


def report_one_value():
    ValueProtocol().privatize(0.5)


@needs_fork
@quiet_fork
def test_older_children_that_report_a_single_value_are_warned_about():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        for _ in range(5):
            pool.apply(report_one_value)
        time.sleep(0.1)
        with pytest.warns(UserWarning, match="could not see 1 child processes"), Ledger():
            pool.apply(report_one_value)


def test_an_incomplete_message_is_warned_about():
    with pytest.warns(UserWarning, match="incomplete"), Ledger() as spent:
        (spent._spool.folder / "spent-1-00.part").write_bytes(b"")
    assert "incomplete" in spent.summary()


def test_a_removed_folder_is_warned_about():
    with pytest.warns(UserWarning, match="incomplete"), Ledger() as spent:
        spent._spool.remove()
        spend(1.0, 0.0, ROWS)
    assert spent.largest == 1.0


def test_an_error_inside_is_not_hidden_by_a_warning():
    with pytest.raises(KeyError), Ledger() as spent:
        spent._spool.remove()
        raise KeyError
    assert "incomplete" in spent.summary() and not counting()


def test_the_largest_is_at_most_the_sum_over_calls():
    rng = np.random.default_rng(0)
    for budgets in itertools.product([0.5, 2.0], repeat=3):
        with Ledger() as spent:
            for budget in budgets:
                spend(budget, 0.0, rng.integers(2, size=(5, 2)))
        assert 2.0 * (max(budgets) == 2.0) <= spent.largest <= spent.upper == sum(budgets)
