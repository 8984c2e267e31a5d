"""Estimator of category frequencies."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skldp._validation._categories import columns_of, distinct_rows
from skldp._validation._door import as_values
from skldp._validation._parameters import check_fraction, check_integer
from skldp.analysis._planning import plan_frequency
from skldp.estimators._attributes import AttributeTables, are_attributes, attribute_protocol, describe_attributes
from skldp.estimators._base import BaseLDPEstimator
from skldp.estimators._streams import Counter
from skldp.exceptions import InvalidParameterError, PrivacyLeakWarning
from skldp.models.categories._choice import LikelihoodChoice, check_likelihood
from skldp.models.categories._joint import JointModel
from skldp.models.categories._likelihoods import unbiased
from skldp.models.categories._model import histogram_model
from skldp.models.categories._prior import check_concentration
from skldp.protocols._aggregate import Aggregate
from skldp.protocols._category_protocol import AUTOMATIC, CategoryProtocol, automatic_mechanism
from skldp.protocols._pair_protocol import PairProtocol
from skldp.protocols._tallies import RowTally


class LDPHistogram(AttributeTables, BaseLDPEstimator):
    r"""Frequencies of categories, or of several categorical attributes, from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    categories : list or None, default=None
        The public categories: numbers or strings. For records of several columns either a list of lists, the
        categories of each attribute, or a list of tuples, the rows that are the categories. ``None`` takes the
        categories, or the rows, from the data and warns.
    mechanism : {"auto", "subset", "block", "oue", "rr"}, default="auto"
        Subset selection, a block design, optimal unary encoding, or randomised response. "auto" is subset selection up
        to 1,024 categories, and a block design above. Between 1,025 and 16,384 categories it remains subset selection
        if a block design has more than 1.1 times its variance, which happens at epsilon 5 and more.
    likelihood : {"auto", "exact", "counts"}, default="auto"
        "exact" uses every single report. "counts" uses only the number of reports that contain each category and, up to
        32 categories, each pair of them; its cost does not grow with the number of clients. For randomised response,
        block designs and subsets of size one they are the same. "auto" is exact if that is cheap; the choice is in
        ``likelihood_``.
    concentration : "auto" or float, default="auto"
        Parameter of the symmetric Dirichlet prior. A few large and many rare categories have a small one, nearly equal
        categories a large one. "auto" learns it: up to 64 categories together with the frequencies, above by its most
        probable value given the reports. A number fixes it: 1 is uniform on the simplex, 1/2 the reference prior.
    inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    frequencies_, frequencies_std_ : ndarray of shape (n_categories,)
        Posterior means and standard deviations.
    point_estimate_ : ndarray of shape (n_categories,)
        Unbiased estimate without a prior; it may lie outside the simplex. These three are lists of arrays, one for each
        attribute, if there are several, and so is ``categories_``.
    categories_ : ndarray of shape (n_categories,) or (n_categories, n_features)
        The categories, in the order of the frequencies.
    mechanism_, likelihood_ : str
        What "auto" chose. The likelihood is "marginals" above 2,048 categories (see Notes).
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    Notes
    -----
    :math:`\theta \sim \mathrm{Dirichlet}(\alpha)`, and :math:`\log\alpha \sim N(\log\frac12, 1.5^2)` between 0.005
    and 20 if it is learned (from 2/d on, if there are more than 400 categories d). Subsets and unary encoding have
    :math:`P(z|\theta) \propto 1 + (e^\epsilon - 1)z\cdot\theta`; randomised response has multinomial counts. For exact
    likelihoods of rows, trajectories use a second-order expansion and the accept step evaluates the exact likelihood.

    *Many categories.* Above 2,048 categories chains would take minutes, and both values of ``inference`` use an
    approximation in O(d): each frequency has its posterior given the number of reports that contain its own category,
    under the prior with the most probable concentration, and the frequencies of a draw sum to one. It takes seconds for
    100,000 categories and half a minute for a million. ``posterior_`` then has one chain of 127 to 997 stratified
    draws. ``benchmarks/bench_wide.py`` compares it with chains and measures the coverage of its intervals.

    *Several attributes.* Each client reports one pair of attributes, or a single one, chosen by a coin, with its whole
    budget (:class:`skldp.protocols.PairProtocol`); two attributes are always reported together. All tables are those of
    one joint table of at most 100,000 cells, in which the probabilities of reports are linear. Its 127 draws
    approximate the posterior, for both values of ``inference``: the frequencies of each attribute are drawn first,
    under the prior with the given or the most probable concentration, and then a weighted likelihood bootstrap of the
    table with these marginals, under a Dirichlet prior of 1/20 for each cell of the largest pair table.
    :meth:`predict` returns joint frequencies, :meth:`table` those of two attributes.

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

    Two attributes:

    >>> rows = np.column_stack([pets[:, 0], np.where(pets[:, 0] == "fish", "tank", "house")])
    >>> lists = [["cat", "dog", "fish"], ["house", "tank"]]
    >>> model = LDPHistogram(epsilon=2.0, categories=lists, random_state=0).fit(rows)
    >>> model.table(0, 1).shape, [len(one) for one in model.frequencies_]
    ((3, 2), [3, 2])
    """

    def __init__(self, *, epsilon: float = 1.0, categories: Any = None, mechanism: str = "auto",
                 likelihood: str = "auto", concentration: float | str = "auto", inference: Any = "mcmc",
                 random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.categories = categories
        self.mechanism = mechanism
        self.likelihood = likelihood
        self.concentration = concentration
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    _plan = staticmethod(plan_frequency)
    _misfit_advice = ("No frequencies explain them: some reports are forged, or were made with other categories or "
                      "another protocol. Check their source; check_reports tests single reports.")

    def _check(self, X, y):
        X = check_array(as_values(X), dtype=None, estimator=self)
        if self.categories is not None:
            return X, None, None
        warnings.warn("categories were read off the private data, which publishes them. "
                      "Pass categories= to keep the guarantee.", PrivacyLeakWarning, stacklevel=4)
        return X, None, distinct_rows(X)

    def _protocol(self, n_features=None, labels=None):
        categories = labels if self.categories is None else self.categories
        if categories is None:
            raise InvalidParameterError("categories must be given, because a protocol is public and contains its "
                                        "categories. Pass categories= to the estimator.")
        if are_attributes(self.categories):
            return attribute_protocol(self.epsilon, self.categories, self.mechanism, n_features)
        n_features = columns_of(categories) if n_features is None else n_features
        is_auto = isinstance(self.mechanism, str) and self.mechanism == "auto"
        mechanism = automatic_mechanism(self.epsilon, len(categories)) if is_auto else self.mechanism
        return CategoryProtocol(epsilon=self.epsilon, categories=categories, mechanism=mechanism, n_features=n_features)

    def _protocol_of(self, reports):
        expected = super()._protocol_of(reports)
        found = reports.protocol if isinstance(reports, Aggregate) else None
        # "auto" may choose either of two mechanisms, and accepts aggregates of both.
        if (self.mechanism == "auto" and isinstance(expected, CategoryProtocol) and isinstance(found, CategoryProtocol)
                and found.mechanism in AUTOMATIC - {expected.mechanism}):
            return CategoryProtocol(epsilon=expected.epsilon, categories=expected.categories,
                                    mechanism=found.mechanism, n_features=expected.n_features)
        return expected

    def _counter(self, protocol, on_invalid):
        if not isinstance(protocol, CategoryProtocol):
            return super()._counter(protocol, on_invalid)
        return CategoryCounter(protocol, on_invalid, check_likelihood(self.likelihood))

    def _check_aggregate(self, aggregate):
        super()._check_aggregate(aggregate)
        if check_likelihood(self.likelihood).needs_rows and not all(
                isinstance(protocol, PairProtocol) or protocol.randomizer.counts_suffice or isinstance(tally, RowTally)
                for protocol, tally in aggregate.parts.items()):
            raise InvalidParameterError(
                'likelihood="exact" needs the single reports, but this aggregate kept their counts only. '
                'Aggregate the reports again, or use likelihood="counts".'
            )

    def _models(self, aggregate):
        concentration = check_concentration(self.concentration)
        if not isinstance(aggregate.protocol, CategoryProtocol):
            return [JointModel(aggregate, concentration)]
        return [histogram_model(aggregate, concentration, self.likelihood)]

    def _describe(self, posterior, models, aggregate):
        protocol, (model,) = aggregate.protocol, models
        if not isinstance(protocol, CategoryProtocol):
            return describe_attributes(posterior, aggregate)
        return {
            "frequencies_": posterior.mean()["frequencies"],
            "frequencies_std_": posterior.std()["frequencies"],
            "point_estimate_": _pooled_estimate(aggregate.parts.items()),
            "categories_": np.array(protocol.categories) if protocol.n_features > 1 else protocol.known_categories,
            "mechanism_": protocol.mechanism,
            "likelihood_": model.likelihood,
        }

    def predict(self, X: ArrayLike) -> np.ndarray:
        """Return the posterior mean frequency of the category of each row, 0 for an unknown category.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Records.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self, "posterior_")
        X = validate_data(self, check_array(as_values(X), dtype=None, estimator=self), dtype=None, reset=False)
        codes = self.protocol_.codes(X)
        if not self._has_attributes():
            return np.where(codes < 0, 0.0, self.frequencies_[codes])
        joint = self._mean_frequencies().reshape(self.protocol_.shape)
        return np.where((codes < 0).any(axis=1), 0.0, joint[tuple(codes.T)])

    def _name_elements(self):
        if not self._has_attributes():
            super()._name_elements()

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the logarithm of the posterior mean frequency of the category of each row.

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
        """Return the mean logarithm of the posterior mean frequency of the rows of X.

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
        """Return the posterior probability that each category is among the k most frequent.

        Parameters
        ----------
        k : int
            Number of most frequent categories.

        Returns
        -------
        ndarray of shape (n_categories,)
        """
        draws = self._draws()
        check_integer(k, "k", 1, draws.shape[1])
        total = np.zeros(draws.shape[1])
        for one in draws:
            total[np.argpartition(-one, k - 1)[:k]] += 1
        return total / len(draws)

    def rank_interval(self, level: float = 0.9) -> np.ndarray:
        """Return the central credible interval of the rank of each category; rank 1 is the most frequent.

        Parameters
        ----------
        level : float, default=0.9
            Posterior probability inside.

        Returns
        -------
        ndarray of int, shape (n_categories, 2)
        """
        check_fraction(level, "level")
        draws = self._draws()
        ranks = np.empty(draws.shape, dtype=np.int32)  # half the memory of the draws, of which there may be 1 GB
        for row, one in zip(ranks, draws):
            row[np.argsort(-one)] = np.arange(1, len(one) + 1)
        ends = np.quantile(ranks, [(1 - level) / 2, (1 + level) / 2], axis=0, method="closest_observation")
        return ends.T.astype(int)

    def _draws(self):
        check_is_fitted(self, "posterior_")
        draws = self.posterior_.draws["frequencies"]
        return draws.reshape(-1, draws.shape[-1])

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


@dataclass(frozen=True)
class CategoryCounter(Counter):
    """Callable that adds up one chunk of reports, and keeps single rows only if there are few reports."""

    protocol: CategoryProtocol
    on_invalid: str
    choice: LikelihoodChoice

    def __call__(self, reports):
        if isinstance(reports, Aggregate):
            return reports
        return self.protocol.aggregate(reports, self.on_invalid, keep_rows=self.choice.kept_bits)

    def trim(self, aggregate):
        """Return an aggregate without the rows of cohorts that are too large for them."""
        parts = {protocol: tally.without_rows() if self._is_large(tally) else tally
                 for protocol, tally in aggregate.parts.items()}
        return Aggregate(parts, aggregate.n_rejected, aggregate.batches)

    def _is_large(self, tally):
        return isinstance(tally, RowTally) and not self.choice.keeps(tally.n_reports * tally.width)


def _pooled_estimate(parts):
    """Return the unbiased estimates of the cohorts, weighted by their precision at frequency zero."""
    estimates, weights = [], []
    for protocol, tally in parts:
        mechanism = protocol.randomizer
        p, q = mechanism.p, mechanism.q
        estimates.append(unbiased(mechanism.category_counts(tally.sums), tally.n_reports, p, q))
        weights.append(tally.n_reports * (p - q) ** 2 / max(q * (1 - q), 1e-12))
    return np.average(estimates, axis=0, weights=weights if sum(weights) else None)
