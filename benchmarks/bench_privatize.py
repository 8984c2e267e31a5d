"""Speed of making reports: ours against OpenDP, multi-freq-ldpy and unsafe NumPy noise, in one run.

Run with ``python benchmarks/bench_privatize.py``; ``--quick`` shrinks every block. A peer that is not installed is left
out; ``pip install "skldp[bench]"`` installs them all.
"""

import argparse
import subprocess
import sys
import time

import numpy as np
from _timing import best_time, print_header, print_table

from skldp.mechanisms import Gaussian, Laplace, RandomizedResponse, Sphere, SquareWave, SubsetSelection, UnaryEncoding
from skldp.privacy import labelled_moment_radius
from skldp.protocols import CountRoundProtocol, LabelMomentProtocol, MomentProtocol, Protocol, RoundProtocol

SEED = 0  # of the records; noise comes from the operating system


def noise(n, n_peer):
    """Time Laplace and Gaussian noise, per value."""
    x = np.random.default_rng(SEED).uniform(-1, 1, size=n)
    rng = np.random.default_rng()
    unsafe = {"laplace": lambda: x + rng.laplace(size=n), "gaussian": lambda: x + rng.normal(size=n)}
    ours = {
        "laplace": lambda: Laplace().randomize(x),
        "gaussian": lambda: Gaussian(n_features=1).randomize(x[:, None]),
    }
    rows = []
    for law in ("laplace", "gaussian"):
        mine = best_time(ours[law]) / n
        naive = best_time(unsafe[law]) / n
        peer = opendp_time(law, x[:n_peer])
        rows.append([law, mine * 1e9, naive * 1e9, mine / naive, peer * 1e9, peer / mine])
    print(f"Noise, {n:,} values, operating system's entropy (OpenDP: {n_peer:,} values in one vector call)")
    print_table(["mechanism", "ours ns", "unsafe NumPy ns", "ours/NumPy", "OpenDP ns", "OpenDP/ours"], rows)


def opendp_time(law, x):
    """Return the seconds per value of OpenDP's vector mechanism, or NaN if it is not installed."""
    try:
        import opendp.prelude as dp
    except ImportError:
        return float("nan")
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    if law == "laplace":
        mechanism = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=1.0)
    else:
        mechanism = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=1.0)
    values = x.tolist()
    return best_time(lambda: mechanism(values), 3) / len(x)


def categories(n, d):
    """Time unary encoding and aggregation against multi-freq-ldpy, and subsets against unary encoding, per record."""
    x = np.random.default_rng(SEED).integers(d, size=n)
    unary, subset = UnaryEncoding(n_categories=d), SubsetSelection(n_categories=d)
    reports = unary.randomize(x)
    mine, count = best_time(lambda: unary.randomize(x)) / n, best_time(lambda: unary.counts(reports)) / n
    peer, peer_count = multi_freq_times(x[: n // 5], d)
    subsets = best_time(lambda: subset.randomize(x)) / n
    rows = [
        ["unary encoding, client", mine * 1e6, peer * 1e6, peer / mine],
        ["unary encoding, aggregation", count * 1e6, peer_count * 1e6, peer_count / count],
    ]
    print(f"Categories, {n:,} records, d={d}, epsilon=1 (multi-freq-ldpy: {n // 5:,} records)")
    print_table(["task", "ours us", "multi-freq-ldpy us", "theirs/ours"], rows)
    print(f"Subset selection: {subsets * 1e6:.3g} us a record, {subsets / mine:.2f} times unary encoding (limit 10)\n")


def multi_freq_times(x, d):
    """Return the seconds per record of the peer's client and aggregator, or NaN if it is not installed."""
    try:
        from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client
    except ImportError:
        return float("nan"), float("nan")
    records = [int(value) for value in x]
    reports = [UE_Client(value, d, 1.0) for value in records]
    client = best_time(lambda: [UE_Client(value, d, 1.0) for value in records]) / len(x)
    return client, best_time(lambda: UE_Aggregator_MI(reports, 1.0)) / len(x)


def vectors(n, m):
    """Time the sphere against the Gaussian mechanism, and the square wave against Laplace noise."""
    rng = np.random.default_rng(SEED)
    x = rng.normal(size=(n, m))
    x /= 1.3 * np.linalg.norm(x, axis=1, keepdims=True)
    sphere, gaussian = Sphere(n_features=m - 1), Gaussian(n_features=m)
    times = best_time(lambda: sphere.randomize(x[:, :-1]), 3), best_time(lambda: gaussian.randomize(x), 3)
    values = rng.uniform(-1, 1, size=10 * n)
    waves = best_time(lambda: SquareWave().randomize(values)), best_time(lambda: Laplace().randomize(values))
    print_table(["pair", "ours s", "paper's s", "ratio (at most 3)"], [
        [f"sphere : Gaussian, {n:,} x {m}", *times, times[0] / times[1]],
        [f"square wave : Laplace, {10 * n:,}", *waves, waves[0] / waves[1]],
    ])


def sphere_moments(n, m):
    """Estimate the bias and variance of the sphere mechanism by simulation."""
    mechanism = Sphere(epsilon=1.0, n_features=m - 1)
    record = np.zeros(m - 1)
    record[0], record[1] = 0.6, -0.5
    total, square, done = np.zeros(m - 1), np.zeros(m - 1), 0
    while done < n:
        size = min(100_000, n - done)
        deviation = mechanism.decode(mechanism.randomize(np.tile(record, (size, 1)))) - record
        total, square, done = total + deviation.sum(axis=0), square + (deviation**2).sum(axis=0), done + size
    z = total / np.sqrt(n * mechanism.noise_variance)
    gamma = mechanism.gamma
    formula = (1 - gamma**2) / (m * gamma**2)
    ratio = square / n / formula
    print(f"Sphere, {n:,} reports, m={m}, epsilon=1: largest |z| of the mean {np.abs(z).max():.2f} (below 4); variance "
          f"over rho^2(1-gamma^2)/(m gamma^2)={formula:.4f}: {ratio.mean():.5f} on average, entries from "
          f"{ratio.min():.4f} to {ratio.max():.4f}\n")


def one_record():
    """Time one report, and the start of a client."""
    d = 8
    moments = (d + 2) * (d + 3) // 2 - 2
    radius = labelled_moment_radius(1.0, d, 0.5, 0.7)
    cases = [
        ("value, square wave", SquareWave(), np.array([0.3])),
        ("value, Laplace", Laplace(), np.array([0.3])),
        ("category of 16, randomised response", RandomizedResponse(n_categories=16), np.array([3])),
        ("category of 16, subset", SubsetSelection(n_categories=16), np.array([3])),
        ("category of 16, unary", UnaryEncoding(n_categories=16), np.array([3])),
        (f"moments of d={d} ({moments} entries), sphere", Sphere(norm=radius, n_features=moments),
         np.full((1, moments), 0.05)),
    ]
    rows = [[name, best_time(lambda: [mechanism.randomize(x) for _ in range(200)]) / 200 * 1e6]
            for name, mechanism, x in cases]
    print_table(["one report", "us (below 150)"], rows)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import skldp.protocols"], check=True)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import numpy, scipy.special"], check=True)
    print(f"A client's start: import skldp.protocols {ours:.2f} s, numpy and scipy.special alone "
          f"{time.perf_counter() - start:.2f} s\n")


def regressions(n, d=10):
    """Time whole clients of regressions, from the published protocol to the report, and show the sizes."""
    rng = np.random.default_rng(SEED)
    X, domain = rng.uniform(-0.5, 0.5, size=(n, d)) / np.sqrt(d), {"n_features": d}
    frame = {"centre": tuple(rng.normal(scale=0.1, size=d)), "transform": tuple(np.eye(d).ravel())}
    cases = [("moments, linear", MomentProtocol(**domain), rng.uniform(-1, 1, size=n)),
             ("moments, two labels (round 1)", LabelMomentProtocol(**domain), rng.integers(2, size=n))]
    for n_classes in (2, 5):
        theta = tuple(rng.normal(size=(n_classes - 1) * (d + 1)))
        protocol = RoundProtocol(classes=tuple(range(n_classes)), theta=theta, **domain, **frame)
        cases.append((f"later round, {n_classes} labels", protocol, rng.integers(n_classes, size=n)))
    counts = CountRoundProtocol(theta=tuple(rng.normal(size=d + 1)), **domain, **frame)
    cases.append(("later round, counts", counts, rng.poisson(2.0, size=n)))
    rows = []
    for name, protocol, y in cases:
        text, report = protocol.to_json(), protocol.privatize(X[:1], y[:1])
        first = best_time(lambda: Protocol.from_json(text).privatize(X[0], y[0]), 20)
        rows.append([name, report.shape[1], report.nbytes, len(text) / 1000, first * 1e3,
                     best_time(lambda: protocol.privatize(X, y), 3) / n * 1e6])
    print(f"Clients of regressions, {d} columns, epsilon=1: one that reads the protocol and reports, and {n:,} at once")
    print_table(["report", "integers", "bytes", "protocol kB", "one client ms", "in bulk us each"], rows)


def main():
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small blocks, for a smoke run")
    shrink = 10 if parser.parse_args().quick else 1
    print_header("Making reports", "opendp", "multi-freq-ldpy", "numba", seed=SEED)
    noise(10**6 // shrink, 20_000 // shrink)
    categories(10**5 // shrink, 100)
    vectors(10**5 // shrink, 66)
    one_record()
    regressions(20_000 // shrink)
    sphere_moments(10**6 // shrink, 66)


if __name__ == "__main__":
    main()
