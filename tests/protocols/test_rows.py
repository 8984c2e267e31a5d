"""Estimators drop only the malformed rows."""

import numpy as np
import pytest

from skldp import LDPBayesLinearRegression, LDPGaussian, LDPHistogram
from tests.protocols.registry import strange_rows


@pytest.mark.parametrize("estimator", [
    LDPGaussian(bounds=(0, 10)), LDPBayesLinearRegression(), LDPHistogram(categories=["a", "b", "c"])], ids=repr)
@pytest.mark.parametrize("streamed", [False, True])
def test_estimators_drop_only_the_malformed_row(estimator, streamed):
    protocol = estimator.protocol(1)
    good = protocol.privatize(np.zeros((20, 1)), np.ones(20)).tolist()
    for name, row in strange_rows(protocol.width).items():
        rows = [row, *good] if streamed else [*good, row]
        found = estimator.aggregate([good, rows] if streamed else rows, on_invalid="drop")
        assert (found.n_reports, found.n_rejected) == (40 if streamed else 20, 1), name
