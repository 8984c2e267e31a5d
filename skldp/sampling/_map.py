"""Mode of a posterior, and the curvature there."""

from dataclasses import dataclass

import numpy as np
from scipy import optimize

from skldp.sampling._density import quiet

# Loss at points of zero density: line searches need a finite number.
_IMPOSSIBLE = 1e100
_TINY = 1e-12
_NEWTON_STEPS = 5
MOST_IN_A_MATRIX = 1000  # parameters; with more of them, the Hessian takes longer than the chains
_N_PROBES = 16  # pairs of gradients for the diagonal of a Hessian


@dataclass(frozen=True)
class Mode:
    """Mode of a log-density, and the covariance of the Gaussian approximation there, positive definite.

    It is a matrix, or the variances if parameters are nearly independent or very many.
    """

    theta: np.ndarray
    log_density: float
    covariance: np.ndarray


def find_mode(model, initial=None):
    r"""Return the maximum of a log-density, and the inverse of its negative Hessian there.

    Notes
    -----
    L-BFGS finds the neighbourhood of the mode, with central differences if the model has no gradient and a simplex
    search if L-BFGS makes no step. Newton steps

    .. math:: \theta \leftarrow \theta + t\, \Sigma \nabla \log p(\theta), \quad
              \Sigma = (-\nabla^2 \log p(\theta))^{-1}

    with the best of four lengths t then improve the result, because L-BFGS can stop early. The Hessian is computed by
    differences over a fraction of a standard deviation, large compared with the rounding errors of a sum over many
    reports.

    With more than 1,000 parameters only the diagonal of the Hessian is estimated, and no Newton step is taken. With
    random signs :math:`z_i = \pm1` the mean of :math:`z_i(Hz)_i` is :math:`H_{ii}` [1]_, and two gradients give one
    product Hz for any number of parameters. Chains with this diagonal as their metric needed one to three times as many
    gradients as with the full matrix, which alone needs two for each parameter.

    Nothing is searched if parameters are nearly standard normal: their initial point is the centre. The mode of a
    skewed posterior is far from where the probability is; with 64 categories and 1,000 reports, chains that started
    from its curvature did not converge.

    References
    ----------
    .. [1] C. Bekas, E. Kokiopoulou, Y. Saad, "An estimator for the diagonal of a matrix", Applied Numerical Mathematics
       57, 2007.
    """
    with quiet():
        theta = model.initial() if initial is None else np.array(initial, dtype=float)
        if model.nearly_standard_normal:
            covariance = np.ones(len(theta)) if model.nearly_independent else np.eye(len(theta))
            return Mode(theta, float(model.log_density(theta[None])[0]), covariance)
        theta = _maximise(model, theta)
        if is_large(model):
            return Mode(theta, float(model.log_density(theta[None])[0]), _variances_at(model, theta))
        covariance = _covariance_at(model, theta)
        for _ in range(_NEWTON_STEPS):
            theta, gain = _newton_step(model, theta, covariance)
            if gain < 1e-6:
                break
            covariance = _covariance_at(model, theta)
        return Mode(theta, float(model.log_density(theta[None])[0]), covariance)


def is_large(model):
    """Whether a model has too many parameters for a matrix of them, and its mode is searched."""
    return model.n_params > MOST_IN_A_MATRIX and model.has_gradient and not model.nearly_standard_normal


def _maximise(model, initial):
    if not np.isfinite(model.log_density(initial[None])[0]):
        raise ValueError("The model's initial point has no finite log-density, so sampling cannot start. "
                         "Check the priors, and that the bounds contain the data.")
    found = optimize.minimize(_loss_and_gradient, initial, args=(model,), jac=True, method="L-BFGS-B")
    if found.nit == 0 and not model.has_gradient:
        found = optimize.minimize(_loss, found.x, args=(model,), method="Nelder-Mead")
    return np.array(found.x)


def _loss(theta, model):
    return _finite_loss(model.log_density(theta[None])[0])


def _loss_and_gradient(theta, model):
    value, gradient = model.gradient(theta[None])
    return _finite_loss(value[0]), -np.where(np.isfinite(gradient[0]), gradient[0], 0.0)


def _finite_loss(log_density):
    return -log_density if np.isfinite(log_density) else _IMPOSSIBLE


def _newton_step(model, theta, covariance):
    value, gradient = model.gradient(theta[None])
    direction = covariance @ np.where(np.isfinite(gradient[0]), gradient[0], 0.0)
    lengths = np.array([1.0, 0.5, 0.1, 0.01])
    trials = theta + lengths[:, None] * direction
    values = model.log_density(trials)
    best = np.argmax(values)
    gain = values[best] - value[0]
    return (trials[best], gain) if gain > 0 else (theta, 0.0)


def _covariance_at(model, theta):
    """Return the inverse of the negative Hessian, after two rounds that scale the steps to the posterior width."""
    differences = _gradient_differences if model.has_gradient else _density_differences
    fraction = 0.01 if model.has_gradient else 0.1
    step = 1e-4 * np.maximum(1.0, np.abs(theta))
    for _ in range(2):
        hessian = differences(model, theta, step)
        curvature = -np.diag(hessian)
        measured = np.isfinite(curvature) & (curvature > 0)
        step = np.where(measured, fraction / np.sqrt(np.where(measured, curvature, 1.0)), step)
    return repaired_inverse(-differences(model, theta, step))


def _variances_at(model, theta):
    """Return the inverses of the diagonal of the negative Hessian, after a round that scales the steps to the width."""
    step = 1e-4 * np.maximum(1.0, np.abs(theta))
    for _ in range(2):
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(_N_PROBES, len(theta)))
        change = model.gradient(theta + step * signs)[1] - model.gradient(theta - step * signs)[1]
        curvature = np.nan_to_num(-np.mean(signs * change, axis=0) / (2 * step))
        # An estimate is uncertain, so a small or negative one only says that the variance is not small.
        variances = 1 / np.maximum(curvature, 0.01 * np.median(np.abs(curvature)) + _TINY)
        step = 0.01 * np.sqrt(variances)
    return variances


def _gradient_differences(model, theta, step):
    shift = np.diag(step)
    _, up = model.gradient(theta + shift)
    _, down = model.gradient(theta - shift)
    hessian = (up - down) / (2 * step[:, None])
    return 0.5 * (hessian + hessian.T)


def _density_differences(model, theta, step):
    n_params = len(theta)
    signs = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1]])
    pairs = [(i, j) for i in range(n_params) for j in range(i + 1)]
    shift = np.diag(step)
    grid = [theta + a * shift[i] + b * shift[j] for i, j in pairs for a, b in signs]
    values = model.log_density(np.array(grid)).reshape(-1, 4)
    hessian = np.empty((n_params, n_params))
    for (i, j), (plus, cross, cross_too, minus) in zip(pairs, values):
        hessian[i, j] = hessian[j, i] = (plus - cross - cross_too + minus) / (4 * step[i] * step[j])
    return hessian


def repaired_inverse(precision):
    r"""Return the inverse of a symmetric matrix, modified if necessary to be positive definite.

    The matrix may be indefinite and have non-finite entries. Then each eigenvalue of the matrix scaled to unit diagonal
    is replaced by :math:`\max(|\lambda|, 10^{-8}\lambda_{\max})`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._map import repaired_inverse
    >>> repaired_inverse(np.diag([4.0, -1.0])).round(6)
    array([[0.25, 0.  ],
           [0.  , 1.  ]])
    """
    precision = np.where(np.isfinite(precision), precision, 0.0)
    size = np.abs(np.diag(precision))
    scale = np.sqrt(np.where(size > 0, size, 1.0))
    values, vectors = np.linalg.eigh(precision / np.outer(scale, scale))
    values = np.abs(values)
    values = np.maximum(values, 1e-8 * max(values.max(), 1e-8))
    half = vectors / np.sqrt(values) / scale[:, None]
    return half @ half.T
