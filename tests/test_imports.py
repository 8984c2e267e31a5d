"""Imports are lazy and load no optional dependency."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

import skldp

ROOT = pathlib.Path(__file__).parents[1]


def modules_after(statement):
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_client_modules_import_no_heavy_dependency():
    loaded = modules_after("import skldp.mechanisms, skldp.protocols")
    assert not loaded & {"sklearn", "emcee", "pandas", "joblib", "matplotlib", "arviz_stats", "scipy.stats"}


def test_importing_the_package_loads_no_dependency():
    heavy = {"sklearn", "emcee", "arviz", "arviz_stats", "matplotlib", "dask", "pandas", "joblib", "scipy", "numpy"}
    assert not modules_after("import skldp") & heavy


def test_estimators_import_no_optional_dependency():
    loaded = modules_after("from skldp import LDPGaussian, LDPBayesLinearRegression, PosteriorDisplay")
    assert not loaded & {"arviz", "arviz_stats", "dask", "distributed", "matplotlib", "xarray"}


def test_public_names_resolve_and_are_listed():
    for name in skldp.__all__:
        assert getattr(skldp, name) is not None
    assert dir(skldp) == sorted(skldp.__all__)
    namespace = {}
    exec("from skldp import *", namespace)
    assert set(skldp.__all__) <= set(namespace)


def test_unknown_name_raises_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'LDPNothing'"):
        skldp.LDPNothing


def readme_blocks(kind):
    """Yield the code blocks of one language in the README."""
    for part in (ROOT / "README.rst").read_text(encoding="utf-8").split(f".. code-block:: {kind}\n")[1:]:
        lines = part.split("\n")
        end = next((i for i, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
        yield textwrap.dedent("\n".join(lines[:end])).strip()


def test_readme_example_prints_the_documented_output():
    code, promised = next(readme_blocks("python")), next(readme_blocks("text")).split("\n")
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    printed = result.stdout.strip().split("\n")
    assert len(printed) == len(promised)
    assert printed[0] == promised[0] and printed[1].split() == promised[1].split()
    for found, wanted in zip(printed[2:4], promised[2:4]):  # digits differ with pandas, chains between machines
        found, wanted = ([float(word) for word in line.split()[1:5]] for line in (found, wanted))
        assert found == pytest.approx(wanted, abs=0.2)


def test_readme_picture_exists_and_is_small():
    assert ".. image:: docs/_static/first_posterior.png" in (ROOT / "README.rst").read_text()
    assert 0 < (ROOT / "docs" / "_static" / "first_posterior.png").stat().st_size < 60_000
