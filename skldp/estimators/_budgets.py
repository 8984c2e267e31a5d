"""Personal budgets: one cohort for each."""

import numpy as np

from skldp._validation._parameters import check_epsilon
from skldp.exceptions import InvalidParameterError

MOST_BUDGETS = 32


def cohorts(protocol, sample_epsilon, n_clients):
    """Split clients by their budgets.

    Parameters
    ----------
    protocol : Protocol
        What a client without a budget of its own runs.
    sample_epsilon : None or array-like of shape (n_clients,)
        Budgets of the clients. They are public.
    n_clients : int
        Number of clients.

    Returns
    -------
    list of (Protocol, slice or ndarray of int)
        Each cohort's protocol and its rows.

    Examples
    --------
    >>> from skldp.estimators._budgets import cohorts
    >>> from skldp.protocols import ValueProtocol
    >>> [(part.epsilon, rows.tolist()) for part, rows in cohorts(ValueProtocol(), [0.5, 4.0, 0.5], 3)]
    [(0.5, [0, 2]), (4.0, [1])]
    """
    if sample_epsilon is None:
        return [(protocol, slice(None))]
    budgets = np.asarray(sample_epsilon)
    if budgets.dtype == object:
        try:
            budgets = budgets.astype(float)  # a column of a mixed table
        except (TypeError, ValueError):
            pass
    if budgets.shape != (n_clients,) or budgets.dtype.kind not in "iuf":
        raise InvalidParameterError(
            f"sample_epsilon must hold one number for each of the {n_clients} clients, got an array of shape "
            f"{budgets.shape} and dtype {budgets.dtype}."
        )
    distinct, place = np.unique(budgets, return_inverse=True)
    if len(distinct) > MOST_BUDGETS:
        raise InvalidParameterError(
            f"sample_epsilon has {len(distinct)} distinct values, and each is a cohort of its own; at most "
            f"{MOST_BUDGETS} are handled. Round the budgets down to fewer values."
        )
    protocols = [protocol.with_epsilon(check_epsilon(float(value), "sample_epsilon")) for value in distinct]
    return [(part, np.flatnonzero(place == k)) for k, part in enumerate(protocols)]
