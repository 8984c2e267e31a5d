"""Required numbers of people: the paper's mechanisms against ours, mixed cohorts, and plans, each with simulations.

- *people*: for a mean, a standard deviation, a frequency and a coefficient, the people that the paper's mechanism needs
  for an interval as narrow as ours from a given number, by ``required_reports`` and by simulation: a study of N people
  with intervals of mean width w would need N (w / width)^2. Gaussian noise has the paper's delta of 1e-5, which is
  large for so many people and favours it; our delta is 0.
- *axis*: people for the same interval of a coefficient with Gaussian noise (the paper's), the sphere and the axis, over
  epsilon and the number of features d; which of the two ``mechanism="auto"`` takes; bytes of a report; and the mean
  width of simulated studies with the axis, as a share of the planned one. The features have standard deviations of
  0.3 times the root of 3/d.
- *sensitivity*: the noise that the exact sensitivity of moments saves, with the largest distance that a search found.
- *cohorts*: half of the people at epsilon 0.5, half at 4, against either cohort alone: widths and coverage.
- *plan*: ``required_reports`` over epsilon and width, and the mean width of simulated studies of that size.

Run with ``python benchmarks/table_people.py``; ``--quick`` shrinks every block, ``--blocks`` chooses. Tables are
written to ``benchmarks/results``. Sums of moment reports are drawn at once from their distribution
(``_moment_sums.py``).
"""

import argparse
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Callable

import numpy as np
from _data import results_folder, write_table
from _moment_sums import simulated_sums
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from scipy.stats import binom
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import MCMC, LDPBayesLinearRegression, LDPGaussian, LDPHistogram, required_reports
from skldp.exceptions import StatisticalWarning
from skldp.privacy import paper_moment_bound, weighted_moment_sensitivity

SEED = 20220511
BLOCKS = ("people", "axis", "sensitivity", "cohorts", "plan")
SHORT = {"inference": MCMC(n_draws=300)}
SHORT_REGRESSION = {"inference": MCMC(n_walkers=12, n_warmup=100, n_draws=120)}
N_FEATURES, COEF = 3, 0.3
DIMENSIONS, SIMULATED_DIMENSION = (3, 10, 20), 3
SIZES = (10, 20, 100)  # numbers of features for bytes of a report


def normal(n, rng):
    """Return values with a standard deviation of a tenth of the range."""
    return rng.normal(0.0, 1.0, size=(n, 1))


def categories(frequencies):
    """Return a function that draws categories."""
    return lambda n, rng: rng.choice(len(frequencies), p=frequencies, size=(n, 1))


def shared(first, d):
    """Return frequencies of d categories: one for the first, and equal ones for the others."""
    return np.append(first, np.full(d - 1, (1 - first) / (d - 1)))


def regression(n, rng):
    """Return records, mostly of norm below one, and responses."""
    X = rng.normal(scale=0.3, size=(n, N_FEATURES))
    return X, X @ np.full(N_FEATURES, COEF) + rng.normal(scale=0.3, size=n)


@dataclass(frozen=True)
class Case:
    """A quantity: its estimator, its records, and the assumptions about them."""

    name: str
    estimator: type
    options: dict
    mechanisms: tuple  # the paper's, ours
    parameter: str
    truth: float
    records: Callable
    assumptions: dict
    n_people: int = 20_000
    widths: tuple = field(default=())

    def make(self, mechanism, epsilon, **options):
        """Return an estimator."""
        return self.estimator(epsilon=epsilon, mechanism=mechanism, **self.options, **options)

    def reports_for(self, mechanism, epsilon, width):
        """Return the planned number of people."""
        return required_reports(self.make(mechanism, epsilon), width, parameter=self.parameter, **self.assumptions)

    def width_of(self, mechanism, epsilon, n):
        """Return the planned width of the interval from n people."""
        return 1e-3 * np.sqrt(self.reports_for(mechanism, epsilon, 1e-3) / n)


REGRESSION = {"n_features": N_FEATURES, "feature_std": 0.3, "sigma": 0.3, "coef": COEF}
CASES = (
    Case("mean", LDPGaussian, {"bounds": (-5, 5), **SHORT}, ("laplace", "square_wave"), "mean", 0.0, normal,
         {"mean": 0.0, "std": 1.0}, widths=(0.2, 0.1, 0.05)),
    Case("standard deviation", LDPGaussian, {"bounds": (-5, 5), **SHORT}, ("laplace", "square_wave"), "std", 1.0,
         normal, {"mean": 0.0, "std": 1.0}, widths=(0.2, 0.1, 0.05)),
    Case("frequency 0.7 of 3", LDPHistogram, {"categories": range(3), **SHORT}, ("oue", "auto"), "frequencies", 0.7,
         categories(shared(0.7, 3)), {"frequency": 0.7}),
    Case("frequency 0.2 of 16", LDPHistogram, {"categories": range(16), **SHORT}, ("oue", "auto"), "frequencies", 0.2,
         categories(shared(0.2, 16)), {"frequency": 0.2}, widths=(0.1, 0.05, 0.02)),
    Case("coefficient of 3", LDPBayesLinearRegression, SHORT_REGRESSION, ("gaussian", "sphere"), "coef", COEF,
         regression, REGRESSION, n_people=1_000_000, widths=(0.2, 0.1, 0.05)),
)


def study(case, mechanism, epsilon, n, key):
    """Return the ends of the 90 % interval of one simulated study."""
    rng = np.random.default_rng([SEED, *key])
    model = case.make(mechanism, epsilon, random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # chains are short on purpose
        warnings.filterwarnings("ignore", "delta=", UserWarning)  # the module's docstring explains delta
        if case.parameter == "coef":
            model.fit_reports(simulated_sums(model.protocol(N_FEATURES), *regression(100_000, rng), n, rng))
        else:
            model.fit(case.records(n, rng))
    return np.atleast_2d(model.posterior_.interval(0.9)[case.parameter])[0]


class Studies:
    """Runs simulated studies in parallel, with one progress bar."""

    def __init__(self, pool, bar, repeats):
        self.pool, self.bar, self.repeats = pool, bar, repeats

    def mean_width(self, number, mechanism, epsilon, n):
        """Return the mean width of the intervals, and its standard error."""
        case = CASES[number]
        self.bar.set_description(f"{case.name}, {mechanism}, epsilon {epsilon:g}, N={n:,}")
        key = (number, case.mechanisms.index(mechanism), int(1000 * epsilon), n)
        widths = []
        for ends in self.pool(delayed(study)(case, mechanism, epsilon, n, (*key, i)) for i in range(self.repeats)):
            widths.append(np.ptp(ends))
            self.bar.update()
        return np.mean(widths), np.std(widths, ddof=1) / np.sqrt(len(widths))


def people(studies, epsilons, shrink, table):
    """Compute the people needed with the paper's mechanism for an interval as narrow as ours."""
    rows = []
    for number, case in enumerate(CASES):
        paper, ours = case.mechanisms
        for epsilon in epsilons:
            n = case.n_people // shrink
            width = case.width_of(ours, epsilon, n)
            planned = case.reports_for(paper, epsilon, width)
            found = [studies.mean_width(number, mechanism, epsilon, size)[0]
                     for mechanism, size in ((paper, planned), (ours, n))]
            simulated = [size * (value / width) ** 2 for value, size in zip(found, (planned, n))]
            rows.append({"quantity": case.name, "epsilon": epsilon, "width": width, "ours": ours, "paper": paper,
                         "people_ours": n, "people_ours_simulated": simulated[1], "people_paper": planned,
                         "people_paper_simulated": simulated[0], "ratio": planned / n,
                         "ratio_simulated": simulated[0] / simulated[1], "repeats": studies.repeats})
            write_table(rows, table)  # so that an interrupt keeps the finished rows
    return rows


def print_people(rows):
    """Print a line for each quantity and epsilon."""
    print(f"People for the same 90 % interval, mean of {rows[0]['repeats']} studies (mechanism of the paper, ours)")
    print_table(["quantity", "epsilon", "width", "ours, planned", "simulated", "paper's, planned", "simulated ",
                 "ratio, planned", "ratio, simulated"],
                [[f"{row['quantity']} ({row['paper']}, {row['ours']})", f"{row['epsilon']:g}", f"{row['width']:.3g}",
                  f"{row['people_ours']:,}", f"{row['people_ours_simulated']:,.0f}", f"{row['people_paper']:,}",
                  f"{row['people_paper_simulated']:,.0f}", f"{row['ratio']:.2f}", f"{row['ratio_simulated']:.2f}"]
                 for row in rows])


def spread(d):
    """Return standard deviations for which d features are as long as three with 0.3."""
    return 0.3 * np.sqrt(N_FEATURES / d)


def axis_study(epsilon, n, key):
    """Return the mean width of intervals from reports of axes."""
    rng, d = np.random.default_rng([SEED, 2, *key]), SIMULATED_DIMENSION
    X = rng.normal(scale=spread(d), size=(n, d))
    model = LDPBayesLinearRegression(epsilon=epsilon, mechanism="axis", random_state=int(rng.integers(2**31)),
                                     **SHORT_REGRESSION)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", StatisticalWarning)
        model.fit(X, X @ np.full(d, COEF) + rng.normal(scale=0.3, size=n))
    return np.ptp(model.posterior_.interval(0.9)["coef"], axis=1).mean()


def axis(pool, bar, n, epsilons, repeats, table):
    """Compute the people needed with three mechanisms for the interval that the axis gives from n people."""
    rows = []
    for d in DIMENSIONS:
        for epsilon in epsilons:
            bar.set_description(f"axis, {d} features, epsilon {epsilon:g}")
            plans = {word: required_reports(LDPBayesLinearRegression(epsilon=epsilon, mechanism=word), 1e-3,
                                            n_features=d, feature_std=spread(d), sigma=0.3, coef=COEF)
                     for word in ("gaussian", "sphere", "axis")}
            widths = [] if d != SIMULATED_DIMENSION else list(
                pool(delayed(axis_study)(epsilon, n, (int(1000 * epsilon), i)) for i in range(repeats)))
            planned = 1e-3 * np.sqrt(plans["axis"] / n)
            chosen = LDPBayesLinearRegression(epsilon=epsilon).protocol(d).mechanism
            rows.append({"d": d, "epsilon": epsilon, "gaussian": plans["gaussian"] / plans["axis"],
                         "sphere": plans["sphere"] / plans["axis"], "axis": 1.0, "auto": chosen,
                         "people": n, "width": planned,
                         "simulated": np.mean(widths) / planned if widths else np.nan, "repeats": len(widths)})
            write_table(rows, table)
    return rows


def print_axis(rows):
    """Print people over those with the axis, and bytes of a report."""
    print(f"People for the same interval of a coefficient, over those with the axis; width from {rows[0]['people']:,}")
    print_table(["d", "epsilon", "Gaussian (paper)", "sphere", "axis", "auto takes", "width", "simulated : planned"],
                [[f"{row['d']}", f"{row['epsilon']:g}", f"{row['gaussian']:.2f}", f"{row['sphere']:.2f}", "1",
                  row["auto"], f"{row['width']:.3g}", f"{row['simulated']:.3f}"] for row in rows])
    print("Bytes of a report")
    protocols = [[LDPBayesLinearRegression(mechanism=word).protocol(d) for word in ("gaussian", "sphere", "axis")]
                 for d in SIZES]
    sizes = [[f"{one.width * one.randomizer.report_dtype.itemsize:,}" for one in three] for three in protocols]
    print_table(["d", "Gaussian", "sphere", "axis"], [[f"{d}", *row] for d, row in zip(SIZES, sizes)])


def sensitivity():
    """Compute the noise saved by the exact sensitivity, and the largest distance of two records of a dense grid."""
    rows = []
    for bound in (0.5, 1.0, 2.0, 4.0):
        published, exact = paper_moment_bound(1, bound), weighted_moment_sensitivity(1, bound)
        rows.append([f"R=1, R_y={bound:g}", published, exact, largest_distance(bound), (published / exact) ** 2])
    print("Sensitivity of moments, equal weights; noise variance, and people where noise decides, in the last ratio")
    print_table(["domain", "the paper's bound", "exact", "largest found", "noise variance, paper's : exact"], rows)


def largest_distance(bound):
    """Return the largest distance between the statistics of two records in the plane."""
    angles, responses = np.linspace(0, 2 * np.pi, 721), np.linspace(-bound, bound, 81)
    x, y = np.meshgrid(angles, responses)
    x = np.stack([np.cos(x.ravel()), np.sin(x.ravel())], axis=1)
    y = y.ravel()
    statistic = np.column_stack([x**2, np.sqrt(2) * x[:, :1] * x[:, 1:], x * y[:, None], y**2])
    first = statistic[(x[:, 0] == 1)]
    return max(np.linalg.norm(statistic - one, axis=1).max() for one in first)


def cohort_study(number, n, key):
    """Return intervals from both cohorts together, and from either alone, for the same people."""
    case = CASES[number]
    rng = np.random.default_rng([SEED, 1, *key])
    X = case.records(n, rng)
    budgets = np.where(np.arange(n) < n // 2, 0.5, 4.0)
    intervals = []
    for rows in (slice(None), slice(0, n // 2), slice(n // 2, None)):
        model = case.make(case.mechanisms[1], 1.0, random_state=int(rng.integers(2**31)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X[rows], sample_epsilon=budgets[rows])
        intervals.append(model.posterior_.interval(0.9))
    return intervals


def cohorts(pool, bar, n, repeats, table):
    """Compute widths and coverage of mixed cohorts and of each alone."""
    rows = []
    for numbers in ((0, 1), (3,)):  # quantities of the same fit
        bar.set_description(f"cohorts, {CASES[numbers[0]].name}")
        found = []
        for intervals in pool(delayed(cohort_study)(numbers[0], n, (numbers[0], i)) for i in range(repeats)):
            found.append(intervals)
            bar.update()
        for number in numbers:
            rows += cohort_rows(CASES[number], n, found)
        write_table(rows, table)
    return rows


def cohort_rows(case, n, found):
    """Return the rows of one quantity."""
    repeats = len(found)
    alone = np.array([case.width_of(case.mechanisms[1], epsilon, n // 2) for epsilon in (0.5, 4.0)])
    planned = [np.sum(alone**-2.0) ** -0.5, *alone]  # the Fisher information of both cohorts adds
    low, high = binom.ppf([0.005, 0.995], repeats, 0.9) / repeats
    rows = []
    for place, name in enumerate(("both", "0.5 alone", "4 alone")):
        ends = np.array([np.atleast_2d(intervals[place][case.parameter])[0] for intervals in found])
        inside = (ends[:, 0] <= case.truth) & (case.truth <= ends[:, 1])
        rows.append({"quantity": case.name, "cohort": name, "people": n if place == 0 else n // 2,
                     "width": np.ptp(ends, axis=1).mean(), "planned": planned[place], "coverage": inside.mean(),
                     "band_low": low, "band_high": high, "repeats": repeats})
    return rows


def print_cohorts(rows):
    """Print a line for each quantity and cohort."""
    print(f"Mixed cohorts: half of the people at epsilon 0.5, half at 4; mean of {rows[0]['repeats']} studies")
    print_table(["quantity", "people", "width of 90 % interval", "planned", "simulated : planned", "coverage",
                 "99 % band"],
                [[f"{row['quantity']}, {row['cohort']}", f"{row['people']:,}", row["width"], row["planned"],
                  row["width"] / row["planned"], f"{row['coverage']:.3f}",
                  f"{row['band_low']:.2f}-{row['band_high']:.2f}"] for row in rows])


def plan(studies, epsilons, n_widths, table):
    """Compute planned numbers of people, and the mean width of studies of that size."""
    rows = []
    for number, case in enumerate(CASES):
        for epsilon in epsilons:
            for width in case.widths[:n_widths]:
                n = case.reports_for(case.mechanisms[1], epsilon, width)
                simulated, error = studies.mean_width(number, case.mechanisms[1], epsilon, n)
                rows.append({"quantity": case.name, "mechanism": case.mechanisms[1], "epsilon": epsilon, "width": width,
                             "people": n, "simulated_width": simulated, "standard_error": error,
                             "ratio": simulated / width, "repeats": studies.repeats})
                write_table(rows, table)
    return rows


def print_plan(rows):
    """Print people by epsilon and width, with the simulated width as a share of the planned one."""
    for name in dict.fromkeys(row["quantity"] for row in rows):
        part = [row for row in rows if row["quantity"] == name]
        widths = list(dict.fromkeys(row["width"] for row in part))
        lines = []
        for epsilon in dict.fromkeys(row["epsilon"] for row in part):
            cells = [f"{row['people']:,} ({row['ratio']:.2f})" for row in part if row["epsilon"] == epsilon]
            lines.append([f"{epsilon:g}", *cells])
        print(f"{name}, {part[0]['mechanism']}: people by width of the 90 % interval (simulated : planned width)")
        print_table(["epsilon", *(f"{width:g}" for width in widths)], lines)
    worst = max(rows, key=lambda row: abs(row["ratio"] - 1))
    print(f"Farthest from its plan: {worst['ratio'] - 1:+.1%} ({worst['quantity']}, epsilon {worst['epsilon']:g}, "
          f"width {worst['width']:g}, standard error {worst['standard_error'] / worst['width']:.1%}); "
          "target within 10 %\n")


def main():
    """Run the blocks, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few studies at one epsilon, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no number")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=BLOCKS, help="which tables (default all)")
    arguments = parser.parse_args()
    quick, blocks = arguments.quick, arguments.blocks
    epsilons = (4.0,) if quick else (0.5, 1.0, 2.0, 4.0)
    n_studies, n_cohort_studies = (2, 2) if quick else (10, 100)
    print_header("People needed", "joblib", "emcee", seed=SEED)
    print(f"{arguments.jobs} processes\n")
    start = time.perf_counter()
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1), \
            tqdm(unit="study", mininterval=2) as bar, Parallel(n_jobs=arguments.jobs, return_as="generator") as pool:
        studies = Studies(pool, bar, n_studies)
        compute = {
            "people": partial(people, studies, epsilons, 10 if quick else 1),
            "axis": partial(axis, pool, bar, 20_000 if quick else 1_000_000, epsilons if quick else (*epsilons, 8.0),
                            n_studies),
            "cohorts": partial(cohorts, pool, bar, 2000 if quick else 20_000, n_cohort_studies),
            "plan": partial(plan, studies, epsilons, 1 if quick else None),
        }
        found = {}
        for name in compute:
            if name in blocks:
                stem = "table_people" if name == "people" else f"table_people_{name}"
                found[name] = compute[name](results_folder(quick) / f"{stem}.csv")
    printers = {"people": print_people, "axis": print_axis, "cohorts": print_cohorts, "plan": print_plan}
    for name in blocks:
        if name == "sensitivity":
            sensitivity()
        else:
            printers[name](found[name])
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
