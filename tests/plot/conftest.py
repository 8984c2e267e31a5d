import matplotlib
import numpy as np
import pytest

from skldp import LDPBayesLinearRegression, LDPGaussian, LDPHistogram

matplotlib.use("Agg")
QUICK = {"inference": "laplace", "random_state": 0}
PETS = ["cat", "dog", "fish", "newt", "owl"]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture(scope="session")
def gaussian():
    X = np.random.default_rng(0).normal(1.0, 2.0, size=(2000, 1))
    return LDPGaussian(epsilon=2.0, bounds=(-10, 10), random_state=0).fit(X)


@pytest.fixture(scope="session")
def histogram():
    X = np.random.default_rng(0).choice(PETS, p=[0.5, 0.3, 0.1, 0.06, 0.04], size=(3000, 1))
    return LDPHistogram(epsilon=2.0, categories=PETS, **QUICK).fit(X)


@pytest.fixture(scope="session")
def regression():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pandas.DataFrame(rng.normal(scale=0.3, size=(5000, 4)), columns=["age", "height", "weight", "sleep"])
    y = X.to_numpy() @ [0.5, -0.5, 0.2, 0.0] + rng.normal(scale=0.1, size=5000)
    return LDPBayesLinearRegression(epsilon=4.0, **QUICK).fit(X, y)
