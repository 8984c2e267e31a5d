"""Estimator of the parameters of any distribution of scipy.stats."""

from typing import Any

from skldp._validation._parameters import check_bounds, plain_number
from skldp.estimators._values import BaseLDPDensity
from skldp.exceptions import InvalidParameterError
from skldp.models.values._scipy_family import scipy_family


class LDPDistribution(BaseLDPDensity):
    r"""Parameters of any distribution of ``scipy.stats``, from one noisy report of each client.

    Parameters
    ----------
    distribution : str or scipy.stats distribution, default="norm"
        Name or object of ``scipy.stats``, continuous or discrete.
    bounds : tuple of float, default=(-5, 5)
        Public interval; values are clipped to it, and the model accounts for the clipping. Whole numbers for a discrete
        distribution.
    priors : dict or None, default=None
        For each parameter (the distribution's shapes, ``loc``, ``scale``) a frozen continuous distribution of
        ``scipy.stats`` as its prior, or a number as its fixed value. By default shapes are Gamma(2, 1) (uniform for a
        probability ``p``), scale is Gamma(2) with mean a tenth of the range, and loc is normal around the midpoint if
        there are no shapes, else fixed at 0.

        **Bounds that are ends of the support fix loc and scale.** A distribution with shapes on an interval, such as
        ``"beta"``, extends from one bound to the other by default: ``bounds=(0, 10)`` fixes ``loc=0`` and
        ``scale=10``. A distribution that begins at 0, such as ``"expon"``, has ``loc=0`` if the bounds begin there.
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    window : "auto" or float, default="auto"
        Half-window of the square wave, as a fraction of the range.
    columns, inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    params_ : dict of str to float or ndarray
        Posterior means by name.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    Notes
    -----
    The likelihood of the square wave needs only the distribution function. For a discrete distribution it is exact on
    the grid. For a continuous one it is that of groups of reports, of at most 1/100 of the range each, and is accurate
    to the fourth order in their width.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from skldp import LDPDistribution
    >>> incomes = np.random.default_rng(0).gamma(3.0, 1.0, size=(20_000, 1))
    >>> model = LDPDistribution(distribution="gamma", bounds=(0, 12), priors={"a": stats.gamma(2), "scale": 1.0},
    ...                         random_state=0).fit(incomes)
    >>> low, high = model.posterior_.interval(0.99)["a"]
    >>> bool(low < 3.0 < high)
    True
    """

    def __init__(self, *, distribution: Any = "norm", bounds: tuple[float, float] = (-5, 5), priors: Any = None,
                 epsilon: float = 1.0, window: float | str = "auto", columns: str = "auto", inference: Any = "mcmc",
                 random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False) -> None:
        self.distribution = distribution
        self.bounds = bounds
        self.priors = priors
        self.epsilon = epsilon
        self.window = window
        self.columns = columns
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    def _protocol(self, n_features=None, labels=None):
        lower, upper = bounds = check_bounds(self.bounds)
        n_levels = None
        if self._family().discrete:
            if lower != round(lower) or upper != round(upper):
                raise InvalidParameterError(f"bounds of a discrete distribution must be whole numbers, got {bounds!r}. "
                                            "Round them outwards.")
            n_levels = int(upper - lower)
        return self._value_protocol(n_features, bounds=bounds, n_levels=n_levels)

    def _family(self):
        return scipy_family(self.distribution, self.priors, check_bounds(self.bounds))

    def _describe(self, posterior, models, aggregate):
        return {"params_": {name: plain_number(value) for name, value in posterior.mean().items()}}
