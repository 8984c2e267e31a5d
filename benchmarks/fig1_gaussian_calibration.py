"""Empirical coverage of intervals for the Gaussian and the exponential model, with both mechanisms.

The setting is that of Figure 1 of Kulkarni et al. (2022): 5,000 Gaussian records clipped to [-5, 5], 500 repeats, and
1,000 exponential records clipped to [0, 5], 80 repeats. The truth of each repeat is drawn from the prior of the
estimator, records are drawn given the truth, and ``fit`` receives only the records. A second table compares the widths
of the 90 % intervals at one truth, Laplace against the square wave.

Run with ``python benchmarks/fig1_gaussian_calibration.py``; ``--quick`` is a smoke run in less than a minute,
``--figure-only`` redraws the figure from the table. Both are written to ``benchmarks/results``.

To save time, a fit first has 200 steps per chain. If the estimator then warns (R-hat above 1.05, or fewer than 400
effective draws), the same fit is repeated with the default length. ``--default-length`` uses the default length for
every fit, and takes about two thirds longer.
"""

import argparse
import time
import warnings
from dataclasses import dataclass

import numpy as np
from _data import pyplot, read_table, results_folder, save_figure, write_table
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from scipy.special import ndtri
from scipy.stats import binom, chi2, norm
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from skldp import MCMC, LDPExponential, LDPGaussian

SEED = 20220330
EPSILONS = (0.1, 0.3, 0.5, 1.0, 2.0)
MECHANISM_TITLES = {"laplace": "Laplace", "square_wave": "square wave"}
MECHANISMS = tuple(MECHANISM_TITLES)
LEVELS = (0.5, 0.7, 0.9, 0.95)
SHORT_LENGTH = 200


@dataclass(frozen=True)
class Setting:
    """A model of the figure: its estimator, its records, and its number of repeats."""

    name: str
    estimator: type
    options: dict
    n_reports: int
    repeats: int

    def make(self, mechanism, epsilon, **options):
        """Return an estimator of this model."""
        return self.estimator(epsilon=epsilon, mechanism=mechanism, **self.options, **options)

    def records(self, truth, rng):
        """Return the records of one repeat, not clipped."""
        if self.name == "gaussian":
            return rng.normal(truth["mean"], truth["std"], size=(self.n_reports, 1))
        return rng.exponential(1 / truth["rate"], size=(self.n_reports, 1))


@dataclass(frozen=True)
class Repeat:
    """Result of one fit: intervals by level and name, and the ranks of the truth among the draws."""

    truth: dict
    intervals: dict
    ranks: dict
    warned_first: bool
    warned_last: bool
    cpu_seconds: float


GAUSSIAN = Setting("gaussian", LDPGaussian, {"bounds": (-5, 5)}, 5000, 500)
EXPONENTIAL = Setting("exponential", LDPExponential, {"upper": 5.0}, 1000, 80)
WIDTH_TRUTH = {"mean": 0.0, "std": 1.0}


def fit_once(setting, mechanism, epsilon, truth, length, key):
    """Fit one repeat."""
    start = time.process_time()
    rng = np.random.default_rng([SEED, *key])
    estimator = setting.make(mechanism, epsilon)
    if truth is None:
        truth = {name: float(prior.quantile(rng.random())) for name, prior in estimator._family().priors.items()}
    records = setting.records(truth, rng)
    estimator.set_params(random_state=int(rng.integers(2**31)))
    estimator.set_params(inference=MCMC(n_draws=length) if length else MCMC())
    complaints = [fit_quietly(estimator, records)]
    if complaints[0] and length:
        # The same random_state gives the same reports, and the same chains, but longer.
        complaints.append(fit_quietly(estimator.set_params(inference=MCMC()), records))
    intervals = {level: estimator.posterior_.interval(level) for level in LEVELS}
    ranks = {name: (np.sum(draws < truth[name]) + 0.5) / (draws.size + 1)
             for name, draws in estimator.posterior_.draws.items()}
    return Repeat(truth, intervals, ranks, complaints[0], complaints[-1], time.process_time() - start)


def fit_quietly(estimator, records):
    """Fit, and return whether there was a convergence warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(records)
    return any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


class Runner:
    """Runs repeats in parallel, with one progress bar and a count of the warnings."""

    def __init__(self, pool, bar, length):
        self.pool, self.bar, self.length = pool, bar, length
        self.n_fits = self.n_first = self.n_last = 0
        self.cpu_seconds = 0.0

    def run(self, setting, mechanism, epsilon, repeats, truth=None):
        """Run all repeats of one model, mechanism and epsilon."""
        key = (setting.n_reports, MECHANISMS.index(mechanism), int(1000 * epsilon), int(truth is not None))
        tasks = (delayed(fit_once)(setting, mechanism, epsilon, truth, self.length, (*key, i)) for i in range(repeats))
        self.bar.set_description(f"{setting.name}, {mechanism}, epsilon {epsilon:g}")
        results = []
        for result in self.pool(tasks):
            results.append(result)
            self.n_fits += 1
            self.n_first += result.warned_first
            self.n_last += result.warned_last
            self.cpu_seconds += result.cpu_seconds
            self.bar.update()
        return results


def cells(setting, mechanism, epsilon, results):
    """Return the rows of the table, one for each parameter and level."""
    repeats = len(results)
    rows = []
    for name in results[0].truth:
        truths = np.array([result.truth[name] for result in results])
        scores = ndtri(np.array([result.ranks[name] for result in results]))
        for level in LEVELS:
            ends = np.array([result.intervals[level][name] for result in results])
            covered = int(np.sum((ends[:, 0] <= truths) & (truths <= ends[:, 1])))
            low, high = binom.ppf([0.005, 0.995], repeats, level).astype(int)
            rows.append({
                "model": setting.name, "mechanism": mechanism, "epsilon": epsilon, "parameter": name, "level": level,
                "n_reports": setting.n_reports, "repeats": repeats, "covered": covered, "coverage": covered / repeats,
                "band_low": low / repeats, "band_high": high / repeats, "outside": int(not low <= covered <= high),
                "score_mean": scores.mean(), "score_mean_square": np.mean(scores**2),
            })
    return rows


def print_scores(rows):
    """Print tests of the normal scores, which are standard normal if calibrated; more powerful than coverage."""
    tests = []
    for row in rows[::len(LEVELS)]:
        n, mean, square = row["repeats"], row["score_mean"], row["score_mean_square"]
        mean_p = 2 * norm.sf(abs(mean) * np.sqrt(n))
        square_p = 2 * min(chi2.cdf(n * square, n), chi2.sf(n * square, n))
        tests.append([label(row), mean, mean_p, square, square_p])
    print_table(["normal scores of the ranks", "mean", "p", "mean square", "p "], tests)
    smallest, n_tests = min(min(test[2], test[4]) for test in tests), 2 * len(tests)
    print(f"Smallest of {n_tests} p-values: {smallest:.2g} (5 % for all together: {0.05 / n_tests:.1g})\n")


def label(row):
    """Return the name of a row without its level."""
    return f"{row['model']} {row['parameter']}, {row['mechanism']}, epsilon {row['epsilon']:g}"


def print_coverage(rows):
    """Print coverage, a line for each parameter; a star marks values outside their band."""
    lines = {}
    for row in rows:
        lines.setdefault(label(row), []).append(f"{row['coverage']:.3f}" + ("*" if row["outside"] else " "))
    print_table(["coverage (* outside the 99 % band)", *(f"{level:.0%} " for level in LEVELS)],
                [[name, *values] for name, values in lines.items()])
    outside = sum(row["outside"] for row in rows)
    print(f"Outside their band: {outside} of {len(rows)} cells, {outside / len(rows):.1%} (target: at most 3 %)\n")


def print_widths(results):
    """Print the mean width of the 90 % intervals of both mechanisms."""
    rows = []
    for name, target in (("mean", 1.8), ("std", 5)):
        widths = [np.mean([np.ptp(result.intervals[0.9][name]) for result in results[mechanism]])
                  for mechanism in MECHANISMS]
        rows.append([name, *widths, widths[0] / widths[1], f"at least {target}"])
    repeats = len(results["laplace"])
    print(f"Width of the 90 % interval at mean 0, std 1, epsilon 1, N={GAUSSIAN.n_reports}: mean of {repeats} repeats")
    print_table(["parameter", *MECHANISMS, "ratio", "target"], rows)


def draw(table, path):
    """Draw the figure from the table."""
    plt = pyplot()
    if plt is None:
        return
    rows = read_table(table)
    panels = list(dict.fromkeys((row["model"], row["parameter"]) for row in rows))
    mechanisms = list(dict.fromkeys(row["mechanism"] for row in rows))
    figure, axes = plt.subplots(len(mechanisms), len(panels), figsize=(3.4 * len(panels), 3.1 * len(mechanisms)),
                                sharex=True, sharey="col", squeeze=False, layout="constrained")
    for axis_row, mechanism in zip(axes, mechanisms):
        for axis, panel in zip(axis_row, panels):
            draw_panel(axis, [row for row in rows if (row["model"], row["parameter"]) == panel
                              and row["mechanism"] == mechanism])
            axis.set_title(f"{panel[0].capitalize()} {panel[1]}, {MECHANISM_TITLES[mechanism]}", fontsize=10)
    for axis in axes[-1]:
        axis.set_xlabel("nominal coverage")
    for axis in axes[:, 0]:
        axis.set_ylabel("empirical minus nominal\n(percentage points)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize=9)
    save_figure(plt, figure, path)


def draw_panel(axis, rows):
    """Draw one model, parameter and mechanism: a line for each epsilon over the binomial band."""
    from matplotlib import colormaps

    epsilons = sorted({row["epsilon"] for row in rows})
    of_epsilon = [sorted((row for row in rows if row["epsilon"] == epsilon), key=lambda row: row["level"])
                  for epsilon in epsilons]
    levels = np.array([row["level"] for row in of_epsilon[0]])
    places = np.arange(len(levels))
    low, high = (100 * (np.array([row[end] for row in of_epsilon[0]]) - levels) for end in ("band_low", "band_high"))
    axis.fill_between(places, low, high, color="0.88", linewidth=0, label="binomial 99 % band")
    axis.axhline(0, color="0.4", linewidth=0.8)
    for i, (epsilon, lines) in enumerate(zip(epsilons, of_epsilon)):
        difference = 100 * (np.array([row["coverage"] for row in lines]) - levels)
        shift = 0.05 * (i - (len(epsilons) - 1) / 2)
        axis.plot(places + shift, difference, "o-", markersize=3.5, linewidth=1.1, label=rf"$\epsilon$ = {epsilon:g}",
                  color=colormaps["viridis"](0.9 * i / max(1, len(epsilons) - 1)))
    axis.set_xticks(places, [f"{level:.0%}" for level in levels])
    axis.tick_params(labelsize=9)


def main():
    """Run the repeats, print and write the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 repeats and two epsilons, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no number")
    parser.add_argument("--default-length", action="store_true", help="give every fit the default budget of steps")
    parser.add_argument("--figure-only", action="store_true", help="draw the figure from the table that is there")
    arguments = parser.parse_args()
    folder = results_folder(arguments.quick)
    table, figure = folder / "fig1_gaussian_calibration.csv", folder / "fig1_gaussian_calibration.png"
    if arguments.figure_only:
        draw(table, figure)
        return
    print_header("Calibration of the Gaussian and the exponential model", "joblib", "emcee", seed=SEED)
    length = None if arguments.default_length else SHORT_LENGTH
    print(f"{arguments.jobs} processes; steps per chain: "
          f"{f'{length}, the default where that warns' if length else 'default'}\n")
    epsilons = (0.1, 1.0) if arguments.quick else EPSILONS
    plan = [(setting, 2 if arguments.quick else setting.repeats) for setting in (GAUSSIAN, EXPONENTIAL)]
    n_widths = 2 if arguments.quick else 40
    rows = []
    start = time.perf_counter()
    total = len(MECHANISMS) * (len(epsilons) * sum(repeats for _, repeats in plan) + n_widths)
    with parallel_config("loky", inner_max_num_threads=1), tqdm(total=total, unit="fit", mininterval=1) as bar, \
            Parallel(n_jobs=arguments.jobs, return_as="generator") as pool:
        runner = Runner(pool, bar, length)
        widths = {mechanism: runner.run(GAUSSIAN, mechanism, 1.0, n_widths, WIDTH_TRUTH) for mechanism in MECHANISMS}
        for setting, repeats in plan:
            for mechanism in MECHANISMS:
                for epsilon in epsilons:
                    results = runner.run(setting, mechanism, epsilon, repeats)
                    rows += cells(setting, mechanism, epsilon, results)
                    write_table(rows, table)  # after each setting, so that an interrupt keeps the finished rows
    seconds = time.perf_counter() - start
    print_coverage(rows)
    print_scores(rows)
    print_widths(widths)
    print(f"ConvergenceWarning: {runner.n_first} of {runner.n_fits} fits, {runner.n_last} left with the default budget")
    print(f"{seconds / 60:.1f} minutes (target for the whole on two cores: 15); "
          f"{runner.cpu_seconds / 60:.1f} minutes of CPU time, {runner.cpu_seconds / runner.n_fits:.2f} s a fit\n")
    draw(table, figure)


if __name__ == "__main__":
    main()
