import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skldp import BoundedScaler, LDPBayesLinearRegression, PrivacyUtilityDisplay

ROWS = [{"method": method, "epsilon": epsilon, "score": score, "error": "0.01"}
        for method, epsilon, score in [("b", "2", "-0.5"), ("b", "1", "-0.6"), ("a", "1", "-0.7"), ("a", "2", "-0.65")]]


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def points(bars):
    return bars.lines[0].get_xydata()


def test_a_line_for_each_method_over_a_log_axis():
    display = PrivacyUtilityDisplay.from_results(ROWS, reference={"no privacy": -0.4, "a constant": -0.8},
                                                 score_name="R2")
    assert np.allclose(points(display.errorbar_[0]), [[1, -0.6], [2, -0.5]])
    assert np.allclose(points(display.errorbar_[1]), [[1, -0.7], [2, -0.65]])
    segments = display.errorbar_[0].lines[2][0].get_segments()
    assert np.allclose(np.diff(segments, axis=1)[:, 0, 1], 0.02)
    assert [line.get_ydata()[0] for line in display.reference_] == [-0.4, -0.8]
    assert legend(display) == ["b", "a", "no privacy", "a constant"]
    assert display.ax_.get_xscale() == "log" and display.ax_.get_ylabel() == "R2"
    assert [tick.get_text() for tick in display.ax_.get_xticklabels()] == ["1", "2"]


def test_methods_are_chosen_ordered_and_named():
    display = PrivacyUtilityDisplay.from_results(ROWS, methods={"a": "Alpha"}, negate_score=True, reference=-0.4)
    assert np.allclose(points(display.errorbar_[0]), [[1, 0.7], [2, 0.65]])
    assert legend(display) == ["Alpha", "no privacy"]
    assert display.reference_[0].get_ydata()[0] == 0.4
    assert legend(PrivacyUtilityDisplay.from_results(ROWS, methods=["a", "b"])) == ["a", "b"]
    with pytest.raises(ValueError, match="no method 'c'. Choose from 'b', 'a'"):
        PrivacyUtilityDisplay.from_results(ROWS, methods=["c"])


def test_repeats_become_a_mean_with_its_standard_error():
    scores = np.random.default_rng(0).random((2, 5))
    results = {"epsilon": np.repeat([1.0, 2.0], 5), "score": scores.ravel()}
    display = PrivacyUtilityDisplay.from_results(results)
    assert np.allclose(display.score, scores.mean(axis=1))
    assert np.allclose(display.error, scores.std(axis=1, ddof=1) / np.sqrt(5))
    assert display.ax_.get_legend() is None
    with pytest.raises(ValueError, match="Leave the column 'error' out if they are repeats"):
        PrivacyUtilityDisplay.from_results({**results, "error": np.ones(10)})


def test_an_infinite_budget_is_a_horizontal_line():
    display = PrivacyUtilityDisplay.from_results({"epsilon": [1.0, np.inf], "score": [0.5, 0.9]})
    assert points(display.errorbar_[0]).tolist() == [[1.0, 0.5]]
    assert display.reference_[0].get_ydata()[0] == 0.9 and legend(display) == ["no privacy"]
    named = PrivacyUtilityDisplay([1.0, np.inf], [0.5, 0.9], method=["a", "a"]).plot()
    assert legend(named) == ["a", "a, no privacy"]


def test_budgets_must_be_positive():
    for epsilon in ([0.0, 1.0], [np.inf, np.inf]):
        with pytest.raises(ValueError, match="Budgets must be positive, and at least one of them finite"):
            PrivacyUtilityDisplay(epsilon, [0.5, 0.6]).plot()


def test_labels_of_budgets_do_not_overlap():
    epsilon = np.geomspace(0.1, 10, 37)
    display = PrivacyUtilityDisplay(epsilon, epsilon).plot()
    assert np.allclose(display.ax_.get_xticks(), epsilon[::6])
    assert display.ax_.get_xticklabels()[1].get_text() == "0.215"


def search_over(grid, **options):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, size=(600, 2))
    model = make_pipeline(BoundedScaler(bounds=(0, 10)), LDPBayesLinearRegression(inference="laplace", random_state=0))
    grid = {f"ldpbayeslinearregression__{name}": values for name, values in grid.items()}
    return GridSearchCV(model, grid, cv=3, **options).fit(X, X[:, 0] / 10)


def test_a_grid_search_over_epsilon():
    search = search_over({"epsilon": [1.0, 4.0], "mechanism": ["sphere", "gaussian"]})
    display = PrivacyUtilityDisplay.from_estimator(search, score_name="R2")
    assert legend(display) == ["mechanism=sphere", "mechanism=gaussian"]
    found = search.cv_results_
    assert np.allclose(sorted(display.score), sorted(found["mean_test_score"]))
    assert np.allclose(sorted(display.error), sorted(found["std_test_score"] / np.sqrt(2)))


def test_a_search_must_be_fitted_and_over_one_epsilon():
    with pytest.raises(NotFittedError):
        PrivacyUtilityDisplay.from_estimator(GridSearchCV(LDPBayesLinearRegression(), {"epsilon": [1.0]}))
    with pytest.raises(ValueError, match="must be over one epsilon; it has none. Name the parameter with param="):
        PrivacyUtilityDisplay.from_estimator(search_over({"data_norm": [1.0, 2.0]}))
    several = search_over({"epsilon": [1.0, 4.0]}, scoring=["r2", "neg_mean_squared_error"], refit=False)
    with pytest.raises(ValueError, match="The search has several scores. Search with one, or use from_results"):
        PrivacyUtilityDisplay.from_estimator(several)
