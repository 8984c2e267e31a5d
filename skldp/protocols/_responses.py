"""Distributions of a response given linear predictors: what the clients and the server of a round must agree on."""

from abc import ABC, abstractmethod
from functools import lru_cache, reduce

import numpy as np
from scipy.special import pdtr

from skldp.protocols._gradient_losses import contrasts

_LARGEST_PREDICTION = 1e3  # predictors of a hostile model are clipped to this
_LARGEST_LOG_RATE = 50.0
_LEAST_SHARE = 1e-3  # of a class, or of the largest count, in a model without predictors


class Response(ABC):
    r"""A response with the code t, a vector of length q, whose mean depends on q linear predictors u.

    A subclass says how: the mean :math:`\mu(u)`, its derivative, and bounds. A record contributes the score
    :math:`(t - \mu(u))\tilde x^T` and the curvature :math:`\mu'(u) \otimes \tilde x\tilde x^T`, of which it sends
    the scalar :math:`w(u)\,\tilde x\tilde x^T`. The score is zero on average at the true model, for any distribution of
    x.

    Attributes
    ----------
    n_lines : int
        Number q of predictors.
    radius : float
        Length of a typical residual, in :func:`skldp.privacy.score_radius`.
    largest_curvature : float
        Upper bound of w(u).
    dispersion : float
        Variance of the code as a multiple of the derivative of its mean, or an upper bound.
    typical : tuple of three floats
        What coefficients explain, a coefficient, and an intercept, as standard deviations of default priors, in public
        units.
    """

    n_lines: int
    radius: float
    largest_curvature: float
    dispersion: float = 1.0
    typical: tuple

    @abstractmethod
    def codes(self, y):
        """Codes t of responses as the protocol encodes them, shape (n, q)."""

    @abstractmethod
    def mean(self, u):
        r"""Mean :math:`\mu` given predictors of shape (n, q), same shape."""

    @abstractmethod
    def curvature(self, u):
        r"""Derivative :math:`\mu'(u)`, shape (n, q, q), symmetric."""

    def mean_and_slope(self, u):
        r"""Return :math:`\mu(u)`, and the map of vectors to products with :math:`\mu'(u)`; shapes are (..., q)."""
        slopes = self.curvature(u.reshape(-1, u.shape[-1])).reshape(*u.shape, -1)
        return self.mean(u), lambda vectors: (slopes @ vectors[..., None])[..., 0]

    @abstractmethod
    def weight(self, u, mean):
        """Scalar curvature w(u) that is reported, shape (n,), from predictors and their means."""

    @abstractmethod
    def largest_residual(self, mean):
        r"""Largest length of :math:`t - \mu` over all responses, shape (n,)."""

    @abstractmethod
    def constant(self, mean):
        r"""Predictors of a model without coefficients that has a given mean, shape (q,), away from its extremes."""

    def rows(self, lines):
        """Coefficients as users read them, from those of the predictors, on the axis before the last one."""
        return lines

    def lines(self, rows):
        """Inverse of :meth:`rows`."""
        return rows


class Labels(Response):
    r"""One of K labels: softmax of K scores, in K - 1 predictors.

    Notes
    -----
    The code of a label is a vertex :math:`t_k` of a regular simplex with edges of length 1, and
    :math:`P(y = k) \propto \exp(t_k^Tu)`: the log-odds of two labels change by 1 if u moves from one vertex to the
    other. Two labels have the codes -1/2 and 1/2, and u is the log-odds. Residuals are differences of two points of the
    simplex, hence not longer than 1. The derivative of the mean is the covariance of the codes, with eigenvalues of at
    most 1/4, because codes along any direction are within an interval of length 1; its trace is
    :math:`(1 - \sum_kp_k^2)/2`. The reported scalar is the trace as a share of its maximum, times 1/4, which is
    p(1 - p) for two labels.
    """

    typical = (1.25, 2.5, 2.5)

    def __init__(self, n_classes):
        self.n_classes, self.n_lines = n_classes, n_classes - 1
        self.vertices = -contrasts(n_classes) / np.sqrt(2)
        self.square = (n_classes - 1) / (2 * n_classes)  # of the length of a code
        self.radius, self.largest_curvature = float(np.sqrt(self.square)), 0.25

    def probabilities(self, u):
        """Probabilities of the labels, shape (n, K)."""
        scores = np.clip(u, -_LARGEST_PREDICTION, _LARGEST_PREDICTION) @ self.vertices.T
        # Much faster than softmax of scipy along a short axis
        shares = np.exp(scores - reduce(np.maximum, np.moveaxis(scores, -1, 0))[..., None])
        return shares / (shares @ np.ones((self.n_classes, 1)))

    def codes(self, y):
        """Vertices of labels given by their numbers."""
        return self.vertices[y.astype(np.intp)]

    def mean(self, u):
        """Average of the vertices, weighted by the probabilities."""
        return self.probabilities(u) @ self.vertices

    def curvature(self, u):
        """Covariance of the codes."""
        p = self.probabilities(u)
        mean = p @ self.vertices
        second = np.einsum("nk,ki,kj->nij", p, self.vertices, self.vertices)
        return second - mean[:, :, None] * mean[:, None, :]

    def mean_and_slope(self, u):
        """Return the average of the vertices, and the map of vectors to their products with the covariance."""
        p = self.probabilities(u)
        mean = p @ self.vertices

        def product(vectors):
            """Return the products, without the matrices."""
            return (p * (vectors @ self.vertices.T)) @ self.vertices - mean * np.vecdot(mean, vectors)[..., None]

        return mean, product

    def weight(self, u, mean):
        """Trace of the covariance of the codes, scaled to 1/4 for equal probabilities."""
        return np.maximum(self.square - np.vecdot(mean, mean), 0.0) * self.largest_curvature / self.square

    def largest_residual(self, mean):
        """Distance to the vertex that is farthest from the mean."""
        # |t - mu|^2 = |t|^2 - 2 t'mu + |mu|^2, and all codes are of the same length.
        least = np.min(mean @ self.vertices.T, axis=-1)
        return np.sqrt(self.square - 2 * least + np.vecdot(mean, mean))

    def constant(self, mean):
        """Log-odds of the shares of the labels."""
        # p = 1/K + 2 V mu, because V'V = I/2 and the columns of V add up to zero
        shares = np.maximum(1 / self.n_classes + 2 * self.vertices @ mean, _LEAST_SHARE)
        return self.lines(np.log(shares)[:, None])[:, 0]

    def rows(self, lines):
        """Coefficients of each label, which add up to zero; of two labels, those of the log-odds of the second."""
        return lines if self.n_lines == 1 else self.vertices @ lines

    def lines(self, rows):
        """Coefficients of the predictors, from one row for each label, or one row for two labels."""
        return rows if rows.shape[-2] == 1 else 2 * self.vertices.T @ rows


class Counts(Response):
    r"""A count with a Poisson distribution, clipped at a public bound b: the predictor is the logarithm of the rate.

    Notes
    -----
    The code is min(y, b)/b. With the rate :math:`\lambda = e^u` and the distribution function F of Y,

    .. math:: E\min(Y, b) = \sum_{k<b}P(Y > k) = \lambda F(b - 2) + b\,(1 - F(b - 1)), \qquad
              \frac d{du}E\min(Y, b) = \lambda F(b - 1),

    so that clipping is part of the model. Residuals are at most 1.
    """

    n_lines, radius, largest_curvature, typical = 1, 0.5, 1.0, (0.75, 2.5, 3.0)

    def __init__(self, upper):
        self.upper, self.dispersion = upper, 1 / upper

    def _rate(self, u):
        return np.exp(np.clip(u, -_LARGEST_LOG_RATE, _LARGEST_LOG_RATE))

    def codes(self, y):
        """Shares of the bound."""
        return y[:, None]

    def mean(self, u):
        """Expected clipped count, as a share of the bound."""
        rate, b = self._rate(u), self.upper
        below = np.where(b > 1, pdtr(np.maximum(b - 2, 0), rate), 0.0)
        return np.clip((rate * below + b * (1 - pdtr(b - 1, rate))) / b, 0.0, 1.0)

    def curvature(self, u):
        """Derivative of the mean."""
        return self.weight(u, None)[..., None, None]

    def weight(self, u, mean):
        """Derivative of the mean."""
        rate = self._rate(u)[..., 0]
        return rate * pdtr(self.upper - 1, rate) / self.upper

    def largest_residual(self, mean):
        """Distance to the farther end of [0, 1]."""
        return np.maximum(mean, 1 - mean)[:, 0]

    def constant(self, mean):
        """Logarithm of the rate, by bisection."""
        share = float(np.clip(mean[0], _LEAST_SHARE, 1 - _LEAST_SHARE))
        low, high = -20.0, 20.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.mean(np.full((1, 1), middle))[0, 0] < share else (low, middle)
        return np.array([(low + high) / 2])


labels_of = lru_cache(maxsize=16)(Labels)
LINKS = {"logit": labels_of}  # responses of K labels, by the word for their link
