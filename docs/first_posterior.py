"""Draw the picture of the README. Run with: python docs/first_posterior.py

It runs the first two code blocks of README.rst, so that the picture shows what those lines draw, and writes
docs/_static/first_posterior.png.
"""

import os
import textwrap
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
matplotlib.rcParams.update({"figure.figsize": (6.4, 3.2), "savefig.dpi": 100, "savefig.bbox": "tight"})

DOCS = Path(__file__).parent
blocks = (DOCS.parent / "README.rst").read_text(encoding="utf-8").split(".. code-block:: python\n")[1:3]
names: dict = {}
os.chdir(DOCS / "_static")
for block in blocks:
    lines = block.split("\n")
    end = next((i for i, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    exec(textwrap.dedent("\n".join(lines[:end])), names)
