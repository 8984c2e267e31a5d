"""Layers of the package: a file imports only from lower layers, or from its own folder."""

import ast
import inspect
import pathlib

import pytest

import skldp

ROOT = pathlib.Path(skldp.__file__).parent
LAYERS = {
    "exceptions": 0, "_show_versions": 0, "survey": 0,
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


def test_imports_have_no_cycle():
    name_of = {path: "skldp." + ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in FILES}
    graph = {name_of[path]: set(imported_modules(path)) & set(name_of.values()) for path in FILES}
    while leaves := {name for name, imports in graph.items() if not imports}:
        graph = {name: imports - leaves for name, imports in graph.items() if name not in leaves}
    assert graph == {}


def test_the_models_of_values_categories_and_regressions_know_nothing_of_each_other():
    for path in FILES:
        parts = path.relative_to(ROOT).parts
        if parts[0] == "models" and len(parts) == 3:
            others = {"values", "categories", "regression"} - {parts[1]}
            assert not [module for module in imported_modules(path) if set(module.split(".")[2:3]) & others]


def test_no_estimator_has_more_than_14_parameters():
    public = (getattr(skldp, name) for name in skldp.__all__)
    counts = {kind.__name__: len(inspect.signature(kind).parameters) for kind in public if inspect.isclass(kind)}
    assert max(counts.values()) <= 14, counts
