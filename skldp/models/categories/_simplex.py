"""Projection of estimated frequencies on the simplex."""

import numpy as np
from numpy.typing import ArrayLike


def project_on_simplex(estimate: ArrayLike) -> np.ndarray:
    r"""Return the nearest point of the simplex in least squares: the usual correction of an unbiased estimate.

    Parameters
    ----------
    estimate : array-like of shape (n_categories,)
        Estimated frequencies, which may be negative and need not sum to one.

    Returns
    -------
    ndarray of shape (n_categories,)

    Notes
    -----
    :math:`\max(x_k - \tau, 0)` with :math:`\tau` such that the sum is one, found on the sorted entries.

    Examples
    --------
    >>> from skldp import project_on_simplex
    >>> project_on_simplex([0.9, 0.3, -0.2])
    array([0.8, 0.2, 0. ])
    """
    estimate = np.asarray(estimate, dtype=float)
    descending = np.sort(estimate)[::-1]
    excess = (np.cumsum(descending) - 1) / np.arange(1, len(descending) + 1)
    return np.maximum(estimate - excess[np.flatnonzero(descending > excess)[-1]], 0.0)
