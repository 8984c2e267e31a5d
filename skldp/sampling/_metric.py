"""The metric of trajectories, learned from draws and the slopes there."""

import numpy as np


def learned_metric(draws, slopes, last):
    r"""Covariance that makes draws and slopes look alike.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_params)
        Of the warm-up.
    slopes : ndarray of shape (n_draws, n_params)
        Gradient of the log-density at each of them.
    last : ndarray of shape (n_params, n_params)
        The covariance so far, leaned on when draws are few.

    Returns
    -------
    covariance : ndarray of shape (n_params, n_params)

    Notes
    -----
    With C the covariance of the draws and G the mean of :math:`gg^T` over the slopes, it is the solution M of
    :math:`MGM = C`: the geometric mean of C and :math:`G^{-1}`. Both are the covariance where the posterior is
    Gaussian, and the errors of the two estimates then cancel. Where it is not, C tells how far there is to go and G
    how sharp the bends are; M stands between, as the normal distribution nearest in Fisher divergence does [1]_.

    References
    ----------
    .. [1] A. Seyboldt, E. L. Carlson, B. Carpenter, "Preconditioning Hamiltonian Monte Carlo by minimizing Fisher
       divergence", 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._metric import learned_metric
    >>> draws = np.random.default_rng(0).standard_normal((500, 2)) * [1.0, 3.0]
    >>> np.diag(learned_metric(draws, -draws / [1.0, 9.0], np.diag([1.0, 9.0]))).round(1)
    array([1., 9.])
    """
    slopes = slopes[np.isfinite(slopes).all(axis=1)]
    n_draws, n_params = draws.shape
    deviations = draws - draws.mean(axis=0)
    weight = n_draws / (n_draws + 5.0 * n_params)
    spread = weight * deviations.T @ deviations / n_draws + (1 - weight) * last
    weight = len(slopes) / (len(slopes) + 5.0 * n_params)
    sharpness = weight * slopes.T @ slopes / max(len(slopes), 1) + (1 - weight) * np.linalg.inv(last)
    root = np.linalg.cholesky(spread)
    values, vectors = np.linalg.eigh(root.T @ sharpness @ root)
    half = root @ vectors / np.maximum(values, 1e-12 * values[-1]) ** 0.25
    return half @ half.T
