"""The shape of every Bayesian estimator: fit = privatize, aggregate, infer."""

import math
import warnings
from abc import ABCMeta, abstractmethod

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from skldp._validation import check_integer, warn_large_delta
from skldp.exceptions import InvalidParameterError
from skldp.protocols._aggregate import Aggregate
from skldp.sampling._posterior import stack
from skldp.sampling._run import sample


class BaseLDPEstimator(BaseEstimator, metaclass=ABCMeta):
    """What Bayesian estimators share.

    A subclass names a protocol (:meth:`protocol`) and models (``_models``), and turns a posterior into fitted
    attributes (``_describe``).
    """

    @abstractmethod
    def protocol(self, n_features=1):
        """Return the public description of the collection.

        Parameters
        ----------
        n_features : int, default=1
            Number of columns of the records.

        Returns
        -------
        Protocol
        """

    @abstractmethod
    def _models(self, aggregate):
        """The models to sample, one for each independent group of parameters."""

    @abstractmethod
    def _describe(self, posterior, aggregate):
        """Fitted attributes that summarise the posterior, as a dict."""

    def fit(self, X, y=None):
        """Simulate a collection from raw records and infer from its reports.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records. They are used by :meth:`privatize` alone.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        self
        """
        reports = self.privatize(X)  # raw data ends here
        self.fit_reports(reports)
        validate_data(self, X, skip_check_array=True)
        return self

    def privatize(self, X, y=None):
        """Simulate the collection: each row of X is randomised once, as its client would do it.

        Parameters
        ----------
        X : array-like of shape (n_clients, n_features)
            Records.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        ndarray of int, shape (n_clients, n_report)
            Reports, as they would travel.
        """
        X = self._check_records(X)
        return self.protocol(X.shape[1])._randomize(X, None, self.random_state)

    def aggregate(self, reports, on_invalid="raise"):
        """Add reports up into the small statistic that :meth:`fit_reports` needs.

        Parameters
        ----------
        reports : array-like of int, shape (n, n_report)
            Reports under this estimator's protocol. Every row is checked.
        on_invalid : {"raise", "drop"}, default="raise"
            Whether a report that no honest client could have sent is an error, or is left out and counted.

        Returns
        -------
        Aggregate
            Small and picklable; ``+`` merges, also with aggregates of cohorts with other budgets.
        """
        reports = np.asarray(reports)
        if reports.ndim == 1:
            reports = reports[:, None]
        return self._protocol_of_reports(reports).aggregate(reports, on_invalid)

    def fit_reports(self, reports, on_invalid="raise"):
        """Infer from reports that were collected from clients.

        Parameters
        ----------
        reports : array, DataFrame, iterable of chunks, or Aggregate
            Reports under this estimator's protocol, whole, in pieces, or added up already.
        on_invalid : {"raise", "drop"}, default="raise"
            Whether a report that no honest client could have sent is an error, or is left out and counted.

        Returns
        -------
        self
        """
        aggregate = self._aggregate_all(reports, on_invalid)
        self._check_aggregate(aggregate)
        if aggregate.n_reports == 0:
            warnings.warn("There is not a single report: the posterior is the prior.", UserWarning, stacklevel=2)
        if aggregate.delta > 0:
            warn_large_delta(aggregate.delta, aggregate.n_reports)
        posterior = self._infer(aggregate)
        # Nothing is stored before everything is there: an interrupt leaves the estimator as it was.
        for name, value in self._describe(posterior, aggregate).items():
            setattr(self, name, value)
        self.posterior_ = posterior
        self.protocol_ = aggregate.protocol
        self.epsilon_, self.delta_ = aggregate.epsilon, aggregate.delta
        self.n_reports_, self.n_rejected_ = aggregate.n_reports, aggregate.n_rejected
        self.n_features_in_ = aggregate.protocol.n_features
        return self

    def sample_posterior(self, n_samples=1000, random_state=None):
        """Draw parameters from the posterior.

        Parameters
        ----------
        n_samples : int, default=1000
            Number of draws; past the number that is stored, with replacement.
        random_state : None, int, Generator or RandomState
            Fixes which draws.

        Returns
        -------
        dict of str to ndarray of shape (n_samples, ...)
        """
        check_is_fitted(self, "posterior_")
        check_integer(n_samples, "n_samples", 1)
        return self.posterior_.sample(n_samples, np.random.default_rng(sampling_seed(random_state)))

    def _check_records(self, X):
        return check_array(X, dtype=np.float64, estimator=self)

    def _protocol_of_reports(self, reports):
        return self.protocol(reports.shape[1])

    def _aggregate_all(self, reports, on_invalid):
        if isinstance(reports, Aggregate):
            return reports
        if hasattr(reports, "__array__") or _is_rows(reports):
            return self.aggregate(reports, on_invalid)
        total = 0
        for chunk in reports:
            total = total + (chunk if isinstance(chunk, Aggregate) else self.aggregate(chunk, on_invalid))
        if not isinstance(total, Aggregate):
            raise InvalidParameterError("The stream of reports is empty. Pass at least one chunk, even without rows.")
        return total

    def _check_aggregate(self, aggregate):
        expected = self.protocol(aggregate.protocol.n_features)
        if type(aggregate.protocol) is not type(expected):
            raise TypeError(
                f"{type(self).__name__} reads reports of {type(expected).__name__}; "
                f"got {type(aggregate.protocol).__name__}."
            )

    def _infer(self, aggregate):
        seed = sampling_seed(self.random_state)
        options = {"inference": self.inference, "n_walkers": self.n_walkers, "n_warmup": self.n_warmup,
                   "n_draws": self.n_draws, "progress": self.progress}
        models = self._models(aggregate)
        seeds = [seed] if len(models) == 1 else np.random.SeedSequence(seed).generate_state(len(models)).tolist()
        # Walkers share one batched call already, so what can run side by side is models.
        jobs = (delayed(sample)(model, seed=part, **options) for model, part in zip(models, seeds))
        return stack(Parallel(n_jobs=self.n_jobs)(jobs))

    def __repr__(self, N_CHAR_MAX=700):
        text = super().__repr__(N_CHAR_MAX)
        no_privacy = isinstance(self.epsilon, float) and math.isinf(self.epsilon)
        return f"{text}  # no privacy" if no_privacy else text


def sampling_seed(random_state):
    """An integer seed for sampling, or None for fresh entropy; a generator is asked for one draw."""
    if random_state is None or isinstance(random_state, (int, np.integer)):
        return None if random_state is None else int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise InvalidParameterError(
        f"random_state must be None, an int, or a NumPy Generator or RandomState, got {random_state!r}."
    )


def _is_rows(reports):
    """Whether a list holds rows of integers rather than chunks."""
    if not isinstance(reports, (list, tuple)) or len(reports) == 0:
        return False
    return not isinstance(reports[0], Aggregate) and np.ndim(reports[0]) <= 1
