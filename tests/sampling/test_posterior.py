"""Draws of a posterior and their summaries."""

import builtins
import dataclasses
import pickle
import sys
import types

import numpy as np
import pytest

from skldp import MCMC
from skldp.sampling import Posterior, sample
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
    assert list(table.index) == ["scale", "coef[0]", "coef[1]", "matrix[0,0]", "matrix[0,1]", "matrix[1,0]",
                                 "matrix[1,1]"]
    assert table.loc["coef[1]", "mean"] == posterior.mean()["coef"][1]
    assert list(posterior.summary().columns[2:4]) == ["2.5%", "97.5%"]


def test_summary_without_pandas_prints_the_same_numbers(posterior, monkeypatch):
    without(monkeypatch, "pandas")
    table = posterior.summary()
    lines = str(table).split("\n")
    assert len(lines) == 8 and len({len(line) for line in lines}) == 1
    assert lines[0].split() == ["mean", "sd", "2.5%", "97.5%", "ess_bulk", "ess_tail", "rhat"]
    assert table["mean"][0] == posterior.mean()["scale"]


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
    draws = {"coef": rng.normal(size=(4, 50, 2)), "sigma": rng.normal(size=(4, 50))}
    nan = {"coef": np.full(2, np.nan), "sigma": np.array(np.nan)}
    posterior = Posterior(draws, rhat=nan, ess=nan, ess_tail=nan)
    table = posterior.summary(names=["sigma"])
    assert list(table.index) == ["sigma"]
    assert table.loc["sigma", "mean"] == posterior.summary().loc["sigma", "mean"]
    with pytest.raises(ValueError, match="names contains 'alpha'"):
        posterior.summary(names=["alpha"])
