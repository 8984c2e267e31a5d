"""Public behaviour of the univariate estimators."""

import functools
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score

from skldp import MCMC, LDPDistribution, LDPExponential, LDPGaussian, LDPGeometric, LDPPoisson
from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols import Protocol, ValueProtocol

RNG = np.random.default_rng(0)
DATA = {
    LDPGaussian: RNG.normal(0.5, 1.0, size=(4000, 1)),
    LDPExponential: RNG.exponential(0.5, size=(4000, 1)),
    LDPPoisson: RNG.poisson(4.0, size=(4000, 1)),
    LDPGeometric: RNG.geometric(0.3, size=(4000, 1)) - 1,
    LDPDistribution: RNG.normal(0.5, 1.0, size=(4000, 1)),
}
TRUTH = {
    LDPGaussian: {"mean": 0.5, "std": 1.0},
    LDPExponential: {"rate": 2.0},
    LDPPoisson: {"rate": 4.0},
    LDPGeometric: {"probability": 0.3},
    LDPDistribution: {"loc": 0.5, "scale": 1.0},
}
everyone = pytest.mark.parametrize("cls", DATA)


@functools.cache
def fitted(cls):
    """Return an estimator after a default fit of its data; tests share it and must not change it."""
    return cls(epsilon=4.0, random_state=0).fit(DATA[cls])


@everyone
def test_fit_is_privatize_then_fit_reports(cls):
    whole, apart = fitted(cls), cls(epsilon=4.0, random_state=0)
    reports = apart.privatize(DATA[cls])
    assert not hasattr(apart, "n_features_in_"), "privatize fits nothing"
    assert reports.dtype.kind in "iu" and reports.shape == (4000, 1)
    apart.fit_reports(reports)
    for name, draws in whole.posterior_.draws.items():
        assert (draws == apart.posterior_.draws[name]).all()


@everyone
def test_posterior_covers_the_truth_and_has_diagnostics(cls):
    model = fitted(cls)
    for name, truth in TRUTH[cls].items():
        low, high = model.posterior_.interval(0.999)[name]
        assert low < truth < high
        assert model.posterior_.rhat[name] <= 1.01
        assert model.posterior_.ess[name] >= 1000
    assert (model.epsilon_, model.delta_, model.n_reports_, model.n_rejected_) == (4.0, 0.0, 4000, 0)
    assert isinstance(model.protocol_, ValueProtocol)
    table = model.posterior_.summary()
    assert list(table.index) == list(TRUTH[cls])


@everyone
def test_sample_posterior(cls):
    model = fitted(cls)
    for n_samples in (7, 1000, 20_000):
        samples = model.sample_posterior(n_samples, random_state=1)
        assert set(samples) == set(TRUTH[cls])
        assert all(values.shape == (n_samples,) for values in samples.values())
    again = model.sample_posterior(7, random_state=1)
    assert all((again[name] == model.sample_posterior(7, random_state=1)[name]).all() for name in again)
    with pytest.raises(InvalidParameterError, match="n_samples"):
        model.sample_posterior(0)
    with pytest.raises(NotFittedError):
        cls().sample_posterior()


@pytest.mark.parametrize("cls", [LDPGaussian, LDPPoisson])
def test_reports_in_every_form(cls):
    model = cls(random_state=0, inference="laplace")
    reports = model.privatize(DATA[cls])
    expected = clone(model).fit_reports(reports).posterior_.draws
    forms = [
        pd.DataFrame(reports),
        [reports[:1000], reports[1000:]],
        (reports[start:start + 500] for start in range(0, 4000, 500)),
        model.aggregate(reports),
        [model.aggregate(reports[:10]), model.aggregate(reports[10:])],
        reports[:, 0],
        reports.tolist(),
    ]
    for form in forms:
        draws = clone(model).fit_reports(form).posterior_.draws
        assert all((draws[name] == expected[name]).all() for name in expected)


@everyone
def test_without_noise_the_posterior_is_that_of_the_records(cls):
    model = cls(epsilon=np.inf, random_state=0).fit(DATA[cls])
    x = DATA[cls][:, 0]
    if cls in (LDPGaussian, LDPDistribution):
        names = list(TRUTH[cls])
        assert model.posterior_.mean()[names[0]] == pytest.approx(x.mean(), abs=3e-3)
        assert model.posterior_.mean()[names[1]] == pytest.approx(x.std(), abs=3e-3)
        assert model.posterior_.std()[names[0]] == pytest.approx(x.std() / np.sqrt(x.size), rel=0.1)
    elif cls is LDPExponential:
        clipped = np.minimum(x, 5.0)
        conjugate = stats.gamma(2.0 + (x < 5).sum(), scale=1 / (2.0 + clipped.sum()))
        assert model.rate_ == pytest.approx(conjugate.mean(), rel=5e-3)
        assert model.posterior_.std()["rate"] == pytest.approx(conjugate.std(), rel=0.1)
    elif cls is LDPPoisson:
        conjugate = stats.gamma(2.0 + x.sum(), scale=1 / (8 / 20 + x.size))
        assert model.rate_ == pytest.approx(conjugate.mean(), rel=2e-3)
        assert model.posterior_.std()["rate"] == pytest.approx(conjugate.std(), rel=0.1)
    else:
        conjugate = stats.beta(1 + (x < 20).sum(), 1 + np.minimum(x, 20).sum())
        assert model.probability_ == pytest.approx(conjugate.mean(), rel=2e-3)
        assert model.posterior_.std()["probability"] == pytest.approx(conjugate.std(), rel=0.1)


@pytest.mark.parametrize("mechanism", ["square_wave", "laplace", "gaussian"])
def test_without_noise_every_mechanism_gives_the_same_posterior(mechanism):
    x = DATA[LDPGaussian]
    model = LDPGaussian(epsilon=np.inf, mechanism=mechanism, random_state=0, inference="laplace").fit(x)
    assert model.mean_ == pytest.approx(x.mean(), abs=3e-3)
    assert model.std_ == pytest.approx(x.std(), abs=3e-3)
    counts = DATA[LDPPoisson]
    if mechanism == "laplace":
        plain = LDPPoisson(epsilon=np.inf, mechanism=mechanism, random_state=0, inference="laplace").fit(counts)
        assert plain.rate_ == pytest.approx(counts.mean(), abs=0.02)


@everyone
def test_without_reports_the_posterior_is_the_prior(cls):
    model = cls(random_state=0)
    with pytest.warns(UserWarning, match="the posterior is the prior"):
        model.fit_reports(np.empty((0, 1), dtype=int))
    for name, prior in model._family().priors.items():
        draws = model.posterior_.draws[name].ravel()
        u = np.array([0.1, 0.5, 0.9])
        ess = float(model.posterior_.ess[name])
        below = (draws[:, None] < prior.quantile(u)).mean(axis=0)
        assert np.abs(below - u).max() < 5 * np.sqrt(0.25 / ess)


@pytest.mark.parametrize("mechanism", ["square_wave", "laplace", "gaussian"])
def test_mechanisms_of_the_gaussian(mechanism):
    model = LDPGaussian(epsilon=4.0, mechanism=mechanism, inference="laplace", random_state=0).fit(DATA[LDPGaussian])
    low, high = model.posterior_.interval(0.999)["mean"]
    assert low < 0.5 < high
    assert model.delta_ == (1e-5 if mechanism == "gaussian" else 0.0)


@pytest.mark.parametrize("name, values, bounds, truth", [
    ("gamma", stats.gamma(3.0, scale=1.0), (0, 12), {"a": 3.0, "scale": 1.0}),
    ("beta", stats.beta(2.0, 4.0), (0, 1), {"a": 2.0, "b": 4.0}),
    ("lognorm", stats.lognorm(0.5, scale=2.0), (0, 12), {"s": 0.5, "scale": 2.0}),
    ("weibull_min", stats.weibull_min(1.5, scale=2.0), (0, 10), {"c": 1.5, "scale": 2.0}),
    ("nbinom", stats.nbinom(3, 0.4), (0, 25), {"n": 3.0, "p": 0.4}),
])
def test_any_scipy_distribution(name, values, bounds, truth):
    x = values.rvs(size=(5000, 1), random_state=np.random.default_rng(1))
    model = LDPDistribution(distribution=name, bounds=bounds, epsilon=3.0, random_state=0).fit(x)
    interval = model.posterior_.interval(0.999)
    for parameter, expected in truth.items():
        assert interval[parameter][0] < expected < interval[parameter][1]
    assert set(model.params_) == set(truth)
    assert np.isfinite(model.score_samples(x[:5])).all()


@pytest.mark.parametrize("name, values, priors, truth", [
    ("poisson", stats.poisson(2.5, loc=3), {"loc": 3}, {"mu": 2.5}),
    ("binom", stats.binom(9, 0.3, loc=3), {"n": 9, "loc": 3}, {"p": 0.3}),
])
def test_counts_that_do_not_start_at_zero(name, values, priors, truth):
    """The grid has one level for each count between the bounds."""
    x = values.rvs(size=(20_000, 1), random_state=np.random.default_rng(1))
    model = LDPDistribution(distribution=name, bounds=(3, 12), priors=priors, epsilon=3.0, inference="laplace",
                            random_state=0).fit(x)
    assert (model.protocol_.bounds, model.protocol_.n_levels) == ((3.0, 12.0), 9)
    plain = LDPDistribution(distribution=name, bounds=(3, 12), priors=priors, epsilon=np.inf).protocol()
    assert plain.privatize(np.arange(2, 14)).ravel().tolist() == [0, *range(10), 9], "a level for each count"
    assert set(model.params_) == set(truth)
    for parameter, expected in truth.items():
        low, high = model.posterior_.interval(0.999)[parameter]
        assert low < expected < high and high - low < 0.15 * expected


def test_several_columns_are_independent_and_share_the_budget():
    X = np.random.default_rng(0).normal([0.0, 2.0], [1.0, 0.5], size=(5000, 2))
    model = LDPGaussian(epsilon=4.0, columns="split", random_state=0).fit(X)
    assert model.mean_.shape == model.std_.shape == (2,)
    assert model.protocol_.randomizer.epsilon == 2.0
    np.testing.assert_allclose(model.mean_, [0.0, 2.0], atol=0.2)
    assert model.sample_posterior(10)["mean"].shape == (10, 2)
    assert model.posterior_.rhat["mean"].shape == (2,)
    assert model.score_samples(X[:7]).shape == (7,)


@everyone
def test_score_samples_is_the_posterior_mean_density(cls):
    model = fitted(cls)
    frozen = {
        LDPGaussian: lambda: stats.norm(model.mean_, model.std_).logpdf,
        LDPDistribution: lambda: stats.norm(**model.params_).logpdf,
        LDPExponential: lambda: stats.expon(scale=1 / model.rate_).logpdf,
        LDPPoisson: lambda: stats.poisson(model.rate_).logpmf,
        LDPGeometric: lambda: stats.geom(model.probability_, loc=-1).logpmf,
    }[cls]()
    x = DATA[cls][:200]
    np.testing.assert_allclose(model.score_samples(x), frozen(x[:, 0]), atol=0.1)
    assert model.score(x) == pytest.approx(model.score_samples(x).mean())


@everyone
def test_same_draws_for_any_n_jobs_and_clone_and_pickle(cls):
    model = fitted(cls)
    other = clone(model).set_params(n_jobs=2).fit(DATA[cls])
    copy = pickle.loads(pickle.dumps(model))
    for name, draws in model.posterior_.draws.items():
        assert (draws == other.posterior_.draws[name]).all()
        assert (draws == copy.posterior_.draws[name]).all()


@everyone
def test_pandas_input(cls):
    frame = pd.DataFrame(DATA[cls], columns=["value"])
    model = cls(random_state=0, inference="laplace").fit(frame)
    assert model.feature_names_in_.tolist() == ["value"] and model.n_features_in_ == 1


def test_cross_validation_and_grid_search():
    X = DATA[LDPGaussian]
    scores = cross_val_score(LDPGaussian(inference="laplace", random_state=0), X, cv=3)
    assert np.isfinite(scores).all()
    search = GridSearchCV(LDPGaussian(inference="laplace", random_state=0), {"epsilon": [0.5, 8.0]}, cv=3).fit(X)
    assert search.best_params_["epsilon"] in (0.5, 8.0)


@everyone
def test_laplace_inference_agrees_and_has_no_diagnostics(cls):
    long = fitted(cls).posterior_
    quick = cls(epsilon=4.0, random_state=0, inference="laplace").fit(DATA[cls]).posterior_
    for name in TRUTH[cls]:
        assert quick.mean()[name] == pytest.approx(long.mean()[name], abs=0.5 * long.std()[name])
        assert np.isnan(quick.rhat[name]) and np.isnan(quick.ess[name])


def test_one_huge_report_is_refused_or_dropped():
    model = LDPGaussian(random_state=0, inference="laplace")
    reports = model.privatize(DATA[LDPGaussian])
    hostile = np.vstack([reports.astype(np.int64), [[2**60]]])
    with pytest.raises(InvalidReportError, match="rows 4000"):
        model.fit_reports(hostile)
    assert not hasattr(model, "posterior_")
    with pytest.raises(InvalidReportError, match="integers"):
        model.fit_reports(np.vstack([reports.astype(float), [[1e300]]]))
    dropped = clone(model).fit_reports(hostile, on_invalid="drop")
    assert dropped.n_rejected_ == 1 and dropped.n_reports_ == 4000
    assert dropped.mean_ == clone(model).fit_reports(reports).mean_


def test_an_interrupt_leaves_the_estimator_unchanged(monkeypatch):
    model = LDPGaussian(random_state=0, inference="laplace").fit(DATA[LDPGaussian])
    model.set_params(inference="mcmc")
    before = dict(vars(model))

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(MCMC, "_infer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA[LDPGaussian][:, [0, 0]])
    assert vars(model) == before
    fresh = LDPGaussian()
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(DATA[LDPGaussian])
    assert not [name for name in vars(fresh) if name.endswith("_")]


def test_the_protocol_survives_json():
    model = LDPGaussian(epsilon=1.0, bounds=(0, 10), inference="laplace", random_state=0)
    client = Protocol.from_json(model.protocol(n_features=1).to_json())
    reports = np.vstack([client.privatize(x) for x in DATA[LDPGaussian][:50, 0]])
    assert model.fit_reports(reports).n_reports_ == 50


def test_cohorts_with_other_budgets():
    X = DATA[LDPGaussian]
    low, high = (LDPGaussian(epsilon=epsilon, inference="laplace", random_state=0) for epsilon in (0.5, 4.0))
    both = low.aggregate(low.privatize(X[:2000])) + high.aggregate(high.privatize(X[2000:]))
    model = LDPGaussian(inference="laplace", random_state=0).fit_reports(both)
    assert (model.epsilon_, model.n_reports_) == (4.0, 4000)
    alone = clone(high).fit_reports(high.privatize(X[2000:]))
    assert model.posterior_.std()["mean"] < alone.posterior_.std()["mean"] * 1.1


@pytest.mark.parametrize("parameters, message", [
    ({"epsilon": 0}, "epsilon"), ({"epsilon": "1"}, "epsilon"), ({"epsilon": True}, "epsilon"),
    ({"bounds": (1, 0)}, "bounds"), ({"bounds": None}, "bounds"), ({"mechanism": "none"}, "mechanism"),
    ({"mechanism": "gaussian", "delta": 0}, "delta"), ({"window": 3}, "window"), ({"mean_prior": 3}, "mean_prior"),
    ({"std_prior": (0, 1)}, "std_prior"), ({"inference": "exact"}, "inference"),
    ({"inference": MCMC(n_walkers=1)}, "n_walkers"),
    ({"inference": MCMC(n_draws=0)}, "n_draws"), ({"random_state": "x"}, "random_state"),
])
def test_bad_parameters_raise_in_fit(parameters, message):
    model = LDPGaussian(**parameters)
    with pytest.raises(ValueError, match=message):
        model.fit(DATA[LDPGaussian])


@pytest.mark.parametrize("cls", [LDPExponential, LDPPoisson, LDPGeometric])
@pytest.mark.parametrize("upper", [0, -1, None, np.nan, "5"])
def test_bad_upper(cls, upper):
    with pytest.raises(InvalidParameterError, match="upper"):
        cls(upper=upper).fit(DATA[cls])


@pytest.mark.parametrize("parameters, message", [
    ({"distribution": "nothing"}, "scipy.stats"), ({"distribution": stats.norm()}, "unfrozen"),
    ({"priors": {"a": 1.0}}, "the parameters are loc, scale"), ({"priors": {"loc": 0.0, "scale": 1.0}}, "at least one"),
    ({"priors": {"loc": "wide"}}, "frozen continuous"),
    ({"distribution": "poisson", "bounds": (0, 1.5)}, "whole numbers"),
])
def test_bad_distributions(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        LDPDistribution(**parameters).fit(DATA[LDPDistribution])


@everyone
def test_invalid_raw_data_raise_as_in_scikit_learn(cls):
    for value in (np.nan, np.inf):
        with pytest.raises(ValueError, match="NaN|infinity"):
            cls().privatize(np.full((3, 1), value))


def test_repr_of_a_simulation_without_noise():
    assert "no privacy" in repr(LDPGaussian(epsilon=np.inf))
    assert "no privacy" not in repr(LDPGaussian())


def test_empty_stream_and_wrong_width():
    model = LDPGaussian()
    with pytest.raises(InvalidParameterError, match="stream of reports is empty"):
        model.fit_reports(iter([]))
    with pytest.raises(InvalidReportError):
        model.fit_reports([np.zeros((2, 1), dtype=int), np.zeros((2, 2), dtype=int)])


def test_fits_do_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LDPGaussian(random_state=0).fit(DATA[LDPGaussian])
