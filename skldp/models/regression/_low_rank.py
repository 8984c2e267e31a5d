"""Matrices of low rank in the covariance of moment reports."""

import numpy as np


def woodbury(gram, spread):
    r"""Return :math:`J = (I + KS)^{-1}K` and :math:`\log|I + KS|` for matrices S and K, shape (n, r, r).

    Notes
    -----
    With a covariance :math:`V = V_0 + GKG^T` and :math:`S = G^TV_0^{-1}G`, the inverse is
    :math:`V_0^{-1} - V_0^{-1}GJG^TV_0^{-1}` and the determinant :math:`|V_0||I + KS|`. K may be singular.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp.models.regression._low_rank import woodbury
    >>> joint, log_determinant = woodbury(np.array([[[0.5]]]), np.array([[[2.0]]]))
    >>> round(joint.item(), 9), round(log_determinant.item(), 4)
    (1.0, 0.6931)
    """
    mixed = np.eye(gram.shape[-1]) + spread @ gram
    sign, log_determinant = np.linalg.slogdet(mixed)
    return np.linalg.solve(mixed, np.broadcast_to(spread, mixed.shape)), np.where(sign > 0, log_determinant, np.nan)


def moment_spread(law):
    r"""Coefficients of the products of I and :math:`\Theta` in the covariance of a report, shape (n, 2, 2)."""
    spread = np.empty((np.size(law.square), 2, 2))
    spread[:, 0, 0], spread[:, 1, 1] = law.identity, np.ravel(law.square) - 1
    spread[:, 0, 1] = spread[:, 1, 0] = np.ravel(law.mixed)
    return spread


class LowRank:
    r"""Columns G of a covariance :math:`\mathrm{diag}(M) + GKG^T`, as symmetric matrices in an eigenbasis.

    Parameters
    ----------
    law : MomentNoise
        Covariance of a report; its fields may be arrays of shape (n,).
    values : ndarray of shape (n, k)
        Eigenvalues of the moments.
    mean : ndarray of shape (n, k) or None
        Mean of the records in the eigenbasis; None if it is zero.
    variances : ndarray of shape (n, k, k)
        M.

    Attributes
    ----------
    scaled : ndarray of shape (n, r, k, k)
        Columns P = G / M.
    joint : ndarray of shape (n, r, r)
        J of :func:`woodbury`.
    log_determinant : ndarray of shape (n,)
        :math:`\log|I + KS|`.
    """

    def __init__(self, law, values, mean, variances):
        self.has_mean, self.has_moments = mean is not None, not law.isotropic
        rank, (n, k) = self.has_mean + 2 * self.has_moments, values.shape
        columns = np.zeros((n, rank, k, k))
        spread = np.zeros((n, rank, rank))
        if self.has_mean:
            columns[:, 0] = mean[:, :, None] * mean[:, None, :]
            spread[:, 0, 0] = -2 * law.square
        if self.has_moments:
            order = np.arange(k)
            columns[:, -2, order, order] = 1.0
            columns[:, -1, order, order] = values
            spread[:, -2:, -2:] = moment_spread(law)
        self.scaled = columns / variances[:, None]
        self._flat = self.scaled.reshape(n, rank, k * k)
        gram = columns.reshape(n, rank, k * k) @ self._flat.swapaxes(1, 2)
        self.joint, self.log_determinant = woodbury(gram, spread)

    def along(self, deviation):
        """Return h = <P, D> and J h for matrices D, shape (n, k, k)."""
        inner = (self._flat @ deviation.reshape(len(deviation), -1)[:, :, None])[:, :, 0]
        return inner, (self.joint @ inner[:, :, None])[:, :, 0]

    def combined(self, weights):
        """Return sums of the matrices P with weights of shape (n, q, r), shape (n, q, k, k)."""
        return (weights @ self._flat).reshape(*weights.shape[:2], *self.scaled.shape[2:])
