r"""Noise of moment reports of labelled records whose size depends on the record, in svec coordinates.

The entries of a report are those of :math:`xx^T`, and then :math:`\sqrt2\kappa x, \sqrt2\kappa wy, \sqrt2wyx`. With
the normalised basis :math:`E_{pq} = \frac12i_{pq}(e_pe_q^T + e_qe_p^T)`, :math:`i_{pp} = 1` and
:math:`i_{pq} = \sqrt2`, the operator :math:`X \to \Theta X + X\Theta` has the entries

.. math:: \tfrac12i_{pq}i_{rs}(\delta_{qr}\Theta_{ps} + \delta_{qs}\Theta_{pr} + \delta_{pr}\Theta_{qs}
          + \delta_{ps}\Theta_{qr}) .
"""

import math

import numpy as np

ROOT2 = math.sqrt(2)


def linear_square(second, rows, columns):
    """Entries of the operator between the entries (rows, columns) of x x', without their isometry, for one E x x'."""
    equal = np.eye(len(second))

    def term(one, other, left, right):
        """Theta at the first two indices where the last two are equal."""
        return second[np.ix_(one, other)] * equal[np.ix_(left, right)]

    return 0.5 * (term(rows, columns, columns, rows) + term(rows, rows, columns, columns)
                  + term(columns, columns, rows, rows) + term(columns, rows, rows, columns))


def linear_cross(moments, rows, columns):
    """Entries of the operator between those of x x', without their isometry, and the others; (n, m, q)."""
    d = moments.coef.shape[1]

    def part(vector):
        """Block for the products of x with an entry whose moments with x are given."""
        out = np.zeros((len(vector), len(rows), d))
        place = np.arange(len(rows))
        out[:, place, columns] += vector[:, rows]
        out[:, place, rows] += vector[:, columns]
        return out / ROOT2

    with_xy = part(moments.y_weight * moments.cross)
    if not moments.has_constant:
        return with_xy
    with_x = part(moments.intercept_weight * moments.x_mean)
    return np.concatenate([with_x, np.zeros_like(with_x[:, :, :1]), with_xy], axis=2)


def linear_rest(moments):
    """Entries of the operator between those other than x x'; (n, q, q)."""
    w, kappa, second = moments.y_weight, moments.intercept_weight, moments.second()
    d = second.shape[1]
    identity = np.eye(d)
    if not moments.has_constant:
        return second + w**2 * identity
    out = np.zeros((len(second), 2 * d + 1, 2 * d + 1))
    x, y, xy = slice(0, d), d, slice(d + 1, 2 * d + 1)
    out[:, x, x] = second + kappa**2 * identity
    out[:, y, y] = w**2 + kappa**2
    out[:, xy, xy] = second + w**2 * identity
    out[:, x, y] = out[:, y, x] = w * moments.cross
    out[:, xy, y] = out[:, y, xy] = kappa * moments.x_mean
    out[:, x, xy] = out[:, xy, x] = kappa * w * moments.means[0][:, None, None] * identity
    return out


def identity_and_moments(moments, rows, columns):
    r"""The matrices I and :math:`\Theta` in svec coordinates: their x x' part (n, m, 2), and the rest (n, q, 2)."""
    second, d = moments.second(), moments.coef.shape[1]
    isometry = np.where(rows == columns, 1.0, ROOT2)
    square = np.stack([np.broadcast_to(1.0 * (rows == columns), (len(second), len(rows))),
                       second[:, rows, columns] * isometry], axis=2)
    entries = [moments.y_weight * moments.cross]
    if moments.has_constant:
        kappa = moments.intercept_weight
        entries = [kappa * moments.x_mean, kappa * moments.y_weight * moments.means[0][:, None], *entries]
    rest = np.zeros((len(second), d if len(entries) == 1 else 2 * d + 1, 2))
    rest[:, :, 1] = ROOT2 * np.concatenate(entries, axis=1)
    return square, rest
