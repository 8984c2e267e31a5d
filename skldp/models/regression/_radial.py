"""A change of coordinates for parameters whose prior has a common scale that is unknown."""

import numpy as np

_BISECTIONS = 60


class RadialMap:
    r"""Map from nearly standard normal vectors to vectors whose common scale is uncertain.

    Parameters
    ----------
    n : int
        Length of the vectors.
    scale : float
        Typical size s of an entry.
    log_std : float
        Approximate standard deviation :math:`\omega` of the logarithm of the common scale.

    Notes
    -----
    .. math:: a = s\,b\,e^{\phi(\|b\|^2)}, \quad
              \phi(q) = 2\omega\tanh\frac{q - n}{2\sqrt{2n}}.

    For a standard normal b, :math:`\|b\|^2` has mean n and standard deviation :math:`\sqrt{2n}`, so that the logarithm
    of the scale of a has standard deviation :math:`\omega`, roughly, while the density of b has no funnel. Farther out
    the map is linear, so that the mode, which is at small b, stays within a typical distance. The map is smooth and
    one to one, with the Jacobian :math:`(s\,e^\phi)^n(1 + 2\|b\|^2\phi')`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models.regression._radial import RadialMap
    >>> radial = RadialMap(3, 0.5, 1.0)
    >>> a = radial(np.array([[1.0, -2.0, 0.5]])).image
    >>> radial.inverse(a).round(12)
    array([[ 1. , -2. ,  0.5]])
    """

    def __init__(self, n, scale, log_std):
        self.n, self.log_scale, self.log_std = n, np.log(scale), log_std
        self.width = 2 * np.sqrt(2 * max(n, 1))

    def __call__(self, b):
        """Return the images of vectors b, shape (n_walkers, n)."""
        return _RadialPoint(self, b)

    def exponent(self, square):
        r"""Return :math:`\phi` and its derivative at squared norms of b."""
        tanh = np.tanh((square - self.n) / self.width)
        return 2 * self.log_std * tanh, 2 * self.log_std * (1 - tanh**2) / self.width

    def inverse(self, a):
        """Return the vectors b whose images are a."""
        with np.errstate(divide="ignore"):
            log_square = np.log(np.vecdot(a, a)) - 2 * self.log_scale
        # Bisection for log |b|^2, which lies between these because |phi| is at most 2 log_std.
        low, high = log_square - 4 * self.log_std, log_square + 4 * self.log_std
        for _ in range(_BISECTIONS):
            middle = 0.5 * (low + high)
            below = middle + 2 * self.exponent(np.exp(middle))[0] < log_square
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return a * np.exp(-self.log_scale - self.exponent(np.exp(0.5 * (low + high)))[0])[:, None]


def radial_between(n, least, most):
    """Return the map for a common scale between ``least`` and ``most``, which is at least 1.01 times ``least``."""
    most = max(most, 1.01 * least)
    return RadialMap(n, np.sqrt(least * most), np.log(most / least) / 3)


class Identity:
    """The identity map, with the methods of a :class:`RadialMap`."""

    log_jacobian = 0.0

    def __init__(self, image=None):
        self.image = image

    def __call__(self, b):
        """Return the vectors themselves as images."""
        return Identity(b)

    @staticmethod
    def inverse(a):
        """Return the vectors themselves."""
        return a

    @staticmethod
    def pull_back(gradient):
        """Return the gradient itself."""
        return gradient


class _RadialPoint:
    """Images of vectors b, and the gradient with respect to b."""

    def __init__(self, radial, b):
        self.radial, self.b = radial, b
        square = np.vecdot(b, b)
        exponent, self.phi_prime = radial.exponent(square)
        log_factor = radial.log_scale + exponent
        self.factor = np.exp(log_factor)[:, None]
        self.image = self.factor * b
        self.radial_jacobian = 1 + 2 * square * self.phi_prime  # d|a| / d|b| over |a| / |b|
        self.phi_second_over_prime = -exponent / (radial.log_std * radial.width)  # phi'' / phi'
        self.log_jacobian = radial.n * log_factor + np.log(self.radial_jacobian)

    def pull_back(self, by_image):
        """Return the gradient with respect to b, given that with respect to the image; log_jacobian is included."""
        # d log(1 + 2 q phi') / dq over phi', with q = |b|^2
        by_square = 2 * (1 + np.vecdot(self.b, self.b) * self.phi_second_over_prime) / self.radial_jacobian
        # d b = s e^phi g + 2 phi' (n + by_square + g.a) b
        along = 2 * self.phi_prime * (self.radial.n + by_square + np.vecdot(by_image, self.image))
        return self.factor * by_image + along[:, None] * self.b
