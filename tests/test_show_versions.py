"""Output of show_versions."""

import configparser
import importlib.metadata
import pathlib
import platform
import re

import skldp
from skldp import _show_versions, show_versions

SETUP = pathlib.Path(__file__).parents[1] / "setup.cfg"


def shown(capsys):
    assert show_versions() is None
    lines = capsys.readouterr().out.splitlines()
    return dict(re.split(r"\s{2,}", line.strip(), maxsplit=1) for line in lines if line.startswith("  "))


def test_shows_python_the_system_and_skldp(capsys):
    table = shown(capsys)
    assert table["python"] == platform.python_version()
    assert platform.system() in table["system"]
    assert table["skldp"] == skldp.__version__


def test_shows_every_dependency(capsys):
    table = shown(capsys)
    for name in _show_versions.REQUIRED:
        assert table[name] == importlib.metadata.version(name)
    assert set(_show_versions.OPTIONAL) <= set(table)


def test_list_of_dependencies_matches_the_package():
    setup = configparser.ConfigParser()
    setup.read(SETUP, encoding="utf-8")
    needed = re.findall(r"^([a-z-]+)", setup["options"]["install_requires"], flags=re.MULTILINE)
    assert set(needed) == set(_show_versions.REQUIRED)


def test_missing_dependencies_are_shown(capsys, monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    assert shown(capsys)["pandas"] == "not installed"
