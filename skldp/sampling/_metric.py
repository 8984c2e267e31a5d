"""Covariance of the normal distribution of a metric: a matrix, or a vector of variances if parameters are many.

A model declares that its parameters are nearly independent given the reports. Then every operation costs as much as the
number of parameters, not its square or cube.
"""

import numpy as np


def root_of(covariance):
    """Return the Cholesky factor of a matrix, or the standard deviations of a vector of variances.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.sampling._metric import root_of
    >>> root_of(np.array([4.0, 9.0]))
    array([2., 3.])
    """
    return np.linalg.cholesky(covariance) if np.ndim(covariance) == 2 else np.sqrt(covariance)


def square_of(root):
    """Return the covariance with a given root."""
    return root @ root.T if root.ndim == 2 else root**2


def inverse_of(root):
    """Return the inverse of a root."""
    return np.linalg.inv(root) if root.ndim == 2 else 1 / root


def scaled(z, root):
    """Return L z for each row z."""
    return z @ root.T if root.ndim == 2 else z * root


def pulled_back(gradient, root):
    """Return L' g for each row g."""
    return gradient @ root if root.ndim == 2 else gradient * root
