"""Number of reports that a study needs."""

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, ndtri

from skldp._validation._parameters import check_bounds, check_fraction, check_integer, check_positive, check_real
from skldp.exceptions import InvalidParameterError
from skldp.models.categories._choice import check_likelihood
from skldp.models.regression._moment_likelihoods import LEAST_NOISE, above_floor
from skldp.models.values._cell_likelihoods import cell_likelihood
from skldp.protocols._category_protocol import CategoryProtocol
from skldp.protocols._label_record_protocol import LabelRecordProtocol
from skldp.protocols._moment_protocol import LabelMomentProtocol, MomentProtocol

_STEP = 1e-4  # of numerical derivatives, relative to the standard deviation or the only parameter
PLANNED = ("LDPDensity", "LDPGaussian", "LDPExponential", "LDPPoisson", "LDPGeometric", "LDPHistogram",
           "LDPBayesLinearRegression", "LDPCovariance")
_MIN_PROBABILITY = 1e-13  # cells of smaller probability contain rounding errors and negligible information


def required_reports(estimator: Any, width: float, *, level: float = 0.9, parameter: str | None = None,
                     **assumptions: ArrayLike) -> int:
    r"""Return the number of reports for which a credible interval has a given width.

    Parameters
    ----------
    estimator : LDPGaussian, LDPExponential, LDPPoisson, LDPGeometric, LDPHistogram, LDPBayesLinearRegression, ...
        The mechanism, the budget and the public domain are taken from it. It need not be fitted.
    width : float
        Width of the interval, from end to end, in the units of the parameter.
    level : float, default=0.9
        Posterior probability inside the interval.
    parameter : str or None, default=None
        Name of the parameter in the posterior. ``None`` is ``"mean"`` for the normal distribution (which also has
        ``"std"``), and the only choice for the others: ``"rate"``, ``"probability"``, ``"frequencies"``, ``"coef"``,
        ``"covariance"``.
    **assumptions
        Assumed true values, on which the result depends. In the units of the data,

        - ``std`` (required), ``mean`` (default: the middle of the bounds) for :class:`LDPGaussian`; ``rate`` for
          :class:`LDPExponential` and :class:`LDPPoisson`; ``probability`` for :class:`LDPGeometric`; and ``n_features``
          (default 1), the columns that share the budget or the reports;
        - ``std`` (required), ``mean`` and ``n_features`` for :class:`LDPDensity`, as if the values were normal, and
          ``q`` (default 0.5), the probability of the quantile if ``parameter="quantile"``;
        - ``frequency`` (required) of one category for :class:`LDPHistogram`; the others share the rest equally;
        - ``feature_std`` and ``sigma`` (required), the standard deviation of every feature and of the residuals,
          ``coef`` (default 0), one number or one for each feature, and ``n_features`` (default 1) for
          :class:`LDPBayesLinearRegression`. Features are centred and uncorrelated. The result is for the coefficient
          with the widest interval;
        - ``feature_std`` (required) and ``n_features`` (default 1) for :class:`LDPCovariance`, likewise. The result is
          for the variances, whose intervals are wider than those of the covariances.

    Returns
    -------
    int
        Rounded up. The given width is the average over studies. A regression also estimates the variances of its
        features, and the uncertainty of these estimates makes widths differ between studies.

    Notes
    -----
    A posterior from many reports is nearly normal, with variance V/N, where V is the diagonal entry of the inverse
    Fisher information of **one** report, so that

    .. math:: N = \lceil V(2z/\mathrm{width})^2\rceil, \qquad z = \Phi^{-1}((1 + \mathrm{level})/2).

    *Priors are ignored.* They make intervals narrower. This matters if the width is not small compared with that of the
    prior, or if the interval reaches the end of the range (a frequency of zero). The result is then too large.

    *Values.* A report falls in a public cell c with probability :math:`P_\theta(c)` by the likelihood of the estimator,
    and the information is :math:`\sum_c\partial P\,\partial P^T/P`, with all parameters unknown.

    *Frequencies.* The relevant part of a report is a pair: whether it contains the category, and how many of the
    others it contains. With :math:`P_1` and :math:`P_0` the distributions of that pair for a client inside and outside
    of the category, the information is :math:`\sum(P_1 - P_0)^2/(fP_1 + (1-f)P_0)`. With subsets or randomised response
    it is :math:`(p-q)^2/(\mu(1-\mu))`, :math:`\mu = q + (p-q)f`. If only counts of unary reports are kept, it is that
    of the means of the pair, :math:`m'^TC^{-1}m'` with their derivative m' with respect to f and their covariance C.

    *Coefficients.* In public units (x of norm 1, y in [-1, 1], weight w of the response) the mean of N moment reports
    is normal with covariance :math:`(\tau^2X + 2\Psi X\Psi)/N` at a matrix X, and the coefficients are a smooth
    function of it. With features of standard deviation s,

    .. math:: V_j = \frac{\sigma^2}{s^2} + \frac{\tau^2}{2s^4}\left(\frac1{w^2} + \|\theta\|^2 + \theta_j^2\right):

    the sum of the variance of least squares and of that due to privacy. A variance of features has
    :math:`V = \tau^2 + 2s^4`. For axes the terms with :math:`\tau^2` are those of the exact covariance of their noise
    (:class:`skldp.mechanisms.Axis`). With noisy records (``mechanism="records"``,
    noise variance :math:`\nu`) it is
    :math:`(1/s^2 + \nu/s^4)(\sigma^2 + \nu(1/w^2 + \|\theta\|^2)) + \nu^2\theta_j^2/s^4`.
    With few reports the variances of the features are uncertain, which makes intervals wider than planned: by 4 to 9 %
    at a width of 0.2 in public units, by 2 % at 0.05 (three features, s = 0.3). The clipping of records is not part of
    the model, so the result is wrong if the bounds clip many records.

    Examples
    --------
    >>> from skldp import LDPBayesLinearRegression, LDPGaussian, LDPHistogram, required_reports
    >>> required_reports(LDPGaussian(epsilon=1.0, bounds=(120, 220)), width=1.0, std=10.0)
    22917
    >>> required_reports(LDPHistogram(epsilon=1.0, categories=range(10)), width=0.02, frequency=0.2)
    84998
    >>> model = LDPBayesLinearRegression(epsilon=1.0)
    >>> required_reports(model, width=0.2, n_features=3, feature_std=0.4, sigma=0.3)
    150331
    """
    plan = getattr(estimator, "_plan", None)
    if plan is None:
        raise InvalidParameterError(f"required_reports plans with one of {', '.join(PLANNED)}; got {estimator!r}.")
    inverse_std = 2 * ndtri((1 + check_fraction(level, "level")) / 2) / check_positive(width, "width")
    n_reports = plan(estimator, inverse_std**2, parameter, assumptions)
    if not n_reports < math.inf:
        raise InvalidParameterError(
            f"Under these assumptions a report tells nothing about {parameter or 'the parameter'}, because all records "
            "lie at one point of the public domain. Choose another domain, or other assumptions."
        )
    return max(1, math.ceil(n_reports))


def plan_value(estimator, precision, parameter, assumptions):
    """Return the number of reports for a posterior precision of a parameter of a distribution of values."""
    family = estimator._family()
    names = list(family.priors)
    default_mean = {"mean": None} if "mean" in names else {}
    given = checked_assumptions(assumptions, estimator, names, {**default_mean, "n_features": 1})
    place = names.index(checked_name(parameter, names))
    protocol = estimator.protocol(given.pop("n_features"))
    variances = np.diag(_inverse(_cell_information(family, protocol, _true_values(estimator, given))))
    # Each column is in n_reported / n_features of the reports.
    return precision * variances[place] * protocol.n_features / protocol.n_reported


def _true_values(estimator, given):
    """Return the assumed values of the parameters, in the order of the family."""
    if "probability" in given:
        return [check_fraction(given["probability"], "probability")]
    if "rate" in given:
        return [check_positive(given["rate"], "rate")]
    lower, upper = check_bounds(estimator.bounds)
    mean = lower + (upper - lower) / 2 if given["mean"] is None else check_real(given["mean"], "mean")
    if not lower <= mean <= upper:
        raise InvalidParameterError(f"mean={mean!r} is outside the bounds ({lower!r}, {upper!r}). Give a mean inside.")
    return [mean, check_positive(given["std"], "std")]


def _cell_information(family, protocol, truth):
    """Return the Fisher information of one report about the parameters, from the probabilities of its cells."""
    log_cells = _log_cells(family, protocol)
    scale = truth[-1]  # the standard deviation, or the only parameter
    steps = _STEP * (scale if "probability" not in family.priors else scale * (1 - scale)) * np.eye(len(truth))
    points = np.array(truth) + np.concatenate([np.zeros((1, len(truth))), steps, -steps])
    with np.errstate(all="ignore"):
        centre, *around = np.exp(log_cells([points[:, [i]] for i in range(len(truth))]))
        derivatives = (np.array(around[:len(truth)]) - np.array(around[len(truth):])) / (2 * np.diag(steps)[:, None])
    possible = centre > _MIN_PROBABILITY
    return (derivatives[:, possible] / centre[possible]) @ derivatives[:, possible].T


def _log_cells(family, protocol):
    """Return a function from parameter values, of shape (n, 1) each, to the log-probability of every cell."""
    if not protocol.randomizer.private:
        n_levels = protocol.n_levels if family.discrete else None
        protocol = dataclasses.replace(protocol, mechanism="square_wave", n_levels=n_levels, window="auto")
    likelihood = cell_likelihood(family, protocol, np.ones(protocol.cells.n_cells, dtype=np.int64))
    return lambda values: likelihood.log_probabilities(values) + likelihood.log_sizes


def _inverse(information):
    try:
        inverse = np.linalg.inv(information)
    except np.linalg.LinAlgError:
        inverse = np.full_like(information, np.inf)
    # The information can be zero, or so small that rounding makes it negative.
    return np.where(np.diag(inverse) > 0, inverse, np.inf)


def plan_frequency(estimator, precision, parameter, assumptions):
    """Return the number of reports for a posterior precision of the frequency of a category."""
    given = checked_assumptions(assumptions, estimator, ["frequency"], {})
    checked_name(parameter, ["frequencies"])
    frequency = check_fraction(given["frequency"], "frequency")
    protocol = estimator._protocol()
    if not isinstance(protocol, CategoryProtocol):
        raise InvalidParameterError("required_reports plans for one attribute. Pass the categories of one column.")
    mechanism, d = protocol.randomizer, protocol.n_categories
    choice = check_likelihood(estimator.likelihood)
    if d < 2:
        raise InvalidParameterError("A single category has frequency 1. Give at least two categories.")
    if mechanism.n_ones is not None:
        p, q = mechanism.p, mechanism.q
        mean = q + (p - q) * frequency
        return precision * mean * (1 - mean) / (p - q) ** 2
    inside, outside = _unary_pairs(mechanism)
    exact = precision / _mixture_information(inside, outside, frequency)
    n_distinct = min(exact, 2.0 ** min(d, 1000))
    if choice.keeps(exact * d) and choice.evaluates(n_distinct * d):
        return exact
    return precision / _count_information(inside, outside, frequency)


def _unary_pairs(mechanism):
    """Return the joint probabilities of a category's bit and the number of other ones, inside and outside of it.

    Inside means that the client's record is in the category.
    """
    d, p, q = mechanism.n_categories, mechanism.p, mechanism.q
    inside = np.outer([1 - p, p], _binomial(d, d - 1, q))
    without_own = _binomial(d, d - 2, q)
    with_own = (1 - p) * without_own
    with_own[1:] += p * without_own[:-1]
    return inside, np.outer([1 - q, q], with_own)


def _binomial(size, n, q):
    """Return the probabilities of 0 .. size - 1 ones among n bits."""
    ones = np.arange(n + 1)
    log_choose = -betaln(n - ones + 1, ones + 1) - np.log(n + 1)
    return np.append(np.exp(log_choose + ones * np.log(q) + (n - ones) * np.log1p(-q)), np.zeros(size - n - 1))


def _mixture_information(inside, outside, frequency):
    """Return the Fisher information about the weight of a mixture."""
    mixture = frequency * inside + (1 - frequency) * outside
    possible = mixture > 0
    return np.sum((inside - outside)[possible] ** 2 / mixture[possible])


def _count_information(inside, outside, frequency):
    """Return the information about the weight of a mixture if only sums over all reports are known, taken as normal."""
    numbers = np.indices(inside.shape).reshape(2, -1)
    mixture = (frequency * inside + (1 - frequency) * outside).ravel()
    derivative = numbers @ (inside - outside).ravel()
    return derivative @ np.linalg.solve(np.cov(numbers, aweights=mixture, ddof=0), derivative)


def plan_coefficient(estimator, precision, parameter, assumptions):
    """Return the number of reports for a posterior precision of the most uncertain coefficient of a regression."""
    given = checked_assumptions(assumptions, estimator, ["feature_std", "sigma"], {"coef": 0.0, "n_features": 1})
    checked_name(parameter, ["coef"])
    d = check_integer(given["n_features"], "n_features", 1)
    protocol = estimator.protocol(d)
    if protocol.n_responses > 1:
        raise InvalidParameterError("required_reports plans for one response. Give bounds_y one pair, and epsilon / k "
                                    "for k responses: one report of all of them needs fewer people than that.")
    sigma, feature_std = check_positive(given["sigma"], "sigma"), _feature_std(given, protocol)
    coef = _coefficients(given["coef"], d)
    response = math.hypot(feature_std * np.linalg.norm(coef), sigma)
    if response > protocol.y_scale:
        raise InvalidParameterError(
            f"Responses of standard deviation {response:.3g} do not fit in bounds_y={protocol.bounds_y!r}. Most would "
            f"be clipped, which the model ignores. Widen bounds_y."
        )
    unit = protocol.data_norm / protocol.y_scale
    covariance = (feature_std / protocol.data_norm) ** 2 * np.eye(d)
    variances = coefficient_variances(protocol, covariance, (sigma / protocol.y_scale) ** 2, coef * unit)
    return precision * variances.max() / unit**2


def plan_covariance(estimator, precision, parameter, assumptions):
    """Return the number of reports for a posterior precision of the variances of features."""
    given = checked_assumptions(assumptions, estimator, ["feature_std"], {"n_features": 1})
    checked_name(parameter, ["covariance"])
    protocol = estimator.protocol(check_integer(given["n_features"], "n_features", 1))
    variance = (_feature_std(given, protocol) / protocol.data_norm) ** 2
    feature = np.eye(protocol.n_features)[0]
    noise = above_floor(protocol.randomizer.noise).variance(feature[None], feature, variance * np.eye(len(feature)))[0]
    return precision * protocol.data_norm**4 * (noise + 2 * variance**2)


def _feature_std(given, protocol):
    """Return the assumed standard deviation of the features; raise an error if most records would be too long."""
    d, feature_std = protocol.n_features, check_positive(given["feature_std"], "feature_std")
    if math.sqrt(d) * feature_std > protocol.data_norm:
        raise InvalidParameterError(
            f"{d} features with feature_std={feature_std!r} make records of length {math.sqrt(d) * feature_std:.3g}, "
            f"beyond data_norm={protocol.data_norm!r}. Most records would be shortened, which the model ignores. Raise "
            "data_norm."
        )
    return feature_std


def _coefficients(coef, d):
    coef = np.asarray(coef)
    if coef.dtype.kind not in "iuf" or coef.shape not in ((), (d,)) or not np.isfinite(coef).all():
        raise InvalidParameterError(f"coef must be a finite number, or one for each of the {d} features; got {coef!r}.")
    return np.broadcast_to(coef.astype(float), (d,))


def coefficient_variances(protocol, covariance, residual, coef):
    r"""Return the variances of least-squares coefficients from one report, in public units.

    Labels are the responses -1 and 1 of a linear regression, and ``residual`` is the variance of the residuals.

    Notes
    -----
    With :math:`\Sigma = s^2I` these are the formulas in :func:`required_reports`. In general the error of the moments
    enters the coefficients through :math:`\Sigma^{-1}`.
    """
    inverse = np.linalg.inv(covariance)
    if isinstance(protocol, (MomentProtocol, LabelMomentProtocol)):
        return residual * np.diag(inverse) + _private_variances(protocol, covariance, residual, coef)
    noise = max(protocol.randomizer.noise_variance, LEAST_NOISE)
    squared, projected = np.vecdot(inverse, inverse), inverse @ coef
    if isinstance(protocol, LabelRecordProtocol):
        # The label is true with probability (1 + q) / 2; divided by q it is unbiased, with second moment 1 / q^2.
        response = 1 / protocol.randomizer.contrast**2 - 1
    else:
        response = noise / protocol.y_weight**2
    total = residual + response + noise * (coef @ coef)
    return total * (np.diag(inverse) + noise * squared) + (noise * projected) ** 2


def _private_variances(protocol, covariance, residual, coef):
    r"""Return the variances of coefficients that are due to the noise of one report of moments.

    The error of coefficient j is :math:`l^TRr` with :math:`l = \Sigma^{-1}e_j` and :math:`r = (-\theta, 1/w)` in the
    entries of x and of the response.
    """
    mechanism, inverse, cross = protocol.randomizer, np.linalg.inv(covariance), protocol.y_weight * covariance @ coef
    square = protocol.y_weight**2 * (coef @ covariance @ coef + residual)
    theta = np.block([[covariance, cross[:, None]], [cross, square]])
    left = np.column_stack([inverse, np.zeros(len(inverse))])
    return above_floor(mechanism.noise).variance(left, np.append(-coef, 1 / protocol.y_weight), theta)


def checked_assumptions(assumptions, estimator, required, optional):
    """Return the assumptions by name with defaults; raise an error if some are missing or unknown."""
    known = [name for name in required if name not in optional]
    for name in assumptions:
        if name not in required and name not in optional:
            raise InvalidParameterError(
                f"{name!r} is no assumption about {type(estimator).__name__}, which takes "
                f"{', '.join([*known, *optional])}."
            )
    missing = [name for name in known if name not in assumptions]
    if missing:
        raise InvalidParameterError(
            f"{' and '.join(missing)} must be assumed: the number of reports that {type(estimator).__name__} needs "
            "depends on it."
        )
    return {**optional, **assumptions}


def checked_name(parameter, names):
    """Return the name of a parameter, the first one by default; raise an error if there is none of this name."""
    if parameter is None:
        return names[0]
    if parameter not in names:
        raise InvalidParameterError(f"parameter must be one of {', '.join(map(repr, names))}, got {parameter!r}.")
    return parameter
