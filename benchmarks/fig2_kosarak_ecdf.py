"""Distance between the posteriors with and without privacy, for ten items of Kosarak over epsilon.

After Figure 2 of Kulkarni et al. (2022), who sampled ten of the 10,000 most frequent items of the 990,002 sessions and
had about 11,000 records. In the first 100,000 sessions, which are used here, such items have only about 600 records, so
the ten most frequent items of these sessions are used instead. A client is a session with at least one of them, and its
record is one of those at random, the same in all repeats. The repeats differ in the reports and in the sampling.

The distance is the area between the empirical distribution functions of the draws of each frequency, with and without
privacy: their mean absolute difference over [0, 1], in units of the frequency. The table also has the largest
difference (Kolmogorov-Smirnov), which is 1 for any two posteriors that do not overlap. Both are averaged over the ten
items. The line "inf" compares two samples of the posterior without privacy: it shows the Monte Carlo error.

Run with ``python benchmarks/fig2_kosarak_ecdf.py``; ``--quick`` is a smoke run, ``--figure-only`` redraws the figure
from the table. Both are written to ``benchmarks/results``.
"""

import argparse
import time
import warnings

import numpy as np
from _data import load_kosarak, make_ready, pyplot, read_table, results_folder, save_figure, write_table
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import LDPHistogram

SEED = 20220505
N_ITEMS = 10
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 4.0, np.inf)
MECHANISMS = {"oue": "unary encoding", "auto": "subset selection"}


def items_and_records(sessions):
    """Return the ten most frequent items, and for each session with any of them the index of a random one."""
    rng = np.random.default_rng(SEED)
    distinct = [np.unique(session) for session in sessions]
    counts = np.bincount(np.concatenate(distinct))
    items = np.argsort(-counts, kind="stable")[:N_ITEMS]
    place = np.full(len(counts), -1)
    place[items] = np.arange(N_ITEMS)
    known = [found[found >= 0] for found in (place[session] for session in distinct)]
    return items, np.array([rng.choice(found) for found in known if len(found)])[:, None]


def fit(records, mechanism, epsilon, seed):
    """Return the fitted estimator, and whether there was a convergence warning."""
    model = LDPHistogram(epsilon=epsilon, categories=list(range(N_ITEMS)), mechanism=mechanism, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(records)
    return model, any(issubclass(warning.category, ConvergenceWarning) for warning in caught)


def draws_of(model):
    """Return the sorted draws of the frequencies, shape (n_draws, n_items)."""
    draws = model.posterior_.draws["frequencies"]
    return np.sort(draws.reshape(-1, draws.shape[-1]), axis=0)


def distances(draws, others):
    """Return the area between two empirical distribution functions, and their largest difference, for each column."""
    areas, largest = [], []
    for x, y in zip(draws.T, others.T):
        points = np.sort(np.concatenate([x, y]))
        difference = np.abs(np.searchsorted(x, points, "right") / len(x) - np.searchsorted(y, points, "right") / len(y))
        areas.append(difference[:-1] @ np.diff(points))
        largest.append(difference.max())
    return np.array(areas), np.array(largest)


def fit_once(records, mechanism, epsilon, reference, key):
    """Return the distances of one repeat, the likelihood used, and whether there was a convergence warning."""
    seed = int(np.random.default_rng([SEED, *key]).integers(2**31))
    model, warned = fit(records, mechanism, epsilon, seed)
    return {"distances": distances(draws_of(model), reference), "std": model.frequencies_std_,
            "likelihood": model.likelihood_, "warned": warned}


def cell(mechanism, epsilon, results, reference):
    """Return a row of the table."""
    areas, largest = np.moveaxis(np.array([result["distances"] for result in results]), 1, 0)
    row = {"mechanism": mechanism, "epsilon": epsilon, "repeats": len(results),
           "likelihood": "/".join(sorted({result["likelihood"] for result in results})), "area": areas.mean(),
           "area_low": np.quantile(areas.mean(axis=1), 0.05), "area_high": np.quantile(areas.mean(axis=1), 0.95),
           "largest": largest.mean(), "std_ratio": np.mean([result["std"] / reference.std(axis=0)
                                                            for result in results])}
    row.update({f"area_{i + 1}": area for i, area in enumerate(areas.mean(axis=0))})
    return row


def print_distances(rows):
    """Print the distances, a line for each mechanism and epsilon."""
    print(f"Distance of the distribution functions from those without privacy: mean of {N_ITEMS} items and "
          f"{rows[0]['repeats']} repeats")
    print_table(["mechanism", "epsilon", "likelihood", "area", "5 %", "95 % of repeats", "largest difference",
                 "sd / sd without privacy"],
                [[MECHANISMS[row["mechanism"]], f"{row['epsilon']:g}", row["likelihood"], f"{row['area']:.5f}",
                  f"{row['area_low']:.5f}", f"{row['area_high']:.5f}", f"{row['largest']:.3f}",
                  f"{row['std_ratio']:.2f}"] for row in rows])


def draw(table, path):
    """Draw the figure from the table: means, 90 % of the repeats, and thin lines for the ten items."""
    plt = pyplot()
    if plt is None:
        return
    rows = read_table(table)
    ticks = sorted({row["epsilon"] for row in rows if np.isfinite(row["epsilon"])})
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
    for color, marker, (mechanism, title) in zip(("C1", "C0"), "os", MECHANISMS.items()):
        lines = [row for row in rows if row["mechanism"] == mechanism]
        private = sorted((row for row in lines if np.isfinite(row["epsilon"])), key=lambda row: row["epsilon"])
        epsilons = [row["epsilon"] for row in private]
        for name in (f"area_{i + 1}" for i in range(N_ITEMS)):
            left.plot(epsilons, [row[name] for row in private], color=color, alpha=0.2, linewidth=0.7)
        left.fill_between(epsilons, [row["area_low"] for row in private], [row["area_high"] for row in private],
                          color=color, alpha=0.2, linewidth=0)
        left.plot(epsilons, [row["area"] for row in private], marker + "-", color=color, label=title, markersize=5)
        right.plot(epsilons, [row["largest"] for row in private], marker + "-", color=color, markersize=5)
    floor = [row for row in rows if np.isinf(row["epsilon"])]
    if floor:
        for axis, name in ((left, "area"), (right, "largest")):
            axis.axhline(floor[0][name], color="0.4", linestyle=":", label="without privacy, sampled anew")
    left.set(yscale="log", ylabel="area between distribution functions\n(units of the frequency)")
    left.yaxis.set_major_locator(plt.matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
    left.yaxis.set_major_formatter("{x:g}")
    right.set(ylabel="largest difference", ylim=(0, 1))
    for axis in (left, right):
        axis.set(xscale="log", xlabel=r"$\epsilon$")
        axis.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
        axis.minorticks_off()
        axis.grid(color="0.92", linewidth=0.7)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    save_figure(plt, figure, path)


def main():
    """Run the repeats, print and write the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="2 repeats of three epsilons, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no number")
    parser.add_argument("--repeats", type=int, default=50, help="repeats (default 50)")
    parser.add_argument("--figure-only", action="store_true", help="draw the figure from the table that is there")
    arguments = parser.parse_args()
    folder = results_folder(arguments.quick)
    table, figure = folder / "fig2_kosarak_ecdf.csv", folder / "fig2_kosarak_ecdf.png"
    if arguments.figure_only:
        draw(table, figure)
        return
    epsilons, repeats = ((0.5, 2.0, np.inf), 2) if arguments.quick else (EPSILONS, arguments.repeats)
    print_header("Private and non-private posteriors on Kosarak", "joblib", "emcee", seed=SEED)
    make_ready("kosarak", quick=arguments.quick)
    sessions = load_kosarak()
    items, records = items_and_records(sessions)
    frequencies = np.bincount(records[:, 0], minlength=N_ITEMS) / len(records)
    print(f"{arguments.jobs} processes; {repeats} repeats; {len(records):,} clients of the first {len(sessions):,} "
          f"sessions\nItems {items.tolist()}, with frequencies {frequencies.round(3).tolist()}\n")
    reference = draws_of(fit(records, "rr", np.inf, SEED)[0])
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
                key = (place, int(1000 * min(epsilon, 1000)))
                tasks = (delayed(fit_once)(records, mechanism, epsilon, reference, (*key, i)) for i in range(repeats))
                results = []
                for result in pool(tasks):
                    results.append(result)
                    bar.update()
                n_warned += sum(result["warned"] for result in results)
                rows.append(cell(mechanism, epsilon, results, reference))
                write_table(rows, table)  # after each setting, so that an interrupt keeps the finished rows
    print_distances(rows)
    print(f"ConvergenceWarning: {n_warned} of {total} fits; {(time.perf_counter() - start) / 60:.1f} minutes\n")
    draw(table, figure)


if __name__ == "__main__":
    main()
