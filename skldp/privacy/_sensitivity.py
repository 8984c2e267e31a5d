r"""Sensitivities: the largest distance between the encodings of two records.

Every function is a maximum over *all* pairs of records of the public domain, with its proof in the docstring and a
brute-force test. Nothing depends on data.

Moment reports encode :math:`\tilde v = (\kappa, x, w y)` with :math:`\|x\| \le R`, :math:`|y| \le R_y` as
:math:`\mathrm{svec}(\tilde v \tilde v^T)`, the isometric half-vectorisation (off-diagonal entries times
:math:`\sqrt 2`), so that for any two records

.. math:: \|\mathrm{svec}(aa^T) - \mathrm{svec}(bb^T)\|^2 = \|a\|^4 + \|b\|^4 - 2\langle a, b\rangle^2. \qquad (*)
"""

import math

from skldp._validation._parameters import check_bounds, check_integer, check_positive, check_real

__all__ = [
    "ball_sensitivity",
    "interval_sensitivity",
    "labelled_moment_radius",
    "moment_radius",
    "moment_sensitivity",
    "paper_moment_bound",
    "weighted_moment_sensitivity",
]


def interval_sensitivity(bounds: tuple[float, float]) -> float:
    """L1 (and L2) sensitivity of a value clipped to an interval.

    Parameters
    ----------
    bounds : tuple of float
        Public ends (lower, upper).

    Returns
    -------
    float

    Notes
    -----
    Two numbers in [a, b] differ by at most b - a, attained at the ends.

    Examples
    --------
    >>> from skldp.privacy import interval_sensitivity
    >>> interval_sensitivity((-5, 5))
    10.0
    """
    lower, upper = check_bounds(bounds)
    return upper - lower


def ball_sensitivity(norm: float) -> float:
    r"""L2 sensitivity of a vector clipped to the ball of radius ``norm``.

    Parameters
    ----------
    norm : float
        Public radius R.

    Returns
    -------
    float

    Notes
    -----
    :math:`\|x - x'\| \le \|x\| + \|x'\| \le 2R` by the triangle inequality, attained by x' = -x on the boundary.

    Examples
    --------
    >>> from skldp.privacy import ball_sensitivity
    >>> ball_sensitivity(1.0)
    2.0
    """
    return 2 * check_positive(norm, "norm")


def moment_sensitivity(norm: float, y_bound: float, y_weight: float = 1.0, intercept_weight: float = 0.0,
                       n_responses: int = 1) -> float:
    r"""L2 sensitivity of svec(v v') for v = (intercept_weight, x, y_weight * y).

    Parameters
    ----------
    norm : float
        Public bound R on the Euclidean norm of x.
    y_bound : float
        Public bound R_y on abs(y), of each response.
    y_weight : float, default=1.0
        Weight w of y in the report, of each response.
    intercept_weight : float, default=0.0
        The constant entry kappa; 0 without an intercept.
    n_responses : int, default=1
        Number k of entries of y; 0 if v = (intercept_weight, x).

    Returns
    -------
    float

    Notes
    -----
    This is :func:`weighted_moment_sensitivity` with :math:`R^2 \to A = R^2 + \kappa^2`, :math:`c_1 = 2w^2` and
    :math:`c_2 = w^4`: by (*) in the module's notes the squared distance of two encoded records is
    :math:`(a + w^2y^2)^2 + (a' + w^2y'^2)^2 - 2(t + w^2yy')^2`, where :math:`a, a' \le A` are the squared norms of
    :math:`(\kappa, x)` and :math:`(\kappa, x')` and t is their inner product. When :math:`w^2R_y^2 \le A` it is
    :math:`\sqrt 2(R^2 + \kappa^2 + w^2R_y^2)`. It is attained if also :math:`\kappa^2 \le R^2 + w^2R_y^2` and x has at
    least two coordinates; otherwise it is an upper bound. For one feature it is at most 1.42 times too large. If
    :math:`\kappa` is far above R and :math:`wR_y` it can be arbitrarily too large; such a :math:`\kappa` is never a
    good choice.

    *Several responses.* For :math:`y \in [-R_y, R_y]^k` with k > 1, any two records have
    :math:`\|\tilde v\|^2 \le A + kw^2R_y^2`, so (*) without its last term gives
    :math:`\sqrt2(R^2 + \kappa^2 + kw^2R_y^2)` for all weights: the same formula with :math:`R_y^2` replaced by the sum
    over the responses. Records at the corners are orthogonal, and attain it, if :math:`\kappa^2 \le R^2` and x has at
    least two coordinates: an even k allows responses that are orthogonal, and an odd one responses whose product is
    :math:`\pm w^2R_y^2`, which the product of x and x' offsets if :math:`\kappa^2 + w^2R_y^2 \le R^2`.

    *No response.* Let r and r' be the norms of x and x' and t their inner product. By (*) the squared distance is
    :math:`(\kappa^2 + r^2)^2 + (\kappa^2 + r'^2)^2 - 2(\kappa^2 + t)^2`. If :math:`\kappa^2 \le R^2`, the last term can
    be zero at r = r' = R, where the others are largest: :math:`\sqrt2(R^2 + \kappa^2)`. Otherwise
    :math:`\kappa^2 + t > 0` is smallest at :math:`t = -rr'`, which gives
    :math:`2\kappa^2(r + r')^2 + (r^2 - r'^2)^2`. For :math:`r \le r'` its derivative with respect to r is
    :math:`4(r + r')(\kappa^2 - r(r' - r)) > 0`, because :math:`r(r' - r) \le R^2/4`, and the one with respect to r' is
    positive as well, so the maximum is at r = r' = R: :math:`2\sqrt2\kappa R`. Both are attained if x has at least two
    coordinates, the second one also for one coordinate. The first is at most :math:`\sqrt2` times too large for one.

    Examples
    --------
    >>> from skldp.privacy import moment_sensitivity
    >>> round(moment_sensitivity(1.0, 1.0, n_responses=0), 6)  # any two of the matrices x x' are closer
    1.414214
    >>> round(moment_sensitivity(1.0, 1.0) / 2**0.5, 12)
    2.0
    >>> round(moment_sensitivity(1.0, 1.0, y_weight=0.5, n_responses=4) / 2**0.5, 12)
    2.0
    """
    weight = check_positive(y_weight, "y_weight")
    kappa = check_nonnegative(intercept_weight, "intercept_weight")
    norm = check_positive(norm, "norm")
    square = norm**2 + kappa**2
    if check_integer(n_responses, "n_responses", 0) == 0:
        return math.sqrt(2) * (square if kappa <= norm else 2 * kappa * norm)
    if n_responses > 1:
        return math.sqrt(2) * (square + n_responses * (weight * check_positive(y_bound, "y_bound")) ** 2)
    return math.sqrt(_largest_squared_distance(square, y_bound, 2 * weight**2, weight**4))


def weighted_moment_sensitivity(norm: float, y_bound: float, cross_weight: float = 1.0,
                                square_weight: float = 1.0) -> float:
    r"""L2 sensitivity of the statistic of Kulkarni et al. (2022), with its block weights.

    The statistic is (svec(x x'), sqrt(c1) x y, sqrt(c2) y^2): the paper's sufficient statistics, scaled so that all
    blocks have the same noise. c1 and c2 are the paper's ratios of noise variances.

    Parameters
    ----------
    norm, y_bound : float
        Public bounds R on the norm of x and R_y on abs(y).
    cross_weight, square_weight : float, default=1.0
        c1 and c2. The isometric report of :func:`moment_sensitivity` has c1 = 2w^2 and c2 = w^4.

    Returns
    -------
    float

    Notes
    -----
    Write :math:`a, a' \le A = R^2` for the squared norms of x and x', and t for their inner product. The squared
    distance of the two statistics is

    .. math:: F = a^2 + a'^2 - 2t^2 + c_1(ay^2 + a'y'^2 - 2tyy') + c_2(y^2 - y'^2)^2 .

    *Norms.* F grows with a and with a' for fixed t, so it is largest at a = a' = A, where t may be any number with
    :math:`|t| \le A` (with one feature only :math:`t = \pm A` is possible: then the result is an upper bound).

    *The larger response.* If :math:`|y'| \le y`, then
    :math:`\partial F/\partial y = 2c_1(Ay - ty') + 4c_2y(y^2 - y'^2) \ge 0`: the larger one is at its bound, y = R_y.

    *The angle.* With y' = -q the best t is :math:`s = \min(A, c_1R_yq/2)`, and q < 0 gives no larger value, by the
    symmetry of (t, y') and (-t, -y'). So

    .. math:: F(q) = 2A^2 - 2s^2 + c_1A(R_y^2 + q^2) + 2c_1R_yqs + c_2(R_y^2 - q^2)^2, \quad 0 \le q \le R_y.

    *The smaller response.* Where :math:`s = c_1R_yq/2`, F is a convex quadratic of :math:`q^2`, largest at an end of
    that range. Where s = A, :math:`F = c_1A(R_y + q)^2 + c_2(R_y^2 - q^2)^2`; its only interior local maximum is
    the smaller root of :math:`q^2 - R_yq + c_1A/(2c_2) = 0`. Hence the maximum is at one of
    :math:`q \in \{0, R_y, 2A/(c_1R_y), (R_y - \sqrt{R_y^2 - 2c_1A/c_2})/2\}`, where real and in :math:`[0, R_y]`.

    Examples
    --------
    >>> from skldp.privacy import paper_moment_bound, weighted_moment_sensitivity
    >>> round((paper_moment_bound(1, 1) / weighted_moment_sensitivity(1, 1)) ** 2, 2)
    1.22
    """
    square = check_positive(norm, "norm") ** 2
    return math.sqrt(_largest_squared_distance(square, y_bound, cross_weight, square_weight))


def paper_moment_bound(norm: float, y_bound: float, cross_weight: float = 1.0, square_weight: float = 1.0) -> float:
    r"""Bound of Kulkarni et al. (2022) on :func:`weighted_moment_sensitivity`, for comparison.

    Parameters
    ----------
    norm, y_bound : float
        Public bounds R on the norm of x and R_y on abs(y).
    cross_weight, square_weight : float, default=1.0
        c1 and c2, as in :func:`weighted_moment_sensitivity`.

    Returns
    -------
    float

    Notes
    -----
    :math:`\sqrt{c_1^2R_y^4/2 + 2R^4 + 2c_1R_y^2R^2 + c_2R_y^4}` maximises each term separately. No
    pair of records attains all these maxima: the bound is valid, but above the exact value.

    References
    ----------
    T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela (2022). Locally differentially private Bayesian inference. AISTATS.

    Examples
    --------
    >>> from skldp.privacy import paper_moment_bound
    >>> round(paper_moment_bound(1.0, 1.0) ** 2, 12)
    5.5
    """
    norm, y_bound = check_positive(norm, "norm"), check_positive(y_bound, "y_bound")
    c1, c2 = cross_weight, square_weight
    return math.sqrt(c1**2 * y_bound**4 / 2 + 2 * norm**4 + 2 * c1 * y_bound**2 * norm**2 + c2 * y_bound**4)


def moment_radius(norm: float, y_bound: float, n_features: int, y_weight: float = 1.0, intercept_weight: float = 0.0,
                  recentre: bool = True, n_responses: int = 1) -> float:
    r"""Radius of the smallest known ball that contains all moment encodings, for the sphere mechanism.

    The constant entry kappa^2 is not sent. With ``recentre`` the ball's centre is (R^2/d) I on the x x' block and
    w^2 R_y^2 on the squares of the responses; otherwise it is the origin.

    Parameters
    ----------
    norm, y_bound : float
        Public bounds R on the norm of x and R_y on abs(y), of each response.
    n_features : int
        Number d of features.
    y_weight : float, default=1.0
        Weight w of each response, as in :func:`moment_sensitivity`.
    intercept_weight : float, default=0.0
        The constant entry kappa, as there.
    recentre : bool, default=True
        Whether the report is encoded as a deviation from the centre.
    n_responses : int, default=1
        Number k of responses, which may be 0.

    Returns
    -------
    float

    Notes
    -----
    With :math:`u = \|x\|^2 \in [0, R^2]`, :math:`v = w^2\|y\|^2 \in [0, V]`, :math:`V = kw^2R_y^2`, and the centre's
    entries :math:`c_x` and :math:`c_y = w^2R_y^2`, the squared distance to the centre is, by :math:`\|\tilde v\|^4` and
    expansion,

    .. math:: (\kappa^2 + u + v)^2 - \kappa^4 - 2c_xu + d c_x^2 - 2c_yv + kc_y^2 .

    It is convex in (u, v), so the maximum over the rectangle is at one of its four corners, each of which is attained:
    v = V if all responses are at their bounds. Without responses V = 0, and two corners remain.

    Examples
    --------
    >>> from skldp.privacy import moment_radius
    >>> moment_radius(1.0, 1.0, 5, recentre=False)
    2.0
    >>> round((moment_radius(1.0, 1.0, 5, recentre=True) / 2) ** 2, 3)
    0.7
    """
    max_u, square, kappa_square = _moment_maxima(norm, y_bound, n_features, y_weight, intercept_weight)
    max_v = check_integer(n_responses, "n_responses", 0) * square
    centre_x, centre_y = (max_u / n_features, square) if recentre else (0.0, 0.0)
    return math.sqrt(
        max(
            (kappa_square + u + v) ** 2 - kappa_square**2
            - 2 * centre_x * u + n_features * centre_x**2
            - 2 * centre_y * v + n_responses * centre_y**2
            for u in (0.0, max_u)
            for v in (0.0, max_v)
        )
    )


def labelled_moment_radius(norm: float, n_features: int, y_weight: float = 1.0, intercept_weight: float = 0.0,
                           recentre: bool = True) -> float:
    r"""Radius of a ball that contains the moment encodings of records with labels -1 and 1.

    As :func:`moment_radius`, but y^2 = 1 is constant and is not sent either.

    Parameters
    ----------
    norm : float
        Public bound R on the norm of x.
    n_features : int
        Number d of features.
    y_weight : float, default=1.0
        Weight w of the response, as in :func:`moment_sensitivity`.
    intercept_weight : float, default=0.0
        The constant entry kappa, as there.
    recentre : bool, default=True
        Whether the x x' block is encoded as a deviation from (R^2/d) I.

    Returns
    -------
    float

    Notes
    -----
    With :math:`u = \|x\|^2` the squared distance is
    :math:`(\kappa^2 + u + w^2)^2 - \kappa^4 - w^4 - 2c_xu + d c_x^2`, convex in u: the maximum is at u = 0 or
    :math:`u = R^2`.

    Examples
    --------
    >>> from skldp.privacy import labelled_moment_radius
    >>> round(labelled_moment_radius(1.0, 8, recentre=False) ** 2, 12)
    3.0
    """
    max_u, max_v, kappa_square = _moment_maxima(norm, 1.0, n_features, y_weight, intercept_weight)
    centre = max_u / n_features if recentre else 0.0
    return math.sqrt(
        max(
            (kappa_square + u + max_v) ** 2 - kappa_square**2 - max_v**2 - 2 * centre * u + n_features * centre**2
            for u in (0.0, max_u)
        )
    )


def check_nonnegative(value, name):
    """Return a finite float that is at least 0."""
    value = check_real(value, name)
    return 0.0 if value == 0 else check_positive(value, name)


def _moment_maxima(norm, y_bound, n_features, y_weight, intercept_weight):
    """Return the largest squared norm of x, the largest (w y)^2, and kappa^2."""
    check_integer(n_features, "n_features", 1)
    kappa = check_nonnegative(intercept_weight, "intercept_weight")
    scaled = check_positive(y_weight, "y_weight") * check_positive(y_bound, "y_bound")
    return check_positive(norm, "norm") ** 2, scaled**2, kappa**2


def _largest_squared_distance(square, y_bound, c1, c2):
    """Maximum of F(q) over its candidates; F is derived in weighted_moment_sensitivity."""
    y_bound, c1, c2 = check_positive(y_bound, "y_bound"), check_positive(c1, "c1"), check_positive(c2, "c2")
    candidates = [0.0, y_bound]
    kink = 2 * square / (c1 * y_bound)
    if kink < y_bound:
        candidates.append(kink)
    discriminant = y_bound**2 - 2 * c1 * square / c2
    if discriminant >= 0:
        candidates.append((y_bound - math.sqrt(discriminant)) / 2)

    def squared_distance(q):
        """F(q): the largest squared distance of two statistics if the smaller response is q in absolute value."""
        inner = min(square, c1 * y_bound * q / 2)
        return (
            2 * square**2 - 2 * inner**2 + c1 * square * (y_bound**2 + q**2)
            + 2 * c1 * y_bound * q * inner + c2 * (y_bound**2 - q**2) ** 2
        )

    return max(map(squared_distance, candidates))
