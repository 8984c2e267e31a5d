"""Counts of categories in reports, compared with those of the nearest frequencies."""

import numpy as np

from skldp.models._residuals import Residuals
from skldp.models.categories._simplex import project_on_simplex


def category_residuals(likelihoods):
    r"""Return the residuals of the counts of all categories, over all cohorts; None without reports.

    Parameters
    ----------
    likelihoods : list
        One for each protocol, with the attributes ``sums``, ``n_reports``, ``p`` and ``q``.

    Returns
    -------
    Residuals or None

    Notes
    -----
    Frequencies can explain any counts, except that none is negative and that their sum is one. So the counts are
    compared with those of the nearest frequencies, which do not depend on a prior. With the unbiased estimate
    :math:`x = \theta + e`, the projection on the simplex is :math:`\max(x_k - \tau, 0)` and its residual
    :math:`\min(x_k, \tau)`. Because :math:`\sum_k\max(\theta_k + e_k - \max_le_l, 0) \le 1`, :math:`\tau` is at most
    the largest :math:`e_l`, and by the same argument at least the smallest. So all residuals lie between the smallest
    and the largest error for any frequencies, and an alarm is at most as frequent as without fitting.
    """
    n_reports = sum(part.n_reports for part in likelihoods)
    if n_reports == 0:
        return None
    observed = np.sum([part.sums for part in likelihoods], axis=0)
    level = sum(part.n_reports * part.q for part in likelihoods)
    slope = sum(part.n_reports * (part.p - part.q) for part in likelihoods)
    fitted = project_on_simplex((observed - level) / slope)
    shares = [part.q + (part.p - part.q) * fitted for part in likelihoods]
    variance = sum(part.n_reports * share * (1 - share) for part, share in zip(likelihoods, shares))
    return Residuals(observed, level + slope * fitted, np.sqrt(variance), n_reports)
