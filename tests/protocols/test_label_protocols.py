"""Protocols of logistic regression: reports and aggregates."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.privacy import SystemWords
from skldp.protocols import LabelMomentProtocol, LabelRecordProtocol, Protocol
from skldp.protocols import _regression_protocol as shared

CHUNK_ROWS = shared.CHUNK_ROWS
PROTOCOLS = {
    "sphere": LabelMomentProtocol(n_features=2, data_norm=2.0),
    "gaussian": LabelMomentProtocol(n_features=2, classes=("no", "yes"), mechanism="gaussian", epsilon=3.0),
    "sphere without intercept": LabelMomentProtocol(n_features=3, intercept_weight=0.0, y_weight=0.9),
    "records": LabelRecordProtocol(n_features=2, classes=(False, True), epsilon=0.5),
    "records, small label budget": LabelRecordProtocol(n_features=3, budget_split=0.1, delta=1e-9),
}
everyone = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))


def records(protocol, n=500, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, protocol.n_features)), np.asarray(protocol.classes)[rng.integers(0, 2, size=n)]


def statistic(aggregate):
    """The sums, or the sorted rows."""
    tally = next(iter(aggregate.parts.values()))
    return tally.sums if hasattr(tally, "sums") else tally.reports[np.lexsort(tally.reports.T)]


def label_signs(protocol, reports):
    """Signs of the labels in noiseless reports of records with x = (0.9, 0, ...) in units of the norm."""
    if isinstance(protocol, LabelRecordProtocol):
        return protocol.randomizer.decode(reports)[:, -1]
    first = protocol.randomizer.order - 1 - protocol.n_features
    return np.sign(protocol.randomizer.matrix(protocol.randomizer.decode(reports))[:, first, -1])


def fixed_x(protocol, n):
    X = np.zeros((n, protocol.n_features))
    X[:, 0] = 0.9 * protocol.data_norm
    return X


@pytest.mark.parametrize("cls", [LabelMomentProtocol, LabelRecordProtocol])
@pytest.mark.parametrize("classes", [
    ("no", "yes"), (0.5, 1.5), (False, True), (True, False), (-1, 1), [3, 2], np.array(["b", "a"]),
    np.array([2.0, 1.0]), np.array([True, False]), pd.Series(["x", "y"]), ("ä", ""),
])
def test_classes_are_sorted_and_the_second_is_positive(cls, classes):
    protocol = cls(classes=classes, epsilon=np.inf, n_features=2)
    assert isinstance(protocol.classes, tuple) and list(protocol.classes) == sorted(classes)
    private = replace(protocol, epsilon=1.0)
    assert Protocol.from_json(private.to_json()) == private
    y = [protocol.classes[number] for number in (0, 1, 1, 0)]
    for form in (y, np.array(y), np.array(y, dtype=object), pd.Series(y), tuple(y)):
        assert label_signs(protocol, protocol._randomize(fixed_x(protocol, 4), form, 0)).tolist() == [-1, 1, 1, -1]
    assert label_signs(protocol, protocol.privatize(fixed_x(protocol, 1)[0], y[1])).tolist() == [1], "a single client"


@pytest.mark.parametrize("cls", [LabelMomentProtocol, LabelRecordProtocol])
@pytest.mark.parametrize("classes, message", [
    ((0,), "classes must be two public labels, got \\[0\\]"), ((0, 1, 2), "classes must be two public labels"),
    ((), "classes must not be empty"), ((1, 1), "classes must be distinct"), ((1, True), "classes must be distinct"),
    ("ab", "classes must be a list"), (7, "classes must be a list"), (None, "classes must be a list"),
    (([1], [2]), "classes must be numbers or strings"), ((0, np.nan), "finite numbers"),
    ((0, None), "all be strings or all be finite numbers"), ((1, "a"), "all be strings or"),
    ((b"a", b"b"), "all be strings or"),
])
def test_two_labels_are_required(cls, classes, message):
    with pytest.raises(InvalidParameterError, match=message):
        cls(classes=classes)


@everyone
@pytest.mark.parametrize("unknown", [None, np.nan, "maybe", 17, np.inf])
def test_an_unknown_label_is_replaced_by_a_random_one(protocol, unknown):
    plain, n = replace(protocol, epsilon=np.inf), 4000
    y = np.empty(n, dtype=object)
    y[:] = protocol.classes[1]
    y[::2] = unknown
    signs = label_signs(plain, plain._randomize(fixed_x(plain, n), y, 0))
    assert (signs[1::2] == 1).all(), "known labels are kept"
    assert abs(signs[::2].mean()) < 5 / np.sqrt(n / 2), "a fair coin"
    again = label_signs(plain, plain.privatize(fixed_x(plain, n), y))
    assert (again[::2] != signs[::2]).mean() == pytest.approx(0.5, abs=0.06), "drawn again in every call"


class Counted(SystemWords):
    """Source that records how many words are requested."""

    def __init__(self):
        self.asked = []

    def words(self, n_words):
        self.asked.append(n_words)
        return super().words(n_words)

    def bytes(self, n_bytes):
        self.asked.append(("bytes", n_bytes))
        return super().bytes(n_bytes)


@everyone
def test_the_number_of_words_does_not_depend_on_the_data(protocol, monkeypatch):
    asked = []
    for y in ([protocol.classes[0]] * 50, [protocol.classes[1]] * 50, [None] * 50, [None, protocol.classes[0]] * 25):
        for x in (0.0, np.nan, 1e300):
            source = Counted()
            monkeypatch.setattr(shared, "word_source", lambda *key, source=source: source)
            protocol.privatize(np.full((50, protocol.n_features), x), y)
            asked.append(source.asked)
    assert all(one == asked[0] for one in asked) and sum(map(len, asked)) > 0
    assert asked[0][0] == 50, "a coin for every record, known or not"


def test_aggregates_keep_sums_of_moments_and_rows_of_records():
    for protocol in PROTOCOLS.values():
        reports = protocol.privatize(*records(protocol))
        if isinstance(protocol, LabelRecordProtocol):
            tally = protocol.aggregate(reports).parts[protocol]
            assert (tally.reports == reports).all() and tally.reports.dtype == reports.dtype
        else:
            exact = [sum(int(value) for value in column) for column in reports.T]
            assert statistic(protocol.aggregate(reports)).tolist() == exact


@pytest.mark.parametrize("label", [-1, 2, 127])
def test_a_reported_label_other_than_zero_or_one_is_invalid(label):
    protocol = PROTOCOLS["records"]
    reports = protocol.privatize(*records(protocol, 10))
    reports[4, -1] = label
    assert np.flatnonzero(~protocol.check(reports)).tolist() == [4]


@everyone
def test_pieces_are_the_same_reports_and_share_no_noise(protocol):
    X, y = records(protocol, 2 * CHUNK_ROWS + 5)
    X[:], y[:] = 0.1, protocol.classes[1]  # equal records, so that all differences are noise
    pieces = list(protocol._draw(*protocol._plain(X, y), 7))
    assert [len(piece) for piece in pieces] == [CHUNK_ROWS, CHUNK_ROWS, 5]
    whole = protocol._randomize(X, y, 7)
    assert (np.concatenate(pieces) == whole).all()
    assert len(np.unique(whole, axis=0)) > 0.99 * len(whole)
    total = sum(protocol.aggregate(piece) for piece in pieces)
    assert (statistic(total) == statistic(protocol.aggregate(whole))).all()


@everyone
@pytest.mark.parametrize("change", [
    {"epsilon": 0}, {"epsilon": None}, {"classes": [1]}, {"classes": [1, 2, 3]}, {"classes": "ab"}, {"classes": None},
    {"data_norm": 0}, {"n_features": 0}, {"n_features": 10**6}, {"bounds_y": [0, 1]},
])
def test_files_with_bad_values(protocol, change):
    with pytest.raises(InvalidParameterError):
        Protocol.from_json(json.dumps({**json.loads(protocol.to_json()), **change}))


def test_files_of_records_with_a_bad_split():
    fields = json.loads(PROTOCOLS["records"].to_json())
    for split in (0, 1, -0.5, 2, None, "half", True):
        with pytest.raises(InvalidParameterError, match="budget_split"):
            Protocol.from_json(json.dumps({**fields, "budget_split": split}))


def test_delta_and_weights_are_those_of_the_mechanism():
    assert LabelMomentProtocol(delta=0.1).delta == 0.0, "the sphere mechanism is pure"
    assert LabelRecordProtocol(delta=1e-7).delta == 1e-7
    assert not LabelMomentProtocol(intercept_weight=0.0).has_intercept and LabelMomentProtocol().has_intercept
    assert LabelMomentProtocol(mechanism="gaussian", y_weight=0.7).y_weight == 179 / 256
