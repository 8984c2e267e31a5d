"""Log-densities of parameters given aggregated reports, batched over walkers."""

from skldp.models._families import ExponentialFamily, GaussianFamily, GeometricFamily, PoissonFamily, ScipyFamily
from skldp.models._histogram import HistogramModel, SurrogateHistogramModel, histogram_model
from skldp.models._lemma import log_noisy_marginal
from skldp.models._linear import LinearModel
from skldp.models._logistic import LogisticMomentModel
from skldp.models._logistic_records import LogisticRecordModel
from skldp.models._priors import BetaPrior, GammaPrior, NormalPrior, ScipyPrior
from skldp.models._univariate import UnivariateModel

__all__ = [
    "BetaPrior",
    "ExponentialFamily",
    "GammaPrior",
    "GaussianFamily",
    "GeometricFamily",
    "HistogramModel",
    "LinearModel",
    "LogisticMomentModel",
    "LogisticRecordModel",
    "NormalPrior",
    "PoissonFamily",
    "ScipyFamily",
    "ScipyPrior",
    "SurrogateHistogramModel",
    "UnivariateModel",
    "histogram_model",
    "log_noisy_marginal",
]
