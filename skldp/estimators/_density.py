"""Estimator of the distribution of a bounded value, without a family."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted, validate_data

from skldp._validation._limits import MAX_LEVELS
from skldp._validation._parameters import (
    check_bounds,
    check_fraction,
    check_integer,
    check_positive,
    is_auto,
    plain_number,
)
from skldp.analysis._density_planning import plan_density
from skldp.analysis._fit_checks import warn_of_misfit
from skldp.analysis._mean_check import check_mean, warn_of_mean
from skldp.estimators._synthetic import Synthetic
from skldp.estimators._values import BaseLDPDensity
from skldp.exceptions import InvalidParameterError
from skldp.mechanisms._square_wave import density_window
from skldp.models.values._density import DensityModel
from skldp.models.values._grid import ValueGrid

_N_CELLS = 256
_MOST_EXACT_CELLS = 512  # of a value with a step, which then has a cell for each value


class LDPDensity(Synthetic, BaseLDPDensity):
    r"""Distribution of a bounded value of any shape, from one noisy report of each client.

    Mean, standard deviation, quantiles and distribution function come with honest intervals for skewed, multimodal or
    clipped values, and for values with a share of zeros.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    bounds : tuple of float, default=(-5, 5)
        Public interval; values are clipped to it. Values outside count as the bound itself.
    step : float or None, default=None
        Public step of the values, counted from the lower bound: 1 for whole numbers, 0.5 for half points. The bounds
        must be a whole number of steps apart. None for continuous values.
    n_cells : "auto" or int, default="auto"
        Number of cells, in each of which the density is constant. "auto" is one for each value if there is a step and
        at most 512 values, and 256 otherwise.
    window : "auto" or float, default="auto"
        Half-window of the square wave, as a fraction of the range. "auto" is wider than for a family of distributions:
        a quarter of the range up to epsilon 1.
    columns, inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    mean_, std_ : float, or ndarray of shape (n_features,)
        Posterior means.
    density_ : ndarray of shape (n_cells,) or (n_cells, n_features)
        Posterior mean density of each cell.
    cell_edges_ : ndarray of shape (n_cells + 1,)
        Ends of the cells. The first and the last cell are half a step of the reports' grid wide and contain the bounds,
        to which values are clipped; with ``step`` each cell is centred at its values.
    mean_check_ : MeanCheck or None
        The average of the decoded reports, which is unbiased for any shape, with its standard error, and whether the
        posterior mean agrees with it.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    Warns
    -----
    ModelMisfitWarning
        If the p-value of ``fit_check_`` is below 0.001 or that of ``mean_check_`` below 0.005.

    See Also
    --------
    LDPGaussian : Needs fewer people if the values are known to be normal.
    LDPDistribution : Any family of ``scipy.stats``.

    Notes
    -----
    The density is constant in each cell. Its logarithm is that of a normal density plus a smooth deviation, whose scale
    is learned. An unknown share of the mass near each bound lies at the bound itself, and cells where the reports
    clearly show a point mass have one. The likelihood of the square wave is exact for these masses. See
    :class:`skldp.models.DensityModel` for the prior.

    *Known limits.* Point masses inside the bounds that the reports cannot show, such as round numbers at a small
    budget, are smoothed, so that quantiles near them can be off; ``step`` makes values on a grid exact. The reports
    cannot tell a thin tail from one with 1 % of the mass. From expected reports of 20,000 people at epsilon 0.5 to 4,
    the mean of skewed values is up to 0.9 posterior standard deviations too small, and the standard deviation of
    bell-shaped ones up to 1 too large, so that 90 % intervals of them cover less than 90 %. ``mean_check_`` has the
    unbiased average of the decoded reports, whose standard error needs no assumption; its interval is 1 to 2.3 times as
    wide.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPDensity
    >>> prices = np.random.default_rng(0).lognormal(7.5, 0.8, size=(20_000, 1))
    >>> model = LDPDensity(epsilon=1.0, bounds=(0, 10_000), random_state=0).fit(prices)
    >>> mean, low, high = model.quantile(0.5, level=0.99)
    >>> bool(low < np.median(prices) < high)
    True
    """

    _plan = staticmethod(plan_density)
    _misfit_advice = ("No density on these cells explains them: some reports are forged or were made by another "
                      "protocol, or values lie on a grid. Check their source, and set step if the values have one.")

    def __init__(self, *, epsilon: float = 1.0, bounds: tuple[float, float] = (-5, 5), step: float | None = None,
                 n_cells: int | str = "auto", window: float | str = "auto", columns: str = "auto",
                 inference: Any = "mcmc", random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.step = step
        self.n_cells = n_cells
        self.window = window
        self.columns = columns
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    def _protocol(self, n_features=None, labels=None):
        bounds = check_bounds(self.bounds)
        protocol = self._value_protocol(n_features, bounds=bounds, n_levels=self._n_levels(bounds))
        if not is_auto(self.window):
            return protocol
        return dataclasses.replace(protocol, window=density_window(protocol.randomizer.epsilon))

    def _n_levels(self, bounds):
        """Return the number of steps between the bounds; None, the default of the mechanism, for continuous values."""
        if self.step is None:
            return None
        n_steps = (bounds[1] - bounds[0]) / check_positive(self.step, "step")
        if n_steps > MAX_LEVELS or abs(n_steps - round(n_steps)) > 1e-6 or round(n_steps) < 1:
            raise InvalidParameterError(f"bounds={self.bounds!r} must be a whole number of steps of {self.step!r} "
                                        f"apart, at most {MAX_LEVELS}; they are {n_steps:.6g}. Move a bound.")
        return round(n_steps)

    def _grid(self, protocol):
        """Return the cells of a value."""
        n_values = protocol.n_levels + 1
        automatic = n_values if self.step is not None and n_values <= _MOST_EXACT_CELLS else _N_CELLS
        n_cells = automatic if is_auto(self.n_cells) else check_integer(self.n_cells, "n_cells", 3)
        return ValueGrid(protocol.bounds, protocol.n_levels, min(n_cells, n_values), self.step is not None)

    def _models(self, aggregate):
        grid = self._grid(aggregate.protocol)
        return [DensityModel(grid, aggregate, column) for column in range(aggregate.protocol.n_features)]

    def _describe(self, posterior, models, aggregate):
        means = posterior.draws["mean"].reshape(-1, len(models))
        return {**super()._describe(posterior, models, aggregate), "cell_edges_": models[0].grid.value_edges,
                "mean_check_": check_mean([model.parts for model in models], means)}

    def _warn(self):
        warn_of_misfit(self.fit_check_, type(self).__name__, self._misfit_advice, stacklevel=3)
        warn_of_mean(self.mean_check_, self.mean_, stacklevel=3)

    def quantile(self, q: ArrayLike, level: float | None = None) -> Any:
        """Return quantiles of the distribution.

        Parameters
        ----------
        q : float or array-like of shape (n_q,)
            Probabilities in [0, 1]; 0.5 is the median.
        level : float or None, default=None
            Posterior probability inside an interval. None returns no interval.

        Returns
        -------
        float or ndarray of shape (n_q,), or a tuple (mean, low, high) of these
            Posterior means, and the ends of the central credible intervals if there is a ``level``. With several
            columns each has a further axis for them.
        """
        q = np.asarray(q, dtype=float)
        if not ((q >= 0) & (q <= 1)).all():
            raise InvalidParameterError(f"q must be probabilities between 0 and 1, got {q!r}.")
        return self._summary(lambda grid, masses: grid.quantile(masses, q.ravel()), q, level)

    def cdf(self, x: ArrayLike, level: float | None = None) -> Any:
        """Return the probability of values up to x.

        Parameters
        ----------
        x : float or array-like of shape (n_x,)
            Values.
        level : float or None, default=None
            Posterior probability inside an interval. None returns no interval.

        Returns
        -------
        float or ndarray of shape (n_x,), or a tuple (mean, low, high) of these
            As :meth:`quantile` returns.
        """
        x = np.asarray(x, dtype=float)
        if np.isnan(x).any():
            raise InvalidParameterError(f"x must be numbers, and some are NaN: {x!r}.")
        return self._summary(lambda grid, masses: grid.cdf(masses, x.ravel()), x, level)

    def _summary(self, function, points, level):
        """Return posterior mean and interval of a function of the masses, in the shape of the points."""
        if points.ndim > 1:
            raise InvalidParameterError(f"Pass a number or a one-dimensional array, got shape {points.shape}.")
        masses, grid = self._masses(), self._grid(self.protocol_)
        draws = np.stack([function(grid, masses[:, :, column]) for column in range(masses.shape[2])], axis=-1)
        draws = draws.reshape(len(masses), *points.shape, *masses.shape[2:][masses.shape[2] == 1:])
        if level is None:
            return plain_number(draws.mean(axis=0))
        tail = (1 - check_fraction(level, "level")) / 2
        return tuple(map(plain_number, (draws.mean(axis=0), *np.quantile(draws, [tail, 1 - tail], axis=0))))

    def _masses(self):
        """Return draws of the masses of the cells, shape (n_draws, n_cells, n_features)."""
        check_is_fitted(self, "posterior_")
        widths, draws = self._grid(self.protocol_).widths, self.posterior_.draws["density"]
        return draws.reshape(-1, len(widths), self.protocol_.n_features) * widths[:, None]

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the logarithm of the posterior mean density of each row; values are clipped to the bounds.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.

        Returns
        -------
        ndarray of shape (n_samples,)
            Sum over the columns, which are independent.
        """
        check_is_fitted(self, "posterior_")
        rows = validate_data(self, X, dtype=np.float64, reset=False)
        cells = self._grid(self.protocol_).cell_of(rows)
        density = self.density_.reshape(len(self.density_), -1)
        return np.log(np.take_along_axis(density, cells, axis=0)).sum(axis=1)

    def _sample(self, n_samples, rng):
        # Each row comes from the density of one posterior draw. The columns are independent.
        masses, grid = self._masses(), self._grid(self.protocol_)
        chosen = rng.integers(len(masses), size=n_samples)
        return np.stack([_draw_values(grid, masses[:, :, column], chosen, rng) for column in range(masses.shape[2])],
                        axis=1)


def _draw_values(grid, masses, chosen, rng, block=4096):
    """Draw a value from each chosen row, in blocks of bounded memory."""
    return np.concatenate([grid.draw(masses[chosen[start:start + block]], rng)
                           for start in range(0, len(chosen), block)])
