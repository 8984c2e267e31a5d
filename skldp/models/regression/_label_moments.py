r"""Log-likelihood of aggregated moment reports of records with labels.

A report is :math:`s = (\mathrm{svec}\,xx^T, \sqrt2\kappa x, \sqrt2\kappa wy, \sqrt2wyx)` plus noise of variance
:math:`\tau^2`. Write :math:`x = m + \xi`, :math:`\xi \sim N(0, \Sigma)`, :math:`u = \alpha + \theta^Tx`,
:math:`r = \Sigma\theta` and :math:`f_k = E f^{(k)}(u)` for :math:`f(u) = E(y|u) = \tanh(u/2)`. By Stein's lemma

.. math:: E y = f_0, \quad E y\xi = f_1r, \quad E y\xi\xi^T = f_0\Sigma + f_2rr^T, \quad
          E y\xi_j\xi_k\xi_l = f_1(r_j\Sigma_{kl} + r_k\Sigma_{jl} + r_l\Sigma_{jk}) + f_3r_jr_kr_l,

from which the exact mean and covariance of s follow.
"""

import copy
from dataclasses import replace

import numpy as np

from skldp.models.regression._covariance import matvec
from skldp.models.regression._label_noise import (
    ROOT2,
    identity_and_moments,
    linear_cross,
    linear_rest,
    linear_square,
)
from skldp.models.regression._low_rank import moment_spread, woodbury
from skldp.models.regression._moment_likelihoods import LEAST_NOISE, above_floor, weighted_moments
from skldp.models.regression._sigmoid import tanh_means


class LabelMoments:
    """Mean and covariance of the labelled moments at given parameters, for every walker.

    If the mean of x is None, it is zero and a report has no moments with the constant.
    """

    def __init__(self, covariance, coef, x_mean, intercept, y_weight, intercept_weight):
        self.covariance, self.coef = covariance, coef
        self.has_constant = x_mean is not None
        self.x_mean = np.zeros_like(coef) if x_mean is None else x_mean
        self.y_weight, self.intercept_weight = y_weight, intercept_weight
        self.cov_xu = matvec(covariance, coef)  # r = Sigma theta
        centre = np.vecdot(coef, self.x_mean) + (0.0 if intercept is None else intercept)
        self.means = tanh_means(centre, np.vecdot(coef, self.cov_xu))  # f_0 to f_3

    @property
    def cross(self):
        """E y x."""
        return self.means[0][:, None] * self.x_mean + self.means[1][:, None] * self.cov_xu

    def second(self):
        """E x x'."""
        return self.covariance + self.x_mean[:, :, None] * self.x_mean[:, None, :]

    def weighted(self, y_weight, intercept_weight):
        """Return the same moments for reports with other weights."""
        weighted = copy.copy(self)
        weighted.y_weight, weighted.intercept_weight = y_weight, intercept_weight
        return weighted

    def scaled(self, factor):
        """Return the same moments of records in which x is multiplied by a factor."""
        scaled = copy.copy(self)
        scaled.covariance, scaled.coef = factor**2 * self.covariance, self.coef / factor
        scaled.x_mean, scaled.cov_xu = factor * self.x_mean, factor * self.cov_xu
        return scaled

    def matrix(self):
        """E v v' for v = (kappa, x, w y), without kappa if there is none."""
        kappa, w, second = self.intercept_weight, self.y_weight, self.second()
        cross, f0 = w * self.cross[:, :, None], w * self.means[0][:, None, None]
        square = np.full_like(f0, w**2)
        inner = np.block([[second, cross], [cross.swapaxes(1, 2), square]])
        if not self.has_constant:
            return inner
        first = kappa * np.concatenate([self.x_mean[:, :, None], f0], axis=1)
        return np.block([[np.full_like(square, kappa**2), first.swapaxes(1, 2)], [first, inner]])

    def rotated(self, vectors, values):
        """Return the same moments in the eigenbasis of E x x', in which that matrix is diagonal."""
        rotated = copy.copy(self)
        transposed = vectors.swapaxes(1, 2)
        rotated.x_mean, rotated.cov_xu = matvec(transposed, self.x_mean), matvec(transposed, self.cov_xu)
        rotated.covariance = -rotated.x_mean[:, :, None] * rotated.x_mean[:, None, :]
        order = np.arange(values.shape[1])
        rotated.covariance[:, order, order] += values
        return rotated

    def linear_covariance(self):
        """Return the covariance of the entries of a report other than those of x x'."""
        f0, f1, _, _ = (mean[:, None] for mean in self.means)
        w, kappa, cross = self.y_weight, self.intercept_weight, self.cross
        xy_block = 2 * w * w * (self.second() - cross[:, :, None] * cross[:, None, :])  # y^2 = 1
        if not self.has_constant:
            return xy_block
        d = cross.shape[1]
        out = np.empty((len(cross), 2 * d + 1, 2 * d + 1))
        x, y, xy = slice(0, d), d, slice(d + 1, 2 * d + 1)
        out[:, x, x] = 2 * kappa**2 * self.covariance
        out[:, y, y] = 2 * kappa**2 * w**2 * (1 - self.means[0] ** 2)
        out[:, xy, xy] = xy_block
        out[:, x, y] = out[:, y, x] = 2 * kappa**2 * w * f1 * self.cov_xu  # Cov(x, y) = f1 r
        out[:, xy, y] = out[:, y, xy] = 2 * kappa * w**2 * (self.x_mean - f0 * cross)  # E y^2 x = m
        out[:, x, xy] = 2 * kappa * w * (self._third() - self.x_mean[:, :, None] * cross[:, None, :])
        out[:, xy, x] = out[:, x, xy].swapaxes(1, 2)
        return out

    def cross_covariance(self, rows, columns):
        """Return the covariance of the entries (rows, columns) of x x' with the other entries of a report."""
        f0, f1, f2, f3 = (mean[:, None, None] for mean in self.means)
        m, r, sigma = self.x_mean, self.cov_xu, self.covariance
        mj, mk, rj, rk = m[:, rows, None], m[:, columns, None], r[:, rows, None], r[:, columns, None]
        sj, sk = sigma[:, rows], sigma[:, columns]
        ml, rl = m[:, None, :], r[:, None, :]
        # Cov(x_j x_k, y x_l) = E y x_j x_k x_l - E x_j x_k E y x_l, without the terms that cancel.
        with_xy = f1 * (rj * sk + rk * sj) + f3 * rj * rk * rl
        with_xy += f0 * (mj * sk + mk * sj) + f2 * (mj * rk + mk * rj) * rl
        with_xy += ml * (f1 * (mj * rk + mk * rj) + f2 * rj * rk)
        with_xy *= ROOT2 * self.y_weight
        if not self.has_constant:
            return with_xy
        with_x = ROOT2 * self.intercept_weight * (mj * sk + mk * sj)  # Cov(x_j x_k, x_l) = m_j S_kl + m_k S_jl
        with_y = f1 * (mj * rk + mk * rj) + f2 * rj * rk  # Cov(x_j x_k, y) = f1 (m_j r_k + m_k r_j) + f2 r_j r_k
        with_y *= ROOT2 * self.intercept_weight * self.y_weight
        return np.concatenate([with_x, with_y, with_xy], axis=2)

    def _third(self):
        """E y x x'."""
        f0, f1, f2, _ = (mean[:, None, None] for mean in self.means)
        m, r = self.x_mean, self.cov_xu
        m_r = m[:, :, None] * r[:, None, :]
        r_r = f2 * r[:, :, None] * r[:, None, :]
        return f0 * self.second() + f1 * (m_r + m_r.swapaxes(1, 2)) + r_r  # f0 E xx' + f1 (m r' + r m') + f2 r r'


class LabelMomentLikelihood:
    r"""Normal approximation of the log-likelihood of the mean of noisy moments of labelled records.

    Notes
    -----
    :math:`\log p = -\frac N2D^TA^{-1}D - \frac12\log|A|`, with D the mean report minus its expectation. The
    covariance of a report is that of ``MomentNoise``, with the exact :math:`\mathrm{Cov}(s)` of labelled records:
    :math:`A = A_0 + GKG^T`, where G has the columns I and :math:`\Theta`, and none if the noise is isotropic. In the
    eigenbasis of :math:`E xx^T`, with eigenvalues :math:`\lambda`, the block of :math:`xx^T` in :math:`A_0` is
    :math:`B = \mathrm{diag}(M) - 2c_2nn^T`, where :math:`M_{jk} = c_0 + c_1(\lambda_j + \lambda_k) +
    2c_2\lambda_j\lambda_k` and :math:`n = \mathrm{svec}\,mm^T`. Only the Schur complement of the other 2d + 1 entries
    is dense. This takes O(d^4) operations instead of O(d^6) for the full matrix. Noisy constant entries are left out.
    """

    def __init__(self, protocol, tally):
        mechanism = protocol.randomizer
        self.n_reports = tally.n_reports
        self.mean = protocol.mean_matrix(tally)
        self.y_weight, self.intercept_weight = mechanism.y_weight, mechanism.intercept_weight
        self.law = above_floor(mechanism.noise)
        self.noise = max(mechanism.noise_variance, LEAST_NOISE)
        d = protocol.n_features
        above = np.triu_indices(d, 1)
        self.rows, self.columns = (np.concatenate([np.arange(d), part]) for part in above)
        self.isometry = np.where(self.rows == self.columns, 1.0, ROOT2)
        self.x = slice(int(mechanism.intercept_weight > 0), -1)

    share = 1.0  # of the clients who fill an entry of x

    def reported(self):
        """Return the estimated moments of (x, y)."""
        n, w, kappa, start = self.n_reports, self.y_weight, self.intercept_weight, self.x.start
        variance = 1 / (4 * (len(self.mean) - 1 - start)) / self.share  # of an entry of x
        noise = 0.5 * self.noise  # svec multiplies what is off the diagonal by the root of two
        moments = weighted_moments(self.mean[0, 1:] / kappa if kappa else None, self.mean[start:, start:], w,
                                   n / (noise + w**2 * variance), n * kappa**2 / (noise + kappa**2 * variance))
        return replace(moments, response_information=n * (kappa * w) ** 2 / (noise + (kappa * w) ** 2))

    def deviation(self, moments):
        """Return D, the mean report minus its expectation: the matrix x x', and the other entries as in svec."""
        square = self.mean[self.x, self.x] - moments.second()
        xy = ROOT2 * (self.mean[self.x, -1] - self.y_weight * moments.cross)
        if not moments.has_constant:
            return square, xy
        kappa, f0 = self.intercept_weight, moments.means[0]
        x = ROOT2 * (self.mean[0, 1:-1] - kappa * moments.x_mean)
        y = ROOT2 * (self.mean[0, -1] - kappa * self.y_weight * f0)
        return square, np.concatenate([x, y[:, None], xy], axis=1)

    def log_likelihood(self, moments):
        """Return the log-likelihood up to a constant, with the covariance A at the parameters."""
        moments = moments.weighted(self.y_weight, self.intercept_weight)
        square, rest = self.deviation(moments)
        values, vectors = np.linalg.eigh(moments.second())
        rotated = moments.rotated(vectors, values)
        transposed = vectors.swapaxes(1, 2)
        square = (transposed @ square @ vectors)[:, self.rows, self.columns] * self.isometry
        rest = self._rotate_rest(transposed, rest, moments.has_constant)
        law = self._law_at(moments)
        gram, log_determinant = self._solve(law, rotated, values, square[:, :, None], rest[:, :, None])
        quadratic = gram[:, 0, 0]
        if not law.isotropic:
            joint, log_low_rank = woodbury(gram[:, 1:, 1:], moment_spread(law))
            quadratic = quadratic - np.vecdot(gram[:, 1:, 0], (joint @ gram[:, 1:, :1])[:, :, 0])
            log_determinant = log_determinant + log_low_rank
        # At extreme parameters labels are certain, and cancellation can make the complement indefinite.
        return np.where(quadratic < 0, -np.inf, -0.5 * (self.n_reports * quadratic + log_determinant))

    def _law_at(self, moments):
        """Return the noise of a report of such records, with fields of shape (n, 1, 1) unless it is isotropic."""
        square = np.trace(moments.second(), axis1=1, axis2=2) + self.y_weight**2 + self.intercept_weight**2
        return self.law.within(square[:, None, None])

    def _solve(self, law, moments, values, square, rest):
        r"""Return :math:`Y^TA_0^{-1}Y` and :math:`\log|A_0|` in the eigenbasis, where Y has the deviation and G.

        An indefinite covariance has the log-determinant infinity.
        """
        place = self.rows, self.columns
        cross, complement = law.square * moments.cross_covariance(*place), law.square * moments.linear_covariance()
        if not law.isotropic:
            cross += law.linear * linear_cross(moments, *place)
            complement += law.linear * linear_rest(moments)
            square, rest = (np.concatenate(pair, axis=2)
                            for pair in zip((square, rest), identity_and_moments(moments, *place)))
        one, other = values[:, self.rows], values[:, self.columns]
        linear, coefficient = (np.reshape(part, (-1, 1)) for part in (law.linear, law.square))
        variances = law.constant + linear * (one + other) + 2 * coefficient * one * other  # M
        mean_products = moments.x_mean[:, self.rows] * moments.x_mean[:, self.columns] * self.isometry  # n
        scaled_products = mean_products / variances
        k = 1 - 2 * coefficient[:, 0] * np.vecdot(mean_products, scaled_products)
        columns = np.concatenate([square, cross * self.isometry[:, None]], axis=2)  # [Y_1, A_12]
        # B^-1 = (diag(M) - 2c nn')^-1 = diag(1/M) + 2c/k (n/M)(n/M)' by the Sherman-Morrison formula
        solved = columns / variances[:, :, None]
        solved += ((2 * coefficient[:, 0] / k)[:, None, None] * scaled_products[:, :, None]
                   * (scaled_products[:, None, :] @ columns))
        reduced = columns.swapaxes(1, 2) @ solved
        n_columns = square.shape[2]
        complement -= reduced[:, n_columns:, n_columns:]  # A_22 - A_21 B^-1 A_12
        order = np.arange(complement.shape[1])
        complement[:, order, order] += law.constant
        rest = rest - reduced[:, n_columns:, :n_columns]  # Y_2 - A_21 B^-1 Y_1
        gram = reduced[:, :n_columns, :n_columns] + rest.swapaxes(1, 2) @ np.linalg.solve(complement, rest)
        sign, log_complement = np.linalg.slogdet(complement)
        log_determinant = np.log(variances).sum(axis=1) + np.log(k) + log_complement
        return gram, np.where(sign > 0, log_determinant, np.inf)

    @staticmethod
    def _rotate_rest(transposed, rest, has_constant):
        """Return the entries x, y and yx of a deviation in the eigenbasis."""
        d = transposed.shape[1]
        xy = matvec(transposed, rest[:, -d:])
        if not has_constant:
            return xy
        return np.concatenate([matvec(transposed, rest[:, :d]), rest[:, d:d + 1], xy], axis=1)

    def precision(self, moments):
        """Return the inverse of the full covariance A of a report, for the parameters of one walker."""
        moments = moments.weighted(self.y_weight, self.intercept_weight)
        law = self._law_at(moments)
        second = moments.second()[0]
        j, k, m = self.rows, self.columns, moments.x_mean[0]
        mean_products = m[j] * m[k]
        square = second[np.ix_(j, j)] * second[np.ix_(k, k)] + second[np.ix_(j, k)] * second[np.ix_(k, j)]
        square -= 2 * np.outer(mean_products, mean_products)
        coefficient, linear = np.reshape(law.square, 1)[0], np.reshape(law.linear, 1)[0]
        square *= coefficient
        cross, rest = coefficient * moments.cross_covariance(j, k)[0], coefficient * moments.linear_covariance()[0]
        if not law.isotropic:
            square += linear * linear_square(second, j, k)
            cross += linear * linear_cross(moments, j, k)[0]
            rest += linear * linear_rest(moments)[0]
        cross *= self.isometry[:, None]
        full = np.block([[square * np.outer(self.isometry, self.isometry), cross], [cross.T, rest]])
        if not law.isotropic:
            columns = np.concatenate(identity_and_moments(moments, j, k), axis=1)[0]
            full += columns @ moment_spread(law)[0] @ columns.T
        return np.linalg.inv(full + law.constant * np.eye(len(full)))

    def plug_in_value(self, moments, precision):
        """Return the log-likelihood with a fixed precision, and N times the precision times the deviation."""
        square, rest = self.deviation(moments)
        deviation = np.concatenate([square[:, self.rows, self.columns] * self.isometry, rest], axis=1)
        weighted = self.n_reports * deviation @ precision  # N A^-1 D
        return -0.5 * np.vecdot(deviation, weighted), weighted

    def plug_in(self, moments, precision):
        """Return the log-likelihood with a fixed precision, and its derivatives by E xx', E x, E y and E yx."""
        value, weighted = self.plug_in_value(moments, precision)
        n, d = len(self.rows), moments.coef.shape[1]
        by_square = np.zeros_like(moments.covariance)
        by_square[:, self.rows, self.columns] = by_square[:, self.columns, self.rows] = weighted[:, :n] / self.isometry
        by_xy = ROOT2 * self.y_weight * weighted[:, -d:]
        if not moments.has_constant:
            return value, by_square, None, None, by_xy
        kappa = self.intercept_weight
        by_y = ROOT2 * kappa * self.y_weight * weighted[:, n + d]
        return value, by_square, ROOT2 * kappa * weighted[:, n:n + d], by_y, by_xy
