"""Comparison with OpenDP, multi-freq-ldpy, NumPyro, diffprivlib and scikit-learn in one run.

- *privatise*: the same noise on the same values (OpenDP), the same encoding of the same categories (multi-freq-ldpy).
  A difference: multi-freq-ldpy draws from NumPy's generator; our noise and OpenDP's come from the operating system.
- *sample*: effective draws of the same posterior from the same reports, NumPyro's NUTS and ours.
- *predict*: test scores on Wine Quality and Adult over epsilon. A difference, shown in the table: diffprivlib has
  central privacy, where a trusted curator has all records and adds noise once; ours has local privacy, without one.

Run with ``python benchmarks/table_peers.py``; ``--quick`` shrinks every block, ``--blocks`` chooses. A peer that is not
installed is left out. diffprivlib 0.6.6 imports with scikit-learn 1.5 and not with 1.9: ``--diffprivlib-python`` names
the interpreter of an environment in which it does; otherwise the table says why it is missing. Scores are written to
``benchmarks/results``.
"""

import argparse
import importlib.util
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

# No other imports here: the process of diffprivlib runs this file in a separate environment.
import numpy as np

SEED = 20220512
BLOCKS = ("privatise", "sample", "predict")
EPSILONS = (0.5, 1.0, 2.0, 4.0)
PROBE = "import diffprivlib as d, sklearn as s; print(f'version {d.__version__} with scikit-learn {s.__version__}')"
# Title and kind of privacy of every method, in the order of the table.
METHODS = {
    "sklearn": ("scikit-learn", "none"),
    "diffprivlib": ("diffprivlib", "central: a trusted curator"),
    "ours": ("ours, Bayesian", "local: one report each"),
    "gradients": ("ours, LDP-SGD", "local: in rounds"),
    "constant": ("the same for everybody", "perfect"),
}


def diffprivlib_scores(source, target):
    """Worker: fit diffprivlib's regression to the rows of a file, and write predictions of the test rows."""
    import warnings

    from diffprivlib.models import LinearRegression, LogisticRegression

    with np.load(source) as arrays:
        X, X_test, y, epsilon, seed = (arrays[name] for name in ("X", "X_test", "y", "epsilon", "seed"))
        bound = float(arrays["bound"])
    options = {"epsilon": float(epsilon), "fit_intercept": False, "random_state": int(seed)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it uses deprecated parameters of scikit-learn
        if bound:
            d = X.shape[1]
            model = LinearRegression(bounds_X=([-1.0] * d, [1.0] * d), bounds_y=(-bound, bound), **options)
            predictions = model.fit(X, y).predict(X_test)
        else:
            predictions = LogisticRegression(data_norm=1.0, **options).fit(X, y).decision_function(X_test)
    np.savez(target, predictions=predictions)


def from_diffprivlib(python, bound, X, X_test, y, epsilon, seed):
    """Return the predictions of diffprivlib, from a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "rows.npz", Path(folder) / "predictions.npz"
        np.savez(source, X=X, X_test=X_test, y=y, epsilon=epsilon, seed=seed, bound=bound)
        subprocess.run([python, __file__, "--worker", str(source), str(target)], check=True)
        with np.load(target) as arrays:
            return arrays["predictions"]


def wine_task(python, epsilon, repeat):
    """Return the negative root mean square errors of all methods on one split."""
    from _prepare import WINE_BOUND, wine_split
    from _utility import SHORT
    from sklearn.linear_model import LinearRegression

    from skldp import LDPBayesLinearRegression, LDPSGDRegressor

    X, X_test, y, y_test = wine_split(repeat)
    seed = int(np.random.default_rng([SEED, repeat, int(1000 * epsilon)]).integers(2**31))
    private = {"epsilon": epsilon, "bounds_y": (-WINE_BOUND, WINE_BOUND), "fit_intercept": False, "random_state": seed}
    predictions = {
        "sklearn": LinearRegression(fit_intercept=False).fit(X, y).predict(X_test),
        "ours": LDPBayesLinearRegression(inference=SHORT, **private).fit(X, y).predict(X_test),
        "gradients": LDPSGDRegressor(mechanism="sphere", **private).fit(X, y).predict(X_test),
        "constant": np.zeros(len(y_test)),
    }
    if python:
        predictions["diffprivlib"] = from_diffprivlib(python, WINE_BOUND, X, X_test, y, epsilon, seed)
    return {name: -float(np.sqrt(np.mean((y_test - values) ** 2))) for name, values in predictions.items()}


def adult_task(python, epsilon, repeat):
    """Return the areas under the curve of all methods on one split."""
    from _prepare import adult_split
    from _utility import SHORT
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    from skldp import LDPBayesLogisticRegression, LDPSGDClassifier

    X, X_test, y, y_test = adult_split(repeat)
    seed = int(np.random.default_rng([SEED, repeat, int(1000 * epsilon)]).integers(2**31))
    private = {"epsilon": epsilon, "classes": [-1, 1], "fit_intercept": False, "random_state": seed}
    scores = {
        "sklearn": LogisticRegression(fit_intercept=False).fit(X, y).decision_function(X_test),
        "ours": LDPBayesLogisticRegression(inference=SHORT, **private).fit(X, y).decision_function(X_test),
        "gradients": LDPSGDClassifier(mechanism="sphere", **private).fit(X, y).decision_function(X_test),
        "constant": np.zeros(len(y_test)),
    }
    if python:
        scores["diffprivlib"] = from_diffprivlib(python, 0.0, X, X_test, y, epsilon, seed)
    return {name: float(roc_auc_score(y_test, values)) for name, values in scores.items()}


def find_diffprivlib(python):
    """Return the interpreter if diffprivlib can be imported there, else None; and the version or the error."""
    found = subprocess.run([python, "-c", PROBE], capture_output=True, text=True)
    if found.returncode == 0:
        return python, found.stdout.strip()
    return None, "does not import here: " + found.stderr.strip().splitlines()[-1].split(" (")[0]


def predict(python, quick, jobs):
    """Compute test scores over epsilon, of all methods on the same splits."""
    from _data import results_folder
    from _utility import run

    python, answer = find_diffprivlib(python)
    epsilons, repeats = (EPSILONS[-1:], 2) if quick else (EPSILONS, 10)
    methods = {name: title for name, title in METHODS.items() if python or name != "diffprivlib"}
    for data, task, sign, title in (("wine", wine_task, -1.0, "Wine Quality, test RMSE (less is better)"),
                                    ("adult", adult_task, 1.0, "Adult, area under the curve (more is better)")):
        table = results_folder(quick) / f"table_peers_{data}.csv"
        rows = run(partial(task, python), methods, (), epsilons, repeats, jobs, table)
        print_scores(f"{title}; {repeats} splits, no intercept", rows, epsilons, sign)
    print(f"diffprivlib: {answer}.\nIt bounds every component of a record to [-1, 1] for the linear regression, where "
          "ours bounds the record's length to 1;\nboth bound the length to 1 for the logistic one. Other settings are "
          "the defaults.\n")


def print_scores(title, rows, epsilons, sign):
    """Print a line for each method, with its kind of privacy."""
    from _timing import print_table

    lines = []
    for method, (name, privacy) in METHODS.items():
        found = {row["epsilon"]: row for row in rows if row["method"] == method}
        cells = [f"{sign * found[e]['score']:.4f} ({found[e]['error']:.4f})" if found else "" for e in epsilons]
        lines.append([name, privacy if found else "does not import here", *cells])
    print(title)
    print_table(["method", "privacy", *(f"epsilon {epsilon:g}" for epsilon in epsilons)], lines)


def privatise(quick):
    """Time a report, with the peers' calls of ``bench_privatize.py``."""
    from _timing import best_time, print_table
    from bench_privatize import multi_freq_times, opendp_time

    from skldp.mechanisms import Gaussian, Laplace, UnaryEncoding

    n, n_peer, d = (10**5, 2000, 100) if quick else (10**6, 20_000, 100)
    values = np.random.default_rng(0).uniform(-1, 1, size=n)
    categories = np.random.default_rng(0).integers(d, size=n // 10)
    unary = UnaryEncoding(n_categories=d)
    reports = unary.randomize(categories)
    ours = [best_time(lambda: Laplace().randomize(values)) / n,
            best_time(lambda: Gaussian(n_features=1).randomize(values[:, None])) / n,
            best_time(lambda: unary.randomize(categories)) / len(categories),
            best_time(lambda: unary.frequencies(unary.counts(reports), len(reports))) / len(reports)]
    theirs = [opendp_time(law, values[:n_peer]) for law in ("laplace", "gaussian")]
    theirs += multi_freq_times(categories[:n_peer], d)
    exact, unsafe = "yes: exact, system's entropy", "no: theirs draws from NumPy's generator"
    tasks = [("Laplace noise on a value", "OpenDP", exact), ("Gaussian noise on a value", "OpenDP", exact),
             (f"unary encoding of {d} categories", "multi-freq-ldpy", unsafe),
             ("frequencies from unary reports", "multi-freq-ldpy", "yes: unbiased estimates")]
    print(f"Microseconds for a report; {n:,} values and {n // 10:,} categories, of the peers {n_peer:,}")
    print_table(["task", "peer", "ours", "theirs", "theirs : ours", "alike?"],
                [[task, peer, 1e6 * mine, 1e6 * other, other / mine, alike]
                 for (task, peer, alike), mine, other in zip(tasks, ours, theirs)])


def sample(quick):
    """Time an effective draw, with the functions of ``bench_sampling.py`` and ``bench_linear.py``."""
    if importlib.util.find_spec("numpyro") is None:
        print("NumPyro is not installed: no comparison with NUTS. pip install numpyro brings it.\n")
        return
    import bench_linear
    import bench_sampling

    print("Alike: the same reports, priors and likelihood, of one value each. NUTS has a term for each report.")
    bench_sampling.against_nuts(*((500, 50, 50, 1, ["parallel"]) if quick else (5000, 1000, 1000, 3)))
    print("Alike: the same moment reports and priors. NUTS has the paper's form of the same density.")
    bench_linear.against_nuts(*(((2,), 2000, 50) if quick else ((5,), 6000, 1000)))


def main():
    """Run the blocks."""
    if sys.argv[1:2] == ["--worker"]:
        diffprivlib_scores(*sys.argv[2:])
        return
    from _data import make_ready
    from _timing import print_header

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small blocks, for a smoke run")
    parser.add_argument("--blocks", nargs="+", choices=BLOCKS, default=BLOCKS, help="what to measure (default all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes of the block predict (default 2)")
    parser.add_argument("--diffprivlib-python", default=sys.executable, metavar="PATH",
                        help="an interpreter in which diffprivlib imports (default this one)")
    arguments = parser.parse_args()
    print_header("Peers", "scikit-learn", "opendp", "multi-freq-ldpy", "numpyro", "jax", "diffprivlib",
                 seed=SEED)
    if "predict" in arguments.blocks:
        make_ready("wine", "adult", quick=arguments.quick)
    start = time.perf_counter()
    if "privatise" in arguments.blocks:
        privatise(arguments.quick)
    if "sample" in arguments.blocks:
        sample(arguments.quick)
    if "predict" in arguments.blocks:
        predict(arguments.diffprivlib_python, arguments.quick, arguments.jobs)
    print(f"{(time.perf_counter() - start) / 60:.1f} minutes")


if __name__ == "__main__":
    main()
