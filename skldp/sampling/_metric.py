"""The metric of trajectories, learned from draws and their gradients."""

import numpy as np


def learned_metric(draws, gradients, last):
    r"""Return the covariance under which rescaled draws and rescaled gradients have the same second moments.

    Parameters
    ----------
    draws : ndarray of shape (n_draws, n_params)
        Draws of the warm-up.
    gradients : ndarray of shape (n_draws, n_params)
        Gradients of the log-density at the draws.
    last : ndarray of shape (n_params, n_params)
        The last covariance, to which both estimates are shrunk if draws are few.

    Returns
    -------
    covariance : ndarray of shape (n_params, n_params)

    Notes
    -----
    With C the covariance of the draws and G the mean of :math:`gg^T` over the gradients, it is the solution M of
    :math:`MGM = C`: the geometric mean of C and :math:`G^{-1}`. If the posterior is Gaussian, both equal its
    covariance, and the errors of the two estimates cancel. Otherwise C measures the width of the posterior and G its
    curvature. M lies between C and :math:`G^{-1}`; it is the covariance of the normal distribution nearest in Fisher
    divergence [1]_.

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
    gradients = gradients[np.isfinite(gradients).all(axis=1)]
    n_draws, n_params = draws.shape
    deviations = draws - draws.mean(axis=0)
    weight = n_draws / (n_draws + 5.0 * n_params)
    covariance = weight * deviations.T @ deviations / n_draws + (1 - weight) * last  # C
    weight = len(gradients) / (len(gradients) + 5.0 * n_params)
    information = weight * gradients.T @ gradients / max(len(gradients), 1) + (1 - weight) * np.linalg.inv(last)  # G
    root = np.linalg.cholesky(covariance)
    values, vectors = np.linalg.eigh(root.T @ information @ root)
    half = root @ vectors / np.maximum(values, 1e-12 * values[-1]) ** 0.25
    return half @ half.T
