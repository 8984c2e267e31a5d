"""Convergence and speed of linear regression: defaults over d, epsilon and N, and against NumPyro's NUTS.

Run with ``python benchmarks/bench_linear.py``; ``--quick`` shrinks every block. NUTS samples the formulation of the
paper, with the covariance of all moments, in JAX; it is left out if NumPyro is not installed. Times of fits are CPU
times; those of the comparison are wall-clock times of one process, start-up included, with one thread for NumPy.
"""

import argparse
import importlib.util
import itertools
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

# No other imports here: they would add to the time of both timed processes.
import numpy as np

SEED = 20220507
BLOCKS = ("density", "convergence", "priors", "nuts")
CHAINS = 4
MANY_WALKERS = 80


def records(d, n, rng):
    """Return records, mostly of norm below one, and responses with noise of scale 0.25."""
    X = rng.normal(size=(n, d)) * 0.5 / np.sqrt(d)
    coef = rng.normal(size=d)
    coef *= 0.6 / np.linalg.norm(coef)
    return X, X @ coef + rng.normal(scale=0.25, size=n), coef


def paper_estimator(**options):
    """Return an estimator with the paper's mechanism and prior, which both samplers use."""
    from skldp import LDPBayesLinearRegression, RegressionPrior

    return LDPBayesLinearRegression(mechanism="gaussian", fit_intercept=False, prior=RegressionPrior.paper(), **options)


def convergence(dims, epsilons, sizes, **options):
    """Print the diagnostics of default fits over the grid; ``options`` shorten a smoke run."""
    from _moment_sums import simulated_sums
    from _timing import print_table

    from skldp import LDPBayesLinearRegression
    from skldp.exceptions import FewReportsWarning

    rows = []
    for d in dims:
        X, y, _ = records(d, 50_000, np.random.default_rng([SEED, d]))
        for epsilon in epsilons:
            for size in sizes:
                rng = np.random.default_rng([SEED, d, int(1000 * epsilon), size])
                model = LDPBayesLinearRegression(epsilon=epsilon, random_state=0, **options)
                aggregate = simulated_sums(model.protocol(d), X, y, size, rng)
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    warnings.simplefilter("ignore", FewReportsWarning)  # the grid has settings with little information
                    start = time.process_time()
                    model.fit_reports(aggregate)
                    seconds = time.process_time() - start
                posterior = model.posterior_
                rows.append([d, epsilon, size, posterior.rhat["coef"].max(), posterior.ess["coef"].min(),
                             max(np.nanmax(values) for values in posterior.rhat.values()), len(caught), seconds])
                print(f"d={d}, epsilon={epsilon:g}, N={size:,}: R-hat {rows[-1][3]:.4f}, {seconds:.2f} s", flush=True)
    print()
    print_table(["d", "epsilon", "N", "R-hat, coef", "ESS, coef", "R-hat, all", "warnings", "CPU seconds"],
                [[f"{d}", f"{epsilon:g}", f"{size:,}", f"{rhat:.4f}", f"{ess:.0f}", f"{worst:.4f}", f"{n}", f"{t:.2f}"]
                 for d, epsilon, size, rhat, ess, worst, n, t in rows])
    bad = max(rows, key=lambda row: row[3])
    poor = min(rows, key=lambda row: row[4])
    print(f"Worst R-hat of a coefficient {bad[3]:.4f} (d={bad[0]}, epsilon={bad[1]:g}, N={bad[2]:,}; target 1.03); "
          f"least effective size {poor[4]:.0f} (d={poor[0]}, epsilon={poor[1]:g}, N={poor[2]:,}; target 1,000);\n"
          f"{sum(row[6] for row in rows)} warnings in {len(rows)} fits (target 0)")
    for d, target in ((2, 0.5), (10, 2), (20, 6)):
        times = [row[7] for row in rows if row[0] == d]
        if times:
            print(f"d={d}: CPU seconds {np.median(times):.2f} (median), {max(times):.2f} (longest; target {target})")
    print()


def priors(dims, epsilons, sizes, **options):
    """Print the CPU time of fits with other priors over that with the default one, also for collinear columns."""
    from _moment_sums import simulated_sums
    from _timing import print_table

    from skldp import LDPBayesLinearRegression, RegressionPrior

    choices = {"default": "auto", "paper": RegressionPrior.paper(),
               "wide": RegressionPrior(coef="normal", coef_scale=40), "narrow": RegressionPrior(coef_scale=0.01),
               "wide line": RegressionPrior(coef_scale=10),
               "uncorrelated": RegressionPrior(lkj_eta=20)}
    rows = []
    for d, epsilon, size, collinear in itertools.product(dims, epsilons, sizes, (False, True)):
        X, y, _ = records(d, 50_000, np.random.default_rng([SEED, d]))
        if collinear:  # a correlation of 0.99 between the first two columns
            X[:, 1] = X[:, 0] + 0.14 * X[:, 1]
        aggregate = simulated_sums(LDPBayesLinearRegression(epsilon=epsilon).protocol(d), X, y, size,
                                   np.random.default_rng([SEED, d, size]))
        default = np.nan
        for name, prior in choices.items():
            model = LDPBayesLinearRegression(epsilon=epsilon, random_state=0, prior=prior, **options)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                start = time.process_time()
                model.fit_reports(aggregate)
                seconds = time.process_time() - start
            default = seconds if name == "default" else default
            warned = sum("converged" in str(one.message) for one in caught)
            rows.append([f"{name}, d={d}, epsilon={epsilon:g}, N={size:,}{', collinear' * collinear}", seconds,
                         seconds / default, f"{model.posterior_.n_steps}", f"{warned}"])
            print(f"{rows[-1][0]}: {seconds:.2f} s, {rows[-1][3]} steps, {warned} not converged", flush=True)
    print()
    print_table(["prior", "CPU seconds", "over the default's (at most 5)", "steps", "not converged"], rows)


def density(dims, repeats):
    """Print the time of a density with gradient, of the eigendecomposition in it, and of the Laplace fit."""
    from _timing import best_time, print_table

    from skldp import LDPBayesLinearRegression
    from skldp.models import LinearModel

    rows = []
    for d in dims:
        X, y, _ = records(d, 5000, np.random.default_rng([SEED, d]))
        for intercept in (False, True):
            model = LDPBayesLinearRegression(fit_intercept=intercept, random_state=0, inference="laplace")
            aggregate = model.aggregate(model.privatize(X, y))
            density = LinearModel(aggregate)
            theta = density.initial() + 0.01 * np.random.default_rng(0).normal(size=(48, density.n_params))
            batch = np.random.default_rng(0).normal(size=(48, d + 1, d + 1))
            batch = batch @ batch.swapaxes(1, 2)
            whole = best_time(lambda: density.gradient(theta), repeats)
            part = best_time(lambda: np.linalg.eigh(batch), repeats)
            fit = best_time(lambda: model.fit_reports(aggregate), 2)
            rows.append([f"d={d}, {'with' if intercept else 'no'} intercept", f"{1e3 * whole:.2f}", f"{1e3 * part:.2f}",
                         f"{whole / part:.2f}", "5" if intercept else "3.5", f"{fit:.3f}"])
    print_table(["48 walkers", "density and gradient, ms", "eigh of order d + 1, ms", "ratio", "target",
                 "Laplace fit, s"], rows)
    print("Target for the Laplace fit at d=10: 0.2 s\n")


def against_nuts(dims, n_clients, n_steps):
    """Compare the time to 1,000 effective draws of the worst coefficient with NUTS on the paper's formulation."""
    from _timing import print_table

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for d in dims:
            X, y, _ = records(d, n_clients, np.random.default_rng([SEED, d]))
            model = paper_estimator(random_state=0)
            data, draws = Path(folder) / f"{d}.npz", Path(folder) / "draws.npz"
            np.savez(data, reports=model.privatize(X, y))
            found = {}
            for name, extra in (("ours", ["auto"]), ("many", [str(MANY_WALKERS)]), ("nuts", [str(n_steps)])):
                start = time.perf_counter()
                worker = "nuts" if name == "nuts" else "ours"
                command = [sys.executable, __file__, "--worker", worker, str(data), str(draws), *extra]
                subprocess.run(command, check=True)
                seconds = time.perf_counter() - start
                with np.load(draws) as arrays:
                    found[name] = seconds, arrays["coef"], arrays["sizes"]
                print(f"d={d}: {name} {seconds:.0f} s", flush=True)
            rows += [comparison(f"d={d}, {title}", found[name], found["nuts"], {5: "40", 10: "40"}.get(d, ""))
                     for name, title in (("ours", "default"), ("many", f"{MANY_WALKERS} walkers"))]
    print()
    print_table(["", "ours, s", "ESS", "NUTS, s", "ESS ", "NUTS : ours, time per 1,000 effective draws", "target",
                 "largest |z|, means", "sds"], rows)
    print(f"A default fit stops as soon as it has converged; {MANY_WALKERS} walkers bring more effective draws in "
          "hardly more time.\n")


def comparison(title, ours, nuts, target):
    """Return a row of the table: times, effective sample sizes, and whether the posteriors agree."""
    from arviz_stats.base import array_stats

    centres, errors = [], []
    for _, coef, _ in (ours, nuts):
        centres.append(np.array([coef.mean(axis=(0, 1)), coef.std(axis=(0, 1))]))
        # Errors of the stored draws: ours are thinned, while effective sample sizes are of all draws.
        errors.append(np.array([array_stats.mcse(coef, method=kind, chain_axis=0, draw_axis=1)
                                for kind in ("mean", "sd")]))
    z = np.abs(centres[0] - centres[1]) / np.hypot(*errors)
    (seconds, _, sizes), (peer_seconds, _, peer_sizes) = ours, nuts
    ratio = peer_seconds / peer_sizes.min() * sizes.min() / seconds
    return [title, f"{seconds:.1f}", f"{sizes.min():.0f}", f"{peer_seconds:.0f}", f"{peer_sizes.min():.0f}",
            f"{ratio:.1f}", target, f"{z[0].max():.1f}", f"{z[1].max():.1f}"]


def sample_ours(data, draws, n_walkers):
    """Fit the reports of a file with the defaults except the number of walkers, and store the coefficients' draws."""
    from skldp import MCMC

    with np.load(data) as arrays:
        reports = arrays["reports"]
    model = paper_estimator(random_state=0, inference=MCMC(n_walkers=n_walkers))
    model.fit_reports(reports)
    print(f"    R-hat {model.posterior_.rhat['coef'].max():.4f}")
    # Effective sample sizes are of all draws, before thinning for storage.
    np.savez(draws, coef=model.posterior_.draws["coef"], sizes=model.posterior_.ess["coef"])


def sample_nuts(data, draws, n_steps):
    """Sample the paper's formulation: the mean report is Gaussian with the covariance of all moments."""
    import numpyro

    numpyro.enable_x64()
    numpyro.set_host_device_count(CHAINS)
    import jax
    import jax.numpy as jnp
    import numpyro.distributions as dist

    with np.load(data) as arrays:
        reports = arrays["reports"]
    estimator = paper_estimator()
    protocol, prior = estimator._protocol_of(reports), estimator.prior
    mechanism, n = protocol.randomizer, len(reports)
    mean = protocol.mean_moments(protocol.aggregate(reports).parts[protocol])
    rows, columns = (jnp.asarray(place) for place in mechanism.places)
    isometry, d, w = jnp.asarray(mechanism._isometry), protocol.n_features, protocol.y_weight

    def model():
        coef = numpyro.sample("coef", dist.Normal(jnp.zeros(d), prior.coef_scale))
        scales = numpyro.sample("scales", dist.Normal(jnp.zeros(d), prior.covariance_scale))
        sigma = numpyro.sample("sigma", dist.HalfNormal(0.5))
        correlations = dist.LKJCholesky(d, prior.lkj_eta)
        factor = scales[:, None] * (numpyro.sample("factor", correlations) if d > 1 else jnp.ones((1, 1)))
        covariance = factor @ factor.T
        cross = covariance @ coef
        corner = w**2 * (coef @ cross + sigma**2)
        joint = jnp.block([[covariance, w * cross[:, None]], [w * cross[None, :], corner[None, None]]])
        one, two = joint[rows][:, rows] * joint[columns][:, columns], joint[rows][:, columns] * joint[columns][:, rows]
        spread = (one + two) * isometry[:, None] * isometry + mechanism.noise_variance * jnp.eye(len(rows))
        numpyro.sample("reports", dist.MultivariateNormal(joint[rows, columns] * isometry, spread / n), obs=mean)

    mcmc = numpyro.infer.MCMC(numpyro.infer.NUTS(model), num_warmup=n_steps, num_samples=n_steps, num_chains=CHAINS,
                              chain_method="parallel", progress_bar=False)
    mcmc.run(jax.random.PRNGKey(0))
    from arviz_stats.base import array_stats

    coef = np.asarray(mcmc.get_samples(group_by_chain=True)["coef"])
    sizes = [float(array_stats.ess(coef[:, :, j], chain_axis=0, draw_axis=1)) for j in range(d)]
    rhat = max(float(array_stats.rhat(coef[:, :, j], chain_axis=0, draw_axis=1)) for j in range(d))
    print(f"    R-hat {rhat:.4f}")
    np.savez(draws, coef=coef, sizes=sizes)


def main():
    """Run the blocks."""
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        name, data, draws, *rest = sys.argv[2:]
        if name == "ours":
            sample_ours(data, draws, rest[0] if rest[0] == "auto" else int(rest[0]))
        else:
            sample_nuts(data, draws, int(rest[0]))
        return
    from _timing import print_header
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small blocks, for a smoke run")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=BLOCKS, help="what to measure (default all)")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    print_header("Linear regression", "emcee", "arviz-stats", "numpyro", "jax", seed=SEED)
    from skldp import MCMC

    with threadpool_limits(1):
        if "density" in arguments.blocks:
            density((10,) if arguments.quick else (10, 20, 40), 5 if arguments.quick else 20)
        if "convergence" in arguments.blocks:
            if arguments.quick:
                convergence((1, 5), (1.0,), (2000,), inference=MCMC(n_warmup=50, n_draws=50))
            else:
                convergence((1, 2, 5, 10, 20), (0.3, 1.0, 3.0, 10.0), (2000, 10**4, 10**6, 10**8))
        if "priors" in arguments.blocks:
            if arguments.quick:
                priors((2,), (1.0,), (2000,), inference=MCMC(n_warmup=20, n_draws=20))
            else:
                priors((2, 8), (1.0, 8.0), (10**4, 10**6))
        if "nuts" in arguments.blocks:
            if importlib.util.find_spec("numpyro") is None:
                print("NumPyro is not installed: no comparison with NUTS. pip install numpyro brings it.")
            elif arguments.quick:
                against_nuts((2,), 2000, 50)
            else:
                against_nuts((5, 10), 6000, 1000)


if __name__ == "__main__":
    main()
