"""The files around the package agree with it and with each other."""

import configparser
import pathlib
import re
import runpy
import shutil
import subprocess
import textwrap

import pytest

import skldp
from tests.test_layers import LAYERS

ROOT = pathlib.Path(__file__).parents[1]
README = (ROOT / "README.rst").read_text(encoding="utf-8")
readme_command = runpy.run_path(str(ROOT / ".ci" / "readme_command.py"))["readme_command"]


def lower_bounds(*extras):
    """Lower bounds of the requirements of the package and of extras, by name."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    texts = [setup["options"]["install_requires"], *(setup["options.extras_require"][extra] for extra in extras)]
    pattern = re.compile(r"^([\w-]+)[^>\n]*>=(\S+)$", re.MULTILINE)
    return {name: bound for text in texts for name, bound in pattern.findall(text)}


def test_the_readme_has_both_commands_of_the_ci():
    first, tests = (readme_command(name, README) for name in ("first-posterior", "tests"))
    assert first.endswith("examples/plot_private_mean.py") and tests.endswith("-m pytest -n 2")
    assert all(command.startswith("python3 -m venv .venv && ") and "\n" not in command for command in (first, tests))
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.findall(r"readme_command.py (\S+)\)", script) == ["first-posterior", "tests"]


@pytest.mark.parametrize("text", ["", ".. ci: tests\n\nNo block.\n", ".. ci: other\n\n::\n\n    true\n"])
def test_a_command_that_is_not_there_is_an_error(text):
    with pytest.raises(SystemExit, match="README.rst has no"):
        readme_command("tests", text)


def test_the_oldest_versions_of_the_ci_are_the_lower_bounds():
    text = (ROOT / ".ci" / "oldest.txt").read_text(encoding="utf-8")
    pinned = dict(re.findall(r"^([\w-]+)==(\S+)$", text, re.MULTILINE))
    bounds = lower_bounds("test")
    for linter in ("flake8", "mypy"):  # run once, with the newest NumPy, on whose types mypy's verdict depends
        del bounds[linter]
    assert pinned == bounds


def test_extras_agree_on_their_bounds():
    bounds = lower_bounds("test")
    for extra in ("plot", "arviz", "dask", "survey", "bench", "docs"):
        for name, bound in lower_bounds(extra).items():
            assert bounds.setdefault(name, bound) == bound


def test_the_citation_names_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (\S+)$", text, re.MULTILINE).group(1) == skldp.__version__


@pytest.mark.parametrize("room, layer", LAYERS.items())
def test_the_drawing_of_the_rooms_has_their_layers(room, layer):
    text = (ROOT / "CONTRIBUTING.rst").read_text(encoding="utf-8")
    assert re.search(rf"^      {room}(/|\.py) +L{layer}  \S", text, re.MULTILINE), "the drawing in CONTRIBUTING.rst"


@pytest.mark.parametrize("page", ["CONTRIBUTING.rst", "README.rst", "SECURITY.rst", "docs/architecture.rst"])
def test_the_files_that_a_page_names_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    named = re.findall(r"``((?:skldp|tests|docs|benchmarks|examples|\.ci)/[\w/.]+|[A-Z]+\.rst)``", text)
    assert [name for name in named if "yours" not in name and not (ROOT / name).exists()] == []


@pytest.mark.skipif(shutil.which("git") is None, reason="git applies the diffs")
def test_the_diffs_of_the_walk_throughs_apply(tmp_path):
    text = (ROOT / "CONTRIBUTING.rst").read_text(encoding="utf-8")
    diffs = [textwrap.dedent(block) for block in re.findall(r"code-block:: diff\n\n((?:    .*\n|\n)+)", text)]
    assert len(diffs) == 4
    for folder in ("skldp", "tests", "docs"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "_build"))
    for diff in diffs:  # one after the other: the estimator uses the family
        subprocess.run(["git", "apply", "-"], cwd=tmp_path, input=diff.rstrip("\n") + "\n", text=True, check=True)
