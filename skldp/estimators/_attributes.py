"""Tables and associations of several attributes, from draws of their joint frequencies."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skldp._validation._parameters import check_fraction, check_integer
from skldp.estimators._synthetic import Synthetic
from skldp.exceptions import InvalidParameterError
from skldp.models.categories._attribute_marginals import pooled_marginals
from skldp.protocols._pair_protocol import PairProtocol


class AttributeTables(Synthetic):
    """Methods of a histogram of several attributes."""

    posterior_: Any
    protocol_: Any
    categories_: Any

    def table(self, a: int | str, b: int | str, level: float | None = None) -> Any:
        """Return the joint frequencies of two attributes.

        Parameters
        ----------
        a, b : int or str
            Positions or names of two columns.
        level : float or None, default=None
            Posterior probability inside of central intervals, if they are wanted.

        Returns
        -------
        ndarray of shape (K_a, K_b), or tuple of three of them
            Posterior means, or with ``level`` posterior means, lower ends and upper ends.
        """
        tables = self._pair_draws(a, b)
        return _summary(tables, level)

    def association(self, a: int | str, b: int | str, level: float = 0.9) -> dict[str, tuple]:
        r"""Return the mutual information and Cramér's V of two attributes, with intervals.

        Parameters
        ----------
        a, b : int or str
            Positions or names of two columns.
        level : float, default=0.9
            Posterior probability inside of central intervals.

        Returns
        -------
        dict of str to tuple of three floats
            ``"mutual_information"``, in nats, and ``"cramers_v"``: posterior mean, lower and upper end.

        Notes
        -----
        Both are zero for independent attributes and cannot be negative, so noise in a table makes them larger: the
        intervals are honest only if they are clearly above zero.
        """
        tables = self._pair_draws(a, b)
        product = tables.sum(axis=2, keepdims=True) * tables.sum(axis=1, keepdims=True)
        with np.errstate(all="ignore"):
            information = np.where(tables > 0, tables * np.log(tables / product), 0.0).sum(axis=(1, 2))
            squares = np.where(product > 0, (tables - product) ** 2 / product, 0.0).sum(axis=(1, 2))
        v = np.sqrt(squares / max(min(tables.shape[1:]) - 1, 1))
        return {name: tuple(map(float, _summary(values, level)))
                for name, values in (("mutual_information", information), ("cramers_v", v))}

    def _sample(self, n_samples, rng):
        mean = self._mean_frequencies()
        codes = rng.choice(len(mean), size=n_samples, p=mean / mean.sum())
        if not self._has_attributes():
            return np.asarray(self.categories_)[codes].reshape(n_samples, -1)
        places = np.unravel_index(codes, self.protocol_.shape)
        columns = [np.asarray(known)[place] for known, place in zip(self.categories_, places)]
        kinds = {column.dtype.kind for column in columns}
        return np.stack([column if len(kinds) == 1 else column.astype(object) for column in columns], axis=1)

    def _has_attributes(self):
        return isinstance(self.protocol_, PairProtocol)

    def _mean_frequencies(self):
        """Posterior mean frequencies of all categories, or of all combinations of categories."""
        return self.posterior_.mean()["frequencies"]

    def _pair_draws(self, a, b):
        """Return draws of the joint frequencies of two attributes, shape (n, K_a, K_b)."""
        check_is_fitted(self, "posterior_")
        if not self._has_attributes():
            raise InvalidParameterError("This histogram has one attribute. Pass categories as a list of lists, one for "
                                        "each column of X.")
        a, b = self._position(a), self._position(b)
        if a == b:
            raise InvalidParameterError("a and b must be two different attributes.")
        shape = self.protocol_.shape
        draws = self.posterior_.draws["frequencies"].reshape(-1, *shape)
        others = tuple(axis + 1 for axis in range(len(shape)) if axis not in (a, b))
        tables = draws.sum(axis=others)
        return tables if a < b else tables.transpose(0, 2, 1)

    def _position(self, column):
        names = list(getattr(self, "feature_names_in_", ()))
        if isinstance(column, str):
            if column not in names:
                raise InvalidParameterError(f"There is no column {column!r}; the columns are {names}.")
            return names.index(column)
        n_columns = len(self.protocol_.shape)
        check_integer(column, "the position of an attribute", -n_columns, n_columns - 1)
        return int(column) % n_columns


def are_attributes(categories):
    """Whether categories are lists, one for each of several attributes, and not rows, which are tuples."""
    if categories is None or isinstance(categories, (str, bytes)) or not hasattr(categories, "__len__"):
        return False
    kinds = (list, range, np.ndarray)
    return len(categories) > 1 and all(isinstance(part, kinds) and np.ndim(part) == 1 for part in categories)


def attribute_protocol(epsilon, categories, mechanism, n_features):
    """Return the protocol of several attributes; raise an error if the parameters do not fit."""
    if mechanism not in ("auto", "block"):
        raise InvalidParameterError(f'mechanism must be "auto" or "block" for several attributes, got {mechanism!r}.')
    if n_features is not None and n_features != len(categories):
        raise InvalidParameterError(f"categories has {len(categories)} lists for {n_features} columns. Give one for "
                                    "each column.")
    return PairProtocol(epsilon=epsilon, categories=tuple(tuple(np.asarray(part, dtype=object).tolist())
                                                          for part in categories))


def describe_attributes(posterior, aggregate):
    """Return the fitted attributes of a histogram of several attributes."""
    protocol = aggregate.protocol
    draws = posterior.draws["frequencies"].reshape(-1, *protocol.shape)
    axes = range(len(protocol.shape))
    marginals = [draws.sum(axis=tuple(other + 1 for other in axes if other != axis)) for axis in axes]
    return {
        "frequencies_": [one.mean(axis=0) for one in marginals],
        "frequencies_std_": [one.std(axis=0) for one in marginals],
        "point_estimate_": [estimate for estimate, _, _ in pooled_marginals(aggregate)],
        "categories_": list(protocol.known_categories),
        "mechanism_": "block",
        "likelihood_": "exact",
    }


def _summary(values, level):
    """Return the mean over draws, or with a level the mean and the ends of central intervals."""
    if level is None:
        return values.mean(axis=0)
    check_fraction(level, "level")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return values.mean(axis=0), low, high
