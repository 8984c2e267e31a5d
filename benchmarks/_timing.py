"""Timing and printing shared by the benchmarks."""

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version


def best_time(function, repeats=5):
    """Return the shortest wall-clock time of several calls, in seconds, after one call to warm up."""
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def machine_cpu():
    """Return the CPU seconds used by all processes of the machine, or NaN if the system does not provide them."""
    try:
        with open("/proc/stat") as file:
            user, nice, system, _, _, irq, softirq = map(int, file.readline().split()[1:8])
    except OSError:
        return float("nan")
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def print_header(title, *packages, seed=None):
    """Print the title, seed, number of cores and versions."""
    print(f"{title}\n{'=' * len(title)}")
    versions = []
    for package in ("skldp", "numpy", "scipy", *packages):
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    start = "" if seed is None else f"Seed {seed}; "
    print(f"{start}Python {platform.python_version()}, {os.cpu_count()} cores; {', '.join(versions)}\n")


def print_table(columns, rows):
    """Print rows as an aligned table."""
    cells = [list(columns)] + [[cell if isinstance(cell, str) else f"{cell:.4g}" for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]
    for number, row in enumerate(cells):
        print("  ".join(cell.ljust(width) if i == 0 else cell.rjust(width)
                        for i, (cell, width) in enumerate(zip(row, widths))))
        if number == 0:
            print("  ".join("-" * width for width in widths))
    print()
