"""False alarms and power of ``check_reports``, for honest and for forged reports.

- *honest*: collections of every protocol from records that are constant, at the ends of their domain, uniform, or
  missing, of 1 to 10,000 clients at epsilon 0.1, 1 and 8: alarms at the level of the warning, and how often the p-value
  is below 1, 5 and 20 %.
- *power*: shares of 0.1, 1 and 5 % of forged reports among honest ones at epsilon 1. They are copies of the report that
  shifts a posterior mean most (see ``influence_bound``), copies of one honest report, honest reports of the most
  extreme record, and uniformly random valid reports. Honest reports of false records could have come from clients with
  those records, so no valid test detects them. The same holds for random reports if all reports are about equally
  probable.

Run with ``python benchmarks/attack_lies.py``; ``--quick`` shrinks both blocks, ``--blocks`` chooses. Tables are
written to ``benchmarks/results``.
"""

import argparse
import time
import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable

import numpy as np
from _data import results_folder, write_table
from _timing import print_header, print_table
from threadpoolctl import threadpool_limits

from skldp import LDPBayesLinearRegression, LDPBayesLogisticRegression, LDPGaussian, LDPHistogram
from skldp.analysis.report_checks._check import WARNING_LEVEL, check_aggregate
from skldp.exceptions import InvalidReportError
from skldp.protocols import Aggregate, GradientProtocol
from skldp.protocols._tallies import PairTally, RowTally, Tally

SEED = 20220511
EPSILONS, SIZES, SHARES = (0.1, 1.0, 8.0), (1, 10, 100, 1000, 10_000), (0.001, 0.01, 0.05)
BLOCKS = ("honest", "power")
LEVELS = (0.01, 0.05, 0.2)
DATA = ("constant", "one end", "both ends", "uniform", "missing")
LIES = ("most pulling", "copies", "extreme record", "random")
QUICK = {"inference": "laplace", "random_state": 0}


@dataclass(frozen=True)
class Case:
    """A protocol, its records, and the estimator that forged reports try to shift."""

    name: str
    protocol: Any
    records: Callable
    estimator: Any = None
    parameter: str = "mean"


def values(kind, n, rng):
    """Return one value for each client, from -5 to 5."""
    ends = np.where(np.arange(n) % 2, 5.0, -5.0)
    column = {"constant": np.zeros(n), "one end": np.full(n, 5.0), "both ends": ends, "missing": np.full(n, np.nan),
              "uniform": rng.uniform(-5, 5, n), "normal": rng.normal(0, 1, n)}[kind]
    return column[:, None], None


def categories(kind, n, rng):
    """Return one of 16 categories for each client."""
    column = {"constant": np.full(n, 3), "one end": np.zeros(n), "both ends": 15 * (np.arange(n) % 2),
              "missing": np.full(n, 99), "uniform": rng.integers(16, size=n),
              "normal": np.minimum(rng.geometric(0.3, size=n) - 1, 15)}[kind]
    return column[:, None].astype(int), None


def vectors(kind, n, rng):
    """Return three features and a response for each client."""
    X, y = {"constant": (np.full((n, 3), 0.3), np.zeros(n)), "one end": (np.tile([1.0, 0, 0], (n, 1)), np.ones(n)),
            "both ends": (np.where(np.arange(n) % 2, 1, -1)[:, None] * [[0.0, 1.0, 0.0]], np.ones(n)),
            "missing": (np.full((n, 3), np.nan), np.full(n, np.nan)),
            "uniform": (rng.uniform(-1, 1, (n, 3)), rng.uniform(-1, 1, n)),
            "normal": (0.3 * rng.normal(size=(n, 3)), 0.3 * rng.normal(size=n))}[kind]
    return X, y


def labels(kind, n, rng):
    """Return three features and a label -1 or 1 for each client; 7 is a missing label."""
    X, y = vectors(kind, n, rng)
    return X, np.where(np.isnan(y), 7, np.where(y >= 0, 1, -1))


def cases():
    """Return every protocol at epsilon 1."""
    made = []
    for mechanism in ("square_wave", "laplace", "gaussian"):
        model = LDPGaussian(mechanism=mechanism, **QUICK)
        made.append(Case(f"values, {mechanism}", model.protocol(1), values, model))
    for mechanism in ("subset", "oue", "rr"):
        model = LDPHistogram(categories=range(16), mechanism=mechanism, **QUICK)
        made.append(Case(f"16 categories, {mechanism}", model.protocol(1), categories, model, "frequencies"))
    for mechanism in ("sphere", "gaussian", "records"):
        model = LDPBayesLinearRegression(mechanism=mechanism, **QUICK)
        made.append(Case(f"linear, {mechanism}", model.protocol(3), vectors, model, "coef"))
        model = LDPBayesLogisticRegression(classes=(-1, 1), mechanism=mechanism, **QUICK)
        made.append(Case(f"logistic, {mechanism}", model.protocol(3), labels, model, "coef"))
    for mechanism in ("sphere", "gaussian"):
        made.append(Case(f"gradients, {mechanism}", GradientProtocol(n_features=3, mechanism=mechanism), labels))
    return made


def reports_of(case, protocol, kind, n, rng):
    """Return reports of simulated clients."""
    return protocol._randomize(*case.records(kind, n, rng), int(rng.integers(2**31)))


def honest(n_collections, largest):
    """Count false alarms over honest collections of every protocol."""
    rows, sizes = [], [size for size in SIZES if size <= largest]
    for case in cases():
        p_values = []
        for number in range(n_collections):
            rng = np.random.default_rng([SEED, number])
            protocol = case.protocol.with_epsilon(EPSILONS[number % 3])
            kind, n = DATA[number // 3 % len(DATA)], sizes[number // 15 % len(sizes)]
            try:
                reports = reports_of(case, protocol, kind, n, rng)
                p_values.append(check_aggregate(protocol.aggregate(reports), reports).p_value)
            except InvalidReportError:  # unary encoding refuses one of 1e9 honest reports
                continue
        below = {f"below {level:g}": np.mean(np.array(p_values) <= level) for level in LEVELS}
        rows.append({"protocol": case.name, "collections": len(p_values), "smallest": min(p_values),
                     "alarms": int(np.sum(np.array(p_values) < WARNING_LEVEL)), **below})
    return rows


def effects_on(model, case):
    """Return the posterior covariances of the parameter with the effects of single reports on the log-density."""
    theta = model.posterior_.warm_starts[0].draws
    parts = {protocol: tally.only_sums() if isinstance(tally, (PairTally, RowTally)) else tally
             for protocol, tally in model.aggregate_.parts.items()}
    (protocol, tally), = parts.items()
    fitted = model._models(Aggregate(parts))[0]
    if fitted.report_log_likelihoods is not None:
        effects = fitted.report_log_likelihoods(protocol, theta)
    else:
        changed = [Aggregate({protocol: Tally(tally.n_reports, tally.sums + probe)}) for probe in protocol.directions()]
        before = fitted.log_density(theta)
        effects = np.array([model._models(one)[0].log_density(theta) for one in changed]) - before
    possible = np.isfinite(effects).all(axis=0)
    draws = np.asarray(fitted.constrain(theta)[case.parameter])[possible].reshape(possible.sum(), -1)[:, 0]
    return (draws - draws.mean()) @ effects[:, possible].T


def most_influential(case, reports):
    """Return the valid report that increases the posterior mean of the first parameter most."""
    protocol = case.protocol
    if case.estimator is None:
        return _farthest(protocol, np.eye(protocol.width)[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slopes = effects_on(case.estimator.fit_reports(reports), case)
    if case.records is values:
        cell = int(slopes.argmax())
        every = np.arange(protocol.randomizer.clamp[0], protocol.randomizer.clamp[1] + 1)
        inside = every[protocol.cells.index(every) == cell]
        # All reports of a cell have the same influence: an attacker avoids those in the far tail, which are improbable.
        return np.array([inside[np.abs(inside).argmin()]])
    if hasattr(protocol, "extreme_reports"):
        return protocol.extreme_reports()[slopes.argmax()]
    if not hasattr(protocol, "categories"):
        return _farthest(protocol, slopes)
    if not protocol.sends_bits:
        return np.array([slopes.argmax()])
    order, (fewest, most) = np.argsort(-slopes), protocol.randomizer.ones_range
    n_ones = max(fewest, 1) + int(np.cumsum(slopes[order])[max(fewest, 1) - 1:most].argmax())
    return np.isin(np.arange(len(slopes)), order[:n_ones]).astype(np.uint8)


def _farthest(protocol, slopes):
    """Return the vector report that is farthest in the direction of the slopes."""
    mechanism = protocol.randomizer
    if getattr(protocol, "mechanism", "") == "sphere":
        return np.rint(2**14 * slopes / np.linalg.norm(slopes)).astype(int)
    if len(slopes) != protocol.width:  # moments of records: the slopes of the first moments
        slopes = slopes[:protocol.width]
    clamp = mechanism.clamp[1] if isinstance(mechanism.clamp, tuple) else mechanism.clamp
    return (np.sign(slopes) * clamp).astype(int)


def random_reports(protocol, n, rng):
    """Return uniformly random valid reports."""
    mechanism, shape = protocol.randomizer, (n, protocol.width)
    if hasattr(protocol, "categories"):
        if not protocol.sends_bits:
            return rng.integers(protocol.n_categories, size=shape)
        fewest, most = mechanism.ones_range
        ranks = np.argsort(rng.random(shape), axis=1)
        size = rng.binomial(protocol.width, 0.5, (n, 1)).clip(fewest, most)  # nearly uniform for unary encoding
        return (ranks < size).astype(np.uint8)
    if getattr(protocol, "mechanism", "") == "sphere":
        normal = rng.normal(size=shape)
        return np.rint(2**14 * normal / np.linalg.norm(normal, axis=1, keepdims=True)).astype(int)
    if hasattr(mechanism, "label"):
        top = mechanism.vector.clamp[1]
        return np.column_stack([rng.integers(-top, top + 1, (n, protocol.width - 1)), rng.integers(2, size=n)])
    low, high = mechanism.clamp if isinstance(mechanism.clamp, tuple) else (-mechanism.clamp, mechanism.clamp)
    return rng.integers(low, high + 1, shape)


def forged(case, lie, reports, worst, n, rng):
    """Return forged reports of one kind."""
    if lie == "most pulling":
        return np.repeat(worst[None], n, axis=0)
    if lie == "copies":
        return np.repeat(reports[:1], n, axis=0)
    if lie == "extreme record":
        return reports_of(case, case.protocol, "one end", n, rng)
    return random_reports(case.protocol, n, rng)


def power(n_reports, n_repeats):
    """Compute the share of collections with forged reports that cause the warning, and the time of one check."""
    rows = []
    for case in cases():
        found: dict = {(lie, share): [] for lie in LIES for share in SHARES}
        seconds = []
        for number in range(n_repeats):
            rng = np.random.default_rng([SEED, number])
            reports = reports_of(case, case.protocol, "normal", n_reports, rng)
            worst = most_influential(case, reports[:10_000])
            for lie, share in found:
                n_fakes = round(share * n_reports)
                lies = forged(case, lie, reports, worst, n_fakes, rng).astype(reports.dtype)
                start = time.perf_counter()
                mixed = np.concatenate([reports[n_fakes:], lies])
                check = check_aggregate(case.protocol.aggregate(mixed), mixed)
                seconds.append(time.perf_counter() - start)
                found[lie, share].append(check.p_value < WARNING_LEVEL)
        for lie in LIES:
            rows.append({"protocol": case.name, "lie": lie, "reports": n_reports,
                         **{f"{share:.1%}": np.mean(found[lie, share]) for share in SHARES},
                         "seconds": max(seconds)})
    return rows


def main():
    """Run both blocks, print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few and small collections, for a smoke run")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=BLOCKS, help="which tables (default both)")
    arguments = parser.parse_args()
    quick = arguments.quick
    print_header("Lies among reports", seed=SEED)
    start = time.perf_counter()
    compute = {"honest": partial(honest, 30 if quick else 1000, 100 if quick else 10_000),
               "power": partial(power, 2000 if quick else 100_000, 1 if quick else 3)}
    with threadpool_limits(1):
        for name in arguments.blocks:
            rows = compute[name]()
            write_table(rows, results_folder(quick) / f"attack_lies_{name}.csv")
            print(f"{name}:")
            print_table(list(rows[0]), [list(row.values()) for row in rows])
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
