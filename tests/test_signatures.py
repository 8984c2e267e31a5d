"""Documented defaults of public classes and functions match their signatures."""

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
# Methods that document their parameters, where they are defined.
METHODS = {f"{base.__module__}.{base.__name__}.{name}": thing
           for public in PUBLIC.values() if inspect.isclass(public)
           for base in inspect.getmro(public) if base.__module__.startswith("skldp")
           for name, thing in vars(base).items()
           if inspect.isfunction(thing) and not name.startswith("_")
           and (inspect.getdoc(thing) or "").find("\nParameters\n---") >= 0}
# Known wrong docstrings: parameters by public name. Remove an entry after its correction.
KNOWN: dict[str, set[str]] = {}


def parameters_section(text):
    """Return the entries of the section Parameters of a numpydoc text as pairs of a header and a description."""
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
    """Return the documented defaults of parameters as texts; None for parameters without a default."""
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
    """Return the public class or function with a given name."""
    return next(thing for full_name, thing in PUBLIC.items() if full_name.rpartition(".")[2] == name)


def value_of(text):
    """Return the value of the text of a default."""
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return eval(text, {"__builtins__": {}, "sqrt": math.sqrt, "inf": math.inf, "nan": math.nan})


def same(stated, actual):
    """Whether two defaults are the same; numbers are compared by value, and booleans are not numbers."""
    if isinstance(stated, (tuple, list)):
        return (isinstance(actual, (tuple, list)) and len(stated) == len(actual)
                and all(same(one, other) for one, other in zip(stated, actual)))
    if isinstance(stated, (int, float)) and not isinstance(stated, bool):
        number = isinstance(actual, (int, float)) and not isinstance(actual, bool)
        return number and (math.isclose(stated, actual) or stated != stated and actual != actual)
    return type(stated) is type(actual) and stated == actual


def signature_of(thing):
    """Return the defaults of the parameters of a class or function by name; `empty` if there is none."""
    factories = {field.name: field.default_factory() for field in getattr(thing, "__dataclass_fields__", {}).values()
                 if field.default_factory is not dataclasses.MISSING}
    return {name: factories.get(name, parameter.default)
            for name, parameter in inspect.signature(thing).parameters.items() if name != "self"}


def wrong(thing):
    """Return the parameters whose docstring and signature disagree, with a description of the difference."""
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
def test_documented_defaults_match_the_signature(name):
    errors = wrong(CALLABLE[name])
    assert errors.keys() <= KNOWN.get(name, set()), errors


@pytest.mark.parametrize("name", METHODS)
def test_documented_defaults_of_methods_match_the_signature(name):
    """Methods may leave out that the default is None, as for "y : ignored"."""
    stated, actual = documented(METHODS[name]), signature_of(METHODS[name])
    left_out = {name for name, default in actual.items() if default is None and stated.get(name) is None}
    errors = wrong(METHODS[name])
    assert errors.keys() <= left_out, errors


def test_number_of_compared_defaults():
    assert len(METHODS) > 40
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
