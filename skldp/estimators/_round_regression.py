"""Base class of the regressions that collect in rounds."""

import numpy as np

from skldp._validation._parameters import sampling_seed
from skldp.estimators._budgets import check_budgets
from skldp.estimators._regression import BaseLDPRegression
from skldp.estimators._rounds import (
    DEFAULT_ROUNDS,
    FEW_CLIENTS,
    as_rounds,
    check_number_of_rounds,
    first_of_each_round,
    next_protocol,
)
from skldp.models.regression._rounds import RoundModel
from skldp.privacy._spending import one_call


class BaseLDPRoundRegression(BaseLDPRegression):
    """A regression that asks disjoint groups of clients, each at the model that the groups before it gave."""

    def _number_of_rounds(self, n_clients=FEW_CLIENTS):
        """Return the number of rounds of a collection."""
        default = self._default_rounds(n_clients)
        return min(check_number_of_rounds(self.n_rounds) or default, max(n_clients, 1))

    def _default_rounds(self, n_clients):
        """Return the number of rounds for "auto"."""
        return 1 if n_clients < FEW_CLIENTS else DEFAULT_ROUNDS

    def _simulate(self, protocol, X, y, sample_epsilon):
        n_rounds = self._number_of_rounds(len(X))
        if n_rounds == 1:
            return super()._simulate(protocol, X, y, sample_epsilon)
        rounds: list = []
        budgets = None if sample_epsilon is None else check_budgets(sample_epsilon, len(X))
        order = np.random.default_rng(sampling_seed(self.random_state)).permutation(len(X))
        with one_call():
            for rows in np.split(order, first_of_each_round(len(X), n_rounds)):  # each person takes part once
                own = None if budgets is None else budgets[rows]
                published = next_protocol(rounds, self.prior, protocol)
                rounds += super()._simulate(published, X[rows], y[rows], own)
        return tuple(rounds)

    def _rounds_of(self, reports, on_invalid):
        rounds = as_rounds(reports)
        if rounds is None:
            return super()._rounds_of(reports, on_invalid)
        self._check_aggregate(rounds[0])
        return tuple(rounds)

    def _changeable(self):
        if len(self.rounds_) == 1:
            return super()._changeable()
        model = self._models(*(aggregate for _, aggregate in self.rounds_))[0]
        return [(lambda changed, place=place: [model.with_round(place, changed)], aggregate)
                for place, (_, aggregate) in enumerate(self.rounds_)]

    def _starts(self, protocol, n_models):
        # Later rounds have coordinates of their own, in which the last chains have no meaning.
        return super()._starts(protocol, n_models) if self._number_of_rounds() == 1 else (None,) * n_models

    def _models(self, *rounds):
        return [RoundModel(list(rounds), self.prior)]

    def _describe(self, posterior, models, *rounds):
        posterior = self._informed(models[0], posterior)
        mean, (predictive_coef, predictive_intercept) = posterior.mean(), self._predictive(posterior, *models)
        return {
            "predictive_coef_": predictive_coef,
            "predictive_intercept_": predictive_intercept,
            "coef_": np.atleast_2d(mean["coef"]),
            "coef_std_": np.atleast_2d(posterior.std()["coef"]),
            "intercept_": np.broadcast_to(mean.get("intercept", 0.0), len(predictive_coef)).copy(),
            "covariance_": mean["covariance"],
            "information_": {"coef": np.atleast_2d(posterior.information["coef"])},
            "posterior_": posterior,
            "rounds_": [(aggregate.protocol, aggregate) for aggregate in rounds],
        }

    def _predictive(self, posterior, model):
        """Return coefficients and intercepts of predictions: those at the mode, which predict better than averages.

        The posterior is skewed: the less of the covariance of x the reports tell in a direction, the longer its tail of
        large coefficients.
        """
        mode = model.constrain(model.mode())
        coef = np.atleast_2d(mode["coef"][0])
        return coef, np.broadcast_to(mode["intercept"][0] if "intercept" in mode else 0.0, len(coef)).copy()
