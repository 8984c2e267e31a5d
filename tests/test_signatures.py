"""Every default of a public class or function is the one that its docstring states."""

import ast
import dataclasses
import importlib
import inspect
import math
import re

import pytest

PACKAGES = ("skldp", "skldp.mechanisms", "skldp.models", "skldp.privacy", "skldp.protocols", "skldp.sampling")
PUBLIC = {f"{package}.{name}": getattr(importlib.import_module(package), name)
          for package in PACKAGES for name in importlib.import_module(package).__all__ if not name.startswith("__")}
CALLABLE = {name: thing for name, thing in PUBLIC.items() if callable(thing)}
# Parameters whose docstring is wrong, by public name: remove what has been corrected.
KNOWN: dict[str, set[str]] = {}


def parameters_section(text):
    """Entries of the section Parameters of a numpydoc text: pairs of a header and its description."""
    match = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", text, re.MULTILINE | re.DOTALL)
    lines = match.group(1).splitlines() if match else []
    entries = []
    for line in lines:
        if line and not line.startswith(" "):
            entries.append((line, []))
        elif line.strip() and entries:
            entries[-1][1].append(line.strip())
    return [(header, " ".join(description)) for header, description in entries]


def documented(thing, seen=()):
    """Texts of the defaults of parameters that a docstring documents; None where there is no default."""
    found = {}
    for header, description in parameters_section(inspect.getdoc(thing) or ""):
        names, _, kind = header.partition(" : ")
        default = re.search(r"default=(.+)$", kind)
        elsewhere = {}
        reference = re.match(r"As in :(?:class|func):`~?(?:[\w.]*\.)?(\w+)`", description)
        if default is None and reference and reference.group(1) not in seen:
            elsewhere = documented(named(reference.group(1)), (*seen, reference.group(1)))
        for name in names.split(","):
            name = name.strip().lstrip("*")
            found[name] = default.group(1) if default else elsewhere.get(name)
    return found


def named(name):
    """The public class or function of a name."""
    return next(thing for full_name, thing in PUBLIC.items() if full_name.rpartition(".")[2] == name)


def value_of(text):
    """What the text of a default means."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return eval(text, {"__builtins__": {}, "sqrt": math.sqrt, "inf": math.inf, "nan": math.nan})


def same(stated, actual):
    """Whether two defaults are the same; numbers by value, but truth is no number."""
    if isinstance(stated, (tuple, list)):
        return (isinstance(actual, (tuple, list)) and len(stated) == len(actual)
                and all(same(one, other) for one, other in zip(stated, actual)))
    if isinstance(stated, (int, float)) and not isinstance(stated, bool):
        number = isinstance(actual, (int, float)) and not isinstance(actual, bool)
        return number and (math.isclose(stated, actual) or stated != stated and actual != actual)
    return type(stated) is type(actual) and stated == actual


def signature_of(thing):
    """Defaults of the parameters of a class or function by name; `empty` where there is none."""
    factories = {field.name: field.default_factory() for field in getattr(thing, "__dataclass_fields__", {}).values()
                 if field.default_factory is not dataclasses.MISSING}
    return {name: factories.get(name, parameter.default)
            for name, parameter in inspect.signature(thing).parameters.items()}


def wrong(thing):
    """Parameters whose docstring and signature do not agree, with what is wrong."""
    found, actual = documented(thing), signature_of(thing)
    errors = {name: "is documented, and is no parameter" for name in found.keys() - actual.keys()}
    for name, default in actual.items():
        stated = found.get(name)
        if default is inspect.Parameter.empty:
            if stated is not None:
                errors[name] = f"has no default, and {stated} is documented"
        elif stated is None:
            errors[name] = f"has the default {default!r}, which is not documented"
        elif not same(value_of(stated), default):
            errors[name] = f"has the default {default!r}, and {stated} is documented"
    return errors


@pytest.mark.parametrize("name", CALLABLE)
def test_defaults_are_documented_as_they_are(name):
    errors = wrong(CALLABLE[name])
    assert errors.keys() <= KNOWN.get(name, set()), errors


def test_hundreds_of_defaults_are_compared():
    n_defaults = sum(default is not inspect.Parameter.empty
                     for thing in CALLABLE.values() for default in signature_of(thing).values())
    assert len(CALLABLE) > 80 and n_defaults > 250


def example(a, b=2, *, c="x", d=(1, 2), e=math.sqrt(0.5), g=True):
    """Do nothing.

    Parameters
    ----------
    a : int
        First.
    b : int, default=2.0
        Second, with a default=3 that is no default.
    c : {"x", "y"}, default="x"
        Third.
    d : tuple, default=(1.0, 2)
        Fourth.
    e, g : float, default=sqrt(1/2)
        Fifth and sixth.

    Returns
    -------
    h : int, default=7
    """


def test_the_parser_reads_joint_entries_and_follows_references():
    assert documented(example) == {"a": None, "b": "2.0", "c": '"x"', "d": "(1.0, 2)", "e": "sqrt(1/2)",
                                   "g": "sqrt(1/2)"}
    assert wrong(example) == {"g": "has the default True, and sqrt(1/2) is documented"}
    gaussian, exponential = (documented(PUBLIC[f"skldp.LDP{name}"]) for name in ("Gaussian", "Exponential"))
    assert gaussian["inference"] == exponential["inference"] == '"mcmc"', "by reference"
