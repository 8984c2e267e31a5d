"""Base class of the Bayesian estimators: fit = privatize, aggregate, infer."""

import warnings
from abc import ABCMeta, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skldp._validation._door import without_mask
from skldp._validation._parameters import check_integer, refuse_unknown, sampling_seed, warn_large_delta
from skldp.analysis._fit_checks import check_fit, warn_of_misfit
from skldp.estimators._budgets import asked, cohorts
from skldp.estimators._report_trust import ReportTrust
from skldp.estimators._streams import Counter, add_up
from skldp.exceptions import InvalidReportError
from skldp.privacy._display import ShowsBudget
from skldp.privacy._spending import Counted, one_call
from skldp.protocols._aggregate import Aggregate, differing_field
from skldp.protocols._base import check_on_invalid, joined
from skldp.protocols._batches import Batches
from skldp.sampling._elements import axis_labels
from skldp.sampling._importance import LARGEST_PARETO_K
from skldp.sampling._inference import check_inference, infer, warn_if_not_converged
from skldp.sampling._posterior import Posterior, stack


class BaseLDPEstimator(ReportTrust, ShowsBudget, Counted, BaseEstimator, metaclass=ABCMeta):
    """Base class of the Bayesian estimators.

    A subclass combines a protocol and a model by five hooks: ``_check`` validates raw records, ``_protocol`` describes
    the collection, ``_counter`` adds reports up, ``_models`` makes the models of an aggregate, and ``_describe`` turns
    their posterior into fitted attributes.
    """

    # Function by which required_reports plans for this estimator; None if it cannot.
    _plan: Any = None
    # What to do if the reports do not fit the model, in sentences.
    _misfit_advice: str = ""
    posterior_: Posterior

    def _check(self, X, y):
        """Return raw records and responses as arrays, and the labels found in them (None if there are none)."""
        return check_array(without_mask(X), dtype=np.float64, estimator=self), None, None

    @abstractmethod
    def _protocol(self, n_features=None, labels=None):
        """Return the protocol for a number of columns.

        ``labels`` are the categories or classes found in the data or the reports, if the estimator has none.
        """

    def _counter(self, protocol, on_invalid):
        """Return the callable that adds up reports of a protocol."""
        return Counter(protocol, on_invalid)

    @abstractmethod
    def _models(self, aggregate):
        """Return the models to sample, one for each independent group of parameters."""

    @abstractmethod
    def _describe(self, posterior, models, aggregate):
        """Return the fitted attributes that summarise the posterior, as a dict."""

    def _warn(self):
        """Warn if the reports of a fit make its result doubtful; called by ``fit`` and ``fit_reports`` at the end."""
        warn_of_misfit(self.fit_check_, type(self).__name__, self._misfit_advice, stacklevel=3)

    def protocol(self, n_features: int = 1) -> Any:
        """Return the public description of the collection.

        Parameters
        ----------
        n_features : int, default=1
            Number of columns of the records.

        Returns
        -------
        Protocol
            Estimators with ``categories`` or ``classes`` must have them set.
        """
        return self._protocol(n_features)

    def fit(self, X: ArrayLike, y: ArrayLike | None = None, *, sample_epsilon: ArrayLike | None = None,
            **unknown: Any) -> Self:
        """Simulate a collection from raw records and infer from its reports.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records. Only the simulated clients use them.
        y : array-like of shape (n_clients,) or (n_clients, n_responses), default=None
            Responses, for the regressions; several only where the class says so. Ignored by the others.
        sample_epsilon : array-like of shape (n_clients,), default=None
            Public personal budgets that replace ``epsilon``; at most 32 distinct values. Clients with a budget of 0 are
            not asked.
        **unknown
            Refused. There are no weights: the aggregator cannot know the weight of the record behind a report.

        Returns
        -------
        self
        """
        refuse_unknown(self, unknown)
        protocol, records, response = self._records(X, y)
        sample_epsilon, records, response = asked(sample_epsilon, records, response)
        self._fit(*self._simulate(protocol, records, response, sample_epsilon))  # raw data ends here
        validate_data(self, X, skip_check_array=True)
        self._shape_like(y)
        self._name_elements()
        self._warn()
        warn_if_not_converged(self.posterior_)
        return self

    def _shape_like(self, y):
        """Give fitted attributes the shape that responses of this shape ask for."""

    def _found(self, protocol):
        """Return what the protocol of reports tells about labels, for an estimator that does not have them."""
        return protocol.labels

    def privatize(self, X: ArrayLike, y: ArrayLike | None = None) -> np.ndarray:
        """Simulate the collection: each record is randomised once, as by its client.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records.
        y : array-like of shape (n_clients,) or (n_clients, n_responses), default=None
            Responses, for the regressions; several only where the class says so. Ignored by the others.

        Returns
        -------
        ndarray of int, shape (n_clients, n_report)
            Reports, as the clients would send them.
        """
        protocol, records, response = self._records(X, y)
        return joined(protocol._draw(records, response, self.random_state))

    def _records(self, X, y):
        """Return the protocol for raw records, and the records and responses as the arrays that it randomises."""
        X, y, labels = self._check(X, y)
        protocol = self._protocol(X.shape[1], labels)
        X, y = protocol._plain(X, y)
        protocol._refuse_unknown(X, y)
        return protocol, X, y

    def _simulate(self, protocol, X, y, sample_epsilon):
        """Return the aggregate of simulated clients, each with its own budget.

        An estimator that collects in rounds returns one aggregate for each round.
        """
        total: Any = 0
        with one_call():
            for part, rows in cohorts(protocol, sample_epsilon, len(X), self._with_epsilon):
                counter = self._counter(part, "raise")
                for reports in part._draw(X[rows], None if y is None else y[rows], self.random_state):
                    total = total + counter(reports)
        return (total.with_batches(Batches.new()),)  # one id instead of one for each chunk

    def _with_epsilon(self, protocol, epsilon):
        """Return the protocol of a cohort with another budget."""
        return protocol.with_epsilon(epsilon)

    def aggregate(self, reports: Any, on_invalid: str = "raise") -> Aggregate:
        """Add reports up into the small statistic that :meth:`fit_reports` needs.

        Parameters
        ----------
        reports : array, DataFrame, iterable of chunks, dask array, or path
            Reports under this estimator's protocol, a row of integers for each client. Every row is checked. Chunks are
            added up in parallel if ``n_jobs`` or ``joblib.parallel_config`` asks for it. A path is that of a file that
            :func:`skldp.protocols.load_reports` reads.
        on_invalid : {"raise", "drop"}, default="raise"
            Whether a report that no honest client could have sent is an error, or is dropped and counted.

        Returns
        -------
        Aggregate
            Small and picklable; ``+`` merges aggregates, also of cohorts with different budgets.
        """
        check_on_invalid(on_invalid)
        return add_up(reports, lambda part: self._counter(self._protocol_of(part), on_invalid), self.n_jobs)

    def fit_reports(self, reports: Any, on_invalid: str = "raise") -> Self:
        """Infer from reports that were collected from clients.

        Parameters
        ----------
        reports : array, DataFrame, iterable of chunks, dask array, Aggregate, or path
            Reports under this estimator's protocol, as a whole, in chunks, already added up, or in a file that
            :func:`skldp.protocols.load_reports` reads.
        on_invalid : {"raise", "drop"}, default="raise"
            Whether a report that no honest client could have sent is an error, or is dropped and counted.

        Returns
        -------
        self
        """
        self._fit(*self._rounds_of(reports, on_invalid))
        self._name_elements()
        self._warn()
        warn_if_not_converged(self.posterior_)
        return self

    def _rounds_of(self, reports, on_invalid):
        """Return the checked aggregate of reports, or one for each round of a collection."""
        aggregate = self.aggregate(reports, on_invalid)
        self._check_aggregate(aggregate)
        return (aggregate,)

    def _fit(self, *rounds):
        """Infer from one aggregate, or from one aggregate for each round of a collection."""
        first, n_reports = rounds[0], sum(aggregate.n_reports for aggregate in rounds)
        if n_reports == 0:
            warnings.warn("There are no reports: the posterior is the prior. Check the source of the reports.",
                          UserWarning, stacklevel=3)
        delta = max(aggregate.delta for aggregate in rounds)
        if delta > 0:
            warn_large_delta(delta, n_reports)
        models = self._models(*rounds)
        posterior = self._infer(models, first.protocol)
        # Draws of a rough Laplace approximation do not show what the model expects.
        rough = posterior.pareto_k > LARGEST_PARETO_K
        draws = [None if rough else start.draws for start in posterior.warm_starts]
        fit_check = check_fit(models, draws, first.protocol)
        # Attributes are set only after all computations, so that an interrupt leaves the estimator unchanged.
        for name, value in {"posterior_": posterior, **self._describe(posterior, models, *rounds)}.items():
            setattr(self, name, value)
        self.fit_check_, self.aggregate_ = fit_check, first
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # set by an earlier fit; reports have no feature names
        self.protocol_ = first.protocol
        self.epsilon_, self.delta_ = max(aggregate.epsilon for aggregate in rounds), delta
        self.n_reports_ = n_reports
        self.n_rejected_ = sum(aggregate.n_rejected for aggregate in rounds)
        self.n_features_in_ = first.protocol.n_features
        return self

    def _name_elements(self):
        """Name the elements of the posterior's parameters by the categories, classes or features, if there are any."""
        names = getattr(self, "categories_", getattr(self, "feature_names_in_", ()))
        labels = axis_labels(self.posterior_.draws, names, getattr(self, "classes_", ()))
        self.posterior_ = replace(self.posterior_, labels=labels)

    def _infer(self, models, protocol):
        seed, inference = sampling_seed(self.random_state), check_inference(self.inference)
        seeds = [seed] if len(models) == 1 else np.random.SeedSequence(seed).generate_state(len(models)).tolist()
        # The walkers of a model share batched calls, so only whole models run in parallel.
        jobs = (delayed(infer)(inference, model, part, self.progress, start)
                for model, part, start in zip(models, seeds, self._starts(protocol, len(models))))
        return stack(Parallel(n_jobs=self.n_jobs)(jobs))

    def _starts(self, protocol, n_models):
        """Return the starts of the chains: with ``warm_start`` and the same protocol those of the last fit, or None."""
        if self.warm_start and hasattr(self, "posterior_") and differing_field(self.protocol_, protocol) is None:
            starts = self.posterior_.warm_starts
            if len(starts) == n_models:
                return starts
        return (None,) * n_models

    def _protocol_of(self, reports):
        """Return the protocol that this estimator expects for rows of reports, or for an aggregate."""
        if isinstance(reports, Aggregate):
            found = self._found(reports.protocol)
            expected = self._protocol(reports.protocol.n_features, (0, 1) if found is None else found)
            return expected._like(reports.protocol)
        labels = self._found(self.protocol_) if hasattr(self, "protocol_") else None
        return self._of_rows(reports, labels)

    def _of_rows(self, reports, labels):
        """Return the protocol whose reports are as wide as these rows."""
        return self._protocol(labels=labels).with_width(reports.shape[1])

    def _check_aggregate(self, aggregate):
        """Raise an error if an aggregate comes from another collection."""
        expected = self._protocol_of(aggregate)
        if type(aggregate.protocol) is not type(expected):
            raise TypeError(
                f"{type(self).__name__} reads reports of {type(expected).__name__}; got "
                f"{type(aggregate.protocol).__name__}. Use the estimator and the parameters that the reports were "
                "made for."
            )
        # Other fields that depend on the cohort are taken from its protocol.
        chosen = self._chosen(expected)
        for found in aggregate.parts:
            name = differing_field(expected, found, chosen)
            if name is not None:
                raise InvalidReportError(
                    f"These reports come from another collection: {name} is {getattr(found, name)!r} there, and this "
                    f"{type(self).__name__} has {getattr(expected, name)!r}. Set the parameters that the reports were "
                    "made with."
                )

    def _chosen(self, protocol):
        """Return the fields that cohorts may differ in, and that are not left at "auto" in this estimator."""
        return {name for name, value in protocol._automatic.items() if getattr(self, name, value) != value}

    def sample_posterior(self, n_samples: int = 1000, random_state: Any = None) -> dict[str, np.ndarray]:
        """Draw parameters from the posterior.

        Parameters
        ----------
        n_samples : int, default=1000
            Number of draws; with replacement above the number of stored draws.
        random_state : None, int, Generator or RandomState, default=None
            Seed of the random choice of draws.

        Returns
        -------
        dict of str to ndarray of shape (n_samples, ...)
        """
        check_is_fitted(self, "posterior_")
        check_integer(n_samples, "n_samples", 1)
        return self.posterior_.sample(n_samples, np.random.default_rng(sampling_seed(random_state)))
