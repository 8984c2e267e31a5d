"""Contract between models and samplers: the same tests for every model."""

import inspect

import numpy as np
import pytest

import skldp.models
from skldp.models import Model, UnivariateModel
from skldp.sampling._density import quiet
from tests.models.registry import CASES, N_CLIENTS

every = pytest.mark.parametrize("case", CASES, ids=repr)
DIFFERENTIABLE = [case for case in CASES if case.make(N_CLIENTS).gradient or case.make(N_CLIENTS).approximation]


def points(model, n=4, size=0.15):
    """Return coordinates about as far from the initial point as the posterior extends."""
    return model.initial() + np.random.default_rng(0).normal(0.02, size, size=(n, model.n_params))


def numeric_gradient(model, theta, step=1e-5):
    ends = [(model.log_density(theta + step * e), model.log_density(theta - step * e)) for e in np.eye(model.n_params)]
    return np.transpose([(above - below) / (2 * step) for above, below in ends])


def variants(model):
    """Return a model and its approximation, if there is one."""
    return [model] if model.approximation is None else [model, model.approximation]


def check_gradient(model):
    theta = points(model)
    value, gradient = model.gradient(theta)
    np.testing.assert_allclose(value, model.log_density(theta), rtol=1e-10)
    numeric = numeric_gradient(model, theta)
    np.testing.assert_allclose(gradient, numeric, rtol=2e-5, atol=2e-6 * np.abs(numeric).max())


@pytest.mark.parametrize("case", DIFFERENTIABLE, ids=repr)
def test_gradient_matches_finite_differences(case):
    checked = [check_gradient(model) for model in variants(case.make(N_CLIENTS)) if model.gradient is not None]
    assert checked


@pytest.mark.parametrize("case", [case for case in CASES if case.make(N_CLIENTS).surrogate], ids=repr)
def test_surrogate_correlates_with_the_gradient(case):
    model = case.make(N_CLIENTS)
    theta = points(model)
    found, numeric = model.surrogate(theta), numeric_gradient(model, theta)
    assert np.corrcoef(found.ravel(), numeric.ravel())[0, 1] > 0.9


@every
def test_batch_equals_single_walkers(case):
    for model in variants(case.make(N_CLIENTS)):
        theta = points(model, 5)
        density, natural = model.log_density(theta), model.constrain(theta)
        gradients = [function(theta) for function in (model.surrogate,) if function is not None]
        gradients += [] if model.gradient is None else [model.gradient(theta)[1]]
        for i in range(5):
            one = theta[i:i + 1]
            np.testing.assert_allclose(model.log_density(one)[0], density[i], rtol=1e-10)
            alone = [function(one) for function in (model.surrogate,) if function is not None]
            alone += [] if model.gradient is None else [model.gradient(one)[1]]
            for single, batch in zip(alone, gradients):
                np.testing.assert_allclose(single[0], batch[i], rtol=1e-7, atol=1e-7 * np.abs(batch).max())
            for name, values in model.constrain(one).items():
                np.testing.assert_allclose(values[0], natural[name][i], rtol=1e-10)


@every
def test_zero_reports_give_the_prior(case):
    model = case.make(0)
    theta = 0.1 + 0.3 * np.random.default_rng(0).normal(size=(6, model.n_params))
    expected = [case.log_prior(model, point) for point in theta]
    np.testing.assert_allclose(np.diff(model.log_density(theta)), np.diff(expected), rtol=1e-7, atol=1e-7)


@every
def test_reports_change_the_density(case):
    """Without this, a model that ignores its reports would pass the test above."""
    model, empty = case.make(N_CLIENTS), case.make(0)
    theta = points(model, 6)
    assert np.ptp(model.log_density(theta) - empty.log_density(theta)) > 0.01


def in_other_units(case):
    """Return a model, a model of the same reports in units eight times smaller, and the map between coordinates."""
    model, other = case.make(N_CLIENTS), case.make(N_CLIENTS, unit=8.0)
    if not isinstance(model, UnivariateModel):
        return model, other, lambda theta: theta  # coordinates are in public units
    # Priors of values are in the units of the data, so equal quantiles of the two priors are the same value.
    one, two = (np.array([[prior.unconstrain(prior.quantile(u)) for prior in part.priors] for u in (0.3, 0.8)])
                for part in (model, other))
    factor = (two[1] - two[0]) / (one[1] - one[0])
    return model, other, lambda theta: two[0] + factor * (theta - one[0])


@pytest.mark.parametrize("case", [case for case in CASES if case.units], ids=repr)
def test_the_same_reports_in_other_units_give_scaled_parameters(case):
    model, other, moved = in_other_units(case)
    theta = points(model)
    natural, scaled = model.constrain(theta), other.constrain(moved(theta))
    assert natural.keys() == scaled.keys() <= case.units.keys()
    for name, values in natural.items():
        np.testing.assert_allclose(scaled[name], values * 8.0 ** case.units[name], rtol=1e-9)
    np.testing.assert_allclose(np.diff(other.log_density(moved(theta))), np.diff(model.log_density(theta)), rtol=1e-6,
                               atol=1e-6)


@every
def test_extreme_parameters_have_zero_density_and_never_nan(case):
    rng = np.random.default_rng(0)
    for model in variants(case.make(N_CLIENTS)):
        for size in (1e1, 1e2, 1e3, 1e6, 1e300):
            theta = size * rng.normal(size=(30, model.n_params))
            theta[:3, 0] = np.nan, np.inf, -np.inf
            with quiet():
                value = model.log_density(theta)
            assert value.shape == (30,)
            assert not np.isnan(value).any() and (value < np.inf).all()
            assert value[0] == -np.inf, "the density at NaN is zero"


@every
@pytest.mark.parametrize("n_clients", [0, 1, N_CLIENTS])
def test_initial_point_has_finite_density(case, n_clients):
    for model in variants(case.make(n_clients)):
        start = np.asarray(model.initial())
        assert start.shape == (model.n_params,)
        assert np.isfinite(model.log_density(start[None])).all()


@every
def test_coordinates_of_other_reports_give_the_same_parameters(case):
    model, other = case.make(N_CLIENTS), case.make(N_CLIENTS // 4)
    moved = model.in_coordinates_of(other)
    if model.coordinates is None:
        assert moved is model
        return
    theta = points(model)
    converted = moved.coordinates.convert(theta, model.coordinates)
    assert np.abs(converted - theta).max() > 0.01, "the coordinates differ"
    for name, values in model.constrain(theta).items():
        for one in variants(moved):
            np.testing.assert_allclose(one.constrain(converted)[name], values, rtol=1e-8, atol=1e-10)
    assert {name for name in vars(moved) if vars(moved)[name] is not vars(model).get(name)} <= {
        "coordinates", "approximation"}, "only the coordinates differ, here and in the approximation"


def test_every_public_model_is_registered():
    public = {kind for name in skldp.models.__all__ if inspect.isclass(kind := getattr(skldp.models, name))
              and issubclass(kind, Model) and kind is not Model}
    assert public == {type(case.make(N_CLIENTS)) for case in CASES}


def test_optional_members_are_none_by_default():
    for name in ("gradient", "surrogate", "approximation", "coordinates", "report_log_likelihoods",
                 "fit_residuals"):
        assert getattr(Model, name) is None
    assert Model.nearly_standard_normal is False and Model.nearly_independent is False
    with pytest.raises(TypeError, match="abstract"):
        Model()
