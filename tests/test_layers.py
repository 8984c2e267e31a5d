"""Imports go one way: a file imports only from lower layers, or from its own folder."""

import ast
import pathlib

import pytest

import skldp

ROOT = pathlib.Path(skldp.__file__).parent
LAYERS = {
    "exceptions": -1, "_limits": -1,
    "_door": 0, "_validation": 0, "_categories": 0.5, "_simplex": 0, "_show_versions": 0,
    "privacy": 1,
    "mechanisms": 2,
    "protocols": 3,
    "models": 4,
    "sampling": 5,
    "_budgets": 5.5, "_streams": 5.5, "_influence": 5.5, "_report_checks": 5.6, "_base": 6,
    "_perturbers": 7, "_scaler": 7.5, "_univariate": 7, "_histogram": 7, "_regression": 6.5,
    "_linear_regression": 7, "_logistic_regression": 7,
    "_sgd_base": 6.5, "_sgd": 7,
    "_category_perturbers": 7.5, "_distribution": 7.5, "_rates": 7.5, "_planning": 7.6,
    "_plot": 8,
}
FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


def room(parts):
    return parts[0].removesuffix(".py")


def imported_modules(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "skldp":
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "skldp")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    here = room(path.relative_to(ROOT).parts)
    assert here in LAYERS, f"{here} has no layer: add it to LAYERS and to the documentation of the layout"
    for module in imported_modules(path):
        parts = module.split(".")[1:]
        assert parts, f"{path.name} imports from skldp itself; import the defining module"
        there = room(parts)
        assert there == here or LAYERS[there] < LAYERS[here], f"{path.name} imports {module}"
        if path.name != "__init__.py" and LAYERS[there] in (1, 2, 3, 4, 5):
            assert len(parts) > 1, f"{path.name} imports the package {module}; import the defining module"


def test_only_sampling_imports_emcee():
    for path in FILES:
        if room(path.relative_to(ROOT).parts) != "sampling":
            assert "import emcee" not in path.read_text() and "from emcee" not in path.read_text()


def test_the_client_half_does_not_import_scikit_learn():
    for path in FILES:
        if LAYERS[room(path.relative_to(ROOT).parts)] <= 3:
            names = {name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
                     for name in [node.module or ""]}
            assert not any(name.split(".")[0] == "sklearn" for name in names)
