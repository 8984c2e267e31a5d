"""Warnings of a fit to moments of vectors: records beyond or far below their bounds, and uninformative reports."""

import math
import warnings

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from skldp.analysis._planning import coefficient_variances
from skldp.exceptions import FewReportsWarning, ScaleWarning
from skldp.models.regression._moment_likelihoods import LEAST_NOISE
from skldp.protocols._label_record_protocol import LabelRecordProtocol
from skldp.protocols._record_protocol import RecordProtocol
from skldp.protocols._round_protocol import ScoreProtocol

# Mean squares of x and y, as shares of the largest that data_norm and bounds_y allow. If 5 % of the records are
# clipped, the share is above 0.05.
LARGEST_SHARE, LEAST_SHARE = 0.9, 0.03
_QUANTILE = 2.58  # of the normal distribution at 0.5 %: two tests, for x and y, have a false-alarm rate of 1 %
_LARGEST_ERROR = 0.2  # standard error of a share, above which reports cannot tell a bound from half of it
# Least bits that the median coefficient gains. The prior is a t distribution with three degrees of freedom, half of
# whose variance is in its tails: reports that bound the variance of y, and say nothing else, gain up to 0.7 bits.
LEAST_INFORMATION = 0.75
# The other columns explain 75 % of the variance of a column with this inflation; that of uncorrelated columns was at
# most 1.7 in 400 fits. If the reports determine only the sum of two coefficients, each still gains up to 2 bits
# (measured): by the sum, and because the prior learns their scale.
LARGEST_INFLATION, LEAST_INFORMATION_COLLINEAR = 4.0, 1.5
LARGEST_FACTOR = 3.0  # norm of a row at prediction, in units of data_norm
_LEAST_COUNTED = 0.1  # mean weight of a record in a round, which noise can make negative
_N_DRAWS = 1000  # draws of the covariance over which the prior is averaged
_N_NAMES = 6  # columns named in a message


def coefficient_information(prior_std, posterior):
    r"""Return how much narrower the posterior of each coefficient is than its prior, in bits.

    It is :math:`\log_2` of the ratio of standard deviations; ``prior_std`` maps covariances of x to those of the prior.
    The prior variance is averaged over the posterior of the covariance, so that the information is zero without
    reports.
    """
    covariances = posterior.draws["covariance"]
    covariances = covariances.reshape(-1, *covariances.shape[2:])
    chosen = covariances[::max(1, len(covariances) // _N_DRAWS)]
    prior = np.sqrt(np.mean(prior_std(chosen) ** 2, axis=0))
    return np.log2(prior / posterior.std()["coef"])


def covariance_information(draws, log_variance_std, correlation_std):
    r"""Return how much narrower the posterior of each entry of a covariance is than its prior, in bits.

    It is :math:`\log_2` of the ratio of standard deviations, of the logarithms of variances on the diagonal, and of
    correlations elsewhere. ``draws`` has shape (chain, draw, d, d); the prior standard deviations are given.
    """
    draws = draws.reshape(-1, *draws.shape[2:])
    logs = np.log(np.diagonal(draws, axis1=1, axis2=2))
    posterior_std = (draws * np.exp(-0.5 * (logs[:, :, None] + logs[:, None, :]))).std(axis=0)
    prior_std = np.full(posterior_std.shape, correlation_std)
    np.fill_diagonal(prior_std, log_variance_std)
    np.fill_diagonal(posterior_std, logs.std(axis=0))
    return np.log2(prior_std / posterior_std)


def warn_about_covariance(aggregate, information, stacklevel=2):
    """Warn if records do not suit ``data_norm``, or if the reports say little about variances or correlations.

    ``information`` are the bits that entries of the covariance have gained; ``stacklevel`` is counted from the caller.
    """
    if aggregate.n_reports == 0:
        return
    for text in scale_doubts(aggregate):
        warnings.warn(text, ScaleWarning, stacklevel=stacklevel + 1)
    bits = np.median(information[np.tril_indices(len(information), -1 if len(information) > 1 else 0)])
    if bits < LEAST_INFORMATION:
        needed = rounded_up(aggregate.n_reports * (1 + 3 / max(1 - 4.0 ** -bits, 1e-3)))
        warnings.warn(
            f"{aggregate.n_reports} reports say little about the covariance: in the median the posterior of a "
            f"correlation is narrower than the prior by {max(bits, 0.0):.1f} bits (information_). About {needed} "
            "reports would halve the widths; a larger epsilon or fewer columns also help.", FewReportsWarning,
            stacklevel=stacklevel + 1)


def warn_about_fit(aggregate, posterior, information, names=None, stacklevel=2, n_reports=None):
    """Warn if records do not suit their public bounds, or if the reports say little about the coefficients.

    ``information`` are the bits that the coefficients have gained, and ``stacklevel`` is counted from the caller.
    ``n_reports`` is the number of reports of all rounds, if the aggregate is that of the first one.
    """
    if aggregate.n_reports == 0:
        return
    for text in scale_doubts(aggregate):
        warnings.warn(text, ScaleWarning, stacklevel=stacklevel + 1)
    few = information_doubt(aggregate, posterior, information, names, n_reports or aggregate.n_reports)
    if few is not None:
        warnings.warn(few, FewReportsWarning, stacklevel=stacklevel + 1)


def warn_about_rows(rows, data_norm, stacklevel=2):
    """Warn if rows for a prediction are far beyond the public norm of the fit."""
    norms = np.linalg.norm(rows, axis=1)
    n_beyond = int(np.sum(norms > LARGEST_FACTOR * data_norm))
    if n_beyond:
        warnings.warn(
            f"{n_beyond} of {len(rows)} rows have a norm above {LARGEST_FACTOR:g} times data_norm={data_norm:g}, the "
            f"largest {norms.max():.3g}: no record of the fit was that long. Scale X with the same public constants as "
            "for the fit.", ScaleWarning, stacklevel=stacklevel + 1)


def scale_doubts(aggregate):
    """Return the messages about records that do not suit ``data_norm`` and ``bounds_y``."""
    protocol = aggregate.protocol
    (share, error), response = mean_squares(aggregate)
    found = f"The mean of ||x||^2 is {_share(share)} of the largest that data_norm={protocol.data_norm:g} allows"
    messages = []
    if _at_bound(share, error, protocol.n_features):
        messages.append(
            f"{found} (standard error {error:.1g}), as if most rows were longer and had been shortened. The model "
            "ignores that, and the coefficients are then wrong. Scale the columns with public constants, or raise "
            "data_norm, so that few rows exceed it. If all rows have this norm by construction, as one-hot columns do, "
            "nothing is wrong.")
    elif _far_below_bound(share, error):
        messages.append(
            f"{found} (standard error {error:.1g}): the noise is made for much longer rows. Lower data_norm, or scale "
            "the columns with public constants, so that the longest rows reach it.")
    if not response:
        return messages
    return messages + [text for place, (share, error) in enumerate(response)
                       for text in _response_doubts(protocol, place, share, error)]


def _response_doubts(protocol, place, share, error):
    """Return the message about a response that does not suit its bounds, in a list, if there is one."""
    name, bounds, offset = "y", protocol.bounds_y, np.atleast_1d(protocol.y_offset)[place]
    if protocol.n_responses > 1:
        name, bounds = f"y[:, {place}]", bounds[place]
    found = f"The mean of ({name} - {offset:g})^2 is {_share(share)} of the largest that bounds_y={bounds} allow"
    if _at_bound(share, error, 1):
        return [
            f"{found} (standard error {error:.1g}), as if most responses were outside and had been clipped. The model "
            f"ignores that: the coefficients of normal records would be about {1 / share_inside(share):.2g} times too "
            "small. Widen bounds_y, or scale y with public constants. If y has only two values, these bounds, nothing "
            "is wrong."]
    if _far_below_bound(share, error):
        return [
            f"{found} (standard error {error:.1g}): the noise is made for responses that vary much more. Choose "
            "narrower bounds_y."]
    return []


def share_inside(mean_square):
    r"""Return the share of normal responses inside their bounds, given the mean square of the clipped ones.

    Clipping multiplies the coefficients of normal records by this share: by Stein's lemma
    :math:`\mathrm{Cov}(x, \mathrm{clip}(y)) = \mathrm{Cov}(x, y)P(|y| < 1)`.

    Notes
    -----
    If y has mean 0 and standard deviation 1/b in units of the bounds, the share is :math:`1 - 2\Phi(-b)` and the mean
    square :math:`2\Phi(-b) + (1 - 2\Phi(-b) - 2b\varphi(b))/b^2`, which decreases with b.
    """
    target = min(max(mean_square, 0.02), 0.99)

    def excess(b):
        """Mean square at b, minus the given one."""
        outside, density = 2 * ndtr(-b), math.exp(-b * b / 2) / math.sqrt(2 * math.pi)
        return outside + (1 - outside - 2 * b * density) / b**2 - target

    return float(1 - 2 * ndtr(-brentq(excess, 0.01, 10.0)))  # mean squares of 0.995 and 0.01


def _share(value):
    return f"{min(max(value, 0.0), 1.0):.2g}"


def _at_bound(share, error, d):
    """Whether a mean square is near its bound, and significantly above that of well-scaled records."""
    return error < _LARGEST_ERROR and share > LARGEST_SHARE and share - _QUANTILE * error > _well_scaled(d)


def _well_scaled(d):
    """Return the mean square of d independent uniform columns, divided by the 95 % quantile of their norms.

    Their squared norm has mean d/3 and standard deviation (4d/45)^(1/2). Most other columns have heavier tails, and so
    smaller mean squares.
    """
    return 1 / (1 + 1.645 * math.sqrt(0.8 / d))


def _far_below_bound(share, error):
    return max(share, 0.0) + _QUANTILE * error < LEAST_SHARE


def mean_squares(aggregate):
    """Return unbiased estimates of the mean of ||x||^2 and of each y^2 in public units, with standard errors.

    Only the noise of the mechanism is in the standard errors, because the statement is about the records that were
    sent. The second result is None for labels, and a list of pairs otherwise.
    """
    parts = [_mean_squares(part, tally) for part, tally in aggregate.parts.items() if tally.n_reports]
    responses = None if parts[0][1] is None else [_pooled(one) for one in zip(*(y for _, y in parts))]
    return _pooled([x for x, _ in parts]), responses


def _mean_squares(protocol, tally):
    n, d, noise = tally.n_reports, protocol.n_features, protocol.randomizer.noise_variance
    if isinstance(protocol, ScoreProtocol):
        curvature = protocol.mean_report(tally)[1]
        _, _, weight, counted = protocol.evaluate(np.zeros((1, d)))
        size = curvature[0, 0] / protocol.intercept_weight**2 if protocol.has_intercept else weight[0] * counted[0]
        size = max(size, _LEAST_COUNTED * weight[0])
        return (np.trace(curvature[-d:, -d:]) / size, math.sqrt(d * noise / n) / size), None
    if isinstance(protocol, LabelRecordProtocol):
        records = protocol.randomizer.decode(tally.reports)[:, :-1]
        return (np.mean(np.vecdot(records, records)) - d * noise, math.sqrt((2 * d * noise + 4) * noise / n)), None
    if isinstance(protocol, RecordProtocol):
        squares = np.diag(protocol.mean_products(tally))[1:] - noise
        # A noisy entry has Var(z^2) = 2 noise^2 + 4 noise v^2, and the squares of v add up to 1, or w^2, at most.
        largest = 1.0, protocol.y_weight**2
        errors = [math.sqrt((2 * size * noise + 4 * bound) * noise / n) for size, bound in zip((d, 1), largest)]
    else:
        squares = np.diag(protocol.randomizer.matrix(protocol.mean_moments(tally)))[int(protocol.has_intercept):]
        # The noise of axes depends on the squares themselves; one of the responses stands for all.
        found = (d, squares[:d].sum(), 1.0), (1, squares[d:].sum() / max(len(squares) - d, 1), protocol.y_weight**2)
        errors = [math.sqrt(protocol.randomizer.noise.trace_variance(size, np.clip(square, 0.0, largest)) / n)
                  for size, square, largest in found]
    if protocol.labels is not None:
        return (squares[:d].sum(), errors[0]), None
    responses = [(square / protocol.y_weight**2, errors[1] / protocol.y_weight**2) for square in squares[d:]]
    return (squares[:d].sum(), errors[0]), responses


def _pooled(estimates):
    """Return the average of independent estimates, weighted by their precisions, and its standard error."""
    values, errors = np.array(estimates).T
    weights = 1 / np.maximum(errors, LEAST_NOISE) ** 2
    return float(weights @ values / weights.sum()), float(1 / math.sqrt(weights.sum()))


def information_doubt(aggregate, posterior, information, names, n_reports):
    """Return the message about coefficients whose posterior is nearly the prior, or None."""
    inflation = variance_inflation(posterior.mean()["covariance"])
    least = information.reshape(-1, len(inflation)).min(axis=0)  # over the responses
    combined = np.flatnonzero((inflation > LARGEST_INFLATION) & (least < LEAST_INFORMATION_COLLINEAR))
    sentences = []
    if np.median(information) < LEAST_INFORMATION:
        sentences.append(
            f"{n_reports} reports say little about most coefficients: in the median the posterior is "
            f"narrower than the prior by {max(np.median(information), 0.0):.1f} bits (information_). About "
            f"{reports_for_half_width(aggregate, posterior, n_reports)} reports would halve the widths; a larger "
            "epsilon or fewer columns also help.")
    if len(combined):
        explained = 1 - 1 / inflation[combined].max()
        sentences.append(
            f"The reports hardly separate the coefficients of {_listed(combined, names)}: each of these columns is "
            f"nearly a combination of other columns, which explain up to {explained:.0%} of its variance. Drop or "
            "combine some of them, or read predictions instead of single coefficients.")
    return " ".join(sentences) or None


def variance_inflation(covariance):
    """Return by how much its correlations with the other columns inflate the variance of each coefficient."""
    return np.diag(covariance) * np.diag(np.linalg.inv(covariance))


def _listed(columns, names):
    words = [f"column {j}" if names is None else repr(str(names[j])) for j in columns[:_N_NAMES]]
    more = len(columns) - len(words)
    words += [f"{more} more"] if more else []
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def reports_for_half_width(aggregate, posterior, n_reports):
    r"""Return about how many reports would halve the posterior width of the median coefficient.

    There are ``n_reports`` in all rounds, which are taken to be as precise as those of the aggregate.

    Notes
    -----
    Precisions add up: a posterior variance :math:`w^2` from N reports, of which one has the variance V, becomes
    :math:`w^2/4` with :math:`N + 3V/w^2` reports, 4 N if the prior is negligible. V is that of
    :func:`skldp.required_reports` at the posterior means. Rounded up to two digits.
    """
    protocol, mean, d = aggregate.protocol, posterior.mean(), aggregate.protocol.n_features
    covariance = mean["covariance"] / protocol.data_norm**2
    # With few reports the mean is that of the prior, which includes longer records than data_norm allows.
    covariance *= min(1.0, _well_scaled(d) / np.trace(covariance))
    scale, residual = 1.0, np.ones(len(np.atleast_2d(mean["coef"])))
    if "sigma" in mean:
        scale = protocol.y_scale
        residual = np.atleast_1d(mean["sigma"] / scale) ** 2
    unit = protocol.data_norm / np.reshape(scale, (-1, 1))
    coef, width_square = np.atleast_2d(mean["coef"]) * unit, (np.atleast_2d(posterior.std()["coef"]) * unit) ** 2
    precision = np.array([_reported_precision(aggregate, covariance, *response) for response in zip(residual, coef)])
    precision = precision * (n_reports / aggregate.n_reports)
    share = np.minimum(precision * width_square, 1.0)  # of the posterior precision that is due to the reports
    return rounded_up(float(np.median(n_reports * (1 + 3 / share))))


def rounded_up(number):
    """Return a number rounded up to two digits, as an integer."""
    step = 10 ** max(math.floor(math.log10(number)) - 1, 0)  # a power of ten
    return math.ceil(number / step) * step


def _reported_precision(aggregate, covariance, residual, coef):
    """Return the precisions of the coefficients of one response that are due to the reports, in public units."""
    slope, protocol = 1.0, aggregate.protocol
    if isinstance(protocol, ScoreProtocol):
        return sum(tally.n_reports / _score_variances(part, covariance) for part, tally in aggregate.parts.items()
                   if tally.n_reports)
    if protocol.labels is not None:
        # E tanh(u/2) is about (1/2) E u (1 + pi Var(u) / 8)^(-1/2): the least-squares coefficients are that multiple.
        slope = 0.5 / math.sqrt(1 + math.pi / 8 * coef @ covariance @ coef)
    return sum(tally.n_reports / coefficient_variances(part, covariance, residual, slope * coef)
               for part, tally in aggregate.parts.items() if tally.n_reports) * slope**2


def _score_variances(protocol, covariance):
    """Return the variances of coefficients from the score of one report, in public units.

    The error of the score enters through the inverse of its derivative, that of the model of the round at the origin.
    """
    response, inverse = protocol.response, np.linalg.inv(covariance)
    slope = np.trace(response.curvature(protocol.lines[:, 0][None])[0]) / response.n_lines
    noise = max(protocol.randomizer.noise_variance, LEAST_NOISE)
    variances = np.vecdot(inverse, inverse) * noise / slope**2 + response.dispersion / slope * np.diag(inverse)
    return variances * np.sum(response.rows(np.eye(response.n_lines))[0] ** 2)
