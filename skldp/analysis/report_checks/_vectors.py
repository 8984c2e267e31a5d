"""Tests of noisy vectors: their mean, their scatter around it, and the counts of their labels."""

import math
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from skldp.analysis.report_checks._axes import mean_products_finding
from skldp.analysis.report_checks._bounds import (
    Finding,
    at_least,
    at_most,
    bounded_sum_p_value,
    gaussian_length_p_value,
    large_scatter_p_value,
    small_scatter_p_value,
)
from skldp.analysis.report_checks._equal import equal_findings, multiplicities
from skldp.analysis.report_checks._laws import clamp_probability, log_largest_vector
from skldp.mechanisms._axis import Axis
from skldp.mechanisms._axis_moments import AxisMoments
from skldp.mechanisms._directions import DirectionMechanism
from skldp.mechanisms._encoding import BALL_RADIUS
from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._gaussian_moments import MOMENT_RADIUS
from skldp.mechanisms._labelled_record import LabelledRecord
from skldp.mechanisms._moments import MomentMechanism, SphereMoments
from skldp.mechanisms._sampled_moments import SampledMoments
from skldp.mechanisms._sphere import RESOLUTION, Sphere
from skldp.privacy._sensitivity import labelled_moment_radius, moment_radius
from skldp.protocols._label_record_protocol import LabelRecordProtocol
from skldp.protocols._record_protocol import RecordProtocol
from skldp.protocols._tallies import RecordTally

_BLOCK_ROWS = 1 << 14
_NOISY_PARTS: dict = {LabelledRecord: attrgetter("vector"), SphereMoments: attrgetter("sphere"),
                      AxisMoments: attrgetter("axis"), SampledMoments: attrgetter("part.axis")}
_ROUNDING = 0.5 + 1e-3  # largest rounding error of an entry, including the float error of the noise
_DITHER_EXPONENT = 30.0  # the dither's mean exceeds its margin with a probability of at most e^-30


def noise_mechanism(protocol):
    """Return the mechanism that adds noise to the vector of a record."""
    mechanism = protocol.randomizer
    part = _NOISY_PARTS.get(type(mechanism))
    return mechanism if part is None else part(mechanism)


def vector_findings(protocol, tally, rows):
    """Run every test of noisy vectors."""
    findings = [_mean_finding_of(protocol, tally)]
    if rows is None:
        return findings
    log_largest, mechanism, vectors = 0.0, noise_mechanism(protocol), rows
    if isinstance(protocol, LabelRecordProtocol):
        vectors, log_largest = rows[:, :-1], math.log(protocol.randomizer.label.near_probability)
        findings.append(label_finding(protocol, rows[:, -1]))
    if not isinstance(mechanism, DirectionMechanism):
        findings += scatter_findings(protocol, vectors)
    log_largest += log_largest_vector(mechanism)
    return equal_findings(multiplicities(rows), tally.n_reports, log_largest, math.inf) + findings


def _mean_finding_of(protocol, tally):
    """Test of the mean of the reports, or of their products."""
    mechanism, n = noise_mechanism(protocol), tally.n_reports
    if isinstance(protocol.randomizer, SampledMoments):
        return coin_finding(protocol.randomizer, np.diagonal(protocol.counts(tally)), n)
    if not isinstance(mechanism, Axis):
        return mean_finding(protocol, _mean_report(protocol, tally), n)
    rounding = 2 * mechanism.norm**2 * _code_error(mechanism.dimension)
    outside = _outside(protocol, protocol.mean_moments(tally)) - rounding
    return mean_products_finding(mechanism, tally.sums / (n * mechanism.resolution**2), n, outside)


def coin_finding(mechanism, counts, n):
    """Test how many clients report each feature: the coin is fair for any records."""
    first, d = mechanism.subsets.first, mechanism.n_features
    counts, share = counts[first:first + d], mechanism.n_sampled / d
    p_values = np.minimum(at_least(counts, n, share), at_most(counts, n, share))
    place = int(np.argmin(p_values))
    return Finding(float(min(1.0, 2 * d * p_values[place])),
                   f"{counts[place]} of {n} reports are about feature {place}, and the coin chooses it {n * share:.0f} "
                   "times on average.")


def _mean_report(protocol, tally):
    """Mean of the reported vectors, in grid units."""
    if isinstance(tally, RecordTally):
        return tally.reports[:, :-1].mean(axis=0)
    sums = tally.sums[0, 1:] if tally.sums.ndim == 2 else tally.sums
    return (sums / tally.n_reports).astype(float)


def mean_finding(protocol, mean, n):
    """Test whether the mean of n reports, in grid units, is close enough to some possible mean of records."""
    mechanism = noise_mechanism(protocol)
    if isinstance(mechanism, Sphere):
        return _sphere_mean(protocol, mechanism, mean, n)
    law = GaussianLaw.of(protocol)
    outside = _outside(protocol, mean * law.step)
    length = math.sqrt(n) * (outside - law.rounding) / law.sigma
    p_value = gaussian_length_p_value(length, len(mean)) + n * law.clamped
    return Finding(p_value, _mean_reason(n, outside, math.sqrt(len(mean) / n) * law.sigma))


def _sphere_mean(protocol, mechanism, mean, n):
    gamma, m = mechanism.gamma, mechanism.dimension
    direction = mean / RESOLUTION
    to_length = gamma / mechanism.norm
    outside = max(math.sqrt(direction @ direction) - gamma,
                  -direction[-1],  # the padding entry of a record is not negative
                  to_length * _outside(protocol, protocol.randomizer.decode(mean[None])[0]) - _code_error(m))
    margin = (_ROUNDING + _largest_dither(n, m)) * math.sqrt(m) / RESOLUTION
    total = (1 - gamma**2) * (1 + 1e-6)
    p_value = bounded_sum_p_value(n * (outside - margin), n, total, total / m, 1 + gamma)
    return Finding(p_value, _mean_reason(n, outside / to_length, math.sqrt(total / n) / to_length))


def _code_error(m):
    """Largest rounding error of a record encoded for the sphere, relative to its radius."""
    return 2 * math.sqrt(m) / BALL_RADIUS


def _largest_dither(n, m):
    """Margin that the mean dither of any of m entries exceeds with a probability of at most e^-30.

    By Chernoff's bound with rate t/4 or 0.7, the mean of n Laplace variables of scale 1 exceeds t with probability
    at most exp(-n t^2 / 8) if t is at most 2.8, and at most exp(-n (0.7 t - 1)) for any t.
    """
    exponent = (_DITHER_EXPONENT + math.log(2 * m)) / n
    near = math.sqrt(8 * exponent)
    return near if near <= 2.8 else (exponent + 1) / 0.7


def _mean_reason(n, outside, noise):
    where = f"at least {outside:.3g} outside" if outside > 0 else "within"
    return f"The mean of {n} decoded reports lies {where} the range of records; its noise has about norm {noise:.3g}."


def _outside(protocol, mean):
    """Lower bound on the distance from a decoded mean to the set of possible means of records; negative inside."""
    mechanism = protocol.randomizer
    if isinstance(mechanism, MomentMechanism):
        return _moments_outside(mechanism, mean)
    outside = [_length(mean) - noise_mechanism(protocol).norm]
    if isinstance(protocol, RecordProtocol):
        step = 2 * mechanism.decode(1.0)
        outside += [_length(mean[:-1]) - 1 - step * math.sqrt(len(mean)), abs(mean[-1]) - protocol.y_weight - step]
    return max(outside)


def _moments_outside(mechanism, mean):
    """Lower bound on the distance to mean moments: they lie in a ball, are positive semi-definite, of bounded trace."""
    d, weight = mechanism.n_features, mechanism.y_weight
    centre, radius = _moment_ball(mechanism)
    negative = np.minimum(np.linalg.eigvalsh(mechanism.matrix(mean)), 0.0)
    outside = [_length(mean - centre) - radius, _length(negative), (mean[:d].sum() - 1) / math.sqrt(d)]
    outside += (mean[d:mechanism.n_diagonal] - weight**2).tolist()
    return max(outside)


def _moment_ball(mechanism):
    """Centre and radius of a ball that contains the moments of all records."""
    weights = mechanism.y_weight, mechanism.intercept_weight
    centre = np.zeros(mechanism.n_moments)
    centre[:mechanism.n_features] = 1 / mechanism.n_features
    if mechanism.labelled:
        return centre, labelled_moment_radius(1.0, mechanism.n_features, *weights)
    centre[mechanism.n_features:mechanism.n_diagonal] = mechanism.y_weight**2
    return centre, moment_radius(1.0, 1.0, mechanism.n_features, *weights, n_responses=mechanism.n_responses)


def _length(vector):
    return math.sqrt(float(np.dot(vector, vector)))


@dataclass(frozen=True)
class GaussianLaw:
    """Distribution of decoded reports: a point of a ball, plus Gaussian noise, plus a bounded rounding error.

    Parameters
    ----------
    step : ndarray
        Decoded size of one grid unit, for each entry.
    sigma : float
        Standard deviation of the noise of an entry, decoded.
    centre : ndarray
        Centre of the ball, decoded.
    radius : float
        Radius of the ball, decoded.
    clamped : float
        Bound on the probability that a clamp changes a report.
    """

    step: np.ndarray
    sigma: float
    centre: np.ndarray
    radius: float
    clamped: float

    @property
    def rounding(self):
        """Largest norm of the rounding error of a report."""
        return _ROUNDING * _length(self.step)

    @staticmethod
    def of(protocol):
        """Return the distribution of a protocol's reports."""
        mechanism = noise_mechanism(protocol)
        clamped = clamp_probability(mechanism)
        if isinstance(mechanism, Gaussian):
            step = np.full(mechanism.n_features, mechanism.decode(1.0))
            return GaussianLaw(step, mechanism.scale * step[0], 0 * step, mechanism.norm, clamped)
        step = mechanism.decode(np.ones(mechanism.n_moments))
        centre, radius = _moment_ball(mechanism)
        return GaussianLaw(step, mechanism.scale / MOMENT_RADIUS**2, centre, radius, clamped)


def scatter_findings(protocol, rows):
    """Test the scatter of Gaussian reports around their mean, on both sides, and the report with the largest norm."""
    law, n = GaussianLaw.of(protocol), len(rows)
    total, squares, largest = np.zeros(len(law.step)), 0.0, 0.0
    for start in range(0, n, _BLOCK_ROWS):
        block = (rows[start:start + _BLOCK_ROWS] * law.step - law.centre) / law.sigma
        lengths = np.vecdot(block, block)
        total, squares, largest = total + block.sum(axis=0), squares + lengths.sum(), max(largest, lengths.max())
    longest, scatter = math.sqrt(float(largest)), math.sqrt(max(float(squares - total @ total / n), 0.0))
    rounding, radius, degrees = law.rounding / law.sigma, law.radius / law.sigma, (n - 1) * len(total)
    clamped, root = n * law.clamped, math.sqrt(n)
    small = small_scatter_p_value(scatter + rounding * root, degrees)
    large = large_scatter_p_value(max(scatter - rounding * root, 0.0) ** 2, degrees, n * radius**2)
    far = n * gaussian_length_p_value(longest - radius - rounding, len(total))
    reason = (f"The squared distances of the {n} reports to their mean add up to {scatter**2:.6g} noise variances; "
              f"noise alone gives about {degrees}, and records add at most {n * radius**2:.4g}.")
    length = (f"One of {n} reports is {longest:.4g} noise standard deviations away from the centre of the "
              f"records' ball, which has a radius of {radius:.4g}.")
    return [Finding(small + clamped, reason), Finding(large + clamped, reason), Finding(far + clamped, length)]


def label_finding(protocol, labels):
    """Test the counts of the labels: randomised response bounds the expected share of each label."""
    n, probability = len(labels), protocol.randomizer.label.near_probability
    most = max(int(np.count_nonzero(labels)), n - int(np.count_nonzero(labels)))
    reason = f"{most} of {n} reports have the same label, and at most {n * probability:.0f} are expected."
    return Finding(2 * float(at_least(most, n, probability)), reason)
