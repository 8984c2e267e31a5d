"""Sums of reports compared with what a fitted model expects of them."""

from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy


@dataclass(frozen=True, eq=False)
class Residuals:
    r"""Numbers of reports in sets of cells, with what a fitted model expects and how far they may differ from it.

    Parameters
    ----------
    observed : ndarray of shape (n_sets,)
        Number of reports in each set of cells.
    expected : ndarray of shape (n_sets,)
        What the fitted model expects.
    std : ndarray of shape (n_sets,)
        Standard deviation of their difference, if the model is right.
    n_reports : int
        Number of reports in all cells.
    places : list of str or None, default=None
        Where each set is, in words; None if the sets are the categories of the protocol, in their order.
    directions : ndarray of shape (n_sets, rank) or None, default=None
        Unit vectors whose products are the correlations of the differences; None if correlations are negligible.

    Notes
    -----
    A number n of N reports, with m expected, is standardised by its deviance, which is more nearly normal than n - m:

    .. math:: z = \frac{\mathrm{sign}(n - m)}{s}\sqrt{\frac{m(N - m)}{N}}
              \sqrt{2n\log\frac nm + 2(N - n)\log\frac{N - n}{N - m}}.
    """

    observed: np.ndarray
    expected: np.ndarray
    std: np.ndarray
    n_reports: int
    places: list[str] | None = None
    directions: np.ndarray | None = None

    def standardised(self):
        """Return differences in standard deviations, positive for more reports than expected."""
        n, m, total = self.observed, self.expected, self.n_reports
        with np.errstate(all="ignore"):
            deviance = xlogy(n, n / m) + xlogy(total - n, (total - n) / (total - m))
            size = np.sqrt(2 * np.maximum(deviance, 0.0) * m * (1 - m / total)) / self.std
        # Without noise some sets of cells have probability zero, and others one.
        return np.where(self.std > 0, np.sign(n - m) * np.nan_to_num(size), 0.0)
