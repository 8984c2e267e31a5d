"""Losses of one client: the domain of the response, its target, and the derivative of the loss."""

from abc import ABC, abstractmethod
from numbers import Real
from typing import ClassVar

import numpy as np
from scipy.special import expit

from skldp._validation._categories import category_codes, check_list
from skldp._validation._door import as_floats
from skldp._validation._limits import MAX_CLASSES
from skldp._validation._parameters import check_bounds, check_length
from skldp.exceptions import InvalidParameterError


class Loss(ABC):
    """A loss that is convex in the prediction."""

    curvature: ClassVar[float]  # largest second derivative in the prediction

    @abstractmethod
    def check_domain(self, classes, bounds_y):
        """Return the checked classes and the checked bounds of the response; the one that is not used is ``None``."""

    @abstractmethod
    def targets(self, protocol, y):
        """Targets in [-1, 1] of responses, which may have any value."""

    @abstractmethod
    def slope(self, target, prediction):
        """Derivative of the loss with respect to the prediction."""


class LogisticLoss(Loss):
    """The logistic loss of a label -1 or 1."""

    curvature = 0.25

    def check_domain(self, classes, bounds_y):
        """Return the two labels, and ``None`` for the bounds."""
        return _check_classes(classes), None

    def targets(self, protocol, y):
        """Targets -1 and 1, and 0 for an unknown label."""
        return np.array([-1.0, 1.0, 0.0])[category_codes(y, check_list(protocol.classes))]

    def slope(self, target, prediction):
        """Derivative of the loss with respect to the prediction."""
        return -target * expit(-target * prediction)


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


LOSSES = {"logistic": LogisticLoss(), "squared": SquaredLoss()}


def _check_classes(classes):
    if classes is None:
        raise InvalidParameterError(
            "classes must be given: the labels are public and cannot be read off the private data. Give both labels."
        )
    check_length(classes, "classes", MAX_CLASSES)
    try:
        known = check_list(classes).tolist()
    except InvalidParameterError as error:
        raise InvalidParameterError(str(error).replace("categories", "classes")) from None
    if len(known) != 2 or not all(isinstance(label, (str, Real)) for label in known):
        raise InvalidParameterError(f"classes must be two distinct labels, numbers or strings, got {classes!r}.")
    return tuple(known)
