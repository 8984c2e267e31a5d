"""Importance weights, and the number that says whether they can be trusted."""

import numpy as np

LARGEST_PARETO_K = 0.7


def pareto_k(log_weights):
    r"""Return the estimated shape k of the tail of importance weights, from their logarithms up to a constant.

    A generalised Pareto distribution is fitted to the largest :math:`\min(n/5, 3\sqrt n)` weights. Weighted averages
    are reliable below 0.7; from 1 on the weights have no mean.

    Notes
    -----
    With exceedances x over the threshold, the distribution has the profile log-likelihood
    :math:`\ell(b) = n(\log(-b/k) - k - 1)`, :math:`k(b) = \overline{\log(1 - bx)}`. The estimate averages b over a grid
    with weights proportional to :math:`e^{\ell}`, and then shrinks k to 1/2 as ten observations would.

    References
    ----------
    J. Zhang, M. A. Stephens (2009). A new and efficient estimation method for the generalized Pareto distribution.
    Technometrics 51.

    A. Vehtari, D. Simpson, A. Gelman, Y. Yao, J. Gabry (2024). Pareto smoothed importance sampling. Journal of Machine
    Learning Research 25.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._importance import pareto_k
    >>> heavy = np.random.default_rng(0).pareto(1.0, 4000)  # a tail of shape 1
    >>> bool(0.8 < pareto_k(np.log(heavy)) < 1.2)
    True
    """
    weights = np.sort(np.exp(log_weights - np.max(log_weights)))
    n_tail = int(min(len(weights) / 5, 3 * np.sqrt(len(weights))))
    x = weights[-n_tail:] - weights[-n_tail - 1]
    if weights[0] > 1 - 1e-6:  # equal up to rounding
        return -np.inf
    if not x[0] > 0:  # nearly all are zero
        return np.inf
    n_grid = 30 + int(np.sqrt(n_tail))
    steps = np.sqrt(n_grid / (np.arange(n_grid) + 0.5))
    b = 1 / x[-1] + (1 - steps) / (3 * x[int(n_tail / 4 + 0.5) - 1])
    k = np.log1p(-b[:, None] * x).mean(axis=1)
    likelihood = n_tail * (np.log(-b / k) - k - 1)
    shares = np.exp(likelihood - likelihood.max())
    shape = np.log1p(-(b @ shares / shares.sum()) * x).mean()
    return float((n_tail * shape + 10 * 0.5) / (n_tail + 10))
