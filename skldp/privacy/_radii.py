"""Radii of balls that contain records, and scores with their curvature."""

import math

from skldp._validation._parameters import check_integer, check_positive
from skldp.privacy._sensitivity import check_nonnegative

__all__ = ["record_radius", "score_radius", "subset_radius"]


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


def subset_radius(norm: float, n_features: int, n_sampled: int) -> float:
    r"""Norm to which a client shortens some of its features, if all of them together have the norm R at most.

    Parameters
    ----------
    norm : float
        Public bound R on the norm of x.
    n_features : int
        Number d of features.
    n_sampled : int
        Number s of those in a report.

    Returns
    -------
    float

    Notes
    -----
    It is :math:`R\sqrt{s/d}`. If :math:`|x_j| \le R/\sqrt d` for every j, then for every set S of s features
    :math:`\sum_{j \in S}x_j^2 \le sR^2/d`, attained where all of S are at their bounds: no record is shortened. Without
    such bounds all of x could be in S, and only the radius R would shorten no record.

    Examples
    --------
    >>> from skldp.privacy import subset_radius
    >>> subset_radius(1.0, n_features=20, n_sampled=5)
    0.5
    """
    n_features = check_integer(n_features, "n_features", 1)
    n_sampled = check_integer(n_sampled, "n_sampled", 1, n_features)
    return check_positive(norm, "norm") * math.sqrt(n_sampled / n_features)


def score_radius(intercept_weight: float = 0.0, residual: float = 0.5, curvature_weight: float = 1.0) -> float:
    r"""Length that a report of score and curvature has at the edge of the unit ball, for a typical residual.

    Parameters
    ----------
    intercept_weight : float, default=0.0
        Weight :math:`\kappa` of the constant.
    residual : float, default=0.5
        Length :math:`r_0` of a typical residual: 1/2 for two equally likely labels.
    curvature_weight : float, default=1.0
        Weight c of the curvature; 0 if the report is the score alone.

    Returns
    -------
    float

    Notes
    -----
    With :math:`\tilde x = (\kappa, x)`, :math:`B = \|\tilde x\|^2`, the residual r of the response, a vector or a
    number, and the curvature w, the vector is :math:`(r\tilde x^T, cw\,\mathrm{svec}\,\tilde x\tilde x^T)`. svec is an
    isometry, :math:`\|\tilde x\tilde x^T\| = B` and :math:`\|r\tilde x^T\| = \|r\|\sqrt B`, so the squared length is
    :math:`\|r\|^2B + c^2w^2B^2`. For a residual of :math:`r_0` and w = 1/4 it is :math:`r_0^2B + c^2B^2/16`, which
    increases in B up to :math:`B = 1 + \kappa^2`. This is the radius :math:`\rho`; no record in the ball is shortened
    at a model with equally likely labels. Given x and the public model, let m be the largest length of r over all
    responses. The weight

    .. math:: v = \min\left(1, \frac\rho{\sqrt{m^2B + c^2w^2B^2}}\right)

    depends on x and public numbers only, and because :math:`\|r\| \le m`, the weighted vector has a length of at most
    :math:`\rho` for every record and response. Any two reports are at most :math:`2\rho` apart, by the triangle
    inequality. A model that is certain and wrong comes as close to that as one likes: w vanishes, and records x and -x
    far from the origin have opposite scores. Nothing else about the response is used, so the proof is the same for
    labels and for counts.

    Examples
    --------
    >>> from skldp.privacy import score_radius
    >>> round(score_radius() ** 2, 12)
    0.3125
    """
    square = 1 + check_nonnegative(intercept_weight, "intercept_weight") ** 2
    weight = check_nonnegative(curvature_weight, "curvature_weight")
    return math.sqrt(check_positive(residual, "residual") ** 2 * square + (weight * square / 4) ** 2)
