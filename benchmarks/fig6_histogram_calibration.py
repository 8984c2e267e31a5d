"""Empirical coverage of the intervals of six category frequencies.

The setting is that of the supplement of Kulkarni et al. (2022): 1,000 clients, six categories, 100 repeats, the truth
of each repeat drawn from the Dirichlet(1) prior; a coverage is over all six frequencies. Both their mechanism (optimal
unary encoding, ``oue``) and ours (``auto``: subset selection) use the exact likelihood.

The six frequencies of a repeat are dependent, so the variance of their count is larger than binomial. The band is the
central 99 % of a normal distribution with the variance of the mean over repeats, estimated from the variance between
repeats, but at least the binomial one.

Run with ``python benchmarks/fig6_histogram_calibration.py``; ``--quick`` is a smoke run, ``--figure-only`` redraws the
figure from the table. Both are written to ``benchmarks/results``.
"""

import argparse
import time
import warnings

import numpy as np
from _data import pyplot, read_table, results_folder, save_figure, write_table
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from scipy.special import ndtri
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import LDPHistogram

SEED = 20220504
N_CATEGORIES, N_REPORTS = 6, 1000
EPSILONS = (0.3, 1.0, 2.0)
MECHANISMS = {"oue": "unary encoding", "auto": "subset selection"}
LEVELS = (0.5, 0.7, 0.9, 0.95)


def fit_once(mechanism, epsilon, key):
    """Return which frequencies are in their intervals (levels x categories), and whether a convergence warning came."""
    rng = np.random.default_rng([SEED, *key])
    truth = rng.dirichlet(np.ones(N_CATEGORIES))
    records = rng.choice(N_CATEGORIES, p=truth, size=(N_REPORTS, 1))
    model = LDPHistogram(epsilon=epsilon, categories=list(range(N_CATEGORIES)), mechanism=mechanism,
                         likelihood="exact", random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(records)
    warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    ends = np.array([model.posterior_.interval(level)["frequencies"] for level in LEVELS])
    return (ends[..., 0] <= truth) & (truth <= ends[..., 1]), warned


def cells(mechanism, epsilon, results):
    """Return the rows of the table, one for each level."""
    covered = np.array([inside for inside, _ in results])  # repeats x levels x categories
    repeats = len(covered)
    rows = []
    for level, inside in zip(LEVELS, np.moveaxis(covered, 1, 0)):
        binomial = level * (1 - level) / (repeats * N_CATEGORIES)
        spread = inside.mean(axis=1).var(ddof=1) / repeats
        half = ndtri(0.995) * np.sqrt(max(binomial, spread))
        coverage = inside.mean()
        rows.append({
            "mechanism": mechanism, "epsilon": epsilon, "level": level, "n_reports": N_REPORTS,
            "n_categories": N_CATEGORIES, "repeats": repeats, "covered": int(inside.sum()), "coverage": coverage,
            "band_low": max(level - half, 0.0), "band_high": min(level + half, 1.0),
            "binomial_half": ndtri(0.995) * np.sqrt(binomial), "outside": int(abs(coverage - level) > half),
        })
    return rows


def print_coverage(rows):
    """Print coverage, a line for each mechanism and epsilon; a star marks values outside their band."""
    lines = {}
    for row in rows:
        name = f"{MECHANISMS[row['mechanism']]}, epsilon {row['epsilon']:g}"
        text = f"{row['coverage']:.3f}{'*' if row['outside'] else ' '} ({row['band_low']:.3f}-{row['band_high']:.3f})"
        lines.setdefault(name, []).append(text)
    print_table(["coverage (99 % band; * outside)", *(f"{level:.0%} " for level in LEVELS)],
                [[name, *values] for name, values in lines.items()])
    print(f"Outside their band: {sum(row['outside'] for row in rows)} of {len(rows)} cells\n")


def draw(table, path):
    """Draw the figure from the table: a panel for each mechanism."""
    plt = pyplot()
    if plt is None:
        return
    rows = read_table(table)
    mechanisms = [mechanism for mechanism in MECHANISMS if any(row["mechanism"] == mechanism for row in rows)]
    figure, axes = plt.subplots(1, len(mechanisms), figsize=(4.2 * len(mechanisms), 3.8), sharey=True, squeeze=False,
                                layout="constrained")
    for axis, mechanism in zip(axes[0], mechanisms):
        draw_panel(plt, axis, [row for row in rows if row["mechanism"] == mechanism])
        axis.set_title(MECHANISMS[mechanism].capitalize(), fontsize=11)
        axis.set_xlabel("nominal coverage")
    axes[0, 0].set_ylabel("empirical minus nominal\n(percentage points)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    save_figure(plt, figure, path)


def draw_panel(plt, axis, rows):
    """Draw one mechanism: a line for each epsilon over the widest of their bands."""
    levels = sorted({row["level"] for row in rows})
    places = np.arange(len(levels))
    of_level = [[row for row in rows if row["level"] == level] for level in levels]
    low = [100 * (min(row["band_low"] for row in lines) - level) for lines, level in zip(of_level, levels)]
    high = [100 * (max(row["band_high"] for row in lines) - level) for lines, level in zip(of_level, levels)]
    axis.fill_between(places, low, high, color="0.88", linewidth=0, label="99 % band (widest)")
    axis.axhline(0, color="0.4", linewidth=0.8)
    epsilons = sorted({row["epsilon"] for row in rows})
    for i, epsilon in enumerate(epsilons):
        lines = sorted((row for row in rows if row["epsilon"] == epsilon), key=lambda row: row["level"])
        shift = 0.06 * (i - (len(epsilons) - 1) / 2)
        axis.plot(places + shift, [100 * (row["coverage"] - row["level"]) for row in lines], "o-", markersize=4,
                  linewidth=1.2, label=rf"$\epsilon$ = {epsilon:g}",
                  color=plt.colormaps["viridis"](0.9 * i / max(1, len(epsilons) - 1)))
    axis.set_xticks(places, [f"{level:.0%}" for level in levels])


def main():
    """Run the repeats, print and write the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="8 repeats of one epsilon, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no number")
    parser.add_argument("--repeats", type=int, default=100, help="repeats (default 100)")
    parser.add_argument("--figure-only", action="store_true", help="draw the figure from the table that is there")
    arguments = parser.parse_args()
    folder = results_folder(arguments.quick)
    table, figure = folder / "fig6_histogram_calibration.csv", folder / "fig6_histogram_calibration.png"
    if arguments.figure_only:
        draw(table, figure)
        return
    epsilons, repeats = ((1.0,), 8) if arguments.quick else (EPSILONS, arguments.repeats)
    print_header("Calibration of category frequencies", "joblib", "emcee", seed=SEED)
    print(f"{arguments.jobs} processes; {repeats} repeats of {N_CATEGORIES} frequencies\n")
    rows = []
    n_warned = 0
    start = time.perf_counter()
    total = len(MECHANISMS) * len(epsilons) * repeats
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1), \
            tqdm(total=total, unit="fit", mininterval=1) as bar, \
            Parallel(n_jobs=arguments.jobs, return_as="generator") as pool:
        for place, mechanism in enumerate(MECHANISMS):
            for epsilon in epsilons:
                bar.set_description(f"{mechanism}, epsilon {epsilon:g}")
                tasks = (delayed(fit_once)(mechanism, epsilon, (place, int(1000 * epsilon), i))
                         for i in range(repeats))
                results = []
                for result in pool(tasks):
                    results.append(result)
                    bar.update()
                n_warned += sum(warned for _, warned in results)
                rows += cells(mechanism, epsilon, results)
                write_table(rows, table)  # after each setting, so that an interrupt keeps the finished rows
    print_coverage(rows)
    print(f"ConvergenceWarning: {n_warned} of {total} fits; {(time.perf_counter() - start) / 60:.1f} minutes\n")
    draw(table, figure)


if __name__ == "__main__":
    main()
