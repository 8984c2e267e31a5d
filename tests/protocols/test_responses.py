"""Contract of responses, by plain sums over outcomes, and what is special to labels and counts."""

import warnings

import numpy as np
import pytest
from scipy import stats
from scipy.special import log_softmax, softmax

from skldp.exceptions import InvalidParameterError
from skldp.protocols import RoundProtocol
from skldp.protocols._responses import LINKS, Counts, Labels, Response
from tests.protocols.responses import RESPONSES

every = pytest.mark.parametrize("case", RESPONSES.values(), ids=list(RESPONSES))
SIZES = (0.0, 0.1, 1.0, 4.0)


def predictors(case, n=50, seed=0):
    rng, q = np.random.default_rng(seed), case.response.n_lines
    return np.concatenate([size * rng.normal(size=(n, q)) for size in SIZES])


def codes(case):
    return case.response.codes(case.outcomes)


@every
def test_sizes_and_bounds_are_declared(case):
    response = case.response
    assert isinstance(response, Response) and codes(case).shape == (len(case.outcomes), response.n_lines)
    u = predictors(case)
    mean = response.mean(u)
    assert mean.shape == u.shape and response.curvature(u).shape == (*u.shape, response.n_lines)
    assert response.weight(u, mean).shape == response.largest_residual(mean).shape == (len(u),)
    assert 0 < response.radius <= 1 and response.dispersion > 0
    assert len(response.typical) == 3 and min(response.typical) > 0
    np.testing.assert_allclose(case.probabilities(u).sum(axis=1), 1.0, rtol=1e-12)


@every
def test_mean_is_the_sum_over_outcomes(case):
    u = predictors(case)
    np.testing.assert_allclose(case.response.mean(u), case.probabilities(u) @ codes(case), atol=1e-12)


@every
def test_curvature_is_the_derivative_of_the_mean(case):
    u, step = predictors(case), 1e-5
    found = case.response.curvature(u)
    for place, unit in enumerate(np.eye(u.shape[1])):
        numeric = (case.response.mean(u + step * unit) - case.response.mean(u - step * unit)) / (2 * step)
        np.testing.assert_allclose(found[:, :, place], numeric, atol=1e-9)
    np.testing.assert_allclose(found, found.swapaxes(1, 2), atol=1e-15)
    values = np.linalg.eigvalsh(found)
    assert values.min() > -1e-12 and values.max() <= case.response.largest_curvature * (1 + 1e-12)


@every
def test_weight_is_in_proportion_to_the_curvature_and_bounded(case):
    u = predictors(case)
    weight, curvature = case.response.weight(u, case.response.mean(u)), case.response.curvature(u)
    traces = np.trace(curvature, axis1=1, axis2=2)
    factor = 1.0 if case.response.n_lines == 1 else weight[0] / traces[0]
    np.testing.assert_allclose(weight, factor * traces, rtol=1e-9, atol=1e-15)
    assert weight.min() >= 0 and weight.max() <= case.response.largest_curvature * (1 + 1e-12)


@every
def test_largest_residual_is_that_of_all_outcomes(case):
    u = predictors(case)
    mean = case.response.mean(u)
    residuals = np.linalg.norm(codes(case)[None] - mean[:, None], axis=2)
    found = case.response.largest_residual(mean)
    np.testing.assert_allclose(found, residuals.max(axis=1), rtol=1e-12)
    assert found.max() <= 1 + 1e-12 and found.min() >= case.response.radius * (1 - 1e-9)


@every
def test_variance_of_the_code_is_at_most_the_dispersion_times_the_curvature(case):
    """With equality where the bound of the response does not matter: at small rates, or for labels."""
    u = np.concatenate([predictors(case), np.full((1, case.response.n_lines), -4.0)])
    residuals = codes(case)[None] - case.response.mean(u)[:, None]
    variance = np.einsum("nk,nki,nkj->nij", case.probabilities(u), residuals, residuals)
    stated = case.response.dispersion * case.response.curvature(u)
    assert np.linalg.eigvalsh(stated - variance).min() > -1e-12
    variance, stated = (np.trace(one, axis1=1, axis2=2) for one in (variance, stated))
    assert (variance > 0.98 * stated)[stated > 1e-6].any(), "not larger than needed"


@every
def test_constant_inverts_the_mean_and_is_finite_at_extremes(case):
    u = np.clip(predictors(case), -1.5, 1.5)
    u = u[np.min(case.probabilities(u), axis=1) > 2e-3] if case.response.n_lines > 1 else u
    found = np.array([case.response.constant(mean) for mean in case.response.mean(u)])
    assert found.shape == u.shape and len(u) > 50
    np.testing.assert_allclose(found, u, atol=1e-6)
    for mean in (*codes(case), *(2 * codes(case))):  # noise leads beyond the possible means
        assert np.isfinite(case.response.constant(mean)).all()


@every
def test_rows_and_lines_are_inverses(case):
    rng, response = np.random.default_rng(0), case.response
    for shape in ((response.n_lines, 3), (7, response.n_lines, 3)):
        lines = rng.normal(size=shape)
        rows = response.rows(lines)
        assert rows.shape[-1] == 3 and rows.shape[:-2] == shape[:-2]
        np.testing.assert_allclose(response.lines(rows), lines, atol=1e-12)


@every
@pytest.mark.parametrize("size", [1e3, 1e8, 1e300, np.inf])
def test_huge_predictors_give_finite_values_within_their_bounds(case, size):
    signs = np.sign(np.random.default_rng(0).normal(size=(40, case.response.n_lines)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        u = size * signs
        mean = case.response.mean(u)
        weight, residual = case.response.weight(u, mean), case.response.largest_residual(mean)
        curvature = case.response.curvature(u)
    assert np.isfinite(mean).all() and np.isfinite(curvature).all()
    assert (weight >= 0).all() and weight.max() <= case.response.largest_curvature
    assert 0 < residual.min() and residual.max() <= 1 + 1e-12


# ---- Labels

@pytest.mark.parametrize("n", range(2, 7))
def test_codes_of_labels_are_corners_of_a_regular_simplex(n):
    corners = Labels(n).codes(np.arange(n))
    distances = np.linalg.norm(corners[:, None] - corners[None], axis=2)
    np.testing.assert_allclose(distances, 1 - np.eye(n), atol=1e-12)
    np.testing.assert_allclose(corners.sum(axis=0), 0.0, atol=1e-12)


@pytest.mark.parametrize("n", range(2, 7))
def test_the_residual_of_a_label_is_the_score_of_its_log_likelihood(n):
    case, step = RESPONSES[f"{n} labels"], 1e-5
    u, corners = predictors(case), codes(case)

    def log_likelihood(u):
        return log_softmax(u @ corners.T, axis=1)

    for place, unit in enumerate(np.eye(n - 1)):
        numeric = (log_likelihood(u + step * unit) - log_likelihood(u - step * unit)) / (2 * step)
        np.testing.assert_allclose(corners[None, :, place] - case.response.mean(u)[:, None, place], numeric, atol=1e-9)


def test_two_labels_have_the_log_odds_as_predictor():
    response, u = Labels(2), np.linspace(-4, 4, 9)[:, None]
    assert response.codes(np.array([0, 1])).ravel().tolist() == pytest.approx([-0.5, 0.5])
    p = 1 / (1 + np.exp(-u[:, 0]))
    np.testing.assert_allclose(response.weight(u, response.mean(u)), p * (1 - p), rtol=1e-12)
    np.testing.assert_allclose(response.mean(u)[:, 0], p - 0.5, atol=1e-15)


@pytest.mark.parametrize("n", range(3, 7))
def test_rows_of_labels_are_scores_that_add_up_to_zero(n):
    case, rng = RESPONSES[f"{n} labels"], np.random.default_rng(0)
    lines, x = rng.normal(size=(n - 1, 4)), rng.normal(size=(30, 4))
    rows = case.response.rows(lines)
    np.testing.assert_allclose(rows.sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(softmax(x @ rows.T, axis=1), case.probabilities(x @ lines.T), rtol=1e-12)
    np.testing.assert_allclose(case.response.lines(rows + 5.0), lines, atol=1e-12, err_msg="only differences matter")


def test_links_are_tested():
    made = {type(make(2)) for make in LINKS.values()}
    assert made | {Counts} == {type(case.response) for case in RESPONSES.values()}
    with pytest.raises(InvalidParameterError, match='link must be one of "logit"'):
        RoundProtocol(link="cauchit")
    assert "link" not in RoundProtocol().to_json(), "files of before are equal to those of the default"


# ---- Counts

@pytest.mark.parametrize("upper", [1, 2, 3, 20, 1000])
def test_clipped_counts_by_simulation(upper):
    rng = np.random.default_rng(0)
    for rate in (0.05, 0.9, 3.0, 25.0):
        y, u = rng.poisson(rate, size=400_000), np.full((1, 1), np.log(rate))
        clipped, response = np.minimum(y, upper) / upper, Counts(upper)
        error = max(clipped.std(), 1e-3) / np.sqrt(len(y))
        assert response.mean(u)[0, 0] == pytest.approx(clipped.mean(), abs=5 * error)
        assert response.weight(u, None)[0] == pytest.approx(rate * np.mean(y < upper) / upper, abs=0.003 * rate)


def test_the_rate_of_a_mean_count_far_below_the_bound_is_the_mean():
    assert Counts(20).constant(np.array([0.1]))[0] == pytest.approx(np.log(2.0), abs=1e-6)
    assert Counts(10**6).constant(np.array([0.5]))[0] == pytest.approx(np.log(5e5), abs=1e-6)
    expected = stats.poisson.pmf(0, np.exp(Counts(1).constant(np.array([0.25]))[0]))
    assert expected == pytest.approx(0.75), "of two outcomes"
