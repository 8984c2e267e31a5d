"""Importing is light and lazy."""

import pathlib
import subprocess
import sys
import textwrap

import pytest

import skldp


def modules_after(statement):
    code = f"{statement}\nimport sys\nprint('\\n'.join(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


@pytest.mark.parametrize("module", ["skldp.mechanisms", "skldp.protocols"])
def test_the_client_half_is_light(module):
    loaded = modules_after(f"import {module}")
    assert not loaded & {"sklearn", "emcee", "pandas", "joblib", "matplotlib", "arviz_stats", "scipy.stats"}


def test_the_package_loads_nothing_until_asked():
    assert not modules_after("import skldp") & {"sklearn", "emcee", "pandas", "numpy"}


def test_public_names_resolve_and_are_listed():
    for name in skldp.__all__:
        assert getattr(skldp, name) is not None
    assert dir(skldp) == sorted(skldp.__all__)
    namespace = {}
    exec("from skldp import *", namespace)
    assert set(skldp.__all__) <= set(namespace)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'LDPNothing'"):
        skldp.LDPNothing


def test_the_readmes_twelve_lines_run():
    readme = pathlib.Path(__file__).parents[1] / "README.rst"
    block = readme.read_text().split(".. code-block:: python\n")[1].split(".. code-block:: text")[0]
    code = textwrap.dedent(block)
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "ess_bulk" in result.stdout and "mean" in result.stdout
