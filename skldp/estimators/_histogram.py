"""Category frequencies with honest uncertainty."""

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skldp._validation._categories import check_list, columns_of, distinct_rows
from skldp._validation._door import as_values
from skldp._validation._parameters import check_fraction, check_integer, check_positive
from skldp.analysis._planning import plan_frequency
from skldp.estimators._base import BaseLDPEstimator
from skldp.estimators._streams import Counter
from skldp.exceptions import InvalidParameterError, PrivacyLeakWarning
from skldp.models.categories._choice import check_likelihood
from skldp.models.categories._likelihoods import unbiased
from skldp.models.categories._model import HistogramModel, histogram_model, likelihoods_of
from skldp.protocols._aggregate import Aggregate
from skldp.protocols._category_protocol import CategoryProtocol
from skldp.protocols._tallies import RowTally


class LDPHistogram(BaseLDPEstimator):
    r"""Frequencies of categories, from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    categories : list or None, default=None
        The public categories: numbers or strings, or rows when the records have several columns. ``None`` reads
        them off the data and warns.
    mechanism : {"auto", "subset", "oue", "rr"}, default="auto"
        Subset selection ("auto"), optimal unary encoding, or randomised response.
    likelihood : {"auto", "exact", "counts"}, default="auto"
        "exact" uses every report; "counts" the number of reports that contain each category and, up to 32 categories,
        each pair of them, whose cost does not grow with the number of clients. For randomised response and subsets of
        one they are the same. "auto" is exact where that is cheap; the choice is in ``likelihood_``.
    concentration : float, default=1.0
        Parameter of the symmetric Dirichlet prior: 1 is uniform on the simplex, 1/2 the reference prior. Under much
        noise it matters: few large and many small categories are estimated better with less than 1 (by a sixth in
        root mean square at epsilon 0.5 and 10,000 clients, four of 16 categories holding 80 %), nearly equal ones
        with 1 or more.
    inference, n_walkers, n_warmup, n_draws, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    frequencies_, frequencies_std_ : ndarray of shape (n_categories,)
        Posterior means and standard deviations.
    point_estimate_ : ndarray of shape (n_categories,)
        Unbiased estimate without a prior; it may leave the simplex.
    categories_ : ndarray of shape (n_categories,) or (n_categories, n_features)
        The categories, in the order of the frequencies.
    mechanism_, likelihood_ : str
        What "auto" chose.
    posterior_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    Notes
    -----
    :math:`\theta \sim \mathrm{Dirichlet}(\alpha)`. Subsets and unary encoding have
    :math:`P(z|\theta) \propto 1 + (e^\epsilon - 1)z\cdot\theta`; randomised response has multinomial counts. Exact
    likelihoods of many rows are sampled with trajectories that follow the likelihood of the counts and an accept step
    that evaluates the exact one.

    References
    ----------
    T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela (2022). Locally differentially private Bayesian inference. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPHistogram
    >>> pets = np.random.default_rng(0).choice(["cat", "dog", "fish"], p=[0.5, 0.4, 0.1], size=(5000, 1))
    >>> model = LDPHistogram(epsilon=1.0, categories=["cat", "dog", "fish"], random_state=0).fit(pets)
    >>> bool(np.abs(model.frequencies_ - [0.5, 0.4, 0.1]).max() < 0.1)
    True
    >>> model.predict([["dog"], ["unicorn"]]).round(1)
    array([0.4, 0. ])
    """

    def __init__(self, *, epsilon: float = 1.0, categories: Any = None, mechanism: str = "auto",
                 likelihood: str = "auto", concentration: float = 1.0, inference: str = "mcmc",
                 n_walkers: int | str = "auto", n_warmup: int = 100, n_draws: int = 3000, random_state: Any = None,
                 n_jobs: int | None = None, progress: bool = False, warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.categories = categories
        self.mechanism = mechanism
        self.likelihood = likelihood
        self.concentration = concentration
        self.inference = inference
        self.n_walkers = n_walkers
        self.n_warmup = n_warmup
        self.n_draws = n_draws
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    _plan = staticmethod(plan_frequency)

    def protocol(self, n_features: int = 1) -> CategoryProtocol:
        """Return the public description of the collection; it needs ``categories``.

        Parameters
        ----------
        n_features : int, default=1
            Number of columns of the records; the row is the category.

        Returns
        -------
        CategoryProtocol
        """
        if self.categories is None:
            raise InvalidParameterError("categories must be given: a protocol is public, and so are its categories. "
                                        "Pass categories= to the estimator.")
        return self._protocol_for(self.categories, n_features)

    def _protocol_for(self, categories, n_features):
        mechanism = "subset" if isinstance(self.mechanism, str) and self.mechanism == "auto" else self.mechanism
        known = check_list(categories, n_features)
        return CategoryProtocol(epsilon=self.epsilon, categories=tuple(known.tolist()), mechanism=mechanism,
                                n_features=n_features)

    def privatize(self, X: ArrayLike, y: object = None) -> np.ndarray:
        """Simulate the collection: each row of X is randomised once, as its client would do it.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records; a row is a category.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        ndarray of int, shape (n_clients, n_report)
            Reports, as they would travel.
        """
        protocol, records = self._protocol_for_records(X)
        return protocol._randomize(records, None, self.random_state)

    def fit(self, X: ArrayLike, y: object = None, *, sample_epsilon: ArrayLike | None = None) -> Self:
        """Simulate a collection from raw records and infer from its reports.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records; a row is a category.
        y : ignored
            Present for scikit-learn's API.
        sample_epsilon : array-like of shape (n_clients,), default=None
            Personal budgets, public, in place of ``epsilon``; at most 32 distinct values.

        Returns
        -------
        self
        """
        protocol, records = self._protocol_for_records(X)
        self.fit_reports(self._simulate(protocol, records, None, sample_epsilon))
        validate_data(self, X, skip_check_array=True)
        return self

    def _protocol_for_records(self, X):
        X = self._check_records(X)
        categories = self.categories
        if categories is None:
            warnings.warn(
                "categories were read off the private data, which publishes them. "
                "Pass categories= to keep the guarantee.",
                PrivacyLeakWarning,
                stacklevel=3,
            )
            categories = distinct_rows(X)
        protocol = self._protocol_for(categories, X.shape[1])
        if (protocol.codes(X) < 0).any():
            raise ValueError("X has values that are none of categories. "
                             "Add them to categories, or leave their rows out.")
        return protocol, X

    def _simulate_cohort(self, protocol, X, y):
        return self._counting(protocol, "raise")(protocol._randomize(X, y, self.random_state))

    def _check_records(self, X):
        return check_array(as_values(X), dtype=None, estimator=self)

    def _counter(self, reports, on_invalid):
        if isinstance(reports, Aggregate):
            return self._counting(self._expected_protocol(reports.protocol), on_invalid)
        return self._counting(self._protocol_of_reports(reports), on_invalid)

    def _protocol_of_reports(self, reports):
        if self.categories is None and hasattr(self, "protocol_"):
            return self._protocol_for(self.protocol_.categories, self.protocol_.n_features)
        return self.protocol(1 if self.categories is None else columns_of(self.categories))

    def _counting(self, protocol, on_invalid):
        return _CategoryCounter(protocol, on_invalid, check_likelihood(self.likelihood).kept_bits)

    def _expected_protocol(self, found):
        # Categories that were read off the data are the reports' own.
        categories = getattr(found, "categories", (0, 1)) if self.categories is None else self.categories
        return self._protocol_for(categories, found.n_features)

    def _models(self, aggregate):
        concentration = check_positive(self.concentration, "concentration")
        return [histogram_model(aggregate, concentration, self.likelihood)]

    def _influenced_models(self, aggregate):
        # Rows have been given up by then.
        return [histogram_model(aggregate, check_positive(self.concentration, "concentration"))]

    def _describe(self, posterior, aggregate):
        protocol = aggregate.protocol
        parts = list(aggregate.parts.items())
        likelihoods = likelihoods_of(aggregate, check_likelihood(self.likelihood))
        return {
            "frequencies_": posterior.mean()["frequencies"],
            "frequencies_std_": posterior.std()["frequencies"],
            "point_estimate_": _pooled_estimate(parts),
            "categories_": np.array(check_list(protocol.categories, protocol.n_features).tolist())
            if protocol.n_features > 1 else check_list(protocol.categories),
            "mechanism_": protocol.mechanism,
            "likelihood_": HistogramModel(likelihoods).likelihood,
        }

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Posterior mean frequency of the category of each row, 0 for an unknown one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "posterior_")
        X = validate_data(self, self._check_records(X), dtype=None, reset=False)
        codes = self.protocol_.codes(X)
        return np.where(codes < 0, 0.0, self.frequencies_[codes])

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Logarithm of the posterior mean frequency of the category of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict(X))

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Mean logarithm of the posterior mean frequency of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def top_k_probability(self, k: int) -> np.ndarray:
        """Posterior probability that each category is among the k most frequent.

        Parameters
        ----------
        k : int
            How many places at the top.

        Returns
        -------
        ndarray of shape (n_categories,)
        """
        ranks = self._ranks()
        check_integer(k, "k", 1, ranks.shape[1])
        return (ranks <= k).mean(axis=0)

    def rank_interval(self, level: float = 0.9) -> np.ndarray:
        """Central credible interval of the rank of each category, 1 being the most frequent.

        Parameters
        ----------
        level : float, default=0.9
            Posterior probability inside.

        Returns
        -------
        ndarray of int, shape (n_categories, 2)
        """
        check_fraction(level, "level")
        ends = np.quantile(self._ranks(), [(1 - level) / 2, (1 + level) / 2], axis=0, method="closest_observation")
        return ends.T.astype(int)

    def _ranks(self):
        check_is_fitted(self, "posterior_")
        draws = self.posterior_.draws["frequencies"]
        order = np.argsort(-draws.reshape(-1, draws.shape[-1]), axis=1)
        return np.argsort(order, axis=1) + 1

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


@dataclass(frozen=True)
class _CategoryCounter(Counter):
    """Keep the rows of reports that are few, so that the exact likelihood can be had, and the counts of many."""

    protocol: CategoryProtocol
    on_invalid: str
    most_bits: float

    def __call__(self, reports):
        if isinstance(reports, Aggregate):
            return reports
        return self.protocol.aggregate(reports, self.on_invalid, keep_rows=self.most_bits)

    def trim(self, aggregate):
        """Give up the rows of a cohort that has grown large."""
        parts = {protocol: tally.without_rows() if self._is_large(tally) else tally
                 for protocol, tally in aggregate.parts.items()}
        return Aggregate(parts, aggregate.n_rejected, aggregate.batches)

    def _is_large(self, tally):
        return isinstance(tally, RowTally) and tally.n_reports * tally.width > self.most_bits


def _pooled_estimate(parts):
    """Unbiased estimates of the cohorts, weighted by their precision (inverse variance at frequency zero)."""
    estimates, weights = [], []
    for protocol, tally in parts:
        p, q = protocol.randomizer.p, protocol.randomizer.q
        estimates.append(unbiased(tally.sums, tally.n_reports, p, q))
        weights.append(tally.n_reports * (p - q) ** 2 / max(q * (1 - q), 1e-12))
    return np.average(estimates, axis=0, weights=weights if sum(weights) else None)
