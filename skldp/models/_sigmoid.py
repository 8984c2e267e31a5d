"""Means of the logistic curve under a Gaussian."""

import numpy as np

_REACH = 8.5  # standard deviations; beyond it lies a share 2e-17
_NODES = np.linspace(-_REACH, _REACH, 257)
_WEIGHTS = np.exp(-0.5 * _NODES**2) / np.exp(-0.5 * _NODES**2).sum()


def tanh_means(mean, variance):
    r"""Means of :math:`f(u) = \tanh(u/2)` and of its first three derivatives, :math:`u \sim N(\mu, s^2)`.

    Parameters
    ----------
    mean, variance : ndarray of shape (n,)
        Of u.

    Returns
    -------
    ndarray of shape (4, n)

    Notes
    -----
    The trapezoidal rule with 257 nodes over 8.5 standard deviations, which for a function that is analytic in a strip
    converges exponentially: the error is below 1e-12 up to s = 10, 1e-6 up to s = 20 and 3e-3 at s = 60. (A label is
    certain long before.) Derivatives of the means are means of derivatives,
    :math:`\partial_\mu E f = E f'` and :math:`\partial_{s^2}E f = \frac12E f''`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models._sigmoid import tanh_means
    >>> tanh_means(np.array([0.0]), np.array([0.0]))[:, 0]
    array([ 0.  ,  0.5 ,  0.  , -0.25])
    """
    spread = np.sqrt(np.maximum(variance, 0.0))
    f = np.tanh(0.5 * (mean[:, None] + spread[:, None] * _NODES))
    first = 0.5 * (1 - f * f)
    second = -f * first
    third = -(first * first + f * second)
    return np.stack([values @ _WEIGHTS for values in (f, first, second, third)])
