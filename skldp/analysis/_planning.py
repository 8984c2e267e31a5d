"""How many people a study needs."""

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, ndtri

from skldp._validation._categories import columns_of
from skldp._validation._parameters import check_bounds, check_fraction, check_integer, check_positive, check_real
from skldp.exceptions import InvalidParameterError
from skldp.models.categories._choice import check_likelihood
from skldp.models.regression._moment_likelihoods import LEAST_NOISE
from skldp.models.values._cell_likelihoods import cell_likelihood
from skldp.protocols._moment_protocol import MomentProtocol
from skldp.protocols._record_protocol import RecordProtocol

_STEP = 1e-4  # of numerical derivatives, relative to the spread
PLANNED = ("LDPGaussian", "LDPExponential", "LDPPoisson", "LDPGeometric", "LDPHistogram", "LDPBayesLinearRegression")
_RAREST = 1e-13  # cells of less probability hold rounding errors, and no information to speak of


def required_reports(estimator: Any, width: float, *, level: float = 0.9, parameter: str | None = None,
                     **assumptions: ArrayLike) -> int:
    r"""Number of reports for which a credible interval has a given width.

    Parameters
    ----------
    estimator : LDPGaussian, LDPExponential, LDPPoisson, LDPGeometric, LDPHistogram or LDPBayesLinearRegression
        Not fitted: the mechanism, the budget and the public domain are read off it.
    width : float
        Width of the interval, from end to end, in the units of the parameter.
    level : float, default=0.9
        Posterior probability inside the interval.
    parameter : str or None, default=None
        What the interval is of, by its name in the posterior. ``None`` is ``"mean"`` of the normal distribution (which
        has ``"std"`` too), and the only choice elsewhere: ``"rate"``, ``"probability"``, ``"frequencies"``,
        ``"coef"``.
    **assumptions
        The truth that is planned for: nobody knows it, and the answer depends on it. In the units of the data,

        - ``std`` (required), ``mean`` (default: the middle of the bounds) for :class:`LDPGaussian`; ``rate`` for
          :class:`LDPExponential` and :class:`LDPPoisson`; ``probability`` for :class:`LDPGeometric`; and ``n_features``
          (default 1), the columns that share the budget;
        - ``frequency`` (required) of one category for :class:`LDPHistogram`; the others share the rest equally;
        - ``feature_std`` and ``sigma`` (required), the standard deviations of every feature and of the response around
          the line, ``coef`` (default 0), one number or one for each feature, and ``n_features`` (default 1) for
          :class:`LDPBayesLinearRegression`. Features are centred and uncorrelated. The answer is that for the
          coefficient with the widest interval.

    Returns
    -------
    int
        Rounded up. The width is that of the average study. A regression learns the spread of its features too, so that
        widths differ from study to study, by as much as that is uncertain.

    Notes
    -----
    A posterior from many reports is nearly normal, with a variance V/N where V is the diagonal entry of the inverse
    Fisher information of **one** report, so that

    .. math:: N = \lceil V(2z/\mathrm{width})^2\rceil, \qquad z = \Phi^{-1}((1 + \mathrm{level})/2).

    *Priors are neglected*: they make intervals narrower, which counts where the width is not small against the prior's
    own, or where the interval reaches the end of what is possible (a frequency of zero). The plan is then too careful.

    *Values.* A report falls in a public cell c with probability :math:`P_\theta(c)` by the likelihood of the estimator,
    and the information is :math:`\sum_c\partial P\,\partial P^T/P`, with all parameters unknown.

    *Frequencies.* What a report tells about one category is whether it contains it, and how many of the others.
    With :math:`P_1` and :math:`P_0` the distributions of that pair for a client inside and outside of the category,
    the information is :math:`\sum(P_1 - P_0)^2/(fP_1 + (1-f)P_0)`. With subsets or randomised response it is
    :math:`(p-q)^2/(\mu(1-\mu))`, :math:`\mu = q + (p-q)f`. Where only counts of unary reports are kept, it is that of
    the means of the pair, :math:`m'^TC^{-1}m'` with their slope m' in f and covariance C.

    *Coefficients.* In public units (x of norm 1, y in [-1, 1], weight w of the response) the mean of N moment reports
    is normal with covariance :math:`(\tau^2X + 2\Psi X\Psi)/N` at a matrix X, and the coefficients are a smooth
    function of it. With features of standard deviation s,

    .. math:: V_j = \frac{\sigma^2}{s^2} + \frac{\tau^2}{2s^4}\left(\frac1{w^2} + \|\theta\|^2 + \theta_j^2\right):

    the term of least squares, and that of privacy. With noisy records (``mechanism="records"``, noise variance
    :math:`\nu`) it is :math:`(1/s^2 + \nu/s^4)(\sigma^2 + \nu(1/w^2 + \|\theta\|^2)) + \nu^2\theta_j^2/s^4`.
    Few reports leave the spread of the features uncertain, which makes intervals wider than planned: by 4 to 9 % at a
    width of 0.2 in public units, by 2 % at 0.05 (three features, s = 0.3). The clipping of records is not part of the
    model, so bounds that cut many off make the plan wrong.

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
    reach = 2 * ndtri((1 + check_fraction(level, "level")) / 2) / check_positive(width, "width")
    people = plan(estimator, reach**2, parameter, assumptions)
    if not people < math.inf:
        raise InvalidParameterError(
            f"Under these assumptions a report tells nothing about {parameter or 'the parameter'}: the records all lie "
            "at one point of the public domain. Choose another domain, or assume otherwise."
        )
    return max(1, math.ceil(people))


def plan_value(estimator, factor, parameter, assumptions):
    """People for the parameter of a distribution of values."""
    family = estimator._family()
    names = list(family.priors)
    middle = {"mean": None} if "mean" in names else {}
    given = _taken(assumptions, estimator, names, {**middle, "n_features": 1})
    place = names.index(_checked_name(parameter, names))
    protocol = estimator.protocol(given.pop("n_features"))
    variances = np.diag(_inverse(_cell_information(family, protocol, _truth(estimator, given))))
    return factor * variances[place]


def _truth(estimator, given):
    """Values of the parameters, in the order of the family."""
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
    """Fisher information of one report about the parameters of its record, from the probabilities of its cells."""
    log_cells = _log_cells(family, protocol)
    spread = truth[-1]  # the standard deviation, or the only parameter
    steps = _STEP * (spread if "probability" not in family.priors else spread * (1 - spread)) * np.eye(len(truth))
    points = np.array(truth) + np.concatenate([np.zeros((1, len(truth))), steps, -steps])
    with np.errstate(all="ignore"):
        centre, *around = np.exp(log_cells([points[:, [i]] for i in range(len(truth))]))
        slopes = (np.array(around[:len(truth)]) - np.array(around[len(truth):])) / (2 * np.diag(steps)[:, None])
    possible = centre > _RAREST
    return (slopes[:, possible] / centre[possible]) @ slopes[:, possible].T


def _log_cells(family, protocol):
    """The log-probability of every cell of a report, as a function of parameter values of shape (n, 1) each."""
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
    # An information of zero, or so small that rounding made it negative.
    return np.where(np.diag(inverse) > 0, inverse, np.inf)


def plan_frequency(estimator, factor, parameter, assumptions):
    """People for the frequency of a category."""
    given = _taken(assumptions, estimator, ["frequency"], {})
    _checked_name(parameter, ["frequencies"])
    frequency = check_fraction(given["frequency"], "frequency")
    protocol = estimator.protocol(1 if estimator.categories is None else columns_of(estimator.categories))
    mechanism, d = protocol.randomizer, protocol.n_categories
    choice = check_likelihood(estimator.likelihood)
    if d < 2:
        raise InvalidParameterError("A single category has frequency 1. Give at least two categories.")
    if mechanism.n_ones is not None:
        p, q = mechanism.p, mechanism.q
        mean = q + (p - q) * frequency
        return factor * mean * (1 - mean) / (p - q) ** 2
    inside, outside = _unary_pairs(mechanism)
    exact = factor / _mixture_information(inside, outside, frequency)
    n_distinct = min(exact, 2.0 ** min(d, 1000))
    if choice.keeps(exact * d) and choice.evaluates(n_distinct * d):
        return exact
    return factor / _count_information(inside, outside, frequency)


def _unary_pairs(mechanism):
    """Probabilities of a category's bit and of the number of other ones, for a client inside it and outside."""
    d, p, q = mechanism.n_categories, mechanism.p, mechanism.q
    inside = np.outer([1 - p, p], _binomial(d, d - 1, q))
    chance = _binomial(d, d - 2, q)
    with_own = (1 - p) * chance
    with_own[1:] += p * chance[:-1]
    return inside, np.outer([1 - q, q], with_own)


def _binomial(size, n, q):
    """Probabilities of 0 .. size - 1 ones among n bits."""
    ones = np.arange(n + 1)
    log_choose = -betaln(n - ones + 1, ones + 1) - np.log(n + 1)
    return np.append(np.exp(log_choose + ones * np.log(q) + (n - ones) * np.log1p(-q)), np.zeros(size - n - 1))


def _mixture_information(inside, outside, frequency):
    """Fisher information about the weight of a mixture."""
    mixture = frequency * inside + (1 - frequency) * outside
    possible = mixture > 0
    return np.sum((inside - outside)[possible] ** 2 / mixture[possible])


def _count_information(inside, outside, frequency):
    """The same when the two numbers of a report are only known as sums over all reports, which are normal."""
    numbers = np.indices(inside.shape).reshape(2, -1)
    mixture = (frequency * inside + (1 - frequency) * outside).ravel()
    slope = numbers @ (inside - outside).ravel()
    return slope @ np.linalg.solve(np.cov(numbers, aweights=mixture, ddof=0), slope)


def plan_coefficient(estimator, factor, parameter, assumptions):
    """People for a coefficient of a linear regression, in the reference design."""
    given = _taken(assumptions, estimator, ["feature_std", "sigma"], {"coef": 0.0, "n_features": 1})
    _checked_name(parameter, ["coef"])
    d = check_integer(given["n_features"], "n_features", 1)
    protocol = estimator.protocol(d)
    feature_std, sigma = (check_positive(given[name], name) for name in ("feature_std", "sigma"))
    coef = _coefficients(given["coef"], d)
    if math.sqrt(d) * feature_std > protocol.data_norm:
        raise InvalidParameterError(
            f"{d} features with feature_std={feature_std!r} make records of length {math.sqrt(d) * feature_std:.3g}, "
            f"beyond data_norm={protocol.data_norm!r}: most would be shortened, which no model knows. Raise data_norm."
        )
    response = math.hypot(feature_std * np.linalg.norm(coef), sigma)
    if response > protocol.y_scale:
        raise InvalidParameterError(
            f"Responses of standard deviation {response:.3g} do not fit in bounds_y={protocol.bounds_y!r}: most would "
            f"be clipped, which no model knows. Widen bounds_y."
        )
    unit = protocol.data_norm / protocol.y_scale
    noise = max(protocol.randomizer.noise_variance, LEAST_NOISE)
    public = feature_std / protocol.data_norm, sigma / protocol.y_scale, coef * unit
    variances = _VARIANCES[type(protocol)](noise, protocol.y_weight, *public)
    return factor * variances.max() / unit**2


def _coefficients(coef, d):
    coef = np.asarray(coef)
    if coef.dtype.kind not in "iuf" or coef.shape not in ((), (d,)) or not np.isfinite(coef).all():
        raise InvalidParameterError(f"coef must be a finite number, or one for each of the {d} features; got {coef!r}.")
    return np.broadcast_to(coef.astype(float), (d,))


def _moment_variances(noise, weight, s, sigma, coef):
    private = noise / (2 * s**4) * (1 / weight**2 + coef @ coef + coef**2)
    return sigma**2 / s**2 + private


def _record_variances(noise, weight, s, sigma, coef):
    residual = sigma**2 + noise * (1 / weight**2 + coef @ coef)
    return (1 / s**2 + noise / s**4) * residual + (noise * coef / s**2) ** 2


_VARIANCES: dict = {MomentProtocol: _moment_variances, RecordProtocol: _record_variances}


def _taken(assumptions, estimator, required, optional):
    """Assumptions by name, defaults filled in, or a sentence that says which are missing or too many."""
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
            f"{' and '.join(missing)} must be assumed: how many reports {type(estimator).__name__} needs depends on it."
        )
    return {**optional, **assumptions}


def _checked_name(parameter, names):
    if parameter is None:
        return names[0]
    if parameter not in names:
        raise InvalidParameterError(f"parameter must be one of {', '.join(map(repr, names))}, got {parameter!r}.")
    return parameter
