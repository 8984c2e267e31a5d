r"""Maps that give coordinates the tails of a normal distribution.

The logarithm of a positive parameter about which reports say little has an exponential tail, in which walkers move
slowly. The map :math:`w(x) = x\sqrt{1 + x^2/4}` is the identity near zero and grows as :math:`x^2/2`, so that the
density of x decreases as that of a normal distribution where the density of w decreases exponentially.
"""

import numpy as np


def bend(x):
    r"""Return w(x), its derivative :math:`w'` and :math:`w''/w'`.

    Examples
    --------
    >>> from skldp.models._normal_tails import bend
    >>> [float(part) for part in bend(0.0)]
    [0.0, 1.0, 0.0]
    """
    square = 1 + 0.25 * x**2
    return x * np.sqrt(square), (2 * square - 1) / np.sqrt(square), x * (1 / (2 * square - 1) - 0.25 / square)


def unbend(w):
    """Return the inverse of w: x with w(x) equal to the given number.

    Examples
    --------
    >>> from skldp.models._normal_tails import bend, unbend
    >>> round(float(unbend(bend(-3.0)[0])), 12)
    -3.0
    """
    # The root of 1 + w^2 minus 1, without cancellation for small w.
    return w * np.sqrt(2 / (1 + np.hypot(1, w)))


def bend_negative(x):
    """Return w(x) where x is negative and x elsewhere, with the same derivatives as ``bend``.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models._normal_tails import bend_negative
    >>> bend_negative(np.array([-2.0, 3.0]))[0].round(3)
    array([-2.828,  3.   ])
    """
    w, slope, relative = bend(np.minimum(x, 0.0))
    return w + np.maximum(x, 0.0), slope, relative


def unbend_negative(w):
    """Return the inverse of the first value of ``bend_negative``."""
    return unbend(np.minimum(w, 0.0)) + np.maximum(w, 0.0)


def inverse_softplus(values):
    """Return the inverse of softplus: a with log(1 + exp(a)) equal to the given positive value.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models._normal_tails import inverse_softplus
    >>> bool(np.isclose(np.log1p(np.exp(inverse_softplus(3.0))), 3.0))
    True
    """
    return values + np.log(-np.expm1(-values))
