"""Simulated sums of moment reports of very many clients, without simulating each report."""

from dataclasses import replace

import numpy as np

from skldp.mechanisms import AxisMoments
from skldp.mechanisms._axis import AXIS_RESOLUTION
from skldp.protocols import Aggregate
from skldp.protocols._tallies import Tally

N_SAMPLED = 50_000  # reports of axes, whose products give the covariance of one


def simulated_sums(protocol, X, y, n_clients, rng):
    """Return a simulated aggregate of ``n_clients`` reports of records drawn from the rows of X and y.

    The mean of many reports is approximately Gaussian: the mean moments of the rows, plus the noise of the mechanism
    and the sampling error of the records. It is drawn directly, thousands of times faster for a million clients.
    """
    draw = _sums_of_axes if isinstance(protocol.randomizer, AxisMoments) else _sums_of_moments
    return Aggregate({protocol: Tally(n_clients, draw(protocol, X, y, n_clients, rng))})


def _sums_of_moments(protocol, X, y, n_clients, rng):
    """Return sums of reports with the same noise on each moment."""
    noiseless = replace(protocol, epsilon=np.inf)
    codes = noiseless.randomizer.decode(noiseless._randomize(X, y, 0))
    mechanism = protocol.randomizer
    covariance = np.cov(codes.T) + mechanism.noise_variance * np.eye(codes.shape[1])
    mean = codes.mean(axis=0) + np.linalg.cholesky(covariance / n_clients) @ rng.standard_normal(codes.shape[1])
    step = mechanism.decode(np.ones((1, mechanism.width)))[0] - mechanism.decode(np.zeros((1, mechanism.width)))[0]
    offset = mechanism.decode(np.zeros((1, mechanism.width)))[0]
    sums = np.zeros(mechanism.width, dtype=np.int64)
    sums[:len(mean)] = np.rint((mean - offset) / step * n_clients)
    return sums.astype(object)


def _sums_of_axes(protocol, X, y, n_clients, rng):
    """Return sums of products of reports of axes: exact in their mean, with a covariance from simulated reports."""
    axis = protocol.randomizer.axis
    u = replace(protocol, epsilon=np.inf)._randomize(X, y, 0) / AXIS_RESOLUTION
    alpha, beta = axis._alpha_beta
    mean = AXIS_RESOLUTION**2 * (beta * (u.T @ u) / len(u) + (alpha + axis._dither) * np.eye(u.shape[1]))
    rows, columns = np.triu_indices(len(mean))
    few = rng.integers(len(u), size=N_SAMPLED)
    reports = protocol._randomize(X[few], y[few], int(rng.integers(2**31))).astype(float)
    values, vectors = np.linalg.eigh(np.cov((reports[:, rows] * reports[:, columns]).T))
    error = vectors @ (np.sqrt(np.maximum(values, 0.0) / n_clients) * rng.standard_normal(len(values)))
    sums = np.zeros(mean.shape, dtype=np.int64)
    sums[rows, columns] = sums[columns, rows] = np.rint((mean[rows, columns] + error) * n_clients).astype(np.int64)
    return sums
