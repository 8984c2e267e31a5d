"""Estimators of distributions with one parameter: exponential, Poisson, geometric."""

from typing import Any

from skldp._validation._parameters import check_choice, check_integer, check_positive
from skldp.analysis._planning import plan_value
from skldp.estimators._values import BaseLDPDensity
from skldp.mechanisms._laplace import Laplace
from skldp.mechanisms._square_wave import SquareWave
from skldp.models.values._families import ExponentialFamily, GeometricFamily, PoissonFamily
from skldp.models.values._priors import BetaPrior, GammaPrior, check_prior


_MECHANISMS = {"square_wave": SquareWave, "laplace": Laplace}  # whose likelihoods have closed forms here


class _RateEstimator(BaseLDPDensity):
    """Base class of estimators with one parameter, for values in [0, upper]."""

    _plan = staticmethod(plan_value)

    def _protocol(self, n_features=None, labels=None):
        n_levels = self._n_levels()
        check_choice(self.mechanism, "mechanism", _MECHANISMS)
        return self._value_protocol(n_features, bounds=(0.0, float(self.upper)), mechanism=self.mechanism,
                                    n_levels=n_levels)

    def _n_levels(self):
        """Return the number of levels of the grid; None, the default of the mechanism, for continuous values."""
        check_positive(self.upper, "upper")


class _CountEstimator(_RateEstimator):
    """Base class of estimators with one parameter, for counts 0 .. upper."""

    def _n_levels(self):
        return check_integer(self.upper, "upper", 1)


class LDPExponential(_RateEstimator):
    r"""Rate of exponentially distributed values, from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    upper : float, default=5.0
        Public upper bound; values are clipped to [0, upper], and the model accounts for it.
    mechanism : {"square_wave", "laplace"}, default="square_wave"
        How a value is randomised.
    window : "auto" or float, default="auto"
        Half-window of the square wave, as a fraction of the range.
    rate_prior : "auto" or (shape, rate), default="auto"
        Gamma prior of the rate; by default shape 2 with mean 5/upper.
    columns, inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    rate_ : float, or ndarray of shape (n_features,)
        Posterior mean.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    Notes
    -----
    A record is :math:`\min(x, b)` with :math:`p(x) = \theta e^{-\theta x}`, so b has probability :math:`e^{-\theta b}`.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPExponential
    >>> waits = np.random.default_rng(0).exponential(0.5, size=(20_000, 1))
    >>> model = LDPExponential(epsilon=1.0, upper=5.0, random_state=0).fit(waits)
    >>> low, high = model.posterior_.interval(0.99)["rate"]
    >>> bool(low < 2.0 < high)
    True
    """

    def __init__(self, *, epsilon: float = 1.0, upper: float = 5.0, mechanism: str = "square_wave",
                 window: float | str = "auto", columns: str = "auto", rate_prior: Any = "auto",
                 inference: Any = "mcmc", random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.upper = upper
        self.mechanism = mechanism
        self.window = window
        self.columns = columns
        self.rate_prior = rate_prior
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    def _family(self):
        default = GammaPrior(2.0, 2 * check_positive(self.upper, "upper") / 5)
        return ExponentialFamily({"rate": check_prior(self.rate_prior, default, GammaPrior, "rate_prior")})


class LDPPoisson(_CountEstimator):
    r"""Rate of Poisson counts, from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    upper : int, default=20
        Public upper bound; counts are clipped to 0 .. upper, and the model accounts for it.
    mechanism : {"square_wave", "laplace"}, default="square_wave"
        How a count is randomised.
    window : "auto" or float, default="auto"
        Half-window of the square wave, as a fraction of the range.
    rate_prior : "auto" or (shape, rate), default="auto"
        Gamma prior of the rate; by default shape 2 with mean upper/4.
    columns, inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    rate_ : float, or ndarray of shape (n_features,)
        Posterior mean.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    Notes
    -----
    The likelihood is a finite sum over 0 .. upper with the tail mass at upper, exact for both mechanisms.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPPoisson
    >>> visits = np.random.default_rng(0).poisson(4.0, size=(20_000, 1))
    >>> model = LDPPoisson(epsilon=1.0, random_state=0).fit(visits)
    >>> low, high = model.posterior_.interval(0.99)["rate"]
    >>> bool(low < 4.0 < high)
    True
    """

    def __init__(self, *, epsilon: float = 1.0, upper: int = 20, mechanism: str = "square_wave",
                 window: float | str = "auto", columns: str = "auto", rate_prior: Any = "auto",
                 inference: Any = "mcmc", random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.upper = upper
        self.mechanism = mechanism
        self.window = window
        self.columns = columns
        self.rate_prior = rate_prior
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    def _family(self):
        default = GammaPrior(2.0, 8 / self._n_levels())
        return PoissonFamily({"rate": check_prior(self.rate_prior, default, GammaPrior, "rate_prior")})


class LDPGeometric(_CountEstimator):
    r"""Success probability of geometric counts of failures, from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    upper : int, default=20
        Public upper bound; counts are clipped to 0 .. upper, and the model accounts for it.
    mechanism : {"square_wave", "laplace"}, default="square_wave"
        How a count is randomised.
    window : "auto" or float, default="auto"
        Half-window of the square wave, as a fraction of the range.
    probability_prior : "auto" or (a, b), default="auto"
        Beta prior of the probability; by default uniform.
    columns, inference, random_state, n_jobs, progress, warm_start
        As in :class:`LDPGaussian`.

    Attributes
    ----------
    probability_ : float, or ndarray of shape (n_features,)
        Posterior mean.
    posterior_, fit_check_, epsilon_, delta_, n_reports_, n_rejected_, protocol_, n_features_in_, feature_names_in_
        As in :class:`LDPGaussian`.

    Notes
    -----
    :math:`P(k) = p(1-p)^k` for k = 0, 1, ... failures before the first success. The likelihood is a finite sum over
    0 .. upper with the tail mass at upper, exact for both mechanisms.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPGeometric
    >>> failures = np.random.default_rng(0).geometric(0.3, size=(20_000, 1)) - 1
    >>> model = LDPGeometric(epsilon=1.0, random_state=0).fit(failures)
    >>> low, high = model.posterior_.interval(0.99)["probability"]
    >>> bool(low < 0.3 < high)
    True
    """

    def __init__(self, *, epsilon: float = 1.0, upper: int = 20, mechanism: str = "square_wave",
                 window: float | str = "auto", columns: str = "auto", probability_prior: Any = "auto",
                 inference: Any = "mcmc", random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.upper = upper
        self.mechanism = mechanism
        self.window = window
        self.columns = columns
        self.probability_prior = probability_prior
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    def _family(self):
        prior = check_prior(self.probability_prior, BetaPrior(1.0, 1.0), BetaPrior, "probability_prior")
        return GeometricFamily({"probability": prior})
