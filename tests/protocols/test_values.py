"""Cells of values, and invalid files of value protocols."""

import json

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError
from skldp.protocols import Protocol, ValueProtocol

PROTOCOLS = [
    ValueProtocol(epsilon=1.0, bounds=(-2, 3)),
    ValueProtocol(epsilon=0.2, bounds=(0, 20), n_levels=20),
    ValueProtocol(epsilon=1.0, bounds=(-2, 3), mechanism="laplace"),
    ValueProtocol(epsilon=0.01, bounds=(0, 20), mechanism="laplace", n_levels=20),
    ValueProtocol(epsilon=1.0, delta=1e-5, bounds=(-2, 3), mechanism="gaussian"),
    ValueProtocol(epsilon=3.0, bounds=(-2, 3), n_features=3, window=0.1),
]
everyone = pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda value: f"{value.mechanism}-{value.epsilon}")


@everyone
def test_cells_partition_the_reports_in_order(protocol):
    low, high = protocol.randomizer.clamp
    reports = np.unique(np.linspace(low, high, 20_000).astype(np.int64))
    index = protocol.cells.index(reports)
    assert (np.diff(index) >= 0).all()
    assert index.min() == 0 and index.max() == protocol.cells.n_cells - 1


def test_laplace_cells():
    cells = PROTOCOLS[2].cells
    n = cells.mechanism.n_levels
    assert cells.index(np.array([-1, -10**6])).tolist() == [0, 0]
    assert cells.index(np.array([n + 1, 10**7])).tolist() == [cells.n_cells - 1] * 2
    inner = np.arange(n + 1)
    centres = cells.centres[cells.index(inner)]
    width = cells.mechanism.bounds[1] - cells.mechanism.bounds[0]
    assert np.abs(centres - cells.mechanism.decode(inner)).max() <= min(width / 256, cells.noise_scale / 128) * 1.01
    assert len(cells.centres) == cells.n_cells


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
def test_laplace_cell_probabilities_match_the_mechanism(epsilon):
    cells = ValueProtocol(epsilon=epsilon, bounds=(0, 20), mechanism="laplace", n_levels=20).cells
    mechanism = cells.mechanism
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    for level in (0, 7, 20):
        probability = np.exp(mechanism.log_prob(reports, float(level)))
        expected = np.bincount(cells.index(reports), weights=probability, minlength=cells.n_cells)
        np.testing.assert_allclose(cells.probabilities[:, level], expected, atol=1e-12)


@pytest.mark.parametrize("text, message", [
    ("not json", "not JSON"),
    ('{"format": "skldp-prot', "cut short"),
    (None, "not JSON"),
    ("[1, 2]", "not a protocol file"),
    ('{"format": "other", "version": 1}', "not a protocol file"),
    ('{"format": "skldp-protocol", "version": 2}', "version 2"),
    ('{"format": "skldp-protocol", "version": 1, "kind": "Nonsense"}', "kind"),
    ('{"format": "skldp-protocol", "version": 1, "kind": "ValueProtocol", "epsilon": 1}', "missing or unknown fields"),
])
def test_texts_that_are_not_protocols_are_refused(text, message):
    with pytest.raises(InvalidParameterError, match=message):
        Protocol.from_json(text)


@pytest.mark.parametrize("change", [{"epsilon": 0}, {"bounds": [1, 0]}, {"mechanism": "none"}, {"window": 7},
                                    {"n_levels": 0.5}, {"n_features": 0}])
def test_files_with_bad_values(change):
    fields = {**json.loads(PROTOCOLS[0].to_json()), **change}
    with pytest.raises(InvalidParameterError):
        Protocol.from_json(json.dumps(fields))
