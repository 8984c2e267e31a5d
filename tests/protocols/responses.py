"""Responses of rounds with the probabilities of their outcomes, for the tests of the common contract."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import stats
from scipy.special import softmax

from skldp.protocols._responses import Counts, Labels, Response


@dataclass(frozen=True)
class Case:
    """A response, its outcomes as a protocol encodes them, and a function from predictors to their probabilities."""

    response: Response
    outcomes: np.ndarray
    probabilities: Callable


def labels(n_classes):
    """Labels whose codes are the corners of a regular simplex, as :func:`test_labels_are_corners` checks."""
    response, numbers = Labels(n_classes), np.arange(n_classes)
    return Case(response, numbers, lambda u: softmax(u @ response.codes(numbers).T, axis=1))


def counts(upper):
    def probabilities(u):
        rate = np.exp(u)
        return np.hstack([stats.poisson.pmf(np.arange(upper), rate), stats.poisson.sf(upper - 1, rate)])

    return Case(Counts(upper), np.arange(upper + 1) / upper, probabilities)


RESPONSES = {
    **{f"{n} labels": labels(n) for n in (2, 3, 4, 5, 6)},
    **{f"counts up to {b}": counts(b) for b in (1, 2, 20)},
}
