"""Data sets that the benchmarks read, and the tables of results that they write.

A data set is read from the folder in the environment variable ``SKLDP_DATA``, or else fetched: Adult and Wine Quality
from OpenML, Kosarak from the FIMI repository. Results are comparable only on the same rows, so files must have the
expected checksums. A smoke run uses a made-up stand-in if a data set is not in the folder and cannot be fetched.
"""

import csv
import gzip
import hashlib
import os
import socket
import sys
import warnings
import zlib
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from io import BytesIO
from itertools import islice
from pathlib import Path
from urllib.request import urlopen

import numpy as np
from _stand_ins import adult_stand_in, kosarak_stand_in, wine_stand_in
from sklearn.datasets import fetch_openml, get_data_home

RESULTS = Path(__file__).parent / "results"
STAND_INS = "SKLDP_BENCHMARK_STAND_INS"  # names of data sets; in the environment, which worker processes inherit
TIMEOUT = 10  # seconds to wait for a server
NETWORK_ERRORS = (OSError, HTTPException, EOFError, zlib.error, ValueError)  # OpenML's own are ValueErrors
KOSARAK_URL = "http://fimi.uantwerpen.be/data/kosarak.dat.gz"
KOSARAK_SESSIONS = 100_000
ADULT_TRAINING, RED_WINES = 32_561, 1599  # rows of the part that comes first
WINE_COLUMNS = ["fixed acidity", "volatile acidity", "citric acid", "residual sugar", "chlorides",
                "free sulfur dioxide", "total sulfur dioxide", "density", "pH", "sulphates", "alcohol", "quality"]


class DataError(Exception):
    """A data set cannot be used; the message says what to do."""


class DataMissing(DataError):
    """A data set is not in the folder and cannot be fetched."""


@dataclass(frozen=True)
class DataSet:
    """A data set: its file in the folder, and the SHA-256 of the file's decompressed text."""

    title: str
    file: str
    sha256: str
    content: str


ADULT = DataSet("Adult", "adult.csv.gz", "6f8f2babc5ee744afd03f6d978d8d6b3e3b0aae240d931c4976a9cce7af0d347",
                "UCI's census income as CSV, training rows first, with the column income last")
WINE = DataSet("Wine Quality", "wine_quality.csv.gz",
               "4d8f5bd249c1ede9d928f7eb7d30c4edeada439ec5db17502f96a207fa146fd1",
               "UCI's red wines, then the white ones, as CSV with the column colour last")
KOSARAK = DataSet("Kosarak", "kosarak_first100k.dat.gz",
                  "5daa2c7878d6523c2b6d329c5c263ebdc3f28f8541cfe6be74c2e7e656e5bd95",
                  "the first 100,000 sessions (lines) of the FIMI data set")
# SHA-256 of the rows as written by ``rows_checksum``; it differs for wine, where UCI's file writes one number as 2.0.
ADULT_ROWS = ADULT.sha256
WINE_ROWS = "a3f6c514e2245e1d7f65ad6914d93f3dedc49772320c3b0e22238b56aeeefb4c"


def load_adult():
    """Load census income (UCI Adult), 48,842 rows with the column ``income`` last; missing values are NaN."""
    if stands_in("adult"):
        return adult_stand_in()
    text = folder_text(ADULT)
    if text is not None:
        return read_frame(text)
    frame = openml_frame(ADULT, 1590).rename(columns={"class": "income"})
    return in_order(ADULT, frame, ADULT_TRAINING, ADULT_ROWS)


def load_wine_quality():
    """Load Wine Quality (UCI), 6,497 rows with the columns ``quality`` and, if the rows match, ``colour``."""
    if stands_in("wine"):
        return wine_stand_in()
    text = folder_text(WINE)
    if text is not None:
        return read_frame(text)
    frame = openml_frame(WINE, 287)
    frame = frame.rename(columns={name: name.replace(".", " ").replace("_", " ") for name in frame.columns})
    absent = [name for name in WINE_COLUMNS if name not in frame.columns]
    if absent:
        raise missing_error(WINE, f"OpenML has no column {absent[0]}")
    colour = np.where(np.arange(len(frame)) < RED_WINES, "red", "white")
    return in_order(WINE, frame[WINE_COLUMNS], RED_WINES, WINE_ROWS, colour=colour)


def load_kosarak():
    """Load click sessions of Kosarak (FIMI), the first 100,000 of 990,002: a list of arrays of items."""
    if stands_in("kosarak"):
        return kosarak_stand_in()
    text = folder_text(KOSARAK)
    if text is None:
        text = fetched_kosarak()
    return [np.array(line.split(), dtype=int) for line in text.decode().splitlines()]


LOADERS = {"adult": (ADULT, load_adult), "wine": (WINE, load_wine_quality), "kosarak": (KOSARAK, load_kosarak)}


def make_ready(*names, quick=False):
    """Check that data sets can be loaded; if not, exit with a message, or use stand-ins in a smoke run."""
    os.environ.pop(STAND_INS, None)
    missing = []
    for name in names:
        data, load = LOADERS[name]
        try:
            load()
        except DataMissing as error:
            if not quick:
                sys.exit(str(error))
            missing.append(name)
            print(f"{data.title} is not in a folder and cannot be fetched. A small made-up stand-in is used instead; "
                  "its numbers mean nothing.\n", flush=True)
        except DataError as error:
            sys.exit(str(error))
    os.environ[STAND_INS] = " ".join(missing)


def stands_in(name):
    """Whether this run uses a stand-in for a data set."""
    return name in os.environ.get(STAND_INS, "").split()


def folder_text(data):
    """Return the text of a data set's file in the folder SKLDP_DATA, or None if there is no such file."""
    folder = os.environ.get("SKLDP_DATA")
    if not folder or not (Path(folder) / data.file).is_file():
        return None
    return checked_text(data, Path(folder) / data.file)


def checked_text(data, path):
    """Return the decompressed text of a file, after comparing its checksum."""
    try:
        text = gzip.decompress(path.read_bytes())
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} cannot be read ({error}): put {data.content} there, or remove it to "
                        f"fetch {data.title}.") from error
    if hashlib.sha256(text).hexdigest() != data.sha256:
        raise DataError(f"{path} is not the file behind the published figures (other SHA-256 of the text): put "
                        f"{data.content} there, or remove it to fetch {data.title}.")
    return text


def read_frame(text):
    """Return a CSV text as a data frame."""
    from pandas import read_csv  # imported here because Kosarak and the tables of results do not need pandas

    return read_csv(BytesIO(text), na_values="?")


def openml_frame(data, data_id):
    """Return a data set of OpenML as a data frame.

    The number fixes the version. scikit-learn compares the file with the MD5 checksum that OpenML publishes, and keeps
    it in its data home.
    """
    try:
        with socket_timeout(), warnings.catch_warnings():
            # Before each retry scikit-learn warns and waits, partly regardless of ``n_retries``. Without a network this
            # takes most of a minute, so the first warning is turned into an error.
            warnings.filterwarnings("error", "A network error occurred")
            warnings.filterwarnings("ignore", "Invalid cache")
            return fetch_openml(data_id=data_id, as_frame=True, parser="auto").frame
    except UserWarning as warning:
        raise missing_error(data, warning.__context__) from warning
    except NETWORK_ERRORS as error:
        raise missing_error(data, error) from error


@contextmanager
def socket_timeout():
    """Set the time-out of sockets that are opened inside to ``TIMEOUT``."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(TIMEOUT)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)


def missing_error(data, reason):
    """Return the error for a data set that cannot be found."""
    return DataMissing(f"{data.title} is not in a folder and could not be fetched ({reason}): put {data.file}, "
                       f"{data.content}, into a folder and name that folder in the environment variable SKLDP_DATA.")


def in_order(data, frame, n_first, checksum, **columns):
    """Return fetched rows in the order of the published figures, with the columns that depend on this order.

    OpenML's tables may have the second part of the rows first.
    """
    from pandas import concat

    for rows in (frame, concat([frame.iloc[-n_first:], frame.iloc[:-n_first]], ignore_index=True)):
        if rows_checksum(rows.assign(**columns)) == checksum:
            return rows.assign(**columns)
    print(f"{data.title} was fetched with other rows, or in another order, than for the published figures: "
          "expect other numbers.\n", flush=True)
    return frame


def rows_checksum(frame):
    """SHA-256 of a data frame as CSV."""
    text = frame.to_csv(index=False, na_rep="?", float_format="%.15g", lineterminator="\n")
    return hashlib.sha256(text.encode()).hexdigest()


def fetched_kosarak():
    """Return the first 100,000 lines of Kosarak, fetched once and stored in scikit-learn's data home."""
    try:
        path = Path(get_data_home()) / KOSARAK.file
        if not path.is_file():
            with urlopen(KOSARAK_URL, timeout=TIMEOUT) as answer, gzip.open(answer) as lines:
                # The checksum is of lines without trailing spaces.
                text = b"".join(line.rstrip() + b"\n" for line in islice(lines, KOSARAK_SESSIONS))
            if hashlib.sha256(text).hexdigest() != KOSARAK.sha256:
                raise ValueError(f"{KOSARAK_URL} has other content than expected")
            write_whole(path, gzip.compress(text, mtime=0))
    except NETWORK_ERRORS as error:
        raise missing_error(KOSARAK, error) from error
    return checked_text(KOSARAK, path)


def write_whole(path, content):
    """Write a file so that no reader sees a part of it."""
    part = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        part.write_bytes(content)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def results_folder(quick):
    """Return the folder of tables and figures; those of smoke runs are in a separate one, ignored by git."""
    return RESULTS / "quick" if quick else RESULTS


def write_table(rows, path):
    """Write dicts with the same keys as CSV."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def read_table(path):
    """Return the rows of a CSV file as dicts, with numbers as floats."""
    with path.open() as file:
        return [{name: number_or_text(text) for name, text in row.items()} for row in csv.DictReader(file)]


def number_or_text(text):
    """Return a text as a number if possible, else unchanged."""
    try:
        return float(text)
    except ValueError:
        return text


def pyplot():
    """Return matplotlib's pyplot without a window, or print a message and return None if it is not installed."""
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
    """Write a figure and print its path."""
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"Figure: {path.relative_to(Path(__file__).parent.parent)}")
