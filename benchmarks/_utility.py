"""Utility over epsilon: run several methods on the same splits, write the table, draw the figure."""

import argparse
import time
import warnings
from collections import defaultdict

import numpy as np
from _data import make_ready, pyplot, read_table, results_folder, save_figure, write_table
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import MCMC
from skldp.exceptions import FewReportsWarning, ScaleWarning

# Enough draws for a posterior mean: its Monte Carlo error is below a tenth of the posterior's width.
SHORT = MCMC(n_walkers=12, n_warmup=80, n_draws=50)
# Line styles of the figures: ours, gradient descent, and methods without privacy.
STYLES = defaultdict(lambda: "-", sgd="--", no=":", zero=":")


def arguments_of(doc, quick, repeats):
    """Parse the command line of a utility figure."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); the results do not depend on it")
    parser.add_argument("--repeats", type=int, default=repeats, help=f"repeats (default {repeats})")
    parser.add_argument("--figure-only", action="store_true", help="draw the figure from the existing table")
    return parser.parse_args()


def silent(task, *arguments):
    """Run a task without warnings of convergence, which short chains cause, and of few reports and long test rows."""
    with warnings.catch_warnings():
        for category in (ConvergenceWarning, FewReportsWarning, ScaleWarning):
            warnings.simplefilter("ignore", category)
        return task(*arguments)


def run(task, methods, pairs, epsilons, repeats, jobs, table):
    """Run every method, epsilon and repeat; write the table of mean scores after each epsilon."""
    rows = []
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1), \
            tqdm(total=len(epsilons) * repeats, unit="repeat", mininterval=1) as bar, \
            Parallel(n_jobs=jobs, return_as="generator") as pool:
        for epsilon in epsilons:
            bar.set_description(f"epsilon {epsilon:g}")
            results = []
            for result in pool(delayed(silent)(task, epsilon, repeat) for repeat in range(repeats)):
                results.append(result)
                bar.update()
            rows += [summary(method, epsilon, results) for method in methods]
            rows += [difference(*pair, epsilon, results) for pair in pairs]
            write_table(rows, table)  # so that an interrupt keeps the finished rows
    return rows


def summary(method, epsilon, results):
    """Return the mean score of a method with its standard error; of several settings, for the best on average."""
    scores = np.array([np.atleast_1d(result[method]) for result in results])
    place = np.argmax(scores.mean(axis=0)) if scores.shape[1] > 1 else 0
    column = scores[:, place]
    return {"method": method, "epsilon": epsilon, "repeats": len(column), "setting": int(place),
            "score": column.mean(), "error": column.std(ddof=1) / np.sqrt(len(column))}


def difference(one, other, epsilon, results):
    """Return the mean difference of two methods on the same splits, with its standard error."""
    gaps = np.array([result[one] - result[other] for result in results])
    return {"method": f"{one} - {other}", "epsilon": epsilon, "repeats": len(gaps), "setting": 0, "score": gaps.mean(),
            "error": gaps.std(ddof=1) / np.sqrt(len(gaps))}


def print_scores(rows, methods, sign=1.0):
    """Print one line for each method, with one column for each epsilon."""
    epsilons = sorted({row["epsilon"] for row in rows})
    lines = []
    for method, title in methods.items():
        found = {row["epsilon"]: row for row in rows if row["method"] == method}
        lines.append([title, *(f"{sign * found[e]['score']:.4f} ({found[e]['error']:.4f})" for e in epsilons)])
    print_table(["", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], lines)


def draw(table, path, methods, panels, label, sign=1.0):
    """Draw scores with error bars over epsilon from the table, with a panel for each list of methods."""
    plt = pyplot()
    if plt is None:
        return
    rows = read_table(table)
    figure, axes = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 6.2), sharey=True, squeeze=False,
                                layout="constrained")
    for axis, (title, names) in zip(axes[0], panels.items()):
        for number, name in enumerate(names):
            line = sorted((row for row in rows if row["method"] == name), key=lambda row: row["epsilon"])
            axis.errorbar([row["epsilon"] for row in line], [sign * row["score"] for row in line],
                          [row["error"] for row in line], fmt=f"{'osv^D<>P'[number % 8]}{STYLES[name.split('_')[0]]}",
                          capsize=2, markersize=4, linewidth=1.2, label=methods[name])
        ticks = sorted({row["epsilon"] for row in rows})
        axis.set(xscale="log", xlabel=r"$\epsilon$", title=title)
        axis.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
        axis.minorticks_off()
        axis.grid(color="0.92", linewidth=0.7)
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.12), frameon=False, fontsize=8)
    axes[0, 0].set_ylabel(label)
    save_figure(plt, figure, path)


def main(name, title, doc, quick, task, data, seed, methods, pairs, panels, epsilons, label, sign=1.0, repeats=30):
    """Run the repeats, print and write the table, draw the figure."""
    arguments = arguments_of(doc, quick, repeats)
    folder = results_folder(arguments.quick)
    table, figure = folder / f"{name}.csv", folder / f"{name}.png"
    if not arguments.figure_only:
        repeats = arguments.repeats
        if arguments.quick:
            epsilons, repeats = epsilons[-1:], 2
        print_header(title, "joblib", "emcee", "scikit-learn", seed=seed)
        make_ready(data, quick=arguments.quick)
        print(f"{arguments.jobs} processes; {repeats} repeats, each with its own split and noise\n")
        start = time.perf_counter()
        rows = run(task, methods, pairs, epsilons, repeats, arguments.jobs, table)
        print_scores(rows, methods, sign)
        print("Differences on the same splits, above zero where the first is better")
        print_scores(rows, {f"{one} - {other}": f"{one} - {other}" for one, other in pairs})
        print(f"{(time.perf_counter() - start) / 60:.1f} minutes\n")
    draw(table, figure, methods, panels, label, sign)
