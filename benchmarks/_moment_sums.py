"""Sums of moment reports of very many clients, without a report for each of them."""

from dataclasses import replace

import numpy as np

from skldp.protocols import Aggregate
from skldp.protocols._tallies import Tally


def simulated_sums(protocol, X, y, n_clients, rng):
    """Aggregate of ``n_clients`` reports of records that are distributed as the rows of X and y.

    The mean of many reports is the mean of the records' moments with Gaussian noise: of the mechanism, and of which
    records were drawn. That sum is drawn at once, which for a million clients is thousands of times faster.
    """
    noiseless = replace(protocol, epsilon=np.inf)
    codes = noiseless.randomizer.decode(noiseless._randomize(X, y, 0))
    mechanism = protocol.randomizer
    covariance = np.cov(codes.T) + mechanism.noise_variance * np.eye(codes.shape[1])
    mean = codes.mean(axis=0) + np.linalg.cholesky(covariance / n_clients) @ rng.standard_normal(codes.shape[1])
    step = mechanism.decode(np.ones((1, mechanism.width)))[0] - mechanism.decode(np.zeros((1, mechanism.width)))[0]
    offset = mechanism.decode(np.zeros((1, mechanism.width)))[0]
    sums = np.zeros(mechanism.width, dtype=np.int64)
    sums[:len(mean)] = np.rint((mean - offset) / step * n_clients)
    return Aggregate({protocol: Tally(n_clients, sums.astype(object))})
