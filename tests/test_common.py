"""scikit-learn's estimator checks, for every estimator and transformer, without expected failures."""

import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import skldp

ESTIMATORS = [
    skldp.LDPGaussian(inference="laplace"),
    skldp.LDPDensity(inference="laplace", n_cells=16),
    skldp.LDPExponential(inference="laplace"),
    skldp.LDPPoisson(inference="laplace"),
    skldp.LDPGeometric(inference="laplace"),
    skldp.LDPDistribution(inference="laplace"),
    skldp.LDPHistogram(inference="laplace"),
    skldp.LDPSGDClassifier(),
    skldp.LDPSGDClassifier(mechanism="sphere", epsilon=4.0, group_size=10, average=True, learning_rate="invscaling"),
    skldp.LDPSGDRegressor(),
    skldp.LDPSGDRegressor(mechanism="sphere", epsilon=4.0, group_size=10, fit_intercept=False),
    skldp.LDPBayesLinearRegression(inference="laplace"),
    skldp.LDPBayesLinearRegression(inference="laplace", features_per_client=2),
    skldp.LDPCovariance(inference="laplace"),
    skldp.LDPPCA(inference="laplace"),
    skldp.LDPPCA(inference="laplace", assume_centered=True, mechanism="gaussian", n_components=1),
    skldp.LDPBayesLogisticRegression(inference="laplace"),
    skldp.LDPBayesLogisticRegression(inference="laplace", n_rounds=2),
    skldp.LDPBayesLogisticRegression(inference="laplace", features_per_client=2),
    skldp.LDPBayesLogisticRegression(inference="laplace", mechanism="records", fit_intercept=False),
    skldp.LDPBayesPoissonRegression(inference="laplace"),
    skldp.LDPBayesPoissonRegression(inference="laplace", n_rounds=2, fit_intercept=False),
]
TRANSFORMERS = [
    skldp.LaplacePerturber(),
    skldp.SquareWavePerturber(),
    skldp.GaussianPerturber(),
    skldp.SpherePerturber(),
    skldp.RandomizedResponsePerturber(),
    skldp.SubsetSelectionPerturber(),
    skldp.UnaryEncodingPerturber(),
    skldp.BoundedScaler(),
    skldp.PublicColumns(),
]


@pytest.mark.filterwarnings("ignore::skldp.exceptions.PrivacyLeakWarning",
                            "ignore::skldp.exceptions.StatisticalWarning")
@parametrize_with_checks(ESTIMATORS + TRANSFORMERS)
def test_sklearn_check(estimator, check):
    check(estimator)


@pytest.mark.parametrize("estimator", ESTIMATORS + TRANSFORMERS, ids=lambda estimator: type(estimator).__name__)
def test_number_of_sklearn_checks(estimator):
    assert sum(1 for _ in estimator_checks_generator(estimator)) >= 40


def test_every_public_class_is_checked():
    public = {name: getattr(skldp, name) for name in skldp.__all__}
    classes = {name for name, value in public.items()
               if isinstance(value, type) and issubclass(value, BaseEstimator) and "fit" in dir(value)}
    assert classes == {type(estimator).__name__ for estimator in ESTIMATORS + TRANSFORMERS}
