"""Axis against sphere: variance of the moments, people needed, size of a report, and what other heights would gain.

The variances are exact (``skldp.mechanisms`` derives them), for records with a mean squared length of x of 1/2, a mean
square of the response of 1/4 of its bound, weights 1 of the response and the root of 1/2 of the constant; variances by
simulation are beside them. People needed are those of predictions, ``skldp.protocols.moment_risk``; "own weight" is the
weight of the constant that suits axes, which would suit the sphere, too.

Run with ``python benchmarks/table_axis.py`` (seconds); ``--quick`` computes two epsilons. All numbers are written to
``benchmarks/results``.
"""

import argparse
import math

import numpy as np
from _data import results_folder, write_table
from _timing import print_header, print_table
from scipy.optimize import minimize_scalar

from skldp.mechanisms import Axis, AxisMoments, SphereMoments
from skldp.protocols import axis_constant, moment_risk

SEED = 20220505
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
FEATURES = (5, 8, 20)
N_SIMULATED = 100_000


def theta_of(mechanism):
    """Return second moments of typical records (constant, x, y)."""
    d = mechanism.n_features
    return np.diag([mechanism.intercept_weight**2, *np.full(d, 0.5 / d), 0.25 * mechanism.y_weight**2])


def variance(mechanism, row, column, noise=None):
    """Return the variance of an entry of a decoded report that is due to the noise."""
    left, right = np.eye(mechanism.order)[[row, column]]
    return float((noise or mechanism.noise).variance(left[None], right, theta_of(mechanism))[0])


def simulated(mechanism, rng):
    """Return the variances of an xy entry and of an xx entry of decoded reports around their records."""
    d = mechanism.n_features
    x = rng.normal(size=(N_SIMULATED, d))
    x *= np.sqrt(0.5) / np.linalg.norm(x, axis=1, keepdims=True)
    records = np.column_stack([x, rng.choice([-0.5, 0.5], size=N_SIMULATED)])
    found = mechanism.matrix(mechanism.decode(mechanism.randomize(records)))
    v = np.column_stack([np.full(N_SIMULATED, mechanism.intercept_weight), x, mechanism.y_weight * records[:, -1]])
    return [float(((found[:, i, j] - v[:, i] * v[:, j]) ** 2).mean()) for i, j in ((1, -1), (1, 2))]


def compare(d, epsilon, rng):
    """Return the row of one dimension and budget."""
    options = {"epsilon": epsilon, "n_features": d, "y_weight": 1.0}
    sphere, axis = SphereMoments(**options), AxisMoments(**options)
    tuned = AxisMoments(**options, intercept_weight=axis_constant(d))
    of_sphere = sphere.noise_variance / 2
    measured = simulated(axis, rng)
    return {"d": d, "epsilon": epsilon,
            "xy": variance(axis, 1, -1) / of_sphere, "xy simulated": measured[0] / of_sphere,
            "xx": variance(axis, 1, 2) / of_sphere, "xx simulated": measured[1] / of_sphere,
            "people, same weights": moment_risk(axis) / moment_risk(sphere),
            "people, own weight": moment_risk(tuned) / moment_risk(sphere),
            "other height": best_height(tuned)}


def best_height(mechanism):
    """Return by how much the height with the least variance of an xy entry lowers it."""
    def loss(logit):
        other = Axis(epsilon=mechanism.epsilon, norm=mechanism.axis.norm, n_features=mechanism.order)
        vars(other)["gamma"] = 1 / math.sqrt(1 + math.exp(-logit))
        return variance(mechanism, 1, -1, other.noise)

    start = math.log(mechanism.axis.gamma**2 / (1 - mechanism.axis.gamma**2))
    least = minimize_scalar(loss, bounds=(start - 2, start + 2), method="bounded").fun
    return variance(mechanism, 1, -1) / least - 1


def sizes():
    """Return the bytes of a report, as integers of two bytes."""
    return [{"d": d, "sphere": 2 * SphereMoments(n_features=d).width, "axis": 2 * AxisMoments(n_features=d).width}
            for d in (5, 10, 20, 100, 1000)]


def main():
    """Compute, write and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two epsilons, for a smoke run")
    arguments = parser.parse_args()
    print_header("Axis against sphere", seed=SEED)
    rng = np.random.default_rng(SEED)
    rows = [compare(d, epsilon, rng) for d in FEATURES for epsilon in EPSILONS[:2 if arguments.quick else None]]
    write_table(rows, results_folder(arguments.quick) / "table_axis.csv")
    print("Variance, or people needed, over that of the sphere; the last column is what another height would save.")
    print_table(list(rows[0]), [[f"{row['d']}", *list(row.values())[1:]] for row in rows])
    reports = sizes()
    write_table(reports, results_folder(arguments.quick) / "table_axis_bytes.csv")
    print("Bytes of a report.")
    print_table(list(reports[0]), [[f"{row['d']}", *list(row.values())[1:]] for row in reports])


if __name__ == "__main__":
    main()
