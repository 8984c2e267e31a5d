"""Scaling: reports per second, memory, time over clients and features, bytes, workers, and one more day.

Run with ``python benchmarks/bench_scale.py``; ``--quick`` shrinks every block. Blocks that need dask are left out if
it is not installed; ``pip install "skldp[dask]"`` installs it. Times are wall-clock
times unless a table says CPU, with one thread for NumPy.
"""

import argparse
import importlib.util
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

SEED = 20220508
BLOCKS = ("throughput", "memory", "clients", "bytes", "workers", "stream", "features")


def regression_data(n, d, rng):
    """Return records, mostly of norm below one, with responses."""
    X = rng.normal(size=(n, d)) * 0.5 / np.sqrt(d)
    return X, X @ np.linspace(-0.5, 0.5, d) + 0.2 * rng.normal(size=n)


def labels_of(X, rng):
    """Return labels drawn from a logistic model of the records."""
    return (rng.random(len(X)) < 1 / (1 + np.exp(-X @ np.linspace(-3, 3, X.shape[1])))).astype(int)


def throughput(n_reports, repeats):
    """Print the reports checked and aggregated per second, by one core."""
    from _timing import best_time, print_table

    from skldp.protocols import CategoryProtocol, LabelMomentProtocol, MomentProtocol, RecordProtocol, ValueProtocol

    rng = np.random.default_rng(SEED)
    X, y = regression_data(n_reports // 10, 10, rng)
    categories = rng.integers(100, size=(n_reports // 10, 1))
    cases = [
        ("moments, sphere, d=10", MomentProtocol(n_features=10), (X, y), 1e6),
        ("moments, Gaussian, d=10", MomentProtocol(n_features=10, mechanism="gaussian"), (X, y), 1e6),
        ("moments with labels, d=10", LabelMomentProtocol(n_features=10), (X, (y > 0).astype(int)), 1e6),
        ("noisy records, d=10", RecordProtocol(n_features=10), (X, y), None),
        ("unary encoding, d=100", CategoryProtocol(categories=tuple(range(100)), mechanism="oue"), (categories,), 5e6),
        ("subsets, d=100", CategoryProtocol(categories=tuple(range(100))), (categories,), None),
        ("randomised response, d=100", CategoryProtocol(categories=tuple(range(100)), mechanism="rr"), (categories,),
         None),
        ("values, square wave", ValueProtocol(), (X[:, :1],), 2e7),
        ("values, Laplace", ValueProtocol(mechanism="laplace"), (X[:, :1],), 2e7),
        ("values, Gaussian", ValueProtocol(mechanism="gaussian", delta=1e-5), (X[:, :1],), 2e7),
    ]
    rows = []
    for name, protocol, data, target in cases:
        reports = np.concatenate([protocol._randomize(*data, *([None] * (2 - len(data))), 0)] * 10)
        seconds = best_time(lambda: protocol.aggregate(reports), repeats)
        rows.append([name, f"{len(reports) / seconds:.2e}", "" if target is None else f"{target:.0e}"])
    print(f"Reports per second, checked and added up by one core, {len(reports):,} at a time")
    print_table(["reports", "per second", "target"], rows)


def memory(n_values, n_clients, d):
    """Print the resident memory of processes that aggregate very many values, and that fit very many records."""
    from _timing import print_table

    rows = []
    for name, arguments, limit in ((f"{n_values:,} values in chunks", ("values", n_values), ""),
                                   (f"a tenth of them, {n_values // 10:,}", ("values", n_values // 10), ""),
                                   (f"fit of {n_clients:,} records, d={d}", ("fit", n_clients, d), "1,500"),
                                   ("imports alone", ("fit", 100, d), "")):
        start = time.perf_counter()
        command = [sys.executable, __file__, "--worker", *map(str, arguments)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append([name, f"{int(done.stdout):,}", limit, time.perf_counter() - start])
    print("Largest resident memory of a process")
    print_table(["", "MB", "limit", "s"], rows)


def worker(kind, *numbers):
    """Worker: the process in which memory is measured."""
    from skldp import LDPBayesLinearRegression, LDPGaussian

    rng = np.random.default_rng(SEED)
    if kind == "values":
        model, size = LDPGaussian(), min(numbers[0], 10**6)
        one = model.protocol()._randomize(rng.normal(size=(size, 1)), None, 0)
        total = model.aggregate(np.roll(one, k) for k in range(numbers[0] // size))
        assert total.n_reports == numbers[0]
    else:
        X, y = regression_data(*numbers, rng)
        LDPBayesLinearRegression(inference="laplace", random_state=0).fit(X, y)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)


def grown(aggregate, n_clients, rng):
    """Return a simulated aggregate of more clients with the same distribution as those of an aggregate."""
    from skldp.protocols import Aggregate
    from skldp.protocols._tallies import Tally

    (protocol, tally), = aggregate.parts.items()
    shares = np.asarray(tally.sums / tally.n_reports, dtype=float)
    if hasattr(protocol, "cells") or getattr(protocol, "mechanism", "") == "rr":
        sums = np.array([rng.multinomial(n_clients, share / share.sum()) for share in np.atleast_2d(shares)])
        sums = sums.reshape(tally.sums.shape)
    elif hasattr(protocol, "categories"):
        sums = rng.binomial(n_clients, shares)
    else:
        sums = np.rint(shares * n_clients)
    return Aggregate({protocol: Tally(n_clients, sums.astype(tally.sums.dtype))})


def clients(sizes, repeats, **length):
    """Print the CPU time of a default fit after aggregation, to convergence, over the number of clients.

    ``length`` shortens a smoke run.
    """
    from _moment_sums import simulated_sums
    from _timing import print_table

    from skldp import (
        LDPBayesLinearRegression,
        LDPBayesLogisticRegression,
        LDPExponential,
        LDPGaussian,
        LDPHistogram,
        LDPPoisson,
    )

    rng = np.random.default_rng(SEED)
    X, y = regression_data(10**5, 5, rng)
    labels, categories = labels_of(X, rng), rng.integers(16, size=(10**5, 1))
    cases = [
        ("linear, sphere", LDPBayesLinearRegression(mechanism="sphere", **length), (X, y)),
        ("linear, axis", LDPBayesLinearRegression(mechanism="axis", **length), (X, y)),
        ("linear, Gaussian moments", LDPBayesLinearRegression(mechanism="gaussian", **length), (X, y)),
        ("linear, noisy records", LDPBayesLinearRegression(mechanism="records", **length), (X, y)),
        ("logistic, sphere", LDPBayesLogisticRegression(classes=(0, 1), mechanism="sphere", n_rounds=1, **length),
         (X, labels)),
        ("logistic, axis", LDPBayesLogisticRegression(classes=(0, 1), mechanism="axis", n_rounds=1, **length),
         (X, labels)),
        ("histogram, counts of subsets", LDPHistogram(categories=range(16), likelihood="counts", **length),
         (categories,)),
        ("histogram, randomised response", LDPHistogram(categories=range(16), mechanism="rr", **length), (categories,)),
        ("Gaussian, square wave", LDPGaussian(**length), (X[:, :1],)),
        ("Gaussian, Laplace", LDPGaussian(mechanism="laplace", **length), (X[:, :1],)),
        ("exponential, square wave", LDPExponential(**length), (np.abs(X[:, :1]),)),
        ("Poisson, square wave", LDPPoisson(**length), (np.round(np.abs(X[:, :1]) * 20),)),
    ]
    rows = []
    for name, model, data in cases:
        model.set_params(random_state=0)
        few = model.aggregate(model.privatize(*(values[:sizes[0]] for values in data)))
        if len(data) == 2 and model.mechanism != "records":
            many = simulated_sums(model.protocol(X.shape[1]), *data, sizes[1], rng)
        else:
            many = grown(model.aggregate(model.privatize(*data)), sizes[1], rng)
        medians = []
        for aggregate in (few, many):
            times = []
            for seed in range(repeats):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    start = time.process_time()
                    model.set_params(random_state=seed).fit_reports(aggregate)
                    times.append(time.process_time() - start)
            medians.append(float(np.median(times)))
        rows.append([name, *medians, f"{medians[1] / medians[0]:.2f}"])
    print(f"CPU seconds of a fit after aggregation, to convergence, median of {repeats}")
    print_table(["", *(f"N={size:,}" for size in sizes), "ratio (at most 1.5)"], rows)


def bytes_per_report():
    """Print the size of a report on disk, and of the same numbers as floats."""
    import io

    from _timing import print_table

    from skldp.protocols import (
        CategoryProtocol,
        LabelMomentProtocol,
        LabelRecordProtocol,
        MomentProtocol,
        RecordProtocol,
        ValueProtocol,
        save_reports,
    )

    n = 20_000
    X, y = regression_data(n, 10, np.random.default_rng(SEED))
    labels, categories = (y > 0).astype(int), np.zeros((n, 1), dtype=int)
    cases = [("value, square wave", ValueProtocol(), X[:, :1], None),
             ("value, Laplace", ValueProtocol(mechanism="laplace"), X[:, :1], None),
             ("value, Gaussian", ValueProtocol(mechanism="gaussian", delta=1e-5), X[:, :1], None),
             ("subset, d=100", CategoryProtocol(categories=tuple(range(100))), categories, None),
             ("unary, d=100", CategoryProtocol(categories=tuple(range(100)), mechanism="oue"), categories, None),
             ("randomised response, d=100", CategoryProtocol(categories=tuple(range(100)), mechanism="rr"), categories,
              None),
             ("moments, sphere, d=10", MomentProtocol(n_features=10), X, y),
             ("moments, Gaussian, d=10", MomentProtocol(n_features=10, mechanism="gaussian"), X, y),
             ("moments with label, sphere, d=10", LabelMomentProtocol(n_features=10), X, labels),
             ("noisy record, d=10", RecordProtocol(n_features=10), X, y),
             ("noisy record with label, d=10", LabelRecordProtocol(n_features=10), X, labels)]
    rows = []
    for name, protocol, records, response in cases:
        file = io.BytesIO()
        save_reports(file, protocol._randomize(records, response, 0), protocol)
        rows.append([name, f"{protocol.width}", f"{file.tell() / n:.1f}", f"{8 * protocol.width}"])
    print("Bytes of a report in a file of 20,000, header included")
    print_table(["report", "integers", "bytes", "as float64"], rows)


def workers(n_files, n_reports, repeats):
    """Print the throughput of two dask workers relative to one, from files of moment reports."""
    if importlib.util.find_spec("distributed") is None:
        print('dask is not installed: no comparison of workers. pip install "skldp[dask]" brings it.\n')
        return
    import dask
    import dask.array
    import distributed
    from _timing import best_time, print_table

    from skldp import LDPBayesLinearRegression

    model = LDPBayesLinearRegression(random_state=0)
    X, y = regression_data(n_reports, 10, np.random.default_rng(SEED))
    reports = model.privatize(X, y)
    rates, sums = [], []
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(folder, f"{k}.npy") for k in range(n_files)]
        for k, path in enumerate(paths):
            np.save(path, np.roll(reports, k, axis=0))
        load = dask.delayed(np.load, pure=True)
        lazy = dask.array.concatenate([dask.array.from_delayed(load(path), reports.shape, reports.dtype)
                                       for path in paths])
        for n_workers in (1, 2):
            with distributed.LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=True,
                                          dashboard_address=":0") as cluster, distributed.Client(cluster):
                seconds = best_time(lambda: sums.append(model.aggregate(lazy)), repeats)
            rates.append(n_files * n_reports / seconds)
    same = all((one.parts[one.protocol].sums == sums[0].parts[one.protocol].sums).all() for one in sums)
    print(f"dask on one machine: {n_files} files of {n_reports:,} moment reports (d=10, sphere)")
    print_table(["workers", "reports per second"], [["1", f"{rates[0]:.2e}"], ["2", f"{rates[1]:.2e}"]])
    print(f"Two workers over one: {rates[1] / rates[0]:.2f} (target 1.4); the sums are "
          f"{'the same to the last digit' if same else 'DIFFERENT'}\n")


def stream(n_clients, d, n_days, n_steps=None):
    """Compare a warm start with a cold start after one more day of reports; ``n_steps`` shortens a smoke run."""
    from _timing import print_table

    from skldp import MCMC, LDPBayesLinearRegression, LDPBayesLogisticRegression, LDPGaussian, LDPHistogram

    inference = MCMC() if n_steps is None else MCMC(n_warmup=n_steps, n_draws=n_steps)
    rng = np.random.default_rng(SEED)
    X, y = regression_data(n_clients, d, rng)
    cases = [("linear", LDPBayesLinearRegression(), (X, y)),
             ("logistic", LDPBayesLogisticRegression(classes=(0, 1), n_rounds=1), (X, labels_of(X, rng))),
             ("histogram, counts, d=50", LDPHistogram(categories=range(50), likelihood="counts"),
              (rng.integers(50, size=(n_clients, 1)),)),
             ("Gaussian", LDPGaussian(), (X[:, :1],))]
    rows = []
    for name, model, data in cases:
        model.set_params(random_state=0, inference=inference)
        reports = model.privatize(*data)
        days = np.array_split(reports, n_days)
        total = model.aggregate(days[0])
        model.fit_reports(total)
        times: dict = {"cold": [], "warm": []}
        apart = []
        for day in days[1:]:
            total = total + model.aggregate(day)
            means = {}
            for kind in times:
                model.set_params(warm_start=kind == "warm")
                start = time.perf_counter()
                model.fit_reports(total)
                times[kind].append(time.perf_counter() - start)
                name_of = next(iter(model.posterior_.draws))
                means[kind] = model.posterior_.mean()[name_of], model.posterior_.std()[name_of]
            apart.append(np.max(np.abs(means["cold"][0] - means["warm"][0]) / means["cold"][1]))
        cold, warm = np.mean(times["cold"]), np.mean(times["warm"])
        rows.append([name, cold, warm, f"{warm / cold:.2f}", f"{max(apart):.2f}"])
    print(f"A day more of reports, {n_clients // n_days:,} a day, mean of {n_days - 1} days: seconds of a fit")
    print_table(["", "cold", "warm", "warm : cold", "means apart, posterior sd"], rows)


def correlated_data(n, d, rng):
    """Return records with five common factors, most of norm below one, with responses of a standard deviation of 0.4.

    Without privacy a regression leaves a standard deviation of 0.2.
    """
    X = rng.normal(size=(n, 5)) @ rng.normal(size=(5, d)) + rng.normal(size=(n, d))
    X *= 0.6 / np.sqrt(np.mean(np.vecdot(X, X)))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    line = X @ rng.normal(size=d)
    return X, np.clip(0.35 * line / line.std() + 0.2 * rng.normal(size=n), -1, 1)


def moments_with_noise(protocol, X, y, rng):
    """Return an aggregate as that of one report of each row: the moments of the rows, with normal noise."""
    from skldp.protocols import Aggregate
    from skldp.protocols._tallies import Tally

    mechanism, n = protocol.randomizer, len(X)
    v = np.column_stack([np.full(n, mechanism.intercept_weight), X, mechanism.y_weight * y])
    rows, columns = mechanism.places
    mean = (v.T @ v / n)[rows, columns] * mechanism._isometry
    mean += rng.normal(scale=np.sqrt(mechanism.noise_variance / n), size=len(mean))
    ends = mechanism.decode(np.array([[0] * mechanism.width, [1] * mechanism.width]))
    sums = np.rint((mean - ends[0]) / (ends[1] - ends[0]) * n).astype(np.int64)
    return Aggregate({protocol: Tally(n, np.append(sums, np.zeros(mechanism.width - len(sums), int)).astype(object))})


def features(n_clients, numbers, budgets, longest):
    """Print times and errors of regressions on many correlated features, beside private gradients."""
    from _timing import print_table

    from skldp import LDPBayesLinearRegression, LDPSGDRegressor

    rows = []
    warnings.simplefilter("ignore")  # few reports for so many coefficients
    for d in numbers:
        rng = np.random.default_rng(SEED)
        X, y = correlated_data(n_clients, d, rng)
        for epsilon in budgets:
            row = [f"{d}", f"{epsilon:g}"]
            for inference in ("laplace", "mcmc"):
                model = LDPBayesLinearRegression(epsilon=epsilon, mechanism="sphere", inference=inference,
                                                 random_state=0)
                if inference == "mcmc" and d > longest:
                    row += ["", "", ""]
                    continue
                aggregate = moments_with_noise(model.protocol(d), X, y, np.random.default_rng(SEED))
                start = time.process_time()
                model.fit_reports(aggregate)
                row += [time.process_time() - start, np.sqrt(np.mean((y - model.predict(X)) ** 2)),
                        np.median(model.coef_std_)]
            start = time.process_time()
            sgd = LDPSGDRegressor(epsilon=epsilon, mechanism="sphere", average=True, random_state=0).fit(X, y)
            row += [time.process_time() - start, np.sqrt(np.mean((y - sgd.predict(X)) ** 2))]
            rows.append(row)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"Regressions of {n_clients:,} clients on correlated features, sphere moments: CPU seconds of inference,\n"
          f"RMSE, and median standard deviation of a coefficient. y has a standard deviation of {y.std():.2f}; 0.2 is\n"
          f"the RMSE without privacy. Largest resident memory {memory:,} MB, records {X.nbytes // 2**20:,} MB")
    print_table(["d", "epsilon", "laplace", "RMSE", "sd", "chains", "RMSE", "sd", "gradients", "RMSE"], rows)


def main():
    """Run the blocks."""
    if len(sys.argv) > 1 and sys.argv[1] == "--worker":
        kind, *numbers = sys.argv[2:]
        worker(kind, *map(int, numbers))
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sys.path.insert(0, str(Path(__file__).parent))
    from _timing import print_header
    from sklearn.exceptions import ConvergenceWarning
    from threadpoolctl import threadpool_limits

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small blocks, for a smoke run")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=BLOCKS, help="what to measure (default all)")
    arguments = parser.parse_args()
    quick = arguments.quick
    if quick:
        warnings.simplefilter("ignore", ConvergenceWarning)  # chains are short on purpose
    print_header("Scale", "dask", "distributed", "emcee", seed=SEED)
    from skldp import MCMC

    short = MCMC(n_warmup=20, n_draws=20)
    runs = {
        "throughput": lambda: throughput(20_000 if quick else 200_000, 1 if quick else 5),
        "memory": lambda: memory(*((2 * 10**6, 10**4, 20) if quick else (10**8, 10**6, 20))),
        "clients": lambda: clients((10**4, 10**8), 1, inference=short) if quick else clients((10**4, 10**8), 3),
        "bytes": bytes_per_report,
        "workers": lambda: workers(*((4, 20_000, 1) if quick else (16, 250_000, 3))),
        "stream": lambda: stream(4000, 2, 2, n_steps=50) if quick else stream(60_000, 8, 4),
        "features": lambda: features(*((20_000, (50,), (4,), 0) if quick else (10**6, (50, 100), (1, 2, 4, 8), 50))),
    }
    with threadpool_limits(1):
        for block in arguments.blocks:
            runs[block]()


if __name__ == "__main__":
    main()
