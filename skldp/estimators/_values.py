"""Base class of the estimators of values, and the estimator of a normal distribution."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logsumexp
from sklearn.base import DensityMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skldp._validation._parameters import check_bounds, is_auto, plain_number
from skldp.analysis._planning import plan_value
from skldp.estimators._base import BaseLDPEstimator
from skldp.estimators._columns import like, protocol_of_width, value_protocol
from skldp.models.values._families import GaussianFamily
from skldp.models.values._model import UnivariateModel
from skldp.models.values._priors import GammaPrior, NormalPrior, check_prior
from skldp.protocols._aggregate import Aggregate

_N_SCORED_DRAWS = 500  # posterior draws that a predictive density averages over


class BaseLDPDensity(DensityMixin, BaseLDPEstimator):
    """Base class of the estimators of single values. Columns are independent.

    A subclass has the parameters ``epsilon``, ``window`` and ``columns``.
    """

    def _value_protocol(self, n_features, **options):
        """Return the protocol for a number of columns (None is 1), with further fields of :class:`ValueProtocol`."""
        return value_protocol(self.columns, n_features, epsilon=self.epsilon, window=self.window, **options)

    def _protocol_of(self, reports):
        if not isinstance(reports, Aggregate):
            return protocol_of_width(self._protocol, reports.shape[1])
        expected = super()._protocol_of(reports)
        return like(expected, reports.protocol) if is_auto(self.columns) else expected

    _misfit_advice = ("Use LDPDensity, which assumes no family of distributions, or choose another family, or bounds "
                      "that the values rarely exceed.")

    def _family(self):
        raise NotImplementedError

    def _models(self, aggregate):
        family = self._family()
        return [UnivariateModel(family, aggregate, column) for column in range(aggregate.protocol.n_features)]

    def _describe(self, posterior, models, aggregate):
        return {f"{name}_": plain_number(value) for name, value in posterior.mean().items()}

    def score_samples(self, X: ArrayLike) -> np.ndarray:
        """Return the logarithm of the posterior mean density of each row, without clipping.

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
        family = self._family()
        flat = {name: draws.reshape(-1, *draws.shape[2:]) for name, draws in self.posterior_.draws.items()}
        stride = max(1, len(next(iter(flat.values()))) // _N_SCORED_DRAWS)
        total = np.zeros(len(rows))
        for column in range(rows.shape[1]):
            draws = [values[::stride] if values.ndim == 1 else values[::stride, column] for values in flat.values()]
            log_density = family.log_density(rows[:, column], [values[:, None] for values in draws])
            total += logsumexp(log_density, axis=0) - np.log(len(log_density))
        return total

    def score(self, X: ArrayLike, y: object = None) -> float:
        """Return the mean log-density of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Points.
        y : ignored
            Present for scikit-learn's API.

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())


class LDPGaussian(BaseLDPDensity):
    r"""Mean and standard deviation of normal values, from one noisy report of each client.

    Parameters
    ----------
    epsilon : float, default=1.0
        Budget of a client; ``inf`` for no noise.
    bounds : tuple of float, default=(-5, 5)
        Public interval; values are clipped to it, and the model accounts for the clipping.
    mechanism : {"square_wave", "laplace", "gaussian"}, default="square_wave"
        How a value is randomised. The square wave needs far fewer clients than the others, above all for the standard
        deviation. Laplace noise is better for the mean if the standard deviation exceeds a quarter of the range and
        epsilon is small.
    delta : float, default=1e-5
        Failure probability of the guarantee; for Gaussian noise only.
    window : "auto" or float, default="auto"
        Half-window of the square wave, as a fraction of the range.
    columns : {"auto", "split", "sample"}, default="auto"
        How clients with several columns report: all of them, each with an equal share of the budget ("split"), or one,
        which the client draws by a uniform coin, with the whole budget ("sample"). "auto" takes the one that needs
        fewer people: "sample" if epsilon is below :math:`5.5\sqrt k` for k columns and the square wave, and always for
        the other mechanisms.
    mean_prior : "auto" or (location, scale), default="auto"
        Normal prior of the mean; by default the midpoint and half the range.
    std_prior : "auto" or (shape, rate), default="auto"
        Gamma prior of the standard deviation; by default shape 2 with mean a tenth of the range.
    inference : "mcmc", "laplace", MCMC or LaplaceApproximation, default="mcmc"
        Markov chains, or the Gaussian approximation at the mode, which takes milliseconds. An object :class:`MCMC`
        sets the number of chains and of their steps.
    random_state : None, int, Generator or RandomState, default=None
        Seed of the simulated noise and of the sampling.
    n_jobs : int or None, default=None
        Number of columns sampled in parallel, by joblib; it does not change the draws.
    progress : bool, default=False
        Show a progress bar.
    warm_start : bool, default=False
        Start the chains from the last fit, for collections that grow between fits.

    Attributes
    ----------
    mean_, std_ : float, or ndarray of shape (n_features,)
        Posterior means.
    posterior_ : Posterior
        Draws of ``mean`` and ``std`` with diagnostics.
    fit_check_ : FitCheck or None
        Test of whether the model explains its reports; None if they cannot tell, as for few reports and regressions.
    epsilon_, delta_ : float
        Budget that each client spent.
    n_reports_, n_rejected_ : int
        Number of reports used, and of reports dropped as invalid.
    protocol_ : ValueProtocol or SampledValueProtocol
        The public description of the collection.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Warns
    -----
    ModelMisfitWarning
        If the reports show that the values are not normal: the p-value of ``fit_check_`` is below 0.001.

    Notes
    -----
    A record is :math:`\mathrm{clip}(x, a, b)` with :math:`x \sim N(\mu, \sigma^2)`. For the square wave the
    likelihood of a report is exact on the grid. For Laplace and Gaussian noise it is the closed form of the clipped
    normal plus noise, evaluated at the centres of public cells whose width is a small fraction of the noise.

    References
    ----------
    T. Kulkarni, J. Jälkö, S. Kaski, A. Honkela (2022). Locally differentially private Bayesian inference. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from skldp import LDPGaussian
    >>> heights = np.random.default_rng(0).normal(170, 10, size=(20_000, 1))
    >>> model = LDPGaussian(epsilon=1.0, bounds=(120, 220), random_state=0).fit(heights)
    >>> low, high = model.posterior_.interval(0.99)["mean"]
    >>> bool(low < 170 < high)
    True
    """

    def __init__(self, *, epsilon: float = 1.0, bounds: tuple[float, float] = (-5, 5),
                 mechanism: str = "square_wave", delta: float = 1e-5, window: float | str = "auto",
                 columns: str = "auto", mean_prior: Any = "auto", std_prior: Any = "auto", inference: Any = "mcmc",
                 random_state: Any = None, n_jobs: int | None = None, progress: bool = False,
                 warm_start: bool = False) -> None:
        self.epsilon = epsilon
        self.bounds = bounds
        self.mechanism = mechanism
        self.delta = delta
        self.window = window
        self.columns = columns
        self.mean_prior = mean_prior
        self.std_prior = std_prior
        self.inference = inference
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.progress = progress
        self.warm_start = warm_start

    _plan = staticmethod(plan_value)

    def _protocol(self, n_features=None, labels=None):
        return self._value_protocol(n_features, delta=self.delta, bounds=self.bounds, mechanism=self.mechanism)

    def _family(self):
        lower, upper = check_bounds(self.bounds)
        width = upper - lower
        mean = NormalPrior(lower + width / 2, width / 2)
        std = GammaPrior(2.0, 20 / width)
        return GaussianFamily({
            "mean": check_prior(self.mean_prior, mean, NormalPrior, "mean_prior"),
            "std": check_prior(self.std_prior, std, GammaPrior, "std_prior"),
        })
