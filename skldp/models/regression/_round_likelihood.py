"""Likelihood of the reports of one round: mean score and curvature at a public model."""

import copy

import numpy as np
from scipy.stats import chi2

from skldp.models.regression._reported import ReportedMoments
from skldp.models.regression._round_reports import reported_of, round_of

_NEWTON_STEPS = 20
_LEAST_WEIGHT = 0.01  # of the mean curvature, as a share of the largest
_RATIO_ERROR = 0.5  # of the logarithm of the mean curvature, in relative spreads of the curvature of records


class RoundLikelihood:
    r"""Normal log-likelihood of the mean score and curvature of a round.

    Notes
    -----
    x is described by n fixed points :math:`z_i`. A record counts by :math:`v_iw_i`, the curvature that it reports, and
    in the last round the points so weighted have the mean zero and the covariance I. With the weighted mean m and
    covariance :math:`\Sigma` of x, which are parameters, the records are

    .. math:: x_i = m + \Sigma^{1/2}z_i, \qquad (1, x_i) = A(1, z_i),

    in the frame of the last round, and :math:`\tilde x_i = T(1, x_i)` in that of this one. The change of the model,
    :math:`\Delta` with a row for each predictor, changes the predictors from :math:`u_i` by :math:`\Delta(1, x_i)`, so

    .. math:: E\,g = \frac\omega n\sum_iv_i\left(\mu(u_i + \Delta(1, x_i)) - \mu(u_i)\right)\tilde x_i^T, \qquad
              E\,C = \frac\omega n\sum_iv_iw_i\tilde x_i\tilde x_i^T .

    With one predictor and near the model of the last round, both depend on the distribution of x through m,
    :math:`\Sigma` and the mean curvature alone. So they are exact there for any distribution of x, with the ratio
    :math:`\omega` of its mean curvature and that of the points. Farther away they are exact if the points are
    distributed like the records, and they are normal. :math:`\omega` is a parameter: its logarithm is normal around
    zero, and its standard deviation is a share of the relative spread of :math:`v_iw_i`.

    For other distributions of x the change of the score has an error, whose variance is a share of the square of the
    change at a pilot estimate. The responses add their variance at the pilot estimate to that of the noise.
    """

    def __init__(self, protocol, tally):
        self.protocol, self.round = protocol, round_of(protocol)
        self.reported_means, self.n_reports = reported_of(protocol, tally), tally.n_reports
        self.response, self.frame, self.kappa = (
            self.round.response, self.round.frame, self.round.intercept_weight)
        self.curvature_variance = self._variance_of_curvature() if self.has_curvature else np.inf

    @property
    def has_curvature(self):
        """Whether the reports have a curvature."""
        return self.reported_means.curvature is not None

    def _variance_of_curvature(self):
        """Return the variance of an entry on the diagonal of the mean curvature."""
        curvature, order = self.reported_means.curvature, self.reported_means.score.shape[1]
        # E (w |x|^2)^2 is at most the largest w |x|^2 times its mean, and the noise is spread over all entries.
        longest = self.response.largest_curvature * (1 + self.kappa**2)
        spread = max(longest * max(np.trace(curvature), 0.0) - np.sum(curvature**2), 0.0) / (order * (order + 1) / 2)
        return (self.reported_means.curvature_noise + spread) / self.n_reports

    def settle(self, x, z, frame):
        """Set the points: x in public units, where they count by the model of the round, and z.

        Parameters
        ----------
        x : ndarray of shape (n, d)
            Where the points are in public units.
        z : ndarray of shape (n, d + 1)
            The points, after a constant 1.
        frame : Frame
            That of the model's parameters.
        """
        _, _, curvature, weight = self.round.evaluate(x)
        counts, n = weight * curvature, len(x)
        self.z, self.shares = z, weight / n
        own = self.frame.inside(x)
        self.base = self.frame.lines[:, 0] + own @ self.frame.lines[:, 1:].T  # u
        self.base_mean = self.response.mean(self.base)
        self.gram = (z * (counts / n)[:, None]).T @ z
        self.weight = max(float(np.mean(counts)), _LEAST_WEIGHT * self.response.largest_curvature)
        self.ratio_scale = _RATIO_ERROR * float(np.std(counts)) / self.weight
        self.extend = self.frame.extended_from(frame, self.kappa)  # T
        self.origin = frame.moved(self.frame.in_public_units(self.frame.lines))

    def calibrate(self, affine, lines, score_error, curvature_error):
        """Set the variances at a pilot estimate.

        Parameters
        ----------
        affine : ndarray of shape (d + 1, d + 1)
            The matrix A at the pilot estimate.
        lines : ndarray of shape (q, d + 1)
            The model, in the frame of the parameters.
        score_error, curvature_error : float
            Errors of the change of the score and of the curvature, as shares of their sizes, where predictors change by
            1 or more.
        """
        self.pilot, change = lines, (lines - self.origin)[None]
        extended, u = self.z @ (self.extend @ affine).T, self._predictors(change @ affine)[0]
        slopes = self.response.curvature(u) * self.shares[:, None, None]
        self.tangent = np.einsum("nij,na,nb->iajb", slopes, extended, extended, optimize=True)
        self.tangent = self.tangent.reshape(2 * [len(lines) * len(self.extend)])
        self.second = self.extend @ affine @ affine.T @ self.extend.T
        (score,), (curvature,) = self.expected(affine[None], lines[None], np.ones(1))
        self.pilot_score = score
        reported = self.reported_means
        own = reported.score_noise * np.eye(len(self.tangent)) + self.response.dispersion * self.tangent
        self.variance = own / self.n_reports
        distance, explained = self._change_of_slopes(u)
        self.error = (score_error * distance) ** 2 * explained / len(self.tangent) * self.tangent
        self.precision = np.linalg.inv(self.variance + self.error)
        size = np.mean(np.diag(curvature)[int(self.kappa > 0):])
        self.spread = self.curvature_variance + (curvature_error * distance * size) ** 2

    def within_reach(self, affine, lines, reach):
        """Return lines whose predictors vary by at most ``reach`` from those of the round, with the same mean response.

        Arguments have the shapes of :meth:`value_and_gradients` for one point.
        """
        u = self._predictors((lines - self.origin) @ affine)[0]
        change, shares = u - self.base, self.shares / self.shares.sum()
        mean, target = shares @ change, shares @ self.response.mean(u)
        spread = np.sqrt(shares @ np.sum((change - mean) ** 2, axis=1))
        if spread <= reach:
            return lines
        share = reach / spread
        if not self.kappa:
            return self.origin + share * (lines - self.origin)
        shift, start = mean.copy(), self.base + share * (change - mean)
        for _ in range(_NEWTON_STEPS):
            slope = np.tensordot(shares, self.response.curvature(start + shift), 1)
            slope += _LEAST_WEIGHT * self.response.largest_curvature * np.eye(len(slope))
            step = np.linalg.solve(slope, target - shares @ self.response.mean(start + shift))
            shift = shift + step / max(1.0, np.linalg.norm(step))  # far away the curvature is nearly zero
        found = self.origin + share * (lines - self.origin)
        found[:, :, 0] += shift - share * mean
        return found

    def _change_of_slopes(self, u):
        """Return the standard deviation of the change of the predictors, at most 1, and the score that it explains.

        A change that is the same for all records has no error: it changes the score alike for any distribution of x.
        """
        change, shares = u - self.base, self.shares / self.shares.sum()
        mean = shares @ change
        moved = self.response.mean(u) - self.response.mean(self.base + mean)
        distance = np.sqrt(shares @ np.sum((change - mean) ** 2, axis=1))
        return min(1.0, distance), max(self.shares @ np.sum(moved * (change - mean), axis=1), 0.0)

    def updated(self, aggregate):
        """Return the likelihood of other reports of the same protocol, with the same calibration."""
        tally = aggregate.parts[self.protocol]
        part = copy.copy(self)
        part.reported_means = reported_of(self.protocol, tally)
        share = self.n_reports / tally.n_reports
        # Multiplied variances stay multiplied.
        part.precision = np.linalg.inv(np.linalg.inv(self.precision) + (share - 1) * self.variance)
        if self.has_curvature:
            part.spread = self.spread + (share - 1) * self.curvature_variance
        return part

    def mean_information(self, frame):
        """Return the inverse variance of an entry of the reported mean of x, in a given frame."""
        map_ = frame.transform @ np.linalg.inv(self.frame.transform)
        return 2 * (self.weight * self.kappa) ** 2 / self.curvature_variance * len(map_) / np.sum(map_**2)

    def reported(self, affine, mean_information):
        """Return estimated moments of x and of the distance from the pilot estimate, to choose coordinates.

        Those of x are the reported ones, or without a curvature those of the matrix A.
        """
        means, weight, kappa, q = self.reported_means, self.weight, self.kappa, self.response.n_lines
        d, first = len(affine) - 1, int(kappa > 0)
        mean, moments, second = np.zeros(d + q), np.eye(d + q), np.kron(np.eye(q), self.second)
        inverse = second @ np.linalg.inv(self.tangent + _LEAST_WEIGHT * weight * second)  # if no mean changes
        score = (inverse @ (means.score - self.pilot_score).ravel()).reshape(q, -1)
        if kappa:
            mean[:d] = means.curvature[0, 1:] / (kappa * weight) if self.has_curvature else affine[1:, 0]
            mean[d:] = score[:, 0] / kappa
        square = (affine @ affine.T)[1:, 1:]
        moments[:d, :d] = means.curvature[first:, first:] / weight if self.has_curvature else square
        moments[:d, d:] = score[:, first:].T
        moments[d:, :d] = score[:, first:]
        variances = np.diag(inverse @ self.variance @ inverse.T).reshape(q, -1)
        return ReportedMoments(mean, moments, float(1 / np.mean(variances[:, first:])),
                               float(kappa**2 / np.mean(variances[:, 0])), mean_information, n_responses=q)

    def _predictors(self, slopes):
        """Return predictors of the points, shape (n_walkers, n, q), for the rows by which they change."""
        return self.base + self.z @ slopes.swapaxes(1, 2)

    def _expected(self, affine, change, ratio, mean):
        """Return expected score and curvature for every walker, given the mean responses, and factors of them."""
        moved = (mean - self.base_mean) * self.shares[:, None]
        sums = moved.swapaxes(1, 2) @ self.z  # of v (mu - mu_0) and z
        factor = self.extend @ affine  # T A
        ratio, turned = ratio[:, None, None], factor.swapaxes(1, 2)
        return ratio * (sums @ turned), ratio * (factor @ self.gram @ turned), sums, factor

    def expected(self, affine, lines, ratio):
        """Return expected score and curvature at parameters of the shapes of :meth:`value_and_gradients`."""
        change = lines - self.origin
        return self._expected(affine, change, ratio, self.response.mean(self._predictors(change @ affine)))[:2]

    def _errors(self, score, curvature):
        """Return the log-likelihood, and its derivatives by expected score and curvature."""
        residual = (self.reported_means.score - score).reshape(len(score), -1)
        by_score = residual @ self.precision
        value, by_curvature = -0.5 * np.vecdot(residual, by_score), np.zeros_like(curvature)
        if self.has_curvature:
            gap = self.reported_means.curvature - curvature
            by_curvature = gap / self.spread
            value = value - 0.5 * np.sum(gap * by_curvature, (1, 2))
        return value, by_score.reshape(score.shape), by_curvature

    def discount(self, affine, lines, ratio):
        """Give less weight to a round that contradicts the others at given parameters of shapes as below.

        The variances of score and curvature are multiplied such that the sum of squared standardised residuals is at
        most the 95 % quantile of its distribution.
        """
        score, curvature = self.expected(affine, lines, ratio)
        residual = (self.reported_means.score - score[0]).ravel()
        misfit, order = residual @ self.precision @ residual, len(curvature[0])
        self.precision = self.precision / max(1.0, misfit / chi2.ppf(0.95, len(residual)))
        if self.has_curvature:
            misfit = np.sum((self.reported_means.curvature - curvature[0]) ** 2) / self.spread
            self.spread *= max(1.0, misfit / chi2.ppf(0.95, order * (order + 1) // 2))

    def value(self, affine, lines, ratio):
        """Return the log-likelihood."""
        return self._errors(*self.expected(affine, lines, ratio))[0]

    def value_and_gradients(self, affine, lines, ratio):
        """Return the log-likelihood, and its derivatives with respect to the arguments.

        Shapes are (n, d + 1, d + 1), (n, q, d + 1) and (n,).
        """
        change = lines - self.origin
        mean, product = self.response.mean_and_slope(self._predictors(change @ affine))
        score, curvature, sums, factor = self._expected(affine, change, ratio, mean)
        value, by_score, by_curvature = self._errors(score, curvature)
        by_ratio = (np.sum(by_score * score, (1, 2)) + np.sum(by_curvature * curvature, (1, 2))) / ratio
        scale = ratio[:, None, None]
        by_factor = scale * (by_score.swapaxes(1, 2) @ sums + 2 * by_curvature @ factor @ self.gram)
        by_sums = scale * (by_score @ factor)
        by_u = product((self.z @ by_sums.swapaxes(1, 2)) * self.shares[:, None])
        by_slopes = by_u.swapaxes(1, 2) @ self.z
        by_affine = self.extend.T @ by_factor + change.swapaxes(1, 2) @ by_slopes
        return value, by_affine, by_slopes @ affine.swapaxes(1, 2), by_ratio
