"""The normal distribution nearest to a posterior, which preconditions trajectories: before and from draws."""

import numpy as np

from skldp.sampling._density import quiet
from skldp.sampling._map import Mode
from skldp.sampling._metric import pulled_back, root_of, scaled, square_of

_N_DRAWS, _FEW_DRAWS = 512, 128  # for a matrix, and for variances
_N_ROUNDS = 8
_FEW_ROUNDS = 2  # for variances: parameters are nearly standard normal from the start
# Lengths of the residual, relative to that of a draw. Below the first one the approximation is good enough; above the
# second one only half of a correction is made.
_GOOD, _POOR = 0.05, 0.35
_DIVERGED = 1.5  # of the smallest length so far
_LARGEST_RESIDUAL = 5.0  # relative to the median; longer ones are shortened, so that a few of them do not dominate
_LARGEST_GROWTH = 4.0  # of a variance in one round


def nearest_normal(model, mode, rng):
    r"""Return a normal distribution close to the posterior where most of its probability is, not only at its mode.

    The search starts from the Laplace approximation, which is returned if the density at the new centre is zero.

    Notes
    -----
    The normal distribution q with mean c and covariance :math:`LL^T` that is nearest to the posterior in
    :math:`KL(q\|p)` has :math:`E_q\nabla\log p = 0` and the covariance :math:`(-E_q\nabla^2\log p)^{-1}` [1]_. With
    :math:`\theta = c + Lz`, :math:`z \sim N(0, I)` and the residual :math:`r = z + L^T\nabla\log p(\theta)`, which is
    zero if p is q, Stein's identity gives both from gradients alone:

    .. math:: c \leftarrow c + LH^{-1}E r, \qquad LL^T \leftarrow LH^{-1}L^T, \qquad H = I - E\,rz^T.

    Each of at most eight rounds averages over 512 draws in antithetic pairs, by one batched call of the gradient; for
    variances, two rounds over 128 draws. In
    high dimensions the mode is far from where the probability is, and the curvature there is another one; finding both
    out by chains took three times as many steps as the sampling.

    References
    ----------
    .. [1] M. Opper, C. Archambeau, "The variational Gaussian approximation revisited", Neural Computation 21, 2009.
    """
    n_params = len(mode.theta)
    centre, root = mode.theta, root_of(mode.covariance)
    corrected = _corrected if root.ndim == 2 else _corrected_variances
    best, smallest = (centre, root), np.inf
    for _ in range(_N_ROUNDS if root.ndim == 2 else _FEW_ROUNDS):
        z = rng.standard_normal(((_N_DRAWS if root.ndim == 2 else _FEW_DRAWS) // 2, n_params))
        z = np.concatenate([z, -z])
        residual = _residuals(model, centre, root, z)
        length = np.median(np.linalg.norm(residual, axis=1)) / np.sqrt(n_params)
        if length < _DIVERGED * smallest:
            best, smallest = (centre, root), min(length, smallest)
        if length < _GOOD:
            break
        try:
            centre, root = corrected(centre, root, z, residual, 0.5 if length > _POOR else 1.0)
        except np.linalg.LinAlgError:  # one variance is smaller than the rounding errors of another
            break
    centre, root = best
    with quiet():
        log_density = float(model.log_density(centre[None])[0])
    return Mode(centre, log_density, square_of(root)) if np.isfinite(log_density) else mode


def _residuals(model, centre, root, z):
    """Return the residual of each draw: zero where it is not finite, and shortened where it is very long."""
    with quiet():
        residual = z + pulled_back(model.trajectory_gradient(centre + scaled(z, root)), root)
    residual[~np.isfinite(residual).all(axis=1)] = 0.0
    lengths = np.linalg.norm(residual, axis=1, keepdims=True)
    return residual * np.minimum(1.0, _LARGEST_RESIDUAL * np.median(lengths) / np.maximum(lengths, 1e-300))


def _corrected(centre, root, z, residual, weight):
    """Return the next centre and root of the covariance."""
    n_draws, n_params = z.shape
    cross = residual.T @ z / n_draws
    # With few draws per parameter, errors of the average would exceed what it corrects.
    shrunk = weight * n_draws / (n_draws + n_params)
    values, vectors = np.linalg.eigh(np.eye(n_params) - shrunk * 0.5 * (cross + cross.T))
    values = np.maximum(values, 1 / _LARGEST_GROWTH)  # H
    change = _shortened(weight * vectors @ (vectors.T @ residual.mean(axis=0) / values))
    half = root @ (vectors / np.sqrt(values))
    return centre + root @ change, np.linalg.cholesky(half @ half.T)


def _corrected_variances(centre, root, z, residual, weight):
    """Return the next centre and standard deviations, from the diagonal of H."""
    values = np.maximum(1 - weight * np.mean(residual * z, axis=0), 1 / _LARGEST_GROWTH)
    return centre + root * _shortened(weight * residual.mean(axis=0) / values), root / np.sqrt(values)


def _shortened(change):
    """Return a change of the centre that goes no further than a typical draw is from it."""
    return change * min(1.0, np.sqrt(len(change)) / max(np.linalg.norm(change), 1e-300))


def learned_normal(draws, gradients, last):
    r"""Return centre and covariance of the normal distribution whose gradients are nearest to those at draws.

    If draws are few, both estimates are shrunk to the ``last`` covariance; variances give variances.

    Notes
    -----
    With C the covariance of the draws and G the mean of :math:`gg^T` over the gradients, the covariance is the solution
    M of :math:`MGM = C`: the geometric mean of C and :math:`G^{-1}`. If the posterior is Gaussian, both equal its
    covariance, and the errors of the two estimates cancel. Otherwise C measures the width of the posterior and G its
    curvature, and M lies between C and :math:`G^{-1}`. The centre is the mean of :math:`\theta + Mg`, which for a
    Gaussian posterior has no error. This is the normal distribution nearest in Fisher divergence [1]_.

    References
    ----------
    .. [1] A. Seyboldt, E. L. Carlson, B. Carpenter, "Preconditioning Hamiltonian Monte Carlo by minimizing Fisher
       divergence", 2026.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._nearest_normal import learned_normal
    >>> draws = np.random.default_rng(0).standard_normal((500, 2)) * [1.0, 3.0]
    >>> centre, covariance = learned_normal(draws, -draws / [1.0, 9.0], np.diag([1.0, 9.0]))
    >>> np.diag(covariance).round(1)
    array([1., 9.])
    """
    finite = np.isfinite(gradients).all(axis=1)
    gradients = np.where(finite[:, None], gradients, 0.0)
    if last.ndim == 1:
        variances = np.sqrt(draws.var(axis=0) / np.maximum(np.mean(gradients**2, axis=0), 1e-300))
        return draws.mean(axis=0) + variances * gradients.mean(axis=0), variances
    n_draws, n_params = draws.shape
    weight = n_draws / (n_draws + 5.0 * n_params)
    deviations = draws - draws.mean(axis=0)
    covariance = weight * deviations.T @ deviations / n_draws + (1 - weight) * last  # C
    weight = finite.sum() / (finite.sum() + 5.0 * n_params)
    information = weight * gradients.T @ gradients / max(finite.sum(), 1) + (1 - weight) * np.linalg.inv(last)  # G
    root = np.linalg.cholesky(covariance)
    values, vectors = np.linalg.eigh(root.T @ information @ root)
    half = root @ vectors / np.maximum(values, 1e-12 * values[-1]) ** 0.25
    covariance = half @ half.T
    return draws.mean(axis=0) + covariance @ gradients.mean(axis=0), covariance
