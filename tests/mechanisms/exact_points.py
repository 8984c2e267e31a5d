"""Points of the sphere in arbitrary precision, to measure the float errors of mechanisms of directions."""

import mpmath
import numpy as np
from scipy.special import ndtri


def exact_point(mechanism, target, u, near, upper, uniform, tangent):
    """Return the ideal point of the sphere for the same random numbers, in arbitrary precision."""
    m, mp = mechanism.dimension, mpmath.mpf
    half = mp(m - 1) / 2
    height = mp(mechanism.gamma)
    cap = mpmath.betainc(half, mp(1) / 2, 0, 1 - height**2, regularized=True) / 2
    share = target(cap, near, upper, mp(uniform))
    start, toward = mechanism._beta_quantile(np.array([near]), np.array([upper]), np.array([uniform]))
    start = mp(float(start[0]))
    x = start
    for _ in range(4):  # Newton's method from the float solution
        density = (x * (1 - x)) ** (half - 1) / mpmath.beta(half, half)
        x -= (mpmath.betainc(half, half, 0, x, regularized=True) - share) / density
    cosine, sine = (1 - 2 * x if toward[0] else 2 * x - 1), 2 * mpmath.sqrt(x * (1 - x))
    length = mpmath.sqrt(sum(t * t for t in tangent))
    sign = -1 if u[0] < 0 else 1
    point = [-sign * cosine] + [sine * t / length for t in tangent]
    v = [u[0] + sign] + list(u[1:])
    along = sum(a * b for a, b in zip(v, point)) / (1 + abs(u[0]))
    return [a - along * b for a, b in zip(point, v)]


def point_errors(mechanism, target):
    """Yield the float errors of points with their shortest tangent, for hostile and for random numbers.

    ``target(cap, near, upper, uniform)`` is the share of the sphere beyond the cosine, with the share of one cap.
    """
    n_features, rng = mechanism.n_features, np.random.default_rng(0)
    codes = mechanism.encode(rng.normal(size=(6, n_features)) * rng.choice([0.1, 0.5, 3.0], size=(6, 1)))
    uniform = np.exp(-rng.exponential(size=6) * rng.choice([0.1, 1, 20], size=6))
    uniform[:2] = 1e-25, 1.0
    upper = np.array([True, True, False, True, False, False])
    quantiles = rng.random((6, n_features)) * 0.5
    signs = rng.choice([-1.0, 1.0], size=quantiles.shape)
    near = np.array([False, False, True, True, False, True])
    computed = mechanism._point(mechanism.direction(codes), near, upper, uniform, -signs * ndtri(quantiles))
    with mpmath.workdps(40):
        for i in range(6):
            pad = mpmath.sqrt(2**32 - sum(int(c) ** 2 for c in codes[i]))
            u = [mpmath.mpf(int(c)) / 2**16 for c in codes[i]] + [pad / 2**16]
            tangent = []
            for quantile, sign in zip(quantiles[i], signs[i]):
                root = mpmath.mpf(float(ndtri(quantile)))
                for _ in range(3):
                    root -= (mpmath.ncdf(root) - mpmath.mpf(quantile)) / mpmath.npdf(root)
                tangent.append(-float(sign) * root)
            exact = exact_point(mechanism, target, u, bool(near[i]), bool(upper[i]), float(uniform[i]), tangent)
            error = mpmath.sqrt(sum((mpmath.mpf(float(a)) - b) ** 2 for a, b in zip(computed[i], exact)))
            yield error, min(1.0, float(mpmath.sqrt(sum(t * t for t in tangent))))
