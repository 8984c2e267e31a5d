"""Files of an older version, with "auto" in descriptions and ids of 64 bits, keep their meaning."""

import base64
import dataclasses
import io
import json
import math

import numpy as np
import pytest

from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.protocols import (
    Aggregate,
    CategoryProtocol,
    GradientModel,
    GradientProtocol,
    Protocol,
    ValueProtocol,
    load_reports,
    save_reports,
)
from skldp.protocols._description import is_id_of, protocol_from
from tests.protocols.old_files import AGGREGATES, ARCHIVES, IDS, MODEL, PROTOCOLS, REPORTS

TODAY = {
    "square wave": ValueProtocol(bounds=(0, 10), n_levels=8),
    "square wave, split": ValueProtocol(epsilon=1.4, n_levels=8, n_features=2),
    "square wave, chosen window": ValueProtocol(n_levels=8, window=0.25),
    "square wave, no noise": ValueProtocol(epsilon=math.inf, n_levels=8),
    "laplace": ValueProtocol(mechanism="laplace", n_levels=8),
    "gaussian": ValueProtocol(mechanism="gaussian", delta=1e-5, epsilon=20.0),
    "subset": CategoryProtocol(epsilon=0.5, categories=tuple("abcdef")),
    "subset, no noise": CategoryProtocol(epsilon=math.inf, categories=tuple("abcdef")),
    "unary": CategoryProtocol(categories=(0, 1, 2, 3), mechanism="oue"),
    "gradients": GradientProtocol(n_features=2),
}
every = pytest.mark.parametrize("name", PROTOCOLS)


def opened(name):
    return io.BytesIO(base64.b64decode(ARCHIVES[name]))


def read(name):
    return protocol_from(json.loads(PROTOCOLS[name]), simulated=True)


def test_every_kind_of_protocol_and_tally_has_an_old_file():
    written = {json.loads(text)["kind"] for text in PROTOCOLS.values()}
    assert written == {"CategoryProtocol", "GradientProtocol", "LabelMomentProtocol", "LabelRecordProtocol",
                       "MomentProtocol", "RecordProtocol", "ValueProtocol"}
    tallies = {part["tally"]["kind"] for text in AGGREGATES.values() for part in json.loads(text)["parts"]}
    assert tallies == {"sums", "pairs", "rows", "reports"}


@every
def test_an_old_description_gives_the_same_protocol(name):
    protocol = read(name)
    assert protocol == TODAY.get(name, protocol)
    text = protocol.to_json()
    assert "auto" not in text and protocol_from(json.loads(text), simulated=True) == protocol
    assert len(protocol.id) == 32 and is_id_of(protocol.id, json.loads(text))
    if not math.isinf(protocol.epsilon):
        assert Protocol.from_json(PROTOCOLS[name]) == protocol


@every
def test_an_old_id_matches_only_the_old_text(name):
    description = json.loads(PROTOCOLS[name])
    assert len(IDS[name]) == 16 and is_id_of(IDS[name], description)
    assert not is_id_of(IDS[name], {**description, "epsilon": 1.25})
    for other in (IDS[name][:-1], IDS[name] + "00", IDS[name].upper() + " ", "", None, 7, read(name).id[:24]):
        assert not is_id_of(other, description)


@pytest.mark.parametrize("name", AGGREGATES)
def test_old_and_new_aggregates_can_be_added(name):
    aggregate = Aggregate.from_json(AGGREGATES[name])
    protocol, tally = next(iter(aggregate.parts.items()))
    assert protocol == read(name.removesuffix(", rows"))
    today = Aggregate.from_json(aggregate.to_json())
    total = aggregate + today
    assert set(total.parts) == set(aggregate.parts) and total.n_reports == 2 * aggregate.n_reports
    for field in dataclasses.fields(tally):
        np.testing.assert_array_equal(getattr(today.parts[protocol], field.name), getattr(tally, field.name))
    for part in json.loads(today.to_json())["parts"]:
        assert len(part["id"]) == 32 and "auto" not in json.dumps(part)


def test_cohorts_of_an_old_file_have_their_own_windows():
    low, high = sorted(Aggregate.from_json(AGGREGATES["square wave"]).parts, key=lambda protocol: protocol.epsilon)
    assert (low.window, high.window) == (0.14, 0.125)


@pytest.mark.parametrize("name", REPORTS)
def test_old_reports_can_be_read(name):
    reports, protocol = load_reports(opened(name), TODAY[name.removesuffix(", reports")])
    assert reports.tolist() == REPORTS[name] and protocol.check(reports).all()
    file = io.BytesIO()
    save_reports(file, reports, protocol)
    file.seek(0)
    assert load_reports(file)[1] == protocol


def test_an_old_archive_of_sums_can_be_read():
    aggregate = Aggregate.load(opened("subset, aggregate"))
    assert set(aggregate.parts) == {TODAY["subset"]}
    np.testing.assert_array_equal(aggregate.parts[TODAY["subset"]].sums, np.sum(REPORTS["subset, reports"], axis=0))


def test_a_model_of_an_old_server_is_accepted():
    protocol, model = TODAY["gradients"], GradientModel.from_json(MODEL)
    assert protocol._randomize([[0.3, 0.1]], [1], 0, model).shape == (1, 3)
    with pytest.raises(InvalidParameterError, match="another protocol"):
        GradientProtocol(n_features=2, epsilon=2.0)._randomize([[0.3, 0.1]], [1], 0, model)


@pytest.mark.parametrize("change", [{"epsilon": 0.75}, {"n_levels": 9}, {"window": 0.125}])
def test_a_changed_description_does_not_have_its_old_id(change):
    text = json.loads(AGGREGATES["square wave"])
    text["parts"][0]["protocol"].update(change)
    with pytest.raises(InvalidReportError, match="has been changed"):
        Aggregate.from_json(json.dumps(text))


def test_only_fields_added_later_may_be_missing():
    description = json.loads(TODAY["subset"].to_json())
    del description["subset_size"]
    assert Protocol.from_json(json.dumps(description)) == TODAY["subset"]
    del description["mechanism"]
    with pytest.raises(InvalidParameterError, match="fields: mechanism"):
        Protocol.from_json(json.dumps(description))
    with pytest.raises(InvalidParameterError, match="fields: subset_size"):
        Protocol.from_json(json.dumps({**json.loads(PROTOCOLS["laplace"]), "subset_size": 1}))
