"""Conversion of private values in every kind of container, by every function that a client calls."""

import decimal
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import skldp
import skldp._validation._door as door
from skldp.protocols import (
    CategoryProtocol,
    GradientClient,
    GradientProtocol,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    RecordProtocol,
    ValueProtocol,
)

pyarrow, polars = pytest.importorskip("pyarrow"), pytest.importorskip("polars")

N = 400
UNLIKELY = 1e-9
SECRET = 0.4375  # exact in every type below


class Subclass(np.ndarray):
    """An array that keeps its type through NumPy's functions."""


def numbers(n_columns):
    """Containers of N equal records, each with its name and whether all values are missing."""
    plain = np.full((N, n_columns), SECRET)
    rows, names = plain.tolist(), [f"c{j}" for j in range(n_columns)]
    holes = np.ones_like(plain, dtype=bool)

    def table(values):
        return {name: values for name in names}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        matrix = np.matrix(plain)
    return [
        ("array", plain, False), ("fortran", np.asfortranarray(plain), False), ("list", rows, False),
        ("tuple", tuple(map(tuple, rows)), False), ("float16", plain.astype(np.float16), False),
        ("longdouble", plain.astype(np.longdouble), False), ("matrix", matrix, False),
        ("subclass", plain.view(Subclass), False), ("object", plain.astype(object), False),
        ("text", plain.astype(str), False), ("bytes", plain.astype(bytes), False),
        ("decimal", [[decimal.Decimal(SECRET)] * n_columns] * N, False),
        ("frame", pd.DataFrame(plain, columns=names), False),
        ("polars", polars.DataFrame(table([SECRET] * N)), False),
        ("arrow table", pyarrow.table(table([SECRET] * N)), False),
        ("named fields", np.array([tuple(row) for row in rows], dtype=[(name, float) for name in names]), False),
        ("masked, none hidden", np.ma.array(plain), False),
        ("masked", np.ma.array(plain, mask=holes), True),
        ("masked integers", np.ma.array(np.full_like(plain, 171, dtype=int), mask=holes), True),
        ("masked text", np.ma.array(plain.astype(str), mask=holes), True),
        ("masked rows in a list", [np.ma.array(row, mask=True) for row in rows], True),
        ("masked entries in lists", [[np.ma.masked] * n_columns] * N, True),
        ("masked fields", np.ma.array([tuple(row) for row in rows], dtype=[(name, float) for name in names],
                                      mask=[(True,) * n_columns] * N), True),
        ("pandas NA", pd.DataFrame(table(pd.array([None] * N, dtype="Int64"))), True),
        ("pandas arrow", pd.DataFrame(table(pd.Series([None] * N, dtype="double[pyarrow]"))), True),
        ("pandas object NA", pd.DataFrame(table([pd.NA] * N)), True),
        ("polars null", polars.DataFrame(table(polars.Series([None] * N, dtype=polars.Float64))), True),
        ("arrow null", pyarrow.table(table(pyarrow.array([None] * N, pyarrow.float64()))), True),
        ("NaN", np.full_like(plain, np.nan), True), ("None", [[None] * n_columns] * N, True),
        ("complex", plain + 1j, True), ("complex objects", [[1j] * n_columns] * N, True),
        ("words", np.full((N, n_columns), "secret"), True),
        ("dates", np.full((N, n_columns), "2020-01-01", "M8[D]"), True),
        ("other lengths", [[SECRET] * (n_columns + 1)] * (N - 1) + [[np.nan] * n_columns], True),
        ("lists as values", [[[1, 2]] * n_columns] * (N - 1) + [[None] * n_columns], True),
    ]


def test_memory_maps_and_large_numbers(tmp_path):
    mapped = np.memmap(tmp_path / "values", dtype=float, mode="w+", shape=(N, 2))
    mapped[:] = SECRET
    assert_plain(door.as_float_table(mapped, 2), np.full((N, 2), SECRET))
    assert_plain(door.as_floats([10**400, -(10**400), 2**70]), np.array([np.inf, -np.inf, 2.0**70]))
    for series in (pd.Series([1.0, None]), pd.Series([1, None], dtype="Int64"), pyarrow.array([1.0, None]),
                   polars.Series([1.0, None]), pd.array([1, None], dtype="Int64")):
        assert_plain(door.as_float_table(series, 1), np.array([[1.0], [np.nan]]))


def assert_plain(found, expected):
    assert type(found) is np.ndarray and found.dtype == np.float64
    assert found.flags.owndata and found.flags.c_contiguous and found.flags.writeable
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("n_columns", [1, 2])
def test_every_container_becomes_a_plain_array(n_columns):
    for name, container, hidden in numbers(n_columns):
        found = door.as_float_table(container, n_columns)
        assert_plain(found, np.full((N, n_columns), np.nan if hidden else SECRET))
        assert not isinstance(container, np.ndarray) or not np.shares_memory(found, container), name


@pytest.mark.parametrize("x", [{1.0}, {"a": 1.0}, (value for value in (1.0,)), polars.DataFrame({"a": [1.0]}).lazy()],
                         ids=lambda x: type(x).__name__)
def test_other_types_are_refused_by_name(x):
    with pytest.raises(TypeError, match=f"got {type(x).__name__}"):
        door.as_floats(x)


def test_an_array_that_fails_shows_no_value():
    class Hostile:
        def __array__(self, dtype=None, copy=None):
            raise ValueError(f"the value {SECRET}")

    with pytest.raises(TypeError) as caught:
        door.as_floats(Hostile())
    assert str(SECRET) not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def raising(**methods):
    """Return an object with these methods, each of which raises an error with the value in its message."""
    def raiser(error):
        def method(self, *args, **kwargs):
            raise error(f"the value {SECRET}")
        return method

    return type("Hostile", (), {name: raiser(error) for name, error in methods.items()})()


def endless():
    row = [SECRET]
    row.append(row)
    return row


HOSTILE = {
    "array": raising(__array__=RuntimeError), "entries": raising(__getitem__=RuntimeError, __len__=RuntimeError),
    "float": raising(__float__=OverflowError), "comparison": raising(__float__=OverflowError, __gt__=RuntimeError),
    "attributes": raising(__getattr__=RuntimeError), "endless": endless(),
    "class": type("Hostile", (), {"__class__": property(lambda self: 1 / 0)})(),
    "length": type("Hostile", (), {"__len__": lambda self: 1, "__getitem__": lambda self, place: 1 / 0})(),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_values_that_raise_when_they_are_read_are_missing(name):
    value = HOSTILE[name]
    np.testing.assert_array_equal(door.as_float_table([[value, 1.0], [2.0, 3.0]], 2), [[np.nan, 1.0], [2.0, 3.0]])
    np.testing.assert_array_equal(door.as_float_table([2.0, value, 3.0], 1), [[2.0], [np.nan], [3.0]])
    np.testing.assert_array_equal(CategoryProtocol(categories=("a", "b")).codes(["a", value]), [0, -1])
    assert ValueProtocol(n_features=2).privatize([[value, 1.0], [2.0, 3.0]]).shape == (2, 2)
    assert len(skldp.LaplacePerturber().fit_transform([[value, 1.0], [2.0, 3.0]])) == 2
    protocol = GradientProtocol(n_features=1)
    assert len(GradientClient(protocol).gradient(protocol.start(), [[1.0], [2.0]], [1, value])) == 2


@pytest.mark.parametrize("dtype", ["i8", "u1", "?", "f4", "U3", "S3", "M8[D]", "c8", "O"])
def test_a_mask_that_hides_nothing_changes_nothing(dtype):
    values = np.array([1, 0, 1]).astype(dtype)
    found = door.as_values(np.ma.array(values))
    assert type(found) is np.ndarray and found.dtype == values.dtype and (found == values).all()
    np.testing.assert_array_equal(door.as_floats(np.ma.array(values)), door.as_floats(values))


def test_a_mask_returned_by_an_array_method_is_honoured():
    class Lazy:
        def __array__(self, dtype=None, copy=None):
            return np.ma.array([171.0, 180.0], mask=[True, False])

    np.testing.assert_array_equal(door.as_floats(Lazy()), [np.nan, 180.0])


def test_numbers_in_strings_of_any_length():
    texts = np.array(["1.5", "no number"], dtype=np.dtypes.StringDType())
    np.testing.assert_array_equal(door.as_floats(texts), [1.5, np.nan])


@pytest.mark.parametrize("kind", [pd.Series, polars.Series, pyarrow.array, range], ids=lambda kind: kind.__name__)
def test_rows_of_several_lengths_are_rows_in_any_container(kind):
    rows = [range(2), range(3)] if kind is range else [kind([0.0, 1.0]), kind([0.0, 1.0, 2.0])]
    found = door.as_float_table(rows, 2)
    assert found.shape == (2, 2) and np.isnan(found[1]).all()


def test_one_record_of_several_values():
    np.testing.assert_array_equal(door.as_float_table([1.0, [2.0, 3.0]], 2), [[1.0, np.nan]])
    np.testing.assert_array_equal(door.as_float_table([1.0, 2.0], 2), [[1.0, 2.0]])
    np.testing.assert_array_equal(door.as_float_table([[1.0], [2.0, 3.0]], 2), [[np.nan, np.nan], [2.0, 3.0]])


def of_protocol(protocol, y=None):
    """Return a function that privatises records and responses, the number of columns, and a response."""
    def privatize(X, responses):
        return protocol.privatize(X) if y is None else protocol.privatize(X, responses)
    return privatize, protocol.n_features, y


def of_perturber(perturber, n_columns):
    def transform(X, responses):
        if isinstance(X, list):  # rows of a list may have other lengths
            return perturber.fit(np.full((2, n_columns), SECRET)).transform(X)
        return perturber.fit_transform(X)
    return transform, n_columns, None


def of_client():
    protocol = GradientProtocol(n_features=2, loss="squared", mechanism="sphere")
    return (lambda X, y: GradientClient(protocol).gradient(protocol.start(), X, y)), 2, SECRET


ENTRIES = {
    "square wave": of_protocol(ValueProtocol(bounds=(-1, 1))),
    "laplace": of_protocol(ValueProtocol(bounds=(-1, 1), mechanism="laplace", epsilon=0.1)),
    "gaussian": of_protocol(ValueProtocol(bounds=(-1, 1), mechanism="gaussian", delta=1e-5)),
    "two values": of_protocol(ValueProtocol(bounds=(-1, 1), n_features=2)),
    "moments, sphere": of_protocol(MomentProtocol(n_features=2), SECRET),
    "moments, gaussian": of_protocol(MomentProtocol(n_features=2, mechanism="gaussian"), SECRET),
    "records": of_protocol(RecordProtocol(n_features=2), SECRET),
    "labelled moments": of_protocol(LabelMomentProtocol(n_features=2, classes=(SECRET, 1)), SECRET),
    "labelled records": of_protocol(LabelRecordProtocol(n_features=2, classes=(SECRET, 1)), SECRET),
    "gradients": of_protocol(GradientProtocol(n_features=2, loss="squared"), SECRET),
    "gradient client": of_client(),
    "LaplacePerturber": of_perturber(skldp.LaplacePerturber(), 2),
    "SquareWavePerturber": of_perturber(skldp.SquareWavePerturber(), 1),
    "GaussianPerturber": of_perturber(skldp.GaussianPerturber(), 2),
    "SpherePerturber": of_perturber(skldp.SpherePerturber(), 2),
    "RandomizedResponsePerturber": of_perturber(skldp.RandomizedResponsePerturber(categories=[SECRET, 1, 2]), 1),
    "SubsetSelectionPerturber": of_perturber(skldp.SubsetSelectionPerturber(categories=[SECRET, 1, 2]), 1),
    "UnaryEncodingPerturber": of_perturber(skldp.UnaryEncodingPerturber(categories=[SECRET, 1, 2]), 1),
    "rr": of_protocol(CategoryProtocol(categories=(SECRET, 1.0, 2.0), mechanism="rr")),
    "subset": of_protocol(CategoryProtocol(categories=(SECRET, 1.0, 2.0))),
    "oue": of_protocol(CategoryProtocol(categories=(SECRET, 1.0, 2.0), mechanism="oue")),
}
TEXTUAL = {"text", "bytes"}  # as a category, the text of a number differs from the number


def two_sample_p_value(reports, reference):
    """p-value of the hypothesis that two sets of reports have the same distribution, along a fixed direction."""
    direction = np.sqrt(np.arange(1, reports.shape[1] + 1))
    one, other = (np.asarray(sample, dtype=float) @ direction for sample in (reports, reference))
    edges = np.unique(np.quantile(np.concatenate([one, other]), np.linspace(0, 1, 9)[1:-1]))
    places = (np.searchsorted(edges, sample) for sample in (one, other))
    counts = np.array([np.bincount(place, minlength=len(edges) + 1) for place in places])
    return stats.chi2_contingency(counts[:, counts.sum(axis=0) > 0]).pvalue


def responses(container, n_columns):
    """The first column of a container as responses."""
    if isinstance(container, np.ndarray) and not isinstance(container, np.matrix) and not container.dtype.names:
        return container[:, 0]
    if isinstance(container, pd.DataFrame):
        return container.iloc[:, 0]
    return [SECRET] * N


@pytest.mark.parametrize("entry", ENTRIES)
def test_reports_have_the_distribution_of_plain_records(entry):
    privatize, n_columns, y = ENTRIES[entry]
    by_category = entry in ("rr", "subset", "oue") or "Response" in entry or "Selection" in entry or "Unary" in entry
    reference = {}
    for hidden in (False, True):
        X = np.full((20 * N, n_columns), np.nan if hidden else SECRET)
        for missing in (False, True):
            reference[hidden, missing] = privatize(X, np.full(len(X), np.nan if missing else SECRET))
    for name, container, hidden in numbers(n_columns):
        if by_category and name in TEXTUAL:
            hidden = True
        y = responses(container, n_columns)
        reports = privatize(container, y)
        plain_y = door.as_floats(y)
        missing = bool(np.isnan(plain_y).all()) or ("labelled" in entry and np.asarray(y).dtype.kind in "SU")
        assert type(reports) is np.ndarray and len(reports) == N, name
        if entry in ("RandomizedResponsePerturber",):
            assert np.isin(reports, [SECRET, 1, 2]).all()
        p_value = two_sample_p_value(reports, reference[hidden, missing])
        assert p_value > UNLIKELY, (name, p_value)


@pytest.mark.parametrize("mechanism", ["square_wave", "laplace"])
@pytest.mark.parametrize("hidden", [False, True])
def test_masked_records_have_the_probabilities_of_the_mechanism(mechanism, hidden):
    assert masked_p_value(mechanism, hidden) > UNLIKELY


@pytest.mark.parametrize("mechanism", ["square_wave", "laplace"])
def test_masked_arrays_that_are_not_converted_are_detected(mechanism, monkeypatch):
    """Control: if masked arrays are passed on, hidden values are reported without noise."""
    monkeypatch.setattr(door, "_plain", lambda x: np.ma.asanyarray(x))
    monkeypatch.setattr(door, "_floats", lambda values: values.astype(float))
    monkeypatch.setattr(door, "_owned", lambda values: values)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert masked_p_value(mechanism, True) < UNLIKELY


def masked_p_value(mechanism, hidden):
    """p-value of a chi-squared test of reports of equal masked records against ``log_prob``."""
    n = 20_000
    protocol = ValueProtocol(epsilon=1.0, bounds=(-1, 1), mechanism=mechanism, n_levels=32)
    records = np.ma.array(np.full((n, 1), -SECRET), mask=np.full((n, 1), hidden))
    reports = np.ma.getdata(protocol.privatize(records))[:, 0]
    low, high = protocol.randomizer.clamp
    every = np.arange(low, high + 1)
    probability = np.exp(protocol.randomizer.log_prob(every, np.full(len(every), np.nan if hidden else -SECRET)))
    counts = np.bincount(np.clip(reports.astype(int), low, high) - low, minlength=len(every))
    rare = n * probability < 10
    expected = np.append(n * probability[~rare], n * probability[rare].sum())
    observed = np.append(counts[~rare], counts[rare].sum())
    likely = expected > 5
    return stats.chisquare(observed[likely], expected[likely] * observed[likely].sum() / expected[likely].sum()).pvalue


@pytest.mark.parametrize("estimator, y", [
    (skldp.LDPGaussian(), None), (skldp.LDPPoisson(), None), (skldp.LDPBayesLinearRegression(), SECRET),
    (skldp.LDPHistogram(categories=[SECRET, 1.0]), None),
    (skldp.LDPBayesLogisticRegression(classes=[SECRET, 1.0]), SECRET),
], ids=lambda value: type(value).__name__)
def test_simulations_treat_masked_values_as_missing(estimator, y):
    X = np.full((20, 1), SECRET)
    labels = () if y is None else (np.where(np.arange(20) % 2, 1.0, SECRET),)
    assert type(estimator.privatize(np.ma.array(X), *labels)) is np.ndarray
    hidden = np.ma.array(X, mask=np.arange(20)[:, None] < 2)
    for entry in (estimator.privatize, estimator.fit):
        with pytest.raises(ValueError) as caught:
            entry(hidden, *labels)
        assert str(SECRET) not in str(caught.value)
    if labels:
        with pytest.raises(ValueError):
            estimator.privatize(X, np.ma.array(labels[0], mask=np.arange(20) < 2))


@pytest.mark.parametrize("perturber", [
    skldp.LaplacePerturber(), skldp.SquareWavePerturber(), skldp.GaussianPerturber(), skldp.SpherePerturber(),
    skldp.RandomizedResponsePerturber(categories=["1", "2"]), skldp.BoundedScaler(), skldp.PublicColumns(),
], ids=lambda perturber: type(perturber).__name__)
@pytest.mark.parametrize("X", [
    [["1"], ["secret-value"]], np.array([["1"], ["secret-value"]]), [[10**400], [1]], np.array([[1 + 7j], [2]]),
    [["1", "2"], ["secret-value"]], [[{"secret-value"}], [object()]], np.ma.array([[171.0], [2.0]], mask=[[1], [0]]),
    pd.DataFrame({"a": ["1", "secret-value"]}), [[b"\xff"], [np.datetime64("2020")]],
], ids=["text", "text array", "too large", "complex", "ragged", "objects", "masked", "frame", "bytes and dates"])
def test_transformers_never_raise_about_a_value(perturber, X):
    """Only the dtype of an array is public, so ``fit`` may refuse complex numbers, as scikit-learn requires."""
    if isinstance(X, np.ndarray) and X.dtype.kind == "c":
        with pytest.raises(ValueError, match="Complex data not supported") as caught:
            perturber.fit(X)
        assert "7" not in str(caught.value)
        X = [[complex(value)] for value in X.ravel()]
    assert len(perturber.fit_transform(X)) == len(X)
    assert len(perturber.fit(X).transform(X)) == len(X)


@pytest.mark.parametrize("perturber", [skldp.LaplacePerturber(), skldp.RandomizedResponsePerturber(categories=[1, 2])],
                         ids=lambda perturber: type(perturber).__name__)
def test_errors_about_shapes_show_no_value(perturber):
    for X in ([171.25, 171.25], np.full(3, 171.25), np.full((2, 2, 2), 171.25)):
        with pytest.raises(ValueError) as caught:
            perturber.fit(X)
        assert "171" not in str(caught.value)
    with pytest.raises(ValueError, match="2 features, but .* is expecting 1"):
        perturber.fit([[171.25]]).transform([[171.25, 171.25]])
