"""Mutation testing: the share of small random changes of the code that the tests detect.

Run with ``python benchmarks/mutate.py --mutants 100 skldp/models skldp/sampling``; ``--quick`` tries four mutants
with the nearest test file only, ``--near`` uses test files that mention the module and take seconds. Each mutant
changes one operator, constant or call in a temporary copy of the package and runs the tests of its folder, starting
with the quick ones that mention the module. A failure, or a run longer than ``--timeout``, kills it: most mutants take
a few seconds, survivors take minutes. For survivors the line is printed
before and after the change; some are equivalent.
"""

import argparse
import ast
import copy
import importlib
import multiprocessing
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import pytest
from _timing import print_header, print_table

ROOT = Path(__file__).resolve().parents[1]
TESTS = {  # tests that run for a mutant of a folder
    "privacy": ["tests/privacy", "tests/mechanisms"],
    "mechanisms": ["tests/mechanisms", "tests/privacy/test_noise.py", "tests/protocols"],
    "protocols": ["tests/protocols", "tests/estimators/test_budgets.py", "tests/estimators/test_repr.py"],
    "models": ["tests/models"],
    "sampling": ["tests/sampling"],
    "estimators": ["tests/estimators", "tests/analysis"],
    "analysis": ["tests/analysis"],
    "gradients": ["tests/gradients", "tests/protocols/test_gradient_protocol.py"],
    "transformers": ["tests/transformers"],
    "_validation": ["tests/validation", "tests/protocols/test_limits.py"],
}
SIGNATURES = "tests/test_signatures.py"  # for every mutant: a changed default of a public function
FOLDERS = ("privacy", "mechanisms", "protocols")  # by default: the folders behind the guarantee
# These take seconds: they run after quicker ones, and for modules of other folders only if they mention them.
SLOW = {f"test_{name}.py" for name in ("contract", "gradient_protocol", "label_protocols", "labelled_record",
                                       "ledger_estimators", "moment_protocol", "moments", "moves", "mutants", "noise",
                                       "record_protocol", "sensitivity", "sgd", "sphere", "streams", "targets",
                                       "values")}
# These take up to a minute or two: they run last, and only if they mention the module or no other file does.
SLOWEST = {f"test_{name}.py" for name in ("influence", "linear", "linear_regression", "logistic",
                                          "logistic_regression", "marginals", "warm_start")}
OUTPUT = "output.txt"  # of the tests of a mutant
# Imported once, before the tests of a mutant run in a forked process: they take seconds.
PRELOADED = ("numpy", "scipy.optimize", "scipy.stats", "scipy.integrate", "sklearn.linear_model", "emcee", "joblib",
             "sklearn.utils.estimator_checks")
# Cases of the contract of models that a folder can change.
CASES = {"categories": "histogram", "regression": "linear or logistic",
         "values": "not histogram and not linear and not logistic"}
MEMORY = 6 * 2**30  # bytes of address space for each run; a mutant may try to allocate any amount
OPERATORS = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,), ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.FloorDiv,), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,), ast.LShift: (ast.RShift,),
    ast.RShift: (ast.LShift,), ast.BitAnd: (ast.BitOr,), ast.BitOr: (ast.BitAnd,), ast.And: (ast.Or,),
    ast.Or: (ast.And,),
}
CALLS = {"floor": "ceil", "ceil": "floor", "rint": "floor", "trunc": "rint", "round": "int", "min": "max", "max": "min",
         "minimum": "maximum", "maximum": "minimum", "any": "all", "all": "any", "zeros": "ones", "ones": "zeros",
         "argmin": "argmax", "argmax": "argmin", "log1p": "log", "expm1": "exp"}
DROPPED = {"clip", "abs", "sorted", "unique", "copy", "nan_to_num"}  # the call is replaced by its first argument


def variants(node):
    """Yield changed copies of a node, with one change in each."""
    operator = getattr(node, "op", None) or getattr(node, "ops", [None])[0]
    for other in OPERATORS.get(type(operator), ()):
        changed = copy.deepcopy(node)
        if isinstance(node, ast.Compare):
            changed.ops[0] = other()
        else:
            changed.op = other()
        yield changed
    if isinstance(node, ast.UnaryOp):
        yield node.operand
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        step = 1 if isinstance(node.value, int) else node.value * 1e-3 or 1e-3
        yield from (ast.Constant(node.value + step), ast.Constant(node.value - step))
    elif isinstance(node, ast.Call):
        yield from changed_calls(node)


def changed_calls(node):
    """Yield copies of a call with another function, or only its first argument."""
    name = getattr(node.func, "attr", getattr(node.func, "id", ""))
    if name in CALLS:
        changed = copy.deepcopy(node)
        setattr(changed.func, "attr" if isinstance(node.func, ast.Attribute) else "id", CALLS[name])
        yield changed
    if name in DROPPED and node.args:
        yield node.args[0]


def sites(tree):
    """Return the nodes that may be changed: not those of messages, annotations, imports and documentation."""
    if isinstance(tree, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)):
        return
    if isinstance(tree, (ast.expr, ast.AugAssign)):
        yield from ((tree, variant) for variant in variants(tree))
    for name, value in ast.iter_fields(tree):
        if name not in ("annotation", "returns", "decorator_list", "type_comment"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from sites(child)


def spliced(source, node, variant):
    """Return the source text with a node's text replaced."""
    lines = source.encode().splitlines(keepends=True)
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    begin = starts[node.lineno - 1] + node.col_offset
    end = starts[node.end_lineno - 1] + node.end_col_offset
    text = ast.unparse(ast.fix_missing_locations(variant))
    text = text if isinstance(node, (ast.AugAssign, ast.Constant, ast.Call)) else f"({text})"
    return (source.encode()[:begin] + text.encode() + source.encode()[end:]).decode()


def mutants(folders, n_mutants, seed):
    """Return a random sample of changes: path, line number, text before and text after."""
    found = []
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            source = path.read_text()
            found += [(path.relative_to(ROOT), source, node, variant) for node, variant in sites(ast.parse(source))]
    chosen = random.Random(seed).sample(found, min(n_mutants, len(found)))
    return [(path, node.lineno, source, spliced(source, node, variant)) for path, source, node, variant in chosen]


def test_files(tree, path, source, near_only=False):
    """Return the test files of a module: quick ones that mention its names first, defaults and its own examples last.

    With ``near_only`` they are those that mention it and take seconds, and the contract.
    """
    names = re.findall(r"^(?:class|def) (\w+)|^(\w+) = ", source, re.MULTILINE)
    pattern = re.compile(r"\b(" + "|".join({"".join(pair) for pair in names} | {path.stem}) + r")\b")
    mentions = {}
    for place in TESTS.get(path.parts[1], ["tests"]):
        whole = tree / place
        for file in sorted(whole.rglob("test_*.py")) if whole.is_dir() else [whole]:
            found = len(pattern.findall(file.read_text()))
            # Folders of tests have the names of folders of the package.
            apart = file.parent != whole and file.parent.name != path.parent.name
            near = whole.is_dir() and whole.name == path.parts[1].lstrip("_") and not apart
            if found or file.name == "test_contract.py" or (near if file.name in SLOW else not apart):
                mentions[file] = found
    if any(found for file, found in mentions.items() if file.name != "test_contract.py"):
        mentions = {file: found for file, found in mentions.items() if found or file.name not in SLOWEST}
    if near_only:
        quick = [file for file, found in mentions.items() if found and file.name not in SLOWEST]
        contract = [file for file in mentions if file.name == "test_contract.py"]
        mentions = {file: mentions[file] for file in [*quick, *contract]} or mentions
    ordered = sorted(mentions, key=lambda file: (not mentions[file] and file.name != "test_contract.py",
                                                 file.name in SLOWEST, file.name in SLOW, -mentions[file]))
    return [str(file.relative_to(tree)) for file in ordered] + [SIGNATURES, str(path)]


def run(copies, mutant, options):
    """Return the outcome of a mutant: "killed", "timed out" or "survived"."""
    path, _, before, text = mutant
    tree = copies.get()
    (tree / path).write_text(text)
    files = test_files(tree, path, before, options.near)
    child = multiprocessing.get_context("fork").Process(
        target=run_tests, args=(tree, path, files[:1] if options.quick else files, options.timeout, text == before))
    try:
        child.start()
        child.join(20 * options.timeout)
        if child.exitcode in (None, -signal.SIGXCPU, -signal.SIGKILL):
            child.kill()
            return "timed out"
        if child.exitcode in (4, 5):  # pytest found no such file, or no test in it
            raise RuntimeError((tree / OUTPUT).read_text())
        return "killed" if child.exitcode else "survived"
    finally:
        (tree / path).write_text(before)
        copies.put(tree)


def run_tests(tree, path, files, timeout, is_original):
    """Run tests of a copy in this process, which was forked, and end it with the exit code of pytest."""
    with open(tree / OUTPUT, "w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.chdir(tree)
    os.environ.update(PYTHONPATH=str(tree), PYTHONDONTWRITEBYTECODE="1")
    sys.path.insert(0, str(tree))
    sys.dont_write_bytecode = not is_original  # of a mutant it could be used for the next one
    # CPU time does not depend on other load.
    resource.setrlimit(resource.RLIMIT_CPU, (timeout, timeout + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    contract = [file for file in files if file == "tests/models/test_contract.py"]
    others = [file for file in files if file not in contract]
    runs = [others, [*contract, "-k", CASES.get(path.parent.name, "test")]] if contract else [others]
    codes = []
    while runs and not set(codes) - {0, 5}:  # 5 if there is no test: some modules have no examples
        codes.append(pytest.main(["-x", "-q", "-p", "no:cacheprovider", *runs.pop(0)]))
    os._exit(codes[-1] if set(codes) - {0, 5} else min(codes))


def show(outcome, mutant):
    """Print the changed line before and after."""
    path, number, *texts = mutant
    before, after = (text.splitlines()[number - 1].strip() for text in texts)
    print(f"{outcome}: {path}:{number}\n  - {before}\n  + {after}", flush=True)


def main():
    """Run the mutants and print the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", default=[f"skldp/{name}" for name in FOLDERS])
    parser.add_argument("--mutants", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=300, help="seconds of CPU for each mutant (default 300)")
    parser.add_argument("--near", action="store_true", help="only test files that mention the module and take seconds")
    parser.add_argument("--quick", action="store_true", help="four mutants, the nearest test file only")
    options = parser.parse_args()
    print_header("Mutants", "pytest", seed=options.seed)
    chosen = mutants(options.folders, 4 if options.quick else options.mutants, options.seed)
    for name in PRELOADED:
        importlib.import_module(name)
    start, outcomes = time.perf_counter(), []
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(options.jobs) as pool:
        copies = Queue()
        for number in range(options.jobs):
            tree = Path(folder, str(number))
            for name in ("skldp", "tests", "docs"):  # tests compare tables of the guide
                shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            shutil.copy(ROOT / "setup.cfg", tree)
            copies.put(tree)
        for path, number, before, _ in {mutant[0].parent: mutant for mutant in chosen}.values():
            if "survived" != run(copies, (path, number, before, before), options):
                sys.exit(f"The tests of {path.parent} fail without a mutant; fix them first.")
        results = pool.map(lambda mutant: run(copies, mutant, options), chosen)
        for mutant, outcome in zip(chosen, results):
            outcomes.append(outcome)
            if outcome != "killed":
                show(outcome, mutant)
    print(f"\n{len(chosen)} mutants of {', '.join(options.folders)} in {time.perf_counter() - start:.0f} s")
    print_table(["outcome", "number"], [[name, outcomes.count(name)] for name in ("killed", "timed out", "survived")])


if __name__ == "__main__":
    main()
