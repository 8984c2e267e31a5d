"""Public choice between the mechanisms of moments, and of the weights of a record: functions of public numbers."""

import math

import numpy as np

from skldp._validation._limits import MAX_ENTRIES
from skldp.mechanisms._axis_moments import AxisMoments
from skldp.mechanisms._moments import MomentMechanism, SphereMoments

# Records for which the choice is made: half of the largest squared length, and a line that explains a quarter.
_MEAN_SQUARE = 0.5
_EXPLAINED = 0.25
_LEAST_GAIN = 0.8  # of the risk of the sphere, whose noise does not depend on the records
_LONG_REPORT = 500  # integers, above which a shorter report is worth some precision
_WORTH = 1.3


def moment_risk(mechanism: MomentMechanism) -> float:
    r"""Expected square of the error of predictions that is due to the noise of one report.

    Parameters
    ----------
    mechanism : SphereMoments or AxisMoments
        Its budget, number of features and weights are used.

    Returns
    -------
    float

    Notes
    -----
    Records have :math:`S = E\,xx^T = \frac1{2d}I`, mean zero and one response in units of its bound, with
    :math:`E\,y^2 = \frac14` (1 for labels), of which the line :math:`\theta` explains a quarter. To first order the
    error of :math:`b^T\hat\theta` is :math:`l^TRr` for a report R, with :math:`l = S^{-1}b` in the entries of x and
    :math:`r = (0, -\theta, 1/w)`, and that of the intercept is the same with :math:`1/\kappa` in the first entry of l.
    Their variances are exact. Every direction b counts like one that is orthogonal to :math:`\theta`. Without responses
    it is the variance of an entry of x with x.

    Examples
    --------
    >>> from skldp.mechanisms import AxisMoments, SphereMoments
    >>> from skldp.protocols import moment_risk
    >>> sphere, axis = SphereMoments(epsilon=4.0, n_features=20), AxisMoments(epsilon=4.0, n_features=20)
    >>> round(moment_risk(axis) / moment_risk(sphere), 2)
    0.4
    """
    if not mechanism.n_responses:
        return mechanism.noise_variance
    d, w, kappa = mechanism.n_features, mechanism.y_weight, mechanism.intercept_weight
    constant, square, spread = int(kappa > 0), 1.0 if mechanism.labelled else 0.25, _MEAN_SQUARE / d
    line = np.zeros(d)
    line[0] = math.sqrt(_EXPLAINED * square / spread)
    theta = np.diag([kappa**2] * constant + [spread] * d + [w**2 * square])
    theta[constant:-1, -1] = theta[-1, constant:-1] = w * spread * line
    left = np.zeros((1 + constant, len(theta)))
    left[0, -2] = 1 / spread
    left[1:, 0] = 1 / kappa if constant else 0.0
    variances = mechanism.noise.variance(left, np.concatenate([np.zeros(constant), -line, [1 / w]]), theta)
    return float(variances @ [_MEAN_SQUARE, 1.0][:1 + constant])


def axis_constant(n_features: int) -> float:
    r"""Weight of the constant that suits reports of axes.

    Parameters
    ----------
    n_features : int
        Number d of features.

    Returns
    -------
    float
        :math:`0.8/\sqrt d`, close to the minimum of :func:`moment_risk` at every budget, but from 0.3, for columns that
        are not centred, to :math:`\sqrt{1/2}`.

    Examples
    --------
    >>> from skldp.protocols import axis_constant
    >>> round(axis_constant(5), 2), axis_constant(20)
    (0.36, 0.3)
    """
    return min(max(0.8 / math.sqrt(n_features), 0.3), math.sqrt(0.5))


def moment_mechanism(**options) -> str:
    """Name of the better mechanism of moments, by :func:`moment_risk`: of the sphere and the axis.

    It is what ``mechanism="auto"`` of an estimator stands for, with the weights that the sphere has by default.

    Parameters
    ----------
    **options
        Those of :class:`skldp.mechanisms.SphereMoments`.

    Returns
    -------
    str
        "axis" if its risk is at most 0.8 of that of the sphere, whose noise is the same for all records, or at most 1.3
        of it where a report of the sphere has more than 500 integers, or if the sphere cannot take so many features;
        "sphere" otherwise, and without noise.

    Examples
    --------
    >>> from skldp.protocols import moment_mechanism
    >>> [moment_mechanism(epsilon=epsilon, n_features=5) for epsilon in (0.5, 4.0)]
    ['sphere', 'axis']
    >>> moment_mechanism(epsilon=0.5, n_features=100)
    'axis'
    """
    axis = AxisMoments(**options)
    if axis.n_moments > MAX_ENTRIES:
        return "axis"
    if not axis.private:
        return "sphere"
    sphere = SphereMoments(**options)
    ratio = moment_risk(axis) / moment_risk(sphere)
    return "axis" if ratio <= (_WORTH if sphere.width > _LONG_REPORT else _LEAST_GAIN) else "sphere"
