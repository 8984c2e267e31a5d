"""Logistic regression in rounds: the estimator, and the server that a deployment runs."""

import json

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from skldp import LDPBayesLogisticRegression, RoundServer
from skldp.exceptions import InvalidParameterError, InvalidReportError
from skldp.privacy import Ledger
from skldp.protocols import Client, LabelMomentProtocol, RoundProtocol

RNG = np.random.default_rng(0)
COEF, INTERCEPT = np.array([5.0, -3.0]), -1.0
# Skewed columns: most records are near one end, few are far away, as amounts and durations are.
X = np.minimum(RNG.exponential(scale=[0.15, 0.1], size=(12_000, 2)), 0.7)
Y = (RNG.random(len(X)) < expit(X @ COEF + INTERCEPT)).astype(int)


def classifier(**parameters):
    return LDPBayesLogisticRegression(**{"epsilon": 4.0, "classes": [0, 1], "inference": "laplace", "random_state": 0,
                                         **parameters})


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(X, Y)


def test_fit_has_three_rounds_of_different_people_and_the_same_posterior_from_their_aggregates(fitted):
    protocols = [protocol for protocol, _ in fitted.rounds_]
    assert [type(protocol) for protocol in protocols] == [LabelMomentProtocol, RoundProtocol, RoundProtocol]
    assert [aggregate.n_reports for _, aggregate in fitted.rounds_] == [4000, 4000, 4000]
    assert fitted.protocol_ == protocols[0] == fitted.protocol(2)
    assert (fitted.n_reports_, fitted.epsilon_, fitted.delta_) == (len(X), 4.0, 0.0)
    again = classifier().fit_reports(fitted.rounds_)
    for name, draws in fitted.posterior_.draws.items():
        assert (draws == again.posterior_.draws[name]).all()
    assert (again.predictive_coef_ == fitted.predictive_coef_).all() and again.n_reports_ == len(X)


def test_nobody_is_asked_twice():
    distinct = X[:3000] + np.arange(3000)[:, None] * 1e-9
    with Ledger() as spent:
        classifier().fit(distinct, Y[:3000])
    assert spent.largest == spent.upper == 4.0


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_without_noise_skewed_columns_agree_with_maximum_likelihood(fit_intercept):
    y = Y if fit_intercept else (np.random.default_rng(1).random(len(X)) < expit(X @ COEF)).astype(int)
    plain = LogisticRegression(C=1e6, fit_intercept=fit_intercept).fit(X, y)
    rounds = classifier(epsilon=np.inf, fit_intercept=fit_intercept).fit(X, y)
    distance = np.abs(rounds.coef_ - plain.coef_) / rounds.coef_std_
    assert (distance < 4).all()
    np.testing.assert_allclose(rounds.coef_, plain.coef_, rtol=0.12)
    np.testing.assert_allclose(rounds.predict_proba(X), plain.predict_proba(X), atol=0.04)


def test_without_noise_rare_outcomes_of_indicators_agree_with_maximum_likelihood():
    """Most of the change is that of the intercept, and the first steps are long."""
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.random((60_000, 3)) < [0.3, 0.1, 0.05], rng.exponential(size=60_000).clip(0, 3)]) / 3.5
    y = (rng.random(len(rows)) < expit(-6.0 + rows @ [6.0, 8.0, 9.0, 3.0])).astype(int)
    assert 0.03 < y.mean() < 0.06
    plain = LogisticRegression(C=np.inf, tol=1e-8).fit(rows, y)
    model = classifier(epsilon=np.inf).fit(np.tile(rows, (3, 1)), np.tile(y, 3))
    np.testing.assert_allclose(model.predictive_coef_, plain.coef_, atol=0.25)
    np.testing.assert_allclose(model.predictive_intercept_, plain.intercept_, atol=0.1)
    assert (np.abs(model.coef_ - plain.coef_) < 4 * model.coef_std_).all()


def test_more_budget_is_not_worse_on_a_rare_indicator():
    """Moments of one round are those of normal records, which an indicator that is rarely 1 is far from."""
    error: dict = {(1, 16.0): [], (3, 1.0): [], (3, 16.0): []}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = 0.9 * (rng.random((20_000, 1)) < 0.04)
        y = rng.random(len(x)) < expit(6 * x[:, 0] - 2)
        plain = LogisticRegression(C=1e6).fit(x, y).coef_
        for (n_rounds, epsilon), found in error.items():
            model = classifier(epsilon=epsilon, n_rounds=n_rounds, classes=[False, True]).fit(x, y)
            found.append(abs(model.coef_ - plain).max())
    size = {cell: np.sqrt(np.mean(np.square(found))) for cell, found in error.items()}
    assert size[3, 16.0] < 0.7 * size[3, 1.0] and size[3, 16.0] < 0.4 * size[1, 16.0], error
    assert min(error[1, 16.0]) > 1.5, "one round takes x to be normal"


def test_personal_budgets_go_with_their_people():
    budgets = np.where(np.arange(len(X)) % 2, 8.0, 2.0)
    model = classifier().fit(X, Y, sample_epsilon=budgets)
    for _, aggregate in model.rounds_:
        assert sorted(part.epsilon for part in aggregate.parts) == [2.0, 8.0]
    assert model.epsilon_ == 8.0
    low, high = (classifier(epsilon=epsilon).fit(X, Y).coef_std_.mean() for epsilon in (2.0, 8.0))
    assert high < model.coef_std_.mean() < low


def test_influence_of_forged_reports_in_any_round(fitted):
    bound = fitted.influence_bound(10)
    assert (bound["coef"] > 0).all() and bound["intercept"] > 0
    np.testing.assert_allclose(fitted.influence_bound(20)["coef"], 2 * bound["coef"])
    # A forged report has the length of the noise, so ten of 12,000 shift less than the noise of all.
    assert (bound["coef"] < fitted.coef_std_[0]).all()


def test_records_have_one_round():
    assert len(classifier(mechanism="records").fit(X[:500], Y[:500]).rounds_) == 1
    with pytest.raises(InvalidParameterError, match="collected in one round, got n_rounds=2"):
        classifier(mechanism="records", n_rounds=2).fit(X[:500], Y[:500])


@pytest.mark.parametrize("n_rounds", [0, 17, 2.5, "many", None, True])
def test_wrong_numbers_of_rounds_are_refused(n_rounds):
    with pytest.raises(InvalidParameterError, match="n_rounds"):
        classifier(n_rounds=n_rounds).fit(X[:500], Y[:500])


def test_fewer_people_than_rounds():
    assert len(classifier(n_rounds=5).fit(X[:3], [0, 1, 1]).rounds_) == 3


@pytest.mark.parametrize("mechanism", ["gaussian", "sphere"])
def test_later_rounds_have_the_mechanism_of_the_first(mechanism):
    model = classifier(mechanism=mechanism, delta=1e-6).fit(X[:3000], Y[:3000])
    assert {protocol.mechanism for protocol, _ in model.rounds_} == {mechanism}
    assert {protocol.delta for protocol, _ in model.rounds_} == {1e-6 if mechanism == "gaussian" else 0.0}


def rounds_by_hand(server, interrupted):
    """Run a collection as a deployment does, with a crash after each batch of reports if ``interrupted``."""
    for rows in np.split(np.arange(len(X)), [3000, 6000]):
        published = server.round().to_json()
        for part in np.array_split(rows, 2):
            server.add(Client(published).protocol._randomize(X[part], Y[part], 7))
            if interrupted:
                server = RoundServer.from_json(server.estimator, server.to_json())
                assert server.round().to_json() == published
        server.close()
    return server


def test_a_server_goes_on_after_a_crash_at_any_point():
    results = [rounds_by_hand(RoundServer(classifier(), 2), interrupted).result() for interrupted in (False, True)]
    assert results[0].n_reports_ == results[1].n_reports_ == len(X)
    assert (results[0].coef_ == results[1].coef_).all()
    assert (np.abs(results[0].coef_ - COEF) < 5 * results[0].coef_std_).all()


def test_a_client_answers_each_round_from_its_own_budget():
    server = RoundServer(classifier(), 2)
    first = Client(server.round()).report([0.1, 0.2], 1)
    server.add(first).close()
    second = Client(server.round()).report([0.1, 0.2], 1)
    assert first.shape == (1, server.rounds[0][0].width) and second.shape == (1, server.round().width)


def test_reports_of_another_round_are_refused(fitted):
    server = RoundServer(classifier(), 2)
    with pytest.raises(InvalidReportError, match="answer another round"):
        server.add(fitted.rounds_[1][1])
    with pytest.raises(InvalidReportError):
        server.add(np.zeros((2, server.round().width), dtype=int))
    assert server.add(np.zeros((2, server.round().width), dtype=int), on_invalid="drop")._open.n_rejected == 2
    with pytest.raises(InvalidParameterError, match="no reports yet"):
        server.close()
    server.add(fitted.rounds_[0][1]).close()
    with pytest.raises(InvalidReportError, match="answer another round"):
        server.add(fitted.rounds_[0][1])


def test_a_finished_collection_has_no_further_round(fitted):
    server = RoundServer(classifier(n_rounds=1), 2).add(fitted.rounds_[0][1]).close()
    assert server.done
    with pytest.raises(InvalidParameterError, match="rounds are closed"):
        server.round()


@pytest.mark.parametrize("change", [
    lambda state: state.pop("closed"), lambda state: state.update(closed={}), lambda state: state.update(extra=1),
    lambda state: state.update(format="other"), lambda state: state.update(version=True),
    lambda state: state.update(n_features=-1), lambda state: state.update(closed=[{}] * 17),
    lambda state: state.update(closed=[{}]), lambda state: state.update(current={"format": "skldp-aggregate"})])
def test_damaged_states_are_refused(change):
    state = json.loads(RoundServer(classifier(), 2).to_json())
    change(state)
    with pytest.raises(ValueError):
        RoundServer.from_json(classifier(), json.dumps(state))


def test_rounds_of_another_collection_are_refused(fitted):
    other = clone(fitted).set_params(data_norm=2.0).fit(X[:3000], Y[:3000])
    with pytest.raises(InvalidParameterError, match="data_norm"):
        classifier().fit_reports([fitted.rounds_[0], other.rounds_[1]])
    with pytest.raises(InvalidReportError, match="data_norm"):
        classifier().fit_reports([other.rounds_[0], fitted.rounds_[1]])
    with pytest.raises(InvalidParameterError, match="RoundProtocol"):
        classifier().fit_reports([fitted.rounds_[0], fitted.rounds_[0]])
