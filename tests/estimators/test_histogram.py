"""Public behaviour of LDPHistogram."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import beta
from sklearn.base import clone

from skldp import LDPHistogram, project_on_simplex
from skldp.exceptions import InvalidParameterError, InvalidReportError, PrivacyLeakWarning
from skldp.protocols import CategoryProtocol, Protocol

PETS = ["cat", "dog", "fish", "none"]
SHARES = np.array([0.5, 0.3, 0.15, 0.05])
X = np.random.default_rng(0).choice(PETS, p=SHARES, size=(6000, 1))


def histogram(**parameters):
    return LDPHistogram(**{"categories": PETS, "random_state": 0, **parameters})


@pytest.mark.parametrize("mechanism", ["auto", "subset", "block", "oue", "rr"])
@pytest.mark.parametrize("likelihood", ["auto", "exact", "counts"])
def test_posterior_covers_the_truth(mechanism, likelihood):
    model = histogram(mechanism=mechanism, likelihood=likelihood, epsilon=1.5).fit(X)
    interval = model.posterior_.interval(0.9995)["frequencies"]
    assert ((interval[:, 0] < SHARES) & (SHARES < interval[:, 1])).all()
    assert model.frequencies_.sum() == pytest.approx(1)
    assert (model.frequencies_ > 0).all() and model.frequencies_std_.shape == (4,)
    assert model.posterior_.rhat["frequencies"].max() <= 1.02
    assert model.mechanism_ == ("subset" if mechanism == "auto" else mechanism)
    assert model.likelihood_ in ("exact", "counts")
    assert np.abs(model.point_estimate_ - SHARES).max() < 0.1


def test_posterior_of_two_categories_by_quadrature():
    model = LDPHistogram(categories=[0, 1], mechanism="rr", epsilon=1.0, concentration=2.0, random_state=0)
    x = np.random.default_rng(0).integers(2, size=(400, 1)) * (np.arange(400)[:, None] % 3 > 0)
    model.fit_reports(reports := model.privatize(x))
    p = model.protocol_.randomizer.near_probability
    ones = int(reports.sum())

    def density(share):
        chance = (1 - p) + (2 * p - 1) * share
        return beta(2, 2).pdf(share) * np.exp(ones * np.log(chance) + (400 - ones) * np.log1p(-chance) + 270)

    total, mean = quad(density, 0, 1)[0], quad(lambda share: share * density(share), 0, 1)[0]
    mean /= total
    sd = np.sqrt(quad(lambda share: (share - mean) ** 2 * density(share), 0, 1)[0] / total)
    error = sd / np.sqrt(model.posterior_.ess["frequencies"].min())
    assert model.frequencies_[1] == pytest.approx(mean, abs=5 * error)
    assert model.frequencies_std_[1] == pytest.approx(sd, rel=0.1)


def test_without_noise_the_posterior_is_dirichlet():
    for mechanism in ("auto", "oue", "rr"):
        model = histogram(epsilon=np.inf, mechanism=mechanism, concentration=1.0).fit(X)
        counts = np.array([(X == pet).sum() for pet in PETS])
        expected = (counts + 1) / (counts.sum() + 4)
        np.testing.assert_allclose(model.frequencies_, expected, atol=5e-3)
        sd = np.sqrt(expected * (1 - expected) / (counts.sum() + 5))
        np.testing.assert_allclose(model.frequencies_std_, sd, rtol=0.15)


def test_without_reports_the_posterior_is_the_prior():
    for likelihood in ("exact", "counts"):
        model = histogram(likelihood=likelihood, concentration=2.0)
        with pytest.warns(UserWarning, match="the posterior is the prior"):
            model.fit_reports(np.empty((0, 4), dtype=np.uint8))
        np.testing.assert_allclose(model.frequencies_, 0.25, atol=0.02)
        np.testing.assert_allclose(model.frequencies_std_, beta(2, 6).std(), rtol=0.1)


def test_the_counts_likelihood_agrees_with_the_exact_one():
    reports = histogram(mechanism="oue").privatize(X)
    exact, counts = (histogram(mechanism="oue", likelihood=how).fit_reports(reports) for how in ("exact", "counts"))
    assert (exact.likelihood_, counts.likelihood_) == ("exact", "counts")
    assert (np.abs(exact.frequencies_ - counts.frequencies_) < 0.2 * exact.frequencies_std_).all()


def test_fit_is_privatize_then_fit_reports_in_every_form():
    model = histogram(inference="laplace")
    reports = model.privatize(X)
    expected = clone(model).fit(X).frequencies_
    for form in (reports, pd.DataFrame(reports), [reports[:2000], reports[2000:]], model.aggregate(reports)):
        np.testing.assert_allclose(clone(model).fit_reports(form).frequencies_, expected, atol=1e-9)


def test_predict_score_and_ranks():
    model = histogram(epsilon=4.0).fit(X)
    predicted = model.predict([["dog"], ["unicorn"], ["cat"]])
    assert predicted[1] == 0 and predicted[0] == model.frequencies_[1] and predicted[2] == model.frequencies_[0]
    assert model.score_samples([["dog"]])[0] == pytest.approx(np.log(model.frequencies_[1]))
    assert np.isneginf(model.score_samples([["unicorn"]])[0])
    assert np.isfinite(model.score(X))
    assert model.top_k_probability(1)[0] > 0.99 and model.top_k_probability(4).tolist() == [1.0] * 4
    assert model.top_k_probability(2).sum() == pytest.approx(2)
    assert model.rank_interval(0.9).tolist()[0] == [1, 1]
    assert model.rank_interval(0.9).shape == (4, 2)
    for bad in (0, 5, 1.5):
        with pytest.raises(InvalidParameterError, match="k must"):
            model.top_k_probability(bad)


@pytest.mark.parametrize("categories", [[3, 1, 2], [1.5, 2.5, -1.0], ["b", "a", "c"], np.array(["b", "a", "c"]),
                                        pd.Index(["b", "a", "c"]), [True, False]])
def test_categories_of_any_kind_keep_their_order(categories):
    x = np.random.default_rng(0).choice(np.asarray(categories), size=(500, 1))
    model = LDPHistogram(categories=categories, inference="laplace", random_state=0, epsilon=8.0).fit(x)
    assert model.categories_.tolist() == list(categories)
    assert len(model.frequencies_) == len(categories)


def test_pandas_categoricals_are_accepted():
    frame = pd.DataFrame({"pet": pd.Categorical(X[:, 0], categories=PETS)})
    model = histogram(inference="laplace", categories=frame["pet"].cat.categories).fit(frame)
    assert model.feature_names_in_.tolist() == ["pet"]


def test_rows_of_several_columns_are_categories():
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(2, size=3000), rng.integers(2, size=3000)])
    model = LDPHistogram(categories=[(0, 0), (0, 1), (1, 0), (1, 1)], epsilon=4.0, random_state=0).fit(rows)
    assert model.categories_.shape == (4, 2) and model.n_features_in_ == 2
    np.testing.assert_allclose(model.frequencies_, 0.25, atol=0.1)
    assert model.predict([[0, 1], [2, 2]])[1] == 0
    assert model.fit_reports(model.privatize(rows)).n_reports_ == 3000


def test_categories_taken_from_the_data_warn():
    with pytest.warns(PrivacyLeakWarning, match="Pass categories="):
        model = LDPHistogram(inference="laplace", random_state=0).fit(X)
    assert model.categories_.tolist() == PETS


def test_a_protocol_survives_json_and_the_client_never_raises():
    text = histogram().protocol().to_json()
    client = Protocol.from_json(text)
    assert client == histogram().protocol() and isinstance(client, CategoryProtocol)
    reports = np.vstack([client.privatize([value]) for value in ["cat", "unicorn", np.nan, None, 3, ("a",)]])
    assert histogram(inference="laplace").fit_reports(reports).n_reports_ == 6
    tuples = CategoryProtocol(categories=((0, "a"), (1, "b")), n_features=2)
    assert Protocol.from_json(tuples.to_json()) == tuples


def test_hostile_reports_are_refused_or_dropped():
    model = histogram(inference="laplace")
    reports = model.privatize(X).astype(np.int64)
    hostile = np.vstack([reports, [[1, 1, 1, 1]], [[0, 0, 0, 0]], [[9, 0, 0, 0]]])
    with pytest.raises(InvalidReportError, match=r"3 of 6003 .* \(rows 6000, 6001, 6002\)"):
        model.fit_reports(hostile)
    dropped = model.fit_reports(hostile, on_invalid="drop")
    assert (dropped.n_reports_, dropped.n_rejected_) == (6000, 3)
    with pytest.raises(InvalidReportError, match="columns"):
        model.fit_reports(reports[:, :3])
    with pytest.raises(InvalidReportError, match="integers"):
        model.fit_reports(reports.astype(float))


def test_cohorts_with_other_budgets():
    low, high = histogram(epsilon=0.5), histogram(epsilon=4.0)
    both = low.aggregate(low.privatize(X[:3000])) + high.aggregate(high.privatize(X[3000:]))
    model = histogram().fit_reports(both)
    assert model.epsilon_ == 4.0 and model.n_reports_ == 6000
    alone = clone(low).fit_reports(low.privatize(X[:3000]))
    assert (model.frequencies_std_ < alone.frequencies_std_).all()


@pytest.mark.parametrize("parameters, message", [
    ({"epsilon": 0}, "epsilon"), ({"categories": []}, "empty"), ({"categories": ["a", "a"]}, "distinct"),
    ({"categories": "abc"}, "list"), ({"mechanism": "none"}, "mechanism"), ({"likelihood": "none"}, "likelihood"),
    ({"concentration": 0}, "concentration"), ({"concentration": "flat"}, "concentration must be"),
    ({"inference": "none"}, "inference"), ({"categories": ["x"]}, "none of"),
])
def test_bad_parameters_raise_in_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        histogram(**parameters).fit(X)


def test_the_exact_likelihood_needs_rows():
    counted = histogram(mechanism="oue", likelihood="counts")
    aggregate = counted.aggregate(counted.privatize(X))
    with pytest.raises(InvalidParameterError, match="kept their counts only"):
        histogram(mechanism="oue", likelihood="exact").fit_reports(aggregate)


def test_a_protocol_needs_categories():
    with pytest.raises(InvalidParameterError, match="categories must be given"):
        LDPHistogram().protocol()


def test_project_on_simplex_is_the_nearest_point():
    rng = np.random.default_rng(0)
    for _ in range(20):
        estimate = rng.normal(0.2, 0.3, size=5)
        projected = project_on_simplex(estimate)
        assert projected.sum() == pytest.approx(1) and (projected >= 0).all()
        others = rng.dirichlet(np.ones(5), size=500)
        distance = np.linalg.norm(others - estimate, axis=1)
        assert np.linalg.norm(projected - estimate) <= distance.min() + 1e-12


def test_exact_needs_the_rows_of_every_cohort():
    model = LDPHistogram(categories=range(8), mechanism="oue", likelihood="exact", inference="laplace", random_state=0)
    records = np.arange(8)[:, None]
    kept, other = model.aggregate(model.privatize(records)), model.protocol().with_epsilon(2.0)
    counted = other.aggregate(other._randomize(records, None, 1))
    with pytest.raises(InvalidParameterError, match="kept their counts only"):
        model.fit_reports(kept + counted)
    rows = other.aggregate(other._randomize(records, None, 1), keep_rows=True)
    assert model.fit_reports(kept + rows).likelihood_ == "exact"


def test_many_empty_categories_converge_and_are_found():
    truth = np.repeat([0.1, 0.0], [10, 190])
    records = np.random.default_rng(0).choice(200, p=truth, size=(20_000, 1))
    model = LDPHistogram(categories=list(range(200)), random_state=0).fit(records)
    assert model.posterior_.rhat["frequencies"].max() <= 1.01
    distance, projected = (np.abs(estimate - truth).sum() for estimate in
                           (model.frequencies_, project_on_simplex(model.point_estimate_)))
    assert distance < 0.9 * projected  # 0.68 if the concentration is learned, 3.0 if it is 1/2
    ends = model.posterior_.interval(0.9)["frequencies"]
    assert (ends[truth == 0, 0] < 1e-9).all() and (ends[truth == 0, 1] < 0.02).all()
