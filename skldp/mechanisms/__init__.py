"""Randomisers: each draws reports and computes their probabilities."""

from skldp.mechanisms._axis import Axis
from skldp.mechanisms._axis_moments import AxisMoments
from skldp.mechanisms._base import Mechanism
from skldp.mechanisms._block_design import BlockDesign
from skldp.mechanisms._gaussian import Gaussian
from skldp.mechanisms._gaussian_moments import GaussianMoments
from skldp.mechanisms._labelled_record import LabelledRecord
from skldp.mechanisms._laplace import Laplace
from skldp.mechanisms._moments import SphereMoments
from skldp.mechanisms._randomized_response import RandomizedResponse
from skldp.mechanisms._sampled_moments import SampledMoments
from skldp.mechanisms._sphere import Sphere
from skldp.mechanisms._square_wave import SquareWave
from skldp.mechanisms._subset_selection import SubsetSelection
from skldp.mechanisms._unary_encoding import UnaryEncoding

__all__ = [
    "Axis",
    "AxisMoments",
    "BlockDesign",
    "Gaussian",
    "GaussianMoments",
    "LabelledRecord",
    "Laplace",
    "Mechanism",
    "RandomizedResponse",
    "SampledMoments",
    "Sphere",
    "SphereMoments",
    "SquareWave",
    "SubsetSelection",
    "UnaryEncoding",
]
