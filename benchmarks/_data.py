"""Data sets that the benchmarks read, and the tables of results that they write.

A set is read from the folder that the environment variable ``SKLDP_DATA`` names, else Adult and Wine Quality are
fetched from OpenML. Kosarak must be in the folder.
"""

import csv
import gzip
import os
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"


def load_adult():
    """Census income (UCI Adult), 48,842 rows with the column ``income`` last; missing values are NaN."""
    file = data_file("adult.csv.gz")
    if file is not None:
        return read_frame(file)
    return openml_frame("adult", 2).rename(columns={"class": "income"})


def load_wine_quality():
    """Wine Quality (UCI), 6,497 rows with the column ``quality``; from the folder also with ``colour``."""
    file = data_file("wine_quality.csv.gz")
    if file is not None:
        return read_frame(file)
    frame = openml_frame("wine_quality", 1)
    return frame.rename(columns={name: name.replace(".", " ").replace("_", " ") for name in frame.columns})


def load_kosarak():
    """Click sessions of Kosarak (FIMI), the first 100,000 of 990,002: a list of arrays of items."""
    file = data_file("kosarak_first100k.dat.gz")
    if file is None:
        raise FileNotFoundError(
            "Kosarak is not there. Put the first 100,000 sessions (lines) of the FIMI data set Kosarak as "
            "kosarak_first100k.dat.gz in a folder, and name the folder in the environment variable SKLDP_DATA.")
    with gzip.open(file, "rt") as lines:
        return [np.array(line.split(), dtype=int) for line in lines]


def data_file(name):
    """Path of a file in the folder that SKLDP_DATA names, or None when it is not there."""
    folder = os.environ.get("SKLDP_DATA")
    if not folder:
        return None
    file = Path(folder) / name
    return file if file.is_file() else None


def read_frame(file):
    """A compressed CSV file as a data frame."""
    from pandas import read_csv

    return read_csv(file, na_values="?")


def openml_frame(name, version):
    """A set of OpenML as a data frame."""
    from sklearn.datasets import fetch_openml

    return fetch_openml(name, version=version, as_frame=True).frame


def write_table(rows, path):
    """Write dicts with the same keys as CSV."""
    path.parent.mkdir(exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_table(path):
    """Rows of a CSV file as dicts, with numbers where they are numbers."""
    with path.open() as file:
        return [{name: number_or_text(text) for name, text in row.items()} for row in csv.DictReader(file)]


def number_or_text(text):
    """The number that a text spells, or the text."""
    try:
        return float(text)
    except ValueError:
        return text


def pyplot():
    """Matplotlib's pyplot without a window, or None, with a message, where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        print('No figure: matplotlib is not installed. Install it with pip install "skldp[plot]", then run with '
              "--figure-only.")
        return None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    return plt


def save_figure(plt, figure, path):
    """Write a figure, and say where it is."""
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"Figure: {path.relative_to(Path(__file__).parent.parent)}")
