"""Speed of sampling: few clients against many, default fits, and ours against NumPyro's NUTS on the same likelihood.

Ours counts reports in public cells once, so the likelihood takes the same time for any number of clients. NUTS gets the
same Laplace reports on their natural scale, one term of the closed-form likelihood for each, with the same priors on
the same unconstrained parameters. Each runs in a fresh process, which is timed as a whole: imports, compilation,
sampling.

Run with ``python benchmarks/bench_sampling.py``; ``--quick`` shrinks everything. Without NumPyro (``pip install
numpyro``) the last part is left out. ``--blocks`` chooses parts.
"""

import argparse
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

# No other imports here: they would add to the time of both timed processes.
import numpy as np
from _timing import best_time, machine_cpu, print_header, print_table

SEED = 0
BOUNDS, EPSILON = (-5, 5), 1.0
CHAINS, TARGET_ESS = 4, 1000
BLOCKS = ("growth", "defaults", "nuts")


def growth(n_few, n_many, repeats):
    """Measure the sampling time for few and for many reports, and the rate at which reports are counted."""
    from skldp import LDPGaussian

    x = np.random.default_rng(SEED).normal(0, 1, size=(n_many, 1))
    sampling, counting = [], []
    for mechanism in ("square_wave", "laplace", "gaussian"):
        estimator = LDPGaussian(epsilon=EPSILON, bounds=BOUNDS, mechanism=mechanism, random_state=SEED)
        rate, few, many = count(estimator, estimator.privatize(x), n_few)
        counting.append([mechanism, rate])
        sampling.append([mechanism, *sampling_times(estimator, few, many, repeats)])
    print(f"Sampling from an aggregate, medians of {repeats}; the chains stop by themselves, so their length varies")
    print_table(["mechanism", f"N={n_few:.0e} s", f"N={n_many:.0e} s", "ratio (at most 1.5)", "steps", "steps ",
                 "ratio per step"], sampling)
    print(f"Counting {n_many:,} reports")
    print_table(["mechanism", "reports/s (at least 2e7)"], counting)


def count(estimator, reports, n_few):
    """Return the reports counted per second, and the aggregates of a few and of all."""
    rate = len(reports) / best_time(lambda: estimator.aggregate(reports), 3)
    return rate, estimator.aggregate(reports[:n_few]), estimator.aggregate(reports)


def sampling_times(estimator, few, many, repeats):
    """Return the median times of sampling from two aggregates in turn, with their ratios and numbers of steps."""
    estimator.fit_reports(few)
    times, steps = ([], []), ([], [])
    for seed in range(repeats):
        estimator.set_params(random_state=seed)
        for i, aggregate in enumerate((few, many)):
            start = time.perf_counter()
            estimator.fit_reports(aggregate)
            times[i].append(time.perf_counter() - start)
            steps[i].append(estimator.posterior_.n_steps)
    first, second = map(median, times)
    per_step = [median(t / n for t, n in zip(*part)) for part in zip(times, steps)]
    return first, second, second / first, *(f"{median(part):g}" for part in steps), per_step[1] / per_step[0]


def defaults(n, sizes, repeats, inference="mcmc"):
    """Print the CPU time of default fits, after aggregation: estimators of one value, and histograms."""
    from skldp import LDPDensity, LDPDistribution, LDPExponential, LDPGaussian, LDPGeometric, LDPHistogram, LDPPoisson

    rng = np.random.default_rng(SEED)
    cases = [("Gaussian", LDPGaussian(), rng.normal(size=(n, 1)), 0.5),
             ("exponential", LDPExponential(), rng.exponential(size=(n, 1)), 0.5),
             ("Poisson", LDPPoisson(), rng.poisson(3, size=(n, 1)), 0.5),
             ("geometric", LDPGeometric(), rng.geometric(0.3, size=(n, 1)) - 1, 0.5),
             ("gamma", LDPDistribution(distribution="gamma", bounds=(0, 10)), rng.gamma(2, size=(n, 1)), 0.5),
             ("beta", LDPDistribution(distribution="beta", bounds=(0, 1)), rng.beta(2, 5, size=(n, 1)), 0.5),
             ("density", LDPDensity(), rng.normal(size=(n, 1)), 0.5)]
    for d in sizes:
        weights = 1 / np.arange(1, d + 1)
        cases.append((f"histogram, d={d:,}", LDPHistogram(categories=list(range(d))),
                      rng.choice(d, size=(n, 1), p=weights / weights.sum()), {100: 1, 1000: 10}.get(d, "")))
    rows = []
    for name, model, data, target in cases:
        model.set_params(random_state=SEED, inference=inference)
        aggregate = model.aggregate(model.privatize(data))
        times = []
        for seed in range(repeats):
            start = time.process_time()
            model.set_params(random_state=seed).fit_reports(aggregate)
            times.append(time.process_time() - start)
        rows.append([name, median(times), max(times), target])
    print(f"CPU seconds of default fits of {n:,} reports, after aggregation; {repeats} seeds")
    print_table(["", "median", "longest", "target"], rows)


def against_nuts(n, n_warmup, n_draws, repeats, chain_methods=("vectorized", "parallel")):
    """Compare the time to 1,000 effective draws of the worse parameter with NumPyro's."""
    from skldp import LDPGaussian

    estimator = LDPGaussian(epsilon=EPSILON, bounds=BOUNDS, mechanism="laplace", random_state=SEED)
    reports = estimator.privatize(np.random.default_rng(SEED + 1).normal(0, 1, size=(n, 1)))
    natural = estimator.protocol().randomizer.decode(reports).ravel()
    methods = {"ours": [], **{f"NUTS, {name}": [name] for name in chain_methods}}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "reports.npz"
        np.savez(data, reports=reports, natural=natural)
        difference = float(run_worker("compare", data))
        runs = {name: [] for name in methods}
        for seed in range(repeats):
            for name, method in methods.items():
                wall, cpu, machine = time.perf_counter(), children_cpu(), machine_cpu()
                run_worker("nuts" if method else "ours", data, seed, n_warmup, n_draws, *method)
                wall, cpu = time.perf_counter() - wall, children_cpu() - cpu
                others = machine_cpu() - machine - cpu
                with np.load(data.with_name("draws.npz")) as draws:
                    runs[name].append((wall, cpu, others, dict(draws)))
    print(f"{n:,} Laplace reports; NUTS: {CHAINS} chains of {n_warmup} + {n_draws} steps, {n:,} terms; ours: default "
          f"budget; medians of {repeats}")
    print(f"Largest difference between the log-likelihood in JAX and skldp's: {difference:.1e}")
    print_times(runs)
    print_agreement({name: results[0][3] for name, results in runs.items()})


def children_cpu():
    """Return the CPU seconds of the child processes that have ended so far."""
    times = os.times()
    return times.children_user + times.children_system


def run_worker(*arguments):
    """Run this file as a worker in a fresh process; return its output."""
    command = [sys.executable, __file__, "--worker", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def print_times(runs):
    """Print times to 1,000 effective draws: the whole time, multiplied by 1,000/ESS if the ESS is smaller."""
    rows = []
    for name, results in runs.items():
        walls, cpus, others, draws = zip(*results)
        ess = [min(parameter[-1] for parameter in moments(values).values()) for values in draws]
        to_target = [wall * max(1, TARGET_ESS / e) for wall, e in zip(walls, ess)]
        per_target = [wall * TARGET_ESS / e for wall, e in zip(walls, ess)]
        rows.append([name, *map(median, (walls, cpus, others, ess, to_target, per_target))])
    print_table(["sampler", "whole s", "CPU s", "others' CPU s", "worse bulk ESS", "s to 1000 effective",
                 "s per 1000 effective"], rows)
    ratio, ratio_per = (min(row[column] for row in rows[1:]) / rows[0][column] for column in (5, 6))
    print("To 1000 effective draws: the whole time, multiplied by 1000/ESS when ESS is below 1000. The faster NUTS "
          f"takes {ratio:.1f} times ours (target: at least 5); per 1000 effective {ratio_per:.1f} times.\n"
          "Parallel chains need idle cores: where other processes took a good part of the time, NUTS looks too slow.\n")


def print_agreement(draws):
    """Print both posteriors, and their differences in Monte Carlo standard errors."""
    rows, worst = [], 0.0
    found = {name: moments(values) for name, values in draws.items()}
    for parameter in ("mean", "std"):
        for name in found:
            mean, mean_error, sd, sd_error, _ = found[name][parameter]
            ours = found["ours"][parameter]
            z = [0.0, 0.0] if name == "ours" else [(mean - ours[0]) / np.hypot(mean_error, ours[1]),
                                                   (sd - ours[2]) / np.hypot(sd_error, ours[3])]
            worst = max(worst, *np.abs(z))
            rows.append([f"{parameter}, {name}", mean, mean_error, sd, sd_error, *(f"{value:.2f}" for value in z)])
    print_table(["posterior", "mean", "error", "sd", "error ", "z of mean", "z of sd"], rows)
    verdict = "agree" if worst < 4 else "DISAGREE"
    print(f"The posteriors {verdict} within Monte Carlo error: largest |z| {worst:.2f} (below 4)\n")


def moments(draws):
    """Return the posterior mean and sd with their Monte Carlo standard errors, and the bulk ESS, by parameter."""
    from arviz_stats.base import array_stats

    return {name: (values.mean(), float(array_stats.mcse(values)), values.std(),
                   float(array_stats.mcse(values, method="sd")), float(array_stats.ess(values)))
            for name, values in draws.items()}


def ours(data, seed, n_warmup, n_draws):
    """Worker: sample with skldp at its default settings."""
    from skldp import LDPGaussian

    estimator = LDPGaussian(epsilon=EPSILON, bounds=BOUNDS, mechanism="laplace", random_state=int(seed))
    with np.load(data) as arrays:
        estimator.fit_reports(arrays["reports"])
    np.savez(Path(data).with_name("draws.npz"), **estimator.posterior_.draws)


def nuts(data, seed, n_warmup, n_draws, chain_method):
    """Worker: sample with NumPyro."""
    import numpyro

    numpyro.enable_x64()
    if chain_method == "parallel":
        numpyro.set_host_device_count(CHAINS)
    import jax
    import numpyro.distributions as dist

    with np.load(data) as arrays:
        z = arrays["natural"]

    def model(z):
        mean = numpyro.sample("mean", dist.Normal(sum(BOUNDS) / 2, (BOUNDS[1] - BOUNDS[0]) / 2))
        std = numpyro.sample("std", dist.Gamma(2.0, 20 / (BOUNDS[1] - BOUNDS[0])))
        numpyro.factor("reports", jax_log_laplace_gaussian(z, mean, std).sum())

    mcmc = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=int(n_warmup), num_samples=int(n_draws),
                              num_chains=CHAINS, chain_method=chain_method, progress_bar=False)
    mcmc.run(jax.random.PRNGKey(int(seed)), z)
    draws = {name: np.asarray(values) for name, values in mcmc.get_samples(group_by_chain=True).items()}
    np.savez(Path(data).with_name("draws.npz"), **draws)


def jax_log_laplace_gaussian(z, mean, std):
    """Log density of a clipped Gaussian record plus Laplace noise, as in ``skldp.models.values._marginals``, in JAX."""
    import jax.numpy as jnp
    from jax.scipy.special import erfcx, ndtr

    a, b = BOUNDS
    decay = EPSILON / (b - a)
    root_half = np.sqrt(0.5)

    def end_weight(distance):
        beyond = distance + tau
        closed_form = 0.5 * jnp.exp(-0.5 * distance**2) * erfcx(jnp.abs(beyond) * root_half)
        return ndtr(-distance) - jnp.where(beyond > 0, closed_form, -closed_form)

    inside = jnp.clip(z, a, b)
    tau = std * decay
    to_lower, to_upper = (mean - a) / std, (b - mean) / std
    bracket = jnp.exp((a - inside) * decay) * end_weight(to_lower)
    bracket = bracket + jnp.exp((inside - b) * decay) * end_weight(to_upper)
    alpha = (inside - mean) / std
    distance = jnp.abs(alpha)
    tilted = tau - distance
    towards = jnp.where(tilted < 0, -1.0, 1.0) * erfcx(jnp.abs(tilted) * root_half)
    two_sided = 0.5 * jnp.exp(-0.5 * distance**2) * (erfcx((tau + distance) * root_half) + towards)
    reached = (tilted < 0) & jnp.where(alpha < 0, to_upper + tau > 0, to_lower + tau > 0)
    bracket = bracket + two_sided + jnp.where(reached, jnp.exp(tau * (0.5 * tau - distance)), 0.0)
    return jnp.log(0.5 * decay) - jnp.abs(z - inside) * decay + jnp.log(bracket)


def compare(data):
    """Worker: print the largest difference between the two implementations of the log-likelihood."""
    import jax

    from skldp.models.values._marginals import log_laplace_gaussian

    jax.config.update("jax_enable_x64", True)
    with np.load(data) as arrays:
        z = arrays["natural"]
    scale = (BOUNDS[1] - BOUNDS[0]) / EPSILON
    print(max(np.abs(log_laplace_gaussian(z, mean, std, BOUNDS, scale) - jax_log_laplace_gaussian(z, mean, std)).max()
              for mean in (-4.0, 0.0, 0.5, 7.0) for std in (0.3, 1.0, 3.0)))


def main():
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer reports, draws and repeats, for a smoke run")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=BLOCKS, help="what to measure (default all)")
    parser.add_argument("--worker", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        name, *rest = arguments.worker
        {"ours": ours, "nuts": nuts, "compare": compare}[name](*rest)
        return
    print_header("Sampling posteriors", "emcee", "arviz-stats", "numpyro", "jax", seed=SEED)
    quick = arguments.quick
    if "growth" in arguments.blocks:
        growth(10**4, *((10**5, 1) if quick else (10**7, 5)))
    if "defaults" in arguments.blocks:
        if quick:
            defaults(1000, (10,), 1, inference="laplace")
        else:
            defaults(10**5, (10, 100, 1000), 3)
    if "nuts" in arguments.blocks:
        if importlib.util.find_spec("numpyro") is None:
            print("NumPyro is not installed: no comparison with NUTS. pip install numpyro brings it.")
        elif quick:
            against_nuts(500, 50, 50, 1, ["parallel"])
        else:
            against_nuts(5000, 1000, 1000, 3)


if __name__ == "__main__":
    main()
