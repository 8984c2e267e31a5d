"""A change of coordinates for parameters that a prior makes large together or small together."""

import numpy as np

_HALVINGS = 60


class RadialMap:
    r"""Vectors of a common size that is uncertain, from vectors that are nearly standard normal.

    Parameters
    ----------
    n : int
        Length of the vectors.
    scale : float
        Typical size of an entry.
    spread : float
        Standard deviation of the logarithm of the common size, roughly.

    Notes
    -----
    .. math:: a = s\,b\,e^{\phi(\|b\|^2)}, \quad
              \phi(q) = 2\,\mathrm{spread}\,\tanh\frac{q - n}{2\sqrt{2n}}.

    :math:`\|b\|^2` of a standard normal b is n, give or take :math:`\sqrt{2n}`, so that a has the spread that is asked
    for, while trajectories through b meet no funnel. Farther out the map is linear, so that the mode, which
    is at small b, stays within a typical distance. It is smooth and one to one, with the Jacobian
    :math:`(s\,e^\phi)^n(1 + 2\|b\|^2\phi')`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models.regression._radial import RadialMap
    >>> radial = RadialMap(3, 0.5, 1.0)
    >>> a = radial(np.array([[1.0, -2.0, 0.5]])).image
    >>> radial.inverse(a).round(12)
    array([[ 1. , -2. ,  0.5]])
    """

    def __init__(self, n, scale, spread):
        self.n, self.log_scale, self.spread = n, np.log(scale), spread
        self.width = 2 * np.sqrt(2 * max(n, 1))

    def __call__(self, b):
        """The images of vectors, shape (n_walkers, n)."""
        return _RadialPoint(self, b)

    def exponent(self, square):
        r""":math:`\phi` and its derivative, at squares of lengths."""
        bend = np.tanh((square - self.n) / self.width)
        return 2 * self.spread * bend, 2 * self.spread * (1 - bend**2) / self.width

    def inverse(self, a):
        """Vectors b of given images."""
        with np.errstate(divide="ignore"):
            level = np.log(np.vecdot(a, a)) - 2 * self.log_scale
        # log |b|^2 is between these; half of the interval goes each time.
        low, high = level - 4 * self.spread, level + 4 * self.spread
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            below = middle + 2 * self.exponent(np.exp(middle))[0] < level
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return a * np.exp(-self.log_scale - self.exponent(np.exp(0.5 * (low + high)))[0])[:, None]


def radial_between(n, least, most):
    """The map for a common size that may be anything between two sizes, as long as these are not one."""
    most = max(most, 1.01 * least)
    return RadialMap(n, np.sqrt(least * most), np.log(most / least) / 3)


class Identity:
    """The map that changes nothing, in place of a :class:`RadialMap`."""

    log_jacobian = 0.0

    def __init__(self, image=None):
        self.image = image

    def __call__(self, b):
        """The vectors themselves."""
        return Identity(b)

    @staticmethod
    def inverse(a):
        """The vectors themselves."""
        return a

    @staticmethod
    def pull_back(slope):
        """The slope itself."""
        return slope


class _RadialPoint:
    """Images of vectors, and how slopes travel back."""

    def __init__(self, radial, b):
        self.radial, self.b = radial, b
        square = np.vecdot(b, b)
        exponent, self.slope = radial.exponent(square)
        log_factor = radial.log_scale + exponent
        self.factor = np.exp(log_factor)[:, None]
        self.image = self.factor * b
        self.stretch = 1 + 2 * square * self.slope
        self.bend = -exponent / (radial.spread * radial.width)  # slope of the logarithm of the slope
        self.log_jacobian = radial.n * log_factor + np.log(self.stretch)

    def pull_back(self, slope):
        """Slope in b of a slope in the image, that of the Jacobian included."""
        stretching = 2 * (1 + np.vecdot(self.b, self.b) * self.bend) / self.stretch
        along = 2 * self.slope * (self.radial.n + stretching + np.vecdot(slope, self.image))
        return self.factor * slope + along[:, None] * self.b
