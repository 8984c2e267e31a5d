"""RMSE of the posterior mean and of corrected point estimates of three frequencies, over clients and epsilon.

The setting is that of Figure 3 of Kulkarni et al. (2022): frequencies [0.7, 0.2, 0.1], 50 repeats, with their
mechanism (optimal unary encoding, ``oue``) and with ours (``auto``: subset selection). All three estimates of a repeat
use the same reports; the likelihood is exact.

The unbiased estimate is unusable outside the simplex, if it is negative or does not sum to one (under unary encoding it
never does). As in the paper, the others are misleading if some frequency is exactly zero (trivial) or the three
frequencies are in the wrong order (unordered).

Run with ``python benchmarks/fig3_histogram_rmse.py``; ``--quick`` is a smoke run, ``--figure-only`` redraws the figure
from the table. Both are written to ``benchmarks/results``.
"""

import argparse
import time
import warnings

import numpy as np
from _data import pyplot, read_table, results_folder, save_figure, write_table
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import LDPHistogram, project_on_simplex

SEED = 20220503
TRUTH = np.array([0.7, 0.2, 0.1])
SIZES = (100, 1000, 10_000)
EPSILONS = (0.1, 0.3, 0.5, 1.0, 2.0)
MECHANISMS = {"oue": "unary encoding", "auto": "subset selection"}
ESTIMATES = {"posterior": "posterior mean", "projected": "projected point estimate", "raw": "unbiased point estimate"}


def fit_once(mechanism, n_reports, epsilon, key):
    """Return the estimates of one repeat, and whether there was a convergence warning."""
    rng = np.random.default_rng([SEED, *key])
    records = rng.choice(3, p=TRUTH, size=(n_reports, 1))
    model = LDPHistogram(epsilon=epsilon, categories=[0, 1, 2], mechanism=mechanism, likelihood="exact",
                         random_state=int(rng.integers(2**31)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(records)
    warned = any(issubclass(warning.category, ConvergenceWarning) for warning in caught)
    raw = model.point_estimate_
    return {"posterior": model.frequencies_, "projected": project_on_simplex(raw), "raw": raw}, warned


def cell(mechanism, n_reports, epsilon, results):
    """Return a row of the table."""
    row = {"mechanism": mechanism, "epsilon": epsilon, "n_reports": n_reports, "repeats": len(results)}
    estimates = {name: np.array([estimate[name] for estimate, _ in results]) for name in ESTIMATES}
    for name, values in estimates.items():
        errors = np.sqrt(np.mean((values - TRUTH) ** 2, axis=1))
        row[f"rmse_{name}"] = errors.mean()
        row[f"rmse_{name}_error"] = errors.std(ddof=1) / np.sqrt(len(errors))
    row["outside_raw"] = outside(estimates["raw"]).mean()
    row["negative_raw"] = (estimates["raw"] < 0).any(axis=1).mean()
    for name in ("projected", "posterior"):
        row[f"misleading_{name}"] = misleading(estimates[name]).mean()
    row["warnings"] = sum(warned for _, warned in results)
    return row


def outside(values):
    """Whether estimates are outside the simplex: negative, or the sum is not one."""
    return (values < 0).any(axis=1) | (np.abs(values.sum(axis=1) - 1) > 1e-9)


def misleading(values):
    """Whether estimates are trivial (some frequency is zero) or in the wrong order."""
    return (values <= 0).any(axis=1) | (np.diff(values, axis=1) >= 0).any(axis=1)


def print_rmse(rows):
    """Print errors and shares."""
    for mechanism, title in MECHANISMS.items():
        print(f"{title.capitalize()}: mean RMSE of {rows[0]['repeats']} repeats, and shares of estimates")
        print_table(
            ["epsilon", "N", "posterior", "projected", "raw", "posterior/projected", "raw: outside", "negative",
             "misleading: projected", "posterior "],
            [[f"{row['epsilon']:g}", f"{row['n_reports']:,}",
              *(f"{row[f'rmse_{name}']:.4f}" for name in ESTIMATES),
              f"{row['rmse_posterior'] / row['rmse_projected']:.2f}", f"{row['outside_raw']:.0%}",
              f"{row['negative_raw']:.0%}", f"{row['misleading_projected']:.0%}", f"{row['misleading_posterior']:.0%}"]
             for row in rows if row["mechanism"] == mechanism])


def draw(table, path):
    """Draw the figure from the table: errors above, shares below, a column for each number of clients."""
    plt = pyplot()
    if plt is None:
        return
    rows = read_table(table)
    sizes, ticks = sorted({row["n_reports"] for row in rows}), sorted({row["epsilon"] for row in rows})
    mechanisms = [mechanism for mechanism in MECHANISMS if any(row["mechanism"] == mechanism for row in rows)]
    figure, axes = plt.subplots(2, len(sizes), figsize=(3.6 * len(sizes), 6), sharex=True, sharey="row",
                                squeeze=False, layout="constrained")
    colors = {"posterior": "C0", "projected": "C1", "raw": "C7"}
    styles = {"oue": "o--", "auto": "s-"}
    for (upper, lower), size in zip(axes.T, sizes):
        for mechanism in mechanisms:
            lines = sorted((row for row in rows if row["n_reports"] == size and row["mechanism"] == mechanism),
                           key=lambda row: row["epsilon"])
            epsilons = [row["epsilon"] for row in lines]
            for name, title in ESTIMATES.items():
                style = {"color": colors[name], "markersize": 4, "linewidth": 1.3,
                         "label": f"{title}, {MECHANISMS[mechanism]}"}
                upper.plot(epsilons, [row[f"rmse_{name}"] for row in lines], styles[mechanism], **style)
                share = "negative_raw" if name == "raw" else f"misleading_{name}"
                lower.plot(epsilons, [100 * row[share] for row in lines], styles[mechanism], **style)
        upper.set(xscale="log", yscale="log", title=f"N = {size:,.0f}")
        upper.yaxis.set_major_locator(plt.matplotlib.ticker.LogLocator(subs=(1, 2, 5)))
        upper.yaxis.set_major_formatter("{x:g}")
        lower.set(xlabel=r"$\epsilon$", ylim=(-4, 104))
        lower.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
        lower.minorticks_off()
        upper.minorticks_off()
        for axis in (upper, lower):
            axis.grid(color="0.92", linewidth=0.7)
    axes[0, 0].set_ylabel("mean RMSE")
    axes[1, 0].set_ylabel("unbiased: negative; others: some\ncategory zero or wrong order (%)")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(mechanisms), frameon=False, fontsize=9)
    save_figure(plt, figure, path)


def main():
    """Run the repeats, print and write the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="4 repeats of two sizes and two epsilons")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2); they change no number")
    parser.add_argument("--repeats", type=int, default=50, help="repeats (default 50)")
    parser.add_argument("--figure-only", action="store_true", help="draw the figure from the table that is there")
    arguments = parser.parse_args()
    folder = results_folder(arguments.quick)
    table, figure = folder / "fig3_histogram_rmse.csv", folder / "fig3_histogram_rmse.png"
    if arguments.figure_only:
        draw(table, figure)
        return
    sizes, epsilons, repeats = SIZES, EPSILONS, arguments.repeats
    if arguments.quick:
        sizes, epsilons, repeats = (100, 1000), (0.5, 2.0), 4
    print_header("Error of three frequencies", "joblib", "emcee", seed=SEED)
    print(f"{arguments.jobs} processes; truth {TRUTH.tolist()}; {repeats} repeats\n")
    rows = []
    start = time.perf_counter()
    total = len(MECHANISMS) * len(epsilons) * len(sizes) * repeats
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1), \
            tqdm(total=total, unit="fit", mininterval=1) as bar, \
            Parallel(n_jobs=arguments.jobs, return_as="generator") as pool:
        for place, mechanism in enumerate(MECHANISMS):
            for epsilon in epsilons:
                for size in sizes:
                    bar.set_description(f"{mechanism}, epsilon {epsilon:g}, N {size:,}")
                    tasks = (delayed(fit_once)(mechanism, size, epsilon, (place, int(1000 * epsilon), size, i))
                             for i in range(repeats))
                    results = []
                    for result in pool(tasks):
                        results.append(result)
                        bar.update()
                    rows.append(cell(mechanism, size, epsilon, results))
                    write_table(rows, table)  # after each setting, so that an interrupt keeps the finished rows
    print_rmse(rows)
    print(f"ConvergenceWarning: {sum(row['warnings'] for row in rows)} of {total} fits; "
          f"{(time.perf_counter() - start) / 60:.1f} minutes\n")
    draw(table, figure)


if __name__ == "__main__":
    main()
