"""Log-densities of parameters given aggregated reports, batched over walkers."""

from skldp.models._base import Model
from skldp.models.categories._model import HistogramModel, SurrogateHistogramModel, histogram_model
from skldp.models.regression._covariance_model import CovarianceModel
from skldp.models.regression._linear import LinearModel
from skldp.models.regression._logistic_moments import LogisticMomentModel
from skldp.models.regression._logistic_records import LogisticRecordModel
from skldp.models.regression._rounds import RoundModel
from skldp.models.regression._sampled_models import SampledLinearModel, SampledLogisticModel
from skldp.models.values._density import DensityModel
from skldp.models.values._families import ExponentialFamily, GaussianFamily, GeometricFamily, PoissonFamily, ScipyFamily
from skldp.models.values._grid import ValueGrid
from skldp.models.values._lemma import log_noisy_marginal
from skldp.models.values._model import UnivariateModel
from skldp.models.values._priors import BetaPrior, GammaPrior, NormalPrior, ScipyPrior

__all__ = [
    "BetaPrior",
    "CovarianceModel",
    "DensityModel",
    "ExponentialFamily",
    "GammaPrior",
    "GaussianFamily",
    "GeometricFamily",
    "HistogramModel",
    "LinearModel",
    "LogisticMomentModel",
    "LogisticRecordModel",
    "Model",
    "NormalPrior",
    "PoissonFamily",
    "RoundModel",
    "SampledLinearModel",
    "SampledLogisticModel",
    "ScipyFamily",
    "ScipyPrior",
    "SurrogateHistogramModel",
    "UnivariateModel",
    "ValueGrid",
    "histogram_model",
    "log_noisy_marginal",
]
