"""Names of features and categories in the results of a fit, and arguments that ``fit`` refuses."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import skldp

QUICK = {"epsilon": 4.0, "inference": "laplace", "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.normal(scale=0.2, size=(3000, 2)).clip(-0.5, 0.5)


@pytest.fixture
def frame():
    return pytest.importorskip("pandas").DataFrame(X, columns=["carat", "depth"])


def rows(model):
    return list(model.posterior_.summary().index)


@pytest.mark.parametrize("model", [skldp.LDPBayesLinearRegression(**QUICK), skldp.LDPBayesLogisticRegression(**QUICK)],
                         ids=lambda model: type(model).__name__)
@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyLeakWarning")
def test_coefficients_have_the_names_of_features(model, frame):
    y = X[:, 0] > 0
    model.fit(frame, y)
    assert rows(model)[:3] == ["coef[carat]", "coef[depth]", "intercept"]
    assert (model.posterior_.interval(0.9, "coef[carat]") == model.posterior_.interval(0.9)["coef"][0]).all()
    assert "covariance[carat, depth]" in model.posterior_.summary(full=True).index
    assert "bits" in model.posterior_.summary()
    model.fit(X, y)  # no names now: those of the earlier fit are forgotten
    assert rows(model)[0] == "coef[0]"


def test_columns_of_values_have_names(frame):
    model = skldp.LDPGaussian(bounds=(-1, 1), **QUICK).fit(frame)
    assert rows(model) == ["mean[carat]", "mean[depth]", "std[carat]", "std[depth]"]
    assert rows(skldp.LDPGaussian(bounds=(-1, 1), **QUICK).fit(frame[["depth"]])) == ["mean", "std"]


def test_frequencies_have_the_names_of_categories():
    cuts = np.array(["Fair", "Good", "Ideal"])
    model = skldp.LDPHistogram(categories=cuts, **QUICK)
    reports = model.privatize(RNG.choice(cuts, size=(500, 1)))
    assert rows(model.fit_reports(reports)) == ["frequencies[Fair]", "frequencies[Good]", "frequencies[Ideal]"]
    pairs = skldp.LDPHistogram(categories=[("Fair", "D"), ("Fair", "E"), ("Ideal", "D"), ("Ideal", "E")], **QUICK)
    pairs.fit(np.column_stack([RNG.choice(["Fair", "Ideal"], 500), RNG.choice(["D", "E"], 500)]))
    assert rows(pairs)[1] == "frequencies[Fair, E]"


def test_reports_have_numbers():
    model = skldp.LDPBayesLinearRegression(**QUICK)
    assert rows(model.fit_reports(model.privatize(X, X[:, 0])))[:2] == ["coef[0]", "coef[1]"]


def test_names_pass_through_a_pipeline_that_puts_out_frames(frame):
    pipeline = make_pipeline(skldp.BoundedScaler(bounds=(-0.5, 0.5)), skldp.LDPBayesLinearRegression(**QUICK))
    pipeline.set_output(transform="pandas").fit(frame, X[:, 0])
    assert rows(pipeline[-1])[0] == "coef[carat]"


@pytest.mark.parametrize("model", [skldp.LDPBayesLinearRegression(), skldp.LDPHistogram(), skldp.LDPSGDClassifier()],
                         ids=lambda model: type(model).__name__)
def test_weights_are_refused_in_a_sentence(model):
    name = type(model).__name__
    for option in ("sample_weight", "class_weight"):
        with pytest.raises(TypeError, match=f"^{name}.fit takes no {option}: each client sends one report.*Leave"):
            model.fit(X, X[:, 0] > 0, **{option: np.ones(3000)})
    with pytest.raises(TypeError, match=f"^{name}.fit.. got an unexpected keyword argument 'weight'"):
        model.fit(X, X[:, 0] > 0, weight=1)
