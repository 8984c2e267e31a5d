"""People needed if clients split their budget over k columns, and if they report one column with the whole budget.

The first table is computed from the Fisher information of a report (:func:`skldp.required_reports`), for a 90 %
interval of a mean or of a standard deviation as wide as 2 % of the range. Its last columns say which way needs fewer
people on average over spreads of 5 to 25 % of the range, and which way ``columns="auto"`` takes. The second table
compares the ratio of people with the ratio of posterior variances in simulated collections.

Run with ``python benchmarks/table_columns.py`` (a minute); ``--quick`` computes a few lines. All numbers are written to
``benchmarks/results``.
"""

import argparse

import numpy as np
from _data import results_folder, write_table
from _timing import print_header, print_table

from skldp import LDPGaussian, required_reports
from skldp.protocols import SampledValueProtocol

SPREADS = (0.05, 0.1, 0.15, 0.25)  # standard deviations of the records, as shares of the range
WIDTH = 0.02
N_CLIENTS = 20_000


def model(columns, epsilon, mechanism="square_wave", seed=None):
    """Return the estimator for values in [0, 1]."""
    return LDPGaussian(epsilon=epsilon, bounds=(0, 1), mechanism=mechanism, columns=columns, inference="laplace",
                       random_state=seed)


def people(columns, epsilon, k, mechanism="square_wave"):
    """Return the number of people for each parameter and spread."""
    estimator = model(columns, epsilon, mechanism)
    return np.array([[required_reports(estimator, WIDTH, parameter=parameter, std=std, n_features=k)
                      for std in SPREADS] for parameter in ("mean", "std")])


def planned(mechanism, epsilon, k):
    """Compare both ways by the Fisher information."""
    split, sample = (people(columns, epsilon, k, mechanism) for columns in ("split", "sample"))
    ratio = np.exp(np.log(sample / split).mean())
    auto = isinstance(model("auto", epsilon, mechanism).protocol(k), SampledValueProtocol)
    return {"mechanism": mechanism, "epsilon": epsilon, "k": k, "mean, split": split[0, 1],
            "mean, sample": sample[0, 1], "sd, split": split[1, 1], "sd, sample": sample[1, 1], "ratio": ratio,
            "fewer": "sample" if ratio < 1 else "split", "auto": "sample" if auto else "split"}


def simulated(epsilon, k, n_repeats):
    """Compare the variances of posterior means of the columns' means over simulated collections with the plan."""
    estimates: dict = {"split": [], "sample": []}
    for seed in range(n_repeats):
        X = np.random.default_rng(seed).normal(0.5, SPREADS[1], size=(N_CLIENTS, k))
        for columns, found in estimates.items():
            found.append(model(columns, epsilon, seed=seed).fit(X).posterior_.std()["mean"] ** 2)
    ratios = np.mean(estimates["sample"], axis=1) / np.mean(estimates["split"], axis=1)
    plan = people("sample", epsilon, k)[0, 1] / people("split", epsilon, k)[0, 1]
    return {"epsilon": epsilon, "k": k, "planned ratio": plan, "simulated ratio": ratios.mean(),
            "standard error": ratios.std(ddof=1) / np.sqrt(n_repeats)}


def show(title, rows, path):
    """Write rows, and print them under a title."""
    write_table(rows, path)
    print(title)
    print_table(list(rows[0]), [list(row.values()) for row in rows])


def main():
    """Compute, write and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few lines of each table, for a smoke run")
    quick = parser.parse_args().quick
    epsilons, sizes, mechanisms = (0.5, 1.0, 4.0, 8.0, 12.0), (2, 5, 10), ("square_wave", "laplace")
    if quick:
        epsilons, sizes, mechanisms = (1.0, 10.0), (2,), ("square_wave",)
    print_header("Several columns", seed=0)
    show("People needed at a spread of 10 % of the range; ratio: average over mean and sd, and over spreads",
         [planned(mechanism, epsilon, k) for mechanism in mechanisms for epsilon in epsilons for k in sizes],
         results_folder(quick) / "table_columns.csv")
    show(f"Variance of the mean, sample : split, with {N_CLIENTS} clients",
         [simulated(epsilon, k, 2 if quick else 6) for epsilon in epsilons[:1 if quick else 3] for k in sizes[:2]],
         results_folder(quick) / "table_columns_simulated.csv")


if __name__ == "__main__":
    main()
