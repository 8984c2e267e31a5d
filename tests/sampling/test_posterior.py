"""Draws of a posterior and their summaries."""

import builtins
import dataclasses
import pickle
import re
import sys
import types

import numpy as np
import pytest

from skldp import MCMC
from skldp.sampling import Posterior, sample
from skldp.sampling._tables import SummaryTable
from tests.sampling.sampling_targets import Gaussian


class Several(Gaussian):
    def constrain(self, theta):
        return {"scale": np.exp(theta[:, 0]), "coef": theta, "matrix": theta[:, :, None] * theta[:, None, :]}


@pytest.fixture(scope="module")
def posterior():
    return sample(Several(2), seed=0)


def without(monkeypatch, missing):
    """Make an import fail as if the package were not installed."""
    real = builtins.__import__

    def guarded(name, *args, **kwargs):
        if name.split(".")[0] == missing:
            raise ImportError(missing)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", guarded)


def posterior_of(draws, labels=None):
    nan = {name: np.full(values.shape[2:], np.nan) for name, values in draws.items()}
    return Posterior(draws, rhat=nan, ess=nan, ess_tail=nan, labels=labels or {})


def test_shapes(posterior):
    n_chains, n_draws = posterior.draws["scale"].shape
    assert n_chains * n_draws <= 4000
    assert posterior.draws["coef"].shape == (n_chains, n_draws, 2)
    for by_name in (posterior.rhat, posterior.ess, posterior.ess_tail, posterior.mean(), posterior.std()):
        assert {name: np.shape(values) for name, values in by_name.items()} == {
            "scale": (), "coef": (2,), "matrix": (2, 2)}


def test_diagnostics_are_computed_before_thinning():
    posterior = sample(Gaussian(1), seed=0, inference=MCMC(n_walkers=100))
    n_chains, n_draws = posterior.draws["x"].shape[:2]
    assert n_chains * n_draws <= 4000 < n_chains * posterior.n_steps
    assert posterior.ess["x"] > 4000


def test_interval(posterior):
    interval = posterior.interval(0.9)
    assert interval["scale"].shape == (2,) and interval["matrix"].shape == (2, 2, 2)
    low, high = interval["scale"]
    inside = (posterior.draws["scale"] >= low) & (posterior.draws["scale"] <= high)
    assert abs(inside.mean() - 0.9) < 0.002


@pytest.mark.parametrize("level", [0, 1, 95, -0.5])
def test_invalid_level_raises_an_error(posterior, level):
    with pytest.raises(ValueError, match="level is a probability strictly between 0 and 1"):
        posterior.interval(level)


def test_samples_are_joint_and_without_replacement_up_to_the_stored_number(posterior):
    n_stored = posterior.draws["scale"].size
    samples = posterior.sample(n_stored, np.random.default_rng(0))
    np.testing.assert_array_equal(np.sort(samples["scale"]), np.sort(posterior.draws["scale"].ravel()))
    np.testing.assert_array_equal(samples["scale"], np.exp(samples["coef"][:, 0]))
    more = posterior.sample(n_stored + 1, np.random.default_rng(0))
    assert more["matrix"].shape == (n_stored + 1, 2, 2)


def test_summary_is_a_data_frame(posterior):
    pytest.importorskip("pandas")
    table = posterior.summary(0.9)
    assert list(table.columns) == ["mean", "sd", "5%", "95%", "ess_bulk", "ess_tail", "rhat"]
    assert list(table.index) == ["scale", "coef[0]", "coef[1]"]
    assert table.loc["coef[1]", "mean"] == posterior.mean()["coef"][1]
    assert table.loc["scale", "rhat"] == posterior.rhat["scale"]
    assert list(posterior.summary().columns[2:4]) == ["2.5%", "97.5%"]


def test_a_summary_shows_matrices_and_long_vectors_only_if_asked(posterior):
    assert "without matrix (2 x 2): summary(full=True) shows all" in repr(posterior.summary())
    full = posterior.summary(full=True)
    assert list(full.index[3:]) == ["matrix[0, 0]", "matrix[0, 1]", "matrix[1, 1]"]  # a symmetric matrix once
    assert full.loc["matrix[0, 1]", "mean"] == posterior.mean()["matrix"][0, 1]
    assert "without" not in repr(full) + repr(posterior.summary(names=["matrix"]))
    rng = np.random.default_rng(0)
    shapes = {"density": (65,), "loadings": (2, 2), "coef": (64,), "mean": ()}
    many = posterior_of({name: rng.normal(size=(4, 5, *shape)) for name, shape in shapes.items()})
    assert len(many.summary()) == 4 + 64 + 1 and many.summary().index[0] == "loadings[0, 0]"
    alone = posterior_of({"frequencies": rng.normal(size=(4, 5, 70))}).summary()
    assert len(alone) == 70
    assert repr(alone).split("\n")[-1] == "and 6 more rows" and "frequencies[64]" not in repr(alone)


def test_summary_without_pandas_prints_the_same(posterior, monkeypatch):
    frame = posterior.summary()
    text, page = repr(frame), frame._repr_html_()
    monkeypatch.delitem(sys.modules, "skldp.sampling._summary_frame")
    without(monkeypatch, "pandas")
    table = posterior.summary()
    assert type(table).__name__ == "SummaryTable"
    assert repr(table) == text and table._repr_html_() == page
    assert table["mean"][0] == posterior.mean()["scale"]


def test_numbers_are_rounded_to_two_digits_of_their_deviation():
    columns = {"mean": [172.3025, 45217.4, -0.001, 3.0, 1e-9, 5e9], "sd": [0.2929, 1234.5, 0.0996, 0.0, 3e-8, 2e8],
               "rhat": [1.00049, np.nan, 1.0, np.nan, 1.0, 1.0], "ess_bulk": [np.nan] * 6}
    lines = repr(SummaryTable(list("abcdef"), columns)).split("\n")
    assert [line.split() for line in lines] == [
        ["mean", "sd", "rhat"], ["a", "172.30", "0.29", "1.000"], ["b", "45217", "1234"],
        ["c", "0.00", "0.10", "1.000"], ["d", "3", "0"], ["e", "1e-09", "3e-08", "1.000"],
        ["f", "5e+09", "200000000", "1.000"]]
    assert len({len(line) for line in lines}) == 1


def test_the_html_of_a_summary_is_rounded_and_escaped():
    draws = {"coef": np.random.default_rng(0).normal(3.0, 0.1, size=(4, 500, 2))}
    table = posterior_of(draws, labels={"coef": (("a<b", "c"),)}).summary()
    text = table._repr_html_()
    assert re.search(r"<th [^>]*>coef\[a&lt;b\]</th><td [^>]*>3\.0", text)
    assert text.count("<tr>") == 3 and "rhat" not in text and "nan" not in text


def test_what_is_made_from_a_summary_prints_too(posterior):
    pandas = pytest.importorskip("pandas")
    table = pickle.loads(pickle.dumps(posterior.summary()))
    assert repr(table) == repr(posterior.summary())
    one = table[table.index == "coef[1]"].sort_values("mean")
    assert repr(one).split("\n")[:2] == repr(posterior.summary(names="coef[1]")).split("\n")[:2]
    for other in (pandas.concat([table, table], axis=1), table > 0, table.T, table.astype(str), table.iloc[:0],
                  table[["mean"]], table.assign(sd="wide", name=list("abc")), table.describe()):
        assert repr(other) and other._repr_html_()
    assert "True" in repr(table > 0) and repr(table.assign(sd="wide")).count("wide") == 3


def test_names_of_elements():
    draws = np.random.default_rng(0).normal(size=(4, 50, 2))
    labelled = posterior_of({"coef": draws, "sigma": draws[..., 0]}, labels={"coef": (("carat", "0"),)})
    assert list(labelled.summary().index) == ["coef[carat]", "coef[0]", "sigma"]
    assert list(labelled.summary(names="coef[carat]").index) == ["coef[carat]"]
    interval = labelled.interval(0.8)
    for name, ends in {"coef[carat]": interval["coef"][0], "coef[0]": interval["coef"][1], "sigma": interval["sigma"],
                       "coef[1]": interval["coef"][1], "coef": interval["coef"]}.items():
        np.testing.assert_array_equal(labelled.interval(0.8, name), ends)
    for name in ("coef[2]", "coefficient", "sigma[0]"):
        with pytest.raises(ValueError, match=r"no parameter or element .* such as 'coef\[carat\]'"):
            labelled.interval(name=name)
    with pytest.raises(ValueError, match=r"Write interval\(name='coef\[carat\]'\)"):
        labelled.interval("coef[carat]")
    with pytest.raises(ValueError, match="A name is a string"):
        labelled.summary(names=[0])


def test_pickle(posterior):
    again = pickle.loads(pickle.dumps(posterior))
    np.testing.assert_array_equal(again.draws["coef"], posterior.draws["coef"])
    assert repr(again) == repr(posterior)
    sample(Several(2), seed=1, start=again)


def test_frozen(posterior):
    with pytest.raises(dataclasses.FrozenInstanceError):
        posterior.draws = {}
    with pytest.raises(ValueError, match="read-only"):
        posterior.draws["scale"][0] = 1.0


def test_repr_is_short(posterior):
    n_chains, n_draws = posterior.draws["scale"].shape
    assert repr(posterior) == f"Posterior(scale, coef, matrix; {n_chains} chains of {n_draws} draws)"


def test_missing_arviz_is_named_in_the_error(posterior, monkeypatch):
    without(monkeypatch, "arviz")
    with pytest.raises(ImportError, match=r'pip install "skldp\[arviz\]"'):
        posterior.to_arviz()


def test_to_arviz(posterior):
    pytest.importorskip("arviz")
    data = posterior.to_arviz()
    np.testing.assert_array_equal(data["posterior"]["coef"].values, posterior.draws["coef"])
    assert dict(data["posterior"].sizes)["chain"] == posterior.draws["coef"].shape[0]


@pytest.mark.parametrize("version, groups", [("0.19.1", False), ("0.21.0", False), ("1.0.0", True), ("12.3", True)])
def test_to_arviz_of_either_generation(posterior, monkeypatch, version, groups):
    """ArviZ 1.0 takes a dict of groups where earlier ones have a keyword for each."""
    calls = types.SimpleNamespace(__version__=version, from_dict=lambda *args, **kwargs: (args, kwargs))
    monkeypatch.setitem(sys.modules, "arviz", calls)
    group = {"posterior": posterior.draws}
    assert posterior.to_arviz() == (((group,), {}) if groups else ((), group))


def test_summary_leaves_out_large_parameters_unless_asked():
    draws = {"mean": np.zeros((2, 3)), "density": np.zeros((2, 3, 65))}
    nothing = {name: np.zeros(values.shape[2:]) for name, values in draws.items()}
    assert len(Posterior(draws, nothing, nothing, nothing).summary()) == 1
    assert len(Posterior(draws, nothing, nothing, nothing).summary(names=["mean", "density"])) == 66
    large = {"density": draws["density"]}
    assert len(Posterior(large, nothing, nothing, nothing).summary()) == 65


def test_summary_of_selected_parameters():
    rng = np.random.default_rng(0)
    posterior = posterior_of({"coef": rng.normal(size=(4, 50, 2)), "sigma": rng.normal(size=(4, 50))})
    table = posterior.summary(names=["sigma"])
    assert list(table.index) == ["sigma"]
    assert table.loc["sigma", "mean"] == posterior.summary().loc["sigma", "mean"]
    with pytest.raises(ValueError, match="no parameter or element 'alpha'"):
        posterior.summary(names=["alpha"])
