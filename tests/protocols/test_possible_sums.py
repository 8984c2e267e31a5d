"""Files with impossible sums are refused, and files with honest sums never are."""

import base64
import io
import json
import math

import numpy as np
import pytest

from skldp._validation._limits import MAX_REPORTS
from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols import (
    Aggregate,
    CategoryProtocol,
    CountRoundProtocol,
    GradientModel,
    GradientProtocol,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    Protocol,
    RecordProtocol,
    RoundProtocol,
    SampledValueProtocol,
    ValueProtocol,
    load_reports,
    save_reports,
)
from skldp.protocols._possible_sums import column_sums, is_gram_matrix, largest_noisy_sums
from skldp.protocols._tallies import PairTally, RecordTally, RowTally, Tally


def round_protocol(epsilon, d, mechanism):
    return RoundProtocol(epsilon=epsilon, n_features=d, mechanism=mechanism, theta=(1.0,) * (d + 1), centre=(0.1,) * d,
                         transform=tuple(2 * np.eye(d).ravel()))


REFUSED = (InvalidReportError, InvalidParameterError)
KINDS = {
    "square wave": lambda epsilon, d: ValueProtocol(epsilon=epsilon, n_features=d),
    "laplace": lambda epsilon, d: ValueProtocol(epsilon=epsilon, n_features=d, mechanism="laplace"),
    "gaussian": lambda epsilon, d: ValueProtocol(epsilon=epsilon, delta=1e-5, n_features=d, mechanism="gaussian"),
    "one of several": lambda epsilon, d: SampledValueProtocol(epsilon=epsilon, n_features=d + 1),
    "subset": lambda epsilon, d: CategoryProtocol(epsilon=epsilon, categories=tuple(range(4 * d))),
    "oue": lambda epsilon, d: CategoryProtocol(epsilon=epsilon, categories=tuple(range(4 * d)), mechanism="oue"),
    "rr": lambda epsilon, d: CategoryProtocol(epsilon=epsilon, categories=tuple(range(4 * d)), mechanism="rr"),
    "sphere moments": lambda epsilon, d: MomentProtocol(epsilon=epsilon, n_features=d),
    "gaussian moments": lambda epsilon, d: MomentProtocol(epsilon=epsilon, n_features=d, mechanism="gaussian"),
    "no constant": lambda epsilon, d: MomentProtocol(epsilon=epsilon, n_features=d, mechanism="gaussian",
                                                     intercept_weight=0.0, y_weight=2.0),
    "label moments": lambda epsilon, d: LabelMomentProtocol(epsilon=epsilon, n_features=d, mechanism="gaussian"),
    "records": lambda epsilon, d: RecordProtocol(epsilon=epsilon, n_features=d),
    "labelled records": lambda epsilon, d: LabelRecordProtocol(epsilon=epsilon, n_features=d),
    "gradients": lambda epsilon, d: GradientProtocol(epsilon=epsilon, n_features=d),
    "sphere gradients": lambda epsilon, d: GradientProtocol(epsilon=epsilon, n_features=d, mechanism="sphere"),
    "score and curvature": lambda epsilon, d: round_protocol(epsilon, d, "sphere"),
    "gaussian score and curvature": lambda epsilon, d: round_protocol(epsilon, d, "gaussian"),
    "four labels": lambda epsilon, d: RoundProtocol(epsilon=epsilon, n_features=d, classes=(0, 1, 2, 3),
                                                    theta=(1.0,) * (3 * d + 3)),
    "counts": lambda epsilon, d: CountRoundProtocol(epsilon=epsilon, n_features=d, bounds_y=(0, 3)),
    "gaussian counts": lambda epsilon, d: CountRoundProtocol(epsilon=epsilon, n_features=d, mechanism="gaussian"),
}


def honest(protocol, n, seed=0, extreme=False):
    """Reports of n honest clients; extreme records are all the same, in a corner of the domain."""
    rng = np.random.default_rng(seed)
    if isinstance(protocol, CategoryProtocol):
        X = rng.integers(0, 1 if extreme else protocol.n_categories, size=(n, 1))
        return protocol._randomize(X, None, seed)
    X = np.full((n, protocol.n_features), 1e9) if extreme else rng.normal(size=(n, protocol.n_features))
    y = np.ones(n) if extreme else np.where(rng.uniform(size=n) < 0.5, 1, -1)
    if isinstance(protocol, (LabelMomentProtocol, LabelRecordProtocol, RoundProtocol)):
        y = (y > 0).astype(int)
    return protocol._randomize(X, y, seed)


def stored(aggregate):
    file = io.BytesIO()
    aggregate.save(file)
    file.seek(0)
    return file


def same(one, other):
    for protocol, tally in one.parts.items():
        found = other.parts[protocol]
        for name in vars(tally):
            np.testing.assert_array_equal(getattr(found, name), getattr(tally, name))


@pytest.mark.parametrize("epsilon, d", [(0.1, 1), (1.0, 1), (1.0, 6), (20.0, 6), (math.inf, 1)])
@pytest.mark.parametrize("name", KINDS)
def test_honest_sums_survive_files(name, epsilon, d):
    protocol = KINDS[name](epsilon, d)
    for n in (0, 1, 2, 50, 10**4) if (epsilon, d) == (1.0, 1) else (0, 1, 2, 50):
        for extreme in (False, True):
            aggregate = protocol.aggregate(honest(protocol, n, seed=n, extreme=extreme))
            same(aggregate, Aggregate.from_json(aggregate.to_json()))
            same(aggregate, Aggregate.load(stored(aggregate)))


def test_kept_rows_survive_json():
    for name in ("subset", "oue"):
        protocol = KINDS[name](1.0, 10)
        aggregate = protocol.aggregate(honest(protocol, 50), keep_rows=True)
        same(aggregate, Aggregate.from_json(aggregate.to_json()))


@pytest.mark.parametrize("rows", [[0b10000000, 0b10000000], [0b10000000, 0b10000001]])
def test_repeated_rows_are_refused(rows):
    protocol = CategoryProtocol(categories=(0, 1, 2, 3), mechanism="oue")
    tally = RowTally(2, np.array(rows, dtype=np.uint8)[:, None], np.array([1, 1]), 4)
    with pytest.raises(InvalidReportError, match="does not hold sums of reports"):
        Aggregate.load(stored(Aggregate({protocol: tally})))


def test_sums_of_many_extreme_records_are_possible():
    """Clamps at few standard deviations, where clipping is common, and the largest honest sums."""
    for protocol in (MomentProtocol(epsilon=0.5, delta=0.3, n_features=1, mechanism="gaussian"),
                     MomentProtocol(epsilon=20.0, n_features=2, mechanism="gaussian"),
                     MomentProtocol(epsilon=20.0, n_features=2), RecordProtocol(epsilon=20.0, n_features=2)):
        aggregate = protocol.aggregate(honest(protocol, 10**5, extreme=True))
        assert aggregate.parts[protocol].fits(protocol)


def test_sums_of_many_features_of_few_clients_are_possible():
    """Most eigenvalues of the matrix are zero, and some are negative after rounding."""
    for protocol in (RecordProtocol(n_features=200), MomentProtocol(epsilon=math.inf, delta=1e-5, n_features=200,
                                                                    mechanism="gaussian")):
        for n in (1, 2, 150):
            tally = protocol.aggregate(honest(protocol, n)).parts[protocol]
            assert tally.fits(protocol)


def test_reports_at_the_clamps_are_possible():
    protocol = RecordProtocol(n_features=2)
    top = protocol.randomizer.clamp[1]
    for n in (1, 2, 7):
        assert protocol.aggregate(np.full((n, 3), -top)).parts[protocol].fits(protocol)
    for n in (1, 2):
        protocol = MomentProtocol(n_features=2, mechanism="gaussian")
        tally = protocol.aggregate(np.tile(protocol.randomizer.clamp, (n, 1))).parts[protocol]
        assert tally.fits(protocol)


@pytest.mark.parametrize("share", [0.02, 0.4])
def test_a_minority_of_forged_reports_does_not_make_a_file_unreadable(share):
    protocol = MomentProtocol(n_features=2, mechanism="gaussian")
    reports = honest(protocol, 1000)
    reports[:int(share * 1000)] = protocol.randomizer.clamp
    aggregate = protocol.aggregate(reports)
    same(aggregate, Aggregate.from_json(aggregate.to_json()))


def forged(protocol, n_reports=None, change=None):
    """Text of an aggregate of 40 honest reports, with a changed number of reports or changed sums."""
    tally = protocol.aggregate(honest(protocol, 40)).parts[protocol]
    raw = json.loads(Aggregate({protocol: tally}).to_json())
    fields = raw["parts"][0]["tally"]
    if n_reports is not None:
        fields["n_reports"] = n_reports
    if change is not None:
        name = "pairs" if isinstance(tally, PairTally) else "sums"
        fields[name] = described(change(getattr(tally, name).copy()))
    return json.dumps(raw)


def described(array):
    if array.dtype == object:
        return {"dtype": "integer", "shape": list(array.shape), "data": array.ravel().tolist()}
    data = base64.b64encode(array.astype("<i8").tobytes()).decode()
    return {"dtype": "int64", "shape": list(array.shape), "data": data}


def put(*changes):
    """Return a function that sets entries of an array, from pairs of an index and a value or a function of the old."""
    def change(array):
        for place, value in changes:
            array[place] = value(array[place]) if callable(value) else value
        return array
    return change


RECORDS, CLAMP = RecordProtocol(n_features=2), RecordProtocol(n_features=2).randomizer.clamp[1]
SPHERE, GAUSSIAN = (MomentProtocol(n_features=2, mechanism=name) for name in ("sphere", "gaussian"))
NO_NOISE = MomentProtocol(epsilon=math.inf, n_features=2, mechanism="gaussian")
GRADIENTS, DIRECTIONS = (GradientProtocol(n_features=2, mechanism=name) for name in ("gaussian", "sphere"))
EIGHT = CategoryProtocol(categories=tuple(range(8)), mechanism="oue", epsilon=0.5)


def too_few_pairs(pairs):
    """Impossible counts: three bits that are each in half of the reports, but any two together in one of twenty."""
    pairs[:3, :3] = 2
    np.fill_diagonal(pairs[:3, :3], 20)
    return pairs


def all_negative_correlations(sums):
    """Impossible sums: three entries with a correlation of -0.9 for each pair."""
    square = 40 * CLAMP**2 // 4
    sums[1:, 1:], sums[0, 1:], sums[1:, 0] = -square * 9 // 10, 0, 0
    for place in range(1, 4):
        sums[place, place] = square
    return sums


@pytest.mark.parametrize("protocol, change", [
    (RECORDS, put(((1, 1), -1))),
    (RECORDS, put(((1, 2), lambda old: old + 1))),
    (RECORDS, put(((0, 1), 40 * CLAMP), ((1, 0), 40 * CLAMP), ((1, 1), 40 * CLAMP**2 - 1))),
    (RECORDS, put(((1, 1), 40 * CLAMP**2 + 1))),
    (RECORDS, put(((1, 1), 0))),
    (RECORDS, all_negative_correlations),
    (SPHERE, lambda sums: np.full_like(sums, 40 * 2**14)),
    (SPHERE, put((0, 40 * (2**14 + 66)))),
    (GAUSSIAN, lambda sums: 40 * GAUSSIAN.randomizer.clamp.astype(object)),
    (GAUSSIAN, lambda sums: -38 * GAUSSIAN.randomizer.clamp.astype(object)),
    (GAUSSIAN, put((3, lambda old: 40 * int(GAUSSIAN.randomizer.clamp[3])))),
    (NO_NOISE, put((0, -1))),
    (NO_NOISE, put((0, 40 * 2**16), (1, 40 * 2**16))),
    (NO_NOISE, put((-1, lambda old: 40 * 2**16))),
    (GRADIENTS, put((0, 40 * GRADIENTS.randomizer.clamp[1] + 1))),
    (GRADIENTS, put((0, -2**63))),
    (DIRECTIONS, lambda sums: np.full_like(sums, 40 * 2**14)),
    (DIRECTIONS, put((0, 2**63 - 1))),
    (EIGHT, too_few_pairs),
], ids=range(19))
def test_impossible_sums_are_refused(protocol, change):
    Aggregate.from_json(forged(protocol))
    with pytest.raises(InvalidReportError, match="does not hold sums"):
        Aggregate.from_json(forged(protocol, change=change))


def test_the_sum_of_a_single_report_must_be_a_valid_report():
    for protocol in (SPHERE, DIRECTIONS):
        short = np.zeros(protocol.width, dtype=np.int64)
        sums = short.astype(object) if protocol is SPHERE else short
        assert not Tally(1, sums).fits(protocol)
        assert Tally(2, sums).fits(protocol)


@pytest.mark.parametrize("protocol", [ValueProtocol(), EIGHT, RECORDS, SPHERE, GAUSSIAN, GRADIENTS], ids=range(6))
@pytest.mark.parametrize("n_reports", [MAX_REPORTS + 1, 2**63 - 1, 10**400, -1, True, 1.0], ids=range(6))
def test_impossible_numbers_of_reports_are_refused(protocol, n_reports):
    with pytest.raises(InvalidReportError):
        Aggregate.from_json(forged(protocol, n_reports=n_reports))


def test_counts_do_not_overflow():
    """Adding honest reports to 2**63 - 1 reports in one cell used to give a negative sum."""
    protocol = ValueProtocol(bounds=(0, 10))
    counts = np.zeros((1, protocol.cells.n_cells), dtype=np.int64)
    counts[0, 5] = 2**63 - 1
    raw = json.loads(Aggregate({protocol: Tally(2**63 - 1, counts)}).to_json())
    with pytest.raises(InvalidReportError):
        Aggregate.from_json(json.dumps(raw))


def tallies():
    values, bits, labelled = ValueProtocol(), EIGHT, LabelRecordProtocol()
    largest = np.zeros((1, values.cells.n_cells), dtype=np.int64)
    largest[0, 0] = MAX_REPORTS
    rows = bits.aggregate(honest(bits, 1), keep_rows=True).parts[bits]
    reports = labelled.aggregate(honest(labelled, 1)).parts[labelled]
    return [(values, Tally(MAX_REPORTS, largest)),
            (bits, PairTally(MAX_REPORTS, np.full((8, 8), MAX_REPORTS))),
            (bits, RowTally(MAX_REPORTS, rows.rows, np.array([MAX_REPORTS]), rows.width)),
            (labelled, RecordTally(MAX_REPORTS, reports.reports))]


@pytest.mark.parametrize("protocol, full", tallies(), ids=["sums", "pairs", "rows", "reports"])
def test_no_more_reports_than_the_limit_are_added(protocol, full):
    keep = {"keep_rows": True} if full.kind == "rows" else {}
    more = protocol.aggregate(honest(protocol, 1), **keep)
    with pytest.raises(InvalidReportError, match="more reports than can be added"):
        Aggregate({protocol: full}) + more
    with pytest.raises(InvalidReportError, match="more reports than can be added"):
        Aggregate({protocol: more.parts[protocol]}, MAX_REPORTS).merge(Aggregate(more.parts, 1))


def test_sums_of_gradients_do_not_overflow():
    top = GRADIENTS.randomizer.clamp[1]
    n_reports = (2**63 - 1) // top
    full = Aggregate({GRADIENTS: Tally(n_reports, np.full(3, n_reports * top))})
    full = Aggregate.from_json(full.to_json())
    with pytest.raises(InvalidReportError, match="more reports than can be added"):
        full + full.merge(Aggregate({GRADIENTS: Tally(1, np.full(3, -top))}))


def test_sums_of_many_rows_are_exact():
    rows = np.broadcast_to(np.array([2**42, -(2**42)]), (3 << 20, 2))
    assert column_sums(rows).tolist() == [2**42 * (3 << 20), -(2**42) * (3 << 20)]
    assert column_sums(np.empty((0, 2), dtype=np.int8)).tolist() == [0, 0]


def test_gram_matrices():
    rng = np.random.default_rng(0)
    for k in (1, 2, 5, 40):
        for n in (0, 1, k, 3 * k):
            rows = (10 ** rng.uniform(0, 12, size=(n, k)) * rng.choice([-1, 1], size=(n, k))).astype(np.int64)
            exact = sum((np.outer(row, row) for row in rows.astype(object)), np.zeros((k, k), dtype=object))
            assert is_gram_matrix(exact)
    # A smallest eigenvalue of -1e-9 times the largest is detected.
    ones = np.full((3, 3), 10**12, dtype=object)
    ones[0, 1] = ones[1, 0] = 10**12 - 1000
    assert is_gram_matrix(np.full((3, 3), 10**12, dtype=object)) and not is_gram_matrix(ones)


def test_the_bound_on_noisy_sums():
    """Without forged reports it is n largest + 11 s sqrt(n); half of the reports may be at the clamps."""
    (bound,) = largest_noisy_sums(10**6, np.array([10_000]), 100, np.array([1000.0]))
    assert bound == 500_000 * 10_000 + 500_000 * 101 + 11 * 10**6
    for n_reports in (0, 1, 2):
        assert largest_noisy_sums(n_reports, np.array([9000]), 100, np.array([1000.0])) == [9000 * n_reports]


PROTOCOL_TEXT = ValueProtocol(bounds=(0, 10)).to_json()
AGGREGATE_TEXT = forged(RECORDS)
MODEL_TEXT = GradientProtocol(n_features=2).start().to_json()
READERS = {"protocol": (Protocol.from_json, PROTOCOL_TEXT), "aggregate": (Aggregate.from_json, AGGREGATE_TEXT),
           "model": (GradientModel.from_json, MODEL_TEXT)}
readers = pytest.mark.parametrize("read, text", READERS.values(), ids=READERS)


@readers
def test_a_repeated_name_is_refused(read, text):
    read(text)
    name = next(iter(json.loads(text)))
    with pytest.raises(REFUSED, match="a name occurs twice"):
        read(text[:-1] + f', "{name}": {json.dumps(json.loads(text)[name])}}}')


def test_a_repeated_name_in_a_nested_object_is_refused():
    with pytest.raises(InvalidReportError, match="a name occurs twice"):
        Aggregate.from_json(AGGREGATE_TEXT.replace('"n_reports": 40', '"n_reports": 40, "n_reports": 40'))


@pytest.mark.parametrize("version", ["true", "1.0", '"1"', "null", "[1]", "NaN"])
@pytest.mark.parametrize("name", ["protocol", "aggregate"])
def test_a_version_that_is_not_an_integer_is_refused(name, version):
    read, text = READERS[name]
    with pytest.raises(REFUSED, match="version is not a number"):
        read(text.replace('"version": 1', f'"version": {version}'))


@pytest.mark.parametrize("text", [
    b"\xff\xfe", None, 5, "{" * 10**5, "[" * 10**5, '{"protocol_id": "a", "round": true, "theta": [0.0]}',
    '{"protocol_id": "a", "round": 0, "theta": [1' + "0" * 400 + "]}", '{"protocol_id": "a", "round": 0, "theta": 5}',
    '{"protocol_id": "a", "round": 1e3, "theta": [0]}', '{"protocol_id": "a", "round": 0, "theta": "12"}',
    '{"protocol_id": ["a"], "round": 0, "theta": [0]}', '{"protocol_id": "a", "round": 0, "theta": [true]}',
    '{"protocol_id": "a", "round": -1, "theta": [0]}', '{"protocol_id": "a", "round": 0, "theta": [NaN]}',
    '{"protocol_id": "a", "round": 0, "theta": {"0": 1}}', '{"protocol_id": "a", "round": 0, "theta": [0], "b": 1}',
    '{"protocol_id": "a", "round": 1' + "0" * 400 + ', "theta": [0]}', "\ud800", "1" * 5000], ids=range(19))
def test_texts_that_are_not_models_are_refused(text):
    with pytest.raises(InvalidParameterError):
        GradientModel.from_json(text)


STRANGE = [None, True, False, -1, 0, 1, 2**63, 10**400, 1.5, -0.0, math.nan, math.inf, "", "x", "inf", "\ud800", [], {},
           [[]], [{}], {"a": 1}, [None], [1, "a"], {"member": "x"}, {"dtype": "integer", "shape": [-1], "data": []},
           {"dtype": "integer", "shape": [2**70], "data": [1]}, {"dtype": "int64", "shape": [1], "data": "!"}]


def places(value, path=()):
    """Paths to all values inside a JSON value."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in inside:
        yield from places(item, (*path, name))


def mutated(text, rng):
    """JSON text with a value replaced, removed or added, or with some characters changed."""
    if rng.uniform() < 0.3:
        place = int(rng.integers(len(text)))
        return text[:place] + str(rng.choice(list('{}[]",:0e-\\ntN'))) + text[place + int(rng.integers(3)):]
    raw = json.loads(text)
    paths = [path for path in places(raw) if path]
    *inside, last = paths[int(rng.integers(len(paths)))]
    holder = raw
    for name in inside:
        holder = holder[name]
    choice = rng.uniform()
    if choice < 0.15:
        del holder[last]
    elif choice < 0.25 and isinstance(holder, dict):
        holder["extra"] = holder[last]
    else:
        holder[last] = STRANGE[int(rng.integers(len(STRANGE)))]
    return json.dumps(raw)


def is_refused(read, *arguments):
    """Whether the input was refused with a clear error; any other error fails the test."""
    try:
        read(*arguments)
    except REFUSED:
        return True
    return False


TEXTS = [text for _, text in READERS.values()] + [forged(kind(1.0, 1)) for kind in KINDS.values()]


@pytest.mark.filterwarnings("ignore")  # zipfile warns of repeated names
@pytest.mark.parametrize("seed", range(4))
def test_mutated_texts_raise_only_clear_errors(seed):
    rng = np.random.default_rng(seed)
    n_refused = 0
    for _ in range(250):
        text = TEXTS[int(rng.integers(len(TEXTS)))]
        changed = mutated(text, rng)
        for read in (Protocol.from_json, Aggregate.from_json, GradientModel.from_json):
            n_refused += is_refused(read, changed)
    assert n_refused > 600


@pytest.mark.parametrize("seed", range(2))
def test_mutated_files_raise_only_clear_errors(seed):
    rng = np.random.default_rng(seed)
    for name in ("square wave", "subset", "records"):
        protocol = KINDS[name](1.0, 1)
        reports, aggregate = io.BytesIO(), io.BytesIO()
        save_reports(reports, honest(protocol, 3), protocol)
        protocol.aggregate(honest(protocol, 3)).save(aggregate)
        for read, file in ((load_reports, reports), (Aggregate.load, aggregate)):
            for _ in range(30):
                damaged = bytearray(file.getvalue())
                place = int(rng.integers(len(damaged)))
                damaged[place:place + int(rng.integers(1, 4))] = rng.bytes(int(rng.integers(0, 4)))
                is_refused(read, io.BytesIO(bytes(damaged)))
            header = json.loads(np.load(io.BytesIO(file.getvalue()))["header"].tobytes())
            arrays = {key: array for key, array in np.load(io.BytesIO(file.getvalue())).items() if key != "header"}
            for _ in range(30):
                changed = io.BytesIO()
                text = mutated(json.dumps(header), rng).encode("utf-8", "surrogatepass")
                np.savez(changed, header=np.frombuffer(text, dtype=np.uint8), **arrays)
                changed.seek(0)
                is_refused(read, changed)
