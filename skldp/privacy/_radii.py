"""Radii of balls that contain records, for mechanisms that randomise the direction of a record."""

import math

from skldp._validation._parameters import check_integer, check_positive
from skldp.privacy._sensitivity import check_nonnegative

__all__ = ["record_radius"]


def record_radius(norm: float, y_bound: float, y_weight: float = 1.0, intercept_weight: float = 0.0,
                  n_responses: int = 1) -> float:
    r"""Radius of the smallest ball around zero that contains all records (kappa, x, w y), for the axis mechanism.

    Parameters
    ----------
    norm, y_bound : float
        Public bounds R on the norm of x and R_y on abs(y), of each response.
    y_weight : float, default=1.0
        Weight w of each response.
    intercept_weight : float, default=0.0
        The constant entry kappa; 0 without an intercept.
    n_responses : int, default=1
        Number k of responses, which may be 0.

    Returns
    -------
    float

    Notes
    -----
    :math:`\|(\kappa, x, wy)\|^2 = \kappa^2 + \|x\|^2 + w^2\|y\|^2 \le \kappa^2 + R^2 + kw^2R_y^2`, attained by every x
    on the boundary with all responses at their bounds. The axis mechanism is private for any unit vectors: a radius
    that is too small does not cost privacy, but shortens records.

    Examples
    --------
    >>> from skldp.privacy import record_radius
    >>> record_radius(1.0, 1.0, y_weight=1.0, intercept_weight=2**0.5)
    2.0
    """
    kappa = check_nonnegative(intercept_weight, "intercept_weight")
    response = check_positive(y_weight, "y_weight") * check_positive(y_bound, "y_bound")
    n_responses = check_integer(n_responses, "n_responses", 0)
    return math.sqrt(check_positive(norm, "norm") ** 2 + kappa**2 + n_responses * response**2)
