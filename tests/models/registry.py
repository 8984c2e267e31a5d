"""List of models for the contract tests, with independently coded priors and units."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy import special, stats

from skldp.models import (
    BetaPrior,
    CovarianceModel,
    DensityModel,
    ExponentialFamily,
    GammaPrior,
    GaussianFamily,
    GeometricFamily,
    LinearModel,
    LogisticMomentModel,
    LogisticRecordModel,
    NormalPrior,
    PoissonFamily,
    RoundModel,
    SampledLinearModel,
    SampledLogisticModel,
    ScipyFamily,
    ScipyPrior,
    UnivariateModel,
    ValueGrid,
    histogram_model,
)
from skldp.protocols import (
    CategoryProtocol,
    CovarianceProtocol,
    LabelMomentProtocol,
    LabelRecordProtocol,
    MomentProtocol,
    RecordProtocol,
    SampledLabelMomentProtocol,
    SampledMomentProtocol,
    ValueProtocol,
)
from tests.models.regression import test_covariance_model, test_linear, test_logistic, test_rounds

N_CLIENTS = 400


@dataclass(frozen=True)
class Case:
    """A model, with facts about it that do not come from its code.

    Parameters
    ----------
    name : str
    make : callable
        Maps a number of clients, and a unit if the data have one, to a model.
    log_prior : callable
        Maps a model without reports and one theta to the log-density of the prior at theta, up to a constant.
    units : dict
        Power of the unit of the data in each natural parameter; empty if the data have no unit.
    """

    name: str
    make: Callable
    log_prior: Callable
    units: dict = field(default_factory=dict)

    def __repr__(self):
        return self.name


def aggregate_of(protocol_of, n_clients, unit, X, y=None, **options):
    """Return the aggregate of the first clients: the same integers for every unit, with the protocol of that unit."""
    plain, scaled = protocol_of(1.0), protocol_of(unit)
    reports = np.empty((0, plain.width), dtype=np.int64)
    if n_clients:
        reports = plain._randomize(X[:n_clients], None if y is None else y[:n_clients], 0)
    return scaled.aggregate(reports, **options)


def value_case(name, family_of, priors, values, bounds, units, **options):
    """Return the case of a distribution of one value."""
    def protocol_of(unit):
        return ValueProtocol(bounds=tuple(unit * end for end in bounds), epsilon=2.0, **options)

    def make(n_clients, unit=1.0):
        return UnivariateModel(family_of(unit), aggregate_of(protocol_of, n_clients, unit, values))

    def log_prior(model, theta):
        total, step = 0.0, 1e-6
        for t, (key, prior) in zip(theta, priors.items()):
            ends = model.family.priors[key].constrain(np.array([t + step, t - step]))
            total += prior.logpdf(model.family.priors[key].constrain(t)) + np.log((ends[0] - ends[1]) / (2 * step))
        return total

    return Case(name, make, log_prior, units)


def _value_cases():
    rng = np.random.default_rng(0)
    normal, waits = rng.normal(1.0, 1.5, size=(N_CLIENTS, 1)), rng.exponential(0.5, size=(N_CLIENTS, 1))
    counts = rng.poisson(4.0, size=(N_CLIENTS, 1)).astype(float)
    for mechanism in ("square_wave", "laplace", "gaussian"):
        delta = {"delta": 1e-5} if mechanism == "gaussian" else {}
        yield value_case(
            f"gaussian, {mechanism}",
            lambda unit: GaussianFamily({"mean": NormalPrior(0.0, 2.5 * unit), "std": GammaPrior(2.0, 2 / unit)}),
            {"mean": stats.norm(0, 2.5), "std": stats.gamma(2, scale=0.5)}, normal, (-5.0, 5.0),
            {"mean": 1, "std": 1}, mechanism=mechanism, **delta)
    for mechanism in ("square_wave", "laplace"):
        yield value_case(f"exponential, {mechanism}",
                         lambda unit: ExponentialFamily({"rate": GammaPrior(2.0, 1.0 * unit)}),
                         {"rate": stats.gamma(2)}, waits, (0.0, 5.0), {"rate": -1}, mechanism=mechanism)
        yield value_case(f"poisson, {mechanism}", lambda unit: PoissonFamily({"rate": GammaPrior(2.0, 0.4)}),
                         {"rate": stats.gamma(2, scale=2.5)}, counts, (0.0, 20.0), {}, mechanism=mechanism, n_levels=20)
        yield value_case(f"geometric, {mechanism}", lambda unit: GeometricFamily({"probability": BetaPrior(1.0, 1.0)}),
                         {"probability": stats.beta(1, 1)}, counts, (0.0, 20.0), {}, mechanism=mechanism, n_levels=20)
    yield value_case(
        "scipy gamma", lambda unit: ScipyFamily(stats.gamma, {"a": ScipyPrior(stats.gamma(2)),
                                                              "scale": GammaPrior(2.0, 2 / unit)}, {"loc": 0.0}),
        {"a": stats.gamma(2), "scale": stats.gamma(2, scale=0.5)}, waits, (0.0, 5.0), {"a": 0, "scale": 1})


def _density_cases():
    """Without reports the coordinates of a density are standard normal; test_density checks them with reports."""
    values = np.random.default_rng(3).beta(5, 2, size=(N_CLIENTS, 1))
    for n_cells, step in ((40, False), (17, True)):
        n_levels = 16 if step else 128

        def make(n_clients, unit=1.0, n_cells=n_cells, step=step, n_levels=n_levels):
            def protocol_of(unit):
                return ValueProtocol(bounds=(0.0, unit), epsilon=2.0, n_levels=n_levels, window=0.2)

            return DensityModel(ValueGrid((0.0, unit), n_levels, n_cells, step),
                                aggregate_of(protocol_of, n_clients, unit, values))

        yield Case(f"density, {n_cells} cells", make, lambda model, theta: stats.norm.logpdf(theta).sum(),
                   {"mean": 1, "std": 1, "density": -1})


def _category_cases():
    codes = np.random.default_rng(1).choice(4, p=[0.4, 0.3, 0.2, 0.1], size=(N_CLIENTS, 1))
    for mechanism, likelihood, concentration in [
            ("rr", "counts", 0.7), ("subset", "exact", 0.7), ("subset", "counts", "auto"), ("oue", "exact", "auto"),
            ("oue", "counts", 0.7), ("block", "counts", 0.7), ("block", "counts", "auto")]:
        def make(n_clients, mechanism=mechanism, likelihood=likelihood, concentration=concentration):
            options = {"subset": {"subset_size": 2}, "block": {"design": (7, 3)}}.get(mechanism, {})
            protocol = CategoryProtocol(categories=(0, 1, 2, 3), mechanism=mechanism, epsilon=1.5, **options)
            keep = {"keep_rows": True} if likelihood == "exact" else {}
            aggregate = aggregate_of(lambda unit: protocol, n_clients, 1.0, codes, **keep)
            return histogram_model(aggregate, concentration, likelihood)

        yield Case(f"histogram, {mechanism}, {likelihood}, {concentration}", make,
                   _log_dirichlet if concentration == 0.7 else _log_learned_dirichlet)


def _log_dirichlet(model, theta):
    """Prior of frequencies of shape 0.7 and of a Gamma total of mean 1, in coordinates, by its definition."""
    return _log_prior_of_frequencies(model, theta, lambda frequencies: stats.dirichlet([0.7] * 4).pdf(frequencies))


def _log_learned_dirichlet(model, theta):
    """The same, with a concentration whose logarithm is normal and truncated, by the trapezoidal rule."""
    def density(frequencies):
        logs = np.linspace(np.log(0.005), np.log(20.0), 35)  # steps of at most 1/4
        values = [stats.norm(np.log(0.5), 1.5).pdf(log) * stats.dirichlet([np.exp(log)] * 4).pdf(frequencies)
                  for log in logs]
        return np.trapezoid(values)

    return _log_prior_of_frequencies(model, theta, density)


def _log_prior_of_frequencies(model, theta, density):
    frequencies = model.constrain(theta[None])["frequencies"][0]
    logs = model.coordinates(theta[None])[0][0]
    total = np.exp(logs).sum()
    np.testing.assert_allclose(np.exp(logs) / total, frequencies, rtol=1e-12)

    def natural(theta):
        """Free frequencies and the total."""
        y = np.exp(model.coordinates(theta[None])[0][0])
        return np.append(y[:-1] / y.sum(), y.sum())

    step, shape = 1e-5, model.coordinates.total
    jacobian = [(natural(theta + step * e) - natural(theta - step * e)) / (2 * step) for e in np.eye(len(theta))]
    prior_of_total = stats.gamma(shape, scale=1 / shape).logpdf(total)
    return np.log(density(frequencies)) + prior_of_total + np.linalg.slogdet(jacobian)[1]


def _responses_cases():
    """Linear regressions of three responses of one record."""
    rng, d, k = np.random.default_rng(2), 2, 3
    X = rng.normal(0.05, 0.3, size=(N_CLIENTS, d))
    residuals = rng.multivariate_normal(np.zeros(k), [[0.01, 0.006, 0], [0.006, 0.01, 0], [0, 0, 0.02]], size=N_CLIENTS)
    y = X @ [[0.5, 0.2, -0.4], [-0.3, 0.1, 0.3]] + 0.1 + residuals
    for kind, weight in (("sphere", {}), ("axis", {}), ("gaussian", {"intercept_weight": 0.0})):
        def make(n_clients, unit=1.0, kind=kind, weight=weight):
            def protocol_of(unit):
                return MomentProtocol(mechanism=kind, n_features=d, epsilon=4.0, data_norm=unit, y_weight=0.6,
                                      bounds_y=((-unit, unit),) * k, **weight)

            return LinearModel(aggregate_of(protocol_of, n_clients, unit, X, y))

        yield Case(f"linear, {kind}, three responses", make,
                   lambda model, theta: test_linear.PRIOR(model, theta[None])[0],
                   {"coef": 0, "intercept": 1, "sigma": 1, "residual_correlation": 0, "covariance": 2, "x_mean": 1})


def _regression_cases():
    rng, d = np.random.default_rng(2), 2
    X = rng.normal(0.05, 0.3, size=(N_CLIENTS, d))
    y = X @ [0.5, -0.3] + 0.1 + rng.normal(0, 0.1, size=N_CLIENTS)
    labels = (rng.random(N_CLIENTS) < special.expit(X @ [3.0, -2.0] + 0.4)).astype(int)
    flat = {"coef": 0, "intercept": 1, "sigma": 1, "covariance": 2, "x_mean": 1}
    for constant in (True, False):
        weight = {} if constant else {"intercept_weight": 0.0}
        note = "" if constant else ", no intercept"
        for kind in ("sphere", "axis", "gaussian", "records"):
            def linear(n_clients, unit=1.0, kind=kind, constant=constant, weight=weight):
                def protocol_of(unit):
                    domain = {"n_features": d, "epsilon": 4.0, "data_norm": unit, "bounds_y": (-unit, unit)}
                    return (RecordProtocol(centred=constant, **domain) if kind == "records"
                            else MomentProtocol(mechanism=kind, **domain, **weight))

                return LinearModel(aggregate_of(protocol_of, n_clients, unit, X, y))

            def logistic(n_clients, unit=1.0, kind=kind, constant=constant, weight=weight):
                def protocol_of(unit):
                    domain = {"n_features": d, "epsilon": 4.0, "data_norm": unit}
                    return (LabelRecordProtocol(**domain) if kind == "records"
                            else LabelMomentProtocol(mechanism=kind, **domain, **weight))

                aggregate = aggregate_of(protocol_of, n_clients, unit, X, labels)
                return (LogisticRecordModel(aggregate, fit_intercept=constant) if kind == "records"
                        else LogisticMomentModel(aggregate))

            yield Case(f"linear, {kind}{note}", linear,
                       lambda model, theta: test_linear.PRIOR(model, theta[None])[0], flat)
            yield Case(f"logistic, {kind}{note}", logistic,
                       lambda model, theta: test_logistic.PRIOR(model, theta[None])[0],
                       {"coef": -1, "intercept": 0, "covariance": 2, "x_mean": 1})


def _sampled_cases():
    """Regressions from reports of two of three features."""
    rng, d = np.random.default_rng(2), 3
    X = rng.normal(0.05, 0.2, size=(N_CLIENTS, d))
    y = X @ [0.5, -0.3, 0.2] + 0.1 + rng.normal(0, 0.1, size=N_CLIENTS)
    labels = (rng.random(N_CLIENTS) < special.expit(X @ [3.0, -2.0, 1.0] + 0.4)).astype(int)
    for note, weight in (("", {}), (", no intercept", {"intercept_weight": 0.0})):
        def linear(n_clients, unit=1.0, weight=weight):
            def protocol_of(unit):
                domain = {"n_features": d, "epsilon": 4.0, "data_norm": unit, "bounds_y": (-unit, unit)}
                return SampledMomentProtocol(**domain, **weight)

            return SampledLinearModel(aggregate_of(protocol_of, n_clients, unit, X, y))

        def logistic(n_clients, unit=1.0, weight=weight):
            def protocol_of(unit):
                return SampledLabelMomentProtocol(n_features=d, epsilon=4.0, data_norm=unit, **weight)

            return SampledLogisticModel(aggregate_of(protocol_of, n_clients, unit, X, labels))

        yield Case(f"linear, two of three{note}", linear, lambda model, theta: test_linear.PRIOR(model, theta[None])[0],
                   {"coef": 0, "intercept": 1, "sigma": 1, "covariance": 2, "x_mean": 1})
        yield Case(f"logistic, two of three{note}", logistic,
                   lambda model, theta: test_logistic.PRIOR(model, theta[None])[0],
                   {"coef": -1, "intercept": 0, "covariance": 2, "x_mean": 1})


def _covariance_cases():
    """Mean and covariance without a response."""
    X = np.random.default_rng(2).normal(0.05, 0.3, size=(N_CLIENTS, 3))
    for kind, weight in (("sphere", {}), ("gaussian", {"intercept_weight": 0.0})):
        def make(n_clients, unit=1.0, kind=kind, weight=weight):
            def protocol_of(unit):
                return CovarianceProtocol(mechanism=kind, n_features=3, epsilon=4.0, data_norm=unit, **weight)

            return CovarianceModel(aggregate_of(protocol_of, n_clients, unit, X))

        yield Case(f"covariance, {kind}", make,
                   lambda model, theta: test_covariance_model.log_prior(model, theta[None])[0],
                   {"location": 1, "covariance": 2})


def _round_cases():
    """Regressions of labels and counts in rounds, with a frame of the later ones, and of cohorts with two budgets.

    The last entry is the weight of the curvature in later rounds.
    """
    for kind, n_rounds, constant, epsilons, weight in (
            ("labels", 1, True, (4.0,), 1.0), ("labels", 2, True, (4.0,), 1.0), ("labels", 2, True, (2.0, 8.0), 0.0),
            ("labels", 2, False, (4.0,), 1.0), ("three labels", 1, True, (4.0,), 1.0),
            ("three labels", 2, True, (2.0, 8.0), 1.0), ("three labels", 2, False, (4.0,), 0.0),
            ("counts", 1, True, (4.0,), 1.0), ("counts", 3, True, (2.0, 8.0), 1.0), ("counts", 2, False, (4.0,), 0.0)):
        case = test_rounds.KINDS[kind]
        X, y = test_rounds.records(N_CLIENTS, 2, kind=case)

        def make(n_clients, unit=1.0, n_rounds=n_rounds, constant=constant, epsilons=epsilons, case=case, X=X, y=y,
                 later={"curvature_weight": weight}):
            def cohort(number, epsilon):
                return aggregate_of(lambda unit: case.protocols(constant, n_rounds, later, epsilon=epsilon,
                                                                data_norm=unit)[number], n_clients, unit, X, y)

            return RoundModel([sum(cohort(number, epsilon) for epsilon in epsilons) for number in range(n_rounds)])

        note = "" if constant else ", no intercept"
        yield Case(f"rounds of {kind}, {n_rounds}, {len(epsilons)} budgets{note}", make,
                   lambda model, theta, case=case: test_rounds.log_prior(model, theta[None], case.prior)[0],
                   {"coef": -1, "intercept": 0, "covariance": 2, "x_mean": 1})


CASES = [*_value_cases(), *_density_cases(), *_category_cases(), *_regression_cases(), *_responses_cases(),
         *_sampled_cases(), *_covariance_cases(), *_round_cases()]
