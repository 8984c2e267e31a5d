"""Descriptions contain numbers: "auto" is replaced by its value, which depends on the budget of a cohort."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.mechanisms import SquareWave
from skldp.mechanisms._square_wave import automatic_window
from skldp.protocols import (
    Aggregate,
    CategoryProtocol,
    GradientClient,
    GradientProtocol,
    GradientServer,
    LabelRecordProtocol,
    MomentProtocol,
    Protocol,
    RecordProtocol,
    ValueProtocol,
)
from tests.protocols.registry import CASES, NOISY

LETTERS = tuple("abcdefghijklmnop")


@pytest.mark.parametrize("name", NOISY)
def test_every_field_of_a_description_is_a_number_or_a_name(name):
    protocol = CASES[name].protocol
    assert "auto" not in json.loads(protocol.to_json()).values()
    # The numbers determine the mechanism.
    assert Protocol.from_json(protocol.to_json()).randomizer == protocol.randomizer


# Pinned, because another table would change ids, and older files with "auto" were written with this one.
@pytest.mark.parametrize("epsilon, window", [
    (0.01, 0.15), (0.25, 0.15), (0.5, 0.14), (0.75, 0.1325), (1.0, 0.125), (2.0, 0.1), (3.0, 0.06), (4.0, 0.05),
    (6.0, 0.025), (8.0, 0.015), (10.0, 0.01), (12.0, 0.006), (15.0, 0.001), (20.0, 0.001), (math.inf, 0.0)])
def test_the_automatic_window(epsilon, window):
    protocol = ValueProtocol(epsilon=epsilon)
    assert protocol.window == protocol.randomizer.window == automatic_window(epsilon)
    assert protocol.window == pytest.approx(window, rel=1e-15)
    assert protocol.randomizer.half_window == round(protocol.window * 1024)
    assert protocol == ValueProtocol(epsilon=epsilon, window=protocol.window)
    assert protocol.id == ValueProtocol(epsilon=epsilon, window=protocol.window).id


def test_windows_between_the_entries_of_the_table_are_interpolated():
    table = [0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 15.0]
    for epsilon in np.random.default_rng(0).uniform(0.1, 16, size=200).tolist():
        expected = np.interp(epsilon, table, [automatic_window(knot) for knot in table])
        assert automatic_window(epsilon) == pytest.approx(expected, rel=1e-14)


def test_the_automatic_window_depends_on_the_budget_of_one_value():
    assert ValueProtocol(epsilon=4.0, n_features=2).window == 0.1


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("window", ["auto", None, 0.3])
def test_only_the_square_wave_has_a_window(mechanism, window):
    protocol = ValueProtocol(mechanism=mechanism, delta=1e-5, window=window)
    assert protocol.window is None and protocol == ValueProtocol(mechanism=mechanism, delta=1e-5)
    assert json.loads(protocol.to_json())["window"] is None


def test_windows_of_zero_and_minus_zero_are_equal():
    assert ValueProtocol(window=-0.0).id == ValueProtocol(window=0).id


@pytest.mark.parametrize("window", [-0.1, 1.1, "wide", None, np.nan])
def test_impossible_windows_are_refused(window):
    with pytest.raises(InvalidParameterError, match="window"):
        ValueProtocol(window=window)


def test_the_description_contains_the_size_of_subsets():
    protocol = CategoryProtocol(categories=LETTERS)
    assert protocol.subset_size == protocol.randomizer.subset_size == 4
    assert protocol == CategoryProtocol(categories=LETTERS, subset_size=4)
    assert CategoryProtocol(categories=LETTERS, epsilon=math.inf, subset_size=4).subset_size == 1
    chosen = CategoryProtocol(categories=LETTERS, subset_size=np.int64(6))
    assert json.loads(chosen.to_json())["subset_size"] == 6 and chosen.id != protocol.id
    assert Protocol.from_json(chosen.to_json()).privatize(["c", "d"]).sum(axis=1).tolist() == [6, 6]


@pytest.mark.parametrize("mechanism", ["oue", "rr"])
def test_other_mechanisms_have_no_subset_size(mechanism):
    protocol = CategoryProtocol(categories=LETTERS, mechanism=mechanism, subset_size=3)
    assert protocol.subset_size is None and protocol == CategoryProtocol(categories=LETTERS, mechanism=mechanism)


@pytest.mark.parametrize("categories, size", [(LETTERS, 0), (LETTERS, 16), (LETTERS, 2.0), (LETTERS, True),
                                              (("a", "b"), 2), (("a",), 2), (LETTERS, "auto")])
def test_impossible_subset_sizes_are_refused(categories, size):
    with pytest.raises(InvalidParameterError, match="subset_size"):
        CategoryProtocol(categories=categories, subset_size=size)


@pytest.mark.parametrize("one, other", [
    (ValueProtocol(), ValueProtocol(epsilon=0.5)), (ValueProtocol(), ValueProtocol(window=0.2)),
    (CategoryProtocol(categories=LETTERS), CategoryProtocol(categories=LETTERS, epsilon=4.0)),
    (CategoryProtocol(categories=LETTERS), CategoryProtocol(categories=LETTERS, subset_size=7))])
def test_cohorts_with_other_windows_and_sizes_can_be_added(one, other):
    X = [["a"], ["c"]] if isinstance(one, CategoryProtocol) else [[0.3], [0.4]]
    total = sum(protocol.aggregate(protocol._randomize(X, None, 0)) for protocol in (one, other))
    assert set(total.parts) == {one, other}
    assert set(Aggregate.from_json(total.to_json()).parts) == {one, other}


def test_seeded_reports_depend_on_the_window_and_the_size():
    reports = [SquareWave(window=window).randomize(np.zeros(50), 0).tolist() for window in ("auto", 0.125, 0.126)]
    assert reports[0] == reports[1] != reports[2]
    mechanism = CategoryProtocol(categories=LETTERS).randomizer
    same, other = (replace(mechanism, subset_size=size).randomize(np.zeros(50, int), 0).tolist() for size in (4, 5))
    assert mechanism.randomize(np.zeros(50, int), 0).tolist() == same != other


def test_files_with_numbers_written_as_integers():
    protocol = ValueProtocol(epsilon=1.0, bounds=(0, 10))
    text = protocol.aggregate(protocol.privatize([3.0, 4.0])).to_json()
    assert '"epsilon": 1.0,' in text
    assert Aggregate.from_json(text.replace('"epsilon": 1.0,', '"epsilon": 1,')).protocol == protocol
    with pytest.raises(InvalidReportError, match="has been changed"):
        Aggregate.from_json(text.replace('"epsilon": 1.0,', '"epsilon": 1.5,'))


@pytest.mark.parametrize("kind, name, values", [
    (CategoryProtocol, "categories", [(0, 1), (0.0, 1.0), (False, True), (-0.0, 1), np.array([0, 1], dtype=np.uint8)]),
    (CategoryProtocol, "categories", [(0, 1, "a"), (0.0, True, "a")]),
    (GradientProtocol, "classes", [(-1, 1), (-1.0, 1.0)]), (LabelRecordProtocol, "classes", [(0, 1), (False, True)]),
    (ValueProtocol, "bounds", [(0, 1), (-0.0, 1)]), (MomentProtocol, "bounds_y", [(-1, 0), (-1, -0.0)]),
    (RecordProtocol, "centred", [True, 1, np.True_])])
def test_equal_protocols_have_equal_ids(kind, name, values):
    protocols = [kind(**{name: value}) for value in values]
    assert len(set(protocols)) == len({protocol.id for protocol in protocols}) == 1


def test_only_equal_rows_of_categories_have_equal_ids():
    rows = [((0, "a"), (1, "b")), ((0.0, "a"), (True, "b")), ((0, "a"), (1.5, "b")), ((0, "a"), ("1", "b"))]
    ids = [CategoryProtocol(categories=row, n_features=2).id for row in rows]
    assert ids[0] == ids[1] and len(set(ids)) == 3


def test_files_with_labels_written_as_integers():
    protocol = CategoryProtocol(categories=(0.0, 1.0, 2.0))
    text = protocol.aggregate(protocol.privatize([1.0, 2.0])).to_json()
    assert Aggregate.from_json(text.replace("[0.0, 1.0, 2.0]", "[0, 1, 2]")).protocol == protocol
    protocol = GradientProtocol(classes=(-1.0, 1.0))
    client = GradientClient(protocol.to_json().replace("[-1.0, 1.0]", "[-1, 1]"))
    assert client.gradient(GradientServer(protocol).round(), [0.3], 1).shape == (2,)
