"""Number of reports for a mean or a quantile of a value without a family."""

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from skldp._validation._parameters import check_bounds, check_fraction, check_positive, check_real
from skldp.analysis._planning import checked_assumptions, checked_name
from skldp.exceptions import InvalidParameterError
from skldp.models.values._density_coordinates import prior_precision
from skldp.models.values._smooth_masses import SmoothMasses
from skldp.models.values._window_likelihood import WindowLikelihood

_SCALE = 0.7  # of the deviations from a normal density: about what fits of normal values learn
_FEWEST, _MOST = 1e-3, 1e15  # reports


def plan_density(estimator, precision, parameter, assumptions):
    r"""Return the number of reports for a posterior precision of the mean, the standard deviation or a quantile.

    The records are assumed to be normal with the given mean and standard deviation, clipped to the bounds, but the
    model does not know this. With the information F of one report and the prior precision D of the coefficients of the
    log-density, a parameter with gradient g has the variance :math:`g^T(NF + D)^{-1}g`, which is solved for N.
    """
    optional = {"mean": None, "q": 0.5, "n_features": 1}
    given = checked_assumptions(assumptions, estimator, ["std"], optional)
    name = checked_name(parameter, ["mean", "std", "quantile"])
    protocol = estimator.protocol(given.pop("n_features"))
    grid = estimator._grid(protocol)
    masses = _normal_masses(grid, given["mean"], check_positive(given["std"], "std"))
    directions = _directions(grid, masses)
    none = np.zeros(protocol.cells.n_cells, dtype=np.int64)
    information = WindowLikelihood(grid, protocol.randomizer, none).information(masses, directions)
    prior = np.diag(prior_precision(directions.shape[1], _SCALE))
    gradient = _GRADIENTS[name](grid, masses, check_fraction(given["q"], "q")) @ directions

    def excess(log_reports):
        """Logarithm of the variance with this number of reports, in units of the one asked for."""
        variance = gradient @ np.linalg.solve(np.exp(log_reports) * information + prior, gradient)
        return np.log(variance * precision)

    share = protocol.n_features / protocol.n_reported  # each column is in this share of the reports
    low, high = np.log(_FEWEST), np.log(_MOST)
    if excess(low) < 0:
        return _FEWEST
    return share * np.exp(brentq(excess, low, high)) if excess(high) < 0 else np.inf


def _normal_masses(grid, mean, std):
    """Return the masses of the cells for normal records, with a little of a uniform distribution."""
    lower, upper = check_bounds(grid.bounds)
    mean = (lower + upper) / 2 if mean is None else check_real(mean, "mean")
    if not lower <= mean <= upper:
        raise InvalidParameterError(f"mean={mean!r} is outside the bounds ({lower!r}, {upper!r}). Give a mean inside.")
    inner = ndtr((grid.value_edges[1:-1] - mean) / std)
    return 0.999 * np.diff(inner, prepend=0.0, append=1.0) + 0.001 * grid.sizes / grid.sizes.sum()


def _directions(grid, masses):
    """Return the derivatives of masses by the coefficients of their log-density."""
    basis = SmoothMasses(grid.sizes, np.empty(0, dtype=np.int64)).basis
    return masses[:, None] * (basis - masses @ basis)


def _std_gradient(grid, masses, q):
    (mean,), (std,) = grid.moments(masses[None])
    return (grid.points - mean) ** 2 / (2 * std)


def _quantile_gradient(grid, masses, q):
    place = grid.quantile(masses[None], np.array([q]))[0, 0]
    density = masses / grid.widths
    return np.where(grid.points <= place, -1.0, 0.0) / density[grid.cell_of(place)]


# Derivatives of parameters by the masses, up to a constant: the derivatives of masses sum to zero.
_GRADIENTS = {"mean": lambda grid, masses, q: grid.points, "std": _std_gradient, "quantile": _quantile_gradient}
