"""A malformed row costs that row only."""

import numpy as np
import pandas as pd
import pytest

from skldp import LDPBayesLinearRegression, LDPGaussian, LDPHistogram
from skldp.exceptions import InvalidReportError
from skldp.protocols import CategoryProtocol, GradientProtocol, MomentProtocol, ValueProtocol

PROTOCOLS = {
    "value": ValueProtocol(epsilon=1.0, bounds=(0, 10)),
    "two values": ValueProtocol(epsilon=1.0, bounds=(0, 10), n_features=2),
    "category": CategoryProtocol(categories=("a", "b", "c"), mechanism="rr"),
    "subset": CategoryProtocol(categories=("a", "b", "c")),
    "moments": MomentProtocol(n_features=1),
    "gradient": GradientProtocol(n_features=1),
}


def honest(protocol, n=20):
    if isinstance(protocol, (MomentProtocol, GradientProtocol)):
        return protocol.privatize(np.zeros((n, 1)), np.ones(n))
    return protocol.privatize(np.zeros((n, protocol.n_features)))


def strange_rows(width):
    """Rows that are no reports, for a list of rows."""
    return {"3.5": [3.5] * width, "huge": [10**30] * width, "text": ["secret"] * width, "NaN": [float("nan")] * width,
            "shorter": [1] * (width - 1), "longer": [1] * (width + 1), "none": None, "nested": [[1, 2]] * width,
            "one text": "text", "masked": np.ma.array([1] * width, mask=True),
            "unsigned": np.full(width, 2**64 - 1, dtype=np.uint64)}


@pytest.mark.parametrize("kind", PROTOCOLS)
@pytest.mark.parametrize("name", strange_rows(1))
def test_a_strange_row_costs_itself(kind, name):
    protocol = PROTOCOLS[kind]
    good = honest(protocol).tolist()
    rows = good[:7] + [strange_rows(protocol.width)[name]] + good[7:]
    found = protocol.aggregate(rows, on_invalid="drop")
    assert (found.n_reports, found.n_rejected) == (20, 1)
    assert (found.parts[protocol].sums == protocol.aggregate(good).parts[protocol].sums).all()
    assert np.flatnonzero(~protocol.check(rows)).tolist() == [7]
    with pytest.raises(InvalidReportError, match='on_invalid="drop"') as caught:
        protocol.aggregate(rows)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_arrays_that_one_entry_made_floats_or_objects(kind):
    protocol = PROTOCOLS[kind]
    reports = honest(protocol)
    for value, dtype in [(3.5, float), (np.nan, float), (10**30, object), ("text", object), (None, object)]:
        changed = reports.astype(dtype)
        changed[4, 0] = value
        for container in (changed, pd.DataFrame(changed)):
            found = protocol.aggregate(container, on_invalid="drop")
            assert (found.n_reports, found.n_rejected) == (19, 1)
            with pytest.raises(InvalidReportError, match="Reports are integers"):
                protocol.aggregate(container)
    hidden = np.ma.array(reports, mask=np.arange(20)[:, None] == [4] * protocol.width)
    assert protocol.aggregate(hidden, on_invalid="drop").n_rejected == 1


@pytest.mark.parametrize("kind", PROTOCOLS)
def test_wrong_widths(kind):
    protocol = PROTOCOLS[kind]
    wide = np.zeros((3, protocol.width + 1), dtype=int)
    assert protocol.aggregate(wide, on_invalid="drop").n_rejected == 3
    empty = protocol.aggregate(np.zeros((3, 0), dtype=int), on_invalid="drop")
    assert (empty.n_reports, empty.n_rejected) == (0, 3)
    with pytest.raises(InvalidReportError, match=f"have {protocol.width} columns"):
        protocol.aggregate(wide)
    with pytest.raises(InvalidReportError, match=f"have {protocol.width} columns"):
        protocol.aggregate(np.zeros((1, 1, protocol.width), dtype=int), on_invalid="drop")


@pytest.mark.parametrize("estimator", [
    LDPGaussian(bounds=(0, 10)), LDPBayesLinearRegression(), LDPHistogram(categories=["a", "b", "c"])], ids=repr)
@pytest.mark.parametrize("streamed", [False, True])
def test_estimators_lose_the_row_only(estimator, streamed):
    protocol = estimator.protocol(1)
    good = honest(protocol).tolist()
    for name, row in strange_rows(protocol.width).items():
        rows = [row, *good] if streamed else [*good, row]
        found = estimator.aggregate([good, rows] if streamed else rows, on_invalid="drop")
        assert (found.n_reports, found.n_rejected) == (40 if streamed else 20, 1), name
