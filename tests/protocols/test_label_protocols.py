"""What clients of a logistic regression send, and what the aggregator keeps of it."""

import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from skldp.exceptions import InvalidParameterError, InvalidReportError, SeededNoiseWarning
from skldp.privacy import SystemWords
from skldp.protocols import LabelMomentProtocol, LabelRecordProtocol, MomentProtocol, Protocol
from skldp.protocols import _regression_protocol as shared

CHUNK_ROWS = shared.CHUNK_ROWS
PROTOCOLS = {
    "sphere": LabelMomentProtocol(n_features=2, data_norm=2.0),
    "gaussian": LabelMomentProtocol(n_features=2, classes=("no", "yes"), mechanism="gaussian", epsilon=3.0),
    "sphere without intercept": LabelMomentProtocol(n_features=3, intercept_weight=0.0, y_weight=0.9),
    "records": LabelRecordProtocol(n_features=2, classes=(False, True), epsilon=0.5),
    "records, little for the label": LabelRecordProtocol(n_features=3, budget_split=0.1, delta=1e-9),
}
everyone = pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=list(PROTOCOLS))
HOSTILE = [np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0, 2**53, 0.3]
STRANGE = [None, "text", b"x", 10**400, -(10**400), 1j, object(), pd.NA, "1e999", np.nan, (), frozenset(), pd.NaT, 2]


def records(protocol, n=500, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, protocol.n_features)), np.asarray(protocol.classes)[rng.integers(0, 2, size=n)]


def statistic(aggregate):
    """The sums, or the rows in an order of their own."""
    tally = next(iter(aggregate.parts.values()))
    return tally.sums if hasattr(tally, "sums") else tally.reports[np.lexsort(tally.reports.T)]


def label_signs(protocol, reports):
    """Signs of the labels that noiseless reports carry, of records with x = (0.9, 0, ...) in units of the norm."""
    if isinstance(protocol, LabelRecordProtocol):
        return protocol.randomizer.decode(reports)[:, -1]
    first = protocol.randomizer.order - 1 - protocol.n_features
    return np.sign(protocol.randomizer.matrix(protocol.randomizer.decode(reports))[:, first, -1])


def some_x(protocol, n):
    X = np.zeros((n, protocol.n_features))
    X[:, 0] = 0.9 * protocol.data_norm
    return X


@everyone
def test_json_there_and_back(protocol):
    copy = Protocol.from_json(protocol.to_json())
    assert copy == protocol and hash(copy) == hash(protocol) and copy.id == protocol.id
    assert type(copy) is type(protocol) and [type(c) for c in copy.classes] == [type(c) for c in protocol.classes]
    assert pickle.loads(pickle.dumps(protocol)) == protocol
    assert (copy._randomize(*records(protocol), 3) == protocol._randomize(*records(protocol), 3)).all()


def test_ids_differ_with_every_field():
    common = [{}, {"epsilon": 2.0}, {"delta": 1e-6}, {"data_norm": 2.0}, {"n_features": 2}, {"classes": (1, 2)},
              {"classes": ("a", "b")}]
    moments = common + [{"y_weight": 0.5}, {"intercept_weight": 0.5}]
    ids = {LabelMomentProtocol(mechanism="gaussian", **change).id for change in moments}
    ids |= {LabelRecordProtocol(**change).id for change in [*common, {"budget_split": 0.3}]}
    ids |= {LabelMomentProtocol().id, MomentProtocol().id}
    assert len(ids) == len(moments) + len(common) + 3


@pytest.mark.parametrize("cls", [LabelMomentProtocol, LabelRecordProtocol])
@pytest.mark.parametrize("classes", [
    ("no", "yes"), (0.5, 1.5), (False, True), (True, False), (-1, 1), [3, 2], np.array(["b", "a"]),
    np.array([2.0, 1.0]), np.array([True, False]), pd.Series(["x", "y"]), ("ä", ""),
])
def test_classes_of_any_kind_and_the_later_is_the_positive_one(cls, classes):
    protocol = cls(classes=classes, epsilon=np.inf, n_features=2)
    assert isinstance(protocol.classes, tuple) and list(protocol.classes) == sorted(classes)
    private = replace(protocol, epsilon=1.0)
    assert Protocol.from_json(private.to_json()) == private
    y = [protocol.classes[number] for number in (0, 1, 1, 0)]
    for form in (y, np.array(y), np.array(y, dtype=object), pd.Series(y), tuple(y)):
        assert label_signs(protocol, protocol._randomize(some_x(protocol, 4), form, 0)).tolist() == [-1, 1, 1, -1]
    assert label_signs(protocol, protocol.privatize(some_x(protocol, 1)[0], y[1])).tolist() == [1], "a single client"


@pytest.mark.parametrize("cls", [LabelMomentProtocol, LabelRecordProtocol])
@pytest.mark.parametrize("classes, message", [
    ((0,), "classes must be two public labels, got \\[0\\]"), ((0, 1, 2), "classes must be two public labels"),
    ((), "classes must not be empty"), ((1, 1), "classes must be distinct"), ((1, True), "classes must be distinct"),
    ("ab", "classes must be a list"), (7, "classes must be a list"), (None, "classes must be a list"),
    (([1], [2]), "classes must be numbers or strings"), ((0, np.nan), "two finite numbers"),
    ((0, None), "two strings or two finite numbers"), ((1, "a"), "two strings or"), ((b"a", b"b"), "two strings or"),
])
def test_two_labels_are_required(cls, classes, message):
    with pytest.raises(InvalidParameterError, match=message):
        cls(classes=classes)


@everyone
def test_private_values_never_raise_or_warn(protocol):
    rng, d = np.random.default_rng(0), protocol.n_features
    X, y = rng.choice(HOSTILE, size=(400, d)), rng.choice(HOSTILE, size=400)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reports = [protocol.privatize(X, y), protocol.privatize(np.zeros((400, d)), y),
                   protocol.privatize(X, np.resize(protocol.classes, 400))]
        for strange in STRANGE:
            of_objects = np.full((2, d), 0.1, dtype=object)
            of_objects[0, 0] = strange
            column = np.empty(2, dtype=object)
            column[:] = [strange, protocol.classes[0]]
            reports += [protocol.privatize(of_objects, column), protocol.privatize(np.zeros((2, d)), column)]
    assert all(protocol.check(rows).all() for rows in reports)
    assert {len(rows) for rows in reports} == {400, 2}, "and nobody is left out"


@everyone
@pytest.mark.parametrize("strange", [None, np.nan, "maybe", 17, np.inf])
def test_an_unknown_label_is_either_at_random(protocol, strange):
    plain, n = replace(protocol, epsilon=np.inf), 4000
    y = np.empty(n, dtype=object)
    y[:] = protocol.classes[1]
    y[::2] = strange
    signs = label_signs(plain, plain._randomize(some_x(plain, n), y, 0))
    assert (signs[1::2] == 1).all(), "known labels stay what they are"
    assert abs(signs[::2].mean()) < 5 / np.sqrt(n / 2), "a fair coin"
    again = label_signs(plain, plain.privatize(some_x(plain, n), y))
    assert (again[::2] != signs[::2]).mean() == pytest.approx(0.5, abs=0.06), "and a fresh one for every call"


class Counted(SystemWords):
    """Counts what is asked for."""

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


@everyone
def test_honest_reports_pass_and_are_counted(protocol):
    reports = protocol.privatize(*records(protocol))
    assert reports.shape == (500, protocol.width) and reports.dtype.kind in "iu"
    assert protocol.check(reports).all()
    assert protocol.aggregate(reports).n_reports == 500


@everyone
def test_aggregates_add_and_order_does_not_matter(protocol):
    reports = protocol.privatize(*records(protocol))
    whole = protocol.aggregate(reports)
    pieces = [protocol.aggregate(reports[start:start + 70]) for start in range(0, 500, 70)]
    for total in (sum(pieces), sum(pieces[::-1]), pieces[0] + sum(pieces[1:]), pickle.loads(pickle.dumps(whole))):
        assert (statistic(total) == statistic(whole)).all() and total.n_reports == 500
    empty = protocol.aggregate(np.empty((0, protocol.width), dtype=int))
    assert empty.n_reports == 0 and (statistic(empty + whole) == statistic(whole)).all()


def test_aggregates_of_moments_are_exact_sums_and_those_of_records_the_rows():
    for protocol in PROTOCOLS.values():
        reports = protocol.privatize(*records(protocol))
        if isinstance(protocol, LabelRecordProtocol):
            tally = protocol.aggregate(reports).parts[protocol]
            assert (tally.reports == reports).all() and tally.reports.dtype == reports.dtype
            kept = tally.reports.copy()
            reports[:] = 0
            assert (tally.reports == kept).all(), "an aggregate does not change with the array it was made of"
        else:
            exact = [sum(int(value) for value in column) for column in reports.T]
            assert statistic(protocol.aggregate(reports)).tolist() == exact


@everyone
def test_hostile_reports_are_named_or_dropped(protocol):
    reports = protocol.privatize(*records(protocol)).astype(np.int64)
    clean = protocol.aggregate(np.delete(reports, [3, 77, 78], axis=0))
    reports[3], reports[77, 0], reports[78, -1] = 2**62, -(2**63), 2**63 - 1
    assert np.flatnonzero(~protocol.check(reports)).tolist() == [3, 77, 78]
    with pytest.raises(InvalidReportError, match=r"3 of 500 reports .* \(rows 3, 77, 78\)"):
        protocol.aggregate(reports)
    aggregate = protocol.aggregate(reports, on_invalid="drop")
    assert (aggregate.n_reports, aggregate.n_rejected) == (497, 3)
    assert (statistic(aggregate) == statistic(clean)).all()


@pytest.mark.parametrize("label", [-1, 2, 127])
def test_a_reported_label_is_zero_or_one(label):
    protocol = PROTOCOLS["records"]
    reports = protocol.privatize(*records(protocol, 10))
    reports[4, -1] = label
    assert np.flatnonzero(~protocol.check(reports)).tolist() == [4]


@everyone
def test_reports_of_another_shape_or_type(protocol):
    width = protocol.width
    for reports, message in [
        (np.zeros((4, width + 1), dtype=int), f"have {width} columns"), (np.zeros(width, dtype=int), "columns"),
        (np.full((2, width), 1e300), "Reports are integers"), (np.full((2, width), True), "Reports are integers"),
        (np.full((2, width), 10**400, dtype=object), "Reports are integers"),
    ]:
        with pytest.raises(InvalidReportError, match=message):
            protocol.aggregate(reports)


@pytest.mark.parametrize("cls, change, field", [
    (LabelMomentProtocol, {"classes": (1, 2)}, "classes"), (LabelMomentProtocol, {"data_norm": 3.0}, "data_norm"),
    (LabelMomentProtocol, {"y_weight": 0.3}, "y_weight"), (LabelMomentProtocol, {"mechanism": "gaussian"}, "mechanism"),
    (LabelMomentProtocol, {"n_features": 2}, "n_features"), (LabelRecordProtocol, {"classes": (1, 2)}, "classes"),
    (LabelRecordProtocol, {"data_norm": 3.0}, "data_norm"), (LabelRecordProtocol, {"budget_split": 0.3}, "budget_spl"),
])
def test_cohorts_add_and_other_domains_do_not(cls, change, field):
    def collected(**fields):
        protocol = cls(**fields)
        return protocol.aggregate(protocol.privatize(np.zeros((10, protocol.n_features)), np.zeros(10)))

    both = sum(collected(epsilon=epsilon) for epsilon in (0.5, 4.0, 0.5))
    assert both.n_reports == 30 and both.epsilon == 4.0 and len(both.parts) == 2
    with pytest.raises(InvalidReportError, match=field):
        both + collected(**change)


def test_collections_of_another_kind_do_not_add():
    protocols = LabelMomentProtocol(), LabelRecordProtocol(), MomentProtocol()
    aggregates = [protocol.aggregate(protocol.privatize([0.1], 1)) for protocol in protocols]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        with pytest.raises(InvalidReportError, match="different collections"):
            aggregates[one] + aggregates[other]


@everyone
def test_pieces_are_the_whole_and_share_no_noise(protocol):
    X, y = records(protocol, 2 * CHUNK_ROWS + 5)
    X[:], y[:] = 0.1, protocol.classes[1]  # equal records: whatever differs is noise
    pieces = list(protocol._draw(*protocol._plain(X, y), 7))
    assert [len(piece) for piece in pieces] == [CHUNK_ROWS, CHUNK_ROWS, 5]
    whole = protocol._randomize(X, y, 7)
    assert (np.concatenate(pieces) == whole).all()
    assert len(np.unique(whole, axis=0)) > 0.99 * len(whole)
    total = sum(protocol.aggregate(piece) for piece in pieces)
    assert (statistic(total) == statistic(protocol.aggregate(whole))).all()


@everyone
def test_noise_of_a_seed_depends_on_data_and_budget(protocol):
    X, y = records(protocol, 200)
    reports = protocol._randomize(X, y, 0)
    assert (protocol._randomize(X, y, 0) == reports).all()
    moved_x, moved_y = X.copy(), y.copy()
    moved_x[-1, 0] += 0.25
    moved_y[-1] = protocol.classes[int(y[-1] == protocol.classes[0])]
    others = [protocol._randomize(X, y, 1), protocol._randomize(moved_x, y, 0), protocol._randomize(X, moved_y, 0),
              replace(protocol, epsilon=protocol.epsilon * 1.0001)._randomize(X, y, 0)]
    for other in others:
        # Were the noise shared, all clients but the last would send the same, or nearly so.
        size = np.abs(reports.astype(float)).mean()
        assert np.abs(other[:-1].astype(float) - reports[:-1]).mean() > 0.3 * size


@everyone
def test_shapes_of_records(protocol):
    d, (no, yes) = protocol.n_features, protocol.classes
    assert protocol.privatize(np.zeros(d), yes).shape == (1, protocol.width)
    assert protocol.privatize([0.0] * d, [no]).shape == (1, protocol.width)
    assert protocol.privatize(np.zeros((0, d)), []).shape == (0, protocol.width)
    assert protocol.privatize(pd.DataFrame(np.zeros((2, d))), pd.Series([no, yes])).shape == (2, protocol.width)
    with pytest.raises(ValueError, match=rf"shape \(n, {d}\)"):
        protocol.privatize(np.zeros((2, d + 1)), [no, yes])
    with pytest.raises(ValueError, match="one response for each of the 2 records"):
        protocol.privatize(np.zeros((2, d)), [no, yes, no])
    with pytest.raises(ValueError, match="one response for each of the 2 records"):
        protocol.privatize(np.zeros((2, d)), [[no], [yes]])
    with pytest.raises(ValueError, match="needs y"):
        protocol.privatize(np.zeros((2, d)))


@everyone
def test_a_seed_on_the_clients_door_warns_and_a_simulation_is_refused(protocol):
    with pytest.warns(SeededNoiseWarning, match="random_state=None"):
        protocol.privatize(*records(protocol, 3), random_state=0)
    with pytest.raises(InvalidParameterError, match="no privacy"):
        Protocol.from_json(replace(protocol, epsilon=np.inf).to_json())


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


def test_what_the_budget_becomes():
    assert LabelMomentProtocol(delta=0.1).delta == 0.0, "the sphere has none"
    assert LabelRecordProtocol(delta=1e-7).delta == 1e-7
    assert not LabelMomentProtocol(intercept_weight=0.0).has_intercept and LabelMomentProtocol().has_intercept
    assert LabelMomentProtocol(mechanism="gaussian", y_weight=0.7).y_weight == 179 / 256
