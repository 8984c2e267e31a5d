"""Settings of the documentation. Build it with: python -m sphinx -W --keep-going -b html docs docs/_build/html"""

import sys
from pathlib import Path

import skldp

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

project = "skldp"
author = "the skldp developers"
copyright = f"2026, {author}"
version = release = skldp.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",  # ours, in _ext
    "docstrings",  # ours, in _ext
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "code"
nitpicky = True
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = f"skldp {version}"
html_static_path = ["_static"]
html_css_files = ["skldp.css"]
html_show_sourcelink = False
html_copy_source = False
html_math_renderer = "mathml"
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
}
html_sidebars = {"index": [], "changes": []}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "doc_module": ("skldp",),
    "backreferences_dir": "generated/backreferences",
    "remove_config_comments": True,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "download_all_examples": False,
    "plot_gallery": "True",
}
