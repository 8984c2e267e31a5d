"""A collection of labels or counts in rounds: crashes, missing clients, hostile reports, and other rounds."""

import json
import pickle

import numpy as np
import pytest
from sklearn.base import clone

from skldp import LDPBayesLogisticRegression, LDPBayesPoissonRegression, PublicColumns, RoundServer
from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.privacy import Ledger
from skldp.protocols import Client, CountRoundProtocol, LabelMomentProtocol, Protocol, RoundProtocol
from tests.estimators.round_cases import CASES, X

every = pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))


def collect(server, case, interrupt=lambda server: server, answering=slice(None)):
    """Run a collection of the first 6,000 clients, with possible interruptions after each step."""
    for rows in np.split(np.arange(6000), [1500, 3000]):
        published = server.round().to_json()
        for part in np.array_split(rows, 2):
            part = part[answering]
            server.add(Client(published).protocol._randomize(X[part], case.y[part], 7))
            server = interrupt(server)
            assert server.round().to_json() == published
        server = interrupt(server.close())
    return server


def crash(server):
    """A server that is read from its file by a new process."""
    again = RoundServer.from_json(clone(server.estimator), server.to_json())
    assert [protocol for protocol, _ in again.rounds] == [protocol for protocol, _ in server.rounds]
    return again


@every
def test_a_crash_at_any_point_changes_nothing(case):
    whole = collect(RoundServer(case.make(), 2), case).result()
    server = collect(crash(RoundServer(case.make(), 2)), case, crash)
    assert [part.n_reports for _, part in server.rounds] == [1500, 1500, 3000]
    every_time = server.result()
    assert (every_time.coef_ == whole.coef_).all() and every_time.n_reports_ == whole.n_reports_ == 6000
    assert (every_time.posterior_.draws["coef"] == whole.posterior_.draws["coef"]).all()
    truth = case.truth[:, 1:].reshape(whole.coef_.shape)
    assert (np.abs(whole.coef_ - truth) < 5 * whole.coef_std_).all()


@every
def test_rounds_have_the_protocols_of_the_response(case):
    server = collect(RoundServer(case.make(), 2), case)
    later = {"bounds_y": CountRoundProtocol}.get(next(iter(case.options)), RoundProtocol)
    first = LabelMomentProtocol if case is CASES["two labels"] else later
    protocols = [protocol for protocol, _ in server.rounds]
    assert [type(protocol) for protocol in protocols] == [first, later, later]
    for protocol in protocols[1:]:
        assert protocol.lines.shape == (case.n_lines, 3) and np.abs(protocol.lines[:, 1:]).min() > 0.01
        assert protocol.epsilon == 4.0 and protocol.delta == 0.0
    assert protocols[1].transform == protocols[2].transform and protocols[1].theta != protocols[2].theta
    result = server.result()
    assert result.rounds_[0][0] == result.protocol_ == protocols[0] and len(result.rounds_) == 3


@every
def test_clients_that_do_not_answer_are_not_missed(case):
    server = collect(RoundServer(case.make(epsilon=16.0), 2), case, answering=slice(None, None, 3))
    result = server.result()
    assert result.n_reports_ == 2000
    assert np.isfinite(result.coef_).all()
    full = collect(RoundServer(case.make(epsilon=16.0), 2), case).result()
    assert result.coef_std_.mean() > full.coef_std_.mean()


@every
def test_a_round_of_one_client_is_enough_to_go_on(case):
    server = RoundServer(case.make(), 2)
    while not server.done:
        server = crash(server.add(Client(server.round()).report(X[0], case.y[0])).close())
    assert server.result().n_reports_ == 3 and np.isfinite(server.result().coef_).all()


@every
def test_hostile_reports_are_refused_or_dropped_in_every_round(case):
    server, n_dropped = RoundServer(case.make(), 2), 0
    for rows in np.split(np.arange(3000), [700, 1500]):
        protocol = server.round()
        honest = protocol._randomize(X[rows], case.y[rows], 0)
        hostile = np.vstack([honest.astype(np.int64), np.full((2, honest.shape[1]), 2**60),
                             np.zeros((1, honest.shape[1]), dtype=int)])
        for bad in (hostile, hostile.astype(float), hostile[:, 1:]):
            with pytest.raises(InvalidReportError):
                server.add(bad)
        server.add(hostile, on_invalid="drop")
        n_dropped += 3
        server = crash(server).close()
    result = server.result()
    assert (result.n_reports_, result.n_rejected_) == (3000, n_dropped)


@every
def test_reports_of_another_round_or_response_are_refused(case):
    server = collect(RoundServer(case.make(), 2), case)
    fresh = RoundServer(case.make(), 2)
    for _, foreign in server.rounds[1:]:
        with pytest.raises(InvalidReportError, match="answer another round"):
            fresh.add(foreign)
    fresh.add(server.rounds[0][1]).close()
    for _, foreign in (server.rounds[0], server.rounds[2]):
        with pytest.raises(InvalidReportError, match="answer another round"):
            fresh.add(foreign)
    for other in CASES.values():
        if other is not case:
            with pytest.raises(InvalidReportError, match="answer another round"):
                RoundServer(other.make(), 2).add(server.rounds[0][1])
            with pytest.raises(TypeError, match="reads reports of"):
                other.make().fit_reports(server.rounds)
    fresh.add(server.rounds[1][1].protocol.aggregate(server.rounds[1][0]._randomize(X[:9], case.y[:9], 0)))
    assert fresh._open.n_reports == 9


@every
def test_another_order_or_too_few_rounds_of_the_same_collection(case):
    rounds = collect(RoundServer(case.make(), 2), case).rounds
    two = case.make().fit_reports(rounds[:2])
    assert len(two.rounds_) == 2 and np.isfinite(two.coef_).all()
    one = case.make().fit_reports(rounds[:1])
    aggregate = case.make().fit_reports(rounds[0][1])
    assert (one.coef_ == aggregate.coef_).all() and one.n_reports_ == 1500
    with pytest.raises((InvalidParameterError, InvalidReportError, TypeError)):
        case.make().fit_reports(rounds[::-1] if case is CASES["two labels"] else [rounds[0], *other_rounds(case)])


def other_rounds(case):
    """Later rounds of a collection in other units."""
    return collect(RoundServer(case.make(data_norm=2.0), 2), case).rounds[1:]


@every
def test_cohorts_in_a_round(case):
    server = RoundServer(case.make(), 2)
    while not server.done:
        for epsilon in (2.0, 8.0):
            cohort = server.round().with_epsilon(epsilon)
            server.add(cohort.aggregate(cohort._randomize(X[:600], case.y[:600], 0)))
        server.close()
    result = crash(server).result()
    assert result.epsilon_ == 8.0 and [len(part.parts) for _, part in result.rounds_] == [2, 2, 2]


@every
def test_fit_is_the_same_collection_and_fit_reports_the_same_posterior(case):
    with Ledger() as spent:
        fitted = case.make().fit(X, case.y)
    assert spent.largest == 4.0, "nobody is asked twice"
    assert [part.n_reports for _, part in fitted.rounds_] == [4000, 4000, 4000]
    for again in (case.make().fit_reports(fitted.rounds_),
                  case.make().fit_reports(pickle.loads(pickle.dumps(fitted.rounds_)))):
        assert all((again.posterior_.draws[name] == draws).all() for name, draws in fitted.posterior_.draws.items())
        assert (again.predictive_coef_ == fitted.predictive_coef_).all()
    server = RoundServer(case.make(), 2)
    for _, part in fitted.rounds_:  # the rounds of fit are those that a server would have published
        server.add(part).close()
    assert (server.result().coef_ == fitted.coef_).all()


COLUMNS = {"carat": (0.2, 2.5), "cut": ["Fair", "Good", "Ideal"]}


@pytest.mark.parametrize("estimator, answers", [
    (LDPBayesLogisticRegression(classes=["D", "E", "F"], inference="laplace", random_state=0), ["D", "F", "E", "D"]),
    (LDPBayesPoissonRegression(inference="laplace", random_state=0), [0, 3, 25, 1])])
def test_clients_with_raw_columns_answer_every_round(estimator, answers, tmp_path):
    first = PublicColumns(schema=COLUMNS).protocol(estimator)
    server = RoundServer(estimator, first.n_features, first.columns)
    assert server.round() == first
    records = [{"carat": 0.4, "cut": "Good"}, {"carat": 2.0, "cut": "Ideal"}, {"carat": 1.0, "cut": "?"},
               {"cut": "Fair"}]
    while not server.done:
        published = server.round().to_json()
        for number, (record, answer) in enumerate(zip(records, answers)):
            client = Client(published, ledger=tmp_path / f"{len(server.rounds)}-{number}.json", max_epsilon=1.0)
            server.add(client.report({**record, "answer": answer}))
            assert client.spent() == 1.0
        other_machine = Protocol.from_json(published)
        server.add(other_machine.aggregate(other_machine.privatize([[0.5, "Good"]], [answers[0]])))
        server = crash(server).close()
    assert server.result().n_reports_ == 15


@every
def test_damaged_states_are_refused(case):
    state = json.loads(collect(RoundServer(case.make(), 2), case).to_json())
    for change in (lambda s: s["closed"].reverse(), lambda s: s["closed"][0].update(parts=[]),
                   lambda s: s["closed"].append(s["closed"][0]), lambda s: s.update(current=s["closed"][0]),
                   lambda s: s["closed"][1]["parts"][0]["protocol"].update(theta=[0.0])):
        damaged = json.loads(json.dumps(state))
        change(damaged)
        with pytest.raises(ValueError):
            RoundServer.from_json(case.make(), json.dumps(damaged))
