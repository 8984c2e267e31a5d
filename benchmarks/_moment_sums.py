"""Simulated sums of moment reports of very many clients, without simulating each report."""

from dataclasses import replace

import numpy as np

from skldp.protocols import Aggregate
from skldp.protocols._tallies import Tally


def simulated_sums(protocol, X, y, n_clients, rng):
    """Return a simulated aggregate of ``n_clients`` reports of records drawn from the rows of X and y.

    The mean of many reports is approximately Gaussian: the mean moments of the rows, plus the noise of the mechanism
    and the sampling error of the records. It is drawn directly, thousands of times faster for a million clients.
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
