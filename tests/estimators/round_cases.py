"""Estimators that collect in rounds, with skewed records and responses of their models, for tests of all of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from skldp import LDPBayesLogisticRegression, LDPBayesPoissonRegression

N = 12_000
_RNG = np.random.default_rng(0)
# Skewed columns: most records are near one end, few are far away, as amounts and durations are.
X = np.minimum(_RNG.exponential(scale=[0.15, 0.1], size=(N, 2)), 0.7)
ROWS = np.array([[0.5, 4.0, -3.0], [-0.5, -1.0, 4.0], [0.0, -3.0, -1.0]])  # intercept and coefficients of each label
LETTERS = np.array(["a", "b", "c"])
RATE = np.array([0.5, 3.0, -2.0])


@dataclass(frozen=True)
class Case:
    """An estimator, and the responses of the records; ``truth`` has the rows (intercept, coefficients)."""

    kind: Any
    options: dict
    y: np.ndarray
    truth: np.ndarray
    n_lines: int

    def make(self, **parameters):
        return self.kind(**{"epsilon": 4.0, "inference": "laplace", "random_state": 0, **self.options, **parameters})


def choose(probabilities, rng):
    """One of the columns for each row."""
    return np.sum(np.cumsum(probabilities, axis=1)[:, :-1] < rng.random((len(probabilities), 1)), axis=1)


def _scores(rows):
    return rows[:, 0] + X @ rows[:, 1:].T


CASES: dict[str, Case] = {
    "two labels": Case(LDPBayesLogisticRegression, {"classes": [0, 1]},
                       (_RNG.random(N) < expit(_scores(np.array([[-1.0, 5.0, -3.0]]))[:, 0])).astype(int),
                       np.array([[-1.0, 5.0, -3.0]]), 1),
    "three labels": Case(LDPBayesLogisticRegression, {"classes": ["a", "b", "c"]},
                         LETTERS[choose(softmax(_scores(ROWS), axis=1), _RNG)], ROWS, 2),
    "counts": Case(LDPBayesPoissonRegression, {"bounds_y": (0, 12)}, _RNG.poisson(np.exp(_scores(RATE[None])[:, 0])),
                   RATE[None], 1),
}
