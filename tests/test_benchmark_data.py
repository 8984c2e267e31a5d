"""Data sets of the benchmarks: their sources, and the errors if these fail."""

import gzip
import hashlib
import importlib
import os
import socket
import sys
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
ADULT_COLUMNS = ["age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
                 "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country",
                 "income"]
WINE_COLUMNS = ["fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides",
                "free sulfur dioxide", "total sulfur dioxide", "density", "pH", "sulphates", "alcohol", "quality",
                "colour"]
SESSIONS = b"1 2 3\n4\n5 6\n"


@pytest.fixture
def data(monkeypatch, tmp_path):
    """Return the module of the loaders, without data folder and network, and with an empty data home."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    module = importlib.import_module("_data")
    monkeypatch.delenv("SKLDP_DATA", raising=False)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "home"))
    monkeypatch.setenv(module.STAND_INS, "")

    def unreachable(*arguments, **options):
        raise URLError("no network")

    monkeypatch.setattr(module, "fetch_openml", unreachable)
    monkeypatch.setattr(module, "urlopen", unreachable)
    yield module
    for name in ("_data", "_stand_ins", "_prepare", "_real_tables"):
        sys.modules.pop(name, None)


def checksum(text):
    return hashlib.sha256(text).hexdigest()


def put(data, monkeypatch, folder, name, text, expected=None):
    """Write a data file into the folder of SKLDP_DATA; the known checksum is that of ``expected``, or of the file."""
    known = replace(getattr(data, name), sha256=checksum(text if expected is None else expected))
    monkeypatch.setattr(data, name, known)
    (folder / known.file).write_bytes(gzip.compress(text))
    monkeypatch.setenv("SKLDP_DATA", str(folder))


def test_files_in_the_data_folder_are_used_first(data, monkeypatch, tmp_path):
    pytest.importorskip("pandas")
    put(data, monkeypatch, tmp_path, "ADULT", b"age,workclass,income\n39,State-gov,<=50K\n50,?,>50K\n")
    put(data, monkeypatch, tmp_path, "WINE", b"alcohol,quality,colour\n9.4,5,red\n")
    put(data, monkeypatch, tmp_path, "KOSARAK", SESSIONS)
    adult = data.load_adult()
    assert adult["age"].tolist() == [39, 50] and adult["workclass"].isna().tolist() == [False, True]
    assert data.load_wine_quality()["colour"].tolist() == ["red"]
    assert [session.tolist() for session in data.load_kosarak()] == [[1, 2, 3], [4], [5, 6]]


@pytest.mark.parametrize("name, load", [("ADULT", "load_adult"), ("WINE", "load_wine_quality"),
                                        ("KOSARAK", "load_kosarak")])
def test_file_with_another_checksum_raises_an_error(data, monkeypatch, tmp_path, name, load):
    put(data, monkeypatch, tmp_path, name, b"1 2\n", expected=b"1 2 3\n")
    with pytest.raises(data.DataError, match="other SHA-256.*remove it") as caught:
        getattr(data, load)()
    assert str(tmp_path / getattr(data, name).file) in str(caught.value)
    assert not isinstance(caught.value, data.DataMissing)


@pytest.mark.parametrize("quick", [False, True])
def test_file_with_another_checksum_raises_an_error_in_a_smoke_run(data, monkeypatch, tmp_path, quick):
    put(data, monkeypatch, tmp_path, "KOSARAK", b"1 2\n", expected=SESSIONS)
    with pytest.raises(SystemExit, match="other SHA-256"):
        data.make_ready("kosarak", quick=quick)


def test_unreadable_file_raises_an_error(data, monkeypatch, tmp_path):
    put(data, monkeypatch, tmp_path, "KOSARAK", SESSIONS)
    (tmp_path / data.KOSARAK.file).write_bytes(gzip.compress(SESSIONS)[:-9])
    with pytest.raises(data.DataError, match="cannot be read"):
        data.load_kosarak()


@pytest.mark.parametrize("name, title", [("adult", "Adult"), ("wine", "Wine Quality"), ("kosarak", "Kosarak")])
def test_missing_file_without_network_raises_an_error(data, monkeypatch, tmp_path, name, title):
    monkeypatch.setenv("SKLDP_DATA", str(tmp_path))  # a folder without the file
    with pytest.raises(SystemExit) as caught:
        data.make_ready(name)
    message = caught.value.code  # SystemExit with a text prints it without a traceback and exits with code 1
    assert message.startswith(title) and "no network" in message and "\n" not in message
    assert data.LOADERS[name][0].file in message and "environment variable SKLDP_DATA" in message


@pytest.mark.parametrize("name", ["adult", "wine"])
def test_unreachable_openml_raises_an_error(data, monkeypatch, name):
    attempts = []

    def unreachable(request):
        attempts.append(socket.getdefaulttimeout())
        raise URLError("no route")

    monkeypatch.setattr(data, "fetch_openml", fetch_openml)
    monkeypatch.setattr("sklearn.datasets._openml.urlopen", unreachable)
    with pytest.raises(SystemExit, match="could not be fetched .*no route"):
        data.make_ready(name)
    assert set(attempts) == {10} and len(attempts) <= 2


def test_smoke_run_uses_stand_in_data(data, capsys):
    pytest.importorskip("pandas")
    data.make_ready("adult", "wine", "kosarak", quick=True)
    lines = capsys.readouterr().out.split("\n\n")[:3]
    assert all("stand-in" in line and "mean nothing" in line for line in lines)
    adult, wine, sessions = data.load_adult(), data.load_wine_quality(), data.load_kosarak()
    assert list(adult) == ADULT_COLUMNS and list(wine) == WINE_COLUMNS
    assert set(adult["income"]) == {"<=50K", ">50K"} and adult.isna().any().any()
    assert set(wine["colour"]) == {"red", "white"} and wine["quality"].between(3, 9).all()
    assert len(np.unique(np.concatenate(sessions))) > 10 and min(map(len, sessions)) > 0
    prepare = importlib.import_module("_prepare")
    assert prepare.adult_split(0)[0].shape[1] == 8 and prepare.wine_split(0)[0].shape[1] == 6


def test_stand_in_data_end_with_the_smoke_run(data):
    data.make_ready("kosarak", quick=True)
    assert os.environ[data.STAND_INS] == "kosarak"  # worker processes see it
    with pytest.raises(SystemExit):
        data.make_ready("kosarak")
    assert not data.stands_in("kosarak")


def serve(data, monkeypatch, content, expected=SESSIONS):
    """Replace the download of Kosarak by ``content``, and return the list of calls."""
    calls = []

    def answer(address, timeout):
        calls.append((address, timeout))
        return BytesIO(content)

    monkeypatch.setattr(data, "urlopen", answer)
    monkeypatch.setattr(data, "KOSARAK_SESSIONS", 3)
    monkeypatch.setattr(data, "KOSARAK", replace(data.KOSARAK, sha256=checksum(expected)))
    return calls


def test_kosarak_is_fetched_once(data, monkeypatch, tmp_path):
    calls = serve(data, monkeypatch, gzip.compress(b"1 2 3 \n4 \n5 6 \n7 \n"))
    for _ in range(2):
        assert [session.tolist() for session in data.load_kosarak()] == [[1, 2, 3], [4], [5, 6]]
    assert calls == [(data.KOSARAK_URL, 10)]
    assert [path.name for path in (tmp_path / "home").iterdir()] == [data.KOSARAK.file]


@pytest.mark.parametrize("content, reason", [
    (gzip.compress(b"1 2 3\n4\n5 7\n"), "other content"),
    (gzip.compress(SESSIONS)[:-12], "ended before"),
    (b"<html>", "Not a gzipped file"),
], ids=["other", "cut short", "no archive"])
def test_invalid_download_of_kosarak_raises_an_error(data, monkeypatch, tmp_path, content, reason):
    serve(data, monkeypatch, content)
    with pytest.raises(data.DataMissing, match=reason):
        data.load_kosarak()
    assert list((tmp_path / "home").iterdir()) == []


def test_file_is_written_completely_or_not_at_all(data, monkeypatch, tmp_path):
    def full(path, target):
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="no space"):
        data.write_whole(tmp_path / "file", b"content")
    assert list(tmp_path.iterdir()) == []


def from_openml(data, monkeypatch, frame, data_id):
    """Replace the download from OpenML by a data frame."""
    def answer(**options):
        assert options["data_id"] == data_id
        assert socket.getdefaulttimeout() == 10
        return Bunch(frame=frame)

    monkeypatch.setattr(data, "fetch_openml", answer)


def test_adult_from_openml(data, monkeypatch):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [25, 39, 50], "workclass": pandas.Categorical(["Private", None, "State-gov"]),
                              "class": pandas.Categorical(["<=50K", "<=50K", ">50K"])})
    from_openml(data, monkeypatch, frame, 1590)
    monkeypatch.setattr(data, "ADULT_TRAINING", 2)
    expected = b"age,workclass,income\n39,?,<=50K\n50,State-gov,>50K\n25,Private,<=50K\n"
    monkeypatch.setattr(data, "ADULT_ROWS", checksum(expected))
    found = data.load_adult()
    assert found["age"].tolist() == [39, 50, 25] and found["income"].tolist() == ["<=50K", ">50K", "<=50K"]
    assert found["workclass"].isna().tolist() == [True, False, False]
    assert socket.getdefaulttimeout() is None


def wine_of_openml(pandas, alcohol):
    """Return wines with the column names of OpenML, the quality first."""
    columns = {name.replace(" ", "."): [0.5] * len(alcohol) for name in WINE_COLUMNS[:-3]}
    return pandas.DataFrame({"quality": [5] * len(alcohol), **columns, "alcohol": alcohol})


def test_wine_from_openml(data, monkeypatch, capsys):
    pandas = pytest.importorskip("pandas")
    from_openml(data, monkeypatch, wine_of_openml(pandas, [12.5, 11.0, 9.4]), 287)
    monkeypatch.setattr(data, "RED_WINES", 1)
    rows = [f"{'0.5,' * 10}{end}" for end in ("9.4,5,red", "12.5,5,white", "11,5,white")]
    monkeypatch.setattr(data, "WINE_ROWS", checksum("\n".join([",".join(WINE_COLUMNS), *rows, ""]).encode()))
    found = data.load_wine_quality()
    assert list(found) == WINE_COLUMNS and found["colour"].tolist() == ["red", "white", "white"]
    assert found["alcohol"].tolist() == [9.4, 12.5, 11.0] and capsys.readouterr().out == ""


def test_other_number_of_rows_from_openml_is_printed(data, monkeypatch, capsys):
    pandas = pytest.importorskip("pandas")
    from_openml(data, monkeypatch, wine_of_openml(pandas, [12.5, 9.4]), 287)
    assert list(data.load_wine_quality()) == WINE_COLUMNS[:-1]
    assert "expect other numbers" in capsys.readouterr().out


def test_other_columns_from_openml_raise_an_error(data, monkeypatch):
    pandas = pytest.importorskip("pandas")
    from_openml(data, monkeypatch, pandas.DataFrame({"quality": [5]}), 287)
    with pytest.raises(data.DataMissing, match="no column fixed acidity"):
        data.load_wine_quality()


def test_results_of_smoke_runs_go_to_a_separate_folder(data):
    assert data.results_folder(False) == BENCHMARKS / "results"
    assert data.results_folder(True) == BENCHMARKS / "results" / "quick"
    assert "benchmarks/results/quick/" in (BENCHMARKS.parent / ".gitignore").read_text().split()


def small_table(tables, **options):
    """Return a table of 300 rows with a column of other scale, a factor of three levels and missing values."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame({"x": rng.normal(50, 9, size=300), "f": rng.choice(["a", "b", "c"], size=300),
                              "y": rng.normal(size=300), "late": rng.random(300) < 0.4})
    frame.loc[:19, "x"] = np.nan
    return tables.RealTable("small", lambda: frame, columns=("x",), factors=("f",), **options)


def test_real_table_is_in_the_unit_ball_and_the_bounds(data, monkeypatch):
    tables = importlib.import_module("_real_tables")
    monkeypatch.setitem(tables.TABLES, "small", small_table(tables, response="y", bounds_y=(-1, 1)))
    rows = tables.problem("small")
    assert rows.names == ("x", "f_b", "f_c") and rows.X.shape == (280, 3)
    norms = np.linalg.norm(rows.X, axis=1)
    assert norms.max() <= 1 + 1e-12 and np.mean(norms < 1 - 1e-9) == pytest.approx(0.95, abs=0.01)
    assert np.abs(rows.y).max() == 1 < np.abs(rows.y_test).max()
    design = np.column_stack([np.ones(280), rows.X])
    np.testing.assert_allclose(np.linalg.lstsq(design, rows.y)[0], [rows.intercept, *rows.target])


@pytest.mark.parametrize("n_rows", [100, 500])
def test_rows_of_a_real_table_are_repeated_or_left_out(data, monkeypatch, n_rows):
    tables = importlib.import_module("_real_tables")
    monkeypatch.setitem(tables.TABLES, "small", small_table(tables, response="y", bounds_y=(-1, 1)))
    counts = np.unique(tables.problem("small", n_rows).X[:, 0], return_counts=True)[1]
    assert counts.sum() == n_rows and counts.max() - (n_rows // 280) in (0, 1)


def test_binary_real_table_has_test_rows_and_normal_stand_ins(data, monkeypatch):
    tables = importlib.import_module("_real_tables")
    monkeypatch.setitem(tables.TABLES, "small", small_table(tables, response="late"))
    real, normal = tables.problem("small"), tables.problem("small", gaussian=True)
    assert real.X.shape == normal.X.shape == (224, 3) and real.X_test.shape == normal.X_test.shape == (56, 3)
    assert len(np.unique(real.X[:, 2])) < len(np.unique(normal.X[:, 2])) == 224
    assert max(np.linalg.norm(part, axis=1).max() for part in (normal.X, normal.X_test)) == pytest.approx(1)
    chance = 1 / (1 + np.exp(-real.X @ real.target - real.intercept))
    np.testing.assert_allclose(real.X.T @ (real.y - chance), 0, atol=1e-5)  # the score is zero at the maximum
