"""Numbers of clients needed with the paper's mechanisms and with ours, computed from the implementations.

For values, the Fisher information of one report about the mean and the standard deviation of normal
records; for categories, the Fisher information about the frequencies at the uniform distribution; for vectors, the
variance of a decoded report. Then the noise that the exact sensitivity saves, and the gain from recentring moments
before the sphere.

Nothing here is random. Run with ``python benchmarks/table_mechanisms.py`` (seconds); ``--quick`` computes two lines of
each table. All numbers are written to ``benchmarks/results``.
"""

import argparse
from dataclasses import dataclass
from typing import Callable

import numpy as np
from _data import results_folder, write_table
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from scipy import special  # the module, because its functions cannot be pickled for worker processes
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp.mechanisms import Gaussian, Laplace, Sphere, SquareWave, SubsetSelection, UnaryEncoding
from skldp.privacy import (
    ball_sensitivity,
    gaussian_sigma,
    labelled_moment_radius,
    moment_radius,
    moment_sensitivity,
    paper_moment_bound,
    weighted_moment_sensitivity,
)

EPSILONS = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0)


def cell_masses(mechanism, mean, sd):
    """Return the probability of every grid point for a clipped, rounded normal record."""
    edges = (np.arange(mechanism.n_levels) + 0.5) / mechanism.n_levels
    lower, upper = mechanism.bounds
    cdf = special.ndtr((lower + edges * (upper - lower) - mean) / sd)
    return np.diff(cdf, prepend=0.0, append=1.0)


def value_information(mechanism, spreads):
    """Return the Fisher information of one report about mean and standard deviation, for each standard deviation."""
    lower, upper = mechanism.bounds
    grid = lower + np.arange(mechanism.n_levels + 1) * (upper - lower) / mechanism.n_levels
    low, high = mechanism.clamp
    reports = np.unique(np.linspace(low, high, min(high - low + 1, 20_001)).astype(int))
    width = np.gradient(reports.astype(float))  # only some Laplace reports are used, because the density is smooth
    kernel = np.exp(mechanism.log_prob(reports[:, None], grid[None, :]))

    def probability(mean, spread):
        return kernel @ cell_masses(mechanism, mean, spread)

    information = []
    for sd in spreads:
        step = 1e-3 * sd
        p = probability(0.0, sd)
        d_mean = (probability(step, sd) - probability(-step, sd)) / (2 * step)
        d_sd = (probability(0.0, sd + step) - probability(0.0, sd - step)) / (2 * step)
        information.append([(width * d**2 / p).sum() for d in (d_mean, d_sd)])
    return np.array(information)


def values(epsilon):
    """Compare the square wave with Laplace noise."""
    shares = (0.05, 0.1, 0.2, 0.25)
    wave = value_information(SquareWave(epsilon=epsilon, bounds=(-0.5, 0.5)), shares)
    laplace = value_information(Laplace(epsilon=epsilon, bounds=(-0.5, 0.5), n_levels=1024), shares)
    return {f"{100 * share:g} % {what}": ratio for share, line in zip(shares, wave / laplace)
            for what, ratio in zip(("mean", "sd"), line)}


def category_information(mechanism):
    """Return the Fisher information about a contrast of uniform frequencies, by the exact likelihood."""
    d, epsilon = mechanism.n_categories, mechanism.epsilon
    odds = np.expm1(epsilon)
    # A report with s ones has probability proportional to 1 + odds * (share of its ones): information about any
    # contrast is E[(odds (z_1 - z_2) / (1 + odds z.theta))^2] / 2, and depends on the number of ones alone.
    ones = np.arange(d + 1)
    probability = number_of_ones(mechanism)
    pairs = 2 * ones * (d - ones) / (d * (d - 1))
    return (probability * pairs * (odds / (1 + odds * ones / d)) ** 2).sum() / 2


def number_of_ones(mechanism):
    """Return the distribution of the number of ones of a report."""
    d = mechanism.n_categories
    probability = np.zeros(d + 1)
    if isinstance(mechanism, SubsetSelection):
        probability[mechanism.subset_size] = 1.0
        return probability
    probability[0] = 1.0
    for p in [mechanism.p] + [mechanism.q] * (d - 1):
        probability[1:] = (1 - p) * probability[1:] + p * probability[:-1]
        probability[0] *= 1 - p
    return probability


def categories(epsilon):
    """Compare subset selection with unary encoding."""
    return {f"d={d}": category_information(SubsetSelection(epsilon=epsilon, n_categories=d))
            / category_information(UnaryEncoding(epsilon=epsilon, n_categories=d)) for d in (2, 3, 4, 16, 64)}


def vectors(epsilon):
    """Compare the sphere with the Gaussian mechanism, for vectors of a ball and for moment reports."""
    ball = {f"ball d={d}": Gaussian(epsilon=epsilon, n_features=d).noise_variance
            / Sphere(epsilon=epsilon, n_features=d).noise_variance for d in (2, 10, 50)}
    return {**ball, **{f"moments d={d}": moment_ratio(epsilon, d) for d in (2, 10, 20)}}


def moment_ratio(epsilon, d):
    """Return the ratio of the noise variances of Gaussian and sphere for moment reports."""
    y_weight = kappa = np.sqrt(0.5)
    n_entries = (d + 2) * (d + 3) // 2 - 1
    sigma = gaussian_sigma(epsilon, 1e-5, moment_sensitivity(1.0, 1.0, y_weight, kappa))
    radius = moment_radius(1.0, 1.0, d, y_weight, kappa)
    return sigma**2 / Sphere(epsilon=epsilon, norm=radius, n_features=n_entries).noise_variance


def sensitivity(bound):
    """Return the noise saved by the exact sensitivity."""
    return {"ratio": (paper_moment_bound(1, bound) / weighted_moment_sensitivity(1, bound)) ** 2}


def recentring(d):
    """Return the gain from recentring."""
    weight = np.sqrt(0.5)
    cells = {}
    for title, kappa in (("", 0.0), (" with intercept", weight)):
        radii = [moment_radius(1, 1, d, weight, kappa, recentred) for recentred in (True, False)]
        cells["linear" + title] = radii[0] ** 2 / radii[1] ** 2
    for title, kappa in (("", 0.0), (" with intercept", weight)):
        radii = [labelled_moment_radius(1, d, weight, kappa, recentred) for recentred in (True, False)]
        cells["labels" + title] = radii[0] ** 2 / radii[1] ** 2
    return cells


@dataclass(frozen=True)
class Table:
    """A table: its title, its lines, and the function that computes the cells of a line by column."""

    title: str
    corner: str
    lines: tuple
    cells: Callable


TABLES = {
    "values": Table("Values: clients needed, Laplace : square wave, by the records' sd as a share of the range",
                    "epsilon", EPSILONS, values),
    "categories": Table("Categories: clients needed, unary encoding : subset selection, full likelihood, uniform "
                        "frequencies", "epsilon", EPSILONS, categories),
    "vectors": Table("Vectors: clients needed, Gaussian (delta=1e-5) : sphere; vectors of the unit ball, then moment "
                     "reports of d features\n(R=1, R_y=1, intercept weight^2 1/2, y weight^2 1/2; Gaussian with the "
                     "exact sensitivity)", "epsilon", EPSILONS, vectors),
    "sensitivity": Table("Noise variance of the paper's bound over the exact sensitivity, equal weights, R=1",
                         "R_y", (0.5, 1.0, 2.0, 4.0), sensitivity),
    "recentring": Table("Noise variance with recentring over without it, y weight^2 1/2", "d", (1, 2, 5, 10, 20),
                        recentring),
}


def compute(lines, jobs):
    """Return the rows of the table of results, one for each cell."""
    rows = []
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1), \
            Parallel(n_jobs=jobs, return_as="generator") as pool:
        found = pool(delayed(TABLES[name].cells)(line) for name, line in lines)
        for (name, line), cells in zip(lines, tqdm(found, total=len(lines), unit="line")):
            rows += [{"table": name, "line": TABLES[name].corner, "at": line, "column": column, "ratio": ratio}
                     for column, ratio in cells.items()]
    return rows


def print_tables(rows):
    """Print every table."""
    for name, table in TABLES.items():
        part = [row for row in rows if row["table"] == name]
        columns = list(dict.fromkeys(row["column"] for row in part))
        print(table.title)
        print_table([table.corner, *columns],
                    [[f"{line:g}", *(row["ratio"] for row in part if row["at"] == line)]
                     for line in dict.fromkeys(row["at"] for row in part)])
    print(f"(A ball of radius 1 has sensitivity {ball_sensitivity(1.0):g}.)")


def main():
    """Compute, write and print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two lines of each table, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no number")
    arguments = parser.parse_args()
    print_header("Clients needed", "joblib")
    lines = [(name, line) for name, table in TABLES.items()
             for line in (table.lines[1:3] if arguments.quick else table.lines)]
    rows = compute(lines, arguments.jobs)
    write_table(rows, results_folder(arguments.quick) / "table_mechanisms.csv")
    print_tables(rows)


if __name__ == "__main__":
    main()
