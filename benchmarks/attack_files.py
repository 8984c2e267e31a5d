"""Memory and time that hostile files and messages cost their receivers, and unexpected errors that they cause.

Run with ``python benchmarks/attack_files.py`` for 10,000 mutations of honest files of every kind and the crafted ones;
``--quick`` takes 400. Mutations are flipped bytes, cuts, fields replaced by extreme values, members or entries that are
repeated, dropped or put in another order, and pieces of one file inside another. All are below 1 MB.

Each file is read in a child process as its receiver would: a client reads a protocol or a model and reports one
record, an aggregator reads an aggregate's number of reports or a file of reports. Seconds are processor time, because
wall-clock time includes other programs. Memory is the peak above the memory of the child before each file. A file that
exceeds a limit is measured again, alone.
"""

import argparse
import multiprocessing
import resource
import sys
import time

from _crafted import crafted
from _hostile import honest, mutations, receive
from _timing import print_header, print_table

SEED = 0
MOST_MEGABYTES, MOST_SECONDS = 200, 1.0  # limits for one file
ADDRESS_SPACE = 6 * 2**30  # of a child, so that a file that needs more causes an error and does not stop the machine
BATCH = 250
WORST = 8


def peak_megabytes():
    """Return the peak memory of this process since the last reset."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 2**10
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def reset_peak():
    """Reset the peak memory; on systems without this, only a file that exceeds all earlier ones is detected."""
    try:
        with open("/proc/self/clear_refs", "w") as references:
            references.write("5")
    except OSError:
        pass


def cost(kind, data):
    """Return the outcome of reading a file, its processor seconds, and the growth of the peak memory."""
    reset_peak()
    before, start = peak_megabytes(), time.process_time()
    try:
        outcome = receive(kind, data)
    except BaseException as error:  # any unexpected error is a finding
        outcome = f"foreign error {type(error).__name__}"
    return outcome, time.process_time() - start, peak_megabytes() - before


def run_batch(batch):
    """Return the costs of several files in a new process, after honest files of each kind have loaded the modules."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    for kind, data in honest().values():
        receive(kind, data)
    return [cost(kind, data) for _, kind, data in batch]


def measure(files, n_processes=1):
    """Return the costs of all files; those that exceed a limit are measured again, each alone."""
    batches = [files[start:start + BATCH] for start in range(0, len(files), BATCH)]
    # Spawned, because a forked child's peak memory would include that of its parent.
    with multiprocessing.get_context("spawn").Pool(n_processes, maxtasksperchild=1) as pool:
        costs = [one for batch in pool.imap(run_batch, batches) for one in batch]
        for number, (outcome, seconds, memory) in enumerate(costs):
            if memory > MOST_MEGABYTES or seconds > MOST_SECONDS:
                costs[number] = pool.apply(run_batch, ([files[number]],))[0]
    return costs


def summary(group, costs):
    """Return a row of the table: numbers of refused and accepted files of a group, and their largest costs."""
    outcomes = [outcome for outcome, _, _ in costs]
    foreign = sum(outcome.startswith("foreign") for outcome in outcomes)
    return [group, str(len(costs)), str(outcomes.count("refused")), str(outcomes.count("accepted")), str(foreign),
            max(seconds for _, seconds, _ in costs), max(memory for _, _, memory in costs)]


def main():
    """Make the files, measure them, and print the worst."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="400 mutations")
    n_mutations = 400 if parser.parse_args().quick else 10_000
    print_header("Hostile files and messages", seed=SEED)
    by_hand = [(name, kind, data) for name, (kind, data) in crafted().items()]
    files = by_hand + mutations(n_mutations, SEED)
    assert all(len(data) <= 2**20 for _, _, data in files)
    costs = measure(files)
    columns = ["files", "number", "refused", "accepted", "foreign errors", "most seconds", "most MB"]
    rows = [summary(f"{kind}: {name}", [one]) for (name, kind, _), one in zip(by_hand, costs)]
    print(f"Crafted by hand: the worst {WORST} of {len(rows)} in seconds, and in memory")
    print_table(columns, sorted(rows, key=lambda row: -row[-2])[:WORST])
    print_table(columns, sorted(rows, key=lambda row: -row[-1])[:WORST])
    print(f"Mutations: {n_mutations}")
    groups = {}
    for (name, kind, _), one in zip(files[len(by_hand):], costs[len(by_hand):]):
        groups.setdefault(f"{kind}: {name}", []).append(one)
    print_table(columns, [summary(name, found) for name, found in sorted(groups.items())])
    print_table(columns, [summary("crafted", costs[:len(by_hand)]), summary("mutated", costs[len(by_hand):])])
    excessive = [file[:2] + one for file, one in zip(files, costs)
                 if one[0].startswith("foreign") or one[1] > MOST_SECONDS or one[2] > MOST_MEGABYTES]
    for name, kind, outcome, seconds, memory in excessive[:20]:
        print(f"{kind} ({name}): {outcome}, {seconds:.2f} s, {memory:.0f} MB")
    print(f"Beyond {MOST_MEGABYTES} MB or {MOST_SECONDS:g} s, or foreign errors: {len(excessive) or 'none'}")


if __name__ == "__main__":
    main()
