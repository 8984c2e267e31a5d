"""Losses of one client: the domain of the response, its target, and the derivative of the loss."""

from abc import ABC, abstractmethod
from functools import lru_cache
from numbers import Real
from typing import ClassVar

import numpy as np
from scipy.special import expit, softmax

from skldp._validation._categories import category_codes, check_list
from skldp._validation._door import as_floats
from skldp._validation._limits import MAX_CLASSES
from skldp._validation._parameters import check_bounds, check_length
from skldp.exceptions import InvalidParameterError


class Loss(ABC):
    """A loss that is convex in the prediction, a number or a vector."""

    curvature: ClassVar[float]  # largest second derivative in the prediction

    def shape(self, protocol) -> tuple:
        """Shape of a prediction: () for a number."""
        return ()

    def scores(self, weights):
        """Rows of coefficients of the response or of each label, from those of a prediction."""
        return weights

    @abstractmethod
    def check_domain(self, classes, bounds_y):
        """Return the checked classes and the checked bounds of the response; the one that is not used is ``None``."""

    @abstractmethod
    def targets(self, protocol, y):
        """Targets of responses, which may have any value."""

    @abstractmethod
    def slope(self, target, prediction):
        """Derivative of the loss with respect to the prediction."""


class LogisticLoss(Loss):
    """The logistic loss of a label -1 or 1."""

    curvature = 0.25

    def check_domain(self, classes, bounds_y):
        """Return the two labels, and ``None`` for the bounds."""
        known = _check_classes(classes)
        if len(known) != 2:
            raise InvalidParameterError(f"classes must be two distinct labels, numbers or strings, got {classes!r}. "
                                        'Use loss="softmax" for more.')
        return known, None

    def targets(self, protocol, y):
        """Targets -1 and 1, and 0 for an unknown label."""
        return np.array([-1.0, 1.0, 0.0])[category_codes(y, check_list(protocol.classes))]

    def slope(self, target, prediction):
        """Derivative of the loss with respect to the prediction."""
        return -target * expit(-target * prediction)


class SoftmaxLoss(Loss):
    r"""The multinomial logistic loss of one of K labels, in K - 1 contrasts.

    Notes
    -----
    With the K x (K - 1) matrix H of :func:`contrasts`, a prediction :math:`z \in R^{K-1}` gives the scores Hz and the
    probabilities p = softmax(Hz). The loss of label k is :math:`-\log p_k`, with the slope :math:`H^T(p - e_k)` in z.
    Columns of H are orthonormal and orthogonal to (1, ..., 1), to which :math:`p - e_k` is orthogonal as well, so

    .. math:: \|H^T(p - e_k)\|^2 = \|p - e_k\|^2 = \sum_{j\ne k}p_j^2 + (1 - p_k)^2 \le 2(1 - p_k)^2 \le 2,

    and contrasts omit only an entry that is always zero, with its noise. The second derivative is
    :math:`H^T(\mathrm{diag}(p) - pp^T)H`, at most 1/2: the variance of the entries of a unit vector, whose largest and
    smallest differ by at most :math:`\sqrt2`, under the probabilities p.
    """

    curvature = 0.5

    def shape(self, protocol) -> tuple:
        """Shape (K - 1,) of a prediction."""
        return (len(protocol.classes) - 1,)

    def scores(self, weights):
        """Rows of coefficients of each label, which add up to zero."""
        return contrasts(len(weights) + 1) @ weights

    def check_domain(self, classes, bounds_y):
        """Return the labels, and ``None`` for the bounds."""
        return _check_classes(classes), None

    def targets(self, protocol, y):
        """Numbers of the labels, and -1 for an unknown label."""
        return category_codes(y, check_list(protocol.classes))

    def slope(self, target, prediction):
        """Derivative of the loss with respect to the prediction, zero for an unknown label."""
        matrix = contrasts(prediction.shape[1] + 1)
        rows = softmax(prediction @ matrix.T, axis=1)
        rows[np.arange(len(rows)), target] -= 1
        return np.where(target[:, None] < 0, 0.0, rows @ matrix)


class SquaredLoss(Loss):
    """Half the squared error of a response in public bounds."""

    curvature = 1.0

    def check_domain(self, classes, bounds_y):
        """Return ``None`` for the labels, and the bounds."""
        return None, check_bounds(bounds_y, "bounds_y")

    def targets(self, protocol, y):
        """Targets in [-1, 1]; a missing response becomes the midpoint of the bounds."""
        lower, upper = protocol.bounds_y
        centre, scale = protocol.response_scale
        y = as_floats(y)
        y = np.where(np.isnan(y), lower + (upper - lower) / 2, np.clip(y, lower, upper))
        return (y - centre) / scale

    def slope(self, target, prediction):
        """Derivative of the loss with respect to the prediction."""
        return prediction - target


LOSSES = {"logistic": LogisticLoss(), "softmax": SoftmaxLoss(), "squared": SquaredLoss()}


@lru_cache(maxsize=8)
def contrasts(n_classes):
    """Return the n_classes x (n_classes - 1) matrix of Helmert's orthonormal contrasts.

    Examples
    --------
    >>> contrasts(3).round(3)
    array([[ 0.707,  0.408],
           [-0.707,  0.408],
           [ 0.   , -0.816]])
    """
    before = np.arange(1, n_classes)  # column j compares label j with the j labels before it
    matrix = np.triu(np.ones((n_classes, n_classes - 1)))
    matrix[before, before - 1] = -before
    matrix /= np.sqrt(before * (before + 1.0))
    matrix.setflags(write=False)
    return matrix


def _check_classes(classes):
    if classes is None:
        raise InvalidParameterError(
            "classes must be given: the labels are public and cannot be read off the private data. Give all labels."
        )
    check_length(classes, "classes", MAX_CLASSES)
    try:
        known = check_list(classes).tolist()
    except InvalidParameterError as error:
        raise InvalidParameterError(str(error).replace("categories", "classes")) from None
    if len(known) < 2 or not all(isinstance(label, (str, Real)) for label in known):
        raise InvalidParameterError(f"classes must be at least two distinct labels, numbers or strings, got "
                                    f"{classes!r}. Give all labels.")
    return tuple(known)
