"""Cohorts of clients with equal personal budgets."""

import numpy as np

from skldp._validation._parameters import check_epsilon
from skldp.exceptions import InvalidParameterError

MOST_BUDGETS = 32


def asked(sample_epsilon, *arrays):
    """Return personal budgets and rows of arrays without those of clients who are not asked: their budget is 0.

    Examples
    --------
    >>> from skldp.estimators._budgets import asked
    >>> import numpy as np
    >>> asked([1.0, 0.0, 2.0], np.arange(3), None)
    (array([1., 2.]), array([0, 2]), None)
    """
    if sample_epsilon is None:
        return None, *arrays
    budgets = check_budgets(sample_epsilon, len(arrays[0]))
    rows = budgets != 0
    return budgets[rows], *(None if one is None else one[rows] for one in arrays)


def cohorts(protocol, sample_epsilon, n_clients, with_epsilon):
    """Return the protocol and the rows of each cohort of clients: one for each distinct budget, which are public.

    ``with_epsilon`` maps the protocol and a budget to that of a cohort.

    Examples
    --------
    >>> from skldp.estimators._budgets import cohorts
    >>> from skldp.protocols import ValueProtocol
    >>> [(part.epsilon, rows.tolist()) for part, rows in cohorts(
    ...     ValueProtocol(), [0.5, 4.0, 0.5], 3, ValueProtocol.with_epsilon)]
    [(0.5, [0, 2]), (4.0, [1])]
    """
    if sample_epsilon is None or not n_clients:
        return [(protocol, slice(None))]
    distinct, place = np.unique(check_budgets(sample_epsilon, n_clients), return_inverse=True)
    if len(distinct) > MOST_BUDGETS:
        raise InvalidParameterError(
            f"sample_epsilon has {len(distinct)} distinct values, and each makes a separate cohort; at most "
            f"{MOST_BUDGETS} are allowed. Round the budgets down to fewer values."
        )
    protocols = [with_epsilon(protocol, check_epsilon(float(value), "sample_epsilon")) for value in distinct]
    return [(part, np.flatnonzero(place == k)) for k, part in enumerate(protocols)]


def check_budgets(sample_epsilon, n_clients):
    """Return personal budgets as an array with one number for each client."""
    budgets = np.asarray(sample_epsilon)
    if budgets.dtype == object:
        try:
            budgets = budgets.astype(float)  # a column of a table with several types
        except (TypeError, ValueError):
            pass
    if budgets.shape != (n_clients,) or budgets.dtype.kind not in "iuf":
        raise InvalidParameterError(
            f"sample_epsilon must contain one number for each of the {n_clients} clients, got an array of shape "
            f"{budgets.shape} and dtype {budgets.dtype}."
        )
    return budgets
