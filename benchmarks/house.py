"""Figures of the house: how much code a fit enters, how long functions are, and whether imports go one way.

Run with ``python benchmarks/house.py``; ``--quick`` fits fewer records, ``--names`` lists the functions of each fit.

How it counts:

- **Files and functions of a fit**: distinct functions and methods of the package that ``fit`` calls in a fresh
  interpreter, and the files they are in. A module that is merely imported does not count, nor does what runs while it
  is imported. Lambdas and comprehensions belong to the function around them.
- **Comparisons with mode strings**: comparisons (``==``, ``in``, ...) with a name of ``MODES``. A key of a table is no
  comparison.
- **Lengths of functions**: lines from ``def`` to the end, without the docstring.
- **Import cycles**: groups of modules that import each other, wherever in the file the import stands.
- **Layer violations**: imports between folders that do not point down in the table of ``tests/test_layers.py``.
- **Lines of code**: without blank lines, comments and docstrings.

The package measured is the one that Python imports: ``PYTHONPATH=other/checkout python benchmarks/house.py`` measures
another one.
"""

import argparse
import ast
import importlib.util
import inspect
import io
import multiprocessing
import statistics
import sys
import threading
import tokenize
import warnings
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from _timing import print_header, print_table

import skldp

SEED = 0
PACKAGE = Path(skldp.__file__).parent
MODES = {"rr", "oue", "subset", "sphere", "gaussian", "laplace", "square_wave", "statistics", "inputs", "records",
         "axis", "counts", "exact"}
PROBES = ("hasattr(", "vars(self).update", "object.__new__")
MOST_FILES, MOST_FUNCTIONS = 25, 150
NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
            tokenize.ENDMARKER}


class Calls:
    """Functions of the package that are called while the context is open, as pairs of file and qualified name."""

    def __enter__(self):
        self.names, self._seen = set(), set()
        threading.setprofile(self._count)
        sys.setprofile(self._count)
        return self

    def __exit__(self, *error):
        sys.setprofile(None)
        threading.setprofile(None)

    def _count(self, frame, event, argument):
        code = frame.f_code
        if event != "call" or code in self._seen or not code.co_filename.startswith(str(PACKAGE)):
            return
        if is_function(code) and not in_import(frame):
            self._seen.add(code)
            self.names.add((Path(code.co_filename).relative_to(PACKAGE).as_posix(), code.co_qualname))


def is_function(code):
    """Whether code is the body of a ``def``: not of a module, a class, a lambda or a comprehension."""
    return bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")


def in_import(frame):
    """Whether a module of the package is being imported further up the stack."""
    while frame := frame.f_back:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(str(PACKAGE)):
            return True
    return False


def linear_fit(n_records):
    """The linear regression with its defaults, and records with two features."""
    rng = np.random.default_rng(SEED)
    X = rng.normal(scale=0.3, size=(n_records, 2))
    y = X @ [0.5, -0.5] + rng.normal(scale=0.2, size=n_records)
    return skldp.LDPBayesLinearRegression(random_state=SEED), X, y


def histogram_fit(n_records):
    """The histogram with its defaults, and records of four categories."""
    X = np.random.default_rng(SEED).choice(4, p=[0.4, 0.3, 0.2, 0.1], size=(n_records, 1))
    return skldp.LDPHistogram(categories=[0, 1, 2, 3], random_state=SEED), X


FITS = {"LDPBayesLinearRegression.fit, 2 features": linear_fit, "LDPHistogram.fit, 4 categories": histogram_fit}


def entered(title, n_records):
    """Functions that a fit enters, as pairs of file and qualified name."""
    estimator, *records = FITS[title](n_records)
    with warnings.catch_warnings(), Calls() as calls:
        warnings.simplefilter("ignore")
        estimator.fit(*records)
    return sorted(calls.names)


def docstring_lines(node):
    """Numbers of the lines of the docstring of a module, a class or a function."""
    if ast.get_docstring(node, clean=False) is None:
        return set()
    return set(range(node.body[0].lineno, node.body[0].end_lineno + 1))


def function_lengths(trees):
    """Lines of every function, without its docstring: pairs of length and place."""
    return [(node.end_lineno - node.lineno + 1 - len(docstring_lines(node)), f"{path}:{node.name}")
            for path, tree in trees.items() for node in ast.walk(tree)
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]


def code_lines(source, tree):
    """Number of lines that are neither blank nor a comment nor part of a docstring."""
    lines = {line for token in tokenize.generate_tokens(io.StringIO(source).readline) if token.type not in NOT_CODE
             for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            lines -= docstring_lines(node)
    return len(lines)


def mode_comparisons(tree):
    """Number of comparisons with a mode string, alone or in a tuple, list or set."""
    count = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            sides += [item for side in sides if isinstance(side, (ast.Tuple, ast.List, ast.Set)) for item in side.elts]
            count += any(isinstance(side, ast.Constant) and isinstance(side.value, str) and side.value in MODES
                         for side in sides)
    return count


def constructor_parameters():
    """Number of parameters of the constructor of every estimator and transformer: pairs of number and name."""
    classes = [getattr(skldp, name) for name in skldp.__all__]
    return [(len(inspect.signature(each).parameters), each.__name__) for each in classes
            if inspect.isclass(each) and hasattr(each, "get_params")]


def import_graph(trees):
    """Modules of the package that each module imports, by their names."""
    modules = {module_name(path): tree for path, tree in trees.items()}
    graph = {}
    for name, tree in modules.items():
        found = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found |= {f"{node.module}.{alias.name}" if f"{node.module}.{alias.name}" in modules else node.module
                          for alias in node.names}
            elif isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
        graph[name] = {each for each in found if each in modules and each != name}
    return graph


def module_name(path):
    """Name of the module in a file of the package."""
    return ".".join(["skldp", *Path(path).with_suffix("").parts]).removesuffix(".__init__")


def reachable(graph, start):
    """Modules that a module imports, directly or through others."""
    found, waiting = set(), [start]
    while waiting:
        new = graph[waiting.pop()] - found
        found |= new
        waiting += new
    return found


def import_cycles(graph):
    """Groups of modules that import each other."""
    reach = {name: reachable(graph, name) for name in graph}
    return {frozenset(other for other in reach[name] if name in reach[other]) for name in graph if name in reach[name]}


def layer_violations(graph):
    """Imports that do not point down, as pairs of module names; None where the table of layers cannot be read."""
    try:
        spec = importlib.util.spec_from_file_location("layers", PACKAGE.parent / "tests" / "test_layers.py")
        table = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(table)
    except (OSError, ImportError):  # no checkout around the package, or no pytest
        return None
    layer = {name: table.LAYERS.get(name.split(".")[1], -1) for name in graph if name != "skldp"}
    return [(here, there) for here in layer for there in graph[here]
            if there == "skldp" or here.split(".")[1] != there.split(".")[1] and layer[there] >= layer[here]]


def main():
    """Fit twice, read the sources, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="500 records instead of 4,000")
    parser.add_argument("--names", action="store_true", help="list the functions that each fit enters")
    options = parser.parse_args()
    print_header("The house", "emcee", seed=SEED)
    n_records = 500 if options.quick else 4_000

    rows = []
    spawn = multiprocessing.get_context("spawn")  # what one fit caches must not hide calls of the other
    with ProcessPoolExecutor(1, mp_context=spawn, max_tasks_per_child=1) as pool:
        for title, names in zip(FITS, pool.map(entered, FITS, [n_records] * len(FITS))):
            rows += [[f"{title}: files", str(len({file for file, _ in names})), f"<= {MOST_FILES}"],
                     [f"{title}: functions", str(len(names)), f"<= {MOST_FUNCTIONS}"]]
            if options.names:
                print(title, *(f"  {file}: {name}" for file, name in names), sep="\n", end="\n\n")
    print_table(["figure", "value", "target"], rows + source_figures())


def source_figures():
    """Figures that are read off the sources, as rows of a table."""
    sources = {path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
               for path in sorted(PACKAGE.rglob("*.py"))}
    trees = {path: ast.parse(source) for path, source in sources.items()}
    probed = "".join(source for path, source in sources.items() if path.startswith(("models/", "sampling/")))
    roots = [path for path in sources if "/" not in path]
    lengths = sorted(function_lengths(trees))
    sizes = [length for length, _ in lengths]
    graph = import_graph(trees)
    cycles, violations = import_cycles(graph), layer_violations(graph)
    for text in [*(" <-> ".join(sorted(cycle)) for cycle in cycles), *map(" -> ".join, violations or ())]:
        print(f"against the layers: {text}")
    widest, longest = max(constructor_parameters()), lengths[-1]
    return [
        ["comparisons with mode strings", str(sum(map(mode_comparisons, trees.values()))), ""],
        [f"most constructor parameters ({widest[1]})", str(widest[0]), ""],
        [f"root modules ({', '.join(roots)})" if len(roots) < 6 else "root modules", str(len(roots)), ""],
        *([f"{probe} in models/ and sampling/", str(probed.count(probe)), "0"] for probe in PROBES),
        ["function length, median", f"{statistics.median(sizes):g}", ""],
        ["function length, 90 %", f"{np.quantile(sizes, 0.9):g}", ""],
        [f"function length, largest ({longest[1]})", str(longest[0]), ""],
        ["functions", str(len(sizes)), ""],
        ["import cycles", str(len(cycles)), "0"],
        ["layer violations", "no table" if violations is None else str(len(violations)), "0"],
        ["files", str(len(sources)), ""],
        ["lines", str(sum(len(source.splitlines()) for source in sources.values())), ""],
        ["lines of code", str(sum(code_lines(sources[path], trees[path]) for path in sources)), ""],
    ]


if __name__ == "__main__":
    main()
