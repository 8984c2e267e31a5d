"""Layers of the package: a file imports only from lower layers, or from its own folder."""

import ast
import pathlib

import pytest

import skldp

ROOT = pathlib.Path(skldp.__file__).parent
LAYERS = {
    "exceptions": 0, "_show_versions": 0,
    "_validation": 1,
    "privacy": 2,
    "mechanisms": 3,
    "protocols": 4,
    "models": 5,
    "sampling": 6,
    "analysis": 7,
    "estimators": 8, "gradients": 8, "transformers": 8,
    "plot": 9,
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
def test_files_import_only_from_lower_layers(path):
    here = room(path.relative_to(ROOT).parts)
    assert here in LAYERS, f"{here} has no layer: add it to LAYERS and to the documentation of the layout"
    for module in imported_modules(path):
        parts = module.split(".")[1:]
        assert parts, f"{path.name} imports from skldp itself; import the defining module"
        there = room(parts)
        assert there == here or LAYERS[there] < LAYERS[here], f"{path.name} imports {module}"
        if path.name != "__init__.py" and there not in ("exceptions", "_show_versions"):
            assert len(parts) > 1, f"{path.name} imports the package {module}; import the defining module"


def test_only_sampling_imports_emcee():
    for path in FILES:
        if room(path.relative_to(ROOT).parts) != "sampling":
            assert "import emcee" not in path.read_text() and "from emcee" not in path.read_text()


def test_client_modules_do_not_import_scikit_learn():
    for path in FILES:
        if LAYERS[room(path.relative_to(ROOT).parts)] <= LAYERS["protocols"]:
            names = {name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)
                     for name in [node.module or ""]}
            assert not any(name.split(".")[0] == "sklearn" for name in names)
