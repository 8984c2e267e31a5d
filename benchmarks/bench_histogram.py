"""Accuracy and speed of category frequencies: against multi-freq-ldpy, counts against exact, over N and d.

Run with ``python benchmarks/bench_histogram.py``; ``--quick`` shrinks every block. The peer is left out if it is not
installed; ``pip install "skldp[bench]"`` installs it. Times are wall-clock times of one process with one thread.
"""

import argparse
import time
import warnings
from itertools import product

import numpy as np
from _timing import best_time, print_header, print_table
from joblib import Parallel, delayed, parallel_config
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import LDPHistogram, project_on_simplex
from skldp.models import HistogramModel, histogram_model
from skldp.sampling import sample

SEED = 20220506
BLOCKS = ("accuracy", "likelihood", "size", "convergence")
PEER_TRUTH = np.repeat([0.2, 1 / 60], [4, 12])


def zipf(d):
    """Return frequencies proportional to 1, 1/2, 1/3 and so on."""
    weights = 1 / np.arange(1, d + 1)
    return weights / weights.sum()


def estimator(d, **options):
    """Return an estimator of d categories."""
    return LDPHistogram(categories=list(range(d)), **options)


def peer_estimates(reports, epsilon):
    """Return the estimates of multi-freq-ldpy by name; an empty dict if it is not installed."""
    try:
        from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_IBU, UE_Aggregator_MI
    except ImportError:
        return {}
    rows = list(reports.astype(float))  # the peer sums the rows in their own type, and uint8 would overflow
    return {"multi-freq-ldpy, clip and renormalise": UE_Aggregator_MI(rows, epsilon),
            "multi-freq-ldpy, iterative Bayesian update": UE_Aggregator_IBU(rows, reports.shape[1], epsilon)}


def accuracy_once(n_reports, epsilon, repeat):
    """Return the RMSE over the cells by name, and the shares of cells inside the 90 % intervals of both fits."""
    rng = np.random.default_rng([SEED, repeat])
    d = len(PEER_TRUTH)
    records = rng.choice(d, p=PEER_TRUTH, size=(n_reports, 1))
    seeds = rng.integers(2**31, size=2).tolist()
    unary = estimator(d, epsilon=epsilon, mechanism="oue", likelihood="exact", random_state=seeds[0])
    reports = unary.privatize(records)
    unary.fit_reports(reports)
    subset = estimator(d, epsilon=epsilon, mechanism="auto", random_state=seeds[1])
    sent = subset.privatize(records)
    subset.fit_reports(sent)
    # The reference prior of frequencies, for the comparison with estimates that have no prior.
    unary_half = clone(unary).set_params(concentration=0.5).fit_reports(reports)
    subset_half = clone(subset).set_params(concentration=0.5).fit_reports(sent)
    estimates = {"posterior mean, unary, exact": unary.frequencies_,
                 "posterior mean, unary, Dirichlet(1/2)": unary_half.frequencies_,
                 "unbiased, unary": unary.point_estimate_,
                 "projected on the simplex, unary": project_on_simplex(unary.point_estimate_),
                 **peer_estimates(reports, epsilon),
                 f"posterior mean, {subset.mechanism_} (auto), {subset.likelihood_}": subset.frequencies_,
                 f"posterior mean, {subset.mechanism_} (auto), Dirichlet(1/2)": subset_half.frequencies_}
    errors = {name: np.sqrt(np.mean((values - PEER_TRUTH) ** 2)) for name, values in estimates.items()}
    return errors, [covered(model) for model in (unary, subset, unary_half, subset_half)]


def covered(model):
    """Share of the frequencies inside their 90 % intervals."""
    ends = model.posterior_.interval(0.9)["frequencies"]
    return np.mean((ends[:, 0] <= PEER_TRUTH) & (PEER_TRUTH <= ends[:, 1]))


def accuracy(n_reports, repeats, jobs):
    """Accuracy against multi-freq-ldpy on the same unary reports."""
    epsilon = 0.5
    results = []
    with parallel_config("loky", inner_max_num_threads=1), tqdm(total=repeats, desc="accuracy", unit="repeat") as bar:
        tasks = (delayed(accuracy_once)(n_reports, epsilon, i) for i in range(repeats))
        for result in Parallel(n_jobs=jobs, return_as="generator")(tasks):
            results.append(result)
            bar.update()
    ours = np.array([errors["posterior mean, unary, Dirichlet(1/2)"] for errors, _ in results])
    rows = []
    for name in results[0][0]:
        errors = np.array([errors[name] for errors, _ in results])
        ratio = ours.mean() / errors.mean()
        paired = (ours - ratio * errors).std(ddof=1) / errors.mean()  # paired: same records
        rows.append([name, f"{errors.mean():.4f}", f"{errors.std(ddof=1) / np.sqrt(repeats):.4f}", f"{ratio:.3f}",
                     f"{paired / np.sqrt(repeats):.3f}"])
    print(f"Accuracy: d={len(PEER_TRUTH)}, N={n_reports:,}, epsilon={epsilon}, four cells of 0.2 and twelve of 1/60; "
          f"RMSE over cells, mean of {repeats} repeats.\nAll unary estimates are of the same reports.")
    print_table(["estimate", "RMSE", "standard error", "unary, Dirichlet(1/2) / this", "standard error "], rows)
    coverage = np.mean([shares for _, shares in results], axis=0)
    print(f"90 % intervals cover {coverage[0]:.1%} (unary) and {coverage[1]:.1%} (auto) of the cells, with the prior "
          f"Dirichlet(1/2) {coverage[2]:.1%} and {coverage[3]:.1%} (target 85 to 97 %).\n"
          "Targets: unary below clip and renormalise, at most 1.03 times the Bayesian update; auto at most 0.027\n")


def fit_time(model, aggregate):
    """Fit a model to an aggregate, and return the seconds that it takes."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit_reports(aggregate)
    return time.perf_counter() - start


def counts_against_exact(n_reports, d, n_sets, mechanism, shape):
    """Compare the two posteriors of the same reports, and the time of the exact one."""
    epsilon, truth = 1.0, zipf(d) if shape == "as 1/k" else np.full(d, 1 / d)
    differences = []
    for place in range(n_sets):
        fits, aggregates, times = fit_both(n_reports, truth, epsilon, mechanism, place)
        differences.append(standardised_difference(fits["counts"], fits["exact"]))
        if place == 0:
            print(f"Counts against exact: d={d}, N={n_reports:,}, epsilon={epsilon:g}, frequencies {shape}, the same "
                  f"reports ({mechanism}). One thread.")
            print_times(fits, aggregates, times)
    largest = ", ".join(f"{difference.max():.3f}" for difference in differences)
    print(f"counts : exact, as shipped, {n_sets} sets of reports: largest |difference of means| / posterior sd of each "
          f"{largest} (target 0.2);\nroot mean square over all {np.sqrt(np.mean(np.square(differences))):.3f}, where "
          f"the information that counts leave out predicts {lost_information(aggregates['exact'], truth):.3f}.\n"
          "Target: counts at least 20 times faster than the exact likelihood with its own gradient\n")


def fit_both(n_reports, truth, epsilon, mechanism, place):
    """Return posteriors, aggregates and seconds by likelihood, for the same reports."""
    d = len(truth)
    records = np.random.default_rng([SEED, d, place]).choice(d, p=truth, size=(n_reports, 1))
    reports = estimator(d, epsilon=epsilon, mechanism=mechanism, random_state=SEED + place).privatize(records)
    fits, aggregates, times = {}, {}, {}
    for likelihood in ("counts", "exact"):
        model = estimator(d, epsilon=epsilon, mechanism=mechanism, likelihood=likelihood, random_state=SEED)
        aggregates[likelihood] = model.aggregate(reports)
        times[likelihood] = fit_time(model, aggregates[likelihood])
        fits[likelihood] = model.posterior_
    return fits, aggregates, times


def lost_information(aggregate, truth):
    """Standard deviation of the difference between the efficient estimates from rows and from counts, relative to rows.

    The variance of the difference of two nested efficient estimates is the difference of their variances.
    """
    part, = histogram_model(aggregate, 1.0, "exact").likelihoods
    rows, share = part.rows.astype(float), part.weights / part.weights.sum()
    score = part.contrast * rows / (1 + part.contrast * rows @ truth)[:, None]
    by_rows = (score.T * share) @ score
    # Projection of the score on counts, and on pairs weighted by their first-order effect.
    kept = np.hstack([rows, rows * (rows @ truth)[:, None]])
    kept = kept - share @ kept
    common = (kept.T * share) @ score
    by_counts = common.T @ np.linalg.pinv((kept.T * share) @ kept, rcond=1e-9, hermitian=True) @ common
    tangent = np.linalg.svd(np.eye(len(truth)) - 1 / len(truth))[0][:, :-1]  # frequencies sum to one
    variances = [np.diag(tangent @ np.linalg.inv(tangent.T @ information @ tangent) @ tangent.T)
                 for information in (by_rows, by_counts)]
    return np.sqrt(max(np.mean(variances[1] / variances[0] - 1), 0.0))  # negative only by rounding


def standardised_difference(posterior, exact):
    """Absolute differences of the means in units of the standard deviation of the exact posterior."""
    return np.abs(posterior.mean()["frequencies"] - exact.mean()["frequencies"]) / exact.std()["frequencies"]


def print_times(fits, aggregates, times):
    """Also sample the exact likelihood without a surrogate, then print the times of all three."""
    models = {name: histogram_model(aggregates[name], 1.0, name) for name in fits}
    plain = HistogramModel(models["exact"].likelihoods, 1.0)
    start = time.perf_counter()
    fits["plain"] = sample(plain, seed=SEED)
    times["plain"] = time.perf_counter() - start
    walkers = plain.initial() + 0.01 * np.random.default_rng(SEED).standard_normal((16, plain.n_params))
    evaluations = {name: best_time(lambda: models[name].gradient(walkers)) for name in models}
    evaluations["plain"] = evaluations["exact"]
    titles = {"counts": "counts", "exact": "exact, as shipped (trajectories on an expansion)",
              "plain": "exact, its own gradient all along"}
    print_table(
        ["likelihood", "fit s", "times counts", "steps", "worst R-hat", "density and gradient, 16 walkers, ms",
         "times counts "],
        [[title, times[name], times[name] / times["counts"], str(fits[name].n_steps),
          f"{fits[name].rhat['frequencies'].max():.4f}", evaluations[name] * 1e3,
          evaluations[name] / evaluations["counts"]] for name, title in titles.items()])
    std = fits["plain"].std()["frequencies"]
    for name, title in (("counts", "counts"), ("exact", "exact, as shipped")):
        noise = np.sqrt(1 / fits[name].ess["frequencies"] + 1 / fits["plain"].ess["frequencies"])
        print(f"{title} : exact, own gradient: largest |difference of means| / posterior sd "
              f"{standardised_difference(fits[name], fits['plain']).max():.3f}, of which sampling noise has sd "
              f"{noise.max():.3f}; mean ratio of sd {np.mean(fits[name].std()['frequencies'] / std):.3f}")


def sampling_time(sizes, repeats):
    """Print the sampling time after aggregation, over the number of clients."""
    d, epsilon = 16, 1.0
    rows = []
    for mechanism, likelihood in (("oue", "counts"), ("subset", "counts"), ("rr", "auto")):
        times, steps = [], []
        for n_reports in sizes:
            records = np.random.default_rng([SEED, n_reports]).choice(d, p=zipf(d), size=(n_reports, 1))
            model = estimator(d, epsilon=epsilon, mechanism=mechanism, likelihood=likelihood, random_state=0)
            aggregate = model.aggregate(model.privatize(records))
            runs = []
            for seed in range(repeats):
                runs.append((fit_time(model.set_params(random_state=seed), aggregate), model.posterior_.n_steps))
            seconds, lengths = np.median(runs, axis=0)
            times.append(seconds)
            steps.append(lengths)
        rows.append([f"{mechanism}, {'multinomial' if mechanism == 'rr' else likelihood}", *times,
                     times[-1] / times[0], *(f"{length:.0f}" for length in steps)])
    print(f"Sampling time after aggregation: d={d}, epsilon={epsilon:g}, frequencies as 1/k; median of {repeats} seeds")
    print_table(["reports", *(f"N={size:,}: s" for size in sizes), "ratio (about 1)",
                 *(f"N={size:,}: steps" for size in sizes)], rows)


def convergence(cases, n_reports):
    """Print the largest R-hat and the smallest effective sample size with the default settings."""
    rows = []
    for d, mechanism, likelihood in tqdm(cases, desc="convergence", unit="fit"):
        records = np.random.default_rng([SEED, d]).choice(d, p=zipf(d), size=(n_reports, 1))
        model = estimator(d, epsilon=1.0, mechanism=mechanism, likelihood=likelihood, random_state=0)
        seconds = fit_time(model, model.aggregate(model.privatize(records)))
        posterior = model.posterior_
        ends = posterior.interval(0.9)["frequencies"]
        inside = np.mean((ends[:, 0] <= zipf(d)) & (zipf(d) <= ends[:, 1]))
        rows.append([f"d={d}, {mechanism}, {model.likelihood_}", f"{posterior.rhat['frequencies'].max():.4f}",
                     f"{posterior.ess['frequencies'].min():.0f}", f"{posterior.ess_tail['frequencies'].min():.0f}",
                     str(posterior.n_steps), f"{posterior.acceptance:.2f}", seconds, f"{inside:.0%}"])
    print(f"Convergence with the default settings: N={n_reports:,}, epsilon=1, frequencies as 1/k")
    print_table(["case", "worst R-hat (at most 1.02)", "least ESS", "least tail ESS", "steps", "acceptance", "s",
                 "in 90 % intervals"], rows)


def main():
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small blocks, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes for the accuracy block (default 2)")
    parser.add_argument("--repeats", type=int, default=40, help="repeats of the accuracy block (default 40)")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=BLOCKS, help="what to measure (default all)")
    arguments = parser.parse_args()
    print_header("Category frequencies", "multi-freq-ldpy", "numba", "emcee", seed=SEED)
    print(f"{arguments.jobs} processes for accuracy, one for times\n")
    start = time.perf_counter()
    cases = [(d, mechanism, likelihood) for d in (2, 16, 1000)
             for mechanism, likelihood in (("rr", "auto"), ("oue", "counts"), ("subset", "counts"))]
    cases += [(100, "oue", "exact"), (100, "subset", "exact")]
    if arguments.quick:
        cases = [(2, "rr", "auto"), (8, "oue", "counts"), (8, "subset", "exact")]
    with threadpool_limits(1):
        if "accuracy" in arguments.blocks:
            accuracy(*((1000, 2) if arguments.quick else (10**4, arguments.repeats)), arguments.jobs)
        if "likelihood" in arguments.blocks:
            for mechanism, shape in product(("subset", "oue"), ("as 1/k", "all equal")):
                counts_against_exact(*((2000, 6, 1) if arguments.quick else (10**5, 20, 5)), mechanism, shape)
        if "size" in arguments.blocks:
            sampling_time((1000, 10**4) if arguments.quick else (10**4, 10**6), 1 if arguments.quick else 5)
        if "convergence" in arguments.blocks:
            convergence(cases, 2000 if arguments.quick else 10**5)
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
