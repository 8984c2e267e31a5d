import math
import pickle
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import skldp
from skldp.exceptions import InvalidParameterError, PrivacyLeakWarning
from skldp.privacy import Ledger, audit_epsilon

VALUES = [skldp.LaplacePerturber, skldp.SquareWavePerturber]
VECTORS = [skldp.GaussianPerturber, skldp.SpherePerturber]
CATEGORIES = [skldp.RandomizedResponsePerturber, skldp.SubsetSelectionPerturber, skldp.UnaryEncodingPerturber]
COLOURS = ["red", "green", "blue"]


def make(cls, **parameters):
    if cls in CATEGORIES:
        parameters.setdefault("categories", COLOURS)
    return cls(**parameters)


def records(cls, n=50):
    rng = np.random.default_rng(0)
    return rng.choice(COLOURS, size=(n, 2)) if cls in CATEGORIES else rng.uniform(-0.5, 0.5, size=(n, 2))


everyone = pytest.mark.parametrize("cls", VALUES + VECTORS + CATEGORIES)


@everyone
def test_random_state_as_documented(cls):
    X = records(cls)
    fresh = make(cls, epsilon=0.5).fit(X)
    assert (fresh.transform(X) != fresh.transform(X)).any()
    seeded = make(cls, epsilon=0.5, random_state=7).fit(X)
    reports = seeded.transform(X)
    assert (seeded.transform(X) == reports).all(), "the same data, the same reports"
    assert (clone(seeded).fit(X).transform(X) == reports).all()
    assert (pickle.loads(pickle.dumps(seeded)).transform(X) == reports).all()
    assert (make(cls, epsilon=0.5, random_state=8).fit(X).transform(X) != reports).any()
    generator = make(cls, epsilon=0.5, random_state=np.random.default_rng(0)).fit(X)
    assert (generator.transform(X) != generator.transform(X)).any()


@pytest.mark.parametrize("cls", VALUES + VECTORS)
def test_seeded_noise_is_independent_for_other_data(cls):
    """If the noise were reused, the difference of two releases would be the difference of the data."""
    perturber = make(cls, epsilon=0.5, random_state=0).fit(records(cls))
    X = records(cls, 400)
    difference = perturber.transform(X + 0.01) - perturber.transform(X)
    assert np.std(difference) > 0.3


@pytest.mark.parametrize("cls", CATEGORIES)
def test_equal_columns_get_different_noise(cls):
    X = np.repeat(np.random.default_rng(0).choice(COLOURS, size=(400, 1)), 2, axis=1)
    one, other = np.split(make(cls, epsilon=1.0, random_state=0).fit_transform(X), 2, axis=1)
    assert (one != other).any()


@everyone
def test_rows_share_the_budget_of_a_client(cls):
    X = records(cls)
    perturber = make(cls, epsilon=1.0).fit(X)
    assert perturber.epsilon_ == 1.0
    mechanisms = perturber.mechanism_ if isinstance(perturber.mechanism_, tuple) else (perturber.mechanism_,)
    expected = 1.0 if cls in VECTORS else 0.5
    assert all(mechanism.epsilon == expected for mechanism in mechanisms)
    assert perturber.delta_ == (1e-5 if cls is skldp.GaussianPerturber else 0.0)


# What the reports of many equal clients show of the noise, by hand for epsilon 1 and the default domain.
E = math.e
SIGNS_OF_NOISE = {
    skldp.LaplacePerturber: (lambda reports: np.abs(reports).mean(), 2.0),
    # 257 of the 1281 points of the grid are near a value, and e times as likely as the others.
    skldp.SquareWavePerturber: (lambda reports: (np.abs(reports) < 0.251).mean(), 257 * E / (257 * E + 1024)),
    skldp.GaussianPerturber: (np.std, 7.461),  # the analytic calibration for delta 1e-5: 3.7306 times the diameter
    skldp.SpherePerturber: (np.std, 2.182),  # sqrt((1 - c^2) / (2 c^2)) for a cap of height c = 0.3083
    skldp.RandomizedResponsePerturber: (lambda reports: (reports == "red").mean(), E / (E + 2)),
    skldp.SubsetSelectionPerturber: (lambda reports: reports[:, 0].mean(), E / (E + 2)),
    skldp.UnaryEncodingPerturber: (lambda reports: reports[:, 1:].mean(), 1 / (1 + E)),
}


@everyone
@pytest.mark.filterwarnings("ignore:The ledger could not see")  # idle workers of other tests may still be ending
def test_the_default_budget_is_one_and_is_what_is_spent(cls):
    perturber = make(cls, random_state=0)
    X = np.full((40_000, 1), "red") if cls in CATEGORIES else np.zeros((40_000, 1))
    with Ledger() as spent:
        reports = perturber.fit_transform(X)
    assert perturber.epsilon == perturber.epsilon_ == spent.largest == 1.0
    show, expected = SIGNS_OF_NOISE[cls]
    assert show(reports) == pytest.approx(expected, rel=0.04)


@pytest.mark.parametrize("cls", VALUES + [skldp.SpherePerturber])
def test_end_to_end_audit_of_a_row(cls):
    perturber = make(cls, epsilon=1.0).fit(np.zeros((2, 2)))
    corners = [np.array([1.0, 1.0]), np.array([-1.0, -1.0])]
    result = audit_epsilon(perturber.transform, *corners, n_reports=50_000, statistic=lambda r: r.sum(axis=1))
    assert 0.2 < result.epsilon_lower <= 1.0


def test_laplace_and_vectors_are_unbiased():
    X = np.tile([0.4, -0.3], (40_000, 1))
    for cls in (skldp.LaplacePerturber, skldp.GaussianPerturber, skldp.SpherePerturber):
        reports = cls(epsilon=2.0, random_state=0).fit_transform(X)
        assert np.abs((reports.mean(axis=0) - X[0]) / (reports.std(axis=0) / 200)).max() < 4.5


def test_square_wave_unbiased_values():
    X = np.tile([0.4, -0.3], (40_000, 1))
    perturber = skldp.SquareWavePerturber(epsilon=4.0, random_state=0).fit(X)
    values = perturber.mechanism_.unbiased(perturber.mechanism_.randomize(X, 0))
    assert np.abs((values.mean(axis=0) - X[0]) / (values.std(axis=0) / 200)).max() < 4.5


@pytest.mark.parametrize("cls", VALUES + VECTORS)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, -1e300, 5e-324, -0.0])
def test_private_values_never_raise_or_warn(cls, value):
    perturber = make(cls).fit(records(cls))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(perturber.transform(np.full((3, 2), value))).all()


@pytest.mark.parametrize("cls", CATEGORIES)
@pytest.mark.parametrize("value", ["purple", np.nan, None, 3, -1.5, ("a",), True, b"red", float("inf")])
def test_unknown_categories_never_raise_or_warn(cls, value):
    perturber = make(cls).fit(records(cls))
    X = np.empty((3, 2), dtype=object)
    for index in np.ndindex(X.shape):
        X[index] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(perturber.transform(X)) == 3


@pytest.mark.parametrize("cls", VALUES + VECTORS)
@pytest.mark.parametrize("value", [10**400, None, "abc", pd.NA, Decimal("sNaN"), np.longdouble("1e2000"), {}, 1j])
def test_objects_that_are_no_numbers_never_raise_or_warn(cls, value):
    perturber = make(cls).fit(records(cls))
    X = np.full((3, 2), 0.5, dtype=object)
    X[1, 0] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for container in (X, X.tolist(), pd.DataFrame(X)):
            assert np.isfinite(perturber.transform(container)).all()
    with pytest.raises(ValueError, match="features"):
        perturber.transform(np.full((3, 5), 0.5, dtype=object))


def test_one_record_of_a_list_does_not_change_the_others():
    perturber = skldp.RandomizedResponsePerturber(epsilon=20.0, categories=[0, 1]).fit([[0]])
    for last in (1, "x", None):
        assert (perturber.transform([[0]] * 200 + [[last]])[:200] == 0).all()


def test_columns_never_spend_more_than_the_row():
    for epsilon in (np.float32(0.1), 0.1, 0.7, 1.0):
        for k in (3, 7, 10):
            mechanism = skldp.LaplacePerturber(epsilon=epsilon).fit(np.zeros((2, k))).mechanism_
            assert Fraction(mechanism.epsilon) * k <= Fraction(float(epsilon))


@everyone
def test_pandas_in_and_out(cls):
    frame = pd.DataFrame(records(cls), columns=["first", "second"])
    perturber = make(cls, random_state=0).set_output(transform="pandas").fit(frame)
    out = perturber.transform(frame)
    assert isinstance(out, pd.DataFrame)
    assert list(out.columns) == list(perturber.get_feature_names_out())
    assert list(perturber.feature_names_in_) == ["first", "second"]
    assert out.shape[0] == 50


@pytest.mark.parametrize("cls", CATEGORIES)
def test_pandas_categoricals(cls):
    frame = pd.DataFrame({"colour": pd.Categorical(["red", "blue", "red"], categories=COLOURS)})
    reports = make(cls, categories=[frame["colour"].cat.categories], random_state=0).fit_transform(frame)
    assert len(reports) == 3


@pytest.mark.parametrize("cls", CATEGORIES)
def test_categories_read_off_the_data_warn(cls):
    with pytest.warns(PrivacyLeakWarning, match="Pass categories="):
        perturber = cls().fit([["a"], ["b"], ["a"]])
    assert perturber.categories_[0].tolist() == ["a", "b"]


@pytest.mark.parametrize("cls", CATEGORIES)
@pytest.mark.parametrize("categories, message", [
    ([], "must not be empty"),
    (["a", "a"], "must be distinct"),
    ([{}, {}], "must be numbers or strings"),
    ("abc", "must be a list"),
    (3, "must be a list"),
    ([["a", "b"]], "one for each column"),
    ([["a"], []], "must not be empty"),
])
def test_bad_categories_raise(cls, categories, message):
    with pytest.raises(InvalidParameterError, match=message):
        cls(categories=categories).fit([["a", "b"]])


def test_randomised_response_returns_categories_of_any_kind():
    perturber = skldp.RandomizedResponsePerturber(categories=[[10, 20, 30], ["x", "y"]], epsilon=20.0, random_state=0)
    X = np.array([[10, "x"], [30, "y"]] * 5, dtype=object)
    assert perturber.fit_transform(X).tolist() == X.tolist()
    numbers = skldp.RandomizedResponsePerturber(categories=[1.5, 2.5], random_state=0).fit_transform([[1.5], [2.5]])
    assert numbers.dtype == float


def test_noiseless_simulation_is_named_as_no_privacy():
    for cls in VALUES + VECTORS + CATEGORIES:
        assert "no privacy" in repr(make(cls, epsilon=np.inf))
        assert "no privacy" not in repr(make(cls))
    X = np.array([[0.25, -0.5]])
    np.testing.assert_allclose(skldp.LaplacePerturber(epsilon=np.inf).fit_transform(X), X, atol=1e-4)
    np.testing.assert_allclose(skldp.SpherePerturber(epsilon=np.inf).fit_transform(X), X, atol=1e-4)


@everyone
@pytest.mark.parametrize("epsilon", [0, -1, np.nan, True, "1", 21])
def test_bad_epsilon_raises_in_fit_not_in_init(cls, epsilon):
    perturber = make(cls, epsilon=epsilon)
    with pytest.raises(InvalidParameterError, match="epsilon"):
        perturber.fit(records(cls))


def test_a_large_delta_warns():
    with pytest.warns(UserWarning, match="one over the number of clients"):
        skldp.GaussianPerturber(delta=0.01).fit(np.zeros((100, 2)))


@everyone
def test_sparse_input_is_refused(cls):
    from scipy.sparse import csr_array

    with pytest.raises(TypeError, match="[Ss]parse"):
        make(cls).fit(csr_array(np.eye(3)))


def test_in_a_pipeline_and_a_column_transformer():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(2000, 2))
    y = X @ [0.2, -0.1]
    pipeline = make_pipeline(
        skldp.BoundedScaler(bounds=(0, 10)), skldp.SpherePerturber(epsilon=8.0, random_state=0), LinearRegression()
    )
    assert pipeline.fit(X, y).predict(X).shape == (2000,)
    mixed = pd.DataFrame({"age": X[:, 0], "colour": rng.choice(COLOURS, 2000)})
    columns = ColumnTransformer([
        ("age", skldp.SquareWavePerturber(bounds=(0, 10), random_state=0), ["age"]),
        ("colour", skldp.SubsetSelectionPerturber(categories=COLOURS, random_state=0), ["colour"]),
    ])
    assert columns.fit_transform(mixed).shape == (2000, 4)


class TestBoundedScaler:
    def test_rows_lie_in_the_ball(self):
        X = np.array([[0.0, -5.0, 100.0], [10.0, 5.0, 200.0], [np.inf, np.nan, -np.inf], [5.0, 0.0, 150.0]])
        scaler = skldp.BoundedScaler(bounds=([0, -5, 100], [10, 5, 200]), data_norm=2.0)
        scaled = scaler.fit_transform(X)
        assert np.linalg.norm(scaled, axis=1).max() <= 2.0 * (1 + 1e-15)
        assert np.linalg.norm(scaled[0]) == pytest.approx(2.0)
        assert scaled[3].tolist() == [0, 0, 0]
        assert scaled[2, 1] == 0

    def test_learns_nothing_from_the_data(self):
        rng = np.random.default_rng(0)
        one, other = (skldp.BoundedScaler(bounds=(0, 9)).fit(rng.normal(size=(20, 3)) * k) for k in (1, 100))
        assert (one.scale_ == other.scale_).all() and (one.centre_ == other.centre_).all()

    def test_inverse(self):
        X = np.random.default_rng(0).uniform(-3, 7, size=(20, 2))
        scaler = skldp.BoundedScaler(bounds=(-3, 7)).fit(X)
        np.testing.assert_allclose(scaler.inverse_transform(scaler.transform(X)), X)

    def test_pairs_and_names(self):
        X = pd.DataFrame({"carat": [0.0, 3.0], "depth": [50.0, 70.0], "table": [0.0, 1.0]})
        expected = skldp.BoundedScaler(bounds=([0, 50, 0], [3, 70, 1])).fit_transform(X)
        for bounds in ([(0, 3), (50, 70), (0, 1)], {"depth": (50, 70), "table": (0, 1), "carat": (0, 3)}):
            np.testing.assert_array_equal(skldp.BoundedScaler(bounds=bounds).fit_transform(X), expected)
        with pytest.raises(InvalidParameterError, match="one pair"):
            skldp.BoundedScaler(bounds={"carat": (0, 3)}).fit(X)

    def test_two_pairs_for_two_features(self):
        with pytest.raises(InvalidParameterError, match="can be read as"):
            skldp.BoundedScaler(bounds=[(0, 3), (50, 70)]).fit(np.zeros((2, 2)))
        # Only one reading of these is a pair of intervals.
        assert skldp.BoundedScaler(bounds=[(0, 3), (2, 9)][::-1]).fit(np.zeros((2, 2))).centre_.tolist() == [5.5, 1.5]
        assert skldp.BoundedScaler(bounds=([0, 20], [100, 60])).fit(np.zeros((2, 2))).centre_.tolist() == [50, 40]

    @pytest.mark.parametrize("bounds", [None, 3, (1, 0), ([0, 1, 2], [1, 2, 3]), (0, np.inf), "ab"])
    def test_bad_bounds_raise(self, bounds):
        with pytest.raises(InvalidParameterError, match="bounds"):
            skldp.BoundedScaler(bounds=bounds).fit(np.zeros((2, 2)))

    @pytest.mark.parametrize("data_norm", [None, 0, -1, np.inf])
    def test_bad_norm_raises(self, data_norm):
        with pytest.raises(InvalidParameterError, match="data_norm must"):
            skldp.BoundedScaler(data_norm=data_norm).fit(np.zeros((2, 2)))
