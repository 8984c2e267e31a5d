"""Members of protocols that an aggregator uses: labels, other widths, and reports in pieces."""

import pickle
from dataclasses import replace

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.protocols import (
    CategoryProtocol,
    GradientProtocol,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    RecordProtocol,
    ValueProtocol,
)
from skldp.protocols._base import joined
from skldp.protocols._regression_protocol import CHUNK_ROWS
from tests.protocols.test_files import CASES, cases

REGRESSIONS = [
    MomentProtocol(epsilon=2.0), MomentProtocol(epsilon=2.0, intercept_weight=0.0), RecordProtocol(epsilon=2.0),
    MomentProtocol(epsilon=2.0, mechanism="gaussian", y_weight=0.3), LabelMomentProtocol(classes=("a", "b")),
    LabelRecordProtocol(budget_split=0.3), GradientProtocol(),
    GradientProtocol(mechanism="sphere", fit_intercept=False),
]


@pytest.mark.parametrize("protocol", REGRESSIONS, ids=lambda protocol: type(protocol).__name__)
def test_the_number_of_features_is_found_from_the_width(protocol):
    for n_features in (1, 2, 3, 4, 10, 57):
        other = replace(protocol, n_features=n_features)
        assert protocol.with_width(other.width) == other
        assert other.with_width(protocol.width) == protocol


def test_a_width_between_two_possible_ones_becomes_the_larger():
    protocol = MomentProtocol(epsilon=2.0)
    widths = [protocol.with_width(width).width for width in range(12)]
    assert widths == [6] * 7 + [10] * 4 + [15]


def test_a_width_beyond_the_limit_of_a_report_is_refused():
    with pytest.raises(InvalidParameterError, match="moments, and a report may have 1048576"):
        MomentProtocol(epsilon=20.0, n_features=1445).with_width(2**21)


def test_the_width_of_values_is_the_number_of_columns():
    assert ValueProtocol(epsilon=1.0).with_width(2) == ValueProtocol(epsilon=1.0, n_features=2)
    assert ValueProtocol(epsilon=1.0).with_width(2).window != ValueProtocol(epsilon=1.0).window
    assert ValueProtocol(epsilon=1.0, window=0.3).with_width(2).window == 0.3
    with pytest.raises(InvalidParameterError, match="n_features"):
        ValueProtocol().with_width(0)


def test_the_width_of_categories_does_not_change_the_columns():
    protocol = CategoryProtocol(categories=(("a", 1), ("b", 2)), n_features=2)
    assert protocol.with_width(7) == protocol


def test_labels():
    assert ValueProtocol().labels is None and MomentProtocol().labels is None
    assert GradientProtocol(loss="squared").labels is None
    assert GradientProtocol(classes=("no", "yes")).labels == ("no", "yes")
    assert CategoryProtocol(categories=("a", "b")).labels == ("a", "b")
    assert LabelMomentProtocol(classes=("yes", "no")).labels == ("no", "yes")


@cases
def test_reports_are_the_pieces_of_a_draw(name):
    protocol, X, y = CASES[name]
    X, y = protocol._plain(X, y)
    pieces = list(protocol._draw(X, y, 0))
    assert all(piece.shape[1] == protocol.width for piece in pieces)
    assert (joined(pieces) == protocol._randomize(*CASES[name][1:], 0)).all()


def test_pieces_are_joined_and_a_single_one_is_not_copied():
    one = np.arange(6).reshape(3, 2)
    assert joined([one]) is one
    assert joined(iter([one, one[:1]])).tolist() == [[0, 1], [2, 3], [4, 5], [0, 1]]


def test_regressions_are_drawn_in_pieces():
    protocol, n = RecordProtocol(), CHUNK_ROWS + 5
    pieces = protocol._draw(*protocol._plain(np.zeros((n, 1)), np.zeros(n)), 0)
    assert [len(piece) for piece in pieces] == [CHUNK_ROWS, 5]
    assert [len(piece) for piece in protocol._draw(*protocol._plain(np.zeros((0, 1)), np.zeros(0)), 0)] == [0]


@pytest.mark.parametrize("protocol, X, y, message", [
    (CategoryProtocol(categories=("a", "b")), [["a"], ["c"]], None, "X has values that are none of categories"),
    (CategoryProtocol(categories=("a", "b"), mechanism="rr"), ["c"], None, "X has values that are none of categories"),
    (LabelMomentProtocol(), [[0.0], [0.1]], [0, 2], "y has labels that are none of classes"),
    (LabelRecordProtocol(classes=("no", "yes")), [[0.0]], ["maybe"], "y has labels that are none of classes"),
])
def test_unknown_labels_can_be_refused_in_a_simulation(protocol, X, y, message):
    with pytest.raises(ValueError, match=message):
        protocol._refuse_unknown(*protocol._plain(X, y))


@cases
def test_known_labels_and_all_numbers_are_accepted(name):
    protocol, X, y = CASES[name]
    protocol._refuse_unknown(*protocol._plain(X, y))


@pytest.mark.parametrize("categories", [(0, 1, 5), (0.5, 2), ("a", "b"), (True, False), ("a", 1, 2.5),
                                        np.array([1, 2], dtype=np.int8), np.array([0.1, 0.7], dtype=np.float32)])
def test_categories_are_checked_once(categories, monkeypatch):
    protocol = CategoryProtocol(categories=categories)
    copy = pickle.loads(pickle.dumps(protocol))
    assert "known_categories" not in vars(copy) and copy == protocol
    assert (copy.known_categories == protocol.known_categories).all()
    assert copy.known_categories.dtype == protocol.known_categories.dtype
    assert tuple(protocol.known_categories.tolist()) == protocol.categories
    assert not protocol.known_categories.flags.writeable
    monkeypatch.setattr("skldp.protocols._coded_protocol.check_list", None)
    assert protocol.codes(list(categories)).tolist() == list(range(len(categories)))
    assert protocol._randomize(list(categories), None, 0).shape == (len(categories), protocol.width)


def test_categories_of_several_columns_are_tuples():
    protocol = CategoryProtocol(categories=[["a", 1], ["b", 2]], n_features=2)
    assert protocol.known_categories.tolist() == [("a", 1), ("b", 2)] == list(protocol.categories)


@pytest.mark.parametrize("mechanism", ["square_wave", "laplace", "gaussian"])
@pytest.mark.parametrize("n_levels", [None, 7])
def test_edges_of_cells_agree_with_the_numbers_of_cells(mechanism, n_levels):
    protocol = ValueProtocol(epsilon=1.0, mechanism=mechanism, n_levels=n_levels, delta=1e-5)
    cells, (low, high) = protocol.cells, protocol.randomizer.clamp
    edges = cells.report_edges.astype(np.int64)
    assert len(edges) == cells.n_cells + 1 and (edges[0], edges[-1]) == (low, high + 1)
    assert (cells.index(edges[:-1]) == np.arange(cells.n_cells)).all()
    assert (cells.index(edges[1:] - 1) == np.arange(cells.n_cells)).all()
