"""Versions of the installed packages, for bug reports."""

import importlib.metadata
import platform
import sys

REQUIRED = ("numpy", "scipy", "scikit-learn", "emcee", "joblib", "tqdm")
OPTIONAL = ("pandas", "matplotlib", "arviz", "dask", "distributed")


def show_versions() -> None:
    """Print the versions of Python, the operating system, skldp and its dependencies.

    No package is imported, and no name, path or address is printed, so the text can be pasted into a bug report.

    Returns
    -------
    None

    Examples
    --------
    >>> from skldp import show_versions
    >>> show_versions()
    System
    ...
    Needed
    ...
    Optional
    ...
    """
    sections = {
        "System": {
            "python": platform.python_version(),
            "implementation": platform.python_implementation(),
            "system": f"{platform.system()} {platform.release()}".strip(),
            "machine": platform.machine(),
            "64 bits": "yes" if sys.maxsize > 2**32 else "no",
        },
        "Needed": {name: _version(name) for name in ("skldp", *REQUIRED)},
        "Optional": {name: _version(name) for name in OPTIONAL},
    }
    width = max(len(name) for section in sections.values() for name in section)
    for title, section in sections.items():
        print(title)
        for name, value in section.items():
            print(f"  {name.ljust(width)}  {value}")


def _version(name):
    """Return the version of an installed distribution, without importing it."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"
