r"""Log-likelihood of aggregated moment reports of records with labels.

A report is :math:`s = (\mathrm{svec}\,xx^T, \sqrt2\kappa x, \sqrt2\kappa wy, \sqrt2wyx)` plus noise of variance
:math:`\tau^2`. Write :math:`x = m + \xi`, :math:`\xi \sim N(0, \Sigma)`, :math:`u = \alpha + \theta^Tx`,
:math:`r = \Sigma\theta` and :math:`f_k = E f^{(k)}(u)` for :math:`f(u) = E(y|u) = \tanh(u/2)`. By Stein's lemma

.. math:: E y = f_0, \quad E y\xi = f_1r, \quad E y\xi\xi^T = f_0\Sigma + f_2rr^T, \quad
          E y\xi_j\xi_k\xi_l = f_1(r_j\Sigma_{kl} + r_k\Sigma_{jl} + r_l\Sigma_{jk}) + f_3r_jr_kr_l,

and mean and covariance of s follow, exactly.
"""

import copy
import math

import numpy as np

from skldp.models.regression._covariance import matvec
from skldp.models.regression._moment_likelihoods import LEAST_NOISE
from skldp.models.regression._sigmoid import tanh_means

ROOT2 = math.sqrt(2)


class LabelMoments:
    """Mean and covariance of the labelled moments at some parameters, for every walker.

    Parameters
    ----------
    covariance : ndarray of shape (n_walkers, d, d)
        Of x.
    coef : ndarray of shape (n_walkers, d)
        Coefficients.
    x_mean : ndarray of shape (n_walkers, d) or None
        Mean of x; zero, and no moments with the constant, where it is None.
    intercept : ndarray of shape (n_walkers,) or None
        Intercept.
    y_weight, intercept_weight : float
        Weights of the report.
    """

    def __init__(self, covariance, coef, x_mean, intercept, y_weight, intercept_weight):
        self.covariance, self.coef = covariance, coef
        self.has_constant = x_mean is not None
        self.x_mean = np.zeros_like(coef) if x_mean is None else x_mean
        self.y_weight, self.intercept_weight = y_weight, intercept_weight
        self.slope = matvec(covariance, coef)
        centre = np.vecdot(coef, self.x_mean) + (0.0 if intercept is None else intercept)
        self.means = tanh_means(centre, np.vecdot(coef, self.slope))

    @property
    def cross(self):
        """E y x."""
        return self.means[0][:, None] * self.x_mean + self.means[1][:, None] * self.slope

    def second(self):
        """E x x'."""
        return self.covariance + self.x_mean[:, :, None] * self.x_mean[:, None, :]

    def rotated(self, vectors, values):
        """The same moments in the coordinates of the eigenvectors of E x x', where that matrix is diagonal."""
        turned = copy.copy(self)
        back = vectors.swapaxes(1, 2)
        turned.x_mean, turned.slope = matvec(back, self.x_mean), matvec(back, self.slope)
        turned.covariance = -turned.x_mean[:, :, None] * turned.x_mean[:, None, :]
        order = np.arange(values.shape[1])
        turned.covariance[:, order, order] += values
        return turned

    def linear_covariance(self):
        """Covariance of the part of the report that is not x x'."""
        f0, f1, _, _ = (mean[:, None] for mean in self.means)
        w, kappa, cross = self.y_weight, self.intercept_weight, self.cross
        by_label = 2 * w * w * (self.second() - cross[:, :, None] * cross[:, None, :])
        if not self.has_constant:
            return by_label
        d = cross.shape[1]
        out = np.empty((len(cross), 2 * d + 1, 2 * d + 1))
        x, y, xy = slice(0, d), d, slice(d + 1, 2 * d + 1)
        out[:, x, x] = 2 * kappa**2 * self.covariance
        out[:, y, y] = 2 * kappa**2 * w**2 * (1 - self.means[0] ** 2)
        out[:, xy, xy] = by_label
        out[:, x, y] = out[:, y, x] = 2 * kappa**2 * w * f1 * self.slope
        out[:, xy, y] = out[:, y, xy] = 2 * kappa * w**2 * (self.x_mean - f0 * cross)
        out[:, x, xy] = 2 * kappa * w * (self._third() - self.x_mean[:, :, None] * cross[:, None, :])
        out[:, xy, x] = out[:, x, xy].swapaxes(1, 2)
        return out

    def cross_covariance(self, rows, columns):
        """Covariance of the entries (rows, columns) of x x' with the rest of the report."""
        f0, f1, f2, f3 = (mean[:, None, None] for mean in self.means)
        m, r, sigma = self.x_mean, self.slope, self.covariance
        mj, mk, rj, rk = m[:, rows, None], m[:, columns, None], r[:, rows, None], r[:, columns, None]
        sj, sk = sigma[:, rows], sigma[:, columns]
        ml, rl = m[:, None, :], r[:, None, :]
        # E y x_j x_k x_l less E x_j x_k times E y x_l, term by term; what they share has cancelled.
        by_label = f1 * (rj * sk + rk * sj) + f3 * rj * rk * rl
        by_label += f0 * (mj * sk + mk * sj) + f2 * (mj * rk + mk * rj) * rl
        by_label += ml * (f1 * (mj * rk + mk * rj) + f2 * rj * rk)
        by_label *= ROOT2 * self.y_weight
        if not self.has_constant:
            return by_label
        by_x = ROOT2 * self.intercept_weight * (mj * sk + mk * sj)
        by_y = f1 * (mj * rk + mk * rj) + f2 * rj * rk
        by_y *= ROOT2 * self.intercept_weight * self.y_weight
        return np.concatenate([by_x, by_y, by_label], axis=2)

    def _third(self):
        """E y x x'."""
        f0, f1, f2, _ = (mean[:, None, None] for mean in self.means)
        m, r = self.x_mean, self.slope
        mixed = m[:, :, None] * r[:, None, :]
        outer = f2 * r[:, :, None] * r[:, None, :]
        return f0 * self.second() + f1 * (mixed + mixed.swapaxes(1, 2)) + outer


class LabelMomentLikelihood:
    r"""Mean of noisy moments of labelled records, approximately Gaussian.

    Parameters
    ----------
    protocol : LabelMomentProtocol
        What the reports came under.
    tally : Tally
        Their sums.

    Notes
    -----
    :math:`\log p = -\frac N2D^TA^{-1}D - \frac12\log|A|`, :math:`A = \tau^2I + \mathrm{Cov}(s)`. In the eigenbasis of
    :math:`E xx^T` the block of :math:`xx^T` is diagonal less a matrix of rank one, so only the Schur complement of the
    other 2d + 1 entries is dense: O(d^4) where the full matrix takes O(d^6).
    """

    def __init__(self, protocol, tally):
        mechanism = protocol.randomizer
        self.n_reports = tally.n_reports
        self.mean = mechanism.matrix(protocol.mean_moments(tally))
        self.y_weight, self.intercept_weight = mechanism.y_weight, mechanism.intercept_weight
        self.noise = max(mechanism.noise_variance, LEAST_NOISE)
        d = protocol.n_features
        above = np.triu_indices(d, 1)
        self.rows, self.columns = (np.concatenate([np.arange(d), part]) for part in above)
        self.isometry = np.where(self.rows == self.columns, 1.0, ROOT2)
        self.x = slice(int(mechanism.intercept_weight > 0), -1)

    @property
    def uncertainty(self):
        """Standard error of an entry of the mean."""
        return np.sqrt(self.noise / max(self.n_reports, 1))

    @property
    def information(self):
        """Inverse variance of an entry of the mean of x x' off its diagonal, which is sent times the root of two."""
        return 2 * self.n_reports / self.noise

    def deviation(self, moments):
        """Mean report less its expectation, as the x x' block and the other entries in svec coordinates."""
        block = self.mean[self.x, self.x] - moments.second()
        by_label = ROOT2 * (self.mean[self.x, -1] - self.y_weight * moments.cross)
        if not moments.has_constant:
            return block, by_label
        kappa, f0 = self.intercept_weight, moments.means[0]
        by_x = ROOT2 * (self.mean[0, 1:-1] - kappa * moments.x_mean)
        by_y = ROOT2 * (self.mean[0, -1] - kappa * self.y_weight * f0)
        return block, np.concatenate([by_x, by_y[:, None], by_label], axis=1)

    def log_likelihood(self, moments):
        """Log-likelihood with the covariance that belongs to the parameters, up to a constant."""
        block, rest = self.deviation(moments)
        values, vectors = np.linalg.eigh(moments.second())
        turned = moments.rotated(vectors, values)
        back = vectors.swapaxes(1, 2)
        square = (back @ block @ vectors)[:, self.rows, self.columns] * self.isometry
        rest = self._rotate_rest(back, rest, moments.has_constant)
        spread = self.noise + 2 * values[:, self.rows] * values[:, self.columns]
        spike = turned.x_mean[:, self.rows] * turned.x_mean[:, self.columns] * self.isometry
        lean = spike / spread
        k = 1 - 2 * np.vecdot(spike, lean)
        cross = turned.cross_covariance(self.rows, self.columns) * self.isometry[:, None]
        both = np.concatenate([square[:, :, None], cross], axis=2)
        # (diag(M) - 2 n n')^-1 by the formula of Sherman and Morrison.
        solved = both / spread[:, :, None]
        solved += (2 / k)[:, None, None] * lean[:, :, None] * (lean[:, None, :] @ both)
        reduced = both.swapaxes(1, 2) @ solved
        dense = turned.linear_covariance() - reduced[:, 1:, 1:]
        order = np.arange(dense.shape[1])
        dense[:, order, order] += self.noise
        rest = rest - reduced[:, 1:, 0]
        quadratic = reduced[:, 0, 0] + np.vecdot(rest, np.linalg.solve(dense, rest[:, :, None])[:, :, 0])
        sign, log_dense = np.linalg.slogdet(dense)
        determinant = np.log(spread).sum(axis=1) + np.log(k) + log_dense
        # Far out, where a label is certain, cancellation can leave no digits of the complement.
        lost = (sign <= 0) | (quadratic < 0)
        return np.where(lost, -np.inf, -0.5 * (self.n_reports * quadratic + determinant))

    @staticmethod
    def _rotate_rest(back, rest, has_constant):
        d = back.shape[1]
        by_label = matvec(back, rest[:, -d:])
        if not has_constant:
            return by_label
        return np.concatenate([matvec(back, rest[:, :d]), rest[:, d:d + 1], by_label], axis=1)

    def precision(self, moments):
        """Inverse of the full covariance of a report at one set of parameters, in svec coordinates."""
        second, n = moments.second()[0], len(self.rows)
        j, k, m = self.rows, self.columns, moments.x_mean[0]
        spike = m[j] * m[k]
        square = second[np.ix_(j, j)] * second[np.ix_(k, k)] + second[np.ix_(j, k)] * second[np.ix_(k, j)]
        square -= 2 * np.outer(spike, spike)
        cross = moments.cross_covariance(j, k)[0] * self.isometry[:, None]
        full = np.empty((n + cross.shape[1], n + cross.shape[1]))
        full[:n, :n] = square * np.outer(self.isometry, self.isometry)
        full[:n, n:], full[n:, :n] = cross, cross.T
        full[n:, n:] = moments.linear_covariance()[0]
        return np.linalg.inv(full + self.noise * np.eye(len(full)))

    def plug_in_value(self, moments, precision):
        """Log-likelihood with a fixed precision, and that precision times the deviation."""
        block, rest = self.deviation(moments)
        deviation = np.concatenate([block[:, self.rows, self.columns] * self.isometry, rest], axis=1)
        solved = self.n_reports * deviation @ precision
        return -0.5 * np.vecdot(deviation, solved), solved

    def plug_in(self, moments, precision):
        """Log-likelihood with a fixed precision, and its slopes in E x x', in E x, in E y and in E y x."""
        value, solved = self.plug_in_value(moments, precision)
        n, d = len(self.rows), moments.coef.shape[1]
        by_square = np.zeros_like(moments.covariance)
        by_square[:, self.rows, self.columns] = by_square[:, self.columns, self.rows] = solved[:, :n] / self.isometry
        by_label = ROOT2 * self.y_weight * solved[:, -d:]
        if not moments.has_constant:
            return value, by_square, None, None, by_label
        kappa = self.intercept_weight
        by_y = ROOT2 * kappa * self.y_weight * solved[:, n + d]
        return value, by_square, ROOT2 * kappa * solved[:, n:n + d], by_y, by_label
