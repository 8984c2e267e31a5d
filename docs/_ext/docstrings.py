"""What the reference shows of a docstring, and of a class."""

import inspect
import re

INITIAL = re.compile(r"^(\s*)([A-Z])\. (?=[A-Z])")


def defined_in(member):
    """Module in which a method, property or attribute was written, or None."""
    member = getattr(member, "fget", None) or getattr(member, "func", None) or member
    return getattr(inspect.unwrap(member) if callable(member) else member, "__module__", None)


def skip_foreign(app, what, name, member, would_skip, options):
    """Skip methods of scikit-learn and emcee: they have their own manuals."""
    module = defined_in(member)
    return True if module is not None and not module.startswith("skldp") else None


def escape_initials(app, what, name, obj, options, lines):
    """Keep the initial of an author at the start of a line from becoming the mark of a list."""
    lines[:] = [INITIAL.sub(r"\1\\\2. ", line) for line in lines]


def setup(app):
    """Register both."""
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("autodoc-process-docstring", escape_initials, priority=900)  # after numpydoc
    return {"parallel_read_safe": True, "parallel_write_safe": True}
