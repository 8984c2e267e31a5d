"""Raw columns with a public schema: codes, coefficients in raw units, and the schema in a protocol."""

import itertools
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from skldp import LDPBayesLinearRegression, LDPBayesLogisticRegression, LDPGaussian, PublicColumns
from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.privacy import Ledger
from skldp.protocols import Client, Protocol
from skldp.protocols._schema import CATEGORY_LENGTH, simplex

CUTS = ["Fair", "Good", "Ideal"]
SCHEMA = {"carat": (0.2, 2.5, "log"), "depth": (55, 68), "cut": CUTS, "owner": "bool"}


def table(n, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"owner": rng.random(n) < 0.3, "depth": rng.normal(61, 2, n), "unused": "text",
                         "cut": rng.choice(CUTS, n), "carat": np.exp(rng.normal(-0.3, 0.5, n))})


class TestCodes:
    @pytest.mark.parametrize("n_vertices", [2, 3, 4, 9])
    def test_simplex_is_regular(self, n_vertices):
        vertices = simplex(n_vertices)
        np.testing.assert_allclose(np.linalg.norm(vertices, axis=1), 1.0)
        np.testing.assert_allclose(vertices.sum(axis=0), 0.0, atol=1e-12)
        lengths = [np.linalg.norm(a - b) for a, b in itertools.combinations(vertices, 2)]
        np.testing.assert_allclose(lengths, np.sqrt(2 * n_vertices / (n_vertices - 1)))

    def test_numbers(self):
        columns = PublicColumns(schema={"a": (1, 100, "log"), "b": {"bounds": (0, 10), "centre": 2, "scale": 4}})
        codes = columns.fit_transform([[10.0, 2.0], [100.0, 10.0], [1e9, -1.0]]) * columns.schema_.radius
        np.testing.assert_allclose(codes, [[0, 0], [1, 2], [1, -0.5]], atol=1e-12)
        assert columns.schema_.radius == pytest.approx(np.sqrt(1 + 4))

    def test_no_row_leaves_the_ball_and_one_reaches_it(self):
        corners = list(itertools.product([0.2, 2.5], [55, 68], CUTS, [False, True]))
        norms = np.linalg.norm(PublicColumns(schema=SCHEMA, data_norm=2.0).fit_transform(corners), axis=1)
        np.testing.assert_allclose(norms, 2.0)

    @pytest.mark.parametrize("value", [None, np.nan, np.inf, -np.inf, "x", object(), [1, 2], 10**400, b"\xff"])
    def test_no_value_raises(self, value):
        rows = [[value, value, value, value], [1.0, 60.0, "Good", True]]
        assert np.isfinite(PublicColumns(schema=SCHEMA).fit_transform(rows)).all()

    def test_missing_and_unknown_values(self):
        columns = PublicColumns(schema={"cut": [*CUTS, None], "depth": {"bounds": (55, 68), "missing": 68}})
        found = columns.fit_transform([[None, None], [np.nan, 68.0], ["other", 61.5], ["Ideal", 99.0]])
        np.testing.assert_array_equal(found[0], found[1])
        assert (found[2] == 0).all() and np.linalg.norm(found[0]) == pytest.approx(1.0)
        assert not np.allclose(found[0], found[3])

    def test_kinds_of_tables(self):
        frame = table(50)
        expected = PublicColumns(schema=SCHEMA).fit_transform(frame[list(SCHEMA)].to_numpy(dtype=object))
        for kind in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            np.testing.assert_allclose(PublicColumns(schema=SCHEMA).fit_transform(kind), expected, atol=1e-12)

    def test_names_and_pandas_output(self):
        columns = PublicColumns(schema=SCHEMA).set_output(transform="pandas")
        assert list(columns.fit_transform(table(5)).columns) == ["carat", "depth", "cut_0", "cut_1", "owner"]
        assert clone(columns).schema == SCHEMA

    def test_learns_nothing_from_the_data(self):
        one, other = (PublicColumns(schema=SCHEMA).fit(table(20, seed)) for seed in (0, 1))
        assert one.schema_.description() == other.schema_.description()

    @pytest.mark.parametrize("typical", [0.5, "sample"])
    def test_typical_records_fill_the_ball(self, typical):
        frame = table(2000)
        columns = PublicColumns(schema=SCHEMA, typical=frame[:500] if typical == "sample" else typical)
        plain = PublicColumns(schema=SCHEMA).fit_transform(frame)
        found = columns.fit_transform(frame)
        norms = np.linalg.norm(found, axis=1)
        assert norms.max() == pytest.approx(columns.data_norm_) and norms.mean() > np.linalg.norm(plain, axis=1).mean()
        inside = norms < 1 - 1e-9
        np.testing.assert_allclose(found[inside], plain[inside] * PublicColumns(schema=SCHEMA).fit(frame).schema_.radius
                                   / columns.schema_.radius)

    def test_json(self, tmp_path):
        columns = PublicColumns(schema={**SCHEMA, "kind": {"categories": [0, 1]}})
        file = tmp_path / "schema.json"
        file.write_text(columns.to_json())
        frame = table(20).assign(kind=1)
        np.testing.assert_array_equal(PublicColumns(schema=str(file)).fit_transform(frame),
                                      columns.fit_transform(frame))
        file.write_text(json.dumps({"depth": [55, 68], "cut": CUTS}))
        assert PublicColumns(schema=file).fit(frame).schema_.width == 3

    @pytest.mark.parametrize("schema, match", [
        ({}, "different names"), ({"a": (1, 1)}, "lower < upper"), ({"a": (0, 1, "log")}, "not finite"),
        ({"a": (1, 2, "exp")}, "transform"), ({"a": ["x"]}, "two different"), ({"a": ["x", "x"]}, "distinct"),
        ({"a": "text"}, "list of its public categories"), ({"a": {"lower": 1}}, "must have categories and"),
        ({"a": {"categories": ["x", "y"], "length": 0}}, "positive"),
        (3, "must be a dict"), ({"a": {"bounds": (0, 1), "scale": 0}}, "positive"), ({"a": 5}, "categories"),
        ({"a": {"bounds": (0, 1), "centre": np.inf}}, "finite"), ({"a": (0, np.inf)}, "finite"),
    ])
    def test_bad_schema_raises(self, schema, match):
        with pytest.raises(InvalidParameterError, match=match):
            PublicColumns(schema=schema).fit([[1.0]])

    @pytest.mark.parametrize("options, match", [({"typical": 2.0}, "share"), ({"data_norm": 0}, "data_norm"),
                                                ({"typical": 0}, "typical")])
    def test_bad_parameter_raises(self, options, match):
        with pytest.raises(InvalidParameterError, match=match):
            PublicColumns(schema={"a": (0, 1)}, **options).fit([[1.0]])

    def test_missing_columns_raise(self):
        with pytest.raises(ValueError, match="no columns"):
            PublicColumns(schema=SCHEMA).fit(table(5).drop(columns="carat"))
        with pytest.raises(ValueError, match="without names"):
            PublicColumns(schema=SCHEMA).fit([[1.0, 2.0]])


class TestRawUnits:
    """Without noise the terms are those of least squares on raw columns with indicators."""

    def fitted(self, estimator, response):
        frame = table(4000)
        model = make_pipeline(PublicColumns(schema=SCHEMA), estimator)
        return frame, model.fit(frame, response(frame))

    def indicators(self, frame):
        return np.column_stack([np.log(frame["carat"].clip(0.2, 2.5)), frame["depth"].clip(55, 68),
                                frame["cut"] == "Good", frame["cut"] == "Ideal", frame["owner"]])

    def test_linear(self):
        frame, model = self.fitted(
            LDPBayesLinearRegression(epsilon=np.inf, bounds_y=(-40, 60), inference="laplace", random_state=0),
            lambda frame: 10 * np.log(frame["carat"].clip(0.2, 2.5)) + 0.5 * (frame["depth"] - 60)
            + 3 * (frame["cut"] == "Good") + 8 * (frame["cut"] == "Ideal") - 4 * frame["owner"])
        found = model[0].raw_coefficients(model)
        y = model.predict(frame)
        truth = LinearRegression().fit(self.indicators(frame), y)
        assert list(found.index) == ["intercept", "log(carat)", "depth", "cut[Good]", "cut[Ideal]", "owner[True]"]
        # Predictions are another summary than posterior means, which they are close to without noise.
        np.testing.assert_allclose(found["estimate"], np.r_[truth.intercept_, truth.coef_], rtol=0.02, atol=0.1)
        assert ((found["lower"] < found["estimate"]) & (found["estimate"] < found["upper"])).all()
        mean, std = model.predict(frame, return_std=True)
        assert mean.shape == std.shape == (4000,)

    def test_terms_are_exact_for_every_draw(self):
        frame, model = self.fitted(LDPBayesLinearRegression(bounds_y=(0, 3), inference="laplace", random_state=0),
                                   lambda frame: frame["carat"])
        draws = model[-1].posterior_.draws
        coef, start = draws["coef"].reshape(-1, 5), draws["intercept"].ravel()
        low, high = ({"carat": 1.0, "depth": depth, "cut": "Good", "owner": False} for depth in (60.0, 61.0))
        codes = model[0].transform(pd.DataFrame([{**low, "unused": ""}, {**high, "unused": ""}])[list(frame.columns)])
        change = coef @ (codes[1] - codes[0])
        table_ = model[0].raw_coefficients(model, level=0.5)
        np.testing.assert_allclose(table_.loc["depth", ["estimate", "std"]].astype(float),
                                   [change.mean(), change.std()])
        np.testing.assert_allclose(table_.loc["depth", ["lower", "upper"]].astype(float),
                                   np.quantile(change, [0.25, 0.75]))
        at_zero = start + coef @ codes[0] - 60.0 * change
        good = table_.loc["cut[Good]", "estimate"]
        assert table_.loc["intercept", "estimate"] == pytest.approx(at_zero.mean() - good)

    def test_odds_ratios(self):
        chance = np.random.default_rng(1).random(4000)
        frame, model = self.fitted(
            LDPBayesLogisticRegression(epsilon=np.inf, classes=[False, True], inference="laplace", random_state=0),
            lambda frame: chance < 1 / (1 + np.exp(-1.5 * frame["owner"] + 0.5)))
        found = model[0].raw_coefficients(model)
        labels = chance < 1 / (1 + np.exp(-1.5 * frame["owner"] + 0.5))
        plain = LogisticRegression(C=np.inf).fit(self.indicators(frame), labels)
        assert found.loc["owner[True]", "odds_ratio"] == pytest.approx(np.exp(plain.coef_[0, -1]), rel=0.15)
        assert (found["odds_lower"] < found["odds_ratio"]).all()

    def test_three_classes(self):
        frame, model = self.fitted(
            LDPBayesLogisticRegression(epsilon=np.inf, classes=["a", "b", "c"], inference="laplace", random_state=0),
            lambda frame: np.where(frame["owner"], "c", np.where(frame["cut"] == "Good", "a", "b")))
        found = model[0].raw_coefficients(model)
        assert list(found.index[:2]) == [("a", "intercept"), ("a", "log(carat)")] and len(found) == 3 * 6
        estimates = found["estimate"].unstack()
        np.testing.assert_allclose(estimates.sum(), 0.0, atol=1e-8)
        assert estimates["owner[True]"].idxmax() == "c" and estimates["cut[Good]"].idxmax() == "a"
        logits = model[-1].coef_ @ (model[0].transform(frame[:1]) - model[0].transform(frame[1:2])).T
        raw = self.indicators(frame[:2])
        np.testing.assert_allclose(estimates[list(found.loc["a"].index[1:])].to_numpy() @ (raw[0] - raw[1]),
                                   logits[:, 0], atol=1e-8)

    def test_several_responses(self):
        frame = table(4000)
        regression = LDPBayesLinearRegression(epsilon=np.inf, bounds_y=[(0, 3), (50, 70)], inference="laplace",
                                              random_state=0)
        model = make_pipeline(PublicColumns(schema=SCHEMA), regression).fit(frame, frame[["carat", "depth"]])
        found = model[0].raw_coefficients(model)
        assert found.loc[(1, "depth"), "estimate"] == pytest.approx(1.0, abs=0.02)
        assert abs(found.loc[(0, "depth"), "estimate"]) < 0.02 and "odds_ratio" not in found

    def test_without_pandas(self, monkeypatch):
        _, model = self.fitted(LDPBayesLinearRegression(inference="laplace", random_state=0),
                               lambda frame: frame["carat"])
        monkeypatch.setitem(__import__("sys").modules, "pandas", None)
        found = model[0].raw_coefficients(model)
        assert found["term"][0] == "intercept" and found["estimate"].shape == (6,)

    def test_other_pipelines_raise(self):
        columns = PublicColumns(schema={"a": (0, 1)})
        for pipeline in (columns, make_pipeline(columns, LDPGaussian(inference="laplace")).fit(np.zeros((50, 1))),
                         make_pipeline(LDPGaussian())):
            with pytest.raises(InvalidParameterError, match="raw_coefficients|no coefficients"):
                columns.raw_coefficients(pipeline)

    def test_cross_validation_under_a_ledger(self):
        frame = table(600)
        regression = LDPBayesLinearRegression(inference="laplace", bounds_y=(0, 3))
        model = make_pipeline(PublicColumns(schema=SCHEMA), regression)
        with Ledger() as spent:
            assert len(cross_val_score(model, frame, frame["carat"], cv=3)) == 3
        assert spent.largest == pytest.approx(2.0)


class TestSchemaInAProtocol:
    def protocol(self, **options):
        estimator = LDPBayesLinearRegression(bounds_y=(300, 20_000), **options)
        return PublicColumns(schema=SCHEMA).protocol(make_pipeline(PublicColumns(schema=SCHEMA), estimator))

    def test_json_round_trip(self):
        protocol = self.protocol()
        again = Protocol.from_json(protocol.to_json())
        assert again == protocol and again.id == protocol.id and hash(again) == hash(protocol)

    def test_a_protocol_without_schema_has_the_text_it_had(self):
        assert "schema" not in LDPBayesLinearRegression().protocol(2).to_json()

    def test_raw_records_are_reported_as_their_vectors(self):
        frame = table(30)
        protocol, columns = self.protocol(epsilon=np.inf), PublicColumns(schema=SCHEMA).fit(frame)
        y = np.linspace(300, 20_000, 30)
        raw = protocol.privatize(frame[list(SCHEMA)], y)
        vectors = protocol.with_schema(None).privatize(columns.transform(frame), y)
        np.testing.assert_array_equal(raw, vectors)

    @pytest.mark.parametrize("record", [
        {"carat": 0.7, "cut": "Ideal", "price": 2400}, {"price": 2400, "owner": True},
        {"carat": object(), "depth": [1], "cut": None, "owner": "?", "y": None}, [0.7, 61.0, "Ideal", True, 2400.0],
    ])
    def test_client_reports_a_raw_record(self, record):
        client = Client(self.protocol().to_json())
        report = client.report(record)
        assert client.protocol.check(report).all() and client.spent() == 1.0
        np.testing.assert_array_equal(client.report(record), report)

    def test_client_needs_a_response(self):
        with pytest.raises(ValueError, match="response"):
            Client(self.protocol().to_json()).report({"carat": 0.7})

    def test_the_estimator_reads_such_reports(self):
        frame = table(300)
        protocol = self.protocol()
        aggregate = protocol.aggregate(protocol.privatize(frame[list(SCHEMA)], 5000 * frame["carat"]))
        model = LDPBayesLinearRegression(bounds_y=(300, 20_000), inference="laplace").fit_reports(aggregate)
        assert model.protocol_.schema == protocol.schema
        with pytest.raises((InvalidReportError, ValueError)):
            aggregate + protocol.with_schema(None).aggregate(protocol.privatize(frame[list(SCHEMA)], frame["carat"]))

    @pytest.mark.parametrize("change", [
        {"schema": 3}, {"schema": [1.0, [["a", "number", [0, 1]]]]}, {"schema": [1.0, [["a", "what", 1]]]},
        {"schema": [-1.0, [["a", "number", [0, 1]]]]}, {"schema": [1.0, []]}, {"schema": [1.0, [5]]},
        {"schema": [1.0, [["a", "category", ["x"] * 6]]]},
    ])
    def test_hostile_schemas_raise(self, change):
        text = json.dumps({**json.loads(self.protocol().to_json()), **change})
        with pytest.raises(InvalidParameterError):
            Protocol.from_json(text)

    def test_another_norm_raises(self):
        with pytest.raises(InvalidParameterError, match="data_norm"):
            PublicColumns(schema=SCHEMA).protocol(LDPBayesLinearRegression(data_norm=2.0))


@pytest.mark.parametrize("given, length", [(CUTS, CATEGORY_LENGTH), ({"categories": CUTS, "length": 1.0}, 1.0)])
def test_length_of_the_code_of_a_category(given, length):
    columns = PublicColumns(schema={"cut": given, "depth": (55, 68)}).fit([["Fair", 61.5]])
    codes = columns.transform([["Fair", 61.5]]) * columns.schema_.radius
    assert np.linalg.norm(codes) == pytest.approx(length)
