"""Moments of records and responses estimated from reports, to choose coordinates and starting points."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class ReportedMoments:
    r"""Unbiased estimates of the moments of (x, y), in public units, with approximate inverse variances.

    Parameters
    ----------
    mean : ndarray of shape (d + k,)
        Estimate of the mean; zero without an intercept.
    second : ndarray of shape (d + k, d + k)
        Estimate of the second moments.
    cross_information, response_information, mean_information : float
        Inverse variances of an entry of E yx, of E y, and of an entry of E x; zero without reports.
    square_information : float, default=0.0
        Inverse variance of E y^2, if it is used.
    n_responses : int, default=1
        Number k of responses, which come last.
    """

    mean: np.ndarray
    second: np.ndarray
    cross_information: float = 0.0
    response_information: float = 0.0
    mean_information: float = 0.0
    square_information: float = 0.0
    n_responses: int = 1

    @classmethod
    def pooled(cls, parts, n_features, n_responses=1):
        """Return the average of independent estimates, weighted by their information."""
        parts, size = [part for part in parts if part.cross_information], n_features + n_responses
        if not parts:
            return cls(np.zeros(size), np.eye(size) / (4 * n_features), n_responses=n_responses)
        weights = np.array([part.cross_information for part in parts])
        weights /= weights.sum()
        return cls(sum(weight * part.mean for weight, part in zip(weights, parts)),
                   sum(weight * part.second for weight, part in zip(weights, parts)),
                   sum(part.cross_information for part in parts),
                   sum(part.response_information for part in parts),
                   sum(part.mean_information for part in parts),
                   sum(part.square_information for part in parts), n_responses)

    @property
    def covariance(self):
        """Estimate of the covariance of (x, y), with eigenvalues of x that are at least their standard error."""
        mean, second = np.clip(self.mean, -0.5, 0.5), self.second.copy()
        second -= np.outer(mean, mean)
        error = 1 / np.sqrt(self.cross_information) if self.cross_information else 1.0
        d = len(mean) - self.n_responses
        least = 0.05 / d
        values, vectors = np.linalg.eigh(second[:d, :d])
        second[:d, :d] = (vectors * np.clip(values, min(error, least), 1.0)) @ vectors.T
        return second
